"""Datasets, samplers, batches: their order, their structure, and places that are taken up again."""

import gc
import json
import sys
import threading
import traceback
from collections import OrderedDict
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wengert as wg
from tests.backends import tiny
from wengert import data
from wengert.backends import get_backend

ROWS = np.arange(20.0).reshape(10, 2)
MASKED = np.ma.array([1.0, 2.0], mask=[False, True])


class Pair(NamedTuple):
    x: object
    n: int


class Own:
    """A dataset by its two methods alone."""

    def __len__(self):
        return 10

    def __getitem__(self, i):
        return {"x": ROWS[i], "n": i, "name": f"no. {i}"}


class Column:
    """What batches take of a pandas Series."""

    def __init__(self, name, values):
        self.name, self.held = name, np.asarray(values)
        self.dtype, self.iloc = self.held.dtype, self

    def __len__(self):
        return len(self.held)

    def __getitem__(self, indices):
        return Column(self.name, self.held[indices])

    def to_numpy(self):
        return self.held


class Stream:
    """Samples one after another."""

    def __iter__(self):
        return iter([(float(i), i) for i in range(10)])


def numbers(batches):
    return [batch[1].tolist() for batch in batches]


DATASETS = {
    "arrays": lambda: data.TensorDataset(ROWS, np.arange(10)),
    "Tensors": lambda: data.TensorDataset(wg.asarray(ROWS), wg.arange(10)),
    "part": lambda: data.Subset(data.TensorDataset(ROWS, np.arange(10)), [*range(10)]),
    "joined": lambda: data.ConcatDataset(
        [data.TensorDataset(ROWS[:4], np.arange(4)), data.TensorDataset(ROWS[4:], np.arange(4, 10))]
    ),
    "list": lambda: [(row, i) for i, row in enumerate(ROWS)],
}


@pytest.mark.parametrize("dataset", [ROWS, data.TensorDataset(wg.asarray(ROWS))])
def test_negative_indices_count_from_the_end(dataset) -> None:
    (rows,) = data.DataLoader(dataset, 4, sampler=[-10, -1, 0, 9])
    rows = rows[0] if isinstance(rows, list) else rows
    np.testing.assert_array_equal(rows.numpy(), ROWS[[0, 9, 0, 9]])


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("name", DATASETS)
def test_an_epoch_has_each_sample_once(name, prefetch, backend):
    loader = data.DataLoader(DATASETS[name](), 3, shuffle=True, generator=5, prefetch=prefetch)
    batches = [*loader]
    assert [len(y) for _, y in batches] == [3, 3, 3, 1] and len(loader) == 4
    order = np.random.Generator(np.random.PCG64(5)).permutation(10).tolist()
    assert [n for batch in numbers(batches) for n in batch] == order
    assert [n for batch in numbers(loader) for n in batch] != order  # of the next epoch
    for x, y in batches:
        assert type(x) is wg.Tensor and x.backend is y.backend is backend
        assert x.dtype is wg.float64 and y.dtype is wg.int64
        np.testing.assert_array_equal(x.numpy(), ROWS[y.numpy()])
    assert loader.epoch == 2


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_batches_come_to_the_selected_backend(name):
    library = pytest.importorskip(name)
    library = getattr(library, "numpy", library)
    dataset = data.TensorDataset(library.asarray(ROWS[:, :1] > 4), np.arange(10))
    for held in (dataset, [dataset[i] for i in range(10)]):
        x, y = next(iter(data.DataLoader(held, 4)))
        assert x.backend.name == y.backend.name == "numpy"
        assert x[:, 0].tolist() == [False, False, False, True] and x.dtype is wg.bool
        x, _ = next(iter(data.DataLoader(held, 4, backend=name, prefetch=1)))
        assert x.backend.name == name
    x, _ = next(iter(data.DataLoader(dataset, 2, collate_fn=lambda found: found)))
    assert int(x[1]) == 0


