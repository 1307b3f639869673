"""The array libraries' own special functions, by the names of `wengert.special`.

What a library lacks, or has less accurately, is composed of the standard's functions. Each function
here takes its library and gives kernels.
"""

import importlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from wengert.backends import numpy_special
from wengert.backends.backend import Kernel, importing
from wengert.backends.dtypes import dtype_of

#: What `scipy.special` has. (Its ``beta`` and ``betaln`` lose digits where one number is much
#: larger than the other, and its ``kl_div`` is infinite at subnormal numbers.)
SCIPY = (
    "digamma", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "gamma",
    "gammaln", "gammasgn", "i0", "i0e", "i1", "i1e", "log_ndtr", "ndtr", "ndtri",
    "polygamma", "rel_entr", "zeta",
)  # fmt: skip
#: Which of all these libraries' functions take complex numbers; and which of SciPy's do.
COMPLEX = frozenset({"sinc"})
SCIPY_COMPLEX = COMPLEX | {"erf", "erfc"}


def scipy(name: str) -> Any:
    """A module of SciPy, which is installed, and may be broken."""
    with importing("NumPy's arrays need SciPy here, which cannot be imported ({})"):
        return importlib.import_module(f"scipy.{name}")


class LibraryFunction(NamedTuple):
    """The function, from ``load()``, that a kernel calls once its arguments are checked.

    Half precision is cast to float32 for it.
    """

    load: Callable[[], Kernel]
    takes_complex: bool
    large: Kernel | None = None

    def kernel_for(self, x: Any) -> Kernel:
        """The function, or ``large`` for many numbers of single precision."""
        if self.large and x.dtype.char == "f" and math.prod(x.shape) > numpy_special.BLOCK:
            return self.large
        return self.load()


#: The functions of kernels that add checks and casts alone.
LIBRARY_FUNCTIONS: dict[Kernel, LibraryFunction] = {}


def _checked_kernel(
    name: str,
    function: Callable[[], Kernel],
    cast: Callable[[Any, Any], Any],
    single: Any = "float32",
    analytic: frozenset[str] = COMPLEX,
    large: Kernel | None = None,
) -> Kernel:
    """A library's function that answers in its arguments' dtype, and refuses others by name.

    Where the dtypes are known beforehand, as in a trace, `LIBRARY_FUNCTIONS` has the function.
    """
    found: Kernel | None = None

    def kernel(*arrays: Any, **parameters: Any) -> Any:
        nonlocal found
        if found is None:
            found = function()
        dtype = arrays[0].dtype
        if large is not None and dtype.char == "f" and arrays[0].size > numpy_special.BLOCK:
            return large(*arrays)
        for array in arrays:
            kind = dtype_of(array.dtype)
            if kind.complex and name not in analytic:
                raise TypeError(f"{name} takes real Tensors, not {kind.name}")
            if not kind.inexact:
                raise TypeError(f"{name} takes floating Tensors, not {kind.name}")
            if array.dtype != dtype:
                return found(*arrays, **parameters)
        # Libraries have few of them in half precision.
        wide = [cast(x, single) for x in arrays] if kind.narrow else arrays
        out = found(*wide, **parameters)
        return out if out.dtype == dtype else cast(out, dtype)

    LIBRARY_FUNCTIONS[kernel] = LibraryFunction(function, name in analytic, large)
    return kernel


def promote_operands(function: Kernel, promote: Kernel, cast: Kernel) -> Kernel:
    """A library's function of two arrays, of which one without axes would not widen the other."""

    def kernel(x1: Any, x2: Any) -> Any:
        if hasattr(x1, "dtype") and hasattr(x2, "dtype") and x1.dtype != x2.dtype:
            dtype = promote(x1.dtype, x2.dtype)
            x1, x2 = cast(x1, dtype), cast(x2, dtype)
        return function(x1, x2)

    return kernel


def _astype(out: Any, dtype: Any) -> Any:
    return out.astype(dtype)


