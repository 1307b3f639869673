"""The options of the public functions, and all pairs of their values.

What a signature says is not said again: flags, words (`Literal`) and axes have their values from
the annotation. The spaces name the arguments, and the values that are a choice.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any, Literal, get_args, get_origin

import numpy as np

from backend_check.calls import FUNCTIONS, parameters
from tests.ops.parameters import kinds
from wengert.ops.beyond.padding import Mode

#: Options of where a result lives, which have tests of their own.
ABOUT_RESULTS = ("dtype", "device", "copy", "stream", "requires_grad")


def irregular(*shape: int, start: float = 0.3) -> np.ndarray:
    """Distinct values of both signs, none near to another or to 0."""
    n = np.arange(1, np.prod(shape) + 1)
    spread = (n * 0.6180339887498949 + start) % 1
    return np.reshape((0.2 + 1.6 * spread) * (-1.0) ** (n // 2), shape)


FEW_AXES = (None, 0, 1, -1, (0, 2))
#: All modes but that which leaves open what it fills with.
FILLING = get_args(Mode)
CUBE, MATRIX, OTHER = irregular(2, 3, 4), irregular(3, 4), irregular(2, 3, 4, start=0.55)
SQUARES = irregular(2, 3, 3) + 3 * np.eye(3)
COMPLEX = CUBE + 1j * OTHER
SHARES = abs(irregular(3, 4)) / 2
REAL = {"x": CUBE}
ONE = {"n": (None, 3, 6)}
SEVERAL = {"s": ((3, 3), (2, 5)), "axes": ((0, 2), (-1, 0), (1, -1))}
LOSS = {"input": irregular(3, 4), "target": irregular(3, 4, start=0.7)}
CLASSES = {
    "target": np.array([3, 0, 2]),
    "weight": (None, abs(irregular(4))),
    "ignore_index": (-100, 0),
}

IMAGES, FACTORS = irregular(2, 4, 3), {"weight": irregular(4), "bias": irregular(4, start=0.6)}
AVERAGES = {"running_mean": irregular(4), "running_var": abs(irregular(4, start=0.8))}
EPS = {"eps": (1e-5, 0.3)}
SIGNS = np.sign(irregular(3, 4, start=0.9))
SIGNALS, PICTURES = irregular(2, 2, 6), irregular(1, 2, 5, 6)
CONVOLVED = {"bias": irregular(2, start=0.8), "stride": (1, 2), "dilation": (1, 2)}
ADJOINT = {**CONVOLVED, "padding": (0, 1), "output_padding": (0, 1), "stride": (2, 3)}
WINDOWS = {"kernel_size": 2, "stride": (None, 1, 3), "padding": (0, 1)}
COLUMNS = {"kernel_size": 2, "dilation": (1, 2), "padding": (0, 1), "stride": (1, 2)}
KEYS = {"query": CUBE, "key": irregular(2, 3, 4, start=0.7), "value": OTHER}

#: Names of functions, their arguments, and for each option a tuple of values.
SPACES: list[tuple[str, dict[str, Any]]] = [
    ("F.layer_norm", {"input": CUBE, "normalized_shape": (4, (3, 4)), **EPS}),
    ("F.rms_norm", {"input": CUBE, "normalized_shape": (4, (3, 4)), "eps": (None, 0.3)}),
    ("F.group_norm", {"input": IMAGES, "num_groups": (1, 2), **FACTORS, **EPS}),
    ("F.batch_norm", {"input": IMAGES, **AVERAGES, **FACTORS, "training": (False,), **EPS}),
    ("F.instance_norm", {"input": IMAGES, **FACTORS, **EPS}),
    ("F.normalize", {"input": CUBE, "p": (2.0, 3.0), "dim": (0, 1, (0, 2)), "eps": (1e-12, 9.0)}),
    ("F.cosine_similarity", {"x1": CUBE, "x2": OTHER, "dim": (0, 1, -1), "eps": (1e-8, 1.8, 3.0)}),
    ("F.kl_div", {"input": np.log(SHARES), "target": SHARES[::-1].copy()}),
    ("F.gaussian_nll_loss", {**LOSS, "var": SHARES, "eps": (1e-6, 1e-4)}),
    ("F.elu", {"input": MATRIX, "alpha": (0.5, 2.0)}),
    ("F.softplus", {"input": MATRIX, "beta": (1.0, 2.0), "threshold": (0.5, 20.0)}),
    ("F.embedding", {"input": CLASSES["target"], "weight": MATRIX.T}),
    *(
        (f"F.conv{count}d", {"input": x, "weight": irregular(2, *ends), **CONVOLVED, **more})
        for count, x, size in ((1, SIGNALS, (2,)), (2, PICTURES, (2, 2)))
        for ends, more in (
            ((2, *size), {"padding": (0, 1, "valid"), "groups": (1,)}),
            ((1, *size), {"padding": (0, 1), "groups": (2,)}),
            ((2, *size), {"padding": "same", "stride": 1}),
        )
    ),
    *(
        (
            f"F.conv_transpose{count}d",
            {"input": x, "weight": irregular(2, 2 // n, *size), **ADJOINT, "groups": (n,)},
        )
        for count, x, size in ((1, SIGNALS[..., :3], (2,)), (2, PICTURES[..., :2, :3], (2, 2)))
        for n in (1, 2)
    ),
    ("F.avg_pool1d", {"input": SIGNALS, **WINDOWS}),
    ("F.avg_pool2d", {"input": PICTURES, **WINDOWS}),
    ("F.max_pool1d", {"input": SIGNALS, **WINDOWS, "dilation": (1, 2)}),
    ("F.max_pool2d", {"input": PICTURES, **WINDOWS, "dilation": (1, 2)}),
    ("F.unfold", {"input": PICTURES, **COLUMNS}),
    *(
        ("F.interpolate", {"input": x, "mode": modes, **more})
        for x, linear in ((SIGNALS, "linear"), (PICTURES, "bilinear"))
        for how in ({"size": (4, 9)}, {"scale_factor": (0.6, 1.7)})
        for modes, more in (
            (("nearest", linear), how),
            (linear, {**how, "align_corners": (None, False, True)}),
        )
    ),
    ("F.pad", {"input": CUBE, "pad": ((1, 2), (1, 0)), "value": None}),
    ("F.pad", {"input": CUBE, "pad": ((1, 2), (1, 0, 2, 1)), "mode": "constant",
     "value": (None, 0.3)}),
    ("F.scaled_dot_product_attention", {**KEYS, "dropout_p": (0.0,)}),
    ("sum mean prod max min median", REAL),
    ("var std", {**REAL, "axis": FEW_AXES, "correction": (0.0, 1, 0.5)}),
    ("quantile", {**REAL, "axis": FEW_AXES, "q": (0.5, 0.3, np.array([0.06, 0.55, 0.93]))}),
    ("logsumexp", {"a": CUBE, "axis": FEW_AXES, "b": (None, OTHER, abs(irregular(3, 1))),
     "return_sign": (True,)}),
    ("logsumexp", {"a": CUBE, "axis": FEW_AXES, "b": (None, abs(OTHER), abs(irregular(3, 1))),
     "return_sign": (False,)}),
    ("all any count_nonzero", {"x": np.where(CUBE > 0, CUBE, 0.0)}),
    ("argmax argmin", {**REAL, "axis": (None, 0, 1, -1)}),
    ("argsort", REAL),
    ("isin", {"x1": CUBE, "x2": CUBE[0, 1:]}),
    ("searchsorted", {"x1": np.sort(CUBE[0, 0]), "x2": CUBE, "sorter": (None,)}),
    ("softmax log_softmax", {**REAL, "axis": FEW_AXES}),
    ("cumulative_sum cumulative_prod", {**REAL, "axis": (0, 1, -1)}),
    ("x.cumsum x.cumprod", {**REAL, "axis": (0, 1, -1)}),
    ("concat", {"arrays": [CUBE, OTHER]}),
    ("stack", {"arrays": [MATRIX, MATRIX + 0.1], "axis": (0, 1, 2, -1)}),
    ("unstack", REAL),
    ("diff", {**REAL, "prepend": CUBE[:, :, :], "append": OTHER, "n": (0, 1, 2, 3)}),
    ("einsum", {"operands": ["ij,jk,kl->li", MATRIX, MATRIX.T, OTHER[0]],
     "optimize": (None, "greedy")}),
    ("flip", REAL),
    ("gelu", REAL),
    ("linspace", {"start": np.array(0.25), "stop": np.array(2.5), "num": 4}),
    ("meshgrid", {"arrays": [MATRIX[0], MATRIX[1, :3]]}),
    ("pad", {"array": MATRIX, "pad_width": (1, ((1, 2), (0, 2))), "mode": FILLING}),
    ("repeat", {**REAL, "repeats": (2,)}),
    ("x.repeat", {**REAL, "repeats": (2,), "axis": (0, 1, -1)}),
    ("roll", {**REAL, "shift": (1, -2), "axis": (None, 0, 1, -1)}),
    ("sort", REAL),
    ("squeeze", {"x": CUBE[:1, :, :1], "axis": (0, 2, (0, -1))}),
    ("take", {**REAL, "indices": np.array([1, 0, 1]), "axis": (0, 1, -1)}),
    ("take_along_axis", {"x": irregular(2, 2, 2), "indices": np.array([[[1, 0]]]),
     "axis": (1, -2)}),
    ("tensordot", {"x1": CUBE, "x2": np.swapaxes(OTHER, 0, 1),
     "axes": (0, ((0, 2), (1, 2)), ((-1,), (-1,)))}),
    ("tril triu", {**REAL, "k": (-1, 0, 1, 2)}),
    ("vecdot", {"x1": COMPLEX, "x2": COMPLEX[:1] + 1j, "axis": (-1, -2)}),
    ("linalg.cholesky", {"x": SQUARES + np.swapaxes(SQUARES, 1, 2)}),
    ("linalg.cross", {"x1": irregular(3, 3), "x2": irregular(3, 3, start=0.5)}),
    ("linalg.diagonal linalg.trace", {**REAL, "offset": (-1, 0, 1, 2)}),
    ("x.diagonal x.trace", {**REAL, "offset": (-1, 0, 1), "axis1": (0, 1), "axis2": (2, -1)}),
    ("linalg.matrix_norm", {**REAL, "ord": ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)}),
    ("linalg.vector_norm", {**REAL, "ord": 2}),
    ("linalg.vector_norm", {**REAL, "axis": (None, (0, -1)),
     "ord": (1, 3, 2.5, -1.5, 0, np.inf, -np.inf, -1)}),
    ("linalg.qr", {"x": SQUARES}),
    ("linalg.solve_triangular", {"x1": SQUARES, "x2": irregular(3, 3), "upper": (False, True)}),
    ("linalg.cholesky_solve", {"x": irregular(3, 2), "factor": SQUARES}),
    ("linalg.svd", {"x": SQUARES}),
    ("fft.fft fft.ifft", {"x": COMPLEX, **ONE}),
    ("fft.rfft fft.ihfft", {"x": CUBE, **ONE}),
    ("fft.irfft fft.hfft", {"x": COMPLEX, **ONE}),
    ("fft.fftn fft.ifftn fft.irfftn", {"x": COMPLEX, **SEVERAL}),
    ("fft.rfftn", {"x": CUBE, **SEVERAL}),
    ("fft.fftshift fft.ifftshift", {**REAL, "axes": (None, 1, (0, 2))}),
    ("F.binary_cross_entropy", {"input": SHARES, "target": abs(irregular(3, 4, start=0.7)) / 2,
     "weight": (None, abs(irregular(4)))}),
    ("F.binary_cross_entropy_with_logits",
     {"input": irregular(3, 4), "target": SHARES, "weight": (None, abs(irregular(4))),
     "pos_weight": (None, abs(irregular(4, start=0.6)))}),
    ("F.cross_entropy", {"input": irregular(3, 4), **CLASSES, "label_smoothing": (0.0, 0.3)}),
    ("F.cross_entropy", {"input": irregular(2, 4, 3), "target": np.array([[3, 0, 2], [1, 1, 0]]),
     "weight": (None, abs(irregular(4))), "ignore_index": (-100, 0),
     "label_smoothing": (0.0, 0.3)}),
    ("F.cross_entropy", {"input": irregular(3, 4), "target": SHARES,
     "weight": (None, abs(irregular(4))), "label_smoothing": (0.0, 0.3)}),
    ("F.nll_loss", {"input": -SHARES, **CLASSES}),
    ("F.dropout", {"input": MATRIX, "p": (0.0, 0.4)}),
    ("F.huber_loss", {**LOSS, "delta": (0.3, 1.5)}),
    ("F.smooth_l1_loss", {**LOSS, "beta": (0.3, 1.5)}),
    ("F.l1_loss F.mse_loss", LOSS),
    ("F.softmax F.log_softmax", {"input": CUBE, "dim": (0, 1, -1)}),
    ("x.flatten", {**REAL, "start_dim": (0, 1, -2), "end_dim": (-1, 1)}),
]  # fmt: skip
#: Options whose values are no values of the result, or have tests by formula.
ELSEWHERE = {
    ("F.dropout2d", "p"): "tests/nn/test_dropout.py",
    ("F.dropout2d", "training"): "tests/nn/test_dropout.py",
    ("F.batch_norm", "training"): "tests/nn/test_normalisation.py",
    ("F.embedding", "padding_idx"): "tests/nn/test_embedding.py",
    **{
        (name, option): "tests/ops/test_methods.py"
        for name in ("x.std", "x.var", "x.max", "x.min")
        for option in ("axis", "dim", "unbiased", "ddof", "keepdims", "keepdim")
    },
    ("at", "key"): "tests/ops/test_updates.py",
    ("reshape", "order"): "tests/ops/test_manipulation.py",
    ("normal", "size"): "tests/ops/test_random.py",
    ("uniform", "size"): "tests/ops/test_random.py",
}


def options(name: str) -> list[str]:
    """The options that a function of arrays has, and that have a default."""
    of, said = parameters(FUNCTIONS[name]), kinds(name)
    if not {"differentiable", "constant"} & {*said.values()}:
        return []
    return [
        each
        for each, kind in said.items()
        if kind == "option" and each not in ABOUT_RESULTS and of[each].default is not of[each].empty
    ]


def declared(annotation: Any, option: str) -> tuple[Any, ...]:
    """The values of an option that its annotation tells."""
    parts = (annotation,) if get_origin(annotation) is Literal else get_args(annotation)
    parts = parts or (annotation,)
    words = [word for part in parts if get_origin(part) is Literal for word in get_args(part)]
    if annotation is bool or words:
        return tuple(words) or (False, True)
    if option != "axis":
        return ()
    several = any(get_origin(part) in (tuple, Sequence) for part in parts)
    more = ((0, 2), (), (-1, 1, 0)) if several else ()
    return (*((None,) if type(None) in parts else ()), 0, 1, -1, *more)


def spaces(name: str) -> list[dict[str, Any]]:
    """The spaces of a function, with what its signature declares."""
    of = parameters(FUNCTIONS[name])
    said = {
        option: values
        for option in options(name)
        if (name, option) not in ELSEWHERE and (values := declared(of[option].annotation, option))
    }
    return [{**said, **space} for names, space in SPACES if name in names.split()]


def pairs(space: dict[str, Any]) -> list[dict[str, Any]]:
    """Few choices of values that have each pair of values of two options."""
    free = {name: given for name, given in space.items() if isinstance(given, tuple)}
    fixed = {name: given for name, given in space.items() if name not in free}
    # The values of a place as bits, and its pairs: a value's with all earlier ones are the bits of
    # these, shifted to where only that value's are. So a space may have many places.
    places: list[tuple[tuple[int, ...], int, int]] = [((), 0, 0)]
    width, first = sum(map(len, free.values())), 0
    for given in free.values():
        places = [
            ((*place, k), ones | 1 << first + k, couples | ones << width * (first + k))
            for place, ones, couples in places
            for k in range(len(given))
        ]
        first += len(given)
    offered = {place: couples if len(free) > 1 else ones for place, ones, couples in places}
    wanted = functools.reduce(operator.or_, offered.values(), 0)
    chosen = []
    while wanted:
        best = max(offered, key=lambda place: (offered[place] & wanted).bit_count())
        wanted &= ~offered[best]
        chosen.append(fixed | {n: free[n][k] for n, k in zip(free, best, strict=True)})
    return chosen


def choices(name: str) -> list[dict[str, Any]]:
    """The pairs of all spaces of a function."""
    return [chosen for space in spaces(name) for chosen in pairs(space)]
