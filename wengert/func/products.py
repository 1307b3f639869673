"""Products of a direction with Hessians, Gauss-Newton matrices, and a Jacobian at one point."""

from collections.abc import Callable, Sequence
from typing import Any

from wengert.func.arguments import check_function, split
from wengert.func.forward import jvp, split_with_tangents, tangents_of
from wengert.func.reverse import Reverse, grad, vjp
from wengert.func.trees import tree_flatten, tree_map, trees_of
from wengert.ops.creation import zeros_like
from wengert.tape.grad_mode import record_always, tangents_flow
from wengert.tape.promotion import at_least
from wengert.tape.tensor import Tensor


def hvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, ...]:
    r"""Return the product of a real scalar function's Hessian with a vector, as a tuple.

    ``primals`` are as for `jvp`; each gets its part of :math:`\nabla^2 f(x) \, \dot x`. Raises
    `TypeError`, `ValueError`, `BackendError`, `NotImplementedError` as `jvp` and `grad`.

    Parameters
    ----------
    function : callable
        A function of Tensors that returns a real Tensor of one element.
    tangents : tuple or list
        For each argument its part of the vector: of the same structure, shapes and dtypes.

    Notes
    -----
    Reverse over reverse: the gradient is recorded, and the vector swept back through it, at the
    cost of a small multiple of the function's. The Hessian is not formed [1]_; its symmetry is
    used. Tangents through the gradient give the same and were measured to take 1.3 to 2.6 times as
    long. With complex arguments it is the derivative of `grad`'s gradient,
    :math:`2\,\partial f / \partial \bar z`.

    Where a function has no second derivatives, `hvp`, `hessian` and tangents through the gradient
    may differ: each gives finite numbers, infinities or nan by its own order of differentiation.
    Examples are ``x**y``, ``acosh(x)`` and ``xlogy(x, y)`` at the edge of their domain.

    A backward that is marked `wengert.autograd.once_differentiable` is refused, whatever its
    operation's ``jvp`` is: it may compute what neither tangents nor the tape can follow.

    References
    ----------
    .. [1] B. A. Pearlmutter, "Fast exact multiplication by the Hessian", Neural Computation 6
       (1994).

    Examples
    --------
    >>> import numpy as np
    >>> wg.func.hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 1.0]),))
    (array([ 6., 12.]),)
    """
    call, given = split_with_tangents(function, primals, tangents, "hvp")
    gradient = split(grad(function, range(len(primals))), tuple(primals), {}, call.argnums)
    swept = Reverse(gradient, "hvp")
    return call.pack(swept.pull(given, keep=False), given)  # type: ignore[no-any-return]


def ggnvp(
    function: Callable[..., Any],
    loss: Callable[..., Any] | None,
    primals: Sequence[Any],
    tangents: Sequence[Any],
) -> tuple[Any, ...]:
    r"""Return the product of a generalised Gauss-Newton matrix with a vector, as a tuple.

    Of :math:`\ell(f(x))` it is :math:`J^H \, \nabla^2 \ell(f(x)) \, J \, \dot x`, where :math:`J`
    is the Jacobian of :math:`f`: the Hessian without the curvature of :math:`f` itself, and
    positive semi-definite where :math:`\ell` is convex. Raises `TypeError`, `ValueError`,
    `BackendError`, `NotImplementedError` as `jvp`, `hvp` and `vjp`.

    Parameters
    ----------
    function : callable
        A function of Tensors that returns a Tensor or a tree of Tensors, such as a network.
    loss : callable or None
        A function of what the first one returns, which returns a real Tensor of no axes. None is
        half the sum of squares, :math:`\ell(y) = \tfrac12 \lVert y \rVert^2`, whose Hessian is the
        identity: the matrix of nonlinear least squares, :math:`J^H J`.
    primals : tuple or list
        Arguments of ``function``, all of which are differentiated, as for `jvp`.

    Notes
    -----
    A push through the function, a Hessian product of the loss, and a sweep back [1]_.

    References
    ----------
    .. [1] N. N. Schraudolph, "Fast curvature matrix-vector products for second-order gradient
       descent", Neural Computation 14 (2002).

    Examples
    --------
    >>> import numpy as np
    >>> a = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> wg.func.ggnvp(lambda x: wg.asarray(a) @ x, None, (np.zeros(2),), (np.array([1.0, 0.0]),))
    (array([10., 14.]),)
    """
    if loss is not None:
        check_function(loss, "ggnvp")
    call, given = split_with_tangents(function, primals, tangents, "ggnvp")
    trees = tuple(trees_of(call.structures, call.tensors))
    with at_least(call.precision):  # these are given Tensors
        value, tangent = jvp(function, trees, tuple(trees_of(call.structures, given)))
        _, pullback = vjp(function, *trees)
        if loss is not None:
            (tangent,) = hvp(loss, (value,), (tangent,))
        leaves = [tree_flatten(part)[0] for part in pullback(tangent)]
    return call.pack([x for part in leaves for x in part], given)  # type: ignore[no-any-return]


