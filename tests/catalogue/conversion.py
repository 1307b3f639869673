"""Rows for conversions between dtypes, devices and libraries, and for creation from an array."""

import numpy as np
from hypothesis import strategies as st

import wengert as wg
from tests.ops.cases import BOX, DTYPES, Case, Entry, elements, unary
from wengert.backends import get_backend
from wengert.tape.primitive import PRIMITIVES
from wengert.testing import strategies as ws


def elsewhere():
    """Another backend than the selected one."""
    return "numpy" if get_backend().name != "numpy" else "array_api_strict"


def filled(x):
    out = wg.multiply(x, 1)
    out.fill_(2.5)
    return out


def to_where_it_is(x):
    # The public function gives the Tensor itself; most libraries have one device here.
    return PRIMITIVES["to_device"].bind(x, device=x.device, source=x.device)


def between_zero_and_one(x):
    drawn = wg.rand_like(x)
    return wg.logical_and(wg.greater_equal(drawn, 0), wg.less(drawn, 1))


def there_and_back(x):
    moved = wg.to_backend(wg.exp(x), elsewhere())
    return wg.to_backend(wg.multiply(moved, moved), get_backend().name)


@st.composite
def triangles(draw, kind="real"):
    shape = ws.shapes(min_dims=2)
    x = draw(ws.arrays(DTYPES[kind], shape, elements=elements(kind, BOX)))
    return Case(x, k=draw(st.integers(-3, 3)))


@st.composite
def grids(draw, kind="real"):
    vectors = draw(
        st.lists(
            ws.arrays(
                DTYPES[kind], ws.shapes(min_dims=1, max_dims=1), elements=elements(kind, BOX)
            ),
            min_size=1,
            max_size=3,
        )
    )
    return Case(*vectors, indexing=draw(st.sampled_from(["xy", "ij"])))


PLANE = ws.complexes(BOX)

CONVERSION = {
    # To its own dtype and, for the real one, on to complex numbers.
    "astype": Entry(
        real=unary(BOX) | unary(BOX).map(lambda case: Case(*case.args, wg.complex128)),
        complex=unary(PLANE, "complex"),
        call=lambda x, dtype=None: wg.astype(x, x.dtype if dtype is None else dtype),
        reference=lambda x, dtype=None: x if dtype is None else x.astype(complex),
        torch=False,
        jax=False,
        small=False,
        half=False,
    ),
    "clone": Entry(real=unary(BOX), complex=unary(PLANE, "complex"), reference=lambda x: x),
    "to_backend": Entry(real=unary(BOX), complex=unary(PLANE, "complex"), call=there_and_back,
        reference=lambda x: np.exp(x) ** 2, half=False, small=False),
    "fill": Entry(real=unary(BOX), complex=unary(PLANE, "complex"), call=filled,
        reference=lambda x: np.full_like(x, 2.5), torch=False),
    "to_device": Entry(real=unary(BOX), complex=unary(PLANE, "complex"), call=to_where_it_is,
        reference=lambda x: x),
    "rand_like": Entry(real=unary(BOX), call=between_zero_and_one,
        reference=lambda x: np.ones(x.shape, bool), tracked=False),
    "tril": Entry(real=triangles(), complex=triangles("complex")),
    "triu": Entry(real=triangles(), complex=triangles("complex")),
    "meshgrid": Entry(real=grids(), complex=grids("complex")),
}  # fmt: skip