def test_an_array_has_a_dtype_and_a_shape_and_is_of_some_library():
    strict = get_backend("array_api_strict").from_numpy(ROWS)
    (one,) = data.default_convert([strict])
    both = data.default_collate([{"x": strict}] * 2)["x"]
    assert one.backend.name == both.backend.name == "numpy"
    np.testing.assert_array_equal(one.numpy(), ROWS)
    np.testing.assert_array_equal(both.numpy(), np.stack([ROWS, ROWS]))
    for held in ({"shape": (2,)}, {"dtype": ROWS.dtype}, {"shape": (2,), "dtype": ROWS.dtype}):
        other = SimpleNamespace(**held)
        assert data.default_convert(other) is other


@given(
    n=st.integers(0, 13),
    size=st.integers(1, 5),
    drop_last=st.booleans(),
    shuffle=st.booleans(),
    stop=st.integers(0, 9),
    prefetch=st.sampled_from([0, 1, 3]),
    gathered=st.booleans(),
)
def test_a_place_is_taken_up_again(n, size, drop_last, shuffle, stop, prefetch, gathered):
    def make(seed):
        held = np.arange(n) if gathered else [*range(n)]
        return data.DataLoader(
            held, size, shuffle, generator=seed, drop_last=drop_last, prefetch=prefetch
        )

    first, seen, state = make(3), [], None
    for _ in range(3):
        for batch in first:
            seen.append(batch.tolist())
            if len(seen) == stop:
                state, before = first.state_dict(), len(seen)
    if state is None:
        state, before = first.state_dict(), len(seen)
    second = make(4)
    second.load_state_dict(json.loads(json.dumps(state)))
    assert second.state_dict() == state
    rest = []
    while second.epoch < 3:
        rest += [batch.tolist() for batch in second]
    assert rest == seen[before:]
    assert second.state_dict() == first.state_dict()


def test_a_place_before_the_first_batch_and_after_a_break():
    loader = data.DataLoader(range(9), 2, shuffle=True, generator=1)
    iter(loader)  # as tqdm makes one
    state = loader.state_dict()
    order = [batch.tolist() for batch in loader]
    other = data.DataLoader(range(9), 2, shuffle=True, generator=2)
    other.load_state_dict(state)
    assert [batch.tolist() for batch in other] == order
    batch = next(iter(other))
    assert other.state_dict()["position"] == 1  # until another loop begins
    rest = data.DataLoader(range(9), 2, shuffle=True)
    rest.load_state_dict(other.state_dict())
    assert sorted([*batch.tolist(), *(n for b in rest for n in b.tolist())]) == [*range(9)]


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("order", ["long short rng", "rng short long"])
def test_loaders_of_one_generator_are_taken_up_again(order, prefetch):
    """The generator goes on from where it was, though an order is drawn again from its past."""

    def make():
        rng = np.random.default_rng(0)
        long = data.DataLoader(range(20), 5, shuffle=True, generator=rng, prefetch=prefetch)
        return {"long": long, "short": data.DataLoader(range(6), 3, True, generator=rng)}, rng

    def run(loaders, rng, step, stop):
        seen = []
        while loaders["long"].epoch < 2:
            for batch in loaders["long"]:
                step += 1
                seen.append(batch.tolist())
                if step in (2, 3, 6):
                    seen += [batch.tolist() for batch in loaders["short"]]
                seen.append(int(rng.integers(10**6)))
                if step == stop:
                    states = {name: each.state_dict() for name, each in loaders.items()}
                    return seen, {**states, "rng": rng.bit_generator.state}
        return seen, None

    whole, _ = run(*make(), 0, None)
    for stop in range(1, 8):
        first, states = run(*make(), 0, stop)
        loaders, rng = make()
        for name in order.split():
            if name == "rng":
                rng.bit_generator.state = states[name]
            else:
                loaders[name].load_state_dict(states[name])
        assert first + run(loaders, rng, stop, None)[0] == whole


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


