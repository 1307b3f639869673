"""``scipy.optimize``: solutions are differentiated implicitly, by all that the function uses.

>>> from wengert.scipy import optimize
>>> def equilibrium(p):
...     return optimize.fsolve(lambda x: [x[0] + p * x[1] - 4, x[0] * x[1] - p], [1.0, 1.0])[1]
>>> round(wg.grad(equilibrium)(1.0), 4)
0.3094
"""

import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

import numpy as np
from scipy import optimize as _scipy

import wengert as wg
from wengert import optimize as _tape
from wengert.func.jacobians import jacobian
from wengert.scipy.implicit import Called, Equations, as_tensor, gradient_of
from wengert.scipy.naming import inexact, like_first, plain, publish, tensors_in, tracked, values_of
from wengert.tape.grad_mode import enable_grad
from wengert.tape.observers import observed_by
from wengert.tape.tensor import Tensor

#: Fields of results that have no derivative: differentiable results are without them.
_LOST = ("fjac", "grad", "hess", "hess_inv", "jac", "qtf", "r")


def _without_lost(found: Any) -> Any:
    """A result, or a dict of further ones, without the fields that lose derivatives."""
    for key in _LOST:
        found.pop(key, None)
    return found


def _tuple(args: Any) -> tuple[Any, ...]:
    return args if isinstance(args, tuple) else (args,)


class _Search:
    """A call of one of SciPy's functions, with its arguments by name."""

    def __init__(self, name: str, args: Any, options: Any) -> None:
        self.theirs, self.label = getattr(_scipy, name), f"scipy.optimize.{name}"
        self.bound = inspect.signature(self.theirs).bind(*args, **options)
        given = self.given = self.bound.arguments
        (first, self.function), *_ = given.items()
        self.args = given["args"] = _tuple(given.get("args", ()))
        self.kwargs = given.get("kwargs") or {}
        self.pair = True in (given.get("jac"), given.get("fprime"))
        called = Called(self.label, self.function, tuple(given.values()), pair=self.pair)
        self.called = given[first] = called
        for key in {"Dfun", "fprime", "fprime2", "hess", "hessp", "jac"} & given.keys():
            given[key] = called.other(given[key])
        for key in {"a", "b", "bracket", "x0", "x1"} & given.keys():
            given[key] = values_of(given[key], self.label)
        for key in {"bounds", "f_scale"} & given.keys():
            given[key] = plain(given[key], self.label, key)

    def run(self) -> Any:
        return self.theirs(*self.bound.args, **self.bound.kwargs)

    def value(self, x: Any) -> Any:
        """The user's function."""
        found = self.function(x, *self.args, **self.kwargs)
        return found[0] if self.pair else found

    def least(self, found: Any, cost: Callable[[Tensor], Any]) -> Any:
        """A result with the least ``cost``, which moves unless bounds hold it."""
        called = self.called
        found.x = _least(called, found.x, cost, self.given.get("bounds"))
        if called.tracked:
            _without_lost(found).fun = as_tensor(self.value(found.x))
        return found


def _least(called: Called, x: Any, cost: Callable[[Tensor], Any], bounds: Any) -> Any:
    """The least solution; parameters that bounds hold are at these in its equations."""
    gradient = gradient_of(cost)
    if bounds is None:
        bounds = -np.inf, np.inf
    sides = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    low, high = (np.broadcast_to(np.asarray(side, float), x.shape) for side in sides)
    if not (called.tracked or called.compared) or not np.isfinite([low, high]).any():
        return called.solve(x, gradient)
    with enable_grad():
        known = Equations(gradient, like_first(called.given, x).detach())
        rows = values_of(known.rows(known.lifted is not None), called.label)
    held = _hold(values_of(known.run, called.label), rows, low - x, high - x, x, called.label)
    there = np.where(held > 0, high, np.where(held < 0, low, x))

    def inside(place: Tensor) -> Any:
        r = gradient(place)
        return wg.where(like_first([r], held != 0), place - like_first([r], there), r)

    return called.solve(x, inside, np.where(held[:, None] != 0, np.eye(x.size), rows))


