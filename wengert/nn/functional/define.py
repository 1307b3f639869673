"""What losses share."""

from collections.abc import Callable
from functools import partial, wraps
from inspect import signature
from typing import Any, Literal, TypeVar, cast, get_args

from wengert import ops
from wengert.backends import DType, add_composite, backend_of, dtype_of
from wengert.interpreters.namespaces import differentiable
from wengert.names import KEYWORDS
from wengert.ops.axes import number
from wengert.ops.hints import refuse_keywords
from wengert.ops.shares import wide_argument
from wengert.tape.node import is_lifted
from wengert.tape.tensor import Tensor, untracked, wrap

Reduction = Literal["mean", "sum", "none"]
REDUCTIONS = get_args(Reduction)

L = TypeVar("L", bound=Callable[..., Tensor])
_DLPACK_CPU = 1
out_of_place = partial(refuse_keywords, refused=KEYWORDS["out of place"])


def on_host(array: Any) -> bool:
    """Whether a raw array's values can be read without waiting for a device.

    False for arrays that are not yet computed, or that processes hold parts of.
    """
    try:
        here = bool(array.__dlpack_device__()[0] == _DLPACK_CPU)
        return here and backend_of(array).is_ready(array)
    except Exception:
        return False


def look(array: Any, check: Callable[..., None], *settings: Any) -> bool:
    """Call ``check(values, *settings)``, which may raise, for values that are `on_host`.

    A compiled program calls it in each run. Return whether they are.
    """
    later = getattr(array, "look", None)
    found = on_host(array if later is None else array.inner)
    if found and later is not None:
        later(check, *settings)
    elif found:
        check(backend_of(array).to_numpy(array), *settings)
    return found


def pair(name: str, input: Any, target: Any, reduction: str) -> tuple[Tensor, Tensor]:
    """The input and the target of a loss as Tensors of one shape; real, but of `l1_loss`."""
    check_reduction(reduction)
    x, y = wrap(input), wrap(target)
    if x.shape != y.shape:
        raise ValueError(
            f"{name} got an input of shape {tuple(x.shape)} and a target of shape "
            f"{tuple(y.shape)}; they should be the same (broadcast one of them first if that is "
            "what you want)"
        )
    dtypes = dtype_of(x._array.dtype), dtype_of(y._array.dtype)
    if (dtypes[0].complex or dtypes[1].complex) and name != "l1_loss":
        raise TypeError(
            f"{name} takes real numbers, and was given {dtypes[0].name} and {dtypes[1].name}; of "
            "complex numbers there are squares of wg.abs, or losses of wg.real and wg.imag"
        )
    return x, y


def weigh_losses(name: str, losses: Tensor, weight: Any, what: str = "weight") -> Tensor:
    """Losses times weights, of which there may be none; an error if these are for other shapes."""
    if weight is None:
        return losses
    out = ops.multiply(losses, weight)
    if out.shape != losses.shape:  # the weights of a column would make a square of it
        raise ValueError(
            f"{name} takes a {what} of a shape that broadcasts to the input's, "
            f"{tuple(losses.shape)}, and was given one of shape {tuple(weight.shape)}"
        )
    return out


def at_least(x: Tensor, least: float) -> Tensor:
    """``x``, or the least value where it is below, with the derivative of ``x`` in both cases."""
    raised = ops.add(ops.subtract(x, detach(x)), least)
    return ops.where(ops.less(x, least), raised, x)


def reduce_losses(loss: Tensor, reduction: str) -> Tensor:
    """The mean or the sum of the elements' losses, or the losses themselves."""
    if reduction == "mean":
        return ops.mean(loss)
    if reduction == "sum":
        return ops.sum(loss)
    check_reduction(reduction)
    return loss


def single_precision(loss: L) -> L:
    """Make a loss compute with half precision in float32: there an element's share may vanish."""
    first = next(iter(signature(loss).parameters))

    @wraps(loss)
    def call(*given: Any, **options: Any) -> Tensor:
        for name in KEYWORDS["Stored"].keys() & options:
            raise TypeError(f"{loss.__name__} takes no {name}, {KEYWORDS['Stored'][name]}")
        x = given[0] if given else options.get(first)
        if x is None or not (hasattr(x, "dtype") and dtype_of(x.dtype).narrow):
            return loss(*given, **options)
        given = given or (options.pop(first),)
        held = [dtype_of(x.dtype) for x in (*given, *options.values()) if hasattr(x, "dtype")]
        others = {key: wide_argument(ops, x) for key, x in options.items()}
        found = loss(*(wide_argument(ops, x) for x in given), **others)
        if any(dtype.inexact and not dtype.narrow for dtype in held):
            return found
        return ops.astype(found, wrap(given[0]).dtype)

    return cast(L, call)


def refusing(function: L) -> L:
    """Let a function refuse options of PyTorch's that it has not, with what to write."""
    named = "Embedding" if function.__name__ == "embedding" else "Stored"
    return refuse_keywords(function, KEYWORDS[named])


def integer(value: Any, function: str, parameter: str) -> Any:
    """An integer of 64 bits, which a trace may follow."""
    value = number(value, function, parameter)
    if not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise TypeError(f"{function} takes an integer of 64 bits as {parameter}, not {value!r}")
    return value


def check_reduction(reduction: str) -> None:
    """Raise `ValueError` for an unknown reduction."""
    if reduction not in REDUCTIONS:
        raise ValueError(
            f"{reduction} is not a valid value for reduction: it is 'mean', 'sum' or 'none'"
        )


def in_one_dtype(given: DType, held: DType) -> str:
    """What to do where an input's dtype is not that of a module's parameters."""
    moved = f", or the module with module.to(wg.{given.name})" if given.inexact else ""
    return f"convert the input with wg.astype(x, wg.{held.name}){moved}"


def same_dtype(function: str, input: Any, weight: Any, bias: Any = None) -> None:
    """Raise an error unless all are arrays of one dtype; there may be no bias."""
    given = {"input": input, "weight": weight} | ({} if bias is None else {"bias": bias})
    for name, a in given.items():
        if not hasattr(a, "dtype"):
            raise TypeError(
                f"{function} takes Tensors and arrays, and was given a {type(a).__name__} as "
                f"{name}; make a Tensor of it with wg.asarray"
            )
    held = {name: dtype_of(a.dtype) for name, a in given.items()}
    others = [dtype for dtype in held.values() if dtype is not held["input"]]
    if others:
        names = ", ".join(f"{name} of {dtype.name}" for name, dtype in held.items())
        raise RuntimeError(
            f"{function} got arrays of different dtypes ({names}); "
            + in_one_dtype(held["input"], others[0])
        )


def share(name: str, composite: Callable[..., Any]) -> None:
    """Add a part of a derivative, for which a backend may have a kernel, to all namespaces."""
    add_composite(name, composite)
    vars(differentiable)[name] = partial(composite, differentiable)


def detach(x: Tensor) -> Tensor:
    """The values, through which no derivative flows."""
    array = x._array
    return untracked(array.as_constant() if is_lifted(array) else array)


def real_floating(name: str, input: Any, what: str = "input") -> Tensor:
    """The input of a function as a Tensor; an error if it is not real floating."""
    x = wrap(input)
    if x.dtype.kind != "real floating":
        raise TypeError(
            f"{name} needs a real floating {what}, not one of {x.dtype.name}; convert with "
            "wg.astype"
        )
    return x
