"""Algebraic simplification: where it applies, and where it must not.

Functions of the tables are expressions of the namespace ``xp`` and of arrays ``x`` and ``y``.
"""

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
SQUARE = np.array([[1.0, 2.0], [3.0, 4.0]])
ROW = np.array([-0.0, np.inf, 0.1])


def of(text: str) -> Callable[..., Any]:
    """The function of an expression."""
    return eval(f"lambda xp, x, y=None: {text}", {"np": np})  # type: ignore[no-any-return]


# -- where it applies ----------------------------------------------------------------------

SAME = """
xp.multiply(x, 1)
xp.multiply(1.0, x)
xp.multiply(x, xp.ones_like(x))
xp.multiply(xp.ones_like(x[0]), x)
xp.multiply(x, xp.full_like(x, 1.0))
xp.multiply(xp.broadcast_to(xp.ones_like(xp.sum(x)), (2, 3)), x)
xp.divide(x, 1)
xp.divide(x, xp.ones_like(x))
xp.pow(x, 1)
xp.pow(x, 1.0)
xp.negative(xp.negative(x))
xp.matrix_transpose(xp.matrix_transpose(x))
xp.permute_dims(x, axes=(0, 1))
xp.permute_dims(xp.permute_dims(xp.expand_dims(x, axis=0), axes=(2, 0, 1)), axes=(1, 2, 0))[0]
xp.reshape(x, shape=(2, 3))
xp.reshape(xp.reshape(x, shape=(6,)), shape=(2, 3))
xp.squeeze(xp.expand_dims(x, axis=1), axis=1)
xp.broadcast_to(x, (2, 3))
xp.asarray(x, copy=True)
xp.astype(x, x.dtype, copy=True)
"""


@pytest.mark.whole
@pytest.mark.parametrize("text", SAME.strip().splitlines())
def test_identities_of_floats(backend: Backend, text: str) -> None:
    program = traces(lambda xp, x: xp.negative(of(text)(xp, x)), backend.from_numpy(SPECIAL))
    better = optimise(program)
    assert names(better)[-1:] == ["negative"]
    if not text.endswith("[0]"):  # of which the axis more and less stays
        assert better.instructions[0].operands == (better.inputs[0],)
    assert "permute_dims" not in names(better)
    agrees(program, better, backend, SPECIAL)
    agrees(program, better, backend, SPECIAL[:, ::-1].copy())


#: Functions of two arrays, and of what their programs consist.
SIGNS = {
    "xp.add(x, xp.negative(y))": "subtract",
    "xp.add(xp.negative(x), y)": "subtract",
    "xp.add(xp.negative(x), xp.negative(y))": "negative subtract",
    "xp.subtract(x, xp.negative(y))": "add",
    "xp.multiply(xp.negative(x), xp.negative(y))": "multiply",
    "xp.add(xp.multiply(xp.negative(x), 2), y)": "multiply add",
    "xp.subtract(y, xp.divide(0, xp.negative(x)))": "divide subtract",
    "xp.sin(xp.negative(xp.multiply(x, 3.0)))": "multiply sin",
    "xp.add(x, xp.divide(xp.negative(x), y))": "divide subtract",
    "xp.negative(xp.multiply(xp.negative(x), y))": "multiply",
    "xp.multiply(x, xp.negative(y[0]))": "getitem negative multiply",
    "xp.copysign(x, xp.add(x, xp.negative(y)))": "negative add copysign",  # a sign that is read
    "xp.multiply(xp.full_like(x, -0.0), x)": "multiply",
    "xp.add_part(x, xp.negative(y[0]), key=(0,), own=False)": "getitem subtract_part",
}


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("text", SIGNS)
def test_negations_and_constants_move_into_sums_and_products(text: str) -> None:
    program = traces(of(text), SPECIAL, SPECIAL[::-1].copy())
    better = optimise(program)
    assert names(better) == SIGNS[text].split()
    assert not better.constants
    for y in (SPECIAL[::-1].copy(), SPECIAL[:, ::-1].copy(), np.stack([ROW, -ROW])):
        agrees(program, better, NUMPY, SPECIAL, y)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "complex128"])
