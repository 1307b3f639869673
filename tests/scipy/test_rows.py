"""All rows of the catalogue: values are SciPy's, derivatives differences', and the hard points'."""

from importlib import import_module
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

import wengert as wg
from tests.catalogue.scipy import HARD, ROWS, Call
from tests.numpy.compare import leaves, slope, total
from tests.scipy.compare import is_symmetric, libraries, mirrored, tensor, wrong
from tests.scipy.test_names import OURS
from tests.walking import walk
from wengert.scipy import special, stats

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
IDS = [f"{i}-{row.name}" for i, row in enumerate(ROWS)]
#: What `check_gradients` draws around: each name's first row, and all with the profile `thorough`.
FIRST = {row.name: i for i, row in reversed([*enumerate(ROWS)])}
DRAWN = range(len(ROWS)) if settings().max_examples > 20 else sorted(FIRST.values())
ROOM = "wengert.scipy."


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_values_and_derivatives(row: Call) -> None:
    assert [*wrong(row)] == []


def test_values_and_slopes_along_one_direction() -> None:
    """Of all arguments together: what takes no time of each row."""

    def check(_: str, at: int) -> None:
        row = ROWS[at]
        (ours, theirs), given, (values, slopes, _) = libraries(row), row.given, row.near
        tensors = {k: tensor(v).requires_grad_() for k, v in given.items()}
        results, expected = (leaves(row.run(*x)) for x in ((ours, tensors), (theirs, given)))
        for one, own in zip(results, expected, strict=True):
            assert one.dtype.name == np.asarray(own).dtype.name
            np.testing.assert_allclose(one.detach().numpy(), own, rtol=values, atol=values / 100)
        along = {k: np.sin(1.0 + np.arange(x.size)).reshape(x.shape) for k, x in given.items()}
        along |= {k: mirrored(v) for k, v in along.items() if is_symmetric(given[k])}
        found = total(results)
        if isinstance(found, wg.Tensor) and found.requires_grad:
            found.backward()
        moving = [(k, x.grad.numpy()) for k, x in tensors.items() if x.grad is not None]

        def moved(h: float) -> Any:
            return total(row.run(theirs, {k: x + h * along[k] for k, x in given.items()}))

        number = slope(moved, 0.0, 1.0, row.step)
        assert abs(sum(np.sum(g * along[k]) for k, g in moving) - number) < slopes * (
            len(given) + abs(number)
        )

    rooms = ("integrate.", "optimize.", "interpolate.griddata")
    walk(
        [(r.name, i) for i, r in enumerate(ROWS) if not r.name.startswith(rooms)], check, whole=True
    )


def _near(x: Any) -> Any:
    """Draws arrays close to a sample."""
    return st.integers(0, 100).map(lambda k: np.asarray(x * (1 + 1e-5 * k)))


@pytest.mark.slow
@pytest.mark.parametrize("row", [ROWS[i] for i in DRAWN], ids=[IDS[i] for i in DRAWN])
def test_check_gradients(row: Call) -> None:
    ours = libraries(row)[0]

    def f(*arrays: Any) -> Any:
        pairs = zip(row.given.items(), arrays, strict=True)
        results = row.run(ours, {k: mirrored(p) if is_symmetric(x) else p for (k, x), p in pairs})
        found = [x for x in leaves(results) if isinstance(x, wg.Tensor) and x.dtype.inexact]
        return found[0] if len(found) == 1 else tuple(found)

    wg.testing.check_gradients(
        f, *map(_near, row.given.values()), examples=1, backends=["numpy"], **row.options
    )


@pytest.mark.parametrize("module", [*OURS, "spatial.distance"])
def test_each_function_with_a_derivative_has_a_row(module: str) -> None:
    ours, theirs = import_module(ROOM + module), import_module(f"scipy.{module}")
    own = {
        name
        for name in dir(theirs)
        if name[0] != "_" and not isinstance(getattr(theirs, name), ModuleType)
        for one in [getattr(ours, name, None)]
        if str(getattr(one, "__module__", "")).startswith(ROOM)
        or type(one).__module__ == f"{ROOM}stats"
    }
    covered = set().union(*(row.covers() for row in ROWS))
    assert own
    assert {f"{module}.{name}" for name in own} - covered == set()
    if module == "stats":  # and so has each method
        text = " ".join(row.call for row in ROWS if isinstance(row.call, str))
        methods = {f"l.{n}.{key}(" for n in own for key in vars(getattr(ours, n)) if key[0] != "_"}
        assert [method for method in methods if method not in text] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", HARD)
def test_hard_points(name: str) -> None:
    """Derivatives by each argument that has some, of first and second order, by 40 digits."""
    theirs, points = HARD[name]
    wrong, order = [], ("jv", "yv", "iv", "kv", "hyp2f1")
    for point in points:
        for i in range(len(point) - 1 if name in order else 0, len(point)):

            def f(p: Any, i: int = i, point: Any = point) -> Any:
                return getattr(special, name)(
                    *[p if j == i else tensor(x) for j, x in enumerate(point)]
                )

            def exact(p: Any, i: int = i, point: Any = point) -> Any:
                return theirs(*[p if j == i else mpmath.mpf(x) for j, x in enumerate(point)])

            with mpmath.workdps(60):
                h = mpmath.mpf(abs(point[i]) or 1) * mpmath.mpf(10) ** -12
                expected = [float(mpmath.diff(exact, point[i], n, h=h)) for n in (1, 2)]
            found = [float(g(tensor(point[i]))) for g in (wg.grad(f), wg.grad(wg.grad(f)))]
            if not np.allclose(found, expected, rtol=[1e-9, 1e-7], atol=1e-300):
                wrong.append((point, i, found, expected))
    assert wrong == []


def test_a_sum_of_exponentials_with_an_infinite_one() -> None:
    x, b = tensor([np.inf, 1.0]), tensor([1.0, 2.0])
    assert float(special.logsumexp(x, b=b)) == np.inf
    found = special.logsumexp(x, b=[-1.0, 1.0], return_sign=True)
    assert [float(part) for part in found] == [np.inf, -1.0]


#: Functions of their variable alone.
ON_OTHERS = """
st.norm.cdf(x); st.uniform.sf(x); st.gamma.ppf(x, 2.0); st.beta.isf(x, 2.0, 3.0);
st.t.logcdf(x, 3.0)
st.laplace.logsf(x); st.chi2.pdf(x, 3.0); st.expon.logpdf(x); st.poisson.logpmf(1, x)
sp.gammainc(x, 0.7); sp.gammaincc(1.5, x); sp.betainc(x, 2.0, 0.3); sp.betaincc(2.0, x, 0.3)
sp.stdtr(3.0, x); sp.gammaincinv(2.0, x); sp.betaincinv(2.0, 3.0, x)
"""


def test_two_derivatives_on_the_standard_alone() -> None:
    """Its `where` takes no two numbers."""
    found = {}
    for name in ("numpy", "array_api_strict"):
        with wg.use_backend(name):
            for text in ON_OTHERS.replace("\n", ";").split(";"):
                if call := text.strip():
                    f = eval(f"lambda x: {call}", {"st": stats, "sp": special})
                    x = wg.asarray(0.4, dtype=wg.float64)
                    known = [wg.grad(f)(x).item(), wg.grad(wg.grad(f))(x).item()]
                    assert known == pytest.approx(found.setdefault(call, known), rel=1e-12), call
