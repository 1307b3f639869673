"""Arrays that are filled: the same values and derivatives as by writes that do not wait."""

import random
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.tape.aliases import ViewWarning


def kinds(n: int) -> list[Any]:
    return [
        lambda r: r.randrange(-n, n),
        lambda r: (r.randrange(n), r.randrange(3)),
        lambda r: (r.randrange(n), slice(r.randrange(2), None)),
        lambda r: np.int64(r.randrange(n)),
        lambda r: slice(r.randrange(n), None),
        lambda r: (slice(None), r.randrange(3)),
        lambda r: [r.randrange(n), r.randrange(n)],
        lambda r: (r.randrange(n), [0, 2]),
        lambda r: (r.randrange(n), ...),
    ]


def program(library: Any, p: Any, seed: int, tracked: bool) -> Any:
    """Reads and writes at random; every array of the way takes part in the result."""
    r = random.Random(seed)
    n = 5
    out = library.zeros((n, 3)) if r.random() < 0.5 else library.ones((n, 3)) * p[0]
    line = library.zeros(n)
    total: Any = 0.0
    for step in range(14):
        key = r.choice(kinds(n))(r)
        what = r.random()
        if what < 0.5:
            value = p[step % 4] * (step + 1) if r.random() < 0.7 else float(step)
            out[key] = value if r.random() < 0.6 else value + out[r.randrange(n)].sum()
        elif what < 0.6:
            out[key] += p[step % 4]
        elif what < 0.7:
            line[r.randrange(n)] = p[step % 4] * line[r.randrange(n)] + step
        elif what < 0.8:
            total = total + (out[key] * (step + 1)).sum()
        elif what < 0.85:
            total = total + (out.T @ out)[0, 1] * 0.1 + len(out) + out.shape[1] + out.ndim
        elif what < 0.9:
            out *= p[1]
        else:
            held = out.copy()
            total = total + library.sin(held).sum()
    return total + (out * out).sum() + (line * library.arange(n)).sum()


@pytest.mark.parametrize("seed", range(60))
def test_reads_and_writes_at_random(room: Any, seed: int) -> None:
    p = np.array([0.3, -0.7, 1.1, 0.4])
    assert float(program(room, room.array(p), seed, True)) == pytest.approx(
        program(np, p, seed, False), rel=1e-12
    )

    def f(q: Any) -> Any:
        return program(room, q, seed, True)

    h = 1e-6
    differences = [
        (program(np, p + h * e, seed, False) - program(np, p - h * e, seed, False)) / (2 * h)
        for e in np.eye(4)
    ]
    assert np.asarray(wg.grad(f)(p)) == pytest.approx(differences, rel=1e-5, abs=1e-5)
    forward = wg.jvp(f, (p,), (np.ones(4),))[1]
    assert float(forward) == pytest.approx(sum(differences), rel=1e-5, abs=1e-5)


