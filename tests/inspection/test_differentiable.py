"""Functions are judged: whether their results depend differentiably on all inputs."""

import copy
import dataclasses
import math
import pickle
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import operation
from tests.scripts import ROOT, python
from wengert.func.checkpoint import checkpoint
from wengert.tape.primitive import PRIMITIVES
from wengert.tape.tensor import Tensor
from wengert.testing import GraphBreakError, assert_differentiable

pytestmark = pytest.mark.filterwarnings("ignore:Converting a tensor", "ignore:To copy construct")


def leaf(*values: float) -> Tensor:
    return wg.tensor(list(values), requires_grad=True)


def number() -> Tensor:
    return wg.tensor(2.0, requires_grad=True)


def failure(f: Any, *args: Any, **kwargs: Any) -> GraphBreakError:
    with pytest.raises(GraphBreakError) as caught:
        assert_differentiable(f, *args, **kwargs)
    return caught.value


def test_what_is_connected_passes(backend: Any) -> None:
    assert_differentiable(lambda x: (wg.sum(x), wg.ones(3)), leaf(1.0))  # a constant is no error
    assert len(assert_differentiable(lambda x, y: wg.sum(x * y), leaf(1.0), leaf(2.0))) == 0
    raw = backend.from_numpy(np.array([1.0, 2.0]))
    assert len(assert_differentiable(lambda x: wg.sum(wg.exp(x)), raw)) == 0


def test_a_number_on_the_only_path_is_an_error(backend: Any) -> None:
    def area(radius: Tensor) -> Tensor:
        return wg.asarray(math.pi * float(radius) ** 2)

    error = failure(area, wg.asarray(2.0))
    assert [one.kind for one in error.breaks] == ["number"]
    text = str(error)
    assert text.startswith(
        "area is not differentiable: the result does not depend differentiably on radius\n"
    )
    assert "in area: a Tensor became a Python number: float" in text


def test_a_number_for_a_log_is_a_warning(backend: Any) -> None:
    log: list[float] = []

    def loss(x: Tensor) -> Tensor:
        value = wg.sum(x * x)
        log.append(value.item())
        return value

    breaks = assert_differentiable(loss, leaf(1.0, 2.0))
    assert log == [5.0]
    assert [one.kind for one in breaks] == ["number"]


def test_the_input_that_is_cut_off_is_named() -> None:
    def f(x: Tensor, y: Tensor) -> Tensor:
        print(float(x))
        kept = wg.floor(y)
        y.detach()
        return x + kept

    error = failure(f, number(), number())
    assert [one.operation for one in error.breaks] == ["float", "floor", "detach"]
    assert "does not depend differentiably on y" in str(error)
    assert "on x" not in str(error).partition("\n")[0]


@pytest.mark.parametrize(
    ("f", "kinds"),
    [
        (lambda x: wg.sum(wg.round(x)), ["zero"]),
        (lambda x: wg.sum(x.detach()) + 1, ["detach"]),
        (lambda x: wg.astype(wg.astype(x, wg.int32), wg.float32), ["cast"]),
        (lambda x: wg.where(x > 1, 1.0, 2.0), []),
        (lambda x: wg.astype(wg.argsort(x), wg.float32), []),
        (lambda x: wg.searchsorted(wg.asarray([0.0, 1.0]), x).to(x.dtype), []),
        (lambda x: wg.linalg.vector_norm(wg.tensor(x)), ["copy"]),
        (lambda x: wg.asarray(x.tolist()), ["number"]),
        (lambda x: wg.no_grad()(wg.exp)(x), ["no_grad"]),
        (lambda x: wg.asarray(np.sum([float(one) for one in x])), ["number"]),
        (lambda x: 3.0 if x[0] > 1 else 4.0, ["branch"]),
        (lambda x: wg.sum(wg.sign(x)) * wg.sum(wg.floor(x)), ["zero", "zero"]),
        (lambda x: wg.nextafter(x, 2 * x), ["undefined"]),
        (lambda x: wg.asarray(x.array), ["array"]),
    ],
)
def test_losses_on_the_only_path(f: Any, kinds: list[str], backend: Any) -> None:
    error = failure(f, leaf(1.5, 2.5))
    assert [one.kind for one in error.breaks] == kinds