def test_what_is_not_taken_up_again():
    class Odd:
        def __iter__(self):
            return iter([1, 0])

    loader = data.DataLoader([1, 2], sampler=Odd())
    between = loader.state_dict()
    assert between["position"] == 0
    loader.load_state_dict(between)
    assert loader.state_dict() == between
    for _ in loader:
        with pytest.raises(ValueError, match=r"BatchSampler without state_dict.*between epochs"):
            loader.state_dict()
    shuffled = data.DataLoader(range(4), shuffle=True)
    plain = data.DataLoader(range(4))
    for one, other in ((shuffled, plain), (plain, shuffled)):
        before = other.state_dict()
        with pytest.raises(ValueError, match=r"was one of the loaders shuffled\?"):
            other.load_state_dict(one.state_dict())
        assert other.state_dict() == before
    for change in ({"position": 5}, {"position": -1}, {"epoch": 1.0}):
        before = plain.state_dict()
        with pytest.raises(ValueError, match=r"batch 5 was reached|integer of 0 or more"):
            plain.load_state_dict({**before, **change})
        assert plain.state_dict() == before
    for change, message in (
        ({"now": {}}, "it lacks 'sampler'"),  # after the order was set
        ({"samples": 5}, "batch 1 this was saved had samples 5, and here it has 4"),
        ({"samples": None}, "had samples None, and here it has 4"),
        ({"batch_size": 2}, "had batch_size 2, and here it has 1"),
    ):
        loader = data.DataLoader(range(4), shuffle=True)
        next(iter(loader))
        before = loader.state_dict()
        with pytest.raises(ValueError, match=message):
            loader.load_state_dict({**before, **change})
        assert loader.state_dict() == before
    for loader in (shuffled, plain):  # each name of each part, missing or misspelt
        before = loader.state_dict()
        for wrong in misspelt(before):
            with pytest.raises(ValueError, match=r"no state of .*: it (lacks|has in excess) '"):
                loader.load_state_dict(wrong)
            assert loader.state_dict() == before


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


class Fixed:
    """Gives indices in an order of its own, one after the other."""

    def __iter__(self):
        return iter([*range(4, 10), *range(4)])

    def __len__(self):
        return 10

    def state_dict(self):
        return {}

    def load_state_dict(self, state_dict):
        assert not state_dict


def test_after_its_last_short_batch_an_epoch_has_none() -> None:
    """A loader that is taken up there ends the epoch, and the next one is whole."""
    make = {
        "order": lambda: data.DataLoader(range(10), 4),
        "shuffled": lambda: data.DataLoader(range(10), 4, shuffle=True, generator=1),
        "sampler": lambda: data.DataLoader(range(10), 4, sampler=Fixed()),
        "batches": lambda: data.DataLoader(range(10), batch_sampler=data.BatchSampler(Fixed(), 4)),
        "list": lambda: data.DataLoader(range(10), batch_sampler=[[1, 2], [3, 4], [5]]),
        "stream": lambda: data.DataLoader(Fixed(), 4),
        "samples": lambda: data.DataLoader(range(10), None, sampler=Fixed()),
    }
    wrong = []
    for name, one in make.items():
        loader = one()
        whole = epoch(loader)
        loader = one()
        for position, _ in enumerate(loader, 1):
            if position == len(whole):
                state = loader.state_dict()
        following = epoch(loader)
        other = one()
        other.load_state_dict(state)
        if (epoch(other), other.epoch, epoch(other)) != ([], 1, following):
            wrong.append(name)
        if len(following) != len(whole):
            wrong.append((name, "following"))
    assert not wrong


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


