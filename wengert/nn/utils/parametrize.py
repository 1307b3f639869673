"""Parameters that are computed of others in each use."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from wengert.nn.containers import ModuleDict, ModuleList
from wengert.nn.hooks import Hooked, changes
from wengert.nn.module import Module
from wengert.nn.overlays import Overlay, beneath, overlaid
from wengert.nn.parameter import Parameter
from wengert.tape.grad_mode import is_grad_enabled, no_grad
from wengert.tape.tensor import Tensor

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
]

#: What has been computed within `cached`, with what of; None outside of it.
_cache: list[dict[Any, Any] | None] = [None]


class ParametrizationList(ModuleList):
    """The parametrisations of one Tensor, and what they compute it of.

    Parameters
    ----------
    modules : sequence of Module
        The parametrisations, in the order in which they are called.
    original : Tensor
        The parameter or buffer. Its values are what the first call gives if the parametrisations
        have a ``right_inverse``.
    unsafe : bool
        Whether the shape and dtype may change.

    Examples
    --------
    >>> layer = wg.nn.utils.parametrizations.weight_norm(wg.nn.Linear(2, 1))
    >>> type(layer.parametrizations.weight).__name__
    'ParametrizationList'
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            new = self._inverted(original)
        self.ntensors = 1 if isinstance(new, Tensor) else len(new)
        self.is_tensor = isinstance(new, Tensor)
        if self.is_tensor:
            _check_alike(new, original, "right_inverse", shape=False)
            values = new._array
        else:
            for i, tensor in enumerate(new):
                _register(self, f"original{i}", _as(original, tensor))
            values = original._array
        if not unsafe:
            with no_grad():
                result = self._computed((new,) if self.is_tensor else tuple(new))
            _check_alike(result, original, "a parametrization")
        if self.is_tensor:  # the optimiser's parameter stays the same object
            original._array = values
            _register(self, "original", original)

    def _inverted(self, value: Any) -> Any:
        for module in reversed(list(self)):
            if hasattr(module, "right_inverse"):
                try:
                    value = module.right_inverse(value)
                except NotImplementedError:
                    continue
        if not isinstance(value, Tensor) and not (
            isinstance(value, list | tuple) and all(isinstance(x, Tensor) for x in value)
        ):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(value).__name__}"
            )
        return value

    def _originals(self) -> tuple[Tensor, ...]:
        names = ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]
        return tuple(self.__dict__[name] for name in names)

    def _computed(self, originals: tuple[Tensor, ...]) -> Any:
        first, *others = self
        value = first(*originals)
        for module in others:
            value = module(value)
        return value

    def right_inverse(self, value: Tensor) -> None:
        """Give the originals values of which the parametrisations compute ``value``."""
        with no_grad():
            new = self._inverted(value)
            given = (new,) if isinstance(new, Tensor) else tuple(new)
            held = self._originals()
            if len(given) != len(held):
                raise ValueError(
                    f"'right_inverse' must return {len(held)} Tensors. Got {len(given)}"
                )
            for tensor, original in zip(given, held, strict=True):
                _check_alike(tensor, original, "right_inverse")
            for tensor, original in zip(given, held, strict=True):
                original.copy_(tensor)

    def forward(self) -> Tensor:
        """Compute the Tensor."""
        originals = self._originals()
        cache = _cache[0]
        if cache is None:
            return self._computed(originals)  # type: ignore[no-any-return]
        # What is traced or differentiated has other arrays or nodes than what was cached.
        parts = [part for x in originals for part in (x._array, x._node)]
        key = id(self), is_grad_enabled(), *map(id, parts)
        if key not in cache:
            cache[key] = self._computed(originals), parts, self
        return cache[key][0]  # type: ignore[no-any-return]


class Parametrized(Overlay):
    """What is put before the class of a module that has parametrised Tensors."""

    _prefix = "Parametrized"

    def __getattr__(self, name: str) -> Any:
        held = self.__dict__.get("parametrizations")
        found = None if held is None else held.__dict__.get(name)
        if isinstance(found, ParametrizationList):
            return found()
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
        )

    def __setattr__(self, name: str, value: Any) -> None:
        held = self.__dict__.get("parametrizations")
        found = None if held is None else held.__dict__.get(name)
        if isinstance(found, ParametrizationList):
            found.right_inverse(value)
        else:
            super().__setattr__(name, value)


def _as(original: Tensor, tensor: Tensor) -> Tensor:
    """A Tensor as a parameter, if the original is one."""
    tensor = tensor.detach()
    if isinstance(original, Parameter):
        return Parameter(tensor, requires_grad=original.requires_grad and tensor.dtype.inexact)
    return tensor


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check_alike(value: Any, original: Tensor, what: str, *, shape: bool = True) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(  # noqa: TRY004 -- PyTorch's error
            f"{what} must return a tensor. Got {type(value).__name__}."
        )
    if value.dtype != original.dtype:
        raise ValueError(
            f"{what} may not change the dtype of the tensor: {original.dtype.name} became "
            f"{value.dtype.name}"
        )
    if shape and tuple(value.shape) != tuple(original.shape):
        raise ValueError(
            f"{what} may not change the shape of the tensor, unless unsafe=True: "
            f"{tuple(original.shape)} became {tuple(value.shape)}"
        )


