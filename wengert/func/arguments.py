"""Arguments of transforms: Tensors, raw arrays and Python numbers in trees, answered in kind.

Every transform begins with `split`, which takes from a call's arguments the leaves that are to be
differentiated, as Tensors. The transform makes Tensors of its own of these, calls the function with
them by `Call.run`, and answers by `Call.pack` and `Call.answer`.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Final

import numpy as np

from wengert import ops
from wengert.backends import BackendError, DType, as_dtype, backend_of, dtype_of, namespaces
from wengert.backends.registry import lost_with
from wengert.func.trees import TreeDef, tree_flatten, tree_leaves, tree_map, trees_of
from wengert.interpreters.duals import check_running
from wengert.interpreters.lifted import Lifted, bottom
from wengert.interpreters.namespaces import differentiable
from wengert.tape.callbacks import call_back
from wengert.tape.grad_mode import record_always
from wengert.tape.marks import off_tape
from wengert.tape.node import running_forwards
from wengert.tape.promotion import at_least, number_type
from wengert.tape.tensor import Tensor, untracked, wrap

Argnums = int | Sequence[int]


#: Python's numbers that have derivatives; and floating dtypes in both their forms.
_INEXACT: Final = frozenset({float, complex})
_DOUBLE: Final = as_dtype(float)
_REAL = {"complex64": "float32", "complex128": "float64"}
_COMPLEX = {real: number for number, real in _REAL.items()}


@dataclass(slots=True)
class Call:
    """One call of a function that is transformed.

    Attributes
    ----------
    tensors : list of Tensor
        The leaves to be differentiated: as they were given where these are Tensors, so that they
        still have their nodes outside; otherwise untracked Tensors of arrays or numbers.
    given : list
        The leaves of all arguments.
    precision : DType or None
        The dtype that constants in the function should have at least, where raw arrays or numbers
        say so: NumPy's users lose no digit. Tensors leave it to the default dtype.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    argnums: tuple[int, ...]
    single: bool
    structures: list[TreeDef]
    leaves: list[Any]
    tensors: list[Tensor]
    given: list[Any]
    precision: DType | None

    @property
    def names(self) -> list[str]:
        """What errors call each leaf to be differentiated, such as ``"argument 0['weights']"``."""
        return [
            f"argument {position}{path}"
            for position, structure in zip(self.argnums, self.structures, strict=True)
            for path in structure.paths()
        ]

    def run(self, tensors: Iterable[Tensor]) -> Any:
        """Call the function with other Tensors in the places of the differentiated leaves."""
        args = list(self.args)
        for position, tree in zip(self.argnums, trees_of(self.structures, tensors), strict=True):
            args[position] = tree
        with at_least(self.precision):
            return call_back(self.function, *args, **self.kwargs)

    def results(
        self, tensors: Iterable[Tensor], transform: str, has_aux: bool
    ) -> tuple[list[Tensor], TreeDef, Any]:
        """Call the function, recorded: the leaves of its result, their structure, and the aux."""
        with record_always():
            returned = self.run(tensors)
        if not has_aux:
            return (*outputs(returned, transform), None)
        if not isinstance(returned, tuple) or len(returned) != 2:
            what = type(returned).__name__
            if isinstance(returned, tuple):
                what += f" of {len(returned)}"
            raise TypeError(
                f"with has_aux=True the function given to {transform} should return a pair "
                f"(result, aux), and returned a {what}"
            )
        return (*outputs(returned[0], transform), returned[1])

    def pack(self, tensors: Iterable[Tensor], given: Iterable[Tensor] = ()) -> Any:
        """Answer with a tree like the argument, or with one for each if ``argnums`` has several.

        Each leaf is of the argument's kind. Raw arrays share no memory with one another, nor with
        ``given``, what the caller gave beside the arguments.
        """
        if running_forwards:
            tensors = map(self._mark, tensors)
        seen = {id(x._array) for x in (*self.tensors, *given)}
        answers = [
            _own(in_kind(x, leaf), seen) for x, leaf in zip(tensors, self.leaves, strict=True)
        ]
        trees = trees_of(self.structures, answers)
        return trees[0] if self.single else tuple(trees)

    def _mark(self, x: Any) -> Any:
        """A result, marked if a `Function`'s forward computes it from tracked Tensors."""
        if not isinstance(x, Tensor) or x._node is not None:
            return x
        nodes = [t._node for t in self.given if isinstance(t, Tensor)]
        return off_tape(x._array, None, tuple(nodes))

    def answer(self, tree: Any) -> Any:
        """A tree of results: Tensors, or arrays if the arguments were arrays; all else as it is.

        If any argument holds a Tensor, results are Tensors; otherwise raw arrays if any holds one;
        otherwise Python numbers where they have no axes, and raw arrays where they have.
        """
        given = self.given
        if running_forwards:
            tree = tree_map(self._mark, tree)
        if not given or any(isinstance(leaf, Tensor) for leaf in given):
            return tree
        like = next((leaf for leaf in given if is_array(leaf)), None)
        if like is None:
            like = next((leaf for leaf in given if isinstance(leaf, int | float | complex)), None)
        elif isinstance(like, np.ndarray):
            like = like.dtype.type()  # NumPy's functions answer with scalars for arrays of no axes
        return tree_map(lambda x: in_kind(x, like) if isinstance(x, Tensor) else x, tree)


