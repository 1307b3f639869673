"""Datasets of arrays, of classes of one's own, of frames; their parts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wengert as wg
from wengert import data

ROWS = np.arange(20.0).reshape(10, 2)
MASKED = np.ma.array([1.0, 2.0], mask=[False, True])


class Own:
    """A dataset by its two methods alone."""

    def __len__(self):
        return 10

    def __getitem__(self, i):
        return {"x": ROWS[i], "n": i, "name": f"no. {i}"}


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


@given(n=st.integers(0, 40), parts=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_random_split(n, parts):
    fractions = [part / sum(parts) for part in parts]
    split = data.random_split(range(n), fractions, generator=7)
    assert sorted(i for part in split for i in part) == [*range(n)]
    assert all(abs(len(part) - n * f) < 1 + 1e-9 for part, f in zip(split, fractions, strict=True))
    sizes = [len(part) for part in split]
    again = data.random_split(range(n), sizes, generator=7)
    assert [[*part] for part in again] == [[*part] for part in split]
