"""``scipy.stats``: densities, their integrals and inverses, and draws, differentiated.

>>> from wengert.scipy import stats
>>> scale = wg.tensor(2.0, dtype=wg.float64, requires_grad=True)
>>> stats.norm(loc=0.0, scale=scale).logpdf([1.0, 3.0]).sum().backward()
>>> scale.grad
tensor(0.2500, dtype=wengert.float64)
"""

import math
import operator
from collections.abc import Callable
from functools import cache, partial, reduce
from inspect import Parameter, Signature
from typing import Any, NamedTuple

import numpy as np
from scipy import stats as _scipy

import wengert as wg
from wengert.interpreters.namespaces import differentiable
from wengert.scipy import special
from wengert.scipy.linalg import mirror
from wengert.scipy.naming import (
    Guarded,
    door,
    host,
    inexact,
    like_first,
    publish,
    tensors_in,
    values_of,
)
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor

# -- distributions in their standard form: of ``y = (x - loc) / scale`` and of shapes --------------

Form = Callable[..., Any]
_LOG_ROOT = math.log(2 * math.pi) / 2
_positive: Form = lambda *shapes: [shape > 0 for shape in shapes]


class Law(NamedTuple):
    """A distribution; one of whole numbers has ``pmf``.

    Attributes
    ----------
    log, slopes, pmf : callable
        Of ``xp``, a place within the support, and shapes.
    valid : callable
        The conditions that shapes fulfil.
    density : callable, optional
        The density by powers, whose derivatives have digits near the ends of the support.
    tail : callable, optional
        The logarithm of the distribution function (``side`` 1) or of the rest, in closed form.
    """

    log: Form
    slopes: Form = lambda *_: []
    low: float = -math.inf
    high: Form = lambda *_: math.inf
    shapes: str = ""
    valid: Form = _positive
    pmf: Form | None = None
    density: Form | None = None
    tail: Form | None = None


_jump: Form = lambda xp, g, c: g * xp.where((g != 0) & (c == 0), math.nan, 0)
#: Nothing, with no slope by an exponent ``c`` of 0 at the end, where the power's logarithm jumps.
Primitive("scipy_jump", "c", {"c": _jump}, elementwise=True, composite=lambda xp, c: c - c)


@special.double
def _gamma(xp: Any, y: Any, a: Any) -> Any:
    return xp.xlogy(a - 1, y) + xp.scipy_jump(xp.where(y == 0, a - 1, 1)) - y - xp.gammaln(a)


@special.double
def _beta(xp: Any, y: Any, a: Any, b: Any) -> Any:
    jumps = xp.scipy_jump(xp.where(y == 0, a - 1, 1)) + xp.scipy_jump(xp.where(y == 1, b - 1, 1))
    return xp.xlogy(a - 1, y) + xp.xlog1py(b - 1, -y) + jumps - xp.betaln(a, b)


def _lognormal(xp: Any, y: Any, s: Any) -> Any:
    log = xp.log(xp.where(y > 0, y, 1))
    return xp.where(y > 0, -(log / s) * (log / s) / 2 - log - xp.log(s) - _LOG_ROOT, -math.inf)


def _lognormal_slope(xp: Any, y: Any, s: Any) -> list[Any]:
    u = xp.log(xp.where(y > 0, y, 1)) / s
    return [-u / s * xp.exp(-u * u / 2 - _LOG_ROOT)]


_normal_tail: Form = lambda xp, y, side: xp.log_ndtr(side * y)


def _lognormal_tail(xp: Any, y: Any, s: Any, side: int) -> Any:
    found = _normal_tail(xp, xp.log(xp.where(y > 0, y, 1)) / s, side)
    return xp.where(y > 0, found, -math.inf if side > 0 else 0.0)


def _laplace_tail(xp: Any, y: Any, side: int) -> Any:
    t = side * y
    return xp.where(t < 0, t - math.log(2), xp.log1p(xp.exp(-xp.where(t < 0, 0, t)) / -2))


