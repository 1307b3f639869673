"""The rows: what is run, and at which sizes."""

from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.workloads.elementwise import black_scholes, broadcast_sums, chain, mixture
from benchmarks.workloads.indexing import items, table
from benchmarks.workloads.layers import convolutional, encoder, images, recurrent, vectors
from benchmarks.workloads.networks import attention, autoencoder, convolution, inference
from benchmarks.workloads.optimisers import Searches, Updates
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
_NETWORK = ((512, 784), (512,), (512, 512), (512,), (10, 512), (10,))
_FEW = ((3,), (2, 2))
_TALL = ((128, 64), (64, 128), (64, 128))
_LARGE = ((512, 784), (512, 512))
_IMAGES, _SMALL = (16, 16, 32, 32), (2, 4, 6, 6)
_FEW_STEPS = {name: (name, 3, 2, 3, 2) for name in ("LSTM", "GRU", "RNN")}

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
    "adam": Row("Adam alone, 50 × 64", Updates, (_VECTORS, "adam"), (_FEW, "adam")),
    "momentum": Row(
        "SGD with momentum alone, 1.75 M", Updates, (_MATRICES, "momentum"), (_FEW, "momentum")
    ),
    "conv2d-forward": Row(
        "Conv2d 3 × 3, 16 × 16 × 32², forward",
        images,
        ("Conv2d", _IMAGES, (16, 16, 3, 1, 1), "value"),
        ("Conv2d", _SMALL, (4, 2, 3, 1, 1), "value"),
    ),
    "conv2d": Row(
        "Conv2d 3 × 3, 16 × 16 × 32²",
        images,
        ("Conv2d", _IMAGES, (16, 16, 3, 1, 1)),
        ("Conv2d", _SMALL, (4, 2, 3, 1, 1)),
    ),
    "conv2d-wide": Row(
        "Conv2d 3 × 3, 8 × 64 × 16²",
        images,
        ("Conv2d", (8, 64, 16, 16), (64, 64, 3, 1, 1)),
        ("Conv2d", _SMALL, (4, 5, 3, 1, 1)),
    ),
    "conv2d-strided": Row(
        "Conv2d 5 × 5 by 2, 8 × 16 × 32²",
        images,
        ("Conv2d", (8, 16, 32, 32), (16, 32, 5, 2, 2)),
        ("Conv2d", _SMALL, (4, 2, 5, 2, 2)),
    ),
    "conv2d-pointwise": Row(
        "Conv2d 1 × 1, 8 × 64 × 16²",
        images,
        ("Conv2d", (8, 64, 16, 16), (64, 64, 1)),
        ("Conv2d", _SMALL, (4, 2, 1)),
    ),
    "max-pool": Row(
        "MaxPool2d 2, 16 × 16 × 32²",
        images,
        ("MaxPool2d", _IMAGES, (2,)),
        ("MaxPool2d", _SMALL, (2,)),
    ),
    "max-pool-overlap": Row(
        "MaxPool2d 3 by 2, 16 × 16 × 32²",
        images,
        ("MaxPool2d", _IMAGES, (3, 2, 1)),
        ("MaxPool2d", _SMALL, (3, 2, 1)),
    ),
    "avg-pool": Row(
        "AvgPool2d 2, 16 × 16 × 32²",
        images,
        ("AvgPool2d", _IMAGES, (2,)),
        ("AvgPool2d", _SMALL, (2,)),
    ),
    "batch-norm": Row(
        "BatchNorm2d, 16 × 16 × 32²",
        images,
        ("BatchNorm2d", _IMAGES, (16,)),
        ("BatchNorm2d", _SMALL, (4,)),
    ),
    "group-norm": Row(
        "GroupNorm 4, 16 × 16 × 32²",
        images,
        ("GroupNorm", _IMAGES, (4, 16)),
        ("GroupNorm", _SMALL, (2, 4)),
    ),
    "layer-norm": Row("LayerNorm, 32 × 64 × 128", vectors, ((32, 64, 128),), ((2, 3, 5),)),
    "conv-net": Row(
        "convolutional net, 32 × 28², 16-32-10",
        convolutional,
        (32, 28, 16, 32, 10),
        (3, 8, 2, 3, 4),
    ),
    "lstm-layer": Row(
        "LSTM, 50 × 16 × 32-64", recurrent, ("LSTM", 50, 16, 32, 64), _FEW_STEPS["LSTM"]
    ),
    "gru-layer": Row("GRU, 50 × 16 × 32-64", recurrent, ("GRU", 50, 16, 32, 64), _FEW_STEPS["GRU"]),
    "rnn-layer": Row("RNN, 50 × 16 × 32-64", recurrent, ("RNN", 50, 16, 32, 64), _FEW_STEPS["RNN"]),
    "encoder": Row("encoder layer, 16 × 32 × 64", encoder, (16, 32, 64, 4), (2, 3, 4, 2)),
    "sgd-50": Row("SGD alone, 50 × 64", Updates, (_VECTORS, "sgd"), (_FEW, "sgd")),
    "sgd-mlp": Row("SGD alone, 784-512-512-10", Updates, (_NETWORK, "sgd"), (_FEW, "sgd")),
    "momentum-50": Row(
        "SGD with momentum alone, 50 × 64", Updates, (_VECTORS, "momentum"), (_FEW, "momentum")
    ),
    "momentum-mlp": Row(
        "SGD with momentum alone, 784-512-512-10",
        Updates,
        (_NETWORK, "momentum"),
        (_FEW, "momentum"),
    ),
    "adam-mlp": Row("Adam alone, 784-512-512-10", Updates, (_NETWORK, "adam"), (_FEW, "adam")),
    "adamw-50": Row("AdamW alone, 50 × 64", Updates, (_VECTORS, "adamw"), (_FEW, "adamw")),
    "adamw-mlp": Row("AdamW alone, 784-512-512-10", Updates, (_NETWORK, "adamw"), (_FEW, "adamw")),
    "rmsprop-50": Row("RMSprop alone, 50 × 64", Updates, (_VECTORS, "rmsprop"), (_FEW, "rmsprop")),
    "rmsprop-mlp": Row(
        "RMSprop alone, 784-512-512-10", Updates, (_NETWORK, "rmsprop"), (_FEW, "rmsprop")
    ),
    "adagrad-50": Row("Adagrad alone, 50 × 64", Updates, (_VECTORS, "adagrad"), (_FEW, "adagrad")),
    "adagrad-mlp": Row(
        "Adagrad alone, 784-512-512-10", Updates, (_NETWORK, "adagrad"), (_FEW, "adagrad")
    ),
    "adadelta-50": Row(
        "Adadelta alone, 50 × 64", Updates, (_VECTORS, "adadelta"), (_FEW, "adadelta")
    ),
    "adadelta-mlp": Row(
        "Adadelta alone, 784-512-512-10", Updates, (_NETWORK, "adadelta"), (_FEW, "adadelta")
    ),
    "adamax-50": Row("Adamax alone, 50 × 64", Updates, (_VECTORS, "adamax"), (_FEW, "adamax")),
    "adamax-mlp": Row(
        "Adamax alone, 784-512-512-10", Updates, (_NETWORK, "adamax"), (_FEW, "adamax")
    ),
    "nadam-50": Row("NAdam alone, 50 × 64", Updates, (_VECTORS, "nadam"), (_FEW, "nadam")),
    "nadam-mlp": Row("NAdam alone, 784-512-512-10", Updates, (_NETWORK, "nadam"), (_FEW, "nadam")),
    "radam-50": Row("RAdam alone, 50 × 64", Updates, (_VECTORS, "radam"), (_FEW, "radam")),
    "radam-mlp": Row("RAdam alone, 784-512-512-10", Updates, (_NETWORK, "radam"), (_FEW, "radam")),
    "muon-64": Row("Muon alone, 3 × 64 × 128", Updates, (_TALL, "muon"), (((3, 2),), "muon")),
    "muon-512": Row(
        "Muon alone, 512 × 784 and 512²", Updates, (_LARGE, "muon"), (((2, 3),), "muon")
    ),
    "lbfgs": Row("L-BFGS, 1000", Searches, (1000, None), (5, None)),
    "lbfgs-wolfe": Row(
        "L-BFGS with line searches, 1000", Searches, (1000, "strong_wolfe"), (5, "strong_wolfe")
    ),
    "inference-1": Row("inference, batch 1", inference, (1,), (1, (4, 3, 2))),
    "inference-16": Row("inference, batch 16", inference, (16,), (3, (4, 3, 2))),
    "inference-256": Row("inference, batch 256", inference, (256,), (5, (4, 3, 2))),
    "jacobian-fit": Row("Jacobian, 2000 results of 30", curved, (10, 2000), (2, 9)),
    "jacobian-field": Row("Jacobian, field of 100", field, (100,), (4,)),
}
