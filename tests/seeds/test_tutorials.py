"""What those four tutorials show, the first pages of `docs/learn` show by running it."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import wengert as wg

LEARN = Path(__file__).parents[2] / "docs" / "learn"
CELL = re.compile(r"^```\{code-cell\}\n((?::[^\n]*\n)*)(.*?)^```$", re.MULTILINE | re.DOTALL)

#: What the pages print, besides what depends on a random draw; addresses are replaced by ``0x…``.
SHOWN = {
    "graphs": [
        "dL/dw4 =   2.00    by hand   2.00",
        "a   paths [-1.5, 0.25]  sum -1.25",
        "{'w4': 2.0, 'w3': -1.0, 'w2': -0.5, 'w1': -6.0, 'a': -1.25}",
        "nothing yet: None None",
        "now: <MulBackward0 object at 0x…>",
        "the same product: False",
        "ValueError: ",
    ],
    "autograd": [
        "(3, 5) wengert.float32",
        "True True None",
        "False True",
        "z True None",
        "b False <AddBackward0 object at 0x…>",
        "DivBackward0",
        "The grad fn for a is None and a is a leaf: True",
        "The grad fn for d is <AddBackward0 object at 0x…> and d is a leaf: False",
        "RuntimeError: grad can be implicitly created only for scalar outputs",
        "tensor([3.], requires_grad=True)",
        "tensor([45.], grad_fn=<MulBackward0>)",
        "tensor([30.])",
        "tensor([20.])\ntensor([40.])\ntensor([60.])\ntensor([20.])",
        "((<PowBackward0 object at 0x…>, 0), (None, 0))",
        "(tensor([5.]), None)\ntensor([6.], grad_fn=<MulBackward0>)",
        "RuntimeError: Trying to backward through the graph a second time, but the buffers have",
        "t is a leaf: False, grad_fn <LogBackward0 object at 0x…>, grad tensor([5.])",
        r"\frac{\partial e}{\partial c} = 2.3026",
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed",
        "True\nFalse\nFalse",
        "RuntimeError: element 0 of tensors does not require grad",
        "the first layer's gradient: None",
    ],
}


@pytest.mark.parametrize("page", SHOWN)
def test_the_first_pages_run_and_show_it(page, monkeypatch, capsys):
    display = SimpleNamespace(Math=str, display=print)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    space = {"__name__": "page"}
    with wg.use_backend("numpy"):
        for options, code in CELL.findall((LEARN / f"{page}.md").read_text(encoding="utf-8")):
            try:
                exec(code, space)
            except Exception as error:
                if "raises-exception" not in options:
                    raise
                print(f"{type(error).__name__}: {error}")
    found = re.sub(r"0x[0-9a-f]+", "0x…", capsys.readouterr().out)
    assert [text for text in SHOWN[page] if text not in found] == []
