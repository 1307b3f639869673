"""Roots, minima, fits, ODEs and integrals: derivatives are those of formulae; refusals."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.scipy.compare import tensor
from wengert.compiler import CompileError
from wengert.ops.operators import GIVEN
from wengert.scipy import integrate, optimize, special


@pytest.mark.parametrize("method", [None, "BFGS", "Nelder-Mead", "trust-exact", "SLSQP"])
def test_minima_by_the_tapes_gradients(method: Any) -> None:
    """At the minimum of a parabola, which is known."""

    def best(p: Any) -> Any:
        return optimize.minimize(
            lambda x: wg.sum((x - p) ** 2) + wg.sum(x) ** 2,
            tensor([0.0, 0.0]),
            method=method,
            tol=1e-12,
        ).x

    expected = np.linalg.inv(np.eye(2) + np.ones((2, 2)))
    assert wg.jacobian(best)(tensor([1.0, 2.0])).numpy() == pytest.approx(expected)


def test_derivatives_of_any_order() -> None:
    root = lambda p: optimize.brentq(lambda x: x**3 - p, 0.0, 5.0, xtol=1e-14)
    third = wg.grad(wg.grad(wg.grad(root)))
    assert float(third(tensor(8.0))) == pytest.approx(10 / 27 * 8 ** (-8 / 3))
    mixed = wg.grad(lambda q: wg.jvp(wg.grad(root), (q,), (tensor(1.0),))[1])
    assert float(mixed(tensor(8.0))) == pytest.approx(10 / 27 * 8 ** (-8 / 3))


def test_equations_whose_intermediate_results_are_saved_have_all_orders() -> None:
    """Sweeps of higher order go through the equations, too; by Lambert's function."""
    root = lambda p: optimize.brentq(lambda x: x * np.exp(x) - p, 0.0, 5.0, xtol=1e-14)
    known = lambda p: wg.real(special.lambertw(p))
    for _ in range(3):
        root, known = wg.grad(root), wg.grad(known)
        expected = float(known(tensor(1.3)))
        assert float(root(tensor(1.3))) == pytest.approx(expected, rel=1e-8)
    p = tensor(1.3).requires_grad_()
    x = optimize.brentq(lambda x: x * np.exp(x) - p, 0.0, 5.0, xtol=1e-14)
    (first,) = wg.autograd.grad(x * x, p, create_graph=True)
    assert first is not None
    (second,) = wg.autograd.grad(first + x, p)
    square = lambda p: special.lambertw(p).real ** 2
    expected = wg.grad(wg.grad(square))(p.detach())
    slope = wg.grad(lambda p: wg.real(special.lambertw(p)))(p.detach())
    assert float(second) == pytest.approx(float(expected + slope), rel=1e-8)  # type: ignore[arg-type]


_STIFF = {"method": "Radau", "rtol": 1e-9, "atol": 1e-9}
NESTED = {
    "roots": lambda p: optimize.fsolve(
        lambda x: x - optimize.fsolve(lambda y: y**3 - p * x, 1.0) / 2, 1.0
    )[0],
    "a root without x": lambda p: optimize.brentq(
        lambda x: x - optimize.brentq(lambda y: y**3 - p, 0.0, 3.0) / 2, 0.0, 3.0
    ),
    "a minimum": lambda p: optimize.brentq(
        lambda v: optimize.minimize(
            lambda z: wg.sum((z - v * p) ** 2), [0.5], options={"gtol": 1e-11}
        ).x[0] - 0.3, 0.01, 3.0,
    ),
    "a fit": lambda p: optimize.brentq(
        lambda v: optimize.least_squares(lambda z: z - v * p, [0.5], gtol=1e-15).x[0] - 0.3,
        *(0.01, 3.0),
    ),
    "an ODE": lambda p: optimize.brentq(
        lambda v: integrate.solve_ivp(lambda t, y: -p * y, (0, 1), [v], **_STIFF).y[0, -1] - 1.0,
        *(0.1, 9.0),
    ),
}  # fmt: skip
TRUE = {
    "roots": lambda p: (p / 8) ** 0.5,
    "a root without x": lambda p: p ** (1 / 3) / 2,
    "a minimum": lambda p: 0.3 / p,
    "a fit": lambda p: 0.3 / p,
    "an ODE": wg.exp,
}


