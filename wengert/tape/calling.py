"""How functions call their primitives, fast.

Each is `Primitive.bind` for operands of a fixed number and kind, without its loops.
One body for all three, or generated ones, were slower: see docs/design/decisions.md.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.backends import FLOATING, namespaces
from wengert.tape.grad_mode import recording
from wengert.tape.marks import off_tape
from wengert.tape.node import Node, running_forwards
from wengert.tape.observers import observing
from wengert.tape.primitive import FAILURES, Primitive, explain
from wengert.tape.promotion import NUMBERS
from wengert.tape.record import inexact, observe, record
from wengert.tape.tensor import Tensor, untracked
from wengert.tape.views import show


def unary(primitive: Primitive) -> Callable[[Any], Tensor]:
    """The public function of an elementwise primitive of one argument: `Primitive.bind`, fast."""
    kernel_for = primitive.kernels.__getitem__  # faster than a subscript of a subclass of dict
    differentiable, floating = bool(primitive.rules), primitive.floating
    plan = primitive.plans[(True,)]

    def call(x: Any, /) -> Tensor:
        if not isinstance(x, Tensor):
            return primitive.bind(x)  # type: ignore[no-any-return]
        array, node = x._array, x._node
        # Tracked arrays are floating already.
        if floating and node is None and type(array.dtype) not in FLOATING and not inexact(array):
            (array,) = primitive.cast([array])
        try:
            out = kernel_for(type(array))(array)
        except FAILURES as error:
            explain(primitive, [x._array], error)
            raise
        if node is None:
            result = untracked(out)
        elif differentiable and recording():
            result = record(plan, (node,), plan.take((array, out)), out)  # type: ignore[misc]
        else:
            result = off_tape(out, primitive, (node,)) if running_forwards else untracked(out)
        if observing:
            observe(primitive.name, primitive, (x,), result)
        return result

    return call


def bind_pair(primitive: Primitive, x1: Any, x2: Any) -> Any:
    """Apply a primitive of two arguments of any kind."""
    if x1 is None or x2 is None:  # which `bind` takes for an absent input
        raise TypeError(f"{primitive.name} takes Tensors, arrays and Python numbers, not None")
    if primitive.compares:
        if isinstance(x2, Tensor):
            x1 = _as_scalar(x1)
        elif isinstance(x1, Tensor):
            x2 = _as_scalar(x2)
    return primitive.bind(x1, x2)


def _as_scalar(x: Any) -> Any:
    """A 0-d NumPy array as a number; others unchanged.

    NumPy converts a scalar on the left of a comparison to such an array, and scalars count as
    numbers.
    """
    # By ``__class__``, as a traced array refuses to give its value.
    if x.__class__ is np.ndarray and not x.shape and x.dtype.kind in "biufc":
        return x.item()
    return x


def binary(
    primitive: Primitive, otherwise: Callable[[Primitive, Any, Any], Any] = bind_pair
) -> Callable[[Any, Any], Tensor]:
    """The public function of an elementwise primitive of two arguments: `Primitive.bind`, fast.

    Parameters
    ----------
    otherwise : callable
        Called for operands other than Tensors of one library and Python numbers.
    """
    kernel_for = primitive.kernels.__getitem__  # faster than a subscript of a subclass of dict
    differentiable, floating = bool(primitive.rules), primitive.floating
    cast, weak, plans = primitive.cast, primitive.weak, primitive.plans
    both, left, right = plans[(True, True)], plans[(True, False)], plans[(False, True)]

    def call(x1: Any, x2: Any, /) -> Tensor:
        # Tracked arrays are floating: they promote only what is beside them.
        if isinstance(x1, Tensor) and isinstance(x2, Tensor):
            array1, array2 = x1._array, x2._array
            node1, node2 = x1._node, x2._node
            kind = type(array1)
            if kind is not type(array2) and namespaces[kind] is not namespaces[type(array2)]:
                return otherwise(primitive, x1, x2)  # type: ignore[no-any-return]
            if (node1 is None or node2 is None) and (
                array1.dtype is not array2.dtype
                or (floating and type(array1.dtype) not in FLOATING and not inexact(array1))
            ):
                array1, array2 = cast([array1, array2])
        elif weak and isinstance(x1, Tensor) and type(x2) in NUMBERS:
            array1, array2 = x1._array, x2
            node1, node2 = x1._node, None
            kind = type(array1)
            if node1 is None and type(array1.dtype) not in FLOATING and not inexact(array1):
                array1, array2 = cast([array1, array2])
        elif weak and isinstance(x2, Tensor) and type(x1) in NUMBERS:
            array1, array2 = x1, x2._array
            node1, node2 = None, x2._node
            kind = type(array2)
            if node2 is None and type(array2.dtype) not in FLOATING and not inexact(array2):
                array1, array2 = cast([array1, array2])
        else:
            return otherwise(primitive, x1, x2)  # type: ignore[no-any-return]
        try:
            out = kernel_for(kind)(array1, array2)
        except FAILURES as error:
            explain(primitive, [getattr(x, "_array", x) for x in (x1, x2)], error)
            raise
        if not differentiable or (node1 is None and node2 is None) or not recording():
            result = (
                off_tape(out, primitive, (node1, node2)) if running_forwards else untracked(out)
            )
        else:
            values = (array1, array2, out)
            if node2 is None:
                result = record(left, (node1, None), left.take(values), out)  # type: ignore[misc]
            elif node1 is None:
                result = record(right, (None, node2), right.take(values), out)  # type: ignore[misc]
            else:
                result = record(both, (node1, node2), both.take(values), out)  # type: ignore[misc]
        if observing:
            observe(primitive.name, primitive, (x1, x2), result)
        return result

    return call


def single(primitive: Primitive, kind: type[Node] | None = None) -> Callable[..., Any]:
    """`Primitive.bind` of a primitive of one input and one result, without its loops.

    ``kind`` is the class of the recorded nodes.
    """
    kernel_for = primitive.kernels.__getitem__  # faster than a subscript of a subclass of dict
    differentiable, bind = bool(primitive.rules), primitive.bind
    floating = primitive.floating and bool(primitive.joined)
    plan = primitive.plans[(True,)]
    view = primitive if primitive.view is True else primitive.view

    def call(x: Any, **parameters: Any) -> Any:
        if not isinstance(x, Tensor):
            return bind(x, **parameters)
        array, node = x._array, x._node
        if floating and node is None and type(array.dtype) not in FLOATING and not inexact(array):
            (array,) = primitive.cast([array])
        try:
            out = kernel_for(type(array))(array, **parameters)
        except FAILURES as error:
            explain(primitive, [x._array], error)
            raise
        if (
            node is None
            or not (differentiable and recording())
            or (out.dtype is not node.dtype and not inexact(out))
        ):
            result = off_tape(out, primitive, (node,)) if running_forwards else untracked(out)
        else:
            take = plan.take
            saved = plan.save((array,), out, parameters) if take is None else take((array, out))
            result = record(plan, (node,), saved, out)
            if kind is not None:
                result._node.__class__ = kind
        if observing:
            observe(primitive.name, primitive, (x,), result)
        if view:
            show(result, x, view, parameters)
        return result

    return call
