"""Data type functions against the standard's tables, and conversions that differentiate."""

import itertools

import array_api_strict
import pytest

import wengert as wg
from wengert.backends import DTYPES, Backend

STANDARD = [name for name, d in DTYPES.items() if name == d.host != "float16"]


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations_with_replacement(STANDARD, 2)))
def test_promotion_is_the_standards(a: str, b: str) -> None:
    one, two = getattr(array_api_strict, a), getattr(array_api_strict, b)
    try:
        expected = str(array_api_strict.result_type(one, two)).rpartition(".")[2]
    except TypeError:
        assert not wg.can_cast(a, b) or a == b
        return  # which the standard leaves open
    assert wg.result_type(getattr(wg, a), getattr(wg, b)) == expected
    assert wg.result_type(getattr(wg, b), getattr(wg, a)) == expected
    assert wg.can_cast(getattr(wg, a), getattr(wg, b)) == array_api_strict.can_cast(one, two)
    assert wg.can_cast(getattr(wg, b), getattr(wg, a)) == array_api_strict.can_cast(two, one)


def test_scalars_in_result_type_are_weak(backend: Backend) -> None:
    for given, expected in (
        ((wg.float32, 1.0), wg.float32),
        ((wg.ones(1), 2, 1.5), wg.float32),
        ((wg.float32, 1j), wg.complex64),
        ((wg.float64, 1j), wg.complex128),
        ((wg.complex64, 1.0), wg.complex64),
        ((wg.int8, 5), wg.int8),
        ((wg.bool, True), wg.bool),
    ):
        assert wg.result_type(*given) is expected
    with pytest.raises(ValueError, match="at least one"):
        wg.result_type(1.0, 2)


def test_astype_differentiates_between_dtypes_and_kinds(backend: Backend) -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    for wanted in (wg.float64, wg.complex64, wg.complex128):
        y = wg.astype(x, wanted)
        assert y.dtype is wanted
        seed = wg.asarray([1.0, 3.0], dtype=wanted)
        if wanted.complex:
            seed = seed * (1 - 2j)
        (g,) = wg.autograd.grad(y, x, seed)
        assert g.dtype is wg.float32
        assert g.tolist() == [1.0, 3.0]
    assert not wg.astype(x, wg.int32).requires_grad
    assert wg.astype(x, wg.float32, copy=False) is x
    assert wg.astype(x, wg.float32) is not x
    assert wg.astype(wg.tensor([0j, 1j]), wg.bool).tolist() == [False, True]
    with pytest.raises(TypeError, match=r"imaginary part; take wg\.real"):
        wg.astype(wg.tensor([1j]), wg.float32)
