"""Attention: PyTorch's numbers, masks that leave queries without keys, and errors."""

import math
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.nn.twins import check_twins, twin, values
from tests.ops.spaces import pairs
from tests.walking import refusals, refuse, walk
from wengert import nn
from wengert.backends import Backend
from wengert.nn import functional as F

RNG = np.random.default_rng(29)
N, L, S, E, HEADS = 2, 3, 4, 6, 2

BOOLEANS = np.asarray([[1, 1, 0, 1], [0, 0, 0, 0], [0, 1, 1, 1]], dtype=bool)
ADDED = np.where(BOOLEANS, RNG.normal(size=(L, S)), -math.inf)
MASKS = {"none": None, "booleans": BOOLEANS, "added": ADDED}
FUNCTION = pairs(
    {
        "mask": ("none", "booleans", "added", "of each head", "causal"),
        "scale": (None, 0.7),
        "shapes": ("heads", "no batch", "broadcast"),
    }
)


def tensors(mask: Any) -> tuple[Any, Any]:
    if mask is None:
        return None, None
    return wg.asarray(mask), pytest.importorskip("torch").tensor(mask)


@pytest.mark.oracle
@pytest.mark.parametrize("options", FUNCTION)
def test_the_function_is_pytorchs(backend: Any, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    lead = {
        "heads": ((N, 4), (N, 4)),
        "no batch": ((), ()),
        "broadcast": ((N, 4), (1, 4)),
    }
    first, second = lead[options["shapes"]]
    arrays = [
        RNG.normal(size=(*first, L, E)),
        RNG.normal(size=(*second, S, E)),
        RNG.normal(size=(*second, S, 5)),
    ]
    given = {"scale": options["scale"], "is_causal": options["mask"] == "causal"}
    mask = MASKS.get(options["mask"])
    if options["mask"] == "of each head":
        mask = RNG.uniform(size=(*first, L, S)) < 0.6
    ours, theirs = tensors(mask)
    check_twins(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, ours, **given),
        lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, theirs, **given),
        arrays,
        3,
    )


def test_the_function_by_its_formula(backend: Any) -> None:
    q, k, v = RNG.normal(size=(L, E)), RNG.normal(size=(S, E)), RNG.normal(size=(S, 2))
    weights = np.exp(q @ k.T / math.sqrt(E)) * BOOLEANS
    weights[1] = 0
    expected = weights / np.maximum(weights.sum(1, keepdims=True), 1e-300) @ v
    given = [wg.asarray(x).requires_grad_() for x in (q, k, v)]
    found = F.scaled_dot_product_attention(*given, wg.asarray(BOOLEANS))
    np.testing.assert_allclose(values(found), expected, rtol=1e-10, atol=1e-15)
    wg.sum(found**2).backward()
    assert all(np.isfinite(values(x.grad)).all() for x in given)
    assert (values(given[0].grad)[1] == 0).all()  # nothing flows through a query without a key
    causal = F.scaled_dot_product_attention(given[0], given[1][:L], given[2][:L], is_causal=True)
    np.testing.assert_array_equal(values(causal)[0], v[0])


def test_dropout_of_weights() -> None:
    q, k = wg.zeros((1, 8)), wg.zeros((1000, 8))
    wg.manual_seed(0)
    # Each of 1000 equal weights is 0 or twice itself; the deviation of the sum is 1 / sqrt(1000).
    out = F.scaled_dot_product_attention(q, k, wg.ones((1000, 1)), dropout_p=0.5).item()
    assert out != 1
    assert abs(out - 1) < 5 / math.sqrt(1000)
    layer = nn.MultiheadAttention(8, 2, dropout=0.5)
    k = wg.asarray(RNG.normal(size=(20, 8)).astype(np.float32))
    first, second = (values(layer(k, k, k)[0]) for _ in range(2))
    assert not np.array_equal(first, second)
    layer.eval()
    np.testing.assert_array_equal(*(values(layer(k, k, k)[0]) for _ in range(2)))


