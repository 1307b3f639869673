"""Rows that follow from the primitives' own: of functions of one array, smooth in a domain."""

import math
from contextlib import suppress

import numpy as np
import scipy.special

import wengert as wg
from tests.ops.cases import BOX, PUBLIC, Entry, unary
from tests.ops.domains import points
from wengert.ops.domain import EVERYWHERE
from wengert.tape.primitive import PRIMITIVES
from wengert.testing import strategies as ws

#: A quarter away from the axes of the complex plane lie no poles and no branch cuts.
OFF_AXES = ws.complexes(ws.reals(-2, 2, away_from=(0,), distance=0.25))
PLANE = ws.complexes(BOX)


def within(domain):
    """Real numbers where a function is smooth, a quarter or more from where it is not."""
    low, high = (-3, 3) if domain.without else (-2, 2)
    if domain.low > -math.inf:
        low, high = domain.low + 0.25, domain.low + 3
    return ws.reals(
        low, min(high, domain.high - 0.25), away_from=points(domain, -4, 4), distance=0.25
    )


def of_complex_numbers(primitive):
    """Whether a function takes complex numbers."""
    with suppress(TypeError):
        PRIMITIVES[primitive.name].bind(wg.asarray(0.5 + 0.5j))
        return True
    return False


def smooth(primitive, **more):
    """The row of a function of one array, real and where it takes them complex ones."""
    domain = primitive.domain.get("x", EVERYWHERE)
    if primitive.linear == "together" or (domain.plane and not domain.without):
        plane = PLANE
    else:
        plane = OFF_AXES if domain.period is None else ws.complexes(within(domain))
    return Entry(
        real=unary(within(domain)),
        complex=unary(plane, "complex") if of_complex_numbers(primitive) else None,
        **more,
    )


def derived(known):
    """Rows for the public primitives of one array that have none."""
    return {
        name: smooth(primitive, reference=getattr(np, name, getattr(scipy.special, name, None)))
        for name, primitive in PRIMITIVES.items()
        if name not in known and name in PUBLIC and primitive.inputs == ("x",) and primitive.rules
    }
