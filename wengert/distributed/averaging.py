"""Means over the processes: of gradients, at once or in buckets, and of what is reported."""

import json
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

import numpy as np

from wengert import ops
from wengert.backends import backend_of, get_backend
from wengert.compiler import messages
from wengert.distributed.carriers import Connected, Line
from wengert.distributed.collectives import all_reduce
from wengert.interpreters.namespaces import device
from wengert.nn.module import Module
from wengert.nn.parameter import listed
from wengert.ops.shares import wide
from wengert.tape.grad_mode import no_grad
from wengert.tape.tensor import Tensor

__all__ = ["average", "mean", "overlap"]

#: Bytes of gradients that are sent together while the backward pass goes on.
BUCKET: Final = 1 << 20


@no_grad()
def average(model: Module | Iterable[Tensor], weight: Any = 1) -> None:
    r"""Replace gradients by their weighted mean over the processes.

    With gradients :math:`g_r` and weights :math:`w_r` it is :math:`\sum_r w_r g_r / \sum_r w_r`.
    Where losses are means over the rows of a process and weights count these rows, it is the
    gradient of the mean over all rows, also if batches are uneven. All gradients and the weight
    travel together, in one `all_reduce` for each dtype, unless `replicate` was asked for
    ``overlap`` and most have been sent before.

    Parameters
    ----------
    model : Module or iterable of Tensor
        Whose gradients are replaced, of all that require grad.
    weight : number or Tensor
        Of this process, 0 or more: ``len(x)``, say. With weight 0 gradients count as zero, whatever
        they are, and may be None.

    Raises
    ------
    TypeError
        If the weight requires grad: its derivative would be lost.
    ValueError
        If the weight is negative, or a number above 0 where a Tensor that requires grad has none.

    Notes
    -----
    PyTorch: ``torch.nn.parallel.DistributedDataParallel``, which divides by the number of
    processes.

    Examples
    --------
    >>> import wengert.distributed as wd
    >>> wd.init()
    >>> model = wg.nn.Linear(2, 1)
    >>> model(wg.ones((4, 2))).sum().backward()
    >>> wd.average(model)  # each process has the mean of all processes' gradients
    >>> model.weight.grad
    tensor([[4., 4.]])
    """
    _check_weight("average", weight)
    if isinstance(model, Module):
        named = [*model.named_parameters()]
    else:
        named = [(f"Tensor {i}", x) for i, x in enumerate(listed("average", model))]
    named = [(name, x) for name, x in named if x.requires_grad]
    empty = not isinstance(weight, Tensor) and weight == 0
    for name, x in named:
        if x._grad is None and not empty:
            raise ValueError(
                f"average: {name} has no gradient on rank {messages.known('average').rank}. Call "
                "backward first, and requires_grad_(False) for what the loss does not depend on"
            )
    found = _OVERLAPS.get(model) if isinstance(model, Module) else None
    # In a compiled function, also where that runs eagerly on one process, there are no buckets.
    if found is None or messages.follower.get() is not None:
        _at_once([x for _, x in named], weight)
    else:
        found.finish(named, float(weight))


def _at_once(parameters: Sequence[Tensor], weight: Any) -> None:
    """Replace gradients by their means, in one collective for each dtype."""
    for dtype in dict.fromkeys(x.dtype for x in parameters):
        some = [x for x in parameters if x.dtype is dtype]
        total = all_reduce(ops.concat([*_gradients(some, weight), _scalar(some[0], weight)]))
        _divide(ops.divide(total[:-1], total[-1]), some)


def _gradients(parameters: Sequence[Tensor], weight: Any) -> list[Tensor]:
    """Gradients times the weight, in one dimension; zeros where there is none."""
    return [
        ops.zeros_like(wide(ops, ops.reshape(x.detach(), (-1,))))
        if x._grad is None
        else _weighted(x._grad, weight)
        for x in parameters
    ]


def _divide(flat: Tensor, parameters: Sequence[Tensor]) -> None:
    """Give each parameter its part of an array as its gradient."""
    start = 0
    for x in parameters:
        own = ops.reshape(flat[start : start + x.size], tuple(x.shape))
        x.grad = ops.astype(own, x.dtype, copy=False)
        start += x.size