def test_beside_a_path_with_a_derivative_they_are_warnings(backend: Any) -> None:
    breaks = assert_differentiable(
        lambda x: wg.sum(x * x.detach() + wg.floor(x) + wg.copysign(x, -x)), leaf(1.5)
    )
    assert [one.kind for one in breaks] == ["detach", "zero"]


def test_what_would_fail_backward_is_an_error_beside_a_path_too() -> None:
    error = failure(lambda x: wg.sum(wg.nextafter(x, wg.ones_like(x)) + x), leaf(1.5))
    assert "its derivative fails: NotImplementedError" in str(error)
    assert [one.kind for one in error.breaks] == ["undefined"]


def test_an_input_that_is_not_used() -> None:
    error = failure(lambda x, unused: wg.sum(x), leaf(1.0), unused=leaf(2.0))
    assert not error.breaks
    assert str(error).endswith("the result does not depend differentiably on unused")


def test_a_result_that_is_no_tensor(backend: Any) -> None:
    error = failure(lambda x: x.tolist(), leaf(1.0, 2.0))
    assert "the result is no Tensor, but: float" in str(error)
    assert [one.operation for one in error.breaks] == ["tolist"]


def test_a_failure_where_track_would_be_lost(backend: Any) -> None:
    error = failure(lambda x: np.asarray(x) + 1, wg.asarray([1.0]))
    assert [one.operation for one in error.breaks] == ["array"]
    assert isinstance(error.__cause__, RuntimeError)
    assert "failed where it would have lost track" in str(error)


def test_numpys_function_without_counterpart() -> None:
    with pytest.raises(TypeError, match=r"np\.poly"):
        assert_differentiable(lambda x: np.poly(x), np.ones(3))


def test_arguments_in_trees() -> None:
    @dataclasses.dataclass
    class Model:
        weight: Any
        bias: Any

    def f(model: Model, *data: Any, scale: dict[str, Any]) -> Tensor:
        return wg.sum(model.weight * data[0]) * scale["s"][0]

    arguments = (Model(np.ones(2), np.ones(2)), np.ones(2), 3, "text", None)
    error = failure(f, *arguments, scale={"s": [np.ones(())]})
    problem = "the result does not depend differentiably on model.bias"
    assert str(error) == f"f is not differentiable: {problem}"


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
    assert [one.operation for one in failure(lambda z: wg.sign(wg.real(z)), z).breaks] == ["sign"]


# -- what happens on purpose -----------------------------------------------------------------------


def test_inside_a_function_nothing_is_recorded_on_purpose() -> None:
    straight = operation(lambda ctx, x: wg.floor(x) + float(wg.sum(x)) * 0, lambda ctx, g: g)
    assert len(assert_differentiable(lambda x: wg.sum(straight(x)), leaf(1.5))) == 0


def test_a_gradient_has_to_arrive() -> None:
    def forward(ctx: Any, x: Tensor, scale: Tensor) -> Tensor:
        ctx.save_for_backward(scale)
        return x * scale

    scaled = operation(forward, lambda ctx, g: (g * ctx.saved_tensors[0], None))

    def f(x: Tensor, scale: Tensor) -> Tensor:
        return scaled(x, scale)

    x, scale = leaf(1.5), leaf(2.0)
    text = str(failure(f, x, scale))
    assert "no gradient arrives at scale" in text
    assert "arrives at x" not in text
    # Beside it another path may lead there.
    assert_differentiable(lambda x, scale: f(x, scale) + scale, x, scale)
    # A gradient that happens to be zero is one.
    assert_differentiable(lambda x: wg.sum(wg.nn.functional.relu(x)), leaf(-1.0))
    assert x.grad is None


