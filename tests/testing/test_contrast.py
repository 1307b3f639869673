"""A failing check says in words where its derivative is wrong, and how: a mistake of each kind."""

import itertools
from traceback import extract_tb

import numpy as np
import pytest
from hypothesis import strategies as st

import wengert as wg
from tests.func.operations import operation
from tests.testing.functions import of_array, square
from tests.testing.settings import FIRST
from wengert.testing import Argument, Axis, GradcheckError, check_gradients, strided


def told(function, *arguments, **options):
    """What the check says of it."""
    options = {"backends": ["numpy"], "examples": 30, "order": 1, "settings": FIRST, **options}
    with pytest.raises(GradcheckError) as found:
        check_gradients(*arguments, **options)(function)()
    return str(found.value).partition("To see it again")[0]


def product(xp, x, y):
    return xp.multiply(x, y)


def slope(wrong, factor=3.0):
    """The rule of a square, with a factor too many where ``wrong`` says so."""

    def rule(xp, g, x):
        right = xp.multiply(g, xp.multiply(x, 2))
        return xp.where(
            wrong(xp, x), xp.add(xp.multiply(right, factor), xp.multiply(g, 0.7)), right
        )

    return rule


def test_where_values_are_to_blame(plant):
    for wrong, words in [
        (lambda xp, x: xp.equal(x, 0), "where:     only at 0"),
        (lambda xp, x: xp.equal(x, -2), "where:     only at -2"),
        (lambda xp, x: xp.less(x, 0), "where:     only for negative values"),
        (lambda xp, x: xp.greater(x, 0), "where:     only for positive values"),
        (lambda xp, x: xp.greater(xp.abs(x), 1.1), "only for large values: at a quarter"),
    ]:
        text = told(plant(square, x=slope(wrong)), ("n",))
        assert words in text
        assert text.count("where:") == 1
    large = slope(lambda xp, x: xp.greater(xp.abs(x), 1.1))  # the first element is not the largest
    text = told(plant(square, x=large), (3,))
    assert "only for large values" in text and "longer than 1" not in text


@pytest.mark.slow
def test_where_a_function_without_a_forward_derivative_is_wrong():
    for wrong, words in [
        (lambda x: x == 0, "only at 0"),
        (lambda x: x.ndim == 0, "only for 0-d arrays"),
        (lambda x: x.ndim > 1, "only for two axes or more"),
        (lambda x: 1 in x.shape, "only where an axis has length 1"),
    ]:

        def rule(x, g, wrong=wrong):
            return wg.where(wg.asarray(wrong(x)), 3 * g * x + 0.7 * g, 2 * g * x)

        text = told(of_array(wg.square, rule), ...)
        assert f"where:     {words}" in text
        assert text.count("where:") == 1


def test_of_what_is_not_deterministic_no_place_is_told():
    """The neighbours would be right or wrong by chance."""
    count = itertools.count(1)

    fickle = of_array(wg.square, lambda x, g: 2 * g * x * (1 if next(count) % 5 else 2))
    text = told(fickle, ("n",), order=2)
    assert "where:" not in text or "not deterministic" not in text


def test_where_two_inputs_are_the_same(plant):
    def rule(xp, g, x, y):
        return xp.where(xp.equal(x, y), xp.multiply(g, 5), xp.multiply(g, y))

    wrong = plant(product, linear="each", x=rule, y=lambda xp, g, x: xp.multiply(g, x))
    assert "only where inputs[0] and inputs[1] are the same" in told(wrong, (1,), (1,))


def test_where_broadcasting_is_to_blame(plant):
    for measure, arguments, words in [
        (tuple, (("n", 1), ("n", 2)), "only where an axis of length 1 is stretched"),
        (len, ((2,), ("n", 2)), "only where an array has fewer axes than another"),
        (tuple, ((2,), ("n", 2)), "only under broadcasting"),
    ]:

        def rule(xp, g, x, y):
            alike = measure(x.shape) == measure(g.shape)  # noqa: B023
            return xp.multiply(g, xp.multiply(y, 1 if alike else 2))

        wrong = plant(product, linear="each", x=rule, y=lambda xp, g, x: xp.multiply(g, x))
        text = told(wrong, *arguments, min_side=2)
        assert words in text
        assert "looks:     off by a factor of 2\n" in text
        assert "only in reverse mode: forward mode is right" in text


def total(plant, wrong):
    """A sum along an axis whose rule has a factor too many where ``wrong`` says so."""

    def rule(xp, g, x_shape, axis):
        spread = xp.broadcast_to(xp.expand_dims(g, axis=axis), x_shape)
        return xp.multiply(spread, 2 if wrong(axis) else 1)

    made = plant(lambda xp, x, *, axis: xp.sum(x, axis=axis), linear="together", x=rule)
    return lambda x, axis: made(x, axis=axis)


