"""Optimisers: they change parameters along their gradients."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wengert.optim.adam import Adam, AdamW
from wengert.optim.optimizer import Optimizer
from wengert.optim.sgd import SGD

if TYPE_CHECKING:
    from wengert.optim.scipy_adapters import least_squares, minimize, root

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "least_squares", "minimize", "root"]


if not TYPE_CHECKING:  # a name that is wrong is an error to type checkers

    def __getattr__(name: str) -> Any:
        # Few programs need both these and the optimisers above.
        if name in ("least_squares", "minimize", "root"):
            return getattr(import_module("wengert.optim.scipy_adapters"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return __all__
