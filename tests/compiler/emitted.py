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

    Inputs that are not donated must not change, earlier results must not either, and no result may
    have the memory of an input, a constant or another result.
    """
    earlier: list[tuple[Any, Any]] = []
    for point in points:
        expected = [np.array(x) for x in program(*[_copy(x) for x in point])]
        given = [_copy(x) for x in point]
        found = emitted.function(*given)
        assert len(found) == len(emitted.returned)
        answer = dict(zip(emitted.returned, found, strict=True))
        for at, source in emitted.in_place.items():
            assert at not in answer
            answer[at] = given[source]
        assert sorted(answer) == list(range(len(program.outputs)))
        for at, value in enumerate(expected):
            assert same_bits(answer[at], value), (at, emitted.source)
        for value, x, y in zip(program.inputs, point, given, strict=True):
            if value not in program.donated:
                assert same_bits(x, y), emitted.source
        others = [*given, *program.constants.values(), *[x for x, _ in earlier]]
        for at, x in zip(emitted.returned, found, strict=True):
            apart = [y for i, y in answer.items() if i != at and i in emitted.returned]
            assert not any(_shared(x, y) for y in (*others, *apart)), (at, emitted.source)
        for x, value in earlier:
            assert same_bits(x, value), emitted.source
        earlier += [(x, np.array(x)) for x in found]


def _copy(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else x


def _shared(x: Any, y: Any) -> bool:
    arrays = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    return arrays and np.may_share_memory(x, y)
