"""The parts of the walk that visit optimisers: their state and hyper-parameters."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wengert.compiler.capture.places import NUMBERS, Exact, Place
from wengert.optim.optimizer import Optimizer
from wengert.tape.tensor import Tensor

if TYPE_CHECKING:
    from wengert.compiler.capture.walk import Walk

__all__ = ["OF_OPTIMIZERS", "REPLACEABLE", "visit_optimizer"]

#: Attributes of optimisers that are visited separately.
OF_OPTIMIZERS = ("param_groups", "state")

#: Methods of Wengert's classes that users may replace.
REPLACEABLE = ("forward", "init", "rule", "step")


def visit_optimizer(walk: "Walk", optimizer: Optimizer, name: str) -> None:
    """Visit an optimiser, after its parameters have got their names from modules."""
    state, groups, kept = walk.state, optimizer.param_groups, optimizer.state
    walk.object(optimizer, name)
    for key, x in (("param_groups", groups), ("state", kept)):
        state.held.append((Place(vars(optimizer), key, f"{name}.{key}"), x))
        walk.reached(x, f"{name}.{key}")
        walk.test("len({}) != {}", x, len(x))
    state.growing.add(id(kept))
    for i, group in enumerate(groups):
        prefix = name if len(groups) == 1 else f"{name}.{i}"
        state.held.append((Place(groups, i, prefix), group))
        _group(walk, group, prefix, kept)


def _group(walk: "Walk", group: dict[str, Any], prefix: str, states: Mapping[Any, Any]) -> None:
    state, params = walk.state, group["params"]
    _entries(walk, group, prefix, prefix)
    walk.reached(params, f"{prefix}.params")
    walk.test("len({}) != {}", params, len(params))
    counters: dict[tuple[str, Exact], int] = {}
    for i, param in enumerate(params):
        state.held.append((Place(params, i, f"{prefix}.params[{i}]"), param))
        walk.visit(param, f"{prefix}.params[{i}]", None)
        kept = states.get(param)
        if kept is not None:
            name = state.called[id(param)]
            state.held.append((Place(states, param, name), kept))
            state.growing.add(id(kept))
            _entries(walk, kept, name, f"{name} in an optimizer's state", counters)


def _entries(
    walk: "Walk",
    held: dict[str, Any],
    name: str,
    called: str,
    counters: dict[tuple[str, Exact], int] | None = None,
) -> None:
    """Visit hyper-parameters, or with ``counters`` the state of one parameter.

    Numbers of the state that are equal bitwise, such as counters of steps, share one input.
    """
    walk.reached(held, called)
    walk.fact(called, tuple(held))  # it may be empty at first
    walk.test("[*{}] != {}", held, [*held])
    for key, value in held.items():
        place = Place(held, key, f"{name}.{key}")
        if type(value) in NUMBERS:
            count = len(walk.state.numbers)
            shared = None if counters is None else counters.setdefault((key, Exact(value)), count)
            walk.number(place, shared)
        elif type(value) is tuple and value and all(type(x) in NUMBERS for x in value):
            walk.test(f"type({{}}) is not tuple or len({{}}) != {len(value)}", place, place)
            for i in range(len(value)):
                walk.number(Place(place, (i,), f"{place.name}[{i}]", "part"))
        elif key == "params":
            walk.state.held.append((place, value))
        elif counters is not None and hasattr(value, "dtype") and not isinstance(value, Tensor):
            walk.fact(place.name, "an array")  # or one of NumPy's numbers
            walk.state.arrays.append(place)
        else:
            walk.at(place)
