"""Checks of batches of cotangents and tangents: each member has the result that it has alone.

Both raise `GradcheckError` if results differ, or a rule fails for a batch.
"""

from typing import Any

import numpy as np

from wengert.interpreters.batched import Batched, members
from wengert.interpreters.duals import Dual, running, split
from wengert.interpreters.lifted import new_level
from wengert.tape.sweep import leading_to, sweep
from wengert.tape.tensor import Tensor, untracked
from wengert.testing.differences import agree, to_reals
from wengert.testing.problem import Problem, normal, raw_like, values
from wengert.testing.verdicts import GradcheckError

#: Members of a batch, and how far rounding may move the result of one.
COUNT = 3
RTOL, ATOL = 1e-9, 1e-12


def check_batched_cotangents(problem: Problem) -> None:
    """Check that a backward pass of a batch gives each member the gradients that it has alone."""
    results = problem.run()
    tracked = [result for result in results if result._node is not None]
    if not tracked:
        return
    random = np.random.default_rng(2)
    batches = [normal(random, (COUNT, *result.shape), result.dtype.complex) for result in tracked]
    level = new_level()
    nodes = {problem.arguments[i]._node.number: i for i in problem.checked}
    targets = set(nodes)
    wanted = leading_to(targets, [result._node for result in tracked])  # type: ignore[misc]
    outputs = [
        (result._node, Batched(raw_like(result, batch), level))
        for result, batch in zip(tracked, batches, strict=True)
        if result._node.number in wanted  # type: ignore[union-attr]
    ]
    try:
        arrived = sweep(outputs, keep=True, targets=targets, wanted=wanted)  # type: ignore[arg-type]
    except Exception as error:
        raise GradcheckError(
            f"the backward pass fails for a batch of cotangents: {error}"
        ) from error
    found = {nodes[node.number]: _members(g, level) for node, g in arrived.items()}
    for member in range(COUNT):
        own = iter(batches)
        cotangents = [None if r._node is None else next(own)[member] for r in results]
        alone = problem.sweep(results, cotangents, retain_graph=True)
        for i, expected in zip(problem.checked, alone, strict=True):
            given = found[i][member] if i in found else np.zeros_like(expected)
            _compare(given, expected, f"the gradient of inputs[{i}] for a batch of cotangents")


def check_batched_tangents(problem: Problem) -> None:
    """Check that forward mode gives each member of a batch the tangents that it has alone."""
    random = np.random.default_rng(2)
    for at in problem.checked:
        tensor = problem.arguments[at]
        batch = normal(random, (COUNT, *tensor.shape), tensor.dtype.complex)
        inner, outer = new_level(), new_level()
        # The batch is the inner level: a tangent is what is computed with, and is a batch.
        dual = Dual(tensor._array, Batched(raw_like(tensor, batch), outer), inner)
        with running(inner), problem.hold({at: dual}):
            try:
                results = problem.results(problem.func(*problem.arguments))
            except Exception as error:
                raise GradcheckError(
                    f"forward mode fails for a batch of tangents: {error}"
                ) from error
            found = [_tangents(result, inner, outer) for result in results]
        for member in range(COUNT):
            direction = problem.masks()[at]
            direction[direction > 0] = to_reals(batch[member])
            expected = problem.forward(direction)
            given = np.concatenate([to_reals(tangents[member]) for tangents in found])
            _compare(
                given, expected, f"the forward derivative for a batch of tangents of inputs[{at}]"
            )


def _tangents(result: Tensor, dual: int, batch: int) -> np.ndarray[Any, Any]:
    tangent = split(result._array, dual)[1]
    if tangent is None:
        dtype = np.complex128 if result.dtype.complex else np.float64
        return np.zeros((COUNT, *result.shape), dtype)
    return _members(tangent, batch)


def _members(array: Any, level: int) -> np.ndarray[Any, Any]:
    return values(untracked(members(array, level, COUNT)))


def _compare(given: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], what: str) -> None:
    if not agree(given, expected, RTOL, ATOL, ATOL):
        raise GradcheckError(f"{what} differs from the one that each member has alone")
