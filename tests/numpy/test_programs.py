"""Programs in NumPy's habits: the values are NumPy's, and gradients equal differences to 1e-6."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.numpy.compare import slope
from tests.numpy.programs import engineering, fits, simulation

#: Each program with parameters.
PROGRAMS: list[tuple[Callable[[Any, Any], Any], list[float]]] = [
    (simulation.pendulum, [0.6, 2.0]),
    (simulation.bodies, [0.3, 0.2, 0.8]),
    (simulation.heat, [1.2, 0.1]),
    (simulation.epidemic, [0.9, 0.3]),
    (engineering.arm, [0.3, 0.5, -0.2]),
    (engineering.rotation, [0.4, -0.3, 0.8]),
    (engineering.kalman, [0.1, 0.3]),
    (engineering.grating, [1.5, 0.4]),
    (engineering.filtering, [0.3, 0.9]),
    (engineering.circuit, [1.0, 2.0, 3.0]),
    (fits.design, [0.8, 1.2]),
    (fits.mixture, [-0.8, 1.0, 0.5]),
    (fits.spectrum, [0.8, 1.4]),
    (fits.robust, [0.9, 1.3]),
]


@pytest.mark.parametrize(("program", "given"), PROGRAMS, ids=[p.__name__ for p, _ in PROGRAMS])
def test_gradients_are_those_of_differences(room: Any, program: Any, given: list[float]) -> None:
    p = np.array(given)
    value, gradient = wg.value_and_grad(lambda q: program(room, q))(room.array(p))
    assert float(value) == pytest.approx(float(program(np, p)), rel=1e-12)
    expected = [slope(lambda q: program(np, q), p, e) for e in np.eye(len(p))]
    assert np.asarray(gradient) == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(("program", "given"), PROGRAMS, ids=[p.__name__ for p, _ in PROGRAMS])
def test_programs_are_differentiated_forward_and_twice(
    room: Any, program: Any, given: list[float]
) -> None:
    def f(q: Any) -> Any:
        return program(room, q)

    p, v = room.array(given), room.array(np.cos(np.arange(len(given))))
    gradient = wg.grad(f)(p)
    assert float(wg.jvp(f, (p,), (v,))[1]) == pytest.approx(float(gradient @ v), rel=1e-9)
    along = wg.grad(lambda q: room.sum(wg.grad(f)(q) * v))(p)
    h = 1e-5
    expected = (wg.grad(f)(p + h * v) - wg.grad(f)(p - h * v)) / (2 * h)
    assert along.tolist() == pytest.approx(expected.tolist(), rel=1e-4, abs=1e-5)
