"""Rows for the primitives of the standard's extension ``fft``."""

from hypothesis import strategies as st

from tests.ops.cases import BOX, DTYPES, Case, Entry, elements
from wengert.testing import strategies as ws

NORMS = st.sampled_from(["backward", "ortho", "forward"])


@st.composite
def transforms(draw, kind, to_real=False):
    shape = draw(ws.shapes(min_dims=1, max_dims=3, max_side=4))
    count = draw(st.integers(1, min(len(shape), 2)))
    axes = tuple(draw(st.permutations(range(len(shape))))[:count])
    shape = tuple(max(n, 1) if i in axes else n for i, n in enumerate(shape))
    kwargs = {"axes": tuple(a - len(shape) if draw(st.booleans()) else a for a in axes)}
    if draw(st.booleans()) or (to_real and shape[axes[-1]] == 1):
        kwargs["s"] = tuple(draw(st.integers(1, 5)) for _ in axes)
        if axes == tuple(range(len(shape))) and draw(st.booleans()):
            kwargs["axes"] = tuple(range(len(shape)))
    elif axes == tuple(range(len(shape))) and draw(st.booleans()):
        del kwargs["axes"]
    if draw(st.booleans()):
        kwargs["norm"] = draw(NORMS)
    x = draw(ws.arrays(DTYPES[kind], shape, elements=elements(kind, BOX)))
    return Case(x, **kwargs)


def row(name, real, complex_, to_real=False):
    return Entry(
        real=transforms("real", to_real) if real else None,
        complex=transforms("complex", to_real) if complex_ else None,
        torch=torch_transform(name),
        half=False,  # transforms are single or double
    )


def torch_transform(name):
    def call(x, s=None, axes=None, norm="backward"):
        import torch

        if not x.numel():
            raise NotImplementedError("MKL does not transform arrays without elements")
        return getattr(torch.fft, name)(x, s=s, dim=axes, norm=norm)

    return call


FFT = {
    "fft.fftn": row("fftn", True, True),
    "fft.ifftn": row("ifftn", True, True),
    "fft.rfftn": row("rfftn", True, False),
    "fft.irfftn": row("irfftn", False, True, to_real=True),
}