@pytest.mark.parametrize("name", NESTED)
def test_solvers_within_solvers_in_both_modes(name: str) -> None:
    """Newton's steps of the outer one, which move tangents, record nothing."""
    program, true, p, one = NESTED[name], TRUE[name], tensor(1.2), tensor(1.0)
    first, second = float(wg.grad(true)(p)), float(wg.grad(wg.grad(true))(p))
    forward = lambda q: wg.jvp(program, (q,), (one,))[1]
    assert float(forward(p)) == pytest.approx(first, rel=1e-6)
    assert float(wg.grad(program)(p)) == pytest.approx(first, rel=1e-6)
    assert float(wg.jvp(wg.grad(program), (p,), (one,))[1]) == pytest.approx(second, rel=1e-5)
    assert float(wg.grad(forward)(p)) == pytest.approx(second, rel=1e-5)
    assert float(wg.jvp(forward, (p,), (one,))[1]) == pytest.approx(second, rel=1e-5)


def test_sources_that_are_computed_from_one_another_count_once() -> None:
    p = wg.tensor(2.0, dtype=wg.float64, requires_grad=True)
    q = p * p
    optimize.brentq(lambda x: x - q - 3 * p, 0.0, 50.0).backward()
    assert float(p.grad) == pytest.approx(7.0)  # type: ignore[arg-type]


def test_solutions_are_of_what_they_were_computed_with() -> None:
    p = wg.tensor(8.0, dtype=wg.float64, requires_grad=True)
    q = p * 1
    root = optimize.brentq(lambda x: x**3 - q, 0.0, 5.0)
    q *= 2
    root.backward()
    assert float(p.grad) == pytest.approx(1 / 12)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "run"),
    {
        "a key": lambda p, q, k: p[k],
        "an exponent": lambda p, q, k: p[0] ** (2 + k),
        "a factor": lambda p, q, k: 1 + (2 + k) * (p[0] - 1),
        "the order": lambda p, q, k: (p[0] - q if k else q - p[0]) + 1,
        "a transpose": lambda p, q, k: (p[:, None] * p if k else (p[:, None] * p).T)[0, 1] * q,
    }.items(),
)
def test_closures_that_change_without_other_values(name: str, run: Any) -> None:
    """As those of loops, of which all see the last index: solutions keep theirs, steps raise."""
    one = wg.tensor([1.0, 1.0], dtype=wg.float64, requires_grad=True)
    two = wg.tensor(1.0, dtype=wg.float64, requires_grad=True)
    solvers = [
        lambda f: optimize.fsolve(lambda x: x - f(), [1.5])[0],
        lambda f: optimize.minimize(lambda x: wg.sum((x - f()) ** 2), [1.5]).x[0],
        lambda f: optimize.fsolve(
            lambda x: x - optimize.brentq(lambda y: y - f(), 0.0, 3.0), [1.5]
        )[0],
    ]
    for solve in solvers:
        found = [solve(lambda: run(one, two, k)) for k in range(2)]  # noqa: B023
        for k, y in enumerate(found):
            expected = wg.autograd.grad(run(one, two, k), (one, two), materialize_grads=True)
            slopes = wg.autograd.grad(y, (one, two), materialize_grads=True)
            for slope, exact in zip(slopes, expected, strict=True):
                np.testing.assert_allclose(slope.numpy(), exact.numpy(), atol=1e-9)
    flow = lambda f: integrate.solve_ivp(lambda t, y: -f() * y, (0, 1), [1.0]).y[0, -1]
    nested = lambda f: integrate.solve_ivp(
        lambda t, y: -optimize.brentq(lambda z: z - f(), 0.0, 3.0) * y, (0, 0.1), [1.0]
    ).y[0, -1]
    for solve in (flow, nested):
        found = [solve(lambda: run(one, two, k)) for k in range(2)]  # noqa: B023
        found[1].backward(retain_graph=True)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="has changed since"):
                found[0].backward(retain_graph=True)


def test_jumps_that_parameters_move_have_no_derivative() -> None:
    """A root at one moves, though the function only compares with the parameter."""
    side = lambda x, p: wg.where(wg.asarray(x) < p, -1.0, 1.0)
    two = lambda x, p: wg.sum(wg.where(x < p, (x - 3) ** 2, (x + 3) ** 2 + 50))
    start = wg.asarray([0.3], dtype=wg.float64)
    programs = [
        lambda p: optimize.brentq(lambda x: side(x, p), 0.0, 3.0),
        lambda p: optimize.root_scalar(lambda x: side(x, p), bracket=[0.0, 3.0]).root,
        lambda p: optimize.minimize(lambda x: two(x, p), start, method="Nelder-Mead").x[0],
    ]
    for program in programs:
        with pytest.raises(RuntimeError, match="no isolated solution"):
            wg.grad(program)(tensor(1.0))
    bent = lambda p: optimize.brentq(lambda x: wg.where(x < p, 1, 2) * (x - 1), 0.0, 1.5)
    assert float(wg.grad(bent)(tensor(2.0))) == 0.0