CONTINUOUS: dict[str, Law] = {
    "beta": Law(
        _beta,
        lambda xp, y, a, b: [special.beta_slope(xp, a, b, y, by_a) for by_a in (True, False)],
        *(0.0, lambda *_: 1.0, "a b"),
        density=lambda xp, y, a, b: special.beta_density(xp, a, b, y),
    ),
    "cauchy": Law(lambda xp, y: -math.log(math.pi) - 2 * xp.log(xp.hypot(xp.ones_like(y), y))),
    "chi2": Law(
        lambda xp, y, df: _gamma(xp, y / 2, df / 2) - math.log(2),
        lambda xp, y, df: [special.gamma_slope(xp, df / 2, y / 2) / 2],
        low=0.0,
        shapes="df",
        density=lambda xp, y, df: special.gamma_density(xp, df / 2, y / 2) / 2,
    ),
    "expon": Law(lambda xp, y: -y, low=0.0),
    "gamma": Law(
        _gamma,
        lambda xp, y, a: [special.gamma_slope(xp, a, y)],
        low=0.0,
        shapes="a",
        density=lambda xp, y, a: special.gamma_density(xp, a, y),
    ),
    "laplace": Law(lambda xp, y: -xp.abs(y) - math.log(2), tail=_laplace_tail),
    "lognorm": Law(_lognormal, _lognormal_slope, low=0.0, shapes="s", tail=_lognormal_tail),
    "norm": Law(lambda xp, y: y * y * -0.5 - _LOG_ROOT, tail=_normal_tail),
    "t": Law(
        lambda xp, y, df: special.student_log(xp, df, y),
        lambda xp, y, df: [special.student_slope(xp, df, y)],
        shapes="df",
    ),
    "uniform": Law(lambda xp, y: 0 * y, low=0.0, high=lambda *_: 1.0),
}


def _mass(shapes: str, log: Form, pmf: Form, valid: Form, **more: Any) -> Law:
    return Law(log, low=0.0, shapes=shapes, valid=valid, pmf=pmf, **more)


def _binomial(xp: Any, k: Any, n: Any, p: Any) -> Any:
    ways = -xp.log1p(n) - xp.betaln(n - k + 1, k + 1)
    return ways + xp.xlogy(k, p) + xp.xlog1py(n - k, -p)


def _negative_binomial(xp: Any, k: Any, n: Any, p: Any) -> Any:
    ways = xp.gammaln(n + k) - xp.gammaln(k + 1) - xp.gammaln(n)
    return ways + xp.xlogy(n, p) + xp.xlog1py(k, -p)


DISCRETE: dict[str, Law] = {
    "bernoulli": _mass(
        "p",
        lambda xp, k, p: xp.xlogy(k, p) + xp.xlog1py(1 - k, -p),
        lambda xp, k, p: xp.scipy_powers(p, k, 1 - k, finite=True),
        lambda p: [p >= 0, p <= 1],
        high=lambda p: 1.0,
    ),
    "binom": _mass(
        "n p",
        _binomial,
        lambda xp, k, n, p: special.beta_density(xp, k + 1, n - k + 1, p) / (n + 1),
        lambda n, p: [n >= 0, n % 1 == 0, p >= 0, p <= 1],
        high=lambda n, p: n,
    ),
    "nbinom": _mass(
        "n p",
        _negative_binomial,
        lambda xp, k, n, p: special.beta_density(xp, n, k + 1, p) * p / (n + k),
        lambda n, p: [n > 0, p > 0, p <= 1],
    ),
    "poisson": _mass(
        "mu",
        lambda xp, k, mu: xp.xlogy(k, mu) - xp.gammaln(k + 1) - mu,
        lambda xp, k, mu: special.gamma_density(xp, k + 1, mu),
        lambda mu: [mu >= 0],
        slopes=lambda xp, k, mu: [-special.gamma_density(xp, k + 1, mu)],
    ),
}


_DEFAULTS = {"loc": 0.0, "scale": 1.0, "size": None, "random_state": None}
_KIND = Parameter.POSITIONAL_OR_KEYWORD
_parameter = lambda n: Parameter(n, _KIND, default=_DEFAULTS.get(n, Parameter.empty))
_signature = cache(lambda words: Signature([*map(_parameter, words.split())]))
_LAWS = CONTINUOUS | DISCRETE


def _bind(words: str, args: Any, keywords: Any) -> dict[str, Any]:
    """Arguments by their names, with defaults."""
    bound = _signature(words).bind(*args, **keywords)
    bound.apply_defaults()
    return dict(bound.arguments)


# -- densities, and what follows -------------------------------------------------------------------

#: Where a place is infinite: nothing moves there, and no tangent is computed.
_is_far: Any = lambda xp, x, loc, scale: xp.isinf((x - loc) / scale)
Primitive("scipy_far", ["x", "loc", "scale"], {}, elementwise=True, composite=_is_far)


