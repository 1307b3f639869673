"""What rounding may do to a program: PyTorch in double precision, with noise on each operation.

A program of a coarse dtype is judged by what PyTorch computes in float64 from the same rounded
inputs and constants: the *reference* E. How far rounding may move an answer is found by running
the program again in float64, some times: the answers N of *noisy* runs. There the operands and
the result of each operation, derivatives included, have random errors: relative ones of the
dtype's eps, and absolute ones of its smallest subnormal, which are those of underflow. An element
of an answer A is within bounds if

    |A - E| <= FACTOR * (max |N - E| + eps * |E| + subnormal).

Thus rounding is multiplied by the condition of each step, as in a running error analysis. What
underflows in part has an absolute bound, which the rest of the program magnifies as it does any
error. A sum of n terms may have n times the error of one, but those of half precision are in
float32. Slopes and the Hessian's elements are values that are rounded, too, so forward mode is
bounded as reverse mode is. A quotient may be a product with a reciprocal. For a matrix that is
singular to rounding there is no bound.

A program whose values in E, in forward and backward passes, are zero or in the dtype's normal
range has to be within bounds. Any other one may also give infinities, nan or an error. Its finite
numbers have to be within bounds of E or of the *saturated* run, in which what is above the
dtype's range is infinite and what is below it is zero after each operation of the program, as
IEEE 754 has it: ``1 / (x * x)`` is 0 where the square overflows. All other finite numbers are
wrong, as is any where E and the saturated run overflow.

Noise of an eps does not tell what is absorbed: ``1 + 1e-13`` is 1 in float32, so the standard
deviation of some such is 0, and its slope nan. An answer is also within bounds if it is what
PyTorch in float64 gives when the result of each operation is rounded to the dtype. A second
derivative may be nan, too, where noise moves it by more than its size: its sign is not known, and
any number up to the bound would do. Values and first derivatives are never forgiven a nan.
"""

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = [
    "FACTOR",
    "RANGES",
    "Noisy",
    "Range",
    "Recorded",
    "Rounded",
    "Saturated",
    "alike",
    "change",
    "outside",
]

#: By how much an answer's error may exceed what noise of one eps does to it. Noise is of any size
#: up to an eps, and the largest of some runs is looked at; kernels round more than once.
FACTOR = 8.0


class Range(NamedTuple):
    """What numbers a dtype has."""

    eps: float
    sums: float  # the error for each term of a sum: one after the other, half precision in float32
    smallest: float  # above 0
    normal: float  # the smallest of full precision
    largest: float


def _range(dtype: torch.dtype) -> Range:
    info = torch.finfo(dtype)
    return Range(info.eps, min(info.eps, 2.0**-23) / 2, info.tiny * info.eps, info.tiny, info.max)


RANGES = {
    name: _range(getattr(torch, name)) for name in ("float16", "bfloat16", "float32", "float64")
}
RANGES |= {"complex64": RANGES["float32"], "complex128": RANGES["float64"]}

#: What moves or selects numbers, and computes none. Ties stay ties.
EXACT = """
    clone copy copy_ _to_copy to cat stack index index_put index_put_ index_select gather
    scatter scatter_ take_along_dim where sort max min amax amin maximum minimum clamp
    clamp_min clamp_max abs neg sign sgn relu relu_ repeat flip roll tril triu
    constant_pad_nd zeros ones full zeros_like ones_like full_like new_zeros new_ones
    new_full scalar_tensor lift_fresh eye arange fill fill_ zero zero_ masked_fill
    masked_fill_ floor ceil trunc round floor_ ceil_ trunc_ select_backward slice_backward
    diagonal_backward unfold_backward _efficientzerotensor eq ne lt le gt ge isnan isinf
    isfinite threshold threshold_backward hardtanh hardtanh_backward _conj_physical
    view_as_real_copy select_scatter slice_scatter lift detach
"""
#: What rounds once: its result alone is noisy.
ARITHMETIC = "add sub mul div rsub sqrt reciprocal add_ sub_ mul_ div_ square"
#: Logarithms of sums, whose errors are those of the largest term: near 0 they are absolute.
ABSOLUTE = {"_log_softmax", "logsumexp"}
#: What is stable by the norm of an operand, not element by element.
NORMWISE = ("linalg_", "_linalg_", "cholesky", "lu_", "triangular_solve", "ormqr", "_cdist")


