"""The options of the public functions, and all pairs of their values."""

import itertools
from typing import Any

import numpy as np

from tests.ops.calls import FUNCTIONS, kinds, parameters

FLAGS = (False, True)
AXES = (None, 0, 1, -1, (0, 2), (), (-1, 1, 0))
NORMS = ("backward", "ortho", "forward")
REDUCTIONS = ("mean", "sum", "none")
#: Options of where a result lives, which have tests of their own.
ABOUT_RESULTS = ("dtype", "device", "copy", "stream", "requires_grad")


def irregular(*shape: int, start: float = 0.3) -> np.ndarray:
    """Distinct values of both signs, none near to another or to 0."""
    n = np.arange(1, np.prod(shape) + 1)
    spread = (n * 0.6180339887498949 + start) % 1
    return np.reshape((0.2 + 1.6 * spread) * (-1.0) ** (n // 2), shape)


CUBE, MATRIX, OTHER = irregular(2, 3, 4), irregular(3, 4), irregular(2, 3, 4, start=0.55)
SQUARES = irregular(2, 3, 3) + 3 * np.eye(3)
COMPLEX = CUBE + 1j * OTHER
SHARES = abs(irregular(3, 4)) / 2
REAL = {"x": CUBE}
REDUCED = {"x": CUBE, "axis": AXES, "keepdims": FLAGS}
ONE = {"n": (None, 3, 6), "axis": (-1, 0, 1), "norm": NORMS}
SEVERAL = {
    "s": ((3, 3), (2, 5)),
    "axes": ((0, 2), (-1, 0), (1, -1)),
    "norm": NORMS,
}
METHODS = (
    *("linear", "lower", "higher", "midpoint", "nearest", "interpolated_inverted_cdf", "hazen"),
    *("weibull", "median_unbiased", "normal_unbiased", "inverted_cdf", "averaged_inverted_cdf"),
    "closest_observation",
)
LOSS = {"input": irregular(3, 4), "target": irregular(3, 4, start=0.7), "reduction": REDUCTIONS}
CLASSES = {
    "target": np.array([3, 0, 2]),
    "weight": (None, abs(irregular(4))),
    "ignore_index": (-100, 0),
    "reduction": REDUCTIONS,
}
MODES = (
    *("constant", "edge", "reflect", "symmetric", "wrap", "mean", "maximum", "minimum", "median"),
    *("linear_ramp",),
)

#: Names of functions, their arguments, and for each option a tuple of values.
SPACES: list[tuple[str, dict[str, Any]]] = [
    ("sum mean prod max min median", REDUCED),
    ("var std", {**REDUCED, "axis": AXES[:-2], "correction": (0.0, 1, 0.5)}),
    (
        "quantile",
        {
            **REDUCED,
            "axis": (None, 0, -1, (0, 2)),
            "method": METHODS,
            "q": (0.5, 0.3, np.array([0.06, 0.55, 0.93])),
        },
    ),
    (
        "logsumexp",
        {
            "a": CUBE,
            "axis": (None, 0, 1, -1, (0, 2)),
            "keepdims": FLAGS,
            "b": (None, OTHER, abs(irregular(3, 1))),
            "return_sign": (True,),
        },
    ),
    (
        "logsumexp",
        {
            "a": CUBE,
            "axis": (None, 0, 1, -1, (0, 2)),
            "keepdims": FLAGS,
            "b": (None, abs(OTHER), abs(irregular(3, 1))),
        },
    ),
    ("softmax log_softmax", {**REAL, "axis": (None, 0, 1, -1, (0, 2))}),
    ("cumulative_sum cumulative_prod", {**REAL, "axis": (0, 1, -1), "include_initial": FLAGS}),
    ("x.cumsum x.cumprod", {**REAL, "axis": (0, 1, -1)}),
    ("concat", {"arrays": [CUBE, OTHER], "axis": (0, 1, -1, None)}),
    ("stack", {"arrays": [MATRIX, MATRIX + 0.1], "axis": (0, 1, 2, -1)}),
    ("unstack", {**REAL, "axis": (0, 1, -1)}),
    (
        "diff",
        {
            **REAL,
            "prepend": CUBE[:, :, :],
            "append": OTHER,
            "n": (0, 1, 2, 3),
            "axis": (0, 1, -1),
        },
    ),
    (
        "einsum",
        {
            "operands": ["ij,jk,kl->li", MATRIX, MATRIX.T, OTHER[0]],
            "optimize": (None, "greedy"),
        },
    ),
    ("flip", {**REAL, "axis": AXES}),
    ("gelu", {**REAL, "approximate": ("none", "tanh")}),
    ("linspace", {"start": np.array(0.25), "stop": np.array(2.5), "num": 4, "endpoint": FLAGS}),
    ("meshgrid", {"arrays": [MATRIX[0], MATRIX[1, :3]], "indexing": ("xy", "ij")}),
    (
        "pad",
        {
            "array": MATRIX,
            "pad_width": (1, ((1, 2), (0, 2))),
            "mode": MODES,
        },
    ),
    ("repeat", {**REAL, "repeats": (2,), "axis": (None, 0, 1, -1)}),
    ("x.repeat", {**REAL, "repeats": (2,), "axis": (0, 1, -1)}),
    ("roll", {**REAL, "shift": (1, -2), "axis": (None, 0, 1, -1)}),
    ("sort", {**REAL, "axis": (0, 1, -1), "descending": FLAGS, "stable": FLAGS}),
    ("squeeze", {"x": CUBE[:1, :, :1], "axis": (0, 2, (0, -1))}),
    ("take", {**REAL, "indices": np.array([1, 0, 1]), "axis": (0, 1, -1)}),
    (
        "take_along_axis",
        {"x": irregular(2, 2, 2), "indices": np.array([[[1, 0]]]), "axis": (1, -2)},
    ),
    (
        "tensordot",
        {
            "x1": CUBE,
            "x2": np.swapaxes(OTHER, 0, 1),
            "axes": (0, ((0, 2), (1, 2)), ((-1,), (-1,))),
        },
    ),
    ("tril triu", {**REAL, "k": (-1, 0, 1, 2)}),
    ("vecdot", {"x1": COMPLEX, "x2": COMPLEX[:1] + 1j, "axis": (-1, -2)}),
    ("linalg.cholesky", {"x": SQUARES + np.swapaxes(SQUARES, 1, 2), "upper": FLAGS}),
    ("linalg.cross", {"x1": irregular(3, 3), "x2": irregular(3, 3, start=0.5), "axis": (-1, 0, 1)}),
    ("linalg.diagonal linalg.trace", {**REAL, "offset": (-1, 0, 1, 2)}),
    ("x.diagonal x.trace", {**REAL, "offset": (-1, 0, 1), "axis1": (0, 1), "axis2": (2, -1)}),
    (
        "linalg.matrix_norm",
        {
            **REAL,
            "keepdims": FLAGS,
            "ord": ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf),
        },
    ),
    ("linalg.vector_norm", {**REDUCED, "ord": 2}),
    (
        "linalg.vector_norm",
        {
            **REDUCED,
            "axis": (None, (0, -1)),
            "ord": (1, 3, 2.5, -1.5, 0, np.inf, -np.inf, -1),
        },
    ),
    ("linalg.qr", {"x": SQUARES, "mode": ("reduced", "complete")}),
    ("linalg.svd", {"x": SQUARES, "full_matrices": FLAGS}),
    ("fft.fft fft.ifft", {"x": COMPLEX, **ONE}),
    ("fft.rfft fft.ihfft", {"x": CUBE, **ONE}),
    ("fft.irfft fft.hfft", {"x": COMPLEX, **ONE}),
    ("fft.fftn fft.ifftn fft.irfftn", {"x": COMPLEX, **SEVERAL}),
    ("fft.rfftn", {"x": CUBE, **SEVERAL}),
    ("fft.fftshift fft.ifftshift", {**REAL, "axes": (None, 1, (0, 2))}),
    (
        "F.binary_cross_entropy",
        {
            "input": SHARES,
            "target": abs(irregular(3, 4, start=0.7)) / 2,
            "weight": (None, abs(irregular(4))),
            "reduction": REDUCTIONS,
        },
    ),
    (
        "F.binary_cross_entropy_with_logits",
        {
            "input": irregular(3, 4),
            "target": SHARES,
            "weight": (None, abs(irregular(4))),
            "pos_weight": (None, abs(irregular(4, start=0.6))),
            "reduction": REDUCTIONS,
        },
    ),
    ("F.cross_entropy", {"input": irregular(3, 4), **CLASSES, "label_smoothing": (0.0, 0.3)}),
    (
        "F.cross_entropy",
        {
            "input": irregular(2, 4, 3),
            "target": np.array([[3, 0, 2], [1, 1, 0]]),
            "weight": (None, abs(irregular(4))),
            "ignore_index": (-100, 0),
            "reduction": REDUCTIONS,
            "label_smoothing": (0.0, 0.3),
        },
    ),
    (
        "F.cross_entropy",
        {
            "input": irregular(3, 4),
            "target": SHARES,
            "weight": (None, abs(irregular(4))),
            "reduction": REDUCTIONS,
            "label_smoothing": (0.0, 0.3),
        },
    ),
    ("F.nll_loss", {"input": -SHARES, **CLASSES}),
    ("F.dropout", {"input": MATRIX, "p": (0.0, 0.4), "training": FLAGS}),
    ("F.huber_loss", {**LOSS, "delta": (0.3, 1.5)}),
    ("F.smooth_l1_loss", {**LOSS, "beta": (0.3, 1.5)}),
    ("F.l1_loss F.mse_loss", LOSS),
    ("F.softmax F.log_softmax", {"input": CUBE, "dim": (0, 1, -1)}),
    ("x.flatten", {**REAL, "start_dim": (0, 1, -2), "end_dim": (-1, 1)}),
]
#: Options whose values are no values of the result, or have tests by formula.
ELSEWHERE = {
    ("at", "key"): "tests/ops/test_at.py",
    ("normal", "size"): "tests/ops/test_random.py",
    ("uniform", "size"): "tests/ops/test_random.py",
    ("pad", "stat_length"): "tests/ops/test_beyond.py",
    ("pad", "reflect_type"): "tests/ops/test_beyond.py",
}


def options(name: str) -> list[str]:
    """The options that a function of differentiable arguments has, and that have a default."""
    of, said = parameters(FUNCTIONS[name]), kinds(name)
    if "differentiable" not in said.values():
        return []
    return [
        each
        for each, kind in said.items()
        if kind == "option" and each not in ABOUT_RESULTS and of[each].default is not of[each].empty
    ]


def pairs(space: dict[str, Any]) -> list[dict[str, Any]]:
    """Few choices of values that have each pair of values of two options."""
    free = {name: given for name, given in space.items() if isinstance(given, tuple)}
    fixed = {name: given for name, given in space.items() if name not in free}
    places = list(itertools.product(*(range(len(given)) for given in free.values())))

    def couples(place: tuple[int, ...]) -> set[Any]:
        marked = list(enumerate(place))
        return set(itertools.combinations(marked, 2)) if len(marked) > 1 else set(marked)

    wanted: set[Any] = set().union(*map(couples, places))
    chosen = []
    while wanted:
        best = max(places, key=lambda place: len(couples(place) & wanted))
        wanted -= couples(best)
        chosen.append(fixed | {n: free[n][k] for n, k in zip(free, best, strict=True)})
    return chosen
