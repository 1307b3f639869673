"""The machine-independent passes: what each does, and where it must not."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.compiler.bits import same_bits
from wengert.backends import Backend, get_backend
from wengert.compiler.passes import common, dead, folding, optimise, trivia
from wengert.compiler.passes.folding import LARGEST
from wengert.compiler.program import Instruction, Program, Value
from wengert.compiler.trace import LiveNumber, Trace, traced

NUMPY = get_backend("numpy")

#: What identities go wrong at.
SPECIAL = np.array([[-0.0, 0.0, np.nan], [np.inf, -np.inf, -2.25]])
COMPLEX = np.array([complex(a, b) for a in (-0.0, 0.0, np.inf, 1.5) for b in (-0.0, np.nan, -2.0)])
INTEGERS = np.array([[0, 1, -1], [7, -(2**63), 2**63 - 1]])
FLAGS = np.array([True, False])


def traces(function: Callable[..., Any], *inputs: Any) -> Program:
    """The program of a function of the tracing namespace, raw arrays and numbers."""
    trace = Trace()
    with trace.running():
        answer = function(traced, *[trace.input(x) for x in inputs])
        return trace.program(answer if isinstance(answer, tuple) else (answer,))


def names(program: Program) -> list[str]:
    return [step.name for step in program.instructions]


def agrees(program: Program, better: Program, backend: Backend, *inputs: Any) -> None:
    """Both give the same on the inputs, which are NumPy arrays or numbers."""
    for x, y in zip(program(*raw(backend, inputs)), better(*raw(backend, inputs)), strict=True):
        if hasattr(x, "dtype"):
            x, y = backend.to_numpy(backend.array(x)), backend.to_numpy(backend.array(y))
        assert same_bits(x, y)


def raw(backend: Backend, inputs: Any) -> list[Any]:
    return [backend.from_numpy(x) if hasattr(x, "dtype") else x for x in inputs]


# -- trivia: where it fires ------------------------------------------------------------------------

FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "x * 1": lambda xp, x: xp.multiply(x, 1),
    "1.0 * x": lambda xp, x: xp.multiply(1.0, x),
    "x * ones": lambda xp, x: xp.multiply(x, xp.ones_like(x)),
    "x * broadcast ones": lambda xp, x: xp.multiply(xp.ones_like(x[0]), x),
    "x * full": lambda xp, x: xp.multiply(x, xp.full_like(x, 1.0)),
    "x * the seed of a sum": lambda xp, x: xp.multiply(
        xp.broadcast_to(xp.ones_like(xp.sum(x)), (2, 3)), x
    ),
    "x / 1": lambda xp, x: xp.divide(x, 1),
    "x / ones": lambda xp, x: xp.divide(x, xp.ones_like(x)),
    "x ** 1": lambda xp, x: xp.pow(x, 1),
    "x ** 1.0": lambda xp, x: xp.pow(x, 1.0),
    "x + -0.0": lambda xp, x: xp.add(x, -0.0),
    "-0.0 + x": lambda xp, x: xp.add(-0.0, x),
    "x - 0": lambda xp, x: xp.subtract(x, 0),
    "x - 0.0": lambda xp, x: xp.subtract(x, 0.0),
    "x - zeros": lambda xp, x: xp.subtract(x, xp.zeros_like(x)),
    "-(-x)": lambda xp, x: xp.negative(xp.negative(x)),
    "x.mT.mT": lambda xp, x: xp.matrix_transpose(xp.matrix_transpose(x)),
    "no permutation": lambda xp, x: xp.permute_dims(x, axes=(0, 1)),
    "own shape": lambda xp, x: xp.reshape(x, shape=(2, 3)),
    "flat and back": lambda xp, x: xp.reshape(xp.reshape(x, shape=(6,)), shape=(2, 3)),
    "an axis more and less": lambda xp, x: xp.squeeze(xp.expand_dims(x, axis=1), axis=1),
    "broadcast to its shape": lambda xp, x: xp.broadcast_to(x, (2, 3)),
    "a copy": lambda xp, x: xp.asarray(x, copy=True),
    "its own dtype": lambda xp, x: xp.astype(x, x.dtype, copy=True),
    "max over no axes": lambda xp, x: xp.max(x, axis=()),
    "prod over no axes": lambda xp, x: xp.prod(x, axis=()),
    "maximum of one": lambda xp, x: xp.maximum(x, x),
    "where between one": lambda xp, x: xp.where(xp.greater(x, 0), x, x),
    "where true": lambda xp, x: xp.where(xp.astype(xp.ones_like(x), bool_like(x)), x, x * 2),
    "where false": lambda xp, x: xp.where(xp.astype(xp.zeros_like(x), bool_like(x)), x * 2, x),
    "all of it": lambda xp, x: xp.getitem(x, key=(Ellipsis,)),
    "each axis": lambda xp, x: xp.getitem(x, key=(slice(None), slice(None))),
    "one array put together": lambda xp, x: xp.concat_arrays(x, axis=0),
}


def bool_like(x: Any) -> Any:
    return traced.equal(x, x).dtype


@pytest.mark.parametrize("name", FLOATS)
def test_identities_of_floats(backend: Backend, name: str) -> None:
    identity = FLOATS[name]
    x = backend.from_numpy(SPECIAL)
    program = traces(lambda xp, x: xp.negative(identity(xp, x)), x)
    better = optimise(program)
    assert names(better) == ["negative"]
    assert better.instructions[0].operands == (better.inputs[0],)
    agrees(program, better, backend, SPECIAL)
    agrees(program, better, backend, SPECIAL[:, ::-1].copy())


WHOLE: dict[str, Callable[[Any, Any], Any]] = {
    **{n: FLOATS[n] for n in ("x * 1", "x * ones", "x ** 1", "x - 0", "-(-x)", "x - zeros")},
    "x + 0": lambda xp, x: xp.add(x, 0),
    "0 + x": lambda xp, x: xp.add(0, x),
    "x + zeros": lambda xp, x: xp.add(xp.zeros_like(x), x),
    "floor": lambda xp, x: xp.floor(x),
    "round": lambda xp, x: xp.round(x),
    "sum over no axes": lambda xp, x: xp.sum(x, axis=()),
    "~~x": lambda xp, x: xp.bitwise_invert(xp.bitwise_invert(x)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_identities_of_integers(backend: Backend, name: str) -> None:
    identity = WHOLE[name]
    x = backend.from_numpy(INTEGERS)
    program = traces(lambda xp, x: xp.negative(identity(xp, x)), x)
    better = optimise(program)
    assert names(better) == ["negative"]
    agrees(program, better, backend, INTEGERS)


def test_identities_of_complex_numbers(backend: Backend) -> None:
    def function(xp: Any, z: Any) -> Any:
        return xp.negative(xp.negative(xp.negative(xp.subtract(z, 0))))

    program = traces(function, backend.from_numpy(COMPLEX))
    better = optimise(program)
    assert names(better) == ["negative"]
    agrees(program, better, backend, COMPLEX)


def test_identities_of_flags(backend: Backend) -> None:
    def function(xp: Any, x: Any) -> Any:
        return xp.logical_not(xp.logical_not(xp.logical_not(x)))

    program = traces(function, backend.from_numpy(FLAGS))
    assert names(optimise(program)) == ["logical_not"]
    agrees(program, optimise(program), backend, FLAGS)


def test_permutations_that_cancel(backend: Backend) -> None:
    cube = np.arange(24.0).reshape(2, 3, 4)

    def back(xp: Any, x: Any) -> Any:
        there = xp.permute_dims(x, axes=(2, 0, 1))
        return xp.negative(xp.permute_dims(there, axes=(1, 2, 0)))

    def on(xp: Any, x: Any) -> Any:
        there = xp.permute_dims(x, axes=(2, 0, 1))
        return xp.negative(xp.permute_dims(there, axes=(2, 0, 1)))

    same = np.arange(8.0).reshape(2, 2, 2)
    program = traces(on, backend.from_numpy(same))
    assert optimise(program) is program
    program = traces(back, backend.from_numpy(cube))
    assert names(optimise(program)) == ["negative"]
    agrees(program, optimise(program), backend, cube)


def test_numbers() -> None:
    def function(xp: Any, x: Any, a: LiveNumber) -> Any:
        return xp.multiply(x, -((-(a * 1 / 1 - 0)) ** 1))

    program = traces(function, SPECIAL, 0.5)
    assert names(program).count("number.neg") == 2
    better = optimise(program)
    # -(-a ** 1) binds as -((-a) ** 1)...: one sign of each pair is left of none.
    assert names(better) == ["multiply"]
    for number in (0.5, -0.75, 1e300):
        agrees(program, better, NUMPY, SPECIAL, number)


# -- trivia: where it must not ---------------------------------------------------------------------

#: Identities that are none, with a point that shows it.
DIFFERENT: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "x + 0.0": (lambda xp, x: xp.add(x, 0.0), SPECIAL),
    "x + 0": (lambda xp, x: xp.add(x, 0), SPECIAL),
    "x + zeros": (lambda xp, x: xp.add(x, xp.zeros_like(x)), SPECIAL),
    "x - -0.0": (lambda xp, x: xp.subtract(x, -0.0), SPECIAL),
    "z * 1": (lambda xp, x: xp.multiply(x, 1), COMPLEX),
    "z / 1": (lambda xp, x: xp.divide(x, 1), COMPLEX),
    "n / 1": (lambda xp, x: xp.divide(x, xp.ones_like(x)), np.array([1, 2])),
    "x * 1.5": (lambda xp, x: xp.multiply(x, 1.5), SPECIAL),
    "x * 0": (lambda xp, x: xp.multiply(x, 0), SPECIAL),
    "1 / x": (lambda xp, x: xp.divide(1, x), SPECIAL),
    "0 - x": (lambda xp, x: xp.subtract(0, x), SPECIAL),
    "1 ** x": (lambda xp, x: xp.pow(1, x), SPECIAL),
    "conj": (lambda xp, x: xp.conj(x), np.array([1 + 2j])),
    "sum over no axes": (lambda xp, x: xp.sum(x, axis=()), SPECIAL),
    "sum over an axis": (lambda xp, x: xp.sum(x, axis=0, keepdims=True), np.ones((2, 1))),
    "reshape": (lambda xp, x: xp.reshape(x, shape=(3, 2)), SPECIAL),
    "flat": (lambda xp, x: xp.reshape(xp.reshape(x, shape=(6,)), shape=(3, 2)), SPECIAL),
    "broadcast": (lambda xp, x: xp.broadcast_to(x, (4, 2, 3)), SPECIAL),
    "grown by ones": (
        lambda xp, x: xp.multiply(x, xp.ones((3, 2, 3), device=xp.device(x))),
        SPECIAL,
    ),
    "transposed square": (lambda xp, x: xp.matrix_transpose(x), np.array([[1.0, 2.0], [3.0, 4.0]])),
    "permuted square": (
        lambda xp, x: xp.permute_dims(x, axes=(1, 0)),
        np.array([[1.0, 2.0], [3.0, 4.0]]),
    ),
    "floor": (lambda xp, x: xp.floor(x), SPECIAL),
    "a part of it": (lambda xp, x: xp.getitem(x, key=(slice(0, 1),)), SPECIAL),
    "backwards": (lambda xp, x: xp.getitem(x, key=(slice(None, None, -1),)), SPECIAL),
    "two arrays": (lambda xp, x: xp.concat_arrays(x, x, axis=0), SPECIAL),
    "an axis moved": (
        lambda xp, x: xp.squeeze(xp.expand_dims(x, axis=0), axis=2),
        np.ones((3, 1)),
    ),
    "transposed between": (
        lambda xp, x: xp.reshape(xp.matrix_transpose(xp.reshape(x, shape=(3, 2))), shape=(2, 3)),
        SPECIAL,
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_no_identity(name: str) -> None:
    function, at = DIFFERENT[name]

    def after(xp: Any, x: Any) -> Any:
        return xp.negative(function(xp, x))

    with np.errstate(all="ignore"):
        program = traces(after, at)
        better = trivia(program)
        assert len(dead(better).instructions) > 1
        agrees(program, better, NUMPY, at)
        plain = traces(lambda xp, x: xp.negative(x), at)
        assert not same_bits(plain(at)[0], program(at)[0])


def test_integers_that_become_floats() -> None:
    x = np.array([1, 2])
    program = traces(lambda xp, x: xp.negative(xp.multiply(x, 1.0)), x)
    assert trivia(program) is program


def test_a_dtype_that_was_lost_on_the_way() -> None:
    """Casting down and up again rounds."""
    low = np.dtype(np.float32)
    at = np.array([0.1, 1e-50])

    def function(xp: Any, x: Any) -> Any:
        return xp.negative(xp.astype(xp.astype(x, low), x.dtype))

    program = traces(function, at)
    assert optimise(program) is program
    assert not same_bits(program(at)[0], -at)


def test_to_another_device_is_no_identity() -> None:
    """Values do not say where they are."""

    def function(xp: Any, x: Any) -> Any:
        return xp.negative(xp.asarray(x, device="cpu"))

    assert names(optimise(traces(function, SPECIAL))) == ["asarray", "negative"]


def test_a_where_that_broadcasts_stays() -> None:
    def function(xp: Any, x: Any, y: Any) -> Any:
        return xp.negative(xp.where(xp.astype(xp.ones_like(x), np.dtype(bool)), x, y))

    wide = np.ones((2, 2, 3))
    assert "where" in names(optimise(traces(function, SPECIAL, wide)))
    promoted = SPECIAL.astype(np.float32), SPECIAL
    assert "where" in names(optimise(traces(function, *promoted)))


TURNED: dict[str, Callable[[Any, Any], Any]] = {
    "a product": lambda xp, x: xp.multiply(x, 1),
    "a product with ones": lambda xp, x: xp.multiply(x, xp.ones_like(x)),
    "a copy": lambda xp, x: xp.asarray(x, copy=True),
    "flat and back": lambda xp, x: xp.reshape(xp.reshape(x, shape=(-1,)), shape=x.shape),
    "a product of what is as it is": lambda xp, x: xp.multiply(xp.negative(x), xp.ones_like(x)),
}


@pytest.mark.parametrize("name", TURNED)
@pytest.mark.parametrize("turn", ["matrix_transpose", "flip"])
def test_what_puts_elements_in_order_stays(name: str, turn: str) -> None:
    """NumPy's functions round otherwise on elements that are not in order."""

    def function(xp: Any, x: Any) -> Any:
        return xp.sinh(TURNED[name](xp, getattr(xp, turn)(x)))

    at = np.random.default_rng(0).normal(size=(40, 50))
    program = traces(function, at)
    better = optimise(program)
    kept = [n for n in names(program) if n not in ("ones", "full")]
    assert [n for n in names(better) if n not in ("ones", "full")] == kept
    agrees(program, better, NUMPY, at)


