"""NumPy's own functions and operators on Tensors, through its two protocols."""

import operator
import re
import subprocess
import sys

import numpy as np
import pytest

import wengert as wg
from tests.interplay.compare import beside, compare
from tests.numpy.rows import OF_NUMPY, arguments
from wengert.protocols import _table

RNG = np.random.default_rng(3)
V = RNG.uniform(0.2, 0.9, 5)
W = RNG.uniform(0.2, 0.9, 5)
M = RNG.uniform(0.2, 0.9, (3, 4))
N = RNG.uniform(0.2, 0.9, (4, 2))
S = RNG.normal(size=(3, 3)) + 3 * np.eye(3)
T = RNG.normal(size=(2, 3, 3))
R = RNG.normal(size=(4, 3))[:3]
Z = RNG.normal(size=4) + 1j * RNG.normal(size=4)
GRID = np.array([0.0, 0.3, 0.7, 1.0, 1.6])
ODD = np.array([True, False, True, True, False])

UNARY = (
    "absolute arccos arcsin arcsinh arctan arctanh cbrt conjugate cos cosh deg2rad degrees "
    "exp exp2 expm1 fabs log log10 log1p log2 negative positive rad2deg radians reciprocal "
    "sin sinh sqrt square tan tanh ceil floor rint sign trunc "
)
BINARY = (
    "add arctan2 copysign divide fmax fmin fmod hypot logaddexp "
    "maximum minimum multiply power remainder subtract vecdot "
)
UNTRACKED_UNARY = "isfinite isinf isnan logical_not signbit "
UNTRACKED_BINARY = (
    "equal greater greater_equal less less_equal logical_and logical_or logical_xor not_equal "
)
INTEGER = "bitwise_and bitwise_or bitwise_xor left_shift right_shift "

