"""``scipy.optimize``: solutions are differentiated implicitly, by all that the function uses.

>>> from wengert.scipy import optimize
>>> def equilibrium(p):
...     return optimize.fsolve(lambda x: [x[0] + p * x[1] - 4, x[0] * x[1] - p], [1.0, 1.0])[1]
>>> round(wg.grad(equilibrium)(1.0), 4)
0.3094
"""

import inspect
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import optimize as _scipy

import wengert as wg
from wengert import optimize as _tape
from wengert.func.jacobians import jacobian
from wengert.ops.operands import operands
from wengert.scipy.implicit import Called, Residual, as_tensor, gradient_of
from wengert.scipy.naming import inexact, like_first, plain, publish, tensors_in, tracked, values_of
from wengert.tape.observers import observed_by
from wengert.tape.tensor import Tensor

_INFINITE = (-np.inf, np.inf)


class _Result(_scipy.OptimizeResult):  # type: ignore[misc]
    """What SciPy has found, less the fields that lose derivatives."""

    lost = ("fjac", "grad", "hess", "hess_inv", "jac", "qtf", "r")

    def __missing__(self, key: str) -> Any:
        if key not in self.lost:
            raise KeyError(key)
        raise TypeError(
            f"scipy.optimize: the field {key!r} of a result has no derivative: compute it of "
            "the solution, or pass detached Tensors"
        )


def _derived(found: Any) -> Any:
    return _Result({key: x for key, x in found.items() if key not in _Result.lost})


def _tuple(args: Any) -> tuple[Any, ...]:
    return args if isinstance(args, tuple) else (args,)


# -- equations -------------------------------------------------------------------------------------


def _solver(name: str, points: int) -> Callable[..., Any]:
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
            found = _derived(found) if called.tracked and name == "root" else found
            found[field] = called.solved(found[field], residual)
            return found
        x, *more = found if isinstance(found, tuple) else (found,)
        x = called.solved(x, residual)
        if more and called.tracked and isinstance(more[0], dict):
            more[0] = _derived(more[0] | ({"root": x} if "root" in more[0] else {}))
        return (x, *more) if more else x

    solve.__name__, solve.__doc__ = name, theirs.__doc__
    return solve


# -- minima ----------------------------------------------------------------------------------------


def _make_bounds(lb: Any = -np.inf, ub: Any = np.inf, keep_feasible: Any = False) -> Any:
    """SciPy's bounds, or the same fields with Tensors."""
    own = SimpleNamespace if tensors_in(lb, ub) else _scipy.Bounds
    return own(lb=lb, ub=ub, keep_feasible=keep_feasible)


class _Bounds:
    """Lower and upper bounds, which a solution that is at some of them moves with."""

    def __init__(self, bounds: Any, n: int, label: str) -> None:
        low, high = _sides(bounds)
        self.edges = [wg.broadcast_to(wg.astype(x, "float64"), (n,)) for x in operands(low, high)]
        self.values = tuple(values_of(edge, label) for edge in self.edges)

    def within(self, x: Any, gradient: Residual, called: Called) -> Residual:
        """The equations of a minimum ``x``, which bounds hold where the slope leads outside."""
        at = [np.abs(x - side) <= 1e-8 * (1 + np.abs(x)) for side in self.values]
        if np.any(at) and called.tracked:
            slope = values_of(gradient(like_first(called.given, x)), called.label)
            at = [here & (sign * slope >= 0) for here, sign in zip(at, (1, -1), strict=True)]

        def inside(place: Tensor) -> Any:
            r = gradient(place)
            for edge, here in zip(self.edges, at, strict=True):
                if np.any(here):
                    mask = like_first([r], here)
                    r = wg.where(mask, place - wg.where(mask, edge, 0.0), r)
            return r

        return inside


