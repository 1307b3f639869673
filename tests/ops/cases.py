"""What a row of the table says about a primitive, and how a call of it is drawn and made."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any
from zlib import crc32

import numpy as np
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import wengert as wg
from backend_check.calls import FUNCTIONS
from tests.ops.parameters import row_of
from wengert.backends import selection
from wengert.ops import special
from wengert.tape.primitive import PRIMITIVES
from wengert.testing import strategies as ws
from wengert.testing.problem import values

# Special functions are declared when they are first asked for.
for _name in special.__all__:
    getattr(special, _name)
#: The public functions that the primitives were made of.
PUBLIC = {
    function.__name__: function for function in FUNCTIONS.values() if row_of(function) is not None
}
#: Examples that a test takes for each of the default profile's.
SCALE = settings().max_examples / 20
DTYPES = {"real": "float64", "complex": "complex128"}
BOX = ws.reals(-2, 2)


def examples(count: float) -> int:
    """How many of a test's examples the profile takes."""
    return max(1, round(count * SCALE))


def check_examples(
    count: float, check: Callable[..., None], *strategies: st.SearchStrategy[Any]
) -> None:
    """Run a check on the profile's share of so many examples, which differ by test."""
    test = settings(max_examples=examples(count))(given(*strategies)(check))
    if settings.get_current_profile_name() != "wide":
        test = seed(crc32(os.environ["PYTEST_CURRENT_TEST"].encode()))(test)
    test()


class Constant(np.ndarray):
    """An array that is not differentiated, though it is floating."""


def is_variable(array: np.ndarray) -> bool:
    """Whether a call's array can be differentiated."""
    return array.dtype.kind in "fc" and not isinstance(array, Constant)


class Case:
    """The arguments of one call: NumPy arrays where the call takes Tensors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def __repr__(self) -> str:
        given = [*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwargs.items())]
        return f"Case({', '.join(given)})"

    def inexact(self) -> list[np.ndarray]:
        """The floating and complex arrays that are differentiated."""
        found: list[np.ndarray] = []
        self._walk(lambda a: found.append(a) if is_variable(a) else None)
        return found

    def with_arrays(self, convert: Callable[[np.ndarray], Any]) -> "Case":
        """The same call with every array converted."""
        return self._walk(convert)

    def single(self, half: bool = False) -> "Case":
        """The same call in single (or half) precision."""
        small = {"f": "float16" if half else "float32", "c": "complex64"}
        return self._walk(lambda a: a.astype(small[a.dtype.kind]) if a.dtype.kind in "fc" else a)

    def with_tensors(self, convert: Callable[[Any], Any]) -> "Case":
        """The same call with every Tensor converted."""
        return self._walk(convert, wg.Tensor)

    def _walk(self, convert: Callable[[Any], Any], what: type = np.ndarray) -> "Case":
        def go(value: Any) -> Any:
            if isinstance(value, what):
                return convert(value)
            if isinstance(value, list | tuple):
                made = [go(v) for v in value]
                return made if isinstance(value, list) else tuple(made)
            return value

        return Case(*map(go, self.args), **{k: go(v) for k, v in self.kwargs.items()})


@dataclass(frozen=True)
class Entry:
    """One row of the table: a primitive, where it is defined, and what else gives its values.

    Attributes
    ----------
    real, complex : strategy of Case, or None
        Calls at points where the derivative exists.
    call : callable, optional
        What users call; ``wg.<name>`` by default, or the primitive where that is not public.
    reference : callable, optional
        The same function of NumPy arrays, from elsewhere; by default that of NumPy or SciPy.
    torch, jax : callable, False or None
        The oracles' functions of their own arrays. By default that of the standard's name, where
        they have it, or of the dotted name given; False where they have none.
    differs : dict
        Where an oracle is wrong or lacks the function, as ``"torch-complex"``: the reason.
    tracked : bool
        Whether results are on the tape.
    order : int
        How many times the primitive can be differentiated.
    small, half : bool
        Whether single and half precision are asked of it.
    not_on : dict
        Backends on which the primitive can't run, each with the reason.
    rtol : float
        Of values against the reference; why it is above the default is said in the table.
    """

    real: Any = None
    complex: Any = None
    call: Callable[..., Any] | None = None
    reference: Callable[..., Any] | None = None
    torch: Any = None
    jax: Any = None
    tracked: bool = True
    order: int = 3
    small: bool = True
    half: bool = True
    not_on: dict[str, str] = field(default_factory=dict)
    differs: dict[str, str] = field(default_factory=dict)
    rtol: float = 1e-12

    def kinds(self) -> list[str]:
        """For which of "real" and "complex" the row has calls."""
        return [kind for kind in ("real", "complex") if getattr(self, kind) is not None]


def named(name: str, *homes: Any) -> Any:
    """What has a dotted name in the first module that has it; None if none has."""
    for home in homes:
        with suppress(AttributeError):
            return attrgetter(name)(home)
    return None


def function(name: str, entry: Entry) -> Callable[..., Any]:
    """What users call."""
    return entry.call or PUBLIC.get(name) or named(name, wg) or PRIMITIVES[name].bind


def tensor(array: np.ndarray, requires_grad: bool = False) -> Any:
    """A Tensor of the selected backend with the values of a NumPy array."""
    backend, device, _ = selection()
    raw = backend.from_numpy(np.array(array, copy=True), device)
    return wg.Tensor(raw, requires_grad=requires_grad)


def leaves(case: Case) -> list[Any]:
    """A Tensor that requires grad for each floating or complex array of a call."""
    return [tensor(array, True) for array in case.inexact()]


def apply(call: Callable[..., Any], case: Case, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Make a call, with ``inputs`` for its floating and complex arrays, and collect its Tensors."""
    rest = iter(inputs)
    made = case.with_arrays(lambda a: next(rest) if is_variable(a) else tensor(a))
    out = call(*made.args, **made.kwargs)
    return (out,) if isinstance(out, wg.Tensor) else tuple(out)


