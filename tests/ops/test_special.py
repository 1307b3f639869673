"""Special functions where they are hard: poles, infinities, masks, and what SciPy asks for."""

import math
import textwrap
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special as sc

import wengert as wg
from tests.ops.cases import PUBLIC, gradient
from tests.scripts import python
from tests.walking import walk
from wengert.backends import Backend, get_backend
from wengert.tape.primitive import PRIMITIVES
from wengert.testing import gradcheck
from wengert.testing.problem import values

INF, NAN = math.inf, math.nan
special, F = wg.special, wg.nn.functional


def tensor(a, dtype="float64"):
    return wg.tensor(a, dtype=dtype, requires_grad=True)


def _bell(z):
    """The conjugate of the sigmoid's derivative."""
    return mpmath.conj(1 / (1 + mpmath.exp(-z)) / (1 + mpmath.exp(z)))


# -- special values ------------------------------------------------------------------------------

ENDS = [INF, -INF, NAN]
POINTS = {
    "gammaln": ([0.0, -0.0, -1.0, -7.0, 1.0, 2.0, INF, NAN], [INF, INF, INF, INF, 0, 0, INF, NAN]),
    "gamma": ([0.0, -0.0, -1.0, -7.0, 5.0, *ENDS, 200.0],
        [INF, -INF, NAN, NAN, 24, INF, NAN, NAN, INF]),
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
    "expit": ([-750.0, 40.0, *ENDS], [math.exp(-750), 1, 1, 0, NAN]),
    "log_expit": ([-1e4, 750.0, *ENDS], [-1e4, 0, 0, -INF, NAN]),
    "softplus": ([-1e4, 1e4, *ENDS], [0, 1e4, INF, 0, NAN]),
    "relu": ([0.0, -0.0, *ENDS], [0, 0, INF, 0, NAN]),
    "leaky_relu": ([-100.0, 100.0, *ENDS], [-1, 100, INF, -INF, NAN]),
}  # fmt: skip
#: In `POINTS`, and of complex numbers as well.
OF_COMPLEX = {"sinc", "expit", "log_expit", "softplus", "relu", "leaky_relu"}

#: Functions of two arrays where they are singular: arguments, values, and derivatives by both.
EDGES: list[Any] = [
    ("xlogy", [0.0, 0, 0, 0, 2, 0], [0.0, -1, 3, INF, 0, NAN], [0, 0, 0, 0, -INF, NAN],
     [0, 0, math.log(3), INF, -INF, NAN], [0, 0, 0, 0, INF, NAN]),
    ("xlog1py", [0.0, 0, 0, 2, 0], [-1.0, -2, 3, -1, NAN], [0, 0, 0, -INF, NAN],
     [0, 0, math.log(4), -INF, NAN], [0, 0, 0, INF, NAN]),
    ("rel_entr", [0.0, 0, 1, -1, 0, 1], [0.0, 2, 1, 1, -1, -1], [0, 0, 0, INF, INF, INF],
     [0, -INF, 1, NAN, NAN, NAN], [0, 0, -1, NAN, NAN, NAN]),
    ("kl_div", [0.0, 0, 1, -1, 0, 1], [0.0, 2, 1, 1, -1, -1], [0, 2, 0, INF, INF, INF],
     [0, -INF, 0, NAN, NAN, NAN], [1, 1, 0, NAN, NAN, NAN]),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values(backend: Backend) -> None:
    def check(name, x, expected):
        found = values(getattr(special, name)(tensor(x)))
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)

    walk([(name, *row) for name, row in POINTS.items()], check, whole=True)


def test_slopes_at_a_kink_are_those_of_one_side(backend: Backend) -> None:
    for function, at_zero in ((special.relu, 0.0), (special.leaky_relu, 0.01)):
        x = tensor([-1.0, 0.0, 2.0])
        assert values(wg.grad(lambda x, f=function: wg.sum(f(x)))(x)).tolist()[1] == at_zero


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_edges_of_functions_of_two(backend: Backend) -> None:
    def check(name, x, y, expected, by_x, by_y):
        x, y = tensor(x), tensor(y)
        out = getattr(special, name)(x, y)
        slopes = wg.autograd.grad(out, (x, y), wg.ones_like(out))
        for found, right in zip((out, *slopes), (expected, by_x, by_y), strict=True):
            np.testing.assert_allclose(values(found), right, rtol=1e-15)

    walk(EDGES, check, whole=True)


