"""A user's function of a tree as functions of a vector: values and derivatives."""

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np

from wengert import ops
from wengert.func import grad, hessian, jacfwd, jacobian, jacrev, value_and_grad, vjp
from wengert.optimize.vectors import Vector, Vectors, host, join_vectors, real_parts
from wengert.tape.grad_mode import no_grad
from wengert.tape.tensor import Tensor

#: Ways to compute a Jacobian.
_MODES = {"auto": jacobian, "forward": jacfwd, "reverse": jacrev}
#: Returns a function, or its compiled form.
Maker = Callable[[Callable[..., Any]], Callable[..., Any]]


def maker(compiled: bool) -> Maker:
    """What makes functions for SciPy to call."""
    made: Maker = import_module("wengert.compiler.making").compile if compiled else _time
    return made


def _time(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with a warning if its first hundred calls take long."""
    begin, calls = perf_counter(), itertools.count(1)

    def call(*args: Any) -> Any:
        if next(calls) == 100 and perf_counter() - begin > 5:
            text = (
                "100 eager calls took over 5 s; compile=True (wg.compile) records the function once"
            )
            warnings.warn(text, stacklevel=2)
        return function(*args)

    return call


def _scalar(result: Any) -> Any:
    """The result of the function to be minimised, as 0-d."""
    if not isinstance(result, Tensor) or not result.shape:
        return result
    if result.size != 1:
        raise ValueError(
            "minimize is for functions that return a scalar, and this one returned a Tensor of "
            f"shape {tuple(result.shape)}; return one number, such as wg.sum(result**2), or pass "
            "the function of residuals to wg.optimize.least_squares"
        )
    return ops.reshape(result, ())


class Objective:
    """A user's scalar function of parameters in a tree, as functions of a vector."""

    def __init__(
        self, fun: Callable[..., Any], args: tuple[Any, ...], vectors: Vectors, made: Maker
    ) -> None:
        self.vectors = vectors
        of_parts: Callable[..., Any] = lambda parts: _scalar(fun(vectors.tree(parts), *args))
        self.of_parts = made(of_parts)
        self._both = made(value_and_grad(of_parts))
        self._gradient, self._hessian = grad(of_parts), made(hessian(of_parts))
        self._at: bytes | None = None
        self._pullback: Any = None

    def value(self, vector: Vector) -> float:
        """The value alone."""
        with no_grad(), self.vectors.precise():
            result = self.of_parts(self.vectors.parts(vector))
        return float(result)

    def both(self, vector: Vector) -> tuple[float, Vector]:
        """The value and the gradient, from one run."""
        with no_grad(), self.vectors.precise():
            value, gradients = self._both(self.vectors.parts(vector))
        return float(value), join_vectors(gradients)

    def product(self, vector: Vector, direction: Vector) -> Vector:
        """The Hessian times a vector.

        The Hessian is symmetric, so the gradient's pullback computes it. The gradient is recorded
        once for each point, at which SciPy asks for many products.
        """
        at = np.asarray(vector, dtype=np.float64).tobytes()
        with no_grad(), self.vectors.precise():
            if at != self._at:
                _, self._pullback = vjp(self._gradient, self.vectors.parts(vector))
                self._at = at
            return join_vectors(self._pullback(self.vectors.parts(direction))[0])

    def dense(self, vector: Vector) -> Vector:
        """The whole Hessian."""
        parts = self.vectors.parts(vector)
        with no_grad(), self.vectors.precise():
            try:
                return _matrix(self._hessian(parts), parts)
            except NotImplementedError:  # an operation without a forward derivative
                units = np.eye(self.vectors.size)
                return np.stack([self.product(vector, unit) for unit in units])


class Residuals:
    """A user's function with results in a tree, as functions of a vector that give vectors."""

    def __init__(
        self,
        fun: Callable[..., Any],
        args: Sequence[Any],
        vectors: Vectors,
        name: str,
        made: Maker,
        mode: str = "auto",
    ) -> None:
        if mode not in _MODES:
            raise ValueError(f'jac should be "auto", "forward" or "reverse", not {mode!r}')
        self.vectors = vectors
        of_parts: Callable[..., Any] = lambda parts: real_parts(
            fun(vectors.tree(parts), *args), name
        )
        self._of_parts, self._derived = made(of_parts), made(_MODES[mode](of_parts))

    def value(self, vector: Vector) -> Vector:
        """The residuals."""
        with no_grad(), self.vectors.precise():
            return join_vectors(self._of_parts(self.vectors.parts(vector)))

    def jacobian(self, vector: Vector) -> Vector:
        """Their derivatives: a row for each residual, a column for each parameter."""
        parts = self.vectors.parts(vector)
        with no_grad(), self.vectors.precise():
            return _matrix(self._derived(parts), parts)


def _matrix(blocks: Sequence[Sequence[Tensor]], parts: Sequence[Tensor]) -> Vector:
    """The matrix of blocks of derivatives, each of which has the axes of a part last."""
    rows = [
        [
            host(block).reshape(math.prod(block.shape[: block.ndim - part.ndim]), part.size)
            for block, part in zip(row, parts, strict=True)
        ]
        for row in blocks
    ]
    return np.block(rows).astype(np.float64)
