"""The steps of an ODE's solver, once more on Tensors.

SciPy has chosen them on values. Here the equations of each step are differentiated: of explicit
Runge-Kutta methods the stages, of Radau's method the implicit system. The tape keeps the solution
at the steps, and stages are computed again in the backward pass.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import integrate as _scipy

import wengert as wg
from wengert.func.checkpoint import checkpoint
from wengert.func.jacobians import jacobian
from wengert.scipy.implicit import fingerprint, solution, sources_of
from wengert.scipy.naming import like_first, values_of
from wengert.tape.grad_mode import is_grad_enabled, set_grad_enabled
from wengert.tape.node import tick
from wengert.tape.tensor import Tensor

_ROOT = np.sqrt(6.0)
#: Radau IIA of order 5: stages and their places.
_RADAU = np.array([
    [(88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225],
    [(296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225],
    [(16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9],
])  # fmt: skip
_PLACES = np.array([(4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0])
#: The solution after a step from ``y`` at ``t`` of length ``h``.
Step = Callable[[Callable[..., Any], Any, Any, Tensor], Any]


def _sum(parts: Any, factors: Any) -> Any:
    """A sum of Tensors with factors that are numbers."""
    used = [p * float(f) for p, f in zip(parts, factors, strict=False) if f != 0]
    return sum(used[1:], used[0]) if used else 0 * parts[0]


def _explicit(method: Any) -> Step:
    """A step by SciPy's explicit method."""

    def step(field: Callable[..., Any], t: Any, h: Any, y: Tensor) -> Any:
        stages, n = [field(t, y)], method.n_stages
        for a, c in zip(method.A[1:n], method.C[1:n], strict=True):
            stages.append(field(t + float(c) * h, y + _sum(stages, a) * h))
        return y + _sum(stages, method.B) * h

    return step


def _radau(field: Callable[..., Any], t: Any, h: Any, y: Tensor) -> Any:
    """A step by Radau's method: the implicit system is solved to rounding."""

    def system(z: Tensor, t: Any = t, h: Any = h, y: Any = y) -> Any:
        rows = [field(t + float(c) * h, y + z[i]) for i, c in enumerate(_PLACES)]
        return z - h * wg.stack([_sum(rows, a) for a in _RADAU])

    plain = [values_of(v, "Radau") for v in (t, h, y)]
    start, z = like_first([y], plain[2]), np.zeros((3, y.size))
    slope = values_of(jacobian(lambda y: field(plain[0], y))(start), "Radau")
    matrix = np.eye(3 * y.size) - np.kron(plain[1] * _RADAU, slope)
    for _ in range(50):  # by Newton's method with the slope at the beginning
        rest = values_of(system(like_first([y], z), plain[0], plain[1], start), "Radau")
        change = np.linalg.solve(matrix, rest.ravel()).reshape(z.shape)
        z = z - change
        if np.abs(change).max() <= 1e-14 * (1 + np.abs(plain[2]).max()):
            break
    return y + solution("Radau", system, z, [y], keep=False)[2]


METHODS: dict[str, Step] = {"Radau": _radau}
METHODS |= {x.__name__: _explicit(x) for x in (_scipy.RK23, _scipy.RK45, _scipy.DOP853)}


class _Once:
    """A part of a step, which uses and gives the same again in the backward pass, or raises."""

    def __init__(self, run: Callable[..., Any], label: str) -> None:
        self.run, self.label = run, label
        self.seen: Any = None

    def __call__(self, *args: Any) -> Any:
        start, found = tick(), self.run(*args)
        sources = sorted(node.number for node in sources_of(found, start, *args))
        prints = fingerprint(found, *args, start=start)
        values = np.asarray(values_of(found, self.label)).tobytes()
        seen = hash(tuple(prints)), sources, hash(values)
        self.seen = self.seen or seen
        if seen != self.seen:
            raise RuntimeError(
                f"{self.label}: what its function computes with has changed since it was called: "
                "differentiate before, or give the function copies"
            )
        return found


class Trajectory:
    """The solution through all steps, at any time: components first, as SciPy has it.

    Between the ends of steps it is that of a shorter step.
    """

    def __init__(
        self, step: Step, field: Callable[..., Any], times: Any, y: Any, label: str
    ) -> None:
        self._begin: list[Any] = []
        self._once: list[_Once] = []
        self.t, self.y = [times[0][0]], [y]

        def begin(start: Any, y: Any) -> Callable[[Any], Any]:
            return lambda stop: step(field, start, stop - start, y)

        for start, stop in times:
            self._begin.append(begin(start, y))
            self._once.append(_Once(partial(self._begin[-1], stop), label))
            y = checkpoint(self._once[-1])
            self.t.append(stop)
            self.y.append(y)
        self.label, self._recorded = label, is_grad_enabled()
        self._ends = np.array([float(values_of(stop, label)) for stop in self.t[1:]])
        self._sign = 1 if self._ends[-1] >= float(values_of(self.t[0], label)) else -1

    def __call__(self, t: Any, new: bool = False) -> Any:
        """The solution at times; the equation has to be that of the steps, unless it is new."""
        values = np.asarray(values_of(t, self.label), dtype=np.float64)
        at = np.searchsorted(self._sign * self._ends, self._sign * values)
        at = np.minimum(at, len(self._ends) - 1).ravel()
        with set_grad_enabled(self._recorded):
            for i in () if new else {*at.tolist()}:
                self._once[i]()
        places = [t * 1] if values.ndim == 0 else [t[i] for i in range(values.size)]
        parts = [
            checkpoint(_Once(self._begin[i], self.label), place)
            for i, place in zip(at, places, strict=True)
        ]
        return wg.stack(parts, axis=-1) if values.ndim else parts[0]
