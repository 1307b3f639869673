"""Raw arrays among the arguments: the library's own functions, with its own results and types."""

import copy
import math
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import wengert as wg
from tests.compiler.bits import same_bits
from tests.compiler.ordinary import alike
from wengert.compiler.capture import raw
from wengert.nn import functional

HELD = np.arange(4.0)

#: Functions of an array of 3 rows and 4 columns, of which there is a program.
RECORDED: dict[str, Callable[[Any], Any]] = {
    "methods": lambda p: (p.sum(), p.mean(axis=0), p.var(), p.max() > 0, p.argmax(axis=1)),
    "operators": lambda p: (p * 2 + 1, 2 - p, p @ p.T, p // 1, p % 1, 2**p, -p, abs(p), +p),
    "more operators": lambda p: (divmod(p, 1), p**2, (p > 0) & ~(p < 1), p == p, p != 0, p <= 1),
    "ufuncs": lambda p: (np.sin(p), np.exp(p, dtype="f8"), np.add.reduce(p), np.maximum(p, 0)),
    "more ufuncs": lambda p: (np.add.outer(p[0], p[1]), np.add.accumulate(p), np.isnan(p)),
    "SciPy": lambda p: scipy.special.expit(p),
    "functions": lambda p: (np.sum(p, axis=1, keepdims=True), np.median(p), np.where(p > 0, p, 0)),
    "joined": lambda p: (np.concatenate([p, p]), np.stack([p, p], axis=1), np.vstack((p, p))),
    "parted": lambda p: (
        np.split(p, 2, axis=1),
        np.meshgrid(p[0], p[1]),
        np.broadcast_to(p, p.shape),
    ),
    "linear algebra": lambda p: (np.linalg.norm(p), np.linalg.qr(p), np.einsum("ij,kj->ik", p, p)),
    "views": lambda p: (
        p.T,
        p.T.reshape(-1) * 1,
        p.ravel(),
        p[None],
        p[..., None],
        p.swapaxes(0, 1),
    ),
    "orders": lambda p: (p.T * 1, np.exp(p.T), p[::-1] + 0, np.sum(np.exp(p.T))),
    "indices": lambda p: (p[0], p[0, 0], p[:, 1:], p[[0, 1]], p[np.array([0, 1])], p[-1][::2]),
    "its own indices": lambda p: (p[p.argmax(axis=0) % 3], np.take_along_axis(p, p.argsort(), 1)),
    "dtypes": lambda p: (
        p.astype(np.float64),
        p.view(np.int32),
        p.real,
        p.dtype,
        p * np.float64(2),
    ),
    "attributes": lambda p: (p.shape, p.ndim, p.size, p.nbytes, len(p), np.shape(p), p.strides),
    "rows": lambda p: ([row * 2 for row in p], sum(p), [x for row in p for x in row]),
    "made here": lambda p: (np.zeros(3), np.ones_like(p), p + np.arange(4), np.arange(4) * p),
    "made elsewhere": lambda p: (HELD * p, p, HELD, np.float32(1) * p.sum()),
    "isinstance": lambda p: isinstance(p, np.ndarray) * p + isinstance(p[0, 0], np.floating),
    "copies": lambda p: (p.copy(), copy.copy(p), copy.deepcopy([p])[0]),
    "a number by the name of it": lambda p: p[0, 0] * p.item(3),
    "Wengert's functions": lambda p: (wg.sin(p), wg.asarray(p) * 2, wg.Tensor(p) + p, wg.sum(p)),
    "a Tensor of it": lambda p: wg.asarray(p, requires_grad=True).detach() + wg.zeros_like(p),
}


def in_place(p: Any) -> Any:
    p += 1
    return p.sum()


def assigned(p: Any) -> Any:
    q = p.copy()
    q[0] = 0
    return q


#: Those that run as they are, because their course or their shapes depend on values.
PLAIN: dict[str, Callable[[Any], Any]] = {
    "a branch": lambda p: 1 if p[0, 0] > 0 else 2,
    "another branch": lambda p: p * 2 if (p > 0).any() else p,
    "float": lambda p: float(p[0, 0]) * p,
    "bool": lambda p: bool(p.any()),
    "item that decides": lambda p: [2] * (p.item(0) > 0),
    "lists": lambda p: p.tolist(),
    "math": lambda p: math.sin(p[0, 0]),
    "type": lambda p: p if type(p) is np.ndarray else p * 2,
    "masks": lambda p: p[p > 0],
    "nonzero": lambda p: np.nonzero(p > 0),
    "unique": lambda p: np.unique(np.round(p)),
    "allclose": lambda p: np.allclose(p, p),
    "text": lambda p: str(p),
    "among": lambda p: 0.0 in p,
    "in place": in_place,
    "assigned": assigned,
    "out": lambda p: np.maximum(p, 0, out=np.empty_like(p)),
    "sorted in place": lambda p: p.sort(),
    "flags": lambda p: p.flags.c_contiguous,
}

#: Functions of an array and of a Tensor of its shape.
BESIDE: dict[str, Callable[[Any, Any], Any]] = {
    "operators": lambda p, x: (x * p, p * x, p @ x.T, x - p, p - x, p > x, x >= p, p / x),
    "powers": lambda p, x: (p * p) ** wg.abs(x),
    "ufuncs": lambda p, x: (np.add(p, x), np.add(x, p), np.where(p > 0, x, p)),
    "functions": lambda p, x: (wg.where(p > 0, x, p), wg.maximum(x, p), np.concatenate([p, x])),
    "scalars": lambda p, x: (p.sum() * x, x * p[0, 0], p[0, 0] * x, p.mean() * wg.sum(x)),
    "indices": lambda p, x: (x[np.abs(p[:, 0]).argsort()], wg.take(x, p.argmax(axis=1), axis=1)),
    "losses": lambda p, x: (functional.mse_loss(x, p), functional.linear(x, p)),
    "slopes": lambda p, x: wg.value_and_grad(lambda x: wg.sum(wg.tanh(x * p) @ p.T))(x),
}


def points(number: int = 4) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(3, 4)).astype(np.float32) for _ in range(number)]


