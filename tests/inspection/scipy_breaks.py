"""SciPy's functions under ``SCIPY_ARRAY_API=1``; `test_assert_differentiable` runs this file."""

import numpy as np
import pytest
from scipy import linalg, signal, special, stats
from scipy.spatial.transform import Rotation

import wengert as wg
from wengert.testing import GraphBreakError, assert_differentiable

X = np.linspace(0.2, 2.0, 12)


def rotated(q: wg.Tensor) -> wg.Tensor:
    """What SciPy's users found broken on PyTorch, whose ``asarray`` leaves the tape."""
    return Rotation.from_quat(q).apply(wg.asarray([1.0, 0.0, 0.0], dtype=wg.float64))


for function, argument in (
    (rotated, np.array([0.1, 0.2, 0.3, 0.9])),
    (special.logsumexp, X),
    (stats.gmean, X),
):
    breaks = assert_differentiable(function, argument)
    assert [one.kind for one in breaks] in ([], ["zero"]), breaks
    print("differentiable")


def smoothed(x: wg.Tensor) -> wg.Tensor:
    return signal.medfilt(x)


def propagated(x: wg.Tensor) -> wg.Tensor:
    return linalg.expm(x[:, None] * x)


for function, operation, source in (
    (smoothed, "array", "return signal.medfilt(x)"),
    (propagated, "array", "return linalg.expm(x[:, None] * x)"),
):
    with pytest.raises(GraphBreakError) as caught:
        assert_differentiable(function, X)
    first = caught.value.breaks[0]
    assert first.operation == operation, first
    assert source in str(first), first
    assert first.filename == __file__, first
    assert first.function == function.__name__, first
    assert first.through.startswith("through scipy."), first
    print("broken")

with pytest.raises(GraphBreakError, match="the result does not depend differentiably on a"):
    assert_differentiable(stats.rankdata, X)
