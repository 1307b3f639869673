"""Derivatives at one point as linear functions: `linearize`, and Jacobians by forward mode."""

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

from wengert.backends import DType, namespaces
from wengert.func.arguments import TRANSFORM, Argnums, Call, check_function, named_like, split
from wengert.func.tangents import Forward, moving, tangents_of
from wengert.interpreters.batched import identity, members
from wengert.interpreters.dual import Exit, tangent_of, unpack_dual
from wengert.interpreters.lifted import constant, new_level
from wengert.interpreters.linear import Linear, Program
from wengert.ops.creation import zeros_like
from wengert.ops.data_type import astype
from wengert.ops.manipulation import concat, moveaxis, reshape
from wengert.tape.grad_mode import recording
from wengert.tape.node import tick
from wengert.tape.tensor import Tensor, untracked, wrapped

P = ParamSpec("P")


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
        return linear.ran.answer(linear.push(tangents_of(call, tangents)))

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
            duals = [x._node for x in self.ran.inputs]
            out = self.ran.out._replace(
                read=self._reader(arrays),
                directions={
                    at.number: node for at, node in zip(duals, nodes, strict=True) if at is not None
                },
            )
            return list(map(moving, unpack_dual(self.ran.results, out)))
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
    A derivative has the dtype of the result: `jacrev` gives it that of the argument.

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
    linear = _Linearized(call, transform, has_aux)
    blocks = _blocks(_columns(linear, chunk_size), linear.values, call.tensors)
    if dtype is not None:
        blocks = [
            [
                astype(block, dtype(y, x), copy=False)
                for block, x in zip(row, call.tensors, strict=True)
            ]
            for row, y in zip(blocks, linear.values, strict=True)
        ]
    found = linear.ran.structure.unflatten([call.pack(row) for row in blocks])
    return (found, linear.ran.aux) if has_aux else found


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
    return [concat(parts) if len(parts) > 1 else parts[0] for parts in zip(*chunks, strict=True)]


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


def _ones(array: Any) -> Any:
    return namespaces[type(array)].ones_like(array)


def _zeros(array: Any) -> Any:
    return namespaces[type(array)].zeros_like(array)
