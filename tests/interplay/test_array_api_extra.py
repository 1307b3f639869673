"""The functions of array-api-extra take Tensors, and are differentiated."""

import re

import numpy as np
import pytest

import wengert as wg
from tests.interplay.compare import beside, call_of, compare, namespace
from tests.walking import lines_of

xpx = pytest.importorskip("array_api_extra")

RNG = np.random.default_rng(5)
V = RNG.uniform(0.2, 0.9, 5)
W = RNG.uniform(0.2, 0.9, 5)
M = RNG.uniform(0.2, 0.9, (3, 4))
Z = RNG.normal(size=4) + 1j * RNG.normal(size=4)
ODD = np.array([True, False, True, True, False])

CALLS = lines_of("""
xpx.angle(Z, deg=True)  xpx.apply_where(V > 0.5, (V, W), lambda a, b: a / b, lambda a, b: a * b)
xpx.apply_where(V > 0.5, V, lambda a: (a - 0.5) ** 0.5, fill_value=0.0)
xpx.at(V)[1:3].add(W[:2], copy=True)  xpx.at(M)[0, :].divide(W[0], copy=True)
xpx.at(V)[...].max(W, copy=True)  xpx.at(V)[...].min(W, copy=True)
xpx.at(V, beside(V, ODD)).multiply(3.0, copy=True)  xpx.at(V)[2].power(3.0, copy=True)
xpx.at(M)[:, 1].set(W[:3], copy=True)  xpx.at(V)[beside(V, ODD)].set(0.5, copy=True) * V
xpx.at(V)[::2].subtract(W[:3], copy=True)  xpx.atleast_nd(V, ndim=3)  xpx.cov(M)
xpx.cov(M, axis=0, correction=0, aweights=W[:3])  xpx.create_diagonal(M, offset=-1)  xpx.deg2rad(V)
xpx.kron(M, V)  xpx.nan_to_num(_holed(V), fill_value=2.0)  xpx.nanmax(_holed(V))
xpx.nanmean(_holed(V))  xpx.nanmin(_holed(V))  xpx.nansum(_holed(V))
xpx.pad(M, ((1, 0), (2, 3)), constant_values=4.0)  xpx.partition(M, 2)[..., 2]  xpx.rad2deg(V)
xpx.sinc(V)
""")

ANSWERS = lines_of("""
xpx.argpartition(M, 2, axis=-1)[..., 2]
xpx.default_dtype(namespace(M), "integral") == namespace(M).int64
xpx.diag_indices(3, xp=namespace(M))  xpx.isclose(M, M * (1 + 1e-07))
xpx.isin(namespace(M).astype(4 * M, namespace(M).int64), beside(M, [1, 2]))
xpx.nunique(namespace(M).astype(4 * M, namespace(M).int64))
xpx.one_hot(namespace(M).argmax(M, axis=0), 4)  xpx.searchsorted(namespace(M).sort(M), M)
xpx.setdiff1d(_detached(M)[0, :], _detached(M)[0, :2])  xpx.tril_indices(3, xp=namespace(M))
xpx.triu_indices(3, offset=1, xp=namespace(M))  xpx.union1d(_detached(M), _detached(M) + 1)
xpx.unravel_index(beside(M, [1, 7]), (3, 4))
""")


def _detached(x):
    """A set of values has no derivative."""
    return x.detach() if isinstance(x, wg.Tensor) else x


def _holed(x):
    xp = namespace(x)
    return xp.where(beside(x, ODD), x, xp.asarray(np.nan, dtype=x.dtype))


#: What does not work on a library's own arrays either.
MISSING = {
    "dask": ("nunique", "setdiff1d"),  # shapes that depend on data
    "jax": ("fill_value=0.0",),  # `apply_where` computes both branches: where's NaN comes through
}


@pytest.fixture
def known(backend, request):
    line = request.node.callspec.params["line"]
    if any(name in line for name in MISSING.get(backend.name, ())):
        pytest.skip(f"array_api_extra can't on {backend.name}")


@pytest.mark.whole
@pytest.mark.parametrize("line", CALLS)
@pytest.mark.usefixtures("known")
def test_call(line, backend):
    compare(*call_of(line, globals()))


@pytest.mark.parametrize("line", ANSWERS)
@pytest.mark.usefixtures("known")
def test_answer(line, backend):
    function, x = call_of(line, globals())
    ours, theirs = function(wg.asarray(x, requires_grad=True)), function(x)
    if not isinstance(theirs, tuple):
        ours, theirs = (ours,), (theirs,)
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, wg.Tensor):
            assert not one.requires_grad
            one = one.numpy()
        np.testing.assert_array_equal(one, other)


def test_lazy_apply_refuses_to_lose_the_derivative(backend):
    x = wg.asarray(V, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Use tensor\.detach\(\)\.numpy\(\)"):
        xpx.lazy_apply(np.exp, x, as_numpy=True)
    out = xpx.lazy_apply(np.exp, x.detach(), as_numpy=True)
    np.testing.assert_array_equal(out.numpy(), np.exp(V))
    # Without the conversion it is NumPy's function on a Tensor.
    (g,) = wg.autograd.grad(wg.sum(xpx.lazy_apply(np.exp, x)), x)
    np.testing.assert_allclose(g.numpy(), np.exp(V), rtol=1e-14)


def test_everything_public_is_tested():
    tested = {*re.findall(r"xpx\.(\w+)\(", " ".join([*CALLS, *ANSWERS]))} | {"lazy_apply"}
    others = {"__version__", "testing", "expand_dims", "broadcast_shapes"}  # two are deprecated
    assert set(xpx.__all__) - others - tested == set()
