"""What an array library computes in one piece, and Wengert would compose of the standard.

Each function takes its library and gives kernels by name: those that are faster than the composite
and as accurate.
"""

from functools import partial
from typing import Any

from wengert.backends import sigmoids
from wengert.backends.backend import Kernel
from wengert.backends.special import LIBRARY_FUNCTIONS, LibraryFunction, promote_operands

__all__ = ["cupy_kernels", "jax_kernels", "torch_kernels"]


def torch_kernels(torch: Any) -> dict[str, Kernel]:
    """PyTorch's special functions and activations."""
    functional = torch.nn.functional
    power = promote_operands(torch.pow, torch.promote_types, torch.Tensor.to)

    def along(axis: tuple[int, ...], x: Any) -> bool:
        """Whether PyTorch has the softmax of ``x``: of reals, along one axis."""
        return len(axis) == 1 and not x.is_complex()

    def below_top(x: Any, axis: tuple[int, ...]) -> Any:
        if not x.numel():  # which PyTorch has no maximum of
            return x
        return x - torch.amax(x.real if x.is_complex() else x, axis, keepdim=True)

    def softmax(x: Any, *, axis: tuple[int, ...]) -> Any:
        if along(axis, x):
            return torch.softmax(x, axis[0])
        terms = torch.exp(below_top(x, axis))
        return terms / (torch.sum(terms, axis, keepdim=True) if axis else terms)

    def log_softmax(x: Any, *, axis: tuple[int, ...]) -> Any:
        if along(axis, x):
            return torch.log_softmax(x, axis[0])
        low = below_top(x, axis)
        return low - torch.log(torch.sum(torch.exp(low), axis, keepdim=True) if axis else low.exp())

    def of_complex(function: Any, of_real: Kernel) -> Kernel:
        kernel: Kernel = lambda x: function(torch, x) if x.is_complex() else of_real(x)
        LIBRARY_FUNCTIONS[kernel] = LibraryFunction(lambda: of_real, takes_complex=False)
        return kernel

    def pow(x1: Any, x2: Any) -> Any:
        out = power(x1, x2)
        # The complex power of 0 with the exponent 0 is 1, as it is elsewhere, and not nan.
        if out.is_complex() and isinstance(x2, torch.Tensor):
            out = torch.where(x2 == 0, 1, out)
        return out

    return {
        "expit": of_complex(sigmoids.expit, torch.sigmoid),
        "leaky_relu": functional.leaky_relu,
        "log_expit": of_complex(sigmoids.log_expit, functional.logsigmoid),
        "log_softmax": log_softmax,
        "pow": pow,
        "relu": torch.relu,
        "silu": functional.silu,
        "softmax": softmax,
    }


def jax_kernels(jax: Any) -> dict[str, Kernel]:
    """JAX's special functions and activations, compiled in one piece each.

    Its rectifier and softmax bring derivatives of their own, and cost more than they save.
    """
    nn, special = jax.nn, jax.scipy.special

    def of_complex(function: Any, of_real: Kernel) -> Kernel:
        compiled = jax.jit(partial(function, jax.numpy))
        kernel: Kernel = lambda x: (compiled if x.dtype.kind == "c" else of_real)(x)
        LIBRARY_FUNCTIONS[kernel] = LibraryFunction(lambda: of_real, takes_complex=False)
        return kernel

    def axpby(a: Any, x: Any, b: Any, y: Any) -> Any:
        return a * x + b * y

    def add_normalised(p: Any, a: Any, m: Any, v: Any, eps: Any) -> Any:
        return p + a * (m / (jax.numpy.sqrt(v) + eps))

    def add_squares(a: Any, x: Any, b: Any, g: Any) -> Any:
        return a * x + (b * g) ** 2

    return {
        # Each operation is compiled for each shape of a parameter, which takes longer than a step.
        "add_normalised": jax.jit(add_normalised),
        "add_squares": jax.jit(add_squares),
        "axpby": jax.jit(axpby),
        "expit": of_complex(sigmoids.expit, special.expit),
        "leaky_relu": nn.leaky_relu,
        "log_softmax": nn.log_softmax,
        "pow": promote_operands(jax.numpy.pow, jax.numpy.promote_types, jax.numpy.astype),
        "silu": nn.silu,
        "softplus": of_complex(sigmoids.softplus, nn.softplus),
    }


def cupy_kernels(cupy: Any, special: Any) -> dict[str, Kernel]:
    """CuPy's special functions, of `cupyx.scipy.special`: one launch each instead of many.

    They have no loops for complex numbers.
    """

    def with_dtype(function: Kernel, of_complex: Kernel) -> Kernel:
        def kernel(x: Any) -> Any:
            if x.dtype.kind == "c":
                return of_complex(x)
            out = function(x)
            return out.astype(x.dtype) if x.dtype.char == "e" else out

        LIBRARY_FUNCTIONS[kernel] = LibraryFunction(lambda: function, takes_complex=False)
        return kernel

    return {
        "expit": with_dtype(special.expit, partial(sigmoids.expit, cupy)),
        "log_expit": with_dtype(special.log_expit, partial(sigmoids.log_expit, cupy)),
    }
