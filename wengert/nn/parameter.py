"""The Tensor that a module learns."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from wengert.tape.tensor import Tensor
from wengert.tape.views import same, show


class Parameter(Tensor):
    """A Tensor that a `Module` counts among its parameters when it is one of its attributes.

    The values of ``data`` are not copied; the parameter is a leaf, whatever ``data`` is.

    Examples
    --------
    >>> class Scale(wg.nn.Module):
    ...     def __init__(self):
    ...         self.factor = wg.nn.Parameter(wg.tensor(2.0))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> [name for name, _ in Scale().named_parameters()]
    ['factor']
    """

    __slots__ = ()

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        if not hasattr(data, "dtype"):
            raise TypeError(
                f"nn.Parameter takes a Tensor or an array, and not {type(data).__name__}: write "
                f"nn.Parameter(wg.tensor({data!r}))"
            )
        array = data._array if isinstance(data, Tensor) else data
        super().__init__(array, requires_grad=requires_grad)
        if isinstance(data, Tensor):
            show(self, data, same, {})


def list_tensors(function: str, given: Any) -> list[Any]:
    """The Tensors that a function is given: one, or an iterable of them."""
    if isinstance(given, Tensor):
        return [given]
    if hasattr(given, "parameters") or not isinstance(given, Iterable):
        raise import_module("wengert.nn.hints").no_parameters(function, given)
    return list(given)
