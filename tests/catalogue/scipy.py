"""Rows of `wengert.scipy`: a call of each function that has a derivative, with sample arguments.

Tests walk them: values are SciPy's, derivatives by each argument those of differences.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import numpy as np

from tests.walking import lines_of


class Call(NamedTuple):
    """A call of a module ``l``, SciPy's or ours, and of arrays.

    Attributes
    ----------
    name : str
        The function's, with its module.
    call : str or callable
        An expression of ``l`` and of the arrays by name, or a program of the first array and ``l``.
    given : dict
        The arrays, by each of which it is differentiated.
    near : tuple
        Relative errors of values, first and second derivatives; of 0 they are not compared.
    step : float
        The step of differences.
    options : dict
        Of `wengert.testing.check_gradients`.
    """

    name: str
    call: Any
    given: dict[str, Any]
    near: tuple[float, float, float] = (1e-11, 1e-7, 1e-5)
    step: float = 1e-4
    options: dict[str, Any] = {}

    def run(self, library: Any, arrays: dict[str, Any]) -> Any:
        """Call the function of a library's module on arrays by name."""
        if isinstance(self.call, str):
            return eval(self.call, {"l": library, "np": np, **arrays})
        return self.call(*arrays.values(), library)

    def covers(self) -> set[str]:
        """The public names that the row calls."""
        module = self.name.rpartition(".")[0]
        used = re.findall(r"\bl\.(\w+)", self.call) if isinstance(self.call, str) else []
        return {self.name, *(f"{module}.{name}" for name in used)}


def _expressions(module: str, lines: str, given: dict[str, Any]) -> list[Call]:
    found = []
    for line in lines_of(lines):
        used = {k: x for k, x in given.items() if re.search(rf"(?<![\w.]){k}\b(?!=)", line)}
        name = re.findall(r"\bl\.(\w+)", line)[0]
        single = not re.search(r"(?<![\w\])])\[|lambertw", line)  # lists are in double precision
        found.append(Call(f"{module}.{name}", line, used, options={"single": single}))
    return found


# -- functions of arrays ---------------------------------------------------------------------------

_RNG = np.random.default_rng(0)
_SQUARE = _RNG.normal(size=(3, 3)) + 3 * np.eye(3)
_BANDS = _RNG.normal(size=(4, 5))
_BANDS[2] += 8

