"""Subscripts of Einstein's notation, as text or as lists, made into labels of every axis."""

from collections import Counter
from collections.abc import Sequence
from operator import index
from typing import Any

from wengert.ops.axes import shape_of

#: The labels of an array's axes: letters or integers, and pairs for the axes of an Ellipsis.
Labels = tuple[Any, ...]

Written = list[Any]


def _letters(text: str) -> Written:
    """One operand's subscripts: letters, and Ellipsis where there are three dots."""
    parts = text.replace(" ", "").split("...")
    if len(parts) > 2:
        raise ValueError(f"einsum: two ellipses in {text!r}")
    for letter in "".join(parts):
        if not letter.isalpha():
            raise ValueError(f"einsum: {letter!r} in {text!r} is no label: letters are, and '...'")
    labels: Written = [*parts[0]]
    if len(parts) == 2:
        labels += [Ellipsis, *parts[1]]
    return labels


def _list(labels: Sequence[Any]) -> Written:
    """One operand's subscripts, given as a list of integers and an Ellipsis."""
    made = [label if label is Ellipsis else index(label) for label in labels]
    if made.count(Ellipsis) > 1:
        raise ValueError(f"einsum: two ellipses in {labels!r}")
    return made


def _separate(operands: tuple[Any, ...]) -> tuple[list[Any], list[Written], Written | None]:
    """The arrays, their subscripts, and the result's, in which an Ellipsis is still one."""
    if not operands:
        raise ValueError("einsum needs subscripts and operands")
    if not isinstance(operands[0], str):
        arrays, lists = list(operands[0::2]), list(operands[1::2])
        result = arrays.pop() if len(operands) % 2 else None
        if not arrays:
            raise ValueError("einsum: each operand needs a list of its labels after it")
        return arrays, [_list(one) for one in lists], None if result is None else _list(result)
    text, *arrays = operands
    given, arrow, after = text.partition("->")
    terms = given.split(",")
    if len(terms) != len(arrays):
        raise ValueError(
            f"einsum: the subscripts {text!r} are for {len(terms)} operands, not {len(arrays)}"
        )
    return arrays, [_letters(term) for term in terms], _letters(after) if arrow else None


def parse(operands: tuple[Any, ...]) -> tuple[list[Any], list[Labels], Labels]:
    """The arrays of einsum, a label for each of their axes, and the labels of the result."""
    arrays, written, result = _separate(operands)
    terms: list[Labels] = []
    widest = 0
    for at, (x, labels) in enumerate(zip(arrays, written, strict=True)):
        ndim = len(shape_of(x))
        rest = ndim - len(labels) + labels.count(Ellipsis)
        if rest < 0 or (rest and Ellipsis not in labels):
            raise ValueError(
                f"einsum: operand {at} has {ndim} axes, and its subscripts name "
                f"{len(labels) - labels.count(Ellipsis)}"
            )
        # The axes of an Ellipsis are numbered from the last one, as they broadcast.
        terms.append(_expand(labels, rest))
        widest = max(widest, rest)
    every = Counter(label for labels in written for label in labels if label is not Ellipsis)
    if result is None:
        result = [Ellipsis, *sorted(label for label, n in every.items() if n == 1)]
    elif widest and Ellipsis not in result:
        raise ValueError(
            f"einsum: the operands have {widest} axes under an ellipsis, and the result has none; "
            "sum over them by labels"
        )
    for label in result:
        if label is not Ellipsis and (label not in every or result.count(label) > 1):
            fault = "comes twice in the result" if label in every else "is in no operand"
            raise ValueError(f"einsum: label {label!r} of the result {fault}")
    return arrays, terms, _expand(result, widest)


def _expand(labels: Written, rest: int) -> Labels:
    made: list[Any] = []
    for label in labels:
        made += [(..., i) for i in range(rest, 0, -1)] if label is Ellipsis else [label]
    return tuple(made)
