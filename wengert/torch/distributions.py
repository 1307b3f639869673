"""PyTorch's ``torch.distributions``: those of its tutorials."""

import inspect
import math
from typing import Any

import numpy as np

import wengert as wg
from wengert.backends.generators import host, lock
from wengert.tape.node import is_lifted
from wengert.torch.creation import Size
from wengert.torch.naming import FUNCTIONS

_LOG_2PI = math.log(2 * math.pi)
#: What the modules within, such as ``distributions.normal``, are of.
FAMILIES = "Bernoulli Beta Categorical Exponential Gamma Laplace MultivariateNormal Normal Uniform"


class Distribution:
    """What all have: parameters that broadcast, samples, and logarithms of densities."""

    has_rsample, _event = True, 0  # the axes of a value
    _within: Any = lambda self, value: value == value
    _draw: Any  # numbers, by a function that calls one of `wengert.random` with their shape
    _log: Any  # the logarithm of the density at a value that was checked
    batch_shape = property(lambda self: Size(self._shape[: len(self._shape) - self._event]))
    event_shape = property(lambda self: Size(self._shape[len(self._shape) - self._event :]))
    stddev = property(lambda self: wg.sqrt(self.variance))

    def __init_subclass__(cls, parameters: str = "") -> None:
        """Take the names of parameters, by position or by name; a ``=`` marks those left out."""
        cls.__doc__ = cls.__doc__ or f"PyTorch's ``{cls.__name__}``."
        kind, words = inspect.Parameter, [*parameters.split(), "validate_args="]
        both, none = kind.POSITIONAL_OR_KEYWORD, {True: None, False: kind.empty}
        given = [kind(w.strip("="), both, default=none["=" in w]) for w in words]
        if parameters:
            cls.__signature__ = inspect.Signature(given)  # type: ignore[attr-defined]

    def __init__(self, *args: Any, **named: Any) -> None:
        given = inspect.signature(type(self)).bind(*args, **named).arguments
        self._keep(given.pop("validate_args", None), **given)

    def _keep(self, checked: Any, **given: Any) -> None:
        """Broadcast the parameters against each other, and demand that they are in their range."""
        like = next((p for p in given.values() if isinstance(p, wg.Tensor)), wg.zeros(()))
        where = {"dtype": like.dtype, "device": like.device}
        tensors = wg.broadcast_arrays(
            *[p if isinstance(p, wg.Tensor) else wg.asarray(p, **where) for p in given.values()]
        )
        self._checked = checked is not False
        self._like, self._shape = tensors[0], Size(tensors[0].shape)
        for name, p in zip(given, tensors, strict=True):
            setattr(self, name, p)
            least = tensors[0] if name == "high" else 0
            self._demand(name, p, p == p if name in ("loc", "low") else p > least)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def _demand(self, what: str, given: Any, holds: Any) -> None:
        """Raise if something does not hold, unless a trace follows it."""
        if self._checked and not is_lifted(holds._array) and not bool(wg.all(holds)):
            raise ValueError(f"{type(self).__name__}: {what} is not in its range: {given}")

    def rsample(self, sample_shape: Any = ()) -> Any:
        if not self.has_rsample and wg.is_grad_enabled():
            raise NotImplementedError(f"{type(self).__name__} has no rsample; sample() draws")
        shape, like = (*sample_shape, *self._shape), self._like
        return self._draw(lambda draw: draw(shape, dtype=like.dtype, device=like.device))

    def sample(self, sample_shape: Any = ()) -> Any:
        with wg.no_grad():
            return self.rsample(sample_shape).detach()

    def log_prob(self, value: Any) -> Any:
        self._demand("value", value, self._within(wg.asarray(value)))
        return self._log(value)


class Normal(Distribution, parameters="loc scale"):
    mean = property(lambda self: self.loc)
    variance = property(lambda self: self.scale**2)
    entropy = lambda self: (1 + _LOG_2PI) / 2 + wg.log(self.scale)
    _draw = lambda self, noise: self.loc + self.scale * noise(wg.randn)

    def _log(self, x: Any) -> Any:
        return -(((x - self.loc) / self.scale) ** 2 + _LOG_2PI) / 2 - wg.log(self.scale)


