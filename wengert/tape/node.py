"""The entries of the tape: one for each recorded operation, and one for each leaf."""

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

from wengert.backends import dtype_of, namespaces
from wengert.backends.backend import rule_on_device
from wengert.names import GRAD_FN

#: The tape's clock. A node's parents were recorded before it, so descending numbers are a
#: topological order; ``next`` on a C iterator is atomic, so threads share one clock.
tick: Callable[[], int] = count(1).__next__

FREED = (
    "Trying to backward through the graph a second time, but the buffers have already been freed. "
    "Specify retain_graph=True when calling backward the first time."
)


def backward_name(name: str) -> str:
    """The name in ``grad_fn`` of an operation of a name."""
    words = name.replace(".", "_").split("_")
    return GRAD_FN.get(name) or "".join([word.capitalize() for word in words])


class Node:
    """One recorded operation: the ``grad_fn`` of its result.

    Calling a node with the cotangent of its result gives the cotangents of its inputs, computed
    by recorded operations, so that they can be differentiated again.

    Attributes
    ----------
    number : int
        When it was recorded: parents have smaller numbers.
    plan : Plan
        The primitive, and which of its rules run.
    parents : tuple of (Node or None)
        For each input, the node that it came from; None for an input that needs no gradient.
    saved : tuple or None
        The raw values that the rules asked for; None once they are released.
    shape, dtype
        Of the result, as raw values: what its cotangent must have.
    watch : weakref or None
        The Tensor whose ``.grad`` takes this node's cotangent: a leaf, or one that retains it.
    extra : Extra
        Set on the nodes that `wengert.tape.hooks.Hooked` is the class of, and on no others.

    Examples
    --------
    >>> x = wg.tensor(2.0, requires_grad=True)
    >>> y = wg.exp(x)
    >>> y.grad_fn.name()
    'ExpBackward0'
    >>> y.grad_fn(wg.tensor(1.0))  # one step of the chain rule
    tensor(7.3891, grad_fn=<MulBackward0>)
    """

    __slots__ = (
        *("__weakref__", "dtype", "extra", "number", "parents", "plan", "saved", "shape"),
        "watch",
    )

    number: int
    plan: Any
    parents: tuple["Node | None", ...]
    saved: tuple[Any, ...] | None
    shape: Any
    dtype: Any
    watch: Any
    extra: Any

    def __init__(
        self, parents: tuple[Any, ...] = (), saved: Any = (), shape: Any = (), dtype: Any = None
    ) -> None:
        self.number = tick()
        self.parents, self.saved, self.watch = parents, saved, None
        self.shape, self.dtype = shape, dtype

    def receive(self, g: Any) -> Any:
        """Return the complete cotangent of this node's result as hooks on the Tensor leave it."""
        return g

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        """Return positions of parents with the cotangents that flow to them from this node's ``g``.

        The type of ``g``, an array or a Tensor, decides which interpreter runs the rules.
        ``wanted`` has the numbers of the parents to answer for; all of them by default.
        """
        return self._run(namespaces[type(g)], g, wanted)

    def values(self) -> tuple[Any, ...]:
        """What was saved, as the rules take it."""
        if self.saved is None:
            raise RuntimeError(FREED)
        return self.saved

    def _run(self, xp: Any, g: Any, wanted: Any) -> list[tuple[int, Any]]:
        saved = self.values()
        if xp.records:
            saved = xp.restore(saved, self)
        parents, plan = self.parents, self.plan
        if plan.shared is not None:
            g = plan.common(xp, g, saved)
        return [
            (position, rule_on_device(xp, rule)(xp, g, *saved[piece]))
            for position, rule, _, piece in plan.steps
            if wanted is None or parents[position].number in wanted
        ]

    def __call__(self, *cotangents: Any) -> Any:
        """The cotangents of the inputs, from the cotangent of each result, a Tensor.

        None where an input needs none; alone if there is one input, else a tuple.
        """
        g = self._seed(cotangents)
        flows: list[Any] = [None] * len(self.parents)
        for at, cotangent in self.flows(g):
            flows[at] = conform(cotangent, self.parents[at])  # type: ignore[arg-type]
        return flows[0] if len(flows) == 1 else tuple(flows)

    def _seed(self, cotangents: tuple[Any, ...]) -> Any:
        several = self.several
        expected = len(self.dtype) if several else 1
        if len(cotangents) != expected:
            raise TypeError(f"{self.name()} takes {expected} cotangents, not {len(cotangents)}")
        if not several:
            check_cotangent(cotangents[0], self)
            return cotangents[0]
        given = {i: g for i, g in enumerate(cotangents) if g is not None}
        for i, g in given.items():
            check_cotangent(g, Output(self, i))
        return Parts(self, given)

    def name(self) -> str:
        """The operation's name on PyTorch's side, such as ``"MulBackward0"``."""
        return f"{backward_name(self.operation)}Backward0"

    @property
    def several(self) -> bool:
        """Whether the operation has several results: `shape` and `dtype` are tuples of theirs."""
        return isinstance(self.dtype, tuple)

    @property
    def operation(self) -> str:
        """The operation's name in the standard, such as ``"multiply"``."""
        return str(self.plan.primitive.name)

    @property
    def next_functions(self) -> "tuple[tuple[Node | None, int], ...]":
        """For each input, the node that it came from and which of that node's results it is."""
        return tuple(
            (parent.parents[0], parent.index) if isinstance(parent, Output) else (parent, 0)
            for parent in self.parents
        )

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


