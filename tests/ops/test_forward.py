"""Forward derivatives of every primitive: against its rules, by differences, and on Tensors."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.catalogue.table import TABLE
from tests.ops.cases import SCALE, Entry, apply, check_examples, function, leaves, whole
from tests.ops.watching import Call, watched
from wengert.backends import backend_of, dtype_of, namespaces
from wengert.compiler.facts import facts_of
from wengert.interpreters.duals import push
from wengert.interpreters.namespaces import differentiable
from wengert.tape.node import conform
from wengert.tape.primitive import PRIMITIVES
from wengert.tape.tensor import Tensor
from wengert.testing.differences import to_reals
from wengert.testing.problem import values

TRACKED = [
    (name, kind)
    for name, entry in sorted(TABLE.items())
    if entry.tracked and entry.order
    for kind in entry.kinds()
]
EXAMPLES = {"numpy": 8, "array_api_strict": 3, "torch": 3, "jax": 1, "dask": 1, "cupy": 3}


def calls_of(name: str, entry: Entry, case: Any) -> list[tuple[Call, list[bool]]]:
    """The calls of a primitive that a row's function makes, and which inputs of each can move."""
    found: list[tuple[Call, list[bool]]] = []
    inputs = leaves(case)
    moving = {id(x._array) for x in inputs}
    alive: list[Call] = []  # an id belongs to another array once its own is gone

    def see(call: Call) -> None:
        alive.append(call)
        moved = [id(x) in moving for x in call.inputs]
        if any(moved) and call.primitive.rules:
            inexact = [y for y in call.results if dtype_of(y.dtype).inexact]
            moving.update(map(id, inexact))
            if inexact and call.primitive.name == name:
                found.append((call, moved))

    with watched(see):
        apply(function(name, entry), case, inputs)
    return found


def normal(random: np.random.Generator, x: Any) -> Any:
    """A random raw array of the backend, shape and dtype of another."""
    array = random.standard_normal(x.shape)
    if dtype_of(x.dtype).complex:
        array = array + 1j * random.standard_normal(x.shape)
    backend = backend_of(x)
    return backend.from_numpy(np.asarray(array), backend.device(x))


def numbers(array: Any) -> np.ndarray:
    return to_reals(backend_of(array).to_numpy(backend_of(array).array(array)))


def inner(a: Any, b: Any) -> float:
    """Real part of the inner product."""
    return float(numbers(a) @ numbers(b))


def size(a: Any, b: Any) -> float:
    """The inner product's terms, by their absolute values."""
    return float(abs(numbers(a)) @ abs(numbers(b)))


def check_likeness(tangent: Any, result: Any) -> None:
    assert tangent.shape == result.shape
    assert tangent.dtype == result.dtype
    assert namespaces[type(tangent)] is namespaces[type(result)]


class Likeness:
    """Where a cotangent belongs: what `conform` asks of a node."""

    def __init__(self, x: Any) -> None:
        self.shape, self.dtype = x.shape, x.dtype


def pulled(call: Call, cotangents: tuple[Any, ...], tracked: list[bool]) -> dict[int, Any]:
    """Cotangents of a call's inputs by its rules, on raw arrays."""
    plan = call.primitive.plans[tuple(tracked)]
    saved = plan.save(call.inputs, call.out, call.parameters)
    g = cotangents if call.primitive.several else cotangents[0]
    xp = namespaces[type(cotangents[0])]
    g = plan.common(xp, g, saved)
    return {
        position: conform(rule(xp, g, *saved[piece]), Likeness(call.inputs[position]))
        for position, rule, _, piece in plan.steps
    }


def interpret(name, kind, backend, check, share=1.0):
    """Walk the table through an interpreter of arrays with arrays inside, one for all."""
    if backend.name in ("jax", "dask") and SCALE <= 1:
        pytest.skip("rules and kernels are tested on it alone; the wide profile runs it")
    run(name, kind, backend, check, share)


def run(name, kind, backend, check, share=1.0):
    entry = TABLE[name]
    if backend.name not in ("numpy", "torch") and not PRIMITIVES[name].jvps and SCALE <= 1:
        pytest.skip("derived from rules that are tested here; the wide profile runs it")
    if backend.name in entry.not_on:
        pytest.skip(entry.not_on[backend.name])
    check_examples(EXAMPLES.get(backend.name, 3) * share, check, getattr(entry, kind))