def _edge(xp: Any, g: Any, given: Any, out: Any, low: float, high: float, index: int) -> Any:
    """The cotangent where a logarithm is infinite at an end, which has one side alone.

    Its slope by the place is infinite, in all orders; by shapes and scale it is NaN, as are all
    slopes within the support and of NaN. What masks the place has the cotangent 0.
    """
    _, x, *_, loc, scale = given
    lost = (g != 0) & ~xp.isfinite(out) & (index > 0)
    at = (x - loc) / xp.where(lost, scale, 1)
    slope = xp.where(at == low, out, xp.where(at == high, -out, math.nan))
    if index not in (1, len(given) - 2):  # what is NaN has no slopes itself
        slope = math.nan * xp.where(lost, reduce(operator.add, given[1:]), 0)
    return g * xp.where(lost, -slope if index == 1 else slope, 0)


_facts: Any = {"elementwise": True, "composite": lambda xp, *given, low, high: given[0]}
Primitive("scipy_edge", ["*given"], {"given": _edge}, **_facts)


def _place(xp: Any, law: Law, x: Any, *rest: Any) -> tuple[list[Any], Any, Any, Any, Any]:
    """Shapes, scale, the place in standard form, and where it is inside and parameters are valid.

    What is not inside, or invalid, is replaced, so that nothing is infinite or NaN.
    """
    whole = law.pmf is not None
    *shapes, loc, scale = (*rest, xp.ones_like(rest[-1])) if whole else rest
    own = law.valid(*shapes)
    valid = reduce(operator.and_, own, (scale > 0) & (loc == loc))
    far = xp.scipy_far(x, loc, scale) | ~valid
    scale = xp.where(far, 1, scale)
    y = (xp.where(far, 0, x) - xp.where(valid, loc, 0)) / scale
    high = law.high(*shapes)
    inside = (y >= law.low) & (y <= high) & ~far & (xp.floor(y) == y if whole else valid)
    safe = [0.5 if name == "p" else 1 for name in law.shapes.split()]
    used = [inside] * len(shapes) if whole else own  # a shape stays one number for all places
    shapes = [xp.where(u, s, other) for u, s, other in zip(used, shapes, safe, strict=True)]
    y = xp.where(inside, y, 0.5 if law.low == 0 and not whole else 0.0)
    return shapes, scale, y, inside, valid


def _density(xp: Any, law: Law, x: Any, *rest: Any, form: Any = None, side: int = 0) -> Any:
    """The logarithm of a density, another ``form``, or the tail; NaN for invalid parameters."""
    shapes, scale, y, inside, valid = _place(xp, law, x, *rest)
    log: Any = partial(law.tail, side=side) if law.tail and side else form or law.log
    outside = 0.0 if form else -math.inf
    outside = xp.where((x < rest[-2]) == (side > 0), -math.inf, 0.0) if side else outside
    fine, high = valid & (x == x), math.inf
    value = log(xp, y, *shapes)
    edge = xp.where(fine, xp.where(value > 0, math.inf, -math.inf), math.nan)
    if law.pmf is None:
        high = law.high()
        if law.low == 0:
            ends = xp.isinf(value)
            value, fine = log(xp, xp.where(ends, 0.5, y), *shapes), fine & ~ends
        value = value if form or side else value - xp.log(scale)
    value = xp.where(inside, value, outside)
    return xp.where(fine, value, xp.scipy_edge(edge, x, *rest, low=law.low, high=high))


def _height(xp: Any, law: Law, less: Any, x: Any, *rest: Any) -> Any:
    """The density, over an exponential."""
    if law.density is not None:
        half = xp.exp(less / -2)  # whose square may overflow where densities underflow
        return _density(xp, law, x, *rest, form=law.density) / rest[-1] * half * half
    log = _density(xp, law, x, *rest) - less
    none = log == -math.inf  # where no tangent is
    return xp.where(none, 0, xp.exp(xp.where(none, 0, log)))


def _slope(xp: Any, law: Law, at: int, log: Any, x: Any, *rest: Any) -> Any:
    """The derivative of the distribution function by an argument, over an exponential."""
    last = len(law.shapes.split()) + 1  # the location
    if 0 < at < last:
        x = x if law.pmf is None else xp.floor(x)
        shapes, _, y, inside, _ = _place(xp, law, x, *rest)
        half = xp.exp(log / -2)
        return xp.where(inside, law.slopes(xp, y, *shapes)[at - 1], 0) * half * half
    if law.pmf is not None:
        return 0 * x
    density = _height(xp, law, log, x, *rest)
    if at <= last:
        return -density if at else density
    # The scale does not move an end of the support if it is 0.
    steep = (density == math.inf) & (x == rest[-2])
    x = xp.where(steep, x + rest[-1] / 2, x)
    found = _height(xp, law, log, x, *rest) * _place(xp, law, x, *rest)[2]
    return xp.where(steep, 0, -found)


