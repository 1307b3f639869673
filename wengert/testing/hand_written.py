"""Derivatives written by hand, of functions of NumPy arrays: tests that need nothing of Wengert."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from wengert.testing.check import Kinks, PropertyTest
from wengert.testing.differences import Estimate, Reals, derivative, to_reals
from wengert.testing.gradcheck import EPS
from wengert.testing.snippets import array_code, block, function_code, number_code
from wengert.testing.verdicts import GradcheckError, Tolerance, WrongGradientError, judge

__all__ = ["check_derivative"]

Form = Literal["jacobian", "elementwise", "vjp", "jvp"]
Array = np.ndarray[Any, Any]


def check_derivative(
    function: Callable[..., Any],
    derivatives: Callable[..., Any],
    *arguments: Any,
    form: Form = "jacobian",
    dtypes: Sequence[str] = ("float64",),
    kinks: Kinks = "skip",
    eps: float = EPS,
    atol: float = 1e-8,
    rtol: float = 1e-6,
    examples: int | None = None,
    settings: Any = None,
    min_side: int = 0,
    max_side: int = 3,
    max_dims: int = 3,
) -> None:
    r"""Check a derivative written by hand against differences, at arguments that Hypothesis draws.

    For functions of NumPy arrays; neither function sees a Tensor.

    >>> import numpy as np
    >>> from wengert.testing import check_derivative
    >>> check_derivative(lambda x: np.sum(x**3), lambda x: 3 * x**2, ...)
    >>> check_derivative(np.tanh, lambda x: 1 - np.tanh(x) ** 2, ..., form="elementwise")

    Parameters
    ----------
    function : callable
        Takes the arguments and returns one array or number.
    derivatives : callable
        Its derivatives with respect to all floating and complex array arguments: one array, or a
        tuple of one for each, in the form that ``form`` says.
    *arguments
        As for `check_gradients`. Where all are values, that is the point to check.
    form : {"jacobian", "elementwise", "vjp", "jvp"}
        What ``derivatives`` gives:

        - ``derivatives(*arguments)`` of shape ``(*result.shape, *argument.shape)``, which for a
          function with one number as its result is the gradient;
        - of a shape that broadcasts to the result's: the diagonal of an elementwise function;
        - ``derivatives(*arguments, g)`` for a cotangent ``g`` of the result's shape: of the
          arguments' shapes, :math:`J^H g`;
        - ``derivatives(*arguments, *t)`` for a tangent of each argument: :math:`\sum J t`, of the
          result's shape, alone.
    dtypes : sequence of str
        As for `check_gradients`. Complex derivatives are those of the convention there for
        ``"vjp"``, and :math:`f'(z)` of a holomorphic function for the other forms.
    kinks, eps, atol, rtol, examples, settings, min_side, max_side, max_dims
        As for `check_gradients`.

    Raises
    ------
    GradcheckError
        If a derivative is wrong, or one of the functions changes an argument in place. The
        message ends with code that shows it again.
    TypeError, ValueError
        If arguments cannot be understood, or a derivative has the wrong shape.
    """
    if form not in ("jacobian", "elementwise", "vjp", "jvp"):
        raise ValueError(f"form should be 'jacobian', 'elementwise', 'vjp' or 'jvp', not {form!r}")
    test = _DerivativeTest(
        function,
        arguments,
        kinks=kinks,
        examples=examples,
        settings=settings,
        dtypes=[dtypes] if isinstance(dtypes, str) else dtypes,
        bounds={"min_side": min_side, "max_side": max_side, "max_dims": max_dims},
    )
    test.derivatives, test.form, test.eps = derivatives, form, eps
    test.tolerance = Tolerance(atol, rtol)
    module = getattr(function, "__module__", "")
    test.explore(re.sub(r"\W", "_", f"{module}_{test.name}_derivative"))


class _DerivativeTest(PropertyTest):
    derivatives: Callable[..., Any]
    form: Form
    eps: float
    tolerance: Tolerance

    def example(self, drawn: tuple[Any, ...]) -> None:
        inputs = [np.array(x) if isinstance(x, np.ndarray) else x for x in drawn]
        with np.errstate(all="ignore"):
            error = self._compare(inputs)
        if error is None:
            return
        given = [array_code(x) if isinstance(x, np.ndarray) else _code(x) for x in drawn]
        lines, name = function_code(self.function, "function")
        more, other = function_code(self.derivatives, "derivatives")
        options = "" if self.form == "jacobian" else f", form={self.form!r}"
        for key, value, default in (
            ("eps", self.eps, EPS),
            ("atol", self.tolerance.atol, 1e-8),
            ("rtol", self.tolerance.rtol, 1e-6),
        ):
            options += "" if value == default else f", {key}={value!r}"
        code = [
            "import numpy as np",
            "from wengert.testing import check_derivative",
            *dict.fromkeys([*lines, *more]),
            f"check_derivative({name}, {other}, {', '.join(given)}{options}, kinks='fail')",
        ]
        raise type(error)(
            f"{self.name}: {error}\n  verdict:   {error.verdict}\nTo see it again:\n\n"
            + block(code)
            + "\n"
        )

    def _compare(self, inputs: list[Any]) -> GradcheckError | None:
        """Compare all derivatives along all directions."""
        moving = [
            i for i, x in enumerate(inputs) if isinstance(x, np.ndarray) and x.dtype.kind in "fc"
        ]
        if not moving:
            raise TypeError(
                "check_derivative needs an argument that is a floating or complex array"
            )
        before = [np.array(x) if isinstance(x, np.ndarray) else x for x in inputs]
        middle = np.asarray(self.function(*inputs))
        if error := _changed(inputs, before, "the function"):
            return error
        analytic = self._analytic(inputs, moving, middle)
        if error := _changed(inputs, before, "the derivative"):
            return error
        found: GradcheckError | None = None
        for i in moving:
            for column, unit in enumerate(_units(inputs[i])):
                estimate = self._along(inputs, i, unit, middle)
                given = to_reals(analytic(i, unit))
                error = self._judge(estimate, given, middle, i, column, inputs[i])
                if isinstance(error, WrongGradientError):
                    return error
                found = found or error
        return found

    def _along(self, inputs: list[Any], i: int, unit: Array, middle: Array) -> Estimate:
        def line(t: float) -> Reals:
            moved = [np.array(x) if isinstance(x, np.ndarray) else x for x in inputs]
            moved[i] = inputs[i] + (t * unit).astype(inputs[i].dtype)
            value = np.asarray(self.function(*moved))
            return to_reals(value.astype(np.result_type(value, middle)))

        return derivative(line, self.eps, self.tolerance.settled, to_reals(middle))

    def _analytic(
        self, inputs: list[Any], moving: list[int], middle: Array
    ) -> Callable[[int, Array], Array]:
        """A function of an argument's position and a direction: the derivative along it."""
        if self.form == "jvp":

            def pushed(i: int, unit: Array) -> Array:
                tangents = [unit if j == i else np.zeros_like(inputs[j]) for j in moving]
                tangent = np.asarray(self.derivatives(*inputs, *tangents))
                return _shaped(tangent, middle.shape, i).astype(middle.dtype)

            return pushed
        if self.form == "vjp":
            rows = {
                (index, unit): self._listed(
                    self.derivatives(*inputs, _at(middle, index, unit)), moving
                )
                for index in np.ndindex(middle.shape)
                for unit in _parts(middle)
            }
            for found in rows.values():
                for i in moving:
                    _shaped(found[i], inputs[i].shape, i)

            def pulled(i: int, unit: Array) -> Array:
                out = np.zeros(middle.shape, middle.dtype)
                for (index, part), found in rows.items():
                    out[index] += part * np.sum(np.real(np.conj(found[i]) * unit))
                return out

            return pulled
        found = self._listed(self.derivatives(*inputs), moving)
        if self.form == "elementwise":

            def diagonal(i: int, unit: Array) -> Array:
                try:
                    factor = np.broadcast_to(found[i], middle.shape)
                except ValueError:
                    factor = _shaped(found[i], middle.shape, i)
                # Not infinity times zero, where another element is at the edge of the domain.
                return np.where(unit == 0, 0.0, factor * unit).astype(middle.dtype)

            return diagonal
        for i in moving:
            _shaped(found[i], (*middle.shape, *inputs[i].shape), i)
        return lambda i, unit: np.sum(
            found[i] * unit, axis=tuple(range(middle.ndim, found[i].ndim))
        ).astype(middle.dtype)

    def _listed(self, given: Any, moving: list[int]) -> dict[int, Array]:
        found = list(given) if isinstance(given, tuple) else [given]
        if len(found) != len(moving):
            raise ValueError(
                f"the derivatives are {len(found)}, and the floating and complex array arguments "
                f"are {len(moving)}: return a tuple of one for each"
            )
        return {i: np.asarray(x) for i, x in zip(moving, found, strict=True)}

    def _judge(
        self, found: Estimate, given: Reals, middle: Array, i: int, column: int, x: Array
    ) -> GradcheckError | None:
        allowed = self.tolerance(found)
        excess = abs(given - found.value) / allowed
        wrong = np.flatnonzero(~(excess <= 1))
        if not wrong.size:
            return None
        row = int(wrong[np.argmax(np.nan_to_num(excess[wrong], nan=np.inf))])
        kind, cause = judge(
            found, row, float(given[row]), float(to_reals(middle)[row]), float(allowed[row])
        )
        cause = cause.replace("the gradient", "the derivative")
        return kind(
            f"{cause}: d {_entry('result', middle, row)} / d {_entry(f'arguments[{i}]', x, column)}"
            f"\n  numerical: {found.value[row]:.12g}\n  by hand:   {given[row]:.12g}"
        )


