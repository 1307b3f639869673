"""Hooks on modules: functions of the user's that are called with what goes in and comes out."""

from collections.abc import Callable
from typing import Any, NamedTuple

from wengert.tape.function import Function
from wengert.tape.hooks import Hooks, RemovableHandle
from wengert.tape.leaving import warn
from wengert.tape.tensor import Tensor


class _Hook(NamedTuple):
    function: Callable[..., Any]
    with_kwargs: bool = False

    def call(self, module: Any, args: Any, kwargs: Any, *output: Any) -> Any:
        given = (args, kwargs) if self.with_kwargs else (args,)
        return self.function(module, *given, *output)


class ModuleHandle(RemovableHandle):
    """What registering a hook on a module returns: `remove` takes the hook away."""

    def __init__(self, module: "Hookable", kind: str, hook: _Hook) -> None:
        if not callable(hook.function):
            raise TypeError(f"a hook is a function, not {type(hook.function).__name__}")
        definer = next(cls for cls in type(module).__mro__ if "__call__" in vars(cls))
        if not isinstance(vars(definer)["__call__"], property):
            raise TypeError(
                f"{definer.__name__} defines __call__ itself, which hooks would not surround: "
                "define forward instead"
            )
        hooks = module.__dict__.setdefault("_hooks", {}).setdefault(kind, Hooks())
        super().__init__(hooks, hook)  # type: ignore[arg-type]
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

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call a function before each call of this module. ``forward`` itself calls no hooks.

        ``hook(module, args)`` returns None, or a tuple in the place of the positional arguments, or
        a single one. With keywords ``hook(module, args, kwargs)`` returns None or a pair ``(args,
        kwargs)``. Raises `TypeError` for what is not callable, and for a module whose class defines
        ``__call__`` itself.
        """
        return ModuleHandle(self, "before", _Hook(hook, with_kwargs))

    def register_forward_hook(
        self, hook: Callable[..., Any], *, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call a function after each call of this module, as `register_forward_pre_hook` before.

        ``hook(module, args, output)``, with keywords ``hook(module, args, kwargs, output)``,
        returns None, or what takes the output's place.
        """
        return ModuleHandle(self, "after", _Hook(hook, with_kwargs))

    def register_full_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a function when the gradients of this module's inputs are computed.

        ``hook(module, grad_input, grad_output)`` gets two tuples, of the positional arguments and
        of the outputs, in which None stands for what is no Tensor or has no gradient. It returns
        None, or a tuple in the place of ``grad_input``. If no argument requires grad, it is called
        when the gradients of the outputs are there. To change these, register a hook on the output.
        """
        return ModuleHandle(self, "backward", _Hook(hook))

    def _call_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """Call ``forward`` between the hooks."""
        hooks: Any = self._hooks
        for hook in list(hooks.get("before", {}).values()):
            returned = hook.call(self, args, kwargs)
            if returned is None:
                continue
            if not hook.with_kwargs:
                args = returned if isinstance(returned, tuple) else (returned,)
            elif isinstance(returned, tuple) and len(returned) == 2:
                args, kwargs = returned
            else:
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but "
                    f"got {returned!r}"
                )
        backward = None
        hooks = self._hooks or {}  # others, if the last hook has been removed
        if after := hooks.get("backward"):
            backward = _Backward(self, [hook.function for hook in after.values()])
            args = backward.enter(args)
        result = self.forward(*args, **kwargs)
        for hook in list(hooks.get("after", {}).values()):
            if (returned := hook.call(self, args, kwargs, result)) is not None:
                result = returned
        return result if backward is None else backward.leave(result)


class _Backward:
    """One call of a module whose backward pass is hooked."""

    def __init__(self, module: Any, hooks: list[Callable[..., Any]]) -> None:
        self.module, self.hooks = module, hooks
        self.grad_outputs: tuple[Any, ...] | None = None

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, at whose gradients the hooks are called."""
        self.nothing = (None,) * len(args)
        args, self.entered = _pass_through(self.receive_inputs, args, zeros=True)
        return args

    def leave(self, result: Any) -> Any:
        """The results, whose gradients the hooks are given."""
        if not isinstance(result, Tensor | tuple):
            warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result).__name__}"
            )
            return result
        results = result if isinstance(result, tuple) else (result,)
        results, _ = _pass_through(self.receive_outputs, results, zeros=False)
        return results if isinstance(result, tuple) else results[0]

    def receive_outputs(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """Take the gradients of the results."""
        self.grad_outputs = grads
        if not self.entered:
            for hook in self.hooks:
                returned = hook(self.module, self.nothing, grads)
                if returned is not None and returned != self.nothing:
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always "
                        "return None or None for all gradients."
                    )
            self.grad_outputs = None
        return grads

    def receive_inputs(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """Take the gradients of the arguments, and give what flows on."""
        if self.grad_outputs is None:
            return grads  # of a derivative of the gradient, which is none of the outputs'
        for hook in self.hooks:
            returned = hook(self.module, grads, self.grad_outputs)
            if returned is None:
                continue
            grads = (returned,) if isinstance(returned, Tensor) else tuple(returned)
            if len(grads) != len(self.nothing):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(grads)}, "
                    f"but expected {len(self.nothing)}"
                )
        self.grad_outputs = None
        return grads


def _pass_through(
    receive: Callable[[tuple[Any, ...]], tuple[Any, ...]], values: tuple[Any, ...], *, zeros: bool
) -> tuple[tuple[Any, ...], bool]:
    """Let the Tensors among values pass through a function, and tell whether that is recorded.

    Their gradients, with None for other values, are those that ``receive`` returns for them.
    """
    positions = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    tensors = [values[i] for i in positions]

    def spread(gradients: Any) -> list[Any]:
        found = dict(zip(positions, gradients, strict=True))
        grads = receive(tuple([found.get(i) for i in range(len(values))]))
        return [grads[i] for i in positions]

    if not any(tensor.requires_grad for tensor in tensors):
        return values, False
    passed = _Through.apply(spread, zeros, *tensors)
    if not any(tensor.requires_grad for tensor in passed):
        return values, False
    items = list(values)
    for position, tensor in zip(positions, passed, strict=True):
        items[position] = tensor
    # A named tuple is made of its fields.
    kind: Any = type(values)
    return (kind._make(items) if hasattr(kind, "_make") else tuple(items)), True


class _Through(Function):
    """The identity of several Tensors, whose gradients pass together."""

    @staticmethod
    def forward(ctx: Any, spread: Any, zeros: bool, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.spread = spread
        ctx.set_materialize_grads(zeros)
        ctx.mark_non_differentiable(*(x for x in tensors if not x.requires_grad))
        return tensors

    @staticmethod
    def jvp(ctx: Any, spread: None, zeros: None, *tangents: Any) -> tuple[Any, ...]:
        return tangents

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
        return None, None, *ctx.spread(gradients)
