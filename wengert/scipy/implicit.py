"""Solutions of equations, differentiated implicitly, to any order and in both modes.

A solution :math:`x` of :math:`r(x, p) = 0` moves with what the equations depend on by
:math:`dx = -J^{-1} r_p dp`, where :math:`J = r_x`. What they depend on is read off the tape, so
that Tensors in closures count, too.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

import wengert as wg
from wengert.backends import backend_of, dtype_of
from wengert.interpreters.lifted import bottom
from wengert.ops.operands import operands
from wengert.ops.operators import GIVEN
from wengert.scipy.naming import like_first, plain, tensors_in, tracked, values_of
from wengert.tape.autograd import grad
from wengert.tape.callbacks import call_back
from wengert.tape.function import Function, FunctionNode
from wengert.tape.grad_mode import (
    enable_grad,
    following,
    is_grad_enabled,
    tangents_flow,
    unrecorded,
)
from wengert.tape.hooks import unpack
from wengert.tape.node import Node, Output, is_lifted, tick, walk
from wengert.tape.observers import Observer, observed_by
from wengert.tape.sweep import leading_to, recorded_sweep, sweep
from wengert.tape.tensor import Tensor, untracked, with_node

Residual = Callable[[Tensor], Any]


# -- functions on the tape -------------------------------------------------------------------------


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


def as_tensor(result: Any) -> Tensor:
    """What a user's function returns as a Tensor: one, or lists of some."""
    return operands(result)[0]


def sources_of(run: Tensor, start: int, *places: Any) -> list[Node]:
    """The nodes before ``start`` that a run used, but those of places."""
    found, own = {}, {x._node for x in places if isinstance(x, Tensor)}
    for node in (run._node, *walk([run._node], start)):
        for parent in node.parents if node is not None and node.number > start else (node,):
            if parent is not None and parent.number < start and parent not in own:
                # One of several results may have a node that is newer than its operation.
                at = cast(Node, node) if isinstance(node, Output) else parent
                found[at.number] = at
    return [*found.values()]


def _prints(x: Any) -> Iterator[Any]:
    """What tells saved values apart: bytes of arrays; keys, axes, exponents; kinds of others."""
    if isinstance(x, tuple | list):
        for part in x:
            yield from _prints(part)
    elif hasattr(x, "dtype"):
        raw = bottom(x)
        array = raw if type(raw) is np.ndarray else np.asarray(backend_of(raw).to_numpy(raw))
        yield array.shape, array.tobytes()
    else:
        plain = x is None or isinstance(x, int | float | str | slice)
        yield repr(x) if plain else type(x)
        if known := getattr(x, "equations", None):  # of a solution within
            yield known.print()


def fingerprint(
    run: Tensor, *places: Any, start: int = 0, outside: Any = attrgetter("number")
) -> list[Any]:
    """The operations of a run at places, and all that derivatives are computed with."""
    at = {x._node: -i for i, x in enumerate(places, 1) if isinstance(x, Tensor)}
    found = []
    nodes = walk([run._node], start or places[0]._node.number)
    for i, node in enumerate(sorted(nodes, key=attrgetter("number")), 1 + len(places)):
        at.setdefault(node, -i)
        parents = [parent and at.get(parent, outside(parent)) for parent in node.parents]
        found.append((node.name(), *parents, *_prints(node.values())))
    return found


def pull(run: Tensor, g: Tensor, targets: list[Node], recorded: bool) -> list[Any]:
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


def gradient_of(function: Callable[[Tensor], Any]) -> Residual:
    """The gradient of a function that gives one number, on the tape."""

    def residual(x: Tensor) -> Tensor:
        with enable_grad():
            place = untracked(x._array).requires_grad_() if x._node is None else x
            with follow(place):
                value = wg.reshape(as_tensor(function(place)), ())
            (g,) = grad(value, place, create_graph=True, materialize_grads=True)
        assert g is not None
        return untracked(g._array) if x._node is None else g

    return residual


# -- solutions -------------------------------------------------------------------------------------


class _Unknown(Node):
    """The place of a run: a leaf, or the solution where the backward pass is differentiated."""

    __slots__ = ()

    operation = "unknown"

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        return [(at, g) for at in range(len(self.parents))]


