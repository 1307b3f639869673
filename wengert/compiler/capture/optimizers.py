"""What optimisers hold: the arrays and numbers that they keep, and hyper-parameters."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wengert.compiler.capture.places import NUMBERS, Place
from wengert.optim.optimizer import Optimizer
from wengert.tape.tensor import Tensor

if TYPE_CHECKING:
    from wengert.compiler.capture.walk import Walk

__all__ = ["OF_OPTIMIZERS", "REPLACEABLE", "visit_optimizer"]

#: Attributes of optimisers that are looked at by themselves, or never read again.
OF_OPTIMIZERS = ("defaults", "param_groups", "state")

#: Methods of Wengert's own classes that a user might replace.
REPLACEABLE = ("forward", "init", "rule", "step")


def visit_optimizer(walk: "Walk", optimizer: Optimizer, name: str) -> None:
    """Visit what an optimiser holds, after its parameters have got names elsewhere."""
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
    walk.reached(group, prefix)
    walk.reached(params, f"{prefix}.params")
    walk.fact(prefix, tuple(group))
    walk.test("[*{}] != {}", group, [*group])
    walk.test("len({}) != {}", params, len(params))
    for key, value in group.items():
        place = Place(group, key, f"{prefix}.{key}")
        if key == "params":
            state.held.append((place, params))
        elif type(value) in NUMBERS:
            walk.number(place)
        else:
            walk.at(place)
    counters: dict[tuple[str, Any], int] = {}
    for i, param in enumerate(params):
        state.held.append((Place(params, i, f"{prefix}.params[{i}]"), param))
        walk.visit(param, f"{prefix}.params[{i}]", None)
        kept = states.get(param)
        if kept is not None:
            called = walk.state.called[id(param)]
            state.held.append((Place(states, param, called), kept))
            _kept(walk, kept, called, counters)


def _kept(
    walk: "Walk", kept: dict[str, Any], name: str, counters: dict[tuple[str, Any], int]
) -> None:
    """What an optimiser keeps for one parameter."""
    called = f"{name} in an optimizer's state"
    walk.reached(kept, called)
    walk.state.growing.add(id(kept))
    walk.fact(called, tuple(kept))  # which may be empty, and is made once
    walk.test("[*{}] != {}", kept, [*kept])
    for key, value in kept.items():
        place = Place(kept, key, f"{name}.{key}")
        if type(value) in NUMBERS:
            walk.number(place, counters.setdefault((key, value), len(walk.state.numbers)))
        elif hasattr(value, "dtype") and not isinstance(value, Tensor):  # NumPy's numbers, too
            walk.fact(place.name, "an array")
            walk.state.arrays.append(place)
        else:
            walk.at(place)
