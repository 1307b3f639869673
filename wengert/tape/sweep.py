"""The sweep: cotangents from results back to what they were computed from."""

from _heapq import heappop, heappush  # imports faster than heapq
from collections.abc import Callable, Container, Iterable, Sequence
from operator import attrgetter
from typing import Any

from numpy import add, ndarray

from wengert.backends import namespaces
from wengert.backends.references import held_elsewhere
from wengert.tape.anomaly import detecting
from wengert.tape.grad_mode import enable_grad
from wengert.tape.hooks import eager, make_hooked
from wengert.tape.node import FREED, AccumulateGrad, Indexed, Node, Output, Parts, conform, walk
from wengert.tape.observers import observing

LARGE = 1 << 15  # elements from which an addition in place saves more time than asking who has them


def sweep(
    outputs: Sequence[tuple[Node, Any]],
    *,
    keep: bool,
    targets: Container[int] | None = None,
    wanted: Container[int] | None = None,
    stop_at_targets: bool = False,
    give: Callable[[Node, Any], None] | None = None,
) -> dict[Node, Any]:
    """Run the rules of the nodes that a cotangent reaches, in descending number.

    Returns the complete cotangents of the targets that were reached; None where ``give`` took them.

    A heap holds the numbers of the nodes that a cotangent has reached. The largest is due next:
    whatever could still add to its cotangent was recorded after it and has run.

    Parameters
    ----------
    outputs : sequence of (Node, cotangent)
        Where to start. Raw arrays run the rules plainly; Tensors run them recorded.
    keep : bool
        Whether nodes keep what they saved; else each releases it.
    targets : container of int, optional
        Numbers of the nodes whose cotangents are asked for; leaves and retained ones by default.
    wanted : container of int, optional
        Numbers of the nodes to visit, from `leading_to`; all by default.
    stop_at_targets : bool
        Whether nothing flows on from the targets, and their hooks are not run.
    give : callable, optional
        ``give(leaf, cotangent)`` accumulates the complete gradients of leaves with hooks after it.
    """
    due: list[int] = []
    reached: dict[int, list[Any]] = {}  # number -> [node, cotangent so far]
    arrived: dict[Node, Any] = {}
    flows: Iterable[tuple[Node, Any]] = outputs
    if observing and detecting() is not None:
        for node in ancestors(node for node, _ in outputs):
            if not isinstance(node, AccumulateGrad | Output):
                make_hooked(node)  # also if it was recorded without detection
    if give is not None and eager.data:  # type: ignore[attr-defined]  # faster than its `len`
        _schedule(outputs, reached, due, give)
    while True:
        for target, g in flows:
            _flow(target, g, reached, due)
        flows = ()
        if not due:
            break
        node, g = reached.pop(-heappop(due))
        is_target = (node.watch is not None) if targets is None else (node.number in targets)
        if type(node) is not Node and not (is_target and stop_at_targets):
            g = node.receive(g)
        if is_target:
            arrived[node] = g
            leads_on = wanted is None or any(p and p.number in wanted for p in node.parents)
            if stop_at_targets or not leads_on:
                continue  # its rules need not run; another sweep may use what it saved
        parents: tuple[Any, ...] = node.parents
        # `Node.flows` computes on the operands' device, where operators would not: `xp.elsewhere`.
        if type(node) is not Node or (xp := namespaces[type(g)]).elsewhere:
            if type(node) is Indexed and not namespaces[type(g)].records:
                _add_part(node, g, reached, due, wanted)
            else:
                flows = [(parents[at], more) for at, more in node.flows(g, wanted)]
            if not keep:
                node.saved = None
            continue
        # A parent's cotangent, by the rule, is conformed and added to its cell; the parent is due.
        # These are Node.flows and _flow once more, inlined: it is the hot loop.
        saved = node.saved
        if saved is None:
            raise RuntimeError(FREED)
        if xp.records:
            saved = xp.restore(saved, node)
        for position, rule, at, piece in node.plan.steps:
            parent = parents[position]
            number = parent.number
            if wanted is not None and number not in wanted:
                continue
            # Unpacking a slice costs as much as a small rule does; most rules need one value.
            more = rule(xp, g, saved[at]) if at is not None else rule(xp, g, *saved[piece])
            if more.dtype is not parent.dtype or more.shape != parent.shape:
                more = conform(more, parent)
            cell = reached.get(number)
            if cell is None:
                reached[number] = [parent, more]
                if type(parent) is not AccumulateGrad:
                    heappush(due, -number)
            elif type(more) is ndarray and type(cell[1]) is ndarray:
                own = more.size > LARGE and _is_own(cell[1])
                cell[1] = add(cell[1], more, cell[1]) if own else add(cell[1], more)
            else:
                cell[1] = _sum(cell[1], more)
        if not keep:
            node.saved = None
    # A plain `AccumulateGrad` is never due. Its cotangent is complete now.
    for node, g in reached.values():
        if (node.watch is not None) if targets is None else (node.number in targets):
            arrived[node] = g  # noqa: PERF403 -- a comprehension is one more call on Python 3.11
    return arrived


