"""The edits are those that are meant."""

import ast

from tests.mutation.mutants import mutants

SOURCE = '''\
"""Some numbers."""

__all__ = ["half"]


def half(x: int, up: bool = False) -> int:
    """Half of it."""
    if x < 0:
        raise ValueError(f"{x} is negative")
    seen.append(x)
    return round(x / 2, ndigits=0) if not up else (x + 1) // 2


def what_an_exchange_leaves(x: float) -> float:
    """It."""
    return max(x, 0.5**0.5) + atan2(x, x)


def of_each_kind(x):
    raise NotImplementedError


seen = []
'''


def test_every_edit_of_a_function() -> None:
    source = SOURCE.encode()
    made = mutants("wengert/numbers.py", source)
    edits = {mutant.difference(source) for mutant in made}
    for mutant in made:
        ast.parse(mutant.edited(source))
        assert mutant.room == "wengert"
    line = "return round(x / 2, ndigits=0) if not up else (x + 1) // 2"
    for new in (
        line.replace("x / 2", "(x * 2)"),
        line.replace("x / 2", "(2 / x)"),
        line.replace(", ndigits=0", ""),
        line.replace("=0", "=1"),
        line.replace("not up", "(up)"),
        line.replace("x + 1", "(x - 1)"),
        line.replace("(x + 1) // 2", "((x + 1) * 2)"),
    ):
        assert (line, new) in edits, new
    assert ("seen.append(x)", "pass") in edits
    assert ("if x < 0:", "if (x <= 0):") in edits
    assert ("if x < 0:", "if (not (x < 0)):") in edits
    assert not any("__all__" in old or "negative" in new for old, new in edits)
    assert not any("NotImplementedError" in old for old, _ in edits)
    tree = ast.dump(ast.parse(source))
    assert all(ast.dump(ast.parse(mutant.edited(source))) != tree for mutant in made)
