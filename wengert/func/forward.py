"""Transforms by forward mode: products with tangents, and Jacobians by their columns."""

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

from wengert.backends import DType, backend_of, generators, namespaces
from wengert.func.arguments import (
    Argnums,
    Call,
    check_function,
    like_leaf,
    named_like,
    split,
)
from wengert.func.reverse import Reverse, grad, vjp
from wengert.func.trees import tree_flatten, tree_leaves, tree_map, trees_of
from wengert.interpreters.batched import identity, members
from wengert.interpreters.duals import Exit, make_dual, unpack_dual, without_tangent
from wengert.interpreters.lifted import bottom, new_level
from wengert.ops.creation import zeros_like
from wengert.ops.data_type import astype
from wengert.ops.manipulation import concat, moveaxis, reshape
from wengert.tape.grad_mode import record_always, recording, tangents_flow
from wengert.tape.node import tick
from wengert.tape.promotion import at_least
from wengert.tape.tensor import Tensor, untracked, wrapped

P = ParamSpec("P")


class _Push:
    """A call of a function on dual Tensors: the arguments' leaves with a tangent each.

    Attributes
    ----------
    values, tangents : list
        The results and their tangents outside: Tensors, or None for a tangent of zero.
    structure : TreeDef
        Of what the function returned.
    """

    def __init__(
        self, call: Call, tangents: Sequence[Tensor | None], transform: str, has_aux: bool = False
    ) -> None:
        self.call = call
        out = Exit(new_level(), tick(), bool(recording()), tangents_flow())
        duals = [make_dual(x, t, out.level) for x, t in zip(call.tensors, tangents, strict=True)]
        results, self.structure, aux = call.results(duals, transform, has_aux)
        pairs = unpack_dual(results, out)
        self.values = [value for value, _ in pairs]
        self.tangents = [tangent for _, tangent in pairs]

        def value(x: Any) -> Any:
            if not isinstance(x, Tensor):
                return x
            return unpack_dual([without_tangent(x, out.level)], out)[0][0]

        self._aux = tree_map(value, aux)

    @property
    def aux(self) -> Any:
        """The function's auxiliary data, in the kind of the call."""
        return self.call.answer(self._aux)

    @property
    def is_recorded(self) -> bool:
        """Whether the tape outside follows any value."""
        tensors = [*self.values, *tree_leaves(self._aux)]
        return any(isinstance(x, Tensor) and x._node is not None for x in tensors)

    def answer(self, tensors: Sequence[Tensor]) -> Any:
        """Answer with one Tensor for each result, in the kind of the call."""
        return self.call.answer(self.structure.unflatten(tensors))


