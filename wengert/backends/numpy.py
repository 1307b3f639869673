"""NumPy: the default backend."""

import importlib.util
import math
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from operator import attrgetter, methodcaller
from types import ModuleType
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from wengert.backends.backend import Backend, Kernel, composites, make_namespace
from wengert.backends.dtypes import DType
from wengert.backends.factorised import solve
from wengert.backends.keys import fill, indexed_axes
from wengert.backends.numpy_networks import BITS, blend, keep_where, ones, relu, scalar
from wengert.backends.numpy_networks import KERNELS as NETWORKS
from wengert.backends.numpy_reductions import KERNELS as REDUCTIONS
from wengert.backends.numpy_reductions import LONGEST, roots, small_part, square_sum, sum_over
from wengert.backends.references import has_shared_base
from wengert.backends.special import scipy_special
from wengert.backends.triangular import numpy_triangular, scipy_triangular
from wengert.backends.windows import strided_windows

__all__ = ["BACKEND"]

_HAS_SCIPY = importlib.util.find_spec("scipy") is not None

_reduce_add: Any = np.add.reduce
_reduce_multiply: Any = np.multiply.reduce
_mean: Any = np.mean
_var: Any = np.var

#: Elements up to which a broadcast array is copied: a view takes longer to make, but no memory.
#: And the longest rows for which it is copied in any case.
SMALL, SHORT = 1 << 16, 32
LARGE = 1 << 20  # elements of the largest matrices of ones and zeros that are kept


#: Complex conjugate. The method returns a real array as it is, where ``np.conj`` copies it, and
#: Python numbers have it too.
conj = methodcaller("conjugate")


def real(x: Any) -> Any:
    """Real part; a real array is returned as it is."""
    return np.real(x) if x.dtype.kind == "c" else x


