"""Arguments by position, where NumPy or PyTorch take them so and the standard by keyword alone."""

import ast
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.walking import lines_of, walk
from wengert.backends import Backend

VALUES = np.array([[3.0, -1.0, 2.5], [0.5, 4.0, -2.0]])
#: Functions, and what follows their first argument in NumPy, too.
CALLS = lines_of("""
all 0  any -1  argmax 1  argmin 0  argsort 0  count_nonzero 0  cumulative_prod 1  cumulative_sum 0
diff 1,0  fft.fft 4,0  fft.fftn (2,2),(0,1)  fft.fftshift 0  fft.hfft 4,0  fft.ifft 4,0,"forward"
fft.ifftn (2,2),(0,1)  fft.ifftshift 1  fft.ihfft 4,0  fft.irfft 4,0  fft.irfftn (2,2),(0,1)
fft.rfft 4,0  fft.rfftn (2,2),(0,1)  flip 0  max 1  mean -1  median 0  min 0  prod 1
quantile 0.25,1  repeat 2,1  roll 1,0  sort 0  std 0  sum 0  take [1,0],0
take_along_axis [[0,2,1],[1,0,2]],1  tensordot [[3.0],[1.0],[2.0]],1  tril 1  triu 1  var 1""")
#: What NumPy calls otherwise.
NAMES = {"cumulative_prod": "cumprod", "cumulative_sum": "cumsum"}
#: Whose methods give other results in NumPy than in PyTorch, where an axis alone is given.
TWO_MEANINGS = {"max", "median", "min", "sort", "std", "var", "repeat"}


def test_by_position(backend: Backend) -> None:
    def check(name: str, given: str) -> None:
        rest: Any = ast.literal_eval(f"({given},)")
        of_complex = name in ("fft.hfft", "fft.irfft", "fft.irfftn")
        values = VALUES + 0j if of_complex else VALUES
        plain = [np.asarray(a) if isinstance(a, list) else a for a in rest]
        expected = attrgetter(NAMES.get(name, name))(np)(values, *plain)
        ours = [wg.asarray(a) if isinstance(a, np.ndarray) else a for a in plain]
        x = wg.asarray(values)
        results = [attrgetter(name)(wg)(x, *ours)]
        if "." not in name and name not in TWO_MEANINGS:
            results.append(getattr(x, name)(*ours))
        for result in results:
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12, atol=1e-12)

    walk([row.split() for row in CALLS], check, whole=True)
    x, y, both = wg.asarray(VALUES), wg.asarray(2 * VALUES), [VALUES, 2 * VALUES]
    np.testing.assert_array_equal(wg.concat([x, y], 1).numpy(), np.concatenate(both, 1))
    np.testing.assert_array_equal(wg.stack([x, y], -1).numpy(), np.stack(both, -1))
    assert wg.unstack(x, 1)[2].tolist() == [2.5, -2.0]
    g = wg.grad(lambda x: wg.sum(x.sum(0) ** 2))(x)
    np.testing.assert_allclose(g.numpy(), 2 * np.broadcast_to(VALUES.sum(0), VALUES.shape))


def test_what_is_no_axis() -> None:
    x = wg.asarray(VALUES)
    for name in ("sum", "mean", "argmax", "prod", "cumulative_sum"):
        getattr(x, name)(1)  # 1 is no reason to take True
        for wrong in (True, False, wg.asarray(1), np.array([0, 1]), 0.5, "0"):
            with pytest.raises(TypeError, match=r"an axis is an integer, and .* is not"):
                getattr(x, name)(wrong)
    # In PyTorch max(x, other) is elementwise.
    with pytest.raises(TypeError, match=r"use wg\.maximum for two arrays"):
        x.max(x)
    with pytest.raises(TypeError, match=r"use wg\.minimum for two arrays"):
        wg.min(x, x)
