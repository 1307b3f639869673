"""An operation is one row: what is added here, while the tests run, all interpreters know."""

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.__main__ import rows
from wengert.backends import Backend
from wengert.compiler import CompileError
from wengert.compiler.facts import FACTS, Facts, involution
from wengert.interpreters.batching import as_it_is
from wengert.ops.define import elementwise, operation
from wengert.tape.primitive import PRIMITIVES, Primitive

ROOT = Path(__file__).parents[2]
ADDED = {"backwards", "deviations_from_mean", "gudermannian", "pairs", "selected", "sums"}
ADDED |= {"linalg.eigvals", "rescaled"}
POINTS = np.array([-1.5, 0.25, 2.0])


@pytest.fixture
def known() -> Iterator[None]:
    """What a test adds goes when it has ended."""
    yield
    for name in PRIMITIVES.keys() & ADDED:
        del PRIMITIVES[name]
        FACTS.pop(name, None)


@pytest.fixture
def examples(known: None) -> dict[str, Any]:
    """The functions that CONTRIBUTING adds."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "wengert.ops.special.example"}
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), names)
    return names


@pytest.fixture
def example(examples: dict[str, Any]) -> Callable[..., Any]:
    """The elementwise function of these."""
    function: Callable[..., Any] = examples["gudermannian"]
    return function


def numbers(backend: Backend, x: Any) -> Any:
    return backend.to_numpy(x.detach()._array if isinstance(x, wg.Tensor) else x)


def close(backend: Backend, x: Any, y: Any) -> bool:
    return np.allclose(numbers(backend, x), y, rtol=1e-12, atol=1e-15)


def test_the_example_in_every_mode(backend: Backend, example: Callable[..., Any]) -> None:
    x = wg.asarray(backend.from_numpy(POINTS), requires_grad=True)
    value = 2 * np.arctan(np.tanh(POINTS / 2))
    slope, curvature = 1 / np.cosh(POINTS), -np.tanh(POINTS) / np.cosh(POINTS)
    y = example(x)
    assert close(backend, y, value)
    assert "Gudermannian" in type(y.grad_fn).__name__ + repr(y.grad_fn)
    (first,) = wg.autograd.grad(wg.sum(y), x, create_graph=True)
    assert close(backend, first, slope)
    (second,) = wg.autograd.grad(wg.sum(first), x)
    assert close(backend, second, curvature)
    ones = wg.ones_like(x)
    assert close(backend, wg.func.jvp(example, (x,), (ones,))[1], slope)
    nested = wg.func.jvp(lambda x: wg.func.jvp(example, (x,), (ones,))[1], (x,), (ones,))[1]
    assert close(backend, nested, curvature)
    assert close(backend, wg.func.jacfwd(example)(x), np.diag(slope))  # a batch of tangents
    assert close(backend, wg.func.hessian(lambda x: wg.sum(example(x)))(x), np.diag(curvature))


def test_the_example_compiles(backend: Backend, example: Callable[..., Any]) -> None:
    def step(x: Any) -> tuple[Any, Any]:
        y = example(x)
        return y.detach(), wg.autograd.grad(wg.sum(y), x)[0]

    run = wg.compile(step)
    for scale in (1.0, 0.5, 2.0):
        x = wg.asarray(backend.from_numpy(POINTS * scale), requires_grad=True)
        for found, expected in zip(run(x), step(x), strict=True):
            assert np.allclose(numbers(backend, found), numbers(backend, expected), rtol=1e-14)
    assert "recorded 1 time," in str(run.report)


def test_the_example_is_documented(example: Callable[..., Any]) -> None:
    from tests.project.test_derivative_tables import tables

    text = "\n".join(tables())
    cells = text.partition("``gudermannian``\n")[2].splitlines()[:4]
    assert [cell.strip(" -") for cell in cells] == ["elementwise", "yes", "any order", "derived"]
    assert "Weisstein" in (example.__doc__ or "")


def test_the_example_with_a_parameter(backend: Backend, examples: dict[str, Any]) -> None:
    function = examples["deviations_from_mean"]
    assert list(inspect.signature(function).parameters) == ["x", "axis"]
    points = np.array([POINTS, 2 * POINTS])
    x = wg.asarray(backend.from_numpy(points), requires_grad=True)
    expected = points - points.mean(axis=1, keepdims=True)
    cube = wg.func.grad(lambda x: wg.sum(function(x) ** 3))
    slopes = 3 * (expected**2 - (expected**2).mean(axis=1, keepdims=True))
    assert close(backend, function(x), expected)
    assert close(backend, wg.compile(function)(x.detach()), expected)
    assert close(backend, cube(x), slopes)
    assert close(backend, wg.func.jvp(function, (x,), (x.detach(),))[1], expected)
    columns = wg.func.jacfwd(lambda x: function(x, axis=0))(x)
    assert close(backend, wg.sum(columns, axis=(2, 3)), 0 * points)
    hessian = numbers(backend, wg.func.hessian(lambda x: wg.sum(function(x) ** 3))(x))
    step = 1e-6 * np.ones_like(points) * points
    moved = numbers(backend, cube(wg.asarray(backend.from_numpy(points + step)))) - slopes
    assert np.allclose((hessian * step).sum(axis=(2, 3)), moved, rtol=1e-4)


def test_how_an_operation_calls_its_primitive(known: None) -> None:
    """Inputs and call follow from the signature, and the function stays the one that is written."""

    def sums(*arrays: Any) -> Any:
        return sums.run(*arrays)  # type: ignore[attr-defined]

    def pairs(x1: Any, x2: Any, /) -> Any:
        return pairs.run(x1, x2)  # type: ignore[attr-defined]

    total = operation(
        arrays=lambda xp, g: g,
        linear="together",
        composite=lambda xp, *arrays: functools.reduce(xp.add, arrays),
    )(sums)
    assert total is sums
    assert PRIMITIVES["sums"].inputs == ("*arrays",)
    x = wg.asarray(POINTS)
    assert wg.grad(lambda x: wg.sum(total(x, 2 * x, 1.0 * x)))(x).tolist() == [4.0, 4.0, 4.0]
    product = operation(
        x1=lambda xp, g, x2: xp.multiply(g, x2),
        x2=lambda xp, g, x1: xp.multiply(g, x1),
        linear="each",
        composite=lambda xp, x1, x2: xp.multiply(x1, x2),
    )(pairs)
    assert PRIMITIVES["pairs"].inputs == ("x1", "x2")
    assert wg.grad(lambda x: wg.sum(product(x, x)))(x).tolist() == (2 * POINTS).tolist()
    with pytest.raises(TypeError, match=r"pairs takes .* not None"):
        product(x, None)


def backwards(view: bool | None) -> Callable[..., Any]:
    """The elements of the last axis from the last to the first, and back again."""
    row = Primitive(
        "backwards",
        ["x"],
        {"x": lambda xp, g: xp.backwards(g)},
        linear="together",
        composite=lambda xp, x: xp.flip(x, axis=-1) + 0.0,
        view=view,
        batch=as_it_is,
        effect="moves",
    )
    FACTS[row.name] = Facts(involution)
    return row.bind


@pytest.mark.parametrize("view", [False, None])
def test_identities_and_memory(backend: Backend, known: None, view: bool | None) -> None:
    """A program leaves out what the row says is an operand, and copies what may be one."""
    function = backwards(view)
    x = wg.asarray(backend.from_numpy(POINTS), requires_grad=True)
    at = x.detach()
    once, twice = wg.compile(function), wg.compile(lambda x: function(function(x)) * 2.0)
    assert close(backend, once(at), POINTS[::-1])
    assert close(backend, twice(at), POINTS * 2)
    assert "backwards" not in twice.source
    copies = once.source.count("copy(") + once.source.count("copy=True")
    assert copies == (view is None and not backend.immutable)
    (slope,) = wg.autograd.grad(wg.sum(function(x) * wg.asarray(x.detach())), x)
    assert close(backend, slope, POINTS[::-1])
    assert close(backend, wg.func.jacfwd(function)(x), np.eye(3)[::-1])
    assert close(backend, wg.func.jvp(function, (x,), (x.detach(),))[1], POINTS[::-1])


def test_what_rules_read_belongs_to_a_program(known: None) -> None:
    scale = [2.0]
    facts = {"linear": "together", "composite": lambda xp, x: x * scale[0]}
    row = Primitive("rescaled", ["x"], {"x": lambda xp, g: g * scale[0] * 3}, **facts)
    run = wg.compile(lambda x: wg.value_and_grad(lambda x: wg.sum(row.bind(x)))(x))
    for factor in (2.0, 2.0, 2.0, 5.0, 5.0):
        scale[0] = factor
        value, slope = run(wg.ones(2))
        assert (float(value), slope.tolist()) == (2 * factor, [3 * factor] * 2)


@pytest.mark.parametrize("dynamic", [False, True])
def test_shapes_that_depend_on_values(backend: Backend, known: None, dynamic: bool) -> None:
    row = Primitive("selected", ["x"], composite=lambda xp, x: xp.negative(x))
    FACTS[row.name] = Facts(dynamic=dynamic)
    run, x = wg.compile(lambda x: row.bind(x)), wg.asarray(backend.from_numpy(POINTS))
    text = "shape of what selected gives depends on values"
    with pytest.raises(CompileError, match=text) if dynamic else nullcontext():
        run(x)


def test_a_row_without_facts_may_raise(known: None) -> None:
    """A program keeps the call although nothing depends on the result."""
    row = Primitive("linalg.eigvals", ["x"])

    def step(x: Any) -> Any:
        row.bind(x)
        return x * 2.0

    run = wg.compile(step)
    for _ in range(3):
        assert (run(wg.asarray(np.eye(2))).numpy() == 2 * np.eye(2)).all()
    with pytest.raises(np.linalg.LinAlgError):
        run(wg.asarray(np.full((2, 2), np.inf)))


def nothing(xp: Any, g: Any) -> Any:
    return g


BAD_ROWS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"linear": "foo"}, ValueError, "linear is one of None, together, each, not 'foo'"),
    ({"effect": "foo"}, ValueError, "effect is one of None, moves, .*, not 'foo'"),
    ({"dtypes": {"y": "any"}}, ValueError, r"dtypes for \['y'\], not in its inputs"),
    ({"dtypes": "real"}, ValueError, "dtypes is one of any, boolean, .*, not 'real'"),
    ({"rules": {"y": nothing}}, ValueError, r"rules for \['y'\], not in its inputs"),
    ({"jvps": {"y": nothing}}, ValueError, r"jvps for \['y'\], not in its inputs"),
    ({"rules": {"x": lambda g, xp: g}}, TypeError, "first argument is the namespace, xp"),
    ({"name": "exp"}, ValueError, "primitive 'exp' exists already"),
]


def test_rows_that_would_go_wrong() -> None:
    """Of one without a rule the gradient would be zero, and nobody would be told."""

    def unheard_of(x: Any, /) -> Any:
        """Twice."""

    for row, error, message in BAD_ROWS:
        given = {"name": "unheard_of", "elementwise": True, "rules": {"x": nothing}, **row}
        with pytest.raises(error, match=message):
            Primitive(given.pop("name"), ["x"], given.pop("rules"), **given)
    with pytest.raises(TypeError, match=r"unheard_of has no derivative rule: .* ZERO"):
        elementwise(composite=lambda xp, x: xp.multiply(x, 2))(unheard_of)
    with pytest.raises(ValueError, match=r"rules for \['lineer'\], not in its inputs"):
        operation(x=nothing, lineer=nothing)(unheard_of)
    assert "unheard_of" not in PRIMITIVES


def test_files_of_special_functions_are_listed() -> None:
    from wengert.ops import special

    for path in Path(special.__file__).parent.glob("[!_]*.py"):
        names = {*getattr(import_module(f"wengert.ops.special.{path.stem}"), "__all__", ())}
        assert names <= {*special.__all__}, f"{path.stem} is not in _LATE of ops/special"


def test_the_rows_of_a_function_are_found() -> None:
    found = {path.name: text for path, _, text in rows("softplus")}
    assert found["special.py"].startswith("softplus: Entry(")
    assert "m.softplus" in found["table.py"]
    assert [*rows("no_function")] == []
