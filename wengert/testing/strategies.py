"""Hypothesis strategies for Tensors, and for the shapes, axes and keys that go with them.

Built on `hypothesis.extra.array_api`. Values lie on a grid, so that counterexamples are short, no
two values are too close for differences, and `reals` can keep away from kinks.
"""

import math
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from wengert.backends import DTYPES, DType, as_dtype, dtype_of, get_backend, selection
from wengert.backends.backend import importing
from wengert.tape.tensor import Tensor

with importing("wengert.testing.strategies needs Hypothesis ({}): install wengert[testing]"):
    from hypothesis import strategies as st
    from hypothesis.extra.array_api import make_strategies_namespace

__all__ = [
    "arrays",
    "axes",
    "axis",
    "broadcastable",
    "complexes",
    "dtypes",
    "index_keys",
    "matrices",
    "reals",
    "shapes",
    "tensors",
]

Strategy: TypeAlias = st.SearchStrategy[Any]

#: Values are drawn and shrunk as NumPy arrays and then moved, so that all backends see the same.
_xps: Any = make_strategies_namespace(np)

STEP = 1 / 16


def reals(
    low: float = -4.0,
    high: float = 4.0,
    *,
    away_from: Sequence[float] = (),
    distance: float | None = None,
    step: float | None = None,
    special: Sequence[float] = (),
) -> Strategy:
    """Real numbers on a grid.

    Parameters
    ----------
    low, high : float
        Bounds, both included where the grid has them.
    away_from : sequence of float
        Points (kinks, poles) to which no value is nearer than ``distance``.
    distance : float, optional
        See ``away_from``; a step by default.
    step : float, optional
        Of the grid of multiples. By default 1/16, or a power of two that gives a narrower range
        at least 32 steps.
    special : sequence of float
        Values that are drawn as well, off the grid or out of bounds (``0.0``, ``math.inf``).

    Examples
    --------
    >>> from hypothesis import find
    >>> from wengert.testing import strategies as ws
    >>> 1.0 < find(ws.reals(1.0, 3.0), lambda x: x > 1) <= 3.0
    True
    """
    if not low <= high:
        raise ValueError(f"there is no number from {low} to {high}")
    if step is None:
        step = STEP if high - low >= 2 else 2.0 ** math.floor(math.log2((high - low) / 32 or STEP))
    distance = step if distance is None else distance
    grid = [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
    grid = [x for x in grid if all(abs(x - point) >= distance for point in away_from)]
    if not (grid or special):
        raise ValueError(
            f"no multiple of {step} from {low} to {high} is {distance} away from {list(away_from)}"
        )
    grid.sort(key=lambda x: (abs(x), x < 0))
    if not grid:
        return st.sampled_from([*special])
    if special:
        return st.sampled_from([*special]) | st.sampled_from(grid)
    return st.sampled_from(grid)


def complexes(real: Strategy, imaginary: Strategy | None = None) -> Strategy:
    """Complex numbers with parts from the given strategies, the same for both by default.

    Parameters
    ----------
    real, imaginary : SearchStrategy
        Of real numbers.

    Examples
    --------
    >>> from hypothesis import find
    >>> from wengert.testing import strategies as ws
    >>> find(ws.complexes(ws.reals(-1, 1)), lambda z: True)
    0j
    """
    return st.builds(complex, real, real if imaginary is None else imaginary)


def dtypes(
    kinds: Sequence[str] = ("real floating", "complex floating"), *, backend: str | None = None
) -> Strategy:
    """Data types that a backend has, of the given kinds (`wengert.DType.kind`).

    Parameters
    ----------
    backend : str, optional
        Name of a backend; the selected one by default.

    Examples
    --------
    >>> from hypothesis import find
    >>> from wengert.testing import strategies as ws
    >>> find(ws.dtypes(), lambda dtype: dtype.complex)
    wengert.complex64
    """

    def has(dtype: DType) -> bool:
        try:
            get_backend(backend).raw_dtype(dtype)
        except TypeError:
            return False
        return True

    return st.deferred(
        lambda: st.sampled_from([d for d in DTYPES.values() if d.kind in kinds and has(d)])
    )


def shapes(
    *, min_dims: int = 0, max_dims: int = 3, min_side: int = 0, max_side: int = 3
) -> Strategy:
    """Shapes, with axes of length 0 and 1 among them.

    Examples
    --------
    >>> from hypothesis import find
    >>> from wengert.testing import strategies as ws
    >>> len(find(ws.shapes(min_dims=2), lambda shape: True))
    2
    """
    return _xps.array_shapes(
        min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=max_side
    )


def arrays(
    dtype: Any = "float64",
    shape: Any = None,
    *,
    elements: Strategy | None = None,
    unique: bool = False,
    domain: tuple[float, float] = (-4.0, 4.0),
    away_from: Sequence[float] = (),
    special: Sequence[float] = (),
) -> Strategy:
    """NumPy arrays.

    Parameters
    ----------
    dtype : dtype or strategy
        Of the array; one that NumPy lacks (bfloat16) comes as float32.
    shape : tuple, int or strategy, optional
        `shapes` by default.
    elements : strategy, optional
        By default `reals` in ``domain``, `complexes` of these, integers from 0 to 9, or booleans.
    unique : bool
        Whether no value comes twice (so that sorting and extrema have derivatives).
    domain : tuple of float
        The least and the greatest value.
    away_from, special : sequence of float
        Kinks and poles that no value comes near to; values that come often, wherever they are.

    Examples
    --------
    >>> from hypothesis import find
    >>> from wengert.testing import strategies as ws
    >>> find(ws.arrays("float64", (2, 2)), lambda x: True)  # the simplest
    array([[0., 0.],
           [0., 0.]])
    """
    given: dict[str, Any] = {
        "elements": elements,
        "unique": unique,
        "domain": domain,
        "away_from": away_from,
        "special": special,
    }
    if isinstance(dtype, st.SearchStrategy):
        return dtype.flatmap(lambda drawn: arrays(drawn, shape, **given))
    dtype = as_dtype(dtype)
    if elements is None:
        elements = reals(*domain, away_from=away_from, special=special)
        if dtype.complex:
            elements = complexes(elements)
        elif not dtype.inexact:
            elements = st.booleans() if dtype.kind == "bool" else st.integers(0, 9)
    # Hypothesis knows the standard's types alone; a half-precision array is a single one, rounded.
    half = dtype.itemsize == 2 and dtype.inexact
    drawn = _xps.arrays(
        np.dtype("float32" if half else dtype.name),
        shapes() if shape is None else shape,
        elements=elements,
        unique=unique,
    )
    if dtype.name == "float16":
        return drawn.map(lambda array: array.astype(np.float16))
    return drawn


def tensors(
    dtype: Any = "float64",
    shape: Any = None,
    *,
    requires_grad: bool = False,
    backend: str | None = None,
    **choices: Any,
) -> Strategy:
    """Tensors.

    Parameters
    ----------
    dtype, shape
        As for `arrays`.
    backend : str, optional
        Name of the backend that holds them; by default the one selected when they are drawn.
    **choices
        ``elements``, ``unique``, ``domain``, ``away_from`` and ``special``, as for `arrays`.

    Examples
    --------
    >>> from hypothesis import find
    >>> from wengert.testing import strategies as ws
    >>> x = find(ws.tensors("float64", (3,), requires_grad=True), lambda x: True)
    >>> x.shape, x.requires_grad
    ((3,), True)
    """
    if isinstance(dtype, st.SearchStrategy):
        return dtype.flatmap(
            lambda drawn: tensors(
                drawn, shape, requires_grad=requires_grad, backend=backend, **choices
            )
        )
    drawn = arrays(dtype, shape, **choices)
    return drawn.map(lambda array: _tensor(array, as_dtype(dtype), requires_grad, backend))


def _tensor(
    array: np.ndarray[Any, Any], dtype: DType, requires_grad: bool, backend: str | None
) -> Tensor:
    if backend is None:
        chosen, device, _ = selection()
    else:
        chosen, device = get_backend(backend), None
    # Hypothesis may hand out one array twice; a Tensor's is its own.
    raw = chosen.from_numpy(np.array(array, copy=True), device)
    if dtype_of(raw.dtype) is not dtype:
        raw = chosen.namespace.astype(raw, chosen.raw_dtype(dtype))
    return Tensor(raw, requires_grad=requires_grad)


def broadcastable(
    count: int, *, max_dims: int = 3, min_side: int = 0, max_side: int = 3
) -> Strategy:
    """Tuples of ``count`` shapes that broadcast together.

    Examples
    --------
    >>> from hypothesis import find
    >>> from wengert.testing import strategies as ws
    >>> x, y = find(ws.broadcastable(2), lambda shapes: shapes[0] != shapes[1])
    >>> len(wg.broadcast_shapes(x, y)) <= 3
    True
    """
    return _xps.mutually_broadcastable_shapes(
        count, max_dims=max_dims, min_side=min_side, max_side=max_side
    ).map(lambda drawn: drawn.input_shapes)


#: Diagonals that keep small matrices well-conditioned, and their eigenvalues apart.
_APART = 4.0


@st.composite  # type: ignore[untyped-decorator]
def matrices(
    draw: Any,
    kind: str = "general",
    dtype: Any = "float64",
    *,
    side: Any = None,
    stack: Any = (),
) -> Any:
    """Square matrices of a kind, as NumPy arrays with short numbers.

    ==========================  =================================================================
    ``"general"``               elements from -4 to 4
    ``"well-conditioned"``      invertible: strictly diagonally dominant, of either sign
    ``"symmetric"``             with eigenvalues at least 1 apart; Hermitian if complex
    ``"positive definite"``     the same, with eigenvalues of at least 1
    ``"lower triangular"``      invertible
    ``"upper triangular"``      invertible
    ==========================  =================================================================

    Parameters
    ----------
    stack : tuple or strategy
        Shape of the axes before the last two.

    Examples
    --------
    >>> from hypothesis import find
    >>> from wengert.testing import strategies as ws
    >>> x = find(ws.matrices("symmetric", side=2), lambda x: x[0, 1] > 0)
    >>> bool((x == x.T).all())
    True
    """
    if kind not in _KINDS:
        raise ValueError(f"there are no matrices of the kind {kind!r}; there are: {_KINDS}")
    side = draw(side) if isinstance(side, st.SearchStrategy) else side or draw(st.integers(1, 3))
    stack = draw(stack) if isinstance(stack, st.SearchStrategy) else tuple(stack)
    bound = 4.0 if kind == "general" else 0.5 / (side or 1)
    x = draw(arrays(dtype, (*stack, side, side), domain=(-bound, bound)))
    if kind == "general":
        return x
    diagonal = _APART * np.arange(1, side + 1)
    if kind == "well-conditioned" or "triangular" in kind:
        signs = [draw(st.sampled_from([1, -1])) for _ in range(side)]
        x[..., range(side), range(side)] += diagonal * signs
        triangle = {"lower triangular": np.tril, "upper triangular": np.triu}.get(kind)
        return triangle(x) if triangle else x
    # By Gershgorin's circles no eigenvalue is further than 1 from its place on the diagonal.
    x = (x + np.conj(np.swapaxes(x, -1, -2))) / 2
    x[..., range(side), range(side)] += diagonal - (kind == "symmetric") * _APART * (side // 2 + 1)
    return x


_KINDS: Final = (
    "general",
    "well-conditioned",
    "symmetric",
    "positive definite",
    "lower triangular",
    "upper triangular",
)


def axis(ndim: int) -> Strategy:
    """An axis of an array of ``ndim`` axes, counted from either end.

    Examples
    --------
    >>> from hypothesis import find
    >>> from wengert.testing import strategies as ws
    >>> find(ws.axis(3), lambda axis: axis > 1)
    2
    """
    return st.integers(-ndim, ndim - 1)


def axes(ndim: int, *, none: bool = True, min_size: int = 0) -> Strategy:
    """What a reduction takes as ``axis``: None, an axis, or a tuple of different axes.

    Parameters
    ----------
    none : bool
        Whether None, for all axes, is among them.
    min_size : int
        Of the tuples.

    Examples
    --------
    >>> from hypothesis import find
    >>> from wengert.testing import strategies as ws
    >>> find(ws.axes(3), lambda axes: isinstance(axes, tuple) and len(axes) == 2)
    (0, 1)
    """
    choices = [st.none()] if none else []
    if ndim:
        choices.append(axis(ndim))
    choices.append(_xps.valid_tuple_axes(ndim, min_size=min_size))
    return st.one_of(choices)


@st.composite  # type: ignore[untyped-decorator]
def index_keys(draw: Any, shape: tuple[int, ...], *, arrays_too: bool = True) -> Any:
    """Keys that index an array of a shape: ``x[key]``.

    Integers, slices, ellipsis and new axes, in every mixture that the standard has; and boolean
    masks and integer arrays (NumPy's), which repeat elements, where ``arrays_too``.

    Parameters
    ----------
    arrays_too : bool
        Whether arrays are among the keys.

    Examples
    --------
    >>> from hypothesis import find
    >>> from wengert.testing import strategies as ws
    >>> find(ws.index_keys((2, 3)), lambda key: isinstance(key, tuple) and len(key) == 2)
    (0, 0)
    """
    if not arrays_too or not shape or 0 in shape or draw(st.booleans()):
        return draw(_xps.indices(shape, allow_newaxis=True))
    if draw(st.booleans()):
        over = draw(st.integers(1, len(shape)))
        return draw(_xps.arrays(np.bool_, shape[:over], elements=st.booleans()))
    common = draw(shapes(max_dims=2, min_side=1))
    key: list[Any] = []
    for length in shape[: draw(st.integers(1, len(shape)))]:
        kind = draw(st.sampled_from(["array", "array", "integer", "slice"]))
        if kind == "slice":
            key.append(draw(st.slices(length)))
        elif kind == "integer":
            key.append(draw(st.integers(-length, length - 1)))
        else:
            key.append(
                draw(_xps.arrays(np.int64, common, elements=st.integers(-length, length - 1)))
            )
    if not any(isinstance(part, np.ndarray) for part in key):
        length = shape[0]
        key[0] = draw(_xps.arrays(np.int64, common, elements=st.integers(-length, length - 1)))
    return tuple(key)
