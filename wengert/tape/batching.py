"""How primitives run on batches: once, with an axis in front that the program does not see.

A batching rule is called with the arrays inside, of which those that are batched have the axis, and
answers with results that have it. A primitive without one runs for each member, and its results are
stacked: right, but a Python loop.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wengert.backends import dtype_of
from wengert.backends.keys import SLOT
from wengert.tape.lifted import apply, namespace_of
from wengert.tape.primitive import Primitive

__all__ = ["COMPOSED", "Application", "rule_of"]

Rule = Callable[..., Any]


class Application(NamedTuple):
    """A primitive's application to arrays, some of which are batched.

    Attributes
    ----------
    xp : namespace
        That of the arrays inside.
    own : tuple of bool
        Which of the inputs are batched.
    inputs : sequence
        The arrays inside.
    """

    xp: Any
    primitive: Primitive
    own: tuple[bool, ...]
    inputs: Sequence[Any]

    @property
    def size(self) -> int:
        """How many members there are."""
        length: int = self.inputs[self.own.index(True)].shape[0]
        return length

    def run(self, *inputs: Any, **parameters: Any) -> Any:
        """Apply the primitive to arrays inside."""
        return apply(self.primitive, inputs, parameters)

    def rank(self, position: int) -> int:
        """How many axes an input has for the program."""
        return len(self.inputs[position].shape) - self.own[position]

    def ranked(self, position: int, rank: int) -> Any:
        """An input with axes of length 1 in front of the program's, so that there are ``rank``.

        Of a batched one they come after the first; one that is not broadcasts as it is.
        """
        x = self.inputs[position]
        if not self.own[position] or len(x.shape) == rank + 1:
            return x
        shape = tuple(x.shape)
        return self.xp.reshape(x, (shape[0], *(1,) * (rank + 1 - len(shape)), *shape[1:]))

    def spread(self, position: int) -> Any:
        """An input with the members' axis, whether it has one or not."""
        x = self.inputs[position]
        if self.own[position]:
            return x
        return self.xp.broadcast_to(x, (self.size, *x.shape))

    def fronted(self, position: int) -> Any:
        """An input with an axis in front: the members', or of length 1."""
        x = self.inputs[position]
        return x if self.own[position] else self.xp.reshape(x, (1, *x.shape))


def rule_of(primitive: Primitive) -> Rule:
    """The batching rule of a primitive."""
    rule = _RULES.get(primitive.name)
    if rule is None:
        rule = _elementwise if primitive.kind == "elementwise" else _each
    return rule


def _each(call: Application, *inputs: Any, **parameters: Any) -> Any:
    """Run for each member, and stack what comes out."""
    take = call.xp.getitem
    results = [
        call.run(
            *[take(x, key=(i, ...)) if own else x for x, own in zip(inputs, call.own, strict=True)],
            **parameters,
        )
        for i in range(call.size)
    ]
    if call.primitive.several:
        return tuple([_stacked(call, column) for column in zip(*results, strict=True)])
    return _stacked(call, results)


def _stacked(call: Application, results: Sequence[Any]) -> Any:
    shapes = {tuple(y.shape) for y in results}
    if len(shapes) > 1:
        raise ValueError(
            f"{call.primitive.name} gives results of different shapes for the members of a batch, "
            f"such as {' and '.join(map(str, sorted(shapes)[:2]))}: they cannot be one array"
        )
    return namespace_of(*results).stack(list(results), axis=0)


# -- elements ------------------------------------------------------------------------------------


def _elementwise(call: Application, *inputs: Any, **parameters: Any) -> Any:
    places = [i for i, x in enumerate(inputs) if hasattr(x, "shape")]
    rank = max([call.rank(i) for i in places])
    aligned = list(inputs)
    for i in places:
        aligned[i] = call.ranked(i, rank)
    return call.run(*aligned, **parameters)


def _astype(call: Application, x: Any, dtype: Any, *, copy: bool = True) -> Any:
    return call.run(x, dtype=dtype, copy=copy)


def _as_is(call: Application, *inputs: Any, **parameters: Any) -> Any:
    """For functions of the last axes, of one array."""
    return call.run(*inputs, **parameters)


