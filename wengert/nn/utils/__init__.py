"""Functions of all parameters or gradients of a model, its table, parametrisations, sequences."""

from wengert.nn.utils import parametrizations, rnn
from wengert.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_, get_total_norm
from wengert.nn.utils.summary import summary
from wengert.ops.hints import list_public

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "get_total_norm", "parametrizations", "rnn", "summary",
]  # fmt: skip

list_public(__name__)
