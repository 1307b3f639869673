"""Universal functions: the installed CuPy's tables of loops and its choice of one, on NumPy."""

import re
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
import scipy.special

from tests.simulated_cupy.arrays import ndarray
from tests.simulated_cupy.counters import launched
from tests.simulated_cupy.devices import check_resides

VERSION = int(cupy.__version__.split(".")[0])
SCALARS = (bool, int, float, complex, np.generic)

#: Of CuPy's functions whose names are not NumPy's or SciPy's; the names without their prefix.
OWN: dict[str, Callable[..., Any]] = {
    "angle_deg": lambda x: np.angle(x, deg=True),
    "copy": lambda x: x,
    "is_close": lambda a, b, rtol, atol: np.isclose(a, b, rtol, atol),
    "is_close_complex": lambda a, b, rtol, atol: np.isclose(a, b, rtol, atol),
    "is_close_equal_nan": lambda a, b, rtol, atol: np.isclose(a, b, rtol, atol, equal_nan=True),
    "nan_to_num_": lambda x, nan, pos, neg: np.nan_to_num(x, True, nan, pos, neg),
    "round": lambda x, decimals: np.round(x, int(decimals)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "where": np.where,
    "conj": np.conjugate,
    "logsumexp": scipy.special.logsumexp,
}
#: Of those whose kernels also read the index of an element.
INDEXED: dict[str, Callable[..., Any]] = {
    "arange": lambda index, start, step: start + index * step,
    "linspace": lambda index, start, step, *parts: (
        start + index * (step / parts[0] if parts else step)
    ),
}


def _host_function(name: str) -> Callable[..., Any] | None:
    for own in (OWN, INDEXED):
        if name in own:
            return own[name]
    return getattr(np, name, None) or getattr(scipy.special, name, None)


class ufunc:
    """``cupy.ufunc``: made from one of the installed CuPy's."""

    def __init__(self, real: Any) -> None:
        self.name = self.__name__ = real.name
        self.nin, self.nout, self.nargs = real.nin, real.nout, real.nargs
        self.types = list(real.types)
        self.__doc__ = real.__doc__
        self._casting = real._default_casting
        self._short = re.sub("^(cupyx_scipy_special_|cupyx_scipy_|cupyx_|cupy_)", "", real.name)
        self._function = _host_function(self._short)
        self._preamble = real._preamble
        self._ops, self._out_ops = real._ops, real._out_ops or real._ops

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        where = kwargs.pop("_where", None)
        dtype = kwargs.pop("dtype", None)
        casting = kwargs.pop("casting", self._casting)
        if kwargs:
            raise TypeError(f"Wrong arguments {kwargs}")
        if not self.nin <= len(args) <= self.nargs:
            raise TypeError(
                f"Wrong number of arguments for {self.name!r}. It must be either {self.nin} or "
                f"{self.nargs} (with outputs), but given {len(args)}."
            )
        given, outs = list(args[: self.nin]), list(args[self.nin :])
        if out is not None:
            if outs:
                raise ValueError("Cannot specify 'out' as both a positional and keyword argument")
            outs = list(out) if isinstance(out, tuple) else [out]
        outs += [None] * (self.nout - len(outs))
        for x in (*given, where, *outs):
            self._check(x)
        ins, results = self._loop(given, None if dtype is None else np.dtype(dtype))
        arrays = [x for x in (*given, where, *outs) if isinstance(x, ndarray)]
        shape = np.broadcast_shapes(*[x.shape for x in arrays])
        outs = [
            self._out(o, shape, result, casting) for o, result in zip(outs, results, strict=True)
        ]
        if 0 not in shape:
            launched(self.name)
            self._compute(given, ins, results, outs, where)
        return outs[0] if self.nout == 1 else tuple(outs)

    def _check(self, x: Any) -> None:
        if isinstance(x, ndarray):
            check_resides(self.name, x.data.device_id)
        elif x is not None and not isinstance(x, SCALARS):
            raise TypeError(f"Unsupported type {type(x)}")
        elif type(x) is int and not -(2**63) <= x < 2**64:
            raise OverflowError("Python int too large to convert to C long")

    def _loop(self, given: list[Any], dtype: Any) -> tuple[Any, Any]:
        """The dtypes of the loop that CuPy's own tables choose."""
        if dtype is not None:
            op = self._out_ops._guess_routine_from_dtype(dtype.type if VERSION < 14 else dtype)
        elif VERSION < 14:
            op = self._ops._guess_routine_from_in_types(types_by_value(given))
        else:
            op = self._ops._guess_routine_from_in_types(*types_and_weak_ones(given))
        if op is None:
            kinds = tuple(_dtype(x).type for x in given)
            raise TypeError(f"Wrong type ({dtype or kinds}) of arguments for {self.name}")
        if op.error_func is not None:
            op.error_func()
        return tuple(map(np.dtype, op.in_types)), tuple(map(np.dtype, op.out_types))

    def _out(self, out: Any, shape: tuple[int, ...], dtype: Any, casting: str) -> Any:
        if out is None:
            return ndarray(shape, dtype)
        check_out(out, shape)
        if not np.can_cast(dtype, out.dtype, casting):
            raise TypeError(
                f"output (typecode '{dtype.char}') could not be coerced to provided output "
                f"parameter (typecode '{out.dtype.char}') according to the casting rule "
                f'"{casting}"'
            )
        return out

    def _compute(self, given: Any, ins: Any, results: Any, outs: Any, where: Any) -> None:
        if self._function is None:
            raise NotImplementedError(f"the simulation has no {self.name}")
        host = []
        if self._short in INDEXED:
            out = outs[0]
            host.append(np.arange(out.size).reshape(out.shape).astype(out.dtype))
        for x, kind in zip(given, ins, strict=True):
            inexact = results[0].kind in "fc" and kind.kind in "fc"
            wide = np.result_type(kind, results[0]) if inexact else kind
            value = x._host if isinstance(x, ndarray) else np.asarray(x)
            host.append(_cast(value, wide))
        with np.errstate(all="ignore"):
            values = self._function(*host)
            for out, value in zip(outs, values if self.nout > 1 else (values,), strict=True):
                mask = (
                    True if where is None else _cast(getattr(where, "_host", where), np.dtype(bool))
                )
                np.copyto(out._host, _cast(np.asarray(value), out.dtype), "unsafe", where=mask)

    def at(self, a: Any, indices: Any, b: Any = None) -> None:
        from tests.simulated_cupy.keys import add_at

        if self.name != "cupy_add":
            raise NotImplementedError(f"the simulation has no {self.name}.at")
        add_at(a, indices, b)


ufunc.__module__ = "cupy._core._kernel"


def check_out(out: Any, shape: tuple[int, ...] | None) -> None:
    """Raise an error for what can't take a result; a raw array has any shape."""
    if not isinstance(out, ndarray):
        raise TypeError("Output arguments type must be cupy.ndarray")
    if shape not in (None, out.shape):
        raise ValueError(f"Out shape is mismatched: {out.shape} for {shape}")


def types_by_value(given: list[Any]) -> tuple[Any, ...]:
    """The types that CuPy 13 looks for: a scalar beside arrays of its kind has its value's."""
    arrays = [_kind(x) for x in given if isinstance(x, ndarray)]
    scalars = [_kind(x) for x in given if not isinstance(x, ndarray)]
    if not arrays or not scalars or max(arrays) < max(scalars):
        return tuple(_dtype(x).type for x in given)
    types: list[Any] = []
    for x in given:
        least = x.dtype if isinstance(x, ndarray) else np.min_scalar_type(x)
        if not isinstance(x, ndarray) and least.kind == "u":
            signed = np.dtype(least.char.lower())
            types.append(least.type if x > np.iinfo(signed).max else (least.type, signed.type))
        else:
            types.append(least.type)
    return tuple(types)


def types_and_weak_ones(given: list[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The types that CuPy 14 looks for, and which are Python's: these are weak, as in NumPy 2."""
    strong = [_kind(x) for x in given if not _is_weak(x)]
    scalars = [_kind(x) for x in given if _is_weak(x)]
    weak = bool(strong and scalars) and max(strong) >= max(scalars)
    weak_ones = tuple(type(x) if weak and _is_weak(x) else False for x in given)
    return tuple(_dtype(x) for x in given), weak_ones


def _dtype(x: Any) -> np.dtype:
    return x.dtype if isinstance(x, ndarray) else np.asarray(x).dtype


def _kind(x: Any) -> int:
    return {"b": 0, "u": 1, "i": 1, "f": 2, "c": 2}[_dtype(x).kind]


def _is_weak(x: Any) -> bool:
    return type(x) in (int, float, complex)


def _cast(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A C cast: integers wrap, and imaginary parts are lost, without a word."""
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real
    with np.errstate(all="ignore"):
        return x.astype(dtype, copy=False)
