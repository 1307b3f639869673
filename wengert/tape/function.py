"""Operations that users define: a forward and a backward function of Tensors."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from itertools import count
from operator import attrgetter
from typing import Any

from wengert.backends import backend_of, dtype_of, namespaces
from wengert.tape.callbacks import call_back
from wengert.tape.grad_mode import (
    INFERENCE,
    is_grad_enabled,
    recording,
    set_recording,
    tangents_flow,
    unrecorded,
)
from wengert.tape.hooks import mode_of, pack, unpack
from wengert.tape.marks import Marks, off_tape
from wengert.tape.node import (
    FREED,
    AccumulateGrad,
    Inside,
    Node,
    Output,
    Parts,
    conform,
    constant_beside,
    is_lifted,
    mark,
    running_forwards,
)
from wengert.tape.observers import inside_function, observing
from wengert.tape.record import observe
from wengert.tape.tensor import IN_PLACE_ON_LEAF, Tensor, assign, check_like, untracked, with_node

#: Where a saved Tensor came from: the position of an argument and 0, or -1 and that of a result.
Origin = tuple[int, int] | None


class FunctionCtx:
    """The context that a `Function`'s forward hands to its backward and its jvp.

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
    _backward: tuple[Any, ...] = ()
    _forward: tuple[Any, ...] = ()
    _saved: tuple[tuple[Any, Origin, Node | None], ...] = ()
    _marked: tuple[Tensor, ...] = ()
    _dirty: tuple[Tensor, ...] = ()
    _materialize = True
    _node: Any = None
    _given: tuple[Tensor | None, ...] | None = None
    _moves = False

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep Tensors for the backward: arguments, results, or constants.

        Each keeps its present value. A Tensor that the forward computed and does not return has no
        derivative: differentiating the backward by it is an error. A detached one is a constant.
        """
        self._backward = _snapshots(tensors, "save_for_backward")

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep Tensors for the jvp, if these are others than `save_for_backward` keeps."""
        self._forward = _snapshots(tensors, "save_for_forward")

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
                else with_node(unpack(held), node.node_at(*at) if track else None)
                for held, *at in self._saved
            )
        return self._given


def _snapshots(tensors: tuple[Any, ...], method: str) -> tuple[Any, ...]:
    for tensor in tensors:
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"{method} can only save Tensors, not {type(tensor).__name__}; set other values "
                "as attributes of ctx"
            )
    return tuple(None if x is None else (x, with_node(x._array, x._node)) for x in tensors)


class Function:
    """A differentiable operation of your own: a subclass with static methods, called by ``apply``.

    ``forward`` runs unrecorded. It takes the arguments of ``apply``, Tensors or not, and returns
    a Tensor or a tuple of Tensors and None. ``backward`` takes the cotangent of each result, and
    returns that of each argument, or None. It runs recorded if it is differentiated itself.
    ``forward`` may leave out ``ctx`` if ``setup_context(ctx, inputs, output)`` fills it.

    Forward mode needs ``jvp``. It takes the tangent of each argument, None for those that are no
    floating Tensors, and returns that of each result. Tensors in lists or dicts are constants.

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
    ...     jvp = backward  # the Jacobian is diagonal and real
    >>> wg.grad(wg.grad(Cube.apply))(2.0)
    12.0
    >>> wg.jvp(Cube.apply, (2.0,), (1.0,))
    (8.0, 12.0)
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result; called as ``forward(ctx, *args)``."""
        raise NotImplementedError("a Function needs a static method forward(ctx, *args)")

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        """Compute the cotangents of the arguments from those of the results."""
        raise NotImplementedError("a Function needs a static method backward(ctx, *cotangents)")

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Compute the tangents of the results from those of the arguments."""
        raise NotImplementedError("a Function needs a static method jvp(ctx, *tangents)")

    setup_context: Any = None

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the operation and record it if an argument requires grad.

        Raises `TypeError` if ``forward`` returns something else than Tensors, and `RuntimeError`
        if it changed an argument in place and did not say so.
        """
        if not observing:
            return _FunctionCall(cls, args, kwargs).results()
        with inside_function():
            results = _FunctionCall(cls, args, kwargs).results()
        observe(cls.__name__, None, (*args, *kwargs.values()), results)
        return results