def test_a_derivative_that_fails() -> None:
    error = failure(operation(lambda ctx, x: x * 2), leaf(1.0))
    assert "its derivative fails: NotImplementedError" in str(error)
    assert isinstance(error.__cause__, NotImplementedError)


TRANSFORMED: dict[str, Any] = {
    "grad": wg.func.grad,
    "vjp": lambda f: lambda x: wg.func.vjp(f, x)[1](wg.ones(())),
    "jvp": lambda f: lambda x: wg.func.jvp(f, (x,), (wg.ones_like(x),)),
    "hvp": lambda f: lambda x: wg.func.hvp(f, (x,), (wg.ones_like(x),)),
    "jacfwd": wg.func.jacfwd,
    "hessian": wg.func.hessian,
    "checkpoint": lambda f: lambda x: checkpoint(f, x),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_inside_transforms(name: str, backend: Any) -> None:
    def smooth(x: Tensor) -> Tensor:
        return wg.sum(wg.exp(x) * x)

    def stepped(x: Tensor) -> Tensor:
        return wg.sum(wg.exp(wg.floor(x)))

    x = leaf(0.5, 1.5)
    assert len(assert_differentiable(TRANSFORMED[name](smooth), x)) == 0
    breaks = failure(TRANSFORMED[name](stepped), x).breaks
    assert ("floor", "stepped") in [(one.operation, one.function) for one in breaks]


def test_rules_may_compare_and_round() -> None:
    def f(x: Tensor) -> Tensor:
        y = wg.sum(wg.abs(x) * wg.maximum(x, x * x))
        (g,) = wg.autograd.grad(y, x, create_graph=True)
        return wg.sum(g)

    assert len(assert_differentiable(f, leaf(0.5, 2.0))) == 0


def test_rules_that_give_zero_are_declared() -> None:
    """A rule of one input that gives zeros everywhere would be a break that nobody reports."""
    x = wg.tensor([0.3, -0.6, 0.9], dtype=wg.float64, requires_grad=True)
    flat = set()
    for name, primitive in PRIMITIVES.items():
        if (
            not primitive.elementwise
            or primitive.linear
            or len(primitive.inputs) != 1
            or not primitive.rules
            or name.startswith(("quad_", "scipy_jump"))  # whose slopes are an error, or nan at 0
        ):
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
    assert flat - declared == {name for name in flat if PRIMITIVES[name].flat}
    assert {"floor", "ceil", "round", "trunc"} <= declared


# -- other libraries -------------------------------------------------------------------------------


@pytest.mark.slow
def test_scipy() -> None:
    """SciPy's functions, which need the variable before they are imported."""
    pytest.importorskip("scipy")
    done = python(Path(__file__).with_name("scipy_breaks.py"), SCIPY_ARRAY_API="1")
    assert done.stdout.split() == ["differentiable"] * 3 + ["broken"] * 2


@pytest.mark.slow
def test_the_report_in_the_documentation_is_real(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "graph_breaks.rst").read_text(encoding="utf-8")
    program, shown = (
        textwrap.dedent(page.partition(f":caption: {caption}\n")[2].partition(end)[0])
        for caption, end in (("shapes.py", "\n.. code-block"), ("The error", "\nThe inputs are"))
    )
    (tmp_path / "shapes.py").write_text(program.lstrip(), encoding="utf-8")
    done = python("shapes.py", code=1, folder=tmp_path)
    assert shown.strip() in done.stderr
    assert done.stdout == "base 12.57, height 3.00\n"


def test_the_error_is_pickled():
    with pytest.raises(GraphBreakError) as caught:
        assert_differentiable(lambda x: x.detach() * float(x), wg.asarray(2.0))
    caught.value.add_note("in a worker")
    for again in (pickle.loads(pickle.dumps(caught.value)), copy.deepcopy(caught.value)):
        assert str(again) == str(caught.value)
        assert again.__notes__ == ["in a worker"]
        assert list(again.breaks) == list(caught.value.breaks)
