"""What can't be recorded runs as it is, and the report says so; strict functions raise."""

import copy
import pickle
import re
import warnings
from collections import OrderedDict, defaultdict

import numpy as np
import pytest

import wengert as wg
from wengert.compiler import compiled, replay
from wengert.compiler.capture import recording
from wengert.compiler.capture.errors import CompileError, TraceError


def branching(x):
    if wg.sum(x) > 0:  # the branch
        return x * 2
    return x * 3


def test_a_branch_runs_as_it_is_and_the_report_names_the_line():
    f = wg.compile(branching)
    for scale in (1.0, -1.0, 1.0, -1.0):
        x = wg.ones(2) * scale
        assert f(x).tolist() == branching(x).tolist()
    assert f.report.recordings == 0
    assert "4 calls ran eagerly" in str(f.report)
    assert "the branch" in str(f.report)
    with pytest.raises(TraceError, match="the branch"):
        wg.compile(branching, strict=True)(wg.ones(2))


def test_a_signature_that_was_refused_is_not_tried_again_and_another_is():
    runs = []

    def f(x, flag):
        runs.append(None)  # a change that no replay would make again
        return branching(x)

    compiled = wg.compile(f)
    for i in range(1, 17):
        compiled(wg.ones(2), True)
        assert len(runs) == i  # the recording's change was taken back each time
    tried = []

    def g(x, how):
        tried.append(how) if how == "item" else None
        return x * x[0].item() if how == "item" else x * 2

    compiled = wg.compile(g)
    x = wg.asarray([3.0, 1.0])
    for _ in range(3):
        assert compiled(x, "item").tolist() == [9.0, 3.0]
        assert compiled(x, "twice").tolist() == [6.0, 2.0]
    assert compiled.report.recordings == 1
    assert len(tried) == 3


def test_what_is_changed_in_the_state_makes_a_refused_call_looked_at_again():
    class Sometimes(wg.nn.Module):
        def forward(self, x):
            return branching(x) if self.training else x * 2

    model = Sometimes()
    f = wg.compile(model)
    x = wg.ones(2)
    for _ in range(5):
        f(x)
    assert f.report.recordings == 0
    model.eval()
    for _ in range(3):
        assert f(x).tolist() == [2.0, 2.0]
    assert f.report.recordings == 1


def test_nothing_has_changed_when_a_recording_stops():
    """Each kind of container, attribute, gradient and generator is as before, by identity too."""

    class Config:
        rate = 1.0

    w = wg.asarray([1.0, 2.0], requires_grad=True)
    frozen = wg.asarray([1.0], requires_grad=True)
    grad = wg.ones(2)
    w.grad = grad
    config = Config()
    config.made = []
    holders = {
        "list": [1, w],
        "dict": {"a": w, "b": 2},
        "ordered": OrderedDict(a=1, b=w),
        "default": defaultdict(list, a=[w]),
    }
    count = 0
    optimizer = wg.optim.Adam([w], lr=0.1)

    def change(x):
        nonlocal count
        count += 1
        holders["list"].append(3)
        holders["list"][0] = x
        holders["dict"]["c"] = x
        del holders["dict"]["b"]
        holders["ordered"].move_to_end("a")
        holders["default"]["new"].append(x)
        config.rate, config.made = 3.0, x
        optimizer.zero_grad()
        wg.sum(w * x * wg.randn(2)).backward()
        optimizer.param_groups[0]["lr"] = 7.0
        optimizer.step()
        w.register_hook(lambda g: g * 2)
        frozen.requires_grad = False
        return wg.nn.functional.dropout(x, 0.5).sum().item()  # stops here

    def seen():
        return (
            {name: copy.copy(x) for name, x in holders.items()},
            count, vars(config).copy(), Config.rate,
            w._array, w.grad, w.grad._array, w._node, frozen._node, dict(optimizer.state),
            optimizer.param_groups[0]["lr"], type(w._node),
        )  # fmt: skip

    wg.manual_seed(4)
    before, ids = seen(), {name: id(x) for name, x in holders.items()}
    with pytest.raises(TraceError, match="stops here"):
        wg.compile(change, strict=True)(wg.ones(2))
    after = seen()
    assert after[0] == before[0]
    assert list(after[0]["ordered"]) == ["a", "b"]
    assert ids == {name: id(x) for name, x in holders.items()}
    assert after[1:4] == before[1:4]
    assert all(a is b for a, b in zip(after[4:9], before[4:9], strict=True))
    assert after[9:11] == ({}, 0.1)
    (wg.sum(w * 3.0)).backward()
    assert w.grad.tolist() == [4.0, 4.0]  # no hook has stayed
    drawn = wg.randn(3).tolist(), wg.rand_like(wg.ones(3)).tolist()
    wg.manual_seed(4)
    assert drawn == (wg.randn(3).tolist(), wg.rand_like(wg.ones(3)).tolist())


