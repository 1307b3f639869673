"""Second derivatives at singular points: a finite one is that of some side, or none is wrong.

The functions are all elementwise primitives of one or two real numbers, and the points are those
at which formulae break.
"""

import importlib
import itertools

import numpy as np
import pytest

import wengert as wg
from wengert.tape.primitive import PRIMITIVES

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

PLACES = [0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -2.0, np.inf, -np.inf]
importlib.import_module("wengert.nn")  # whose rows are taken as well
for each in wg.special.__all__:  # whose modules are imported when they are asked for
    getattr(wg.special, each)
#: Elementwise functions of one or two numbers, with derivatives.
NAMES = sorted(
    name
    for name, row in PRIMITIVES.items()
    if row.elementwise and row.rules and len(row.inputs) <= 2 and not row.variadic
    if name not in ("sharp", "slope_of_pow", "binary_cross_entropy")  # which raises outside [0, 1]
)
#: The mean of the sides' second derivatives, which differ: the slope is continuous, with a kink.
KINKS = {"i1e"}

#: At x = 0 these are 0 by convention also outside the logarithm's domain, which is left of this.
OUTSIDE = {"xlogy": 0.0, "xlog1py": -1.0}


def second(function, xs, forward):
    """The derivatives of x-derivatives of each element by all its arguments."""
    xs = [wg.asarray(x) for x in xs]
    found = []
    for i in range(len(xs)):
        for j in range(len(xs)):
            ones = [wg.full_like(x, float(k == i)) for k, x in enumerate(xs)]
            others = [wg.full_like(x, float(k == j)) for k, x in enumerate(xs)]
            if forward:

                def slope(*at, ones=ones):
                    return wg.func.jvp(function, at, tuple(ones))[1]

                found.append(wg.func.jvp(slope, tuple(xs), tuple(others))[1])
            else:

                def slope(*at, i=i):
                    return wg.grad(lambda *xs: wg.sum(function(*xs)), argnums=i)(*at)

                found.append(wg.grad(lambda *at, f=slope: wg.sum(f(*at)), argnums=j)(*xs))
    return np.stack([np.asarray(x.numpy()) for x in found])


def beside(xs, step, seed):
    random = np.random.default_rng(seed)
    signs = [s for s in itertools.product((1, -1, 0), repeat=len(xs)) if any(s)]
    sign = signs[seed % len(signs)]
    moved = []
    for x, s in zip(xs, sign, strict=True):
        v = s * random.uniform(0.3, 1, x.shape)
        moved.append(np.where(np.isinf(x), np.sign(x) / step + v, x + step * v))
    return moved


@pytest.mark.slow
@pytest.mark.parametrize("forward", [False, True], ids=["reverse", "forward"])
@pytest.mark.parametrize("name", NAMES)
def test_finite_second_derivatives_are_those_of_a_neighbourhood(name, forward) -> None:
    row = PRIMITIVES[name]
    points = np.array([*itertools.product(PLACES, repeat=len(row.inputs))]).T
    xs = list(points)
    with wg.use_backend("numpy"):
        try:
            found = second(row.bind, xs, forward)
        except (TypeError, NotImplementedError):
            pytest.skip("of integers, complex numbers, or without a derivative")
        right, known = np.zeros(found.shape, bool), np.zeros(found.shape, bool)
        for seed in range(8):
            near, nearer = (second(row.bind, beside(xs, h, seed), forward) for h in (1e-3, 1e-5))
            usable = np.isfinite(near) & np.isfinite(nearer)
            # Along one argument alone there may be a derivative twice by that.
            if 0 in beside([np.zeros(1)] * len(xs), 1.0, seed):
                usable &= np.eye(len(xs), dtype=bool).reshape(-1, 1)
            off, less = abs(near - found), abs(nearer - found)
            right |= usable & ((less <= 1e-3 * (1 + abs(found))) | (less <= off / 2))
            known |= usable
    wrong = np.isfinite(found) & known & ~right
    if name in OUTSIDE:
        wrong &= xs[1] >= OUTSIDE[name]
    if name in KINKS:
        wrong &= found != 0
    assert not wrong.any(), [(points[:, k], found[i, k]) for i, k in np.argwhere(wrong)]
