"""What NumPy's programs rely on beside values: copies, numbers, dtypes, writes and refusals."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.scripts import python
from tests.walking import lines_of
from wengert.tape.aliases import ViewWarning

# ruff: noqa: NPY002 -- the same generator as the programs have


def tracked(*values: float) -> Any:
    return wg.tensor(np.array(values), requires_grad=True)


# -- writes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    lines_of("""
row = a[0]; row += 1  row = a[0]; row[0] = 1.0  a.ravel()[...] = 1.0  b = a[1:]; b[:] = 0.0
a.T[0] = 1.0  a.reshape(-1)[0] = 1.0  n.ravel(a)[0] = 1.0  n.transpose(a)[0] = 1.0
for row in a: row += 1.0  d = n.diagonal(a); d[0] = 1.0  b = a[0]; a[0] = 1.0; b
b = a[0]; a -= b; b  b = a[0]; a[1] = b; b[0] = 1.0  n.sum(a); rows = [a[0], a[1]]; rows[0] += 1.0
b = a.T; a += 1.0; b  n.squeeze(a[None])[0] = 1.0  n.atleast_2d(a)[0] = 1.0
c = a[0, 0, ...]; c += 1.0  a[0].sort()  a[0].fill(2.0)  b = a.swapaxes(0, 1); b[0, 0] = 1.0
b = n.split(a, 2)[0]; b[0] = 1.0  n.add.at(a[0], [0], 1.0)  n.fill_diagonal(a.T, 1.0)
n.copyto(a[0], 1.0)  n.exp(a[0], out=a[0])  n.random.shuffle(a[0])
"""),
)
def test_a_write_through_a_view_is_an_error(room: Any, line: str) -> None:
    a = room.arange(4.0).reshape(2, 2).copy()
    with pytest.raises(ViewWarning):
        exec(line, {"a": a, "n": room})


def test_numbers_are_conditions_of_where(room: Any) -> None:
    given = [room.array(x) for x in ([0.0, -2.0], [1.0, 2.0], [3.0, 4.0])]
    assert room.where(*given).tolist() == [3.0, 2.0]
    assert [x.tolist() for x in room.where(given[0])] == [[1]]


def test_real_arrays_are_their_conjugates(room: Any) -> None:
    a, z = room.arange(3.0), room.array([1j])
    a.conj()[0] = 5.0
    assert a.tolist() == [5.0, 1.0, 2.0]
    assert a.conjugate() is a
    assert z.conj().tolist() == [-1j]


@pytest.mark.parametrize(
    "line",
    ["median(a)", "quantile(a, 0.5)", "percentile(a, 50)", "nanmedian(a)", "interp(1.0, a, a)"],
)
def test_statistics_are_numbers_that_do_not_change(room: Any, line: str) -> None:
    number = eval(f"n.{line}", {"a": room.arange(3.0), "n": room})
    before = number
    number += 1
    assert (float(before), float(number)) == (1.0, 2.0)


@pytest.mark.parametrize(
    "line",
    lines_of("""
