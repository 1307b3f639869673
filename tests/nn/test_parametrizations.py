"""Norms of weights."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.nn.twins import values
from wengert import nn
from wengert.nn.utils import parametrizations


def test_modules_with_norms() -> None:
    layer = nn.Linear(2, 2)
    own = layer.weight
    with pytest.raises(AttributeError):
        layer.nothing  # noqa: B018
    assert parametrizations.spectral_norm(layer) is layer
    assert isinstance(layer, nn.Linear) and type(layer).__name__ == "ParametrizedLinear"
    assert layer.parametrizations["weight"].original is own
    assert list(layer.parameters()) == [layer.bias, own]
    with pytest.raises(AttributeError, match="'ParametrizedLinear' object has no attribute 'no'"):
        layer.no  # noqa: B018
    assert not layer.eval().training  # no name of the list's own
    ratio = values(layer.weight) / values(own)
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-5)
    layer = nn.Linear(2, 2)
    before = values(layer.weight).copy()
    parametrizations.weight_norm(layer, "weight")
    np.testing.assert_allclose(values(layer.weight), before, rtol=1e-6)
    with pytest.raises(AttributeError, match="'weight' is computed"):
        layer.weight = wg.ones((2, 2))
    with pytest.raises(AttributeError, match="a layer without the norm, with a copy of the"):
        parametrizations.remove_parametrizations  # noqa: B018
    frozen = parametrizations.weight_norm(nn.Linear(2, 2).requires_grad_(False))
    assert not any(parameter.requires_grad for parameter in frozen.parameters())


def test_copies_and_hooks_of_parametrised_modules() -> None:
    layer = nn.Linear(2, 2)
    x = wg.ones((1, 2))
    handle = layer.register_forward_hook(lambda module, args, y: y * 10)
    expected = values(layer(x))
    parametrizations.weight_norm(layer)
    np.testing.assert_allclose(values(layer(x)), expected, rtol=1e-6)
    one = copy.deepcopy(layer)
    np.testing.assert_allclose(values(one(x)), expected, rtol=1e-6)
    handle.remove()
    assert type(layer).__name__ == "ParametrizedLinear"
    with pytest.raises(pickle.PicklingError, match="ParametrizedLinear"):  # as PyTorch refuses it
        pickle.dumps(layer)
    two = copy.deepcopy(layer)
    np.testing.assert_allclose(values(two(x)), expected / 10, rtol=1e-6)
    first, second = (x.parametrizations["weight"].original0 for x in (layer, two))
    assert first is not second


def test_what_can_t_be_parametrised_changes_nothing() -> None:
    layer = nn.Linear(2, 2)
    for norm in (parametrizations.weight_norm, parametrizations.spectral_norm):
        for name in ("nothing", "training", "forward"):
            with pytest.raises(ValueError, match=f"'{name}' of Linear is no parameter"):
                norm(layer, name)
    with pytest.raises(IndexError, match="spectral_norm: axis 2 is out of bounds"):
        parametrizations.spectral_norm(layer, dim=2)
    with pytest.raises(ValueError, match="n_power_iterations to be positive"):
        parametrizations.spectral_norm(layer, n_power_iterations=0)
    with pytest.raises(ValueError, match="dim is an axis of 2, -1 or None"):
        parametrizations.weight_norm(layer, dim=2)
    assert type(layer) is nn.Linear
    parametrizations.weight_norm(layer)
    with pytest.raises(ValueError, match="'weight' of ParametrizedLinear has a norm already"):
        parametrizations.spectral_norm(layer)


@pytest.mark.usefixtures("backend")
def test_norms_by_their_formulas() -> None:
    layer = parametrizations.weight_norm(nn.Linear(3, 2).double())
    state = layer.state_dict()
    g, v = (values(state[f"parametrizations.weight.original{i}"]) for i in (0, 1))
    norm = np.sqrt((v**2).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(values(layer.weight), g * v / norm, rtol=1e-12)
    np.testing.assert_allclose(g, norm, rtol=1e-12)
    layer = parametrizations.spectral_norm(nn.Linear(3, 2).double(), n_power_iterations=20)
    for _ in range(5):
        weight = values(layer.weight)
    np.testing.assert_allclose(np.linalg.norm(weight, 2), 1.0, rtol=1e-6)
    layer.eval()
    again = values(layer.weight)
    assert values(layer.weight).tolist() == again.tolist()


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("weight_norm", {}),
        ("weight_norm", {"dim": 1}),
        ("weight_norm", {"dim": None}),
        ("weight_norm", {"name": "bias"}),
        ("spectral_norm", {}),
        ("spectral_norm", {"dim": 1, "n_power_iterations": 3}),
        ("spectral_norm", {"name": "bias"}),
    ],
)
def test_as_pytorch(name: str, options: Any) -> None:
    torch = pytest.importorskip("torch")
    made = [
        getattr(utils.parametrizations, name)(layer.double(), **options)
        for utils, layer in ((nn.utils, nn.Linear(3, 2)), (torch.nn.utils, torch.nn.Linear(3, 2)))
    ]
    ours, theirs = made
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({k: wg.asarray(values(v)) for k, v in theirs.state_dict().items()})
    x = np.linspace(-1, 1, 12).reshape(4, 3)
    for mode in (True, False):
        ours.train(mode)
        theirs.train(mode)
        y, z = ours(wg.asarray(x)), theirs(torch.tensor(x))
        np.testing.assert_allclose(values(y), values(z), rtol=1e-12)
        (y**2).sum().backward()
        (z**2).sum().backward()
        pairs = zip(ours.named_parameters(), theirs.named_parameters(), strict=True)
        for (key, p), (other, q) in pairs:
            assert key == other
            np.testing.assert_allclose(values(p.grad), values(q.grad), rtol=1e-10, atol=1e-13)


class Delegating(nn.Module):
    def __init__(self) -> None:
        self.weight = nn.Parameter(wg.asarray([[3.0, 4.0]]))
        self.bias = nn.Parameter(wg.asarray([[1.0], [2.0]]))

    def __getattr__(self, name: str) -> Any:
        if name == "size":
            return 7
        raise AttributeError(f"no {name} here")


def test_the_getattr_of_a_class_with_computed_weights_is_asked() -> None:
    module = parametrizations.weight_norm(Delegating())
    assert module.size == 7
    np.testing.assert_allclose(module.weight.detach().numpy(), [[3, 4]], rtol=1e-6)
    with pytest.raises(AttributeError, match="no other here"):
        _ = module.other


def test_a_shallow_copy_is_parametrized_by_itself() -> None:
    module = parametrizations.weight_norm(Delegating())
    names = [name for name, _ in module.named_parameters()]
    assert names == ["bias"] + [f"parametrizations.weight.original{i}" for i in (0, 1)]
    np.testing.assert_allclose(module.weight.detach().numpy(), [[3, 4]], rtol=1e-6)
    other = parametrizations.weight_norm(copy.copy(module), "bias")
    assert [name for name, _ in module.named_parameters()] == names
    assert len(list(other.parameters())) == 4
    assert list(module.parametrizations) == ["weight"]
