"""What an array holds is stored in it, as NumPy's casting of the same kind has it; the rest raises.

A value that is cut without a word is a wrong number, and its derivative is lost.
"""

import itertools

import numpy as np
import pytest

import wengert as wg
from tests.walking import walk


def put(key):
    def store(x, value):
        x[key] = value
        return x

    return store


def called(name, *args):
    """A method that changes a Tensor, or returns another."""
    return lambda x, value: getattr(x, name)(*args, value)


def added(x, value):
    x += value
    return x


def out_of(function, **options):
    """One of NumPy's functions with ``out=``."""
    return lambda x, value: function(np.zeros(3, dtype=x.dtype.name), value, out=x, **options)


def changed(function):
    """A ufunc's ``at``, which changes a Tensor."""

    def store(x, value):
        function.at(x, 0, value)
        return x

    return store


MASK = np.array([True, False, True])

#: What stores a value in zeros of shape (3,), of which some are then that value.
STORES = {
    "x[0] =": put(0),
    "x[:] =": put(slice(None)),
    "x[mask] =": put(MASK),
    "x[indices] =": put(np.array([0, 2])),
    "x += value": added,
    "fill_": called("fill_"),
    "copy_": called("copy_"),
    "masked_fill": called("masked_fill", MASK),
    "at.set": lambda x, value: wg.at(x)[0].set(value),
    "at.set of repeated indices": lambda x, value: wg.at(x)[np.array([0, 0])].set(value),
    "at.add": lambda x, value: wg.at(x)[0].add(value),
    "full": lambda x, value: wg.full(3, value, dtype=x.dtype),
    "full_like": wg.full_like,
    "pad": lambda x, value: wg.pad(x, 1, constant_values=value),
    "pad with pairs": lambda x, value: wg.pad(x, 1, constant_values=(0, value)),
    "np.add out": out_of(np.add),
    "np.add where out": out_of(np.add, where=MASK),
    "np.add.at": changed(np.add),
    "np.full_like": np.full_like,
    "np.insert": lambda x, value: np.insert(x, 0, value),
    "init.constant_": wg.nn.init.constant_,
}
#: These are for numbers: booleans and integers together are integers.
NUMERIC = ("x += value", "at.add", "np.add out", "np.add where out", "np.add.at")
#: What takes arrays without axes, or such Tensors too, for numbers.
PLAIN = {"full": ("array",), "full_like": ("array",), "init.constant_": ("array", "tensor")}

HOLDING = ("bool", "uint8", "int8", "float32", "complex64")
VALUES = (True, 1, 2, -1, 300, 2.5, 1j)
FORMS = {
    "number": lambda value: value,
    "scalar": lambda value: np.asarray(value)[()],
    "array": np.asarray,
    "tensor": lambda value: wg.asarray(np.asarray(value)),
    "tracked": lambda value: wg.asarray(np.asarray(value), requires_grad=True),
}


def fits(name, value, form, dtype):
    if type(value) is int and form in ("number", "scalar", *PLAIN.get(name, ())):
        try:
            return value in (0, 1) if dtype == "bool" else np.asarray(value, dtype=dtype) == value
        except OverflowError:
            return False
    return np.can_cast(np.asarray(value).dtype, dtype, "same_kind")


@pytest.mark.parametrize("name", STORES)
def test_a_value_is_stored_as_it_is_or_not_at_all(name):
    def check(_, dtype, form, value):
        if form == "tracked" and (type(value) in (bool, int) or name == "init.constant_"):
            return
        if value == 300 and form in ("array", "tensor"):  # of one kind, integers wrap
            return
        x, given = wg.zeros(3, dtype=dtype), FORMS[form](value)
        if fits(name, value, form, dtype):
            result = STORES[name](x, given)
            assert result.dtype.name == dtype
            assert value in result.tolist()
            assert result.requires_grad == (form == "tracked")
        else:
            with pytest.raises((TypeError, OverflowError, RuntimeError)) as caught:
                STORES[name](x, given)
            said = str(caught.value)
            assert dtype in said or "takes integer" in said, said
            assert x.tolist() == [0, 0, 0]

    holding = HOLDING[1:] if name in NUMERIC else HOLDING  # booleans are not added up
    walk(itertools.product([name], holding, FORMS, VALUES), check)


#: What takes a list as well.
LISTS = ("x[:] =", "copy_", "at.add", "np.full_like", "np.insert")


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint64", "float32"])
@pytest.mark.parametrize("name", LISTS)
def test_integers_in_a_list_are_stored_by_their_values(name, dtype, backend):
    key = slice(0, 2) if name == "at.add" else 0
    store = (lambda x, value: wg.at(x)[key].add(value)) if name == "at.add" else STORES[name]
    length = 3 if name == "np.insert" else 2
    assert store(wg.zeros(length, dtype=dtype), [3, 7]).tolist()[:2] == [3, 7]
    if dtype != "float32":
        for wrong, error in (([2**64, 1], OverflowError), ([-129, 1], OverflowError)):
            x = wg.zeros(length, dtype=dtype)
            with pytest.raises(error, match=f"the number {wrong[0]} is out of bounds for {dtype}"):
                store(x, wrong)
        with pytest.raises(TypeError, match=f"a real floating value does not fit .* {dtype}"):
            store(wg.zeros(length, dtype=dtype), [0.5, 1])
    if dtype == "uint64":  # which NumPy has as floating numbers
        assert store(wg.zeros(length, dtype=dtype), [2**63 + 1, 1]).tolist()[0] == 2**63 + 1


