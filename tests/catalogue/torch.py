"""Calls that mean the same in PyTorch and in `wengert.torch`: ``t`` is the library.

Each row ends in an expression; two blanks stand between two rows on a line. Its value, its dtypes,
the names of its pairs and its gradients by the floating arguments are compared. The arguments are
those of `arguments`. ``fill(module)`` gives known values to a module's parameters, and
``steps(make)`` a parameter after an optimiser's steps.
"""

from typing import Any

import numpy as np

from tests.walking import lines_of


def arguments(seed: int, dtype: str) -> dict[str, Any]:
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> Any:
        return rng.normal(size=shape).astype(dtype)

    square = normal(3, 3)
    return {
        "x": normal(3, 4),
        "y": normal(3, 4),
        "v": normal(4),
        "w": normal(4),
        "m": normal(4, 5),
        "b": normal(2, 3, 4),
        "c": normal(2, 4, 5),
        "a": normal(3, 5),
        "s": square @ square.T + 3 * np.eye(3, dtype=dtype),
        "p": rng.uniform(0.1, 0.9, size=(3, 4)).astype(dtype),
        "i": rng.integers(-5, 9, size=(3, 4)),
        "j": rng.integers(1, 5, size=(3, 4)),
        "l": rng.integers(0, 3, size=(2, 4)),
        "n": rng.integers(0, 4, size=3),
        "h": rng.integers(-5, 5, size=(3, 4)).astype(np.int32),
        "k": rng.normal(size=(3, 4)) > 0,
        "u": rng.integers(0, 2, size=(3, 4)).astype(dtype),
        "f": normal(2, 3, 6, 6),
    }


REDUCTIONS = """
t.sum(x)  t.sum(x, 1)  t.sum(x, dim=(0, 1), keepdim=True)  t.sum(x, axis=0)  t.sum(k)
t.sum(h, dim=0)  t.sum(x, dim=[])  t.sum(i, dim=0, dtype=t.float64)  x.sum()  x.sum(-1, True)
x.sum(dim=0, keepdim=True)  t.mean(x)  t.mean(x, dim=1, keepdim=True)  x.mean(0)
x.mean(dim=(0, 1))  x.mean(axis=1, keepdims=True)  t.mean(i, dtype=t.float64)  t.std(x)
t.std(x, dim=0)  t.std(x, 1, unbiased=False)  t.std(x, dim=1, correction=0, keepdim=True)  x.std()
x.std(0)  x.std(False)  x.std(dim=1, unbiased=False, keepdim=True)  x.std(axis=1)  t.var(x)
t.var(x, dim=-1, keepdim=True, unbiased=False)  x.var(0)  x.var(0, False)  t.max(x)  t.max(x, 1)
t.max(x, dim=0, keepdim=True)  t.max(x, y)  t.max(i, 0)  x.max()  x.max(1)  x.max(-1, keepdim=True)
x.max(y)  x.max(1)[1]  t.min(x)  t.min(x, 1)  t.min(x, y)  x.min()  x.min(dim=0)  t.amax(x, dim=1)
t.amin(x, dim=(0, 1), keepdim=True)  x.amax(0)  t.argmax(x)  t.argmax(x, dim=1)
t.argmax(x, 1, True)  x.argmax(dim=-1, keepdim=True)  x.argmin(1)  t.argmin(x)  t.median(x)
t.median(x, dim=1)  x.median()  x.median(dim=0, keepdim=True)  t.median(v)  t.mode(n)
t.kthvalue(x, 2)  t.kthvalue(x, 2, dim=0, keepdim=True)  t.sort(x)
t.sort(x, dim=0, descending=True)  x.sort(1)  x.sort(descending=True)  t.argsort(x, dim=0)
x.argsort(-1, True)  t.topk(x, 2)  t.topk(x, k=2, dim=0, largest=False)  x.topk(3, dim=1)
t.cumsum(x, dim=1)  t.cumsum(h, 0)  x.cumsum(0)  t.cumprod(x, dim=1)  x.cumprod(-1)
t.cummax(x, dim=1)  t.cummin(x, dim=0)  t.cummax(v, 0)  t.prod(x)  t.prod(x, dim=1)
x.prod(0, keepdim=True)  t.all(k)  t.all(k, dim=1)  t.any(k, dim=0, keepdim=True)  k.all()
k.any(1)  t.logsumexp(x, dim=1)  x.logsumexp(0, keepdim=True)  t.norm(x)  t.norm(x, p=1, dim=1)
t.norm(x, dim=0, keepdim=True)  t.norm(x, 2, 1)  x.norm()  x.norm(2, dim=1)
x.norm(dim=-1, keepdim=True)  x.norm(p=1)  t.count_nonzero(k)  t.count_nonzero(i, dim=1)
t.quantile(x, 0.3)  t.quantile(x, 0.5, dim=1, keepdim=True)  t.bincount(n)
t.bincount(n, minlength=7)  t.unique(n)  t.unique(i, return_inverse=True, return_counts=True)
t.diff(x)  t.diff(x, dim=0)  x[0, 0].sum(0)  x[0, 0].mean(-1, keepdim=True)  x[0, 0].max(0)
x[0, 0].median(-1)  x[0, 0].topk(1)  x[0, 0].sort(dim=0)  x[0, 0].argmax(0)  x[0, 0].cumsum(-1)
x[0, 0].softmax(0)  x[0, 0].logsumexp(dim=0)  x[0, 0].norm(dim=0)  x[0, 0].std(0).isnan()
t.max(x[0, 0], v[:1])  t.mode(i % 3, dim=0)  t.mode(i % 3)
t.median(t.tensor([2.0, float("nan"), 1.0, float("nan")]), 0)
t.cummax(t.tensor([2.0, 2.0, 1.0, float("nan"), 5.0, float("nan")]), 0)  t.cummin(i, -1)
j.byte().any()  j.byte().all(1)  j.byte().sum(0)
"""

