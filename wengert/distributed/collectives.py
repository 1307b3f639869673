"""Collectives: the primitives by which processes exchange arrays, each with its adjoint.

Arrays have the same shape and dtype on all processes, and sums are not of bool.

The loss of a program is the sum of the losses of its processes. Then the adjoint of a collective is
a collective: of a sum over processes another one, of gathering a sum of which each keeps its part,
and of sending a sum at the sender.
"""

from collections.abc import Callable
from typing import Any, Literal

from wengert import ops
from wengert.backends import dtype_of
from wengert.compiler import messages
from wengert.interpreters.batching import as_it_is
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter"]


def _along_first(call: Any, x: Any) -> Any:
    """Batch rule of a collective that puts together or divides the first axis."""
    return call.move_axis(call.run(call.move_axis(x, 0, 1)), 1, 0)


def _row(name: str, rule: Callable[..., Any], batch: Callable[..., Any] = as_it_is) -> Any:
    def forward(xp: Any, x: Any, **how: Any) -> Any:
        return messages.exchange(xp, name, x, **how)

    rules: dict[str, Any] = {"x": rule}
    return Primitive(
        name, ["x"], rules, linear="together", composite=forward, batch=batch, effect="exchanges"
    ).bind


_all_reduce = _row("all_reduce", lambda xp, g, op: xp.all_reduce(g, op=op))
_all_gather = _row("all_gather", lambda xp, g: xp.reduce_scatter(g), _along_first)
_reduce_scatter = _row("reduce_scatter", lambda xp, g: xp.all_gather(g), _along_first)
_broadcast = _row("broadcast", lambda xp, g, root: xp.reduce(g, root=root))
_reduce = _row("reduce", lambda xp, g, root: xp.broadcast(g, root=root))


def all_reduce(x: Any, /, op: Literal["sum", "mean", "max", "min"] = "sum") -> Tensor:
    r"""Sum, mean, maximum or minimum of the processes' arrays, element by element.

    The cotangent of the sum, :math:`y = \sum_r x_r`, is :math:`\bar x = \sum_r \bar y_r` on all
    processes. Processes whose elements are equally large share that of the maximum. The result is
    of the shape and dtype of ``x``, and the same on all processes. Raises `ValueError` if there is
    no such ``op``. Raises `ExchangeError` on all processes if their calls differ, and
    `TimeoutError` if one does not come. MPI standard: ``MPI_Allreduce``.
    PyTorch: ``torch.distributed.all_reduce``.

    Parameters
    ----------
    x : Tensor or array
        Of the same shape and dtype on all processes; not of bool.
    op : {"sum", "mean", "max", "min"}
        What is computed. The mean needs a floating dtype; maximum and minimum gather the arrays
        first, and take as much memory.

    Examples
    --------
    >>> import wengert.distributed as wd
    >>> wd.init()
    >>> x = wg.ones(2, requires_grad=True)
    >>> wd.all_reduce(x * x, op="mean").sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """
    messages.carrier_for("all_reduce")
    dtype = _dtype("all_reduce", x)
    if op in ("max", "min"):
        every = all_gather(ops.expand_dims(x, axis=0))
        return (ops.max if op == "max" else ops.min)(every, axis=0)
    if op not in ("sum", "mean"):
        raise ValueError(f"all_reduce: op is 'sum', 'mean', 'max' or 'min', and not {op!r}")
    if op == "mean" and not dtype.inexact:
        raise TypeError(f"all_reduce: a mean needs a floating or complex dtype, not {dtype.name}")
    return _all_reduce(x, op=op)  # type: ignore[no-any-return]


def all_gather(x: Any, /) -> Tensor:
    """Put the processes' arrays together along the first axis, in the order of ranks.

    Its adjoint is `reduce_scatter`. The result is of shape ``(size * n, ...)`` for ``x`` of shape
    ``(n, ...)``. Raises `ValueError` if ``x`` has no axis. Raises `ExchangeError` on all processes
    if their calls differ, and `TimeoutError` if one does not come. MPI standard: ``MPI_Allgather``.
    PyTorch: ``torch.distributed.all_gather_into_tensor``.

    Examples
    --------
    >>> import wengert.distributed as wd
    >>> wd.init()
    >>> wd.all_gather(wg.ones(2)).shape  # of all processes, here one
    (2,)
    """
    messages.carrier_for("all_gather")
    _length("all_gather", x)
    return _all_gather(x)  # type: ignore[no-any-return]


