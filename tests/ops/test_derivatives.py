"""First and second derivatives of every primitive, on every backend, and how they behave."""

from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import strategies as st

import wengert as wg
from tests.catalogue.table import TABLE, TRACKED, entry_on
from tests.ops.cases import SCALE, apply, check_examples, function, inexact_results, leaves, orders
from tests.ops.watching import watched
from wengert.backends import dtype_of
from wengert.testing import gradcheck, gradgradcheck
from wengert.testing.problem import like, values

#: Examples of each check on each backend. NumPy's are the many: the rules are the same text
#: everywhere, and what another library adds is its kernels, which few examples show.
EXAMPLES = {"numpy": 12, "array_api_strict": 3, "torch": 4, "jax": 1, "dask": 1, "cupy": 3}

pytestmark = [pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")]


def run(backend, strategy, check, share=1.0):
    check_examples(EXAMPLES.get(backend.name, 3) * share, check, strategy)


def entry_of(name, backend):
    if backend.name == "dask" and name not in backend.kernels and SCALE <= 1:
        pytest.skip("a rule that is tested here, graph by graph; the wide profile runs it")
    return entry_on(name, backend.name)


@pytest.mark.whole
@pytest.mark.parametrize(("name", "kind"), TRACKED)
def test_first_derivative(name, kind, backend):
    entry = entry_of(name, backend)
    call = function(name, entry)

    def check(case, fast):
        inputs = leaves(case)
        if inputs:
            gradcheck(
                lambda *inputs: inexact_results(apply(call, case, inputs)),
                inputs,
                check_forward_ad=True,
                check_batched_grad=batched,
                check_batched_forward_grad=batched,
                fast_mode=fast,
            )

    batched = backend.name in ("numpy", "torch")
    # Every entry of a Jacobian costs many evaluations, so only NumPy's are all looked at.
    whole = st.sampled_from([False, True]) if backend.name == "numpy" else st.just(True)
    check_examples(EXAMPLES.get(backend.name, 3), check, getattr(entry, kind), whole)


@pytest.mark.parametrize(("name", "kind"), TRACKED)
def test_second_derivative(name, kind, backend):
    entry = entry_of(name, backend)
    if entry.order < 2:
        pytest.skip(f"{name} can be differentiated once")
    if backend.name in ("jax", "dask") and SCALE <= 1:
        pytest.skip("first derivatives are looked at there; the wide profile runs it")
    call = function(name, entry)

    def check(case):
        inputs = leaves(case)
        if inputs:
            gradgradcheck(
                lambda *inputs: inexact_results(apply(call, case, inputs)),
                inputs,
                check_batched_grad=backend.name == "numpy",
                fast_mode=True,
            )

    run(backend, getattr(entry, kind), check)


@pytest.mark.parametrize(("name", "kind"), TRACKED)
def test_interpreters_agree_and_the_set_is_closed(name, kind, backend):
    """The plain and the differentiable interpreter give the same bits, three orders deep.

    They run the same rule on the same kernels in the same order, so nothing may differ, but in
    NumPy's complex scalars. Three orders reach all that rules of rules of rules call, and
    none puts what depends on the inputs through a function without rules.
    """
    entry = entry_of(name, backend)
    call = function(name, entry)

    def check(case):
        inputs = leaves(case)
        moving, alive = {id(x._array) for x in inputs}, []

        def see(call):
            alive.append(call)  # an id belongs to another array once its own is gone
            if any(id(x) in moving for x in call.inputs):
                inexact = [y for y in call.results if dtype_of(y.dtype).inexact]
                assert call.primitive.rules or not inexact, f"{call.primitive} has no rules"
                moving.update(map(id, inexact))

        with watched(see) if backend.name == "numpy" else nullcontext():
            compare(case, inputs)

    def compare(case, inputs):
        if not inputs:
            return
        results = inexact_results(apply(call, case, inputs))
        for level, seeds, recorded in orders(results, inputs, entry.order):
            plain = wg.autograd.grad(
                level, inputs, seeds, retain_graph=True, materialize_grads=True
            )
            for a, b, x in zip(plain, recorded, inputs, strict=True):
                assert a._node is None
                assert a.dtype is b.dtype is x.dtype
                assert a.shape == x.shape
                # NumPy's operators round products of complex scalars once more than its ufuncs.
                units = 4 if a.dtype.complex and not a.ndim else 0
                eps = units * np.finfo(values(a).dtype).eps
                np.testing.assert_allclose(values(a), values(b), rtol=eps, atol=0)
                assert np.isfinite(values(b)).all()

    run(backend, getattr(entry, kind), check, 0.5)


@pytest.mark.parametrize(("name", "kind"), TRACKED)
def test_third_derivative(name, kind):
    """Against differences of second derivatives along a fixed direction."""
    entry = TABLE[name]

    def check(case):
        inputs = leaves(case)
        random = np.random.default_rng(0)
        direction = [like(x, normal(random, x)) for x in inputs]

        def along(*inputs):
            """The first derivative along the direction, of each result's sum."""
            results = [y for y in inexact_results(apply(call, case, inputs)) if y.requires_grad]
            if not results:
                return [wg.sum(wg.real(x) * 0.0) for x in inputs]
            gradients = wg.autograd.grad(
                results,
                inputs,
                [wg.full_like(y, 0.75) for y in results],
                create_graph=True,
                materialize_grads=True,
            )
            return [g * t for g, t in zip(gradients, direction, strict=True)]

        if inputs:
            call = function(name, entry)
            if any(y.requires_grad for y in along(*inputs)):
                gradgradcheck(along, inputs, fast_mode=True)

    check_examples(6, check, getattr(entry, kind))


def normal(random, x):
    array = random.standard_normal(x.shape)
    return array + 1j * random.standard_normal(x.shape) if x.dtype.complex else np.asarray(array)
