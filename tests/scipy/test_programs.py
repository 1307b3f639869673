"""Programs in SciPy's habits: gradients equal differences of SciPy's own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy

import wengert as wg
import wengert.scipy as room
from tests.numpy.compare import slope
from tests.scipy.compare import tensor
from tests.scripts import python

T = np.linspace(0.0, 6.0, 7)
X = np.array([0.3, 0.9, 1.4, 2.2, 3.1])
Y = np.array([0.2, 0.8, 1.0, 0.7, 0.1])
TIGHT = {"rtol": 1e-9, "atol": 1e-11}


def epidemic(l: Any, p: Any) -> Any:
    """The peak of infections, of a model of three groups."""

    def grow(t: Any, y: Any) -> Any:
        new = p[0] * y[0] * y[1]
        return [-new, new - p[1] * y[1], p[1] * y[1]]

    found = l.integrate.solve_ivp(grow, (0, 6), [0.99, 0.01, 0.0], t_eval=T, **TIGHT)
    return found.y[1].sum()


def gaussian_process(l: Any, p: Any) -> Any:
    """The marginal likelihood of data."""
    kernel = p[0] * np.exp(-((X[:, None] - X) ** 2) / p[1] ** 2) + 0.1 * np.eye(5)
    factor = l.linalg.cho_factor(kernel, lower=True)
    logs = np.log(np.diagonal(factor[0])).sum()
    return -Y @ l.linalg.cho_solve(factor, Y) / 2 - logs


def decay(l: Any, p: Any) -> Any:
    """A misfit of a chain of decays, as for a fit."""
    y = l.integrate.odeint(
        lambda y, t: [-p[0] * y[0], p[0] * y[0] - p[1] * y[1]],
        [1.0, 0.0],
        T,
        rtol=1e-10,
        atol=1e-12,
    )
    return ((y[:, 1] - 0.2) ** 2).sum()


def orbit(l: Any, p: Any) -> Any:
    """The place on an orbit, by Kepler's equation."""
    e = l.optimize.brentq(lambda e: e - p[0] * np.sin(e) - p[1], 0.0, 7.0, xtol=1e-14)
    return np.cos(e) - p[0]


def gas(l: Any, p: Any) -> Any:
    """The volume of a real gas."""
    v = l.optimize.newton(lambda v: (p[0] + 0.4 / v**2) * (v - 0.03) - p[1], 20.0, tol=1e-13)
    return np.log(v)


def likelihood(l: Any, p: Any) -> Any:
    """Densities of measured times and counts."""
    times = l.stats.gamma(p[0], scale=p[1]).logpdf(X).sum()
    return times + l.stats.poisson.logpmf(np.array([0, 1, 3]), p[1] * X[:3]).sum()


def price(l: Any, p: Any) -> Any:
    """An option's price."""
    d = (np.log(1.1) + (0.02 + p[0] ** 2 / 2) * p[1]) / (p[0] * p[1] ** 0.5)
    norm = l.stats.norm
    return 1.1 * norm.cdf(d) - np.exp(-0.02 * p[1]) * norm.cdf(d - p[0] * p[1] ** 0.5)


def road(l: Any, p: Any) -> Any:
    """The bending of a spline that data move."""
    spline = l.interpolate.CubicSpline(X, p[0] * Y + p[1] * X**2, bc_type="natural")
    return (spline(np.linspace(0.4, 3.0, 9), 2) ** 2).sum()


def filtered(l: Any, p: Any) -> Any:
    """The energy that a filter lets through."""
    noise = np.sin(np.arange(40.0) ** 2)
    return (l.signal.lfilter(p[:1], p, noise) ** 2).mean()


def wave(l: Any, p: Any) -> Any:
    """The overlap of a mode and a profile."""
    return l.integrate.quad(lambda r: r * l.special.jv(1, p[0] * r) * np.exp(-p[1] * r**2), 0, 3)[0]


def fitted(l: Any, p: Any) -> Any:
    """What a fit says where there are no data."""
    best, _ = l.optimize.curve_fit(
        lambda x, a, b: a * np.exp(-b * x),
        X,
        2 * np.exp(-p[0] * X) + p[1] * Y,
        [1.0, 1.0],
        ftol=1e-14,
    )
    return best[0] * np.exp(-best[1] * 4.0)


def evolved(l: Any, p: Any) -> Any:
    """A state after a time, by a matrix's exponential."""
    matrix = np.array([[0.0, 1.0], [-1.0, 0.0]]) * p[0] - np.eye(2) * p[1]
    return (l.linalg.expm(matrix) @ np.array([1.0, 0.5]))[0]


PROGRAMS: dict[Callable[[Any, Any], Any], list[float]] = {
    epidemic: [2.0, 0.4], gaussian_process: [1.1, 0.8], decay: [0.7, 0.3], orbit: [0.4, 1.2],
    gas: [1.3, 25.0], likelihood: [2.1, 0.8], price: [0.3, 1.5], road: [1.2, 0.3],
    filtered: [1.4, -0.6], wave: [1.3, 0.5], fitted: [0.8, 0.1], evolved: [0.9, 0.2],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients_are_those_of_differences(program: Any) -> None:
    p, along = np.array(PROGRAMS[program]), np.array([0.6, 0.8])
    expected = slope(lambda q: program(scipy, q), p, along, 1e-3)
    value, gradient = wg.value_and_grad(lambda q: program(room, q))(tensor(p))
    assert float(value) == pytest.approx(float(program(scipy, p)), rel=1e-7)
    assert float(wg.sum(gradient * tensor(along))) == pytest.approx(expected, rel=1e-5, abs=1e-8)


@pytest.mark.slow
def test_programs_of_numpys_room(tmp_path: Any) -> None:
    """Functions that fill arrays, which are Tensors there."""
    program = tmp_path / "program.py"
    program.write_text(
        "import wengert as wg\nimport wengert.numpy as np\n"
        "from wengert.scipy import integrate, optimize\n"
        "def run(p):\n"
        "    def field(t, y):\n"
        "        out = np.zeros(2)\n        out[0] = y[1]\n        out[1] = -p[0] * y[0]\n"
        "        return out\n"
        "    start = np.array([1.0, 0.0])\n"
        "    path = integrate.solve_ivp(field, (0, 1), start, rtol=1e-9, atol=1e-9)\n"
        "    def balance(x):\n"
        "        out = np.empty(2)\n        out[0] = x[0] - p[1] * x[1]\n"
        "        out[1] = x[1] ** 2 - p[0]\n"
        "        return out\n"
        "    return path.y[0, -1] + optimize.fsolve(balance, np.ones(2))[0]\n"
        "g = wg.grad(run)(np.array([2.0, 3.0]))\n"
        "s = 2.0 ** 0.5\n"
        "assert abs(g[0] - (-np.sin(s) / 2 / s + 3 / 2 / s)) < 1e-6, g\n"
        "assert abs(g[1] - s) < 1e-7, g\n"
    )
    python(program)
