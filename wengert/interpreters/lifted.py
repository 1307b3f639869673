"""Lifted arrays, which have arrays inside: what forward mode and batches compute with.

Kernels are found by the type of a raw array. So a class of raw arrays with a namespace of its own
gives operations another meaning, at no cost to programs without it: a Tensor may hold such an
array, the tape may save it, and the sweep runs rules on it plainly. All these classes share one
namespace, `lifted`, so they mix and nest.
"""

from collections.abc import Callable, Sequence
from functools import cache
from inspect import Signature, signature
from itertools import count
from operator import attrgetter
from types import ModuleType
from typing import Any, ClassVar

from wengert.backends import Selection, backend_of, dtype_of, namespaces
from wengert.interpreters.differentiable import differentiable
from wengert.interpreters.namespaces import namespace
from wengert.tape.primitive import PRIMITIVES, Primitive
from wengert.tape.record import argument_names
from wengert.tape.tensor import Tensor, untracked

#: A level for each transform that is running: the inner one has the larger number.
new_level: Callable[[], int] = count(1).__next__


class Lifted:
    """A raw array that has another array inside.

    Attributes
    ----------
    level : int
        Which running transform it belongs to. Where several meet, the innermost, which has the
        largest number, is interpreted first, and sees the others as constants: that is what keeps
        perturbations apart (Siskind and Pearlmutter, Nesting forward-mode AD, 2008).
    inner : array or Tensor
        What it is an array of: a library's raw array, another `Lifted`, or a Tensor, where the
        tape records what happens inside.
    """

    __slots__ = ("inner", "level")

    inner: Any
    level: int

    #: Makes NumPy leave ``array * lifted`` to the reflected operator.
    __array_ufunc__: ClassVar[None] = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        # NumPy would make an array of one Python object of it.
        raise TypeError(
            f"a {type(self).__name__} inside a transform is no array of a library: what it has "
            "beside its values would be lost; compute with wengert's functions on the Tensor"
        )

    @classmethod
    def interpret(
        cls, level: int, primitive: Primitive, inputs: Sequence[Any], parameters: dict[str, Any]
    ) -> Any:
        """Run a primitive on inputs of which some are this class's, at this level.

        Inputs are as for the primitive's kernel, and so is the result: raw arrays, lifted or not.
        """
        raise NotImplementedError

    def constant(self, value: Any) -> "Lifted":
        """A raw array as one of this kind and level, in which nothing varies."""
        raise NotImplementedError

    @property
    def bottom(self) -> Any:
        """The library's own array at the bottom."""
        return bottom(self)

    @property
    def shape(self) -> Any:
        return self.inner.shape

    @property
    def dtype(self) -> Any:
        """The library's own data type."""
        return bottom(self).dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def device(self) -> Any:
        """Where the library's own array is."""
        array = bottom(self)
        return backend_of(array).device(array)

    @property
    def varies(self) -> bool:
        """Whether a transform or a trace follows the values."""
        return True

    def values(self) -> Any:
        """The library's own array of the values, to look at: to print, or to branch upon.

        Raises
        ------
        TypeError
            If there is no one array that has them.
        """
        raise TypeError(f"the values of a {type(self).__name__} can't be read")

    def refusal(self, where: str, done: str, instead: str) -> Exception:
        """The error where the values of a Tensor that has this array would leave it.

        Parameters
        ----------
        where, done, instead : str
            The line, what happens to the Tensor, and what keeps the derivative.
        """
        return RuntimeError(
            f"{where}a Tensor that a transform differentiates {done}, and its derivative would be "
            f"lost. {instead}."
        )

    def alike(self, array: "Lifted") -> Any:
        """An array of this level as user's code would get it where it has given this one."""
        return array

    def parts(self) -> dict[str, Any]:
        """The arrays that it prints beside its values, by name."""
        return {}

    def detached(self) -> Any:
        """The same values as a raw array in which nothing varies, for `Tensor.detach`."""
        return self

    def assigned(self, value: Any) -> Any:
        """What a Tensor of this array holds after a change in place to ``value`` under `no_grad`.

        As in reverse mode, where it keeps its node, it keeps the derivative that it had.
        """
        return value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r}, level={self.level})"

    # Rules use operators between arrays of one dtype.

    def __getitem__(self, key: Any) -> Any:
        return raw(untracked(self)[key])

    def __add__(self, other: Any) -> Any:
        return lifted.add(self, other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        return lifted.multiply(self, other)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Any:
        return lifted.subtract(self, other)

    def __rsub__(self, other: Any) -> Any:
        return lifted.subtract(other, self)

    def __truediv__(self, other: Any) -> Any:
        return lifted.divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return lifted.divide(other, self)

    def __gt__(self, other: Any) -> Any:
        return lifted.greater(self, other)

    def __neg__(self) -> Any:
        return lifted.negative(self)

    def __lt__(self, other: Any) -> Any:
        return lifted.less(self, other)


def constant(value: Any, like: Any) -> Any:
    """A raw floating or complex array, lifted as ``like`` is, or in a Tensor as ``like`` is."""
    if isinstance(like, Tensor):
        return untracked(constant(value, like._array))
    if isinstance(like, Lifted) and dtype_of(value.dtype).inexact:
        held = isinstance(value, Lifted) and value.level >= like.level
        return value if held else like.constant(value)
    return value


def bottom(array: Any) -> Any:
    """The library's own array at the bottom of a lifted one, or of a Tensor."""
    while True:
        if isinstance(array, Tensor):
            array = array._array
        elif isinstance(array, Lifted):
            array = array.inner
        else:
            return array


def raw(x: Any) -> Any:
    """The array of an untracked Tensor, or of each in a tuple; anything else as it is."""
    if isinstance(x, tuple):
        parts = map(raw, x)
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    return x._array if isinstance(x, Tensor) else x


def namespace_of(*values: Any) -> Any:
    """The namespace in which values of several kinds are computed with: the most general's."""
    found = None
    for value in values:
        if isinstance(value, Tensor):
            return differentiable
        if isinstance(value, Lifted):
            found = lifted
        elif found is None and hasattr(value, "dtype"):
            found = namespaces[type(value)]
    if found is None:
        raise TypeError("there is no array among the operands")
    return found


def apply(primitive: Primitive, inputs: Sequence[Any], parameters: dict[str, Any]) -> Any:
    """Run a primitive on what is inside: Tensors, lifted arrays, raw arrays, numbers, None."""
    xp = namespace_of(*inputs)
    if xp is differentiable:
        # Raw NumPy scalars would be numbers there.
        arrays = [
            untracked(x) if hasattr(x, "dtype") and not isinstance(x, Tensor) else x for x in inputs
        ]
        return _recorded(primitive, arrays, parameters)
    if xp is lifted:
        return run(primitive, inputs, parameters)
    live = next((x for x in inputs if hasattr(x, "regularise")), None)
    if live is not None:  # a number that a trace follows, which kernels do not take
        inputs = list(inputs)
        kind = live.regularise(inputs, primitive.weak)
    else:
        kind = next(type(x) for x in inputs if hasattr(x, "dtype"))
    return primitive.kernels[kind](*inputs, **parameters)


def _recorded(primitive: Primitive, inputs: Sequence[Any], parameters: dict[str, Any]) -> Any:
    """Apply a primitive to Tensors, with parameters as a kernel takes them.

    Rules leave out what has a default, and count axes from the end: the public function knows.
    """
    public, accepted, by_position = _public(primitive)
    if accepted is not None and by_position.isdisjoint(parameters):
        try:
            accepted.bind(*inputs, **parameters)
        except TypeError:
            return primitive.bind(*inputs, **parameters)
        return public(*inputs, **parameters)
    return primitive.bind(*inputs, **parameters)


@cache
def _public(primitive: Primitive) -> tuple[Any, Signature | None, frozenset[str]]:
    """The public function of a primitive's name, its signature, and what comes by position alone.

    There is no signature where there is no such function.
    """
    function = attrgetter(primitive.name)(differentiable)
    if function == primitive.bind:
        return function, None, frozenset()
    found = signature(function)
    # Beside ``**keywords`` Python 3.13 binds such a name to these.
    by_position = [x.name for x in found.parameters.values() if x.kind is x.POSITIONAL_ONLY]
    return function, found, frozenset(by_position)


def run(primitive: Primitive, inputs: Sequence[Any], parameters: dict[str, Any]) -> Any:
    """Interpret a primitive's application: the innermost level first."""
    top: Any = None
    for x in inputs:
        if isinstance(x, Lifted) and (top is None or x.level > top.level):
            top = x
    if top is None:
        return raw(apply(primitive, inputs, parameters))
    return type(top).interpret(top.level, primitive, inputs, parameters)


#: Functions whose results are made of no array's elements.
CREATION = frozenset(
    ("empty", "eye", "full", "linspace", "ones", "zeros")
    + ("empty_like", "full_like", "ones_like", "zeros_like")
)

# -- the namespace -------------------------------------------------------------------------------


def _function(name: str) -> Callable[..., Any]:
    """What a name does to lifted arrays: a primitive is interpreted, a composition is composed."""
    extension, _, short = name.rpartition(".")
    home = getattr(differentiable, extension) if extension else differentiable
    primitive = PRIMITIVES.get(name)
    if primitive is not None:
        arity = None if primitive.variadic else len(primitive.fixed)
        # A rule may leave out what has a default, and the rules of this primitive name it.
        defaults: dict[str, Any] = getattr(primitive.forward, "__kwdefaults__", None) or {}

        def interpreted(*inputs: Any, **parameters: Any) -> Any:
            if arity is not None and len(inputs) > arity:  # such as the shape in reshape(x, shape)
                names = argument_names(getattr(home, short))[arity:]
                parameters.update(zip(names, inputs[arity:], strict=False))
                inputs = inputs[:arity]
            return run(primitive, inputs, {**defaults, **parameters} if defaults else parameters)

        return interpreted
    public = getattr(home, short)
    if not callable(public):  # a dtype
        return public  # type: ignore[no-any-return]

    def composed(*inputs: Any, **parameters: Any) -> Any:
        return raw(public(*map(_wrapped, inputs), **parameters))

    def created(*inputs: Any, **parameters: Any) -> Any:
        # A cotangent that a rule creates is lifted as the array is that it is created beside.
        beside = parameters.get("device")
        like = beside.like if isinstance(beside, _Beside) else inputs[0] if inputs else None
        return constant(composed(*inputs, **parameters), like)

    return created if name in CREATION else composed


def _wrapped(x: Any) -> Any:
    if isinstance(x, list | tuple):
        return type(x)(map(_wrapped, x))
    return untracked(x) if isinstance(x, Lifted) else x


class _Beside(Selection):
    """Where new arrays are made beside a lifted one: `lifted` itself has no backend."""

    like: Any


def _device(x: Any) -> Selection:
    array = bottom(x)
    backend = backend_of(array)
    beside = _Beside(backend, backend.beside(array), "it is another array's")
    beside.like = x
    return beside


def conjugate(x: Any) -> Any:
    """Conjugate in a rule: a real array as it is, and Python numbers are welcome."""
    if isinstance(x, complex | float | int) or not hasattr(x, "dtype"):
        return x.conjugate()
    return run(PRIMITIVES["conj"], (x,), {}) if dtype_of(x.dtype).complex else x


def _real_part(name: str, function: Callable[[Any], Any], xp: ModuleType) -> Callable[[Any], Any]:
    """``real`` or ``imag`` of complex arrays, as a function gives it, and of real arrays too."""

    def part(x: Any) -> Any:
        if dtype_of(x.dtype).complex:
            return function(x)
        return x if name == "real" else xp.zeros_like(x)

    return part


def namespace_of_raw(
    name: str,
    find: Callable[[str], Any],
    device: Callable[[Any], Selection],
    is_view: Callable[[Any], bool],
) -> ModuleType:
    """The namespace of arrays with arrays inside, which rules take as raw arrays."""
    xp = namespace(name, find, plain=True, backend=None, device=device, is_view=is_view)
    xp.conj = conjugate  # type: ignore[attr-defined]
    for part in ("real", "imag"):
        setattr(xp, part, _real_part(part, find(part), xp))
    return xp


#: The functions of all lifted arrays.
lifted = namespace_of_raw(f"{__name__}.namespace", _function, _device, lambda array: True)
namespaces[Lifted] = lifted


def _add_part(total: Any, value: Any, *, key: tuple[Any, ...], own: bool) -> Any:
    """What `wengert.ops.index_composites` says of it, of lifted arrays."""
    return lifted.add(total, lifted.scatter_add(value, key=key, shape=total.shape))


lifted.add_part = _add_part  # type: ignore[attr-defined]
