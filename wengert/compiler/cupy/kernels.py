"""CuPy kernels for the calls that `wengert.compiler.cupy.fusion` fuses."""

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from wengert.compiler.cupy import Kernel
from wengert.compiler.cupy.fusion import ARGUMENTS, Alignment, Body, Fusion
from wengert.compiler.cupy.routines import ROUNDED, WRAPPED, c_number, c_type, cast
from wengert.compiler.emission.spelling import Names, identifier
from wengert.compiler.passes.forms import RESHAPE
from wengert.compiler.program import Instruction, Program, Value

__all__ = ["fuse"]


def fuse(program: Program) -> Program:
    """The program with fused kernels in place of elementwise calls."""
    return Fusion(program).fuse(_kernel_calls)


@lru_cache(maxsize=1024)
def _kernel(kind: str, arguments: tuple[Any, ...], keywords: tuple[tuple[str, Any], ...]) -> Kernel:
    """A kernel; cached, so that equal kernels are one object."""
    return Kernel(kind, arguments, dict(keywords))


def _kernel_calls(bodies: Sequence[Body]) -> list[Instruction]:
    """The calls of independent kernels."""
    if bodies[0].reduced is not None:
        return [step for body in bodies for step in _reducing(body)]
    apart = [body for body in bodies if not _flat(body)]
    flat = [body for body in bodies if _flat(body)]
    found = [step for body in apart for step in _elementwise(body)]
    while flat:
        size, together = 0, list[Body]()
        while flat and (not together or size + flat[0].size <= ARGUMENTS):
            size += flat[0].size
            together.append(flat.pop(0))
        found += _joint(together) if len(together) > 1 else _elementwise(together[0])
    return found


def _flat(body: Body) -> bool:
    """Whether each array has the loop's elements in order, or one element."""
    size = body.outputs[0].size
    return all(value.size in (1, size) for value, _ in body.leaves)


class _Text:
    """The statements and arguments of a kernel.

    Attributes
    ----------
    lines : list of str
        The statements.
    given : list of (str, str, object)
        The arguments: data type, name, and the program's operand.
    preambles : list of str
        Definitions that the statements need.
    """

    def __init__(self, body: Body, *, named: bool = True) -> None:
        self.names = Names()
        self.lines: list[str] = []
        self.given: list[tuple[str, str, Any]] = []
        self.preambles: dict[str, None] = {}
        self._known: dict[Any, str] = {}
        self.outputs = [
            (str(np.dtype(x.dtype)), self._new(x if named else None, "out"), x)
            for x in body.outputs
        ]
        if body.reduced is None:
            names = {x: name for _, name, x in self.outputs}
            for step, at in body.steps:
                if step.result in names:
                    self._known[step.result, at] = names[step.result]
        for value, at in body.leaves:
            operand = (value, at)
            self._give(operand, operand, value.dtype, value if named else None, "x")
        for step, at in body.steps:
            self._step(body, step, at)

    def _new(self, value: Value | None, otherwise: str) -> str:
        wanted = identifier(value.name) if value is not None and value.name else otherwise
        return self.names.new(wanted, numbered=True)

    def _give(self, key: Any, operand: Any, dtype: Any, value: Value | None, wanted: str) -> str:
        name = self._known[key] = self._new(value, wanted)
        self.given.append((str(np.dtype(dtype)), name, operand))
        return name

    def _number(self, x: Any, dtype: Any, *, given: bool) -> str:
        """A number, as a literal or as an argument."""
        text = None if given or isinstance(x, Value) else c_number(x, dtype)
        if text is not None:
            return text
        value = x if isinstance(x, Value) else None
        key = value or repr(x), dtype
        return self._known.get(key) or self._give(key, x, dtype, value, "number")

    def _step(self, body: Body, step: Instruction, at: Alignment) -> None:
        """Add the statements of a call."""
        found = body.routines.get(step)
        operands = list(body.operands(step, at))
        if found is None:  # a view: its elements have the operand's name
            self._known[step.result, at] = self._known[operands[0]]
            return
        words: dict[str, str] = {}
        for i, ((x, below), dtype) in enumerate(zip(operands, found.takes, strict=True)):
            kind = c_type(dtype) or ""
            if below is None:
                words[f"in{i}"] = self._number(x, dtype, given=found.folds)
            else:
                name = self._known[x, below]
                words[f"in{i}"] = name if x.dtype == dtype else cast(kind, name)
            words[f"in{i}_type"] = kind
        words["out0_type"] = kind = c_type(found.gives) or ""
        name = self._known.get((step.result, at), "")
        declared = not name
        if declared:
            wanted = identifier(step.name.split(".")[-1])
            name = self._known[step.result, at] = self._new(step.result, wanted)
        words["out0"] = name
        if found.preamble.strip():
            self.preambles[found.preamble.strip()] = None
        text = re.sub(
            r"\b(?:in\d|out0)(?:_type)?\b", lambda match: words[match.group()], found.text
        )
        through = "rounded" if found.rounds else "wrapped" if found.wraps else ""
        if through:
            self.preambles[ROUNDED[found.gives.char] if found.rounds else WRAPPED] = None
        simple = re.fullmatch(rf"{name} = ([^;]*);?", text)
        if simple is not None:
            value = f"{through}({simple[1]})" if through else simple[1]
            self.lines.append(f"{kind} {name} = {value};" if declared else f"{name} = {value};")
            return
        if declared:
            self.lines.append(f"{kind} {name};")
        self.lines += ["{", *[f"    {line}" for line in text.strip().splitlines()], "}"]
        if through:
            self.lines.append(f"{name} = {through}({name});")


