"""check_gradients draws what it is told to, and is a test, a decorator and a call."""

import inspect
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

import wengert as wg
from tests.ops.cases import examples
from tests.scripts import python
from wengert.testing import Argument, Axis, WrongGradientError, check, check_gradients
from wengert.testing import strategies as ws
from wengert.testing.arguments import calls
from wengert.testing.backends import installed_backends
from wengert.testing.exploration import Drawn
from wengert.testing.snippets import function_code, value_code

NUMPY = {"backends": ["numpy"], "examples": 10}


def doubled(x):
    return x * x.detach()


# -- what is drawn ---------------------------------------------------------------------------------


@settings(max_examples=50)
@given(calls([("n", "m"), ("m", 2), (..., "n"), ..., ..., Axis(0), Axis(3, none=True), 7, "a"]))
def test_arguments_fit_together(drawn):
    x, y, batch, left, right, axis, other, seven, name = drawn
    assert x.shape[1] == y.shape[0]
    assert y.shape[1] == 2
    assert batch.shape[-1] == x.shape[0]
    np.broadcast_shapes(batch.shape[:-1], left.shape, right.shape)
    assert -2 <= axis < 2
    assert other is None or -left.ndim <= other < left.ndim
    assert (seven, name) == (7, "a")


@settings(max_examples=50)
@given(
    calls(
        [
            Argument(("n",), domain=(0.5, 1), special=[9.0]),
            Argument((2, 2), dtype="complex128", differentiated=False),
            Argument(("n",), away_from=[0], unique=True),
            Axis(1, several=True),
        ],
        min_side=1,
    )
)
def test_arguments_are_as_told(drawn):
    x, z, y, axes = drawn
    assert np.all(((x >= 0.5) & (x <= 1)) | (x == 9))
    assert isinstance(z, wg.Tensor)
    assert z.dtype is wg.complex128
    assert not z.requires_grad
    assert np.all(abs(y) >= 1 / 16)
    assert np.unique(y).size == y.size
    np.sum(np.zeros((2, 2)), axis=axes)


def test_the_function_tells_how_many_arguments_it_takes():
    seen = []

    def function(x, y, z=2.0):
        seen.append((x.shape, y.shape, x.dtype.name))
        return x * y * z

    check_gradients(dtypes=("float64", "complex128"), **NUMPY)(function)()
    assert {dtype for *_, dtype in seen} >= {"float64", "complex128"}
    assert any(a != b for a, b, _ in seen)
    with pytest.raises(TypeError, match="does not tell how many arguments"):
        check_gradients(**NUMPY)(lambda *x: x)


def test_strategies_and_containers():
    pairs = st.tuples(ws.arrays(shape=(2,)), st.integers(1, 3))
    lists = st.fixed_dictionaries({"a": ws.tensors(shape=(2,), requires_grad=True)})

    def function(pair, named):
        assert pair[0].requires_grad
        assert named["a"].requires_grad
        return {"sum": pair[0] * pair[1] + named["a"]}

    check_gradients(function, pairs, lists, **NUMPY)


def test_values_alone_are_checked_once():
    runs = []

    def function(x):
        runs.append(x.shape)
        return wg.sin(x)

    check_gradients(function, np.ones((2, 3)), backends=["numpy"])
    assert set(runs) == {(2, 3)}
    with pytest.raises(WrongGradientError, match="doubled: "):
        check_gradients(doubled, np.ones(()), backends=["numpy"])


@pytest.mark.slow
def test_all_backends_by_default():
    seen = set()

    def function(x):
        seen.add(x.backend.name)
        return x * x

    check_gradients(function, Argument((2,)), examples=1)
    assert {"numpy"} <= seen == {*installed_backends()}


# -- what comes of it ------------------------------------------------------------------------------


def test_a_decorated_function_is_a_test():
    @check_gradients(("n",), **NUMPY)
    def test_right(x):
        """Say what."""
        return wg.sin(x)

    assert test_right() is None
    code, own = test_right.__code__, inspect.unwrap(test_right.function).__code__
    assert (code.co_filename, code.co_firstlineno) == (__file__, own.co_firstlineno)
    assert code.co_name == test_right.__name__ == "test_right"
    assert test_right.__doc__ == "Say what."
    assert test_right.function(wg.ones(2)).shape == (2,)


