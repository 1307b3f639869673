"""Hooks on modules: order, what they are given and may return, and that nothing stays."""

import copy
import pickle
import warnings
from typing import Any

import pytest

import wengert as wg
from wengert import nn

REGISTER = ("register_forward_pre_hook", "register_forward_hook")


class Net(nn.Module):
    def __init__(self) -> None:
        self.weight = nn.Parameter(wg.asarray([[1.0, 2.0], [3.0, 4.0]]))

    def forward(self, x: Any, scale: float = 1.0) -> Any:
        if scale == 0:
            raise ZeroDivisionError
        return x @ self.weight * scale


def values(tensor: Any) -> Any:
    return None if tensor is None else tensor.detach().numpy().tolist()


def twice(module: Any, *given: Any) -> Any:
    """A forward hook that doubles what would be its answer."""
    what = given[-1] if isinstance(given[-1], wg.Tensor) else given[0]
    if isinstance(what, tuple):
        return tuple(x * 2 for x in what)
    return what * 2


@pytest.mark.parametrize("name", REGISTER)
def test_a_module_with_hooks_is_of_its_class_as_before(name: str) -> None:
    net = Net()
    x, before = wg.ones((1, 2)), list(net.__dict__)
    plain = values(net(x)), repr(net), type(net)
    handle = getattr(net, name)(twice)
    assert type(net) is Net
    assert repr(net) == plain[1]
    assert list(net.state_dict()) == ["weight"]
    assert values(net.forward(x)) == plain[0]
    handle.remove()
    handle.remove()
    assert list(net.__dict__) == before and values(net(x)) == plain[0]
    with getattr(net, name)(twice):
        assert type(net) is Net and list(net.__dict__) != before
    assert list(net.__dict__) == before


class Calling(nn.Linear):
    def __call__(self, x: Any) -> Any:
        return nn.Module.__call__(self, x)


def test_the_call_of_a_class_takes_the_module() -> None:
    x, module, own = wg.ones((1, 2)), nn.Linear(2, 2), Calling(2, 2)
    module.register_forward_hook(lambda module, args, result: result + 1)
    for call in (nn.Module.__call__, type(module).__call__):
        assert values(call(module, x)) == values(module(x))
    assert values(own(x)) == values(own.forward(x))


def test_copies_have_the_hooks_and_their_own_class() -> None:
    net = Net()
    handle = net.register_forward_hook(twice)
    copies = [copy.deepcopy(net), pickle.loads(pickle.dumps(net))]
    handle.remove()
    for one in copies:
        assert type(one).__name__ == "Net" and one.weight is not net.weight
        assert values(one(wg.ones((1, 2)))) == [[8.0, 12.0]]
    assert values(net(wg.ones((1, 2)))) == [[4.0, 6.0]]


def test_hooks_are_called_in_order_and_change_what_passes() -> None:
    net, seen = Net(), []

    def note(word: str, answer: Any = None) -> Any:
        def hook(module: Any, *given: Any) -> Any:
            assert module is net
            seen.append((word, len(given)))
            return answer

        return hook

    net.register_forward_pre_hook(note("pre first", wg.ones((1, 2))))
    net.register_forward_pre_hook(note("pre"))
    net.register_forward_pre_hook(note("pre last", (wg.ones((1, 2)) * 2,)))
    net.register_forward_hook(note("after"))
    net.register_forward_hook(lambda module, args, y: y + args[0])
    assert values(net(wg.zeros((1, 2)), scale=10.0)) == [[82.0, 122.0]]
    assert seen == [("pre first", 1), ("pre", 1), ("pre last", 1), ("after", 2)]


def test_what_is_no_hook_and_a_call_of_the_user_s_own() -> None:
    class Own(nn.Module):
        def __call__(self, x: Any) -> Any:
            return x

    with pytest.raises(TypeError, match="Own defines __call__ itself"):
        Own().register_forward_hook(twice)
    net = Net()
    with pytest.raises(TypeError, match="a hook is a function, not int"):
        net.register_forward_hook(3)  # type: ignore[arg-type]
    assert type(net) is Net


