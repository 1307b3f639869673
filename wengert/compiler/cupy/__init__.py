"""CuPy's part of the compiler: fused kernels, and the C that they consist of.

`fused` and `Kernel` are all that the rest of the compiler knows of it.
"""

import sys
from importlib import import_module
from typing import Any

from wengert.compiler.program import Program

__all__ = ["Kernel", "fuse"]


class Kernel:
    """A kernel of CuPy's as a function, compiled at its first call; its results are new arrays.

    Attributes
    ----------
    kind : {"ElementwiseKernel", "ReductionKernel"}
        Which of CuPy's classes.
    arguments, keywords : tuple, dict
        Of that class.
    """

    def __init__(self, kind: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.kind, self.arguments, self.keywords = kind, arguments, keywords
        self.__name__: str = arguments[-1]
        self._kernel: Any = None

    def __call__(self, *operands: Any, **parameters: Any) -> Any:
        if self._kernel is None:
            made = getattr(import_module("cupy"), self.kind)
            self._kernel = made(*self.arguments, **self.keywords)
        return self._kernel(*operands, **parameters)


def fuse(program: Program) -> Program:
    """The program with fused CuPy kernels in place of elementwise calls.

    The kernels are for CUDA's compiler, and of CuPy 14. Elsewhere a program keeps its calls.
    """
    cupy = sys.modules.get("cupy")
    if cupy is None or cupy.cuda.runtime.is_hip or int(cupy.__version__.split(".")[0]) < 14:
        return program
    return import_module("wengert.compiler.cupy.kernels").fuse(program)  # type: ignore[no-any-return]
