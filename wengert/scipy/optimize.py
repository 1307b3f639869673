"""``scipy.optimize``: solutions are differentiated implicitly, by all that the function uses.

>>> from wengert.scipy import optimize
>>> def equilibrium(p):
...     return optimize.fsolve(lambda x: [x[0] + p * x[1] - 4, x[0] * x[1] - p], [1.0, 1.0])[1]
>>> round(wg.grad(equilibrium)(1.0), 4)
0.3094
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import wengert as wg
from wengert import optimize as _tape
from wengert.func.jacobians import jacobian
from wengert.ops.operands import operands
from wengert.scipy.implicit import gradient_of, is_tracked, residuals, solution
from wengert.scipy.naming import (
    gives_tensors,
    inexact,
    like_first,
    namespace,
    plain,
    scipy_module,
    stands,
    tensors_in,
    tracked,
    values_of,
)
from wengert.tape.callbacks import call_back
from wengert.tape.tensor import Tensor

_scipy = scipy_module("optimize")


class _Called:
    """A user's function as SciPy calls it: with Tensors if the program has some, or arrays."""

    def __init__(self, label: str, function: Any, given: Any, pair: bool = False) -> None:
        self.label, self.function, self.given, self.pair = label, function, given, pair
        self.tensors, self.tracked = gives_tensors(given), False
        self.answers = self.tensors  # whether the function has returned Tensors, too

    def __call__(self, x: Any, *args: Any, **keywords: Any) -> Any:
        if self.tensors:
            x = like_first(self.given, np.array(x, dtype=np.float64))
        result = call_back(self.function, x, *args, **keywords)
        self.tracked = self.tracked or is_tracked(result)
        self.answers = self.answers or bool(tensors_in([result]))
        if self.pair:
            return tuple([values_of(part, self.label) for part in result])
        return values_of(result, self.label)

    def solved(self, x: Any, residual: Callable[[Tensor], Any]) -> Any:
        """The solution that SciPy has found, in the kind of the program, with derivatives."""
        if self.tracked:
            return solution(self.label, residual, x, self.given)
        return like_first(self.given, x) if self.answers else x


def _wrapped(label: str, given: Any, function: Any) -> Any:
    return _Called(label, function, given) if callable(function) else function


def _values(label: str, name: str, x: Any) -> Any:
    """A starting point or an option; of a Tensor its values, on which no solution depends."""
    if isinstance(x, list | tuple):
        return values_of(x, label)
    return values_of(x, f"{label}'s {name}")


def _tuple(args: Any) -> tuple[Any, ...]:
    return args if isinstance(args, tuple) else (args,)


# -- equations -------------------------------------------------------------------------------------


@stands
def root(
    fun: Any, x0: Any, args: Any = (), method: str = "hybr", jac: Any = None, **options: Any
) -> Any:
    """Solve a system of equations."""
    args = _tuple(args)
    called = _Called("scipy.optimize.root", fun, (x0, args), jac is True)
    jac = _wrapped(called.label, called.given, jac)
    x0 = _values(called.label, "x0", x0)
    found = _scipy.root(called, x0, args, method, jac, **options)
    if jac is True:
        found.x = called.solved(found.x, lambda x: fun(x, *args)[0])
    else:
        found.x = called.solved(found.x, lambda x: fun(x, *args))
    return found


@stands
def fsolve(
    func: Any,
    x0: Any,
    args: Any = (),
    fprime: Any = None,
    full_output: bool = False,
    *more: Any,
    **options: Any,
) -> Any:
    """Solve a system of equations by MINPACK."""
    args = _tuple(args)
    called = _Called("scipy.optimize.fsolve", func, (x0, args))
    fprime = _wrapped(called.label, called.given, fprime)
    x0 = _values(called.label, "x0", x0)
    found = _scipy.fsolve(called, x0, args, fprime, full_output, *more, **options)
    x = found[0] if full_output else found
    x = called.solved(x, lambda x: func(x, *args))
    return (x, *found[1:]) if full_output else x