@pytest.mark.slow
def test_code_of_a_counterexample_runs():
    with pytest.raises(WrongGradientError) as caught:
        check_gradients(doubled, Argument(("n",), domain=(1, 2)), min_side=1, **NUMPY)
    code = str(caught.value).partition("To see it again:\n\n")[2]
    assert f"from {__name__} import doubled" in code
    with pytest.raises(WrongGradientError, match="is wrong: d result 0"):
        exec("\n".join(line.strip() for line in code.splitlines()), {})


def test_errors_of_the_function_say_with_what():
    def fails(x):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no") as caught:
        check_gradients(fails, (2,), **NUMPY)
    assert any("wg.testing.gradcheck(fails, inputs" in note for note in caught.value.__notes__)


VALUES = [
    *(1.5, -0.0, np.inf, np.nan, complex(-0.0, 2), complex(1, -np.inf)),
    *([1, "a", (None,)], {"a": (2.0, [])}, np.array([[0.1, -0.0], [np.inf, 1e-300]])),
    *(np.zeros((0, 3)), np.array([1, 2], dtype=np.int32), wg.zeros((2, 0), dtype=wg.complex64)),
    *(wg.tensor([[0.1, wg.nan]], dtype=wg.float64, requires_grad=True), wg.tensor([1, 2])),
]


def test_values_as_code():
    for value in VALUES:
        assert repr(eval(value_code(value), {"wg": wg, "np": np})) == repr(value)


def test_functions_as_code():
    assert function_code(wg.exp, "f") == ([], "wg.exp")
    assert function_code(doubled, "f") == ([f"from {__name__} import doubled"], "doubled")

    def local(x):
        return x + 1

    assert function_code(local, "f") == (["def local(x):", "    return x + 1"], "local")
    square = lambda x: x * x
    assert function_code(square, "f") == (["f = lambda x: x * x"], "f")


class Halved(wg.autograd.Function):
    forward = staticmethod(lambda ctx, x: x / 2)
    backward = staticmethod(lambda ctx, g: g)


def test_methods_as_code():
    """What a method needs is its class; an object's own cannot be written as code."""
    assert function_code(Halved.apply, "f") == ([f"from {__name__} import Halved"], "Halved.apply")

    class Local(Halved):
        at = 0

    assert function_code(Local.apply, "f") == (
        ["class Local(Halved):", "    at = 0"],
        "Local.apply",
    )
    lines, name = function_code(wg.nn.ReLU().forward, "f")
    assert name == "f" and len(lines) == 1 and lines[0].startswith("f = ...  # ReLU.forward, line ")


def test_a_function_that_is_given_by_its_apply_is_named_in_the_message():
    told = r"^Halved\.apply: the gradient is wrong"
    with pytest.raises(WrongGradientError, match=told) as caught:
        check_gradients(Halved.apply, ..., **NUMPY)
    assert "gradcheck(Halved.apply, inputs" in str(caught.value)


# -- misuse ----------------------------------------------------------------------------------------


def test_misuse():
    for options, text in [
        ({"order": 3}, "order should be 1 or 2"),
        ({"kinks": "pass"}, "kinks should be"),
        ({"settings": 20}, r"settings should be hypothesis\.settings, not int"),
    ]:
        with pytest.raises((ValueError, TypeError), match=text):
            check_gradients(wg.exp, ..., **options)
    with pytest.raises(TypeError, match="is no shape"):
        Argument([2, 3])
    with pytest.raises(ValueError, match="at least one input"):
        check_gradients(lambda n: wg.ones(n), 3, backends=["numpy"])


@pytest.mark.slow
def test_hypothesis_is_asked_for_by_name():
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "import wengert as wg\n"
        "wg.testing.gradcheck\n"
        "try:\n    wg.testing.check_gradients\n"
        "except ImportError as error:\n    assert 'wengert[testing]' in str(error), error\n"
        "else:\n    raise SystemExit('imported')\n"
    )
    python("-c", code)


