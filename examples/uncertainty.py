"""Say how ill patients with diabetes will be in a year, and how sure that is.

    WENGERT_BACKEND=torch python examples/uncertainty.py --compile

Each network of an ensemble gives a mean and a variance; that the means differ adds to the variance.
Patients that no network has seen then tell how wide intervals have to be (split conformal
prediction), and other ones whether they hold what they promise. A run that was stopped goes on
with --resume from its last epoch, and ends with the same bits.
"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import wengert as wg
from wengert import data, nn, optim

LEVEL = 0.9  #: the share of patients that an interval should hold


def load() -> list[data.TensorDataset]:
    """Return patients to learn from, to calibrate by, and to test on: 10 columns, and a score."""
    patients = load_diabetes(return_X_y=True, scaled=False)
    rest_x, test_x, rest_y, test_y = train_test_split(*patients, random_state=0)
    train_x, fit_x, train_y, fit_y = train_test_split(
        rest_x, rest_y, test_size=len(test_x), random_state=0
    )
    mean, scale = train_x.mean(axis=0), train_x.std(axis=0)
    return [
        data.TensorDataset(((x - mean) / scale).astype("float32"), y.astype("float32"))
        for x, y in ((train_x, train_y), (fit_x, fit_y), (test_x, test_y))
    ]


class Ensemble(nn.Module):
    """Networks that start apart: a mean and a variance of each, in the unit of the scores."""

    def __init__(self, scores: np.ndarray, members: int = 5) -> None:
        self.centre, self.scale = float(scores.mean()), float(scores.std())
        self.members = nn.ModuleList(
            nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Dropout(0.2), nn.Linear(32, 2))
            for _ in range(members)
        )

    def forward(self, x: wg.Tensor) -> tuple[wg.Tensor, wg.Tensor]:
        """Return means and variances of shape (members, patients)."""
        out = wg.stack([member(x) for member in self.members])
        variance = nn.functional.softplus(out[..., 1]) * self.scale**2
        return out[..., 0] * self.scale + self.centre, variance


@wg.no_grad()
def predict(model: Ensemble, part: data.TensorDataset) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard deviation of the members together, for each patient."""
    ((x, _),) = data.DataLoader(part, batch_size=len(part))
    means, variances = (each.numpy() for each in model.eval()(x))
    return means.mean(axis=0), np.sqrt(variances.mean(axis=0) + means.var(axis=0))


