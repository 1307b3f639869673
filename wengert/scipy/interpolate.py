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
from scipy import interpolate as _scipy
from scipy.spatial import Delaunay

import wengert as wg
from wengert.scipy.linalg import solve_banded
from wengert.scipy.naming import Guarded, inexact, like_first, plain, publish, tensors_in, values_of
from wengert.tape.tensor import Tensor


def _values(x: Any, label: str) -> Any:
    """Values without derivatives, also in tuples of tuples."""
    return tuple(_values(part, label) for part in x) if type(x) is tuple else values_of(x, label)


class _Interpolant(Guarded):
    """A function through data: SciPy's own, and on Tensors where some are given."""

    def __init__(self, name: str, x: Any, y: Any, axis: int, **options: Any) -> None:
        label = f"scipy.interpolate.{name}"
        numbers = {key: _values(value, label) for key, value in options.items()}
        one = getattr(_scipy, name)(values_of(x, label), values_of(y, label), axis=axis, **numbers)
        super().__init__(one, label)
        self._tensors, self._axis = tensors_in(x, y, options), axis
        # Copies, since data may change in place.
        self._data = [inexact(z)[0].clone() if tensors_in(z) else np.array(z) for z in (x, y)]

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if name[0] != "_":
            plain(self._tensors, f"{self._label}.{name}", "among its data")
        return found

    def __call__(self, x: Any, *args: Any, **keywords: Any) -> Any:
        given = [*self._tensors, *tensors_in(x)]
        if not given:
            return self._theirs(x, *args, **keywords)
        arrays = [z if tensors_in(z) else like_first(given, z) for z in (x, *self._data)]
        at, self._x, data = inexact(*arrays)
        axis = self._axis % data.ndim
        self._y = wg.moveaxis(data, axis, 0)
        found = self._at(wg.reshape(at, (-1,)), *args, **keywords)
        found = wg.reshape(found, (*at.shape, *self._y.shape[1:]))
        order = [*range(at.ndim, at.ndim + axis), *range(at.ndim)]
        return wg.permute_dims(found, (*order, *range(len(order), found.ndim)))

    def _widen(self, x: Tensor) -> Tensor:
        """Numbers of the interpolation's axis, to be multiplied with data."""
        return wg.reshape(x, (*x.shape, *(1,) * (self._y.ndim - 1)))


#: Conditions at the ends of splines: the order of a derivative and its value.
_ENDS: dict[Any, Any] = {"natural": (2, 0.0), "clamped": (1, 0.0), "not-a-knot": None}


class _CubicSpline(_Interpolant):
    def __init__(
        self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None
    ) -> None:
        super().__init__("CubicSpline", x, y, axis, bc_type=bc_type, extrapolate=extrapolate)
        ends = [bc_type] * 2 if isinstance(bc_type, str) else list(bc_type)
        self._ends = [_ENDS.get(end, ...) if isinstance(end, str) else end for end in ends]
        self._extrapolate = extrapolate

    def _at(self, at: Tensor, nu: int = 0, extrapolate: Any = None) -> Tensor:
        extrapolate = self._extrapolate if extrapolate is None else extrapolate
        if nu < 0 or extrapolate == "periodic" or self._ends[0] is ...:
            raise NotImplementedError(f"{self._label}: periodic splines and nu < 0, of Tensors")
        knots, values = (values_of(z, self._label) for z in (self._x, at))
        i = np.clip(np.searchsorted(knots, values, "right") - 1, 0, len(knots) - 2)
        t, h = self._widen(at - self._x[i]), self._widen(self._x[i + 1] - self._x[i])
        slopes = self._slopes()
        y, s, s1 = self._y[i], slopes[i], slopes[i + 1]
        m = (self._y[i + 1] - y) / h
        parts = [y, s, (3 * m - 2 * s - s1) / h, (s + s1 - 2 * m) / (h * h)]
        found = 0 * t * s
        for k in range(3, nu - 1, -1):
            found = found * t + math.perm(k, nu) * parts[k]
        outside = (values < knots[0]) | (values > knots[-1])
        if extrapolate is False and outside.any():
            return wg.where(self._widen(like_first([found], outside)), math.nan, found)
        return found

    def _end(self, end: Any, h: Tensor, m: Tensor) -> tuple[Any, Any, Any]:
        """The equation at the first knot: the factors of two slopes, and the right side."""
        wide, n = self._widen(h), h.shape[0] + 1
        if end is not None:
            order, (_, value) = end[0], inexact(m, end[1])
            if order == 1:
                return 1.0, 0.0, value + 0 * m[0]
            return 2 * h[0], h[0], 3 * wide[0] * m[0] - value * wide[0] ** 2 / 2
        if n == 2 or (n == 3 and self._ends[0] is self._ends[1] is None):
            return 1.0, float(n == 3), m[0] * (n - 1.0)
        whole = wide[0] + wide[1]
        right = ((wide[0] + 2 * whole) * wide[1] * m[0] + wide[0] ** 2 * m[1]) / whole
        return h[1], h[0] + h[1], right

    def _slopes(self) -> Tensor:
        h = self._x[1:] - self._x[:-1]
        wide, (first, last) = self._widen(h), self._ends
        m = (self._y[1:] - self._y[:-1]) / wide
        if last is not None and last[0] == 2:  # which has the other sign in the mirror
            last = 2, -1.0 * inexact(m, last[1])[1]
        low = self._end(first, h, m)
        high = self._end(last, wg.flip(h), wg.flip(m, axis=0))
        one = wg.ones((1,), dtype=h.dtype)
        bands = [
            wg.concat([one * 0.0, one * low[1], h[:-1]]),
            wg.concat([one * low[0], 2 * (h[:-1] + h[1:]), one * high[0]]),
            wg.concat([h[1:], one * high[1], one * 0.0]),
        ]
        middle = 3 * (wide[1:] * m[:-1] + wide[:-1] * m[1:])
        right = wg.concat([low[2][None, ...], middle, high[2][None, ...]], axis=0)
        return solve_banded((1, 1), wg.stack(bands), right)


