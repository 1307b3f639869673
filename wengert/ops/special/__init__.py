"""Special functions, beside the standard: SciPy's names and signatures where SciPy has them.

Those of networks are also in `wengert` itself. The others are imported when they are first asked
for, which keeps ``import wengert`` short; type checkers read ``wengert/special.pyi``.
"""

# ruff: noqa: F403 -- each file says in its __all__ what it gives

import importlib
from typing import TYPE_CHECKING, Any

from wengert.ops.special import everyday
from wengert.ops.special.everyday import *

if TYPE_CHECKING:  # what Wengert's own files use; special.pyi has all
    from wengert.ops.special.bessel import *
    from wengert.ops.special.cardinal import *

#: The files that are imported late.
_LATE = ("bessel", "cardinal", "entropy", "gammas", "normal", "polygammas", "tails")

if not TYPE_CHECKING:  # a name that is wrong is an error to type checkers

    def __getattr__(name: str) -> Any:
        if name == "__all__" or not name.startswith("_"):
            # Rules call functions of other files (digamma's calls polygamma), so all are imported.
            listed = [*everyday.__all__]
            for late in _LATE:
                module = importlib.import_module(f"{__name__}.{late}")
                listed += module.__all__
                globals().update({found: getattr(module, found) for found in module.__all__})
            globals()["__all__"] = listed
            if name in globals():
                return globals()[name]
        else:
            listed = []
        hints = importlib.import_module("wengert.ops.hints")
        raise hints.no_attribute("wengert.special", name, listed)

    def __dir__() -> list[str]:
        return __getattr__("__all__")
