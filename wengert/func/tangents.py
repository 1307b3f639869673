"""Calls of functions on Tensors with tangents: what the transforms by forward mode share."""

from collections.abc import Callable, Sequence
from typing import Any

from wengert.backends import BackendError, namespaces
from wengert.func.arguments import Call, check_function, split
from wengert.func.trees import TreeDef, tree_flatten
from wengert.interpreters.dual import Exit, make_dual, unpack_dual, without_tangent
from wengert.interpreters.lifted import bottom
from wengert.ops.creation import zeros_like
from wengert.tape.tensor import Tensor, untracked, wrapped


class Forward:
    """A function that has been called on Tensors with tangents, one for each differentiated leaf.

    ``out`` has the transform's level; ``always`` is as for `wengert.interpreters.dual.make_dual`.

    Attributes
    ----------
    inputs : list of Tensor
        The arguments' leaves, with their tangents.
    results, structure
        The leaves of what the function returned, still at the level, and their structure.
    """

    def __init__(
        self,
        call: Call,
        tangents: Sequence[Tensor],
        out: Exit,
        transform: str,
        has_aux: bool = False,
        always: bool = False,
    ) -> None:
        self.call, self.out = call, out
        self.inputs = [
            make_dual(x, t, out.level, always) for x, t in zip(call.tensors, tangents, strict=True)
        ]
        self.results: list[Tensor]
        self.structure: TreeDef
        self.results, self.structure, aux = call.results(self.inputs, transform, has_aux)
        self._aux = tree_flatten(aux)

    @property
    def aux(self) -> Any:
        """What the function returned beside its value, in the kind of the call."""
        leaves, structure = self._aux
        found = iter(self.still([x for x in leaves if isinstance(x, Tensor)]))
        free = [next(found) if isinstance(x, Tensor) else x for x in leaves]
        return self.call.answer(structure.unflatten(free))

    def still(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The values of Tensors of the level, outside."""
        inside = [without_tangent(x, self.out.level) for x in tensors]
        return [y for y, _ in unpack_dual(inside, self.out)]

    def answer(self, tensors: Sequence[Tensor]) -> Any:
        """Answer with one Tensor for each result, in the kind of the call."""
        return self.call.answer(self.structure.unflatten(tensors))


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
    array = primal._array
    what = f"the tangent of {name}"
    if isinstance(given, int | float | complex) and not hasattr(given, "dtype"):
        if primal.shape or (isinstance(given, complex) and not primal.dtype.complex):
            raise ValueError(
                f"{what} is the number {given}, and the argument has shape {tuple(primal.shape)} "
                f"and dtype {primal.dtype.name}; give an array like it"
            )
        return untracked(namespaces[type(array)].full_like(array, given))
    try:
        tensor = wrapped(given)
    except TypeError:
        raise TypeError(
            f"{what} should be a Tensor, an array or a number, not {type(given).__name__}"
        ) from None
    if tensor.shape != primal.shape:
        raise ValueError(
            f"{what} has shape {tuple(tensor.shape)}, and the argument has shape "
            f"{tuple(primal.shape)}"
        )
    if tensor.dtype is not primal.dtype:
        raise TypeError(
            f"{what} has dtype {tensor.dtype.name}, and the argument has {primal.dtype.name}; "
            f"convert it with wg.astype(t, wg.{primal.dtype.name})"
        )
    home, other = (namespaces[type(bottom(x._array))] for x in (primal, tensor))
    if home is not other:
        raise BackendError(
            f"{what} is on {other.backend.name} and the argument on {home.backend.name}; move it "
            f"with tensor.to_backend({home.backend.name!r})"
        )
    return tensor


def moving(pair: tuple[Tensor, Tensor | None]) -> Tensor:
    """The tangent of a result, zeros where it is none."""
    value, tangent = pair
    return zeros_like(value) if tangent is None else tangent
