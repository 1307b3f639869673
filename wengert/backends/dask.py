"""Dask: arrays in chunks, computed when their values are asked for."""

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from wengert.backends.backend import TRANSFORMS, Backend, Kernel
from wengert.backends.dask_graphs import data, recomputing
from wengert.backends.dask_linalg import KERNELS as LINALG
from wengert.backends.dask_linalg import Named
from wengert.backends.dtypes import DType
from wengert.backends.generators import HostStream, stream
from wengert.backends.lengths import size_error, unsized
from wengert.backends.special import SCIPY

__all__ = ["BACKEND"]


def rand_like(x: Any, *, dtype: Any) -> Any:
    BACKEND.adopt(x)
    seeds = stream("dask", "cpu", HostStream).generator  # each graph has the next one
    random = BACKEND.dask.random.default_rng(int(seeds.integers(2**63))).random
    short = np.dtype(dtype).itemsize < 4  # NumPy draws no float16
    made = random(x.shape, dtype=np.float32 if short else dtype, chunks=x.chunks)
    return np.minimum(made, 1 - 2.0**-11).astype(dtype) if short else made


def _choose(x: Any, indices: Any, axis: int, indices_axis: int, choose: Kernel) -> Any:
    """Choose along one axis in whole chunks: dask's own forms warn or are missing."""
    dask = BACKEND.dask
    if 0 in x.shape or 0 in indices.shape:  # dask would divide by the size of a chunk
        nothing = np.moveaxis(np.empty(x.shape, x.dtype), axis, -1)
        places = np.moveaxis(np.zeros(indices.shape, np.int64), indices_axis, -1)
        return dask.from_array(np.moveaxis(choose(nothing, places), -1, axis))
    return dask.apply_gufunc(
        choose,
        "(n),(k)->(k)",
        x,
        dask.asarray(indices),
        axes=[(axis,), (indices_axis,), (axis,)],
        output_dtypes=x.dtype,
        allow_rechunk=True,
    )


def take(x: Any, indices: Any, /, *, axis: int) -> Any:
    return _choose(x, indices, axis, 0, partial(np.take, axis=-1))


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    return _choose(x, indices, axis, axis, partial(np.take_along_axis, axis=-1))


def reciprocal(x: Any, /) -> Any:
    """Reciprocal, also of integers, which NumPy divides as integers."""
    return BACKEND.dask.reciprocal(x) if x.dtype.kind in "fc" else 1 / x


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left") -> Any:
    """Also for 0-d ``x2``, which dask fails on."""
    found = BACKEND.dask.searchsorted(x1, x2.reshape(-1), side=side)
    return found.reshape(x2.shape)


def on_chunks(name: str) -> Kernel:
    """NumPy's kernel on each chunk: one task instead of one for each of its steps."""

    def kernel(*arrays: Any, **parameters: Any) -> Any:
        function = Named(name, **parameters)
        # What is wrong with the dtypes is found now, and not when the values are asked for.
        dtype = function(*[np.empty(0, x.dtype) for x in arrays]).dtype
        return BACKEND.dask.core.elemwise(function, *arrays, dtype=dtype)

    return kernel


#: Functions of single elements in many steps, each of which would be a task of its own.
ON_CHUNKS = (
    *SCIPY, "beta", "betaln", "erfcx_slope", "expit", "kl_div", "log_expit", "log_ndtr_slope",
    "logistic_bell", "logit", "polygamma_step", "reduced_bessel", "scaled_bessel_slope", "sign",
    "silu", "sinc", "sinc_derivative", "softplus", "xlog1py", "xlogy",
)  # fmt: skip


@lru_cache
def _sums() -> dict[tuple[int, ...], Any]:
    """The chunks of arrays that were summed, by their shape: for their cotangents.

    Others than the array's own, of another of its shape, are as right, and cost tasks.
    """
    return {}


def summing(name: str) -> Kernel:
    """Dask's sum or mean, which notes the chunks for `broadcast_to`."""

    def kernel(x: Any, /, **parameters: Any) -> Any:
        if not math.isnan(math.prod(x.shape)):
            known = _sums()
            known.pop(x.shape, None)
            known[x.shape] = x.chunks
            if len(known) > 256:
                known.pop(next(iter(known)), None)
        if x.dtype.char == "e" and parameters.get("dtype") is None:  # chunks' sums are NumPy's
            return kernel(x.astype(np.float32), **parameters).astype(x.dtype)
        return getattr(BACKEND.xp, name)(x, **parameters)

    return kernel


def broadcast_to(x: Any, /, shape: tuple[int, ...]) -> Any:
    """In the chunks of an array of that shape that was summed, of which this is the derivative."""
    chunks = _sums().get(tuple(shape))
    skipped = len(shape) - x.ndim
    if chunks is None or skipped < 0 or 0 in shape:
        return BACKEND.dask.broadcast_to(x, shape)
    # The chunks of axes that are repeated are free, and x has the others.
    kept = zip(chunks[skipped:], x.shape, x.chunks, strict=True)
    chunks = (*chunks[:skipped], *(free if n == 1 else own for free, n, own in kept))
    from dask.layers import ArrayChunkShapeDep

    # A layer that dask fuses with what takes it, which its own `broadcast_to` is not.
    axes = tuple(range(len(shape)))
    return BACKEND.dask.blockwise(
        np.broadcast_to, axes, x, axes[skipped:], ArrayChunkShapeDep(chunks), axes,
        adjust_chunks=dict(zip(axes, chunks, strict=True)), align_arrays=False, meta=x._meta,
        dtype=x.dtype,
    )  # fmt: skip


