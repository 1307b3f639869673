"""Checks of gradients beside their values: repeatable, linear, unshared, precise, and freed.

Each raises `GradcheckError` where it fails.
"""

import gc
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from wengert.backends import DTYPES, backend_of, dtype_of, namespaces
from wengert.tape.autograd import backward
from wengert.tape.node import Node, Parts, tick
from wengert.tape.sweep import ancestors
from wengert.tape.tensor import Tensor
from wengert.testing.differences import Reals, to_reals
from wengert.testing.problem import Problem, inexact, like, normal, pair_with_cotangents, values
from wengert.testing.verdicts import GradcheckError

#: How far rounding may move a sum of products: relative to the products, and relative to the
#: cotangent, whose elements may cancel within a rule; and how far single precision may.
LINEARITY, CANCELLATION, SINGLE_LINEARITY = 1e-10, 1e-13, 2.0**-20


def check_conduct(problem: Problem, jacobian: Reals | None, nondet_tol: float) -> None:
    """Check the gradients of a problem in every respect but their values."""
    random = np.random.default_rng(1)
    first = problem.run()
    if all(result._node is None for result in first):
        return
    check_precision(first)
    cotangents = [normal(random, result.shape, result.dtype.complex) for result in first]
    once = problem.sweep(first, cotangents, retain_graph=True)
    problem.check_unchanged("the backward pass")
    if jacobian is not None:
        weights, found = [np.concatenate([to_reals(g) for g in gs]) for gs in (cotangents, once)]
        _check_linear(jacobian, weights, found, problem.input_entry, "cotangent")
    second = problem.run()
    for at, (before, after) in enumerate(zip(first, second, strict=True)):
        _check_same(values(before), values(after), nondet_tol, f"result {at}")
    again = _accumulate(problem, second, cotangents)
    for i, gradient, other in zip(problem.checked, once, again, strict=True):
        _check_same(gradient, values(other), nondet_tol, f"the gradient of inputs[{i}]")
    third = _accumulate(problem, first, cotangents)
    _check_unshared(problem, again, third, [*first, *second])
    del first, second, again, third, before, after, other
    _check_freed(problem)


#: Runs that a function has to repeat: one random bit is the same in each with probability 1/2.
REPEATS = 8


def check_repeatable(problem: Problem, nondet_tol: float, swept: bool = True) -> None:
    """Check that results are the same in each run, and with ``swept`` that gradients are.

    Differences say nothing about a function for which this fails.
    """
    first = problem.run()
    ones = [np.ones(result.shape) for result in first]
    known = problem.sweep(first, ones, retain_graph=False) if swept else []
    for _ in range(REPEATS):
        again = problem.run()
        if len(again) != len(first):
            raise GradcheckError(
                f"func returns {len(first)} results, and then {len(again)}: it is not deterministic"
            )
        for at, (before, after) in enumerate(zip(first, again, strict=True)):
            _check_same(values(before), values(after), nondet_tol, f"result {at}")
        if not swept:
            continue
        gradients = problem.sweep(again, ones, retain_graph=False)
        for i, one, other in zip(problem.checked, known, gradients, strict=True):
            _check_same(one, other, nondet_tol, f"the gradient of inputs[{i}]")


def check_linear_in_tangents(problem: Problem, jacobian: Reals | None) -> None:
    """Check that forward mode both ways along a random line gives what its Jacobian gives."""
    if jacobian is None:
        return
    drawn = normal(np.random.default_rng(1), (problem.width,), False)
    for direction in (drawn, -drawn):
        found = problem.forward(direction)
        _check_linear(jacobian.T, direction, found, problem.result_entry, "tangent")


def _check_linear(
    rows: Reals, weights: Reals, found: Reals, entry: Callable[[int], str], what: str
) -> None:
    """Check that what was found is the weighted sum of rows."""
    expected, sizes = weights @ rows, abs(weights) @ abs(rows)
    off = abs(found - expected)
    wrong = ~(off <= LINEARITY * sizes + CANCELLATION * np.sum(abs(weights)))
    if np.any(wrong):
        at = int(np.argmax(wrong))
        near = off[at] <= SINGLE_LINEARITY * sizes[at]
        single = ", as by rounding to single precision" if near else ""
        place, which = ("of", "columns") if what == "tangent" else ("at", "rows")
        raise GradcheckError(
            f"a rule is not linear in the {what}{single}: for a random one the derivative, {place} "
            f"{entry(at)}, is {found[at]:.12g}, and the Jacobian's {which} give {expected[at]:.12g}"
        )


