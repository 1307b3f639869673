"""A single process, without a launcher, and what is refused there."""

import sys
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.distributed as wd
from tests.distributed.launching import environment, run
from wengert import nn
from wengert.backends import Backend
from wengert.compiler import messages
from wengert.distributed import carriers, launch


@pytest.fixture(autouse=True)
def alone():
    before = messages.connection()
    wd.init()
    yield
    messages.connect(before)


def test_rank_and_size() -> None:
    assert (wd.rank, wd.size) == (0, 1)
    assert {"rank", "size", "all_reduce"} <= {*dir(wd)}


def test_before_init() -> None:
    messages.connect(None)
    calls = [wd.all_reduce, wd.all_gather, wd.reduce_scatter, wd.broadcast, wd.reduce]
    for call in (*calls, lambda x: list(wd.shard([x])), lambda x: wd.replicate(nn.ReLU())):
        name = "shard|replicate" if call not in calls else call.__name__
        text = rf"^({name}) needs to know the processes: call wengert\.distributed\.init\(\)$"
        with pytest.raises(RuntimeError, match=text):
            call(wg.ones(2))


def test_the_rank_is_not_known_before(monkeypatch) -> None:
    for name in ("rank", "size"):
        monkeypatch.delitem(vars(wd), name)
        with pytest.raises(RuntimeError, match=f"distributed.{name} is known after"):
            getattr(wd, name)


def test_a_timeout_is_positive() -> None:
    for timeout in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="timeout is a number of seconds"):
            wd.init(timeout)


def test_collectives_are_copies(backend: Backend) -> None:
    x = wg.asarray(backend.from_numpy(np.array([1.0, -2.0])), requires_grad=True)
    calls = [wd.all_reduce, wd.all_gather, wd.reduce_scatter, wd.broadcast, wd.reduce]
    calls += [lambda x, op=op: wd.all_reduce(x, op) for op in ("mean", "max", "min")]
    for call in calls:
        y = call(x)
        assert y.backend is x.backend
        np.testing.assert_array_equal(backend.to_numpy(y.detach()._array), [1.0, -2.0])
        (g,) = wg.autograd.grad(wg.sum(y * y), x)
        np.testing.assert_array_equal(backend.to_numpy(g._array), [2.0, -4.0])
        step = wg.compile(lambda x, call=call: wg.sum(call(x) ** 2))
        assert [float(step(x.detach())) for _ in range(3)] == [5.0] * 3


class Twins(messages.Carrier):
    """Two processes that hold the same arrays: what `messages.replicated` gives."""

    size = 2


@pytest.fixture
def carried(monkeypatch) -> list[Any]:
    """The name and the parameters of each exchange of twins."""
    noted: list[Any] = []

    def carry(self, xp, name, x, how):
        noted.append((name, how))
        return messages.replicate(xp, name, x, how, self)

    monkeypatch.setattr(Twins, "carry", carry)
    messages.connect(Twins())
    return noted


@pytest.mark.parametrize(
    ("call", "result", "slope"),
    [
        (wd.all_reduce, [2.0, -4.0], 2),
        (lambda x: wd.all_reduce(x, "mean"), [1.0, -2.0], 1),
        (lambda x: wd.all_reduce(x, "max"), [1.0, -2.0], 1),  # shared by the two
        (wd.all_gather, [1.0, -2.0, 1.0, -2.0], 2),
        (wd.reduce_scatter, [2.0], 1),
        (wd.broadcast, [1.0, -2.0], 2),
        (wd.reduce, [2.0, -4.0], 1),
    ],
)
def test_twins_have_the_derivatives_of_both_losses(call, result, slope, backend: Backend) -> None:
    """The sum of both processes' results, also of higher order and with tangents."""
    messages.connect(Twins())
    x = wg.asarray(backend.from_numpy(np.array([1.0, -2.0])))

    def loss(x: wg.Tensor) -> wg.Tensor:
        return wg.sum(call(x))

    assert call(x).tolist() == result
    assert wg.grad(loss)(x).tolist() == [slope, slope]
    _, tangent = wg.jvp(wg.grad(lambda x: loss(x * x)), (x,), (wg.ones_like(x),))
    assert tangent.tolist() == [2 * slope, 2 * slope]


@pytest.mark.parametrize(
    ("call", "adjoint"),
    [
        (wd.all_reduce, "all_reduce"),
        (wd.all_gather, "reduce_scatter"),
        (wd.reduce_scatter, "all_gather"),
        (wd.broadcast, "reduce"),
        (wd.reduce, "broadcast"),
    ],
)
def test_rows_of_jacobians_are_exchanged_at_once(call, adjoint, carried, backend: Backend) -> None:
    x = wg.asarray(backend.from_numpy(np.array([1.0, -2.0, 3.0, 4.0])))

    def loss(x: wg.Tensor) -> wg.Tensor:
        return wg.sum(call(x) ** 3)

    def rows(function: Any) -> list[Any]:
        pick = wg.grad(lambda x, i: function(x)[i])
        return [pick(x, i).tolist() for i in range(len(function(x)))]

    expected = [rows(call), rows(wg.grad(loss))]
    carried.clear()
    found = wg.func.jacrev(call)(x)
    assert [name for name, _ in carried] == [call.__name__, adjoint]
    assert [found.tolist(), wg.func.hessian(loss)(x).tolist()] == expected
    assert [name for name, _ in carried[2:]] == 2 * [call.__name__, adjoint]


