"""Graph breaks are found, named by the program's line, and judged."""

import copy
import inspect
import math
import pickle
import sysconfig
import threading
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import operation
from tests.inspection.test_differentiable import leaf, number
from wengert.func.forward import jvp
from wengert.tape.observers import observing
from wengert.tape.tensor import Tensor
from wengert.testing import graph_breaks

pytestmark = pytest.mark.filterwarnings("ignore:Converting a tensor", "ignore:To copy construct")


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


PERCENT = "%.3f"

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
    "asarray": (lambda: swallow(np.asarray, leaf(1.0)), "array", "array"),
    "dlpack": (lambda: swallow(leaf(1.0).__dlpack__), "array", "dlpack"),
    "array": (lambda: leaf(1.0).array, "array", "array"),
    "detach": (lambda: leaf(1.0).detach(), "detach", "detach"),
    "tensor": (lambda: wg.tensor(leaf(1.0)), "copy", "tensor"),
    "deepcopy": (lambda: copy.deepcopy(leaf(1.0)), "copy", "deepcopy"),
    "deepcopy of a result": (lambda: swallow(copy.deepcopy, leaf(1.0) * 2), "copy", "deepcopy"),
    "pickle": (lambda: pickle.dumps(leaf(1.0)), "copy", "reduce"),
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
    "np.round": (lambda: np.round(leaf(1.0)), "zero", "round"),
    "np.around": (lambda: np.around(leaf(1.0), 2), "zero", "round"),
    "np.rint": (lambda: np.rint(leaf(1.0)), "zero", "round"),
    "np.fix": (lambda: np.fix(leaf(1.0)), "zero", "trunc"),
    "np.sign": (lambda: np.sign(leaf(1.0)), "zero", "sign"),
    "np.heaviside": (lambda: np.heaviside(leaf(1.0), 0.5), "zero", "sign"),
    "np.astype": (lambda: np.astype(leaf(1.0), np.int32), "cast", "astype"),
    "np.divmod": (lambda: np.divmod(leaf(1.0), 2), "zero", "floor_divide"),
    "divmod": (lambda: divmod(leaf(1.0), 2), "zero", "floor_divide"),
    "divmod from the right": (lambda: divmod(2, leaf(1.0)), "zero", "floor_divide"),
    "in": (lambda: 1.0 in leaf(1.0), "branch", "bool"),
    "percent": (lambda: PERCENT % number(), "number", "float"),
    "wg.from_dlpack": (lambda: swallow(wg.from_dlpack, leaf(1.0)), "array", "dlpack"),
    "iteration": (lambda: [float(one) for one in leaf(1.0)], "number", "float"),
    "nextafter": (lambda: wg.nextafter(leaf(1.0), leaf(2.0)), "undefined", "nextafter"),
    "unique_values": (lambda: wg.unique_values(leaf(1.0)), "undefined", "unique_values"),
    "np.array of a list": (lambda: swallow(np.array, [number()]), "array", "array"),
    "np.fromiter": (lambda: np.fromiter(leaf(1.0), float), "number", "float"),
    "the larger": (lambda: max(number(), number()), "branch", "bool"),
}


def test_breaks_can_be_counted() -> None:
    with graph_breaks() as breaks:
        for _ in range(2):
            float(number())
    assert len(breaks) >= 1
    assert len({*breaks, *copy.deepcopy([*breaks])}) == len({*breaks})
    with pytest.raises(FrozenInstanceError):
        breaks[0].kind = "branch"


def test_a_list_of_tensors_stays_tracked() -> None:
    with graph_breaks() as breaks:
        wg.asarray([number(), 1.0])
        wg.tensor([number(), 1.0])
    assert not breaks


def test_what_a_transform_refuses_is_named_too() -> None:
    def f(x: Tensor) -> Tensor:
        return x * math.sin(x)

    with graph_breaks() as breaks, pytest.raises(RuntimeError, match="becomes a Python number"):
        wg.grad(f)(1.0)
    assert [(one.kind, one.operation) for one in breaks] == [("number", "float")]
    with pytest.raises(wg.testing.GraphBreakError, match="failed where it would have lost track"):
        wg.testing.assert_differentiable(wg.grad(f), wg.asarray(1.0))


@pytest.mark.whole
@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_break_is_named_with_its_line(
    name: str, backend: Any, pytestconfig: pytest.Config
) -> None:
    if name == "wg.from_dlpack" and pytestconfig.getoption("simulated_cupy"):
        pytest.skip("the simulation has no memory to share")
    run, kind, operation = CASES[name]
    with graph_breaks() as breaks:
        run()
    found = [(one.kind, one.operation) for one in breaks]
    assert found == [(kind, operation)]
    one = breaks[0]
    assert Path(one.filename) == Path(__file__)
    # The line is that of the lambda, or of the function that it calls.
    called = [run, *(globals()[n] for n in run.__code__.co_names if n in globals())]
    spans = [inspect.getsourcelines(x) for x in called if inspect.isfunction(x)]
    assert any(first <= one.line < first + len(lines) for lines, first in spans)
    assert one.lost == (kind != "branch")


