"""Fit curves to measurements by SciPy's optimisers, with derivatives that nobody wrote down.

    python examples/curve_fitting.py

Two problems of NIST's Statistical Reference Datasets for nonlinear regression
(https://www.itl.nist.gov/div898/strd/nls/nls_main.shtml), which come with parameters certified to
eleven digits. The models are plain NumPy code; their parameters are dataclasses. A table compares
what is found with what is certified, and a picture of the fits is written to the output folder.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from wengert import func, optimize


@dataclass
class Saturation:
    """Parameters of a curve that rises to a ceiling."""

    ceiling: float
    rate: float


@dataclass
class Rational:
    """Parameters of a quotient of polynomials; the denominator's constant is 1."""

    numerator: np.ndarray
    denominator: np.ndarray


def saturation(p: Saturation, x: np.ndarray) -> Any:
    """A first-order process: Misra1a's model."""
    return p.ceiling * (1 - np.exp(-p.rate * x))


def rational(p: Rational, x: np.ndarray) -> Any:
    """A cubic over a cubic: Thurber's model."""
    powers = x ** np.arange(4)[:, None]
    return (p.numerator @ powers) / (1 + p.denominator @ powers[1:])


@dataclass
class Problem:
    """Measurements, a model, where to begin, and what NIST certifies."""

    name: str
    what: str
    axes: tuple[str, str]
    model: Callable[..., Any]
    start: Any
    x: np.ndarray
    y: np.ndarray
    certified: list[float]
    deviations: list[float]


MISRA1A = Problem(
    name="Misra1a",
    what="monomolecular adsorption (D. Misra, NIST, 1978)",
    axes=("pressure", "volume"),
    model=saturation,
    start=Saturation(500.0, 0.0001),
    x=np.array(
        [77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1]
        + [689.1, 760.0]
    ),
    y=np.array(
        [10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.40]
        + [75.47, 81.78]
    ),
    certified=[2.3894212918e02, 5.5015643181e-04],
    deviations=[2.7070075241e00, 7.2668688436e-06],
)
THURBER = Problem(
    name="Thurber",
    what="electron mobility in a semiconductor (R. Thurber, NIST, 1979)",
    axes=("logarithm of density", "mobility"),
    model=rational,
    start=Rational(np.array([1000.0, 1000.0, 400.0, 40.0]), np.array([0.7, 0.3, 0.03])),
    x=np.array(
        [-3.067, -2.981, -2.921, -2.912, -2.840, -2.797, -2.702, -2.699, -2.633, -2.481]
        + [-2.363, -2.322, -1.501, -1.460, -1.274, -1.212, -1.100, -1.046, -0.915, -0.714]
        + [-0.566, -0.545, -0.400, -0.309, -0.109, -0.103, 0.010, 0.119, 0.377, 0.790]
        + [0.963, 1.006, 1.115, 1.572, 1.841, 2.047, 2.200]
    ),
    y=np.array(
        [80.574, 84.248, 87.264, 87.195, 89.076, 89.608, 89.868, 90.101, 92.405, 95.854]
        + [100.696, 101.060, 401.672, 390.724, 567.534, 635.316, 733.054, 759.087, 894.206]
        + [990.785, 1090.109, 1080.914, 1122.643, 1178.351, 1260.531, 1273.514, 1288.339]
        + [1327.543, 1353.863, 1414.509, 1425.208, 1421.384, 1442.962, 1464.350, 1468.705]
        + [1447.894, 1457.628]
    ),
    certified=[1.2881396800e03, 1.4910792535e03, 5.8323836877e02, 7.5416644291e01]
    + [9.6629502864e-01, 3.9797285797e-01, 4.9727297349e-02],
    deviations=[4.6647963344e00, 3.9571156086e01, 2.8698696102e01, 5.5675370270e00]
    + [3.1333340687e-02, 1.4984928198e-02, 6.5842344623e-03],
)


@dataclass
class Fit:
    """What was found for a problem."""

    problem: Problem
    parameters: Any
    values: np.ndarray
    deviations: np.ndarray
    evaluations: int

    @property
    def digits(self) -> float:
        """Decimal digits in which the worst parameter agrees with the certified one."""
        certified = np.array(self.problem.certified)
        return float(-np.log10(np.max(np.abs(self.values - certified) / np.abs(certified))))