def _changed(inputs: list[Any], before: list[Any], culprit: str) -> GradcheckError | None:
    for i, (x, old) in enumerate(zip(inputs, before, strict=True)):
        if isinstance(x, np.ndarray) and x.tobytes() != old.tobytes():
            return GradcheckError(f"{culprit} changed arguments[{i}] in place")
    return None


def _shaped(found: Array, shape: tuple[int, ...], i: int) -> Array:
    if found.shape != shape:
        raise ValueError(
            f"the derivative for arguments[{i}] has shape {found.shape}, and should have {shape}"
        )
    return found


def _parts(x: Array) -> tuple[complex, ...]:
    return (1.0, 1j) if x.dtype.kind == "c" else (1.0,)


def _at(x: Array, index: tuple[int, ...], unit: complex) -> Array:
    made = np.zeros(x.shape, np.complex128 if x.dtype.kind == "c" else np.float64)
    made[index] = unit
    return made


def _units(x: Array) -> list[Array]:
    return [_at(x, index, unit) for index in np.ndindex(x.shape) for unit in _parts(x)]


def _entry(what: str, x: Array, place: int) -> str:
    if x.dtype.kind == "c":
        what, place = f"{('Re', 'Im')[place % 2]} {what}", place // 2
    index = [int(n) for n in np.unravel_index(place, x.shape)] if x.shape else []
    return f"{what}{index}" if index else what


def _code(value: Any) -> str:
    return number_code(value, "np") if isinstance(value, float | complex) else repr(value)