def walk(
    roots: "Iterable[Node | None]", since: int = 0, seen: set[int] | None = None
) -> "Iterator[Node]":
    """Each node that ``roots`` were computed from, and ``roots``, once, in no order.

    Nodes with numbers below ``since``, or in ``seen``, are left out with all that leads to them.
    """
    stack, seen = [*roots], set() if seen is None else seen
    while stack:
        node = stack.pop()
        if node is not None and node.number >= since and node.number not in seen:
            seen.add(node.number)
            yield node
            stack.extend(node.parents)


def conform(g: Any, node: Node) -> Any:
    """Give a cotangent, or a tangent, the shape and dtype of the value it belongs to.

    Undoes the broadcasting of an operand (the adjoint of copying is summing) and its promotion
    to another dtype: nothing else undoes either. A cotangent of fewer elements is broadcast.
    """
    if g.shape != node.shape:
        xp = namespaces[type(g)]
        extra = len(g.shape) - len(node.shape)
        axes = tuple(range(extra)) + tuple(
            i + extra
            for i, n in enumerate(node.shape)
            if i + extra >= 0 and n == 1 != g.shape[i + extra]
        )
        if extra < 0 or not axes:
            g = xp.broadcast_to(g, node.shape)
        else:
            g = xp.sum(g, axis=axes, keepdims=True)
            if extra:
                g = xp.reshape(g, node.shape)
    if g.dtype != node.dtype:
        xp = namespaces[type(g)]
        if dtype_of(g.dtype).complex and not dtype_of(node.dtype).complex:
            g = xp.real(g)
        if g.dtype != node.dtype:
            g = xp.astype(g, node.dtype)
    return g


class Indexed(Node):
    """The node of ``x[key]`` without index arrays.

    Its rule gives a cotangent of the whole of ``x``. The sweep leaves that out where another has
    reached ``x`` already, and adds this node's own cotangent at ``key``.
    """

    __slots__ = ()


class Leaf(Node):
    """A node without parents, at which a sweep ends."""

    __slots__ = ()

    operation = "leaf"

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        return []

    def name(self) -> str:
        return type(self).__name__.removeprefix("Hooked")


#: The `Marks` of each `Function` whose forward runs now, in any thread.
running_forwards: list[Any] = []


def mark(tensor: Any) -> None:
    """Tell the running forwards of a Tensor that is recorded, as under `enable_grad`."""
    for marks in tuple(running_forwards):
        marks.add(tensor)


