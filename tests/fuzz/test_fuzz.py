"""Random programs against PyTorch, in forward and reverse mode, and between backends.

`python -m tests.fuzz` runs as many as are asked for; here are some of each.
"""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.fuzz.judge import Answer, agree, by_wengert, compare, compiled
from tests.fuzz.recipes import program
from tests.fuzz.run import examine
from tests.fuzz.table import TABLE
from tests.ops.cases import examples
from wengert.tape.primitive import PRIMITIVES

#: Recipes that are left out.
AVOID: frozenset[str] = frozenset()

pytestmark = pytest.mark.filterwarnings("ignore")


def run(seeds: range, **options: object) -> Counter[str]:
    counts: Counter[str] = Counter()
    for seed in seeds:
        more, findings = examine(seed, avoid=AVOID, **options)
        counts.update(more)
        assert not findings, "\n".join(f"{f.kind}: {f.message}\n{f.snippet}" for f in findings)
    return counts


def test_forward_and_reverse_agree() -> None:
    counts = run(range(examples(100)), oracle=False)
    assert counts["programs"] == examples(100)


def test_backends_agree(backend: wg.backends.Backend) -> None:
    if backend.name == "numpy":
        pytest.skip("what others are compared with")
    few = {"array_api_strict": 60, "torch": 40}.get(backend.name, 2)
    run(range(1000, 1000 + examples(few)), oracle=False, forward=False, backends=[backend.name])


@pytest.mark.oracle
def test_pytorch_agrees() -> None:
    pytest.importorskip("torch")
    run(range(2000, 2000 + examples(300)), forward=False)


def test_programs_are_those_of_their_seeds() -> None:
    assert [program(s).source for s in range(20)] == [program(s).source for s in range(20)]
    assert len({program(s).source for s in range(20)}) == 20


@pytest.mark.slow
def test_every_recipe_is_taken() -> None:
    taken: set[str] = set()
    for seed in range(600):
        taken |= program(seed).features
    assert taken == {recipe.__name__ for recipe in TABLE}


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["sin", "tanh", "multiply", "sum"])
def test_a_wrong_rule_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator that finds nothing may also be one that looks at nothing."""
    pytest.importorskip("torch")
    made = [s for s in range(300) if f"xp.{name}(" in program(s, AVOID).source][:10]
    for s in made:
        assert not examine(s, forward=False, avoid=AVOID)[1]
    primitive = PRIMITIVES[name]
    for plan in primitive.plans.values():

        def changed(step: tuple[Any, ...]) -> tuple[Any, ...]:
            position, rule, at, piece = step
            return position, lambda xp, *known: xp.multiply(rule(xp, *known), 1.01), at, piece

        if hasattr(plan, "steps"):
            monkeypatch.setattr(plan, "steps", tuple(map(changed, plan.steps)))
    found = [s for s in made if examine(s, forward=False, avoid=AVOID)[1]]
    assert len(found) >= len(made) // 3  # in the others it is of a constant, or of a special value


def test_differences_are_told() -> None:
    made = program(3)
    answer = by_wengert(made)
    assert compare(made, answer, answer, oracle=False) is None
    assert agree(made, answer) is None
    for what in ("values", "first", "second"):
        changed = [x + x.dtype.type(1) for x in getattr(answer, what)]
        found = compare(made, answer._replace(**{what: changed}), answer, oracle=False)
        assert found is not None
        assert found.startswith(what)
        halves = [x.astype("float16") for x in getattr(answer, what)]
        assert "float16" in (
            compare(made, answer._replace(**{what: halves}), answer, oracle=False) or ""
        )
    assert "jvp" in (agree(made, answer._replace(tangent=answer.tangent + 1)) or "")
    moved = [x + 1 for x in answer.product or ()]
    assert "hvp" in (agree(made, answer._replace(product=moved)) or "")


@pytest.mark.oracle
@pytest.mark.slow
def test_snippets_can_be_pasted(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    made = program(3)
    exec(compile(made.snippet, "<pasted>", "exec"), {})
    printed = capsys.readouterr().out
    assert "by_wengert" in printed
    assert "by_pytorch" in printed
    assert callable(compiled(made))
    assert isinstance(by_wengert(made, forward=False), Answer)
    assert isinstance(by_wengert(made).tangent, np.ndarray | np.floating)
