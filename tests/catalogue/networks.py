"""Rows for the primitives of `wengert.nn`; PyTorch gives some of their values."""

import numpy as np
from hypothesis import strategies as st

from tests.catalogue.elementwise import NONZERO
from tests.ops.cases import BOX, Case, Entry, binary, elements
from wengert.nn import functional as F  # registers the primitives
from wengert.tape.primitive import PRIMITIVES
from wengert.testing import strategies as ws

PROBABILITY = ws.reals(1 / 16, 15 / 16)
REDUCTIONS = st.sampled_from(["none", "mean", "sum"])
IGNORED = -1


def affine(kind):
    @st.composite
    def make(draw):
        shape = draw(ws.shapes(min_dims=1, max_dims=3))
        wide, narrow = shape[-1], draw(st.integers(0, 3))
        dtype = "complex128" if kind == "complex" else "float64"
        arrays = [
            draw(ws.arrays(dtype, s, elements=elements(kind, BOX)))
            for s in (shape, (narrow, wide), (narrow,))
        ]
        return Case(*arrays[: draw(st.integers(2, 3))])

    return make()


@st.composite
def elus(draw):
    return Case(draw(ws.arrays(elements=NONZERO)), draw(st.sampled_from([1.0, 0.5])))


@st.composite
def weighted(draw):
    shape = draw(ws.shapes(min_dims=1, max_dims=3, min_side=1))
    axis = tuple(sorted(draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))))
    x = draw(ws.arrays("float64", shape, elements=BOX))
    alone = draw(st.sets(st.integers(0, x.ndim - 1)))
    shape = tuple(1 if i in alone else n for i, n in enumerate(x.shape))
    weight, bias = (draw(ws.arrays("float64", shape, elements=BOX)) for _ in range(2))
    eps = draw(st.sampled_from([0.5, 0.1]))
    return Case(x, weight, bias, axis=axis, eps=eps, centred=draw(st.booleans()))


def standardised(x, weight, bias, axis, eps, centred):
    mean = x.mean(axis, keepdims=True)
    x = x - mean if centred else x
    square = (x * x).mean(axis, keepdims=True)
    inverse = 1 / np.sqrt(square + eps)
    out = x * inverse * weight + bias
    return (out, inverse, mean, square, x * inverse) if centred else (out, inverse, x * inverse)


@st.composite
def classified(draw):
    rows, classes = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    x = draw(ws.arrays("float64", (rows, classes), elements=BOX))
    target = draw(ws.arrays("int64", (rows,), elements=st.integers(IGNORED, classes - 1)))
    target[0] = 0  # the mean of nothing is nan
    smoothing = draw(st.sampled_from([0.0, 0.1, 1.0]))
    return Case(
        *(x, target, None),
        ignore_index=IGNORED,
        reduction=draw(REDUCTIONS),
        label_smoothing=smoothing,
    )


@st.composite
def indices(draw):
    return Case(draw(ws.arrays("int64", elements=st.integers(0, 3))), classes=4)


@st.composite
def sequences(draw, gates):
    """An input, a weight and a state; for an LSTM its cells, for a GRU a bias."""
    steps, members, n = draw(st.integers(1, 3)), draw(st.integers(0, 2)), draw(st.integers(1, 2))
    bias = gates == 3 and draw(st.booleans())
    shapes = [(steps, members, gates * n), (gates * n, n), (members, n)]
    shapes += [(members, n)] if gates == 4 else [(gates * n,)] * bias
    arrays = [draw(ws.arrays("float64", shape, elements=BOX)) for shape in shapes]
    return Case(*arrays, *([None] if gates == 3 and not bias else []))


def logistic(x):
    return 1 / (1 + np.exp(-x))


def lstm_reference(z, weight, h, c):
    found = []
    for entering in z:
        i, f, g, o = np.split(entering + h @ weight.T, 4, axis=1)
        i, f, g, o = logistic(i), logistic(f), np.tanh(g), logistic(o)
        c = f * c + i * g
        h = o * np.tanh(c)
        found.append((h, c, np.concatenate((i, f, g, o), axis=1)))
    return tuple(map(np.stack, zip(*found, strict=True)))


def gru_reference(z, weight, h, bias):
    found = []
    for entering in z:
        own = h @ weight.T + (0 if bias is None else bias)
        (r, update, new), own = (np.split(x, 3, axis=1) for x in (entering, own))
        r, update = logistic(r + own[0]), logistic(update + own[1])
        new = np.tanh(new + r * own[2])
        h = (1 - update) * new + update * h
        found.append((h, np.concatenate((r, update, new), axis=1), own[2]))
    return tuple(map(np.stack, zip(*found, strict=True)))


def cross_entropy(x, target, _, ignore_index, reduction, label_smoothing):
    log_probs = x - np.log(np.sum(np.exp(x), axis=1, keepdims=True))
    targets = (1 - label_smoothing) * np.eye(x.shape[1])[target]
    targets = targets + label_smoothing / x.shape[1]
    losses = -np.sum(log_probs * targets, axis=1) * (target != ignore_index)
    if reduction == "none":
        return losses
    return losses.sum() / ((target != ignore_index).sum() if reduction == "mean" else 1)


NETWORKS = {
    "linear": Entry(real=affine("real"), complex=affine("complex"), call=F.linear,
        reference=lambda x, weight, bias=0: x @ weight.T + bias, torch="nn.functional.linear"),
    "gru": Entry(real=sequences(3), reference=gru_reference, torch=False),
    "lstm": Entry(real=sequences(4), reference=lstm_reference, torch=False),
    "elu": Entry(real=elus(), torch="nn.functional.elu", jax="elu",
        reference=lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x))),
    "standardised": Entry(real=weighted(), reference=standardised),
    "logistic_loss": Entry(real=binary(BOX, BOX, scalars=False),
        reference=lambda x, y: (1 - y) * x + np.logaddexp(-x, 0)),
    "binary_cross_entropy": Entry(real=binary(PROBABILITY, PROBABILITY, scalars=False),
        call=PRIMITIVES["binary_cross_entropy"].bind,
        reference=lambda x, y: -y * np.log(x) - (1 - y) * np.log1p(-x)),
    "binary_cross_entropy_slope": Entry(real=binary(PROBABILITY, PROBABILITY, scalars=False),
        reference=lambda x, y: (x - y) / (x * (1 - x))),
    "softmax_cross_entropy": Entry(real=classified(), reference=cross_entropy),
    "class_mask": Entry(real=indices(), tracked=False,
        reference=lambda x, classes: np.eye(classes, dtype=bool)[x]),
}  # fmt: skip
