"""Parameters that are left out are what PyTorch documents."""

import inspect
from typing import Any

import pytest

from wengert import nn, optim
from wengert.nn import functional, init

OURS = [
    (space, name)
    for space in (nn, functional, init, optim)
    for name in space.__all__
    if inspect.isfunction(getattr(space, name)) or inspect.isclass(getattr(space, name))
]


def defaults(function: Any) -> dict[str, Any]:
    try:
        found = inspect.signature(function).parameters
    except ValueError:  # PyTorch's functions in C++ have none
        return {}
    return {name: p.default for name, p in found.items() if p.default is not p.empty}


@pytest.mark.oracle
@pytest.mark.parametrize(("space", "name"), OURS)
def test_pytorch_has_the_same_defaults(space: Any, name: str) -> None:
    torch = pytest.importorskip("torch")
    theirs = {nn: torch.nn, functional: torch.nn.functional, init: torch.nn.init}
    other = getattr(theirs.get(space, torch.optim), name, None)
    if other is None or name == "Parameter":
        pytest.skip("PyTorch has no such signature")
    shared = defaults(other)
    for parameter, default in defaults(getattr(space, name)).items():
        if callable(default):  # a function, such as relu, of each library
            assert shared[parameter].__name__ == default.__name__
            continue
        assert shared.get(parameter, default) == default, parameter


def test_defaults_that_pytorch_has_not() -> None:
    """Nor its functions in C++."""
    assert defaults(optim.Lion) == {"lr": 1e-4, "betas": (0.9, 0.99), "weight_decay": 0}
    assert defaults(functional.gelu) == {"approximate": "none"}
    assert defaults(functional.softplus) == {"beta": 1.0, "threshold": 20.0}
    assert inspect.signature(nn.LSTM) == inspect.signature(nn.GRU)
