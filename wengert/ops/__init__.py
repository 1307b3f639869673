"""The functions of the standard and Wengert's own, each beside its derivative.

One module is one chapter of the standard. The chapters' public functions are gathered here, and
so is the namespace that rules see when derivatives are themselves differentiated.
"""

# ruff: noqa: F403 -- each chapter says in its __all__ what it gives

from importlib import import_module
from typing import Any

from wengert.interpreters.differentiable import LATER, differentiable
from wengert.ops import (
    constants,
    conversion,
    creation,
    data_type,
    elementwise,
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
from wengert.ops.constants import *
from wengert.ops.conversion import *
from wengert.ops.creation import *
from wengert.ops.data_type import *
from wengert.ops.elementwise import *
from wengert.ops.indexing import *
from wengert.ops.inspection import *
from wengert.ops.linear_algebra import *
from wengert.ops.manipulation import *
from wengert.ops.random import *
from wengert.ops.searching import *
from wengert.ops.sorting import *
from wengert.ops.statistical import *
from wengert.ops.utility import *
from wengert.tape.primitive import PRIMITIVES
from wengert.tape.tensor import Tensor

__all__: list[str] = []
__all__ += constants.__all__
__all__ += conversion.__all__
__all__ += creation.__all__
__all__ += data_type.__all__
__all__ += elementwise.__all__
__all__ += indexing.__all__
__all__ += inspection.__all__
__all__ += linear_algebra.__all__
__all__ += manipulation.__all__
__all__ += random.__all__
__all__ += searching.__all__
__all__ += sorting.__all__
__all__ += statistical.__all__
__all__ += utility.__all__


def __getattr__(name: str) -> Any:
    if name in LATER:
        function = globals()[name] = getattr(import_module(LATER[name]), name)
        return function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _primitive(name: str) -> Any:
    """What rules ask the differentiable namespace for beside the public functions."""
    if name in LATER:
        function = getattr(import_module(LATER[name]), name)
        setattr(differentiable, name, function)
        return function
    try:
        return PRIMITIVES[name].bind
    except KeyError:
        raise AttributeError(f"there is no function and no primitive {name!r}") from None


def _conj(x: Any) -> Any:
    """Conjugate in a rule. Rules change nothing in place, so a real Tensor may be its own."""
    return x if isinstance(x, Tensor) and not x.dtype.complex else elementwise.conj(x)


vars(differentiable).update({name: globals()[name] for name in __all__})
vars(differentiable).update(__getattr__=_primitive, conj=_conj)

from wengert.ops import operators as operators  # noqa: E402 -- it attaches what is gathered above
