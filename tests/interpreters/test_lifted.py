"""What rules write is run on batches and duals: the standard's calls, and operators."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.linalg  # which rules find once it is imported
from wengert.backends import Backend, namespaces
from wengert.backends.keys import SLOT
from wengert.interpreters.batched import Batched
from wengert.interpreters.duals import Dual, running
from wengert.interpreters.lifted import Lifted, lifted, namespace_of, new_level
from wengert.tape.tensor import untracked

XP = namespaces[np.ndarray]
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0.5, 2, (2, 3, 3, 2))
A = RNG.uniform(0.5, 2, (3, 2, 2)) + 2 * np.eye(2)
ROWS = np.array([[2, 0], [1, 1], [0, 2]])
MASKS = np.array([[True, False, True], [False, True, True], [True, True, False]])

#: Members of batches, and what a rule may do with one of each.
CALLS: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "repeat": (lambda xp, x, y: xp.repeat(x, 2), X, Y),
    "repeat along": (lambda xp, x, y: xp.repeat(x, 2, axis=1), X, Y),
    "tensordot": (lambda xp, x, y: xp.tensordot(x, y), X, Y),
    "tensordot over one": (lambda xp, x, y: xp.tensordot(x, y, axes=1), A, A + 1),
    "solve": (lambda xp, x, y: xp.linalg.solve(x, y), A, A + 1),
    "solve for a vector": (lambda xp, x, y: xp.linalg.solve(x, y), A, X[:, 0]),
    "getitem": (lambda xp, x, y: xp.getitem(x, y, key=(SLOT,)), X, ROWS),
    "getitem by masks": (lambda xp, x, y: xp.getitem(x, y, key=(SLOT,)), X, MASKS),
    "setitem": (lambda xp, x, y: xp.setitem(x, X[0, :2], y, key=(SLOT,)), X, ROWS),
    "scatter_add": (
        lambda xp, x, y: xp.scatter_add(x, y, key=(SLOT,), shape=(3, 2)),
        X[:, :2],
        ROWS,
    ),
    "an element": (lambda xp, x, y: x[1] + y[1:], X, Y),
    **{
        name: (lambda xp, x, y, name=name: getattr(operator, name)(x, y), X, Y)
        for name in ("add", "sub", "mul", "truediv", "gt", "lt", "ge", "le", "eq", "ne")
    },
    "neg": (lambda xp, x, y: -x, X, Y),
}


def inside(x: Any) -> Any:
    return np.asarray(x.inner if isinstance(x, Batched) else x)


@pytest.mark.whole
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("shared", ["neither", "first", "second"])
def test_batches(call: str, shared: str) -> None:
    function, x, y = CALLS[call]
    if shared == "first":
        x = np.broadcast_to(x[0], x.shape)
    if shared == "second":
        y = np.broadcast_to(y[0], y.shape)
    level = new_level()
    found = function(
        lifted,
        x[0] if shared == "first" else Batched(x, level),
        y[0] if shared == "second" else Batched(y, level),
    )
    expected = np.stack([function(XP, *members) for members in zip(x, y, strict=True)])
    np.testing.assert_allclose(np.broadcast_to(inside(found), expected.shape), expected, 1e-12)


@pytest.mark.whole
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("plain", ["neither", "first", "second"])
def test_duals(call: str, plain: str) -> None:
    function, (x, *_), (y, *_) = CALLS[call]
    step = 1e-6
    moves = plain != "first", plain != "second" and y.dtype.kind == "f"
    t, s = (np.cos(z) if moving else z * 0 for z, moving in zip((x, y), moves, strict=True))
    level = new_level()
    with running(level):
        found = function(
            lifted, Dual(x, t, level) if moves[0] else x, Dual(y, s, level) if moves[1] else y
        )
    after, before = (
        np.asarray(function(XP, *(z if z.dtype.kind != "f" else z + h * u for z, u in pairs)))
        for h, pairs in ((step, ((x, t), (y, s))), (-step, ((x, t), (y, s))))
    )
    if after.dtype.kind == "b":
        np.testing.assert_array_equal(getattr(found, "inner", found), function(XP, x, y))
        return
    np.testing.assert_allclose(getattr(found, "inner", found), function(XP, x, y), 1e-12)
    tangent = getattr(found, "tangent", None)
    tangent = 0 if tangent is None else tangent
    np.testing.assert_allclose(tangent, (after - before) / (2 * step), 1e-7, 1e-8)


@running(1)
def test_operators_take_the_library_s_arrays_on_either_side(backend: Backend) -> None:
    x, y = map(backend.from_numpy, (X[0], Y[0]))
    stack = backend.namespace.stack
    for name in ("add", "sub", "mul", "truediv", "lt", "le", "gt", "ge", "eq", "ne"):
        run = getattr(operator, name)
        for make in (lambda x: Dual(x, x, 1), lambda x: Batched(stack([x, x]), 1)):
            for found in (run(make(x), y), run(x, make(y)), run(make(x), make(y))):
                inner = backend.to_numpy(found.inner if isinstance(found, Lifted) else found)
                expected = np.broadcast_to(run(X[0], Y[0]), inner.shape)
                np.testing.assert_allclose(inner, expected, 1e-6)


def test_operators_of_conditions(backend: Backend) -> None:
    x = backend.from_numpy(X[0])
    members, mean = backend.namespace.stack([x, -x]), float(X[0].mean())
    batch = Batched(members, 1)
    for found, expected in (
        ((batch > mean) & (x > 1), (members > mean) & (x > 1)),
        ((x > 1) | (batch > mean), (x > 1) | (members > mean)),
        (~(batch > mean), ~(members > mean)),
    ):
        np.testing.assert_array_equal(*map(backend.to_numpy, (found.inner, expected)))


def test_a_namespace_is_that_of_an_array() -> None:
    with pytest.raises(TypeError, match="no array among the operands"):
        namespace_of(1.0, None)
    assert namespace_of(1.0, X, Batched(X, 1)) is lifted
    assert namespace_of(1.0, X) is namespaces[type(X)]
    assert namespace_of(untracked(Batched(X, 1))).sum is wg.sum


@running(1)
def test_dtypes_have_one_spelling_in_rules(backend: Backend) -> None:
    """Namespaces of libraries have their own dtypes, and that of lifted arrays has Wengert's."""
    x = wg.asarray([1.0, 2.0], dtype="float32")
    raw = x._array
    twice = Dual(Dual(raw, raw, 1), None, 2)
    for like in (raw, Dual(raw, raw, 1), Batched(raw, 1), twice, x):
        xp = namespaces[type(like)]
        assert wg.float64 == xp.astype(like, xp.float64).dtype
        assert wg.float64 == xp.sum(like, dtype=xp.float64).dtype

    def product(x: wg.Tensor) -> wg.Tensor:  # of half precision the rule asks for float32
        gradient = wg.grad(lambda x: wg.log_softmax(x, axis=0)[0])
        return wg.jvp(gradient, (x,), (x,))[1]

    x = wg.astype(x, "float32" if backend.name == "array_api_strict" else "float16")
    p = 1 / (1 + np.exp(-1))
    for found in (product(x), wg.compile(product)(x)):
        np.testing.assert_allclose(found.numpy(), [p * (1 - p), -p * (1 - p)], 2e-3)


def test_what_is_assigned_without_recording_keeps_the_tangent() -> None:
    """As in reverse mode, where ``no_grad`` changes values and no derivative."""

    def function(x: wg.Tensor) -> wg.Tensor:
        y = x * 2
        with wg.no_grad():
            y += x
        return y

    x, t = wg.asarray([1.0, 2.0]), wg.asarray([0.5, -1.0])
    value, tangent = wg.func.jvp(function, (x,), (t,))
    np.testing.assert_array_equal(value.numpy(), [3.0, 6.0])
    np.testing.assert_array_equal(tangent.numpy(), [1.0, -2.0])
    hessian = wg.func.jacfwd(wg.func.jacfwd(lambda x: wg.sum(function(x) ** 2)))(x)
    np.testing.assert_array_equal(hessian.numpy(), 8 * np.eye(2))


def test_compositions_take_the_library_s_arrays_beside_lifted_ones(backend: Backend) -> None:
    x = wg.asarray(X[0])
    found = wg.func.jacrev(lambda x: wg.std(x, axis=0))(x)
    expected = [wg.grad(lambda x, i=i: wg.std(x, axis=0)[i])(x).numpy() for i in range(2)]
    np.testing.assert_allclose(found.numpy(), expected, 1e-5)
