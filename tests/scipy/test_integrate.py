"""Steps of solvers that change, and integrals of what jumps or has kinks."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import wengert as wg
from tests.scipy.compare import tensor
from wengert.scipy import integrate

P = 0.7


def test_steps_that_change_are_an_error() -> None:
    def late(p: Any) -> Any:
        total = 0.0
        for k in (1.0, 2.0):
            total += integrate.solve_ivp(lambda t, y: -k * p * y, (0, 1), [1.0]).y[0, -1]  # noqa: B023
        return total

    def bound(p: Any) -> Any:
        total = 0.0
        for k in (1.0, 2.0):
            solved = integrate.solve_ivp(
                lambda t, y, k=k: -k * p * y, (0, 1), [1.0], t_eval=[0.5, 1]
            )
            total += solved.y[0, -1]
        return total

    with pytest.raises(RuntimeError, match=r"solve_ivp: .*changed since"):
        wg.grad(late)(tensor(P))
    expected = -math.exp(-P) - 2 * math.exp(-2 * P)
    assert float(wg.grad(bound)(tensor(P))) == pytest.approx(expected, rel=1e-2)


def test_steps_that_use_another_tensor_of_equal_values_are_an_error() -> None:
    def late(p: Any) -> Any:
        total = 0.0
        for k in (p, p * 1.0):
            total += integrate.solve_ivp(lambda t, y: -k * y, (0, 1), [1.0]).y[0, -1]  # noqa: B023
        return total

    with pytest.raises(RuntimeError, match=r"solve_ivp: .*changed since"):
        wg.grad(late)(tensor(P))


def test_odeints_options() -> None:
    """A pulse that steps of any length would miss."""

    def pulse(p: Any, l: Any, **options: Any) -> Any:
        rate = lambda y, t: -p * y + 50 * np.exp(-(((t - 2.503) / 0.01) ** 2))
        return l.odeint(rate, 1.0, [0.0, 3.0], mxstep=5000, **options)[-1, 0]

    expected = [pulse(P + h, scipy.integrate, hmax=0.1) for h in (-1e-3, 1e-3)]
    found = wg.grad(lambda p: pulse(p, integrate, hmax=0.1))(tensor(P))
    assert float(found) == pytest.approx((expected[1] - expected[0]) / 2e-3, rel=1e-3)
    for options in ({"tcrit": [2.0]}, {"h0": 0.1}, {"hmin": 1e-9}):
        with pytest.raises(NotImplementedError, match="odeint: tcrit="):
            wg.grad(lambda p, options=options: pulse(p, integrate, **options))(tensor(P))
    by_place = [(), None, 0, 0, None, None, 1e-3, 1e-3]
    decay = lambda p: integrate.odeint(lambda y, t: -p * y, 1.0, [0.0, 1.0], *by_place)[-1, 0]
    assert float(wg.grad(decay)(tensor(P))) == pytest.approx(-math.exp(-P), rel=1e-2)


@pytest.mark.parametrize("times", [[0, 0.5, 0.5, 1], [0, 0, 1, 1], [1, 0.5, 0, 0]])
def test_odeint_at_times_that_come_again(times: Any) -> None:
    program = lambda p: integrate.odeint(lambda y, t: -p * y, [1.0], times, rtol=1e-9, atol=1e-9)
    found, since = wg.jacobian(program)(tensor(P)).numpy(), np.array(times) - times[0]
    assert found[:, 0] == pytest.approx(-since * np.exp(-P * since), rel=1e-6)
    tracked = tensor(times).requires_grad_()
    with pytest.raises(ValueError, match="sorted"):
        integrate.odeint(lambda y, t: -y, [1.0], tracked)


def test_ranges_without_length() -> None:
    program = lambda p: integrate.quad(lambda x: wg.sin(p * x), 1.0, p)[0]
    one = tensor(1.0)
    assert float(wg.grad(program)(one)) == pytest.approx(math.sin(1.0))
    # Of the integral of sin(p x) from 1 to p: 2 of the ends' and the function's slopes together.
    second = 2 * math.cos(1.0) + math.cos(1.0)
    assert float(wg.grad(wg.grad(program))(one)) == pytest.approx(second)
    span = lambda q: integrate.solve_ivp(lambda t, y: -P * y, (0, q), [2.0]).y[0, -1]
    assert float(wg.grad(span)(tensor(0.0))) == pytest.approx(-2 * P)


def test_kinks_and_jumps_of_integrands() -> None:
    wrong = [
        lambda x, p: wg.abs(x - p),
        lambda x, p: wg.where(x < p, wg.exp(-x * p), 0.0),
        lambda x, p: math.exp(x) + (p - 0.37) * abs(x - 0.3),  # in the derivative alone
    ]
    options = {"args": (), "epsabs": 1e-3, "epsrel": 1e-3}
    for f in wrong:
        program = lambda p, f=f: integrate.quad(lambda x: f(x, p), 0, 1, **options)[0]
        with pytest.raises(RuntimeError, match="quad: Gauss"):
            wg.grad(program)(tensor(0.37))
    with pytest.raises(RuntimeError, match="quad: Gauss"):
        wg.jvp(program, (tensor(0.37),), (tensor(1.0),))
    peak = lambda p: integrate.quad(lambda x: p * wg.exp(-(((x - p) / 0.1) ** 2)), -2, 2)[0]
    assert float(wg.grad(peak)(tensor(0.37))) == pytest.approx(0.1 * math.sqrt(math.pi))


def test_jumps_at_parameters_and_derivatives_beyond_kinks() -> None:
    """Comparisons hide parameters; between SciPy's intervals kinks hide second derivatives."""
    integral = lambda f: lambda p: integrate.quad(lambda x: f(x, p), 0, 1)[0]
    jumps = [
        lambda x, p: wg.where(x < p, 1.0, 0.0),
        lambda x, p: 1.0 if x < p else 0.0,
        lambda x, p: wg.where(x < p, x * p, x * p + 0.3),
    ]
    for f in jumps:
        for at in (0.37, 0.5, 0.25):
            with pytest.raises(RuntimeError, match="quad: Gauss"):
                wg.grad(integral(f))(tensor(at))
    harmless = integral(lambda x, p: wg.where(p > 0, 1.0, 2.0) * x)
    assert float(wg.grad(harmless)(tensor(P))) == 0.0
    kink = integral(lambda x, p: wg.abs(x - p))
    for at in (0.5, 0.25):
        assert float(wg.grad(kink)(tensor(at))) == pytest.approx(2 * at - 1, abs=1e-12)
        pushed = lambda f: lambda p: wg.jvp(f, (p,), (tensor(1.0),))[1]
        for second in (wg.grad(wg.grad(kink)), pushed(wg.grad(kink)), pushed(pushed(kink))):
            with pytest.raises(NotImplementedError, match="quad_beyond_what_is_smooth"):
                second(tensor(at))
    for at in (0.5, 0.37):  # a jump of the third derivative: the fourth one is 12
        cubic = integral(lambda x, p: wg.abs(x - p) ** 3)
        assert float(wg.grad(cubic)(tensor(at))) == pytest.approx(at**3 - (1 - at) ** 3, abs=1e-6)
        if at == 0.5:  # at an end of SciPy's intervals
            assert float(wg.grad(wg.grad(cubic))(tensor(at))) == pytest.approx(1.5)
        else:
            with pytest.raises(NotImplementedError, match="beyond_what_is_smooth"):
                wg.grad(wg.grad(cubic))(tensor(at))
    for high in (wg.grad(wg.grad(wg.grad(cubic))), pushed(pushed(pushed(cubic)))):
        with pytest.raises(NotImplementedError, match="beyond_what_is_smooth"):
            high(tensor(0.5))
    fixed = integral(lambda x, p: abs(x - 0.5) * wg.exp(p * x))
    second = float(wg.grad(wg.grad(fixed))(tensor(P)))
    number = [float(wg.grad(fixed)(tensor(P + h))) for h in (-1e-4, 1e-4)]
    assert second == pytest.approx((number[1] - number[0]) / 2e-4, rel=1e-6)


