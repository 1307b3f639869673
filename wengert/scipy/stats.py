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

    Its functions take ``xp``, shapes and a place within the support; `log` and `tail` of a support
    that begins at 0 also take the place's logarithm, which in derivatives is apart from the
    scale's. So does `log` of two heavy tails, where the place is above 1 in size. By powers,
    `density` keeps digits near the ends of the support. `tail` is the logarithm of the distribution
    function (``side`` 1) or of the rest in closed form, `start` its power and series near an end,
    `inverse` the slope of quantiles.
    """

    log: Form
    slopes: tuple[Form, ...] = ()
    low: float = -math.inf
    high: Form = lambda *_: math.inf
    shapes: str = ""
    valid: Form = _positive
    pmf: Form | None = None
    density: Form | None = None
    tail: Form | None = None
    start: Form | None = None
    inverse: Form | None = None


#: The logarithm of a quotient.
Primitive(
    "scipy_log",
    ["u", "s"],
    {"u": lambda xp, g, u: g / u, "s": lambda xp, g, s: -g / s},
    elementwise=True,
    composite=lambda xp, u, s: xp.log(u / s),
)


def _jump(xp: Any, c: Any) -> Any:
    """Nothing, with no slope by an exponent ``c`` of 0 at the end, where the logarithm jumps."""
    return xp.scipy_edge(xp.where(c == 0, math.nan, 0 * c), c, c, c, low=0.0, high=0.0)


def _gamma(xp: Any, a: Any, y: Any, log: Any) -> Any:
    return (a - 1) * log + _jump(xp, xp.where(y == 0, a - 1, 1)) - y - xp.gammaln(a)


def _beta(xp: Any, a: Any, b: Any, y: Any, log: Any) -> Any:
    jumps = _jump(xp, xp.where(y == 0, a - 1, 1)) + _jump(xp, xp.where(y == 1, b - 1, 1))
    return (a - 1) * log + xp.xlog1py(b - 1, -y) + jumps - xp.betaln(a, b)


def _cauchy(xp: Any, y: Any, log: Any) -> Any:
    t = xp.where(xp.abs(y) > 1, 1 / xp.where(y == 0, 1, y), y)
    return -math.log(math.pi) - 2 * log - xp.log1p(t * t)


def _lognormal(xp: Any, s: Any, y: Any, log: Any) -> Any:
    return xp.where(y > 0, -(log / s) * (log / s) / 2 - log - xp.log(s) - _LOG_ROOT, -math.inf)


def _lognormal_slope(xp: Any, s: Any, y: Any) -> Any:
    u = xp.log(xp.where(y > 0, y, 1)) / s
    return -u / s * xp.exp(-u * u / 2 - _LOG_ROOT)


_normal_tail: Form = lambda xp, y, side: xp.log_ndtr(side * y)


def _lognormal_tail(xp: Any, s: Any, y: Any, log: Any, side: int) -> Any:
    return xp.where(y > 0, _normal_tail(xp, log / s, side), -math.inf if side > 0 else 0.0)


def _laplace_tail(xp: Any, y: Any, side: int) -> Any:
    t = side * y
    return xp.where(t < 0, t - math.log(2), xp.log1p(xp.exp(-xp.where(t < 0, 0, t)) / -2))


CONTINUOUS: dict[str, Law] = {
    "beta": Law(
        _beta,
        tuple([partial(special.beta_slope, by_a=by_a) for by_a in (True, False)]),
        *(0.0, lambda *_: 1.0, "a b"),
        density=special.beta_density,
        start=special.beta_start,
        inverse=special.beta_inverse_slope,
    ),
    "cauchy": Law(
        _cauchy,
        start=lambda xp, y: special.student_start(xp, xp.ones_like(y), y),
    ),
    "expon": Law(
        lambda xp, y, _: -y,
        low=0.0,
        start=lambda xp, y: special.gamma_start(xp, xp.ones_like(y), y),
    ),
    "gamma": Law(
        _gamma,
        (special.gamma_slope,),
        low=0.0,
        shapes="a",
        density=special.gamma_density,
        start=special.gamma_start,
        inverse=special.gamma_inverse_slope,
    ),
    "laplace": Law(lambda xp, y: -xp.abs(y) - math.log(2), tail=_laplace_tail),
    "lognorm": Law(_lognormal, (_lognormal_slope,), low=0.0, shapes="s", tail=_lognormal_tail),
    "norm": Law(lambda xp, y: y * y * -0.5 - _LOG_ROOT, tail=_normal_tail),
    "t": Law(
        special.student_log, (special.student_slope,), shapes="df", start=special.student_start
    ),
    "uniform": Law(
        lambda xp, y, _: 0 * y,
        low=0.0,
        high=lambda *_: 1.0,
        tail=lambda xp, y, log, side: log if side > 0 else xp.log1p(-y),
    ),
}
#: Computed as the gamma distribution of half the shape and twice the scale.
CONTINUOUS["chi2"] = CONTINUOUS["gamma"]._replace(shapes="df")


def _mass(shapes: str, log: Form, pmf: Form, valid: Form, **more: Any) -> Law:
    return Law(log, low=0.0, shapes=shapes, valid=valid, pmf=pmf, **more)


def _binomial(xp: Any, n: Any, p: Any, k: Any) -> Any:
    ways = -xp.log1p(n) - xp.betaln(n - k + 1, k + 1)
    return ways + xp.xlogy(k, p) + xp.xlog1py(n - k, -p)


def _negative_binomial(xp: Any, n: Any, p: Any, k: Any) -> Any:
    ways = xp.gammaln(n + k) - xp.gammaln(k + 1) - xp.gammaln(n)
    return ways + xp.xlogy(n, p) + xp.xlog1py(k, -p)


DISCRETE: dict[str, Law] = {
    "bernoulli": _mass(
        "p",
        lambda xp, p, k: xp.xlogy(k, p) + xp.xlog1py(1 - k, -p),
        lambda xp, p, k: xp.scipy_powers(p, k, 1 - k, finite=True),
        lambda p: [p >= 0, p <= 1],
        high=lambda p: 1.0,
    ),
    "binom": _mass(
        "n p",
        _binomial,
        lambda xp, n, p, k: special.beta_density(xp, k + 1, n - k + 1, p) / (n + 1),
        lambda n, p: [n >= 0, n % 1 == 0, p >= 0, p <= 1],
        high=lambda n, p: n,
    ),
    "nbinom": _mass(
        "n p",
        _negative_binomial,
        lambda xp, n, p, k: special.beta_density(xp, n, k + 1, p) * p / (n + k),
        lambda n, p: [n > 0, p > 0, p <= 1],
    ),
    "poisson": _mass(
        "mu",
        lambda xp, mu, k: xp.xlogy(k, mu) - xp.gammaln(k + 1) - mu,
        lambda xp, mu, k: special.gamma_density(xp, k + 1, mu),
        lambda mu: [mu >= 0],
        slopes=(lambda xp, mu, k: -special.gamma_density(xp, k + 1, mu),),
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


def _by_edge(xp: Any, g: Any, given: Any, low: float, high: float, index: int) -> Any:
    """The cotangent where a logarithm, the first one given, is infinite at an end.

    It has one side alone. Its slope by the place is infinite, in all orders; by shapes and scale
    it is NaN, as are all slopes within the support and of NaN. What masks the place has the
    cotangent 0.
    """
    log, x, *_, loc, scale = given
    lost = (g != 0) & ~xp.isfinite(log) & (index > 0)
    nan: Form = lambda at: xp.exp(math.nan * xp.where(at, reduce(operator.add, given[1:]), 0))
    if index in (1, len(given) - 2) and low > -math.inf:
        out, at = _edge(xp, *given, low=low, high=high), (x - loc) / xp.where(lost, scale, 1)
        ends = (at == low) | (at == high)
        slope = xp.where(ends, xp.where(at == low, out, -out), nan(lost & ~ends))
    else:  # in all orders
        slope = nan(lost)
    return g * xp.where(lost, -slope if index == 1 else slope, 0)


#: Nothing, with slopes.
Primitive(
    "scipy_edge",
    ["*given"],
    {"given": _by_edge},
    elementwise=True,
    composite=lambda xp, *given, low, high: xp.zeros_like(given[0]),
)


def _edge(xp: Any, log: Any, *given: Any, **span: float) -> Any:
    return log + xp.scipy_edge(log, *given, **span)


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


def _log_place(xp: Any, inside: Any, x: Any, loc: Any, scale: Any) -> Any:
    way = xp.where(x < loc, loc - x, x - loc)
    return xp.scipy_log(xp.where(inside, way, scale), scale)


def _density(xp: Any, law: Law, x: Any, *rest: Any, form: Any = None, side: int = 0) -> Any:
    """The logarithm of a density, another ``form``, or the tail; NaN for invalid parameters."""
    shapes, scale, y, inside, valid = _place(xp, law, x, *rest)
    log: Any = partial(law.tail, side=side) if law.tail and side else form or law.log
    outside = 0.0 if form else -math.inf
    zero = xp.zeros_like(y)
    outside = xp.where((x < rest[-2]) == (side > 0), -math.inf, zero) if side else outside
    fine, high = valid & (x == x), math.inf if law.pmf else law.high()
    more, whole = [], law.low < 0 or law.pmf
    large = xp.abs(y) > (1 if law.low < 0 else 0)
    if not (form or law.pmf or (whole and not law.start)):
        more = [_log_place(xp, inside & large, x, rest[-2], scale)]
    none = 0 if whole else -math.inf
    value = log(xp, *shapes, y, *[xp.where(large, one, none) for one in more])
    edge = xp.where(fine, xp.where(value > 0, math.inf, zero - math.inf), math.nan)
    if not whole:
        ends = xp.isinf(value)
        value, fine = log(xp, *shapes, xp.where(ends, 0.5, y), *more), fine & ~ends
    if not (form or side or law.pmf):
        value = value - xp.log(scale)
    value = xp.where(inside, value, outside)
    return xp.where(fine, value, _edge(xp, edge, x, *rest, low=law.low, high=high))


def _height(xp: Any, law: Law, less: Any, x: Any, *rest: Any) -> Any:
    """The density, over an exponential."""
    if law.density is not None:
        shapes, scale, y, *_ = _place(xp, law, x, *rest)
        _, a, log, _ = law.start(xp, *shapes, xp.zeros_like(y))  # type: ignore[misc]
        low = (y > 0) & (y < 1e-75) & (a < 2) & (a != 1)  # where slopes of powers overflow
        c, u = xp.where(low, a - 1, 1), xp.where(low, x - rest[-2], 1)
        power = xp.scipy_powers(u, c, xp.zeros_like(u), finite=True)
        power = a * xp.exp(log - c * xp.log(scale)) * power
        half = xp.exp(less / -2)  # whose square may overflow where densities underflow
        x = xp.where(low, rest[-2] + rest[-1] / 2, x)
        found = _density(xp, law, x, *rest, form=law.density)
        return xp.where(low, power, found) / rest[-1] * half * half
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
        return xp.where(inside, law.slopes[at - 1](xp, *shapes, y), 0) * half * half
    if law.pmf is not None:
        return 0 * x
    density = _height(xp, law, log, x, *rest)
    if at <= last:
        return -density if at else density
    # The scale does not move an end of the support if it is 0.
    steep = (density == math.inf) & (x == rest[-2])
    x = xp.where(steep, x + rest[-1] / 2, x)
    _, scale, y, inside, _ = _place(xp, law, x, *rest)
    far = inside & (xp.abs(y) > 1)  # where densities underflow earlier than the slope
    size = _log_place(xp, far, x, rest[-2], scale)
    found = _height(xp, law, log - size, x, *rest) * xp.where(far, xp.sign(y), y)
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
            none = ~fine | (method == "rvs")
            slope = xp.exp(-xp.where(none, 0, log))
            if law.inverse:
                shapes, scale, y, *_ = _place(xp, law, out, *given[1:])
                slope = scale * law.inverse(xp, *shapes, y, *(given[0], 1 - given[0])[::sign])
            found = xp.where(none | (xp.isinf(slope) & (g == 0)), 0, sign * slope)
        elif at < 0:
            found = -_slope(xp, law, index, xp.where(xp.isinf(log), 0, log), out, *given[1:])
        else:
            y = _place(xp, law, out, *given[1:])[2]
            found = y if at else xp.ones_like(y)
    span = {"low": law.low, "high": law.high()}
    ends = xp.where(xp.isnan(out), math.nan, xp.where(lost, -math.inf, xp.zeros_like(out)))
    edge = _by_edge(xp, g, (ends, *given), **span, index=index + 1)
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


def _probability_of(law: Law, x: Any, *rest: Any, family: str, method: str) -> Any:
    """A function of probabilities; its logarithm near an end is that of a power and a series."""
    up, xp = method == "logsf", differentiable
    if law.start is None or method[:3] != "log" or (up and law.low == 0 and law.high() > 1):
        return _probability(x, *rest, family=family, method=method)
    shapes, width, y, inside, _ = _place(xp, law, x, *rest)
    log = _log_place(xp, inside & (y != 0), x, rest[-2], width)
    if up and law.low == 0:
        shapes, y, log = shapes[::-1], 1 - y, xp.log1p(-xp.where(y < 1, y, 0))
    y = -y if up and law.low < 0 else y
    near, power, factor, series = law.start(xp, *shapes, y)
    near, found = near & inside & (y != 0), power * log + factor + xp.log(series)
    *own, loc, scale = rest
    x, loc, scale = xp.where(near, 0.5, x), xp.where(near, 0, loc), xp.where(near, 1, scale)
    return xp.where(near, found, _probability(x, *own, loc, scale, family=family, method=method))


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
    family = "gamma" if name == "chi2" else name

    def of_family(given: Any) -> Any:
        """The arguments of the family."""
        if name == family:
            return given
        x, df, loc, scale = given
        return x, df / 2, loc, 2 * scale

    def method(first: str, form: Any) -> Callable[..., Any]:
        """A density of a ``form``, or a method by name, of a ``first`` argument."""
        side = {"logcdf": 1, "logsf": -1}.get(form, 0) if law.tail else 0

        def value(*given: Any) -> Any:
            x, *rest = of_family(given)
            if isinstance(form, str) and not side:
                return _probability_of(law, x, *rest, family=family, method=form)
            if form is _height:
                return _height(differentiable, law, 0 * rest[-1], x, *rest)
            return _density(differentiable, law, x, *rest, form=None if side else form, side=side)

        return lambda *args, **keywords: special.in_double(
            value, *_bind(f"{first} {words}", args, keywords).values()
        )

    def draw(*args: Any, **keywords: Any) -> Any:
        """SciPy's draws, as they move with the parameters at the same place of the distribution."""
        bound = _bind(f"{words} size random_state", args, keywords)
        size, state = bound.pop("size"), bound.pop("random_state")
        given = inexact(*bound.values())
        size = np.broadcast_shapes(*[x.shape for x in given]) if size is None else size
        numbers = [values_of(x, f"scipy.stats.{name}") for x in given]
        draws = getattr(_scipy, name).rvs(*numbers, size=size, random_state=state)
        move = lambda *given: _probability(*of_family(given), family=family, method="rvs")
        return special.in_double(move, like_first(given, draws), *given)

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
