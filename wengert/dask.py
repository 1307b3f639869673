"""Gradients of data in chunks that do not fit into memory, and graphs that do not grow."""

from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from importlib import import_module
from operator import call
from typing import Any

import numpy as np

from wengert.backends import backend_of, get_backend, use_backend
from wengert.backends.backend import importing
from wengert.compiler import making
from wengert.func.reverse import value_and_grad as differentiated
from wengert.func.trees import tree_flatten, tree_unflatten
from wengert.nn.module import Module
from wengert.ops.conversion import asarray
from wengert.optim.optimizer import Optimizer
from wengert.tape.tensor import Tensor

__all__ = ["persist", "value_and_grad"]

#: How many partial sums are added in one task.
_FAN_IN = 8


def __dir__() -> list[str]:
    return __all__


def _dask(asking: str) -> Any:
    needs = f"wengert.dask.{asking} needs dask, which cannot be imported ({{}}); install "
    with importing(f"{needs}wengert[dask]"):
        import_module("dask.array")
        return import_module("dask")


def value_and_grad(
    function: Callable[..., Tensor], *, reduce: str = "sum"
) -> Callable[..., tuple[Tensor, Any]]:
    r"""Return a function that gives a loss over all chunks of data, and its gradients.

    Of data :math:`X_1, \dots, X_K` in chunks it computes :math:`\sum_k f(\theta, X_k)` and its
    derivative :math:`\sum_k \partial f / \partial \theta`: each chunk is a task, which runs one
    compiled program of NumPy's, and the results are added in a tree. A chunk is freed when its task
    has run, so that data larger than memory can be read chunk by chunk.

    Parameters
    ----------
    function : callable
        ``function(parameters, *chunks)`` returns a real 0-d Tensor. It runs on NumPy, once to be
        recorded for each shape of the chunks, and is pickled where tasks run in other processes.
        It may change nothing else.
    reduce : {"sum", "mean"}
        ``"sum"`` if the loss of all rows is the sum of those of its chunks; ``"mean"`` if it is the
        mean over rows: chunks are then weighted by their numbers of rows.

    Returns
    -------
    callable
        ``run(parameters, *arrays)`` computes, and returns the loss, a 0-d Tensor, and the
        gradients in the structure of ``parameters``, all on NumPy. ``parameters`` are Tensors or
        arrays of any library, in lists, tuples and dictionaries; ``arrays`` are dask arrays or
        Tensors of such, chunked along the first axis. Their other axes are put together in one
        chunk, and all get the chunks of the first one's rows.

    Raises
    ------
    ImportError
        If dask is not installed.
    ValueError
        If ``reduce`` has another value; from the returned function, if there are no rows, their
        numbers differ, or are not known before they are computed.
    TypeError
        From the returned function, if an array is not dask's, or the loss is no real 0-d Tensor.

    Notes
    -----
    A function that does not decompose into its chunks, such as a log-mean-exp over all rows, needs
    the whole arrays on the backend ``"dask"`` and `wengert.checkpoint` instead.

    Examples
    --------
    >>> import dask.array as da
    >>> import wengert.dask
    >>> rows = wg.asarray(da.ones((100, 3), chunks=(25, 3)))
    >>> loss = lambda w, x: wg.sum((x @ w - 1) ** 2)
    >>> value, grad = wengert.dask.value_and_grad(loss)(wg.zeros(3), rows)
    >>> float(value), grad
    (100.0, tensor([-200., -200., -200.]))
    """
    if reduce not in ("sum", "mean"):
        raise ValueError(f'reduce is "sum" or "mean", not {reduce!r}')
    dask = _dask("value_and_grad")
    steps: dict[Any, _Step] = {}

    def run(parameters: Any, *arrays: Any) -> tuple[Tensor, Any]:
        if not arrays:
            raise TypeError("value_and_grad: give the parameters, and at least one dask array")
        blocks = _blocks(arrays)
        leaves, structure = tree_flatten(parameters)
        values = [_host(leaf) for leaf in leaves]
        step = steps.setdefault(structure, _Step(function, reduce, structure))
        # Both are objects of the graph, which a worker gets once, and not with each task.
        common = [dask.delayed(one, traverse=False, pure=False) for one in (step, values)]
        task = dask.delayed(call, pure=False)
        parts = [task(*common, *chunks) for chunks in zip(*blocks, strict=True)]
        add = dask.delayed(_sum_terms, pure=False)
        while len(parts) > 1:
            parts = [add(parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)]
        ((weight, *sums),) = dask.compute(*parts)
        if reduce == "mean":
            sums = [np.asarray(total / weight, total.dtype) for total in sums]
        with use_backend("numpy"):
            loss, *gradients = map(asarray, sums)
        return loss, tree_unflatten(structure, gradients)

    return run


