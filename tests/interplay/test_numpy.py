"""NumPy's own functions and operators on Tensors, through its two protocols."""

import operator
import re

import numpy as np
import pytest

import wengert as wg
from tests.interplay.compare import beside, call_of, compare
from tests.numpy.rows import OF_NUMPY, arguments
from tests.scripts import python
from tests.walking import lines_of
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
ODD = np.array([True, False, True, True, False])

UNARY = (
    "absolute arccos arcsin arcsinh arctan arctanh cbrt conjugate cos cosh deg2rad degrees "
    "exp exp2 expm1 fabs log log10 log1p log2 negative positive rad2deg radians reciprocal "
    "sin sinh sqrt square tan tanh ceil floor rint sign trunc "
)
BINARY = (
    "add arctan2 copysign divide fmax fmin heaviside hypot logaddexp "
    "logaddexp2 maximum minimum multiply power remainder subtract vecdot "
)
UNTRACKED_UNARY = "isfinite isinf isnan logical_not signbit "
UNTRACKED_BINARY = (
    "equal greater greater_equal less less_equal logical_and logical_or logical_xor not_equal "
)
INTEGER = "bitwise_and bitwise_or bitwise_xor left_shift right_shift "

#: Calls that NumPy makes on arrays, and Wengert on Tensors.
CALLS = lines_of("""
np.arccosh(V + 1)  np.clip(V, min=0.5)  np.divmod(V, W / 3)  np.floor_divide(V, W / 3)
np.matvec(M, M[0])
np.multiply(Z, np.conj(Z) + 2j)  np.angle(Z, deg=True)  np.imag(Z)
np.log(V - 0.5, where=beside(V, V > 0.5), out=V * 2)  np.add(V, [1.0, 2.0, 3.0, 4.0, 5.0])
np.add.reduce(M, axis=None, keepdims=True)  np.multiply.reduce(M, axis=-1, initial=2)
np.minimum.reduce(M, axis=1)  np.logaddexp.reduce(M)  np.sum(M, 1, keepdims=True)
np.sum(M, where=beside(M, M > 0.5))  np.sum(M, axis=(0, 1), initial=5)
np.mean(M, where=beside(M, M > 0.5))  np.var(M, where=beside(M, M > 0.3))  np.amin(M)
np.average(V, weights=W, returned=True)  np.average(M, axis=1, returned=True)
np.average(M, axis=1, weights=M[0] + 1)  np.cumsum(M, axis=1)  np.rot90(M, 2)  np.rot90(M, 3)
np.rollaxis(T, -1, 1)  np.rollaxis(T, 0, 3)  np.trim_zeros(M * (M > 0.7))
np.trim_zeros(V * (V > 0.5), "f")  np.trim_zeros(0 * V, "b")  np.trim_zeros(T * (T > 1), axis=-1)
np.polyfit(V, W, 1, w=W + 1)  np.linalg.cond(S, -2)
np.cumulative_sum(V, include_initial=True)  np.cumulative_prod(V)
np.nanvar(_holed(V), ddof=1)  np.nanmin(_holed(V))
np.trapezoid(V, np.cumsum(W))
np.trapezoid(M, np.cumsum(M ** 2, axis=0), axis=0)  np.trapezoid(M, np.cumsum(W[:3]), axis=0)
np.linalg.lstsq(M.T, M[0])[:2]  np.append(M, M * 2, axis=0)
np.append(V, [W[0], 1.0, V[1] * W[1]])  np.block([V, V[0], 1.0])  np.block(V)
np.block([V, np.float64(2.0)])  np.block([[[M], [M * 2]], [[M * 2], [M]]])
np.clip(V, [0.3, W[0], 0.1, 0.2, 0.4], 0.6)  np.concatenate([V, [W[0], 1.0]])
np.delete(M, [0, -1], axis=1)  np.delete(M, slice(0, 4, 2))
np.delete(M, np.array([True, False, True]), axis=0)  np.delete(M, [], axis=0)
np.insert(V, [0, 3], [W[0], 1.0])  np.insert(V, [0, 3], W[0])  np.insert(V, slice(0, 4, 2), W[:2])
np.insert(M, 1, V[:4], axis=0)  np.insert(M, -1, V[:3], axis=1)
np.insert(M, [1, 3], M[:, :2], axis=1)  np.insert(M, 2, V)
np.insert(beside(V, np.ones(2)), 1, V[0])  np.stack([V[:2], [W[0], V[1] * W[1]]])
np.vstack([V[:3], [W[0], 2, V[1]]])  np.hstack([V[0], 2.0, [W[1]]])
np.dstack([V[:2], [W[0], W[1]]])  np.column_stack([V[:2], [W[0], W[1]]])
np.full_like(V[:2], [W[0], V[1]])  np.where([True, False], V[:2], [W[0], W[1]])
np.multiply(V[:2], [W[0], V[1]])
np.select([V[:2] > 9], [[W[0], 1.0]], V[1])  np.matrix_transpose(T)  np.unstack(M, axis=1)
np.correlate(Z, Z[:3] * 1j, "full")  np.correlate(W[:2], V, "same")
np.add(V[:2], [[W[0], 1], [V[1], 2]])  np.einsum("i,i", V[:2], [W[0], 3.0])
np.einsum(V[:2], [0], [W[0], 3.0], [1], [1, 0])  np.vsplit(M, [1])  np.dsplit(T, 3)
np.atleast_3d(V, M)  np.broadcast_arrays(M, M[0])  np.concatenate((M, V), axis=None)  np.diag(V, 2)
np.diag(V, -1)  np.diag(M, 1)  np.diagonal(T, offset=-1, axis1=2, axis2=0)
np.hstack([V, W])  np.ones_like(M) * M
np.transpose(T, (1, 2, 0))
np.convolve(V, W[:4], "same")  np.convolve(W[:2], V, mode="valid")
np.dot(V, W)  np.kron(V, M)
np.sort(M, axis=None)  np.take(M, 7)  np.unique(V)
np.where(beside(V, ODD), 0.25, V)  np.fix(3 * V)  V - np.around(V, 1)  V - np.round(100 * V, -1)
np.cov(V, W, ddof=0)  np.cov(M, rowvar=False, bias=True)  np.diff(M, prepend=0, append=[[1.0]] * 3)
np.gradient(M, 0.5, axis=1)  _at(np.add, V, W[:3])  _at(np.subtract, V, W[:3])
_at(np.multiply, V, W[:3])  _at(np.divide, V, W[:3])  _at(np.maximum, V, W[:3])
_at(np.minimum, V, W[:3])  np.cross(R, R[::-1], axisa=0, axisc=0)  np.einsum(T, [0, 1, 1], [0])
np.pad(M, 2, "reflect")  np.fft.fft(V)  np.fft.fft(Z, 7, norm="ortho")
np.fft.irfft2(np.fft.rfft2(M), s=(3, 5))  np.fft.fftshift(V)  np.astype(V, np.complex128)
np.linalg.norm(T, "fro", axis=(1, 2))  np.linalg.norm(T, 2, axis=(0, 2), keepdims=True)
np.linalg.norm(T, axis=(0, 1))  np.linalg.norm(T, np.inf, axis=2)
np.abs(np.linalg.qr(S, mode="r"))  np.abs(np.linalg.eigh(S + S.T)[1])
np.sum(np.linalg.eigvals(S) ** 2)  np.sum(np.linalg.eig(S)[0] ** 3)  np.linalg.svdvals(M)
np.linalg.matmul(M, N)  np.linalg.matrix_transpose(M)  np.linalg.tensordot(M, N, axes=1)
np.linalg.vecdot(M, M * 2, axis=0)  [np.linalg.cond(S), np.linalg.cond(S, 1)]
np.linalg.cross(V[:3], W[:3])  np.linalg.trace(T, offset=1)  np.linalg.diagonal(T)
np.linalg.outer(V, W)  np.linalg.vector_norm(M, axis=1, ord=3)  np.linalg.matrix_norm(T, ord=1)
""")

