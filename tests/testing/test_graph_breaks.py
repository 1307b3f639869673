"""Graph breaks are found, named by the program's line, and judged."""

import copy
import dataclasses
import inspect
import math
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import watching
from wengert.func.forward import jvp
from wengert.ops import creation
from wengert.tape.checkpoint import checkpoint
from wengert.tape.function import Function
from wengert.tape.primitive import PRIMITIVES, Primitive
from wengert.tape.tensor import Tensor
from wengert.testing import GraphBreakError, assert_differentiable, graph_breaks
from wengert.testing.lineage import ZERO_IF_REAL

ROOT = Path(__file__).parents[2]


def leaf(*values: float) -> Tensor:
    return wg.tensor(list(values), requires_grad=True)


def number() -> Tensor:
    return wg.tensor(2.0, requires_grad=True)


def swallow(function: Any, *args: Any) -> None:
    """Call what raises where it would lose track, as a program that catches it does."""
    with pytest.raises((RuntimeError, BufferError, TypeError)):
        function(*args)


def under_no_grad(x: Tensor) -> None:
    with wg.no_grad():
        x * 2


def in_place_off_tape(x: Tensor) -> None:
    y = x * 1
    with wg.no_grad():
        y += 1


def branch(x: Tensor) -> None:
    if x > 1:
        pass


def branch_in_place(x: Tensor) -> None:
    y = wg.zeros(())
    y += wg.astype(x > 1, wg.float32)
    if y > 0:
        pass


def chained(x: Tensor) -> None:
    if wg.any(wg.logical_not(x > 1)):
        pass


def to_numpy_array(x: Tensor) -> None:
    np.zeros(3)[0] = x


