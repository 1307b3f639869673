"""Orders, their seeds, and places in them."""

import numpy as np
import pytest

import wengert as wg
from tests.data.test_datasets import ROWS
from wengert import data


def test_a_sampler_of_a_class_below_has_its_own_order():
    class Backwards(data.SequentialSampler):
        def __iter__(self):
            return iter(range(len(self) - 1, -1, -1))

    class Listed:
        order = (2, 0)  # no method

        def __iter__(self):
            return iter(self.order)

    (batch,) = data.DataLoader(ROWS[:3, 0], 3, sampler=Backwards(range(3)))
    assert batch.tolist() == [4, 2, 0]
    (batch,) = data.DataLoader(ROWS[:3, 0], 3, sampler=Listed())
    assert batch.tolist() == [4, 0]


def misspelt(state):
    """A state without one of its names, and one with a name more, down to the generator's."""
    for name, part in state.items():
        yield {key: value for key, value in state.items() if key != name}
        if isinstance(part, dict) and name != "generator":
            yield from ({**state, name: wrong} for wrong in misspelt(part))
    yield {**state, "more": 1}


def test_samplers():
    assert [*data.SequentialSampler("abc")] == [0, 1, 2]
    some = data.RandomSampler(range(3), num_samples=7, generator=0)
    drawn = [*some]
    rng = np.random.default_rng(0)  # which an epoch takes no more from than it needs
    for epoch in (drawn, [*some]):
        assert epoch == [i for _ in range(3) for i in rng.permutation(3).tolist()][:7]
    assert len(some) == 7 and sorted(drawn[:3]) == sorted(drawn[3:6]) == [0, 1, 2]
    again = data.RandomSampler(range(1000), replacement=True, generator=np.random.default_rng(0))
    assert len({*again}) < 700 < 1000 == len(again)
    assert [*data.BatchSampler("abcde", 2)] == [["a", "b"], ["c", "d"], ["e"]]
    assert [*data.BatchSampler("abcde", 2, True)] == [["a", "b"], ["c", "d"]]
    batches = data.BatchSampler(data.RandomSampler(range(5), generator=0), 2, drop_last=True)
    assert [type(i) for batch in batches for i in batch] == [int] * 4 and len(batches) == 2
    loader = data.DataLoader([10, 20, 30], batch_sampler=[[2, 0], [-1]])
    assert [batch.tolist() for batch in loader] == [[30, 10], [30]]


ORDERS = {
    "sampler": lambda: data.RandomSampler(range(50)),
    "replacement": lambda: data.RandomSampler(range(50), replacement=True),
    "batches": lambda: data.BatchSampler(data.RandomSampler(range(50)), 3),
    "loader": lambda: data.DataLoader(range(50), 7, shuffle=True),
    "samples": lambda: data.DataLoader(range(50), None, shuffle=True),
    "ahead": lambda: data.DataLoader(range(50), 7, shuffle=True, prefetch=2),
    "of a sampler": lambda: data.DataLoader(range(50), 7, sampler=ORDERS["sampler"]()),
    "of batches": lambda: data.DataLoader(range(50), batch_sampler=ORDERS["batches"]()),
}


def epoch(loader):
    return [getattr(batch, "tolist", lambda batch=batch: batch)() for batch in loader]


def test_a_seed_before_an_epoch_gives_its_order_again() -> None:
    wrong = []
    for name, make in ORDERS.items():
        loader = make()
        wg.manual_seed(1)
        first = epoch(loader)
        state = wg.get_rng_state()
        second = epoch(loader)
        wg.set_rng_state(state)
        again = epoch(loader)
        wg.manual_seed(1)
        seeded = epoch(loader), epoch(loader)
        wg.manual_seed(1)
        if not (first == seeded[0] == epoch(make()) and second == again == seeded[1] != first):
            wrong.append(name)
    assert not wrong
    wg.manual_seed(1)
    parts = [[*part] for part in data.random_split(range(50), [0.5, 0.5])]
    wg.manual_seed(1)
    assert [[*part] for part in data.random_split(range(50), [0.5, 0.5])] == parts


def test_an_order_with_a_generator_follows_no_other_seed() -> None:
    assert len({tuple(data.RandomSampler(range(20))) for _ in range(60)}) == 60

    def epochs(seeds):
        loader = data.DataLoader(range(50), 7, shuffle=True, generator=3)
        for _ in range(3):
            if seeds:
                wg.manual_seed(1)
            yield epoch(loader)

    wg.manual_seed(1)
    before = wg.get_rng_state()["host"]
    assert [*epochs(False)] == [*epochs(True)]
    assert wg.get_rng_state()["host"] == before


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_order_without_a_generator_is_taken_up_again(prefetch) -> None:
    """With Wengert's random numbers, as checkpoints have them."""
    make = lambda: data.DataLoader(range(20), 3, shuffle=True, prefetch=prefetch)
    loader, states, seen = make(), {}, []
    for _ in range(2):
        for batch in loader:
            seen.append(batch.tolist())
            states[len(seen)] = loader.state_dict(), wg.get_rng_state()
    last = epoch(loader)
    for done, (state, random_state) in states.items():
        wg.manual_seed(5)
        other = make()
        other.load_state_dict(state)
        wg.set_rng_state(random_state)
        rest = [batch for _ in range(2 - other.epoch) for batch in epoch(other)]
        assert seen[:done] + rest == seen and epoch(other) == last
    own = data.RandomSampler(range(3), generator=0)
    with pytest.raises(ValueError, match="has a generator here, and had none when it was saved"):
        own.load_state_dict(data.RandomSampler(range(3)).state_dict())


def test_behind_a_last_short_batch_there_is_none():
    sampler = data.BatchSampler([0, 1, 2, 3, 4], 2)
    found = [[list(batch) for batch in sampler.batches(skipped)] for skipped in range(4)]
    assert found == [[[0, 1], [2, 3], [4]], [[2, 3], [4]], [[4]], []]
    assert [*sampler] == found[0]
