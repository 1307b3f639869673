"""`wengert.dask`: gradients chunk by chunk, and training loops whose graphs do not grow."""

import pickle
import sys

import numpy as np
import pytest

import wengert as wg

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(0)
X, Y = RNG.random((23, 4)), RNG.random((23, 2))
PARAMETERS = {"w": RNG.random((4, 2)), "b": RNG.random(2)}


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def pickled_parts(run):
    """A `value_and_grad` whose steps are pickled for each task."""

    def elsewhere(*args):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(wg.dask, "call", lambda step, *a: pickle.loads(pickle.dumps(step))(*a))
            return run(*args)

    return elsewhere


def total(p, x, y):
    return wg.sum((wg.tanh(x @ p["w"] + p["b"]) - y) ** 2)


def mean(p, x, y):
    return wg.mean((wg.tanh(x @ p["w"] + p["b"]) - y) ** 2)


@pytest.mark.parametrize(("function", "reduce"), [(total, "sum"), (mean, "mean")])
@pytest.mark.parametrize("rows", [1, 2, 5, 23])  # also chunks of different lengths
def test_chunks_give_the_gradients_of_the_whole(function, reduce, rows):
    parameters = {name: wg.asarray(p) for name, p in PARAMETERS.items()}
    expected, gradients = wg.func.value_and_grad(function)(parameters, *map(wg.asarray, (X, Y)))
    x, y = da.from_array(X, chunks=(rows, 3)), da.from_array(Y, chunks=7)
    loss, found = wg.dask.value_and_grad(function, reduce=reduce)(parameters, x, wg.asarray(y))
    assert loss.dtype == wg.float64 and loss.backend.name == "numpy"
    np.testing.assert_allclose(loss.numpy(), expected.numpy(), rtol=1e-13)
    assert found.keys() == gradients.keys()
    for name, g in gradients.items():
        np.testing.assert_allclose(found[name].numpy(), g.numpy(), rtol=1e-12)


def test_chunks_without_rows_are_left_out():
    x = da.from_array(X[:4], chunks=(((2, 0, 2)), 4))
    y = da.from_array(Y[:4], chunks=2)
    loss, _ = wg.dask.value_and_grad(mean, reduce="mean")(PARAMETERS, x, y)
    expected = mean({k: wg.asarray(p) for k, p in PARAMETERS.items()}, wg.asarray(X[:4]), Y[:4])
    np.testing.assert_allclose(loss.numpy(), expected.numpy(), rtol=1e-13)


def test_float32_stays_float32():
    x, y = (da.from_array(a.astype("float32"), chunks=5) for a in (X, Y))
    p = {name: p.astype("float32") for name, p in PARAMETERS.items()}
    loss, gradients = wg.dask.value_and_grad(mean, reduce="mean")(p, x, y)
    assert loss.dtype == gradients["w"].dtype == wg.float32


def test_a_step_is_pickled_without_its_programs_and_unpickled_once():
    step = wg.dask._Step(total, "sum", wg.func.tree_structure([0]))
    first, second = (pickle.loads(pickle.dumps(step)) for _ in range(2))
    assert step.program is not first.program
    assert first is second


@pytest.mark.parametrize("again", [lambda run: run, pickled_parts], ids=["here", "elsewhere"])
def test_calls_share_programs_and_see_what_functions_read(again, monkeypatch):
    """Tasks of another process find what those before have recorded."""
    made, factor = [], 2.0

    def compiled(function):
        made.append(compile_of(function))
        return made[-1]

    def scaled(p, x, y):
        return total(p, x, y) * factor

    compile_of = wg.compile
    monkeypatch.setattr(wg.dask.making, "compile", compiled)
    x, y = da.from_array(X, chunks=5), da.from_array(Y, chunks=5)
    run = again(wg.dask.value_and_grad(scaled))
    (first, _), (second, _) = run(PARAMETERS, x, y), run(PARAMETERS, x, y)
    assert len(made) == 1 and first.item() == second.item()
    recorded = made[0].report.recordings
    factor = 3.0
    third, _ = run(PARAMETERS, x, y)
    np.testing.assert_allclose(third.item(), 1.5 * first.item(), rtol=1e-14)
    run(PARAMETERS, x, y)
    assert made[0].report.recordings <= recorded + 4 and len(made) <= 2


def test_what_is_no_dask_array_with_rows_is_an_error():
    run = wg.dask.value_and_grad(total)
    x, y = da.from_array(X, chunks=5), da.from_array(Y, chunks=5)
    with pytest.raises(TypeError, match="takes dask arrays with rows, not ndarray"):
        run(PARAMETERS, x, Y)
    with pytest.raises(TypeError, match="at least one dask array"):
        run(PARAMETERS)
    with pytest.raises(ValueError, match=r"same number of rows.*\(23, 4\), \(3, 2\)"):
        run(PARAMETERS, x, y[:3])
    with pytest.raises(ValueError, match=r"compute_chunk_sizes\(\)"):
        run(PARAMETERS, x[x[:, 0] > 0.5], y)
    with pytest.raises(ValueError, match='reduce is "sum" or "mean", not \'max\''):
        wg.dask.value_and_grad(total, reduce="max")


def test_without_dask_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.array", None)
    for name, given in (("value_and_grad", [total]), ("persist", [])):
        text = rf"^wengert\.dask\.{name} needs dask, .*; install wengert\[dask\]$"
        with pytest.raises(ImportError, match=text):
            getattr(wg.dask, name)(*given)


def training(persisted):
    """The sizes of the loss's graph in each step, and the last weights."""
    with wg.use_backend("dask"):
        wg.manual_seed(0)
        model = wg.nn.Linear(4, 2)
        optimiser = wg.optim.Adam(model.parameters(), lr=0.1)
        x, y = (wg.asarray(da.from_array(a.astype("float32"), chunks=12)) for a in (X, Y))
        sizes = []
        for _ in range(4):
            optimiser.zero_grad()
            loss = wg.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimiser.step()
            sizes.append(len(dict(model.weight.array.dask)))
            if persisted:
                wg.dask.persist(model, optimiser, loss)
                assert loss.array.dask.dependencies[loss.array.name] == set()
        return sizes, model.weight.detach().numpy()


def test_a_training_loop_has_graphs_of_one_size():
    grown, expected = training(False)
    sizes, weights = training(True)
    assert grown[-1] > grown[1] * 1.5
    assert sizes[1] == sizes[2] == sizes[3]
    np.testing.assert_array_equal(weights, expected)


def test_persist_takes_no_other_objects():
    with pytest.raises(TypeError, match="persist takes modules, optimisers and Tensors, not list"):
        wg.dask.persist([])
