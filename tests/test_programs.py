"""Random programs: smooth where they are drawn, the same on each backend, and their own code."""

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings

import wengert as wg
from tests.ops.cases import examples
from tests.programs import ALONG, REDUCTIONS, Program, programs
from wengert.testing.problem import values


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
