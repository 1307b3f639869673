"""The singular value decomposition."""

from typing import Any, NamedTuple

from wengert.interpreters.batching import as_it_is
from wengert.ops.define import operation
from wengert.ops.elementwise.rules import is_complex
from wengert.ops.linalg.common import (
    adjoint,
    columns,
    diagonal_matrix,
    eye_like,
    imaginary,
    join,
    matrices,
    product,
    skew,
    spread_nan,
    turns,
)
from wengert.tape.tensor import Tensor

__all__ = ["SVDResult", "svd", "svdvals"]


class SVDResult(NamedTuple):
    """Result of `svd`.

    Examples
    --------
    >>> wg.linalg.svd(wg.ones((3, 2)), full_matrices=False).U.shape
    (3, 2)
    """

    U: Tensor
    S: Tensor
    Vh: Tensor


def _shares(xp: Any, s: Any) -> tuple[Any, Any]:
    """The column's and the row's shares of the sum of two singular values.

    A difference of squares is that of the values times their sum, and may overflow or vanish where
    neither does. So numerators are divided by the sum first.
    """
    column, row = (xp.expand_dims(s, axis=len(s.shape) - k) for k in (1, 0))
    total = column + row
    total = xp.where(eye_like(xp, total), 1, total)
    return column / total, row / total


def _outside(xp: Any, u: Any, x: Any) -> Any:
    """The part of the columns of ``x`` that is orthogonal to those of ``u``."""
    return x - product(xp, u, adjoint(xp, u), x)


def _add(xp: Any, x: Any, y: Any) -> Any:
    return y if x is None else x + y


def _absorb(xp: Any, g: Any, u: Any, size: int) -> Any:
    """Express the cotangent of vectors beyond the first ``size`` by one of the first."""
    first, more = u[..., :size], u[..., size:]
    back = product(xp, more, adjoint(xp, g[..., size:]), first)
    return g[..., :size] - back


def _svd_rule(xp: Any, g: Any, x_shape: tuple[int, ...], out: Any) -> Any:
    (g_u, g_s, g_vh), (u, s, vh) = g, out
    m, n = x_shape[-2:]
    size = min(m, n)
    v = adjoint(xp, vh)
    g_v = None if g_vh is None else adjoint(xp, g_vh)
    if g_u is not None:
        g_u = _absorb(xp, g_u, u, size) if u.shape[-1] > size else g_u
    if g_v is not None:
        g_v = _absorb(xp, g_v, v, size) if v.shape[-1] > size else g_v
    u, v = u[..., :size], v[..., :size]
    both = phase = used = None
    column, row = (None, None) if g_u is None is g_v else _shares(xp, s)
    if g_u is not None:
        used = xp.matmul(adjoint(xp, u), g_u)
        turned = skew(xp, used)
        both = turned * column
        phase = xp.linalg.diagonal(turned)
    if g_v is not None:
        turned = xp.matmul(adjoint(xp, v), g_v)
        used, turned = _add(xp, used, turned), skew(xp, turned)
        both = _add(xp, both, turned * row)
        phase = _add(xp, phase, -xp.linalg.diagonal(turned))
    inner = join(xp, g_s, both, s, used, m == n)
    if phase is not None and is_complex(u):
        # Half of each phase is the left vector's, half the right one's.
        phase = phase / (s * 4)
        inner = inner + diagonal_matrix(xp, phase)
    found = product(xp, u, inner, adjoint(xp, v))
    if g_u is not None and m > size:
        across = columns(xp, _outside(xp, u, g_u), xp.divide(1, s))
        found = found + xp.matmul(across, adjoint(xp, v))
    if g_v is not None and n > size:
        across = columns(xp, _outside(xp, v, g_v), xp.divide(1, s))
        found = found + xp.matmul(u, adjoint(xp, across))
    return found