# One line each, which the report has to name.
CASES: dict[str, tuple[Any, str, str]] = {
    "float": (lambda: float(number()), "number", "float"),
    "int": (lambda: int(number()), "number", "int"),
    "complex": (lambda: complex(number()), "number", "complex"),
    "bool": (lambda: bool(number()), "branch", "bool"),
    "item": (lambda: number().item(), "number", "item"),
    "tolist": (lambda: leaf(1.0, 2.0).tolist(), "number", "tolist"),
    "math": (lambda: math.sin(number()), "number", "float"),
    "format": (lambda: float(number()) and f"{number():.3f}", "number", "float"),
    "element of a NumPy array": (lambda: to_numpy_array(number()), "number", "float"),
    "numpy": (lambda: swallow(leaf(1.0).numpy), "array", "numpy"),
    "asarray": (lambda: swallow(np.asarray, leaf(1.0)), "array", "np.asarray"),
    "dlpack": (lambda: swallow(leaf(1.0).__dlpack__), "array", "from_dlpack"),
    "array": (lambda: leaf(1.0).array, "array", ".array"),
    "detach": (lambda: leaf(1.0).detach(), "detach", "detach"),
    "tensor": (lambda: wg.tensor(leaf(1.0)), "copy", "wg.tensor"),
    "list": (lambda: wg.asarray([number(), 1.0]), "copy", "a list of Tensors as an array"),
    "deepcopy": (lambda: copy.deepcopy(leaf(1.0)), "copy", "copy.deepcopy"),
    "deepcopy of a result": (
        lambda: swallow(copy.deepcopy, leaf(1.0) * 2),
        "copy",
        "copy.deepcopy",
    ),
    "pickle": (lambda: pickle.dumps(leaf(1.0)), "copy", "pickle or copy.copy"),
    "requires_grad": (lambda: leaf(1.0).requires_grad_(False), "flag", "requires_grad"),
    "no_grad": (lambda: under_no_grad(leaf(1.0)), "no_grad", "multiply"),
    "in place": (lambda: in_place_off_tape(leaf(1.0)), "no_grad", "add"),
    "branch": (lambda: branch(number()), "branch", "bool"),
    "branch on what was assigned": (lambda: branch_in_place(number()), "branch", "bool"),
    "branch, some operations later": (lambda: chained(leaf(1.0, 2.0)), "branch", "bool"),
    "astype": (lambda: wg.astype(leaf(1.0), wg.int32), "cast", "astype"),
    "long": (lambda: leaf(1.0).long(), "cast", "astype"),
    "to": (lambda: leaf(1.0).to(wg.int32), "cast", "astype"),
    "floor": (lambda: wg.floor(leaf(1.0)), "zero", "floor"),
    "round": (lambda: leaf(1.0).round(), "zero", "round"),
    "sign": (lambda: wg.sign(leaf(1.0)), "zero", "sign"),
    "floor_divide": (lambda: leaf(1.0) // 2, "zero", "floor_divide"),
    "np.floor": (lambda: np.floor(leaf(1.0)), "zero", "floor"),
    "nextafter": (lambda: wg.nextafter(leaf(1.0), leaf(2.0)), "undefined", "nextafter"),
    "unique_values": (lambda: wg.unique_values(leaf(1.0)), "undefined", "unique_values"),
    "NumPy's function": (lambda: swallow(np.polyfit, leaf(1.0), [1], 1), "numpy", "np.polyfit"),
    "np.array of a list": (lambda: swallow(np.array, [number()]), "array", "np.asarray"),
    "np.fromiter": (lambda: np.fromiter(leaf(1.0), float), "number", "float"),
    "into a NumPy array": (
        lambda: swallow(np.add, [1.0], leaf(1.0), np.ones(1)),
        "numpy",
        "np.add",
    ),
    "the larger": (lambda: max(number(), number()), "branch", "bool"),
    "linspace": (lambda: wg.linspace(0, number(), 3), "number", "item in wg.linspace"),
}


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_break_is_named_with_its_line(name: str, backend: Any) -> None:
    run, kind, operation = CASES[name]
    with graph_breaks() as breaks:
        run()
    found = [(one.kind, one.operation) for one in breaks]
    assert found == [(kind, operation)]
    one = breaks[0]
    assert Path(one.filename) == Path(__file__)
    # The line is that of the lambda, or of the function that it calls.
    lines, start = inspect.getsourcelines(run)
    helpers = (
        swallow,
        under_no_grad,
        in_place_off_tape,
        branch,
        branch_in_place,
        chained,
        to_numpy_array,
    )
    spans = [(start, len(lines))] + [
        (n, len(text)) for text, n in map(inspect.getsourcelines, helpers)
    ]
    assert any(first <= one.line < first + length for first, length in spans)
    assert one.source.strip() in Path(__file__).read_text()
    report = str(one)
    assert f"{Path(__file__).name}:{one.line}" in report
    assert one.what in report
    assert one.advice in report
    assert one.shape in ((), (1,), (2,))
    assert one.dtype in ("float32", "bool")


def test_what_shows_values_is_no_break(backend: Any) -> None:
    x = leaf(1.0, 2.0)
    with graph_breaks() as breaks:
        print(x, repr(x), f"{wg.sum(x):.2f}", x.shape, x.dtype, len(x), x.grad)
        y = wg.where(x > 1, x, 2 * x)
        z = wg.take(x, wg.argmax(x)[None]) + x[int(wg.argmin(x))]
        wg.sum(y + z).backward()
    assert len(breaks) == 0
    assert repr(breaks) == "no graph breaks"
    assert {one.operation for one in breaks.notes} == {"greater", "argmax", "argmin"}
    assert {one.kind for one in breaks.notes} == {"condition"}


def test_what_does_not_require_grad_is_not_looked_at(backend: Any) -> None:
    x = wg.asarray([1.0, 2.0])
    with graph_breaks() as breaks:
        float(x[0])
        wg.floor(x)
        x.numpy()
        if wg.any(x > 1):
            pass
    assert len(breaks) == 0
    assert breaks.notes == ()


def test_the_report_reads_like_a_compilers() -> None:
    radius = wg.tensor(3.0, requires_grad=True)
    with graph_breaks() as breaks:
        area = 3.14 * float(radius) ** 2
    line = inspect.currentframe().f_lineno - 1
    assert area == pytest.approx(28.26)
    margin = " " * len(str(line))
    here = Path(__file__).relative_to(Path.cwd())
    assert breaks[0].advice.startswith("compute with the Tensor itself")
    assert str(breaks[0]) == "\n".join(
        [
            "warning: a Tensor became a Python number: float",
            f"{margin}--> {here}:{line}, in test_the_report_reads_like_a_compilers",
            f"{margin} |",
            f"{line} | area = 3.14 * float(radius) ** 2",
            f"{margin} |               ^^^^^^^^^^^^^",
            f"{margin} = of float32 and shape ()",
            f"{margin} = help: {breaks[0].advice}",
        ]
    )
    assert repr(breaks[0]).startswith("<graph break: float of float32 () at ")
    assert repr(breaks) == str(breaks[0])


def test_a_long_line_is_cut_around_what_did_it() -> None:
    x = number()
    # fmt: off
    with graph_breaks() as breaks:
        y = 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + float(x) + 1 + 1 + 1 + 1  # noqa: E501
    # fmt: on
    assert y == 27
    lines = str(breaks[0]).splitlines()
    text, marks = lines[3].partition(" | ")[2], lines[4].partition(" | ")[2]
    assert text.startswith("…")
    assert text[marks.index("^") : marks.rindex("^") + 1] == "float(x)"


def test_a_line_that_runs_again_is_counted() -> None:
    x = leaf(1.0, 2.0, 3.0)
    with graph_breaks() as breaks:
        total = sum(float(one) for one in x)
    assert total == 6
    assert [one.count for one in breaks] == [3]
    assert "(3 times)" in str(breaks[0])


def test_a_sequence() -> None:
    x = leaf(1.0)
    with graph_breaks() as breaks:
        x.detach()
        wg.floor(x)
    assert [one.kind for one in breaks] == ["detach", "zero"]
    assert [one.kind for one in breaks[1:]] == ["zero"]
    assert breaks[-1] in breaks
    assert str(breaks).count("warning: ") == 2


# -- it leaves no trace ----------------------------------------------------------------------------


def methods() -> dict[str, Any]:
    return {
        **{name: vars(Tensor)[name] for name in (*watching.LEAVING, *watching.SHOWING, "_assign")},
        **{n: vars(Tensor)[n] for n in ("array", "requires_grad", "__array_ufunc__")},
        "several": vars(Primitive)["_record_several"],
        "apply": vars(Function)["apply"],
        "values": vars(creation)["_values"],
    }


def test_all_is_as_before_afterwards() -> None:
    before = methods()
    with graph_breaks():
        assert methods() != before
        with graph_breaks():
            pass
        assert methods() != before
    assert methods() == before
    with pytest.raises(ZeroDivisionError), graph_breaks():
        raise ZeroDivisionError
    assert methods() == before
    for name, module in list(sys.modules.items()):
        if name.startswith("wengert.") and module is not watching:
            assert vars(module).get("record") is not watching._recorded, name
            assert vars(module).get("untracked") is not watching._unrecorded, name


def test_a_module_that_is_imported_meanwhile_is_put_right() -> None:
    code = (
        "import sys, wengert as wg\n"
        "from wengert.testing import graph_breaks\n"
        "from wengert import watching\n"
        "from wengert.tape.primitive import record\n"
        "assert 'wengert.nn' not in sys.modules\n"
        "with graph_breaks():\n"
        "    wg.nn.functional\n"
        "    module = sys.modules['wengert.nn.functional.linear']\n"
        "    assert module.record is watching._recorded\n"
        "assert module.record is record\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_nested_blocks_both_see() -> None:
    x = number()
    with graph_breaks() as outer:
        float(x)
        with graph_breaks() as inner:
            x.detach()
    assert [one.kind for one in outer] == ["number", "detach"]
    assert [one.kind for one in inner] == ["detach"]


def test_another_thread_is_not_looked_at() -> None:
    x = number()
    seen: list[Any] = []

    def work() -> None:
        seen.append(float(x))
        with graph_breaks() as own:
            x.detach()
        seen.append([one.kind for one in own])

    with graph_breaks() as breaks:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        x.item()
    assert seen == [2.0, ["detach"]]
    assert [one.kind for one in breaks] == ["number"]
    assert not watching._undo


def test_importing_it_replaces_nothing() -> None:
    assert vars(Tensor)["item"].__name__ == "item"
    assert not hasattr(vars(Tensor)["item"], "__wrapped__")


# -- assert_differentiable -------------------------------------------------------------------------


def failure(f: Any, *args: Any, **kwargs: Any) -> GraphBreakError:
    with pytest.raises(GraphBreakError) as caught:
        assert_differentiable(f, *args, **kwargs)
    return caught.value


def test_what_is_connected_passes(backend: Any) -> None:
    assert len(assert_differentiable(lambda x, y: wg.sum(x * y), leaf(1.0), leaf(2.0))) == 0
    raw = backend.from_numpy(np.array([1.0, 2.0]))
    assert len(assert_differentiable(lambda x: wg.sum(wg.exp(x)), raw)) == 0


def test_a_number_on_the_only_path_is_an_error(backend: Any) -> None:
    def area(radius: Tensor) -> Tensor:
        return wg.asarray(math.pi * float(radius) ** 2)

    error = failure(area, wg.asarray(2.0))
    assert [(one.kind, one.inputs) for one in error.errors] == [("number", ("radius",))]
    text = str(error)
    assert text.startswith(
        "area is not differentiable: the result does not depend differentiably on radius\n\n"
        "error: a Tensor became a Python number: float"
    )
    assert "computed from radius" in text


def test_a_number_for_a_log_is_a_warning(backend: Any) -> None:
    log: list[float] = []

    def loss(x: Tensor) -> Tensor:
        value = wg.sum(x * x)
        log.append(value.item())
        return value

    breaks = assert_differentiable(loss, leaf(1.0, 2.0))
    assert log == [5.0]
    assert [one.kind for one in breaks] == ["number"]


def test_only_what_cuts_the_input_off_is_blamed() -> None:
    def f(x: Tensor, y: Tensor) -> Tensor:
        print(float(x))
        kept = wg.floor(y)
        y.detach()
        return x + kept

    error = failure(f, number(), number())
    assert [(one.operation, one.inputs) for one in error.errors] == [("floor", ("y",))]
    assert "does not depend differentiably on y" in str(error)
    assert "on x" not in str(error).partition("\n")[0]
    assert str(error).count("warning: ") == 2


@pytest.mark.parametrize(
    ("f", "kinds"),
    [
        (lambda x: wg.sum(wg.round(x)), ["zero"]),
        (lambda x: wg.sum(x.detach()) + 1, ["detach"]),
        (lambda x: wg.astype(wg.astype(x, wg.int32), wg.float32), ["cast"]),
        (lambda x: wg.where(x > 1, 1.0, 2.0), ["condition"]),
        (lambda x: wg.astype(wg.argsort(x), wg.float32), ["condition"]),
        (lambda x: wg.searchsorted(wg.asarray([0.0, 1.0]), x).to(x.dtype), ["condition"]),
        (lambda x: wg.linalg.vector_norm(wg.asarray([x[0], x[1]])), ["copy"]),
        (lambda x: wg.asarray(x.tolist()), ["number"]),
        (lambda x: wg.no_grad()(wg.exp)(x), ["no_grad"]),
        (lambda x: wg.asarray(np.sum([float(one) for one in x])), ["number"]),
        (lambda x: 3.0 if x[0] > 1 else 4.0, ["branch"]),
        (lambda x: wg.sum(wg.sign(x)) * wg.sum(wg.floor(x)), ["zero", "zero"]),
        (lambda x: wg.nextafter(x, 2 * x), ["undefined"]),
    ],
)
def test_losses_on_the_only_path(f: Any, kinds: list[str], backend: Any) -> None:
    error = failure(f, leaf(1.5, 2.5))
    assert [one.kind for one in error.errors] == kinds
    assert all(one.inputs == ("x",) for one in error.errors)


def test_beside_a_path_with_a_derivative_they_are_warnings(backend: Any) -> None:
    breaks = assert_differentiable(
        lambda x: wg.sum(x * x.detach() + wg.floor(x) + wg.copysign(x, -x)), leaf(1.5)
    )
    assert [one.kind for one in breaks] == ["detach", "zero"]


def test_what_would_fail_backward_is_an_error_beside_a_path_too() -> None:
    error = failure(lambda x: wg.sum(wg.nextafter(x, wg.ones_like(x)) + x), leaf(1.5))
    assert "can't be computed" in str(error)
    assert [one.kind for one in error.errors] == ["undefined"]


def test_an_input_that_is_not_used() -> None:
    error = failure(lambda x, unused: wg.sum(x), leaf(1.0), unused=leaf(2.0))
    assert error.errors == ()
    assert str(error).endswith("the result does not depend on unused: it is not used")


def test_a_result_that_is_no_tensor(backend: Any) -> None:
    error = failure(lambda x: x.tolist(), leaf(1.0, 2.0))
    assert "the result is no Tensor, but: float" in str(error)
    assert [one.operation for one in error.errors] == ["tolist"]


def test_one_of_several_results_has_lost_track() -> None:
    error = failure(lambda x: {"loss": wg.sum(x), "metric": wg.sum(wg.exp(x).detach())}, leaf(1.0))
    assert "result['metric'] is not tracked" in str(error)
    assert [one.kind for one in error.errors] == ["detach"]
    # A constant beside the results has never been tracked.
    assert_differentiable(lambda x: (wg.sum(x), wg.ones(3)), leaf(1.0))


def test_a_failure_where_track_would_be_lost(backend: Any) -> None:
    error = failure(lambda x: np.asarray(x) + 1, wg.asarray([1.0]))
    assert [one.operation for one in error.errors] == ["np.asarray"]
    assert isinstance(error.__cause__, RuntimeError)
    assert "failed where it would have lost track" in str(error)


def test_numpys_function_without_counterpart() -> None:
    error = failure(lambda x: np.polyfit(x, x, 1), np.ones(3))
    assert [one.operation for one in error.errors] == ["np.polyfit"]


def test_deepcopies_of_dataclasses_of_results() -> None:
    """What colour-science's users met: dataclasses.astuple copies its fields deeply."""

    @dataclasses.dataclass
    class Specification:
        J: Any
        C: Any

    def appearance(xyz: Tensor) -> Tensor:
        specification = Specification(J=wg.sum(xyz), C=wg.max(xyz))
        J, C = dataclasses.astuple(specification)
        return J + C

    error = failure(appearance, wg.asarray([0.2, 0.3]))
    (one,) = error.errors
    assert (one.kind, one.operation, one.function) == ("copy", "copy.deepcopy", "appearance")
    assert "dataclasses.astuple(specification)" in one.source
    assert one.through is not None
    assert one.through.startswith("copy:")


def test_another_error_is_the_functions_own() -> None:
    def f(x: Tensor) -> Tensor:
        float(wg.sum(x))
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        assert_differentiable(f, leaf(1.0))
    assert not watching._undo


def test_arguments_in_trees() -> None:
    @dataclasses.dataclass
    class Model:
        weight: Any
        bias: Any

    def f(model: Model, *data: Any, scale: dict[str, Any]) -> Tensor:
        return wg.sum(model.weight * data[0]) * scale["s"][0]

    arguments = (Model(np.ones(2), np.ones(2)), np.ones(2), 3, "text", None)
    error = failure(f, *arguments, scale={"s": [np.ones(())]})
    problem = "the result does not depend on model.bias: it is not used"
    assert str(error) == f"test_arguments_in_trees.<locals>.f is not differentiable: {problem}" or (
        problem in str(error) and ";" not in str(error)
    )


def test_tensors_that_require_grad_are_the_inputs() -> None:
    x, fixed = leaf(1.0), wg.asarray([2.0])
    assert_differentiable(lambda x, fixed: wg.sum(x), x, fixed)
    error = failure(lambda x, fixed: wg.sum(x), wg.asarray([1.0]), fixed)
    assert "fixed" in str(error)
    assert x.grad is None


def test_a_modules_parameters_are_inputs(backend: Any) -> None:
    class Net(wg.nn.Module):
        def __init__(self) -> None:
            self.used = wg.nn.Linear(2, 3)
            self.forgotten = wg.nn.Linear(2, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.used(x)

    error = failure(Net(), wg.ones((1, 2)))
    problems = str(error).partition("\n")[0]
    assert problems.startswith("Net is not differentiable: ")
    assert "forgotten.weight" in problems
    assert "forgotten.bias" in problems
    assert "used." not in problems.replace("forgotten.", "")
    net = wg.nn.Sequential(wg.nn.Linear(2, 3), wg.nn.Tanh(), wg.nn.Linear(3, 1))
    assert len(assert_differentiable(net, wg.ones((4, 2)))) == 0


def test_no_input_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one floating or complex array"):
        assert_differentiable(lambda n: n, 3)


def test_complex_inputs() -> None:
    z = wg.asarray([1 + 2j])
    assert_differentiable(lambda z: wg.abs(z), z)
    assert_differentiable(lambda z: wg.real(wg.sign(z)), z)  # a direction has a derivative
    assert [one.operation for one in failure(lambda z: wg.sign(wg.real(z)), z).errors] == ["sign"]


# -- what happens on purpose -----------------------------------------------------------------------


def test_inside_a_function_nothing_is_recorded_on_purpose() -> None:
    class Straight(wg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return wg.floor(x) + float(wg.sum(x)) * 0

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g

    assert len(assert_differentiable(lambda x: wg.sum(Straight.apply(x)), leaf(1.5))) == 0


def test_a_gradient_has_to_arrive() -> None:
    class Scaled(wg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, scale: Tensor) -> Tensor:
            ctx.save_for_backward(scale)
            return x * scale

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
            (scale,) = ctx.saved_tensors
            return g * scale, None

    def f(x: Tensor, scale: Tensor) -> Tensor:
        return Scaled.apply(x, scale)

    x, scale = leaf(1.5), leaf(2.0)
    text = str(failure(f, x, scale))
    assert "no gradient arrives at scale: the backward of a Function returns None" in text
    assert "arrives at x" not in text
    # Beside it another path may lead there.
    assert_differentiable(lambda x, scale: f(x, scale) + scale, x, scale)
    # A gradient that happens to be zero is one.
    assert_differentiable(lambda x: wg.sum(wg.nn.functional.relu(x)), leaf(-1.0))
    assert x.grad is None


def test_a_derivative_that_fails() -> None:
    class Forward(wg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

    error = failure(lambda x: Forward.apply(x), leaf(1.0))
    assert "its derivative fails: NotImplementedError" in str(error)
    assert isinstance(error.__cause__, NotImplementedError)


def test_in_the_backward_of_a_function_that_is_differentiated_again() -> None:
    class Squared(wg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return 2 * x.item() * g

    def slope(x: Tensor) -> Tensor:
        (g,) = wg.autograd.grad(Squared.apply(x), x, create_graph=True)
        return g

    (one,) = failure(slope, number()).errors
    assert (one.operation, one.function) == ("item", "backward")


def test_inside_a_checkpoint() -> None:
    def f(x: Tensor) -> Tensor:
        return wg.sum(wg.floor(x))

    error = failure(lambda x: checkpoint(f, x), leaf(1.5))
    assert [(one.operation, one.function) for one in error.errors] == [("floor", "f")]
    assert len(assert_differentiable(lambda x: checkpoint(wg.exp, x), leaf(1.5))) == 0


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f: wg.func.grad(f),
        lambda f: lambda x: wg.func.vjp(f, x)[1](wg.ones(())),
        lambda f: lambda x: wg.func.jvp(f, (x,), (wg.ones_like(x),)),
        lambda f: lambda x: wg.func.hvp(f, (x,), (wg.ones_like(x),)),
        lambda f: wg.func.jacfwd(f),
        lambda f: wg.func.hessian(f),
    ],
    ids=["grad", "vjp", "jvp", "hvp", "jacfwd", "hessian"],
)
def test_inside_transforms(transformed: Any, backend: Any) -> None:
    def smooth(x: Tensor) -> Tensor:
        return wg.sum(wg.exp(x) * x)

    def stepped(x: Tensor) -> Tensor:
        return wg.sum(wg.exp(wg.floor(x)))

    x = leaf(0.5, 1.5)
    assert len(assert_differentiable(transformed(smooth), x)) == 0
    error = failure(transformed(stepped), x)
    assert ("zero", "floor", "stepped") in [
        (one.kind, one.operation, one.function) for one in error.errors
    ]


def test_rules_may_compare_and_round() -> None:
    def f(x: Tensor) -> Tensor:
        y = wg.sum(wg.abs(x) * wg.maximum(x, x * x))
        (g,) = wg.autograd.grad(y, x, create_graph=True)
        return wg.sum(g)

    assert len(assert_differentiable(f, leaf(0.5, 2.0))) == 0


def test_composites_may_round_on_their_way() -> None:
    x = leaf(3.0, 1.0, 2.0)
    breaks = assert_differentiable(lambda x: wg.quantile(x, 0.3) + wg.median(x), x)
    assert len(breaks) == 0
    assert len(assert_differentiable(lambda x: np.quantile(x, 0.3), x)) == 0
    assert len(assert_differentiable(lambda x: np.interp(x, [0, 9], [0, 1]), x)) == 0


def test_in_forward_mode(backend: Any) -> None:
    def f(x: Tensor) -> Tensor:
        float(wg.sum(x))
        x.detach()
        return wg.sum(wg.floor(x) + x * x)

    x = wg.asarray([1.5, 2.5])
    with graph_breaks() as breaks:
        jvp(f, (x,), (wg.ones_like(x),))
    assert [one.kind for one in breaks] == ["number", "detach", "zero"]
    assert [one.function for one in breaks] == ["f"] * 3


def test_rules_that_give_zero_are_declared() -> None:
    """A rule of one input that gives zeros everywhere would be a break that nobody reports."""
    x = wg.tensor([0.3, -0.6, 0.9], dtype=wg.float64, requires_grad=True)
    flat = set()
    for name, primitive in PRIMITIVES.items():
        if primitive.kind != "elementwise" or len(primitive.inputs) != 1 or not primitive.rules:
            continue
        with warnings.catch_warnings():  # some of these points are outside of some domains
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                y = primitive.bind(x)
            except (TypeError, ValueError):  # it has parameters
                continue
            if y.requires_grad:
                (g,) = wg.autograd.grad(wg.sum(wg.real(y)), x, materialize_grads=True)
                if not bool(wg.any(g != 0)):
                    flat.add(name)
    declared = {n for n in flat if not any(map(callable, PRIMITIVES[n].rules.values()))}
    assert flat - declared == ZERO_IF_REAL
    assert {"floor", "ceil", "round", "trunc"} <= declared


# -- other libraries -------------------------------------------------------------------------------


def test_scipy() -> None:
    """SciPy's functions, which need the variable before they are imported."""
    pytest.importorskip("scipy")
    code = Path(__file__).with_name("scipy_breaks.py")
    done = subprocess.run(
        [sys.executable, str(code)],
        cwd=ROOT,
        env={**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["differentiable"] * 3 + ["broken"] * 3


def test_the_report_in_the_documentation_is_real(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "graph_breaks.rst").read_text(encoding="utf-8")
    program, shown = (
        textwrap.dedent(page.partition(f":caption: {caption}\n")[2].partition(end)[0])
        for caption, end in (("shapes.py", "\n.. code-block"), ("The error", "\nThe inputs are"))
    )
    (tmp_path / "shapes.py").write_text(program.lstrip(), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "shapes.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.strip() in done.stderr
    assert done.stdout == "base 12.57, height 3.00\n"
