"""Runs every function, its derivatives and other features on a library and on NumPy."""

import copy
import pickle
import runpy
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

import wengert as wg
from backend_check.calls import FUNCTIONS, arguments, prepare
from backend_check.comparisons import DRAWING, UNSET, UP_TO_PHASE, describe, difference
from backend_check.time_limit import NoAnswer, time_limit
from wengert.backends import DTYPES, Backend, backend_of, use_backend
from wengert.backends.backend import MissingFunctionError
from wengert.func.trees import tree_leaves
from wengert.testing.problem import on_backend

Verdict = Literal["ok", "lacks", "differs", "fails", "none"]


class Outcome(NamedTuple):
    """The result of one check.

    Attributes
    ----------
    verdict : str
        "ok" where the library agrees with NumPy, "lacks" where a function of the library's is
        missing, "differs" where numbers do, "fails" where an error is raised, and "none" where
        NumPy has no such derivative either.
    why : str
        What is missing, different, or raised.
    """

    verdict: Verdict
    why: str = ""


Arrays = list[Any]
Function = Callable[..., tuple[Any, ...]]


def _weights(array: Any) -> Any:
    """Cotangents or tangents of an array's shape and dtype."""
    found = np.cos(np.arange(array.size, dtype="float64") + 1).reshape(array.shape)
    return (found + 0.5j * found if array.dtype.kind == "c" else found).astype(array.dtype)


def _leaves(leaves: Arrays) -> list[wg.Tensor]:
    return [on_backend(leaf).requires_grad_(True) for leaf in leaves]


def _floating(outs: Sequence[Any]) -> list[wg.Tensor]:
    return [out for out in outs if isinstance(out, wg.Tensor) and out.dtype.inexact]


def _gradient(function: Function, inputs: Sequence[wg.Tensor], again: bool = False) -> Any:
    outs = [out for out in _floating(function(*inputs)) if out.requires_grad]
    if not outs:
        raise NotImplementedError("no derivative")
    return wg.autograd.grad(
        outs,
        inputs,
        [on_backend(_weights(_shape_of(out))) for out in outs],
        create_graph=again,
        materialize_grads=True,
    )


def _shape_of(tensor: wg.Tensor) -> Any:
    """A NumPy array of a Tensor's shape and dtype."""
    return np.zeros(tuple(tensor.shape), dtype=tensor.dtype.host)


def _values(function: Function, leaves: Arrays) -> Any:
    return function(*map(on_backend, leaves))


def _single(function: Function, leaves: Arrays) -> Any:
    if not leaves:
        raise NotImplementedError("no floating argument")
    small = {"f": "float32", "c": "complex64"}
    return function(*[on_backend(leaf.astype(small[leaf.dtype.kind])) for leaf in leaves])


def _reverse(function: Function, leaves: Arrays) -> Any:
    return _gradient(function, _leaves(leaves))


def _forward(function: Function, leaves: Arrays) -> Any:
    tangents = tuple(on_backend(_weights(leaf)) for leaf in leaves)
    _reverse(function, leaves)  # where there is no derivative, forward mode gives zeros
    return wg.func.jvp(
        lambda *inputs: tuple(_floating(function(*inputs))),
        tuple(map(on_backend, leaves)),
        tangents,
    )[1]


def _second(function: Function, leaves: Arrays) -> Any:
    inputs = _leaves(leaves)
    first = [g for g in _gradient(function, inputs, again=True) if g.requires_grad]
    if not first:
        raise NotImplementedError("no second derivative")
    weights = [on_backend(_weights(_shape_of(g))) for g in first]
    return wg.autograd.grad(first, inputs, weights, materialize_grads=True)


def _batched(function: Function, leaves: Arrays) -> Any:
    _reverse(function, leaves)
    return wg.func.jacrev(
        lambda *inputs: tuple(out for out in _floating(function(*inputs))), range(len(leaves))
    )(*map(on_backend, leaves))


def _compiled(function: Function, leaves: Arrays) -> Any:
    def both(*inputs: wg.Tensor) -> Any:
        outs = function(*inputs)
        return *outs, *_gradient(lambda *inputs: outs, inputs)

    step = wg.compile(both)
    inputs = _leaves(leaves)
    step(*inputs)
    found = step(*inputs)
    eager = [line.strip() for line in str(step.report).splitlines() if "ran eagerly" in line]
    return *found, eager[0] if eager else "compiled"


#: What is run for each function, by the heading of its column.
MODES: dict[str, Callable[[Function, Arrays], Any]] = {
    "values": _values,
    "float32": _single,
    "reverse": _reverse,
    "forward": _forward,
    "second": _second,
    "batched": _batched,
    "compiled": _compiled,
}

#: Functions of the process's state or of one library alone.
LEFT = {
    *("manual_seed", "set_default_dtype", "get_default_dtype", "to_backend", "from_dlpack"),
    *("from_numpy", "to_device", "x.to", "x.numpy", "x.item", "x.tolist", "x.cpu", "x.cuda"),
}


