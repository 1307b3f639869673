"""``scipy.stats``: densities, their integrals and inverses, and draws that follow parameters.

>>> from wengert.scipy import stats
>>> scale = wg.tensor(2.0, dtype=wg.float64, requires_grad=True)
>>> stats.norm(loc=0.0, scale=scale).logpdf([1.0, 3.0]).sum().backward()
>>> scale.grad
tensor(0.2500, dtype=wengert.float64)
"""

import math
from collections.abc import Callable
from functools import cache, reduce
from inspect import Parameter, Signature
from typing import Any

import numpy as np
from scipy import stats as _scipy

import wengert as wg
from wengert.scipy.densities import CONTINUOUS, DISCRETE
from wengert.scipy.linalg import mirror
from wengert.scipy.naming import Guarded, door, inexact, like_first, publish, tensors_in, values_of
from wengert.tape.tensor import Tensor

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

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if not tensors_in(args, keywords):
            self._theirs(*args, **keywords)  # SciPy's own errors
        return Frozen(self, args, keywords)

    freeze = __call__


class Frozen:
    """A distribution with fixed parameters, which may be Tensors."""

    def __init__(self, family: Any, args: Any, keywords: Any) -> None:
        self.dist, self.args, self.kwds = family, args, keywords

    def __getattr__(self, name: str) -> Any:
        theirs: Any = None
        if not tensors_in(self.args, self.kwds):
            theirs = getattr(self.dist._theirs(*self.args, **self.kwds), name)
            if not callable(theirs):
                return theirs

        def call(*args: Any, **keywords: Any) -> Any:
            if theirs is not None and not tensors_in(args, keywords):
                return door(f"{self.dist._label}.{name}", theirs)(*args, **keywords)
            if name == "rvs":
                keywords.update(zip(("size", "random_state"), args, strict=False))
                args = ()
            return getattr(self.dist, name)(*args, *self.args, **self.kwds, **keywords)

        return call