a[0] += 1  a[0][1]  a[0, 1] -= 2  b = a; b += 1  b = a[0].copy(); b += 1  b = a[[0, 1]]; b += 1
b = a.flatten(); b[0] = 1.0  a[a > 1] = 0  a[:, 1] = [5, 6]  a[0], a[1] = a[1].copy(), a[0].copy()
a.sort()  a.sort(axis=0)  a.fill(3)  a.flat[1] = 7  a.flat = 2.0  n.fill_diagonal(a, 9)
n.fill_diagonal(a, [8, 9])  n.copyto(a, [[1, 2], [3, 4]])  n.copyto(a, 5.0, where=a > 1)
n.add.at(a, ([0, 0], [1, 1]), 1.0)  n.exp(a, out=a)
n.exp(a, out=(a,))  n.add(a, 1.0, out=(a,))  n.cumsum(a, 1, None, a)  n.multiply(a, 2, a)
s = a[0, 0]; s += 1  s = a.sum(); t = s; s += 1; a[0, 0] = s - t
s = n.sum(a); old = s; s *= 2; a[0, 1] = old  for x in a[0]: x += 1
z = n.array(1.0); y = z; y += 1; a[0, 0] = z  z = n.zeros(()); y = z; y -= 1; a[0, 0] = z
a[0] = a[1]  a[...] = 4  a[:] = a[::-1].copy()  a[-1] = 0; a[1, :] += 2
a = n.append(a, 1.0)[:4].reshape(2, 2) * 1.0  b = n.asarray(a); b += 1  b = n.array(a); b += 1
b = n.array(a, copy=False); b += 1  b = n.asarray(a, dtype=float); b[0] = 9  a.partition(1)
"""),
)
def test_other_writes_are_numpys(room: Any, line: str) -> None:
    given = np.array([[0.0, 3.0], [2.0, 1.0]])
    ours: dict[str, Any] = {"a": room.array(given), "n": room}
    theirs: dict[str, Any] = {"a": given.copy(), "n": np}
    exec(line, ours)
    exec(line, theirs)
    assert ours["a"].tolist() == theirs["a"].tolist()
    for name in "bst":
        if name in theirs:
            assert np.asarray(ours[name]).tolist() == theirs[name].tolist(), name


def test_series_keep_the_number_before(room: Any) -> None:
    """``old = s; s += term`` in a loop that stops when the two agree."""

    def exponential(x: Any) -> Any:
        s, term, k = x * 0 + 1.0, x * 0 + 1.0, 0
        while True:
            old, k = s, k + 1
            term *= x / k
            s += term
            if abs(s - old) < 1e-17:
                return s

    x = room.array(0.7)[()]
    assert float(exponential(x)) == pytest.approx(np.exp(0.7), rel=1e-15)
    assert float(wg.grad(exponential)(x)) == pytest.approx(np.exp(0.7), rel=1e-12)


def test_whole_numbers_are_not_written_with_fractions(room: Any) -> None:
    a = room.array([1, 2, 3])
    for line in ("a[0] = 0.5", "a += 0.5", "a /= 2", "a *= n.ones(3)"):
        with pytest.raises((TypeError, RuntimeError), match=r"stored|fit"):
            exec(line, {"a": a, "n": room})
    a[0], a[1] = 4, True
    a += 1
    assert a.tolist() == [5, 2, 4]


def test_an_optimisers_step_is_in_place(room: Any) -> None:
    p = wg.tensor(2.0, requires_grad=True)
    (p * p).backward()
    q = p
    with wg.no_grad():
        p -= 0.1 * p.grad
    assert q.item() == pytest.approx(1.6)


# -- dtypes and copies -----------------------------------------------------------------------------


def test_dtypes_are_numpys(room: Any) -> None:
    whole = room.array([1, 2])
    assert (whole * 0.5).dtype == (whole / 2).dtype == room.sqrt(whole).dtype == np.float64
    assert room.zeros(2).dtype == room.array([1.0]).dtype == room.linspace(0, 1, 3).dtype == float
    assert room.arange(3).dtype == np.int64
    assert room.ones(2, dtype=np.float32).dtype == np.float32
    assert room.array([tracked(1.0)[0], 2], dtype=np.float32).dtype == np.float32
    assert room.zeros(2, room.array([1.0]).dtype).dtype == np.float64
    assert isinstance(room.array(["a"]), np.ndarray)
    assert room.array([1, None]).dtype == object


def test_arrays_of_objects_hold_no_tracked_tensors(room: Any) -> None:
    with pytest.raises(RuntimeError, match="requires grad"):
        room.array([tracked(2.0)[0], None], dtype=object)


def test_copies(room: Any) -> None:
    x = tracked(1.0, 2.0)
    assert room.asarray(x) is x
    assert room.array(x, copy=False) is x
    assert room.array(x) is not x
    assert room.array(x).requires_grad
    with pytest.raises(ValueError, match="copy=False"):
        room.array([x, x], copy=False)
    own = np.ones(2)
    assert room.asarray(own) is own  # writes reach it, as in NumPy
    assert isinstance(room.array(own), wg.Tensor)
    assert isinstance(room.ones_like(own), wg.Tensor)
    assert isinstance(room.exp(own), np.ndarray)


def test_instances_and_numbers(room: Any) -> None:
    x = room.ones(3)
    assert isinstance(x, room.ndarray)
    assert isinstance(np.ones(3), room.ndarray)
    assert not isinstance([1.0], room.ndarray)
    assert room.isscalar(x.sum())
    assert not room.isscalar(x)
    assert [1, 2, 3][x.argmax()] == 1
    assert f"{x.sum():.2f}" == "3.00"
    assert bool(x.sum() > 2)
    with pytest.raises(ValueError, match="elements"):
        bool(x > 2)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    lines_of("""