LINALG = """
l.solve(a, b)  l.solve(s, B, assume_a="pos")  l.solve(a, b, assume_a="sym", lower=True)
l.solve(a, b, assume_a="upper triangular")  l.inv(a)  l.det(a)  l.expm(a / 5)
l.sqrtm(s)  l.logm(s)  l.sinm(a / 5)  l.cosm(a / 5)  abs(l.eigvals(a))  l.cholesky(s)
l.cholesky(s, lower=True)  l.cho_solve(l.cho_factor(s), b)
l.cho_solve(l.cho_factor(s, lower=True), B)  l.lu_factor(a[::-1])[0]
l.lu_solve(l.lu_factor(a[::-1]), b)  l.lu_solve(l.lu_factor(a[::-1]), B, trans=1)
l.solve_triangular(a, b)  l.solve_triangular(a, B, lower=True, trans=1)
l.solve_triangular(a, b, unit_diagonal=True, trans="T")  l.solve_banded((1, 2), q, r)
l.solve_banded((2, 1), q, R)  l.block_diag(a, b, B)  l.eigh(s)[0]  abs(l.eigh(s)[1])
l.eigvalsh(s, lower=False)  l.svd(a)[1]
l.svdvals(a)  abs(l.qr(B, mode="economic")[1])  l.norm(a)  l.norm(b, 1)  l.pinv(B)
"""
SIGNAL = """
l.convolve(x, y)  l.convolve(y, x, mode="same")  l.convolve(y, x, mode="valid")
l.convolve(Z, Y, mode="same")  l.convolve(x, y, method="fft")  l.fftconvolve(x, y, mode="same")
l.fftconvolve(Y, Z, mode="valid")  l.fftconvolve(X, X, axes=1)  l.lfilter(b, a, x)
l.lfilter(b, a, X.T, axis=0)  l.lfilter([1.0], a, x)  l.lfilter(b, 1.0, x)
l.lfilter(b[:2], a, x[:2])
"""
INTERPOLATE = """
l.CubicSpline(x, y)(t)  l.CubicSpline(x, Y)(T)  l.CubicSpline(x, Y.T, axis=1)(T, 1)
l.CubicSpline(x, y)(t, nu=2)  l.CubicSpline(x, y, bc_type="natural")(t)
l.CubicSpline(x, y, bc_type=((2, s[0]), (1, s[1])))(t)
l.CubicSpline(x, y, bc_type=("clamped", "not-a-knot"))(t)  l.CubicSpline(x[:3], y[:3])(t[:2])
l.CubicSpline(x[:2], y[:2])(t[:2])  l.interp1d(x, y)(t)  l.interp1d(x, Y, axis=0)(t)
l.interp1d(x[::-1], Y.T)(t)  l.interp1d(x, y, fill_value="extrapolate")(T)
l.interp1d(x, y, bounds_error=False, fill_value=(s[0], s[1]))(T)  l.interp1d(x, y, kind="cubic")(t)
l.griddata([[0, 0], [0, 1], [1.2, 0], [1, 1.5], [0.4, 0.7], [2, 2]], Y, [[0.3, 0.4], [0.9, 0.6]])
l.griddata(([0, 0, 1.2, 1, 0.4, 2], [0, 1, 0, 1.5, 0.7, 2]), y, ([0.3, 9], [0.4, 9]), fill_value=0)
l.griddata([[0, 0], [0, 1], [1.2, 0], [1, 1.5], [0.4, 0.7], [2, 2]], Y, [0.3, 0.4], "nearest")
"""
DISTANCE = """
l.cdist(A, B)  l.cdist(A, B, "sqeuclidean")  l.cdist(A, B, metric="cityblock")
"""
INTEGRATE = """
l.trapezoid(y, x)  l.trapezoid(Z, dx=s, axis=0)  l.cumulative_trapezoid(Y, x, initial=0)
l.cumulative_trapezoid(Z, dx=s, axis=0)  l.simpson(Y, x=x)  l.simpson(y[:5], x=x[:5])
l.simpson(y[:2], x=x[:2])  l.simpson(Z, dx=s, axis=0)
"""
SPECIAL = """
l.gammainc(a, x)  l.gammaincc(a, x)  l.gammaincinv(a, p)  l.gammainccinv(a, p)  l.betainc(a, b, p)
l.betaincc(a, b, p)  l.betaincinv(a, b, p)  l.betainccinv(a, b, p)  l.stdtr(a, x)  l.stdtrit(a, p)
l.jv(1.5, x)  l.yv(1, x)  l.iv(2, x)  l.kv(0.5, x)  l.j0(x)  l.j1(x)  l.y0(x)  l.y1(x)  l.k0(x)
l.k1(x)  l.hyp2f1(0.5, 1.5, 2.5, p)  l.ellipk(p)  l.ellipe(-x)  l.lambertw(x).real  l.gammaln(x)
l.digamma(x)  l.polygamma(1, x)  l.logsumexp(x, b=a)  l.lambertw(-p / 3).real  l.softmax(x)
l.expit(x)  l.jn(2, x)  l.yn(2, x)  l.kn(1, x)  l.beta(a, x)  l.betaln(a, x)  l.entr(x)  l.erf(x)
l.erfc(x)  l.erfcinv(p)  l.erfcx(x)  l.gamma(x)  l.gammasgn(x)  l.i0(x)  l.i0e(x)  l.i1(x)
l.i1e(x)  l.kl_div(x, a)  l.log_expit(x)  l.log_softmax(x)  l.logit(p)  l.multigammaln(x + 2, 2)
l.ndtr(x)  l.psi(x)  l.rel_entr(x, a)  l.softplus(x)  l.xlog1py(x, p)  l.zeta(2.5, x)  l.expm1(x)
l.log1p(x)  l.ndtri(p)  l.log_ndtr(-x)  l.erfinv(p)  l.xlogy(x, p)
"""
GIVEN: dict[str, tuple[str, dict[str, Any]]] = {
    "linalg": (LINALG, {
        "a": _SQUARE, "s": _SQUARE @ _SQUARE.T, "b": _RNG.normal(size=3),
        "B": _RNG.normal(size=(3, 2)), "q": _BANDS, "r": _RNG.normal(size=5),
        "R": _RNG.normal(size=(5, 2)),
    }),
    "signal": (SIGNAL, {
        "x": _RNG.normal(size=7), "y": _RNG.normal(size=4), "b": np.array([0.5, 0.3, -0.2]),
        "a": np.array([1.3, -0.4, 0.2]), "X": _RNG.normal(size=(2, 7)),
        "Y": _RNG.normal(size=(3, 3)), "Z": _RNG.normal(size=(5, 4)),
    }),
    "interpolate": (INTERPOLATE, {
        "x": np.array([0.0, 0.7, 1.5, 2.0, 3.1, 4.0]), "y": _RNG.normal(size=6),
        "t": np.array([0.2, 0.6, 2.2, 3.7]), "Y": _RNG.normal(size=(6, 2)),
        "s": np.array([0.3, -0.5]), "T": np.array([[-0.5, 5.0], [1.0, 2.7]]),
    }),
    "integrate": (INTEGRATE, {
        "x": np.array([0.0, 0.7, 1.5, 2.0, 3.1, 4.0]), "y": _RNG.normal(size=6),
        "Y": _RNG.normal(size=(2, 6)), "Z": _RNG.normal(size=(7, 2)), "s": np.array(0.3),
    }),
    "spatial.distance": (DISTANCE, {
        "A": _RNG.normal(size=(3, 2)), "B": _RNG.normal(size=(4, 2)),
    }),
    "special": (SPECIAL, {
        "a": np.array([0.7, 2.3]), "b": np.array([1.6, 0.8]), "x": np.array([0.4, 3.1]),
        "p": np.array([0.2, 0.85]),
    }),
}  # fmt: skip


