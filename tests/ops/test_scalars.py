"""NumPy's scalars are numbers like Python's own, on either side of an operator."""

import operator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.compiler import CompileError
from wengert.tape.primitive import PRIMITIVES

OPERATORS = [
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv),
    *(operator.mod, operator.pow, operator.and_, operator.or_, operator.xor, divmod),
]
SCALARS = [
    *(np.float64(0.1), np.float32(0.1), np.float16(2.5), np.int64(3), np.int64(300), np.int8(3)),
    *(np.bool_(True), np.complex128(1j)),
]
TENSORS = {
    "float32": [0.1, 2.0],
    "float64": [0.1, 2.0],
    "int8": [3, 2],
    "int64": [3, 2],
    "bool": [True, False],
    "complex64": [1j, 2.0],
}


def answer(function: Any, *operands: Any) -> Any:
    try:
        found = function(*operands)
    except (TypeError, ValueError, ArithmeticError) as error:
        return type(error)
    parts = found if isinstance(found, tuple) else (found,)
    return [(type(x), x.dtype, x.shape, repr(x.tolist())) for x in parts]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", OPERATORS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("dtype", TENSORS)
def test_scalars_of_numpy_are_numbers(dtype: str, function: Any) -> None:
    for values in (TENSORS[dtype], TENSORS[dtype][0]):
        x = wg.asarray(values, dtype=dtype)
        for scalar in SCALARS:
            assert answer(function, x, scalar) == answer(function, x, scalar.item())
            assert answer(function, scalar, x) == answer(function, scalar.item(), x)


@pytest.mark.parametrize("function", OPERATORS[:6], ids=lambda function: function.__name__)
def test_comparisons_are_the_same_from_both_sides(function: Any) -> None:
    turned = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
    other = getattr(operator, turned.get(function.__name__, function.__name__))
    x = wg.asarray([0.1, 2.0], dtype=wg.float32)
    for number in (np.float64(0.1), np.array(0.1), np.asarray(2)):  # of which NumPy tells no more
        expected = function(x, number.item()).tolist()
        ufunc = getattr(np, {"eq": "equal", "ne": "not_equal"}.get(function.__name__, ""), None)
        assert function(x, number).tolist() == other(number, x).tolist() == expected
        assert ufunc is None or ufunc(number, x).tolist() == expected


@pytest.mark.parametrize("reached", [False, True])
def test_compiled_comparisons_are_those_of_eager_code(reached: bool) -> None:
    x, number = wg.asarray([0.1, 2.0], dtype=wg.float32), np.float64(0.1)
    step = lambda x, other: [number == x, x >= number] if reached else [other == x, x >= other]
    compiled = wg.compile(step, check=0)
    with pytest.raises(CompileError, match=r"wg\.asarray"):  # whose number is asked for
        wg.compile(lambda x, other: other == x)(x, np.array(0.1))
    for _ in range(3):
        found, expected = compiled(x, number), step(x, number)
        assert [y.tolist() for y in found] == [y.tolist() for y in expected]
        assert expected[0].tolist() == [True, False]


#: Functions of two numbers of which one may stay Python's.
WEAK = sorted(
    name
    for name, row in PRIMITIVES.items()
    if row.elementwise and row.weak and len(row.inputs) == 2 and row.rules and name != "nextafter"
)


def slopes(function: Any) -> list[Any]:
    """A value and two derivatives, the second one forward over reverse and reverse twice."""

    def slope(x: Any) -> Any:
        return wg.grad(lambda x: wg.sum(function(x)))(x)

    x = wg.asarray([0.5, 1.5])
    twice = wg.grad(lambda x: wg.sum(slope(x)))(x)
    return [function(x), *wg.jvp(slope, (x,), (wg.ones_like(x),)), twice]


@pytest.mark.parametrize("name", WEAK)
def test_numbers_beside_a_tensor_are_as_tensors_in_all_derivatives(backend: Any, name: str) -> None:
    run = PRIMITIVES[name].bind
    for number, tensor in (
        (lambda x: run(x, 2.0), lambda x: run(x, wg.full_like(x, 2.0))),
        (lambda x: run(2.0, x), lambda x: run(wg.full_like(x, 2.0), x)),
    ):
        for found, expected in zip(slopes(number), slopes(tensor), strict=True):
            np.testing.assert_allclose(found.tolist(), expected.tolist(), rtol=1e-6)


def test_the_slope_of_hypot_is_differentiated_beside_numbers(backend: Any) -> None:
    """PyTorch and array_api_strict make no zeros like a number; samples leave them out."""
    test_numbers_beside_a_tensor_are_as_tensors_in_all_derivatives(backend, "hypot")