def _by(xp: Any, g: Any, given: Any, out: Any, family: str, method: str, index: int) -> Any:
    """The rules of `_values`."""
    law, sign = _LAWS[family], -1 if method in ("isf", "logsf", "sf") else 1
    fine, lost = xp.isfinite(out), xp.isnan(out)  # infinite ends take no derivative along
    if method not in ("isf", "ppf", "rvs"):
        log, places = xp.zeros_like(out), given
        if method[:3] == "log":
            lost, log = lost | (xp.isinf(out) & _place(xp, law, *given)[3]), xp.where(fine, out, 0)
            places = xp.where(lost, given[-2] + given[-1] / 2, given[0]), *given[1:]
        found = sign * _slope(xp, law, index, log, *places)
    else:
        log, at = _density(xp, law, out, *given[1:]), index - len(given) + 2
        if index == 0:
            none = xp.isinf(log) | (method == "rvs")
            found = xp.where(none, 0, sign * xp.exp(-xp.where(none, 0, log)))
        elif at < 0:
            found = -_slope(xp, law, index, xp.where(xp.isinf(log), 0, log), out, *given[1:])
        else:
            y = _place(xp, law, out, *given[1:])[2]
            found = y if at else xp.ones_like(y)
    span = {"low": law.low, "high": law.high()}
    ends = xp.where(xp.isnan(out), math.nan, xp.where(lost, -math.inf, xp.zeros_like(out)))
    edge = _edge(xp, g, (out, *given), xp.scipy_edge(ends, *given, **span), **span, index=index + 1)
    return edge + g * xp.where(fine, found, 0)


def _values(x: Any, *rest: Any, family: str, method: str) -> Any:
    """SciPy's values; logarithms of probabilities near 1 are the other side's, with digits."""
    theirs, kind = getattr(_scipy, family), np.result_type(x, *rest)
    if method == "rvs":
        return np.broadcast_arrays(x, *rest)[0]
    found = getattr(theirs, method)(x, *rest)
    if method[:3] == "log":
        other = (theirs.sf if method == "logcdf" else theirs.cdf)(x, *rest)
        with np.errstate(all="ignore"):
            found = np.where(other < 0.5, np.log1p(-other), found)
    return np.asarray(found, kind)


_FACTS: dict[str, Any] = {"elementwise": True, "dtypes": "real floating"}
_probability = host("scipy_probability", "*given", _values, {"given": _by}, **_FACTS)


# -- families --------------------------------------------------------------------------------------


class _Family(Guarded):
    """One of SciPy's distributions: methods with derivatives, or that refuse Tensors."""

    def __init__(self, name: str, methods: dict[str, Callable[..., Any]]) -> None:
        super().__init__(getattr(_scipy, name), f"scipy.stats.{name}")
        for key, ours in methods.items():
            setattr(self, key, door(f"{self._label}.{key}", getattr(self._theirs, key), ours))

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
        def call(*args: Any, **keywords: Any) -> Any:
            if name == "rvs":
                keywords.update(zip(("size", "random_state"), args, strict=False))
                args = ()
            args = (*[keywords.pop(key) for key in "xkq" if key in keywords], *args)
            return getattr(self.dist, name)(*args, *self.args, **self.kwds, **keywords)

        if tensors_in(self.args, self.kwds):
            return call
        theirs = getattr(self.dist._theirs(*self.args, **self.kwds), name)
        ours = call if name[0] != "_" and name in vars(self.dist) else None
        return door(f"{self.dist._label}.{name}", theirs, ours) if callable(theirs) else theirs


