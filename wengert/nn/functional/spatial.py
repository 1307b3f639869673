"""What functions of signals and images share: options for each axis, examples, margins."""

from collections.abc import Sequence
from operator import index
from typing import Any, Literal, cast, get_args

from wengert import ops
from wengert.ops.axes import number
from wengert.ops.beyond.padding import pad as margins
from wengert.tape.primitive import PRIMITIVES, anew
from wengert.tape.tensor import Tensor, wrap

Sizes = tuple[int, ...]
Mode = Literal["constant", "reflect", "replicate", "circular"]
#: What NumPy calls them, after `Mode`.
_MARGINS = dict(zip(get_args(Mode), ("constant", "reflect", "edge", "wrap"), strict=True))
#: Of how many axes the names of docstrings and errors are.
AXES = {1: "L", 2: "H, W"}


def sizes(value: Any, count: int, function: str, option: str, least: int = 0) -> Sizes:
    """An option's number for each spatial axis, of one for all or a sequence."""
    try:
        several = isinstance(value, list | tuple)
        found = tuple([index(n) for n in value]) if several else (index(value),)
    except TypeError:
        raise TypeError(
            f"{function} takes an integer or {count} of them as {option}, and was given {value!r}"
        ) from None
    if len(found) not in (1, count):
        raise RuntimeError(
            f"{function} takes an integer or {count} of them as {option}, and was given {value!r}"
        )
    if min(found) < least:
        raise RuntimeError(f"{function} needs {option} of {least} at least, and got {value!r}")
    return found if len(found) == count else found * count


def examples(x: Any, count: int, function: str) -> tuple[Tensor, bool]:
    """An input with its axis of examples, and whether it had one."""
    if not hasattr(x, "shape"):
        raise TypeError(f"{function} takes a Tensor or an array, not {type(x).__name__}")
    found = wrap(x)
    batched = found.ndim == count + 2
    if not (batched or found.ndim == count + 1) or 0 in found.shape[batched:]:
        raise RuntimeError(
            f"{function} takes an input of shape (N, C, {AXES[count]}) or (C, {AXES[count]}), "
            f"where N alone may be 0, and was given one of shape {tuple(found.shape)}"
        )
    return (found if batched else ops.reshape(found, (1, *found.shape))), batched


def unbatch(x: Tensor, batched: bool) -> Tensor:
    """A result without the axis of examples, if the input had none."""
    return x if batched else ops.reshape(x, tuple(x.shape[1:]))


def pad_with_zeros(x: Tensor, widths: Sequence[tuple[int, int]]) -> Tensor:
    """``x`` with zeros before and after its last axes; without elements where a width is < 0."""
    lengths = x.shape[x.ndim - len(widths) :]
    if any(n < 0 for pair in widths for n in pair):
        kept = [
            slice(max(-before, 0), max(n - max(-after, 0), 0))
            for (before, after), n in zip(widths, lengths, strict=True)
        ]
        x = x[(..., *kept)]
        return pad_with_zeros(x, [(max(before, 0), max(after, 0)) for before, after in widths])
    if not any(map(any, widths)):
        return x
    place = [slice(a, a + n) for (a, _), n in zip(widths, lengths, strict=True)]
    wide = [a + n + b for (a, b), n in zip(widths, lengths, strict=True)]
    shape = (*x.shape[: x.ndim - len(widths)], *wide)
    return cast(Tensor, PRIMITIVES["scatter_add"].bind(x, key=(..., *place), shape=shape))


def pad(input: Any, pad: Sequence[int], mode: Mode = "constant", value: Any = None) -> Tensor:
    """Return an array with margins on its last axes.

    Cotangents go back to the elements that the margins are made of, and are added up. Raises
    `NotImplementedError` if the mode is unknown; `RuntimeError` if the widths are no pairs, or
    more pairs than axes, if a negative width is longer than its axis, or a margin longer than what
    it is made of; `ValueError` if ``value`` is given for another mode.
    PyTorch: ``torch.nn.functional.pad``.

    Parameters
    ----------
    pad : sequence of int
        Widths before and after the last axis, then before and after the one before it, and so on.
        Where one is negative, elements are left out.
    mode : {"constant", "reflect", "replicate", "circular"}
        What is in the margins: a constant, the elements mirrored at the last one, the last one, or
        those of the other end. With negative widths ``"circular"`` repeats what they leave, and the
        others mirror or repeat the ends of the whole axis.

    Examples
    --------
    >>> wg.nn.functional.pad(wg.asarray([1, 2, 3]), (1, 2), mode="circular")
    tensor([3, 1, 2, 3, 1, 2])
    """
    x = wrap(input)
    if not isinstance(pad, list | tuple):
        raise TypeError(f"pad takes a sequence of integers as pad, not {pad!r}")
    given = sizes(pad, len(pad), "pad", "pad", -(2**62)) if pad else ()
    value = None if value is None else number(value, "pad", "value")
    pairs = list(zip(given[::2], given[1::2], strict=False))[::-1]
    if len(given) % 2 or len(pairs) > x.ndim:
        raise RuntimeError(
            f"pad needs two widths for each of some of {x.ndim} axes, and was given {tuple(pad)}"
        )
    if mode not in _MARGINS:
        raise NotImplementedError(f"pad: mode is one of {', '.join(_MARGINS)}, and not {mode!r}")
    if mode != "constant" and value is not None:
        raise ValueError(f"pad: value is for mode 'constant', and not {mode!r}")
    lengths = x.shape[x.ndim - len(pairs) :]
    for n, (before, after) in zip(lengths, pairs, strict=True):
        left = n + min(before, 0) + min(after, 0)
        most = {"constant": 2**62, "reflect": n - 1, "replicate": 2**62 * n, "circular": left}[mode]
        if left < 0 or max(before, after) > most:
            raise RuntimeError(
                f"pad: widths {before} and {after} of mode {mode!r} do not fit an axis of length "
                f"{n} of an input of shape {tuple(x.shape)}"
            )
    if not any(given):
        return anew(x)
    inside = [(min(before, 0), min(after, 0)) for before, after in pairs]
    outside = [(max(before, 0), max(after, 0)) for before, after in pairs]
    if mode == "constant" and not value:
        return pad_with_zeros(pad_with_zeros(x, inside), outside)
    whole = [(0, 0)] * (x.ndim - len(pairs)) + outside
    options = {"constant_values": value} if mode == "constant" else {}
    how = cast(Any, _MARGINS[mode])
    if mode in ("reflect", "replicate"):
        return pad_with_zeros(margins(x, whole, how), inside)
    return margins(pad_with_zeros(x, inside), whole, how, **options)
