"""Tensors without PyTorch's and NumPy's meanings again, which importing their rooms gives them."""

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import wengert as wg
from wengert.nn.state import State
from wengert.ops.operators import GIVEN
from wengert.tape import aliases

_STATE_DICT = State.state_dict
_CORE = dict(vars(wg.Tensor))


def restore() -> None:
    """Give all Tensors the core's methods and attributes."""
    aliases.lost_writes_raise = False
    State.state_dict = _STATE_DICT  # type: ignore[method-assign]
    if not GIVEN:
        return
    GIVEN.clear()
    wg.set_default_dtype(wg.float32)
    for name in vars(wg.Tensor).keys() - _CORE.keys():
        delattr(wg.Tensor, name)
    for name, attribute in _CORE.items():
        if vars(wg.Tensor).get(name) is not attribute:
            setattr(wg.Tensor, name, attribute)


def meanings_of(name: str) -> tuple[Any, Any]:
    """The fixtures of a room, in whose tests alone Tensors have its meanings."""

    @pytest.fixture(scope="module")
    def room() -> Any:
        return import_module(name)

    @pytest.fixture(autouse=True)
    def meanings(room: Any) -> Iterator[None]:
        sys.modules[f"{name}.tensor"].install()  # the import may have been another module's
        yield
        restore()

    return room, meanings