def test_a_loop_copies_the_array_a_few_times(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of the whole array are those of `setitem`, whose kernels are counted."""
    from wengert.tape.primitive import PRIMITIVES

    sizes: list[int] = []
    kernels = PRIMITIVES["setitem"].kernels
    own = kernels[np.ndarray]

    def counted(x: Any, *args: Any, **options: Any) -> Any:
        sizes.append(x.size)
        return own(x, *args, **options)

    monkeypatch.setitem(kernels, np.ndarray, counted)
    for n in (50, 500):
        sizes.clear()
        p = wg.tensor(np.linspace(0, 1, n), requires_grad=True)
        out = room.zeros(n)
        out[0] = p[0]
        for i in range(1, len(out)):
            out[i] = out[i - 1] + room.sin(p[i])
        out[0] = 0.5
        (out * out).sum().backward()
        assert sum(size == n for size in sizes) <= 6  # those of the sweep are counted, too
        assert p.grad is not None


def test_errors_are_at_the_line_of_the_write(room: Any) -> None:
    out = room.zeros(3)
    out[0] = 1.0
    with pytest.raises(IndexError):
        out[3] = 1.0
    with pytest.raises(ValueError, match=r"shape|broadcast"):
        out[1] = room.ones(2)
    with pytest.raises(TypeError, match="complex"):
        out[1] = 1j
    assert out.tolist() == [1.0, 0.0, 0.0]
    whole = room.zeros(3, dtype=int)
    with pytest.raises(TypeError, match="does not fit"):
        whole[0] = 0.5
    leaf = wg.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf[0] = 1.0


def test_a_value_that_changes_later_was_stored_as_it_was(room: Any) -> None:
    out, row = room.zeros((2, 2)), room.ones(2)
    out[0] = row
    row += 5
    assert out.tolist() == [[1.0, 1.0], [0.0, 0.0]]


def test_writes_are_recorded_as_when_they_were_made(room: Any) -> None:
    p = wg.tensor([2.0, 3.0], requires_grad=True)
    out = room.zeros(2)
    out[0] = p[0] ** 2
    with wg.no_grad():
        assert out.tolist() == [4.0, 0.0]
    (g,) = wg.autograd.grad(out.sum(), p)
    assert g.tolist() == [4.0, 0.0]
    out = room.zeros(2)
    out[1] = p[1] ** 2
    with wg.inference_mode():
        assert out.sum().item() == 9.0
    (g,) = wg.autograd.grad(out.sum(), p)
    assert g.tolist() == [0.0, 6.0]


def test_what_is_compiled_reads_the_rows(room: Any) -> None:
    def f(p: Any) -> Any:
        out = room.zeros(3)
        for i in range(3):
            out[i] = p[i] * i
        return out.sum()

    run = wg.compile(f)
    for k in range(3):
        p = room.arange(3.0) + k
        assert float(run(p)) == pytest.approx(float(f(p)))


def test_views_of_rows_are_found(room: Any) -> None:
    grid = room.zeros((3, 2))
    grid[0] = 1.0
    row = grid[0]
    with pytest.raises(ViewWarning, match="view"):
        grid[0] = 2.0
    with pytest.raises(ViewWarning, match="view"):
        row += 1
    grid[1] = 2.0  # no view of it
    assert row.tolist() == [1.0, 1.0]
    assert grid.tolist() == [[1.0, 1.0], [2.0, 2.0], [0.0, 0.0]]


def test_copies_and_pickles_are_plain(room: Any) -> None:
    import copy
    import pickle

    out = room.zeros(2)
    out[0] = 1.0
    assert type(copy.deepcopy(out)) is wg.Tensor
    out[1] = 2.0
    assert pickle.loads(pickle.dumps(out)).tolist() == [1.0, 2.0]
    out[1] = 3.0
    assert repr(out) == "tensor([1., 3.], dtype=wengert.float64)"
    assert type(out) is wg.Tensor


def test_a_filled_array_is_returned_by_a_compiled_function(room: Any) -> None:
    @wg.compile
    def run(p: Any) -> Any:
        out = room.zeros(3)
        for i in range(3):
            out[i] = p[i] * (i + 1)
        return out

    for _ in range(3):
        assert run(room.array([1.0, 2.0, 3.0])).tolist() == [1.0, 4.0, 9.0]
    assert "eagerly" not in str(run.report)


def test_a_compiled_function_sees_what_a_vectorized_one_reads(room: Any) -> None:
    scales = [2.0]
    scaled = room.vectorize(lambda t: t * scales[0])
    run = wg.compile(lambda x: scaled(x), check=0)
    for i in range(6):
        scales[0] = 2.0 + i // 3
        assert run(wg.ones(2)).tolist() == [scales[0]] * 2


@pytest.mark.parametrize("tracked", [False, True])
def test_rows_that_wait_keep_the_values_that_were_written(tracked: bool) -> None:
    """Their memory may be the program's."""
    memory = np.ones(2)
    value, x = wg.asarray(memory).requires_grad_(tracked), wg.numpy.zeros((3, 2))
    x[0] = value
    memory[:] = 9.0
    assert x.detach().numpy()[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("tracked", [False, True])
def test_functions_that_write_into_an_array_say_what_to_write(room: Any, tracked: bool) -> None:
    """Also where no derivative would be lost; NumPy's own arrays take the values of Tensors."""
    x = room.ones((2, 3)).requires_grad_(tracked) * 1
    mask = np.ones((2, 3), bool)
    for call, way in (
        (lambda: room.place(x, mask, [0.0]), r"write x\[mask\] = value"),
        (lambda: room.putmask(x, mask, 0.0), r"write x\[mask\] = values\[mask\]"),
        (lambda: room.put(x, [0], 0.0), r"write x\[key\] = values"),
        (lambda: room.put_along_axis(x, mask * 1, 0.0, 0), r"write x\.at\(\(rows, indices\)\)"),
    ):
        with pytest.raises(TypeError, match=way):
            call()
    assert x.detach().tolist() == [[1.0] * 3] * 2
    own = np.zeros(3)
    room.put(own, [1], room.array([2.0]))
    assert own.tolist() == [0.0, 2.0, 0.0]
    with pytest.raises(ValueError, match="Cannot insert from an empty array"):
        room.place(np.zeros(3), np.ones(3, bool), [])