def test_plain_programs_are_scipys() -> None:
    assert type(optimize.fsolve(lambda x: x**2 - 2, 1.0)) is np.ndarray
    assert type(integrate.quad(np.sin, 0, 1)[0]) is float
    assert type(integrate.odeint(lambda y, t: -y, 1.0, [0.0, 1.0])) is np.ndarray


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("numpys", [False, True])
@pytest.mark.parametrize("program", [
    lambda p: optimize.brentq(lambda x: x**3 - p, 0, 5),
    lambda p: optimize.fsolve(lambda x: x**3 - p, [1.0])[0],
    lambda p: optimize.minimize(lambda x: (x[0] ** 3 - p) ** 2, [1.0], bounds=[(0, 3)]).x[0],
    lambda p: optimize.least_squares(lambda x: [x[0] ** 3 - p], [1.0]).x[0],
    lambda p: optimize.curve_fit(lambda x, a: a**3 * x / p, [1.0, 2], [1.0, 2.0])[0][0],
    lambda p: integrate.solve_ivp(lambda t, y: p * y / (9 * t + 3), (0, 1), [1.0]).y[0, -1],
    lambda p: integrate.solve_ivp(
        lambda t, y: p * y / (9 * t + 3), (0, 1), [1.0], t_eval=[0.0, 1.0], method="Radau"
    ).y[0, -1],
    lambda p: integrate.odeint(lambda y, t: p * y / (9 * t + 3), [1.0], [0.0, 1.0])[-1, 0],
    lambda p: integrate.quad(lambda x: p ** (1 / 3) * 2 * x, 0, 1)[0],
])  # fmt: skip
def test_unknowns_of_the_selected_backend(
    program: Any, numpys: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What closures hold is of it; NumPy's numbers are arrays in programs of `wengert.numpy`."""
    if numpys:
        monkeypatch.setitem(GIVEN, "wengert.numpy", {})
    found, step = wg.grad(program)(tensor(1.3)), 1e-4
    value = [float(program(tensor(1.3 + h))) for h in (-step, step)]
    assert float(found) == pytest.approx((value[1] - value[0]) / (2 * step), rel=1e-3)


@pytest.mark.filterwarnings("ignore::scipy.integrate.ODEintWarning", "ignore::UserWarning")
def test_odeints_tolerances() -> None:
    """Growth of small numbers, by its formula."""

    def grown(p: Any, y0: Any = 1e-10, **options: Any) -> Any:
        rate = lambda y, t: [-p * y[0] + t * 1e-10]
        return integrate.odeint(rate, [y0], [0, 3.0], **options)[-1, 0] * 1e10

    p = 4.0
    exact = -3 * np.exp(-3 * p) - 3 / p**2 + 2 / p**3
    exact -= np.exp(-3 * p) * (3 / p**2 + 2 / p**3)
    for options in ({"atol": 0}, {"atol": np.array([0.0])}, {"atol": 1e-20, "rtol": [1e-9]}):
        assert float(wg.grad(partial(grown, **options))(tensor(p))) == pytest.approx(exact, 1e-5)
    for y0, options in ((0.0, {"atol": 0}), (1.0, {"atol": 0, "rtol": 0})):
        with pytest.raises(RuntimeError, match="odeint: Illegal input"):
            wg.grad(partial(grown, y0=y0, **options))(tensor(p))
    still = wg.grad(lambda y0: wg.sum(integrate.odeint(lambda y, t: -y, y0, [1.0, 1.0])))
    assert still(tensor([1.0, 2.0])).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e-12])
