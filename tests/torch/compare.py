"""Evaluates an expression in two libraries, and says how the results differ."""

import ast
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tests.catalogue.torch import arguments


def evaluate(library: Any, line: str, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The result of an expression, and its floating arguments, which require grad."""
    name = library.__name__
    names = {"t": library, "nn": library.nn, "F": import_module(f"{name}.nn.functional")}
    for module in ("distributions", "utils.checkpoint", "utils.data"):
        import_module(f"{name}.{module}")
    tensors = {key: library.tensor(value) for key, value in given.items()}
    tracked = {k: v.requires_grad_() for k, v in tensors.items() if v.is_floating_point()}
    x = tensors["x"]

    def fill(module: Any) -> Any:
        for key, p in module.to(x.dtype).named_parameters():
            values = np.cos(np.arange(p.numel())).reshape(tuple(p.shape)) / 3
            p.data = library.tensor(values).to(p.dtype)
            tracked[key] = p
        return module

    def steps(make: Any) -> Any:
        p = library.nn.Parameter(x.detach().clone())
        optimizer = make([p])

        def closure() -> Any:
            optimizer.zero_grad()
            loss = ((p - tensors["y"].detach()) ** 4).sum()
            loss.backward()
            return loss

        for _ in range(4):
            optimizer.step(closure)
        return p.detach()

    *before, last = ast.parse(line).body
    with TemporaryDirectory() as folder:
        space = {
            "np": np,
            "D": library.distributions,
            "fill": fill,
            "steps": steps,
            "path": f"{folder}/a.pt",
        }
        space |= names | tensors | {"__name__": "rows"}
        exec(compile(ast.Module(before, []), line, "exec"), space)
        assert isinstance(last, ast.Expr)
        return eval(compile(ast.Expression(last.value), line, "eval"), space), tracked


def plain(value: Any) -> Any:
    """What is compared: kinds, dtypes, shapes, values and names of parts."""
    if hasattr(value, "detach"):
        array = value.detach().numpy()
        return (str(value.dtype).rpartition(".")[2], array.shape), array
    if isinstance(value, tuple | list) and any(hasattr(v, "detach") for v in value):
        names = getattr(type(value), "_fields", None) or [
            n for n in ("values", "indices") if hasattr(value, n)
        ]
        parts = [plain(v) for v in value]
        return ("pair", list(names), [p[0] for p in parts]), [p[1] for p in parts]
    if isinstance(value, tuple | list):
        return ("list", str(type(value).__name__)), value
    if type(value).__name__ in ("DType", "dtype"):
        return ("dtype", str(value).rpartition(".")[2]), None
    return (type(value).__name__,), value


def gradients(library: Any, result: Any, tracked: dict[str, Any]) -> dict[str, Any]:
    """Gradients of a weighted sum of all floating results."""
    parts = result if isinstance(result, tuple | list) else [result]
    parts = [p for p in parts if hasattr(p, "requires_grad") and p.requires_grad]
    total = None
    for i, part in enumerate(parts):
        weights = np.cos(np.arange(part.numel()) + i).reshape(tuple(part.shape))
        term = (part * library.tensor(weights).to(part.dtype)).sum().double()
        total = term if total is None else total + term
    if total is None:
        return {}
    leaves = {k: v for k, v in tracked.items() if v.requires_grad}
    found = library.autograd.grad(total, list(leaves.values()), allow_unused=True)
    zero = {k: np.zeros(tuple(v.shape)) for k, v in leaves.items()}
    return {k: zero[k] if g is None else g.numpy() for k, g in zip(leaves, found, strict=True)}


def differences(ours: Any, theirs: Any, line: str, seed: int, dtype: str) -> list[str]:
    """How `wengert.torch` and PyTorch differ on one line."""
    found = []
    for library in (ours, theirs):
        result, tracked = evaluate(library, line, arguments(seed, dtype))
        shape, value = plain(result)
        found.append((shape, value, gradients(library, result, tracked)))
    (shape, value, grads), (shape2, value2, grads2) = found
    if shape != shape2:
        return [f"{line}: {shape} against {shape2}"]
    told = []
    for one, other in zip(*map(leaves, (value, value2)), strict=True):
        if isinstance(one, np.ndarray | float | int):
            rounding = (
                1e-10
                if dtype == "float64"
                and "float64" in str(other.dtype if isinstance(other, np.ndarray) else "")
                else 2e-5
            )
            scale = (
                rounding * max(1.0, np.abs(other[np.isfinite(other)]).max(initial=0.0))
                if (isinstance(other, np.ndarray) and other.dtype.kind in "fc")
                else rounding
            )
            if not np.allclose(one, other, rtol=rounding, atol=scale, equal_nan=True):
                told.append(f"{line}: {one} against {other}")
        elif one != other:
            told.append(f"{line}: {one} against {other}")
    for key, g in grads.items():
        rounding = 2e-5 if dtype == "float32" else 1e-10
        scale = float(np.nan_to_num(np.abs(grads2[key])).max(initial=1.0))
        if not np.allclose(
            g, grads2[key], rtol=rounding, atol=10 * rounding * scale, equal_nan=True
        ):
            told.append(f"{line}: gradient by {key}: {g} against {grads2[key]}")
    return told


def leaves(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]
