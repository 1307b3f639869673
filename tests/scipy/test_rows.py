"""Functions of arrays: values are SciPy's, derivatives of first and second order differences'."""

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.signal
import scipy.special

from tests.scipy.compare import all_wrong
from wengert.scipy import integrate, interpolate, linalg, signal, special

_RNG = np.random.default_rng(0)
_SQUARE = _RNG.normal(size=(3, 3)) + 3 * np.eye(3)
_BANDS = _RNG.normal(size=(4, 5))
_BANDS[2] += 8

LINALG = """
l.solve(a, b)
l.solve(s, B, assume_a="pos")
l.solve(a, b, assume_a="sym", lower=True)
l.solve(a, b, assume_a="upper triangular", transposed=True)
l.inv(a)
l.det(a)
l.expm(a / 5)
l.sqrtm(s)
l.logm(s)
l.sinm(a / 5)
l.cholesky(s)
l.cholesky(s, lower=True)
l.cho_solve(l.cho_factor(s), b)
l.cho_solve(l.cho_factor(s, lower=True), B)
l.lu_factor(a[::-1])[0]
l.lu_solve(l.lu_factor(a[::-1]), b)
l.lu_solve(l.lu_factor(a[::-1]), B, trans=1)
l.solve_triangular(a, b)
l.solve_triangular(a, B, lower=True, trans=1)
l.solve_triangular(a, b, unit_diagonal=True, trans="T")
l.solve_banded((1, 2), q, r)
l.solve_banded((2, 1), q, R)
l.block_diag(a, b, B)
l.eigh(s)[0]
abs(l.eigh(s)[1])
l.eigh(s, l.expm(a / 9) @ l.expm(a / 9).T)[0]
l.eigvalsh(s, lower=False)
l.svd(a)[1]
l.svdvals(a)
abs(l.qr(B, mode="economic")[1])
l.norm(a)
l.norm(b, 1)
l.pinv(B)
"""
SIGNAL = """
l.convolve(x, y)
l.convolve(y, x, mode="same")
l.convolve(y, x, mode="valid")
l.convolve(Z, Y, mode="same")
l.convolve(x, y, method="fft")
l.fftconvolve(x, y, mode="same")
l.fftconvolve(Y, Z, mode="valid")
l.fftconvolve(X, X, axes=1)
l.lfilter(b, a, x)
l.lfilter(b, a, X.T, axis=0)
l.lfilter([1.0], a, x)
l.lfilter(b, 1.0, x)
l.lfilter(b[:2], a, x[:2])
"""
INTERPOLATE = """
l.CubicSpline(x, y)(t)
l.CubicSpline(x, Y)(T)
l.CubicSpline(x, Y.T, axis=1)(T, 1)
l.CubicSpline(x, y)(t, nu=2)
l.CubicSpline(x, y, bc_type="natural")(t)
l.CubicSpline(x, y, bc_type=((2, s[0]), (1, s[1])))(t)
l.CubicSpline(x, y, bc_type=("clamped", "not-a-knot"))(t)
l.CubicSpline(x[:3], y[:3])(t[:2])
l.CubicSpline(x[:2], y[:2])(t[:2])
l.interp1d(x, y)(t)
l.interp1d(x, Y, axis=0)(t)
l.interp1d(x[::-1], Y.T)(t)
l.interp1d(x, y, fill_value="extrapolate")(T)
l.interp1d(x, y, bounds_error=False, fill_value=(s[0], s[1]))(T)
l.interp1d(x, y, kind="cubic")(t)
"""
INTEGRATE = """
l.trapezoid(y, x)
l.trapezoid(Z, dx=s, axis=0)
l.cumulative_trapezoid(Y, x, initial=0)
l.cumulative_trapezoid(Z, dx=s, axis=0)
l.simpson(Y, x=x)
l.simpson(y[:5], x=x[:5])
l.simpson(y[:2], x=x[:2])
l.simpson(Z, dx=s, axis=0)
"""
SPECIAL = """
l.gammainc(a, x)
l.gammaincc(a, x)
l.gammaincinv(a, p)
l.gammainccinv(a, p)
l.betainc(a, b, p)
l.betaincc(a, b, p)
l.betaincinv(a, b, p)
l.betainccinv(a, b, p)
l.stdtr(a, x)
l.stdtrit(a, p)
l.jv(1.5, x)
l.yv(1, x)
l.iv(2, x)
l.kv(0.5, x)
l.j0(x)
l.j1(x)
l.y0(x)
l.y1(x)
l.k0(x)
l.k1(x)
l.hyp2f1(0.5, 1.5, 2.5, p)
l.ellipk(p)
l.ellipe(-x)
l.lambertw(x).real
l.gammaln(x)
l.digamma(x)
l.polygamma(1, x)
l.logsumexp(x, b=a)
l.softmax(x)
l.expit(x)
l.ndtri(p)
l.log_ndtr(-x)
l.erfinv(p)
l.xlogy(x, p)
"""
ROWS: dict[str, tuple[Any, Any, str, dict[str, Any]]] = {
    "linalg": (linalg, scipy.linalg, LINALG, {
        "a": _SQUARE, "s": _SQUARE @ _SQUARE.T, "b": _RNG.normal(size=3),
        "B": _RNG.normal(size=(3, 2)), "q": _BANDS, "r": _RNG.normal(size=5),
        "R": _RNG.normal(size=(5, 2)),
    }),
    "signal": (signal, scipy.signal, SIGNAL, {
        "x": _RNG.normal(size=7), "y": _RNG.normal(size=4), "b": np.array([0.5, 0.3, -0.2]),
        "a": np.array([1.3, -0.4, 0.2]), "X": _RNG.normal(size=(2, 7)),
        "Y": _RNG.normal(size=(3, 3)), "Z": _RNG.normal(size=(5, 4)),
    }),
    "interpolate": (interpolate, scipy.interpolate, INTERPOLATE, {
        "x": np.array([0.0, 0.7, 1.5, 2.0, 3.1, 4.0]), "y": _RNG.normal(size=6),
        "t": np.array([0.2, 0.6, 2.2, 3.7]), "Y": _RNG.normal(size=(6, 2)),
        "s": np.array([0.3, -0.5]), "T": np.array([[-0.5, 5.0], [1.0, 2.7]]),
    }),
    "integrate": (integrate, scipy.integrate, INTEGRATE, {
        "x": np.array([0.0, 0.7, 1.5, 2.0, 3.1, 4.0]), "y": _RNG.normal(size=6),
        "Y": _RNG.normal(size=(2, 6)), "Z": _RNG.normal(size=(7, 2)), "s": np.array(0.3),
    }),
    "special": (special, scipy.special, SPECIAL, {
        "a": np.array([0.7, 2.3]), "b": np.array([1.6, 0.8]), "x": np.array([0.4, 3.1]),
        "p": np.array([0.2, 0.85]),
    }),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("room", ROWS)
def test_values_and_derivatives(room: str) -> None:
    ours, theirs, rows, given = ROWS[room]
    assert all_wrong(ours, theirs, rows, given) == []