def test_quad_compares_derivatives_by_their_size(scale: float) -> None:
    """What has a singular derivative is an error in small integrals, and beside a large part."""
    for rest in (0.0, scale * 1e9):
        power = lambda p: integrate.quad(lambda x: scale * x**p + rest, 0, 1)[0]  # noqa: B023
        with pytest.raises(RuntimeError, match="Gauss' rule"):
            wg.grad(power)(tensor(0.0))
    odd = lambda p: integrate.quad(lambda x: scale * (p * np.sin(x) + p**2), -1, 1)[0]
    assert float(wg.grad(odd)(tensor(0.0))) == pytest.approx(0.0, abs=1e-15 * scale)
    assert float(wg.grad(odd)(tensor(1.0))) == pytest.approx(4 * scale)


def test_curve_fit_refuses_to_omit_rows() -> None:
    x, y = np.arange(4.0), np.array([1.0, np.nan, 5.0, 7.0])
    line, omit = lambda x, a, b: a * x + b, {"nan_policy": "omit", "check_finite": False}
    program = lambda p: optimize.curve_fit(line, x, tensor(y) * p, **omit)[0][0]
    with pytest.raises(NotImplementedError, match="nan_policy='omit'"):
        wg.grad(program)(tensor(1.0))
    with pytest.raises(NotImplementedError, match="nan_policy='omit'"):
        optimize.curve_fit(line, tensor(x).requires_grad_(), y, **omit)
    omitted = optimize.curve_fit(line, x, tensor(y), **omit)[0]
    assert omitted.numpy() == pytest.approx([2.0, 1.0])


def test_refusals_name_the_function() -> None:
    p = wg.tensor([1.0], dtype=wg.float64, requires_grad=True)
    eq = {"type": "eq", "fun": lambda x: x[0] - p[0]}
    programs = {
        r"minimize .*result of constraints": lambda: optimize.minimize(
            lambda x: x[0] ** 2, [1.0], constraints=eq
        ),
        r"optimize.fmin .*result of argument 1": lambda: optimize.fmin(
            lambda x: (x - p) ** 2, [0.0], disp=0
        ),
        r"linprog .*\(argument 1\)": lambda: optimize.linprog(p),
        r"leastsq: cov_x": lambda: optimize.leastsq(lambda x: x - p, [0.0], full_output=True),
        r"solve_ivp: .*events=": lambda: integrate.solve_ivp(
            lambda t, y: p * y, (0, 1), [1.0], events=lambda t, y: y[0] - 1.5
        ),
        r"solve_bvp": lambda: integrate.solve_bvp(
            lambda x, y: y * p, lambda a, b: a, [0, 1], [[0, 1]]
        ),
        r"quad: weight=": lambda: integrate.quad(lambda x: p[0] * x, 0, 1, weight="cos", wvar=1.0),
        r"quad: Gauss": lambda: integrate.quad(lambda x: p[0] * x**-0.99, 0, 1),
        r"nquad": lambda: integrate.nquad(lambda x: p[0] * x, [[0, 1]]),
        r"no isolated solution": lambda: optimize.fsolve(lambda x: (x - p) ** 2, [1.0]),
    }
    with np.errstate(all="ignore"):
        for words, program in programs.items():
            with pytest.raises((TypeError, NotImplementedError, RuntimeError), match=words):
                program()
    with pytest.raises(CompileError, match="outside compile"):
        wg.compile(lambda q: optimize.brentq(lambda x: x - q, 0.0, 5.0))(tensor(1.0))


@pytest.mark.parametrize("method", ["RK45", "Radau", "BDF"])
@pytest.mark.parametrize("more", [{}, {"t_eval": [0.5, 1.0]}])
@pytest.mark.parametrize("nested", [False, True])
def test_tensors_that_change_later_count_as_they_were(method: str, more: Any, nested: bool) -> None:
    """As on any tape: before the first sweep, and between it and one of second order."""

    def slopes(first: bool, second: bool) -> list[float]:
        p, w = tensor(0.4).requires_grad_(), tensor(2.0)

        def rate(t: Any, y: Any) -> Any:
            root = optimize.fsolve(lambda x: w * x - p * y, [1.0]) if nested else w * y * 0.2
            return -p * p * w * root

        found = integrate.solve_ivp(rate, (0, 1), [1.0], method, **more)
        y = found.y[0, -1]
        results = []
        for change in (first, second):
            with wg.no_grad():
                for x in (p, w) if change else ():
                    x *= 3.0
            (y,) = wg.autograd.grad(y, p, create_graph=True)  # type: ignore[assignment]
            results.append(float(y.detach()))
        return results

    expected = slopes(False, False)
    assert slopes(True, False)[0] == expected[0]
    assert slopes(False, True) == expected
