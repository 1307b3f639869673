"""Operations with several results, whose rules use results and cotangents that may be absent."""

import numpy as np

import wengert as wg
from wengert.tape.primitive import PRIMITIVES, Primitive


class Powers(wg.autograd.Function):
    """Square and cube, differentiated by what was returned."""

    @staticmethod
    def forward(ctx, x):
        square, cube = x * x, x * x * x
        ctx.save_for_backward(x, square)
        return square, cube

    @staticmethod
    def backward(ctx, g_square, g_cube):
        x, square = ctx.saved_tensors
        return g_square * 2 * x + g_cube * 3 * square


def test_a_saved_result_adds_to_the_cotangent_of_the_result() -> None:
    x = wg.asarray(3.0, dtype=wg.float64).requires_grad_()
    square, cube = Powers.apply(x)
    (first,) = wg.autograd.grad(cube, x, create_graph=True)
    # x^2 comes in as a result and, by the rule, as what was saved of it.
    (second,) = wg.autograd.grad(square * first, x)
    assert first.item() == 27
    assert second.item() == 4 * 3 * 3**3  # of 3 x^4


def test_rules_may_be_told_which_cotangents_are_absent() -> None:
    seen = []

    def rule(xp, g, x):
        seen.append([one is None for one in g])
        return sum(xp.multiply(one, k + 1.0) for k, one in enumerate(g) if one is not None)

    name = "two_multiples"
    primitive = Primitive(
        name,
        ["x"],
        {"x": rule},
        linear="together",
        composite=lambda xp, x: (x, xp.multiply(x, 2.0)),
        several=True,
    )
    try:
        x = wg.asarray([1.0, 2.0], dtype=wg.float64).requires_grad_()
        once, twice = primitive.bind(x)
        (g,) = wg.autograd.grad(twice, x, wg.ones_like(twice), retain_graph=True)
        np.testing.assert_array_equal(g.numpy(), [2, 2])
        wg.sum(once + twice).backward()
        np.testing.assert_array_equal(x.grad.numpy(), [3, 3])
        assert seen == [[True, False], [False, False]]
    finally:
        del PRIMITIVES[name]
