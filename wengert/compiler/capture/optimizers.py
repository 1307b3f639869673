"""What optimisers hold: the arrays and numbers that they keep, and hyper-parameters."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wengert.compiler.capture.live import LiveNumber
from wengert.compiler.capture.places import NUMBERS, OF_OPTIMIZER, Identity, Place
from wengert.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from wengert.compiler.capture.walk import Walk

__all__ = ["REPLACEABLE", "visit_optimizer"]

#: Methods of Wengert's own classes that a user might replace.
REPLACEABLE = ("forward", "init", "rule", "step")


def visit_optimizer(walk: "Walk", optimizer: Optimizer, name: str) -> None:
    """Visit what an optimiser holds, after its parameters have got names elsewhere."""
    state, held, cls = walk.state, vars(optimizer), type(optimizer)
    walk.found.of(optimizer)
    walk.fact(name, Identity(cls))
    walk.type_of(cls, name)
    walk.test("type({}) is not {}", optimizer, cls)
    walk.test("{}.__dict__ is not {}", optimizer, held)
    walk.test("[*{}] != {}", held, [*held])
    state.objects += [optimizer, optimizer.param_groups, optimizer.state]
    for key in held:
        place = Place(held, key, f"{name}.{key}")
        if key in ("param_groups", "state"):
            state.links.append((place, held[key]))
        elif key in REPLACEABLE or (walk.named.wants(optimizer, key) and key != "defaults"):
            walk.at(place)
    groups, kept = optimizer.param_groups, optimizer.state
    state.lengths.append((groups, len(groups), name))
    walk.test("len({}) != {}", groups, len(groups))
    state.lengths.append((kept, len(kept), f"{name}.state{OF_OPTIMIZER}"))
    walk.test("len({}) != {}", kept, len(kept))
    for i, group in enumerate(groups):
        prefix = name if len(groups) == 1 else f"{name}.{i}"
        state.links.append((Place(groups, i, prefix), group))
        _group(walk, group, prefix, kept)


def _group(walk: "Walk", group: dict[str, Any], prefix: str, states: Mapping[Any, Any]) -> None:
    state, params = walk.state, group["params"]
    state.objects += [group, params]
    state.lengths.append((params, len(params), f"{prefix}.params"))
    walk.fact(prefix, tuple(group))
    walk.test("[*{}] != {}", group, [*group])
    walk.test("len({}) != {}", params, len(params))
    for key, value in group.items():
        place = Place(group, key, f"{prefix}.{key}")
        if key == "params":
            state.links.append((place, params))
        elif type(value) in NUMBERS:
            walk.number(place)
        else:
            walk.at(place)
    counters: dict[tuple[str, Any], int] = {}
    for i, param in enumerate(params):
        state.links.append((Place(params, i, f"{prefix}.params[{i}]"), param))
        walk.visit(param, f"{prefix}.params[{i}]", None)
        kept = states.get(param)
        if kept is not None:
            called = walk.state.called[id(param)]
            state.links.append((Place(states, param, called), kept))
            _kept(walk, kept, called, counters)


def _kept(
    walk: "Walk", kept: dict[str, Any], name: str, counters: dict[tuple[str, Any], int]
) -> None:
    """What an optimiser keeps for one parameter."""
    walk.state.objects.append(kept)
    walk.state.lengths.append((kept, len(kept), f"{name}{OF_OPTIMIZER}"))
    walk.fact(f"{name}{OF_OPTIMIZER}", tuple(kept))  # which may be empty, and is made once
    walk.test("[*{}] != {}", kept, [*kept])
    for key, value in kept.items():
        place = Place(kept, key, f"{name}.{key}")
        if type(value) in NUMBERS:
            known = value.value if isinstance(value, LiveNumber) else value
            walk.number(place, counters.setdefault((key, known), len(walk.state.numbers)))
        elif hasattr(value, "dtype"):
            walk.fact(place.name, "an array")
            walk.state.arrays.append(place)
        else:
            walk.at(place)
