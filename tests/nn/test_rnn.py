"""Padded and packed sequences, in recurrent layers too."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import nn
from wengert.nn.utils import rnn

LENGTHS = (2, 5, 1, 5, 3)


def pack(xs: Any) -> rnn.PackedSequence:
    return rnn.pack_padded_sequence(rnn.pad_sequence(xs), [*map(len, xs)], enforce_sorted=False)


def batch(seed: int = 0, features: int = 3) -> list[Any]:
    random = np.random.default_rng(seed)
    return [wg.asarray(random.normal(size=(n, features))) for n in LENGTHS]


def assert_close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("batch_first", [False, True])
def test_padding(batch_first: bool) -> None:
    padded = rnn.pad_sequence(batch(), batch_first, 7.0).detach().numpy()
    padded = padded if batch_first else padded.swapaxes(0, 1)
    for row, x in zip(padded, batch(), strict=True):
        np.testing.assert_array_equal(row[: len(x)], x.detach().numpy())
        assert (row == 7.0).sum() == (5 - len(x)) * 3


@pytest.mark.parametrize("batch_first", [False, True])
def test_packing_and_back(batch_first: bool) -> None:
    padded = rnn.pad_sequence(batch(), batch_first)
    packed = rnn.pack_padded_sequence(
        padded, wg.asarray(LENGTHS), batch_first, enforce_sorted=False
    )
    assert packed.batch_sizes == (5, 4, 3, 2, 2)
    assert packed.data.shape == (16, 3)
    back, lengths = rnn.pad_packed_sequence(packed, batch_first)
    assert lengths.tolist() == [*LENGTHS]
    np.testing.assert_array_equal(back.detach().numpy(), padded.detach().numpy())


LAYERS = {
    "rnn": lambda: nn.RNN(3, 4, nonlinearity="relu"),
    "gru": lambda: nn.GRU(3, 4, num_layers=2, bidirectional=True),
    "lstm": lambda: nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True),
    "one": lambda: nn.LSTM(3, 4, bias=False),
}


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_run_each_sequence_as_if_it_were_alone(name: str, given: bool) -> None:
    wg.manual_seed(0)
    layer = LAYERS[name]().double()
    count = layer.num_layers * (1 + layer.bidirectional)
    states = 1 + (layer.mode == "LSTM")
    start = (
        [wg.randn(count, len(LENGTHS), 4, dtype=wg.float64) for _ in range(states)]
        if given
        else None
    )

    def state(i: int | None) -> Any:
        if start is None:
            return None
        parts = start if i is None else [part[:, i] for part in start]
        return tuple(parts) if states == 2 else parts[0]

    def losses(results: Any) -> Any:
        return [wg.sum(wg.cos(x) * (i + 1)) for i, x in enumerate(wg.func.tree_leaves(results))]

    xs = [x.requires_grad_() for x in batch()]
    packed, last = layer(pack(xs), state(None))
    out, _ = rnn.pad_packed_sequence(packed)
    loss, sums = 0.0, []
    for i, x in enumerate(xs):
        alone, end = layer(x, state(i))
        assert_close(out[: len(x), i], alone)
        leaves = wg.func.tree_leaves(end)
        for whole, part in zip(wg.func.tree_leaves(last), leaves, strict=True):
            assert_close(whole[:, i], part)
        loss = loss + sum(losses((alone, end)))
    sums = losses((packed.data, last))
    leaves = [*xs, *layer.parameters()]
    for one, other in zip(
        wg.autograd.grad(sum(sums), leaves), wg.autograd.grad(loss, leaves), strict=True
    ):
        assert_close(one, other)


def test_packed_steps_are_compiled() -> None:
    layer, x = nn.LSTM(3, 4), rnn.pad_sequence(batch()).astype(wg.float32)

    def step(x: Any) -> Any:
        packed = rnn.pack_padded_sequence(x, [5, 5, 3, 2, 1])
        return rnn.pad_packed_sequence(layer(packed)[0])[0].detach()

    run = wg.compile(step)
    for k in range(3):
        np.testing.assert_array_equal(run(x * k).numpy(), step(x * k).numpy())


def test_bad_lengths_are_refused() -> None:
    x = rnn.pad_sequence(batch())
    with pytest.raises(RuntimeError, match="enforce_sorted=False"):
        rnn.pack_padded_sequence(x, LENGTHS)
    with pytest.raises(RuntimeError, match="between 1 and 5"):
        rnn.pack_padded_sequence(x, [6, 5, 5, 3, 2])
    with pytest.raises(RuntimeError, match="between 1 and 5"):
        rnn.pack_padded_sequence(x, [5, 5, 3, 2, 0])
    with pytest.raises(RuntimeError, match="4 lengths"):
        rnn.pack_padded_sequence(x, [5, 5, 3, 2])
    with pytest.raises(RuntimeError, match="rows of shape"):
        nn.GRU(4, 2)(pack([wg.ones((4, 3))]))
    with pytest.raises(RuntimeError, match="sequences"):
        rnn.pad_sequence([])


@pytest.mark.oracle
@pytest.mark.parametrize("name", LAYERS)
def test_packed_sequences_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    ours = LAYERS[name]().double()
    kinds = {"rnn": "RNN", "gru": "GRU"}
    options = {k: getattr(ours, k) for k in ("num_layers", "bias", "batch_first", "bidirectional")}
    if name == "rnn":
        options["nonlinearity"] = "relu"
    theirs = getattr(torch.nn, kinds.get(name, "LSTM"))(3, 4, **options).double()
    ours.load_state_dict({k: wg.asarray(v.numpy()) for k, v in theirs.state_dict().items()})
    xs = batch(1)
    arrays = [torch.asarray(x.detach().numpy()) for x in xs]
    expected = theirs(torch.nn.utils.rnn.pack_sequence(arrays, enforce_sorted=False))
    found = ours(pack(xs))
    assert found[0].batch_sizes == tuple(expected[0].batch_sizes.tolist())
    assert found[0].sorted_indices.tolist() == expected[0].sorted_indices.tolist()
    assert_close(found[0].data, expected[0].data)
    last = [*found[1]] if isinstance(found[1], tuple) else [found[1]]
    theirs_last = [*expected[1]] if isinstance(expected[1], tuple) else [expected[1]]
    for a, b in zip(last, theirs_last, strict=True):
        assert_close(a, b)
