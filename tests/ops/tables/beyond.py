"""Rows for the primitives behind the functions beside the standard."""

import numpy as np
from hypothesis import strategies as st

import wengert as wg
from tests.ops.cases import BOX, DTYPES, Case, Entry, elements
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


BEYOND = {
    "einsum_pair": both(
        contractions, call=wg.einsum, reference=np.einsum, torch=torch_einsum, jax="einsum"
    ),
    "scatter_max": extreme("max", np.maximum),
    "scatter_min": extreme("min", np.minimum),
}