def reciprocal(x: Any, /) -> Any:
    """Reciprocal, also of integers, which ``np.reciprocal`` divides as integers."""
    return np.reciprocal(x) if x.dtype.kind in "fc" else 1 / x


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Sum in half of ``np.sum``'s time; a matrix's rows, as for a bias, by BLAS in a third."""
    if dtype is None and x.size > LONGEST and x.dtype.char in "fd":
        if axis == 0 and not keepdims and x.ndim == 2 and x.size <= SMALL:
            return ones(len(x), x.dtype).dot(x)
        return sum_over(x, axis, keepdims)
    if x.dtype.char == "e" and dtype is None:  # a running sum of ones ends at 2048
        total = _reduce_add(x, axis=axis, dtype=np.float32, keepdims=keepdims)
        return total.astype(x.dtype)
    return _reduce_add(x, axis, dtype, None, keepdims)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Mean as a sum and a division, a third of ``np.mean``'s time on small arrays."""
    # float16 sums overflow, and no elements are a warning: both are NumPy's to handle.
    if not x.size or x.dtype.char == "e":
        return _mean(x, axis=axis, keepdims=keepdims)
    total = sum(x, axis=axis, keepdims=keepdims)
    return total / (x.size // total.size)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Variance in a few calls, where ``np.var`` makes many."""
    if not x.size:
        return _var(x, axis=axis, ddof=correction, keepdims=keepdims)
    center = sum(x, axis=axis, keepdims=True)
    number = x.size // center.size
    if number <= correction:
        return _var(x, axis=axis, ddof=correction, keepdims=keepdims)
    away = x - center / number
    square = away * away if x.dtype.kind != "c" else away.real**2 + away.imag**2
    return sum(square, axis=axis, keepdims=keepdims) / (number - correction)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Deviation, also where the variance overflows or vanishes."""
    center = sum(x, axis=axis, keepdims=True)
    number = x.size // center.size if x.size else 0
    if number <= correction:
        return np.sqrt(_var(x, axis=axis, ddof=correction, keepdims=keepdims))
    away = x - center / number
    axis = (axis,) if isinstance(axis, int) else axis
    total = square_sum(away, axis, keepdims, own=x.ndim > 0)
    return roots(total, x, axis, number - correction, True)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    flags = x if x.dtype.kind == "b" else x != 0
    return _reduce_add(flags, axis=axis, dtype=np.intp, keepdims=keepdims)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    # Along columns first it is eight times as fast, and leaves the range where NumPy's does not.
    return _reduce_multiply(x, axis=axis, dtype=dtype, keepdims=keepdims)


def softplus(x: Any, /) -> Any:
    """``log(1 + exp(x))``; few numbers by one call, complex ones by the composite."""
    if x.dtype.kind == "c":
        return composites["softplus"](BACKEND.namespace, x)
    if x.size <= LONGEST:
        return np.logaddexp(x, scalar(0, x.dtype))
    large = relu(x)
    return np.add(small_part(x.astype(np.float64)), large, large, casting="same_kind")


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones, faster than ``np.ones_like``: every `backward` starts with a scalar one."""
    dtype = x.dtype if dtype is None else np.dtype(dtype)
    return np.ones(x.shape, dtype) if x.shape else scalar(1, dtype).copy()


def matmul(x1: Any, x2: Any, /) -> Any:
    """``np.matmul``, or the method ``dot`` where it is the same: it starts faster."""
    return x1.dot(x2) if x1.ndim == 2 == x2.ndim else np.matmul(x1, x2)


def broadcast_to(x: Any, /, shape: tuple[int, ...]) -> Any:
    """A copy while it is small, for that is faster than ``np.broadcast_to``'s view.

    A larger one is a copy where one number stands for each short row, as in a sum's derivative:
    what reads such a view starts a loop for each row, and takes two to twenty times as long.
    """
    if math.prod(shape) <= SMALL and len(shape) >= x.ndim:
        out = np.empty(shape, x.dtype)
        out[...] = x
        return out
    width = shape[-1] if shape else 0
    if 1 < width <= SHORT and x.shape == (*shape[:-1], 1):
        return x.reshape(-1).repeat(width).reshape(shape)
    return np.broadcast_to(x, shape)


def reshape(x: Any, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Any:
    return x.reshape(shape) if copy is None else np.reshape(x, shape, copy=copy)


def permute_dims(x: Any, /, axes: tuple[int, ...]) -> Any:
    return x.transpose(axes)


def expand_dims(x: Any, /, axis: int) -> Any:
    return (
        x.reshape((*x.shape[:axis], 1, *x.shape[axis:])) if axis >= 0 else np.expand_dims(x, axis)
    )


def astype(x: Any, /, dtype: Any, *, copy: bool = True) -> Any:
    """``x.astype``, of complex numbers to bool without a warning."""
    dtype = np.dtype(dtype)
    return x != 0 if dtype.kind == "b" and x.dtype.kind == "c" else x.astype(dtype, copy=copy)


@lru_cache(maxsize=4)
def _below(rows: int, columns: int, k: int, dtype: Any) -> Any:
    """Ones up to a diagonal, and zeros above, as `numpy.tri` gives them; kept, and only read."""
    return np.tri(rows, columns, k, dtype)


@lru_cache(maxsize=4)
def _above(rows: int, columns: int, k: int, dtype: Any) -> Any:
    return 1 - _below(rows, columns, k - 1, dtype)


def _triangle(function: Kernel, factors: Kernel) -> Kernel:
    """One triangle of matrices, by a product of their bits with ones and zeros that are kept."""

    def kernel(x: Any, /, *, k: int = 0) -> Any:
        bits, shape = BITS.get(x.dtype.char), x.shape[-2:]
        if bits is None or math.prod(shape) > LARGE:
            return function(x, k=k)
        return np.multiply(x.view(bits), factors(*shape, k, bits)).view(x.dtype)

    return kernel


def concat_arrays(*arrays: Any, axis: int) -> Any:
    return np.concatenate(arrays, axis=axis)


def stack_arrays(*arrays: Any, axis: int) -> Any:
    """``np.stack`` without its checks, all of which `np.concatenate` has."""
    if type(arrays[0]) is not np.ndarray:
        return np.stack(arrays, axis=axis)
    key = (*(slice(None),) * axis, None)
    return np.concatenate([x[key] for x in arrays], axis)


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """``np.roll``, along one axis by its two pieces."""
    plain = isinstance(axis, tuple) and len(axis) == 1 and axis[0] >= 0
    if not (plain and x.size and isinstance(shift, tuple)):
        return np.roll(x, shift, axis=axis)
    cut, before = -shift[0] % x.shape[axis[0]], (slice(None),) * axis[0]
    pieces = x[(*before, slice(cut, None))], x[(*before, slice(cut))]
    return np.concatenate(pieces, axis=axis[0])


def flip(x: Any, /, *, axis: Any = None) -> Any:
    if not isinstance(axis, tuple) or min(axis, default=0) < 0:
        return np.flip(x, axis)
    if len(axis) == 1:
        return x[(*(slice(None),) * axis[0], slice(None, None, -1))]
    return x[tuple([slice(None, None, -1 if i in axis else 1) for i in range(x.ndim)])]


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    return x.argmax(axis, keepdims=keepdims)


# -- indexing ------------------------------------------------------------------------------------


def getitem(x: Any, *indices: Any, key: tuple[Any, ...]) -> Any:
    return x[fill(key, indices)]


def setitem(x: Any, value: Any, *indices: Any, key: tuple[Any, ...]) -> Any:
    out = np.array(x)
    out[fill(key, indices)] = value
    return out


def scatter_add(x: Any, *indices: Any, key: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """Assignment where no place can be named twice, and ``np.add.at`` elsewhere.

    On flat indices alone ``np.add.at`` is fast: with NumPy 2.4 faster than ``np.bincount``.
    """
    out = np.zeros(shape, x.dtype)
    if not indices:
        out[key] = x
        return out
    if not out.size:
        return out
    if x.dtype.char == "e":  # a running sum of ones ends at 2048
        return scatter_add(x.astype(np.float32), *indices, key=key, shape=shape).astype(x.dtype)
    key = fill(key, indices)
    if all(map(_is_mask, indices)):
        out[key] = x
        return out
    if len(indices) == len(key) == len(shape) and all(i.dtype.kind == "i" for i in indices):
        np.add.at(out.reshape(-1), flat_places(key, shape).reshape(-1), np.reshape(x, -1))
        return out
    leading = indexed_axes(key, len(shape), _is_mask)
    rows = np.arange(math.prod(shape[:leading])).reshape(shape[:leading])[key]
    width = math.prod(shape[leading:])
    if width != 1:
        rows = np.add.outer(rows * width, np.arange(width))
    np.add.at(out.reshape(-1), rows.reshape(-1), np.reshape(x, -1))
    return out


def flat_places(key: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Indices into the flat array of arrays of indices, which broadcast and may be negative."""
    found: Any = 0
    for index, length in zip(key, shape, strict=True):
        index = index.astype(np.intp, copy=False)
        if index.size and index.min() < 0:
            index = np.where(index < 0, index + length, index)
        found = found * length + index
    return found


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """``np.take_along_axis`` by one index into the flat array, in half of the time and less.

    Of other orders, and with indices that broadcast, are negative or out of bounds, it is NumPy's.
    """
    axis = axis % x.ndim
    before, length, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    alike = indices.shape[:axis] == before and indices.shape[axis + 1 :] == after
    plain = alike and indices.dtype == np.intp and indices.size and x.flags.c_contiguous
    if not plain or indices.view(np.uintp).max() >= length:
        return np.take_along_axis(x, indices, axis)
    width = math.prod(after)
    starts = np.arange(0, x.size, length * width).reshape(before + (1,) * (1 + len(after)))
    if after:
        starts, indices = starts + np.arange(width).reshape(after), indices * width
    return x.reshape(-1).take(indices + starts)


def add_part(total: Any, value: Any, *, key: tuple[Any, ...], own: bool) -> Any:
    """Add a value at a key without arrays: into ``total`` itself where that is the caller's own."""
    if not own or type(total) is not np.ndarray:  # a NumPy scalar has no memory to write into
        total = np.array(total)
    part = total[key]
    if type(part) is np.ndarray:
        part += value
    else:
        total[key] = part + value
    return total


def scatter_extreme(ufunc: Any) -> Kernel:
    """The best of an array's own elements and of the values for their places."""

    def kernel(x: Any, value: Any, rows: Any) -> Any:
        out = x.copy()
        with np.errstate(invalid="ignore"):  # `at` warns of NaN, where the ufunc itself does not
            ufunc.at(out, rows, value)
        return out

    return kernel


def _is_mask(array: Any) -> bool:
    return array.dtype.kind == "b"  # type: ignore[no-any-return]


def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """Elements of ``x1`` where ``condition`` holds, of ``x2`` elsewhere.

    ``np.where`` takes a branch for each element, which costs ten times more where the condition is
    irregular, as in the derivative of a rectifier. Bits are combined without branches.
    """
    if type(x2) is int and x2 == 0 and hasattr(x1, "dtype"):
        return keep_where(x1, condition)
    if type(x1) is int and x1 == 0 and hasattr(x2, "dtype"):
        return keep_where(x2, np.logical_not(condition))
    return blend(condition, x1, x2)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """``np.clip`` in the dtype of ``x``."""
    out = x.clip(min, max) if type(x) is np.ndarray else np.clip(x, min, max)
    return out if out.dtype == x.dtype else out.astype(x.dtype)


def eig(x: Any, /) -> Any:
    """``np.linalg.eig``, complex also where all eigenvalues are real."""
    values, vectors = np.linalg.eig(x)
    dtype = np.result_type(values.dtype, np.complex64)
    return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)


def _of_finite(function: Any) -> Any:
    """NumPy's function of singular values; LAPACK may not end for an infinite matrix."""

    def call(x: Any, /, **options: Any) -> Any:
        # A dot product looks at all elements in half the time, and may overflow of finite ones.
        if not math.isfinite(abs(np.vdot(x, x))) and np.isinf(x).any():
            raise np.linalg.LinAlgError(function.__name__ + " of a matrix with an infinite element")
        return function(x, **options)

    return call


def inverse_or_infinite(x: Any, sign: Any, /) -> Any:
    """``np.linalg.inv``, and infinities where the determinant's sign is 0."""
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        singular = np.equal(sign, 0)[..., None, None]
        regular = np.where(singular, np.eye(x.shape[-1], dtype=x.dtype), x)
        return np.where(singular, x.dtype.type(np.inf), np.linalg.inv(regular))


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    out = np.sort(x, axis=axis, stable=stable)
    return np.flip(out, axis=axis) if descending else out


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """``np.argsort``; descending, of the reversed array, so that ties keep their order."""
    if not descending:
        return np.argsort(x, axis=axis, stable=stable)
    order = np.argsort(np.flip(x, axis=axis), axis=axis, stable=stable)
    return x.shape[axis] - 1 - np.flip(order, axis=axis)


def unique_values(x: Any, /) -> Any:
    """``np.unique``, which sorts: NumPy leaves that out of its function of the standard."""
    return np.unique(x, equal_nan=False)


class NumpyBackend(Backend):
    """NumPy, which follows the standard itself from version 2.1 on."""

    name = "numpy"
    module = "numpy"
    kernels: Mapping[str, Kernel] = {
        **{n: getattr(np, n) for n in ("ceil", "empty", "floor", "full", "ones", "trunc", "zeros")},
        "tensordot": np.tensordot,
        "add_part": add_part,
        "argmax": argmax,
        "argsort": argsort,
        "astype": astype,
        "broadcast_to": broadcast_to,
        "clip": clip,
        "concat_arrays": concat_arrays,
        "conj": conj,
        "count_nonzero": count_nonzero,
        "expand_dims": expand_dims,
        "flip": flip,
        "getitem": getitem,
        "inverse_or_infinite": inverse_or_infinite,
        "linalg.eig": eig,
        "linalg.pinv": _of_finite(np.linalg.pinv),
        "linalg.solve": solve,
        "linalg.solve_triangular": scipy_triangular if _HAS_SCIPY else numpy_triangular,
        "linalg.svd": _of_finite(np.linalg.svd),
        "linalg.svdvals": _of_finite(np.linalg.svdvals),
        "matmul": matmul,
        "matrix_transpose": attrgetter("mT"),
        "mean": mean,
        "ones_like": ones_like,
        "permute_dims": permute_dims,
        "prod": prod,
        "real": real,
        "reciprocal": reciprocal,
        "reshape": reshape,
        "roll": roll,
        "scatter_add": scatter_add,
        "scatter_max": scatter_extreme(np.maximum),
        "scatter_min": scatter_extreme(np.minimum),
        "setitem": setitem,
        "sign": np.sign,
        "sliding_windows": strided_windows(as_strided, writeable=False),
        "softplus": softplus,
        "sort": sort,
        "std": std,
        "stack_arrays": stack_arrays,
        "sum": sum,
        "take": np.ndarray.take,
        "take_along_axis": take_along_axis,
        "tril": _triangle(np.tril, _below),
        "triu": _triangle(np.triu, _above),
        "unique_values": unique_values,
        "var": var,
        "where": where,
        **NETWORKS,
        **REDUCTIONS,
        **(scipy_special() if _HAS_SCIPY else {}),
    }

    @cached_property
    def namespace(self) -> ModuleType:
        xp = make_namespace(self)
        for module in (xp, xp.linalg, xp.fft):  # nothing is missing, and Python is faster without
            del vars(module)["__getattr__"]
        return xp

    def adopt(self, array: Any) -> Any:
        """In the machine's byte order, and of NumPy's own class."""
        kind, dtype = type(array), array.dtype
        if kind is not np.ndarray and issubclass(kind, np.ndarray):
            array = np.asarray(array)
        # An array that is traced records this.
        return array if dtype.isnative else array.astype(dtype.newbyteorder("="))

    def public(self, module: Any) -> dict[str, Any]:
        # NumPy imports dozens of modules, such as f2py and testing, when it is asked for them.
        return {name: x for name, x in vars(module).items() if name[0] != "_"}

    def raw_dtype(self, dtype: DType) -> Any:
        return np.dtype(super().raw_dtype(dtype))

    def device(self, array: Any) -> Any:
        return "cpu"

    def beside(self, array: Any, *, alike: bool = False) -> Any:
        return "cpu"  # at once: rules ask in each sweep

    def to_device(self, array: Any, device: Any) -> Any:
        return array

    def array(self, value: Any) -> Any:
        return np.asarray(value)

    def is_view(self, array: Any) -> bool:
        # A view of an array that nothing else holds is as good as an array of its own. Broadcast
        # views are read-only.
        if array.base is None:
            return False
        return not array.flags.writeable or has_shared_base(array)


BACKEND = NumpyBackend()
