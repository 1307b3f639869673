"""Every code block of the four tutorials that describe how the engine should feel.

`import wengert as torch` stands for `import torch`; PyTorch's legacy constructors and torchvision
are aside. Outputs are those that the tutorials print, where they do not depend on a random draw.
"""

import re

import numpy as np
import pytest

import wengert as torch

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture(autouse=True)
def computed(backend, monkeypatch):
    """Let values be printed that dask has yet to compute; without this it prints none."""
    monkeypatch.setattr(type(backend), "is_ready", lambda self, array: True)


@pytest.fixture
def shown(capsys):
    """Return what was printed since the last call, addresses replaced by ``0x…``."""

    def read():
        return re.sub(r"0x[0-9a-fA-F]+", "0x…", capsys.readouterr().out)

    return read


def five_neurons():
    a, w1, w2, w3, w4 = (torch.randn((3, 3), requires_grad=True) for _ in range(5))
    b = w1 * a
    c = w2 * a
    d = w3 * b + w4 * c
    return a, w1, w2, w3, w4, b, c, d


# -- PyTorch 101: Understanding Graphs, Automatic Differentiation and Autograd ---------------------


def test_requires_grad_can_be_set_after_creation():
    t1 = torch.randn((3, 3), requires_grad=True)
    t2 = torch.empty((3, 3))
    assert t1.requires_grad and not t2.requires_grad
    t2.requires_grad = True
    assert t2.requires_grad
    assert t2.grad is None


def test_grad_fn_of_a_leaf_and_of_a_sum(shown):
    a, *_, d = five_neurons()
    print("The grad fn for a is", a.grad_fn)
    print("The grad fn for d is", d.grad_fn)
    assert shown() == (
        "The grad fn for a is None\nThe grad fn for d is <AddBackward0 object at 0x…>\n"
    )


def test_is_leaf_and_next_functions_of_the_five_neurons():
    a, w1, _, _, _, b, _, d = five_neurons()
    assert a.is_leaf and w1.is_leaf and not b.is_leaf and not d.is_leaf
    (left, i), (right, j) = d.grad_fn.next_functions
    assert (left.name(), i, right.name(), j) == ("MulBackward0", 0, "MulBackward0", 0)


def test_backward_on_a_vector_is_an_error():
    *_, d = five_neurons()
    L = 10 - d
    with pytest.raises(RuntimeError, match="implicitly created only for scalar outputs"):
        L.backward()


def test_backward_on_the_sum():
    *leaves, _, _, d = five_neurons()
    L = (10 - d).sum()
    L.backward()
    a, w1, w2, w3, w4 = (t.detach().numpy() for t in leaves)
    expected = (-w3 * w1 - w4 * w2, -w3 * a, -w4 * a, -w1 * a, -w2 * a)
    for t, gradient in zip(leaves, expected, strict=True):
        np.testing.assert_allclose(t.grad.numpy(), gradient, rtol=1e-5, atol=1e-6)


def test_backward_with_ones_is_backward_of_the_sum():
    a, *_, d = five_neurons()
    L = 10 - d
    L.backward(torch.ones(L.shape), retain_graph=True)
    by_ones = a.grad.numpy().copy()
    a.grad = None
    L.sum().backward()
    np.testing.assert_array_equal(by_ones, a.grad.numpy())


def test_gradient_step_by_hand():
    _, w1, *_, d = five_neurons()
    (10 - d).sum().backward()
    before, g = w1.detach().numpy().copy(), w1.grad.numpy()
    learning_rate = 0.5
    w1 = w1 - learning_rate * w1.grad
    np.testing.assert_allclose(w1.detach().numpy(), before - 0.5 * g, rtol=1e-6)


def test_the_graph_is_made_on_the_fly():
    a = torch.randn((3, 3), requires_grad=True)  # No graph yet, as a is a leaf
    w1 = torch.randn((3, 3), requires_grad=True)  # Same logic as above
    assert a.grad_fn is None and w1.grad_fn is None
    b = w1 * a  # Graph with node `mulBackward` is created.
    assert b.grad_fn.name() == "MulBackward0"


def test_second_backward_is_an_error_unless_the_graph_is_retained():
    a, *_, d = five_neurons()
    loss = (10 - d).sum()
    loss.backward(retain_graph=True)
    once = a.grad.numpy().copy()
    loss.backward()
    np.testing.assert_allclose(a.grad.numpy(), 2 * once, rtol=1e-6)
    message = (
        "Trying to backward through the graph a second time, but the buffers have already been "
        "freed. Specify retain_graph=True when calling backward the first time."
    )
    with pytest.raises(RuntimeError, match=re.escape(message)):
        loss.backward()
    np.testing.assert_allclose(a.grad.numpy(), 2 * once, rtol=1e-6)


def test_freezing():
    a = torch.randn((3, 3), requires_grad=True)
    w = torch.randn((3, 3), requires_grad=True)
    w.requires_grad = False
    (w * a).sum().backward()
    assert w.grad is None
    np.testing.assert_allclose(a.grad.numpy(), w.numpy(), rtol=1e-6)


def test_no_grad_makes_no_graph():
    w = torch.randn((3, 3), requires_grad=True)
    with torch.no_grad():
        b = w * 2
    assert b.grad_fn is None and not b.requires_grad


# -- PyTorch Computational Graphs ------------------------------------------------------------------


def test_requires_grad_is_contagious(shown):
    x = torch.randn(3, 3)  # requires_grad=False by default
    y = torch.randn(3, 3)  # requires_grad=False by default
    z = torch.randn((3, 3), requires_grad=True)
    a = x + y
    b = a + z
    print(a.requires_grad, b.requires_grad, x.grad_fn, y.grad_fn, z.grad_fn, a.grad_fn, b.grad_fn)
    assert shown() == "False True None None None None <AddBackward0 object at 0x…>\n"


