"""Arguments and batch rule that the transforms share."""

from collections.abc import Sequence
from operator import index
from typing import Any, Final, Literal

from wengert.backends import dtype_of
from wengert.interpreters.batching import shift_axes
from wengert.interpreters.namespaces import differentiable
from wengert.ops.axes import as_axes, as_axis, at_axis, raw_array, shape_of
from wengert.ops.data_type import astype
from wengert.ops.indexing import getitem
from wengert.ops.manipulation import concat
from wengert.tape.tensor import Tensor, wrap

Norm = Literal["backward", "ortho", "forward"]
Axes = tuple[int, ...]

#: The norm of a transform to that of the inverse transform which is its adjoint: that both have the
#: factor, or neither.
ADJOINT: Final[dict[str, Norm]] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def transform_batch(call: Any, x: Any, *, axes: Any, norm: str = "backward", **s: Any) -> Any:
    """The batch rule of all transforms."""
    return call.run(x, axes=shift_axes(axes, call.rank(0)), norm=norm, **s)


# -- arguments of transforms ---------------------------------------------------------------------


def operand(x: Any, function: str, *, real: bool) -> Tensor:
    """A Tensor of the real or complex dtype that a transform needs."""
    shape_of(x)
    dtype = dtype_of(raw_array(x).dtype)
    if not dtype.inexact or (real and dtype.complex):
        wanted = "a real floating" if real else "a floating or complex"
        raise TypeError(f"fft.{function} needs {wanted} dtype, not {dtype.name}")
    if real:
        # There are no half-precision transforms.
        return astype(x, "float32") if dtype.narrow else wrap(x)
    if dtype.complex:
        return wrap(x)
    return astype(x, "complex128" if dtype.itemsize == 8 else "complex64")


def check_norm(norm: Any, function: str) -> None:
    """Raise for an unknown norm."""
    if not isinstance(norm, str) or norm not in ADJOINT:
        raise ValueError(
            f"fft.{function}: norm is 'backward', 'ortho' or 'forward', and not {norm!r}"
        )


def check_length(n: int, function: str) -> None:
    """Raise for a length below 1."""
    if n < 1:
        raise ValueError(f"fft.{function} needs a length of 1 at least, and it is {n}")


def geometry(
    x: Tensor, s: Sequence[int] | None, axes: Sequence[int] | None, function: str
) -> tuple[list[int], Axes]:
    """The lengths asked for, -1 where it is the array's own, and the axes."""
    ndim = x.ndim
    if axes is None:
        over = tuple(range(0 if s is None else ndim - len(s), ndim))
        if over and over[0] < 0:
            raise ValueError(f"fft.{function}: s has {len(over)} lengths, and x {ndim} axes")
    else:
        over = as_axes(axes, ndim)
    if s is None:
        return [-1] * len(over), over
    if len(s) != len(over):
        raise ValueError(f"fft.{function}: s has {len(s)} lengths for {len(over)} axes")
    return [index(n) for n in s], over


def fit(x: Tensor, lengths: Sequence[int], axes: Axes) -> Tensor:
    """``x`` cut or filled with zeros, at the end of its axes, to given lengths."""
    for axis, n in zip(axes, lengths, strict=True):
        given = x.shape[axis]
        if n < given:
            x = getitem(x, at_axis(axis, slice(0, n), ...))
        elif n > given:
            more = (*x.shape[:axis], n - given, *x.shape[axis + 1 :])
            blank = differentiable.zeros(more, dtype=x.dtype, device=differentiable.device(x))
            x = concat([x, blank], axis=axis)
    return x


def prepare(
    name: str, x: Any, s: Any, axes: Any, norm: Any, *, real: bool = False, half: bool = False
) -> tuple[Tensor, list[int], Axes]:
    """The operand, the lengths and the axes of a transform: of reals, or of half a spectrum."""
    check_norm(norm, name)
    x = operand(x, name, real=real)
    asked, over = geometry(x, s, axes, name)
    if (real or half) and not over:
        raise ValueError(f"fft.{name} needs one axis at least")
    lengths = [x.shape[i] if n == -1 else n for n, i in zip(asked, over, strict=True)]
    if half and asked[-1] == -1:
        lengths[-1] = 2 * (lengths[-1] - 1)
    for n in lengths:
        check_length(n, name)
    return x, lengths, over


def transform(
    run: Any, name: str, x: Any, s: Sequence[int] | None, axes: Any, norm: Any, *, real: bool
) -> Tensor:
    """A transform whose result has the lengths of what it is given."""
    x, lengths, over = prepare(name, x, s, axes, norm, real=real)
    return run(fit(x, lengths, over), axes=over, norm=norm)  # type: ignore[no-any-return]


def over_one(x: Any, n: int | None, axis: int, function: str) -> tuple[Any, tuple[int, ...]]:
    """``s`` and ``axes`` of a transform over one axis."""
    if n is not None:
        check_length(index(n), function)
    return None if n is None else (n,), (as_axis(axis, len(shape_of(x))),)