def test_a_fallback_does_what_the_function_does_once():
    def train(compiled):
        wg.manual_seed(2)
        w = wg.asarray([1.0, 2.0], requires_grad=True)
        optimizer = wg.optim.Adam([w], lr=0.1)
        history = []

        def step(x):
            optimizer.zero_grad()
            loss = wg.sum(wg.nn.functional.dropout(w * x, 0.5) ** 2)
            loss.backward()
            optimizer.step()
            history.append(loss.item())
            return loss

        run = wg.compile(step) if compiled else step
        losses = [run(wg.randn(2)).item() for _ in range(6)]
        return losses, history, w.tolist(), w.grad.tolist()

    assert train(True) == train(False)


def test_an_exception_that_the_function_catches_is_followed_each_time():
    def factor(x):
        try:
            return wg.linalg.cholesky(x)
        except Exception:
            return x * 0.0

    good, bad = wg.eye(2), -wg.eye(2)
    for first, second in ((bad, good), (good, bad)):
        f = wg.compile(factor)
        for x in (first, first, second, first, second):
            assert f(x).tolist() == factor(x).tolist()
    f = wg.compile(factor)
    f(bad)
    assert "cholesky raised LinAlgError" in str(f.report)
    f = wg.compile(factor)
    f(good), f(good), f(bad)
    assert "the program raised LinAlgError" in str(f.report)


def test_an_exception_leaves_the_function_as_it_does_when_it_is_not_compiled():
    w = wg.asarray([1.0, 2.0], requires_grad=True)
    optimizer = wg.optim.SGD([w], lr=0.1)

    @wg.compile
    def step(x):
        optimizer.zero_grad()
        scale = wg.linalg.cholesky(x)
        noise = wg.nn.functional.dropout(wg.ones(2), 0.5)
        loss = wg.sum(w * scale[0, 0] + wg.linalg.inv(x)[0] + noise)
        loss.backward()
        optimizer.step()
        return loss

    for i in range(4):
        wg.manual_seed(i)
        step(wg.eye(2))
        before = w.tolist()
        wg.manual_seed(3)
        with pytest.raises(np.linalg.LinAlgError):
            step(-wg.eye(2))
        assert w.tolist() == before
        drawn = wg.rand_like(wg.ones(3)).tolist()
        wg.manual_seed(3)
        assert drawn == wg.rand_like(wg.ones(3)).tolist()
    assert step.report.recordings <= 2

    @wg.compile
    def checked(x, n):
        if n < 0:
            raise ValueError("n is not negative")
        return x * n

    for _ in range(2):
        with pytest.raises(ValueError, match="n is not negative"):
            checked(wg.ones(2), -1)
        assert checked(wg.ones(2), 2).tolist() == [2.0, 2.0]


def test_a_first_call_that_raises_is_no_reason_to_run_others_as_they_are():
    f = wg.compile(wg.linalg.cholesky)
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError):
            f(-wg.eye(2))
    assert "2 calls ran eagerly: LinAlgError" in str(f.report)
    for _ in range(2):
        assert f(4 * wg.eye(2)).tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert f.report.recordings == 1


def test_what_a_trace_refuses_is_seen_where_the_function_catches_it():
    def careless(x):
        try:
            return x * x[0].item()
        except Exception:
            return x * 0.0

    f = wg.compile(careless)
    for _ in range(3):
        assert f(wg.asarray([2.0, 1.0])).tolist() == [4.0, 2.0]
    assert f.report.recordings == 0


@pytest.mark.parametrize("strict", [False, True])
def test_elements_of_raw_arrays_that_are_assigned_from_tensors(strict):
    """NumPy raises another error in place of that of the trace."""

    def assigns(x):
        held = np.arange(3.0)
        held[0] += x[1]
        return x[0] * wg.asarray(held)

    f, x = wg.compile(assigns, strict=strict), wg.asarray([2.0, 3.0])
    if strict:
        with pytest.raises(TraceError, match=r"held.*element of a NumPy array.*wg\.at"):
            f(x)
    else:
        assert [f(x).tolist() for _ in range(3)] == [[6.0, 2.0, 4.0]] * 3
        assert "3 calls ran eagerly" in str(f.report) and "wg.at" in str(f.report)


