"""Pictures of graphs: what their text says, for Graphviz is not needed to check it."""

import html
import importlib.util
import math
import re
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import operation
from tests.scripts import load
from wengert.inspection.drawing import SIGNS, draw, to_dot
from wengert.tape.observers import observing
from wengert.tape.primitive import PRIMITIVES
from wengert.tape.tensor import Tensor

ROOT = Path(__file__).parents[2]

STRING = r'"((?:[^"\\]|\\.)*)"'
NODE = re.compile(rf"(\w+) \[label={STRING}, (.*)\];")
EDGE = re.compile(rf'(\w+) -> (\w+)(?: \[label={STRING}, fontcolor="#b03060"\]|( \[style=.*\]))?;')
FRAME = re.compile(rf"subgraph {STRING} {{")
LABEL = re.compile(rf"label={STRING}; graph \[.*\];")


class Box(NamedTuple):
    lines: list[str]
    style: str
    frames: tuple[str, ...]


class Parsed(NamedTuple):
    """The picture: boxes by their keys, edges with their labels, titles of frames."""

    boxes: dict[str, Box]
    edges: list[tuple[str, str, str | None]]
    frames: dict[str, str]

    def titled(self, title: str) -> Box:
        (found,) = [box for box in self.boxes.values() if box.lines[0] == title]
        return found

    def between(self) -> dict[tuple[str, str], str | None]:
        """Labels of the edges, by the titles of their ends."""
        return {
            (self.boxes[a].lines[0], self.boxes[b].lines[0]): label for a, b, label in self.edges
        }


def unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text)


def parse(text: str) -> Parsed:
    """Read all that `to_dot` writes; anything else fails."""
    lines = text.splitlines()
    assert lines[0] == "digraph {"
    assert lines[-1] == "}"
    assert lines[1].startswith("  rankdir=")
    assert [line.split()[0] for line in lines[2:4]] == ["node", "edge"]
    boxes: dict[str, Box] = {}
    edges: list[tuple[str, str, str | None]] = []
    titles: dict[str, str] = {}
    frames: list[str] = []
    for line in map(str.strip, lines[4:-1]):
        if match := NODE.fullmatch(line):
            assert match[1] not in boxes
            boxes[match[1]] = Box(unquoted(match[2]).split("\n"), match[3], tuple(frames))
        elif match := EDGE.fullmatch(line):
            label = None if match[3] is None else unquoted(match[3])
            assert label is None or all(row[0] == " " for row in label.split("\n"))
            edges.append((match[1], match[2], label and label[1:].replace("\n ", "\n")))
        elif match := FRAME.fullmatch(line):
            frames.append(match[1])
        elif match := LABEL.fullmatch(line):
            titles[frames[-1]] = match[1]
        else:
            assert line == "}", line
            frames.pop()
    assert not frames
    assert all(end in boxes for a, b, _ in edges for end in (a, b))
    return Parsed(boxes, edges, titles)


def drawn(*args: Any, **options: Any) -> Parsed:
    return parse(to_dot(*args, **options))


def leaves() -> list[Tensor]:
    return [wg.tensor(x, requires_grad=True) for x in (2.0, 0.5, -1.0, 3.0, 0.25)]


def neurons(a: Any, w1: Any, w2: Any, w3: Any, w4: Any) -> dict[str, Tensor]:
    b = w1 * a
    c = w2 * a
    p = w3 * b
    q = w4 * c
    d = p + q
    return {"b": b, "c": c, "p": p, "q": q, "d": d, "L": 10 - d}


