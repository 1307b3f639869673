"""Operators, methods and in-place forms: the functions under other names."""

import operator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.walking import lines_of, walk
from wengert.backends import Backend
from wengert.compiler import CompileError
from wengert.tape.primitive import PRIMITIVES

WHOLE = np.array([12, 5, 9])
A, B = np.array([[7.0, -2.0], [0.5, 3.0]]), np.array([[2.0, 3.0], [-1.5, 1.0]])


#: Names of operators, and of the functions that they are.
BINARY = lines_of("""
add add  sub subtract  mul multiply  truediv divide  floordiv floor_divide  mod remainder
matmul matmul  pow pow  and_ bitwise_and  or_ bitwise_or  xor bitwise_xor  lshift bitwise_left_shift
rshift bitwise_right_shift  lt less  le less_equal  gt greater  ge greater_equal  eq equal
ne not_equal""")


def test_operators_are_the_functions(backend: Backend) -> None:
    def check(name: str, function: str) -> None:
        act, run = getattr(operator, name), getattr(np, function)
        a, b = (abs(A) + 1, abs(B)) if not function.startswith("bit") else (WHOLE, WHOLE[::-1])
        x, y = wg.asarray(a), wg.asarray(b)
        for found in (act(x, y), act(x, y.array), getattr(wg, function)(x, y)):
            np.testing.assert_allclose(found.numpy(), run(a, b), rtol=1e-12)
        if name != "matmul":
            number = 2.0 if a.dtype.kind == "f" else 2
            np.testing.assert_allclose(act(x, number).numpy(), run(a, number), rtol=1e-12)
            np.testing.assert_allclose(act(number, x).numpy(), run(number, a), rtol=1e-12)
        if change := getattr(operator, f"i{name.rstrip('_')}", None):
            same, before = x, x.array
            x = change(x, y)
            assert x is same
            np.testing.assert_allclose(x.numpy(), run(a, b), rtol=1e-12)
            np.testing.assert_allclose(backend.to_numpy(before), a)

    walk([row.split() for row in BINARY], check, whole=True)
    x = wg.asarray(A)
    for act in (operator.neg, operator.pos, abs):
        np.testing.assert_array_equal(act(x).numpy(), act(A))
    np.testing.assert_array_equal((~wg.asarray([1, -2])).numpy(), [-2, 1])
    assert (x == None) is False  # noqa: E711
    assert (x != "text") is True
    assert len({x, wg.asarray(B), x}) == 2


class Unit:
    """A quantity's unit, say: no array and no number, which knows what to do with a Tensor."""

    __array_ufunc__ = None

    def _answered(self, other: Any, *rest: Any) -> Any:
        return "its own", other

    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = _answered
    __rpow__ = __rmatmul__ = __rdivmod__ = __rand__ = __ror__ = __rxor__ = _answered
    __rlshift__ = __rrshift__ = __lt__ = __le__ = __gt__ = __ge__ = _answered
    __eq__ = __ne__ = _answered  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class Labelled(Unit):
    """As xarray's: with a shape and a dtype like an array's."""

    shape, dtype, ndim = (2,), np.dtype("float64"), 1


REFLECTED = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv),
    *(operator.mod, operator.pow, operator.matmul, divmod, operator.and_, operator.or_),
    *(operator.xor, operator.lshift, operator.rshift, operator.lt, operator.le, operator.gt),
    *(operator.ge, operator.eq, operator.ne),
)
CHANGING = (
    *(operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv),
    *(operator.imod, operator.ipow, operator.imatmul),
)


@pytest.mark.whole
@pytest.mark.parametrize("other", [Unit(), Labelled()])
@pytest.mark.parametrize("act", REFLECTED + CHANGING)
def test_an_object_that_is_no_array_is_asked_itself(act: Any, other: Any) -> None:
    for x in (wg.asarray([1.0, 2.0], requires_grad=True), wg.asarray([1, 2]), wg.asarray(2)):
        assert act(x, other) == ("its own", x)


def test_a_ufunc_asks_the_other_object_too() -> None:
    class Quantity:
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
            return "its own", ufunc

    x = wg.asarray([1.0, 2.0], requires_grad=True)
    assert np.multiply(x, Quantity()) == ("its own", np.multiply)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="multiply takes"):
        np.multiply(x, object())  # type: ignore[call-overload]


