"""What CuPy leaves to NVIDIA's libraries: cuSOLVER, cuFFT, cuRAND and cuBLAS's solver."""

import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
import scipy.linalg

from tests.simulated_cupy.arrays import ndarray
from tests.simulated_cupy.counters import launched
from tests.simulated_cupy.devices import check_resides, current

DECOMPOSITIONS = (
    "cholesky", "eig", "eigh", "eigvals", "eigvalsh", "inv", "pinv", "qr", "slogdet", "solve",
    "svd",
)  # fmt: skip
TRANSFORMS = (
    "fft", "fft2", "fftn", "hfft", "ifft", "ifft2", "ifftn", "ihfft", "irfft", "irfft2", "irfftn",
    "rfft", "rfft2", "rfftn",
)  # fmt: skip
#: Which of NumPy's errors CuPy answers with nan: it does not look whether a solver has failed.
_UNCHECKED = ("cholesky", "inv", "solve")


def stub_cublas() -> None:
    """Let modules be imported that import bindings to libraries which are not here."""
    for name in ("cublas", "cusolver", "cusparse"):
        full = f"cupy_backends.cuda.libs.{name}"
        try:
            __import__(full)
        except ImportError:
            stub = types.ModuleType(full)
            stub.__getattr__ = _constant  # type: ignore[method-assign]
            sys.modules[full] = stub
            setattr(sys.modules["cupy_backends.cuda.libs"], name, stub)
            setattr(cupy.cuda, name, stub)


def _complex(function: Callable[..., Any]) -> Callable[..., Any]:
    """Eigenvalues and eigenvectors as cuSOLVER gives them: complex, if there are any."""

    def complex_results(x: np.ndarray) -> Any:
        made = function(x)
        parts = tuple(made) if isinstance(made, tuple) else (made,)
        kind = np.result_type(parts[0].dtype, np.complex64) if x.size else x.dtype
        parts = tuple(part.astype(kind) for part in parts)
        return parts if isinstance(made, tuple) else parts[0]

    return complex_results


#: What is computed otherwise than by NumPy's function of the name.
_HOST: dict[str, Callable[..., Any]] = {
    "eig": _complex(np.linalg.eig),
    "eigvals": _complex(np.linalg.eigvals),
}


def _constant(name: str) -> int:
    """Any name of a library that is not here, such as one of its flags."""
    if name.startswith("__"):
        raise AttributeError(name)
    return 0


