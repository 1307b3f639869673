"""How initialisers draw numbers and give them to a Tensor."""

from typing import Any

import numpy as np

from wengert.backends import DTYPES, dtype_of, generators, use_backend
from wengert.nn.conversion import convert
from wengert.ops.random import rand
from wengert.tape.grad_mode import recording
from wengert.tape.tensor import IN_PLACE_ON_LEAF, Tensor, check_views


def fill(tensor: Tensor, values: Any) -> Tensor:
    """Give a leaf new values; as in PyTorch, that is not recorded."""
    if not tensor.is_leaf and recording():
        raise RuntimeError(IN_PLACE_ON_LEAF.replace("leaf Variable that", "computed Tensor that"))
    check_views(tensor)
    array = np.broadcast_to(np.asarray(values), tensor.shape)
    tensor._array = convert(array, tensor.backend, tensor.dtype, tensor.device)
    return tensor


def draw(random: Any, tensor: Tensor, generator: Any, *, double: bool = False) -> Any:
    """Random numbers of a Tensor's shape, on the CPU; of double precision if asked for."""
    dtype = dtype_of(tensor._array.dtype)
    if not dtype.inexact:
        raise TypeError(f"only floating and complex Tensors are initialised at random, not {dtype}")
    wide = "complex128" if dtype.complex else "float64"
    wanted, shape = DTYPES[wide if double else dtype.host], tuple(tensor.shape)
    if generator is not None:
        if (known := generators.follower.get()) is not None:
            known.seeded()
        kind = generators.uniform if random is rand else generators.normal
        return kind(generators.as_generator(generator), shape, wanted.name)
    with use_backend("numpy"):
        return random(shape, dtype=wanted).numpy()