def test_what_no_operator_takes_is_a_clear_error() -> None:
    x = wg.asarray([1.0, 2.0], requires_grad=True)
    for act in (operator.add, operator.pow, operator.matmul, operator.lt, operator.iadd):
        for other in ("a", None, {"a": 1}, {1.0}, b"a"):
            with pytest.raises(TypeError, match=r"takes|needed"):
                act(x, other)
            if act is not operator.iadd:
                with pytest.raises(TypeError, match=r"takes|needed|must be str"):
                    act(other, x)
        with pytest.raises(TypeError, match=r"unsupported operand|'<' not supported"):
            act(x, object())
        # As in PyTorch and JAX; np.add(x, [...]) takes them.
        with pytest.raises(TypeError, match=r"wg\.asarray"):
            act(x, [1.0, x[0]])
    with pytest.raises(TypeError, match="add takes"):
        wg.add(x, Unit())


def test_divmod(backend: Backend) -> None:
    x = wg.asarray(A, requires_grad=True)
    for found, expected in zip(divmod(x, 0.7), divmod(A, 0.7), strict=True):
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)
    for found, expected in zip(divmod(0.7, x), divmod(0.7, A), strict=True):
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)
    assert divmod(x, 0.7)[1].requires_grad


# -- iteration -----------------------------------------------------------------------------------


def test_iteration_records_what_is_asked_for_alone(backend: Backend) -> None:
    x = wg.asarray(np.arange(400.0).reshape(200, 2), requires_grad=True)
    before = len(wg.global_tape)
    assert np.iterable(x)
    rows = iter(x)
    assert len(wg.global_tape) == before
    first = next(rows)
    assert len(wg.global_tape) < before + 40
    assert first.tolist() == [0, 1]
    with pytest.raises(ValueError, match="too many values"):
        _first, _second = x


@pytest.mark.parametrize("length", [0, 1, 2, 15, 16, 17, 48, 49, 100])
def test_iteration_gives_every_row_with_its_derivative(length: int, backend: Backend) -> None:
    values = np.arange(2.0 * length).reshape(length, 2)
    x = wg.asarray(values, requires_grad=True)
    rows = list(x)
    assert [row.tolist() for row in rows] == values.tolist()
    if length:
        total = sum((i + 1) * wg.sum(row**2) for i, row in enumerate(rows))
        (g,) = wg.autograd.grad(total, x)
        weights = np.arange(1.0, length + 1)[:, None]
        np.testing.assert_allclose(g.numpy(), 2 * values * weights)


def test_iteration_in_transforms_and_over_what_changes() -> None:
    values = np.arange(1.0, 41.0)

    def f(x: Any) -> Any:
        return sum(row**3 for row in x)

    np.testing.assert_allclose(wg.grad(f)(values), 3 * values**2)
    np.testing.assert_allclose(wg.hessian(f)(values), np.diag(6 * values))
    assert wg.jvp(f, (values,), (values,))[1] == pytest.approx(np.sum(3 * values**3))
    x = wg.asarray(values)
    seen = []
    for row in x:  # a value, not storage: the rows are those of the beginning
        seen.append(row.item())
        x = x * 0
    assert seen == values.tolist()
    with pytest.raises(TypeError, match="0-d"):
        iter(wg.asarray(1.0))


def test_a_number_on_the_left_is_recorded_on_the_right(backend: Backend) -> None:
    x = wg.tensor([2.0], requires_grad=True)
    y = 5 * x
    assert y.grad_fn is not None
    assert y.grad_fn.next_functions[0][0] is (x * 5).grad_fn.next_functions[0][0]  # type: ignore[union-attr]
    (g,) = wg.autograd.grad(3 / (1 - 2**x), x)
    np.testing.assert_allclose(g.numpy(), [3 * 4 * np.log(2) / 9], rtol=1e-6)


def test_in_place_keeps_shape_and_dtype(backend: Backend) -> None:
    x = wg.ones(2)
    if backend.name != "array_api_strict":  # which mixes no kinds
        x += wg.asarray([1, 2])
        assert x.tolist() == [2.0, 3.0]
    x *= wg.asarray([2.0, 2.0], dtype=wg.float64)
    assert x.dtype is wg.float32
    for error, change in (
        ((RuntimeError), lambda: x.__iadd__(wg.ones((3, 2)))),
        ((RuntimeError), lambda: x.__imul__(wg.asarray([1j, 1j]))),
    ):
        before = x.tolist()
        with pytest.raises(error):
            change()
        assert x.tolist() == before
    narrow = wg.asarray([1, 2], dtype=wg.int8)
    narrow += wg.asarray([1, 1], dtype=wg.int32)
    assert narrow.dtype is wg.int8