class Laplace(Distribution, parameters="loc scale"):
    entropy = lambda self: 1 + wg.log(2 * self.scale)
    _log = lambda self, x: -wg.log(2 * self.scale) - wg.abs(x - self.loc) / self.scale

    def _draw(self, noise: Any) -> Any:
        u = noise(wg.rand) - 0.5
        return self.loc - self.scale * wg.sign(u) * wg.log1p(-2 * wg.abs(u))


class Uniform(Distribution, parameters="low high"):
    entropy = lambda self: wg.log(self.high - self.low)
    _within = lambda self, x: (x >= self.low) & (x <= self.high)
    _draw = lambda self, noise: self.low + (self.high - self.low) * noise(wg.rand)
    _log = lambda self, x: wg.where((x >= self.low) & (x < self.high), -self.entropy(), -wg.inf)


class Exponential(Distribution, parameters="rate"):
    entropy = lambda self: 1 - wg.log(self.rate)
    _within = lambda self, x: x >= 0
    _draw = lambda self, noise: -wg.log1p(-noise(wg.rand)) / self.rate
    _log = lambda self, x: wg.log(self.rate) - self.rate * x


def _gamma(noise: Any, concentration: Any) -> Any:
    if concentration.requires_grad and wg.is_grad_enabled():
        raise NotImplementedError("rsample has no derivative by the concentration; use sample()")
    with lock:
        numbers, shape = host().standard_gamma, noise(wg.empty).shape
        drawn = numbers(np.asarray(concentration.detach().to("cpu").numpy(), float), shape)
    return wg.asarray(drawn, dtype=concentration.dtype, device=concentration.device)


class Gamma(Distribution, parameters="concentration rate"):
    _within = lambda self, x: x >= 0
    _draw = lambda self, noise: _gamma(noise, self.concentration) / self.rate

    def _log(self, x: Any) -> Any:
        a, b = self.concentration, self.rate
        return a * wg.log(b) + wg.xlogy(a - 1, x) - b * x - wg.special.gammaln(a)


class Beta(Distribution, parameters="concentration1 concentration0"):
    has_rsample = False
    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    _within = lambda self, x: (x >= 0) & (x <= 1)

    def _draw(self, noise: Any) -> Any:
        first, second = _gamma(noise, self.concentration1), _gamma(noise, self.concentration0)
        return first / (first + second)

    def _log(self, x: Any) -> Any:
        a, b = self.concentration1, self.concentration0
        return wg.xlogy(a - 1, x) + wg.xlogy(b - 1, 1 - x) - wg.special.betaln(a, b)


class _Discrete(Distribution):
    has_rsample = False

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = probs if logits is None else logits
        if not isinstance(given, wg.Tensor):
            given = wg.asarray(given, dtype=wg.get_default_dtype())
        self._checked, self._like = validate_args is not False, given
        self._shape = Size(given.shape)
        if logits is None:
            self.probs = p = given / wg.sum(given, -1, keepdims=True) if self._event else given
            eps = wg.finfo(p.dtype).eps
            self.logits = (wg.log if self._event else wg.logit)(wg.clip(p, eps, 1 - eps))
            self._demand("probs", given, (given >= 0) & (p <= 1))
        else:
            self.logits = wg.log_softmax(given, axis=-1) if self._event else given
            self.probs = wg.exp(self.logits) if self._event else wg.expit(given)
            self._demand("logits", given, self.logits == self.logits)


class Bernoulli(_Discrete):
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
    entropy = lambda self: wg.softplus(self.logits) - self.probs * self.logits
    _within = lambda self, value: (value == 0) | (value == 1)
    _log = lambda self, value: value * self.logits - wg.softplus(self.logits)
    _draw = lambda self, noise: wg.astype(noise(wg.rand) < self.probs, self._like.dtype)


