"""The backward functions' names are PyTorch's."""

import pytest

import wengert.fft
import wengert.linalg
import wengert.nn.functional  # noqa: F401 -- whose primitives are looked at
from wengert.tape.node import backward_name
from wengert.tape.primitive import PRIMITIVES

#: Where PyTorch's name is not that of the standard.
NAMES = {
    "astype": "ToCopy",
    "broadcast_to": "Expand",
    "clip": "Clamp",
    "concat_arrays": "Cat",
    "cumulative_prod": "Cumprod",
    "cumulative_sum": "Cumsum",
    "divide": "Div",
    "einsum_pair": "Einsum",
    "expand_dims": "Unsqueeze",
    "expit": "Sigmoid",
    "fft.fftn": "FftC2C",
    "fft.ifftn": "FftC2C",
    "fft.irfftn": "FftC2R",
    "fft.rfftn": "FftR2C",
    "getitem": "Index",
    "linear": "Addmm",
    "log1p": "Log1P",
    "log_expit": "LogSigmoid",
    "logistic_loss": "BinaryCrossEntropyWithLogits",
    "matrix_transpose": "Transpose",
    "max": "Amax",
    "min": "Amin",
    "multiply": "Mul",
    "negative": "Neg",
    "permute_dims": "Permute",
    "pow_scalar": "Pow",
    "setitem": "IndexPut",
    "softmax_cross_entropy": "CrossEntropy",
    "square": "Pow",
    "stack_arrays": "Stack",
    "subtract": "Sub",
    "take": "IndexSelect",
    "take_along_axis": "Gather",
    "to_backend": "ToCopy",
    "to_device": "ToCopy",
    "unstack": "Unbind",
}
SAME = {"sum": "Sum", "linalg.vector_norm": "LinalgVectorNorm", "relu": "Relu"}


@pytest.mark.parametrize(("name", "label"), (NAMES | SAME).items())
@pytest.mark.whole
def test_label(name: str, label: str) -> None:
    if name == "einsum_pair":
        pytest.importorskip("wengert.ops.beyond")
    assert backward_name(PRIMITIVES[name].name) == label


def test_all_others_have_their_own_name() -> None:
    for name in PRIMITIVES:
        words = name.replace(".", "_").split("_")
        assert backward_name(name) == NAMES.get(name, "".join(word.capitalize() for word in words))
