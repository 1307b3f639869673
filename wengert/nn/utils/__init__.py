"""Functions of all parameters or gradients of a model, its table, parametrisations, sequences."""

from importlib import import_module
from typing import TYPE_CHECKING, Never

from wengert.nn.utils import parametrizations, rnn
from wengert.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_, get_total_norm
from wengert.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from wengert.nn.utils.summary import summary

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "rnn",
    "summary",
    "vector_to_parameters",
]


if not TYPE_CHECKING:  # a name that is wrong is an error to type checkers

    def __getattr__(name: str) -> Never:
        raise import_module("wengert.ops.hints").no_attribute(__name__, name, __all__)


def __dir__() -> list[str]:
    return __all__
