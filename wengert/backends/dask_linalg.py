"""Linear algebra on dask arrays: NumPy's, on chunks that hold whole matrices.

Dask's own is for single matrices, in chunks of certain shapes, and half of it is missing.
"""

import importlib
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import numpy as np

from wengert.backends.backend import Kernel
from wengert.backends.numpy import BACKEND as NUMPY

__all__ = ["KERNELS", "Named"]


class Named:
    """NumPy's kernel of a name, as ``"linalg.inv"``, with keywords; dask compares these alone."""

    def __init__(self, kernel: str, **parameters: Any) -> None:
        self.__name__ = self.kernel = kernel
        self.parameters = parameters

    def __call__(self, *arrays: Any) -> Any:
        return attrgetter(self.kernel)(NUMPY.namespace)(*arrays, **self.parameters)

    def __dask_tokenize__(self) -> Any:
        return __name__, self.kernel, self.parameters


def _apply(
    function: Kernel, signature: str, *arrays: Any, sizes: dict[str, int] | None = None
) -> Any:
    """A function of NumPy's on each stack of whole matrices."""
    dask = importlib.import_module("dask.array")
    if any(0 in x.shape for x in arrays):  # dask would divide by the size of a chunk
        out = function(*(x.compute() for x in arrays))
        several = isinstance(out, tuple)
        return tuple(map(dask.from_array, out)) if several else dask.from_array(np.asarray(out))
    # Dask would find what the results are by a matrix of ones, which is singular.
    probes = [np.eye(*x.shape[-2:]) if x.ndim > 1 else np.ones(x.shape) for x in arrays]
    found = function(*(p.astype(x.dtype) for p, x in zip(probes, arrays, strict=True)))
    several = isinstance(found, tuple)
    metas = [np.empty((0,) * f.ndim, f.dtype) for f in (found if several else [found])]
    return dask.apply_gufunc(
        function,
        signature,
        *arrays,
        meta=tuple(metas) if several else metas[0],
        output_sizes=sizes,
        allow_rechunk=True,
    )


def _whole(name: str, signature: str) -> Kernel:
    kernel = Named(f"linalg.{name}")
    return lambda *arrays: _apply(kernel, signature, *arrays)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    # Dask's gufuncs have the vectors last.
    x1, x2 = np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)
    if 0 in x1.shape or 0 in x2.shape:
        out = importlib.import_module("dask.array").from_array(np.cross(x1.compute(), x2.compute()))
    else:
        out = _apply(np.cross, "(n),(n)->(n)", x1, x2)
    return np.moveaxis(out, -1, axis)


def pinv(x: Any, /, *, rtol: Any) -> Any:
    if isinstance(rtol, float | int):
        return _apply(Named("linalg.pinv", rtol=rtol), "(m,n)->(n,m)", x)
    return _apply(_pinv, "(m,n),(i,j)->(n,m)", x, rtol[..., None, None])


def _pinv(x: Any, rtol: Any) -> Any:
    return NUMPY.namespace.linalg.pinv(x, rtol=rtol[..., 0, 0])


def qr(x: Any, /, *, mode: str = "reduced") -> Any:
    function = Named("linalg.qr", mode=mode)
    if mode == "complete":
        return _apply(function, "(m,n)->(m,m),(m,n)", x)
    return _apply(function, "(m,n)->(m,k),(k,n)", x, sizes={"k": min(x.shape[-2:])})


def solve_triangular(x1: Any, x2: Any, /, *, upper: bool, unitriangular: bool = False) -> Any:
    function = Named("linalg.solve_triangular", upper=upper, unitriangular=unitriangular)
    return _apply(function, "(m,m),(m,k)->(m,k)", x1, x2)


def svd(x: Any, /, *, full_matrices: bool = True) -> Any:
    function = Named("linalg.svd", full_matrices=full_matrices)
    signature = "(m,n)->(m,m),(k),(n,n)" if full_matrices else "(m,n)->(m,k),(k),(k,n)"
    return _apply(function, signature, x, sizes={"k": min(x.shape[-2:])})


def svdvals(x: Any, /) -> Any:
    sizes = {"k": min(x.shape[-2:])}
    return _apply(Named("linalg.svdvals"), "(m,n)->(k)", x, sizes=sizes)


#: NumPy's functions of whole matrices, each with its signature.
WHOLE: Mapping[str, str] = {
    "cholesky": "(m,m)->(m,m)",
    "det": "(m,m)->()",
    "eig": "(m,m)->(m),(m,m)",
    "eigh": "(m,m)->(m),(m,m)",
    "eigvalsh": "(m,m)->(m)",
    "inv": "(m,m)->(m,m)",
    "slogdet": "(m,m)->(),()",
    "solve": "(m,m),(m,k)->(m,k)",
}
KERNELS: Mapping[str, Kernel] = {
    **{f"linalg.{name}": _whole(name, signature) for name, signature in WHOLE.items()},
    **{
        f"linalg.{kernel.__name__}": kernel
        for kernel in (cross, pinv, qr, solve_triangular, svd, svdvals)
    },
}
