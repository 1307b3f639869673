"""Weights that are computed of others in each use: by their norms."""

import math
from typing import Any

from wengert import ops
from wengert.nn import init
from wengert.nn.containers import ModuleDict, ModuleList
from wengert.nn.functional import normalize
from wengert.nn.module import Module
from wengert.nn.parameter import Parameter
from wengert.ops.axes import as_axis
from wengert.ops.hints import list_public
from wengert.ops.linalg import vector_norm
from wengert.ops.shares import by_float32
from wengert.tape.grad_mode import no_grad
from wengert.tape.tensor import Tensor

__all__ = ["spectral_norm", "weight_norm"]

list_public(__name__)


class ParametrizationList(ModuleList[Module]):
    """The originals of one weight, and what computes it of them, by PyTorch's names."""

    def __init__(self, norm: Module, weight: Parameter, *parts: Tensor) -> None:
        super().__init__([norm])
        if not parts:  # the optimiser's parameter stays the same object
            self.register_parameter("original", weight)
        for i, part in enumerate(parts):
            original = Parameter(part.detach().clone(), requires_grad=weight.requires_grad)
            self.register_parameter(f"original{i}", original)

    def forward(self) -> Tensor:
        originals = [original for _, original in self._own_parameters()]
        return self[0](*originals)  # type: ignore[no-any-return]


def _find_parametrization(module: Module, name: str) -> ParametrizationList | None:
    """What computes a weight of a module, if that is computed."""
    found = vars(vars(module).get("parametrizations", module)).get(name)
    return found if isinstance(found, ParametrizationList) else None


def _property(name: str) -> property:
    """The attribute of a class by which each use of a weight computes it."""

    def compute(module: Any) -> Tensor:
        return module.parametrizations[name]()  # type: ignore[no-any-return]

    def refuse(module: Any, value: Any) -> None:
        raise AttributeError(f"{name!r} is computed: change module.parametrizations.{name}")

    return property(compute, refuse)


def _parameter(module: Module, name: str) -> Parameter:
    found = module.__dict__.get(name)
    if not isinstance(found, Parameter):
        what = "has a norm already" if _find_parametrization(module, name) else "is no parameter"
        raise ValueError(  # noqa: TRY004 -- PyTorch's error
            f"{name!r} of {type(module).__name__} {what}"
        )
    return found


def _compute(module: Module, name: str, norm: Module, *parts: Tensor) -> Module:
    """Let a module's parameter be computed in each use, of itself or of parts, by its own class."""
    norm.train(module.training)
    lists = {name: ParametrizationList(norm, _parameter(module, name), *parts)}
    delattr(module, name)
    cls: Any = type(module)
    if "parametrizations" in vars(module):
        lists = dict(vars(module)["parametrizations"].items()) | lists
        delattr(module, "parametrizations")  # another one, since copies have this one
        cls = cls.__bases__[0]
    module.add_module("parametrizations", ModuleDict(lists))
    space: dict[str, Any] = {name: getattr(cls, name) for name in ("__doc__", "__module__")}
    space |= {name: _property(name) for name in lists}
    module.__class__ = type(cls)(f"Parametrized{cls.__name__}", (cls,), space)
    return module


class _WeightNorm(Module):
    def __init__(self, dim: int | None) -> None:
        self.dim = -1 if dim is None else dim

    def _norm(self, weight: Tensor) -> Tensor:
        if self.dim == -1:
            return vector_norm(weight)
        axes = tuple(i for i in range(weight.ndim) if i != self.dim)
        return vector_norm(weight, axis=axes, keepdims=True)

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        if weight_v.dtype.narrow:  # whose norms may overflow
            return by_float32(self.forward, weight_g, weight_v)  # type: ignore[no-any-return]
        norm = self._norm(weight_v)
        norm = ops.where(ops.isinf(norm), math.nan, norm)  # by which weights would be 0
        return weight_v * (weight_g / norm)


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    r"""Learn the norm and the direction of a weight apart.

    :math:`w = g \, v / \|v\|` with a norm :math:`g`, ``parametrizations.weight.original0``, for
    each entry of the axis ``dim``, or of all for None or -1, and :math:`v`, ``original1``, as in
    Salimans and Kingma (2016). Raises `ValueError` if there is no such parameter, or no such axis.

    Examples
    --------
    >>> layer = wg.nn.utils.parametrizations.weight_norm(wg.nn.Linear(4, 2))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    weight = _parameter(module, name)
    if dim is not None and not -1 <= dim < weight.ndim:
        raise ValueError(f"dim is an axis of {weight.ndim}, -1 or None, and not {dim}")
    norm = _WeightNorm(dim)
    return _compute(module, name, norm, norm._norm(weight), weight)


class _SpectralNorm(Module):
    _u: Any
    _v: Any

    def __init__(self, weight: Tensor, steps: int, dim: int, eps: float) -> None:
        self.dim, self.eps = as_axis(dim, weight.ndim, "spectral_norm"), eps
        if steps <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got {steps}")
        if weight.ndim > 1:
            self.n_power_iterations = steps
            with no_grad():
                matrix = self._matrix(weight)
                for name, like in (("_u", matrix[:, 0]), ("_v", matrix[0, :])):
                    drawn = init.normal_(ops.zeros_like(like))
                    self.register_buffer(name, normalize(drawn, dim=0, eps=eps))
            self._power(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        front = ops.moveaxis(weight, self.dim, 0)
        return ops.reshape(front, (front.shape[0], -1))

    @no_grad()
    def _power(self, matrix: Tensor, steps: int) -> None:
        adjoint = ops.conj(matrix).T if matrix.dtype.complex else matrix.T
        u, v = self._u, self._v
        for _ in range(steps):
            u = normalize(ops.matmul(matrix, v), dim=0, eps=self.eps)
            v = normalize(ops.matmul(adjoint, u), dim=0, eps=self.eps)
        self._u.copy_(u)
        self._v.copy_(v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._power(matrix, self.n_power_iterations)
        # The values now: a later call changes the buffers.
        return weight / ops.vecdot(self._u.detach(), ops.matmul(matrix, self._v.detach()))


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    r"""Divide a weight by its largest singular value.

    :math:`w / \sigma(w)` with :math:`\sigma(w) = u^H w v` by steps of the power method, in training
    mode in each use, as in Miyato and others (2018). A vector is divided by its norm. Raises
    `ValueError` if there is no such parameter, or there are no steps; `IndexError` if there is no
    such axis.

    The axis ``dim`` is the rows of the matrix; by default 1 for transposed convolutions, and 0.

    Examples
    --------
    >>> from wengert.nn.utils.parametrizations import spectral_norm
    >>> layer = spectral_norm(wg.nn.Linear(4, 4), n_power_iterations=20)
    >>> round(wg.linalg.svdvals(layer.weight)[0].item(), 1)
    1.0
    """
    weight = _parameter(module, name)
    if dim is None:
        transposed = any("ConvTranspose" in cls.__name__ for cls in type(module).__mro__)
        dim = 1 if transposed else 0
    return _compute(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