#: Calls that NumPy makes on arrays, and Wengert on Tensors.
CALLS = {
    "arccosh": (lambda x: np.arccosh(x + 1), V),
    "clip by name": (lambda x: np.clip(x, min=0.5), V),
    "divmod": (lambda x, y: np.divmod(x, y), V, W / 3),
    "floor_divide": (lambda x, y: np.floor_divide(x, y), V, W / 3),
    "matvec": (lambda x, y: np.matvec(x, y), M, M[0]),
    "complex product": (lambda x: np.multiply(x, np.conj(x) + 2j), Z),
    "angle in degrees": (lambda x: np.angle(x, deg=True), Z),
    "imag": (lambda x: np.imag(x), Z),
    "where=, out=": (lambda x: np.log(x - 0.5, where=beside(x, V > 0.5), out=x * 2), V),
    "list operand": (lambda x: np.add(x, [1.0, 2.0, 3.0, 4.0, 5.0]), V),
    "add.reduce all": (lambda x: np.add.reduce(x, axis=None, keepdims=True), M),
    "multiply.reduce": (lambda x: np.multiply.reduce(x, axis=-1, initial=2), M),
    "minimum.reduce": (lambda x: np.minimum.reduce(x, axis=1), M),
    "logaddexp.reduce": (lambda x: np.logaddexp.reduce(x), M),
    "sum of an axis": (lambda x: np.sum(x, 1, keepdims=True), M),
    "sum where": (lambda x: np.sum(x, where=beside(x, M > 0.5)), M),
    "sum initial": (lambda x: np.sum(x, axis=(0, 1), initial=5), M),
    "mean where": (lambda x: np.mean(x, where=beside(x, M > 0.5)), M),
    "var where": (lambda x: np.var(x, where=beside(x, M > 0.3)), M),
    "amin": (lambda x: np.amin(x), M),
    "average weighted": (lambda x, w: np.average(x, weights=w, returned=True), V, W),
    "average and count": (lambda x: np.average(x, axis=1, returned=True), M),
    "average along": (lambda x, w: np.average(x, axis=1, weights=w), M, M[0] + 1),
    "cumsum along": (lambda x: np.cumsum(x, axis=1), M),
    "cumulative_sum": (lambda x: np.cumulative_sum(x, include_initial=True), V),
    "cumulative_prod": (lambda x: np.cumulative_prod(x), V),
    "nanprod": (lambda x: np.nanprod(_holed(x)), V),
    "nanvar": (lambda x: np.nanvar(_holed(x), ddof=1), V),
    "nanmin": (lambda x: np.nanmin(_holed(x)), V),
    "trapezoid at": (lambda y, x: np.trapezoid(y, np.cumsum(x)), V, W),
    "trapezoid of points along": (lambda y: np.trapezoid(y, np.cumsum(y**2, axis=0), axis=0), M),
    "trapezoid along": (lambda y, x: np.trapezoid(y, np.cumsum(x), axis=0), M, W[:3]),
    "linalg.lstsq": (lambda x, y: np.linalg.lstsq(x, y)[:2], M.T, M[0]),
    "append along": (lambda x, y: np.append(x, y, axis=0), M, M * 2),
    "append a list": (lambda x, y: np.append(x, [y[0], 1.0, x[1] * y[1]]), V, W),
    "block of numbers": (lambda x: np.block([x, x[0], 1.0]), V),
    "block of an array": (lambda x: np.block(x), V),
    "block of scalars": (lambda x: np.block([x, np.float64(2.0)]), V),
    "block in three axes": (lambda x, y: np.block([[[x], [y]], [[y], [x]]]), M, M * 2),
    "clip by lists": (lambda x, y: np.clip(x, [0.3, y[0], 0.1, 0.2, 0.4], 0.6), V, W),
    "concatenate a list": (lambda x, y: np.concatenate([x, [y[0], 1.0]]), V, W),
    "delete along": (lambda x: np.delete(x, [0, -1], axis=1), M),
    "delete a slice": (lambda x: np.delete(x, slice(0, 4, 2)), M),
    "delete by a mask": (lambda x: np.delete(x, np.array([True, False, True]), axis=0), M),
    "delete nothing": (lambda x: np.delete(x, [], axis=0), M),
    "insert several": (lambda x, y: np.insert(x, [0, 3], [y[0], 1.0]), V, W),
    "insert one twice": (lambda x, y: np.insert(x, [0, 3], y[0]), V, W),
    "insert at a slice": (lambda x, y: np.insert(x, slice(0, 4, 2), y[:2]), V, W),
    "insert a row": (lambda x, y: np.insert(x, 1, y[:4], axis=0), M, V),
    "insert a column": (lambda x, y: np.insert(x, -1, y[:3], axis=1), M, V),
    "insert columns": (lambda x: np.insert(x, [1, 3], x[:, :2], axis=1), M),
    "insert into the flat": (lambda x, y: np.insert(x, 2, y), M, V),
    "insert into an array": (lambda x: np.insert(beside(x, np.ones(2)), 1, x[0]), V),
    "stack lists": (lambda x, y: np.stack([x[:2], [y[0], x[1] * y[1]]]), V, W),
    "vstack lists": (lambda x, y: np.vstack([x[:3], [y[0], 2, x[1]]]), V, W),
    "hstack numbers": (lambda x, y: np.hstack([x[0], 2.0, [y[1]]]), V, W),
    "dstack lists": (lambda x, y: np.dstack([x[:2], [y[0], y[1]]]), V, W),
    "column_stack lists": (lambda x, y: np.column_stack([x[:2], [y[0], y[1]]]), V, W),
    "full_like lists": (lambda x, y: np.full_like(x[:2], [y[0], x[1]]), V, W),
    "where lists": (lambda x, y: np.where([True, False], x[:2], [y[0], y[1]]), V, W),
    "select lists": (lambda x, y: np.select([x[:2] > 9], [[y[0], 1.0]], x[1]), V, W),
    "list operand of Tensors": (lambda x, y: np.multiply(x[:2], [y[0], x[1]]), V, W),
    "nested list operand": (lambda x, y: np.add(x[:2], [[y[0], 1], [x[1], 2]]), V, W),
    "einsum of lists": (lambda x, y: np.einsum("i,i", x[:2], [y[0], 3.0]), V, W),
    "einsum of sublists": (lambda x, y: np.einsum(x[:2], [0], [y[0], 3.0], [1], [1, 0]), V, W),
    "vsplit": (lambda x: np.vsplit(x, [1]), M),
    "dsplit": (lambda x: np.dsplit(x, 3), T),
    "atleast_3d": (lambda x, y: np.atleast_3d(x, y), V, M),
    "broadcast_arrays": (lambda x, y: np.broadcast_arrays(x, y), M, M[0]),
    "concatenate flat": (lambda x, y: np.concatenate((x, y), axis=None), M, V),
    "diag above": (lambda x: np.diag(x, 2), V),
    "diag below": (lambda x: np.diag(x, -1), V),
    "diag of a matrix": (lambda x: np.diag(x, 1), M),
    "diagonal": (lambda x: np.diagonal(x, offset=-1, axis1=2, axis2=0), T),
    "hstack of vectors": (lambda x, y: np.hstack([x, y]), V, W),
    "matrix_transpose": (lambda x: np.matrix_transpose(x), T),
    "ones_like": (lambda x: np.ones_like(x) * x, M),
    "transpose to": (lambda x: np.transpose(x, (1, 2, 0)), T),
    "unstack": (lambda x: np.unstack(x, axis=1), M),
    "convolve same": (lambda x, y: np.convolve(x, y, "same"), V, W[:4]),
    "convolve valid": (lambda x, y: np.convolve(x, y, mode="valid"), W[:2], V),
    "correlate full": (lambda x, y: np.correlate(x, y, "full"), Z, Z[:3] * 1j),
    "correlate same": (lambda x, y: np.correlate(x, y, "same"), W[:2], V),
    "dot of vectors": (lambda x, y: np.dot(x, y), V, W),
    "kron of a vector and a matrix": (lambda x, y: np.kron(x, y), V, M),
    "sort flat": (lambda x: np.sort(x, axis=None), M),
    "take flat": (lambda x: np.take(x, 7), M),
    "unique": (lambda x: np.unique(x), np.array([3.0, 1.0, 2.0])),
    "where a number": (lambda x: np.where(beside(x, ODD), 0.25, x), V),
    "fix": (lambda x: np.fix(3 * x), V),
    "around": (lambda x: x - np.around(x, 1), V),
    "round to tens": (lambda x: x - np.round(100 * x, -1), V),
    "cov of two": (lambda x, y: np.cov(x, y, ddof=0), V, W),
    "cov of columns": (lambda x: np.cov(x, rowvar=False, bias=True), M),
    "diff from a number": (lambda x: np.diff(x, prepend=0, append=[[1.0]] * 3), M),
    "gradient along": (lambda x: np.gradient(x, 0.5, axis=1), M),
    "add.at": (lambda x, y: _at(np.add, x, y), V, W[:3]),
    "subtract.at": (lambda x, y: _at(np.subtract, x, y), V, W[:3]),
    "multiply.at": (lambda x, y: _at(np.multiply, x, y), V, W[:3]),
    "divide.at": (lambda x, y: _at(np.divide, x, y), V, W[:3]),
    "maximum.at": (lambda x, y: _at(np.maximum, x, y), V, W[:3]),
    "minimum.at": (lambda x, y: _at(np.minimum, x, y), V, W[:3]),
    "cross along": (lambda x, y: np.cross(x, y, axisa=0, axisc=0), R, R[::-1]),
    "einsum by lists": (lambda x: np.einsum(x, [0, 1, 1], [0]), T),
    "pad by reflection": (lambda x: np.pad(x, 2, "reflect"), M),
    "fft": (lambda x: np.fft.fft(x), V),
    "fft longer": (lambda x: np.fft.fft(x, 7, norm="ortho"), Z),
    "irfft2": (lambda x: np.fft.irfft2(np.fft.rfft2(x), s=(3, 5)), M),
    "fftshift": (lambda x: np.fft.fftshift(x), V),
    "astype": (lambda x: np.astype(x, np.complex128), V),
    "linalg.norm of matrices": (
        lambda x: [
            np.linalg.norm(x, "fro", axis=(1, 2)),
            np.linalg.norm(x, 2, axis=(0, 2), keepdims=True),
            np.linalg.norm(x, axis=(0, 1)),
            np.linalg.norm(x, np.inf, axis=2),
        ],
        T,
    ),
    "linalg.qr": (lambda x: np.abs(np.linalg.qr(x, mode="r")), S),
    "linalg.eigh": (lambda x: np.abs(np.linalg.eigh(x + x.T)[1]), S),
    "linalg.eigvals": (lambda x: np.sum(np.linalg.eigvals(x) ** 2), S),
    "linalg.eig": (lambda x: np.sum(np.linalg.eig(x)[0] ** 3), S),
    "linalg.svdvals": (lambda x: np.linalg.svdvals(x), M),
    "linalg.matmul": (lambda x, y: np.linalg.matmul(x, y), M, N),
    "linalg.matrix_transpose": (lambda x: np.linalg.matrix_transpose(x), M),
    "linalg.tensordot": (lambda x, y: np.linalg.tensordot(x, y, axes=1), M, N),
    "linalg.vecdot": (lambda x, y: np.linalg.vecdot(x, y, axis=0), M, M * 2),
    "linalg.cond": (lambda x: [np.linalg.cond(x), np.linalg.cond(x, 1)], S),
    "linalg.cross": (lambda x, y: np.linalg.cross(x, y), V[:3], W[:3]),
    "linalg.trace": (lambda x: np.linalg.trace(x, offset=1), T),
    "linalg.diagonal": (lambda x: np.linalg.diagonal(x), T),
    "linalg.outer": (lambda x, y: np.linalg.outer(x, y), V, W),
    "linalg.vector_norm": (lambda x: np.linalg.vector_norm(x, axis=1, ord=3), M),
    "linalg.matrix_norm": (lambda x: np.linalg.matrix_norm(x, ord=1), T),
}