def test_containers_among_the_arguments_that_are_changed():
    """They are changed in each call, as many say that carry their state about."""

    def carry(x, state):
        state["h"] = wg.tanh(state["h"] + x).detach()
        state.setdefault("calls", []).append(1)
        return x + state["h"]

    def queue(x, seen):
        seen.append(x * 2)
        del seen[0]
        return seen[0]

    def count(x, numbers):
        numbers[0] += 1
        return x * numbers[0]

    def rename(x, state):
        (key,) = state
        state[f"{key}h"] = state.pop(key)
        return x * state[f"{key}h"]

    for function, make in (
        (rename, lambda: {"h": wg.ones(2)}),
        (carry, lambda: {"h": wg.zeros(2)}),
        (queue, lambda: [wg.zeros(2), wg.ones(2)]),
        (count, lambda: [1, 2]),
    ):
        compiled, here, there = wg.compile(function), make(), make()
        for _ in range(4):
            x = wg.ones(2)
            assert compiled(x, here).tolist() == function(x, there).tolist()
            assert str(here) == str(there)
        assert compiled.report.recordings == 0
        assert "among its arguments" in str(compiled.report) or "structure" in str(compiled.report)


def test_objects_that_answer_any_name():
    class Proxy:
        def __getattr__(self, name):
            return 0.25

    o = Proxy()
    f = wg.compile(lambda x: x * o.anything)
    for _ in range(4):
        assert f(wg.ones(1)).tolist() == [0.25]
    assert f.report.recordings == 1


# -- copies and methods ----------------------------------------------------------------------------


def pickled(x):
    return pickle.loads(pickle.dumps(x))


class Base:
    def __init__(self, by):
        self.by = wg.asarray(by)

    @wg.compile
    def scaled(self, x):
        return x * self.by


class Derived(Base):
    @wg.compile
    def scaled(self, x):
        return super().scaled(x) + 1.0


class Slotted:
    __slots__ = ("by",)

    def __init__(self, by):
        self.by = wg.asarray(by)

    @wg.compile
    def scaled(self, x):
        return x * self.by


class Net(wg.nn.Module):
    def __init__(self):
        self.weight = wg.nn.Parameter(wg.ones(2))

    @wg.compile
    def forward(self, x):
        return x * self.weight


@wg.compile
def of_a_module(x):
    return x * 2


def test_methods_of_one_name():
    one = Derived(2.0)
    for _ in range(3):
        assert one.scaled(wg.ones(1)).tolist() == [3.0]
        assert Base.scaled.__get__(one)(wg.ones(1)).tolist() == [2.0]
        assert super(Derived, one).scaled(wg.ones(1)).tolist() == [2.0]
    assert one.scaled is one.scaled


@pytest.mark.parametrize("cls", [Base, Derived])
@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_of_objects_with_compiled_methods(cls, again):
    one = cls(2.0)
    extra = 1.0 if cls is Derived else 0.0
    for _ in range(3):
        one.scaled(wg.ones(1))
    other = again(one)
    other.by = wg.asarray(5.0)
    for _ in range(3):
        assert other.scaled(wg.ones(1)).tolist() == [5.0 + extra]
        assert one.scaled(wg.ones(1)).tolist() == [2.0 + extra]


def test_objects_without_a_dict():
    for _ in range(3):
        made = [Slotted(float(i)) for i in range(12)]
        for one in made * 2:
            assert one.scaled(wg.ones(1)).tolist() == [one.by.item()]


@pytest.mark.parametrize("again", [copy.deepcopy, pickled])
@pytest.mark.parametrize("attribute", [False, True])
def test_copies_of_modules_whose_forward_is_compiled(again, attribute):
    one = Net()
    if attribute:
        one.forward = wg.compile(one.forward)
    x = wg.ones(2)
    for _ in range(3):
        one(x)
    other = again(one)
    with wg.no_grad():
        other.weight.mul_(3.0)
        for _ in range(3):
            assert other(x).tolist() == [3.0, 3.0]
            assert one(x).tolist() == [1.0, 1.0]


def test_compiled_functions_are_copied_and_pickled():
    of_a_module(wg.ones(1))
    assert pickled(of_a_module) is of_a_module
    one = wg.compile(branching, strict=True)
    for other in (copy.copy(one), copy.deepcopy(one), pickled(one)):
        with pytest.raises(TraceError):
            other(wg.ones(2))


# -- what a call gives -----------------------------------------------------------------------------


class Answer:
    def __init__(self, value):
        self.value = value


