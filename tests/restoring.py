"""Tensors without PyTorch's meanings again, which importing `wengert.torch` gives them."""

import wengert as wg
from wengert.nn.state import State
from wengert.ops.operators import FOREIGN
from wengert.tape import aliases

_STATE_DICT = State.state_dict
_CORE, _FOREIGN = dict(vars(wg.Tensor)), frozenset(FOREIGN)


def restore() -> None:
    """Give all Tensors the core's methods and attributes."""
    aliases.lost_writes_raise = False
    State.state_dict = _STATE_DICT  # type: ignore[method-assign]
    if vars(wg.Tensor)["size"] is _CORE["size"]:
        return
    for name in vars(wg.Tensor).keys() - _CORE.keys():
        delattr(wg.Tensor, name)
    for name, attribute in _CORE.items():
        if vars(wg.Tensor).get(name) is not attribute:
            setattr(wg.Tensor, name, attribute)
    FOREIGN.update(_FOREIGN)
