"""Special functions where they are hard: accuracy, poles, infinities, and what SciPy asks for."""

import math
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.special as sc

import wengert as wg
from tests.ops.cases import PUBLIC
from wengert.backends import Backend, get_backend
from wengert.tape.primitive import PRIMITIVES
from wengert.testing import gradcheck

INF, NAN = math.inf, math.nan
special = wg.special


def tensor(a, dtype="float64"):
    return wg.tensor(a, dtype=dtype, requires_grad=True)


def values(x):
    return np.asarray(x.detach().tolist())


def gradient(out, x, **keywords):
    (g,) = wg.autograd.grad(out, x, wg.ones_like(out), **keywords)
    assert g.dtype == x.dtype
    return g


def derivatives(function, x, order):
    """The derivatives of a function of one argument, up to an order."""
    found, level = [], function(x)
    for _ in range(order):
        level = gradient(level, x, create_graph=True)
        found.append(values(level))
    return found


# -- the whole range -----------------------------------------------------------------------------

RANDOM = np.random.default_rng(11)
SMALL = 10.0 ** RANDOM.uniform(-250, -1, 40)
AXIS = np.concatenate([RANDOM.uniform(-30, 30, 300), SMALL, -SMALL[:20], np.arange(1.0, 31) / 2])
#: Around the zeros of the logarithm, and both borders of its expansions.
GAMMA = np.concatenate([
    AXIS, 1 + SMALL, 2 - SMALL, [9.999, 10.0, 10.001, -0.5, -0.4999, 0.4999, 150.0, 1e3, 1e8, 1e150]
])  # fmt: skip
SHARE = np.concatenate([RANDOM.uniform(-1, 1, 200), SMALL, SMALL - 1, 1 - SMALL, [0.85, -0.85]])
WIDE = np.concatenate([RANDOM.uniform(-37, 37, 300), SMALL, -SMALL, [20.0, 19.999, 20.001]])
RANGES = {
    "gammaln": GAMMA,
    "gamma": GAMMA[np.abs(GAMMA) < 170],
    "gammasgn": GAMMA,
    "digamma": GAMMA,
    "erf": WIDE,
    "erfc": WIDE,
    "erfinv": SHARE,
    "erfcinv": 1 - SHARE,
    "erfcx": WIDE[WIDE > -26],
    "ndtr": WIDE,
    "log_ndtr": WIDE,
    "ndtri": (1 + SHARE) / 2,
    "i0": WIDE,
    "i1": WIDE,
    "i0e": WIDE,
    "i1e": WIDE,
    "entr": np.abs(WIDE),
}
#: Least magnitudes of float32's that leave room for a function's own range.
FLOAT32 = {"erfc": 9.0, "gamma": 30.0, "erfcx": 9.0, "ndtr": 12.0, "log_ndtr": 12.0}


def check_accuracy(name, x, dtype, found, expected):
    """A few units in the last place, times the condition number of the function there."""
    slope = values(gradient(getattr(special, name)(leaf := tensor(x)), leaf))
    slope = np.where(np.isfinite(slope), slope, 0)
    eps = np.finfo(dtype).eps
    allowed = 8 * eps * (np.abs(expected) + np.abs(x * slope)) + 4 * np.finfo(dtype).tiny
    if name in ("gammaln", "digamma"):
        # Below zero, the digits of both go with those of the sine and the reflection.
        allowed += np.where(x < 0, 40 * eps, 2 * eps)
    error = np.abs(np.asarray(found, np.float64) - expected)
    both = (found == expected) | (np.isnan(found) & np.isnan(expected))
    wrong = ~both & ~(error <= allowed)
    assert not wrong.any(), (name, x[wrong], found[wrong], expected[wrong])


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", sorted(RANGES))
def test_the_composites_over_the_whole_range(name, dtype) -> None:
    """Of the standard's functions alone, and in single precision as well."""
    x = RANGES[name].astype(dtype)
    if dtype == "float32":
        x = x[(np.abs(x) < FLOAT32.get(name, 80.0)) & ((np.abs(x) > 1e-30) | (x == 0))]
    expected = getattr(sc, name)(x.astype(np.float64))
    with wg.use_backend("array_api_strict"):
        out = getattr(special, name)(wg.asarray(x))
        assert out.backend.name == "array_api_strict"
        assert str(out.dtype) == dtype or out.dtype.name == dtype
        found = out.numpy()
    check_accuracy(name, x.astype(np.float64), dtype, found, expected)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted(RANGES))
