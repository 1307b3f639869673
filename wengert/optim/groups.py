"""Hyper-parameters: what they are, their ranges, and the groups of parameters that have them."""

import math
from collections.abc import Mapping, MutableMapping
from typing import Any, Final, NamedTuple

from wengert.nn.conversion import as_number


class Range(NamedTuple):
    """The numbers that a hyper-parameter may be, and what PyTorch's error says of others."""

    low: float = 0
    high: float = math.inf
    says: str = "Invalid {name} value: {value}"
    #: Below ``high``, and not ``high`` itself.
    below: bool = False
    #: How many numbers it is; 0 for one number that is not in a tuple.
    numbers: int = 0

    def check(self, name: str, value: Any) -> None:
        """Raise `ValueError` for a value outside the range."""
        several = isinstance(value, tuple | list)
        if self.numbers and not (several and len(value) == self.numbers):
            words = {2: "two", 3: "three"}[self.numbers]
            raise ValueError(f"{name} should be {words} numbers, not {value}")
        for index, x in enumerate(value if self.numbers else (value,)):
            try:
                fits = self.low <= x <= self.high and not (self.below and x == self.high)
            except TypeError:
                raise TypeError(f"{name} is a number, and not {x!r}") from None
            if not fits:
                raise ValueError(self.says.format(name=name, value=x, index=index))


#: The ranges of hyper-parameters that mean the same in several optimisers.
RANGES: Final = {
    "lr": Range(says="Invalid learning rate: {value}"),
    "betas": Range(0, 1, "Invalid beta parameter at index {index}: {value}", True, 2),
    "eps": Range(says="Invalid epsilon value: {value}"),
    "weight_decay": Range(),
    "momentum": Range(),
}


def hyper_parameters(names: Mapping[str, Any]) -> dict[str, Any]:
    """The hyper-parameters among the ``locals()`` of a constructor."""
    return {k: v for k, v in names.items() if k not in ("self", "params", "__class__")}


class Group(dict[str, Any]):
    """Parameters and their hyper-parameters, which become Python's numbers when they are set.

    NumPy's scalars would promote the parameters, and so no step has to convert them.
    """

    def __init__(self, *content: Any, **more: Any) -> None:
        super().__init__()
        self.update(*content, **more)

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value if name == "params" else as_number(value, name))

    # These set item by item, which those of `dict` do not.
    update: Any = MutableMapping.update
    setdefault: Any = MutableMapping.setdefault

    def __ior__(self, other: Any) -> "Group":  # type: ignore[misc, override]
        self.update(other)
        return self
