"""Random programs of the catalogue's calls and of statements between them, for several libraries.

A call has the arguments that its row draws, times a number near 1 that depends on all results
before: so that programs are deep, and operands stay where functions are smooth.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, seed, settings
from hypothesis import strategies as st

import wengert as wg
from tests.catalogue.table import TABLE, TRACKED
from tests.ops.cases import Case, apply, function, inexact_results, is_variable, named, tensor
from wengert.testing.problem import values

#: A row's name and kind with the case; or a statement's name.
Program = list[tuple[str, str, Case | None]]


def changed_after_use(x: Any, y: Any) -> Any:
    z = y.clone()
    used = x.exp(z * 0.1)
    z *= 2.5
    return z * used


def changed_in_place(x: Any, y: Any) -> Any:
    z = y.clone()
    z += 1.5
    z *= y
    z -= 0.5
    return z


def part_assigned(x: Any, y: Any) -> Any:
    z = y.clone()
    if y.ndim:
        z[..., :1] = y[..., -1:] * 2
    return z


def number_assigned(x: Any, y: Any) -> Any:
    z = y * 1.0
    z[...] = 0.5
    return z * y


def masked_assigned(x: Any, y: Any) -> Any:
    z = y * 1.0
    z[x.real(y) > 0.1] = 0.5
    return z * y


def places_assigned(x: Any, y: Any) -> Any:
    z = y.clone()
    if y.ndim:
        z[..., [0]] = y[..., [-1]] * 2
    return z


def without_recording(x: Any, y: Any) -> Any:
    with x.no_grad():
        constant = x.sin(y)
    return constant * y


def by_transform(x: Any, y: Any, way: str) -> Any:
    """Of a real value, the derivative of a function that closes over it."""

    def f(a: Any) -> Any:
        return x.sum(x.sin(a) * y)

    if x.is_complex(y):
        return y
    return x.grad(f)(y) if way == "grad" else x.jvp(f, (y,), (y,))[1]


#: Statements: functions of a namespace and of the last value.
STATEMENTS: dict[str, Callable[[Any, Any], Any]] = {
    "operators": lambda x, y: 2.0 - y * 3 / 4 + (-y) * y,
    "power": lambda x, y: (y * y * 0.5) ** 2,
    "in place": changed_in_place,
    "in place after use": changed_after_use,
    "part assigned": part_assigned,
    "number assigned": number_assigned,
    "detached": lambda x, y: y * y.detach(),
    "no_grad": without_recording,
    "checkpoint": lambda x, y: x.checkpoint(lambda a: x.sin(a) * a, y),
    "grad": partial(by_transform, way="grad"),
    "jvp": partial(by_transform, way="jvp"),
    "kink": lambda x, y: y if x.is_complex(y) else x.abs(y - y.detach()) + y,
    "tie": lambda x, y: y if x.is_complex(y) else x.maximum(y * 1.0, y * 2 - y.detach()),
    "stacked": lambda x, y: x.stack([y, y * 2]) if y.ndim < 3 else y,
    "new axis": lambda x, y: y[None] if y.ndim < 3 else y,
    "last": lambda x, y: y[..., -1] if y.ndim else y,
    "repeated": lambda x, y: y[[0, 0]] if y.ndim else y,
    "summed": lambda x, y: x.sum(y, 0) if y.ndim else y,
    "masked": lambda x, y: y[x.real(y) > 0.1],
    "masked assigned": masked_assigned,
    "places assigned": places_assigned,
    "places": lambda x, y: y[..., [0, -1, 0]] if y.ndim else y,
    "places apart": lambda x, y: y[[0, -1], :, [0, 0]] if y.ndim > 2 else y,
    "places and a new axis": lambda x, y: y[None, [-1, 0, -1]] if 0 < y.ndim < 3 else y,
    "two dtypes": lambda x, y: y if x.is_complex(y) else y + y.to(x.float32) * 2,
    "a mask of numbers": lambda x, y: y * (x.real(y) > 0.1),
    "real and complex": lambda x, y: y * 1j + x.real(y),
    "flat": lambda x, y: x.reshape(y, (-1,)),
    "chosen": lambda x, y: x.where(x.real(y) > 0.1, y, y * y),
}


@st.composite
def programs(draw: Any, rows: Sequence[tuple[str, str]] = TRACKED) -> Program:
    found: Program = []
    for _ in range(draw(st.integers(1, 5))):
        name, kind = draw(st.sampled_from(rows))
        found.append((name, kind, draw(getattr(TABLE[name], kind))))
        between = draw(st.lists(st.sampled_from(sorted(STATEMENTS)), max_size=3))
        found += [(statement, "", None) for statement in between]
    return found


class Answer(NamedTuple):
    """What a program gives, as NumPy arrays: results, and derivatives of their weighted sum."""

    results: list[Any]
    first: list[Any]
    second: list[Any]


class Wengert:
    """Wengert on a backend."""

    def __init__(self, backend: str = "numpy") -> None:
        self.backend = backend
        self.x = SimpleNamespace(**{name: getattr(wg, name) for name in wg.__all__})
        self.x.checkpoint, self.x.grad, self.x.jvp = wg.checkpoint, wg.grad, wg.jvp
        self.x.no_grad, self.x.is_complex = wg.no_grad, lambda y: y.dtype.complex

    def tensor(self, array: Any, requires_grad: bool = False) -> Any:
        return tensor(array, requires_grad)

    def call(self, name: str, case: Case, inputs: Sequence[Any]) -> Sequence[Any]:
        return inexact_results(apply(function(name, TABLE[name]), case, inputs))

    def array(self, y: Any) -> Any:
        return values(y.detach())

    def gradients(self, y: Any, leaves: Sequence[Any]) -> Sequence[Any]:
        return wg.autograd.grad(y, leaves, create_graph=True, materialize_grads=True)


@cache
def oracle(library, name):
    """An oracle's function for a row: by its own name, in the first module that has it; or None."""
    entry = TABLE[name]
    call = getattr(entry, library)
    if call is None or isinstance(call, str):
        if library == "torch":
            torch = pytest.importorskip("torch")
            homes = pytest.importorskip("array_api_compat.torch"), torch, torch.special
        else:
            jax = pytest.importorskip("jax")
            homes = jax.numpy, jax.nn, jax.scipy, jax.scipy.special
        return named(call or name, *homes)
    return call or None


