"""Modules: what they hold, how it is named, moved, stored and printed."""

import copy
import pickle
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.nn.twins import values
from wengert import nn, optim


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(4, 3)
        self.out = nn.Linear(3, 2)
        self.scale = nn.Parameter(wg.ones(2))
        self.register_buffer("mean", wg.zeros(4))
        self.register_buffer("steps", wg.asarray(0), persistent=False)

    def forward(self, x: Any) -> Any:
        return self.out(nn.functional.relu(self.hidden(x - self.mean))) * self.scale


NAMES = ["scale", "hidden.weight", "hidden.bias", "out.weight", "out.bias"]


def test_parameters_buffers_and_modules_are_found_by_type() -> None:
    net = Net()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert [name for name, _ in net.named_parameters("net", recurse=False)] == ["net.scale"]
    assert [name for name, _ in net.named_buffers()] == ["mean", "steps"]
    assert [name for name, _ in net.named_modules()] == ["", "hidden", "out"]
    assert [name for name, _ in net.named_children()] == ["hidden", "out"]
    assert list(net.modules()) == [net, net.hidden, net.out]
    assert list(net.children()) == [net.hidden, net.out]
    assert len(list(net.parameters())) == 5
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in net.parameters())
    assert not any(b.requires_grad for b in net.buffers())
    for outer, own in ((net, ["mean", "steps"]), (nn.Sequential(net), [])):
        assert [name for name, _ in outer.named_buffers(recurse=False)] == own
        assert len(list(outer.buffers(recurse=False))) == len(own)
        assert len(list(outer.parameters(recurse=False))) == (outer is net)


def test_a_module_needs_no_call_of_its_base() -> None:
    class Bare(nn.Module):
        def __init__(self) -> None:
            self.inner = nn.Linear(2, 2)

    assert [name for name, _ in Bare().named_parameters()] == ["inner.weight", "inner.bias"]
    assert Bare().training


def test_shared_parameters_and_modules_are_listed_once() -> None:
    net = Net()
    net.again = net.hidden
    net.out.weight = nn.Parameter(wg.zeros(2, 3))
    net.tied = net.out.weight
    names = [name for name, _ in net.named_parameters()]
    assert names == ["scale", "tied", "hidden.weight", "hidden.bias", "out.bias"]
    every = [name for name, _ in net.named_parameters(remove_duplicate=False)]
    assert {"out.weight", "again.weight", "again.bias"} <= set(every)
    assert [name for name, _ in net.named_modules()] == ["", "hidden", "out"]
    assert {"tied", "out.weight", "again.weight", "hidden.weight"} <= net.state_dict().keys()


def test_a_parameter_in_place_of_a_buffer_is_no_buffer() -> None:
    module = nn.Module()
    module.register_buffer("scale", wg.ones(2), persistent=False)
    module.scale = nn.Parameter(wg.ones(2))
    assert [name for name, _ in module.named_parameters()] == ["scale"]
    assert list(module.buffers()) == []
    assert list(module.state_dict()) == ["scale"]
    average = optim.swa_utils.get_ema_avg_fn(0.5)
    averaged = optim.swa_utils.AveragedModel(module, avg_fn=average, use_buffers=True)
    for value in (0.0, 8.0):  # it is averaged once
        nn.init.constant_(module.scale, value)
        averaged.update_parameters(module)
    assert averaged.module.scale.tolist() == [4, 4]


def test_get_submodule() -> None:
    net = nn.Sequential(Net(), nn.ReLU())
    assert net.get_submodule("") is net
    assert net.get_submodule("0.hidden") is net[0].hidden
    for wrong in ("0.nothing", "0.scale"):
        with pytest.raises(AttributeError, match="has no"):
            net.get_submodule(wrong)


def test_registering() -> None:
    module = nn.Module()
    module.register_parameter("weight", nn.Parameter(wg.ones(2)))
    module.register_parameter("bias", None)
    module.register_buffer("mean", None)
    module.add_module("1", nn.ReLU())
    assert [name for name, _ in module.named_parameters()] == ["weight"]
    assert list(module.buffers()) == []
    module.mean = wg.ones(3)
    module.bias = nn.Parameter(wg.zeros(2))
    assert list(module.state_dict()) == ["weight", "bias", "mean"]
    del module.mean
    assert list(module.state_dict()) == ["weight", "bias"]
    module.mean = 3  # no longer a buffer
    with pytest.raises(TypeError, match="as buffer"):
        module.register_buffer("x", nn.Parameter(wg.ones(1)))
    with pytest.raises(TypeError, match="not a Module subclass"):
        module.add_module("x", wg.ones(1))  # type: ignore[arg-type]


