"""The house: which room imports which, and that no two modules import one another."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import wengert

ROOT = Path(wengert.__file__).parent

#: From the bottom up: a room imports those of the lines above its own.
FLOORS = [
    {"__version__", "names"},
    {"backends"},
    {"tape"},
    {"interpreters"},
    {"ops"},
    {"linalg", "special", "fft", "random"},
    {"func", "protocols"},
    {"autograd", "storage"},
    {"nn", "inspection"},
    {"optim", "data", "testing"},
    {"amp"},
    {"compiler"},
    {"dask", "distributed", "export", "optimize", "running"},
    {"numpy", "scipy", "torch"},
    {"hips"},
    {"__main__"},
]
#: The most lines of rooms, with their words.
BUDGETS = {
    ("tape", "interpreters"): 6_066,
    ("backends", "ops", "func", "protocols"): 24_847,
    ("testing",): 4_916,
    ("compiler",): 9_921,
    ("distributed",): 1_372,
    ("nn", "optim"): 9_991,
    ("torch",): 1_829,
    ("numpy",): 725,
    ("hips",): 360,
    ("running",): 131,
    ("scipy",): 2_868,
    ("export",): 1_288,
    ("data", "storage", "inspection", "optimize", "amp", "dask"): 4_664,
}
#: What is read in a day beside `tape` and `interpreters`, and the most lines of all of it.
READING = ("func.arguments", "func.forward", "func.reverse", "ops.define")
DAY = 7_157
#: Files of more lines.
LARGEST = 600
#: Of the rooms outside the engine.
OUTER = "amp dask data distributed export inspection nn optim optimize storage testing torch"
LARGEST_OF = dict.fromkeys(OUTER.split(), 450)

#: Rooms whose files have tests of their name, or of the package that they are in; tests of more
#: than a file beside these; and tests of other names, with the files whose tests they are.
MIRRORED = """
backends | conversion cupy_devices import meta others plugins | others: backend ndonnx  dask:
    dask_graphs dask_linalg  cupy: fused  numpy: numpy_networks numpy_special sigmoids
    ../ops/random: generators states  ../ops/indexing: keys  ../ops/special: special
    ../ops/triangles: triangular ../ops/numpy_convolutions: windows
tape | cycles memory | aliases: views  autograd: tensor  function: marks  leaving: callbacks
    observers: record  ../ops/operators: calling operands primitive
interpreters |  | duals: namespaces  ../func/transforms_agree: levels  ../ops/options: batching
ops | composites counts degrees derivatives digits errors memory numpy_numbers options oracles
    own_results parameters points positional promotion scales singular standard storing table
    triangles values | contraction: subscripts  derivatives: cumulative linear_algebra  errors:
    define searching methods: late  numpy_convolutions: convolution  numpy_pooling: places pooling
    operators: inspection precise  options: grids sorting utility  own_results: axes  scales:
    euclidean shares  storing: operands  triangles: limits  updates: index_composites  values:
    constants set windows ../nn/messages: hints
func | jax transforms_agree | custom: signatures
storage | pytorch_nets resuming |
nn | losses messages | layers: define  losses: numpy_classification  messages: hints
    module: conversion parameter state stored  normalisation: numpy_normalisations  recurrent: cells
inspection |  | drawing: graph
optim | compiled_scaling rules | optimizer: kernels  rules: adam adapters adaptive lion_muon sgd
data |  |
testing | accepted planted plugin | check: exploration  command: checkup targets  contrast:
    tracebacks  gradcheck: batches problem  kinks: comparison verdicts
