"""A function at a point: its results nearby as rows of real numbers, and its derivatives."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np

from wengert.backends import backend_of, dtype_of, selection
from wengert.func.trees import tree_flatten, tree_leaves, tree_map
from wengert.interpreters.duals import Dual, running, split
from wengert.interpreters.lifted import new_level
from wengert.tape.autograd import grad
from wengert.tape.tensor import Tensor, untracked
from wengert.testing.differences import Reals, Segment, locate, to_reals
from wengert.testing.verdicts import GradcheckError, KinkError

#: Small enough that its square vanishes beside 1, so that nothing is cut off.
IMAGINARY_STEP = 1e-30
#: The magnitude above which steps grow with the numbers.
USUAL = 4.0


def values(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Return a Tensor's values in a NumPy array of their own, tracked or not."""
    return np.array(_host_values(tensor), copy=True)


def _host_values(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Return a Tensor's values in a NumPy array that may be in its own memory."""
    backend = backend_of(tensor._array)
    return backend.to_numpy(tensor.array)


def raw_like(tensor: Tensor, array: np.ndarray[Any, Any]) -> Any:
    """Return a new raw array of NumPy values, on a Tensor's backend and device."""
    backend = backend_of(tensor._array)
    return backend.from_numpy(np.array(array, copy=True), backend.device(tensor.array))


def like(tensor: Tensor, array: np.ndarray[Any, Any]) -> Tensor:
    """Return an untracked Tensor of NumPy values, on another Tensor's backend and device."""
    return untracked(raw_like(tensor, array))


def on_backend(array: np.ndarray[Any, Any]) -> Tensor:
    """Return an untracked Tensor of NumPy values, on the backend and device that are selected."""
    chosen, device, _ = selection()
    return untracked(chosen.from_numpy(np.array(array, copy=True), device))


def spread(tensor: Tensor, array: np.ndarray[Any, Any]) -> Tensor:
    """Return what `like` returns, as every second element of a larger array."""
    return untracked(raw_like(tensor, np.stack([array, array], axis=-1))[..., 0])


def normal(
    random: np.random.Generator, shape: Sequence[int], is_complex: bool
) -> np.ndarray[Any, Any]:
    """Return random numbers, complex ones with both parts."""
    drawn = random.standard_normal(shape)
    return np.asarray(drawn + 1j * random.standard_normal(shape) if is_complex else drawn)


def units(shape: tuple[int, ...], is_complex: bool) -> Iterator[np.ndarray[Any, Any]]:
    """Yield for each element an array that is 1 there, and where it is complex also 1j."""
    for index in np.ndindex(shape):
        for unit in (1.0, 1j) if is_complex else (1.0,):
            made = np.zeros(shape, dtype=type(unit))
            made[index] = unit
            yield made


def pair_with_cotangents(
    results: Sequence[Tensor], cotangents: Sequence[Any]
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the results on the tape that have a cotangent (not None), and these as Tensors."""
    pairs = [
        (result, like(result, g))
        for result, g in zip(results, cotangents, strict=True)
        if result._node is not None and g is not None
    ]
    return [result for result, _ in pairs], [g for _, g in pairs]


def strided(inputs: Any) -> Any:
    """Return arguments with each Tensor's array every second element of a larger one.

    To test a function on arrays that are not contiguous, where the array library has such views.

    Parameters
    ----------
    inputs : Tensor, or container of them
        As for `gradcheck`.

    Returns
    -------
    Tensor, or container of them
        Like ``inputs``, with the same values.

    Examples
    --------
    >>> x = wg.testing.strided(wg.ones((2, 3), dtype=wg.float64))
    >>> x.shape, x.array.flags.c_contiguous
    ((2, 3), False)
    """

    def apart(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        made = spread(x, values(x))
        return made.requires_grad_(x.requires_grad) if made.dtype.inexact else made

    return tree_map(apart, inputs)


def inexact(returned: Any) -> list[Tensor]:
    """Return the floating and complex Tensors among those that a function returned.

    Raises
    ------
    TypeError
        If the function returned anything but Tensors.
    ValueError
        If none is floating or complex.
    """
    given = [returned] if isinstance(returned, Tensor) else tree_leaves(returned)
    for i, result in enumerate(given):
        if not isinstance(result, Tensor):
            raise TypeError(
                f"func should return Tensors, and result {i} is a {type(result).__name__}"
            )
    found = [result for result in given if result.dtype.inexact]
    if not found:
        raise ValueError("func returned no floating or complex Tensor to differentiate")
    return found


class Problem:
    """A function with its arguments.

    Attributes
    ----------
    arguments : list
        The function's arguments, without their containers.
    checked : list of int
        Positions of the arguments that are differentiated.
    before : dict of int to ndarray
        Their values, by their positions.
    inputs, width : list of Segment, int
        The parts that they have in a row of real numbers, and its length.

    Parameters
    ----------
    func : callable
        The function.
    inputs : Tensor or sequence
        Its arguments.
    plain : callable, optional
        The same function with results that are not recorded; differences use its values.

    Differences see the results times ``scale_of_results``.
    """

    scale_of_results: Reals | float = 1.0

    def __init__(
        self, func: Callable[..., Any], inputs: Any, plain: Callable[..., Any] | None = None
    ) -> None:
        self._given, self.plain = func, plain
        arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
        self.arguments, self._structure = tree_flatten(arguments)
        self._flat = all(child.cls is None for child in self._structure.children)
        self.checked: list[int] = []
        for i, x in enumerate(self.arguments):
            # A Tensor that is given twice is one input, which moves as one.
            given = any(x is self.arguments[j] for j in self.checked)
            if isinstance(x, Tensor) and x.requires_grad and not given:
                self.checked.append(i)
        if not self.checked:
            raise ValueError(
                "gradcheck needs at least one input that is a Tensor and requires grad"
            )
        for i in self.checked:
            _demand_double(self.arguments[i], "inputs[{}]", i)
        self.before = {i: values(self.arguments[i]) for i in self.checked}
        self.inputs = [Segment(x.shape, x.dtype.kind == "c") for x in self.before.values()]
        self.width = sum(segment.size for segment in self.inputs)
        self._middle: Reals | None = None
        self._segments: list[Segment] = []
        self._on_tape: list[bool] = []

    def func(self, *leaves: Any) -> Any:
        """The function, of its arguments without their containers."""
        return self._call(self._given, leaves)

    def _call(self, function: Callable[..., Any], leaves: Sequence[Any]) -> Any:
        return function(*(leaves if self._flat else self._structure.unflatten(leaves)))

    def results(self, returned: Any) -> list[Tensor]:
        """The floating and complex Tensors in what the function returned, in double precision."""
        found = inexact(returned)
        for i, result in enumerate(found):
            _demand_double(result, "result {}", i)
        return found

    def run(self) -> list[Tensor]:
        """Call the function, and check that it leaves its inputs unchanged."""
        results = self.results(self.func(*self.arguments))
        self._segments = [Segment(r.shape, r.dtype.complex) for r in results]
        self._on_tape = [r._node is not None for r in results]
        self.check_unchanged("func")
        return results

    @property
    def segments(self) -> list[Segment]:
        """The parts that the results have in a row of real numbers."""
        if not self._segments:
            self.run()
        return self._segments

    def changed_input(self) -> int | None:
        """The position of an input whose values have changed; None if there is none."""
        for i, before in self.before.items():
            now = values(self.arguments[i])
            if now.shape != before.shape or now.tobytes() != before.tobytes():
                return i
        return None

    def check_unchanged(self, culprit: str) -> None:
        """Raise `GradcheckError` if an input's values have changed."""
        at = self.changed_input()
        if at is not None:
            raise GradcheckError(f"{culprit} changed inputs[{at}] in place")

    def _row(self) -> Reals:
        returned = self._call(self.plain or self._given, self.arguments)
        row = np.concatenate([to_reals(_host_values(result)) for result in self.results(returned)])
        return row * self.scale_of_results

    def scale_results(self, by: Reals | float) -> "Problem":
        """The same problem, with results times a factor for differences."""
        made = copy(self)
        made.scale_of_results, made._middle = by, None
        return made

    def middle(self) -> Reals:
        """The results at the point itself."""
        if self._middle is None:
            self._middle = self._row()
        return self._middle

    def parts(self, direction: Reals) -> dict[int, np.ndarray[Any, Any]]:
        """A direction in all inputs, as an array for each input in which it is not zero."""
        found, start = {}, 0
        for (i, before), segment in zip(self.before.items(), self.inputs, strict=True):
            row = direction[start : start + segment.size]
            start += segment.size
            if row.any():
                found[i] = row.view(before.dtype).reshape(before.shape)
        return found

    def scale(self, direction: Reals) -> float:
        """A power of two for the first step: an absolute step vanishes beside large numbers."""
        moving = self.parts(direction)
        largest = max((np.max(abs(self.before[i][x != 0])) for i, x in moving.items()), default=0.0)
        return 2.0 ** max(0, math.frexp(largest / USUAL)[1] - 1) if largest < math.inf else 1.0

    def results_at(self, by: Reals) -> Reals:
        """The results with the inputs moved.

        An input's own Tensor holds the moved array during the call, so that a function that has
        a reference to it (a module to its parameters) uses the moved values.
        """
        middle, parts = self.middle(), self.parts(by)
        with self.hold({i: self._raw(i, self.before[i] + x) for i, x in parts.items()}):
            row = self._row()
        if row.size != middle.size:
            raise KinkError(
                f"the shapes of the results change where inputs[{min(parts)}] is moved by "
                f"{np.max(abs(by)):.3g}, so there is no derivative to compare with"
            )
        return row

    @contextmanager
    def hold(self, arrays: Mapping[int, Any]) -> Iterator[None]:
        """Let the Tensors of some inputs hold other arrays inside a ``with`` block.

        Results are to be read inside it: the function may return the Tensor itself.
        """
        own = {i: self.arguments[i]._array for i in arrays}
        try:
            for i, array in arrays.items():
                self.arguments[i]._array = array
            yield
        finally:
            for i, array in own.items():
                self.arguments[i]._array = array

    def _raw(self, at: int, array: np.ndarray[Any, Any]) -> Any:
        return raw_like(self.arguments[at], array)

    def imaginary_step(self, direction: Reals) -> Reals:
        """The derivative of all results along a direction, by a step in the imaginary one."""
        parts = self.parts(direction)
        if any(self.arguments[i].dtype.complex for i in parts):
            raise ValueError("complex_step is for real inputs")
        for i, segment in enumerate(self.segments):
            if segment.complex:
                raise ValueError(f"complex_step is for real results, and result {i} is complex")
        step = IMAGINARY_STEP * 1j
        with self.hold({i: self._raw(i, self.before[i] + step * x) for i, x in parts.items()}):
            results = self.results(self.func(*self.arguments))
            found = [np.imag(values(result)).reshape(-1) for result in results]
        return np.concatenate(found) / IMAGINARY_STEP * self.scale_of_results

    def forward(self, direction: Reals) -> Reals:
        """The derivative of all results along a direction, by forward mode."""
        level = new_level()
        duals = {
            i: Dual(self.arguments[i]._array, self._raw(i, part), level)
            for i, part in self.parts(direction).items()
        }
        with running(level), self.hold(duals):
            results = self.results(self.func(*self.arguments))
            found = [_tangent(i, result, level) for i, result in enumerate(results)]
        self.check_unchanged("forward mode")
        return np.concatenate(found)

    def masks(self) -> dict[int, Reals]:
        """For each input the direction that is one in it and zero in the others."""
        masks = np.repeat(np.eye(len(self.inputs)), [s.size for s in self.inputs], axis=1)
        return dict(zip(self.checked, masks, strict=True))

    def sweep(
        self, results: list[Tensor], cotangents: Sequence[Any], retain_graph: bool
    ) -> list[np.ndarray[Any, Any]]:
        """The gradients of the inputs, for the given cotangents of the results (None: absent)."""
        targets = [self.arguments[i] for i in self.checked]
        outputs, seeds = pair_with_cotangents(results, cotangents)
        if not outputs:
            return [np.zeros_like(before) for before in self.before.values()]
        gradients = grad(outputs, targets, seeds, retain_graph=retain_graph, allow_unused=True)
        found = []
        for (i, before), target, gradient in zip(
            self.before.items(), targets, gradients, strict=True
        ):
            if gradient is None:
                found.append(np.zeros_like(before))
                continue
            if gradient.shape != target.shape or gradient.dtype is not target.dtype:
                raise GradcheckError(
                    f"the gradient of inputs[{i}] has shape {tuple(gradient.shape)} and dtype "
                    f"{gradient.dtype.name}, and the input {tuple(target.shape)} and "
                    f"{target.dtype.name}"
                )
            found.append(values(gradient))
        return found

    def jacobian(self) -> Reals:
        """The Jacobian by backward passes, one for each real number of the results."""
        results = self.run()
        rows = []
        for result in results:
            for cotangent in units(result.shape, result.dtype.complex):
                gradients = self.sweep([result], [cotangent], retain_graph=True)
                rows.append(np.concatenate([to_reals(g) for g in gradients]))
        self.check_unchanged("the backward pass")
        return np.stack(rows) if rows else np.zeros((0, self.width))

    def is_tracked(self) -> bool:
        """Whether any result is on the tape, so that there is a derivative to differentiate."""
        return bool(self.segments) and any(self._on_tape)

    def tracks(self, row: int) -> bool:
        """Whether the result that a row of the Jacobian belongs to is on the tape."""
        return self._on_tape[locate(self.segments, row)[0]]

    def result_entry(self, row: int) -> str:
        """What a row of the Jacobian is the derivative of, in words."""
        which, at = locate(self.segments, row)
        return self.segments[which].entry(f"result {which}", at)

    def input_entry(self, column: int) -> str:
        """What a column of the Jacobian is the derivative with respect to, in words."""
        which, at = locate(self.inputs, column)
        return self.inputs[which].entry(f"inputs[{self.checked[which]}]", at)


def _demand_double(tensor: Tensor, what: str, at: int) -> None:
    if tensor.dtype.name not in ("float64", "complex128"):
        raise ValueError(
            f"{what.format(at)} has dtype {tensor.dtype.name}: differences tell nothing below "
            "double precision. Use float64 or complex128"
        )


def _tangent(at: int, result: Tensor, level: int) -> Reals:
    """The tangent of a result, as reals."""
    tangent = split(result._array, level)[1]
    if tangent is None:
        return np.zeros(Segment(result.shape, result.dtype.complex).size)
    if tangent.shape != result.shape or dtype_of(tangent.dtype) is not result.dtype:
        raise GradcheckError(
            f"the tangent of result {at} has shape {tuple(tangent.shape)} and dtype "
            f"{dtype_of(tangent.dtype).name}, and the result {tuple(result.shape)} and "
            f"{result.dtype.name}"
        )
    return to_reals(values(untracked(tangent)))
