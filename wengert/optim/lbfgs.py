"""The quasi-Newton method L-BFGS."""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from wengert.backends import BackendError, backend_of, namespaces
from wengert.ops.shares import wide
from wengert.optim import kernels as kernels
from wengert.optim.adapters import State
from wengert.optim.groups import RANGES, Group, Range, hyper_parameters
from wengert.optim.optimizer import Optimizer
from wengert.tape.grad_mode import enable_grad
from wengert.tape.tensor import Tensor, untracked

#: Of the conditions of Wolfe: how much the loss sinks, and by how much its slope.
_DECREASE, _CURVATURE = 1e-4, 0.9


class _Point(NamedTuple):
    """The loss along a direction: a step, the value, the gradient and the slope there."""

    t: float
    f: float
    g: Any
    slope: float


class LBFGS(Optimizer):
    r"""L-BFGS: Newton's method with a Hessian estimated from the last steps.

    A step calls the closure several times. Its direction :math:`d = -H g` is computed from the
    differences of the last parameters and gradients, with the estimate
    :math:`H_0 = \frac{y^T s}{y^T y} I` of the inverse Hessian before them. Nocedal and Wright,
    "Numerical optimization" (2006), algorithms 7.4, 3.5 and 3.6. The arithmetic branches on values:
    a step with it is not compiled. A step that an error ends, such as one in the closure, leaves
    parameters and state as they were. PyTorch: ``torch.optim.LBFGS``.

    A step calls the closure ``max_eval`` times at most, by default ``max_iter * 5 // 4`` times. It
    ends where no number of the gradient is above ``tolerance_grad``, or the loss, or all
    parameters, change by less than ``tolerance_change``. A line search, ``"strong_wolfe"``, finds a
    step that satisfies the strong conditions of Wolfe. Without it no decrease is certain.

    Examples
    --------
    >>> w = wg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = wg.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((w - 3) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> loss = optimizer.step(closure)  # before the step
    >>> wg.round(w.detach())
    tensor([3., 3.])
    """

    ranges = {"lr": RANGES["lr"], "history_size": Range(1)}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(params, hyper_parameters(locals()))

    def check(self, group: Group) -> None:
        super().check(group)
        if self.param_groups and group["params"] is not self.param_groups[0]["params"]:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        if any(p.dtype.complex for p in group["params"]):
            raise ValueError("LBFGS takes real parameters; make two of a complex one")
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise ValueError(f"only 'strong_wolfe' is supported, not {group['line_search_fn']!r}")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Minimise the loss by up to ``max_iter`` iterations.

        The closure clears the gradients, computes the loss and its gradients, and returns the loss.
        """
        if closure is None:
            raise TypeError("LBFGS calls a closure several times: step(closure)")
        params = self.param_groups[0]["params"]
        before = [param._array for param in params]
        state = dict(self.state.get(params[0], {}))
        try:
            loss = self._minimise(closure, params, state)
        except BaseException:
            _assign(params, before)
            raise
        self.state[params[0]] = state
        return loss

    def _minimise(self, closure: Callable[[], Any], params: list[Tensor], state: State) -> Any:
        group = self.param_groups[0]
        lr, most = group["lr"], group["max_iter"]
        xp = namespaces[type(params[0]._array)]
        change, small = group["tolerance_change"], group["tolerance_grad"]

        def evaluate() -> tuple[Any, float, Any]:
            with enable_grad():
                loss = closure()
            figure = loss.detach() if isinstance(loss, Tensor) else loss
            return loss, float(figure), _flat_gradient(xp, params)

        first, loss, g = evaluate()
        kept = state.get("prev_flat_grad", g)
        if type(kept) is not type(g) or _place(kept) != _place(g):
            raise BackendError(
                "the parameters of the optimizer are elsewhere, or of another precision, than the "
                "state that LBFGS has of them: make the optimizer after moving the model"
            )
        evals, n = 1, 0
        state["func_evals"] = state.get("func_evals", 0) + 1
        state.setdefault("n_iter", 0)
        done = _max_abs(xp, g) <= small
        while n < most and not done:
            n += 1
            state["n_iter"] += 1
            previous = loss
            d = _direction(xp, g, state, group["history_size"])
            state.update({"d": d, "prev_flat_grad": g, "prev_loss": loss})
            t = lr
            if state["n_iter"] == 1:
                t = min(1.0, 1 / _number(xp.sum(xp.abs(g)))) * lr
            state["t"] = t
            slope = _dot(xp, g, d)
            if slope > -change:
                break
            start = [param._array for param in params]
            count = 0
            if group["line_search_fn"] is not None:

                def evaluate_at(t: float, start: Any = start, d: Any = d) -> _Point:
                    _move(xp, params, start, t, d)
                    _, f, g = evaluate()
                    return _Point(t, f, g, _dot(xp, g, d))

                origin = _Point(0.0, loss, g, slope)
                limits = group["max_eval"] - evals, change / _max_abs(xp, d)
                (t, loss, g, _), count = _strong_wolfe(evaluate_at, origin, t, *limits)
            _move(xp, params, start, t, d)
            if group["line_search_fn"] is None and n < most:
                _, loss, g = evaluate()
                count = 1
            state["t"] = t
            evals += count
            state["func_evals"] += count
            done = (
                evals >= group["max_eval"]
                or (n < most and _max_abs(xp, g) <= small)
                or abs(t) * _max_abs(xp, d) <= change
                or abs(loss - previous) < change
            )
        return first

    def _load(self, name: str, value: Any, param: Tensor) -> Any:
        """Vectors of all parameters together, which have no parameter's shape."""
        if isinstance(value, list | tuple):
            return [self._load(name, x, param) for x in value]
        array = value._array if isinstance(value, Tensor) else value
        if not hasattr(array, "dtype"):
            return value
        if not array.shape:
            return _number(array)
        return super()._load(name, value, Tensor(param._array[None, None, ...]))


