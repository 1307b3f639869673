"""What Wengert composes where a library has no kernel, run beside the kernel that NumPy has."""

import warnings
from functools import partial

import numpy as np
import pytest

import wengert as wg
from backend_check.calls import FUNCTIONS, split_arguments
from tests.catalogue.table import TABLE
from tests.ops.cases import apply, check_examples, function, leaves
from tests.ops.spaces import SPACES, choices
from tests.ops.watching import watched
from wengert.backends import namespaces
from wengert.ops.special.series import BERNOULLI
from wengert.tape.primitive import PRIMITIVES

XP = namespaces[np.ndarray]


def is_hidden(name):
    kernel = PRIMITIVES[name].kernels[np.ndarray]
    return not (isinstance(kernel, partial) and kernel.func is PRIMITIVES[name].composite)


HIDDEN = [
    (name, kind)
    for name, entry in sorted(TABLE.items())
    if PRIMITIVES[name].composite is not None and is_hidden(name)
    for kind in entry.kinds()
]


def equal(found, expected, name):
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    # Both lose the last digits on the way, and by different ways.
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15, err_msg=name)


def compared(names, function, case):
    """Compare all calls of some primitives in a function with what is composed for them."""
    calls = []
    with watched(lambda call: calls.append(call) if call.primitive.name in names else None):
        function()
    for call in calls:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            inputs = [x.copy() if isinstance(x, np.ndarray) else x for x in call.inputs]
            found = call.primitive.composite(XP, *inputs, **call.parameters)
        for ours, theirs in zip(
            found if call.primitive.several else (found,), call.results, strict=True
        ):
            equal(np.asarray(ours), np.asarray(theirs), repr(case))


@pytest.mark.parametrize(("name", "kind"), HIDDEN)
def test_a_composite_is_what_the_kernel_is(name, kind):
    entry = TABLE[name]

    def check(case):
        compared({name}, lambda: apply(function(name, entry), case, leaves(case)), case)

    check_examples(12, check, getattr(entry, kind))


def with_tensors(value):
    if isinstance(value, list):
        return [with_tensors(each) for each in value]
    return wg.asarray(value) if isinstance(value, np.ndarray) else value


@pytest.mark.whole
@pytest.mark.parametrize(
    "name", dict.fromkeys(name for names, _ in SPACES for name in names.split())
)
def test_composites_take_all_options(name):
    """What a function calls of them for each pair of its options."""
    names = {row for row, _ in HIDDEN}
    for chosen in choices(name):
        args, kwargs = split_arguments(name, chosen)
        args, kwargs = with_tensors(args), {k: with_tensors(v) for k, v in kwargs.items()}
        with wg.use_backend("numpy"):
            compared(names, lambda: FUNCTIONS[name](*args, **kwargs), chosen)  # noqa: B023


GRID = np.concatenate(
    [np.linspace(-29.87, 30.13, 601), np.geomspace(1e-8, 1e8, 300), np.linspace(0.003, 0.997, 200)]
)
EDGES = np.array([0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -2.0, 1e-300, 1e100, np.inf, -np.inf, np.nan])
HUGE = np.array([1e154, 1e155, 1e300, 1.7e308])
PARAMETERS = {
    "polygamma": [{"n": n} for n in (0, 1, 2, 5)],
    "logistic_bell": [{"width": 1.3}],
    "log_softmax": [{"axis": (0,)}],
    "logsumexp": [{"axis": (0,), "keepdims": keepdims} for keepdims in (False, True)],
    "softmax": [{"axis": (0,)}],
}
SPECIAL = sorted(
    name
    for name in {name for name, kind in HIDDEN if kind == "real"}
    if PRIMITIVES[name].inputs in (["x"], ("x",))
    and "special" in PRIMITIVES[name].composite.__module__
)


@pytest.mark.parametrize("name", SPECIAL)
def test_composites_have_the_kernels_digits_everywhere(name):
    primitive = PRIMITIVES[name]
    for parameters in PARAMETERS.get(name, [{}]):
        for points in (GRID, EDGES, HUGE, -HUGE):
            # SciPy says -inf of gammaln at -inf, beside inf at all large negative numbers.
            points = points[points > -np.inf] if name == "gammaln" else points
            with np.errstate(all="ignore"):
                found = primitive.composite(XP, points, **parameters)
                expected = primitive.kernels[np.ndarray](points, **parameters)
            # The last digits are lost beside zeros of a function, and where it is subnormal.
            np.testing.assert_allclose(found, expected, rtol=2e-13, atol=1e-300)


PAIRS = {
    "zeta": (np.linspace(1.07, 40, 41), np.geomspace(0.01, 1e4, 43)),
    "rel_entr": (np.append(EDGES, np.geomspace(1e-8, 1e8, 33)),) * 2,
}


@pytest.mark.parametrize("name", PAIRS)
def test_composites_of_two_have_the_kernels_digits_everywhere(name):
    x, y = (array.reshape(-1) for array in np.meshgrid(*PAIRS[name]))
    with np.errstate(all="ignore"):
        found = PRIMITIVES[name].composite(XP, x, y)
        expected = PRIMITIVES[name].kernels[np.ndarray](x, y)
    np.testing.assert_allclose(found, expected, rtol=2e-13, atol=1e-300)


def test_the_beta_function_of_numbers_whose_sum_overflows():
    a = np.array([1e308, 1.2e308])
    with np.errstate(all="ignore"):
        # Of two equal numbers x it is -2 x log 2, but for what is small beside that.
        found = PRIMITIVES["betaln"].composite(XP, a, a)
        np.testing.assert_array_equal(PRIMITIVES["beta"].composite(XP, a, a), 0)
    np.testing.assert_allclose(found / a, -2 * np.log(2), rtol=1e-15)


def test_bernoulli_s_numbers():
    mpmath = pytest.importorskip("mpmath")
    assert [float(mpmath.bernoulli(2 * k)) for k in range(1, 11)] == list(BERNOULLI)
