"""Operations that users define: a forward and a backward function of Tensors."""

from typing import Any

from wengert.backends import dtype_of, namespaces
from wengert.tape.node import FREED, Node, Output, Parts, tick
from wengert.tape.recording import is_grad_enabled, recording, set_grad_enabled
from wengert.tape.tensor import Tensor, placed, untracked

__all__ = ["Function", "FunctionCtx"]


class FunctionCtx:
    """What a `Function`'s forward hands to its backward.

    Attributes of any name can be set on it. Tensors belong into `save_for_backward`, which keeps
    them without keeping the result alive, and gives them back at their place on the tape, so
    that the backward can itself be differentiated.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        For each argument of ``apply``, whether its gradient is needed.
    """

    needs_input_grad: tuple[bool, ...]

    def __init__(self) -> None:
        self._to_save: tuple[Tensor | None, ...] = ()
        self._saved: tuple[tuple[Any, Any], ...] = ()
        self._non_differentiable: tuple[Tensor, ...] = ()
        self._materialize = True
        self._node: Any = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep Tensors for the backward: arguments, results, or others, which are constants."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    "save_for_backward can only save Tensors, not "
                    f"{type(tensor).__name__}; set other values as attributes of ctx"
                )
        self._to_save = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that some results do not depend on the arguments differentiably."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether the backward sees zeros (the default) or None for an unused result."""
        self._materialize = bool(value)

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The Tensors that `save_for_backward` was given."""
        node = self._node
        if node is None:
            raise RuntimeError("saved_tensors can be read in backward alone")
        track = is_grad_enabled()
        return tuple(
            None if array is None else placed(array, node.place(origin) if track else None)
            for array, origin in self._saved
        )


class Function:
    """A differentiable operation of your own.

    Subclass it with two static methods and call ``apply``::

        class Cube(wg.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x * x

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g * 3 * x * x

        y = Cube.apply(x)

    ``forward`` runs unrecorded; it takes the arguments of ``apply``, Tensors or not, and returns
    a Tensor or a tuple of them. ``backward`` takes the cotangent of each result and returns that
    of each argument, None where there is none. When a derivative of a derivative is asked for,
    it runs recorded. As in PyTorch, ``forward`` may also leave out ``ctx``, if a third static
    method ``setup_context(ctx, inputs, output)`` fills it.
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result; called as ``forward(ctx, *args)``."""
        raise NotImplementedError("a Function needs a static method forward(ctx, *args)")

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        """Compute the cotangents of the arguments from those of the results."""
        raise NotImplementedError(
            "a Function needs a static method backward(ctx, *cotangents) to be differentiated"
        )

    setup_context: Any = None

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the operation and record it if an argument requires grad.

        Raises
        ------
        TypeError
            If ``forward`` returns something else than Tensors.
        """
        ctx = FunctionCtx()
        nodes = tuple(arg._node if isinstance(arg, Tensor) else None for arg in args)
        record = recording() and any(node is not None for node in nodes)
        ctx.needs_input_grad = tuple(record and node is not None for node in nodes)
        with set_grad_enabled(False):
            if cls.setup_context is None:
                result = cls.forward(ctx, *args, **kwargs)
            else:
                result = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, result)
        single = not isinstance(result, tuple | list)
        results: tuple[Any, ...] = (result,) if single else tuple(result)
        for value in results:
            if not isinstance(value, Tensor) and (single or value is not None):
                raise TypeError(
                    f"{cls.__name__}.forward should return Tensors, and returned "
                    f"{type(value).__name__}"
                )
        if record:
            outputs = _record(cls, ctx, args, nodes, results, single)
        else:
            outputs = tuple(None if r is None else untracked(r._array) for r in results)
        return outputs[0] if single else outputs


def _record(
    function: type[Function],
    ctx: FunctionCtx,
    args: tuple[Any, ...],
    nodes: tuple[Node | None, ...],
    results: tuple[Any, ...],
    single: bool,
) -> tuple[Any, ...]:
    node = FunctionNode(function, ctx, nodes)
    shapes = tuple(() if r is None else r.shape for r in results)
    dtypes = tuple(None if r is None else r._array.dtype for r in results)
    node.shape, node.dtype = (shapes[0], dtypes[0]) if single else (shapes, dtypes)
    fixed = {id(tensor) for tensor in ctx._non_differentiable}
    places = [
        None
        if r is None or id(r) in fixed or not r.dtype.inexact
        else node
        if single
        else Output(node, i)
        for i, r in enumerate(results)
    ]
    origins: dict[int, Any] = {id(r): (-1, i) for i, r in enumerate(results)}
    origins.update((id(arg), (i, 0)) for i, arg in enumerate(args) if isinstance(arg, Tensor))
    ctx._saved = tuple(
        (None, None) if t is None else (t._array, origins.get(id(t))) for t in ctx._to_save
    )
    ctx._to_save = ctx._non_differentiable = ()
    return tuple(
        None if r is None else placed(r._array, place)
        for r, place in zip(results, places, strict=True)
    )


