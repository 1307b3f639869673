"""At kinks and ties wrong rules are caught and right ones are not called wrong, in every mode."""

import itertools

import numpy as np
import pytest

import wengert as wg
from wengert.testing import (
    BadlyScaledError,
    KinkError,
    WrongGradientError,
    gradcheck,
    gradgradcheck,
)

MODES = {
    "reverse": {},
    "reverse, fast": {"fast_mode": True},
    "forward": {"check_forward_ad": True, "check_backward_ad": False},
    "forward, fast": {"check_forward_ad": True, "check_backward_ad": False, "fast_mode": True},
}
GENERIC = ([0.3, -1.2, 0.8], [0.31, -1.2, 0.8, 1.5], [0.5, 0.5 + 1e-5, 0.2], [0.5, 0.5 + 1e-8, 0.2])
TIED = ([0.0] * 2, [0.0] * 3, [1.0] * 4, [1.0, 1.0, -0.5], [1.0, 2.0, 2.0, 1.0, 2.0])


class Operation(wg.autograd.Function):
    """A function of NumPy's with a Jacobian written by hand, as one operation."""

    @staticmethod
    def forward(ctx, x, function, jacobian):
        array = x.detach().numpy()
        ctx.jacobian = np.asarray(jacobian(array))
        return wg.tensor(np.asarray(function(array)))

    @staticmethod
    def backward(ctx, g):
        return wg.tensor(np.tensordot(g.numpy(), ctx.jacobian, g.ndim)), None, None

    @staticmethod
    def jvp(ctx, t, _function, _jacobian):
        return wg.tensor(np.tensordot(ctx.jacobian, t.numpy(), t.ndim))


def verdict(function, point, check=gradcheck, **options):
    """The error of a check; None if it passes."""
    x = wg.tensor(np.array(point), requires_grad=True)
    try:
        with np.errstate(all="ignore"):
            check(function, x, **options)
    except (WrongGradientError, KinkError, BadlyScaledError) as error:
        return type(error)
    return None


def modes(at):
    """Two modes, so that of two names after one another each mode has one."""
    return [[*MODES.values()][k] for k in ((0, 3) if at % 2 else (1, 2))]


def right_at_generic_points(function, jacobian, options):
    """The operation with this Jacobian, which is right where no numbers are equal."""
    rule = lambda x: Operation.apply(x, function, jacobian)
    assert [verdict(rule, point, **options) for point in GENERIC] == [None] * len(GENERIC)
    return rule


def unit(x, i):
    return np.eye(x.size)[i]


def of_max(x):
    return (x == x.max()) * 1.0


