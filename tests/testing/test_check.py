"""check_gradients draws what it is told to, and is a test, a decorator and a call."""

import inspect
import re

import numpy as np
import pytest
from hypothesis import settings

import wengert as wg
from tests.ops.cases import examples
from tests.scripts import python
from tests.testing.functions import of_array
from wengert.testing import Argument, WrongGradientError, check, check_gradients
from wengert.testing.backends import installed_backends
from wengert.testing.exploration import Drawn

NUMPY = {"backends": ["numpy"], "examples": 10}


def doubled(x):
    return x * x.detach()


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


class Halved(wg.autograd.Function):
    forward = staticmethod(lambda ctx, x: x / 2)
    backward = staticmethod(lambda ctx, g: g)


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


# -- other magnitudes ------------------------------------------------------------------------------


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
            wrong = of_array(value, lambda x, g, slope=slope: g * slope(x))
            check_gradients(wrong, ..., **SCALED)
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
