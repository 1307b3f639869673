"""First and second derivatives of every primitive against PyTorch's and JAX's."""

import numpy as np
import pytest

from tests.catalogue.table import TABLE, TRACKED
from tests.fuzz.programs import Answer, PyTorch, Wengert, oracle, run, weights
from tests.ops.cases import check_examples, is_variable

pytestmark = pytest.mark.oracle
EXAMPLES = {"torch": 8, "jax": 1}


def google(case, call):
    """JAX's answer: its gradients are the conjugates of PyTorch's."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy

    def forward(*inputs):
        rest = iter(inputs)
        made = case.with_arrays(lambda a: next(rest) if is_variable(a) else jnp.asarray(a))
        out = call(*made.args, **made.kwargs)
        results = list(out) if isinstance(out, tuple | list) else [out]
        return [r for r in results if jnp.issubdtype(r.dtype, jnp.inexact)]

    def gradient(f, factors):
        def pulled(*inputs):
            return [jnp.conj(g) for g in jax.vjp(f, *inputs)[1]([*map(jnp.asarray, factors)])]

        return pulled

    def levels(*inputs):
        found, f = [], forward
        for order in range(3):
            found.append(f(*inputs))
            f = gradient(f, weights(found[-1], order))
        return found

    inputs = [jnp.asarray(array) for array in case.inexact()]
    try:  # one program, compiled once
        found = jax.jit(levels)(*inputs)
    except jax.errors.JAXTypeError:  # shapes depend on values
        found = levels(*inputs)
    return Answer(*([np.asarray(r) for r in level] for level in found))


@pytest.mark.parametrize(("name", "kind"), TRACKED)
@pytest.mark.parametrize("library", EXAMPLES)
def test_derivatives_are_those_of(library, name, kind):
    pytest.importorskip(library)
    entry, call = TABLE[name], oracle(library, name)
    if not call or f"{library}-{kind}" in entry.differs:
        pytest.skip(entry.differs.get(f"{library}-{kind}", f"{library} has no {name}"))

    def check(case):
        if not case.inexact():
            return
        program = [(name, kind, case)]
        theirs = run(program, PyTorch()) if library == "torch" else google(case, call)
        for what, *levels in zip(Answer._fields, run(program, Wengert()), theirs, strict=True):
            for a, b in zip(*levels, strict=True):
                assert a.shape == b.shape
                size = max(1.0, float(np.max(np.abs(b), initial=0.0)))
                np.testing.assert_allclose(a, b, 1e-9, 1e-11 * size, err_msg=what)

    check_examples(EXAMPLES[library], check, getattr(entry, kind))