def test_negations_of_other_numbers_stay(dtype: str) -> None:
    x = np.array([0, 1, 100], dtype)
    program = traces(of("xp.add(y, xp.negative(x))"), x, np.ones(3))
    assert names(optimise(program))[-2:] != ["subtract"]
    agrees(program, optimise(program), NUMPY, x, ROW)


# -- where it must not -------------------------------------------------------------------

#: Identities that are none, with a point that shows it.
DIFFERENT: dict[str, Any] = {
    "xp.add(x, 0.0)": SPECIAL,
    "xp.add(x, 0)": SPECIAL,
    "xp.add(x, xp.zeros_like(x))": SPECIAL,
    "xp.multiply(x, 1)": COMPLEX,
    "xp.divide(x, 1)": COMPLEX,
    "xp.divide(x, xp.ones_like(x))": np.array([1, 2]),
    "xp.multiply(x, 1.5)": SPECIAL,
    "xp.multiply(x, 0)": SPECIAL,
    "xp.divide(1, x)": SPECIAL,
    "xp.subtract(0, x)": SPECIAL,
    "xp.pow(1, x)": SPECIAL,
    "xp.reshape(x, shape=(3, 2))": SPECIAL,
    "xp.reshape(xp.reshape(x, shape=(6,)), shape=(3, 2))": SPECIAL,
    "xp.broadcast_to(x, (4, 2, 3))": SPECIAL,
    "xp.multiply(x, xp.ones((3, 2, 3), device=xp.device(x)))": SPECIAL,
    "xp.matrix_transpose(x)": SQUARE,
    "xp.permute_dims(x, axes=(1, 0))": SQUARE,
    "xp.permute_dims(xp.permute_dims(x, axes=(2, 0, 1)), axes=(2, 0, 1))": SPECIAL[:, :, None],
    "xp.squeeze(xp.expand_dims(x, axis=0), axis=2)": np.ones((3, 1)),
    "xp.reshape(xp.matrix_transpose(xp.reshape(x, shape=(3, 2))), shape=(2, 3))": SPECIAL,
}


@pytest.mark.whole
@pytest.mark.parametrize("text", DIFFERENT)
def test_what_is_no_identity(text: str) -> None:
    at = DIFFERENT[text]
    with np.errstate(all="ignore"):
        program = traces(lambda xp, x: xp.negative(of(text)(xp, x)), at)
        better = simplify(program)
        assert names(dead(better)) != ["negative"]
        agrees(program, better, NUMPY, at)
        plain = traces(lambda xp, x: xp.negative(x), at)
        assert not same_bits(plain(at)[0], program(at)[0])


def test_to_another_device_is_no_identity() -> None:
    """Values do not say where they are."""
    program = traces(of('xp.negative(xp.asarray(x, device="cpu"))'), SPECIAL)
    assert names(optimise(program)) == ["asarray", "negative"]


TURNED = """
xp.multiply(x, 1)
xp.multiply(x, xp.ones_like(x))
xp.asarray(x, copy=True)
xp.reshape(xp.reshape(x, shape=(-1,)), shape=x.shape)
xp.multiply(xp.negative(x), xp.ones_like(x))
"""


@pytest.mark.parametrize("turn", ["matrix_transpose", "flip"])
def test_what_puts_elements_in_order_stays(turn: str) -> None:
    """NumPy's functions round otherwise on elements that are not in order."""
    at = np.random.default_rng(0).normal(size=(40, 50))
    for text in TURNED.strip().splitlines():
        program = traces(lambda xp, x: xp.sinh(of(text)(xp, getattr(xp, turn)(x))), at)  # noqa: B023
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
