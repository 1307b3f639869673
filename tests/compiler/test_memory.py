"""Views, copies and what may be either: a replay sees this call's elements, in eager's order."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.fft
import wengert.linalg
import wengert.special
from tests.compiler.bits import same_bits

_rng = np.random.default_rng(0)

#: Arrays of one shape, with their elements in memory in one way or another.
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "in order": lambda x: x,
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "sliced": lambda x: np.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x,
    "reversed": lambda x: x[::-1].copy()[::-1] if x.ndim else x,
    "broadcast": lambda x: np.broadcast_to(x[:1] if x.ndim else x, x.shape),
    "axes swapped": lambda x: np.moveaxis(np.moveaxis(x, 0, -1).copy(), -1, 0) if x.ndim else x,
}
#: Those that programs take apart otherwise come first.
SOME = ("in order", "transposed", "broadcast")
EACH = [*SOME, *(pytest.param(x, marks=pytest.mark.slow) for x in LAYOUTS if x not in SOME)]
#: The first is so large that results have buffers.
SHAPES = [(7, 1, 30, 5), (4, 6), (2, 3, 4), (1, 5), (7,), (), (0, 3)]

#: Results that are views, copies, or one or the other by layout, of an array of any shape.
MOVES: dict[str, Callable[[Any], Any]] = {
    "flat": lambda x: wg.reshape(x, (-1,)) if x.size else wg.reshape(x, (0,)),
    "column": lambda x: wg.reshape(x, (x.size, 1)),
    "same shape": lambda x: wg.reshape(x, x.shape),
    "copied shape": lambda x: wg.reshape(x, x.shape, copy=True),
    "axes back to front": lambda x: wg.permute_dims(x, tuple(range(x.ndim))[::-1]),
    "axis moved": lambda x: wg.moveaxis(x, 0, -1) if x.ndim else x,
    "matrix transposed": lambda x: x.mT if x.ndim > 1 else x,
    "new axis": lambda x: wg.expand_dims(x, axis=0),
    "last new axis": lambda x: x[..., None],
    "squeezed": lambda x: wg.squeeze(wg.expand_dims(x, axis=0), axis=0),
    "flipped": lambda x: wg.flip(x),
    "rolled": lambda x: wg.roll(x, 1),
    "first": lambda x: x[0] if x.ndim and x.shape[0] else x,
    "later": lambda x: x[1:] if x.ndim else x,
    "every other": lambda x: x[..., ::2] if x.ndim else x,
    "backwards": lambda x: x[::-1] if x.ndim else x,
    "chosen": lambda x: x[wg.asarray([0, 0])] if x.ndim and x.shape[0] else x,
    "broadcast": lambda x: wg.broadcast_to(x, (2, *x.shape)),
    "tiled": lambda x: wg.tile(x, (2,) + (1,) * (x.ndim - 1)) if x.ndim else x,
    "tiled once": lambda x: wg.tile(x, (1,) * x.ndim),
    "repeated": lambda x: wg.repeat(x, 1, axis=0) if x.ndim else x,
    "joined": lambda x: wg.concat([x, x]) if x.ndim else x,
    "joined alone": lambda x: wg.concat([x]) if x.ndim else x,
    "stacked": lambda x: wg.stack([x, x], axis=-1),
    "unstacked": lambda x: wg.unstack(x)[-1] if x.ndim and x.shape[0] else x,
    "diagonal": lambda x: wg.linalg.diagonal(x) if x.ndim > 1 else x,
    "lower": lambda x: wg.tril(x) if x.ndim > 1 else x,
    "real": lambda x: wg.real(x + 1j * x),
    "imaginary": lambda x: wg.imag(x + 1j * x),
    "conjugate": lambda x: wg.conj(x),
    "positive": lambda x: +x,
    "cast": lambda x: wg.astype(x, wg.float32),
    "not cast": lambda x: wg.astype(x, x.dtype, copy=False),
    "detached": lambda x: x.detach(),
    "cloned": lambda x: x.clone(),
    "sorted": lambda x: wg.sort(x) if x.ndim else x,
    "clipped": lambda x: wg.clip(x, -0.5, 0.5),
    "rounded": lambda x: wg.round(x),
    "summed over nothing": lambda x: wg.sum(x, axis=()),
    "matrix of it": lambda x: wg.meshgrid(wg.reshape(x, (-1,)))[0] if x.size else x,
    "differences of none": lambda x: wg.diff(x, n=0) if x.ndim else x,
    "running sums": lambda x: wg.cumulative_sum(x, axis=0) if x.ndim else x,
    "assigned": lambda x: _assigned(x),
    "where": lambda x: wg.where(x > 0, x, 0.0),
    "heads": lambda x: wg.reshape(wg.moveaxis(x, 0, -1), x.shape) if x.ndim else x,
}


def _assigned(x: Any) -> Any:
    x = x.clone()
    x[...] = x * 2
    return x


def given(shape: tuple[int, ...], layout: str) -> list[Any]:
    return [LAYOUTS[layout](_rng.normal(size=shape)) for _ in range(3)]


def check(function: Callable[[Any], Any], points: list[Any]) -> None:
    """Each call of the compiled function gives eager's bits, then and when the next has run."""
    compiled = wg.compile(function)
    earlier: list[tuple[Any, Any]] = []
    for point in points:
        expected = [x.numpy() for x in wg.func.tree_leaves(function(wg.asarray(point)))]
        found = [x.numpy() for x in wg.func.tree_leaves(compiled(wg.asarray(point)))]
        assert all(map(same_bits, found, expected)), compiled.source
        earlier += zip(found, [x.copy() for x in expected], strict=True)
    assert all(same_bits(x, y) for x, y in earlier), compiled.source


