"""Running random programs, and comparing what Wengert gives with what others do."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from tests.fuzz.engines import WENGERT, pytorch
from tests.fuzz.generator import Program

__all__ = [
    "NAN_IN_PYTORCH",
    "Answer",
    "agree",
    "array_of",
    "by_pytorch",
    "by_wengert",
    "compare",
    "compiled",
    "confirmed",
    "directions",
    "show",
    "unstable",
]


class Answer(NamedTuple):
    """What a program gives: NumPy arrays, in the order of outputs and of inputs."""

    values: list[np.ndarray[Any, Any]]
    first: list[np.ndarray[Any, Any]]
    second: list[np.ndarray[Any, Any]]
    total: float  # the loss
    tangent: np.ndarray[Any, Any] | None = None  # of the loss
    product: list[np.ndarray[Any, Any]] | None = None  # of the Hessian and the directions


def compiled(program: Program) -> Any:
    """The function of a namespace and inputs."""
    if function := getattr(program, "function", None):  # which was pasted
        return function
    scope: dict[str, Any] = {"np": np}
    exec(compile(program.source, f"<program {program.seed}>", "exec"), scope)
    return scope["program"]


def directions(inputs: list[np.ndarray[Any, Any]], which: int) -> list[np.ndarray[Any, Any]]:
    """Fixed directions, without a symmetry."""
    found = []
    for i, x in enumerate(inputs):
        t = np.cos(np.arange(x.size) * (1.7 + which) + i + which).reshape(x.shape)
        if x.dtype.kind == "c":
            t = t + 1j * np.sin(np.arange(x.size) * 2.3 + i).reshape(x.shape)
        found.append(t.astype(x.dtype))
    return found


def by_wengert(program: Program, backend: str = "numpy", forward: bool = True,
               inputs: list[np.ndarray[Any, Any]] | None = None) -> Answer:  # fmt: skip
    """Run a program on one of Wengert's backends."""
    function = compiled(program)
    arrays = list(program.inputs.values()) if inputs is None else inputs
    made = wg.get_backend(backend)

    def tensors(values: list[Any], requires_grad: bool = False) -> list[Any]:
        found = [wg.Tensor(made.from_numpy(x.copy())) for x in values]
        return [x.requires_grad_(requires_grad) for x in found]

    with wg.use_backend(backend):
        xs = tensors(arrays, requires_grad=True)
        us = tensors(directions(arrays, 0))
        total, outputs = function(WENGERT, *xs)
        first: Any = [wg.zeros_like(x) for x in xs]
        second = first
        if total.requires_grad:
            first = wg.autograd.grad(total, xs, create_graph=True, materialize_grads=True)
            dot: Any = 0.0
            for g, u in zip(first, us, strict=True):
                if g.requires_grad:
                    dot = dot + WENGERT.number(g * wg.conj(u))
            if isinstance(dot, wg.Tensor):
                second = wg.autograd.grad(dot, xs, materialize_grads=True)
        tangent = product = None
        if forward:
            plain = tensors(arrays)
            _, tangent = wg.jvp(lambda *x: function(WENGERT, *x)[0], plain, us)
            tangent = tangent.detach()
            # Forward over reverse, where `hvp` is reverse over reverse.
            gradient = wg.grad(lambda *x: function(WENGERT, *x)[0], range(len(plain)))
            product = wg.jvp(gradient, plain, us)[1]

    def arrays_of(found: Any) -> list[Any]:
        return [x.detach().to_backend("numpy").numpy() for x in found]

    return Answer(
        arrays_of(outputs),
        arrays_of(first),
        arrays_of(second),
        total.item(),
        None if tangent is None else arrays_of([tangent])[0],
        None if product is None else arrays_of(product),
    )


_torch: list[Any] = []


def array_of(tensor: Any) -> np.ndarray[Any, Any]:
    """The values of a Tensor of PyTorch's, also of one that is conjugated or zero by a flag."""
    if tensor._is_zerotensor():  # without memory, which `numpy` may read all the same
        tensor = tensor.new_zeros(tensor.shape)
    return np.asarray(tensor.detach().numpy(force=True))


