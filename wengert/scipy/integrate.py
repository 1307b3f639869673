"""``scipy.integrate``: solutions of ODEs and integrals, by all that their functions use.

>>> from wengert.scipy import integrate
>>> def decayed(rate):
...     return integrate.solve_ivp(lambda t, y: -rate * y, (0.0, 1.0), [2.0], rtol=1e-8).y[0, -1]
>>> round(wg.grad(decayed)(0.5), 5)
-1.21306
>>> round(wg.grad(lambda p: integrate.quad(lambda x: wg.exp(-p * x), 0, wg.inf)[0])(2.0), 6)
-0.25
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import wengert as wg
from wengert.protocols.reductions import trapezoid as _trapezoid
from wengert.scipy.implicit import is_tracked, residuals, solution
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
from wengert.scipy.stepping import METHODS, Trajectory
from wengert.tape.callbacks import call_back
from wengert.tape.tensor import Tensor

_scipy = scipy_module("integrate")


class _Field:
    """A user's function of time and state, as SciPy calls it."""

    def __init__(self, label: str, function: Any, args: Any, given: Any) -> None:
        self.label, self.function, self.args, self.given = label, function, args, given
        self.tensors, self.tracked = gives_tensors(given), False
        self.answers = self.tensors

    def __call__(self, t: Any, y: Any) -> Any:
        if self.tensors:
            y = like_first(self.given, np.array(y))
        result = call_back(self.function, t, y, *self.args)
        self.tracked = self.tracked or is_tracked(result)
        self.answers = self.answers or bool(tensors_in([result]))
        return values_of(result, self.label)

    def on_tape(self, t: Any, y: Tensor) -> Tensor:
        """The same on Tensors."""
        found = residuals(call_back(self.function, t, y, *self.args))
        return wg.reshape(found, y.shape)


# -- ordinary differential equations ---------------------------------------------------------------


@stands
def solve_ivp(
    fun: Any,
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    **options: Any,
) -> Any:
    """Solve an initial value problem by SciPy's steps, and differentiate these."""
    label = "scipy.integrate.solve_ivp"
    args = () if args is None else tuple(args)
    field = _Field(label, fun, args, (t_span, y0, t_eval, args))
    options = {key: _option(label, key, x, field) for key, x in options.items()}
    span = [float(values_of(t, label)) for t in t_span]
    start = np.atleast_1d(np.asarray(values_of(y0, label)))
    places = None if t_eval is None else np.asarray(values_of(t_eval, label))
    found_events = None if events is None else _events(field, events)

    def run(method: Any, dense: bool) -> Any:
        return _scipy.solve_ivp(
            field, span, start, method, places, dense, found_events,
            vectorized and not field.tensors, **options,
        )  # fmt: skip

    outside = any(map(tracked, tensors_in((t_span, y0, t_eval))))
    found = run(method, dense_output)
    watched = field.tracked or any(event.tracked for event in _listed(found_events))
    if not (watched or outside):
        if field.answers:
            found.t, found.y = (like_first(field.given, x) for x in (found.t, found.y))
        return found
    if not isinstance(method, str) or method not in _scipy._ivp.ivp.METHODS:
        raise NotImplementedError(f"{label}: a method= of your own is not differentiated")
    kind = method
    if method not in METHODS:
        stiff = method == "BDF" or _is_stiff(field, start, np.linspace(*span, 50), options)
        kind = "Radau" if stiff else "DOP853"
    if kind != method or not dense_output:
        found = run(kind, True)
    if found.sol is None:
        raise RuntimeError(f"{label}: {found.message}")
    path = _trajectory(field, found.sol, t_span, y0, kind)
    given = (t_span, y0, t_eval)
    if events is not None:
        _move_events(found, _listed(events), path, field, span)
    ended = None if found.status != 1 else _ended(found, _listed(events))
    if t_eval is None:
        steps = [path.steps[0].t, *(step.t + step.h for step in path.steps)]
        steps = steps if ended is None else [*steps[:-1], ended]
        found.t = wg.stack(list(inexact(*steps))) if any(map(tracked, steps)) else found.t
        states = [step.y for step in path.steps]
        found.y = wg.stack([*states, path.last if ended is None else path(ended)], axis=-1)
    else:
        n = len(found.t)
        found.t = inexact(t_eval)[0][:n] if tensors_in([t_eval]) else found.t
        found.y = path(found.t) if n else like_first(given, np.zeros((start.size, 0)))
    found.sol = path if dense_output else None
    return found


