"""The namespaces that random programs are run on: Wengert's, and a translation to PyTorch."""

from types import SimpleNamespace
from typing import Any

import numpy as np

import wengert as wg
from wengert.nn import functional

__all__ = ["WENGERT", "pytorch"]


class Cube(wg.autograd.Function):
    """An operation of the user's own."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * wg.conj(3 * x * x)

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return t * 3 * x * x


class _Wengert:
    """Wengert's namespace, and what programs use beside it."""

    elu = staticmethod(functional.elu)
    nn = functional
    cube = staticmethod(Cube.apply)

    @staticmethod
    def own(x):
        """A value of its own to change in place; in PyTorch a view would change its base."""
        return x

    @staticmethod
    def number(x):
        return wg.astype(wg.sum(wg.real(x)), wg.float64)

    @staticmethod
    def gradient(function, x):
        return wg.grad(function)(x)

    @staticmethod
    def pushed(function, x):
        return wg.jvp(function, (x,), (x,))[1]

    @staticmethod
    def add_at(x, indices, value):
        return wg.at(x)[indices].add(value)

    @staticmethod
    def integers(values):
        return wg.asarray(values, dtype=wg.int64)

    @staticmethod
    def booleans(values):
        return wg.asarray(values, dtype=wg.bool)

    def __getattr__(self, name):
        found = getattr(wg, name)
        setattr(self, name, found)
        return found


WENGERT: Any = _Wengert()