def test_the_kernels_of_libraries(name, backend: Backend) -> None:
    """Nine digits over the whole range: the libraries' own functions are less exact than that."""
    x = RANGES[name]
    found = values(getattr(special, name)(tensor(x)))
    expected = getattr(sc, name)(x)
    finite = np.isfinite(expected) & (np.abs(expected) > 1e-290)
    np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_polygamma_over_the_whole_range(backend: Backend, n) -> None:
    x = AXIS[np.abs(AXIS) > 1e-20]
    x = x[(x > 0) | (np.abs(x - np.round(x)) > 1e-3)]
    found = values(special.polygamma(n, tensor(x)))
    np.testing.assert_allclose(found, sc.polygamma(n, x), rtol=1e-11, atol=1e-11)


def test_beta_of_large_and_small_numbers(backend: Backend) -> None:
    """B(a, n) of an integer n is (n - 1)! / (a (a + 1) ... (a + n - 1))."""
    n = np.asarray([1, 2, 3, 5, 12, 2, 25, 3, 4])
    a = np.asarray([1e-8, 1e6, 1e9, 7.5, 11.0, 1e-12, 60.5, 0.125, -2.5])
    expected = [
        math.factorial(k - 1) / math.prod(x + i for i in range(k))
        for x, k in zip(a.tolist(), n.tolist(), strict=True)
    ]
    rtol = 2e-14
    for x, y in ((a, n), (n, a)):
        x, y = tensor(x), tensor(y)
        np.testing.assert_allclose(values(special.beta(x, y)), expected, rtol=rtol)
        logarithm = np.log(np.abs(expected))
        np.testing.assert_allclose(values(special.betaln(x, y)), logarithm, rtol=rtol)


def test_zeta_over_its_range(backend: Backend) -> None:
    s = np.asarray([1.001, 1.5, 2.0, 3.0, 8.5, 20.0, 40.0])[:, None]
    q = np.asarray([1e-3, 0.5, 1.0, 2.5, 12.0, 300.0])
    found = values(special.zeta(tensor(s), wg.tensor(q, dtype="float64")))
    np.testing.assert_allclose(found, sc.zeta(s, q), rtol=1e-12)
    riemann = values(special.zeta(tensor([2.0, 4.0])))
    np.testing.assert_allclose(riemann, [math.pi**2 / 6, math.pi**4 / 90], rtol=1e-14)


# -- special values ------------------------------------------------------------------------------

ENDS = [INF, -INF, NAN]
POINTS = {
    "gammaln": ([0.0, -0.0, -1.0, -7.0, 1.0, 2.0, INF, NAN], [INF, INF, INF, INF, 0, 0, INF, NAN]),
    "gamma": (
        [0.0, -0.0, -1.0, -7.0, 5.0, *ENDS, 200.0],
        [INF, -INF, NAN, NAN, 24, INF, NAN, NAN, INF],
    ),
    "gammasgn": ([0.0, -0.0, -0.5, -1.5, -1.0, 3.0, *ENDS], [1, -1, -1, 1, NAN, 1, 1, NAN, NAN]),
    "digamma": ([0.0, -0.0, -1.0, -7.0, INF, NAN], [-INF, INF, NAN, NAN, INF, NAN]),
    "erfinv": ([0.0, 1.0, -1.0, 1.5, -2.0, *ENDS], [0, INF, -INF, NAN, NAN, NAN, NAN, NAN]),
    "erfcinv": ([1.0, 0.0, 2.0, 2.5, -2.0, *ENDS], [0, INF, -INF, NAN, NAN, NAN, NAN, NAN]),
    "erfcx": ([0.0, *ENDS], [1, 0, INF, NAN]),
    "ndtr": ([0.0, *ENDS], [0.5, 1, 0, NAN]),
    "log_ndtr": ([0.0, *ENDS], [-math.log(2), 0, -INF, NAN]),
    "ndtri": ([0.5, 0.0, 1.0, 1.5, -1.0, *ENDS], [0, -INF, INF, NAN, NAN, NAN, NAN, NAN]),
    "i0": ([0.0, NAN], [1, NAN]),
    "i1": ([0.0, NAN], [0, NAN]),
    "i0e": ([0.0, *ENDS], [1, 0, 0, NAN]),
    "i1e": ([0.0, *ENDS], [0, 0, 0, NAN]),
    "entr": ([0.0, 1.0, -1.0, *ENDS], [0, 0, -INF, -INF, -INF, NAN]),
    "sinc": ([0.0, 0.5, NAN], [1, 2 / math.pi, NAN]),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted(POINTS))