def test_streams():
    loader = data.DataLoader(Stream(), 4)
    assert numbers(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert numbers(data.DataLoader(Stream(), 4, drop_last=True)) == [[0, 1, 2, 3], [4, 5, 6, 7]]

    class Counted(Stream):
        def __len__(self) -> int:
            return 10

    assert len(data.DataLoader(Counted(), 4)) == 3
    assert len(data.DataLoader(Counted(), 4, drop_last=True)) == 2
    assert len(data.DataLoader(Counted(), None)) == 10
    assert [n for _, n in data.DataLoader(Stream(), None)] == [*range(10)]
    with pytest.raises(TypeError, match="Stream has no length"):
        len(loader)
    with pytest.raises(TypeError, match="Stream gives its samples in its own order"):
        data.DataLoader(Stream(), shuffle=True)
    next(loop := iter(loader))
    state = loader.state_dict()
    rest = numbers(loop)
    other = data.DataLoader(Stream(), 4, prefetch=1)
    other.load_state_dict(state)
    assert numbers(other) == rest


def test_structures_are_kept(backend):
    batch = data.default_collate(
        [
            OrderedDict(a=Pair(np.float32(1), 2), b=[True, "x"], c=(1.5, 2j)),
            OrderedDict(a=Pair(np.float32(3), 4), b=[False, "y"], c=(2.5, 1j)),
        ]
    )
    assert type(batch) is OrderedDict and type(batch["a"]) is Pair
    assert batch["a"].x.dtype is wg.float32 and batch["a"].n.tolist() == [2, 4]
    assert batch["b"][0].tolist() == [True, False] and batch["b"][1] == ("x", "y")
    assert type(batch["c"]) is list and batch["c"][0].dtype is wg.float32
    assert batch["c"][1].tolist() == [2j, 1j]
    assert all(x.backend is backend for x in (*batch["a"], batch["b"][0], *batch["c"]))
    one = data.default_convert({"x": Pair(ROWS, 3), "s": ["a", np.int16(4)]})
    assert one["x"].x.backend is backend and one["x"].n == 3
    assert one["s"][0] == "a" and one["s"][1].dtype is wg.int16


def test_arrays_of_other_libraries_are_converted_one_by_one():
    other = tiny.asarray(ROWS[1])
    batch = data.default_collate([wg.asarray(ROWS[0]), other, ROWS[2]])
    assert batch.backend.name == "numpy" and batch.tolist() == ROWS[:3].tolist()
    assert data.default_convert({"x": other})["x"].tolist() == ROWS[1].tolist()
    # An array's attributes make no array of what has no library.
    column = Column("a", [1, 2])
    assert data.default_convert(column) is column


def test_columns_by_what_pandas_has_for_them():
    first = lambda name, values: next(iter(data.DataLoader(Column(name, values), 2)))
    assert first("a", [1, 2, 3]).tolist() == [1, 2]
    assert first("s", ["x", "y", "z"]) == ["x", "y"]
    with pytest.raises(TypeError, match=r"'when' holds datetime64.*convert it"):
        first("when", np.asarray(["2020-01-01"] * 3, "datetime64[D]"))


@pytest.mark.oracle  # whose extra brings pandas
def test_own_datasets_and_frames():
    batch = next(iter(data.DataLoader(Own(), 2)))
    assert batch["x"].tolist() == ROWS[:2].tolist() and batch["name"] == ["no. 0", "no. 1"]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2, 3], "s": ["x", "y", "z"], "c": [0.5, 1.5, 2.5]})
    batch = next(iter(data.DataLoader(frame, 2)))
    assert batch["a"].tolist() == [1, 2] and batch["s"] == ["x", "y"]
    assert batch["c"].dtype is wg.float64
    assert next(iter(data.DataLoader(frame["a"], 2))).tolist() == [1, 2]
    x, y = next(iter(data.DataLoader(data.TensorDataset(frame[["a", "c"]], frame["a"]), 2)))
    assert x.tolist() == [[1, 0.5], [2, 1.5]] and y.tolist() == [1, 2]
    frame["when"] = pandas.to_datetime(["2020-01-01"] * 3)
    with pytest.raises(TypeError, match=r"'when' holds datetime64.*convert it"):
        next(iter(data.DataLoader(frame, 2)))
    with pytest.raises(TypeError, match=r"was given an array of (object|str)"):
        data.TensorDataset(frame["s"])


