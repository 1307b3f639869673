"""The four tutorials by `import wengert.torch as torch`, with PyTorch's legacy constructors."""

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SEEDS = Path(__file__).parents[1] / "seeds" / "test_seeds.py"
NAMES = re.findall(r"^def (test_\w+)", SEEDS.read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_core_shows_the_room_shows_too(room: Any, name: str, capsys: Any) -> None:
    text = SEEDS.read_text()
    assert text.count("import wengert as torch") == 2
    space: dict[str, Any] = {"__name__": "seeds"}
    exec(text.replace("import wengert as torch\n", "import wengert.torch as torch\n"), space)
    assert space["torch"] is room

    def shown() -> str:
        return re.sub(r"0x[0-9a-fA-F]+", "0x…", capsys.readouterr().out)

    test = space[name]
    assert set(inspect.signature(test).parameters) <= {"shown"}
    test(*([shown] if inspect.signature(test).parameters else []))


def test_legacy_constructors(room: Any) -> None:
    torch = room
    assert torch.Tensor(3, 5).shape == (3, 5)
    t2 = torch.FloatTensor(3, 3)
    t2.requires_grad = True
    assert t2.grad is None
    assert repr(torch.from_numpy(np.zeros((3, 5))).type()) == "'torch.DoubleTensor'"
    another_tensor = torch.LongTensor([[2, 4], [5, 6]])
    assert another_tensor.type() == "torch.LongTensor"
    assert isinstance(another_tensor, torch.Tensor) and another_tensor.tolist() == [[2, 4], [5, 6]]
