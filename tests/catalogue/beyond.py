"""Rows for the primitives behind the functions beside the standard."""

import math

import numpy as np
from hypothesis import strategies as st

import wengert as wg
from tests.ops.cases import BOX, DTYPES, Case, Entry, both, elements
from wengert.ops.beyond.convolution import convolution, convolution_input, convolution_weight
from wengert.ops.beyond.pooling import window_sum
from wengert.ops.beyond.windows import overlap_add, sliding_windows
from wengert.testing import strategies as ws


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


@st.composite
def extremes(draw):
    """At distinct values: where two are equal the extreme has a kink."""
    width = draw(st.integers(1, 2))
    n, count = draw(st.integers(1, 3)), draw(st.integers(0, 4))
    values = draw(ws.arrays(shape=((n + count) * width,), unique=True))
    x, value = values[: n * width], values[n * width :]
    shape = (width,) if width > 1 else ()
    rows = draw(ws.arrays("int64", (count,), elements=st.integers(-n, n - 1)))
    return Case(x.reshape(n, *shape), value.reshape(count, *shape), rows)


def extreme(name, ufunc):
    def reference(x, value, rows):
        out = x.copy()
        ufunc.at(out, rows, value)
        return out

    return Entry(
        real=extremes(),
        call=lambda x, value, rows: getattr(wg.at(x)[rows], name)(value),
        reference=reference,
        torch=False,
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


@st.composite
def side_by_side(draw, kind):
    """Windows that are not dilated, as those of means are."""
    case = draw(windows(kind))
    x, size = case.args[0], case.kwargs["size"]
    fits = all(k <= n for k, n in zip(size, x.shape[x.ndim - len(size) :], strict=True))
    return Case(*case.args, size=size if fits else (1,) * len(size), stride=case.kwargs["stride"])


def sums_by_numpy(x, size, stride):
    found = windows_by_numpy(x, size, stride, (1,) * len(size))
    return found.sum(axis=tuple(range(x.ndim - len(size), x.ndim)))


@st.composite
def maxima(draw):
    """Windows of which each has an element that is in no margin."""
    count = draw(st.integers(1, 2))
    axes = []
    for _ in range(count):
        n, k, s, d = draw(st.tuples(*[st.integers(1, m) for m in (5, 3, 3, 2)]))
        k = k if (k - 1) * d < n else 1
        p = draw(st.integers(0, ((k - 1) * d + 1) // 2 if d == 1 or n > 1 else 0))
        axes.append((n, (n + 2 * p - (k - 1) * d - 1) // s + 1, k, s, p, d))
    lengths, counts, *options = map(tuple, zip(*axes, strict=True))
    x = draw(ws.arrays("float64", (*draw(ws.shapes(max_dims=1)), *lengths), elements=BOX))
    return Case(x, counts=counts, options=tuple(options))


def argmax_by_numpy(x, counts, options):
    lead, lengths = x.shape[: x.ndim - len(counts)], x.shape[x.ndim - len(counts) :]
    out, places = np.zeros((*lead, *counts), np.int64), np.arange(math.prod(lengths))
    for at in np.ndindex(*counts):
        parts = [
            [place for place in range(i * s - p, i * s - p + (k - 1) * d + 1, d) if 0 <= place < n]
            for i, n, k, s, p, d in zip(at, lengths, *options, strict=True)
        ]
        part = x[(..., *np.ix_(*parts))].reshape(*lead, math.prod(map(len, parts)))
        found = places.reshape(lengths)[np.ix_(*parts)].reshape(-1)
        out[(..., *at)] = found[part.argmax(axis=-1)]
    return out


@st.composite
def problems(draw, count, most):
    """Kernel, stride, padding, dilation and groups of a convolution, and an example's shape."""
    each = st.tuples(*[st.integers(1, most)] * count)
    size, stride, dilation = draw(each), draw(each), draw(each)
    padding = draw(st.tuples(*[st.tuples(st.integers(0, most), st.integers(0, most))] * count))
    least = [
        max((k - 1) * d + 1 - a - b, 1)
        for k, d, (a, b) in zip(size, dilation, padding, strict=True)
    ]
    groups, inner = draw(st.integers(1, most)), draw(st.integers(1, most))
    shape = groups * inner, *(n + draw(st.integers(0, most)) for n in least)
    return size, stride, padding, dilation, groups, shape


def counts(lengths, size, stride, padding, dilation):
    """The lengths of a convolution's result."""
    return [
        (n + a + b - (k - 1) * d - 1) // s + 1
        for n, (a, b), k, d, s in zip(lengths, padding, size, dilation, stride, strict=True)
    ]


@st.composite
def convolutions(draw, kind, without=""):
    """Images, weights and an array of the result's shape, but for one of them, and options."""
    size, *how, groups, shape = draw(problems(draw(st.integers(1, 2)), 2))
    batch, produced = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    lengths = shape[1:]
    shapes = {
        "x": (batch, *shape),
        "weight": (groups * produced, shape[0] // groups, *size),
        "y": (batch, groups * produced, *counts(lengths, size, *how)),
        "bias": (groups * produced,),
    }
    options = {"how": (*how, groups)}
    if without == "x":
        names, options["lengths"] = ("y", "weight"), lengths
    elif without == "weight":
        names, options["size"] = ("x", "y"), size
    else:
        names = ("x", "weight", "bias")[: draw(st.integers(2, 3))]
    arrays = [draw(ws.arrays(DTYPES[kind], shapes[n], elements=elements(kind, BOX))) for n in names]
    return Case(*arrays, **options)


def labels(how):
    count = len(how[0])
    return f"goc{'ij'[:count]}", f"ngc{'ij'[:count]}{'yx'[:count]}", f"ngo{'yx'[:count]}"


def padded_windows(x, size, how):
    stride, padding, dilation, groups = how
    found = windows_by_numpy(np.pad(x, ((0, 0), (0, 0), *padding)), size, stride, dilation)
    return found.reshape(len(x), groups, -1, *found.shape[2:])


def convolution_by_numpy(x, weight, bias=None, *, how):
    (w, v, y), parts = labels(how), weight.reshape(how[-1], -1, *weight.shape[1:])
    out = np.einsum(f"{w},{v}->{y}", parts, padded_windows(x, weight.shape[2:], how))
    out = out.reshape(len(x), len(weight), *out.shape[3:])
    return out if bias is None else out + bias.reshape(-1, *[1] * len(how[0]))


def convolution_input_by_numpy(y, weight, lengths, how):
    stride, padding, dilation, groups = how
    (w, v, p), parts = labels(how), weight.reshape(groups, -1, *weight.shape[1:])
    rows = y.reshape(len(y), groups, -1, *y.shape[2:])
    spread = np.einsum(f"{w},{p}->{v}", parts, rows)
    spread = spread.reshape(len(y), -1, *spread.shape[3:])
    wide = [n + a + b for n, (a, b) in zip(lengths, padding, strict=True)]
    out = overlaps_by_numpy(spread, wide, weight.shape[2:], stride, dilation)
    return out[(..., *[slice(a, a + n) for n, (a, _) in zip(lengths, padding, strict=True)])]


def convolution_weight_by_numpy(x, y, size, how):
    w, v, p = labels(how)
    rows = y.reshape(len(y), how[-1], -1, *y.shape[2:])
    out = np.einsum(f"{v},{p}->{w}", padded_windows(x, size, how), rows)
    return out.reshape(-1, *out.shape[2:])


def row(reference, strategy, call, *options):
    """A row without an oracle: of what is linear, values by NumPy and differences tell all."""
    calls = {"call": call, "reference": reference, "torch": False, "jax": False}
    return both(lambda kind: strategy(kind, *options), **calls)


BEYOND = {
    "convolution": row(convolution_by_numpy, convolutions,
        lambda x, weight, bias=None, *, how: convolution(x, weight, bias, how=how)),
    "convolution_input": row(convolution_input_by_numpy, convolutions, convolution_input, "x"),
    "convolution_weight": row(
        convolution_weight_by_numpy, convolutions, convolution_weight, "weight"
    ),
    "einsum_pair": row(np.einsum, contractions, wg.einsum),
    "overlap_add": row(overlaps_by_numpy, overlaps, overlap_add),
    "scatter_max": extreme("max", np.maximum),
    "scatter_min": extreme("min", np.minimum),
    "sliding_windows": row(windows_by_numpy, windows, sliding_windows),
    "window_argmax": Entry(real=maxima(), reference=argmax_by_numpy, tracked=False),
    "window_sum": row(sums_by_numpy, side_by_side, window_sum),
}  # fmt: skip
