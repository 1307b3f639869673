"""Random numbers.

`manual_seed` seeds two kinds of drawing. Numbers that start a model (`randn`, `rand`, …) come from
one generator in host memory, so that a model starts from the same numbers on every backend. Numbers
drawn during training (`rand_like`, `bernoulli`, dropout) come from a generator of the device.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from wengert.backends import DTYPES, DType, as_dtype, backend_of, dtype_of, generators, namespaces
from wengert.backends.generators import get_rng_state, host, lock, set_rng_state
from wengert.interpreters.namespaces import differentiable
from wengert.ops import elementwise
from wengert.ops.axes import operand
from wengert.ops.conversion import asarray
from wengert.ops.creation import as_lengths, leaf, new_device, whole
from wengert.ops.data_type import astype, get_default_dtype, result_type
from wengert.ops.define import operation
from wengert.ops.hints import list_public
from wengert.tape.node import is_lifted
from wengert.tape.tensor import Tensor, untracked, wrap

__all__ = [
    "bernoulli",
    "get_rng_state",
    "manual_seed",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randperm",
    "set_rng_state",
    "uniform",
]

list_public(__name__, "wengert.random")


def manual_seed(seed: int) -> None:
    """Start all random numbers again, on the host and every device, from a seed of 0 or more.

    Examples
    --------
    >>> wg.random.manual_seed(0)
    >>> first = wg.random.rand(3)
    >>> wg.random.manual_seed(0)
    >>> wg.all(wg.random.rand(3) == first)
    tensor(True)
    """
    seed = seed.__index__()
    if seed < 0:
        raise ValueError(f"a seed can't be negative, and is {seed}")
    if (known := generators.follower.get()) is not None:
        known.refuse_seed()
    with lock:
        host().bit_generator.state = np.random.PCG64(seed).state
        generators.reseed(seed)


class Map(NamedTuple):
    """A map that runs: its level, its number of members, and whether their draws differ."""

    level: int
    size: int
    randomness: str


#: The maps whose functions run now in this thread or task, outermost first.
maps: ContextVar[tuple[Map, ...]] = ContextVar("wengert_maps", default=())


@contextmanager
def drawing_in(inside: tuple[Map, ...]) -> Iterator[None]:
    """Let draws belong to these maps in the ``with`` block."""
    token = maps.set(inside)
    try:
        yield
    finally:
        maps.reset(token)


def _drawing() -> tuple[Map, ...]:
    """The maps inside which random numbers are drawn; raise if one of them allows none."""
    found = maps.get()
    if any(each.randomness == "error" for each in found):
        raise RuntimeError(
            'random numbers are drawn inside vmap: say randomness="different" for draws of their '
            'own for each member, or randomness="same" for the same ones'
        )
    return found


def _drawn_in_maps(draw: Callable[..., Any], array: Any, inside: Sequence[Map]) -> Any:
    """``draw(array)``, which uses the array's shape alone, for each member of maps."""
    array = array.as_constant() if is_lifted(array) else array
    if not inside:
        return draw(array)
    batched = import_module("wengert.interpreters.batched")  # only maps need it
    *outer, (level, size, randomness) = inside
    if randomness == "different":
        members = batched.members(array, level, size)
        return batched.Batched(_drawn_in_maps(draw, members, outer), level)
    if isinstance(array, batched.Batched) and array.level == level:
        array = namespaces[type(array.inner)].getitem(array.inner, key=(0, ...))
    return _drawn_in_maps(draw, array, outer)


def _on_host(draw: Callable[..., Any], *arguments: Any) -> np.ndarray[Any, Any]:
    """Numbers of a function of `wengert.backends.generators`, in host memory."""
    with lock:
        return draw(host(), *arguments)  # type: ignore[no-any-return]


def _place(
    draw: Callable[..., Any], arguments: tuple[Any, ...], dtype: DType, device: Any, tracked: bool
) -> Tensor:
    """Numbers of a function of `wengert.backends.generators`, as a Tensor."""
    backend, where = new_device(device)
    inside = maps.get() and [each for each in _drawing() if each.randomness == "different"]
    how = (_of_members, draw, tuple([each.size for each in inside])) if inside else (draw,)
    array = backend.draw(_on_host, (*how, *arguments), where)
    if array.dtype != (raw := backend.raw_dtype(dtype)):
        array = backend.namespace.astype(array, raw)
    for each in inside:
        array = import_module("wengert.interpreters.batched").Batched(array, each.level)
    return leaf(array, tracked)