@pytest.mark.parametrize("name", RECORDED)
def test_recorded(name: str) -> None:
    body = RECORDED[name]

    def copies(p: Any) -> Any:
        found = body(p)
        return [own(x) for x in (found if isinstance(found, tuple) else (found,))]

    alike(lambda: (copies, list), [(p,) for p in points()])


def own(x: Any) -> Any:
    """Arrays that are no views of the argument."""
    if isinstance(x, list | tuple):
        return [own(part) for part in x]
    return x + 0 if isinstance(x, np.ndarray) else x


@pytest.mark.parametrize("name", BESIDE)
def test_beside_a_tensor(name: str) -> None:
    calls = [(p, wg.asarray(p[::-1] * 2)) for p in points()]
    alike(lambda: (BESIDE[name], list), calls)


@pytest.mark.parametrize("name", PLAIN)
def test_as_they_are(name: str) -> None:
    f = alike(lambda: (PLAIN[name], list), [(p,) for p in points()], compiles=False)
    assert f.report.recordings == 0
    with pytest.raises(wg.compiler.capture.errors.TraceError):
        wg.compile(PLAIN[name], strict=True)(points()[0])


#: Transforms with respect to what is given in a kind of one's own, beside a parameter or a Tensor.
TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda w, p: wg.grad(lambda v: wg.sum(w * v**3))(p),
    "value_and_grad": lambda w, p: wg.value_and_grad(lambda v: wg.sum(w * v**3))(p),
    "vjp": lambda w, p: wg.func.vjp(lambda v: wg.sum(w * v**3), p)[1](wg.asarray(2.0)),
    "jvp": lambda w, p: wg.func.jvp(lambda v: w * v**3, (p,), (p,)),
    "hessian": lambda w, p: wg.hessian(lambda v: wg.sum(w * v**3))(p),
    "jacrev": lambda w, p: wg.func.jacrev(lambda v: w * v**3)(p),
    "linearize": lambda w, p: wg.func.linearize(lambda v: w * v**3, p)[1](p),
    "aux": lambda w, p: wg.grad(lambda v: (wg.sum(v**3), v * 2), has_aux=True)(p),
    "a penalty": lambda w, p: wg.grad(
        lambda u: wg.sum(u * u) + wg.sum(wg.grad(lambda v: wg.sum(u * v**3))(p) ** 2)
    )(w),
}
KINDS: dict[str, Callable[[float], Any]] = {
    "array": lambda by: np.asarray([by, 2.0], dtype=np.float32),
    "array without axes": lambda by: np.asarray(by, dtype=np.float32),
    "scalar": np.float32,
    "number": lambda by: by,
}