def _scalar_root(name: str, points: int) -> Callable[..., Any]:
    """A solver of one equation: ``points`` is the number of arguments that are places."""
    theirs = getattr(_scipy, name)
    label = f"scipy.optimize.{name}"

    def solve(*args: Any, **options: Any) -> Any:
        bound = inspect.signature(theirs).bind(*args, **options)
        given = bound.arguments
        (first, f), *_ = given.items()
        args = given["args"] = _tuple(given.get("args", ()))
        called = _Called(label, f, tuple(given.values()), given.get("fprime") is True)
        for key in {"fprime", "fprime2"} & given.keys():
            given[key] = _wrapped(label, called.given, given[key])
        for key in {*[*given][1 : 1 + points], "x0", "x1", "bracket"} & given.keys():
            given[key] = _values(label, key, given[key])
        given[first] = called
        found = theirs(*bound.args, **bound.kwargs)

        def residual(x: Tensor) -> Any:
            value = f(x, *args)
            return value[0] if called.pair else value

        if name == "root_scalar":
            found.root = called.solved(found.root, residual)
            return found
        pair = isinstance(found, tuple)
        x = called.solved(found[0] if pair else found, residual)
        return (x, *found[1:]) if pair else x

    solve.__name__ = solve.__qualname__ = name
    solve.__doc__, solve.__wrapped__ = theirs.__doc__, theirs  # type: ignore[attr-defined]
    return stands(solve)  # type: ignore[no-any-return]


# -- minima ----------------------------------------------------------------------------------------


def _edges(bounds: Any, n: int) -> list[Any]:
    """Lower and upper bounds as arrays or Tensors of ``n`` numbers, or None."""
    if bounds is None:
        return [None, None]
    if hasattr(bounds, "lb"):
        low, high = bounds.lb, bounds.ub
    else:
        low = [-np.inf if pair[0] is None else pair[0] for pair in bounds]
        high = [np.inf if pair[1] is None else pair[1] for pair in bounds]
    return [_spread(low, n), _spread(high, n)]


def _spread(x: Any, n: int) -> Any:
    (x,) = operands(x)
    return wg.broadcast_to(wg.astype(x, "float64"), (n,))


def _within(edges: list[Any], label: str, x: Any, residual: Callable[[Tensor], Any]) -> Any:
    """Equations of a solution at some of its bounds, which it moves with."""
    sides = [None if e is None else values_of(e, label) for e in edges]
    at = [
        np.zeros(np.shape(x), bool)
        if side is None
        else np.abs(np.asarray(x) - side) <= 1e-8 * (1 + np.abs(np.asarray(x)))
        for side in sides
    ]
    if not np.any(at):
        return residual

    def inside(place: Tensor) -> Tensor:
        r = residual(place)
        for edge, here in zip(edges, at, strict=True):
            if np.any(here):
                free = wg.where(like_first([r], here), edge, 0.0)
                r = wg.where(like_first([r], here), place - free, r)
        return r  # type: ignore[no-any-return]

    return inside


def _plain_bounds(bounds: Any, edges: list[Any], label: str) -> Any:
    if not tensors_in(vars(bounds).values() if hasattr(bounds, "lb") else [bounds]):
        return bounds
    low, high = (values_of(edge, label) for edge in edges)
    return _scipy.Bounds(low, high, getattr(bounds, "keep_feasible", False))


def _limits(constraints: Any) -> list[Callable[[Any], Any]]:
    """The functions of constraints."""
    single = isinstance(constraints, dict) or hasattr(constraints, "lb")
    found: list[Callable[[Any], Any]] = []
    for one in (constraints,) if single else constraints:
        if isinstance(one, dict):
            found.append(lambda x, one=one: one["fun"](x, *one.get("args", ())))
        elif hasattr(one, "fun"):
            found.append(lambda x, one=one: one.fun(x) - one.lb + one.ub * 0)
        else:
            found.append(lambda x: 0.0)
    return found


