"""Programs of the standard's functions as ONNX graphs, by ndonnx's graph for each function."""

import math
import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partialmethod
from typing import Any, Final

import numpy as np

from wengert.backends import dtype_of
from wengert.compiler.capture.lines import describe
from wengert.compiler.capture.trace import effect_of
from wengert.compiler.program import Instruction, Program, Value
from wengert.export.errors import ExportError
from wengert.export.sizes import Shapes, Sized
from wengert.func.sparsity import refuse

__all__ = ["NUMBERS", "SUMS", "Graph"]

#: Numbers that are int64, float64 and bool in a model.
NUMBERS: Final = (int, float, bool)

#: A row that no array has.
_FAR: Final = 2**62
#: Functions whose results have another dtype than ndonnx would choose.
SUMS: Final = frozenset({"sum", "prod", "cumulative_sum", "cumulative_prod"})
#: Python's arithmetic by the standard's functions.
_NUMBERS: Final[Mapping[str, str]] = {
    **{name: name for name in ("add", "pow", "abs")},
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "neg": "negative",
    "pos": "positive",
}


class Graph:
    """Calls of ndonnx's functions, as a program has them; `op` has ONNX's own operators.

    ``shapes`` are those of the program's arrays, and ``size`` is the batch size in the model.
    """

    def __init__(self, ndx: Any, op: Any, program: Program, shapes: Shapes) -> None:
        self.ndx, self.op, self.program, self.shapes = ndx, op, program, shapes
        self.size: Any = None
        self.known: dict[Value, Any] = {}

    def run(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs for inputs, which are ndonnx's arrays, or numbers that are fixed."""
        self.known.update(zip(self.program.inputs, inputs, strict=True))
        for value, array in self.program.constants.items():
            self.known[value] = self.ndx.asarray(np.asarray(array))
        for step in self.program.instructions:
            if step.name == "look" and step.function is not refuse:  # eager code raises for values
                continue
            if any("complex" in str(value.dtype) for value in step.results):
                raise self._error(step, "onnxruntime has no complex numbers")
            try:
                with warnings.catch_warnings():
                    # Where onnxruntime has no float64, say, ndonnx computes in float32, and warns.
                    warnings.filterwarnings("error", ".*lossy cast")
                    answer = self._call(step)
            except ExportError:
                raise
            except Exception as error:
                raise self._error(step, f"{type(error).__name__}: {error}") from error
            parts = step.results_of(answer)
            for value, x in zip(step.results, parts, strict=True):
                self.known[value] = self._conforming(step, value, x)
        return tuple([self._output(x) for x in self.program.outputs])

    def _output(self, x: Any) -> Any:
        """An output; numbers become arrays."""
        x = self._operand(x)
        return self.ndx.asarray(x, dtype=self.dtype(type(x))) if type(x) in NUMBERS else x

    def _error(self, step: Instruction, why: str) -> ExportError:
        where = "" if step.line is None else f"{describe(step.line)}: "
        return ExportError(f"{where}{step.name} has no form in ONNX here ({why})")

    def _conforming(self, step: Instruction, value: Value, x: Any) -> Any:
        """The result of a call, if its dtype and shape are those that were recorded."""
        if not isinstance(x, self.ndx.Array):
            return x
        dtype, shape = self.dtype(value.dtype), self.shapes[value]
        if x.dtype != dtype:
            raise self._error(step, f"ndonnx gives {x.dtype}, and not {dtype}")
        if len(x.shape) != len(shape) or any(
            m is not None and m != n for m, n in zip(x.shape, shape, strict=True)
        ):
            raise self._error(step, f"ndonnx gives the shape {x.shape}, and not {shape}")
        return x

    def dtype(self, dtype: Any) -> Any:
        """The dtype of ndonnx for one of strict's, or for a number's type."""
        names = {int: "int64", float: "float64", bool: "bool"}
        name = names.get(dtype) or dtype_of(dtype).name
        try:
            return getattr(self.ndx, name)
        except AttributeError:
            raise ExportError(f"ndonnx has no data type {name}") from None

    # -- operands --------------------------------------------------------------------------------

    def _operand(self, x: Any) -> Any:
        """The arrays and numbers of the model for an operand or a parameter."""
        if isinstance(x, Value):
            return self.known[x]
        if isinstance(x, Sized):
            return self._size(x)
        if isinstance(x, slice):
            return slice(*map(self._operand, (x.start, x.stop, x.step)))
        if isinstance(x, dict):
            return {key: self._operand(part) for key, part in x.items()}
        return type(x)(map(self._operand, x)) if isinstance(x, tuple | list) else x

    def _size(self, x: Sized) -> Any:
        """A number that depends on the batch size: an int64 or float64."""
        ndx = self.ndx
        if x.whole:
            return ndx.floor_divide(self._polynomial(self.size, x.above), x.below[0])
        size = ndx.astype(self.size, ndx.float64)
        made = ndx.divide(self._polynomial(size, x.above), self._polynomial(size, x.below))
        powers = {0.5: ndx.sqrt, 2: ndx.square}
        return powers[x.power](made) if x.power in powers else made

    def _polynomial(self, size: Any, terms: Sequence[Any]) -> Any:
        """By Horner's scheme; the constant term comes first."""
        ndx = self.ndx
        made = ndx.asarray(terms[-1], dtype=size.dtype)
        for term in terms[-2::-1]:
            made = ndx.add(ndx.multiply(made, size), term)
        return made

    def shape(self, shape: Any) -> Any:
        """A shape, as an array if it follows the batch size."""
        ndx = self.ndx
        lengths = shape if isinstance(shape, tuple | list) else (shape,)
        if not any(isinstance(n, ndx.Array) for n in lengths):
            return tuple(lengths)
        made = [
            ndx.maximum(n, 0) if isinstance(n, ndx.Array) else ndx.asarray(n, dtype=ndx.int64)
            for n in lengths
        ]
        return ndx.stack(made)

    # -- calls -----------------------------------------------------------------------------------

    def _call(self, step: Instruction) -> Any:
        ndx, name = self.ndx, step.name
        if effect_of(name) == "draws":
            raise self._error(step, "random numbers are drawn; for dropout call model.eval() first")
        if effect_of(name) == "exchanges":
            raise self._error(step, "processes exchange data, which a model in a file can't")
        if name == "look":
            raise self._error(step, "a model can't check a pattern: leave out sparsity=")
        operands = [self._operand(x) for x in step.operands]
        parameters = {key: self._operand(x) for key, x in step.parameters.items()}
        parameters.pop("device", None)
        if name.startswith("number."):
            return self._number(step, operands)
        if parameters.get("dtype") is not None:
            parameters["dtype"] = self.dtype(parameters["dtype"])
        own: Callable[..., Any] | None = getattr(self, f"_{name.replace('.', '_')}", None)
        if own is not None:
            return own(step, *operands, **parameters)
        if name.startswith("raw."):
            raise self._error(step, "it is the library's: give wg.asarray(x), or call Wengert's")
        function = ndx
        for part in name.split("."):
            function = getattr(function, part, None)
        if function is None:
            raise self._error(step, f"ndonnx has no function {name}")
        if name in SUMS:
            dtype = parameters["dtype"] = self.dtype(step.result.dtype)
            if operands[0].dtype == ndx.bool:
                operands[0] = ndx.astype(operands[0], dtype)
        return function(*self._cast(step, operands), **parameters)

    def _cast(self, step: Instruction, operands: list[Any]) -> list[Any]:
        """Operands in which numbers beside arrays have the arrays' dtype."""
        ndx = self.ndx
        numbers = [
            i
            for i, x in enumerate(step.operands)
            if isinstance(x, Sized) or (isinstance(x, Value) and x.shape is None)
        ]
        if not numbers:
            return operands
        start = 1 if step.name == "where" else 0
        beside = [
            x.dtype for x in step.operands[start:] if isinstance(x, Value) and x.shape is not None
        ]
        dtype = self.dtype(beside[0] if beside else step.results[0].dtype)
        for i in numbers:
            x = operands[i]
            operands[i] = ndx.astype(x, dtype) if isinstance(x, ndx.Array) else x
        return operands

    def _number(self, step: Instruction, operands: list[Any]) -> Any:
        """Arithmetic of Python's numbers: ints are int64, floats float64."""
        ndx = self.ndx
        if not any(isinstance(x, ndx.Array) for x in operands):
            return step.function(*operands)
        name = step.name.partition(".")[2]
        if name not in _NUMBERS:
            raise self._error(step, "ONNX has no such arithmetic")
        return getattr(ndx, _NUMBERS[name])(*self._arrays(step, *operands))

    # -- functions that ndonnx lacks, or rounds, or computes wrongly -------------------------------

    def _cos(self, step: Instruction, x: Any) -> Any:
        return self.ndx.asarray(self.op.cos(x.unwrap_spox()))

    def _tan(self, step: Instruction, x: Any) -> Any:
        return self.ndx.divide(self.ndx.sin(x), self._cos(step, x))

    def _expm1(self, step: Instruction, x: Any) -> Any:
        # Higham, "Accuracy and stability of numerical algorithms" (2002), section 1.14.1.
        ndx, u = self.ndx, self.ndx.exp(x)
        less = ndx.subtract(u, 1)
        exact = ndx.multiply(ndx.divide(less, ndx.log(u)), x)
        plain = ndx.logical_or(ndx.equal(less, -1), ndx.isinf(u))
        return ndx.where(ndx.equal(u, 1), x, ndx.where(plain, less, exact))

    def _log1p(self, step: Instruction, x: Any) -> Any:
        ndx, u = self.ndx, self.ndx.add(x, 1)
        exact = ndx.divide(ndx.multiply(ndx.log(u), x), ndx.subtract(u, 1))
        return ndx.where(ndx.equal(u, 1), x, ndx.where(ndx.isinf(u), ndx.log(u), exact))

    def _sinh(self, step: Instruction, x: Any) -> Any:
        ndx = self.ndx
        half = ndx.multiply(ndx.sign(x), 0.5)
        large = ndx.exp(ndx.multiply(ndx.abs(x), 0.5))
        u = self._expm1(step, ndx.abs(x))
        small = ndx.multiply(half, ndx.add(u, ndx.divide(u, ndx.add(u, 1))))
        return ndx.where(
            ndx.greater(ndx.abs(x), 20), ndx.multiply(ndx.multiply(half, large), large), small
        )

    def _cosh(self, step: Instruction, x: Any) -> Any:
        ndx = self.ndx
        large = ndx.exp(ndx.multiply(ndx.abs(x), 0.5))
        over = ndx.multiply(ndx.divide(0.5, large), ndx.divide(1.0, large))
        return ndx.add(ndx.multiply(ndx.multiply(large, 0.5), large), over)

    def _logaddexp(self, step: Instruction, x: Any, y: Any) -> Any:
        ndx = self.ndx
        x, y = self._arrays(step, x, y)
        largest, apart = ndx.maximum(x, y), ndx.abs(ndx.subtract(x, y))
        less = self._log1p(step, ndx.exp(ndx.negative(apart)))
        return ndx.where(ndx.isinf(largest), largest, ndx.add(largest, less))

    def _hypot(self, step: Instruction, x: Any, y: Any) -> Any:
        ndx = self.ndx
        x, y = map(ndx.abs, self._arrays(step, x, y))
        largest, least = ndx.maximum(x, y), ndx.minimum(x, y)
        part = ndx.divide(least, largest)
        found = ndx.multiply(largest, ndx.sqrt(ndx.add(ndx.multiply(part, part), 1)))
        infinite = ndx.logical_or(ndx.isinf(x), ndx.isinf(y))
        found = ndx.where(ndx.equal(largest, 0), largest, found)
        return ndx.where(infinite, ndx.asarray(math.inf, dtype=found.dtype), found)

    def _signbit(self, step: Instruction, x: Any) -> Any:
        ndx = self.ndx
        return ndx.where(ndx.equal(x, 0), ndx.less(ndx.divide(1.0, x), 0), ndx.less(x, 0))

    def _copysign(self, step: Instruction, x: Any, y: Any) -> Any:
        ndx = self.ndx
        x, y = self._arrays(step, x, y)
        # By a factor: a choice between x and -x has lost the sign of zeros in onnxruntime.
        one = ndx.asarray(1.0, dtype=x.dtype)
        return ndx.multiply(ndx.abs(x), ndx.where(self._signbit(step, y), ndx.negative(one), one))

    def _bitwise_right_shift(self, step: Instruction, x: Any, n: Any) -> Any:
        # ndonnx divides signed integers by 2**n, which the last of these is too large for.
        ndx, bits = self.ndx, np.iinfo(dtype_of(step.result.dtype).name).bits
        x, n = self._arrays(step, x, n)
        n = ndx.minimum(n, bits - 1)
        last = ndx.minimum(n, 1)
        return ndx.bitwise_right_shift(ndx.bitwise_right_shift(x, ndx.subtract(n, last)), last)

    def _floor_divide(self, step: Instruction, x: Any, y: Any) -> Any:
        ndx = self.ndx
        if not dtype_of(step.result.dtype).inexact:
            return ndx.floor_divide(*self._cast(step, [x, y]))
        x, y = self._arrays(step, x, y)  # of which a rounded quotient may be the next integer
        exact = ndx.divide(ndx.subtract(x, ndx.remainder(x, y)), y)
        plain = ndx.divide(x, y)
        below = ndx.logical_and(ndx.isfinite(x), ndx.less(ndx.multiply(ndx.sign(x), y), 0))
        of_infinite = ndx.where(below, ndx.full_like(x, -1), plain)
        exact = ndx.where(ndx.isinf(y), of_infinite, ndx.round(exact))
        return ndx.where(ndx.equal(y, 0), plain, exact)

    def _arrays(self, step: Instruction, *operands: Any) -> list[Any]:
        """Operands as arrays of the result's dtype."""
        return [self._asarray(step, x) for x in operands]

    def _first(self, name: str, step: Instruction, x: Any, **parameters: Any) -> Any:
        """The index of an extreme: that of the first nan where there is one."""
        ndx, found = self.ndx, getattr(self.ndx, name)(x, **parameters)
        if not dtype_of(step.operands[0].dtype).inexact:
            return found
        nan = ndx.isnan(x)
        first = ndx.argmax(ndx.astype(nan, ndx.int32), **parameters)
        return ndx.where(ndx.any(nan, **parameters), first, found)

    _argmax = partialmethod(_first, "argmax")
    _argmin = partialmethod(_first, "argmin")

    def _searchsorted(
        self, step: Instruction, x: Any, values: Any, sorter: Any = None, *, side: str = "left"
    ) -> Any:
        ndx = self.ndx
        x = x if sorter is None else ndx.take(x, sorter, axis=0)
        x = ndx.reshape(x, (-1, *[1] * values.ndim))
        values = ndx.expand_dims(values, axis=0)
        last = ndx.isnan(values)  # nan is the largest
        if side == "left":
            last = ndx.logical_and(last, ndx.logical_not(ndx.isnan(x)))
        before = ndx.less(x, values) if side == "left" else ndx.less_equal(x, values)
        return ndx.sum(ndx.astype(ndx.logical_or(before, last), ndx.int64), axis=0)

    # -- functions that ndonnx spells otherwise, or whose lengths follow the batch size ------------

    def _cut(self, step: Instruction, x: Any, key: Any = ()) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        return operator.getitem(x, tuple(map(self._index, items)))

    _getitem = _cut

    def _index(self, item: Any) -> Any:
        """A part of a key, where numbers that become negative do not count from the end."""
        ndx = self.ndx
        if isinstance(item, ndx.Array):  # of no row, so that onnxruntime raises
            return ndx.where(ndx.less(item, 0), _FAR, item)
        if not isinstance(item, slice):
            return item
        start, stop, step = item.start, item.stop, item.step
        if step is None or step > 0:
            start, stop = [
                ndx.maximum(x, 0) if isinstance(x, ndx.Array) else x for x in (start, stop)
            ]
            return slice(start, stop, step)
        if isinstance(stop, ndx.Array):  # before the first row
            stop = ndx.where(ndx.less(stop, 0), -_FAR, stop)
        if isinstance(start, ndx.Array):  # there is no row to begin with
            stop = ndx.asarray(-_FAR, dtype=ndx.int64) if stop is None else stop
            stop = ndx.where(ndx.less(start, 0), _FAR, stop)
        return slice(start, stop, step)

    def _asarray(self, step: Instruction, x: Any, **parameters: Any) -> Any:
        ndx, dtype = self.ndx, self.dtype(step.result.dtype)
        return ndx.astype(x, dtype) if isinstance(x, ndx.Array) else ndx.asarray(x, dtype=dtype)

    def _astype(self, step: Instruction, x: Any, dtype: Any, **parameters: Any) -> Any:
        return self.ndx.astype(x, self.dtype(step.result.dtype))

    def _to_backend(self, step: Instruction, x: Any, *where: Any, **parameters: Any) -> Any:
        return x

    _to_device = _to_backend

    def _broadcast_to(self, step: Instruction, x: Any, shape: Any) -> Any:
        return self.ndx.broadcast_to(x, self.shape(shape))

    def _reshape(self, step: Instruction, x: Any, shape: Any, **parameters: Any) -> Any:
        return self.ndx.reshape(x, self.shape(shape))

    def _unstack(self, step: Instruction, x: Any, *, axis: int = 0) -> Any:
        # ndonnx loses sight of a length that is reshaped beside the batch.
        before = (slice(None),) * (axis % x.ndim)
        return tuple([x[*before, i, ...] for i in range(len(step.results))])

    def _vecdot(self, step: Instruction, x: Any, y: Any, *, axis: int = -1) -> Any:
        # As above: to ndonnx such a length differs from a known one.
        return self.ndx.sum(self.ndx.multiply(x, y), axis=axis, dtype=self.dtype(step.result.dtype))

    def _full(self, step: Instruction, shape: Any, value: Any, **parameters: Any) -> Any:
        made = self._asarray(step, value)
        return self.ndx.broadcast_to(made, self.shape(shape))

    _zeros = _empty = partialmethod(_full, value=0)
    _ones = partialmethod(_full, value=1)

    def _eye(self, step: Instruction, rows: Any, columns: Any = None, **parameters: Any) -> Any:
        ndx, dtype = self.ndx, self.dtype(step.result.dtype)
        down = ndx.expand_dims(ndx.arange(0, rows, dtype=ndx.int64), axis=1)
        across = ndx.arange(0, rows if columns is None else columns, dtype=ndx.int64)
        there = ndx.equal(ndx.add(down, parameters.get("k", 0)), across)
        return ndx.astype(there, dtype)

    def _add_rows(self, step: Instruction, x: Any, rows: Any, n: Any) -> Any:
        ndx, op = self.ndx, self.op
        zeros = self._full(step, (n, x.dynamic_shape[1]), 0)
        at = ndx.broadcast_to(ndx.expand_dims(rows, axis=1), x.dynamic_shape)
        # Of ScatterND onnxruntime adds rows of one place in several threads.
        made = op.scatter_elements(
            zeros.unwrap_spox(), at.unwrap_spox(), x.unwrap_spox(), axis=0, reduction="add"
        )
        return ndx.asarray(made)

    def _cumulative_prod(
        self, step: Instruction, x: Any, axis: int | None = None, **parameters: Any
    ) -> Any:
        # ndonnx goes by logarithms.
        ndx, shape = self.ndx, self.shapes[step.operands[0]]
        axis = 0 if axis is None else axis % len(shape)
        length = shape[axis]
        if not length:
            raise self._error(step, "along the batch, or along an empty axis")
        x, span = ndx.astype(x, self.dtype(step.result.dtype)), 1
        before = (slice(None),) * axis
        while span < length:
            late, early = x[*before, span:length], x[*before, 0 : length - span]
            made = [x[*before, 0:span], ndx.multiply(late, early)]
            x, span = ndx.concat(made, axis=axis), 2 * span
        if parameters.get("include_initial"):
            x = ndx.concat([ndx.ones_like(x[*before, 0:1]), x], axis=axis)
        return x

    def _var(
        self,
        step: Instruction,
        x: Any,
        *,
        axis: Any = None,
        correction: Any = 0.0,
        keepdims: bool = False,
    ) -> Any:
        # Of ndonnx the degrees of freedom may be negative.
        ndx, axes = self.ndx, range(x.ndim) if axis is None else axis
        axes = tuple(axes) if isinstance(axes, tuple | list | range) else (axes,)
        count = ndx.asarray(1, dtype=ndx.int64)
        for i in axes:
            count = ndx.multiply(count, x.dynamic_shape[i])
        count = ndx.astype(count, x.dtype)
        apart = ndx.subtract(x, ndx.mean(x, axis=axes, keepdims=True))
        total = ndx.sum(ndx.multiply(apart, apart), axis=axes, keepdims=keepdims)
        none = ndx.asarray(math.nan, dtype=x.dtype)
        freedom = ndx.maximum(ndx.subtract(count, correction), 0)
        return ndx.divide(total, ndx.where(ndx.equal(count, 0), none, freedom))