def test_derivatives_name_the_same_root(carried) -> None:
    for call, root in product((wd.broadcast, wd.reduce), (0, 1)):
        carried.clear()
        slope = wg.grad(lambda x: wg.sum(call(x, root) ** 2))  # noqa: B023
        wg.grad(lambda x: wg.sum(slope(x)))(wg.asarray([1.0, -2.0]))  # noqa: B023
        assert {name for name, _ in carried} == {"broadcast", "reduce"}
        assert all(how == {"root": root} for _, how in carried)


class Opposites(messages.Carrier):
    """Two processes, of which the other has what this one has with the other sign."""

    size = 2

    def carry(self, xp, name, x, how):
        assert name == "all_gather"
        return xp.concat([x, xp.negative(x)])


def test_the_largest_and_the_smallest() -> None:
    messages.connect(Opposites())
    for op, result in (("max", [1.0, 2.0]), ("min", [-1.0, -2.0])):
        assert wd.all_reduce(wg.asarray([1.0, -2.0]), op).tolist() == result


def test_rows_that_no_two_processes_can_share() -> None:
    messages.connect(Twins())
    told = r"^reduce_scatter: 3 rows can't be divided by 2 processes$"
    with pytest.raises(ValueError, match=told):
        wd.reduce_scatter(wg.ones(3))


def tracked() -> wg.Tensor:
    return wg.asarray(0.5, requires_grad=True)


REFUSED = [
    (lambda: wd.all_reduce(wg.ones(2), "product"), ValueError, "op is 'sum', 'mean'"),
    (lambda: wd.all_reduce(wg.asarray([1]), "mean"), TypeError, "a mean needs a floating"),
    (lambda: wd.replicate(wg.ones(2)), TypeError, "takes a Module, and not Tensor"),
    (lambda: list(wd.shard([{}])), ValueError, r"a batch has shapes \[\]"),
    (lambda: list(wd.shard([(wg.ones(2), wg.ones(3))])), ValueError, r"shapes \[\(2,\), \(3,\)\]"),
    (lambda: list(wd.shard([(wg.ones(2), "a")])), ValueError, r"shapes \[\(2,\), \(\)\]"),
    (lambda: wd.average(nn.Linear(1, 1)), ValueError, "weight has no gradient on rank 0"),
    (lambda: wd.mean(wg.ones(2), weight=-1), ValueError, "a weight is 0 or more"),
    (lambda: wd.mean(wg.ones(2), tracked()), TypeError, "mean takes a number as weight, through"),
    (lambda: wd.average([tracked()], tracked()), TypeError, "average takes a number as weight"),
    (lambda: wd.mean(wg.asarray([1])), TypeError, "mean takes a floating array"),
]
SUMS = [wd.all_reduce, wd.reduce_scatter, wd.reduce]


def test_refusals() -> None:
    for call, error, text in REFUSED:
        with pytest.raises(error, match=text):
            call()
    for calls, given, error, text in [
        (SUMS, [wg.asarray([True])], TypeError, "has no sum of bool; cast"),
        ([*SUMS, wd.all_gather], [[1.0]], TypeError, "takes a Tensor or an array, and not list$"),
        ([wd.all_gather, wd.reduce_scatter], [wg.ones(())], ValueError, "x has no axis; reshape"),
        (
            [wd.broadcast, wd.reduce],
            [wg.ones(2), 1],
            ValueError,
            "root is a rank from 0 to 0, .* 1$",
        ),
        ([wd.broadcast, wd.reduce], [wg.ones(2), -1], ValueError, "root is a rank .* not -1$"),
    ]:
        for call in calls:
            with pytest.raises(error, match=f"^{call.__name__}:? {text}"):
                call(*given)


def test_half_precision_holds_the_sum_of_weights() -> None:
    x = wg.ones(2, dtype="float16", requires_grad=True)
    for weight in (70_000, wg.asarray(70_000.0)):
        x.grad = wg.full(2, 300.0, dtype="float16")
        wd.average([x], weight)
        for found in (x.grad, wd.mean(x.grad, weight)):
            assert found.dtype is wg.float16
            np.testing.assert_array_equal(found.numpy(), 300.0)


def test_average_and_mean_without_rows() -> None:
    layer = nn.Linear(2, 1)
    wg.sum(layer(wg.ones((3, 2)))).backward()
    before = layer.weight.grad.numpy().copy()
    wd.average(layer, weight=3)
    np.testing.assert_allclose(layer.weight.grad.numpy(), before, rtol=1e-6)
    wd.average(layer.parameters(), weight=wg.asarray(0.5))
    np.testing.assert_allclose(layer.weight.grad.numpy(), before, rtol=1e-6)
    with np.errstate(invalid="ignore"):  # the mean of no rows at all
        assert np.isnan(wd.mean(wg.asarray(float("nan")), weight=0).item())


