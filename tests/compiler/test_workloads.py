"""Programs of layers run as they were recorded, and never eagerly."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.ordinary import alike
from wengert.nn import functional as F

LAYERS = {
    "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "layer_norm of rows": lambda x: F.layer_norm(x, x.shape[2:], wg.ones(x.shape[2:])),
    "group_norm": lambda x: F.group_norm(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "instance_norm": lambda x: F.instance_norm(x),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[2:]),
    "normalize": lambda x: F.normalize(x, dim=2),
    "std": lambda x: wg.std(x, axis=2),
    "vector_norm": lambda x: wg.linalg.vector_norm(x, axis=2),
    "logsumexp": lambda x: wg.logsumexp(x, axis=2),
    "softmax": lambda x: F.softmax(x, dim=2),
}


@pytest.mark.parametrize("length", [4, 300])
def test_programs_of_layers_do_not_fail(length: int) -> None:
    """Of short rows and of long ones, for which kernels go other ways."""
    values = np.random.default_rng(0).normal(size=(3, 4, length)).astype("float32")
    x = wg.asarray(values, requires_grad=True)
    for layer in LAYERS.values():

        def step(x: Any, layer: Any = layer) -> Any:
            y = layer(x)
            return wg.autograd.grad((y * wg.cos(y)).sum(), x)

        alike(lambda step=step: (step, list), [(x,)] * 3)  # type: ignore[misc]
