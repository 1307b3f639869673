"""Sweeps: parts of an array, whose cotangents are added in memory of their own; several results.

The values are compared with the derivative written out, and nothing that a user can see may be
written into: seeds, gradients that hooks were given, other gradients, saved values.
"""

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import operation
from wengert.backends import Backend, namespaces
from wengert.func import grad, hessian, jacrev
from wengert.tape.primitive import PRIMITIVES, Primitive

KEYS = {
    "an integer": (2,),
    "a negative integer": (-1,),
    "all integers": (1, 2),
    "a slice": (slice(1, 3),),
    "steps": (slice(None, None, 2), slice(2, None)),
    "backwards": (slice(None, None, -1), slice(3, 0, -2)),
    "new axes": (None, slice(0, 2), None, 1),
    "an ellipsis": (..., 0),
    "all of it": (...,),
    "nothing": (slice(2, 2),),
}
A = np.arange(16.0).reshape(4, 4) / 7 - 1


def leaf(values, dtype=wg.float64):
    return wg.tensor(values, dtype=dtype, requires_grad=True)


def parts(x):
    """Squares of parts, which overlap."""
    return [wg.sum(x[key] * x[key] * (n + 1)) for n, key in enumerate(KEYS.values())]


def slopes(a):
    """The derivative of the sum of `parts`."""
    weights = np.zeros_like(a)
    for n, key in enumerate(KEYS.values()):
        weights[key] += n + 1
    return 2 * weights * a


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("own", [False, True])
def test_a_value_is_added_at_a_key(backend: Backend, name, own):
    key = KEYS[name]
    total, value = wg.asarray(A.copy())._array, wg.asarray(A[key] * 3)._array
    made = namespaces[type(total)].add_part(total, value, key=key, own=own)
    expected = A.copy()
    expected[key] += A[key] * 3
    np.testing.assert_array_equal(backend.to_numpy(made), expected)
    if not own:
        np.testing.assert_array_equal(backend.to_numpy(total), A)


@pytest.mark.usefixtures("backend")
def test_overlapping_parts_of_a_leaf_and_of_a_result():
    x = leaf(A)
    sum(parts(x)).backward()
    np.testing.assert_allclose(x.grad.numpy(), slopes(A), rtol=1e-14)
    x.grad = None
    sum(parts(2 * x)).backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * slopes(2 * A), rtol=1e-14)


@pytest.mark.usefixtures("backend")
def test_parts_among_other_uses_in_any_order():
    x = leaf(A)
    first = x[1]
    whole = x * 3
    last = x[1:, 0]
    (wg.sum(first) + wg.sum(whole) + wg.sum(last) + wg.sum(x)).backward()
    expected = np.full((4, 4), 4.0)
    expected[1] += 1
    expected[1:, 0] += 1
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@pytest.mark.usefixtures("backend")
def test_a_cotangent_that_goes_to_two_operands_is_not_written_into():
    x, w = leaf(A), leaf(A + 1)
    seed = wg.ones((4, 4), dtype=wg.float64)
    part = x[0]
    y = x + w  # whose rule hands one cotangent on to both
    wg.autograd.backward([y, part], [seed, part.detach() * 0 + 5])
    expected = np.ones((4, 4))
    np.testing.assert_array_equal(w.grad.numpy(), expected)
    np.testing.assert_array_equal(seed.numpy(), expected)
    expected[0] += 5
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@pytest.mark.usefixtures("backend")
def test_what_hooks_were_given_stays_as_it_was():
    x = leaf(A)
    y = wg.sin(x)
    y.retain_grad()
    seen = []
    for tensor in (x, y):
        tensor.register_hook(lambda g: seen.append((g, g.numpy().copy())))
    result = sum(parts(y))
    result.backward(retain_graph=True)
    result.backward()
    assert len(seen) == 4
    for g, before in seen:
        np.testing.assert_array_equal(g.numpy(), before)
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.cos(A) * slopes(np.sin(A)), rtol=1e-13)
    np.testing.assert_allclose(y.grad.numpy(), 2 * slopes(np.sin(A)), rtol=1e-14)


@pytest.mark.usefixtures("backend")
def test_parts_of_an_array_without_axes():
    x = leaf(0.5)
    early = x[None]
    doubled, tripled = x * 2, x * 3
    late = x[...]
    (wg.sum(early) * 5 + doubled + tripled + late).backward()
    assert x.grad.item() == 11.0


@pytest.mark.usefixtures("backend")
def test_parts_where_only_some_inputs_are_asked_for():
    x, y = leaf(A), leaf(A)
    z = y * 2
    (g,) = wg.autograd.grad(wg.sum(x[0] * z[1]) + wg.sum(x[1:]), x)
    expected = np.ones((4, 4))
    expected[0] = 2 * A[1]
    np.testing.assert_allclose(g.numpy(), expected, rtol=1e-14)


