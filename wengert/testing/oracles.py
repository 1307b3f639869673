"""PyTorch's and JAX's own derivatives of a function.

A Tensor that is not on the tape passes its raw array to the functions of the array's library. If
PyTorch or JAX tracks that array, its autograd differentiates the function of Tensors by its own
rules, and uses none of Wengert's.
"""

import importlib
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from wengert.backends import use_backend
from wengert.tape.autograd import grad
from wengert.tape.tensor import Tensor, untracked
from wengert.testing.differences import agree
from wengert.testing.problem import inexact, normal, values

Arrays = list[np.ndarray[Any, Any]]
#: How far rounding may move the results of two libraries apart.
RTOL, ATOL = 1e-7, 1e-9


def differences_from(
    library: str, function: Callable[..., Any], inputs: Sequence[Any], order: int
) -> str | None:
    """Compare values and derivatives with another library's, at one point.

    Parameters
    ----------
    library : {"torch", "jax"}
        The other library.
    function : callable
        A function of Tensors.
    inputs : sequence
        Its arguments. It is differentiated with respect to the floating and complex NumPy arrays.
    order : {1, 2}
        How many times to differentiate.

    Returns
    -------
    str or None
        What differs; None if nothing does.

    Raises
    ------
    Exception
        Whatever the function or the library raises where the library can't run the function.
    """
    names = ("value", "gradient", "second derivative")[: order + 1]
    theirs = dict(zip(names, ORACLES[library](function, inputs, order), strict=True))
    ours = dict(zip(names, _own(function, inputs, order), strict=True))
    for what, found in theirs.items():
        for i, (a, b) in enumerate(zip(ours[what], found, strict=True)):
            if not agree(a, b, RTOL, ATOL, RTOL):
                scale = float(np.max(abs(b), initial=0.0, where=np.isfinite(b)))
                gap = np.nanmax(abs(a - b), initial=0.0) if a.shape == b.shape else np.nan
                name = f"result {i}" if what == "value" else f"inputs[{_moved(inputs)[i]}]"
                return f"the {what} of {name} differs by {gap:.3g} (of {scale:.3g})"
    return None


def _moved(inputs: Sequence[Any]) -> list[int]:
    return [i for i, x in enumerate(inputs) if isinstance(x, np.ndarray) and x.dtype.kind in "fc"]


def _weights(arrays: Arrays, seed: int) -> Arrays:
    """Random cotangents, the same for every library."""
    random = np.random.default_rng(seed)
    return [normal(random, a.shape, a.dtype.kind == "c").astype(a.dtype) for a in arrays]


def _called(
    function: Callable[..., Any], inputs: Sequence[Any], moving: dict[int, Any]
) -> list[Any]:
    """The raw results of a function of Tensors, with raw arrays for some inputs."""
    given = [untracked(moving[i]) if i in moving else x for i, x in enumerate(inputs)]
    return [result._array for result in inexact(function(*given))]


def _own(function: Callable[..., Any], inputs: Sequence[Any], order: int) -> list[Arrays]:
    moved = _moved(inputs)
    with use_backend("numpy"):
        given = [
            Tensor(np.array(x), requires_grad=True) if i in moved else x
            for i, x in enumerate(inputs)
        ]
        targets = [given[i] for i in moved]
        return _swept(inexact(function(*given)), targets, order, grad, Tensor, values)


def _torch(function: Callable[..., Any], inputs: Sequence[Any], order: int) -> list[Arrays]:
    torch = importlib.import_module("torch")
    moving = {i: torch.tensor(inputs[i], requires_grad=True) for i in _moved(inputs)}

    def read(tensor: Any) -> np.ndarray[Any, Any]:
        return np.array(tensor.numpy(force=True))

    with use_backend("torch"):
        results = _called(function, inputs, moving)
        targets = list(moving.values())
        return _swept(results, targets, order, torch.autograd.grad, torch.tensor, read)


def _swept(
    results: Sequence[Any],
    targets: Sequence[Any],
    order: int,
    grad: Callable[..., Any],
    tensor: Callable[..., Any],
    read: Callable[..., np.ndarray[Any, Any]],
) -> list[Arrays]:
    """Values and derivatives by a library's own ``grad``; ``tensor`` makes its tensors."""
    found = [[read(result) for result in results]]
    for times in range(order):
        weights = [tensor(w) for w in _weights(found[times], times)]
        pairs = [(x, w) for x, w in zip(results, weights, strict=True) if x.requires_grad]
        given: Sequence[Any] = [None] * len(targets)
        if pairs:
            outputs, weights = map(list, zip(*pairs, strict=True))
            deeper = times + 1 < order
            given = grad(outputs, targets, weights, create_graph=deeper, allow_unused=True)
        results = [
            tensor(np.zeros_like(read(x))) if g is None else g
            for x, g in zip(targets, given, strict=True)
        ]
        found.append([read(result) for result in results])
    return found


def _jax(function: Callable[..., Any], inputs: Sequence[Any], order: int) -> list[Arrays]:
    jax = importlib.import_module("jax")
    moved = _moved(inputs)

    def program(*arrays: Any) -> list[Any]:
        return _called(function, inputs, dict(zip(moved, arrays, strict=True)))

    def gradients(*arrays: Any) -> list[Any]:
        out, pull = jax.vjp(program, *arrays)
        g = _weights([np.empty(r.shape, r.dtype) for r in out], 0)
        # JAX's cotangents are those of PyTorch's convention, conjugated.
        return [jax.numpy.conj(x) for x in pull([jax.numpy.conj(w) for w in g])]

    with use_backend("jax"), _double(jax):  # the backend, when it is loaded, sets what to restore
        points = [jax.numpy.asarray(inputs[i]) for i in moved]
        found = [[np.array(r) for r in program(*points)]]
        found.append([np.array(g) for g in gradients(*points)])
        if order > 1:
            _, pull = jax.vjp(gradients, *points)
            v = [jax.numpy.conj(w) for w in _weights(found[1], 1)]
            found.append([np.array(jax.numpy.conj(x)) for x in pull(v)])
    return found


@contextmanager
def _double(jax: Any) -> Any:
    """JAX in double precision, inside a ``with`` block."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


ORACLES: dict[str, Callable[..., list[Arrays]]] = {"torch": _torch, "jax": _jax}
