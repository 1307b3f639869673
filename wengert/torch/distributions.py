"""PyTorch's ``torch.distributions``: those of its tutorials."""

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import wengert as wg
from wengert.backends.generators import host, lock
from wengert.tape.node import is_lifted
from wengert.torch.creation import Size
from wengert.torch.naming import FUNCTIONS

_LOG_2PI = math.log(2 * math.pi)
_lgamma, _psi = wg.special.gammaln, wg.special.digamma
#: What the modules within, such as ``distributions.normal``, are of.
FAMILIES = "Bernoulli Beta Categorical Exponential Gamma Laplace MultivariateNormal Normal Uniform"


class Distribution:
    """What all have: parameters that broadcast, samples, and logarithms of densities."""

    has_rsample = True
    _event = 0

    def __init__(self, *args: Any, validate_args: bool | None = None, **named: Any) -> None:
        bound = inspect.signature(type(self)).bind(*args, **named).arguments
        values: list[Any] = list(bound.values())
        like = next((v.dtype for v in values if isinstance(v, wg.Tensor)), wg.get_default_dtype())
        values = [v if isinstance(v, wg.Tensor) else wg.asarray(v, dtype=like) for v in values]
        self._checked = validate_args is not False
        self._keep(dict(zip(bound, values, strict=True)))
        for name, p in zip(bound, self._parameters, strict=True):
            least = self._parameters[0] if name == "high" else 0
            self._demand(name, p, p == p if name in ("loc", "low") else p > least)

    def _demand(self, what: str, given: Any, holds: Any) -> None:
        """Raise if something does not hold, unless a trace follows it."""
        if self._checked and not is_lifted(holds._array) and not bool(wg.all(holds)):
            raise ValueError(f"{type(self).__name__}: {what} is not in its range: {given}")

    _within: Any = lambda self, value: value == value

    def _keep(self, parameters: dict[str, Any]) -> None:
        self._shape = Size(np.broadcast_shapes(*[p.shape for p in parameters.values()]))
        wide = {name: wg.broadcast_to(p, self._shape) for name, p in parameters.items()}
        self._parameters = tuple(wide.values())
        vars(self).update(wide)

    batch_shape = property(lambda self: Size(self._shape[: len(self._shape) - self._event]))
    event_shape = property(lambda self: Size(self._shape[len(self._shape) - self._event :]))
    stddev = property(lambda self: wg.sqrt(self.variance))
    _check: Any = lambda self, value: self._demand("value", value, self._within(wg.asarray(value)))

    def _draw(self, sample_shape: Any) -> Any:
        like = self._parameters[0]
        shape = (*sample_shape, *self._shape)
        noise = lambda draw: draw(shape, dtype=like.dtype, device=like.device)
        return self.draw(noise, *self._parameters)  # type: ignore[attr-defined]

    def rsample(self, sample_shape: Any = ()) -> Any:
        if not self.has_rsample:
            raise NotImplementedError(f"{type(self).__name__} has no rsample; sample() draws")
        return self._draw(tuple(sample_shape))

    def sample(self, sample_shape: Any = ()) -> Any:
        with wg.no_grad():
            return self._draw(tuple(sample_shape)).detach()


def _family(name: str, words: str, has_rsample: bool = True, **formulas: Any) -> Any:
    """A class of distributions, of formulas whose last arguments are its parameters."""

    def of_parameters(name: str, formula: Any) -> Callable[..., Any]:
        def method(self: Any, *args: Any) -> Any:
            if name in ("log_prob", "cdf"):
                self._check(*args)
            return formula(*args, *self._parameters)

        return method

    methods = {k: of_parameters(k, f) for k, f in formulas.items() if k != "draw"}
    properties = {k: property(methods.pop(k)) for k in ("mean", "variance") if k in methods}
    kind = inspect.Parameter
    given = [kind(word, kind.POSITIONAL_OR_KEYWORD) for word in words.split()]
    given.append(kind("validate_args", kind.KEYWORD_ONLY, default=None))
    members = {"__signature__": inspect.Signature(given), "__doc__": f"PyTorch's ``{name}``."}
    members |= {"draw": staticmethod(formulas["draw"]), "has_rsample": has_rsample}
    return type(name, (Distribution,), members | methods | properties | {"__module__": __name__})


def _gamma(noise: Any, concentration: Any) -> Any:
    if concentration.requires_grad and wg.is_grad_enabled():
        raise NotImplementedError("rsample has no derivative by the concentration; use sample()")
    with lock:
        numbers = host().standard_gamma
        shape = noise(wg.empty).shape
        drawn = numbers(np.asarray(concentration.detach().to("cpu").numpy(), float), shape)
    return wg.asarray(drawn, dtype=concentration.dtype, device=concentration.device)


def _beta(noise: Any, a: Any, b: Any) -> Any:
    first, second = _gamma(noise, a), _gamma(noise, b)
    return first / (first + second)


