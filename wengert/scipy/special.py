"""``scipy.special``: the functions of `wengert.special`, and others by all that has a derivative.

>>> from wengert.scipy import special
>>> a = wg.tensor(2.0, dtype=wg.float64, requires_grad=True)
>>> special.gammainc(a, 1.5).backward()
>>> a.grad
tensor(-0.3135, dtype=wengert.float64)
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import wengert as wg
from wengert.ops import special as _module
from wengert.scipy.elementary import TABLE
from wengert.scipy.naming import inexact, publish, values_of
from wengert.tape.tensor import Tensor

_special: Any = _module
_SAME = (
    "beta betaln digamma entr erf erfc erfcinv erfcx erfinv expit gamma gammaln gammasgn i0 "
    "i0e i1 i1e kl_div log_expit log_ndtr logit ndtr ndtri psi rel_entr softplus xlog1py xlogy"
)


def _ufunc(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """A ufunc of operands of any kind: integers as float64."""
    return lambda *args: function(*inexact(*args))


def _whole(n: Any, x: Any, function: Callable[..., Tensor]) -> Tensor:
    """A function of a whole order: SciPy's cut off the rest, or are NaN."""
    n = np.asarray(values_of(n, "scipy.special's n"))
    if (n % 1 != 0).any():
        raise ValueError(f"this function is of whole orders, and not of {n}")
    return function(n.item(), *inexact(x)) if not n.ndim else function(*inexact(n, x))


def _lambertw(z: Any, k: int = 0, tol: float = 1e-8) -> Tensor:
    """Lambert's function, which is complex."""
    if k != 0:
        raise NotImplementedError("lambertw of Tensors is the branch k=0 alone")
    return TABLE["lambertw"](wg.astype(inexact(z)[0], "complex128"))


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """Logarithm of a sum of exponentials, with factors ``b``."""
    x, *factor = inexact(a) if b is None else inexact(a, b)
    return _special.logsumexp(x, axis, *factor, keepdims=keepdims, return_sign=return_sign)


_UFUNCS = TABLE | {name: getattr(_special, name) for name in _SAME.split()}
for _name in ("j0", "j1", "y0", "y1", "k0", "k1"):
    _UFUNCS[_name] = lambda x, f=TABLE[f"{_name[0]}v"], n=int(_name[1]): f(wg.full_like(x, n), x)
_UFUNCS |= {"expm1": wg.expm1, "jn": TABLE["jv"], "log1p": wg.log1p}
_OWN: dict[str, Any] = {
    "lambertw": _lambertw,
    "log_softmax": lambda x, axis=None: _special.log_softmax(*inexact(x), axis=axis),
    "polygamma": lambda n, x: _whole(n, x, lambda n, x: _special.polygamma(int(n), x)),
    **{f"{kind}n": lambda n, x, kind=kind: _whole(n, x, TABLE[f"{kind}v"]) for kind in "ky"},
    "zeta": lambda x, q=None: _special.zeta(*inexact(x, 1.0 if q is None else q)),
    "multigammaln": lambda a, d: _special.multigammaln(*inexact(a), d),
    "softmax": lambda x, axis=None: _special.softmax(*inexact(x), axis=axis),
}
publish(globals(), {name: _ufunc(one) for name, one in _UFUNCS.items()} | _OWN)
