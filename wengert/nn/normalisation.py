"""Layers of normalisation; each is the function of its name, which has the formula."""

from collections.abc import Sequence
from operator import index
from typing import Any

from wengert import ops
from wengert.nn import functional as F
from wengert.nn import init
from wengert.nn.module import Module
from wengert.nn.parameter import Parameter
from wengert.ops.shares import wide
from wengert.tape.tensor import Tensor


class _Norm(Module):
    """A layer with a weight, a bias, or neither."""

    #: What ``repr`` shows: values, and after a bar values with their names.
    _shown: str
    weight: Parameter | None
    bias: Parameter | None

    def _add_parameters(
        self, shape: tuple[int, ...], weight: bool, bias: bool, device: Any, of: Any
    ) -> None:
        place = {"device": device, "dtype": of}
        self.weight = Parameter(ops.ones(shape, **place)) if weight else None
        self.bias = Parameter(ops.zeros(shape, **place)) if weight and bias else None

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def extra_repr(self) -> str:
        plain, named = [part.split() for part in self._shown.split("|")]
        held = {**vars(self), "bias": self.bias is not None}
        return ", ".join([str(held[n]) for n in plain] + [f"{n}={held[n]}" for n in named])


class LayerNorm(_Norm):
    """`functional.layer_norm` with a weight and a bias.

    PyTorch: ``torch.nn.LayerNorm``.

    Examples
    --------
    >>> wg.nn.LayerNorm(2)(wg.asarray([[1.0, 3.0], [10.0, 30.0]]))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]], grad_fn=<StandardisedBackward0>)
    """

    _shown = "normalized_shape | eps elementwise_affine bias"

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.normalized_shape = _lengths(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._add_parameters(self.normalized_shape, elementwise_affine, bias, device, dtype)

    def forward(self, input: Any) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(_Norm):
    """`functional.rms_norm` with a weight.

    PyTorch: ``torch.nn.RMSNorm``.

    Examples
    --------
    >>> wg.nn.RMSNorm(2)(wg.asarray([[3.0, 4.0]]))
    tensor([[0.8485, 1.1314]], grad_fn=<StandardisedBackward0>)
    """

    _shown = "normalized_shape | eps elementwise_affine"

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.normalized_shape = _lengths(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._add_parameters(self.normalized_shape, elementwise_affine, False, device, dtype)

    def forward(self, input: Any) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(_Norm):
    """`functional.group_norm` with a weight and a bias.

    PyTorch: ``torch.nn.GroupNorm``.

    Examples
    --------
    >>> wg.nn.GroupNorm(2, 6)(wg.ones((4, 6, 8, 8))).shape
    (4, 6, 8, 8)
    """

    _shown = "num_groups num_channels | eps affine bias"

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        self._add_parameters((num_channels,), affine, bias, device, dtype)

    def forward(self, input: Any) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class _Channels(_Norm):
    """A layer of channels."""

    _shown = "num_features | eps momentum affine bias track_running_stats"
    #: The shapes that it takes.
    _shapes: str
    num_features: int

    def _check_shape(self, input: Any) -> None:
        shape = tuple(input.shape)
        layouts = [layout.split() for layout in self._shapes.split("|")]
        fits = [layout for layout in layouts if len(layout) == len(shape)]
        if not fits or shape[fits[0].index("C")] != self.num_features:
            wanted = " or ".join(f"({', '.join(layout)})" for layout in layouts)
            raise ValueError(
                f"{type(self).__name__} takes an input {wanted} with C={self.num_features}, and "
                f"got one of shape {shape}"
            )


class _BatchNorm(_Channels):
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        self.num_features = index(num_features)
        self.eps, self.momentum = eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        shape = (self.num_features,)
        self._add_parameters(shape, affine, bias, device, dtype)
        for name, make, lengths, of in (
            ("running_mean", ops.zeros, shape, dtype),
            ("running_var", ops.ones, shape, dtype),
            ("num_batches_tracked", ops.zeros, (), "int64"),
        ):
            made = make(lengths, device=device, dtype=of) if track_running_stats else None
            self.register_buffer(name, made)

    def reset_running_stats(self) -> None:
        """Set the averages to those of no batch."""
        for buffer in (self.running_mean, self.running_var, self.num_batches_tracked):
            if buffer is not None and self.track_running_stats:
                (init.ones_ if buffer is self.running_var else init.zeros_)(buffer)

    def reset_parameters(self) -> None:
        """Set the weight to ones, the bias to zeros and the averages to those of no batch."""
        self.reset_running_stats()
        super().reset_parameters()

    def _momentum(self) -> Any:
        """The share in the averages that the next batch has."""
        average = self.running_var if self.running_mean is None else self.running_mean
        if self.momentum is not None or self.num_batches_tracked is None or average is None:
            return self.momentum or 0.0
        count = ops.astype(self.num_batches_tracked, wide(ops, average).dtype)
        return ops.divide(1, ops.add(count, 1))

    def forward(self, input: Any) -> Tensor:
        self._check_shape(input)
        moves = self.training and self.track_running_stats
        held = self.running_mean, self.running_var
        out = F.batch_norm(
            input,
            *(held if moves or not self.training else (None, None)),
            self.weight,
            self.bias,
            self.training or held[0] is held[1] is None,
            self._momentum(),
            self.eps,
        )
        if moves and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        return out


class _InstanceNorm(_Channels):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        if track_running_stats:
            raise ValueError(
                f"{type(self).__name__} takes each member's own statistics, and tracks none: leave "
                "track_running_stats out, or use wg.nn.BatchNorm1d or 2d"
            )
        self.num_features, self.eps, self.momentum = index(num_features), eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._add_parameters((self.num_features,), affine, bias, device, dtype)

    def forward(self, input: Any) -> Tensor:
        self._check_shape(input)
        alone = len(input.shape) < len(self._shapes.split("|")[-1].split())
        x = ops.expand_dims(input, axis=0) if alone else input
        out = F.instance_norm(x, weight=self.weight, bias=self.bias, eps=self.eps)
        return ops.squeeze(out, axis=0) if alone else out


class BatchNorm1d(_BatchNorm):
    """`functional.batch_norm` of vectors or sequences, (N, C) or (N, C, L).

    A momentum of None takes the mean over all batches. Without ``track_running_stats`` the batch's
    statistics are used in evaluation, too.
    PyTorch: ``torch.nn.BatchNorm1d``.

    Examples
    --------
    >>> layer = wg.nn.BatchNorm1d(2)
    >>> layer(wg.asarray([[1.0, 10.0], [3.0, 30.0]]))
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]], grad_fn=<StandardisedBackward0>)
    >>> layer.running_mean  # a tenth of the batch's means
    tensor([0.2000, 2.0000])
    """

    _shapes = "N C | N C L"


class BatchNorm2d(_BatchNorm):
    """`functional.batch_norm` of images, (N, C, H, W).

    Options are those of `BatchNorm1d`. PyTorch: ``torch.nn.BatchNorm2d``.

    Examples
    --------
    >>> wg.nn.BatchNorm2d(3)(wg.ones((4, 3, 8, 8))).shape
    (4, 3, 8, 8)
    """

    _shapes = "N C H W"


class InstanceNorm1d(_InstanceNorm):
    """`functional.instance_norm` of sequences, (C, L) or (N, C, L).

    There are no averages: ``momentum`` does nothing. Raises `ValueError` if they are asked for.
    PyTorch: ``torch.nn.InstanceNorm1d``.

    Examples
    --------
    >>> wg.nn.InstanceNorm1d(2)(wg.asarray([[[1.0, 3.0], [10.0, 30.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """

    _shapes = "C L | N C L"


class InstanceNorm2d(_InstanceNorm):
    """`functional.instance_norm` of images, (C, H, W) or (N, C, H, W).

    Options and errors are those of `InstanceNorm1d`. PyTorch: ``torch.nn.InstanceNorm2d``.

    Examples
    --------
    >>> wg.nn.InstanceNorm2d(3)(wg.ones((4, 3, 8, 8))).shape
    (4, 3, 8, 8)
    """

    _shapes = "C H W | N C H W"


def _lengths(given: int | Sequence[int]) -> tuple[int, ...]:
    return tuple([index(n) for n in given]) if isinstance(given, Sequence) else (index(given),)
