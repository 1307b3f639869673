"""Tables of vectors: values, derivatives, programs, PyTorch's."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import nn
from wengert.nn import functional as F
from wengert.testing import gradcheck, gradgradcheck

RNG = np.random.default_rng(29)
TABLE = RNG.normal(size=(5, 3))
ROWS = np.array([[0, 1, 1], [4, 2, 1]])
PADDINGS = [None, 1, -1]


@pytest.mark.parametrize("padding", PADDINGS)
def test_rows_and_their_derivatives(backend: Any, padding: int | None) -> None:
    layer = nn.Embedding(5, 3, padding, dtype="float64")
    if padding is not None:
        assert not layer.weight.detach().numpy()[padding].any()
    layer.load_state_dict({"weight": TABLE})
    found = layer(wg.asarray(ROWS))
    np.testing.assert_array_equal(found.detach().numpy(), TABLE[ROWS])
    seed = RNG.normal(size=(2, 3, 3))
    found.backward(wg.asarray(seed))
    wanted = np.zeros((5, 3))
    np.add.at(wanted, ROWS, seed)
    if padding is not None:
        wanted[padding] = 0
    np.testing.assert_allclose(layer.weight.grad.numpy(), wanted, rtol=1e-12)


def test_a_plain_lookup_passes_the_checks(backend: Any) -> None:
    table = wg.asarray(TABLE).requires_grad_()
    fast = backend.name != "numpy"
    assert gradcheck(lambda w: F.embedding(wg.asarray(ROWS), w) ** 2, [table], fast_mode=fast)
    if backend.name != "dask":  # where each evaluation is a graph
        function = lambda w: F.embedding(wg.asarray(ROWS), w) ** 2
        assert gradgradcheck(function, [table], fast_mode=fast)
    assert F.embedding(wg.asarray(3), table).shape == (3,)
    assert F.embedding(wg.zeros((2, 0), dtype="int64"), table).shape == (2, 0, 3)


def test_a_table_that_is_given(backend: Any) -> None:
    layer = nn.Embedding.from_pretrained(wg.asarray(TABLE), padding_idx=2)
    assert not layer.weight.requires_grad and layer.padding_idx == 2
    np.testing.assert_array_equal(layer(wg.asarray(ROWS)).numpy(), TABLE[ROWS])
    assert nn.Embedding.from_pretrained(wg.asarray(TABLE), freeze=False).weight.requires_grad


@pytest.mark.parametrize("options", [{}, {"padding_idx": 1}])
def test_compiled_steps_are_those_of_eager_ones(backend: Any, options: dict[str, Any]) -> None:
    def made() -> Any:
        layer = nn.Embedding(5, 3, **options, dtype="float64")
        layer.load_state_dict({"weight": TABLE})
        optimiser = wg.optim.SGD(layer.parameters(), lr=0.07)  # by which no row becomes 0

        def step(rows: Any) -> Any:
            optimiser.zero_grad()
            loss = wg.sum(layer(rows) ** 2)
            loss.backward()
            optimiser.step()
            return loss

        return layer, step

    (first, eager), (second, step) = made(), made()
    compiled = wg.compile(step)
    for _ in range(4):
        rows = wg.asarray(RNG.integers(0, 5, (2, 3)))
        np.testing.assert_allclose(compiled(rows).item(), eager(rows).item(), rtol=1e-12)
    np.testing.assert_allclose(
        second.weight.detach().numpy(), first.weight.detach().numpy(), rtol=1e-12
    )


@pytest.mark.oracle
@pytest.mark.parametrize("padding", PADDINGS)
def test_embedding_is_pytorchs(padding: int | None) -> None:
    torch = pytest.importorskip("torch")
    ours = nn.Embedding(5, 3, padding, dtype=wg.float64)
    theirs = torch.nn.Embedding(5, 3, padding, dtype=torch.float64)
    assert repr(ours) == repr(theirs)
    ours.load_state_dict({"weight": TABLE})
    theirs.load_state_dict({"weight": torch.tensor(TABLE)})
    a, b = ours(wg.asarray(ROWS)), theirs(torch.tensor(ROWS))
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12)
    seed = RNG.normal(size=(2, 3, 3))
    a.backward(wg.asarray(seed))
    b.backward(torch.tensor(seed))
    np.testing.assert_allclose(ours.weight.grad.numpy(), theirs.weight.grad.numpy(), rtol=1e-12)
    np.testing.assert_allclose(
        ours.weight.detach().numpy(), theirs.weight.detach().numpy(), rtol=1e-12
    )


@pytest.mark.whole
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.Embedding(5, 3)(wg.asarray([5])), "5 is none of the 5 rows, 0 to 4"),
        (lambda: nn.Embedding(5, 3)(wg.asarray([-1])), "-1 is none of the 5 rows"),
        (lambda: nn.Embedding(5, 3)(wg.ones(2)), "integer indices, not float32"),
        (lambda: nn.Embedding(5, 3, padding_idx=5), "Padding_idx must be within"),
        (lambda: nn.Embedding(5, 3, padding_idx=1.5), "takes an integer .* as padding_idx"),
        (lambda: F.embedding(wg.asarray([0]), wg.ones((2, 2)), 0.5), "takes an integer"),
        (lambda: nn.Embedding(5, 3, sparse=True), "takes no sparse, .*: leave it out"),
        (lambda: nn.Embedding(5, 3, max_norm=1.0), "takes no max_norm, .* after each step"),
        (lambda: nn.Embedding(5, 3, None, 1.0), "positional arguments"),
        (lambda: F.embedding(wg.asarray([0]), wg.ones((2, 2)), max_norm=1), "max_norm"),
        (lambda: F.embedding(wg.asarray([0]), wg.ones(3)), "must be 2-D"),
        (lambda: nn.Embedding.from_pretrained(wg.ones(3)), "expected to be 2-dimensional"),
    ],
)
def test_what_does_not_fit_is_told(call: Any, message: str) -> None:
    with pytest.raises((ValueError, RuntimeError, TypeError, IndexError), match=message):
        call()
