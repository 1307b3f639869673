"""What rules write is run on batches and duals: the standard's calls, and operators."""

import operator

import numpy as np
import pytest

import wengert as wg
import wengert.linalg  # which rules find once it is imported
from wengert.backends import Backend, namespaces
from wengert.interpreters.batched import Batched
from wengert.interpreters.duals import Dual, running
from wengert.interpreters.lifted import Lifted, lifted, namespace_of
from wengert.tape.tensor import untracked

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0.5, 2, (2, 3, 3, 2))


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


def test_compositions_take_the_library_s_arrays_beside_lifted_ones(backend: Backend) -> None:
    x = wg.asarray(X[0])
    found = wg.func.jacrev(lambda x: wg.std(x, axis=0))(x)
    expected = [wg.grad(lambda x, i=i: wg.std(x, axis=0)[i])(x).numpy() for i in range(2)]
    np.testing.assert_allclose(found.numpy(), expected, 1e-5)
