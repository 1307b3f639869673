"""The dtype of operands of different kinds: one rule on every backend, written out here again.

The rule is PyTorch's: of a lower kind beside a higher one, the higher one's dtype stands; of a
Python number of a higher kind than the arrays, and of integers that a floating function is given,
the default dtype. Where the standard says more, that holds.
"""

import itertools
import math
import warnings

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import operation
from tests.walking import lines_of, walk
from wengert import func, linalg, nn, optimize, special

KINDS = {"bool": 0, "int8": 1, "uint8": 1, "int16": 1, "int64": 1}
KINDS |= {"float32": 2, "float64": 2, "complex64": 3, "complex128": 3}
NUMBERS = {True: 0, 2: 1, 2.5: 2, 2.5j: 3}


def result_of(a, b, default="float32"):
    """The common dtype of two dtypes, or of a dtype and a Python number."""
    if isinstance(b, str):
        if KINDS[a] == KINDS[b]:
            return np.result_type(a, b).name  # where NumPy does what the standard says
        low, high = sorted((a, b), key=KINDS.get)
        return "complex128" if (low, high) == ("float64", "complex64") else high
    if NUMBERS[b] <= KINDS[a]:
        return a
    complexes = {"float32": "complex64", "float64": "complex128"}
    return ("", "int64", default, complexes[a if KINDS[a] == 2 else default])[NUMBERS[b]]


def array(dtype, values=(1, 2)):
    return wg.asarray(np.asarray(values), dtype=dtype)


#: Functions of two, and what makes of the common dtype that of the result.
SAME = lambda dtype, default: dtype
FLOATING = lambda dtype, default: dtype if KINDS[dtype] > 1 else default
BINARY = {
    **dict.fromkeys(("add", "subtract", "multiply", "pow", "matmul", "vecdot"), SAME),
    **dict.fromkeys(("floor_divide", "remainder", "maximum", "minimum"), SAME),
    **dict.fromkeys(("divide", "atan2", "hypot", "logaddexp", "copysign", "xlogy"), FLOATING),
}
REAL = {"floor_divide", "remainder", "maximum", "minimum"}
REAL |= {"atan2", "hypot", "logaddexp", "copysign", "xlogy"}
COMPOUND = {
    "where": lambda a, b: wg.where(array("bool"), a, b),
    "where not": lambda a, b: wg.where(array("bool", (0, 0)), a, b),
    "clip": lambda a, b: wg.clip(a, b, None),
    "concat": lambda a, b: wg.concat([a, b]),
    "concat of three": lambda a, b: wg.concat([a, b, a]),
    "stack": lambda a, b: wg.stack([a, b]),
    "tensordot": lambda a, b: wg.tensordot(a, b, axes=1),
    "einsum": lambda a, b: wg.einsum("i,j->ij", a, b),
    "outer": lambda a, b: linalg.outer(a, b),
    "result_type": lambda a, b: wg.empty(0, dtype=wg.result_type(a, b)),
}
CASES = [(name, getattr(wg, name), settle) for name, settle in BINARY.items()]
CASES += [(name, function, SAME) for name, function in COMPOUND.items()]
NO_NUMBERS = {"matmul", "vecdot", "concat", "concat of three", "stack", "tensordot", "einsum"}
NO_NUMBERS |= {"outer"}


def defined(name, a, b):
    """Whether a function takes such operands; booleans alone are no numbers."""
    kinds = [KINDS[x] if isinstance(x, str) else NUMBERS[x] for x in (a, b)]
    if max(kinds) == 3 and (name in REAL or name == "clip"):
        return False
    if name == "clip" and kinds == [1, 1] and isinstance(b, str) and result_of(a, b) != a:
        return False  # bounds that the dtype of what is clipped may not hold
    if not min(kinds) and (name == "einsum" or (name == "pow" and b == 2)):
        return False  # a square is of a boolean alone
    return max(kinds) > 0 and not (name in NO_NUMBERS and not isinstance(b, str))


@pytest.fixture(params=["float32", "float64"])
def default(request):
    wg.set_default_dtype(request.param)
    yield request.param
    wg.set_default_dtype("float32")