# -- distributions ---------------------------------------------------------------------------------

SHAPES = {
    "beta": (2.0, 3.5), "chi2": (3.0,), "gamma": (2.2,), "lognorm": (0.7,), "t": (3.3,),
    "bernoulli": (0.3,), "binom": (7.0, 0.3), "nbinom": (3.0, 0.4), "poisson": (2.5,),
}  # fmt: skip
_DENSITIES = ["logpdf", "pdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf"]
_MASSES = ["logpmf", "pmf"]
_CONTINUOUS = lines_of("beta  cauchy  chi2  expon  gamma  laplace  lognorm  norm  t  uniform")
_PLACES = np.array([0.3, 0.45, 0.8])


def _distributions() -> list[Call]:
    found = []
    for name in _CONTINUOUS:
        shapes = {f"shape{i}": np.array(s) for i, s in enumerate(SHAPES.get(name, ()))}
        given = {"x": _PLACES, **shapes, "loc": np.array(0.1), "scale": np.array(1.3)}
        for method in _DENSITIES:
            line = f"l.{name}.{method}({', '.join(given)})"
            found.append(Call(f"stats.{name}", line, given))
        fixed = "".join(f"{s}, " for s in SHAPES.get(name, ()))
        line = f"l.{name}.rvs({fixed}loc, scale, 3, random_state=1)"
        given = {"loc": np.array(0.1), "scale": np.array(1.3)}
        found.append(Call(f"stats.{name}", line, given, options={"single": False}))
    for name in ("bernoulli", "binom", "nbinom", "poisson"):
        *fixed, last = SHAPES[name]
        given = {"p": np.array(last)}
        for method in _MASSES + ["cdf", "sf"] * (name == "poisson"):
            k = "[0.0, 1.0]" if name == "bernoulli" else "[0.0, 1.0, 3.0, 7.0]"
            line = f"l.{name}.{method}({k}, {''.join(f'{s}, ' for s in fixed)}p)"
            found.append(Call(f"stats.{name}", line, given, options={"single": False}))
    given = {"n": np.array(2.5), "p": np.array(0.4)}
    found += _expressions("stats", "l.nbinom.pmf([0, 4], n, p)", given)
    given = {"x": np.array([[0.1, 0.5], [1.0, -1.0]]), "m": np.array([0.1, 0.2])}
    given["c"] = np.array([[2.0, 0.3], [0.3, 1.0]])
    for call in ("logpdf(x, m, c)", "pdf(x, m, c)", "rvs(m, np.eye(2), 3, random_state=1)"):
        found += _expressions("stats", f"l.multivariate_normal.{call}", given)
    return found


