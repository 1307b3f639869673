"""PyTorch's functions of shapes and places."""

import math
from typing import Any

import wengert as wg
from wengert.ops import methods
from wengert.ops.axes import as_axis, at_axis
from wengert.protocols.shapes import coordinates
from wengert.tape.node import is_lifted
from wengert.torch.naming import FUNCTIONS, lines, members, register


def listing(given: tuple[Any, ...]) -> Any:
    """Arguments that are given one by one, or as one tuple or list."""
    return given[0] if len(given) == 1 and isinstance(given[0], tuple | list) else given


def lengths(given: tuple[Any, ...]) -> tuple[int, ...]:
    """Lengths that are given one by one, or as one tuple or list."""
    return tuple(int(n) for n in listing(given))


@register
def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """Part of an axis."""
    key = [slice(None)] * input.ndim
    key[dim] = slice(int(start), int(start) + int(length))
    if not 0 <= start <= start + length <= input.shape[dim]:
        raise RuntimeError(f"start={start}, length={length} exceed length {input.shape[dim]}")
    return input[tuple(key)]


@register
def _split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    n, sections = tensor.shape[dim], split_size_or_sections
    if isinstance(sections, int):
        sections = [min(sections, n - i) for i in range(0, n, sections)] or [0]
    if sum(sections) != n:
        raise RuntimeError(f"split: lengths {list(sections)} do not sum to {n}, that of the axis")
    ends = [sum(sections[:i]) for i in range(len(sections))]
    return tuple(narrow(tensor, dim, i, m) for i, m in zip(ends, sections, strict=True))