def _sides(bounds: Any) -> Any:
    return (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds or _INFINITE


def _split_pairs(pairs: Any) -> Any:
    """Lower and upper bounds of pairs of these."""
    ends = zip(zip(*pairs, strict=True), _INFINITE, strict=True)
    return [[end if x is None else x for x in side] for side, end in ends]


def _constraint_values(constraints: Any, x: Any) -> Iterator[Any]:
    """The values of constraints."""
    single = isinstance(constraints, dict) or hasattr(constraints, "lb")
    for one in [constraints] if single else constraints:
        if isinstance(one, dict):
            yield one["fun"](x, *_tuple(one.get("args", ())))
        else:  # others have arrays of numbers alone
            yield one.fun(x) if hasattr(one, "fun") else 0.0


def _wrap_constraints(constraints: Any, called: Called) -> Any:
    """Constraints whose functions give SciPy values."""
    if isinstance(constraints, dict):
        return {**constraints, "fun": called.other(constraints["fun"])}
    if isinstance(constraints, list | tuple):
        return [_wrap_constraints(one, called) for one in constraints]
    return constraints


def minimize(
    fun: Any, x0: Any, args: Any = (), method: Any = None, jac: Any = None, hess: Any = None,
    hessp: Any = None, bounds: Any = None, constraints: Any = (), tol: Any = None,
    callback: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    """Minimise a function; where the program computes with Tensors, the tape gives gradients."""
    label, args = "scipy.optimize.minimize", _tuple(args)
    called = Called(label, fun, (x0, args), pair=jac)
    start = np.atleast_1d(np.array(values_of(x0, label), float)).ravel()
    pairs = bounds if hasattr(bounds, "lb") or bounds is None else _split_pairs(bounds)
    edges = _Bounds(pairs, start.size, label)
    rest = {"constraints": constraints, "tol": tol, "options": options, "callback": callback}
    keep = plain(getattr(bounds, "keep_feasible", False), label, "keep_feasible")
    rest["bounds"] = None if bounds is None else _scipy.Bounds(*edges.values, keep)
    if jac is None and hess is None and hessp is None and called.tensors:
        found = _tape.minimize(fun, like_first(called.given, start), args, method, **rest)
    else:
        rest["constraints"] = _wrap_constraints(constraints, called)
        derivatives = [called.other(one) for one in (jac, hess, hessp)]
        found = _scipy.minimize(called, start, args, method, *derivatives, **rest)
    x = values_of(found.x, label)
    place = like_first(called.given, x) if called.tensors else x

    def value(x: Any) -> Any:
        result = fun(x, *args)
        return result[0] if called.pair else result

    limits = [*_constraint_values(constraints, place)]
    if called.tensors:  # the tape's minimiser records nothing
        with observed_by(called):
            called.tracked = tracked(value(place))
    called.tracked = called.tracked or tracked(*edges.edges, *limits)
    if called.tracked and limits:
        raise NotImplementedError(
            f"{label}: solutions under constraints= are not differentiated: write them into the "
            "parameters, or use bounds="
        )
    found = _derived(found) if called.tracked else found
    found.x = called.solved(x, edges.within(x, gradient_of(value), called))
    found.fun = as_tensor(value(found.x)) if called.tracked else found.fun
    for key in {"jac", "grad"} & found.keys():
        found[key] = values_of(found[key], label)
    return found


# -- least squares ---------------------------------------------------------------------------------

#: The functions of squared residuals by which `least_squares` takes outliers, as costs.
_LOSSES: dict[str, Callable[[Any], Any]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (wg.sqrt(1 + z) - 1),
    "huber": lambda z: wg.where(z <= 1, z, 2 * wg.sqrt(wg.where(z <= 1, 1.0, z)) - 1),
    "cauchy": wg.log1p,
    "arctan": wg.atan,
}


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
        return as_tensor(fun(x, *args, **kwargs))

    def slopes(x: Any, *args: Any, **kwargs: Any) -> Any:
        return values_of(jacobian(residual)(like_first(called.given, np.array(x))), label)

    by_tape = called.tensors and isinstance(jac, str) and jac == "2-point"
    options |= {"args": args, "kwargs": kwargs, "loss": loss, "f_scale": f_scale}
    jac = slopes if by_tape else called.other(jac)
    found = _scipy.least_squares(called, start, jac, edges.values, *more, **options)
    called.tracked = called.tracked or tracked(*edges.edges)
    if called.tracked and loss not in _LOSSES:
        raise NotImplementedError(f"{label}: a loss= of your own is not differentiated")

    def cost(x: Tensor) -> Any:
        return f_scale**2 * wg.sum(_LOSSES[loss]((residual(x) / f_scale) ** 2)) / 2

    found.x = called.solved(found.x, edges.within(found.x, gradient_of(cost), called))
    if called.tracked:
        found = _derived(found)
        found.fun, found.cost = residual(found.x), cost(found.x)
    return found


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
    half = gradient_of(lambda x: wg.sum(as_tensor(func(x, *args)) ** 2) / 2)
    return (called.solved(found[0], half), *found[1:])


def curve_fit(
    f: Any, xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None,
    absolute_sigma: bool = False, check_finite: Any = None, bounds: Any = _INFINITE,
    method: Any = None, jac: Any = None, *, full_output: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Fit a curve: the parameters and their covariance are differentiated by data and closures."""
    label, given = "scipy.optimize.curve_fit", (xdata, ydata, p0, sigma)
    data = np.asarray(xdata) if isinstance(xdata, list) and not tensors_in(xdata) else xdata

    def curve(p: Any, x: Any) -> Any:  # of the parameters together, as `Called` gives them
        return f(data if tensors_in(data) else x, *(wg.unstack(p) if called.tensors else p))

    called = Called(label, curve, given)
    called.tracked = tracked(*given)
    if called.tensors and options.get("nan_policy") is not None:
        raise NotImplementedError(f"{label}: nan_policy= is not for Tensors: leave the numbers out")

    def model(x: Any, *p: Any) -> Any:
        return called(p, x)

    own = inspect.signature(f)
    if not any(p.kind is p.VAR_POSITIONAL for p in own.parameters.values()):
        model.__signature__ = own  # type: ignore[attr-defined]  # by which SciPy counts
    slope = (lambda x, *p: values_of(jac(data, *p), label)) if callable(jac) else jac
    values, sides = ([values_of(x, label) for x in group] for group in (given, _sides(bounds)))
    called.tracked = called.tracked or tracked(*_sides(bounds))
    found = _scipy.curve_fit(
        model, *values, absolute_sigma, check_finite, sides, method, slope,
        full_output=full_output, **options,
    )  # fmt: skip
    popt = found[0]
    if not called.tracked:
        return (called.in_kind(popt), called.in_kind(found[1]), *found[2:])
    if full_output or options.get("loss", "linear") != "linear":
        raise NotImplementedError(f"{label}: full_output=True and loss= are not differentiated")

    def residual(p: Tensor) -> Any:
        y, *rest = inexact(ydata, *([] if sigma is None else [sigma]))
        r = as_tensor(f(data, *wg.unstack(p))) - y
        if rest and rest[0].ndim == 2:
            return wg.linalg.solve(wg.linalg.cholesky(rest[0]), wg.reshape(r, (-1,)))
        return wg.reshape(r / rest[0] if rest else r, (-1,))

    half = gradient_of(lambda p: wg.sum(residual(p) ** 2) / 2)
    edges = _Bounds(bounds, popt.size, label)
    best = called.solved(popt, edges.within(popt, half, called))
    if not np.isfinite(found[1]).all():  # as of no more data than parameters
        return best, like_first(called.given, found[1])
    rows = jacobian(residual)(best)
    cov = wg.linalg.inv(rows.T @ rows)
    if not absolute_sigma:
        r = residual(best)
        cov = cov * (wg.sum(r**2) / (r.size - popt.size))
    return best, cov


_POINTS = {"bisect": 2, "brenth": 2, "brentq": 2, "ridder": 2, "toms748": 2}
_POINTS |= {"fsolve": 1, "newton": 1, "root": 1, "root_scalar": 0}
_OWN: dict[str, Any] = {name: _solver(name, points) for name, points in _POINTS.items()}
_STANDS = " ".join([*_POINTS, "curve_fit least_squares leastsq minimize"])
_OWN |= {"Bounds": _make_bounds, "NonlinearConstraint": _scipy.NonlinearConstraint}
publish(globals(), _OWN, _STANDS)