SHAPES = """
t.cat([x, y])  t.cat((x, y), dim=1)  t.cat([x, y], -1)  t.cat([x, i], axis=0)
t.concat([x, y], dim=1)  t.stack([x, y])  t.stack((x, y), dim=-1)  t.hstack([x, y])
t.vstack([v, w])  t.split(x, 2, dim=1)  t.split(x, [1, 2])  x.split(3, dim=1)  x.split([1, 3], 1)
t.chunk(x, 2)  t.chunk(x, 3, dim=1)  x.chunk(2, dim=-1)  t.unbind(x)  x.unbind(dim=1)  t.flatten(b)
t.flatten(b, 1)  b.flatten(1)  b.flatten(start_dim=0, end_dim=1)  t.squeeze(x[:, :1])
t.squeeze(x[:1], 0)  x.squeeze(1)  x[:, :1].squeeze(-1)  x[:, :1].squeeze(dim=1)  t.unsqueeze(x, 1)
x.unsqueeze(-1)  x.unsqueeze(dim=0)  t.transpose(x, 0, 1)  b.transpose(1, 2)  b.transpose(-2, -1)
x.t()  t.t(x)  x.T  b.mT  t.permute(b, (2, 0, 1))  b.permute(2, 0, 1)  b.permute((1, 0, 2))
t.movedim(b, 0, 2)  t.swapaxes(b, 0, 1)  x.view(-1)  x.view(2, 6)  x.view((4, 3))  x.view(-1, 2)
x.reshape(6, 2)  x.reshape((-1,))  t.reshape(x, (2, 6))  x.view_as(y)  x.expand(2, 3, 4)
x[:, :1].expand(-1, 5)  x[:1].expand_as(y)  x.repeat(2, 1)  v.repeat(3, 2)  t.tile(x, (2, 1))
t.repeat_interleave(x, 2)  t.repeat_interleave(x, 2, dim=1)  x.repeat_interleave(3, dim=0)
t.roll(x, 1)  t.roll(x, shifts=1, dims=1)  t.roll(x, (1, 2), (0, 1))  t.flip(x, (0,))  x.flip(0, 1)
x.flip([1])  t.gather(x, 1, l.t()[:3, :1])  t.gather(x, 0, l)  x.gather(1, i[:, :2] % 4)
x.gather(dim=1, index=n.unsqueeze(1))  t.scatter(x, 1, t.argsort(i.double() + x, dim=1), y)
x.scatter(1, n.unsqueeze(1), 7.0)  t.scatter_add(x, 0, l, y[:2])
t.zeros(3, 4, dtype=x.dtype).scatter_(1, n.unsqueeze(1), 1.0)
t.zeros(3, 4, dtype=x.dtype).scatter_(1, n.view(-1, 1), x[:, :1])
t.zeros(3, 4, dtype=x.dtype).index_add_(0, l[0], x.repeat(2, 1)[:4])
t.zeros(3, 4, dtype=x.dtype).index_add(0, t.tensor([0, 2, 0]), x)
x.index_fill(1, t.tensor([0, 2]), -1.0)  t.index_select(x, 0, t.tensor([2, 0, 2]))
x.index_select(1, n)  t.masked_select(x, k)  x.masked_select(x > 0)  x.masked_fill(k, 0.0)
x.masked_fill(k, float("-inf"))  x.masked_fill(mask=k, value=2)  t.masked_fill(x, k, 1.0)
t.where(k, x, y)  t.where(k, x, 0.0)  t.where(k, 1.0, 0.0)  t.where(k)  x.where(k, y)  t.nonzero(k)
t.nonzero(k, as_tuple=True)  k.nonzero()  t.narrow(x, 1, 1, 2)  x.narrow(0, 1, 2)  x.select(1, 2)
x.select(0, -1)  t.take(x, n)  t.tril(x)  t.triu(x, diagonal=1)  x.tril(-1)  t.diag(v)  t.diag(s)
t.diag(v, 1)  t.diagonal(b, dim1=1, dim2=2)  t.diag_embed(x)  t.diag_embed(v, 1)  t.trace(s)
s.trace()  t.meshgrid(v, w, indexing="ij")  t.meshgrid(v, w, indexing="xy")  t.meshgrid(v, w)
t.broadcast_to(v, (3, 4))  t.broadcast_tensors(x, v)  t.numel(x)  x.numel()  x.nelement()  x.dim()
x.ndim  x.size()  x.size(0)  x.size(-1)  tuple(x.size())  tuple(x.shape)  len(x)  x[0]  x[:, 1]
x[k]  x[n % 3]  x[t.arange(3), n]  x[..., None]  x[None, :, -1]  t.cat([t.tensor([]), x], dim=1)
t.cat([t.tensor([]), n])  t.hstack([t.tensor([]), v])  t.zeros(0, 3).chunk(3)
t.diag_embed(x, -2, 0, 1)  t.diag(x, 1)
t.zeros(3, 4, dtype=x.dtype).scatter_(dim=1, index=n.unsqueeze(1), value=1.0)
t.scatter(x.detach(), 1, n.unsqueeze(1), y.detach(), reduce="add")
t.scatter_reduce(v, 0, t.tensor([0, 3, 0, 3]), w, reduce="sum")
t.scatter_reduce(v, 0, t.tensor([0, 3, 0, 3]), w, "prod", include_self=False)
v.scatter_reduce(0, t.tensor([0, 3, 0, 3]), w, "amax")
v.scatter_reduce(0, t.tensor([0, 3, 0, 3]), w, "amin", include_self=False)
t.zeros(4, dtype=x.dtype).scatter_reduce_(0, t.tensor([0, 3, 0, 3]), w, "sum")
t.searchsorted(v.sort()[0], w)
t.searchsorted(t.tensor([1, 2, 2, 3]), t.tensor([2, 0]), right=True)
t.searchsorted(t.tensor([1, 2, 2, 3]), t.tensor([2, 9]), side="right")
x[t.tensor([1, 0, 1], dtype=t.uint8)]  x[(j % 2).byte()]  x[t.tensor([1, 0, 1], dtype=t.uint8), 0]
a = x.detach().clone(); a[t.tensor([1, 0, 1], dtype=t.uint8)] = y[:2].detach(); a
t.flip(x, dims=(0,))  x.permute(dims=(1, 0))  t.tile(x, dims=(2,))
"""

