"""Values of every primitive against another implementation, and dtypes, on every backend."""

import numpy as np
import pytest
import scipy.special

import wengert as wg
from tests.catalogue.table import ROWS, TABLE, entry_on
from tests.interplay.compare import listed
from tests.ops.cases import (
    SCALE,
    apply,
    check_examples,
    function,
    inexact_results,
    is_variable,
    leaves,
    named,
    orders,
    tensor,
)
from wengert.testing.conduct import check_precision
from wengert.testing.problem import values

EXAMPLES = {"numpy": 15, "array_api_strict": 4, "torch": 5, "jax": 1, "dask": 1, "cupy": 4}


def run(backend, strategy, check):
    check_examples(EXAMPLES.get(backend.name, 4), check, strategy)


def reference(name, entry):
    found = entry.reference or named(name, np, scipy.special)
    assert found, f"neither NumPy nor SciPy has {name}: give its row a reference"
    return found


@pytest.mark.whole
@pytest.mark.parametrize(("name", "kind"), ROWS)
def test_value(name, kind, backend):
    """Values, shapes and dtypes are those of the reference; what is not tracked is equal to it."""
    entry = entry_on(name, backend.name)
    call = function(name, entry)
    other = reference(name, entry)

    def check(case):
        before = [array.copy() for array in case.inexact()]
        found = apply(call, case, [tensor(array) for array in case.inexact()])
        with np.errstate(all="ignore"):
            expected = [np.asarray(e) for e in listed(other(*case.args, **case.kwargs))]
        assert len(found) == len(expected)
        for result, wanted in zip(found, expected, strict=True):
            assert not result.requires_grad
            assert result.shape == wanted.shape
            assert result.backend is backend
            if result.dtype.inexact:
                assert result.dtype == wanted.dtype
                np.testing.assert_allclose(values(result), wanted, rtol=entry.rtol, atol=entry.rtol)
            else:
                np.testing.assert_array_equal(values(result), wanted)
        for array, old in zip(case.inexact(), before, strict=True):
            np.testing.assert_array_equal(array, old)

    run(backend, getattr(entry, kind), check)


def check_small(name, entry, case, precision):
    """Results, gradients and second derivatives stay in the precision of the inputs."""
    call = function(name, entry)
    inputs = leaves(case)
    results = inexact_results(apply(call, case, inputs))
    for result in results:
        parts = 2 if result.dtype.complex else 1
        assert result.dtype.itemsize == parts * precision, result.dtype
    for level, _, gradients in orders(results, inputs, min(entry.order, 2)):
        check_precision(level)
        for gradient, x in zip(gradients, inputs, strict=True):
            assert gradient.dtype is x.dtype


def small_check(name, entry, half):
    def check(case):
        if case.inexact():
            check_small(name, entry, case.single(half), 2 if half else 4)

    return check


def skip_where_slow(name, backend):
    if backend.name == "jax" and SCALE <= 1:
        pytest.skip("JAX compiles each for each dtype; the wide profile runs it")
    if backend.name == "dask" and name not in backend.kernels and SCALE <= 1:
        pytest.skip("NumPy's functions, which are tested here, in chunks; the wide profile runs it")


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid:RuntimeWarning")
@pytest.mark.parametrize(("name", "kind"), ROWS)
def test_single_and_half_precision_stay(name, kind, backend):
    entry = entry_on(name, backend.name)
    skip_where_slow(name, backend)
    if entry.small:
        run(backend, getattr(entry, kind), small_check(name, entry, False))
    if entry.half and kind == "real" and hasattr(backend.xp, "float16"):
        run(backend, entry.real, small_check(name, entry, True))


@pytest.mark.parametrize("name", sorted(name for name, e in TABLE.items() if e.small))
def test_no_float64_anywhere(name):
    """On a device without float64 everything works, so nothing makes a double on the way."""
    strict = pytest.importorskip("array_api_strict")
    entry = entry_on(name, "array_api_strict")
    device = strict.Device("no_float64")

    def check(case):
        with wg.use_backend("array_api_strict"):
            made = case.single().with_arrays(
                lambda a: wg.Tensor(strict.asarray(a, device=device), requires_grad=is_variable(a))
            )
            inputs = []
            made.with_tensors(inputs.append)
            out = function(name, entry)(*made.args, **made.kwargs)
            results = inexact_results([out] if isinstance(out, wg.Tensor) else list(out))
            assert all(str(r.device) == str(device) for r in results)
            targets = [x for x in inputs if x.requires_grad]
            for _, _, gradients in orders(results, targets, min(entry.order, 2)):
                assert all(str(g.device) == str(device) for g in gradients)

    for kind in entry.kinds():
        check_examples(4, check, getattr(entry, kind))