def fit(problem: Problem, *, compiled: bool = False) -> Fit:
    """Fit by least squares; SciPy gets the Jacobian, from which the standard errors come, too."""
    found = optimize.least_squares(
        lambda p: problem.model(p, problem.x) - problem.y,
        problem.start,
        x_scale="jac",
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
        max_nfev=200,
        compile=compiled,
    )
    values = np.concatenate([np.atleast_1d(part) for part in astuple(found.x)])
    variance = 2 * found.cost / (len(problem.x) - len(values))
    covariance = variance * np.linalg.inv(found.jac.T @ found.jac)
    return Fit(problem, found.x, values, np.sqrt(np.diag(covariance)), found.nfev)


def minimise(problem: Problem, start: Any, *, compiled: bool = False) -> tuple[float, int]:
    """The sum of squares by Newton's method, with its exact Hessian; and the steps that it took.

    The parameters are measured in units of those at the start: their scales differ by millions.
    """

    def loss(factors: Any) -> Any:
        scaled = func.tree_map(lambda factor, unit: factor * unit, factors, start)
        return np.sum((problem.model(scaled, problem.x) - problem.y) ** 2)

    units = func.tree_map(lambda leaf: leaf / leaf, start)
    found = optimize.minimize(
        loss, units, method="trust-exact", options={"gtol": 1e-6}, compile=compiled
    )
    return float(found.fun), found.nit


def table(fits: Sequence[Fit]) -> str:
    """What was found beside what is certified."""
    lines = [f"{'':9}{'found':>18}{'certified':>18}{'std. error':>14}{'certified':>14}"]
    for one in fits:
        problem = one.problem
        lines.append(f"{problem.name}: {problem.what}; {one.evaluations} evaluations")
        rows = zip(one.values, problem.certified, one.deviations, problem.deviations, strict=True)
        for i, (value, certified, deviation, expected) in enumerate(rows, 1):
            lines.append(
                f"  b{i:<6}{value:18.10e}{certified:18.10e}{deviation:14.4e}{expected:14.4e}"
            )
    return "\n".join(lines)


def draw(fits: Sequence[Fit], path: Path) -> None:
    """Draw measurements, curves, and the curves' slopes."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    for axes, one in zip(figure.subplots(1, len(fits)), fits, strict=True):
        problem = one.problem
        x = np.linspace(problem.x.min(), problem.x.max(), 300)
        slope = func.elementwise_grad(problem.model, argnums=1)(one.parameters, x)
        other = axes.twinx()
        other.fill_between(x, slope, color="tab:orange", alpha=0.2, linewidth=0)
        other.set_ylim(0, 3 * slope.max())
        other.set_ylabel("slope of the curve", color="tab:orange")
        axes.plot(x, problem.model(one.parameters, x), color="tab:blue", label="fitted curve")
        axes.plot(problem.x, problem.y, "o", markersize=4, color="black", label="measurements")
        axes.set(title=problem.name, xlabel=problem.axes[0], ylabel=problem.axes[1])
        axes.set_zorder(1)
        axes.patch.set_visible(False)
        axes.legend(frameon=False, loc="upper left")
        for frame in (axes, other):
            frame.spines["top"].set_visible(False)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> list[Fit]:
    """Fit, compare and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("build/curve_fitting"), help="folder")
    parser.add_argument(
        "--compile", action="store_true", help="record residuals and Jacobians once"
    )
    options = parser.parse_args(arguments)

    fits = [fit(problem, compiled=options.compile) for problem in (MISRA1A, THURBER)]
    print(table(fits))
    for one in fits:
        print(f"{one.problem.name}: the worst parameter agrees in {one.digits:.1f} digits")
    value, steps = minimise(MISRA1A, Saturation(250.0, 0.0005), compiled=options.compile)
    print(f"Misra1a by Newton's method: sum of squares {value:.10e} after {steps} steps")
    options.output.mkdir(parents=True, exist_ok=True)
    draw(fits, options.output / "fits.png")
    print(f"picture in {options.output / 'fits.png'}")
    return fits


if __name__ == "__main__":
    main()