distributed | dtensor jax | collectives: averaging training  mpi: carriers launch
export |  | exporting: errors
optimize |  | adapters: objectives vectors
"""
MIRRORS = [
    re.split(r"\s*\|\s*", row) for row in re.sub(r"\n\s+", " ", MIRRORED).strip().splitlines()
]

#: Irregular participles, which name no function, as those that end in "ed".
PARTICIPLES = """
begun built chosen done drawn found given held kept left lost made met seen shown taken told
written
""".split()  # noqa: SIM905
#: Functions of such names: of the standard, of users, events, and what only ends so.
NAMED = """
assigned bent computed done feed left lost operated replaced reseed searchsorted seed seeded
standardised strided tracked untracked
""".split()  # noqa: SIM905


def modules() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = ("wengert", *path.relative_to(ROOT).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()
#: Rooms whose import changes Tensors in the process.
DOORS = ("wengert.hips", "wengert.numpy", "wengert.torch")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imported(path: Path) -> list[tuple[str, bool]]:
    """Wengert's modules that one names, and whether it imports them when it is imported itself."""
    return list(_imported(path))


def _imported(path: Path) -> Iterator[tuple[str, bool]]:
    top = set(map(id, parsed(path).body))
    for node in ast.walk(parsed(path)):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                names.append(whole if whole in MODULES else node.module)
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and node.args:
            name = node.args[0]
            if isinstance(name, ast.Constant) and ast.unparse(node.func).endswith("import_module"):
                names = [str(name.value)]
        yield from ((name, id(node) in top) for name in names if name.startswith("wengert"))


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else "wengert"


@pytest.mark.slow
def test_rooms_import_those_below() -> None:
    floor = {name: i for i, names in enumerate(FLOORS) for name in names}
    assert {room(m) for m in MODULES} - {"wengert"} <= floor.keys()
    edges = {(room(m), room(name)) for m, path in MODULES.items() for name, _ in imported(path)}
    between = {
        (own, other) for own, other in edges if own != other and "wengert" not in (own, other)
    }
    assert {(own, other) for own, other in between if floor[other] >= floor[own]} == set()


@pytest.mark.slow
def test_no_cycles() -> None:
    graph = {
        module: {name for name, top in imported(path) if top and name != module}
        for module, path in MODULES.items()
    }
    assert len(list(TopologicalSorter(graph).static_order())) >= len(MODULES)


def circles(graph: dict[str, set[str]]) -> set[str]:
    """The modules that lead to themselves: all from which every other of the rest leads on."""
    rest, before = dict(graph), -1
    while len(rest) != before:
        before = len(rest)
        rest = {m: names & rest.keys() for m, names in rest.items() if names & rest.keys()}
        led = set().union(*rest.values())
        rest = {m: names for m, names in rest.items() if m in led}
    return set(rest)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["tape", "ops"])
def test_no_cycles_within_the_engine_count_late_imports_too(engine: str) -> None:
    """Under TYPE_CHECKING, in functions, and by names in strings, as in tables of late modules."""
    graph = {}
    for module, path in MODULES.items():
        strings = {n.value for n in ast.walk(parsed(path)) if isinstance(n, ast.Constant)}
        names = {name for name, _ in imported(path)} | (strings & MODULES.keys())
        if room(module) == engine:
            graph[module] = {name for name in names if room(name) == engine} - {module}
    assert circles(graph) == set()


@pytest.mark.slow
def test_imports_in_functions_are_by_name() -> None:
    """`import_module` shows that an import is late on purpose."""
    functions = (
        (module, node)
        for module, path in MODULES.items()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef)
    )
    assert [
        (module, ast.unparse(node))
        for module, function in functions
        for node in ast.walk(function)
        if (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("wengert"))
        or (isinstance(node, ast.Import) and node.names[0].name.startswith("wengert"))
    ] == []


@pytest.mark.parametrize(("name", "walks", "elsewhere"), MIRRORS)
def test_tests_mirror_the_package(name: str, walks: str, elsewhere: str) -> None:
    paths = [path.relative_to(ROOT / name) for path in (ROOT / name).rglob("[!_]*.py")]
    tests = Path(__file__).parents[1] / name
    found = {path.stem.removeprefix("test_") for path in tests.glob("test_*.py")}
    assert found - {part for p in paths for part in (p.stem, *p.parent.parts)} == {*walks.split()}
    named = {}
    for test, stems in re.findall(r"(\S+): ([^:]*)(?= \S+:|$)", elsewhere):
        folder, _, own = test.rpartition("/")
        assert (tests / folder / f"test_{own}.py").exists(), test
        named |= dict.fromkeys(stems.split(), test)
    assert {p.stem for p in paths if not {p.stem, *p.parent.parts} & found} == named.keys()