@pytest.mark.usefixtures("backend")
def test_derivatives_of_derivatives_of_parts():
    x = leaf(A)
    value = sum(wg.sum(x[key] ** 3) for key in KEYS.values())
    (g,) = wg.autograd.grad(value, x, create_graph=True)
    wg.sum(g * g).backward()
    weights = slopes(np.ones((4, 4))) * 0
    for key in KEYS.values():
        weights[key] += 1
    np.testing.assert_allclose(x.grad.numpy(), 36 * weights**2 * A**3, rtol=1e-13)


def test_batches_of_cotangents_and_forward_mode():
    weights = slopes(np.ones((4, 4)))
    total = lambda x: sum(parts(x))
    rows = jacrev(lambda x: wg.stack(parts(x)))(A)
    np.testing.assert_allclose(rows.sum(axis=0), weights * A, rtol=1e-13)
    np.testing.assert_allclose(
        hessian(total)(A), np.diag(weights.ravel()).reshape(4, 4, 4, 4), atol=1e-13
    )


def test_a_loop_over_the_parts_of_an_array_makes_one_of_its_size(monkeypatch):
    xp = namespaces[np.ndarray]
    made = []
    scatter = xp.scatter_add
    monkeypatch.setattr(
        xp, "scatter_add", lambda *a, **k: made.append(k["shape"]) or scatter(*a, **k)
    )
    x = leaf(np.ones((50, 3)))
    total = 0
    for t in range(50):
        total = total + x[t] * x[t]
    total.sum().backward()
    assert made == [(50, 3)]
    np.testing.assert_array_equal(x.grad.numpy(), np.full((50, 3), 2.0))


@pytest.mark.parametrize("dtype", [wg.float32, wg.float64])
def test_programs_round_as_the_sweep_does_and_keep_signs_of_zeros(dtype):
    def function(x):
        early = x[1:3] * -0.0
        whole = wg.sin(x) * x
        late = x[:, 1] * x[2] + x[0, ::-1]
        return wg.sum(early) * wg.sum(x[3]) + wg.sum(whole * x) * 0.1 - wg.sum(late * x[:, 3])

    step = wg.compile(grad(function))
    for shift in (0.0, 0.3, 0.7, 1.1):
        x = wg.tensor(A + shift, dtype=dtype)
        assert step(x).numpy().tobytes() == grad(function)(x).numpy().tobytes()


def test_programs_write_into_no_array_that_they_use_again():
    def function(x, y, z):
        early = x[1]
        return wg.sum(early * 3) + wg.sum(x[0] * z) + wg.sum(y[0] * z)  # equal cotangents

    @wg.compile
    def step(x, y, z):
        by_x, by_y = grad(function, argnums=(0, 1))(x, y, z)
        return by_x * 2, by_y * 2

    for shift in (0.0, 0.3, 0.7, 1.1):
        z = wg.tensor(A[0] + shift)
        by_x, by_y = step(wg.tensor(A), wg.tensor(A), z)
        np.testing.assert_array_equal(by_x.numpy()[:2], [2 * z.numpy(), [6] * 4])
        np.testing.assert_array_equal(by_y.numpy()[:2], [2 * z.numpy(), [0] * 4])


# -- operations with several results -------------------------------------------------------------


def powers(ctx, x):
    """Square and cube, differentiated by what was returned."""
    square, cube = x * x, x * x * x
    ctx.save_for_backward(x, square)
    return square, cube


def slope_of_powers(ctx, g_square, g_cube):
    x, square = ctx.saved_tensors
    return g_square * 2 * x + g_cube * 3 * square


def test_a_saved_result_adds_to_the_cotangent_of_the_result() -> None:
    x = wg.asarray(3.0, dtype=wg.float64).requires_grad_()
    square, cube = operation(powers, slope_of_powers)(x)
    (first,) = wg.autograd.grad(cube, x, create_graph=True)
    # x^2 comes in as a result and, by the rule, as what was saved of it.
    (second,) = wg.autograd.grad(square * first, x)
    assert first.item() == 27
    assert second.item() == 4 * 3 * 3**3  # of 3 x^4


def test_rules_may_be_told_which_cotangents_are_absent() -> None:
    seen = []

    def rule(xp, g, x):
        seen.append([one is None for one in g])
        return sum(xp.multiply(one, k + 1.0) for k, one in enumerate(g) if one is not None)

    name = "two_multiples"
    primitive = Primitive(
        name,
        ["x"],
        {"x": rule},
        linear="together",
        composite=lambda xp, x: (x, xp.multiply(x, 2.0)),
        several=True,
    )
    try:
        x = wg.asarray([1.0, 2.0], dtype=wg.float64).requires_grad_()
        once, twice = primitive.bind(x)
        (g,) = wg.autograd.grad(twice, x, wg.ones_like(twice), retain_graph=True)
        np.testing.assert_array_equal(g.numpy(), [2, 2])
        wg.sum(once + twice).backward()
        np.testing.assert_array_equal(x.grad.numpy(), [3, 3])
        assert seen == [[True, False], [False, False]]
    finally:
        del PRIMITIVES[name]