#: Calls whose answers have no derivative.
ANSWERS = lines_of("""
np.max(M[:, :0], axis=1, initial=0.5)  np.min(M[:, :0], axis=1, initial=0.5, keepdims=True)
np.all(M > 0, axis=0)  np.any(M > 0.5, 1)  np.allclose(M, M + 1e-12)  np.argmax(M, axis=1)
np.argmin(M, 0)  np.argsort(M, axis=1)  np.argwhere(M > 0.5)  np.array_equal(M, M * 1)
np.array_equal(M, M[0])  np.count_nonzero(M > 0.5, axis=1)  np.flatnonzero(M > 0.5)
np.isclose(M, 0.5, atol=0.1)  np.iscomplex(M)  np.iscomplexobj(M)
np.isin(np.floor(4 * M), [1.0, 2.0])  np.isneginf(M)  np.isposinf(M)  np.isreal(M)  np.isrealobj(M)
np.logical_and.reduce(M > 0.5)  np.logical_or.reduce(M > 0.5, axis=1)  np.ndim(M)
np.nonzero(M > 0.5)  np.searchsorted(np.sort(M[0]), M[1], side="right")  np.shape(M)  np.size(M, 1)
np.unique(np.floor(4 * M), return_index=True, return_inverse=True, return_counts=True)[1:]
np.zeros_like(M, shape=(2, 2))  np.shape(np.empty_like(M, dtype=np.float32))
np.linalg.matrix_rank(M)
""")


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
    "array_api_strict": ("np.isin(", "np.logical_not"),  # of floating arrays
    "dask": (  # most of linear algebra, and shapes that depend on data
        *("linalg.", "np.argwhere", "np.unique("),
    ),
}