class Equations:
    """The equations at a place, kept on the tape: what they are, and what they depend on."""

    def __init__(self, residual: Residual, x: Tensor) -> None:
        self.prints = 0
        self.number, start = tick(), tick()
        self.node = _Unknown((), (), x._array.shape, x._array.dtype)
        self.place = with_node(x._array, self.node)
        with follow(self.place):
            self.run: Any = as_tensor(residual(self.place))
        self.sources = sources_of(self.run, start, self.place)
        array = self.run._array
        self.lifted = array if is_lifted(array) else None
        # Sweeps of higher order go through these nodes, too, and free them.
        self.kept, self.within = list[tuple[Any, str, Any]](), list[Equations]()
        for node in walk([self.run._node], start):
            self.kept.append((node, "saved", node.saved))
            if isinstance(node, FunctionNode) and node.saved:
                context = node.saved[0]
                own = [(context, *pair) for pair in vars(context).items()]
                self.kept += [one for one in own if type(one[2]) is tuple]
                self.within += [x for x in [getattr(context, "equations", None)] if x]

    def print(self) -> int:
        """What tells equations apart, of all that they compute with."""
        if not self.prints:
            self.prints = hash(tuple(fingerprint(self.run, self.place, outside=lambda node: 0)))
        return self.prints

    @contextmanager
    def unpacking(self) -> Iterator[None]:
        """Unpack what is saved, once for all sweeps: each time a checkpoint would run again."""
        packed = self.kept
        self.kept = [(*at, saved and tuple(map(unpack, saved))) for *at, saved in packed]
        with ExitStack() as stack:
            for known in self.within:
                stack.enter_context(known.unpacking())
            try:
                self._restore()
                yield
            finally:
                self.kept = packed
                self._restore()

    def _restore(self) -> None:
        for owner, name, saved in self.kept:
            setattr(owner, name, saved)

    def rows(self, recorded: bool) -> Tensor:
        """The Jacobian, a row for each equation."""
        rows, run = [], self.run
        self._restore()
        for unit in np.eye(run.size):
            seed = wg.astype(like_first([run], np.reshape(unit, run.shape)), run.dtype)
            (row,) = pull(run, seed, [self.node], recorded)
            row = wg.zeros_like(untracked(self.place._array)) if row is None else row
            rows.append(wg.reshape(row, (-1,)))
        return wg.stack(rows)


class _Solution(Function):
    """The solution as a function of all that the equations depend on."""

    @staticmethod
    def forward(ctx: Any, equations: Any, x: Tensor, *sources: Tensor) -> Tensor:
        ctx.equations, result = equations, x.clone()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        known, (x,) = ctx.equations, ctx.saved_tensors
        recorded = is_grad_enabled() or is_lifted(g._array) or is_lifted(x._array)
        if x._node is not None:
            known.node.parents = (x._node,)
        with known.unpacking():
            weight = wg.linalg.solve(wg.conj(known.rows(recorded).T), wg.reshape(g, (-1,)))
            g = wg.reshape(-weight, known.run.shape)
            return None, None, *pull(known.run, g, [*known.sources, known.node], recorded)[:-1]

    @staticmethod
    def jvp(ctx: Any, _: Any, t: Any, *sources: Any) -> Any:
        return t  # `solution` has moved it


def solution(
    label: str, residual: Residual, x: Any, given: Iterable[Any] = (), matrix: Any = None
) -> Tensor:
    """The solution ``x`` of ``residual(x)``, by SciPy, as a Tensor that has derivatives.

    What is ``given`` says where Tensors are made; ``matrix`` is the Jacobian, if known. Raises
    `RuntimeError` if ``x`` does not solve the equations, or the Jacobian is singular.
    """
    given, x = list(given), np.asarray(x).astype(np.float64, casting="same_kind")
    found = like_first(given, x).detach()
    if not is_grad_enabled():
        # As inside another solver's steps of Newton's method, which move tangents.
        if not (tangents_flow() and is_lifted(as_tensor(residual(found))._array)):
            return found
        with enable_grad():
            return untracked(solution(label, residual, x, given)._array)
    known = Equations(residual, found)
    lifted = known.lifted
    matrix = values_of(known.rows(lifted is not None), label) if matrix is None else matrix
    if not _is_solution(residual, x, matrix, values_of(known.run, label), given, label):
        raise RuntimeError(
            f"{label} has found no isolated solution, so that there is no derivative: SciPy has "
            "not converged, or the Jacobian is singular; begin elsewhere, or pass detached Tensors"
        )
    while is_lifted(lifted):  # each step of Newton's method gives one more order
        with unrecorded():
            r = wg.reshape(as_tensor(residual(found)), (-1,))
            step = wg.linalg.solve(like_first(given, matrix), r)
            found = found - wg.reshape(step, x.shape)
        lifted = getattr(lifted, "inner", None)
    if is_lifted(found._array):  # SciPy's values stay
        found = found + like_first(given, x - values_of(found, label))
        known = Equations(residual, found) if known.sources else known
    if not (sources := known.sources):
        return untracked(found._array)
    # Tensors that have a node, and nothing else of what they were.
    zeros = [np.broadcast_to(np.zeros((), dtype_of(x.dtype).name), x.shape) for x in sources]
    result: Tensor = _Solution.apply(known, found, *map(with_node, zeros, sources))
    assert result._node is not None
    result._node.number = known.number  # before its equations, which depend on it
    return result


