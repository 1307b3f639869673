"""The room, in whose tests alone Tensors have PyTorch's meanings."""

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import wengert as wg
from wengert.ops.operators import FOREIGN


@pytest.fixture(scope="module")
def room() -> Iterator[Any]:
    before, foreign = dict(vars(wg.Tensor)), set(FOREIGN)
    found = import_module("wengert.torch")
    sys.modules["wengert.torch.tensor"].install()  # the import may have been another module's
    yield found
    for name in vars(wg.Tensor).keys() - before.keys():
        delattr(wg.Tensor, name)
    for name, attribute in before.items():
        if vars(wg.Tensor).get(name) is not attribute:
            setattr(wg.Tensor, name, attribute)
    FOREIGN.clear()
    FOREIGN.update(foreign)
