"""The functions of array-api-extra take Tensors, and are differentiated."""

import numpy as np
import pytest

import wengert as wg
from tests.interplay.compare import beside, compare, namespace

xpx = pytest.importorskip("array_api_extra")

RNG = np.random.default_rng(5)
V = RNG.uniform(0.2, 0.9, 5)
W = RNG.uniform(0.2, 0.9, 5)
M = RNG.uniform(0.2, 0.9, (3, 4))
Z = RNG.normal(size=4) + 1j * RNG.normal(size=4)
ODD = np.array([True, False, True, True, False])

CALLS = {
    "angle": (lambda x: xpx.angle(x, deg=True), Z),
    "apply_where": (
        lambda x, y: xpx.apply_where(x > 0.5, (x, y), lambda a, b: a / b, lambda a, b: a * b),
        V,
        W,
    ),
    "apply_where with a value": (
        lambda x: xpx.apply_where(x > 0.5, x, lambda a: (a - 0.5) ** 0.5, fill_value=0.0),
        V,
    ),
    "at add": (lambda x, y: xpx.at(x)[1:3].add(y[:2], copy=True), V, W),
    "at divide": (lambda x, y: xpx.at(x)[0, :].divide(y[0], copy=True), M, W),
    "at max": (lambda x, y: xpx.at(x)[...].max(y, copy=True), V, W),
    "at min": (lambda x, y: xpx.at(x)[...].min(y, copy=True), V, W),
    "at multiply": (lambda x: xpx.at(x, beside(x, ODD)).multiply(3.0, copy=True), V),
    "at power": (lambda x: xpx.at(x)[2].power(3.0, copy=True), V),
    "at set": (lambda x, y: xpx.at(x)[:, 1].set(y[:3], copy=True), M, W),
    "at set by a mask": (lambda x: xpx.at(x)[beside(x, ODD)].set(0.5, copy=True) * x, V),
    "at subtract": (lambda x, y: xpx.at(x)[::2].subtract(y[:3], copy=True), V, W),
    "atleast_nd": (lambda x: xpx.atleast_nd(x, ndim=3), V),
    "cov": (lambda x: xpx.cov(x), M),
    "cov weighted": (
        lambda x, w: xpx.cov(x, axis=0, correction=0, aweights=w[:3]),
        M,
        W,
    ),
    "create_diagonal": (lambda x: xpx.create_diagonal(x, offset=-1), M),
    "deg2rad": (lambda x: xpx.deg2rad(x), V),
    "kron": (lambda x, y: xpx.kron(x, y), M, V),
    "nan_to_num": (lambda x: xpx.nan_to_num(_holed(x), fill_value=2.0), V),
    "nanmax": (lambda x: xpx.nanmax(_holed(x)), V),
    "nanmean": (lambda x: xpx.nanmean(_holed(x)), V),
    "nanmin": (lambda x: xpx.nanmin(_holed(x)), V),
    "nansum": (lambda x: xpx.nansum(_holed(x)), V),
    "pad": (lambda x: xpx.pad(x, ((1, 0), (2, 3)), constant_values=4.0), M),
    "partition": (lambda x: xpx.partition(x, 2)[..., 2], M),
    "rad2deg": (lambda x: xpx.rad2deg(x), V),
    "sinc": (lambda x: xpx.sinc(x), V),
}

ANSWERS = {
    "argpartition": lambda x: xpx.argpartition(x, 2, axis=-1)[..., 2],
    "default_dtype": lambda x: xpx.default_dtype(namespace(x), "integral") == namespace(x).int64,
    "diag_indices": lambda x: xpx.diag_indices(3, xp=namespace(x)),
    "isclose": lambda x: xpx.isclose(x, x * (1 + 1e-7)),
    "isin": lambda x: xpx.isin(namespace(x).astype(4 * x, namespace(x).int64), beside(x, [1, 2])),
    "nunique": lambda x: xpx.nunique(namespace(x).astype(4 * x, namespace(x).int64)),
    "one_hot": lambda x: xpx.one_hot(namespace(x).argmax(x, axis=0), 4),
    "searchsorted": lambda x: xpx.searchsorted(namespace(x).sort(x), x),
    "setdiff1d": lambda x: xpx.setdiff1d(_detached(x)[0, :], _detached(x)[0, :2]),
    "tril_indices": lambda x: xpx.tril_indices(3, xp=namespace(x)),
    "triu_indices": lambda x: xpx.triu_indices(3, offset=1, xp=namespace(x)),
    "union1d": lambda x: xpx.union1d(_detached(x), _detached(x) + 1),
    "unravel_index": lambda x: xpx.unravel_index(beside(x, [1, 7]), (3, 4)),
}


def _detached(x):
    """A set of values has no derivative."""
    return x.detach() if isinstance(x, wg.Tensor) else x


def _holed(x):
    xp = namespace(x)
    return xp.where(beside(x, ODD), x, xp.asarray(np.nan, dtype=x.dtype))


#: What does not work on a library's own arrays either.
MISSING = {
    "dask": ("nunique", "setdiff1d"),  # shapes that depend on data
    "jax": ("apply_where with a value",),  # it computes both branches: where's NaN comes through
}


@pytest.fixture
def known(backend, request):
    if request.node.callspec.params["name"] in MISSING.get(backend.name, ()):
        pytest.skip(f"array_api_extra can't on {backend.name}")


@pytest.mark.whole
@pytest.mark.parametrize("name", sorted(CALLS))
@pytest.mark.usefixtures("known")
def test_call(name, backend):
    function, *inputs = CALLS[name]
    compare(function, *inputs)


@pytest.mark.parametrize("name", sorted(ANSWERS))
@pytest.mark.usefixtures("known")
def test_answer(name, backend):
    ours, theirs = ANSWERS[name](wg.asarray(M, requires_grad=True)), ANSWERS[name](M)
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
    tested = {name.split()[0] for name in (*CALLS, *ANSWERS)} | {"lazy_apply"}
    others = {"__version__", "testing", "expand_dims", "broadcast_shapes"}  # two are deprecated
    assert set(xpx.__all__) - others - tested == set()
