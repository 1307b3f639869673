"""Random programs with changes of state between their calls: compiled they do what they do eagerly.

`python -m tests.compiler.stateful` runs as many as are asked for; here are some.
"""

from textwrap import indent
from typing import Any

import pytest

import wengert as wg
from tests.compiler.stateful.generator import drawn
from tests.compiler.stateful.judge import difference, frozen, judged, run
from tests.compiler.stateful.pieces import PIECES
from tests.ops.cases import examples

#: Programs: the thorough profile runs twice as many, and the wide one twenty times.
COUNT = examples(1000)


def check(seeds: range, backend: str = "numpy") -> None:
    """Small programs: a few pieces, and five calls or so with one or two changes."""
    for seed in seeds:
        finding = judged(drawn(seed, pieces=2, events=2), backend)
        if finding is not None:
            pytest.fail(f"seed {seed}, {finding.kind}: {finding.message}\n{finding.snippet}")


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 8))]
)
def test_compiled_programs_do_what_they_do_eagerly(part: int) -> None:
    many = COUNT // 8
    check(range(part * many, (part + 1) * many))


@pytest.mark.parametrize("backend", ["torch", "array_api_strict"])
def test_other_libraries_round_alike(backend: str) -> None:
    pytest.importorskip(backend)
    check(range(5000, 5000 + examples(40)), backend)


def test_programs_are_those_of_their_seeds_and_have_every_piece() -> None:
    assert len({drawn(seed).source() for seed in (1, 1, 2)}) == 2
    found = {part.piece.name for seed in range(1500) for part in drawn(seed).parts}
    assert sorted(found) == sorted([piece.name for piece in PIECES])


SPACE = """
wg.manual_seed(1)
t, u, box, d, cell = wg.ones(2, requires_grad=True), wg.zeros(2), Box(), {"a": 1, "b": 2}, [1]
t.grad, pair, n, box.a = wg.ones(2), [u, u], 1, 0.0
"""
#: Values, types, keys, gradients, identities, attributes and generators.
SEEN = """with wg.no_grad(): t.mul_(2.0)
t.grad = None
pair = [u, u.clone()]
n = True
box.a = -0.0
cell.append(2)
d = {"b": 2, "a": 1}
wg.rand_like(u)
t.requires_grad_(False)"""


def test_all_that_differs_is_seen() -> None:
    def space(change: str) -> list[tuple[str, Any]]:
        made: dict[str, Any] = {"wg": wg, "__name__": "program"}
        exec("class Box:\n    __slots__ = ('a',)", made)
        exec(
            f"def make():{indent(SPACE + change, '    ')}\n    return locals(), lambda: cell", made
        )
        found = made["make"]()
        return frozen({**found[0], "closed": found[1], "cell": None})

    for change in ("", *SEEN.splitlines()):
        assert bool(difference(space(""), space(change))) == bool(change), change


def test_a_program_that_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What replays skip, here the drawing of random numbers, shows in some program."""
    program = next(
        p for p in map(drawn, range(1000)) if "noise" in [part.piece.name for part in p.parts]
    )
    eager, again = run(program, False), run(program, False)
    assert not any(difference(a.state, b.state) for a, b in zip(eager, again, strict=True))
    monkeypatch.setattr(wg, "rand_like", lambda x: wg.zeros_like(x))
    other = run(program, False)
    assert any(difference(a.state, b.state) for a, b in zip(eager, other, strict=True))
