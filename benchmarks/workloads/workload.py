"""What a workload is, and how each library runs it.

A program is written once, against a namespace with the standard's names. `namespaces` gives such a
namespace for each library: its own module, and a few names that it spells in another way.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from benchmarks.report import installed

__all__ = ["LIBRARIES", "Array", "Compute", "Workload", "agree", "flat", "looping", "namespace"]

Array = np.ndarray[Any, Any]
#: Does a unit of work, and returns its results in any nest of tuples and lists.
Compute = Callable[[], Any]
Kind = Literal["gradient", "value", "hvp", "hessian", "jacobian"]

#: Who takes part, and the library that each needs.
LIBRARIES = {
    "Wengert": "wengert",
    "Wengert compiled": "wengert",
    "NumPy by hand": "numpy",
    "PyTorch eager": "torch",
    "JAX jit": "jax",
    "HIPS/autograd": "autograd",
}


@dataclass(frozen=True)
class Workload:
    """A program, where it is differentiated, and the derivative by hand.

    Parameters
    ----------
    program : callable
        ``program(xp)`` returns a function of arrays.
    inputs : sequence of arrays
        What the function is called with, and differentiated by.
    by_hand : callable, optional
        The same results by NumPy alone, as a careful person writes them.
    kind : {"gradient", "value", "hvp", "hessian", "jacobian"}
        What is computed: a value and all its gradients, the value alone, a product of the Hessian
        with a vector of ones, the Hessian, or the Jacobian. The last three have one input.
    without : sequence of str
        Contestants that lack something it needs.
    """

    program: Callable[[Any], Callable[..., Any]]
    inputs: tuple[Array, ...]
    by_hand: Callable[..., Any] | None = None
    kind: Kind = "gradient"
    without: tuple[str, ...] = ()

    def contestants(self, names: Iterable[str]) -> dict[str, Compute]:
        """How each of these peers computes it, where its library is installed."""
        made = {}
        for name in names:
            if name in self.without or not installed(LIBRARIES[name]):
                continue
            if name != "NumPy by hand":
                made[name] = MAKERS[name](self)
            elif self.by_hand is not None:
                made[name] = partial(self.by_hand, *self.inputs)
        return made


# -- namespaces ------------------------------------------------------------------------------------


def _pytorch() -> SimpleNamespace:
    import torch

    torch.set_num_threads(1)
    return SimpleNamespace(
        **{
            **vars(torch),
            "max": torch.amax,
            "permute_dims": torch.permute,
            "take": lambda x, indices, axis: torch.index_select(x, axis, indices),
            "expit": torch.sigmoid,
        }
    )


def _jax() -> SimpleNamespace:
    import jax

    jax.config.update("jax_enable_x64", True)

    def scan(step: Any, state: Any, steps: int) -> Any:
        return jax.lax.scan(lambda state, t: (step(state, t), None), state, np.arange(steps))[0]

    return SimpleNamespace(
        **{
            **vars(jax.numpy),
            "repeat_step": scan,
            "softmax": jax.nn.softmax,
            "logsumexp": jax.nn.logsumexp,
            "log_softmax": jax.nn.log_softmax,
            "expit": jax.nn.sigmoid,
            "relu": jax.nn.relu,
            "erf": jax.scipy.special.erf,
            "linalg": _linalg(jax.numpy, jax.scipy.linalg),
        }
    )


def _hips() -> SimpleNamespace:
    import_module("autograd")
    xp = import_module("autograd.numpy")

    def take(x: Any, indices: Any, axis: int) -> Any:
        return x[(slice(None),) * axis + (indices,)]

    def softmax(x: Any, axis: int) -> Any:
        terms = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
        return terms / xp.sum(terms, axis=axis, keepdims=True)

    return SimpleNamespace(
        **{
            **vars(xp),
            "concat": xp.concatenate,
            "permute_dims": xp.transpose,
            "softmax": softmax,
            "logsumexp": import_module("autograd.scipy.special").logsumexp,
            "expit": lambda x: 0.5 * xp.tanh(0.5 * x) + 0.5,
            "relu": lambda x: xp.maximum(x, 0),
            "erf": import_module("autograd.scipy.special").erf,
            "take": take,
            "linalg": _linalg(xp, import_module("autograd.scipy.linalg")),
        }
    )


def _linalg(xp: Any, scipy: Any) -> SimpleNamespace:
    def solve_triangular(x1: Any, x2: Any, *, upper: bool) -> Any:
        return scipy.solve_triangular(x1, x2, lower=not upper)

    own = {"diagonal": lambda x: xp.diagonal(x, 0, -1, -2), "solve_triangular": solve_triangular}
    return SimpleNamespace(**{**vars(xp.linalg), **own})


def _wengert() -> Any:
    return import_module("wengert")


_NAMESPACES: Mapping[str, Callable[[], Any]] = {
    "wengert": _wengert,
    "torch": _pytorch,
    "jax": _jax,
    "autograd": _hips,
}


@cache
def namespace(library: str) -> Any:
    """What a program is run against: a library's functions, under the standard's names."""
    return _NAMESPACES[library]()


def looping(xp: Any) -> Callable[[Callable[[Any, Any], Any], Any, int], Any]:
    """What does ``state = step(state, t)`` for each ``t``: a loop of Python's.

    A loop of JAX's own under ``jit``: unrolled, the heat equation takes it minutes to compile.
    """
    return getattr(xp, "repeat_step", _unrolled)


def _unrolled(step: Callable[[Any, Any], Any], state: Any, steps: int) -> Any:
    for t in range(steps):
        state = step(state, t)
    return state


# -- how each library computes ---------------------------------------------------------------------


def wengert(workload: Workload) -> Compute:
    """Wengert, eager."""
    compute, inputs = _wengert_function(workload)
    return partial(compute, *inputs)


def wengert_compiled(workload: Workload) -> Compute:
    """The same function, recorded once and replayed by `wengert.compile`."""
    import wengert as wg

    compute, inputs = _wengert_function(workload)
    return partial(wg.compile(compute), *inputs)


def _wengert_function(workload: Workload) -> tuple[Callable[..., Any], list[Any]]:
    """What is computed, and of what."""
    import wengert as wg

    f = workload.program(wg)
    inputs = [wg.asarray(x.copy()) for x in workload.inputs]
    if workload.kind == "gradient":

        def gradient(*inputs: Any) -> Any:
            loss = f(*inputs)
            return loss, wg.autograd.grad(loss, inputs)

        return gradient, [x.requires_grad_() for x in inputs]
    if workload.kind == "value":

        def value(*inputs: Any) -> Any:
            with wg.no_grad():
                return f(*inputs)

        return value, inputs
    if workload.kind == "hvp":
        ones = wg.ones_like(inputs[0])
        return (lambda x: wg.hvp(f, (x,), (ones,))), inputs
    return {"hessian": wg.hessian, "jacobian": wg.jacobian}[workload.kind](f), inputs


def pytorch(workload: Workload) -> Compute:
    """PyTorch, eager."""
    import torch

    f = workload.program(namespace("torch"))
    inputs = [torch.from_numpy(x.copy()) for x in workload.inputs]
    if workload.kind in ("gradient", "hvp"):
        inputs = [x.requires_grad_() for x in inputs]

    def gradient() -> Any:
        loss = f(*inputs)
        return loss, torch.autograd.grad(loss, inputs)

    def value() -> Any:
        with torch.no_grad():
            return f(*inputs)

    def hvp() -> Any:
        # Back through the gradient: faster here than `torch.func`, and than its own `hvp`.
        gradients = torch.autograd.grad(f(*inputs), inputs, create_graph=True)
        return torch.autograd.grad(gradients, inputs, [torch.ones_like(x) for x in inputs])

    if workload.kind == "hessian":
        return partial(torch.func.hessian(f), *inputs)
    if workload.kind == "jacobian":
        return partial(_shorter(torch.func, f, *inputs), *inputs)
    return {"gradient": gradient, "value": value, "hvp": hvp}[workload.kind]


def jax(workload: Workload) -> Compute:
    """JAX, with everything under ``jit``, and waited for."""
    import jax

    f = workload.program(namespace("jax"))
    inputs = [jax.numpy.asarray(x) for x in workload.inputs]

    def gradient(*inputs: Any) -> Any:
        return jax.value_and_grad(f, tuple(range(len(inputs))))(*inputs)

    def hvp(x: Any) -> Any:
        return jax.jvp(jax.grad(f), (x,), (jax.numpy.ones_like(x),))[1]

    if workload.kind == "hessian":
        compiled = jax.jit(jax.hessian(f))
    elif workload.kind == "jacobian":
        compiled = jax.jit(_shorter(jax, f, *inputs))
    else:
        compiled = jax.jit({"gradient": gradient, "value": f, "hvp": hvp}[workload.kind])
    return lambda: jax.block_until_ready(compiled(*inputs))


def _shorter(transforms: Any, f: Any, x: Any) -> Any:
    """The Jacobian by columns where these are fewer, and by rows elsewhere."""
    return (transforms.jacfwd if len(x) < len(f(x)) else transforms.jacrev)(f)


def hips(workload: Workload) -> Compute:
    """HIPS/autograd."""
    import autograd

    f = workload.program(namespace("autograd"))
    inputs = workload.inputs

    def gradient() -> Any:
        # Its value_and_grad takes one argument, or several as one tuple.
        return autograd.value_and_grad(lambda xs: f(*xs))(inputs)

    def hvp() -> Any:
        return autograd.make_hvp(f)(*inputs)[0](np.ones_like(inputs[0]))

    if workload.kind in ("hessian", "jacobian"):
        return partial(getattr(autograd, workload.kind)(f), *inputs)
    return {"gradient": gradient, "value": partial(f, *inputs), "hvp": hvp}[workload.kind]


MAKERS: Mapping[str, Callable[[Workload], Compute]] = {
    "Wengert": wengert,
    "Wengert compiled": wengert_compiled,
    "PyTorch eager": pytorch,
    "JAX jit": jax,
    "HIPS/autograd": hips,
}


# -- agreement -------------------------------------------------------------------------------------


def flat(results: Any) -> list[Array]:
    """The arrays in a nest of tuples and lists, as NumPy's."""
    if isinstance(results, tuple | list):
        return [array for part in results for array in flat(part)]
    if hasattr(results, "detach"):
        results = results.detach().numpy()
    return [np.asarray(results)]


def agree(computes: Mapping[str, Compute], *, calls: int = 3) -> None:
    """Raise AssertionError unless all contestants compute the same, also in later calls.

    Numbers are compared with the largest of their array: what an element loses to cancellation
    differs by the order of summation.
    """
    expected: list[Array] = []
    for name, compute in computes.items():
        for _ in range(calls):
            found = [x.copy() for x in flat(compute())]
        if not expected:
            first, expected = name, found
        if len(found) != len(expected):
            raise AssertionError(f"{name} has {len(found)} results, {first} {len(expected)}")
        for i, (x, y) in enumerate(zip(found, expected, strict=True)):
            if x.shape != y.shape or x.dtype != y.dtype:
                raise AssertionError(
                    f"result {i} is {x.shape} {x.dtype} by {name}, {y.shape} {y.dtype} by {first}"
                )
            away = np.max(np.abs(x - y), initial=0.0)
            scale = np.max(np.abs(y), initial=0.0)
            if not away <= scale * 2e4 * np.finfo(x.dtype).eps ** 0.875:
                raise AssertionError(f"result {i} differs by {away} of {scale}: {name}, {first}")
