"""``scipy.optimize``: solutions are differentiated implicitly, by all that the function uses.

>>> from wengert.scipy import optimize
>>> def equilibrium(p):
...     return optimize.fsolve(lambda x: [x[0] + p * x[1] - 4, x[0] * x[1] - p], [1.0, 1.0])[1]
>>> round(wg.grad(equilibrium)(1.0), 4)
0.3094
"""

import inspect
from collections.abc import Callable
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

    def __init__(self, found: Any, **own: Any) -> None:
        super().__init__({key: x for key, x in found.items() if key not in self.lost} | own)

    def __missing__(self, key: str) -> Any:
        if key not in self.lost:
            raise KeyError(key)
        raise TypeError(
            f"scipy.optimize: the field {key!r} of a result has no derivative: compute it of "
            "the solution, or pass detached Tensors"
        )


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

    def run(self) -> Any:
        """What SciPy finds."""
        return self.theirs(*self.bound.args, **self.bound.kwargs)

    def value(self, x: Any) -> Any:
        """The user's function."""
        found = self.function(x, *self.args, **self.kwargs)
        return found[0] if self.pair else found

    def within(self, found: Any, cost: Callable[[Tensor], Any], edges: "_Bounds") -> Any:
        """A result with the least ``cost`` within bounds, which moves."""
        called = self.called
        called.tracked = called.tracked or tracked(*edges.edges)
        x = called.solved(found.x, edges.within(found.x, gradient_of(cost), called))
        if called.tracked:
            return _Result(found, x=x, fun=as_tensor(self.value(x)))
        found.x = x
        return found


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
            found = _Result(found) if called.tracked and name == "root" else found
            found[field] = called.solved(found[field], residual)
            return found
        x, *more = found if isinstance(found, tuple) else (found,)
        x = called.solved(x, residual)
        if more and called.tracked and isinstance(more[0], dict):
            more[0] = _Result(more[0], **({"root": x} if "root" in more[0] else {}))
        return (x, *more) if more else x

    return solve


# -- minima ----------------------------------------------------------------------------------------


def _make_bounds(lb: Any = -np.inf, ub: Any = np.inf, keep_feasible: Any = False) -> Any:
    """SciPy's bounds, or the same fields with Tensors."""
    own = SimpleNamespace if tensors_in(lb, ub) else _scipy.Bounds
    return own(lb=lb, ub=ub, keep_feasible=keep_feasible)


