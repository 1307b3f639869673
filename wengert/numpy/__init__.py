"""NumPy's names and meanings over Wengert's functions.

Constructors give Tensors that can be differentiated and written into. Importing this module gives
NumPy's meanings to the methods of all Tensors in the process, and makes float64 the default dtype.

>>> import wengert.numpy as np
>>> def f(p):
...     out = np.zeros(3)
...     for i in range(3):
...         out[i] = p[i] ** (i + 1)
...     return out.std()
>>> wg.grad(f)(np.array([1.0, 2.0, 3.0])).round(3)
tensor([-0.2770, -0.7650, 12.6570], dtype=wengert.float64)
"""

import sys
from types import ModuleType
from typing import Any

import numpy as np
from numpy import testing

from wengert.numpy import functions, naming, tensor
from wengert.protocols import fft, linalg
from wengert.tape.tensor import Tensor as _Tensor


class _Arrays(type):
    """NumPy's class of arrays, of which Tensors are instances here."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, np.ndarray | _Tensor)

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        return naming.as_tensors(np.ndarray(*args, **keywords))


def _module(theirs: Any, table: dict[str, Any], **own: Any) -> ModuleType:
    """One of NumPy's modules; tests compare, and so lose no derivative."""
    module = ModuleType(f"{__name__}.{theirs.__name__.rpartition('.')[2]}", theirs.__doc__)
    vars(module).update(naming.namespace(theirs, table, theirs is not testing), **own)
    return module


_NAMES: dict[str, Any] = {
    **naming.namespace(np, functions.TABLE),
    **functions.NAMES,
    "fft": _module(np.fft, fft.TABLE),
    "linalg": _module(np.linalg, linalg.TABLE),
    "ndarray": _Arrays("ndarray", (), {"__doc__": "NumPy's arrays, and Tensors."}),
    "random": _module(np.random, {}, shuffle=functions.shuffle),
    "testing": _module(testing, {}),
}
_FORMER = (  # NumPy 1's, which many programs have still
    "Inf=inf NAN=nan NaN=nan alltrue=all complex_=complex128 cumproduct=cumprod float_=float64 "
    "infty=inf product=prod row_stack=vstack sometrue=any trapz=trapezoid"
)
_NAMES.update((word.split("=")[0], _NAMES[word.split("=")[1]]) for word in _FORMER.split())
_NAMES["in1d"] = lambda ar1, *more, **named: _NAMES["isin"](_NAMES["ravel"](ar1), *more, **named)
_NAMES.update({kind.__name__: kind for kind in (bool, complex, float, int, object, str)})
globals().update(_NAMES)
_MODULES = {f"{__name__}.{n}": one for n, one in _NAMES.items() if isinstance(one, ModuleType)}
sys.modules.update(_MODULES | sys.modules)
__version__ = np.__version__
tensor.install()