# -- solutions -------------------------------------------------------------------------------------

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
    "args": (lambda p, l: l.fsolve(lambda x, a: two(a)(x), [1.0, 1.0], (p,), xtol=1e-13),
        [1.0, 0.5]),
    "root": (lambda p, l: l.root(two(p), [1.0, 1.0], tol=1e-13).x, [1.0, 0.5]),
    "newton": (lambda p, l: l.newton(cubic(p), 2.0, tol=1e-13), [1.0, 0.5]),
    "slope": (lambda p, l: l.newton(cubic(p), 2.0, fprime=lambda x: 3 * x**2 - p[0], tol=1e-13),
        [1.0, 0.5]),
    "root_scalar": (lambda p, l: l.root_scalar(cubic(p), bracket=[0.0, 5.0]).root, [1.0, 0.5]),
    "bounded": (
        lambda p, l: (
            l.minimize(
                lambda x: bowl(x, p),
                [0.4, 0.1],
                bounds=[(0, 0.5), (None, None)],
                tol=1e-14,
                jac=None if l.__name__.startswith("wengert") else "3-point",
            ).x
        ),
        [1.0, 5.0],
    ),
    "Bounds": (
        lambda p, l: (
            l.minimize(
                lambda x: bowl(x, p),
                [0.2, 0.1],
                bounds=l.Bounds(-9.0, [0.3, 9.0]),
                tol=1e-14,
                jac=None if l.__name__.startswith("wengert") else "3-point",
            ).x
        ),
        [1.0, 5.0],
    ),
    "least_squares": (lambda p, l: l.least_squares(residual, [1.0, 1.0], args=(p,), **TIGHT).x,
        [1.0, 0.1]),
    "soft": (
        lambda p, l: (
            l.least_squares(
                residual, [1.0, 1.0], "3-point", args=(p,), loss="soft_l1", f_scale=0.2, **TIGHT
            ).x
        ),
        [1.0, 0.1],
    ),
    "leastsq": (lambda p, l: l.leastsq(residual, [2.0, 1.0], (p,), xtol=1e-13, ftol=1e-13)[0],
        [1.0, 0.1]),
    "curve_fit": (lambda p, l: l.curve_fit(model, T, p[0] * DATA + p[1] * T, ftol=1e-13)[0],
        [1.0, 0.1]),
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
}  # fmt: skip


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
    "y0": (lambda p, l: l.solve_ivp(prey, (0, 1), p, args=([1.0, 0.5],), **LIMITS).y[:, -1],
        [1.1, 0.7]),
    "t_span": (
        lambda p, l: l.solve_ivp(prey, (p[0], p[1]), [1.0, 0.5], args=([1.1, 0.7],), **LIMITS).y[
            :, -1
        ],
        [0.1, 1.2],
    ),
    "t_eval": (lambda p, l: l.solve_ivp(lambda t, y: -y * t, (0, 2), [1.0], t_eval=p, **LIMITS).y,
        [0.3, 1.2]),
    "backwards": (
        lambda p, l: (
            l.solve_ivp(
                lambda t, y: prey(t, y, p), (1, 0), [1.0, 0.5], t_eval=PLACES[::-1], **LIMITS
            ).y
        ),
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
    "quad": (lambda p, l: l.quad(lambda x, a: np.exp(-a * x) * p[1] * x, 0, 2, (p[0],))[0],
        [1.1, 0.7]),
    "infinite": (lambda p, l: l.quad(lambda x: np.exp(-p[0] * (x - p[1]) ** 2), -np.inf, np.inf)[0],
        [1.1, 0.7]),
    "half": (lambda p, l: l.quad(lambda x: np.exp(-p[0] * (x - p[1]) ** 2), -np.inf, p[1] ** 2)[0],
        [1.1, 0.7]),
    "far": (lambda p, l: l.quad(lambda x: p[1] * np.exp(-p[0] * x), p[0], np.inf)[0], [1.1, 0.7]),
    "ends": (lambda p, l: l.quad(lambda x: np.exp(-x), p[1], p[0])[0], [0.4, 1.7]),
    "singular": (lambda p, l: l.quad(lambda x: p[0] * np.log(x) / np.sqrt(x + p[1]), 0, 1)[0],
        [1.1, 0.7]),
}  # fmt: skip