def _triangle(call: Application, x: Any, *, k: int = 0) -> Any:
    return call.run(x, k=k)


def _first_alone(call: Application, x1: Any, x2: Any) -> Any:
    return _each(call, x1, x2) if call.own[1] else call.run(x1, x2)


def _second_alone(call: Application, x1: Any, x2: Any, *, side: str = "left") -> Any:
    return _each(call, x1, x2, side=side) if call.own[0] else call.run(x1, x2, side=side)


# -- axes ----------------------------------------------------------------------------------------


def _shifted(axis: int | Sequence[int], rank: int) -> Any:
    """An axis of the program's, or several, as what they are inside."""
    if isinstance(axis, int):
        return (axis + rank if axis < 0 else axis) + 1
    return tuple([_shifted(one, rank) for one in axis])


def _reduction(**defaults: Any) -> Rule:
    """Of a function over some axes, all by default."""

    def rule(call: Application, x: Any, *, axis: Any = None, **parameters: Any) -> Any:
        rank = call.rank(0)
        axes = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
        return call.run(x, axis=_shifted(axes, rank), **{**defaults, **parameters})

    return rule


def _extreme_place(
    call: Application, x: Any, *, axis: int | None = None, keepdims: bool = False
) -> Any:
    if axis is not None:
        return call.run(x, axis=_shifted(axis, call.rank(0)), keepdims=keepdims)
    flat = call.xp.reshape(x, (x.shape[0], math.prod(x.shape[1:])))
    found = call.run(flat, axis=1, keepdims=False)
    return call.xp.reshape(found, (x.shape[0], *(1,) * call.rank(0))) if keepdims else found


def _along(**defaults: Any) -> Rule:
    """Of a function along one axis, or several, that are named."""

    def rule(call: Application, x: Any, *, axis: Any = -1, **parameters: Any) -> Any:
        return call.run(x, axis=_shifted(axis, call.rank(0)), **{**defaults, **parameters})

    return rule


def _running(call: Application, x: Any, *, axis: int | None = None, **parameters: Any) -> Any:
    options = {"dtype": None, "include_initial": False, **parameters}
    return call.run(x, axis=_shifted(axis or 0, call.rank(0)), **options)


def _recurrence(call: Application, a: Any, b: Any, *, axis: int) -> Any:
    return call.run(call.spread(0), call.spread(1), axis=_shifted(axis, call.rank(1)))


def _transform(call: Application, x: Any, *, axes: Any, norm: str = "backward", **s: Any) -> Any:
    return call.run(x, axes=_shifted(axes, call.rank(0)), norm=norm, **s)


# -- arranging -----------------------------------------------------------------------------------