ELEMENTS = """
t.abs(x)  t.exp(x)  t.log(p)  t.sqrt(p)  t.rsqrt(p)  t.square(x)  t.sin(x)  t.cos(x)  t.tan(x)
t.acos(p)  t.asin(p)  t.atan(x)  t.atan2(x, y)  t.sinh(x)  t.cosh(x)  t.tanh(x)  t.sigmoid(x)
t.relu(x)  t.softmax(x, dim=1)  t.softmax(x, -1)  t.softmax(x, axis=0)  t.log_softmax(x, dim=1)
x.softmax(dim=-1)  x.softmax(1)  x.log_softmax(dim=0)  x.sigmoid()  x.tanh()  x.relu()
t.clamp(x, -0.5, 0.5)  t.clamp(x, min=0.0)  x.clamp(0, 1)  x.clamp(max=0.3)  x.clamp(min=0)
t.clamp_min(x, 0.1)  t.add(x, y)  t.add(x, y, alpha=2)  x.add(1)  t.sub(x, y, alpha=0.5)  x.sub(y)
t.mul(x, y)  x.mul(2)  t.div(x, y)  x.div(y)  t.div(x, y, rounding_mode="floor")
t.div(i, j, rounding_mode="trunc")  t.div(i, j)  i / j  i // j  t.floor_divide(i, j)
t.remainder(i, j)  i % j  t.fmod(x, y)  t.fmod(u, 2)  t.fmod(u * 3 - 4, -2)
t.sign(t.tensor([float("nan"), -2.0]))  t.sign(i)
x.detach().clone().div_(2, rounding_mode="floor")  t.fmod(i, j)  t.pow(x, 2)  t.pow(p, 0.5)
x.pow(3)  x**2  2**x  t.pow(2, x)  i**2  t.neg(x)  -x  t.reciprocal(p)  t.sign(x)  t.floor(x)
t.ceil(x)  t.round(x)  t.trunc(x)  x.floor()  x.ceil()  x.round()  t.maximum(x, y)  t.minimum(x, y)
t.lerp(x, y, 0.3)  t.eq(x, y)  t.ne(i, j)  t.gt(x, y)  t.lt(x, 0)  t.ge(i, j)  t.le(i, 2)  x.eq(y)
x.gt(0)  x.lt(y)  i.eq(i)  x == y  (x > 0) & (y > 0)  ~k  t.equal(x, x)  t.equal(x, y)  x.equal(x)
t.allclose(x, x)  t.allclose(x, y)  t.isclose(x, y)  t.logical_and(k, x > 0)  t.logical_or(i, j)
t.logical_not(k)  t.isnan(x)  t.isinf(x)  t.isfinite(x)  t.erf(x)  t.erfinv(p)  t.lgamma(p)
t.digamma(p)  t.log1p(p)  t.expm1(x)  t.log2(p)  t.log10(p)  t.exp2(x)  t.hypot(x, y)
t.logaddexp(x, y)  t.logit(p)  t.xlogy(x, p)  t.sinc(x)  t.addcmul(x, y, y, value=0.5)
t.addcdiv(x, y, p, value=2)  t.is_tensor(x)  t.is_floating_point(x)  x.is_floating_point()
x.is_complex()  x + i  x * 2  i * 2.5  i + 1  k + 1  k * x  h + i  x.exp().log()  x.abs()  x.sqrt()
x.float()  x.double()  i.float()  x.long()  x.int()  x.bool()  k.float()  k.long()  x.to(t.float64)
x.to(dtype=t.float32)  x.type(t.float64)  x.type_as(i)  x.type(t.LongTensor)  x.float().type()
i.type()  i.mean(dtype=t.float32)  x.item if False else x.sum().item()  x.tolist()
x.detach().numpy().shape  t.mm(x, m)  x.mm(m)  t.mv(x, v)  t.dot(v, w)  v.dot(w)  t.bmm(b, c)
b.bmm(c)  t.matmul(x, m)  t.matmul(b, c)  x.matmul(v)  x @ m  t.einsum("ij,jk->ik", x, m)
t.einsum("ij,jk->ik", [x, m])  t.einsum("bij,bjk", b, c)  t.outer(v, w)  v.ger(w)
t.tensordot(x, m, dims=1)  t.tensordot(x, y, dims=([0], [0]))  t.addmm(a, x, m)
t.addmm(a, x, m, beta=0.5, alpha=2)  t.baddbmm(t.zeros(2, 3, 5, dtype=x.dtype), b, c)
t.cross(x[:, :3], y[:, :3])  t.cdist(x, y)  t.inverse(s)  t.det(s)  t.cholesky(s)  t.linalg.norm(x)
t.linalg.norm(x, dim=1)  t.linalg.vector_norm(x, dim=1, keepdim=True)  t.linalg.inv(s)
t.linalg.det(s)  t.linalg.solve(s, x)  t.linalg.cholesky(s)  t.linalg.eigvalsh(s)
t.linalg.slogdet(s)[1]  t.linalg.matrix_norm(x)  t.linalg.svdvals(x)  t.fft.fft(x, dim=0).abs()
t.fft.rfft(x).real  t.fft.fft2(x).imag  t.special.expit(x)  t.special.gammaln(p)
"""