def by_pytorch(program: Program, inputs: list[np.ndarray[Any, Any]] | None = None) -> Answer:
    """Run a program on PyTorch."""
    import torch

    if not _torch:
        _torch.append(pytorch())
    xp = _torch[0]
    arrays = list(program.inputs.values()) if inputs is None else inputs
    xs = [torch.tensor(x, requires_grad=True) for x in arrays]
    us = [torch.tensor(x) for x in directions(arrays, 0)]
    total, outputs = compiled(program)(xp, *xs)
    zeros = [torch.zeros_like(x) for x in xs]
    first: Any = zeros
    second: Any = zeros
    if total.requires_grad:
        first = torch.autograd.grad(total, xs, create_graph=True, allow_unused=True)
        dot: Any = 0.0
        for g, u in zip(first, us, strict=True):
            if g is not None and g.requires_grad:
                dot = dot + xp.number(g * u.conj())
        if isinstance(dot, torch.Tensor):
            second = torch.autograd.grad(dot, xs, allow_unused=True)

    def filled(found: Any) -> list[Any]:
        return [array_of(z if g is None else g) for g, z in zip(found, zeros, strict=True)]

    values = list(map(array_of, outputs))
    return Answer(values, filled(first), filled(second), total.item())


# -- comparison ----------------------------------------------------------------------------------

#: Functions with points at which PyTorch's own derivative is nan and Wengert's is not: there what
#: PyTorch says is not looked at, in programs that call them. (docs/explanation/singular_points.rst)
NAN_IN_PYTORCH = {
    "hypot": "the gradient at (0, 0) is 0 here, as of the norm",
    "vector_norm": "the second derivative of the norm at 0 is 0 here, as the first",
    "std": "as of the norm, where all elements are equal",
    "copysign": "PyTorch divides by the operand, and so at 0 and at infinities",
    "prod": "PyTorch divides by the factors, and so at infinities",
    "cumulative_prod": "likewise",
    "logaddexp": "at two equal infinities it is a half here, as of the maximum",
}


def _close(a: Any, b: Any, scale: float, eps: float) -> bool:
    """Equal to rounding; where one is infinite or nan the other has to be the same."""
    with np.errstate(all="ignore"):
        return bool(
            np.allclose(a, b, rtol=1e4 * eps, atol=2e3 * eps * max(1.0, scale), equal_nan=True)
        )


def _scale(arrays: list[Any]) -> float:
    sizes = [float(np.max(np.abs(x), initial=0, where=np.isfinite(x))) for x in arrays]
    return max(sizes, default=0.0)


def _boundless(values: list[Any]) -> bool:
    """Whether a complex value is infinite or nan: C leaves open what becomes of its parts."""
    return any(x.dtype.kind == "c" and not np.all(np.isfinite(x)) for x in values)


def precision(program: Program) -> float:
    """The coarsest precision of what a program computes with."""
    text = program.source + "".join(str(x.dtype) for x in program.inputs.values())
    coarse = "float32" in text or "complex64" in text
    return float(np.finfo(np.float32 if coarse else np.float64).eps)


def compare(program: Program, found: Answer, expected: Answer, *, oracle: bool) -> str | None:
    """What differs first between two answers, in a few words, or None.

    Parameters
    ----------
    program : Program
        The program.
    found, expected : Answer
        What it gives.
    oracle : bool
        Whether ``expected`` is PyTorch's, so that documented points count.
    """
    if _boundless(found.values) or _boundless(expected.values):
        return None
    eps = precision(program)
    forgiven = oracle and any(f"{name}(" in program.source for name in NAN_IN_PYTORCH)
    wild = program.special == "wild"
    for what in ("values", "first", "second"):
        ours, theirs = getattr(found, what), getattr(expected, what)
        scale = _scale([*ours, *theirs])
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            if a.shape != b.shape or a.dtype != b.dtype:
                return f"{what}[{i}]: {a.dtype}{a.shape}, expected {b.dtype}{b.shape}"
            where = ~np.isnan(b) if forgiven and what != "values" else np.ones(b.shape, dtype=bool)
            if forgiven and what == "second":  # nan here, and 0 in PyTorch, where there is none
                where &= ~(np.isnan(a) & (b == 0))
            # At infinities and nan, formulas that are equal elsewhere differ in what is nan.
            if wild and what == "first":
                where = ~np.isnan(a) & ~np.isnan(b)
            elif wild and what == "second":
                where = np.isfinite(a) & np.isfinite(b)
            if not _close(a[where], b[where], scale, eps):
                return f"{what}[{i}]: {a.tolist()}, expected {b.tolist()}"
    return None