def test_special_values(backend: Backend, name) -> None:
    x, expected = POINTS[name]
    found = values(getattr(special, name)(tensor(x)))
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_polygamma_at_poles_and_far_away(backend: Backend) -> None:
    x = tensor([0.0, -1.0, INF, NAN])
    with_sign = values(special.polygamma(2, x))
    if backend.name != "torch":  # whose zeta function is huge at -1
        np.testing.assert_array_equal(values(special.polygamma(1, x)), [INF, INF, 0, NAN])
    np.testing.assert_array_equal(with_sign[[0, 2, 3]], [-INF, 0, NAN])


def test_the_composed_zeta_function_far_out_does_not_vanish() -> None:
    """There the sum begins with powers that do, and so does its last one."""
    with wg.use_backend("array_api_strict"):
        q = wg.asarray([1e30, 1e-3, 1e18], dtype=wg.float32)
        found = special.zeta(wg.asarray([2.0, 2.0, 3.0], dtype=wg.float32), q)
        np.testing.assert_allclose(values(found), [1e-30, 1e6, 5e-37], rtol=3e-6)
        np.testing.assert_allclose(values(special.polygamma(1, q)[0]), 1e-30, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_products_with_logarithms_at_zero(backend: Backend) -> None:
    x, y = tensor([0.0, 0.0, 0.0, 2.0, 0.0]), tensor([-1.0, -2.0, 3.0, -1.0, NAN])
    out = special.xlog1py(x, y)
    np.testing.assert_array_equal(values(out), [0, 0, 0, -INF, NAN])
    dx, dy = wg.autograd.grad(out, (x, y), wg.ones_like(out))
    np.testing.assert_allclose(values(dx), [0, 0, math.log(4), -INF, NAN], rtol=1e-15)
    np.testing.assert_array_equal(values(dy), [0, 0, 0, INF, NAN])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_divergences_on_the_border_of_their_domain(backend: Backend) -> None:
    x, y = [0.0, 0.0, 0.0, 1.0, -1.0, 1.0], [0.0, 2.0, -1.0, 0.0, 1.0, -1.0]
    for name in ("rel_entr", "kl_div"):
        found = values(getattr(special, name)(tensor(x), tensor(y)))
        np.testing.assert_array_equal(found, getattr(sc, name)(x, y))
    a, b = tensor([0.0, 0.0, 1.0, -1.0]), tensor([0.0, 2.0, 1.0, 1.0])
    out = special.rel_entr(a, b)
    da, db = wg.autograd.grad(out, (a, b), wg.ones_like(out))
    np.testing.assert_array_equal(values(da), [0, -INF, 1, NAN])
    np.testing.assert_array_equal(values(db), [0, 0, -1, NAN])
    out = special.kl_div(a, b)
    da, db = wg.autograd.grad(out, (a, b), wg.ones_like(out))
    np.testing.assert_array_equal(values(da), [0, -INF, 0, NAN])
    np.testing.assert_array_equal(values(db), [1, 1, 0, NAN])


def test_divergences_of_numbers_whose_quotient_overflows(backend: Backend) -> None:
    x, y = tensor([1e200, 1e-200]), tensor([1e-200, 1e200])
    expected = [1e200 * 400 * math.log(10), -1e-200 * 400 * math.log(10)]
    np.testing.assert_allclose(values(special.rel_entr(x, y)), expected, rtol=1e-14)
    slope = wg.autograd.grad(wg.sum(special.rel_entr(x, y)), x)[0]
    np.testing.assert_allclose(values(slope), [400 * math.log(10) + 1, 1 - 400 * math.log(10)])


@pytest.mark.parametrize("name", ["rel_entr", "kl_div"])
def test_divergences_from_numbers_near_zero(backend: Backend, name: str) -> None:
    """Neither warns of a quotient that nobody needs."""
    function, tiny = getattr(special, name), 2.0**-1000  # whose square is 0
    x, y = tensor([1.0, 2.0]), tensor([tiny, tiny])
    for a, b in ((x, y), (y, x)):
        found, expected = values(function(a, b)), getattr(sc, name)(values(a), values(b))
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    # (Both slopes by x are log(x / y), and a number.)
    slope = wg.autograd.grad(function(x, y), x, wg.ones_like(x), create_graph=True)
    (mixed,) = wg.autograd.grad(slope, y, wg.ones_like(x))
    np.testing.assert_allclose(values(mixed), [-(2.0**1000)] * 2, rtol=1e-14)


def test_the_divergence_of_numbers_that_are_almost_equal() -> None:
    """x (d - log(1 + d)) is x d**2 / 2 there, which the terms' difference would not give."""
    with wg.use_backend("array_api_strict"):
        d = 2.0**-30
        found = special.kl_div(tensor([3.0]), tensor([3.0 * (1 + d)])).item()
    assert found == pytest.approx(3 * d**2 / 2 * (1 - 2 * d / 3), rel=1e-13)


# -- derivatives at singular points and in tails -------------------------------------------------


def test_the_sign_of_gamma_has_no_slope() -> None:
    x = tensor([-0.5, 2.5])
    assert values(gradient(special.gammasgn(x), x)).tolist() == [0, 0]


# -- signatures ----------------------------------------------------------------------------------


def test_polygamma_of_an_order_in_an_array(backend: Backend) -> None:
    x = tensor([0.5, 1.5])
    for n in (wg.asarray(2), np.int64(2), np.asarray([2])):
        found = values(special.polygamma(n, x))
        np.testing.assert_allclose(found, sc.polygamma(2, values(x)), rtol=1e-12)
    with pytest.raises(TypeError, match="polygamma takes one number as n"):
        special.polygamma(wg.asarray([1, 2]), x)
    assert special.psi is special.digamma


def test_multigammaln_is_scipys(backend: Backend) -> None:
    a = tensor([2.5, 7.0])
    for d in (1, 2, 4):
        found = values(special.multigammaln(a, d))
        np.testing.assert_allclose(found, sc.multigammaln(values(a), d), rtol=1e-13)
    assert gradcheck(lambda a: special.multigammaln(a, 3), (a,))


@pytest.mark.parametrize("wrong", [-1, 1.5])
def test_orders_that_are_none(wrong) -> None:
    with pytest.raises(ValueError, match="orders 0, 1, 2"):
        special.polygamma(wrong, tensor([1.0]))
    with pytest.raises(ValueError, match="positive integer d"):
        special.multigammaln(tensor([1.0]), wrong)


REAL = sorted({*RANGES, "beta", "betaln", "rel_entr", "kl_div", "zeta"} - {"erf", "erfc"})


@pytest.mark.parametrize("name", REAL)
def test_dtypes_that_it_does_not_take(backend: Backend, name) -> None:
    """Complex numbers. Integers come to the default dtype, as everywhere."""
    function = getattr(special, name)
    count = 2 if name in ("beta", "betaln", "rel_entr", "kl_div", "zeta") else 1
    with pytest.raises(TypeError, match=r"complex|real"):
        function(*[wg.ones((2,), dtype="complex128")] * count)
    found = function(*[wg.ones((2,), dtype="int64")] * count)
    assert found.dtype == wg.float32
    expected = function(*[wg.ones((2,), dtype="float32")] * count)
    np.testing.assert_array_equal(values(found), values(expected))


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_the_error_function_of_complex_numbers_is_scipys(backend: Backend, name) -> None:
    z = tensor([0.5 + 0.25j, -1.5j], "complex128")
    function = getattr(special, name)
    if backend.name not in ("numpy", "dask"):
        with pytest.raises(TypeError, match=name):
            function(z)
        return
    np.testing.assert_allclose(values(function(z)), getattr(sc, name)(values(z)), rtol=1e-14)
    assert gradcheck(function, (z,))


def test_zeta_has_no_derivative_in_its_exponent_yet() -> None:
    s = tensor([2.0])
    with pytest.raises(NotImplementedError, match="zeta"):
        special.zeta(s, 1.0).backward()


# -- around them ---------------------------------------------------------------------------------


def run(program, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_numpy_without_scipy_uses_the_composites() -> None:
    run(
        """
        import importlib.util, math, sys
        found = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *rest: None if name == "scipy" else found(name)
        import wengert as wg
        x = wg.tensor([0.5], dtype="float64", requires_grad=True)
        wg.special.gammaln(x).backward()
        assert abs(x.grad.item() + 1.9635100260214235) < 1e-15
        assert abs(wg.special.i0(x).item() - 1.0634833707413236) < 1e-15
        assert wg.erf(x).item() == math.erf(0.5)
        assert "scipy" not in sys.modules
        """
    )


def test_a_new_librarys_composites_are_the_standards() -> None:
    """What array_api_strict computes is composed, so that any other library can compute it."""
    kernels = get_backend("array_api_strict").kernels
    assert not kernels.keys() & {*RANGES, "polygamma", "zeta", "beta", "betaln"}


def test_dask_has_few_tasks_for_each() -> None:
    """A composite of many steps runs on each chunk at once."""
    pytest.importorskip("dask")
    with wg.use_backend("dask"):
        x = wg.asarray([0.25, 0.5])
        for name in special.__all__:
            row = PRIMITIVES.get(name)
            if name in PUBLIC and row and row.elementwise:
                out = PUBLIC[name](*[x] * len(row.inputs))
                tasks = len(dict(out._array.dask)) - 1
                assert tasks < 10, f"{name}: {tasks} tasks; name it in backends/dask.py, ON_CHUNKS"


def test_beta_where_two_poles_cancel() -> None:
    """``B(a, n)`` is ``(n - 1)! / (a (a + 1) ... (a + n - 1))``, whose derivatives are known."""
    for a, b, value, slope in ((-2.0, 1.0, -1 / 2, -1 / 4), (-3.0, 2.0, 1 / 6, 5 / 36)):
        for at, order in ((0, (a, b)), (1, (b, a))):
            found = wg.special.beta(*map(np.float64, order))
            assert found.item() == pytest.approx(value, rel=1e-14)
            log = wg.special.betaln(*map(np.float64, order))
            assert log.item() == pytest.approx(np.log(abs(value)), rel=1e-14)
            assert wg.grad(wg.special.beta, argnums=at)(*order) == pytest.approx(slope, rel=1e-14)
    second = wg.grad(wg.grad(wg.special.beta))(-2.0, 1.0)
    assert second == pytest.approx(-1 / 4, rel=1e-14)  # 2 / a^3


def test_beta_at_poles(backend: Backend) -> None:
    """As SciPy's ``beta``: ``(-1)^b inf`` where two poles meet, 0 where only ``a + b`` is one."""
    poles = [(-3, 4), (-2, 3), (-1, -1), (-2, -3), (0, 0), (0, -1), (0, -2), (-2, 1.5), (-2, 0.5)]
    others = [(-3, 1e30), (0, INF), (-2, INF), (-0.0, 1), (-0.5, -0.5), (-1.5, 0.5), (0.5, -1.5)]
    a, b = np.asarray([*poles, *others], np.float64).T
    np.testing.assert_array_equal(values(special.beta(tensor(a), tensor(b))), sc.beta(a, b))
    np.testing.assert_array_equal(values(special.betaln(tensor(a), tensor(b))), sc.betaln(a, b))
    nothing = special.beta(tensor([NAN, -2.0]), tensor([-2.0, NAN]))
    assert np.isnan(values(nothing)).all()
