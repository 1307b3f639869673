"""The differentiable interpreter: rules run on Tensors, by recorded operations."""

from types import ModuleType
from typing import Any

from wengert.backends import Selection, dtype_of, namespaces
from wengert.tape.node import Node, Output
from wengert.tape.tensor import Tensor, placed

__all__ = ["LATER", "differentiable"]

#: Functions whose module is imported when one of them is first named: few programs need them.
_HOMES = {
    "wengert.ops.beyond": ("at", "einsum", "median", "one_hot", "pad", "quantile"),
    "wengert.ops.limits": ("FInfo", "IInfo", "finfo", "iinfo"),
    "wengert.ops.set": (
        *("UniqueAllResult", "UniqueCountsResult", "UniqueInverseResult", "isin"),
        *("unique_all", "unique_counts", "unique_inverse", "unique_values"),
    ),
    "wengert.ops.special.everyday": (
        *("erf", "erfc", "expit", "gelu", "leaky_relu", "log_expit", "log_softmax", "logit"),
        *("logsumexp", "relu", "silu", "softmax", "softplus", "xlogy"),
    ),
}
LATER = {name: home for home, names in _HOMES.items() for name in names}


def lift(saved: tuple[Any, ...], node: Node) -> tuple[Any, ...]:
    """Rebuild as Tensors what a node saved as raw arrays, each at its place on the tape."""
    origins = node.plan.origins
    return tuple(_tensor(value, node, origin) for value, origin in zip(saved, origins, strict=True))


def _tensor(value: Any, node: Node, origin: Any) -> Any:
    if origin == -1 and type(value) is tuple:
        return tuple(
            placed(v, Output(node, i) if dtype_of(v.dtype).inexact else None)
            for i, v in enumerate(value)
        )
    if origin is None or not hasattr(value, "dtype"):
        if isinstance(origin, range):
            return tuple(_tensor(v, node, i) for v, i in zip(value, origin, strict=True))
        return value
    return placed(value, node if origin == -1 else node.parents[origin])


def device(x: Tensor) -> Selection:
    """Where a Tensor is: what a plain namespace tells of a raw array, and the backend too.

    So that what a rule creates beside a Tensor comes to the Tensor's backend, whichever is
    selected.
    """
    return Selection(x.backend, x.device, "it is another array's")


#: The functions of `wengert.ops` on Tensors: the ``xp`` of ``create_graph=True`` and of a
#: ``grad_fn`` that is called by hand. `wengert.ops` fills it.
differentiable = ModuleType("wengert.interpreters.differentiable.namespace")
vars(differentiable).update(device=device, lift=lift, plain=False)
namespaces[Tensor] = differentiable
