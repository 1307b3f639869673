"""CuPy's LSTM gives what its composite gives, in two launches a step."""

import itertools
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.nn.test_numpy_recurrent import drawn
from tests.ops.test_numpy_convolutions import laid_out
from tests.simulated_cupy import counting
from wengert import nn
from wengert.backends import get_backend
from wengert.backends.backend import composites
from wengert.nn.kernels.cupy_recurrent import KERNELS

pytestmark = [pytest.mark.simulated, pytest.mark.usefixtures("backend")]
RNG = np.random.default_rng(0)


def _on_device(x: Any) -> Any:
    import cupy

    return x if x is None else cupy.asarray(x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("steps", "batch", "n"), [(1, 3, 2), (4, 0, 3), (4, 1, 1), (3, 2, 5)])
def test_a_kernel_gives_what_its_composite_gives(
    dtype: str, steps: int, batch: int, n: int
) -> None:
    """And its derivative's, with each of the cotangents or without."""
    fine = 50 * float(np.finfo(dtype).eps)
    xp = get_backend("numpy").namespace
    z, *more = drawn("lstm", dtype, steps, batch, n)
    expected = composites["lstm"](xp, z, *more)

    def check(name: str, operands: tuple[Any, ...], wanted: tuple[Any, ...]) -> None:
        for ours, theirs in zip(KERNELS[name](*map(_on_device, operands)), wanted, strict=True):
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
            np.testing.assert_allclose(ours.get(), theirs, rtol=fine, atol=fine)

    for order in ({"": z} | laid_out(z)).values():
        check("lstm", (order, *more), expected)
    for there in itertools.product((True, False), repeat=3):
        cotangents = [RNG.normal(size=y.shape).astype(dtype) for y in expected]
        some = [g if given else None for g, given in zip(cotangents, there, strict=True)]
        operands = (*some, more[0], more[2], *expected)
        check("lstm_cotangents", operands, composites["lstm_cotangents"](xp, *operands))


@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_takes_two_launches_a_step(bias: bool, tmp_path: Path) -> None:
    """Compiled and saved, too, with the gradients of NumPy; second derivatives are exact."""
    layer = nn.LSTM(3, 4, bias=bias, dtype="float64").requires_grad_(False)
    host = RNG.normal(size=(5, 2, 3))

    def slope(x: wg.Tensor) -> wg.Tensor:
        return wg.grad(lambda x: wg.sum(layer(x)[0] ** 2))(x)

    compiled, x = wg.compile(slope), wg.asarray(host)
    for _ in range(3):
        found = compiled(x).numpy()
    with counting() as counts:
        eager = slope(x)
    assert (counts.launches["lstm"], counts.launches["lstm_cotangents"]) == (5, 5)
    assert sum(counts.launches.values()) < 2 * 2 * 5 + 20
    assert not counts.copies
    assert not counts.synchronisations
    np.testing.assert_array_equal(eager.numpy(), found)
    compiled.save(tmp_path / "slope.py")
    saved = runpy.run_path(str(tmp_path / "slope.py"))["slope"]
    np.testing.assert_array_equal(saved(x.array).get(), found)
    with wg.use_backend("numpy"):
        twin = nn.LSTM(3, 4, bias=bias, dtype="float64").requires_grad_(False)
        twin.load_state_dict({k: wg.asarray(v.numpy()) for k, v in layer.state_dict().items()})
        theirs = wg.grad(lambda x: wg.sum(twin(x)[0] ** 2))(wg.asarray(host))
        np.testing.assert_allclose(found, theirs.numpy(), rtol=1e-12)
    few = wg.asarray(host[:2, :1], requires_grad=True)
    wg.testing.gradgradcheck(lambda x: layer(x)[0], few)