#: Calls whose answers have no derivative.
ANSWERS = {
    "max of nothing": lambda x: np.max(x[:, :0], axis=1, initial=0.5),
    "min of nothing": lambda x: np.min(x[:, :0], axis=1, initial=0.5, keepdims=True),
    "all": lambda x: np.all(x > 0, axis=0),
    "any": lambda x: np.any(x > 0.5, 1),
    "allclose": lambda x: np.allclose(x, x + 1e-12),
    "argmax": lambda x: np.argmax(x, axis=1),
    "argmin": lambda x: np.argmin(x, 0),
    "argsort": lambda x: np.argsort(x, axis=1),
    "argwhere": lambda x: np.argwhere(x > 0.5),
    "array_equal": lambda x: np.array_equal(x, x * 1),
    "array_equal of shapes": lambda x: np.array_equal(x, x[0]),
    "count_nonzero": lambda x: np.count_nonzero(x > 0.5, axis=1),
    "flatnonzero": lambda x: np.flatnonzero(x > 0.5),
    "isclose": lambda x: np.isclose(x, 0.5, atol=0.1),
    "iscomplex": lambda x: np.iscomplex(x),
    "iscomplexobj": lambda x: np.iscomplexobj(x),
    "isin": lambda x: np.isin(np.floor(4 * x), [1.0, 2.0]),
    "isneginf": lambda x: np.isneginf(x),
    "isposinf": lambda x: np.isposinf(x),
    "isreal": lambda x: np.isreal(x),
    "isrealobj": lambda x: np.isrealobj(x),
    "logical_and.reduce": lambda x: np.logical_and.reduce(x > 0.5),
    "logical_or.reduce": lambda x: np.logical_or.reduce(x > 0.5, axis=1),
    "ndim": lambda x: np.ndim(x),
    "nonzero": lambda x: np.nonzero(x > 0.5),
    "searchsorted": lambda x: np.searchsorted(np.sort(x[0]), x[1], side="right"),
    "shape": lambda x: np.shape(x),
    "size": lambda x: np.size(x, 1),
    "unique": lambda x: np.unique(
        np.floor(4 * x), return_index=True, return_inverse=True, return_counts=True
    )[1:],
    "unique_all": lambda x: tuple(np.unique_all(np.floor(4 * x)))[1:],
    "unique_counts": lambda x: np.unique_counts(np.floor(4 * x)).counts,
    "unique_inverse": lambda x: np.unique_inverse(np.floor(4 * x)).inverse_indices,
    "unique_values": lambda x: np.unique_values(np.floor(4 * x)).size,
    "zeros_like": lambda x: np.zeros_like(x, shape=(2, 2)),
    "empty_like": lambda x: np.empty_like(x, dtype=np.float32).shape,
    "linalg.matrix_rank": lambda x: np.linalg.matrix_rank(x),
}


