"""PyTorch's functions of shapes and places."""

import math
from typing import Any

import wengert as wg
from wengert.ops import methods
from wengert.ops.axes import as_axis, at_axis
from wengert.tape.node import is_lifted
from wengert.torch.naming import aliases, lines, listed


def lengths(given: tuple[Any, ...]) -> tuple[int, ...]:
    """Lengths that are given one by one, or as one tuple, list or size."""
    whole = len(given) == 1 and isinstance(given[0], tuple | list)
    return tuple(int(n) for n in (given[0] if whole else given))


@listed
def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """Part of an axis."""
    key = [slice(None)] * input.ndim
    key[dim] = slice(int(start), int(start) + int(length))
    if not 0 <= start <= start + length <= input.shape[dim]:
        raise RuntimeError(f"start={start}, length={length} exceed length {input.shape[dim]}")
    return input[tuple(key)]


@listed
def _split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    n, sections = tensor.shape[dim], split_size_or_sections
    if isinstance(sections, int):
        sections = [min(sections, n - i) for i in range(0, n, sections)] or [0]
    if sum(sections) != n:
        raise RuntimeError(f"split: lengths {list(sections)} do not sum to {n}, that of the axis")
    ends = [sum(sections[:i]) for i in range(len(sections))]
    return tuple(narrow(tensor, dim, i, m) for i, m in zip(ends, sections, strict=True))