def _lists(module: Module) -> Any:
    """The parametrisations of a module by the names of its Tensors."""
    return module.__dict__["parametrizations"]


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Tell whether a module has parametrised Tensors, or one of that name.

    Parameters
    ----------
    module : Module
        The module itself, not those below it.
    tensor_name : str, optional
        The name of a parameter or buffer.

    Returns
    -------
    bool

    Examples
    --------
    >>> layer = wg.nn.Linear(2, 2)
    >>> wg.nn.utils.parametrize.is_parametrized(layer)
    False
    """
    held = module.__dict__.get("parametrizations")
    if not isinstance(module, Parametrized) or not isinstance(held, ModuleDict) or not len(held):
        return False
    return tensor_name is None or tensor_name in held


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let a parameter or buffer be computed of another by a module whenever it is used.

    The module becomes of another class, with a name before which ``Parametrized`` stands. What is
    learnt is ``module.parametrizations[tensor_name].original``, or ``original0``, ``original1``
    where the parametrisation is of several Tensors. What is assigned to the attribute goes through
    ``right_inverse``, which turns a value into what it is computed of. Raises `ValueError` if there
    is no such Tensor, or the parametrisation gives no Tensor, or one of another shape or dtype.
    Nothing has changed then.

    Parameters
    ----------
    tensor_name : str
        The name of a parameter, a buffer, or a Tensor that is parametrised already.
    parametrization : Module
        Called with the original; may have a method ``right_inverse(value)``.
    unsafe : bool
        Whether the shape may change.

    Examples
    --------
    >>> class Symmetric(wg.nn.Module):
    ...     def forward(self, x):
    ...         return wg.triu(x) + wg.triu(x, k=1).mT
    >>> layer = wg.nn.Linear(3, 3)
    >>> _ = wg.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> bool(wg.all(layer.weight == layer.weight.mT))
    True
    """
    if is_parametrized(module, tensor_name):
        held = _lists(module)[tensor_name]
        if not (unsafe or held.unsafe):
            with no_grad():
                value = held()
                result = parametrization(value)
                _check_alike(result, value, "a parametrization")
                if hasattr(parametrization, "right_inverse"):
                    inverse = parametrization.right_inverse(result)
                    _check_alike(inverse, value, "right_inverse")
        parametrization.train(module.training)
        held.append(parametrization)
        held.unsafe = held.unsafe or unsafe
        return module
    original = module.__dict__.get(tensor_name)
    if not isinstance(original, Parameter) and tensor_name not in module._buffers:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    if original is None or hasattr(type(module), tensor_name):
        raise ValueError(f"{tensor_name} of {type(module).__name__} is None or the class's own")
    parametrization.train(module.training)
    made = ParametrizationList([parametrization], original, unsafe)
    delattr(module, tensor_name)
    if not isinstance(module, Parametrized):
        _change(module, lambda cls: overlaid(Parametrized, cls))
        module.add_module("parametrizations", ModuleDict())
    _lists(module).add_module(tensor_name, made)
    return module


def _change(module: Module, change: Any) -> None:
    """Change the class of a module beneath its hooks."""
    hooks = isinstance(module, Hooked)
    cls = change(beneath(type(module)) if hooks else type(module))
    module.__class__ = overlaid(Hooked, cls) if hooks else cls
    changes[0] += 1


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a parametrised Tensor a parameter or buffer of its own again.

    Raises `ValueError` if the Tensor is not parametrised, or should be left as several originals
    are.

    Parameters
    ----------
    leave_parametrized : bool
        Whether it gets the value that the parametrisation computes, or that of the original.

    Examples
    --------
    >>> layer = wg.nn.utils.parametrizations.weight_norm(wg.nn.Linear(2, 2))
    >>> _ = wg.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    >>> wg.nn.utils.parametrize.is_parametrized(layer)
    False
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    held = _lists(module)[tensor_name]
    originals = held._originals()
    if not held.is_tensor and not leave_parametrized:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    original = originals[0]
    if leave_parametrized:
        with no_grad():
            value = held._computed(originals)
        if held.is_tensor:
            original._array = value._array
        else:
            original = _as(original, value)
    del _lists(module)[tensor_name]
    if not len(_lists(module)):
        delattr(module, "parametrizations")
        _change(module, beneath)
    _register(module, tensor_name, original)
    return module


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrised Tensor once within the ``with`` block.

    Changes of the originals are seen. Derivatives flow to the originals as without it.

    Examples
    --------
    >>> layer = wg.nn.utils.parametrizations.weight_norm(wg.nn.Linear(2, 2))
    >>> with wg.nn.utils.parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    outer = _cache[0]
    if outer is None:
        _cache[0] = {}
    try:
        yield
    finally:
        _cache[0] = outer