#: Rows whose keys are not the functions' names.
_NAMES = {
    **dict.fromkeys(("args",), "fsolve"), "slope": "newton", "bounded": "minimize",
    "soft": "least_squares", "covariance": "curve_fit", "errors": "curve_fit",
    "curve_fit by closure": "curve_fit", "stiff": "odeint",
    **dict.fromkeys(("infinite", "half", "far", "ends", "singular"), "quad"),
}  # fmt: skip
#: Programs whose values in SciPy are less precise, by the differences that SciPy takes.
_ROUGH = ("soft", "least_squares", "leastsq", "covariance", "curve_fit by closure")
#: Programs that are differentiated twice.
_TWICE = ("RK23", "Radau", "quad", "half", "far", "ends", "infinite", "singular")


def _programs() -> list[Call]:
    found = []
    for key, (program, p) in SOLUTIONS.items():
        near = (1e-6, 1e-4 if key in _ROUGH else 1e-5, 1e-3)
        options = {"single": False, "rtol": 1e-4, "atol": 1e-5, "fast_mode": True}
        name = f"optimize.{_NAMES.get(key, key)}"
        found.append(Call(name, program, {"p": np.array(p)}, near, options=options))
    for key, (program, p) in ODES.items():
        name = _NAMES.get(key, key if key in ("odeint", "quad") else "solve_ivp")
        twice = key in _TWICE
        near = (1e-6, 1e-5, 1e-4 if twice else 0)
        options = {"single": False, "rtol": 1e-4, "atol": 1e-5, "order": 1, "fast_mode": True}
        given = {"p": np.array(p)}
        found.append(Call(f"integrate.{name}", program, given, near, 1e-3, options))
    return found


ROWS = [
    *(
        row
        for module, (lines, given) in GIVEN.items()
        for row in _expressions(module, lines, given)
    ),
    *_distributions(),
    *_programs(),
]

# -- hard points -----------------------------------------------------------------------------------


def _beta(a: Any, b: Any, x: Any) -> Any:
    return mpmath.betainc(a, b, 0, x, regularized=True)


def _gamma(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True)


def _student(df: Any, t: Any) -> Any:
    tail = _beta(df / 2, mpmath.mpf(1) / 2, df / (df + t * t)) / 2
    return tail if t < 0 else 1 - tail


#: Functions of mpmath, and points at which rules have lost digits, or might.
HARD: dict[str, tuple[Callable[..., Any], list[tuple[float, ...]]]] = {
    "betainc": (_beta, [
        (1e-3, 20, 1e-3), (0.01, 20, 1e-3), (3, 1e-3, 0.999), (1e-3, 1e-3, 0.5), (0.05, 0.7, 0.1),
        (1e-3, 0.02, 0.1), (0.5, 0.02, 0.9), (0.09, 1e-3, 0.9), (500, 300, 0.64), (2, 3, 1e-8),
    ]),
    "betaincc": (lambda a, b, x: 1 - _beta(a, b, x), [(1e-3, 20, 1e-3), (3, 1e-3, 0.999)]),
    "gammainc": (_gamma, [
        (1e-3, 0.3), (1e-3, 1e-5), (0.05, 3.0), (0.7, 1e-8), (50, 40), (500, 560), (2.5, 30),
    ]),
    "gammaincc": (lambda a, x: 1 - _gamma(a, x), [(0.05, 3.0), (500, 560), (2.5, 30)]),
    "stdtr": (_student, [(0.3, -2.0), (3.3, 2.9), (3.3, -3.1), (30, -20), (200, 1.5)]),
    "hyp2f1": (mpmath.hyp2f1, [(0.5, 1.5, 2.5, 0.99), (0.5, 1.5, 2.5, 0.0), (1, 2, 3, -8.0)]),
    "ellipk": (mpmath.ellipk, [(0.0,), (0.999,), (-50.0,)]),
    "ellipe": (mpmath.ellipe, [(0.0,), (0.999,), (-50.0,)]),
    "jv": (mpmath.besselj, [(1.5, 40.0), (0, 1e-3), (10, 2.0)]),
    "yv": (mpmath.bessely, [(1.5, 40.0), (2, 0.1)]),
    "iv": (mpmath.besseli, [(1.5, 40.0), (2, 1e-3)]),
    "kv": (mpmath.besselk, [(1.5, 40.0), (2, 1e-3)]),
}  # fmt: skip
