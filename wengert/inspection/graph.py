"""What is known of a graph's nodes and edges: values, constants, modules and cotangents."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

from wengert.backends import namespaces
from wengert.tape.node import AccumulateGrad, Node, Output, Parts, conform
from wengert.tape.observers import Observer
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor

Edges = dict[tuple[int, int], Any]


class Story(Observer):
    """What was observed while a function ran, by the numbers of its nodes."""

    def __init__(self) -> None:
        self.values: dict[int, Any] = {}  # raw arrays
        self.constants: dict[int, list[Tensor]] = {}  # the operands that are not tracked
        self.scopes: dict[int, str] = {}  # the path of the module that an operation ran in
        self.classes: dict[str, str] = {}  # of the modules, by their paths

    def operated(
        self, name: str, primitive: Primitive | None, inputs: list[Tensor], results: list[Tensor]
    ) -> None:
        for tensor in (*inputs, *results):
            if tensor._node is not None:
                self.values[tensor._node.number] = tensor._array
        scope = _scope.get()
        for result in results:
            node = result._node
            while node is not None and node.number not in self.scopes:
                if scope is not None:
                    self.scopes[node.number] = scope
                if not isinstance(node, Output):
                    self.constants[node.number] = [t for t in inputs if t._node is None]
                    break
                node = node.parents[0]


_scope: ContextVar[str | None] = ContextVar("wengert_drawing_scope", default=None)


@contextmanager
def scopes(module: Any, story: Story) -> Iterator[None]:
    """Give every submodule a ``forward`` that sets the scope, inside a ``with`` block."""
    before: list[tuple[dict[str, Any], Any]] = []
    missing = object()
    try:
        for path, one in () if module is None else module.named_modules():
            own = vars(one)
            story.classes[path] = type(one).__name__
            forward = one.forward
            before.append((own, own.get("forward", missing)))
            own["forward"] = _in_scope(path, forward)
        yield
    finally:
        for own, forward in reversed(before):
            if forward is missing:
                del own["forward"]
            else:
                own["forward"] = forward


def _in_scope(path: str, forward: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        token = _scope.set(path)
        try:
            return forward(*args, **kwargs)
        finally:
            _scope.reset(token)

    return call


def known_values(nodes: list[Node], tensors: list[Tensor], story: Story) -> dict[int, Any]:
    """The raw arrays of nodes that still exist, by the nodes' numbers."""
    found: dict[int, Any] = {}
    for node in nodes:
        watched = None if node.watch is None else node.watch()
        if watched is not None and watched._node is node:
            found[node.number] = watched._array
        for array, at in saved_arrays(node):
            owner = node if at == -1 else node.parents[at]
            if owner is not None and not owner.several:
                found.setdefault(owner.number, array)
    found.update(story.values)
    found.update((t._node.number, t._array) for t in tensors if t._node is not None)
    return found


def saved_arrays(node: Node) -> list[tuple[Any, int]]:
    """The arrays that a node has saved, each with the input's position, or -1 for the result."""
    plan = getattr(node, "plan", None)  # leaves, Functions and single results have none
    if plan is None or node.saved is None:
        return []
    return [
        (array, at)
        for array, at in zip(node.values(), plan.origins, strict=True)
        if isinstance(at, int) and hasattr(array, "dtype")
    ]


def cotangents(results: list[Tensor], nodes: list[Node], local: bool) -> Edges:
    """The cotangent on each edge, by the number of its node and the operand's position.

    The loss is the sum of the results, or for ``local`` each operation's own result.
    """
    edges: Edges = {}
    reached: dict[int, Any] = {}
    for result in results:
        seed = namespaces[type(result._array)].ones_like(result._array)
        _add(reached, result._node, seed)  # type: ignore[arg-type]
    for node in nodes:
        g = reached.get(node.number)
        if g is None or isinstance(node, AccumulateGrad):
            continue
        flows = _flows(node, g if type(g) is Parts else node.receive(g))
        for position, flow in flows:
            _add(reached, node.parents[position], flow)  # type: ignore[arg-type]
        for position, flow in _flows(node, _ones(g)) if local else flows:
            edges[node.number, position] = flow
    return edges


def _ones(g: Any) -> Any:
    """Ones like a cotangent."""
    if type(g) is Parts:
        return Parts(g, {i: _ones(item) for i, item in g.items.items()})  # type: ignore[arg-type]
    return namespaces[type(g)].ones_like(g)


def _flows(node: Node, g: Any) -> list[tuple[int, Any]]:
    if node.saved is None:
        raise RuntimeError(
            "the gradients can't be drawn: backward() has freed what they are computed from. Draw "
            "the graph before, or keep it with backward(retain_graph=True)"
        )
    return [
        (position, conform(flow, node.parents[position]))  # type: ignore[arg-type]
        for position, flow in node.flows(g)
    ]


def _add(reached: dict[int, Any], node: Node, g: Any) -> None:
    held = reached.get(node.number)
    if held is None:
        reached[node.number] = g
    elif type(g) is Parts:
        reached[node.number] = held.merge(g)
    else:
        reached[node.number] = namespaces[type(g)].add(held, g)