def test_retain_grad(shown):
    a, b, c, d = (torch.tensor([x], requires_grad=True) for x in (2.0, 3.0, 5.0, 10.0))
    u = a * b
    t = torch.log(d)
    v = t * c
    t.retain_grad()
    e = u + v

    def show():
        for name, x in {"a": a, "t": t}.items():
            print(f"{name} is leaf: {x.is_leaf}")
            print(f"{name} grad_fn: {x.grad_fn}")
            print(f"{name} grad: {x.grad}")
        print(f"e is leaf: {e.is_leaf}")
        print(f"e grad_fn: {e.grad_fn}")
        with pytest.warns(UserWarning, match="of a Tensor that is not a leaf Tensor is being"):
            print(f"e grad: {e.grad}")

    for gradients in (("None", "None"), ("tensor([3.])", "tensor([5.])")):
        show()
        assert shown() == (
            f"a is leaf: True\na grad_fn: None\na grad: {gradients[0]}\n"
            f"t is leaf: False\nt grad_fn: <LogBackward0 object at 0x…>\nt grad: {gradients[1]}\n"
            "e is leaf: False\ne grad_fn: <AddBackward0 object at 0x…>\ne grad: None\n"
        )
        e.backward() if a.grad is None else None
    assert [x.grad.item() for x in (a, b, c)] == [3.0, 2.0, pytest.approx(np.log(10), rel=1e-6)]
    assert d.grad.item() == pytest.approx(0.5)


# -- AutoGrad in PyTorch ---------------------------------------------------------------------------


def compute():
    a = torch.tensor([3.0], requires_grad=True)
    O = 5 * a**2
    return [a, O]


def test_scalar_case(shown):
    [a, O] = compute()
    print(a)
    print(O)
    assert shown() == ("tensor([3.], requires_grad=True)\ntensor([45.], grad_fn=<MulBackward0>)\n")
    O.backward()
    print(a.grad)
    assert shown() == "tensor([30.])\n"


def test_gradients_accumulate_until_they_are_zeroed(shown):
    a = torch.tensor([2.0], requires_grad=True)
    for expected in (20, 40):
        O = 5 * a**2
        O.backward()
        print(a.grad)
        assert shown() == f"tensor([{expected}.])\n"
    print(a.grad.zero_())
    assert shown() == "tensor([0.])\n"
    O = 5 * a**2
    O.backward()
    print(a.grad)
    assert shown() == "tensor([20.])\n"


def test_graph_can_be_inspected_and_called_by_hand(shown):
    [_, O] = compute()
    print(O.grad_fn)
    print(O.grad_fn.next_functions)
    assert shown() == (
        "<MulBackward0 object at 0x…>\n((<PowBackward0 object at 0x…>, 0), (None, 0))\n"
    )
    temp = torch.tensor([1.0])
    print(O.grad_fn(temp))
    print(O.grad_fn.next_functions[0][0](temp))
    assert shown() == "(tensor([5.]), None)\ntensor([6.], grad_fn=<MulBackward0>)\n"


def test_non_scalar_case():
    x = torch.ones(3)  # input tensor
    w = torch.randn(3, 2, requires_grad=True)
    b = torch.randn(2, requires_grad=True)
    z = torch.matmul(x, w) + b
    y = torch.zeros(2)  # Output
    loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y)
    loss.backward()
    sigmoid = 1 / (1 + np.exp(-z.detach().numpy()))
    np.testing.assert_allclose(b.grad.numpy(), sigmoid / 2, rtol=1e-5)
    np.testing.assert_allclose(w.grad.numpy(), np.tile(sigmoid / 2, (3, 1)), rtol=1e-5)
    # The tutorial's point: every row of w gets the gradient of b, printed to four decimals.
    row = str(b.grad).removeprefix("tensor(").removesuffix(")")
    assert str(w.grad) == f"tensor([{row},\n        {row},\n        {row}])"


def test_no_grad_mode_and_detach(shown):
    x = torch.ones(3)
    w = torch.randn(3, 2, requires_grad=True)
    b = torch.randn(2, requires_grad=True)
    z = torch.matmul(x, w) + b
    print(z.requires_grad)
    with torch.no_grad():
        z = torch.matmul(x, w) + b
    print(z.requires_grad)
    assert shown() == "True\nFalse\n"
    z = torch.matmul(x, w) + b
    z_det = z.detach()
    print(z_det.requires_grad)
    assert shown() == "False\n"


# -- Getting Started with PyTorch, part 1 ----------------------------------------------------------


def test_from_numpy_and_randn():
    arr = np.random.default_rng(0).standard_normal((4, 3))
    tens = torch.from_numpy(arr)
    assert tens.dtype == torch.float64 and tens.shape == (4, 3)
    np.testing.assert_array_equal(tens.numpy(), arr)
    random_tensor = torch.randn((4, 3))
    assert random_tensor.dtype == torch.float32 and random_tensor.shape == (4, 3)


def test_gradient_is_the_sum_over_paths():
    # dL/da = dL/dd dd/dc dc/da + dL/dd dd/db db/da, with L = f(d).
    a, w1, w2, w3, w4, b, c, d = five_neurons()
    L = torch.exp(d).sum()
    dL_dd, dd_db, db_da, dd_dc, dc_da = torch.exp(d), w3, w1, w4, w2
    (by_engine,) = torch.autograd.grad(L, a)
    by_hand = dL_dd * dd_dc * dc_da + dL_dd * dd_db * db_da
    np.testing.assert_allclose(by_engine.numpy(), by_hand.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert b.shape == c.shape