def _at(ufunc, x, values):
    """``ufunc.at`` with an index that comes twice, on a copy."""
    changed = x * 1
    ufunc.at(changed, beside(x, [1, 3, 1]), values)
    return changed


def _holed(x):
    """``x`` with NaNs in it, the library being that of ``x``."""
    return np.where(beside(x, [False, True, False, False, True]), np.nan, x)


#: What a library does not have, in the words of the libraries' documents.
MISSING = {
    "array_api_strict": ("isin", "logical_not"),  # of floating arrays
    "dask": (  # most of linear algebra, and shapes that depend on data
        *[name for name in (*CALLS, *ANSWERS) if name.startswith("linalg.")],
        *("argwhere", "unique", "unique_all", "unique_inverse", "unique_values"),
    ),
}


@pytest.fixture
def known(backend, request):
    """Leave out what the backend's library lacks."""
    if request.node.callspec.params["name"] in MISSING.get(backend.name, ()):
        pytest.skip(f"{backend.name} does not have it")


@pytest.mark.whole
@pytest.mark.parametrize("name", UNARY.split())
def test_unary(name, backend):
    compare(getattr(np, name), V)


@pytest.mark.parametrize("name", BINARY.split())
def test_binary(name, backend):
    compare(getattr(np, name), V, W)


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")  # from NumPy 2.5 on
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("known")
def test_call(name, backend):
    function, *inputs = CALLS[name]
    compare(function, *inputs, complete=False)


