"""The compiler: records a function once, and replays it as straight-line array code."""

from importlib import import_module
from typing import Any

__all__ = ["CompileError"]


def __getattr__(name: str) -> Any:
    if name in __all__:  # which most programs do not need
        return import_module("wengert.compiler.capture.errors").CompileError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
