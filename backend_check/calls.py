"""The public functions of numbers and arrays, and a call of each."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import wengert as wg
from wengert.nn import functional as F
from wengert.nn import init
from wengert.ops import methods
from wengert.testing.problem import on_backend

#: The namespaces of public functions, by the prefix of their names here.
NAMESPACES = {
    "": wg,
    "linalg.": wg.linalg,
    "fft.": wg.fft,
    "special.": wg.special,
    "random.": wg.random,
    "F.": F,
    "init.": init,
    "x.": methods,
    "nn.": wg.nn,
    "optim.": wg.optim,
}
#: Modules whose functions take no arrays to differentiate.
ELSEWHERE = (
    *("wengert.autograd", "wengert.backends", "wengert.compiler", "wengert.inspection.drawing"),
    *("wengert.func", "wengert.interpreters", "wengert.tape", "wengert.storage"),
    *("wengert.nn.containers", "wengert.nn.parameter", "wengert.optimize.adapters"),
    *("wengert.nn.module", "wengert.optim.optimizer"),
)


#: Methods that raise, as NumPy and PyTorch give different results.
REFUSED = ("equal", "median", "nonzero", "sort")


def _public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    seen = set()
    for prefix, namespace in NAMESPACES.items():
        for name in sorted(namespace.__all__):
            function = getattr(namespace, name)
            if not callable(function) or function in seen:
                continue
            if namespace is methods and name in ("cuda", *REFUSED):
                continue
            module = function.__module__
            is_result = isinstance(function, type) and issubclass(function, tuple | Exception)
            plain = isinstance(function, type) and issubclass(function, wg.nn.Module)
            if is_result or module.startswith(ELSEWHERE) or not (plain or parameters(function)):
                continue
            seen.add(function)
            yield prefix + name, function


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a function by name."""
    return dict(inspect.signature(function).parameters)


#: Every public function of numbers and arrays, by its name.
FUNCTIONS = dict(_public_functions())


# -- one call of each ----------------------------------------------------------------------------

_MATRIX = np.array([[0.31, 0.72, 0.53], [0.84, 0.15, 0.46]])
_OTHER = np.array([[0.61, 0.22, 0.93], [0.34, 0.75, 0.16]])
_SQUARE = np.array([[2.1, 0.3, 0.4], [0.2, 1.3, 0.5], [0.6, 0.1, 3.2]])
_SYMMETRIC = (_SQUARE + _SQUARE.T) / 2
_SIGNED = np.array([[0.31, -0.72, 0.53], [-0.84, 1.15, -0.46]])
_IMAGES = np.stack([_MATRIX, _OTHER, -_MATRIX, _OTHER - 0.5])  # of three channels
_IMAGES = np.moveaxis(_IMAGES, 1, 2)
_CHANNELS = {"weight": _MATRIX[0], "bias": _OTHER[0]}
_AVERAGES = {"running_mean": _MATRIX[1], "running_var": _OTHER[1]}
_INTEGERS = np.array([[1, 2, 3], [4, 5, 6]])
_FLAGS = np.array([[True, False, True], [False, False, True]])
_CLASSES = np.array([2, 0])

_SIGNAL = np.array([[[0.31, 0.72, 0.53, 1.11], [0.84, 0.15, 0.46, 0.97]]])
_IMAGE = np.array([[[[0.31, 0.72, 0.53], [0.84, 0.15, 0.46], [1.27, 0.98, 0.09]]]])
_KERNEL = np.array([[[0.61, 0.22], [0.93, 0.34]], [[0.75, 0.16], [0.47, 0.88]]])

