"""Graph breaks: the lines at which a program loses track of its derivatives."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from wengert.backends import BackendError, backend_of, dtype_of, namespaces
from wengert.func.trees import tree_flatten
from wengert.inspection.breaks import CONVERSIONS, GraphBreak, GraphBreakError, GraphBreaks
from wengert.inspection.lineage import Lineage, Tag, declared
from wengert.ops import asarray
from wengert.tape.autograd import grad
from wengert.tape.node import AccumulateGrad, Node
from wengert.tape.observers import observed_by
from wengert.tape.tensor import Tensor, placed, untracked


@contextmanager
def graph_breaks() -> Iterator[GraphBreaks]:
    """List where tracking is lost inside a ``with`` block, with the lines that lose it.

    A break is where the values of a Tensor that requires grad, or has a tangent in forward mode,
    are used without their derivative: as a Python number, a boolean that decides a branch, an
    array of NumPy or another library, a detached or deep copy; by an operation that is not
    recorded or whose derivative is zero, undefined or not implemented; or by a cast to integers.
    Many breaks are intended (a number to print, a stopped gradient), so nothing is raised:
    `assert_differentiable` raises where they cut off an input.

    Yields
    ------
    GraphBreaks
        A sequence of `GraphBreak`, in the order in which the lines first ran, filled while the
        block runs. It prints as a report. A line that runs again is counted, not listed again.

    Notes
    -----
    Only the thread or task that entered the block is observed. Blocks may be nested. Operations
    inside a block take several times as long; those outside are not slowed down.

    Examples
    --------
    >>> x = wg.tensor(2.0, requires_grad=True)
    >>> with wg.testing.graph_breaks() as breaks:
    ...     y = x * float(x)
    >>> breaks[0].kind, breaks[0].operation
    ('number', 'float')
    """
    lineage = Lineage()
    with observed_by(lineage):
        yield lineage.breaks


def assert_differentiable(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> GraphBreaks:
    """Assert that the result of a function depends differentiably on all of its inputs.

    The function and its backward pass are run once. Recorded operations, none of which has a
    derivative declared as zero, have to connect every input to the result, and each input has to
    get a gradient of any value. `wengert.testing.gradcheck` checks that value.

    Parameters
    ----------
    f : callable
        A function of arrays, a module, or anything else that can be called. Its result may be
        nested in lists, tuples, dicts, named tuples and dataclasses.
    *args, **kwargs
        Its arguments, nested likewise. Its inputs are the Tensors among them that require grad;
        if there is none, all floating and complex arrays of any array library, for which ``f``
        gets Tensors. The parameters of a module ``f`` are inputs too.

    Returns
    -------
    GraphBreaks
        The breaks that cut off no input, such as a number for a log.

    Raises
    ------
    GraphBreakError
        An AssertionError that lists the lines. If an input does not reach the result; if one of
        the results has lost track of the inputs; if a derivative on the way is undefined, not
        implemented or raises; or if ``f`` raises because an operation would have lost track.
    ValueError
        If there is no floating or complex array among the arguments.

    Examples
    --------
    >>> wg.testing.assert_differentiable(lambda x: wg.sum(x * x), wg.asarray([1.0, 2.0]))
    no graph breaks
    """
    inputs, arguments, keywords = _inputs(f, args, kwargs)
    lineage = Lineage({_node(leaf).number: name for name, leaf in inputs})
    with observed_by(lineage):
        try:
            returned = f(*arguments, **keywords)
        except Exception as error:
            cause = lineage.cause_of(error)
            if cause is None:
                raise
            raise GraphBreakError(
                f"{_called(f)} failed where it would have lost track of its derivative",
                [cause],
                lineage.breaks,
            ) from error
    _judge(_called(f), inputs, returned, lineage)
    return lineage.breaks


#: An input's name and its leaf.
Input = tuple[str, Tensor]

# -- arguments -----------------------------------------------------------------------------------


def _inputs(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Input], tuple[Any, ...], dict[str, Any]]:
    """The inputs, and the arguments with leaves of their own."""
    leaves, structure = tree_flatten((args, kwargs))
    names = [_readable(path, f) for path in structure.paths()]
    parameters = [
        (name, tensor)
        for name, tensor in getattr(f, "named_parameters", tuple)()
        if isinstance(tensor, Tensor) and tensor._node is not None
    ]
    chosen = [isinstance(leaf, Tensor) and leaf._node is not None for leaf in leaves]
    if not any(chosen) and not parameters:
        chosen = [_is_inexact_array(leaf) for leaf in leaves]
    found: list[Input] = []
    for i, leaf in enumerate(leaves):
        if chosen[i]:
            array = asarray(leaf)._array
            leaves[i] = placed(array, AccumulateGrad(array.shape, array.dtype))
            found.append((names[i], leaves[i]))
    if not found and not parameters:
        raise ValueError(
            "assert_differentiable needs at least one floating or complex array among the "
            "arguments, or a module with parameters"
        )
    arguments, keywords = structure.unflatten(leaves)
    return found + parameters, arguments, keywords


def _is_inexact_array(leaf: Any) -> bool:
    if not isinstance(leaf, Tensor):
        try:
            backend_of(leaf)
        except (TypeError, BackendError):
            return False
    return dtype_of(leaf.dtype).inexact


def _readable(path: str, f: Callable[..., Any]) -> str:
    """An argument's path as the function's own parameter: ``[0][1]['w']`` is ``params['w']``."""
    kind, _, rest = path[1:].partition("]")
    first, _, below = rest[1:].partition("]")
    if kind == "1":
        return first.strip("'\"") + below
    try:
        parameters = [
            p.name
            for p in inspect.signature(f).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        return parameters[int(first)] + below
    except (IndexError, TypeError, ValueError):
        return f"args[{first}]{below}"


def _node(tensor: Tensor) -> Node:
    """The node of a Tensor that requires grad."""
    return tensor._node  # type: ignore[return-value]


def _called(f: Callable[..., Any]) -> str:
    return str(getattr(f, "__qualname__", type(f).__name__)).rpartition("<locals>.")[2]


# -- the verdict ---------------------------------------------------------------------------------


def _judge(called: str, inputs: list[Input], returned: Any, lineage: Lineage) -> None:
    leaves, structure = tree_flatten(returned)
    paths = structure.paths()
    results = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    tracked = [result for result in results if result._node is not None]
    reached, failing = _reach(map(_node, tracked), lineage)
    tag = lineage.union(results)
    problems: list[str] = []
    cause: Exception | None = None
    errors: list[GraphBreak] = list(failing)
    for name, leaf in inputs:
        number = _node(leaf).number
        if number in reached:
            continue
        blamed = _blamed(number, tag, lineage)
        errors += [b for b in blamed if b not in errors]
        used = bool(blamed) or number in tag.leaves
        problems.append(
            f"the result does not depend differentiably on {name}"
            if used
            else f"the result does not depend on {name}: it is not used"
        )
    for path, leaf in zip(paths, leaves, strict=True):
        lost = _lost(leaf, lineage)
        if lost is not None and len(leaves) > 1:
            problems.append(f"result{path} is not tracked")
            errors += [b for b in lost if b not in errors]
    if failing:
        problems.append("a derivative on the way to the result can't be computed")
    if not results and inputs:
        what = ", ".join(sorted({type(leaf).__name__ for leaf in leaves})) or "nothing"
        problems.insert(0, f"the result is no Tensor, but: {what}")
    if not problems:
        unreached, cause = _sweep(tracked, inputs)
        if cause is not None:
            problems.append(f"its derivative fails: {type(cause).__name__}: {cause}")
        for name, leaf in unreached:
            blamed = _blamed(_node(leaf).number, tag, lineage)
            errors += [b for b in blamed if b not in errors]
            why = "" if blamed else ": the backward of a Function returns None for it"
            problems.append(f"no gradient arrives at {name}{why}")
    if problems:
        raise GraphBreakError(
            f"{called} is not differentiable: " + "; ".join(problems), errors, lineage.breaks
        ) from cause


def _sweep(results: list[Tensor], inputs: list[Input]) -> tuple[list[Input], Exception | None]:
    """The inputs that get no gradient, or the error that a derivative raised.

    Connected inputs can get none from the backward of a `Function`, or through a transform.
    """
    ones = [namespaces[type(result._array)].ones_like(result._array) for result in results]
    try:
        gradients = grad(
            results,
            [leaf for _, leaf in inputs],
            [untracked(one) for one in ones],
            retain_graph=True,
            allow_unused=True,
        )
    except Exception as error:
        return [], error
    return [one for one, g in zip(inputs, gradients, strict=True) if g is None], None


def _blamed(number: int, tag: Tag, lineage: Lineage) -> list[GraphBreak]:
    """The breaks, or else the notes, that explain why an input does not reach the result.

    First choice are breaks whose values are known to be in the result, and conversions, after
    which values cannot be followed; then notes; then other breaks; and branches last.
    """

    def of_input(breaks: Iterable[GraphBreak]) -> list[GraphBreak]:
        return [b for b in breaks if number in lineage.leaves_of(b)]

    cut = of_input(lineage.breaks)
    branches = [b for b in cut if b.kind == "branch"]
    others = [b for b in cut if b.kind != "branch"]
    flowing = [b for b in others if b.kind in CONVERSIONS or lineage.flows(b, tag)]
    notes = [b for b in of_input(lineage.notes) if lineage.flows(b, tag)]
    return flowing or notes or others or branches


def _lost(leaf: Any, lineage: Lineage) -> list[GraphBreak] | None:
    """The breaks that led to a floating result off the tape; None if there are none."""
    if not isinstance(leaf, Tensor) or leaf._node is not None or not leaf.dtype.inexact:
        return None
    tag = lineage.union([leaf])
    return [b for b in lineage.breaks if lineage.flows(b, tag)] or None


def _reach(roots: Iterable[Node], lineage: Lineage) -> tuple[set[int], Sequence[GraphBreak]]:
    """Numbers of the nodes that a non-zero cotangent can reach, and breaks that would raise."""
    stack = list(roots)
    seen: set[int] = set()
    failing: list[GraphBreak] = []
    while stack:
        node = stack.pop()
        if node.number in seen:
            continue
        seen.add(node.number)
        for position, parent in enumerate(node.parents):
            if parent is None:
                continue
            stated = declared(node, position)
            if stated == "zero":
                continue
            if stated is not None:
                failing += [b for b in lineage.at(node) if b not in failing]
            stack.append(parent)
    return seen, failing
