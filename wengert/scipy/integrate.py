"""``scipy.integrate``: integrals and solutions of ODEs, differentiated by all that is used in them.

>>> from wengert.scipy import integrate
>>> def decayed(rate):
...     return integrate.solve_ivp(lambda t, y: -rate * y, (0.0, 1.0), [2.0], rtol=1e-8).y[0, -1]
>>> round(wg.grad(decayed)(0.5), 5)
-1.21306
>>> round(wg.grad(lambda p: integrate.quad(lambda x: wg.exp(-p * x), 0, wg.inf)[0])(2.0), 6)
-0.25
"""

from collections.abc import Callable
from functools import partial
from inspect import signature
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import integrate as _scipy

import wengert as wg
from wengert.func.checkpoint import checkpoint
from wengert.func.jacobians import jacobian
from wengert.interpreters.duals import Dual
from wengert.interpreters.lifted import bottom
from wengert.protocols.reductions import trapezoid as _trapezoid
from wengert.scipy.implicit import Called, fingerprint, pull, solution, sources_of
from wengert.scipy.naming import (
    Guarded,
    inexact,
    like_first,
    plain,
    publish,
    tensors_in,
    tracked,
    values_of,
)
from wengert.tape import NOT_IMPLEMENTED
from wengert.tape.node import is_lifted, tick
from wengert.tape.observers import observed_by
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor, untracked

# -- steps of solvers, once more on Tensors --------------------------------------------------------