def test_rooms_are_within_their_budgets() -> None:
    lines = {module: path.read_text().count("\n") for module, path in MODULES.items()}
    for names, budget in BUDGETS.items():
        found = sum(n for module, n in lines.items() if room(module) in names)
        assert found <= budget, (
            f"{', '.join(names)} have {found} lines, and {budget} by BUDGETS of {__file__}: take "
            f"{found - budget} back there, or raise the number, with the reason in the commit"
        )


def test_the_engine_is_read_in_a_day() -> None:
    lines = {module: path.read_text().count("\n") for module, path in MODULES.items()}
    read = {m for m in lines if room(m) in ("tape", "interpreters")}
    read |= {f"wengert.{name}" for name in READING}
    found = sum(lines[module] for module in read)
    assert found <= DAY, f"{found} lines of the engine, and {DAY} by DAY of {__file__}"


def test_no_file_is_long() -> None:
    lines = {module: path.read_text().count("\n") for module, path in MODULES.items()}
    most = {module: LARGEST_OF.get(f"{module}..".split(".")[1], LARGEST) for module in lines}
    assert not [(module, n) for module, n in lines.items() if n > most[module]]


#: A Tensor's slots, which the whole package reads: users have properties of these names.
SLOTS = {"_array", "_grad", "_node"}


def private(tree: ast.AST) -> tuple[set[str], set[str]]:
    """The private names that a file defines, and those that it uses of others."""
    own, used = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Attribute):
            mine = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            (own if mine and isinstance(node.ctx, ast.Store) else used).add(node.attr)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("wengert"):
            used |= {alias.name for alias in node.names}
    return own, {name for name in used if name[0] == "_" and name[:2] != "__"}


@pytest.mark.slow
def test_rooms_keep_private_names_to_themselves() -> None:
    homes: dict[str, set[str]] = {}
    uses: list[tuple[str, str]] = []
    for module, path in MODULES.items():
        own, used = private(parsed(path))
        for name in own:
            homes.setdefault(name, set()).add(room(module))
        uses += [(module, name) for name in used - SLOTS]
    assert [
        (module, name) for module, name in uses if name in homes and room(module) not in homes[name]
    ] == []


@pytest.mark.slow
def test_what_compares_with_another_library_is_marked() -> None:
    """CI runs tests of the marker `oracle` where PyTorch and JAX are installed, and no others."""
    ways = 'importorskip("torch")', 'importorskip("jax")', "import torch", "import jax"
    lacking = []
    for path in sorted(Path(__file__).parents[1].rglob("test_*.py")):
        text = path.read_text()
        whole = "mark.oracle" in text.partition("pytestmark")[2].partition("\n\n")[0]
        fixtures = {
            node.name
            for node in parsed(path).body
            if isinstance(node, ast.FunctionDef) and "fixture" in ast.unparse(node.decorator_list)
            if any(way in ast.unparse(node).replace("'", '"') for way in ways)
        }
        for test in parsed(path).body if not whole else ():
            if isinstance(test, ast.FunctionDef) and test.name.startswith("test"):
                marks = "".join(map(ast.unparse, test.decorator_list))
                steps = [
                    ast.unparse(step).replace("'", '"')
                    for step in test.body
                    if not isinstance(step, ast.If | ast.For | ast.With | ast.FunctionDef)
                ]
                asked = any(way in step for way in ways for step in steps)
                asked = asked or bool(fixtures & {argument.arg for argument in test.args.args})
                if asked and "mark.oracle" not in marks:
                    lacking.append(f"{path.name}::{test.name}")
    assert not lacking


def test_functions_are_named_by_verbs_or_nouns() -> None:
    wrong = []
    for module, path in MODULES.items():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef):
                name = node.name.strip("_")
                participle = name in PARTICIPLES or (name.isalpha() and name.endswith("ed"))
                if participle and name not in NAMED:
                    wrong.append(f"{module}.{node.name}")
    assert not wrong
