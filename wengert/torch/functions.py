"""PyTorch's reductions and orders, with pairs and N - 1; functions of elements and matrices."""

from collections import namedtuple
from collections.abc import Callable
from functools import wraps
from typing import Any

import wengert as wg
from wengert.func import tree_map
from wengert.protocols.functions import TABLE
from wengert.torch.naming import FUNCTIONS, lines, members, register
from wengert.torch.shapes import listing, narrow

Pair = namedtuple("Pair", "values indices")


def along(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a Tensor without axes one, which ``dim`` may name, as in PyTorch."""

    @wraps(function)
    def call(input: Any, *args: Any, **options: Any) -> Any:
        if getattr(input, "ndim", 1):
            return function(input, *args, **options)
        found = function(input[None], *args, **options)
        return tree_map(lambda part: wg.reshape(part, ()), found)

    return call


def axes(dim: Any) -> Any:
    """The axes of a reduction: all of them for None, and in PyTorch for an empty list too."""
    return (tuple(dim) or None) if isinstance(dim, list | tuple) else dim


def _choose(x: Any, dim: int, places: Any, keepdim: bool = True) -> Any:
    """The values at one place of each line, and the places: the slope is of that place alone."""
    found = Pair(wg.take_along_axis(x, places, axis=dim), places)
    return found if keepdim else Pair(*[wg.squeeze(part, axis=dim) for part in found])


def _extreme(place: Any, whole: Any, both: Any) -> Callable[..., Any]:
    @along
    def pair(input: Any, dim: int, keepdim: bool) -> Any:
        return _choose(input, dim, place(input.detach(), axis=dim, keepdims=True), keepdim)

    def extreme(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        other = dim if isinstance(dim, wg.Tensor) else other
        if other is not None:
            return both(input, other)
        return whole(input) if dim is None else pair(input, dim, keepdim)

    return extreme


@register
@along
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Sort, with NaN as the largest number, as in PyTorch in both directions."""
    x = input.detach()
    if not descending:
        return wg.argsort(x, axis=dim, stable=True)
    order = wg.flip(wg.argsort(wg.flip(x, axis=dim), axis=dim, stable=True), axis=dim)
    return x.shape[dim] - 1 - order


@register
@along
def _median(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The lower of two middle values, or NaN where there is one."""
    if dim is None:
        return _median(wg.reshape(input, (-1,)), 0).values
    order = argsort(input, dim)
    n, nans = order.shape[dim], wg.count_nonzero(input != input, axis=dim, keepdims=True)
    middle = wg.where(nans > 0, n - nans, (n - 1) // 2)
    return _choose(input, dim, wg.take_along_axis(order, middle, axis=dim), keepdim)


@register
@along
def _mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """The least of the most frequent values, at the last of its places."""
    x = wg.moveaxis(input.detach(), dim, -1)
    counts, order = wg.sum(x[..., None] == x[..., None, :], axis=-1), argsort(x)
    first = wg.argmax(wg.take_along_axis(counts, order, axis=-1), axis=-1, keepdims=True)
    last = first + wg.max(counts, axis=-1, keepdims=True) - 1
    places = wg.moveaxis(wg.take_along_axis(order, last, axis=-1), -1, dim)
    return _choose(input, dim, places, keepdim)


def _running(place: Any) -> Callable[..., Any]:
    @along
    def running(input: Any, dim: int) -> Any:
        x = wg.moveaxis(input.detach(), dim, -1)
        lasts = [i - place(wg.flip(x[..., : i + 1], axis=-1), axis=-1) for i in range(x.shape[-1])]
        return _choose(input, dim, wg.moveaxis(wg.stack(lasts, axis=-1), -1, dim))

    return running


def _moment(function: Any) -> Callable[..., Any]:
    def moment(input: Any, dim: Any, keepdim: bool, *divisors: Any) -> Any:
        over, by = (None, dim) if isinstance(dim, bool) else (axes(dim), True)
        taken = next(d for d in (*divisors, by) if d is not None)
        return function(input, axis=over, correction=float(taken), keepdims=keepdim)

    return along(
        lambda input, dim=None, unbiased=None, keepdim=False, *, correction=None, ddof=None: moment(
            input, dim, keepdim, correction, ddof, unbiased
        )
    )


def cast(x: Any, dtype: Any) -> Any:
    """A Tensor of a dtype, or as it is for None."""
    return x if dtype is None else wg.astype(x, dtype, copy=False)


def _sum(function: Any, x: Any, dtype: Any, **options: Any) -> Any:
    """A reduction of a dtype; by default int64 for uint64, and uint8 for truths of uint8."""
    result = function(cast(x, dtype), **options)
    if dtype is None and x.dtype is wg.uint8:
        dtype = {wg.uint64: wg.int64, wg.bool: wg.uint8}.get(result.dtype)
    return cast(result, dtype)


@register
@along
def _norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    input = cast(input, dtype)
    if p == "nuc":
        moved = input if dim is None else wg.moveaxis(input, tuple(dim), (-2, -1))
        return wg.linalg.matrix_norm(moved, ord="nuc", keepdims=keepdim)
    order = 2 if p in ("fro", None) else float(p)
    return wg.linalg.vector_norm(input, ord=order, axis=axes(dim), keepdims=keepdim)


@register
def _bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    lengths = tuple(input.shape), tuple((input if weights is None else weights).shape)
    if input.ndim != 1 or lengths[0] != lengths[1] or bool(wg.any(input < 0)):
        raise RuntimeError("bincount takes 1-d integers of 0 or more, and as many weights")
    n = max(int(wg.max(input)) + 1 if input.size else 0, minlength)
    add = wg.ones_like(input, dtype=wg.int64) if weights is None else weights
    add = add if weights is None or add.dtype in (wg.float32, wg.float64) else add.double()
    return wg.zeros((n,), dtype=add.dtype, device=add.device).at(input).add(add)


@register
def _unique(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    found = wg.unique_all(input)
    order = wg.argsort(found.values)
    back = wg.reshape(wg.argsort(order)[wg.reshape(found.inverse_indices, (-1,))], input.shape)
    more = [back] * return_inverse + [found.counts[order]] * return_counts
    return (found.values[order], *more) if more else found.values[order]


def _reduction(function: Any) -> Callable[..., Any]:
    @along
    def reduction(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        return _sum(function, input, dtype, axis=axes(dim), keepdims=keepdim)

    return reduction


def _accumulation(function: Any) -> Callable[..., Any]:
    return along(lambda input, dim, *, dtype=None: _sum(function, input, dtype, axis=dim))


_REDUCED = "all amax=max amin=min any argmax argmin logsumexp mean prod sum"
_ACCUMULATED = "cumprod=cumulative_prod cumsum=cumulative_sum"
lines(
    **{name: _reduction(function) for name, function in members(wg, _REDUCED)},
    **{name: _reduction(TABLE[name]) for name in ("nanmean", "nansum")},
    **{name: _accumulation(function) for name, function in members(wg, _ACCUMULATED)},
    **{name: _moment(function) for name, function in members(wg, "std var")},
    count_nonzero=along(lambda input, dim=None: wg.count_nonzero(input, axis=axes(dim))),
    cummax=_running(wg.argmax),
    cummin=_running(wg.argmin),
    diff=lambda input, n=1, dim=-1: wg.diff(input, axis=dim, n=n),
    kthvalue=along(
        lambda input, k, dim=-1, keepdim=False: _choose(
            input, dim, narrow(argsort(input, dim), dim, k - 1, 1), keepdim
        )
    ),
    max=_extreme(wg.argmax, wg.max, wg.maximum),
    min=_extreme(wg.argmin, wg.min, wg.minimum),
    quantile=lambda input, q, dim=None, keepdim=False, *, interpolation="linear": wg.quantile(
        input, q, axis=dim, keepdims=keepdim, method=interpolation
    ),
    sort=along(
        lambda input, dim=-1, descending=False, stable=False: _choose(
            input, dim, argsort(input, dim, descending)
        )
    ),
    topk=along(
        lambda input, k, dim=-1, largest=True, sorted=True: _choose(
            input, dim, narrow(argsort(input, dim, largest), dim, 0, k)
        )
    ),
)


@register
def _div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    if rounding_mode not in (None, "floor", "trunc"):
        raise RuntimeError(f"rounding_mode is None, 'trunc' or 'floor', and not {rounding_mode!r}")
    if rounding_mode == "trunc":
        whole = (input - fmod(input, other)) / other
        return wg.astype(wg.round(whole), wg.result_type(input, other))
    return (wg.floor_divide if rounding_mode else wg.divide)(input, other)


@register
def fmod(input: Any, other: Any) -> Any:
    """Remainder with the dividend's sign."""
    other = wg.abs(other) if isinstance(other, wg.Tensor) else abs(other)
    return wg.where(input < 0, -wg.remainder(-input, other), wg.remainder(input, other))


def _scale(function: Any) -> Callable[..., Any]:
    def call(input: Any, other: Any, *, alpha: Any = 1) -> Any:
        if alpha == 1:
            return function(input, other)
        kind = wg.result_type(input, other)
        alpha = bool(alpha) if kind is wg.bool else alpha
        if isinstance(other, wg.Tensor):
            return function(input, wg.astype(other, kind, copy=False) * alpha)
        return function(input, bool(other and alpha) if kind is wg.bool else other * alpha)

    return call


@register
def _isclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    near = (wg.abs(input - other) <= atol + rtol * wg.abs(other)) & wg.isfinite(other)
    near = near | (input == other)
    return near | (wg.isnan(input) & wg.isnan(other)) if equal_nan else near


def _softmax(function: Any) -> Callable[..., Any]:
    return along(lambda input, dim, dtype=None: function(cast(input, dtype), axis=dim))


def _bools(x: Any) -> Any:
    return x if not isinstance(x, wg.Tensor) or x.dtype is wg.bool else x != 0


def _logical(function: Any) -> Callable[..., Any]:
    return lambda input, other: function(_bools(input), _bools(other))


def _product(name: str, left: int, right: int) -> Callable[..., Any]:
    def product(input: Any, mat2: Any) -> Any:
        if (input.ndim, mat2.ndim) != (left, right):
            raise RuntimeError(
                f"{name} takes Tensors of {left} and {right} dimensions, and not of {input.ndim} "
                f"and {mat2.ndim}; matmul takes any"
            )
        return wg.matmul(input, mat2)

    return product


def _addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return input * beta + wg.matmul(mat1, mat2) * alpha


_SAME = """abs absolute=abs acos acosh arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh
arctan=atan arctan2=atan2 arctanh=atanh asin asinh atan atan2 atanh bitwise_and bitwise_left_shift
bitwise_not=bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil clamp=clip clip copysign
cos cosh divide eq=equal erf erfc exp expit expm1 fix=trunc floor floor_divide ge=greater_equal
greater greater_equal gt=greater hypot imag isfinite isinf isnan le=less_equal less less_equal log
log10 log1p log2 logaddexp lt=less matmul maximum minimum mul=multiply multiply ne=not_equal
neg=negative negative nextafter not_equal pow real reciprocal relu remainder
sigmoid=expit signbit sin sinh sqrt square tan tanh true_divide=divide trunc vdot=vecdot xlogy"""
FUNCTIONS.update(members(wg, _SAME))
FUNCTIONS.update(members(wg.special, "digamma erfinv i0 lgamma=gammaln polygamma sinc"))
FUNCTIONS.update(members(wg.linalg, "cholesky det inverse=inv pinverse=pinv outer ger=outer trace"))
lines(
    **{n: _scale(f) for n, f in members(wg, "add sub=subtract subtract")},
    **{n: _logical(f) for n, f in members(wg, "logical_and logical_or logical_xor")},
    **{n: _softmax(f) for n, f in members(wg, "log_softmax softmax")},
    **dict.fromkeys(("sgn", "sign"), lambda input: wg.sign(wg.where(input == input, input, False))),
    **dict.fromkeys(("addmm", "baddbmm"), _addmm),
    addcdiv=lambda input, tensor1, tensor2, *, value=1: input + value * (tensor1 / tensor2),
    addcmul=lambda input, tensor1, tensor2, *, value=1: input + value * (tensor1 * tensor2),
    allclose=lambda input, other, rtol=1e-05, atol=1e-08, equal_nan=False: bool(
        wg.all(_isclose(input, other, rtol, atol, equal_nan))
    ),
    bmm=_product("bmm", 3, 3),
    cdist=lambda x1, x2, p=2.0: wg.linalg.vector_norm(
        wg.expand_dims(x1, axis=-2) - wg.expand_dims(x2, axis=-3), axis=-1, ord=p
    ),
    clamp_max=lambda input, max: wg.clip(input, max=max),
    clamp_min=lambda input, min: wg.clip(input, min=min),
    conj=lambda input: wg.conj(input) if input.dtype.complex else input,
    cross=lambda input, other, dim=None: wg.linalg.cross(
        input, other, axis=list(input.shape).index(3) if dim is None else dim
    ),
    dot=_product("dot", 1, 1),
    einsum=lambda equation, *operands: wg.einsum(equation, *listing(operands)),
    equal=lambda input, other: input.shape == other.shape and bool(wg.all(wg.equal(input, other))),
    exp2=lambda input: wg.pow(2.0, input),
    is_complex=lambda input: input.dtype.complex,
    is_floating_point=lambda input: input.dtype.kind == "real floating",
    is_tensor=lambda obj: isinstance(obj, wg.Tensor),
    lerp=lambda input, end, weight: input + weight * (end - input),
    logical_not=lambda input: wg.logical_not(_bools(input)),
    logit=lambda input, eps=None: wg.logit(input if eps is None else wg.clip(input, eps, 1 - eps)),
    mm=_product("mm", 2, 2),
    mv=_product("mv", 2, 1),
    positive=lambda input: wg.positive(input) if input.dtype is wg.bool else input,
    round=lambda input, *, decimals=0: (
        wg.round(input) if not decimals else wg.round(input * 10**decimals) / 10**decimals
    ),
    rsqrt=lambda input: 1 / wg.sqrt(input),
    tensordot=lambda a, b, dims=2: wg.tensordot(
        a, b, axes=dims if isinstance(dims, int) else (tuple(dims[0]), tuple(dims[1]))
    ),
)