@pytest.mark.parametrize(
    ("name", "kind"),
    # One rule makes the forward rules of all elementwise functions.
    whole(TRACKED, lambda name: not PRIMITIVES[name].elementwise or PRIMITIVES[name].linear),
)
def test_forward_rules_are_the_adjoints_of_the_rules(name, kind, backend):
    r"""Of each input alone and of all together: Re ⟨g, J t⟩ = Re ⟨Jᴴ g, t⟩."""
    entry = TABLE[name]

    def check(case):
        for call, tracked in calls_of(name, entry, case):
            random = np.random.default_rng(0)
            every = [
                normal(random, x) if m else None for x, m in zip(call.inputs, tracked, strict=True)
            ]
            g = tuple(normal(random, y) for y in call.results)
            alone = [[i == j for j in range(len(tracked))] for i, m in enumerate(tracked) if m]
            for chosen in [tracked, *alone]:
                tangents = [t if m else None for t, m in zip(every, chosen, strict=True)]
                xp = namespaces[type(next(t for t in tangents if t is not None))]
                found = push(xp, call.primitive, call.inputs, call.parameters, call.out, tangents)
                found = found if call.primitive.several else (found,)
                for tangent, result in zip(found, call.results, strict=True):
                    if tangent is not None:
                        check_likeness(tangent, result)
                forwards = [(a, b) for a, b in zip(g, found, strict=True) if b is not None]
                backwards = [(x, tangents[i]) for i, x in pulled(call, g, chosen).items()]
                difference = sum(inner(*p) for p in forwards) - sum(inner(*p) for p in backwards)
                # Both sums lose some units of the last place of their largest terms.
                assert abs(difference) <= 1e-12 * (1 + sum(size(*p) for p in forwards + backwards))

    run(name, kind, backend, check)


@pytest.mark.parametrize(("name", "kind"), TRACKED)
def test_tangents_of_tensors_can_be_differentiated(name, kind, backend):
    """On Tensors the tangent has the same bits, and reverse over forward is reverse over reverse.

    The gradient of ⟨g, J(x) t⟩ by x is that of ⟨J(x)ᴴ g, t⟩, and by t it is Jᴴ g.
    """
    entry = TABLE[name]

    def check(case):
        for call, tracked in calls_of(name, entry, case)[:1]:
            random = np.random.default_rng(0)
            inputs = [
                Tensor(x, requires_grad=m) if hasattr(x, "dtype") else x
                for x, m in zip(call.inputs, tracked, strict=True)
            ]
            tangents = [
                Tensor(normal(random, x), requires_grad=True) if m else None
                for x, m in zip(call.inputs, tracked, strict=True)
            ]
            out = call.primitive.bind(*inputs, **call.parameters)
            found = push(differentiable, call.primitive, inputs, call.parameters, out, tangents)
            raw = [None if t is None else t._array for t in tangents]
            xp = namespaces[type(next(t for t in raw if t is not None))]
            plain = push(xp, call.primitive, call.inputs, call.parameters, call.out, raw)
            if not call.primitive.several:
                out, found, plain = (out,), (found,), (plain,)
            pairs = [(y, t) for y, t in zip(out, found, strict=True) if t is not None]
            for ours, theirs in zip(found, plain, strict=True):
                assert (ours is None) == (theirs is None)
                if ours is not None:
                    np.testing.assert_array_equal(numbers(ours._array), numbers(theirs))
            if not pairs:
                continue
            g = [Tensor(normal(random, y._array), requires_grad=True) for y, _ in pairs]
            xs = [x for x, m in zip(inputs, tracked, strict=True) if m]
            ts = [t for t in tangents if t is not None]
            backwards = wg.autograd.grad(
                [y for y, _ in pairs], xs, g, create_graph=True, materialize_grads=True
            )
            forwards = [t for _, t in pairs]
            for a, b in zip(gradients(forwards, g, ts), backwards, strict=True):
                close(values(a), values(b))
            second = gradients(backwards, ts, xs)
            for a, b in zip(gradients(forwards, g, xs), second, strict=True):
                close(values(a), values(b))

    run(name, kind, backend, check, 0.5)


def gradients(outputs, seeds, inputs):
    """Gradients of the inner products of outputs and seeds."""
    pairs = [(y, g) for y, g in zip(outputs, seeds, strict=True) if y.requires_grad]
    if not pairs:
        return [wg.zeros_like(x) for x in inputs]
    return wg.autograd.grad(
        [y for y, _ in pairs],
        inputs,
        [g for _, g in pairs],
        retain_graph=True,
        materialize_grads=True,
    )


def close(a, b):
    scale = max(1.0, float(np.max(np.abs(b), initial=0.0)))
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11 * scale)


MOVING = [(name, kind) for name, kind in TRACKED if facts_of(PRIMITIVES[name]).moves]


@pytest.mark.whole
@pytest.mark.parametrize(("name", "kind"), MOVING)
def test_primitives_that_move_elements(name, kind):
    """A program takes a constant that they move for the same constant."""

    def check(case):
        for call, tracked in calls_of(name, TABLE[name], case):
            moved = [x for x, m in zip(call.inputs, tracked, strict=True) if m]
            elements = np.concatenate([np.reshape(x, -1) for x in moved])
            for result in call.results:
                assert np.isin(result, elements).all()

    check_examples(8, check, getattr(TABLE[name], kind))
