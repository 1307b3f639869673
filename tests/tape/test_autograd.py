"""backward and grad: accumulation, retained graphs, errors that change nothing."""

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wengert as wg
from tests.func.operations import operation
from tests.ops.cases import examples

pytestmark = pytest.mark.usefixtures("backend")


def leaf(*values, dtype=wg.float64):
    return wg.tensor(list(values), dtype=dtype, requires_grad=True)


def test_gradients_add_up_over_calls_and_paths():
    x = leaf(2.0, 3.0)
    (x * x + x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [5.0, 7.0])
    (3 * x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [8.0, 10.0])


def test_accumulation_keeps_the_gradient_object_and_spares_copies_of_it():
    x = leaf(1.0)
    (2 * x).sum().backward()
    g, before = x.grad, x.grad.detach()
    (2 * x).sum().backward()
    assert x.grad is g and g.item() == 4.0
    assert before.item() == 2.0


def test_broadcast_operands_get_gradients_of_their_own_shape_and_dtype():
    x = wg.ones((3, 1), dtype=wg.float32, requires_grad=True)
    y = wg.ones((2, 1, 4), dtype=wg.float64, requires_grad=True)
    (x * y).sum().backward()
    assert (x.grad.shape, x.grad.dtype) == ((3, 1), wg.float32)
    assert (y.grad.shape, y.grad.dtype) == ((2, 1, 4), wg.float64)
    np.testing.assert_array_equal(x.grad.numpy(), np.full((3, 1), 8.0))
    np.testing.assert_array_equal(y.grad.numpy(), np.full((2, 1, 4), 3.0))


def test_gradients_do_not_share_memory_with_each_other_or_with_the_seed(backend):
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    seed = wg.ones(2, dtype=wg.float64)
    (x + y).backward(seed)
    arrays = [x.grad.array, y.grad.array, seed.array]
    assert len({id(a) for a in arrays}) == 3
    if backend.name == "numpy":
        assert not any(np.shares_memory(a, b) for a in arrays for b in arrays if a is not b)
        z = leaf(1.0, 2.0)
        z.sum().backward()
        z.grad.array[0] = 5.0  # a broadcast view would be read-only, or change both entries
        np.testing.assert_array_equal(z.grad.numpy(), [5.0, 1.0])


class _KeepsWeight(wg.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        (w,) = ctx.saved_tensors
        return w, g


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_what_rules_return_and_hooks_keep_is_nobodys_gradient(create_graph, named, backend):
    x, w, kept = leaf(1.0, 2.0), leaf(3.0, 4.0), []
    x.register_hook(kept.append)
    shifted = x + 0
    shifted.register_hook(kept.append)
    inputs = [x, w] if named else None
    wg.sum(_KeepsWeight.apply(shifted, w)).backward(create_graph=create_graph, inputs=inputs)
    assert len(kept) == 2
    assert x.grad.array is not w.array
    assert x.grad.array is not kept[0].array
    if backend.name == "numpy":
        x.grad.array[:] = 7.0
        assert (w.tolist(), kept[0].tolist(), kept[1].tolist()) == ([3, 4], [3, 4], [3, 4])


def test_grad_of_an_intermediate_and_of_the_output_itself():
    x = leaf(2.0)
    y = x * x
    z = y * 3
    gz, gy, gx = wg.autograd.grad(z, [z, y, x])
    assert (gz.item(), gy.item(), gx.item()) == (1.0, 3.0, 12.0)


def test_grad_runs_only_what_lies_between():
    calls = []

    probe = operation(lambda ctx, x: x * 1, lambda ctx, g: (calls.append(g), g)[1])
    x, w = leaf(2.0), leaf(3.0)
    loss = x * probe(w)
    wg.autograd.grad(loss, x, retain_graph=True)
    assert calls == []
    wg.autograd.grad(loss, w)
    assert len(calls) == 1


def test_unused_input():
    x, y = leaf(1.0), leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="not have been used in the graph"):
        wg.autograd.grad(x * 2, [x, y])
    assert wg.autograd.grad(x * 2, [x, y], allow_unused=True)[1] is None
    zeros = wg.autograd.grad(x * 2, [x, y], materialize_grads=True)[1]
    np.testing.assert_array_equal(zeros.numpy(), [0.0, 0.0])
    with pytest.raises(ValueError, match="allow_unused"):
        wg.autograd.grad(x * 2, y, allow_unused=False, materialize_grads=True)


def test_backward_into_named_inputs_alone():
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    (y * y).backward(inputs=[w, y])
    assert x.grad is None
    assert (w.grad.item(), y.grad.item()) == (24.0, 12.0)


