"""Where functions are smooth, as their rows say: the points left out are those, and no others."""

import itertools

import numpy as np
import pytest

import wengert as wg
from tests.ops.cases import PUBLIC
from tests.ops.domains import distance, points
from wengert.ops.domain import EVERYWHERE, Domain, Joint
from wengert.tape.primitive import PRIMITIVES

#: Functions of one array, and where rows say that they are not smooth.
ROWS = [
    pytest.param(function, domain, id=name)
    for name, function in PUBLIC.items()
    if PRIMITIVES[name].inputs == ("x",) and PRIMITIVES[name].rules
    for domain in (PRIMITIVES[name].domain or {"x": EVERYWHERE}).values()
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
    return slope < 20 * max(abs(left[1]), 10)


@pytest.mark.whole
@pytest.mark.parametrize(("function", "domain"), ROWS)
def test_points_that_are_left_out(function, domain: Domain) -> None:
    for point in points(domain, -4, 4):
        if function is wg.trunc and point == 0:
            continue  # it jumps at all integers but this one, which its row leaves out as well
        assert not smooth_at(function, point), point


@pytest.mark.parametrize(("function", "domain"), ROWS)
def test_all_others_are_smooth(function, domain: Domain) -> None:
    grid = np.arange(-4, 4, 1 / 8) + 0.01
    for x in grid[distance(domain, grid) > 2 * STEPS[0]]:
        assert smooth_at(function, x) or distance(domain, x) < 0.1, x
    assert all(smooth_at(function, x) for x in (0.5, 1, 2) if distance(domain, x) > 0.1)


#: Functions of two arrays, and where rows say that they are smooth as functions of both.
PAIRS = {
    name: row.domain
    for name, row in PRIMITIVES.items()
    if name in PUBLIC and any(isinstance(domain, Joint) for domain in row.domain.values())
}


def joint_distance(name, *point):
    given = dict(zip(PRIMITIVES[name].inputs, point, strict=True))
    return min(
        float(distance(domain, *[np.asarray(given[one]) for one in names.split()]))
        for names, domain in PAIRS[name].items()
    )


def along_a_line(name, point, step):
    """The value and the slope at a distance from a point, in a direction that suits none."""
    t = wg.asarray(step, dtype=wg.float64, requires_grad=True)
    with np.errstate(all="ignore"):
        out = PUBLIC[name](point[0] + 0.6 * t, point[1] - 0.8 * t)
        out.backward()
    return float(out.detach()), float(t.grad)


@pytest.mark.parametrize("name", PAIRS)
def test_domains_of_two_inputs_together(name) -> None:
    grid = np.arange(-3, 3.01, 0.25)
    left_out = []
    for point in itertools.product(grid, grid):
        away = joint_distance(name, *point)
        if 0 < away < 0.1:
            continue
        (left, before), (right, after) = (along_a_line(name, point, s) for s in (-1e-6, 1e-6))
        smooth = abs(left - right) < 1e-4 and abs(before - after) < 1e-3
        assert smooth or not away, point
        if not away:
            left_out.append(smooth)
    # Quotients are constant on a line through the origin.
    assert left_out.count(True) <= 1 <= left_out.count(False)


def test_entire_functions_are_smooth_in_the_plane() -> None:
    for name in ("exp", "expm1", "sin", "cos", "sinh", "cosh", "square"):
        assert PRIMITIVES[name].domain["x"].plane, name
    assert not PRIMITIVES["log"].domain["x"].plane