@no_grad()
def mean(x: Any, weight: Any = 1) -> Tensor:
    r"""Weighted mean of a value over the processes, to report it.

    It is :math:`\sum_r w_r x_r / \sum_r w_r`, and has no derivative: `average` is for gradients.

    Parameters
    ----------
    x : Tensor or array
        Floating, of the same shape and dtype on all processes: a loss, an accuracy.
    weight : number or Tensor
        Of this process, 0 or more. With weight 0 the value counts as zero, whatever it is.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``, the same on all processes.

    Raises
    ------
    TypeError
        If ``x`` is not floating, or the weight requires grad: its derivative would be lost.
    ValueError
        If the weight is a negative number.

    Notes
    -----
    Wengert's own.

    Examples
    --------
    >>> import wengert.distributed as wd
    >>> wd.init()
    >>> wd.mean(wg.asarray(0.5))  # of a loss, for the log
    tensor(0.5000)
    """
    _check_weight("mean", weight)
    held = ops.asarray(x)
    if not held.dtype.inexact:
        raise TypeError(f"mean takes a floating array, and not one of {held.dtype.name}")
    total = all_reduce(ops.concat([_weighted(held, weight), _scalar(held, weight)]))
    found = ops.reshape(ops.divide(total[:-1], total[-1]), tuple(held.shape))
    return ops.astype(found, held.dtype, copy=False)


def _check_weight(function: str, weight: Any) -> None:
    """Raise for a weight whose derivative would be lost."""
    if isinstance(weight, Tensor) and weight.requires_grad:
        raise TypeError(
            f"{function} takes a number as weight, through which no derivative flows: pass "
            "weight.detach()"
        )


def _scalar(like: Tensor, weight: Any) -> Tensor:
    """A weight as an array of shape (1,) beside another, whose sums are at least float32."""
    dtype = wide(ops, like).dtype
    if isinstance(weight, Tensor):
        return ops.reshape(ops.astype(weight, dtype), (1,))
    if weight < 0:
        raise ValueError(f"a weight is 0 or more, and not {weight!r}")
    return ops.full((1,), weight, dtype=dtype, device=device(like))


def _weighted(x: Tensor, weight: Any) -> Tensor:
    """The elements times the weight; zeros for weight 0, also where they are NaN."""
    flat = wide(ops, ops.reshape(x.detach(), (-1,)))
    if isinstance(weight, Tensor):
        scale = _scalar(x, weight)
        return ops.where(ops.equal(scale, 0), ops.zeros_like(flat), ops.multiply(flat, scale))
    return ops.multiply(flat, weight) if weight != 0 else ops.zeros_like(flat)


# -- while the backward pass goes on ---------------------------------------------------------------


