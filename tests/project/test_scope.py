"""The scope: of PyTorch's names of networks and optimisers each is here, or says what to write."""

import importlib
import re
from pathlib import Path

import pytest

import wengert as wg
from wengert.names import HINTS

PAGE = Path(__file__).parents[2] / "docs/design/scope.md"
#: By PyTorch's module, Wengert's.
MODULES = {
    "torch.optim": "wengert.optim",
    "torch.optim.lr_scheduler": "wengert.optim.lr_scheduler",
    "torch.optim.swa_utils": "wengert.optim.swa_utils",
    "torch.nn": "wengert.nn",
}


def table(module: str) -> dict[str, str]:
    """What the page says of each name of a module of PyTorch's."""
    text = PAGE.read_text()
    part = text[text.index(f"## `{module}`\n") :].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", part, re.MULTILINE)
    assert len(rows) == len(dict(rows)), module
    return dict(rows)


@pytest.mark.parametrize("module", MODULES)
def test_a_name_is_here_or_says_what_to_write(module: str) -> None:
    ours = importlib.import_module(MODULES[module])
    hints = HINTS.get(MODULES[module], {})
    rows = table(module)
    assert rows
    for name, said in rows.items():
        if name in ours.__all__:
            assert said == "have", name
            assert name not in hints, name
        else:
            assert said == f"not: use {hints[name]}".replace("|", r"\|"), name
            with pytest.raises(AttributeError, match=re.escape(f"use {hints[name]}")):
                getattr(ours, name)


@pytest.mark.oracle
@pytest.mark.parametrize("module", MODULES)
def test_the_scope_has_all_of_pytorchs_names(module: str) -> None:
    theirs = importlib.import_module(pytest.importorskip("torch") and module)
    if module == "torch.nn":  # which lists the classes of its layers elsewhere
        apart = {"Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer"}
        names = {*theirs.modules.__all__, *apart, "DataParallel"}
    else:
        names = {*theirs.__all__}
    spaces = {"lr_scheduler", "swa_utils"}
    assert table(module).keys() == names - spaces


#: Namespaces that are asked for PyTorch's names; `x` stands for a Tensor.
ASKED = {"torch", "torch.nn", "torch.optim", "torch.nn.functional", "torch.linalg", "torch.func"}
ASKED |= {"torch.nn.init", "torch.nn.utils", "torch.optim.lr_scheduler", "torch.autograd", "x"}
#: Names alike that are right.
ALIKE = {"clip_grad_norm": "clip_grad_norm_"}


def test_a_name_that_programs_use_is_here_or_says_what_to_write() -> None:
    """Those of 3 or more of 582 public files, the parts before them included."""
    used = (Path(__file__).parents[1] / "torch" / "used.txt").read_text().splitlines()
    asked = 0
    for name in [line.split()[0] for line in used]:
        place, *parts = name.split(".")
        found = wg.ones(2) if place == "x" else wg
        for part in parts:
            if place not in ASKED:
                break
            if not hasattr(found, part):
                also = f"did you mean '{ALIKE[part]}'" if part in ALIKE else "; use "
                with pytest.raises(AttributeError, match=f"has no attribute '{part}'.*{also}"):
                    getattr(found, part)
                break
            found, place = getattr(found, part), f"{place}.{part}"
        asked += 1
    assert asked > 250