CONSTRUCTORS = """
t.zeros(2, 3)  t.zeros((2, 3))  t.zeros([2, 3], dtype=t.long)  t.zeros(size=(2,))
t.zeros(x.size())  t.zeros(*x.shape)  t.zeros(())  t.ones(3, dtype=t.float64)
t.ones(2, requires_grad=True)  t.full((2, 3), 1.5)  t.full((2,), 3)  t.full([2], True)
t.full(size=(2,), fill_value=1.0, dtype=t.float64)  t.arange(5)  t.arange(1, 5)
t.arange(0, 1, 0.25)  t.arange(5.0)  t.arange(start=1, end=9, step=2)  t.arange(5, dtype=t.float32)
t.linspace(0, 1, 5)  t.linspace(0, 1, steps=3)  t.linspace(-1.0, 1.0, 4, dtype=t.float64)  t.eye(3)
t.eye(2, 3)  t.zeros_like(x)  t.ones_like(i)  t.ones_like(x, dtype=t.long)  t.full_like(x, 2)
t.empty_like(x).shape == x.shape  t.tensor([1, 2])  t.tensor([1.0, 2])  t.tensor(3)
t.tensor(2.5, dtype=t.float64)  t.tensor([[True], [False]])  t.tensor([1.0], requires_grad=True)
t.as_tensor([1, 2])  t.FloatTensor([1, 2])  t.FloatTensor([[1.5, 2]])  t.LongTensor([1, 2])
t.Tensor([1, 2])  t.Tensor()  t.FloatTensor()  t.tensor([v[0], v[1]]).requires_grad
t.tensor([np.float32(1.5), 2.5])  t.tensor([np.float64(1.5), 2.5])
t.as_tensor([[np.int64(3), 2], [0.5, True]])
t.tensor([np.int32(3), 2.5], requires_grad=True).requires_grad
t.tensor([np.arange(2), [0.5, 1.5]], dtype=t.float64)  t.as_tensor([v[0], 2.0]).requires_grad
t.as_tensor(v).requires_grad  t.Tensor([v[0], 2]).requires_grad
x.new_tensor([v[0], 2]).requires_grad  t.normal(x, 0.0)  t.normal(x, std=x.abs() * 0)
f"{t.tensor(2)} {t.tensor(0.5, requires_grad=True)} {t.tensor(0.25):.1f} {t.tensor([2])}"
t.Tensor(2, 3).shape == (2, 3)  t.DoubleTensor([1])  t.BoolTensor([True])  t.ByteTensor([1])
isinstance(x, t.Tensor)  isinstance(i, t.LongTensor)  isinstance(x, t.LongTensor)
type(x) == t.Tensor, t.Tensor == type(x), type(x) != t.Tensor, type(x) in {t.Tensor: 1}
type(x) == t.FloatTensor, type(x) == t.autograd.Variable, type(nn.Parameter(x.detach())) == t.Tensor
x.new_zeros(2, 3)  x.new_zeros((2,))  x.new_ones(3)  x.new_full((2,), 3)
x.new_full((2,), 3, dtype=t.long)  x.new_tensor([1, 2])  x.clone()  x.data  x.detach()
x.contiguous()  x.cpu()  x.to("cpu")  x.to(t.device("cpu"))  x.device.type
str(t.device("cuda", 1))  t.device("cuda:0").index  t.cuda.is_available()  x.requires_grad
t.zeros(2).requires_grad  t.zeros(2, 3).fill_(2)  t.ones(3).zero_()
t.ones(3).add_(2).mul_(3).sub_(1).div_(2)  t.ones(3).add_(t.ones(3), alpha=3)
t.tensor([4.0, 9.0]).sqrt_()  t.tensor([4.0, -9.0]).abs_().log_()
t.tensor([4.0, -9.0]).clamp_(0, 5)  t.tensor([4.0, -9.0]).clamp_(min=-1)
t.tensor([4.0, -9.0]).masked_fill_(t.tensor([True, False]), 1.0)
t.tensor([4.0, -9.0]).copy_(t.ones(2))  t.ones(2).unsqueeze_(0)  t.ones(2, 1).squeeze_()
t.ones(2, 3).t_()  t.ones(3).exp_()  t.ones(3).pow_(2)  t.ones(3).neg_()
t.zeros(3, 4).index_fill_(1, t.tensor([0]), 2.0)  t.randn(2, 3).shape == (2, 3)
t.randn((2, 3), dtype=t.float64).dtype == t.float64  t.randn(size=(2,)).shape == (2,)
t.rand(2, 3).dtype  t.randint(0, 5, (3,)).dtype  t.randint(5, (3,)).shape == (3,)
t.randint(low=0, high=5, size=(2, 2)).shape == (2, 2)  t.randperm(4).sort()[0]
t.randn_like(x).dtype  t.rand_like(x).shape == x.shape  t.normal(0, 1, size=(3,)).shape == (3,)
t.normal(mean=t.zeros(2), std=t.ones(2)).shape == (2,)  t.empty(2, 3).normal_().shape == (2, 3)
t.empty(4).uniform_(0, 1).shape == (4,)  t.empty(4).uniform_(2, 3).min() >= 2
t.empty(4).random_(0, 3).max() < 3  t.multinomial(p, 1).shape == (3, 1)
t.multinomial(p, 4).sort()[0]  t.multinomial(t.tensor([0.0, 1.0]), 3, replacement=True)
t.bernoulli(t.tensor([0.0, 1.0]))  t.finfo(t.float32).eps  t.iinfo(t.int32).max  t.is_tensor(3)
t.Size([2, 3]).numel()  t.pi
"""

