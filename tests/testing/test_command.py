"""``python -m wengert check``: what it checks, what it tells, and how it exits."""

import sys

import numpy as np
import pytest

import wengert as wg
from tests.scripts import python
from tests.testing.functions import of_array
from wengert.testing import Argument, Axis, command
from wengert.testing.checkup import Examination, Line, _batches, _differences
from wengert.testing.command import main
from wengert.testing.command import text as report
from wengert.testing.targets import Target, UnusableError, find, shape_of

USERS = '''
"""A user's module."""
from typing import Annotated, Literal

import numpy as np

import wengert as wg
from wengert.testing import Argument, check_gradients
from numpy import sin  # not this module's own


def right(x, y):
    return x * wg.sin(y)


def product(first, second):
    return first @ second @ wg.ones((second.shape[1], 1))


def by_trial(a, b):
    return wg.linalg.inv(a + 8 * wg.eye(a.shape[0], dtype=a.dtype)) @ b[0]


def annotated(
    p: Annotated[wg.Tensor, Argument(("n",), domain=(0.5, 1))], rate: float,
    mode: Literal["log", "exp"], axis: int, dim: int, times: int, extra=3,
):
    return getattr(wg, mode)(p) * rate * extra * times + p.shape[axis] + p.shape[dim]


def wrong(x):
    return x * x.detach()


def configured(x, config: str):
    return x


def nothing():
    return 1


class Layer(wg.nn.Module):
    def forward(self, x):
        return x


layer = wg.nn.Tanh()


@check_gradients(Argument(("n",), domain=(0.5, 2)))
def test_log(x):
    return wg.log(x)


def _private(x):
    return x
'''


@pytest.fixture
def project(tmp_path, monkeypatch):
    name = f"users_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(USERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name, tmp_path / f"{name}.py"
    sys.modules.pop(name, None)


def test_the_functions_of_a_module_and_their_inputs(project):
    name, _ = project
    found = {target.name: target for target in find(name, [])}
    assert [*found] == [
        *("right", "product", "by_trial", "annotated", "wrong", "configured", "nothing"),
        *("Layer", "layer", "test_log"),
    ]
    assert found["right"].arguments == [Argument((...,)), Argument((...,))]
    assert found["right"].source == "shapes by trial: (...,), (...,)"
    assert found["by_trial"].arguments == [Argument(("n", "n")), Argument(("n", "n"))]
    assert "shapes by trial: (n, n), (n, n)" in found["by_trial"].source
    assert found["annotated"].arguments[:2] == [Argument(("n",), domain=(0.5, 1)), Argument(())]
    assert found["annotated"].arguments[3:5] == [Axis(0), Axis(0)]
    assert not isinstance(found["annotated"].arguments[5], Axis)
    assert found["annotated"].source == "its annotations"
    assert "'config'" in found["configured"].why_not
    assert "no arguments" in found["nothing"].why_not
    assert "class of modules" in found["Layer"].why_not
    assert found["test_log"].source == "its check_gradients declaration"
    assert list(found["test_log"].arguments) == [Argument(("n",), domain=(0.5, 2))]


def test_layouts_are_found_by_trial(tmp_path, monkeypatch):
    code = "def number(x):\n    if x.ndim:\n        raise ValueError\n    return x * x\n"
    code += "def rows(x, y):\n    if (x.ndim, y.ndim) != (2, 1):\n        raise ValueError\n"
    code += "    return (x.mT * y).mT\n"
    (tmp_path / "of_layouts.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = {target.name: target.arguments for target in find("of_layouts", [])}
    sys.modules.pop("of_layouts")
    shapes = {name: [one.shape for one in arguments] for name, arguments in found.items()}
    assert shapes == {"number": [()], "rows": [("n", "m"), ("n",)]}


def test_shapes_from_the_command_line(project):
    name, _ = project
    assert [shape_of(text) for text in ("2,n", "...,k", "", "(3,)")] == [
        (2, "n"),
        (..., "k"),
        (),
        (3,),
    ]
    for text in ("2;3", "n,...", "-1"):
        with pytest.raises((ValueError, TypeError)):
            shape_of(text)
    (target,) = find(f"{name}:configured", [(2,), ("n",)])
    assert target.arguments == [Argument((2,)), Argument(("n",))]
    (target,) = find(f"{name}:configured", [(2,)])
    assert "takes 2 arguments, and --shape was given 1 times" in target.why_not


def test_what_is_not_there_is_usage(project, capsys):
    name, path = project
    path.with_name("empty_here.py").write_text("from math import sin\n\nX = 1\n")
    for spec, text in [
        ("no_such_module_at_all", "there is no module"),
        (f"{name}:rigth", "did you mean right?"),
        (f"{name}:__doc__", "cannot be called"),
        (str(path.with_name("other.py")), "there is no file"),
        ("empty_here", "no public functions of its own"),
    ]:
        with pytest.raises(UnusableError, match=text.replace("?", r"\?")):
            find(spec, [])
        assert main([spec]) == 2
        assert text in capsys.readouterr().err
    path.with_name("broken_here.py").write_text("import no_such_library\n")
    with pytest.raises(UnusableError, match=r"cannot be imported: .*no_such_library"):
        find("broken_here", [])
    assert main([f"{name}:right", "--backend", "nosuch"]) == 2
    assert "there is no backend 'nosuch'" in capsys.readouterr().err
    for options in ([], [name, "--examples", "0"], [name, "--shape", "2;3"]):
        with pytest.raises(SystemExit) as caught:
            main(options)
        assert caught.value.code == 2


@pytest.mark.parametrize(
    ("statuses", "code"),
    [(["ok"], 0), (["ok", "not checked"], 0), (["ok", "wrong"], 1), (["not checked"], 1), ([], 1)],
)
def test_what_the_status_of_the_command_says(statuses, code, monkeypatch):
    monkeypatch.setattr(command, "find", lambda target, shapes: statuses)
    monkeypatch.setattr(
        command, "examine", lambda status, **how: Examination(None, [Line("", status, "")])
    )
    monkeypatch.setattr(command, "text", lambda examination: examination.status)
    assert main(["anything"]) == code


@pytest.mark.slow
def test_a_wrong_function_is_reported(project, capsys):
    _, path = project
    assert main([f"{path}:wrong", "--examples", "5"]) == 1
    out = capsys.readouterr().out
    assert "wrong: WRONG" in out
    assert "looks:     off by a factor of 1/2" in out
    assert "a Tensor was detached" in out
    assert "0 right, 1 wrong, 0 not checked" in out


@pytest.mark.slow
def test_a_right_function_is_right_in_every_mode(project, capsys):
    name, _ = project
    assert main([f"{name}:product", "--shape", "n,m", "--shape", "m,k", "--examples", "5"]) == 0
    out = capsys.readouterr().out
    for what in (
        *("first derivative, reverse and forward, numpy", "second derivative, reverse and forward"),
        *("batches of cotangents: 5 calls", "no graph breaks"),
    ):
        assert what in out
    assert "1 right, 0 wrong, 0 not checked" in out
    assert main([f"{name}:configured"]) == 1  # nothing was checked
    assert "0 right, 0 wrong, 1 not checked" in capsys.readouterr().out


def test_details_of_several_lines_stand_below():
    target, below = Target("f", None, source="--shape"), "\n              "
    done = Examination(target, [Line("one", "wrong", "a < b\nc"), Line("x", "not checked", "&")])
    lines = f"  inputs from --shape\n  WRONG       one{below}a < b{below}c\n  not checked x: &"
    assert report(done) == f"f: WRONG\n{lines}"


@pytest.mark.slow
def test_the_command_needs_hypothesis_and_says_so():
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "from wengert.__main__ import main\nraise SystemExit(main(['check', 'math']))"
    )
    assert "wengert[testing]" in python("-c", code, code=2).stderr


