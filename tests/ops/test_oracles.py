"""First and second derivatives of every primitive against PyTorch's and JAX's."""

from functools import cache

import numpy as np
import pytest
from hypothesis import reject

import wengert as wg
from tests.catalogue.table import TABLE, TRACKED
from tests.ops.cases import (
    apply,
    check_examples,
    function,
    inexact_results,
    is_variable,
    leaves,
    named,
)
from wengert.testing.problem import values

pytestmark = pytest.mark.oracle
EXAMPLES = {"torch": 8, "jax": 1}


def weights(arrays, seed):
    """Fixed cotangents for a list of arrays."""
    random = np.random.default_rng(seed)
    found = []
    for array in arrays:
        g = random.standard_normal(array.shape)
        if array.dtype.kind == "c":
            g = g + 1j * random.standard_normal(array.shape)
        found.append(np.asarray(g))
    return found


def wengert(name, entry, case):
    """Results, gradients and gradients of the gradients."""
    inputs = leaves(case)
    level = inexact_results(apply(function(name, entry), case, inputs))
    found = [[values(r) for r in level]]
    for order in range(2):
        seeds = [wg.Tensor(g) for g in weights(found[-1], order)]
        pairs = [(r, g) for r, g in zip(level, seeds, strict=True) if r._node is not None]
        level = (
            [wg.zeros_like(x) for x in inputs]
            if not pairs
            else wg.autograd.grad(
                [r for r, _ in pairs],
                inputs,
                [g for _, g in pairs],
                create_graph=True,
                materialize_grads=True,
            )
        )
        found.append([values(g) for g in level])
    return found


#: What PyTorch says of numbers modulo arrays, and of an array between bounds that are empty.
NONE = ("derivative for aten::remainder is not", "derivative for aten::floor_divide is not")
FAULTS = (*NONE, "match the broadcast shape")


def pytorch(call, case):
    torch = pytest.importorskip("torch")
    inputs = [torch.tensor(array, requires_grad=True) for array in case.inexact()]
    rest = iter(inputs)
    made = case.with_arrays(lambda a: next(rest) if is_variable(a) else torch.tensor(a))
    try:
        out = call(*made.args, **made.kwargs)
    except NotImplementedError:  # some parameters that the standard has
        reject()
    level = [
        r
        for r in ([out] if isinstance(out, torch.Tensor) else out)
        if r.is_floating_point() or r.is_complex()
    ]
    found = [[r.numpy(force=True) for r in level]]
    for order in range(2):
        seeds = [torch.tensor(g) for g in weights(found[-1], order)]
        pairs = [(r, g) for r, g in zip(level, seeds, strict=True) if r.requires_grad]
        gradients = [None] * len(inputs)
        try:
            if pairs:
                gradients = torch.autograd.grad(
                    [r for r, _ in pairs],
                    inputs,
                    [g for _, g in pairs],
                    create_graph=True,
                    allow_unused=True,
                )
        except RuntimeError as error:
            if any(fault in str(error) for fault in FAULTS):
                reject()
            raise
        level = [
            torch.zeros_like(x) if g is None else g for g, x in zip(gradients, inputs, strict=True)
        ]
        found.append([g.numpy(force=True) for g in level])
    return found


def google(call, case):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy

    def forward(*inputs):
        rest = iter(inputs)
        made = case.with_arrays(lambda a: next(rest) if is_variable(a) else jnp.asarray(a))
        out = call(*made.args, **made.kwargs)
        results = list(out) if isinstance(out, tuple | list) else [out]
        return [r for r in results if jnp.issubdtype(r.dtype, jnp.inexact)]

    def gradient(f, seeds):
        # JAX's cotangents are the conjugates of PyTorch's.
        def pulled(*inputs):
            _, pull = jax.vjp(f, *inputs)
            return [jnp.conj(g) for g in pull([jnp.conj(jnp.asarray(s)) for s in seeds])]

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
    return [[np.asarray(r) for r in level] for level in found]


def compare(name, entry, case, theirs):
    ours = wengert(name, entry, case)
    for order, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert len(a) == len(b)
        for mine, other in zip(a, b, strict=True):
            assert mine.shape == other.shape
            scale = max(1.0, float(np.max(np.abs(other), initial=0.0)))
            np.testing.assert_allclose(
                mine, other, rtol=1e-9, atol=1e-11 * scale, err_msg=f"order {order}"
            )


@cache
def oracle(library, name):
    """An oracle's function for a row: by its own name, in the first module that has it; or None."""
    entry = TABLE[name]
    call = getattr(entry, library)
    if call is None or isinstance(call, str):
        if library == "torch":
            torch = pytest.importorskip("torch")
            homes = pytest.importorskip("array_api_compat.torch"), torch, torch.special
        else:
            jax = pytest.importorskip("jax")
            homes = jax.numpy, jax.nn, jax.scipy, jax.scipy.special
        return named(call or name, *homes)
    return call or None


def check_row(library, name, kind, answer):
    entry = TABLE[name]
    if f"{library}-{kind}" in entry.differs:
        pytest.skip(entry.differs[f"{library}-{kind}"])
    call = oracle(library, name)
    if not call:
        pytest.skip(f"{library} has no {name}")

    def check(case):
        if case.inexact():
            compare(name, entry, case, answer(call, case))

    check_examples(EXAMPLES[library], check, getattr(entry, kind))


@pytest.mark.parametrize(("name", "kind"), TRACKED)
def test_derivatives_are_pytorchs(name, kind):
    pytest.importorskip("torch")
    check_row("torch", name, kind, pytorch)


@pytest.mark.parametrize(("name", "kind"), TRACKED)
def test_derivatives_are_jaxs(name, kind):
    pytest.importorskip("jax")
    check_row("jax", name, kind, google)
