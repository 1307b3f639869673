"""`onnx`: a function, or a whole training step, as an ONNX model."""

import importlib
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from wengert.backends import backend_of
from wengert.backends.backend import importing
from wengert.compiler import making
from wengert.compiler.calls import Call
from wengert.compiler.capture.lines import describe
from wengert.compiler.compiled import Compiled
from wengert.compiler.emission.exported import ExportedProgram, present
from wengert.compiler.program import Value
from wengert.compiler.state import State
from wengert.export.errors import ExportError
from wengert.export.graph import NUMBERS, Graph
from wengert.export.recording import array_in, preserving, record, resize
from wengert.export.sizes import Shapes, Sized, choose, common
from wengert.func.trees import tree_flatten
from wengert.tape.tensor import Tensor

__all__ = ["onnx"]

Host = np.ndarray[Any, Any]
#: Calls of the function by batch size: the arguments and the outputs, by name.
Runs = dict[int, tuple[dict[str, Host], dict[str, Host]]]

#: The prefix of a state's name for its next value.
NEXT = "next."
#: Tolerances of the check, relative to an output's largest element.
TOLERANCES: Mapping[str, float] = {"float32": 1e-3, "float64": 1e-9}


def onnx(
    function: Callable[..., Any],
    example_inputs: Any,
    path: str | Path,
    *,
    batch_axes: int | Sequence[int | None] | None = 0,
    check_sizes: Sequence[int] = (1, 2, 7),
    constants: bool = False,
    tolerance: float | None = None,
) -> dict[str, Host]:
    """Write a function as an ONNX model: an inference, gradients, or a whole training step.

    The model is the program that `wengert.compile` records, under the same conditions. Parameters,
    buffers, and the optimisers' state, counters and hyper-parameters are state. Each of them is an
    input of the model, with its name in the function (``model.0.weight``, ``optimizer.lr``) and the
    present value as its default. State that the function changes is also an output, such as
    ``next.model.0.weight``. The result is ``output``, or for a tree ``output.loss`` and the like;
    numbers are outputs, too.

    Parameters
    ----------
    function : callable
        Also a `Module`, or a compiled function. A step that has gradients or an optimiser's state
        has to be called once before, since its first call makes these.
    example_inputs : tuple
        Positional arguments: trees of Tensors, raw arrays and numbers. Anything but a tuple is the
        only argument.
    path : path
        The file.
    batch_axes : int, None, or a sequence of these
        The batch axis of the arrays in each argument, whose length the model leaves open, or None:
        one for all arguments, or one for each. Arrays without that axis have no batch.
    check_sizes : sequence of int
        The batch sizes at which onnxruntime runs the model, to compare it with the function, beside
        that of the example. The model refuses batches below the smallest that the function takes.
    constants : bool
        Whether state that the function does not change is a constant instead of an input, as for
        inference; onnxruntime then folds constants.
    tolerance : float, optional
        The greatest difference, relative to the largest element: by default 1e-3 in float32 and
        1e-9 in float64.

    Returns
    -------
    dict of str to numpy.ndarray
        The present values of the state by the names of the inputs.

    Raises
    ------
    ExportError
        If the model can't be made, or its results differ from the function's. Nothing is written.
    TraceError
        If the function does what a program can't do, such as branching on values or printing. The
        error names the line.
    ImportError
        If a package is missing: install ``wengert[onnx]``.

    Notes
    -----
    Random numbers can't be drawn: call ``model.eval()``, or leave dropout out of the step. Numbers
    on which the function branches are constants of the model. A decision by the batch size, such as
    ``len(x) > 1000``, is as in the sizes checked. The model has no checks of values: where eager
    code raises, it continues.

    Examples
    --------
    >>> import onnxruntime
    >>> from tempfile import TemporaryDirectory
    >>> model, x = wg.nn.Linear(2, 1), wg.ones((4, 2))
    >>> with TemporaryDirectory() as folder:
    ...     _ = wg.export.onnx(model, x, f"{folder}/model.onnx", constants=True)
    ...     session = onnxruntime.InferenceSession(f"{folder}/model.onnx")
    >>> session.run(None, {"input": x.numpy()})[0].shape
    (4, 1)
    """
    tools = _Tools()
    compiled: Compiled[..., Any] = (
        function if isinstance(function, Compiled) else making.compile(function)
    )
    args = example_inputs if isinstance(example_inputs, tuple) else (example_inputs,)
    strict = compiled.strictly()
    call, state = strict.look(args, {})
    axes = _axes(call, batch_axes)
    if any(type(n) is not int or n < 0 for n in check_sizes):
        raise ValueError(f"check_sizes are integers from 0 on, not {check_sizes!r}")
    sizes = choose(_lengths(call.leaves, state)) if axes else [0]
    given = [resize(call.leaves, axes, size) if axes else call.leaves for size in sizes]
    parts = [record(strict, call, state, leaves) for leaves in given]
    _, state = strict.look(args, {})  # with the numbers that the function changes
    part, shapes = common(parts, sizes)
    name = compiled.report.name
    model = _Model(tools, part, shapes, state, call, axes, function=name, constants=constants)
    runs = _runs(model, strict, call, axes, check_sizes)
    model.least = min(runs) if axes else 0
    _check(tools, model, runs, tolerance)
    Path(path).write_bytes(model.text)
    return {name: x for name, x in model.initial.items() if name not in model.constants}


