"""Jacobians with patterns: against dense ones, in transforms, and patterns that are wrong."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.func.test_forward import host
from tests.testing.functions import of_array
from wengert.backends import Backend
from wengert.func import jacobian, jacrev, jvp, vmap
from wengert.func.sparsity import Pattern

#: Of a chain, in which each element meets the next one.
CHAIN = np.eye(4, 5, dtype=bool) | np.eye(4, 5, k=1, dtype=bool)
#: Of its results after all of them have been multiplied by the first argument.
ARROW = CHAIN | np.eye(1, 5, dtype=bool)


def chain(x: Any) -> Any:
    return wg.sin(x[1:]) * x[:-1] ** 2


def arrow(x: Any) -> Any:
    return chain(x) * x[0]


def fan(x: Any) -> Any:
    """One result of all elements, and one of each: fewer columns meet than rows."""
    return wg.concat([wg.sum(x**3, axis=0, keepdims=True), x[1:] ** 2])


FAN = np.eye(5, dtype=bool) | (np.arange(5)[:, None] == 0)
ALL = pytest.mark.parametrize(("f", "pattern"), [(chain, CHAIN), (arrow, ARROW), (fan, FAN)])


def numbers(dtype: Any = np.float64) -> np.ndarray:
    return np.linspace(0.5, 1.5, 5).astype(dtype)


@ALL
@pytest.mark.parametrize("has_aux", [False, True])
def test_numbers_are_those_of_dense_jacobians(
    f: Any, pattern: Any, has_aux: bool, backend: Backend
) -> None:
    x = wg.asarray(numbers())

    def run(x: Any) -> Any:
        return (f(x), x.shape) if has_aux else f(x)

    found = jacobian(run, has_aux=has_aux, sparsity=pattern)(x)
    if has_aux:
        assert found[1] == (5,)
        found = found[0]
    np.testing.assert_allclose(host(found), host(jacrev(f)(x)), rtol=1e-13)


def test_the_directions_are_as_many_as_colours() -> None:
    """Two columns of a chain meet, and two rows; of the arrow all rows do, and two columns."""
    x = wg.asarray(numbers())
    assert Pattern(CHAIN).by_rows
    assert Pattern(CHAIN).directions(x[1:], True).shape == (2 + 2, 4)  # two are the check
    assert not Pattern(ARROW).by_rows
    assert Pattern(ARROW).directions(x, False).shape == (3 + 2, 5)
    assert Pattern(ARROW.T).by_rows
    # Five columns that one row meets, or two rows.
    assert Pattern(FAN[::-1]).by_rows


def test_patterns_are_of_any_kind_of_matrix() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    dense = jacrev(chain)(numbers())
    for pattern in (CHAIN.tolist(), CHAIN * 2.5, sparse.csr_matrix(CHAIN), sparse.coo_array(CHAIN)):
        np.testing.assert_allclose(jacobian(chain, sparsity=pattern)(numbers()), dense, rtol=1e-13)


@pytest.mark.parametrize("shape", [(5,), (5, 1), (1, 5, 1)])
def test_elements_of_any_shape_are_counted_in_order(shape: tuple[int, ...]) -> None:
    def f(x: Any) -> Any:
        return wg.reshape(chain(wg.reshape(x, (5,))), (2, 2))

    x = numbers().reshape(shape)
    found = jacobian(f, sparsity=CHAIN)(x)
    assert found.shape == (2, 2, *shape)
    np.testing.assert_allclose(found, jacrev(f)(x), rtol=1e-13)
    assert jacobian(lambda x: x * 3, sparsity=[[True]])(2.0) == 3.0


def test_columns_rows_and_matrices_may_be_empty() -> None:
    def f(x: Any) -> Any:
        return wg.stack([x[0] * 2, 0 * x[1], x[4] ** 2])

    pattern = np.zeros((3, 5), dtype=bool)
    pattern[0, 0] = pattern[2, 4] = True
    np.testing.assert_allclose(jacobian(f, sparsity=pattern)(numbers()), jacrev(f)(numbers()))
    for given, count in [(np.ones(0), 2), (np.ones(3), 0)]:
        found = jacobian(
            lambda x, n=count: wg.zeros(n) + wg.sum(x), sparsity=np.ones((count, given.size))
        )
        assert found(given).shape == (count, given.size)
    constant = jacobian(lambda x: wg.ones(3), sparsity=np.zeros((3, 5)))
    np.testing.assert_array_equal(constant(numbers()), np.zeros((3, 5)))


@ALL
def test_derivatives_of_it(f: Any, pattern: Any, backend: Backend) -> None:
    sparse, x = jacobian(f, sparsity=pattern), wg.asarray(numbers())
    np.testing.assert_allclose(
        host(jacobian(sparse)(x)), host(jacrev(jacrev(f))(x)), rtol=1e-12, atol=1e-12
    )
    for found, expected in zip(jvp(sparse, (x,), (x,)), jvp(jacrev(f), (x,), (x,)), strict=True):
        np.testing.assert_allclose(host(found), host(expected), rtol=1e-12)
    x.requires_grad_()
    grads = []
    for run in (sparse, jacrev(f)):
        wg.sum(run(x) ** 3).backward()
        grads.append(host(x.grad))
        x.grad = None
    np.testing.assert_allclose(*grads, rtol=1e-12)


@ALL
def test_batches_of_it(f: Any, pattern: Any, backend: Backend) -> None:
    x = wg.asarray(np.stack([numbers(), numbers() + 1]))
    found = host(vmap(jacobian(f, sparsity=pattern))(x))
    np.testing.assert_allclose(found, host(vmap(jacrev(f))(x)), rtol=1e-12)


def test_parameters_that_the_function_closes_over_get_gradients() -> None:
    w = wg.asarray(2.0, dtype=wg.float64).requires_grad_()
    x = wg.asarray(numbers())
    wg.sum(jacobian(lambda x: chain(x) * w, sparsity=CHAIN)(x)).backward()
    np.testing.assert_allclose(w.grad.item(), np.sum(jacrev(chain)(numbers())))


# -- patterns that are wrong -----------------------------------------------------------------------


@ALL
def test_each_missing_entry_is_noticed(f: Any, pattern: Any, backend: Backend) -> None:
    for place in np.argwhere(pattern)[:: 1 if backend.name == "numpy" else 4]:
        wrong = pattern.copy()
        wrong[*place] = False
        with pytest.raises(ValueError, match="sparsity= is wrong"):
            jacobian(f, sparsity=wrong)(wg.asarray(numbers()))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rounding_is_no_entry(dtype: str) -> None:
    n = 40
    x = np.linspace(0.5, 1.5, n).astype(dtype)
    pattern = np.eye(n - 1, n) + np.eye(n - 1, n, k=1)
    found = jacobian(lambda x: chain(x) * 1e3 + x[1:], sparsity=pattern)(x)
    assert found.dtype == dtype
    pattern[7, 7] = 0
    with pytest.raises(ValueError, match="is wrong"):
        jacobian(lambda x: chain(x) * 1e3 + x[1:], sparsity=pattern)(x)


def test_it_is_noticed_in_the_call_in_which_it_begins() -> None:
    """Compiled, and for one member of a batch."""

    def f(x: Any, other: Any) -> Any:
        return chain(x) + other * x[-1]

    sparse = jacobian(f, sparsity=CHAIN)
    run = wg.compile(sparse)
    for _ in range(4):
        np.testing.assert_allclose(run(numbers(), 0.0), jacrev(chain)(numbers()), rtol=1e-13)
    with pytest.raises(ValueError, match="is wrong"):
        run(numbers(), 1.0)
    batch = wg.asarray(np.stack([numbers()] * 3))
    vmap(sparse)(batch, wg.zeros(3, dtype=wg.float64))
    with pytest.raises(ValueError, match="is wrong"):
        vmap(sparse)(batch, wg.asarray([0.0, 0.0, 1.0], dtype=wg.float64))


@pytest.mark.parametrize(
    ("matrix", "dtype", "pattern"),
    [
        ([[1e9, 5], [0, 1]], "float64", np.eye(2)),
        ([[1, 5], [0, 1e9]], "float64", np.eye(2)),
        ([[1e5, 0, 0], [0, 1, 5], [0, 0, 1]], "float32", np.eye(3)),
        ([[1, 0.3, 0], [0, 1, 0], [0, 0, 1]], "float16", np.eye(3)),
        ([[1e5, 0, 0], [1, 1, 1e-3], [1, 0, 1]], "float32", np.eye(3) + np.eye(1, 3).T),
        ([[1, 0, 0], [1, 0.3, 0], [0, 0, 1]], "float16", np.eye(1, 3).T + np.eye(3) * [1, 0, 1]),
    ],
)
def test_missing_entries_are_noticed_however_small_they_are(
    matrix: Any, dtype: str, pattern: Any
) -> None:
    a = wg.asarray(np.asarray(matrix, dtype=dtype))
    with pytest.raises(ValueError, match="sparsity= is wrong"):
        jacobian(lambda x: wg.matmul(a, x), sparsity=pattern)(np.ones(len(matrix), dtype))
    whole = jacobian(lambda x: wg.matmul(a, x), sparsity=np.ones(a.shape))(np.ones(a.shape[0]))
    np.testing.assert_array_equal(whole, np.asarray(a))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_deep_functions_and_numbers_that_underflow_are_no_entries(dtype: str) -> None:
    def deep(x: Any) -> Any:
        for _ in range(100):
            x = wg.sin(x) * 0.75 + x * 0.25
        return wg.exp(-10 * x)

    x = np.linspace(0.1, 10, 400).astype(dtype)
    np.testing.assert_array_equal(
        jacobian(deep, sparsity=np.eye(400))(x), np.diag(wg.func.elementwise_grad(deep)(x))
    )


def test_entries_that_cancel_larger_numbers_are_no_others() -> None:
    x = np.random.default_rng(0).uniform(0.99, 1.01, 400)
    pattern = np.eye(399, 400) + np.eye(399, 400, k=1)

    def weak(x: Any) -> Any:
        return x[:-1] ** 2 - 2 * x[:-1] + 1e-3 * x[1:]

    np.testing.assert_allclose(jacobian(weak, sparsity=pattern)(x), jacrev(weak)(x), atol=1e-15)
    with pytest.raises(ValueError, match="compute in float64"):
        jacobian(weak, sparsity=pattern)(x.astype("float32"))
    x = x.astype("float32")  # powers of two keep the digits of a single entry
    np.testing.assert_array_equal(
        jacobian(lambda x: x**2 - 2 * x, sparsity=np.eye(400))(x), np.diag(2 * x - 2)
    )


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value", "ignore:overflow")
def test_what_is_not_finite_is_refused() -> None:
    """Nothing can be said about its row."""

    def root(x: Any) -> Any:
        return wg.stack([wg.sqrt(x[0]) + x[1], x[1]])

    huge = np.ones((4, 4), dtype="float32")
    huge[:, 0] = [3e38, -3e38, 3e38, 1e37]
    factors = wg.asarray([1.0, np.nan, 1.0, 1.0], dtype=wg.float64)
    for f, pattern, x in [
        (root, [[0, 1], [0, 1]], np.array([0.0, 1.0])),
        (root, [[1, 1], [0, 1]], np.array([0.0, 1.0])),
        (lambda x: factors * x[1:] + x[:-1], CHAIN, numbers()),
        # The entries' sum is finite, but not that of their sizes.
        (
            lambda x: wg.matmul(wg.asarray(huge), x),
            huge != np.float32(1e37),
            np.zeros(4, dtype="float32"),
        ),
    ]:
        with pytest.raises(ValueError, match="can't be checked here"):
            jacobian(f, sparsity=pattern)(x)


def by_numbers(x: Any, g: Any) -> Any:
    """The rule of a square, which reads the numbers of one cotangent."""
    return wg.asarray(2 * x.detach().numpy() * g.detach().numpy())


def hooked(x: Any) -> Any:
    y = x[1:] ** 2
    if y.requires_grad:  # not by columns
        y.register_hook(lambda g: g * 3)
    return y * x[0]


def counting(x: Any) -> Any:
    return arrow(x) * COUNT.add_(1)


COUNT = wg.zeros((), dtype=wg.float64)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: of_array(wg.square, by_numbers)(x[1:]) * x[0] + x[:-1],
        lambda x: wg.grad(lambda z: wg.sum(z**3))(x[1:]) * x[0] + x[:-1],
        hooked,
        counting,
    ],
    ids=["function", "transform", "hook", "state"],
)
@pytest.mark.parametrize("columns", [False, True])
def test_functions_without_columns_are_taken_by_rows(f: Any, columns: bool) -> None:
    pattern = ARROW if columns else np.ones((4, 5))
    assert Pattern(pattern).by_rows != columns
    COUNT.zero_()
    found = jacobian(f, sparsity=pattern)(wg.asarray(numbers()))
    assert COUNT.item() == (f is counting)
    COUNT.zero_()
    np.testing.assert_allclose(host(found), host(jacrev(f)(wg.asarray(numbers()))), rtol=1e-14)


@pytest.mark.oracle
def test_compiled_programs_that_can_not_raise_have_nan() -> None:
    jax_numpy = pytest.importorskip("jax.numpy")
    compiled = wg.compile(jacobian(lambda x: x + x[0] * x, sparsity=np.eye(4)))
    x = jax_numpy.zeros(4)
    for _ in range(3):
        assert np.asarray(compiled(x)).tolist() == np.eye(4).tolist()
    assert np.isnan(np.diag(np.asarray(compiled(x + 1)))).all()


def test_saved_programs_check_it_too(tmp_path: Path) -> None:
    compiled = wg.compile(jacobian(lambda x: x + x[0] * x, sparsity=np.eye(4)))
    x = wg.asarray([0.0, 0.0, 0.0, 0.0])
    compiled(x)
    compiled.save(tmp_path / "saved.py")
    (saved,) = [f for k, f in runpy.run_path(str(tmp_path / "saved.py")).items() if "lambda" in k]
    assert saved(x.array).tolist() == np.eye(4).tolist()
    with pytest.raises(ValueError, match="sparsity= is wrong"):
        saved((x + 1.0).array)


def test_misuse_is_explained() -> None:
    for wrong in ([True, False], "abc", [["a", "b"]], [[1], [1, 2]], object(), 3):
        with pytest.raises(ValueError, match="is a matrix"):
            jacobian(chain, sparsity=wrong)
    with pytest.raises(ValueError, match="chunk_size"):
        jacobian(chain, chunk_size=1, sparsity=CHAIN)
    for shape in ((0, 3), (0, 5), (4, 0), (0, 0)):
        with pytest.raises(ValueError, match="sparsity= of shape"):
            jacobian(chain, sparsity=np.zeros(shape))(numbers())
    with pytest.raises(TypeError, match="takes a function"):
        jacobian(3, sparsity=CHAIN)
    for sparsity in (CHAIN.T, CHAIN[1:], CHAIN[:, 1:]):
        with pytest.raises(ValueError, match="sparsity= of shape"):
            jacobian(chain, sparsity=sparsity)(numbers())
    with pytest.raises(ValueError, match="real numbers"):
        jacobian(chain, sparsity=CHAIN)(numbers() + 1j)
    with pytest.raises(ValueError, match="real numbers"):
        jacobian(lambda x: chain(x) * 1j, sparsity=CHAIN)(numbers())
    with pytest.raises(ValueError, match="of one argument"):
        jacobian(lambda x, y: x * y, argnums=(0, 1), sparsity=CHAIN)(numbers(), numbers())
    with pytest.raises(ValueError, match="and one result"):
        jacobian(lambda x: (x, x), sparsity=FAN)(numbers())
