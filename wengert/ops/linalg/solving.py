"""Linear systems, inverses and pseudo-inverses."""

import math
from typing import Any

from wengert.backends.triangular import solve_in_blocks
from wengert.interpreters.batching import as_it_is
from wengert.ops.axes import raw_array
from wengert.ops.define import operation
from wengert.ops.elementwise import conj
from wengert.ops.limits import finfo
from wengert.ops.linalg.common import adjoint, inexact, matrices, product, promote
from wengert.ops.linear_algebra import matrix_transpose
from wengert.ops.manipulation import expand_dims, squeeze
from wengert.tape.tensor import Tensor, wrap

__all__ = ["cholesky_solve", "inv", "pinv", "solve", "solve_triangular"]


def _solve_batch(call: Any, x1: Any, x2: Any, **way: bool) -> Any:
    xp, rank1, rank2 = call.xp, call.rank(0), call.rank(1)
    if call.own == (False, True) and rank1 == 2 and rank2 <= 2:
        # One factorisation for all: the members are columns.
        order = (1, 0) if rank2 == 1 else (1, 0, 2)
        columns = xp.permute_dims(x2, order)
        shape = columns.shape
        columns = xp.reshape(columns, (shape[0], math.prod(shape[1:])))
        return xp.permute_dims(xp.reshape(call.run(x1, columns, **way), shape), order)
    vectors = rank2 == 1
    if vectors:
        x2 = xp.expand_dims(x2, axis=len(x2.shape))
        rank2 = 2
    rank = max(rank1, rank2)
    matrices = call._replace(inputs=(x1, x2))
    out = call.run(matrices.with_rank(0, rank), matrices.with_rank(1, rank), **way)
    return xp.squeeze(out, axis=(len(out.shape) - 1,)) if vectors else out


@operation(
    "linalg.solve",
    x1=lambda xp, g, x1, out: -xp.matmul(xp.linalg.solve(adjoint(xp, x1), g), adjoint(xp, out)),
    x2=lambda xp, g, x1: xp.linalg.solve(adjoint(xp, x1), g),
    jvps={
        "x1": lambda xp, t, x1, out: -xp.linalg.solve(x1, xp.matmul(t, out)),
        "x2": lambda xp, t, x1: xp.linalg.solve(x1, t),
    },
    batch=_solve_batch,
)
def solve(x1: Any, x2: Any, /) -> Tensor:
    r"""Solution of linear systems, :math:`X_1^{-1} X_2`.

    The cotangents are :math:`-\bar X_2 X^H` and :math:`\bar X_2 = X_1^{-H} \bar X`. A singular
    matrix is an error of the array library, or gives infinities, as the library has it. The result
    is of shape (..., M) or (..., M, K). Raises `ValueError` if the shapes do not fit. One
    right-hand side has the shape (M,), several have (..., M, K); stacks broadcast.
    Array API standard.

    Examples
    --------
    >>> a, b = wg.asarray([[2.0, 0.0], [0.0, 4.0]]), wg.asarray([2.0, 2.0])
    >>> wg.linalg.solve(a, b)
    tensor([1.0000, 0.5000])
    >>> wg.grad(lambda b: wg.linalg.solve(a, b).sum())(b)
    tensor([0.5000, 0.2500])
    """
    vector = len(inexact("solve", x2)) == 1
    x2 = expand_dims(x2, axis=1) if vector else x2  # the column of a vector
    _check_system("solve", x1, x2)
    out: Tensor = solve.run(*promote(x1, x2))
    return squeeze(out, axis=-1) if vector else out


@operation(
    "linalg.inv",
    x=lambda xp, g, out: -product(xp, adjoint(xp, out), g, adjoint(xp, out)),
    dtypes="floating",
    jvps={"x": lambda xp, t, out: -product(xp, out, t, out)},
    batch=as_it_is,
)
def inv(x: Any, /) -> Tensor:
    r"""Inverse of a matrix, or of each matrix of a stack, :math:`X^{-1}`.

    To multiply with an inverse, `solve` is faster and more accurate. A singular matrix is an error
    of the array library, or gives infinities, as the library has it. The cotangent is
    :math:`-Y^H \bar Y Y^H`. Raises `ValueError` if the matrices are not square. Array API standard.

    Examples
    --------
    >>> x = wg.asarray([[2.0, 0.0], [0.0, 4.0]])
    >>> wg.linalg.inv(x)
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    >>> wg.grad(lambda x: wg.linalg.inv(x).sum())(x)
    tensor([[-0.2500, -0.1250],
            [-0.1250, -0.0625]])
    """
    matrices("inv", x, square=True)
    return inv.run(x)


