"""Stateless calls of modules, and transforms of them."""

import copy
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import func, nn


class Scale(nn.Module):
    def __init__(self) -> None:
        self.weight = nn.Parameter(wg.asarray([1.0, 2.0]))
        self.register_buffer("steps", wg.asarray(0.0))

    def forward(self, x: Any, power: int = 1) -> Any:
        self.steps = self.steps + 1
        if power < 0:
            raise ZeroDivisionError
        return (self.weight * x) ** power


def values(tensor: wg.Tensor) -> Any:
    return tensor.detach().numpy().tolist()


def test_the_module_is_as_it_was() -> None:
    net = nn.Sequential(Scale(), Scale())
    own, held = dict(net.state_dict(keep_vars=True)), [list(vars(x)) for x in net.modules()]
    given = {"0.weight": wg.asarray([3.0, 4.0]), "1.steps": wg.asarray(5.0)}
    net[0].steps = own["0.steps"]
    assert values(func.functional_call(net, given, wg.ones(2))) == [3.0, 8.0]
    assert given["1.steps"].item() == 6.0  # as in PyTorch
    assert net[1].steps is own["1.steps"] and net[0].weight is own["0.weight"]
    with pytest.raises(ZeroDivisionError):
        func.functional_call(net[0], {"weight": wg.ones(2)}, wg.ones(2), {"power": -1})
    assert net[0].weight is own["0.weight"]
    assert [list(vars(x)) for x in net.modules()] == held


def test_arguments_and_several_dicts() -> None:
    net = Scale()
    parts = ({"weight": wg.asarray([2.0, 3.0])}, {"steps": wg.asarray(1.0)})
    assert values(func.functional_call(net, parts, (wg.ones(2), 2), strict=True)) == [4.0, 9.0]
    assert values(func.functional_call(net, {}, None, {"x": wg.ones(2), "power": 2})) == [1.0, 4.0]
    net.register_forward_hook(lambda m, args, y: y * 2)
    assert values(func.functional_call(net, parts, (wg.ones(2), 2))) == [8.0, 18.0]


@pytest.mark.parametrize(
    ("given", "options", "error", "text"),
    [
        ({"weigth": wg.ones(2)}, {}, RuntimeError, r"Unexpected key\(s\): 'weigth'"),
        ({"weight": wg.ones(2)}, {"strict": True}, RuntimeError, r"Missing key\(s\): 'steps'"),
        ({"weight": 3.0}, {}, TypeError, "weight is not an instance of wengert.Tensor, but float"),
        ([{"weight": wg.ones(2)}] * 2, {}, ValueError, r"\['weight'\] appear in multiple"),
        ([3], {}, ValueError, "expected a dict of names"),
    ],
)
def test_what_does_not_fit_is_an_error(given: Any, options: Any, error: Any, text: str) -> None:
    net = Scale()
    with pytest.raises(error, match=text):
        func.functional_call(net, given, wg.ones(2), **options)
    assert values(net.weight) == [1.0, 2.0]


def test_tied_parameters() -> None:
    net = nn.Sequential(Scale(), Scale())
    net[1].weight = net[0].weight
    given = {"0.weight": wg.asarray([3.0, 3.0])}
    assert values(func.functional_call(net, given, wg.ones(2))) == [9.0, 9.0]
    assert values(func.functional_call(net, given, wg.ones(2), tie_weights=False)) == [3.0, 6.0]
    with pytest.raises(ValueError, match="got multiple values for keys"):
        func.functional_call(net, {**given, "1.weight": wg.ones(2)}, wg.ones(2))
    assert net[1].weight is net[0].weight