@pytest.mark.oracle  # whose extra brings pandas
def test_samples_of_frames_are_rows():
    pandas = pytest.importorskip("pandas")
    labelled = pandas.Series([10, 11, 12], index=[2, 1, 0])
    assert data.Subset(labelled, [2, 0])[0] == 12
    (batch,) = data.DataLoader(data.ConcatDataset([labelled, labelled[:1]]), 4)
    assert batch.tolist() == [10, 11, 12, 10]
    frame = pandas.DataFrame([[1, 2], [3, 4]])  # whose columns are 0 and 1
    assert data.Subset(frame, [1])[0].tolist() == data.ConcatDataset([frame])[1].tolist() == [3, 4]


@pytest.mark.oracle
@pytest.mark.parametrize("of", ["Int64", "category"])
def test_a_column_has_one_dtype_in_all_batches(of):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": pandas.Series([1, 2, 3, None], dtype="Int64").astype(of)})
    if of == "category":
        frame = pandas.DataFrame({"a": pandas.Categorical([1, 2, 3, None], [1, 2, 3])})
    loader = iter(data.DataLoader(frame, 2))
    assert next(loader)["a"].dtype is wg.int64
    with pytest.raises(TypeError, match=r"'a' holds [Ii]nt64 and misses values; fill them"):
        next(loader)


