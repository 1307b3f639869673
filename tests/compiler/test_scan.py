"""Scans in compiled functions: a loop in the program, with the plain loop's results."""

import runpy
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
    """Its step takes the state once."""

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
    """Its step is one of gradient descent."""

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


def loops(step: Any) -> int:
    return step.source.count(".lax.scan(") + step.source.count("    for ")


@pytest.mark.parametrize(
    ("function", "count"),
    [(once, 2), (often, 2), (nested, 4), (inside, 2), (parts, 2)],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_values_and_gradients(function, count, backend) -> None:
    gradient = wg.value_and_grad(function, (0, 1, 2))
    step = wg.compile(lambda *given: gradient(*given))
    expected = values(gradient(*arguments()))
    for _ in range(3):
        found = values(step(*arguments()))
    for a, b in zip(found, expected, strict=True):
        if function not in (nested, inside) and backend.name == "numpy":
            np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)
    assert loops(step) == count


def test_programs_do_not_grow_with_the_length() -> None:
    gradient, sources = wg.grad(often, (0, 1, 2)), []
    for length in (1, 10, 100):
        step = wg.compile(lambda *given: gradient(*given))
        given = (*arguments()[:2], random(length, 2, 3))
        for _ in range(3):
            found = step(*given)
        for a, b in zip(values(found), values(gradient(*given)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11)
        assert loops(step) == 2
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


UNROLLED = {
    "written": written,
    "counted": counted,
    "hooked": hooked,
    "kept": kept,
    "changed": changed,
    "differentiated": differentiated,
    "drawn": lambda w, h, x: wg.scan(lambda h, x: (dropout(h + x, 0.5), h), dropout(h, 0.5), x),
    "checkpoints": lambda w, h, x: wg.scan(lambda h, x: (h @ w + x, h), h, x, checkpoint=True),
    "twice": lambda w, h, x: wg.hvp(once, (w, h, x), (w, h, x))[0],
    "forward": lambda w, h, x: wg.jvp(lambda w: once(w, h, x), (w,), (w,)),
    "mapped": lambda w, h, x: wg.vmap(lambda w: once(w, h, x))(wg.stack((w, 2 * w))),
    "hessian": lambda w, h, x: wg.hessian(once)(w, h, x),
}


@pytest.mark.parametrize("name", UNROLLED)
def test_unrolled(name) -> None:
    function = UNROLLED[name]
    step = wg.compile(function)
    for seed in range(3):
        wg.manual_seed(seed)
        found = values(step(*arguments()))
    wg.manual_seed(2)
    expected = values(function(*arguments()))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)
    assert step.report.recordings == 1
    assert loops(step) == 0