class _Interp1d(_Interpolant):
    def __init__(
        self, x: Any, y: Any, kind: Any = "linear", axis: int = -1, copy: bool = True,
        bounds_error: Any = None, fill_value: Any = math.nan, assume_sorted: bool = False,
    ) -> None:  # fmt: skip
        more = {"fill_value": fill_value, "assume_sorted": assume_sorted}
        super().__init__("interp1d", x, y, axis, kind=kind, bounds_error=bounds_error, **more)
        self._kind, self._fill = kind, fill_value

    def _at(self, at: Tensor) -> Any:
        values, knots = (values_of(z, self._label) for z in (at, self._x))
        self._theirs(values)  # raises outside of the data
        order = np.argsort(knots, kind="stable")
        self._x, self._y, knots = self._x[order], self._y[order], knots[order]
        if not np.diff(knots).all():
            raise ValueError(f"{self._label}: places of data that come twice have no slope")
        if self._kind in ("cubic", 3):
            found: Any = _CubicSpline(self._x, self._y)(at)
        elif self._kind in ("linear", "slinear", 1):
            i = np.clip(np.searchsorted(knots, values), 1, len(knots) - 1)
            slope = (self._y[i] - self._y[i - 1]) / self._widen(self._x[i] - self._x[i - 1])
            found = slope * self._widen(at - self._x[i - 1]) + self._y[i - 1]
        else:
            raise NotImplementedError(f"{self._label}: of Tensors kind= is 'linear' or 'cubic'")
        if isinstance(self._fill, str):
            return found
        pair = isinstance(self._fill, tuple) and len(self._fill) == 2
        fills = self._fill if pair else (self._fill, self._fill)
        for fill, out in zip(fills, (values < knots[0], values > knots[-1]), strict=True):
            if out.any():
                mask = self._widen(like_first([found], out))
                found = wg.where(mask, inexact(found, fill)[1], found)
        return found


def griddata(
    points: Any, values: Any, xi: Any, method: str = "linear", fill_value: Any = math.nan,
    rescale: bool = False,
) -> Tensor:  # fmt: skip
    """Interpolate scattered data on their triangles; the derivative is by the data alone."""
    label, (data,) = "scipy.interpolate.griddata", inexact(values)
    points, xi, fill = (
        plain(x, label, "points, xi or fill_value") for x in (points, xi, fill_value)
    )
    places = np.stack(points, -1) if isinstance(points, tuple) else np.asarray(points, float)
    at = np.stack(np.broadcast_arrays(*xi), -1) if isinstance(xi, tuple) else np.asarray(xi, float)
    if method == "nearest":
        nearest = _scipy.griddata(places, np.arange(len(places)), at, method, 0, rescale)
        return data[nearest.astype(int)]
    if method != "linear" or rescale:
        raise NotImplementedError(f"{label}: of Tensors method='nearest' or 'linear', not rescaled")
    mesh, wide = Delaunay(places), (1,) * (data.ndim - 1)
    triangle = mesh.find_simplex(at)
    affine = mesh.transform[triangle]
    parts = np.einsum("...jk,...k->...j", affine[..., :-1, :], at - affine[..., -1, :])
    parts = np.concatenate([parts, 1 - parts.sum(-1, keepdims=True)], -1)
    weights = like_first([data], np.reshape(parts, (*parts.shape, *wide)))
    found = wg.sum(data[mesh.simplices[triangle]] * weights, axis=triangle.ndim)
    out = np.reshape(triangle < 0, (*triangle.shape, *wide))
    return wg.where(like_first([data], out), fill, found)


publish(globals(), {"CubicSpline": _CubicSpline, "interp1d": _Interp1d})
