"""What NumPy's functions refuse of its own arrays, they refuse of Tensors; and what is not there.

Beside them the calls that take a way of their own in a function.
"""

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.interplay.compare import call_of, compare
from tests.walking import lines_of
from wengert.protocols import _table

V = np.linspace(0.2, 0.9, 5)
M = np.linspace(0.3, 2.0, 12).reshape(3, 4)
S = M[:, :3] + 3 * np.eye(3)
T = np.linspace(-1, 1, 24).reshape(2, 3, 4)
HOLE = np.array([0.2, np.nan, 3.0])

#: Calls that NumPy refuses, and the class of its error.
REFUSED = lines_of("""
np.linalg.norm(of(T), 2)  np.linalg.norm(of(T), axis=(0, 1, 2))  np.linalg.eigh(of(S), UPLO="X")
np.linalg.eigvalsh(of(S), UPLO="X")  np.convolve(of(V), of(V), mode="other")
np.correlate(of(V[:0]), of(V))  np.select([of(V > 0.5)], [of(V), of(V)])
np.select([], [of(V)])  np.convolve(of(M), of(V))  np.convolve(of(V), of(V[:0]))
np.cov(of(T))  np.where(of(V > 0.5), of(V))
np.interp(of(V), of(M), of(M))  np.interp(of(V), of(V), of(V[:2]))
np.gradient(of(M), 1.0, 2.0, 3.0)  np.gradient(of(V[:1]))  np.max(of(V), where=V > 0.5)
np.average(of(M), weights=of(V))  np.average(of(M), axis=1, weights=of(M[:, 0]))
np.block([of(V), [of(V)]])  np.block([of(V), []])  np.split(of(V), 2)  np.array_split(of(V), 0)
np.vsplit(of(V), 1)  np.dsplit(of(M), 1)  np.hsplit(of(V)[0], 1)
np.rot90(of(M), axes=(1, 1))  np.diag(of(T))  np.sum(of(V), 0, axis=0)  np.swapaxes(of(M), 0)
np.swapaxes(of(M), 0, 1, 2)
""")
#: Arguments of NumPy's that Tensors do not have.
UNSUPPORTED: dict[str, Callable[[Any], Any]] = {
    "a function as mode": lambda x: np.pad(x, 1, mode=lambda *_: None),
    "mode='wrap'": lambda x: np.take(x, [0], mode="wrap"),
    "mode='clip'": lambda x: np.take(x, [0], mode="clip"),
    "order='F'": lambda x: np.einsum("ij->i", x, order="F"),
    "tol=0.5": lambda x: np.linalg.matrix_rank(x, tol=0.5),
    "mode='raw'": lambda x: np.linalg.qr(x, mode="raw"),
    "weights": lambda x: np.quantile(x, 0.5, weights=x),
    "fweights": lambda x: np.cov(x, fweights=[1, 2]),
    "aweights": lambda x: np.cov(x, aweights=[1, 2]),
    "complex": lambda x: np.nan_to_num(x * 1j),
    "period": lambda x: np.interp(x[0], x[0], x[1], period=1.0),
    "edge_order": lambda x: np.gradient(x, edge_order=2),
    "uneven spacing": lambda x: np.gradient(x, [0.0, 1.0], axis=0),
    r"axis=\(1, 0\)": lambda x: np.average(np.stack([x, x]), axis=(1, 0), weights=x),
}
#: Calls on arrays whose way few others take.
CALLS = lines_of("""
np.cross(M, M + 1, axis=0)  np.cross(M, M[::-1], axisa=0, axisb=0, axisc=0)  np.linalg.qr(S)[1]
np.linalg.qr(S, mode="complete")[0]  np.linalg.qr(S, mode="r")
np.max(M, axis=1, where=M > 0.6, initial=0.1, keepdims=True)  np.min(M, where=M > 0.6, initial=1.9)
np.corrcoef(V) * V[0]  np.interp(V, V[:1], V[1:2])  np.full_like(V, fill_value=2) * V
np.full_like(V, 2.7, "float32") * V  (np.zeros_like(V, "int8") + 1) * V
np.add.reduce(M, 0, "complex128")
""")


def test_a_complete_qr_has_a_whole_basis() -> None:
    tall = M.T
    for found, expected in zip(
        np.linalg.qr(wg.asarray(tall), mode="complete"),
        np.linalg.qr(tall, mode="complete"),
        strict=True,
    ):
        np.testing.assert_allclose(np.abs(found.numpy()), np.abs(expected), rtol=1e-12, atol=1e-12)


@pytest.mark.whole
@pytest.mark.parametrize("line", REFUSED)
def test_what_numpy_refuses(line: str) -> None:
    with pytest.raises((TypeError, ValueError, IndexError, ArithmeticError)) as theirs:
        eval(line, globals() | {"of": np.asarray})
    with pytest.raises((TypeError, ValueError, IndexError)) as ours:
        eval(line, globals() | {"of": wg.asarray})
    kinds = TypeError, ValueError, IndexError
    assert [kind for kind in kinds if isinstance(ours.value, kind)] == [
        kind for kind in kinds if isinstance(theirs.value, kind)
    ]


