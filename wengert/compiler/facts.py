"""What a compiled program may do with an operation, and with a backend's kernel.

The operation's row says what it is.

The table of operations goes by the names of rows: a name is that of one row, and some chapters are
imported late.
A row that is added later has no facts. It replaces no value, and may raise unless it is
elementwise or linear.

An identity rule says when an operation returns an operand bitwise, so that programs can omit the
operation. It takes the instruction, as a `wengert.compiler.passes.simplify.Call`, and returns the
operand that the result equals, or None. An equality up to the sign of zero, or except at
infinities, is no identity. The pass compares shape and dtype itself.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from wengert.backends import cupy, numpy, numpy_reductions
from wengert.backends.backend import Kernel
from wengert.nn.kernels import cupy_classification, numpy_classification, numpy_normalisations
from wengert.ops.beyond import numpy_convolutions
from wengert.tape.primitive import PRIMITIVES, Primitive

Rule = Callable[[Any], Any]


class Facts(NamedTuple):
    """What a program may do with an operation.

    Attributes
    ----------
    identity : callable or None
        When the result is an operand, to the last bit.
    symbol : str or None
        The operator that does the same to arrays of one dtype, or to an array.
    raises : tuple of str
        The inputs some values of which raise an error, such as a singular matrix or an index out of
        bounds; of an elementwise one integers alone.
    dynamic : bool or "masks"
        Whether the result's shape depends on values: always, or where an index is a mask.
    moves : bool
        Whether the result has elements of the first input alone.
    """

    identity: Rule | None = None
    symbol: str | None = None
    raises: tuple[str, ...] = ()
    dynamic: bool | Literal["masks"] = False
    moves: bool = False


def unit(*, left: bool) -> Rule:
    """Rule of ``x * 1``, and of ``1 * x`` with ``left``; not of complex numbers: inf * 0j is nan.

    Parameters
    ----------
    left : bool
        Whether the left operand may be the 1.
    """

    def rule(call: Any) -> Any:
        x, y = call.operands
        if call.complex:
            return None
        if _equals(call.number(y), 1):
            return x
        return y if left and _equals(call.number(x), 1) else None

    return rule


def nil(*, left: bool, sign: int) -> Rule:
    """Rule of ``n + 0`` of integers, and of ``x + -0.0`` of floats, since -0.0 + 0.0 is 0.0.

    Parameters
    ----------
    left : bool
        Whether the left operand may be the 0.
    sign : {1, -1}
        The sign of the zero that changes no float.
    """

    def gone(call: Any, x: Any) -> bool:
        number = call.number(x)
        return _equals(number, 0) and (call.whole or math.copysign(1, number) == sign)

    def rule(call: Any) -> Any:
        x, y = call.operands
        if left and call.complex:
            return None
        if gone(call, y):
            return x
        return y if left and gone(call, x) else None

    return rule


def _equals(number: Any, one: int) -> bool:
    return isinstance(number, int | float) and number == one


def involution(call: Any) -> Any:
    """Rule of ``-(-x)``, and of the transpose of a transpose."""
    before = call.maker(call.operands[0])
    return before.operands[0] if before is not None and before.name == call.name else None


def idempotent(call: Any) -> Any:
    """Rule of ``maximum(x, x)``."""
    x, y = call.operands
    return x if x is y else None


def same_elements(call: Any) -> Any:
    """Rule of functions that keep the elements, and change shape or dtype at most."""
    return call.operands[0] if call.parameters.get("device") is None else None


def in_order(call: Any) -> Any:
    """Rule of a chain of functions that keep the elements' order and end with the first shape."""
    x, shape = call.operands[0], call.result.shape
    while x.shape != shape:
        before = call.maker(x)
        if before is None or before.rule is not in_order:
            return None
        x = before.operands[0]
    return x


def of_reals(call: Any) -> Any:
    """Rule of functions that leave real numbers unchanged."""
    return None if call.complex_of(call.operands[0]) else call.operands[0]


def of_integers(call: Any) -> Any:
    """Rule of functions that leave integers unchanged."""
    return call.operands[0] if call.whole else None


def over_no_axes(call: Any) -> Any:
    """Rule of a reduction over no axes."""
    return call.operands[0] if call.parameters.get("axis") == () else None


def of_whole_numbers_over_no_axes(call: Any) -> Any:
    """Rule of a sum: of floats some libraries start from 0.0, which makes a 0.0 of -0.0."""
    return over_no_axes(call) if call.whole else None


