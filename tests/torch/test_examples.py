"""The examples in the room's docstrings, in a process of their own."""

from tests.scripts import python

CODE = """
import doctest, importlib, pkgutil
import wengert as wg, wengert.torch as torch
names = [info.name for info in pkgutil.walk_packages(torch.__path__, "wengert.torch.")]
count = failed = 0
for module in [torch, *map(importlib.import_module, names)]:
    found = doctest.testmod(
        module,
        extraglobs={"wg": wg, "torch": torch},
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
    )
    count, failed = count + found.attempted, failed + found.failed
assert count and not failed, (count, failed)
"""


def test_examples_of_docstrings() -> None:
    python("-c", CODE)
