"""Train a perceptron on handwritten digits in onnxruntime alone, and eagerly for comparison.

    python examples/onnx_training.py

A whole training step (forward, loss, backward, clipped gradients, Adam) becomes one ONNX model.
What the step changes is its inputs and outputs, so that a loop that feeds it back trains: in C++,
in a browser, or here, by NumPy and onnxruntime. The models and the first state are written to the
output folder. It needs the extra ``wengert[onnx]``.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import wengert as wg
from wengert import nn, optim

#: By the names of inputs or outputs.
Arrays = dict[str, np.ndarray]


class Session:
    """A model as onnxruntime runs it."""

    def __init__(self, path: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # it warns of each state that has a default value
        self.session = onnxruntime.InferenceSession(path, options)
        self.outputs = [each.name for each in self.session.get_outputs()]

    def __call__(self, inputs: Arrays) -> Arrays:
        return dict(zip(self.outputs, self.session.run(self.outputs, inputs), strict=True))


def load() -> tuple[np.ndarray, ...]:
    """Return images and digits to learn from and held out, a fifth of the 1797."""
    images, digits = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        (images / 16).astype(np.float32), digits, test_size=0.2, random_state=0, stratify=digits
    )
    return train_x, train_y, test_x, test_y


def schedule(count: int, epochs: int, size: int, lr: float) -> list[tuple[np.ndarray, float]]:
    """Return the rows and the learning rate of each step; the last batch of an epoch is smaller."""
    rng = np.random.default_rng(0)
    orders = [rng.permutation(count) for _ in range(epochs)]
    rows = [order[at : at + size] for order in orders for at in range(0, count, size)]
    return [(each, lr * (1 - i / len(rows))) for i, each in enumerate(rows)]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=5e-3, help="the first learning rate")
    parser.add_argument("--hidden", type=int, default=256, help="width")
    parser.add_argument("--output", type=Path, default=Path("build/onnx_training"), help="folder")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train in both ways, and return the accuracies on the held-out images."""
    options = parse(arguments)
    wg.manual_seed(0)
    train_x, train_y, test_x, test_y = load()
    model = nn.Sequential(nn.Linear(64, options.hidden), nn.ReLU(), nn.Linear(options.hidden, 10))
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = optim.Adam(model.parameters(), lr=options.lr)

    def step(images: wg.Tensor, digits: wg.Tensor) -> wg.Tensor:
        optimizer.zero_grad()
        loss = criterion(model(images), digits)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    def predict(images: wg.Tensor) -> wg.Tensor:
        return model(images)

    steps = schedule(len(train_x), options.epochs, options.batch_size, options.lr)
    first, _ = steps[0]
    example = (wg.asarray(train_x[first]), wg.asarray(train_y[first]))
    step(*example)  # makes what Adam keeps

    options.output.mkdir(parents=True, exist_ok=True)
    training, inference = options.output / "training.onnx", options.output / "inference.onnx"
    state = wg.export.onnx(step, example, training)
    wg.export.onnx(predict, example[0], inference)
    np.savez(options.output / "state.npz", **state)

    run, loss = Session(training), np.float32(0)
    for rows, lr in steps[1:]:
        state["optimizer.lr"] = np.asarray(lr)
        found = run({**state, "images": train_x[rows], "digits": train_y[rows]})
        loss = found["output"]
        state |= {k.removeprefix("next."): x for k, x in found.items() if k.startswith("next.")}
    weights = {f"model.{name}": state[f"model.{name}"] for name in model.state_dict()}
    logits = Session(inference)({**weights, "images": test_x})["output"]
    in_onnxruntime = float(np.mean(logits.argmax(axis=1) == test_y))
    print(f"onnxruntime: loss {loss:.4f}, test accuracy {in_onnxruntime:.2%}")

    compiled, eager = wg.compile(step), wg.asarray(0.0)
    for rows, lr in steps[1:]:
        optimizer.param_groups[0]["lr"] = lr
        eager = compiled(wg.asarray(train_x[rows]), wg.asarray(train_y[rows]))
    logits = model(wg.asarray(test_x)).detach()
    in_wengert = float(np.mean(np.asarray(logits).argmax(axis=1) == test_y))
    print(f"wengert: loss {eager.item():.4f}, test accuracy {in_wengert:.2%}")
    print(f"models and the first state in {options.output}")
    return in_onnxruntime, in_wengert


if __name__ == "__main__":
    main()
