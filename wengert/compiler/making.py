"""The decorator `compile`."""

import os
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypedDict, TypeVar, Unpack, overload

from wengert.compiler.compiled import Compiled, Options

__all__ = ["compile"]

#: The environment variable for the default of ``check``.
CHECK = "WENGERT_COMPILE_CHECK"

P = ParamSpec("P")
R = TypeVar("R")


class Given(TypedDict, total=False):
    """The options of `compile`."""

    static_argnames: str | Sequence[str]
    cache_size: int
    torch_compile: bool | str
    state: Any
    strict: bool
    check: int | None


@overload
def compile(function: Callable[P, R], **options: Unpack[Given]) -> Compiled[P, R]: ...
@overload
def compile(
    function: None = None, **options: Unpack[Given]
) -> Callable[[Callable[P, R]], Compiled[P, R]]: ...
def compile(
    function: Callable[..., Any] | None = None,
    *,
    static_argnames: str | Sequence[str] = (),
    cache_size: int = 8,
    torch_compile: bool | str = False,
    state: Any = None,
    strict: bool = True,
    check: int | None = None,
) -> Any:
    """Record a function once for each signature, and replay it as straight-line array code.

    The first call runs the function and records every call of the array library: the forward pass,
    the sweep of `backward`, an optimiser's update. Later calls with the same signature run the
    recorded program without any of the function's Python code.

    Tensors, arrays and floats among the arguments are inputs; ints, bools and text belong to the
    signature, as shapes and dtypes do. What the function and those that it names lead to is state:
    its Tensors, and the numbers of optimisers and schedules, are inputs and outputs, and plain
    values are compared in each call.

    Parameters
    ----------
    function : callable
        Of trees (see `wengert.func.tree_flatten`) of Tensors, raw arrays, numbers and static
        values: a `Module`, a method, a transform too. Without it, a decorator is returned.
    static_argnames : str or sequence of str
        Arguments whose floats belong to the signature.
    cache_size : int
        How many programs are kept. The least recently used one is dropped, with a warning that
        says why another was recorded.
    torch_compile : bool or str
        Whether programs of PyTorch's are given to ``torch.compile``, or to which of its backends.
        It makes machine code, which takes seconds to minutes and a C++ compiler, and may round
        otherwise. Where it fails the program runs by plain calls, and ``report`` says so.
    state : object
        Further state, which no name in the code leads to.
    strict : bool
        Whether a call that can't be recorded is an error. Otherwise it runs as it is, as do later
        calls like it, with one warning.
    check : int, optional
        A program is checked every ``check`` calls; 0 for never. By default only its first run
        is checked, or as the environment variable ``WENGERT_COMPILE_CHECK`` says.

    Returns
    -------
    Compiled
        A callable with ``source``, ``save`` and ``report``.

    Raises
    ------
    TypeError
        If ``function`` is not callable.
    CompileError
        In a call, if the function does what a replay could not repeat: it branches on values of a
        Tensor, reads them, or changes a Python value. The error names the line or the place, and
        what to do. In a call that is checked, if the program's results or its changes of state
        differ from the function's, whose own results and changes stay.

    Examples
    --------
    >>> @wg.compile
    ... def step(x, y):
    ...     optimizer.zero_grad()
    ...     loss = criterion(model(x), y)
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss
    """
    names = frozenset([static_argnames] if isinstance(static_argnames, str) else static_argnames)
    if cache_size < 1:
        raise ValueError(f"cache_size is at least 1, not {cache_size}")
    if check is None and (given := os.environ.get(CHECK)):
        check = int(given)
    if check is not None and check < 0:
        raise ValueError(f"check is how often calls are checked, 0 for never, and not {check}")
    options = Options(names, state, cache_size, torch_compile, strict, check)
    if function is None:
        return lambda f: Compiled(_callable(f), options)
    return Compiled(_callable(function), options)


def _callable(function: Any) -> Any:
    if not callable(function):
        raise TypeError(f"wg.compile takes a function, not {type(function).__name__}")
    return function