@pytest.mark.whole
@pytest.mark.parametrize("name", sorted(ANSWERS))
@pytest.mark.usefixtures("known")
def test_answer(name, backend):
    function = ANSWERS[name]
    ours, theirs = function(wg.asarray(M, requires_grad=True)), function(M)
    if not isinstance(theirs, np.ndarray | np.generic | tuple) or name == "shape":
        assert ours == theirs
        return
    if not isinstance(theirs, tuple):
        ours, theirs = (ours,), (theirs,)
    if name in ("shape", "empty_like"):
        assert ours == theirs
        return
    for one, other in zip(ours, theirs, strict=True):
        assert one.backend is backend
        assert not one.requires_grad
        assert one.dtype.kind == wg.asarray(other).dtype.kind
        np.testing.assert_array_equal(one.numpy(), other)


@pytest.mark.parametrize("line", OF_NUMPY)
def test_rows_of_the_room(line, backend):
    """What `wengert.numpy` shows is what NumPy's own functions make of Tensors."""
    function = re.match(r"n\.([\w.]+)\(", line)[1]
    if function in MISSING.get(backend.name, ()) or (
        backend.name == "dask" and function.startswith("linalg.")
    ):
        pytest.skip(f"{backend.name} does not have it")
    given = arguments()
    names = [name for name in given if re.search(rf"\b(?<!\.){name}\b", line)]

    def call(*values):
        return eval(line, {"n": np} | given | dict(zip(names, values, strict=True)))

    compare(call, *(np.asarray(given[name]) for name in names), complete=False)


@pytest.mark.parametrize("name", UNTRACKED_UNARY.split())
@pytest.mark.usefixtures("known")
def test_predicate(name, backend):
    function = getattr(np, name)
    values = np.array([-1.0, 0.0, np.nan, np.inf])
    np.testing.assert_array_equal(function(wg.asarray(values)).numpy(), function(values))


@pytest.mark.parametrize("name", UNTRACKED_BINARY.split())
def test_relation(name, backend):
    function = getattr(np, name)
    first, second = np.array([0, 1, 2, 3]), np.array([0, 2, 1, 3])
    if name.startswith("logical"):
        first, second = first > 1, second > 1
    np.testing.assert_array_equal(
        function(wg.asarray(first), wg.asarray(second)).numpy(), function(first, second)
    )


@pytest.mark.parametrize("name", INTEGER.split())
def test_integers(name, backend):
    function = getattr(np, name)
    first, second = np.array([5, 6, 7, 12]), np.array([1, 2, 3, 2])
    ours = function(wg.asarray(first), wg.asarray(second))
    np.testing.assert_array_equal(ours.numpy(), function(first, second))
    np.testing.assert_array_equal(np.invert(wg.asarray(first)).numpy(), ~first)


def test_nextafter(backend):
    ours = np.nextafter(wg.asarray(V), wg.asarray(V + 1))
    np.testing.assert_array_equal(ours.numpy(), np.nextafter(V, V + 1))


OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.pow,
    operator.mod,
    operator.matmul,
]