def split(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums
) -> Call:
    """Take the leaves that are to be differentiated from a call's arguments.

    A Python number becomes a Tensor of the precision that it would have beside the first floating
    array among the arguments, on that array's backend; where there is none, a double on the
    selected backend.

    Raises `TypeError` if a leaf has no derivative, with its place, and `ValueError` if there is no
    such argument, or one is named twice.
    """
    single = not isinstance(argnums, Sequence)
    positions = _positions(argnums, len(args))
    parts = [tree_flatten(argument) for argument in args]
    structures = [parts[position][1] for position in positions]
    leaves = [leaf for position in positions for leaf in parts[position][0]]
    given = [leaf for part, _ in parts for leaf in part]
    if kwargs:
        given += tree_leaves(kwargs)
    like = None
    if not _INEXACT.isdisjoint(map(number_type, leaves)):
        like = _floating_array(given)
    tensors: list[Tensor] = []
    call = Call(
        *(function, args, kwargs, positions, single, structures, leaves, tensors, given),
        precision_of(given),
    )
    for leaf in leaves:
        tensor = _as_tensor(leaf, like)
        if tensor is None:
            raise _no_derivative(call.names[len(tensors)], leaf)
        tensors.append(tensor)
    return call


def in_kind(tensor: Tensor, like: Any) -> Any:
    """Answer with what ``like`` is: a Tensor, a raw array, or a Python number.

    A Tensor that an outer transform or the tape still follows stays one: the array alone would
    lose the derivative.
    """
    array = tensor._array
    if isinstance(like, Tensor) or tensor._node is not None:
        return tensor
    if isinstance(array, Lifted):
        found = array.in_kind(like)
        return tensor if found is None else found
    if not array.shape:
        if type(like) in (*_INEXACT, int, bool):
            return tensor.item()
        if isinstance(like, np.generic) and isinstance(array, np.ndarray):
            return array[()]
        if isinstance(like, np.generic) and isinstance(array, np.generic):
            return array
    return backend_of(array).array(array)


def _own(answer: Any, seen: set[int]) -> Any:
    """An array that nothing else holds: a copy of one that is seen, or a view of other memory.

    Rules may pass one array on to several inputs.
    """
    if isinstance(answer, Tensor) or not hasattr(answer, "dtype"):
        return answer
    xp = namespaces[type(answer)]
    if id(answer) in seen or xp.is_view(answer):
        answer = xp.asarray(answer, copy=True)
    seen.add(id(answer))
    return answer


def like_leaf(given: Any, leaf: Tensor, what: str, owner: str, mismatch: type[Exception]) -> Tensor:
    """A tangent or cotangent that a user gave, as a Tensor of the shape and backend of a leaf.

    Errors call them ``what`` and ``owner``; that of another shape is a ``mismatch``.
    """
    array = leaf._array
    if isinstance(given, int | float | complex) and not hasattr(given, "dtype"):
        if leaf.shape:
            raise mismatch(
                f"{what} is the number {given}, and {owner} has shape {tuple(leaf.shape)}; give "
                "an array of that shape"
            )
        if isinstance(given, complex) and not leaf.dtype.complex:
            raise imaginary_part(what, "complex", owner, leaf)
        return untracked(namespaces[type(array)].full_like(array, given))
    try:
        tensor = wrap(given)
    except TypeError:
        raise TypeError(
            f"{what} should be a Tensor, an array or a number, not {type(given).__name__}"
        ) from None
    if tensor.shape != leaf.shape:
        raise mismatch(
            f"{what} has shape {tuple(tensor.shape)} and {owner} has shape {tuple(leaf.shape)}"
        )
    home, other = (namespaces[type(bottom(x._array))] for x in (leaf, tensor))
    if home is not other:
        raise BackendError(
            f"{what} is on {other.backend.name} and {owner} on {home.backend.name}; move it with "
            f"tensor.to_backend({home.backend.name!r})"
        )
    return tensor


def imaginary_part(what: str, given: str, owner: str, leaf: Tensor) -> TypeError:
    """The error for complex numbers in the place of real ones."""
    return TypeError(
        f"{what} is {given} and {owner} is {leaf.dtype.name}: the imaginary part would be lost; "
        "give its real part"
    )


def outputs(tree: Any, transform: str) -> tuple[list[Tensor], TreeDef]:
    """Take apart what a function returned; its leaves have to be Tensors with derivatives.

    A leaf that is no Tensor was computed off the tape, and has lost its derivative.
    """
    leaves, structure = tree_flatten(tree)
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor) and leaf.dtype.inexact:
            check_running([leaf._array])
            continue
        what = f"the result{structure.paths()[i]} of the function given to {transform}"
        if isinstance(leaf, Tensor):
            raise TypeError(
                f"{what} has dtype {leaf.dtype.name}, and only floating and complex results have "
                "derivatives; return it as auxiliary data with has_aux=True"
            )
        raise TypeError(
            f"{what} is a {type(leaf).__name__}, and should be a Tensor: a result that is not "
            "computed from the arguments by Tensor operations has no derivative that could be "
            "found. Leave out float(), item() and numpy(), and make a constant by wg.asarray"
        )
    return leaves, structure