def _sides(bounds: Any) -> Any:
    return (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds or _INFINITE


class _Bounds:
    """Lower and upper bounds, which a solution that is at some of them moves with."""

    def __init__(self, bounds: Any, n: int, label: str) -> None:
        low_high = operands(*_sides(bounds))
        self.edges = [wg.broadcast_to(wg.astype(x, "float64"), (n,)) for x in low_high]
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


def _constraint_values(constraints: Any, x: Any) -> list[Any]:
    """The values of constraints; some have arrays of numbers alone."""
    if isinstance(constraints, list | tuple):
        return [_constraint_values(one, x) for one in constraints]
    if isinstance(constraints, dict):
        return [constraints["fun"](x, *_tuple(constraints.get("args", ())))]
    return [constraints.fun(x) if hasattr(constraints, "fun") else 0.0]


def _wrap_constraints(constraints: Any, called: Called) -> Any:
    """Constraints whose functions give SciPy values."""
    if isinstance(constraints, dict):
        return {**constraints, "fun": called.other(constraints["fun"])}
    if isinstance(constraints, list | tuple):
        return [_wrap_constraints(one, called) for one in constraints]
    return constraints


def minimize(*args: Any, **options: Any) -> Any:
    """Minimise a function; where the program computes with Tensors, the tape gives gradients."""
    search = _Search("minimize", args, options)
    called, given, label = search.called, search.given, search.label
    start = given["x0"] = np.atleast_1d(np.array(given["x0"], float)).ravel()
    bounds, constraints = given.get("bounds"), given.get("constraints", ())
    if bounds is not None and not hasattr(bounds, "lb"):
        ends = zip(zip(*bounds, strict=True), _INFINITE, strict=True)
        bounds = _make_bounds(*([end if x is None else x for x in side] for side, end in ends))
    edges = _Bounds(bounds, start.size, label)
    if bounds is not None:
        keep = plain(bounds.keep_feasible, label, "keep_feasible")
        given["bounds"] = _scipy.Bounds(*edges.values, keep)
    derivatives = [given.get(name) for name in ("jac", "hess", "hessp")]
    if called.tensors and derivatives == [None] * 3:
        words = {key: x for key, x in given.items() if key not in ("fun", "jac", "hess", "hessp")}
        words["x0"] = like_first(called.given, start)
        found = _tape.minimize(search.function, **words)
    else:
        given["constraints"] = _wrap_constraints(constraints, called)
        found = search.run()
    for key in {"grad", "jac", "x"} & found.keys():
        found[key] = values_of(found[key], label)
    place = like_first(called.given, found.x) if called.tensors else found.x
    limits = _constraint_values(constraints, place)
    if called.tensors:  # the tape's minimiser records nothing
        with observed_by(called):
            called.tracked = tracked(search.value(place))
    if limits and (called.tracked or tracked(limits, *edges.edges)):
        raise NotImplementedError(
            f"{label}: solutions under constraints= are not differentiated: write them into the "
            "parameters, or use bounds="
        )
    return search.within(found, search.value, edges)


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
    start = given["x0"] = np.atleast_1d(np.array(given["x0"], float))
    edges, loss = _Bounds(given.get("bounds"), start.size, label), given.get("loss", "linear")
    given["bounds"] = edges.values
    scale = given["f_scale"] = plain(given.get("f_scale", 1.0), label, "f_scale")

    def residual(x: Any) -> Tensor:
        return as_tensor(search.value(x))

    if called.tensors and given.get("jac", "2-point") == "2-point":
        given["jac"] = lambda x, *_, **__: values_of(
            jacobian(residual)(like_first(called.given, np.array(x))), label
        )
    found = search.run()
    if loss not in _LOSSES and (called.tracked or tracked(*edges.edges)):
        raise NotImplementedError(f"{label}: a loss= of your own is not differentiated")

    def cost(x: Any) -> Any:
        return scale**2 * wg.sum(_LOSSES[loss]((residual(x) / scale) ** 2)) / 2

    found = search.within(found, cost, edges)
    if called.tracked:
        found.cost = cost(found.x)
    return found


def curve_fit(f: Any, xdata: Any, ydata: Any, *args: Any, **options: Any) -> Any:
    """Fit a curve: the parameters and their covariance are differentiated by data and closures."""
    label, theirs = "scipy.optimize.curve_fit", _scipy.curve_fit
    bound = inspect.signature(theirs).bind(f, xdata, ydata, *args, **options)
    bound.apply_defaults()
    known = bound.arguments
    p0, sigma, bounds, jac = (known[key] for key in ("p0", "sigma", "bounds", "jac"))
    given, more = (xdata, ydata, p0, sigma), known["kwargs"]
    data = np.asarray(xdata) if isinstance(xdata, list) and not tensors_in(xdata) else xdata

    def curve(p: Any, x: Any) -> Any:  # of the parameters together, as `Called` gives them
        return f(data if tensors_in(data) else x, *(wg.unstack(p) if called.tensors else p))

    called = Called(label, curve, given)
    if called.tensors and known["nan_policy"] is not None:
        raise NotImplementedError(f"{label}: nan_policy= is not for Tensors: leave the numbers out")

    def model(x: Any, *p: Any) -> Any:
        return called(p, x)

    own = inspect.signature(f)
    if not any(p.kind is p.VAR_POSITIONAL for p in own.parameters.values()):
        model.__signature__ = own  # type: ignore[attr-defined]  # by which SciPy counts
    names = ("xdata", "ydata", "p0", "sigma")
    known |= {"f": model, **{key: values_of(known[key], label) for key in names}}
    known["bounds"] = tuple(values_of(x, label) for x in _sides(bounds))
    if callable(jac):
        known["jac"] = lambda x, *p: values_of(jac(data, *p), label)
    popt, pcov, *rest = theirs(*bound.args, **bound.kwargs)
    edges = _Bounds(bounds, popt.size, label)
    called.tracked = called.tracked or tracked(*given, *edges.edges)
    if not called.tracked:
        return (called.in_kind(popt), called.in_kind(pcov), *rest)
    if rest or more.get("loss", "linear") != "linear":
        raise NotImplementedError(f"{label}: full_output=True and loss= are not differentiated")

    def residual(p: Tensor) -> Any:
        y, *errors = inexact(ydata, *([] if sigma is None else [sigma]))
        r = as_tensor(f(data, *wg.unstack(p))) - y
        if errors and errors[0].ndim == 2:
            return wg.linalg.solve(wg.linalg.cholesky(errors[0]), wg.reshape(r, (-1,)))
        return wg.reshape(r / errors[0] if errors else r, (-1,))

    half = gradient_of(lambda p: wg.sum(residual(p) ** 2) / 2)
    best = called.solved(popt, edges.within(popt, half, called))
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
_OWN |= {"Bounds": _make_bounds, "NonlinearConstraint": _scipy.NonlinearConstraint}
publish(globals(), _OWN)
