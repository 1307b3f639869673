"""What is made of numbers and raw arrays that a recording follows, from the first call on."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg

pytestmark = pytest.mark.filterwarnings("ignore:wg.compile has recorded", "ignore:invalid value")

_NAN = float("nan")
_LARGE = 2**60 + 2**36 + 1  # rounded to float32 by way of float64 it is another number
_SCALAR, _SMALL = np.float32(1), np.int16(3)


def _told(function: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """What a function gives, with its dtype, or which error."""
    try:
        answer = function(*given)
    except Exception as error:
        return type(error)
    array = answer.detach().numpy() if isinstance(answer, wg.Tensor) else answer
    return type(answer), np.asarray(array).dtype, np.shape(array), repr(np.asarray(array).tolist())


def _check(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> None:
    compiled = wg.compile(function, check=0)
    for given in calls:
        assert _told(compiled, given) == _told(function, given), given


_PAIRS: list[tuple[Any, ...]] = [
    *[(_SCALAR, 2.0), (_SCALAR, 3.0), (_SMALL, 2.0), (_SMALL, 2), (np.bool_(1), 2), (1, 2.0)],
    *[(1, 2), (True, 2), (1.0, 2j), (np.float16(1), np.int64(4)), (_LARGE, 2.0), (_LARGE, 2)],
    *[(np.array(2, "f4"), 2.0), (2, np.array(2, "i2")), (1, 2**63), (1, 5), (-1, 2**63), (-1, 5)],
    *[(2**64, 1), (2**70, 1), (2.0, "x"), (2.0, None), (2.0, np.longdouble(1))],
]
_LISTS: dict[str, Callable[[Any, Any], Any]] = {
    "a list": lambda a, b: wg.asarray([a, b]),
    "nested": lambda a, b: wg.asarray([[a, b], (1, 2.0)]),
    "tensor": lambda a, b: wg.tensor([a, b]),
    "a mean": lambda a, b: wg.mean(wg.tensor([a, b, 0.5])),
    "a stack": lambda a, b: wg.stack([wg.asarray([a, 1.0]), wg.asarray([b, 2])]),
    "a parameter": lambda a, b: wg.nn.Parameter([a, b, 0.5]) * 1,
    "in float32": lambda a, b: wg.asarray([a, b], dtype=wg.float32),
    "in int64": lambda a, b: wg.asarray([a, b], dtype=wg.int64),
    "beside a Tensor": lambda a, b: wg.asarray([a, wg.ones(()), b]),
    "NumPy's function": lambda a, b: np.multiply([a, b, 0.1], wg.ones(3)),
}


def _assigned(a: Any, b: Any) -> Any:
    made = wg.zeros(3, dtype=wg.float64)
    made[...] = [a, b, 0.1]
    return made


_LISTS["assigned"] = _assigned


@pytest.mark.parametrize("name", _LISTS)
def test_lists_of_numbers(name: str) -> None:
    _check(_LISTS[name], _PAIRS)


def test_quantiles_among_numbers() -> None:
    _check(lambda a: wg.quantile(wg.arange(9.0), [a, 0.1]), [(0.3,), (0.7,), (_SCALAR,)])


_NUMBERS = [
    2,
    3,
    2**70,
    4,
    2**63,
    -(2**63),
    -(2**70),
    2**64 - 1,
    2**64,
    300,
    -1,
    1.5,
    2.5,
    _NAN,
    3j,
]
_DTYPES = ["bool", "uint8", "int64", "uint64", "float16", "float32", "float64", "complex64", None]


@pytest.mark.parametrize("dtype", _DTYPES)
def test_numbers(dtype: Any) -> None:
    _check(lambda a: wg.asarray(a, dtype=dtype), [(x,) for x in [*_NUMBERS, _LARGE]])


def test_integers_of_arrays_that_are_too_large_for_a_later_call() -> None:
    calls = [np.array(5), np.array(6), np.array(2**63 - 1)]
    _check(lambda x: wg.asarray([x.item() + x.item(), 1.0]), [(x,) for x in calls])


_NO_NUMBERS = {
    "text": np.array(["a", "b"]),
    "objects": np.array([1, None]),
    "dates": np.array(["2020-01-01"], "M8[D]"),
    "times": np.array([1], "m8[s]"),
    "records": np.zeros(2, "i4,f4"),
    "long numbers": np.ones(2, np.longdouble),
    "bytes": np.array([b"a"]),
}


@pytest.mark.parametrize("name", _NO_NUMBERS)
def test_arrays_of_no_numbers_are_refused(name: str) -> None:
    held = _NO_NUMBERS[name]
    with pytest.raises(TypeError, match="asarray takes numbers"):
        wg.compile(lambda x: wg.tensor(x), check=0)(held)
    with pytest.raises(TypeError, match="asarray takes numbers"):
        wg.compile(lambda: wg.tensor(held), check=0)()


@pytest.mark.parametrize("dtype", [None, wg.float64])
@pytest.mark.parametrize("copy", [None, False, True])
def test_copies(copy: bool | None, dtype: Any) -> None:
    arrays = [np.arange(3.0), np.arange(3.0).astype(">f8"), np.array(2.0), np.zeros((0, 2))]
    arrays += [np.zeros((0, 2), ">f8"), np.arange(6.0)[::2], np.arange(3, dtype="i4")]
    given = [2, 3, 2.0, np.float64(2), [1.0, 2.0], [3, 4.0], *arrays]
    _check(lambda x: wg.asarray(x, copy=copy, dtype=dtype) * 2, [(x,) for x in given])
    for held in arrays:
        _check(lambda held=held: wg.asarray(held, copy=copy, dtype=dtype) * 2, [(), ()])


_INFINITE = np.complex64(complex("inf+nanj"))
_WITH: list[Callable[[Any, Any], Any]] = [
    *[operator.gt, operator.ge, operator.eq, operator.add, operator.mul, operator.truediv],
    *[operator.pow, np.multiply, np.greater, lambda c, a: a < c, lambda c, a: 1 if c > a else 2],
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", _WITH)
def test_scalars_beside_numbers(function: Callable[[Any, Any], Any]) -> None:
    for scalar in (_INFINITE, np.complex128(_NAN), np.complex64(1.1 + 2.3j), np.float32(2)):
        numbers = [-2, -2, 3, -2.5, 0.3 + 0.7j, _NAN]
        _check(lambda a, held=scalar: function(held, a), [(x,) for x in numbers])
