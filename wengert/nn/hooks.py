"""Hooks on modules: functions of the user's that are called with what goes in and comes out."""

from collections.abc import Callable
from typing import Any, NoReturn

from wengert.tape.hooks import Hooks, RemovableHandle


class ModuleHandle(RemovableHandle):
    """What registering a hook on a module returns: `remove` takes the hook away."""

    def __init__(self, module: "Hookable", kind: str, hook: Callable[..., Any]) -> None:
        if not callable(hook):
            raise TypeError(f"a hook is a function, not {type(hook).__name__}")
        definer = next(cls for cls in type(module).__mro__ if "__call__" in vars(cls))
        if not isinstance(vars(definer)["__call__"], property):
            raise TypeError(
                f"{definer.__name__} defines __call__ itself, which hooks would not surround: "
                "define forward instead"
            )
        super().__init__(module.__dict__.setdefault("_hooks", {}).setdefault(kind, Hooks()), hook)
        self._module = module

    def remove(self) -> None:
        """Take the hook away, if it is still there."""
        super().remove()
        if not any((self._module._hooks or {}).values()):
            self._module.__dict__.pop("_hooks", None)


class Hookable:
    """What a module has to get hooks."""

    #: Its hooks by their kind, in the ``__dict__`` of a module that has some.
    _hooks: dict[str, Hooks] | None = None
    forward: Any

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a function before each call of this module. ``forward`` itself calls no hooks.

        ``hook(module, args)`` returns None, or a tuple in the place of the positional arguments, or
        a single one. Raises `TypeError` for what is not callable, and for a module whose class
        defines ``__call__`` itself.
        """
        return ModuleHandle(self, "before", hook)

    def register_forward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a function after each call of this module, as `register_forward_pre_hook` before.

        ``hook(module, args, output)`` returns None, or what takes the output's place.
        """
        return ModuleHandle(self, "after", hook)

    def register_full_backward_hook(self, hook: Callable[..., Any]) -> NoReturn:
        """Raise `NotImplementedError`, which says what to write."""
        raise NotImplementedError(
            "modules have no backward hooks: in a register_forward_hook, call "
            "output.register_hook, or x.register_hook for a Tensor of args"
        )

    def _call_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """Call ``forward`` between the hooks."""
        hooks: Any = self._hooks
        for hook in list(hooks.get("before", {}).values()):
            if (returned := hook(self, args)) is not None:
                args = returned if isinstance(returned, tuple) else (returned,)
        result = self.forward(*args, **kwargs)
        hooks = self._hooks or {}  # others, if the last hook has been removed
        for hook in list(hooks.get("after", {}).values()):
            if (returned := hook(self, args, result)) is not None:
                result = returned
        return result