@pytest.mark.sampled(32)
@pytest.mark.parametrize("layout", EACH)
def test_views_and_copies_of_inputs_and_of_results(layout: str) -> None:
    """Of each shape; sums round by the order of the elements."""

    def function(x: Any) -> Any:
        found = []
        for at, move in enumerate(MOVES.values()):
            inner = move(wg.exp(x + at / 16))
            found += [move(x), inner, wg.sum(wg.sin(inner)), wg.sin(move(x))]
        return found

    for shape in SHAPES:
        check(function, given(shape, layout))


@pytest.mark.sampled
@pytest.mark.parametrize("first", MOVES)
def test_one_after_the_other(first: str) -> None:
    def function(x: Any) -> Any:
        found = []
        for at, second in enumerate(MOVES.values()):
            inner = second(MOVES[first](wg.exp(x + at / 16)))
            found += [wg.sin(inner), wg.sum(inner * inner)]
        return found

    check(function, given((4, 6), "in order"))


@pytest.mark.sampled
@pytest.mark.parametrize("layout", EACH)
def test_slopes_through_views_and_copies(layout: str) -> None:
    def loss(x: Any) -> Any:
        moved = [move(wg.exp(x * (at / 8))) for at, move in enumerate(MOVES.values(), 1)]
        return sum(wg.sum(wg.tanh(part) ** 2) for part in moved)

    check(wg.value_and_grad(loss), given((4, 6), layout))


def test_another_layout_is_another_program() -> None:
    f = wg.compile(lambda x: wg.sum(wg.exp(x)))
    x = _rng.normal(size=(40, 50))
    for layout in ("in order", "transposed") * 4:
        at = wg.asarray(LAYOUTS[layout](x))
        assert same_bits(f(at).numpy(), wg.sum(wg.exp(at)).numpy())
    assert f.report.recordings == 2


@pytest.mark.filterwarnings("ignore::wengert.ViewWarning")
def test_results_of_one_memory_do_not_show_it():
    """Those of the recorded and of the checked call share memory, and those of a replay do not."""

    def views(x):
        y = x * 2.0
        return x, x[1:], y, y[1:], y.detach(), y

    def changed(f):
        x = wg.asarray([1.0, 2.0, 3.0])
        results = f(x)
        assert results[0] is x
        assert results[2] is results[5]
        for i, result in enumerate(results[:5]):
            result[0] = 10.0 + i
            result += 1.0
        return [result.tolist() for result in results]

    f = wg.compile(views)
    assert [changed(f) for _ in range(4)] == [changed(views)] * 4
    assert f.report.recordings == 1