@pytest.mark.parametrize("act", OPERATORS)
def test_a_numpy_array_on_the_left(act):
    """NumPy's array asks its ufunc, and that the Tensor."""
    for left in (W, np.float64(0.7), np.asarray(0.7)):
        if act is operator.matmul and not left.ndim:
            continue
        with wg.use_backend("numpy"):
            compare(lambda x, left=left: act(left, x), V)


def test_comparisons_with_a_numpy_array_on_the_left():
    x = wg.asarray(V, requires_grad=True)
    for act in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
        answer = act(W, x)
        assert isinstance(answer, wg.Tensor)
        np.testing.assert_array_equal(answer.numpy(), act(W, V))


def test_a_numpy_array_does_not_take_a_tensor_in_place():
    x = wg.asarray(V, requires_grad=True)
    array = W.copy()
    with pytest.raises(TypeError, match=r"np\.multiply can't write .* into a ndarray.*a = a \* x"):
        array *= x
    with pytest.raises(TypeError, match="into a ndarray"):
        np.sum(x, out=np.zeros(()))
    np.testing.assert_array_equal(array, W)


def test_out_is_an_in_place_operation(backend):
    x = wg.asarray(V, requires_grad=True)
    out = wg.zeros(5, dtype=wg.float64)
    assert np.exp(x, out=out) is out
    (g,) = wg.autograd.grad(np.sum(out), x)
    np.testing.assert_allclose(g.numpy(), np.exp(V), rtol=1e-14)
    total = wg.zeros((), dtype=wg.float64)
    assert np.sum(x, out=total) is total
    assert total.requires_grad
    whole, part = wg.zeros(5, dtype=wg.float64), wg.zeros(5, dtype=wg.float64)
    np.divmod(x * 4, 1.0, out=(whole, part))
    np.testing.assert_allclose((whole + part).detach().numpy(), 4 * V, rtol=1e-15)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        np.exp(out, out=x)


def test_where_without_out_has_no_answer():
    with pytest.raises(ValueError, match="give out="):
        np.exp(wg.ones(2), where=np.array([True, False]))


def test_dtype(backend):
    x = wg.asarray(V, requires_grad=True)
    for made in (np.add(x, 1, dtype=np.float32), np.sum(x, dtype=np.float32)):
        assert made.dtype is wg.float32
        assert made.requires_grad
    # NumPy computes means of integers in double precision.
    mean = np.mean(wg.asarray([1, 2]))
    assert mean.dtype is wg.float64
    assert mean.item() == 1.5


def test_numbers_and_lists_take_part(backend):
    x = wg.asarray(V.astype(np.float32), requires_grad=True)
    assert np.stack([x, x]).dtype is wg.float32
    assert np.add(x, 2.0).dtype is wg.float32
    assert np.add(x, np.float64(2.0)).dtype is wg.float32
    made = np.select([x > 0.5], [x], 1.0)
    assert made.dtype is wg.float32
    assert made.backend is backend


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.roots(x),
        lambda x: np.frexp(x),
        lambda x: np.hypot.at(x, [0], 1),
        lambda x: np.add.reduceat(x, [0, 1]),
        lambda x: np.linalg.tensorinv(x),
    ],
)
def test_no_counterpart(call):
    """An error names what was called, and what to do."""
    x = wg.ones(3, requires_grad=True)
    with pytest.raises(TypeError, match=r"np\.\S+ has no counterpart .*autograd\.Function"):
        call(x)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda x: np.reshape(x, (2, 2), order="F"), "np.reshape: order='F' is not"),
        (lambda x: np.argmax(x, None, 3), "np.argmax: out=3"),
        (lambda x: np.exp(x, casting="nothing"), "np.exp: casting='nothing'"),
        (lambda x: np.unique(x, axis=0), "np.unique: axis="),
        (lambda x: np.meshgrid(x, sparse=True), "np.meshgrid: sparse=True"),
        (lambda x: np.linalg.svd(x, hermitian=True), "np.linalg.svd: hermitian=True"),
    ],
)
def test_an_argument_without_a_meaning_here(call, what):
    with pytest.raises(TypeError, match=re.escape(what)):
        call(wg.ones((2, 2)))


def test_arguments_that_do_not_fit_are_told_of_numpys_function():
    with pytest.raises(TypeError, match=r"^np\.all\(\) takes from 1 to 2 positional arguments"):
        np.all(wg.ones(2), 0, None)


