"""Values that are shared are not changed: their classes are frozen."""

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from tests.programs import Program
from wengert.compiler.emission.emit import Emitted
from wengert.compiler.program import Program as CompiledProgram
from wengert.inspection.breaks import GraphBreak
from wengert.testing.arguments import Argument, Axis

FROZEN = [GraphBreak, Argument, Axis, Program, CompiledProgram, Emitted]


@pytest.mark.parametrize("cls", FROZEN, ids=lambda cls: cls.__qualname__)
def test_a_field_is_not_set(cls: Any) -> None:
    instance = object.__new__(cls)
    with pytest.raises(FrozenInstanceError):
        setattr(instance, fields(cls)[0].name, None)