FUNCTIONAL = """
F.relu(x)  F.relu(x * 1, inplace=True)  F.relu(x * 1, True)  F.leaky_relu(x * 1, 0.3, True)
F.elu(x, 1.0, False)  F.dropout(x * 1, 0.5, False, True)
F.leaky_relu(x, 0.2)  F.leaky_relu(x, negative_slope=0.1)  F.elu(x)  F.gelu(x)  F.silu(x)
F.selu(x)  F.softplus(x)  F.tanh(x)  F.sigmoid(x)  F.logsigmoid(x)
F.softmax(x, dim=1)  F.log_softmax(x, dim=-1)  F.normalize(x, dim=1)  F.normalize(x, p=1, dim=0)
F.linear(x, a.t()[:, :1].expand(5, 4))  F.linear(x, m.t(), v[:1].expand(5))
F.one_hot(n, num_classes=5)  F.one_hot(n)  F.pad(x, (1, 2))  F.pad(x, (1, 1, 0, 2), value=2.0)
F.pad(f, (1, 1, 1, 1), mode="reflect")  F.interpolate(f, scale_factor=2)
F.interpolate(f, size=(4, 4), mode="bilinear", align_corners=False)  F.max_pool2d(f, 2)
F.avg_pool2d(f, 2)  F.adaptive_avg_pool2d(f, (1, 1))  F.adaptive_avg_pool2d(f, 1)
F.conv2d(f, f[:, :, :3, :3], padding=1)  F.conv2d(f, f[:, :, :3, :3], None, 2, 1)
F.conv1d(b, b[:, :, :2])
F.conv_transpose2d(f, f[:, :3, :2, :2].transpose(0, 1)[:3].repeat(1, 1, 1, 1), stride=2)
F.dropout(x, p=0.5, training=False)  F.dropout(x, 0.0)  F.layer_norm(x, (4,))
F.layer_norm(x, (4,), weight=v, bias=w)  F.embedding(n, x.repeat(2, 1))  F.cosine_similarity(x, y)
F.cosine_similarity(x, y, dim=0)  F.unfold(f, kernel_size=3, stride=2)
F.scaled_dot_product_attention(b, b, b)  F.scaled_dot_product_attention(b, b, b, is_causal=True)
F.mse_loss(x, y)  F.mse_loss(x, y, reduction="sum")  F.mse_loss(x, y, size_average=False)
F.mse_loss(x, y, False)  F.mse_loss(x, y, None, None, "sum")
F.smooth_l1_loss(x, y, None, None, "sum", 0.5)  F.huber_loss(x, y, "sum", 0.3)
nn.HuberLoss("sum", 0.3)(x, y)  F.gaussian_nll_loss(x, y, p, True)
F.gaussian_nll_loss(x, y, p, False, 0.5, "sum")  F.dropout(x, 0.5, False) is x
F.dropout(x, 0.0) is x  nn.Dropout(0.5).eval()(x) is x  nn.Dropout2d(0.0)(f) is f
nn.Identity()(x) is x  F.cross_entropy(x, n, None, None, 0)
F.cross_entropy(x, n, p[0].detach(), False)
F.cross_entropy(x, n, None, None, -100, None, "sum", 0.1)  F.nll_loss(x, n, None, False)
F.binary_cross_entropy(p, u, None, None, None, "sum")
F.binary_cross_entropy_with_logits(x, u, None, None, None, "none", p[0].detach())
F.kl_div(t.log(p), p.detach(), None, None, "sum")  nn.MSELoss(False)(x, y)
nn.MSELoss(None, None, "none")(x, y)  nn.CrossEntropyLoss(p[0].detach(), False)(x, n)
nn.NLLLoss(None, None, 1)(x, n)  nn.BCELoss(None, False)(p, u)
F.gumbel_softmax(x, tau=0.5, hard=True).sum(-1)
F.gumbel_softmax(x, 1, True, dim=0).detach().amax(0)  F.mse_loss(x, y, reduce=False)
F.l1_loss(x, y)  F.l1_loss(x, y, reduction="none")  F.smooth_l1_loss(x, y)  F.huber_loss(x, y)
F.cross_entropy(x, n)  F.cross_entropy(x, n, reduction="none")
F.cross_entropy(x, n, size_average=False)  F.cross_entropy(x, n, ignore_index=1)
F.cross_entropy(x, n, label_smoothing=0.1)  F.cross_entropy(x, n, weight=p[0].detach())
F.nll_loss(F.log_softmax(x, dim=1), n)  F.nll_loss(F.log_softmax(x, dim=1), n, reduction="sum")
F.binary_cross_entropy(p, u)  F.binary_cross_entropy(p, u, reduction="sum")
F.binary_cross_entropy(p, u, weight=p.detach())  F.binary_cross_entropy_with_logits(x, u)
F.binary_cross_entropy_with_logits(x, u, reduction="none")
F.kl_div(t.log(p), p.detach(), reduction="batchmean")  nn.MSELoss()(x, y)
nn.MSELoss(reduction="sum")(x, y)  nn.MSELoss(size_average=False)(x, y)
nn.CrossEntropyLoss()(x, n)  nn.CrossEntropyLoss(reduction="none")(x, n)
nn.NLLLoss()(F.log_softmax(x, dim=1), n)  nn.BCELoss()(p, u)  nn.BCEWithLogitsLoss()(x, u)
nn.L1Loss()(x, y)  nn.SmoothL1Loss()(x, y)
nn.KLDivLoss(reduction="batchmean")(t.log(p), p.detach())  nn.ReLU(inplace=True)(x * 1)
nn.LeakyReLU(0.2, inplace=True)(x * 1)  nn.Softmax(dim=1)(x)  nn.Flatten()(f)
nn.MaxPool2d(kernel_size=2, stride=2)(f)  nn.ZeroPad2d(1)(f)  nn.ReflectionPad2d(1)(f)
nn.Upsample(scale_factor=2)(f)  nn.Identity()(x)  nn.PixelShuffle(1)(f)
nn.utils.rnn.pad_sequence([v, w[:2]], batch_first=True)
nn.utils.rnn.pad_sequence([v, w[:2]], padding_value=-1.0)  D.Normal(x, p).log_prob(y)
D.Normal(0.0, 1.0).log_prob(x)  D.Normal(x, p).entropy()  D.Normal(x, p).stddev
D.Uniform(x - 3, x + 3).log_prob(y * 0.1 + x.detach())  D.Laplace(x, p).log_prob(y)
D.Laplace(x, p).entropy()  D.Exponential(p).log_prob(p.detach())  D.Exponential(p).entropy()
D.Gamma(p, p * 2).log_prob(p.detach())  D.Beta(p, p * 2).log_prob(p.detach())
D.Bernoulli(p).log_prob(u)  D.Bernoulli(logits=x).log_prob(u)  D.Bernoulli(p).entropy()
D.Bernoulli(logits=x).probs  D.Categorical(p).log_prob(n)  D.Categorical(logits=x).log_prob(n)
D.Categorical(logits=x).entropy()  D.Categorical(p).probs  D.Categorical(p).sample().shape == (3,)
D.Categorical(logits=x).sample((5,)).shape == (5, 3)
D.Normal(x, p).rsample((2,)).shape == (2, 3, 4)  D.MultivariateNormal(v[:3], s).log_prob(w[:3])
D.MultivariateNormal(x[:, :3], s).log_prob(y[:, :3])
D.MultivariateNormal(v[:3], scale_tril=t.linalg.cholesky(s)).entropy()
D.Independent(D.Normal(x, p), 1).log_prob(y)  D.kl_divergence(D.Normal(x, p), D.Normal(y, p * 2))
D.kl_divergence(D.Categorical(logits=x), D.Categorical(logits=y))  D.Normal(x, p).batch_shape
D.Categorical(p).batch_shape
"""

