"""Jacobians of which the user says where they are zero: directions that meet no row in common.

Columns and rows are coloured in their order, as A. R. Curtis, M. J. D. Powell and J. K. Reid do
("On the estimation of sparse Jacobian matrices", 1974).
"""

from typing import Any

import numpy as np

from wengert import ops
from wengert.backends.keys import SLOT
from wengert.interpreters.lifted import bottom
from wengert.interpreters.namespaces import differentiable
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor, untracked


def refuse(wrong: Any) -> None:
    """Raise if a truth value says so; saved programs have this function's source."""
    if wrong:
        raise ValueError(
            "sparsity= is wrong, or can't be checked here: products of the Jacobian with vectors "
            "differ from those of the entries in the pattern. It has entries where the pattern has "
            "zeros, or some are inf or nan, or the function loses more than a quarter of its "
            "digits: compute in float64"
        )


def _pass(xp: Any, x: Any, wrong: Any) -> Any:
    found = xp.any(wrong)
    if (later := getattr(found, "look", None)) is None:
        refuse(found)
        return x
    later(refuse)  # each run of a compiled program looks, or has nan: jax.jit can't raise
    return xp.where(found, float("nan"), x)


as_declared: Any = Primitive(
    "as_declared",
    ["x", "wrong"],
    {"x": lambda xp, g: g},
    jvps={"x": lambda xp, t: t},
    composite=_pass,
    batch=lambda call, x, wrong: call.run(call.broadcast(0), wrong),
    view=None,
).bind


class Pattern:
    """Where a Jacobian may differ from zero, and the colours of its columns and rows."""

    def __init__(self, given: Any) -> None:
        try:
            matrix: Any = np.asarray(given.toarray() if hasattr(given, "toarray") else given)
            if matrix.ndim != 2 or matrix.dtype.kind not in "biufc":
                raise TypeError(f"this is {matrix.dtype} of shape {matrix.shape}")
        except Exception as error:  # a ragged list, or sparse or remote arrays of a library
            text = f"sparsity= is a matrix of numbers, results by arguments: {error}"
            raise ValueError(text) from error
        mask, self.shape = matrix != 0, matrix.shape
        # Bytes, since compiled functions take arrays for inputs.
        self.entries = [places.tobytes() for places in np.nonzero(mask)]
        colours = [_colours(mask.T), _colours(mask)]
        self.colours = [x.tobytes() for x in colours]
        self.by_rows = bool(colours[1].max(initial=0) <= colours[0].max(initial=0))

    def check(self, inputs: list[Tensor], results: list[Tensor]) -> None:
        """Raise if it isn't for the only argument and the only result."""
        for count, tensors in zip(self.shape, (results, inputs), strict=True):
            if [(x.size, x.dtype.complex) for x in tensors] != [(count, False)]:
                raise ValueError(
                    f"sparsity= of shape {self.shape} is for real numbers, of one argument and one "
                    f"result, not {[f'{x.dtype.name}{list(x.shape)}' for x in tensors]}"
                )

    def directions(self, own: Tensor, by_rows: bool) -> Tensor:
        """A direction for each colour, and those of the check, in which no two lines are alike."""
        colours = np.frombuffer(self.colours[by_rows], int)
        count = max(2, -(-len(colours).bit_length() // 3))
        lines = np.random.default_rng(0).permutation(8**count)[: len(colours)]
        digits = lines // 8 ** np.arange(count)[:, None] % 8
        # Powers of two, by which rounding is the same.
        weights = 0.5 ** (digits // 2) * (1 - 2 * (digits % 2))
        seeds = np.concatenate([np.arange(colours.max() + 1)[:, None] == colours, weights])
        return ops.astype(_beside(own, seeds.astype("float32").reshape(-1, *own.shape)), own.dtype)

    def matrix(self, directions: Tensor, products: Tensor, by_rows: bool) -> Tensor:
        """The Jacobian, from its products with directions."""
        at = [np.frombuffer(x, int) for x in self.entries]
        (places, lines), size = at[:: -1 if by_rows else 1], self.shape[by_rows]
        colours = np.frombuffer(self.colours[by_rows], int)
        first, count = int(colours.max()) + 1, directions.shape[0]
        found = ops.reshape(products, (count, size))
        values = found[colours[lines], places]
        # In half precision the sums of the check are those of single precision.
        wide = ops.result_type(products.dtype, "float32")
        weights, own = [
            ops.astype(ops.reshape(x.detach(), (count, n))[first:], wide)
            for x, n in ((directions, len(colours)), (found, size))
        ]
        known = ops.reshape(ops.astype(values.detach(), wide) * weights[:, lines], (-1,))
        rows = (np.arange(count - first)[:, None] * size + places).ravel()
        total, terms = (_scatter(x, rows, shape=(own.size,)) for x in (known, ops.abs(known)))
        limits = ops.finfo(min(directions.dtype, products.dtype, key=lambda d: d.itemsize))
        # The function may round more often than sums of its entries do, or cancel larger numbers.
        eps = float(limits.eps) ** 0.75
        sums = _beside(products, (np.bincount(rows, minlength=own.size) * eps).astype("float32"))
        near = (terms + float(limits.smallest_normal)) * sums
        right = (ops.abs(total - ops.reshape(own, (-1,))) <= near) & ops.isfinite(near)
        return _scatter(as_declared(values, ~right), *at, shape=self.shape)


def _colours(lines: np.ndarray) -> np.ndarray:
    """The smallest colour for each line that no line before it with an entry in common has."""
    used, found = [0] * lines.shape[1], []
    for line in lines:
        places, taken = np.flatnonzero(line).tolist(), 0
        for place in places:
            taken |= used[place]
        free = ~taken & (taken + 1)
        for place in places:
            used[place] |= free
        found.append(free.bit_length() - 1)
    return np.asarray(found, dtype=int)


def _beside(x: Tensor, values: np.ndarray) -> Tensor:
    """NumPy's numbers as a constant on the device of a Tensor."""
    return untracked(x.backend.from_numpy(values, x.backend.beside(bottom(x._array))))


def _scatter(x: Tensor, *places: np.ndarray, shape: tuple[int, ...]) -> Tensor:
    """An array of zeros, to which numbers are added at some places."""
    indices = [_beside(x, at) for at in places]
    return differentiable.scatter_add(x, *indices, key=(SLOT,) * len(shape), shape=shape)  # type: ignore[no-any-return]
