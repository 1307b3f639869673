"""PyTorch's and NumPy's names of Wengert's functions: for the errors that unknown names raise.

Each entry says what to write instead. The module is imported when such an error is raised.
"""

from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from inspect import signature
from typing import Any, Final

#: Functions, by PyTorch's and NumPy's names.
FUNCTIONS: Final = {
    "absolute": "wg.abs",
    "addmm": "wg.add(x, wg.matmul(a, b))",
    "allclose": "np.testing.assert_allclose of x.detach().numpy()",
    "amax": "wg.max",
    "amin": "wg.min",
    "append": "wg.concat",
    "arccos": "wg.acos",
    "arccosh": "wg.acosh",
    "arcsin": "wg.asin",
    "arcsinh": "wg.asinh",
    "arctan": "wg.atan",
    "arctan2": "wg.atan2",
    "arctanh": "wg.atanh",
    "argwhere": "wg.stack(wg.nonzero(x), 1)",
    "array": "wg.asarray, or wg.tensor for a copy",
    "asanyarray": "wg.asarray",
    "atleast_1d": "np.atleast_1d(x), which gives a tracked Tensor",
    "atleast_2d": "np.atleast_2d(x), which gives a tracked Tensor",
    "atleast_3d": "np.atleast_3d(x), which gives a tracked Tensor",
    "average": "np.average(x, weights=...), which gives a tracked Tensor",
    "bitwise_not": "wg.bitwise_invert",
    "block": "wg.concat",
    "bmm": "wg.matmul",
    "cat": "wg.concat",
    "cbrt": "wg.sign(x) * wg.pow(wg.abs(x), 1 / 3)",
    "chunk": "slices, x[:n] and x[n:], or wg.unstack",
    "clamp": "wg.clip",
    "clamp_max": "wg.clip(x, max=...)",
    "clamp_min": "wg.clip(x, min=...)",
    "column_stack": "np.column_stack, which gives a tracked Tensor",
    "concatenate": "wg.concat",
    "conjugate": "wg.conj",
    "convolve": "np.convolve, which gives a tracked Tensor",
    "copy": "wg.clone",
    "cross": "wg.linalg.cross",
    "cumprod": "wg.cumulative_prod",
    "cumsum": "wg.cumulative_sum",
    "deg2rad": "x * (math.pi / 180)",
    "det": "wg.linalg.det",
    "detach": "x.detach()",
    "diag": "wg.linalg.diagonal, or np.diag(x), which gives a tracked Tensor",
    "diagonal": "wg.linalg.diagonal, or the method x.diagonal() for the first two axes",
    "digamma": "wg.special.digamma",
    "div": "wg.divide",
    "dot": "wg.vecdot, wg.matmul, or the method x.dot(y)",
    "dstack": "np.dstack, which gives a tracked Tensor",
    "eq": "wg.equal",
    "erfinv": "wg.special.erfinv",
    "expand_as": "wg.broadcast_to(x, y.shape)",
    "fabs": "wg.abs",
    "fix": "wg.trunc",
    "flatten": "wg.reshape(x, (-1,)), or the method x.flatten()",
    "fliplr": "wg.flip(x, 1)",
    "flipud": "wg.flip(x, 0)",
    "float_power": "wg.pow",
    "fmod": "wg.remainder, whose sign is the divisor's",
    "gather": "wg.take_along_axis",
    "ge": "wg.greater_equal",
    "geomspace": "wg.exp(wg.linspace(math.log(a), math.log(b), n))",
    "gradient": "np.gradient of values, which gives a tracked Tensor, or wg.grad of functions",
    "gt": "wg.greater",
    "hstack": "wg.concat",
    "identity": "wg.eye",
    "index_select": "wg.take",
    "inner": "wg.vecdot, or wg.tensordot",
    "inv": "wg.linalg.inv",
    "inverse": "wg.linalg.inv",
    "invert": "wg.bitwise_invert",
    "is_floating_point": 'wg.isdtype(x.dtype, "real floating")',
    "is_tensor": "isinstance(x, wg.Tensor)",
    "isclose": "wg.abs(x - y) <= tolerance",
    "isreal": "wg.imag(x) == 0",
    "kron": "np.kron, which gives a tracked Tensor",
    "le": "wg.less_equal",
    "left_shift": "wg.bitwise_left_shift",
    "lerp": "x + weight * (y - x)",
    "lgamma": "wg.special.gammaln",
    "logdet": "wg.linalg.slogdet(x).logabsdet",
    "logspace": "wg.pow(10.0, wg.linspace(a, b, n))",
    "lstsq": "wg.linalg.pinv(a) @ b",
    "lt": "wg.less",
    "masked_select": "x[mask]",
    "mm": "wg.matmul",
    "mod": "wg.remainder",
    "movedim": "wg.moveaxis",
    "mul": "wg.multiply",
    "mv": "wg.matmul",
    "nan_to_num": "wg.where(wg.isnan(x), 0, x)",
    "nanmean": "np.nanmean(x), which gives a tracked Tensor",
    "nansum": "np.nansum(x), which gives a tracked Tensor",
    "narrow": "a slice, x[:, start : start + length]",
    "ndarray": "wg.Tensor",
    "ne": "wg.not_equal",
    "neg": "wg.negative",
    "norm": "wg.linalg.vector_norm, or wg.linalg.matrix_norm",
    "numel": "x.size",
    "outer": "wg.linalg.outer",
    "percentile": "wg.quantile(x, q / 100)",
    "permute": "wg.permute_dims",
    "pinverse": "wg.linalg.pinv",
    "power": "wg.pow",
    "ptp": "wg.max(x) - wg.min(x)",
    "rad2deg": "x * (180 / math.pi)",
    "ravel": "wg.reshape(x, (-1,)), or the method x.ravel()",
    "repeat_interleave": "wg.repeat",
    "right_shift": "wg.bitwise_right_shift",
    "rint": "wg.round",
    "rot90": "np.rot90(x), which gives a tracked Tensor",
    "row_stack": "wg.concat",
    "rsqrt": "1 / wg.sqrt(x)",
    "scatter": "x.at(key).set(values)",
    "scatter_add": "x.at(key).add(values)",
    "seed": "wg.manual_seed",
    "select": "x[index], or wg.where",
    "sgn": "wg.sign",
    "sigmoid": "wg.expit",
    "sinc": "wg.special.sinc",
    "slogdet": "wg.linalg.slogdet",
    "solve": "wg.linalg.solve",
    "split": "slices, x[:n] and x[n:], or np.split(x, ...), which gives tracked Tensors",
    "std_mean": "wg.std and wg.mean",
    "sub": "wg.subtract",
    "svd": "wg.linalg.svd",
    "swapaxes": "wg.permute_dims, or the method x.swapaxes(i, j)",
    "swapdims": "wg.permute_dims, or the method x.swapaxes(i, j)",
    "t": "x.T",
    "take_along_dim": "wg.take_along_axis",
    "topk": "wg.argsort(x, descending=True)[..., :k] and wg.take_along_axis",
    "trace": "wg.linalg.trace, or the method x.trace() for the first two axes",
    "transpose": "wg.permute_dims, or wg.matrix_transpose for the last two axes",
    "trapezoid": "np.trapezoid, which gives a tracked Tensor",
    "true_divide": "wg.divide",
    "unbind": "wg.unstack",
    "unflatten": "wg.reshape",
    "unique": "wg.unique_values",
    "unsqueeze": "wg.expand_dims",
    "var_mean": "wg.var and wg.mean",
    "vdot": "wg.vecdot",
    "view_as_real": "wg.stack([wg.real(z), wg.imag(z)], -1)",
    "vmap": "an axis of the arrays; functions here broadcast",
    "vstack": "wg.concat",
}