# -- what callers get ------------------------------------------------------------------------------

OWN: dict[str, Callable[[Any, Any], Any]] = {
    "a product": lambda xp, x: xp.multiply(x, 1),
    "a view of it": lambda xp, x: xp.reshape(xp.multiply(x, 1), shape=(6,)),
    "a view of a view": lambda xp, x: xp.matrix_transpose(
        xp.expand_dims(xp.multiply(x, xp.ones_like(x)), axis=0)
    ),
    "a constant": lambda xp, x: xp.zeros((2, 3), device=xp.device(x)),
    "a view of a constant": lambda xp, x: xp.reshape(
        xp.zeros((2, 3), device=xp.device(x)), shape=(6,)
    ),
    "two of one": lambda xp, x: (xp.sin(x), xp.sin(x)),
    "two products": lambda xp, x: (xp.multiply(x, 1), xp.multiply(x, 1)),
    "one and its product": lambda xp, x: ((y := xp.sin(x)), xp.multiply(y, 1)),
    "two products of one": lambda xp, x: (xp.multiply(y := xp.sin(x), 1), xp.divide(y, 1)),
    "a product of a view": lambda xp, x: xp.multiply(xp.reshape(x, shape=(6,)), 1),
    "three of one": lambda xp, x: (xp.exp(xp.sin(x)), xp.sin(x), xp.sin(x)),
    "two views": lambda xp, x: (
        xp.reshape(xp.sin(x), shape=(6,)),
        xp.matrix_transpose(xp.sin(x)),
    ),
}