def test_five_neurons(backend: Any) -> None:
    picture = drawn(neurons, *leaves(), values=True, gradients=True)
    lines = {box.lines[0]: box.lines[1:] for box in picture.boxes.values()}
    # w1 a = 1, w2 a = -2, w3 b = 3, w4 c = -0.5
    values = {"a": 2, "w1": 0.5, "w2": -1, "w3": 3, "w4": 0.25}
    values |= {"b: ×": 1, "c: ×": -2, "p: ×": 3, "q: ×": -0.5, "d: +": 2.5, "L: -": 7.5}
    assert lines == {name: ["() float32", f"{value:g}"] for name, value in values.items()}
    # The cotangent of each value, in its part that comes along the edge: dL/dd = -1.
    assert picture.between() == {
        ("d: +", "L: -"): "-1",
        ("p: ×", "d: +"): "-1",
        ("q: ×", "d: +"): "-1",
        ("w3", "p: ×"): "-1",  # -b
        ("b: ×", "p: ×"): "-3",  # -w3
        ("w4", "q: ×"): "2",  # -c
        ("c: ×", "q: ×"): "-0.25",  # -w4
        ("w1", "b: ×"): "-6",  # -w3 a
        ("a", "b: ×"): "-1.5",  # -w3 w1
        ("w2", "c: ×"): "-0.5",  # -w4 a
        ("a", "c: ×"): "0.25",  # -w4 w2
    }
    styles = {box.lines[0]: box.style.partition(",")[0] for box in picture.boxes.values()}
    assert {name for name, style in styles.items() if style == "shape=box"} == {
        "a", "w1", "w2", "w3", "w4"
    }  # fmt: skip


def test_local_derivatives_multiply_along_paths_and_add_up(backend: Any) -> None:
    given = leaves()
    edges = drawn(neurons, *given, gradients="local").between()
    neurons(*given)["L"].backward()

    def gradient(title: str) -> float:
        if title == "L: -":
            return 1.0
        return sum(float(label) * gradient(b) for (a, b), label in edges.items() if a == title)

    for name, leaf in zip(("a", "w1", "w2", "w3", "w4"), given, strict=True):
        assert gradient(name) == pytest.approx(leaf.grad.item())


def test_what_arrives_at_a_leaf_is_its_gradient(backend: Any) -> None:
    x = wg.tensor([0.5, 2.0], requires_grad=True)

    def f(x: Tensor) -> Tensor:
        return wg.sum(wg.exp(x) * x + wg.flip(x))

    edges = drawn(f, x, gradients=True)
    arrived = sum(
        np.array([float(n) for n in label.strip("[]").split(", ")])
        for a, _, label in edges.edges
        if edges.boxes[a].lines[0] == "x"
    )
    f(x).backward()
    np.testing.assert_allclose(arrived, x.grad.tolist(), rtol=1e-3)  # four digits are written


def test_drawing_changes_nothing() -> None:
    given = leaves()
    loss = neurons(*given)["L"]
    assert len({to_dot(loss, gradients=True, values=True) for _ in range(2)}) == 1
    assert all(leaf.grad is None for leaf in given)
    loss.backward()
    assert given[0].grad is not None
    assert not observing


def test_a_loss_that_was_computed_before(backend: Any) -> None:
    """Names come from `names`; values from leaves, names, the result, and what rules saved."""
    x, w = wg.tensor([1.0, 2.0], requires_grad=True), wg.tensor([3.0, 4.0], requires_grad=True)
    product = x * w
    loss = wg.sum(wg.exp(product) + product)
    picture = drawn(loss, names={"x": x, "product": product}, values=True, shapes=False)
    found = {box.lines[0]: box.lines[1:] for box in picture.boxes.values()}
    e = [math.exp(3), math.exp(8)]
    assert found == {
        "x": ["[1, 2]"],
        "leaf": ["[3, 4]"],
        "product: ×": ["[3, 8]"],
        "exp": [f"[{e[0]:.4g}, {e[1]:.4g}]"],
        "+": [],  # nobody has kept it
        "sum": [f"{sum(e) + 11:.4g}"],
    }
    assert picture.titled("sum").style.startswith('shape=ellipse, style=filled, fillcolor="#fbe6c2')