def permuted(call: Any) -> Any:
    """A permutation that moves no axis, or that undoes the permutation before it."""

    def axes(one: Any) -> list[int]:
        given = one.parameters["axes"] if "axes" in one.parameters else one.operands[1]
        return [i % len(given) for i in given]

    own, before = axes(call), call.maker(call.operands[0])
    unchanged = [*range(len(own))]
    if own == unchanged:
        return call.operands[0]
    if before is None or before.name != "permute_dims":
        return None
    first = axes(before)
    return before.operands[0] if [first[i] for i in own] == unchanged else None


def only_one(call: Any) -> Any:
    """The concatenation of one array, which some libraries take in a list."""
    first = call.operands[0]
    arrays = first if isinstance(first, tuple | list) else call.operands
    return arrays[0] if len(arrays) == 1 and call.parameters.get("axis") is not None else None


def all_of_it(call: Any) -> Any:
    """``x[...]``, ``x[:]`` and other slices of steps of 1 that leave nothing out."""
    x = call.operands[0]
    key = call.parameters.get("key", (None,))
    slices = all(
        part is Ellipsis or (type(part) is slice and part.step in (None, 1)) for part in key
    )
    return x if slices and x.shape == call.result.shape else None


def chosen(call: Any) -> Any:
    """``where`` of a condition that is the same everywhere, or between two that are the same."""
    condition, x, y = call.operands
    number = 1 if x is y else call.number(condition)
    return None if number is None else x if number else y


def _each(names: str, facts: Facts) -> dict[str, Facts]:
    return dict.fromkeys(names.split(), facts)


FACTS: Final[dict[str, Facts]] = {
    "add": Facts(nil(left=True, sign=-1), "+"),
    "subtract": Facts(nil(left=False, sign=1), "-"),
    "multiply": Facts(unit(left=True), "*"),
    "divide": Facts(unit(left=False), "/"),
    "floor_divide": Facts(symbol="//"),
    "remainder": Facts(symbol="%"),
    "pow": Facts(unit(left=False), "**", raises=("x2",)),
    "positive": Facts(same_elements, "+"),
    "negative": Facts(involution, "-"),
    "matmul": Facts(symbol="@"),
    "equal": Facts(symbol="=="),
    "not_equal": Facts(symbol="!="),
    "less": Facts(symbol="<"),
    "less_equal": Facts(symbol="<="),
    "greater": Facts(symbol=">"),
    "greater_equal": Facts(symbol=">="),
    "bitwise_and": Facts(symbol="&"),
    "bitwise_or": Facts(symbol="|"),
    "bitwise_xor": Facts(symbol="^"),
    "bitwise_invert": Facts(involution, "~"),
    "bitwise_left_shift": Facts(symbol="<<"),
    "bitwise_right_shift": Facts(symbol=">>"),
    "logical_not": Facts(involution),
    "where": Facts(chosen),
    **_each("maximum minimum", Facts(idempotent)),
    **_each("conj real", Facts(of_reals)),
    **_each("ceil floor round trunc", Facts(of_integers)),
    **_each("astype broadcast_to", Facts(same_elements)),
    "matrix_transpose": Facts(involution, moves=True),
    "permute_dims": Facts(permuted, moves=True),
    **_each("expand_dims squeeze reshape", Facts(in_order, moves=True)),
    **_each("flip roll sliding_windows", Facts(moves=True)),
    **_each("take take_along_axis", Facts(raises=("indices",), moves=True)),
    "getitem": Facts(all_of_it, raises=("indices",), dynamic="masks", moves=True),
    **_each("scatter_add setitem", Facts(raises=("indices",))),
    "concat_arrays": Facts(only_one),
    "sum": Facts(of_whole_numbers_over_no_axes),
    **_each("max min prod", Facts(over_no_axes)),
    **_each("nonzero unique_all unique_counts unique_inverse unique_values", Facts(dynamic=True)),
    **{
        f"linalg.{name}": Facts(raises=("x",))
        for name in ("cholesky", "eig", "eigh", "eigvalsh", "inv", "pinv", "svd", "svdvals")
    },
    **{f"linalg.{name}": Facts(raises=("x1",)) for name in ("solve", "solve_triangular")},
}
#: Neither elementwise nor linear, and defined for all values.
HARMLESS: Final = frozenset(
    """
all any argmax argmin argsort class_mask cofactors convolution count_nonzero cumulative_prod isin
linalg.det linalg.qr linalg.slogdet linalg.vector_norm linear linear_recurrence log_softmax
logsumexp gru lstm moments scatter_max scatter_min searchsorted softmax softmax_cross_entropy sort
standardised std var window_argmax
""".split()  # noqa: SIM905 -- a page of names is none to read
)
_NOTHING: Final = Facts()
#: Functions of the namespace that a row's composite hands on to, and that row.
_ALSO: Final = {"asarray": "astype", "concat": "concat_arrays", "stack": "stack_arrays"}


