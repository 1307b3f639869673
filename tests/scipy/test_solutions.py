"""Roots, minima, fits, ODEs and integrals: derivatives are those of differences, or of formulae."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import wengert as wg
from tests.scipy.compare import slope, tensor, total
from wengert.scipy import integrate, optimize

T = np.linspace(0.0, 1.0, 9)
DATA = 3 * np.exp(-2 * T) + 0.1 * np.sin(30 * T)


def two(p: Any) -> Callable[[Any], Any]:
    return lambda x: [x[0] ** 2 + p[0] * x[1] - 4, x[0] * x[1] - p[1]]


def cubic(p: Any) -> Callable[[Any], Any]:
    return lambda x: x**3 - p[0] * x - p[1]


def bowl(x: Any, p: Any) -> Any:
    return (p[0] - x[0]) ** 2 + p[1] * (x[1] - x[0] ** 2) ** 2 + 0.1 * (x[0] ** 2 + x[1] ** 2)


def model(x: Any, a: Any, b: Any) -> Any:
    return a * np.exp(-b * x)


def rows(x: Any, a: Any, b: Any) -> Any:
    return np.stack([np.exp(-b * x), -a * x * np.exp(-b * x)], axis=1)


def residual(x: Any, p: Any) -> Any:
    return x[0] * np.exp(-x[1] * T) - p[0] * DATA - p[1]


TIGHT: dict[str, Any] = {"xtol": 1e-14, "ftol": 1e-14, "gtol": 1e-14}
BRACKETS = {
    name: (lambda p, l, name=name: getattr(l, name)(cubic(p), 0.0, 5.0, xtol=1e-13), [1.0, 0.5])
    for name in ("brentq", "brenth", "ridder", "bisect", "toms748")
}
#: Programs of parameters and of the library, with parameters.
SOLUTIONS: dict[str, tuple[Callable[[Any, Any], Any], list[float]]] = {
    **BRACKETS,
    "fsolve": (lambda p, l: l.fsolve(two(p), [1.0, 1.0], xtol=1e-13), [1.0, 0.5]),
    "args": (
        lambda p, l: l.fsolve(lambda x, a: two(a)(x), [1.0, 1.0], (p,), xtol=1e-13),
        [1.0, 0.5],
    ),
    "root": (lambda p, l: l.root(two(p), [1.0, 1.0], tol=1e-13).x, [1.0, 0.5]),
    "newton": (lambda p, l: l.newton(cubic(p), 2.0, tol=1e-13), [1.0, 0.5]),
    "slope": (
        lambda p, l: l.newton(cubic(p), 2.0, fprime=lambda x: 3 * x**2 - p[0], tol=1e-13),
        [1.0, 0.5],
    ),
    "root_scalar": (lambda p, l: l.root_scalar(cubic(p), bracket=[0.0, 5.0]).root, [1.0, 0.5]),
    "bounded": (
        lambda p, l: (
            l.minimize(
                lambda x: bowl(x, p),
                [0.4, 0.1],
                bounds=[(0, 0.5), (None, None)],
                tol=1e-14,
                jac=None if l is optimize else "3-point",
            ).x
        ),
        [1.0, 5.0],
    ),
    "least_squares": (
        lambda p, l: l.least_squares(residual, [1.0, 1.0], args=(p,), **TIGHT).x,
        [1.0, 0.1],
    ),
    "soft": (
        lambda p, l: (
            l.least_squares(
                residual, [1.0, 1.0], "3-point", args=(p,), loss="soft_l1", f_scale=0.2, **TIGHT
            ).x
        ),
        [1.0, 0.1],
    ),
    "leastsq": (
        lambda p, l: l.leastsq(residual, [2.0, 1.0], (p,), xtol=1e-13, ftol=1e-13)[0],
        [1.0, 0.1],
    ),
    "curve_fit": (
        lambda p, l: l.curve_fit(model, T, p[0] * DATA + p[1] * T, ftol=1e-13)[0],
        [1.0, 0.1],
    ),
    "covariance": (
        lambda p, l: l.curve_fit(
            model, T, p[0] * DATA + p[1] * T, sigma=0.1 + T * p[1], ftol=1e-13
        )[1],
        [1.0, 0.1],
    ),
    "errors": (
        lambda p, l: l.curve_fit(
            model, T, DATA, [1, 1], np.eye(9) * (1 + p[0]) + 0.1 * p[1], True, jac=rows, ftol=1e-13
        )[1],
        [1.0, 0.1],
    ),
    "curve_fit by closure": (
        lambda p, l: l.curve_fit(
            lambda x, a, b: a * np.exp(-b * x) + p[0] * x, T, DATA, ftol=1e-13
        )[0],
        [0.1],
    ),
}
#: Those whose values in SciPy are less precise, by the differences that SciPy takes.
ROUGH = {
    "soft": 1e-4,
    "least_squares": 1e-4,
    "leastsq": 1e-4,
    "covariance": 1e-4,
    "curve_fit by closure": 1e-4,
}


@pytest.mark.parametrize("name", SOLUTIONS)
def test_solutions(name: str) -> None:
    program, given = SOLUTIONS[name]
    p, h = np.array(given), 1e-4
    expected = np.stack([
        np.subtract(*(program(p + k * h * e, scipy.optimize) for k in (1, -1))) / (2 * h)
        for e in np.eye(p.size)
    ], -1)  # fmt: skip
    ours = lambda q: program(q, optimize)
    found = wg.func.jacrev(ours)(tensor(p)).numpy()
    assert found == pytest.approx(expected, rel=ROUGH.get(name, 1e-5), abs=ROUGH.get(name, 1e-6))
    forward = wg.func.jacfwd(ours)(tensor(p)).numpy()
    assert forward == pytest.approx(found, rel=1e-6, abs=1e-9)
    assert ours(tensor(p)).numpy() == pytest.approx(program(p, scipy.optimize), rel=1e-6)
    moved = np.array([0.3, 0.7])[: p.size]
    along = lambda q: wg.sum(wg.func.jacrev(ours)(q) * tensor(moved))
    second = float(wg.sum(wg.grad(along)(tensor(p)) * tensor(moved)))
    number = (float(along(tensor(p + h * moved))) - float(along(tensor(p - h * moved)))) / (2 * h)
    assert second == pytest.approx(number, rel=1e-3, abs=1e-4)


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


def test_bounds_that_move() -> None:
    best = lambda p: optimize.minimize(lambda x: wg.sum(x), tensor([3.0]), bounds=[(p**2, None)]).x[
        0
    ]
    assert float(wg.grad(best)(tensor(1.5))) == 3.0


def test_derivatives_of_any_order() -> None:
    root = lambda p: optimize.brentq(lambda x: x**3 - p, 0.0, 5.0, xtol=1e-14)
    third = wg.grad(wg.grad(wg.grad(root)))
    assert float(third(tensor(8.0))) == pytest.approx(10 / 27 * 8 ** (-8 / 3))
    mixed = wg.grad(lambda q: wg.jvp(wg.grad(root), (q,), (tensor(1.0),))[1])
    assert float(mixed(tensor(8.0))) == pytest.approx(10 / 27 * 8 ** (-8 / 3))


def test_sources_that_are_computed_from_one_another_count_once() -> None:
    p = wg.tensor(2.0, dtype=wg.float64, requires_grad=True)
    q = p * p
    optimize.brentq(lambda x: x - q - 3 * p, 0.0, 50.0).backward()
    assert float(p.grad) == pytest.approx(7.0)  # type: ignore[arg-type]


def test_what_has_changed_since_is_an_error() -> None:
    p = wg.tensor(8.0, dtype=wg.float64, requires_grad=True) * 1
    root = optimize.brentq(lambda x: x**3 - p, 0.0, 5.0)
    p *= 2
    with pytest.raises(RuntimeError, match="has changed since"):
        root.backward()


def test_plain_programs_are_scipys() -> None:
    assert type(optimize.fsolve(lambda x: x**2 - 2, 1.0)) is np.ndarray
    assert type(integrate.quad(np.sin, 0, 1)[0]) is float
    assert type(integrate.odeint(lambda y, t: -y, 1.0, T)) is np.ndarray


def test_refusals_name_the_function() -> None:
    p = wg.tensor([1.0], dtype=wg.float64, requires_grad=True)
    eq = {"type": "eq", "fun": lambda x: x[0] - p[0]}
    programs = {
        r"minimize: .*constraints=": lambda: optimize.minimize(
            lambda x: x[0] ** 2, [1.0], constraints=eq
        ),
        r"optimize.fmin .*result of func": lambda: optimize.fmin(
            lambda x: (x - p) ** 2, [0.0], disp=0
        ),
        r"linprog .*\(c\)": lambda: optimize.linprog(p),
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
    with pytest.raises(TypeError, match="outside compile"):
        wg.compile(lambda q: optimize.brentq(lambda x: x - q, 0.0, 5.0))(tensor(1.0))


# -- differential equations and integrals ----------------------------------------------------------


def prey(t: Any, y: Any, p: Any) -> Any:
    return [p[0] * y[0] - y[0] * y[1], -p[1] * y[1] + y[0] * y[1]]


LIMITS = {"rtol": 1e-8, "atol": 1e-9}
PLACES = np.linspace(0.0, 1.0, 4)
ODES: dict[str, tuple[Callable[[Any, Any], Any], list[float]]] = {
    **{
        name: (
            lambda p, l, name=name: (
                l.solve_ivp(
                    lambda t, y: prey(t, y, p), (0, 1), [1.0, 0.5], name, PLACES, **LIMITS
                ).y
            ),
            [1.1, 0.7],
        )
        for name in ("RK45", "DOP853", "LSODA")
    },
    "RK23": (
        lambda p, l: l.solve_ivp(prey, (0, 0.1), [1.0, 0.5], "RK23", args=(p,), **LIMITS).y[:, -1],
        [1.1, 0.7],
    ),
    "Radau": (
        lambda p, l: (
            l.solve_ivp(
                lambda t, y: prey(t, y, p), (0, 0.2), [1.0, 0.5], "Radau", [0.1, 0.2], **LIMITS
            ).y
        ),
        [1.1, 0.7],
    ),
    "BDF": (
        lambda p, l: l.solve_ivp(
            lambda t, y: prey(t, y, p), (0, 0.1), [1.0, 0.5], "BDF", **LIMITS
        ).y[:, -1],
        [1.1, 0.7],
    ),
    "y0": (
        lambda p, l: l.solve_ivp(prey, (0, 1), p, args=([1.0, 0.5],), **LIMITS).y[:, -1],
        [1.1, 0.7],
    ),
    "t_span": (
        lambda p, l: l.solve_ivp(prey, (p[0], p[1]), [1.0, 0.5], args=([1.1, 0.7],), **LIMITS).y[
            :, -1
        ],
        [0.1, 1.2],
    ),
    "t_eval": (
        lambda p, l: l.solve_ivp(lambda t, y: -y * t, (0, 2), [1.0], t_eval=p, **LIMITS).y,
        [0.3, 1.2],
    ),
    "backwards": (
        lambda p, l: (
            l.solve_ivp(
                lambda t, y: prey(t, y, p), (1, 0), [1.0, 0.5], t_eval=PLACES[::-1], **LIMITS
            ).y
        ),
        [1.1, 0.7],
    ),
    "dense": (
        lambda p, l: l.solve_ivp(
            lambda t, y: prey(t, y, p), (0, 1), [1.0, 0.5], dense_output=True, **LIMITS
        ).sol(0.3),
        [1.1, 0.7],
    ),
    "odeint": (lambda p, l: l.odeint(lambda y, t: prey(t, y, p), [1.0, 0.5], PLACES), [1.1, 0.7]),
    "stiff": (
        lambda p, l: l.odeint(
            lambda t, y: [-1e4 * p[0] * (y[0] - np.cos(t)), y[0] * p[1] - y[1]],
            [1.0, 0.5],
            PLACES[:2],
            tfirst=True,
            rtol=1e-7,
            atol=1e-7,
        )[-1, 1:],
        [1.1, 0.7],
    ),
    "quad": (
        lambda p, l: l.quad(lambda x, a: np.exp(-a * x) * p[1] * x, 0, 2, (p[0],))[0],
        [1.1, 0.7],
    ),
    "infinite": (
        lambda p, l: l.quad(lambda x: np.exp(-p[0] * (x - p[1]) ** 2), -np.inf, np.inf)[0],
        [1.1, 0.7],
    ),
    "half": (
        lambda p, l: l.quad(lambda x: np.exp(-p[0] * (x - p[1]) ** 2), -np.inf, p[1] ** 2)[0],
        [1.1, 0.7],
    ),
    "far": (lambda p, l: l.quad(lambda x: p[1] * np.exp(-p[0] * x), p[0], np.inf)[0], [1.1, 0.7]),
    "ends": (lambda p, l: l.quad(lambda x: np.exp(-x), p[1], p[0])[0], [0.4, 1.7]),
    "singular": (
        lambda p, l: l.quad(lambda x: p[0] * np.log(x) / np.sqrt(x + p[1]), 0, 1)[0],
        [1.1, 0.7],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ODES)
def test_equations_and_integrals(name: str) -> None:
    program, given = ODES[name]
    p, moved, h = np.array(given), np.cos(np.arange(2)), 1e-3
    expected = slope(lambda q: total(program(q, scipy.integrate)), p, moved, h)
    f, v = (lambda q: total(program(q, integrate))), tensor(moved)
    along = lambda q: wg.sum(wg.grad(f)(q) * v)
    found = float(along(tensor(p)))
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-6)
    tracked = program(tensor(p).requires_grad_(), integrate).detach().numpy()
    assert tracked == pytest.approx(program(p, scipy.integrate), rel=1e-6)
    if name in ("RK23", "Radau", "quad", "half"):
        assert float(wg.jvp(f, (tensor(p),), (v,))[1]) == pytest.approx(found, rel=1e-9)
        second = float(wg.sum(wg.grad(along)(tensor(p)) * v))
        number = (float(along(tensor(p + h * moved))) - float(along(tensor(p - h * moved)))) / (
            2 * h
        )
        assert second == pytest.approx(number, rel=1e-4, abs=1e-5)
