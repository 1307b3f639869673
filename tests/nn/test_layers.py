"""Layers and losses against PyTorch by one table, losses by formulas, what layers show."""

import itertools

import numpy as np
import pytest

import wengert as wg
from tests.nn.test_losses import LOSSES
from tests.nn.twins import alike, check_twins
from tests.ops.spaces import irregular
from tests.project import stubs
from tests.walking import lines_of, walk
from wengert import nn
from wengert.nn import functional as F

REDUCTIONS = ("none", "mean", "sum")
WEIGHTS = np.asarray([0.5, 2.0, 3.0])
X = irregular(4, 3)
LABELS = np.asarray([2, 0, 1, 2])

RNG = np.random.default_rng(7)
KINKS = np.resize([0.0, -3, 3, 6, 1, -1, 0.5, -0.5, -0.3, 0.7, 0.3, 0.1], (2, 4, 3, 2))
P, T = RNG.uniform(0.05, 0.95, (2, 4, 3))
LINE, IMAGE = RNG.normal(size=(2, 4, 9)), RNG.normal(size=(2, 4, 8, 6))
PLACES = np.array([[0, 1, 1], [4, 2, 1]])
CELL = [RNG.normal(size=(3, n)) for n in (2, 5, 5)]
#: Layers by what they are given, and how much of it is differentiated. R stands for each reduction.
LAYERS: list[tuple[list[list[np.ndarray]], int, str]] = [
    ([[X], [X * 40]], 1, """
ReLU()  SiLU()  Sigmoid()  LogSigmoid()  Tanh()  GELU()  GELU(approximate="tanh")  Identity()
LeakyReLU(negative_slope=0.2)  ELU(alpha=0.3)  Softmax(dim=0)
Softplus(beta=3.0, threshold=2.0)  LogSoftmax(dim=-1)  Linear(3, 2)  Linear(3, 2, bias=False)
Sequential(Linear(3, 4), Sequential(ReLU(), Dropout(0.0)), Linear(4, 2))
"""),
    ([[IMAGE], [KINKS], [KINKS * 40]], 1, "ReLU6()  Hardswish()  SELU()"),
    ([[X.reshape(2, 2, 3).swapaxes(1, 2)]], 1, "Flatten()  Flatten(start_dim=0, end_dim=1)"),
    ([[X, LABELS]], 1, """
CrossEntropyLoss(label_smoothing=0.1, ignore_index=2, reduction=R)
CrossEntropyLoss(weight=W, reduction=R)  NLLLoss(reduction=R)
"""),
    ([[P, T]], 1, """
BCELoss(reduction=R)  BCEWithLogitsLoss(reduction=R)  BCEWithLogitsLoss(W, pos_weight=W)
"""),
    ([[LINE]], 1, """
Conv1d(4, 6, 3)  Conv1d(4, 6, 3, padding="same", dilation=2)
ConvTranspose1d(4, 6, 3, stride=2, output_padding=1, padding=1)
MaxPool1d(2)  AvgPool1d(2, padding=1, count_include_pad=False)  AdaptiveAvgPool1d(3)
"""),
    ([[IMAGE]], 1, """
Conv2d(4, 6, 3, bias=False, stride=2, padding=1)  Conv2d(4, 6, (3, 2), padding=(2, 1), groups=2)
Conv2d(4, 6, 4, padding="same")  Conv2d(4, 6, 2, padding="valid", dilation=(1, 2))
ConvTranspose2d(4, 6, 3, groups=2, dilation=2, bias=False)
ConvTranspose2d(4, 6, (3, 2), stride=(2, 1))  Unfold(2, padding=1)  ZeroPad2d((1, -1, 2, 0))
ReflectionPad2d((1, 2, 0, 3))  MaxPool2d(3, 2, padding=1, dilation=1)
AvgPool2d((3, 2), stride=(2, 1))  AdaptiveAvgPool2d((3, None))  Upsample((4, 9))  PixelShuffle(2)
Upsample(scale_factor=(2, 1.5), mode="bilinear", align_corners=True)
"""),
    ([[PLACES]], 0, "Embedding(5, 3)  Embedding(5, 3, 1)  Embedding(5, 3, -1)"),
    ([CELL[:1], CELL[:2], [x[0] for x in CELL[:2]]], 2, "GRUCell(2, 5)  GRUCell(2, 5, bias=False)"),
    ([CELL[:1], CELL, [x[0] for x in CELL]], 3, "LSTMCell(2, 5)  LSTMCell(2, 5, bias=False)"),
    *(
        ([inputs], tracked, "  ".join(
            f"{name}({', '.join([*map('{}={!r}'.format, space, each), *more])})"
            for each in itertools.product(*space.values())
        ))
        for name, (inputs, tracked, space, _) in LOSSES.items()
        for more in [["reduction=R"] * name.endswith("Loss")]
    ),
]  # fmt: skip
ROWS = [
    (line.partition("(")[0], line, inputs, tracked)
    for given, tracked, lines in LAYERS
    for line in lines_of(lines)
    for inputs in given
]


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_layers_are_pytorchs() -> None:
    """How they read, their states, results, and first and second derivatives."""
    torch = pytest.importorskip("torch")

    def check(name: str, line: str, inputs: list[np.ndarray], tracked: int) -> None:
        for reduction in REDUCTIONS if "=R" in line else [""]:
            ours, theirs = (
                eval(line, {**vars(lib), "R": reduction, "W": make(WEIGHTS)})
                for lib, make in ((nn, wg.asarray), (torch.nn, torch.tensor))
            )
            alike(ours.to(wg.float64), theirs.double(), reads=name != "AvgPool1d")  # in tuples
            cell = lambda module, x, *state: module(x, state or None)
            check_twins(ours, theirs, inputs, tracked, cell if name == "LSTMCell" else None)

    with wg.use_backend("numpy"):
        walk(ROWS, check, whole=True)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss"])