#: Values of parameters that functions have in common.
SHARED: dict[str, Any] = {
    **dict.fromkeys(("x", "x1", "a", "input", "array", "obj", "data", "p"), _MATRIX),
    **dict.fromkeys(("x2", "y", "b", "target"), _OTHER),
    "arrays": [_MATRIX, _OTHER],
    "shape": (2, 3),
}
#: Values of parameters of single functions, which take precedence.
CALLS: dict[str, dict[str, Any]] = {
    "arange": {"start": 0.25, "stop": 2.1, "step": 0.5},
    "acosh": {"x": _MATRIX + 1.5},
    "astype": {"dtype": "float64"},
    "at": {"key": (0,)},
    "bernoulli": {},
    **{
        f"bitwise_{name}": {"x1": _INTEGERS, "x2": _INTEGERS}
        for name in ("and", "or", "xor", "left_shift", "right_shift")
    },
    "bitwise_invert": {"x": _INTEGERS},
    "broadcast_shapes": {"shapes": [(2, 1), (3,)]},
    "broadcast_to": {"x": _MATRIX[0]},
    "can_cast": {"from_": _MATRIX, "to": "float64"},
    "clip": {"min": 0.2, "max": 0.6},
    "cumulative_prod": {"axis": 0},
    "cumulative_sum": {"axis": 0},
    "diff": {"prepend": _OTHER[:, :1], "append": _OTHER[:, 1:2]},
    "einsum": {"operands": ["ij,ij->i", _MATRIX, _OTHER]},
    "empty": {},
    "expand_dims": {"axis": 0},
    "eye": {"n_rows": 3},
    "finfo": {"type": _MATRIX},
    "from_dlpack": {},
    "from_numpy": {},
    "full": {"fill_value": 0.7},
    "full_like": {"fill_value": 0.7},
    "iinfo": {"type": _INTEGERS},
    "isdtype": {"dtype": "float64", "kind": "numeric"},
    "leaky_relu": {"x": _SIGNED, "negative_slope": 0.3},
    "F.leaky_relu": {"x": _SIGNED, "negative_slope": 0.3},
    "linspace": {"start": 0.2, "stop": 1.7, "num": 4},
    **{f"logical_{name}": {"x1": _FLAGS, "x2": _FLAGS} for name in ("and", "or", "xor")},
    "logical_not": {"x": _FLAGS},
    "logsumexp": {"b": _OTHER},
    "matmul": {"x2": _OTHER.T},
    "meshgrid": {"arrays": [_MATRIX[0], _MATRIX[1]]},
    "moveaxis": {"source": 0, "destination": 1},
    "normal": {"mean": 0.4, "std": 1.3, "size": (3,)},
    "one_hot": {"x": _INTEGERS, "num_classes": 7},
    "pad": {"pad_width": 1, "constant_values": 0.3},
    "permute_dims": {"axes": (1, 0)},
    "quantile": {"q": 0.3},
    "randint": {"low": 2, "high": 5},
    "rand": {"size": [2, 3]},
    "randn": {"size": [2, 3]},
    "manual_seed": {"seed": 0},
    "randperm": {"n": 3},
    "repeat": {"repeats": 2},
    "result_type": {"arrays_and_dtypes": [_MATRIX]},
    "roll": {"shift": 1},
    "searchsorted": {"x1": np.sort(_MATRIX[0]), "x2": _OTHER},
    "set_default_dtype": {"dtype": "float32"},
    "squeeze": {"x": _MATRIX[None], "axis": 0},
    "std": {"correction": 0.5},
    "tensor": {"data": [_MATRIX[0], _MATRIX[1]]},
    "take": {"indices": np.array([1, 0]), "axis": 0},
    "take_along_axis": {"indices": np.array([[1], [0]])},
    "tensordot": {},
    "tile": {"repetitions": (2, 1)},
    "to_backend": {"name": "numpy"},
    "to_device": {"device": "cpu"},
    "uniform": {"low": 0.4, "high": 1.3, "size": (3,)},
    "var": {"correction": 0.5},
    "where": {"condition": _FLAGS},
    "fft.fftfreq": {"n": 5, "d": 0.7},
    "fft.rfftfreq": {"n": 5, "d": 0.7},
    "linalg.cholesky": {"x": _SYMMETRIC},
    "linalg.cross": {"x1": _MATRIX, "x2": _OTHER},
    **{f"linalg.{name}": {"x": _SQUARE} for name in ("det", "slogdet", "inv", "eigvals")},
    "linalg.eig": {"x": _SQUARE},
    "linalg.eigh": {"x": _SYMMETRIC},
    "linalg.eigvalsh": {"x": _SYMMETRIC},
    "linalg.matrix_power": {"x": _SQUARE, "n": 3},
    "linalg.matrix_rank": {"rtol": 1e-3},
    "linalg.outer": {"x1": _MATRIX[0], "x2": _OTHER[0]},
    "linalg.pinv": {"rtol": 1e-3},
    "linalg.qr": {"x": _SQUARE},
    "linalg.solve": {"x1": _SQUARE, "x2": _OTHER.T},
    "linalg.cholesky_solve": {"x": _OTHER.T, "factor": _SQUARE},
    "linalg.solve_triangular": {"x1": _SQUARE, "x2": _OTHER.T, "upper": True},
    "linalg.vector_norm": {"ord": 2.5},
    "special.multigammaln": {"a": _MATRIX + 3, "d": 2},
    "special.polygamma": {"n": 1},
    "special.zeta": {"x": _MATRIX + 2, "q": _OTHER},
    "special.erfcinv": {},
    "F.batch_norm": {**_AVERAGES, **_CHANNELS, "momentum": 0.2},
    "F.group_norm": {"input": _IMAGES, "num_groups": 3, **_CHANNELS},
    "F.instance_norm": {**_CHANNELS, "input": _IMAGES},
    "F.scaled_dot_product_attention": {
        "query": _MATRIX,
        "key": _OTHER,
        "value": _SIGNED,
        "attn_mask": _MATRIX[:, :2],
        "scale": 0.6,
    },
    "F.layer_norm": {"normalized_shape": 3, **_CHANNELS},
    "F.rms_norm": {"normalized_shape": 3, "weight": _OTHER[0]},
    "F.embedding": {"input": _CLASSES, "weight": np.vstack([_MATRIX, _OTHER])},
    "F.binary_cross_entropy": {"weight": _OTHER},
    "F.binary_cross_entropy_with_logits": {"weight": _OTHER, "pos_weight": _MATRIX},
    "F.gaussian_nll_loss": {"var": _OTHER + 0.3},
    **{
        f"F.triplet_margin_{name}": {
            "anchor": _MATRIX,
            "positive": _OTHER,
            "negative": _SIGNED,
            "margin": 0.9,
        }
        for name in ("loss", "with_distance_loss")
    },
    "F.cross_entropy": {"weight": _OTHER[0], "label_smoothing": 0.2},
    **{
        f"F.adaptive_{kind}_pool{count}d": {"input": x, "output_size": 2}
        for kind in ("avg", "max")
        for count, x in ((1, _SIGNAL), (2, _IMAGE))
    },
    **{
        f"F.{kind}_pool{count}d": {"input": x, "kernel_size": 2, "padding": 1}
        for kind in ("avg", "max")
        for count, x in ((1, _SIGNAL), (2, _IMAGE))
    },
    **{
        f"F.{name}": {"input": x, "weight": w, "bias": _MATRIX[0, :2], "stride": 2}
        for name, x, w in (
            ("conv1d", _SIGNAL, _KERNEL),
            ("conv2d", _IMAGE, _KERNEL[:, None]),
            ("conv_transpose1d", _SIGNAL, _KERNEL),
            ("conv_transpose2d", _IMAGE, _KERNEL[None]),
        )
    },
    "F.dropout": {"p": 0.4},
    "F.elu": {"input": _SIGNED, "alpha": 0.7},
    "F.dropout2d": {"input": _IMAGES, "p": 0.4},
    "F.huber_loss": {"target": _SIGNED, "delta": 0.4},
    "F.linear": {"weight": _OTHER, "bias": _OTHER[:, 0]},
    "F.log_softmax": {"dim": 1},
    "F.nll_loss": {"target": _CLASSES, "weight": _OTHER[0]},
    "F.one_hot": {"tensor": _INTEGERS},
    "F.pad": {"pad": (1, 2), "value": 0.3},
    "F.smooth_l1_loss": {"target": _SIGNED, "beta": 0.4},
    "F.softmax": {"dim": 1},
    "F.softplus": {"input": _SIGNED, "beta": 0.7, "threshold": 0.5},
    "F.interpolate": {"input": _SIGNAL, "size": 7, "mode": "linear"},
    "F.pixel_shuffle": {"input": _SQUARE[:2, :2].reshape(4, 1, 1), "upscale_factor": 2},
    "F.unfold": {"input": _IMAGE, "kernel_size": 2},
    "x.std": {"correction": 0.5},
    "x.var": {"correction": 0.5},
    "x.view": {"shape": [3, 2]},
    "x.reshape_as": {"other": _MATRIX.T},
    "x.expand": {"x": _MATRIX[:1], "sizes": [2, 3]},
    "x.expand_as": {"x": _MATRIX[:1], "other": _MATRIX},
    "x.repeat": {"repeats": 2, "axis": 0},
    "x.transpose": {},
    "x.swapaxes": {"axis1": 0, "axis2": 1},
    "x.permute": {"dims": [1, 0]},
    "x.unsqueeze": {"dim": 0},
    "x.dot": {"other": _OTHER.T},
    "x.masked_fill": {"mask": _FLAGS, "value": 0.7},
    "x.type": {"dtype": "float64"},
    "x.type_as": {"other": _OTHER},
    "init.calculate_gain": {"nonlinearity": "leaky_relu", "param": 0.2},
    "init.constant_": {"val": 2.0},
}