def _option(label: str, name: str, x: Any, field: _Field) -> Any:
    """An option of SciPy's solvers: numbers without derivatives, or a Jacobian as SciPy calls it."""
    if not callable(x):
        return plain(x, label, name)
    slope = _Field(label, x, field.args, field.given)
    return slope


def _listed(events: Any) -> list[Any]:
    return [] if events is None else list(events) if isinstance(events, list | tuple) else [events]


def _events(field: _Field, events: Any) -> Any:
    found = []
    for event in _listed(events):
        called: Any = _Field(field.label, event, field.args, field.given)
        called.terminal = getattr(event, "terminal", False)
        called.direction = getattr(event, "direction", 0)
        found.append(called)
    return found


def _trajectory(field: _Field, sol: Any, t_span: Any, y0: Any, kind: str) -> Trajectory:
    """The steps that SciPy has taken, on Tensors."""
    times: list[tuple[Any, Any]] = [(one.t_old, one.t) for one in sol.interpolants]
    if any(map(tracked, tensors_in([t_span]))):
        first, last = (inexact(t)[0] for t in t_span)
        a, b = (float(values_of(t, field.label)) for t in t_span)
        times = [
            tuple(first + (last - first) * ((t - a) / (b - a)) for t in pair)  # type: ignore[misc]
            for pair in times
        ]
    (start,) = inexact(y0) if tensors_in([y0]) else (like_first(field.given, np.asarray(y0)),)
    (start,) = inexact(start)
    start = wg.reshape(start, (-1,))
    return Trajectory(METHODS[kind], field.on_tape, times, start, field.label)


def _move_events(found: Any, events: list[Any], path: Trajectory, field: _Field, span: Any) -> None:
    """Times and states of events, as they move with what the solution depends on."""
    for k, event in enumerate(events):
        times = [
            solution(
                field.label,
                lambda t, event=event: call_back(event, t, path(t), *field.args),
                t,
                field.given,
            )
            for t in found.t_events[k]
        ]
        if times:
            found.t_events[k] = wg.stack(times)
            found.y_events[k] = wg.stack([path(t) for t in times])


def _ended(found: Any, events: list[Any]) -> Any:
    """The time of the event that has ended the solution."""
    ends = [
        t[-1]
        for t, e in zip(found.t_events, events, strict=True)
        if len(t) and getattr(e, "terminal", 0)
    ]
    values = [float(values_of(t, "")) for t in ends]
    return ends[int(np.argmin(np.abs(np.array(values) - found.t[-1])))]


def _is_stiff(field: Any, y0: Any, t: Any, options: dict[str, Any]) -> bool:
    """Whether LSODA changes to its method for stiff equations."""
    limits = {key: options[key] for key in ("rtol", "atol") if key in options}
    _, info = _scipy.odeint(field, y0, t, tfirst=True, full_output=True, **limits)
    return 2 in info["mused"]


@stands
def odeint(
    func: Any,
    y0: Any,
    t: Any,
    args: Any = (),
    Dfun: Any = None,
    col_deriv: Any = 0,
    full_output: Any = 0,
    *more: Any,
    tfirst: bool = False,
    **options: Any,
) -> Any:
    """Solve an initial value problem; with Tensors by the steps of DOP853, or of Radau."""
    label = "scipy.integrate.odeint"
    args = args if isinstance(args, tuple) else (args,)
    ordered = func if tfirst else lambda t, y, *args: func(y, t, *args)
    field = _Field(label, ordered, args, (y0, t, args))
    start = np.atleast_1d(np.asarray(values_of(y0, label), dtype=np.float64))
    times = np.asarray(values_of(t, label), dtype=np.float64)
    options = {key: plain(x, label, key) for key, x in options.items()}
    if Dfun is not None:
        turned = Dfun if tfirst else lambda t, y, *args: Dfun(y, t, *args)
        Dfun = _Field(label, turned, args, field.given)
    found, info = _scipy.odeint(
        field, start, times, (), Dfun, col_deriv, True, *more, tfirst=True, **options
    )
    if not (field.tracked or any(map(tracked, tensors_in((y0, t))))):
        y = like_first(field.given, found) if field.answers else found
        return (y, info) if full_output else y
    kind = "Radau" if 2 in info["mused"] else "DOP853"
    limits = {key: options.get(key) for key in ("rtol", "atol")}
    limits = {key: 1.49012e-8 if x is None else x for key, x in limits.items()}
    span = (times[0], times[-1])
    solved = _scipy.solve_ivp(field, span, start, kind, dense_output=True, **limits)
    if solved.status < 0:
        raise RuntimeError(f"{label}: {solved.message}")
    ends = (t[0], t[-1]) if tensors_in([t]) else span
    path = _trajectory(field, solved.sol, ends, y0, kind)
    at = inexact(t)[0] if tensors_in([t]) else times
    y = wg.matrix_transpose(path(at, label))
    return (y, info) if full_output else y


