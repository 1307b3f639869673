"""The scope: of PyTorch's names of networks and optimisers each is here, or says what to write."""

import importlib
import re
from pathlib import Path

import pytest

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