LAYER = pairs(
    {
        "bias": (True, False),
        "batch_first": (False, True),
        "batched": (True, False),
        "same": ("all", "keys", "none"),
        "padding": (None, "booleans", "added"),
        "mask": (None, "booleans", "added", "of each head"),
        "need_weights": (True, False),
        "average_attn_weights": (True, False),
        "is_causal": (False, True),
        "training": (True, False),
    }
)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Support for mismatched:UserWarning")
@pytest.mark.parametrize("options", LAYER)
def test_the_layer_is_pytorchs(backend: Any, options: dict[str, Any]) -> None:
    made = {k: options[k] for k in ("bias", "batch_first")}
    ours, theirs = twin("MultiheadAttention", E, HEADS, **made)
    ours.train(options["training"])
    theirs.train(options["training"])
    rows, columns = (L, L) if options["same"] == "all" else (L, S)
    batch = N if options["batched"] else 1
    masks = {}
    if options["mask"]:
        shape = (batch * HEADS,) if options["mask"] == "of each head" else ()
        held = RNG.uniform(size=(*shape, rows, columns)) < 0.4
        held[..., 0] = False  # PyTorch's weights are NaN without any key
        if options["is_causal"]:
            held = np.broadcast_to(~np.tri(rows, columns, dtype=bool), held.shape).copy()
        added = np.where(held, -math.inf, RNG.normal(size=held.shape) * (not options["is_causal"]))
        masks["attn_mask"] = added if options["mask"] == "added" else held
    if options["padding"]:
        held = np.zeros((N, columns) if options["batched"] else (columns,), dtype=bool)
        held[..., -1] = True
        kind = options["padding"]
        masks["key_padding_mask"] = np.where(held, -math.inf, 0.3) if kind == "added" else held

    def length(n: int, features: int) -> np.ndarray:
        if not options["batched"]:
            return RNG.normal(size=(n, features))
        return RNG.normal(size=(N, n, features) if options["batch_first"] else (n, N, features))

    inputs = [length(L, E)]
    if options["same"] != "all":
        inputs.append(length(S, E))
    if options["same"] == "none":
        inputs.append(length(S, E))
    flags = {k: options[k] for k in ("need_weights", "average_attn_weights")}
    flags["is_causal"] = options["is_causal"] and options["mask"] is not None

    def call(module: Any, *xs: Any) -> Any:
        where = 0 if isinstance(xs[0], wg.Tensor) else 1
        given = {key: tensors(mask)[where] for key, mask in masks.items()}
        three = xs if len(xs) == 3 else (xs[0], xs[-1], xs[-1])
        return module(*three, **given, **flags)

    check_twins(ours, theirs, inputs, call=call)


ONES, ATTEND = wg.ones, F.scaled_dot_product_attention


def three(query: Any, key: Any = None, **options: Any) -> Any:
    key = query if key is None else key
    return nn.MultiheadAttention(4, 2)(query, key, key, **options)


#: Calls, their errors, and what these say.
REFUSED = r"""
ATTEND(ONES((3, 2)), ONES((4, 3)), ONES((4, 2))) | RuntimeError | it needs
ATTEND(ONES((3, 2)), ONES((4, 2)), ONES((3, 2))) | RuntimeError | it needs
ATTEND(ONES(3), ONES(3), ONES(3)) | RuntimeError | it needs
ATTEND(ONES((3, 2)), ONES((4, 2), dtype=wg.float64), ONES((4, 2))) | RuntimeError |
    float32, float64, float32
ATTEND(*[ONES((3, 2))] * 3, ONES((3, 3), dtype=wg.bool), is_causal=True) | RuntimeError | not both
ATTEND(*[ONES((3, 2))] * 3, ONES(3, dtype="int64")) | RuntimeError | of int64
ATTEND(*[ONES((3, 2))] * 3, dropout_p=2.0) | ValueError | between 0 and 1
nn.MultiheadAttention(5, 2) | ValueError | positive multiple
nn.MultiheadAttention(4, 2, dropout=-1) | ValueError | between 0 and 1
three(ONES((3, 5))) | RuntimeError | made for 4 features
three(ONES((3, 2, 4)), ONES((3, 4))) | RuntimeError | it needs \(L, N, E\)
three(ONES((3, 2, 4)), ONES((3, 1, 4))) | RuntimeError | it needs
three(ONES((3, 4)), is_causal=True) | RuntimeError | give attn_mask
three(ONES((3, 4)), attn_mask=ONES((2, 3))) | RuntimeError | of \(3, 3\)
three(ONES((3, 4)), key_padding_mask=ONES(4)) | RuntimeError | of \(1, 3\)
nn.MultiheadAttention(4, 2, add_bias_kv=4) | TypeError |
    MultiheadAttention takes no add_bias_kv, .* keys
nn.MultiheadAttention(4, 2, add_zero_attn=4) | TypeError |
    MultiheadAttention takes no add_zero_attn, .* keys
nn.MultiheadAttention(4, 2, kdim=4) | TypeError | MultiheadAttention takes no kdim, .* keys
nn.MultiheadAttention(4, 2, vdim=4) | TypeError | MultiheadAttention takes no vdim, .* keys
"""