#: Methods of Tensors, by PyTorch's and NumPy's names. The others go by what `FUNCTIONS` says.
METHODS: Final = {
    "abs_": "x = x.abs()",
    "bfloat16": "x.to(wg.bfloat16)",
    "byte": "x.to(wg.uint8)",
    "cfloat": "x.to(wg.complex64)",
    "char": "x.to(wg.int8)",
    "clamp_": "x = x.clip(min, max)",
    "clip_": "x = x.clip(min, max)",
    "contiguous": "x itself: the order in memory is the library's own affair",
    "data": "x.detach()",
    "detach_": "x = x.detach()",
    "exp_": "x = x.exp()",
    "fill": "x.fill_(value)",
    "flat": "x.ravel()",
    "get_device": "x.device",
    "H": "wg.conj(x.mT)",
    "index_add": "x.at(key).add(values)",
    "index_add_": "x = x.at(key).add(values)",
    "index_fill": "x.at(key).set(value)",
    "is_contiguous": "nothing: the order in memory is the library's own affair",
    "is_cuda": "x.device",
    "is_sparse": "nothing: Tensors are dense",
    "log_": "x = x.log()",
    "logsumexp": "wg.logsumexp(x, axis)",
    "masked_fill_": "x[mask] = value",
    "mH": "wg.conj(x.mT)",
    "nbytes": "x.size * x.dtype.itemsize",
    "neg_": "x = -x",
    "new_empty": "wg.empty(shape, dtype=x.dtype, device=x.device)",
    "new_full": "wg.full(shape, value, dtype=x.dtype, device=x.device)",
    "new_ones": "wg.ones(shape, dtype=x.dtype, device=x.device)",
    "new_tensor": "wg.tensor(data, dtype=x.dtype, device=x.device)",
    "new_zeros": "wg.zeros(shape, dtype=x.dtype, device=x.device)",
    "normal_": "x.copy_(wg.randn(*x.shape)), or wg.nn.init.normal_(x)",
    "pin_memory": "x itself",
    "pow_": "x **= exponent",
    "put": "x[key] = values",
    "random_": "x.copy_(wg.randint(0, high, x.shape))",
    "register_backward_hook": "x.register_hook(hook)",
    "relu_": "x = x.relu()",
    "resize": "x.reshape(shape)",
    "resize_": "x.reshape(shape)",
    "scatter_": "x[key] = values",
    "scatter_add_": "x = x.at(key).add(values)",
    "share_memory_": "x.numpy()",
    "short": "x.to(wg.int16)",
    "sigmoid_": "x = x.expit()",
    "sqrt_": "x = x.sqrt()",
    "squeeze_": "x = x.squeeze()",
    "stride": "x.array.strides, where the library has them",
    "strides": "x.array.strides, where the library has them",
    "tobytes": "x.numpy().tobytes()",
    "tril_": "x = x.tril()",
    "triu_": "x = x.triu()",
    "uniform_": "x.copy_(wg.rand(*x.shape)), or wg.nn.init.uniform_(x)",
    "unsqueeze_": "x = x.unsqueeze(axis)",
}