def test_a_parameter_is_not_replaced_by_something_else() -> None:
    net = Net()
    with pytest.raises(TypeError, match="cannot assign Tensor as parameter 'scale'"):
        net.scale = wg.ones(2)
    with pytest.raises(TypeError, match="cannot assign Tensor as child module 'out'"):
        net.out = wg.ones(2)
    with pytest.raises(TypeError, match="cannot assign int as buffer 'mean'"):
        net.mean = 0
    net.scale = None
    assert "scale" not in net.state_dict()


def test_apply_visits_children_first() -> None:
    net = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU()))
    seen: list[str] = []
    assert net.apply(lambda module: seen.append(type(module).__name__)) is net
    assert seen == ["Linear", "ReLU", "Sequential", "Sequential"]


def test_train_and_eval() -> None:
    net = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
    assert all(module.training for module in net.modules())
    assert net.eval() is net
    assert not any(module.training for module in net.modules())
    net.train()
    assert all(module.training for module in net.modules())
    with pytest.raises(ValueError, match="boolean"):
        net.train(1)  # type: ignore[arg-type]


def test_freezing(backend: Any) -> None:
    net = Net()
    net.hidden.requires_grad_(False)
    net(wg.ones(3, 4)).sum().backward()
    assert net.hidden.weight.grad is None
    assert net.out.weight.grad is not None
    assert net.requires_grad_(False) is net
    assert not net(wg.ones(3, 4)).requires_grad
    assert net.requires_grad_() is net
    assert all(parameter.requires_grad for parameter in net.parameters())


def test_zero_grad(backend: Any) -> None:
    net = Net()
    net(wg.ones(3, 4)).sum().backward()
    before = net.scale.grad
    assert before is not None
    net.zero_grad(set_to_none=False)
    assert before is not net.scale.grad
    assert not values(net.out.bias.grad).any()
    assert values(net.out.bias.grad).shape == (2,)
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


# -- state -----------------------------------------------------------------------------------------


def test_state_dict_round_trip(backend: Any) -> None:
    one, two = Net(), Net()
    x = wg.randn(5, 4)
    state = one.state_dict()
    assert list(state) == ["scale", "mean", *NAMES[1:]]
    assert not any(tensor.requires_grad for tensor in state.values())
    assert two.load_state_dict(state) == ([], [])
    np.testing.assert_array_equal(values(one(x)), values(two(x)))
    assert next(iter(one.state_dict(prefix="net."))) == "net.scale"
    assert one.state_dict(keep_vars=True)["scale"] is one.scale


def test_a_state_dict_keeps_its_values() -> None:
    net = nn.Linear(2, 2)
    state = net.state_dict()
    before = values(state["weight"]).copy()
    net(wg.ones(1, 2)).sum().backward()
    wg.optim.SGD(net.parameters(), lr=1.0).step()
    np.testing.assert_array_equal(values(state["weight"]), before)
    assert (values(net.weight) != before).all()


def test_loading_copies() -> None:
    net = nn.Linear(2, 2, bias=False)
    weight = np.ones((2, 2), np.float32)
    net.load_state_dict({"weight": weight})
    weight[:] = 5
    assert (values(net.weight) == 1).all()


def test_loading_keeps_the_parameters_place_and_dtype(backend: Any) -> None:
    net = nn.Linear(2, 3)
    weight, optimiser = net.weight, wg.optim.SGD(net.parameters(), lr=1.0)
    net.load_state_dict({"weight": np.ones((3, 2)), "bias": np.zeros(3)})
    assert net.weight is weight
    assert weight.dtype == wg.float32
    assert weight.requires_grad
    assert weight.is_leaf
    assert weight.backend is backend
    net(wg.ones(1, 2)).sum().backward()
    optimiser.step()
    np.testing.assert_array_equal(values(weight), np.zeros((3, 2)))


def test_one_error_lists_all_that_does_not_fit_and_nothing_is_loaded() -> None:
    net = Net()
    before = {name: values(tensor).copy() for name, tensor in net.state_dict().items()}
    state: dict[str, Any] = dict(Net().state_dict())
    del state["out.bias"], state["mean"]
    state |= {"extra": wg.ones(1), "other": wg.ones(1)}
    state["hidden.weight"] = wg.ones(4, 3)
    state["scale"] = [1.0, 1.0]
    state["hidden.bias"] = wg.ones(3, dtype=wg.complex64)
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    message = str(caught.value)
    assert message.startswith("Error(s) in loading state_dict for Net:\n\t")
    assert 'Unexpected key(s) in state_dict: "extra", "other".' in message
    assert 'Missing key(s) in state_dict: "mean", "out.bias".' in message
    assert "size mismatch for hidden.weight" in message
    assert "(4, 3)" in message
    assert "scale should be a Tensor or an array, and is a list" in message
    assert "hidden.bias is complex" in message
    for name, tensor in net.state_dict().items():
        np.testing.assert_array_equal(values(tensor), before[name])


