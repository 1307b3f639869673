"""Generators that are given, and probabilities that are none."""

from typing import Any

import pytest

import wengert as wg
from tests.walking import lines_of


@pytest.mark.parametrize(
    "line",
    lines_of("""
t.multinomial(t.ones(30), 20, generator=g)  t.zeros(9).uniform_(generator=g)
t.zeros(9).normal_(1, 2, generator=g)  t.zeros(40).bernoulli_(generator=g)
t.zeros(9).random_(0, 100, generator=g)  t.randperm(40, generator=g, dtype=t.int32)
t.randn((4, 5), generator=g)  t.rand(9, generator=g)  t.randint(0, 99, (9,), generator=g)
t.normal(0.0, 1.0, size=(9,), generator=g)  t.bernoulli(t.full((40,), 0.5), generator=g)
"""),
)
def test_a_generator_is_drawn_from(room: Any, line: str) -> None:
    """It alone goes on: a second draw differs, and the numbers of the process are as before."""
    draw = lambda g: eval(line, {"t": room, "g": g})
    first, again = (room.Generator().manual_seed(3) for _ in range(2))
    room.manual_seed(0)
    own = room.rand(3)
    room.manual_seed(0)
    one, two, same = draw(first), draw(first), draw(again)
    assert room.equal(one, same) and not room.equal(one, two)
    assert room.equal(room.rand(3), own)


def test_a_generator_inside_a_compiled_function_is_an_error(room: Any) -> None:
    generator = room.Generator().manual_seed(3)
    with pytest.raises(RuntimeError, match="seeded"):
        wg.compile(lambda x: x * x.clone().uniform_(generator=generator))(room.ones(2))


def test_dtypes_of_what_is_drawn(room: Any) -> None:
    assert room.randperm(4, generator=room.Generator(), dtype=room.int32).dtype is room.int32
    assert room.zeros(2, dtype=room.int32).bernoulli_(1.0).tolist() == [1, 1]


@pytest.mark.parametrize("p", [1.5, -0.5, float("nan")])
def test_probabilities_are_between_0_and_1(room: Any, p: float) -> None:
    for draw in (lambda: room.bernoulli(room.tensor([p])), lambda: room.zeros(2).bernoulli_(p)):
        with pytest.raises(RuntimeError, match="probabilities"):
            draw()