def _reshape(call: Application, x: Any, shape: Sequence[int], *, copy: bool | None = None) -> Any:
    if -1 in shape:  # which the members' axis may not tell, if there are no elements
        known = -math.prod(shape)
        shape = [math.prod(x.shape[1:]) // known if n == -1 else n for n in shape]
    return call.run(x, shape=(x.shape[0], *shape), copy=copy)


def _permute(call: Application, x: Any, axes: Sequence[int]) -> Any:
    return call.run(x, axes=(0, *_shifted(axes, call.rank(0))))


def _expand(call: Application, x: Any, axis: int = 0) -> Any:
    return call.run(x, axis=_shifted(axis, call.rank(0) + 1))


def _squeeze(call: Application, x: Any, axis: int | Sequence[int]) -> Any:
    return call.run(x, axis=_shifted((axis,) if isinstance(axis, int) else axis, call.rank(0)))


def _flip(call: Application, x: Any, *, axis: Any = None) -> Any:
    axes = range(call.rank(0)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return call.run(x, axis=_shifted(axes, call.rank(0)))


def _roll(call: Application, x: Any, shift: Any, *, axis: Any = None) -> Any:
    if axis is not None:
        return call.run(x, shift=shift, axis=_shifted(axis, call.rank(0)))
    flat = call.xp.reshape(x, (x.shape[0], math.prod(x.shape[1:])))
    return call.xp.reshape(call.run(flat, shift=shift, axis=1), x.shape)


def _broadcast_to(call: Application, x: Any, shape: Sequence[int]) -> Any:
    return call.run(call.ranked(0, len(shape)), shape=(x.shape[0], *shape))


def _repeat(call: Application, x: Any, repeats: int, *, axis: int | None = None) -> Any:
    if axis is None:
        x, axis = call.xp.reshape(x, (x.shape[0], math.prod(x.shape[1:]))), 0
    return call.run(x, repeats=repeats, axis=_shifted(axis, len(x.shape) - 1))


def _tile(call: Application, x: Any, repetitions: tuple[int, ...]) -> Any:
    rank = max(call.rank(0), len(repetitions))
    times = (1,) * (rank - len(repetitions)) + tuple(repetitions)
    return call.run(call.ranked(0, rank), repetitions=(1, *times))


def _concat(call: Application, *arrays: Any, axis: int = 0) -> Any:
    spread = [call.spread(i) for i in range(len(arrays))]
    return call.run(*spread, axis=_shifted(axis, call.rank(0)))


def _stack(call: Application, *arrays: Any, axis: int = 0) -> Any:
    spread = [call.spread(i) for i in range(len(arrays))]
    return call.run(*spread, axis=_shifted(axis, call.rank(0) + 1))


def _meshgrid(call: Application, *arrays: Any, indexing: str = "xy") -> Any:
    lengths = [x.shape[-1] for x in arrays]
    order = list(range(len(arrays)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = 1, 0
    shape = tuple([lengths[i] for i in order])
    grids = []
    for i in range(len(arrays)):
        x = call.spread(i)
        x = call.xp.reshape(x, (x.shape[0], *[lengths[j] if j == i else 1 for j in order]))
        grids.append(call.xp.broadcast_to(x, (x.shape[0], *shape)))
    return tuple(grids)


# -- indexing ------------------------------------------------------------------------------------


def _block(indices: Sequence[Any]) -> int:
    """How many axes a result of indexing has in the place of the index arrays."""
    return max([1 if dtype_of(i.dtype).kind == "bool" else len(i.shape) for i in indices])


def _first(key: tuple[Any, ...]) -> bool:
    """Whether the index arrays' axes come first in the result, since they stand apart."""
    places = [i for i, part in enumerate(key) if part == SLOT or type(part) is int]
    apart = bool(places) and places[-1] - places[0] != len(places) - 1
    return apart and any(type(part) is str for part in key)


def _moved(call: Application, x: Any, source: int, destination: int) -> Any:
    """An array inside, with one axis moved."""
    order = [i for i in range(len(x.shape)) if i != source]
    order.insert(destination, source)
    return call.xp.permute_dims(x, tuple(order))


def _getitem(call: Application, x: Any, *indices: Any, key: tuple[Any, ...]) -> Any:
    if any(call.own[1:]):
        return _each(call, x, *indices, key=key)
    out = call.run(x, *indices, key=(slice(None), *key))
    return _moved(call, out, _block(indices), 0) if _first(key) else out


def _scatter_add(
    call: Application, x: Any, *indices: Any, key: tuple[Any, ...], shape: tuple[int, ...]
) -> Any:
    if any(call.own[1:]):
        return _each(call, x, *indices, key=key, shape=shape)
    count = x.shape[0]
    if _first(key):
        x = _moved(call, x, 0, _block(indices))
    return call.run(x, *indices, key=(slice(None), *key), shape=(count, *shape))


def _setitem(call: Application, x: Any, value: Any, *indices: Any, key: tuple[Any, ...]) -> Any:
    if any(call.own[2:]):
        return _each(call, x, value, *indices, key=key)
    if hasattr(value, "shape"):
        rank = call.rank(0) + sum([part is None for part in key])
        arrays = iter(indices)
        for part in key:
            if type(part) is int:
                rank -= 1
            elif part == SLOT:
                index = next(arrays)
                rank -= len(index.shape) if dtype_of(index.dtype).kind == "bool" else 1
        rank += _block(indices) if indices else 0
        value = call.fronted(1)
        shape = tuple(value.shape)
        value = call.xp.reshape(value, (shape[0], *(1,) * (rank + 1 - len(shape)), *shape[1:]))
        if _first(key):
            value = _moved(call, value, 0, _block(indices))
    return call.run(call.spread(0), value, *indices, key=(slice(None), *key))


def _take(call: Application, x: Any, indices: Any, *, axis: int | None = None) -> Any:
    at = _shifted(axis or 0, call.rank(0))
    if call.own == (True, False):
        return call.run(x, indices, axis=at)
    if call.own[0]:
        return _each(call, x, indices, axis=at - 1)
    taken = call.xp.getitem(x, indices, key=(slice(None),) * (at - 1) + (SLOT,))
    return _moved(call, taken, at - 1, 0)


def _take_along_axis(call: Application, x: Any, indices: Any, *, axis: int = -1) -> Any:
    at = _shifted(axis, call.rank(0))
    return call.run(call.fronted(0), call.fronted(1), axis=at)


# -- products ------------------------------------------------------------------------------------


def _matmul(call: Application, x1: Any, x2: Any) -> Any:
    xp, run = call.xp, call.run
    rank1, rank2 = call.rank(0), call.rank(1)
    if call.own == (True, False):
        if rank1 == 2 == rank2 or (rank1 == 1 and rank2 <= 2):
            return _on_the_left(xp, run, x1, x2)
    elif call.own == (False, True) and rank1 <= 2 and rank2 == 1:
        return run(x2, xp.matrix_transpose(x1) if rank1 == 2 else x1)
    # Vectors as matrices, and the members' axis as the first of the stacks.
    left = xp.expand_dims(x1, axis=len(x1.shape) - 1) if rank1 == 1 else x1
    right = xp.expand_dims(x2, axis=len(x2.shape)) if rank2 == 1 else x2
    rank = max(rank1, rank2, 2)
    matrices = call._replace(inputs=(left, right))
    out = run(matrices.ranked(0, rank), matrices.ranked(1, rank))
    gone = ((len(out.shape) - 2,) if rank1 == 1 else ()) + (
        (len(out.shape) - 1,) if rank2 == 1 else ()
    )
    return xp.squeeze(out, axis=gone) if gone else out


def _on_the_left(xp: Any, run: Rule, x1: Any, x2: Any) -> Any:
    """Many vectors or matrices times one: as one product, which is faster than many."""
    shape = x1.shape
    if len(shape) == 2:
        return run(x1, x2)
    flat = run(xp.reshape(x1, (shape[0] * shape[1], shape[2])), x2)
    return xp.reshape(flat, (shape[0], shape[1], x2.shape[1]))


def _tensordot(call: Application, x1: Any, x2: Any, *, axes: Any = 2) -> Any:
    rank1, rank2 = call.rank(0), call.rank(1)
    if isinstance(axes, int):
        axes = tuple(range(rank1 - axes, rank1)), tuple(range(axes))
    over1, over2 = (
        tuple([one % rank for one in over]) for over, rank in zip(axes, (rank1, rank2), strict=True)
    )
    if call.own == (True, True):
        letters = [chr(ord("a") + i) for i in range(rank1 + rank2)]
        first, second = letters[:rank1], letters[rank1:]
        for i, j in zip(over1, over2, strict=True):
            second[j] = first[i]
        result = [c for c in first if c not in second] + [c for c in second if c not in first]
        subscripts = ("".join(first), "".join(second), "".join(result))
        return _product(call, x1, x2, subscripts)
    if call.own[0]:
        return call.run(x1, x2, axes=(_shifted(over1, rank1), over2))
    out = call.run(x1, x2, axes=(over1, _shifted(over2, rank2)))
    return _moved(call, out, rank1 - len(over1), 0)


def _product(call: Application, x1: Any, x2: Any, subscripts: tuple[str, str, str]) -> Any:
    """The product of a pair by labels of their axes, the members' having one of its own."""
    member = chr(max(map(ord, "".join(subscripts)), default=ord("a")) + 1)
    first, second, result = subscripts
    labels = (
        member + first if call.own[0] else first,
        member + second if call.own[1] else second,
        member + result,
    )
    return call.xp.einsum_pair(x1, x2, subscripts=labels)


def _einsum_pair(call: Application, x1: Any, x2: Any, *, subscripts: tuple[str, str, str]) -> Any:
    return _product(call, x1, x2, subscripts)


def _paired(call: Application, x1: Any, x2: Any, *, axis: int = -1) -> Any:
    """Of a function along one axis of two arrays that broadcast: it is counted from the end."""
    rank = max(call.rank(0), call.rank(1))
    from_end = axis if axis < 0 else axis - call.rank(0)
    return call.run(call.ranked(0, rank), call.ranked(1, rank), axis=from_end)


def _solve(call: Application, x1: Any, x2: Any) -> Any:
    xp, rank1, rank2 = call.xp, call.rank(0), call.rank(1)
    if call.own == (False, True) and rank1 == 2 and rank2 <= 2:
        # One factorisation for all: the members are columns.
        order = (1, 0) if rank2 == 1 else (1, 0, 2)
        columns = xp.permute_dims(x2, order)
        shape = columns.shape
        columns = xp.reshape(columns, (shape[0], math.prod(shape[1:])))
        return xp.permute_dims(xp.reshape(call.run(x1, columns), shape), order)
    vectors = rank2 == 1
    if vectors:
        x2 = xp.expand_dims(x2, axis=len(x2.shape))
        rank2 = 2
    rank = max(rank1, rank2)
    matrices = call._replace(inputs=(x1, x2))
    out = call.run(matrices.ranked(0, rank), matrices.ranked(1, rank))
    return xp.squeeze(out, axis=(len(out.shape) - 1,)) if vectors else out


#: Primitives that are run as what they are made of.
COMPOSED = frozenset({"linear", "scatter_max", "scatter_min"})

_ELEMENTS = (
    "add clone conj imag multiply negative positive rand_like real subtract to_backend to_device"
    " where"
)
#: Functions of vectors or matrices in the last axes.
_MATRICES = (
    "linalg.cholesky linalg.det linalg.eig linalg.eigh linalg.eigvalsh linalg.inv linalg.pinv"
    " linalg.qr linalg.slogdet linalg.svd linalg.svdvals matrix_transpose class_mask"
)

_RULES: dict[str, Rule] = {
    **dict.fromkeys(_ELEMENTS.split(), _elementwise),
    **dict.fromkeys(_MATRICES.split(), _as_is),
    **dict.fromkeys(
        ("all", "any", "count_nonzero", "max", "mean", "min"), _reduction(keepdims=False)
    ),
    **dict.fromkeys(("sum", "prod"), _reduction(dtype=None, keepdims=False)),
    **dict.fromkeys(("std", "var"), _reduction(correction=0.0, keepdims=False)),
    **dict.fromkeys(("linalg.vector_norm", "logsumexp"), _reduction(keepdims=False)),
    **dict.fromkeys(("softmax", "log_softmax"), _reduction()),
    **dict.fromkeys(("argmax", "argmin"), _extreme_place),
    **dict.fromkeys(("sort", "argsort"), _along(descending=False, stable=True)),
    **dict.fromkeys(("cumulative_sum", "cumulative_prod"), _running),
    **dict.fromkeys(("fft.fftn", "fft.ifftn", "fft.rfftn", "fft.irfftn"), _transform),
    **dict.fromkeys(("vecdot", "linalg.cross"), _paired),
    **dict.fromkeys(("tril", "triu"), _triangle),
    "astype": _astype,
    "broadcast_to": _broadcast_to,
    "concat_arrays": _concat,
    "diff": _along(n=1),
    "einsum_pair": _einsum_pair,
    "expand_dims": _expand,
    "flip": _flip,
    "getitem": _getitem,
    "isin": _first_alone,
    "linalg.solve": _solve,
    "linear_recurrence": _recurrence,
    "matmul": _matmul,
    "meshgrid": _meshgrid,
    "permute_dims": _permute,
    "repeat": _repeat,
    "reshape": _reshape,
    "roll": _roll,
    "scatter_add": _scatter_add,
    "searchsorted": _second_alone,
    "setitem": _setitem,
    "squeeze": _squeeze,
    "stack_arrays": _stack,
    "take": _take,
    "take_along_axis": _take_along_axis,
    "tensordot": _tensordot,
    "tile": _tile,
    "unstack": _along(),
}
