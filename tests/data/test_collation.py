"""Samples become batches of their structure."""

from collections import OrderedDict
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

import wengert as wg
from tests.backends import tiny
from tests.data.test_datasets import ROWS
from wengert import data
from wengert.backends import get_backend


class Pair(NamedTuple):
    x: object
    n: int


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
