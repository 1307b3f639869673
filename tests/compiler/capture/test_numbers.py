"""Numbers among the arguments: followed where they are computed with, pinned elsewhere."""

import builtins
import copy
import enum
import functools
import math
import numbers
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.ordinary import alike
from wengert.nn import functional

FLOATS = [2.5, -1.5, 0.0, -0.0, 3.0, 7.25, 2.5]
INTEGERS = [2, 3, 5, 2, 1, 7]
SMALL = [1, 2, 0, 1, 2]
MIXED = [1.5, 2, True, 2.5, 3, False]
ZEROS = [0.0, -0.0, 0.0, -0.0, 1.0]
NAN = [math.nan, 1.0, math.inf, math.nan]
SHARES = [0.125, 0.5, 0.125]
ROOTS = [4.0, 9.0, 2.0, -1.0, 3.0, -1.0, 0.0, -2.0]


def matched(x: Any, k: Any) -> Any:
    match k:
        case float():
            return x * k
        case int():
            return x - k


class Level(enum.IntEnum):
    LOW = 1


Body = Callable[[Any, Any], Any]

#: A function of a Tensor of three numbers and a number, and what the number is in each call.
CASES: dict[str, tuple[Body, list[Any]]] = {
    # Types.
    "isinstance float": (lambda x, k: x * k if isinstance(k, float) else x - k, MIXED),
    "isinstance bool": (lambda x, k: x * k if isinstance(k, bool) else x - k, MIXED),
    "type": (lambda x, k: x * k if type(k) is float else x - k, MIXED),
    "type of a module": (lambda x, k: x * k if builtins.type(k) is float else x - k, MIXED),
    "type as a key": (lambda x, k: x * {float: 2, int: 3, bool: 5}[type(k)], MIXED),
    "__class__": (lambda x, k: x * k if k.__class__ is float else x - k, MIXED),
    "match": (matched, MIXED),
    "np.isscalar": (lambda x, k: x * k if np.isscalar(k) else x - k, MIXED),
    "numbers.Number": (lambda x, k: x * k if isinstance(k, numbers.Number) else x - k, MIXED),
    "is True": (lambda x, k: x * (2 if k is True else 3), MIXED),
    "None": (lambda x, k: x if k is None else x * k, [None, 1.0, None, 2.0]),
    # Arithmetic.
    "sum": (lambda x, k: (x + k, k + x, x - k, k - x, x * k, x / (k + 9), k / (x + 9)), FLOATS),
    "powers": (lambda x, k: (wg.abs(x) ** k, (abs(k) + 1) ** x, x * k**2, x * 2**k), FLOATS),
    "complex": (lambda x, k: (x * complex(k, 1), x * (k + 1j), (k + 1j).real * x), FLOATS),
    "sum of a list": (lambda x, k: x * sum([k, 1.0]) + functools.reduce(max, [k, 1.0]), FLOATS),
    "equal operands": (lambda x, k: (k + 0.0, k + 0.0, k + -0.0, k * 1, k + 1j), ZEROS),
    "parts": (lambda x, k: (x * k.real + k.imag, x * k.conjugate()), FLOATS),
    "returned": (lambda x, k: (k, k + 1, {"a": k}, x * k), MIXED),
    # Values that decide.
    "a condition": (lambda x, k: x * (1 if k > 1 else 2) + (3 if k else 4), FLOATS),
    "a chain": (lambda x, k: x * (1 if 0 < k < 3 else 2) * (k and 3), FLOATS),
    "among": (lambda x, k: x * (1 if k in (2.5, 3) else 2) * {2.5: 2.0}.get(k, 3.0), FLOATS),
    "an enum of integers": (lambda x, k: x * (1 if k > Level.LOW else 2) + k * Level.LOW, FLOATS),
    "nan": (lambda x, k: (x * k, x * (1 if k == k else 2)), NAN),
    "rounded": (lambda x, k: (round(k, 1) * x, int(k) * x, math.floor(k), math.trunc(k)), FLOATS),
    "extreme": (lambda x, k: x * max(k, 1.0) + min(k, 2) + sorted([k, 1.0, 4])[1], FLOATS),
    "copysign": (lambda x, k: x * math.copysign(1, k), ZEROS),
    "signs of zeros": (lambda x, k: (x * 0 + k, x * math.atan2(k, -1.0), wg.zeros(3) * k), ZEROS),
    "math": (lambda x, k: x * math.sqrt(abs(k)) * math.exp(k) + math.isclose(k, 2.5), FLOATS),
    "text": (lambda x, k: x * len(f"{k} {k:.3f} {k!r}") * len("%s" % k) * float(str(k)), FLOATS),  # noqa: UP031
    "methods": (lambda x, k: x * k.is_integer() * k.as_integer_ratio()[0], FLOATS),
    "copies": (lambda x, k: x * copy.copy(k) + copy.deepcopy([k])[0] + hash(k), FLOATS),
    "bytes": (lambda x, k: x * struct.unpack("d", struct.pack("d", k))[0], FLOATS),
    "fractions": (lambda x, k: x * float(Fraction(k)), FLOATS),
    # Lengths and indices.
    "arange": (lambda x, k: (wg.arange(k), wg.arange(k + 0.5), wg.arange(1, k, 0.5)), INTEGERS),
    "index": (lambda x, k: (x[k], x[k:], x[: k + 1], [1, 2, 3][k] * x), SMALL),
    "shapes": (lambda x, k: (wg.zeros(k), wg.ones((k, 2)), wg.eye(k), wg.full((k,), k)), INTEGERS),
    "moves": (lambda x, k: (wg.roll(x, k), wg.repeat(x, k), wg.tril(wg.ones((3, 3)), k=k)), SMALL),
    # Functions.
    "arrays of numbers": (lambda x, k: (wg.asarray([k, 1, 2]), wg.asarray(k)), MIXED),
    "where": (lambda x, k: (wg.where(x > 0, x, k), wg.where(x > 0, k, 1)), MIXED),
    "operands": (lambda x, k: (wg.maximum(x, k), wg.atan2(x, k), wg.clip(x, -k, k)), SHARES),
    "layers": (
        lambda x, k: (
            *(functional.dropout(x, k), functional.leaky_relu(x, k), functional.elu(x, k)),
            functional.huber_loss(x, x * 2, delta=k),
            functional.cross_entropy(x[None], wg.asarray([1]), label_smoothing=k),
        ),
        SHARES,
    ),
    # NumPy.
    "np.array": (lambda x, k: (x * np.array([k, 1, 2]), x + np.array([k, 1, 2], "f4")), MIXED),
    "np arrays": (lambda x, k: wg.asarray(np.arange(3.0) * k + k * np.ones(3) - k), MIXED),
    "np.where": (lambda x, k: wg.asarray(np.where([1, 0, 1], k, np.float32(1))), FLOATS),
    "np shapes": (lambda x, k: (np.zeros(k).size * x, np.full(3, k), np.arange(3.0)[:k]), SMALL),
    "np scalars": (
        lambda x, k: (x * (k * np.float64(2)), x * (np.float32(2) + k), x * (np.float64(2) < k)),
        FLOATS,
    ),
    "np.float32 of it": (lambda x, k: x * np.float32(k), FLOATS),
    "roots": (lambda x, k: wg.add(x, -(k**0.5)), ROOTS),
    "powers of it": (lambda x, k: x * abs(k**1.5) + x * abs(k ** (k / 2)), ROOTS),
    # NumPy's scalars as arguments.
    "scalar arguments": (
        lambda x, k: (x * k, x * (2 if k else 3), k, k + 1, k * 2.5, x * math.copysign(1, k)),
        [*map(np.float64, (1.5, -0.0, 0.0, "nan")), np.float32(1.5), 1.5],
    ),
    "bools of NumPy": (
        lambda x, k: (x * (2 if k else 3), k),
        [np.bool_(True), np.bool_(False), True, np.bool_(True)],
    ),
    "scalars are told apart": (
        lambda x, k: x * k if isinstance(k, np.generic) else x - k,
        [np.float64(1), 1.0, np.int64(1), 1],
    ),
}


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("name", CASES)
def test_a_number(name: str) -> None:
    body, values = CASES[name]
    rng = np.random.default_rng(0)
    calls = [(wg.asarray(rng.normal(size=3).astype(np.float32)), k) for k in values]
    alike(lambda: (body, list), calls)