def _number(array: Any) -> float:
    return float(backend_of(array).to_numpy(array).item())


def _dot(xp: Any, x: Any, y: Any) -> float:
    return _number(xp.vecdot(x, y))


def _max_abs(xp: Any, x: Any) -> float:
    return _number(xp.max(xp.abs(x)))


def _assign(params: list[Tensor], arrays: list[Any]) -> None:
    for param, array in zip(params, arrays, strict=True):
        param._array = array


def _place(array: Any) -> tuple[Any, ...]:
    held = untracked(array)
    return held.dtype, held.device, held.shape


def _flat_gradient(xp: Any, params: list[Tensor]) -> Any:
    """All gradients in one vector; zeros for what has none."""
    parts = []
    for param in params:
        if namespaces[type(param._array)] is not xp:  # a 0-d array may be a scalar of NumPy's
            raise BackendError("LBFGS needs all parameters on one backend; move them with .to()")
        grad = xp.zeros_like(param._array) if param._grad is None else param._grad._array
        parts.append(xp.reshape(wide(xp, grad), (-1,)))
    return xp.concat(parts)


def _move(xp: Any, params: list[Tensor], start: list[Any], t: float, d: Any) -> None:
    """Set the parameters to where a step leads from ``start``."""
    arrays, offset = [], 0
    for p in start:
        held, end = wide(xp, p), offset + math.prod(p.shape)
        part = xp.astype(xp.reshape(d[offset:end], p.shape), held.dtype, copy=False)
        arrays.append(xp.astype(xp.axpby(1, held, t, part), p.dtype, copy=False))
        offset = end
    _assign(params, arrays)


def _direction(xp: Any, g: Any, state: State, size: int) -> Any:
    """The direction of the next step; what is known of the Hessian goes into the state."""
    if state["n_iter"] == 1:
        state.update({"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1})
        return xp.negative(g)
    y, s = xp.subtract(g, state["prev_flat_grad"]), xp.multiply(state["d"], state["t"])
    curvature = _dot(xp, y, s)
    if curvature > 1e-10:
        for name, new in (("old_dirs", y), ("old_stps", s), ("ro", 1 / curvature)):
            state[name] = [*state[name][-size + 1 :], new] if size > 1 else [new]
        state["H_diag"] = curvature / _dot(xp, y, y)
    pairs = [*zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True)]
    d, along = xp.negative(g), []
    for y, s, ro in reversed(pairs):
        along.append(_dot(xp, s, d) * ro)
        d = xp.axpby(1, d, -along[-1], y)
    d = xp.multiply(d, state["H_diag"])
    for (y, s, ro), a in zip(pairs, reversed(along), strict=True):
        d = xp.axpby(1, d, a - _dot(xp, y, d) * ro, s)
    return d


def _strong_wolfe(
    at: Callable[[float], _Point], start: _Point, t: float, most: int, narrow: float
) -> tuple[_Point, int]:
    """A point along a direction that satisfies the strong conditions of Wolfe, if one is found.

    ``most`` is how many further points are looked at, and ``narrow`` the width at which to stop.
    """

    def is_high(point: _Point) -> bool:
        return point.f > start.f + _DECREASE * point.t * start.slope

    def is_flat(point: _Point) -> bool:
        return abs(point.slope) <= -_CURVATURE * start.slope

    # First two points between which there is one.
    before, new, n, done = start, at(t), 0, False
    while n < most:
        if is_high(new) or (n > 1 and new.f >= before.f) or (not is_flat(new) and new.slope >= 0):
            bracket = [before, new]
            break
        if is_flat(new):
            return new, n + 1
        t = _cubic(before, new, new.t + 0.01 * (new.t - before.t), 10 * new.t)
        before, new, n = new, at(t), n + 1
    else:
        bracket = [start, new]
    bracket.sort(key=lambda point: point.f)  # the better one first; of equals the earlier
    slow = False
    while not done and n < most and not abs(bracket[1].t - bracket[0].t) < narrow:
        left, right = sorted(point.t for point in bracket)
        t = _cubic(bracket[0], bracket[1], left, right)
        margin = 0.1 * (right - left)
        near = min(right - t, t - left) < margin
        if near and (slow or not left < t < right):
            t = right - margin if abs(t - right) < abs(t - left) else left + margin
            near = False
        slow = near
        new, n = at(t), n + 1
        best, other = bracket
        if is_high(new) or new.f >= best.f:
            bracket = [best, new]
        else:
            done = is_flat(new)
            turned = not done and new.slope * (other.t - best.t) >= 0
            bracket = [new, best if turned else other]
    return bracket[0], n + 1


def _cubic(a: _Point, b: _Point, low: float, high: float) -> float:
    """Where the cubic through two points with their slopes is least, between two bounds."""
    left, right = (a, b) if a.t <= b.t else (b, a)
    width = right.t - left.t
    if width:
        chord = a.slope + b.slope - 3 * (right.f - left.f) / width
        square = chord * chord - a.slope * b.slope
        if square >= 0:
            root = math.sqrt(square)
            below = right.slope - left.slope + 2 * root
            if below:
                return min(max(right.t - width * (right.slope + root - chord) / below, low), high)
    return (low + high) / 2
