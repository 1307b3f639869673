"""What raises for some values raises compiled as eagerly, also where nobody takes its result."""

import re
import runpy
from functools import partial

import pytest

import wengert as wg
from wengert.compiler.capture.errors import TraceError
from wengert.nn import functional as F

LOGITS = [[0.1, 0.2, 0.3], [0.3, 0.1, 0.2]]
REGULAR, SINGULAR = [[2.0, 1.0], [1.0, 3.0]], [[0.0, 0.0], [0.0, 0.0]]
PLACES = [[0, 1], [0, 9], [-1, 1], [0, -9]]
INDICES, CLASSES = PLACES[:2], [*PLACES, [0, -100]]


def of(function, values, **options):
    """A function of what changes beside values that don't."""
    return lambda x: function(wg.asarray(values), x, **options)


def assigned(x, places):
    x = x * 1.0
    x[places] = 7.0
    return x


def weighted(values, classes, **options):
    return F.cross_entropy(values, classes, wg.asarray([1.0, 2.0, 3.0]), **options)


VECTOR = [1.0, 2.0, 3.0, 4.0]
#: Functions, with arguments of which the first and some others raise no errors.
FUNCTIONS = {
    **{
        name: (getattr(wg.linalg, name), [REGULAR, SINGULAR, [[float("nan")] * 2] * 2])
        for name in ("cholesky", "eig", "eigh", "eigvalsh", "inv", "pinv", "svd", "svdvals")
    },
    "solve": (lambda x: wg.linalg.solve(x, wg.ones(2)), [REGULAR, SINGULAR]),
    "solve_triangular": (
        lambda x: wg.linalg.solve_triangular(x, wg.ones((2, 1)), upper=True),
        [REGULAR, SINGULAR],
    ),
    "cholesky_solve": (lambda x: wg.linalg.cholesky_solve(wg.ones((2, 1)), x), [REGULAR, SINGULAR]),
    "take": (of(wg.take, VECTOR), INDICES),
    "take_along_axis": (of(partial(wg.take_along_axis, axis=0), VECTOR), INDICES),
    "indexing": (of(lambda x, places: x[places], VECTOR), PLACES),
    "assigning": (of(assigned, VECTOR), PLACES),
    "powers": (lambda x: wg.asarray([2, 3]) ** x, [[1, 2], [1, -2]]),
    "one_hot": (lambda x: F.one_hot(x, 3), PLACES),
    **{
        f"{function.__name__}, {reduction}": (of(function, LOGITS, reduction=reduction), CLASSES)
        for function in (F.nll_loss, F.cross_entropy, weighted)
        for reduction in ("mean", "sum", "none")
    },
    "binary_cross_entropy": (
        lambda x: F.binary_cross_entropy(x, wg.asarray([0.5, 0.0])),
        [[0.1, 0.2], [0.1, 7.0], [float("nan"), 1.0]],
    ),
    "gaussian_nll_loss": (
        lambda x: F.gaussian_nll_loss(wg.asarray([1.0, 2.0]), wg.asarray([0.5, 0.0]), x),
        [[0.5, 1.0], [0.0, 1.0], [1.0, -1.0]],
    ),
    "embedding": (lambda x: F.embedding(x, wg.asarray(REGULAR)), PLACES),
}


def seen(function, values):
    try:
        results = function(wg.asarray(values))
        return [x.tolist() for x in (results if isinstance(results, tuple) else [results])]
    except Exception as error:  # dask's come with the values
        return type(error), str(error)


def beside(function):
    """A function that does what another does, and gives something else."""

    def step(x):
        function(x)
        return x * 2

    return step


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
@pytest.mark.parametrize("check", [None, 0])
@pytest.mark.parametrize("unused", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_that_raise_errors_do_so_in_programs(name, unused, check, monkeypatch):
    monkeypatch.delenv("WENGERT_COMPILE_CHECK", raising=False)  # a check that raises drops programs
    function, (first, *others) = FUNCTIONS[name]
    step = beside(function) if unused else lambda x: function(x)
    compiled = wg.compile(step, check=check)
    for values in (first, first, *others, first):
        assert repr(seen(compiled, values)) == repr(seen(step, values))
    assert compiled.report.recordings == 1


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if re.search("loss|entropy|embed|weig", n)])
def test_libraries_whose_values_are_at_hand_are_looked_at(backend, name, monkeypatch):
    monkeypatch.delenv("WENGERT_COMPILE_CHECK", raising=False)  # as above
    function, (first, *others) = FUNCTIONS[name]
    compiled = wg.compile(lambda x: function(x))
    seen(compiled, first)
    for values in (first, *others):
        eager, found = seen(function, values), seen(compiled, values)
        if backend.name != "jax":
            assert isinstance(eager, tuple) == isinstance(found, tuple)
            assert not isinstance(eager, tuple) or found == eager
    assert ("jax.jit can't raise for values" in str(compiled.report)) == (backend.name == "jax")


def test_saved_programs_look_at_values(tmp_path):
    compiled = wg.compile(lambda classes: weighted(wg.asarray(LOGITS), classes))
    expected = compiled(wg.asarray([2, 1])).item()
    compiled.save(tmp_path / "saved.py")
    (saved,) = [f for n, f in runpy.run_path(str(tmp_path / "saved.py")).items() if "lambda" in n]
    assert saved(wg.asarray([2, 1]).array).item() == expected
    with pytest.raises(IndexError, match="Target 9 is out of bounds"):
        saved(wg.asarray([0, 9]).array)


CAUGHT = {
    "take": lambda x, i: wg.take(x, i),
    "getitem": lambda x, i: x[i] * 2,
    "take_along_axis": lambda x, i: wg.take_along_axis(x, i, axis=0),
    "cross_entropy": lambda x, i: F.cross_entropy(x[None] * 1.0, i),
    "grad": lambda x, i: wg.grad(lambda x: wg.sum(wg.take(x, i)))(x),
    "values": lambda x, i: F.binary_cross_entropy(x * i / 9.0, wg.ones(3)),
}


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("name", CAUGHT)
def test_a_caught_error_decides_for_its_own_call(name, raw):
    def caught(x, i):
        try:
            return CAUGHT[name](x, i)
        except (IndexError, ValueError):
            return None

    compiled, x = wg.compile(caught, check=0), wg.asarray([1.0, 2.0, 3.0])
    raw = raw and name in ("take", "grad")
    for at in (7, 1, 2, 7, 0):
        i = wg.asarray([at])
        given = (x.numpy(), i.numpy()) if raw else (x, i)
        if not compiled.report.recordings and at == 7:
            with pytest.raises(TraceError, match="which the function has caught"):
                compiled(*given)
            continue
        ours, theirs = compiled(*given), caught(*given)
        assert (ours is None) == (theirs is None)
        assert ours is None or ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("held", [[1.0, 2.0], {1: 2.0}])
def test_errors_after_a_container_has_become_shorter(held):
    def take(x):
        return wg.reshape(x * held.pop(1), (7,))

    with pytest.raises(ValueError, match="reshape"):
        wg.compile(take)(wg.ones((2, 2)))
    assert len(held) == (1 if isinstance(held, list) else 0)
