"""Forward mode: `jvp`, a function called on dual Tensors."""

from collections.abc import Callable, Sequence
from typing import Any

from wengert.func.arguments import Call, check_function, like_leaf, split
from wengert.func.trees import tree_leaves, tree_map
from wengert.interpreters.duals import DualExit, make_dual, running, without_tangent
from wengert.interpreters.levels import leave
from wengert.interpreters.lifted import new_level
from wengert.ops.creation import zeros_like
from wengert.tape.grad_mode import recording, tangents_flow
from wengert.tape.node import tick
from wengert.tape.tensor import Tensor


class Push:
    """A call of a function on dual Tensors: the arguments' leaves with a tangent each.

    Attributes
    ----------
    values, tangents : list
        The results and their tangents outside: Tensors, or None for a tangent of zero.
    structure : TreeDef
        Of what the function returned.
    """

    def __init__(
        self, call: Call, tangents: Sequence[Tensor | None], transform: str, has_aux: bool = False
    ) -> None:
        self.call = call
        out = DualExit(new_level(), tick(), bool(recording()), tangents_flow())
        duals = [make_dual(x, t, out.level) for x, t in zip(call.tensors, tangents, strict=True)]
        with running(out.level):
            results, self.structure, aux = call.results(duals, transform, has_aux)
        pairs = leave(results, out)
        self.values = [value for value, _ in pairs]
        self.tangents = [tangent for _, tangent in pairs]

        def value(x: Any) -> Any:
            if not isinstance(x, Tensor):
                return x
            return leave([without_tangent(x, out.level)], out)[0][0]

        self._aux = tree_map(value, aux)

    @property
    def aux(self) -> Any:
        """The function's auxiliary output, as arrays if the arguments were arrays."""
        return self.call.answer(self._aux)

    @property
    def is_recorded(self) -> bool:
        """Whether the tape outside follows any value."""
        tensors = [*self.values, *tree_leaves(self._aux)]
        return any(isinstance(x, Tensor) and x._node is not None for x in tensors)

    def answer(self, tensors: Sequence[Tensor]) -> Any:
        """One Tensor for each result, or one array if the arguments were arrays."""
        return self.call.answer(self.structure.unflatten(tensors))


def jvp(
    function: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> tuple[Any, ...]:
    r"""Call a function, and return its value and the product of its Jacobian with a tangent.

    ``has_aux`` is as for `grad`.

    Raises `TypeError` if primals or tangents are no tuples or lists, or a primal or a result has no
    derivative; `TypeError`, `ValueError` or `BackendError` if a tangent has another dtype, shape or
    backend than its primal; `NotImplementedError` if an operation has no derivative.

    Parameters
    ----------
    primals : tuple or list
        Its arguments, all of which are differentiated: Tensors, arrays and Python numbers, or trees
        of these.
    tangents : tuple or list
        For each argument its tangent: of the same structure, shapes and dtypes. A Python number
        may stand for a tangent of no axes.

    Returns
    -------
    value : Tensor, array, number or tree
        What the function returned, in the kind of the primals.
    tangent : Tensor, array, number or tree
        :math:`\dot y = J \dot x`, of the structure, shapes and dtypes of the value.

    Notes
    -----
    It is forward mode: one pass, which keeps nothing. A `no_grad` block around it has no effect;
    what the function computes under `no_grad` is constant, as it is to `grad`.
    Of complex functions that are not holomorphic, :math:`J` acts on real and imaginary parts.

    Examples
    --------
    >>> import numpy as np
    >>> wg.func.jvp(np.sin, (0.0,), (2.0,))
    (0.0, 2.0)
    """
    call, given = split_with_tangents(function, primals, tangents, "jvp")
    pushed = Push(call, given, "jvp", has_aux)
    value = pushed.answer(pushed.values)
    pairs = zip(pushed.values, pushed.tangents, strict=True)
    tangent = pushed.answer([zeros_like(y) if t is None else t for y, t in pairs])
    return (value, tangent, pushed.aux) if has_aux else (value, tangent)


def split_with_tangents(
    function: Callable[..., Any], primals: Any, tangents: Any, transform: str
) -> tuple[Call, list[Tensor]]:
    """The call of a function with primals, and tangents for its leaves."""
    check_function(function, transform)
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            raise TypeError(
                f"{transform} takes the {what} in a tuple, as in {transform}(f, (x,), (t,)), and "
                f"not a {type(given).__name__}"
            )
    if not primals:
        raise TypeError(f"{transform} takes at least one argument to call the function with")
    if len(primals) != len(tangents):
        raise ValueError(
            f"{transform} was given {len(primals)} primals and {len(tangents)} tangents; each "
            "argument has one"
        )
    call = split(function, tuple(primals), {}, range(len(primals)))
    return call, tangents_of(call, tangents)


def tangents_of(call: Call, tangents: Sequence[Any]) -> list[Tensor]:
    """What a user gave as tangents, as a Tensor for each leaf of the primals."""
    given = [
        leaf
        for position, (structure, tree) in enumerate(zip(call.structures, tangents, strict=True))
        for leaf in structure.flatten_up_to(tree, f"the tangent of argument {position}")
    ]
    return [
        _tangent(t, x, name) for t, x, name in zip(given, call.tensors, call.names, strict=True)
    ]


def _tangent(given: Any, primal: Tensor, name: str) -> Tensor:
    what = f"the tangent of {name}"
    tensor = like_leaf(given, primal, what, "the argument", ValueError)
    if tensor.dtype is not primal.dtype:
        raise TypeError(
            f"{what} has dtype {tensor.dtype.name}, and the argument has {primal.dtype.name}; "
            f"convert it with wg.astype(t, wg.{primal.dtype.name})"
        )
    return tensor
