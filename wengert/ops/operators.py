"""The Tensor's operators and methods: functions of this package, attached here and only here."""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from inspect import getattr_static
from types import NoneType
from typing import Any, Final

import numpy as np

from wengert.backends import BackendError, DType, as_dtype, backend_of
from wengert.interpreters.namespaces import differentiable
from wengert.names import HINTS
from wengert.ops.axes import number
from wengert.ops.constants import bool as bool_
from wengert.ops.constants import float16, float32, float64, int32, int64
from wengert.ops.conversion import as_storable, asarray
from wengert.ops.data_type import astype, check_storable, storable, to_backend, to_device
from wengert.ops.elementwise import (
    add,
    conj,
    divide,
    floor_divide,
    imag,
    multiply,
    real,
    remainder,
    subtract,
)
from wengert.ops.indexing import getitem, setitem
from wengert.ops.late import LATER, METHODS
from wengert.ops.linear_algebra import matrix_transpose
from wengert.ops.manipulation import broadcast_to, unstack
from wengert.tape.calling import binary, bind_pair
from wengert.tape.node import Node
from wengert.tape.primitive import PRIMITIVES, ZERO, Primitive
from wengert.tape.promotion import SCALARS, number_type
from wengert.tape.record import argument_names
from wengert.tape.tensor import Tensor, assign, with_node
from wengert.tape.views import same, show

Function = Callable[..., Tensor]

