"""Dask's graphs: what is computed when, how often, in which chunks, and what is held meanwhile."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.backends.dask import ON_CHUNKS
from wengert.backends.numpy import BACKEND as NUMPY

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

ROWS, CHUNK = 1000, 50


@pytest.fixture(autouse=True)
def one_thread():
    with wg.use_backend("dask"), dask.config.set(scheduler="synchronous"):
        yield


class Held(dask.callbacks.Callback):
    """The most bytes that the results of tasks have had together, and how many tasks there were."""

    def __init__(self) -> None:
        super().__init__(start=self._begin, posttask=self._ran)
        self.most = self.tasks = 0

    def _begin(self, graph: Any) -> None:
        self.most = self.tasks = 0

    def _ran(self, key: Any, value: Any, graph: Any, state: Any, worker: Any) -> None:
        self.tasks += 1
        held = sum(np.asarray(v).nbytes for v in state["cache"].values() if hasattr(v, "nbytes"))
        self.most = max(self.most, held)


def computed(*tensors: wg.Tensor) -> tuple[list[np.ndarray], Held]:
    held = Held()
    with held:
        values = dask.compute(*[x.detach().array for x in tensors])
    return list(values), held


# -- checkpoints ---------------------------------------------------------------------------------


def rows(seed: int = 0) -> Any:
    """Numbers that are drawn chunk by chunk."""
    return da.random.default_rng(seed).random((ROWS, 4), chunks=(CHUNK, 4))


def log_mean_exp(w: wg.Tensor, data: wg.Tensor) -> wg.Tensor:
    return wg.log(wg.mean(wg.exp(wg.sin(data * w))))


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_checkpoint_holds_a_few_chunks(create_graph):
    w, data = wg.tensor([0.1, 0.2, 0.3, 0.4], requires_grad=True), wg.asarray(rows())
    found = []
    for loss in (log_mean_exp(w, data), wg.checkpoint(log_mean_exp, w, data)):
        (g,) = wg.autograd.grad(loss, w, create_graph=create_graph)
        found.append(computed(loss, g))
    (plain, whole), (again, parts) = found
    for a, b in zip(plain, again, strict=True):
        np.testing.assert_array_equal(a, b)
    size = ROWS * 4 * 8
    # Without it at least the exponentials wait for their mean.
    assert whole.most > size
    assert parts.most < size / 2


def test_what_a_checkpoint_closes_over_is_shared():
    """History before the function is not computed twice: a graph would double in each step."""
    before = wg.asarray(rows())
    total = wg.sum(before, axis=0)
    w = wg.tensor(total.array, requires_grad=True)
    (g,) = wg.autograd.grad(wg.checkpoint(lambda w: wg.sum(wg.sin(w * total)), w), w)
    names = [key[0] for key in dict(g.array.dask) if isinstance(key, tuple)]
    assert sum(name.startswith("random") for name in names) == ROWS // CHUNK


def test_copies_are_not_copied_again():
    w = wg.asarray(da.full(4, 0.5, chunks=2))
    sizes = []
    for _ in range(6):
        w = w.detach().requires_grad_()
        (g,) = wg.autograd.grad(wg.checkpoint(lambda w: wg.sum(wg.sin(w) * w), w), w)
        w = w.detach() - 0.1 * g
        sizes.append(len(dict(w.array.dask)))
    steps = np.diff(sizes)
    assert steps[-1] == steps[-2]


# Each goes through another kind of layer of dask's.
FUNCTIONS = {
    "broadcast": lambda x: wg.sum(wg.exp(wg.broadcast_to(x[0], (3, 4))) * 2),
    "reductions": lambda x: wg.sum(wg.exp(x - wg.mean(x, axis=0)) / wg.max(x)),
    "products": lambda x: wg.sum(wg.sin(x @ wg.matrix_transpose(x)) ** 2),
    "shapes": lambda x: wg.sum(wg.exp(wg.reshape(wg.concat([x, x * 2]), (-1,))) ** 2),
    "indices": lambda x: wg.sum(wg.exp(x[1:3] * x[::2][:2]) * x[0]),
    "decompositions": lambda x: wg.linalg.slogdet(wg.matrix_transpose(x) @ x).logabsdet,
    "scans": lambda x: wg.sum(wg.exp(wg.cumulative_sum(x, axis=0)) ** 2),
    "transforms": lambda x: wg.sum(wg.abs(wg.fft.fft(wg.exp(x), axis=0)) ** 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_checkpoints_are_equal(name):
    values, function = np.random.default_rng(0).random((5, 4)), FUNCTIONS[name]
    x = wg.tensor(da.from_array(values, chunks=(2, 3)), requires_grad=True)
    plain = wg.autograd.grad(function(x), x)
    again = wg.autograd.grad(wg.checkpoint(function, x), x)
    (a, b), _ = computed(*plain, *again)
    np.testing.assert_array_equal(a, b)


def test_checkpoints_inside_forward_mode_and_batches():
    x = wg.asarray(da.from_array(np.linspace(0.1, 1, 5), chunks=2))

    def loss(x):
        return wg.checkpoint(lambda x: wg.sum(wg.exp(wg.sin(x))), x)

    def slope(x):
        return wg.cos(x) * wg.exp(wg.sin(x))

    _, tangent = wg.func.jvp(wg.func.grad(loss), (x,), (wg.ones_like(x),))
    _, expected = wg.func.jvp(slope, (x,), (wg.ones_like(x),))
    hessian = wg.func.hessian(loss)(x)
    (a, b, c), _ = computed(tangent, expected, hessian)
    np.testing.assert_allclose(a, b, rtol=1e-13)
    np.testing.assert_allclose(c, np.diag(b), rtol=1e-13)


# -- what does not compute -----------------------------------------------------------------------


def refuse(*args: Any, **kwargs: Any) -> None:
    raise AssertionError("this computes")


LOOKS = (
    *(repr, print, lambda x: f"{x}", copy.copy, copy.deepcopy),
    lambda x: pickle.loads(pickle.dumps(x)),
    lambda x: str(wg.global_tape.of(wg.exp(x.detach().requires_grad_()))),
)


def test_looking_at_a_lazy_tensor_does_not_compute():
    x = wg.asarray(da.exp(da.ones((6, 5), chunks=(4, 3))))
    with dask.config.set(scheduler=refuse):
        every = [look(x) for look in LOOKS]
        with pytest.raises(AssertionError, match="this computes"):
            x.numpy()
    for found in every:
        if isinstance(found, wg.Tensor):
            assert found.array.chunks == x.array.chunks
            np.testing.assert_array_equal(found.numpy(), x.numpy())


def test_a_lazy_tensor_prints_its_shape_and_one_in_memory_its_values():
    values = np.arange(6.0).reshape(2, 3)
    x = wg.asarray(da.from_array(values, chunks=(1, 2)))
    with dask.config.set(scheduler=refuse):
        shown, lazy = repr(x), repr(x + 1)
        np.testing.assert_array_equal(x.numpy(), values)
    assert shown == repr(wg.asarray(values))
    assert lazy == "tensor(..., size=(2, 3), dtype=wengert.float64)"
    assert repr(wg.asarray((x + 1).array.persist())) == repr(wg.asarray(values + 1))


NEEDS_A_SIZE = (
    *(len, wg.flip, lambda x: x.size, lambda x: x[0], lambda x: x[1:], lambda x: wg.roll(x, 1)),
    *(lambda x: wg.tile(x, (2,)), lambda x: wg.repeat(x, 2), lambda x: wg.expand_dims(x, axis=0)),
    lambda x: [row for row in x],  # noqa: C416 -- list() asks for the length
)


def test_functions_of_whole_chunks_are_numpy_s():
    assert all(hasattr(wg.special, name) for name in wg.special.__all__)  # all files are loaded
    assert [name for name in ON_CHUNKS if not hasattr(NUMPY.namespace, name)] == []


def test_draws_of_half_precision_are_below_one():
    found = wg.rand_like(wg.zeros(1000, dtype=wg.float16)).numpy()
    assert 0 <= found.min() < 0.1 and 0.9 < found.max() < 1


def test_unknown_sizes_are_errors_that_say_what_to_do():
    unique = wg.unique_values(wg.asarray([1.0, 2.0, 2.0]))
    x = da.from_array(np.arange(4.0), chunks=2)
    unknown = x[x > 1]
    takes = (wg.asarray, wg.Tensor, wg.sin, lambda a: wg.asarray(x) + a)
    for calls, given in ((NEEDS_A_SIZE, unique), (takes, unknown)):
        for call in calls:
            with pytest.raises(ValueError, match=r"compute_chunk_sizes\(\)"):
                call(given)
    known = wg.asarray(unknown.compute_chunk_sizes())
    assert known.shape == (2,)


V = np.random.default_rng(1).random((3, 4, 5))
M = V > 0.5
#: Keys with one mask, and a value that all chosen places have in common.
WRITTEN: dict[str, tuple[Any, Any]] = {
    "all axes": ((M,), 7.0),
    "a row": ((M[..., 0],), V[0, 0] + 1),
    "behind others": ((slice(None), M[0, :, 0]), V[:1, 0] + 1),
    "after an ellipsis": ((..., M[0, 0]), 7.0),
    "before an ellipsis": ((M[:, 0, 0], ..., slice(1, 3)), 7.0),
    "between slices": ((slice(0, 2), M[0, :, 0], slice(None, None, -2)), V[0, 0, :3] + 1),
    "beside an integer": ((slice(None), M[0, :, 0], 1), 7.0),
    "with new axes": ((None, M[:, 0, 0], None), V[0, 1] + 1),
    "0-d": ((np.asarray(True),), V[0] + 1),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_writing_what_all_places_of_a_mask_have_in_common_does_not_compute(name):
    key, value = WRITTEN[name]
    expected, cleared = V.copy(), np.ones_like(V)
    expected[key], cleared[key] = value, 0.0
    x = wg.tensor(da.from_array(V, chunks=2), requires_grad=True)
    given = wg.asarray(da.from_array(np.asarray(value)))
    with dask.config.set(scheduler=refuse):
        y = x * 1
        # Masks that are computed, and not in memory.
        lazy = [wg.logical_not(wg.asarray(~k)) if isinstance(k, np.ndarray) else k for k in key]
        y[tuple(lazy)] = given
        (g,) = wg.autograd.grad(wg.sum(y), x)
    (a, b), _ = computed(y, g)
    np.testing.assert_array_equal(a, expected)
    np.testing.assert_array_equal(b, cleared)


def test_a_number_that_is_written_by_a_mask_has_a_lazy_derivative():
    x = wg.asarray(da.from_array(V, chunks=2))
    with dask.config.set(scheduler=refuse):
        number = wg.tensor(2.0, dtype=wg.float64, requires_grad=True)
        y = x * 1
        y[x > 0.5] = number
        (g,) = wg.autograd.grad(wg.sum(y * x), number, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), V[M].sum(), rtol=1e-14)


def test_masks_and_values_that_do_not_fit_are_errors():
    x = wg.asarray(da.from_array(V, chunks=2))
    for mask, value in ((M[:1], 0.0), (M[0], 0.0), (M, V[0, 0]), (M[:, 0], V[0, 0, :2])):
        with pytest.raises((IndexError, ValueError)):
            x[wg.asarray(mask)] = wg.asarray(value)
    np.testing.assert_array_equal(x.numpy(), V)


# -- chunks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("create_graph", [False, True])
def test_cotangents_have_the_chunks_of_what_was_summed(axis, create_graph):
    x = wg.tensor(da.ones((6, 5), chunks=(4, 3)), requires_grad=True)
    loss = wg.sum(wg.exp(wg.mean(x, axis=axis)) * 2)
    (g,) = wg.autograd.grad(loss, x, create_graph=create_graph)
    assert g.array.chunks == x.array.chunks
    n = {None: 30, 0: 6, 1: 5, (0, 1): 30}[axis]
    np.testing.assert_allclose(g.detach().numpy(), np.full((6, 5), 2 * np.e / n), rtol=1e-14)
