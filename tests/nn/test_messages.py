"""Errors of networks say what to write instead."""

import re

import numpy as np
import pytest

import wengert as wg
from tests.walking import lines_of, refusals, refuse, walk
from wengert import nn


def layer() -> nn.Linear:
    return nn.Linear(3, 4)


def state(prefix: str = "") -> dict[str, wg.Tensor]:
    return {prefix + name: x for name, x in layer().state_dict().items()}


class Bare(nn.Module):
    pass


#: Calls, their errors, and words of these.
REFUSED = """
F.binary_cross_entropy(wg.full(2, 1.5), wg.ones(2)) | ValueError | of input should be between 0
F.binary_cross_entropy(wg.full(2, -0.5), wg.ones(2)) | ValueError | ; for logits use binary_cross_e
F.one_hot(wg.asarray([0, 1]), 0) | RuntimeError | num_classes should be positive, not 0
F.batch_norm(wg.ones(2), None, None) | RuntimeError | batch_norm needs an input (N, C, ...)
F.instance_norm(wg.ones((2, 3))) | RuntimeError | instance_norm needs an input (N, C, L, ...)
F.gaussian_nll_loss(wg.ones(2), wg.ones(2), wg.ones(2, dtype="complex64")) | TypeError |
    gaussian_nll_loss takes a real var beside an array of float32, not one of complex64
F.pad(wg.ones(2), 1) | TypeError | pad takes a sequence of integers as pad, not 1
F.normalize(wg.ones(2), dim=1) | IndexError | axis 1 is out of bounds
nn.MultiheadAttention(4, 2)(*[wg.ones((3, 1, 4))] * 3, attn_mask=wg.ones((2, 2), dtype="bool")) |
    RuntimeError | attn_mask is of shape (2, 2), and should be of (3, 3) or (2, 3, 3)
nn.init.calculate_gain("leaky_relu", "a") | ValueError | negative_slope a not a valid number
optim.SGD([wg.ones(2, requires_grad=True)], lr=[wg.ones(2)]) | TypeError | an array of shape (2,)
nn.Linea | AttributeError | did you mean 'Linear'?
F.nll_loss(wg.ones((2, 3)), wg.ones(2)) | RuntimeError | cast with wg.astype(target, wg.int64)
F.linear(wg.ones((2, 3)), wg.ones((4, 3)), wg.ones(1)) | RuntimeError | a bias of shape (1,)
nn.GRU(3, 4)(wg.ones((5, 3), dtype="float64")) | RuntimeError | has parameters of float32
nn.init.kaiming_normal_(wg.ones((2, 2)), a="0") | TypeError | kaiming_normal_ takes a number
nn.Sequential(wg.tanh) | TypeError | tanh is a function
nn.Sequential(wg.tanh) | TypeError | write nn.Tanh()
nn.Sequential(nn.functional.log_softmax) | TypeError | write nn.LogSoftmax()
nn.ModuleList([wg.expit]) | TypeError | write nn.Sigmoid()
nn.ModuleDict({"a": wg.sin}) | TypeError | in the forward of a subclass of nn.Module
layer().add_module("f", lambda x: x) | TypeError | in the forward of a subclass
nn.Sequential(nn.ReLU) | TypeError | write nn.ReLU()
nn.Sequential([nn.ReLU()]) | TypeError | nn.Sequential(*modules)
nn.Sequential(3) | TypeError | int is not a Module subclass
nn.ModuleList(nn.ReLU()) | TypeError | nn.ModuleList([first, second])
nn.ModuleDict([nn.ReLU()]) | TypeError | are for nn.ModuleList
nn.Linear("3", 4) | TypeError | in_features is an integer, and '3' is not
nn.Linear(3, 4.0) | TypeError | out_features is an integer, and 4.0 is not
nn.Parameter(3.0) | TypeError | nn.Parameter(wg.tensor(3.0))
nn.Parameter([1.0]) | TypeError | nn.Parameter(wg.tensor([1.0]))
Bare()(1) | NotImplementedError | def forward(self, x)
setattr(layer(), "weight", wg.ones((4, 3))) | TypeError | nn.Parameter(...)
layer().register_parameter("a", wg.ones(2)) | TypeError | nn.Parameter(...)
layer().register_buffer("b", 3) | TypeError | wg.tensor(...)
layer().load_state_dict("weights.safetensors") | TypeError | nn.load(path)
layer().load_state_dict(layer()) | TypeError | pass its state_dict()
layer().load_state_dict([1]) | TypeError | not list
layer().load_state_dict({}) | RuntimeError | strict=False
layer().load_state_dict({**state(), 3: wg.ones(1)}) | RuntimeError | state_dict: 3.
nn.Conv2d(3, 4) | TypeError | __init__() missing 1 required positional
nn.TransformerEncoderLayer(8) | TypeError | __init__() missing 1
nn.BatchNorm1d(3, size=1) | TypeError | __init__() got an unexpected keyword
layer()(wg.ones((1, 3), dtype="int64")) | RuntimeError | wg.float32)
layer()(wg.ones((1, 3), dtype="float64")) | RuntimeError | module.to(wg.float64)
nn.GRU(3, 4)(wg.ones((1, 3), dtype="float64")) | RuntimeError | module.to(wg.float64)
nn.utils.clip_grad_norm_(layer(), 1.0) | TypeError | pass the Linear's parameters()
nn.utils.clip_grad_norm_(nn.Sequential(layer()), 1.0) | TypeError | Sequential's parameters
nn.utils.clip_grad_value_(layer().parameters, 1.0) | TypeError | call it, as in
nn.utils.get_total_norm(3.0) | TypeError | iterable of Tensors, and was given a float
layer().register_full_backward_hook(print) | NotImplementedError | call output.register_hook
layer().load_state_dict({**state(), "more": wg.ones(1)}) | RuntimeError | strict=False
layer().register_buffer(3, wg.ones(1)) | TypeError | the name should be a string, not int
layer().register_buffer("training", wg.ones(1)) | KeyError | 'training' already exists
layer().register_buffer("forward", wg.ones(1)) | KeyError | 'forward' already exists
layer().add_module("forward", nn.ReLU()) | KeyError | 'forward' already exists
layer().add_module("", nn.ReLU()) | KeyError | can't be empty or contain '.', got ''
layer().add_module("a.b", nn.ReLU()) | KeyError | can't be empty or contain '.', got 'a.b'
layer().to("nowhere") | ValueError | no device 'nowhere'
nn.Conv2d(1, 1, 1, padding_mode="reflect") | TypeError | pad the input by nn.functional.pad
nn.MSELoss(reduction="avg")(wg.ones(2), wg.ones(2)) | ValueError | 'mean', 'sum' or 'none'
nn.functional.linear(3, wg.ones((4, 3))) | TypeError | was given a int as input;
nn.functional.linear(wg.ones(3), None) | TypeError | was given a NoneType as weight;
nn.functional.linear(wg.ones(3), "w") | TypeError | was given a str as weight;
nn.functional.linear(wg.ones(3), wg.ones((4, 3)), 3.0) | TypeError | was given a float as bias;
nn.init.normal_(wg.ones(2), mean="0") | TypeError | normal_ takes a number as mean,
nn.init.normal_(wg.ones(2), std="0") | TypeError | normal_ takes a number as std,
nn.MultiheadAttention(4, 2, dropout="0.1") | TypeError |
    MultiheadAttention takes a number as dropout, not '0.1'
nn.RNN(3, 4, dropout="0.1") | TypeError | RNN takes a number as dropout, not '0.1'
nn.LSTM(3, 4, dropout="0.1") | TypeError | LSTM takes a number as dropout, not '0.1'
nn.GRU(3, 4, dropout="0.1") | TypeError | GRU takes a number as dropout, not '0.1'
"""
#: Calls with an option of PyTorch's, which the error names.
OPTIONS = """
nn.CrossEntropyLoss(size_average=True)  nn.MSELoss(reduce=True)  F.nll_loss(size_average=True)
F.binary_cross_entropy(reduce=True)  F.cross_entropy(None, None, size_average=True)
nn.MaxPool2d(2, return_indices=True)  F.max_pool2d(None, 2, return_indices=True)
nn.AvgPool2d(2, ceil_mode=True)  nn.AvgPool2d(2, divisor_override=True)  F.embedding(sparse=True)
F.interpolate(recompute_scale_factor=True)  nn.Upsample(2, recompute_scale_factor=True)
F.instance_norm(running_mean=True)  F.scaled_dot_product_attention(enable_gqa=True)
F.relu(x, inplace=True)  F.relu6(x, inplace=True)  F.elu(x, inplace=True)  F.selu(x, inplace=True)
F.silu(x, inplace=True)  F.leaky_relu(x, inplace=True)  F.hardswish(x, inplace=True)
F.dropout(x, inplace=True)  F.dropout2d(x, inplace=True)
nn.utils.clip_grad_norm_([], 1.0, foreach=True)  nn.utils.clip_grad_value_([], 1.0, foreach=True)
nn.utils.clip_grad_norm_([], 1.0, error_if_nonfinite=True)
nn.utils.clip_grad_value_([], 1.0, error_if_nonfinite=True)
nn.utils.get_total_norm([], error_if_nonfinite=True)
optim.lr_scheduler.OneCycleLR(None, 1.0, 9, three_phase=True)
"""
DRAWING = {*nn.init.__all__} - {"calculate_gain", "constant_", "ones_", "zeros_"}