class _Tools:
    """The packages of the extra ``onnx``."""

    def __init__(self) -> None:
        with importing(
            "wengert.export.onnx needs ndonnx, onnxruntime and array-api-strict ({}); install "
            "wengert[onnx]"
        ):
            names = ("ndonnx", "spox.opset.ai.onnx.v21", "onnx.numpy_helper", "onnxruntime")
            found = map(importlib.import_module, (*names, "array_api_strict"))
            self.ndonnx, self.operators, self.helper, self.runtime, _ = found


# -- the batch -------------------------------------------------------------------------------------


def _axes(call: Call, given: int | Sequence[int | None] | None) -> dict[int, int]:
    """The batch axis of each leaf that has one."""
    positional = call.layout.structure.children[0].children
    each = [given] * len(positional) if given is None or isinstance(given, int) else list(given)
    if len(each) != len(positional):
        raise ValueError(f"batch_axes are for {len(each)} arguments; there are {len(positional)}")
    of_leaves = [
        axis for axis, x in zip(each, positional, strict=True) for _ in range(x.num_leaves)
    ]
    axes, lengths = dict[int, int](), dict[str, int]()
    for i, axis in enumerate(of_leaves):
        array = None if call.layout.static[i] else array_in(call.leaves[i])
        if axis is None or array is None or not -len(array.shape) <= axis < len(array.shape):
            continue
        axes[i] = axis % len(array.shape)
        lengths[call.layout.names[i]] = array.shape[axis]
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise ValueError(f"the batch has one size, but {told}; batch_axes names the axes")
    if 0 in lengths.values():
        raise ValueError("the example's batch is empty")
    return axes


def _lengths(leaves: Sequence[Any], state: State) -> set[int]:
    """All lengths of axes of the arguments and the state."""
    arrays = [x for leaf in leaves if (x := array_in(leaf)) is not None]
    arrays += [each.tensor._array for each in state.tensors]
    arrays += [place.get() for place in state.arrays]
    return {n for x in arrays for n in x.shape}


# -- the model -------------------------------------------------------------------------------------


