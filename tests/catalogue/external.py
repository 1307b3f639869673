"""The row of external functions; tests/compiler/test_external.py has what they do."""

import numpy as np

from tests.catalogue.conversion import PLANE
from tests.ops.cases import BOX, Entry, unary
from wengert.compiler.opaque import Call, external
from wengert.tape.primitive import PRIMITIVES

TWICE = external(lambda x: x + x)


def call(x):
    """The operation itself, which is not tracked: the derivative is given beside it."""
    (result,) = PRIMITIVES["external"].bind(x, call=Call(TWICE))
    return result


EXTERNAL = {
    "external": Entry(
        real=unary(BOX),
        complex=unary(PLANE, "complex"),
        call=call,
        reference=lambda x: np.asarray(x) + x,
        tracked=False,
        torch=False,
        jax=False,
    ),
}
