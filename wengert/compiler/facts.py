"""What a compiled program may do with an operation, and with a backend's kernel.

The operation's row says what it is. The table goes by the names of rows, since some chapters are
imported late. A row that is not in it replaces no value, and may raise unless it is elementwise
or linear.

An identity rule ``rule(step, known)`` gives the operand that an instruction's result equals
bitwise, or None; ``known`` is a `wengert.compiler.passes.simplify.Known`. An equality up to the
sign of zero, or except at infinities, is no identity. The pass compares shape, dtype and layout.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from wengert.backends import dtype_of, numpy_reductions
from wengert.backends.backend import Kernel
from wengert.compiler.program import Instruction, Value
from wengert.nn.kernels import numpy_classification, numpy_normalisations, numpy_recurrent
from wengert.ops.beyond import numpy_convolutions
from wengert.ops.operators import BINARY, EQUALITY, ORDER, UNARY
from wengert.tape.primitive import PRIMITIVES, Primitive

Rule = Callable[[Instruction, Any], Any]


class Facts(NamedTuple):
    """What a program may do with an operation."""

    #: When the result is an operand, to the last bit.
    identity: Rule | None = None
    #: The inputs some values of which raise an error, such as a singular matrix or an index out of
    #: bounds; of an elementwise one integers alone.
    raises: tuple[str, ...] = ()
    #: Whether the result's shape depends on values: always, or where an index is a mask.
    dynamic: bool | Literal["masks"] = False
    #: Whether the result has elements of the first input alone.
    moves: bool = False


def over_one(step: Instruction, known: Any) -> Any:
    """``x / 1`` and ``x ** 1``; not of complex numbers: inf * 0j is nan."""
    x, y = step.operands
    return x if known.is_one(y) and not _is_complex(step.result) else None


def times_one(step: Instruction, known: Any) -> Any:
    """``x * 1`` and ``1 * x``."""
    x, y = step.operands
    if known.is_one(x) and not _is_complex(step.result):
        return y
    return over_one(step, known)


def _is_complex(x: Value) -> bool:
    return x.dtype is complex if x.shape is None else dtype_of(x.dtype).complex


def involution(step: Instruction, known: Any) -> Any:
    """``-(-x)``, and the transpose of a transpose."""
    before = known.made.get(step.operands[0])
    return before.operands[0] if before is not None and before.name == step.name else None


def same_elements(step: Instruction, known: Any) -> Any:
    """Functions that keep the elements, and change shape or dtype at most."""
    return step.operands[0] if step.parameters.get("device") is None else None


def in_order(step: Instruction, known: Any) -> Any:
    """A chain of functions that keep the elements' order and end with the first shape."""
    x = step.operands[0]
    while x.shape != step.result.shape:
        before = known.made.get(x)
        if before is None or facts_of(row_of(before.name)).identity is not in_order:
            return None
        x = before.operands[0]
    return x


def permute(step: Instruction, known: Any) -> Any:
    """A permutation that moves no axis, or that undoes the permutation before it."""

    def axes(one: Instruction) -> list[int]:
        given = one.parameters["axes"] if "axes" in one.parameters else one.operands[1]
        return [i % len(given) for i in given]

    own, before = axes(step), known.made.get(step.operands[0])
    unchanged = [*range(len(own))]
    if own == unchanged:
        return step.operands[0]
    if before is None or before.name != step.name:
        return None
    first = axes(before)
    return before.operands[0] if [first[i] for i in own] == unchanged else None


def _table(names: str, facts: Facts) -> dict[str, Facts]:
    return dict.fromkeys(names.split(), facts)


