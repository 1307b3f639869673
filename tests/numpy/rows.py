"""Calls that mean the same in NumPy and in `wengert.numpy`: ``n`` is the library.

Each row is an expression; two blanks stand between two on a line. Values and dtypes are compared,
and derivatives by the floating arguments with differences. `WITHOUT` lists lines whose values alone
are compared.
"""

from typing import Any

import numpy as np

from tests.walking import lines_of


def arguments() -> dict[str, Any]:
    rng = np.random.default_rng(7)
    square = rng.normal(size=(3, 3))
    return {
        "x": rng.normal(size=(3, 4)),
        "y": rng.normal(size=(3, 4)),
        "v": rng.normal(size=5),
        "w": rng.uniform(0.5, 2.0, size=5),
        "a": square + 3 * np.eye(3),
        "t": rng.normal(size=(6, 3)),
        "b": rng.normal(size=6),
        "s": np.float64(1.3),
        "p": np.sort(rng.uniform(0.2, 6.0, size=6)),
        "z": rng.normal(size=(2, 3, 4)),
        "i": np.array([0, 2, 1, 1, 3]),
        "k": rng.normal(size=(3, 4)) > 0,
        "h": np.array([1, 2, 3]),
        "nan": np.array([[1.0, np.nan, 3.0, 2.5], [np.nan, 5.0, 0.5, 2.0]]),
    }