class _Univariate(_Family):
    """A distribution of the tables, of real or of whole numbers."""

    def _methods(self, name: str) -> dict[str, Callable[..., Any]]:
        own = self._law = (CONTINUOUS | DISCRETE)[name]
        self._whole = own.pdf is not None
        self._words = f"{own.shapes} loc" if self._whole else f"{own.shapes} loc scale"
        inf = math.inf
        found = {"cdf": self._method("cdf", 0, 1), "sf": self._method("sf", 1, 0)}
        log, pdf = self._method("log", -inf, -inf), self._method("pdf", 0, 0)
        if self._whole:
            return {"logpmf": log, "pmf": pdf, **found}
        found |= {"logcdf": self._method("logcdf", -inf, 0)}
        found |= {"logsf": self._method("logsf", 0, -inf), "rvs": self._draw, "logpdf": log}
        found["pdf"] = lambda *args, **keywords: wg.exp(log(*args, **keywords))
        found["ppf"] = self._inverse("ppf", own.low, own.high)
        found["isf"] = self._inverse("isf", own.high, own.low)
        return found

    def _bind(self, words: str, args: Any, keywords: Any) -> dict[str, Any]:
        """The arguments by their names, with defaults."""
        try:
            bound = _signature(words).bind(*args, **keywords)
        except TypeError as error:
            raise TypeError(f"{self._label}: {error}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def _arguments(self, first: str, args: Any, keywords: Any) -> tuple[Any, Any, Any, Any, Any]:
        """``x`` or ``q``, shapes, location, scale, and where all parameters are valid."""
        first = "k" if self._whole else first
        bound = self._bind(f"{first} {self._words}", args, keywords)
        x, *shapes, loc, scale = inexact(*({**bound, "scale": 1.0} | bound).values())
        valid = reduce(lambda a, b: a & b, self._law.valid(*shapes), (scale > 0) & (loc == loc))
        safe = [0.5 if name == "p" else 1.0 for name in self._law.shapes.split()]
        shapes = [wg.where(valid, s, other) for s, other in zip(shapes, safe, strict=True)]
        return x, shapes, loc, wg.where(valid, scale, 1.0), valid

    def _inside(self, y: Tensor, there: Any) -> Tensor:
        """Places, and one within the support for those that are not there."""
        inner = 0.5 if self._law.low == 0 and not self._whole else 0.0
        return wg.where(there, y, inner)

    def _method(self, name: str, below: float, above: float) -> Any:
        """A density or an integral, which is ``below`` and ``above`` where the support is not."""
        dense = name in ("log", "pdf")

        def call(*args: Any, **keywords: Any) -> Tensor:
            x, shapes, loc, scale, valid = self._arguments("x", args, keywords)
            form, low, high = self._law.form(name), self._law.low, self._law.high
            place, start, unit = (z.detach() for z in (x, loc, scale))
            far = wg.isinf(y := (place - start) / unit)  # where nothing moves with the others
            y = wg.where(far, y, (wg.where(far, 0.0, x) - loc) / wg.where(far, 1.0, scale))
            high = high(*shapes) if callable(high) else high
            if dense:
                left, right = y < low, (y > high) | wg.isinf(y)
                right = right | (wg.floor(y) != y) if self._whole else right
            else:
                y = wg.floor(y) if self._whole else y
                left, right = y <= low - self._whole, y >= high
            inside = within = ~(left | right)
            if has_ends := dense and not self._whole and low > -math.inf:
                # Infinite logarithms at the ends of the support have no derivative.
                ends = self._inside(y, (y == low) | (y == high) & ~far), *shapes
                at_ends = form(*wg.broadcast_arrays(*(z.detach() for z in ends)))
                within = inside & ~wg.isinf(at_ends)
            shapes = [wg.where(within, s, s.detach()) for s in shapes]
            value = form(*wg.broadcast_arrays(self._inside(y, within), *shapes))
            if has_ends:
                value = wg.where(within, value, at_ends)
            if dense and not self._whole:
                value = value - wg.log(scale)
            outside = wg.where(left, float(below), float(above))
            return _with_nan(wg.where(inside, value, outside), x, valid)

        return call

    def _inverse(self, name: str, *ends: float) -> Any:
        def call(*args: Any, **keywords: Any) -> Tensor:
            q, shapes, loc, scale, valid = self._arguments("q", args, keywords)
            places = wg.broadcast_arrays(wg.where((q > 0) & (q < 1), q, 0.5), *shapes)
            found = loc + scale * self._law.form(name)(*places)
            for at, end in enumerate(ends):
                # An infinite end takes no derivative along; a finite one moves with parameters.
                found = wg.where(q == at, end if math.isinf(end) else loc + scale * end, found)
            return _with_nan(found, q, valid & (q >= 0) & (q <= 1))

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
            tails = [(self._theirs.cdf, "ppf"), (self._theirs.sf, "isf")]
            lower, upper = (
                self._law.form(inverse)(*wg.broadcast_arrays(q, *shapes))
                for tail, inverse in tails
                for q in [like_first(given, np.clip(tail(y, *numbers), 1e-300, 0.5))]
            )
            below = like_first(given, self._theirs.sf(y, *numbers) >= 0.5)
            moved = wg.where(below, lower, upper)
            place = moved + (place - like_first(given, values_of(moved, self._label)))
        return loc + scale * place


def _with_nan(found: Tensor, x: Tensor, valid: Any) -> Tensor:
    """NaN for NaN, and where parameters are invalid."""
    return wg.where(valid & ~wg.isnan(x), found, math.nan)


class _Normals(_Family):
    """``multivariate_normal``, by place, mean and covariance."""

    def _methods(self, name: str) -> dict[str, Callable[..., Any]]:
        pdf = lambda *args, **keywords: wg.exp(self._log(*args, **keywords))
        return {"logpdf": self._log, "pdf": pdf, "rvs": self._draw}

    @staticmethod
    def _arguments(mean: Any, cov: Any, *more: Any) -> tuple[Tensor, ...]:
        c, m, *rest = inexact(cov, 0.0 if mean is None else mean, *more)
        n = max(m.shape[0] if m.ndim else 1, c.shape[0] if c.ndim else 1)
        c = wg.eye(n, dtype=c.dtype) * c if c.ndim < 2 else mirror(c, lower=True)  # as SciPy
        return wg.broadcast_to(m, (n,)), c, *rest

    def _log(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: Any = 0) -> Tensor:
        if allow_singular:
            raise TypeError(f"{self._label}: allow_singular=True has no derivative: leave it out")
        m, c, places = self._arguments(mean, cov, x)
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
        m, c = self._arguments(mean, cov)
        own = values_of(m, self._label), values_of(c, self._label)
        draws = self._theirs.rvs(*own, size=size, random_state=random_state)
        off = np.reshape(draws, (-1, m.shape[0])) - own[0]
        white = np.linalg.solve(np.linalg.cholesky(own[1]), off.T)
        return wg.reshape(m + (wg.linalg.cholesky(c) @ like_first([m], white)).T, np.shape(draws))


_OWN: dict[str, Any] = {name: _Univariate(name) for name in (*CONTINUOUS, *DISCRETE)}
publish(globals(), _OWN | {"multivariate_normal": _Normals("multivariate_normal")})
