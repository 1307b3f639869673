"""Rows for the linear algebra functions of the standard."""

from hypothesis import strategies as st

from tests.ops.cases import Case, both, drawn
from wengert.testing import strategies as ws


def mixed(draw, kind):
    """The kinds of two operands of which one at least is of a kind."""
    other = draw(st.sampled_from(["real", kind]))
    return draw(st.permutations([kind, other]))


SIDE = st.integers(0, 3)


@st.composite
def matrix_products(draw, kind):
    m, k, n = draw(SIDE), draw(SIDE), draw(SIDE)
    stacks = draw(ws.broadcastable(2, max_dims=1))
    first = (k,) if draw(st.integers(0, 3)) == 3 else (*stacks[0], m, k)
    second = (k,) if draw(st.integers(0, 3)) == 3 else (*stacks[1], k, n)
    kinds = mixed(draw, kind)
    return Case(drawn(draw, kinds[0], first), drawn(draw, kinds[1], second))


@st.composite
def transposes(draw, kind):
    return Case(drawn(draw, kind, ws.shapes(min_dims=2)))


@st.composite
def tensor_products(draw, kind):
    count = draw(st.integers(0, 2))
    common = draw(st.lists(SIDE, min_size=count, max_size=count))
    free = draw(st.lists(SIDE, max_size=1)), draw(st.lists(SIDE, max_size=1))
    kinds = mixed(draw, kind)
    if draw(st.booleans()):
        shapes = (*free[0], *common), (*common, *free[1])
        axes = count
    else:
        shapes, axes = [], []
        for more in free:
            sides = draw(
                st.permutations(
                    [*((i, n) for i, n in enumerate(common)), *((None, n) for n in more)]
                )
            )
            shape = tuple(n for _, n in sides)
            where = {i: at for at, (i, _) in enumerate(sides)}
            shapes.append(shape)
            axes.append(
                tuple(where[i] - (len(shape) if draw(st.booleans()) else 0) for i in range(count))
            )
        axes = tuple(axes)
    if not count and axes != 0:
        axes = 0
    return Case(drawn(draw, kinds[0], shapes[0]), drawn(draw, kinds[1], shapes[1]), axes=axes)


@st.composite
def vector_products(draw, kind):
    stacks = draw(ws.broadcastable(2, max_dims=2))
    n = draw(SIDE)
    kinds = mixed(draw, kind)
    ndim = max(map(len, stacks))
    # Equal numbers of axes, for the axis to mean the same in both; else it is the last one.
    axis = -1
    shapes = [(*stack, n) for stack in stacks]
    if len(stacks[0]) == len(stacks[1]) and draw(st.booleans()):
        axis = draw(st.integers(-ndim - 1, -1))
        at = ndim + 1 + axis
        shapes = [(*stack[:at], n, *stack[at:]) for stack in stacks]
    first, second = (drawn(draw, k, shape) for k, shape in zip(kinds, shapes, strict=True))
    return (
        Case(first, second, axis=axis) if draw(st.booleans()) or axis != -1 else Case(first, second)
    )


LINEAR_ALGEBRA = {
    "matmul": both(matrix_products),
    "matrix_transpose": both(transposes),
    "tensordot": both(tensor_products),
    "vecdot": both(vector_products),
}
