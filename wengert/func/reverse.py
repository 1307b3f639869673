"""Transforms by the reverse sweep: gradients, and products of cotangents with Jacobians."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Concatenate, overload

from wengert.backends import namespaces
from wengert.func.arguments import (
    Argnums,
    Call,
    check_function,
    imaginary_part,
    like_leaf,
    named_like,
    split,
)
from wengert.func.signatures import Derived, First, Off, P, X, Y
from wengert.func.trees import TreeDef, tree_leaves, tree_map
from wengert.interpreters.lifted import Lifted, constant
from wengert.ops.hints import refuse_keywords
from wengert.tape.grad_mode import following, recording, tangents_flow
from wengert.tape.node import Node, tick
from wengert.tape.observers import observing
from wengert.tape.primitive import PRIMITIVES
from wengert.tape.promotion import at_least
from wengert.tape.record import observe, record
from wengert.tape.sweep import leading_to, sweep
from wengert.tape.tensor import Tensor, untracked, with_node


class Reverse:
    """A function that has been called on new Tensors, so that it can be swept.

    Each differentiated array comes to the function as the result of an identity with a new node: so
    it differs from the same Tensor where the function closes over that, and outer derivatives
    pass. No `AccumulateGrad` is made, and no ``.grad`` changes.

    Three questions decide what becomes of a result or a gradient: was recording on at the call
    (``connect``), so that the tape outside may follow it; does it depend on Tensors outside
    (``reaches_out``), or else the tape inside ends here; and was the call within `no_grad`
    (``constant``), so that transforms outside see constants, in forward mode too?

    Attributes
    ----------
    inputs : list of Node
        For each differentiated leaf, its node.
    numbers : set of int
        The numbers of these nodes.
    results, structure
        The leaves of what the function returned, still on the tape, and their structure.
    start : int
        What the tape's clock was before the call.
    """

    def __init__(self, call: Call, transform: str, has_aux: bool = False) -> None:
        self.call = call
        self.connect, self.constant = bool(recording()), not tangents_flow()
        self.start = tick()
        self._searched: set[int] = set()  # nodes from which none outside is reached
        given = [x.detach() for x in call.tensors] if self.constant else call.tensors
        self.results: list[Tensor]
        self.structure: TreeDef
        own = [_input(tensor, self.connect) for tensor in given]
        self.inputs: list[Node] = [tensor._node for tensor in own]  # type: ignore[misc]
        self.numbers = {node.number for node in self.inputs}
        following.append(self)
        try:
            self.results, self.structure, aux = call.results(own, transform, has_aux)
        finally:
            following.remove(self)
        self._aux: Any = None
        self._aux_is_tracked = False
        if has_aux:
            self._aux = tree_map(lambda x: self.release(x) if isinstance(x, Tensor) else x, aux)
            tensors = [x for x in tree_leaves(self._aux) if isinstance(x, Tensor)]
            self._aux_is_tracked = any(x._node is not None for x in tensors)

    @property
    def value(self) -> Any:
        """What the function returned, as arrays if the arguments were arrays."""
        released = [self.release(result) for result in self.results]
        return self.call.answer(self.structure.unflatten(released))

    @property
    def aux(self) -> Any:
        """The auxiliary output of ``has_aux``, as arrays if the arguments were arrays."""
        return self.call.answer(self._aux)

    @cached_property
    def reaches_out(self) -> bool:
        """Whether the results depend on Tensors outside that require grad."""
        return any(self._reaches_out(y._node) for y in self.results if y._node is not None)

    def release(self, tensor: Tensor, outer_cotangents: Sequence[Node] = ()) -> Tensor:
        """Return ``tensor``, detached unless it depends on Tensors outside the transform.

        ``outer_cotangents`` are nodes outside that a pullback was given, after the call.
        """
        node, may_follow = tensor._node, self.connect or outer_cotangents
        if node is not None and may_follow and self._reaches_out(node, outer_cotangents):
            return tensor
        if self.constant:
            return tensor.detach()
        return tensor if node is None else untracked(tensor._array)

    def _reaches_out(self, root: Node, outer_cotangents: Sequence[Node] = ()) -> bool:
        """Whether a node descends from one that was there before the call."""
        outer = {node.number for node in outer_cotangents} if outer_cotangents else ()
        # Nodes that led nowhere outside are not searched again, unless cotangents come from there.
        seen = set() if outer else set(self._searched)
        start, stack = self.start, [root]
        while stack:  # `walk`, whose generator takes twice as long
            node = stack.pop()
            if node.number < start or node.number in outer:
                return True
            for parent in node.parents:
                if parent is not None and parent.number not in seen:
                    seen.add(parent.number)
                    stack.append(parent)
        if not outer:
            self._searched = seen
        return False

    def pull(self, cotangents: Iterable[Tensor | None], keep: bool) -> list[Tensor]:
        """Sweep once: from cotangents of the results to those of the differentiated leaves.

        A cotangent is of its result's shape, or None for zero. With ``keep`` one may sweep again.
        """
        seeds = [
            (y, y._node, g)
            for y, g in zip(self.results, cotangents, strict=True)
            if y._node is not None and g is not None
        ]
        numbers = self.numbers
        wanted = leading_to(numbers, [node for _, node, _ in seeds])
        seeds = [seed for seed in seeds if seed[1].number in wanted]
        outer_cotangents = [g._node for _, _, g in seeds if g._node is not None]
        create = bool(recording()) and bool(outer_cotangents or (self.connect and self.reaches_out))
        if create and not self.connect and self.reaches_out:
            raise RuntimeError(
                "the pullback is to be differentiated with respect to its cotangent, and was made "
                "where recording is off, of a function that uses Tensors that require grad; "
                "call vjp outside of no_grad"
            )
        flows = [
            (node, g)
            if create
            else (node, constant(g._array, y._array) if isinstance(y._array, Lifted) else g._array)
            for y, node, g in seeds
        ]
        keep = keep or create or self._aux_is_tracked
        with at_least(self.call.precision):  # users' rules and hooks make constants, too
            arrived = sweep(flows, keep=keep, targets=numbers, wanted=wanted)
        found = []
        for node, tensor in zip(self.inputs, self.call.tensors, strict=True):
            g = arrived.get(node)
            if g is None:
                g = namespaces[type(tensor._array)].zeros_like(tensor._array)
            if isinstance(g, Tensor):  # a new Tensor: a rule may give two leaves the same one
                found.append(self.release(with_node(g._array, g._node), outer_cotangents))
            else:
                found.append(untracked(g))
        if not tangents_flow():
            return [g.detach() for g in found]
        # The answer is linear in what it is given, whatever the function's arguments were.
        followed = any(getattr(g._array, "followed", False) for _, _, g in seeds)
        if self.constant and not outer_cotangents and not followed:
            return [g.detach() for g in found]
        return found


def _input(tensor: Tensor, connect: bool) -> Tensor:
    """A Tensor of the same values with a new node, that of an identity."""
    array, node = tensor._array, tensor._node if connect else None
    entry = record(_identity.plans[(node is not None,)], (node,), (), array)
    if observing:
        observe(_identity.name, _identity, (tensor,), entry)
    return entry


_identity = PRIMITIVES["positive"]


@overload
def grad(
    function: Callable[Concatenate[X, P], Any], argnums: First = 0, has_aux: Off = False
) -> Derived[Concatenate[X, P], X]: ...
@overload
def grad(
    function: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[P, Any]: ...
@refuse_keywords
def grad(
    function: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[P, Any]:
    r"""Return a function that computes the gradient of a real, scalar-valued function.

    Raises `TypeError` if a differentiated argument holds integers, booleans or other objects, or
    the result is no real Tensor; `ValueError` if the result has not one element, or ``argnums``
    does not fit the arguments.

    Parameters
    ----------
    function : callable
        A function of Tensors that returns a real Tensor of one element. What is differentiated
        comes to it as Tensors, whatever kind it was given in; other arguments come as they are.
    argnums : int or sequence of int
        Positions of the arguments to differentiate; negative ones count from the end. Arguments
        given by keyword are passed on.
    has_aux : bool
        Whether the function returns a pair ``(value, aux)``, of which the value is differentiated.

    Returns
    -------
    callable
        A function of the same arguments. It returns the gradient :math:`\nabla f`: a tree like the
        argument, or a tuple of these if ``argnums`` is a sequence. Each leaf is of the kind, shape
        and dtype of the argument's leaf: a Tensor, an array of the same library, or a Python
        number. With ``has_aux``, it returns a pair ``(gradient, aux)``.

    See Also
    --------
    value_and_grad : The value too.
    vjp, jacobian, elementwise_grad : For functions that return more than a scalar.

    Notes
    -----
    With complex arguments it is the conjugate Wirtinger gradient, :math:`2\,\partial f / \partial
    \bar z`, as in PyTorch: the direction of steepest ascent. JAX gives its conjugate.

    Gradients of Tensors that require grad, or of functions that use such Tensors, are themselves on
    the tape, unless this is inside `no_grad`. What is differentiated is recorded in every mode.

    Examples
    --------
    >>> wg.func.grad(lambda x: x**3)(2.0)
    12.0
    >>> wg.func.grad(wg.func.grad(lambda x: x**3))(2.0)
    12.0
    """
    return _gradient(function, argnums, has_aux, "grad")


@overload
def value_and_grad(
    function: Callable[Concatenate[X, P], Y], argnums: First = 0, has_aux: Off = False
) -> Derived[Concatenate[X, P], tuple[Y, X]]: ...
@overload
def value_and_grad(
    function: Callable[P, Y], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[P, tuple[Y, Any]]: ...
@refuse_keywords
def value_and_grad(
    function: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[P, tuple[Any, Any]]:
    """Return a function that computes a real scalar function's value and its gradient.

    ``argnums`` and ``has_aux`` are as for `grad`. Raises `TypeError` or `ValueError` as `grad`. It
    returns ``(value, gradient)``, or ``((value, aux), gradient)``. The value is a Tensor if any
    argument is one, otherwise an array if any is one, otherwise a Python number.

    Examples
    --------
    >>> wg.func.value_and_grad(lambda x, y: x * y)(2.0, 5.0)
    (10.0, 5.0)
    """
    return _gradient(function, argnums, has_aux, "value_and_grad", with_value=True)


def _gradient(
    function: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool,
    transform: str,
    scalar: bool = True,
    with_value: bool = False,
) -> Callable[..., Any]:
    """The function that calls another and computes the gradient of the sum of its result."""
    check_function(function, transform)

    @named_like(function)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        swept = Reverse(split(function, args, kwargs, argnums), transform, has_aux)
        found = _pull_ones(swept, transform, scalar)
        if with_value:
            return ((swept.value, swept.aux) if has_aux else swept.value), found
        return (found, swept.aux) if has_aux else found

    return gradient


def _pull_ones(swept: Reverse, transform: str, scalar: bool) -> Any:
    """The gradient of the sum of the result, which should be a real scalar where ``scalar``."""
    if swept.structure.cls is not None:
        raise TypeError(
            f"{transform} is for functions that return one Tensor, and this one returned "
            f"{swept.structure}; return what else there is as auxiliary data with "
            "has_aux=True, or use vjp or jacobian"
        )
    (result,) = swept.results
    array = result._array
    if scalar and array.shape and result.size != 1:
        raise ValueError(
            f"{transform} is for functions that return a scalar, and this one returned a "
            f"Tensor of shape {tuple(array.shape)}; use vjp with a cotangent, jacobian for "
            "all derivatives, or elementwise_grad"
        )
    if scalar and result.dtype.complex:
        raise TypeError(
            f"{transform} is for functions that return a real scalar, and this one returned "
            f"{result.dtype.name}; return its real part, or use vjp or jacobian"
        )
    ones = untracked(namespaces[type(array)].ones_like(array))
    return swept.call.pack(swept.pull([ones], keep=False))


@refuse_keywords
def elementwise_grad(
    function: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[P, Any]:
    r"""Return a function that computes the derivative of an elementwise function everywhere.

    ``argnums`` and ``has_aux`` are as for `grad`. Raises `TypeError` or `ValueError` as `grad`, but
    for the shape of the result and its dtype.

    Parameters
    ----------
    function : callable
        A function that returns one Tensor of any shape, each of whose elements depends on one
        element of an argument.

    Returns
    -------
    callable
        A function of the same arguments that returns :math:`f'(x)` in the shape of the argument,
        as `grad` does. Of any other function it is the gradient of the sum of the results; so it
        is where an argument was broadcast, too.

    Notes
    -----
    Of a holomorphic function of complex numbers it is :math:`\overline{f'(z)}`.

    Examples
    --------
    >>> import numpy as np
    >>> wg.func.elementwise_grad(np.sin)(np.array([0.0, np.pi]))
    array([ 1., -1.])
    """
    return _gradient(function, argnums, has_aux, "elementwise_grad", scalar=False)


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    r"""Call a function, and return its value and the products of cotangents with its Jacobian.

    ``has_aux`` is as for `grad`.

    Raises `TypeError` if a primal or a result has no derivative. The pullback raises `ValueError`,
    `RuntimeError` or `TypeError` if the cotangent has another structure or shape than the value, or
    is no array.

    Parameters
    ----------
    *primals
        Its arguments, all of which are differentiated: Tensors, arrays and Python numbers, or trees
        of these.

    Returns
    -------
    value : Tensor, array, number or tree
        What the function returned, in the kind of the primals.
    pullback : callable
        ``pullback(cotangent)``, for a cotangent :math:`\bar y` like the value, returns a tuple
        with :math:`\bar x = J^H \bar y` for each primal. It can be called any number of times.

    Notes
    -----
    The pullback holds what the function's derivatives need, until it is itself dropped. Its answer
    is linear in the cotangent, and can be differentiated with respect to that, too.

    Examples
    --------
    >>> import numpy as np
    >>> value, pullback = wg.func.vjp(lambda x: x**2, np.array([1.0, 2.0]))
    >>> pullback(np.array([1.0, 10.0]))
    (array([ 2., 40.]),)
    """
    check_function(function, "vjp")
    if not primals:
        raise TypeError("vjp takes the function and at least one argument to call it with")
    call = split(function, primals, {}, range(len(primals)))
    swept = Reverse(call, "vjp", has_aux)

    def pullback(cotangent: Any, /) -> tuple[Any, ...]:
        """Return for each primal the cotangent that one of the function's value causes."""
        given = swept.structure.flatten_up_to(cotangent, "the cotangent")
        paths = swept.structure.paths()
        cotangents = list(map(_cotangent, given, swept.results, paths))
        found = swept.pull(cotangents, keep=True)
        return call.pack(found, cotangents)  # type: ignore[no-any-return]

    return (swept.value, pullback, swept.aux) if has_aux else (swept.value, pullback)


def _cotangent(given: Any, result: Tensor, path: str) -> Tensor:
    """What a user gave as the cotangent of a result, as a Tensor."""
    what = f"the cotangent{path}"
    tensor = like_leaf(given, result, what, "the result", RuntimeError)
    if not tensor.dtype.inexact:
        raise TypeError(f"{what} should be floating or complex, not {tensor.dtype.name}")
    if tensor.dtype.complex and not result.dtype.complex:
        raise imaginary_part(what, tensor.dtype.name, "the result", result)
    return tensor