def test_pytorchs_in_place_methods(backend: Backend) -> None:
    x = wg.tensor([1.0, 2.0])
    assert x.add_(1) is x
    assert x.sub_(wg.tensor([1.0, 1.0]), alpha=3).tolist() == [-1.0, 0.0]
    assert x.add_(1.0, alpha=2).sub_(1, alpha=2).tolist() == [-1.0, 0.0]
    assert x.add_(wg.tensor([1.0, 1.0]), alpha=2).mul_(3).div_(2).tolist() == [1.5, 3.0]
    assert x.fill_(4).tolist() == [4.0, 4.0]
    assert x.zero_().tolist() == [0.0, 0.0]
    with wg.use_backend("numpy"):
        other = wg.tensor([5.0], dtype=wg.float64, requires_grad=True)
    x.copy_(other * 2)
    assert (x.backend, x.dtype) == (backend, wg.float32)
    assert x.tolist() == [10.0, 10.0]
    wg.sum(x * x).backward()
    assert other.grad is not None
    assert other.grad.tolist() == [80.0]
    leaf = wg.ones(2, requires_grad=True)
    for wrong in (
        lambda: x.add_(None, alpha=2),
        lambda: x.sub_("text", alpha=2),
        lambda: x.add_([1.0], alpha=2),
    ):
        with pytest.raises(TypeError, match=r"^(add|sub)_ takes a number as other, not"):
            wrong()
    with pytest.raises(TypeError, match=r"^add_ takes a number as alpha, not None"):
        x.add_(1, alpha=None)
    one = wg.tensor(1.0, requires_grad=True)
    assert wg.autograd.grad(wg.zeros(2).add_(wg.ones(2), alpha=one).sum(), one)[0].item() == 2
    for change in (leaf.zero_, lambda: leaf.add_(1), lambda: leaf.copy_(wg.zeros(2))):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            change()
        assert leaf.tolist() == [1.0, 1.0]
        with wg.no_grad():
            change()
        assert leaf.is_leaf
        with wg.no_grad():
            leaf.fill_(1.0)


def test_a_filled_tensor_stays_tracked(backend: Backend) -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.zero_()
    wg.sum(y).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 0.0]


def test_the_namespace(backend: Backend) -> None:
    x = wg.ones(2)
    xp = x.__array_namespace__()
    assert xp is x.__array_namespace__(api_version="2025.12")
    assert xp is wg.zeros(1, dtype=wg.int8).__array_namespace__()
    assert xp.__name__ == "wengert"
    assert set(dir(xp)) >= set(wg.__all__)
    assert xp.float32 is wg.float32
    assert xp.add(x, x).tolist() == [2.0, 2.0]
    with pytest.raises(ValueError, match=r"2025\.12, and not '2030\.12'"):
        x.__array_namespace__(api_version="2030.12")
    assert all(hasattr(wg, name) for name in wg.__all__)
    assert len(set(wg.__all__)) == len(wg.__all__)
    info = wg.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] is wg.float32
    assert info.default_device() == x.device
    assert x.device in info.devices()
    kinds = "bool", "complex floating"
    assert info.dtypes(kind=kinds).keys() == {"bool", "complex64", "complex128"}
    assert isinstance(info.capabilities()["boolean indexing"], bool)


@pytest.mark.parametrize("tracked", [False, True])
def test_a_masked_array_keeps_its_mask(tracked: bool) -> None:
    """As beside NumPy's arrays: what is masked is no number."""
    x = wg.tensor([1.0, 2.0], requires_grad=tracked)
    masked = np.ma.array([1.0, 5.0], mask=[False, True])
    for name in ("add", "mul", "sub", "truediv", "lt"):
        apply = getattr(operator, name)
        for left, right in ((x, masked), (masked, x)):
            if tracked:  # it would leave the tape
                with pytest.raises(RuntimeError, match="requires grad"):
                    apply(left, right)
                continue
            result = apply(left, right)
            assert isinstance(result, np.ma.MaskedArray)
            assert result.mask.tolist() == [False, True]
        with pytest.raises(TypeError):
            np.add(x, masked)


def test_other_arrays_of_numpy_are_arrays(tmp_path: Any) -> None:
    class Plain(np.ndarray):
        pass

    x = wg.tensor([1.0, 2.0], requires_grad=True)
    stored = np.memmap(tmp_path / "stored", dtype="float32", mode="w+", shape=(2,))
    for other in (np.ones(2, np.float32).view(Plain), stored):
        for result in (x * other, other * x):
            assert isinstance(result, wg.Tensor)
            assert result.requires_grad


def test_whether_an_element_is_there(backend: Backend) -> None:
    """As in NumPy, by one comparison of all elements."""
    x = wg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    assert 3.0 in x
    assert 5 not in x
    assert wg.tensor([9.0, 4.0]) in x
    assert "a" not in x
    assert None not in x
    assert 1 in wg.tensor(1)
    assert 1 not in wg.zeros((0, 2))
    with pytest.raises((ValueError, RuntimeError), match="shape"):
        wg.zeros(3) in x  # noqa: B015 -- it raises


