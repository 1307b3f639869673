"""Property-based tests of derivatives, made from a function and what its arguments may be."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, overload

import numpy as np
from hypothesis import strategies as st

from wengert.backends import BackendError, get_backend, use_backend
from wengert.func.trees import tree_map
from wengert.tape.tensor import Tensor
from wengert.testing.backends import installed_backends
from wengert.testing.contrast import MODES, Case, Outcome, explain
from wengert.testing.exploration import Exploration, Kinks
from wengert.testing.gradcheck import EPS, gradcheck, gradgradcheck
from wengert.testing.problem import Problem, on_backend, strided, values
from wengert.testing.snippets import block, function_code, value_code
from wengert.testing.tracebacks import shorten
from wengert.testing.verdicts import BadlyScaledError, GradcheckError, KinkError

P = ParamSpec("P")
R = TypeVar("R")


class DerivativeTest(Protocol, Generic[P, R]):
    """What `check_gradients` makes of a function."""

    function: Callable[P, R]

    def __call__(self, *instance: object) -> None: ...


class _Decorator(Protocol):
    def __call__(self, function: Callable[P, R], /) -> DerivativeTest[P, R]: ...


class _Options(TypedDict, total=False):
    order: int
    dtypes: Sequence[str]
    backends: Sequence[str] | None
    kinks: Kinks
    forward: bool | None
    single: bool
    fast_mode: bool | None
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    examples: int | None
    settings: Any
    min_side: int
    max_side: int
    max_dims: int


#: The share of the examples for libraries that compile or schedule anew for each shape; failures
#: there are shrunk on a faster one where they occur too.
SHARE = {"jax": 0.1, "dask": 0.1}
TOLERANCES = {"eps": EPS, "atol": 1e-8, "rtol": 1e-6, "nondet_tol": 0.0}


class GradientTest(Exploration):
    """What `check_gradients` makes of a function; see there."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        *,
        order: int = 2,
        backends: str | Sequence[str] | None = None,
        forward: bool | None = None,
        single: bool = True,
        fast_mode: bool | None = None,
        **rest: Any,
    ) -> None:
        # Snippets leave out tolerances that are the defaults.
        given = {name: rest.pop(name, default) for name, default in TOLERANCES.items()}
        self.tolerances = {name: x for name, x in given.items() if x != TOLERANCES[name]}
        super().__init__(function, arguments, **rest)
        if order not in (1, 2):
            raise ValueError(f"order should be 1 or 2, not {order!r}")
        self.order, self.forward, self.single, self.fast_mode = order, forward, single, fast_mode
        self.backends = [backends] if isinstance(backends, str) else backends and list(backends)
        self.lacks_forward = False
        self._only: list[str] | None = None

    @contextmanager
    def on(self, name: str) -> Iterator[None]:
        """Run on one backend alone inside a ``with`` block, for the pytest plugin."""
        before, self._only = self._only, [name]
        try:
            yield
        finally:
            self._only = before

    def run(self) -> None:
        """Check on every backend.

        Raises
        ------
        GradcheckError
            For the first backend on which something is wrong.
        """
        __tracebackhide__ = True
        chosen = self._only or self.backends
        for name in chosen or installed_backends():
            try:
                get_backend(name)
            except BackendError as error:
                if not chosen:
                    error.add_note(
                        f"{self.name} is checked on every backend that is installed; "
                        "backends=[...], or pytest's --wengert-backend=..., names the ones you mean"
                    )
                raise
            with use_backend(name):
                self._backend = name
                module = getattr(self.function, "__module__", "")
                digest = re.sub(r"\W", "_", f"{module}_{self.name}_{name}")
                try:
                    self.explore(digest, SHARE.get(name, 1.0))
                except GradcheckError as error:
                    raise self._whole_error(error, name) from None
                except Exception as error:
                    shorten(error)
                    raise

    def example(self, drawn: tuple[Any, ...]) -> None:
        call, apart = drawn
        fast = self._backend != "numpy" if self.fast_mode is None else self.fast_mode
        # Hypothesis distinguishes failures by the line that raises, and shrinks each separately.
        error = self._check(1, call, apart, {"check_grad_dtypes": self.single, "fast_mode": fast})
        if error is not None:
            raise error
        with use_backend(self._backend):
            tracked = (
                self.order > 1 and Problem(self.function, self._inputs(call, apart)).is_tracked()
            )
        if tracked:
            error = self._check(2, call, apart, {"fast_mode": True})
            if error is not None:
                raise error

    def _hasten(self, error: GradcheckError) -> None:
        """Go on with NumPy after a failure on a slow backend, if it fails in the same way."""
        case: Case = error.case  # type: ignore[attr-defined]
        if self._backend in SHARE and type(self._outcome(case._replace(backend="numpy"))) is type(
            error
        ):
            self._backend = "numpy"

    @staticmethod
    def _inputs(call: tuple[Any, ...], apart: bool) -> tuple[Any, ...]:
        inputs: tuple[Any, ...] = tree_map(as_input, call)
        return strided(inputs) if apart else inputs

    def _check(
        self, order: int, call: tuple[Any, ...], apart: bool, options: dict[str, Any]
    ) -> GradcheckError | None:
        """Check the derivatives of one order, and return the error, if any."""
        given = {**options, **self.tolerances}
        if self.forward is not False:
            given[MODES[order].forward] = True
        case = Case(order, call, apart, given, self._backend)
        try:
            self._carry_out(case)
        except GradcheckError as error:
            error.order = order
            self._hasten(error)
            return error
        except Exception as error:
            self._note(error, case)
            raise
        return None

    def _carry_out(self, case: Case) -> None:
        """Check a case, by forward mode only where there is one."""
        check = gradcheck if case.order == 1 else gradgradcheck
        try:
            with np.errstate(all="ignore"), use_backend(case.backend):
                check(self.function, self._inputs(case.call, case.apart), **case.options)
        except NotImplementedError:
            left = {**case.options}
            asked = left.pop(MODES[case.order].forward, False)
            self.lacks_forward |= asked
            if (
                self.forward is not None
                or not asked
                or not left.get(MODES[case.order].reverse, True)
            ):
                raise
            self._carry_out(case._replace(options=left))
        except GradcheckError as error:
            error.case = case  # type: ignore[attr-defined]
            raise

    def _outcome(self, case: Case) -> Outcome:
        """The outcome of a case or of a neighbour of it."""
        try:
            self._carry_out(case)
        except (KinkError, BadlyScaledError):
            return "unknown"
        except GradcheckError as error:
            return error
        except Exception:  # the function does not take such a neighbour
            return "unknown"
        return "right"

    def _note(self, error: Exception, case: Case) -> None:
        code = block(self._snippet(case))
        error.add_note(f"That was {self.name} on {case.backend}:\n\n{code}")

    def _whole_error(self, error: GradcheckError, on: str) -> GradcheckError:
        """The error with its whole message: where it fails, the verdict, and a snippet."""
        case: Case | None = getattr(error, "case", None)
        if case is None:
            return error
        lines = [f"{self.name}: {error}"]
        found = f", as on {on}" if on != case.backend else ""
        where, how = explain(error, case, self._outcome, self.arguments)
        lines += [f"  looks:     {how}"] if how else []
        lines += [f"  where:     {words}" for words in where]
        lines += [
            f"  verdict:   {error.verdict}",
            f"  order:     {'first' if case.order == 1 else 'second'} derivative",
            f"  backend:   {case.backend}" + found,
            f"  drawn:     {self.drawn}",
        ]
        if self.lacks_forward and self.forward is None:
            forward = MODES[case.order].forward
            options = {name: x for name, x in case.options.items() if name != forward}
            case = case._replace(options=options)
        code = block(self._snippet(case))
        told = type(error)("\n".join(lines) + f"\nTo see it again:\n\n{code}\n")
        told.order, told.found = error.order, error.found
        for note in getattr(error, "__notes__", ()):
            told.add_note(note)
        return told

    def _snippet(self, case: Case) -> list[str]:
        definition, name = function_code(self.function, "f")
        lines = ["import wengert as wg"]
        imports = [line for line in definition if line.startswith("from ")]
        lines += imports
        if case.backend != "numpy":
            lines.append(f"wg.set_backend({case.backend!r})")
        lines += [line for line in definition if line not in imports]
        inputs = self._inputs(case.call, False)
        if len(inputs) == 1:
            lines.append(f"inputs = [{value_code(inputs[0])}]")
        else:
            lines += ["inputs = [", *(f"    {value_code(x)}," for x in inputs), "]"]
        if case.apart:
            lines.append("inputs = wg.testing.strided(inputs)  # each every second element of more")
        given = "".join(f", {key}={value!r}" for key, value in case.options.items())
        check = "gradcheck" if case.order == 1 else "gradgradcheck"
        return [*lines, f"wg.testing.{check}({name}, inputs{given})"]


