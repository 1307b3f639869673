"""Random programs: compositions of public functions, drawn with points where they are smooth."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from tests.ops.domains import distance
from wengert import ops
from wengert.backends import get_backend
from wengert.ops import __all__ as public  # type: ignore[attr-defined]
from wengert.tape.primitive import PRIMITIVES, Primitive
from wengert.testing import strategies as ws
from wengert.testing.problem import on_backend
from wengert.testing.snippets import value_code

#: Intermediate values stay below it, so that differences keep their digits.
LARGEST = 50.0
#: How near to a kink or a pole an operand may come.
NEAR = 0.05


class Step(NamedTuple):
    """One call of a public function."""

    #: With the extension's name before a dot.
    name: str
    #: Positions among inputs and earlier results.
    operands: tuple[int, ...]
    keywords: tuple[tuple[str, Any], ...] = ()
    #: Whether the function takes its operands in one list.
    listed: bool = False


@dataclass(frozen=True)
class Program:
    """A random program: inputs, and steps that take inputs and earlier results.

    Calling it runs it. Its ``repr`` is Python code that defines the program as a function and
    calls it with the inputs.

    Attributes
    ----------
    inputs : tuple of ndarray
        A point at which the program is smooth.
    steps : tuple of Step
        The calls in order; the value of the last one is the result.
    """

    inputs: tuple[np.ndarray[Any, Any], ...]
    steps: tuple[Step, ...]
    __name__ = "program"

    def __call__(self, *inputs: Any, xp: Any = None) -> Any:
        """Run it on Tensors, or with another namespace ``xp`` on that namespace's arrays."""
        if len(inputs) != len(self.inputs):
            raise TypeError(f"the program takes {len(self.inputs)} inputs, not {len(inputs)}")
        known = list(inputs)
        namespace = inputs[0].__array_namespace__() if xp is None else xp
        for step in self.steps:
            known.append(_apply(namespace, step, known))
        return known[-1]

    def tensors(self, *, requires_grad: bool = True) -> list[Any]:
        """The inputs as Tensors of the selected backend."""
        return [on_backend(x).requires_grad_(requires_grad) for x in self.inputs]

    def __repr__(self) -> str:
        names = self._names()
        lines = [f"def program({', '.join(names[: len(self.inputs)])}):"]
        for at, step in enumerate(self.steps, len(self.inputs)):
            taken = ", ".join(names[i] for i in step.operands)
            given = [f"[{taken}]" if step.listed else taken]
            given += [f"{key}={value!r}" for key, value in step.keywords]
            lines.append(f"    {names[at]} = wg.{step.name}({', '.join(given)})")
        lines.append(f"    return {names[-1]}")
        inputs = [f"    {value_code(x)}," for x in self.tensors()]
        return "\n".join(["import wengert as wg", "", *lines, "", "program(", *inputs, ")"])

    def _names(self) -> list[str]:
        count = len(self.inputs)
        return [f"x{i}" for i in range(count)] + [f"v{i}" for i in range(len(self.steps))]


def _apply(xp: Any, step: Step, known: Sequence[Any]) -> Any:
    function = xp
    for part in step.name.split("."):
        function = getattr(function, part)
    operands = [known[i] for i in step.operands]
    return function(*([operands] if step.listed else operands), **dict(step.keywords))


# -- what the steps may be -------------------------------------------------------------------------


def _alone(function: Any) -> Primitive | None:
    """The primitive of a smooth function of one array and nothing else."""
    if not callable(function) or len(signature(function).parameters) != 1:
        return None
    primitive = PRIMITIVES.get(function.__name__)
    if primitive is None or primitive.composite is not None:  # not one of the standard's
        return None
    return primitive if primitive.rules and primitive.elementwise else None


#: The primitives of functions of one array: drawn where they are smooth.
UNARY = {name: found for name in public if (found := _alone(getattr(ops, name))) is not None}


def _smooth(primitive: Primitive, *operands: Any) -> bool:
    """Whether a primitive has all derivatives around its operands, one by one."""
    if primitive.linear is not None:
        return True
    given = dict(zip(primitive.inputs, operands, strict=True))
    if primitive.name in ("asinh", "atan") and operands[0].dtype.kind == "c":
        return bool(np.all(np.abs(operands[0].real) > NEAR))  # cut along the imaginary axis
    return all(
        np.all(distance(domain, *[given[name] for name in names.split()]) > NEAR)
        for names, domain in primitive.domain.items()
    )