def test_at_changes_tensors_alone():
    with pytest.raises(TypeError, match=r"np\.add\.at: the array to be changed is a Tensor"):
        np.add.at(np.zeros(3), [0], wg.ones(1))


@pytest.mark.parametrize("name", ["save", "savez", "savetxt"])
def test_what_stores_arrays_asks_for_one(name: str) -> None:
    with pytest.raises(TypeError, match=rf"np.{name} stores arrays: pass x\.numpy\(\)"):
        getattr(np, name)("never", wg.ones(2))


def test_scipy_s_ufuncs(backend):
    """Most of `scipy.special` are ufuncs, which ask as NumPy's do."""
    special = pytest.importorskip("scipy.special")
    for name in ("erf", "gammaln", "log_expit", "ndtr"):
        compare(getattr(special, name), V)
    compare(special.beta, V, W)
    with pytest.raises(TypeError, match="the ufunc jv has no counterpart"):
        special.jv(1.0, wg.ones(3, requires_grad=True))


def test_conversion_to_numpy_needs_detaching():
    x = wg.asarray(V, requires_grad=True)
    for call in (np.asarray, np.array, float_array):
        with pytest.raises(RuntimeError, match=r"Use tensor\.detach\(\)\.numpy\(\)"):
            call(x)
        np.testing.assert_array_equal(call(x.detach()), V)


def float_array(x):
    return np.asarray(x, dtype=np.float64)


def test_a_program_with_numpy_s_names(backend):
    """A network written for NumPy, unchanged, against its derivative by hand."""

    def loss(weights, data):
        hidden = np.tanh(np.dot(data, weights))
        return np.mean(np.square(np.sum(hidden, axis=1) - 1.0))

    weights = wg.asarray(N, requires_grad=True)
    loss(weights, wg.asarray(M)).backward()
    hidden = np.tanh(M @ N)
    error = hidden.sum(axis=1) - 1
    expected = M.T @ (2 * error[:, None] / len(M) * (1 - hidden**2))
    np.testing.assert_allclose(weights.grad.numpy(), expected, rtol=1e-12)


def test_every_name_in_the_tables_is_numpy_s():
    for table, module in (("functions", np), ("linalg", np.linalg), ("fft", np.fft)):
        assert [name for name in _table(table) if not hasattr(module, name)] == []
    names = {name.partition(".")[0] for name in _table("ufuncs")} - {"clip", "outer", "special"}
    assert all(isinstance(getattr(np, name), np.ufunc) for name in names)


def test_every_name_in_the_tables_is_tested():
    tested = {name.split()[0] for name in (*CALLS, *ANSWERS)}
    tested |= {re.match(r"n\.([\w.]+)\(", line)[1] for line in OF_NUMPY}
    tested |= {*(UNARY + BINARY + UNTRACKED_UNARY + UNTRACKED_BINARY + INTEGER).split()}
    tested |= {
        "arange",
        "copyto",
        "digitize",
        "fill_diagonal",
    }  # tests/numpy
    tested |= {"invert", "nextafter", "outer", "special"}
    names = {*_table("functions"), *_table("ufuncs")}
    names |= {f"linalg.{name}" for name in _table("linalg")}
    assert names - tested == set()


@pytest.mark.slow
def test_the_tables_cost_nothing_at_import():
    code = (
        "import sys, wengert; "
        "print([name for name in sys.modules if name.startswith('wengert.protocols.')"
        " and not name.endswith('translation')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "options", [{}, {"rcond": 1e-2}, {"rtol": 1e-2}, {"rtol": None}, {"rcond": 1e-6}]
)
def test_pinv_leaves_out_what_numpy_does(options):
    """3e-15 is more than NumPy's 1e-15, and less than the standard's 20 units in the last place."""
    x = np.zeros((3, 20))
    x[range(3), range(3)] = 1.0, 1e-3, 3e-15
    found = np.linalg.pinv(wg.asarray(x, requires_grad=True), **options)
    np.testing.assert_allclose(found.detach().numpy(), np.linalg.pinv(x, **options), rtol=1e-12)


def test_a_copy_by_dlpack() -> None:
    x = wg.asarray([1.0, 2.0])
    assert not np.shares_memory(np.from_dlpack(x, copy=True), x.numpy())
