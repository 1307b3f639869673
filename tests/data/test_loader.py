"""Loops over batches, places that are taken up again, and what is refused."""

import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wengert as wg
from tests.data.test_collation import Pair
from tests.data.test_datasets import DATASETS, MASKED, ROWS, numbers
from tests.data.test_samplers import epoch, misspelt
from tests.walking import refusals, refuse, walk
from wengert import data


class Stream:
    """Samples one after another."""

    def __iter__(self):
        return iter([(float(i), i) for i in range(10)])


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


#: Calls, their errors, and what these say.
REFUSED = r"""
[*data.DataLoader([np.ones(2), 1.0], 2)] | TypeError | is a ndarray, and another one a float;
data.DataLoader([1], 0) | ValueError | positive integer, but got 0
data.DataLoader([1], 2.0) | ValueError | but got 2\.0
data.DataLoader([1], drop_last=1) | TypeError | drop_last
data.DataLoader([1], None, drop_last=True) | ValueError | none is dropped
data.DataLoader([1], num_workers=2) | TypeError | no num_workers.*prefetch=2
data.DataLoader([1], pin_memory=True) | TypeError | takes no pin_memory
data.DataLoader([1], prefetch=-1) | ValueError | prefetch
data.DataLoader([1], shuffle=True, sampler=[0]) | ValueError | with shuffle
data.DataLoader([1], 3, batch_sampler=[[0]]) | ValueError | with batch_size
data.DataLoader(3) | TypeError | int has neither
data.DataLoader([1], shuffle=True, generator=-1) | ValueError | negative
data.DataLoader([1], shuffle=True, generator="a") | TypeError | default_rng
data.TensorDataset() | ValueError | one array or more
data.TensorDataset(ROWS, ROWS[:3]) | ValueError | lengths \[10, 3\]
data.TensorDataset(np.array(1)) | ValueError | one has none
data.TensorDataset([1, 2]) | TypeError | was given list
data.TensorDataset(MASKED) | TypeError | MaskedArray has an arithmetic of its own
[*data.DataLoader(MASKED)] | TypeError | MaskedArray has an arithmetic of its own
data.default_collate([MASKED]) | TypeError | MaskedArray has an arithmetic
data.default_convert([MASKED]) | TypeError | MaskedArray has an arithmetic
data.TensorDataset(np.array(["a"])) | TypeError | array of <U1
data.ConcatDataset([]) | ValueError | empty
data.ConcatDataset([[1]])[1] | IndexError | out of range for 1
data.random_split([1, 2], [1]) | ValueError | sum to 1, and the dataset has 2
data.random_split([1, 2], [0.5, 0.4]) | ValueError | fractions should sum to 1
data.random_split([1], [2, -1]) | ValueError | negative
data.RandomSampler([1], num_samples=0) | ValueError | num_samples
data.RandomSampler([1], "yes") | TypeError | replacement
[*data.RandomSampler([], num_samples=1)] | ValueError | no samples
data.default_collate([]) | ValueError | no samples
data.default_collate([None]) | TypeError | a sample is of type NoneType
data.default_collate([(1, None)]) | TypeError | sample\[1\] is of type NoneType
data.default_collate([(1,), (1, 2)]) | ValueError | tuple of 1, and another one
data.default_collate([[1], 2]) | ValueError | another one is a int
data.default_collate([{"a": 1}, {"b": 1}]) | ValueError | keys \['a'\].*\['b'\]
data.default_collate([1, "a"]) | TypeError | number, and another one a str
data.default_collate([{"x": ROWS}, {"x": ROWS[0]}]) | ValueError |
    a sample\['x'\] has the shape \(10, 2\), and another one \(2,\); pass collate_fn
data.default_collate([ROWS, None]) | TypeError | another one a NoneType
[*data.DataLoader(ROWS, sampler=[3, 10])] | IndexError | from 10 to 10 of 10 sam
[*data.DataLoader(ROWS, sampler=[3, -11])] | IndexError | from -11 to -11 of 10
[*data.DataLoader(ROWS, sampler=[0.5])] | TypeError | an index is of float64
[*data.DataLoader(ROWS, sampler=ROWS[:, 0] > 3)] | TypeError | of a mask
[*data.DataLoader([1, 2], sampler=[True, False])] | TypeError | is of bool
data.Subset([1, 2], [True, False])[0] | TypeError | is of bool
data.Subset([1, 2], np.array([True, False]))[0] | TypeError | is of bool
data.Subset([1, 2], [0.5])[0] | TypeError | is of float
setattr(data.DataLoader([1]), "batch_size", 2) | ValueError |
    batch_size attribute should not be set after DataLoader is initialized
"""


def test_what_is_refused() -> None:
    walk(refusals(REFUSED), refuse(data=data, ROWS=ROWS, MASKED=MASKED), whole=True)


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