def polygamma(x: Any, *, n: int) -> Any:
    """SciPy's polygamma function, which takes the order first."""
    return scipy("special").polygamma(n, x)


def scipy_special() -> dict[str, Kernel]:
    """SciPy's, for NumPy's arrays; it is imported when one of them is first called."""

    def kernel_of(name: str) -> Kernel:
        def function() -> Kernel:
            found: Kernel = getattr(scipy("special"), name)
            return polygamma if name == "polygamma" else found

        large = numpy_special.KERNELS.get(name)
        return _checked_kernel(name, function, _astype, analytic=SCIPY_COMPLEX, large=large)

    return {name: kernel_of(name) for name in SCIPY}


def _polygamma(special: Any, where: Kernel) -> Kernel:
    """The polygamma function of a library's zeta function: with all digits, also far out."""

    def polygamma(x: Any, *, n: int) -> Any:
        if n == 0:
            return special.digamma(x)
        factor = (-1.0) ** (n + 1) * (math.gamma(n + 1) if n < 170 else math.inf)
        # Its zeta function is 0 where the next power is, and nan at infinity; this is exact there.
        return where(x > 1e30, x**-n * (factor / n), special.zeta(n + 1.0, x) * factor)

    return polygamma


def cupy_special(cupy: Any, special: Any) -> dict[str, Kernel]:
    """CuPy's, of `cupyx.scipy.special`: one launch each instead of many."""
    found = {name: getattr(special, name) for name in SCIPY if name != "polygamma"}
    return _check_all(
        found | {"polygamma": _polygamma(special, cupy.where), "sinc": cupy.sinc}, _astype
    )


def torch_special(torch: Any) -> dict[str, Kernel]:
    """PyTorch's, of `torch.special`.

    Its ``ndtr`` has no left tail, and its ``polygamma`` of order 1 has ten digits.
    """
    special = torch.special
    names = [
        "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "gammaln", "i0", "i0e", "i1", "i1e",
        "log_ndtr", "ndtri",
    ]  # fmt: skip
    found = {name: getattr(special, name) for name in names}
    found |= {"polygamma": _polygamma(special, torch.where), "sinc": torch.sinc}
    found["zeta"] = promote_operands(special.zeta, torch.promote_types, torch.Tensor.to)
    return _check_all(found, torch.Tensor.to, torch.float32)


def jax_special(jax: Any) -> dict[str, Kernel]:
    """JAX's, of `jax.scipy.special`, compiled in one piece each.

    Its ``erfcx`` is wrong around 26.6, where erfc is subnormal; its ``betaln`` and ``polygamma``
    are for positive numbers alone; its ``gamma`` and ``kl_div`` lose digits.
    """
    special, numpy = jax.scipy.special, jax.numpy

    def log_ndtr(x: Any) -> Any:
        # Its own takes the logarithm of what is almost 1.
        right = numpy.log1p(special.erfc(x * math.sqrt(0.5)) * -0.5)
        return numpy.where(x > 0, right, special.log_ndtr(numpy.minimum(x, 0)))

    def digamma(x: Any) -> Any:
        return numpy.where(x == 0, numpy.copysign(math.inf, -x), special.digamma(x))

    names = [
        "entr", "erf", "erfc", "erfinv", "gammaln", "gammasgn", "i0", "i0e", "i1", "i1e", "ndtr",
        "ndtri", "rel_entr", "zeta",
    ]  # fmt: skip
    found = {name: getattr(special, name) for name in names}
    found |= {
        "digamma": jax.jit(digamma), "log_ndtr": jax.jit(log_ndtr), "sinc": numpy.sinc
    }  # fmt: skip
    return _check_all(found, _astype)


def _check_all(
    functions: dict[str, Kernel], cast: Callable[[Any, Any], Any], single: Any = "float32"
) -> dict[str, Kernel]:
    def with_dtype(name: str, function: Kernel) -> Kernel:
        return _checked_kernel(name, lambda: function, cast, single)

    return {name: with_dtype(name, function) for name, function in functions.items()}
