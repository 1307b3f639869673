"""Hooks on Tensors, and on what is saved."""

import gc

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import leaf, operation
from wengert.autograd import graph
from wengert.tape.hooks import eager
from wengert.tape.observers import observing
from wengert.testing import gradcheck
from wengert.testing.problem import values

pytestmark = pytest.mark.usefixtures("backend")


def test_nodes_say_where_hooks_are_registered():
    x = leaf(1.0)
    y = x * 3
    y.register_hook(lambda g: g)  # its node is one of another class from now on
    for node in (y.grad_fn, wg.exp(x).grad_fn):
        for name in ("register_hook", "register_prehook"):
            with pytest.raises(AttributeError, match=rf"'{name}'; use x\.register_hook\(hook\)"):
                getattr(node, name)


# -- on Tensors ----------------------------------------------------------------------------------


def test_a_hook_sees_the_whole_gradient_and_may_replace_it():
    x = leaf(1.0, 2.0)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(values(g)))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(values(g)))
    (y * y + y).sum().backward()
    # d/dy (y² + y) = 2 y + 1 at y = 3, 6: both branches arrive before the hook runs, once.
    np.testing.assert_array_equal(seen, [[7.0, 13.0], [70.0, 130.0]])
    np.testing.assert_array_equal(values(x.grad), [210.0, 390.0])


def test_hooks_of_leaves_and_of_retained_gradients():
    x = leaf(1.0)
    x.register_hook(lambda g: g * 2)
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda g: g + 1)
    assert x.is_leaf and not y.is_leaf and y.retains_grad
    y.sum().backward()
    assert (y.grad.item(), x.grad.item()) == (2.0, 12.0)
    assert wg.autograd.grad((x * 3).sum(), x)[0].item() == 6.0


def test_a_removed_hook_is_not_called():
    x = leaf(1.0)
    with x.register_hook(lambda g: g * 2) as handle:
        (x * 1).sum().backward()
    (x * 1).sum().backward()
    assert x.grad.item() == 3.0
    handle.remove()  # of a hook that is gone


def test_a_hook_is_recorded_when_the_sweep_is():
    x = leaf(1.0, -2.0)
    modes = []

    def hook(g):
        modes.append(wg.is_grad_enabled())
        return g * g

    def function(x):
        y = x * x
        y.register_hook(hook)
        return (y * x).sum()

    y = function(x)
    (g,) = wg.autograd.grad(y, x, create_graph=True)
    # the cotangent of y is x, so of x through y x² 2 x, and x² directly: g = 2 x³ + x²
    np.testing.assert_allclose(values(g), [3.0, -12.0])
    (gg,) = wg.autograd.grad(g.sum(), x)
    np.testing.assert_allclose(values(gg), [8.0, 20.0])  # 6 x² + 2 x
    # The direct x² is the saved y, so the second sweep passes y, too: with 1, which is its square.
    assert modes == [True, False]


@pytest.mark.parametrize(
    ("hook", "error", "message"),
    [
        (lambda g: wg.ones(3, dtype=wg.float64), RuntimeError, r"shape \(3,\).*shape \(2,\)"),
        (lambda g: wg.astype(g, wg.float32), RuntimeError, "dtype float32.*float64"),
        (lambda g: 1.0, TypeError, "Tensor or None, not float"),
    ],
)
def test_a_hook_that_answers_wrongly(hook, error, message):
    x = leaf(1.0, 2.0)
    y = x * 3
    y.register_hook(hook)
    with pytest.raises(error, match=message):
        y.sum().backward()
    assert x.grad is None


def test_registering_where_there_is_no_gradient():
    x = wg.ones(2)
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        x.register_hook(print)
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        x.register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="non-leaf"):
        (leaf(1.0) * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(TypeError, match="a hook is a function, not int"):
        leaf(1.0).register_hook(3)


def test_an_operation_in_place_leaves_hooks_with_the_old_value():
    x = leaf(2.0)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    y *= 5
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 1).sum().backward()
    assert seen == [1.0, 5.0]


# -- after accumulation --------------------------------------------------------------------------


