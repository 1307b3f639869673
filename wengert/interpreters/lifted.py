"""Lifted arrays: arrays with an array inside, for forward mode, batches and traces.

Kernels are dispatched on the type of raw array. A class of raw arrays with a namespace of its own
therefore changes the meaning of operations, at no cost to programs without it: Tensors hold such
arrays, the tape saves them, and the sweep runs rules on them. They share one namespace, `lifted`,
so that they mix and nest.

A primitive passes three functions in turn:

- `Primitive.bind`, and its fast forms in `wengert.tape.calling`, take Tensors, and call the kernel
  of their arrays' type. A library's kernel computes; that of lifted arrays is `run`.
- `run` finds the newest level among its inputs, whose class interprets it: `Lifted.interpret`.
- `interpret` takes its own level off, and hands what is inside to `apply`: lifted arrays are `run`,
  and a library's arrays go to its kernel.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

from wengert.backends import DType, Selection, backend_of, dtype_of, namespaces
from wengert.backends.backend import composites
from wengert.interpreters.namespaces import differentiable, namespace
from wengert.tape.primitive import PRIMITIVES, Primitive
from wengert.tape.record import argument_names
from wengert.tape.tensor import Tensor, untracked

#: Makes the level of a transform; an inner transform has a larger number.
new_level: Callable[[], int] = count(1).__next__


class Lifted:
    """A raw array that has another array inside.

    Attributes
    ----------
    level : int
        The transform that it belongs to. Among several levels the newest, with the largest
        number, is interpreted first, and treats the others as constants, which avoids perturbation
        confusion (Siskind and Pearlmutter, Nesting forward-mode AD, 2008).
    inner : array
        A library's raw array, or another `Lifted`.
    """

    __slots__ = ("inner", "level")

    inner: Any
    level: int

    #: Whether a derivative may be asked for. A trace records what would happen without it.
    followed: ClassVar[bool] = True

    #: Makes NumPy leave ``array * lifted`` to the reflected operator.
    __array_ufunc__: ClassVar[None] = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        # NumPy would make an object array.
        raise TypeError(
            f"a {type(self).__name__} inside a transform is no array of a library: its derivatives "
            "would be lost; compute with wengert's functions on the Tensor"
        )

    @classmethod
    def interpret(
        cls, level: int, primitive: Primitive, inputs: Sequence[Any], parameters: dict[str, Any]
    ) -> Any:
        """Run a primitive on inputs of which some are of this class and level.

        Inputs and result are as for the primitive's kernel: raw arrays, lifted or not.
        """
        raise NotImplementedError

    def constant(self, value: Any) -> "Lifted":
        """A raw array as a constant of this class and level."""
        raise NotImplementedError

    @property
    def bottom(self) -> Any:
        """The library's own array, at the bottom."""
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
        """Whether a transform or a trace depends on the values."""
        return True

    def values(self) -> Any:
        """The library's own array of the values; `TypeError` if no single array has them."""
        raise TypeError(f"the values of a {type(self).__name__} can't be read")

    def refusal(self, where: str, done: str, instead: str) -> Exception:
        """The error for reading values: the line, the operation, and what to do instead."""
        return RuntimeError(
            f"{where}a Tensor that a transform differentiates {done}, and its derivative would be "
            f"lost. {instead}."
        )

    def in_kind(self, like: Any) -> Any:
        """Convert to the type of ``like``, a raw array or a number.

        None, as here, if a derivative would be lost.
        """

    def parts(self) -> dict[str, Any]:
        """Further arrays to print, by name."""
        return {}

    def as_constant(self) -> Any:
        """The same values as a constant, for `Tensor.detach`."""
        return self

    def with_values(self, value: Any) -> Any:
        """A Tensor's new array after it was assigned ``value`` under `no_grad`; tangents stay."""
        return value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r}, level={self.level})"

    def __getitem__(self, key: Any) -> Any:
        return raw(untracked(self)[key])

    __hash__ = object.__hash__  # arrays compare element by element


def constant(value: Any, like: Any) -> Any:
    """A raw floating or complex array as a constant of the same levels as ``like``."""
    if isinstance(like, Tensor):
        return untracked(constant(value, like._array))
    if isinstance(like, Lifted) and dtype_of(value.dtype).inexact:
        held = isinstance(value, Lifted) and value.level >= like.level
        return value if held else like.constant(value)
    return value


def bottom(array: Any) -> Any:
    """The library's own array, at the bottom of a lifted one or a Tensor."""
    while True:
        if isinstance(array, Tensor):
            array = array._array
        elif isinstance(array, Lifted):
            array = array.inner
        else:
            return array


def raw(x: Any) -> Any:
    """The raw array of an untracked Tensor, or of each in a tuple; other objects unchanged."""
    if isinstance(x, tuple):
        parts = map(raw, x)
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    return x._array if isinstance(x, Tensor) else x


def namespace_of(*values: Any) -> Any:
    """The most general namespace of several values: of Tensors, lifted, or raw arrays."""
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
    """Run a primitive on inner values: lifted arrays, raw arrays, numbers, None."""
    kind = number = None
    has_lifted = False
    for x in inputs:
        if isinstance(x, Lifted):
            has_lifted = True
        elif hasattr(x, "regularise"):  # a traced number, which kernels do not take
            number = x
        elif kind is None and hasattr(x, "dtype"):
            kind = type(x)
    if has_lifted:
        return run(primitive, inputs, parameters)
    if kind is None:
        raise TypeError("there is no array among the operands")
    if number is not None:
        inputs = list(inputs)
        kind = number.regularise(inputs, primitive.weak)
    return (primitive.bind if kind is Tensor else primitive.kernels[kind])(*inputs, **parameters)


