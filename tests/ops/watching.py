"""Watching the calls of primitives' kernels."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, NamedTuple

import pytest

from wengert.backends import namespaces
from wengert.tape.primitive import PRIMITIVES, Primitive, _Kernels

__all__ = ["Call", "watched"]


class Call(NamedTuple):
    """A primitive's kernel was called: on raw arrays."""

    primitive: Primitive
    inputs: tuple[Any, ...]
    parameters: dict[str, Any]
    out: Any

    @property
    def results(self) -> tuple[Any, ...]:
        return self.out if self.primitive.several else (self.out,)


@contextmanager
def watched(see: Callable[[Call], None]) -> Iterator[None]:
    """Show every call of a primitive's kernel to ``see``."""

    def watching(self: Any, kind: type) -> Any:
        kernel = attrgetter(self.name)(namespaces[kind])

        def run(*inputs: Any, **parameters: Any) -> Any:
            out = kernel(*inputs, **parameters)
            out = tuple(out) if PRIMITIVES[self.name].several else out
            see(Call(PRIMITIVES[self.name], inputs, parameters, out))
            return out

        self[kind] = run
        return run

    before = {name: dict(primitive.kernels) for name, primitive in PRIMITIVES.items()}
    for primitive in PRIMITIVES.values():
        primitive.kernels.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Kernels, "__missing__", watching)
        try:
            yield
        finally:
            for name, primitive in PRIMITIVES.items():
                primitive.kernels.clear()
                primitive.kernels.update(before.get(name, {}))
