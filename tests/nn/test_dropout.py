"""Dropout of elements and of channels."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.nn.twins import values
from wengert import nn
from wengert.nn import functional as F


def test_dropout(backend: Any) -> None:
    wg.manual_seed(0)
    x = wg.ones(200, 100).requires_grad_()
    y = nn.Dropout(0.3)(x)
    v = values(y)
    kept = v != 0
    np.testing.assert_allclose(v[kept], 1 / 0.7, rtol=1e-6)
    # The share of zeros has a deviation of sqrt(0.21 / 20000) = 0.0032.
    assert abs(kept.mean() - 0.7) < 0.015
    assert abs(np.corrcoef(kept[1:].ravel(), kept[:-1].ravel())[0, 1]) < 0.05
    y.sum().backward()
    np.testing.assert_array_equal(values(x.grad), v)
    assert (values(nn.Dropout(0.3)(x)) != v).any()


def test_dropout_is_off_in_evaluation_and_at_its_ends(backend: Any) -> None:
    x = wg.ones(5)
    layer = nn.Dropout(0.9)
    for same in (layer.eval()(x), F.dropout(x, 0.9, training=False), F.dropout(x, 0.0)):
        assert same is not x
        np.testing.assert_array_equal(values(same), values(x))
    assert not values(F.dropout(x, 1.0)).any()
    for p in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="between 0 and 1"):
            nn.Dropout(p)
        with pytest.raises(ValueError, match="between 0 and 1"):
            F.dropout(x, p)


def test_channels_are_dropped_whole(backend: Any) -> None:
    wg.manual_seed(1)
    layer, shape = nn.Dropout2d(0.3), (40, 50, 2, 3)
    x = wg.ones(shape).requires_grad_()
    y = layer(x)
    found = y.detach().numpy().reshape(2000, -1)
    assert (found == found[:, :1]).all()
    np.testing.assert_allclose(found[found != 0], 1 / 0.7, rtol=1e-6)
    assert abs((found[:, 0] == 0).mean() - 0.3) < 5 * (0.21 / 2000) ** 0.5
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy().reshape(2000, -1), found)
    assert len(np.unique(layer(wg.ones(shape[1:])).numpy().reshape(shape[1], -1).sum(1))) == 2
    assert layer.eval()(x).detach().numpy().all()
    with pytest.raises(ValueError, match="takes an input"):
        layer(wg.ones((2,)))
