"""Arrays above Tensors: what docs/duck_arrays.rst says of xarray, pint and dask.

Values are those of the same library above NumPy's arrays, derivatives those of its differences.
"""

import copy

import numpy as np
import pytest

import wengert as wg
from tests.interplay.compare import compare
from tests.walking import lines_of
from wengert.testing.problem import values

pytestmark = pytest.mark.oracle  # where xarray and pint are installed

X = np.array([[0.3, 1.7, 2.9], [4.1, -0.6, 5.3]])
W = np.array([1.5, -0.4, 2.2])


@pytest.fixture(autouse=True)
def on_numpy():
    with wg.use_backend("numpy"):
        yield


def inner(x):
    """The array inside a duck array."""
    for name in ("data", "magnitude"):
        if not isinstance(x, np.ndarray | np.generic | wg.Tensor) and hasattr(x, name):
            return inner(getattr(x, name))
    return x


def check(program):
    """Compare ``program(x, w)``, which wraps both arrays itself, with the same on NumPy."""
    compare(lambda x, w: inner(program(x, w)), X, W)


# -- xarray --------------------------------------------------------------------------------------


def named(x, w):
    import xarray as xr

    labels = {"t": [10, 20], "c": list("abc")}
    return xr.DataArray(x, dims=("t", "c"), coords=labels), xr.DataArray(w, dims=("c",))


BY_NAMES = lines_of("""
1 - x * w + x ** 2 / (1 + abs(w))  np.tanh(x) + np.exp(w)  w.broadcast_like(x) - x  (x * w).sum("c")
(x * w).mean("t")  x.std("c") + w.var()  x.max("c") * w.min()  x.prod("c") + w.prod()
x.cumsum("c") * w + (x / 4).cumprod("c")  x.quantile(0.3, "c")  x.quantile(0.3, "t") * w
x.quantile([0.2, 0.7], ("t", "c"))  x.isel(t=0) * w  x.sel(c=["a", "c"]) + x.sel(c="b")
x[:, 1:] * x[:, ::-1][:, 1:].data  x.where(x > 1, w)  x.clip(0, 4)  x.transpose("c", "t") * w
x.dot(w) + x @ w  x.stack(z=("t", "c")).unstack() * w  x.roll(c=1) + x.shift(t=1, fill_value=0.0)
x.diff("c") * w.diff("c")  x.groupby("c").sum() * w  x.integrate("t") * w
x.reindex(c=list("ab"), fill_value=0.0) + x.fillna(0.0)  x.pad(c=1, constant_values=0.0)
x.astype("float64") * w  x + x.isel(c=[0, 1])
""")


def of(line, x, w, **more):
    return eval(line, {"x": x, "w": w, "np": np, "copy": copy} | more)


@pytest.mark.parametrize("line", BY_NAMES)
def test_xarray(line):
    xr = pytest.importorskip("xarray")

    def program(x, w):
        out = of(line, *named(x, w))
        assert isinstance(out, xr.DataArray)
        return out

    check(program)


def test_datasets_of_xarray():
    xr = pytest.importorskip("xarray")

    def program(x, w):
        x, w = named(x, w)
        data = xr.Dataset({"x": x, "w": w})
        return ((data + 1).map(np.sin).sum("c") * data.mean())["x"]

    check(program)
    mapped = xr.apply_ufunc(wg.expit, named(wg.asarray(X), W)[0])
    assert isinstance(mapped.data, wg.Tensor)


ERRORS = {
    "values": lambda x: x.values,
    "NumPy": np.asarray,
    "float": lambda x: float(x.sum()),
    "pandas": lambda x: x.to_dataframe("x"),
    "where without a value": lambda x: x.where(x > 1),
    "argmax": lambda x: x.argmax("c"),
    "interp": lambda x: x.interp(t=15),
    "weighted": lambda x: x.weighted(named(X, W)[1]).mean("c"),
}


def coordinate(x):
    x.assign_coords(t=("t", wg.asarray(W[:2], copy=True, requires_grad=True)))


ERRORS["coordinate"] = coordinate


@pytest.mark.parametrize("name", ERRORS)
def test_what_fails_in_xarray_is_an_error(name):
    pytest.importorskip("xarray")
    x = named(wg.asarray(X, copy=True, requires_grad=True), W)[0]
    with pytest.raises((RuntimeError, TypeError)):
        ERRORS[name](x)


COPIES = lines_of("""
x.copy() * w  copy.deepcopy(x) * w  x.sortby("c", ascending=False) * w.data
__import__("xarray").align(x, w)[0] * w  (x * 2).copy(deep=True) * w.copy()
x.to_dataset(name="x").copy(deep=True)["x"] * w
""")


@pytest.mark.parametrize("line", COPIES)
def test_copies_by_xarray_stay_tracked(line):
    pytest.importorskip("xarray")
    check(lambda x, w: of(line, *named(x, w)))

    def total(x):
        return wg.sum(inner(of(line, *named(x, W))))

    x = wg.asarray(X)
    _, slope = wg.jvp(total, (x,), (wg.ones_like(x),))
    np.testing.assert_allclose(values(slope), values(wg.sum(wg.grad(total)(x))))


# -- pint ----------------------------------------------------------------------------------------

