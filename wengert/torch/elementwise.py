"""PyTorch's functions of elements and of matrices."""

from collections.abc import Callable
from typing import Any

import wengert as wg
from wengert.torch.naming import FUNCTIONS, lines, listed, members
from wengert.torch.reductions import along, cast
from wengert.torch.shapes import listing


@listed
def _div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    if rounding_mode not in (None, "floor", "trunc"):
        raise RuntimeError(f"rounding_mode is None, 'trunc' or 'floor', and not {rounding_mode!r}")
    if rounding_mode == "trunc":
        whole = (input - fmod(input, other)) / other
        return wg.astype(wg.round(whole), wg.result_type(input, other))
    return (wg.floor_divide if rounding_mode else wg.divide)(input, other)


@listed
def fmod(input: Any, other: Any) -> Any:
    """Remainder with the dividend's sign."""
    divisor = wg.abs(other) if isinstance(other, wg.Tensor) else abs(other)
    return wg.sign(input) * wg.remainder(wg.abs(input), divisor)


def _scaled(function: Any) -> Callable[..., Any]:
    return lambda input, other, *, alpha=1: function(input, other if alpha == 1 else other * alpha)


@listed
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


# -- linear algebra -------------------------------------------------------------------------------


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
neg=negative negative nextafter not_equal positive pow real reciprocal relu remainder sgn=sign
sigmoid=expit sign signbit sin sinh sqrt square tan tanh true_divide=divide trunc
vdot=vecdot xlogy"""
FUNCTIONS.update(members(wg, _SAME))
FUNCTIONS.update(members(wg.special, "digamma erfinv i0 lgamma=gammaln polygamma sinc"))
FUNCTIONS.update(members(wg.linalg, "cholesky det inverse=inv pinverse=pinv outer ger=outer"))
lines(
    add=_scaled(wg.add),
    addcdiv=lambda input, tensor1, tensor2, *, value=1: input + value * (tensor1 / tensor2),
    addcmul=lambda input, tensor1, tensor2, *, value=1: input + value * (tensor1 * tensor2),
    addmm=_addmm,
    allclose=lambda input, other, rtol=1e-05, atol=1e-08, equal_nan=False: bool(
        wg.all(_isclose(input, other, rtol, atol, equal_nan))
    ),
    baddbmm=_addmm,
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
    log_softmax=_softmax(wg.log_softmax),
    logical_and=_logical(wg.logical_and),
    logical_not=lambda input: wg.logical_not(_bools(input)),
    logical_or=_logical(wg.logical_or),
    logical_xor=_logical(wg.logical_xor),
    logit=lambda input, eps=None: wg.logit(input if eps is None else wg.clip(input, eps, 1 - eps)),
    mm=_product("mm", 2, 2),
    mv=_product("mv", 2, 1),
    round=lambda input, *, decimals=0: (
        wg.round(input) if not decimals else wg.round(input * 10**decimals) / 10**decimals
    ),
    rsqrt=lambda input: 1 / wg.sqrt(input),
    softmax=_softmax(wg.softmax),
    sub=_scaled(wg.subtract),
    subtract=_scaled(wg.subtract),
    tensordot=lambda a, b, dims=2: wg.tensordot(
        a, b, axes=dims if isinstance(dims, int) else (tuple(dims[0]), tuple(dims[1]))
    ),
)
