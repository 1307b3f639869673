"""The functions of the standard and Wengert's own, each beside its derivative."""

import importlib
import importlib.util

from wengert.tape.interpreter import differentiable
from wengert.tape.primitive import PRIMITIVES

_CHAPTERS = (
    "constants", "data_type", "creation", "elementwise", "statistical", "manipulation",
    "linear_algebra", "indexing", "searching", "sorting", "set", "utility", "inspection", "special", "random",
)
__all__ = []
for _name in _CHAPTERS:
    if importlib.util.find_spec(f"wengert.ops.{_name}") is None:
        continue
    try:
        _module = importlib.import_module(f"wengert.ops.{_name}")
    except ImportError as error:  # while the chapters are being written
        import warnings; warnings.warn(f"{_name}: {error}")
        continue
    for _each in getattr(_module, "__all__", []):
        globals()[_each] = getattr(_module, _each)
        __all__.append(_each)


def _primitive(name):
    try:
        return PRIMITIVES[name].bind
    except KeyError:
        raise AttributeError(f"there is no function or primitive {name!r}") from None


vars(differentiable).update({_name: globals()[_name] for _name in __all__})
vars(differentiable)["__getattr__"] = _primitive

import wengert.ops.operators  # noqa: E402
