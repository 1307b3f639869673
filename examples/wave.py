"""See what made a sound from what was heard around it: a wave simulation run backwards.

    python examples/wave.py

A picture is let go as pressure in a square of water, and waves run out of it. Sensors on a ring
hear them, with noise, as in photoacoustic tomography. `listen` is a simulation in NumPy's names,
which fills arrays in place. Its derivative by the initial state, all of its pixels, is one sweep
back through all time steps. So SciPy's optimiser finds the state from the recordings. A picture is
written to the output folder.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

import wengert.numpy as np
from wengert.scipy.optimize import minimize

SIZE = 48
STEPS = 110
#: The square of how far a wave runs in a step, in pixels.
SPEED = 0.5**2
NOISE = 0.01
#: How much a rough picture costs.
SMOOTHING = 2e-3
ANGLES = np.linspace(0, 2 * np.pi, 40, endpoint=False)
RING = np.round(SIZE / 2 - 0.5 + 18 * np.stack([np.sin(ANGLES), np.cos(ANGLES)])).astype(int)


def sponge() -> Any:
    """How much is left of a wave in each step: less towards the edge, where it would return."""
    depth = np.maximum(6 - np.minimum(np.arange(SIZE), np.arange(SIZE)[::-1]), 0) / 6
    return 1 - 0.25 * np.maximum(depth[:, None], depth) ** 2


def listen(start: Any) -> Any:
    """What the sensors hear in each step, of a state that is let go."""
    left = sponge()
    before = now = start
    heard = np.zeros((STEPS, len(ANGLES)))
    for step in range(STEPS):
        bend = -4 * now
        bend[1:] += now[:-1]
        bend[:-1] += now[1:]
        bend[:, 1:] += now[:, :-1]
        bend[:, :-1] += now[:, 1:]
        before, now = left * now, left * (2 * now - before + SPEED * bend)
        heard[step] = now[RING[0], RING[1]]
    return heard


def cost(pixels: Any, recorded: Any) -> Any:
    """How badly a picture explains what was recorded, and how rough it is."""
    start = pixels.reshape(SIZE, SIZE)
    misfit = np.sum((listen(start) - recorded) ** 2)
    return misfit + SMOOTHING * (np.sum(np.diff(start) ** 2) + np.sum(np.diff(start.T) ** 2))


def picture() -> Any:
    """A state: a ring, a disc and a bar."""
    y, x = np.mgrid[:SIZE, :SIZE] - SIZE / 2 + 0.5
    ring = np.abs(np.hypot(x + 4, y - 3) - 6) < 1.2
    disc = np.hypot(x - 6, y + 6) < 3
    bar = (np.abs(x + 5) < 5) & (np.abs(y + 8) < 1.2)
    return np.where(ring, 1.0, 0.0) + np.where(disc, 0.7, 0.0) + np.where(bar, 0.5, 0.0)


def draw(true: Any, recorded: Any, found: Any, costs: list[float], path: Path) -> None:
    """Draw the state and the sensors, what they heard, the state that was found, and costs."""
    figure = Figure(figsize=(13, 3.6), layout="constrained")
    first, second, third, last = figure.subplots(1, 4)
    second.imshow(recorded.T, cmap="RdBu", vmin=-0.3, vmax=0.3, aspect="auto", origin="lower")
    second.set(title="What they hear", xlabel="step", ylabel="sensor")
    for axes, state, title in ((first, true, "State and sensors"), (third, found, "State found")):
        image = axes.imshow(state, cmap="gray_r", vmin=0, vmax=1)
        axes.set(title=title, xticks=[], yticks=[])
    first.plot(RING[1], RING[0], ".", color="tab:red", markersize=4)
    figure.colorbar(image, ax=third, label="pressure", shrink=0.8)
    last.semilogy(costs)
    last.set(title="Search", xlabel="iteration", ylabel="cost")
    last.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> tuple[Any, Any]:
    """Record, search, print and draw; return the true state and the one found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--output", type=Path, default=Path("build/wave"), help="folder")
    options = parser.parse_args(arguments)
    true = picture()
    random = np.random.default_rng(0)
    recorded = listen(true) + NOISE * random.normal(size=(STEPS, len(ANGLES)))
    costs: list[float] = []
    result = minimize(
        cost,
        np.zeros(SIZE**2),
        args=(recorded,),
        method="L-BFGS-B",
        callback=lambda intermediate_result: costs.append(float(intermediate_result.fun)),
        options={"maxiter": options.iterations},
    )
    found = result.x.reshape(SIZE, SIZE)
    error = np.linalg.norm(found - true) / np.linalg.norm(true)
    print(f"{SIZE**2} pixels from {recorded.size} numbers, after {result.nit} iterations")
    print(f"the cost fell from {costs[0]:.2f} to {costs[-1]:.2f}")
    print(f"the state is wrong by {error:.0%}")
    options.output.mkdir(parents=True, exist_ok=True)
    draw(true, recorded, found, costs, options.output / "wave.png")
    print(f"picture in {options.output / 'wave.png'}")
    return true, found


if __name__ == "__main__":
    main()
