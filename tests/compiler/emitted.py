"""What an emitted program has to do: the same as the program, on every call, and nothing else."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.compiler.bits import same_bits
from wengert.compiler.emission.emit import Emitted
from wengert.compiler.program import Program

__all__ = ["check_emitted"]


def check_emitted(program: Program, emitted: Emitted, points: Sequence[Sequence[Any]]) -> None:
    """Compare with the interpreted program, to the bit, at one point after the other.

    Inputs must not change, earlier results must not either, and no result may have the memory of an
    input, a constant or another result.
    """
    earlier: list[tuple[Any, Any]] = []
    for point in points:
        expected = [np.array(x) for x in program(*[_copy(x) for x in point])]
        given = [_copy(x) for x in point]
        found = emitted.function(*given)
        for at, (x, value) in enumerate(zip(found, expected, strict=True)):
            assert same_bits(x, value), (at, emitted.source)
        for x, y in zip(point, given, strict=True):
            assert same_bits(x, y), emitted.source
        others = [*given, *program.constants.values(), *[x for x, _ in earlier]]
        for at, x in enumerate(found):
            apart = [y for i, y in enumerate(found) if i != at]
            assert not any(_shared(x, y) for y in (*others, *apart)), (at, emitted.source)
        for x, value in earlier:
            assert same_bits(x, value), emitted.source
        earlier += [(x, np.array(x)) for x in found]


def _copy(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else x


def _shared(x: Any, y: Any) -> bool:
    arrays = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    return arrays and np.may_share_memory(x, y)
