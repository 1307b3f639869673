"""Transforms by forward mode: products of Jacobians with tangents, and what is made of these."""

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

from wengert.backends import BackendError, namespaces
from wengert.func.arguments import (
    TRANSFORM,
    Argnums,
    Call,
    check_function,
    named_like,
    outputs,
    split,
    value_and_aux,
)
from wengert.func.reverse import grad, vjp
from wengert.func.trees import TreeDef, tree_flatten
from wengert.interpreters.batched import identity, members
from wengert.interpreters.dual import Exit, drop, lift, tangent_of, without_tangent
from wengert.interpreters.lifted import bottom, constant, new_level
from wengert.interpreters.linear import Linear, Program
from wengert.ops.creation import zeros_like
from wengert.ops.manipulation import concat, moveaxis, reshape
from wengert.tape.node import tick
from wengert.tape.promotion import at_least
from wengert.tape.recording import recording, transforming
from wengert.tape.tensor import Tensor, untracked, wrapped

__all__ = ["ggnvp", "hvp", "jacfwd", "jvp", "linearize"]

P = ParamSpec("P")


class Forward:
    """A function that has been called on Tensors with tangents.

    Parameters
    ----------
    call : Call
        The call, from `wengert.func.arguments.split`.
    tangents : sequence of Tensor
        One for each differentiated leaf.
    out : Exit
        The level of the transform, and the way out.
    transform : str
        Its name, for errors.
    has_aux : bool
        Whether the function returns a pair, of which the second is passed on.
    always : bool
        As for `wengert.interpreters.dual.lift`.

    Attributes
    ----------
    inputs : list of Tensor
        The arguments' leaves, with their tangents.
    results : list of Tensor
        The leaves of what the function returned, still at the level.
    structure : TreeDef
        Their structure.
    """

    def __init__(
        self,
        call: Call,
        tangents: Sequence[Tensor],
        out: Exit,
        transform: str,
        has_aux: bool = False,
        always: bool = False,
    ) -> None:
        self.call, self.out = call, out
        self.inputs = [
            lift(x, t, out.level, always) for x, t in zip(call.tensors, tangents, strict=True)
        ]
        with transforming():
            returned = call.run(self.inputs)
        aux = None
        if has_aux:
            returned, aux = value_and_aux(returned, transform)
        self.results: list[Tensor]
        self.structure: TreeDef
        self.results, self.structure = outputs(returned, transform)
        self._aux = tree_flatten(aux)

    @property
    def aux(self) -> Any:
        """What the function returned beside its value, in the kind of the call."""
        leaves, structure = self._aux
        found = iter(self.still([x for x in leaves if isinstance(x, Tensor)]))
        free = [next(found) if isinstance(x, Tensor) else x for x in leaves]
        return self.call.answer(structure.unflatten(free))

    def still(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The values of Tensors of the level, outside."""
        return [y for y, _ in drop([without_tangent(x, self.out.level) for x in tensors], self.out)]

    def answer(self, tensors: Sequence[Tensor]) -> Any:
        """Answer with one Tensor for each result, in the kind of the call."""
        return self.call.answer(self.structure.unflatten(tensors))


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
    call, given = _split(function, primals, tangents, "jvp")
    ran = Forward(call, given, Exit(new_level(), tick(), recording()), "jvp", has_aux)
    pairs = drop(ran.results, ran.out)
    value = ran.answer([y for y, _ in pairs])
    tangent = ran.answer(list(map(_moving, pairs)))
    return (value, tangent, ran.aux) if has_aux else (value, tangent)


@TRANSFORM.complete
def linearize(
    function: Callable[..., Any], *primals: Any, has_aux: bool = False
) -> tuple[Any, ...]:
    r"""Call a function once, and return its value and its derivative there as a function.

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

    Raises
    ------
    TypeError, ValueError, BackendError, NotImplementedError
        As `jvp`; for what is wrong with tangents, by the pushforward.

    See Also
    --------
    jvp : For one tangent, which keeps nothing.

    Notes
    -----
    The pushforward holds what the function's derivatives need. Only what happens to tangents is run
    again, for forward rules look at no values. Its answer can be differentiated with respect to
    the tangents, and to what the primals depend on.

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
    linear = _Linearized(call, "linearize", has_aux, always=True)

    def pushforward(*tangents: Any) -> Any:
        """Return the tangent of the function's value that tangents of its arguments cause."""
        if len(tangents) != len(primals):
            raise TypeError(
                f"the function was linearized at {len(primals)} arguments, and the pushforward was "
                f"given {len(tangents)} tangents"
            )
        return linear.ran.answer(linear.push(_tangents(call, tangents)))

    value = linear.ran.answer(linear.values)
    return (value, pushforward, linear.ran.aux) if has_aux else (value, pushforward)


class _Linearized:
    """A function that was called on Tensors whose tangents are symbols.

    Attributes
    ----------
    ran : Forward
        The call.
    values : list of Tensor
        The results' values, outside.
    recorded : bool
        Whether the values are on the tape.
    """

    def __init__(self, call: Call, transform: str, has_aux: bool, always: bool = False) -> None:
        level, self._level = new_level(), new_level()
        symbols = [
            untracked(Linear(_ones(x._array), self._level, i)) for i, x in enumerate(call.tensors)
        ]
        # What values and auxiliary data are does not depend on the tangents: any will do.
        still = [_zeros(x._array) for x in call.tensors]
        out = Exit(level, tick(), recording(), self._reader(still))
        self.ran = Forward(call, symbols, out, transform, has_aux, always)
        self.values = self.ran.still(self.ran.results)
        self.recorded = any(
            y._node is not None and value._node is not None
            for y, value in zip(self.ran.results, self.values, strict=True)
        )
        self._slopes = [tangent_of(y, level) for y in self.ran.results]
        self._program = Program(self._slopes, self._level)

    def _reader(self, tangents: Sequence[Any]) -> Callable[[list[Any]], list[Any]]:
        """Evaluate what is linear in the symbols at tangents of the arguments, raw arrays."""
        level = self._level  # without `self`, which would hold itself by this
        return lambda symbols: Program(symbols, level)(tangents)

    def batch(self, tangents: Sequence[Any]) -> list[Any]:
        """Tangents of the results, raw, for raw tangents of the arguments."""
        return self._program(tangents)

    def push(self, tangents: Sequence[Tensor]) -> list[Tensor]:
        """Tangents of the results."""
        if self.recorded:
            arrays = [t._array for t in tangents]
            nodes = [t._node for t in tangents]
            lifts = [x._node for x in self.ran.inputs]
            out = self.ran.out._replace(
                read=self._reader(arrays),
                directions={
                    at.number: node for at, node in zip(lifts, nodes, strict=True) if at is not None
                },
            )
            return list(map(_moving, drop(self.ran.results, out)))
        pushed = self._program(tangents)
        return [
            zeros_like(y) if t is None else wrapped(t)
            for y, t in zip(self.values, pushed, strict=True)
        ]


@TRANSFORM.complete
def jacfwd(
    function: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[P, Any]:
    r"""Return a function that computes a Jacobian by forward mode, one column for each input.

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

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        As `jvp`, and if ``argnums`` does not fit the arguments or ``chunk_size`` is no positive
        integer.

    See Also
    --------
    jacrev : The same by the reverse sweep, for functions of many inputs and few outputs.

    Notes
    -----
    The function is called once. Its cost is that of the function and one push of a batch of
    tangents, in proportion to the number of inputs. Columns of complex arguments are derivatives
    along the real axis: :math:`f'(z)`, if the function is holomorphic.

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
        linear = _Linearized(call, "jacfwd", has_aux)
        columns = _columns(linear, chunk_size)
        found = linear.ran.structure.unflatten(
            [call.pack(row) for row in _blocks(columns, linear.values, call.tensors)]
        )
        return (found, linear.ran.aux) if has_aux else found

    return jacobian


def check_chunk_size(chunk_size: Any) -> None:
    """Raise if this is neither None nor a positive integer."""
    if chunk_size is None:
        return
    if not isinstance(chunk_size, int) or isinstance(chunk_size, bool):
        raise TypeError(f"chunk_size should be an integer or None, not {chunk_size!r}")
    if chunk_size < 1:
        raise ValueError(f"chunk_size should be positive, not {chunk_size}")


def _columns(linear: _Linearized, chunk_size: int | None) -> list[Tensor]:
    """For each result, its tangents along all directions, on a first axis."""
    inputs = [x._array for x in linear.ran.call.tensors]
    count = sum(x.size for x in linear.ran.call.tensors)
    step = chunk_size or max(count, 1)
    chunks: list[list[Tensor]] = []
    for start in range(0, count, step):
        stop = min(count, start + step)
        level = new_level()
        basis = identity(inputs, level, start, stop)
        if linear.recorded:
            for row in range(stop - start):
                one = [
                    untracked(constant(e.inner[row, ...], x))
                    for e, x in zip(basis, inputs, strict=True)
                ]
                chunks.append([reshape(t, (1, *t.shape)) for t in linear.push(one)])
            continue
        pushed = linear.batch(basis)
        chunks.append(
            [
                wrapped(members(_zeros(y._array) if t is None else t, level, stop - start))
                for y, t in zip(linear.values, pushed, strict=True)
            ]
        )
    if not chunks:
        return [reshape(zeros_like(y), (1, *y.shape))[:0] for y in linear.values]
    return [
        concat(parts, axis=0) if len(parts) > 1 else parts[0] for parts in zip(*chunks, strict=True)
    ]


def _blocks(
    columns: Sequence[Tensor], results: Sequence[Tensor], inputs: Sequence[Tensor]
) -> list[list[Tensor]]:
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


@TRANSFORM.complete
def hvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, ...]:
    r"""Return the product of a real scalar function's Hessian with a vector.

    Parameters
    ----------
    function : callable
        A function of Tensors that returns a real Tensor of no axes.

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
    Forward over reverse: the gradient's derivative along the vector, at the cost of a small
    multiple of the function's. The Hessian is not formed [1]_. With complex arguments it is the
    derivative of the conjugate gradient that `grad` gives.

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
    call, given = _split(function, primals, tangents, "hvp")
    gradient = split(grad(function, range(len(primals))), tuple(primals), {}, call.argnums)
    ran = Forward(gradient, given, Exit(new_level(), tick(), recording()), "hvp")
    return call.pack(map(_moving, drop(ran.results, ran.out)), given)  # type: ignore[no-any-return]


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
    call, given = _split(function, primals, tangents, "ggnvp")
    trees = tuple(call.rebuilt(call.tensors))
    with at_least(call.precision):  # these are given Tensors
        value, tangent = jvp(function, trees, tuple(call.rebuilt(given)))
        _, pullback = vjp(function, *trees)
        if loss is not None:
            (tangent,) = hvp(loss, (value,), (tangent,))
        leaves = [tree_flatten(part)[0] for part in pullback(tangent)]
    return call.pack([x for part in leaves for x in part], given)  # type: ignore[no-any-return]


# -- tangents ------------------------------------------------------------------------------------


def _split(
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
    return call, _tangents(call, tangents)


def _tangents(call: Call, tangents: Sequence[Any]) -> list[Tensor]:
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
    array = primal._array
    what = f"the tangent of {name}"
    if isinstance(given, int | float | complex) and not hasattr(given, "dtype"):
        if primal.shape or (isinstance(given, complex) and not primal.dtype.complex):
            raise ValueError(
                f"{what} is the number {given}, and the argument has shape {tuple(primal.shape)} "
                f"and dtype {primal.dtype.name}; give an array like it"
            )
        return untracked(namespaces[type(array)].full_like(array, given))
    try:
        tensor = wrapped(given)
    except TypeError:
        raise TypeError(
            f"{what} should be a Tensor, an array or a number, not {type(given).__name__}"
        ) from None
    if tensor.shape != primal.shape:
        raise ValueError(
            f"{what} has shape {tuple(tensor.shape)}, and the argument has shape "
            f"{tuple(primal.shape)}"
        )
    if tensor.dtype is not primal.dtype:
        raise TypeError(
            f"{what} has dtype {tensor.dtype.name}, and the argument has {primal.dtype.name}; "
            f"convert it with wg.astype(t, wg.{primal.dtype.name})"
        )
    home, other = (namespaces[type(bottom(x._array))] for x in (primal, tensor))
    if home is not other:
        raise BackendError(
            f"{what} is on {other.backend.name} and the argument on {home.backend.name}; move it "
            f"with tensor.to_backend({home.backend.name!r})"
        )
    return tensor


def _moving(pair: tuple[Tensor, Tensor | None]) -> Tensor:
    """The tangent of a result, zeros where it is none."""
    value, tangent = pair
    return zeros_like(value) if tangent is None else tangent


def _ones(array: Any) -> Any:
    return namespaces[type(array)].ones_like(array)


def _zeros(array: Any) -> Any:
    return namespaces[type(array)].zeros_like(array)
