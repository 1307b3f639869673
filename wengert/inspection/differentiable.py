"""The assertion that a function depends differentiably on its inputs."""

import inspect
from collections.abc import Callable
from traceback import extract_tb
from typing import Any

from wengert.backends import BackendError, backend_of, dtype_of, namespaces
from wengert.func.trees import tree_flatten
from wengert.inspection.breaks import GraphBreakError, GraphBreaks, declaration, graph_breaks
from wengert.ops import asarray
from wengert.tape.autograd import grad
from wengert.tape.node import AccumulateGrad
from wengert.tape.tensor import Tensor, untracked, with_node


def assert_differentiable(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> GraphBreaks:
    """Assert that the result of a function depends differentiably on all of its inputs.

    The function and its backward pass are run once. `wengert.testing.gradcheck` checks values.

    Parameters
    ----------
    f : callable
        A function of arrays, or a module, whose parameters are inputs too.
    *args, **kwargs
        Its arguments, nested in containers. Its inputs are the Tensors among them that require
        grad; if there is none, all floating and complex arrays of any array library.

    Returns
    -------
    GraphBreaks
        The breaks that cut off no input, such as a number for a log.

    Raises
    ------
    GraphBreakError
        An AssertionError that lists the lines, if an input does not reach the result by
        operations whose derivative is not zero, or a derivative on the way fails.
    ValueError
        If there is no floating or complex array among the arguments.

    Examples
    --------
    >>> wg.testing.assert_differentiable(lambda x: wg.sum(x * x), wg.asarray([1.0, 2.0]))
    no graph breaks
    """
    inputs, bound = _inputs(f, args, kwargs)
    called = str(getattr(f, "__qualname__", type(f).__name__)).rpartition("<locals>.")[2]
    with graph_breaks() as breaks:
        try:
            returned = f(*bound.args, **bound.kwargs)
        except Exception as error:
            lines = [(at.filename, at.lineno) for at in extract_tb(error.__traceback__)]
            if not any((one.filename, one.line) in lines for one in breaks):
                raise
            message = f"{called} failed where it would have lost track of its derivative"
            raise GraphBreakError(message, breaks) from error
    leaves = tree_flatten(returned)[0]
    tracked = [x for x in leaves if isinstance(x, Tensor) and x._node is not None]
    reached = _reachable([x._node for x in tracked])
    problems = [
        f"the result does not depend differentiably on {name}"
        for name, leaf in inputs
        if leaf._node not in reached
    ]
    cause = None
    if not any(isinstance(x, Tensor) for x in leaves):
        kinds = ", ".join(sorted({type(x).__name__ for x in leaves}))
        problems.insert(0, f"the result is no Tensor, but: {kinds}")
    if not problems:
        ones = [untracked(namespaces[type(x._array)].ones_like(x._array)) for x in tracked]
        wanted = [leaf for _, leaf in inputs]
        try:
            gradients = grad(tracked, wanted, ones, retain_graph=True, allow_unused=True)
        except Exception as error:
            cause = error
            problems = [f"its derivative fails: {type(error).__name__}: {error}"]
        else:  # the backward of a Function may return None
            pairs = zip(inputs, gradients, strict=True)
            problems = [f"no gradient arrives at {name}" for (name, _), g in pairs if g is None]
    if problems:
        message = f"{called} is not differentiable: {'; '.join(problems)}"
        raise GraphBreakError(message, breaks) from cause
    return breaks


def _inputs(f: Any, args: Any, kwargs: Any) -> tuple[list[tuple[str, Any]], Any]:
    """The inputs with their names, and the arguments with leaves of their own."""
    try:
        bound = inspect.signature(f).bind(*args, **kwargs)
    except (TypeError, ValueError):  # a function in C, or a module
        bound = inspect.signature(lambda *args, **kwargs: None).bind(*args, **kwargs)
    leaves, structure = tree_flatten(bound.arguments)
    found = [
        (name, x)
        for name, x in getattr(f, "named_parameters", tuple)()
        if isinstance(x, Tensor) and x._node is not None
    ]
    chosen = [isinstance(x, Tensor) and x._node is not None for x in leaves]
    if not any(chosen) and not found:
        chosen = list(map(_is_inexact_array, leaves))
    for i, path in enumerate(structure.paths()):
        if chosen[i]:
            array = asarray(leaves[i])._array
            leaves[i] = with_node(array, AccumulateGrad(shape=array.shape, dtype=array.dtype))
            found.append((path[1:].replace("'", "", 2).replace("]", "", 1), leaves[i]))
    if not found:
        raise ValueError("assert_differentiable needs at least one floating or complex array")
    bound.arguments = structure.unflatten(leaves)
    return found, bound


def _is_inexact_array(leaf: Any) -> bool:
    try:
        backend_of(leaf._array if isinstance(leaf, Tensor) else leaf)
    except (TypeError, BackendError):
        return False
    return dtype_of(leaf.dtype).inexact


def _reachable(roots: list[Any]) -> set[Any]:
    """The nodes that a non-zero cotangent can reach."""
    stack, seen = list(roots), set[Any]()
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            parents = enumerate(node.parents)
            stack += [p for i, p in parents if p is not None and declaration(node, i) != "zero"]
    return seen
