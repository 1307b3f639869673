"""The Array API standard 2025.12: every name of it is here, with the standard's signature."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import wengert as wg
from wengert.backends import Backend

strict = pytest.importorskip("array_api_strict")


def functions(module: Any, prefix: str = "") -> dict[str, Callable[..., Any]]:
    """The standard's functions, as array_api_strict has them."""
    return {
        prefix + name: getattr(module, name)
        for name in module.__all__
        if inspect.isfunction(getattr(module, name)) and "array_api_strict_flags" not in name
    } | ({} if prefix else functions(strict.linalg, "linalg.") | functions(strict.fft, "fft."))


FUNCTIONS = functions(strict)
POSITIONAL = inspect.Parameter.POSITIONAL_ONLY
EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD
KEYWORD = inspect.Parameter.KEYWORD_ONLY
VARIADIC = inspect.Parameter.VAR_POSITIONAL


def compare(function: Callable[..., Any], standard: Callable[..., Any]) -> None:
    """Assert a function's signature.

    Beside the standard's parameters, a function may have further optional ones, and take a keyword
    by position as well.
    """
    ours = inspect.signature(function).parameters
    in_order = [p for p in ours.values() if p.kind in (POSITIONAL, EITHER, VARIADIC)]
    wanted = inspect.signature(standard).parameters
    for place, (name, about) in enumerate(wanted.items()):
        if about.kind is KEYWORD:  # by position too where NumPy or PyTorch take it so
            assert ours[name].kind in (KEYWORD, EITHER)
        else:
            assert in_order[place].kind is about.kind
        mine = ours[name] if about.kind in (EITHER, KEYWORD) else in_order[place]
        assert mine.name == name or about.kind in (POSITIONAL, VARIADIC)
        # What the standard requires may have a default here, as the axis of squeeze has.
        assert mine.default is not about.empty or about.default is about.empty
    for more in in_order[sum(about.kind is not KEYWORD for about in wanted.values()) :]:
        assert more.kind is VARIADIC or more.default is not more.empty
    for more in ours.values():
        if more.kind is KEYWORD and more.name not in wanted:
            assert more.default is not more.empty


def test_functions() -> None:
    """Each is public, and has the standard's signature."""
    assert len(FUNCTIONS) > 160
    for name, standard in FUNCTIONS.items():
        extension, _, short = name.rpartition(".")
        namespace = getattr(wg, extension) if extension else wg
        assert short in namespace.__all__
        compare(getattr(namespace, short), standard)


def test_large_integers_survive(backend: Backend) -> None:
    """Of 2**64 - 1 and 0 together NumPy makes float64, if it is not told the dtype."""
    top = 2**64 - 1
    if backend.name == "torch":
        pytest.importorskip("torch", minversion="2.3", reason="uint64 came with it")
    for x in (wg.asarray([top, 0], dtype=wg.uint64), wg.asarray([[top], [1]], dtype=wg.uint64)):
        assert x.tolist()[0] in (top, [top])
    with pytest.raises(OverflowError, match="too large for int64"):
        wg.asarray([top, 0])
    assert wg.asarray([top, 0], dtype=wg.float64).tolist() == [2.0**64, 0.0]


@pytest.mark.parametrize("name", ["uint8", "uint16", "uint32", "uint64", "int64", "bool"])
def test_slices_that_go_backwards_of_every_integer(backend: Backend, name: str) -> None:
    x = wg.asarray([[0, 1, 1], [1, 0, 0]], dtype=getattr(wg, name))
    assert wg.astype(x[::-1, 2:0:-1], wg.int64).tolist() == [[0, 0], [1, 1]]
    x[:, ::-1] = wg.asarray([[1, 0, 0], [0, 0, 1]], dtype=getattr(wg, name))
    assert wg.astype(x, wg.int64).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_the_norm_of_a_number_is_its_absolute_value(backend: Backend) -> None:
    x = wg.asarray(-3.0, requires_grad=True)
    y = wg.linalg.vector_norm(x)
    assert y.shape == ()
    y.backward()
    assert (y.item(), x.grad.item()) == (3.0, -1.0)
    z = wg.asarray([[3 - 4j]], dtype=wg.complex128)
    assert wg.linalg.vector_norm(z, axis=(), keepdims=True).tolist() == [[5.0]]