def test_what_to_do_is_said() -> None:
    calls = [
        *lines_of(OPTIONS),
        *(f"nn.init.{name}(x, generator=True)" for name in sorted(DRAWING)),
    ]
    options = [(call, call[:-6].rpartition(" ")[2].rpartition("(")[2]) for call in calls]
    rows = [(call, call, "TypeError", f"takes no {name}, which ") for call, name in options]
    rows += [(name, *row, re.escape(says)) for name, *row, says in refusals(REFUSED)]
    walk(rows, refuse(layer=layer, state=state, Bare=Bare, x=wg.ones((2, 2))), whole=True)


@pytest.mark.parametrize(("own", "given"), [("", "module."), ("net.", "")])
def test_the_change_of_names_that_is_told_loads(own: str, given: str) -> None:
    """DataParallel and compiled models of PyTorch's save under a name more."""
    model: nn.Module = layer()
    if own:
        model = nn.Sequential({"net": model})
    state_dict = state(given)
    with pytest.raises(RuntimeError) as told:
        model.load_state_dict(state_dict)
    mended = re.search(r"load (\{.*\})\.$", str(told.value))[1]
    model.load_state_dict(eval(mended, {"state_dict": state_dict}))
    np.testing.assert_array_equal(
        next(model.parameters()).detach().numpy(), state_dict[f"{given}weight"].numpy()
    )


def test_a_gpu_is_asked_of_a_library_that_has_one() -> None:
    with pytest.raises(ValueError, match="numpy has no device 'cuda:1'"):
        layer().cuda(1)