class Categorical(_Discrete):
    _event = 1
    event_shape = Size(())
    _within = lambda self, x: (x >= 0) & (x < self._shape[-1]) & (x % 1 == 0)

    def _draw(self, noise: Any) -> Any:
        shape = noise(wg.empty).shape
        wide = wg.reshape(wg.broadcast_to(self.probs, shape), (-1, self._shape[-1]))
        return wg.reshape(FUNCTIONS["multinomial"](wide, 1), shape[:-1])

    def _log(self, value: Any) -> Any:
        shape = np.broadcast_shapes(value.shape, tuple(self.batch_shape))
        places = wg.broadcast_to(wg.astype(value, wg.int64), shape)[..., None]
        logits = wg.broadcast_to(self.logits, (*shape, self._shape[-1]))
        return wg.take_along_axis(logits, places, axis=-1)[..., 0]

    def entropy(self) -> Any:
        least = wg.finfo(self.logits.dtype).min
        return -wg.sum(self.probs * wg.clip(self.logits, least), axis=-1)


class MultivariateNormal(
    Distribution, parameters="loc covariance_matrix= precision_matrix= scale_tril="
):
    _event = 1
    mean = property(lambda self: self.loc)
    _draw = lambda self, noise: self.loc + (self.scale_tril @ noise(wg.randn)[..., None])[..., 0]

    def _keep(self, checked: Any, **given: Any) -> None:
        loc, matrices = given.pop("loc"), {k: m for k, m in given.items() if m is not None}
        if len(matrices) != 1:
            raise ValueError("Exactly one of the three matrices may be specified.")
        ((name, matrix),) = matrices.items()
        like = wg.tril(matrix) if name == "scale_tril" else wg.matrix_transpose(matrix)
        whole = wg.linalg.inv(matrix) if name == "precision_matrix" else matrix
        self.scale_tril = scale_tril = matrix if name == "scale_tril" else wg.linalg.cholesky(whole)
        super()._keep(checked, loc=wg.broadcast_arrays(loc, scale_tril[..., 0])[0])
        self._demand("matrix", matrix, FUNCTIONS["isclose"](matrix, like, atol=1e-6))
        self._demand("scale_tril", scale_tril, wg.linalg.diagonal(scale_tril) > 0)
        self._half_log_det = wg.sum(wg.log(wg.linalg.diagonal(scale_tril)), axis=-1)

    def _log(self, value: Any) -> Any:
        apart = (value - self.loc)[..., None]
        white = wg.linalg.solve_triangular(self.scale_tril, apart, upper=False)
        return -wg.sum(white**2 + _LOG_2PI, axis=(-2, -1)) / 2 - self._half_log_det

    def entropy(self) -> Any:
        value = self._shape[-1] * (1 + _LOG_2PI) / 2 + self._half_log_det
        return wg.broadcast_to(value, self.batch_shape)


class Independent(Distribution):
    """A distribution whose last axes of parameters are one event."""

    def __init__(self, base_distribution: Any, reinterpreted_batch_ndims: int) -> None:
        self.base_dist, self._shape = base_distribution, base_distribution._shape
        self._event = base_distribution._event + reinterpreted_batch_ndims
        self._joined = tuple(range(-reinterpreted_batch_ndims, 0))

    mean = property(lambda self: self.base_dist.mean)
    rsample = lambda self, sample_shape=(): self.base_dist.rsample(sample_shape)
    sample = lambda self, sample_shape=(): self.base_dist.sample(sample_shape)
    log_prob = lambda self, value: wg.sum(self.base_dist.log_prob(value), axis=self._joined)
    entropy = lambda self: wg.sum(self.base_dist.entropy(), axis=self._joined)


def kl_divergence(p: Any, q: Any) -> Any:
    """The divergence of a distribution from another of the same class."""
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        terms = wg.where(q.probs == 0, wg.inf, p.probs * (p.logits - q.logits))
        return wg.sum(wg.where(p.probs == 0, 0.0, terms), axis=-1)
    if isinstance(p, Normal) and isinstance(q, Normal):
        ratio, apart = (p.scale / q.scale) ** 2, ((p.loc - q.loc) / q.scale) ** 2
        return (ratio + apart - 1 - wg.log(ratio)) / 2
    raise NotImplementedError(f"kl_divergence of {type(p).__name__} from {type(q).__name__}")