def jvp(
    function: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> tuple[Any, ...]:
    r"""Call a function, and return its value and the product of its Jacobian with a tangent.

    ``has_aux`` is as for `grad`.

    Raises `TypeError` if primals or tangents are no tuples or lists, or a primal or a result has no
    derivative; `TypeError`, `ValueError` or `BackendError` if a tangent has another dtype, shape or
    backend than its primal; `NotImplementedError` if an operation has no derivative.

    Parameters
    ----------
    primals : tuple or list
        Its arguments, all of which are differentiated: Tensors, arrays and Python numbers, or trees
        of these.
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
    pushed = _Push(call, given, "jvp", has_aux)
    value = pushed.answer(pushed.values)
    pairs = zip(pushed.values, pushed.tangents, strict=True)
    tangent = pushed.answer([zeros_like(y) if t is None else t for y, t in pairs])
    return (value, tangent, pushed.aux) if has_aux else (value, tangent)


def hvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, ...]:
    r"""Return the product of a real scalar function's Hessian with a vector.

    ``primals`` are as for `jvp`. Raises `TypeError`, `ValueError`, `BackendError`,
    `NotImplementedError` as `jvp` and `grad`.

    Parameters
    ----------
    function : callable
        A function of Tensors that returns a real Tensor of one element.
    tangents : tuple or list
        For each argument its part of the vector: of the same structure, shapes and dtypes.

    Returns
    -------
    tuple
        For each primal its part of :math:`\nabla^2 f(x) \, \dot x`, in the kind of the primal.

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


def ggnvp(
    function: Callable[..., Any],
    loss: Callable[..., Any] | None,
    primals: Sequence[Any],
    tangents: Sequence[Any],
) -> tuple[Any, ...]:
    r"""Return the product of a generalised Gauss-Newton matrix with a vector.

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

    Returns
    -------
    tuple
        For each primal its part of the product, in the kind of the primal.

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
    aux : object
        With ``has_aux`` alone.

    See Also
    --------
    jvp : For one tangent, which keeps nothing.

    Notes
    -----
    The pullback of `vjp` is linear in the cotangent. It is recorded once, and the pushforward
    sweeps that record: the transpose of the transpose. No forward rule is used, and each backward
    is differentiated, which `wengert.autograd.once_differentiable` refuses. Hooks inside take part
    with their derivative at a cotangent of zero. The answer can be differentiated: with respect to
    the tangents, to what the primals depend on, and to what the function closed over.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert as wg
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


def jacfwd(
    function: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[P, Any]:
    r"""Return a function that computes a Jacobian by forward mode, one column for each input.

    ``argnums`` and ``has_aux`` are as for `grad`.

    Raises `TypeError`, `ValueError`, `NotImplementedError` as `jvp`, and if ``argnums`` does not
    fit the arguments or ``chunk_size`` is no positive integer.

    Parameters
    ----------
    chunk_size : int, optional
        How many columns are computed at once, which bounds the memory; all by default.

    Returns
    -------
    callable
        A function of the same arguments. It returns :math:`J = \partial y / \partial x`: for each
        leaf of the value a tree like the argument (or a tuple of these, if ``argnums`` is a
        sequence), whose leaves have the shape of the value's leaf followed by that of the
        argument's. With ``has_aux``, it returns a pair ``(jacobian, aux)``.

    See Also
    --------
    jacrev : The same by the reverse sweep, for functions of many inputs and few outputs.

    Notes
    -----
    A derivative has the dtype of the result: `jacrev` gives it that of the argument.

    The function is called once for each chunk, with a batch of tangents. It is called for each
    column if it uses, or is given, Tensors that require grad. All calls draw the same random
    numbers from Wengert's generators. Columns of complex arguments are derivatives along the real
    axis: :math:`f'(z)`, if the function is holomorphic.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert as wg
    >>> wg.func.jacfwd(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    check_function(function, "jacfwd")
    check_chunk_size(chunk_size)

    @named_like(function)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        call = split(function, args, kwargs, argnums)
        return by_columns(call, "jacfwd", has_aux, chunk_size)

    return jacobian


def by_columns(
    call: Call,
    transform: str,
    has_aux: bool,
    chunk_size: int | None,
    dtype: Callable[[Tensor, Tensor], DType] | None = None,
) -> Any:
    """The Jacobian of a call, as `jacfwd` answers.

    Where ``dtype`` is given, ``dtype(y, x)`` is that of the derivative of a result by an argument.
    """
    pushed, columns = _columns(call, transform, has_aux, chunk_size)
    blocks = _blocks(columns, call.tensors)
    if dtype is not None:
        blocks = [
            [astype(b, dtype(y, x), copy=False) for b, x in zip(row, call.tensors, strict=True)]
            for row, y in zip(blocks, pushed.values, strict=True)
        ]
    found = pushed.structure.unflatten([call.pack(row) for row in blocks])
    return (found, pushed.aux) if has_aux else found


def check_chunk_size(chunk_size: Any) -> None:
    """Raise if this is neither None nor a positive integer."""
    if chunk_size is None:
        return
    if not isinstance(chunk_size, int) or isinstance(chunk_size, bool):
        raise TypeError(f"chunk_size should be an integer or None, not {chunk_size!r}")
    if chunk_size < 1:
        raise ValueError(f"chunk_size should be positive, not {chunk_size}")


def _columns(
    call: Call, transform: str, has_aux: bool, chunk_size: int | None, alone: bool = False
) -> tuple[_Push, list[Tensor]]:
    """The last call, and for each result its tangents along all directions, on a first axis.

    A call pushes a batch of tangents, or, if ``alone``, a single one, which the tape outside can
    follow. Each call repeats the random draws of the first.
    """
    arrays = [x._array for x in call.tensors]
    count = sum(x.size for x in call.tensors)
    alone = alone or (bool(recording()) and any(x._node is not None for x in call.tensors))
    step = 1 if alone else chunk_size or max(count, 1)
    draws = generators.get_rng_state() if step < count else {}
    chunks: list[list[Tensor]] = []
    for start in range(0, max(count, 1), step):
        if start:
            generators.set_rng_state(draws)
        stop, level = min(start + step, count), new_level()
        basis = identity(arrays, level, start, stop)
        tangents = [untracked(e.inner[0, ...] if alone else e) if count else None for e in basis]
        pushed = _Push(call, tangents, transform, has_aux)
        if pushed.is_recorded and not alone:
            return _columns(call, transform, has_aux, chunk_size, alone=True)
        rows = []
        for y, t in zip(pushed.values, pushed.tangents, strict=True):
            if t is None:
                row = zeros_beside([*call.tensors, y][0], (stop - start, *y.shape), y.dtype)
            elif alone:
                row = reshape(t, (1, *t.shape))
            else:
                row = wrapped(members(t._array, level, stop - start))
            rows.append(row)
        chunks.append(rows)
    parts = zip(*chunks, strict=True)
    return pushed, [each[0] if len(each) == 1 else concat(each) for each in parts]


def zeros_beside(x: Tensor, shape: Sequence[int], dtype: DType) -> Tensor:
    """Zeros of the library and device of a Tensor, a constant of every level."""
    like = bottom(x._array)
    xp, dtype = namespaces[type(like)], backend_of(like).raw_dtype(dtype)
    return untracked(xp.zeros(tuple(shape), dtype=dtype, device=xp.device(like)))


def _blocks(columns: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[list[Tensor]]:
    """For each result and each input, their block of the Jacobian."""
    rows = []
    for column in columns:
        row, start = [], 0
        for x in inputs:
            block = moveaxis(column[start : start + x.size], 0, -1)
            row.append(reshape(block, (*column.shape[1:], *x.shape)))
            start += x.size
        rows.append(row)
    return rows


def split_with_tangents(
    function: Callable[..., Any], primals: Any, tangents: Any, transform: str
) -> tuple[Call, list[Tensor]]:
    """The call of a function with primals, and tangents for its leaves."""
    check_function(function, transform)
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            raise TypeError(
                f"{transform} takes the {what} in a tuple, as in {transform}(f, (x,), (t,)), and "
                f"not a {type(given).__name__}"
            )
    if not primals:
        raise TypeError(f"{transform} takes at least one argument to call the function with")
    if len(primals) != len(tangents):
        raise ValueError(
            f"{transform} was given {len(primals)} primals and {len(tangents)} tangents; each "
            "argument has one"
        )
    call = split(function, tuple(primals), {}, range(len(primals)))
    return call, tangents_of(call, tangents)


def tangents_of(call: Call, tangents: Sequence[Any]) -> list[Tensor]:
    """What a user gave as tangents, as a Tensor for each leaf of the primals."""
    given = [
        leaf
        for position, (structure, tree) in enumerate(zip(call.structures, tangents, strict=True))
        for leaf in structure.flatten_up_to(tree, f"the tangent of argument {position}")
    ]
    return [
        _tangent(t, x, name) for t, x, name in zip(given, call.tensors, call.names, strict=True)
    ]


def _tangent(given: Any, primal: Tensor, name: str) -> Tensor:
    what = f"the tangent of {name}"
    tensor = like_leaf(given, primal, what, "the argument", ValueError)
    if tensor.dtype is not primal.dtype:
        raise TypeError(
            f"{what} has dtype {tensor.dtype.name}, and the argument has {primal.dtype.name}; "
            f"convert it with wg.astype(t, wg.{primal.dtype.name})"
        )
    return tensor
