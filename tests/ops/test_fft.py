"""The standard's ``fft``: functions of one axis, frequencies, what is composed, and errors."""

import numpy as np
import pytest

import wengert as wg
from tests.ops.cases import tensor
from tests.scripts import python
from wengert.testing.problem import values


def test_imaginary_parts_that_no_real_signal_has_are_ignored(backend):
    z = np.asarray([1 + 5j, 2 - 1j, 3 + 7j])
    x = tensor(z, requires_grad=True)
    out = wg.fft.irfft(x)
    np.testing.assert_allclose(values(out), np.fft.irfft([1, 2 - 1j, 3]), rtol=0, atol=1e-12)
    (g,) = wg.autograd.grad(out, x, tensor(np.asarray([1.0, 2.0, 4.0, 8.0])))
    np.testing.assert_allclose(values(g).imag[[0, 2]], 0, rtol=0, atol=1e-12)


def test_lengths_and_axes(backend):
    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    t = tensor(x)
    for name in ("fftn", "ifftn", "rfftn"):
        call, other = getattr(wg.fft, name), getattr(np.fft, name)
        # Lengths without axes are those of the last ones, and -1 leaves a length as it is.
        found = call(t, s=(5, -1))
        np.testing.assert_allclose(
            values(found), other(x, s=(5, 4), axes=(1, 2)), rtol=0, atol=1e-12
        )
    np.testing.assert_allclose(
        values(wg.fft.irfftn(t, s=(4, -1), axes=[2, 1])),
        np.fft.irfftn(x, s=(4, 4), axes=(2, 1)),
        rtol=0,
        atol=1e-12,
    )
    none = values(wg.fft.fftn(t, axes=()))
    assert none.dtype == np.complex128
    np.testing.assert_array_equal(none, x)


def test_half_precision_is_transformed_in_single(backend):
    try:
        backend.raw_dtype(wg.float16)
    except TypeError:
        pytest.skip(f"{backend.name} has no float16")
    x = tensor(np.asarray([1, 2, 3], np.float16), requires_grad=True)
    out = wg.fft.rfft(x)
    assert out.dtype == wg.complex64
    (g,) = wg.autograd.grad(out, x, wg.ones_like(out))
    assert g.dtype == wg.float16


def test_errors(backend):
    x = tensor(np.ones((2, 3)))
    z = tensor(np.ones((2, 3), complex))
    fft = wg.fft
    cases = [
        (ValueError, "norm is", lambda: fft.hfft(x, norm=None)),
        (ValueError, "length of 1", lambda: fft.fft(x, n=0)),
        (ValueError, "length of 1", lambda: fft.irfft(z[:, :1])),
        (IndexError, "axis 2", lambda: fft.fft(x, axis=2)),
        (ValueError, "axis 2", lambda: fft.rfftn(x, axes=(2,))),
        (ValueError, "twice", lambda: fft.fftn(x, axes=(0, -2))),
        (ValueError, "2 lengths for 1 axes", lambda: fft.fftn(x, s=(2, 2), axes=(0,))),
        (ValueError, "3 lengths, and x 2 axes", lambda: fft.ifftn(x, s=(2, 2, 2))),
        (ValueError, "one axis at least", lambda: fft.rfftn(x, axes=())),
        (ValueError, "one axis at least", lambda: fft.irfftn(z, axes=())),
        (TypeError, "real floating dtype, not complex128", lambda: fft.rfft(z)),
        (TypeError, "real floating dtype, not complex128", lambda: fft.ihfft(z)),
        (TypeError, "floating or complex dtype, not int64", lambda: fft.fft(tensor(np.arange(3)))),
        (TypeError, "wg.asarray", lambda: fft.fft([1.0, 2.0])),
        (TypeError, "real floating", lambda: fft.rfftfreq(3, dtype=wg.int64)),
    ]
    for error, match, call in cases:
        with pytest.raises(error, match=match):
            call()


@pytest.mark.parametrize("name", sorted({*wg.fft.__all__} - {"fftshift", "ifftshift"}))
def test_errors_name_the_function(name):
    function = getattr(wg.fft, name)
    if name.endswith("freq"):
        with pytest.raises(ValueError, match=rf"\b{name}\b"):
            function(0)
        return
    x = tensor(np.ones((2, 3), complex if name in ("irfft", "irfftn", "hfft") else float))
    with pytest.raises(ValueError, match=rf"\b{name}: norm is"):
        function(x, norm="unitary")
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        function(x[:0]) if name.endswith("n") else function(x[:, :0])


@pytest.mark.slow
def test_wengert_does_not_import_it_before_it_is_used():
    code = (
        "import sys, wengert as wg; assert 'wengert.ops.fft' not in sys.modules;"
        "wg.fft.fftfreq(3); assert 'wengert.ops.fft' in sys.modules"
    )
    python("-c", code)
