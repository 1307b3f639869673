"""Classes that are put before those of single modules, so that others cost nothing more."""

import weakref
from collections.abc import Callable
from typing import Any


class Overlay:
    """The base of what is put before a module's class.

    It has the layout of any module, without ``__slots__``: so objects can change from one class to
    the other.
    """

    #: What the class's name begins with.
    _prefix = ""

    def __init_subclass__(cls, **options: Any) -> None:
        """Make no announcement: this is no new class of the user's."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        """As an object of the user's class, which alone is found by its name, and the overlays."""
        reduced: Any = super().__reduce_ex__(protocol)
        make, args, *rest = reduced
        if not args or args[0] is not type(self):
            return make, args, *rest
        cls, overlays = type(self), []
        while issubclass(cls, Overlay):
            overlays.append(cls.__bases__[0])
            cls = beneath(cls)
        return _make_copy, (make, overlays, cls, *args[1:]), *rest


#: For each overlay and class the class of both, while there are objects of it.
_known: "weakref.WeakKeyDictionary[type, dict[type, weakref.ref[type]]]" = (
    weakref.WeakKeyDictionary()
)


def beneath(cls: Any) -> Any:
    """Return the class that is beneath the uppermost overlay."""
    return cls.__bases__[1]


def plain(cls: Any) -> Any:
    """Return the class of a module without overlays."""
    while issubclass(cls, Overlay):
        cls = beneath(cls)
    return cls


def overlaid(overlay: type[Overlay], cls: Any) -> Any:
    """Return the class that has an overlay before another class."""
    known = _known.setdefault(cls, {})
    found = known[overlay]() if overlay in known else None
    if found is None:
        space = {text: getattr(cls, text) for text in ("__doc__", "__module__", "__qualname__")}
        name = overlay._prefix + cls.__name__
        space["__qualname__"] = space["__qualname__"].removesuffix(cls.__name__) + name
        found = type(cls)(name, (overlay, cls), {"__slots__": (), **space})
        known[overlay] = weakref.ref(found)
    return found


def _make_copy(make: Callable[..., Any], overlays: list[Any], cls: Any, *args: Any) -> Any:
    """Make the copy of a module with overlays, whose attributes come next."""
    module = make(cls, *args)
    for overlay in reversed(overlays):
        module.__class__ = overlaid(overlay, type(module))
    return module