def _univariate(name: str) -> dict[str, Callable[..., Any]]:
    """The methods with derivatives of a distribution of the tables."""
    law = _LAWS[name]
    words = f"{law.shapes} loc" if law.pmf else f"{law.shapes} loc scale"

    def method(first: str, form: Any) -> Callable[..., Any]:
        """A density of a ``form``, or a method by name, of a ``first`` argument."""

        def call(*args: Any, **keywords: Any) -> Any:
            x, *rest = inexact(*_bind(f"{first} {words}", args, keywords).values())
            side = {"logcdf": 1, "logsf": -1}.get(form, 0) if law.tail else 0
            if isinstance(form, str) and not side:
                # Of float32 numbers, too: logarithms cancel.
                wide, dtype = (
                    [wg.astype(z, "float64") for z in (x, *rest)],
                    wg.result_type(x, *rest),
                )
                return wg.astype(_probability(*wide, family=name, method=form), dtype)
            if form is _height:
                return _height(differentiable, law, 0 * rest[-1], x, *rest)
            return _density(differentiable, law, x, *rest, form=form, side=side)

        return call

    def draw(*args: Any, **keywords: Any) -> Any:
        """SciPy's draws, as they move with the parameters at the same place of the distribution."""
        bound = _bind(f"{words} size random_state", args, keywords)
        size, state = bound.pop("size"), bound.pop("random_state")
        given = inexact(*bound.values())
        size = np.broadcast_shapes(*[x.shape for x in given]) if size is None else size
        numbers = [values_of(x, f"scipy.stats.{name}") for x in given]
        draws = getattr(_scipy, name).rvs(*numbers, size=size, random_state=state)
        return _probability(like_first(given, draws), *given, family=name, method="rvs")

    if law.pmf:
        own = {"logpmf": method("k", None), "pmf": method("k", law.pmf)}
        return own | {key: method("k", key) for key in ("cdf", "sf") if name == "poisson"}
    found = {key: method("x", key) for key in ("cdf", "logcdf", "logsf", "sf")}
    found |= {key: method("q", key) for key in ("isf", "ppf")}
    return found | {"logpdf": method("x", None), "pdf": method("x", _height), "rvs": draw}


# -- normal distributions of several variables -----------------------------------------------------


def _arguments(mean: Any, cov: Any, *more: Any) -> tuple[Tensor, ...]:
    c, m, *rest = inexact(cov, 0.0 if mean is None else mean, *more)
    n = m.size if mean is not None else c.shape[0] if c.ndim else 1
    if m.ndim > 1 or c.shape not in {(), (n,), (n, n)}:
        raise ValueError(f"mean and cov of a normal distribution do not fit: {m.shape}, {c.shape}")
    c = wg.eye(n, dtype=c.dtype) * c if c.ndim < 2 else mirror(c, lower=True)  # as SciPy
    return wg.broadcast_to(m, (n,)), c, *rest


def _normal_log(x: Any, mean: Any = None, cov: Any = 1, allow_singular: Any = False) -> Tensor:
    """The logarithm of the density, by Cholesky's factor, which no singular covariance has."""
    if allow_singular:
        raise NotImplementedError("multivariate_normal: allow_singular=True of Tensors")
    m, c, places = _arguments(mean, cov, x)
    n = m.shape[0]
    outer = places.shape if places.ndim < 2 and n == 1 else places.shape[:-1]
    chol = wg.linalg.cholesky(c)
    white = wg.linalg.solve_triangular(chol, (wg.reshape(places, (-1, n)) - m).T, upper=False)
    logs = wg.sum(wg.log(wg.linalg.diagonal(chol))) + n * math.log(2 * math.pi) / 2
    found = wg.reshape(-wg.sum(white * white, axis=0) / 2 - logs, outer)
    return wg.squeeze(found, axis=tuple([i for i, n in enumerate(outer) if n == 1]))


def _normal_draw(mean: Any = None, cov: Any = 1, size: Any = 1, random_state: Any = None) -> Tensor:
    """SciPy's draws, as they move with mean and covariance by Cholesky's factor."""
    m, c = _arguments(mean, cov)
    own = [values_of(x, "scipy.stats.multivariate_normal") for x in (m, c)]
    draws = _scipy.multivariate_normal.rvs(*own, size=size, random_state=random_state)
    off = np.reshape(draws, (-1, m.shape[0])) - own[0]
    white = np.linalg.solve(np.linalg.cholesky(own[1]), off.T)
    return wg.reshape(m + (wg.linalg.cholesky(c) @ like_first([m], white)).T, np.shape(draws))


_OWN: dict[str, Any] = {name: _Family(name, _univariate(name)) for name in _LAWS}
_NORMAL: dict[str, Any] = {"logpdf": _normal_log, "rvs": _normal_draw}
_NORMAL["pdf"] = lambda *args, **keywords: wg.exp(_normal_log(*args, **keywords))
publish(globals(), _OWN | {"multivariate_normal": _Family("multivariate_normal", _NORMAL)})
