"""Linear programs: recorded operations on tangents, to be repeated with other tangents.

If the tangent of a `Dual` is a `Linear`, primal values are computed at once, and the operations of
forward rules on tangents are recorded. They depend on no values of tangents, so that they can be
repeated.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

from wengert.backends import dtype_of
from wengert.interpreters.lifted import Lifted, apply, bottom, raw
from wengert.tape.primitive import Primitive

_number = count().__next__


class _Step(NamedTuple):
    """A primitive's application; some of its inputs are values of the program."""

    number: int
    primitive: Primitive
    inputs: tuple[Any, ...]
    parameters: dict[str, Any]


class _Ref(NamedTuple):
    """A value of a program: a step's result, or an argument if ``step`` is None."""

    step: _Step | None
    at: int | None


class Linear(Lifted):
    """A raw array that is a linear function of a program's arguments.

    Its ``inner`` is a sample, of which only shape, dtype and library matter.
    """

    __slots__ = ("ref",)

    ref: _Ref

    def __init__(self, inner: Any, level: int, index: int) -> None:
        self.inner = inner
        self.level = level
        self.ref = _Ref(None, index)

    @classmethod
    def interpret(
        cls, level: int, primitive: Primitive, inputs: Sequence[Any], parameters: dict[str, Any]
    ) -> Any:
        own = [isinstance(x, Linear) and x.level == level for x in inputs]
        samples = [x.inner if mine else x for x, mine in zip(inputs, own, strict=True)]
        refs = tuple([x.ref if mine else x for x, mine in zip(inputs, own, strict=True)])
        step = _Step(_number(), primitive, refs, parameters)
        out = apply(primitive, samples, parameters)
        if primitive.several:
            return tuple([_result(y, level, step, i) for i, y in enumerate(out)])
        return _result(out, level, step, None)

    def constant(self, value: Any) -> Any:
        return value


def _result(sample: Any, level: int, step: _Step, index: int | None) -> Any:
    if not dtype_of(bottom(sample).dtype).inexact:
        return raw(sample)
    made = Linear.__new__(Linear)
    made.inner, made.level, made.ref = sample, level, _Ref(step, index)
    return made


class Program:
    """The steps from a program's arguments to its results.

    Results that are not `Linear` of the program's level are constants.
    """

    def __init__(self, results: Sequence[Any], level: int) -> None:
        self._results = [
            x.ref if isinstance(x, Linear) and x.level == level else x for x in results
        ]
        steps: dict[int, _Step] = {}
        stack = [x.step for x in self._results if isinstance(x, _Ref)]
        while stack:
            step = stack.pop()
            if step is not None and step.number not in steps:
                steps[step.number] = step
                stack.extend(x.step for x in step.inputs if isinstance(x, _Ref))
        self._steps = [steps[number] for number in sorted(steps)]
        used = [x for step in self._steps for x in step.inputs] + self._results
        self._uses = Counter(x.step.number for x in used if isinstance(x, _Ref) and x.step)

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        """Run the program on arguments: arrays, lifted or not, or Tensors."""
        values: dict[int, Any] = {}
        left = self._uses.copy()

        def read(x: Any) -> Any:
            if not isinstance(x, _Ref):
                return x
            if x.step is None:
                return arguments[x.at]  # type: ignore[index]
            number = x.step.number
            left[number] -= 1
            value = values[number] if left[number] else values.pop(number)
            return value if x.at is None else value[x.at]

        for step in self._steps:
            inputs = [read(x) for x in step.inputs]
            values[step.number] = apply(step.primitive, inputs, step.parameters)
        return [read(x) for x in self._results]
