"""PyTorch's ``torch.distributions``: those of its tutorials."""

import inspect
import math
from typing import Any

import numpy as np

import wengert as wg
from wengert.backends.generators import host, lock
from wengert.torch.creation import Size
from wengert.torch.naming import FUNCTIONS

#: What the modules within, such as ``distributions.normal``, are of.
FAMILIES = "Bernoulli Beta Categorical Exponential Gamma Laplace MultivariateNormal Normal Uniform"

_LOG_2PI = math.log(2 * math.pi)


class Distribution:
    """What all have: parameters that broadcast, samples, and logarithms of densities."""

    has_rsample = True
    _names: tuple[str, ...] = ()
    _event = 0

    def __init__(self, *args: Any, validate_args: bool | None = None, **named: Any) -> None:
        bound = inspect.signature(type(self)).bind(*args, **named).arguments
        bound = {name: value for name, value in bound.items() if value is not None}
        values: list[Any] = list(bound.values())
        like = next((v.dtype for v in values if isinstance(v, wg.Tensor)), wg.get_default_dtype())
        values = [v if isinstance(v, wg.Tensor) else wg.asarray(v, dtype=like) for v in values]
        self._shape = Size(np.broadcast_shapes(*[v.shape for v in values]))
        for name, value in zip(bound, values, strict=True):
            setattr(self, name, wg.broadcast_to(value, self._shape))
        self._first = values[0]

    batch_shape = property(lambda self: Size(self._shape[: len(self._shape) - self._event]))
    event_shape = property(lambda self: Size(self._shape[len(self._shape) - self._event :]))
    stddev = property(lambda self: wg.sqrt(self.variance))

    def _noise(self, draw: Any, sample_shape: Any) -> Any:
        shape = (*sample_shape, *self._shape)
        return draw(shape, dtype=self._first.dtype, device=self._first.device)

    def _draw(self, sample_shape: Any) -> Any:
        raise NotImplementedError

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw, with derivatives by the parameters."""
        if not self.has_rsample:
            raise NotImplementedError(f"{type(self).__name__} has no rsample; sample() draws")
        return self._draw(tuple(sample_shape))

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw, without derivatives."""
        with wg.no_grad():
            return self._draw(tuple(sample_shape)).detach()


def _family(name: str, parameters: str, *, optional: bool = False, **members: Any) -> Any:
    """A class of distributions, of formulas in its parameters."""
    for key in ("mean", "mode", "variance"):
        if key in members:
            members[key] = property(members[key])
    kind, default = inspect.Parameter, None if optional else inspect.Parameter.empty
    given = [kind(p, kind.POSITIONAL_OR_KEYWORD, default=default) for p in parameters.split()]
    given.append(kind("validate_args", kind.KEYWORD_ONLY, default=None))
    members |= {"__signature__": inspect.Signature(given), "__module__": __name__}
    return type(name, (Distribution,), {"__doc__": f"PyTorch's ``{name}``.", **members})


def _standard_gamma(d: Any, concentration: Any, sample_shape: Any) -> Any:
    if concentration.requires_grad and wg.is_grad_enabled():
        raise NotImplementedError("rsample has no derivative by the concentration; use sample()")
    shape = (*sample_shape, *concentration.shape)
    with lock:
        drawn = host().standard_gamma(np.asarray(concentration.detach().numpy(), float), shape)
    return wg.asarray(drawn, dtype=concentration.dtype, device=concentration.device)


def _laplace_of(d: Any, u: Any) -> Any:
    return d.loc - d.scale * wg.sign(u) * wg.log1p(-2 * wg.abs(u))


def _beta_draw(d: Any, s: Any) -> Any:
    a, b = (_standard_gamma(d, p, s) for p in (d.concentration1, d.concentration0))
    return a / (a + b)


