"""Train a multi-layer perceptron on scikit-learn's handwritten digits, on any array library.

    python examples/digits.py
    WENGERT_BACKEND=torch python examples/digits.py --epochs 10
    mpiexec -n 4 python examples/digits.py --distributed

The variable is the whole switch: nothing below knows which library computes. On several processes
each has a part of every batch, and all have the same weights. The weights and a picture of the
learning curves are written to the output folder. A run that was stopped goes on with --resume from
its last epoch, and ends with the same bits.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import wengert as wg
import wengert.distributed as wd
from wengert import nn, optim


@dataclass
class Split:
    """Images, a row of 64 intensities from 0 to 1 each, and the digits that they show."""

    images: wg.Tensor
    digits: wg.Tensor

    def __len__(self) -> int:
        return self.images.shape[0]

    def batches(self, size: int) -> Iterator[tuple[wg.Tensor, wg.Tensor]]:
        """Go once through the data, shuffled."""
        order = wg.randperm(len(self))
        for start in range(0, len(self), size):
            rows = order[start : start + size]
            yield self.images[rows], self.digits[rows]


@dataclass
class History:
    """Losses and accuracies after each epoch, on the training and on the held-out images."""

    train_loss: list[float] = field(default_factory=list)
    test_loss: list[float] = field(default_factory=list)
    train_accuracy: list[float] = field(default_factory=list)
    test_accuracy: list[float] = field(default_factory=list)


def load() -> tuple[Split, Split]:
    """Return the 1797 digits that come with scikit-learn: four fifths, and one held out."""
    images, digits = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        images / 16, digits, test_size=0.2, random_state=0, stratify=digits
    )
    return (
        Split(wg.asarray(train_x, dtype=wg.float32), wg.asarray(train_y)),
        Split(wg.asarray(test_x, dtype=wg.float32), wg.asarray(test_y)),
    )


def build(hidden: Sequence[int]) -> nn.Sequential:
    """Return a perceptron with hidden layers of these widths."""
    widths = [64, *hidden]
    layers: list[nn.Module] = []
    for wide, narrow in zip(widths, hidden, strict=False):
        layers += [nn.Linear(wide, narrow), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], 10))


@wg.no_grad()
def evaluate(model: nn.Module, split: Split) -> tuple[float, float]:
    """Return the loss and the share of right answers."""
    logits = model(split.images)
    loss = nn.functional.cross_entropy(logits, split.digits)
    right = wg.argmax(logits, axis=1) == split.digits
    return float(loss), float(wg.mean(wg.astype(right, wg.float32)))


def train(
    model: nn.Module, train_split: Split, test_split: Split, options: argparse.Namespace
) -> History:
    """Train with Adam and the learning rate falling to zero, and report as it goes."""
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimiser = optim.Adam(model.parameters(), lr=options.lr)
    history, step = History(), 0
    last, states = options.output / "last.safetensors", {"model": model, "optimiser": optimiser}
    if options.resume:
        found = wg.load(last, generator=True, **states)
        history, step = History(**found["history"]), found["step"]
    per_epoch = -(-len(train_split) // options.batch_size)
    total = options.epochs * per_epoch
    if options.steps is not None:
        total = min(total, options.steps)

    def update(images: wg.Tensor, digits: wg.Tensor) -> wg.Tensor:
        optimiser.zero_grad()
        loss = criterion(model(images), digits)
        loss.backward()
        if options.distributed:
            wd.average(model, weight=len(digits))
        optimiser.step()
        return loss

    if options.compile:  # the same, recorded once for each size of a batch
        update = wg.compile(update)
    with tqdm(total=total, initial=step, unit="step", disable=not writes(options)) as bar:
        while step < total:
            batches = train_split.batches(options.batch_size)
            for images, digits in wd.shard(batches) if options.distributed else batches:
                for group in optimiser.param_groups:
                    group["lr"] = options.lr * (1 - step / total)
                update(images, digits)
                step += 1
                bar.update()
                if step == total:
                    break
            for name, part in ("train", train_split), ("test", test_split):
                loss, accuracy = evaluate(model, part)
                getattr(history, f"{name}_loss").append(loss)
                getattr(history, f"{name}_accuracy").append(accuracy)
            if writes(options):
                wg.save(last, generator=True, history=vars(history), step=step, **states)
            bar.set_postfix(
                loss=f"{history.train_loss[-1]:.3f}", held_out=f"{history.test_accuracy[-1]:.1%}"
            )
    return history


def draw(history: History, path: Path) -> None:
    """Draw the learning curves."""
    epochs = range(1, len(history.train_loss) + 1)
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    losses, accuracies = figure.subplots(1, 2)
    curves = [
        (losses, history.train_loss, history.test_loss),
        (
            accuracies,
            [100 * a for a in history.train_accuracy],
            [100 * a for a in history.test_accuracy],
        ),
    ]
    for axes, on_training, held_out in curves:
        axes.plot(
            epochs, on_training, "o-", markersize=3, color="tab:blue", label="training images"
        )
        axes.plot(epochs, held_out, "o-", markersize=3, color="tab:orange", label="held-out images")
        axes.set_xlabel("epoch")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(frameon=False)
    losses.set(title="Cross entropy", ylim=(0, None))
    accuracies.set(title="Right answers, per cent")
    figure.suptitle(f"Handwritten digits: {history.test_accuracy[-1]:.1%} of the held-out images")
    figure.savefig(path, dpi=150)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--steps", type=int, help="stop after so many steps, whatever the epoch")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=5e-3, help="the first learning rate")
    parser.add_argument("--hidden", type=int, nargs="*", default=[256], help="widths")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compile", action="store_true", help="record a step once and replay it")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--distributed", action="store_true", help="one process of several")
    parser.add_argument("--output", type=Path, default=Path("build/digits"), help="folder")
    options = parser.parse_args(arguments)
    for name in ("epochs", "batch_size", "lr"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name.replace('_', '-')} should be positive")
    return options


def writes(options: argparse.Namespace) -> bool:
    """Whether this process is the one that prints and writes files."""
    return not options.distributed or wd.rank == 0


def main(arguments: Sequence[str] | None = None) -> float:
    """Train, save, draw, and return the accuracy on the held-out images."""
    options = parse(arguments)
    wg.manual_seed(options.seed)
    train_split, test_split = load()
    model = build(options.hidden)
    if options.distributed:
        wd.init()
        model = wd.replicate(model)
    images = train_split.images
    if writes(options):
        print(
            f"{len(train_split)} digits to learn from, {len(test_split)} held out; computed by "
            f"{images.backend.name} on {images.device}"
        )
        print(model)

    options.output.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    history = train(model, train_split, test_split, options)
    seconds = time.perf_counter() - start

    if not writes(options):
        return history.test_accuracy[-1]
    weights, picture = options.output / "weights.safetensors", options.output / "curves.png"
    nn.save(model.state_dict(), weights)
    draw(history, picture)
    print(
        f"{len(history.test_loss)} epochs in {seconds:.1f} s; weights in {weights}, learning "
        f"curves in {picture}"
    )
    print(f"test accuracy: {history.test_accuracy[-1]:.2%}")
    return history.test_accuracy[-1]


if __name__ == "__main__":
    main()
