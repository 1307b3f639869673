"""Batches: what a primitive does to one is what it does to each of its members."""

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.catalogue.table import TABLE
from tests.walking import walk
from wengert.backends import Backend, backend_of, dtype_of
from wengert.func.jacobians import identity
from wengert.interpreters.batched import Batched, members
from wengert.interpreters.duals import Dual
from wengert.interpreters.lifted import constant, lifted, new_level
from wengert.tape.primitive import PRIMITIVES
from wengert.tape.sweep import sweep
from wengert.tape.tensor import Tensor, untracked

COUNT = 3
#: Draws differ from call to call; the members of a batch may have results of different shapes.
FREE = {"rand_like", "nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values"}
#: Whose results depend on the members in ways that no rule can put together.
LOOPS = FREE - {"rand_like"} | {"softmax_cross_entropy"}


def host(x: Any) -> np.ndarray:
    x = x._array if isinstance(x, Tensor) else x
    return backend_of(x).to_numpy(backend_of(x).array(x))


# -- one by one ----------------------------------------------------------------------------------


def test_loops_are_the_exception() -> None:
    """Every primitive of the table has a rule, but for those that are listed here."""
    rows = {name: PRIMITIVES[name] for name in TABLE}
    looped = {n for n, row in rows.items() if row.batch is None and not row.elementwise}
    assert looped <= LOOPS


def test_a_primitive_without_a_rule_runs_for_each_member() -> None:
    logits = np.random.default_rng(0).standard_normal((COUNT, 4, 3))
    labels = wg.asarray(np.array([0, 2, 1, 1]))
    loss = lambda x: wg.nn.functional.cross_entropy(x, labels, reduction="none")
    found = wg.vmap(loss)(wg.asarray(logits))
    np.testing.assert_allclose(host(found), [host(loss(wg.asarray(x))) for x in logits])


