"""``scipy.interpolate``: interpolation, differentiated by data and by place.

>>> from wengert.scipy import interpolate
>>> y = wg.tensor([0.0, 1.0, 4.0, 9.0], dtype=wg.float64, requires_grad=True)
>>> interpolate.CubicSpline([0, 1, 2, 3], y)(1.5).backward()
>>> y.grad
tensor([-0.0625,  0.5625,  0.5625, -0.0625], dtype=wengert.float64)
"""

import math
from typing import Any

import numpy as np

import wengert as wg
from wengert.scipy.linalg import solve_banded
from wengert.scipy.naming import (
    Guarded,
    inexact,
    like_first,
    namespace,
    refusal,
    scipy_module,
    stands,
    tensors_in,
    tracked,
    values_of,
)
from wengert.tape.tensor import Tensor

_scipy = scipy_module("interpolate")


class _Interpolant(Guarded):
    """A function through data: SciPy's own, and its values by Tensors where some are given."""

    def __init__(self, name: str, *args: Any, **keywords: Any) -> None:
        label = f"scipy.interpolate.{name}"
        given = tensors_in((*args, *keywords.values()))
        plain = [values_of(x, label) for x in args]
        options = {key: _plain(x, label) for key, x in keywords.items()}
        super().__init__(getattr(_scipy, name)(*plain, **options), label)
        self._given, self._tracked = given, any(map(tracked, given))

    def __getattr__(self, name: str) -> Any:
        if name[0] != "_" and self._tracked:
            raise refusal(f"{self._label}.{name}", "among its data")
        return super().__getattr__(name)

    def _place(self, x: Any) -> Tensor:
        if not self._given and not tensors_in([x]):
            raise _PlainError
        (place,) = (
            inexact(x) if tensors_in([x]) else (like_first(self._given, np.asarray(x, float)),)
        )
        return place


class _PlainError(Exception):
    """No Tensor is among data and places."""


def _plain(x: Any, label: str) -> Any:
    if isinstance(x, tuple):
        return tuple(_plain(part, label) for part in x)
    return values_of(x, label)


def _columns(y: Tensor, axis: int) -> Tensor:
    """The data with the interpolation's axis first."""
    return wg.moveaxis(y, axis, 0)


def _beside(x: Tensor, y: Tensor) -> Tensor:
    """Numbers of the interpolation's axis, to be multiplied with data."""
    return wg.reshape(x, (*x.shape, *(1,) * (y.ndim - 1)))