# -- integrals of functions ------------------------------------------------------------------------

_NODES, _WEIGHTS = (x / 2 for x in np.polynomial.legendre.leggauss(21))
_NODES = _NODES + 0.5
_U = np.arange(-3.2, 3.25, 0.1)
#: The double exponential rule, for intervals with singular ends.
_FINE = 1 / (1 + np.exp(-np.pi * np.sinh(_U)))
_FINE_WEIGHTS = 0.1 * np.pi * np.cosh(_U) * _FINE * (1 / (1 + np.exp(np.pi * np.sinh(_U))))


@stands
def quad(func: Any, a: Any, b: Any, args: Any = (), full_output: Any = 0, **options: Any) -> Any:
    """Integrate a function; derivatives are by Gauss' rule on SciPy's intervals."""
    label = "scipy.integrate.quad"
    args = args if isinstance(args, tuple) else (args,)
    given = (a, b, args)
    tensors = gives_tensors(given)
    seen = answers = False
    options = {key: plain(x, label, key) for key, x in options.items()}

    def called(x: float) -> Any:
        nonlocal seen, answers
        result = call_back(func, like_first(given, np.float64(x)) if tensors else x, *args)
        seen, answers = seen or is_tracked(result), answers or isinstance(result, Tensor)
        return np.asarray(values_of(result, label))[()]

    ends = [float(values_of(x, label)) for x in (a, b)]
    found = _scipy.quad(called, *ends, full_output=1, **options)
    outside = any(map(tracked, tensors_in((a, b))))
    if not (seen or outside):
        if not full_output and len(found) > 3:
            _scipy.quad(called, *ends, **options)  # which warns
        value = like_first(given, found[0]) if tensors or answers else found[0]
        return (value, *found[1:]) if full_output else (value, found[1])
    if any(options.get(key) is not None for key in ("weight", "complex_func", "points")):
        raise NotImplementedError(f"{label}: weight=, points= and complex_func= have no derivative")
    total = _on_intervals(lambda x: call_back(func, x, *args), a, b, ends, found[2], given, tensors)
    error = abs(float(values_of(total, label)) - found[0])
    limits = (options.get("epsabs", 1.49e-8), options.get("epsrel", 1.49e-8) * abs(found[0]))
    if not error <= 10 * max(found[1], *limits):
        raise RuntimeError(
            f"{label}: Gauss' rule on SciPy's intervals differs from the integral by {error:.1e}, "
            "so that its derivative would not be precise: divide the range at what is singular"
        )
    value = total + (found[0] - like_first(given, values_of(total, label)))
    return (value, *found[1:]) if full_output else (value, found[1])


def _on_intervals(
    f: Any, a: Any, b: Any, ends: list[float], info: Any, given: Any, tensors: bool
) -> Tensor:
    """The sum over the intervals that SciPy has chosen."""
    moving = any(map(tracked, tensors_in((a, b))))
    low, high = (inexact(a)[0], inexact(b)[0]) if moving else ends
    infinite = [np.isinf(end) for end in ends]
    sign = -1.0 if ends[1] < ends[0] else 1.0
    if sign < 0:
        low, high, ends, infinite = high, low, ends[::-1], infinite[::-1]
    total: Any = 0.0

    def at(x: Any, weight: Any) -> None:
        nonlocal total
        if tensors and not isinstance(x, Tensor):
            x = like_first(given, np.float64(x))
        total = total + wg.reshape(residuals(f(x)), ()) * weight

    last = info["last"]
    for left, right in zip(info["alist"][:last], info["blist"][:last], strict=True):
        fine = last > 5 and not any(infinite) and (left == ends[0] or right == ends[1])
        rule = (_FINE, _FINE_WEIGHTS) if fine else (_NODES, _WEIGHTS)
        for node, weight in zip(*rule, strict=True):
            s, w = float(left + (right - left) * node), float((right - left) * weight)
            if s in ends:
                continue  # too near to tell
            if not any(infinite):
                part = (s - ends[0]) / (ends[1] - ends[0])
                at(low + (high - low) * part, (high - low) * (w / (ends[1] - ends[0])))
                continue
            far, w = (1 - s) / s, w / s**2
            if not infinite[0]:
                at(low + far, w)
            elif not infinite[1]:
                at(high - far, w)
            else:
                at(far, w)
                at(-far, w)
    return total * sign  # type: ignore[no-any-return]


