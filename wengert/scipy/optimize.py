"""``scipy.optimize``: solutions are differentiated implicitly, by all that the function uses.

>>> from wengert.scipy import optimize
>>> def equilibrium(p):
...     return optimize.fsolve(lambda x: [x[0] + p * x[1] - 4, x[0] * x[1] - p], [1.0, 1.0])[1]
>>> round(wg.grad(equilibrium)(1.0), 4)
0.3094
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import wengert as wg
from wengert import optimize as _tape
from wengert.func.jacobians import jacobian
from wengert.ops.operands import operands
from wengert.scipy.implicit import Called, gradient_of, residuals, solution
from wengert.scipy.naming import (
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
_INFINITE = (-np.inf, np.inf)


#: Fields of results that have no derivative here.
_LOST = ("fjac", "grad", "hess", "hess_inv", "jac", "qtf", "r")


class _Result(_scipy.OptimizeResult):  # type: ignore[misc, name-defined]
    """What SciPy has found, less the fields that lose derivatives."""

    def __missing__(self, key: str) -> Any:
        if key in _LOST:
            raise TypeError(
                f"scipy.optimize: the field {key!r} of a result has no derivative: compute it of "
                "the solution, or pass detached Tensors"
            )
        raise KeyError(key)


def _without_lost(found: Any) -> Any:
    return _Result({key: x for key, x in found.items() if key not in _LOST})


def _tuple(args: Any) -> tuple[Any, ...]:
    return args if isinstance(args, tuple) else (args,)


# -- equations -------------------------------------------------------------------------------------


def _solver(name: str, points: int = 1) -> Callable[..., Any]:
    """A solver of equations: ``points`` is the number of arguments after the function."""
    theirs, label = getattr(_scipy, name), f"scipy.optimize.{name}"

    def solve(*args: Any, **options: Any) -> Any:
        bound = inspect.signature(theirs).bind(*args, **options)
        given = bound.arguments
        (first, f), *_ = given.items()
        args = given["args"] = _tuple(given.get("args", ()))
        pair = True in (given.get("jac"), given.get("fprime"))
        called = given[first] = Called(label, f, tuple(given.values()), pair=pair)
        for key in {"fprime", "fprime2", "jac"} & given.keys():
            given[key] = called.other(given[key])
        for key in {*[*given][1 : 1 + points], "x0", "x1", "bracket"} & given.keys():
            given[key] = values_of(given[key], label)
        found = theirs(*bound.args, **bound.kwargs)

        def residual(x: Tensor) -> Any:
            value = f(x, *args)
            return value[0] if called.pair else value

        field = {"root": "x", "root_scalar": "root"}.get(name)
        if field is not None:
            found = _without_lost(found) if called.tracked and name == "root" else found
            found[field] = called.solved(found[field], residual)
            return found
        x = called.solved(found[0] if isinstance(found, tuple) else found, residual)
        if isinstance(found, tuple) and called.tracked and isinstance(found[1], dict):
            root = {"root": x} if "root" in found[1] else {}
            found = (x, _without_lost({**found[1], **root}), *found[2:])
        return (x, *found[1:]) if isinstance(found, tuple) else x

    solve.__name__ = solve.__qualname__ = name
    solve.__doc__, solve.__wrapped__ = theirs.__doc__, theirs  # type: ignore[attr-defined]
    return stands(solve)  # type: ignore[no-any-return]


# -- minima ----------------------------------------------------------------------------------------


class _Bounds:
    """Lower and upper bounds, which a solution that is at some of them moves with."""

    def __init__(self, bounds: Any, n: int, label: str) -> None:
        self.label, self.given = label, bounds
        low, high = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds or _INFINITE
        spread = [wg.broadcast_to(wg.astype(x, "float64"), (n,)) for x in operands(low, high)]
        self.edges = spread
        self.values = tuple(values_of(edge, label) for edge in spread)
        self.tracked = any(map(tracked, spread))

    def within(self, x: Any, residual: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
        """The equations of a solution ``x``."""
        x = np.asarray(x)
        at = [np.abs(x - side) <= 1e-8 * (1 + np.abs(x)) for side in self.values]

        def inside(place: Tensor) -> Any:
            r = residual(place)
            for edge, here in zip(self.edges, at, strict=True):
                if np.any(here):
                    mask = like_first([r], here)
                    r = wg.where(mask, place - wg.where(mask, edge, 0.0), r)
            return r

        return inside


def _limits(constraints: Any) -> list[Callable[[Any], Any]]:
    """The functions of constraints."""
    single = isinstance(constraints, dict) or hasattr(constraints, "lb")
    found: list[Callable[[Any], Any]] = []
    for one in (constraints,) if single else constraints:
        if isinstance(one, dict):
            extra = _tuple(one.get("args", ()))
            found.append(partial(lambda f, args, x: f(x, *args), one["fun"], extra))
        else:  # others have arrays of numbers alone
            found.append(getattr(one, "fun", lambda x: 0.0))
    return found


def _plainly(constraints: Any, called: Called) -> Any:
    """Constraints whose functions give SciPy values."""
    if isinstance(constraints, dict):
        return {**constraints, "fun": Called(called.label, constraints["fun"], called.given)}
    if isinstance(constraints, list | tuple):
        return [_plainly(one, called) for one in constraints]
    return constraints


@stands
def minimize(
    fun: Any, x0: Any, args: Any = (), method: Any = None, jac: Any = None, hess: Any = None,
    hessp: Any = None, bounds: Any = None, constraints: Any = (), tol: Any = None,
    callback: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    """Minimise a function; where the program computes with Tensors, the tape gives gradients."""
    label, args = "scipy.optimize.minimize", _tuple(args)
    called = Called(label, fun, (x0, args), pair=jac)
    start = np.atleast_1d(np.array(values_of(x0, label), float)).ravel()
    pairs = bounds if hasattr(bounds, "lb") or bounds is None else _columns(bounds)
    edges = _Bounds(pairs, start.size, label)
    rest = {"constraints": constraints, "tol": tol, "options": options, "callback": callback}
    rest["bounds"] = _scipy.Bounds(*edges.values) if edges.tracked else bounds
    if jac is None and hess is None and hessp is None and called.tensors:
        found = _tape.minimize(fun, like_first(called.given, start), args, method, **rest)
    else:
        rest["constraints"] = _plainly(constraints, called)
        derivatives = [called.other(one) for one in (jac, hess, hessp)]
        found = _scipy.minimize(called, start, args, method, *derivatives, **rest)
    x = values_of(found.x, label)
    place = like_first(called.given, x) if called.tensors else x

    def value(x: Any) -> Any:
        result = fun(x, *args)
        return result[0] if called.pair else result

    limits = [limit(place) for limit in _limits(constraints)]
    if called.tensors:  # the tape's minimiser records nothing
        called.tracked = _is_tracked(value(place))
    called.tracked = called.tracked or edges.tracked or _is_tracked(limits)
    if called.tracked and limits:
        raise NotImplementedError(
            f"{label}: solutions under constraints= are not differentiated: write them into the "
            "parameters, or use bounds="
        )
    found = _without_lost(found) if called.tracked else found
    found.x = called.solved(x, edges.within(x, gradient_of(value)))
    found.fun = residuals(value(found.x)) if called.tracked else found.fun
    for key in {"jac", "grad"} & found.keys():
        found[key] = values_of(found[key], label)
    return found


def _columns(pairs: Any) -> Any:
    """Lower and upper bounds of pairs of these."""
    ends = zip(*pairs, strict=True)
    return [
        [end if x is None else x for x in side] for side, end in zip(ends, _INFINITE, strict=True)
    ]


def _is_tracked(result: Any) -> bool:
    return any(map(tracked, tensors_in([result])))


# -- least squares ---------------------------------------------------------------------------------

#: The functions of squared residuals by which `least_squares` takes outliers, as costs.
_LOSSES: dict[str, Callable[[Any], Any]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (wg.sqrt(1 + z) - 1),
    "huber": lambda z: wg.where(z <= 1, z, 2 * wg.sqrt(wg.where(z <= 1, 1.0, z)) - 1),
    "cauchy": wg.log1p,
    "arctan": wg.atan,
}


@stands
def least_squares(
    fun: Any, x0: Any, jac: Any = "2-point", bounds: Any = _INFINITE, *more: Any, args: Any = (),
    kwargs: Any = None, loss: Any = "linear", f_scale: Any = 1.0, **options: Any,
) -> Any:  # fmt: skip
    """Fit by non-linear least squares."""
    label, args, kwargs = "scipy.optimize.least_squares", _tuple(args), kwargs or {}
    called = Called(label, fun, (x0, args, kwargs))
    start = np.atleast_1d(np.array(values_of(x0, label), float))
    edges, f_scale = _Bounds(bounds, start.size, label), plain(f_scale, label, "f_scale")

    def residual(x: Any) -> Tensor:
        return residuals(fun(x, *args, **kwargs))

    def slopes(x: Any, *args: Any, **kwargs: Any) -> Any:
        return values_of(jacobian(residual)(like_first(called.given, np.array(x))), label)

    by_tape = called.tensors and isinstance(jac, str) and jac == "2-point"
    options |= {"args": args, "kwargs": kwargs, "loss": loss, "f_scale": f_scale}
    jac = slopes if by_tape else called.other(jac)
    found = _scipy.least_squares(called, start, jac, edges.values, *more, **options)
    called.tracked = called.tracked or edges.tracked
    if called.tracked and loss not in _LOSSES:
        raise NotImplementedError(f"{label}: a loss= of your own is not differentiated")

    def cost(x: Tensor) -> Any:
        return f_scale**2 * wg.sum(_LOSSES[loss]((residual(x) / f_scale) ** 2)) / 2

    found.x = called.solved(found.x, edges.within(found.x, gradient_of(cost)))
    if called.tracked:
        found = _without_lost(found)
        found.fun, found.cost = residual(found.x), cost(found.x)
    return found


@stands
def leastsq(
    func: Any, x0: Any, args: Any = (), Dfun: Any = None, full_output: Any = False, *more: Any,
    **options: Any,
) -> Any:  # fmt: skip
    """Fit by MINPACK's least squares."""
    label, args = "scipy.optimize.leastsq", _tuple(args)
    called = Called(label, func, (x0, args))
    x0, slope = values_of(x0, label), called.other(Dfun)
    found = _scipy.leastsq(called, x0, args, slope, full_output, *more, **options)
    if full_output and called.tracked:
        raise NotImplementedError(f"{label}: cov_x is not differentiated: use curve_fit")
    half = gradient_of(lambda x: wg.sum(residuals(func(x, *args)) ** 2) / 2)
    return (called.solved(found[0], half), *found[1:])