def check_function(function: Any, transform: str) -> None:
    """Raise if what a transform is to differentiate cannot be called."""
    if not callable(function):
        raise TypeError(f"{transform} takes a function, not {type(function).__name__}")


def named_like(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a transformed function the name, docstring and signature of the one it comes from."""
    # An object that is called may keep anything in its __dict__, such as a module's parameters.
    return functools.wraps(function, updated=())


def _positions(argnums: Argnums, count: int) -> tuple[int, ...]:
    given: tuple[Any, ...] = tuple(argnums) if isinstance(argnums, Sequence) else (argnums,)
    positions = []
    for number in given:
        try:
            position = index(number)
        except TypeError:
            message = f"argnums should be an integer or several, not {argnums!r}"
            raise TypeError(message) from None
        if not -count <= position < count:
            raise ValueError(
                f"argnums={argnums!r}: there is no argument {position} to differentiate among the "
                f"{count} that were given by position; arguments given by keyword are passed on, "
                "and not differentiated"
            )
        positions.append(position % count)
    if not positions:
        raise ValueError("argnums is empty: name at least one argument to differentiate")
    if len(set(positions)) < len(positions):
        raise ValueError(f"argnums={argnums!r} names an argument twice")
    return tuple(positions)


def _as_tensor(leaf: Any, like: Tensor | None) -> Tensor | None:
    """A leaf as a Tensor; None if it has no derivative."""
    if isinstance(leaf, Tensor):
        return leaf if leaf.dtype.inexact else None
    if number_type(leaf) in _INEXACT:
        return _of_number(leaf, like)
    if not is_array(leaf):
        return None
    try:
        inexact = dtype_of(leaf.dtype).inexact
    except TypeError:  # a dtype that is not the standard's
        return None
    return untracked(backend_of(leaf).adopt(leaf)) if inexact else None


def _no_derivative(name: str, leaf: Any) -> TypeError:
    """The error for a leaf that has no derivative."""
    if isinstance(leaf, Tensor) or is_array(leaf):
        try:
            dtype = dtype_of(bottom(leaf).dtype)
        except TypeError as error:
            return TypeError(f"{name} has no derivative: {error}")
        return TypeError(
            f"{name} has dtype {dtype.name}, and only floating and complex arrays have "
            "derivatives; convert it to floating first, or leave it out of argnums"
        )
    if isinstance(leaf, int):
        return TypeError(
            f"{name} is the {'truth value' if isinstance(leaf, bool) else 'integer'} {leaf}, and "
            f"only floating and complex numbers have derivatives; pass {float(leaf)} to "
            "differentiate with respect to it"
        )
    more = lost_with(type(leaf))
    return TypeError(
        f"{name} is a {type(leaf).__name__}; what is differentiated should be Tensors, arrays "
        "or numbers, in dicts, lists, tuples or dataclasses. "
        f"{more or 'Leave the argument out of argnums'}"
    )


def _of_number(number: Any, like: Tensor | None) -> Tensor:
    if like is None:
        return ops.asarray(number, dtype=as_dtype(number_type(number)))
    name = _REAL.get(like.dtype.name, like.dtype.name)
    if isinstance(number, complex):
        name = _COMPLEX.get(name, "complex64")
    beside = differentiable.device(untracked(bottom(like)))
    return ops.asarray(number, dtype=as_dtype(name), device=beside)


def precision_of(leaves: Iterable[Any]) -> DType | None:
    """The widest floating dtype of the raw arrays among leaves; without arrays, of the numbers.

    None where there is neither, or single precision does: there the default dtype stands.
    """
    alone, numbers = True, False
    for leaf in leaves:
        if number_type(leaf) in _INEXACT:
            numbers = True
        elif isinstance(leaf, Tensor):
            alone = False
        elif is_array(leaf):
            alone = False
            if str(leaf.dtype).endswith(("float64", "complex128")):
                return _DOUBLE
    return _DOUBLE if alone and numbers else None


def _floating_array(leaves: Iterable[Any]) -> Tensor | None:
    """The first floating or complex array among leaves, as a Tensor."""
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            if leaf.dtype.inexact:
                return leaf
        elif is_array(leaf):
            found = untracked(leaf)
            if found.dtype.inexact:
                return found
    return None


def is_array(x: Any) -> bool:
    """Whether this is a raw array (or a NumPy scalar) of a library that is known."""
    if isinstance(x, Tensor | type) or not hasattr(x, "dtype") or not hasattr(x, "shape"):
        return False
    try:
        backend_of(x)
    except (TypeError, BackendError):
        return False
    return True
