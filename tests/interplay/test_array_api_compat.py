"""The helpers by which libraries find out what an array is."""

import array_api_compat as compat
import numpy as np
import pytest

import wengert as wg


def test_helpers(backend):
    x = wg.ones((2, 3), requires_grad=True)
    assert compat.is_array_api_obj(x)
    assert compat.array_namespace(x, wg.ones(3, dtype=wg.int8)) is x.__array_namespace__()
    assert compat.array_namespace(x, 1.0, None, x * 2) is x.__array_namespace__()
    assert compat.device(x) == x.device
    assert compat.size(x) == 6
    moved = compat.to_device(x, x.device)
    assert moved is x
    assert compat.is_writeable_array(x)
    for name in ("numpy", "cupy", "torch", "jax", "dask", "pydata_sparse"):
        assert not getattr(compat, f"is_{name}_array")(x)
        assert not getattr(compat, f"is_{name}_namespace")(wg)


def test_what_a_tensor_is_does_not_change_it(backend):
    x = wg.ones(3, requires_grad=True)
    compat.is_lazy_array(x)
    assert x.is_leaf
    assert x.grad is None


def test_an_array_of_another_library_beside_a_tensor_is_refused():
    """By the helper that SciPy asks, so that no library's function gets both."""
    with pytest.raises(TypeError, match="Multiple namespaces"):
        compat.array_namespace(wg.ones(2), np.ones(2))
