"""Modules of PyTorch and of Wengert with the same parameters."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import nn

RNG = np.random.default_rng(23)


def values(tensor: Any) -> np.ndarray:
    if isinstance(tensor, wg.Tensor):
        return np.asarray(tensor.detach().numpy())
    return np.asarray(tensor.numpy(force=True))


def twin(name: str, *args: Any, **options: Any) -> tuple[Any, Any]:
    """A module of each library, in float64, with the same numbers."""
    torch = pytest.importorskip("torch")
    ours = getattr(nn, name)(*args, **options, dtype=wg.float64)
    theirs = getattr(torch.nn, name)(*args, **options, dtype=torch.float64)
    alike(ours, theirs)
    return ours, theirs


def alike(ours: Any, theirs: Any, reads: bool = True) -> None:
    """Give both modules random numbers, one way and back, and compare how they read."""
    torch = pytest.importorskip("torch")
    text = repr(theirs).replace("NonDynamicallyQuantizableLinear", "Linear")
    assert not reads or repr(ours) == text
    state = theirs.state_dict()
    assert list(ours.state_dict()) == list(state)
    drawn = {key: RNG.normal(size=tuple(value.shape)) * 0.5 for key, value in state.items()}
    theirs.load_state_dict({key: torch.tensor(value) for key, value in drawn.items()})
    ours.load_state_dict(
        {key: wg.asarray(value.numpy()) for key, value in theirs.state_dict().items()}
    )
    theirs.load_state_dict(
        {key: torch.tensor(values(value)) for key, value in ours.state_dict().items()}
    )


def check_twins(
    ours: Any,
    theirs: Any,
    inputs: list[np.ndarray],
    tracked: int | None = None,
    call: Callable[..., Any] | None = None,
) -> None:
    """Compare modules or functions: results, gradients of parameters and inputs, and second ones.

    ``call`` is given a module and the inputs, by default as the module is; the first ``tracked``
    of the inputs are differentiated, by default all.
    """
    torch = pytest.importorskip("torch")
    call = call or (lambda module, *xs: module(*xs))
    a, b = [wg.asarray(x) for x in inputs], [torch.tensor(x) for x in inputs]
    for tensor in (*a[:tracked], *b[:tracked]):
        tensor.requires_grad_()
    found = flat(call(ours, *a))
    # PyTorch's other kernels of attention have no second derivative.
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        expected = flat(call(theirs, *b))
    assert len(found) == len(expected)
    for y, z in zip(found, expected, strict=True):
        assert y.dtype == wg.float64
        assert tuple(y.shape) == tuple(z.shape)
        np.testing.assert_allclose(values(y), values(z), rtol=1e-10, atol=1e-14)
    seeds = [RNG.normal(size=tuple(y.shape)) for y in found]
    once = []
    for library, make, ys, xs, module in (
        (wg, wg.asarray, found, a[:tracked], ours),
        (torch, torch.tensor, expected, b[:tracked], theirs),
    ):
        loss = sum((y * make(s) + y * y / 2).sum() for y, s in zip(ys, seeds, strict=True))
        leaves = [*xs, *(module.parameters() if hasattr(module, "parameters") else ())]
        if not leaves:
            return
        gs = library.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
        total = sum((g * g).sum() for g in gs if g is not None)
        twice = library.autograd.grad(total, leaves, allow_unused=True)
        once.append((gs, twice))
    for ours_, theirs_, rtol, atol in zip(*once, (1e-10, 1e-8), (1e-12, 1e-11), strict=True):
        for g, h in zip(ours_, theirs_, strict=True):
            zero = np.zeros(1)
            g, h = (zero if x is None else values(x) for x in (g, h))
            np.testing.assert_allclose(g + 0 * h, h + 0 * g, rtol=rtol, atol=atol)


def flat(results: Any) -> list[Any]:
    """The Tensors of a result."""
    if isinstance(results, tuple | list):
        return [tensor for part in results for tensor in flat(part)]
    return [] if results is None else [results]
