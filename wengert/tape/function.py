"""Operations that users define: a forward and a backward function of Tensors."""

from collections.abc import Iterable
from contextlib import nullcontext
from operator import attrgetter
from typing import Any

from wengert.backends import BackendError, dtype_of, namespaces
from wengert.tape.grad_mode import is_grad_enabled, modes, recording, set_modes, unrecorded
from wengert.tape.hooks import hold, mode_of, release
from wengert.tape.node import (
    FREED,
    AccumulateGrad,
    Inside,
    Node,
    Output,
    Parts,
    constant_beside,
    forwards,
    mark,
    tick,
    zeros_beside,
)
from wengert.tape.observers import inside_function, observing
from wengert.tape.record import Marks, observe, off_tape
from wengert.tape.tensor import IN_PLACE_ON_LEAF, Tensor, assign, placed, untracked

#: Where a saved Tensor came from: the position of an argument and 0, or -1 and that of a result.
Origin = tuple[int, int] | None


class FunctionCtx:
    """What a `Function`'s forward hands to its backward and its jvp.

    Attributes of any name can be set on it. Tensors belong into `save_for_backward`, which keeps
    them without keeping the result alive, and gives them back with their own nodes, so
    that the backward can itself be differentiated.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        For each argument of ``apply``, whether its gradient is needed: in the forward, by any
        derivative; in the backward, by the one that is computed.
    """

    needs_input_grad: tuple[bool, ...]

    def __init__(self) -> None:
        self._backward: tuple[Any, ...] = ()
        self._forward: tuple[Any, ...] = ()
        self._saved: tuple[tuple[Any, Origin, Node | None], ...] = ()
        self._marked: tuple[Tensor, ...] = ()
        self._dirty: tuple[Tensor, ...] = ()
        self._materialize = True
        self._node: Any = None
        self._given: tuple[Tensor | None, ...] | None = None
        self._varies = False

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep Tensors for the backward: arguments, results, or constants.

        Each is kept with the value that it has now. A Tensor that the forward computed and does
        not return has no derivative: where the backward is differentiated by it, that is an error.
        """
        self._backward = _kept(tensors, "save_for_backward")

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep Tensors for the jvp, if these are others than `save_for_backward` keeps."""
        self._forward = _kept(tensors, "save_for_forward")

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that some results do not depend on the arguments differentiably."""
        self._marked = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say that arguments were changed in place: the caller's Tensors become the results.

        They have to be returned, too. An argument that is changed in place without this is an
        error. As in any operation in place, the Tensor object takes a new value, and what was
        computed from the old one is not affected; and a leaf that requires grad is an error
        outside of `no_grad`.
        """
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether backward and jvp see zeros (the default) or None where nothing flows."""
        self._materialize = bool(value)

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The Tensors that were saved: in a jvp, by `save_for_forward` if that was called."""
        if self._given is None:
            node = self._node
            if node is None:
                raise RuntimeError("saved_tensors can be read only in backward and jvp")
            track = is_grad_enabled()
            self._given = tuple(
                None
                if held is None
                else placed(release(held), node.node_at(*at) if track else None)
                for held, *at in self._saved
            )
        return self._given


