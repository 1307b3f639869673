"""Hooks on modules: order, what they are given and may return, and that nothing stays."""

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import nn

REGISTER = (
    "register_forward_pre_hook",
    "register_forward_hook",
    "register_full_backward_hook",
)


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
    """A forward hook or a backward hook: it doubles what would be its answer."""
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
    net.register_forward_pre_hook(
        note("pre keywords", ((wg.ones((1, 2)) * 2,), {"scale": 10.0})), with_kwargs=True
    )
    net.register_forward_hook(note("after"))
    net.register_forward_hook(note("keywords"), with_kwargs=True)
    net.register_forward_hook(lambda module, args, y: y + args[0])
    assert values(net(wg.zeros((1, 2)))) == [[82.0, 122.0]]
    assert seen == [
        *(("pre first", 1), ("pre", 1), ("pre keywords", 2), ("after", 2), ("keywords", 3))
    ]
    net.register_forward_pre_hook(note("wrong", 3), with_kwargs=True)
    with pytest.raises(RuntimeError, match=r"a tuple of \(new_args, new_kwargs\), but got 3"):
        net(wg.zeros((1, 2)))


def test_warnings_of_hooks_name_the_programs_line() -> None:
    class Named(nn.Module):
        def forward(self, x: Any) -> Any:
            return {"x": x}

    named = nn.Sequential(Named())
    named[0].register_full_backward_hook(lambda m, gi, go: None)
    with pytest.warns(UserWarning, match="a Tensor or a tuple of Tensors but received dict") as one:
        named(wg.ones(2))
    assert [w.filename for w in one] == [__file__]


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


def test_objects_and_slices_made_of_a_hooked_one_have_none() -> None:
    class Announced(nn.Module):
        made: list[type] = []

        def __init_subclass__(cls) -> None:
            Announced.made.append(cls)

        def forward(self, x: Any) -> Any:
            return x

    one = Announced()
    one.register_forward_hook(twice)
    assert not Announced.made
    assert values(type(one)()(wg.ones(1))) == [1.0]
    row = nn.Sequential(nn.Identity(), nn.Identity())
    row.register_forward_hook(twice)
    assert values(row(wg.ones(1))) == [2.0]
    assert values(row[:1](wg.ones(1))) == [1.0] and type(row[:1]) is nn.Sequential


@pytest.mark.usefixtures("backend")
def test_the_gradients_of_inputs_and_outputs() -> None:
    net, seen = Net(), []
    x = wg.asarray([[1.0, -1.0]]).requires_grad_()
    net.register_full_backward_hook(lambda m, gi, go: seen.append((*map(values, gi + go),)))
    net.register_full_backward_hook(lambda m, gi, go: (gi[0] + 1, None) if len(gi) == 2 else None)
    (net(x, 2.0).sum() * 3).backward()
    assert seen == [([[18.0, 42.0]], None, [[3.0, 3.0]])]
    assert values(x.grad) == [[19.0, 43.0]]
    assert values(net.weight.grad) == [[6.0, 6.0], [-6.0, -6.0]]


def test_a_wrong_number_of_gradients_is_an_error() -> None:
    net = Net()
    net.register_full_backward_hook(lambda m, gi, go: (*gi, None))
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        net(wg.ones((1, 2)).requires_grad_()).sum().backward()


def test_without_an_input_that_requires_grad() -> None:
    net, seen = Net(), []
    handle = net.register_full_backward_hook(lambda m, gi, go: seen.append((gi, values(go[0]))))
    net(wg.ones((1, 2))).sum().backward()
    assert seen == [((None,), [[1.0, 1.0]])]
    handle.remove()
    net.register_full_backward_hook(lambda m, gi, go: (wg.ones(1),))
    with pytest.raises(RuntimeError, match="should always return None"):
        net(wg.ones((1, 2))).sum().backward()
    with wg.no_grad():
        net(wg.ones((1, 2)))


def test_an_output_that_is_no_tensor_is_warned_of() -> None:
    class Lists(nn.Module):
        def forward(self, x: Any) -> Any:
            return [x * 2]

    net = Lists()
    net.register_full_backward_hook(lambda m, gi, go: None)
    with pytest.warns(UserWarning, match="Tensor or a tuple of Tensors but received list"):
        net(wg.ones(1).requires_grad_())


class Several(nn.Module):
    def forward(self, x: Any, n: int, y: Any, z: Any) -> Any:
        return x * y, x + n, z * 2


@pytest.mark.oracle
@pytest.mark.parametrize("tracked", [(1, 1, 0), (0, 1, 1), (1, 0, 0), (0, 0, 1), (0, 0, 0)])
@pytest.mark.parametrize("used", [(0,), (1,), (0, 1), (2,), (0, 1, 2)])
def test_several_tensors_as_pytorch(tracked: Any, used: Any) -> None:
    torch = pytest.importorskip("torch")

    class Theirs(torch.nn.Module):  # type: ignore[misc, name-defined]
        forward = Several.forward

    answers = []
    for make, net in ((wg.asarray, Several()), (torch.tensor, Theirs())):
        seen: list[Any] = []

        def show(gs: Any) -> Any:
            return [None if g is None else g.detach().tolist() for g in gs]

        net.register_full_backward_hook(
            lambda m, gi, go, seen=seen: seen.append((show(gi), show(go)))
        )
        xs = [make(float(i + 2)) for i in range(3)]
        for x, wanted in zip(xs, tracked, strict=True):
            x.requires_grad_(bool(wanted))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ys = net(xs[0], 5, *xs[1:])
            total = sum(ys[i] for i in used)
            if total.requires_grad:
                total.backward()
        answers.append((seen, show(x.grad for x in xs)))
    assert answers[0] == answers[1]


def test_second_derivatives_and_forward_mode_pass_through_hooks() -> None:
    net = Net()
    net.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))
    x = wg.asarray([[1.0, 2.0]]).requires_grad_()
    y = net(x**2).sum()
    (g,) = wg.autograd.grad(y, [x], create_graph=True)
    assert values(g) == [[12.0, 56.0]]
    (h,) = wg.autograd.grad(g.sum(), [x])
    assert values(h) == [[12.0, 28.0]]
    _, t = wg.func.jvp(net, (wg.asarray([[1.0, 2.0]]),), (wg.ones((1, 2)),))
    assert values(t) == [[4.0, 6.0]]


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


def test_backward_hooks_in_compiled_steps() -> None:
    net = Net()
    net.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))

    @wg.compile(strict=True)
    def step(x: Any) -> Any:
        return wg.autograd.grad(net(x).sum(), [x])[0]

    for scale in (1.0, 2.0):
        x = (wg.ones((1, 2)) * scale).detach().requires_grad_()
        assert values(step(x)) == [[6.0, 14.0]]


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


def test_no_gradient_is_lost_beside_hooks() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    x = wg.asarray(np.linspace(0, 1, 6).reshape(2, 3), dtype=wg.float32)
    net(x).sum().backward()
    before = [values(p.grad) for p in net.parameters()]
    for layer in net:
        layer.register_full_backward_hook(lambda m, gi, go: None)
    net.zero_grad()
    net(x).sum().backward()
    assert [values(p.grad) for p in net.parameters()] == before


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