class _Operation(NamedTuple):
    """How the results and operands of one of PyTorch's operations are treated."""

    computes: bool
    in_place: bool
    operands: bool  # are noisy, too
    normwise: bool
    probabilities: bool  # are the operands, and stay so
    absolute: bool  # is the error of a result near 0
    divides: bool
    averages: bool  # by a sum, which may leave the range
    sums: bool  # of terms that the shape of a result does not tell
    centred: bool  # by a mean
    normalises: bool  # what is centred, and tells the mean and the slope
    rough: bool  # in PyTorch, to ten digits
    multiplies: bool  # factor by factor: products of the first ones may underflow


_EXACT, _ARITHMETIC = set(EXACT.split()), set(ARITHMETIC.split())


def _operation(function: Any) -> _Operation:
    schema = function._schema
    name = schema.name.partition("::")[2]
    aliases = [r.alias_info for r in schema.returns if r.alias_info is not None]
    in_place = any(a.is_write for a in aliases) or any(
        a.alias_info is not None and a.alias_info.is_write for a in schema.arguments
    )
    view = bool(aliases) and not in_place
    return _Operation(
        computes=not view and "empty" not in name,
        in_place=in_place,
        operands=name not in _EXACT and name not in _ARITHMETIC,
        normwise=name.startswith(NORMWISE),
        probabilities=name == "binary_cross_entropy",
        absolute=name in ABSOLUTE,
        divides=name == "div",
        averages=name == "mean",
        sums="softmax" in name,
        centred=name.startswith(("std", "var", "native_")),
        normalises="native_" in name and name.endswith(("_norm", "_legit")),
        rough=name == "polygamma",
        multiplies=name in ("cumprod", "prod"),
    )


_known: dict[Any, tuple[_Operation, bool]] = {}


def _floats(found: Any) -> Iterator[torch.Tensor]:
    if isinstance(found, torch.Tensor):
        inexact = found.is_floating_point() or found.is_complex()
        if inexact and found.numel() and found.device.type == "cpu":
            yield found
    elif isinstance(found, list | tuple):
        for part in found:
            yield from _floats(part)


class _Mode(TorchDispatchMode):
    """Runs each operation, and looks at what it computes."""

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function not in _known:
            operation = _operation(function)
            exact = function._schema.name.partition("::")[2] in _EXACT
            _known[function] = operation, exact
        operation, exact = _known[function]
        if function is torch.ops.aten.mul.Scalar and args[0]._is_zerotensor():
            args = args[0].new_zeros(args[0].shape), *args[1:]  # PyTorch 2.13 crashes
        if not operation.computes:
            return function(*args, **(kwargs or {}))
        if operation.operands and not exact:
            args = self.given(args, operation)
        found = function(*args, **(kwargs or {}))
        terms = max((x.numel() for x in _floats(args)), default=1)
        self.computed(found, exact, operation, terms)
        if operation.divides:
            self.divided(found, args[0])
        if operation.normalises:
            self.normalised(*found[:3])
        if operation.multiplies:
            self.multiplied(found, *args[:2])
        return found

    def given(self, args: Any, operation: _Operation) -> Any:
        return args

    def divided(self, found: Any, numerator: Any) -> None:
        """What else is to be done after a division."""

    def normalised(self, found: Any, mean: Any, slope: Any) -> None:
        """What else is to be done after a normalisation."""

    def multiplied(self, found: Any, factors: Any, dim: int | None = None) -> None:
        """What else is to be done after products along an axis, or of all factors."""

    def computed(self, found: Any, exact: bool, operation: _Operation, terms: int) -> None:
        raise NotImplementedError