@pytest.fixture
def known(backend, request):
    """Leave out what the backend's library lacks."""
    line = request.node.callspec.params["line"]
    if any(name in line for name in MISSING.get(backend.name, ())):
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
@pytest.mark.parametrize("line", CALLS)
@pytest.mark.usefixtures("known")
def test_call(line, backend):
    function, *inputs = call_of(line, globals())
    compare(function, *inputs, complete=False)


@pytest.mark.whole
@pytest.mark.parametrize("line", ANSWERS)
@pytest.mark.usefixtures("known")
def test_answer(line, backend):
    function, x = call_of(line, globals())
    ours, theirs = function(wg.asarray(x, requires_grad=True)), function(x)
    if not isinstance(theirs, np.ndarray | np.generic | tuple) or "np.shape(" in line:
        assert ours == theirs
        return
    if not isinstance(theirs, tuple):
        ours, theirs = (ours,), (theirs,)
    for one, other in zip(ours, theirs, strict=True):
        assert one.backend is backend
        assert not one.requires_grad
        assert one.dtype.kind == wg.asarray(other).dtype.kind
        np.testing.assert_array_equal(one.numpy(), other)


@pytest.mark.whole
@pytest.mark.parametrize("line", [line.replace("n.", "np.", 1) for line in OF_NUMPY])
@pytest.mark.usefixtures("known")
def test_rows_of_the_room(line, backend):
    """What `wengert.numpy` shows is what NumPy's own functions make of Tensors."""
    given = arguments()
    names = [name for name in given if re.search(rf"\b(?<!\.){name}\b", line)]

    def call(*values):
        return eval(line, {"n": np, "np": np} | given | dict(zip(names, values, strict=True)))

    compare(call, *(np.asarray(given[name]) for name in names), complete=False)


@pytest.mark.parametrize("line", [f"np.{name}" for name in UNTRACKED_UNARY.split()])
@pytest.mark.usefixtures("known")
def test_predicate(line, backend):
    function = eval(line)
    values = np.array([-1.0, 0.0, np.nan, np.inf])
    np.testing.assert_array_equal(function(wg.asarray(values)).numpy(), function(values))