@stands
def minimize(
    fun: Any,
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: Any = None,
    callback: Any = None,
    options: Any = None,
) -> Any:
    """Minimise a function; where the program computes with Tensors, the tape gives gradients."""
    label, args = "scipy.optimize.minimize", _tuple(args)
    called = _Called(label, fun, (x0, args), jac is True)
    start = np.atleast_1d(np.asarray(_values(label, "x0", x0), dtype=np.float64)).ravel()
    edges = _edges(bounds, start.size)
    rest = {"constraints": constraints, "tol": tol, "options": options}
    rest |= {"bounds": _plain_bounds(bounds, edges, label), "callback": callback}
    if jac is None and hess is None and hessp is None and called.tensors:
        found = _tape.minimize(fun, like_first(called.given, start), args, method, **rest)
    else:
        jac, hess, hessp = (_wrapped(label, called.given, one) for one in (jac, hess, hessp))
        found = _scipy.minimize(called, start, args, method, jac, hess, hessp, **rest)
    x = values_of(found.x, label)

    def value(x: Any) -> Any:
        result = fun(x, *args)
        return result[0] if called.pair else result

    within = _limits(constraints) if called.tensors or called.tracked else []
    here = like_first(called.given, x) if called.tensors else x
    limits = [residuals(function(here)) for function in within]
    called.tracked = is_tracked([*limits, *edges]) or (
        is_tracked(value(here)) if called.tensors else called.tracked
    )
    if called.tracked and within:
        raise NotImplementedError(
            f"{label}: solutions under constraints= are not differentiated: write them into the "
            "parameters, or use bounds="
        )
    found.x = called.solved(x, _within(edges, label, x, gradient_of(value)))
    if called.tracked:
        found.fun = residuals(value(found.x))
    for key in {"jac", "grad"} & found.keys():
        found[key] = values_of(found[key], label)
    return found


@stands
def minimize_scalar(
    fun: Any, bracket: Any = None, bounds: Any = None, args: Any = (), **options: Any
) -> Any:
    """Minimise a function of one number, within bounds that are no Tensors."""
    label, args = "scipy.optimize.minimize_scalar", _tuple(args)
    called = _Called(label, fun, (bracket, args))
    bracket, bounds = plain(bracket, label, "bracket"), plain(bounds, label, "bounds")
    found = _scipy.minimize_scalar(called, bracket, bounds, args, **options)
    found.x = called.solved(found.x, gradient_of(lambda x: fun(x, *args)))
    if called.tracked:
        found.fun = fun(found.x, *args)
    return found


# -- least squares ---------------------------------------------------------------------------------

#: The functions of squared residuals by which `least_squares` takes outliers, as costs.
_LOSSES: dict[str, Callable[[Any], Any]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (wg.sqrt(1 + z) - 1),
    "huber": lambda z: wg.where(z <= 1, z, 2 * wg.sqrt(wg.where(z <= 1, 1.0, z)) - 1),
    "cauchy": lambda z: wg.log1p(z),
    "arctan": wg.atan,
}


@stands
def least_squares(
    fun: Any,
    x0: Any,
    jac: Any = "2-point",
    bounds: Any = (-np.inf, np.inf),
    *more: Any,
    args: Any = (),
    kwargs: Any = None,
    loss: Any = "linear",
    f_scale: Any = 1.0,
    **options: Any,
) -> Any:
    """Fit by non-linear least squares."""
    label, args, kwargs = "scipy.optimize.least_squares", _tuple(args), kwargs or {}
    called = _Called(label, fun, (x0, args, kwargs))
    start = np.atleast_1d(np.asarray(_values(label, "x0", x0), dtype=np.float64))
    low, high = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    edges = [_spread(low, start.size), _spread(high, start.size)]
    sides = tuple(values_of(edge, label) for edge in edges)
    f_scale = plain(f_scale, label, "f_scale")

    def residual(x: Any) -> Tensor:
        return residuals(fun(x, *args, **kwargs))

    if isinstance(jac, str) and jac == "2-point" and called.tensors:

        def slopes(x: Any, *args: Any, **kwargs: Any) -> Any:
            return values_of(jacobian(residual)(like_first(called.given, np.array(x))), label)

        jac = slopes
    else:
        jac = _wrapped(label, called.given, jac)
    more_options = {"args": args, "kwargs": kwargs, "loss": loss, "f_scale": f_scale, **options}
    found = _scipy.least_squares(called, start, jac, sides, *more, **more_options)
    if called.tracked and loss not in _LOSSES:
        raise NotImplementedError(f"{label}: a loss= of your own is not differentiated")

    def cost(x: Tensor) -> Tensor:
        return f_scale**2 * wg.sum(_LOSSES[loss]((residual(x) / f_scale) ** 2)) / 2

    called.tracked = called.tracked or any(map(tracked, edges))
    found.x = called.solved(found.x, _within(edges, label, found.x, gradient_of(cost)))
    if called.tracked:
        found.fun, found.cost = residual(found.x), cost(found.x)
    return found


