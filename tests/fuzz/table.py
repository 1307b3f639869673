"""The tables of recipes, which say what random programs are made of."""

from collections.abc import Callable
from typing import NamedTuple

from tests.fuzz.generator import Writer

__all__ = ["TABLE", "WEIGHTS", "Recipes", "recipe", "recipes"]

Recipe = Callable[[Writer], object]


class Recipes(NamedTuple):
    """Recipes, and how often each is taken."""

    table: list[Recipe]
    weights: list[int]


def recipes() -> tuple[Recipes, Callable[[int], Callable[[Recipe], Recipe]]]:
    """An empty table, and a decorator that adds a recipe to it."""
    made = Recipes([], [])

    def recipe(weight: int) -> Callable[[Recipe], Recipe]:
        def register(function: Recipe) -> Recipe:
            made.table.append(function)
            made.weights.append(weight)
            return function

        return register

    return made, recipe


(TABLE, WEIGHTS), recipe = recipes()