def row_of(name: str) -> Primitive | None:
    """The row of a function of the namespace."""
    return PRIMITIVES.get(name) or PRIMITIVES.get(_ALSO.get(name, ""))


def facts_of(row: Primitive | None) -> Facts:
    """The facts of a row, or those of a function of which nothing is known."""
    if row is None:
        return _NOTHING
    if row.name in FACTS or row.name in HARMLESS or row.elementwise or row.linear is not None:
        return FACTS.get(row.name, _NOTHING)
    return Facts(raises=tuple([name.lstrip("*") for name in row.inputs]))


# -- the backends' kernels ------------------------------------------------------------------------


class KernelFacts(NamedTuple):
    """Facts of one function.

    Attributes
    ----------
    looks : bool
        Whether the function reads values or chooses its memory. Programs call it whole.
    raises : bool
        Whether values raise errors.
    of_rows : bool
        Whether the function takes a number for each row, and can write into its first operand.
        Programs call it whole.
    chooses, reduction : callable or None
        ``chooses(x, axis, keepdims)`` is not None if the order in memory matters. Otherwise
        programs call this reduction of a ufunc.
    covers, kernel : callable or None
        Programs call the kernel if ``covers`` holds of the arguments, and otherwise the pieces of
        the composite.
    pieces : callable or None
        ``pieces()`` gives the functions that the kernel calls in turn, by name. Each takes the
        result of the one before and the next operand.
    """

    looks: bool = False
    raises: bool = False
    of_rows: bool = False
    chooses: Callable[..., Any] | None = None
    reduction: Kernel | None = None
    covers: Callable[..., bool] | None = None
    kernel: Kernel | None = None
    pieces: Callable[[], dict[str, Kernel]] | None = None


#: Facts of a function that is not listed.
PLAIN: Final = KernelFacts()

_LOOKS: Final = KernelFacts(looks=True)
_OF_ROWS: Final = KernelFacts(of_rows=True)


def _sums_by_rows(x: Any, axis: Any, keepdims: bool) -> Any:
    return numpy_reductions.rows(x.shape, axis, not keepdims)


def _clip_pieces() -> dict[str, Kernel]:
    library = cupy.BACKEND.cupy
    return {"maximum": library.maximum, "minimum": library.minimum}


KERNELS: Final[Mapping[Kernel, KernelFacts]] = {
    numpy_classification.targets: KernelFacts(looks=True, raises=True),
    numpy_classification.counted_losses: _LOOKS,
    numpy_classification.number_counted: _LOOKS,
    numpy.deviation_of_few: _LOOKS,
    numpy_normalisations.inverse_roots: _LOOKS,
    numpy_normalisations.units: _LOOKS,
    numpy_normalisations.scaled_rows: _OF_ROWS,
    numpy_normalisations.shifted_rows: _OF_ROWS,
    numpy_normalisations.steep_rows: _OF_ROWS,
    numpy_reductions.roots: _LOOKS,
    numpy_reductions.sum_over: KernelFacts(chooses=_sums_by_rows, reduction=np.add.reduce),
    numpy_reductions.max_over: KernelFacts(
        chooses=numpy_reductions.short_rows, reduction=np.maximum.reduce
    ),
    numpy_reductions.min_over: KernelFacts(
        chooses=numpy_reductions.short_rows, reduction=np.minimum.reduce
    ),
    **{
        function: KernelFacts(
            covers=numpy_convolutions.covers, kernel=numpy_convolutions.COVERED[name]
        )
        for name, function in numpy_convolutions.KERNELS.items()
    },
    cupy.clip: KernelFacts(pieces=_clip_pieces),
    cupy_classification.softmax_cross_entropy_parts: KernelFacts(
        covers=cupy_classification.covers, kernel=cupy_classification.cupy_softmax_cross_entropy
    ),
}