def nats(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> float:
    """Return minus the mean log-likelihood of scores that are normal numbers."""
    return float(np.mean(((y - mean) / std) ** 2 / 2 + np.log(std)) + math.log(2 * math.pi) / 2)


def least_squares(train_part: data.TensorDataset, part: data.TensorDataset) -> float:
    """Return the nats of a linear model with the same variance for all."""
    (x, y), (new_x, new_y) = (
        (np.column_stack([np.ones(len(each)), each.tensors[0]]), each.tensors[1])
        for each in (train_part, part)
    )
    weights, residuals, rank, _ = np.linalg.lstsq(x, y)
    return nats(new_y, new_x @ weights, np.sqrt(residuals / (len(y) - rank)))


def calibrated(errors: np.ndarray, level: float) -> float:
    """Return the width that holds at least this share of new errors, if they are exchangeable."""
    rank = math.ceil(level * (len(errors) + 1))
    return float(np.sort(errors)[rank - 1]) if rank <= len(errors) else math.inf


def draw(
    curves: dict[str, list[float]],
    linear: float,
    held_out: np.ndarray,
    errors: np.ndarray,
    path: Path,
) -> None:
    """Draw the learning curves, the intervals, and what intervals of all levels hold."""
    mean, std, score = held_out
    width, distances = calibrated(errors, LEVEL), abs(score - mean) / std
    figure = Figure(figsize=(14, 4.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for name, losses in curves.items():
        left.plot(range(1, len(losses) + 1), losses, label=name)
    left.axhline(linear, linestyle=":", color="gray", label="held-out, by a linear model")
    left.set(title="Learning", xlabel="epoch", ylabel="minus log-likelihood of a score (nats)")

    for color, name, here in (
        ("tab:blue", "inside", distances <= width),
        ("tab:red", "outside", distances > width),
    ):
        x, y = mean[here], score[here]
        middle.errorbar(x, x, width * std[here], fmt="none", ecolor=color, alpha=0.25)
        middle.plot(x, y, ".", color=color, label=f"{len(y)} {name}")
    middle.set(title=f"Held-out patients, and intervals for {LEVEL:.0%} of them")
    middle.set(xlabel="predicted score", ylabel="score after a year")

    levels = np.arange(0.05, 1, 0.05)
    noise = 2 * np.sqrt(levels * (1 - levels) * (1 / len(errors) + 1 / len(score)))
    band = 100 * (levels - noise), 100 * (levels + noise)
    right.fill_between(100 * levels, *band, color="gray", alpha=0.2, label="chance alone, 2 s.d.")
    for name, widths in (
        ("normal distribution", [NormalDist().inv_cdf((1 + level) / 2) for level in levels]),
        ("calibrated", [calibrated(errors, level) for level in levels]),
    ):
        inside = [100 * np.mean(distances <= each) for each in widths]
        right.plot(100 * levels, inside, ".-", label=name)
    right.set(title="All levels", xlabel="intervals for (%)", ylabel="held-out patients inside (%)")
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False)
    middle.legend(frameon=False, loc="upper left")
    right.legend(frameon=False, loc="upper left")
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> tuple[float, float, float]:
    """Train, calibrate, draw; return a held-out score's nats, a linear model's, and coverage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compile", action="store_true", help="record a step once and replay it")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--output", type=Path, default=Path("build/uncertainty"), help="folder")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    last = options.output / "last.safetensors"

    wg.manual_seed(options.seed)
    train_part, fit_part, test_part = load()
    loader = data.DataLoader(train_part, batch_size=32, shuffle=True, generator=options.seed)
    model = Ensemble(train_part.tensors[1])
    criterion = nn.GaussianNLLLoss()
    optimizer = optim.AdamW(model.parameters(), lr=0.003)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    states = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "loader": loader}
    curves: dict[str, list[float]] = {"training patients": [], "held-out patients": []}
    if options.resume:
        curves = wg.load(last, generator=True, **states)["curves"]

    def step(x: wg.Tensor, y: wg.Tensor) -> None:
        optimizer.zero_grad()
        means, variances = model(x)
        criterion(means, wg.broadcast_to(y, means.shape), variances).backward()
        optimizer.step()

    run = wg.compile(step) if options.compile else step
    bar = data.progress(range(len(curves["held-out patients"]), options.epochs), unit="epoch")
    for _ in bar:
        model.train()
        for x, y in loader:
            run(x, y)
        scheduler.step()
        for losses, part in zip(curves.values(), (train_part, test_part), strict=True):
            losses.append(nats(part.tensors[1], *predict(model, part)))
        bar.set_postfix({name: f"{losses[-1]:.3f}" for name, losses in curves.items()})
        wg.save(last, generator=True, curves=curves, **states)

    held_out = np.stack([*predict(model, test_part), test_part.tensors[1]])
    mean, std = predict(model, fit_part)
    errors = abs(fit_part.tensors[1] - mean) / std
    linear = least_squares(train_part, test_part)
    draw(curves, linear, held_out, errors, options.output / "intervals.png")
    mean, std, score = held_out
    loss, inside = (
        nats(score, mean, std),
        np.mean(abs(score - mean) <= calibrated(errors, LEVEL) * std),
    )
    print(f"nats of a held-out score: {loss:.3f}; by a linear model of one variance {linear:.3f}")
    print(f"intervals for {LEVEL:.0%} hold {inside:.1%} of {len(score)} held-out patients")
    return loss, linear, float(inside)


if __name__ == "__main__":
    main()