@given(n=st.integers(0, 40), parts=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_random_split(n, parts):
    fractions = [part / sum(parts) for part in parts]
    split = data.random_split(range(n), fractions, generator=7)
    assert sorted(i for part in split for i in part) == [*range(n)]
    assert all(abs(len(part) - n * f) < 1 + 1e-9 for part, f in zip(split, fractions, strict=True))
    sizes = [len(part) for part in split]
    again = data.random_split(range(n), sizes, generator=7)
    assert [[*part] for part in again] == [[*part] for part in split]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: data.DataLoader([1], 0), ValueError, "positive integer, but got 0"),
        (lambda: data.DataLoader([1], 2.0), ValueError, r"but got 2\.0"),
        (lambda: data.DataLoader([1], drop_last=1), TypeError, "drop_last"),
        (lambda: data.DataLoader([1], None, drop_last=True), ValueError, "none is dropped"),
        (lambda: data.DataLoader([1], num_workers=2), TypeError, "no num_workers.*prefetch=2"),
        (lambda: data.DataLoader([1], pin_memory=True), TypeError, "takes no pin_memory"),
        (lambda: data.DataLoader([1], prefetch=-1), ValueError, "prefetch"),
        (lambda: data.DataLoader([1], shuffle=True, sampler=[0]), ValueError, "with shuffle"),
        (lambda: data.DataLoader([1], 3, batch_sampler=[[0]]), ValueError, "with batch_size"),
        (lambda: data.DataLoader(3), TypeError, "int has neither"),
        (lambda: data.DataLoader([1], shuffle=True, generator=-1), ValueError, "negative"),
        (lambda: data.DataLoader([1], shuffle=True, generator="a"), TypeError, "default_rng"),
        (lambda: data.TensorDataset(), ValueError, "one array or more"),
        (lambda: data.TensorDataset(ROWS, ROWS[:3]), ValueError, r"lengths \[10, 3\]"),
        (lambda: data.TensorDataset(np.array(1)), ValueError, "one has none"),
        (lambda: data.TensorDataset([1, 2]), TypeError, "was given list"),
        (lambda: data.TensorDataset(MASKED), TypeError, "MaskedArray has an arithmetic of its own"),
        (lambda: [*data.DataLoader(MASKED)], TypeError, "MaskedArray has an arithmetic of its own"),
        (lambda: data.default_collate([MASKED]), TypeError, "MaskedArray has an arithmetic"),
        (lambda: data.default_convert([MASKED]), TypeError, "MaskedArray has an arithmetic"),
        (lambda: data.TensorDataset(np.array(["a"])), TypeError, "array of <U1"),
        (lambda: data.ConcatDataset([]), ValueError, "empty"),
        (lambda: data.ConcatDataset([[1]])[1], IndexError, "out of range for 1"),
        (lambda: data.random_split([1, 2], [1]), ValueError, "sum to 1, and the dataset has 2"),
        (lambda: data.random_split([1, 2], [0.5, 0.4]), ValueError, "fractions should sum to 1"),
        (lambda: data.random_split([1], [2, -1]), ValueError, "negative"),
        (lambda: data.RandomSampler([1], num_samples=0), ValueError, "num_samples"),
        (lambda: data.RandomSampler([1], "yes"), TypeError, "replacement"),
        (lambda: [*data.RandomSampler([], num_samples=1)], ValueError, "no samples"),
        (lambda: data.default_collate([]), ValueError, "no samples"),
        (lambda: data.default_collate([None]), TypeError, "a sample is of type NoneType"),
        (lambda: data.default_collate([(1, None)]), TypeError, r"sample\[1\] is of type NoneType"),
        (lambda: data.default_collate([(1,), (1, 2)]), ValueError, "tuple of 1, and another one"),
        (lambda: data.default_collate([[1], 2]), ValueError, "another one is a int"),
        (lambda: data.default_collate([{"a": 1}, {"b": 1}]), ValueError, r"keys \['a'\].*\['b'\]"),
        (lambda: data.default_collate([1, "a"]), TypeError, "number, and another one a str"),
        (
            lambda: data.default_collate([{"x": ROWS}, {"x": ROWS[0]}]),
            ValueError,
            r"a sample\['x'\] has the shape \(10, 2\), and another one \(2,\); pass collate_fn",
        ),
        (lambda: data.default_collate([ROWS, None]), TypeError, "another one a NoneType"),
        (lambda: [*data.DataLoader(ROWS, sampler=[3, 10])], IndexError, "from 10 to 10 of 10 sam"),
        (lambda: [*data.DataLoader(ROWS, sampler=[3, -11])], IndexError, "from -11 to -11 of 10"),
        (lambda: [*data.DataLoader(ROWS, sampler=[0.5])], TypeError, "an index is of float64"),
        (lambda: [*data.DataLoader(ROWS, sampler=ROWS[:, 0] > 3)], TypeError, "of a mask"),
        (lambda: [*data.DataLoader([1, 2], sampler=[True, False])], TypeError, "is of bool"),
        (lambda: data.Subset([1, 2], [True, False])[0], TypeError, "is of bool"),
        (lambda: data.Subset([1, 2], np.array([True, False]))[0], TypeError, "is of bool"),
        (lambda: data.Subset([1, 2], [0.5])[0], TypeError, "is of float"),
        (
            lambda: setattr(data.DataLoader([1]), "batch_size", 2),
            ValueError,
            "batch_size attribute should not be set after DataLoader is initialized",
        ),
    ],
)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


# -- the thread ----------------------------------------------------------------------------------


def threads():
    return [each for each in threading.enumerate() if each.name == "DataLoader"]


class Faulty:
    def __len__(self):
        return 10

    def __getitem__(self, index):
        if index == 5:
            raise KeyError("five")
        return index


@pytest.mark.parametrize("prefetch", [0, 1, 4])
def test_an_error_is_raised_in_the_loop_at_its_place(prefetch):
    seen = []
    with pytest.raises(KeyError) as caught:  # noqa: PT012
        for batch in data.DataLoader(Faulty(), 2, prefetch=prefetch):
            seen += batch.tolist()
    assert seen == [0, 1, 2, 3]
    assert '    raise KeyError("five")' in "".join(traceback.format_exception(caught.value))
    assert not threads()


