"""``scipy.stats``: densities, their integrals and inverses, and draws that follow parameters.

>>> from wengert.scipy import stats
>>> scale = wg.tensor(2.0, dtype=wg.float64, requires_grad=True)
>>> stats.norm(loc=0.0, scale=scale).logpdf([1.0, 3.0]).sum().backward()
>>> scale.grad
tensor(0.2500, dtype=wengert.float64)
"""

import math
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import numpy as np

import wengert as wg
from wengert.scipy.densities import CONTINUOUS, DISCRETE, SHAPES, Density, Mass
from wengert.scipy.naming import (
    Guarded,
    door,
    inexact,
    like_first,
    namespace,
    scipy_module,
    stands,
    tensors_in,
    values_of,
)
from wengert.tape.tensor import Tensor

_scipy = scipy_module("stats")


class _Arguments:
    """The parameters of a call: shapes, ``loc`` and ``scale``, by position or by name."""

    def __init__(self, name: str, shapes: str, discrete: bool) -> None:
        self.names = [*shapes.split(), "loc", *([] if discrete else ["scale"])]
        self._label = f"scipy.stats.{name}"
        self._defaults = {"loc": 0.0, "scale": 1.0}

    def bind(self, first: str, args: Any, keywords: Any, more: str = "") -> dict[str, Any]:
        """The arguments by their names, with defaults."""
        names = [*([first] if first else []), *self.names, *more.split()]
        defaults = self._defaults | {"size": None, "random_state": None}
        signature = Signature([
            Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, default=defaults.get(n, Parameter.empty))
            for n in names
        ])  # fmt: skip
        try:
            bound = signature.bind(*args, **keywords)
        except TypeError as error:
            raise TypeError(f"{self._label}: {error}") from None
        bound.apply_defaults()
        return dict(bound.arguments)


class Distribution(Guarded):
    """One of SciPy's distributions: methods with derivatives, or that refuse Tensors."""

    def __init__(self, name: str) -> None:
        super().__init__(getattr(_scipy, name), f"scipy.stats.{name}")
        self._arguments = _Arguments(name, self._shapes(name), name in DISCRETE)
        for method, ours in self._methods().items():
            theirs = getattr(self._theirs, method)
            setattr(self, method, door(f"{self._label}.{method}", theirs, ours))

    def _shapes(self, name: str) -> str:
        return SHAPES.get(name, "")

    def _methods(self) -> dict[str, Callable[..., Any]]:
        raise NotImplementedError

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.freeze(*args, **keywords)

    def freeze(self, *args: Any, **keywords: Any) -> Any:
        """The distribution with fixed parameters."""
        if not tensors_in((*args, *keywords.values())):
            args, keywords = self._sorted(args, keywords)
        return Frozen(self, args, keywords)

    def _sorted(self, args: Any, keywords: Any) -> Any:
        self._theirs(*args, **keywords)  # SciPy's own errors
        return args, keywords


class Frozen:
    """A distribution with fixed parameters, which may be Tensors."""

    def __init__(self, family: Any, args: Any, keywords: Any) -> None:
        self._family, self._args, self._keywords = family, args, keywords
        self.dist = family
        self.args, self.kwds = args, keywords

    def __getattr__(self, name: str) -> Any:
        if name[0] == "_":
            raise AttributeError(name)
        method = getattr(self._family, name)
        if not tensors_in((*self._args, *self._keywords.values())):
            theirs = getattr(self._family._theirs(*self._args, **self._keywords), name)
            if not callable(theirs):
                return theirs

        def call(*args: Any, **keywords: Any) -> Any:
            own, given = self._args, dict(self._keywords)
            if name in ("rvs", "fit"):
                names = ("size", "random_state")
                return method(*own, **given, **dict(zip(names, args, strict=False)), **keywords)
            return method(*args, *own, **given, **keywords)

        return call


