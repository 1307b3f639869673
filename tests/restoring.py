"""Tensors without PyTorch's and NumPy's meanings again, which importing their rooms gives them."""

import wengert as wg
from wengert.nn.state import State
from wengert.ops.operators import FOREIGN, GIVEN
from wengert.tape import aliases

_STATE_DICT = State.state_dict
_CORE, _FOREIGN = dict(vars(wg.Tensor)), frozenset(FOREIGN)


def restore() -> None:
    """Give all Tensors the core's methods and attributes."""
    aliases.lost_writes_raise = False
    State.state_dict = _STATE_DICT  # type: ignore[method-assign]
    if not GIVEN:
        return
    GIVEN.clear()
    wg.set_default_dtype(wg.float32)
    for name in vars(wg.Tensor).keys() - _CORE.keys():
        delattr(wg.Tensor, name)
    for name, attribute in _CORE.items():
        if vars(wg.Tensor).get(name) is not attribute:
            setattr(wg.Tensor, name, attribute)
    FOREIGN.update(_FOREIGN)