def _laplace(u: Any, loc: Any, scale: Any) -> Any:
    return loc - scale * wg.sign(u) * wg.log1p(-2 * wg.abs(u))


Normal = _family(
    "Normal",
    "loc scale",
    mean=lambda loc, scale: loc,
    variance=lambda loc, scale: scale**2,
    draw=lambda noise, loc, scale: loc + scale * noise(wg.randn),
    log_prob=lambda x, loc, scale: -(((x - loc) / scale) ** 2 + _LOG_2PI) / 2 - wg.log(scale),
    cdf=lambda x, loc, scale: wg.special.ndtr((x - loc) / scale),
    icdf=lambda p, loc, scale: loc + scale * wg.special.ndtri(p),
    entropy=lambda loc, scale: (1 + _LOG_2PI) / 2 + wg.log(scale),
)
Laplace = _family(
    "Laplace",
    "loc scale",
    mean=lambda loc, scale: loc,
    variance=lambda loc, scale: 2 * scale**2,
    draw=lambda noise, loc, scale: _laplace(noise(wg.rand) - 0.5, loc, scale),
    log_prob=lambda x, loc, scale: -wg.log(2 * scale) - wg.abs(x - loc) / scale,
    entropy=lambda loc, scale: 1 + wg.log(2 * scale),
)
Uniform = _family(
    "Uniform",
    "low high",
    mean=lambda low, high: (low + high) / 2,
    variance=lambda low, high: (high - low) ** 2 / 12,
    draw=lambda noise, low, high: low + (high - low) * noise(wg.rand),
    log_prob=lambda x, a, b: wg.where((x >= a) & (x < b), -wg.log(b - a), -wg.inf),
    entropy=lambda low, high: wg.log(high - low),
    _within=lambda x, low, high: (x >= low) & (x <= high),
)
Exponential = _family(
    "Exponential",
    "rate",
    mean=lambda rate: 1 / rate,
    variance=lambda rate: 1 / rate**2,
    draw=lambda noise, rate: -wg.log1p(-noise(wg.rand)) / rate,
    log_prob=lambda x, rate: wg.log(rate) - rate * x,
    entropy=lambda rate: 1 - wg.log(rate),
    _within=lambda x, rate: x >= 0,
)
Gamma = _family(
    "Gamma",
    "concentration rate",
    mean=lambda a, b: a / b,
    variance=lambda a, b: a / b**2,
    draw=lambda noise, a, b: _gamma(noise, a) / b,
    log_prob=lambda x, a, b: a * wg.log(b) + wg.xlogy(a - 1, x) - b * x - _lgamma(a),
    entropy=lambda a, b: a - wg.log(b) + _lgamma(a) + (1 - a) * _psi(a),
    _within=lambda x, a, b: x >= 0,
)
Beta = _family(
    "Beta",
    "concentration1 concentration0",
    False,
    mean=lambda a, b: a / (a + b),
    variance=lambda a, b: a * b / ((a + b) ** 2 * (a + b + 1)),
    draw=_beta,
    log_prob=lambda x, a, b: wg.xlogy(a - 1, x) + wg.xlogy(b - 1, 1 - x) - wg.special.betaln(a, b),
    _within=lambda x, a, b: (x >= 0) & (x <= 1),
)


class _Discrete(Distribution):
    has_rsample = False

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = probs if logits is None else logits
        if not isinstance(given, wg.Tensor):
            given = wg.asarray(given, dtype=wg.get_default_dtype())
        self._parameters, self._shape = (given,), Size(given.shape)
        self._checked = validate_args is not False
        eps = wg.finfo(given.dtype).eps
        several = self._event > 0
        if logits is None:
            given = given / wg.sum(given, axis=-1, keepdims=True) if several else given
            safe = wg.clip(given, eps, 1 - eps)
            self.probs, self.logits = given, wg.log(safe) if several else wg.logit(safe)
        else:
            self.logits = wg.log_softmax(given, axis=-1) if several else given
            self.probs = wg.exp(self.logits) if several else wg.expit(given)
        holds = self.logits == self.logits if probs is None else (given >= 0) & (self.probs <= 1)
        self._demand("logits" if probs is None else "probs", given, holds)


class Bernoulli(_Discrete):
    """PyTorch's ``Bernoulli``."""

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    def _draw(self, sample_shape: Any) -> Any:
        return wg.bernoulli(wg.broadcast_to(self.probs, (*sample_shape, *self._shape)))

    _within = lambda self, value: (value == 0) | (value == 1)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return value * self.logits - wg.softplus(self.logits)

    def entropy(self) -> Any:
        return wg.softplus(self.logits) - self.probs * self.logits