def test_several_outputs_sum():
    x = leaf(2.0)
    wg.autograd.backward([x * 3, x * x], [None, wg.tensor([10.0], dtype=wg.float64)])
    assert x.grad.item() == 43.0


@pytest.mark.parametrize("gradient", [None, 1.0, [1.0, 1.0]])
def test_a_gradient_that_is_no_tensor_or_is_missing(gradient):
    x = leaf(1.0, 2.0)
    y = x * 2
    with pytest.raises((RuntimeError, TypeError), match=r"scalar outputs|should be"):
        y.backward(gradient)
    assert x.grad is None
    y.backward(wg.ones(2, dtype=wg.float64))  # nothing was used up


def test_a_gradient_of_the_wrong_shape():
    x = leaf(1.0, 2.0)
    y = x * 2
    with pytest.raises(RuntimeError, match=r"shape \(3,\).*\(2,\)"):
        y.backward(wg.ones(3, dtype=wg.float64))
    with pytest.raises(TypeError, match="int64"):
        y.backward(wg.ones(2, dtype=wg.int64))
    assert x.grad is None


def test_a_gradient_of_another_floating_dtype_is_converted():
    x = leaf(1.0, 2.0)
    (x * 2).backward(wg.ones(2, dtype=wg.float32))
    assert x.grad.dtype == wg.float64


def test_backward_of_what_needs_no_gradient():
    told = r"^element 0 of tensors does not require grad and does not have a grad_fn\. .*requires_g"
    with pytest.raises(RuntimeError, match=told):
        wg.ones(()).backward()
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match=r"inputs\[1\]"):
        wg.autograd.grad(x * 2, [x, wg.ones(1)])


def test_a_graph_swept_in_part_changes_nothing_the_second_time():
    w, x = leaf(2.0), leaf(3.0)
    shared = x * x
    (shared * 2).backward()
    g = x.grad.item()
    with pytest.raises(RuntimeError, match="second time"):
        (shared * w).backward()
    assert x.grad.item() == g and w.grad is None


def test_requires_grad_of_integers():
    with pytest.raises(RuntimeError, match="floating point and complex"):
        wg.tensor([1, 2], requires_grad=True)
    x = wg.tensor([1, 2])
    with pytest.raises(RuntimeError, match="int64"):
        x.requires_grad = True
    assert not x.requires_grad


def test_requires_grad_of_a_result_cannot_be_switched_off():
    y = leaf(1.0) * 2
    with pytest.raises(RuntimeError, match="leaf variables"):
        y.requires_grad = False
    y.requires_grad = True
    assert not y.is_leaf


def test_retain_grad():
    x = leaf(2.0)
    y = x * x
    assert not y.retains_grad
    y.retain_grad()
    assert y.retains_grad
    (y * 3).backward()
    assert y.grad.item() == 3.0
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        wg.ones(1).retain_grad()


def test_assigning_grad_is_checked():
    x = leaf(1.0, 2.0)
    with pytest.raises(TypeError, match="list"):
        x.grad = [1.0, 2.0]
    with pytest.raises(RuntimeError, match=r"shape \(3,\)"):
        x.grad = wg.ones(3, dtype=wg.float64)
    other = "array_api_strict" if x.backend.name == "numpy" else "numpy"
    with pytest.raises(RuntimeError, match=f"is on {other}, but .*to_backend"):
        x.grad = wg.ones(2, dtype=wg.float64).to_backend(other)
    x.grad = wg.ones(2, dtype=wg.float64)
    del x.grad
    assert x.grad is None


def test_calling_grad_fn_gives_each_input_its_own():
    x = leaf(2.0)
    left, right = (x * x).grad_fn(wg.ones(1, dtype=wg.float64))
    assert (left.item(), right.item()) == (2.0, 2.0)
    assert left.requires_grad
    with pytest.raises(TypeError, match="takes 1 cotangents"):
        (x * x).grad_fn()
    with pytest.raises(RuntimeError, match="shape"):
        (x * x).grad_fn(wg.ones(2, dtype=wg.float64))


def test_a_gradient_on_another_backend():
    x = leaf(1.0)
    other = "array_api_strict" if x.backend.name == "numpy" else "numpy"
    with pytest.raises(wg.BackendError, match=f"on {other}.*to_backend"):
        (x * 2).backward(wg.ones(1, dtype=wg.float64).to_backend(other))
    assert x.grad is None