def names() -> list[str]:
    """The functions that are called, by their names in `FUNCTIONS`."""
    return [
        name
        for name in FUNCTIONS
        if name not in LEFT and not name.startswith(("nn.", "init.", "optim."))
    ]


def chapter(name: str) -> str:
    """The row of a function in the table: the standard's chapter, or a package of Wengert's."""
    prefix, _, _ = name.rpartition(".")
    if prefix == "x":
        return "methods"
    if prefix:
        return {"F": "nn.functional"}.get(prefix, prefix)
    parts = FUNCTIONS[name].__module__.split(".")
    return parts[2] if parts[1] == "ops" else "data_type"


#: Seconds that a function may take on a library in one mode.
LIMIT = 60.0


def compare(name: str, spec: str, limit: float = LIMIT) -> dict[str, Outcome]:
    """Run one function in all modes on NumPy and on the backend that ``spec`` selects.

    Each run on the backend may take ``limit`` seconds. If the values take longer, no derivatives
    are run.
    """
    outcomes: dict[str, Outcome] = {}
    late = None
    for mode, run in MODES.items():
        if late is not None:
            outcomes[mode] = late
            continue
        try:
            with use_backend("numpy"), _silence():
                expected = _arrays(run(*_prepare(name)))
        except Exception as error:
            if mode == "values":
                raise AssertionError(f"{name} fails on NumPy") from error
            outcomes[mode] = Outcome("none")
            continue
        try:
            with use_backend(spec), _silence(), time_limit(limit):
                found = _arrays(run(*_prepare(name)))
        except (Exception, NoAnswer) as error:
            outcomes[mode] = _failure(error)
            if mode == "values" and isinstance(error, NoAnswer):
                late = outcomes[mode]
            continue
        if len(found) != len(expected):
            why = f"{len(found)} results instead of {len(expected)}"
        elif chapter(name) == "random" or name in (*UNSET, *DRAWING):
            why = next(filter(None, map(_form_difference, found, expected)), "")
        else:
            why = next(filter(None, map(difference, found, expected)), "")
        outcomes[mode] = Outcome("differs" if why else "ok", why)
    return outcomes


def _prepare(name: str) -> tuple[Function, Arrays]:
    function, leaves = prepare(name, arguments(name))
    if name not in UP_TO_PHASE:
        return function, leaves
    return lambda *inputs: tuple(map(wg.abs, function(*inputs))), leaves


def _failure(error: BaseException) -> Outcome:
    if isinstance(error, NoAnswer):
        return Outcome("fails", str(error))
    missing: BaseException | None = error
    while missing and not isinstance(missing, MissingFunctionError):
        missing = missing.__cause__
    if missing:
        return Outcome("lacks", str(missing).partition(" in the version")[0])
    return Outcome("fails", describe(error))


def _form_difference(found: Any, expected: Any) -> str:
    """How random numbers differ in shape or dtype; "" if they do not."""
    if (found.shape, found.dtype) == (expected.shape, expected.dtype):
        return ""
    return f"{found.dtype} {found.shape} instead of {expected.dtype} {expected.shape}"


def _arrays(result: Any) -> list[Any]:
    """The leaves of a result as NumPy arrays."""
    leaves = tree_leaves(result) if isinstance(result, tuple | list | dict) else [result]
    return [
        np.asarray(backend_of(x.array).to_numpy(x.array))
        if isinstance(x, wg.Tensor)
        else _other_leaf(x)
        for x in leaves
    ]


def _other_leaf(value: Any) -> Any:
    """A leaf that is no Tensor as an array; an object by its text."""
    if isinstance(value, np.ndarray | np.generic | int | float | complex):
        return np.asarray(value)
    return np.asarray(str(value))


class _silence(warnings.catch_warnings):
    def __enter__(self) -> Any:
        entered = super().__enter__()
        warnings.simplefilter("ignore")
        return entered


# -- other features ------------------------------------------------------------------------------


def _creation() -> Any:
    x = wg.asarray([[1.0, 2.0], [3.0, 4.0]], dtype="float64")
    return (
        x,
        wg.zeros((2, 3)),
        wg.ones((2, 3), dtype="int64"),
        wg.full((2,), 0.5),
        wg.arange(3),
        wg.linspace(0, 1, 3),
        wg.eye(2),
        wg.zeros_like(x),
        wg.ones(2, device=x.device),
    )


def _indexing() -> Any:
    x = wg.reshape(wg.arange(12, dtype="float64"), (3, 4))
    y = wg.asarray(x, copy=True)
    y[1, 1:3] = 0.5
    y[y > 9] = -1.0
    flags = wg.asarray([True, False, True])
    order = wg.asarray([2, 0])
    y[order, 3] = wg.asarray([20.0, 30.0], dtype="float64")
    y[::-2] += 1.0
    basic = x[0], x[-1], x[1:, ::2], x[..., -1], x[::-1], x[:, -2:0:-1], x[2:1], x[None, 1]
    places = x[order], x[wg.asarray([[-1, 0], [0, -3]])], x[order, 1], x[:, order]
    return *basic, *places, x[flags], x[flags, 1:], x[x > 4], y