def test_gradients_can_be_freed_while_the_sweep_goes_on():
    """At most one of ten gradients is there at a time, and early: the last layer's first."""
    weights = [leaf(float(i)) for i in range(10)]
    order, most = [], []

    def free(weight):
        order.append(weight.item())
        most.append(sum(w.grad is not None for w in weights))
        weight.grad = None

    for w in weights:
        w.register_post_accumulate_grad_hook(free)
    y = leaf(1.0)
    reached = []
    z = y * 1
    z.register_hook(lambda g: reached.append(len(order)))
    for w in weights:
        z = wg.sin(z + w)
    z.sum().backward()
    assert order == [float(i) for i in reversed(range(10))]
    assert most == [1] * 10
    assert reached == [10]
    assert y.grad is not None


def test_a_leaf_that_is_reached_in_several_ways():
    x, w = leaf(2.0), leaf(3.0)
    seen = []
    w.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.item()))
    y = x * w
    (y * w + w).sum().backward()  # x w² + w
    assert seen == [13.0]
    w.backward()  # the leaf is the result
    assert seen == [13.0, 14.0]
    (w * 2).backward(inputs=[w])
    assert seen == [13.0, 14.0, 16.0]
    wg.autograd.grad(w * 2, w)
    assert len(seen) == 3


def test_a_leaf_that_a_function_gives_no_gradient():
    nothing = operation(lambda ctx, x, w: x * w, lambda ctx, g: (g, None))
    x, w = leaf(1.0), leaf(1.0)
    seen = []
    w.register_post_accumulate_grad_hook(seen.append)
    nothing(x * 1, w).sum().backward()
    assert not seen and w.grad is None and x.grad is not None


def test_a_leaf_with_hooks_is_forgotten_with_the_leaf(backend):
    if backend.name != "numpy":
        pytest.skip("nothing here depends on the backend")
    gc.collect()
    before = len(eager)
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda tensor: None)
    assert len(eager) == before + 1
    x.sum().backward()
    del x
    gc.collect()
    assert len(eager) == before


# -- on what is saved ----------------------------------------------------------------------------


def test_values_in_host_memory_give_the_same_gradients():
    def function(x, y):
        with graph.save_on_cpu():
            z = wg.exp(x) * y
            return wg.concat([z, wg.tanh(y)]) ** 3

    inputs = [leaf(0.3, -0.2), leaf(1.5, 2.5)]
    assert gradcheck(function, inputs)
    plain = (wg.concat([wg.exp(inputs[0]) * inputs[1], wg.tanh(inputs[1])]) ** 3).sum()
    again = wg.autograd.grad(function(*inputs).sum(), inputs)
    for a, b in zip(again, wg.autograd.grad(plain, inputs), strict=True):
        np.testing.assert_array_equal(values(a), values(b))


def test_what_is_on_a_device_waits_in_host_memory(monkeypatch):
    """A device of array_api_strict, which says here that it is a GPU."""
    strict = pytest.importorskip("array_api_strict")
    with wg.use_backend("array_api_strict:device1"):
        x = leaf(0.5, 2.0)
        monkeypatch.setattr(type(x.array), "__dlpack_device__", lambda array: (2, 0))
        assert x.device == strict.Device("device1")
        with graph.save_on_cpu():
            y = wg.exp(x) * x
        (g,) = wg.autograd.grad(y.sum(), x)
        assert g.device == x.device
    expected = np.exp([0.5, 2.0]) * (1 + np.asarray([0.5, 2.0]))
    np.testing.assert_allclose(np.asarray(g.tolist()), expected)


def test_what_is_packed_is_not_kept():
    kept = []

    def pack(tensor):
        assert not tensor.requires_grad and not wg.is_grad_enabled()
        kept.append(values(tensor))
        return len(kept) - 1

    x = leaf(1.0, 2.0)
    with graph.saved_tensors_hooks(pack, lambda at: wg.asarray(kept[at])):
        y = wg.exp(x) * 2
    z = y * y
    # exp saves its result; a product with a number nothing but it.
    assert len(kept) == 1
    z.sum().backward()
    np.testing.assert_allclose(values(x.grad), 8 * np.exp([2.0, 4.0]))
    assert not observing