ROW, COLUMN = np.array([0, 1, 0]), np.array([[1], [-1]])
MASK = np.array([True, False, True])
KEYS = [
    np.s_[ROW, :, COLUMN],  # arrays that stand apart: their axes come first
    np.s_[0, :, ROW],
    np.s_[ROW, None, COLUMN],
    np.s_[:, ROW, COLUMN],
    np.s_[..., ROW, 1],
    np.s_[ROW],
    np.s_[:, MASK],
    np.s_[ROW[:2], ..., np.array([1, 2, 0, 3])[:2]],
    np.s_[1, ..., None, ::-2],
    np.s_[:, MASK, :, None],
    np.s_[COLUMN[:, 0], :, MASK[:2].astype(int)],
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_batches_are_indexed_by_any_key(key: Any, backend: Backend) -> None:
    """Read, replaced (by a value that broadcasts), and added to: of each member as alone."""
    random = np.random.default_rng(0)
    x = random.standard_normal((COUNT, 2, 3, 4))
    value = random.standard_normal((COUNT, *x[0][key].shape[1:]))
    parts = key if isinstance(key, tuple) else (key,)
    made = tuple(wg.asarray(part) if isinstance(part, np.ndarray) else part for part in parts)

    def read(x: Any) -> Any:
        return x[made]

    def written(x: Any, value: Any) -> Any:
        out = x * 1
        out[made] = value
        return out, wg.at(x)[made].add(value)

    np.testing.assert_array_equal(host(wg.vmap(read)(wg.asarray(x))), [y[key] for y in x])
    for axes in ((0, 0), (None, 0), (0, None)):
        given = [a if at == 0 else a[0] for a, at in zip((x, value), axes, strict=True)]
        found = wg.vmap(written, axes)(*map(wg.asarray, given))
        for m in range(COUNT):
            y, v = (a[m] if at == 0 else a for a, at in zip(given, axes, strict=True))
            replaced, added = y.copy(), y.copy()
            replaced[key] = v
            np.add.at(added, key, v)
            for ours, theirs in zip(found, (replaced, added), strict=True):
                np.testing.assert_allclose(host(ours)[m], theirs, rtol=1e-9, atol=1e-11)


def test_a_length_may_be_left_open() -> None:
    level = new_level()
    x = np.arange(24.0).reshape(2, 3, 4)
    found = lifted.reshape(Batched(x, level), (2, -1))
    np.testing.assert_array_equal(found.inner, x.reshape(2, 2, 6))
    empty = Batched(np.zeros((0, 3, 4)), level)  # of which the length does not follow inside
    assert lifted.reshape(empty, (-1, 2)).inner.shape == (0, 6, 2)


def test_members_of_different_shapes_are_refused() -> None:
    level = new_level()
    batch = untracked(Batched(np.array([[1, 1], [1, 2]]), level))
    with pytest.raises(ValueError, match=r"unique_values .* \(1,\) and \(2,\)"):
        wg.unique_values(batch)


def test_a_batch_looks_like_a_member(backend: Backend) -> None:
    batch = Batched(wg.ones((5, 2, 3), dtype=wg.float32)._array, new_level())
    tensor = untracked(batch)
    assert tuple(tensor.shape) == (2, 3)
    assert (tensor.ndim, tensor.size) == (2, 6)
    assert tensor.dtype is wg.float32
    assert tensor.backend is backend
    with pytest.raises(RuntimeError, match="value for each of 5 members"):
        tensor.numpy()
    with pytest.raises(TypeError, match="has 5 values"):
        bool(tensor[0, 0] > 0)


def test_rows_of_the_identity(backend: Backend) -> None:
    """Of the space of two arrays: all rows, and any piece of them."""
    first = wg.ones((2, 2), dtype=wg.float32)._array
    second = wg.ones(3, dtype=wg.complex128)._array
    whole = np.eye(7)
    for start, stop in [(0, 7), (0, 2), (1, 6), (4, 7), (6, 7), (3, 3)]:
        level = new_level()
        found = identity([first, second], level, start, stop)
        rows = whole[start:stop]
        assert [x.level for x in found] == [level, level]
        assert [tuple(x.shape) for x in found] == [(2, 2), (3,)]
        assert [dtype_of(x.dtype).name for x in found] == ["float32", "complex128"]
        np.testing.assert_array_equal(host(found[0].inner), rows[:, :4].reshape(-1, 2, 2))
        np.testing.assert_array_equal(host(found[1].inner), rows[:, 4:])


def test_what_is_no_batch_has_equal_members() -> None:
    level = new_level()
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(members(x, level, 3), [x, x, x])
    other = Batched(np.ones((4, 2)), new_level())
    assert members(other, level, 3).shape == (3, 2)
    like = Batched(np.zeros((3, 5)), level)
    np.testing.assert_array_equal(constant(x, like).inner, [x, x, x])
    assert constant(like, like) is like


def test_cotangents_conform(backend: Backend) -> None:
    """Broadcasting is undone, and dtypes are restored, for each member."""
    x = wg.ones((2, 1), dtype=wg.float32, requires_grad=True)
    y = wg.ones((4, 3), dtype=wg.float64)
    z = wg.astype(x[:, 0], wg.float64)[0] * y
    level = new_level()
    (g,) = identity([z._array], level, 0, z.size)
    ((node, found),) = sweep([(z._node, g)], keep=False).items()
    assert node is x._node
    assert (tuple(found.shape), found.dtype) == ((2, 1), x._array.dtype)
    np.testing.assert_array_equal(host(found.inner), [[[1], [0]]] * 12)


def test_levels_are_kept_apart() -> None:
    """The outer product of two batches is a batch of batches, whichever comes first."""
    outer, inner = new_level(), new_level()
    x, y = np.arange(2.0), np.arange(3.0) + 1
    a, b = untracked(Batched(x, outer)), untracked(Batched(y, inner))
    for product in (a * b, b * a):
        array = product._array
        assert (array.level, array.inner.level) == (inner, outer)
        assert tuple(array.shape) == ()
        np.testing.assert_array_equal(array.inner.inner, np.multiply.outer(x, y))


def test_detaching_reaches_inside() -> None:
    x, t = np.ones((3, 2)), np.ones((3, 2))
    batch = Batched(Dual(x, t, new_level()), new_level())
    found = untracked(batch).detach()._array
    assert isinstance(found, Batched)
    assert found.inner is x


#: Functions of one batched array, or of two, by the ways in which rules run: with axes moved, for
#: each member, by composites, by labels, and where one input alone is batched.
CALLS: list[Any] = [
    lambda x: wg.cumulative_sum(x, axis=0),
    lambda x: wg.cumulative_sum(x, axis=-1, include_initial=True),
    lambda x: wg.sum(x, axis=0, keepdims=True),
    lambda x: wg.max(x, axis=(0, -1)),
    lambda x: wg.argsort(x, axis=0, descending=True),
    lambda x: wg.unstack(x, axis=1)[2],
    lambda x: wg.unique_counts(x).counts,
    lambda x: wg.linalg.qr(x).R,
    lambda x: wg.linalg.svd(x).S,
    lambda x: wg.linalg.eigh(wg.linalg.matmul(x.mT, x))[0],
    lambda x: wg.take(x, wg.asarray([1, 1]), axis=-1),
    lambda x: wg.flip(x, axis=(0, 1)),
    lambda x, y: wg.linalg.cross(x, y, axis=0),
    lambda x, y: wg.vecdot(x, y, axis=0),
    lambda x, y: wg.vecdot(x, y[0]),
    lambda x, y: wg.vecdot(x[1], y, axis=-1),
    lambda x, y: wg.einsum("ij,kj->ik", x, y),
    lambda x, y: wg.tensordot(x, y, axes=((0, 1), (0, 1))),
    lambda x, y: wg.searchsorted(wg.sort(x[0]), y[1]),
    lambda x, y: wg.take_along_axis(x, wg.argsort(y, axis=0), axis=0),
    lambda x, y: wg.where(x > y, x, y[0]),
    lambda x, y: wg.concat([x, y], axis=-1),
    lambda x, y: wg.stack([x, y], axis=1),
]


@pytest.mark.parametrize("batched", [(True, False), (False, True), (True, True)], ids=str)
def test_functions_run_as_for_each_member(batched: tuple[bool, bool]) -> None:
    random = np.random.default_rng(2)
    pair = [wg.asarray(random.standard_normal((COUNT, 3, 4))) for _ in range(2)]

    def check(at: int) -> None:
        call = CALLS[at]
        count = call.__code__.co_argcount
        axes = tuple([0 if own else None for own in batched[:count]])
        if not any(own == 0 for own in axes):
            return
        given = [x if own else x[0] for x, own in zip(pair[:count], batched, strict=False)]
        found = wg.vmap(call, in_axes=axes)(*given)
        expected = [
            call(*[x[m] if own else x for x, own in zip(given, batched, strict=False)]).numpy()
            for m in range(COUNT)
        ]
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)

    walk([(at,) for at in range(len(CALLS))], check, whole=True)


def test_what_a_mapped_function_closes_over_has_the_sum_of_all_members() -> None:
    w = wg.asarray([1.0, 2.0], dtype="float64", requires_grad=True)
    x = wg.asarray(np.arange(6.0).reshape(3, 2))
    out = wg.vmap(lambda x: wg.sum(wg.sin(w * x)))(x)
    wg.sum(out**2).backward(create_graph=True)
    y, u = x.numpy(), w.detach().numpy()
    inner = np.sin(u * y).sum(1, keepdims=True)
    np.testing.assert_allclose(w.grad.detach().numpy(), (2 * inner * np.cos(u * y) * y).sum(0))


def test_members_change_in_place_under_no_grad() -> None:
    def shifted(x: Tensor) -> Tensor:
        y = x * 2
        with wg.no_grad():
            y += 1
        return y * x

    x = wg.asarray([1.0, 3.0])
    np.testing.assert_array_equal(wg.vmap(shifted)(x).numpy(), [3, 21])
    np.testing.assert_array_equal(wg.vmap(wg.grad(shifted))(x).numpy(), [5, 13])