@pytest.mark.parametrize("name", OWN)
def test_outputs_have_memory_of_their_own(name: str) -> None:
    x = np.arange(6.0).reshape(2, 3)
    program = traces(OWN[name], x)
    better = optimise(program)
    agrees(program, better, NUMPY, x)
    first, second = better(x), better(x)
    held = [x, *better.constants.values(), *first, *second]
    for i, a in enumerate(held):
        assert not any(np.shares_memory(a, b) for b in held[i + 1 :])


def test_an_output_that_equals_something_fresh_is_that() -> None:
    program = traces(lambda xp, x: xp.multiply(xp.sin(x), 1), SPECIAL[:1])
    with np.errstate(invalid="ignore"):
        assert names(optimise(program)) == ["sin"]
        agrees(program, optimise(program), NUMPY, SPECIAL)


def test_an_output_is_the_one_that_stays() -> None:
    def function(xp: Any, x: Any) -> Any:
        return xp.exp(xp.sin(x)), xp.sin(x)

    program = traces(function, np.ones(2))
    assert names(common(program)) == ["sin", "exp"]
    agrees(program, common(program), NUMPY, np.ones(2))


def test_numbers_have_no_memory() -> None:
    program = traces(lambda xp, x, a: (a * 1, a * 1, x), np.ones(2), 0.5)
    better = optimise(program)
    assert not better.instructions
    assert better.outputs == (better.inputs[1], better.inputs[1], better.inputs[0])