@pytest.mark.parametrize("held", ["argument", "attribute", "made"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_answer_in_kind(name: str, kind: str, held: str) -> None:
    """As eagerly: a Tensor, where a parameter's derivative is followed."""
    for requires_grad in (False, True):

        def make(requires_grad: bool = requires_grad) -> Any:
            w, own = wg.asarray([1.0, 3.0], requires_grad=requires_grad), {"p": KINDS[kind](1.5)}
            place = {
                "argument": lambda p: p,
                "attribute": lambda p: own["p"],
                "made": lambda p: KINDS[kind](2.5),
            }[held]

            def step(p: Any) -> Any:
                found = TRANSFORMS[name](w, place(p))
                leaves = wg.func.tree_leaves(found)
                tracked = [x for x in leaves if getattr(x, "requires_grad", False)]
                if tracked:
                    w.grad = None
                    sum(wg.sum(x**2) for x in tracked).backward()
                    found = [x.detach() if isinstance(x, wg.Tensor) else x for x in leaves]
                return found, w.grad

            return step, list

        calls = [(KINDS[kind](by),) for by in (1.5, 1.5, -2.0, 1.5)]
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # that the compiler has failed
            alike(make, calls, compiles=False)


def test_a_penalty_on_slopes_at_raw_points() -> None:
    """Its gradient for the parameters is not lost."""

    def make() -> Any:
        model = wg.nn.Sequential(wg.nn.Linear(1, 4), wg.nn.Tanh(), wg.nn.Linear(4, 1))
        optimizer = wg.optim.SGD(model.parameters(), lr=0.1)

        def step(p: Any) -> Any:
            optimizer.zero_grad()
            slopes = wg.grad(lambda v: wg.sum(model(v)))(p)
            loss = wg.mean(model(p) ** 2) + wg.mean((slopes - 1) ** 2)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step, lambda: [x.detach() for x in model.parameters()]

    alike(make, [(np.linspace(0, i, 5, dtype=np.float32)[:, None],) for i in range(1, 5)])


def test_what_is_returned_is_the_callers_own() -> None:
    f = wg.compile(lambda p: (np.zeros(3), p))
    p = points()[0]
    for _ in range(4):
        made, same = f(p)
        assert same is p
        assert not made.any()
        made += 1
    assert f.report.recordings == 1


@pytest.mark.parametrize("view", [lambda p: p[0], lambda p: p.T, lambda p: p.reshape(-1)])
def test_a_view_of_an_argument_is_one_in_each_call(view: Any) -> None:
    f = wg.compile(view)
    p = points()[0]
    for _ in range(4):
        f(p)[...] += 1
    expected = points()[0]
    for _ in range(4):
        view(expected)[...] += 1
    assert same_bits(p, expected)
    assert np.shares_memory(f(p), p)
    assert "shares memory with p" in str(f.report)


def test_a_view_of_what_is_not_an_argument_is_told_by_its_name() -> None:
    held = np.arange(3.0)
    f = wg.compile(lambda p: (held[1:], p * 2))
    for _ in range(3):
        assert np.shares_memory(f(np.ones(3))[0], held)
    assert "shares memory with held, which" in str(f.report)


class Holder:
    """Holds arrays that functions replace."""

    def __init__(self) -> None:
        self.a, self.b = np.arange(3.0), np.ones(3)
        self.held = {"k": np.ones(3)}
        self.tensor = wg.zeros(3)


def _kept_and_returned(o: Any, x: Any) -> Any:
    o.a = o.a * 2
    return o.a


def _kept_twice(o: Any, x: Any) -> Any:
    o.a = o.b = o.a + x
    return o.a * 1


def _kept_in_a_dict_too(o: Any, x: Any) -> Any:
    o.a = o.held["k"] = o.held["k"] + x
    return [o.a, o.a, o.a * 2]


def _given_to_another_place(o: Any, x: Any) -> Any:
    o.b = o.a
    o.a = o.a + x
    return o.b, o.a


def _swapped(o: Any, x: Any) -> Any:
    o.a, o.b = o.b, o.a
    return o.a + x


def _argument_kept(o: Any, x: Any) -> Any:
    o.b = x
    return x * 1


def _view_kept(o: Any, x: Any) -> Any:
    o.b = o.a[1:]
    return o.a * 1


def _view_of_what_is_kept(o: Any, x: Any) -> Any:
    o.a = o.a + x
    return o.a[1:]


def _view_of_the_state(o: Any, x: Any) -> Any:
    return o.a.T


def _the_one_before(o: Any, x: Any) -> Any:
    before = o.a
    o.a = o.a + x
    return before


def _views_of_one(o: Any, x: Any) -> Any:
    made = x * 2
    return made, made[1:]


def _parts_of_one(o: Any, x: Any) -> Any:
    return tuple(np.split(x * 2, 3))


def _tensor_of_what_is_kept(o: Any, x: Any) -> Any:
    o.a = o.a * 2
    return wg.asarray(o.a)


def _tensor_kept(o: Any, x: Any) -> Any:
    o.a = o.a * 2
    o.tensor = wg.asarray(o.a)
    return o.a


MEMORY = {f.__name__: f for f in (
    _kept_and_returned, _kept_twice, _kept_in_a_dict_too, _given_to_another_place, _swapped,
    _argument_kept, _view_kept, _view_of_what_is_kept, _view_of_the_state, _the_one_before,
    _views_of_one, _parts_of_one, _tensor_of_what_is_kept, _tensor_kept,
)}  # fmt: skip


@pytest.mark.parametrize("check", [None, 0])
@pytest.mark.parametrize("change", ["nothing", "results", "state"])
@pytest.mark.parametrize("name", MEMORY)
def test_what_shares_memory_after_a_call(name: str, change: str, check: int | None) -> None:
    """Which arrays of the results, the state and the arguments are, or share, what others have."""

    def run(compiled: bool) -> list[Any]:
        holder, found = Holder(), list[Any]()
        step = lambda x: MEMORY[name](holder, x)
        function = wg.compile(step, check=check) if compiled else step
        for i in range(5):
            x, before = np.full(3, i + 1.0), (holder.a, holder.b)
            result = function(x)
            results = [*result] if isinstance(result, list | tuple) else [result]
            arrays = [y._array if isinstance(y, wg.Tensor) else y for y in results]
            arrays += [holder.a, holder.b, holder.held["k"], holder.tensor._array, x, *before]
            found.append([y.tolist() for y in arrays])
            found.append([[a is b, np.shares_memory(a, b)] for a in arrays for b in arrays])
            if change == "results":
                for y in results:
                    y[...] = 7.0 + i
            if change == "state":
                holder.a[0] = -1.0
        if compiled and name in ("_kept_and_returned", "_the_one_before", "_parts_of_one"):
            assert not function.report._fallbacks
        return found

    assert run(True) == run(False)


def test_arrays_of_every_library(backend: Any) -> None:
    def body(p: Any, x: Any) -> Any:
        q = (p - 1) * 2 / (p + 9) - p[0, ...]
        return q, abs(q), x * p + x, -q @ p.T

    f = wg.compile(body)
    for host in points():
        p = backend.from_numpy(host)
        x = wg.asarray(backend.from_numpy(host[::-1].copy()))
        for found, expected in zip(f(p, x), body(p, x), strict=True):
            assert type(found) is type(expected)
            pair = [
                wg.asarray(one).detach().to_backend("numpy").numpy() for one in (found, expected)
            ]
            np.testing.assert_allclose(*pair, rtol=1e-5)
    assert "ran eagerly" not in str(f.report), f.report


def test_a_training_step_of_raw_batches() -> None:
    def make() -> Any:
        model = wg.nn.Linear(4, 2)
        optimizer = wg.optim.SGD(model.parameters(), lr=0.1)

        def step(p: Any, labels: Any) -> Any:
            p = (p - p.mean(axis=0)) / (p.std(axis=0) + 1e-5)
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(p), labels)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step, lambda: [x.detach() for x in model.parameters()]

    alike(make, [(p, np.array([0, 1, 1])) for p in points()])


@pytest.mark.parametrize("check", [0, None, 1])
def test_what_is_compared_is_not_changed_before_its_program_runs(check: int | None) -> None:
    """An array in two places is a constant of the program, and may change before that runs."""
    one, x = np.ones(3), wg.asarray([1.0, 2.0, 3.0], dtype=wg.float64)
    held, other = [one], {"one": one}

    def step(x: Any) -> Any:
        return x * held[0] * other["one"]

    compiled = wg.compile(step, check=check)
    for i in range(6):
        if i == 1:
            one[0] = 9.0
        if i == 3:
            held[0] = other["one"] = np.ones(3)
        assert compiled(x).tolist() == step(x).tolist()
    assert compiled.report.recordings == 2


#: What PyTorch has, and NumPy has not.
PYTORCHS = (
    "bmm cat chunk clamp clone contiguous cummax div expand expand_as float gather index_select "
    "log_softmax logsumexp masked_fill mm mul mv neg permute relu rsqrt sigmoid softmax sub t "
    "type_as unbind unfold unsqueeze view_as"
)


def test_the_functions_that_are_recorded_are_their_librarys() -> None:
    places: Any = np, np.linalg, np.fft, np.random, np.ndarray
    numpys = {name for place in places for name in dir(place)}
    assert raw._PURE - numpys == {*PYTORCHS.split()}


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_products_keep_their_order(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (_complex(rng, dtype) for _ in range(2))
    parameter = wg.tensor(y)
    for function in (lambda x: x * parameter, lambda x: parameter * x):
        step = wg.compile(function, check=0)
        for _ in range(2):
            assert same_bits(step(x).numpy(), function(x).numpy())


def _complex(rng: np.random.Generator, dtype: str) -> Any:
    return (rng.normal(size=64) + 1j * rng.normal(size=64)).astype(dtype)


class Named(np.ndarray):
    """A subclass of NumPy's arrays without an arithmetic of its own."""


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda x: x,
    "in the other byte order": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "not to be written": lambda x: np.frombuffer(x.tobytes()).reshape(x.shape),
    "without strides": lambda x: np.broadcast_to(x[:1], x.shape),
    "backwards": lambda x: x[::-1],
    "backwards in rows": lambda x: x[:, ::-1],
    "in columns": np.asfortranarray,
    "not aligned": lambda x: np.frombuffer(b"." + x.tobytes(), offset=1).reshape(x.shape),
    "of a subclass": lambda x: x.view(Named),
    "of records": lambda x: x.view(np.recarray),
    "masked": lambda x: np.ma.masked_array(x, mask=x > 5),
    "a matrix": np.matrix,
    "of single precision, in the other byte order": lambda x: x.astype(">f4"),
    "of integers, in the other byte order": lambda x: x.astype(">i8"),
    "of complex numbers, in the other byte order": lambda x: x.astype(">c16"),
    "structured": lambda x: np.zeros(x.shape, [("a", "f8"), ("b", "i4")]),
    "of objects": lambda x: x.astype(object),
}

WORK: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "arithmetic": lambda x: x * 2,
    "beside what is not used": lambda x: (x[0], np.sort(x), x.astype("<f8"), x + 1)[3],
    "a view": lambda x: x.T,
    "a copy": lambda x: x.copy(),
    "a Tensor": wg.asarray,
    "a Tensor's product": lambda x: wg.asarray(x) * wg.ones((3, 4)),
    "beside a Tensor": lambda x: wg.ones((3, 4)) * x,
    "strides": lambda x: x * x.strides[0],
    "byte order": lambda x: x * 2 if x.dtype.str == "<f8" else x * 3,
    "flags": lambda x: x * 2 if x.flags.writeable else x * 3,
    "zeros": np.zeros_like,
    "a gradient": wg.grad(lambda x: wg.sum(x * x)),
}