@pytest.mark.parametrize(
    ("call", "store"),
    [
        ("at.set", lambda x, value: wg.at(x)[0].set(value)),
        ("at.add", lambda x, value: wg.at(x)[0].add(value)),
        (r"x\[key\] = value", put(0)),
        ("add", lambda x, value: x + value),
        ("subtract", lambda x, value: value - x),
        ("maximum", wg.maximum),
        ("where", lambda x, value: wg.where(x > 0, x, value)),
        ("add", np.add),
        ("np.insert", lambda x, value: np.insert(x, 1, value)),
        ("np.append", np.append),
        ("np.where", lambda x, value: np.where(x > 0, x, value)),
        ("np.select", lambda x, value: np.select([x > 0], [x], value)),
        ("np.hstack", lambda x, value: np.hstack([x, value])),
        ("np.diff", lambda x, value: np.diff(x, append=value)),
        ("np.isin", np.isin),
    ],
)
def test_an_error_names_the_call_and_the_number(call, store, backend):
    for value in (300, -1, 10**30, np.int64(300)):
        x = wg.asarray([1, 2], dtype="uint8")
        with pytest.raises(
            OverflowError, match=rf"^{call}: the number {value} .* uint8 \(0 to 255"
        ):
            store(x, value)


def test_a_library_that_refuses_a_number_compares_it(backend):
    x = wg.asarray([1, 2], dtype="uint8")
    assert (x == 300).tolist() == [False, False]
    assert (x < 300).tolist() == [True, True]


@pytest.mark.parametrize("store", ["x[0] =", "fill_", "full", "full_like", "pad"])
@pytest.mark.parametrize("dtype", ["uint8", "bool"])
def test_a_compiled_function_stores_no_number_that_does_not_fit(dtype, store, backend):
    step = wg.compile(lambda x, value: STORES[store](wg.astype(x, x.dtype), value))
    x = wg.zeros(3, dtype=dtype)
    for value in (1, 0, 300, 1):
        if value == 300:
            with pytest.raises(OverflowError, match=f"the number 300 is out of bounds for {dtype}"):
                step(x, value)
        else:
            assert value in step(x, value).tolist()


def test_numpys_own_ways_of_writing_to_out():
    flags = wg.asarray([True, False, True])
    np.less(wg.asarray([1, 2, 3]), wg.asarray([2, 3, 3]), out=flags, where=np.array([0, 1, 1], "?"))
    assert flags.tolist() == [True, True, False]
    whole = wg.zeros(2, dtype="int64")
    np.multiply(wg.asarray([1.0, 2.0]), 1.7, out=whole, casting="unsafe")
    assert whole.tolist() == [1, 3]


def test_what_is_made_of_steps_holds_them():
    assert wg.arange(2.5, dtype="int64").tolist() == [0, 1, 2]  # which counts up to it
    assert wg.arange(1.0, 4.0, 2.0, dtype="int64").tolist() == [1, 3]
    for make in (
        lambda value: wg.arange(value, 3, dtype="int64"),
        lambda value: wg.arange(0, 3, value, dtype="int64"),
        lambda value: wg.linspace(0, value, 5, dtype="int64"),
    ):
        for value in (0.5, wg.tensor(0.5, requires_grad=True)):
            with pytest.raises(TypeError, match=r"real floating value does not fit .* int64"):
                make(value)


def test_a_range_of_integers_holds_its_ends():
    assert wg.arange(5, -1, -1, dtype="uint8").tolist() == [5, 4, 3, 2, 1, 0]
    assert wg.arange(0, -1, dtype="uint8").tolist() == []
    for start, stop, wrong in ((250, 260, 259), (-1, 3, -1), (3, -2, -1)):
        with pytest.raises(OverflowError, match=f"arange: the number {wrong} is out of bounds"):
            wg.arange(start, stop, -1 if stop < start else 1, dtype="uint8")


def test_lists_of_lists_that_differ_in_length():
    for store in ("x[:] =", "copy_", "fill_"):
        with pytest.raises(ValueError, match="the sequences differ in length"):
            STORES[store](wg.zeros(2), [[1], [1, 2]])


def test_bounds_of_another_kind():
    """Of floating bounds the result is floating; of complex ones, which have no order, nothing."""
    x = wg.asarray([1, 2, 3])
    assert wg.clip(x, 1.5).tolist() == [1.5, 2, 3]
    for bound in (1j, wg.asarray(1j)):
        with pytest.raises(TypeError, match="bounds of dtype complex64 do not fit"):
            wg.clip(wg.ones(2), bound)
    assert wg.clip(wg.asarray([1, 9], dtype="uint8"), np.int64(2), np.int64(3)).tolist() == [2, 3]
    for narrow, bounds in (("uint8", (None, -1)), ("int8", (300, None))):
        bounds = [None if bound is None else wg.asarray(bound) for bound in bounds]
        with pytest.raises(TypeError, match=f"bounds of dtype int64 do not fit .* {narrow}"):
            wg.clip(wg.asarray([1, 2], dtype=narrow), *bounds)
