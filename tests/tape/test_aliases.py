"""A change in place never reaches another Tensor; where NumPy's or PyTorch's would, it warns."""

import operator
import warnings
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import leaf
from wengert.ops.beyond.windows import sliding_windows

pytestmark = pytest.mark.usefixtures("backend")


def array(*shape, dtype=wg.float64):
    size = int(np.prod(shape))
    return wg.reshape(wg.arange(size, dtype=dtype), shape).clone()


def warned(function, *args):
    """The numbers of the lines that warn, counted from the function's first."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function(*args)
    assert all(one.category is wg.ViewWarning for one in found)
    assert all(one.filename == __file__ for one in found)
    return [one.lineno - function.__code__.co_firstlineno for one in found]


# -- what warns ------------------------------------------------------------------------------------

#: Views of a matrix x, in NumPy or in PyTorch.
VIEWS = {
    "slice": lambda x: x[1:],
    "row": lambda x: x[0],
    "element": lambda x: x[0, 0],
    "new axis": lambda x: x[None, 1:],
    "backwards": lambda x: x[::-1, ::2],
    "number of NumPy's": lambda x: x[np.int64(1)],
    "of a view": lambda x: x[1:][0][1:],
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "real": lambda x: x.real,
    "detach": lambda x: x.detach(),
    "reshape": lambda x: wg.reshape(x, (9,)),
    "permute_dims": lambda x: wg.permute_dims(x, (1, 0)),
    "moveaxis": lambda x: wg.moveaxis(x, 0, 1),
    "expand_dims": lambda x: wg.expand_dims(x, axis=0),
    "squeeze": lambda x: wg.squeeze(x[:1], axis=0),
    "flip": lambda x: wg.flip(x),
    "broadcast_to": lambda x: wg.broadcast_to(x, (2, 3, 3)),
    "broadcast_arrays": lambda x: wg.broadcast_arrays(x, wg.ones(3))[0],
    "unstack": lambda x: wg.unstack(x)[1],
    "iteration": lambda x: next(iter(x)),
    "diagonal": lambda x: wg.linalg.diagonal(x),
    "np.split": lambda x: np.split(x, 3)[1],
    "np.ravel": lambda x: np.ravel(x),
    "np.swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "diagonal of T": lambda x: x.T.diagonal(),
    "linalg.diagonal of mT": lambda x: wg.linalg.diagonal(x.mT, offset=1),
    "einsum of T": lambda x: wg.einsum("ii->i", x.T),
    "Parameter": lambda x: wg.nn.Parameter(x, requires_grad=False),
    "windows": lambda x: sliding_windows(x, size=(2,), stride=(1,), dilation=(1,)),
    "chain": lambda x: chain(x, 100),
}


def chain(x, length):
    for _ in range(length):
        x = x[::-1]
    return x


def change(x):
    x += 1


CHANGES = {
    "+=": change,
    "=": lambda x: x.__setitem__(..., 7.0),
    "mask": lambda x: x.__setitem__(x > -1, 7.0),
    "add_": lambda x: x.add_(1),
    "zero_": lambda x: x.zero_(),
    "fill_": lambda x: x.fill_(3.0),
    "copy_": lambda x: x.copy_(x * 2),
    "div_": lambda x: x.div_(2),
    "out=": lambda x: np.add(x, 1, out=x),
    "np.add.at": lambda x: np.add.at(x, (..., slice(0, 1)) if x.ndim else ..., 1),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_and_what_it_is_of(name):
    x = array(3, 3)
    before = x.tolist()
    v = VIEWS[name](x)
    assert len(warned(change, v)) == 1
    assert x.tolist() == before
    v = VIEWS[name](x)
    before = v.tolist()
    assert len(warned(change, x)) == 1
    assert v.tolist() == before


@pytest.mark.parametrize("name", CHANGES)
def test_every_way_to_change(name):
    x = array(3, 3)
    v = x[1:]
    assert len(warned(CHANGES[name], v)) == 1
    assert len(warned(CHANGES[name], v.clone())) == 0
    del v
    assert len(warned(CHANGES[name], x)) == 0


def test_a_chain_of_brackets_changes_nothing_and_says_so():
    def program():
        x = array(2, 2)
        x[0][1] = 2.0
        x[0][1] += 2.0
        wg.reshape(x, (4,))[0] = 5.0
        assert x.tolist() == [[0.0, 1.0], [2.0, 3.0]]

    assert warned(program) == [2, 3, 4]


def test_siblings_warn_where_they_overlap_alone():
    def program():
        x = array(6)
        a, b, c = x[:3], x[2:], x[::2]
        del x
        b[1:] = 0.0  # of c
        b[0] = 0.0  # of a and c
        c[2] = 0.0  # of b
        a += 1
        del c
        b[1] = 0.0

    assert warned(program) == [4, 5, 6, 7]


def test_one_part_of_a_whole():
    def program():
        q, k, v = wg.unstack(array(3, 4))
        q *= 2
        x = array(4)
        for i in range(1, 4):
            last = x[i - 1 : i]
            x[i] = last[0] + 1
        real, imag = wg.real(z := array(2, dtype=wg.complex128)), wg.imag(z)
        del z
        real += imag
        k -= v

    assert warned(program) == []


def test_what_lists_and_attributes_hold_is_held():
    def program():
        x = array(4)
        views, held = [x[1:]], SimpleNamespace(v=x[:2], views=[{"w": x[1:]}])
        views[0] += 1
        held.v += 1
        held.views[0]["w"] += 1
        i = 0
        views[i] += 1
        x[1:] = held.v.tolist()[:1]

    assert warned(program) == [3, 4, 5, 7, 8]


#: Programs of one line each, whose change is lost though the next statement stores something.
LOST = """
x[0][1] = k; S[0] = 1.0
row = x[0]; row[0] = k; S[0] = 1.0
row = x[0]; row[0] = k; D["a"] = row
x[0][1] += k; S[0] = 1.0
a, b = x; a[0] = k; S[0] = 1.0
last = S[:]; S[:] = S * 2; S[1] = 1.0
row = x[0]; row[0], S[0] = k, k
row = x[0]; row[0] = S[0] = k
S[0] = wg.sum(x[0].copy_(S))
D["a"] = np.add(row := x[0], 1, out=row)
x[1] = x[0].copy_(S)
list(x)[0] += 1
np.split(x, 2)[0] += 1
D["a"] = deque([x[0]]); D["a"][0] += 1
D["a"] = [lambda rows=[x[0]]: rows]; D["a"][0]()[0] += 1
D["a"] = {"b": {"c": {"d": {"e": [x[0]]}}}}; D["a"]["b"]["c"]["d"]["e"][0] += 1
D["a"] = SimpleNamespace(x=x, rows=[x[0]]); D["a"].rows[0] += 1
D["a"] = Slots(x); D["a"].rows[0] += 1
D["a"] = SimpleNamespace(b=lambda: {"c": x[0]}, x=x); D["a"].b()["c"] += 1
x[1] = operator.iadd(x[0], x[1])
x[1] = x[1 - 1].add_(x[1])
x[0] = operator.iadd(row := x[1], x[0])
Slots.parts = {"a": x[0]}; Slots(x).parts["a"] += 1
"""
#: Programs that lose nothing.
KEPT = """
for i in range(2): x[i] += 1
n = 2; x[n // 2] += 1
n = 1; x[n - 1, :1] *= 2; x[n % 2] = operator.iadd(x[n % 2], 1)
D["a"] = [SimpleNamespace(c={"d": [SimpleNamespace(x=x)]})]; D["a"][0].c["d"][0].x[1:] += 1
x.requires_grad_(); wg.sum(x * x).backward(); x.grad[0] *= 0; x.grad[1:] += 1
m = wg.nn.Sequential(wg.nn.Linear(2, 2)).requires_grad_(False); m[0].weight[0] += 1
Slots.buffer = x; slots = Slots(S); slots.buffer[1] = slots.buffer[1].add_(1)
rows = [x]; rows[0][1:] += 1; rows[-1][0] += 1
for t in [x]: t[0] += 1
"""


class Slots:
    __slots__ = ("rows", "x")

    def __init__(self, x):
        self.x, self.rows = x, [x[0]]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("one_line", [False, True])
@pytest.mark.parametrize("lost", [False, True])
def test_changes_that_are_lost_before_a_store(lost, one_line, inside):
    wrong = []
    for text in (LOST if lost else KEPT).strip().splitlines():
        space = dict(globals(), x=array(2, 2), S=array(2), D={}, k=3.0, deque=deque)
        lines = text if one_line else text.replace("; ", "\n")
        if inside:  # with the variables of a function
            given = "x, S, D, k, deque"
            lines = (
                f"def program({given}):\n    "
                + lines.replace("\n", "\n    ")
                + f"\nprogram({given})"
            )
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            exec(lines, space)
        wrong += [] if bool(found) is lost else [text]
    assert wrong == []


# -- what does not ---------------------------------------------------------------------------------


def test_changes_as_they_are_recommended():
    def program():
        x, m = array(5), array(3, 3)
        held = SimpleNamespace(x=x)
        x[1:] += 1
        x[1:] *= x[:-1]
        held.x[1:][0:1] = 3.0
        held.x[2:] -= 1
        slots = Slots(array(2, 2))
        slots.x[1:] += 1
        slots.x[1] = operator.iadd(slots.x[1], 1)
        x[2:] = operator.iadd(x[2:], 1)
        x[1:] = x[:-1]
        x[0] = x[1]
        x += x[::-1]
        m += m.T
        m -= m[0]
        m.copy_(m.T)
        wg.sum(x[1:])
        x += 1
        v = x[1:].clone()
        v += 1
        x *= 2
        m[0], m[1] = m[1].clone(), m[0].clone()

    assert warned(program) == [5]  # two brackets


def test_a_line_that_runs_often_is_known_still():
    def program():
        x = array(5)
        for _ in range(50):  # CPython has made other instructions of these by then
            x[2:] = operator.iadd(x[2:], 1)
            x[1:] += x[:-1]
            x[1:] = x[:-1]

    assert warned(program) == []


def test_the_operand_is_left_out():
    def program():
        x = array(4)
        v = x[1:]
        x[:-1] = v
        m = array(2, 2)
        t = m.T
        m += t

    assert warned(program) == []


COPIES = {
    "reshape that copies": lambda x: wg.reshape(x.T, (9,)),
    "reshape of copy=True": lambda x: wg.reshape(x, (9,), copy=True),
    "list": lambda x: x[[0, 1]],
    "mask": lambda x: x[x > 2],
    "take": lambda x: wg.take(x, wg.asarray([0]), axis=0),
    "roll": lambda x: wg.roll(x, 0),
    "tile": lambda x: wg.tile(x, (1, 1)),
    "repeat": lambda x: wg.repeat(x, 1),
    "concat": lambda x: wg.concat([x]),
    "stack": lambda x: wg.stack([x]),
    "clone": lambda x: x[1:].clone(),
    "tensor": lambda x: wg.tensor(x),
    "asarray": lambda x: wg.asarray(x, copy=True),
    "astype": lambda x: wg.astype(x, x.dtype),
    "positive": lambda x: +x,
    "conj": lambda x: wg.conj(x),
    "arithmetic": lambda x: x[1:] * 1,
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_is_no_view(name):
    x = array(3, 3)
    copied = COPIES[name](x)
    assert warned(change, copied) == []
    assert warned(change, x) == []


def test_a_view_may_go():
    x = array(4)
    v = x[1:]
    del v
    assert warned(change, x) == []
    v = x[1:]
    del x
    assert warned(change, v) == []


# -- the warning -----------------------------------------------------------------------------------


def test_it_names_both_remedies_once_a_line_and_nothing_has_changed_if_it_is_an_error(backend):
    x = array(4)
    v = x[1:]
    with pytest.raises(wg.ViewWarning, match=r"(?s)x\[1:\] \+= 1 .*x\[1:\]\.clone\(\)"):
        v += 1
    with pytest.raises(wg.ViewWarning, match=r"(?s)v = x\[1:\]\. .*x\[1:\]\.clone\(\)"):
        x[:] = 7.0
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0] and v.tolist() == [1.0, 2.0, 3.0]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            v += 1
    # Dask changes the filters in each operation, and then Python forgets what it has shown.
    assert len(found) == (3 if backend.name == "dask" else 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wg.ViewWarning)
        v += 1
    assert v.tolist() == [5.0, 6.0, 7.0]


def changes_a_view(x):
    v = x[1:] * 1
    w = v[:1]
    w += x[0]
    return wg.sum(v * x[1:])


@pytest.mark.parametrize(
    "transform",
    [
        wg.grad,
        lambda f: wg.grad(lambda x: wg.sum(wg.grad(f)(x))),
        lambda f: lambda x: wg.jvp(f, (x,), (x,)),
        wg.hessian,
    ],
    ids=["grad", "grad of grad", "jvp", "hessian"],
)
def test_under_transforms_it_is_the_same(transform):
    x = array(4)

    def program():
        transform(changes_a_view)(x)

    with pytest.warns(wg.ViewWarning) as found:
        program()
    assert {one.lineno for one in found} == {changes_a_view.__code__.co_firstlineno + 3}


def test_a_compiled_function_warns_where_it_is_recorded_and_of_nothing_else():
    def changes_the_whole(x):
        x = x * 1
        x[1:] += 1
        x[1:] = x[:-1]
        return wg.sum(x * x)

    x = array(4)
    step = wg.compile(changes_a_view)
    with pytest.warns(wg.ViewWarning):
        assert step(x).item() == 14.0
    assert wg.compile(changes_the_whole)(x).item() == warned_value(changes_the_whole, x)


def warned_value(function, x):
    assert warned(function, x) == []
    return function(x).item()


def test_a_state_dict_keeps_its_values_in_silence():
    model = wg.nn.Linear(2, 1)
    kept = model.state_dict()
    before = kept["weight"].tolist()

    def program():
        with wg.no_grad():
            model.weight -= 1.0
        model.load_state_dict(kept)

    assert warned(program) == []
    assert kept["weight"].tolist() == before


def test_numpy_memory_is_nobody_elses_tensor():
    host = np.zeros(3)

    def program():
        x = wg.asarray(host)
        x += 1

    assert warned(program) == []
    assert host.tolist() == [0.0, 0.0, 0.0]


# -- in place: values are shared, storage never is ------------------------------------------------


def test_in_place_on_a_leaf_is_an_error_outside_no_grad():
    x = leaf(1.0, 2.0)
    told = r"^a leaf Variable that requires grad is being used in an in-place operation\. .*no_grad"
    with pytest.raises(RuntimeError, match=told):
        x += 1
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x[0] = 5.0
    np.testing.assert_array_equal(x.detach().numpy(), [1.0, 2.0])
    assert x.is_leaf
    with wg.no_grad():
        x += 1
        x[0] = 5.0
    np.testing.assert_array_equal(x.detach().numpy(), [5.0, 3.0])
    assert x.is_leaf and x.requires_grad


def test_what_the_tape_saved_stays():
    x = leaf(2.0)
    y = wg.exp(x)
    z = y * 1.0
    y += 100.0  # exp saved its result
    z.backward()
    assert x.grad.item() == pytest.approx(np.exp(2.0))


def test_an_untracked_tensor_becomes_tracked():
    x, y = leaf(2.0), wg.zeros(1, dtype=wg.float64)
    y += x * 3
    assert y.requires_grad and not y.is_leaf
    y.backward()
    assert x.grad.item() == 3.0
