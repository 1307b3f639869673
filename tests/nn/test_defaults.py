"""Parameters that are left out are what PyTorch documents."""

import inspect

import pytest

from wengert import nn, optim
from wengert.nn import functional, init

#: One name has one default, but for these.
OTHERWISE = {
    ("AdamW", "weight_decay"): 0.01,
    ("normalize", "eps"): 1e-12,
    ("normalize", "p"): 2.0,
    ("normalize", "dim"): 1,
    ("batch_norm", "training"): False,
    **dict.fromkeys((("glu", "dim"), ("GLU", "dim")), -1),
    ("RNN", "nonlinearity"): "tanh",
    **dict.fromkeys((("RMSNorm", "eps"), ("rms_norm", "eps")), None),
    ("pad", "mode"): "constant",
    **dict.fromkeys((("interpolate", "mode"), ("Upsample", "mode")), "nearest"),
    **{
        (name, parameter): default
        for names, defaults in (
            ("trunc_normal_", {"a": -2.0, "b": 2.0}),
            ("gaussian_nll_loss GaussianNLLLoss", {"eps": 1e-6}),
            ("CosineEmbeddingLoss cosine_embedding_loss", {"margin": 0.0}),
            ("CosineSimilarity cosine_similarity", {"dim": 1}),
            ("PairwiseDistance pairwise_distance", {"p": 2.0, "eps": 1e-6}),
            ("TripletMarginLoss triplet_margin_loss", {"p": 2.0, "eps": 1e-6}),
            ("layer_norm group_norm LayerNorm GroupNorm", {"eps": 1e-5}),
            ("batch_norm BatchNorm1d BatchNorm2d", {"eps": 1e-5, "momentum": 0.1}),
            ("instance_norm", {"eps": 1e-5}),
            (
                "InstanceNorm1d InstanceNorm2d",
                {"eps": 1e-5, "momentum": 0.1, "affine": False, "track_running_stats": False},
            ),
            ("LBFGS", {"lr": 1}),
            ("Adadelta", {"lr": 1.0, "eps": 1e-6}),
            ("Adagrad", {"lr": 0.01, "eps": 1e-10}),
            ("Adamax NAdam", {"lr": 0.002}),
            ("Lion", {"lr": 0.0001, "betas": (0.9, 0.99)}),
            (
                "Muon",
                {"weight_decay": 0.1, "momentum": 0.95, "nesterov": True, "eps": 1e-7},
            ),
            ("RMSprop", {"lr": 0.01, "alpha": 0.99}),
        )
        for name in names.split()
        for parameter, default in defaults.items()
    },
}
DEFAULTS = {
    "a": 0,
    "affine": True,
    "alpha": 1.0,
    "amsgrad": False,
    "approximate": "none",
    "axis": None,
    "b": 1.0,
    "beta": 1.0,
    "betas": (0.9, 0.999),
    "bias": True,
    "dampening": 0,
    "decoupled_weight_decay": False,
    "delta": 1.0,
    "device": None,
    "dim": None,
    "distance_function": None,
    "dtype": None,
    "elementwise_affine": True,
    "end_dim": -1,
    "eps": 1e-8,
    "full": False,
    "gain": 1.0,
    "groups": 1,
    "ignore_index": -100,
    "inplace": False,
    "init": 0.25,
    "keepdim": False,
    "label_smoothing": 0.0,
    "lambd": 0.5,
    "log_input": True,
    "log_target": False,
    "lower": 1 / 8,
    "lr": 1e-3,
    "margin": 1.0,
    "max_val": 1.0,
    "mean": 0.0,
    "padding_idx": None,
    "freeze": True,
    "min_val": -1.0,
    "mode": "fan_in",
    "modules": None,
    "momentum": 0,
    "negative_slope": 0.01,
    "nesterov": False,
    "nonlinearity": "leaky_relu",
    "num_classes": -1,
    "num_parameters": 1,
    "p": 0.5,
    "param": None,
    "pos_weight": None,
    "reduction": "mean",
    "requires_grad": True,
    "start_dim": 1,
    "std": 1.0,
    "swap": False,
    "threshold": 20.0,
    "track_running_stats": True,
    "training": True,
    "upper": 1 / 3,
    "use_input_stats": True,
    "weight": None,
    "weight_decay": 0,
}
OURS = [
    (space, name)
    for space in (nn, functional, init, optim)
    for name in space.__all__
    if inspect.isfunction(getattr(space, name)) or inspect.isclass(getattr(space, name))
]


def defaults(function):
    try:
        found = inspect.signature(function).parameters
    except ValueError:  # PyTorch's functions in C++ have none
        return {}
    return {name: p.default for name, p in found.items() if p.default is not p.empty}


@pytest.mark.whole
@pytest.mark.parametrize(("space", "name"), OURS)
def test_defaults(space, name):
    for parameter, default in defaults(getattr(space, name)).items():
        if default is None and parameter in ("bias", "running_mean", "running_var"):
            continue  # an array
        if parameter in DEFAULTS or (name, parameter) in OTHERWISE:
            wanted = OTHERWISE.get((name, parameter), DEFAULTS.get(parameter))
            assert (type(default) is bool) == (type(wanted) is bool)
            assert default == wanted, parameter


@pytest.mark.oracle
@pytest.mark.parametrize(("space", "name"), OURS)
def test_pytorch_has_the_same_defaults(space, name):
    torch = pytest.importorskip("torch")
    theirs = {nn: torch.nn, functional: torch.nn.functional, init: torch.nn.init}
    other = getattr(theirs.get(space, torch.optim), name, None)
    if other is None or name == "Parameter":
        pytest.skip("PyTorch has no such signature")
    shared = defaults(other)
    for parameter, default in defaults(getattr(space, name)).items():
        if callable(default):  # a function, such as relu, of each library
            assert shared[parameter].__name__ == default.__name__
            continue
        assert shared.get(parameter, default) == default, parameter


def test_the_signature_of_a_layer_is_that_of_its_base() -> None:
    assert inspect.signature(nn.LSTM) == inspect.signature(nn.GRU)