# SciPy has chosen them on values. Here the equations of each step are differentiated: of explicit
# Runge-Kutta methods the stages, of Radau's method the implicit system. The tape keeps the solution
# at the steps, and stages are computed again in the backward pass.
_ROOT = np.sqrt(6.0)
#: Radau IIA of order 5: stages and their places.
_RADAU = np.array([
    [(88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225],
    [(296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225],
    [(16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9],
])  # fmt: skip
_PLACES = np.array([(4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0])
#: The solution after a step from ``y`` at ``t`` of length ``h``.
Step = Callable[[Callable[..., Any], Any, Any, Tensor], Any]


def _sum(parts: Any, factors: Any) -> Any:
    """A sum of Tensors with factors that are numbers."""
    used = [p * float(f) for p, f in zip(parts, factors, strict=False) if f != 0]
    return sum(used[1:], used[0]) if used else 0 * parts[0]


def _explicit(method: Any) -> Step:
    """A step by SciPy's explicit method."""

    def step(field: Callable[..., Any], t: Any, h: Any, y: Tensor) -> Any:
        stages, n = [field(t, y)], method.n_stages
        for a, c in zip(method.A[1:n], method.C[1:n], strict=True):
            stages.append(field(t + float(c) * h, y + _sum(stages, a) * h))
        return y + _sum(stages, method.B) * h

    return step


def _radau(field: Callable[..., Any], t: Any, h: Any, y: Tensor) -> Any:
    """A step by Radau's method: the implicit system is solved to rounding."""

    def system(z: Tensor, t: Any = t, h: Any = h, y: Any = y) -> Any:
        rows = [field(t + float(c) * h, y + z[i]) for i, c in enumerate(_PLACES)]
        return z - h * wg.stack([_sum(rows, a) for a in _RADAU])

    plain = [values_of(v, "Radau") for v in (t, h, y)]
    start, z = like_first([y], plain[2]), np.zeros((3, y.size))
    slope = values_of(jacobian(lambda y: field(plain[0], y))(start), "Radau")
    matrix = np.eye(3 * y.size) - np.kron(plain[1] * _RADAU, slope)
    for _ in range(50):  # by Newton's method with the slope at the beginning
        rest = values_of(system(like_first([y], z), plain[0], plain[1], start), "Radau")
        change = np.linalg.solve(matrix, rest.ravel()).reshape(z.shape)
        z = z - change
        if np.abs(change).max() <= 1e-14 * (1 + np.abs(plain[2]).max()):
            break
    return y + solution("Radau", system, z, [y])[2]


METHODS: dict[str, Step] = {"Radau": _radau}
METHODS |= {x.__name__: _explicit(x) for x in (_scipy.RK23, _scipy.RK45, _scipy.DOP853)}


class _Once:
    """A part of a step, which uses and gives the same again in the backward pass, or raises."""

    def __init__(self, run: Callable[..., Any], label: str) -> None:
        self.run, self.label = run, label
        self.seen: Any = None

    def __call__(self, *args: Any) -> Any:
        start, found = tick(), self.run(*args)
        sources = sorted(node.number for node in sources_of(found, start, *args))
        prints = fingerprint(found, *args, start=start)
        values = np.asarray(values_of(found, self.label)).tobytes()
        seen = hash(tuple(prints)), sources, hash(values)
        self.seen = self.seen or seen
        if seen != self.seen:
            raise RuntimeError(
                f"{self.label}: what its function computes with has changed since it was called: "
                "differentiate before, or give the function copies"
            )
        return found


def _along(step: Step, field: Callable[..., Any], times: Any, y: Any, label: str, at: Any) -> Any:
    """Times and the solution there: at the ends of steps, or by shorter steps at others."""

    def begin(start: Any, y: Any) -> Callable[[Any], Any]:
        return lambda stop: step(field, start, stop - start, y)

    runs, t, path = [], [times[0][0]], [y]
    for start, stop in times:
        runs.append(begin(start, y))
        y = checkpoint(_Once(partial(runs[-1], stop), label))
        t.append(stop)
        path.append(y)
    if at is None:
        return t, path
    begun, *ends = (float(values_of(stop, label)) for stop in t)
    sign = 1 if ends[-1] >= begun else -1
    which = np.searchsorted(sign * np.array(ends), sign * np.asarray(values_of(at, label)))
    runs.append(runs[-1])  # times after the end are within rounding
    return t, [checkpoint(_Once(runs[i], label), at[k]) for k, i in enumerate(which)]


# -- ordinary differential equations ---------------------------------------------------------------


def solve_ivp(
    fun: Any, t_span: Any, y0: Any, method: Any = "RK45", t_eval: Any = None,
    dense_output: bool = False, events: Any = None, vectorized: bool = False, args: Any = None,
    **options: Any,
) -> Any:  # fmt: skip
    """Solve an initial value problem by SciPy's steps, and differentiate these."""
    label, args = "scipy.integrate.solve_ivp", () if args is None else tuple(args)
    field = Called(label, fun, (t_span, y0, t_eval, args), at=1)
    options = {key: plain(x, label, key) for key, x in (options | {"events": events}).items()}
    options |= {"vectorized": vectorized and not field.tensors, "args": args or None}
    span = [float(values_of(t, label)) for t in t_span]
    start, places = np.atleast_1d(np.asarray(values_of(y0, label))), values_of(t_eval, label)
    found = _scipy.solve_ivp(field, span, start, method, places, dense_output, **options)
    if not (field.tracked or tracked(t_span, y0, t_eval)):
        found.t, found.y = field.in_kind(found.t), field.in_kind(found.y)
        found.sol = found.sol and Guarded(found.sol, f"the sol of {label}")
        return found
    if events is not None or dense_output:
        raise NotImplementedError(
            f"{label}: events= and dense_output= are not differentiated: pass t_eval="
        )
    kind = method if method in METHODS else "Radau"  # the history of others has no derivative
    found = _scipy.solve_ivp(field, span, start, kind, places, True, **options)
    if found.status < 0:
        raise RuntimeError(f"{label}: {found.message}")
    times: list[Any] = [(float(x.t_old), float(x.t)) for x in found.sol.interpolants]
    if tracked(t_span):
        first, last = (inexact(t)[0] for t in t_span)
        a, b = times[0][0], times[-1][1]
        along = lambda t: first + (last - first) * ((t - a) / (b - a))
        times = [[*map(along, pair)] for pair in times] if a != b else [[first, last]]
    (y,) = inexact(y0 if tensors_in(y0) else like_first(field.given, np.array(y0)))

    def on_tape(t: Any, y: Tensor) -> Tensor:
        rates = field.on_tape(t, y, *args)
        if rates.dtype.complex and not y.dtype.complex:
            raise TypeError(f"{label}: the function is complex: pass a complex y0")
        return wg.reshape(rates, y.shape)

    found.t = inexact(t_eval)[0] if tensors_in(t_eval) else found.t
    at = found.t if tracked(t_eval) else places if places is None else np.asarray(places).tolist()
    t, path = _along(METHODS[kind], on_tape, times, wg.reshape(y, (-1,)), label, at)
    if at is None and tracked(t):
        found.t = wg.stack(list(inexact(*t)))
    found.y = wg.stack(path, axis=-1) if path else found.y
    found.sol = None
    return found


def odeint(func: Any, y0: Any, t: Any, *args: Any, **options: Any) -> Any:
    """Solve an initial value problem; with Tensors by the steps of DOP853, or of Radau."""
    label = "scipy.integrate.odeint"
    known = signature(_scipy.odeint).bind(func, y0, t, *args, **options).arguments
    told, more, tfirst = (known.get(key, ()) for key in ("full_output", "args", "tfirst"))
    more = known["args"] = more if isinstance(more, tuple) else (more,)
    field = Called(label, func, (y0, t, more), at=1 if tfirst else 0)
    known |= {"func": field, "full_output": True, "Dfun": field.other(known.get("Dfun"))}
    plainly = known.keys() - {"func", "Dfun", "args", "y0", "t"}
    known |= {key: plain(known[key], label, key) for key in plainly}
    known |= {"y0": np.array(values_of(y0, label), float), "t": np.asarray(values_of(t, label))}
    found, info = _scipy.odeint(**known)
    y = field.in_kind(found)
    if field.tracked or tracked(y0, t):
        if known.get("tcrit") is not None or known.get("h0") or known.get("hmin"):
            raise NotImplementedError(f"{label}: tcrit=, h0= and hmin= are not differentiated")
        if not info["message"].startswith(("Integration successful", "Nothing was done")):
            raise RuntimeError(f"{label}: {info['message']}")
        new = np.append(True, np.diff(known["t"]) != 0)  # times may come again
        if tracked(t) and not new.all():
            raise ValueError(f"{label}: tracked times are sorted, and none comes again")
        rates = func if tfirst else lambda t, y, *args: func(y, t, *args)
        limits: dict[str, Any] = {"max_step": known.get("hmax") or np.inf, "args": more}
        for key in ("rtol", "atol"):
            limits[key] = 1.49012e-8 if known.get(key) is None else known[key]
        kind = "Radau" if 2 in info["mused"] else "DOP853"
        at = t if tracked(t) else known["t"][new]
        y = solve_ivp(rates, (t[0], t[-1]), y0, kind, at, **limits).y
        y = wg.matrix_transpose(y)[np.cumsum(new) - 1]
    return (y, info) if told else y


# -- integrals of functions ------------------------------------------------------------------------

_NODES, _WEIGHTS = (x / 2 for x in np.polynomial.legendre.leggauss(21))
_SINH = np.pi * np.sinh(np.arange(-3.2, 3.25, 0.1))
_FINE = 1 / (1 + np.exp(-_SINH))
#: The double exponential rule, for intervals with singular ends; and Gauss' rule for others.
_RULES = {
    True: [_FINE, 0.1 * np.sqrt(np.pi**2 + _SINH**2) * _FINE * _FINE[::-1]],
    False: [_NODES + 0.5, _WEIGHTS],
}
_flat: Any = {"composite": lambda xp, x: 0 * x, "elementwise": True}
#: Zero, whose derivatives of first order are zero, and errors beyond; and also of second order.
_kink = Primitive(
    "quad_at_a_kink", ["x"], {"x": lambda xp, g, x: g * xp.quad_beyond_what_is_smooth(x)}, **_flat
).bind
_smooth = Primitive(
    "quad_of_what_is_smooth", ["x"], {"x": lambda xp, g, x: g * xp.quad_at_a_kink(x)}, **_flat
).bind
Primitive("quad_beyond_what_is_smooth", ["x"], {"x": NOT_IMPLEMENTED}, **_flat)


def quad(func: Any, a: Any, b: Any, args: Any = (), full_output: Any = 0, **options: Any) -> Any:
    """Integrate a function; derivatives, of two orders, are by Gauss' rule on SciPy's intervals.

    Raises `RuntimeError` for jumps that parameters move, but does not see those that are smaller
    than 1e-5 of the integrand's change.
    """
    label, args = "scipy.integrate.quad", args if isinstance(args, tuple) else (args,)
    called = Called(label, lambda x: func(x, *args), (a, b, args))
    options = {key: plain(x, label, key) for key, x in options.items()}
    ends = [float(values_of(x, label)) for x in (a, b)]
    with observed_by(called):
        found = _scipy.quad(called, *ends, full_output=1, **options)
    value = called.in_kind(found[0])
    if ends[0] == ends[1] and np.isfinite(ends[0]):
        called(ends[0])  # which SciPy does not
    if called.tracked or called.compared or tracked(a, b):
        if any(options.get(key) is not None for key in ("weight", "complex_func", "points")):
            raise NotImplementedError(
                f"{label}: weight=, points= and complex_func= have no derivative"
            )
        integrand = _Integrand(called, a, b, ends)
        if ends[0] == ends[1]:
            total, smooth = integrand.over(0.0, 1.0, False)[0], (True, True)
        else:
            total, smooth = _gauss(integrand, found[2])
        error = abs(float(values_of(total, label)) - found[0])
        limits = (options.get("epsabs", 1.49e-8), options.get("epsrel", 1.49e-8) * abs(found[0]))
        if not (smooth[0] and error <= 10 * max(found[1], *limits)):
            raise RuntimeError(
                f"{label}: Gauss' rule on SciPy's intervals does not give the derivative: divide "
                "the range where the function jumps, has a kink or is singular, and add two quads"
            )
        if tracked(total):
            total = total + (_smooth if smooth[1] else _kink)(total)
            value = total + (found[0] - like_first([total], values_of(total, label)))
    elif len(found) > 3 and not full_output:
        _scipy.quad(called, *ends, **options)  # which warns
    return (value, *found[1:]) if full_output else (value, found[1])


class _Integrand:
    """An integrand on the tape, of QUADPACK's variable if the range is infinite."""

    def __init__(self, called: Called, a: Any, b: Any, ends: list[float]) -> None:
        self.called, self.sign = called, 1.0
        if ends[1] < ends[0]:
            self.sign, a, b, ends = -1.0, b, a, ends[::-1]
        places = [inexact(x)[0] if tracked(x) else end for x, end in zip((a, b), ends, strict=True)]
        self.places, self.finite = places, np.isfinite(ends)
        self.ends = ends if ends[0] < ends[1] else [0.0, 1.0]

    def __call__(self, s: float) -> Tensor:
        (low, high), ends = self.places, self.ends
        if self.finite.all():
            part, width = (s - ends[0]) / (ends[1] - ends[0]), high - low
            pairs = [(low + width * part, width / (ends[1] - ends[0]))]
        else:
            far = (1 - s) / s
            pairs = [(low + far, s**-2)] if self.finite[0] else []
            pairs += [(high - far, s**-2)] if self.finite[1] else []
            pairs = pairs or [(far, s**-2), (-far, s**-2)]
        total: Any = 0.0
        for x, factor in pairs:
            if self.called.tensors and not isinstance(x, Tensor):
                x = like_first(self.called.given, x)
            total = total + wg.reshape(self.called.on_tape(x), ()) * (factor * self.sign)
        return total  # type: ignore[no-any-return]

    def over(self, left: float, right: float, fine: bool) -> tuple[Tensor, Any]:
        """The integral over an interval, and the values there."""
        total: Any = 0.0
        seen = []
        for node, weight in zip(*_RULES[fine], strict=True):
            s = float(left + (right - left) * node)
            if s not in self.ends:  # which is too near to tell
                y = self(s)
                seen.append(values_of(y, self.called.label))
                total = total + y * float((right - left) * weight)
        return total, np.array(seen)


def _derivatives(y: Tensor, targets: Any, zero: Any) -> Any:
    """A value with its derivatives by nodes, and its tangents, which ``zero`` has, as one row."""
    array = (y + zero)._array
    slopes = pull(y, wg.ones_like(untracked(array)), targets, is_lifted(array))
    found = [np.zeros(t.shape) if g is None else g for g, t in zip(slopes, targets, strict=True)]
    while isinstance(array, Dual):
        found, array = [*found, 0.0 if array.tangent is None else array.tangent], array.inner
    return np.concatenate([np.ravel(wg.asarray(bottom(x)).numpy()) for x in (y, *found)])


#: Distances from an end, by the length of an interval: nodes are as near as the third.
_ROW = np.array([0.6, 0.25, *3 * 10.0 ** -np.arange(2, 10)])


def _jumps(f: _Integrand, targets: Any, zero: Any, left: float, at: float, right: float) -> Any:
    """The most that jumps nearer to an end than nodes take from integrals; and that kinks do.

    At a jump one difference quotient is unlike those on both sides, which are alike.
    """
    rows = {*(at - (at - left) * _ROW), *(at + (right - at) * _ROW)} - {at, *f.ends}
    x = np.array(sorted(rows))
    p = np.stack([_derivatives(f(float(s)), targets, zero) for s in x])
    h, change = np.diff(x)[:, None], np.diff(p, axis=0)
    slope, lower = change / h, x[:-1, None] < at
    size = np.where(lower, *(np.abs(y).sum(axis=0) for y in (change[:2], change[-2:])))
    far = np.where(lower, at - x[:-1, None], x[1:, None] - at)
    part = far / np.where(lower, at - left, right - at)
    before, own, after = slope[:-2], slope[1:-1], slope[2:]
    jump = np.minimum(np.abs(own - before), np.abs(own - after)) - 10 * np.abs(after - before)
    rest = size * np.maximum(1e-5, 300 * part**2)
    noise = 1e-12 * np.abs(p).max(axis=0) + 1e-14 * abs(at) * np.abs(
        np.where(lower, slope[0], slope[-1])
    )
    jumps = (jump * h[1:-1] > (rest + noise)[1:-1]) & (part[1:-1] < 4e-3)
    turns = np.abs(np.diff(slope, axis=0))
    bend = np.abs(after - before)[1:-1] - 10 * (turns[:-3] + turns[3:])
    bends = (bend * np.minimum(h[1:-3], h[3:-1]) > noise[2:-2]) & (part[2:-2] < 4e-3)
    return [
        np.where(at, of, 0).max(axis=0, initial=0)
        for at, of in ((jumps, jump * h[1:-1] * far[1:-1]), (bends, bend * far[2:-2]))
    ]


def _gauss(f: _Integrand, info: Any) -> tuple[Tensor, tuple[bool, bool]]:
    """The sum over SciPy's intervals, and whether first and further derivatives are right.

    They are if parts of the intervals give the same, and nothing jumps between intervals. What is
    compared with is how much the function changes, since what it has in common hides jumps.
    """
    n, label, start = info["last"], f.called.label, tick()
    whole = sorted(zip(info["alist"][:n], info["blist"][:n], strict=True))
    bounded, rows, rough = f.finite.all(), [], [[0.0, 0.0]]
    total: Any = 0.0
    parted: Any = 0.0
    for left, right in whole:
        fine = bool(n > 1 and bounded and not {left, right}.isdisjoint(f.ends))
        cut = left + 0.382 * (right - left)  # a jump in the middle is in none of the parts'
        piece, seen = f.over(left, right, fine)
        other = f.over(left, cut, fine)[0] + f.over(cut, right, fine)[0]
        rows.append((right - left, np.ptp(seen), values_of(piece - other, label), np.abs(seen)))
        total, parted = total + piece, parted + other
    both = total + parted
    targets, zero = sources_of(both, start), 0 * untracked(both._array)
    spread, top = (max(map(np.max, column)) for column in [*zip(*rows, strict=True)][1::2])
    for i, (h, own, difference, _) in enumerate(rows):
        if bounded or n == 1 or 0 < i < n - 1:
            least = max(own, 1e-5 * spread)
            rough.append(
                [abs(difference) / (h * max(least, x * top) or 1.0) for x in (1e-11, 1e-8)]
            )
    one, two = (_derivatives(x, targets, zero) for x in (total, parted))
    size: Any = 0.0  # of the derivatives, of which parts may cancel
    for left, right in whole:
        places = left + (right - left) * np.array([0.21, 0.46, 0.83])
        inner = [_derivatives(f(float(s)), targets, zero) for s in places]
        size = size + (right - left) * np.abs(inner).mean(axis=0)
    worst = np.max(rough, axis=0)
    apart, close = np.abs(one - two)[1:], (10 * np.abs(two) + size)[1:]
    first = worst[0] <= 1e-4 and (apart <= 1e-7 * close).all()
    second = worst[1] <= 1e-7 and (apart <= 1e-9 * close).all()
    low, high = whole[0][0], whole[-1][1]  # an infinite place is no end that is looked at
    for (left, at), (_, right) in pairwise([(low, low), *whole, (high, high)]):
        if first and (at > 0 or bounded):
            lost, bent = _jumps(f, targets, zero, left, at, right)
            first = not lost[0] and (lost[1:] <= 1e-7 * close).all()
            second = second and not lost.any() and (bent[1:] <= 1e-7 * close).all()
    return total, (bool(first), bool(second))


# -- integrals of data -----------------------------------------------------------------------------


def _spaces(y: Any, x: Any, dx: Any, axis: int) -> tuple[Tensor, Tensor]:
    """Data with the axis last, and the distances along it."""
    data, places = inexact(y, dx if x is None else x)
    data = wg.moveaxis(data, axis, -1)
    if x is None:
        return data, places * wg.ones((data.shape[-1] - 1,), dtype=data.dtype)
    places = wg.moveaxis(places, axis, -1) if places.ndim > 1 else places
    return data, places[..., 1:] - places[..., :-1]


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
        last = _ratio(h1 * (2 * h1 + 3 * h0), 6 * (h0 + h1)) * data[..., -1]
        last = last + _ratio(h1 * (h1 + 3 * h0), 6 * h0) * data[..., -2]
        last = last - _ratio(h1**3, 6 * h0 * (h0 + h1)) * data[..., -3]
        data, h = data[..., :-1], h[..., :-1]
    h0, h1 = h[..., ::2], h[..., 1::2]
    parts = data[..., :-2:2] * (2 - _ratio(h1, h0)) + data[..., 2::2] * (2 - _ratio(h0, h1))
    parts = parts + data[..., 1::2] * _ratio((h0 + h1) ** 2, h0 * h1)
    return wg.sum((h0 + h1) / 6 * parts, axis=-1) + last


_OWN = {"trapezoid": lambda y, x=None, dx=1.0, axis=-1: _trapezoid(inexact(y)[0], x, dx, axis)}
publish(globals(), _OWN)
