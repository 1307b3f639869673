"""Methods that NumPy's arrays or PyTorch's tensors have, and the standard's functions do not name.

`wengert.ops.operators` attaches each when it is first asked for. If NumPy and PyTorch disagree
about a method, it accepts only calls that one of them accepts, and otherwise raises an error.
"""

import math
from operator import index
from typing import Any

from wengert.backends import backend_of
from wengert.ops import linear_algebra, manipulation, searching, statistical
from wengert.ops.axes import as_axes, as_axis, as_shape
from wengert.ops.beyond.updates import At
from wengert.ops.conversion import clone
from wengert.ops.cumulative import cumulative_prod, cumulative_sum
from wengert.ops.data_type import astype, check_storable, to_backend, to_device
from wengert.ops.elementwise import multiply
from wengert.ops.late import METHODS
from wengert.ops.linalg import products
from wengert.ops.operands import operands
from wengert.tape.tensor import Tensor

__all__ = list(METHODS)


def _integers(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Integers that are given one by one or as one tuple or list."""
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], tuple | list) else given


# -- shape ---------------------------------------------------------------------------------------


def ravel(x: Tensor, /) -> Tensor:
    """Return the elements in row-major order, along one axis."""
    return manipulation.reshape(x, (-1,))


def flatten(x: Tensor, /, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join the axes from ``start_dim`` to ``end_dim`` into one.

    Examples
    --------
    >>> wg.ones((2, 3, 4)).flatten(start_dim=1).shape
    (2, 12)
    """
    shape = tuple(x.shape) or (1,)
    first = as_axis(start_dim, len(shape), "flatten")
    last = as_axis(end_dim, len(shape), "flatten")
    if first > last:
        raise RuntimeError(f"flatten: start_dim={start_dim} cannot come after end_dim={end_dim}")
    joined = math.prod(shape[first : last + 1])
    return manipulation.reshape(x, (*shape[:first], joined, *shape[last + 1 :]))


def view(x: Tensor, /, *shape: Any) -> Tensor:
    """Give the elements another shape; a dtype is a `TypeError`, since no bytes are read anew.

    Examples
    --------
    >>> wg.ones((2, 6)).view(3, -1).shape
    (3, 4)
    """
    if len(shape) == 1 and not isinstance(shape[0], int | tuple | list):
        raise TypeError(
            f"view takes lengths, and not {shape[0]!r}; the bytes of a Tensor are not read as "
            "another dtype's: wg.astype(x, dtype) converts the values"
        )
    return manipulation.reshape(x, as_shape(_integers(shape)) if shape else x.shape)


def view_as(x: Tensor, other: Tensor, /) -> Tensor:
    """Give the elements the shape of another Tensor."""
    return manipulation.reshape(x, tuple(other.shape))


reshape_as = view_as


def expand(x: Tensor, /, *sizes: Any) -> Tensor:
    """Repeat along axes of length 1, and along new ones in front; -1 leaves a length.

    Examples
    --------
    >>> wg.ones((3, 1)).expand(-1, 4).shape
    (3, 4)
    """
    shape = as_shape(_integers(sizes))
    before = len(shape) - x.ndim
    if before < 0 or -1 in shape[:before]:
        raise ValueError(f"expand: shape {tuple(x.shape)} cannot be expanded to {shape}")
    old = (0,) * before + tuple(x.shape)
    return manipulation.broadcast_to(
        x, tuple([n if length == -1 else length for n, length in zip(old, shape, strict=True)])
    )


def expand_as(x: Tensor, other: Tensor, /) -> Tensor:
    """Broadcast to the shape of another Tensor."""
    return manipulation.broadcast_to(x, tuple(other.shape))


def repeat(x: Tensor, repeats: Any, /, *more: Any, axis: int | None = None) -> Tensor:
    """Repeat each element along an axis, which is named: PyTorch's method repeats the whole.

    Examples
    --------
    >>> wg.asarray([1, 2]).repeat(2, axis=0)
    tensor([1, 1, 2, 2])
    """
    if more or axis is None:
        raise TypeError(
            "x.repeat repeats each element in NumPy and the whole array in PyTorch; write "
            f"x.repeat({repeats!r}, axis=0) for each element along an axis, wg.repeat(x, "
            f"{repeats!r}) for each of the flat array, or wg.tile(x, {(repeats, *more)}) for the "
            "whole"
        )
    return manipulation.repeat(x, repeats, axis=axis)


# -- axes ----------------------------------------------------------------------------------------


def transpose(x: Tensor, /, *axes: Any) -> Tensor:
    """Reverse the axes, permute all of them as NumPy does, or swap two as PyTorch does.

    Two numbers are PyTorch's: the axes that change places. ``x.transpose(0, 1)`` of a matrix is a
    `ValueError`, since it changes nothing in NumPy, and transposes in PyTorch.

    Examples
    --------
    >>> wg.ones((2, 3, 4)).transpose(0, 2).shape
    (4, 3, 2)
    """
    if not axes or axes == (None,):
        return manipulation.permute_dims(x, tuple(range(x.ndim))[::-1])
    if len(axes) != 2:
        return manipulation.permute_dims(x, as_axes(_integers(axes), x.ndim, "transpose"))
    first, second = (as_axis(axis, x.ndim, "transpose") for axis in axes)
    if x.ndim == 2 and first <= second:
        raise ValueError(
            f"transpose{axes} of a matrix leaves it as it is in NumPy, and in PyTorch swaps the "
            "two axes; write x.mT to swap them"
        )
    return swapaxes(x, first, second)


def swapaxes(x: Tensor, axis1: int, axis2: int, /) -> Tensor:
    """Let two axes change places."""
    order = list(range(x.ndim))
    first, second = as_axis(axis1, x.ndim, "swapaxes"), as_axis(axis2, x.ndim, "swapaxes")
    order[first], order[second] = second, first
    return manipulation.permute_dims(x, tuple(order))


def permute(x: Tensor, /, *dims: Any) -> Tensor:
    """Reorder the axes: ``x.permute(2, 0, 1)`` is ``wg.permute_dims(x, (2, 0, 1))``."""
    return manipulation.permute_dims(x, _integers(dims))


def t(x: Tensor, /) -> Tensor:
    """Transpose a matrix; a vector or a number stays as it is."""
    if x.ndim > 2:
        raise ValueError(
            f"t is for matrices, and this Tensor has {x.ndim} dimensions; use x.mT or "
            "wg.permute_dims"
        )
    return manipulation.permute_dims(x, tuple(range(x.ndim))[::-1])


def unsqueeze(x: Tensor, dim: int, /) -> Tensor:
    """Insert an axis of length 1: `expand_dims`."""
    return manipulation.expand_dims(x, index(dim))


# -- diagonals, sums and products ------------------------------------------------------------------


def diagonal(x: Tensor, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return diagonals of the first two axes, not the last two, as the last axis.

    Examples
    --------
    >>> wg.asarray([[1, 2], [3, 4]]).diagonal()
    tensor([1, 4])
    """
    first, second = as_axis(axis1, x.ndim, "diagonal"), as_axis(axis2, x.ndim, "diagonal")
    if first == second:
        raise ValueError(f"axis1={axis1} and axis2={axis2} are one axis; a diagonal has two")
    rest = [i for i in range(x.ndim) if i not in (first, second)]
    return products.diagonal(manipulation.permute_dims(x, (*rest, first, second)), offset=offset)


def trace(
    x: Tensor, /, offset: int = 0, axis1: int = 0, axis2: int = 1, *, dtype: Any = None
) -> Tensor:
    """Sum a diagonal; parameters as for `diagonal`, and the dtype of the sum."""
    return statistical.sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


def cumsum(x: Tensor, /, axis: int | None = None, *, dtype: Any = None) -> Tensor:
    """Running sums along an axis, or as in NumPy of all elements in row-major order."""
    return cumulative_sum(ravel(x) if axis is None else x, axis=axis, dtype=dtype)


def cumprod(x: Tensor, /, axis: int | None = None, *, dtype: Any = None) -> Tensor:
    """Running products along an axis, or as in NumPy of all elements in row-major order."""
    return cumulative_prod(ravel(x) if axis is None else x, axis=axis, dtype=dtype)


def dot(x: Tensor, other: Any, /) -> Tensor:
    """Product over the last axis of one array and the last but one of the other, as ``np.dot``.

    Examples
    --------
    >>> wg.asarray([1.0, 2.0]).dot(wg.asarray([3.0, 4.0]))
    tensor(11.)
    """
    left, right = operands(x, other)
    if not left.ndim or not right.ndim:
        return multiply(left, right)
    if left.ndim < 3 and right.ndim < 3:
        return linear_algebra.matmul(left, right)
    return linear_algebra.tensordot(left, right, ([-1], [-2 if right.ndim > 1 else -1]))


def masked_fill(x: Tensor, mask: Any, value: Any, /) -> Tensor:
    """Return ``value`` where a mask holds, and the elements elsewhere, in this Tensor's dtype.

    Examples
    --------
    >>> x = wg.asarray([1.0, -2.0])
    >>> x.masked_fill(x < 0, 0.0)
    tensor([1., 0.])
    """
    check_storable("masked_fill", value, x.dtype)
    return astype(searching.where(mask, value, x), x.dtype, copy=False)


#: A part to be replaced: ``x.at[key].set(value)``, as in JAX, and ``x.at(key).set(value)``.
at = property(At)


# -- what has two meanings -------------------------------------------------------------------------


def _name(name: str, function: Any) -> Any:
    function.__name__ = function.__qualname__ = name
    return function


def _moment(name: str, function: Any) -> Any:
    def moment(
        x: Tensor,
        /,
        axis: Any = None,
        *,
        dim: Any = None,
        unbiased: bool | None = None,
        correction: float | None = None,
        ddof: float | None = None,
        keepdims: bool = False,
        keepdim: bool | None = None,
    ) -> Any:
        """The moment; `correction`, `ddof` or a keyword of PyTorch names its divisor."""
        if sum(x is not None for x in (unbiased, correction, ddof)) > 1:
            raise TypeError(f"x.{name} takes one of correction, ddof and unbiased")
        divisor = ddof if correction is None else correction
        if divisor is None:
            if dim is None and unbiased is None and keepdim is None:
                raise TypeError(
                    f"x.{name} divides by N in NumPy and by N - 1 in PyTorch; write "
                    f"x.{name}(correction=0) or x.{name}(correction=1), or wg.{name}(x) for N"
                )
            divisor = True if unbiased is None else bool(unbiased)
        axis, keepdims = axis if dim is None else dim, bool(keepdims or keepdim)
        return function(x, axis=axis, correction=divisor, keepdims=keepdims)

    return _name(name, moment)


def _extreme(name: str, function: Any) -> Any:
    def extreme(x: Tensor, /, axis: Any = None, *, keepdims: bool = False) -> Any:
        """Of all elements: an axis has two meanings."""
        if axis is not None and not isinstance(axis, Tensor):
            raise TypeError(
                f"x.{name}({axis}) gives values in NumPy, and values and indices in PyTorch; write "
                f"wg.{name}(x, axis={axis}), and wg.arg{name}(x, axis={axis}) for the indices"
            )
        return function(x, axis=axis, keepdims=keepdims)

    return _name(name, extreme)


def _refusal(name: str, meanings: str) -> Any:
    def refuse(x: Tensor, /, axis: Any = None, *more: Any) -> Any:
        """Raise: the libraries give different results."""
        raise TypeError(f"x.{name} {meanings}")

    return _name(name, refuse)


std, var = _moment("std", statistical.std), _moment("var", statistical.var)
max, min = _extreme("max", statistical.max), _extreme("min", statistical.min)
sort = _refusal(
    "sort",
    "changes x in NumPy, and gives values and indices in PyTorch; write wg.sort(x), wg.argsort(x)",
)
median = _refusal(
    "median",
    "is the lower of two middle values in PyTorch, and NumPy's function their mean; write "
    'wg.median(x) for the mean, or wg.quantile(x, 0.5, method="lower")',
)
nonzero = _refusal(
    "nonzero",
    "gives an array for each axis in NumPy, and one matrix in PyTorch; write wg.nonzero(x), or "
    "wg.stack(wg.nonzero(x), axis=1)",
)
equal = _refusal(
    "equal",
    "is one bool in PyTorch, and an array in the standard; write bool(wg.all(x == y)), or x == y",
)


# -- copies, dtypes and devices --------------------------------------------------------------------


def copy(x: Tensor, /) -> Tensor:
    """Return a copy, which stays tracked: `clone`."""
    return clone(x)


def type(x: Tensor, dtype: Any, /) -> Tensor:
    """Convert to another dtype: `astype`, which leaves what has that dtype as it is."""
    return astype(x, dtype, copy=False)


def type_as(x: Tensor, other: Tensor, /) -> Tensor:
    """Convert to another Tensor's dtype."""
    return astype(x, other.dtype, copy=False)


def cpu(x: Tensor, /) -> Tensor:
    """Move to host memory: to the library's own device there, or to NumPy if it has none."""
    try:
        where = backend_of(x._array).parse_device("cpu")
    except ValueError:
        return to_backend(x, "numpy")
    return to_device(x, where)


def cuda(x: Tensor, device: Any = None, /) -> Tensor:
    """Move to a GPU of this Tensor's library: the current one, or that of a number."""
    where = "cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device
    try:
        return to_device(x, where)
    except ValueError as error:
        raise ValueError(f'{error}; x.to_backend("cupy") moves to a library for GPUs') from None


# -- questions -------------------------------------------------------------------------------------


def numel(x: Tensor, /) -> int:
    """Return the number of elements: `size`, which is a property here."""
    return x.size


nelement = numel


def dim(x: Tensor, /) -> int:
    """Return the number of axes: `ndim`."""
    return x.ndim


ndimension = dim


def element_size(x: Tensor, /) -> int:
    """Return how many bytes an element has."""
    return x.dtype.itemsize


def is_floating_point(x: Tensor, /) -> bool:
    """Whether the dtype is real floating."""
    return x.dtype.kind == "real floating"


def is_complex(x: Tensor, /) -> bool:
    """Whether the dtype is complex."""
    return x.dtype.complex
