"""Show a function's rows in the tests' tables, and run what walks them: `python -m tests tanh`."""

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
#: Where tables are, whose rows begin with a name.
TABLES = ("catalogue/*.py", "ops/points/*.py", "ops/spaces.py", "ops/test_*.py")
#: Rooms whose tests walk the tables, or have a case for each of their names.
WALKS = ("ops", "interpreters", "func/test_mapping.py", "nn/test_functional.py",
         "project/test_docstrings.py")  # fmt: skip


def rows(name: str) -> Iterator[tuple[Path, int, str]]:
    """The entries of dictionaries and the calls that begin with a name: file, line and text."""
    for path in sorted(path for table in TABLES for path in HERE.glob(table)):
        source = path.read_text(encoding="utf-8")
        if name not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Dict):
                pairs = list(zip(node.keys, node.values, strict=True))
            elif isinstance(node, ast.Call | ast.Tuple):
                parts = node.args if isinstance(node, ast.Call) else node.elts
                pairs = [(parts[0], node)] if len(parts) > 1 else []
            else:
                continue
            for key, value in pairs:
                text = key.value if isinstance(key, ast.Constant) else None
                names = [each.rpartition(".")[2] for each in str(text).split()]
                if isinstance(text, str) and name in names:
                    own = isinstance(node, ast.Dict)
                    shown = ast.get_source_segment(source, value) or ""
                    yield path, key.lineno, f"{text}: {shown}" if own else shown


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests", description=__doc__)
    parser.add_argument("name", help="of a public function, such as softplus")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="for pytest")
    given = parser.parse_args(arguments)
    found = [*rows(given.name)]
    for path, line, text in found:
        print(f"{path.relative_to(HERE.parent)}:{line}\n    {text}")
    if not found:
        print(f"no table has a row of {given.name}: {', '.join(TABLES)}", file=sys.stderr)
    options = ["-p", "no:xdist", "-rN", "-v", "--no-header", "--tb=short", "--only", given.name]
    backends = ["--wengert-backend=numpy"]
    return int(pytest.main([*options, *backends, *given.options, *(str(HERE / w) for w in WALKS)]))


if __name__ == "__main__":
    sys.exit(main())
