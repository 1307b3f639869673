"""Solutions of equations, differentiated implicitly, to any order and in both modes.

A solution :math:`x` of :math:`r(x, p) = 0` moves with what the equations depend on by
:math:`dx = -J^{-1} r_p dp`, where :math:`J = r_x`. What they depend on is read off the tape, so that
Tensors in closures count, too.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import wengert as wg
from wengert.backends import dtype_of
from wengert.ops.operands import operands
from wengert.scipy.naming import like_first, tracked, values_of
from wengert.tape.autograd import grad
from wengert.tape.function import Function
from wengert.tape.grad_mode import enable_grad, is_grad_enabled, unrecorded
from wengert.tape.node import Node, Output, is_lifted, walk
from wengert.tape.tensor import Tensor, untracked, with_node

Residual = Callable[[Tensor], Any]


class _Equations:
    """The equations, to be put on the tape at their solution, and what they were there."""

    held = False

    def __init__(self, label: str, residual: Residual, run: Tensor, sources: list[Tensor]) -> None:
        self.label, self.residual, self.sources = label, residual, sources
        self.values = values_of(run, label)

    def pull(self, x: Tensor, g: Tensor) -> list[Any]:
        """The cotangents of what the equations depend on, for that of the solution."""
        recorded = is_grad_enabled() or is_lifted(g._array) or is_lifted(x._array)
        with enable_grad():
            before = untracked(x._array).requires_grad_() if x._node is None else x
            place: Tensor = _Hold.apply(self, before)
            run = residuals(self.residual(place))
            again = {source._node for source in _sources(run, before._node, place._node)}
            if again != {source._node for source in self.sources} or not np.array_equal(
                values_of(run, self.label), self.values, equal_nan=True
            ):
                raise RuntimeError(
                    f"{self.label}: what its function computes with has changed since it was "
                    "called: differentiate before, or give the function copies"
                )
            self.held = True
            try:
                jacobian = _rows(run, place, recorded)
                weight = wg.linalg.solve(wg.conj(jacobian.T), wg.reshape(g, (-1,)))
                seed = wg.reshape(-weight, run.shape)
                return list(grad(run, self.sources, seed, True, recorded, allow_unused=True))
            finally:
                self.held = False


class _Hold(Function):
    """The solution as the equations see it; their partial derivatives stop here."""

    @staticmethod
    def forward(ctx: Any, equations: _Equations, x: Tensor) -> Tensor:
        ctx.equations = equations
        return x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return None, None if ctx.equations.held else g

    @staticmethod
    def jvp(ctx: Any, _: Any, t: Any) -> Any:
        return t


class _Solution(Function):
    """The solution as a function of all that the equations depend on."""

    @staticmethod
    def forward(ctx: Any, equations: _Equations, x: Tensor, *sources: Tensor) -> Tensor:
        ctx.equations, result = equations, x.clone()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return None, None, *ctx.equations.pull(x, g)

    @staticmethod
    def jvp(ctx: Any, _: Any, t: Any, *sources: Any) -> Any:
        return t  # `solution` has moved it


def _rows(residual: Tensor, place: Tensor, recorded: bool) -> Tensor:
    """The Jacobian of the residual, a row for each equation."""
    n, rows = residual.size, []
    for i in range(n):
        unit = like_first([residual], np.reshape(np.eye(n)[i], residual.shape))
        seed = wg.astype(unit, residual.dtype)
        (row,) = grad(residual, place, seed, True, recorded, materialize_grads=True)
        rows.append(wg.reshape(row, (-1,)))  # type: ignore[arg-type]
    return wg.stack(rows)


def _sources(residual: Tensor, *own: Node | None) -> list[Tensor]:
    """Stand-ins for the Tensors that a run used, and that were there before its own."""
    start = max(node.number for node in own if node is not None)
    found: dict[int, Node] = {}
    for node in walk([residual._node], start + 1):
        for parent in node.parents:
            if parent is not None and parent.number <= start and parent not in own:
                at = node if isinstance(node, Output) else parent
                found[at.number] = at
    return [with_node(np.broadcast_to(_zero(n), n.shape), n) for n in found.values()]


def _zero(node: Node) -> Any:
    return np.zeros((), dtype_of(node.dtype).name)


def _leaf(given: Iterable[Any], x: Any) -> Tensor:
    return like_first(given, x).detach().requires_grad_()


def residuals(result: Any) -> Tensor:
    """What a user's function returns as a Tensor: one, or lists of some."""
    (found,) = operands(result)
    return found


def solution(label: str, residual: Residual, x: Any, given: Iterable[Any] = ()) -> Tensor:
    """The solution ``x`` of equations as a Tensor that has derivatives.

    Parameters
    ----------
    label : str
        What errors call the function.
    residual : callable
        ``residual(x)`` of a Tensor gives as many equations as ``x`` has elements.
    x : array
        The solution, by SciPy.
    given : iterable
        What says where Tensors are made.

    Raises `RuntimeError` if ``x`` does not solve them, or the Jacobian is singular.
    """
    given, x = list(given), np.asarray(x, dtype=np.float64)
    leaf = _leaf(given, x)
    if not is_grad_enabled():
        return leaf.detach()
    run = residuals(residual(leaf))
    sources = _sources(run, leaf._node)
    lifted = run._array if is_lifted(run._array) else None
    if not sources and lifted is None:
        return leaf.detach()
    if run.size != x.size:
        raise ValueError(
            f"{label}: {run.size} equations for {x.size} unknowns: a derivative needs as many"
        )
    matrix = values_of(_rows(run, leaf, False), label)
    try:
        step = np.linalg.solve(matrix, np.reshape(values_of(run, label), -1))
    except np.linalg.LinAlgError:
        step = np.full(1, np.nan)
    if not np.all(np.isfinite(step)) or np.abs(step).max(initial=0) > 1e-3 * (1 + np.abs(x).max()):
        raise RuntimeError(
            f"{label} has found no isolated solution, so that there is no derivative: SciPy has not "
            "converged, or the Jacobian is singular; begin elsewhere, or pass detached Tensors"
        )
    found = leaf.detach()
    constant = like_first(given, matrix)
    while lifted is not None:  # each step of Newton's method gives one more order
        with unrecorded():
            r = wg.reshape(residuals(residual(found)), (-1,))
            found = found - wg.reshape(wg.linalg.solve(constant, r), x.shape)
        lifted = getattr(lifted, "inner", None)
        lifted = lifted if is_lifted(lifted) else None
    if not sources:
        return untracked(found._array)
    return _Solution.apply(_Equations(label, residual, run, sources), found, *sources)  # type: ignore[no-any-return]


def gradient_of(function: Callable[[Tensor], Any]) -> Residual:
    """The gradient of a function that gives one number, on the tape."""

    def residual(x: Tensor) -> Tensor:
        with enable_grad():
            place = untracked(x._array).requires_grad_() if x._node is None else x
            value = wg.reshape(residuals(function(place)), ())
            (g,) = grad(value, place, create_graph=True, materialize_grads=True)
        assert g is not None
        return untracked(g._array) if x._node is None else g

    return residual


def is_tracked(result: Any) -> bool:
    """Whether what a user's function returned has a derivative by a Tensor of a closure."""
    if isinstance(result, list | tuple):
        return any(map(is_tracked, result))
    return tracked(result)