def test_signs_are_of_operations() -> None:
    x, y = (wg.ones((2, 2), requires_grad=True) for _ in "xy")
    for row in [PRIMITIVES[name] for name in SIGNS]:
        out = getattr(wg, row.name)(*(x, y)[: len(row.inputs)])
        assert drawn(out).titled(SIGNS[row.name])


def test_modules_have_frames(backend: Any) -> None:
    nn = wg.nn
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 3), nn.Tanh()))
    picture = drawn(net, wg.ones((2, 4)), gradients=True)
    kinds = {"0": "Linear", "1": "ReLU", "2": "Sequential", "2.0": "Linear", "2.1": "Tanh"}
    titles = {f"cluster {name}": f"{name}: {kind}" for name, kind in kinds.items()}
    assert picture.frames == {"cluster ": "Sequential", **titles}
    for title, frames in {
        "0.weight": ("cluster ", "cluster 0"),
        "2.0.bias": ("cluster ", "cluster 2", "cluster 2.0"),
        "relu": ("cluster ", "cluster 1"),
        "tanh": ("cluster ", "cluster 2", "cluster 2.1"),
        "x": (),
    }.items():
        assert picture.titled(title).frames == frames
    assert picture.titled("x").style.startswith('shape=box, style="rounded,dashed"')


def test_a_function_of_a_module(backend: Any) -> None:
    class Gate(wg.nn.Module):
        def __init__(self) -> None:
            self.scale = wg.nn.Parameter(wg.ones(3))
            self.inner = wg.nn.Tanh()

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(self.scale * x) + 1

    gate = Gate()
    y = wg.zeros(3)
    picture = drawn(
        lambda x: wg.sum((gate(x) - y) ** 2), wg.ones(3), module=gate, names={"target": y}
    )
    assert picture.titled("scale").frames == ("cluster ",)
    assert picture.titled("×").frames == ("cluster ",)
    assert picture.titled("tanh").frames == ("cluster ", "cluster inner")
    assert picture.titled("+").frames == ("cluster ",)
    assert picture.titled("-").frames == picture.titled("sum").frames == ()
    assert ("target", "-") in picture.between()
    assert picture.frames == {"cluster ": "Gate", "cluster inner": "inner: Tanh"}
    # Of a loss that was computed before, the names alone are known.
    later = drawn(wg.sum(gate(wg.ones(3))), module=gate)
    assert later.frames == {}
    assert later.titled("scale").frames == ()


def test_modules_are_as_before_afterwards() -> None:
    net = wg.nn.Sequential(wg.nn.Linear(2, 2), wg.nn.Tanh())
    own = net[1].forward
    vars(net[1])["forward"] = own  # somebody else's
    to_dot(net, wg.ones((1, 2)))
    assert "forward" not in vars(net)
    assert "forward" not in vars(net[0])
    assert vars(net[1])["forward"] is own
    with pytest.raises(RuntimeError):
        to_dot(net, wg.ones((1, 3)))
    assert "forward" not in vars(net[0])
    assert vars(net[1])["forward"] is own
    assert not observing


def test_long_chains_do_not_recurse() -> None:
    x = wg.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(3 * sys.getrecursionlimit()):
        y = y * 1
    assert len(drawn(y, gradients=True).edges) == 3 * sys.getrecursionlimit()


def test_misuse() -> None:
    x = wg.tensor(1.0, requires_grad=True)
    y = x * x
    calls: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((wg.tensor(1.0),), {}, r"shape \(\) does not require grad"),
        ((1.0,), {}, "and not float"),
        ((lambda x: 3, x), {}, "and not int"),
        (([],), {}, "empty"),
        ((y, x), {}, "arguments are for a function"),
        ((y,), {"names": {"x": np.ones(1)}}, r"names\['x'\] should be a Tensor, not ndarray"),
        ((y,), {"gradients": "all"}, "'local' or 'total', not 'all'"),
        ((y,), {"direction": "down"}, "direction should be"),
    ]
    for given, options, message in calls:
        with pytest.raises((RuntimeError, TypeError, ValueError), match=message):
            to_dot(*given, **options)
    y.backward()
    with pytest.raises(RuntimeError, match="Draw the graph before"):
        to_dot(y, gradients=True)
    assert "×" in to_dot(y, values=True)