class FunctionNode(Node):
    """One application of a `Function` on the tape."""

    __slots__ = ("function",)

    function: type[Function]

    def __init__(
        self, function: type[Function], ctx: FunctionCtx, parents: tuple[Node | None, ...]
    ) -> None:
        self.number = tick()
        self.function, self.parents = function, parents
        self.saved, self.watch = (ctx,), None

    def name(self) -> str:
        return self.function.__name__ + "Backward"

    @property
    def operation(self) -> str:
        return self.function.__name__

    def place(self, origin: Any) -> Node | None:
        """The node at which a saved Tensor is rebuilt."""
        if origin is None:
            return None
        position, index = origin
        if position >= 0:
            parent: Node | None = self.parents[position]
            return parent
        if self.several:
            return Output(self, index) if dtype_of(self.dtype[index]).inexact else None
        return self

    def flows(self, g: Any, wanted: Any = None) -> list[tuple[int, Any]]:
        if self.saved is None:
            raise RuntimeError(FREED)
        ctx: FunctionCtx = self.saved[0]
        given = g.items if type(g) is Parts else {0: g}
        like = next(iter(given.values()))
        recorded = isinstance(like, Tensor)
        ctx._node = self
        try:
            with set_grad_enabled(recorded and is_grad_enabled()):
                cotangents = self.function.backward(ctx, *self._cotangents(ctx, given, like))
        finally:
            ctx._node = None
        flows: list[tuple[int, Any]] = []
        for position, (parent, cotangent) in enumerate(
            zip(self.parents, self._answers(cotangents), strict=True)
        ):
            if parent is None or cotangent is None or (wanted and parent.number not in wanted):
                continue
            self._check(position, parent, cotangent)
            flows.append((position, cotangent if recorded else cotangent._array))
        return flows

    def _cotangents(
        self, ctx: FunctionCtx, given: dict[int, Any], like: Any
    ) -> list[Tensor | None]:
        """The argument list of ``backward``: a Tensor for each result."""
        shapes: tuple[Any, ...] = self.shape if self.several else (self.shape,)
        dtypes: tuple[Any, ...] = self.dtype if self.several else (self.dtype,)
        xp = None
        cotangents: list[Tensor | None] = []
        for i, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)):
            g = given.get(i)
            if g is None and ctx._materialize and dtype is not None:
                raw = like._array if isinstance(like, Tensor) else like
                xp = xp or namespaces[type(raw)]
                g = untracked(xp.zeros(shape, dtype=dtype, device=xp.device(raw)))
            cotangents.append(g if g is None or isinstance(g, Tensor) else untracked(g))
        return cotangents

    def _answers(self, cotangents: Any) -> tuple[Any, ...]:
        answers = cotangents if isinstance(cotangents, tuple | list) else (cotangents,)
        expected = len(self.parents)
        # As in PyTorch, None may stand in excess at the end.
        while len(answers) > expected and answers[-1] is None:
            answers = answers[:-1]
        if len(answers) != expected:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients "
                f"(expected {expected}, got {len(answers)})"
            )
        return tuple(answers)

    def _check(self, position: int, parent: Node, cotangent: Any) -> None:
        where = f"function {self.name()} returned an invalid gradient at index {position}"
        if not isinstance(cotangent, Tensor):
            raise TypeError(f"{where}: {type(cotangent).__name__} instead of a Tensor or None")
        got, expected = tuple(cotangent.shape), tuple(parent.shape)
        extra = len(got) - len(expected)
        if extra < 0 or any(n not in (1, m) for n, m in zip(expected, got[extra:], strict=True)):
            raise RuntimeError(
                f"{where} - got {list(got)} but expected shape compatible with {list(expected)}"
            )
        if not cotangent.dtype.inexact:
            raise TypeError(f"{where}: of dtype {cotangent.dtype.name}")
