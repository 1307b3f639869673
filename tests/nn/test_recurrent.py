"""Recurrent networks: the numbers of PyTorch from its parameters, on every backend, compiled."""

import warnings
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.catalogue.networks import lstm_reference
from tests.nn.twins import check_twins, twin, values
from tests.ops.spaces import pairs
from tests.walking import refusals, refuse, walk
from wengert import nn
from wengert.tape.primitive import PRIMITIVES

RNG = np.random.default_rng(17)
T, N, I, H = 4, 3, 2, 5
SPACE: dict[str, tuple[Any, ...]] = {
    "num_layers": (1, 2),
    "bias": (True, False),
    "batch_first": (True, False),
    "bidirectional": (True, False),
    "batched": (True, False),
    "hx": (True, False),
    "own": (0, 1),
}
CASES = [(name, options) for name in ("RNN", "LSTM", "GRU") for options in pairs(SPACE)]


def starts(name: str, options: dict[str, Any], batched: bool) -> tuple[Any, ...]:
    count = options["num_layers"] * (1 + options["bidirectional"])
    states = 1 + (name == "LSTM")
    return tuple(RNG.normal(size=(count, *([N] * batched), H)) for _ in range(states))


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "options"), CASES)
def test_networks_are_pytorchs(backend: Any, name: str, options: dict[str, Any]) -> None:
    if backend.name == "dask":
        pytest.skip("each of its many differences is a graph there")
    options = dict(options)
    batched, given, own = (options.pop(key) for key in ("batched", "hx", "own"))
    if name == "RNN":
        options["nonlinearity"] = ("tanh", "relu")[own]
    ours, theirs = twin(name, I, H, **options)
    shape = ((N, T, I) if options["batch_first"] else (T, N, I)) if batched else (T, I)
    start = starts(name, options, batched) if given else ()
    tuples = (lambda h: h) if name == "LSTM" else (lambda h: h[0])
    check_twins(
        ours,
        theirs,
        [RNG.normal(size=shape), *start],
        call=lambda module, x, *state: module(x, tuples(state) if state else None),
    )


@pytest.mark.parametrize(("name", "f"), [("tanh", np.tanh), ("relu", lambda x: np.maximum(x, 0))])
def test_an_rnn_by_its_formula(backend: Any, name: str, f: Any) -> None:
    wg.manual_seed(3)
    rnn = nn.RNN(I, H, nonlinearity=name, dtype=wg.float64)
    x, h = RNG.normal(size=(T, N, I)), RNG.normal(size=(N, H))
    out, last = rnn(wg.asarray(x), wg.asarray(h[None]))
    w, u, b, d = (values(p) for p in rnn.parameters())
    for t in range(T):
        h = f(x[t] @ w.T + b + h @ u.T + d)
        np.testing.assert_allclose(values(out[t]), h, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(values(last[0]), h, rtol=1e-12, atol=1e-12)


def test_an_lstm_by_its_formulas(backend: Any) -> None:
    wg.manual_seed(3)
    lstm = nn.LSTM(I, H, dtype=wg.float64)
    w, u, b, d = (values(p) for p in lstm.parameters())
    x, h, c = RNG.normal(size=(T, N, I)), RNG.normal(size=(N, H)), RNG.normal(size=(N, H))
    out, (last, cell) = lstm(wg.asarray(x), (wg.asarray(h[None]), wg.asarray(c[None])))
    hs, cs, _ = lstm_reference(x @ w.T + b + d, u, h, c)
    np.testing.assert_allclose(values(out), hs, rtol=1e-10)
    np.testing.assert_allclose(values(last)[0], hs[-1], rtol=1e-10)
    np.testing.assert_allclose(values(cell)[0], cs[-1], rtol=1e-10)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_half_precision_is_computed_in_single(kind: str) -> None:
    rng = np.random.default_rng(8)
    with wg.use_backend("numpy"):
        layer = getattr(nn, kind)(3, 5)
        x = wg.asarray(20 * rng.normal(size=(7, 2, 3)), dtype="float32")
        expected, _ = layer(x)
        found, _ = layer.half()(wg.astype(x, "float16"))
        wg.sum(found).backward()
        assert found.dtype is wg.float16 and layer.weight_hh_l0.grad.dtype is wg.float16
        np.testing.assert_allclose(values(found), values(expected), rtol=0.05, atol=0.02)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [3, 4])
