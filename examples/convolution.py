"""Read handwritten digits by a convolutional network, and show the ones that it finds hardest.

    WENGERT_BACKEND=torch python examples/convolution.py --compile

The held-out digits choose nothing: what is reported is the last epoch's. A run that was stopped
goes on with --resume from its last epoch, and ends with the same bits.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import wengert as wg
from wengert import data, nn, optim


def load() -> list[data.TensorDataset]:
    """Return four fifths of scikit-learn's 1797 digits to learn from, and one fifth to test on."""
    images, digits = load_digits(return_X_y=True)
    images = (images / 16).astype("float32").reshape(-1, 1, 8, 8)
    train_x, test_x, train_y, test_y = train_test_split(
        images, digits, test_size=0.2, random_state=0, stratify=digits
    )
    return [data.TensorDataset(train_x, train_y), data.TensorDataset(test_x, test_y)]


def build() -> nn.Sequential:
    """Return three convolutions, between which images are halved twice, and a linear layer."""

    def convolution(before: int, after: int) -> list[nn.Module]:
        return [
            nn.Conv2d(before, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
        ]

    return nn.Sequential(
        *(*convolution(1, 24), *convolution(24, 24), nn.MaxPool2d(2)),
        *(*convolution(24, 48), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Dropout(0.3), nn.Linear(48 * 2 * 2, 10)),
    )


@wg.no_grad()
def judge(model: nn.Module, part: data.TensorDataset) -> tuple[float, wg.Tensor]:
    """Return the cross entropy, and the probability of each class for each image."""
    ((x, y),) = data.DataLoader(part, batch_size=len(part))
    logits = model.eval()(x)
    return float(nn.functional.cross_entropy(logits, y)), nn.functional.softmax(logits, dim=1)


def draw(
    curves: dict[str, list[float]], part: data.TensorDataset, found: np.ndarray, path: Path
) -> None:
    """Draw the learning curves, and the images whose digit was given the least probability."""
    images, digits = part.tensors
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subfigures(1, 2)
    axes = left.subplots()
    for name, losses in curves.items():
        axes.semilogy(range(1, len(losses) + 1), losses, label=name)
    axes.set(xlabel="epoch", ylabel="cross entropy (nats)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    right.suptitle("The hardest held-out digits")
    hardest = np.argsort(found[np.arange(len(digits)), digits])
    for axes, i in zip(right.subplots(2, 4).flat, hardest, strict=False):
        axes.imshow(images[i, 0], cmap="gray_r")
        axes.set_axis_off()
        guess = found[i].argmax()
        text = f"{digits[i]}, read as {guess}" if guess != digits[i] else f"{digits[i]}"
        axes.set_title(
            f"{text}\np = {found[i, digits[i]]:.2g}",
            size="medium",
            color="black" if guess == digits[i] else "tab:red",
        )
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> float:
    """Train, draw, and return the share of held-out images that are read rightly."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compile", action="store_true", help="record a step once and replay it")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--output", type=Path, default=Path("build/convolution"), help="folder")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    last = options.output / "last.safetensors"

    wg.manual_seed(options.seed)
    train_part, test_part = load()
    loader = data.DataLoader(train_part, batch_size=64, shuffle=True, generator=options.seed)
    model = build()
    optimizer = optim.AdamW(model.parameters())
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, 0.01, options.epochs * len(loader))
    states = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "loader": loader}
    curves: dict[str, list[float]] = {"training images": [], "held-out images": []}
    if options.resume:
        curves = wg.load(last, generator=True, **states)["curves"]

    def step(x: wg.Tensor, y: wg.Tensor) -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    run = wg.compile(step) if options.compile else step
    bar = data.progress(range(len(curves["held-out images"]), options.epochs), unit="epoch")
    for _ in bar:
        model.train()
        for x, y in loader:
            run(x, y)
            scheduler.step()
        for losses, part in zip(curves.values(), (train_part, test_part), strict=True):
            losses.append(judge(model, part)[0])
        bar.set_postfix({name: f"{losses[-1]:.3f}" for name, losses in curves.items()})
        wg.save(last, generator=True, curves=curves, **states)

    _, probabilities = judge(model, test_part)
    found = probabilities.numpy()
    draw(curves, test_part, found, options.output / "digits.png")
    accuracy = float(np.mean(found.argmax(axis=1) == test_part.tensors[1]))
    print(f"{accuracy:.2%} of {len(test_part)} held-out digits are read rightly")
    return accuracy


if __name__ == "__main__":
    main()
