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


def ranked(x: wg.Tensor) -> wg.Tensor:
    return stats.rankdata(x)


def propagated(x: wg.Tensor) -> wg.Tensor:
    return linalg.expm(x[:, None] * x)


for function, operation, source in (
    (smoothed, "np.asarray", "return signal.medfilt(x)"),
    (ranked, "argsort", "return stats.rankdata(x)"),
    (propagated, "np.asarray", "return linalg.expm(x[:, None] * x)"),
):
    with pytest.raises(GraphBreakError) as caught:
        assert_differentiable(function, X)
    first = caught.value.errors[0]
    assert first.operation == operation, first
    assert first.source.strip() == source, first
    assert first.filename == __file__, first
    assert first.function == function.__name__, first
    assert first.through is not None, first
    assert first.through.startswith("scipy."), first
    print("broken")
