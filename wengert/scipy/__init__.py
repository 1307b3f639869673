"""SciPy's names over Wengert's functions, with derivatives.

Calls that hold no Tensor are SciPy's own. Other calls give Tensors with derivatives, or raise an
error that names the function and the argument whose derivative would be lost.

>>> from wengert.scipy import optimize
>>> def root(p):
...     return optimize.brentq(lambda x: x**3 - p, 0.0, 3.0)
>>> round(wg.grad(root)(8.0), 6)
0.083333
"""

from typing import Any

from wengert.scipy.naming import scipy_module, submodule

__version__ = scipy_module("").__version__


def __getattr__(name: str) -> Any:
    return submodule(__name__, name)


def __dir__() -> list[str]:
    return [name for name in dir(scipy_module("")) if name[0] != "_"]