def test_a_backend_that_is_missing_is_explained_where_it_was_not_named(monkeypatch):
    from wengert.backends import BackendError

    monkeypatch.setattr(check, "installed_backends", lambda: ["nosuch"])
    for options, notes in (({}, 1), ({"backends": ["nosuch"]}, 0)):
        with pytest.raises(BackendError, match="nosuch") as told:
            check_gradients(doubled, np.ones(()), **options)
        said = [note for note in getattr(told.value, "__notes__", []) if "every backend" in note]
        assert len(said) == notes


def test_arguments_are_known_by_their_annotations_and_names():
    from wengert.testing.targets import _argument

    for name in ("axis", "dim"):
        assert _argument(name, int) == _argument(name, None) == Axis(0)
    assert isinstance(_argument("n", int), st.SearchStrategy)
    assert _argument("x", float) == Argument(())
    assert _argument("x", complex) == Argument((), dtype="complex128")
    for hint in (wg.Tensor, None, Any, np.ndarray, np.typing.NDArray[np.float64], ArrayLike):
        assert _argument("x", hint) is ...
    assert _argument("x", str) is _argument("x", list[int]) is None


# -- other magnitudes ------------------------------------------------------------------------------


def with_slope(value, slope):
    class Made(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return value(x)

        @staticmethod
        def backward(ctx, g):
            return g * slope(*ctx.saved_tensors)

    return Made.apply


SCALED = {"backends": ["numpy"], "order": 1, "settings": settings(max_examples=100)}


def test_what_was_drawn_is_told():
    drawn = Drawn()
    assert str(drawn) == "0 calls"
    drawn.add((np.asarray([[0.0, -2.5]]), 3, "name"))
    drawn.add((np.asarray([1e-3, np.inf], dtype="float32"), [wg.asarray(40 + 30j)]))
    assert str(drawn) == (
        "2 calls: complex64, float32, float64; shapes (), (2,), ... (1, 2); magnitudes 0.001 to 50"
    )
    with pytest.raises(WrongGradientError) as info:
        check_gradients(doubled, ..., **NUMPY)
    line = r"drawn: +(\d+) calls: (.*float64.*); shapes (.*); (zeros|magnitudes .* to .*)"
    assert re.search(line, str(info.value))


@pytest.mark.slow
def test_mistakes_at_other_magnitudes_are_found():
    """Usual values, from -2 to 2, have the right slope."""
    missed = []
    for name, value, slope in [
        ("above 4", wg.softplus, lambda x: wg.where(x > 4, 0 * x + 1, wg.expit(x))),
        ("below -30", wg.softplus, lambda x: wg.where(x < -30, 0 * x + 1, wg.expit(x))),
        ("far", lambda x: 2 * x, lambda x: wg.where(abs(x) > 100, 0 * x + 3, 0 * x + 2)),
        ("near", wg.sin, lambda x: wg.cos(x) * wg.where((abs(x) < 1e-3) & (x != 0), 0.5, 1.0)),
    ]:
        try:
            check_gradients(with_slope(value, slope), ..., **SCALED)
        except WrongGradientError as error:
            if "drawn:     " in str(error):
                continue
        missed.append(name)
    assert not missed


RIGHT = {"order": 2, "settings": settings(max_examples=examples(50))}


@pytest.mark.slow
def test_right_functions_pass_at_other_magnitudes():
    failed = []
    for name, function, *arguments in [
        *((f.__name__, f, ...) for f in (wg.exp, wg.log, wg.sin, wg.softplus)),
        ("1/x", lambda x: 1 / x, ...),
        ("product", wg.matmul, ("n", "m"), ("m", "k")),
        ("far in a softmax", lambda x: wg.log(wg.sum(wg.nn.functional.softmax(x, -1)[:1])), ("n",)),
        ("bounded", wg.acos, Argument(domain=(-0.9, 0.9))),
        ("a kink", wg.abs, Argument(away_from=[0])),
    ]:
        try:
            check_gradients(function, *arguments, **SCALED | RIGHT, min_side=1)
        except WrongGradientError as error:
            failed.append(f"{name}: {error}")
    assert not failed


def test_a_failure_on_a_slow_backend_is_shrunk_on_numpy(monkeypatch):
    monkeypatch.setitem(check.SHARE, "array_api_strict", 0.5)
    with pytest.raises(WrongGradientError, match="numpy, as on array_api_strict"):
        check_gradients(doubled, ..., backends=["array_api_strict"], examples=10)
