"""NumPy's and PyTorch's methods: their values, their derivatives, and what is refused."""

import importlib
import inspect
import re
import sys
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.project import stubs
from tests.restoring import restore
from tests.walking import walk
from wengert.backends import Backend
from wengert.names import HINTS
from wengert.ops import methods, operators

CUBE = np.arange(24.0).reshape(2, 3, 4) - 7
SQUARE = CUBE[0, :, :3]

#: An array, a call of a method, and the same call of NumPy's arrays.
LIKE_NUMPY: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "copy": (CUBE, lambda x: x.copy()),
    "cumprod": (SQUARE, lambda x: x.cumprod(1)),
    "cumprod of all": (SQUARE, lambda x: x.cumprod()),
    "cumsum": (CUBE, lambda x: x.cumsum(0)),
    "cumsum of all": (CUBE, lambda x: x.cumsum()),
    "diagonal": (CUBE, lambda x: x.diagonal()),
    "diagonal of other axes": (CUBE, lambda x: x.diagonal(1, 2, 0)),
    "diagonal below": (CUBE, lambda x: x.diagonal(offset=-1, axis1=1, axis2=2)),
    "dot": (SQUARE, lambda x: x.dot(x)),
    "dot of vectors": (SQUARE[0], lambda x: x.dot(x[::-1])),
    "dot with more axes": (CUBE, lambda x: x.dot(x.swapaxes(1, 2))),
    "dot with a number": (SQUARE, lambda x: x.dot(2)),
    "dot with a list": (SQUARE, lambda x: x.dot([1.0, 2.0, 3.0])),
    "flatten": (CUBE, lambda x: x.flatten()),
    "flatten of a number": (np.array(2.0), lambda x: x.flatten()),
    "ravel": (CUBE, lambda x: x.ravel()),
    "reshape": (CUBE, lambda x: x.reshape(4, -1)),
    "reshape to a tuple": (CUBE, lambda x: x.reshape((4, 6))),
    "repeat": (SQUARE, lambda x: x.repeat(2, axis=0)),
    "squeeze": (CUBE[:, None, :, None], lambda x: x.squeeze()),
    "swapaxes": (CUBE, lambda x: x.swapaxes(0, -1)),
    "trace": (CUBE, lambda x: x.trace()),
    "trace above": (CUBE, lambda x: x.trace(1, 1, 2)),
    "transpose": (CUBE, lambda x: x.transpose()),
    "transpose by a tuple": (CUBE, lambda x: x.transpose((1, 2, 0))),
    "transpose by numbers": (CUBE, lambda x: x.transpose(1, 2, 0)),
    "transpose of a matrix": (SQUARE, lambda x: x.transpose(1, 0)),
    "transpose of a matrix, from the end": (SQUARE, lambda x: x.transpose(-1, -2)),
    "transpose by None": (SQUARE, lambda x: x.transpose(None)),
}

#: As above, of PyTorch's tensors.
LIKE_PYTORCH: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "expand": (SQUARE[:, :1], lambda x: x.expand(2, -1, 3)),
    "expand to a tuple": (SQUARE[:, :1], lambda x: x.expand((3, 3))),
    "expand_as": (SQUARE[:1], lambda x: x.expand_as(x.expand(3, 3))),
    "flatten from the second": (CUBE, lambda x: x.flatten(1)),
    "flatten the first": (CUBE, lambda x: x.flatten(0, 1)),
    "masked_fill": (SQUARE, lambda x: x.masked_fill(x > 0, 5)),
    "permute": (CUBE, lambda x: x.permute(2, 0, 1)),
    "permute by a tuple": (CUBE, lambda x: x.permute((2, 0, 1))),
    "reshape_as": (CUBE, lambda x: x.reshape_as(x.permute(2, 1, 0))),
    "t": (SQUARE, lambda x: x.t()),
    "t of a vector": (SQUARE[0], lambda x: x.t()),
    "transpose": (CUBE, lambda x: x.transpose(0, 2)),
    "transpose from the end": (CUBE, lambda x: x.transpose(-1, -2)),
    "type_as": (SQUARE, lambda x: x.float().type_as(x)),
    "unsqueeze": (SQUARE, lambda x: x.unsqueeze(1)),
    "unsqueeze at the end": (SQUARE, lambda x: x.unsqueeze(-1)),
    "view": (CUBE, lambda x: x.view(6, -1)),
    "view as a tuple": (CUBE, lambda x: x.view((6, 4))),
    "view_as": (CUBE, lambda x: x.view_as(x.permute(2, 1, 0))),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", LIKE_NUMPY)
def test_as_numpy(backend: Backend, name: str) -> None:
    array, call = LIKE_NUMPY[name]
    np.testing.assert_allclose(call(wg.asarray(array)).numpy(), call(array), rtol=1e-12)


