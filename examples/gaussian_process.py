"""Learn a curve and its slope from a few measurements, and how sure both are.

    python examples/gaussian_process.py

A Gaussian process takes all smooth curves into account. How smooth and how noisy they are follows
from the likelihood, by way of `cho_solve`, and from priors of `stats`; SciPy's optimiser gets the
gradient from the tape. The slope of the curve and its variance are derivatives, too: of the mean by
the place, and of the covariance by both places. A picture is written to the output folder.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

import wengert.numpy as np
from wengert import func
from wengert.scipy import stats
from wengert.scipy.linalg import cho_factor, cho_solve
from wengert.scipy.optimize import minimize

NOISE = 0.15
LEVEL = 0.9


def truth(x: Any) -> Any:
    """The curve that is measured."""
    return np.sin(2 * x) * np.exp(-x / 5) + x / 4


def measure(seed: int) -> tuple[Any, Any]:
    """Places, of which a stretch is left out, and noisy values."""
    random = np.random.default_rng(seed)
    x = np.sort(np.concatenate([random.uniform(0, 4, 22), random.uniform(5.5, 8, 13)]))
    return x, truth(x) + NOISE * random.normal(size=len(x))


def kernel(x1: Any, x2: Any, height: Any, length: Any) -> Any:
    """How values at two places vary together."""
    return height**2 * np.exp(-(((x1 - x2) / length) ** 2) / 2)


def cost(logs: Any, x: Any, y: Any) -> Any:
    """Minus the logarithm of the posterior density of height, length and noise."""
    height, length, noise = scales = np.exp(logs)
    matrix = kernel(x[:, None], x, height, length) + noise**2 * np.eye(len(x))
    factor = cho_factor(matrix, lower=True)
    misfit = y @ cho_solve(factor, y) / 2
    volume = np.sum(np.log(np.diag(factor[0])))
    prior = np.sum(stats.gamma.logpdf(scales, a=2.0, scale=np.array([1.0, 1.0, 0.2])))
    return misfit + volume + len(x) / 2 * np.log(2 * np.pi) - prior


class Curve(NamedTuple):
    """What is known of the curve: scales, the places, the factor, and the weights of places."""

    scales: Any
    x: Any
    factor: Any
    weights: Any

    def mean(self, at: Any) -> Any:
        """The expected value at places."""
        return kernel(at[:, None], self.x, *self.scales[:2]) @ self.weights

    def covariance(self, x1: Any, x2: Any) -> Any:
        """How values at pairs of places vary together, given the measurements."""
        left, right = (kernel(self.x[:, None], at, *self.scales[:2]) for at in (x1, x2))
        known = np.sum(left * cho_solve(self.factor, right), axis=0)
        return kernel(x1, x2, *self.scales[:2]) - known

    def slope(self, at: Any) -> Any:
        """The expected slope at places, and its standard deviation."""
        of_both = func.elementwise_grad(func.elementwise_grad(self.covariance, 0), 1)
        return func.elementwise_grad(self.mean)(at), np.sqrt(of_both(at, at))


def fit(x: Any, y: Any) -> Curve:
    """Find the likeliest scales, and the curve with these."""
    found = minimize(cost, np.log(np.array([1.0, 1.0, 0.1])), args=(x, y), method="BFGS")
    height, length, noise = scales = np.exp(found.x)
    factor = cho_factor(kernel(x[:, None], x, height, length) + noise**2 * np.eye(len(x)), True)
    return Curve(scales, x, factor, cho_solve(factor, y))


def draw(curve: Curve, x: Any, y: Any, path: Path) -> None:
    """Draw the curve and its slope, with bands that hold the true ones as often as they say."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    at = np.linspace(0, 8, 200)
    spread = np.sqrt(curve.covariance(at, at))
    times = stats.norm.ppf((1 + LEVEL) / 2)
    pairs = zip(
        figure.subplots(1, 2),
        ((curve.mean(at), spread), curve.slope(at)),
        (truth(at), func.elementwise_grad(truth)(at)),
        ("curve", "slope"),
        strict=True,
    )
    for axes, (mean, width), true, name in pairs:
        band = mean - times * width, mean + times * width
        axes.fill_between(at, *band, color="tab:blue", alpha=0.25, lw=0, label=f"{LEVEL:.0%}")
        axes.plot(at, mean, color="tab:blue", label=f"expected {name}")
        axes.plot(at, true, "--", color="tab:orange", label=f"true {name}")
        axes.set(title=name.capitalize(), xlabel="place")
        axes.spines[["top", "right"]].set_visible(False)
        if name == "curve":
            axes.plot(x, y, "o", color="black", markersize=4, label="measurements")
            axes.set_ylabel("value")
        axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> Curve:
    """Measure, fit, print and draw; return the curve."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("build/gaussian_process"))
    options = parser.parse_args(arguments)
    x, y = measure(options.seed)
    curve = fit(x, y)
    for name, scale in zip(("height", "length", "noise"), curve.scales, strict=True):
        print(f"{name:8}{scale:.3f}")
    mean, spread = curve.slope(np.array([2.0, 4.75]))
    for place, one, width in zip(("measurements", "none"), mean, spread, strict=True):
        print(f"slope where there are {place}: {one:.2f} ± {width:.2f}")
    options.output.mkdir(parents=True, exist_ok=True)
    draw(curve, x, y, options.output / "gaussian_process.png")
    print(f"picture in {options.output / 'gaussian_process.png'}")
    return curve


if __name__ == "__main__":
    main()