def _seen(function: Callable[[Any], Any], x: Any) -> Any:
    """All that can be told of what a function gives, or its error."""
    try:
        answer = function(x)
    except Exception as error:
        return type(error), str(error)
    array = answer.numpy() if isinstance(answer, wg.Tensor) else answer
    told = array.dtype, array.shape, array.flags.c_contiguous, array.flags.f_contiguous
    return type(answer), *told, repr(array.tolist())


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore:wg.compile has recorded", "ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("how", ["argument", "global"])
@pytest.mark.parametrize("name", WORK)
def test_arrays_of_every_layout_and_class_after_one_another(name: str, how: str) -> None:
    function, held = WORK[name], [np.zeros(1)]
    base = np.arange(12.0).reshape(3, 4) + 0.5
    arrays = [make(base) for make in LAYOUTS.values()]
    step = (lambda x: function(x)) if how == "argument" else (lambda x: function(held[0]))
    for first in arrays[:9]:
        compiled = wg.compile(step, check=0, cache_size=32)
        for x in (first, first, *arrays, first):
            held[0] = x
            given = x if how == "argument" else 0
            assert _seen(compiled, given) == _seen(step, given), (type(first), type(x), x.dtype)


def test_a_buffer_that_is_filled_and_restored_is_no_constant() -> None:
    base = np.full(4, 5.0)
    buffer, view = base[:2], base[1:3]

    def filled(x: Any) -> Any:
        buffer[:] = 1.0
        y = x * wg.asarray(buffer)
        buffer[:] = 5.0
        return wg.sum(y)

    def operand(x: Any) -> Any:
        buffer[:] = 1.0
        y = x * buffer
        buffer[:] = 5.0
        return wg.sum(y)

    def loop(x: Any) -> Any:
        y = 0.0
        for i in range(3):
            buffer[:] = i
            y = y + x * wg.asarray(buffer)
        buffer[:] = 5.0
        return wg.sum(y)

    def through_a_view(x: Any) -> Any:
        view[0] = 1.0
        y = x * wg.asarray(buffer)
        view[0] = 5.0
        return wg.sum(y)

    def nested(x: Any) -> Any:
        return wg.compile(filled, check=0)(x)

    x, wrong = wg.ones(2, dtype=wg.float64), []
    for function in (filled, operand, loop, through_a_view, nested):
        expected = float(function(x))
        for check in (0, 1):
            compiled = wg.compile(function, check=check)
            found = [float(compiled(x)) for _ in range(3)]
            if found != [expected] * 3:
                wrong.append((function.__name__, check, found, expected))
    assert not wrong and base.tolist() == [5.0] * 4


