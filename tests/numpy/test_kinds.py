"""Dtypes and forms that NumPy takes: integers in linear algebra, lists of repeats, `round`."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.walking import lines_of

A = np.array([[2, 1], [1, 3]])
SINGLE = np.array([0.3, 0.7, 1.4], np.float32)
CALLS = lines_of("""
n.linalg.inv(A)  n.linalg.det(A)  n.linalg.solve(A, A[0])  n.linalg.eigh(A)  n.linalg.eigvalsh(A)
n.linalg.svd(A)  n.linalg.svdvals(A)  n.linalg.qr(A)  n.linalg.cholesky(A)  n.linalg.norm(A)
n.linalg.norm(A, 1)  n.linalg.norm(A[0], 1)  n.linalg.norm(A, axis=0)  n.linalg.cond(A)
n.linalg.pinv(A)  n.linalg.slogdet(A)  n.linalg.matrix_rank(A)  n.linalg.matrix_power(A, 3)
n.linalg.matrix_power(A, 0)  n.linalg.matrix_power(A, -1)  n.linalg.multi_dot([A, A, A])
n.linalg.vector_norm(A)  n.linalg.matrix_norm(A)  n.linalg.trace(A)  n.fft.fft(A)  n.fft.rfft(A)
n.fft.ifft(A)  n.fft.fft2(A)  n.fft.irfft(A)  n.fft.fftshift(A)  n.repeat(A[0], [1, 2])
n.repeat(A, [1, 2], axis=1)  n.nanmax(A)  n.nanmin(A, axis=0)  n.rint(A)  n.interp(F, F, F)
n.nanmedian(F)  n.nanmax(F)  n.rint(F)  n.histogram(F, 3)
n.logaddexp2(F[0], 2.0)  n.logaddexp2(1.0, F)
""")


def parts(found: Any) -> list[Any]:
    return [np.asarray(part) for part in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("call", CALLS)
def test_dtypes_and_values_are_numpys(room: Any, call: str) -> None:
    theirs = parts(eval(call, {"n": np, "A": A, "F": SINGLE}))
    ours = parts(eval(call, {"n": room, "A": room.array(A), "F": room.array(SINGLE)}))
    assert [part.dtype for part in ours] == [part.dtype for part in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert np.allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        *(
            "n.linalg.lstsq(a, b)[0]",
            "n.linalg.lstsq(b[:, None], a)[0]",
            "n.linalg.solve(a[:2], b[:2])",
        ),
        *("n.linalg.multi_dot([a.T, a, b[:2]])", "n.linalg.multi_dot([a.T, b])", "n.dot(a.T, b)"),
        *("n.average(b, weights=a[:, 0])", "n.corrcoef(a[:, 0], b)", "n.linalg.vecdot(a.T, b)"),
    ],
)
def test_the_wider_of_two_dtypes_is_computed_in(room: Any, call: str) -> None:
    a = np.array([[1.1, 2.0], [1.3, 2.1], [0.7, 2.2]], np.float32)
    b = np.array([0.1, 0.7, 0.4])
    theirs = eval(call, {"n": np, "a": a.astype(float), "b": b})
    ours = eval(call, {"n": room, "a": room.array(a), "b": room.array(b)})
    assert np.allclose(ours, theirs, rtol=1e-10, atol=0)


def test_round_gives_numbers_and_whole_ones(room: Any) -> None:
    p = room.array([1.2345, 2.5])
    assert round(p[0], 2) == 1.23
    assert type(round(p[0])) is int
    assert range(round(p[1]))[-1] == 1


def test_a_number_is_not_iterable_and_an_array_is(room: Any) -> None:
    x = room.array([1.0, 2.0])
    assert np.iterable(x)
    assert not np.iterable(x.max())  # as matplotlib asks of the limits of an axis


def test_eigh_has_the_derivative_of_the_triangle_that_is_read(room: Any) -> None:
    x = np.array([[2.0, 5.0], [0.3, 1.0]])

    def smallest(x: Any) -> Any:
        return room.linalg.eigvalsh(x)[0]

    found = wg.grad(smallest)(x)
    step = 1e-6
    for place in np.ndindex(2, 2):
        moved = x.copy()
        moved[place] += step
        slope = (np.linalg.eigvalsh(moved)[0] - np.linalg.eigvalsh(x)[0]) / step
        assert abs(slope - found[place]) < 1e-5