def _hold(slope: Any, rows: Any, low: Any, high: Any, x: Any, label: str) -> Any:
    """Where bounds hold the least of a quadratic, beside which methods stop: -1 low, 1 high."""
    side, curved = np.where(slope > 0, -1, 1), np.abs(np.diag(rows))
    gap = np.where(side > 0, high, -low)
    held = np.where((np.abs(slope) > curved * gap) | (low == high), side, 0)
    for _ in range(10 + 2 * x.size):
        free, step = held == 0, np.where(held > 0, high, np.where(held < 0, low, 0.0))
        with suppress(np.linalg.LinAlgError):  # singular: there is no isolated solution
            step[free] = np.linalg.solve(rows[np.ix_(free, free)], -(slope + rows @ step)[free])
        push, last = -(slope + rows @ step), held
        out = (step > high).astype(int) - (step < low)
        held = np.where(free, out, np.where((push * held > 0) | (low == high), held, 0))
        if (held == last).all():
            break
    # What terms of higher order, and rounding, may change of the slope.
    unsure = np.abs(rows) @ (1e-3 * np.abs(step) + 1e-14 * np.abs(x))
    room = np.where(free, curved * np.fmin(step - low, high - step), np.abs(push))
    if (held != last).any() or ((room <= unsure) & (low != high)).any():
        why = "a bound begins to hold a parameter, so that there is no derivative"
        raise RuntimeError(f"{label}: {why}, or SciPy has not converged: lower its tolerances")
    return held


# -- equations -------------------------------------------------------------------------------------


def _solver(name: str) -> Callable[..., Any]:
    """A solver of equations, or of the least squares of some."""

    def solve(*args: Any, **options: Any) -> Any:
        search = _Search(name, args, options)
        called, found = search.called, search.run()
        residual: Any = search.value
        if name == "leastsq":
            residual = gradient_of(lambda x: wg.sum(as_tensor(search.value(x)) ** 2) / 2)
            if search.given.get("full_output") and called.tracked:
                raise NotImplementedError(f"{search.label}: cov_x is not differentiated: curve_fit")
        field = {"root": "x", "root_scalar": "root"}.get(name)
        if field is not None:
            found[field] = called.solve(found[field], residual)
            return _without_lost(found) if called.tracked else found
        x, *more = found if isinstance(found, tuple) else (found,)
        x = called.solve(x, residual)
        if more and called.tracked and isinstance(more[0], dict):
            _without_lost(more[0]).update({"root": x} if "root" in more[0] else {})
        return (x, *more) if more else x

    return solve


# -- minima ----------------------------------------------------------------------------------------


def _constraint_values(constraints: Any, x: Any) -> list[Any]:
    """The values of constraints; some have arrays of numbers alone."""
    if isinstance(constraints, list | tuple):
        return [_constraint_values(one, x) for one in constraints]
    if isinstance(constraints, dict):
        return [constraints["fun"](x, *_tuple(constraints.get("args", ())))]
    return [constraints.fun(x) if hasattr(constraints, "fun") else 0.0]


def minimize(*args: Any, **options: Any) -> Any:
    """Minimise a function; where the program computes with Tensors, the tape gives gradients."""
    search = _Search("minimize", args, options)
    called, given, label = search.called, search.given, search.label
    start = given["x0"] = np.atleast_1d(np.array(given["x0"], float)).ravel()
    bounds, constraints = given.get("bounds"), given.get("constraints", ())
    derivatives = [given.get(name) for name in ("jac", "hess", "hessp")]
    if called.tensors and derivatives == [None] * 3:
        words = {key: x for key, x in given.items() if key not in ("fun", "jac", "hess", "hessp")}
        words["x0"] = like_first(called.given, start)
        found = _tape.minimize(search.function, **words)
    else:
        given["constraints"] = plain(constraints, label, "constraints")
        found = search.run()
    for key in {"grad", "jac", "x"} & found.keys():
        found[key] = values_of(found[key], label)
    place = like_first(called.given, found.x) if called.tensors else found.x
    if called.tensors:  # the tape's minimiser records nothing
        with observed_by(called):
            called.tracked = tracked(search.value(place))
    if tracked(limits := _constraint_values(constraints, place)) or (limits and called.tracked):
        raise NotImplementedError(
            f"{label}: solutions under constraints= are not differentiated: write them into the "
            "parameters, or use bounds="
        )
    if bounds is not None and not hasattr(bounds, "lb"):
        given["bounds"] = np.array(bounds, float).T  # None is NaN, near which is nothing
    return search.least(found, search.value)


# -- least squares ---------------------------------------------------------------------------------

#: The functions of squared residuals by which `least_squares` takes outliers, as costs.
_LOSSES: dict[str, Callable[[Any], Any]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (wg.sqrt(1 + z) - 1),
    "huber": lambda z: wg.where(z <= 1, z, 2 * wg.sqrt(wg.where(z <= 1, 1.0, z)) - 1),
    "cauchy": wg.log1p,
    "arctan": wg.atan,
}


