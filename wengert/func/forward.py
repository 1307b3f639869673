"""Transforms by forward mode: products of Jacobians and Hessians with tangents."""

from collections.abc import Callable, Sequence
from typing import Any

from wengert.func.arguments import TRANSFORM, check_function, split
from wengert.func.reverse import Reverse, grad, vjp
from wengert.func.tangents import Forward, moving, split_with_tangents
from wengert.func.trees import tree_flatten, trees_of
from wengert.interpreters.dual import Exit, unpack_dual
from wengert.interpreters.lifted import new_level
from wengert.tape.grad_mode import recording
from wengert.tape.node import tick
from wengert.tape.promotion import at_least


@TRANSFORM.complete
def jvp(
    function: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> tuple[Any, ...]:
    r"""Call a function, and return its value and the product of its Jacobian with a tangent.

    Parameters
    ----------
    tangents : tuple or list
        For each argument its tangent: of the same structure, shapes and dtypes. A Python number
        may stand for a tangent of no axes.

    Returns
    -------
    value : Tensor, array, number or tree
        What the function returned, in the kind of the primals.
    tangent : Tensor, array, number or tree
        :math:`\dot y = J \dot x`, of the structure, shapes and dtypes of the value.
    aux : object
        With ``has_aux`` alone.

    Raises
    ------
    TypeError
        If primals or tangents are no tuples or lists, a primal or a result has no derivative, or a
        tangent has another dtype than its primal.
    ValueError
        If the tangents' structure or shapes differ from the primals'.
    BackendError
        If a tangent is on another backend than its primal.
    NotImplementedError
        If an operation's derivative is not defined, or is not there.

    See Also
    --------
    linearize : For many tangents at one point.
    vjp : The adjoint.

    Notes
    -----
    It is forward mode: one pass, which keeps nothing. Around it, modes such as `no_grad` leave it
    as it is; what the function computes under `no_grad` is constant, as it is to `grad`.
    Of complex functions that are not holomorphic, :math:`J` acts on real and imaginary parts.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert as wg
    >>> wg.func.jvp(np.sin, (0.0,), (2.0,))
    (0.0, 2.0)
    """
    call, given = split_with_tangents(function, primals, tangents, "jvp")
    ran = Forward(call, given, Exit(new_level(), tick(), recording()), "jvp", has_aux)
    pairs = unpack_dual(ran.results, ran.out)
    value = ran.answer([y for y, _ in pairs])
    tangent = ran.answer(list(map(moving, pairs)))
    return (value, tangent, ran.aux) if has_aux else (value, tangent)


@TRANSFORM.complete
def hvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, ...]:
    r"""Return the product of a real scalar function's Hessian with a vector.

    Parameters
    ----------
    function : callable
        A function of Tensors that returns a real Tensor of one element.

    Returns
    -------
    tuple
        For each primal its part of :math:`\nabla^2 f(x) \, \dot x`, in the kind of the primal.

    Raises
    ------
    TypeError, ValueError, BackendError, NotImplementedError
        As `jvp` and `grad`.

    Notes
    -----
    Reverse over reverse: the gradient is recorded, and the vector swept back through it, at the
    cost of a small multiple of the function's. The Hessian is not formed [1]_, and that it is
    symmetric is used. Tangents through the gradient give the same and were measured to take 1.3 to
    2.6 times as long. With complex arguments it is the derivative of the conjugate gradient that
    `grad` gives.

    Where a function has no second derivatives it has no product either, and what comes depends on
    the order of differentiation: of ``x**y``, ``acosh(x)`` or ``xlogy(x, y)`` at the edge of their
    domain, the product, tangents through the gradient and `hessian` may be finite, infinite or
    nan, and differ.

    A backward that is marked `wengert.autograd.once_differentiable` is refused, whatever its
    operation's ``jvp`` is: it may compute by other means than tangents or the tape follow.

    References
    ----------
    .. [1] B. A. Pearlmutter, "Fast exact multiplication by the Hessian", Neural Computation 6
       (1994).

    Examples
    --------
    >>> import numpy as np
    >>> import wengert as wg
    >>> wg.func.hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 1.0]),))
    (array([ 6., 12.]),)
    """
    call, given = split_with_tangents(function, primals, tangents, "hvp")
    gradient = split(grad(function, range(len(primals))), tuple(primals), {}, call.argnums)
    swept = Reverse(gradient, "hvp")
    return call.pack(swept.pull(given, keep=False), given)  # type: ignore[no-any-return]


@TRANSFORM.complete
def ggnvp(
    function: Callable[..., Any],
    loss: Callable[..., Any] | None,
    primals: Sequence[Any],
    tangents: Sequence[Any],
) -> tuple[Any, ...]:
    r"""Return the product of a generalised Gauss-Newton matrix with a vector.

    Of :math:`\ell(f(x))` it is :math:`J^H \, \nabla^2 \ell(f(x)) \, J \, \dot x`, where :math:`J`
    is the Jacobian of :math:`f`: the Hessian without the curvature of :math:`f` itself, and
    positive semi-definite where :math:`\ell` is convex.

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

    Returns
    -------
    tuple
        For each primal its part of the product, in the kind of the primal.

    Raises
    ------
    TypeError, ValueError, BackendError, NotImplementedError
        As `jvp`, `hvp` and `vjp`.

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
    >>> import wengert as wg
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
