"""What rules are given in place of a parameter: its parts, or its float32 numbers."""

from collections.abc import Callable
from typing import Any

from wengert.backends import dtype_of
from wengert.optim.groups import Group

State = dict[str, Any]
Init = Callable[[Any, Any, Group], State]
Rule = Callable[[Any, Any, State], Any]


def _split_complex(xp: Any, z: Any) -> Any:
    """A complex array as a real one with an axis more; a real one as it is."""
    parts = dtype_of(z.dtype).complex
    return xp.stack([xp.real(z), xp.imag(z)], axis=-1) if parts else z


def _join_state(xp: Any, state: State, shape: Any) -> State:
    """A state whose arrays of parts, which are of ``shape``, are complex arrays."""
    return {
        name: _join_parts(xp, x) if hasattr(x, "dtype") and x.shape == shape else x
        for name, x in state.items()
    }


def _join_parts(xp: Any, parts: Any) -> Any:
    return xp.add(parts[..., 0], xp.multiply(parts[..., 1], 1j))


def init_in_parts(init: Init) -> Init:
    """Wrap a rule's `init` for the real parts of complex parameters."""

    def init_state(xp: Any, p: Any, group: Group) -> State:
        p = _split_complex(xp, p)
        return _join_state(xp, init(xp, p, group), p.shape)

    return init_state


def update_in_parts(xp: Any, update: Rule) -> Rule:
    """A rule of real parameters as one of complex ones, which are two real ones each."""

    def update_parts(p: Any, g: Any, state: State) -> Any:
        own = {k: _split_complex(xp, x) if hasattr(x, "dtype") else x for k, x in state.items()}
        p = update(_split_complex(xp, p), _split_complex(xp, g), own)
        state.update(_join_state(xp, own, p.shape))
        return _join_parts(xp, p)

    return update_parts


def init_in_float32(init: Init, masters: bool) -> Init:
    """As a rule's `init` that is given half-precision parameters, or their masters, as float32."""

    def init_state(xp: Any, p: Any, group: Group) -> State:
        p = xp.astype(p, xp.float32)
        state = init(xp, p, group)
        return {**state, "residual": xp.zeros_like(p)} if masters else state

    return init_state


def update_in_float32(xp: Any, update: Rule, masters: bool) -> Rule:
    """A rule of float32 parameters as one of half-precision ones, whose squares leave their range.

    The state of parameters with masters keeps what rounding took from the master, and not the
    master itself: so a parameter that is changed between steps, as by `load_state_dict`, is never
    overwritten by a stale one.
    """

    def update_master(p: Any, g: Any, state: State) -> Any:
        held, dtype = xp.astype(p, xp.float32), p.dtype
        if masters:
            master = xp.add(held, state["residual"])
            # A parameter that this is not rounded to was changed since, and rounding took nothing.
            held = xp.where(xp.equal(xp.astype(master, dtype), p), master, held)
        held = update(held, xp.astype(g, xp.float32), state)
        p = xp.astype(held, dtype)
        if masters:
            state["residual"] = xp.subtract(held, xp.astype(p, xp.float32))
        return p

    return update_master