class Overlap:
    """Sends a model's gradients in buckets, each when its gradients are there.

    All processes send the same buckets in the same order, and each of them once between two calls
    of `average`. What they send then counts only if no process says that it has sent something
    else than it should have: with another weight than the one before, or before the gradient
    changed once more. Otherwise all is sent again, at once.
    """

    def __init__(self, carrier: Connected, named: Sequence[tuple[str, Tensor]]) -> None:
        self._carrier, self._line = carrier, Line(carrier)
        self._lock, self._weight = Lock(), 1.0
        self._handles: list[Any] = []
        #: Of each bucket that is on its way: what was sent, and what waits for the sum.
        self._sent: list[tuple[Any, Callable[[], Any]]] = []
        self._come: set[int] = set()  # the parameters whose gradients have come
        self._plan(named)

    def _plan(self, named: Sequence[tuple[str, Tensor]]) -> None:
        """Divide the parameters into buckets, and follow their gradients."""
        self.remove()
        self.buckets: list[list[Tensor]] = []
        room, names = 0, list[list[str]]()
        for name, x in reversed(named):
            size = x.size * x.array.dtype.itemsize
            if room < size or self.buckets[-1][0].dtype is not x.dtype:
                self.buckets.append([])
                names.append([])
                room = BUCKET
            self.buckets[-1].append(x)
            names[-1].append(name)
            room -= size
        text = json.dumps(names)
        texts = self._carrier.texts("the buckets of gradients", text)
        for rank, other in enumerate(texts):
            if other != texts[0]:
                raise ValueError(
                    f"rank 0 sends gradients in {texts[0]}, and rank {rank} in {other}: all have "
                    "to freeze the same parameters"
                )
        self._line.planned = [
            (sum(x.size for x in bucket), "float32" if held.narrow else held.name)
            for bucket in self.buckets
            for held in (bucket[0].dtype,)
        ]
        hook = _Hook(self)
        self._handles = [x.register_post_accumulate_grad_hook(hook) for _, x in named]

    def remove(self) -> None:
        """Follow gradients no more."""
        for handle in self._handles:
            handle.remove()

    def arrived(self, x: Tensor) -> None:
        """A backward pass has added to the gradient of a parameter."""
        if messages.follower.get() is not None or self._carrier.broken:
            return
        with self._lock:  # of backward passes in several threads
            self._come.add(id(x))
            self._line.progress()
            for bucket in self.buckets[len(self._sent) :]:
                if not all(id(x) in self._come for x in bucket):
                    return  # those after it wait, too: the order is the same on all processes
                self._send(bucket)

    def _send(self, bucket: list[Tensor]) -> None:
        flat = self._flat(bucket)
        self._sent.append((flat, self._line.begin(flat)))

    @no_grad()
    def _flat(self, bucket: list[Tensor]) -> Any:
        """The weighted gradients of a bucket, in memory of their own."""
        return ops.concat(_gradients(bucket, self._weight))._array

    def _received(self) -> list[Any]:
        """Wait for the sums of all buckets, and begin the next round."""
        sums = [finish() for _, finish in self._sent]
        self._line.end_round()
        self._sent = []
        self._come.clear()
        return sums

    def finish(self, named: Sequence[tuple[str, Tensor]], weight: float) -> None:
        """Replace the gradients by their means."""
        if weight < 0:
            raise ValueError(f"a weight is 0 or more, and not {weight!r}")
        for bucket in self.buckets[len(self._sent) :]:
            self._send(bucket)
        planned = [x for bucket in self.buckets for x in bucket]
        other = [*map(id, planned)] != [id(x) for _, x in reversed(named)]
        again = other or weight != self._weight or not self._as_sent()
        told = np.asarray([weight, again, other], np.float64)
        xp = get_backend("numpy").namespace
        total, again, other = messages.exchange(xp, "all_reduce", told, op="sum").tolist()
        sums = self._received()
        self._weight = weight
        if again:
            _at_once([x for _, x in named], weight)
        else:
            for bucket, flat in zip(self.buckets, sums, strict=True):
                _divide(ops.divide(ops.asarray(flat), total), bucket)
        if other:
            self._plan(named)

    def _as_sent(self) -> bool:
        """Whether the gradients are those that were sent, also in memory that others may reach."""
        pairs = zip(self.buckets, self._sent, strict=True)
        return all(_bytes(self._flat(bucket)) == _bytes(sent) for bucket, (sent, _) in pairs)


def _bytes(array: Any) -> bytes:
    return np.asarray(backend_of(array).to_numpy(array)).tobytes()


_OVERLAPS: WeakKeyDictionary[Module, Overlap] = WeakKeyDictionary()


class _Hook:
    """Tells of a parameter's gradient, and does not keep alive what keeps the parameter alive."""

    __slots__ = ("_overlap",)

    def __init__(self, overlap: Overlap) -> None:
        self._overlap = ref(overlap)

    def __call__(self, x: Tensor) -> None:
        found = self._overlap()
        if found is not None:
            found.arrived(x)


def overlap(model: Module, *, wanted: bool) -> None:
    """Begin to send a model's gradients in buckets, or end it."""
    before = _OVERLAPS.pop(model, None)
    if before is not None:
        before.remove()
    carrier = messages.known("replicate")
    if wanted and isinstance(carrier, Connected):
        _OVERLAPS[model] = Overlap(
            carrier, [(name, x) for name, x in model.named_parameters() if x.requires_grad]
        )
