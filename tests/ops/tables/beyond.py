"""Rows for the primitives behind the functions beside the standard."""

import math

import numpy as np
from hypothesis import strategies as st

import wengert as wg
from tests.ops.cases import BOX, DTYPES, Case, Entry, elements
from wengert.ops.beyond.windows import overlap_add, sliding_windows
from wengert.testing import strategies as ws


def both(strategy, **more):
    return Entry(real=strategy("real"), complex=strategy("complex"), **more)


@st.composite
def contractions(draw, kind):
    """Products of two arrays: labels in both, in one, repeated in one, kept or summed over."""
    length = {c: draw(st.integers(0, 3)) for c in "abcd"}
    terms = ["".join(draw(st.lists(st.sampled_from("abcd"), max_size=3))) for _ in range(2)]
    every = sorted({*"".join(terms)})
    result = "".join(draw(st.permutations(every))[: draw(st.integers(0, len(every)))])
    kinds = draw(st.permutations([kind, draw(st.sampled_from(["real", kind]))]))
    arrays = [
        draw(ws.arrays(DTYPES[k], tuple(length[c] for c in term), elements=elements(k, BOX)))
        for k, term in zip(kinds, terms, strict=True)
    ]
    return Case(f"{terms[0]},{terms[1]}->{result}", *arrays)


def torch_einsum(subscripts, x1, x2):
    import torch

    dtype = torch.promote_types(x1.dtype, x2.dtype)
    return torch.einsum(subscripts, x1.to(dtype), x2.to(dtype))


@st.composite
def extremes(draw):
    """At distinct values: where two are equal the extreme has a kink."""
    width = draw(st.integers(1, 2))
    n, count = draw(st.integers(1, 3)), draw(st.integers(0, 4))
    values = draw(ws.arrays(shape=((n + count) * width,), unique=True))
    x, value = values[: n * width], values[n * width :]
    shape = (width,) if width > 1 else ()
    rows = draw(ws.arrays("int64", (count,), elements=ws.integers(-n, n - 1)))
    return Case(x.reshape(n, *shape), value.reshape(count, *shape), rows)


def extreme(name, ufunc):
    def reference(x, value, rows):
        out = x.copy()
        ufunc.at(out, rows, value)
        return out

    def pytorch(x, value, rows):
        rows = (rows % len(x)).reshape(-1, *[1] * (x.ndim - 1)).expand(value.shape)
        return x.scatter_reduce(0, rows, value, f"a{name}")

    return Entry(
        real=extremes(),
        call=lambda x, value, rows: getattr(wg.at(x)[rows], name)(value),
        reference=reference,
        torch=pytorch,
        jax=False,
    )


@st.composite
def windows(draw, kind):
    """Some last axes, and windows that fit; of the array the windows, or the sums of theirs."""
    count = draw(st.integers(1, 2))
    each = st.tuples(*[st.integers(1, 3)] * count)
    size, stride, dilation = draw(each), draw(each), draw(each)
    lead = draw(ws.shapes(max_dims=2))
    spans = [(k - 1) * d + 1 for k, d in zip(size, dilation, strict=True)]
    lengths = tuple(span + draw(st.integers(0, 3)) for span in spans)
    options = {"size": size, "stride": stride, "dilation": dilation}
    shape = (*lead, *lengths)
    return Case(draw(ws.arrays(DTYPES[kind], shape, elements=elements(kind, BOX))), **options)


@st.composite
def overlaps(draw, kind):
    case = draw(windows(kind))
    x, count = case.args[0], len(case.kwargs["size"])
    lengths = x.shape[x.ndim - count :]
    shape = windows_by_numpy(x, **case.kwargs).shape
    values = draw(ws.arrays(DTYPES[kind], shape, elements=elements(kind, BOX)))
    return Case(values, lengths=lengths, **case.kwargs)


def windows_by_numpy(x, size, stride, dilation):
    count = len(size)
    spans = tuple((k - 1) * d + 1 for k, d in zip(size, dilation, strict=True))
    axes = tuple(range(x.ndim - count, x.ndim))
    found = np.lib.stride_tricks.sliding_window_view(x, spans, axes)
    steps = [slice(None, None, n) for n in (*stride, *dilation)]
    found = found[(..., *steps)]
    return np.moveaxis(found, range(-count, 0), range(-2 * count, -count))


def overlaps_by_numpy(x, lengths, size, stride, dilation):
    out = np.zeros((*x.shape[: x.ndim - 2 * len(size)], *lengths), x.dtype)
    places = windows_by_numpy(np.arange(np.prod(lengths)).reshape(lengths), size, stride, dilation)
    flat = out.reshape(math.prod(out.shape[: out.ndim - len(size)]), math.prod(lengths))
    for row, given in zip(flat, x.reshape(len(flat), places.size), strict=True):
        np.add.at(row, places.reshape(-1), given)
    return out


def torch_overlaps(x, lengths, size, stride, dilation):
    import torch

    places = windows_by_numpy(np.arange(np.prod(lengths)).reshape(lengths), size, stride, dilation)
    rows = x.reshape(-1, places.size)
    out = torch.zeros(len(rows), int(np.prod(lengths)), dtype=x.dtype)
    index = torch.tensor(places.reshape(-1))
    return out.index_add(1, index, rows).reshape(*x.shape[: x.ndim - 2 * len(size)], *lengths)


def torch_windows(x, size, stride, dilation):
    import torch

    shape = x.shape[x.ndim - len(size) :]
    places = windows_by_numpy(np.arange(np.prod(shape)).reshape(shape), size, stride, dilation)
    taken = x.reshape(-1, int(np.prod(shape)))
    found = taken[:, torch.tensor(places.reshape(-1))]
    return found.reshape(*x.shape[: x.ndim - len(size)], *places.shape)


BEYOND = {
    "einsum_pair": both(
        contractions, call=wg.einsum, reference=np.einsum, torch=torch_einsum, jax="einsum"
    ),
    "overlap_add": both(
        overlaps,
        call=overlap_add,
        reference=overlaps_by_numpy,
        torch=torch_overlaps,
        jax=False,
    ),
    "scatter_max": extreme("max", np.maximum),
    "scatter_min": extreme("min", np.minimum),
    "sliding_windows": both(
        windows,
        call=sliding_windows,
        reference=windows_by_numpy,
        torch=torch_windows,
        jax=False,
    ),
}