@pytest.mark.parametrize("name", (UNTRACKED_BINARY + INTEGER + "nextafter").split())
def test_relations_and_integers(name, backend):
    function = getattr(np, name)
    first, second = np.array([5, 2, 7, 12]), np.array([1, 2, 9, 2])
    if name.startswith("logical"):
        first, second = first > 6, second > 1
    first, second = (V, V + 1) if name == "nextafter" else (first, second)
    ours = function(wg.asarray(first), wg.asarray(second))
    np.testing.assert_array_equal(ours.numpy(), function(first, second))


_ACTS = "add sub mul truediv pow mod matmul"
OPERATORS = [getattr(operator, name) for name in _ACTS.split()]


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
    made = np.where(x > 0.5, x, 1.0)
    assert made.dtype is wg.float32
    assert made.backend is backend


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.roots(x),
        lambda x: np.frexp(x),
        lambda x: np.hypot.at(x, [0], 1),
        lambda x: np.add.reduceat(x, [0, 1]),
        lambda x: np.unravel_index(x, (2, 2)),
    ],
)
def test_no_counterpart(call):
    """An error names what was called, and what to do."""
    x = wg.ones(3, requires_grad=True)
    with pytest.raises(TypeError, match=r"np\.\S+ has no counterpart .*autograd\.Function"):
        call(x)


MASK = np.array([True, False, True])


@pytest.mark.parametrize(
    ("call", "way"),
    [
        (lambda x: np.place(x, MASK, [0.0]), "x[mask] = value, or wg.where(mask, value, x)"),
        (
            lambda x: np.putmask(x, MASK, 0.0),
            "x[mask] = values[mask], or wg.where(mask, values, x)",
        ),
        (lambda x: np.put(x, [0], 0.0), "x[key] = values, with a key for each axis"),
        (lambda x: np.put_along_axis(x, MASK * 1, 0.0, 0), "x.at((rows, indices)).set(values)"),
        (lambda x: np.compress(MASK, x), "x[mask]"),
        (lambda x: np.extract(MASK, x), "x[mask]"),
        (lambda x: np.lexsort((x, x)), "i = wg.argsort(a), then i[wg.argsort(b[i])]"),
        (lambda x: np.apply_along_axis(np.sum, 0, x), "wg.vmap(function, in_axes=...)"),
        (lambda x: np.apply_over_axes(np.sum, x, [0]), "the function with axis=, a tuple"),
        (lambda x: np.modf(x), "x - wg.trunc(x) and wg.trunc(x)"),
        (lambda x: np.linalg.tensorinv(x), "wg.linalg.inv of a matrix by wg.reshape"),
    ],
)
@pytest.mark.parametrize("tracked", [False, True])
def test_functions_without_counterpart_have_hints(call, way, tracked):
    with pytest.raises(TypeError, match=rf"^np\.\S+ has no counterpart .*: write {re.escape(way)}"):
        call(wg.ones(3, requires_grad=tracked))


def test_keys_in_order_by_two_arrays_are_as_the_hint_says():
    a, b = (wg.asarray(np.random.default_rng(k).integers(0, 3, 20)) for k in (0, 1))
    i = wg.argsort(a)
    i = i[wg.argsort(b[i])]
    np.testing.assert_array_equal(i.numpy(), np.lexsort((a.numpy(), b.numpy())))


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda x: np.reshape(x, (2, 2), order="F"), "np.reshape: order='F' is not"),
        (lambda x: np.ravel(x, order="F"), "read in rows; np.transpose(np.reshape(np.transpose(x)"),
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


def test_powers_of_integers_are_tensors():
    x = np.asarray([[1, 2], [3, 4]])
    found = np.linalg.matrix_power(wg.asarray(x), 3)
    assert isinstance(found, wg.Tensor) and found.dtype is wg.int64
    np.testing.assert_array_equal(found.numpy(), np.linalg.matrix_power(x, 3))


