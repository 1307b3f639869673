"""The rows: what is run, and at which sizes."""

from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.workloads.elementwise import black_scholes, broadcast_sums, chain, mixture
from benchmarks.workloads.indexing import items, table
from benchmarks.workloads.networks import (
    Updates,
    attention,
    autoencoder,
    convolution,
    inference,
)
from benchmarks.workloads.science import (
    curved,
    field,
    fourier,
    gaussian_process,
    n_body,
    valley,
)
from benchmarks.workloads.sequences import heat, lstm, neural_ode

__all__ = ["ROWS", "Row"]


class Row(NamedTuple):
    """A workload by its name: how it is made, at its own size and at a small one."""

    label: str
    make: Callable[..., Any]
    size: tuple[Any, ...]
    small: tuple[Any, ...]


_VECTORS = ((64,),) * 50
_MATRICES = ((1000, 1000), (750, 1000), (1000,))

ROWS: dict[str, Row] = {
    "black-scholes-1e3": Row("Black–Scholes with greeks, 10³", black_scholes, (10**3,), (5,)),
    "black-scholes-1e6": Row("Black–Scholes with greeks, 10⁶", black_scholes, (10**6,), (7,)),
    "ode": Row("neural ODE, 100 Runge–Kutta steps", neural_ode, (100,), (2,)),
    "attention-64": Row("attention, 8 × 64 × 64", attention, (8, 64, 64), (2, 3, 4)),
    "attention-256": Row("attention, 32 × 256 × 256", attention, (32, 256, 256), (3, 4, 2)),
    "heat": Row("heat equation by slices, 200 steps", heat, (200,), (3, 6)),
    "gp-50": Row("Gaussian process, 50", gaussian_process, (50,), (5,)),
    "gp-500": Row("Gaussian process, 500", gaussian_process, (500,), (7,)),
    "conv": Row("convolution 3 × 3, 16 × 32² × 16", convolution, (16, 32, 16), (2, 5, 3)),
    "fft": Row("FFT convolution, 2¹⁵ by 2¹⁰", fourier, (2**15 - 2**10, 2**10), (12, 4)),
    "lstm": Row("LSTM, 50 steps with z[t]", lstm, (50,), (3, 2, 3, 2)),
    "mixture": Row("mixture of Gaussians, 10⁴ × 10 × 5", mixture, (10**4, 10, 5), (6, 3, 2)),
    "take": Row("take of 10⁴ rows of 10⁴ × 32", table, (10**4, 32, 10**4), (4, 3, 9)),
    "index": Row("x[idx], 10⁵ of 10⁴", items, (10**4, 10**5), (4, 9)),
    "n-body": Row("n-body gradient, 100", n_body, (100,), (4,)),
    "hvp": Row("HVP, n-body of 100", n_body, (100, "hvp"), (3, "hvp")),
    "hvp-valley": Row("HVP, Rosenbrock's of 10⁴", valley, (10**4, "hvp"), (5, "hvp")),
    "hessian": Row("Hessian, n-body of 20", n_body, (20, "hessian"), (2, "hessian")),
    "hessian-valley": Row("Hessian, Rosenbrock's of 200", valley, (200, "hessian"), (5, "hessian")),
    "chain": Row("elementwise chain, 10⁶", chain, (10**6,), (7,)),
    "broadcast": Row("broadcast sums, 1024²", broadcast_sums, (1024,), (6,)),
    "autoencoder": Row(
        "autoencoder, 64 × 784-128-32-128-784",
        autoencoder,
        (64, (784, 128, 32, 128, 784)),
        (3, (5, 4, 2, 4, 5)),
    ),
    "adam": Row("Adam alone, 50 × 64", Updates, (_VECTORS, "Adam"), (((3,), (2, 2)), "Adam")),
    "momentum": Row(
        "SGD with momentum alone, 1.75 M", Updates, (_MATRICES, "SGD"), (((3,), (2, 2)), "SGD")
    ),
    "inference-1": Row("inference, batch 1", inference, (1,), (1, (4, 3, 2))),
    "inference-16": Row("inference, batch 16", inference, (16,), (3, (4, 3, 2))),
    "inference-256": Row("inference, batch 256", inference, (256,), (5, (4, 3, 2))),
    "jacobian-fit": Row("Jacobian, 2000 results of 30", curved, (10, 2000), (2, 9)),
    "jacobian-field": Row("Jacobian, field of 100", field, (100,), (4,)),
}