# -- dead code -------------------------------------------------------------------------------------


def test_dead_code_goes() -> None:
    held = np.ones(3)

    def function(xp: Any, x: Any, y: Any) -> Any:
        xp.multiply(y, held)
        return xp.sin(x)

    program = traces(function, np.ones(3), np.ones(3))
    better = dead(program)
    assert names(better) == ["sin"]
    assert len(better.inputs) == 2
    assert program.constants
    assert not better.constants
    assert dead(better) is better


def test_one_result_of_several_keeps_all() -> None:
    def function(xp: Any, x: Any) -> Any:
        return xp.linalg.qr(x)[1]

    program = traces(function, np.eye(2))
    assert dead(program) is program


def test_draws_stay(backend: Backend) -> None:
    """A generator goes on although nobody looks at what it drew."""

    def function(xp: Any, x: Any) -> Any:
        xp.rand_like(x, dtype=x.dtype)
        xp.rand_like(x, dtype=x.dtype)
        return xp.sin(x)

    program = traces(function, backend.from_numpy(np.ones(3)))
    assert names(optimise(program)) == ["rand_like", "rand_like", "sin"]


# -- common subexpressions -------------------------------------------------------------------------


def _pair(first: Any, second: Any) -> Program:
    """The sum of two calls."""
    return traces(
        lambda xp, x: xp.add(first(xp, x), second(xp, x)), np.arange(1.0, 7).reshape(2, 3)
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda xp, x: xp.sin(x),
        lambda xp, x: xp.multiply(x, 2.5),
        lambda xp, x: xp.multiply(x, -0.0),
        lambda xp, x: xp.multiply(x, math.nan),
        lambda xp, x: xp.multiply(x, float("nan")),
        lambda xp, x: xp.getitem(x, key=(slice(0, 1), slice(None, None, 2))),
        lambda xp, x: xp.astype(x, np.dtype(np.float32), copy=True),
        lambda xp, x: xp.sum(x, axis=(0, 1), keepdims=True),
        lambda xp, x: xp.asarray([1.0, 2.0, 3.0], device=xp.device(x)),
        lambda xp, x: xp.exp(xp.sin(xp.cos(x))),
        lambda xp, x: xp.linalg.qr(x)[0],
    ],
)
def test_equal_calls_are_one(call: Any) -> None:
    program = _pair(call, call)
    once = traces(call, np.ones((2, 3)))
    assert len(common(program).instructions) == len(once.instructions) + 1
    agrees(program, common(program), NUMPY, np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda xp, x: xp.multiply(x, 0.0), lambda xp, x: xp.multiply(x, -0.0)),
        (lambda xp, x: xp.multiply(x, 1), lambda xp, x: xp.multiply(x, 1.0)),
        (lambda xp, x: xp.multiply(x, 1), lambda xp, x: xp.multiply(x, True)),
        (lambda xp, x: xp.multiply(x, 1), lambda xp, x: xp.multiply(x, 1 + 0j)),
        (lambda xp, x: xp.subtract(x, 2), lambda xp, x: xp.subtract(2, x)),
        (lambda xp, x: xp.sin(x), lambda xp, x: xp.cos(x)),
        (lambda xp, x: xp.sum(x, axis=0), lambda xp, x: xp.sum(x, axis=1, keepdims=True)),
        (lambda xp, x: xp.sum(x, axis=0), lambda xp, x: xp.prod(x, axis=0)),
        (
            lambda xp, x: xp.astype(x, np.dtype(np.float32)),
            lambda xp, x: xp.astype(x, np.dtype(np.float16)),
        ),
        (
            lambda xp, x: xp.getitem(x, key=(slice(0, 1),)),
            lambda xp, x: xp.getitem(x, key=(slice(1, 2),)),
        ),
        (
            lambda xp, x: xp.rand_like(x, dtype=x.dtype),
            lambda xp, x: xp.rand_like(x, dtype=x.dtype),
        ),
    ],
)
def test_different_calls_are_two(first: Any, second: Any) -> None:
    program = _pair(first, second)
    assert common(program) is program