def test_draw_gives_graphvizs_object(monkeypatch: pytest.MonkeyPatch) -> None:
    graphviz = pytest.importorskip("graphviz")
    x = wg.tensor(1.0, requires_grad=True)
    y = x * 2
    picture = draw(y, names={"x": x}, gradients=True, direction="LR")
    assert isinstance(picture, graphviz.Source)
    assert picture.source == to_dot(y, names={"x": x}, gradients=True, direction="LR")
    monkeypatch.setitem(sys.modules, "graphviz", None)
    with pytest.raises(ImportError, match=r"install wengert\[draw\]"):
        draw(y)
    assert "digraph" in to_dot(y)


def test_names_are_quoted() -> None:
    x = wg.tensor(1.0, requires_grad=True)
    name = 'the "first"\\second'
    assert drawn(x * 2, names={name: x}).titled(name)


def test_the_example_and_the_pictures_of_the_documentation(tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("graphviz")
    example = load("examples", "drawn_graph")
    with wg.use_backend("numpy"):
        files = example.main(["--output", str(tmp_path)])
        texts = {
            "gradients": to_dot(example.neurons, *leaves(), values=True, gradients=True),
            "local": to_dot(example.neurons, *leaves(), values=True, gradients="local"),
        }
    out = capsys.readouterr().out
    # By hand: dL/dw4 = -c, dL/dw3 = -b, dL/dw2 = -w4 a, dL/dw1 = -w3 a, dL/da = -(w3 w1 + w4 w2).
    for name, gradient in {"a": -1.25, "w1": -6, "w2": -0.5, "w3": -1, "w4": 2}.items():
        assert f"dL/d{name} = {gradient:g}\n" in out
    assert [file.stem for file in files] == ["gradients", "local", "modules"]
    assert all(file.stat().st_size > 1000 for file in files)
    for name, text in texts.items():
        svg = (ROOT / f"docs/pictures/{name}.svg").read_text(encoding="utf-8")
        picture = parse(text)
        shown = [html.unescape(t).strip() for t in re.findall(r"<text .*?>(.*?)</text>", svg)]
        expected = [line for box in picture.boxes.values() for line in box.lines]
        expected += [label for *_, label in picture.edges]
        assert sorted(shown) == sorted(expected)


@pytest.mark.skipif(importlib.util.find_spec("graphviz") is None, reason="needs graphviz")
def test_notebooks_show_the_text_where_no_picture_can_be_made(monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")  # where no program is found
    x = wg.ones(2, requires_grad=True)
    y = x * 2 + x
    picture = draw(y)
    shown = picture._repr_mimebundle_()
    assert shown["text/plain"] == picture.source == to_dot(y)
    assert html.unescape(shown["text/html"]) == f"<pre>{picture.source}</pre>"


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz's program")
def test_notebooks_show_a_picture() -> None:
    net = wg.nn.Sequential(wg.nn.Linear(4, 3), wg.nn.Tanh())
    picture = draw(net, wg.ones((2, 4)), values=True, gradients=True)
    shown = picture._repr_mimebundle_(include=["image/svg+xml"])["image/svg+xml"]
    assert "<svg" in shown and "1: Tanh" in shown


def test_a_path_that_a_rule_of_ones_own_cuts() -> None:
    first = operation(
        lambda ctx, x, y: wg.tensor(x.detach().numpy() + y.detach().numpy()),
        lambda ctx, g: (g, None),
    )
    x, y = wg.tensor(3.0, requires_grad=True), wg.tensor(2.0, requires_grad=True)
    edges = drawn(first(x * 2, y * 5), gradients=True).edges
    assert sorted(label or "" for *_, label in edges) == ["", "", "1", "2"]
