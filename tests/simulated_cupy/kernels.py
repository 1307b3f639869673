"""``cupy.ElementwiseKernel`` and ``cupy.ReductionKernel``: their text, run by NumPy."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.simulated_cupy.arrays import ndarray
from tests.simulated_cupy.c import (
    DoesNotCompileError,
    Lanes,
    Program,
    Raw,
    c_name,
    convert,
    kind_of,
)
from tests.simulated_cupy.counters import launched
from tests.simulated_cupy.devices import check_resides
from tests.simulated_cupy.ufuncs import SCALARS, check_out


class Parameter:
    """A parameter, such as ``raw float32 x``."""

    def __init__(self, text: str, const: bool) -> None:
        words = text.split()
        self.raw = words[0] == "raw"
        if len(words) != 2 + self.raw:
            raise ValueError(f"Invalid parameter: {text!r}")
        self.type, self.name = words[-2:]
        self.const = const
        if self.name in ("n", "i") or self.name.startswith("_"):
            raise ValueError(f"Can not use {self.name!r} as a parameter name")
        # A letter stands for the type of the array.
        self.dtype = None if len(self.type) == 1 else np.dtype(self.type)

    def taken(self, x: Any, letters: dict[str, np.dtype]) -> np.dtype:
        """The type of what is given, which has to be that of the parameter."""
        if not isinstance(x, ndarray):
            dtype = self.dtype or letters.get(self.type)
            if dtype is None:
                raise TypeError(f"Type of {self.name} is undecided")
            return dtype
        wanted = self.dtype or letters.setdefault(self.type, x.dtype)
        if x.dtype != wanted:
            raise TypeError(f"Type is mismatched. {self.name} {x.dtype} {wanted}")
        return wanted


def _parameters(text: str, const: bool) -> list[Parameter]:
    return [Parameter(part, const) for part in text.split(",") if part.strip()]


class _Kernel:
    """What both have in common."""

    def _checked(self, args: tuple[Any, ...]) -> None:
        for x in args:
            if isinstance(x, ndarray):
                check_resides(self.name, x.data.device_id)
            elif not isinstance(x, SCALARS):
                raise TypeError(f"Unsupported type {type(x)}")

    def _number(self, x: Any, dtype: np.dtype) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(x).astype(dtype).reshape(1)

    def _refused(self, error: DoesNotCompileError, source: str) -> Exception:
        from cupy.cuda.compiler import CompileException

        return CompileException(str(error), source, self.name, self.options)


class ElementwiseKernel(_Kernel):
    """``cupy.ElementwiseKernel``."""

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        *,
        options: tuple[str, ...] = (),
    ) -> None:
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise ValueError(f"Invalid kernel name: {name!r}")
        self.name = self.__name__ = name
        self.ins, self.outs = _parameters(in_params, True), _parameters(out_params, False)
        self.operation, self.preamble, self.options = operation, preamble, options
        self.no_return, self.return_tuple = no_return, return_tuple

    def __call__(self, *args: Any, size: int | None = None) -> Any:
        parameters = [*self.ins, *self.outs]
        if len(args) not in (len(self.ins), len(parameters)):
            raise TypeError(
                f"Wrong number of arguments for {self.name!r}. It must be either {len(self.ins)} "
                f"or {len(parameters)} (with outputs), but given {len(args)}."
            )
        self._checked(args)
        letters: dict[str, np.dtype] = {}
        types = [p.taken(x, letters) for p, x in zip(parameters, args, strict=False)]
        plain = [
            x
            for p, x in zip(parameters, args, strict=False)
            if isinstance(x, ndarray) and not p.raw
        ]
        if size is not None and plain:
            raise ValueError("Specified 'size' can be used only if all of the ndarray are 'raw'.")
        if size is None and not plain:
            raise ValueError("Loop size is undecided.")
        shape = np.broadcast_shapes(*[x.shape for x in plain]) if size is None else (size,)
        outs = list(args[len(self.ins) :])
        for parameter in self.outs[len(outs) :]:
            if parameter.raw:
                raise ValueError("Output array size is Undecided")
            dtype = parameter.dtype or letters[parameter.type]
            types.append(dtype)
            outs.append(ndarray(shape, dtype))
        for parameter, out in zip(self.outs, outs, strict=True):
            check_out(out, None if parameter.raw else shape)
        count = int(np.prod(shape))
        if count:
            launched(self.name)
            self._run(parameters, [*args[: len(self.ins)], *outs], types, shape, count)
        if self.no_return:
            return None
        return outs[0] if len(outs) == 1 and not self.return_tuple else tuple(outs)

    def _run(self, parameters: Any, given: Any, types: Any, shape: Any, count: int) -> None:
        variables: dict[str, Any] = {"i": np.arange(count), "n": np.array([count])}
        for parameter, x, dtype in zip(parameters, given, types, strict=True):
            if not isinstance(x, ndarray):
                variables[parameter.name] = self._number(x, dtype)
            elif parameter.raw:
                variables[parameter.name] = Raw(x._host, parameter.const)
            else:
                variables[parameter.name] = np.broadcast_to(x._host, shape).reshape(-1)
        const = {"n", *(parameter.name for parameter in self.ins)}
        text = self.operation
        for parameter, dtype in zip(parameters, types, strict=True):
            if parameter.dtype is None:  # a letter, which is the name of the type in the text
                text = re.sub(rf"\b{parameter.type}\b", c_name(dtype), text)
        try:
            lanes = Lanes(Program(text, self.preamble), count, variables, const)
            lanes.run(lanes.program.statements)
        except DoesNotCompileError as error:
            raise self._refused(error, text) from None
        for parameter, out in zip(self.outs, given[len(self.ins) :], strict=True):
            if not parameter.raw:
                out._host[...] = lanes.variables[parameter.name].reshape(shape)


class ReductionKernel(_Kernel):
    """``cupy.ReductionKernel``, of sums and products."""

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: Any,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        options: tuple[str, ...] = (),
    ) -> None:
        self.name = self.__name__ = name
        self.ins, self.outs = _parameters(in_params, True), _parameters(out_params, False)
        self.map, self.reduce, self.after = map_expr, reduce_expr, post_map_expr
        self.preamble, self.options, self.identity = preamble, options, identity
        self.type = reduce_type

    def __call__(self, *args: Any, axis: Any = None, keepdims: bool = False) -> Any:
        if len(args) not in (len(self.ins), len(self.ins) + len(self.outs)):
            raise TypeError(f"Wrong number of arguments for {self.name!r}.")
        self._checked(args)
        function = {"a + b": np.sum, "a * b": np.prod}.get(self.reduce)
        if function is None or str(self.identity) != ("0" if function is np.sum else "1"):
            raise NotImplementedError(f"the simulation has no reduction {self.reduce}")
        letters: dict[str, np.dtype] = {}
        types = [p.taken(x, letters) for p, x in zip([*self.ins, *self.outs], args, strict=False)]
        given = list(zip(self.ins, args, types, strict=False))
        shape = np.broadcast_shapes(
            *[x.shape for p, x, _ in given if isinstance(x, ndarray) and not p.raw]
        )
        launched(self.name)
        count = int(np.prod(shape))
        variables = {p.name: self._read(p, x, dtype, shape) for p, x, dtype in given}
        if axis is None:  # the number of the element along what is reduced
            variables["_J"] = np.arange(count)
        kind = kind_of(self.type) if self.type else self.outs[0].dtype
        try:
            mapped = self._mapped(variables, count).reshape(shape)
            whole = kind.kind in "iu"
            with np.errstate(all="ignore"):
                made = function(convert(mapped, kind) if whole else mapped, axis, keepdims=keepdims)
            a = np.asarray(made).astype(kind)
            after = {out.name: np.empty(a.size, out.dtype) for out in self.outs}
            lanes = Lanes(Program(self.after), a.size, {"a": a.reshape(-1), **after}, {"a"})
            lanes.run(lanes.program.statements)
        except DoesNotCompileError as error:
            raise self._refused(error, self.map) from None
        return self._written(args[len(self.ins) :], lanes.variables, a.shape)

    def _read(self, parameter: Parameter, x: Any, dtype: np.dtype, shape: tuple[int, ...]) -> Any:
        if not isinstance(x, ndarray):
            return self._number(x, dtype)
        if parameter.raw:
            return Raw(x._host, True)
        return np.broadcast_to(x._host, shape).reshape(-1)

    def _written(self, given: Sequence[Any], made: dict[str, Any], shape: tuple[int, ...]) -> Any:
        """The first result: CuPy returns no other, and writes into those that it is given."""
        outs = list(given) or [ndarray(shape, out.dtype) for out in self.outs]
        for parameter, out in zip(self.outs, outs, strict=True):
            check_out(out, shape)
            out._host[...] = made[parameter.name].reshape(shape)
        return outs[0]

    def _mapped(self, variables: dict[str, Any], count: int) -> np.ndarray:
        """What is reduced."""
        program = Program(f"return {self.map}", self.preamble)
        lanes = Lanes(program, count, variables, set(variables))
        lanes.run(program.statements)
        assert lanes.returned is not None
        return np.broadcast_to(lanes.returned, count)
