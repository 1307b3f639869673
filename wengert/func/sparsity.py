"""Jacobians of which the user says where they are zero: directions that meet no row in common.

Columns and rows are coloured in their order, as A. R. Curtis, M. J. D. Powell and J. K. Reid do
("On the estimation of sparse Jacobian matrices", 1974).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert import ops
from wengert.backends import backend_of
from wengert.backends.keys import SLOT
from wengert.func.arguments import Call
from wengert.func.forward import Push
from wengert.func.mapping import vmap
from wengert.func.reverse import Reverse
from wengert.interpreters.lifted import bottom
from wengert.interpreters.namespaces import differentiable
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor, untracked


def _refuse(wrong: Any) -> None:
    if backend_of(wrong).to_numpy(wrong).any():
        raise ValueError(
            "sparsity= is wrong: the Jacobian has entries where the pattern has zeros. Its product "
            "with a random vector differs from that of the entries in the pattern"
        )


def _pass(xp: Any, x: Any, wrong: Any) -> Any:
    later = getattr(wrong, "look", None)  # each run of a compiled program looks
    _refuse(wrong) if later is None else later(_refuse)
    return x


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
        mask: Any = np.asarray(given.toarray() if hasattr(given, "toarray") else given) != 0
        self.shape = mask.shape
        if mask.ndim != 2:
            raise ValueError(f"sparsity= is a matrix, results by arguments, not {self.shape}")
        # Bytes, since compiled functions take arrays for inputs.
        self.entries = [places.tobytes() for places in np.nonzero(mask)]
        colours = [_colours(mask.T), _colours(mask)]
        self.colours = [x.tobytes() for x in colours]
        self.by_rows = bool(colours[1].max(initial=0) < colours[0].max(initial=0))

    def jacobian(self, call: Call, has_aux: bool, step: int | None) -> Any:
        """A Jacobian by a product for each colour; by rows with ``has_aux``, in one call."""
        x, by_rows = self._only(call.tensors, 1), has_aux or self.by_rows
        run: Any = Reverse(call, "jacobian", has_aux) if by_rows else None

        def push(tangent: Tensor) -> Tensor:
            nonlocal run
            run = Push(call, [tangent], "jacobian")
            y = self._only(run.values, 0)
            return ops.zeros_like(y) if run.tangents[0] is None else run.tangents[0]

        own = self._only(run.results, 0) if by_rows else x
        product = (lambda g: run.pull([g], keep=True)[0]) if by_rows else push
        found = ops.astype(self._entries(own, product, by_rows, step), x.dtype)
        (y,) = run.results if by_rows else run.values
        shape = (*y.shape, *x.shape)
        whole = _put(found, *[np.frombuffer(at, int) for at in self.entries], shape=self.shape)
        block = whole if shape == self.shape else ops.reshape(whole, shape)
        jacobian = run.structure.unflatten([call.pack([block])])
        return (jacobian, run.aux) if has_aux else jacobian

    def _entries(self, own: Tensor, product: Any, by_rows: bool, step: int | None) -> Tensor:
        """The entries, from products with directions in the place of a Tensor."""
        places, lines = (np.frombuffer(x, int) for x in self.entries[:: -1 if by_rows else 1])
        colours = np.frombuffer(self.colours[by_rows], int)
        weights = np.random.default_rng(0).uniform(1, 2, len(colours)).astype("float32")
        seeds = np.stack([*(np.arange(colours.max(initial=-1) + 1)[:, None] == colours), weights])
        directions = ops.astype(_beside(own, seeds.reshape(-1, *own.shape)), own.dtype)
        found = vmap(product, chunk_size=step, randomness="same")(directions)
        found = ops.reshape(found, (len(seeds), self.shape[by_rows]))
        values = found[colours[lines], places]
        known, given = values.detach() * _beside(found, weights[lines]), found.detach()[-1]
        size, product = [_put(x, places, shape=given.shape) for x in (ops.abs(known), known)]
        # Rounding differs between sums, which the root of the precision allows for.
        eps = max(float(ops.finfo(x.dtype).eps) for x in (own, found))
        finite = ops.isfinite(size)
        near = eps**0.5 * size + 100 * eps * ops.max(ops.where(finite, size, 0))
        return as_declared(values, finite & ~(ops.abs(product - given) <= near))  # type: ignore[no-any-return]

    def _only(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        """The only argument or result."""
        if [(x.size, x.dtype.complex) for x in tensors] != [(self.shape[axis], False)]:
            raise ValueError(
                f"sparsity= of shape {self.shape} is for real numbers, of one argument and one "
                f"result, not {[f'{x.dtype.name}{list(x.shape)}' for x in tensors]}"
            )
        return tensors[0]


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


def _put(x: Tensor, *places: np.ndarray, shape: tuple[int, ...]) -> Tensor:
    """An array of zeros, to which numbers are added at some places."""
    indices = [_beside(x, at) for at in places]
    return differentiable.scatter_add(x, *indices, key=(SLOT,) * len(shape), shape=shape)  # type: ignore[no-any-return]
