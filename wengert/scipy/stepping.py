"""The steps of an ODE's solver, once more on Tensors.

SciPy has chosen them on values. Here the equations of each step are differentiated: of explicit
Runge-Kutta methods the stages, of Radau's method the implicit system. The tape keeps the solution
at the steps, and stages are computed again in the backward pass.
"""

from collections.abc import Callable
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
#: Radau IIA of order 5: stages, their places, and the polynomial through them.
_RADAU = np.array([
    [(88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225],
    [(296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225],
    [(16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9],
])  # fmt: skip
_PLACES = np.array([(4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0])
_THROUGH = np.linalg.inv(_PLACES[:, None] ** np.arange(1, 4))


def _sum(parts: Any, factors: Any) -> Any:
    """A sum of Tensors with factors that are numbers."""
    used = [p * float(f) for p, f in zip(parts, factors, strict=False) if f != 0]
    return sum(used[1:], used[0]) if used else 0 * parts[0]


class Step:
    """One step from ``y`` at ``t`` of length ``h``, by SciPy's explicit ``method``."""

    method: Any = None

    def __init__(self, field: Callable[..., Any], t: Any, h: Any, y: Tensor, label: str) -> None:
        self.field, self.t, self.h, self.y, self.label = field, t, h, y, label

    def _stages(self) -> list[Any]:
        """The slopes, and last of these the slope at the end."""
        method, n = self.method, self.method.n_stages
        return self._extended([self.field(self.t, self.y)], method.A[1:n], method.C[1:n])

    def _extended(self, stages: list[Any], rows: Any, places: Any) -> list[Any]:
        for a, c in zip(rows, places, strict=True):
            y = self.y + _sum(stages, a) * self.h
            stages.append(self.field(self.t + float(c) * self.h, y))
        return stages

    def end(self) -> Any:
        """The solution at the end."""
        return self.y + _sum(self._stages(), self.method.B) * self.h

    def at(self, t: Any) -> Any:
        """The solution at a time within the step; of one without length by a step to there."""
        if values_of(self.h, self.label) != 0:
            return self.within(t)
        return type(self)(self.field, self.t, t - self.t, self.y, self.label).end()

    def within(self, t: Any) -> Any:
        stages, x = self._extended(self._stages(), [self.method.B], [1.0]), (t - self.t) / self.h
        return self._polynomial(x, [_sum(stages, p) * self.h for p in self.method.P.T])

    def _polynomial(self, x: Any, parts: list[Any]) -> Any:
        total = 0 * parts[0]
        for part in parts[::-1]:
            total = (total + part) * x
        return self.y + total


class _DOP853(Step):
    method = _scipy.DOP853

    def within(self, t: Any) -> Any:
        method, h, x = self.method, self.h, (t - self.t) / self.h
        stages = self._extended(self._stages(), [method.B], [1.0])
        last, difference = stages[-1], _sum(stages, method.B) * h
        self._extended(stages, method.A_EXTRA, method.C_EXTRA)
        parts = [difference, h * stages[0] - difference]
        parts.append(2 * difference - h * (last + stages[0]))
        parts += [_sum(stages, row) * h for row in method.D]
        found = 0 * difference
        for i, part in enumerate(parts[::-1]):
            found = (found + part) * (x if i % 2 == 0 else 1 - x)
        return self.y + found


class _Radau(Step):
    def _system(self, z: Tensor) -> Any:
        times = [self.t + float(c) * self.h for c in _PLACES]
        rows = [self.field(t, self.y + z[i]) for i, t in enumerate(times)]
        return z - self.h * wg.stack([_sum(rows, a) for a in _RADAU])

    def _stages(self) -> Any:
        t, h, y = (values_of(v, self.label) for v in (self.t, self.h, self.y))
        plain = _Radau(self.field, t, h, like_first([self.y], y), self.label)
        slope = values_of(jacobian(lambda y: self.field(t, y))(plain.y), self.label)
        matrix, z = np.eye(3 * y.size) - np.kron(h * _RADAU, slope), np.zeros((3, y.size))
        for _ in range(50):  # by Newton's method with the slope at the beginning
            rest = values_of(plain._system(like_first([self.y], z)), self.label)
            change = np.linalg.solve(matrix, rest.ravel()).reshape(z.shape)
            z = z - change
            if np.abs(change).max() <= 1e-14 * (1 + np.abs(y).max()):
                break
        return solution(self.label, self._system, z, [self.y])

    def end(self) -> Any:
        return self.y + self._stages()[2]

    def within(self, t: Any) -> Any:
        z = wg.unstack(self._stages())
        return self._polynomial((t - self.t) / self.h, [_sum(z, row) for row in _THROUGH])


METHODS: dict[str, type[Step]] = {"DOP853": _DOP853, "Radau": _Radau}
METHODS |= {x.__name__: type("Step", (Step,), {"method": x}) for x in (_scipy.RK23, _scipy.RK45)}


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
    """The solution through all steps, at any time: components first, as SciPy has it."""

    def __init__(
        self, kind: type[Step], field: Callable[..., Any], times: Any, y: Any, label: str
    ) -> None:
        self.steps: list[Step] = []
        self._once: list[_Once] = []
        for start, stop in times:
            self.steps.append(kind(field, start, stop - start, y, label))
            self._once.append(_Once(self.steps[-1].end, label))
            y = checkpoint(self._once[-1])
        self.last, self.label, self._recorded = y, label, is_grad_enabled()
        self._ends = np.array([float(values_of(pair[1], label)) for pair in times])
        self._sign = 1 if self._ends[-1] >= float(values_of(times[0][0], label)) else -1

    def __call__(self, t: Any, new: bool = False) -> Any:
        """The solution at times; the equation has to be that of the steps, unless it is new."""
        values = np.asarray(values_of(t, self.label), dtype=np.float64)
        at = np.searchsorted(self._sign * self._ends, self._sign * values)
        at = np.minimum(at, len(self.steps) - 1).ravel()
        with set_grad_enabled(self._recorded):
            for i in () if new else {*at.tolist()}:
                self._once[i]()
        steps = [self.steps[i] for i in at]
        if values.ndim == 0:
            return checkpoint(_Once(steps[0].at, self.label), t * 1)  # a Tensor of its own
        parts = [checkpoint(_Once(s.at, self.label), t[i]) for i, s in enumerate(steps)]
        return wg.stack(parts, axis=-1)
