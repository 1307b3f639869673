"""``scipy.integrate``: solutions of ODEs and integrals, by all that their functions use.

>>> from wengert.scipy import integrate
>>> def decayed(rate):
...     return integrate.solve_ivp(lambda t, y: -rate * y, (0.0, 1.0), [2.0], rtol=1e-8).y[0, -1]
>>> round(wg.grad(decayed)(0.5), 5)
-1.21306
>>> round(wg.grad(lambda p: integrate.quad(lambda x: wg.exp(-p * x), 0, wg.inf)[0])(2.0), 6)
-0.25
"""

from functools import partial
from inspect import signature
from itertools import pairwise
from typing import Any

import numpy as np

import wengert as wg
from wengert.interpreters.duals import Dual
from wengert.protocols.reductions import trapezoid as _trapezoid
from wengert.scipy.implicit import Called, follow, pulled, put_on_tape, residuals
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
from wengert.scipy.stepping import METHODS, Trajectory
from wengert.tape.callbacks import call_back
from wengert.tape.node import is_lifted
from wengert.tape.tensor import Tensor, untracked

_scipy = scipy_module("integrate")


def _moves(*values: Any) -> bool:
    return any(map(tracked, tensors_in(values)))


# -- ordinary differential equations ---------------------------------------------------------------


@stands
def solve_ivp(
    fun: Any, t_span: Any, y0: Any, method: Any = "RK45", t_eval: Any = None,
    dense_output: bool = False, events: Any = None, vectorized: bool = False, args: Any = None,
    **options: Any,
) -> Any:  # fmt: skip
    """Solve an initial value problem by SciPy's steps, and differentiate these."""
    label, args = "scipy.integrate.solve_ivp", () if args is None else tuple(args)
    field = Called(label, lambda t, y: fun(t, y, *args), (t_span, y0, t_eval, args), at=1)
    options = {
        key: field.other(lambda t, y, x=x: x(t, y, *args)) if callable(x) else plain(x, label, key)
        for key, x in options.items()
    }
    span = [float(values_of(t, label)) for t in t_span]
    start, places = np.atleast_1d(np.asarray(values_of(y0, label))), values_of(t_eval, label)
    several = events if isinstance(events, list | tuple) else [] if events is None else [events]
    found_events = [_Event(field, event, args) for event in several]

    def run(method: Any, dense: bool) -> Any:
        shown = found_events or None
        vectors = vectorized and not field.tensors
        return _scipy.solve_ivp(
            field, span, start, method, places, dense, shown, vectors, **options
        )

    found = run(method, dense_output)
    moving = field.tracked or _moves(t_span, y0, t_eval)
    if found_events and (moving or any(event.tracked for event in found_events)):
        raise NotImplementedError(f"{label}: solutions with events= are not differentiated")
    if not moving:
        found.t, found.y = field.in_kind(found.t), field.in_kind(found.y)
        return found
    kind = method
    if method not in METHODS:  # of several steps, whose history has no derivative
        stiff = method != "LSODA" or _is_stiff(
            field, start, np.linspace(span[0], span[1], 50), options
        )
        kind = "Radau" if stiff else "DOP853"
    found = found if kind == method and dense_output else run(kind, True)
    path = _trajectory(field, found, t_span, y0, kind)
    if t_eval is None:
        times = [path.steps[0].t, *(step.t + step.h for step in path.steps)]
        found.t = wg.stack(list(inexact(*times))) if _moves(times) else found.t
        found.y = wg.stack([*(step.y for step in path.steps), path.last], axis=-1)
    else:
        found.t = inexact(t_eval)[0] if tensors_in([t_eval]) else found.t
        found.y = path(found.t)
    found.sol = path if dense_output else None
    return found


