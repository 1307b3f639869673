"""The table of recipes, which say what random programs are made of."""

from collections.abc import Callable

from tests.fuzz.generator import Writer

__all__ = ["TABLE", "WEIGHTS", "recipe"]

TABLE: list[Callable[[Writer], object]] = []
WEIGHTS: list[int] = []


def recipe(weight: int):
    def register(function: Callable[[Writer], object]) -> Callable[[Writer], object]:
        TABLE.append(function)
        WEIGHTS.append(weight)
        return function

    return register
