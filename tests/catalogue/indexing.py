"""Rows for indexing, and for Wengert's own primitives behind it."""

import numpy as np
from hypothesis import strategies as st

import wengert as wg
from tests.ops.cases import Case, both, drawn
from wengert.backends.keys import SLOT
from wengert.tape.primitive import PRIMITIVES
from wengert.testing import strategies as ws


@st.composite
def gets(draw, kind):
    shape = draw(ws.shapes())
    return Case(drawn(draw, kind, shape), draw(ws.index_keys(shape)))


def has_mask(key):
    return any(
        isinstance(part, np.ndarray) and part.dtype.kind == "b"
        for part in (key if isinstance(key, tuple) else (key,))
    )


def distinct(shape, key):
    """Whether a key names no place twice: which of two values stays is not laid down."""
    places = np.arange(int(np.prod(shape))).reshape(shape)[key]
    return np.unique(places).size == np.size(places)


@st.composite
def sets(draw, kind):
    shape = draw(ws.shapes())
    key = draw(ws.index_keys(shape).filter(lambda key: distinct(shape, key)))
    chosen = np.shape(np.empty(shape)[key])
    # A value that broadcasts: some leading axes are left out, some are of length one.
    given = (
        chosen
        if has_mask(key)
        else tuple(
            n if draw(st.booleans()) else 1 for n in chosen[draw(st.integers(0, len(chosen))) :]
        )
    )
    value = (
        draw(st.sampled_from([0, 1.5]))
        if draw(st.integers(0, 4)) == 4
        else drawn(draw, draw(st.sampled_from(["real", kind])), given)
    )
    return Case(drawn(draw, kind, shape), value, key)


def stored(x, value, key):
    out = wg.multiply(x, 1)
    out[key] = value
    return out


def stored_reference(x, value, key):
    out = x.copy()
    out[key] = value
    return out


def split(key):
    """A key as the primitives take it: arrays apart, a slot in the place of each."""
    parts = key if isinstance(key, tuple) else (key,)
    arrays = [part for part in parts if not isinstance(part, int | slice | type(None) | type(...))]
    return arrays, tuple(
        part if isinstance(part, int | slice | type(None) | type(...)) else SLOT for part in parts
    )


@st.composite
def scatters(draw, kind):
    shape = draw(ws.shapes())
    key = draw(ws.index_keys(shape))
    chosen = np.shape(np.empty(shape)[key])
    return Case(drawn(draw, kind, chosen), key, shape)


def scattered(g, key, shape):
    arrays, static = split(key)
    return PRIMITIVES["scatter_add"].bind(g, *arrays, key=static, shape=shape)


def scatter_reference(g, key, shape):
    out = np.zeros(shape, dtype=g.dtype)
    np.add.at(out, key, g)
    return out


@st.composite
def takes(draw, kind):
    shape = draw(ws.shapes(min_dims=1, min_side=1))
    axis = draw(ws.axis(len(shape)))
    n = shape[axis]
    indices = draw(
        ws.arrays("int64", ws.shapes(min_dims=1, max_dims=1), elements=st.integers(-n, n - 1))
    )
    if len(shape) == 1 and draw(st.booleans()):
        return Case(drawn(draw, kind, shape), indices)
    return Case(drawn(draw, kind, shape), indices, axis=axis)


@st.composite
def takes_along(draw, kind):
    shape = draw(ws.shapes(min_dims=1, min_side=1))
    axis = draw(ws.axis(len(shape)))
    n = shape[axis]
    count = draw(st.integers(0, 3))
    other = [1 if draw(st.integers(0, 3)) == 3 else m for m in shape]
    other[axis] = count
    indices = draw(ws.arrays("int64", tuple(other), elements=st.integers(-n, n - 1)))
    return Case(drawn(draw, kind, shape), indices, axis=axis)


MASKS = "the shape that a mask gives is not known before it is computed"

INDEXING = {
    "getitem": both(gets, call=lambda x, key: x[key], reference=lambda x, key: np.asarray(x[key]),
        jax=lambda x, key: x[key]),
    "setitem": both(sets, call=stored, reference=stored_reference),
    "scatter_add": both(scatters, call=scattered, reference=scatter_reference, torch=False),
    "take": both(takes),
    "take_along_axis": both(takes_along, torch=False),
}  # fmt: skip
