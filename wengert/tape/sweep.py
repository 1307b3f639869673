"""The reverse sweep: from a result's cotangent to those of everything it was computed from."""

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

from wengert.backends import namespaces
from wengert.tape.anomaly import detecting
from wengert.tape.hooks import Delivery, eager, supervise
from wengert.tape.node import FREED, AccumulateGrad, Node, Parts, conform
from wengert.tape.observers import observing

try:
    from _heapq import heappop, heappush  # which imports faster, and is all that is needed
except ImportError:  # not CPython
    from heapq import heappop, heappush


def sweep(
    outputs: Sequence[tuple[Node, Any]],
    *,
    keep: bool,
    targets: Container[int] | None = None,
    wanted: Container[int] | None = None,
    ends: Container[int] = (),
    give: Callable[[Node, Any], None] | None = None,
) -> list[tuple[Node, Any]]:
    """Run the rules of all ancestors of ``outputs``, in descending number.

    A heap of numbers holds the nodes that some cotangent has reached. The largest number is due
    next: whatever could still add to its cotangent was recorded after it and has run. So the
    tape's clock replaces both the recursion and the sort.

    Parameters
    ----------
    outputs : sequence of (Node, cotangent)
        Where to start. Raw arrays run the rules plainly; Tensors run them recorded.
    keep : bool
        Whether nodes keep what they saved. Otherwise each releases it once it has run.
    targets : container of int, optional
        Numbers of the nodes whose cotangents are asked for. By default those that are watched:
        leaves, and whatever retains its gradient.
    wanted : container of int, optional
        Numbers of the nodes to visit, from `leading_to`; all by default.
    ends : container of int
        Numbers of the targets from which nothing flows on, and whose hooks are not run.
    give : callable, optional
        ``give(leaf, cotangent)`` accumulates the gradients of leaves with hooks that run after
        that, as soon as they are complete.

    Returns
    -------
    list of (Node, cotangent)
        The complete cotangents of the targets that were reached; None for those given before.
    """
    due: list[int] = []
    reached: dict[int, list[Any]] = {}  # number -> [node, cotangent so far]
    arrived: list[tuple[Node, Any]] = []
    flows: Iterable[tuple[Node, Any]] = outputs
    if observing and detecting() is not None:
        supervise(ancestors(node for node, _ in outputs))
    if give is not None and eager:
        _schedule(outputs, reached, due, give)
    while True:
        for target, g in flows:
            _flow(target, g, reached, due)
        flows = ()
        if not due:
            break
        node, g = reached.pop(-heappop(due))
        if type(node) is not Node and node.number not in ends:
            g = node.receive(g)
        if node.watch is not None if targets is None else node.number in targets:
            arrived.append((node, g))
            if node.number in ends or (wanted is not None and not _leads_on(node, wanted)):
                continue  # its rules need not run, so what it saved is for another sweep
        if type(node) is not Node:
            flows = node.pull(g, wanted)
            if not keep:
                node.saved = None
            continue
        # What follows is Node.pull and _flow once more, inlined: it is the hot loop.
        saved = node.saved
        if saved is None:
            raise RuntimeError(FREED)
        xp = namespaces[type(g)]
        if not xp.plain:
            saved = xp.restore(saved, node)
        parents: tuple[Any, ...] = node.parents
        for position, rule, at, piece in node.plan.steps:
            parent = parents[position]
            number = parent.number
            if wanted is not None and number not in wanted:
                continue
            # Unpacking a slice costs as much as a small rule does; most rules need one value.
            more = rule(xp, g, saved[at]) if at >= 0 else rule(xp, g, *saved[piece])
            if more.dtype is not parent.dtype or more.shape != parent.shape:
                more = conform(more, parent)
            cell = reached.get(number)
            if cell is None:
                reached[number] = [parent, more]
                if type(parent) is not AccumulateGrad:
                    heappush(due, -number)
            else:
                # Not `xp`, which is another library's where an operation moved its operand.
                cell[1] = namespaces[type(more)].add(cell[1], more)
        if not keep:
            node.saved = None
    # Nothing flows on from leaves, so they have waited for all that reaches them.
    for node, g in reached.values():
        if node.watch is not None if targets is None else node.number in targets:
            arrived.append((node, g))
    return arrived


def _leads_on(node: Node, wanted: Container[int]) -> bool:
    return any(parent is not None and parent.number in wanted for parent in node.parents)


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
        cell[1] = namespaces[type(g)].add(cell[1], g)


def _schedule(
    outputs: Iterable[tuple[Node, Any]],
    reached: dict[int, list[Any]],
    due: list[int],
    give: Callable[[Node, Any], None],
) -> None:
    """Let the sweep stop where the cotangents of leaves with hooks are complete."""
    oldest: dict[Node, int] = {}  # leaf -> number of the oldest node that it is an operand of
    for node in ancestors(node for node, _ in outputs):
        if node.number in eager:
            oldest.setdefault(node, node.number + 1)
        for parent in node.parents:
            if parent is not None and parent.number in eager:
                oldest[parent] = node.number
    stops: dict[int, list[Node]] = {}
    for leaf, number in oldest.items():
        stops.setdefault(number, []).append(leaf)
    for number, leaves in stops.items():
        stop = Delivery(number - 0.5, leaves, reached, give)
        reached[stop.number] = [stop, None]
        heappush(due, -stop.number)


def ancestors(roots: Iterable[Node]) -> list[Node]:
    """Return the nodes that ``roots`` were computed from, and ``roots``, in descending number."""
    found: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.number not in found:
            found[node.number] = node
            stack.extend(parent for parent in node.parents if parent is not None)
    return [found[number] for number in sorted(found, reverse=True)]


def leading_to(targets: set[int], roots: Iterable[Node]) -> set[int]:
    """Return the numbers of the nodes between ``roots`` and ``targets``, both included.

    Nodes older than the oldest target are not looked at: none of their ancestors can be one.
    """
    oldest = min(targets)
    found: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.number >= oldest and node.number not in found:
            found[node.number] = node
            stack.extend(parent for parent in node.parents if parent is not None)
    leading = set(targets & found.keys())
    for number in sorted(found):
        if any(parent is not None and parent.number in leading for parent in found[number].parents):
            leading.add(number)
    return leading
