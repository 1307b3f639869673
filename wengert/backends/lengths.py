"""Lengths that a library does not know before an array is computed."""

from typing import Any, NoReturn

#: The libraries in use that have such arrays; without one no shape is looked through.
unsized: set[str] = set()


def size_error(shape: Any) -> ValueError:
    """The error for arithmetic with lengths that are not known: what to do."""
    return ValueError(
        f"dask does not know the size of an array before it is computed (its shape is {shape}): "
        "call its method compute_chunk_sizes() first, which computes it; a Tensor x is made anew "
        "as wg.asarray(x.array.compute_chunk_sizes())"
    )


class Unknown(float):
    """A length that is not known: nan, which raises where it is compared or computed with."""

    __slots__ = ("shape",)

    shape: Any

    def __new__(cls, shape: Any) -> "Unknown":
        """Make one for an error that shows its array's shape."""
        self = super().__new__(cls, "nan")
        self.shape = shape
        return self

    __hash__ = float.__hash__

    def _raise(self, *others: Any) -> NoReturn:
        raise size_error(self.shape)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _raise
    __add__ = __sub__ = __mul__ = __floordiv__ = __truediv__ = __mod__ = __pow__ = _raise
    __radd__ = __rsub__ = __rmul__ = __rfloordiv__ = __rtruediv__ = __rmod__ = __rpow__ = _raise
    __divmod__ = __rdivmod__ = __neg__ = __bool__ = __int__ = __index__ = _raise
    regularise = _raise  # as an operand of a function


def known_lengths(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """A shape, of which lengths that are not known raise where they are used."""
    if float not in map(type, shape):
        return shape
    return tuple(Unknown(shape) if type(n) is float else n for n in shape)  # type: ignore[misc]