def test_what_does_not_fit() -> None:
    walk(refusals(REFUSED), refuse(ONES=ONES, ATTEND=ATTEND, three=three), whole=True)


@pytest.mark.parametrize("bias", [True, False])
def test_the_layer_by_its_formula(bias: bool) -> None:
    """Of a query, a key and a value that differ, and of one input."""
    rng = np.random.default_rng(0)
    layer = nn.MultiheadAttention(4, 2, bias=bias, batch_first=True, dtype="float64")
    for p in layer.parameters():
        nn.init.normal_(p)
    weights = values(layer.in_proj_weight).reshape(3, 4, 4)
    shifts = values(layer.in_proj_bias).reshape(3, 4) if bias else np.zeros((3, 4))
    last = values(layer.out_proj.bias) if bias else 0.0
    query, key, value = (rng.normal(size=(2, n, 4)) for n in (3, 5, 5))
    for given in ((query, key, value), (key, key, key)):
        tensors = {id(x): wg.asarray(x) for x in given}
        q, k, v = (
            (x @ w.T + b).reshape(*x.shape[:2], 2, 2).swapaxes(1, 2)
            for x, w, b in zip(given, weights, shifts, strict=True)
        )
        scores = np.exp(q @ k.swapaxes(-1, -2) / math.sqrt(2))
        shares = scores / scores.sum(-1, keepdims=True)
        out = (shares @ v).swapaxes(1, 2).reshape(*given[0].shape)
        found, found_shares = layer(*[tensors[id(x)] for x in given])
        expected = out @ values(layer.out_proj.weight).T + last
        np.testing.assert_allclose(values(found), expected, rtol=1e-10)
        np.testing.assert_allclose(values(found_shares), shares.mean(1), rtol=1e-10)


def test_sample_that_is_wholly_masked(backend: Backend) -> None:
    layer = wg.nn.MultiheadAttention(8, 2, batch_first=True)
    given = np.random.default_rng(0).standard_normal((2, 3, 8)).astype(np.float32)
    mask = wg.asarray([[False, True, False], [True, True, True]])
    found = []
    for need_weights in (True, False):
        x = wg.asarray(given, requires_grad=True)
        out, weights = layer(x, x, x, key_padding_mask=mask, need_weights=need_weights)
        loss = wg.sum(out**2) + (0 if weights is None else wg.sum(weights) * 0)
        gradients = wg.autograd.grad(loss, [x, *layer.parameters()])
        found.append([out.detach().numpy(), *[g.numpy() for g in gradients]])
        if weights is not None:
            np.testing.assert_array_equal(weights.detach().numpy()[1], 0)
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(found[0][1][1], 0)


def test_scores_of_half_precision_are_rounded_once():
    rng = np.random.default_rng(0)
    q, k, v = (
        (rng.normal(size=shape) * scale).astype(np.float16)
        for shape, scale in (((20, 64), 300), ((30, 64), 1), ((30, 4), 1))
    )

    def slopes(dtype):
        def total(*x):
            return wg.nn.functional.scaled_dot_product_attention(*x).sum()

        return wg.grad(total, argnums=(0, 1, 2))(*(x.astype(dtype) for x in (q, k, v)))

    for half, exact in zip(slopes(np.float16), slopes(np.float64), strict=True):
        np.testing.assert_allclose(half, exact, rtol=0, atol=2e-3 * np.abs(exact).max())


@pytest.mark.parametrize(
    ("query", "key", "mask"),
    [
        ((1, 5, 4), (1, 5, 4), (7, 5, 5)),
        ((5, 4), (5, 4), (1, 5, 5)),
        ((1, 1, 4), (1, 5, 4), (3, 5)),
    ],
)
def test_a_mask_does_not_enlarge_the_result(query, key, mask):
    q, k = wg.ones(query), wg.ones(key)
    with pytest.raises(RuntimeError, match="enlarges the scores"):
        F.scaled_dot_product_attention(q, k, k, attn_mask=wg.ones(mask, dtype="bool"))
    fits = wg.ones((k.shape[-2],), dtype="bool")
    assert F.scaled_dot_product_attention(q, k, k, attn_mask=fits).shape == query
