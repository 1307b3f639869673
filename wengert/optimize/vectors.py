"""Parameters in trees, as the vectors of doubles that SciPy's optimisers move."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from wengert import ops
from wengert.backends import backend_of
from wengert.func.arguments import in_kind, outputs, split
from wengert.func.trees import tree_flatten, tree_leaves
from wengert.interpreters.namespaces import differentiable
from wengert.tape.promotion import at_least
from wengert.tape.tensor import Tensor

Vector = np.ndarray[Any, np.dtype[np.float64]]

_REAL = {"complex64": ops.float32, "complex128": ops.float64}


class Vectors:
    """A tree of parameters, and vectors of the numbers in it.

    The leaves come one after the other, each in C order, a complex one as its real and then its
    imaginary part. These *parts* are what is differentiated, so that all derivatives are real.
    A list or tuple of numbers is an array, as for SciPy, and integers are doubles. Errors name the
    public function ``name``.
    """

    def __init__(self, x0: Any, name: str) -> None:
        if isinstance(x0, list | tuple) and not hasattr(x0, "_fields") and _numbers(x0):
            x0 = np.asarray(x0)
        leaves, self.structure = tree_flatten(x0)
        tree = self.structure.unflatten(map(_floating, leaves))
        call = split(lambda x: x, (tree,), {}, 0)
        self.leaves = call.leaves
        self._precision = call.precision
        self.likes = [tensor.detach() for tensor in call.tensors]
        sizes = [like.size for like in self.likes for _ in range(1 + like.dtype.complex)]
        self._ends = np.cumsum(sizes)[:-1]
        self.size = sum(sizes)
        if not self.size:
            raise ValueError(f"{name} was given no parameters: x0 holds no numbers")
        self.x0 = join_vectors(real_parts(self.likes))

    def parts(self, vector: Any) -> list[Tensor]:
        """The real Tensors of a vector, each on the backend and device of its leaf."""
        pieces = iter(np.split(vector, self._ends))
        found = []
        for like in self.likes:
            dtype = _REAL.get(like.dtype.name, like.dtype)
            where = differentiable.device(like)
            for _ in range(1 + like.dtype.complex):
                values = np.array(next(pieces)).reshape(like.shape)
                found.append(ops.asarray(values, dtype=dtype, device=where))
        return found

    def tree(self, parts: Iterable[Tensor]) -> Any:
        """The tree of parameters for the user's function, made of its parts."""
        following = iter(parts)
        return self.structure.unflatten(
            next(following) + 1j * next(following) if like.dtype.complex else next(following)
            for like in self.likes
        )

    def precise(self) -> AbstractContextManager[None]:
        """A context in which constants of a user's functions are as precise as the parameters."""
        return at_least(self._precision)

    def answer(self, vector: Any) -> Any:
        """The parameters of a vector, of the types of those that were given."""
        leaves = tree_leaves(self.tree(self.parts(vector)))
        return self.structure.unflatten(map(in_kind, leaves, self.leaves))

    def bounds(self, bounds: Any, make: Callable[[Vector, Vector], Any]) -> Any:
        """SciPy's bounds, for its own, or pairs ``(low, high)`` or None in the tree's form."""
        if bounds is None or self.structure.cls is None or hasattr(bounds, "lb"):
            return bounds
        lower: list[Vector] = []
        upper: list[Vector] = []
        pairs = self.structure.flatten_up_to(bounds, "bounds")
        for like, pair, path in zip(self.likes, pairs, self.structure.paths(), strict=True):
            if pair is not None and like.dtype.complex:
                raise ValueError(f"bounds{path} are for a complex parameter, and these have none")
            try:
                low, high = (None, None) if pair is None else pair
            except (TypeError, ValueError):
                raise ValueError(
                    f"bounds{path} should be a pair (low, high) or None, not {pair!r}"
                ) from None
            for found, bound, default in ((lower, low, -np.inf), (upper, high, np.inf)):
                values = np.asarray(default if bound is None else host(bound), dtype=np.float64)
                try:
                    spread = np.broadcast_to(values, like.shape).ravel()
                except ValueError:
                    raise ValueError(
                        f"bounds{path} of shape {values.shape} don't fit the parameter's shape "
                        f"{tuple(like.shape)}"
                    ) from None
                found += [spread] * (1 + like.dtype.complex)
        return make(np.concatenate(lower), np.concatenate(upper))


def real_parts(tree: Any, name: str = "") -> list[Tensor]:
    """Return the real Tensors of a tree of Tensors: of a complex one its real and imaginary part.

    Other leaves are an error of the public function ``name``.
    """
    return [
        part
        for x in outputs(tree, name)[0]
        for part in ((ops.real(x), ops.imag(x)) if x.dtype.complex else (x,))
    ]


def join_vectors(parts: Sequence[Tensor]) -> Vector:
    """Return the numbers of real Tensors as one vector."""
    return np.concatenate([host(x).astype(np.float64).reshape(-1) for x in parts])


def _numbers(x: Any) -> bool:
    """Whether a list holds only numbers or lists of numbers, which SciPy takes for an array."""
    leaves = tree_leaves(x)
    return bool(leaves) and all(type(leaf) in (bool, int, float, complex) for leaf in leaves)


def _floating(leaf: Any) -> Any:
    """A leaf in a floating dtype: as in SciPy, integers to begin with become doubles."""
    if isinstance(leaf, np.ndarray | np.generic):
        return leaf.astype(np.float64) if leaf.dtype.kind in "iu" else leaf
    return float(leaf) if type(leaf) is int else leaf


def host(x: Any) -> Any:
    """Return a Tensor, an array or a number as a NumPy array."""
    if isinstance(x, Tensor):
        x = x.array
    return backend_of(x).to_numpy(x) if hasattr(x, "dtype") else np.asarray(x)
