"""Values as JSON: what comes back, what cannot be described, and hostile descriptions."""

import json
import math
import struct
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import wengert as wg
from wengert import nn

numbers = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**70, max_value=2**300),
    st.floats(),
    st.complex_numbers(),
    st.text(),
)
keys = st.one_of(
    st.integers(), st.text(), st.none(), st.floats(allow_nan=False), st.tuples(st.integers())
)
nests = st.recursive(
    numbers,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
    ),
)


def exact(value):
    """All of a value that equality does not tell: types, signs of zeros, nans."""
    if isinstance(value, list | tuple):
        return type(value), [exact(item) for item in value]
    if isinstance(value, dict):
        return type(value), [(exact(k), exact(v)) for k, v in value.items()]
    if isinstance(value, float) and math.isnan(value):
        return float, "nan"
    if isinstance(value, complex):
        return complex, exact(value.real), exact(value.imag)
    return type(value), repr(value)


@example(value=[complex(-0.0, math.inf), (2 - 1j, math.nan), {1.5: -math.inf}])
@given(value=nests)
def test_values_come_back_exactly(value, tmp_path_factory):
    path = tmp_path_factory.mktemp("values") / "x"
    wg.save(path, value=value)
    assert exact(wg.load(path)) == exact({"value": value})


def bits(state):
    return {name: tensor.numpy().tobytes() for name, tensor in state.items()}


# -- refusals ------------------------------------------------------------------------------------


class Point(NamedTuple):
    x: int


def nested(n):
    value = []
    for _ in range(n):
        value = [value]
    return value


ITSELF = []
ITSELF.append(ITSELF)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, {2}]}, r"value\.a\.1 is of type set, and can't be stored"),
        (Point(1), "value is of type Point"),
        (b"bytes", "type bytes"),
        (np.array(["a"]), "type ndarray of <U1"),
        (
            [np.ma.array([1.0], mask=True)],
            r"value\.0 is a MaskedArray, of which a part would be lost",
        ),
        (nn.Linear, "value is the class Linear; give an object"),
        (nested(70), "nested more than 64 deep"),
        ([1 << 14_000], "more than 14000 bits"),
        (lambda: 1, "type function"),
        (ITSELF, "contains itself"),
    ],
)
def test_what_cannot_be_saved_leaves_the_file_alone(value, message, path):
    wg.save(path, epoch=1)
    with pytest.raises((TypeError, ValueError), match=message):
        wg.save(path, epoch=2, value=value)
    assert wg.load(path) == {"epoch": 1}
    assert [*path.parent.iterdir()] == [path]


def rewritten(path, change):
    """Write a file again with other descriptions, and no digest."""
    content = path.read_bytes()
    n = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + n])
    text = header["__metadata__"]["wengert"]
    del header["__metadata__"]["wengert_blake2b"]
    header["__metadata__"]["wengert"] = change(text)
    made = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(made)) + made + content[8 + n :])


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.whole
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"version": 1', '"version": 2', "of version 2, and this Wengert reads 1"),
        ('"version": 1', '"version": "1"', "of version '1'"),
        ('"version": 1', '"other": 1', "'version', 'content' was expected"),
        ("3]", DEEP + "]", "can't be read"),
        ("3]", "[" * 90 + "]" * 90 + "]", "nested more than 64 deep"),
        ("3]", "NaN]", "NaN is no JSON"),
        ("3]", "9" * 5000 + "]", "can't be read"),
        ("3]", '{"float": "1e3"}]', "'1e3' is no float"),
        ("3]", '{"float": [1]}]', "is no float"),
        ("3]", '{"complex": [1.0]}]', "is no complex"),
        ("3]", '{"complex": [1, 2]}]', "'float' was expected"),
        ("3]", '{"pickle": "x"}]', "'pickle' that this version does not know"),
        ("3]", '{"tuple": 3}]', "'tuple' that this version"),
        ("3]", '{"tuple": [], "dict": []}]', "2 keys instead of one"),
        ("3]", '{"dict": 3}]', "no pairs"),
        ("3]", '{"dict": [[1, 2, 3]]}]', "no pairs"),
        ("3]", '{"dict": [[1, 2], [1.0, 3]]}]', "key 1.0 twice"),
        ("3]", '{"dict": [[[], 2]]}]', "list is the key of a dict"),
        ("3]", '{"tensor": "nothing"}]', "array 'nothing' is missing, or"),
        ('{"tensor": "model.bias"', '{"complex tensor": "model.bias"', "no complex numbers"),
        ('{"tensor": "model.bias"', '{"scalar": "model.bias"', "no scalar"),
        ("3]", "3, 4]", "list of its states"),
        ('"epoch"', '"model"', "'model' can't be read, or is there twice"),
        ('"value"', '"code"', "'epoch' can't be read"),
        ('{"version"', '["version"', "can't be read"),
        ('"content": [', '"content": 3, "x": [', "was expected"),
        ('"model.weight"}', '"model.bias"}', "'model.bias' is missing, or named twice"),
        ('"model.weight"}', "", "can't be read"),
        ('["weight", {"tensor": "model.weight"}], ', "", "Missing key"),
    ],
)
def test_hostile_descriptions_change_nothing(old, new, message, path):
    model, other = nn.Linear(2, 3), nn.Linear(2, 3)
    wg.save(path, model=model, epoch=3)
    before = bits(other.state_dict())
    rewritten(path, lambda text: text.replace(old, new, 1))
    with pytest.raises(ValueError, match=message):
        wg.load(path, model=other)
    assert bits(other.state_dict()) == before