def _check_same(
    a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], tolerance: float, what: str
) -> None:
    with np.errstate(invalid="ignore"):
        same = a.shape == b.shape and np.all(
            (a == b) | (abs(a - b) <= tolerance) | ((a != a) & (b != b))
        )
    if not same:
        raise GradcheckError(f"{what} differs between two runs: func is not deterministic")


def _accumulate(
    problem: Problem, results: list[Tensor], cotangents: list[np.ndarray[Any, Any]]
) -> list[Tensor]:
    """What `backward` adds to ``.grad`` where there is none; ``.grad`` is then restored."""
    targets = [problem.arguments[i] for i in problem.checked]
    held = [target.grad for target in targets]
    for target in targets:
        target.grad = None
    outputs, seeds = pair_with_cotangents(results, cotangents)
    before = [values(g) for g in seeds]
    try:
        backward(outputs, seeds, retain_graph=True, inputs=targets)
        found = [
            like(target, np.zeros(target.shape, values(target).dtype))
            if target.grad is None
            else target.grad
            for target in targets
        ]
    finally:
        for target, old in zip(targets, held, strict=True):
            target.grad = old
    for at, (g, old) in enumerate(zip(seeds, before, strict=True)):
        if values(g).tobytes() != old.tobytes():
            raise GradcheckError(f"the backward pass changed the cotangent of result {at} in place")
    for i, gradient in zip(problem.checked, found, strict=True):
        for at, g in enumerate(seeds):
            if share_memory(gradient, g):
                raise GradcheckError(
                    f"the .grad of inputs[{i}] shares its memory with the cotangent of result {at}"
                )
    return found


def share_memory(a: Tensor, b: Tensor) -> bool:
    """Return whether two Tensors' arrays share memory, if their library can tell."""
    backend = backend_of(a._array)
    if backend.immutable or a.backend is not b.backend:
        return False
    return np.shares_memory(backend.to_numpy(a.array), backend.to_numpy(b.array))


def _check_unshared(
    problem: Problem, gradients: list[Tensor], others: list[Tensor], results: list[Tensor]
) -> None:
    for place, (i, gradient) in enumerate(zip(problem.checked, gradients, strict=True)):
        shared = [
            *((f"inputs[{j}]", problem.arguments[j]) for j in problem.checked),
            *(
                (f"the .grad of inputs[{j}]", other)
                for j, other in zip(problem.checked[:place], gradients[:place], strict=True)
            ),
            *(("the .grad of another backward pass", other) for other in others),
            *(("a result", result) for result in results),
        ]
        for what, other in shared:
            if share_memory(gradient, other):
                raise GradcheckError(f"the .grad of inputs[{i}] shares its memory with {what}")


def check_precision(results: Iterable[Tensor]) -> None:
    """Check that each rule on the way to ``results`` computes in its operation's precision.

    That is the result's or the operand's. The engine casts each cotangent to the dtype of its
    operand, so the gradient's dtype does not show that a rule computes in single precision, which
    loses digits, or in double, which loses time.
    """
    tracked = [(result._node, result._array) for result in results if result._node is not None]
    kin: dict[int, Any] = {node.number: array for node, array in tracked}
    for node in ancestors(node for node, _ in tracked):
        if node.number not in kin:  # every rule on the way to it returns None
            continue
        g = _ones(node, kin[node.number])
        for at, more in node.flows(g):
            parent: Any = node.parents[at]
            several = isinstance(more, Parts)
            kin[parent.number] = kin[node.number] if several else more
            allowed = {
                _precision(raw) for raw in (*_as_tuple(node.dtype), *_as_tuple(parent.dtype))
            }
            if not several and _precision(more.dtype) not in allowed:
                position = next(i for i, p in enumerate(node.parents) if p is parent)
                raise GradcheckError(
                    f"the rule of {node.operation} for its operand {position}, of dtype "
                    f"{dtype_of(parent.dtype).name}, returns {dtype_of(more.dtype).name}"
                )


