"""NumPy's recurrent networks give what their composites give, of any size and layout of memory."""

from typing import Any

import numpy as np
import pytest

from tests.ops.test_numpy_convolutions import laid_out
from wengert.backends import get_backend
from wengert.backends.backend import composites
from wengert.nn.functional import recurrent as recurrent  # declares the primitives
from wengert.nn.kernels import numpy_recurrent

KERNELS = numpy_recurrent.KERNELS
RNG = np.random.default_rng(0)


def drawn(name: str, dtype: str, steps: int, batch: int, n: int) -> list[Any]:
    """Arguments of an LSTM or a GRU."""
    gates = 4 if name == "lstm" else 3
    shapes = [(steps, batch, gates * n), (gates * n, n), (batch, n)]
    shapes.append((batch, n) if name == "lstm" else (gates * n,))
    return [RNG.normal(size=shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("name", ["lstm", "gru"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "longdouble"])
@pytest.mark.parametrize("batch", [0, 1, 3])
@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_a_kernel_gives_what_its_composite_gives(name: str, dtype: str, batch: int, n: int) -> None:
    """Also where the distances in memory are those with which NumPy 2.4 negates wrongly."""
    fine = 50 * float(np.finfo(dtype).eps)
    xp = get_backend("numpy").namespace
    for steps in (1, 4):
        z, weight, *more = drawn(name, dtype, steps, batch, n)
        expected = composites[name](xp, z, weight, *more)
        for order in ({"": z} | laid_out(z)).values():
            for turned in ({"": weight} | laid_out(weight)).values():
                for found, theirs in zip(
                    KERNELS[name](order, turned, *more), expected, strict=True
                ):
                    assert (found.shape, found.dtype) == (theirs.shape, theirs.dtype)
                    assert found.flags.c_contiguous
                    np.testing.assert_allclose(found, theirs, rtol=fine, atol=fine)