#: Not the standard's names.
_BEYOND: Final = (
    "wg.special",
    "wg.quantile",
    "wg.expit",
    "wg.manual_seed",
    "wg.clone",
    "wg.Tensor",
)

#: Keyword arguments.
KEYWORDS: Final = {
    "a_max": "max",
    "a_min": "min",
    "ddof": "correction",
    "descend": "descending",
    "dim": "axis axes",
    "dims": "axis axes",
    "keepdim": "keepdims",
    "unbiased": "correction",
}


@cache
def name_hint(module: str, name: str, known: tuple[str, ...]) -> str:
    """The text of the error for a name that a module does not have."""
    text = f"module {module!r} has no attribute {name!r}"
    if name in FUNCTIONS and module == "wengert":
        return f"{text}; {_instead(FUNCTIONS[name])}"
    if module == "wengert" and name in import_module("wengert.ops.special").__all__:
        return f"{text}; {_instead(f'wg.special.{name}')}"
    return text + _near(name, known)


def method_hint(name: str) -> str:
    """The text of the error for a method of other libraries that Tensors do not have."""
    instead = METHODS.get(name) or FUNCTIONS[name]
    return f"'Tensor' object has no attribute {name!r}; {_instead(instead)}"


def keyword_hint(function: Callable[..., Any], name: str) -> str:
    """The text of the error for a keyword argument that a function does not have."""
    text = f"{function.__name__}() got an unexpected keyword argument {name!r}"
    known = tuple(
        [p.name for p in signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    )
    for right in KEYWORDS.get(name, "").split():
        if right.partition("=")[0] in known:
            return f"{text}; write {right!r}, the Array API standard's name"
    return text + _near(name, known)


def _instead(what: str) -> str:
    plain = what.startswith("wg.") and what[3:].replace(".", "").isidentifier()
    standard = plain and not what.startswith(_BEYOND)
    return f"use {what}" + (", the Array API standard's name" if standard else "")


def _near(name: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.75)
    return f"; did you mean {close[0]!r}?" if close else ""