class _Model:
    """An exported program, with names for its inputs and outputs.

    ``names`` are those of inputs by position, ``initial`` is the present state by name, and
    ``outputs`` are positions by name. ``least`` is the smallest batch size that the model accepts.
    """

    def __init__(
        self,
        tools: _Tools,
        part: ExportedProgram,
        shapes: Shapes,
        state: State,
        call: Call,
        axes: Mapping[int, int],
        *,
        function: str,
        constants: bool,
    ) -> None:
        self.tools, self.part, self.shapes, self.least = tools, part, shapes, 0
        fixed, taken = _constants(part), set[str]()
        leaves = dict(zip(call.layout.names, call.leaves, strict=True))
        batch = {call.layout.names[i]: axis for i, axis in axes.items()}
        self.names, self.initial = dict[int, str](), dict[str, Host]()
        self.axes, self.fixed = dict[int, int](), dict[int, Any]()
        self.constants = set[str]()
        for i, value in enumerate(part.program.inputs):
            given = i in part.arguments
            if i in fixed:
                self.fixed[i] = leaves[value.name] if given else present(part.refs[i], state)
                continue
            self.names[i] = name = _new(_readable(value.name), taken)
            if not given:
                if constants and i not in part.updates:
                    self.constants.add(name)
                self.initial[name] = _host(present(part.refs[i], state))
            elif value.name in batch:
                self.axes[i] = batch[value.name]
        paths = part.answer.paths()
        answered = len(part.program.outputs) - len(part.updates)
        self.outputs: dict[str, int] = {}
        for i, x in enumerate(part.program.outputs):
            if x is None:
                continue
            updated = None if i < answered else self.names[part.updates[i - answered]]
            name = _readable(f"output{paths[i]}" if updated is None else NEXT + updated)
            if not isinstance(x, Value | Sized) and type(x) not in NUMBERS:
                raise ExportError(
                    f"{name} of {function} is a {type(x).__name__}, which no model returns"
                )
            if type(x) is int and not -(2**63) <= x < 2**63:
                raise ExportError(f"{name} is an int that int64 does not hold")
            self.outputs[_new(name, taken)] = i
        if not self.outputs:
            raise ExportError(f"{function} returns nothing, and changes nothing")

    @cached_property
    def text(self) -> bytes:
        """The model in ONNX's format."""
        ndx, program = self.tools.ndonnx, self.part.program
        graph = Graph(ndx, self.tools.operators, program, self.shapes)
        inputs: list[Any] = []
        named: dict[str, Any] = {}
        for i, value in enumerate(program.inputs):
            if i in self.fixed:
                inputs.append(self.fixed[i])
                continue
            shape: list[Any] = list(value.shape or ())
            axis = self.axes.get(i)
            if axis is not None:
                shape[axis] = "batch"
            x = ndx.argument(shape=tuple(shape), dtype=graph.dtype(value.dtype))
            named[self.names[i]] = x
            if axis is not None:
                # onnxruntime checks neither the least size nor that batches have one size.
                n = x.dynamic_shape[axis]
                least = ndx.maximum(n, ndx.asarray(self.least, dtype=n.dtype))
                shape[axis] = least if graph.size is None else graph.size
                x = ndx.reshape(x, graph.shape(shape))
                graph.size = x.dynamic_shape[axis] if graph.size is None else graph.size
            inputs.append(x)
        made = graph.run(inputs)
        model = ndx.build(named, {name: made[i] for name, i in self.outputs.items()})
        tensors = [self.tools.helper.from_array(x, name) for name, x in self.initial.items()]
        model.graph.initializer.extend(tensors)
        for given in [x for x in model.graph.input if x.name in self.constants]:
            model.graph.input.remove(given)
        return model.SerializeToString()  # type: ignore[no-any-return]


def _constants(part: ExportedProgram) -> set[int]:
    """The inputs whose numbers are constants of the program.

    Raises
    ------
    ExportError
        If the program decides by a number that it changes.
    """
    fixed, decided = set(part.pinned), part.decided
    at = dict(zip(decided.program.inputs, part.deciding, strict=True))
    sources: dict[Value, set[int]] = {value: {i} for value, i in at.items()}
    comparisons: dict[Value, Any] = {}
    for step in decided.program.instructions:
        sources[step.result] = set().union(*[sources[x] for x in step.uses()])
        comparisons[step.result] = step
    # A root's guard x >= 0 is dropped: Python's root would be complex, and ONNX's is NaN.
    roots = {step.operands[0] for step in part.program.instructions if step.name == "number.pow"}
    for output, outcome in zip(decided.program.outputs, decided.gives, strict=True):
        step = comparisons[output]
        root = step.name == "number.ge" and step.operands[0] in roots
        if root and step.operands[1] == 0 and outcome is True:
            continue
        changed = sources[output].intersection(part.updates)
        if changed:
            name = part.program.inputs[min(changed)].name
            where = f"{describe(step.line)}: " if step.line else ""
            raise ExportError(
                f"{where}the function decides by {name}, which it changes; a model does the same "
                "in each call"
            )
        fixed |= sources[output]
    return fixed


def _readable(name: str) -> str:
    """A name with dots in place of brackets, like a key of a state_dict."""
    return re.sub(r"\[['\"]?(.*?)['\"]?\]", r".\1", name).removeprefix("self.")


def _new(name: str, taken: set[str]) -> str:
    """The name, with a number appended if it is taken."""
    found = next(x for n in count(1) if (x := name if n == 1 else f"{name}_{n}") not in taken)
    taken.add(found)
    return found


def _host(x: Any) -> Host:
    """An array, or a number as int64, float64 or bool, as a NumPy array."""
    x = x._array if isinstance(x, Tensor) else x
    if not hasattr(x, "dtype"):
        return np.asarray(x, {int: np.int64, float: np.float64}.get(type(x)))
    backend = backend_of(x)
    return np.ascontiguousarray(backend.to_numpy(backend.array(x))).reshape(x.shape)


# -- the check -------------------------------------------------------------------------------------