def test_what_is_returned_is_the_caller_s_own():
    f = wg.compile(lambda x: (x * 2, np.ones(2), [1, x + 1], {"a": 3.0}))
    answers = [f(wg.ones(2)) for _ in range(5)]
    for one in answers:
        assert one[1].tolist() == [1.0, 1.0]
        one[1][0] = 7.0
        one[2].append(None)
        one[3]["b"] = None
        one[0].fill_(9.0)
    assert len({id(one[1]) for one in answers}) == 5
    assert f(wg.ones(2))[0].tolist() == [2.0, 2.0]
    assert f.report.recordings == 1


@pytest.mark.parametrize("made", [lambda x: {1, 2}, lambda x: Answer(3.0), lambda x: Answer(x * 2)])
def test_an_object_that_the_function_makes_is_made_in_each_call(made):
    f = wg.compile(lambda x: (x * 2, made(x)))
    found = [f(wg.ones(2))[1] for _ in range(4)]
    assert len({id(x) for x in found}) == 4
    assert "ran eagerly" in str(f.report)


def test_objects_that_were_there_before_are_returned_themselves():
    kept, model = Answer(2.0), wg.nn.Linear(2, 2)
    f = wg.compile(lambda x: (x * kept.value, kept, model, model.weight, len, Answer, wg.float32))
    for _ in range(4):
        found = f(wg.ones(2))
        assert found[1:] == (kept, model, model.weight, len, Answer, wg.float32)
    assert f.report.recordings == 1


def test_one_tensor_comes_back_as_one():
    w = wg.asarray([2.0], requires_grad=True)

    def function(x):
        w.grad = None
        wg.sum(w * x).backward()
        y = x * 2
        return y, y, w.grad

    f = wg.compile(function)
    for i in range(4):
        one, other, grad = f(wg.asarray([float(i)]))
        assert one is other
        assert grad is w.grad


# -- gradients -------------------------------------------------------------------------------------


def test_the_caller_s_graph_goes_on_behind_a_call():
    w = wg.asarray([1.0, 2.0], requires_grad=True)
    held = {"h": w * 2}
    for function in (lambda x: wg.sum(x * x), lambda x: wg.sum(held["h"] * held["h"])):
        f = wg.compile(function)
        for _ in range(4):
            w.grad, held["h"] = None, w * 2
            f(held["h"]).backward()
            assert w.grad.tolist() == [8.0, 16.0]
    for _ in range(3):
        x = wg.asarray([1.0, 2.0])
        f = wg.compile(lambda x: wg.sum(x**3))
        assert [wg.grad(f)(x).tolist() for _ in range(3)] == [[3.0, 12.0]] * 3


def test_what_reaches_another_result_alone_has_no_gradient():
    a, b = (wg.asarray([x], requires_grad=True) for x in (1.0, 2.0))
    f = wg.compile(lambda x: (wg.sum(a * x), wg.sum(wg.log(b * x)), wg.sum(a * b)))
    for chosen in [(0,), (1,), (2,), (0, 1), (0, 2), (0, 1, 2)] * 2:
        found = []
        for run in (f, f.__wrapped__):
            a.grad = b.grad = None
            answers = run(wg.asarray([3.0]))
            sum((answers[i] for i in chosen[1:]), answers[chosen[0]]).backward()
            found.append([None if x.grad is None else x.grad.tolist() for x in (a, b)])
        assert found[0] == found[1]
    with np.errstate(all="ignore"):
        b = wg.asarray([2.0], requires_grad=True)
        f = wg.compile(lambda x: (wg.sum(b * x), wg.sum(wg.log(b - b * x))))
        for _ in range(3):
            b.grad = None
            f(wg.ones(1))[0].backward()
            assert b.grad.tolist() == [1.0]  # the logarithm's infinite slope is not there


def test_gradients_that_are_one_tensor():
    p, q = (wg.asarray([x], requires_grad=True) for x in (1.0, 2.0))

    def function(x):
        p.grad = q.grad = None
        wg.sum(q * x).backward()
        p.grad = q.grad
        return x

    f = wg.compile(function)
    for i in range(4):
        f(wg.asarray([float(i)]))
        assert p.grad is q.grad
        assert p.grad.tolist() == [float(i)]


