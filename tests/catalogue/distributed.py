"""Rows for collectives, of a process that is alone; tests/distributed has several."""

from collections.abc import Callable
from typing import Any

import numpy as np

import wengert.distributed as wd
from tests.catalogue.conversion import PLANE
from tests.ops.cases import BOX, DTYPES, Case, Entry, unary
from wengert.testing import strategies as ws

wd.init()


def rows(call: Callable[..., Any]) -> Entry:
    """A row of a function of arrays with at least one axis."""
    shapes = ws.shapes(min_dims=1)
    return Entry(
        real=ws.arrays(DTYPES["real"], shapes, elements=BOX).map(Case),
        complex=ws.arrays(DTYPES["complex"], shapes, elements=PLANE).map(Case),
        call=call,
        reference=np.array,
        torch=False,
        jax=False,
    )


def whole(call: Callable[..., Any], **options: Any) -> Entry:
    """A row of a function of arrays of any shape."""
    return Entry(
        real=unary(BOX, **options),
        complex=unary(PLANE, "complex", **options),
        call=call,
        reference=lambda x, **_: np.array(x),
        torch=False,
        jax=False,
    )


DISTRIBUTED = {
    "all_reduce": whole(wd.all_reduce),
    "all_gather": rows(wd.all_gather),
    "reduce_scatter": rows(wd.reduce_scatter),
    "broadcast": whole(wd.broadcast, root=0),
    "reduce": whole(wd.reduce, root=0),
}