def _index_gradients() -> Any:
    x = wg.reshape(wg.arange(12, dtype="float64"), (3, 4)).requires_grad_(True)
    order = wg.asarray([2, 0, 2])
    loss = wg.sum(x[1:, ::2] ** 2) + wg.sum(x[order] ** 3) + wg.sum(wg.take(x, order, axis=1) ** 2)
    return wg.autograd.grad(loss, x)


def _dtypes() -> Any:
    every = [name for name in DTYPES if not name.startswith(("float8", "bfloat", "float16"))]
    return tuple(wg.astype(wg.asarray([0.0, 1.0]), name) for name in every)


def _conversion() -> Any:
    x = wg.asarray([[1.5, 2.5], [3.5, 4.5]], dtype="float64")
    there = x.to_backend("numpy")
    back = there.to_backend(x.backend.name) if _selectable(x.backend) else x
    return x.numpy(), x[0, 0].item(), str(x.tolist()), there, back


def _selectable(backend: Backend) -> bool:
    try:
        wg.get_backend(backend.name)
    except wg.BackendError:
        return False
    return True


def _printing() -> Any:
    return repr(wg.asarray([1.5, 2.5])), str(wg.asarray(3)), repr(wg.ones(2, requires_grad=True))


def _copies() -> Any:
    x = wg.asarray([1.5, 2.5], dtype="float64").requires_grad_(True)
    wg.sum(x**2).backward()
    other, again = copy.deepcopy(x), pickle.loads(pickle.dumps(x))  # noqa: S301 -- its own
    return other, other.grad, again, str(again.requires_grad)


def _devices() -> Any:
    x = wg.asarray([1.5, 2.5])
    backend = x.backend
    name = backend.device_name(backend.device(x.array))
    return str(backend.parse_device(name) == backend.device(x.array)), x.to_device(x.device)


def _network() -> tuple[Any, ...]:
    wg.manual_seed(0)
    model = wg.nn.Sequential(wg.nn.Linear(4, 8), wg.nn.Tanh(), wg.nn.Linear(8, 3)).to("float64")
    return model, on_backend(np.sin(np.arange(24.0)).reshape(6, 4)), on_backend(np.arange(6) % 3)


def _training(compiled: bool) -> Any:
    model, x, t = _network()
    optimizer = wg.optim.Adam(model.parameters(), lr=0.01)

    def step() -> Any:
        optimizer.zero_grad()
        loss = wg.nn.functional.cross_entropy(model(x), t)
        loss.backward()
        optimizer.step()
        return loss.detach()

    run: Any = wg.compile(step) if compiled else step
    losses = [run() for _ in range(4)]
    if compiled and run.report.recordings > 2:  # the first makes the optimizer's state
        raise RuntimeError(str(run.report))
    return (*losses, *(p.detach() for p in model.parameters()))


def _eager_training() -> Any:
    return _training(False)


def _compiled_training() -> Any:
    return _training(True)


def _saving() -> Any:
    model, x, _ = _network()

    @wg.compile
    def predict(x: wg.Tensor) -> Any:
        return wg.special.softmax(model(x), axis=1)

    with wg.no_grad(), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved.py"
        predict(x)
        expected = predict(x)
        predict.save(path)
        return expected, wg.asarray(runpy.run_path(str(path))["predict"](x.array))


def _checkpoints() -> Any:
    model, _, _ = _network()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.safetensors"
        wg.nn.save(model.state_dict(), path)
        return tuple(wg.nn.load(path).values())


#: Other features to run, by their names in the report.
SCENES: dict[str, Callable[[], Any]] = {
    "creation": _creation,
    "data types": _dtypes,
    "indexing": _indexing,
    "gradients of indexing": _index_gradients,
    "conversion": _conversion,
    "printing": _printing,
    "copy and pickle": _copies,
    "devices": _devices,
    "training steps": _eager_training,
    "training steps, compiled": _compiled_training,
    "saved programs": _saving,
    "checkpoints": _checkpoints,
}


def scenes(spec: str, limit: float = LIMIT) -> Iterator[tuple[str, Outcome]]:
    """Run each of `SCENES` on NumPy and on the backend that ``spec`` selects, as `compare` does."""
    for name, scene in SCENES.items():
        with use_backend("numpy"), _silence():
            expected = _arrays(scene())
        try:
            with use_backend(spec), _silence(), time_limit(limit):
                found = _arrays(scene())
        except (Exception, NoAnswer) as error:
            yield name, _failure(error)
            continue
        why = next(filter(None, map(difference, found, expected)), "")
        yield name, Outcome("differs" if why else "ok", why)
