"""How Tensors print: PyTorch's format, also of what takes several lines."""

from typing import Any

import numpy as np
import pytest

import wengert as wg


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (
            np.arange(24),
            """\
tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,
        18, 19, 20, 21, 22, 23])""",
        ),
        (
            np.arange(20) % 5 == 0,
            """\
tensor([ True, False, False, False, False,  True, False, False, False, False,
         True, False, False, False, False,  True, False, False, False, False])""",
        ),
        (
            np.arange(22, dtype="float32").reshape(2, 11) / 8,
            """\
tensor([[0.0000, 0.1250, 0.2500, 0.3750, 0.5000, 0.6250, 0.7500, 0.8750, 1.0000,
         1.1250, 1.2500],
        [1.3750, 1.5000, 1.6250, 1.7500, 1.8750, 2.0000, 2.1250, 2.2500, 2.3750,
         2.5000, 2.6250]])""",
        ),
        (
            np.arange(6, dtype="float32") * np.complex64(0.5 - 0.25j),
            """\
tensor([0.0000+0.0000j, 0.5000-0.2500j, 1.0000-0.5000j, 1.5000-0.7500j,
        2.0000-1.0000j, 2.5000-1.2500j])""",
        ),
        (
            np.arange(1200, dtype="float32").reshape(2, 600),
            """\
tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 5.9700e+02, 5.9800e+02,
         5.9900e+02],
        [6.0000e+02, 6.0100e+02, 6.0200e+02,  ..., 1.1970e+03, 1.1980e+03,
         1.1990e+03]])""",
        ),
        (np.arange(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
        (np.float32([1, -np.inf, np.nan]), "tensor([1., -inf, nan])"),
    ],
)
def test_values(values: Any, text: str) -> None:
    assert repr(wg.asarray(values)) == text


def test_a_line_has_less_than_80_columns() -> None:
    x = wg.asarray(np.arange(6, dtype="float32") / 2, requires_grad=True)
    assert repr(x * 1) == (
        "tensor([0.0000, 0.5000, 1.0000, 1.5000, 2.0000, 2.5000],\n       grad_fn=<MulBackward0>)"
    )
    x = wg.asarray(np.arange(10, 19, dtype="float32"), requires_grad=True)
    text = "tensor([10., 11., 12., 13., 14., 15., 16., 17., 18.], grad_fn=<ClampBackward0>)"
    assert repr(wg.clip(x, 0, 20)) == text
    x = wg.asarray(np.arange(32, dtype="float32"), requires_grad=True)
    assert repr(x * 1).splitlines()[2] == "        28., 29., 30., 31.], grad_fn=<MulBackward0>)"
    x = wg.asarray(np.arange(27, dtype="float32"), requires_grad=True)
    assert repr(x * 1).splitlines()[2] == "       grad_fn=<MulBackward0>)"
