"""Objects of the library's own classes hold the user's: what is in them is followed or refused."""

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    Subset,
    TensorDataset,
    random_split,
)

CASES: dict[str, Callable[[], Any]] = {}


def case(make: Callable[[], Any]) -> Callable[[], Any]:
    CASES[make.__name__] = make
    return make


def rows() -> Any:
    return wg.reshape(wg.arange(12.0), (6, 2))


class OwnSubset(Subset):
    """The library's code reads attributes that no code of the user's names."""


class OwnDict(collections.UserDict[str, float]):
    """The same, of the standard library."""


@case
def a_subset() -> Any:
    part = Subset(rows(), [0, 1])
    return lambda y: part[0] * y, lambda: setattr(part, "indices", [3, 4])


@case
def a_subclass() -> Any:
    part = OwnSubset(rows(), [0, 1])
    return lambda y: part[0] * y, lambda: setattr(part, "dataset", rows() + 1)


@case
def a_subclass_of_the_standard_library() -> Any:
    held = OwnDict(a=2.0)
    return lambda y: held["a"] * y, lambda: setattr(held, "data", {"a": 3.0})


@case
def tensors_of_a_dataset() -> Any:
    data = TensorDataset(rows(), rows())
    return lambda y: data[1][0] * y, lambda: setattr(data, "tensors", (rows() + 1, rows()))


@case
def a_raw_array_in_place() -> Any:
    raw = np.arange(6.0)
    data = TensorDataset(raw)
    return lambda y: y * float(data[2][0]), lambda: raw.__setitem__(2, 9.0)


@case
def a_sampler() -> Any:
    order = BatchSampler([3, 1, 2], 2, False)
    return lambda y: [y * sum(each) for each in order], lambda: setattr(order, "batch_size", 1)


@case
def the_epoch_of_a_loader() -> Any:
    loader = DataLoader(rows(), batch_size=2)
    return lambda y: y + loader.epoch, lambda: list(loader)


@case
def a_result_with_names() -> Any:
    found = wg.linalg.eigh(wg.eye(2))
    return lambda y: found.eigenvalues * y, lambda: found.eigenvalues.__setitem__(..., 5.0)


@case
def a_part_to_be_replaced() -> Any:
    x = rows()
    part = wg.at(x)[0]
    return lambda y: part.add(y), lambda: x.__setitem__(1, 5.0)


@case
def hooks_on_saved_values() -> Any:
    w, factor = wg.ones(2).requires_grad_(), [1.0]
    hooks = wg.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x * factor[0])

    def slope(y: Any) -> Any:
        with hooks:
            z = (w * w * y).sum()
        return wg.autograd.grad(z, w)[0]

    return slope, lambda: factor.__setitem__(0, 2.0)


@dataclasses.dataclass
class Settings:
    """A dataclass."""

    rate: float = 2.0
    scale: float = dataclasses.field(default=3.0, metadata={"unit": 5.0})


#: What a function may read of a field.
FIELDS: dict[str, Callable[[Any], Any]] = {
    "its object": lambda field: field.default,
    "the class": lambda field: dataclasses.fields(Settings)[0].default,
    "an object": lambda field: sum(x.default for x in dataclasses.fields(Settings())),
    "the dict": lambda field: Settings.__dataclass_fields__["rate"].default,
    "another attribute": lambda field: 2.0 if field.init else 3.0,
    "its parameters": lambda field: 2.0 if Settings.__dataclass_params__.frozen else 3.0,
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_of_dataclasses_are_followed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    field, read = dataclasses.fields(Settings)[0], FIELDS[name]
    compiled = wg.compile(lambda y: y * read(field))
    for default, flag in ((2.0, True), (3.0, False), (2.0, True)):
        monkeypatch.setattr(field, "default", default)
        monkeypatch.setattr(field, "init", flag)
        monkeypatch.setattr(Settings.__dataclass_params__, "frozen", flag)
        for _ in range(3):
            assert compiled(wg.ones(())).item() == read(field)
    assert not compiled.report._fallbacks


def test_a_field_that_the_function_changes() -> None:
    field = dataclasses.field(default=2.0)

    @wg.compile
    def step(y: Any) -> Any:
        field.default += 1
        return y * field.default

    assert [step(wg.ones(())).item() for _ in range(5)] == [3, 4, 5, 6, 7]
    assert field.default == 7.0


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_a_change_is_seen(make: Callable[[], Any]) -> None:
    function, change = make()
    compiled = wg.compile(function)
    for _ in range(2):
        for _ in range(3):
            found, expected = compiled(wg.asarray(2.0)), function(wg.asarray(2.0))
            for x, y in zip(*map(wg.func.tree_leaves, (found, expected)), strict=True):
                assert wg.all(x == y)
        change()


def test_an_order_is_drawn_anew() -> None:
    held = RandomSampler(range(50))
    for function in (
        lambda y: y * wg.asarray([float(i) for i in held]),
        lambda y: y * wg.asarray([float(i) for i in RandomSampler(range(50))]),
        lambda y: y * wg.asarray([float(i) for i in random_split(range(50), [50])[0].indices]),
    ):
        compiled = wg.compile(function)
        orders = [compiled(wg.asarray(1.0)).tolist() for _ in range(4)]
        assert len({tuple(order) for order in orders}) == 4
        assert "ran eagerly" in str(compiled.report)
