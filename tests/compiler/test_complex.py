"""Complex numbers with zeros of both signs, infinities and NaN: compiled as eagerly, to the bit.

Parts are of one size, a power of two, of which no product, quotient or sum is rounded:
`test_random_programs` compares others to rounding.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.compiler.bits import same_bits

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

PARTS = (0.0, -0.0, 2.0, -2.0, np.inf, -np.inf, np.nan)
GRID = np.array([complex(*each) for each in itertools.product(PARTS, PARTS)])
CONSTANTS = (0, 1, -0.0, 1.0, -1.0, 1j, complex(1, -0.0), complex(-0.0, 0.0), complex(-0.0, -0.0))

Step = Callable[[Any], Any]


#: Python's arithmetic with a number.
BESIDE = ("z + k", "k + z", "z - k", "k - z", "z * k", "k * z", "k / z")
STEPS: dict[str, Step] = {
    **{f"{text}, {k}": eval(f"lambda z, k={k}: {text}") for k in CONSTANTS for text in BESIDE},
    "-z": lambda z: -z,
    "conj": wg.conj,
    "real": wg.real,
    "imag": wg.imag,
    "square": wg.square,
    "z ** 1": lambda z: z**1,
    "z + zeros": lambda z: z + wg.zeros_like(z),
    "z * ones": lambda z: z * wg.ones_like(z),
    "z + -z": lambda z: z + -z,
    "z - -z": lambda z: z - -z,
    "-z * z": lambda z: -z * z,
    "z * conj": lambda z: z * wg.conj(z),
    "sum": lambda z: wg.sum(z, axis=()) if z.ndim == 0 else wg.sum(z[:, None], axis=1),
    "clip": lambda z: wg.clip(z, min=0.0),
    "clip of a product": lambda z: wg.clip(z * (1 + 0j), min=0.0),
    "number - real": lambda z: complex(1, -0.0) - wg.real(z) * 2.0,
    "real - number": lambda z: wg.real(z) * 2.0 - complex(1, -0.0),
    "number / real": lambda z: 1j / (wg.real(z) * 2.0),
    "where": lambda z: wg.where(wg.real(z) > 0, z, -z),
    "complex of a real": lambda z: wg.astype(wg.real(z), wg.complex128),
    "reciprocal": wg.reciprocal,
}


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("name", STEPS)
def test_steps(name: str, rank: int) -> None:
    def with_gradient(z: Any) -> tuple[Any, ...]:
        w = STEPS[name](z)
        loss = wg.sum(wg.real(w)) + wg.sum(wg.imag(wg.astype(w, wg.complex128))) * 2.0
        return (w, *wg.autograd.grad(loss, z, allow_unused=True)) if loss.requires_grad else (w,)

    compiled = wg.compile(with_gradient, check=0)
    for point in [GRID, GRID[::-1].copy()] if rank else [np.array(z) for z in (1 + 1j, *GRID)]:
        answers = [f(wg.tensor(point, requires_grad=True)) for f in (with_gradient, compiled)]
        for eager, found in zip(*answers, strict=True):
            assert (eager is None) == (found is None)
            assert eager is None or same_bits(eager.detach().numpy(), found.detach().numpy()), point