n.random.normal(x[0], 1.0)  n.random.uniform(0, x[0], 3)  n.random.default_rng(0).normal(x[0])
n.random.default_rng(0).normal(loc=x, scale=1.0)  n.random.multivariate_normal(x, n.eye(2))
n.lexsort([x, x])  n.roots(x)  n.save('never', x)  n.histogram2d(x, x)  n.poly(x)  n.frexp(x)
n.spacing(x)  n.ones(2).astype(object)[0] + n.matrix(x)  n.float64(x[0])  n.float32(x[0])
float(x[0])  complex(x[0])  __import__('math').sin(x[0])  m.random.rand(2).__setitem__(0, x[0])
m.random.rand(2).__iadd__(x)  n.add.at(m.random.rand(2), [0], x[0])  n.copyto(m.random.rand(2), x)
n.bmat([[x]])  n.sum(x, out=m.random.rand(1))  n.r_['0,2', x]
n.vectorize(lambda u: u, signature='()->()')(x)  n.gradient(x, [0.0, 1.0])  n.unique(x, axis=0)
n.reshape(x, (1, 2), order='F')  n.std(x, where=[True, False], out=m.random.rand(1))
n.linalg.tensorinv(x)  n.geomspace(x[0], -1.0, 3)  n.nanquantile(x, 0.5, method='lower')
n.fromfunction(lambda i: i, x)  n.fromiter(x, float)
"""),
)
def test_a_derivative_is_not_lost(room: Any, line: str) -> None:
    with pytest.raises((TypeError, RuntimeError, ValueError)):
        eval(line, {"n": room, "m": np, "x": tracked(1.5, 2.5)})

    def f(x: Any) -> Any:
        eval(line, {"n": room, "m": np, "x": x})
        return x.sum()

    with pytest.raises((TypeError, RuntimeError, ValueError)):
        wg.grad(f)(room.array([1.5, 2.5]))


def test_what_passes_untracked_tensors(room: Any, tmp_path: Any) -> None:
    x = room.ones(3)
    room.save(tmp_path / "x.npy", x)
    assert room.load(tmp_path / "x.npy").tolist() == [1.0, 1.0, 1.0]
    room.testing.assert_allclose(tracked(1.0), room.ones(1))
    with pytest.raises(AssertionError):
        room.testing.assert_allclose(tracked(1.0), room.zeros(1))
    room.random.seed(0)
    first = room.random.normal(x)
    np.random.seed(0)
    assert first.tolist() == np.random.normal(np.ones(3)).tolist()


def test_shuffles_are_numpys_and_keep_derivatives(room: Any) -> None:
    x = tracked(1.0, 2.0, 3.0, 4.0) * 1.0
    room.random.seed(1)
    room.random.shuffle(x)
    own = np.arange(1.0, 5.0)
    np.random.seed(1)
    np.random.shuffle(own)
    assert x.tolist() == own.tolist()
    assert x.requires_grad


def test_arrays_dot_of_a_tracked_tensor_says_what_to_write(room: Any) -> None:
    plain = np.ones((2, 3))
    for call in (lambda w: plain.dot(w), wg.grad(lambda w: plain.dot(w).sum())):
        with pytest.raises(RuntimeError, match="X @ w"):
            call(tracked(1.0, 2.0, 3.0))


def test_nan_to_num_in_place_and_view_without_lengths(room: Any) -> None:
    x = room.array([np.nan, 1.0, np.inf])
    assert room.nan_to_num(x, copy=False, posinf=7.0) is x
    assert x.tolist() == [0.0, 1.0, 7.0]
    view = x.view()
    with pytest.raises(ViewWarning):
        view += 1


# -- beside PyTorch's meanings ---------------------------------------------------------------------


@pytest.mark.parametrize("order", [("numpy", "torch"), ("torch", "numpy")])
def test_with_pytorchs_meanings_what_differs_is_an_error(order: tuple[str, str]) -> None:
    program = f"""