def _is_solution(residual: Any, x: Any, matrix: Any, values: Any, given: Any, label: str) -> bool:
    """Whether the next step of Newton's method is short; near 0, whether it is the last."""
    try:
        step = np.linalg.solve(matrix, np.reshape(values, -1))
    except np.linalg.LinAlgError:
        return False
    size, scale = np.abs(step).max(initial=0), np.abs(x).max()
    if not size <= 1e-3 * (1 + scale) or size <= 1e-12 + 1e-3 * scale:
        return bool(size <= 1e-3 * (1 + scale))  # false for NaN, too
    with unrecorded():
        after = as_tensor(residual(like_first(given, x - np.reshape(step, x.shape))))
    return bool(np.abs(values_of(after, label)).max() <= 0.01 * np.abs(values).max())


# -- SciPy's calls ---------------------------------------------------------------------------------


class Called(Observer):
    """A user's function as SciPy calls it: with Tensors if the program has some, or arrays.

    It notes whether it has returned Tensors, and tracked ones, and has compared tracked ones.
    """

    def __init__(
        self, label: str, function: Any, given: Any, at: int = 0, pair: Any = None
    ) -> None:
        self.label, self.function, self.given = label, function, given
        self.at, self.pair = at, pair is True
        self.abroad = like_first(given, 0.0).backend.name != "numpy"
        self.tensors = self.abroad or "wengert.numpy" in GIVEN or bool(tensors_in(*given))
        self.answers = self.tensors
        self.tracked = self.compared = False

    def operated(self, name: str, primitive: Any, inputs: Any, results: Any) -> None:
        lost = results and not any(x.dtype.inexact for x in results)
        self.compared = self.compared or (bool(lost) and tracked(*inputs))

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if self.tensors:
            if self.abroad:  # NumPy's numbers, as of time, would meet Tensors of another backend
                args = tuple([x.item() if isinstance(x, np.generic) else x for x in args])
            x = like_first(self.given, np.array(args[self.at]))
            args = (*args[: self.at], x, *args[self.at + 1 :])
        with observed_by(self):
            result = call_back(self.function, *args, **keywords)
        self.answers = self.answers or bool(tensors_in(result))
        self.tracked = self.tracked or tracked(result)
        if self.pair:
            return tuple([values_of(part, self.label) for part in result])
        return values_of(result, self.label)

    def on_tape(self, *args: Any) -> Tensor:
        """Call the function on places whose values may not leave the tape."""
        with follow(*args):
            return as_tensor(call_back(self.function, *args))

    def other(self, function: Any) -> Any:
        """A derivative of the function, as SciPy calls it."""
        if not callable(function):
            return plain(function, self.label, "an option")
        return Called(self.label, function, self.given, self.at)

    def in_kind(self, x: Any) -> Any:
        """What SciPy has found in the kind of the program, where nothing is tracked."""
        return like_first(self.given, x) if self.answers else x

    def solve(self, x: Any, residual: Residual, matrix: Any = None) -> Any:
        """The solution that SciPy has found, in the kind of the program, with derivatives."""
        if not (self.tracked or self.compared):  # what was only compared may move jumps
            return self.in_kind(x)
        return solution(self.label, residual, x, self.given, matrix)
