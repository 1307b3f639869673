"""``scipy.stats``: densities, their integrals and inverses, and draws that follow parameters.

>>> from wengert.scipy import stats
>>> scale = wg.tensor(2.0, dtype=wg.float64, requires_grad=True)
>>> stats.norm(loc=0.0, scale=scale).logpdf([1.0, 3.0]).sum().backward()
>>> scale.grad
tensor(0.2500, dtype=wengert.float64)
"""

import math
from collections.abc import Callable
from functools import cache
from inspect import Parameter, Signature
from typing import Any

import numpy as np

import wengert as wg
from wengert.scipy.densities import CONTINUOUS, DISCRETE
from wengert.scipy.naming import (
    Guarded,
    door,
    inexact,
    like_first,
    namespace,
    run,
    scipy_module,
    stands,
    tensors_in,
    values_of,
)
from wengert.tape.tensor import Tensor

_scipy = scipy_module("stats")
_DEFAULTS = {"loc": 0.0, "scale": 1.0, "size": None, "random_state": None}
_KIND = Parameter.POSITIONAL_OR_KEYWORD
_parameter = lambda n: Parameter(n, _KIND, default=_DEFAULTS.get(n, Parameter.empty))
_signature = cache(lambda words: Signature([*map(_parameter, words.split())]))