class _Event(Called):
    """A function of time and state whose zeros are looked for."""

    def __init__(self, field: Called, event: Any, args: Any) -> None:
        super().__init__(field.label, lambda t, y: event(t, y, *args), field.given, at=1)
        self.terminal = getattr(event, "terminal", False)
        self.direction = getattr(event, "direction", 0)


def _trajectory(field: Called, found: Any, t_span: Any, y0: Any, kind: str) -> Trajectory:
    """The steps that SciPy has taken, on Tensors."""
    if found.status < 0:
        raise RuntimeError(f"{field.label}: {found.message}")
    times: list[Any] = [(one.t_old, one.t) for one in found.sol.interpolants]
    if _moves(t_span):
        first, last = (inexact(t)[0] for t in t_span)
        a, b = times[0][0], times[-1][1]
        times = [[first + (last - first) * ((t - a) / (b - a)) for t in pair] for pair in times]
    (start,) = inexact(y0 if tensors_in([y0]) else like_first(field.given, np.array(y0)))

    def on_tape(t: Any, y: Tensor) -> Any:
        with follow(t, y):
            return wg.reshape(residuals(call_back(field.function, t, y)), y.shape)

    return Trajectory(METHODS[kind], on_tape, times, wg.reshape(start, (-1,)), field.label)


def _is_stiff(field: Any, y0: Any, t: Any, options: dict[str, Any]) -> bool:
    """Whether LSODA changes to its method for stiff equations."""
    limits = {key: options[key] for key in ("rtol", "atol") if key in options}
    return 2 in _scipy.odeint(field, y0, t, tfirst=True, full_output=True, **limits)[1]["mused"]


@stands
def odeint(
    func: Any, y0: Any, t: Any, args: Any = (), Dfun: Any = None, col_deriv: Any = 0,
    full_output: Any = 0, *more: Any, **options: Any,
) -> Any:  # fmt: skip
    """Solve an initial value problem; with Tensors by the steps of DOP853, or of Radau."""
    label, args = "scipy.integrate.odeint", args if isinstance(args, tuple) else (args,)
    options |= dict(zip([*signature(_scipy.odeint).parameters][7:], more, strict=False))
    tfirst = options.pop("tfirst", False)

    def turned(f: Any) -> Any:
        return lambda t, y: f(t, y, *args) if tfirst else f(y, t, *args)

    field = Called(label, turned(func), (y0, t, args), at=1)
    options = {key: plain(x, label, key) for key, x in options.items()}
    start, times = np.array(values_of(y0, label), float), np.asarray(values_of(t, label), float)
    slope = None if Dfun is None else field.other(turned(Dfun))
    found, info = _scipy.odeint(
        field, start, times, (), slope, col_deriv, True, tfirst=True, **options
    )
    y = field.in_kind(found)
    if field.tracked or _moves(y0, t):
        kind = "Radau" if 2 in info["mused"] else "DOP853"
        if options.get("tcrit") is not None or options.get("h0") or options.get("hmin"):
            raise NotImplementedError(f"{label}: tcrit=, h0= and hmin= are not differentiated")
        tolerances = {key: options.get(key) for key in ("rtol", "atol")}
        limits = {key: 1.49012e-8 if x is None else x for key, x in tolerances.items()}
        limits["max_step"] = options.get("hmax") or np.inf
        span, start = (times[0], times[-1]), np.atleast_1d(start)
        solved = _scipy.solve_ivp(field, span, start, kind, dense_output=True, **limits)
        moving = tensors_in([t])
        path = _trajectory(field, solved, (t[0], t[-1]) if moving else span, y0, kind)
        y = wg.matrix_transpose(path(inexact(t)[0] if moving else times))
    return (y, info) if full_output else y


# -- integrals of functions ------------------------------------------------------------------------

