"""Random programs with changes of state between their calls: compiled they do what they do eagerly.

`python -m tests.compiler.stateful` runs as many as are asked for; here are some.
"""

import pytest

import wengert as wg
from tests.compiler.stateful.generator import drawn
from tests.compiler.stateful.judge import difference, frozen, judged, run, shortest
from tests.compiler.stateful.pieces import PIECES
from tests.ops.cases import examples

#: Programs: the thorough profile runs twice as many, and the wide one twenty times.
COUNT = examples(1000)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_compiled_programs_do_what_they_do_eagerly(part: int) -> None:
    """Small ones here: a few pieces, and five calls or so with one or two changes."""
    many = COUNT // 8
    for seed in range(part * many, (part + 1) * many):
        finding = judged(drawn(seed, pieces=2, events=2))
        if finding is not None:
            least = shortest(finding)
            pytest.fail(f"seed {seed}, {least.kind}: {least.message}\n{least.snippet}")


@pytest.mark.parametrize("backend", ["torch", "array_api_strict"])
def test_other_libraries_round_alike(backend: str) -> None:
    pytest.importorskip(backend)
    for seed in range(5000, 5000 + examples(40)):
        finding = judged(drawn(seed, pieces=2, events=2), backend)
        if finding is not None:
            least = shortest(finding, backend)
            pytest.fail(f"seed {seed}, {least.kind}: {least.message}\n{least.snippet}")


def test_programs_are_those_of_their_seeds() -> None:
    texts = [drawn(seed).source() for seed in range(50)]
    assert texts == [drawn(seed).source() for seed in range(50)]
    assert len(set(texts)) == 50


def test_every_piece_is_drawn() -> None:
    drawn_ones = {part.piece.name for seed in range(1500) for part in drawn(seed).parts}
    assert drawn_ones == {piece.name for piece in PIECES}
    assert len(PIECES) == len(drawn_ones)


def test_all_that_differs_is_seen() -> None:
    """Values, types, keys, gradients, identities, attributes and generators."""

    class Box:
        __slots__ = ("a",)

    Box.__module__ = "program"

    def space(change: int) -> dict[str, object]:
        wg.manual_seed(1)
        t, u = wg.ones(2, requires_grad=True), wg.zeros(2)
        t.grad = wg.ones(2)
        box = Box()
        box.a = 0.0
        cell = [1]

        def closed() -> object:
            return cell

        closed.__module__ = "program"
        made: dict[str, object] = {
            "t": t, "pair": [u, u], "n": 1, "box": box, "closed": closed, "d": {"a": 1, "b": 2}
        }  # fmt: skip
        if change == 1:
            with wg.no_grad():
                t.mul_(2.0)
        elif change == 2:
            t.grad = None
        elif change == 3:
            made["pair"] = [u, u.clone()]
        elif change == 4:
            made["n"] = True
        elif change == 5:
            box.a = -0.0
        elif change == 6:
            cell.append(2)
        elif change == 7:
            made["d"] = {"b": 2, "a": 1}
        elif change == 8:
            wg.rand_like(u)
        elif change == 9:
            t.requires_grad_(False)
        return made

    for change in range(10):
        a, b = frozen(space(0)), frozen(space(change))
        assert bool(difference(a, b)) == bool(change), change


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
