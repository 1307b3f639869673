"""Random programs against PyTorch, in forward and reverse mode, and between backends.

`python -m tests.fuzz` runs as many as are asked for; here are some of each.
"""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.catalogue.table import TRACKED
from tests.fuzz.programs import Answer, PyTorch, Wengert, compare, compare_modes, programs, run
from tests.ops.cases import check_examples
from wengert.tape.primitive import PRIMITIVES

pytestmark = pytest.mark.filterwarnings("ignore")


def test_forward_and_reverse_agree() -> None:
    with wg.use_backend("numpy"):
        check_examples(100, compare_modes, programs())


def test_backends_agree(backend: wg.backends.Backend) -> None:
    if backend.name == "numpy":
        pytest.skip("what others are compared with")

    def check(program: Any) -> None:
        found = run(program, Wengert())
        with wg.use_backend("numpy"):
            compare(found, run(program, Wengert()))

    few = {"array_api_strict": 60, "torch": 40}.get(backend.name, 2)
    rows = [row for row in TRACKED if not row[0].startswith("linalg.")]  # whose signs are free
    check_examples(few, check, programs(rows))


def against_pytorch(program: Any) -> None:
    with wg.use_backend("numpy"):
        compare(run(program, Wengert()), run(program, PyTorch()))


@pytest.mark.oracle
def test_pytorch_agrees() -> None:
    pytest.importorskip("torch")
    check_examples(300, against_pytorch, programs(PyTorch().rows()))


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["sin", "tanh", "multiply", "sum"])
def test_a_wrong_rule_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator that finds nothing may also be one that looks at nothing."""
    pytest.importorskip("torch")
    rows = [row for row in TRACKED if row[0] == name]
    check_examples(10, against_pytorch, programs(rows))
    for plan in PRIMITIVES[name].plans.values():

        def changed(step: tuple[Any, ...]) -> tuple[Any, ...]:
            position, rule, at, piece = step
            return position, lambda xp, *known: xp.multiply(rule(xp, *known), 1.01), at, piece

        if hasattr(plan, "steps"):
            monkeypatch.setattr(plan, "steps", tuple(map(changed, plan.steps)))
    with pytest.raises((AssertionError, ExceptionGroup)):
        check_examples(40, against_pytorch, programs(rows))


def test_differences_are_told() -> None:
    answer = Answer(*([np.asarray([0.5, 2.0])] for _ in Answer._fields))
    compare(answer, answer)
    for what in Answer._fields:
        for wrong in (np.asarray([0.5, 2.001]), np.asarray([0.5, 2.0], np.float32)):
            with pytest.raises(AssertionError, match=what):
                compare(answer._replace(**{what: [wrong]}), answer)