def inexact_results(results: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(r for r in results if r.dtype.inexact)


def gradient(result: Any, x: Any) -> np.ndarray:
    """The values of the gradient of a result's sum."""
    (found,) = wg.autograd.grad(result, x, wg.ones_like(result))
    assert found.dtype == x.dtype
    return values(found)


def orders(results: Sequence[Any], inputs: Sequence[Any], count: int) -> Iterator[Any]:
    """Of each order up to ``count``: what is differentiated, its cotangents, and the gradients."""
    for order in range(count):
        results = [r for r in results if r._node is not None]
        if not results:
            return
        seeds = [wg.full_like(r, 0.75 - 0.125 * order) for r in results]
        gradients = wg.autograd.grad(
            results, inputs, seeds, create_graph=True, materialize_grads=True
        )
        yield results, seeds, gradients
        results = gradients


# -- strategies of calls -------------------------------------------------------------------------


def elements(kind: str, domain: Any) -> Any:
    """Elements from a strategy of reals; in the complex case from their square in the plane."""
    return domain if kind == "real" or domain is None else ws.complexes(domain)


def drawn(draw: Any, kind: str, shape: Any, domain: Any = BOX) -> np.ndarray:
    return draw(ws.arrays(DTYPES[kind], shape, elements=elements(kind, domain)))


def both(strategy: Callable[[str], Any], **more: Any) -> Any:
    """A row whose calls differ in nothing but the dtype."""
    return Entry(real=strategy("real"), complex=strategy("complex"), **more)


def unary(domain: Any = BOX, kind: str = "real", **fixed: Any) -> Any:
    """Calls of a function of one array."""
    dtype = DTYPES[kind]
    return ws.arrays(dtype, elements=domain).map(lambda x: Case(x, **fixed))


@st.composite
def binary(
    draw: Any, first: Any = BOX, second: Any = None, kind: str = "real", scalars: bool = True
) -> Case:
    """Calls of a function of two arrays that broadcast, or of an array and a Python number."""
    domains = [first, first if second is None else second]
    if kind == "real":
        kinds = ["real", "real"]
    else:
        kinds = draw(st.sampled_from([["complex"] * 2, ["complex", "real"], ["real", "complex"]]))
    shapes = draw(ws.broadcastable(2))
    operands = [
        draw(ws.arrays(DTYPES[k], shape, elements=elements(k, domain)))
        for k, shape, domain in zip(kinds, shapes, domains, strict=True)
    ]
    if scalars and draw(st.integers(0, 5)) == 5:
        at = draw(st.integers(0, 1)) if kind == "real" else int(kinds[0] == "complex")
        operands[at] = draw(elements(kinds[at], domains[at]))
    return Case(*operands)


@st.composite
def reduction(
    draw: Any,
    domain: Any = BOX,
    kind: str = "real",
    *,
    unique: bool = False,
    min_side: int = 0,
    none: bool = True,
    many: bool = True,
    **choices: Any,
) -> Case:
    """Calls of a function that reduces axes, with each further keyword from its strategy."""
    x = draw(
        ws.arrays(
            DTYPES[kind],
            ws.shapes(min_side=min_side, min_dims=0 if many else 1),
            elements=elements(kind, domain),
            unique=unique,
        )
    )
    kwargs: dict[str, Any] = {}
    if draw(st.booleans()) or not none:
        kwargs["axis"] = draw(ws.axes(x.ndim, none=none) if many else ws.axis(x.ndim))
    if draw(st.booleans()):
        kwargs["keepdims"] = draw(st.booleans())
    for name, choice in choices.items():
        if draw(st.booleans()):
            kwargs[name] = draw(choice)
    return Case(x, **kwargs)