#: What PyTorch says of numbers modulo arrays, and of an array between bounds that are empty.
NONE = ("derivative for aten::remainder is not", "derivative for aten::floor_divide is not")
FAULTS = (*NONE, "match the broadcast shape")


class PyTorch:
    """PyTorch, by the functions that rows name."""

    def __init__(self) -> None:
        import torch
        from torch.utils.checkpoint import checkpoint

        self.torch = torch
        names = "abs maximum sin exp sum stack reshape where real no_grad is_complex float32"
        self.x = SimpleNamespace(**{name: getattr(torch, name) for name in names.split()})
        self.x.checkpoint = partial(checkpoint, use_reentrant=False)
        self.x.grad, self.x.jvp = torch.func.grad, torch.func.jvp

    def rows(self) -> list[tuple[str, str]]:
        """Those that it has a function for."""
        return [row for row in TRACKED if oracle("torch", row[0])]

    def tensor(self, array: Any, requires_grad: bool = False) -> Any:
        return self.torch.tensor(array, requires_grad=requires_grad)

    def call(self, name: str, case: Case, inputs: Sequence[Any]) -> Sequence[Any]:
        if name == "pow" and 0 in np.asarray(case.args[1]):
            reject()  # whose slope by the base is the constant 0 to PyTorch
        rest = iter(inputs)
        made = case.with_arrays(lambda a: next(rest) if is_variable(a) else self.torch.tensor(a))
        found = oracle("torch", name)
        out = found(*made.args, **made.kwargs) if found else reject()
        results = [out] if isinstance(out, self.torch.Tensor) else list(out)
        return [y for y in results if y.is_floating_point() or y.is_complex()]

    def array(self, y: Any) -> Any:
        return y.numpy(force=True)

    def gradients(self, y: Any, leaves: Sequence[Any]) -> Sequence[Any]:
        found = self.torch.autograd.grad(y, leaves, create_graph=True, allow_unused=True)
        zeros = self.torch.zeros_like
        return [zeros(x) if g is None else g for g, x in zip(found, leaves, strict=True)]


def weights(arrays: Sequence[Any], seed: int) -> list[Any]:
    random = np.random.default_rng(seed)
    found = [random.uniform(0.5, 1.5, a.shape) for a in arrays]
    return [
        w + 1j * random.uniform(-1, 1, w.shape) if a.dtype.kind == "c" else w
        for w, a in zip(found, arrays, strict=True)
    ]