class _Hermite(_Interpolant):
    """Cubic polynomials between knots, by values and slopes there."""

    _x: Tensor
    _y: Tensor
    _slopes: Tensor
    _axis: int
    _extrapolate: Any

    def _data(self, x: Any, y: Any, axis: int, extrapolate: Any) -> None:
        self._x, y = inexact(x, y)
        self._y, self._axis, self._extrapolate = _columns(y, axis), axis % y.ndim, extrapolate

    def _arranged(self, found: Tensor, at: Tensor) -> Tensor:
        """Results with the places' axes where the interpolation's was."""
        order = [*range(at.ndim, at.ndim + self._axis), *range(at.ndim)]
        return wg.permute_dims(found, (*order, *range(len(order), found.ndim)))

    def _pieces(self, at: Tensor, extrapolate: Any) -> tuple[Any, Any, Any, Any]:
        """Intervals of places, the places in them, and where there is no value."""
        knots = values_of(self._x, self._label)
        values = values_of(at, self._label)
        outside = np.zeros(np.shape(values), bool)
        if extrapolate == "periodic":
            turns = np.floor((values - knots[0]) / (knots[-1] - knots[0]))
            at = at - like_first([at], turns) * (self._x[-1] - self._x[0])
            values = values_of(at, self._label)
        elif not extrapolate:
            outside = (values < knots[0]) | (values > knots[-1])
        i = np.clip(np.searchsorted(knots, values, "right") - 1, 0, len(knots) - 2)
        return i, wg.reshape(at, (-1,)) - self._x[i.ravel()], at, outside

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        try:
            place = self._place(x)
        except _PlainError:
            return self._theirs(x, nu, extrapolate)
        extrapolate = self._extrapolate if extrapolate is None else extrapolate
        i, t, at, outside = self._pieces(place, True if extrapolate is None else extrapolate)
        i, t = i.ravel(), _beside(t, self._y)
        h = _beside(self._x[i + 1] - self._x[i], self._y)
        y, s, s1 = self._y[i], self._slopes[i], self._slopes[i + 1]
        m = (self._y[i + 1] - y) / h
        parts = [y, s, (3 * m - 2 * s - s1) / h, (s + s1 - 2 * m) / (h * h)]
        found = 0 * t * parts[3]
        for k in range(3, nu - 1, -1) if nu >= 0 else ():
            found = found * t + math.perm(k, nu) * parts[k]
        if nu == -1:
            found = (((parts[3] / 4 * t + parts[2] / 3) * t + s / 2) * t + y) * t
            found = found + self._areas()[i]
        elif nu < -1:
            raise NotImplementedError(f"{self._label}: nu={nu} has no derivative")
        found = wg.reshape(found, (*at.shape, *self._y.shape[1:]))
        if outside.any():
            mask = outside.reshape(outside.shape + (1,) * (self._y.ndim - 1))
            found = wg.where(like_first([found], mask), math.nan, found)
        return self._arranged(found, at)

    def _areas(self) -> Tensor:
        """The integrals from the first knot to each interval."""
        h = _beside(self._x[1:] - self._x[:-1], self._y)
        y, s = self._y, self._slopes
        each = h * (y[1:] + y[:-1]) / 2 + h * h * (s[:-1] - s[1:]) / 12
        return wg.concat([0 * each[:1], wg.cumulative_sum(each, axis=0)], axis=0)

    def derivative(self, nu: int = 1) -> Any:
        """The function of derivatives."""
        return lambda x, extrapolate=None: self(x, nu, extrapolate)

    def antiderivative(self) -> Any:
        """The function of integrals from the first knot."""
        return self.derivative(-1)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral between two places, which are not apart by a period."""
        if not self._given and not tensors_in([a, b]):
            return self._theirs.integrate(a, b, extrapolate)
        extrapolate = self._extrapolate if extrapolate is None else extrapolate
        if extrapolate == "periodic":
            raise NotImplementedError(f"{self._label}: integrals of periodic splines of Tensors")
        return self(b, -1, extrapolate) - self(a, -1, extrapolate)


class _CubicSpline(_Hermite):
    def __init__(
        self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None
    ) -> None:
        super().__init__("CubicSpline", x, y, axis=axis, bc_type=bc_type, extrapolate=extrapolate)
        if extrapolate is None:
            extrapolate = "periodic" if isinstance(bc_type, str) and bc_type == "periodic" else True
        self._data(x, y, axis, extrapolate)
        if isinstance(bc_type, str) and bc_type == "periodic":
            self._slopes = self._around()
        else:
            ends = [bc_type] * 2 if isinstance(bc_type, str) else list(bc_type)
            words = {"natural": (2, 0.0), "clamped": (1, 0.0), "not-a-knot": None}
            self._slopes = self._between([words[e] if isinstance(e, str) else e for e in ends])

    def _steps(self) -> tuple[Tensor, Tensor, Tensor]:
        h = self._x[1:] - self._x[:-1]
        wide = _beside(h, self._y)
        return h, wide, (self._y[1:] - self._y[:-1]) / wide

    def _end(self, end: Any, h: Tensor, m: Tensor) -> tuple[Any, Any, Any]:
        """The equation at the first knot: the factors of two slopes, and the right side."""
        wide = _beside(h, self._y)
        n = h.shape[0] + 1
        if end is None and n == 2:
            return 1.0, 0.0, m[0]
        if end is None and n == 3:
            return 1.0, 1.0, 2 * m[0]
        if end is None:
            d = h[0] + h[1]
            wide_d = wide[0] + wide[1]
            right = ((wide[0] + 2 * wide_d) * wide[1] * m[0] + wide[0] ** 2 * m[1]) / wide_d
            return h[1], d, right
        order, value = end
        (value,) = (
            inexact(value) if tensors_in([value]) else (like_first([m], np.asarray(value, float)),)
        )
        if order == 1:
            return 1.0, 0.0, value + 0 * m[0]
        return 2 * h[0], h[0], 3 * wide[0] * m[0] - value * wide[0] ** 2 / 2

    def _between(self, ends: list[Any]) -> Tensor:
        h, wide, m = self._steps()
        first = self._end(ends[0], h, m)
        turned = ends[1]
        if turned is not None and turned[0] == 2:  # the mirrored curve has slopes of the other sign
            turned = (2, -1.0 * inexact(turned[1])[0])
        last = self._end(turned, wg.flip(h), wg.flip(m, axis=0))
        one = wg.ones((1,), dtype=h.dtype)
        main = wg.concat([one * first[0], 2 * (h[:-1] + h[1:]), one * last[0]])
        upper = wg.concat([one * 0.0, one * first[1], h[:-1]])
        lower = wg.concat([h[1:], one * last[1], one * 0.0])
        middle = 3 * (wide[1:] * m[:-1] + wide[:-1] * m[1:])
        right = wg.concat([first[2][None, ...], middle, last[2][None, ...]], axis=0)
        flat = wg.reshape(right, (right.shape[0], -1))
        return wg.reshape(solve_banded((1, 1), wg.stack([upper, main, lower]), flat), right.shape)

    def _around(self) -> Tensor:
        h, wide, m = self._steps()
        n = h.shape[0]
        before, wide_before = wg.roll(h, 1), wg.roll(wide, 1, axis=0)
        eye = wg.eye(n, dtype=h.dtype)
        matrix = 2 * (before + h)[:, None] * eye
        matrix = matrix + before[:, None] * wg.roll(eye, 1, axis=1)
        matrix = matrix + h[:, None] * wg.roll(eye, -1, axis=1)
        right = 3 * (wide * wg.roll(m, 1, axis=0) + wide_before * m)
        found = wg.linalg.solve(matrix, wg.reshape(right, (n, -1)))
        found = wg.reshape(found, right.shape)
        return wg.concat([found, found[:1]], axis=0)


class _HermiteSpline(_Hermite):
    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> None:
        super().__init__("CubicHermiteSpline", x, y, dydx, axis=axis, extrapolate=extrapolate)
        self._data(x, y, axis, extrapolate)
        self._slopes = _columns(inexact(self._y, dydx)[1], axis)


class _Pchip(_Hermite):
    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
        super().__init__("PchipInterpolator", x, y, axis=axis, extrapolate=extrapolate)
        self._data(x, y, axis, extrapolate)
        h = _beside(self._x[1:] - self._x[:-1], self._y)
        m = (self._y[1:] - self._y[:-1]) / h
        if m.shape[0] == 1:
            self._slopes = wg.concat([m, m], axis=0)
            return
        w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
        same = m[1:] * m[:-1] > 0
        left, right = wg.where(same, m[:-1], 1.0), wg.where(same, m[1:], 1.0)
        middle = wg.where(same, (w1 + w2) / (w1 / left + w2 / right), 0.0)
        ends = [self._edge(h, m), self._edge(wg.flip(h, axis=0), wg.flip(m, axis=0))]
        self._slopes = wg.concat([ends[0][None, ...], middle, ends[1][None, ...]], axis=0)

    @staticmethod
    def _edge(h: Tensor, m: Tensor) -> Tensor:
        d = ((2 * h[0] + h[1]) * m[0] - h[0] * m[1]) / (h[0] + h[1])
        turned = wg.sign(d) != wg.sign(m[0])
        steep = (wg.sign(m[0]) != wg.sign(m[1])) & (wg.abs(d) > 3 * wg.abs(m[0]))
        return wg.where(turned, 0.0, wg.where(steep, 3 * m[0], d))


class _Interp1d(_Interpolant):
    def __init__(
        self,
        x: Any,
        y: Any,
        kind: Any = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Any = math.nan,
        assume_sorted: bool = False,
    ) -> None:
        options = {"kind": kind, "axis": axis, "bounds_error": bounds_error}
        options |= {"fill_value": fill_value, "assume_sorted": assume_sorted}
        super().__init__("interp1d", x, y, **options)
        self._knots, data = inexact(x, y)
        self._axis, self._kind, self._fill = axis % data.ndim, kind, fill_value
        self._y = _columns(data, axis)
        order = np.argsort(values_of(self._knots, self._label), kind="stable")
        if not assume_sorted:
            self._knots, self._y = self._knots[order], self._y[order]
        self._spline: Any = None
        if kind in ("cubic", 3):
            self._spline = _CubicSpline(self._knots, self._y)

    def __call__(self, x: Any) -> Any:
        try:
            at = self._place(x)
        except _PlainError:
            return self._theirs(x)
        values = values_of(at, self._label)
        self._theirs(values)  # raises outside of the data
        knots = values_of(self._knots, self._label)
        flat = values.ravel()
        if self._spline is not None:
            found = self._spline(wg.reshape(at, (-1,)))
        elif self._kind in ("linear", "slinear", 1):
            i = np.clip(np.searchsorted(knots, flat), 1, len(knots) - 1)
            low, high = self._knots[i - 1], self._knots[i]
            slope = (self._y[i] - self._y[i - 1]) / _beside(high - low, self._y)
            t = wg.reshape(at, (-1,)) - low
            found = slope * _beside(t, self._y) + self._y[i - 1]
        else:
            options = {"kind": self._kind, "bounds_error": False, "fill_value": "extrapolate"}
            steps = self._kind in ("nearest", "nearest-up", "previous", "next", "zero", 0)
            if not steps and (tracked(at) or tracked(self._knots)):
                raise NotImplementedError(
                    f"{self._label}: kind={self._kind!r} is differentiated by y alone: use "
                    "kind='cubic' or CubicSpline"
                )
            units = np.eye(len(knots))
            factors = _scipy.interp1d(knots, units, axis=0, **options)(
                np.clip(flat, knots[0], knots[-1])
            )
            factors = like_first([self._y], factors)
            rows = wg.reshape(self._y, (len(knots), -1))
            found = wg.reshape(factors @ rows, (flat.size, *self._y.shape[1:]))
        if not isinstance(self._fill, str):
            pair = isinstance(self._fill, tuple) and len(self._fill) == 2
            below, above = self._fill if pair else (self._fill, self._fill)
            for fill, out in ((below, flat < knots[0]), (above, flat > knots[-1])):
                if out.any():
                    mask = _beside(like_first([found], out), self._y)
                    found = wg.where(mask, inexact(found, fill)[1], found)
        found = wg.reshape(found, (*values.shape, *self._y.shape[1:]))
        order = [*range(at.ndim, at.ndim + self._axis), *range(at.ndim)]
        return wg.permute_dims(found, (*order, *range(len(order), found.ndim)))


def _class(name: str, ours: Any) -> Any:
    """SciPy's class, whose instances take Tensors."""

    class Class(Guarded):
        def __call__(self, *args: Any, **keywords: Any) -> Any:
            return ours(*args, **keywords)

        def __instancecheck__(self, value: Any) -> bool:
            return isinstance(value, ours | self._theirs)

    return stands(Class(getattr(_scipy, name), f"scipy.interpolate.{name}"))


_OWN: dict[str, Any] = {
    "CubicHermiteSpline": _class("CubicHermiteSpline", _HermiteSpline),
    "CubicSpline": _class("CubicSpline", _CubicSpline),
    "PchipInterpolator": _class("PchipInterpolator", _Pchip),
    "interp1d": _class("interp1d", _Interp1d),
}
globals().update(namespace("interpolate", _OWN))