_lgamma, _psi = wg.special.gammaln, wg.special.digamma
Normal = _family(
    "Normal",
    "loc scale",
    mean=lambda d: d.loc,
    mode=lambda d: d.loc,
    variance=lambda d: d.scale**2,
    _draw=lambda d, s: d.loc + d.scale * d._noise(wg.randn, s),
    log_prob=lambda d, x: -(((x - d.loc) / d.scale) ** 2 + _LOG_2PI) / 2 - wg.log(d.scale),
    cdf=lambda d, x: wg.special.ndtr((x - d.loc) / d.scale),
    icdf=lambda d, p: d.loc + d.scale * wg.special.ndtri(p),
    entropy=lambda d: (1 + _LOG_2PI) / 2 + wg.log(d.scale),
)
Laplace = _family(
    "Laplace",
    "loc scale",
    mean=lambda d: d.loc,
    variance=lambda d: 2 * d.scale**2,
    _draw=lambda d, s: _laplace_of(d, d._noise(wg.rand, s) - 0.5),
    log_prob=lambda d, x: -wg.log(2 * d.scale) - wg.abs(x - d.loc) / d.scale,
    icdf=lambda d, p: _laplace_of(d, p - 0.5),
    entropy=lambda d: 1 + wg.log(2 * d.scale),
)
Uniform = _family(
    "Uniform",
    "low high",
    mean=lambda d: (d.low + d.high) / 2,
    variance=lambda d: (d.high - d.low) ** 2 / 12,
    _draw=lambda d, s: d.low + (d.high - d.low) * d._noise(wg.rand, s),
    log_prob=lambda d, x: wg.where((x >= d.low) & (x < d.high), -wg.log(d.high - d.low), -wg.inf),
    entropy=lambda d: wg.log(d.high - d.low),
)
Exponential = _family(
    "Exponential",
    "rate",
    mean=lambda d: 1 / d.rate,
    variance=lambda d: 1 / d.rate**2,
    _draw=lambda d, s: -wg.log1p(-d._noise(wg.rand, s)) / d.rate,
    log_prob=lambda d, x: wg.log(d.rate) - d.rate * x,
    entropy=lambda d: 1 - wg.log(d.rate),
)
Gamma = _family(
    "Gamma",
    "concentration rate",
    mean=lambda d: d.concentration / d.rate,
    variance=lambda d: d.concentration / d.rate**2,
    _draw=lambda d, s: _standard_gamma(d, d.concentration, s) / d.rate,
    log_prob=lambda d, x: (
        d.concentration * wg.log(d.rate)
        + wg.xlogy(d.concentration - 1, x)
        - d.rate * x
        - _lgamma(d.concentration)
    ),
    entropy=lambda d: (
        d.concentration
        - wg.log(d.rate)
        + _lgamma(d.concentration)
        + (1 - d.concentration) * _psi(d.concentration)
    ),
)
Beta = _family(
    "Beta",
    "concentration1 concentration0",
    has_rsample=False,
    mean=lambda d: d.concentration1 / (d.concentration1 + d.concentration0),
    _draw=_beta_draw,
    log_prob=lambda d, x: (
        wg.xlogy(d.concentration1 - 1, x)
        + wg.xlogy(d.concentration0 - 1, 1 - x)
        - wg.special.betaln(d.concentration1, d.concentration0)
    ),
)


# -- of probabilities or logits --------------------------------------------------------------------