def test_contexts_nest_and_the_innermost_is_asked():
    log = []

    def hooks(name):
        return graph.saved_tensors_hooks(
            lambda t: (log.append(name), t)[1], lambda t: (log.append(f"un{name}"), t)[1]
        )

    x = leaf(1.0)
    with hooks("a"):
        y = wg.tanh(x)
        with hooks("b"):
            y = wg.tanh(y)
        y = wg.tanh(y)
    wg.tanh(y).backward()
    assert log == ["a", "b", "a", "una", "unb", "una"]


def test_a_users_function_is_packed_too():
    def cube(ctx, x):
        ctx.save_for_backward(x, None)
        return x * x * x

    def backward(ctx, g):
        x, nothing = ctx.saved_tensors
        assert nothing is None
        return g * 3 * x * x

    log = []
    x = leaf(2.0)
    with graph.saved_tensors_hooks(
        lambda t: (log.append("pack"), t)[1], lambda t: (log.append("unpack"), t)[1]
    ):
        y = operation(cube, backward)(x)
    y.backward()
    assert x.grad.item() == 12.0 and log == ["pack", "unpack"]


@pytest.mark.parametrize(
    ("unpack", "error", "message"),
    [
        (lambda packed: packed[:1], RuntimeError, r"shape \(1,\).*should have shape \(2,\)"),
        (lambda packed: wg.astype(packed, wg.float32), RuntimeError, "dtype float32"),
        (lambda packed: 3, TypeError, "Tensor or None, not int"),
    ],
)
def test_an_unpack_hook_that_answers_wrongly(unpack, error, message):
    x = leaf(1.0, 2.0)
    with graph.saved_tensors_hooks(lambda t: t, unpack):
        y = wg.exp(x)
    with pytest.raises(error, match=message):
        y.sum().backward()
    assert x.grad is None
    with pytest.raises(TypeError, match="a hook is a function"):
        graph.saved_tensors_hooks(1, unpack)


# -- as PyTorch does -----------------------------------------------------------------------------


def _scenario(lib, graph):
    """A program with hooks of all kinds; what they see, in order, and the gradients."""
    log = []

    def see(name, answer=None):
        def hook(*given):
            log.append((name, [_plain(g) for g in given]))
            return None if answer is None else answer(*given)

        return hook

    x = lib.tensor([2.0, -1.0], requires_grad=True)
    w = lib.tensor([3.0], requires_grad=True)
    x.register_hook(see("x", lambda g: g + 1))
    x.register_post_accumulate_grad_hook(lambda p: log.append(("x accumulated", _plain(p.grad))))
    w.register_post_accumulate_grad_hook(lambda p: log.append(("w accumulated", _plain(p.grad))))
    y = x * w
    handle = y.register_hook(see("never"))
    y.register_hook(see("y first", lambda g: g * 5))
    y.register_hook(see("y second"))
    handle.remove()
    y.retain_grad()
    with graph.saved_tensors_hooks(lambda t: (log.append("pack"), t * 2)[1], lambda t: t / 2):
        z = (lib.exp(y) * y).sum()
    z.backward(retain_graph=True)
    retained = y.grad.detach() * 1  # PyTorch adds to it in what follows, too
    gradients = lib.autograd.grad(z, x, retain_graph=True)
    (y * 2).sum().backward(inputs=[w])
    return log, [_plain(g) for g in (x.grad, w.grad, retained, *gradients)]


def _plain(given):
    if isinstance(given, tuple):
        return [_plain(g) for g in given]
    return None if given is None else np.round(np.asarray(given.detach().tolist()), 2).tolist()


@pytest.mark.oracle
def test_hooks_are_called_as_pytorch_calls_them(backend):
    torch = pytest.importorskip("torch")
    if backend.name != "numpy":
        pytest.skip("nothing here depends on the backend")
    log, gradients = _scenario(wg, graph)
    theirs, expected = _scenario(torch, torch.autograd.graph)
    assert log == theirs
    assert gradients == expected
