"""Algebraic simplification: where it applies, and where it must not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.compiler.bits import same_bits
from tests.compiler.recorded import agrees, names, traces
from wengert.backends import Backend, get_backend
from wengert.compiler.passes import dead, optimise, simplify

NUMPY = get_backend("numpy")

#: What identities go wrong at.
SPECIAL = np.array([[-0.0, 0.0, np.nan], [np.inf, -np.inf, -2.25]])
COMPLEX = np.array([complex(a, b) for a in (-0.0, 0.0, np.inf, 1.5) for b in (-0.0, np.nan, -2.0)])
INTEGERS = np.array([[0, 1, -1], [7, -(2**63), 2**63 - 1]])
FLAGS = np.array([True, False])

# -- where it applies ----------------------------------------------------------------------

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
    "-(-x)": lambda xp, x: xp.negative(xp.negative(x)),
    "x.mT.mT": lambda xp, x: xp.matrix_transpose(xp.matrix_transpose(x)),
    "no permutation": lambda xp, x: xp.permute_dims(x, axes=(0, 1)),
    "own shape": lambda xp, x: xp.reshape(x, shape=(2, 3)),
    "flat and back": lambda xp, x: xp.reshape(xp.reshape(x, shape=(6,)), shape=(2, 3)),
    "an axis more and less": lambda xp, x: xp.squeeze(xp.expand_dims(x, axis=1), axis=1),
    "broadcast to its shape": lambda xp, x: xp.broadcast_to(x, (2, 3)),
    "a copy": lambda xp, x: xp.asarray(x, copy=True),
    "its own dtype": lambda xp, x: xp.astype(x, x.dtype, copy=True),
}


@pytest.mark.whole
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


ROW = np.array([-0.0, np.inf, 0.1])
#: Functions of two arrays, and of what their programs consist.
SIGNS: dict[str, tuple[Callable[..., Any], str]] = {
    "x + -y": (lambda xp, x, y: xp.add(x, xp.negative(y)), "subtract"),
    "-x + y": (lambda xp, x, y: xp.add(xp.negative(x), y), "subtract"),
    "-x + -y": (lambda xp, x, y: xp.add(xp.negative(x), xp.negative(y)), "negative subtract"),
    "x - -y": (lambda xp, x, y: xp.subtract(x, xp.negative(y)), "add"),
    "-x * -y": (lambda xp, x, y: xp.multiply(xp.negative(x), xp.negative(y)), "multiply"),
    "-x * 2": (lambda xp, x, y: xp.add(xp.multiply(xp.negative(x), 2), y), "multiply add"),
    "0 / -x": (lambda xp, x, y: xp.subtract(y, xp.divide(0, xp.negative(x))), "divide subtract"),
    "-(x * 3)": (lambda xp, x, y: xp.sin(xp.negative(xp.multiply(x, 3.0))), "multiply sin"),
    "-x / y": (lambda xp, x, y: xp.add(x, xp.divide(xp.negative(x), y)), "divide subtract"),
    "-(-x * y)": (lambda xp, x, y: xp.negative(xp.multiply(xp.negative(x), y)), "multiply"),
    "x * -row": (lambda xp, x, y: xp.multiply(x, xp.negative(y[0])), "getitem negative multiply"),
    "a sign that is read": (
        lambda xp, x, y: xp.copysign(x, xp.add(x, xp.negative(y))),
        "negative add copysign",
    ),
    "x * full": (lambda xp, x, y: xp.multiply(xp.full_like(x, -0.0), x), "multiply"),
}  # fmt: skip


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SIGNS)
def test_negations_and_constants_move_into_sums_and_products(name: str) -> None:
    function, left = SIGNS[name]
    program = traces(function, SPECIAL, SPECIAL[::-1].copy())
    better = optimise(program)
    assert names(better) == left.split()
    assert not better.constants
    for y in (SPECIAL[::-1].copy(), SPECIAL[:, ::-1].copy(), np.stack([ROW, -ROW])):
        agrees(program, better, NUMPY, SPECIAL, y)


def test_a_negation_is_subtracted_from_a_part() -> None:
    more = {"key": (slice(1, None),), "own": False}
    program = traces(lambda xp, x, y: xp.add_part(x, xp.negative(y), **more), ROW, ROW[:2].copy())
    assert names(optimise(program)) == ["subtract_part"]
    agrees(program, optimise(program), NUMPY, -ROW, ROW[1:].copy())


@pytest.mark.parametrize("dtype", ["uint8", "int8", "complex128"])
def test_negations_of_other_numbers_stay(dtype: str) -> None:
    x = np.array([0, 1, 100], dtype)
    program = traces(lambda xp, x, y: xp.add(y, xp.negative(x)), x, np.ones(3))
    assert names(optimise(program))[-2:] != ["subtract"]
    agrees(program, optimise(program), NUMPY, x, ROW)


# -- where it must not -------------------------------------------------------------------

#: Identities that are none, with a point that shows it.
DIFFERENT: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "x + 0.0": (lambda xp, x: xp.add(x, 0.0), SPECIAL),
    "x + 0": (lambda xp, x: xp.add(x, 0), SPECIAL),
    "x + zeros": (lambda xp, x: xp.add(x, xp.zeros_like(x)), SPECIAL),
    "z * 1": (lambda xp, x: xp.multiply(x, 1), COMPLEX),
    "z / 1": (lambda xp, x: xp.divide(x, 1), COMPLEX),
    "n / 1": (lambda xp, x: xp.divide(x, xp.ones_like(x)), np.array([1, 2])),
    "x * 1.5": (lambda xp, x: xp.multiply(x, 1.5), SPECIAL),
    "x * 0": (lambda xp, x: xp.multiply(x, 0), SPECIAL),
    "1 / x": (lambda xp, x: xp.divide(1, x), SPECIAL),
    "0 - x": (lambda xp, x: xp.subtract(0, x), SPECIAL),
    "1 ** x": (lambda xp, x: xp.pow(1, x), SPECIAL),
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
    "an axis moved": (
        lambda xp, x: xp.squeeze(xp.expand_dims(x, axis=0), axis=2),
        np.ones((3, 1)),
    ),
    "transposed between": (
        lambda xp, x: xp.reshape(xp.matrix_transpose(xp.reshape(x, shape=(3, 2))), shape=(2, 3)),
        SPECIAL,
    ),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_no_identity(name: str) -> None:
    function, at = DIFFERENT[name]

    def after(xp: Any, x: Any) -> Any:
        return xp.negative(function(xp, x))

    with np.errstate(all="ignore"):
        program = traces(after, at)
        better = simplify(program)
        assert names(dead(better)) != ["negative"]
        agrees(program, better, NUMPY, at)
        plain = traces(lambda xp, x: xp.negative(x), at)
        assert not same_bits(plain(at)[0], program(at)[0])


def test_to_another_device_is_no_identity() -> None:
    """Values do not say where they are."""

    def function(xp: Any, x: Any) -> Any:
        return xp.negative(xp.asarray(x, device="cpu"))

    assert names(optimise(traces(function, SPECIAL))) == ["asarray", "negative"]


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
    given = program.instructions[-1].operands[0], better.instructions[-1].operands[0]
    assert given[0].order == given[1].order
    agrees(program, better, NUMPY, at)


def test_what_is_broadcast_leaves_results_in_order() -> None:
    def function(xp: Any, x: Any, row: Any) -> Any:
        spread = xp.broadcast_to(row, (2, 2))
        first = xp.multiply(xp.add(xp.matmul(x, x), spread), 1)
        return xp.sinh(first), xp.exp(xp.multiply(spread, 1))

    points = np.ones((2, 2)), np.ones(2)
    program = traces(function, *points)
    kept = names(optimise(program))
    assert kept[-3:] == ["add", "sinh", "exp"]
    assert "multiply" not in kept
    agrees(program, optimise(program), NUMPY, *points)