# -- triangular systems --------------------------------------------------------------------------


def _triangle(xp: Any, x: Any, *, upper: bool, unitriangular: bool) -> Any:
    """The triangle of a matrix that is read, without a diagonal of ones."""
    own = int(unitriangular)
    return xp.triu(x, k=own) if upper else xp.tril(x, k=-own)


def _check_system(name: str, x1: Any, x2: Any, *, left: bool = True) -> None:
    shape1, shape2 = matrices(name, x1, square=True), inexact(name, x2)
    if len(shape2) < 2 or shape1[-1] != shape2[-2 if left else -1]:
        raise ValueError(
            f"{name} with matrices of shape {tuple(shape1)} and right-hand sides of shape "
            f"{tuple(shape2)}: these need to be matrices with as many "
            f"{'rows' if left else 'columns'}"
        )


def _triangular_adjoint(xp: Any, g: Any, x1: Any, upper: bool, unitriangular: bool) -> Any:
    way = {"upper": not upper, "unitriangular": unitriangular}
    return xp.linalg.solve_triangular(adjoint(xp, x1), g, **way)


def _triangular_rule(xp: Any, g: Any, x1: Any, out: Any, upper: bool, unitriangular: bool) -> Any:
    both = xp.matmul(_triangular_adjoint(xp, g, x1, upper, unitriangular), adjoint(xp, out))
    return -_triangle(xp, both, upper=upper, unitriangular=unitriangular)


def _triangular_jvp(xp: Any, t: Any, x1: Any, out: Any, upper: bool, unitriangular: bool) -> Any:
    moved = xp.matmul(_triangle(xp, t, upper=upper, unitriangular=unitriangular), out)
    return -xp.linalg.solve_triangular(x1, moved, upper=upper, unitriangular=unitriangular)