# -- NumPy's scalars -----------------------------------------------------------------------------

OPERATORS = [
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv),
    *(operator.mod, operator.pow, operator.and_, operator.or_, operator.xor, divmod),
]
SCALARS = [
    *(np.float64(0.1), np.float32(0.1), np.float16(2.5), np.int64(3), np.int64(300), np.int8(3)),
    *(np.bool_(True), np.complex128(1j)),
]
TENSORS = {
    "float32": [0.1, 2.0],
    "float64": [0.1, 2.0],
    "int8": [3, 2],
    "int64": [3, 2],
    "bool": [True, False],
    "complex64": [1j, 2.0],
}


def answer(function: Any, *operands: Any) -> Any:
    try:
        found = function(*operands)
    except (TypeError, ValueError, ArithmeticError) as error:
        return type(error)
    parts = found if isinstance(found, tuple) else (found,)
    return [(type(x), x.dtype, x.shape, repr(x.tolist())) for x in parts]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", OPERATORS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("dtype", TENSORS)
def test_scalars_of_numpy_are_numbers(dtype: str, function: Any) -> None:
    for values in (TENSORS[dtype], TENSORS[dtype][0]):
        x = wg.asarray(values, dtype=dtype)
        for scalar in SCALARS:
            assert answer(function, x, scalar) == answer(function, x, scalar.item())
            assert answer(function, scalar, x) == answer(function, scalar.item(), x)


@pytest.mark.parametrize("function", OPERATORS[:6], ids=lambda function: function.__name__)
def test_comparisons_are_the_same_from_both_sides(function: Any) -> None:
    turned = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
    other = getattr(operator, turned.get(function.__name__, function.__name__))
    x = wg.asarray([0.1, 2.0], dtype=wg.float32)
    for number in (np.float64(0.1), np.array(0.1), np.asarray(2)):  # of which NumPy tells no more
        expected = function(x, number.item()).tolist()
        ufunc = getattr(np, {"eq": "equal", "ne": "not_equal"}.get(function.__name__, ""), None)
        assert function(x, number).tolist() == other(number, x).tolist() == expected
        assert ufunc is None or ufunc(number, x).tolist() == expected


@pytest.mark.parametrize("reached", [False, True])
def test_compiled_comparisons_are_those_of_eager_code(reached: bool) -> None:
    x, number = wg.asarray([0.1, 2.0], dtype=wg.float32), np.float64(0.1)
    step = lambda x, other: [number == x, x >= number] if reached else [other == x, x >= other]
    compiled = wg.compile(step, check=0)
    with pytest.raises(CompileError, match=r"wg\.asarray"):  # whose number is asked for
        wg.compile(lambda x, other: other == x)(x, np.array(0.1))
    for _ in range(3):
        found, expected = compiled(x, number), step(x, number)
        assert [y.tolist() for y in found] == [y.tolist() for y in expected]
        assert expected[0].tolist() == [True, False]


#: Functions of two numbers of which one may stay Python's.
WEAK = sorted(
    name
    for name, row in PRIMITIVES.items()
    if row.elementwise and row.weak and len(row.inputs) == 2 and row.rules and name != "nextafter"
)


def slopes(function: Any) -> list[Any]:
    """A value and two derivatives, the second one forward over reverse and reverse twice."""

    def slope(x: Any) -> Any:
        return wg.grad(lambda x: wg.sum(function(x)))(x)

    x = wg.asarray([0.5, 1.5])
    twice = wg.grad(lambda x: wg.sum(slope(x)))(x)
    return [function(x), *wg.jvp(slope, (x,), (wg.ones_like(x),)), twice]


def test_numbers_beside_a_tensor_are_as_tensors_in_all_derivatives(backend: Any) -> None:
    def check(name: str) -> None:
        run = PRIMITIVES[name].bind
        for number, tensor in (
            (lambda x: run(x, 2.0), lambda x: run(x, wg.full_like(x, 2.0))),
            (lambda x: run(2.0, x), lambda x: run(wg.full_like(x, 2.0), x)),
        ):
            for found, expected in zip(slopes(number), slopes(tensor), strict=True):
                np.testing.assert_allclose(found.tolist(), expected.tolist(), rtol=1e-6)

    # PyTorch and array_api_strict make no zeros like a number, as the slope of hypot asks for.
    few = backend.name in ("jax", "dask")
    walk([(name,) for name in WEAK if not few or name == "hypot"], check, whole=True)
