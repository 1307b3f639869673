"""What compiled programs call in place of a backend's fast kernels.

A kernel such as NumPy's cross entropy is one call with temporaries of its own. A program does
better with the calls inside it, which it can give buffers of its own.
"""

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["LOWERINGS"]

#: By backend and by the function's name: a function of the tracing namespace and of what the kernel
#: takes. It returns NotImplemented where the kernel itself should be called.
LOWERINGS: dict[str, Mapping[str, Callable[..., Any]]] = {}
