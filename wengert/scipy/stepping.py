"""The steps of an ODE's solver, once more on Tensors.

SciPy has chosen them on values. Here the equations of each step are differentiated: of explicit
Runge-Kutta methods the stages, of Radau's method the implicit system. The tape keeps the solution at
the steps, and stages are computed again in the backward pass.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import wengert as wg
from wengert.func.checkpoint import checkpoint
from wengert.func.jacobians import jacobian
from wengert.scipy.implicit import solution
from wengert.scipy.naming import like_first, scipy_module, values_of
from wengert.tape.tensor import Tensor

_scipy = scipy_module("integrate")
Field = Callable[[Any, Tensor], Tensor]
_ROOT = np.sqrt(6.0)
#: Radau IIA of order 5: stages, their places, and the polynomial through them.
_RADAU = np.array([
    [(88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225],
    [(296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225],
    [(16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9],
])  # fmt: skip
_PLACES = np.array([(4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0])
_THROUGH = np.linalg.inv(_PLACES[:, None] ** np.arange(1, 4))


def _sum(parts: list[Tensor], factors: Any) -> Tensor:
    """A sum of Tensors with factors that are numbers."""
    found = None
    for part, factor in zip(parts, factors, strict=False):
        if factor != 0:
            found = part * float(factor) if found is None else found + part * float(factor)
    return 0 * parts[0] if found is None else found


class Step:
    """One step from ``y`` at ``t`` of length ``h``, and the solution within it."""

    def __init__(self, field: Field, t: Any, h: Any, y: Tensor, label: str) -> None:
        self.field, self.t, self.h, self.y, self.label = field, t, h, y, label

    def end(self) -> Tensor:
        """The solution at the end."""
        raise NotImplementedError

    def within(self, t: Any) -> Tensor:
        """The solution at a time within the step."""
        raise NotImplementedError


class _Explicit(Step):
    method: Any

    def _stages(self) -> list[Tensor]:
        method, t, h, y = self.method, self.t, self.h, self.y
        found = [self.field(t, y)]
        for a, c in zip(method.A[1 : method.n_stages], method.C[1 : method.n_stages], strict=True):
            found.append(self.field(t + float(c) * h, y + _sum(found, a) * h))
        return found

    def end(self) -> Tensor:
        return self.y + _sum(self._stages(), self.method.B) * self.h

    def within(self, t: Any) -> Tensor:
        stages, x = self._stages(), (t - self.t) / self.h
        new = self.y + _sum(stages, self.method.B) * self.h
        stages.append(self.field(self.t + self.h, new))
        found, power = self.y, self.h
        for column in np.asarray(self.method.P).T:
            power = power * x
            found = found + _sum(stages, column) * power
        return found


class _RK23(_Explicit):
    method = _scipy.RK23


class _RK45(_Explicit):
    method = _scipy.RK45


class _DOP853(_Explicit):
    method = _scipy.DOP853

    def within(self, t: Any) -> Tensor:
        method, h, x = self.method, self.h, (t - self.t) / self.h
        stages = self._stages()
        difference = _sum(stages, method.B) * h
        stages.append(self.field(self.t + h, self.y + difference))
        last = stages[-1]
        for a, c in zip(method.A_EXTRA, method.C_EXTRA, strict=True):
            stages.append(self.field(self.t + float(c) * h, self.y + _sum(stages, a) * h))
        parts = [difference, h * stages[0] - difference]
        parts.append(2 * difference - h * (last + stages[0]))
        parts += [_sum(stages, row) * h for row in method.D]
        found = 0 * difference
        for i, part in enumerate(parts[::-1]):
            found = (found + part) * (x if i % 2 == 0 else 1 - x)
        return self.y + found


class _Radau(Step):
    def _system(self, z: Tensor) -> Tensor:
        rows = [
            self.field(self.t + float(c) * self.h, self.y + z[i]) for i, c in enumerate(_PLACES)
        ]
        return z - self.h * wg.stack([_sum(rows, a) for a in _RADAU])

    def _stages(self) -> Tensor:
        y, n = self.y, self.y.shape[0]
        t, h = (float(values_of(v, self.label)) for v in (self.t, self.h))
        plain = type(self)(self.field, t, h, like_first([y], values_of(y, self.label)), self.label)
        slope = jacobian(lambda y: self.field(t, y))(plain.y)
        matrix = np.eye(3 * n) - h * np.kron(_RADAU, values_of(slope, self.label))
        z = np.zeros((3, n))
        for _ in range(50):
            rest = values_of(plain._system(like_first([y], z)), self.label)
            change = np.linalg.solve(matrix, rest.ravel()).reshape(3, n)
            z = z - change
            if np.abs(change).max() <= 1e-14 * (1 + np.abs(plain_values(plain.y)).max()):
                break
        return solution(self.label, self._system, z, [y])

    def end(self) -> Tensor:
        return self.y + self._stages()[2]

    def within(self, t: Any) -> Tensor:
        z, x = self._stages(), (t - self.t) / self.h
        parts, found, power = wg.unstack(z), self.y, 1.0
        for row in _THROUGH:
            power = power * x
            found = found + _sum(list(parts), row) * power
        return found


def plain_values(x: Tensor) -> Any:
    """The values of a Tensor that is not tracked."""
    return x.detach().numpy()


METHODS: dict[str, type[Step]] = {
    "DOP853": _DOP853,
    "RK23": _RK23,
    "RK45": _RK45,
    "Radau": _Radau,
}


class Trajectory:
    """The solution through all steps, at any time."""

    def __init__(
        self, kind: type[Step], field: Field, times: list[tuple[Any, Any]], y: Tensor, label: str
    ) -> None:
        self.ends = np.array([[float(values_of(t, label)) for t in pair] for pair in times])
        self.steps: list[Step] = []
        for start, stop in times:
            self.steps.append(kind(field, start, stop - start, y, label))
            y = checkpoint(self.steps[-1].end)
        self.last = y

    def __call__(self, t: Any, label: str = "scipy.integrate.solve_ivp") -> Tensor:
        """The solution at times: components first, as SciPy has it."""
        values = np.asarray(values_of(t, label), dtype=np.float64)
        if values.ndim == 0:
            return self._at(t, float(values))
        return wg.stack([self._at(t[i], v) for i, v in enumerate(values)], axis=-1)

    def find(self, t: float) -> int:
        """The number of the step that a time is in."""
        sign = 1 if self.ends[-1, 1] >= self.ends[0, 0] else -1
        at = int(np.searchsorted(sign * self.ends[:, 1], sign * t))
        return min(at, len(self.steps) - 1)

    def _at(self, t: Any, value: float) -> Tensor:
        step = self.steps[self.find(value)]
        return checkpoint(step.within, t)  # type: ignore[no-any-return]