class _FunctionCall:
    """One application of a `Function`.

    The forward runs on values without tangents, those of the outermost level. Each level of
    forward mode then adds the tangents that the jvp gives, and the outermost call is recorded.
    """

    def __init__(self, function: type[Function], args: tuple[Any, ...], kwargs: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.arrays = [arg._array if isinstance(arg, Tensor) else None for arg in args]
        self.nodes = tuple([arg._node if isinstance(arg, Tensor) else None for arg in args])
        #: Tensors that the forward gets in the places of arguments with tangents.
        self.stand_ins: list[tuple[int, Tensor]] = []
        self.marks: Marks | None = None

    def results(self) -> Any:
        """What `Function.apply` returns."""
        args, nodes = self.args, self.nodes
        track = bool(recording()) and any(nodes)
        self.needs = tuple([track and node is not None for node in nodes])
        moving = any(map(_tangents_of, self.arrays)) and tangents_flow()
        if track or moving:
            self.marks = Marks(self.function.__name__, moving)
        arrays = self._run(self.arrays)
        self.ctx._moves = moving and any(map(moves, self.arrays))
        for i, tensor in self.stand_ins:  # what the forward has kept has the tangents, too
            tensor._array, tensor._node = self.arrays[i], nodes[i]
        unrecorded: Any = map(self._result_off_tape, count(), arrays)
        tensors = self._record(arrays) if track else list(unrecorded)
        if recording() and any(isinstance(nodes[at], AccumulateGrad) for at in self.dirty.values()):
            raise RuntimeError(IN_PLACE_ON_LEAF)
        for i, at in self.dirty.items():
            tensors[i] = assign(args[at], tensors[i])
        return tensors[0] if self.single else tuple(tensors)

    def _result_off_tape(self, i: int, array: Any) -> Tensor | None:
        nodes = () if i in self.fixed else self.nodes
        return None if array is None else off_tape(array, None, nodes)

    def _record(self, arrays: list[Any]) -> list[Any]:
        shapes = tuple([() if a is None else a.shape for a in arrays])
        dtypes = tuple([None if a is None else a.dtype for a in arrays])
        kind = (shapes[0], dtypes[0]) if self.single else (shapes, dtypes)
        node = FunctionNode(self.nodes, (self.ctx,), *kind)
        node.function = self.function
        self.ctx._saved = tuple([
            (None, None, None) if kept is None
            else (pack(_array(kept, self.arrays, arrays)), kept[1], kept[0]._node)
            for kept in self.backward
        ])  # fmt: skip
        tensors: list[Any] = []
        for i, array in enumerate(arrays):
            own = None if i in self.fixed else node if self.single else Output(node, i)
            tensors.append(None if array is None else with_node(array, own))
        for tensor in tensors if running_forwards else ():
            if tensor is not None:
                mark(tensor)
        return tensors

    # -- the forward -------------------------------------------------------------------------

    def _run(self, arrays: list[Any]) -> list[Any]:
        """The results' arrays: with tangents if arguments have them."""
        followed = [a for a in arrays if is_lifted(a)]
        if not any(map(_tangents_of, followed)):
            return self._forward(arrays)
        if not tangents_flow():  # to which arguments with tangents are constants
            return self._forward([a.as_constant() if is_lifted(a) else a for a in arrays])
        top = max(followed, key=attrgetter("level"))  # of the innermost transform
        if not hasattr(top, "tangent"):
            raise NotImplementedError(
                f"{self.function.__name__} inside of a batch cannot be differentiated in forward "
                "mode: compute the Jacobian without batching"
            )
        own = [type(a) is type(top) and a.level == top.level for a in arrays]
        primals = [a.inner if mine else a for a, mine in zip(arrays, own, strict=True)]
        tangents = [
            untracked(t) if mine and (t := a.derivative()) is not None else None
            for a, mine in zip(arrays, own, strict=True)
        ]
        results = self._run(primals)
        if all(t is None for t in tangents):
            return results
        for i, tensor in self.stand_ins:
            tensor._array = primals[i]
        answers = self._tangents(primals, results, tangents)
        assert self.marks is not None
        saved = [kept[0] for kept in (*self.backward, *self.forward) if kept is not None]
        self.marks.lose(top, saved, self.given)
        return [
            r if r is None or i in self.fixed else type(top)(r, t, top.level)
            for i, (r, t) in enumerate(zip(results, answers, strict=True))
        ]

    def _forward(self, arrays: list[Any]) -> list[Any]:
        function, args = self.function, list(self.args)
        for i, array in enumerate(arrays):
            if array is not self.arrays[i]:
                node = self.nodes[i]
                if node is None and self.marks is not None:
                    node = Inside(self.marks.error, (), array.shape, array.dtype)
                args[i] = with_node(array, node)
                self.stand_ins.append((i, args[i]))
        self.given = args
        nodes = [arg._node if isinstance(arg, Tensor) else None for arg in args]
        ctx = self.ctx = FunctionCtx()
        ctx.needs_input_grad = self.needs
        before = recording()
        try:
            if before is not INFERENCE:
                set_recording(False)  # in a quarter of the time of `no_grad`
            with self.marks or nullcontext():
                if function.setup_context is None:
                    result = call_back(function.forward, ctx, *args, **self.kwargs)
                else:
                    result = call_back(function.forward, *args, **self.kwargs)
                    function.setup_context(ctx, tuple(args), result)
            self.single = not isinstance(result, tuple | list)
            results: tuple[Any, ...] = (result,) if self.single else tuple(result)
            for value in results:
                if not isinstance(value, Tensor) and (self.single or value is not None):
                    raise TypeError(
                        f"{function.__name__}.forward should return Tensors, and returned "
                        f"{type(value).__name__}"
                    )
            self._settle(args, arrays, results)
            return [None if r is None else r._array for r in results]
        finally:
            set_recording(before)
            # `results` changes the caller's Tensors, once the operation is recorded.
            for arg, array, node in zip(args, arrays, nodes, strict=True):
                if array is not None:
                    arg._array, arg._node = array, node

    def _settle(self, args: list[Any], arrays: list[Any], results: tuple[Any, ...]) -> None:
        """Find out what was marked and saved: an argument, a result, or neither."""
        ctx, name = self.ctx, self.function.__name__
        positions = {id(arg): i for i, arg in enumerate(args) if isinstance(arg, Tensor)}
        returned = {id(r): i for i, r in enumerate(results) if r is not None}
        self.dirty: dict[int, int] = {}
        for tensor in ctx._dirty:
            if id(tensor) not in positions or id(tensor) not in returned:
                raise RuntimeError(
                    f"{name}.forward marked a Tensor as dirty that is no argument, or that it does "
                    "not return"
                )
            self.dirty[returned[id(tensor)]] = positions[id(tensor)]
        for i in positions.values():
            if args[i]._array is not arrays[i] and i not in self.dirty.values():
                raise RuntimeError(
                    f"{name}.forward changed its argument {i} in place: call "
                    f"ctx.mark_dirty with it and return it, or compute a new Tensor"
                )
        marked = {id(tensor) for tensor in ctx._marked}
        self.fixed = {
            i
            for i, r in enumerate(results)
            if r is None or id(r) in marked or not dtype_of(r._array.dtype).inexact
        }

        def entry(kept: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Origin] | None:
            if kept is None:
                return None
            given, own = kept
            at = positions.get(id(given))
            if at is not None and own._array is arrays[at]:
                return own, (at, 0)
            at = returned.get(id(given))
            return own, (-1, at) if at is not None and own._array is given._array else None

        self.backward = tuple(map(entry, ctx._backward))
        self.forward = tuple(map(entry, ctx._forward)) or self.backward
        ctx._backward = ctx._forward = ctx._marked = ctx._dirty = ()

    def _tangents(
        self, primals: list[Any], results: list[Any], tangents: list[Tensor | None]
    ) -> list[Any]:
        """The arrays of the tangents that jvp answers, checked."""
        ctx, name = self.ctx, f"{self.function.__name__}.jvp"
        if ctx._materialize:
            tangents = [
                untracked(namespaces[type(x)].zeros_like(x))
                if t is None and x is not None and dtype_of(x.dtype).inexact
                else t
                for x, t in zip(primals, tangents, strict=True)
            ]
        ctx._given = tuple([
            None if kept is None else untracked(_array(kept, primals, results))
            for kept in self.forward
        ])  # fmt: skip
        try:
            with unrecorded():
                answer = call_back(self.function.jvp, ctx, *tangents)
        finally:
            ctx._given = None
        answers = _as_list(answer, len(results), name, "tangents")
        found: list[Any] = []
        for i, (t, r) in enumerate(zip(answers, results, strict=True)):
            if t is not None and r is not None:
                check_like(f"tangent {i} of {name}", t, r.shape)
            found.append(None if t is None or r is None else conform(t._array, r))
        return found


def _array(kept: tuple[Tensor, Origin], arguments: list[Any], results: list[Any]) -> Any:
    """The saved array at one level, of the level's arguments and results."""
    own, origin = kept
    if origin is None:
        return own._array
    return arguments[origin[0]] if origin[0] >= 0 else results[origin[1]]


def _as_list(answer: Any, expected: int, name: str, what: str) -> list[Any]:
    """The answers of a user's rule as a list; as in PyTorch, further ones may be None."""
    answers = list(answer) if isinstance(answer, tuple | list) else [answer]
    while len(answers) > expected and answers[-1] is None:
        answers.pop()
    if len(answers) != expected:
        raise RuntimeError(
            f"{name} returned an incorrect number of {what} (expected {expected}, got "
            f"{len(answers)})"
        )
    return answers


def _tangents_of(array: Any) -> list[Any]:
    """The tangents of an array at all levels; None for those that are known to be zero."""
    found = []
    while array is not None:
        if hasattr(array, "tangent"):
            found.append(array.tangent)
        array = getattr(array, "inner", None)
    return found


def moves(array: Any) -> bool:
    """Whether an array has a tangent, at any level, that is not known to be zero."""
    return any(t is not None for t in _tangents_of(array))


class FunctionNode(Node):
    """One application of a `Function` on the tape."""

    __slots__ = ("function",)

    function: type[Function]

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
            [p is not None and (wanted is None or p.number in wanted) for p in self.parents]
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
                cotangents = self._cotangents(ctx, given, like)
                answer = call_back(self.function.backward, ctx, *cotangents)
        finally:
            ctx._node = ctx._given = None
        flows: list[tuple[int, Any]] = []
        answers = _as_list(answer, len(needs), f"function {self.name()}", "gradients")
        for position, cotangent in enumerate(answers):
            if cotangent is not None and needs[position]:
                self._check(position, cotangent, like)
                array = cotangent if recorded else constant_beside(cotangent._array, like)
                flows.append((position, array))
        return flows

    def _cotangents(self, ctx: FunctionCtx, given: dict[int, Any], like: Any) -> list[Any]:
        """The argument list of ``backward``: a Tensor for each result."""
        shapes, dtypes = (
            (self.shape, self.dtype) if self.several else ((self.shape,), (self.dtype,))
        )
        raw = like._array if isinstance(like, Tensor) else like
        xp = namespaces[type(raw)]
        found = [given.get(i) for i in range(len(dtypes))]
        for i, g in enumerate(found):
            if g is None and ctx._materialize and dtypes[i] is not None:
                g = xp.zeros(shapes[i], dtype=dtypes[i], device=xp.device(raw))
            found[i] = g if g is None or isinstance(g, Tensor) else untracked(g)
        return found

    def _check(self, position: int, cotangent: Any, like: Any) -> None:
        raw = like._array if isinstance(like, Tensor) else like
        array: Any = getattr(cotangent, "_array", None)
        parent: Any = self.parents[position]
        if type(array) is type(raw) and array.dtype is parent.dtype and array.shape == parent.shape:
            return  # as almost all
        what, got = f"gradient {position} of function {self.name()}", getattr(array, "shape", ())
        pairs = zip(reversed(got), reversed(parent.shape), strict=False)
        fits = len(got) >= len(parent.shape) and all(n in (1, m) for m, n in pairs)
        check_like(what, cotangent, got if fits else parent.shape, None, backend_of(raw))
        if not cotangent.dtype.inexact:
            raise TypeError(f"{what} is of dtype {cotangent.dtype.name}")


class Once(Inside):
    """The node of a gradient that must not be differentiated again, and requires grad."""

    __slots__ = ()


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `Function`'s backward as one that is not differentiable itself.

    It goes between ``@staticmethod`` and the function. The backward then always runs unrecorded,
    so that it may compute by other means than Wengert's operations. Differentiating its results
    raises `RuntimeError`.

    Examples
    --------
    >>> class Double(wg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...     @staticmethod
    ...     @wg.autograd.once_differentiable
    ...     def backward(ctx, g):
    ...         return 2 * g
    >>> wg.grad(Double.apply)(1.0)
    2.0
    """

    @wraps(backward)
    def call(ctx: FunctionCtx, *cotangents: Any) -> Any:
        given = [g for g in cotangents if isinstance(g, Tensor)]
        found = [*(g._node for g in given), *ctx._node.parents]
        parents = tuple([parent for parent in found if parent is not None])
        error = RuntimeError(
            "trying to differentiate twice a function that was marked with "
            f"@once_differentiable: the backward of {ctx._node.operation} has no derivative"
        )

        def once(answer: Any) -> Any:
            if not isinstance(answer, Tensor) or not answer.dtype.inexact:
                return answer
            array = answer._array
            return with_node(array, Once(error, parents, array.shape, array.dtype))

        if ctx._moves or any(moves(g._array) for g in given):
            raise error
        with unrecorded():
            answer = backward(ctx, *cotangents)
        if not recording():
            return answer
        return tuple(map(once, answer)) if isinstance(answer, tuple | list) else once(answer)

    return call
