"""Walks over tables inside one test, which reports all rows that fail at once."""

import os
import random
import re
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import wengert as wg

#: What the command line asks for: rows of one name, and of all rows one in so many on a backend.
chosen = SimpleNamespace(only="", shares={})


def lines_of(text: str) -> list[str]:
    """The entries of a table: one a line, or several with two blanks between them."""
    return [entry for line in text.strip().splitlines() for entry in line.split("  ")]


def concerns(item: Any, name: str) -> bool:
    """Whether a test walks a table, or has a case for a function."""
    walks = "walk" in getattr(item.function, "__code__", item.function).co_names
    case = item.nodeid.partition("[")[2].rstrip("]")
    if walks and (not case or case in item.config.getoption("wengert_backends")):
        return True  # the walk itself leaves out other rows
    return name in re.split(r"[-.]", case)


def walk(
    rows: Iterable[tuple[Any, ...]],
    check: Callable[..., None],
    *,
    backend: str = "",
    whole: bool = False,
) -> None:
    """Check rows, whose first entries are names; of all unless ``whole``, the share that is chosen.

    Each row starts from the same random numbers, whatever ran before it.
    """
    share = 1 if whole else chosen.shares.get(backend, 1)
    test, failed, checked = os.environ["PYTEST_CURRENT_TEST"], [], 0
    for count, row in enumerate(rows):
        name = "-".join(map(str, row))
        if chosen.only and chosen.only not in str(row[0]).split("."):
            continue
        # Each test checks one row at least, so that none is forgotten.
        if count and not chosen.only and crc32(f"{test.split(' ')[0]}{name}".encode()) % share:
            continue
        checked += 1
        os.environ["PYTEST_CURRENT_TEST"] = f"{test} {name}"
        wg.manual_seed(0)
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        try:
            check(*row)
        except Exception as error:
            failed.append(f"{name}: {type(error).__name__}: {error}")
    os.environ["PYTEST_CURRENT_TEST"] = test
    if chosen.only and not checked:
        pytest.skip(f"no row of {chosen.only}")
    assert not failed, f"{len(failed)} rows\n" + "\n".join(failed[:40])


def refusals(table: str) -> list[tuple[str, ...]]:
    """The rows of a table of what is refused: a name, a call, its error, and what that says.

    A line has a call, the class of its error, and a pattern of the message, with bars between
    them. It goes on in lines that begin with blanks.
    """
    lines = re.sub(r"\n +", " ", table.strip()).splitlines()
    return [(line.partition("(")[0], *line.split(" | ", 2)) for line in lines]


def refuse(**names: Any) -> Callable[..., None]:
    """Check that calls raise their errors: of the usual modules, and of these names."""
    usual = {"wg": wg, "np": np, "nn": wg.nn, "F": wg.nn.functional, "optim": wg.optim}

    def check(_: str, call: str, kind: str, says: str) -> None:
        space = usual | names
        try:
            eval(call, space)
        except eval(kind, space) as error:
            told = "\n".join([str(error), *getattr(error, "__notes__", ())])
            assert re.search(says, told), told
        else:
            raise AssertionError(f"{call} is not refused")

    return check
