"""The room, in whose tests alone Tensors have NumPy's meanings."""

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from tests.restoring import restore


@pytest.fixture(scope="module")
def room() -> Any:
    return import_module("wengert.numpy")


@pytest.fixture(autouse=True)
def meanings(room: Any) -> Iterator[None]:
    sys.modules["wengert.numpy.tensor"].install()  # the import may have been another module's
    yield
    restore()