FACTS: Final[dict[str, Facts]] = {
    "multiply": Facts(times_one),
    "divide": Facts(over_one),
    "pow": Facts(over_one, raises=("x2",)),
    "negative": Facts(involution),
    **_table("positive astype broadcast_to", Facts(same_elements)),
    "matrix_transpose": Facts(involution, moves=True),
    "permute_dims": Facts(permute, moves=True),
    **_table("expand_dims squeeze reshape", Facts(in_order, moves=True)),
    **_table("flip roll sliding_windows", Facts(moves=True)),
    **_table("take take_along_axis", Facts(raises=("indices",), moves=True)),
    "getitem": Facts(raises=("indices",), dynamic="masks", moves=True),
    **_table("scatter_add setitem", Facts(raises=("indices",))),
    **_table("nonzero unique_all unique_counts unique_inverse unique_values", Facts(dynamic=True)),
    **{
        f"linalg.{name}": Facts(raises=("x",))
        for name in ("cholesky", "eig", "eigh", "eigvalsh", "inv", "pinv", "svd", "svdvals")
    },
    **{f"linalg.{name}": Facts(raises=("x1",)) for name in ("solve", "solve_triangular")},
}
#: Neither elementwise nor linear, and defined for all values.
HARMLESS: Final = frozenset(
    """
all any argmax argmin argsort class_mask cofactors concat_arrays convolution count_nonzero
cumulative_prod isin max min prod sum where
linalg.det linalg.qr linalg.slogdet linalg.vector_norm linear linear_recurrence log_softmax
logsumexp gru lstm scatter_max scatter_min searchsorted softmax softmax_cross_entropy sort
standardised std var window_argmax
""".split()  # noqa: SIM905 -- a page of names is none to read
)
_NOTHING: Final = Facts()
_OPERATORS: Final = """
add + subtract - multiply * divide / floor_divide // remainder % pow ** positive + negative -
matmul @ equal == not_equal != less < less_equal <= greater > greater_equal >= bitwise_and &
bitwise_or | bitwise_xor ^ bitwise_invert ~ bitwise_left_shift << bitwise_right_shift >>
""".split()  # noqa: SIM905
#: By rows the operator that does the same to arrays of one dtype, or to an array.
SYMBOLS: Final = dict(zip(_OPERATORS[::2], _OPERATORS[1::2], strict=True))
#: Rows by other names: functions that a row's composite hands on to, and Python's arithmetic.
_ALSO: Final = {"asarray": "astype", "concat": "concat_arrays", "stack": "stack_arrays"} | {
    f"number.{python}": name for python, name, *_ in (*BINARY, *UNARY, *ORDER, *EQUALITY)
}


def row_of(name: str) -> Primitive | None:
    """The row of the primitive that instructions of a name call."""
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
    """Facts of one function."""

    #: Whether it reads values or chooses its memory. Programs call it whole.
    looks: bool = False
    #: Whether values raise errors.
    raises: bool = False
    #: Whether it takes a number for each row, and can write into its first operand.
    of_rows: bool = False
    #: ``chooses(x, axis, keepdims)`` is not None if the order in memory matters. Otherwise programs
    #: call this reduction of a ufunc.
    chooses: Callable[..., Any] | None = None
    reduction: Kernel | None = None
    #: Programs call the kernel if ``covers`` holds of the arguments, else the composite's pieces.
    covers: Callable[..., bool] | None = None
    kernel: Kernel | None = None


#: Facts of a function that is not listed.
PLAIN: Final = KernelFacts()

_LOOKS: Final = KernelFacts(looks=True)
_OF_ROWS: Final = KernelFacts(of_rows=True)


def _sums_by_rows(x: Any, axis: Any, keepdims: bool) -> Any:
    return numpy_reductions.rows(x.shape, axis, not keepdims)


KERNELS: Final[Mapping[Kernel, KernelFacts]] = {
    numpy_classification.targets: KernelFacts(looks=True, raises=True),
    numpy_classification.counted_losses: _LOOKS,
    numpy_classification.number_counted: _LOOKS,
    numpy_normalisations.inverse_roots: _LOOKS,
    numpy_normalisations.scaled_rows: _OF_ROWS,
    numpy_normalisations.shifted_rows: _OF_ROWS,
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
    **{
        numpy_recurrent.KERNELS[kernel.__name__]: KernelFacts(covers=covers, kernel=kernel)
        for kernel, covers in numpy_recurrent.COVERED.items()
    },
}
