"""The four transforms behind all others: the primitives, their derivatives, what they take."""

from collections.abc import Sequence
from operator import index
from typing import Any, Final, Literal

from wengert.backends import dtype_of
from wengert.interpreters.batching import shifted
from wengert.interpreters.namespaces import differentiable
from wengert.ops.axes import as_axes, as_axis, at_axis, raw_array, shape_of
from wengert.ops.data_type import astype
from wengert.ops.indexing import getitem
from wengert.ops.manipulation import concat
from wengert.tape.calling import single
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor, wrapped

Norm = Literal["backward", "ortho", "forward"]
Axes = tuple[int, ...]

#: The norm of a transform to that of the inverse transform which is its adjoint: that both have the
#: factor, or neither.
ADJOINT: Final[dict[str, Norm]] = {
    "backward": "forward",
    "ortho": "ortho",
    "forward": "backward",
}

# -- the primitives ------------------------------------------------------------------------------


def _complex_rule(inverse: str) -> Any:
    def rule(xp: Any, g: Any, axes: Axes, norm: str) -> Any:
        return getattr(xp.fft, inverse)(g, axes=axes, norm=ADJOINT[norm])

    return rule


def _transform_batch(call: Any, x: Any, *, axes: Any, norm: str = "backward", **s: Any) -> Any:
    return call.run(x, axes=shifted(axes, call.rank(0)), norm=norm, **s)


forward = single(
    Primitive(
        "fft.fftn",
        ["x"],
        {"x": _complex_rule("ifftn")},
        linear="together",
        view=None,
        batch=_transform_batch,
    )
)
inverse = single(
    Primitive(
        "fft.ifftn",
        ["x"],
        {"x": _complex_rule("fftn")},
        linear="together",
        view=None,
        batch=_transform_batch,
    )
)

# Each number of half a spectrum stands for two of the whole, itself and its conjugate, but for the
# first, and the last one of an even length, which stand for themselves alone.


def _scale_pairs(xp: Any, spectrum: Any, axis: int, n: int, factor: float) -> Any:
    """Multiply those numbers of half a spectrum that stand for two."""
    length = spectrum.shape[axis]
    doubled = xp.arange(0, 2 * length, 2, dtype=xp.int64, device=xp.device(spectrum))
    pairs = xp.remainder(doubled, n) != 0
    pairs = xp.reshape(pairs, (length,) + (1,) * (len(spectrum.shape) - axis - 1))
    return xp.where(pairs, spectrum * factor, spectrum)


def _rfftn_rule(xp: Any, g: Any, x_shape: tuple[int, ...], axes: Axes, norm: str) -> Any:
    lengths = tuple([x_shape[i] for i in axes])
    g = _scale_pairs(xp, g, axes[-1], lengths[-1], 0.5)
    return xp.fft.irfftn(g, s=lengths, axes=axes, norm=ADJOINT[norm])


def _irfftn_rule(xp: Any, g: Any, s: tuple[int, ...], axes: Axes, norm: str) -> Any:
    spectrum = xp.fft.rfftn(g, axes=axes, norm=ADJOINT[norm])
    return _scale_pairs(xp, spectrum, axes[-1], s[-1], 2.0)


from_real = single(
    Primitive(
        "fft.rfftn",
        ["x"],
        {"x": _rfftn_rule},
        linear="together",
        batch=_transform_batch,
    )
)
_irfftn = single(
    Primitive(
        "fft.irfftn",
        ["x"],
        {"x": _irfftn_rule},
        linear="together",
        batch=_transform_batch,
    )
)

# -- what transforms take ------------------------------------------------------------------------


def operand(x: Any, function: str, *, real: bool) -> Tensor:
    """A Tensor of the real or complex dtype that a transform needs."""
    shape_of(x)
    dtype = dtype_of(raw_array(x).dtype)
    if not dtype.inexact or (real and dtype.complex):
        wanted = "a real floating" if real else "a floating or complex"
        raise TypeError(f"fft.{function} needs {wanted} dtype, not {dtype.name}")
    if real:
        # There are no half-precision transforms.
        return astype(x, "float32") if dtype.narrow else wrapped(x)
    if dtype.complex:
        return wrapped(x)
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


def _geometry(
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


def _fitted(x: Tensor, lengths: Sequence[int], axes: Axes) -> Tensor:
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


def transform(
    run: Any, name: str, x: Any, s: Sequence[int] | None, axes: Any, norm: Any, *, real: bool
) -> Tensor:
    """A transform whose result has the lengths of what it is given."""
    check_norm(norm, name)
    x = operand(x, name, real=real)
    lengths, over = _geometry(x, s, axes, name)
    if real and not over:
        raise ValueError(f"fft.{name} needs one axis at least")
    lengths = [x.shape[i] if n == -1 else n for n, i in zip(lengths, over, strict=True)]
    for n in lengths:
        check_length(n, name)
    return run(_fitted(x, lengths, over), axes=over, norm=norm)  # type: ignore[no-any-return]


def to_real(name: str, x: Any, s: Sequence[int] | None, axes: Any, norm: Any) -> Tensor:
    """A transform of half a spectrum to real numbers."""
    check_norm(norm, name)
    x = operand(x, name, real=False)
    lengths, over = _geometry(x, s, axes, name)
    if not over:
        raise ValueError(f"fft.{name} needs one axis at least")
    last = lengths[-1]
    lengths = [x.shape[i] if n == -1 else n for n, i in zip(lengths, over, strict=True)]
    lengths[-1] = 2 * (lengths[-1] - 1) if last == -1 else last
    for n in lengths:
        check_length(n, name)
    x = _fitted(x, (*lengths[:-1], lengths[-1] // 2 + 1), over)
    return _irfftn(x, s=tuple(lengths), axes=over, norm=norm)  # type: ignore[no-any-return]


def over_one(x: Any, n: int | None, axis: int, function: str) -> tuple[Any, tuple[int, ...]]:
    """``s`` and ``axes`` of a transform over one axis."""
    if n is not None:
        check_length(index(n), function)
    return None if n is None else (n,), (as_axis(axis, len(shape_of(x))),)
