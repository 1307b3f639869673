"""Backward functions of users that are not differentiable themselves."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from wengert.tape.function import Function, FunctionCtx, FunctionNode, varies
from wengert.tape.grad_mode import recording, unrecorded
from wengert.tape.node import Node
from wengert.tape.tensor import Tensor, placed


class _Twice(Function):
    """What stands on the tape where a gradient must not be differentiated again."""

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        raise _no_derivative(ctx.name)


def _no_derivative(name: str) -> RuntimeError:
    return RuntimeError(
        "trying to differentiate twice a function that was marked with @once_differentiable: "
        f"the backward of {name} has no derivative"
    )


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `Function`'s backward as one that is not differentiable itself.

    It goes between ``@staticmethod`` and the function. The backward then always runs unrecorded,
    so that it may compute by other means than Wengert's operations. Differentiating its results
    is an error.

    Parameters
    ----------
    backward : callable
        ``backward(ctx, *grads)`` of a `Function`.

    Returns
    -------
    callable
        The same, which runs unrecorded.

    Raises
    ------
    RuntimeError
        When a second derivative through the function is computed.

    Examples
    --------
    >>> class Double(wg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...     @staticmethod
    ...     @wg.autograd.once_differentiable
    ...     def backward(ctx, g):
    ...         return 2 * g
    >>> wg.grad(Double.apply)(1.0)
    2.0
    """

    @wraps(backward)
    def call(ctx: FunctionCtx, *cotangents: Any) -> Any:
        given = [g for g in cotangents if isinstance(g, Tensor)]
        if ctx._varies or any(varies(g._array) for g in given):
            raise _no_derivative(ctx._node.operation)
        with unrecorded():
            answer = backward(ctx, *cotangents)
        if not recording():
            return answer
        found = [*(g._node for g in given), *ctx._node.parents]
        parents = tuple(parent for parent in found if parent is not None)
        several = isinstance(answer, tuple | list)
        answers = [_refusing(a, ctx, parents) for a in (answer if several else [answer])]
        return tuple(answers) if several else answers[0]

    return call


def _refusing(answer: Any, ctx: FunctionCtx, parents: tuple[Node, ...]) -> Any:
    """A gradient with a node at which differentiation fails."""
    if not isinstance(answer, Tensor) or not answer.dtype.inexact:
        return answer
    context = FunctionCtx()
    context.name = ctx._node.operation  # type: ignore[attr-defined]
    node = FunctionNode(_Twice, context, parents)
    node.shape, node.dtype = answer._array.shape, answer._array.dtype
    return placed(answer._array, node)
