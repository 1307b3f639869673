"""Tables of vectors: values, derivatives, programs, PyTorch's."""

import itertools
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
OPTIONS = [
    dict(zip(("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq"), values, strict=True))
    for values in itertools.product((None, 1, -1), (None, 1.0), (2.0, 1.0), (False, True))
]


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_rows_of_half_precision_are_scaled_by_norms_outside_its_range() -> None:
    table = wg.asarray([[60000.0, 60000.0], [3.0, 4.0]], dtype="float16")
    F.embedding(wg.asarray([0, 1]), table, max_norm=10.0)
    np.testing.assert_allclose(table.numpy(), [[50**0.5] * 2, [3, 4]], rtol=1e-3)


@pytest.mark.parametrize("options", OPTIONS)
def test_rows_and_their_derivatives(backend: Any, options: dict[str, Any]) -> None:
    layer = nn.Embedding(5, 3, **options, dtype="float64")
    if options["padding_idx"] is not None:
        assert not layer.weight.detach().numpy()[options["padding_idx"]].any()
    layer.load_state_dict({"weight": TABLE})
    expected = TABLE.copy()
    if options["max_norm"]:
        norms = np.linalg.norm(TABLE, options["norm_type"], 1, keepdims=True)
        expected = np.where(norms > 1, TABLE / (norms + 1e-7), TABLE)
        expected[3] = TABLE[3]  # which is not looked up
    found = layer(wg.asarray(ROWS))
    np.testing.assert_allclose(found.detach().numpy(), expected[ROWS], rtol=1e-12)
    np.testing.assert_allclose(layer.weight.detach().numpy(), expected, rtol=1e-12)
    seed = RNG.normal(size=(2, 3, 3))
    found.backward(wg.asarray(seed))
    wanted = np.zeros((5, 3))
    np.add.at(wanted, ROWS, seed)
    if options["scale_grad_by_freq"]:
        wanted[1] /= 3
    if options["padding_idx"] is not None:
        wanted[options["padding_idx"]] = 0
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


@pytest.mark.parametrize("options", [{}, {"padding_idx": 1, "max_norm": 1.0}])
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
@pytest.mark.parametrize("options", OPTIONS)
def test_embedding_is_pytorchs(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    ours = nn.Embedding(5, 3, **options, dtype=wg.float64)
    theirs = torch.nn.Embedding(5, 3, **options, dtype=torch.float64)
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


def test_a_table_starts_standard_normal() -> None:
    wg.manual_seed(0)
    v = nn.Embedding(200, 100).weight.detach().numpy().astype("float64")
    assert abs(v.mean()) < 5 / v.size**0.5 and abs(v.std() - 1) < 5 / (2 * v.size) ** 0.5


@pytest.mark.whole
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.Embedding(5, 3)(wg.asarray([5])), "5 is none of the 5 rows, 0 to 4"),
        (lambda: nn.Embedding(5, 3)(wg.asarray([-1])), "-1 is none of the 5 rows"),
        (lambda: nn.Embedding(5, 3)(wg.ones(2)), "integer indices, not float32"),
        (lambda: nn.Embedding(5, 3, padding_idx=5), "Padding_idx must be within"),
        (lambda: nn.Embedding(5, 3, sparse=True), "leave sparse=True out"),
        (lambda: F.embedding(wg.asarray([0]), wg.ones(3)), "must be 2-D"),
        (lambda: nn.Embedding.from_pretrained(wg.ones(3)), "expected to be 2-dimensional"),
        (
            lambda: F.embedding(wg.asarray([0]), wg.ones((2, 2)).requires_grad_() * 2, max_norm=1),
            "give the parameter itself",
        ),
    ],
)
def test_what_does_not_fit_is_told(call: Any, message: str) -> None:
    with pytest.raises((ValueError, RuntimeError, TypeError, IndexError), match=message):
        call()
