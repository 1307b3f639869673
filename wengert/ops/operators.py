"""The Tensor's operators and methods: functions of this package, attached here and only here."""

from wengert.ops import elementwise
from wengert.tape.tensor import Tensor

Tensor.__add__ = Tensor.__radd__ = elementwise.add
Tensor.__mul__ = Tensor.__rmul__ = elementwise.multiply
Tensor.__sub__ = elementwise.subtract
Tensor.__rsub__ = lambda self, other: elementwise.subtract(other, self)