def test_complex_numbers_are_refused_and_integers_come_to_the_default_dtype(backend) -> None:
    def check(name):
        function, count = getattr(special, name), len(PRIMITIVES[name].inputs)
        with pytest.raises(TypeError, match=r"complex|real"):
            function(*[wg.ones((2,), dtype="complex128")] * count)
        found = function(*[wg.ones((2,), dtype="int64")] * count)
        assert found.dtype == wg.float32
        expected = function(*[wg.ones((2,), dtype="float32")] * count)
        np.testing.assert_array_equal(values(found), values(expected))

    names = {*POINTS, "beta", "betaln", "rel_entr", "kl_div", "zeta"} - OF_COMPLEX
    walk([(name,) for name in sorted(names)], check, whole=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_polygamma_at_poles_and_far_away(backend: Backend) -> None:
    with pytest.raises(TypeError, match="polygamma takes a number as n, not '1'"):
        special.polygamma("1", wg.ones(2))
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


@pytest.mark.slow
def test_numpy_without_scipy_uses_the_composites() -> None:
    program = """
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
    python("-W", "error", "-c", textwrap.dedent(program))


def test_a_new_librarys_composites_are_the_standards() -> None:
    """What array_api_strict computes is composed, so that any other library can compute it."""
    kernels = get_backend("array_api_strict").kernels
    assert not kernels.keys() & {*POINTS, "polygamma", "zeta", "beta", "betaln"} - OF_COMPLEX


def test_dask_has_few_tasks_for_each() -> None:
    """A composite of many steps runs on each chunk at once."""
    pytest.importorskip("dask")

    def check(name: str) -> None:
        with wg.use_backend("dask"):
            x = wg.asarray([0.25, 0.5])
            out = PUBLIC[name](*[x] * len(PRIMITIVES[name].inputs))
        tasks = len(dict(out._array.dask)) - 1
        assert tasks < 10, f"{name}: {tasks} tasks; name it in backends/dask.py, ON_CHUNKS"

    own = {*special.__all__} & PUBLIC.keys() & PRIMITIVES.keys()
    walk([(name,) for name in sorted(own) if PRIMITIVES[name].elementwise], check, whole=True)


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


POLES = [math.pi * 1j, -3j * math.pi]


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
@pytest.mark.parametrize(
    ("function", "exact", "centres"),
    [
        (wg.expit, lambda z: 1 / (1 + mpmath.exp(-z)), POLES),
        (wg.softplus, lambda z: mpmath.log(1 + mpmath.exp(z)), POLES),
        (wg.log_expit, lambda z: -mpmath.log(1 + mpmath.exp(-z)), POLES),
        (wg.grad(lambda z: wg.sum(wg.real(wg.expit(z)))), _bell, POLES),
        (wg.logit, lambda z: mpmath.log(z) - mpmath.log(1 - z), [0.5]),
    ],
    ids=["expit", "softplus", "log_expit", "slope", "logit"],
)
def test_complex_sigmoids_keep_their_digits(
    function: Any, exact: Any, centres: Any, dtype: str, backend: Backend
) -> None:
    ways = (1, -1, 1j, -1j, 0.6 - 0.8j)
    z = np.asarray([c + d * w for c in centres for d in (1e-2, 1e-5, 1e-9) for w in ways], dtype)
    found = function(wg.asarray(z)).tolist()
    with mpmath.workdps(60):
        for at, value in zip(z.tolist(), found, strict=True):
            want = exact(mpmath.mpc(at))
            assert abs(value - want) <= 16 * np.finfo(dtype).eps * abs(want), at


@pytest.mark.parametrize(
    ("function", "order"), [(wg.erf, 2), (wg.erfc, 3), (wg.nn.functional.gelu, 3)]
)
def test_bells_are_flat_at_infinity(function: Any, order: int) -> None:
    slope = function
    for _ in range(order):
        slope = wg.grad(lambda x, slope=slope: wg.sum(slope(x)))
    assert (slope(wg.asarray([-1e300, 1e200, INF], dtype="float64")).numpy() == 0).all()


# -- masks and infinities ------------------------------------------------------------------------


@pytest.mark.parametrize(("function", "edge"), [(wg.xlogy, 0.0), (special.xlog1py, -1.0)])
def test_products_that_are_zero_are_so_for_all_places(function: Any, edge: float) -> None:
    """All derivatives by the second argument are 0; the mixed one is infinite, and not told."""
    slope = wg.grad(lambda y: function(0.0, y))
    assert wg.grad(slope)(edge) == 0.0
    assert wg.grad(wg.grad(slope))(edge) == 0.0
    found = wg.func.hessian(lambda z: function(z[0], z[1]))(wg.asarray([0.0, edge]))
    np.testing.assert_array_equal(found.numpy(), [[0.0, NAN], [NAN, 0.0]])


def test_xlogy_takes_numbers_and_warns_of_nothing_where_it_is_masked(backend: Backend) -> None:
    y = tensor([0.0, 1.0])
    for x in (0, 0.0):
        out = wg.xlogy(x, y)
        assert values(out).tolist() == [0, 0]
        assert gradient(out, y).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("row", "value", "shares"),
    [
        ([-INF, -INF], -INF, [0.5, 0.5]),
        ([INF, 1.0], INF, [1, 0]),
        ([INF, INF], INF, [0.5, 0.5]),
        ([1.0, -INF], 1.0, [1, 0]),
        ([1000.0, 1000.0], 1000 + math.log(2), [0.5, 0.5]),
    ],
)
def test_logsumexp_of_infinities(backend: Backend, row, value, shares) -> None:
    x = tensor([row])
    out = wg.logsumexp(x, axis=1)
    assert values(out).tolist() == [value]
    assert gradient(out, x).tolist() == [shares]


def test_masked_entries_have_no_share(backend: Backend) -> None:
    x = tensor([1.0, -INF, 2.0])
    p, logp = wg.softmax(x), wg.log_softmax(x)
    assert values(p)[1] == 0
    assert values(logp)[1] == -INF
    for out in (p[0], logp[2]):
        (g,) = wg.autograd.grad(out, x, create_graph=True)
        assert np.isfinite(values(g)).all()
        assert values(g)[1] == 0
        (second,) = wg.autograd.grad(wg.sum(g * g), x)
        assert np.isfinite(values(second)).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("large", [1e5, INF])
def test_terms_without_weight_may_be_large(backend: Backend, large, dtype) -> None:
    a = wg.tensor([large, 1.0, -INF], dtype=dtype, requires_grad=True)
    out = wg.logsumexp(a, b=wg.tensor([0.0, 2.0, 1.0], dtype=dtype))
    assert out.item() == pytest.approx(1 + math.log(2))
    assert gradient(out, a).tolist() == [0, 1, 0]


@pytest.mark.parametrize("dtype", ["float16", pytest.param("bfloat16", marks=pytest.mark.oracle)])
def test_slopes_of_half_precision_at_probabilities_that_round_to_1(dtype) -> None:
    """Against double precision: what is left of 1 is the sum of the others."""
    if dtype == "bfloat16":
        pytest.importorskip("torch")
    functional = wg.nn.functional
    functions = (
        lambda x: wg.softmax(x, axis=1)[:, 0],
        lambda x: wg.log_softmax(x, axis=1)[:, 0],
        lambda x: functional.cross_entropy(x, wg.zeros(2, dtype="int64"), reduction="sum"),
        lambda x: functional.binary_cross_entropy_with_logits(x, wg.ones_like(x), reduction="sum"),
        lambda x: wg.expit(x),
        lambda x: wg.tanh(x),
    )
    with wg.use_backend("torch" if dtype == "bfloat16" else "numpy"):
        half = wg.astype(wg.asarray([[6.0, 0.0, -1.0], [7.5, -0.5, -2.0]]), getattr(wg, dtype))
        eps = float(wg.finfo(half.dtype).eps)
        weight = np.array([1.0, -2.0, 0.5])
        for function in functions:
            found = []
            for x in (half, wg.astype(half, wg.float64)):
                y = function(x.requires_grad_())
                (g,) = wg.autograd.grad(wg.sum(y), x, create_graph=True)
                (h,) = wg.autograd.grad(wg.sum(g * wg.asarray(weight, dtype=x.dtype)), x)
                t = wg.jvp(function, (x.detach(),), (wg.eye(2, 3, dtype=x.dtype),))[1]
                found.append([np.asarray(v.tolist()) for v in (g, h, t)])
            for ours, right in zip(*found, strict=True):
                np.testing.assert_allclose(ours, right, rtol=16 * eps, atol=1e-6)


@pytest.mark.parametrize("size", [1_000, 20_000])
def test_gelu_keeps_the_digits_of_its_tail(size: int) -> None:
    x = np.linspace(-12.9, 6, size).astype(np.float32)
    found, wide = wg.nn.functional.gelu(wg.asarray(x)).numpy(), x.astype(float)
    np.testing.assert_allclose(found, wide * sc.ndtr(wide), rtol=2.4e-7)  # 2 units