def on_host(name: str, real: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with CuPy's signature and checks, computed by NumPy on the elements."""
    signature = inspect.signature(real)

    def called(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arrays = [x for x in bound.arguments.values() if isinstance(x, ndarray)]
        for x in bound.arguments.values():
            if isinstance(x, np.ndarray | list):
                raise TypeError(f"You are trying to use {type(x)} in cupy.{name}")
        for x in arrays:
            check_resides(name, x.data.device_id)
        if name in DECOMPOSITIONS:
            _check_matrices(arrays)
        host = {key: getattr(x, "_host", x) for key, x in bound.arguments.items()}
        host.pop("plan", None)
        launched(name)
        given = [x.dtype for x in arrays]
        with np.errstate(all="ignore"):
            try:
                return _on_device(function(*host.values()))
            except np.linalg.LinAlgError as error:
                if name not in _UNCHECKED or "ingular" not in str(error) + "Singular" * (
                    name == "cholesky"
                ):
                    raise
                shape = arrays[-1].shape
                kind = np.result_type(
                    np.float32 if set(given) <= {np.dtype("f4")} else "f8", *given
                )
                return ndarray.of(np.full(shape, np.nan, kind))

    called.__name__, called.__module__ = real.__name__, real.__module__
    called.__signature__ = signature  # type: ignore[attr-defined]
    called.__doc__ = real.__doc__
    return called


def _check_matrices(arrays: list[ndarray]) -> None:
    for x in arrays:
        if x.dtype.char == "e":
            raise TypeError("array type float16 is unsupported in linalg")


def _on_device(made: Any) -> Any:
    if isinstance(made, np.ndarray | np.generic):
        return ndarray.of(np.array(made))
    if isinstance(made, tuple):  # CuPy's have no names
        return tuple(map(_on_device, made))
    return made


def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = False,
) -> Any:
    """``cupyx.scipy.linalg.solve_triangular``: of one real or complex system of 32 or 64 bits."""
    for x in (a, b):
        if not isinstance(x, ndarray):
            raise TypeError(f"{type(x)} is not a CuPy array")
        check_resides("solve_triangular", x.data.device_id)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError("expected square matrix")
    if len(a) != len(b):
        raise ValueError("incompatible dimensions")
    if a.dtype.char in "fd":
        dtype = np.promote_types(a.dtype.char, "f")
    else:
        dtype = np.promote_types(a.dtype.char, "F" if a.dtype.char in "FD" else "f")
    launched("trsm")
    matrix, right = a._host.astype(dtype), b._host.astype(dtype)
    if not a.size or not b.size:
        return ndarray.of(np.empty(right.shape, dtype))
    with np.errstate(all="ignore"):
        try:
            made = scipy.linalg.solve_triangular(
                matrix, right, trans, lower, unit_diagonal, check_finite=False
            )
        except np.linalg.LinAlgError:  # cuBLAS does not look
            made = np.full(right.shape, np.inf, dtype)
    return ndarray.of(np.asarray(made, dtype))


class Philox4x3210:
    """``cupy.random.Philox4x3210``: NumPy's, whose state is an array of the device."""

    def __init__(self, seed: Any = None, *, size: int = -1) -> None:
        launched("init_curand")
        self._current_device_id = current()
        self._state = ndarray.of(_packed(np.random.Philox(seed)))


def _packed(bits: np.random.Philox) -> np.ndarray:
    state = bits.state
    parts = (
        *state["state"]["counter"], *state["state"]["key"], *state["buffer"],
        state["buffer_pos"], state["has_uint32"], state["uinteger"],
    )  # fmt: skip
    return np.array(parts, np.uint64).view(np.int8)


def _unpacked(packed: np.ndarray) -> np.random.Philox:
    numbers = packed.view(np.uint64)
    bits = np.random.Philox(0)
    bits.state = {
        "bit_generator": "Philox",
        "state": {"counter": numbers[:4], "key": numbers[4:6]},
        "buffer": numbers[6:10],
        "buffer_pos": int(numbers[10]),
        "has_uint32": int(numbers[11]),
        "uinteger": int(numbers[12]),
    }
    return bits


class Generator:
    """``cupy.random.Generator``."""

    def __init__(self, bit_generator: Any) -> None:
        self.bit_generator = bit_generator

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> ndarray:
        if self.bit_generator._current_device_id != current():
            raise RuntimeError("This Generator state is allocated in a different device")
        kind = np.float64 if np.dtype(dtype).char == "d" else np.float32
        bits = _unpacked(self.bit_generator._state._host)
        made = np.asarray(np.random.Generator(bits).random(size, kind))
        self.bit_generator._state._host[...] = _packed(bits)
        if made.size:
            launched("random_uniform")
        if out is None:
            return ndarray.of(made).astype(dtype, copy=False)
        out._host[...] = made
        return out


def replacements() -> list[tuple[Any, Any]]:
    """What stands in the place of which of CuPy's objects."""
    from cupyx.scipy import linalg

    found: list[tuple[Any, Any]] = [
        (linalg.solve_triangular, solve_triangular),
        (cupy.random.Generator, Generator),
        (cupy.random.Philox4x3210, Philox4x3210),
    ]
    for module, names, host in (
        (cupy.linalg, DECOMPOSITIONS, np.linalg),
        (cupy.fft, TRANSFORMS, np.fft),
    ):
        for name in names:
            real = getattr(module, name, None)
            if real is not None:
                computed = _HOST.get(name) or getattr(host, name)
                found.append((real, on_host(name, real, computed)))
    return found