@pytest.mark.parametrize("of", ["a leaf", "a result"])
def test_hooks_on_arguments(of):
    def function(x):
        (g,) = wg.autograd.grad(wg.sum(x * 3.0), [x])
        return g

    f = wg.compile(function)
    leaf = wg.asarray([1.0], requires_grad=True)
    x = leaf if of == "a leaf" else leaf * 2.0
    assert [f(x).tolist() for _ in range(3)] == [[3.0]] * 3
    handle = x.register_hook(lambda g: g * 7)
    assert [f(x).tolist() for _ in range(3)] == [[21.0]] * 3
    handle.remove()
    assert [f(x).tolist() for _ in range(3)] == [[3.0]] * 3


def test_hooks_of_parameters_change():
    w = wg.asarray([1.0, 2.0], requires_grad=True)
    by = [2.0]

    def function(x):
        w.grad = None
        wg.sum(w * x).backward()
        return w.grad * 1.0

    f = wg.compile(function)

    def same():
        for i in range(3):
            x = wg.ones(2) * (i + 1.0)
            assert f(x).tolist() == function(x).tolist()

    same()
    first = w.register_hook(lambda g: g * by[0])
    same()
    by[0] = 5.0
    same()
    second = w.register_hook(lambda g: g + 1.0)
    same()
    first.remove()
    same()
    seen = []
    third = w.register_post_accumulate_grad_hook(lambda p: seen.append(p))
    same()
    assert len(seen) == 6
    second.remove(), third.remove()
    same()


def test_a_function_that_registers_hooks_runs_as_it_is():
    w = wg.asarray([1.0], requires_grad=True)
    handles = []

    def function(x):
        handles.append(w.register_hook(lambda g: g * 2))
        return x * 2

    f = wg.compile(function)
    for i in range(1, 5):
        f(wg.ones(1))
        assert len(handles) == len(w._node.extra.gradient) == i


def broken(*_, **__):
    raise KeyError("a part of the compiler")


@pytest.mark.parametrize(("module", "name"), [
    (recording, "tensor_effects"), (compiled, "signature_of"), (compiled, "Replay"),
    (replay, "optimise"), (replay, "emit"),
])  # fmt: skip
def test_an_error_of_the_compiler_is_loud_once(module, name, monkeypatch):
    w = wg.asarray([1.0, 2.0], requires_grad=True)

    def step(x):
        w.grad = None
        loss = wg.sum(w * x)
        loss.backward()
        with wg.no_grad():
            w.sub_(w.grad)
        return loss.item() if x.shape == (1,) else loss

    monkeypatch.setattr(module, name, broken)
    f = wg.compile(step)
    x = wg.asarray([3.0, 5.0])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for i in range(1, 5):
            f(x)
            assert w.tolist() == [1.0 - 3.0 * i, 2.0 - 5.0 * i]
    assert len(said) == 1
    assert said[0].category is RuntimeWarning
    assert re.search(
        r"report it.*KeyError.*test_fallback.py.*raise KeyError\(", str(said[0].message)
    )
    assert "KeyError" in str(f.report)
    strict = wg.compile(step, strict=True)
    with pytest.raises(CompileError, match=r"report it.*KeyError"):
        [strict(x) for _ in range(2)]


@pytest.mark.parametrize(("module", "name"), [(compiled, "signature_of"), (replay, "emit")])
def test_memory_that_is_too_short_is_no_error_of_the_compiler(module, name, monkeypatch):
    def short(*_, **__):
        raise MemoryError("for the program")

    def step(x):
        return x * 2.0

    f, strict, x = wg.compile(step), wg.compile(step, strict=True), wg.ones(2)
    with monkeypatch.context() as patched, warnings.catch_warnings():
        warnings.simplefilter("error")
        patched.setattr(module, name, short)
        assert [f(x).tolist() for _ in range(3)] == [[2.0, 2.0]] * 3
        assert "MemoryError" in str(f.report)
        if name == "signature_of":  # and no program has run
            with pytest.raises(MemoryError, match="for the program"):
                strict(x)
    assert [g(x).tolist() for g in (f, strict) for _ in range(6)] == [[2.0, 2.0]] * 12
    assert "x * 2.0" in f.source
    assert "x * 2.0" in strict.source


@pytest.mark.parametrize("strict", [False, True])
def test_an_error_of_the_user_is_no_error_of_the_compiler(strict):
    def step(x, how):
        if how == "raises":
            raise KeyError("the user's")
        return x @ x if how == "wrong" else x * 2

    f = wg.compile(step, strict=strict)
    for _ in range(2):
        assert f(wg.ones(3), "right").tolist() == [2.0] * 3
        with pytest.raises(KeyError, match="the user's"):
            f(wg.ones(3), "raises")
        with pytest.raises(ValueError, match="matmul"):
            f(wg.ones(2, 3), "wrong")