_NODES, _WEIGHTS = (x / 2 for x in np.polynomial.legendre.leggauss(21))
_SINH = np.pi * np.sinh(np.arange(-3.2, 3.25, 0.1))
#: The double exponential rule, for intervals with singular ends; and Gauss' rule for others.
_FINE = 1 / (1 + np.exp(-_SINH))
_RULES = {
    True: (_FINE, 0.1 * np.sqrt(np.pi**2 + _SINH**2) * _FINE * _FINE[::-1]),
    False: (_NODES + 0.5, _WEIGHTS),
}


@stands
def quad(func: Any, a: Any, b: Any, args: Any = (), full_output: Any = 0, **options: Any) -> Any:
    """Integrate a function; derivatives are by Gauss' rule on SciPy's intervals."""
    label, args = "scipy.integrate.quad", args if isinstance(args, tuple) else (args,)
    called = Called(label, lambda x: func(x, *args), (a, b, args))
    options = {key: plain(x, label, key) for key, x in options.items()}
    ends = [float(values_of(x, label)) for x in (a, b)]
    found = _scipy.quad(called, *ends, full_output=1, **options)
    value = called.in_kind(found[0])
    if not (called.tracked or _moves(a, b)):
        if len(found) > 3 and not full_output:
            _scipy.quad(called, *ends, **options)  # which warns
        return (value, *found[1:]) if full_output else (value, found[1])
    if any(options.get(key) is not None for key in ("weight", "complex_func", "points")):
        raise NotImplementedError(f"{label}: weight=, points= and complex_func= have no derivative")
    total, smooth = _settled(called, a, b, ends, found[2])
    error = abs(float(values_of(total, label)) - found[0])
    limits = (options.get("epsabs", 1.49e-8), options.get("epsrel", 1.49e-8) * abs(found[0]))
    if not (smooth and error <= 10 * max(found[1], *limits)):
        raise RuntimeError(
            f"{label}: Gauss' rule on SciPy's intervals does not give the derivative: divide the "
            "range where the function jumps, has a kink or is singular"
        )
    value = total + (found[0] - like_first([total], values_of(total, label)))
    return (value, *found[1:]) if full_output else (value, found[1])


def _settled(called: Called, a: Any, b: Any, ends: list[float], info: Any) -> Any:
    """The sum over SciPy's intervals, and whether halves of these have the same derivatives."""
    n, place, rows, slopes = info["last"], wg.zeros((), requires_grad=True), list[Any](), []
    whole = sorted(zip(info["alist"][:n], info["blist"][:n], strict=True))
    halves = [pair for l, r in whole for m in [(l + r) / 2] for pair in ((l, m), (m, r))]
    targets: list[Any] = []
    for pieces in (halves, whole):
        summed = partial(_on_intervals, called, a, b, ends, pieces, rows)
        total, sources = put_on_tape(summed, place)
        targets, array = targets or sources, total._array
        found = pulled(total, wg.ones_like(untracked(array)), targets, is_lifted(array))
        while isinstance(array, Dual):
            found, array = [*found, array.tangent], array.inner
        slopes.append([values_of(wg.asarray(0.0 if g is None else g), called.label) for g in found])
    settled = [np.allclose(x, y, 1e-6, 1e-7) for x, y in zip(*slopes, strict=True)]
    parts, lengths = [y @ w for y, w in rows], [r - l for l, r in whole]
    top = max(abs(part) / h for part, h in zip(parts[2 * n :], lengths, strict=True))
    for i, h in enumerate(lengths):
        rough = abs(parts[2 * n + i] - parts[2 * i] - parts[2 * i + 1])
        infinite = not np.isfinite(ends).all() and n > 1 and i in (0, n - 1)
        settled.append(infinite or rough <= 1e-4 * h * max(np.ptp(rows[2 * n + i][0]), 1e-5 * top))
    for (y, _), (z, _) in pairwise(rows[: 2 * n] if np.isfinite(ends).all() else []):
        settled.append(abs(z[0] - y[-1]) <= np.ptp(y) + np.ptp(z) + 1e-8 * abs(y[-1]))
    return total, all(settled)


