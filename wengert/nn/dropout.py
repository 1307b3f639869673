"""Dropout as layers; each is the function of its name, which has the formula."""

from typing import Any

from wengert.nn import functional as F
from wengert.nn.define import Stored, stores
from wengert.tape.tensor import Tensor


class _Dropout(Stored):
    p: float
    inplace: bool

    def forward(self, input: Any) -> Tensor:
        raise NotImplementedError

    def _check(self) -> None:
        if not 0.0 <= self.p <= 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {self.p}")

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


@stores(F.dropout)
class Dropout(_Dropout):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None: ...


@stores(F.dropout1d)
class Dropout1d(_Dropout):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None: ...


@stores(F.dropout2d)
class Dropout2d(_Dropout):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None: ...


@stores(F.alpha_dropout)
class AlphaDropout(_Dropout):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None: ...
