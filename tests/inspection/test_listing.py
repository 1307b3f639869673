"""The tape looked at, and Tensors printed."""

import re

import numpy as np
import pytest

import wengert as wg


def numbered(listing):
    """The listing with the tape's numbers replaced by places in it."""
    found = list(dict.fromkeys(re.findall(r"%\d+", listing)))
    lines = re.sub(r"%\d+", lambda m: f"%{found.index(m[0])}", listing).splitlines()
    return [" ".join(line.split()) for line in lines]


def test_of_a_loss():
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    w = wg.ones((3, 2), dtype=wg.float64, requires_grad=True)
    unrelated = w * 2
    loss = wg.sum(w * x * 3)
    entries = wg.global_tape.of(loss)
    assert numbered(repr(entries)) == [
        "%0 = leaf() (2,) float32",
        "%1 = leaf() (3, 2) float64",
        "%2 = multiply(%1, %0) (3, 2) float64",
        "%3 = multiply(%2, ·) (3, 2) float64",
        "%4 = sum(%3) () float64",
    ]
    assert entries[-1] is loss.grad_fn and len(entries) == 5
    assert unrelated.grad_fn not in list(entries)
    assert repr(wg.global_tape.of(wg.ones(1))) == "(the tape is empty)"


def test_live_entries_come_and_go():
    before = len(wg.global_tape)
    x = wg.ones(2, requires_grad=True)
    y = x * 2
    assert len(wg.global_tape) == before + 2
    assert y.grad_fn in list(wg.global_tape)
    assert "multiply" in repr(wg.global_tape)
    del y
    assert len(wg.global_tape) == before + 1


def test_several_results_are_entries_of_their_own():
    x = wg.ones((2, 3), requires_grad=True)
    first, _ = wg.unstack(x)
    assert numbered(repr(wg.global_tape.of(first * 1)))[1:3] == [
        "%1 = unstack(%0) (3,), (3,) float32, float32",
        "%2 = result 0(%1) (3,) float32",
    ]


RNG = np.random.default_rng(0)
ARRAYS = [
    *(np.array(x, np.float32) for x in ([45.0], 3.5, [1e-5, 1.0], [1e5, 1.5], [1e9, 2.0])),
    *(np.array(x, np.float32) for x in ([1, np.nan, np.inf, -np.inf], [1.5, np.nan, -np.inf])),
    *(RNG.normal(size=s).astype(np.float32) for s in ((3, 5), (2, 3, 4), (50, 50), 30)),
    *(np.zeros((0,), np.float32), np.zeros((0, 3), np.float32), np.zeros((0, 2), int)),
    *(np.ones((2, 2, 2, 2), np.float32), np.arange(2000.0).astype(np.float32)),
    *(np.array(1 - 2j), np.array([1 + 2j, 3 - 4.5j], np.complex64), np.array([True, False])),
    *(np.array(7), np.array([1, 2], np.int32), np.arange(6).reshape(2, 3)),
    *(RNG.normal(size=(3, 5)), np.array([1.5, 2], np.float16), -np.arange(3.0).astype(np.float32)),
]


@pytest.mark.oracle
def test_tensors_print_as_pytorch_prints_them():
    torch = pytest.importorskip("torch")
    for array in ARRAYS:
        for option in ({}, {"requires_grad": True})[: 1 + (array.dtype.kind in "fc")]:
            mine, theirs = repr(wg.tensor(array, **option)), repr(torch.tensor(array, **option))
            assert mine.replace("wengert.", "torch.") == theirs


@pytest.mark.usefixtures("backend")
def test_printing_on_every_backend():
    x = wg.tensor([[1.0, 2.5], [-3.0, 0.25]], requires_grad=True)
    assert repr(x) == (
        "tensor([[ 1.0000,  2.5000],\n        [-3.0000,  0.2500]], requires_grad=True)"
    )
    assert repr(wg.tensor([1, 2])) == "tensor([1, 2])"
    assert f"{wg.tensor(2.5):.1f}" == "2.5"


def test_walking_the_graph_reaches_the_leaves() -> None:
    """``AccumulateGrad.variable``, as PyTorch's users of ``next_functions`` know it."""
    model = wg.nn.Sequential(wg.nn.Linear(2, 3), wg.nn.Tanh(), wg.nn.Linear(3, 1))
    waiting = [wg.sum(model(wg.ones((4, 2))) ** 2).grad_fn]
    for node in waiting:
        waiting += {parent for parent, _ in node.next_functions} - {None, *waiting}
    reached = [n.variable for n in waiting if isinstance(n, wg.tape.AccumulateGrad)]
    assert {id(leaf) for leaf in reached} == {id(p) for p in model.parameters()}
    # A node does not keep its leaf alive.
    x = wg.ones(2, requires_grad=True)
    y = x * 2
    node = y.grad_fn.next_functions[0][0]
    assert node.variable is x
    x.register_hook(lambda g: g)
    assert node.variable is x
    del x
    assert node.variable is None


def test_notebooks_show_a_table() -> None:
    x = wg.ones(2, requires_grad=True)
    y = wg.exp(x * 3)
    shown = wg.global_tape.of(y)._repr_html_()
    cells = re.findall(r"<td><code>(.*?)</code></td>", shown)
    assert cells[:4] == ["", "operation", "shape", "dtype"]
    assert [cell.partition("(")[0] for cell in cells[5::4]] == ["leaf", "multiply", "exp"]
    assert shown.count("<tr>") == 4
    assert "<table>" in wg.global_tape._repr_html_()
