"""Scans in compiled functions: a loop in the program, with the plain loop's results."""

import runpy
import types
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import nn

dropout = nn.functional.dropout
pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture(autouse=True)
def _loops(backend: Any) -> None:
    if backend.name not in ("numpy", "jax"):
        pytest.skip("scans are unrolled there")


def random(*shape: int) -> Any:
    return wg.asarray(np.random.default_rng(sum(shape)).standard_normal(shape))


def arguments() -> Any:
    return random(3, 3) * 0.5, random(2, 3), random(9, 2, 3)


def values(tree: Any) -> Any:
    return [x.detach().numpy() for x in wg.func.tree_leaves(tree)]


def once(w: Any, h: Any, x: Any) -> Any:

    def step(h: Any, x: Any) -> Any:
        h = wg.tanh(h @ w + x)
        return h, h

    last, ys = wg.scan(step, h, x)
    return wg.sum(last) + wg.sum(ys**2)


def often(w: Any, h: Any, x: Any) -> Any:
    """Its step takes the state and what it closes over several times; a result is not used."""

    def step(h: Any, x: Any) -> Any:
        k = wg.tanh(h @ w)
        h = h + 0.1 * wg.sin(h + k) @ w + x
        return h, (h, {"sum": wg.sum(h), "unused": wg.sqrt(wg.sum(h * 0))})

    last, (ys, more) = wg.scan(step, h, wg.flip(x, axis=0))
    return wg.sum(last**2) + wg.sum(ys**3) + wg.sum(more["sum"] ** 2)