class Categorical(_Discrete):
    """PyTorch's ``Categorical``."""

    _event = 1
    event_shape = Size(())

    def _draw(self, sample_shape: Any) -> Any:
        rows = wg.reshape(self.probs, (-1, self._shape[-1]))
        drawn = FUNCTIONS["multinomial"](rows, math.prod(sample_shape), True)
        return wg.reshape(wg.matrix_transpose(drawn), (*sample_shape, *self.batch_shape))

    _within = lambda self, x: (x >= 0) & (x < self._shape[-1]) & (x % 1 == 0)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        shape = np.broadcast_shapes(value.shape, tuple(self.batch_shape))
        places = wg.broadcast_to(wg.astype(value, wg.int64), shape)[..., None]
        logits = wg.broadcast_to(self.logits, (*shape, self._shape[-1]))
        return wg.squeeze(wg.take_along_axis(logits, places, axis=-1), axis=-1)

    def entropy(self) -> Any:
        least = wg.finfo(self.logits.dtype).min
        return -wg.sum(self.probs * wg.clip(self.logits, least), axis=-1)


class MultivariateNormal(Distribution):
    """PyTorch's ``MultivariateNormal``."""

    _event = 1

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        given = [m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of the three matrices may be specified.")
        self._checked, turned = validate_args is not False, wg.matrix_transpose(given[0])
        like = wg.tril(scale_tril) if scale_tril is not None else turned
        self._demand("matrix", given[0], FUNCTIONS["isclose"](given[0], like, atol=1e-6))
        if precision_matrix is not None:
            covariance_matrix = wg.linalg.inv(precision_matrix)
        if scale_tril is None:
            scale_tril = wg.linalg.cholesky(covariance_matrix)
        self.scale_tril = scale_tril
        self._demand("loc", loc, loc == loc)
        self._keep({"loc": wg.broadcast_arrays(loc, scale_tril[..., 0])[0]})
        self._demand("scale_tril", scale_tril, wg.linalg.diagonal(scale_tril) > 0)
        self._half_log_det = wg.sum(wg.log(wg.linalg.diagonal(scale_tril)), axis=-1)

    mean = property(lambda self: self.loc)
    variance = property(lambda self: wg.broadcast_to(wg.sum(self.scale_tril**2, -1), self._shape))

    def draw(self, noise: Any, loc: Any) -> Any:
        apart = self.scale_tril @ wg.expand_dims(noise(wg.randn), axis=-1)
        return loc + wg.squeeze(apart, axis=-1)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        apart = wg.expand_dims(value - self._parameters[0], axis=-1)
        white = wg.linalg.solve_triangular(self.scale_tril, apart, upper=False)
        constant = self._shape[-1] * _LOG_2PI
        return -(wg.sum(white**2, axis=(-2, -1)) + constant) / 2 - self._half_log_det

    def entropy(self) -> Any:
        value = self._shape[-1] * (1 + _LOG_2PI) / 2 + self._half_log_det
        return wg.broadcast_to(value, self.batch_shape)


class Independent(Distribution):
    """A distribution whose last axes of parameters are one event."""

    def __init__(self, base_distribution: Any, reinterpreted_batch_ndims: int) -> None:
        self.base_dist, self._shape = base_distribution, base_distribution._shape
        self._event = base_distribution._event + reinterpreted_batch_ndims
        self._joined = tuple(range(-reinterpreted_batch_ndims, 0))
        self.has_rsample, self._draw = base_distribution.has_rsample, base_distribution._draw  # type: ignore[method-assign]

    mean = property(lambda self: self.base_dist.mean)
    variance = property(lambda self: self.base_dist.variance)

    def log_prob(self, value: Any) -> Any:
        return wg.sum(self.base_dist.log_prob(value), axis=self._joined)

    def entropy(self) -> Any:
        return wg.sum(self.base_dist.entropy(), axis=self._joined)


def _relative(p: Any, q: Any, log_ratio: Any) -> Any:
    return wg.where(p == 0, 0.0, wg.where(q == 0, wg.inf, p * log_ratio))


def kl_divergence(p: Any, q: Any) -> Any:
    """The divergence of a distribution from another of the same class."""
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        return wg.sum(_relative(p.probs, q.probs, p.logits - q.logits), axis=-1)
    if isinstance(p, Bernoulli) and isinstance(q, Bernoulli):
        one = wg.softplus(-q.logits) - wg.softplus(-p.logits)
        zero = wg.softplus(q.logits) - wg.softplus(p.logits)
        return _relative(p.probs, q.probs, one) + _relative(1 - p.probs, 1 - q.probs, zero)
    if isinstance(p, Normal) and isinstance(q, Normal):
        ratio, apart = (p.scale / q.scale) ** 2, ((p.loc - q.loc) / q.scale) ** 2
        return (ratio + apart - 1 - wg.log(ratio)) / 2
    raise NotImplementedError(f"kl_divergence of {type(p).__name__} from {type(q).__name__}")