def run(primitive: Primitive, inputs: Sequence[Any], parameters: dict[str, Any]) -> Any:
    """Interpret a primitive's application, newest level first."""
    top: Any = None
    for x in inputs:
        if isinstance(x, Lifted) and (top is None or x.level > top.level):
            top = x
    if top is None:  # a rule calls ``xp.f`` with constants alone
        return raw(apply(primitive, inputs, parameters))
    return type(top).interpret(top.level, primitive, inputs, parameters)


#: Creation functions.
CREATION = frozenset(
    ("empty", "eye", "full", "linspace", "ones", "zeros")
    + ("empty_like", "full_like", "ones_like", "zeros_like")
)

# -- the namespace -------------------------------------------------------------------------------


def _function(name: str) -> Callable[..., Any]:
    """A function of lifted arrays: primitives are interpreted, others run their composition."""
    extension, _, short = name.rpartition(".")
    home = getattr(differentiable, extension) if extension else differentiable
    primitive = PRIMITIVES.get(name)
    if primitive is not None:
        arity = None if primitive.variadic else len(primitive.fixed)
        # Rules may omit defaults that this primitive's own rules need.
        defaults: dict[str, Any] = getattr(primitive.composite, "__kwdefaults__", None) or {}

        def call_lifted(*inputs: Any, **parameters: Any) -> Any:
            if arity is not None and len(inputs) > arity:  # such as the shape in reshape(x, shape)
                names = argument_names(getattr(home, short))[arity:]
                parameters.update(zip(names, inputs[arity:], strict=False))
                inputs = inputs[:arity]
            if type(parameters.get("dtype")) is DType:  # `xp.float32`, which kernels do not know
                parameters["dtype"] = backend_of(bottom(inputs[0])).raw_dtype(parameters["dtype"])
            return run(primitive, inputs, {**defaults, **parameters} if defaults else parameters)

        return call_lifted
    public = getattr(home, short)
    if not callable(public):  # a dtype
        return public  # type: ignore[no-any-return]

    def compose(*inputs: Any, **parameters: Any) -> Any:
        return raw(public(*map(_wrap, inputs), **parameters))

    def create(*inputs: Any, **parameters: Any) -> Any:
        # A cotangent that a rule creates has the levels of the array beside it.
        beside = parameters.get("device")
        like = beside.like if isinstance(beside, _Beside) else inputs[0] if inputs else None
        return constant(compose(*inputs, **parameters), like)

    return create if name in CREATION else compose


def _wrap(x: Any) -> Any:
    if isinstance(x, list | tuple):
        return type(x)(map(_wrap, x))
    return untracked(x) if hasattr(x, "dtype") and not isinstance(x, Tensor | type) else x


class _Beside(Selection):
    """The backend and device for new arrays beside a lifted one."""

    like: Any


def _device(x: Any) -> Selection:
    array = bottom(x)
    backend = backend_of(array)
    beside = _Beside(backend, backend.beside(array), "it is another array's")
    beside.like = x
    return beside


def namespace_of_raw(
    name: str,
    find: Callable[[str], Any],
    device: Callable[[Any], Selection],
    is_view: Callable[[Any], bool],
) -> ModuleType:
    """A namespace of lifted arrays, which rules treat as raw arrays."""
    xp = namespace(
        name, find, records=False, backend=None, elsewhere=False, device=device, is_view=is_view
    )
    parts = {part: find(part) for part in ("conj", "real", "imag")}
    xp.library = SimpleNamespace(**parts)  # type: ignore[attr-defined]
    for part in parts:  # of real arrays, as on libraries' own
        setattr(xp, part, partial(composites[part], xp))
    return xp


def add_operators(kind: type, xp: ModuleType) -> None:
    """Give a class of raw arrays the operators of rules, by the functions of a namespace."""
    for word, name in _ARITHMETIC.items() | _COMPARISONS.items():
        setattr(kind, f"__{word}__", lambda x1, x2, name=name: getattr(xp, name)(x1, x2))
    for word, name in _ARITHMETIC.items():
        setattr(kind, f"__r{word}__", lambda x2, x1, name=name: getattr(xp, name)(x1, x2))
    for word, name in _SIGNS.items():
        setattr(kind, f"__{word}__", lambda x, name=name: getattr(xp, name)(x))


_ARITHMETIC = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide"}
_ARITHMETIC |= {"and": "bitwise_and", "or": "bitwise_or"}
_COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_COMPARISONS |= {"eq": "equal", "ne": "not_equal"}
_SIGNS = {"neg": "negative", "invert": "bitwise_invert"}

#: The namespace of all lifted arrays.
lifted = namespace_of_raw(f"{__name__}.namespace", _function, _device, lambda array: True)
namespaces[Lifted] = lifted
add_operators(Lifted, lifted)


def _add_part(total: Any, value: Any, *, key: tuple[Any, ...], own: bool) -> Any:
    """`add_part` of lifted arrays; see `wengert.ops.index_composites`."""
    return lifted.add(total, lifted.scatter_add(value, key=key, shape=total.shape))


lifted.add_part = _add_part  # type: ignore[attr-defined]
