"""What the parameters of public functions are: tests check it, and the documentation shows it.

A parameter is *differentiable*; or *constant*: it may be a Tensor too, and the derivative is zero
wherever it exists; or *undefined*: a Tensor, and to use its derivative is an error; or an *option*,
a plain value. A tracked Tensor as an option warns, and raises in transforms.
"""

from collections.abc import Callable
from typing import Any

from backend_check.calls import FUNCTIONS, parameters
from wengert.tape.primitive import NOT_IMPLEMENTED, PRIMITIVES, UNDEFINED, ZERO, Primitive

KINDS = ("differentiable", "constant", "undefined")
_OF_RULES = {ZERO: KINDS[1], UNDEFINED: KINDS[2], NOT_IMPLEMENTED: KINDS[2]}

#: "differentiable | constant | undefined" parameters, and the compositions that have them. Rows
#: say it by their rules; all other parameters are options.
_SAID = {
    "x": (
        "astype at broadcast_to clone conj cumulative_prod cumulative_sum expand_dims flip "
        "gelu log_softmax matrix_transpose max mean median min moveaxis permute_dims prod "
        "repeat reshape roll softmax sort squeeze sum take take_along_axis tile to_backend "
        "to_device tril triu unstack linalg.cholesky linalg.det linalg.diagonal linalg.eig "
        "linalg.eigh linalg.eigvals linalg.eigvalsh linalg.inv linalg.matrix_norm "
        "linalg.matrix_power linalg.qr linalg.slogdet linalg.svd linalg.svdvals linalg.trace "
        "linalg.vector_norm fft.fft fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifftn "
        "fft.ifftshift fft.ihfft fft.irfft fft.irfftn fft.rfft fft.rfftn special.polygamma "
        "x.copy x.cpu x.cumprod x.cumsum x.diagonal x.expand x.flatten x.permute x.ravel "
        "x.max x.min x.repeat x.swapaxes x.t x.trace x.transpose x.type x.unsqueeze x.view"
    ),
    "input": (
        "F.adaptive_avg_pool1d F.adaptive_avg_pool2d "
        "F.avg_pool1d F.avg_pool2d F.dropout "
        "F.dropout2d F.elu F.hardswish F.interpolate "
        "F.log_softmax F.max_pool1d F.max_pool2d F.normalize "
        "F.pad F.pixel_shuffle F.relu6 F.selu F.softmax "
        "F.softplus F.unfold"
    ),
    "| x": (
        "all any argmax argmin argsort count_nonzero empty_like nonzero ones_like rand_like "
        "zeros_like x.dim x.element_size x.is_complex x.is_floating_point x.nelement"
    ),
    "| params": (
        "optim.Adadelta optim.Adagrad optim.Adam optim.AdamW optim.Adamax "
        "optim.LBFGS optim.Lion optim.Muon optim.NAdam optim.RAdam optim.RMSprop "
        "optim.SGD"
    ),
    "| tensor": (
        "init.constant_ init.kaiming_normal_ init.kaiming_uniform_ "
        "init.normal_ init.ones_ init.orthogonal_ init.trunc_normal_ "
        "init.uniform_ init.xavier_normal_ init.xavier_uniform_ init.zeros_"
    ),
    "x1 x2": (
        "matmul pow tensordot vecdot linalg.cross linalg.outer linalg.solve "
        "linalg.solve_triangular F.cosine_similarity"
    ),
    "input weight bias": (
        "F.conv1d F.conv2d F.conv_transpose1d F.conv_transpose2d F.group_norm "
        "F.instance_norm F.layer_norm F.linear"
    ),
    "input target": "F.huber_loss F.kl_div F.l1_loss F.mse_loss F.smooth_l1_loss",
    "arrays": "broadcast_arrays concat meshgrid stack",
    "weight": "F.embedding nn.BCELoss nn.CrossEntropyLoss nn.NLLLoss",
    "| | x": "unique_all unique_counts unique_inverse unique_values",
    "input weight": "F.nll_loss F.rms_norm",
    "x | other": "x.expand_as x.reshape_as x.type_as",
    "d": "fft.fftfreq fft.rfftfreq",
    "data": "as_tensor tensor",
    "input target weight": "F.binary_cross_entropy F.cross_entropy",
    "input weight bias running_mean running_var | momentum": "F.batch_norm",
    "x correction": "x.std x.var std var",
    "| type": "finfo iinfo",
    "| x1 x2": "isin searchsorted",
    "a": "special.multigammaln",
    "a b": "logsumexp",
    "args kwargs": "nn.Identity",
    "array constant_values": "pad",
    "fill_value": "full",
    "fill_value | x": "full_like",
    "input target var": "F.gaussian_nll_loss",
    "input target weight pos_weight": "F.binary_cross_entropy_with_logits",
    "low high": "uniform",
    "mean std": "normal",
    "negative_slope": "nn.LeakyReLU",
    "obj": "asarray",
    "operands": "einsum",
    "q | | x": "special.zeta",
    "query key value attn_mask scale": "F.scaled_dot_product_attention",
    "start step | stop": "arange",
    "start stop": "linspace",
    "weight pos_weight": "nn.BCEWithLogitsLoss",
    "x factor": "linalg.cholesky_solve",
    "x min max": "clip",
    "x negative_slope": "F.leaky_relu leaky_relu",
    "x other": "x.dot",
    "x prepend append": "diff",
    "x q": "quantile",
    "x value | mask": "x.masked_fill",
    "x | rtol": "linalg.pinv",
    "x1 x2 | condition": "where",
    "| arrays_and_dtypes": "result_type",
    "| from_": "can_cast",
    "| p": "bernoulli",
    "| x rtol": "linalg.matrix_rank",
}
_BY_NAME = {name: said for said, names in _SAID.items() for name in names.split()}


def row_of(function: Callable[..., Any]) -> Primitive | None:
    """The row of a function that is written as one; None for a composition."""
    return PRIMITIVES.get(function.__name__) if hasattr(function, "__wrapped__") else None


def kinds(name: str) -> dict[str, str]:
    """The kind of each parameter of a function of `FUNCTIONS`."""
    names = parameters(FUNCTIONS[name])
    if name in _BY_NAME:
        listed = zip(KINDS, _BY_NAME[name].split("|"), strict=False)
        said = {each: kind for kind, some in listed for each in some.split()}
        assert said.keys() <= names.keys(), name
        return {parameter: said.get(parameter, "option") for parameter in names}
    row = row_of(FUNCTIONS[name])
    if row is None:
        return dict.fromkeys(names, "option")
    rules = {parameter: row.rules.get(parameter, ZERO) for parameter in names}
    return {p: _OF_RULES.get(rule, KINDS[0]) for p, rule in rules.items()}
