"""A network as a table."""

from collections.abc import Iterable, Sequence
from typing import Any

from wengert import ops
from wengert.backends import as_dtype
from wengert.func.trees import tree_leaves
from wengert.nn.conversion import convert
from wengert.nn.module import Module
from wengert.nn.parameter import Parameter
from wengert.tape.grad_mode import no_grad
from wengert.tape.tensor import Tensor, untracked

_HEAD = ("Layer", "Output shape", "Parameters", "Trainable")


def summary(
    model: Module,
    input_shape: Sequence[Any] | None = None,
    input_data: Any = None,
    dtype: Any = None,
) -> str:
    """Return a table of all modules: their outputs' shapes and their own parameters.

    The model is called once, in evaluation mode and unrecorded, with zeros or what is given. Its
    modes and hooks are afterwards as they were. A parameter that is used in several places counts
    where it is found first, and a module that is listed again is marked as shared.

    Parameters
    ----------
    input_shape : tuple of int, or sequence of such tuples, optional
        The shape of the input, or of each of several. Without it and ``input_data`` the model is
        not called, and shapes are left out.
    input_data : object, optional
        The input itself; a tuple for several.
    dtype : dtype, optional
        Of inputs of ``input_shape``; by default that of the first parameter.

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
    inputs: tuple[Any, ...] | None = None
    if input_data is not None:
        inputs = input_data if isinstance(input_data, tuple) else (input_data,)
    elif input_shape is not None:
        inputs = tuple(_zeros(model, shape, dtype) for shape in _shapes(input_shape))
    shapes = {} if inputs is None else _describe_outputs(model, inputs)
    return _table(_rows(model, shapes), list(model.parameters()))


def _shapes(given: Any) -> list[tuple[int, ...]]:
    several = [given] if all(isinstance(n, int) for n in given) else list(given)
    for shape in several:
        if not isinstance(shape, tuple | list) or not all(isinstance(n, int) for n in shape):
            raise TypeError(
                f"input_shape is a tuple of integers or a sequence of such tuples, not {given!r}"
            )
    return [tuple(shape) for shape in several]


def _zeros(model: Module, shape: tuple[int, ...], dtype: Any) -> Tensor:
    """An input of the backend, device and, if none is given, dtype of the parameters."""
    zeros = ops.zeros(shape, dtype=None if dtype is None else as_dtype(dtype))
    like = next(model.parameters(), None)
    if like is None:
        return zeros
    wanted = like.dtype if dtype is None else zeros.dtype
    return untracked(convert(zeros._array, like.backend, wanted, like.device))


def _describe_outputs(model: Module, inputs: tuple[Any, ...]) -> dict[int, str]:
    """Call a model, and return how the outputs of its modules look."""
    found: dict[int, list[str]] = {}

    def note(module: Module, args: Any, output: Any) -> None:
        leaves = [leaf for leaf in tree_leaves(output) if hasattr(leaf, "shape")]
        shapes = ", ".join(str(tuple(leaf.shape)) for leaf in leaves)
        found.setdefault(id(module), []).append(shapes)

    modes = [(module, module.__dict__.get("training")) for module in model.modules()]
    handles = []
    try:
        for module, _ in modes:
            try:
                handles.append(module.register_forward_hook(note))
            except TypeError:  # its class defines the call itself
                continue
        model.eval()
        with no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            if mode is None:
                module.__dict__.pop("training", None)
            else:
                module.training = mode
    return {
        number: shapes[0] + (f" x{len(shapes)}" if len(shapes) > 1 else "")
        for number, shapes in found.items()
    }


def _rows(model: Module, shapes: dict[int, str]) -> Iterable[tuple[str, str, str, str]]:
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
        count = f"{sum(p.size for p in own):,}" if own else ""
        yield label, shapes.get(id(module), ""), count, _trainable(own)


def _trainable(parameters: list[Parameter]) -> str:
    kinds = {parameter.requires_grad for parameter in parameters}
    return "" if not kinds else "partly" if len(kinds) > 1 else "yes" if True in kinds else "no"


def _table(rows: Iterable[tuple[str, str, str, str]], parameters: list[Parameter]) -> str:
    lines = [_HEAD, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEAD))]
    written = [
        "  ".join(
            text.rjust(width) if i else text.ljust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    rule = "-" * (sum(widths) + 2 * len(widths) - 2)
    total = sum(p.size for p in parameters)
    trained = sum(p.size for p in parameters if p.requires_grad)
    size = sum(p.size * p.dtype.itemsize for p in parameters)
    sums = f"Parameters: {total:,}, trainable: {trained:,}, in {size:,} bytes"
    return "\n".join([written[0], rule, *written[1:], rule, sums])
