"""Namespaces that rules run against, for all but libraries' own; and the one of Tensors.

Rules that run on Tensors are recorded: the differentiable interpreter.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from types import ModuleType
from typing import Any

from wengert.backends import EXTENSIONS, Selection, dtype_of, namespaces
from wengert.tape.node import Node, Output
from wengert.tape.primitive import PRIMITIVES
from wengert.tape.record import RESULT
from wengert.tape.tensor import Tensor, with_node


def namespace(
    name: str,
    find: Callable[[str], Any],
    extensions: Iterable[str] = EXTENSIONS,
    **known: Any,
) -> ModuleType:
    """A namespace whose names are looked up at their first use, and cached.

    ``find(name)`` looks a name up; names of an extension are prefixed by its name and a dot.
    ``known`` are attributes of the module such as ``records`` and ``device``.
    """
    module = ModuleType(name)

    def get(short: str) -> Any:
        if short[:2] == "__":
            raise AttributeError(short)
        found = find(short)
        setattr(module, short, found)
        return found

    vars(module).update(known, __getattr__=get)
    for extension in extensions:

        def find_in(short: str, extension: str = extension) -> Any:
            return find(f"{extension}.{short}")

        setattr(module, extension, namespace(f"{name}.{extension}", find_in, ()))
    return module


# -- the namespace of Tensors --------------------------------------------------------------------

#: The modules of rarely used functions, which are imported at their first use; filled by
#: `wengert.ops.late`.
HOMES: dict[str, str] = {}


def restore(saved: tuple[Any, ...], node: Node) -> tuple[Any, ...]:
    """Rebuild as Tensors the raw arrays that a node saved, each with the node of its value."""
    origins = node.plan.origins
    return tuple(_tensor(value, node, origin) for value, origin in zip(saved, origins, strict=True))


def _tensor(value: Any, node: Node, origin: Any) -> Any:
    if origin == RESULT and type(value) is tuple:
        return tuple(
            with_node(v, Output(node, i) if dtype_of(v.dtype).inexact else None)
            for i, v in enumerate(value)
        )
    if origin is None or not hasattr(value, "dtype"):
        if isinstance(origin, range):
            return tuple(_tensor(v, node, i) for v, i in zip(value, origin, strict=True))
        return value
    return with_node(value, node if origin == RESULT else node.parents[origin])


def device(x: Tensor) -> Selection:
    """The backend and device for arrays that a rule creates beside a Tensor."""
    backend = x.backend
    return Selection(backend, backend.beside(x._array), "it is another array's")


def _find(name: str) -> Any:
    """Names that `wengert.ops` has not put here: rarely used functions, and primitives."""
    if name in HOMES:
        return getattr(import_module(HOMES[name]), name)
    try:
        return PRIMITIVES[name].bind
    except KeyError:
        raise AttributeError(f"there is no function and no primitive {name!r}") from None


#: The functions of `wengert.ops` on Tensors: the ``xp`` of rules with ``create_graph=True``, and
#: of a ``grad_fn`` that is called by hand. `wengert.ops` fills it.
differentiable = namespace(
    f"{__name__}.namespace",
    _find,
    (),
    device=device,
    restore=restore,
    records=True,
    elsewhere=False,
)
namespaces[Tensor] = differentiable