@stands
def dblquad(func: Any, a: Any, b: Any, gfun: Any, hfun: Any, args: Any = (), **options: Any) -> Any:
    """Integrate a function of ``y`` and ``x``, by one integral within another."""

    def within(x: Any) -> Any:
        low, high = (f(x) if callable(f) else f for f in (gfun, hfun))
        return quad(lambda y: func(y, x, *args), low, high, **options)[0]

    return quad(within, a, b, **options)


@stands
def fixed_quad(func: Any, a: Any, b: Any, args: Any = (), n: int = 5) -> Any:
    """Integrate a function of arrays by Gauss' rule."""
    if not (tensors_in((a, b, args)) or gives_tensors(())):
        found = _scipy.fixed_quad(func, a, b, args, n)
        return found
    places, weights = np.polynomial.legendre.leggauss(n)
    low, high, t = inexact(a, b, places) if tensors_in((a, b)) else (a, b, like_first(args, places))
    x = (high - low) * (t + 1) / 2 + low
    y = residuals(func(x, *args))
    return (high - low) / 2 * wg.sum(y * like_first([y], weights), axis=-1), None


# -- integrals of data -----------------------------------------------------------------------------


def _spaces(y: Any, x: Any, dx: Any, axis: int) -> tuple[Tensor, Tensor]:
    """Data with the axis last, and the distances along it."""
    if x is None:
        data, dx = inexact(y, dx)
        data = wg.moveaxis(data, axis, -1)
        return data, dx * wg.ones((data.shape[-1] - 1,), dtype=data.dtype)
    data, places = inexact(y, x)
    if places.ndim > 1:
        places = wg.moveaxis(places, axis, -1)
    return wg.moveaxis(data, axis, -1), places[..., 1:] - places[..., :-1]


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """Integrate data by trapezoids."""
    return _trapezoid(inexact(y)[0], x, dx, axis)


def cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Tensor:
    """Integrals of data up to each place, by trapezoids."""
    data, h = _spaces(y, x, dx, axis)
    found = wg.cumulative_sum(h * (data[..., 1:] + data[..., :-1]) / 2, axis=-1)
    if initial is not None:
        found = wg.concat([0 * data[..., :1] + initial, found], axis=-1)
    return wg.moveaxis(found, -1, axis)


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """Integrate data by Simpson's rule, with Cartwright's last interval if they are even in number."""
    data, h = _spaces(y, x, dx, axis)
    n = data.shape[-1]
    if n < 3:
        return wg.sum(h * (data[..., 1:] + data[..., :-1]) / 2, axis=-1)
    last: Any = 0.0
    if n % 2 == 0:
        h0, h1 = h[..., -2], h[..., -1]
        last = data[..., -1] * (2 * h1**2 + 3 * h0 * h1) / (6 * (h0 + h1))
        last = last + data[..., -2] * (h1**2 + 3 * h0 * h1) / (6 * h0)
        last = last - data[..., -3] * h1**3 / (6 * h0 * (h0 + h1))
        data, h = data[..., :-1], h[..., :-1]
    h0, h1 = h[..., ::2], h[..., 1::2]
    ratio, whole = h0 / h1, h0 + h1
    parts = data[..., :-2:2] * (2 - 1 / ratio) + data[..., 2::2] * (2 - ratio)
    parts = whole / 6 * (parts + data[..., 1::2] * whole * whole / (h0 * h1))
    return wg.sum(parts, axis=-1) + last


_OWN: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        cumulative_trapezoid,
        dblquad,
        fixed_quad,
        odeint,
        quad,
        simpson,
        solve_ivp,
        trapezoid,
    )  # fmt: skip
}
globals().update(namespace("integrate", _OWN))