@operation(
    "linalg.solve_triangular",
    x1=_triangular_rule,
    x2=_triangular_adjoint,
    jvps={
        "x1": _triangular_jvp,
        "x2": lambda xp, t, x1, upper, unitriangular: xp.linalg.solve_triangular(
            x1, t, upper=upper, unitriangular=unitriangular
        ),
    },
    composite=solve_in_blocks,
    batch=_solve_batch,
)
def solve_triangular(
    x1: Any, x2: Any, /, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """Solution of triangular linear systems, :math:`X_1^{-1} X_2` or :math:`X_2 X_1^{-1}`.

    The other triangle is not looked at. The cotangents are those of `solve`, and that of the matrix
    has the same triangle. The result is of the shape of ``x2``, with the broadcast stack. Raises
    `ValueError` if the shapes do not fit. ``left=False`` asks for :math:`X_2 X_1^{-1}`;
    ``unitriangular`` takes the diagonal to be 1, and does not look at it.
    PyTorch: ``torch.linalg.solve_triangular``.

    Examples
    --------
    >>> lower, b = wg.asarray([[2.0, 0.0], [1.0, 4.0]]), wg.asarray([[2.0], [9.0]])
    >>> wg.linalg.solve_triangular(lower, b, upper=False)
    tensor([[1.],
            [2.]])
    """
    _check_system("solve_triangular", x1, x2, left=left)
    if not left:
        x1, x2, upper = matrix_transpose(x1), matrix_transpose(x2), not upper
    way = {"upper": bool(upper), "unitriangular": bool(unitriangular)}
    out: Tensor = solve_triangular.run(*promote(x1, x2), **way)
    return out if left else matrix_transpose(out)


def cholesky_solve(x: Any, factor: Any, *, upper: bool = False) -> Tensor:
    """Solution of linear systems whose matrix has been factorised, :math:`(L L^H)^{-1} X`.

    It is two triangular systems, :math:`L Y = X` and :math:`L^H Z = Y`. The derivative is that of
    both. The result is of the shape of ``x``, with the broadcast stack. Raises `ValueError` if the
    shapes do not fit. ``factor`` is what `cholesky` gives; with ``upper`` it is :math:`U`, of
    :math:`U^H U`. PyTorch: ``torch.cholesky_solve``.

    Examples
    --------
    >>> x, b = wg.asarray([[4.0, 2.0], [2.0, 5.0]]), wg.asarray([[6.0], [7.0]])
    >>> wg.round(wg.linalg.cholesky_solve(b, wg.linalg.cholesky(x)))  # x @ [1, 1] is b
    tensor([[1.],
            [1.]])
    """
    _check_system("cholesky_solve", factor, x)
    turned = conj(matrix_transpose(factor))
    first, last = (turned, wrap(factor)) if upper else (wrap(factor), turned)
    return solve_triangular(last, solve_triangular(first, x, upper=False), upper=True)


# -- pseudo-inverse ------------------------------------------------------------------------------

# At constant rank dP = -P dX P + P P^H dX^H (I - X P) + (I - P X) dX^H P^H P. Each product with a
# projector I - A B is taken as that of a difference, so that no identity is made, and A B, which
# has no size, comes first: P^H P P overflows where the derivative does not.


def _at_constant_rank(xp: Any, g: Any, x: Any, rtol: Any) -> Any:
    """NaN where more than rounding errors is dropped: other vectors would turn into it."""
    least = max(x.shape[-2:]) * xp.finfo(x.dtype).eps
    if (number := isinstance(rtol, float | int)) and rtol <= least:
        return g
    values = xp.linalg.svdvals(x)
    size = values[..., :1]
    small = values <= size * (rtol if number else xp.expand_dims(rtol, axis=-1))
    lost = xp.any(small & (values > size * least), axis=-1)[..., None, None]
    return xp.where(lost, math.nan, g)


def _pinv_rule(xp: Any, g: Any, x: Any, out: Any, rtol: Any) -> Any:
    g = _at_constant_rank(xp, g, x, rtol)
    p_h, g_h = adjoint(xp, out), adjoint(xp, g)
    left = product(xp, g_h, out, p_h)
    left = left - product(xp, x, out, left)
    right = product(xp, p_h, out, g_h)
    right = right - xp.matmul(right, xp.matmul(out, x))
    return left + right - product(xp, p_h, g, p_h)


def _pinv_tangent(xp: Any, t: Any, x: Any, out: Any, rtol: Any) -> Any:
    t = _at_constant_rank(xp, t, x, rtol)
    p_h, t_h = adjoint(xp, out), adjoint(xp, t)
    left = product(xp, out, p_h, t_h)
    left = left - xp.matmul(left, xp.matmul(x, out))
    right = product(xp, t_h, p_h, out)
    right = right - product(xp, out, x, right)
    return left + right - product(xp, out, t, out)


@operation(
    "linalg.pinv", x=_pinv_rule, dtypes="floating", jvps={"x": _pinv_tangent}, batch=as_it_is
)
def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    r"""Moore-Penrose pseudo-inverse of a matrix, or of each matrix of a stack.

    With :math:`P = X^+` the cotangent is :math:`-P^H \bar P P^H` :math:`+ (I - X P) \bar P^H P P^H`
    :math:`+ P^H P \bar P^H (I - P X)` at constant rank. The result is of shape (..., N, M). Raises
    `ValueError` if ``x`` has fewer than two axes. Singular values below ``rtol`` times the
    largest count as 0: ``max(M, N)`` times the dtype's ``eps`` by default; an array has one for
    each matrix. Derivatives are NaN if ``rtol`` drops more than that. G. H. Golub
    and V. Pereyra, SIAM Journal on Numerical Analysis 10 (1973) 413-432. Array API standard.

    Examples
    --------
    >>> wg.linalg.pinv(wg.ones((2, 1)))
    tensor([[0.5000, 0.5000]])
    """
    shape = matrices("pinv", x)
    if rtol is None:
        rtol = max(shape[-2:]) * finfo(x.dtype).eps  # each library has another default
    return pinv.run(x, rtol=raw_array(rtol.detach() if isinstance(rtol, Tensor) else rtol))