def _svd_tangent(xp: Any, t: Any, x_shape: tuple[int, ...], out: Any) -> Any:
    u, s, vh = out
    m, n = x_shape[-2:]
    size = min(m, n)
    v = adjoint(xp, vh)
    more_u, more_v = u[..., size:], v[..., size:]
    u, v = u[..., :size], v[..., :size]
    inner = product(xp, adjoint(xp, u), t, v)
    other = adjoint(xp, inner)
    column, row = _shares(xp, s)
    turn_u = inner * column + other * row
    turn_v = inner * row + other * column
    turn_u, turn_v = turns(xp, s, turn_u, turn_v, square=m == n)
    along = xp.linalg.diagonal(inner)
    if is_complex(u):
        phase = diagonal_matrix(xp, imaginary(xp, along) / (s * 2))
        turn_u, turn_v = turn_u + phase, turn_v - phase
    t_u, t_v = xp.matmul(u, turn_u), xp.matmul(v, turn_v)
    if m > size:
        moved = columns(xp, xp.matmul(t, v), xp.divide(1, s))
        t_u = t_u + _outside(xp, u, moved)
    if n > size:
        moved = columns(xp, xp.matmul(adjoint(xp, t), u), xp.divide(1, s))
        t_v = t_v + _outside(xp, v, moved)
    if more_u.shape[-1]:
        t_u = xp.concat([t_u, -product(xp, u, adjoint(xp, t_u), more_u)], axis=-1)
    if more_v.shape[-1]:
        t_v = xp.concat([t_v, -product(xp, v, adjoint(xp, t_v), more_v)], axis=-1)
    return t_u, spread_nan(xp, xp.real(along), s), adjoint(xp, t_v)


@operation(
    "linalg.svd",
    x=_svd_rule,
    dtypes="floating",
    jvps={"x": _svd_tangent},
    several=True,
    batch=as_it_is,
)
def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    r"""Singular value decomposition, :math:`X = U \operatorname{diag}(S) V^H`.

    Singular vectors are unique only up to a common sign (phase) of each pair, and up to a rotation
    where singular values are equal. Derivatives make sense for functions of them that do not depend
    on that choice. Where only ``S`` is used, they are finite whatever the singular values are. The
    cotangent is

    .. math::
        & U (\operatorname{skew}(U^H \bar U)/E\, S + S \operatorname{skew}(V^H \bar V)/E \\
        & + \operatorname{diag}(\bar S)) V^H \\
        & + (I - U U^H) \bar U S^{-1} V^H \\ & + U S^{-1} \bar V^H (I - V V^H)

    with :math:`E_{ij} = S_j^2 - S_i^2` and :math:`\operatorname{skew}(A) = A - A^H`. Raises
    `ValueError` if ``x`` has fewer than two axes. With :math:`K = \min(M, N)` the result is ``U``
    (..., M, M), ``S`` (..., K), real and descending, and ``Vh`` (..., N, N); without
    ``full_matrices`` U has K columns and Vh K rows. Array API standard.

    Examples
    --------
    >>> u, s, vh = wg.linalg.svd(wg.asarray([[3.0, 0.0], [0.0, -2.0]]))
    >>> s
    tensor([3., 2.])
    >>> wg.abs(u)
    tensor([[1., 0.],
            [0., 1.]])
    """
    matrices("svd", x)
    return SVDResult(*svd.run(x, full_matrices=bool(full_matrices)))


# -- values alone --------------------------------------------------------------------------------


def _svdvals_rule(xp: Any, g: Any, x: Any) -> Any:
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    return xp.matmul(columns(xp, u, spread_nan(xp, g, s)), vh)


def _svdvals_tangent(xp: Any, t: Any, x: Any) -> Any:
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    inner = product(xp, adjoint(xp, u), t, adjoint(xp, vh))
    return spread_nan(xp, xp.real(xp.linalg.diagonal(inner)), s)


@operation(
    "linalg.svdvals",
    x=_svdvals_rule,
    dtypes="floating",
    jvps={"x": _svdvals_tangent},
    batch=as_it_is,
)
def svdvals(x: Any, /) -> Tensor:
    r"""Singular values of a matrix, or of each matrix of a stack.

    The cotangent is :math:`U \operatorname{diag}(\bar s) V^H`. The result is of shape (..., min(M,
    N)), real, descending. Raises `ValueError` if ``x`` has fewer than two axes. Array API standard.

    Examples
    --------
    >>> wg.linalg.svdvals(wg.asarray([[3.0, 0.0], [0.0, -2.0]]))
    tensor([3., 2.])
    """
    matrices("svdvals", x)
    return svdvals.run(x)