def reduce_scatter(x: Any, /) -> Tensor:
    """Sum the processes' arrays; each process gets its part along the first axis.

    Its adjoint is `all_gather`. The result is of shape ``(n, ...)`` for ``x`` of shape
    ``(size * n, ...)``. Raises `ValueError` if the first axis can't be divided by the number of
    processes. Raises `ExchangeError` on all processes if their calls differ, and `TimeoutError` if
    one does not come. MPI standard: ``MPI_Reduce_scatter_block``.
    PyTorch: ``torch.distributed.reduce_scatter_tensor``.

    Examples
    --------
    >>> import wengert.distributed as wd
    >>> wd.init()
    >>> wd.reduce_scatter(wg.ones((1, 2))).shape
    (1, 2)
    """
    size, length = messages.carrier_for("reduce_scatter").size, _length("reduce_scatter", x)
    _dtype("reduce_scatter", x)
    if length % size:
        raise ValueError(f"reduce_scatter: {length} rows can't be divided by {size} processes")
    return _reduce_scatter(x)  # type: ignore[no-any-return]


def broadcast(x: Any, /, root: int = 0) -> Tensor:
    """The array of one process, on all of them.

    Its adjoint is `reduce`: the cotangents are summed at the root, and the other processes' ``x``
    have zeros. Raises `ValueError` if there is no process ``root``. Raises `ExchangeError` on all
    processes if their calls differ, and `TimeoutError` if one does not come. MPI standard:
    ``MPI_Bcast``. PyTorch: ``torch.distributed.broadcast``.

    Examples
    --------
    >>> import wengert.distributed as wd
    >>> wd.init()
    >>> wd.broadcast(wg.asarray([1.0, 2.0]), root=0)
    tensor([1., 2.])
    """
    return _broadcast(x, root=_root("broadcast", root))  # type: ignore[no-any-return]


def reduce(x: Any, /, root: int = 0) -> Tensor:
    """The sum of the processes' arrays on one of them, and zeros on the others.

    Its adjoint is `broadcast`. Raises `ValueError` if there is no process ``root``. Raises
    `ExchangeError` on all processes if their calls differ, and `TimeoutError` if one does not come.
    MPI standard: ``MPI_Reduce``. PyTorch: ``torch.distributed.reduce``, which leaves open what the
    other processes get.

    Examples
    --------
    >>> import wengert.distributed as wd
    >>> wd.init()
    >>> wd.reduce(wg.asarray([1.0, 2.0]), root=0)
    tensor([1., 2.])
    """
    _dtype("reduce", x)
    return _reduce(x, root=_root("reduce", root))  # type: ignore[no-any-return]


def _dtype(name: str, x: Any) -> Any:
    """The dtype of what is summed."""
    array = x._array if isinstance(x, Tensor) else x
    if not hasattr(array, "dtype"):
        raise TypeError(f"{name} takes a Tensor or an array, and not {type(x).__name__}")
    dtype = dtype_of(array.dtype)
    if dtype.kind == "bool":
        raise TypeError(f"{name} has no sum of bool; cast x to integers")
    return dtype


def _length(name: str, x: Any) -> int:
    """The length of the first axis."""
    shape = getattr(x, "shape", None)
    if shape is None:
        raise TypeError(f"{name} takes a Tensor or an array, and not {type(x).__name__}")
    if not shape:
        raise ValueError(f"{name}: x has no axis; reshape it to shape (1,)")
    return int(shape[0])


def _root(name: str, root: int) -> int:
    size = messages.carrier_for(name).size
    if type(root) is not int or not 0 <= root < size:
        raise ValueError(f"{name}: root is a rank from 0 to {size - 1}, and not {root!r}")
    return root
