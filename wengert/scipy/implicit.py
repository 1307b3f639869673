"""Solutions of equations, differentiated implicitly, to any order and in both modes.

A solution :math:`x` of :math:`r(x, p) = 0` moves with what the equations depend on by
:math:`dx = -J^{-1} r_p dp`, where :math:`J = r_x`. What they depend on is read off the tape, so
that Tensors in closures count, too.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

import wengert as wg
from wengert.backends import dtype_of
from wengert.ops.operands import operands
from wengert.scipy.naming import gives_tensors, like_first, plain, tensors_in, tracked, values_of
from wengert.tape.autograd import grad
from wengert.tape.callbacks import call_back
from wengert.tape.function import Function
from wengert.tape.grad_mode import enable_grad, following, is_grad_enabled, unrecorded
from wengert.tape.node import Node, Output, is_lifted, walk
from wengert.tape.sweep import leading_to, recorded_sweep, sweep
from wengert.tape.tensor import Tensor, untracked, with_node

Residual = Callable[[Tensor], Any]
CHANGED = (
    "{}: what its function computes with has changed since it was called: differentiate before, "
    "or give the function copies"
)


@contextmanager
def follow(*places: Any) -> Iterator[None]:
    """Where the values of places may not leave the tape, as in the functions of transforms."""
    numbers = {x._node.number for x in places if isinstance(x, Tensor) and x._node is not None}
    mark = SimpleNamespace(numbers=numbers, start=min(numbers, default=0))
    following.append(mark)
    try:
        yield
    finally:
        following.remove(mark)


class _Equations:
    """The equations, to be put on the tape at their solution, and what they were there."""

    def __init__(self, label: str, residual: Residual, run: Tensor, sources: list[Node]) -> None:
        self.label, self.residual, self.sources = label, residual, sources
        self.values = values_of(run, label)

    def pull(self, x: Tensor, g: Tensor) -> list[Any]:
        """The cotangents of what the equations depend on, for that of the solution."""
        recorded = is_grad_enabled() or is_lifted(g._array) or is_lifted(x._array)
        with enable_grad():
            place = untracked(x._array).requires_grad_() if x._node is None else x
            run, sources = put_on_tape(self.residual, place)
            jacobian = _rows(run, place, recorded)
            change = np.reshape(values_of(run, self.label) - self.values, -1)
            step = np.linalg.solve(values_of(jacobian, self.label), change)
            small = np.abs(step).max(initial=0) <= 1e-14 + 1e-8 * np.abs(values_of(x, "")).max()
            if set(sources) != set(self.sources) or not small:
                raise RuntimeError(CHANGED.format(self.label))
            weight = wg.linalg.solve(wg.conj(jacobian.T), wg.reshape(g, (-1,)))
            seed, targets = wg.reshape(-weight, run.shape), [*self.sources, cast(Node, place._node)]
            return pulled(run, seed, targets, recorded)[:-1]


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


def pulled(run: Tensor, g: Tensor, targets: list[Node], recorded: bool) -> list[Any]:
    """Cotangents of what a run used, of its own operations alone, or None."""
    numbers, node = {target.number for target in targets}, run._node
    wanted = leading_to(numbers, [cast(Node, node)])
    if node is None or node.number not in wanted:
        return [None] * len(targets)
    found = (recorded_sweep if recorded else sweep)(
        [(node, g if recorded else g._array)],
        keep=True,
        targets=numbers,
        wanted=wanted,
        stop_at_targets=True,
    )
    arrays = [found.get(target) for target in targets]
    return [x if x is None or isinstance(x, Tensor) else untracked(x) for x in arrays]


def _rows(run: Tensor, place: Tensor, recorded: bool) -> Tensor:
    """The Jacobian of the equations, a row for each."""
    rows = []
    for unit in np.eye(run.size):
        seed = wg.astype(like_first([run], np.reshape(unit, run.shape)), run.dtype)
        (row,) = pulled(run, seed, [cast(Node, place._node)], recorded)
        row = wg.zeros_like(untracked(place._array)) if row is None else row
        rows.append(wg.reshape(row, (-1,)))
    return wg.stack(rows)


def put_on_tape(residual: Residual, place: Tensor) -> tuple[Tensor, list[Node]]:
    """The equations at a place, and the nodes of other Tensors that they used."""
    start = wg.zeros((), requires_grad=True)._node.number  # type: ignore[union-attr]
    with follow(place):
        run, found = residuals(residual(place)), {}
    for node in (run._node, *walk([run._node], start)):
        for parent in node.parents if node is not None and node.number > start else (node,):
            if parent is not None and parent.number < start and parent is not place._node:
                # One of several results may have a node that is newer than its operation.
                at = cast(Node, node) if isinstance(node, Output) else parent
                found[at.number] = at
    return run, [*found.values()]


def _stand_in(node: Node) -> Tensor:
    """A Tensor that has a node, and nothing else of what it was."""
    zero = np.zeros((), dtype_of(node.dtype).name)
    return with_node(np.broadcast_to(zero, node.shape), node)


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
    run, sources = put_on_tape(residual, leaf)
    lifted = run._array if is_lifted(run._array) else None
    if not sources and lifted is None:
        return leaf.detach()
    if run.size != x.size:
        raise ValueError(
            f"{label}: {run.size} equations for {x.size} unknowns: a derivative needs as many"
        )
    matrix = values_of(_rows(run, leaf, is_lifted(run._array)), label)
    try:
        step = np.linalg.solve(matrix, np.reshape(values_of(run, label), -1))
    except np.linalg.LinAlgError:
        step = np.full(1, np.nan)
    size = np.abs(step).max(initial=0)
    near = size <= 1e-3 * (1 + np.abs(x).max())  # false for NaN, too
    if near and size > 1e-12 + 1e-3 * np.abs(x).max():  # as near 0, where another step tells
        with unrecorded():
            after = values_of(
                residuals(residual(like_first(given, x - np.reshape(step, x.shape)))), label
            )
        near = np.abs(after).max() <= 0.01 * np.abs(values_of(run, label)).max()
    if not near:
        raise RuntimeError(
            f"{label} has found no isolated solution, so that there is no derivative: SciPy has "
            "not converged, or the Jacobian is singular; begin elsewhere, or pass detached Tensors"
        )
    found = leaf.detach()
    constant = like_first(given, matrix)
    while lifted is not None:  # each step of Newton's method gives one more order
        with unrecorded():
            r = wg.reshape(residuals(residual(found)), (-1,))
            found = found - wg.reshape(wg.linalg.solve(constant, r), x.shape)
        lifted = getattr(lifted, "inner", None)
        lifted = lifted if is_lifted(lifted) else None
    if is_lifted(found._array):  # SciPy's values stay
        found = found + (leaf.detach() - like_first(given, values_of(found, label)))
    if not sources:
        return untracked(found._array)
    result: Tensor = _Solution.apply(
        _Equations(label, residual, run, sources), found, *map(_stand_in, sources)
    )
    return result


def gradient_of(function: Callable[[Tensor], Any]) -> Residual:
    """The gradient of a function that gives one number, on the tape."""

    def residual(x: Tensor) -> Tensor:
        with enable_grad():
            place = untracked(x._array).requires_grad_() if x._node is None else x
            with follow(place):
                value = wg.reshape(residuals(function(place)), ())
            (g,) = grad(value, place, create_graph=True, materialize_grads=True)
        assert g is not None
        return untracked(g._array) if x._node is None else g

    return residual


class Called:
    """A user's function as SciPy calls it: with Tensors if the program has some, or arrays.

    Attributes
    ----------
    tensors, answers, tracked : bool
        Whether it is called with Tensors, has returned some, and some that are tracked.
    """

    def __init__(
        self, label: str, function: Any, given: Any, at: int = 0, pair: Any = None
    ) -> None:
        self.label, self.function, self.given = label, function, given
        self.at, self.pair = at, pair is True
        self.tensors = self.answers = gives_tensors(given)
        self.tracked = False

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if self.tensors:
            x = like_first(self.given, np.array(args[self.at]))
            args = (*args[: self.at], x, *args[self.at + 1 :])
        result = call_back(self.function, *args, **keywords)
        found = tensors_in([result])
        self.answers, self.tracked = (
            self.answers or bool(found),
            self.tracked or any(map(tracked, found)),
        )
        if self.pair:
            return tuple([values_of(part, self.label) for part in result])
        return values_of(result, self.label)

    def other(self, function: Any) -> Any:
        """A derivative of the function, as SciPy calls it."""
        if not callable(function):
            return plain(function, self.label, "an option")
        return Called(self.label, function, self.given, self.at)

    def in_kind(self, x: Any) -> Any:
        """What SciPy has found in the kind of the program, where nothing is tracked."""
        return like_first(self.given, x) if self.answers else x

    def solved(self, x: Any, residual: Residual) -> Any:
        """The solution that SciPy has found, in the kind of the program, with derivatives."""
        return solution(self.label, residual, x, self.given) if self.tracked else self.in_kind(x)
