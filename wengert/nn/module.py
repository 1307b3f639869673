"""The module: a function of Tensors that owns parameters, buffers and other modules."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from wengert.backends import DType, as_dtype, namespaces
from wengert.func.functional import swapped
from wengert.nn.conversion import castable, convert, destination, place, replace
from wengert.nn.hooks import Hookable
from wengert.nn.parameter import Parameter
from wengert.nn.state import State, hints, join_path
from wengert.tape.observers import observing, tell
from wengert.tape.tensor import Tensor, untracked

if TYPE_CHECKING:
    from typing import ParamSpec, Protocol, TypeVar

    P = ParamSpec("P")
    R_co = TypeVar("R_co", covariant=True)

    class _HasForward(Protocol[P, R_co]):
        def forward(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


#: What does not count its elements among a module's parameters.
_HOLDING = frozenset({list, tuple, dict, OrderedDict})


class _Call(property):
    """A property of modules that classes have as a function of modules."""

    def __call__(self, module: "Module", /, *args: Any, **kwargs: Any) -> Any:
        return self.__get__(module)(*args, **kwargs)


class Module(Hookable, State):
    """A function of Tensors with parameters: the base of every layer and network.

    A subclass makes its parameters and submodules in ``__init__`` as plain attributes and computes
    in ``forward``. Attributes that are of type `Parameter` or `Module` are its parameters and
    submodules, in the order of assignment. ``super().__init__()`` may be left out.

    Attributes
    ----------
    training : bool
        Whether the module is in training mode, in which `Dropout` drops; see `train` and `eval`.

    Examples
    --------
    >>> class Net(wg.nn.Module):
    ...     def __init__(self):
    ...         self.hidden = wg.nn.Linear(64, 32)
    ...         self.out = wg.nn.Linear(32, 10)
    ...
    ...     def forward(self, x):
    ...         return self.out(wg.nn.functional.relu(self.hidden(x)))
    """

    training: bool = True
    #: Names of the buffers, and whether each is part of the state_dict.
    _buffers: Mapping[str, bool] = {}

    if TYPE_CHECKING:  # a call has the signature of the subclass's `forward`

        def __call__(self: _HasForward[P, R_co], *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    else:

        @_Call
        def __call__(self) -> Callable[..., Any]:
            """A module's call is its `forward`, which is quicker than a call that calls it."""
            return self.forward if self._hooks is None else self._call_hooks

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's result. Every subclass defines it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function: define '
            "what it computes, def forward(self, x), in the class"
        )

    # -- attributes ----------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        before = self.__dict__.get(name)
        if isinstance(before, Parameter) and not isinstance(value, Parameter | None):
            more = f", or change the values under wg.no_grad(): module.{name}.copy_(...)"
            raise _misplacement("assign", value, "parameter", name, more)
        if isinstance(before, Module) and not isinstance(value, Module | None):
            raise _misplacement("assign", value, "child module", name)
        if name in self._buffers and not isinstance(value, Tensor | None):
            raise _misplacement("assign", value, "buffer", name)
        if observing and name in self._buffers:
            tell("replaced", self, name)
        if isinstance(value, Parameter):
            self._forget_buffer(name)
        object.__setattr__(self, name, value)
        if type(value) in _HOLDING and value:
            hints().warn_of_held(self, name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        self._forget_buffer(name)

    def _forget_buffer(self, name: str) -> None:
        if name in self._buffers:
            kept = {n: persistent for n, persistent in self._buffers.items() if n != name}
            object.__setattr__(self, "_buffers", kept)

    def _claim(self, name: str) -> None:
        """Raise unless a parameter, buffer or module may be registered under ``name``."""
        if not isinstance(name, str):
            raise TypeError(f"the name should be a string, not {type(name).__name__}")
        if not name or "." in name:
            raise KeyError(f"the name can't be empty or contain '.', got {name!r}")
        own = self.__dict__
        kinds = Tensor | Module | None
        if not isinstance(own[name], kinds) if name in own else hasattr(self, name):
            raise KeyError(f"attribute {name!r} already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter by a name, which may be no identifier. None reserves the name."""
        self._claim(name)
        if not isinstance(param, Parameter | None):
            raise _misplacement("register", param, "parameter", name)
        setattr(self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a Tensor that is part of the state, if persistent, and is not trained.

        A Tensor that is assigned to the name later is a buffer, too. None reserves the name.
        """
        self._claim(name)
        if isinstance(tensor, Parameter) or not isinstance(tensor, Tensor | None):
            raise _misplacement("register", tensor, "buffer", name)
        setattr(self, name, tensor)
        object.__setattr__(self, "_buffers", {**self._buffers, name: bool(persistent)})

    def add_module(self, name: str, module: "Module | None") -> None:
        """Add a submodule by a name, which may be no identifier, such as ``"0"``."""
        self._claim(name)
        if not isinstance(module, Module | None):
            raise hints().no_module(module, f"nn.{type(self).__name__}")
        setattr(self, name, module)

    def get_submodule(self, target: str) -> "Module":
        """Return the submodule at a dotted path, such as ``"encoder.0"``.

        Raises `AttributeError` if there is none. For ``""`` it is this module.
        """
        found: Module = self
        for name in target.split(".") if target else ():
            child = found.__dict__.get(name)
            if not isinstance(child, Module):
                raise AttributeError(  # noqa: TRY004 -- the path is wrong, not a type
                    f"{type(found).__name__} has no submodule {name!r}, asked for as {target!r}"
                )
            found = child
        return found

    # -- contents ------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """Yield the direct submodules with their names, each once."""
        seen: set[int] = set()
        for name, value in self.__dict__.items():
            if isinstance(value, Module) and id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def children(self) -> Iterator["Module"]:
        """Yield the direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set[int] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, "Module"]]:
        """Yield this module and all below it with their paths; those in ``memo`` are left out."""
        memo = set() if memo is None else memo
        if remove_duplicate:
            if id(self) in memo:
                return
            memo.add(id(self))
        yield prefix, self
        for name, value in self.__dict__.items():
            if isinstance(value, Module):
                yield from value.named_modules(memo, join_path(prefix, name), remove_duplicate)

    def modules(self) -> Iterator["Module"]:
        """Yield this module and all below it, each once."""
        for _, module in self.named_modules():
            yield module

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield the parameters with their dotted paths."""
        return self._iterate_named(Module._own_parameters, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the buffers with their dotted paths, as `named_parameters` does."""
        return self._iterate_named(Module._own_buffers, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def _own_parameters(self) -> Iterator[tuple[str, Parameter]]:
        others = swapped.get()  # Tensors that `functional_call` has put in parameters' places
        for name, value in self.__dict__.items():
            if isinstance(value, Parameter) or (
                (id(self), name) in others and name not in self._buffers
            ):
                yield name, value

    def _own_buffers(self) -> Iterator[tuple[str, Tensor]]:
        for name in self._buffers:
            if (value := self.__dict__[name]) is not None:
                yield name, value

    def _iterate_named(
        self,
        own: Callable[["Module"], Iterator[tuple[str, Any]]],
        prefix: str,
        recurse: bool,
        remove_duplicate: bool,
    ) -> Iterator[tuple[str, Any]]:
        places = self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]
        seen: set[int] = set()
        for path, module in places:
            for name, tensor in own(module):
                if id(tensor) not in seen:
                    yield join_path(path, name), tensor
                    if remove_duplicate:
                        seen.add(id(tensor))

    # -- changes of all of it --------------------------------------------------------------------

    def apply(self, fn: Callable[["Module"], object]) -> Self:
        """Call a function on every module, children before parents, and return this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training or evaluation mode of this module and all below, and return this module."""
        if not isinstance(mode, bool):
            raise ValueError(  # noqa: TRY004 -- PyTorch's error
                f"training mode is expected to be boolean, not {mode!r}"
            )
        for module in self.modules():
            if "training" in vars(module):  # what is switched and back leaves the module as it was
                del module.training
            if module.training is not mode:
                module.training = mode
        return self

    def eval(self) -> Self:
        """Set evaluation mode, as ``train(False)`` does."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set ``requires_grad`` of all parameters: False freezes them. Return this module."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros."""
        clear_grads(self.parameters(), set_to_none)

    def to(
        self, *args: Any, backend: str | None = None, dtype: Any = None, device: Any = None
    ) -> Self:
        """Move all parameters and buffers to a backend, device or dtype, and return this module.

        An argument is a backend (``"torch"``, ``"torch:cuda:0"``), dtype (``wg.float64``), device
        (``"cuda:0"``), or a Tensor that is on the device and of the dtype wanted. The parameters
        stay the same objects, so an optimiser still updates them. Their gradients are moved too.
        Raises `BackendError` for an unknown or missing library; nothing is moved then.
        """
        wanted: dict[str, Any] = {"backend": None, "dtype": None, "device": None}
        for argument in args:
            wanted.update(destination(argument))
        if backend is not None:
            wanted.update(place(backend))
        if dtype is not None:
            wanted["dtype"] = as_dtype(dtype)
        if device is not None:
            wanted["device"] = device
        if wanted["dtype"] is not None and not wanted["dtype"].inexact:
            raise TypeError(
                "a module can be moved to floating or complex dtypes, not to "
                f"{wanted['dtype'].name}"
            )
        held = list(self.parameters()) + list(self.buffers())
        grads = [tensor._grad for tensor in held]
        moved = [_move_tensor(tensor, **wanted) for tensor in held]
        moved_grads = [None if grad is None else _move_tensor(grad, **wanted) for grad in grads]
        for tensor, array, grad, grad_array in zip(held, moved, grads, moved_grads, strict=True):
            replace(tensor, array)
            if grad is not None:
                tensor._grad = Tensor(grad_array)
        return self

    def float(self) -> Self:
        """Convert all floating parameters and buffers to float32."""
        return self.to(dtype="float32")

    def double(self) -> Self:
        """Convert all floating parameters and buffers to float64."""
        return self.to(dtype="float64")

    def half(self) -> Self:
        """Convert all floating parameters and buffers to float16."""
        return self.to(dtype="float16")

    def bfloat16(self) -> Self:
        """Convert all floating parameters and buffers to bfloat16, where the library has it."""
        return self.to(dtype="bfloat16")

    def cpu(self) -> Self:
        """Move all parameters and buffers to the CPU; to NumPy, if their library has no CPU."""
        try:
            return self.to(device="cpu")
        except ValueError:
            return self.to("numpy")

    def cuda(self, device: int | None = None) -> Self:
        """Move all parameters and buffers to a GPU: the current one, or the one of that number.

        The library stays the same, and must have GPUs. ``module.to("cupy")`` moves them to CuPy.
        """
        return self.to(device="cuda" if device is None else f"cuda:{device}")

    # -- printing --------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """Return the text in parentheses after the class's name in ``repr``, such as the sizes."""
        return ""

    def __repr__(self) -> str:
        children = [
            f"({name}): {value!r}"
            for name, value in self.__dict__.items()
            if isinstance(value, Module)
        ]
        return bracket_children(type(self).__name__, self.extra_repr(), children)


#: What a kind of attribute may be, and how to make one.
_EXPECTED = {
    "parameter": "(wengert.nn.Parameter or None expected); wrap it as nn.Parameter(...)",
    "child module": "(wengert.nn.Module or None expected)",
    "buffer": "(wengert.Tensor or None expected); make one with wg.tensor(...)",
}


def _misplacement(verb: str, value: Any, kind: str, name: str, more: str = "") -> TypeError:
    """The error for a value that is no parameter, module or buffer."""
    what = f"cannot {verb} {type(value).__name__} as {kind} {name!r}"
    return TypeError(f"{what} {_EXPECTED[kind]}{more}")


def bracket_children(name: str, extra: str, children: list[str]) -> str:
    """The ``repr`` of a module from its class's name, its own text and its children's lines."""
    if not children:
        return f"{name}({extra})"
    lines = [*extra.splitlines(), *children]
    return f"{name}(\n" + "".join(f"  {indent_lines(line)}\n" for line in lines) + ")"


def indent_lines(text: str) -> str:
    """Indent all lines but the first."""
    return text.replace("\n", "\n  ")


def clear_grads(tensors: Iterable[Tensor], to_none: bool) -> None:
    """Set the gradients of Tensors to None, or to zeros."""
    for tensor in tensors:
        if to_none:
            tensor._grad = None
        elif (grad := tensor._grad) is not None:
            array = grad._array
            if type(array) is np.ndarray:  # NumPy's `zeros_like` takes twice as long
                zeros: Any = np.zeros(array.shape, array.dtype)
            else:
                zeros = namespaces[type(array)].zeros_like(array)
            tensor._grad = untracked(zeros)


def _move_tensor(tensor: Tensor, backend: Any, dtype: DType | None, device: Any) -> Any:
    return convert(tensor._array, backend or tensor.backend, castable(tensor, dtype), device)