def test_an_input_that_is_filled_and_restored_through_a_view() -> None:
    base = np.full(4, 5.0)
    buffer, view = base[:2], base[:2]
    tensor = wg.asarray(buffer)
    held = {"state": wg.asarray(buffer)}

    def filled(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def step(x: Any) -> Any:
            view[:] = 3.0
            try:
                return wg.sum(work(x) * 2.0)
            finally:
                view[:] = 5.0

        return step

    def caught(x: Any) -> Any:
        with pytest.raises(ZeroDivisionError):
            filled(lambda _: 1 / 0)(x)
        return filled(lambda x: x)(x)

    def threaded(x: Any) -> Any:
        thread = threading.Thread(target=view.fill, args=(3.0,))
        thread.start()
        thread.join()
        y = wg.sum(x * 2.0)
        view[:] = 5.0
        return y

    def later(x: Any) -> Any:
        part = x[:1]
        view[:] = 3.0
        y = wg.sum(part * 2.0)
        view[:] = 5.0
        return y

    cases: list[tuple[str, Callable[[Any], Any], Any]] = [
        ("Tensor", filled(lambda x: x), tensor),
        ("array", filled(wg.asarray), buffer),
        ("state", filled(lambda x: held["state"] * x), wg.ones(2, dtype=wg.float64)),
        ("caught", caught, tensor),
        ("thread", threaded, tensor),
        ("view", later, tensor),
    ]
    wrong = []
    for name, function, x in cases:
        expected = float(function(x))
        for check in (0, 1):
            compiled = wg.compile(function, check=check)
            found = [float(compiled(x)) for _ in range(3)]
            if found != [expected] * 3:
                wrong.append((name, check, found, expected))
    assert not wrong and base.tolist() == [5.0] * 4