def check_absent(problem: Problem) -> None:
    """Check that gradients without a cotangent of a result are those with one of zeros."""
    results = problem.run()
    if sum(result._node is not None for result in results) < 2:
        return
    ones = [np.ones(result.shape, values(result).dtype) for result in results]
    for at in range(len(results)):
        absent = [None if i == at else g for i, g in enumerate(ones)]
        zeros = [g * 0 if i == at else g for i, g in enumerate(ones)]
        for i, without, with_zeros in zip(
            problem.checked,
            problem.sweep(results, absent, retain_graph=True),
            problem.sweep(results, zeros, retain_graph=True),
            strict=True,
        ):
            if not np.allclose(without, with_zeros, LINEARITY, CANCELLATION, equal_nan=True):
                raise GradcheckError(
                    f"the gradient of inputs[{i}] is not the same without a cotangent of result "
                    f"{at} as with one of zeros"
                )


#: The dtypes of single precision, by those of double.
SINGLE = {"float64": "float32", "complex128": "complex64"}


def check_single(problem: Problem) -> None:
    """Check that a function of single-precision inputs has results and rules of that precision."""
    copies: dict[int, Any] = {}  # by identity: a Tensor that is given twice stays one
    for x in problem.arguments:
        copies[id(x)] = _to_single(x)
    try:
        results = inexact(problem.func(*(copies[id(x)] for x in problem.arguments)))
    except Exception:
        if _holds_double(problem.run(), problem):
            return
        raise
    results = [result for result in results if result._node is not None]
    if _holds_double(results):
        return
    for i, result in enumerate(results):
        if result.dtype.name in SINGLE:
            raise GradcheckError(
                f"result {i} has dtype {result.dtype.name} where the inputs are in single "
                "precision: func casts, or it holds a constant in double precision"
            )
    check_precision(results)


def _to_single(x: Any) -> Any:
    """A copy of an argument in single precision; the argument itself if it is not in double."""
    if isinstance(x, np.ndarray) and x.dtype.name in SINGLE:
        return x.astype(SINGLE[x.dtype.name])
    if not (isinstance(x, Tensor) and x.dtype.name in SINGLE):
        return x
    backend = backend_of(x._array)
    dtype = backend.raw_dtype(DTYPES[SINGLE[x.dtype.name]])
    return Tensor(backend.namespace.astype(x.array, dtype), requires_grad=x.requires_grad)


def _holds_double(results: list[Tensor], problem: Problem | None = None) -> bool:
    """Whether results depend on leaves in double precision that are no inputs of a problem.

    A function with such parameters computes in their precision, whatever its inputs are.
    """
    own = [] if problem is None else [problem.arguments[i]._node for i in problem.checked]
    return any(
        not node.parents and node not in own and dtype_of(node.dtype).name in SINGLE
        for node in ancestors(r._node for r in results if r._node is not None)
    )


def _as_tuple(dtype: Any) -> tuple[Any, ...]:
    return dtype if isinstance(dtype, tuple) else (dtype,)


def _precision(raw: Any) -> int:
    """Bytes of a real number of a dtype."""
    dtype = dtype_of(raw)
    return dtype.itemsize // 2 if dtype.complex else dtype.itemsize


def _ones(node: Node, like: Any) -> Any:
    """A cotangent of ones for a node's result, in the library and on the device of an array."""
    xp = namespaces[type(like)]
    device = xp.device(like)
    if not node.several:
        return xp.ones(node.shape, dtype=node.dtype, device=device)
    return Parts(
        node,
        {
            i: xp.ones(shape, dtype=dtype, device=device)
            for i, (shape, dtype) in enumerate(zip(node.shape, node.dtype, strict=True))
            if dtype_of(dtype).inexact
        },
    )


def _check_freed(problem: Problem) -> None:
    """Check that the graph is freed with its last Tensor, without the garbage collector."""
    start = tick()
    enabled = gc.isenabled()
    gc.disable()
    try:
        results = problem.func(*problem.arguments)
        nodes = [
            weakref.ref(r._node)
            for r in problem.results(results)
            if r._node is not None and r._node.number > start
        ]
        del results
        leaked = [node for node in nodes if node() is not None]
    finally:
        if enabled:
            gc.enable()
    if leaked:
        raise GradcheckError(
            f"the graph of {leaked[0]()} is not freed with its last Tensor: a reference cycle or "
            "a cache keeps it"
        )