@pytest.mark.usefixtures("backend")
def test_transforms() -> None:
    layers = nn.Linear(2, 3, dtype=wg.float64), nn.Tanh(), nn.Linear(3, 1, dtype=wg.float64)
    net = nn.Sequential(*layers)
    x = wg.asarray([[0.3, -0.2], [0.1, 0.7]], dtype=wg.float64)
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss(parameters: Any) -> Any:
        return wg.sum(func.functional_call(net, parameters, x) ** 2)

    wg.sum(net(x) ** 2).backward()
    for transform in (func.grad, func.jacobian, func.jacrev, func.jacfwd):
        answer = transform(loss)(parameters)
        for name, p in net.named_parameters():
            np.testing.assert_allclose(values(answer[name]), values(p.grad), rtol=1e-12)
    tangents = {name: wg.ones(p.shape, dtype=p.dtype) for name, p in parameters.items()}
    (product,) = func.hvp(loss, (parameters,), (tangents,))
    own, whole = [*net.parameters()], func.hessian(loss)(parameters)
    first = wg.autograd.grad(wg.sum(net(x) ** 2), own, create_graph=True)
    second = wg.autograd.grad(sum(map(wg.sum, first)), own)
    for (name, p), right in zip(parameters.items(), second, strict=True):
        np.testing.assert_allclose(values(product[name]), values(right), rtol=1e-9, atol=1e-12)
        rows = sum(
            np.asarray(values(block)).reshape(p.size, -1).sum(axis=1)
            for block in whole[name].values()
        )
        np.testing.assert_allclose(rows, np.ravel(values(product[name])), rtol=1e-9, atol=1e-12)
    assert all(isinstance(p, nn.Parameter) for p in net.parameters())


class Listed(nn.Module):
    """Uses its parameters in all the ways in which a module may name them."""

    def __init__(self) -> None:
        self.list = nn.ParameterList([wg.ones(2), wg.ones(2) * 2, wg.ones(2) * 3])
        self.bias = nn.Parameter(wg.ones(2))
        self.layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))

    def forward(self, x: Any) -> Any:
        for p in self.list:
            x = x * p
        x = x + self.bias
        x = self.layer(x * self.list[1] + sum(self.list[1:]) * len(self.list))
        x = x + sum((p * p).sum() for p in self.parameters())
        return x * len(list(self.named_parameters())) * len(self.state_dict())


def test_tensors_in_the_places_of_parameters_count_as_parameters() -> None:
    model, x = Listed(), wg.asarray([0.5, -0.25])
    new = {name: p.detach() * 1.5 + 0.25 for name, p in model.named_parameters()}
    other = copy.deepcopy(model)
    other.load_state_dict(new)
    wg.sum(other(x)).backward()
    gradients = func.grad(lambda d: wg.sum(func.functional_call(model, d, x)))(new)
    assert values(func.functional_call(model, new, x)) == values(other(x))
    for name, p in other.named_parameters():
        np.testing.assert_allclose(values(gradients[name]), values(p.grad), rtol=1e-5)
    some = {"list.1": new["list.1"], "bias": new["bias"]}
    model.load_state_dict({**new, **{name: model.state_dict()[name] for name in some}})
    assert values(func.functional_call(model, some, x)) == values(other(x))
    nested = func.functional_call(Outer(model), {"model.list.0": new["list.0"]}, (some, x))
    assert values(nested) == values(other(x))


class Outer(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def forward(self, given: Any, x: Any) -> Any:
        return func.functional_call(self.model, given, x)


class Recomputed(nn.Module):
    def __init__(self, again: bool) -> None:
        self.layer, self.again = nn.Linear(2, 2), again

    def forward(self, x: Any) -> Any:
        def f(x: Any) -> Any:
            return wg.tanh(self.layer(x))

        return wg.checkpoint(f, x) if self.again else f(x)


def test_checkpoints_recompute_with_the_tensors_of_the_call() -> None:
    x, found = wg.asarray([[0.5, -0.25]]), []
    model = Recomputed(False)
    given = {name: p.detach() * 3 for name, p in model.named_parameters()}
    for model.again in (False, True):
        leaves = {name: t.clone().requires_grad_() for name, t in given.items()}
        wg.sum(func.functional_call(model, leaves, x) ** 2).backward()
        taken = func.grad(lambda d: wg.sum(func.functional_call(model, d, x) ** 2))(given)
        found += [[values(t.grad) for t in leaves.values()], [*map(values, taken.values())]]
    assert found[1:] == found[:1] * 3
    assert isinstance(model.layer.weight, nn.Parameter)