def _on_intervals(
    called: Called, a: Any, b: Any, ends: list[float], pieces: Any, rows: list[Any], _: Any
) -> Tensor:
    """The sum over intervals; ``rows`` take the integrand's values and weights in each."""
    sign, total = 1.0, 0.0
    if ends[1] < ends[0]:
        sign, a, b, ends = -1.0, b, a, ends[::-1]
    low, high = (inexact(x)[0] if _moves(x) else end for x, end in zip((a, b), ends, strict=True))
    finite = np.isfinite(ends)
    for left, right in pieces:
        seen: list[Any] = []
        fine = len(pieces) > 1 and finite.all() and not {left, right}.isdisjoint(ends)
        for node, weight in zip(*_RULES[bool(fine)], strict=True):
            s, w = float(left + (right - left) * node), float((right - left) * weight)
            far = (1 - s) / s if s else 0.0
            if finite.all():
                part, width = (s - ends[0]) / (ends[1] - ends[0]), high - low
                pairs = [(low + width * part, width * (w / (ends[1] - ends[0])))]
                pairs = [] if s in ends else pairs  # too near to tell
            else:  # QUADPACK's variable
                pairs = [(low + far, w / s**2)] if finite[0] else []
                pairs += [(high - far, w / s**2)] if finite[1] else []
                pairs = pairs or [(far, w / s**2), (-far, w / s**2)]
            for x, factor in pairs:
                if called.tensors and not isinstance(x, Tensor):
                    x = like_first(called.given, x)
                with follow(x):
                    found = wg.reshape(residuals(call_back(called.function, x)), ()) * factor
                seen.append((float(values_of(found, called.label)) / w, w))
                total = total + found  # type: ignore[assignment]
        rows.append(np.array(seen).T)
    return total * sign  # type: ignore[return-value]


# -- integrals of data -----------------------------------------------------------------------------


def _spaces(y: Any, x: Any, dx: Any, axis: int) -> tuple[Tensor, Tensor]:
    """Data with the axis last, and the distances along it."""
    data, places = inexact(y, dx if x is None else x)
    data = wg.moveaxis(data, axis, -1)
    if x is None:
        return data, places * wg.ones((data.shape[-1] - 1,), dtype=data.dtype)
    places = wg.moveaxis(places, axis, -1) if places.ndim > 1 else places
    return data, places[..., 1:] - places[..., :-1]


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


def _ratio(a: Any, b: Any) -> Tensor:
    """A quotient, which is zero at repeated places as in SciPy."""
    return wg.where(b != 0, a / wg.where(b != 0, b, 1.0), 0.0)


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """Integrate data by Simpson's rule, with Cartwright's for one interval that is left."""
    data, h = _spaces(y, x, dx, axis)
    n, last = data.shape[-1], wg.zeros_like(data[..., 0])
    if n < 3:
        return wg.sum(h * (data[..., 1:] + data[..., :-1]) / 2, axis=-1)
    if n % 2 == 0:
        h0, h1 = h[..., -2], h[..., -1]
        ends = data[..., -1] * (2 * h1 + 3 * h0) - data[..., -3] * h1**2 / h0
        last = h1 / 6 * (ends / (h0 + h1) + data[..., -2] * (h1 + 3 * h0) / h0)
        data, h = data[..., :-1], h[..., :-1]
    h0, h1 = h[..., ::2], h[..., 1::2]
    parts = data[..., :-2:2] * (2 - _ratio(h1, h0)) + data[..., 2::2] * (2 - _ratio(h0, h1))
    parts = parts + data[..., 1::2] * _ratio((h0 + h1) ** 2, h0 * h1)
    return wg.sum((h0 + h1) / 6 * parts, axis=-1) + last


_OURS = (cumulative_trapezoid, odeint, quad, simpson, solve_ivp, trapezoid)
globals().update(namespace("integrate", {one.__name__: one for one in _OURS}))