@stands
def curve_fit(
    f: Any, xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None,
    absolute_sigma: bool = False, check_finite: Any = None, bounds: Any = _INFINITE,
    method: Any = None, jac: Any = None, *, full_output: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Fit a curve: the parameters and their covariance are differentiated by data and closures."""
    label, given = "scipy.optimize.curve_fit", (xdata, ydata, p0, sigma)
    called = Called(label, f, given)
    called.tracked = _is_tracked(given)
    data = np.asarray(xdata) if isinstance(xdata, list) and not tensors_in(xdata) else xdata
    if called.tensors and options.get("nan_policy") is not None:
        raise NotImplementedError(f"{label}: nan_policy= is not for Tensors: leave the numbers out")

    def model(x: Any, *p: Any) -> Any:
        p = tuple(like_first(given, q) for q in p) if called.tensors else p
        result = call_back(f, data if tensors_in([data]) else x, *p)
        called.tracked = called.tracked or _is_tracked(result)
        called.answers = called.answers or isinstance(result, Tensor)
        return values_of(result, label)

    own = inspect.signature(f)
    if not any(p.kind is p.VAR_POSITIONAL for p in own.parameters.values()):
        model.__signature__ = own  # type: ignore[attr-defined]  # by which SciPy counts
    slope = (lambda x, *p: values_of(jac(data, *p), label)) if callable(jac) else jac
    values = [values_of(x, label) for x in given]
    found = _scipy.curve_fit(
        model, *values, absolute_sigma, check_finite, plain(bounds, label, "bounds"), method,
        slope, full_output=full_output, **options,
    )  # fmt: skip
    popt = found[0]
    if not called.tracked:
        return (called.in_kind(popt), called.in_kind(found[1]), *found[2:])
    if full_output or options.get("loss", "linear") != "linear":
        raise NotImplementedError(f"{label}: full_output=True and loss= are not differentiated")

    def residual(p: Tensor) -> Any:
        y, *rest = inexact(ydata, *([] if sigma is None else [sigma]))
        r = residuals(f(data, *wg.unstack(p))) - y
        if rest and rest[0].ndim == 2:
            return wg.linalg.solve(wg.linalg.cholesky(rest[0]), wg.reshape(r, (-1,)))
        return wg.reshape(r / rest[0] if rest else r, (-1,))

    half = gradient_of(lambda p: wg.sum(residual(p) ** 2) / 2)
    best = solution(label, _Bounds(bounds, popt.size, label).within(popt, half), popt, given)
    rows = jacobian(residual)(best)
    cov = wg.linalg.inv(rows.T @ rows)
    if not absolute_sigma:
        r = residual(best)
        cov = cov * (wg.sum(r**2) / (r.size - popt.size))
    return best, cov


_BRACKETED = ("brentq", "brenth", "ridder", "bisect", "toms748")
_OWN: dict[str, Any] = {
    **{name: _solver(name, 2) for name in _BRACKETED},
    **{name: _solver(name) for name in ("fsolve", "newton", "root")},
    **{one.__name__: one for one in (curve_fit, least_squares, leastsq, minimize)},
    "root_scalar": _solver("root_scalar", 0),
    "NonlinearConstraint": _scipy.NonlinearConstraint,
}
globals().update(namespace("optimize", _OWN))
