"""Random programs: smooth where they are drawn, the same on each backend, and their own code."""

import math

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings

import wengert as wg
from tests.ops.cases import examples
from wengert.tape.primitive import PRIMITIVES, Primitive
from wengert.testing import Argument, Program, WrongGradientError, check_gradients, programs
from wengert.testing import strategies as ws
from wengert.testing.problem import values
from wengert.testing.program import ALONG, REDUCTIONS, Step


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_are_right(backend, dtype):
    count = {"numpy": 20, "jax": 1, "dask": 1}.get(backend.name, 3)

    @settings(max_examples=examples(count))
    @given(programs(dtype=dtype))
    def run(program):
        inputs = program.tensors()
        fast = backend.name != "numpy"
        wg.testing.gradcheck(program, inputs, fast_mode=fast, check_forward_ad=True)
        wg.testing.gradgradcheck(program, inputs, fast_mode=True)

    run()


@settings(max_examples=examples(60))
@given(programs())
def test_the_repr_is_code_that_gives_the_value(program):
    *definition, call = repr(program).partition("\nprogram(")[::2]
    names = {}
    exec(definition[0], names)
    found = eval("program(" + call, names)
    np.testing.assert_array_equal(values(found), values(program(*program.tensors())))


@settings(max_examples=60)
@given(programs())
def test_a_program_gives_a_number_that_every_value_counts_in(program):
    assert np.shape(values(program(*program.tensors()))) == ()
    taken = {i for step in program.steps for i in step.operands}
    last = len(program.inputs) + len(program.steps) - 1
    assert taken == {*range(last)}


def test_a_program_runs_with_any_namespace():
    xp = pytest.importorskip("array_api_strict")

    @settings(max_examples=20)
    @given(programs())
    def run(program):
        found = program(*map(xp.asarray, program.inputs), xp=xp)
        expected = program(*program.tensors(requires_grad=False))
        np.testing.assert_allclose(np.asarray(found), values(expected), rtol=1e-9, atol=1e-11)

    run()


@pytest.mark.slow
def test_programs_are_deep_and_reach_each_kind_of_function():
    names, longest = set(), 0

    @settings(max_examples=150)
    @given(programs(max_steps=12))
    def run(program):
        nonlocal longest
        assert isinstance(program, Program)
        names.update(step.name for step in program.steps)
        longest = max(longest, len(program.steps))

    run()
    assert {"matmul", "concat", "multiply", "log", "cumulative_sum", "reshape", "sum"} <= names
    assert len(names) > 30
    assert longest >= 10


def test_the_functions_can_be_chosen():
    @settings(max_examples=20)
    @given(programs(functions=["tanh", "multiply"]))
    def run(program):
        assert {step.name for step in program.steps} <= {"tanh", "multiply", "sin", "sum", "add"}

    run()


SHAPING = (
    *("max", "min", "sort", "roll", "expand_dims", "reshape", "concat", "stack", "matmul"),
    *("matrix_transpose", *REDUCTIONS, *ALONG),
)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, "float64") for name in SHAPING),
        *((name, "complex128") for name in ("conj", "real", "imag")),
    ],
)
def test_every_function_is_drawn(name, dtype):
    def is_in(program):
        return any(step.name == name for step in program.steps)

    chosen = programs(functions=[name], dtype=dtype)
    assert find(chosen, is_in, settings=settings(database=None, phases=[Phase.generate]))


@pytest.mark.slow
def test_a_wrong_program_is_told_as_code(monkeypatch):
    program = Program((np.ones(2),), (Step("sin", (0,)), Step("sum", (1,), (("axis", -1),))))
    with pytest.raises(TypeError, match="takes 1 inputs, not 2"):
        program(1, 2)
    check_gradients(program, ("n",), backends=["numpy"], examples=5)
    name = "planted_in_a_program"
    planted = Primitive(
        name, ("x",), {"x": lambda xp, g: g}, linear="together", forward=lambda xp, x: xp.sin(x)
    )
    monkeypatch.setattr(wg, name, planted.bind, raising=False)
    try:
        wrong = Program(program.inputs, (Step(name, (0,)), *program.steps[1:]))
        with pytest.raises(WrongGradientError) as caught:
            check_gradients(wrong, Argument(("n",), domain=(1, 2)), backends=["numpy"], order=1)
    finally:
        del PRIMITIVES[name]
    text = str(caught.value)
    assert "    def program(x0):\n        v0 = wg.planted_in_a_program(x0)\n" in text
    assert "wg.testing.gradcheck(program, inputs" in text


# -- the other strategies --------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_matrices_are_of_their_kinds(dtype):
    @settings(max_examples=30)
    @given(
        ws.matrices("well-conditioned", dtype, side=3),
        ws.matrices("symmetric", dtype, stack=(2,)),
        ws.matrices("positive definite", dtype, stack=ws.shapes(max_dims=1)),
        ws.matrices("lower triangular", dtype),
        ws.matrices("upper triangular", dtype),
    )
    def check(a, b, c, lower, upper):
        assert a.shape == (3, 3)
        assert np.linalg.cond(a) < 100
        assert b.shape[0] == 2
        np.testing.assert_array_equal(b, np.conj(np.swapaxes(b, -1, -2)))
        np.testing.assert_array_equal(c, np.conj(np.swapaxes(c, -1, -2)))
        assert np.all(np.linalg.eigvalsh(c) >= 1)
        for x in (b, c):
            assert np.all(np.diff(np.linalg.eigvalsh(x), axis=-1) >= 1)
        np.testing.assert_array_equal(lower, np.tril(lower))
        np.testing.assert_array_equal(upper, np.triu(upper))
        assert abs(np.linalg.det(lower)) > 1
        assert abs(np.linalg.det(upper)) > 1

    check()


def test_matrices_of_no_kind():
    with pytest.raises(ValueError, match="no matrices of the kind 'square'"):
        find(ws.matrices("square"), lambda x: True, settings=settings(database=None))


def test_domains_that_are_narrow_or_empty():
    @settings(max_examples=10)
    @given(ws.tensors(shape=(4,), domain=(0.01, 0.02)))
    def check(x):
        assert np.all((values(x) >= 0.01) & (values(x) <= 0.02))

    check()
    with pytest.raises(ValueError, match="no number from 2"):
        ws.reals(2, 1)
    with pytest.raises(ValueError, match="away from"):
        ws.reals(0, 1, away_from=[0.5], distance=1)
    assert math.isinf(find(ws.reals(special=[math.inf]), math.isinf))
