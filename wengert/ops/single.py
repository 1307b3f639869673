"""How a function of one array and static parameters calls its primitive, fast."""

from collections.abc import Callable
from typing import Any

from wengert.tape.primitive import Primitive, explain, inexact, record
from wengert.tape.recording import recording
from wengert.tape.tensor import Tensor, show, untracked


def single(primitive: Primitive) -> Callable[..., Any]:
    """`Primitive.bind` of a primitive of one input and one result, without its loops."""
    kernels = primitive.kernels
    differentiable = bool(primitive.rules)
    bind = primitive.bind
    plan = primitive.plans[(True,)]
    view = primitive if primitive.view is True else primitive.view

    def call(x: Any, **parameters: Any) -> Any:
        if not isinstance(x, Tensor):
            return bind(x, **parameters)
        array = x._array
        try:
            out = kernels[type(array)](array, **parameters)
        except (TypeError, ValueError, RuntimeError) as error:
            explain(primitive.name, primitive.kind, [array], error)
            raise
        node = x._node
        if node is None or not differentiable or not recording() or not inexact(out):
            result = untracked(out)
        else:
            take = plan.take
            saved = plan.save((array,), out, parameters) if take is None else take((array, out))
            result = record(plan, (node,), saved, out)
        if view:
            show(result, x, view, parameters)
        return result

    return call