def pytorch() -> Any:
    """The same namespace on PyTorch."""
    import torch
    from array_api_compat import torch as compat
    from torch.utils.checkpoint import checkpoint

    F = torch.nn.functional

    class TorchCube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (3 * x * x).conj()

        @staticmethod
        def jvp(ctx, t):
            (x,) = ctx.saved_tensors
            return t * 3 * x * x

    def pair(a, b):
        """Two operands in their common dtype: 0-d Tensors count as others do."""
        kinds = isinstance(a, torch.Tensor), isinstance(b, torch.Tensor)
        if all(kinds):
            dtype = torch.promote_types(a.dtype, b.dtype)
            return a.to(dtype), b.to(dtype)
        like = a if kinds[0] else b
        other = b if kinds[0] else a
        other = other.item() if isinstance(other, np.generic) else other
        if isinstance(other, float) and not (like.is_complex() or like.is_floating_point()):
            like = like.to(torch.get_default_dtype())
        if like.dtype is torch.bool and not isinstance(other, bool):
            like = like.to(torch.int64)
        if isinstance(other, complex) and not like.dtype.is_complex:
            like = like.to(torch.promote_types(like.dtype, torch.complex64))
        scalar = torch.tensor(other, dtype=like.dtype)
        return (like, scalar) if kinds[0] else (scalar, like)

    def power(a, b):
        """PyTorch's own has the mixed second derivative 0, and not 1 / a, at an exponent 0."""
        a, b = pair(a, b)
        mixed = (b == 0) & (a > 0) & torch.isfinite(a) if b.requires_grad else None
        if mixed is None or a.is_complex() or not mixed.any():
            return torch.pow(a, b)
        return torch.where(
            mixed, torch.exp(b * torch.log(torch.where(mixed, a, 1))), torch.pow(a, b)
        )

    def binary(function):
        return lambda a, b: function(*pair(a, b))

    def nested(values):
        """A list of numbers and Tensors as a Tensor, as `stack` would make it."""
        if isinstance(values, list | tuple):
            parts = [nested(v) for v in values]
            tensors = [p for p in parts if isinstance(p, torch.Tensor)]
            if not tensors:
                return parts
            dtype = tensors[0].dtype
            for t in tensors[1:]:
                dtype = torch.promote_types(dtype, t.dtype)
            return torch.stack([torch.as_tensor(p, dtype=dtype).broadcast_to(tensors[0].shape)
                                for p in parts])  # fmt: skip
        return values

    def asarray(values, dtype=None):
        found = nested(values)
        if not isinstance(found, torch.Tensor):
            found = torch.tensor(found, dtype=dtype)
        return found if dtype is None else found.to(dtype)

    def take_all(function):
        def reduced(x, axis=None, keepdims=False, **more):
            if axis is None:
                axis = tuple(range(x.ndim))
            if x.ndim == 0:
                return function(x.reshape(1), axis=0, **more)
            return function(x, axis=axis, keepdims=keepdims, **more)

        return reduced

    def extremum(function):
        def reduced(x, axis=None, keepdims=False):
            if x.ndim == 0:
                return x * 1
            dim = tuple(range(x.ndim)) if axis is None else axis
            return function(x, dim=dim, keepdim=keepdims)

        return reduced

    def clip(x, min=None, max=None):
        lo, hi = min, max
        dtype = x.dtype
        lo = lo if lo is None or isinstance(lo, torch.Tensor) else torch.tensor(lo, dtype=dtype)
        hi = hi if hi is None or isinstance(hi, torch.Tensor) else torch.tensor(hi, dtype=dtype)
        return torch.clamp(x, lo, hi)

    def leaky_relu(x, slope=0.01):
        if isinstance(slope, torch.Tensor):
            return torch.where(x > 0, x, x * slope)
        return F.leaky_relu(x, slope)

    def linspace(start, stop, num):
        tensors = [t for t in (start, stop) if isinstance(t, torch.Tensor)]
        if not tensors:
            return torch.linspace(start, stop, num)
        dtype = tensors[0].dtype
        steps = torch.arange(num, dtype=torch.float64) / builtin_max(num - 1, 1)
        return start + (stop - start) * steps.to(dtype)

    def full(shape, value):
        return torch.broadcast_to(value, shape) * 1

    def softmax(x, axis=None):
        if axis is None:
            return torch.softmax(x.reshape(-1), 0).reshape(x.shape)
        return torch.softmax(x, axis)

    def log_softmax(x, axis=None):
        if axis is None:
            return torch.log_softmax(x.reshape(-1), 0).reshape(x.shape)
        return torch.log_softmax(x, axis)

    def logsumexp(x, axis=None, keepdims=False):
        if axis is None:
            axis = tuple(range(x.ndim))
        return torch.logsumexp(x, axis, keepdim=keepdims) if x.ndim else x * 1

    def roll(x, shift, axis=None):
        return torch.roll(x, shift, dims=axis) if axis is not None else torch.roll(x, shift)

    def diff(x, axis=-1, n=1):
        return torch.diff(x, n=n, dim=axis)

    def where(c, a, b):
        return torch.where(c, *pair(a, b))

    def take(x, indices, axis=None):
        return torch.index_select(x, 0 if axis is None else axis, indices)

    def pad(x, width):
        widths = [n for pairs in reversed(width) for n in pairs]
        return F.pad(x, widths)

    def checkpointed(function, *args):
        return checkpoint(function, *args, use_reentrant=False)

    def var(x, axis=None, correction=0.0, keepdims=False):
        if x.ndim == 0:
            return x * 0
        dims = tuple(range(x.ndim)) if axis is None else axis
        return torch.var(x, dim=dims, correction=correction, keepdim=keepdims)

    def deviation(x, axis=None, correction=0.0, keepdims=False):
        if x.ndim == 0:
            return torch.std(x.reshape(1), dim=0, correction=correction)
        dims = tuple(range(x.ndim)) if axis is None else axis
        return torch.std(x, dim=dims, correction=correction, keepdim=keepdims)

    import builtins

    builtin_max = builtins.max
    names = dict(
        own=torch.clone,
        nn=F,
        gradient=lambda f, x: torch.func.grad(f)(x),
        pushed=lambda f, x: torch.func.jvp(f, (x,), (x,))[1],
        add_at=lambda x, i, v: x.index_put((i,), v, accumulate=True),
        quantile=lambda x, q, axis=None: torch.quantile(x, q, dim=axis),
        argsort=lambda x, axis=-1: torch.argsort(x, dim=axis, stable=True),
        flip=lambda x, axis: torch.flip(x, (axis,)),
        cube=TorchCube.apply,
        number=lambda x: torch.sum(torch.real(x) if x.is_complex() else x).to(torch.float64),
        integers=lambda v: torch.tensor(v, dtype=torch.int64),
        booleans=lambda v: torch.tensor(v, dtype=torch.bool),
        real=lambda x: torch.real(x) if x.is_complex() else x,
        imag=lambda x: torch.imag(x) if x.is_complex() else torch.zeros_like(x),
        asarray=asarray,
        max=extremum(torch.amax),
        min=extremum(torch.amin),
        mean=take_all(compat.mean),
        sum=take_all(compat.sum),
        var=var,
        std=deviation,
        clip=clip,
        leaky_relu=leaky_relu,
        elu=F.elu,
        linspace=linspace,
        full=full,
        softmax=softmax,
        log_softmax=log_softmax,
        logsumexp=logsumexp,
        roll=roll,
        diff=diff,
        where=where,
        take=take,
        pad=pad,
        checkpoint=checkpointed,
        expit=torch.sigmoid,
        log_expit=F.logsigmoid,
        relu=F.relu,
        gelu=F.gelu,
        silu=F.silu,
        softplus=F.softplus,
        outer=lambda a, b: torch.outer(*pair(a, b)),
        matmul=binary(torch.matmul),
        vecdot=lambda a, b, axis=-1: torch.linalg.vecdot(*pair(a, b), dim=axis),
        tensordot=lambda a, b, axes=1: torch.tensordot(*pair(a, b), dims=axes),
        cumulative_sum=lambda x, axis=None: torch.cumsum(x, 0 if axis is None else axis),
        cumulative_prod=lambda x, axis=None: torch.cumprod(x, 0 if axis is None else axis),
        sort=lambda x, axis=-1, descending=False: (
            torch.sort(x, dim=axis, descending=descending, stable=True).values
        ),
        tile=lambda x, n: torch.tile(x, n),
        repeat=lambda x, n, axis=None: torch.repeat_interleave(x, n, dim=axis),
        take_along_axis=lambda x, i, axis=-1: torch.take_along_dim(x, i, dim=axis),
        unstack=lambda x, axis=0: torch.unbind(x, dim=axis),
        expand_dims=lambda x, axis=0: torch.unsqueeze(x, axis),
        stack=lambda xs, axis=0: torch.stack(list(pair_all(xs)), dim=axis),
        concat=lambda xs, axis=0: torch.cat(
            [x.reshape(-1) if axis is None else x for x in pair_all(xs)],
            dim=0 if axis is None else axis,
        ),
        linalg=SimpleNamespace(
            inv=torch.linalg.inv,
            det=torch.linalg.det,
            solve=lambda a, b: torch.linalg.solve(*pair(a, b)),
            cholesky=torch.linalg.cholesky,
            trace=lambda x: torch.trace(x),
            diagonal=lambda x: torch.diagonal(x, dim1=-2, dim2=-1),
            vector_norm=lambda x, axis=None, keepdims=False, ord=2: torch.linalg.vector_norm(
                x, ord=ord, dim=axis, keepdim=keepdims
            ),
            outer=lambda a, b: torch.outer(*pair(a, b)),
            eigvalsh=torch.linalg.eigvalsh,
            svdvals=torch.linalg.svdvals,
            slogdet=torch.linalg.slogdet,
            matrix_norm=torch.linalg.matrix_norm,
            pinv=torch.linalg.pinv,
            matrix_power=torch.linalg.matrix_power,
        ),
    )

    def pair_all(xs):
        dtype = xs[0].dtype
        for x in xs[1:]:
            dtype = torch.promote_types(dtype, x.dtype)
        return [x.to(dtype) for x in xs]

    two = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "hypot", "atan2",
           "copysign", "logaddexp", "remainder", "floor_divide", "xlogy"]  # fmt: skip
    for name in two:
        function = {"divide": torch.true_divide, "atan2": torch.atan2, "xlogy": torch.special.xlogy}
        names[name] = binary(function.get(name) or getattr(torch, name))
    names["pow"] = power

    class Namespace:
        def __getattr__(self, name):
            found = getattr(compat, name, None)
            if found is None:
                found = getattr(torch, name)
            setattr(self, name, found)
            return found

    space = Namespace()
    for name, function in names.items():
        setattr(space, name, function)
    return space