def least_squares(*args: Any, **options: Any) -> Any:
    """Fit by non-linear least squares."""
    search = _Search("least_squares", args, options)
    called, given, label = search.called, search.given, search.label
    given["x0"] = np.atleast_1d(np.array(given["x0"], float))
    loss, scale = given.get("loss", "linear"), given.get("f_scale", 1.0)

    def residual(x: Any) -> Tensor:
        return as_tensor(search.value(x))

    def cost(x: Any) -> Any:
        return scale**2 * wg.sum(_LOSSES[loss]((residual(x) / scale) ** 2)) / 2

    if called.tensors and given.get("jac", "2-point") == "2-point":
        given["jac"] = lambda x, *_, **__: values_of(
            jacobian(residual)(like_first(called.given, np.array(x))), label
        )
    found = search.run()
    if loss not in _LOSSES and called.tracked:
        raise NotImplementedError(f"{label}: a loss= of your own is not differentiated")
    found = search.least(found, cost)
    if called.tracked:
        found.cost = cost(found.x)
    return found


def curve_fit(f: Any, xdata: Any, ydata: Any, *args: Any, **options: Any) -> Any:
    """Fit a curve: the parameters and their covariance are differentiated by data and closures."""
    label, theirs = "scipy.optimize.curve_fit", _scipy.curve_fit
    bound = inspect.signature(theirs).bind(f, xdata, ydata, *args, **options)
    bound.apply_defaults()
    known, sigma = bound.arguments, bound.arguments["sigma"]
    given = (xdata, ydata, known["p0"], sigma)
    data = np.asarray(xdata) if isinstance(xdata, list) and not tensors_in(xdata) else xdata

    def curve(p: Any, x: Any) -> Any:  # of the parameters together, as `Called` gives them
        return f(data if tensors_in(data) else x, *(wg.unstack(p) if called.tensors else p))

    called = Called(label, curve, given)
    if called.abroad:
        data, ydata = (z if tensors_in(z) else like_first(given, z) for z in (data, ydata))
        sigma = sigma if sigma is None or tensors_in(sigma) else like_first(given, sigma)
    model = wraps(f)(lambda x, *p: called(p, x))  # SciPy counts the parameters
    names = ("xdata", "ydata", "p0", "sigma")
    known |= {"f": model, **{key: values_of(known[key], label) for key in names}}
    bounds = known["bounds"] = plain(known["bounds"], label, "bounds")
    if callable(jac := known["jac"]):
        known["jac"] = lambda x, *p: values_of(jac(data, *p), label)
    sums = [np.sum(known[key]) for key in ("xdata", "ydata")]
    holes = known["nan_policy"] == "omit" and np.isnan(sums).any()
    if not (holes and tracked(*given)):
        popt, pcov, *rest = theirs(*bound.args, **bound.kwargs)
    called.tracked = called.tracked or tracked(*given)
    if not called.tracked:
        return (called.in_kind(popt), called.in_kind(pcov), *rest)
    if holes or rest or known["kwargs"].get("loss", "linear") != "linear":
        told = "full_output=True, loss= and nan_policy='omit'"
        raise NotImplementedError(f"{label}: {told} are not differentiated")

    def residual(p: Tensor) -> Any:
        y, *errors = inexact(ydata, *([] if sigma is None else [sigma]))
        r = as_tensor(f(data, *wg.unstack(p))) - y
        if errors and errors[0].ndim == 2:
            return wg.linalg.solve(wg.linalg.cholesky(errors[0]), wg.reshape(r, (-1,)))
        return wg.reshape(r / errors[0] if errors else r, (-1,))

    best = _least(called, popt, lambda p: wg.sum(residual(p) ** 2) / 2, bounds)
    if not np.isfinite(pcov).all():  # as of no more data than parameters
        return best, like_first(called.given, pcov)
    rows = jacobian(residual)(best)
    cov = wg.linalg.inv(rows.T @ rows)
    if not known["absolute_sigma"]:
        r = residual(best)
        cov = cov * (wg.sum(r**2) / (r.size - popt.size))
    return best, cov


_NAMES = "bisect brenth brentq fsolve leastsq newton ridder root root_scalar toms748"
_OWN: dict[str, Any] = {name: _solver(name) for name in _NAMES.split()}
publish(globals(), _OWN | {"NonlinearConstraint": _scipy.NonlinearConstraint})