class _Step:
    """The task of one chunk: the rows, and the loss and the gradients, weighted by them."""

    def __init__(self, function: Callable[..., Tensor], reduce: str, structure: Any) -> None:
        self.function, self.reduce, self.structure = function, reduce, structure

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.function, self.reduce, self.structure
        return _unpickle_step, (import_module("cloudpickle").dumps(given),)

    @cached_property
    def program(self) -> Callable[..., Any]:
        return making.compile(differentiated(self.function))

    def __call__(self, values: list[Any], *chunks: Any) -> list[Any]:
        with use_backend("numpy"):
            parameters = tree_unflatten(self.structure, [asarray(v) for v in values])
            loss, gradients = self.program(parameters, *[asarray(c) for c in chunks])
        rows = len(chunks[0])
        sums = [_host(x) for x in (loss, *tree_flatten(gradients)[0])]
        return [rows, *([x * rows for x in sums] if self.reduce == "mean" else sums)]


@lru_cache(maxsize=4)
def _unpickle_step(given: bytes) -> _Step:
    """A step in another process, one for each function, so that calls find what others recorded.

    The function is the same to the last byte: with a value of its closure that has changed, it is
    another one.
    """
    return _Step(*import_module("cloudpickle").loads(given))


def _sum_terms(parts: Iterable[list[Any]]) -> list[Any]:
    return [sum(terms[1:], start=terms[0]) for terms in zip(*parts, strict=True)]


def _host(x: Any) -> Any:
    array = x.detach().array if isinstance(x, Tensor) else x
    return backend_of(array).to_numpy(array) if hasattr(array, "dtype") else np.asarray(array)


def _blocks(arrays: tuple[Any, ...]) -> list[list[Any]]:
    """The delayed chunks of each array that have rows, after all have the same rows in them."""
    backend = get_backend("dask")
    raw = [x.detach().array if isinstance(x, Tensor) else x for x in arrays]
    for x in raw:
        if backend_of(x) is not backend or not x.ndim:
            raise TypeError(f"value_and_grad takes dask arrays with rows, not {type(x).__name__}")
        backend.adopt(x)
    if len({len(x) for x in raw}) > 1 or not len(raw[0]):
        raise ValueError(
            "value_and_grad takes arrays of the same number of rows, at least 1; the shapes are "
            f"{', '.join(str(tuple(x.shape)) for x in raw)}"
        )
    rows = tuple(n for n in raw[0].chunks[0] if n)
    whole = [x.rechunk({0: rows, **dict.fromkeys(range(1, x.ndim), -1)}) for x in raw]
    return [list(x.to_delayed().ravel()) for x in whole]


def persist(*objects: Any) -> None:
    """Compute the arrays of dask that objects hold, in one run, and keep the values instead.

    A training loop on whole dask arrays is lazy: parameters are graphs of all the steps before.
    Called at the end of each step, the graphs of all steps have the same size.

    Parameters
    ----------
    *objects : Module, Optimizer or Tensor
        Of a module the parameters, their gradients, and the buffers; of an optimiser its
        parameters and its state; a Tensor, such as the loss, whose values are then at hand.

    Raises
    ------
    ImportError
        If dask is not installed.
    TypeError
        If an object is none of these.

    Notes
    -----
    Values stay in chunks, where dask computes: on a cluster, in its workers. What was recorded with
    a Tensor before can be differentiated as before. Arrays of other libraries stay as they are.

    Examples
    --------
    >>> import dask.array as da
    >>> import wengert.dask
    >>> x = wg.asarray(da.ones((100, 3), chunks=(25, 3)))
    >>> y = (x * 2).sum()
    >>> wengert.dask.persist(y)  # now y is a number, and no graph
    >>> y.item()
    600.0
    """
    dask = _dask("persist")
    backend: Any = get_backend("dask")
    tensors = {id(t): t for one in objects for t in _tensors_of(one)}
    states = [s for one in objects if isinstance(one, Optimizer) for s in one.state.values()]
    places: list[Any] = [(t, "_array", t._array, setattr) for t in tensors.values()]
    places += [(s, key, x, dict.__setitem__) for s in states for key, x in s.items()]
    kind = backend.dask.Array
    lazy = [place for place in places if isinstance(place[2], kind)]
    values = dask.persist(*[array for _, _, array, _ in lazy])
    for (owner, name, _, put), value in zip(lazy, values, strict=True):
        put(owner, name, value)


def _tensors_of(one: Any) -> Iterable[Tensor]:
    """The Tensors of an object, and their gradients."""
    if isinstance(one, Module):
        tensors = [*one.parameters(), *one.buffers()]
    elif isinstance(one, Optimizer):
        tensors = [p for group in one.param_groups for p in group["params"]]
    elif isinstance(one, Tensor):
        tensors = [one]
    else:
        raise TypeError(f"persist takes modules, optimisers and Tensors, not {type(one).__name__}")
    return [*tensors, *(t._grad for t in tensors if t._grad is not None)]
