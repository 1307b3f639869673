"""Lists of parameters, and dicts of modules."""

import pytest

import wengert as wg
from wengert import nn


def test_a_list_of_parameters() -> None:
    first, second = nn.Parameter(wg.ones((2, 3))), wg.zeros(3)
    net = nn.Module()
    net.weights = held = nn.ParameterList([first, second])
    assert list(net.state_dict()) == ["weights.0", "weights.1"]
    assert held[0] is first and isinstance(held[1], nn.Parameter) and len(held) == 2
    held.append(wg.ones(1)).extend([wg.ones(2)])
    held[-1] = wg.ones(4)
    assert [p.shape for p in held] == [(2, 3), (3,), (1,), (4,)]
    assert first in held and second not in held
    assert [p.shape for p in held[1:3]] == [(3,), (1,)]
    assert list(held[1:3].state_dict()) == ["0", "1"]
    assert held.pop(0) is first and list(held.state_dict()) == ["0", "1", "2"]
    with pytest.raises(IndexError, match="index 5 is out of range for 3 parameters"):
        held[5]
    for wrong in (3, nn.Identity()):
        with pytest.raises(TypeError, match=r"nn\.ParameterList holds parameters"):
            held.append(wrong)
        with pytest.raises(TypeError, match=r"nn\.ParameterList holds parameters"):
            held[0] = wrong
    assert len(held) == 3


def test_a_dict_of_modules() -> None:
    held = nn.ModuleDict({"a": nn.Linear(2, 3)})
    held["b"] = nn.Tanh()
    held.update([("c", nn.ReLU())])
    held.update(nn.ModuleDict({"c": nn.Identity()}))
    assert list(held) == list(held.keys()) == ["a", "b", "c"]
    assert type(held["c"]) is nn.Identity and "a" in held and "z" not in held and len(held) == 3
    assert len(held.pop("a").state_dict()) == 2 and [n for n, _ in held.items()] == ["b", "c"]
    for key in ("keys", "a.b", ""):
        with pytest.raises(KeyError):
            held[key] = nn.Tanh()
    with pytest.raises(KeyError):
        held["nothing"]
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        held["d"] = 3
    held.clear()
    assert not list(held.children())