def test_shapes_that_differ_are_told_of_the_function(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name} got an input of shape \(3,\) and a target"):
        getattr(F, name)(wg.ones(3), wg.ones((2, 3)))


def test_signatures_of_stored_options_are_those_of_the_functions() -> None:
    pytest.importorskip("ruff", reason="which lays the stub out")
    assert stubs.STORED.read_text(encoding="utf-8") == stubs.stored()


def test_modules_that_read_the_same_are_written_once() -> None:
    layers = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.Tanh(), nn.ReLU()])
    assert repr(layers) == "ModuleList(\n  (0): ReLU()\n  (1-2): 2 x Tanh()\n  (3): ReLU()\n)"
    params = nn.ParameterList([nn.Parameter(wg.ones((2, 3), dtype="float64"))])
    text = "  (0): Parameter containing: [wengert.float64 of size 2x3]"
    assert repr(params) == f"ParameterList(\n  {text}\n)"
    for layer, options in (
        (nn.GRUCell(2, 5, bias=False), "2, 5, bias=False"),
        (nn.Embedding(5, 3, -1), "5, 3, padding_idx=4"),
        (nn.ZeroPad2d(1), "(1, 1, 1, 1)"),
        (nn.Flatten(), "start_dim=1, end_dim=-1"),
        (nn.LSTM(2, 3, 2, bidirectional=True), "2, 3, num_layers=2, bidirectional=True"),
        (
            nn.GRU(2, 3, bias=False, batch_first=True, dropout=0.5, num_layers=2),
            "2, 3, num_layers=2, bias=False, batch_first=True, dropout=0.5",
        ),
        (nn.Linear(3, 2, bias=False), "in_features=3, out_features=2, bias=False"),
    ):
        assert repr(layer) == f"{type(layer).__name__}({options})"


def test_parameters_and_averages_are_reset() -> None:
    for layer in (nn.BatchNorm1d(3), nn.LayerNorm(3), nn.RMSNorm(3), nn.GroupNorm(1, 3)):
        before = {name: x.numpy() for name, x in layer.state_dict().items()}
        layer(wg.asarray(X, dtype=wg.float32))
        for parameter in layer.parameters():
            nn.init.constant_(parameter, 5.0)
        layer.reset_parameters()
        for name, x in layer.state_dict().items():
            np.testing.assert_array_equal(x.numpy(), before[name])


def test_what_helps_against_names_is_not_said_of_sizes() -> None:
    layer = nn.Linear(2, 3)
    state = nn.Linear(3, 3).state_dict()
    with pytest.raises(RuntimeError, match="size mismatch for weight") as caught:
        layer.load_state_dict(state)
    assert "strict=False" not in str(caught.value)
    del state["bias"]
    with pytest.raises(RuntimeError, match="strict=False"):
        layer.load_state_dict(state)


def test_weights_of_linear_layers_start_within_a_bound() -> None:
    """Uniform up to one over the root of the number of inputs, as PyTorch's."""
    layer = nn.Linear(16, 500)
    for parameter in (layer.weight, layer.bias):
        largest = wg.max(wg.abs(parameter)).item()
        assert 0.24 < largest <= 0.25
        assert wg.min(parameter).item() < -0.24 and wg.max(parameter).item() > 0.24