def _indent(lines: Sequence[str]) -> str:
    return "\n" + "\n".join(f"    {line}" for line in lines) + "\n    "


def _name(body: Body) -> str:
    """A name with the user's file and line."""
    line = body.last.line
    if line is None:
        return "kernel"
    stage = {"backward": "_adjoint", "update": "_update"}.get(line.stage, "")
    return f"{identifier(Path(line.file).stem)}_{line.number}{stage}"


def _plain(body: Body) -> list[Instruction]:
    """The calls themselves, unfused, and their reduction."""
    found: list[Instruction] = []
    values: dict[Value, Value] = {}  # other kernels may recompute the same values
    for step, _ in body.steps:
        result = step.result
        if result in values:
            continue
        changed = step.with_values(values)
        if body.reduced is not None or result not in body.outputs:
            result = Value(result.shape, result.dtype, result.name, result.order)
            values[step.result] = result
        found.append(replace(changed, results=(result,)))
    return found if body.reduced is None else [*found, body.reduced[0].with_values(values)]


def _read(operand: Any, found: list[Instruction], line: Any) -> Any:
    """An array as a kernel's argument: itself, or reshaped along the loop's axes."""
    if not (isinstance(operand, tuple) and isinstance(operand[0], Value)):
        return operand
    value, at = operand
    shape = tuple([1 if axis is None else value.shape[axis] for axis in at])
    if shape == (1,) * (len(shape) - len(value.shape)) + value.shape:
        return value
    while shape and shape[0] == 1:
        shape = shape[1:]
    if shape == value.shape:
        return value
    result = Value(shape, value.dtype)
    found.append(Instruction("reshape", RESHAPE, (value, shape), {}, (result,), line=line))
    return result


def _operands(text: _Text, line: Any) -> tuple[tuple[Any, ...], tuple[int, ...], list[Instruction]]:
    """A kernel's operands, the shape that they broadcast to, and the calls that reshape some."""
    found: list[Instruction] = []
    operands = tuple([_read(x, found, line) for _, _, x in text.given])
    arrays = [x.shape for x in operands if isinstance(x, Value) and x.shape is not None]
    return operands, np.broadcast_shapes(*arrays), found


def _elementwise(body: Body) -> list[Instruction]:
    """One kernel over one shape, or its only call."""
    calls = [step for step, _ in body.steps if step in body.routines]
    if len(calls) == 1 or body.size > ARGUMENTS:
        return _plain(body)
    text, line = _Text(body), body.last.line
    operands, shape, found = _operands(text, line)
    if np.prod(shape) != body.outputs[0].size:  # no array has the loop's shape
        return _plain(body)
    takes, gives = _parameters(text.given), _parameters(text.outputs)
    arguments = (takes, gives, _indent(text.lines), _name(body))
    kernel = _kernel("ElementwiseKernel", arguments, _keywords(text.preambles))
    results = [x if x.shape == shape else Value(shape, x.dtype, x.name) for x in body.outputs]
    several = len(results) > 1
    found.append(Instruction(_NAME, kernel, operands, {}, tuple(results), several, line=line))
    return found + [
        Instruction("reshape", RESHAPE, (result, x.shape), {}, (x,), line=line)
        for x, result in zip(body.outputs, results, strict=True)
        if x is not result
    ]


#: The name of results without one.
_NAME: Final = "fused"


def _parameters(given: Sequence[tuple[str, str, Any]]) -> str:
    return ", ".join(f"{dtype} {name}" for dtype, name, _ in given)


def _keywords(preambles: dict[str, None]) -> tuple[tuple[str, Any], ...]:
    return (("preamble", "\n" + "\n".join(preambles) + "\n"),) if preambles else ()