#: The sweep of ``create_graph=True``, which records what it computes.
recorded_sweep = enable_grad()(sweep)


def _flow(node: Node, g: Any, reached: dict[int, list[Any]], due: list[int]) -> None:
    """Add a cotangent to what has reached a node."""
    if g.dtype is not node.dtype or g.shape != node.shape:
        g = conform(g, node)
    cell = reached.get(node.number)
    if cell is None:
        reached[node.number] = [node, g]
        if type(node) is not AccumulateGrad:
            heappush(due, -node.number)
    elif type(g) is Parts:
        cell[1] = cell[1].merge(g)
    else:
        cell[1] = _sum(cell[1], g)


def _sum(x: Any, y: Any) -> Any:
    try:
        return namespaces[type(y)].add(x, y)  # a rule's `xp` may be another library's
    except TypeError:  # a batch of cotangents, and one for all of its members
        return namespaces[type(x)].add(x, y)


def _is_own(x: Any) -> bool:
    """Whether nothing but a cell, and this call, refers to an array's memory."""
    own = type(x) is ndarray and x.flags.owndata and x.flags.writeable
    return own and not held_elsewhere([x], 2)


class _Own(list[Any]):
    """A cell whose array belongs to the sweep, which may write into it."""

    __slots__ = ()


def _add_part(
    node: Indexed,
    g: Any,
    reached: dict[int, list[Any]],
    due: list[int],
    wanted: Container[int] | None,
) -> None:
    """Add the cotangent of ``x[key]`` to what has reached ``x``.

    The first one makes an array of zeros, into which the others are added in place, so that a loop
    over the parts of an array takes linear time.
    """
    saved = node.saved
    if saved is None:
        raise RuntimeError(FREED)
    parent: Any = node.parents[0]
    number = parent.number
    if wanted is not None and number not in wanted:
        return
    xp = namespaces[type(g)]
    _, key, shape = saved
    cell = reached.get(number)
    if cell is None:
        more = xp.scatter_add(g, key=key, shape=shape)
        if more.dtype is not parent.dtype:
            more = conform(more, parent)
        reached[number] = _Own((parent, more))
        if type(parent) is not AccumulateGrad:
            heappush(due, -number)
    elif type(cell) is _Own:
        cell[1] = xp.add_part(cell[1], g, key=key, own=xp.backend is not None)  # not lifted
    else:
        reached[number] = _Own((parent, xp.add_part(cell[1], g, key=key, own=False)))


class Delivery(Node):
    """A stop of the sweep, just below a leaf's oldest node, at which its cotangent is complete."""

    __slots__ = ("deliver",)

    deliver: Callable[[], None]

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        self.deliver()
        return []


def _schedule(
    outputs: Iterable[tuple[Node, Any]],
    reached: dict[int, list[Any]],
    due: list[int],
    give: Callable[[Node, Any], None],
) -> None:
    """Add stops to the sweep at which leaves with hooks are given their gradients."""
    oldest: dict[Any, int] = {}  # leaf -> number of the oldest node that it is an operand of
    for node in ancestors(node for node, _ in outputs):
        if node in eager:
            oldest.setdefault(node, node.number + 1)
        for parent in node.parents:
            if parent is not None and parent in eager:
                oldest[parent] = node.number
    for i, (leaf, number) in enumerate(oldest.items(), 1):

        def deliver(leaf: Any = leaf) -> None:
            cell = reached.get(leaf.number)
            if cell is not None and cell[1] is not None:
                g, cell[1] = cell[1], None
                leaf.deliver(leaf.receive(g), give)

        stop = Delivery()
        stop.deliver = deliver
        stop.number = number - i / (len(oldest) + 1)  # type: ignore[assignment]
        reached[stop.number] = [stop, None]
        heappush(due, -stop.number)


def ancestors(roots: Iterable[Node]) -> list[Node]:
    """Return the nodes that ``roots`` were computed from, and ``roots``, in descending number."""
    return sorted(walk(roots), key=attrgetter("number"), reverse=True)


def leading_to(targets: set[int], roots: Iterable[Node]) -> dict[int, Node]:
    """Return the nodes between ``roots`` and ``targets``, both included, by their numbers.

    Nodes older than the oldest target are not looked at: none of their ancestors can be one.
    """
    leading: dict[int, Node] = {}
    found: dict[int, Node] = {}
    stack: list[Node | None] = [*roots] if targets else []
    oldest = min(targets, default=0)
    while stack:  # `walk`, inlined: generators take twice as long here and below
        node = stack.pop()
        if node is not None and node.number >= oldest and node.number not in found:
            found[node.number] = node
            stack.extend(node.parents)
    for number in sorted(found):
        node = found[number]
        if number in targets:
            leading[number] = node
            continue
        for parent in node.parents:
            if parent is not None and parent.number in leading:
                leading[number] = node
                break
    return leading