@pytest.mark.slow
def test_where_an_axis_is_to_blame(plant):
    shape, axis = ("n", "m"), Axis(0)
    assert "only for a negative axis" in told(total(plant, lambda a: a < 0), shape, axis)
    assert "only along axis 0" in told(total(plant, lambda a: a % 2 == 0), shape, axis)
    assert "only along the last axis" in told(total(plant, lambda a: a % 2 == 1), shape, axis)


def test_where_a_flag_is_to_blame(plant):
    single = total(plant, lambda axis: True)

    def wrong(x, flag):
        return single(x, 0) if flag else wg.sum(x, axis=0)

    assert "only where an argument is True" in told(wrong, ("n",), st.booleans())


@pytest.mark.slow
def test_where_complex_numbers_are_to_blame(plant):
    wrong = plant(lambda xp, x: xp.conj(x), x=lambda xp, g: g)
    assert "only for complex inputs" in told(wrong, ..., dtypes=("float64", "complex128"))


@pytest.mark.slow
def test_where_memory_is_to_blame(plant):
    def rule(xp, g, x):
        strange = isinstance(x, np.ndarray) and not x.flags.c_contiguous
        return xp.multiply(xp.multiply(g, x), 6 if strange else 2)

    wrong = plant(square, x=rule)
    options = {"backends": ["numpy"], "examples": 30, "order": 1}
    with pytest.raises(GradcheckError, match="only where an array's elements are not contig") as e:
        check_gradients(wrong, ("n",), **options)
    assert "inputs = wg.testing.strided(inputs)" in str(e.value)
    x = wg.tensor([1.0, 2.0], dtype=wg.float64, requires_grad=True)
    assert wg.testing.gradcheck(wrong, x)
    with pytest.raises(GradcheckError):
        wg.testing.gradcheck(wrong, strided([x]))


@pytest.mark.slow
def test_which_order_and_mode_is_to_blame(plant):
    doubled = of_array(lambda x: x * x * x, lambda x, g: 3 * g * x * x.detach())
    text = told(doubled, ("n",), order=2, forward=False)
    assert "only in the second derivative: the first is right" in text
    assert "order:     second derivative" in text

    # Its forward derivative is right, and its gradient is not.
    tripled = of_array(wg.square, lambda x, g: 3 * g * x, lambda x, t: 2 * t * x)
    words = "only in reverse mode: forward mode is right"
    assert words in told(tripled, ("n",))
    assert words not in told(tripled, ("n",), forward=False)  # it is not to be looked at
    wrong = plant(square, linear="together", x=lambda xp, g, x: xp.multiply(xp.multiply(g, x), 2))
    assert "only in forward mode: reverse mode is right" in told(wrong, ("n",))


def test_a_gradient_that_is_another_when_it_is_recorded(plant):
    def rule(xp, g, x):
        right = xp.multiply(xp.multiply(g, x), 2)
        return xp.add(right, xp.multiply(g, 0.25)) if xp.records else right

    wrong = plant(square, x=rule)
    text = told(wrong, ("n",), order=2)
    assert "the gradient with create_graph=True differs from the one without" in text


def test_a_library_is_to_blame():
    of_library = lambda ctx, g: g * (3.0 if g.backend.name == "numpy" else 1.0)
    wrong = operation(lambda ctx, x: x * 1.0, of_library)
    assert "only on numpy: on array_api_strict it is right" in told(wrong, ("n",))


# -- shapes and tracebacks -------------------------------------------------------------------------


def test_an_empty_array_does_not_hide_the_reason():
    def wrong(x):
        return wg.max(x) * x.detach()  # no maximum of nothing

    text = told(wrong, ("n",))
    assert "numerical" in text
    assert "wg.zeros((0" not in text


@pytest.mark.slow
def test_what_is_wrong_for_empty_arrays_alone_is_told_so():
    with pytest.raises(ValueError, match=r"maximum|zero-size|empty") as caught:
        check_gradients(wg.max, ("n",), backends=["numpy"], examples=30)
    assert any("min_side=1 leaves empty ones out" in note for note in caught.value.__notes__)
    check_gradients(wg.max, Argument(("n",), unique=True), backends=["numpy"], min_side=1)


@pytest.mark.slow
def test_tracebacks_show_the_users_lines():
    def raising(x):
        raise RuntimeError("mine")

    def wrong(x):
        return x * x.detach()

    x = wg.tensor(1.0, dtype=wg.float64, requires_grad=True)
    options = {"backends": ["numpy"], "examples": 3, "order": 1}
    for call in (
        lambda function: wg.testing.gradcheck(function, x),
        lambda function: check_gradients(function, ..., **options),
        lambda function: check_gradients(..., **options)(function)(),
    ):
        for function, kind in ((wrong, GradcheckError), (raising, RuntimeError)):
            with pytest.raises(kind) as caught:
                call(function)
            files = [frame.filename for frame in extract_tb(caught.value.__traceback__)]
            assert not any("hypothesis" in name for name in files)
            others = [name for name in files if name != __file__]
            assert len(others) <= 2, others  # the function that was called, and its test
            assert (files[-1] == __file__) == (kind is RuntimeError)