def test_what_shows_values_is_no_break(backend: Any) -> None:
    x = leaf(1.0, 2.0)
    with graph_breaks() as breaks:
        print(x, repr(x), f"{wg.sum(x):.2f}", x.shape, x.dtype, len(x), x.grad)
        y = wg.where(x > 1, x, 2 * x)
        z = wg.take(x, wg.argmax(x)[None]) + x[int(wg.argmin(x))]
        wg.sum(y + z).backward()
    assert len(breaks) == 0
    assert repr(breaks) == "no graph breaks"


def test_what_is_right_within_a_function_of_numpys_is_no_break() -> None:
    x = leaf(1.0, 2.0)
    with graph_breaks() as breaks:
        np.cbrt(x), np.quantile(x, 0.3), np.unique(x), np.interp(x, [0, 3], [1, 5])
        np.any(x), np.nan_to_num(x), x.bool()
    assert not breaks


def test_a_result_that_a_function_declares_without_derivative_is_no_break() -> None:
    def sign(ctx: Any, x: Tensor) -> Tensor:
        found = wg.sign(x)
        ctx.mark_non_differentiable(found)
        return found

    with graph_breaks() as breaks:
        operation(sign)(leaf(1.0, 2.0))
    assert not breaks


def test_what_does_not_require_grad_is_not_looked_at(backend: Any) -> None:
    x = wg.asarray([1.0, 2.0])
    with graph_breaks() as breaks:
        float(x[0])
        wg.floor(x)
        x.numpy()
        if wg.any(x > 1):
            pass
    assert not breaks


def test_the_report_names_the_line() -> None:
    radius = wg.tensor(3.0, requires_grad=True)
    with graph_breaks() as breaks:
        area = 3.14 * radius.item() ** 2
    line = inspect.currentframe().f_lineno - 1
    assert area == pytest.approx(28.26)
    where = f"{Path(__file__).relative_to(Path.cwd())}:{line}, in test_the_report_names_the_line"
    assert repr(breaks) == "\n    ".join(
        [
            f"{where}: a Tensor became a Python number: item",
            "area = 3.14 * radius.item() ** 2",
            "help: compute with the Tensor itself",
        ]
    )


def test_a_line_that_runs_again_is_counted() -> None:
    x = leaf(1.0, 2.0, 3.0)
    with graph_breaks() as breaks:
        total = sum(float(one) for one in x)
    assert total == 6
    assert [one.count for one in breaks] == [3]
    assert "(3 times)" in str(breaks[0])
    with graph_breaks() as breaks:
        total = sum(float(one) for one in x[:2])
        total += float(x[2])
    assert total == 6
    assert [one.count for one in breaks] == [2, 1]
    assert "(2 times)" in str(breaks[0])
    assert " times)" not in str(breaks[1])


# -- it leaves no trace ----------------------------------------------------------------------------


def test_nobody_is_told_afterwards() -> None:
    with graph_breaks():
        with graph_breaks():
            assert len(observing) == 2
        assert len(observing) == 1
    with pytest.raises(ZeroDivisionError), graph_breaks():
        raise ZeroDivisionError
    assert not observing


def test_another_thread_is_not_looked_at() -> None:
    x = number()
    seen: list[Any] = []

    def work() -> None:
        seen.append(x.item())
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
    assert not observing


# -- forward mode ----------------------------------------------------------------------------------


def test_in_forward_mode(backend: Any) -> None:
    def f(x: Tensor) -> Tensor:
        if x[0] > 1:
            x.detach()
        return wg.sum(wg.floor(x) + x * x)

    x = wg.asarray([1.5, 2.5])
    with graph_breaks() as breaks:
        jvp(f, (x,), (wg.ones_like(x),))
    assert [one.kind for one in breaks] == ["branch", "detach", "zero"]
    assert [one.function for one in breaks] == ["f"] * 3


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", ["grad", "jacrev", "jacfwd", "jacobian", "hessian"])
def test_in_transforms(name: str, requires_grad: bool) -> None:
    """Whatever their argument is outside: it is differentiated inside."""
    x = wg.tensor([1.5, 2.5], requires_grad=requires_grad)
    with graph_breaks() as breaks:
        getattr(wg.func, name)(lambda x: wg.sum(wg.floor(x) + x * x))(x)
    assert [one.kind for one in breaks] == ["zero"]


def test_a_read_is_the_doing_of_the_function_that_the_package_calls() -> None:
    x = leaf(1.0)
    with graph_breaks() as found:
        wg.enable_grad()(lambda: x.array)()
    assert [(each.kind, each.operation) for each in found] == [("array", "array")]


def test_what_is_watched_is_done_as_without() -> None:
    with graph_breaks():
        x = held = wg.ones(2)
        x += 1
        x[0] = 5.0
    assert x is held and x.tolist() == [5.0, 2.0]


def test_a_library_that_checks_an_argument_makes_no_break() -> None:
    library: dict[str, Any] = {}
    text = "def checked(x):\n    return x if x > 0 else -x\n"
    exec(compile(text, str(Path(sysconfig.get_path("stdlib"), "checks.py")), "exec"), library)
    with graph_breaks() as breaks:
        library["checked"](leaf(2.0))
    assert not breaks