def _draw_standard(
    draw: Callable[..., Any], function: str, size: Any, dtype: Any, device: Any, tracked: bool
) -> Tensor:
    """Standard uniform or normal numbers."""
    wanted = get_default_dtype() if dtype is None else as_dtype(dtype)
    if not wanted.inexact:
        raise TypeError(f"random numbers of a floating or complex dtype, and not {wanted.name}")
    return _place(draw, (as_lengths(size, function), wanted.name), wanted, device, tracked)


def _of_members(
    host: Any, draw: Callable[..., Any], counts: tuple[int, ...], *arguments: Any
) -> np.ndarray[Any, Any]:
    """Draws for each member of maps, along their axes."""
    each = [draw(host, *arguments) for _ in range(math.prod(counts))]
    like = each[0] if each else draw(host, *arguments)
    return np.asarray(each, like.dtype).reshape((*counts, *like.shape))


def rand(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return uniform random numbers of the half-open interval [0, 1).

    PyTorch: ``torch.rand``.

    Examples
    --------
    >>> x = wg.random.rand(2, 3)
    >>> x.shape, bool(wg.all((x >= 0) & (x < 1)))
    ((2, 3), True)
    """
    return _draw_standard(generators.uniform, "rand", size, dtype, device, requires_grad)


def randn(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return standard normal random numbers: of mean 0 and variance 1.

    The real and the imaginary part of complex ones have variance 1/2 each.
    PyTorch: ``torch.randn``.

    Examples
    --------
    >>> wg.random.randn(2, 3).shape
    (2, 3)
    """
    return _draw_standard(generators.normal, "randn", size, dtype, device, requires_grad)


def _draw(
    draw: Callable[..., Any],
    function: str,
    given: dict[str, Any],
    size: Any,
    dtype: Any,
    device: Any,
) -> tuple[Tensor, list[Any]]:
    """Standard random numbers, and the parameters of the distribution as operands beside them.

    Parameters that are arrays give shape, dtype and device: each element is drawn.
    """
    for name, value in given.items():
        if hasattr(value, "shape") and not isinstance(value, Tensor | np.generic):
            given[name] = asarray(value)
    arrays = [value for value in given.values() if isinstance(value, Tensor)]
    shape = np.broadcast_shapes(*[tuple(a.shape) for a in arrays]) if size is None else size
    if arrays and dtype is None:
        own = result_type(*arrays)
        dtype = own if own.inexact else None
    if arrays and device is None:
        device = differentiable.device(arrays[0])
    drawn = _draw_standard(draw, function, (shape,), dtype, device, False)
    return drawn, [operand(value, drawn, function, name) for name, value in given.items()]


def uniform(
    low: Any = 0.0,
    high: Any = 1.0,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return uniform random numbers of the half-open interval [``low``, ``high``).

    Tensors ``low`` and ``high`` broadcast together, and give the shape and the dtype where ``size``
    and ``dtype`` do not. The result is differentiable in them: it is :math:`a + (b - a) u` with a
    uniform :math:`u` of [0, 1). NumPy: ``numpy.random.uniform``.

    Examples
    --------
    >>> x = wg.random.uniform(-1.0, 1.0, (100,))
    >>> bool(wg.all((x >= -1) & (x < 1)))
    True
    """
    drawn, (low, high) = _draw(
        generators.uniform, "uniform", {"low": low, "high": high}, size, dtype, device
    )
    if drawn.dtype.complex:
        raise TypeError(f"uniform needs a real dtype, and not {drawn.dtype.name}")
    values = elementwise.add(elementwise.multiply(drawn, high - low), low)
    return values if values.requires_grad else values.requires_grad_(requires_grad)


def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    r"""Return normal random numbers of a mean and a standard deviation.

    Tensors ``mean`` and ``std`` broadcast together, and give the shape and the dtype where ``size``
    and ``dtype`` do not. The result is differentiable in them: it is :math:`\mu + \sigma \epsilon`
    with the :math:`\epsilon` of `randn`. PyTorch: ``torch.normal``.

    Examples
    --------
    >>> wg.random.normal(0.0, 1.0, (2, 3)).shape
    (2, 3)
    >>> wg.grad(lambda mean: wg.random.normal(mean, 1.0, (4,)).sum())(0.0)  # each is shifted
    4.0
    """
    if not hasattr(std, "shape") and std < 0:
        raise ValueError(f"normal: std can't be negative, and is {std}")
    drawn, (mean, std) = _draw(
        generators.normal, "normal", {"mean": mean, "std": std}, size, dtype, device
    )
    values = elementwise.add(elementwise.multiply(drawn, std), mean)
    return values if values.requires_grad else values.requires_grad_(requires_grad)


def randint(
    low: int, high: Any = None, size: Any = (), *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Return random integers of the half-open interval [``low``, ``high``).

    As in PyTorch, ``randint(10, (3,))`` is ``randint(0, 10, (3,))``. PyTorch: ``torch.randint``.

    Examples
    --------
    >>> x = wg.random.randint(0, 6, (100,))
    >>> bool(wg.all((x >= 0) & (x < 6)))
    True
    """
    if isinstance(high, tuple | list):
        high, size = None, high
    if high is None:
        low, high = 0, low
    low, high = (whole(n, "randint", name) for n, name in ((low, "low"), (high, "high")))
    if high <= low:
        raise ValueError(f"randint: there is no integer in [{low}, {high})")
    wanted = DTYPES["int64"] if dtype is None else as_dtype(dtype)
    return _place(
        generators.integers, (low, high, as_lengths((size,), "randint")), wanted, device, False
    )


def randperm(n: int, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return the integers of [0, ``n``) in random order.

    PyTorch: ``torch.randperm``.

    Examples
    --------
    >>> wg.sort(wg.random.randperm(5))
    tensor([0, 1, 2, 3, 4])
    """
    n = whole(n, "randperm", "n")
    if n < 0:
        raise ValueError(f"randperm: n can't be negative, and is {n}")
    wanted = DTYPES["int64"] if dtype is None else as_dtype(dtype)
    return _place(generators.permutation, (n,), wanted, device, False)


# -- on the device -------------------------------------------------------------------------------


def _draw_like(xp: Any, x: Any, dtype: Any) -> Any:
    """Draw on the host and move, for a backend without a kernel of its own."""
    backend = xp.backend
    device = backend.device(x)
    stream = generators.stream(backend.name, device, generators.HostStream)
    wanted = dtype_of(dtype)
    made = backend.from_numpy(
        generators.uniform(stream.generator, tuple(x.shape), wanted.name), device
    )
    return made if made.dtype == dtype else xp.astype(made, dtype)


@operation(elementwise=True, composite=_draw_like, effect="draws")
def rand_like(x: Any, /, *, dtype: Any = None) -> Tensor:
    """Return uniform random numbers of [0, 1), drawn where ``x`` is and in its shape.

    The numbers come from a generator of the device, and so differ between backends; `rand` gives
    the same ones everywhere. The dtype is by default that of ``x`` or of its real part, if it is
    floating. PyTorch: ``torch.rand_like``.

    Examples
    --------
    >>> wg.random.rand_like(wg.ones((2, 3), dtype=wg.float64)).dtype
    wengert.float64
    """
    array = x._array if isinstance(x, Tensor) else x
    own = dtype_of(array.dtype)
    wanted = own if own.inexact else get_default_dtype()
    wanted = DTYPES[f"float{4 * wanted.itemsize}"] if wanted.complex else wanted
    if dtype is not None:
        wanted = as_dtype(dtype)
        if wanted.kind != "real floating":
            raise TypeError(f"rand_like needs a real floating dtype, and not {wanted.name}")
    raw = backend_of(array).raw_dtype(wanted)
    if not (inside := maps.get() and _drawing()):
        return rand_like.run(x, dtype=raw)

    def draw(array: Any) -> Any:
        return rand_like.run(untracked(array), dtype=raw)._array

    return untracked(_drawn_in_maps(draw, array, inside))


def bernoulli(p: Any, /) -> Tensor:
    """Return ones with the probabilities ``p`` and zeros otherwise, drawn where ``p`` is.

    The result does not depend on ``p`` differentiably. PyTorch: ``torch.bernoulli``.

    Examples
    --------
    >>> wg.random.bernoulli(wg.asarray([0.0, 1.0]))
    tensor([0., 1.])
    """
    probabilities = wrap(p)
    return astype(elementwise.less(rand_like(probabilities), probabilities), probabilities.dtype)