class _Family(Guarded):
    """One of SciPy's distributions: methods with derivatives, or that refuse Tensors."""

    def __init__(self, name: str) -> None:
        super().__init__(getattr(_scipy, name), f"scipy.stats.{name}")
        for method, ours in self._methods(name).items():
            door_of = door(f"{self._label}.{method}", getattr(self._theirs, method), ours)
            setattr(self, method, door_of)

    def _methods(self, name: str) -> dict[str, Callable[..., Any]]:
        raise NotImplementedError

    def _bind(self, words: str, args: Any, keywords: Any) -> dict[str, Any]:
        """The arguments by their names, with defaults."""
        try:
            bound = _signature(words).bind(*args, **keywords)
        except TypeError as error:
            raise TypeError(f"{self._label}: {error}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if not tensors_in((*args, *keywords.values())):
            self._theirs(*args, **keywords)  # SciPy's own errors
        return Frozen(self, args, keywords)

    freeze = __call__


class Frozen:
    """A distribution with fixed parameters, which may be Tensors."""

    def __init__(self, family: Any, args: Any, keywords: Any) -> None:
        self.dist, self.args, self.kwds = family, args, keywords

    def __getattr__(self, name: str) -> Any:
        theirs: Any = None
        if not tensors_in((*self.args, *self.kwds.values())):
            theirs = getattr(self.dist._theirs(*self.args, **self.kwds), name)
            if not callable(theirs):
                return theirs

        def call(*args: Any, **keywords: Any) -> Any:
            if theirs is not None and not tensors_in((*args, *keywords.values())):
                return run(f"{self.dist._label}.{name}", theirs, args, keywords)
            if name == "rvs":
                keywords.update(zip(("size", "random_state"), args, strict=False))
                args = ()
            return getattr(self.dist, name)(*args, *self.args, **self.kwds, **keywords)

        return call


class _Continuous(_Family):
    def _methods(self, name: str) -> dict[str, Callable[..., Any]]:
        own = self._density = CONTINUOUS[name]
        self._words = f"{own.shapes} loc scale"
        ends = {"cdf": (0.0, 1.0), "sf": (1.0, 0.0), "logcdf": (-math.inf, 0.0)}
        ends["logsf"] = ends["logcdf"][::-1]
        return {
            "logpdf": self._logpdf,
            "pdf": lambda *args, **keywords: wg.exp(self._logpdf(*args, **keywords)),
            **{key: self._integral(own.form(key), *pair) for key, pair in ends.items()},
            "ppf": self._inverse(own.ppf, own.low, own.high),
            "isf": self._inverse(own.form("isf"), own.high, own.low),
            "rvs": self._draw,
        }

    def _given(self, first: str, args: Any, keywords: Any) -> tuple[Any, Any, Any, Any, Any]:
        """``x`` or ``q``, shapes, location, scale, and where all parameters are valid."""
        x, *shapes, loc, scale = inexact(
            *self._bind(f"{first} {self._words}", args, keywords).values()
        )
        valid = scale > 0
        for shape in shapes:
            valid = valid & (shape > 0)
        shapes = [wg.where(valid, shape, 1.0) for shape in shapes]
        return x, shapes, loc, wg.where(valid, scale, 1.0), valid

    def _inside(self, y: Tensor, there: Any) -> Tensor:
        """Places, and one within the support for those that are not there."""
        return wg.where(there, y, 0.5 if self._density.low == 0 else 0.0)

    def _logpdf(self, *args: Any, **keywords: Any) -> Tensor:
        x, shapes, loc, scale, valid = self._given("x", args, keywords)
        y = (x - loc) / scale
        own, inside = self._density, wg.isfinite(y) & valid
        if own.low == 0:
            inside = inside & (y >= 0) & (y <= own.high)
        edge = (y == 0) | (y == own.high) if shapes and own.low == 0 else None
        value = own.logpdf(self._inside(y, inside if edge is None else inside & ~edge), *shapes)
        if edge is not None:  # where the logarithm of a power has no derivative
            ends = [z.detach() for z in (self._inside(y, edge), *shapes)]
            value = wg.where(edge, own.logpdf(*ends), value)
        outside = _defined(wg.full_like(y, -math.inf), x, valid)
        return wg.where(inside, value - wg.log(scale), outside)

    def _integral(self, form: Callable[..., Any], below: float, above: float) -> Any:
        def call(*args: Any, **keywords: Any) -> Tensor:
            x, shapes, loc, scale, valid = self._given("x", args, keywords)
            y = (x - loc) / scale
            left, right = y <= self._density.low, y >= self._density.high
            value = form(*wg.broadcast_arrays(self._inside(y, ~(left | right)), *shapes))
            return _defined(wg.where(left, below, wg.where(right, above, value)), x, valid)

        return call

    def _inverse(self, form: Callable[..., Any], *ends: float) -> Any:
        def call(*args: Any, **keywords: Any) -> Tensor:
            q, shapes, loc, scale, valid = self._given("q", args, keywords)
            inside = (q > 0) & (q < 1)
            found = loc + scale * form(*wg.broadcast_arrays(wg.where(inside, q, 0.5), *shapes))
            for at, end in enumerate(ends):
                # An infinite end takes no derivative along; a finite one moves with parameters.
                found = wg.where(q == at, end if math.isinf(end) else loc + scale * end, found)
            return _defined(found, q, valid & (q >= 0) & (q <= 1))

        return call

    def _draw(self, *args: Any, **keywords: Any) -> Tensor:
        """SciPy's draws, as they move with the parameters at the same place of the distribution."""
        bound = self._bind(f"{self._words} size random_state", args, keywords)
        size, state = bound.pop("size"), bound.pop("random_state")
        given = inexact(*bound.values())
        *shapes, loc, scale = given
        numbers = [values_of(x, self._label) for x in shapes]
        size = np.broadcast_shapes(*[x.shape for x in given]) if size is None else size
        signs = np.where(values_of(scale, self._label) < 0, -1.0, 1.0)
        y = self._theirs.rvs(*numbers, scale=signs, size=size, random_state=state)
        place = like_first(given, y)
        if shapes:
            low, high = (
                like_first(given, np.clip(function(y, *numbers), 1e-300, 0.5))
                for function in (self._theirs.cdf, self._theirs.sf)
            )
            upper = self._density.form("isf")(*wg.broadcast_arrays(high, *shapes))
            lower = self._density.ppf(*wg.broadcast_arrays(low, *shapes))
            moved = wg.where(high < 0.5, upper, lower)
            place = moved + (place - like_first(given, values_of(moved, self._label)))
        return loc + scale * place


def _defined(found: Tensor, x: Tensor, valid: Any) -> Tensor:
    """NaN for NaN, and where parameters are invalid."""
    return wg.where(valid & ~wg.isnan(x), found, math.nan)


class _Discrete(_Family):
    def _methods(self, name: str) -> dict[str, Callable[..., Any]]:
        self._mass = DISCRETE[name]
        return {
            "logpmf": self._logpmf,
            "pmf": lambda *args, **keywords: wg.exp(self._logpmf(*args, **keywords)),
            "cdf": self._integral(self._mass.cdf, 0.0, 1.0),
            "sf": self._integral(self._mass.sf, 1.0, 0.0),
        }

    def _given(self, args: Any, keywords: Any) -> tuple[Any, Any, Any]:
        k, *shapes, loc = inexact(
            *self._bind(f"k {self._mass.shapes} loc", args, keywords).values()
        )
        valid = self._mass.valid(*shapes)
        safe = [0.5 if name == "p" else 1.0 for name in self._mass.shapes.split()]
        return k - loc, [wg.where(valid, s, x) for s, x in zip(shapes, safe, strict=True)], valid

    def _logpmf(self, *args: Any, **keywords: Any) -> Tensor:
        k, shapes, valid = self._given(args, keywords)
        inside = (k >= 0) & (k <= self._mass.high(*shapes)) & (wg.floor(k) == k)
        value = self._mass.logpmf(*wg.broadcast_arrays(wg.where(inside, k, 0.0), *shapes))
        return _defined(wg.where(inside, value, -math.inf), k, valid)

    def _integral(self, form: Callable[..., Any], below: float, above: float) -> Any:
        def call(*args: Any, **keywords: Any) -> Tensor:
            k, shapes, valid = self._given(args, keywords)
            whole = wg.floor(k)
            inside = (whole >= 0) & (whole < self._mass.high(*shapes))
            value = form(*wg.broadcast_arrays(wg.where(inside, whole, 0.0), *shapes))
            return _defined(wg.where(inside, value, wg.where(whole < 0, below, above)), k, valid)

        return call


class _Normals(_Family):
    """``multivariate_normal``, by place, mean and covariance."""

    def _methods(self, name: str) -> dict[str, Callable[..., Any]]:
        pdf = lambda *args, **keywords: wg.exp(self._logpdf(*args, **keywords))
        return {"logpdf": self._logpdf, "pdf": pdf, "rvs": self._draw}

    @staticmethod
    def _given(mean: Any, cov: Any) -> tuple[Tensor, Tensor]:
        c, m = inexact(cov, 0.0 if mean is None else mean)
        n = max(m.shape[0] if m.ndim else 1, c.shape[0] if c.ndim else 1)
        c = wg.eye(n, dtype=c.dtype) * c if c.ndim < 2 else c
        return wg.broadcast_to(m, (n,)), c

    def _logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: Any = 0) -> Tensor:
        if allow_singular:
            raise TypeError(f"{self._label}: allow_singular=True has no derivative: leave it out")
        places, c, m = inexact(x, cov, 0.0 if mean is None else mean)
        m, c = self._given(m, c)
        n = m.shape[0]
        outer = places.shape if places.ndim < 2 and n == 1 else places.shape[:-1]
        off = wg.reshape(places, (-1, n)) - m
        chol = wg.linalg.cholesky(c)
        white = wg.linalg.solve_triangular(chol, off.T, upper=False)
        logs = wg.sum(wg.log(wg.linalg.diagonal(chol))) + n * math.log(2 * math.pi) / 2
        found = wg.reshape(-wg.sum(white * white, axis=0) / 2 - logs, outer)
        return wg.squeeze(found, axis=0) if found.shape == (1,) else found

    def _draw(
        self, mean: Any = None, cov: Any = 1, size: Any = 1, random_state: Any = None
    ) -> Tensor:
        """SciPy's draws, as they move with mean and covariance by the Cholesky factor."""
        m, c = self._given(mean, cov)
        own = values_of(m, self._label), values_of(c, self._label)
        draws = self._theirs.rvs(*own, size=size, random_state=random_state)
        off = np.reshape(draws, (-1, m.shape[0])) - own[0]
        white = np.linalg.solve(np.linalg.cholesky(own[1]), off.T)
        return wg.reshape(m + (wg.linalg.cholesky(c) @ like_first([m], white)).T, np.shape(draws))


_OWN: dict[str, Any] = {
    **{name: stands(_Continuous(name)) for name in CONTINUOUS},
    **{name: stands(_Discrete(name)) for name in DISCRETE},
    "multivariate_normal": stands(_Normals("multivariate_normal")),
}
globals().update(namespace("stats", _OWN))
