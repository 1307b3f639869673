"""The pieces of which random programs are made."""

from tests.compiler.stateful.pieces import (
    computing,
    giving,
    holding,
    reading,
    speaking,
    training,
)

__all__ = ["PIECES"]

PIECES = [
    *reading.PIECES,
    *holding.PIECES,
    *computing.PIECES,
    *giving.PIECES,
    *training.PIECES,
    *speaking.PIECES,
]