def arguments(name: str) -> dict[str, Any]:
    """The arguments of a call of a function by name: NumPy arrays where it takes Tensors."""
    own = CALLS.get(name, {})
    found = {}
    for parameter, about in parameters(FUNCTIONS[name]).items():
        if parameter in own:
            found[parameter] = own[parameter]
        elif about.default is about.empty and parameter in SHARED:
            found[parameter] = SHARED[parameter]
        elif parameter == "tensor":
            found[parameter] = _MATRIX
    return found


def call(name: str, given: dict[str, Any], *, positional: bool = False) -> Any:
    """Call a function with arguments by name, passed by position where possible if asked."""
    args, kwargs = split_arguments(name, given, positional=positional)
    return FUNCTIONS[name](*args, **kwargs)


def split_arguments(
    name: str, given: dict[str, Any], *, positional: bool = False
) -> tuple[list[Any], dict[str, Any]]:
    """Split arguments by name into a function's positional and keyword arguments."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    open_ = True  # all parameters before are given
    abouts = parameters(FUNCTIONS[name])
    positional = positional or any(
        about.kind is about.VAR_POSITIONAL and parameter in given
        for parameter, about in abouts.items()
    )
    for parameter, about in abouts.items():
        if parameter not in given:
            open_ = open_ and about.kind is about.VAR_POSITIONAL
            continue
        if about.kind is about.VAR_POSITIONAL:
            args += given[parameter]
        elif about.kind is about.POSITIONAL_ONLY or (
            positional and open_ and about.kind is about.POSITIONAL_OR_KEYWORD
        ):
            args.append(given[parameter])
        else:
            kwargs[parameter] = given[parameter]
    return args, kwargs


def prepare(name: str, given: dict[str, Any]) -> tuple[Callable[..., Any], list[Any]]:
    """A call as a function of its differentiable arrays, and these arrays.

    The function returns a tuple of Tensors. The call's other arrays are moved to the backend that
    is selected now.
    """
    args, kwargs = split_arguments(name, given)
    args, kwargs = [*map(_moved, args)], {key: _moved(value) for key, value in kwargs.items()}
    called = FUNCTIONS[name]  # so that a compiled function leads to this one alone

    def function(*arrays: Any) -> Any:
        rest = iter(arrays)
        if name == "linalg.cholesky":  # it reads one triangle alone
            rest = iter([(x + wg.matrix_transpose(x)) * 0.5 for x in arrays])
        elif name == "F.dropout":
            wg.manual_seed(5)
        own = [_fill(value, rest) for value in args]
        named = {key: _fill(value, rest) for key, value in kwargs.items()}
        out = called(*own, **named)
        # Results that an option leaves out are None.
        every = out if isinstance(out, tuple | list) else (out,)
        return tuple([each for each in every if each is not None])

    every = [x for v in [*args, *kwargs.values()] for x in (v if isinstance(v, list) else [v])]
    return function, [x for x in every if _is_variable(x)]


def _fill(value: Any, rest: Iterator[Any]) -> Any:
    """An argument with the next arrays in place of those that are differentiated."""
    if isinstance(value, list):
        return [_fill(each, rest) for each in value]
    if _is_variable(value):
        return next(rest)
    return value


def _moved(value: Any) -> Any:
    """An argument with arrays that are not differentiated on the selected backend."""
    if isinstance(value, list):
        return [*map(_moved, value)]
    return value if _is_variable(value) or not isinstance(value, np.ndarray) else on_backend(value)


def _is_variable(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def results(out: Any) -> list[Any]:
    """The floating and complex Tensors of a result."""
    if isinstance(out, wg.Tensor):
        return [out] if out.dtype.inexact else []
    return [t for each in out for t in results(each)] if isinstance(out, tuple | list) else []
