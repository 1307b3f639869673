"""Transformers: PyTorch's numbers from PyTorch's parameters, and the formula."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.nn.twins import alike, check_twins, values
from tests.ops.spaces import pairs
from wengert import nn
from wengert.nn import functional as F

RNG = np.random.default_rng(31)
N, L, E = 2, 3, 6
LAYER = pairs(
    {
        "norm_first": (False, True),
        "activation": ("relu", "gelu", "function", "module"),
        "layer_norm_eps": (1e-5, 0.1),
        "batch_first": (True, False),
        "bias": (True, False),
        "masked": ("no", "causal", "padding", "both"),
        "training": (True, False),
    }
)


def causal(n: int) -> np.ndarray:
    return ~np.tri(n, dtype=bool)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:enable_nested_tensor:UserWarning")
@pytest.mark.parametrize("depth", [0, 2])
@pytest.mark.parametrize("options", LAYER)
def test_layers_are_pytorchs(backend: Any, options: dict[str, Any], depth: int) -> None:
    torch = pytest.importorskip("torch")
    if backend.name == "dask":
        pytest.skip("each of its many differences is a graph there")
    keys = ("norm_first", "layer_norm_eps", "batch_first", "bias")
    given = {key: options[key] for key in keys}
    activation = options["activation"]
    made = []
    for library, silu in ((nn, F.silu), (torch.nn, torch.nn.functional.silu)):
        chosen = {"function": silu, "module": library.ELU()}.get(activation, activation)
        dtype = wg.float64 if library is nn else torch.float64
        layer = library.TransformerEncoderLayer(
            E, 2, 8, dropout=0.0, activation=chosen, dtype=dtype, **given
        )
        if depth:
            norm = library.LayerNorm(E, dtype=dtype)
            layer = library.TransformerEncoder(layer, depth, norm if options["training"] else None)
        made.append(layer.train(options["training"]))
    alike(*made)
    inputs = [RNG.normal(size=(N, L, E) if options["batch_first"] else (L, N, E))]
    masks: dict[str, Any] = {}
    if options["masked"] in ("causal", "both"):
        masks |= {"mask" if depth else "src_mask": causal(L), "is_causal": True}
    if options["masked"] in ("padding", "both"):
        masks["src_key_padding_mask"] = np.zeros((N, L), dtype=bool)
        masks["src_key_padding_mask"][0, -1] = True

    def call(module: Any, *xs: Any) -> Any:
        make = wg.asarray if isinstance(xs[0], wg.Tensor) else torch.tensor
        named = {k: make(v) if isinstance(v, np.ndarray) else v for k, v in masks.items()}
        return module(*xs, **named)

    check_twins(*made, inputs, call=call)


def test_copies_of_a_layer_are_its_own() -> None:
    wg.manual_seed(0)
    layer = nn.TransformerEncoderLayer(E, 2, 8)
    stack = nn.TransformerEncoder(layer, 2)
    first, second = stack.layers
    for (name, p), q, r in zip(
        first.named_parameters(), second.parameters(), layer.parameters(), strict=True
    ):
        np.testing.assert_array_equal(values(p), values(q), err_msg=name)
        assert p is not q
        assert p is not r
    with wg.no_grad():
        first.linear1.weight += 1
    assert (values(first.linear1.weight) != values(second.linear1.weight)).all()
    assert len(list(stack.parameters())) == 2 * len(list(layer.parameters()))


def test_dropout_while_training() -> None:
    wg.manual_seed(0)
    x = wg.asarray(RNG.normal(size=(L, N, E)).astype(np.float32))
    layer = nn.TransformerEncoderLayer(E, 2, 8, dropout=0.5)
    assert not np.array_equal(values(layer(x)), values(layer(x)))
    layer.eval()
    np.testing.assert_array_equal(values(layer(x)), values(layer(x)))
    # All of what the parts add is dropped: norms of the input are left.
    for module in layer.modules():
        if isinstance(module, nn.Dropout):
            module.p = 1.0
    found, x_ = values(layer.train()(x)), values(x)
    once = (x_ - x_.mean(-1, keepdims=True)) / x_.std(-1, keepdims=True)
    np.testing.assert_allclose(found, once, rtol=1e-3, atol=1e-3)


def test_an_unknown_activation() -> None:
    with pytest.raises(ValueError, match="'relu', 'gelu' or a function, and not 'tanh'"):
        nn.TransformerEncoderLayer(E, 2, activation="tanh")


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
def test_a_causal_encoder_by_its_formula(norm_first: bool, compiled: bool) -> None:
    name = "relu" if norm_first else "gelu"
    given = {"layer_norm_eps": 0.1, "norm_first": norm_first, "batch_first": True}
    given |= {"activation": name, "bias": not norm_first, "dtype": wg.float64}
    layer = nn.TransformerEncoderLayer(E, 2, 8, dropout=0.0, **given)
    biases = [key for key, _ in layer.named_parameters() if key.endswith("bias")]
    assert (len(biases), layer.norm1.eps, layer.norm2.eps) == (0 if norm_first else 6, 0.1, 0.1)
    stack = nn.TransformerEncoder(layer, 2, nn.LayerNorm(E, eps=0.1, dtype=wg.float64))
    for p in stack.requires_grad_(False).parameters():
        nn.init.normal_(p)
    x, mask = wg.asarray(RNG.normal(size=(N, L, E))), wg.asarray(causal(L))
    run = wg.compile(stack, strict=True) if compiled else stack
    found = [values(run(x, mask, is_causal=True)) for _ in range(2)]
    for one in stack.layers:
        attend = lambda x, one=one: one.self_attn(x, x, x, attn_mask=mask)[0]
        feed = lambda x, one=one: one.linear2(getattr(F, name)(one.linear1(x)))
        for part, norm in ((attend, one.norm1), (feed, one.norm2)):
            x = x + part(norm(x)) if norm_first else norm(x + part(x))
    for each in found:
        np.testing.assert_allclose(each, values(stack.norm(x)), rtol=1e-9)