#: Python's name of a binary operator, the function, and whether its operands change places.
BINARY = (
    ("add", "add", True),
    ("sub", "subtract", False),
    ("mul", "multiply", True),
    ("truediv", "divide", False),
    ("floordiv", "floor_divide", False),
    ("mod", "remainder", False),
    ("pow", "pow", False),
    ("matmul", "matmul", False),
    ("and", "bitwise_and", True),
    ("or", "bitwise_or", True),
    ("xor", "bitwise_xor", True),
    ("lshift", "bitwise_left_shift", False),
    ("rshift", "bitwise_right_shift", False),
)
UNARY = (("neg", "negative"), ("pos", "positive"), ("abs", "abs"), ("invert", "bitwise_invert"))
ORDER = (("lt", "less"), ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal"))
EQUALITY = (("eq", "equal"), ("ne", "not_equal"))

#: What is imported late and is no function of a first argument ``x``.
NO_METHODS = {
    *("UniqueAllResult", "UniqueCountsResult", "UniqueInverseResult"),
    *("FInfo", "IInfo", "einsum", "finfo", "iinfo", "logsumexp", "pad"),
}


def _bind(primitive: Primitive, x1: Any, x2: Any) -> Any:
    """As `bind_pair`, for an operator: a foreign operand may define it instead."""
    if is_foreign(x1) or is_foreign(x2):
        return NotImplemented
    if GIVEN:
        x1, x2 = strong(x1, x2)
    return bind_pair(primitive, x1, x2)


def strong(*values: Any) -> tuple[Any, ...]:
    """In NumPy's programs, NumPy's numbers with their dtypes, which take part in promotion."""
    if "wengert.numpy" not in GIVEN:
        return values
    return tuple([Tensor(np.asarray(x)) if isinstance(x, np.generic) else x for x in values])


#: Python's own types without operators for arrays, for which an error is raised.
_NONSENSE: Final = frozenset({NoneType, bytes, dict, list, range, set, slice, str, tuple})


def is_foreign(x: Any) -> bool:
    """Whether an operand is neither an array nor a number, and may define an operator itself."""
    if isinstance(x, Tensor | np.generic | int | float | complex) or type(x) in _NONSENSE:
        return False
    if hasattr(x, "regularise"):
        return False
    try:
        backend_of(x)
    except TypeError:
        return True
    except BackendError:
        return False
    return False


def _operator(name: str, function: Function) -> Function:
    """A function of two arrays as an operator, which lets objects of other types answer."""
    primitive = PRIMITIVES[name]
    if function.__code__ is _ELEMENTWISE:
        return binary(primitive, _bind)

    def operator(x1: Any, x2: Any, /) -> Any:
        try:
            return function(x1, x2)
        except (TypeError, ValueError):
            if is_foreign(x1) or is_foreign(x2):
                return NotImplemented
            raise

    return operator


_ELEMENTWISE = add.__code__


def _reflect(function: Function) -> Function:
    def method(self: Tensor, other: Any, /) -> Tensor:
        return function(other, self)

    return method


def _in_place(name: str, function: Function) -> Function:
    """The method that puts a function's result into its first argument."""

    def method(self: Tensor, other: Any, /) -> Any:
        result = function(self, other)
        if result is NotImplemented:
            return result
        return assign(self, _cast(result, self.dtype), other)

    method.__doc__ = f"Change this Tensor to ``{name}(self, other)``, in place."
    return method


def _divmod(self: Tensor, other: Any, /) -> Any:
    quotient = _FLOORDIV(self, other)
    return quotient if quotient is NotImplemented else (quotient, _MOD(self, other))


def _rdivmod(self: Tensor, other: Any, /) -> Any:
    quotient = _FLOORDIV(other, self)
    return quotient if quotient is NotImplemented else (quotient, _MOD(other, self))


def _cast(result: Tensor, dtype: DType) -> Tensor:
    """A result in the dtype of the Tensor that takes it, if that holds its kind."""
    if result.dtype is dtype or not storable(result.dtype.kind, dtype):
        return result
    return astype(result, dtype)


def _comparable(function: Function) -> Function:
    """``==`` and ``!=``: with an object that is no array Python compares identities."""

    def method(self: Tensor, other: Any, /) -> Any:
        if (
            isinstance(other, Tensor | bool | int | float | complex)
            or hasattr(other, "shape")
            or hasattr(other, "regularise")
        ):
            return function(self, other)
        return NotImplemented

    return method


#: How many rows iteration takes from a Tensor at first; then twice as many each time.
_ROWS = 16


def _iter(self: Tensor) -> Iterator[Tensor]:
    if not self.ndim:
        raise TypeError("iteration over a 0-d tensor")
    held = with_node(self._array, self._node)  # x += y meanwhile does not change the rows
    show(held, self, same, {})
    return _rows(held)


def _rows(x: Tensor) -> Iterator[Tensor]:
    """Yield the rows, in blocks that grow: rows that nobody asks for are not recorded.

    Each block is one operation, whose derivative takes the time of the whole array.
    """
    length, start, count = x.shape[0], 0, _ROWS
    if length != length:  # nan: the loop would end at once
        len(x)  # which says so
    while start < length:
        stop = min(start + count, length)
        yield from unstack(x if stop - start == length else getitem(x, slice(start, stop)))
        start, count = stop, 2 * count


def _contains(self: Tensor, value: Any, /) -> bool:
    """``value in x``: whether some element is equal, as in NumPy and PyTorch."""
    equal = self == value
    return isinstance(equal, Tensor) and bool(vars(differentiable)["any"](equal))


# -- PyTorch's in-place methods ------------------------------------------------------------------


_filled = Primitive(
    "fill",
    ["x"],
    {"x": ZERO},
    elementwise=True,
    dtypes="any",
    composite=lambda xp, x, value: xp.full_like(x, value),
).bind


def _fill(self: Tensor, value: Any, /) -> Tensor:
    """Set every element to one value: a number, or an array of one element, which is tracked."""
    value = value.item() if isinstance(value, np.generic) else value
    if number_type(value) not in SCALARS:
        return _take(self, value, "fill_")
    check_storable("fill_", value, self.dtype)
    return assign(self, _filled(self, value=value))


def _zero(self: Tensor) -> Tensor:
    """Set every element to zero."""
    return _fill(self, 0)


def _scale(other: Any, alpha: Any, function: str) -> Any:
    """A product, also of two numbers, of which `multiply` takes none."""
    if not isinstance(alpha, Tensor):
        alpha = number(alpha, function, "alpha")
        if alpha == 1:
            return other
        if isinstance(other, np.generic) or not hasattr(other, "shape"):
            return number(other, function, "other") * alpha
    return multiply(other, alpha)


def _add(self: Tensor, other: Any, /, *, alpha: Any = 1) -> Tensor:
    """Add ``alpha * other`` in place."""
    return _IADD(self, _scale(other, alpha, "add_"))


def _sub(self: Tensor, other: Any, /, *, alpha: Any = 1) -> Tensor:
    """Subtract ``alpha * other`` in place."""
    return _ISUB(self, _scale(other, alpha, "sub_"))


def _copy(self: Tensor, source: Any, /) -> Tensor:
    """Take the values of another array, of any backend, device and dtype; they stay tracked."""
    if isinstance(source, np.generic) or number_type(source) in SCALARS:
        return _fill(self, source)
    return _take(self, source, "copy_")


def _take(self: Tensor, source: Any, function: str) -> Tensor:
    given = source
    if isinstance(source, list | tuple):
        given = as_storable(function, source, self.dtype)
    check_storable(function, given, self.dtype)
    given = asarray(given)
    given = to_backend(given, self.backend.name, device=differentiable.device(self))
    values = broadcast_to(_cast(given, self.dtype), self.shape)
    return assign(self, to_device(values, self.device), source)


_IADD, _ISUB = _in_place("add", add), _in_place("subtract", subtract)
_FLOORDIV, _MOD = _operator("floor_divide", floor_divide), _operator("remainder", remainder)


# -- moving and converting -----------------------------------------------------------------------


def _to(
    self: Tensor, *where: Any, dtype: Any = None, device: Any = None, copy: bool = False
) -> Tensor:
    """Convert to another dtype, device or both: ``x.to(wg.float64)``, ``x.to("cuda:0")``.

    The result stays tracked. A Tensor stands for its backend, device and dtype. ``copy`` asks for a
    copy where nothing changes.
    """
    result = self
    for one in where:
        if isinstance(one, Tensor):
            result = to_backend(result, one.backend.name, device=differentiable.device(one))
            dtype = one.dtype
            continue
        try:
            dtype = as_dtype(one)
        except TypeError:
            device = one
    if device is not None:
        result = to_device(result, device)
    if dtype is not None:
        result = astype(result, dtype, copy=False)
    return asarray(result, copy=True) if copy and result is self else result


def _caster(dtype: DType) -> Callable[[Tensor], Tensor]:
    def method(self: Tensor) -> Tensor:
        return astype(self, dtype, copy=False)

    method.__doc__ = f"Convert to {dtype.name}."
    return method


def attach(functions: Mapping[str, Any]) -> None:
    """Make methods of the functions whose first argument is a Tensor ``x`` or ``x1``."""
    for name, function in functions.items():
        if (
            name[0] != "_"
            and name != "from_dlpack"
            and not name.endswith("_like")
            and name not in vars(Tensor)
            and name not in METHODS
            and hasattr(function, "__code__")
            and argument_names(function)[:1] in (("x",), ("x1",))
        ):
            setattr(Tensor, name, function)


def _attach_operators() -> None:
    functions = vars(differentiable)
    methods: dict[str, Any] = {}
    for name, standard, commutes in BINARY:
        function = _operator(standard, functions[standard])
        methods[f"__{name}__"] = function
        # ``5 * x`` is recorded as ``x * 5``, as PyTorch does.
        methods[f"__r{name}__"] = function if commutes else _reflect(function)
        methods[f"__i{name}__"] = _in_place(standard, function)
    for name, standard in UNARY:
        methods[f"__{name}__"] = functions[standard]
    for name, standard in ORDER:
        methods[f"__{name}__"] = _operator(standard, functions[standard])
    for name, standard in EQUALITY:
        methods[f"__{name}__"] = _comparable(_operator(standard, functions[standard]))
    methods.update(
        __divmod__=_divmod,
        __rdivmod__=_rdivmod,
        __getitem__=getitem,
        __setitem__=setitem,
        __iter__=_iter,
        __contains__=_contains,
        __dir__=_dir,
        T=property(_transpose),
        mT=property(matrix_transpose),
        conj=conj,  # the rules' own gives back a real Tensor itself
        real=property(real),
        imag=property(imag),
        to=_to,
        half=_caster(float16),
        float=_caster(float32),
        double=_caster(float64),
        int=_caster(int32),
        long=_caster(int64),
        bool=_caster(bool_),
        zero_=_zero,
        fill_=_fill,
        add_=_add,
        sub_=_sub,
        mul_=_in_place("multiply", multiply),
        div_=_in_place("divide", divide),
        copy_=_copy,
    )
    methods.update((name, Later(name, LATER[name])) for name in LATER.keys() - NO_METHODS)
    methods.update((name, Later(name, "wengert.ops.methods")) for name in METHODS)
    for name, method in methods.items():
        setattr(Tensor, name, method)


def _transpose(self: Tensor) -> Tensor:
    """The transpose of a matrix; an error for other numbers of axes, which `mT` takes."""
    if self.ndim != 2:
        raise ValueError(
            f"x.T is for matrices, and this Tensor has {self.ndim} dimensions; use x.mT or "
            "wg.permute_dims"
        )
    return matrix_transpose(self)


class Later:
    """A method that is attached when it is first asked for.

    (A `__getattr__` of the class would make every attribute of every Tensor slower to find.)
    """

    def __init__(self, name: str, home: str) -> None:
        self.name, self.home = name, home

    def __get__(self, tensor: Tensor | None, owner: type[Tensor]) -> Any:
        function = getattr(import_module(self.home), self.name.strip("_"))
        setattr(Tensor, self.name, function)
        return getattr(owner if tensor is None else tensor, self.name)


class _Foreign:
    """A name of other libraries that Tensors, or nodes, do not have: the error says what to use."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name

    def __get__(self, instance: Any, owner: type) -> Any:
        raise import_module("wengert.ops.hints").no_method(self.kind, self.name)


def _dir(self: Tensor) -> list[str]:
    found = object.__dir__(self)
    return [
        name for name in found if not isinstance(getattr_static(type(self), name, None), _Foreign)
    ]


attach(vars(differentiable))
_attach_operators()
#: Names of NumPy's and PyTorch's that Tensors do not have: `wengert.names` has what to write.
FOREIGN = {*HINTS["Tensor"], *HINTS["wengert"]} - {*dir(Tensor)}
for _name in FOREIGN:
    setattr(Tensor, _name, _Foreign("Tensor", _name))
for _name in HINTS["Node"]:
    setattr(Node, _name, _Foreign("Node", _name))


# -- the meanings of other libraries ---------------------------------------------------------------

#: The core's own attributes of Tensors.
OWN = dict(vars(Tensor))
#: What `wengert.torch` and `wengert.numpy` give to methods, by the room's name.
GIVEN: dict[str, Mapping[str, Any]] = {}


def give(room: str, meanings: Mapping[str, Any]) -> None:
    """Give a library's meanings to Tensors; what two libraries have keeps the core's, or none."""
    GIVEN[room] = meanings
    for name, attribute in meanings.items():
        if any(name in other for key, other in GIVEN.items() if key != room):
            attribute = OWN.get(name) or _Foreign("Tensor", name)
            attribute = _plain_keys(attribute) if name.endswith("item__") else attribute
        setattr(Tensor, name, attribute)


def _plain_keys(function: Any) -> Function:
    """Indexing, of which keys with two meanings are an error."""

    def item(self: Tensor, key: Any, *value: Any) -> Any:
        parts = key if type(key) is tuple else ()
        plain = [x for x in parts if not (isinstance(x, list) or getattr(x, "ndim", False))]
        if len(plain) < len(parts) and any(hasattr(x, "__index__") for x in plain):
            raise TypeError(
                "an index with numbers and arrays puts axes elsewhere in NumPy and in PyTorch: "
                "write x[0][..., [1, 2]] for x[0, ..., [1, 2]]"
            )
        return function(self, key, *value)

    return item