@listed
def _chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    return _split(input, max(-(-input.shape[dim] // chunks), 1), dim)


@listed
def _squeeze(input: Any, dim: Any = None) -> Any:
    """Drop axes of length 1; another axis that is named stays as it is."""
    given = range(input.ndim) if dim is None else dim if isinstance(dim, tuple | list) else (dim,)
    places = {as_axis(d, input.ndim, "dim") for d in given} if input.ndim else ()
    ones = tuple(a for a in places if input.shape[a] == 1)
    return wg.squeeze(input, axis=ones) if ones else input[...]


@listed
def _repeat_interleave(input: Any, repeats: Any, dim: int | None = None) -> Any:
    x = wg.reshape(input, (-1,)) if dim is None else input
    return wg.repeat(x, repeats, axis=0 if dim is None else dim)


def _places(input: Any, dim: int, index: Any) -> Any:
    """An index of arrays, of which that of one axis is given and the others count."""
    if index.ndim != input.ndim:
        raise RuntimeError("index and input need the same number of dimensions")
    at, key = as_axis(dim, input.ndim, "dim"), []
    for d, n in enumerate(index.shape):
        shape = [1] * index.ndim
        shape[d] = n
        own = wg.reshape(wg.arange(n, device=input.device), tuple(shape))
        key.append(index if d == at else own)
    _check_places(index, input.shape[at])
    return tuple(key)


def _check_places(index: Any, length: int) -> None:
    if index.size and not 0 <= int(wg.min(index)) <= int(wg.max(index)) < length:
        raise IndexError(f"an index is out of bounds: places are 0 to {length - 1}")


def _along(input: Any, dim: int, index: Any, source: Any = None) -> Any:
    """An index of one axis, of places that are there and as many as the source has."""
    at = as_axis(dim, input.ndim, "dim")
    index = index if index.ndim else index[None]
    if index.ndim != 1 or not index.dtype.kind.endswith("integer"):
        raise IndexError("an index along dim is of integers, and has 1 axis")
    if not is_lifted(index._array):
        _check_places(index, input.shape[at])
    shape = (*input.shape[:at], len(index), *input.shape[at + 1 :])
    if source is not None and tuple(source.shape) != shape:
        raise RuntimeError(f"the source needs shape {shape}, and has {tuple(source.shape)}")
    return at_axis(at, index)


@listed
def _gather(input: Any, dim: int, index: Any) -> Any:
    return input[_places(input, dim, index)] if input.ndim else input


@listed
def _scatter(
    input: Any, dim: int, index: Any, src: Any = None, value: Any = None, reduce: Any = None
) -> Any:
    key = _places(input, dim, index)
    new = value if src is None else src
    if isinstance(new, wg.Tensor) and new.ndim:
        if any(n > m for n, m in zip(index.shape, new.shape, strict=True)):
            raise RuntimeError("scatter: src is shorter than index along an axis")
        new = new[tuple(slice(n) for n in index.shape)]
    place = input.at(key)
    ways = {None: place.set, "add": place.add, "multiply": place.multiply}
    return ways[reduce](new)


@listed
def _index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    key = _along(input, dim, index, source)
    return input.at(key).add(source if alpha == 1 else source * alpha)


@listed
def _index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    return input.at(_along(input, dim, index, source)).set(source)


@listed
def _diag(input: Any, diagonal: int = 0) -> Any:
    return _diag_embed(input, diagonal) if input.ndim == 1 else _diagonal(input, diagonal)


@listed
def _diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    return wg.linalg.diagonal(wg.moveaxis(input, (dim1, dim2), (-2, -1)), offset=offset)


@listed
def _diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    n = input.shape[-1]
    zeros = wg.zeros((*input.shape, n), dtype=input.dtype, device=input.device)
    eye = wg.eye(n, dtype=wg.bool, device=input.device)
    whole = wg.where(eye, wg.expand_dims(input, axis=-2), zeros)
    wide = abs(offset)
    more = [(0, 0)] * (input.ndim - 1)
    below, right = ((0, wide), (wide, 0)) if offset >= 0 else ((wide, 0), (0, wide))
    whole = wg.pad(whole, [*more, below, right]) if wide else whole
    return wg.moveaxis(whole, (-2, -1), (dim1, dim2))


@listed
def _meshgrid(*tensors: Any, indexing: Any = "ij") -> Any:
    listed = len(tensors) == 1 and isinstance(tensors[0], list | tuple)
    return wg.meshgrid(*(tensors[0] if listed else tensors), indexing=indexing)


def _cat(tensors: Any, dim: int = 0) -> Any:
    return wg.concat(tensors, axis=dim)


aliases(
    wg,
    "broadcast_tensors=broadcast_arrays broadcast_to clone isin moveaxis movedim=moveaxis reshape",
)
lines(
    **dict.fromkeys(("cat", "concat", "concatenate"), _cat),
    flatten=methods.flatten,
    flip=lambda input, *dims: wg.flip(input, axis=lengths(dims)),
    hstack=lambda tensors: wg.concat(tensors, axis=int(tensors[0].ndim > 1)),
    index_fill=lambda input, dim, index, value: input.at(
        at_axis(as_axis(dim, input.ndim, "dim"), index)
    ).set(value),
    index_select=lambda input, dim, index: input[_along(input, dim, index)],
    masked_fill=lambda input, mask, value: methods.masked_fill(input, mask, value),  # noqa: PLW0108
    masked_select=lambda input, mask: wg.broadcast_arrays(input, mask)[0][
        wg.broadcast_to(mask, wg.broadcast_shapes(input.shape, mask.shape))
    ],
    nonzero=lambda input, *, as_tuple=False: (
        wg.nonzero(input) if as_tuple else wg.stack(wg.nonzero(input), axis=1)
    ),
    argwhere=lambda input: wg.stack(wg.nonzero(input), axis=1),
    nelement=lambda input: math.prod(input.shape),
    numel=lambda input: math.prod(input.shape),
    permute=lambda input, *dims: wg.permute_dims(input, lengths(dims)),
    ravel=methods.ravel,
    roll=lambda input, shifts, dims=None: wg.roll(input, shifts, axis=dims),
    scatter_add=lambda input, dim, index, src: _scatter(input, dim, index, src, reduce="add"),
    select=lambda input, dim, index: input[at_axis(as_axis(dim, input.ndim, "dim"), int(index))],
    stack=lambda tensors, dim=0: wg.stack(tensors, axis=dim),
    **dict.fromkeys(("swapaxes", "swapdims", "transpose"), methods.swapaxes),
    t=methods.t,
    take=lambda input, index: wg.take(wg.reshape(input, (-1,)), index),
    tile=lambda input, *dims: wg.tile(input, lengths(dims)),
    trace=wg.linalg.trace,
    tril=lambda input, diagonal=0: wg.tril(input, k=diagonal),
    triu=lambda input, diagonal=0: wg.triu(input, k=diagonal),
    unbind=lambda input, dim=0: wg.unstack(input, axis=dim),
    unsqueeze=lambda input, dim: wg.expand_dims(input, axis=dim),
    vstack=lambda tensors: wg.concat(
        [x if x.ndim > 1 else wg.reshape(x, (1, -1)) for x in tensors]
    ),
    where=lambda condition, *inputs: (
        wg.where(condition, *inputs) if inputs else wg.nonzero(condition)
    ),
)
