"""Dask arrays of unknown lengths: each function is lazy and right, or says what to do."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from backend_check.calls import FUNCTIONS, arguments, split_arguments
from tests.walking import walk
from wengert.tape.tensor import untracked

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


class ComputesError(Exception):
    pass


def refuse(*args: Any, **kwargs: Any) -> None:
    raise ComputesError


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    with dask.config.set(scheduler="synchronous"):
        yield


def mapped(value: Any, change: Any) -> Any:
    """An argument with its arrays changed, in lists and dicts too."""
    if isinstance(value, dict):
        return {key: mapped(each, change) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(mapped(each, change) for each in value)
    return change(value) if isinstance(value, np.ndarray) and value.ndim else value


def unknown(values: np.ndarray) -> wg.Tensor:
    """A Tensor whose first length is not known before it is computed, as of `unique_values`."""
    array = da.from_array(values, chunks=2)
    return untracked(array[da.ones(len(values), dtype=bool, chunks=2)])


def computed(out: Any) -> list[np.ndarray]:
    if isinstance(out, list | tuple):
        return [array for each in out for array in computed(each)]
    if not isinstance(out, wg.Tensor):
        return [np.asarray(out)]
    # `numpy` would refuse the unknown.
    return [np.asarray(out.array.compute() if out.backend.name == "dask" else out.numpy())]


def takes_arrays(name: str) -> bool:
    found: list[Any] = []
    mapped([*arguments(name).values()], found.append)
    return bool(found)


#: What takes no dask arrays, computes by its nature, or gives no arrays.
OTHERS = {"from_dlpack", "from_numpy", "to_backend", "at", "finfo", "iinfo", "result_type"}
OTHERS |= {"x.type"}
ROOMS = ("init", "nn", "optim", "random", "F")
NAMES = [name for name in FUNCTIONS if name not in OTHERS and name.split(".")[0] not in ROOMS]


def test_a_function_of_unknown_lengths_is_lazy_and_right_or_says_what_to_do() -> None:
    walk([(name,) for name in NAMES if takes_arrays(name)], check_unknown_lengths)


def check_unknown_lengths(name: str) -> None:
    args, kwargs = split_arguments(name, arguments(name))
    with wg.use_backend("dask"):
        try:
            with dask.config.set(scheduler=refuse):
                out = FUNCTIONS[name](*mapped(args, unknown), **mapped(kwargs, unknown))
        except ValueError as error:
            if "compute_chunk_sizes()" not in str(error):
                raise
            return
        found = computed(out)
    with wg.use_backend("numpy"):
        given = mapped(args, wg.asarray), mapped(kwargs, wg.asarray)
        expected = computed(FUNCTIONS[name](*given[0], **given[1]))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


#: Lengths that functions compare, divide or count.
COMPARED = {
    "reshape": lambda u, x: wg.reshape(u, (2, -1)),
    "matmul": lambda u, x: x @ u,
    "pad": lambda u, x: wg.pad(u, 1),
    "stack": lambda u, x: wg.stack([u, x]),
    "broadcast_to": lambda u, x: wg.broadcast_to(u, (4, 3)),
    "vecdot": lambda u, x: wg.vecdot(u, x),
    "tensordot": lambda u, x: wg.tensordot(u, x, axes=1),
    "einsum": lambda u, x: wg.einsum("i,i", u, x),
    "squeeze": lambda u, x: wg.squeeze(u, axis=0),
}


@pytest.mark.parametrize("name", COMPARED)
def test_the_remedy_is_named_and_works(name: str) -> None:
    with wg.use_backend("dask"):
        x = wg.asarray([1, 2, 3, 2])
        for u in (wg.unique_values(x), wg.nonzero(x > 1)[0]):
            with pytest.raises(ValueError, match=r"compute_chunk_sizes\(\)"):
                COMPARED[name](u, x[:3])
            assert wg.asarray(u.array.compute_chunk_sizes()).shape == (3,)


def test_a_length_that_is_not_known_is_computed_with_by_no_program() -> None:
    """A mean that divides by it would be nan without a word."""
    u = unknown(np.arange(3.0))
    assert np.isnan(u.shape[0])
    uses = (lambda n: wg.sum(u) / n, lambda n: 2 * n, lambda n: n > 3, lambda n: n == 3, range)
    for use in (*uses, lambda n: len(u), lambda n: u.size):
        with pytest.raises(ValueError, match=r"compute_chunk_sizes\(\)"):
            use(u.shape[0])