class Recorded(_Mode):
    """Notes the magnitudes of all that is computed."""

    def __init__(self) -> None:
        super().__init__()
        self._values: list[torch.Tensor] = []

    def computed(self, found: Any, exact: bool, operation: _Operation, terms: int) -> None:
        for x in _floats(found):
            x = torch.view_as_real(x.resolve_conj()) if x.is_complex() else x
            if not x._is_zerotensor():
                self._values.append(x.clone() if operation.in_place else x)
                if operation.averages:
                    self._values.append(x * (terms / x.numel()))

    def sizes(self) -> torch.Tensor:
        """The magnitudes, zeros left out."""
        if not self._values:
            return torch.ones(1)
        size = torch.cat([x.detach().reshape(-1).to(torch.float64) for x in self._values]).abs()
        return size[size != 0] if bool((size != 0).any()) else torch.ones(1)


_POOL = 1 << 14


class Noisy(_Mode):
    """Changes operands and results of each operation as rounding, or underflow too, might."""

    def __init__(self, range_: Range, seed: int, underflow: bool) -> None:
        super().__init__()
        # Every other run leaves operands: what they do may be so much that it hides the rest.
        self._operands = seed % 2 == 1
        self._random = random.Random(seed)
        self._range, self._underflow = range_, underflow
        generator = torch.Generator().manual_seed(seed)
        self._noise = torch.rand(_POOL, generator=generator, dtype=torch.float64) * 2 - 1
        self._factors = 1 + range_.eps * self._noise

    def _drawn(self, pool: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        n = x.numel()
        if n > _POOL // 2:
            pool = pool.repeat(2 + n // _POOL)
        start = self._random.randrange(pool.numel() - n + 1)
        return pool[start : start + n].view(x.shape)

    def _changed(self, x: torch.Tensor, normwise: bool = False, sums: bool = False) -> torch.Tensor:
        if normwise:
            moved = x + x.abs().amax() * self._range.eps * self._drawn(self._noise, x)
        else:
            moved = x * self._drawn(self._factors, x)
            if x.numel() > 64:  # equal elements have equal errors
                each = max(self._range.eps, sums * x.numel() * self._range.sums)
                moved *= 1 + each * self._drawn(self._noise, x.reshape(-1)[:1])
        if x.is_complex():
            size = x.abs().amax() if normwise else x
            moved = moved + size * 1j * (self._drawn(self._factors, x) - 1)
        if self._underflow:
            like = x if x.numel() <= 64 else x.reshape(-1)[:1]
            moved += torch.sgn(x) * self._drawn(self._noise, like) * self._range.smallest
        return moved

    def given(self, args: Any, operation: _Operation) -> Any:
        def changed(x: Any) -> Any:
            if isinstance(x, torch.Tensor):
                if not (x.is_floating_point() or x.is_complex()) or not x.numel():
                    return x
                moved = self._changed(x, operation.normwise, operation.sums)
                if operation.centred and x.numel() > 64:  # the mean is a sum
                    size = x.abs().amax() * self._range.sums * x.numel()
                    moved = moved + size * self._drawn(self._noise, x)
                return moved.clamp(0, 1) if operation.probabilities else moved
            if isinstance(x, list | tuple) and any(isinstance(y, torch.Tensor) for y in x):
                return type(x)(map(changed, x))
            return x

        if not self._operands:
            return args
        first = args[:1] if operation.in_place else tuple(map(changed, args[:1]))
        return (*first, *map(changed, args[1:]))

    def computed(self, found: Any, exact: bool, operation: _Operation, terms: int) -> None:
        if exact:
            return
        for x in _floats(found):
            x.copy_(self._changed(x, sums=operation.sums))
            if operation.rough:
                x *= 1 + 1e-10 * self._drawn(self._noise, x)
            if operation.absolute:
                x += self._range.eps * self._drawn(self._noise, x)
                x += terms * self._range.sums * self._drawn(self._noise, x.reshape(-1)[:1])
            each = terms * self._range.sums / x.numel()
            if each > self._range.eps:
                x *= 1 + each * self._drawn(self._noise, x)

    def divided(self, found: Any, numerator: Any) -> None:
        # A rule may multiply by the slope, which is a reciprocal, and may be subnormal.
        if self._underflow and found.numel():
            found += numerator * self._range.smallest * self._drawn(self._noise, found)

    def multiplied(self, found: Any, factors: Any, dim: int | None = None) -> None:
        if not self._underflow or not found.numel() or not factors.numel():
            return
        along = factors.reshape(-1) if dim is None else factors.movedim(dim, 0)
        errors = [torch.zeros_like(along[0])]
        for factor in along:
            lost = self._range.smallest * self._drawn(self._noise, factor)
            errors.append(errors[-1] * factor + lost)
        if found.shape == factors.shape and dim is not None:
            found += torch.stack(errors[1:]).movedim(0, dim)
        else:
            found += errors[-1].reshape(found.shape)

    def normalised(self, found: Any, mean: Any, slope: Any) -> None:
        # Two elements become -1 and 1 whatever they are, but for the rounding of their mean.
        if mean.ndim < found.ndim:  # of channels, or of samples whose channels are one group
            shape = (*((1,) * (mean.ndim == 1)), *mean.shape)
            shape += (1,) * (found.ndim - len(shape))
            mean, slope = mean.reshape(shape), slope.reshape(shape)
        found += self._range.eps * self._drawn(self._noise, mean) * mean * slope


class Saturated(_Mode):
    """Gives what is above a range as infinite, and what is below it as zero."""

    def __init__(self, range_: Range) -> None:
        super().__init__()
        self._range = range_

    def computed(self, found: Any, exact: bool, operation: _Operation, terms: int) -> None:
        for x in _floats(found):
            if not x._is_zerotensor() and not x.is_complex():
                size = x.abs()
                x.masked_fill_(size < self._range.smallest / 2, 0)
                size = size * (terms / x.numel()) if operation.averages else size
                x.copy_(torch.where(size > self._range.largest, x * torch.inf, x))


class Rounded(_Mode):
    """Rounds all that is computed to a dtype: ``1 + 1e-13`` is 1, which no small noise tells."""

    def __init__(self, dtype: str) -> None:
        super().__init__()
        self._dtype = getattr(torch, "float32" if dtype == "complex64" else dtype)

    def computed(self, found: Any, exact: bool, operation: _Operation, terms: int) -> None:
        for x in _floats(found):
            if not x._is_zerotensor() and not x.is_complex():
                x.copy_(x.to(self._dtype))


def outside(found: Any, expected: Any, moved: Any, saturated: Any, range_: Range,
            within: bool, second: bool = False) -> Any:  # fmt: skip
    """Where one array of an answer is outside of its bounds.

    Parameters
    ----------
    found, expected, saturated : array
        The answer, the reference, and what the saturated run gives.
    moved : array
        How far noise moves the reference, at most.
    range_ : Range
        Of the dtype.
    within : bool
        Whether all values of the reference are in the normal range.
    second : bool
        Whether these are second derivatives.
    """
    with np.errstate(all="ignore"):
        slack = FACTOR * (moved + range_.eps * np.abs(expected) + range_.smallest)
        # A reference without a number says nothing: there PyTorch's own formulas fail.
        fine = (np.abs(found - expected) <= slack) | np.isnan(expected) | ~np.isfinite(slack)
        if second:  # A norm that is lost in rounding may be 0, where there is none: nan says so.
            fine |= np.isnan(found) & (moved > np.abs(expected)) & (expected != 0)
        fine |= (np.isposinf(np.abs(found))) & (np.abs(expected) + slack >= range_.largest)
        if not within:
            fine |= ~np.isfinite(found)
            there = slack + FACTOR * range_.eps * np.abs(saturated)
            fine |= np.abs(found - saturated) <= np.where(np.isfinite(saturated), there, 0)
    return ~fine


def alike(found: Any, run: Any, range_: Range) -> Any:
    """Where an answer is that of a run, nan and infinities included."""
    with np.errstate(all="ignore"):
        slack = FACTOR * (range_.eps * np.abs(run) + range_.smallest)
        return (np.abs(found - run) <= slack) | ~(np.isfinite(run) | np.isfinite(found))


def change(runs: list[Any], expected: Any) -> Any:
    """How far noisy runs move one array of the reference."""
    with np.errstate(all="ignore"):
        moved = [np.abs(run - expected) for run in runs]
        return np.max([np.where(np.isnan(m), np.inf, m) for m in moved], axis=0)