def test_functions_of_one_name_are_two() -> None:
    x = Value((), np.dtype(float))
    a, b = Value.like(np.ones(())), Value.like(np.ones(()))
    steps = [
        Instruction("f", lambda x: x + 1, (x,), {}, (a,)),
        Instruction("f", lambda x: x + 2, (x,), {}, (b,)),
    ]
    program = Program((x,), tuple(steps), (a, b))
    assert common(program) is program


def test_operands_without_a_hash_are_different() -> None:
    x = Value((), np.dtype(float))
    a, b = Value.like(np.ones(())), Value.like(np.ones(()))
    call = operator.add
    steps = [Instruction("f", call, (x, {1}), {}, (out,)) for out in (a, b)]
    program = Program((x,), tuple(steps), (a, b))
    assert common(program) is program


# -- constant folding ------------------------------------------------------------------------------


def test_what_depends_on_nothing_is_computed_once(backend: Backend) -> None:
    at = np.arange(3.0)
    held = backend.from_numpy(np.arange(1.0, 4.0))

    def function(xp: Any, x: Any) -> Any:
        row = xp.expand_dims(xp.exp(held), axis=0)
        grid = xp.arange(3, dtype=x.dtype, device=xp.device(x))
        return xp.multiply(xp.add(x, row), xp.add(grid, xp.full_like(x, 0.5)))

    program = traces(function, backend.from_numpy(at))
    better = optimise(program)
    assert names(better) == ["add", "multiply"]
    assert len(better.constants) == 2
    agrees(program, better, backend, at)