MODULES = """
fill(nn.Linear(4, 5))(x)
fill(nn.Linear(4, 5, bias=False))(x)
fill(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Dropout(0.0), nn.Linear(5, 2)))(x)
type("M", (nn.Module,), {"forward": lambda self, a, b=1: a * b})()(x, b=2)
sum(p.numel() for p in fill(nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 2))).parameters())
list(fill(nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5))).state_dict())
fill(nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 3)]))[1](x)
fill(nn.ModuleDict({"a": nn.Linear(4, 4)}))["a"](x)
nn.Parameter(x.detach()).requires_grad
nn.Parameter(x.detach(), requires_grad=False).requires_grad
fill(nn.Conv1d(3, 4, 2, stride=2, padding=1))(b)
fill(nn.Conv2d(3, 2, 3, padding=1))(f)
fill(nn.Conv2d(3, 6, kernel_size=(3, 2), stride=2, groups=3, bias=False))(f)
fill(nn.Conv2d(3, 2, 3, padding=2, dilation=2))(f)
fill(nn.ConvTranspose2d(3, 2, 4, 2, 1))(f)
fill(nn.ConvTranspose2d(3, 2, 3, stride=2, output_padding=1, bias=False))(f)
fill(nn.BatchNorm1d(4))(x)
fill(nn.BatchNorm2d(3))(f)
fill(nn.BatchNorm2d(3, affine=False, momentum=0.5)).eval()(f)
fill(nn.InstanceNorm2d(3, affine=True))(f)
fill(nn.LayerNorm(4))(x)
fill(nn.LayerNorm((6, 6), eps=1e-3))(f)
fill(nn.Embedding(9, 3, padding_idx=0))(j)
fill(nn.LSTM(4, 3, batch_first=True))(b)[0]
fill(nn.LSTM(4, 3, num_layers=2, bidirectional=True))(b)[1][1]
fill(nn.GRU(4, 3, batch_first=True))(b)[1]
fill(nn.RNN(4, 3, nonlinearity="relu"))(b)[0]
fill(nn.RNN(4, 3, 2, batch_first=True))(b, t.ones(2, 2, 3, dtype=x.dtype))[1]
nn.Tanh()(x)
nn.GELU()(x)
nn.Sigmoid()(x)
nn.SiLU()(x)
nn.ELU(alpha=0.5)(x)
nn.LogSoftmax(dim=1)(x)
nn.Dropout(0.5).eval()(x)
nn.Dropout2d(0.5).eval()(f)
nn.AvgPool2d(2)(f)
nn.AvgPool2d(3, stride=2, padding=1)(f)
nn.AdaptiveAvgPool2d((2, 3))(f)
nn.AdaptiveAvgPool2d(1)(f)
nn.DataParallel(nn.Identity())(x)
nn.utils.rnn.pack_padded_sequence(b, t.tensor([3, 2]), batch_first=True).data
t.utils.checkpoint.checkpoint(lambda x: x.exp() * y, x, use_reentrant=False)
nn.init.constant_(t.empty(2, 3), 0.3)
nn.init.zeros_(t.ones(2))
nn.init.ones_(t.zeros(2))
a = nn.init.orthogonal_(t.empty(3, 3)); t.allclose(a @ a.t(), t.eye(3), atol=1e-5)
nn.init.orthogonal_(t.empty(4, 2), gain=2).norm()
nn.init.xavier_uniform_(t.empty(30, 20)).abs().max() <= (6 / 50) ** 0.5
nn.init.xavier_normal_(t.empty(30, 20), gain=0.0)
nn.init.kaiming_uniform_(t.empty(30, 20), a=5**0.5).abs().max() <= 20**-0.5
nn.init.kaiming_normal_(t.empty(9, 20), mode="fan_out", nonlinearity="relu").std() < 0.8
nn.init.normal_(t.empty(2, 3), 0.5, 0.0)
nn.init.uniform_(t.empty(2, 3), 0.5, 0.5)
p = nn.Parameter(x.detach()); (p * 2).sum().backward(); (nn.utils.clip_grad_norm_([p], 1.0), p.grad)
p = nn.Parameter(x.detach()); (p * 2).sum().backward(); (nn.utils.clip_grad_norm([p], 1e-1), p.grad)
steps(lambda p: t.optim.SGD(p, lr=0.1))
steps(lambda p: t.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01, nesterov=True))
steps(lambda p: t.optim.Adam(p))
steps(lambda p: t.optim.Adam([{"params": p, "lr": 0.2}], lr=0.1, betas=(0.5, 0.99)))
steps(lambda p: t.optim.AdamW(p, lr=0.1, weight_decay=0.1))
steps(lambda p: t.optim.RMSprop(p, lr=0.1))
steps(lambda p: t.optim.Adadelta(p, lr=1.0, rho=0.95))
steps(lambda p: t.optim.RAdam(p, lr=0.1))
steps(lambda p: t.optim.LBFGS(p, lr=0.1, max_iter=2))
o = t.optim.SGD([nn.Parameter(x.detach())], 1.0); s = t.optim.lr_scheduler.StepLR(o, 2, 0.5); \
[(o.step(), s.step(), o.param_groups[0]["lr"])[2] for _ in range(5)]
"""

