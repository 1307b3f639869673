"""No method of the core's Tensors gives another result than PyTorch's without a word."""

import warnings

import pytest

import wengert as wg
from tests.restoring import restore
from tests.torch.test_common_names import DRAWN, KNOWN, differing

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


def test_methods_that_differ_are_errors() -> None:
    torch = pytest.importorskip("torch")
    restore()
    assert "clamp" not in dir(wg.ones(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        methods = {*dir(torch.Tensor)} & {*dir(wg.ones(1))} - {*DRAWN}
        assert len(methods) > 120
        assert set(differing(wg, torch, methods, True)) <= KNOWN
