"""Find what a rod is made of from a few thermometers: an inverse problem in plain NumPy code.

    python examples/inverse_problem.py

A rod is heated at one end, in pulses, and cooled at the other. How well each place conducts is
unknown; thermometers at nine places are read as time goes on, with noise. `simulate` solves the
heat equation in NumPy's own names, and knows nothing of derivatives: given Tensors it is
differentiated. So the conductivity at all places is found by L-BFGS, and one sweep gives the
gradient with respect to all of them (what is elsewhere programmed by hand as the adjoint equation).
A picture is written to the output folder.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from wengert import func, optimize

CELLS = 60
STEPS = 90
DURATION = 1.5
THERMOMETERS = np.linspace(3, CELLS - 4, 9).astype(int)
NOISE = 0.002
#: How much a rough conductivity costs: chosen so that the misfit is the noise's (Morozov).
SMOOTHING = 2e-6


def simulate(conductivity: Any, heating: np.ndarray) -> Any:
    """Temperatures at all times and places, by implicit Euler steps.

    Parameters
    ----------
    conductivity : array of shape (CELLS,)
        At the right end of each cell.
    heating : array of shape (STEPS,)
        Heat that enters at the left end; the right end is kept at temperature 0.
    """
    width, step = 1 / CELLS, DURATION / STEPS
    difference = (np.eye(CELLS, k=1) - np.eye(CELLS)) / width
    operator = np.matmul(difference.T * conductivity, difference)
    matrix = np.eye(CELLS) + step * operator
    entrance = np.zeros(CELLS)
    entrance[0] = step / width
    temperature = np.zeros(CELLS)
    history = []
    for heat in heating:
        temperature = np.linalg.solve(matrix, temperature + heat * entrance)
        history.append(temperature)
    return np.stack(history)


@dataclass
class Measurement:
    """The rod as it is, and what the thermometers said."""

    conductivity: np.ndarray
    heating: np.ndarray
    temperatures: np.ndarray
    readings: np.ndarray


def measure(seed: int) -> Measurement:
    """Make up a rod with a poor conductor in it and a good one, and read the thermometers."""
    x = (np.arange(CELLS) + 1) / CELLS
    conductivity = (
        1 - 0.7 * np.exp(-(((x - 0.35) / 0.08) ** 2)) + 0.8 / (1 + np.exp(-40 * (x - 0.7)))
    )
    time = (np.arange(STEPS) + 0.5) * DURATION / STEPS
    heating = 1.0 * (time % 0.5 < 0.25)
    temperatures = simulate(conductivity, heating)
    noise = np.random.default_rng(seed).normal(size=(STEPS, len(THERMOMETERS)))
    readings = temperatures[:, THERMOMETERS] + NOISE * noise
    return Measurement(conductivity, heating, temperatures, readings)


@dataclass
class Estimate:
    """What was found."""

    conductivity: np.ndarray
    deviation: np.ndarray
    misfit: float
    iterations: int
    losses: list[float]


def invert(measured: Measurement, smoothing: float, *, compiled: bool = False) -> Estimate:
    """Find the conductivity; its logarithm is what is searched for, so that it is positive."""

    def residuals(logarithm: Any) -> Any:
        temperatures = simulate(np.exp(logarithm), measured.heating)
        return (temperatures[:, THERMOMETERS] - measured.readings) / NOISE

    def roughness(logarithm: Any) -> Any:
        return np.diff(logarithm) * CELLS**1.5

    def loss(logarithm: Any) -> Any:
        fit = np.mean(residuals(logarithm) ** 2)
        return fit + smoothing * np.mean(roughness(logarithm) ** 2)

    losses: list[float] = []
    start = np.zeros(CELLS)
    found = optimize.minimize(
        loss,
        start,
        method="L-BFGS-B",
        options={"maxiter": 100, "ftol": 1e-7},
        compile=compiled,
        callback=lambda intermediate_result: losses.append(float(intermediate_result.fun)),
    )
    # Around the best fit the problem is nearly linear: the inverse of Gauss's and Newton's matrix
    # is the covariance of the logarithm.
    jacobian = func.jacfwd(residuals)(found.x).reshape(-1, CELLS)
    rough = func.jacfwd(roughness)(found.x)
    size = measured.readings.size
    matrix = jacobian.T @ jacobian + smoothing * size / len(rough) * rough.T @ rough
    deviation = np.sqrt(np.diag(np.linalg.inv(matrix)))
    misfit = float(np.sqrt(np.mean(np.asarray(residuals(found.x)) ** 2)))
    return Estimate(np.exp(found.x), deviation, misfit, found.nit, losses)


def compare_costs(measured: Measurement) -> tuple[float, float]:
    """Seconds for a simulation of numbers, and for a gradient with respect to all unknowns."""

    def loss(conductivity: Any) -> Any:
        return np.sum(simulate(conductivity, measured.heating)[:, THERMOMETERS] ** 2)

    seconds = []
    for function in (loss, func.grad(loss)):
        function(measured.conductivity)
        start = time.perf_counter()
        for _ in range(3):
            function(measured.conductivity)
        seconds.append((time.perf_counter() - start) / 3)
    return seconds[0], seconds[1]


def draw(measured: Measurement, estimate: Estimate, path: Path) -> None:
    """Draw the conductivity, the temperatures, and how the search went."""
    figure = Figure(figsize=(13, 3.9), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.3, 1.1, 0.8])
    x = (np.arange(CELLS) + 1) / CELLS
    found, factor = estimate.conductivity, np.exp(2 * estimate.deviation)
    left.fill_between(x, found / factor, found * factor, color="tab:blue", alpha=0.2, linewidth=0)
    left.plot(x, found, color="tab:blue", label="found, with two standard deviations")
    left.plot(x, measured.conductivity, "--", color="black", label="true")
    left.plot(x, np.ones_like(x), ":", color="grey", label="where the search began")
    left.plot((THERMOMETERS + 0.5) / CELLS, np.full(9, 0.03), "^", color="tab:red", clip_on=False)
    left.set(title="Conductivity", xlabel="place (thermometers in red)", ylim=(0, None))
    left.legend(frameon=False, loc="upper left")

    image = middle.imshow(
        measured.temperatures,
        origin="lower",
        aspect="auto",
        extent=(0, 1, 0, DURATION),
        cmap="inferno",
    )
    middle.set(title="Temperature of the true rod", xlabel="place", ylabel="time")
    for place in THERMOMETERS:
        middle.axvline((place + 0.5) / CELLS, color="white", linewidth=0.5, alpha=0.6)
    figure.colorbar(image, ax=middle)

    right.semilogy(range(1, len(estimate.losses) + 1), estimate.losses, color="tab:blue")
    right.axhline(1, color="grey", linestyle=":")
    right.text(len(estimate.losses), 1.1, "noise", color="grey", ha="right")
    right.set(title="Misfit and roughness", xlabel="iteration")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> tuple[Measurement, Estimate]:
    """Measure, invert, draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("build/inverse_problem"), help="folder")
    parser.add_argument("--seed", type=int, default=0, help="of the noise")
    parser.add_argument("--smoothing", type=float, default=SMOOTHING)
    parser.add_argument("--compile", action="store_true", help="record the gradient once")
    options = parser.parse_args(arguments)
    if options.smoothing <= 0:
        parser.error("--smoothing should be positive: the readings alone don't tell enough")

    measured = measure(options.seed)
    simulation, gradient = compare_costs(measured)
    print(
        f"{CELLS} unknowns, {measured.readings.size} readings; a simulation takes "
        f"{1e3 * simulation:.1f} ms, a gradient {1e3 * gradient:.1f} ms "
        f"({gradient / simulation:.1f} times as long; by differences {CELLS + 1} times)"
    )
    estimate = invert(measured, options.smoothing, compiled=options.compile)
    error = np.log(estimate.conductivity / measured.conductivity)
    within = np.mean(np.abs(error) < 2 * estimate.deviation)
    print(
        f"{estimate.iterations} iterations: misfit {estimate.misfit:.3f} standard deviations of "
        f"the noise"
    )
    print(
        f"conductivity from {measured.conductivity.min():.2f} to {measured.conductivity.max():.2f} "
        f"found to {np.exp(np.sqrt(np.mean(error**2))) - 1:.1%}; {within:.0%} of it lies within "
        "two standard deviations"
    )
    options.output.mkdir(parents=True, exist_ok=True)
    draw(measured, estimate, options.output / "conductivity.png")
    print(f"picture in {options.output / 'conductivity.png'}")
    return measured, estimate


if __name__ == "__main__":
    main()