def of_known(name: str) -> Kernel:
    """Dask's function, which would fail on unknown lengths only when it is computed."""

    def kernel(x: Any, /, **parameters: Any) -> Any:
        return getattr(BACKEND.xp, name)(BACKEND.adopt(x), **parameters)

    return kernel


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, endpoint: bool = True, **place: Any
) -> Any:
    # Dask's own is for real numbers.
    if isinstance(start, complex) or isinstance(stop, complex):
        return BACKEND.dask.from_array(
            np.linspace(start, stop, num, dtype=dtype, endpoint=endpoint)
        )
    return BACKEND.xp.linspace(start, stop, num, dtype=dtype, endpoint=endpoint, **place)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any, **place: Any) -> Any:
    # Dask's own loses blocks where the matrix is not square.
    return BACKEND.dask.from_array(np.eye(n_rows, n_cols, k=k, dtype=dtype))


# Dask cannot always reshape what has no elements, and rolls by reshaping.


def reshape(x: Any, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Any:
    if 0 in x.shape:
        return BACKEND.dask.from_array(np.empty(x.shape, dtype=x.dtype).reshape(shape))
    return BACKEND.xp.reshape(x, shape, copy=copy)


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    return x if 0 in x.shape else BACKEND.xp.roll(x, shift, axis=axis)


#: The functions of distinct elements; for each result, whether it has the array's shape.
UNIQUE: Mapping[str, tuple[bool, ...]] = {
    "unique_all": (False, False, True, False),
    "unique_counts": (False, False),
    "unique_inverse": (False, True),
    "unique_values": (False,),
}


def unique(name: str) -> Kernel:
    """NumPy's, of the whole array: dask's own takes each nan for the same, and counts none."""

    def kernel(x: Any, /) -> Any:
        import dask

        function, like = Named(name), UNIQUE[name]
        several = len(like) > 1
        probe = function(np.empty(0, x.dtype))
        made = dask.delayed(function, nout=len(like) if several else None)(x)
        parts = [
            BACKEND.dask.from_delayed(part, x.shape if same else (np.nan,), dtype=found.dtype)
            for part, found, same in zip(
                made if several else [made], probe if several else [probe], like, strict=True
            )
        ]
        return tuple(parts) if several else parts[0]

    return kernel


# Dask's own triangles go through real numbers, and warn of complex ones.


def tril(x: Any, /, *, k: int = 0) -> Any:
    return BACKEND.dask.where(np.tri(x.shape[-2], x.shape[-1], k, dtype=bool), x, x.dtype.type(0))


def triu(x: Any, /, *, k: int = 0) -> Any:
    return BACKEND.dask.where(
        np.tri(x.shape[-2], x.shape[-1], k - 1, dtype=bool), x.dtype.type(0), x
    )


def transform(name: str) -> Kernel:
    """A Fourier transform over axes in any number of chunks."""

    def kernel(x: Any, /, *, s: Any = None, axes: Any, norm: str = "backward") -> Any:
        whole = x.rechunk(dict.fromkeys(axes, -1))
        return getattr(BACKEND.dask.fft, name)(whole, s=s, axes=axes, norm=norm) if axes else x

    return kernel


class DaskBackend(Backend):
    """Dask through array-api-compat, over NumPy chunks."""

    name = "dask"
    module = "array_api_compat.dask.array"
    kernels: Mapping[str, Kernel] = {
        "broadcast_to": broadcast_to,
        "eye": eye,
        "linspace": linspace,
        "rand_like": rand_like,
        "reciprocal": reciprocal,
        "reshape": reshape,
        "roll": roll,
        "searchsorted": searchsorted,
        "take": take,
        "take_along_axis": take_along_axis,
        "tril": tril,
        "triu": triu,
        **{name: of_known(name) for name in ("argmax", "argmin")},
        **{name: summing(name) for name in ("mean", "sum")},
        **{name: on_chunks(name) for name in ON_CHUNKS},
        **{name: unique(name) for name in UNIQUE},
        **{f"fft.{name}": transform(name) for name in TRANSFORMS},
        **LINALG,
    }
    immutable = True

    @cached_property
    def dask(self) -> Any:
        """``dask.array`` itself."""
        import dask.array

        return dask.array

    def raw_dtype(self, dtype: DType) -> Any:
        try:
            return np.dtype(getattr(np, dtype.name))
        except AttributeError:
            raise TypeError(f"dask has no data type {dtype.name}") from None

    def device(self, array: Any) -> Any:
        return "cpu"

    def devices(self) -> list[Any]:
        return ["cpu"]

    def recomputing(self) -> AbstractContextManager[Kernel]:
        return recomputing()

    def to_device(self, array: Any, device: Any) -> Any:
        return array

    def adopt(self, array: Any) -> Any:
        # Rules, views and batches need lengths, and a nan among them would spread in silence.
        if math.isnan(math.prod(array.shape)):
            raise size_error(array.shape)
        return array

    def is_ready(self, array: Any) -> bool:
        return data(array) is not None

    def to_pickle(self, array: Any) -> tuple[Any, str | None]:
        return array, None  # its graph, which is computed where it is needed

    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]:
        found = data(array)
        return np.asarray(array.compute()) if found is None else found

    def from_numpy(self, array: Any, device: Any = None) -> Any:
        # What comes out of a pickle is a graph.
        graph = isinstance(array, self.dask.Array)
        return array if graph else self.dask.from_array(np.asarray(array))

    def from_dlpack(self, x: Any, device: Any = None, copy: bool | None = None) -> Any:
        if copy is False:
            raise ValueError("dask copies what it takes through DLPack, and copy=False was given")
        return self.from_numpy(np.from_dlpack(x, copy=copy))


BACKEND = DaskBackend()
unsized.add(BACKEND.name)
