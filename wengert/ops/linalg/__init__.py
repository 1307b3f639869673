"""The standard's extension ``linalg``: its functions, with their derivatives.

Derivatives of decompositions follow PyTorch, also where they are not unique or do not exist; the
page "Linear algebra" of the documentation says how.
"""

# ruff: noqa: F403 -- each file says in its __all__ what it gives

import sys

from wengert.interpreters.namespaces import differentiable
from wengert.ops import linear_algebra
from wengert.ops.hints import list_public
from wengert.ops.linalg import (
    determinants,
    factorisations,
    norms,
    products,
    singular_values,
    solving,
    spectral,
)
from wengert.ops.linalg.determinants import *
from wengert.ops.linalg.factorisations import *
from wengert.ops.linalg.norms import *
from wengert.ops.linalg.products import *
from wengert.ops.linalg.singular_values import *
from wengert.ops.linalg.solving import *
from wengert.ops.linalg.spectral import *
from wengert.ops.linear_algebra import *

__all__: list[str] = []
__all__ += determinants.__all__
__all__ += factorisations.__all__
__all__ += norms.__all__
__all__ += products.__all__
__all__ += singular_values.__all__
__all__ += solving.__all__
__all__ += spectral.__all__
__all__ += linear_algebra.__all__

list_public(__name__, "wengert.linalg")


# Rules find it as xp.linalg, as they find a library's on raw arrays.
vars(differentiable)["linalg"] = sys.modules[__name__]