@pytest.mark.slow
def test_the_command_line(project):
    _, path = project
    layer = (f"{path.name}:layer", "--examples", "2")
    assert "layer: ok" in python("-m", "wengert", "check", *layer, folder=path.parent).stdout
    assert "there is no command 'chekc'" in python("-m", "wengert", "chekc", code=2).stderr


def test_what_a_declaration_leaves_out_is_said_to_be_unchecked(tmp_path, monkeypatch):
    (tmp_path / "declared_once.py").write_text(
        "from wengert.testing import check_gradients\n"
        "@check_gradients((2, 3), order=1, dtypes=['complex128'], min_side=2)\n"
        "def square(x):\n"
        "    return x * x\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    (target,) = find("declared_once", [])
    assert target.options["order"] == 1
    assert target.options["dtypes"] == ["complex128"]
    assert target.options["min_side"] == 2
    first, second = _differences(target, ["numpy"], 2, None, [])
    assert (first.status, second.status) == ("ok", "not checked")
    assert first.what.startswith("first") and second.what.startswith("second")


def test_it_is_told_how_many_calls_were_checked():
    cube = Target("cube", lambda x: x**3, [Argument(())])
    for line in _differences(cube, ["numpy"], 8, None, []):
        assert line.details.startswith("8 calls: float64; shapes (); magnitudes ")


def test_batches_are_checked_at_smooth_points():
    x = np.asarray([0.5, -1.5])
    done = _batches(wg.sin, [(x,)] * 9)
    assert (done.status, done.details) == ("ok", "5 calls")
    assert _batches(wg.sqrt, [(x * 0,)]).status == "not checked"
    # A right derivative that fails for batches.
    broken = of_array(wg.square, lambda x, g: 2 * g * x + 0 * float(wg.sum(g)))
    assert _batches(broken, [(x,)]).status == "wrong"


@pytest.mark.slow
def test_what_ends_the_program_does_not_end_the_check(tmp_path, monkeypatch, capsys):
    """An exit with status 0 would pass for a check that has passed."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "ending.py").write_text("raise SystemExit(0)\n")
    assert main(["ending"]) == 2
    assert "ending cannot be imported: SystemExit: 0" in capsys.readouterr().err
    late = "def wrong(x):\n    return x * x.detach()\n\n\ndef leave(x):\n    raise SystemExit(0)\n"
    (tmp_path / "leaving.py").write_text(late)
    assert main(["leaving", "--examples", "5"]) == 1
    out = capsys.readouterr().out
    assert "wrong: WRONG" in out
    assert "(SystemExit: 0)" in out


def test_no_kind_of_function_is_left_out_without_a_word(tmp_path, monkeypatch, recwarn):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "kinds.py").write_text(
        "from functools import partial\n"
        "import wengert as wg\n"
        "class Cube(wg.autograd.Function):\n    pass\n"
        "def power(x, n):\n    return x**n\n"
        "cube = partial(power, n=3)\n"
        "def loss(y_pred, y_true):\n    return wg.mean((y_pred - y_true) ** 2)\n"
        "def broken(x):\n    return float(wg.sum(x)) * x\n"
        "def several(*arrays):\n    return sum(arrays)\n"
    )
    found = {target.name: target.why_not for target in find("kinds", [])}
    assert not recwarn  # of the calls on trial; those that check give them
    assert set(found) == {"Cube", "power", "cube", "loss", "broken", "several"}
    assert found["Cube"] == "it is an operation: check a function that calls Cube.apply"
    assert not found["cube"] and not found["loss"] and not found["broken"]
    assert "takes no arguments to differentiate" in found["several"]