@pytest.mark.whole
@pytest.mark.oracle
@pytest.mark.parametrize("name", LIKE_PYTORCH)
def test_as_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    array, call = LIKE_PYTORCH[name]
    expected = call(torch.asarray(array.copy())).numpy()
    found = call(wg.asarray(array)).numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_questions(backend: Backend) -> None:
    x = wg.asarray(CUBE)
    assert (x.numel(), x.nelement(), x.dim(), x.ndimension()) == (24, 24, 3, 3)
    assert x.element_size() == 8
    assert x.is_floating_point()
    assert not x.is_complex()
    assert not x.long().is_floating_point()
    assert (x + 1j).is_complex()


def test_conversions(backend: Backend) -> None:
    x = wg.asarray(SQUARE, requires_grad=True)
    if backend.name == "cupy":
        assert x.cpu().backend.name == "numpy"
    else:
        assert x.cpu() is x
    assert x.type(wg.float32).dtype is wg.float32
    assert x.type(wg.float64) is x
    y = x.copy()
    y += 1
    np.testing.assert_array_equal(x.detach().numpy(), SQUARE)
    wg.sum(y).backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.ones_like(SQUARE))


@pytest.mark.whole
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.transpose(0, 1), "write x.mT"),
        (lambda x: x.transpose(-2, -1), "write x.mT"),
        (lambda x: x.repeat(2), "wg.tile"),
        (lambda x: x.repeat(2, 1), "wg.tile"),
        (lambda x: x.view(wg.int64), "wg.astype"),
        (lambda x: x.view("int64"), "wg.astype"),
        (lambda x: x[None].t(), "x.mT"),
        (lambda x: x.squeeze(0), "cannot be squeezed"),
        (lambda x: x.flatten("F"), "an axis is an integer"),
        (lambda x: x.flatten(1, 0), "start_dim=1 cannot come after end_dim=0"),
        (lambda x: x.cuda(1), "numpy has no device 'cuda:1'"),
        (lambda x: x.cuda(1), 'to_backend("cupy")'),
        (lambda x: x.expand(3, -1, 3, 3), "cannot be expanded"),
        (lambda x: x.expand(3), "cannot be expanded"),
        (lambda x: x.diagonal(0, 1, 1), "one axis"),
        (lambda x: x.long().masked_fill(x > 0, 0.5), "does not fit an array of dtype int64"),
        (lambda x: x.std(False), "wg.std(x) for N"),
        (lambda x: x.std(), "x.std(correction=0) or x.std(correction=1)"),
        (lambda x: x.var(axis=0), "by N in NumPy and by N - 1 in PyTorch"),
        (lambda x: x.max(1), "wg.argmax(x, axis=1) for the indices"),
        (lambda x: x.min(axis=-1), "wg.min(x, axis=-1)"),
        (lambda x: x.max(x), "use wg.maximum for two arrays"),
        (lambda x: x.sort(1), "wg.sort(x)"),
        (lambda x: x.median(), "wg.median(x)"),
        (lambda x: x.nonzero(), "wg.nonzero(x)"),
        (lambda x: x.equal(x), "x == y"),
    ],
)
def test_what_has_two_meanings_or_none_is_refused(call: Any, message: str) -> None:
    with pytest.raises((RuntimeError, TypeError, ValueError), match=re.escape(message)):
        call(wg.asarray(SQUARE))


def test_a_divisor_that_is_named_is_taken() -> None:
    x = wg.asarray(SQUARE)
    for named in ({"correction": 1}, {"ddof": 1}, {"unbiased": True}, {"keepdim": False}):
        np.testing.assert_allclose(x.std(**named).numpy(), SQUARE.std(ddof=1))
    np.testing.assert_allclose(x.var(dim=0).numpy(), SQUARE.var(0, ddof=1))
    np.testing.assert_allclose(x.var(0, unbiased=False).numpy(), SQUARE.var(0))
    np.testing.assert_allclose(x.std(0, correction=0, keepdims=True).numpy(), [SQUARE.std(0)])
    np.testing.assert_allclose(x.var(0, keepdim=True).numpy(), [SQUARE.var(0, ddof=1)])
    assert x.max().item() == SQUARE.max() and x.min(keepdims=True).shape == (1, 1)


# -- wrong names -----------------------------------------------------------------------------------


def mentioned(text: str) -> list[str]:
    return re.findall(r"\bwg\.([\w.]*\w)", text)


def test_functions_of_others_are_told() -> None:
    def check(name: str, place: str) -> None:
        module, text = importlib.import_module(place), HINTS[place][name]
        assert not hasattr(module, name)
        with pytest.raises(AttributeError, match=f"{place}.* has no attribute .*; use ") as told:
            getattr(module, name)
        assert text in str(told.value)
        for path in mentioned(text):
            attrgetter(path)(wg)
        for method in re.findall(r"\bx\.(\w+)", text):
            assert hasattr(wg.Tensor, method)
        for function in re.findall(r"\bnp\.(\w+)", text):
            assert hasattr(np, function)

    places = [place for place in HINTS if place[0] == "w"]
    walk([(name, place) for place in places for name in HINTS[place]], check, whole=True)