def weighed(lib: Any, tensors: Sequence[Any], seed: int) -> Any:
    """The real part of an inner product of tensors with fixed weights."""
    fixed = map(lib.tensor, weights([lib.array(y) for y in tensors], seed))
    return sum(lib.x.sum(lib.x.real(y * w)) for y, w in zip(tensors, fixed, strict=True))


def outputs(program: Program, lib: Any, leaves: Sequence[Any]) -> list[Any]:
    rest, factor, found = iter(leaves), 1.0, []
    y = lib.tensor(np.asarray([0.5, -0.25]))
    for name, _, case in program:
        if case is None:
            y = STATEMENTS[name](lib.x, y) if 0 not in y.shape else y
            found.append(y)
        else:
            results = lib.call(name, case, [next(rest) * factor for _ in case.inexact()])
            found += results
            y = results[0] if results else y
        if 0 not in y.shape:
            factor = 1 + 1e-3 * lib.x.sin(lib.x.sum(lib.x.real(y)))
    return found


def inputs_of(program: Program) -> list[Any]:
    return [np.asarray(x) for _, _, case in program if case is not None for x in case.inexact()]


def run(program: Program, lib: Any) -> Answer:
    """A program's results and derivatives; a program that a library can't run is drawn anew."""
    leaves = [lib.tensor(x, True) for x in inputs_of(program)]
    try:
        results = outputs(program, lib, leaves)
        total = weighed(lib, results, 0)
        if not getattr(total, "requires_grad", False):
            reject()
        first = lib.gradients(total, leaves)
        second = [x * 0 for x in leaves]
        if any(g.requires_grad for g in first):
            second = lib.gradients(weighed(lib, first, 1), leaves)
    except NotImplementedError:
        reject()
    except RuntimeError as error:
        if any(fault in str(error) for fault in FAULTS):
            reject()
        raise
    return Answer(*([lib.array(y) for y in each] for each in (results, first, second)))


def compare(found: Answer, expected: Answer) -> None:
    """Assert that answers are the same, to rounding."""
    for what, ours, theirs in zip(Answer._fields, found, expected, strict=True):
        scale = max((float(np.max(np.abs(b), initial=0)) for b in theirs), default=0.0)
        if not np.isfinite(scale) or scale > 1e12:
            reject()
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{what} {i}"
            size = max(1.0, scale)
            np.testing.assert_allclose(a, b, 1e-7, 1e-9 * size, err_msg=f"{what} {i}")


def compare_modes(program: Program) -> None:
    """Assert that forward mode has the derivatives of reverse mode, of both orders."""
    lib, answer = Wengert(), run(program, Wengert())
    plain = [tensor(x) for x in inputs_of(program)]
    along = [tensor(w) for w in weights(inputs_of(program), 2)]

    def total(*leaves: Any) -> Any:
        return weighed(lib, outputs(program, lib, leaves), 0)

    def inner(tensors: Sequence[Any]) -> float:
        return sum(
            float(np.sum(np.real(np.conj(a) * lib.array(t))))
            for a, t in zip(tensors, along, strict=True)
        )

    scale = max((float(np.max(np.abs(g), initial=0)) for g in answer.first), default=0.0)
    tangent = wg.jvp(total, plain, along)[1].item()
    np.testing.assert_allclose(tangent, inner(answer.first), 1e-7, 1e-8 * max(1.0, scale))
    gradient = wg.grad(total, range(len(plain)))
    pushed = wg.jvp(gradient, plain, along)[1]
    swept = wg.hvp(total, plain, along)
    for a, b in zip(map(lib.array, pushed), map(lib.array, swept), strict=True):
        size = max(1.0, scale, float(np.max(np.abs(b), initial=0)))
        np.testing.assert_allclose(a, b, 1e-7, 1e-8 * size)


def examined(count: int, number: int) -> str:
    """What differs of so many programs of a seed, of which the shortest is shown."""

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=HealthCheck,
    )
    @given(programs())
    def check(program):  # type: ignore[no-untyped-def]
        compare_modes(program)
        compare(run(program, Wengert()), run(program, PyTorch()))

    with warnings.catch_warnings(), np.errstate(all="ignore"), wg.use_backend("numpy"):
        warnings.simplefilter("ignore")
        try:
            check()
        except Exception as error:
            notes = "\n".join(getattr(error, "__notes__", ()))
            return f"seed {number}: {type(error).__name__}: {error}\n{notes}"
    return ""
