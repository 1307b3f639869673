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


@pytest.mark.whole
def test_complex_numbers_are_true_unless_they_are_zero(backend: Backend) -> None:
    given = wg.tensor([0j, 1j, 1 + 0j, 2 - 1j])
    assert wg.astype(given, wg.bool).tolist() == [False, True, True, True]
