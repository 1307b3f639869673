"""Functions whose derivative is given beside them."""

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from operator import index
from typing import Any, Generic, ParamSpec, TypeVar

from wengert.func.trees import TreeDef, tree_flatten, trees_of
from wengert.tape.function import Function
from wengert.tape.grad_mode import is_grad_enabled, recording, tangents_flow
from wengert.tape.tensor import Tensor

P = ParamSpec("P")
R = TypeVar("R")


class custom_vjp(Generic[P, R]):
    r"""A function with a derivative of your own, in the place of that of its operations.

    Decorate the function, then give its rules, as in the example.

    The rule takes the cotangent :math:`\bar y` of the result to :math:`\bar x = J^H \bar y`.
    Derivatives of any order go through it: when the rule is differentiated itself, ``forward`` is
    run again, recorded, so that what it computed for the rule is a function of the arguments.
    Forward mode, and what is built on it (`jacfwd`, `ggnvp`), needs a rule of its own, `defjvp`.

    Raises `TypeError` if a Tensor that requires grad is given where it would be a constant; if the
    function or ``forward`` returns something else than Tensors; if ``backward`` does not return a
    tuple, or a gradient has another structure than the argument. Raises `RuntimeError` if
    ``backward`` returns the wrong number of gradients, or one of a wrong shape.

    Parameters
    ----------
    function : callable
        It takes trees of Tensors and of anything else (nested dicts, lists, tuples, dataclasses),
        and returns a tree of Tensors. Arguments that are given by keyword must also have a
        position. Where no derivative is asked for, it is called as it is.
    nondiff_argnums : sequence of int
        Positions of arguments that are not differentiated, such as functions. The rules get them
        too: ``backward`` before all else.

    Notes
    -----
    The form is JAX's. Tensors that the function closes over are constants to it: make arguments
    of those that are to be differentiated.

    Examples
    --------
    >>> @wg.custom_vjp
    ... def log1pexp(x):
    ...     return wg.log(1 + wg.exp(x))
    >>> def forward(x):
    ...     e = wg.exp(x)
    ...     return wg.log(1 + e), e  # the result, and what the rule needs
    >>> def backward(e, g):
    ...     return (g * e / (1 + e),)  # one for each argument
    >>> log1pexp.defvjp(forward, backward)
    >>> wg.grad(log1pexp)(0.0)
    0.5
    """

    def __init__(self, function: Callable[P, R], nondiff_argnums: Sequence[int] = ()) -> None:
        if not callable(function):
            raise TypeError(f"custom_vjp takes a function, not {type(function).__name__}")
        # An object that is called may keep anything in its __dict__.
        functools.update_wrapper(self, function, updated=())
        self._function: Callable[..., R] = function
        self._signature = inspect.signature(function)
        self._fixed = frozenset(map(index, nondiff_argnums))
        if any(at < 0 for at in self._fixed):
            raise ValueError(f"nondiff_argnums should count from 0, and is {nondiff_argnums!r}")
        self._forward: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._jvp: Callable[..., Any] | None = None
        self._label: str = getattr(function, "__name__", type(function).__name__)
        self._operation: type[_Custom] = type(self._label, (_Custom,), {})

    def __reduce__(self) -> str:
        # Copied and pickled as functions are: by name.
        return str(getattr(self, "__qualname__", type(self).__qualname__))

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Give the rule for reverse mode.

        Parameters
        ----------
        forward : callable
            ``forward(*args)`` returns the result and what the rule needs, a tree of anything.
        backward : callable
            ``backward(*nondiff, residuals, g)`` of that and of the result's cotangent, a tree like
            the result, returns a tuple with one gradient for each differentiated argument, a tree
            like it. None stands for zeros, in the place of a tree or of a leaf.
        """
        for rule in (forward, backward):
            _check(rule, "defvjp")
        self._forward, self._backward = forward, backward

    def defjvp(self, jvp: Callable[..., Any]) -> None:
        """Give the rule for forward mode.

        Parameters
        ----------
        jvp : callable
            ``jvp(*nondiff, primals, tangents)`` of two tuples, with one tree for each
            differentiated argument, returns the result and its tangent. The tangent of what is
            no floating Tensor is None.
        """
        _check(jvp, "defjvp")
        self._jvp = jvp

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"{self._label}: keyword-only arguments ({', '.join(bound.kwargs)}) cannot be "
                "passed to the rules; make them positional"
            )
        call = _CustomCall(self, bound.args)
        if not any(map(_is_followed, call.leaves)):
            return self._function(*bound.args)
        if self._forward is None and self._jvp is None:
            raise TypeError(
                f"{self._label} has no derivative yet: give it one by "
                f"{self._label}.defvjp(forward, backward)"
            )
        outputs = self._operation.apply(call, *call.release())
        return call.results.unflatten(outputs)  # type: ignore[no-any-return]


def _check(rule: Any, method: str) -> None:
    if not callable(rule):
        raise TypeError(f"{method} takes functions, not {type(rule).__name__}")


def _is_followed(leaf: Any) -> bool:
    """Whether a derivative with respect to a leaf may be asked for."""
    if not isinstance(leaf, Tensor):
        return False
    return (leaf._node is not None and bool(recording())) or (
        tangents_flow() and getattr(leaf._array, "followed", False)
    )


class _CustomCall:
    """The arguments of one call, taken apart.

    Attributes
    ----------
    leaves : list
        Those of the differentiated arguments, until they are released.
    results : TreeDef
        The structure of the result, once it is known.
    """

    results: TreeDef

    def __init__(self, owner: custom_vjp[..., Any], args: tuple[Any, ...]) -> None:
        self.owner, self.args = owner, list(args)
        self.positions = [at for at in range(len(args)) if at not in owner._fixed]
        self.structures: list[TreeDef] = []
        self.leaves: list[Any] = []
        for at, arg in enumerate(args):
            leaves, structure = tree_flatten(arg, lambda x: x is None)
            if at in owner._fixed:
                if any(map(_is_followed, leaves)):
                    raise TypeError(
                        f"{owner._label}: argument {at} is among nondiff_argnums, and has a "
                        "Tensor that requires grad; detach it, or differentiate it"
                    )
            else:
                self.leaves += leaves
                self.structures.append(structure)

    def release(self) -> list[Any]:
        """Return the leaves, and keep nothing of the differentiated arguments from now on."""
        for at in self.positions:
            self.args[at] = None
        leaves, self.leaves = self.leaves, []
        return leaves

    @property
    def nondiff(self) -> list[Any]:
        """The arguments that are not differentiated."""
        return [arg for at, arg in enumerate(self.args) if at in self.owner._fixed]

    def arguments(self, leaves: Sequence[Any]) -> list[Any]:
        """All arguments, with other leaves in the differentiated ones."""
        args = list(self.args)
        for at, tree in zip(self.positions, trees_of(self.structures, leaves), strict=True):
            args[at] = tree
        return args

    def forward(self, leaves: Sequence[Any]) -> tuple[Any, Any]:
        """Run the forward rule, or the function where there is none: the result, residuals."""
        args = self.arguments(leaves)
        if self.owner._forward is None:
            return self.owner._function(*args), None
        what = f"{self.owner._label}: forward should return a tuple of the result and of what "
        return _check_pair(self.owner._forward(*args), what + "backward needs")

    def gradients(self, answer: Any) -> list[Any]:
        """What the backward rule answered, for each leaf."""
        name = self.owner._label
        if not isinstance(answer, tuple | list):
            raise TypeError(
                f"{name}: backward should return a tuple, with one gradient for each "
                f"differentiated argument, and returned {_description(answer)}"
            )
        if len(answer) != len(self.structures):
            raise RuntimeError(
                f"{name}: backward returned an incorrect number of gradients (expected "
                f"{len(self.structures)}, got {len(answer)})"
            )
        found: list[Any] = []
        for at, tree, structure in zip(self.positions, answer, self.structures, strict=True):
            what = f"{name}: the gradient of argument {at}"
            if tree is None:
                found += [None] * structure.num_leaves
            else:
                found += _matching(structure, tree, what)
        return found


def _description(answer: Any) -> str:
    if isinstance(answer, tuple | list):
        return f"a {type(answer).__name__} of {len(answer)}"
    return f"a {type(answer).__name__}"


def _check_pair(answer: Any, what: str) -> tuple[Any, Any]:
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise TypeError(f"{what}, and returned {_description(answer)}")
    return answer


def _matching(structure: TreeDef, tree: Any, what: str) -> list[Any]:
    try:
        return structure.flatten_up_to(tree, what)
    except ValueError as error:
        raise TypeError(str(error)) from None


class _Custom(Function):
    """What is on the tape of one call."""

    @staticmethod
    def forward(ctx: Any, call: _CustomCall, *leaves: Any) -> Any:
        result, residuals = call.forward(leaves)
        outputs, call.results = tree_flatten(result)
        if not outputs:
            raise TypeError(f"{call.owner._label} returned no Tensor")
        kept, structure = tree_flatten(residuals)
        known = {id(x) for x in (*leaves, *outputs)}
        ctx.call, ctx.structure, ctx.leaves = call, structure, _constants(leaves)
        ctx.kept, tensors = _constants(kept), [x for x in kept if isinstance(x, Tensor)]
        # What is neither an argument nor a result has no node, and is computed again
        # when the rule is differentiated. A number may come from an argument, too.
        varying = [x for x in kept if isinstance(x, float | complex) or hasattr(x, "dtype")]
        ctx.between = any(id(x) not in known for x in varying)
        given = [x for x in leaves if isinstance(x, Tensor)]
        ctx.count = len(tensors)
        ctx.save_for_backward(*tensors, *(given if ctx.between else ()))
        ctx.save_for_forward(*given)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        call: _CustomCall = ctx.call
        rule = call.owner._backward
        if rule is None:
            raise NotImplementedError(
                f"{call.owner._label} has no rule for reverse mode: give it one by "
                f"{call.owner._label}.defvjp(forward, backward)"
            )
        saved = ctx.saved_tensors
        followed = is_grad_enabled() or any(
            getattr(x._array, "followed", False) for x in saved if x is not None
        )
        if ctx.between and followed:
            _, residuals = call.forward(_fill(ctx.leaves, saved[ctx.count :]))
        else:
            residuals = ctx.structure.unflatten(_fill(ctx.kept, saved[: ctx.count]))
        answer = rule(*call.nondiff, residuals, call.results.unflatten(cotangents))
        return (None, *_of_tensors(call.gradients(answer), ctx.leaves))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        call: _CustomCall = ctx.call
        rule = call.owner._jvp
        if rule is None:
            raise NotImplementedError(
                f"{call.owner._label} has no rule for forward mode, which Hessians use, too: "
                f"give it one by {call.owner._label}.defjvp(jvp)"
            )
        primals = trees_of(call.structures, _fill(ctx.leaves, ctx.saved_tensors))
        moves = trees_of(call.structures, tangents[1:])
        name = call.owner._label
        what = f"{name}: jvp should return a tuple of the result and its tangent"
        _, tangent = _check_pair(rule(*call.nondiff, tuple(primals), tuple(moves)), what)
        return tuple(_matching(call.results, tangent, f"{name}: the tangent of the result"))


#: Stands where a Tensor was.
_SLOT = object()


def _constants(leaves: Sequence[Any]) -> list[Any]:
    """Leaves without their Tensors, which a context keeps."""
    return [_SLOT if isinstance(leaf, Tensor) else leaf for leaf in leaves]


def _fill(constants: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
    """Leaves again, from what `_constants` left and the Tensors."""
    found = iter(tensors)
    return [next(found) if leaf is _SLOT else leaf for leaf in constants]


def _of_tensors(gradients: list[Any], constants: list[Any]) -> list[Any]:
    """Gradients with None for leaves that are no Tensors."""
    return [g if leaf is _SLOT else None for g, leaf in zip(gradients, constants, strict=True)]
