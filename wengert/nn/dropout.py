"""Dropout as layers; each is the function of its name, which has the formula."""

from wengert.nn import functional as F
from wengert.nn.define import Single
from wengert.nn.functional.dropout import probability


class _Dropout(Single):
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None: ...

    def _check(self) -> None:
        probability(type(self).__name__, self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout, of=F.dropout): ...


class Dropout2d(_Dropout, of=F.dropout2d): ...