@stands
def leastsq(
    func: Any, x0: Any, args: Any = (), Dfun: Any = None, full_output: Any = False, *more: Any,
    **options: Any,
) -> Any:  # fmt: skip
    """Fit by MINPACK's least squares."""
    label, args = "scipy.optimize.leastsq", _tuple(args)
    called = _Called(label, func, (x0, args))
    Dfun = _wrapped(label, called.given, Dfun)
    x0 = _values(label, "x0", x0)
    found = _scipy.leastsq(called, x0, args, Dfun, full_output, *more, **options)
    half = gradient_of(lambda x: wg.sum(residuals(func(x, *args)) ** 2) / 2)
    if full_output and called.tracked:
        raise NotImplementedError(
            f"{label}: cov_x of full_output=True is not differentiated: use curve_fit, or leave it"
        )
    return (called.solved(found[0], half), *found[1:])


@stands
def curve_fit(
    f: Any,
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    check_finite: Any = None,
    bounds: Any = (-np.inf, np.inf),
    method: Any = None,
    jac: Any = None,
    *,
    full_output: bool = False,
    **options: Any,
) -> Any:
    """Fit a curve: the parameters and their covariance are differentiated by data and closures."""
    label = "scipy.optimize.curve_fit"
    given = (xdata, ydata, p0, sigma)
    called = _Called(label, f, given)
    called.tracked = any(map(tracked, tensors_in(given)))
    if called.tensors and options.get("nan_policy") is not None:
        raise NotImplementedError(f"{label}: nan_policy= is not for Tensors: leave the numbers out")
    data = np.asarray(xdata) if isinstance(xdata, list) and not tensors_in(xdata) else xdata

    def model(x: Any, *p: Any) -> Any:
        p = tuple(like_first(given, q) for q in p) if called.tensors else p
        result = call_back(f, data if tensors_in([data]) else x, *p)
        called.tracked = called.tracked or is_tracked(result)
        called.answers = called.answers or bool(tensors_in([result]))
        return values_of(result, label)

    own = inspect.signature(f)
    if not any(p.kind is p.VAR_POSITIONAL for p in own.parameters.values()):
        model.__signature__ = own  # type: ignore[attr-defined]  # by which SciPy counts
    if callable(jac):
        slope = jac
        jac = lambda x, *p: values_of(slope(data, *p), label)  # noqa: E731
    bounds = plain(bounds, label, "bounds")
    found = _scipy.curve_fit(
        model, *[values_of(x, label) for x in given], absolute_sigma, check_finite, bounds, method, jac, full_output=full_output, **options,
    )  # fmt: skip
    popt, pcov = found[:2]
    if not called.tracked:
        return (*(like_first(given, x) if called.answers else x for x in (popt, pcov)), *found[2:])
    if full_output or options:
        raise NotImplementedError(f"{label}: full_output and {[*options]} are not differentiated")

    def residual(p: Tensor) -> Tensor:
        y, *rest = inexact(ydata, *([] if sigma is None else [sigma]))
        r = residuals(f(data, *wg.unstack(p))) - y
        if not rest:
            return wg.reshape(r, (-1,))
        s = rest[0]
        if s.ndim < 2:
            return wg.reshape(r / s, (-1,))
        chol = wg.linalg.cholesky(s)
        return wg.linalg.solve(chol, wg.reshape(r, (-1,)))

    low, high = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    edges = [_spread(low, popt.size), _spread(high, popt.size)]
    half = gradient_of(lambda p: wg.sum(residual(p) ** 2) / 2)
    best = solution(label, _within(edges, label, popt, half), popt, given)
    rows = jacobian(residual)(best)
    cov = wg.linalg.inv(rows.T @ rows)
    if not absolute_sigma:
        r = residual(best)
        cov = cov * (wg.sum(r**2) / (r.size - popt.size))
    return best, cov


_ROOTS = {"brentq": 2, "brenth": 2, "ridder": 2, "bisect": 2, "toms748": 2, "newton": 1}
_OWN: dict[str, Any] = {
    **{name: _scalar_root(name, points) for name, points in _ROOTS.items()},
    "root_scalar": _scalar_root("root_scalar", 0),
    "NonlinearConstraint": _scipy.NonlinearConstraint,
    **{
        one.__name__: one
        for one in (
            curve_fit,
            fsolve,
            least_squares,
            leastsq,
            minimize,
            minimize_scalar,
            root,
        )  # fmt: skip
    },
}
globals().update(namespace("optimize", _OWN))