@wg.no_grad()
def test_compiled_functions_guard_hooks() -> None:
    net, x = Net(), wg.ones((1, 2))
    factor = [2.0]

    @wg.compile(strict=True)
    def called(x: Any) -> Any:
        return net(x)

    whole = wg.compile(net, strict=True)
    for step in (called, whole):
        assert values(step(x)) == values(step(x)) == [[4.0, 6.0]]
        one = net.register_forward_hook(lambda m, args, y: y * factor[0])
        for _ in range(3):
            assert values(step(x)) == [[4.0 * factor[0], 6.0 * factor[0]]]
        factor[0] = 3.0
        assert values(step(x)) == values(step(x)) == [[12.0, 18.0]]
        other = net.register_forward_pre_hook(lambda m, args: args[0] * 2)
        assert values(step(x)) == values(step(x)) == [[24.0, 36.0]]
        one.remove()
        assert values(step(x)) == values(step(x)) == [[8.0, 12.0]]
        other.remove()
        recorded = step.report.recordings
        assert values(step(x)) == [[4.0, 6.0]]
        assert step.report.recordings == recorded  # the first program is still there
        factor[0] = 2.0


@wg.no_grad()
def test_a_compiled_module_with_hooks_is_looked_through_as_without() -> None:
    net = Net()
    net.file = object()  # which no code names
    net.register_forward_hook(twice)
    compiled = wg.compile(net, strict=True)
    assert compiled.report.name == "Net.forward"
    assert values(compiled(wg.ones((1, 2)))) == [[8.0, 12.0]]
    assert values(compiled(x=wg.ones((1, 2)))) == [[8.0, 12.0]]
    assert compiled.report.recordings == 1


def test_lists_of_modules_are_warned_of() -> None:
    net = nn.Module()
    with pytest.warns(UserWarning, match=r"Module.layers is a list of Modules.*nn.ModuleList\("):
        net.layers = [nn.Identity()]
    with pytest.warns(UserWarning, match=r"nn.ModuleDict\("):
        net.named = {"a": nn.Identity()}
    with pytest.warns(UserWarning, match=r"weights is a tuple of Parameters.*nn.ParameterList\("):
        net.weights = (nn.Parameter(wg.ones(1)),)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net.first = nn.Identity()
        net.order = [net.first]  # which is registered
        net.sizes, net.none = [1, 2], []


def test_the_warning_names_the_line_of_the_user_s() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            net = nn.Module()
            net.layers = [nn.Identity()]
    assert [each.filename for each in caught] == [__file__]


def test_a_pre_hook_that_removes_the_last_hook_may_register_another() -> None:
    net = Net()

    def exchange(module: nn.Module, args: Any) -> None:
        handle.remove()
        module.register_forward_hook(twice)

    plain = values(net(wg.ones((1, 2))))
    handle = net.register_forward_pre_hook(exchange)
    assert values(net(wg.ones((1, 2)))) == [[2 * x for x in plain[0]]]


class Holds(nn.Module):
    def __init__(self) -> None:
        self.net = Net()
        self.handle = self.net.register_forward_hook(twice)


def test_a_copied_handle_belongs_to_the_copied_module() -> None:
    model = Holds()
    for one in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        one.handle.remove()
        assert "_hooks" not in vars(one.net) and "_hooks" in vars(model.net)
    other = copy.deepcopy(model)
    model.handle.remove()
    assert "_hooks" in vars(other.net) and "_hooks" not in vars(model.net)
    p = nn.Parameter(wg.ones(2))
    alone = copy.deepcopy(p.register_hook(lambda g: 3 * g)), copy.deepcopy(other.handle)
    del other
    for handle in (*alone, copy.deepcopy(alone[1])):
        handle.remove()
    (p * 1).sum().backward()
    assert values(p.grad) == [3, 3]
