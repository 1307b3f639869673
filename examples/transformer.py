"""Write like Python's own manual: a transformer that reads and writes character by character.

    WENGERT_BACKEND=torch python examples/transformer.py --compile

The text is that of Python's help("topics"). Counts of one, two and three characters in a row are
what the transformer is compared with. A run that was stopped goes on with --resume from its last
epoch, and ends with the same bits.
"""

import argparse
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
from matplotlib.figure import Figure
from numpy.lib.stride_tricks import sliding_window_view

import wengert as wg
from wengert import data, nn, optim

LENGTH = 64  #: characters that the transformer sees at once


def load() -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the characters, and their numbers in nine tenths of the text and in the last tenth.

    The manual repeats itself, and the text does not: the last tenth has no paragraph of the others.
    """
    paragraphs = "\n\n".join(topics.values()).split("\n\n")
    text = "\n\n".join(dict.fromkeys(paragraph.strip("\n") for paragraph in paragraphs))
    characters = sorted(set(text))
    numbers = {character: i for i, character in enumerate(characters)}
    codes = np.array([numbers[character] for character in text])
    cut = len(codes) * 9 // 10
    return characters, codes[:cut], codes[cut:]


def counted(codes: np.ndarray, held_out: np.ndarray, n: int, kinds: int) -> float:
    """Return the cross entropy of n characters in a row, by counts with a tenth added to each."""

    def rows(text: np.ndarray) -> np.ndarray:
        return sliding_window_view(text, n) @ kinds ** np.arange(n)[::-1]

    counts = np.bincount(rows(codes), minlength=kinds**n).reshape(-1, kinds) + 0.1
    shares = counts / counts.sum(axis=1, keepdims=True)
    return float(-np.mean(np.log(shares.ravel()[rows(held_out)])))


class Transformer(nn.Module):
    """Logits of the character that follows each one, by what stands before it."""

    def __init__(self, kinds: int, width: int = 64) -> None:
        self.characters = nn.Embedding(kinds, width)
        self.places = nn.Embedding(LENGTH, width)
        for embedding in (self.characters, self.places):
            nn.init.normal_(embedding.weight, std=0.1)
        layer = nn.TransformerEncoderLayer(
            width, nhead=4, dim_feedforward=4 * width, dropout=0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, num_layers=2, norm=nn.LayerNorm(width))
        self.last = nn.Linear(width, kinds)
        later = ~wg.tril(wg.ones((LENGTH, LENGTH), dtype=wg.bool))
        self.register_buffer("later", later, persistent=False)

    def forward(self, codes: wg.Tensor) -> wg.Tensor:
        """Return logits of shape (batch, length, kinds) for codes of shape (batch, length)."""
        x = self.characters(codes) + self.places.weight
        return self.last(self.layers(x, mask=self.later, is_causal=True))

    def losses(self, windows: wg.Tensor) -> wg.Tensor:
        """Return what each character of a window, after the first, costs in nats."""
        logits, following = self(windows[:, :-1]), windows[:, 1:]
        return nn.functional.cross_entropy(wg.matrix_transpose(logits), following, reduction="none")


@wg.no_grad()
def judge(model: Transformer, codes: np.ndarray) -> np.ndarray:
    """Return the mean cross entropy for each place in a window."""
    windows = sliding_window_view(codes, LENGTH + 1)[::LENGTH]
    batches = data.DataLoader(windows, batch_size=64)
    return np.concat([model.losses(batch).numpy() for batch in batches]).mean(axis=0)


@wg.no_grad()
def write(predict: Callable[[wg.Tensor], wg.Tensor], codes: list[int], length: int) -> list[int]:
    """Go on with a text, each character drawn with the probability that the model gives it."""
    draw = random.Random(0)
    for _ in range(length):
        (shares,) = predict(wg.asarray([codes[-LENGTH:]])).tolist()
        codes = [*codes, *draw.choices(range(len(shares)), shares)]
    return codes


def draw(
    steps: list[int],
    curve: list[float],
    places: np.ndarray,
    by_counts: dict[str, float],
    path: Path,
) -> None:
    """Draw the learning curve, and the loss at each place in a window."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    left.plot(steps, curve, "o-", markersize=4)
    left.set(title="While it learns", xlabel="steps")
    left.set_ylabel("cross entropy of held-out text (nats)")
    right.plot(range(1, LENGTH + 1), places)
    right.set(title="In the end", xlabel="characters that the transformer has seen")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        for name, loss in by_counts.items():
            axes.axhline(loss, linestyle=":", color="gray")
            corner = {"ha": "right", "va": "bottom", "xycoords": ("axes fraction", "data")}
            axes.annotate(f"counts of {name}", (1, loss), **corner)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> tuple[float, dict[str, float]]:
    """Train, draw, write, and return the losses on held-out text: the model's, and by counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=80, help="in an epoch")
    parser.add_argument("--characters", type=int, default=400, help="how many it writes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compile", action="store_true", help="record a step once and replay it")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--output", type=Path, default=Path("build/transformer"), help="folder")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    last = options.output / "last.safetensors"

    wg.manual_seed(options.seed)
    characters, codes, held_out = load()
    windows = sliding_window_view(codes, LENGTH + 1)
    sampler = data.RandomSampler(windows, num_samples=32 * options.steps, generator=options.seed)
    loader = data.DataLoader(windows, batch_size=32, sampler=sampler)
    model = Transformer(len(characters))
    optimizer = optim.AdamW(model.parameters())
    total = options.epochs * options.steps
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total, pct_start=0.1)
    states = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "loader": loader}
    curve: list[float] = []
    if options.resume:
        curve = wg.load(last, generator=True, **states)["curve"]

    def step(windows: wg.Tensor) -> None:
        optimizer.zero_grad()
        wg.mean(model.losses(windows)).backward()
        optimizer.step()

    def predict(codes: wg.Tensor) -> wg.Tensor:
        return nn.functional.softmax(model(codes)[:, -1], dim=-1)

    if options.compile:
        step, predict = wg.compile(step), wg.compile(predict)
    bar = data.progress(range(len(curve), options.epochs), unit="epoch")
    for _ in bar:
        for batch in loader:
            step(batch)
            scheduler.step()
        curve.append(float(judge(model, held_out).mean()))
        bar.set_postfix(held_out=f"{curve[-1]:.3f} nats")
        wg.save(last, generator=True, curve=curve, **states)

    by_counts = {
        name: counted(codes, held_out, n, len(characters))
        for n, name in enumerate(("single characters", "pairs", "triples"), 1)
    }
    steps = [options.steps * epoch for epoch in range(1, len(curve) + 1)]
    draw(steps, curve, judge(model, held_out), by_counts, options.output / "losses.png")
    written = write(predict, held_out[:LENGTH].tolist(), options.characters)
    text = "".join(characters[i] for i in written)
    print(f"{text[:LENGTH]}|{text[LENGTH:]}\n")
    print(f"nats of a held-out character: {curve[-1]:.3f}; by counts of")
    for name, loss in by_counts.items():
        print(f"    {name}: {loss:.3f}")
    return curve[-1], by_counts


if __name__ == "__main__":
    main()
