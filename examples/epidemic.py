"""Fit an epidemic's equations to counts of the ill, and say how sure the forecast is.

    python examples/epidemic.py

Boys fell ill at an English boarding school in 1978 (British Medical Journal, 4 March 1978). `ill`
solves the equations of susceptible, infected and recovered people in SciPy's names. `curve_fit`
gets their Jacobian from the tape, and gives the parameters with their covariance. The same
derivative carries this covariance to the curve, as bands. A picture is written to the output
folder.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

import wengert.numpy as np
from wengert import func
from wengert.scipy import stats
from wengert.scipy.integrate import solve_ivp
from wengert.scipy.optimize import curve_fit

BOYS = 763
IN_BED = np.array([3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4], dtype=float)
DAYS = np.arange(len(IN_BED), dtype=float)
LEVEL = 0.95


def ill(days: Any, contacts: Any, recovery: Any, first: Any) -> Any:
    """The number of infected people on some days.

    Parameters
    ----------
    days : array
        From 0 on, in order.
    contacts, recovery : float
        How often a day an infected person meets another closely, and recovers.
    first : float
        People infected on day 0.
    """

    def change(day: float, state: Any) -> Any:
        susceptible, infected = state
        new = contacts * susceptible * infected / BOYS
        return [-new, new - recovery * infected]

    start = [BOYS - first, first]
    span = (0.0, float(days[-1]))
    return solve_ivp(change, span, start, t_eval=days, rtol=1e-8, atol=1e-8).y[1]


def band(days: Any, parameters: Any, covariance: Any) -> Any:
    """The standard deviation of the curve, by its derivative with respect to the parameters."""
    slopes = func.jacfwd(lambda p: ill(days, *p))(parameters)
    return np.sqrt(np.einsum("di,ij,dj->d", slopes, covariance, slopes))


def draw(parameters: Any, covariance: Any, noise: float, path: Path) -> None:
    """Draw the counts and the curve with its bands, and which parameters fit about as well."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    days = np.linspace(0, DAYS[-1] + 4, 120)
    mean, width = ill(days, *parameters), band(days, parameters, covariance)
    times = stats.norm.ppf((1 + LEVEL) / 2)
    for spread, alpha, label in (
        (np.sqrt(width**2 + noise**2), 0.15, f"new counts, {LEVEL:.0%}"),
        (width, 0.35, f"curve, {LEVEL:.0%}"),
    ):
        low, high = np.maximum(mean - times * spread, 0), mean + times * spread
        left.fill_between(days, low, high, color="tab:blue", alpha=alpha, lw=0, label=label)
    left.plot(days, mean, color="tab:blue", label="fitted curve")
    left.plot(DAYS, IN_BED, "o", color="black", markersize=4, label="counts")
    left.set(title="Influenza at a school", xlabel="days", ylabel="boys in bed", ylim=(0, None))
    left.set_xticks(range(0, 18, 2))
    left.legend(frameon=False)

    values, vectors = np.linalg.eigh(covariance[:2, :2])
    angle = np.linspace(0, 2 * np.pi, 200)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    for level in (0.5, 0.95):
        radius = np.sqrt(stats.chi2.ppf(level, 2))
        x, y = parameters[:2, None] + radius * vectors @ (np.sqrt(values)[:, None] * circle)
        right.plot(x, 1 / y, label=f"{level:.0%}")
    right.plot(parameters[0], 1 / parameters[1], "o", color="black", markersize=4)
    right.set(title="Parameters that fit", xlabel="contacts a day", ylabel="days to recovery")
    right.legend(frameon=False, title="confidence")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> tuple[Any, Any]:
    """Fit, print and draw; return the parameters and their covariance."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("build/epidemic"), help="folder")
    options = parser.parse_args(arguments)
    parameters, covariance = curve_fit(ill, DAYS, IN_BED, p0=[2.0, 0.5, 1.0])
    errors = np.sqrt(np.diag(covariance))
    for name, value, error in zip(
        ("contacts a day", "recoveries a day", "ill on day 0"), parameters, errors, strict=True
    ):
        print(f"{name:18}{value:8.4f} ± {error:.4f}")

    ratio, slopes = func.value_and_grad(lambda p: p[0] / p[1])(parameters)
    print(f"{'infected by each':18}{ratio:8.4f} ± {np.sqrt(slopes @ covariance @ slopes):.4f}")
    left_over = IN_BED - ill(DAYS, *parameters)
    noise = np.sqrt(np.sum(left_over**2) / (len(DAYS) - len(parameters)))
    options.output.mkdir(parents=True, exist_ok=True)
    draw(parameters, covariance, noise, options.output / "epidemic.png")
    print(f"picture in {options.output / 'epidemic.png'}")
    return parameters, covariance


if __name__ == "__main__":
    main()
