"""Dtypes are settled before a kernel runs: once, and in the precision of the result."""

import numpy as np
import pytest

import wengert as wg
from wengert.tape.primitive import PRIMITIVES

INTEGERS = [1, 2, 3]


@pytest.mark.parametrize("name", ["add", "divide", "multiply", "sqrt", "exp", "greater", "where"])
def test_mixed_kinds_run_a_kernel_once(name, monkeypatch):
    given = wg.asarray(INTEGERS)
    others = {"where": (given > 1, given, 0.5)}.get(name, (given, wg.asarray([0.5, 1.0, 2.0])))
    kernels, calls = PRIMITIVES[name].kernels, []
    kernel = kernels[np.ndarray]

    def counted(*arrays, **parameters):
        calls.append([getattr(a, "dtype", type(a)) for a in arrays])
        return kernel(*arrays, **parameters)

    monkeypatch.setitem(kernels, np.ndarray, counted)
    function = getattr(wg, name)
    function(given) if name in ("sqrt", "exp") else function(*others)
    assert len(calls) == 1, calls


def test_logarithms_of_small_integers_have_the_digits_of_the_result():
    # NumPy's log of int8 is float16: eleven bits.
    x = wg.asarray([1.0, 2.0, 3.0], dtype=wg.float64, requires_grad=True)
    found = wg.xlogy(x, wg.asarray(INTEGERS, dtype=wg.int8)).detach()
    np.testing.assert_allclose(found.numpy(), [0, 2 * np.log(2), 3 * np.log(3)], rtol=1e-15)


@pytest.mark.usefixtures("backend")
def test_a_boolean_number_beside_floating_arrays():
    assert (wg.tensor([1.5, 2.5], requires_grad=True) * True).tolist() == [1.5, 2.5]