def nested(w: Any, h: Any, x: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        last, ys = wg.scan(lambda s, _: (wg.tanh(s @ w) + x, s), h, length=5)
        return last, wg.sum(ys)

    last, ys = wg.scan(step, h, x)
    return wg.sum(last) + wg.sum(ys)


def inside(w: Any, h: Any, x: Any) -> Any:

    def step(h: Any, x: Any) -> Any:
        g = wg.grad(lambda h: wg.sum(wg.sin(h @ w) * x))(h)
        return h - 0.1 * g, wg.sum(g**2)

    last, ys = wg.scan(step, h, x)
    return wg.sum(last**2) + wg.sum(ys)


def parts(w: Any, h: Any, x: Any) -> Any:
    """The state has leaves that are not tracked, or not floating."""

    def step(state: Any, x: Any) -> Any:
        h, n, still = state
        return (wg.tanh(h @ w) * n + x[0], n + 1, still), (n, h > 0, still[:, 0])

    state, ys = wg.scan(step, (h, wg.asarray(0), random(4, 2)), (x,))
    return wg.sum(state[0]) + wg.sum(ys[0] * ys[1][:, 0, 0]) + wg.sum(ys[2])


def written(w: Any, h: Any, x: Any) -> Any:
    """Its step changes Tensors in place, which may be of others."""

    def step(h: Any, x: Any) -> Any:
        h *= 0.5
        y = wg.zeros((2, 3), dtype=wg.float64)
        y[0] = h[1] @ w
        return h + x, y

    last, ys = wg.scan(step, h, x)
    return wg.sum(last**2) + wg.sum(ys**2)


def agree(
    step: Any, function: Any, given: Any, loops: Any, rtol: float = 1e-11, atol: float = 0.0
) -> Any:
    """Call three times; the last gives what the function gives, by a program of so many loops."""
    for seed in range(3):
        wg.manual_seed(seed)
        found = step(*given)
    wg.manual_seed(2)
    expected = function(*given)
    assert wg.func.tree_flatten(found)[1] == wg.func.tree_flatten(expected)[1]
    for a, b in zip(values(found), values(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
    assert loops in (None, step.source.count(".lax.scan(") + step.source.count("    for "))
    return found


@pytest.mark.parametrize("function", [once, often, nested, inside, parts])
def test_values_and_gradients(function, backend) -> None:
    gradient = wg.value_and_grad(function, (0, 1, 2))
    step = wg.compile(lambda *given: gradient(*given))
    exact = function is not inside and backend.name == "numpy"
    agree(step, gradient, arguments(), 2, *((0.0, 0.0) if exact else (1e-11, 1e-13)))


def test_programs_do_not_grow_with_the_length() -> None:
    gradient, sources = wg.grad(often, (0, 1, 2)), []
    for length in (1, 10, 100):
        step = wg.compile(lambda *given: gradient(*given))
        given = (*arguments()[:2], random(length, 2, 3))
        agree(step, gradient, given, 2 if length > 1 else 0)
        sources.append(len(step.source.splitlines()))
    assert sources[1] == sources[2]


def test_saved(tmp_path) -> None:
    gradient = wg.grad(often, (0, 1, 2))

    @wg.compile
    def step(w: Any, h: Any, x: Any) -> Any:
        return gradient(w, h, x)

    for _ in range(3):
        expected = step(*arguments())
    step.save(tmp_path / "step.py")
    found = runpy.run_path(str(tmp_path / "step.py"))["step"](*[x._array for x in arguments()])
    for a, b in zip(found, values(expected), strict=True):
        np.testing.assert_array_equal(np.asarray(a), b)


# -- what no loop can do, and is unrolled ----------------------------------------------------------


def kept(w: Any, h: Any, x: Any) -> Any:
    found = []

    def step(h: Any, x: Any) -> Any:
        h = wg.tanh(h @ w + x)
        found.append(h)
        return h, None

    wg.scan(step, h, x)
    return wg.sum(wg.stack(found) ** 2)


def changed(w: Any, h: Any, x: Any) -> Any:
    total = wg.zeros((2, 3), dtype=wg.float64)

    def step(h: Any, x: Any) -> Any:
        nonlocal total
        total += h * w[0]
        return h + x, None

    wg.scan(step, h, x)
    return wg.sum(total**2)


def differentiated(w: Any, h: Any, x: Any) -> Any:
    p = w.detach().requires_grad_()

    def step(h: Any, x: Any) -> Any:
        h = wg.tanh(h @ p + x)
        wg.sum(h).backward(retain_graph=True)
        return h.detach(), None

    wg.scan(step, h, x)
    return wg.sum(p.grad)


def hooked(w: Any, h: Any, x: Any) -> Any:
    """Its hooks are on states, which the steps before have computed."""

    def step(h: Any, x: Any) -> Any:
        h.register_hook(lambda g: g / 2)
        return wg.tanh(h @ w) + x, h

    return wg.grad(lambda h: wg.sum(wg.scan(step, 2 * h, x)[1] ** 2))(h)


def counted(w: Any, h: Any, x: Any) -> Any:
    weights = iter((w, 2 * w, 3 * w) * 6)
    last, _ = wg.scan(lambda h, x: (wg.tanh(h @ next(weights)) + x, None), h, x)
    return last


def late(w: Any, h: Any, x: Any) -> Any:
    weights = iter((w, w, w, 2 * w) * 5)
    return wg.scan(lambda h, x: (wg.tanh(h @ next(weights)) + x, None), h, x)[0]


def constant(w: Any, h: Any, x: Any) -> Any:
    scales = iter((0.0, 0.0, -0.0, 2.0, True, 1, 1, 1, 1) * 2)
    return wg.scan(lambda h, x: (h * next(scales) + x, None), h, x)[0]


def returned(w: Any, h: Any, x: Any) -> Any:
    """Its steps compute the same, and return another."""
    turns = iter((0, 0, 0, 1, 0, 1, 1, 1, 1) * 2)

    def step(h: Any, x: Any) -> Any:
        both = wg.tanh(h + x), wg.sin(h + x)
        return both[next(turns)], both[0]

    return wg.scan(step, h, x)


def detached(w: Any, h: Any, x: Any) -> Any:
    """Its steps compute the same, and differ on the tape."""

    def function(h: Any) -> Any:
        turns = iter((0, 0, 0, 0, 1, 0, 0, 0, 0) * 2)

        def step(h: Any, x: Any) -> Any:
            return wg.tanh((h.detach() if next(turns) else h) @ w) + x, h

        return wg.sum(wg.scan(step, h, x)[1] ** 2)

    return wg.grad(function)(h)


def inner(w: Any, h: Any, x: Any) -> Any:
    turns = iter((w, w, w, 2 * w, w, w, w, w, w) * 2)

    def step(h: Any, x: Any) -> Any:
        u = next(turns)
        return wg.scan(lambda s, _: (wg.tanh(s @ u) + x, None), h, length=3)[0], h

    return wg.scan(step, h, x)


def asked(w: Any, h: Any, x: Any) -> Any:
    """Its first step gets what does not require grad."""

    def function(w: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            return (h * w[0] if h.requires_grad else 3 * w[0]) + x, h

        return wg.sum(wg.scan(step, h, x)[0] * w[0])

    return wg.grad(function)(w)


def counts(w: Any, h: Any, x: Any) -> Any:
    """It is a loop, whose steps are counted."""
    n = [0]

    def step(h: Any, x: Any) -> Any:
        n[0] += 1
        return h + x, None

    return wg.scan(step, h, x)[0] / n[0]


def test_python_runs_in_every_step() -> None:
    agree(wg.compile(counts, check=0), counts, arguments(), 1, 0.0)


def test_numbers_of_steps_stay_outside_the_loop() -> None:
    def function(h: Any, x: Any, k: float) -> Any:
        h = h * (k * 2)
        return wg.scan(lambda h, x: (h * (k * 2) + x * (k + 1), None), h, x)[0] * (k + 1)

    agree(wg.compile(function, check=0), function, (*arguments()[1:], 0.5), 1)


def hooked_after(w: Any, h: Any, x: Any) -> Any:
    """The last state and the last result are one, so that a hook gets both cotangents."""

    def function(w: Any) -> Any:
        last, ys = wg.scan(lambda h, x: (wg.tanh(h @ w + x),) * 2, h, x)
        last.register_hook(lambda g: wg.clip(g, -0.5, 0.5))
        return wg.sum(ys**2) + wg.sum(last)

    return wg.grad(function)(w)


def hooks_differ(w: Any, h: Any, x: Any) -> Any:
    def function(w: Any) -> Any:
        count = [0]

        def step(h: Any, x: Any) -> Any:
            count[0] += 1
            h = wg.tanh(h @ w + x)
            h.register_hook(lambda g, k=1 / count[0]: g * k)
            return h, None

        return wg.sum(wg.scan(step, h, x)[0])

    return wg.grad(function)(w)


def target(w: Any, h: Any, x: Any) -> Any:
    """Of the last state's cotangent a part comes by the last result."""

    def step(s: Any, x: Any) -> Any:
        h = wg.tanh(s[0] @ s[1] + x)
        return (h, s[1]), h * 2

    w = (w * 1).requires_grad_()
    (last, k), ys = wg.scan(step, (h, w), x)
    value = wg.sum(ys**2) + wg.sum(last) + wg.sum(k)
    return wg.autograd.grad(value, [last, k])


def passed_on(w: Any, h: Any, x: Any) -> Any:
    """A state that is passed on without a record keeps its own."""
    w = (w * 1).requires_grad_()
    with wg.no_grad():
        (_, k), _ = wg.scan(lambda s, x: ((wg.tanh(s[0] @ s[1] + x), s[1]), None), (h, w), x)
    return wg.autograd.grad(wg.sum(k**2), w)


UNROLLED = {
    **{
        x.__name__: x
        for x in (target, passed_on, hooked_after, hooks_differ, written, counted, late, constant)
        + (returned, detached, inner, asked, hooked, kept, changed, differentiated)
    },
    "drawn": lambda w, h, x: wg.scan(lambda h, x: (dropout(h + x, 0.5), h), dropout(h, 0.5), x),
    "checkpoints": lambda w, h, x: wg.scan(lambda h, x: (h @ w + x, h), h, x, checkpoint=True),
    "twice": lambda w, h, x: wg.hvp(once, (w, h, x), (w, h, x))[0],
    "forward": lambda w, h, x: wg.jvp(lambda w: once(w, h, x), (w,), (w,)),
    "mapped": lambda w, h, x: wg.vmap(lambda w: once(w, h, x))(wg.stack((w, 2 * w))),
    "hessian": lambda w, h, x: wg.hessian(once)(w, h, x),
}


@pytest.mark.parametrize("name", UNROLLED)
def test_unrolled(name) -> None:
    step = wg.compile(UNROLLED[name], check=0)
    agree(step, UNROLLED[name], arguments(), 0)
    assert step.report.recordings == 1


def test_states_that_are_one_tensor() -> None:
    def function(w: Any, h: Any, x: Any) -> Any:
        k = h * 2

        def step(s: Any, x: Any) -> Any:
            h = wg.tanh(s[0] @ w + s[2] + x)
            return (h, h, k), None

        (a, b, c), _ = wg.scan(step, (h, h * 3, h), x)
        a += 1
        c += 1
        return a, b, c, k

    agree(wg.compile(function, check=0), function, arguments(), 1)


# -- what has no gradient --------------------------------------------------------------------------


def within(u: Any, h: Any, x: Any) -> Any:
    def step(s: Any, x: Any) -> Any:
        return wg.scan(lambda r, _: ((x, r[0]), r[1] * u), s, length=3)

    return wg.scan(step, (h, h * 2), x)


def shifted(u: Any, h: Any, x: Any) -> Any:
    tree = {"x": x, "y": (x * 2,)}
    return wg.scan(lambda s, x: ((s[1], s[2], x["x"] * u), (s[0], x["y"][0])), (h, h * u, h), tree)


#: Scans, and what is differentiated of their states and results.
PARTLY: dict[str, tuple[Any, Any]] = {
    "a window": (
        lambda u, h, x: wg.scan(lambda w, x: ((x * u, w[0]), w[1]), (h, h * 0.5), x),
        lambda found: found[0][0] * found[0][1],
    ),
    "overwritten": (lambda u, h, x: wg.scan(lambda h, x: (x * u, h), h, x), lambda found: found[0]),
    "results": (lambda u, h, x: wg.scan(lambda h, x: (x * u, h), h, x), lambda found: found[1]),
    "passed": (
        lambda u, h, x: wg.scan(lambda s, x: ((s[0], wg.tanh(s[1] + x)), s[0]), (h, x[0] + u), x),
        lambda found: found[0][1],
    ),
    "another state takes what is closed over": (
        lambda u, h, x: wg.scan(lambda s, x: ((s[0] + x, s[1] * u), u * x), (h, h), x),
        lambda found: found[0][0],
    ),
    "within": (within, lambda found: found[0][1]),
    "a chain": (
        lambda u, h, x: wg.scan(
            lambda s, x: ((s[0] * x, s[0] + s[1], s[1]), None), (h, h * 2, h * u), x
        ),
        lambda found: found[0][2],
    ),
    "last members arrive in the state alone, one at the next step but one": (
        lambda u, h, x: wg.scan(lambda s, x: ((s[1], x), s[0]), (h, h * u), x),
        lambda found: wg.sum(found[0][1] ** 2) + wg.sum(found[1] ** 2),
    ),
    "some members arrive at steps before and after others that do not": (
        shifted,
        lambda found: wg.sum(found[0][2]) + wg.sum(found[1][0] ** 2) + wg.sum(found[1][1][0]),
    ),
    "swapped": (
        lambda u, h, x: wg.scan(lambda s, x: ((s[0] * s[1], s[0] * x), s[0]), (h, h * u), x),
        lambda found: wg.sum(found[0][1]) + wg.sum(found[1] ** 2),
    ),
}


@pytest.mark.parametrize("tracked", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("name", PARTLY)
def test_none(name, length, tracked) -> None:
    scan, of = PARTLY[name]

    def gradients(*given: Any) -> Any:
        given = tuple(x.detach().requires_grad_(i in tracked) for i, x in enumerate(given))
        y = of(scan(*given))
        wanted = [given[i] for i in tracked]
        if not y.requires_grad:
            return y, wg.asarray(0.0)
        return y.detach(), wg.autograd.grad(wg.sum(y**2), wanted, allow_unused=True)

    given = random(3), random(2, 3), random(length, 2, 3)
    agree(wg.compile(gradients, check=0), gradients, given, None, 1e-12)


def test_beside_another_library_scans_are_unrolled(backend) -> None:
    def function(h: Any, x: Any, k: Any) -> Any:
        last, ys = wg.scan(lambda h, x: (wg.tanh(h + x), h), h, x)
        return last, ys, wg.asarray(k) * 2

    given = (*arguments()[1:], np.ones(3))
    found = agree(wg.compile(function, check=0), function, given, int(backend.name == "numpy"))
    assert [x.backend for x in found] == [x.backend for x in function(*given)]


def test_what_has_no_cotangent_runs_no_rule() -> None:
    """The derivative of the last step is infinite."""

    def function(h: Any, x: Any) -> Any:
        return wg.sum(wg.scan(lambda h, x: (wg.sqrt(h) - x, h), h, x)[1])

    given = wg.asarray(1.0), wg.asarray([0.0, 1.0, 0.0])
    gradient = wg.grad(function, (0, 1))
    found = agree(wg.compile(gradient, check=0), gradient, given, 2, 0.0)
    assert all(np.isfinite(x).all() for x in values(found))


def test_constants() -> None:
    """The first state and results are arrays that no operation gave."""

    def function(h: Any, x: Any) -> Any:
        def step(s: Any, x: Any) -> Any:
            return wg.tanh(s + x), (wg.ones_like(x), wg.zeros_like(s), wg.full_like(s, 2.0))

        return wg.scan(step, wg.zeros_like(h), x)

    agree(wg.compile(function, check=0), function, arguments()[1:], 1, 0.0)


#: What `eval` reads, which is not followed.
HIDDEN = types.SimpleNamespace()


@pytest.mark.parametrize("strict", [True, False])
def test_a_check_that_fails_names_the_scan(strict: bool) -> None:
    HIDDEN.k = 2.0
    h, x = arguments()[1:]

    def function() -> Any:
        return wg.scan(lambda h, x: (h * eval("HIDDEN.k") + x, None), h, x)[0]

    step = wg.compile(function, strict=strict)
    step()
    HIDDEN.k = 3.0
    if strict:
        with pytest.raises(wg.compiler.CompileError, match=r"scan is a loop .*test_scan\.py, line"):
            step()
        return
    with pytest.warns(RuntimeWarning, match="scan is a loop"):
        found = step()
    expected = wg.scan(lambda h, x: (h * 3 + x, None), h, x)[0]
    np.testing.assert_array_equal(found.numpy(), expected.numpy())
    assert np.array_equal(step().numpy(), expected.numpy())