def _reducing(body: Body) -> list[Instruction]:
    """A reduction kernel of a function of each element."""
    assert body.reduced is not None
    step, how = body.reduced
    text = _Text(body)
    operands, shape, found = _operands(text, step.line)
    dtype, _, value = text.outputs[0]
    at = tuple(range(len(value.shape or ())))
    function = f"of_{_name(body)}"
    takes = ", ".join(f"{c_type(kind)} {name}" for kind, name, _ in text.given)
    lines = [*text.lines, f"return {text._known[value, at]};"]
    text.preambles[
        f"static __device__ {c_type(dtype)} {function}({takes}) {{{_indent(lines)}}}"
    ] = None
    gives = c_type(step.result.dtype) or ""
    out = "out_1" if all(name != "out_1" for _, name, _ in text.given) else "result_1"
    if shape != value.shape:
        return _plain(body)
    kernel = _kernel(
        "ReductionKernel",
        (
            _parameters(text.given),
            f"{np.dtype(step.result.dtype)} {out}",
            f"{function}({', '.join(name for _, name, _ in text.given)})",
            how.reduce,
            f"{out} = {cast(gives, 'a')}",
            how.identity,
            _name(body),
        ),
        ((("reduce_type", how.type),) if how.type else ()) + _keywords(text.preambles),
    )
    options = {key: x for key, x in step.parameters.items() if key in ("axis", "keepdims")}
    made = Instruction(_NAME, kernel, operands, options, step.results, line=step.line)
    return [*found, made]


def _in_ranges(statements: Sequence[tuple[int, str]]) -> list[str]:
    """Lines that run one statement for each element, by the ends of their ranges."""
    *tests, (_, last) = statements
    lines = [f"{'else ' if k else ''}if (i < {end}) {{ {x} }}" for k, (end, x) in enumerate(tests)]
    return [*lines, f"else {{ {last} }}" if tests else last]


def _joint(bodies: Sequence[Body]) -> list[Instruction]:
    """One kernel over the elements of several shapes, one shape after the other."""
    line = bodies[-1].last.line
    functions: dict[tuple[Any, ...], str] = {}
    preambles: dict[str, None] = {}
    names, given = Names(), dict[Any, tuple[str, str, Any]]()
    found: list[Instruction] = []
    outs: list[tuple[str, str, Value]] = []
    calls: list[tuple[int, str]] = []
    start = 0
    for body in bodies:
        text = _Text(body, named=False)
        takes = [f"{c_type(kind)} {name}" for kind, name, _ in text.given]
        takes += [f"{c_type(kind)} &{name}" for kind, name, _ in text.outputs]
        key = tuple(takes), tuple(text.lines)
        if key not in functions:
            functions[key] = f"of_{_name(body)}_{len(functions) + 1}"
            preambles.update(text.preambles)
            preambles[
                f"static __device__ void {functions[key]}({', '.join(takes)}) "
                f"{{{_indent(text.lines)}}}"
            ] = None
        size = body.outputs[0].size
        at = f"[i - {start}]" if start else "[i]"
        passed: list[str] = []
        for kind, _, operand in text.given:
            array = isinstance(operand, tuple)
            value = operand[0] if array else operand
            same = (value if isinstance(value, Value) else repr(value)), kind
            if same not in given:
                wanted = identifier(value.name) if isinstance(value, Value) and value.name else "x"
                name = names.new(wanted, numbered=True)
                given[same] = (f"raw {kind}" if array else kind), name, value
            name = given[same][1]
            passed.append(name + (at if array and value.size == size else "[0]" if array else ""))
        for kind, _, value in text.outputs:
            out = identifier(value.name) if value.name else "out"
            outs.append((f"raw {kind}", names.new(out, numbered=True), value))
            passed.append(outs[-1][1] + at)
        start += size
        calls.append((start, f"{functions[key]}({', '.join(passed)});"))
    parameters = _parameters(list(given.values())), _parameters(outs)
    arguments = (*parameters, _indent(_in_ranges(calls)), _name(bodies[-1]))
    kernel = _kernel("ElementwiseKernel", arguments, _keywords(preambles))
    places, empty = [Value(x.shape, x.dtype) for _, _, x in outs], sys.modules["cupy"].empty
    for x in places:
        made = Instruction("empty", empty, (x.shape, x.dtype), {}, (x,), pure=False, line=line)
        found.append(made)
    operands = tuple([x for _, _, x in given.values()]) + tuple(places)
    results = tuple([x for _, _, x in outs])
    options = {"size": start}
    return [*found, Instruction(_NAME, kernel, operands, options, results, True, line=line)]
