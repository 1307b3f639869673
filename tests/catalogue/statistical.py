"""Rows for the statistical, searching, sorting and set functions of the standard."""

import numpy as np
from hypothesis import strategies as st

from tests.catalogue.elementwise import pairs
from tests.ops.cases import BOX, DTYPES, Case, Entry, both, elements, reduction
from wengert.testing import strategies as ws

#: Further from 0 than a difference's step, and small enough that products of many stay small.
FACTORS = ws.reals(-2, 2, away_from=(0,))


def products(kind):
    # Zeros among the factors, one or several, are the hard part.
    return reduction(ws.reals(-2, 2, step=0.5), kind)


@st.composite
def spreads(draw):
    case = draw(reduction(BOX, min_side=2, unique=True, none=False))
    axis = case.kwargs["axis"]
    if axis == ():
        case.kwargs["axis"] = axis = None if case.args[0].ndim else ()
    if axis is None and "axis" in case.kwargs and draw(st.booleans()):
        del case.kwargs["axis"]
    if case.args[0].ndim and draw(st.booleans()):
        case.kwargs["correction"] = draw(st.sampled_from([0, 1, 0.5]))
    return case


@st.composite
def deviations(draw):
    """At distinct values: the deviation of equal ones has a kink."""
    return draw(spreads().filter(lambda case: case.args[0].ndim > 0))


@st.composite
def running(draw, kind, domain=BOX):
    x = draw(ws.arrays(DTYPES[kind], ws.shapes(min_dims=1), elements=elements(kind, domain)))
    kwargs = {}
    if x.ndim > 1 or draw(st.booleans()):
        kwargs["axis"] = draw(ws.axis(x.ndim))
    if draw(st.booleans()):
        kwargs["include_initial"] = draw(st.booleans())
    return Case(x, **kwargs)


@st.composite
def recurrences(draw, kind):
    shape = draw(ws.shapes(min_dims=1, max_dims=2, max_side=4))
    axis = draw(st.integers(0, len(shape) - 1))
    a, b = (draw(ws.arrays(DTYPES[kind], shape, elements=elements(kind, BOX))) for _ in "ab")
    return Case(a, b, axis=axis)


def recurrence_reference(a, b, *, axis):
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    out = np.zeros_like(b)
    for i in range(len(b)):
        out[i] = b[i] + (a[i] * out[i - 1] if i else 0)
    return np.moveaxis(out, 0, axis)


@st.composite
def selections(draw, kind):
    shapes = draw(ws.broadcastable(3))
    condition = draw(ws.arrays("bool", shapes[0]))
    x1, x2 = (
        draw(ws.arrays(DTYPES[kind], shape, elements=elements(kind, BOX))) for shape in shapes[1:]
    )
    scalar = draw(st.integers(0, 4))
    if scalar == 0:
        return Case(condition, x1, draw(st.sampled_from([0, 1.5])))
    if scalar == 1:
        return Case(condition, draw(st.sampled_from([0, 1.5])), x2)
    return Case(condition, x1, x2)


@st.composite
def sorts(draw):
    """At distinct values: equal ones change places."""
    x = draw(ws.arrays(shape=ws.shapes(min_dims=1), unique=True))
    kwargs = {}
    if draw(st.booleans()):
        kwargs["axis"] = draw(ws.axis(x.ndim))
    if draw(st.booleans()):
        kwargs["descending"] = draw(st.booleans())
    if draw(st.booleans()):
        kwargs["stable"] = draw(st.booleans())
    return Case(x, **kwargs)


def sort_reference(x, axis=-1, descending=False, stable=True):
    out = np.sort(x, axis=axis)
    return np.flip(out, axis) if descending else out


@st.composite
def searches(draw):
    x1 = np.sort(draw(ws.arrays(shape=ws.shapes(min_dims=1, max_dims=1))))
    x2 = draw(ws.arrays(shape=ws.shapes(max_dims=2)))
    side = draw(st.sampled_from(["left", "right"]))
    if draw(st.booleans()):
        sorter = np.asarray(draw(st.permutations(range(len(x1)))), dtype=np.int64)
        unsorted = np.empty_like(x1)
        unsorted[sorter] = x1
        return Case(unsorted, x2, side=side, sorter=sorter)
    return Case(x1, x2, side=side)


@st.composite
def truths(draw):
    x = draw(ws.arrays(draw(st.sampled_from(["bool", "float64"])), elements=None))
    return Case(x, axis=draw(ws.axes(x.ndim)), keepdims=draw(st.booleans()))


@st.composite
def differences(draw, kind):
    shape = draw(ws.shapes(min_dims=1))
    axis = draw(ws.axis(len(shape)))
    x = draw(ws.arrays(DTYPES[kind], shape, elements=elements(kind, BOX)))
    kwargs = {"axis": axis, "n": draw(st.integers(0, 3))}
    for name in ("prepend", "append"):
        if draw(st.booleans()):
            more = list(shape)
            more[axis] = draw(st.integers(0, 2))
            kwargs[name] = draw(ws.arrays(DTYPES[kind], tuple(more), elements=elements(kind, BOX)))
    return Case(x, **kwargs)


FEW = ws.reals(-1, 1, step=1.0)
UNKNOWN_SHAPE = {"dask": "the shape of the result is not known before it is computed"}

STATISTICAL = {
    "sum": both(lambda kind: reduction(BOX, kind)),
    "mean": both(lambda kind: reduction(BOX, kind, min_side=1)),
    "prod": both(products),
    "var": Entry(real=spreads()),
    "std": Entry(real=deviations()),
    "max": Entry(real=reduction(BOX, unique=True, min_side=1)),
    "min": Entry(real=reduction(BOX, unique=True, min_side=1)),
    "cumulative_sum": both(running),
    # NumPy raises on 0-d arrays, as the standard does.
    "cumulative_prod": both(lambda kind: running(kind, ws.reals(-2, 2, step=0.5))),
    "linear_recurrence": both(recurrences, reference=recurrence_reference),
    "diff": both(differences),
    "all": Entry(real=truths(), tracked=False),
    "any": Entry(real=truths(), tracked=False),
    "where": both(selections),
    "sort": Entry(real=sorts(), reference=sort_reference),
    "argsort": Entry(real=sorts(), tracked=False,
        reference=lambda x, axis=-1, descending=False, stable=True: np.argsort(
            -x if descending else x, axis=axis, stable=True)),
    "argmax": Entry(real=reduction(BOX, unique=True, min_side=1, many=False), tracked=False),
    "argmin": Entry(real=reduction(BOX, unique=True, min_side=1, many=False), tracked=False),
    "count_nonzero": Entry(real=reduction(FEW), complex=reduction(FEW, "complex"), tracked=False),
    "nonzero": Entry(real=ws.arrays(shape=ws.shapes(min_dims=1), elements=FEW).map(Case),
        tracked=False, not_on=UNKNOWN_SHAPE),
    "searchsorted": Entry(real=searches(), tracked=False),
    # Which values are equal says nothing about how they change.
    **{
        name: Entry(real=ws.arrays(elements=FEW).map(Case), order=0, not_on=UNKNOWN_SHAPE)
        for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values")
    },
    "isin": Entry(
        real=st.builds(
            lambda case, invert: Case(*case.args, invert=invert),
            pairs("int64", st.integers(-1, 1)),
            st.booleans(),
        ),
        tracked=False,
    ),
}  # fmt: skip