def test_an_input_keeps_what_its_own_operation_saved():
    """The rules of the operations that gave the inputs of `grad` do not run."""
    x = leaf(0.5, 2.0)
    y = wg.exp(x)
    z = wg.sum(wg.sin(y))
    (g,) = wg.autograd.grad(z, y)
    np.testing.assert_allclose(g.numpy(), np.cos(y.detach().numpy()), rtol=1e-12)
    wg.sum(y).backward()
    np.testing.assert_allclose(x.grad.numpy(), y.detach().numpy())
    with pytest.raises(RuntimeError, match="second time"):
        wg.autograd.grad(z, y)


@pytest.mark.parametrize("create_graph", [False, True])
def test_only_rules_on_the_way_to_what_is_asked_for_run(create_graph):
    x = wg.asarray([1.5, 2.0], requires_grad=True)
    y = wg.asarray([0.5, 1.0], requires_grad=True)
    out = wg.sum(x * wg.nextafter(y, 2 * y))  # which has no derivative
    (gradient,) = wg.autograd.grad(out, x, create_graph=create_graph)
    np.testing.assert_allclose(gradient.detach().numpy(), [0.5, 1.0], rtol=1e-6)


# -- flags and dtypes that the backward pass looks at, not the forward pass: as in PyTorch ---------


def one(xp: Any, value: Any = 3.0) -> Any:
    return xp.tensor(value, requires_grad=True)


def frozen(xp: Any, steps: Any, end: str) -> Any:
    """What a program gives in which a leaf is frozen, unfrozen, used and given hooks."""
    x, w, seen = one(xp, 2.0), one(xp), []
    y = x * 0.5
    for step in steps:
        if step == "use":
            y = y + x * w * w
        elif step == "use later":
            y = y + w.detach() * w
        elif step in ("freeze", "unfreeze"):
            w.requires_grad_(step == "unfreeze")
        elif step == "gradient":
            w.grad = xp.tensor(5.0)
        elif step == "hook" and w.requires_grad:
            w.register_hook(lambda g: (seen.append(g.item()), g * 10)[1])
        elif step == "hook of the sum" and w.requires_grad:
            w.register_post_accumulate_grad_hook(lambda w: seen.append(w.grad))
    if end == "freeze in the sweep":
        y.register_hook(lambda g: w.requires_grad_(False) and None)
    if end in ("backward", "freeze in the sweep"):
        y.backward()
    else:
        (g,) = xp.autograd.grad(y * x, [x], create_graph=end == "twice")
        seen.append(g.item())
        if end == "twice":
            g.backward()
            del seen[1:]  # PyTorch's hooks see less where the leaf was frozen after its use
    return plain([seen, x.grad, w.grad, y.requires_grad])


STEPS = ["use", "use later", "freeze", "unfreeze", "gradient", "hook", "hook of the sum"]
ENDS = ["backward", "grad", "twice", "freeze in the sweep"]


def plain(found: Any) -> Any:
    """Numbers in the place of both libraries' Tensors."""
    if isinstance(found, list):
        return [plain(x) for x in found]
    return found.item() if hasattr(found, "item") else found


@pytest.mark.oracle
def test_frozen_leaves_are_as_pytorchs() -> None:
    torch = pytest.importorskip("torch")

    @settings(max_examples=examples(200))
    @given(st.lists(st.sampled_from(STEPS), max_size=9), st.sampled_from(ENDS))
    def check(steps: Any, end: str) -> None:
        assert frozen(wg, steps, end) == frozen(torch, steps, end)

    check()


def test_without_pytorch(backend: Any) -> None:
    """What the comparison says, on every backend."""
    assert frozen(wg, ["use", "freeze"], "backward") == [[], 9.5, None, True]
    assert frozen(wg, ["use", "freeze", "use", "unfreeze", "use", "hook"], "backward") == [
        [24.0],
        27.5,
        240.0,
        True,
    ]
    w = one(wg)  # values, not storage: nothing that is saved is spoilt here
    y = w * w
    w.requires_grad_(False)
    w += 1
    y.backward()
    w.requires_grad_(True)
    (w * w).backward()
    assert w.grad.item() == 8.0


@pytest.mark.parametrize("call", ["backward", "grad"])
def test_frozen_inputs_are_errors(call: str) -> None:
    w = one(wg)
    y = w * w
    w.requires_grad_(False)
    with pytest.raises(RuntimeError, match="does not require grad"):
        y.backward(inputs=[w]) if call == "backward" else wg.autograd.grad(y, [w])
    with pytest.raises(RuntimeError, match="doesn't require grad"):
        w.register_hook(lambda g: g)