def test_weighted_averages_keep_axes():
    x, w = np.arange(6.0).reshape(3, 2), np.asarray([1.0, 3.0])
    found = np.average(wg.asarray(x), axis=1, weights=wg.asarray(w), keepdims=True)
    np.testing.assert_array_equal(found.numpy(), [[0.75], [2.75], [4.75]])


def test_conversion_to_numpy_needs_detaching():
    x = wg.asarray(V, requires_grad=True)
    for call in (np.asarray, np.array, lambda x: np.asarray(x, dtype=np.float64)):
        with pytest.raises(RuntimeError, match=r"Use tensor\.detach\(\)\.numpy\(\)"):
            call(x)
        np.testing.assert_array_equal(call(x.detach()), V)


def test_every_name_in_the_tables_is_numpy_s():
    for table, module in (("functions", np), ("linalg", np.linalg), ("fft", np.fft)):
        assert [name for name in _table(table) if not hasattr(module, name)] == []
    names = {name.partition(".")[0] for name in _table("ufuncs")} - {"clip", "outer", "special"}
    assert all(isinstance(getattr(np, name), np.ufunc) for name in names)


ELSEWHERE = (
    "arange argpartition copyto digitize fill_diagonal real_if_close "  # tests/numpy
    "invert nextafter outer special"
)


def test_every_name_in_the_tables_is_tested():
    text = " ".join([*CALLS, *ANSWERS])
    tested = {*re.findall(r"np\.([\w.]+)\(", text)}
    tested |= {f"{name}.at" for name in re.findall(r"_at\(np\.(\w+)", text)}
    tested |= {re.match(r"n\.([\w.]+)\(", line)[1] for line in OF_NUMPY}
    tested |= {*(UNARY + BINARY + UNTRACKED_UNARY + UNTRACKED_BINARY + INTEGER).split()}
    tested |= {*ELSEWHERE.split()}
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
    assert python("-c", code).stdout.strip() == "[]"


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


def test_real_arrays_are_close_to_real_without_their_values() -> None:
    x = wg.asarray([1.0, 2.0])
    assert wg.vmap(np.real_if_close)(x).tolist() == [1, 2]
    assert wg.compile(np.real_if_close)(x).tolist() == [1, 2]
    assert np.real_if_close(wg.asarray([1 + 1e-18j])).dtype.kind == "real floating"
    assert np.real_if_close(wg.asarray([1 + 1j])).dtype.kind == "complex floating"


def test_an_empty_array_is_resized_to_zeros() -> None:
    found = np.resize(wg.zeros((0, 2), dtype="int32"), (2, 1))
    assert (found.tolist(), found.dtype) == ([[0], [0]], wg.int32)
    assert np.resize(wg.zeros(0), 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_choose_reads_no_indices_that_are_all_valid(mode) -> None:
    at, x, y = (
        np.array([[-4, 0, 1], [5, 2, -1]]),
        np.array([1.0, 2.0, 3.0]),
        np.array([[5.0], [6.0]]),
    )
    want = np.choose(at, [x, y, 7.0], mode=mode)
    choose = lambda at, x: np.choose(at, [x, wg.asarray(y), 7.0], mode=mode)
    given = wg.asarray(at), wg.asarray(x)
    assert choose(*given).tolist() == wg.compile(choose)(*given).tolist() == want.tolist()
    assert choose(*given).dtype == wg.float64
    rows = wg.vmap(lambda at, y: np.choose(at, [given[1], y, 7.0], mode=mode))
    assert rows(given[0], wg.asarray(y)).tolist() == want.tolist()
    slope = wg.grad(lambda x: wg.sum(choose(given[0], x)))(given[1])
    first = {"clip": at <= 0, "wrap": at % 3 == 0}[mode]
    assert slope.tolist() == first.sum(axis=0).tolist()