PROGRAMS = """
t.manual_seed(3); a = t.rand(3); t.manual_seed(3); t.equal(a, t.rand(3))
t.cuda.manual_seed(3)
t.cuda.manual_seed_all(3)
t.cuda.device_count()
t.accelerator.current_accelerator()
t.accelerator.is_available()
t.backends.mps.is_available()
t.Tensor.normal_(t.empty(2), 0.5, 0.0)
t.no_grad()(lambda: x * 2)().requires_grad
t.inference_mode()(lambda: x * 2)().requires_grad
t.set_grad_enabled(False); a = x * 2; t.set_grad_enabled(True); a.requires_grad
t.autograd.Variable(x.detach(), requires_grad=True).requires_grad
t.autograd.Variable(x * 2).requires_grad
t.autograd.Variable(x * 2, requires_grad=True).is_leaf
t.autograd.grad((x * x).sum(), x)
t.autograd.grad(t.autograd.grad((x**3).sum(), x, create_graph=True)[0].sum(), x)
t.autograd.grad(x * 2, x, grad_outputs=t.ones_like(x), retain_graph=True)
(x * x).sum().backward(); x.grad
x.detach().clone().requires_grad_().is_leaf
t.from_numpy(x.detach().numpy())
C = type("C", (t.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x * 3), \
"backward": staticmethod(lambda ctx, g: g * 3)}); C.apply(x)
t.save({"a": x.detach(), "n": 3}, path); t.load(path)["a"]
t.save([x.detach(), "word"], path); t.load(path, map_location="cpu")[1]
S = type("S", (t.utils.data.Dataset,), {"__len__": lambda s: 5, "__getitem__": lambda s, i: \
(x.detach()[i % 3], i)}); [a for pair in t.utils.data.DataLoader(S(), batch_size=2) for a in pair]
S = t.utils.data.TensorDataset(x, n); [len(b[0]) for b in t.utils.data.DataLoader(S, 2, True)]
[len(part) for part in t.utils.data.random_split(range(7), [4, 3])]
next(iter(t.utils.data.DataLoader([(0.5, 1), (1.5, 2)], batch_size=2)))
t.utils.data.default_collate([0.5, 1.5])
next(iter(t.utils.data.DataLoader([0.5, 1.5], 2, collate_fn=t.tensor)))
t.func.vmap(lambda a, b: a * b, in_dims=(0, None), out_dims=1)(x, v)
t.amp.GradScaler("cpu", enabled=False).is_enabled()
t.autograd.grad((x * x).sum(), x, None, False, False, True)
[t.utils.data.Subset(t.utils.data.TensorDataset(n), [2, 0])[k][0] for k in (0, 1)]
"""

#: Lines that are errors in both libraries.
REFUSED = """
x.cuda()
x[0, 0].sum(1)
x[0, 0].max(1)
t.cat([t.zeros(0, 3), x], 1)
t.scatter(x, 1, n.unsqueeze(1), y, reduce="mean")
""".strip().splitlines()

ROWS = [
    line
    for text in (REDUCTIONS, SHAPES, ELEMENTS, CONSTRUCTORS, FUNCTIONAL, MODULES, PROGRAMS)
    for line in lines_of(text)
]