def _either(self: Any, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    Distribution.__init__(self, probs, logits)
    if logits is not None:
        self.derive(self.logits)
        return
    wide = self.probs
    if self._event:
        wide = wide / wg.sum(wide, axis=-1, keepdims=True)
    eps = wg.finfo(wide.dtype).eps
    safe = wg.clip(wide, eps, 1 - eps)
    self.probs, self.logits = wide, wg.log(safe) if self._event else wg.logit(safe)


def _bernoulli_of(d: Any, logits: Any) -> None:
    d.probs = wg.expit(logits)


def _categorical_of(d: Any, logits: Any) -> None:
    d.logits = wg.log_softmax(logits, axis=-1)
    d.probs = wg.exp(d.logits)


def _categorical_draw(d: Any, sample_shape: Any) -> Any:
    rows = wg.reshape(d.probs, (-1, d.probs.shape[-1]))
    drawn = FUNCTIONS["multinomial"](rows, math.prod(sample_shape), True)
    return wg.reshape(wg.matrix_transpose(drawn), (*sample_shape, *d.batch_shape))


def _categorical_log_prob(d: Any, value: Any) -> Any:
    shape = np.broadcast_shapes(value.shape, tuple(d.batch_shape))
    places = wg.broadcast_to(wg.astype(value, wg.int64), shape)[..., None]
    logits = wg.broadcast_to(d.logits, (*shape, d.logits.shape[-1]))
    return wg.squeeze(wg.take_along_axis(logits, places, axis=-1), axis=-1)


Bernoulli = _family(
    "Bernoulli",
    "probs logits",
    optional=True,
    has_rsample=False,
    __init__=_either,
    derive=_bernoulli_of,
    mean=lambda d: d.probs,
    variance=lambda d: d.probs * (1 - d.probs),
    _draw=lambda d, s: wg.bernoulli(wg.broadcast_to(d.probs, (*s, *d.probs.shape))),
    log_prob=lambda d, x: x * d.logits - wg.softplus(d.logits),
    entropy=lambda d: wg.softplus(d.logits) - d.probs * d.logits,
)
Categorical = _family(
    "Categorical",
    "probs logits",
    optional=True,
    has_rsample=False,
    _event=1,
    event_shape=Size(()),
    __init__=_either,
    derive=_categorical_of,
    _draw=_categorical_draw,
    log_prob=_categorical_log_prob,
    entropy=lambda d: -wg.sum(d.probs * d.logits, axis=-1),
)


# -- of vectors ------------------------------------------------------------------------------------


class MultivariateNormal(Distribution):
    """PyTorch's ``MultivariateNormal``."""

    _event = 1

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
    ) -> None:
        if precision_matrix is not None:
            covariance_matrix = wg.linalg.inv(precision_matrix)
        if scale_tril is None:
            scale_tril = wg.linalg.cholesky(covariance_matrix)
        self._first, self.scale_tril = loc, scale_tril
        self._shape = Size(np.broadcast_shapes(loc.shape, scale_tril.shape[:-1]))
        self.loc = self.mean = wg.broadcast_to(loc, self._shape)

    covariance_matrix = property(
        lambda self: self.scale_tril @ wg.matrix_transpose(self.scale_tril)
    )
    variance = property(lambda self: wg.sum(self.scale_tril**2, axis=-1))
    _half_log_det = property(
        lambda self: wg.sum(wg.log(wg.linalg.diagonal(self.scale_tril)), axis=-1)
    )

    def _draw(self, sample_shape: Any) -> Any:
        noise = wg.expand_dims(self._noise(wg.randn, sample_shape), axis=-1)
        return self.loc + wg.squeeze(self.scale_tril @ noise, axis=-1)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        apart = wg.expand_dims(value - self.loc, axis=-1)
        white = wg.linalg.solve_triangular(self.scale_tril, apart, upper=False)
        n = self._shape[-1] * _LOG_2PI
        return -(wg.sum(white**2, axis=(-2, -1)) + n) / 2 - self._half_log_det

    def entropy(self) -> Any:
        """The entropy."""
        return self._shape[-1] * (1 + _LOG_2PI) / 2 + self._half_log_det


class Independent(Distribution):
    """A distribution whose last axes of parameters are one event."""

    def __init__(self, base_distribution: Any, reinterpreted_batch_ndims: int) -> None:
        self.base_dist, self._shape = base_distribution, base_distribution._shape
        self._event = base_distribution._event + reinterpreted_batch_ndims
        self._joined = tuple(range(-reinterpreted_batch_ndims, 0))
        self.has_rsample = base_distribution.has_rsample

    def __getattr__(self, name: str) -> Any:
        return getattr(self.base_dist, name)

    def _draw(self, sample_shape: Any) -> Any:
        return self.base_dist._draw(sample_shape)

    def log_prob(self, value: Any) -> Any:
        """The sum over the axes of an event."""
        return wg.sum(self.base_dist.log_prob(value), axis=self._joined)

    def entropy(self) -> Any:
        """The sum over the axes of an event."""
        return wg.sum(self.base_dist.entropy(), axis=self._joined)


def kl_divergence(p: Any, q: Any) -> Any:
    """The divergence of a distribution from another of the same class."""
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        return wg.sum(p.probs * (p.logits - q.logits), axis=-1)
    if isinstance(p, Bernoulli) and isinstance(q, Bernoulli):
        even = wg.softplus(q.logits) - wg.softplus(p.logits)
        return p.probs * (p.logits - q.logits) + even
    if isinstance(p, Normal) and isinstance(q, Normal):
        ratio, apart = (p.scale / q.scale) ** 2, ((p.loc - q.loc) / q.scale) ** 2
        return (ratio + apart - 1 - wg.log(ratio)) / 2
    raise NotImplementedError(f"kl_divergence of {type(p).__name__} from {type(q).__name__}")