def test_collectives_are_not_saved(tmp_path) -> None:
    step = wg.compile(lambda x: wd.all_reduce(x) * 2)
    step(wg.ones(2))
    with pytest.raises(ValueError, match="all_reduce can't be written into a file"):
        step.save(tmp_path / "step.py")


def test_a_checkpoint_that_is_not_written_is_an_error(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="no_folder"):
        wd.save(tmp_path / "no_folder" / "run.safetensors", model=nn.Linear(2, 2))


def test_each_collective_once_on_the_quick_path() -> None:
    """A program that fails after a collective, and the function that runs in its place."""
    step = wg.compile(lambda x, i: wg.take(wd.all_reduce(x), i, axis=0))
    carrier = messages.connection()
    for at in (0, 1, 2, 0):
        assert step(wg.asarray([0.0, 1.0, 2.0]), wg.asarray([at])).item() == at
    before = carrier.number
    with pytest.raises(IndexError):
        step(wg.asarray([0.0, 1.0, 2.0]), wg.asarray([7]))
    assert carrier.number == before + 1
    assert step.report.recordings == 1


@pytest.mark.slow
def test_importing_costs_nothing() -> None:
    code = (
        "import sys, wengert as wg, wengert.distributed as wd\n"
        "wd.init(); wd.all_reduce(wg.ones(1))\n"
        "found = {'mpi4py', 'torch', 'subprocess'} & {*sys.modules}\n"
        "found |= {name for name in sys.modules if name.startswith('wengert.compiler.')}\n"
        "found -= {'wengert.compiler.messages'}\n"
        "raise SystemExit(str(found) if found else 0)"
    )
    ended = run([sys.executable, "-c", code])
    assert ended.code == 0, ended.err
    assert "WENGERT_BACKEND" not in environment()


def test_help_needs_no_init() -> None:
    code = "import wengert.distributed as wd, pydoc; print(pydoc.render_doc(wd)[:300])"
    ended = run([sys.executable, "-c", code])
    assert ended.code == 0 and "Programs of several processes" in ended.out, ended.err


def test_an_error_is_told_by_the_users_hook_and_ends_all(monkeypatch, capsys) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: seen.append(error))
    monkeypatch.setattr(launch.atexit, "register", lambda function: None)
    carrier: Any = SimpleNamespace(rank=1, size=2, lost=False, abort=lambda: seen.append("end"))
    launch._end_together(carrier)
    error = ValueError("no")
    sys.excepthook(ValueError, error, None)
    assert seen == [(ValueError, error, None), "end"]
    assert capsys.readouterr().err == "rank 1 of 2 ends all: ValueError: no\n"


def test_texts_of_all_processes_are_by_rank() -> None:
    def run(name: str, given: Any, root: int) -> Any:
        other = given if name == "largest" else np.frombuffer(b'"b"    ', np.uint8)
        return np.maximum(given, other) if name == "largest" else np.concatenate([given, other])

    assert carriers.texts_of(run, 2, "first") == ["first", "b"]


def test_complex_numbers_are_summed_by_parts() -> None:
    seen: list[Any] = []

    def run(name: str, given: Any, root: int) -> Any:
        seen.append(given.dtype.name)
        return given * 2

    x = np.asarray([1 + 2j, -3j], np.complex64)
    np.testing.assert_array_equal(carriers.move_array(run, 2, "all_reduce", x), x * 2)
    assert seen == ["float32"]


def test_launchers_are_known_by_what_they_tell(monkeypatch) -> None:
    for name in (*launch._OF_MPI, *launch._OF_TORCH):
        monkeypatch.delenv(name, raising=False)
    assert launch.by_launcher() == ""
    for name in launch._OF_TORCH:
        assert launch.by_launcher() == ""
        monkeypatch.setenv(name, "1")
    assert launch.by_launcher() == "torchrun"
    monkeypatch.setenv(launch._OF_MPI[1], "2")
    assert launch.by_launcher() == "mpiexec"


def test_dtypes_that_are_not_carried_are_refused() -> None:
    mover: Any = SimpleNamespace(library="MPI", summed={"float64"})
    half, single = (wg.ones(2, dtype=name)._array for name in ("float16", "float32"))
    carriers._check_dtype(mover, "all_gather", single)
    for name, x, host in (("all_reduce", single, None), ("all_gather", half, single)):
        with pytest.raises(TypeError, match=f"{name}: MPI carries no {x.dtype}; cast x"):
            carriers._check_dtype(mover, name, x, host)


def test_an_error_without_a_hook_is_printed_with_its_lines(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr(launch.atexit, "register", lambda function: None)
    carrier: Any = SimpleNamespace(rank=0, size=2, lost=False, abort=lambda: None)
    launch._end_together(carrier)
    sys.excepthook(ValueError, ValueError("no"), None)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["ValueError: no", "rank 0 of 2 ends all: ValueError: no"]