def test_special_functions_are_told() -> None:
    def check(name: str) -> None:
        text = rf"no attribute '{name}'; use wg\.special\.{name}$"
        with pytest.raises(AttributeError, match=text):
            getattr(wg, name)

    walk([(name,) for name in {*wg.special.__all__} - {*dir(wg)}], check, whole=True)


def test_methods_of_others_are_told() -> None:
    x = wg.asarray(SQUARE)

    def check(name: str) -> None:
        assert not hasattr(x, name)
        with pytest.raises(
            AttributeError, match=rf"'Tensor' object has no attribute '{name}'; use "
        ):
            getattr(x, name)
        assert name not in dir(x)
        text = HINTS["Tensor"].get(name) or HINTS["wengert"][name]
        for method in re.findall(r"\bx\.(\w+)", text):
            assert hasattr(x, method)
        for path in mentioned(text):
            assert hasattr(wg, path.partition(".")[0])

    walk([(name,) for name in operators.FOREIGN], check, whole=True)


def test_what_a_room_gives_or_two_rooms_refuse_is_listed_by_what_is_there() -> None:
    """PyTorch's ``clamp`` is there then; NumPy and PyTorch mean two things by another."""
    operators.give("a", {"clamp": wg.clip, "cat": wg.concat})
    operators.give("b", {"cat": wg.concat})
    try:
        assert "clamp" in (listed := dir(wg.ones(2))) and "cat" not in listed
    finally:
        restore()


@pytest.mark.oracle
def test_the_names_of_others_are_theirs() -> None:
    jax, torch = map(pytest.importorskip, ("jax", "torch"))
    places: Any = [np, np.linalg, np.fft, np.random, np.ndarray, jax, jax.lax, jax.tree_util]
    places += [torch, torch.Tensor, torch.autograd, torch.nn.Module]
    theirs = {name for place in places for name in dir(place)}
    theirs |= {"row_stack", "set_deterministic"}  # of earlier releases
    assert {*HINTS["wengert"], *HINTS["Tensor"]} <= theirs


@pytest.mark.parametrize(
    ("place", "name", "hint"),
    [
        ("wengert", "_nothing", ""),
        ("wengert", "__nothing__", ""),
        ("wengert", "qqqq", ""),
        ("wengert", "summ", "; did you mean 'sum'?"),
        ("wengert.special", "digama", "; did you mean 'digamma'?"),
        ("wengert.special", "nothing", ""),
        ("wengert.special", "_nothing", ""),
    ],
)
def test_a_name_that_nobody_has(place: str, name: str, hint: str) -> None:
    with pytest.raises(AttributeError) as told:
        getattr(importlib.import_module(place), name)
    assert str(told.value) == f"module {place!r} has no attribute {name!r}{hint}"


def test_the_names_at_import_are_those_of_the_tables() -> None:
    assert {*HINTS["Tensor"]} <= operators.FOREIGN
    functions = [(name, f) for name, f in vars(methods).items() if inspect.isfunction(f)]
    own = {name for name, f in functions if f.__module__ == methods.__name__ and name[0] != "_"}
    own |= {name for name, x in vars(methods).items() if isinstance(x, property)}
    assert {*operators.METHODS} == own
    assert not operators.FOREIGN & {*operators.METHODS}


def test_a_name_that_is_near_is_said_once(capfd: pytest.CaptureFixture[str]) -> None:
    """CPython's own traceback would name one again, and not always the same."""
    with pytest.raises(AttributeError) as error:
        wg.summ  # noqa: B018
    sys.__excepthook__(error.type, error.value, error.tb)
    assert capfd.readouterr().err.lower().count("did you mean") == 1


def test_type_checkers_see_what_is_attached() -> None:
    pytest.importorskip("ruff", reason="which lays the stub out")
    assert stubs.TARGET.read_text(encoding="utf-8") == stubs.written()


# -- wrong keywords --------------------------------------------------------------------------------


def test_signatures_have_no_names_for_errors() -> None:
    """Python's own error names the keyword, and ``help`` shows what there is."""
    for module in (wg, wg.linalg, wg.fft, wg.special, methods):
        for name in getattr(module, "__all__", dir(module)):
            function = getattr(module, name)
            if inspect.isfunction(function) and function.__module__.startswith("wengert.ops"):
                kinds = {p.kind for p in inspect.signature(function).parameters.values()}
                assert inspect.Parameter.VAR_KEYWORD not in kinds, name
    with pytest.raises(TypeError, match=r"sum\(\) got an unexpected keyword argument 'dim'"):
        wg.sum(wg.asarray(SQUARE), dim=0)  # type: ignore[call-arg]