@pytest.mark.parametrize(
    ("function", "at"),
    [
        (lambda t, p: wg.where(t < p, t / p, 0.0), 0.8003277773264648),
        (lambda t, p: (t / p) % 1.0, 1.19735234970743),
        (lambda t, p: t / p - wg.floor(t / p), 1.19735234970743),
        (lambda t, p: p * wg.sign(t - p), 1 + 1e-5),
        (lambda t, p: p * wg.sign(t - p), 1e-3),
        (lambda t, p: t / p if t < p else 0.0 * p, 1 - 1e-9),
        (lambda t, p: wg.maximum(t, p) ** 2, 1.3747597893500347),
        (lambda t, p: wg.clip(t + 0 * p, 0.0, p), 1.624771000673274),
        (lambda t, p: math.sin(t) + 1e-3 * wg.where(t < p, 1.0, 0.0), 1 + 1e-6),
    ],
)
@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
def test_jumps_between_an_end_and_the_nearest_node(function: Any, at: float) -> None:
    """SciPy bisects towards a jump until its last interval has the same value at all nodes."""
    program = lambda p: integrate.quad(lambda t: function(t, p), 0, 2)[0]
    for transform in (wg.grad, wg.func.jacfwd):
        with pytest.raises(RuntimeError, match=r"quad: .*divide the range .*add two quads"):
            transform(program)(tensor(at))