def _kept(tensors: tuple[Any, ...], method: str) -> tuple[Any, ...]:
    for tensor in tensors:
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"{method} can only save Tensors, not {type(tensor).__name__}; set other values "
                "as attributes of ctx"
            )
    return tuple(None if x is None else (x, placed(x._array, x._node)) for x in tensors)


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

            @staticmethod
            def jvp(ctx, t):
                (x,) = ctx.saved_tensors
                return t * 3 * x * x

        y = Cube.apply(x)

    ``forward`` runs unrecorded; it takes the arguments of ``apply``, Tensors or not, and returns
    a Tensor or a tuple of them, in which None may stand. ``backward`` takes the cotangent of each
    result and returns that of each argument, None where there is none. When a derivative of a
    derivative is asked for, it runs recorded. As in PyTorch, ``forward`` may also leave out
    ``ctx``, if a third static method ``setup_context(ctx, inputs, output)`` fills it.

    ``jvp``, which forward mode needs, takes a tangent for each argument, None for those that are
    not floating Tensors, and returns that of each result. Tensors inside of lists or dictionaries
    are constants.

    Examples
    --------
    >>> class Cube(wg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x * x * g
    >>> wg.grad(Cube.apply)(2.0)
    12.0
    >>> wg.grad(wg.grad(Cube.apply))(2.0)
    12.0
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

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Compute the tangents of the results from those of the arguments."""
        raise NotImplementedError(
            "a Function needs a static method jvp(ctx, *tangents) to be differentiated in forward "
            "mode: its backward gives no tangents"
        )

    setup_context: Any = None

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the operation and record it if an argument requires grad.

        Raises
        ------
        TypeError
            If ``forward`` returns something else than Tensors.
        RuntimeError
            If ``forward`` changed an argument in place and did not say so.
        """
        if not observing:
            return _Call(cls, args, kwargs).results()
        with inside_function():
            results = _Call(cls, args, kwargs).results()
        observe(cls.__name__, None, (*args, *kwargs.values()), results)
        return results


class _Call:
    """One application of a `Function`, at one level of forward mode."""

    def __init__(self, function: type[Function], args: tuple[Any, ...], kwargs: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.arrays = [arg._array if isinstance(arg, Tensor) else None for arg in args]
        self.nodes = tuple(arg._node if isinstance(arg, Tensor) else None for arg in args)
        self.given = self.nodes  # which the arguments have again when the forward has run
        self.marks: Marks | None = None
        self.stand_ins: list[tuple[int, Tensor]] = []  # for arguments with tangents

    def results(self) -> Any:
        """What `Function.apply` returns."""
        args = self.args
        results = self.run((False,) * len(args))
        leaf = any(isinstance(args[at]._node, AccumulateGrad) for at in self.dirty.values())
        if leaf and recording():
            raise RuntimeError(IN_PLACE_ON_LEAF)
        outputs = tuple(
            assign(args[self.dirty[i]], r) if i in self.dirty else r for i, r in enumerate(results)
        )
        return outputs[0] if self.single else outputs

    def run(self, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        """Compute the results, with tangents if arguments have them, and record the operation.

        ``needs`` tells of which arguments an inner level needs the gradient.
        """
        nodes = self.nodes
        record = recording() and any(node is not None for node in nodes)
        if record:
            needs = tuple(n or p is not None for n, p in zip(needs, nodes, strict=True))
        # The innermost transform that follows an argument; forward mode, if it carries tangents.
        followed = [a for a in self.arrays if hasattr(a, "level")]
        top = max(followed, key=attrgetter("level"), default=None)
        if top is not None and not hasattr(top, "tangent") and any(map(_has_tangent, self.arrays)):
            raise NotImplementedError(
                f"{self.function.__name__} inside of a batch cannot be differentiated in forward "
                "mode: compute the Jacobian without batching"
            )
        if not _has_tangent(top):
            self.marks = self.marks or (Marks(self.function.__name__, False) if record else None)
            results = self._forward(needs)
        elif recording() is False:
            results = self._still(needs)
        else:
            results = self._pushed(top, needs)
            self.ctx._varies = any(map(varies, self.arrays))
        if not record:
            fixed, given = self.fixed, self.given
            return tuple(
                None if r is None else off_tape(r._array, None, () if i in fixed else given)
                for i, r in enumerate(results)
            )
        node = FunctionNode(self.function, self.ctx, nodes)
        shapes = tuple(() if r is None else r.shape for r in results)
        dtypes = tuple(None if r is None else r._array.dtype for r in results)
        node.shape, node.dtype = (shapes[0], dtypes[0]) if self.single else (shapes, dtypes)
        self.ctx._saved = tuple(
            (None, None, None)
            if kept is None
            else (hold(self._array(kept, results)), kept[1], kept[0]._node)
            for kept in self.backward
        )
        recorded = tuple(
            None
            if r is None
            else placed(r._array, None)
            if i in self.fixed
            else placed(r._array, node if self.single else Output(node, i))
            for i, r in enumerate(results)
        )
        for tensor in recorded if forwards else ():
            mark(tensor)
        return recorded

    def _array(self, kept: tuple[Any, Origin], results: tuple[Any, ...]) -> Any:
        """The array that was saved, as this level has it."""
        own, origin = kept
        if origin is None:
            return own._array
        return self.arrays[origin[0]] if origin[0] >= 0 else results[origin[1]]._array

    # -- without tangents --------------------------------------------------------------------

    def _forward(self, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        function, args = self.function, self.args
        ctx = self.ctx = FunctionCtx()
        ctx.needs_input_grad = needs
        before = modes()
        try:
            set_modes(False, before[1])  # in a quarter of the time of `set_grad_enabled`
            with self.marks or nullcontext():
                given = (ctx, *args) if function.setup_context is None else args
                result = function.forward(*given, **self.kwargs)
                if function.setup_context is not None:
                    function.setup_context(ctx, args, result)
            self.single = not isinstance(result, tuple | list)
            results: tuple[Any, ...] = (result,) if self.single else tuple(result)
            for value in results:
                if not isinstance(value, Tensor) and (self.single or value is not None):
                    raise TypeError(
                        f"{function.__name__}.forward should return Tensors, and returned "
                        f"{type(value).__name__}"
                    )
            self._settle(results)
            return tuple(None if r is None else untracked(r._array) for r in results)
        finally:
            set_modes(*before)
            # `results` changes the caller's Tensors, once the operation is recorded.
            self._hold(self.arrays)

    def _hold(self, arrays: list[Any]) -> None:
        """Let the arguments have these arrays, and their own nodes."""
        for arg, array, node in zip(self.args, arrays, self.given, strict=True):
            if array is not None:
                arg._array, arg._node = array, node

    def _settle(self, results: tuple[Any, ...]) -> None:
        """Find out what was marked and saved: an argument, a result, or neither."""
        ctx, args, name = self.ctx, self.args, self.function.__name__
        positions = {id(arg): i for i, arg in enumerate(args) if isinstance(arg, Tensor)}
        changed = [i for i in positions.values() if args[i]._array is not self.arrays[i]]
        returned = {id(r): i for i, r in enumerate(results) if r is not None}
        self.dirty: dict[int, int] = {}
        for tensor in ctx._dirty:
            if id(tensor) not in positions:
                raise RuntimeError(f"{name}.forward marked a Tensor as dirty that is no argument")
            if id(tensor) not in returned:
                raise RuntimeError(
                    f"Some elements marked as dirty during the forward method of {name} were not "
                    "returned as output. The inputs that are modified inplace must all be outputs "
                    "of the Function."
                )
            self.dirty[returned[id(tensor)]] = positions[id(tensor)]
        for i in changed:
            if i not in self.dirty.values():
                raise RuntimeError(
                    f"{name}.forward changed its argument {i} in place: call "
                    f"ctx.mark_dirty with it and return it, or compute a new Tensor"
                )
        marked = {id(tensor) for tensor in ctx._marked}
        self.fixed = frozenset(
            i for i, r in enumerate(results) if r is not None and (
                id(r) in marked or not r.dtype.inexact
            )
        )  # fmt: skip

        def origin(tensor: Tensor, kept: Tensor) -> Origin:
            at = positions.get(id(tensor))
            if at is not None and kept._array is self.arrays[at]:
                return at, 0
            at = returned.get(id(tensor))
            return (-1, at) if at is not None and kept._array is tensor._array else None

        def entries(kept: Iterable[Any]) -> tuple[Any, ...]:
            return tuple(None if k is None else (k[1], origin(*k)) for k in kept)

        self.backward = entries(ctx._backward)
        self.forward = entries(ctx._forward) or self.backward
        ctx._backward = ctx._forward = ctx._marked = ctx._dirty = ()

    def _still(self, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        """Results under `no_grad`, to which arguments with tangents are constants."""
        followed = self.arrays
        self.arrays = [getattr(a, "detached", lambda a=a: a)() for a in followed]
        try:
            self._hold(self.arrays)
            return self._forward(needs)
        finally:
            self._hold(followed)

    # -- with tangents -----------------------------------------------------------------------

    def _pushed(self, top: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        """Results at one level of forward mode: from the primals, and the jvp of the tangents."""
        dual, level = type(top), top.level
        marks = self.marks = self.marks or Marks(self.function.__name__, True)
        primals: list[Any] = []
        tangents: list[Tensor | None] = []
        for arg, array in zip(self.args, self.arrays, strict=True):
            if array is None or type(array) is not dual or array.level != level:
                primals.append(arg)
                tangents.append(None)
            else:
                node = arg._node or Inside(marks, (), array.shape, array.dtype)
                primals.append(placed(array.inner, node))
                tangents.append(None if array.tangent is None else untracked(array.tangent))
        inside = _Call(self.function, tuple(primals), self.kwargs)
        inside.nodes, inside.marks = (None,) * len(primals), marks  # this level records them
        results = inside.run(needs)
        self.single, self.dirty, self.fixed = inside.single, inside.dirty, inside.fixed
        self.backward, self.forward = inside.backward, inside.forward
        self.ctx = inside.ctx
        if all(t is None for t in tangents):
            return results
        answers = self._tangents(inside, results, tangents)
        marks.lose(top, [e[0] for e in (*self.backward, *self.forward) if e is not None], primals)
        # What the user has kept of the arguments has their tangents, as they have.
        self.stand_ins = inside.stand_ins + [
            (i, x) for i, x in enumerate(primals) if isinstance(x, Tensor) and x is not self.args[i]
        ]
        for i, tensor in self.stand_ins:
            tensor._array, tensor._node = self.arrays[i], self.nodes[i]
        return tuple(
            r
            if r is None or i in self.fixed
            else untracked(dual(r._array, None if t is None else t._array, level))
            for i, (r, t) in enumerate(zip(results, answers, strict=True))
        )

    def _tangents(
        self, inside: "_Call", results: tuple[Any, ...], tangents: list[Tensor | None]
    ) -> list[Tensor | None]:
        """The tangents that jvp answers, checked."""
        ctx = inside.ctx
        if ctx._materialize:
            tangents = [
                untracked(namespaces[type(x._array)].zeros_like(x._array))
                if t is None and isinstance(x, Tensor) and x.dtype.inexact
                else t
                for x, t in zip(inside.args, tangents, strict=True)
            ]
        ctx._given = tuple(_saved_tensor(kept, inside.args, results) for kept in self.forward)
        try:
            with unrecorded():
                answer = self.function.jvp(ctx, *tangents)
        finally:
            ctx._given = None
        name = f"{self.function.__name__}.jvp"
        answers = list(answer) if isinstance(answer, tuple | list) else [answer]
        while len(answers) > len(results) and answers[-1] is None:
            answers.pop()
        if len(answers) != len(results):
            raise RuntimeError(
                f"{name} returned an incorrect number of tangents (expected {len(results)}, got "
                f"{len(answers)})"
            )
        return [
            _conforming(t, r, name, i)
            for i, (t, r) in enumerate(zip(answers, results, strict=True))
        ]


def _has_tangent(array: Any) -> bool:
    """Whether forward mode follows an array, at any level."""
    while array is not None and not hasattr(array, "tangent"):
        array = getattr(array, "inner", None)
    return array is not None


def varies(array: Any) -> bool:
    """Whether an array has a tangent, at any level, that is not known to be zero."""
    while array is not None and getattr(array, "tangent", None) is None:
        array = getattr(array, "inner", None)
    return array is not None


def _saved_tensor(kept: Any, args: tuple[Any, ...], results: tuple[Any, ...]) -> Tensor | None:
    if kept is None:
        return None
    own, origin = kept
    if origin is None:
        return untracked(own._array)
    found: Tensor = args[origin[0]] if origin[0] >= 0 else results[origin[1]]
    return found


def _conforming(t: Any, result: Tensor | None, name: str, position: int) -> Tensor | None:
    """A tangent of a result, of its shape and dtype."""
    if t is None or result is None:
        return None
    where = f"{name} returned an invalid tangent at index {position}"
    if not isinstance(t, Tensor):
        raise TypeError(f"{where}: {type(t).__name__} instead of a Tensor or None")
    if tuple(t.shape) != tuple(result.shape):
        raise RuntimeError(f"{where} - got {list(t.shape)} but expected shape {list(result.shape)}")
    if t.dtype is not result.dtype:
        xp = namespaces[Tensor]
        if t.dtype.complex and not result.dtype.complex:
            t = xp.real(t)
        t = xp.astype(t, result.dtype)
    return t  # type: ignore[no-any-return]


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

    def node_at(self, origin: Origin, own: Node | None) -> Node | None:
        """The node at which a saved Tensor is rebuilt: an argument's, a result's, or its own."""
        if origin is None:
            return own
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
        needs = tuple(
            p is not None and (wanted is None or p.number in wanted) for p in self.parents
        )
        if not any(needs):
            return []
        ctx: FunctionCtx = self.saved[0]
        given = g.items if type(g) is Parts else {0: g}
        like = next(iter(given.values()))
        recorded = isinstance(like, Tensor)
        ctx._node, ctx.needs_input_grad = self, needs
        try:
            with mode_of(recorded):
                what = self._cotangents(ctx, given, like)
                cotangents = self.function.backward(ctx, *what)
        finally:
            ctx._node = ctx._given = None
        flows: list[tuple[int, Any]] = []
        for position, (parent, cotangent) in enumerate(
            zip(self.parents, self._answers(cotangents), strict=True)
        ):
            if parent is None or cotangent is None or not needs[position]:
                continue
            self._check(position, parent, cotangent, like)
            if not recorded:
                cotangent = constant_beside(cotangent._array, like)
            flows.append((position, cotangent))
        return flows

    def _cotangents(
        self, ctx: FunctionCtx, given: dict[int, Any], like: Any
    ) -> list[Tensor | None]:
        """The argument list of ``backward``: a Tensor for each result."""
        shapes: tuple[Any, ...] = self.shape if self.several else (self.shape,)
        dtypes: tuple[Any, ...] = self.dtype if self.several else (self.dtype,)
        raw = like._array if isinstance(like, Tensor) else like
        cotangents: list[Tensor | None] = []
        for i, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)):
            g = given.get(i)
            if g is None and ctx._materialize and dtype is not None:
                g = untracked(zeros_beside(raw, shape, dtype))
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

    def _check(self, position: int, parent: Node, cotangent: Any, like: Any) -> None:
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
        there = namespaces[type(cotangent._array)].backend
        here = namespaces[type(like._array if isinstance(like, Tensor) else like)].backend
        if there is not here and None not in (there, here):
            raise BackendError(f"{where}: on {there.name} instead of {here.name}")
