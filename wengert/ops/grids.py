"""Creation functions of the standard that take arrays: triangles of matrices, and grids."""

from typing import Any, Literal

from wengert.interpreters.batching import as_it_is
from wengert.ops.axes import fill_zeros, shape_of
from wengert.ops.creation import whole
from wengert.ops.define import operation
from wengert.tape.tensor import Tensor

__all__ = ["meshgrid", "tril", "triu"]


def _diagonal(x: Any, k: Any, function: str) -> int:
    shape = tuple(shape_of(x))
    if len(shape) < 2:
        raise ValueError(f"{function} needs two axes at least, and the shape is {shape}")
    return whole(k, function, "k")


@operation(x=lambda xp, g, k: xp.tril(g, k=k), linear="together", batch=as_it_is)
def tril(x: Any, /, k: int = 0) -> Tensor:
    """Return the lower triangles of matrices, with zeros above the ``k``-th diagonal.

    The cotangent is the same triangle of the result's. ``k`` is positive above the main diagonal,
    negative below. Array API standard.

    Examples
    --------
    >>> wg.tril(wg.ones((3, 3)))
    tensor([[1., 0., 0.],
            [1., 1., 0.],
            [1., 1., 1.]])
    """
    return tril.run(x, k=_diagonal(x, k, "tril"))


@operation(x=lambda xp, g, k: xp.triu(g, k=k), linear="together", batch=as_it_is)
def triu(x: Any, /, k: int = 0) -> Tensor:
    """Return the upper triangles of matrices, with zeros below the ``k``-th diagonal.

    The cotangent is the same triangle of the result's. ``k`` is positive above the main diagonal,
    negative below. Array API standard.

    Examples
    --------
    >>> wg.triu(wg.ones((3, 3)), k=1)
    tensor([[0., 1., 1.],
            [0., 0., 1.],
            [0., 0., 0.]])
    """
    return triu.run(x, k=_diagonal(x, k, "triu"))


def _meshgrid_rule(xp: Any, g: Any, index: int, indexing: str) -> Any:
    own = {0: 1, 1: 0}.get(index, index) if indexing == "xy" and len(g) > 1 else index
    return xp.sum(fill_zeros(xp, g)[index], axis=tuple(i for i in range(len(g)) if i != own))


def _meshgrid_batch(call: Any, *arrays: Any, indexing: str = "xy") -> Any:
    lengths = [x.shape[-1] for x in arrays]
    order = list(range(len(arrays)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = 1, 0
    shape = tuple([lengths[i] for i in order])
    grids = []
    for i in range(len(arrays)):
        x = call.broadcast(i)
        x = call.xp.reshape(x, (x.shape[0], *[lengths[j] if j == i else 1 for j in order]))
        grids.append(call.xp.broadcast_to(x, (x.shape[0], *shape)))
    return tuple(grids)


@operation(arrays=_meshgrid_rule, linear="together", several=True, view=None, batch=_meshgrid_batch)
def meshgrid(*arrays: Any, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Return coordinate matrices of coordinate vectors.

    Each array's cotangent is the sum of its matrix's over the other axes. Returns one for each
    array, all of one shape. Cartesian order "xy" lets the first two axes change places; "ij" is
    matrix order. Array API standard.

    Examples
    --------
    >>> x, y = wg.meshgrid(wg.arange(3), wg.arange(2))
    >>> x
    tensor([[0, 1, 2],
            [0, 1, 2]])
    >>> y
    tensor([[0, 0, 0],
            [1, 1, 1]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is 'xy' or 'ij', and not {indexing!r}")
    if not arrays:
        return ()
    for x in arrays:
        if len(shape_of(x)) > 1:
            raise ValueError(
                f"meshgrid takes vectors, and was given an array of shape {tuple(x.shape)}"
            )
    return meshgrid.run(*arrays, indexing=indexing)
