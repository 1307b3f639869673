"""Errors of networks say what to write instead."""

import re
from functools import partial
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import nn, optim
from wengert.nn import functional as F


def layer() -> nn.Linear:
    return nn.Linear(3, 4)


def state(prefix: str = "") -> dict[str, wg.Tensor]:
    return {prefix + name: x for name, x in layer().state_dict().items()}


class Bare(nn.Module):
    pass


@pytest.mark.whole
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.Linea, "did you mean 'Linear'?"),
        (lambda: F.nll_loss(wg.ones((2, 3)), wg.ones(2)), "cast with wg.astype(target, wg.int64)"),
        (lambda: F.linear(wg.ones((2, 3)), wg.ones((4, 3)), wg.ones(1)), "a bias of shape (1,)"),
        (lambda: F.binary_cross_entropy(wg.full(2, 1.5), wg.ones(2)), "of input should be between 0"),
        (lambda: F.binary_cross_entropy(wg.full(2, -0.5), wg.ones(2)), "; for logits use binary_c"),
        (lambda: F.one_hot(wg.asarray([0, 1]), 0), "num_classes should be positive, not 0"),
        (lambda: F.batch_norm(wg.ones(2), None, None), "batch_norm needs an input (N, C, ...)"),
        (lambda: F.instance_norm(wg.ones((2, 3))), "instance_norm needs an input (N, C, L, ...)"),
        (
            lambda: F.gaussian_nll_loss(wg.ones(2), wg.ones(2), wg.ones(2, dtype="complex64")),
            "gaussian_nll_loss takes a real var beside an array of float32, not one of complex64",
        ),
        (lambda: F.pad(wg.ones(2), 1), "pad takes a sequence of integers as pad, not 1"),
        (lambda: F.normalize(wg.ones(2), dim=1), "axis 1 is out of bounds"),
        (
            lambda: nn.MultiheadAttention(4, 2)(
                *[wg.ones((3, 1, 4))] * 3, attn_mask=wg.ones((2, 2), dtype="bool")
            ),
            "attn_mask is of shape (2, 2), and should be of (3, 3) or (2, 3, 3)",
        ),
        (lambda: nn.init.calculate_gain("leaky_relu", "a"), "negative_slope a not a valid number"),
        (lambda: optim.SGD([wg.ones(2, requires_grad=True)], lr=np.ones(2)), "an array of shape (2,)"),
        (lambda: nn.GRU(3, 4)(wg.ones((5, 3), dtype="float64")), "has parameters of float32"),
        (lambda: nn.init.kaiming_normal_(wg.ones((2, 2)), a="0"), "kaiming_normal_ takes a number"),
        (lambda: nn.Sequential(wg.tanh), "tanh is a function"),
        (lambda: nn.Sequential(wg.tanh), "write nn.Tanh()"),
        (lambda: nn.Sequential(nn.functional.log_softmax), "write nn.LogSoftmax()"),
        (lambda: nn.ModuleList([wg.expit]), "write nn.Sigmoid()"),
        (lambda: nn.ModuleDict({"a": wg.sin}), "in the forward of a subclass of nn.Module"),
        (lambda: layer().add_module("f", lambda x: x), "in the forward of a subclass"),
        (lambda: nn.Sequential(nn.ReLU), "write nn.ReLU()"),
        (lambda: nn.Sequential([nn.ReLU()]), "nn.Sequential(*modules)"),
        (lambda: nn.Sequential(3), "int is not a Module subclass"),
        (lambda: nn.ModuleList(nn.ReLU()), "nn.ModuleList([first, second])"),
        (lambda: nn.ModuleDict([nn.ReLU()]), "are for nn.ModuleList"),
        (lambda: nn.Linear("3", 4), "in_features is an integer, and '3' is not"),
        (lambda: nn.Linear(3, 4.0), "out_features is an integer, and 4.0 is not"),
        (lambda: nn.Parameter(3.0), "nn.Parameter(wg.tensor(3.0))"),
        (lambda: nn.Parameter([1.0]), "nn.Parameter(wg.tensor([1.0]))"),
        (lambda: Bare()(1), "def forward(self, x)"),
        (lambda: setattr(layer(), "weight", wg.ones((4, 3))), "nn.Parameter(...)"),
        (lambda: layer().register_parameter("a", wg.ones(2)), "nn.Parameter(...)"),
        (lambda: layer().register_buffer("b", 3), "wg.tensor(...)"),
        (lambda: layer().load_state_dict("weights.safetensors"), "nn.load(path)"),
        (lambda: layer().load_state_dict(layer()), "pass its state_dict()"),
        (lambda: layer().load_state_dict([1]), "not list"),
        (lambda: layer().load_state_dict({}), "strict=False"),
        (lambda: layer().load_state_dict({**state(), 3: wg.ones(1)}), "state_dict: 3."),
        (lambda: nn.Conv2d(3, 4), "__init__() missing 1 required positional"),
        (lambda: nn.TransformerEncoderLayer(8), "__init__() missing 1"),
        (lambda: nn.BatchNorm1d(3, size=1), "__init__() got an unexpected keyword"),
        (lambda: layer()(wg.ones((1, 3), dtype="int64")), "wg.float32)"),
        (lambda: layer()(wg.ones((1, 3), dtype="float64")), "module.to(wg.float64)"),
        (lambda: nn.GRU(3, 4)(wg.ones((1, 3), dtype="float64")), "module.to(wg.float64)"),
        (lambda: nn.utils.clip_grad_norm_(layer(), 1.0), "pass the Linear's parameters()"),
        (lambda: nn.utils.clip_grad_norm_(nn.Sequential(layer()), 1.0), "Sequential's parameters"),
        (lambda: nn.utils.clip_grad_value_(layer().parameters, 1.0), "call it, as in"),
        (lambda: nn.utils.get_total_norm(3.0), "iterable of Tensors, and was given a float"),
        (lambda: layer().register_full_backward_hook(print), "call output.register_hook"),
        (lambda: layer().load_state_dict({**state(), "more": wg.ones(1)}), "strict=False"),
        (lambda: layer().register_buffer(3, wg.ones(1)), "the name should be a string, not int"),
        (lambda: layer().register_buffer("training", wg.ones(1)), "'training' already exists"),
        (lambda: layer().register_buffer("forward", wg.ones(1)), "'forward' already exists"),
        (lambda: layer().add_module("forward", nn.ReLU()), "'forward' already exists"),
        (lambda: layer().add_module("", nn.ReLU()), "can't be empty or contain '.', got ''"),
        (lambda: layer().add_module("a.b", nn.ReLU()), "can't be empty or contain '.', got 'a.b'"),
        (lambda: layer().to("nowhere"), "no device 'nowhere'"),
        *[
            (lambda given=given: nn.functional.linear(*given), f"was given a {kind} as {name};")
            for given, kind, name in (
                ((3, wg.ones((4, 3))), "int", "input"),
                ((wg.ones(3), None), "NoneType", "weight"),
                ((wg.ones(3), "w"), "str", "weight"),
                ((wg.ones(3), wg.ones((4, 3)), 3.0), "float", "bias"),
            )
        ],
        *[
            (
                lambda given=given: nn.init.normal_(wg.ones(2), **given),
                f"normal_ takes a number as {name},",
            )
            for name in ("mean", "std")
            for given in ({name: "0"},)
        ],
        *[
            (
                lambda name=name, make=make: make(**{name: "0.1"}),
                f"{layer} takes a number as {name}, not '0.1'",
            )
            for layer, name, make in (
                ("MultiheadAttention", "dropout", partial(nn.MultiheadAttention, 4, 2)),
                ("RNN", "dropout", partial(nn.RNN, 3, 4)),
                ("LSTM", "dropout", partial(nn.LSTM, 3, 4)),
                ("GRU", "dropout", partial(nn.GRU, 3, 4)),
            )
        ],
        *[
            (partial(make, **{name: True}), f"takes no {name}, which ")
            for name, make in (
                ("size_average", nn.CrossEntropyLoss),
                ("reduce", nn.MSELoss),
                ("size_average", F.nll_loss),
                ("reduce", F.binary_cross_entropy),
                ("return_indices", partial(nn.MaxPool2d, 2)),
                ("return_indices", partial(F.max_pool2d, None, 2)),
                ("ceil_mode", partial(nn.AvgPool2d, 2)),
                ("recompute_scale_factor", F.interpolate),
                ("sparse", F.embedding),
                ("running_mean", F.instance_norm),
                ("enable_gqa", F.scaled_dot_product_attention),
                ("divisor_override", partial(nn.AvgPool2d, 2)),
                ("recompute_scale_factor", partial(nn.Upsample, 2)),
                ("size_average", partial(F.cross_entropy, None, None)),
                *(
                    ("inplace", partial(f, wg.ones(2)))
                    for f in (
                        *(F.relu, F.relu6, F.elu, F.selu, F.silu, F.leaky_relu, F.hardswish),
                        *(F.dropout, F.dropout2d),
                    )
                ),
                *(
                    (name, partial(f, [], 1.0))
                    for f in (nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_)
                    for name in ("foreach", "error_if_nonfinite")
                ),
                ("error_if_nonfinite", partial(nn.utils.get_total_norm, [])),
                *(
                    ("generator", partial(getattr(nn.init, name), wg.ones((2, 2))))
                    for name in nn.init.__all__
                    if name not in ("calculate_gain", "constant_", "ones_", "zeros_")
                ),
                ("three_phase", partial(optim.lr_scheduler.OneCycleLR, None, 1.0, 9)),
            )
        ],
        (lambda: nn.Conv2d(1, 1, 1, padding_mode="reflect"), "pad the input by nn.functional.pad"),
        (lambda: nn.MSELoss(reduction="avg")(wg.ones(2), wg.ones(2)), "'mean', 'sum' or 'none'"),
    ],
)
def test_what_to_do_is_said(call: Any, message: str) -> None:
    errors = (TypeError, ValueError, RuntimeError, NotImplementedError, LookupError, AttributeError)
    with pytest.raises(errors, match=re.escape(message)):
        call()


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
