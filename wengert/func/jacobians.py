"""Jacobians and Hessians: many rows or columns in one sweep, as a batch."""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, ParamSpec

from wengert import ops
from wengert.backends import DType, as_dtype, backend_of, dtype_of, generators, namespaces
from wengert.func.arguments import Argnums, Call, check_function, named_like, split
from wengert.func.forward import Push
from wengert.func.mapping import Writes, check_chunk_size
from wengert.func.reverse import Reverse
from wengert.func.sparsity import Pattern
from wengert.interpreters.batched import Batched, BatchExit, members
from wengert.interpreters.levels import leave
from wengert.interpreters.lifted import bottom, new_level
from wengert.ops.hints import refuse_keywords
from wengert.tape.grad_mode import recording
from wengert.tape.hooks import has_hooks
from wengert.tape.node import AccumulateGrad, Indexed, Node, Output, Several, tick
from wengert.tape.observers import observed_by
from wengert.tape.sweep import leading_to, sweep
from wengert.tape.tensor import Tensor, untracked, wrap

P = ParamSpec("P")


@refuse_keywords
def jacrev(
    function: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[P, Any]:
    r"""Return a function that computes a function's Jacobian, by its rows.

    The function is called once. Reverse sweeps carry batches of cotangents, with at least one sweep
    for each leaf of the result. This is for few results and many arguments, `jacfwd` for few
    arguments, and `jacobian` chooses. ``argnums`` and ``has_aux`` are as for `grad`.

    Raises `TypeError` if a differentiated argument or a result has no derivative, and `ValueError`
    if ``argnums`` does not fit the arguments, or ``chunk_size`` is not positive.

    Parameters
    ----------
    chunk_size : int, optional
        How many rows a sweep carries at most; memory grows with it. By default it is all on a GPU,
        and elsewhere as many as keep what is computed in the processor's cache.

    Returns
    -------
    callable
        A function of the same arguments. It returns a tree like the result, in which each leaf is
        replaced by a tree like the argument (by a tuple of these, if ``argnums`` is a sequence),
        whose leaves are :math:`\partial y_i / \partial x_j`, of shape ``(*y.shape, *x.shape)``
        and of the kind and dtype of the argument's leaf; if it is real and the result complex, of
        the complex dtype of its precision. With ``has_aux``, it returns ``(jacobian, aux)``.

    Notes
    -----
    Of complex results it is the derivative :math:`\partial y / \partial x` itself, as `jacfwd` and
    JAX have it: with respect to real arguments, and to complex ones if the function is holomorphic,
    which is not checked. (PyTorch's ``jacrev`` gives the conjugate of the latter.) Of real results
    with respect to complex arguments there is no such derivative: each row is then the gradient as
    `grad` gives it.

    An operation of the user's own (`wengert.autograd.Function`), hooks, checkpoints and forward
    transforms inside see one cotangent at a time: then rows come one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> wg.func.jacrev(lambda x: x[:2] * x[2])(np.array([1.0, 2.0, 3.0]))
    array([[3., 0., 1.],
           [0., 3., 2.]])
    """
    return _transform(function, argnums, has_aux, chunk_size, "jacrev")


@refuse_keywords
def jacfwd(
    function: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[P, Any]:
    r"""Return a function that computes a Jacobian by forward mode, one column for each input.

    ``argnums`` and ``has_aux`` are as for `grad`, and it returns what `jacrev` does, in the dtypes
    of results. Raises `TypeError`, `ValueError`, `NotImplementedError` as `jvp`, and if ``argnums``
    does not fit the arguments or ``chunk_size`` is no positive integer.

    Parameters
    ----------
    chunk_size : int, optional
        How many columns are computed at once, which bounds the memory; all by default.

    Notes
    -----
    The function is called once for each chunk, with a batch of tangents. It is called for each
    column if it uses, or is given, Tensors that require grad. All calls draw the same random
    numbers from Wengert's generators; if there are several, changes in place of Tensors outside
    raise `RuntimeError`. Columns of complex arguments are derivatives along the real
    axis: :math:`f'(z)`, if the function is holomorphic.

    Examples
    --------
    >>> import numpy as np
    >>> wg.func.jacfwd(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    check_function(function, "jacfwd")
    check_chunk_size(chunk_size)

    @named_like(function)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        call = split(function, args, kwargs, argnums)
        return _by_columns(call, "jacfwd", has_aux, chunk_size)

    return jacobian


@refuse_keywords
def jacobian(
    function: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    sparsity: Any = None,
) -> Callable[P, Any]:
    """Return a function that computes a function's Jacobian, by rows or by columns.

    ``argnums`` and ``has_aux`` are those of `grad`; ``chunk_size``, errors and the result are those
    of `jacrev`.

    Parameters
    ----------
    sparsity : array or SciPy sparse matrix, optional
        Where the Jacobian may differ from zero: a row for each element of the result, a column for
        each of the argument, both real arrays; without ``chunk_size``. Columns that share no row
        are computed together, or rows that share no column, whichever are fewer. The result is
        dense. Each call is checked by products with vectors: `ValueError` if entries elsewhere
        exceed the precision to the power 3/4 in their row or column, or any are inf or nan. For
        derivatives of the result, unchecked, the pattern has to hold around the point. Programs
        compiled by JAX can't raise, and give nan.

    Notes
    -----
    The function is called once and recorded, and a sweep gives the rows. If the results have more
    elements than the differentiated arguments, and are more than a hundred or in more than two
    leaves, the function is called again, with tangents, as `jacfwd` does. So it is with
    ``sparsity`` and without ``has_aux``, if there are fewer groups of columns than of rows. The
    Jacobian is then that of the second call, if the function draws random numbers. Rows are
    computed all the same in four cases: an argument is complex and a result real; cotangents pass
    hooks; the derivative is on the tape outside; the second call fails, as for an operation without
    a forward derivative, or for a change in place of Tensors outside.

    Examples
    --------
    >>> import numpy as np
    >>> wg.func.jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    pattern = None if sparsity is None else Pattern(sparsity)
    return _transform(function, argnums, has_aux, chunk_size, "jacobian", pattern)


@refuse_keywords
def hessian(
    function: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[P, Any]:
    r"""Return a function that computes a function's second derivatives, many in one sweep.

    The gradient is differentiated as by `jacobian`, which may call the function twice: for a scalar
    by a sweep of the sweep, with a cotangent for each element of the arguments. ``argnums`` and
    ``has_aux`` are as for `grad`, and ``chunk_size`` as for `jacrev`. Raises `TypeError` or
    `ValueError` as by `jacrev`. It returns what ``jacobian(jacrev(function))`` does: leaves
    :math:`\partial^2 y_i / \partial x_j \partial x_k` of shape ``(*y.shape, *x.shape, *x.shape)``.

    Examples
    --------
    >>> import numpy as np
    >>> wg.func.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    check_function(function, "hessian")
    # Of a scalar the gradient has as many elements as the arguments, and so the sweep of the
    # recorded sweep is taken: it was measured to be the faster of the two.
    gradient = jacrev(function, argnums, has_aux)
    return _transform(gradient, argnums, has_aux, chunk_size, "hessian")


def _transform(
    function: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool,
    chunk_size: int | None,
    transform: str,
    pattern: Pattern | None = None,
) -> Callable[..., Any]:
    """A Jacobian by rows; but for `jacrev`, by columns where these are fewer."""
    check_function(function, transform)
    check_chunk_size(chunk_size)
    if pattern is not None and chunk_size is not None:
        raise ValueError("chunk_size is for all rows or columns; with sparsity= there are few")

    @named_like(function)
    def computed(*args: Any, **kwargs: Any) -> Any:
        call = split(function, args, kwargs, argnums)
        swept = Reverse(call, transform, has_aux)
        if pattern is not None:
            found = _by_colours(swept, pattern, has_aux)
        elif transform != "jacrev" and _is_tall(swept):
            # An operation may lack a forward rule, or the function may do what Tensors that are
            # recorded alone allow, such as to register hooks. The rows are there all the same.
            with suppress(RuntimeError):
                return _by_columns(call, transform, has_aux, chunk_size)
        if pattern is None:
            found = _by_rows(swept, chunk_size)
        return (found, swept.aux) if has_aux else found

    return computed


#: How many rows, of how many results, a sweep gives in less time than a second call takes.
_ROWS: Final = 100
_RESULTS: Final = 2


def _is_tall(swept: Reverse) -> bool:
    """Whether there are fewer columns than rows, and columns give the same."""
    inputs, results = swept.call.tensors, swept.results
    rows = sum(y.size for y in results)
    if rows <= sum(x.size for x in inputs) or (rows <= _ROWS and len(results) <= _RESULTS):
        return False
    if any(x.dtype.complex for x in inputs) and not all(y.dtype.complex for y in results):
        return False
    roots = [y._node for y in results if y._node is not None]
    return not (_is_recorded(swept) or _Subgraph(swept, roots).hooked)


def _is_recorded(swept: Reverse) -> bool:
    """Whether the derivatives are on the tape outside, where rows alone come as a batch."""
    return swept.connect and bool(recording()) and swept.reaches_out


# -- columns ---------------------------------------------------------------------------------------


def _by_columns(call: Call, transform: str, has_aux: bool, chunk_size: int | None) -> Any:
    """The Jacobian of a call: in the results' dtypes of `jacfwd`, or else as rows have it."""
    (pushed, columns), xs = _columns(call, transform, has_aux, chunk_size), call.tensors
    blocks = _blocks(columns, xs)
    if transform != "jacfwd":
        blocks = [
            [ops.astype(b, _dtype(y, x), copy=False) for b, x in zip(row, xs, strict=True)]
            for row, y in zip(blocks, pushed.values, strict=True)
        ]
    found = pushed.structure.unflatten([call.pack(row) for row in blocks])
    return (found, pushed.aux) if has_aux else found


def identity(
    arrays: Sequence[Any], level: int, start: int, stop: int, directions: Tensor | None = None
) -> list[Batched]:
    """Rows ``start`` to ``stop`` of the identity matrix of some arrays' elements, as batches.

    As cotangents of results they select rows of a Jacobian, also in `hessian`; as tangents of
    arguments they are the unit directions, in `jacfwd`. Only the arrays' shapes, dtypes and devices
    matter. Or rows of the only array's ``directions``.
    """
    if directions is not None:
        return [Batched(directions[start:stop]._array, level)]
    found, before = [], 0
    for x in arrays:
        like, size = bottom(x), math.prod(x.shape)
        xp = namespaces[type(like)]
        where = {"dtype": like.dtype, "device": xp.device(like)}
        count, diagonal = stop - start, start - before
        if -count < diagonal < size:
            rows = xp.eye(count, size, k=diagonal, **where)
        else:
            rows = xp.zeros((count, size), **where)
        found.append(Batched(xp.reshape(rows, (count, *x.shape)), level))
        before += size
    return found


def _columns(
    call: Call,
    transform: str,
    has_aux: bool,
    chunk_size: int | None,
    alone: bool = False,
    directions: Tensor | None = None,
) -> tuple[Push, list[Tensor]]:
    """The last call, and for each result its tangents along all directions, on a first axis.

    A call pushes a batch of tangents, or, if ``alone``, a single one, which the tape outside can
    follow. Each call repeats the random draws of the first.
    """
    arrays = [x._array for x in call.tensors]
    count = sum(x.size for x in call.tensors) if directions is None else directions.shape[0]
    alone = alone or (bool(recording()) and any(x._node is not None for x in call.tensors))
    step = 1 if alone else chunk_size or max(count, 1)
    draws = generators.get_rng_state() if step < count else {}
    chunks: list[list[Tensor]] = []
    for start in range(0, max(count, 1), step):
        if start:
            generators.set_rng_state(draws)
        stop, level = min(start + step, count), new_level()
        basis = identity(arrays, level, start, stop, directions)
        tangents = [untracked(e.inner[0, ...] if alone else e) if count else None for e in basis]
        writes = Writes(f"{transform} calls the function more than once, and it changes")
        with observed_by(writes):
            pushed = Push(call, tangents, transform, has_aux)
        retry = pushed.is_recorded and not alone
        if retry or step < count or transform != "jacfwd":
            writes.check()
        if retry:
            return _columns(call, transform, has_aux, chunk_size, True, directions)
        rows = []
        for y, t in zip(pushed.values, pushed.tangents, strict=True):
            if t is None:
                row = _zeros_beside([*call.tensors, y][0], (stop - start, *y.shape), y.dtype)
            elif alone:
                row = ops.reshape(t, (1, *t.shape))
            else:
                row = wrap(members(t._array, level, stop - start))
            rows.append(row)
        chunks.append(rows)
    parts = zip(*chunks, strict=True)
    return pushed, [each[0] if len(each) == 1 else ops.concat(each) for each in parts]


def _zeros_beside(x: Tensor, shape: Sequence[int], dtype: DType) -> Tensor:
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
            block = ops.moveaxis(column[start : start + x.size], 0, -1)
            row.append(ops.reshape(block, (*column.shape[1:], *x.shape)))
            start += x.size
        rows.append(row)
    return rows


# -- rows ----------------------------------------------------------------------------------------


def _by_rows(swept: Reverse, chunk_size: int | None) -> Any:
    """The Jacobian of what was called: a tree of results of trees of arguments."""
    rows = [_rows(swept, at, chunk_size) for at in range(len(swept.results))]
    return swept.structure.unflatten(map(swept.call.pack, rows))


def _rows(swept: Reverse, at: int, chunk_size: int | None) -> list[Tensor]:
    """One result's derivatives by each differentiated leaf, of shape ``(*y.shape, *x.shape)``."""
    inputs, y, source = swept.call.tensors, swept.results[at], _Source.of(swept, at)
    count = y.size
    if source is None:
        return [_zeros_beside(x, (*y.shape, *x.shape), _dtype(y, x)) for x in inputs]
    step = source.step(chunk_size)
    chunks = [source.rows(start, min(start + step, count)) for start in range(0, count, step)]
    found = []
    for x, parts in zip(inputs, zip(*chunks, strict=True), strict=True):
        whole = parts[0] if len(parts) == 1 else ops.concat(parts, axis=0)
        found.append(swept.release(ops.reshape(whole, (*y.shape, *x.shape))))
    return found


#: Nodes whose rules run on batches: those of primitives. All others see one cotangent at a time:
#: users' operations, nodes with hooks, and transforms that were run inside.
_REGULAR = (Node, Indexed, AccumulateGrad, Several, Output)


#: Bytes of the largest result on the way that a batch may have on a CPU: beyond it, sweeps of
#: Hessians were measured to wait for memory. But fewer rows than these are not worth a sweep.
_CACHE: Final = 2**19
_FEWEST: Final = 32
_DLPACK_CPU: Final = 1


def _on_host(array: Any) -> bool:
    where = getattr(array, "__dlpack_device__", None)
    try:
        return where is None or where()[0] == _DLPACK_CPU
    except (BufferError, ValueError):  # spread over several devices, or without values
        return False


class _Subgraph:
    """What of the tape leads from some results to the arguments.

    Attributes
    ----------
    wanted : dict of int to Node
        The nodes, and those of the arguments, by their numbers.
    largest : int
        Bytes of the largest array that they computed.
    regular : bool
        Whether all of them take batches.
    hooked : bool
        Whether there are hooks on any of them, or on the arguments.
    """

    def __init__(self, swept: Reverse, roots: "Sequence[Node]") -> None:
        self.wanted = leading_to(swept.numbers, roots)
        self.largest, self.regular = 1, True
        self.hooked = any(map(has_hooks, swept.inputs))
        for number, node in self.wanted.items():
            if number in swept.numbers:  # an argument, whose own rule does not run
                continue
            if type(node) not in _REGULAR:
                self.regular = False
                self.hooked = self.hooked or has_hooks(node)
            elif not node.several:
                size = math.prod(node.shape) * dtype_of(node.dtype).itemsize
                self.largest = max(self.largest, size)


def _by_colours(swept: Reverse, pattern: Pattern, has_aux: bool) -> Any:
    """The Jacobian of one result by one argument, from a product for each colour."""
    pattern.check(swept.call.tensors, swept.results)
    (x,), (y,), found, source = swept.call.tensors, swept.results, None, _Source.of(swept, 0)
    if source is None:
        return swept.structure.unflatten([swept.call.pack(_rows(swept, 0, None))])
    if not (has_aux or pattern.by_rows or source.way.hooked):
        directions = pattern.directions(x, False)
        with suppress(RuntimeError):
            _, (products,) = _columns(swept.call, "jacobian", False, None, False, directions)
            found = pattern.matrix(directions, products, False)
    if found is None:
        source.directions = directions = pattern.directions(y, True)
        (products,) = source.rows(0, directions.shape[0])
        found = swept.release(pattern.matrix(directions, products, True))
    block = ops.astype(found, x.dtype, copy=False)
    if y.ndim != 1 or x.ndim != 1:  # a view would be copied
        block = ops.reshape(block, (*y.shape, *x.shape))
    return swept.structure.unflatten([swept.call.pack([block])])


class _Source:
    """Where rows come from: a result, and what of the tape leads from it to the arguments.

    ``at`` is the result's place: one Tensor may be several. Products are with ``directions``.
    """

    directions: Tensor | None = None

    def __init__(self, swept: Reverse, at: int, way: _Subgraph) -> None:
        self.swept, self.at, self.y, self.way = swept, at, swept.results[at], way
        self.recorded = _is_recorded(swept)
        self.batches = way.regular and self.y.size > 1

    @classmethod
    def of(cls, swept: Reverse, at: int) -> "_Source | None":
        """The source of a result; None if it has no elements or depends on no argument."""
        y = swept.results[at]
        if not y.size or y._node is None:
            return None
        way = _Subgraph(swept, [y._node])
        return cls(swept, at, way) if y._node.number in way.wanted else None

    def step(self, chunk_size: int | None) -> int:
        """How many rows to compute at once."""
        count = self.y.size
        if chunk_size:
            return min(chunk_size, count)
        if not self.batches or not _on_host(bottom(self.y._array)):
            return count
        return min(count, max(_FEWEST, _CACHE // self.way.largest))

    def rows(self, start: int, stop: int) -> list[Tensor]:
        """Some rows of the derivatives by each leaf, the first axis counting them."""
        pull = self._together if self.batches else self._one_by_one
        found = pull(start, stop, 1)
        if not self.y.dtype.complex:
            return found
        # A cotangent's product with the Jacobian has its conjugate. Of real arguments it keeps
        # the real part alone, and so the imaginary part is that of another cotangent.
        complex_inputs = [x.dtype.complex for x in self.swept.call.tensors]
        others = found if all(complex_inputs) else pull(start, stop, 1j)
        return [
            ops.conj(real)
            if is_complex
            else ops.add(real, ops.multiply(ops.astype(imag, _complex(imag)), 1j))
            for real, imag, is_complex in zip(found, others, complex_inputs, strict=True)
        ]

    def _together(self, start: int, stop: int, factor: complex) -> list[Tensor]:
        """Rows ``start`` to ``stop`` of one result, by one sweep."""
        swept, count = self.swept, stop - start
        out = BatchExit(new_level(), tick(), count)
        (g,) = identity([self.y._array], out.level, start, stop, self.directions)
        if factor != 1:
            g.inner = namespaces[type(g.inner)].multiply(g.inner, factor)
        seeds: list[tuple[Any, Any]] = [(self.y._node, untracked(g) if self.recorded else g)]
        arrived = sweep(seeds, keep=True, targets=swept.numbers, wanted=self.way.wanted)
        found = []
        for node, x in zip(swept.inputs, swept.call.tensors, strict=True):
            if node in arrived:
                g = arrived[node]
                ((rows,),) = leave([g if isinstance(g, Tensor) else untracked(g)], out)
                found.append(rows)
            else:
                found.append(_zeros_beside(x, (count, *x.shape), x.dtype))
        return found

    def _one_by_one(self, start: int, stop: int, factor: complex) -> list[Tensor]:
        """Rows by a sweep for each."""
        (g,) = identity([self.y._array], 0, start, stop, self.directions)
        xp = namespaces[type(g.inner)]
        seeds = xp.multiply(g.inner, factor) if factor != 1 else g.inner
        swept = self.swept
        found = [
            swept.pull(
                [
                    untracked(xp.getitem(seeds, key=(i, ...))) if at == self.at else None
                    for at in range(len(swept.results))
                ],
                keep=True,
            )
            for i in range(stop - start)
        ]
        return [ops.stack(column, axis=0) for column in zip(*found, strict=True)]


def _dtype(y: Tensor, x: Tensor) -> DType:
    """The dtype of the derivative of a result by an argument."""
    return _complex(x) if y.dtype.complex and not x.dtype.complex else x.dtype


def _complex(x: Tensor) -> DType:
    """The complex dtype of a real Tensor's precision."""
    return as_dtype("complex128" if x.dtype.itemsize == 8 else "complex64")
