"""PyTorch's device ``meta``: shapes and dtypes without values."""

import copy

import numpy as np
import pytest

import wengert as wg
from wengert.nn import functional as F

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module", autouse=True)
def torch():
    """PyTorch is not imported where these tests are found and not run."""
    return pytest.importorskip("torch")


LOSSES = {
    "cross_entropy": (F.cross_entropy, (8,), "int64"),
    "binary_cross_entropy": (lambda x, t: F.binary_cross_entropy(wg.expit(x), t), (8, 3), None),
    "mse_loss": (F.mse_loss, (8, 3), None),
}


def step(loss, dtype, place):
    """Shapes and dtypes of all that a step of training makes."""
    function, shape, kind = LOSSES[loss]
    with wg.use_backend(place):
        layers = [wg.nn.Linear(5, 7), wg.nn.ReLU(), wg.nn.Dropout(0.5), wg.nn.Linear(7, 3)]
        net = wg.nn.Sequential(*layers).to(dtype=dtype)
        out = net(wg.zeros((8, 5), dtype=dtype))
        value = function(out, wg.zeros(shape, dtype=kind or dtype))
        value.backward()
        wg.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        wg.optim.Adam(net.parameters()).step()
    parameters = [x for p in net.parameters() for x in (p, p.grad)]
    return [(tuple(x.shape), x.dtype) for x in [out, value, *parameters]], parameters


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_step_of_training_is_of_the_same_shapes(loss, dtype):
    found, arrays = step(loss, dtype, "torch:meta")
    assert found == step(loss, dtype, "numpy")[0]
    assert {str(x.device) for x in arrays} == {"meta"}


def test_derivatives_have_shapes():
    with wg.use_backend("torch:meta"):
        x = wg.zeros(3)
        assert wg.jacobian(wg.sin)(x).shape == (3, 3)
        assert wg.hessian(lambda x: wg.sum(wg.sin(x)))(x).shape == (3, 3)
        assert wg.jvp(wg.sin, (x,), (x,))[1].shape == (3,)


def test_what_is_printed_and_copied():
    with wg.use_backend("torch:meta"):
        x = wg.zeros((8, 5))
    assert repr(x) == "tensor(..., device='meta', size=(8, 5), dtype=wengert.float32)"
    assert copy.deepcopy(x).device == x.device
    with wg.use_backend("torch"):
        net = wg.nn.Linear(5, 7)
    assert {str(p.device) for p in net.to("meta").parameters()} == {"meta"}


NEEDS_VALUES = {
    "item": lambda x: x[0, 0].item(),
    "float": lambda x: float(x[0, 0]),
    "bool": lambda x: bool(x[0, 0]),
    "numpy": lambda x: x.numpy(),
    "tolist": lambda x: x.tolist(),
    "NumPy": np.asarray,
    "another device": lambda x: x.to("cpu"),
    "another library": lambda x: x.to_backend("numpy"),
    "compile": lambda x: [*map(wg.compile(wg.sin), [x, x])],  # the second call is compared
    "module": lambda x: wg.nn.Linear(5, 7, device="meta").to("cpu"),
}


def test_what_needs_values_says_so():
    with wg.use_backend("torch:meta"):
        x = wg.zeros((8, 5))
        for read in NEEDS_VALUES.values():
            with pytest.raises(TypeError, match=r"device meta has a shape .* and no values"):
                read(x)
    with wg.use_backend("torch"), pytest.raises(wg.BackendError, match="two devices, meta and cpu"):
        wg.zeros((8, 5), device="meta") + wg.zeros((8, 5))