def test_the_thread_ends_with_the_loop():
    loader = data.DataLoader(range(100), prefetch=3)
    for _ in loader:
        assert len(threads()) == 1
        break
    assert not threads()
    with pytest.raises(ZeroDivisionError):  # noqa: PT012
        for _ in loader:
            raise ZeroDivisionError
    gc.collect()
    assert not threads()
    assert len([*loader]) == 100
    assert not threads()


def test_the_thread_ends_where_an_interrupt_comes_as_it_starts(monkeypatch):
    start, started = threading.Thread.start, []

    def interrupted(thread):
        start(thread)
        started.append(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(iter(data.DataLoader(ROWS, prefetch=2)))
    started[0].join(5)
    assert not started[0].is_alive()


def test_the_thread_is_ahead_by_so_many_batches_and_no_more():
    made, reached = [], threading.Event()

    class Counted:
        def __len__(self):
            return 10

        def __getitem__(self, index):
            made.append(index)
            if index == 3:
                reached.set()
            return index

    loop = iter(data.DataLoader(Counted(), prefetch=3))
    next(loop)
    assert reached.wait(30)
    assert made == [0, 1, 2, 3]
    loop.close()
    assert not threads()


def test_the_thread_has_the_modes_of_the_loop():
    pytest.importorskip("array_api_strict")
    x = wg.ones((3, 2), requires_grad=True)
    with wg.no_grad(), wg.use_backend("array_api_strict"):
        loop = iter(data.DataLoader([(i, x[i].requires_grad) for i in range(3)], prefetch=1))
        tracked = iter(data.DataLoader([x, x], collate_fn=lambda found: found[0] * 2, prefetch=1))
        assert next(loop)[0].backend.name == "array_api_strict"
        assert not next(tracked).requires_grad


def test_progress(monkeypatch, capsys):
    tqdm = pytest.importorskip("tqdm")
    loader = data.DataLoader(range(6), 2)
    next(iter(loader))
    again = data.DataLoader(range(6), 2)
    again.load_state_dict(loader.state_dict())
    bar = data.progress(again, ascii=True)
    assert isinstance(bar, tqdm.tqdm) and (bar.initial, bar.total) == (1, 3)
    assert [batch.tolist() for batch in bar] == [[2, 3], [4, 5]]
    assert "3/3" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=r"tqdm \(.*\); install wengert\[progress\]"):
        data.progress(again)


# -- PyTorch -------------------------------------------------------------------------------------


@pytest.mark.oracle
def test_batches_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    theirs = torch.utils.data

    class Samples(theirs.Dataset):
        def __len__(self):
            return 7

        def __getitem__(self, i):
            return {"x": torch.full((2,), i), "y": (i, f"{i}", i > 3)}, Pair(np.int8(i), i)

    class Iterable(theirs.IterableDataset):
        def __iter__(self):
            return iter(range(7))

    def plain(value):
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, tuple | list):
            return type(value).__name__, [plain(item) for item in value]
        return (
            (str(value.dtype).split(".")[1], value.tolist()) if hasattr(value, "dtype") else value
        )

    for dataset in (Samples(), Iterable(), theirs.TensorDataset(torch.eye(7), torch.arange(7))):
        for size, drop_last in ((1, False), (3, False), (3, True)):
            ours = data.DataLoader(dataset, size, drop_last=drop_last)
            judge = theirs.DataLoader(dataset, size, drop_last=drop_last)
            assert [*map(plain, ours)] == [*map(plain, judge)]
    sampler = theirs.WeightedRandomSampler([1.0, 0.0, 2.0], 5)
    assert {int(x) for x in data.DataLoader(range(3), sampler=sampler)} <= {0, 2}
