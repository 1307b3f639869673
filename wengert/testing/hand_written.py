"""`check_derivative`: derivatives written by hand for functions of NumPy arrays."""

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, Literal, NamedTuple

import numpy as np

from wengert.tape.function import Function
from wengert.tape.tensor import Tensor
from wengert.testing.check import GradientTest, as_input
from wengert.testing.contrast import Case
from wengert.testing.exploration import Kinks
from wengert.testing.gradcheck import EPS
from wengert.testing.problem import like, values
from wengert.testing.snippets import function_code, value_code
from wengert.testing.verdicts import GradcheckError

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
        - ``derivatives(*arguments, *t)`` for a tangent of each argument: :math:`\sum J t`, one
          array of the result's shape.
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

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.testing import check_derivative
    >>> check_derivative(lambda x: np.sum(x**3), lambda x: 3 * x**2, ...)
    >>> check_derivative(np.tanh, lambda x: 1 - np.tanh(x) ** 2, ..., form="elementwise")
    """
    options = locals()
    for name in ("function", "derivatives", "arguments", "form"):
        del options[name]
    if form not in ("jacobian", "elementwise", "vjp", "jvp"):
        raise ValueError(f"form should be 'jacobian', 'elementwise', 'vjp' or 'jvp', not {form!r}")
    _HandWrittenTest(_Pair(function, derivatives, form), arguments, **options).run()


class _Pair(NamedTuple):
    """A function and its derivatives."""

    function: Callable[..., Any]
    derivatives: Callable[..., Any]
    form: Form

    def value(self, inputs: Sequence[Any]) -> Array:
        return _as_floating(_call_on_copies("the function", self.function, inputs))

    def pull_back(self, inputs: Sequence[Any], moving: Sequence[int], g: Array) -> list[Array]:
        """The gradient of each differentiated argument, for a cotangent of the result."""
        found = self._as_list(
            moving, _call_on_copies("the derivative", self.derivatives, inputs, g)
        )
        for i, f in zip(moving, found, strict=True):
            _check_shape(f, inputs[i].shape, i)
            # J^H g of a complex result may be complex: a real argument's gradient is its real part.
            if not np.iscomplexobj(inputs[i]) and not np.iscomplexobj(g):
                _real(f, i)
        return found

    def push_forward(
        self, inputs: Sequence[Any], moving: Sequence[int], tangents: Sequence[Array], result: Array
    ) -> Array:
        """The tangent of the result, for tangents of the differentiated arguments."""
        if self.form == "jvp":
            tangent = _call_on_copies("the derivative", self.derivatives, inputs, *tangents)
            return _in_kind(
                _check_shape(_as_floating(tangent), result.shape, moving[0]), result, moving[0]
            )
        found = self._as_list(moving, _call_on_copies("the derivative", self.derivatives, inputs))
        total = np.zeros(result.shape, result.dtype)
        for i, derivative, t in zip(moving, found, tangents, strict=True):
            if self.form == "jacobian":
                _check_shape(derivative, (*result.shape, *t.shape), i)
                axes = tuple(range(result.ndim, derivative.ndim))
                total += _in_kind(np.sum(derivative * t, axis=axes), result, i)
                continue
            try:
                diagonal = np.broadcast_to(derivative, result.shape)
            except ValueError:
                diagonal = _check_shape(derivative, result.shape, i)
            # Infinity times zero is nan, where an element is at the edge of the domain.
            total += _in_kind(np.where(t == 0, 0.0, diagonal * t), result, i)
        return total

    @staticmethod
    def _as_list(moving: Sequence[int], given: Any) -> list[Array]:
        found = list(given) if isinstance(given, tuple) else [given]
        if len(found) != len(moving):
            raise ValueError(
                f"the derivatives are {len(found)}, and the floating and complex array arguments "
                f"are {len(moving)}: return a tuple of one for each"
            )
        return [_as_floating(f) for f in found]


class _ByHand(Function):
    """A pair as an operation: ``apply(pair, moving, *arguments)``."""

    @staticmethod
    def forward(ctx: Any, pair: _Pair, moving: Sequence[int], *arguments: Any) -> Tensor:
        ctx.pair, ctx.moving, ctx.like = pair, moving, arguments[moving[0]].detach()
        ctx.inputs = [values(x) if isinstance(x, Tensor) else x for x in arguments]
        ctx.result = pair.value(ctx.inputs)
        return like(ctx.like, ctx.result)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        found = ctx.pair.pull_back(ctx.inputs, ctx.moving, values(g))
        of = dict(zip(ctx.moving, (like(g, f) for f in found), strict=True))
        return (None, None, *(of.get(i) for i in range(len(ctx.inputs))))

    @staticmethod
    def jvp(ctx: Any, _pair: None, _moving: None, *tangents: Tensor | None) -> Tensor:
        moved = [values(tangents[i]) for i in ctx.moving]
        return like(ctx.like, ctx.pair.push_forward(ctx.inputs, ctx.moving, moved, ctx.result))


class _HandWrittenTest(GradientTest):
    """The test that `check_derivative` runs."""

    layouts = False  # the pair sees copies

    def __init__(self, pair: _Pair, arguments: Sequence[Any], **options: Any) -> None:
        def function(*inputs: Any) -> Tensor:
            moving = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
            made: Tensor = _ByHand.apply(pair, moving, *inputs)
            return made

        self.pair = pair
        update_wrapper(function, pair.function)
        forward = pair.form != "vjp"
        super().__init__(function, arguments, backends="numpy", forward=forward, **options)

    def example(self, drawn: tuple[Any, ...]) -> None:
        error = self._check(1, drawn[0], False, {"check_backward_ad": not self.forward})
        if error is not None:
            raise error

    @staticmethod
    def _inputs(call: tuple[Any, ...], apart: bool) -> tuple[Any, ...]:
        inputs = tuple(map(as_input, call))  # arrays in containers are constants
        if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
            raise TypeError(
                "check_derivative needs an argument that is a floating or complex array"
            )
        return inputs

    def _snippet(self, case: Case) -> list[str]:
        lines, name = function_code(self.pair.function, "function")
        more, other = function_code(self.pair.derivatives, "derivatives")
        given = ", ".join(value_code(x, "np") for x in case.call)
        options = {"form": self.pair.form, **self.tolerances, "kinks": "fail"}
        if self.pair.form == "jacobian":
            del options["form"]
        told = "".join(f", {key}={value!r}" for key, value in options.items())
        constants = any(isinstance(x, Tensor) for x in case.call)
        return [
            "import numpy as np",
            *(["import wengert as wg"] if constants else []),
            "from wengert.testing import check_derivative",
            *dict.fromkeys([*lines, *more]),
            f"check_derivative({name}, {other}, {given}{told})",
        ]


def _call_on_copies(
    culprit: str, function: Callable[..., Any], inputs: Sequence[Any], *more: Any
) -> Any:
    """Call a function on copies of its arguments, and check that it leaves them unchanged."""
    given = (*inputs, *more)
    copies = [np.array(x) if isinstance(x, np.ndarray) else x for x in given]
    found = function(*copies)
    for i, (copy, x) in enumerate(zip(copies, given, strict=True)):
        if isinstance(x, np.ndarray) and copy.tobytes() != x.tobytes():
            which = f"inputs[{i}]" if i < len(inputs) else f"argument {i}, behind the inputs,"
            raise GradcheckError(f"{culprit} changed {which} in place")
    return found


def _as_floating(found: Any) -> Array:
    """A function's result as an array, which is floating if the result is an integer."""
    array = np.asarray(found)
    return array.astype(np.result_type(array, 1.0))


def _check_shape(found: Array, shape: tuple[int, ...], i: int) -> Array:
    if found.shape != shape:
        raise ValueError(
            f"the derivative for inputs[{i}] has shape {found.shape}, and should have {shape}"
        )
    return found


def _in_kind(found: Array, result: Array, i: int) -> Array:
    """A tangent in the result's dtype; that of a real result has to be real."""
    return (found if np.iscomplexobj(result) else _real(found, i)).astype(result.dtype)


def _real(found: Array, i: int) -> Array:
    """An array that has to be real, but for rounding."""
    if np.any(np.abs(np.imag(found)) > 1e-8 * np.maximum(np.abs(found), 1.0)):
        raise GradcheckError(
            f"the derivative for inputs[{i}] gives complex numbers where the function's are real"
        )
    return np.real(found)