def middle(x):
    order = np.argsort(x, kind="stable")
    return (unit(x, order[(x.size - 1) // 2]) + unit(x, order[x.size // 2])) / 2


def halves(x):
    count = len(x) // 2
    return x[:count], x[count : 2 * count]


def both(x):
    """The rule of a maximum of pairs that hands the cotangent to both of two equal numbers."""
    (left, right), (first, second) = halves(x), halves(np.eye(x.size))
    return (left >= right)[:, None] * first + (right >= left)[:, None] * second


RIGHT = {
    "maximum, shared": (np.max, lambda x: of_max(x) / of_max(x).sum()),
    "maximum, first": (np.max, lambda x: unit(x, x.argmax())),
    "median": (np.median, middle),
    "sort": (np.sort, lambda x: np.eye(x.size)[np.argsort(x, kind="stable")]),
    "absolute values": (abs, lambda x: np.diag(np.where(x < 0, -1.0, 1.0))),
    "norm": (np.linalg.norm, lambda x: x / (np.linalg.norm(x) or 1)),
    "largest absolute value": (
        lambda x: np.max(abs(x)),
        lambda x: np.sign(x) * of_max(abs(x)) / of_max(abs(x)).sum(),
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_rule_is_nowhere_called_wrong(name):
    for options in modes([*RIGHT].index(name)):
        rule = right_at_generic_points(*RIGHT[name], options)
        for point in (*TIED, [0.0] * 7):
            assert verdict(rule, point, **options) in (None, KinkError)


#: A function with a rule that is wrong, and the points at which it is.
WRONG_AT_TIES = {
    "maximum, times the count": (np.max, of_max),
    "maximum, none": (np.max, lambda x: of_max(x) * (of_max(x).sum() == 1)),
    "maximum, half of the first": (
        np.max,
        lambda x: unit(x, x.argmax()) / (1 + (of_max(x).sum() > 1)),
    ),
    "median, none": (np.median, lambda x: middle(x) * (np.unique(x).size == x.size)),
    "sort, all that are equal": (np.sort, lambda x: (x == np.sort(x)[:, None]) * 1.0),
    "largest absolute value, times the count": (
        lambda x: np.max(abs(x)),
        lambda x: np.sign(x) * of_max(abs(x)),
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", WRONG_AT_TIES)
def test_a_rule_that_is_wrong_at_ties_alone_is_caught_there(name):
    for options in modes([*WRONG_AT_TIES].index(name)):
        rule = right_at_generic_points(*WRONG_AT_TIES[name], options)
        for point in TIED:
            if "absolute" not in name or any(point):  # at 0 it is a mean of the slopes close by
                assert verdict(rule, point, **options) is WrongGradientError, point


def test_a_rule_that_gives_both_of_two_equal_numbers_all_is_caught():
    rule = lambda x: Operation.apply(x, lambda x: np.maximum(*halves(x)), both)
    assert verdict(rule, GENERIC[0]) is None
    for point in ([0.0] * 2, [1.0] * 4, [1.0, 1.0, -0.5]):
        assert verdict(rule, point) is WrongGradientError
    # Of two inputs, too, which no direction in one of them shows.
    x, y = (wg.tensor([0.0], dtype=wg.float64, requires_grad=True) for _ in range(2))
    with pytest.raises(WrongGradientError, match="the entries of the row are wrong together"):
        gradcheck(lambda x, y: rule(wg.concat([x, y])), (x, y))


WRONG_ANYWHERE = {
    "twice the maximum": (np.max, lambda x: 2 * unit(x, x.argmax())),
    "the minimum's": (np.max, lambda x: unit(x, x.argmin())),
    "a sign": (np.median, lambda x: -middle(x)),
    "a hundredth": (np.sort, lambda x: 1.01 * np.eye(x.size)[np.argsort(x, kind="stable")]),
    "a norm's square": (np.linalg.norm, lambda x: x),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", WRONG_ANYWHERE)
def test_a_wrong_rule_is_caught_at_every_generic_point(name):
    rule = lambda x: Operation.apply(x, *WRONG_ANYWHERE[name])
    for options, point in itertools.product(modes([*WRONG_ANYWHERE].index(name)), GENERIC):
        assert verdict(rule, point, **options) is WrongGradientError, point


def test_the_search_for_a_slope_moves_the_inputs_of_the_direction_alone():
    """Where most moves of the others leave the domain."""
    edge = lambda y: np.sqrt(abs(y).max() - abs(y).sum())  # 0 where one number moves
    x, y = (wg.zeros(n, dtype=wg.float64).requires_grad_() for n in (3, 12))

    def function(x, y):
        return Operation.apply(x, np.median, middle) + Operation.apply(y, edge, np.zeros_like)

    with np.errstate(invalid="ignore"), pytest.raises(KinkError, match="derivatives close by diff"):
        gradcheck(function, (x, y))


#: Rules that are right, where several operations choose between equal numbers each in its way.
SEVERAL = {
    "maximum and minimum": lambda x: 2 * wg.sort(x)[0] + wg.max(x),
    "a sum that is smooth": lambda x: wg.sort(x) + wg.max(x),
    "products": lambda x: wg.quantile(x, 0.5) + wg.max(x) * wg.min(x),
    "gathered": lambda x: wg.take_along_axis(x, wg.argsort(x), axis=-1) + wg.max(x),
    "a range": lambda x: wg.max(x) - wg.sort(x)[0],
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", SEVERAL)
def test_operations_that_have_kinks_at_once_are_not_called_wrong(name):
    points = [[0.0] * 2, [1.0] * 4, [1.0, 1.0, -0.5]]
    for point, check in itertools.product(points, (gradcheck, gradgradcheck)):
        found = verdict(SEVERAL[name], point, check, fast_mode=True)
        assert found in (None, KinkError), (point, check)


def test_kinks_of_several_operations_are_no_excuse_elsewhere():
    wrong = lambda x: Operation.apply(x, np.sin, lambda x: np.diag(1.01 * np.cos(x)))
    for point in GENERIC:
        found = verdict(lambda x: wrong(x) + wg.abs(wg.max(x) - wg.min(x)), point)
        assert found is WrongGradientError
    x = wg.tensor(GENERIC[0], dtype=wg.float64, requires_grad=True)
    y = wg.zeros(3, dtype=wg.float64).requires_grad_()
    with pytest.raises(WrongGradientError):
        gradcheck(lambda x, y: wrong(x) + wg.abs(wg.sort(y)) + wg.max(y), (x, y))


def test_a_kink_of_another_number_is_no_excuse():
    twice = lambda x: Operation.apply(x, np.positive, lambda x: np.diag(0 * x + 2))
    for function in (wg.nn.functional.relu, wg.abs, lambda x: wg.abs(x) + wg.sin(x)):
        for options in MODES.values():
            assert verdict(lambda x, f=function: twice(f(x)), [0.0, 1.0, 2.0], **options) is (
                WrongGradientError
            )
        assert verdict(function, [0.0, 1.0, 2.0]) in (None, KinkError)
    # A kink of the median shows along no axis, and several operations have one in this result.
    median = lambda x: wg.quantile(wg.maximum(x, wg.flip(x)), 0.5) + 0 * x
    assert verdict(median, [1.0] * 3) is KinkError


def test_single_precision_inside_is_told():
    """Its noise is neither a kink nor a wrong rule."""

    def rounded(x):
        return wg.astype(wg.sin(wg.astype(x, wg.float32)) * 2, wg.float64)

    for point, fast in itertools.product(GENERIC, (False, True)):
        assert verdict(rounded, point, fast_mode=fast) is BadlyScaledError
    with pytest.raises(BadlyScaledError, match="as by a part in single precision"):
        gradcheck(rounded, wg.tensor(GENERIC[0], dtype=wg.float64, requires_grad=True))


def test_a_kink_that_is_closer_than_the_differences_reach():
    function = lambda x: wg.quantile(x, 0.5) * wg.quantile(x, 0.3)
    point = [1e-3, 0.0, -1e-3, 1e-7]
    assert verdict(function, point, gradgradcheck) in (None, KinkError)


STAIRCASES = {
    "floor": wg.floor,
    "trunc": wg.trunc,
    "floor_divide": lambda x: x // 1.0,
    "quarters": lambda x: wg.round(4 * x) / 4,
    "beside a slope": lambda x: x - wg.ceil(x),
}


@pytest.mark.parametrize("name", STAIRCASES)
def test_steps_that_are_closer_than_the_differences_reach(name):
    """They have the mean slope 1, and the right derivative is 0."""
    for at, point in enumerate(([8.71e9, -3.61e9], [1e6], [1e10], [123456.7], [1e8 + 0.5])):
        for options in modes(at):
            found = verdict(STAIRCASES[name], point, **options)
            assert found in (KinkError, BadlyScaledError), point


def test_entries_at_close_steps_are_not_wrong_together():
    point = [-0.941167253806946, -0.8453378024369931, 0.4075693088941364]
    for size, options in itertools.product((1, 1e-9, 1e-12), MODES.values()):
        found = verdict(lambda x, c=size: c * (x + wg.round(x * 1e8) / 1e8), point, **options)
        assert found is (KinkError if size == 1 else None)
    x = wg.tensor([-1.7e9, 7.05e9], dtype=wg.float64, requires_grad=True)
    y = wg.tensor([2.0332815729997478, 1.1165631459994954], dtype=wg.float64, requires_grad=True)
    with pytest.raises(KinkError):
        gradcheck(wg.remainder, (x, y))


def test_steps_are_no_excuse_for_another_rule():
    for function, rule in (
        (lambda x: 2 * x, lambda x: np.diag(0 * x)),
        (lambda x: x * x, lambda x: np.diag(0 * x + 1e-4)),
    ):
        for point in ([8.71e9], [1e6 + 0.3], [1e3 + 0.3]):
            wrong = lambda x, f=function, r=rule: Operation.apply(x, f, r)
            assert verdict(wrong, point) is WrongGradientError
    wrong = lambda x: Operation.apply(x, np.square, lambda x: np.diag(0 * x + 1e-4))
    assert verdict(wrong, [0.0]) is WrongGradientError  # the slope of one side at one step


def test_rounding_inside_is_told():
    """It makes a staircase of values, whose slope the rule does not follow."""
    back = lambda x: wg.special.logit(wg.special.expit(x))
    for point in ([33.0], [33.12, 8.0, 13.76], [30.0], [36.0]):
        for options in MODES.values():
            assert verdict(back, point, **options) is BadlyScaledError
    assert verdict(back, [3.0]) is None