class _Continuous(Distribution):
    def _methods(self) -> dict[str, Callable[..., Any]]:
        self._density: Density = CONTINUOUS[self._label.rpartition(".")[2]]
        density = self._density
        pairs = {"cdf": (0.0, 1.0), "sf": (1.0, 0.0)}
        logs = {"logcdf": (-math.inf, 0.0), "logsf": (0.0, -math.inf)}
        return {
            "logpdf": self._logpdf,
            "pdf": lambda *args, **keywords: wg.exp(self._logpdf(*args, **keywords)),
            **{name: self._integral(getattr(density, name), *ends) for name, ends in pairs.items()},
            **{
                name: self._integral(
                    getattr(density, name) or _log(getattr(density, name[3:])), *ends
                )
                for name, ends in logs.items()
            },
            "ppf": self._inverse(density.ppf, density.low, density.high),
            "isf": self._inverse(density.isf, density.high, density.low),
            "rvs": self._draw,
        }

    def _given(self, first: str, args: Any, keywords: Any) -> tuple[Any, Any, Any, Any, Any]:
        """``x`` or ``q``, shapes, location, scale, and where all parameters are valid."""
        bound = self._arguments.bind(first, args, keywords)
        x, *shapes, loc, scale = inexact(*bound.values())
        valid = scale > 0
        for shape in shapes:
            valid = valid & (shape > 0)
        shapes = [wg.where(valid, shape, 1.0) for shape in shapes]
        return x, shapes, loc, wg.where(valid, scale, 1.0), valid

    def _logpdf(self, *args: Any, **keywords: Any) -> Tensor:
        x, shapes, loc, scale, valid = self._given("x", args, keywords)
        density = self._density
        y = (x - loc) / scale
        inside = (y >= density.low) & (y <= density.high) & wg.isfinite(y)
        value = density.logpdf(*_together(wg.where(inside, y, density.inside), shapes))
        found = wg.where(inside, value - wg.log(scale), -math.inf)
        return _defined(found, x, valid)

    def _integral(self, form: Callable[..., Any], below: float, above: float) -> Any:
        density = self._density

        def call(*args: Any, **keywords: Any) -> Tensor:
            x, shapes, loc, scale, valid = self._given("x", args, keywords)
            y = (x - loc) / scale
            left, right = y <= density.low, y >= density.high
            value = form(*_together(wg.where(left | right, density.inside, y), shapes))
            found = wg.where(left, below, wg.where(right, above, value))
            return _defined(found, x, valid)

        return call

    def _inverse(self, form: Callable[..., Any], at_0: float, at_1: float) -> Any:
        def call(*args: Any, **keywords: Any) -> Tensor:
            q, shapes, loc, scale, valid = self._given("q", args, keywords)
            inside = (q > 0) & (q < 1)
            y = form(*_together(wg.where(inside, q, 0.5), shapes))
            end = wg.where(q == 0, at_0, at_1)
            # An infinite end takes no derivative along; a finite one moves with its parameters.
            ends = wg.where(
                wg.isfinite(end), loc + scale * wg.where(wg.isfinite(end), end, 0.0), end
            )
            found = wg.where(inside, loc + scale * y, ends)
            return _defined(found, q, valid & (q >= 0) & (q <= 1))

        return call

    def _draw(self, *args: Any, **keywords: Any) -> Tensor:
        """SciPy's draws, as they move with the parameters at the same place of the distribution."""
        bound = self._arguments.bind("", args, keywords, "size random_state")
        size, state = bound.pop("size"), bound.pop("random_state")
        given = inexact(*bound.values())
        *shapes, loc, scale = given
        numbers = [values_of(x, self._label) for x in shapes]
        if size is None:
            size = np.broadcast_shapes(*[x.shape for x in given])
        y = self._theirs.rvs(*numbers, size=size, random_state=state)
        place = like_first(given, y)
        if shapes:
            upper = like_first(given, self._theirs.cdf(y, *numbers) > 0.5)
            low, high = (
                like_first(given, np.clip(function(y, *numbers), 1e-300, 0.5))
                for function in (self._theirs.cdf, self._theirs.sf)
            )
            moved = wg.where(
                upper,
                self._density.isf(*_together(high, shapes)),
                self._density.ppf(*_together(low, shapes)),
            )
            place = moved + (place - like_first(given, values_of(moved, self._label)))
        return loc + scale * place


