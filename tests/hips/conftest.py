"""The room, in whose tests alone Tensors have NumPy's meanings, and HIPS/autograd's ``_value``."""

from importlib import import_module
from typing import Any

import pytest

from tests.restoring import meanings_of
from wengert.tape.tensor import Tensor

room, meanings = meanings_of("wengert.numpy")


@pytest.fixture(autouse=True)
def value(meanings: Any) -> None:
    hips = import_module("wengert.hips")
    setattr(Tensor, "_value", property(hips.getval))  # noqa: B010