def test_gates_far_from_zero(count: int, dtype: str) -> None:
    """Those with exponentials that the dtype does not have, and whose sigmoids it has."""
    far = np.asarray([20, -10, -13, 900, -900])

    def run(dtype: str) -> np.ndarray:
        z = np.tile(far, count).astype(dtype)[None, None]
        weight, state = (
            np.zeros((far.size * count, far.size), dtype),
            np.zeros((1, far.size), dtype),
        )
        states = (state, state if count == 4 else None)
        name, which = ("lstm", 2) if count == 4 else ("gru", 1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = PRIMITIVES[name].bind(z, weight, *states)
        return found[which]

    with wg.use_backend("numpy"):
        found, expected = run(dtype), run("float64")
    limits = np.finfo(dtype)
    np.testing.assert_allclose(found, expected, rtol=4 * limits.eps, atol=limits.smallest_subnormal)


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_a_network_is_its_cell_step_by_step(name: str) -> None:
    wg.manual_seed(2)
    network = getattr(nn, name)(I, H, dtype=wg.float64)
    cell = getattr(nn, name + "Cell")(I, H, dtype=wg.float64)
    cell.load_state_dict(
        {key.removesuffix("_l0"): value for key, value in network.state_dict().items()}
    )
    x = wg.asarray(RNG.normal(size=(T, N, I)))
    out, _ = network(x)
    state = None
    for t in range(T):
        state = cell(x[t], state)
        found = state[0] if name == "LSTM" else state
        np.testing.assert_allclose(values(found), values(out[t]), rtol=1e-12)


def test_dropout_is_between_layers_while_training() -> None:
    wg.manual_seed(0)
    network = nn.GRU(I, 64, num_layers=2, dropout=0.5, dtype=wg.float64)
    x = wg.asarray(RNG.normal(size=(T, N, I)))
    first, second = values(network(x)[0]), values(network(x)[0])
    assert not np.array_equal(first, second)
    network.eval()
    np.testing.assert_array_equal(values(network(x)[0]), values(network(x)[0]))
    network.train()
    network.dropout = 1.0  # nothing reaches the second layer
    np.testing.assert_array_equal(values(network(x)[0]), values(network(3 * x)[0]))


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_dropout_of_one_layer_does_nothing(name: str) -> None:
    text = f"^{name} drops results between layers, so dropout=0.5 does nothing with one layer"
    with pytest.warns(UserWarning, match=text) as caught:
        getattr(nn, name)(2, 3, dropout=0.5)
    assert [one.filename for one in caught] == [__file__]


#: Calls, their errors, and what these say.
REFUSED = r"""
nn.LSTM(0, 3) | ValueError | input_size is positive
nn.LSTM(2.0, 3) | TypeError | input_size is an integer
nn.LSTM(2, 3, 0) | ValueError | num_layers is positive
nn.LSTM(2, 3, proj_size=2) | TypeError | LSTM takes no proj_size.*LSTMCell
nn.LSTM(2, 3, 1, True, False, 0.0, False, 2) | TypeError | positional argument
nn.LSTM(2, 3, 2, dropout=1.5) | ValueError | between 0 and 1
nn.RNN(2, 3, nonlinearity="gelu") | ValueError | 'tanh' or 'relu'
nn.RNN(2, 3, nonlinearity=nn.functional.relu) | ValueError | 'tanh' or 'relu'
nn.LSTM(2, 3)(wg.ones((4, 3))) | RuntimeError | it needs \(T, N, 2\)
nn.LSTM(2, 3)(wg.ones((0, 4, 2))) | RuntimeError | at least one step
nn.LSTM(2, 3)(wg.ones((4, 2), dtype=wg.float64)) | RuntimeError | module.to
nn.LSTM(2, 3)(wg.ones((4, 2)), wg.ones(1)) | RuntimeError | a pair
nn.GRU(2, 3)(wg.ones((4, 2)), wg.ones((1, 4))) | RuntimeError | needs \(1, 3\)
nn.GRU(2, 3)(wg.ones((4, 1, 2)), wg.ones((1, 3))) | RuntimeError | needs \(1, 1, 3\)
nn.GRUCell(2, 3)(wg.ones((4, 3))) | RuntimeError | it needs \(N, 2\)
nn.GRUCell(2, 3)(wg.ones((4, 2)), wg.ones((3, 3))) | RuntimeError | \(4, 3\)
"""


def test_what_does_not_fit() -> None:
    walk(refusals(REFUSED), refuse(), whole=True)


@pytest.mark.oracle
def test_pytorchs_packed_sequences_are_refused() -> None:
    torch = pytest.importorskip("torch")
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(4, 2), torch.ones(3, 2)])
    with pytest.raises(TypeError, match=r"nn\.utils\.rnn"):
        nn.LSTM(2, 3)(packed)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_second_derivatives_of_layers(name: str) -> None:
    wg.manual_seed(0)
    layer = getattr(nn, name)(2, 2, dtype=wg.float64)
    given = [wg.randn(2, 1, 2, dtype=wg.float64, requires_grad=True), *layer.parameters()]
    assert wg.testing.gradgradcheck(
        lambda x, *weights: wg.sum(layer(x)[0] ** 2), tuple(given), fast_mode=True
    )
