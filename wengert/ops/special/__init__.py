"""Special functions, beside the standard: SciPy's names and signatures where SciPy has them.

Those of networks are also in `wengert` itself. The others are imported when they are first asked
for, which keeps ``import wengert`` short.
"""

# ruff: noqa: F403 -- each file says in its __all__ what it gives

import importlib
from typing import TYPE_CHECKING, Any

from wengert.ops.special import everyday
from wengert.ops.special.everyday import *

if TYPE_CHECKING:
    from wengert.ops.special.bessel import *
    from wengert.ops.special.cardinal import *
    from wengert.ops.special.entropy import *
    from wengert.ops.special.gammas import *
    from wengert.ops.special.normal import *
    from wengert.ops.special.polygammas import *

#: The files that are imported late, and the names that each gives.
_HOMES = {
    "bessel": ("i0", "i0e", "i1", "i1e"),
    "cardinal": ("sinc",),
    "entropy": ("entr", "kl_div", "rel_entr", "xlog1py"),
    "gammas": ("beta", "betaln", "digamma", "gamma", "gammaln", "gammasgn", "multigammaln", "psi"),
    "normal": ("erfcinv", "erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri"),
    "polygammas": ("polygamma", "zeta"),
    "tails": (),
}
__all__ = [name for names in _HOMES.values() for name in names]
__all__ += everyday.__all__


if not TYPE_CHECKING:  # a name that is wrong is an error to type checkers

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # Rules call functions of other files (digamma's calls polygamma), so all are imported.
        for home in _HOMES:
            module = importlib.import_module(f"{__name__}.{home}")
            globals().update({found: getattr(module, found) for found in module.__all__})
        return globals()[name]

    def __dir__() -> list[str]:
        return __all__
