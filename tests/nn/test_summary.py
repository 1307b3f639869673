"""Tables of networks."""

from typing import Any

import pytest

import wengert as wg
from wengert import nn
from wengert.nn.utils import summary


def test_a_table_of_a_network() -> None:
    shared = nn.Linear(4, 4)
    model = nn.Sequential(nn.Linear(3, 4), shared, shared, nn.Dropout(), nn.Linear(4, 2))
    model[4].weight.requires_grad = False
    model[1].bias = model[0].bias
    model[1].eval()
    modes = [module.training for module in model.modules()]
    lines = summary(model, (5, 3)).splitlines()
    assert [line.split() for line in lines[2:-2]] == [
        ["Sequential", "(5,", "2)"],
        ["0:", "Linear", "(5,", "4)", "16", "yes"],
        ["1:", "Linear", "(5,", "4)", "x2", "16", "yes"],
        ["2:", "Linear", "(shared)"],
        ["3:", "Dropout", "(5,", "4)"],
        ["4:", "Linear", "(5,", "2)", "10", "partly"],
    ]
    assert lines[-1] == "Parameters: 42, trainable: 34, in 168 bytes"
    assert modes == [module.training for module in model.modules()]
    assert type(model) is nn.Sequential and "_hooks" not in vars(model[0])


@pytest.mark.usefixtures("backend")
def test_inputs_of_the_model_s_backend_and_dtype() -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(3, 2).double()

        def forward(self, x: Any, y: Any) -> Any:
            assert x.dtype == y.dtype == wg.float64
            return self.layer(x), [y]

    given = wg.ones((4, 3), dtype=wg.float64), wg.ones(5, dtype=wg.float64)
    assert "(4, 2), (5,)" in summary(Pair(), input_data=given)
    assert "(4, 2)" in summary(nn.Sequential(nn.Linear(3, 2).double()), (4, 3))
    assert "(4" not in summary(Pair())


def test_tables_that_can_t_be_made() -> None:
    model = nn.Linear(3, 2)
    with pytest.raises(TypeError, match="takes a Module, not int"):
        summary(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="input_shape or input_data, not both"):
        summary(model, (1, 3), wg.ones((1, 3)))
    with pytest.raises(TypeError, match="made of integers"):
        summary(model, (1.0, 3))  # type: ignore[arg-type]
    model.eval()
    with pytest.raises((ValueError, RuntimeError)):
        summary(model, (1, 4))
    assert not model.training and type(model) is nn.Linear