def test_loading_without_strictness() -> None:
    net = Net()
    result = net.load_state_dict({"scale": wg.zeros(2), "extra": wg.ones(1)}, strict=False)
    assert result.unexpected_keys == ["extra"]
    assert set(result.missing_keys) == {*NAMES, "mean"} - {"scale"}
    assert not values(net.scale).any()
    with pytest.raises(RuntimeError, match="size mismatch for scale"):
        net.load_state_dict({"scale": wg.zeros(3)}, strict=False)


# -- moves -----------------------------------------------------------------------------------------


def test_to_another_dtype(backend: Any) -> None:
    net = Net()
    net(wg.ones(3, 4)).sum().backward()
    weight, grad = net.hidden.weight, values(net.scale.grad)
    assert net.to(wg.float64) is net
    assert net.hidden.weight is weight
    assert weight.dtype == wg.float64
    assert net.mean.dtype == wg.float64
    assert net.steps.dtype == wg.int64
    assert net.scale.grad.dtype == wg.float64
    np.testing.assert_allclose(values(net.scale.grad), grad)
    net.zero_grad()
    out = net(wg.ones(3, 4, dtype=wg.float64))
    out.sum().backward()
    assert out.dtype == weight.grad.dtype == wg.float64
    net.to(dtype="float32")
    assert net.hidden.weight.dtype == wg.float32
    with pytest.raises(TypeError, match="not to int64"):
        net.to(wg.int64)


def test_to_another_backend(backend: Any) -> None:
    with wg.use_backend("numpy"):
        net = Net()
        expected = values(net(wg.ones(3, 4)))
        weight = net.hidden.weight
    assert net.to(backend.name) is net
    assert net.hidden.weight is weight
    assert all(t.backend is backend for t in [*net.parameters(), *net.buffers()])
    np.testing.assert_allclose(values(net(wg.ones(3, 4))), expected, rtol=1e-6)
    net.to(backend="numpy", dtype=wg.float64)
    assert weight.backend.name == "numpy"
    assert weight.dtype == wg.float64
    net.to(wg.ones(1))
    assert weight.backend is backend
    assert weight.dtype == wg.float32


def test_an_unknown_backend_moves_nothing() -> None:
    net = Net()
    with pytest.raises(wg.BackendError, match="nonsense"):
        net.to(backend="nonsense")
    assert net.scale.backend.name == "numpy"


# -- copies ----------------------------------------------------------------------------------------


def test_a_deep_copy_shares_no_memory() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    wg.sum(x * x).backward()
    assert x.grad is not None
    twin = copy.deepcopy(x)
    assert twin.grad is not None
    for ours, theirs in ((x, twin), (x.grad, twin.grad)):
        assert not np.shares_memory(ours.detach().numpy(), theirs.detach().numpy())
        np.testing.assert_array_equal(values(ours), values(theirs))
    x.grad.zero_()  # which would warn if a view of it were alive
    assert twin.grad.tolist() == [2.0, 4.0]


def test_deepcopy_and_pickle_keep_what_is_shared(backend: Any) -> None:
    net = Net()
    net.tied = net.scale
    net.eval()
    x = wg.ones(3, 4)
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        np.testing.assert_array_equal(values(twin(x)), values(net(x)))
        assert twin.tied is twin.scale
        assert twin.scale is not net.scale
        assert isinstance(twin.scale, nn.Parameter)
        assert twin.scale.requires_grad
        assert not twin.training
        assert list(twin.state_dict()) == list(net.state_dict())
        twin.load_state_dict({n: t * 0 for n, t in twin.state_dict().items()})
        assert values(net.scale).any()


# -- containers ------------------------------------------------------------------------------------


