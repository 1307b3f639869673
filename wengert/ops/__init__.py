"""The functions of the standard and Wengert's own, each beside its derivative.

One module is one chapter of the standard. The chapters' public functions are gathered here, and
so is the namespace that rules see when derivatives are themselves differentiated.
"""

from importlib import import_module
from typing import Any

from wengert.interpreters.namespaces import differentiable
from wengert.ops import (
    constants,
    conversion,
    creation,
    data_type,
    elementwise,
    grids,
    indexing,
    inspection,
    linear_algebra,
    manipulation,
    random,
    searching,
    sorting,
    statistical,
    utility,
)
from wengert.ops.late import LATER
from wengert.tape.tensor import Tensor

_CHAPTERS = (
    *(constants, conversion, creation, data_type, elementwise, grids, indexing, inspection),
    *(linear_algebra, manipulation, random, searching, sorting, statistical, utility),
)
_FOUND = {name: getattr(chapter, name) for chapter in _CHAPTERS for name in chapter.__all__}
globals().update(_FOUND)
__all__ = list(_FOUND)


def __getattr__(name: str) -> Any:
    if name in LATER:
        function = globals()[name] = getattr(import_module(LATER[name]), name)
        return function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _conj(x: Any) -> Any:
    """Conjugate in a rule. Rules change nothing in place, so a real Tensor may be its own."""
    return x if isinstance(x, Tensor) and not x.dtype.complex else elementwise.conj(x)


vars(differentiable).update(_FOUND, conj=_conj)

from wengert.ops import operators as operators  # noqa: E402 -- it attaches what is gathered above
