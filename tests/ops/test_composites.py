"""What Wengert composes where a library has no kernel, run beside the kernel that NumPy has."""

import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings

from tests.ops.cases import SCALE, apply, function, leaves
from tests.ops.tables import TABLE
from tests.ops.watching import watched
from wengert.backends import namespaces
from wengert.tape.primitive import PRIMITIVES

XP = namespaces[np.ndarray]


def is_hidden(name):
    kernel = PRIMITIVES[name].kernels[np.ndarray]
    return not (isinstance(kernel, partial) and kernel.func is PRIMITIVES[name].forward)


HIDDEN = [
    (name, kind)
    for name, entry in sorted(TABLE.items())
    if PRIMITIVES[name].forward is not None and is_hidden(name)
    for kind in entry.kinds()
]


def equal(found, expected, name):
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    # Both lose digits on the way, and by different ways.
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13, err_msg=name)


@pytest.mark.parametrize(("name", "kind"), HIDDEN)
def test_a_composite_is_what_the_kernel_is(name, kind):
    entry = TABLE[name]

    def check(case):
        calls = []
        with watched(lambda call: calls.append(call) if call.primitive.name == name else None):
            apply(function(name, entry), case, leaves(case))
        for call in calls:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                inputs = [x.copy() if isinstance(x, np.ndarray) else x for x in call.inputs]
                found = call.primitive.forward(XP, *inputs, **call.parameters)
            for ours, theirs in zip(
                found if call.primitive.several else (found,), call.results, strict=True
            ):
                equal(np.asarray(ours), np.asarray(theirs), repr(case))

    settings(max_examples=12 * SCALE)(given(getattr(entry, kind))(check))()