class Inside(Node):
    """The node of a Tensor that a `Function`'s forward computed, where nothing is recorded.

    Its parents are the nodes that the Tensor depends on, so that a sweep to these finds it: the
    Tensor was used in what is differentiated, and its own derivative is not known.
    """

    __slots__ = ("error",)

    operation = "inside"
    error: Exception

    def __init__(self, error: Exception, parents: tuple[Any, ...], shape: Any, dtype: Any) -> None:
        super().__init__(parents, (), shape, dtype)
        self.error = error

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        raise self.error.with_traceback(None)


class AccumulateGrad(Leaf):
    """The node of a leaf: its cotangent is added to the leaf's ``.grad``.

    Examples
    --------
    >>> x = wg.tensor(3.0, requires_grad=True)
    >>> y = x * x
    >>> leaf, _ = y.grad_fn.next_functions[0]
    >>> leaf.name(), leaf.variable is x
    ('AccumulateGrad', True)
    """

    __slots__ = ()

    @property
    def variable(self) -> Any:
        """The leaf, or None once it is gone: this node does not keep it alive."""
        return None if self.watch is None else self.watch()


class Parts:
    """The cotangents of some of a node's several results: what its `Output` nodes send it."""

    __slots__ = ("dtype", "items", "shape")

    def __init__(self, node: Node, items: dict[int, Any]) -> None:
        self.items = items
        self.shape, self.dtype = node.shape, node.dtype  # Parts always conform

    def merge(self, other: "Parts") -> "Parts":
        items = dict(self.items)
        for i, g in other.items.items():
            # A rule that saved a result gives it another `Output`, so one may come twice.
            items[i] = namespaces[type(g)].add(items[i], g) if i in items else g
        return Parts(self, items)  # type: ignore[arg-type]


class Several(Node):
    """A recorded operation with several results: its shape and dtype are tuples of theirs."""

    __slots__ = ()

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        like = next(iter(g.items.values()))
        xp = namespaces[type(like)]
        return self._run(xp, tuple(map(g.items.get, range(len(self.dtype)))), wanted)


class Output(Node):
    """One result of an operation that has several."""

    __slots__ = ("index",)

    index: int

    def __init__(self, parent: Node, index: int) -> None:
        super().__init__((parent,), (), parent.shape[index], parent.dtype[index])
        self.index = index

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        return [(0, Parts(self.parents[0], {self.index: g}))]  # type: ignore[arg-type]

    def name(self) -> str:
        return self.parents[0].name()  # type: ignore[union-attr]

    @property
    def operation(self) -> str:
        return f"result {self.index}"


def is_lifted(array: Any) -> bool:
    """Whether a raw array has another inside: `wengert.interpreters.lifted`."""
    return hasattr(array, "bottom")


def recorded_by(result: Node) -> Node:
    """The node of the operation that gave a result, of the result's own node."""
    return result.parents[0] if isinstance(result, Output) else result  # type: ignore[return-value]


def constant_beside(g: Any, array: Any) -> Any:
    """A raw cotangent that user code made, lifted as a constant where the sweep's arrays are.

    The sweep adds it to others by its namespace, and a library's own takes no lifted arrays.
    """
    if is_lifted(array) and not is_lifted(g):
        return array.constant(g)
    return g


def check_cotangent(g: Any, node: Node) -> None:
    """Raise if ``g`` cannot be the cotangent of ``node``'s result."""
    shape, dtype = node.shape, node.dtype
    if not hasattr(g, "shape") or not hasattr(g, "dtype"):
        raise TypeError(f"a gradient should be a Tensor, not {type(g).__name__}")
    if g.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: the gradient has shape {tuple(g.shape)} and the output of "
            f"{node.operation} has shape {tuple(shape)}"
        )
    if dtype_of(g.dtype).complex and not dtype_of(dtype).complex:
        raise RuntimeError(
            f"the gradient is {dtype_of(g.dtype).name} and the output of {node.operation} is "
            f"{dtype_of(dtype).name}: the imaginary part would be lost; give its real part"
        )
    if not dtype_of(g.dtype).inexact:
        raise TypeError(f"a gradient should be floating or complex, not {dtype_of(g.dtype).name}")