def test_how_many_points_a_gradient_needs() -> None:
    with pytest.raises(ValueError, match="axis 0 of length 1 is too short: 2 are"):
        np.gradient(wg.asarray(V[:1]))


@pytest.mark.parametrize("what", UNSUPPORTED)
def test_what_tensors_do_not_have(what: str) -> None:
    with pytest.raises(TypeError, match=rf"^np\.\S+: {what}"):
        UNSUPPORTED[what](wg.ones((2, 2)))


@pytest.mark.parametrize("line", CALLS)
@pytest.mark.filterwarnings("ignore:Degrees of freedom")
def test_calls(line: str) -> None:
    compare(*call_of(line, globals()), rtol=1e-6 if '"' in line else 1e-12)


def test_nan_to_num() -> None:
    x = wg.asarray(HOLE, requires_grad=True)
    (g,) = wg.autograd.grad(wg.sum(np.nan_to_num(x, nan=2.0) * 3), x)
    np.testing.assert_array_equal(np.nan_to_num(x, nan=2.0).detach().numpy(), [0.2, 2.0, 3.0])
    np.testing.assert_array_equal(g.numpy(), [3.0, 0.0, 3.0])


def test_answers() -> None:
    hole = wg.asarray(HOLE)
    assert not np.array_equal(hole, HOLE)
    assert np.array_equal(hole, HOLE, equal_nan=True)
    assert not np.array_equal(hole, HOLE[::-1], equal_nan=True)
    assert not np.array_equal(hole, HOLE[:2], equal_nan=True)
    whole = wg.asarray([1, 2])
    found: Any = np.nan_to_num(whole)
    np.testing.assert_array_equal(found.numpy(), [1, 2])
    assert np.linalg.matrix_rank(wg.asarray(S)) == 3
    nothing = wg.ones((0, 2))
    for reduce in (np.max, np.min):
        found = reduce(nothing, axis=0, initial=5.0)
        np.testing.assert_array_equal(found.numpy(), [5.0, 5.0])
        found = reduce(nothing, axis=0, initial=5.0, keepdims=True)
        np.testing.assert_array_equal(found.numpy(), [[5.0, 5.0]])
    with pytest.raises(ValueError, match="5 observations leave no degree of freedom"):
        np.cov(wg.asarray(V), ddof=5)


#: Parameters of NumPy's functions that are plain values, and are read.
OPTIONS = """
axes axis axis1 axis2 bias casting compute_uv decimals deg destination
dtype edge_order equal_nan full_matrices hermitian include_initial indexing indices
invert k keepdims method mode n norm offset order pad_width repeats
return_counts return_index return_inverse returned rowvar s shape shift side sorter
source sparse upper
""".split()  # noqa: SIM905


def options_of_numpy():
    for module, table in ((np, "functions"), (np.linalg, "linalg"), (np.fft, "fft")):
        for name in _table(table):
            try:
                about = inspect.signature(getattr(module, name)).parameters
            except ValueError:  # of a built-in function, before NumPy 2.4
                continue
            for option in filter(OPTIONS.__contains__, about):
                if about[option].kind is not about[option].POSITIONAL_ONLY:
                    yield pytest.param(getattr(module, name), option, id=f"{name}-{option}")


@pytest.mark.whole
@pytest.mark.parametrize(("function", "option"), [*options_of_numpy()])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_option_loses_no_derivative_without_a_word(function, option):
    """A tracked Tensor there is differentiated, or an error, or a warning."""
    about = inspect.signature(function).parameters
    x = wg.asarray([[2.0, 1.0], [0.5, 3.0]])
    given = {
        name: [x] if name in ("arrays", "tup", "condlist", "choicelist") else x
        for name, one in about.items()
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    }
    args = [x for one in about.values() if one.kind is one.POSITIONAL_ONLY]
    args += [x for one in about.values() if one.kind is one.VAR_POSITIONAL and not given]
    for number in (0.0, 2.0):
        given[option] = wg.tensor(number, requires_grad=True)
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                out = function(*args, **given)
        except Exception:
            continue
        outs = out if isinstance(out, tuple | list) else [out]
        tracked = any(isinstance(one, wg.Tensor) and one.requires_grad for one in outs)
        assert tracked or any("to a scalar" in str(one.message) for one in told)


def test_values_beside_the_points_of_interp_are_differentiated() -> None:
    ends = np.asarray(0.5), np.asarray(2.0)
    compare(lambda x, a, b: np.interp(x, V, V**2, left=a, right=b), V * 1.7 - 0.5, *ends)