def test_nothing_is_kept_of_frozen_leaves() -> None:
    w = one(wg)
    w.register_hook(lambda g: g)
    y = w * 2
    w.requires_grad_(False)
    place = weakref.ref(y.grad_fn.next_functions[0][0])
    gc.disable()
    try:
        del y, w
        assert place() is None
    finally:
        gc.enable()


def test_a_leaf_of_another_dtype_has_another_place() -> None:
    model = wg.nn.Linear(1, 1)
    before = model.weight * 2
    model.requires_grad_(False)
    model.to(wg.float64)
    model.requires_grad_(True)
    before.sum().backward()
    assert model.weight.grad is None
    (model.weight * 3).sum().backward()
    assert model.weight.grad.dtype is wg.float64 and model.weight.grad.item() == 3.0


def test_a_new_tensor_does_not_take_a_frozen_ones_place() -> None:
    kept = []
    for _ in range(50):  # identities come again
        w = one(wg)
        kept.append(w * 2)
        w.requires_grad_(False)
        del w
        other = one(wg)
        kept[-1].backward()
        assert other.grad is None
        del other


@pytest.mark.parametrize("value", [1 + 2j, [1 + 2j]])
def test_no_implicit_gradient_of_complex_results(value: Any, backend: Any) -> None:
    z = wg.tensor(value, requires_grad=True)
    text = "grad can be implicitly created only for real scalar outputs but got complex64"
    for differentiate in (
        lambda: (z * z).backward(),
        lambda: z.backward(),
        lambda: wg.autograd.grad(z * z, z),
        lambda: wg.autograd.backward([wg.sum(wg.abs(z)), z * z], [None, None]),
    ):
        with pytest.raises(RuntimeError, match=text):
            differentiate()
    assert z.grad is None
    y = z * z
    y.backward(wg.ones_like(y))
    np.testing.assert_allclose(z.grad.numpy(), 2 * np.conj(np.asarray(value)))


def test_complex_gradients_of_real_results_are_errors(backend: Any) -> None:
    """PyTorch's rule, too: the imaginary part would vanish."""
    x = wg.tensor(2.0, requires_grad=True)
    g = wg.tensor(1 + 1j)
    y = x * x
    with pytest.raises(RuntimeError, match=r"gradient is complex64 .* is float32.*real part"):
        y.backward(g)
    with pytest.raises(RuntimeError, match="imaginary part would be lost"):
        wg.autograd.grad(y, x, g)
    with pytest.raises(RuntimeError, match="imaginary part would be lost"):
        y.grad_fn(g)
    _, pullback = wg.vjp(lambda t: t * t, x)
    for cotangent in (g, 1 + 1j):
        with pytest.raises(TypeError, match=r"cotangent is complex.*float32.*real part"):
            pullback(cotangent)


def test_gradients_of_results_of_one_element(backend: Any) -> None:
    for shape in ((), (1,), (1, 1)):
        x = wg.asarray(np.full(shape, 3.0))
        value, gradient = wg.value_and_grad(lambda t: t**2)(x)
        assert value.shape == gradient.shape == shape
        assert gradient.item() == 6.0
        assert wg.grad(lambda t: t**3 * wg.ones((1, 1), dtype=wg.float64))(x).item() == 27.0
        assert wg.hvp(lambda t: t**3, (x,), (wg.ones_like(x),))[0].item() == 18.0
        assert wg.grad(lambda t: (t**2, SimpleNamespace()), has_aux=True)(x)[0].item() == 6.0
    value, gradient = wg.value_and_grad(lambda t: wg.reshape(t, (1,)) ** 2)(3.0)
    assert (wg.asarray(value).item(), gradient) == (9.0, 6.0)


@pytest.mark.parametrize("size", [3, 100_000])
def test_what_somebody_holds_is_not_added_into(size: int) -> None:
    """Cotangents are added in place where nothing else refers to them, and only there."""
    held: list[Any] = []

    class Twice(wg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            held.append(made := g * 2)
            return made

    x = wg.tensor(np.ones(size, np.float32), requires_grad=True)
    seed = wg.tensor(np.ones(size, np.float32))
    middle = x * 3
    middle.register_hook(held.append)
    y = Twice.apply(middle) + middle * middle + middle + Twice.apply(middle)
    (y + y).backward(seed)
    assert x.grad.numpy().tolist() == [(4 + 2 * 3 + 1) * 2 * 3.0] * size
    assert seed.numpy().tolist() == [1.0] * size
    assert [h.numpy()[0].item() for h in held] == [4.0, 4.0, 22.0]