def linearize(
    function: Callable[..., Any], *primals: Any, has_aux: bool = False
) -> tuple[Any, ...]:
    r"""Call a function once, and return its value and its derivative there as a function.

    ``has_aux`` is as for `grad`. Raises `TypeError`, `ValueError`, `BackendError`,
    `NotImplementedError` as `jvp`; for what is wrong with tangents, by the pushforward.

    Returns
    -------
    value : Tensor, array, number or tree
        What the function returned, in the kind of the primals.
    pushforward : callable
        ``pushforward(*tangents)``, for one tangent like each primal, returns the tangent
        :math:`J \dot x` of the value. It does not call the function again, and can be called any
        number of times.

    Notes
    -----
    The pullback of `vjp` is linear in the cotangent. It is recorded once, and the pushforward
    sweeps that record: the transpose of the transpose. No forward rule is used, and each backward
    is differentiated, which `wengert.autograd.once_differentiable` refuses. Hooks on
    gradients inside the function are linearised at a zero cotangent. The answer can be
    differentiated: by the tangents, by what the primals depend on, and by what is closed over.

    Examples
    --------
    >>> import numpy as np
    >>> value, pushforward = wg.func.linearize(lambda x: x**2, np.array([1.0, 2.0]))
    >>> pushforward(np.array([1.0, 10.0]))
    array([ 2., 40.])
    """
    check_function(function, "linearize")
    if not primals:
        raise TypeError("linearize takes the function and at least one argument to call it with")
    call = split(function, primals, {}, range(len(primals)))
    if not tangents_flow():
        call.tensors = [x.detach() for x in call.tensors]
    with record_always():
        swept = Reverse(call, "linearize", has_aux)

    def pull(cotangents: tuple[Tensor, ...]) -> list[Tensor]:
        return swept.pull(cotangents, keep=True)

    # The pullback is linear, so that it has one transpose, wherever that is taken.
    zeros = tuple([zeros_like(y) for y in swept.results])
    pulled = split(pull, (zeros,), {}, 0)
    pulled.precision = call.precision
    transposed = Reverse(pulled, "linearize")
    transposed.start = swept.start  # what the function recorded is no Tensor outside

    def pushforward(*tangents: Any) -> Any:
        """Return the tangent of the function's value that tangents of its arguments cause."""
        if len(tangents) != len(primals):
            raise TypeError(
                f"the function was linearized at {len(primals)} arguments, and the pushforward was "
                f"given {len(tangents)} tangents"
            )
        found = transposed.pull(tangents_of(call, tangents), keep=True)
        return call.answer(swept.structure.unflatten(found))

    def outside(x: Any) -> Any:
        return transposed.release(x) if isinstance(x, Tensor) else x

    value = call.answer(swept.structure.unflatten(map(outside, swept.results)))
    if not has_aux:
        return value, pushforward
    return value, pushforward, call.answer(tree_map(outside, swept.aux))