def test_a_mean_leaves_no_arithmetic_on_its_seed() -> None:
    """The adjoint of a mean is a constant."""

    def function(xp: Any, x: Any) -> Any:
        seed = xp.ones_like(xp.sum(x))
        return xp.multiply(x, xp.broadcast_to(xp.divide(seed, 6), (2, 3)))

    program = traces(function, SPECIAL)
    assert names(optimise(program)) == ["multiply"]
    agrees(program, optimise(program), NUMPY, SPECIAL)


def test_python_numbers_are_folded_where_they_are_used() -> None:
    x, half, whole = Value((2,), np.dtype(float)), Value(None, float), Value(None, float)
    out = Value((2,), np.dtype(float))
    steps = (
        Instruction("number.truediv", operator.truediv, (1, 2), {}, (half,)),
        Instruction("number.add", operator.add, (half, 0.25), {}, (whole,)),
        Instruction("multiply", np.multiply, (x, whole), {}, (out,)),
    )
    better = folding(Program((x,), steps, (out, half)))
    assert names(better) == ["multiply"]
    assert better.instructions[0].operands == (x, 0.75)
    assert better.outputs == (out, 0.5)


def test_numbers_that_are_inputs_are_not_folded() -> None:
    program = traces(lambda xp, x, a: xp.multiply(x, a + 1), np.ones(2), 0.5)
    assert folding(program) is program


