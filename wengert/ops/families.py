"""What docstrings of more than one chapter have in common."""

from functools import cache
from typing import Final

from wengert.tape.families import Family
from wengert.tape.promotion import DTYPES_FOR

_STANDARD: Final = "Array API standard 2025.12, $chapter: ``$name``."
_ELEMENTWISE: Final = _STANDARD.replace("$chapter", "elementwise functions")
SCIPY: Final = "SciPy: ``scipy.special.$name``."


def standard(chapter: str, text: str = "") -> Family:
    """Return a family of functions of one chapter of the standard."""
    return Family(f"{text.rstrip()}\n\nNotes\n-----\n{_STANDARD}")(chapter=chapter)


_ONE: Final = """
Parameters
----------
$inputs : Tensor or array
    $dtypes.

Returns
-------
Tensor
    Of the shape of ``$inputs`` and $result.

Notes
-----
$source
"""
_TWO: Final = """
Parameters
----------
$inputs : Tensor, array or Python number
    $dtypes, of shapes that broadcast together; at least one is an array.

Returns
-------
Tensor
    Of the broadcast shape and $result.

Raises
------
BackendError
    If the operands belong to two backends or lie on two devices.

Notes
-----
$source
"""


@cache
def elements(
    *inputs: str,
    dtypes: str = "floating",
    result: str | None = None,
    tracked: bool = True,
    source: str | None = None,
) -> Family:
    """Return the family of elementwise functions of one or two inputs."""
    one = len(inputs) == 1
    result = result or ("its dtype" if one else "the promoted dtype")
    return Family(_ONE if one else _TWO)(
        inputs=", ".join(inputs),
        dtypes=DTYPES_FOR[dtypes][1],
        result=result if tracked else f"{result}. It is not tracked",
        source=source or _ELEMENTWISE,
    )


_REDUCTION: Final = """
Parameters
----------
x : Tensor or array
    Of any shape and $dtypes.
axis : int or tuple of int, optional
    Over which axes; all by default.
dtype : dtype, optional
    In which to compute. By default that of ``x``, and the default integer for smaller integers.
keepdims : bool
    Whether the reduced axes stay, with length 1.

Returns
-------
Tensor
    Of the shape of ``x`` without the reduced axes, and $result.

Raises
------
$errors
"""
_BAD_AXIS: Final = """\
ValueError
    If an axis is out of bounds (also an IndexError) or comes twice."""


def reduction(
    dtypes: str,
    *,
    result: str = "its dtype",
    errors: str = _BAD_AXIS,
    chapter: str | None = "statistical functions",
) -> Family:
    """Return the family of functions that take together the elements along some axes."""
    family = standard(chapter, _REDUCTION) if chapter else Family(_REDUCTION)
    return family(dtypes=dtypes, result=result, errors=errors)


def of_vectors(chapter: str, lengths: str) -> Family:
    """Return the family of products of vectors along an axis."""
    text = """
Parameters
----------
x1, x2 : Tensor or array
    Of numeric dtypes, and shapes that broadcast but for ``axis``, whose length is $lengths.
axis : int
    Along which axis the vectors lie, counted from the end. A non-negative one is understood where
    both arrays have equally many axes.

Returns
-------
Tensor
    Of the broadcast shape and the promoted dtype.

Raises
------
ValueError
    If the axis is out of bounds (also an IndexError), or has another length.
"""
    return standard(chapter, text)(lengths=lengths)


MANIPULATION = standard(
    "manipulation functions",
    """
Parameters
----------
x : Tensor or array
    Of any shape and dtype.

Returns
-------
Tensor
    With the elements and dtype of ``x``.

Raises
------
ValueError
    If an axis is out of bounds (also an IndexError) or comes twice.
""",
)
