"""Results and arguments with graphs: the function runs as it is, or is refused by name."""

from types import SimpleNamespace
from typing import Any

import pytest

import wengert as wg

RUNS = "runs as it is, and not compiled"


def test_results_are_differentiated_outside_as_eagerly() -> None:
    """To any order; and a program serves where nothing is recorded."""
    w = wg.asarray([1.0, 2.0], requires_grad=True)

    def function(x: Any) -> Any:
        return wg.sum(x * w**3), w * 3.0

    f = wg.compile(function)
    with pytest.warns(RuntimeWarning, match=f"{RUNS}: its result requires grad") as told:
        f(wg.ones(2))
    for x in (wg.asarray([3.0, 5.0]), wg.asarray([1.0, 4.0])):
        total, scaled = f(x)
        (g,) = wg.autograd.grad(total + wg.sum(scaled), w, create_graph=True)
        (h,) = wg.autograd.grad(wg.sum(g), w)
        assert g.tolist() == (3 * x * w**2 + 3).tolist()
        assert h.tolist() == (6 * x * w).tolist()
    with pytest.raises(RuntimeError, match="has no program: its result requires grad"):
        print(f.source)
    with wg.no_grad():
        assert [f(wg.ones(2))[1].tolist() for _ in range(4)] == [[3.0, 6.0]] * 4
    assert len(told) == 1
    assert f.report.checks >= 1
    assert "3 calls ran eagerly: its result requires grad" in str(f.report)


def test_arguments_that_were_computed_are_differentiated_as_eagerly() -> None:
    f = wg.compile(lambda y: wg.sum(y * y))
    x = wg.asarray([3.0, 5.0], requires_grad=True)
    with pytest.warns(RuntimeWarning, match=f"{RUNS}: y has been computed outside.*detach"):
        f(x * 2.0)
    for _ in range(3):
        x.grad = None
        f(x * 2.0).backward()
        assert x.grad is not None
        assert x.grad.tolist() == [24.0, 40.0]
    assert wg.grad(f)(wg.asarray([3.0, 5.0])).tolist() == [6.0, 10.0]
    assert wg.hessian(f)(wg.ones(1)).tolist() == [[2.0]]
    for _ in range(4):
        assert f((x * 2.0).detach()).item() == 136.0
    assert f.report.checks >= 1


@pytest.mark.filterwarnings("ignore:.* runs as it is")
@pytest.mark.parametrize("of", [lambda x: wg.nn.Parameter(wg.ones(2)), wg.Tensor.requires_grad_])
def test_leaves_that_are_made_inside_are_leaves(of: Any) -> None:
    f = wg.compile(lambda x: of(x * 2.0), check=0)
    assert all(f(wg.ones(2)).requires_grad for _ in range(4))


@pytest.mark.parametrize("way", ["swept", "kept", "beside"])
def test_results_of_what_differentiates_inside_have_no_graph(way: str) -> None:
    """An error where they are differentiated, and never a part of the slope."""
    w, v = (wg.asarray([1.0, 2.0], requires_grad=True) for _ in range(2))

    def step(x: Any) -> Any:
        w.grad = None
        loss = wg.sum(x * w**2)
        loss.backward(retain_graph=way == "kept")
        return wg.sum(w * x) if way == "beside" else loss

    f = wg.compile(step, check=0)
    f(wg.ones(2)), f(wg.ones(2))
    for _ in range(3):
        loss = f(wg.ones(2))
        assert loss.requires_grad
        assert not loss.is_leaf
        with pytest.raises(wg.compiler.CompileError, match="differentiate all of it inside"):
            (loss * wg.sum(v)).backward()
        assert w.grad is not None
        assert w.grad.tolist() == [2.0, 4.0]


def gradient(held, x):
    wg.sum(x * held["w"]).backward()
    return held["w"].grad


def kept(held, x):
    held["x"] = held["x"] + x
    return held["x"], held["x"] * 2