def agree(program: Program, answer: Answer) -> str | None:
    """How forward mode differs from reverse mode: in the loss's change, or the Hessian's product.

    Where reverse mode is nan or infinite, a sum of its parts means nothing.
    """
    eps = precision(program)
    us = directions(list(program.inputs.values()), 0)
    if answer.tangent is not None:
        with np.errstate(all="ignore"):
            expected = sum(
                np.sum(np.real(np.conj(g) * u).astype("float64"))
                for g, u in zip(answer.first, us, strict=True)
            )
        scale = 4 * _scale(answer.first)
        meaningless = program.special == "wild" and np.isnan(answer.tangent)
        if (
            np.isfinite(expected)
            and not meaningless
            and not _close(answer.tangent, expected, scale, eps)
        ):
            return f"jvp: {answer.tangent}, and by reverse {expected}"
    if answer.product is not None and program.special != "wild":
        scale = _scale([*answer.product, *answer.second])
        for i, (a, b) in enumerate(zip(answer.product, answer.second, strict=True)):
            finite = np.isfinite(b)
            if not _close(a[finite], b[finite], scale, eps):
                return f"hvp[{i}]: {a.tolist()}, and by reverse {b.tolist()}"
    return None


def confirmed(program: Program, different: str, found: Answer, run: Callable[..., Answer]) -> bool:
    """Whether differences confirm an answer, so that the other one has to be wrong.

    They are those of the value or of the gradient, in double precision; at kinks they confirm
    nothing.
    """
    if different.startswith("values"):
        return False
    if precision(program) > 1e-10:
        # Both are done again in double precision, where differences say more.
        program = _doubled(program)
        found = run(program)
        still = compare(program, found, by_pytorch(program), oracle=True)
        if still is None:
            return False
        different = still
    inputs = list(program.inputs.values())
    us = directions(inputs, 0)
    h = 1e-6
    after, before = (
        run(program, inputs=[x + s * u for x, u in zip(inputs, us, strict=True)]) for s in (h, -h)
    )
    with np.errstate(all="ignore"):
        if different.startswith("second"):
            return all(
                np.allclose(g, (a - b) / (2 * h), rtol=1e-5, atol=1e-5 * max(1, _scale([g])))
                for g, a, b in zip(found.second, after.first, before.first, strict=True)
            )
        slope = sum(np.sum(np.real(np.conj(g) * u)) for g, u in zip(found.first, us, strict=True))
        change = (after.total - before.total) / (2 * h)
        return bool(np.isclose(slope, change, rtol=1e-5, atol=1e-5 * max(1, abs(slope))))


def _nudged(program: Program) -> list[np.ndarray[Any, Any]]:
    """The inputs a few units in the last place away, ties kept."""
    factor = 1 + 8 * precision(program)
    return [(x * factor).astype(x.dtype) for x in program.inputs.values()]


def _shaken(program: Program) -> list[np.ndarray[Any, Any]]:
    return directions(list(program.inputs.values()), 3)


def _doubled(program: Program) -> Program:
    """The same program in double precision."""
    wide = {"float32": "float64", "complex64": "complex128"}
    inputs = {k: x.astype(wide.get(str(x.dtype), x.dtype)) for k, x in program.inputs.items()}
    lines = [
        line.replace("float32", "float64").replace("complex64", "complex128")
        for line in program.lines
    ]
    return program._replace(inputs=inputs, lines=lines)


def unstable(program: Program, found: Answer, run: Callable[..., Answer]) -> bool:
    """Whether a program is so ill-conditioned that what differs is rounding.

    Inputs that are rounded otherwise move the answer as much; and the answers are alike.
    """
    moved = run(program, inputs=_nudged(program))
    if not program.special:  # there are no ties to be kept
        eps = precision(program)
        apart = zip(program.inputs.values(), _shaken(program), strict=True)
        moved = run(program, inputs=[(x + 8 * eps * t).astype(x.dtype) for x, t in apart])
    for what in ("values", "first", "second"):
        for a, b in zip(getattr(found, what), getattr(moved, what), strict=True):
            with np.errstate(all="ignore"):
                change = np.max(np.abs(a - b), initial=0, where=np.isfinite(a) & np.isfinite(b))
            if change > 1e3 * precision(program) * max(1.0, _scale([a])):
                return True
    return False


def show(function: Any, inputs: list[np.ndarray[Any, Any]]) -> None:
    """Print what both libraries give for a program that was pasted."""
    names = [f"x{i}" for i in range(len(inputs))]
    pasted = Pasted(dict(zip(names, inputs, strict=True)), function)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for run in (by_wengert, by_pytorch):
            print(run.__name__)
            for what, found in run(pasted)._asdict().items():  # type: ignore[arg-type]
                print(f"  {what}: {found}")


class Pasted(NamedTuple):
    """As much of a program as is needed to run it."""

    inputs: dict[str, np.ndarray[Any, Any]]
    function: Any