def _beside_arrays(x: Any, k: Any) -> Any:
    made = x * wg.full((3,), k, dtype=x.dtype) + wg.full_like(x, k) - wg.asarray(k, dtype=x.dtype)
    found = wg.where(x > k, x, k) + wg.maximum(x, k) * wg.clip(x, k - 3, k)
    return made + found + (k - x) + k / x + wg.multiply(x, k + 1) - 7 % (k - 9) + abs(-k)


def _gradients(x: Any, k: Any) -> Any:
    return wg.grad(lambda x: wg.sum(x * k + wg.maximum(x, k) ** 2 - k / x))(x)


def _by_divmod(x: Any, k: Any) -> Any:
    return sum(a * 2 + b * x for a, b in [divmod(k, 0.7), divmod(7.0, k - 9), divmod(k, x)])


@pytest.mark.parametrize(
    "function",
    [
        _beside_arrays,
        _gradients,
        lambda x, k: x * k + wg.sin(x) * (k**2 + 1) - (k // 2) * -k,
        _by_divmod,
    ],
)
def test_what_is_computed_with_has_one_program(backend: Any, function: Body) -> None:
    f = wg.compile(function)
    for k in FLOATS:
        x = wg.asarray([1.0, 2.0, 3.0])
        np.testing.assert_allclose(f(x, k).numpy(), function(x, k).numpy(), rtol=1e-6)
    assert f.report.recordings == 1


def test_what_is_compared_has_a_program_for_each_outcome() -> None:
    f = wg.compile(lambda x, k: x * k if 0 < k % 3 < 2.5 else x * min(k, 4.0))
    for k in (1.0, 2.0, 2.25, 1.5, 2.75, 3.0, 0.0, 5.5, 8.75, 5.75):
        x = wg.asarray([1.0, 2.0])
        assert f(x, k).tolist() == f._function(x, k).tolist()
    assert f.report.recordings == 4, f.report


def test_an_axis_of_a_trace_is_in_no_cache() -> None:
    x = wg.ones((2, 3, 4))
    f = wg.compile(lambda x, k: wg.sum(x, axis=k))
    assert f(x, 1).shape == (2, 4)
    assert wg.sum(x, axis=1).shape == (2, 4)


BINARY = [
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow", "atan2"),
    *("hypot", "logaddexp", "maximum", "minimum", "copysign", "equal", "less", "greater_equal"),
]
KINDS = ["bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64"]


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
def test_the_dtype_beside_a_number(kind: str) -> None:
    """A number takes part in the dtype as its type does in an eager call, on either side."""
    x = wg.asarray(np.array([1, 2, 3]).astype(kind))
    bodies: list[Body] = [
        lambda x, k, f=f: (f(x, k), f(k, x))  # type: ignore[misc]
        for f in [getattr(wg, name) for name in BINARY]
    ]
    bodies += [
        lambda x, k: (wg.clip(x, k), wg.clip(x, 0, k)),
        lambda x, k: (wg.where(x > 1, x, k), wg.where(x > 1, k, x)),
        lambda x, k: (wg.special.xlogy(x, k), wg.special.xlogy(k, x)),
        lambda x, k: (wg.at(x)[0].set(k), wg.full_like(x, k)),
    ]
    for body in bodies:
        for values in ([2, 3, 1], [2.5, 0.5, 3.0], [1.0, 2.0, 0.25]):
            try:
                with np.errstate(all="ignore"):
                    body(x, values[0])
            except (TypeError, OverflowError, ValueError):
                continue  # no such operation on these, with an error of its own
            with np.errstate(all="ignore"):
                alike(lambda body=body: (body, list), [(x, k) for k in values], compiles=False)  # type: ignore[misc]