def test_large_results_are_not_kept() -> None:
    def function(xp: Any, x: Any, length: int) -> Any:
        return xp.multiply(x, xp.sum(xp.zeros((length,), device=xp.device(x))))

    for length, left in ((LARGEST, 1), (LARGEST + 1, 3)):
        program = traces(lambda xp, x: function(xp, x, length), np.ones(2))  # noqa: B023
        assert len(folding(program).instructions) == left


def test_folding_does_not_warn() -> None:
    """The trace itself has."""

    def function(xp: Any, x: Any) -> Any:
        return xp.add(x, xp.log(xp.zeros((2,), device=xp.device(x))))

    with np.errstate(all="ignore"):
        program = traces(function, np.ones(2))
    assert names(folding(program)) == ["add"]


def test_draws_are_not_folded(backend: Backend) -> None:
    held = backend.from_numpy(np.ones(3))

    def function(xp: Any, x: Any) -> Any:
        return xp.add(x, xp.rand_like(held, dtype=x.dtype))

    program = traces(function, backend.from_numpy(np.ones(3)))
    assert folding(program) is program


# -- all of them -----------------------------------------------------------------------------------


def test_one_pass_makes_work_for_another() -> None:
    """Equal after sums are shared, a constant after numbers are, trivial after both."""

    def function(xp: Any, x: Any) -> Any:
        a, b = xp.sin(xp.multiply(x, 1)), xp.sin(x)
        return xp.exp(xp.maximum(a, b))

    program = traces(function, np.ones(2))
    assert names(optimise(program)) == ["sin", "exp"]
    agrees(program, optimise(program), NUMPY, np.arange(2.0))


def test_a_program_that_is_as_good_as_can_be_is_itself() -> None:
    program = traces(lambda xp, x: xp.sin(xp.cos(x)), np.ones(2))
    assert optimise(program) is program


def test_long_chains() -> None:
    def function(xp: Any, x: Any) -> Any:
        for _ in range(3000):
            x = xp.negative(xp.multiply(x, 1))
        return xp.sin(x)

    program = traces(function, np.ones(2))
    assert names(optimise(program)) == ["sin"]


def test_lines_stay() -> None:
    def function(xp: Any, x: Any) -> Any:
        y = xp.multiply(xp.sin(x), 1)
        return xp.cos(y)

    program = traces(function, np.ones(2))
    kept = {step.name: step.line for step in program.instructions}
    for step in optimise(program).instructions:
        assert step.line is not None
        assert step.line == kept[step.name]