def _runs(
    model: _Model,
    compiled: Compiled[..., Any],
    call: Call,
    axes: Mapping[int, int],
    check_sizes: Sequence[int],
) -> Runs:
    """Call the function for the example, and for the sizes to check, small ones last.

    The sizes end before the first, below the example's, that the function refuses. Without a batch
    there are two calls, 0 and 1.
    """
    sizes, length, part = [0, 1], 0, model.part
    if axes:
        length = next(array_in(call.leaves[i]).shape[axis] for i, axis in axes.items())
        sizes = [length, *sorted({*check_sizes} - {length}, reverse=True)]
    runs: Runs = {}
    _, reached = compiled.look(*call.layout.structure.unflatten(call.leaves))
    with preserving(reached, call.leaves):
        for n in sizes:
            leaves = resize(call.leaves, axes, n) if axes else call.leaves
            named = dict(zip(call.layout.names, leaves, strict=True))
            feeds = {
                model.names[i]: _host(named[part.program.inputs[i].name])
                for i in part.arguments
                if i in model.names
            }
            args, kwargs = call.layout.structure.unflatten(leaves)
            try:
                with warnings.catch_warnings():
                    if n < length:  # such as the mean of an empty slice
                        warnings.simplefilter("ignore")
                    answer, _ = tree_flatten(compiled.eagerly(*args, **kwargs))
            except Exception:
                if n < length:
                    break
                raise
            _, now = compiled.look(args, kwargs)
            answer += [present(part.refs[i], now) for i in part.updates]
            runs[n] = feeds, {name: _host(answer[i]) for name, i in model.outputs.items()}
    return runs


def _check(
    tools: _Tools,
    model: _Model,
    runs: Runs,
    tolerance: float | None,
) -> None:
    """Compare calls of the model with those of the function."""
    options = tools.runtime.SessionOptions()
    options.log_severity_level = 4
    text, providers = model.text, ["CPUExecutionProvider"]
    try:
        session = tools.runtime.InferenceSession(text, options, providers=providers)
    except Exception as error:
        raise ExportError(f"onnxruntime can't run the model: {error}") from error
    names, length = list(model.outputs), next(iter(runs))
    state = {name: x for name, x in model.initial.items() if name not in model.constants}
    for number, (n, (feeds, wanted)) in enumerate(runs.items()):
        where, advice = f"in call {number + 1}", ""
        if model.axes:
            where += f", of batch size {n},"
            advice = "; batch_axes=None fixes the size"
            advice = f"; give check_sizes above {n}, or batch_axes=None" if n < length else advice
        try:
            gave = dict(zip(names, session.run(names, {**state, **feeds}), strict=True))
        except Exception as error:
            raise ExportError(f"{where} onnxruntime can't run it{advice}: {error}") from error
        scale = max(map(_largest, wanted.values()), default=0.0)
        for name, y in wanted.items():
            try:
                _compare(f"{where} the model gives for {name}", gave[name], y, scale, tolerance)
            except ExportError as error:
                raise ExportError(f"{error}{advice}") from None
        state |= {k.removeprefix(NEXT): x for k, x in gave.items() if k.startswith(NEXT)}


def _largest(x: Host) -> float:
    """The largest finite element of floats."""
    return float(np.max(np.abs(x[np.isfinite(x)]), initial=0)) if x.dtype.kind == "f" else 0.0


def _compare(where: str, x: Host, y: Host, scale: float, tolerance: float | None) -> None:
    """Raise if an output of the model differs from the function's."""
    if x.shape != y.shape or x.dtype != y.dtype:
        raise ExportError(
            f"{where} an array of shape {x.shape} and dtype {x.dtype}, the function one of shape "
            f"{y.shape} and dtype {y.dtype}"
        )
    if y.dtype.kind != "f":
        if not np.array_equal(x, y):
            raise ExportError(f"{where} other values than the function")
        return
    finite = np.isfinite(y)
    if not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        raise ExportError(f"{where} other values than the function where that has {y[~finite][0]}")
    far, largest = float(np.max(np.abs(x[finite] - y[finite]), initial=0)), _largest(y)
    # Elements that are zero up to rounding have the rounding errors of larger arrays.
    relative = TOLERANCES[y.dtype.name] if tolerance is None else tolerance
    if not far <= max(relative * largest, 64 * np.finfo(y.dtype).eps * scale):
        raise ExportError(
            f"{where} elements that differ by up to {far:.3g} from the function's, of which the "
            f"largest is {largest:.3g}. If that is rounding, which Adam enlarges where gradients "
            "are zero, set the tolerance"
        )