import wengert.{order[0]}, wengert.{order[1]}
import wengert as wg
x = wg.ones((3, 3))
for line in ("x.std()", "x.max(1)", "x.sort()", "x.nonzero()", "x.repeat(2)", "x.transpose(0, 1)",
             "x[0, :, [0, 1]]", "x.sum().__iadd__(1)", "x[0].__iadd__(1)"):
    try:
        eval(line)
    except Exception:
        continue
    raise SystemExit(line)
assert x.sum(axis=0).tolist() == [3.0, 3.0, 3.0]
x[0] = 2.0
x += 1
assert x[0, 1].item() == 3.0 and x[[0, 1]].shape == (2, 3)
"""
    python("-c", program)


# -- what programs met -----------------------------------------------------------------------------


def test_random_arrays_change_after_use(room: Any) -> None:
    """A recorded product keeps its operands: arrays of random numbers are values, too."""

    def f(p: Any) -> Any:
        room.random.seed(0)
        noise, total = room.random.rand(3), 0.0
        for _ in range(3):
            total = total + room.sum(noise * p)
            noise *= 0.5
        return total

    found = wg.grad(f)(room.ones(3))
    np.random.seed(0)
    np.testing.assert_allclose(found.numpy(), 1.75 * np.random.rand(3))


def test_lists_are_compared_as_arrays(room: Any) -> None:
    x = room.array([1.0, 5.0])
    assert (x == [1, 5]).tolist() == [True, True] and (x != (1, 4)).tolist() == [False, True]
    assert room.where(x == [1, 4], x, 0.0).tolist() == [1.0, 0.0]


def test_numbers_stay_numbers(room: Any) -> None:
    p = room.array([1.0, 2.0])
    for number in (p[0], p[0].copy(), room.asarray(p[0])):
        kept, total = [number], number
        total += 1.0
        assert kept[0].item() == 1.0 and total.item() == 2.0


@pytest.mark.parametrize("line", ["x.T.ravel(order='K')", "x.T.flatten('A')"])
def test_what_would_be_another_order_or_copy_is_refused(room: Any, line: str) -> None:
    with pytest.raises(TypeError):
        eval(line, {"n": room, "x": room.ones((2, 3))})


@pytest.mark.parametrize(
    ("start", "stop", "count", "dtype"), [(0, 22, 23, int), (-1, 1, 4, int), (0, 7, 8, float)]
)
def test_ranges_have_numpys_values(
    room: Any, start: int, stop: int, count: int, dtype: Any
) -> None:
    found = room.linspace(room.array(start), room.array(stop), count, dtype=dtype)
    np.testing.assert_array_equal(found.numpy(), np.linspace(start, stop, count, dtype=dtype))


def test_numpys_own_arrays_take_values_in_place(room: Any) -> None:
    own = np.ones(3)
    given = own
    own -= room.array([1.0, 2.0, 3.0])
    assert type(own) is np.ndarray
    assert given.tolist() == [0.0, -1.0, -2.0]
    x = room.array([1.0, 2.0, 3.0]).requires_grad_()
    for call in (lambda: given.__iadd__(x), lambda: wg.vmap(given.__iadd__)(np.ones((2, 3)))):
        with pytest.raises(TypeError, match="can't write a Tensor's result"):
            call()
    with wg.no_grad():
        given += x
    assert given.tolist() == [1.0, 1.0, 1.0]


def test_compress_takes_the_places_of_a_condition(room: Any) -> None:
    own = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    x = room.array(own)
    assert x.compress(x[0] > 1.5, -1).tolist() == own.compress(own[0] > 1.5, -1).tolist()
    assert x.compress([0, 1, 1]).tolist() == [2.0, 3.0]
    assert wg.grad(lambda x: x.compress([0, 1], 0).sum())(x).tolist() == [[0.0] * 3, [1.0] * 3]
    with pytest.raises(ValueError, match="1-d"):
        x.compress([[True]])