@pytest.mark.parametrize(("name", "function", "settle"), CASES, ids=[case[0] for case in CASES])
def test_two_operands(name, function, settle, default, backend):
    if (name, backend.name) == ("tensordot", "dask"):
        pytest.skip("dask sums small integers in wide ones")
    wrong = []
    for a, b in itertools.product(KINDS, [*KINDS, *NUMBERS]):
        if not defined(name, a, b):
            continue
        x, y = array(a), array(b) if isinstance(b, str) else b
        orders = [(x, y)]
        if not isinstance(b, str) and name not in ("clip", "result_type"):
            orders.append((y, x))
        for operands in orders:
            expected = settle(result_of(a, b, default), default)
            kind = KINDS[b] if isinstance(b, str) else NUMBERS[b]
            if name == "clip" and kind == KINDS[a]:  # the standard: that of what is clipped
                expected = a
            found = function(*operands).dtype.name
            if found != expected:
                wrong.append((a, b, found, expected))
    assert not wrong


@pytest.mark.parametrize("name", sorted(set(BINARY) - {"matmul", "vecdot"}))
def test_values_are_computed_in_the_common_dtype(name, backend):
    """As on operands that were converted before, to the last bit."""
    for a, b in itertools.product(("bool", "int8", "int64"), ("float32", "float64", 2.5)):
        x = array(a, (1, 1, 0) if a == "bool" else (1, 2, 3))
        y = array(b, (0.7, 1.1, 2.3)) if isinstance(b, str) else b
        common = result_of(a, b)
        function = getattr(wg, name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of 0 ** -x and the like
            found = function(x, y)
            wanted = function(wg.astype(x, common), y)
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_derivatives_beside_integers(dtype, backend):
    """Integers are constants in the dtype of what is differentiated, in each place."""
    n = array("int64", (1, 2, 3))
    for f in (
        lambda x: wg.sum(x * n),
        lambda x: wg.sum(n / x),
        lambda x: x @ n,
        lambda x: wg.sum(wg.where(n > 1, x, n)),
        lambda x: wg.sum(wg.concat([x, n]) ** 2),
        lambda x: wg.sum(wg.stack([n, x]) ** 2),
        lambda x: wg.sum(wg.maximum(n - 1, x)),
        lambda x: wg.sum(x**n),
        lambda x: wg.einsum("i,i->", x, n),
    ):
        x = wg.asarray([0.5, 1.5, 2.5], dtype=dtype)
        value, gradient = wg.value_and_grad(f)(x)
        assert value.dtype.name == gradient.dtype.name == dtype
        _, tangent = wg.jvp(f, (x,), (wg.ones_like(x),))
        assert tangent.dtype.name == dtype
        second = wg.hessian(f)(x)
        assert second.dtype.name == dtype
        leaf = wg.tensor([0.5, 1.5, 2.5], dtype=dtype, requires_grad=True)
        f(leaf).backward()
        np.testing.assert_array_equal(leaf.grad.numpy(), gradient.numpy())
        np.testing.assert_allclose(wg.sum(gradient).item(), tangent.item(), rtol=1e-6)


#: Elementwise functions of one floating array, and one of two.
FLOATS = lines_of("""
sqrt  exp  expm1  log  log1p  log2  log10  sin  cos  tan  asin  acos  atan  sinh  cosh  tanh  asinh
acosh  reciprocal  expit  softplus  silu  xlog1py""")


def test_floating_functions_of_integers(default, backend):
    def check(name, dtype):
        function = getattr(wg, name, None) or getattr(special, name)
        operands = [array(dtype, (1, 1))] * (1 + (name == "xlog1py"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what NumPy computes in eight bits before
            found = function(*operands)
        assert found.dtype.name == default
        wanted = function(*[wg.astype(x, default) for x in operands])
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())

    walk(itertools.product(FLOATS, ("int8", "uint8", "int64")), check, whole=True)


def test_arrays_of_no_axes_count_as_any_others(backend):
    """The standard knows no category of these; PyTorch alone does."""
    assert (array("float32") * wg.asarray(2.5, dtype="float64")).dtype is wg.float64
    assert (array("int8") + wg.asarray(2, dtype="int64")).dtype is wg.int64
    assert (array("int64") * wg.asarray(2.5, dtype="float32")).dtype is wg.float32
    x = wg.ones(2, dtype="float32", requires_grad=True)
    assert (x * wg.asarray(2.5, dtype="float64")).dtype is wg.float64
    # Slopes and orders are options.
    functions = [getattr(special, n) for n in {*special.__all__} - {"leaky_relu", "polygamma"}]
    functions += [getattr(wg, name) for name in BINARY if name not in ("matmul", "vecdot")]
    wide, wrong = wg.asarray(2.0, dtype="float64"), []
    for function in functions:
        for operands in ((x, wide), (wide, x)):
            try:
                found = function(*operands)
            except (TypeError, ValueError, NotImplementedError):  # of one operand, or of integers
                continue
            if isinstance(found, wg.Tensor) and found.dtype is not wg.float64:
                wrong.append((function.__name__, operands[0].dtype.name))
    assert not wrong
    for a, b in itertools.permutations(("int8", "int32"), 2):
        base, exponent = wg.asarray(3, dtype=a), wg.asarray(2, dtype=b)
        assert (base**exponent).dtype is wg.int32


def test_integers_without_a_common_dtype(backend):
    for function in (wg.add, wg.multiply, wg.divide, wg.maximum):
        with pytest.raises(TypeError, match=r"uint64.*int64|int64.*uint64"):
            function(array("uint64"), array("int64"))
    with pytest.raises(TypeError, match="no common dtype"):
        wg.result_type(wg.uint64, wg.int8)


#: Beyond the dtype, and just within.
BEYOND = {"int8": (300, -129), "uint8": (-1, 256), "int32": (2**31,), "int64": (2**63, 2**70)}


@pytest.mark.parametrize("dtype", BEYOND)
def test_numbers_beyond_the_dtype(dtype, backend):
    x = array(dtype)
    yes = array("bool", (1, 0))
    calls = (
        lambda n: x + n,
        lambda n: n + x,
        lambda n: x - n,
        lambda n: n * x,
        lambda n: x // n,
        lambda n: x % n,
        lambda n: x**n,
        lambda n: wg.maximum(x, n),
        lambda n: wg.where(yes, x, n),
        lambda n: wg.clip(x, 0, n) if n > 0 else wg.clip(x, n, None),
        lambda n: wg.full((2,), n, dtype=dtype),
        lambda n: wg.full_like(x, n),
        lambda n: wg.asarray([n], dtype=dtype),
        lambda n: x.__setitem__(0, n),
        lambda n: x & n,
    )
    for number, call in itertools.product(BEYOND[dtype], calls):
        with pytest.raises(OverflowError):
            call(number)
    assert x.tolist() == [1, 2]
    top = int(np.iinfo(dtype).max)
    assert (x * 0 + top).tolist() == [top, top]
    assert wg.where(yes, x, top).tolist() == [1, top]


def test_comparisons_look_at_the_numbers(backend):
    """Not at what is left of them in float32, or in eight bits."""
    n = array("int64", (2**24 + 1, 7))
    assert (n == wg.asarray([2.0**24, 7.0], dtype="float32")).tolist() == [False, True]
    assert (n > 2.0**24).tolist() == [True, False]
    assert (array("uint8", (44, 255)) == 44).tolist() == [True, False]
    if backend.name != "array_api_strict":  # which refuses
        assert (array("uint8", (44, 255)) == 300).tolist() == [False, False]
        assert (array("uint8", (44, 255)) > -1).tolist() == [True, True]


# -- what raw arrays imply -----------------------------------------------------------------------

CONSTANTS = [0.1, 0.2]


def weighted(x):
    return wg.sum(x * wg.asarray(CONSTANTS))


def shares(x):
    """Constants of integers: thirds."""
    return wg.sum(x * (wg.arange(1, 3) / 3))


RAW = {
    "grad": lambda f, x: wg.grad(f)(x),
    "value_and_grad": lambda f, x: wg.value_and_grad(f)(x)[1],
    "elementwise_grad": lambda f, x: func.elementwise_grad(f)(x),
    "vjp": lambda f, x: wg.vjp(f, x)[1](1.0)[0],
    "jacobian": lambda f, x: wg.jacobian(f)(x),
    "jacfwd": lambda f, x: func.jacfwd(f)(x),
    "jacrev": lambda f, x: func.jacrev(f)(x),
    "jvp": lambda f, x: np.stack([wg.jvp(f, (x,), (e,))[1] for e in np.eye(2, dtype=x.dtype)]),
    "linearize": lambda f, x: np.stack(
        [func.linearize(f, x)[1](e) for e in np.eye(2, dtype=x.dtype)]
    ),
    "hessian": lambda f, x: np.diag(wg.hessian(lambda y: f(y**2) / 2)(x)),
    "ggnvp": lambda f, x: func.ggnvp(
        lambda y: y * 1.0, lambda y: f(y**2) / 2, (x,), (np.ones_like(x),)
    )[0],
    "hvp": lambda f, x: wg.hvp(lambda y: f(y**2) / 2, (x,), (np.ones_like(x),))[0],
    "nested": lambda f, x: wg.grad(lambda y: wg.sum(wg.grad(f)(y) * y))(x),
    "in a list": lambda f, x: wg.grad(lambda p: f(p[0]))([x])[0],
    "compiled": lambda f, x: wg.compile(lambda y: wg.grad(f)(y))(x),
}


@pytest.mark.parametrize("f", [weighted, shares])
def test_transforms_of_raw_arrays_lose_no_digit(f):
    exact = np.asarray(CONSTANTS) if f is weighted else np.asarray([1, 2]) / 3

    def check(_, transform):
        for dtype, rtol in ((np.float64, 1e-15), (np.float32, 1e-6)):
            found = np.asarray(transform(f, np.ones(2, dtype)))
            assert found.dtype == dtype
            np.testing.assert_allclose(found, exact, rtol=rtol)
        assert wg.get_default_dtype() is wg.float32

    walk(RAW.items(), check, whole=True)


SINGLE, DOUBLE = np.ones(2, np.float32), np.ones(2)
SAY = [
    ((SINGLE,), {}, "float32"),
    ((DOUBLE,), {}, "float64"),
    ((DOUBLE + 0j,), {}, "float64"),
    ((1.5,), {}, "float64"),
    ((SINGLE, 0.5), {}, "float32"),
    ((SINGLE, DOUBLE), {}, "float64"),
    ((SINGLE,), {"data": {"x": [DOUBLE]}}, "float64"),
    ((wg.ones(2),), {}, "float32"),
    ((wg.ones(2, dtype=wg.float64),), {}, "float32"),
    ((wg.ones(2), 0.5), {}, "float32"),
]


@pytest.mark.parametrize(("args", "kwargs", "expected"), SAY)
def test_which_arguments_have_a_say(args, kwargs, expected):
    seen = []

    def look(x, *args, **kwargs):
        seen.append(wg.get_default_dtype().name)
        return wg.real(wg.sum(x) * 1.0)

    wg.grad(look)(*args, **kwargs)
    if len(args) == 1 and not kwargs:
        wg.vjp(look, *args)
    assert {*seen} == {expected}
    with pytest.raises(ZeroDivisionError):
        wg.grad(lambda x: 1 / 0)(DOUBLE)
    assert wg.get_default_dtype() is wg.float32
    wg.set_default_dtype("float64")
    try:
        seen.clear()
        wg.grad(look)(SINGLE)
        assert seen == ["float64"]  # the user's own choice is not narrowed
    finally:
        wg.set_default_dtype("float32")


def test_scipys_optimisers_of_raw_arrays():
    pytest.importorskip("scipy")
    exact = np.asarray(CONSTANTS)
    tight = {"gtol": 1e-14}
    found = optimize.minimize(
        lambda x: wg.sum((x - wg.asarray(CONSTANTS)) ** 2), np.zeros(2), options=tight
    )
    np.testing.assert_allclose(found.x, exact, rtol=1e-13)
    found = optimize.least_squares(lambda x: x - wg.asarray(CONSTANTS), np.zeros(2), gtol=1e-15)
    np.testing.assert_allclose(found.x, exact, rtol=1e-13)
    found = optimize.root(lambda x: x - wg.asarray(CONSTANTS), np.zeros(2), tol=1e-15)
    np.testing.assert_allclose(found.x, exact, rtol=1e-13)


def scaled_by_a_rule(x):
    """The identity, whose rule is written by a user."""

    @func.custom_vjp
    def f(x):
        return x * 1.0

    f.defvjp(lambda x: (x * 1.0, None), lambda _, g: (g * wg.asarray(0.1),))
    return f(x)


def scaled_by_a_hook(x):
    y = x * 1.0
    if y.requires_grad:
        y.register_hook(lambda g: g * wg.asarray(0.1))
    return y


BACKWARD = {
    "custom_vjp": scaled_by_a_rule,
    "Function": operation(lambda ctx, x: x * 1.0, lambda ctx, g: g * wg.asarray(0.1)),
    "hook": scaled_by_a_hook,
    "checkpoint": lambda x: wg.checkpoint(lambda h: h * wg.asarray(0.1), x),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_users_code_in_the_sweep_loses_no_digit_either(name):
    f, x, exact = BACKWARD[name], np.ones(2), np.full(2, 0.1)
    slope = lambda x: wg.sum(f(x))
    _, pullback = wg.vjp(f, x)  # called when the transform is over
    founds = {
        "grad": wg.grad(slope)(x),
        "vjp": pullback(np.ones(2))[0],
        "jacrev": np.diag(func.jacrev(f)(x)),
        "minimize": optimize.minimize(slope, x, options={"maxiter": 0}).jac,
        "least_squares": np.diag(optimize.least_squares(f, x, jac="reverse", max_nfev=1).jac),
    }
    for how, found in founds.items():
        np.testing.assert_allclose(found, exact, rtol=1e-15, err_msg=how)
    assert wg.get_default_dtype() is wg.float32


# -- code of other libraries ---------------------------------------------------------------------


def test_a_tensors_namespace_makes_constants_in_double_precision(backend):
    xp = wg.ones(2).__array_namespace__()
    assert wg.asarray(0.1).dtype is wg.float32
    assert xp.asarray(0.1).item() == 0.1
    assert xp.linspace(0, 1, 4)[1].item() == pytest.approx(1 / 3, rel=1e-15)
    for made in (xp.ones(2), xp.zeros(2), xp.empty(2), xp.eye(2), xp.full((1,), 0.5)):
        assert made.dtype is wg.float64
    assert xp.asarray(1j).dtype is wg.complex128
    assert xp.fft.fftfreq(3).dtype is wg.float64
    assert xp.divide(xp.asarray(1), xp.asarray(3)).item() == 1 / 3
    assert xp.result_type(xp.int64, 1.0) is wg.float64
    assert xp.__array_namespace_info__().default_dtypes()["real floating"] is wg.float64
    assert xp.asarray(wg.ones(2)).dtype is wg.float32
    x = wg.ones(2, requires_grad=True)
    assert xp.sum(xp.multiply(x, 2)).dtype is wg.float32
    assert wg.get_default_dtype() is wg.float32
    assert math.isclose(xp.pi, math.pi)


# -- layers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 4, 3)])
def test_a_layer_takes_its_own_dtype_alone(shape, backend):
    for bias in (True, False):
        layer = nn.Linear(3, 2, bias=bias)
        for dtype in ("float64", "int64", "complex64"):
            x = wg.ones(shape, dtype=dtype)
            with pytest.raises(
                RuntimeError,
                match=rf"linear .*input of {dtype}, weight of float32.*wg\.astype\(x, wg",
            ):
                layer(x)
        layer.to(wg.float64)
        assert layer(wg.ones(shape, dtype=wg.float64)).dtype is wg.float64
        with pytest.raises(RuntimeError, match=r"module\.to\(wg\.float32\)"):
            layer(wg.ones(shape))
    assert (wg.ones((2, 3)) @ wg.ones((3, 2), dtype=wg.float64)).dtype is wg.float64


def test_a_layer_names_what_is_no_array(backend):
    layer = nn.Linear(3, 2)
    for given in ([1.0, 2.0, 3.0], "abc", None):
        with pytest.raises(TypeError, match=f"a {type(given).__name__} as input; make a Tensor"):
            layer(given)
    with pytest.raises(TypeError, match="a list as bias"):
        nn.functional.linear(wg.ones(3), wg.ones((2, 3)), [1.0, 2.0])