def _log(form: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        value = form(*args)
        there = value > 0
        return wg.where(there, wg.log(wg.where(there, value, 1.0)), -math.inf)

    return call


def _together(y: Tensor, shapes: list[Any]) -> list[Tensor]:
    return wg.broadcast_arrays(y, *shapes) if shapes else [y]


def _defined(found: Tensor, x: Tensor, valid: Any) -> Tensor:
    """NaN for NaN, and where parameters are invalid."""
    return wg.where(valid & ~wg.isnan(x), found, math.nan)


class _Discrete(Distribution):
    def _shapes(self, name: str) -> str:
        self._mass: Mass = DISCRETE[name]
        return self._mass.shapes

    def _methods(self) -> dict[str, Callable[..., Any]]:
        return {
            "logpmf": self._logpmf,
            "pmf": lambda *args, **keywords: wg.exp(self._logpmf(*args, **keywords)),
            "cdf": self._cdf,
            "sf": lambda *args, **keywords: 1 - self._cdf(*args, **keywords),
            "logcdf": lambda *args, **keywords: _log(self._cdf)(*args, **keywords),
        }

    def _given(self, args: Any, keywords: Any) -> tuple[Any, Any, Any]:
        bound = self._arguments.bind("k", args, keywords)
        k, *shapes, loc = inexact(*bound.values())
        start = 1 if self._label.endswith("geom") else 0
        valid = self._mass.valid(*shapes)
        shapes = [
            wg.where(valid, shape, 0.5 if n == "p" else 1.0)
            for n, shape in zip(self._mass.shapes.split(), shapes, strict=True)
        ]
        return k - loc - start, shapes, valid

    def _logpmf(self, *args: Any, **keywords: Any) -> Tensor:
        k, shapes, valid = self._given(args, keywords)
        inside = (k >= 0) & (k <= self._mass.high(*shapes)) & (wg.floor(k) == k)
        value = self._mass.logpmf(*wg.broadcast_arrays(wg.where(inside, k, 0.0), *shapes))
        return _defined(wg.where(inside, value, -math.inf), k, valid)

    def _cdf(self, *args: Any, **keywords: Any) -> Tensor:
        k, shapes, valid = self._given(args, keywords)
        whole = wg.floor(k)
        inside = (whole >= 0) & (whole < self._mass.high(*shapes))
        value = self._mass.cdf(*wg.broadcast_arrays(wg.where(inside, whole, 0.0), *shapes))
        found = wg.where(inside, value, wg.where(whole < 0, 0.0, 1.0))
        return _defined(found, k, valid)


class _Normals(Guarded):
    """``multivariate_normal``, by place, mean and covariance."""

    def __init__(self) -> None:
        label = "scipy.stats.multivariate_normal"
        super().__init__(_scipy.multivariate_normal, label)
        own = {"logpdf": self._logpdf, "pdf": self._pdf, "rvs": self._draw}
        for name, ours in own.items():
            setattr(self, name, door(f"{label}.{name}", getattr(self._theirs, name), ours))

    def __call__(
        self,
        mean: Any = None,
        cov: Any = 1,
        allow_singular: bool = False,
        seed: Any = None,
        **more: Any,
    ) -> Any:
        if not tensors_in((mean, cov)):
            frozen = self._theirs(mean, cov, allow_singular, seed, **more)
            if more or seed is not None or allow_singular:
                return Guarded(frozen, self._label)
        return Frozen(self, (), {"mean": mean, "cov": cov})

    @staticmethod
    def _given(mean: Any, cov: Any) -> tuple[Tensor, Tensor]:
        c, m = inexact(cov, 0.0 if mean is None else mean)
        size = max(m.shape[0] if m.ndim else 1, c.shape[0] if c.ndim else 1)
        if c.ndim < 2:
            c = wg.eye(size, dtype=c.dtype) * c
        return wg.broadcast_to(m, (size,)), c

    def _logpdf(
        self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False
    ) -> Tensor:
        if allow_singular:
            raise NotImplementedError(f"{self._label}: allow_singular=True has no derivative")
        places, c, m = inexact(x, cov, 0.0 if mean is None else mean)
        m, c = self._given(m, c)
        n = m.shape[0]
        if places.ndim == 0:
            places = wg.reshape(places, (1,))
        elif places.ndim == 1:
            places = wg.reshape(places, (-1, 1) if n == 1 else (1, n))
        chol = wg.linalg.cholesky(c)
        off = wg.reshape(places - m, (-1, n))
        white = wg.linalg.solve_triangular(chol, off.T, upper=False)
        logs = wg.sum(wg.log(wg.linalg.diagonal(chol)))
        found = -wg.sum(white * white, axis=0) / 2 - logs - n * math.log(2 * math.pi) / 2
        found = wg.reshape(found, places.shape[:-1])
        return wg.squeeze(found, axis=0) if found.ndim == 1 and found.shape[0] == 1 else found

    def _pdf(self, *args: Any, **keywords: Any) -> Tensor:
        return wg.exp(self._logpdf(*args, **keywords))

    def _draw(
        self, mean: Any = None, cov: Any = 1, size: Any = 1, random_state: Any = None
    ) -> Tensor:
        """SciPy's draws, as they move with mean and covariance by the Cholesky factor."""
        m, c = self._given(mean, cov)
        own = (values_of(m, self._label), values_of(c, self._label))
        draws = self._theirs.rvs(*own, size=size, random_state=random_state)
        n = m.shape[0]
        off = np.reshape(draws, (-1, n)) - own[0]
        white = np.linalg.solve(np.linalg.cholesky(own[1]), off.T)
        moved = m + (wg.linalg.cholesky(c) @ like_first([m], white)).T
        return wg.reshape(moved, np.shape(draws))


_OWN: dict[str, Any] = {
    **{name: _Continuous(name) for name in CONTINUOUS},
    **{name: _Discrete(name) for name in DISCRETE},
    "multivariate_normal": _Normals(),
}
for _one in _OWN.values():
    stands(_one)
globals().update(namespace("stats", _OWN))