@pytest.mark.parametrize("function", [gradient, kept])
def test_what_is_returned_is_what_is_kept(function):
    """From the first call on, also where a gradient was there before; what others do stays."""

    def seen(compile):
        held, found = {"x": wg.ones(2), "w": wg.ones(2, requires_grad=True)}, []
        step = compile(lambda x: function(held, x))
        for i in range(6):
            first, *others = wg.func.tree_leaves(step(wg.asarray([3.0, 5.0])))
            is_kept = first is (held["w"].grad if function is gradient else held["x"])
            found.append((is_kept, [x.tolist() for x in (first, *others)]))
            first[...] = 7.0
            if i == 3:
                held["w"].grad = None
        return found

    assert seen(wg.compile) == seen(lambda step: step)


GRADIENTS = """
w.grad = g
b.copy_(g); w.grad = b
v.grad = w.grad = g * 2; return w.grad * 3
v.grad = w.grad; w.grad.mul_(g); return v.grad
wg.sum(v * g + w * 2).backward(); v.grad, w.grad = w.grad, v.grad; return v.grad
old = w.grad; w.grad = None; wg.sum(w**2 * g).backward(); return old
held.old, w.grad = w.grad, held.old * 2
w.grad.mul_(2); held.old, w.grad = w.grad, None; wg.sum(w**2 * g).backward()
n = held.old * 1; n.grad = g if held.old.grad is None else g + held.old.grad; held.old = n; return n
n = g * 1; n.grad = b; return n
n = g * 1; n.grad = w.grad; w.grad = g * 2; return n.grad, n
w.grad = g * 2; return w.grad * b, b.grad
held.t = held.t[::-1]; return held.t
n = wg.zeros(2); n.grad = wg.ones(2); b.grad = n; return n, n
h = w * g; h.retain_grad(); wg.sum(h**2).backward(); return h
d = wg.zeros(2).requires_grad_(True); wg.sum((w + d) ** 2 * g).backward(); return d
""".strip().splitlines()


@pytest.mark.filterwarnings("ignore:.*(runs as it is|not a leaf)")
@pytest.mark.parametrize("check", [0, 1])
@pytest.mark.parametrize("lines", GRADIENTS)
def test_gradients_are_the_tensors_that_are_put_there(lines: str, check: int) -> None:
    def seen(compile: Any) -> list[Any]:
        v, w = (wg.nn.Parameter(wg.ones(2)) for _ in range(2))
        b, held = wg.asarray([2.0, 3.0]), SimpleNamespace(old=wg.ones(2), t=(v, wg.ones(2)))
        w.grad = wg.asarray([4.0, 5.0])
        space = {"wg": wg, "v": v, "w": w, "b": b, "held": held, "__name__": "program"}
        exec(f"def step(g): {lines}", space)
        step, found = compile(space["step"]), list[Any]()
        for i in range(6):
            all_: list[Any] = [wg.asarray([float(i), 1.0]), v, w, b, held.old]
            all_ += [x.grad for x in all_]
            answer = wg.func.tree_leaves(step(all_[0]))
            all_ += [*answer, v, w, b, held.old]
            all_ += [None if x is None else x._grad for x in all_]
            there = {id(x): x for x in all_ if x is not None}
            found.append([[*there].index(id(x)) if x is not None else -1 for x in all_])
            found.append([(type(x), x.is_leaf, x.tolist()) for x in there.values()])
            with wg.no_grad():
                for x in there.values():
                    x.mul_(0.5)
        return found

    assert seen(wg.compile(check=check)) == seen(lambda step: step)


@pytest.mark.parametrize("name", ["zeta", "polygamma", "slope"])
def test_what_scipy_computes_is_one_instruction_of_other_libraries(name: str) -> None:
    functions: dict[str, Any] = {
        "zeta": lambda x: wg.special.zeta(x, x),
        "polygamma": lambda x: wg.special.polygamma(1, x),
        "slope": wg.grad(lambda x: wg.sum(wg.special.digamma(x))),
    }
    with wg.use_backend("array_api_strict"):
        f = wg.compile(functions[name])
        for numbers in ([1.5, 2.5], [3.0, 4.0], [2.0, 9.0]):
            x = wg.asarray(numbers)
            assert f(x).tolist() == functions[name](x).tolist()
    assert f.report.recordings == 1
