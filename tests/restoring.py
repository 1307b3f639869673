"""Tensors without PyTorch's meanings again, which importing `wengert.torch` gives them."""

import wengert as wg
from wengert.ops.operators import FOREIGN
from wengert.tape import aliases

_CORE, _FOREIGN = dict(vars(wg.Tensor)), frozenset(FOREIGN)


def restore() -> None:
    """Give all Tensors the core's methods and attributes."""
    aliases.lost_writes_raise = False
    if vars(wg.Tensor)["size"] is _CORE["size"]:
        return
    for name in vars(wg.Tensor).keys() - _CORE.keys():
        delattr(wg.Tensor, name)
    for name, attribute in _CORE.items():
        if vars(wg.Tensor).get(name) is not attribute:
            setattr(wg.Tensor, name, attribute)
    FOREIGN.update(_FOREIGN)