def as_input(value: Any) -> Any:
    """Return a drawn array as a Tensor on the selected backend; a Tensor is moved there."""
    if isinstance(value, Tensor):
        moved = on_backend(values(value))
        return moved.requires_grad_(value.requires_grad) if moved.dtype.inexact else moved
    if isinstance(value, np.ndarray):
        made = on_backend(value)
        return made.requires_grad_() if made.dtype.inexact else made
    return value


@overload
def check_gradients(
    function: Callable[..., Any], /, *arguments: Any, **options: Unpack[_Options]
) -> None: ...
@overload
def check_gradients(*arguments: Any, **options: Unpack[_Options]) -> _Decorator: ...
def check_gradients(
    *arguments: Any,
    order: int = 2,
    dtypes: Sequence[str] = ("float64",),
    backends: Sequence[str] | None = None,
    kinks: Kinks = "skip",
    forward: bool | None = None,
    single: bool = True,
    fast_mode: bool | None = None,
    eps: float = EPS,
    atol: float = 1e-8,
    rtol: float = 1e-6,
    nondet_tol: float = 0.0,
    examples: int | None = None,
    settings: Any = None,
    min_side: int = 0,
    max_side: int = 3,
    max_dims: int = 3,
) -> Any:
    r"""Make a property-based test of a function's derivatives.

    Hypothesis draws arguments, and on each backend `gradcheck` and `gradgradcheck` compare first
    and second derivatives by reverse and forward mode with differences, and check that inputs
    are not changed, that gradients share no memory, have the inputs' shapes and dtypes, and are
    linear in what flows, and that single precision stays single. A failure is shrunk, and
    the message ends with code that shows it again.

    ::

        @wg.testing.check_gradients(("n", "m"), ("m", "k"))
        def test_product(x, y):
            return wg.tanh(x @ y)

        test_huber = wg.testing.check_gradients(Argument(away_from=[-1, 1]))(huber)

        wg.testing.check_gradients(wg.logaddexp, ..., ...)  # at once

    Parameters
    ----------
    *arguments
        For each argument of the function one of

        - a shape, such as ``(2, 3)`` or ``("n", ..., )``; see `Argument`;
        - ``...``: any shape that broadcasts with the others';
        - an `Argument`: shape, dtype, domain, kinks, special values;
        - an `Axis` of another argument;
        - a Hypothesis strategy. Floating and complex NumPy arrays in what it draws, in containers
          too, become Tensors that require grad, other arrays Tensors;
        - any other value, which is passed on.

        Without any, the function's required arguments are arrays that broadcast. Where the first
        is a function, it is checked at once.
    order : {2, 1}
        How many times to differentiate.
    dtypes : sequence of str
        Of the arrays: ``("float64", "complex128")`` for both. Differences need double precision.
    backends : sequence of str, optional
        On which to run; all that are installed by default.
    kinks : {"skip", "fail"}
        What to do with examples at which the function is not differentiable: leave them out, or
        fail. A gradient at a kink is wrong in any case if it is no mean of derivatives close by.
    forward : bool, optional
        Whether to check forward mode. By default where the function has one.
    single : bool
        Whether to check that results and rules keep to single precision when the inputs do.
    fast_mode : bool, optional
        Whether to check first derivatives along random directions, as `gradcheck` does. By
        default whole Jacobians are compared on NumPy, and random directions elsewhere: rules are
        the same on every backend. Second derivatives are always checked along random directions.
    eps, atol, rtol, nondet_tol : float
        As for `gradcheck`; at other than usual magnitudes ``atol`` is absolute.
    examples : int, optional
        How many calls to draw on each backend; as ``settings`` say by default. JAX and dask, which
        compile or schedule anew for each shape, get a tenth of them, and failures there are shrunk
        on NumPy if they occur there too. A fifth of the calls has other magnitudes, from 1e-6 to
        1e10 within the arguments' domains; one that differences cannot judge there is left out.
    settings : hypothesis.settings, optional
        The loaded profile by default. There is no deadline.
    min_side, max_side, max_dims : int
        Least and greatest length of an axis, and greatest number of axes, where none is given. Give
        ``min_side=1`` for a function that is not for empty arrays.

    Returns
    -------
    callable
        A decorator. What it makes of the function is a test without parameters, for pytest or to
        be called, with the function as its attribute ``function``.

    Raises
    ------
    GradcheckError
        When the test runs and a derivative is wrong: of the subclass that says the verdict.
    TypeError, ValueError
        If arguments cannot be understood.

    Examples
    --------
    >>> wg.testing.check_gradients(wg.logaddexp, ..., ..., examples=5, backends=["numpy"])
    >>> @wg.testing.check_gradients(("n", "m"), ("m", "k"), examples=5, backends=["numpy"])
    ... def test_product(x, y):
    ...     return wg.tanh(x @ y)
    >>> test_product()  # pytest finds it, too
    """
    options = locals()
    del options["arguments"]
    if arguments and callable(arguments[0]) and not isinstance(arguments[0], st.SearchStrategy):
        __tracebackhide__ = True
        GradientTest(arguments[0], arguments[1:], **options).run()
        return None

    def decorate(function: Callable[..., Any]) -> Callable[[], None]:
        return _as_test(GradientTest(function, arguments, **options))

    return decorate


def _as_test(check: GradientTest) -> Callable[[], None]:
    """A test without parameters, which pytest collects at the place of the checked function."""
    # It is passed the instance where it is a method. It stands on one line, because tracebacks
    # show the function's first line in its place.
    test = lambda *_: check.run()
    update_wrapper(test, check.function)
    code = getattr(check.function, "__code__", None)
    if code is not None:
        test.__code__ = test.__code__.replace(
            co_filename=code.co_filename, co_firstlineno=code.co_firstlineno, co_name=code.co_name
        )
    del test.__wrapped__  # type: ignore[attr-defined]
    test.__annotations__ = {}
    vars(test).update(function=check.function, wengert_check=check)
    return test
