"""Tell benign from malignant tumours: batches, a schedule, early stopping and checkpoints.

    WENGERT_BACKEND=torch python examples/tabular.py --compile

A run that was stopped goes on with --resume from its last epoch, and ends with the same bits.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import wengert as wg
from wengert import data, nn, optim


def load() -> list[data.TensorDataset]:
    """Return patients to learn from, to stop by and to test on: 30 columns, and 1 if benign."""
    patients = load_breast_cancer(return_X_y=True)
    rest_x, test_x, rest_y, test_y = train_test_split(*patients, random_state=0)
    train_x, stop_x, train_y, stop_y = train_test_split(rest_x, rest_y, random_state=0)
    mean, scale = train_x.mean(axis=0), train_x.std(axis=0)
    return [
        data.TensorDataset(((a - mean) / scale).astype("float32"), b.astype("float32"))
        for a, b in ((train_x, train_y), (stop_x, stop_y), (test_x, test_y))
    ]


@wg.no_grad()
def evaluate(model: nn.Module, part: data.TensorDataset) -> tuple[float, float]:
    """Return the loss and the share of right answers."""
    ((x, y),) = data.DataLoader(part, batch_size=len(part))
    logits = model.eval()(x)[:, 0]
    loss = nn.functional.binary_cross_entropy_with_logits(logits, y)
    return float(loss), float(wg.mean(wg.astype((logits > 0) == (y > 0.5), wg.float32)))


def main(arguments: Sequence[str] | None = None) -> float:
    """Train until held-out patients are judged no better, and return the accuracy on the others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=60, help="at most")
    parser.add_argument("--patience", type=int, default=10, help="epochs without a better loss")
    parser.add_argument("--compile", action="store_true", help="record a step once and replay it")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--output", type=Path, default=Path("build/tabular"), help="folder")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    last, best = options.output / "last.safetensors", options.output / "best.safetensors"

    wg.manual_seed(0)
    train_part, stop_part, test_part = load()
    loader = data.DataLoader(train_part, batch_size=32, shuffle=True, generator=0)
    model = nn.Sequential(
        nn.Linear(30, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1)
    )
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    states = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "loader": loader}
    curves: dict[str, list[float]] = {"training patients": [], "held-out patients": []}
    if options.resume:
        curves = wg.load(last, generator=True, **states)["curves"]

    def step(x: wg.Tensor, y: wg.Tensor) -> None:
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y).backward()
        optimizer.step()

    run = wg.compile(step) if options.compile else step
    held_out = curves["held-out patients"]
    for _ in data.progress(range(len(held_out), options.epochs)):
        if held_out and len(held_out) - 1 - held_out.index(min(held_out)) >= options.patience:
            break
        model.train()
        for x, y in loader:
            run(x, y)
        scheduler.step()
        for losses, part in zip(curves.values(), (train_part, stop_part), strict=True):
            losses.append(evaluate(model, part)[0])
        if held_out[-1] == min(held_out):
            wg.save(best, model=model)
        wg.save(last, generator=True, curves=curves, **states)

    axes = Figure(figsize=(6, 3.8), layout="constrained").subplots()
    for name, losses in curves.items():
        axes.plot(range(1, len(losses) + 1), losses, label=name)
    axes.set(xlabel="epoch", ylabel="cross entropy (nats)", ylim=(0, None))
    axes.legend(frameon=False)
    axes.figure.savefig(options.output / "curves.png", dpi=150)
    wg.load(best, model=model)
    accuracy = evaluate(model, test_part)[1]
    print(f"{len(held_out)} epochs; the best model judges {accuracy:.1%} of new patients rightly")
    return accuracy


if __name__ == "__main__":
    main()
