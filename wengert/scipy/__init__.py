"""SciPy's names over Wengert's functions, with derivatives.

Calls that hold no Tensor are SciPy's own. Other calls give Tensors with derivatives, or raise an
error that names the function and the argument whose derivative would be lost.

>>> from wengert.scipy import optimize
>>> def root(p):
...     return optimize.brentq(lambda x: x**3 - p, 0.0, 3.0)
>>> round(wg.grad(root)(8.0), 6)
0.083333
"""

import sys
from importlib import import_module
from typing import Any

from wengert.scipy.distances import cdist
from wengert.scipy.naming import Module, scipy_module

#: Modules of this room, and those of which all is SciPy's own.
_FILES = ["integrate", "interpolate", "linalg", "optimize", "signal", "special", "stats"]
_THEIRS = (
    "cluster cluster.hierarchy cluster.vq constants datasets differentiate fft fftpack io "
    "io.arff io.wavfile linalg.blas linalg.interpolative linalg.lapack ndimage odr "
    "optimize.elementwise signal.windows sparse sparse.csgraph sparse.linalg spatial "
    "spatial.distance spatial.transform stats.contingency stats.distributions stats.mstats "
    "stats.qmc stats.sampling"
)

__version__ = scipy_module("").__version__
for _name in _THEIRS.split():
    _one = Module(_name, {"cdist": cdist} if _name == "spatial.distance" else {})
    _home, _, _last = _name.rpartition(".")
    if _home not in _FILES:
        setattr(sys.modules[f"{__name__}.{_home}"] if _home else sys.modules[__name__], _last, _one)


def __getattr__(name: str) -> Any:
    if name in _FILES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_FILES, *(name for name in _THEIRS.split() if "." not in name), "__version__"]
