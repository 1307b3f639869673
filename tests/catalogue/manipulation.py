"""Rows for the manipulation functions of the standard."""

import numpy as np
from hypothesis import strategies as st

import wengert as wg
from tests.ops.cases import Case, both, drawn
from wengert.func.sparsity import as_declared
from wengert.testing import strategies as ws


@st.composite
def broadcasts(draw, kind):
    given, target = draw(ws.broadcastable(2))
    return Case(drawn(draw, kind, given), np.broadcast_shapes(given, target))


@st.composite
def expansions(draw, kind):
    x = drawn(draw, kind, ws.shapes())
    return Case(x, axis=draw(st.integers(-x.ndim - 1, x.ndim)))


@st.composite
def squeezes(draw, kind):
    shape = list(draw(ws.shapes(max_dims=2)))
    at = draw(st.integers(0, len(shape)))
    shape.insert(at, 1)
    axis = draw(st.sampled_from([at, at - len(shape), (at,), (at - len(shape),)]))
    return Case(drawn(draw, kind, tuple(shape)), axis=axis)


@st.composite
def permutations(draw, kind):
    x = drawn(draw, kind, ws.shapes())
    axes = draw(st.permutations(range(x.ndim)))
    return Case(x, tuple(a - x.ndim if draw(st.booleans()) else a for a in axes))


@st.composite
def drawn_alone(draw, kind):
    return Case(drawn(draw, kind, ws.shapes()))


@st.composite
def flips(draw, kind):
    x = drawn(draw, kind, ws.shapes())
    return Case(x, axis=draw(ws.axes(x.ndim)))


@st.composite
def rolls(draw, kind):
    x = drawn(draw, kind, ws.shapes())
    axis = draw(ws.axes(x.ndim, min_size=min(x.ndim, 1)) if x.ndim else st.none())
    shifts = st.integers(-4, 4)
    if isinstance(axis, tuple):
        shift = draw(shifts) if draw(st.booleans()) else tuple(draw(shifts) for _ in axis)
    else:
        shift = draw(shifts)
    return Case(x, shift, axis=axis)


@st.composite
def reshapes(draw, kind):
    x = drawn(draw, kind, ws.shapes())
    shape = list(draw(st.permutations(x.shape)))
    if draw(st.booleans()):
        shape.insert(draw(st.integers(0, len(shape))), 1)
    if x.size and shape and draw(st.booleans()):
        shape[draw(st.integers(0, len(shape) - 1))] = -1
    return Case(x, tuple(shape))


@st.composite
def concatenations(draw, kind):
    shape = draw(ws.shapes(min_dims=1))
    axis = draw(ws.axis(len(shape)))
    pieces = []
    for _ in range(draw(st.integers(1, 3))):
        piece = list(shape)
        piece[axis] = draw(st.integers(0, 3))
        pieces.append(drawn(draw, kind, tuple(piece)))
    if draw(st.integers(0, 3)) == 3:
        return Case(pieces, axis=None)
    return Case(pieces, axis=axis)


@st.composite
def stacks(draw, kind):
    shape = draw(ws.shapes(max_dims=2))
    pieces = [drawn(draw, kind, shape) for _ in range(draw(st.integers(1, 3)))]
    return Case(pieces, axis=draw(ws.axis(len(shape) + 1)))


@st.composite
def unstacks(draw, kind):
    # With no parts there is no result to look at.
    shape = draw(ws.shapes(min_dims=1))
    axis = draw(ws.axis(len(shape)))
    shape = tuple(max(n, 1) if i == axis % len(shape) else n for i, n in enumerate(shape))
    return Case(drawn(draw, kind, shape), axis=axis)


@st.composite
def repeats(draw, kind):
    x = drawn(draw, kind, ws.shapes(max_dims=2))
    axis = draw(st.none() | ws.axis(x.ndim)) if x.ndim else None
    return Case(x, draw(st.integers(0, 3)), axis=axis)


@st.composite
def tiles(draw, kind):
    x = drawn(draw, kind, ws.shapes(max_dims=2))
    return Case(x, tuple(draw(st.lists(st.integers(0, 2), max_size=3))))


MANIPULATION = {
    "broadcast_to": both(broadcasts),
    "expand_dims": both(expansions),
    "squeeze": both(squeezes),
    "permute_dims": both(permutations),
    "as_declared": both(
        drawn_alone,
        call=lambda x: as_declared(x, wg.zeros_like(x, dtype="bool")),
        reference=lambda x: x,
    ),
    "flip": both(flips),
    "roll": both(rolls),
    "reshape": both(reshapes),
    "concat_arrays": both(
        concatenations, call=wg.concat, reference=np.concatenate, torch="concat", jax="concat"
    ),
    "stack_arrays": both(stacks, call=wg.stack, reference=np.stack, torch="stack", jax="stack"),
    "unstack": both(unstacks),
    "repeat": both(repeats),
    "tile": both(tiles),
}
