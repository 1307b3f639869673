"""The standard's extension ``linalg``: its functions, with their derivatives.

Derivatives of decompositions follow PyTorch, also where they are not unique or do not exist; the
page "Linear algebra" of the documentation says how.
"""

import sys

from wengert.interpreters.differentiable import differentiable
from wengert.ops.linalg.determinants import SlogdetResult, det, slogdet
from wengert.ops.linalg.factorisations import QRResult, cholesky, qr
from wengert.ops.linalg.norms import matrix_norm, matrix_rank, vector_norm
from wengert.ops.linalg.products import cross, diagonal, matrix_power, outer, trace
from wengert.ops.linalg.singular_values import SVDResult, svd, svdvals
from wengert.ops.linalg.solving import inv, pinv, solve
from wengert.ops.linalg.spectral import EighResult, EigResult, eig, eigh, eigvals, eigvalsh
from wengert.ops.linear_algebra import matmul, matrix_transpose, tensordot, vecdot

__all__ = [
    "EigResult",
    "EighResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def __dir__() -> list[str]:
    return __all__


# Rules find it as xp.linalg, as they find a library's on raw arrays.
vars(differentiable)["linalg"] = sys.modules[__name__]
