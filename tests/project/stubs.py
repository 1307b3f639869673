"""The stubs: write `tape/methods.pyi` and `nn/stored.pyi`, and read what others hand on.

The signatures are read off the functions' own source, so that nothing is written twice:
``python -m tests.project.stubs`` writes the files, and a test holds them to what this gives.
"""

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import wengert as wg
from wengert.ops.late import LATER

ROOT = Path(wg.__file__).parents[1]
TARGET = ROOT / "wengert" / "tape" / "methods.pyi"
STORED = ROOT / "wengert" / "nn" / "stored.pyi"

#: What is above this line in the file is written by hand: the operators and protocols.
MARK = "    # -- written by tests/project/stubs.py, from the functions' own signatures"
BUILTINS = {"bool", "complex", "float", "int", "list", "max", "min", "str", "sum", "tuple", "type"}


def attached() -> dict[str, Any]:
    """Every method and property of Tensors that is none of the class's own."""
    from wengert.ops.operators import METHODS

    for name in (*LATER, *METHODS):
        getattr(wg.Tensor, name, None)
    source = ast.parse(inspect.getsource(sys.modules["wengert.tape.tensor"]))
    tensor = next(n for n in source.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    own = {node.name for node in tensor.body if isinstance(node, ast.FunctionDef)}
    return {
        name: value
        for name, value in vars(wg.Tensor).items()
        if name not in own and (inspect.isfunction(value) or isinstance(value, property))
    }


class _Renamed(ast.NodeTransformer):
    """Names of builtins, which methods hide in the class, by their module."""

    def __init__(self, hidden: set[str]) -> None:
        self.hidden = hidden

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.hidden:
            return node
        return ast.Attribute(ast.Name("builtins"), node.id)


def _plain(default: ast.expr) -> ast.expr:
    """A default value as stubs write it: a name of another file is left out."""
    return ast.Constant(...) if isinstance(default, ast.Name) else default


def signature(name: str, function: Callable[..., Any], hidden: set[str]) -> str:
    """The stub of a method: the function's signature, its first argument being the Tensor."""
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    node = next(n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef))
    arguments = node.args
    _, *positional = arguments.posonlyargs or arguments.args
    if arguments.posonlyargs:
        arguments.posonlyargs = positional
        if positional:  # the Tensor is before the slash
            positional.insert(0, ast.arg("self"))
        else:
            arguments.args.insert(0, ast.arg("self"))
    else:
        arguments.args = [ast.arg("self"), *positional]
    arguments.defaults = [_plain(default) for default in arguments.defaults]
    node.name, node.body, node.decorator_list = name, [ast.Expr(ast.Constant(...))], []
    text = ast.unparse(ast.fix_missing_locations(_Renamed(hidden).visit(node)))
    return text.replace(":\n    ...", ": ...")


def written() -> str:
    """The file as it should be."""
    head = TARGET.read_text(encoding="utf-8").partition(MARK)[0]
    by_hand = set(re.findall(r"def (\w+)\(", head))
    methods = {name: value for name, value in attached().items() if name not in by_hand}
    hidden = BUILTINS & attached().keys()
    lines = []
    for name, value in sorted(methods.items()):
        if isinstance(value, property):
            kind = getattr(value.fget, "__name__", "")  # a class says what it gives
            lines += ["@property", f"def {name}(self) -> {kind if kind == 'At' else 'Tensor'}: ..."]
        else:
            lines += signature(name, value, hidden).splitlines()
    return formatted(head + MARK + "\n" + textwrap.indent("\n".join(lines), "    ") + "\n")


def formatted(text: str) -> str:
    """A stub as ruff formats it."""
    ruff = [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout


def stored() -> str:
    """The stub of the modules that only store options."""
    lines = [
        '"""Written by tests/project/stubs.py, from the functions\' own signatures."""',
        "",
        "# ruff: noqa: RUF022 -- the order is that of the rows",
        "",
        "from typing import Any, Literal",
        "",
        "from wengert.nn.define import Stored",
        "from wengert.tape.tensor import Tensor",
        "",
        f"__all__ = {wg.nn.stored.__all__}",
    ]
    for name in wg.nn.stored.__all__:
        lines += ["", f"class {name}(Stored):"]
        kind = getattr(wg.nn, name)
        for option, parameter in inspect.signature(kind).parameters.items():
            lines.append(f"    {option}: {annotation(option, parameter)}")
        for method in ("__init__", "forward"):
            found = inspect.signature(getattr(kind, method))
            given = [
                p if p.annotation is p.empty else p.replace(annotation=annotation(n, p))
                for n, p in found.parameters.items()
            ]
            text = str(found.replace(parameters=given)).replace("wengert.tape.tensor.", "")
            lines.append(f"    def {method}{text}: ...")
    return formatted("\n".join(lines) + "\n")


class Bare(str):
    """An annotation that `inspect` writes as it is."""

    __slots__ = ()
    __repr__ = str.__str__


def annotation(option: str, parameter: inspect.Parameter) -> Bare:
    """The type of an option: of a weight a Tensor, and no union of literals."""
    if option in ("weight", "pos_weight"):
        return Bare("Tensor | None")
    text = inspect.formatannotation(parameter.annotation)
    return Bare(re.sub(r"Union\[(.*)\]", lambda found: found[1].replace("], ", "] | "), text))


def exported(module: str) -> set[str]:
    """The names that the stub of a gathering module hands on."""
    package = ROOT.joinpath(*module.split("."))
    path = package / "__init__.pyi" if package.is_dir() else package.with_suffix(".pyi")
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.AnnAssign):
            names.add(ast.unparse(node.target))
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if alias.name != "*":
                    names.add(alias.asname or "")
                elif ROOT.joinpath(*node.module.split("."), "__init__.pyi").exists():
                    names |= exported(node.module) - {"__all__"}
                else:
                    names |= {*import_module(node.module).__all__}
    return names


if __name__ == "__main__":
    TARGET.write_text(written(), encoding="utf-8")
    STORED.write_text(stored(), encoding="utf-8")