#: The primitives of functions of two arrays that broadcast.
BINARY = {
    name: row
    for name in public
    if (row := PRIMITIVES.get(name)) is not None
    and row.elementwise
    and row.inputs == ("x1", "x2")
    and any(callable(rule) for rule in row.rules.values())
}
REDUCTIONS = ("sum", "mean", "prod")
ALONG = ("cumulative_sum", "flip")


@st.composite  # type: ignore[untyped-decorator]
def programs(
    draw: Any,
    *,
    dtype: str = "float64",
    max_inputs: int = 3,
    max_steps: int = 8,
    max_side: int = 3,
    functions: Sequence[str] | None = None,
) -> Any:
    """Random programs of public functions: elementwise, reductions, products, shapes, indexing.

    Every program has inputs around which it is smooth and its values are moderate: a function is
    drawn only if its operands allow it. Values may be used more than once, and those that no step
    used are added to the result at the end.
    """
    count = draw(st.integers(1, max_inputs))
    shapes = draw(ws.broadcastable(count, max_dims=2, min_side=1, max_side=max_side))
    inputs = tuple(draw(ws.arrays(dtype, shape, domain=(-2, 2))) for shape in shapes)
    known: list[Any] = list(inputs)
    steps: list[Step] = []
    unused = set(range(count))
    xp = get_backend("numpy").namespace

    def take(step: Step) -> bool:
        """Add a step if its values are moderate."""
        with np.errstate(all="ignore"):
            value = np.asarray(_apply(xp, step, known))
        if not np.all(abs(value) < LARGEST):  # nan is not either
            return False
        steps.append(step)
        known.append(value)
        unused.difference_update(step.operands)
        unused.add(len(known) - 1)
        return True

    for _ in range(draw(st.integers(1, max_steps))):
        possible = _possible(draw, known, functions)
        if possible:
            take(draw(st.sampled_from(possible)))
    for at in sorted(unused):
        # A smooth bounded function of each value that is left, so that all of them count.
        if len(known) - 1 != at or known[at].shape:
            take(Step("sin", (at,)))
            take(Step("sum", (len(known) - 1,)))
    scalars = sorted(i for i in unused if not known[i].shape)
    while len(scalars) > 1:
        take(Step("add", (scalars.pop(), scalars.pop())))
        scalars.append(len(known) - 1)
    if not steps:
        take(Step("sin", (0,)))
    return Program(inputs, tuple(steps))


def _possible(draw: Any, known: list[Any], functions: Sequence[str] | None) -> list[Step]:
    """The steps that can be taken with two of the values so far."""
    last = len(known) - 1
    i, j = (last - draw(st.integers(0, last)) for _ in range(2))
    x, y = known[i], known[j]
    real = x.dtype.kind == y.dtype.kind == "f"
    complex_ = x.dtype.kind == "c"
    found = [
        Step(name, (i,))
        for name, primitive in UNARY.items()
        if (complex_ or primitive.dtypes != "complex") and _smooth(primitive, x)
    ]
    if _broadcast(x.shape, y.shape):
        found += [
            Step(name, (i, j))
            for name, primitive in BINARY.items()
            if (real or not primitive.dtypes.startswith("real")) and _smooth(primitive, x, y)
        ]
    if x.ndim:
        axis = draw(ws.axis(x.ndim))
        keep = draw(st.booleans())
        found += [Step(f, (i,), (("axis", axis), ("keepdims", keep))) for f in REDUCTIONS]
        found += [Step(f, (i,), (("axis", axis),)) for f in ALONG]
        found.append(Step("roll", (i,), (("shift", draw(st.integers(-2, 2))), ("axis", axis))))
        found.append(Step("expand_dims", (i,), (("axis", axis),)))
        found.append(Step("reshape", (i,), (("shape", (math.prod(x.shape),)),)))
        if x.shape == y.shape and real == (x.dtype.kind == "f"):
            found.append(Step("concat", (i, j), (("axis", axis),), listed=True))
            found.append(Step("stack", (i, j), (("axis", axis),), listed=True))
        if real and x.shape[axis] > 1 and np.min(np.diff(np.sort(x, axis=axis), axis=axis)) > NEAR:
            found += [Step(f, (i,), (("axis", axis),)) for f in ("max", "min", "sort")]
    if x.ndim > 1:
        found.append(Step("matrix_transpose", (i,)))
    if x.ndim and y.ndim and x.shape[-1] == y.shape[-2 if y.ndim > 1 else -1]:
        found.append(Step("matmul", (i, j)))
    wanted = set(public) if functions is None else set(functions)
    return [step for step in found if step.name in wanted and known[i].size <= 64]


def _broadcast(*shapes: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True