#: Calls that NumPy's protocols make on Tensors, too: `tests/interplay/test_numpy.py` walks them.
_OF_NUMPY = """
n.copy(v)  n.full_like(v, s)  n.linspace(0, s, 5)  n.linspace(s, 2, 4, endpoint=False)
n.linspace(s, 7.0, num=3, retstep=True)  n.linspace(v, w, 4)  n.linspace(v, w, 4, axis=-1)
n.logspace(0, s, 4)  n.logspace(0, s, 4, base=2)  n.geomspace(s, 20, 4)  n.geomspace(-s, -20, 4)
n.diag(v)  n.diag(x)  n.vander(v)  n.vander(v, 3)  n.vander(v, 3, increasing=True)  n.exp(x)
n.sin(x) + n.cos(y)  n.add(x, y)  n.add(x, 1)  n.maximum(x, 0)  n.maximum(0.0, x)  n.minimum(x, y)
n.power(w, 2)  n.power(w, v)  n.hypot(x, y)  n.arctan2(x, y)  n.abs(x)  n.absolute(x)  n.sqrt(w)
n.log(w)  n.sign(x)  n.square(x)  n.mod(x, 0.7)  n.deg2rad(x)
n.divide(x, w[0])  n.add.reduce(x)  n.add.reduce(x, 1)  n.add.accumulate(v)
n.multiply.accumulate(v)  n.maximum.accumulate(v)  n.minimum.accumulate(x, axis=1)
n.maximum.accumulate(x)  n.add.outer(v, w)  n.subtract.outer(v, v)  n.multiply.outer(v, w)
n.maximum.reduce(x, axis=1)  n.sum(x)  n.sum(x, 0)  n.sum(x, axis=(0, 1), keepdims=True)
n.sum(x, 1, float)  n.mean(x)  n.mean(x, 0)  n.mean(x, axis=1, keepdims=True)  n.std(x)
n.std(x, 0)  n.std(x, axis=1, ddof=1)  n.var(x, ddof=1)  n.max(x)  n.max(x, 1)  n.amax(x, axis=0)
n.min(x, axis=1, keepdims=True)  n.ptp(x)  n.prod(v)  n.cumsum(x)  n.cumsum(x, 1)  n.cumprod(v)
n.average(v, weights=w)  n.median(v)  n.median(x, axis=0)  n.percentile(v, 30)
n.percentile(v, [25, 75])  n.quantile(x, 0.3, axis=1)  n.nanmedian(nan)  n.nanmedian(nan, axis=0)
n.nanmedian(nan, axis=1, keepdims=True)  n.nanquantile(nan, 0.3)
n.nanquantile(nan, [0.2, 0.9], axis=1)  n.nanpercentile(nan, 40, axis=1)  n.nanmean(nan)
n.nanprod(nan, axis=0)  n.nancumsum(nan, axis=1)  n.nancumprod(nan, axis=0)
n.nansum(nan, axis=0)  n.nanmax(nan)  n.nanstd(nan, axis=1)  n.cov(x)  n.corrcoef(x)
n.histogram(i, bins=4, weights=w)  n.histogram(v, bins=3)  n.histogram(v, bins=3, density=True)
n.bincount(i, weights=w)  n.bincount(i, w, 7)  n.interp(s, p, b)  n.polyfit(p, b, 2)
n.polyfit(p, b, 1, w=n.abs(b))  n.polyfit(p, b, 1, cov=True)  n.polyfit(p, t, 2)  n.polyval(v, s)
n.polyval(v, x)  n.convolve(v, b)  n.convolve(v, b, mode="same")
n.trapezoid(b, p)  n.diff(v)  n.diff(x, axis=0)  n.gradient(v)  n.gradient(x, axis=0)
n.unwrap(3 * v)  n.unwrap(3 * x, axis=0)  n.cross(a, a[::-1])  n.dot(a, a)  n.dot(v, w)
n.dot(v, v[0])  n.dot(v[0], v[1])  n.dot(z, v[: z.shape[-1]])  n.dot(a, a[0])
n.vdot(v, w)  n.inner(v, w)  n.outer(v, w)  n.matmul(a, a)  n.kron(v, w)
n.tensordot(z, x, axes=([1, 2], [0, 1]))  n.einsum("ij,ij->i", x, y)  n.einsum("ij,kj", x, y)
n.trace(a)  n.linalg.inv(a)  n.linalg.det(a)  n.linalg.solve(a, a[0])  n.linalg.norm(v)
n.linalg.norm(x, axis=1)  n.linalg.slogdet(a)  n.linalg.pinv(t)  n.linalg.cholesky(a @ a.T)
n.linalg.eigvalsh(a + a.T)  n.linalg.matrix_power(a, 3)  n.linalg.multi_dot([a, a, a])
n.linalg.svd(t, compute_uv=False)  n.concatenate([v, w])  n.concatenate((x, y), axis=1)
n.concatenate([[s], v])  n.concatenate([v, [1.0]])  n.stack([v, w])  n.stack([v, w], axis=1)
n.vstack([v, w])  n.hstack([v, s])  n.hstack([s, v, [1.0]])  n.dstack([x, y])
n.column_stack([v, w])  n.append(v, s)  n.append(v, [s, 2.0])  n.append([1.0, 2.0], s)
n.append([], s)  n.append(x, [[s, 1, 2, 3]], axis=0)  n.insert(v, 1, s)
n.insert(v, [0, 2], [s, s])  n.delete(v, 1)  n.delete(x, [0, 1], axis=1)  n.resize(v, (2, 4))
n.resize(v, 3)  n.repeat(v, 2)  n.repeat(x, 2, axis=0)  n.tile(v, 2)  n.tile(x, (2, 1))
n.block([[a, a], [a, a]])  n.reshape(x, (4, 3))  n.reshape(x, -1)  n.ravel(x)  n.transpose(z)
n.transpose(z, (1, 0, 2))  n.swapaxes(z, 0, 2)  n.swapaxes(z, axis1=0, axis2=1)
n.moveaxis(z, 0, -1)  n.expand_dims(v, 0)  n.expand_dims(v, axis=1)  n.squeeze(v[None])
n.atleast_1d(s)  n.atleast_2d(v)  n.broadcast_to(v, (2, 5))  n.flip(x, 0)  n.fliplr(x)  n.flipud(x)
n.rot90(x)  n.roll(v, 2)  n.split(b, 3)  n.array_split(v, 2)  n.hsplit(x, 2)  n.meshgrid(v, w)
n.tril(a)  n.triu(a, 1)  n.pad(v, 1)  n.pad(v, (1, 2), mode="edge")  n.where(x > 0, x, 0)
n.where(k, x, y)  n.select([x > 1, x > 0], [x, x ** 2], 0.5)  n.correlate(v, b, "full")
n.piecewise(v, [v < 0, v >= 0], [lambda u: -u, lambda u: u ** 2])
n.piecewise(v, [v < 0], [1.0, lambda u: 3 * u])  n.choose([0, 1, 0, 1, 1], [v, w])
n.choose(h - 1, [v[:3], w[:3], 2 * v[:3]])  n.clip(x, -0.5, 0.5)  n.clip(x, 0, None)
n.nan_to_num(nan)  n.take(v, [0, 2])  n.take(x, 1, axis=0)
n.take_along_axis(x, n.argsort(x, axis=1), axis=1)  n.sort(v)
n.sort(x, axis=0)  n.sort(n.partition(v, 2)[:2])  n.partition(v, 2)[2]  n.fft.fft(v).real
n.abs(n.fft.rfft(v))  n.fft.ifft(n.fft.fft(v)).real  n.real(v * 1j)  n.angle(v + 1j * w)
n.round(x, 2)  n.floor(x)  n.sinc(v)  n.i0(v)  n.heaviside(x, 0.5)  n.ptp(x, 0)  n.float64(2.0) * v
"""
#: Calls, methods and operators of the room alone.
OF_THE_ROOM = """
n.eye(3) * s  n.identity(2) * s  n.tri(3) * a  n.histogram(v, bins=3, range=(-2, 2), weights=w)
n.histogram(v, n.linspace(-3, 3, 5), weights=w)  n.real_if_close(n.array([1.0 + 1e-18j, 2.0])) * s
n.fromfunction(lambda i, j: i * s + j, (2, 3))  n.array([s, 2.0, s * s])
n.array([[s, 1], [v[0], v[1]]])  n.array([v, w])  n.array(v, dtype=n.float32)  n.array(v, ndmin=2)
n.array([s])  n.asarray([s, s])  n.asarray(v)  n.full(3, s)  n.full((2, 2), s)  n.zeros_like(v)
n.ones_like(h)  n.empty_like(x).shape  n.arange(s, 5)  n.arange(0, 2, s)
n.multiply(x, y, where=k, out=n.zeros((3, 4)))  n.divide(h, 2)  n.sqrt(h)  n.sin(h)  h / 2  h * 0.5
h + s  h.mean()  h.std()  h.sum()  h.prod()  h.cumsum()  h.max()  k.sum()  k.mean()  k.all()
n.round(h, 2)  n.round(h * 15, -1)  h.astype(n.int8) * n.int32(100)
n.int64(100) + h.astype(n.uint8)  h.astype(n.float32) * n.float64(0.1)
n.float32(0.5) * h.astype(n.int8)  k * n.float32(2)  h.astype(n.int8) * 2
x.astype(n.float32) * 2.5  h ** 2  n.sum([s, 2.0])  n.mean(h)  n.std(x, 0, None, None, 1)
n.bincount(i)  n.digitize(v, [-1, 0, 1])  n.interp(n.array([0.5, 1.5, s]), p, b)
n.polyval([s, 1.0, 2.0], 3.0)  n.linalg.norm([s, 2.0])  n.linalg.lstsq(t, b, rcond=None)
n.linalg.lstsq(t, t[:, :2], rcond=None)  n.linalg.lstsq(t.T, a[0], rcond=None)
n.concatenate([[s, s], [1.0, 2.0]])  n.stack([[s, 1.0], [2.0, s]])  n.vstack(([s, 1.0], [2.0, s]))
n.r_[v, s, 1.0]  n.r_[0.0, s]  n.r_[1:4, v]  n.r_[x, y]  n.r_[z, z]  n.c_[v, w]  n.c_[v, w, w]
n.c_[x, h, y]  n.c_[z, z]  n.where(x > 0)  n.argsort(v)  n.argmax(x)  n.argmax(x, axis=1)
n.argmin(x, 0)  n.nonzero(x > 0)  n.argwhere(x > 0)  n.flatnonzero(x > 0)
n.searchsorted(n.sort(v), 0.2)  n.unique(i)  n.unique(i, return_counts=True)
n.count_nonzero(x > 0)  n.all(x > -9)  n.any(x > 0, axis=0)  n.isnan(nan)  n.isclose(x, x)
n.allclose(x, y)  n.array_equal(x, x)  n.ix_([0, 2], [1, 3])  x[n.ix_([0, 2], [1, 3])]
n.vectorize(lambda q: q ** 2 if q > 0 else 3 * q)(v)  n.ndim(x)  n.shape(x)  n.size(x)
n.size(x, 0)  n.shape([s, s])  x.std()  x.std(0)  x.std(axis=1, ddof=1)  x.var(1)  x.max(1)
x.min(axis=0)  x.max()  x.mean(0)  x.sum(axis=1, keepdims=True)  x.sum(0, float)  x.prod(1)
x.cumsum()  x.cumsum(1)  x.argsort()  x.argmax(1)  x.T  z.T  z.transpose(1, 0, 2)
z.transpose((2, 0, 1))  x.transpose()  z.swapaxes(0, 1)  x.reshape(4, 3)  x.reshape((2, 6))
x.reshape(-1)  x.ravel()  x.flatten()  x.repeat(2)  x.repeat(2, axis=1)  x.round(1)  x.clip(-1, 1)
x.clip(min=0)  x.dot(x.T)  x.trace()  x.diagonal()  x.take([0, 1], axis=1)  x.nonzero()
(x > 0).nonzero()  x.squeeze()  x.copy()  x.astype(n.float32)  x.astype(int)  x.conj()  x.flat[5]
x.flat[2:4]  x.nbytes  x.itemsize  x.size  x[0]  x[:, 1]  x[..., 0]  x[[0, 2]]  x[x > 0]
x[1, [0, 2]]  z[0, :, [0, 2]]  z[:, [0, 1], 1]  x[None].shape  x[-1, -1]  v[::-1]  v[h]  sum(v)
max(v)  abs(v)  -v  v @ w  x % 1.5  x // 0.7  w ** 2.5  2 ** v  s * v
"""
OF_NUMPY = lines_of(_OF_NUMPY)
ROWS = [*OF_NUMPY, *lines_of(OF_THE_ROOM)]

#: Lines whose derivatives no difference gives: of steps, sets, questions and whole numbers.
WITHOUT = ("n.float32", "n.empty_like", "x.astype(n.float32)", "dtype=n.float32")
