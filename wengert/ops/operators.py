"""The Tensor's operators and methods: functions of this package, attached here and only here."""

import inspect

from wengert.tape.interpreter import differentiable
from wengert.tape.tensor import Tensor

_f = vars(differentiable)


def _reflected(function):
    def method(self, other):
        return function(other, self)
    return method


_RANK = {"bool": 0, "signed integer": 1, "unsigned integer": 1, "real floating": 2, "complex floating": 3}


def _in_place(function):
    def method(self, other):
        result = function(self, other)
        if result.dtype is not self.dtype and _RANK[result.dtype.kind] <= _RANK[self.dtype.kind]:
            result = _f["astype"](result, self.dtype)
        return self._assign(result)
    return method


for name, function, commutes in (
    ("add", "add", True), ("sub", "subtract", False), ("mul", "multiply", True), ("truediv", "divide", False),
    ("floordiv", "floor_divide", False), ("mod", "remainder", False), ("pow", "pow", False),
    ("matmul", "matmul", False), ("and", "bitwise_and", True), ("or", "bitwise_or", True), ("xor", "bitwise_xor", True),
    ("lshift", "bitwise_left_shift", False), ("rshift", "bitwise_right_shift", False),
):
    if function in _f:
        fn = _f[function]
        setattr(Tensor, f"__{name}__", fn)
        setattr(Tensor, f"__r{name}__", fn if commutes else _reflected(fn))
        setattr(Tensor, f"__i{name}__", _in_place(fn))
for name, function in (
    ("neg", "negative"), ("pos", "positive"), ("abs", "abs"), ("invert", "bitwise_invert"),
    ("eq", "equal"), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal"),
):
    if function in _f:
        setattr(Tensor, f"__{name}__", _f[function])
Tensor.__hash__ = object.__hash__
for name in list(_f):
    function = _f[name]
    if callable(function) and not hasattr(Tensor, name) and name[0] != "_" and not isinstance(function, type):
        try:
            first = next(iter(inspect.signature(function).parameters.values()), None)
        except (TypeError, ValueError):
            continue
        if first is not None and first.name in ("x", "x1", "a", "condition"):
            setattr(Tensor, name, function)
if "getitem" in _f:
    Tensor.__getitem__ = _f["getitem"]
Tensor.T = property(lambda self: _f["matrix_transpose"](self))
Tensor.mT = property(lambda self: _f["matrix_transpose"](self))
