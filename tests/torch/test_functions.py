"""Every function, method and constructor gives what PyTorch's gives."""

import warnings
from typing import Any

import pytest

from tests.catalogue.torch import REFUSED, ROWS, arguments
from tests.torch.compare import differences, evaluate

pytestmark = [pytest.mark.oracle, pytest.mark.whole]


@pytest.mark.parametrize("chunk", range(16))
def test_calls_are_pytorchs(room: Any, chunk: int) -> None:
    """Value, dtype, names of pairs and gradients, in both precisions."""
    torch = pytest.importorskip("torch")

    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, of `size_average` and the like
        for k, line in enumerate(ROWS[chunk::16]):
            for dtype in ("float64", "float32"):
                found += differences(room, torch, line, k, dtype)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("line", REFUSED)
def test_errors_are_pytorchs(room: Any, line: str) -> None:
    for library in (room, pytest.importorskip("torch")):
        with pytest.raises((AssertionError, IndexError, RuntimeError, TypeError, ValueError)):
            evaluate(library, line, arguments(0, "float64"))
