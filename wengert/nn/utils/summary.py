"""A network as a table."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from wengert import ops
from wengert.func.trees import tree_leaves
from wengert.nn.conversion import convert
from wengert.nn.module import Module
from wengert.tape.grad_mode import no_grad
from wengert.tape.tensor import Tensor, untracked

_HEAD = ("Layer", "Output shape", "Parameters", "Trainable")


def summary(model: Module, input_shape: Sequence[int] | None = None, input_data: Any = None) -> str:
    """Return a table of all modules: their outputs' shapes and their own parameters.

    The model is called once, in evaluation mode and unrecorded, with ``input_data``, a tuple for
    several inputs, or with zeros of ``input_shape``. Without both it is not called, and shapes are
    left out. Its modes and hooks are afterwards as they were. A parameter that is used in several
    places counts where it is found first, and a module that is listed again is marked as shared.

    Examples
    --------
    >>> model = wg.nn.Sequential(wg.nn.Linear(4, 8), wg.nn.ReLU(), wg.nn.Linear(8, 1))
    >>> print(wg.nn.utils.summary(model, (32, 4)))
    Layer        Output shape  Parameters  Trainable
    ------------------------------------------------
    Sequential        (32, 1)
      0: Linear       (32, 8)          40        yes
      1: ReLU         (32, 8)
      2: Linear       (32, 1)           9        yes
    ------------------------------------------------
    Parameters: 49, trainable: 49, in 196 bytes
    """
    if not isinstance(model, Module):
        raise TypeError(f"summary takes a Module, not {type(model).__name__}")
    if input_shape is not None and input_data is not None:
        raise ValueError("summary takes input_shape or input_data, not both")
    if input_shape is not None:
        input_data = _zeros(model, tuple(input_shape))
    shapes: dict[int, list[str]] = {}
    if input_data is not None:
        _call(model, input_data if isinstance(input_data, tuple) else (input_data,), shapes)
    lines = [_HEAD, *_rows(model, shapes)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    written = [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in lines
    ]
    rule = "-" * (sum(widths) + 2 * len(widths) - 2)
    parameters = list(model.parameters())
    total = sum(p.size for p in parameters)
    trained = sum(p.size for p in parameters if p.requires_grad)
    size = sum(p.size * p.dtype.itemsize for p in parameters)
    sums = f"Parameters: {total:,}, trainable: {trained:,}, in {size:,} bytes"
    return "\n".join([written[0], rule, *written[1:], rule, sums])


def _zeros(model: Module, shape: tuple[int, ...]) -> Tensor:
    """An input of the backend, device and dtype of the first parameter."""
    zeros, like = ops.zeros(shape), next(model.parameters(), None)
    if like is None:
        return zeros
    return untracked(convert(zeros._array, like.backend, like.dtype, like.device))


def _call(model: Module, inputs: Iterable[Any], shapes: dict[int, list[str]]) -> None:
    """Call a model, and note the shapes of its modules' outputs, by the modules' ids."""

    def note(module: Module, args: Any, output: Any) -> None:
        leaves = [leaf for leaf in tree_leaves(output) if hasattr(leaf, "shape")]
        text = ", ".join(str(tuple(leaf.shape)) for leaf in leaves)
        shapes.setdefault(id(module), []).append(text)

    modes = [(module, module.__dict__.get("training")) for module in model.modules()]
    with ExitStack() as handles:
        for module, _ in modes:
            with suppress(TypeError):  # of a class that defines the call itself
                handles.enter_context(module.register_forward_hook(note))
        try:
            with no_grad():
                model.eval()(*inputs)
        finally:
            for module, mode in modes:
                module.__dict__.pop("training", None)
                if mode is not None:
                    module.training = mode


def _rows(model: Module, shapes: dict[int, list[str]]) -> Iterable[tuple[str, str, str, str]]:
    seen: set[int] = set()
    for path, module in model.named_modules(remove_duplicate=False):
        depth = path.count(".") + 1 if path else 0
        name = type(module).__name__
        label = "  " * depth + (f"{path.rpartition('.')[2]}: {name}" if path else name)
        if id(module) in seen:
            yield f"{label} (shared)", "", "", ""
            continue
        seen.add(id(module))
        own = [p for p in module.parameters(recurse=False) if id(p) not in seen]
        seen.update(map(id, own))
        calls = shapes.get(id(module), [""])
        shape = calls[0] + (f" x{len(calls)}" if len(calls) > 1 else "")
        trained = sum(p.requires_grad for p in own)
        trains = "partly" if 0 < trained < len(own) else "yes" if trained else "no" if own else ""
        yield label, shape, f"{sum(p.size for p in own):,}" if own else "", trains