@register
def _chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    n = input.shape[dim]
    return _split(input, -(-n // chunks) if n else [0] * chunks, dim)


@register
def _squeeze(input: Any, dim: Any = None) -> Any:
    """Drop axes of length 1; another axis that is named stays as it is."""
    given = range(input.ndim) if dim is None else dim if isinstance(dim, tuple | list) else (dim,)
    places = {as_axis(d, input.ndim, "dim") for d in given} if input.ndim else ()
    ones = tuple(a for a in places if input.shape[a] == 1)
    return wg.squeeze(input, axis=ones) if ones else input[...]


def _places(input: Any, dim: int, index: Any) -> Any:
    """An index of arrays, of which that of one axis is given and the others count."""
    if index.ndim != input.ndim:
        raise RuntimeError("index and input need the same number of dimensions")
    at = as_axis(dim, input.ndim, "dim")
    _check_places(index, input.shape[at])
    key = [wg.arange(n, device=input.device) for n in index.shape]
    key = [wg.reshape(k, (-1, *[1] * (index.ndim - d - 1))) for d, k in enumerate(key)]
    return (*key[:at], index, *key[at + 1 :])


def _check_places(index: Any, length: int) -> None:
    lifted = is_lifted(index._array)
    if not lifted and index.size and not 0 <= int(wg.min(index)) <= int(wg.max(index)) < length:
        raise IndexError(f"an index is out of bounds: places are 0 to {length - 1}")


def _along(input: Any, dim: int, index: Any, source: Any = None) -> Any:
    """An index of one axis, of places that are there and as many as the source has."""
    at = as_axis(dim, input.ndim, "dim")
    index = index if index.ndim else index[None]
    if index.ndim != 1 or not index.dtype.kind.endswith("integer"):
        raise IndexError("an index along dim is of integers, and has 1 axis")
    _check_places(index, input.shape[at])
    shape = (*input.shape[:at], len(index), *input.shape[at + 1 :])
    if source is not None and tuple(source.shape) != shape:
        raise RuntimeError(f"the source needs shape {shape}, and has {tuple(source.shape)}")
    return at_axis(at, index)


def _update(input: Any, dim: int, index: Any, src: Any, way: str, include_self: bool = True) -> Any:
    """Put the source at the places of an index, or let it change what is there."""
    key = _places(input, dim, index)
    if isinstance(src, wg.Tensor) and src.ndim:
        if any(n > m for n, m in zip(index.shape, src.shape, strict=True)):
            raise RuntimeError("scatter: src is shorter than index along an axis")
        src = src[tuple(slice(n) for n in index.shape)]
    if not include_self:  # one of the values is the same extreme twice
        input = input.at(key).set({"add": 0, "multiply": 1}.get(way, src))
    return getattr(input.at(key), way)(src)


@register
def _scatter(
    input: Any, dim: int, index: Any, src: Any = None, value: Any = None, reduce: Any = "set"
) -> Any:
    if reduce not in ("set", "add", "multiply"):
        raise RuntimeError(f"reduce is 'add' or 'multiply', and not {reduce!r}")
    return _update(input, dim, index, value if src is None else src, reduce)


@register
def _scatter_reduce(
    input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Any:
    ways = {"sum": "add", "prod": "multiply", "amax": "max", "amin": "min"}
    if reduce not in ways:
        raise NotImplementedError(f"scatter_reduce by {reduce!r} is not there: {[*ways]}")
    return _update(input, dim, index, src, ways[reduce], include_self)


def _diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    return wg.linalg.diagonal(wg.moveaxis(input, (dim1, dim2), (-2, -1)), offset=offset)


@register
def _diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    i, n = wg.arange(input.shape[-1], device=input.device), input.shape[-1] + abs(offset)
    zeros = wg.zeros((*input.shape[:-1], n, n), dtype=input.dtype, device=input.device)
    whole = zeros.at((..., i + max(-offset, 0), i + max(offset, 0))).set(input)
    return wg.moveaxis(whole, (-2, -1), (dim1, dim2))


def _cat(tensors: Any, dim: int = 0) -> Any:
    """Join Tensors, of which those of shape (0,) give the dtype alone."""
    whole = wg.concat([x for x in tensors if tuple(x.shape) != (0,)] or tensors, axis=dim)
    return wg.astype(whole, wg.result_type(*tensors), copy=False)


_SAME = "broadcast_tensors=broadcast_arrays broadcast_to clone isin moveaxis movedim=moveaxis "
FUNCTIONS.update(members(wg, f"{_SAME} reshape"))
FUNCTIONS.update(members(methods, "flatten ravel swapaxes swapdims=swapaxes t transpose=swapaxes"))
lines(
    **dict.fromkeys(("cat", "concat", "concatenate"), _cat),
    **dict.fromkeys(("nelement", "numel"), lambda input: math.prod(input.shape)),
    argwhere=lambda input: wg.stack(wg.nonzero(input), axis=1),
    diag=lambda input, diagonal=0: (
        _diag_embed(input, diagonal) if input.ndim == 1 else _diagonal(input, diagonal)
    ),
    diagonal=_diagonal,
    flip=lambda input, *given, dims=None: wg.flip(input, axis=lengths(given or (dims,))),
    gather=lambda input, dim, index: input[_places(input, dim, index)] if input.ndim else input,
    hstack=lambda tensors: _cat(tensors, int(tensors[0].ndim > 1)),
    index_add=lambda input, dim, index, source, *, alpha=1: input.at(
        _along(input, dim, index, source)
    ).add(source * alpha),
    index_copy=lambda input, dim, index, source: input.at(_along(input, dim, index, source)).set(
        source
    ),
    index_fill=lambda input, dim, index, value: input.at(
        at_axis(as_axis(dim, input.ndim, "dim"), index)
    ).set(value),
    index_select=lambda input, dim, index: input[_along(input, dim, index)],
    masked_fill=lambda input, mask, value: methods.masked_fill(input, mask, value),  # noqa: PLW0108
    masked_select=lambda input, mask: wg.broadcast_arrays(input, mask)[0][
        wg.broadcast_to(mask, wg.broadcast_shapes(input.shape, mask.shape))
    ],
    meshgrid=lambda *tensors, indexing="ij": coordinates(
        *listing(tensors), copy=False, indexing=indexing
    ),
    nonzero=lambda input, *, as_tuple=False: (
        wg.nonzero(input) if as_tuple else wg.stack(wg.nonzero(input), axis=1)
    ),
    permute=lambda input, *given, dims=None: wg.permute_dims(input, lengths(given or (dims,))),
    repeat_interleave=lambda input, repeats, dim=None: wg.repeat(
        wg.reshape(input, (-1,)) if dim is None else input, repeats, axis=dim or 0
    ),
    roll=lambda input, shifts, dims=None: wg.roll(input, shifts, axis=dims),
    scatter_add=lambda input, dim, index, src: _update(input, dim, index, src, "add"),
    searchsorted=lambda sorted_sequence, input, *, right=False, side=None: wg.searchsorted(
        sorted_sequence, input, "right" if right else side or "left"
    ),
    select=lambda input, dim, index: input[at_axis(as_axis(dim, input.ndim, "dim"), int(index))],
    stack=lambda tensors, dim=0: wg.stack(tensors, axis=dim),
    take=lambda input, index: wg.take(wg.reshape(input, (-1,)), index),
    tile=lambda input, *given, dims=None: wg.tile(input, lengths(given or (dims,))),
    tril=lambda input, diagonal=0: wg.tril(input, k=diagonal),
    triu=lambda input, diagonal=0: wg.triu(input, k=diagonal),
    unbind=lambda input, dim=0: wg.unstack(input, axis=dim),
    unsqueeze=lambda input, dim: wg.expand_dims(input, axis=dim),
    vstack=lambda tensors: _cat([x if x.ndim > 1 else x[None] for x in tensors]),
    where=lambda condition, *inputs: (
        wg.where(condition, *inputs) if inputs else wg.nonzero(condition)
    ),
)