def test_sequential() -> None:
    a, b, c = nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)
    net = nn.Sequential(a, b, c)
    assert len(net) == 3
    assert list(net) == [a, b, c]
    assert net[0] is a
    assert net[-1] is c
    assert b in net
    tail = net[1:]
    assert isinstance(tail, nn.Sequential)
    assert list(tail) == [b, c]
    net.append(nn.Tanh())
    assert [name for name, _ in net.named_children()] == ["0", "1", "2", "3"]
    net.insert(1, nn.Sigmoid())
    assert [type(m).__name__ for m in net] == ["Linear", "Sigmoid", "ReLU", "Linear", "Tanh"]
    assert isinstance(net.pop(), nn.Tanh)
    del net[1]
    net[1] = nn.SiLU()
    assert [type(m).__name__ for m in net] == ["Linear", "SiLU", "Linear"]
    assert [name for name, _ in net.named_children()] == ["0", "1", "2"]
    del net[0:2]
    assert list(net) == [c]
    assert [name for name, _ in net.named_children()] == ["0"]
    joined = nn.Sequential(a) + nn.Sequential(b, c)
    x = wg.ones(2, 4)
    np.testing.assert_array_equal(values(joined(x)), values(c(b(a(x)))))
    for wrong in (3, -4):
        with pytest.raises(IndexError, match="out of range"):
            net[wrong]
    with pytest.raises(TypeError, match="not a Module"):
        net.append(wg.ones(1))  # type: ignore[arg-type]
    assert values(nn.Sequential()(x)).all()


def test_sequential_with_names() -> None:
    net = nn.Sequential(OrderedDict(first=nn.Linear(4, 3), act=nn.ReLU()))
    assert net.first is net[0]
    assert list(net.state_dict()) == ["first.weight", "first.bias"]
    assert [name for name, _ in net[1:].named_children()] == ["act"]


def test_module_list() -> None:
    layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    layers += [nn.ReLU()]
    assert len(layers) == 4
    assert len(list(layers.parameters())) == 6
    assert isinstance(layers[1:3], nn.ModuleList)
    assert [name for name, _ in layers[1:3].named_children()] == ["0", "1"]


def test_parameter() -> None:
    data = wg.asarray([1.0, 2.0])
    parameter = nn.Parameter(data)
    assert parameter.array is data.array
    assert repr(parameter) == "parameter([1., 2.], requires_grad=True)"
    assert not isinstance(parameter * 2, nn.Parameter)
    assert not nn.Parameter(wg.asarray([1]), requires_grad=False).requires_grad
    with pytest.raises(RuntimeError, match="int64"):
        nn.Parameter(wg.asarray([1]))


def test_modules_move_to_devices_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(nn.Linear, "to", lambda self, **where: asked.append(where) or self)
    layer = nn.Linear(2, 2)
    assert layer.cuda() is layer.cuda(1) is layer.cpu() is layer.half() is layer.double() is layer
    assert layer.float() is layer
    assert asked == [
        {"device": "cuda"},
        {"device": "cuda:1"},
        {"device": "cpu"},
        {"dtype": "float16"},
        {"dtype": "float64"},
        {"dtype": "float32"},
    ]


@pytest.mark.parametrize("name", ["get_extra_state", "_save_to_state_dict"])
def test_a_state_that_pytorch_would_ask_for_is_not_lost(name: str) -> None:
    counting = type("Counting", (nn.Linear,), {name: lambda self, *args: {"seen": 1}})
    for module in (counting(1, 1), nn.Sequential(counting(1, 1))):
        for call in (module.state_dict, lambda module=module: module.load_state_dict({})):
            with pytest.raises(TypeError, match=f"Counting.* defines {name}, which .* be lost"):
                call()


def test_a_state_of_ones_own_inside_another_module_is_not_lost() -> None:
    class More(nn.Linear):
        def state_dict(self, **options: Any) -> Any:
            return {**super().state_dict(**options), "more": wg.ones(1)}

    assert [*More(1, 1).state_dict()] == ["weight", "bias", "more"]
    with pytest.raises(TypeError, match=r"the More at '0' defines state_dict, .*Sequential does"):
        nn.Sequential(More(1, 1)).state_dict()


@pytest.mark.parametrize(
    ("held", "given", "value"),
    [("int32", "int64", 2**40), ("int8", "uint8", 200), ("int64", "uint64", 2**63)],
)
def test_integers_that_a_buffer_has_not_are_refused(held: str, given: str, value: int) -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("n", wg.zeros(2, dtype=getattr(wg, held)))

    module = Counter()
    module.load_state_dict({"n": wg.asarray([7, 3], dtype=getattr(wg, given))})
    assert module.n.dtype is getattr(wg, held)
    with pytest.raises(RuntimeError, match=f"n holds integers from 3 to {value} in the checkpoint"):
        module.load_state_dict({"n": wg.asarray([value, 3], dtype=getattr(wg, given))})
    assert values(module.n).tolist() == [7, 3]