@pytest.mark.parametrize(
    ("function", "at"),
    [
        (lambda t, p: wg.abs(t - p), 0.43115277557529086),
        (lambda t, p: wg.abs(t - p), 1.3959956381363454),
        (lambda t, p: wg.clip(t + 0 * p, 0.0, p), 0.2501047444670301),
        (lambda t, p: wg.maximum(t, p) ** 2, 1.6679629063),
        *((lambda t, p: wg.maximum(t - p, 0 * p) ** 2, at) for at in (1.37475979, 1.0005, 0.002)),
    ],
)
def test_kinks_between_an_end_and_the_nearest_node(function: Any, at: float) -> None:
    program = lambda p: integrate.quad(lambda t: function(t, p), 0, 2)[0]
    with pytest.raises((NotImplementedError, RuntimeError), match=r"beyond_what|quad: Gauss"):
        wg.grad(wg.grad(program))(tensor(at))


def test_columns_of_an_integral() -> None:
    """Tangents of a batch, also where a part of the integrand has none."""
    one = lambda p: integrate.quad(lambda t: wg.exp(-p * t), 0, 1)[0]
    assert float(wg.func.jacfwd(one)(tensor(P))) == pytest.approx(float(wg.grad(one)(tensor(P))))
    two = lambda p: integrate.quad(lambda t: 0.0 if t < 0.5 else (t - 0.5) * p[0] * p[1], 0, 1)[0]
    for transform in (wg.func.jacfwd, wg.func.jacrev):
        found = transform(two)(tensor([3.0, 5.0])).numpy()
        assert found == pytest.approx([5 / 8, 3 / 8])


def test_bends_that_are_no_kinks() -> None:
    """Of smooth integrands, which change much within an interval."""
    for p in (8.0, 14.0, 19.0):
        program = lambda p: integrate.quad(lambda t: wg.exp(-p * t), 0, 3)[0]
        second = float(wg.grad(wg.grad(program))(tensor(p)))
        assert second == pytest.approx(2 / p**3, rel=1e-6)


_MIXED = wg.tensor(1.0, dtype="float64", requires_grad=True)


@pytest.mark.parametrize("function", [
    lambda x: wg.sign(x - _MIXED * 0.5),  # in the middle of the only interval
    lambda x: 1e4 + wg.sign(x - _MIXED * 0.3),
    lambda x: 1e7 + wg.sign(x - _MIXED * 0.3),
    lambda x: 1e11 * _MIXED + wg.sign(x - _MIXED * 0.3),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
def test_jumps_that_symmetry_or_an_offset_hides(function: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError, match=r"quad: .*divide the range"):
        integrate.quad(lambda x: function(tensor(x)), 0.0, 1.0)


def test_offsets_are_no_jumps() -> None:
    for offset in (0.0, 1e4, 1e11):
        program = lambda p: integrate.quad(lambda x: offset + wg.sin(p * x), 0.0, 1.0)[0]  # noqa: B023
        slope = math.sin(P) / P + (math.cos(P) - 1) / P**2
        assert float(wg.grad(program)(tensor(P))) == pytest.approx(slope, rel=1e-6)


def test_simpsons_rule_at_equal_places() -> None:
    y = np.array([1.0, 2.0, 4.0, 3.0])
    for x in ([0, 1, 1, 2], [0, 1, 2, 2], [0, 0, 1, 2], [0, 1, 1, 1]):
        expected = scipy.integrate.simpson(y, x=x)
        assert float(integrate.simpson(tensor(y), x=x)) == pytest.approx(expected), x
        slopes = wg.grad(lambda y: integrate.simpson(y, x=x))(tensor(y))  # noqa: B023
        assert slopes.numpy() == pytest.approx([scipy.integrate.simpson(e, x=x) for e in np.eye(4)])
