"""Where functions are smooth, as their rows say: the points left out are those, and no others."""

import numpy as np
import pytest

import wengert as wg
from tests.ops.cases import PUBLIC
from wengert.tape.domain import EVERYWHERE, Domain
from wengert.tape.primitive import PRIMITIVES

#: Functions of one array, and where rows say that they are not smooth.
ROWS = [
    pytest.param(function, domain, id=name)
    for name, function in PUBLIC.items()
    if PRIMITIVES[name].inputs == ("x",) and PRIMITIVES[name].rules
    for domain in PRIMITIVES[name].domain.values()
]
#: From a point to either side, in steps that are no multiples of one another.
STEPS = (1e-3, 1.1e-4, 1.3e-5)


def slope_and_value(function, x):
    x = wg.asarray(x, dtype=wg.float64, requires_grad=True)
    with np.errstate(all="ignore"):
        out = function(x)
        wg.sum(out).backward()
    return float(x.grad.numpy()), float(out.detach().numpy())


def smooth_at(function, point):
    """Whether values and slopes on both sides of a point come to agree."""
    for step in STEPS:
        left, right = (slope_and_value(function, point + s) for s in (-step, step))
        if not np.all(np.isfinite([left, right])):
            return False
        slope = max(abs(left[0]), abs(right[0]), 1)
        if abs(left[1] - right[1]) > 3 * slope * step or abs(left[0] - right[0]) > 0.5 * slope:
            return False
    return slope < 200


@pytest.mark.parametrize(("function", "domain"), ROWS)
def test_points_that_are_left_out(function, domain: Domain) -> None:
    for point in domain.points(-4, 4):
        if function is wg.trunc and point == 0:
            continue  # it jumps at all integers but this one, which its row leaves out as well
        assert not smooth_at(function, point), point


@pytest.mark.parametrize(("function", "domain"), ROWS)
def test_all_others_are_smooth(function, domain: Domain) -> None:
    grid = np.arange(-4, 4, 1 / 8) + 0.01
    for x in grid[domain.distance(grid) > 2 * STEPS[0]]:
        assert smooth_at(function, x) or domain.distance(x) < 0.1, x
    assert all(smooth_at(function, x) for x in (0.5, 1, 2) if domain.distance(x) > 0.1)


def test_distances_and_points() -> None:
    poles = Domain(without=(0,), period=-1)
    assert poles.points(-2.5, 2) == [-2, -1, 0]
    np.testing.assert_allclose(poles.distance([-1.75, -0.25, 0, 3]), [0.25, 0.25, 0, 3])
    unit = Domain(0, 1, without=(0.5,))
    np.testing.assert_allclose(unit.distance([-1, 0.125, 0.75, 2]), [-1, 0.125, 0.25, -1])
    assert unit.points(-1, 3) == [0, 0.5, 1]
    assert EVERYWHERE.distance(1e300) == np.inf
    assert str(poles) == "all but 0 - 1 k"
