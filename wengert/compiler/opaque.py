"""Calls of functions that compiled functions do not look into."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert import ops
from wengert.compiler import messages
from wengert.compiler.capture.errors import TraceError
from wengert.compiler.capture.traced import current
from wengert.tape.function import Function
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor

__all__ = ["external"]


class external:
    r"""A function of arrays that runs as it is, also in compiled functions.

    Decorate a function that `compile` can't record, since it reads files, asks a simulator or
    depends on values, and give its derivative by `defvjp`.

    In a compiled function it is one line of the program, and runs once in each call, with the
    values of that call, in the order of the program. When the function runs again in the same call,
    as in a check, it gets the first result, if it gives the same arguments. Neither the external
    function nor what it reads is compared. What it does besides is not undone if a call fails,
    unless it changes state of the compiled function, such as a model: that it must not. Its
    results' shapes and dtypes have to be those of the call that was recorded; otherwise the call
    runs eagerly. It has no derivative in forward mode.

    Parameters
    ----------
    function : callable
        It takes raw arrays of its own, one for each argument, and returns an array or a tuple of
        them, of the same library or of NumPy. It gets copies, and its results are copied.

    Raises
    ------
    TypeError
        If ``function`` is not callable; in a call, if it returns something else than arrays.

    Notes
    -----
    JAX: ``jax.experimental.io_callback``, with ``jax.custom_vjp``.

    Examples
    --------
    >>> @wg.compiler.external
    ... def simulated(x):
    ...     return x**2  # NumPy's arrays, or another library's
    >>> @simulated.defvjp
    ... def rule(g, x):
    ...     return (g * 2 * x,)  # one gradient for each argument
    >>> wg.grad(simulated)(3.0)
    6.0
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise TypeError(f"external takes a function, not {type(function).__name__}")
        functools.update_wrapper(self, function, updated=())
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self._function = function
        self._vjp: Callable[..., Any] | None = None
        self.several: bool | None = None  # whether it returns a tuple, once it is known
        messages.external = True

    def __reduce__(self) -> str:
        # Copied and pickled as functions are: by name.
        return str(getattr(self, "__qualname__", self.__name__))

    def __repr__(self) -> str:
        return f"<external {self.__name__}>"

    def defvjp(self, vjp: Callable[..., Any]) -> Callable[..., Any]:
        r"""Give the derivative.

        Parameters
        ----------
        vjp : callable
            ``vjp(g, *arguments)`` takes the result's cotangent, or a tuple of those of several
            results, and the arguments, all Tensors. It returns a tuple with one gradient for each
            argument, or None: :math:`\bar x = J^H \bar y`. Wengert's functions in it are recorded,
            so that it can be differentiated again; let it call another external function for what
            they can't compute.

        Returns
        -------
        callable
            ``vjp`` itself.
        """
        self._vjp = vjp
        return vjp

    def __call__(self, *arguments: Any) -> Any:
        """Call the function on Tensors or arrays, at least one; return Tensors."""
        if not arguments:
            raise TypeError(f"{self.__name__} needs at least one Tensor or array")
        given = [x if isinstance(x, Tensor) else ops.asarray(x) for x in arguments]
        return External.apply(Call(self), *given)


class External(Function):
    """What is on the tape of one call."""

    @staticmethod
    def forward(ctx: Any, call: "Call", *given: Tensor) -> Any:
        ctx.call = call
        ctx.save_for_backward(*given)
        results = _opaque(*given, call=call)
        return results if call.owner.several else results[0]

    @staticmethod
    def backward(ctx: Any, *g: Any) -> Any:
        call: Call = ctx.call
        vjp = call.owner._vjp
        if vjp is None:
            raise NotImplementedError(
                f"{call.owner.__name__} has no derivative: give it one by "
                f"{call.owner.__name__}.defvjp(vjp)"
            )
        answer = vjp(g if call.owner.several else g[0], *ctx.saved_tensors)
        if not isinstance(answer, tuple | list):
            raise TypeError(
                f"the vjp of {call.owner.__name__} should return a tuple, with one gradient for "
                f"each argument, and returned {type(answer).__name__}"
            )
        return None, *answer

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        name = ctx.call.owner.__name__
        raise NotImplementedError(
            f"{name} is an external function, which has no derivative in forward mode, as jvp and "
            f"jacfwd need it: use grad, vjp or jacrev, which take that of {name}.defvjp"
        )


class Call:
    """One call of an external function in a program, or outside."""

    def __init__(self, owner: external) -> None:
        self.owner = owner
        self._made: list[tuple[Any, Any]] | None = None  # shapes and dtypes of the results

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Call) and other.owner is self.owner

    def __hash__(self) -> int:
        return hash(self.owner)

    def __repr__(self) -> str:
        return self.owner.__name__

    def run(self, xp: Any, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Call the function on copies, and return copies of its results."""
        name, backend = self.owner.__name__, xp.backend
        given, trace = [xp.asarray(x, copy=True) for x in arrays], current()
        with messages.unfollowed():
            call = self.owner._function
            answer = call(*given) if trace is None else trace.outside(call, *given)
        several = isinstance(answer, tuple | list)
        if several is not (several if self.owner.several is None else self.owner.several):
            what = ("an array", "a tuple")
            raise TypeError(f"{name} returned {what[several]}, and {what[not several]} before")
        self.owner.several = several
        results = []
        for x in answer if several else (answer,):
            if isinstance(x, np.ndarray | np.generic) and backend.name != "numpy":
                x = backend.from_numpy(np.asarray(x), backend.device(arrays[0]))
            if not (hasattr(x, "dtype") and hasattr(x, "shape")) or isinstance(x, Tensor):
                raise TypeError(
                    f"{name} should return arrays, of {backend.name} or NumPy, and returned "
                    f"{type(x).__name__}"
                )
            results.append(xp.asarray(x, copy=True))
        return tuple(results)

    def check(self, results: Sequence[Any]) -> None:
        """Raise if the results' shapes or dtypes are not those of the call that was recorded."""
        made = [(tuple(x.shape), x.dtype) for x in results]
        self._made = self._made or made
        if made != self._made:
            raise TraceError(
                f"{self.owner.__name__} returned arrays of {made}, and of {self._made} when it was "
                "recorded"
            )


def _composite(xp: Any, *arrays: Any, call: Call) -> tuple[Any, ...]:
    def run() -> tuple[Any, ...]:
        return call.run(xp, arrays)

    # Apart it runs, too: nothing else tells its results' shapes.
    found: tuple[Any, ...] = messages.once((xp, "external", arrays, {"call": call}), run, run)
    call.check(found)  # when the results are noted: the function does not run again
    return found


_opaque = Primitive(
    "external",
    ["*xs"],
    composite=_composite,
    several=True,
    effect="calls",
).bind