WITH_UNITS = lines_of("""
3 * x * w - x * w / 2 -> meter * second  (x.to("cm") + x) / w -> centimeter / second
x ** 2 + abs(x) * x.mean() -> meter ** 2  np.sqrt(abs(x)) -> meter ** 0.5
np.exp(x / np.std(x)) * np.tanh(w / w.max()) -> dimensionless
np.sum(x, axis=0) + np.mean(x) + np.median(x) -> meter  np.prod(w) -> second ** 3
x @ w + np.dot(x, w) -> meter * second  np.einsum("ij,j", x, w) -> meter * second
x[0] * w + x.T[:, 1] * w -> meter * second  np.concatenate([x, x.to("cm")]) -> meter
x.reshape(3, 2) + np.stack([x, x])[0].T.reshape(3, 2) -> meter
np.cumsum(w) + np.diff(x)[0, 0] * w[0] / x[0, 0] -> second
np.maximum(x, x.mean()) + np.clip(x, x.min(), x.mean()) -> meter
np.linalg.norm(x) * w -> meter * second
""")


def with_units(x, w):
    import pint

    units = pint.get_application_registry()
    return units.Quantity(x, "m"), units.Quantity(w, "s")


@pytest.mark.parametrize("line", WITH_UNITS)
def test_pint(line):
    pytest.importorskip("pint")
    line, unit = line.split(" -> ")

    def program(x, w):
        out = of(line, *with_units(x, w))
        assert str(out.units) == unit
        return out

    check(program)


def test_gradients_of_quantities_are_of_their_magnitudes():
    pytest.importorskip("pint")
    x, w = (wg.asarray(v, copy=True, requires_grad=True) for v in (X, W))
    loss = ((with_units(x, w)[0].to("cm")) ** 2).sum()
    loss.magnitude.backward()
    assert str(loss.units) == "centimeter ** 2"
    np.testing.assert_allclose(values(x.grad), 2e4 * X)  # square centimetres for each metre
    q = with_units(x, w)[0]
    slope = q._REGISTRY.Quantity(x.grad, loss.units / q.units)
    np.testing.assert_allclose(values(slope.m_as("m")), 2 * X)


def test_what_fails_in_pint_is_an_error():
    pint = pytest.importorskip("pint")
    x, w = (wg.asarray(v, copy=True, requires_grad=True) for v in (X, W))
    q, s = with_units(x, w)
    with pytest.raises(TypeError):
        wg.sin(q)
    if np.lib.NumpyVersion(pint.__version__) < "0.26.0":
        with pytest.raises(TypeError):
            x / q.units
    else:
        assert (x / q.units).magnitude.requires_grad
    assert (x * (1 / s.units)).magnitude.requires_grad
    with pytest.raises(RuntimeError):
        np.asarray(q)
    for wrong in (lambda: q + s, lambda: x + q):
        with pytest.raises(TypeError, match="Cannot convert"):
            wrong()


# -- dask ----------------------------------------------------------------------------------------

IN_CHUNKS = lines_of("""
1 + x * w - x ** 2 / 3  np.tanh(x) + da.exp(w)  x.sum(axis=0) * w  x.mean() * w  x.max() * w.min()
x.prod(axis=1)  x.std() * w  x.var(axis=0, ddof=1) * w  da.linalg.norm(x) * w  x[0] * w + x.T[:, 1]
da.concatenate([x, x * 2]) + da.stack([w, w])[0]  x @ x.T  da.where(x > 1, x, w)
x.reshape(-1).rechunk(2)  da.clip(x, 0, 4)
""")


@pytest.mark.parametrize("line", IN_CHUNKS)
def test_dask(line):
    da = pytest.importorskip("dask.array")

    def program(x, w):
        chunks = da.from_array(x, chunks=(1, 3)), da.from_array(w, chunks=2)
        return of(line, *chunks, da=da).compute(scheduler="synchronous")

    check(program)


def test_what_fails_in_dask_is_an_error():
    da = pytest.importorskip("dask.array")
    x = wg.asarray(X, copy=True, requires_grad=True)
    chunks = da.from_array(x, chunks=(1, 3))
    with pytest.raises(wg.backends.BackendError, match="two backends"):
        x * chunks
    with pytest.raises(RuntimeError, match="requires grad"):
        np.asarray(chunks)
    with pytest.raises(ValueError, match="broadcast"):
        chunks.cumsum(axis=0).compute(scheduler="synchronous")


CONVERSIONS = {
    "asarray": wg.asarray,
    "tensor": wg.tensor,
    "in a list": lambda q: wg.asarray([q]),
    "beside a Tensor": lambda q: wg.asarray([wg.asarray([1.0, 2.0]), q]),
    "Parameter": wg.nn.Parameter,
    "function": wg.sin,
    "shape": wg.zeros_like,
}


@pytest.mark.parametrize("way", CONVERSIONS)
def test_units_are_not_lost(way):
    pint = pytest.importorskip("pint")
    quantity = pint.get_application_registry().Quantity
    for array in (np.asarray([1.0, 2.0]), wg.asarray([1.0, 2.0])):
        with pytest.raises(TypeError, match=r"unit would be lost.*q\.magnitude"):
            CONVERSIONS[way](quantity(array, "m"))

    class Measured(np.ndarray):
        unit = "m"

    if way in ("asarray", "tensor", "in a list", "beside a Tensor"):
        with pytest.raises(TypeError, match=r"q\.value"):
            CONVERSIONS[way](np.asarray([1.0, 2.0]).view(Measured))
