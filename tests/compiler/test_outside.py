"""Results of compiled functions are differentiated outside."""

import itertools
from typing import Any

import pytest

import wengert as wg
from wengert.compiler.capture.errors import CompileError, TraceError


def test_results_are_differentiated_outside():
    w = wg.asarray([1.0, 2.0], requires_grad=True)
    f = wg.compile(lambda x: (wg.sum(x * w**2), w * 3.0))
    for _ in range(3):
        w.grad = None
        x = wg.asarray([3.0, 5.0], requires_grad=True)
        total, scaled = f(x)
        (total + wg.sum(scaled)).backward()
        assert w.grad.tolist() == [9.0, 23.0]
        assert x.grad.tolist() == [1.0, 4.0]
    assert f.report.recordings == 1


def test_arguments_that_were_computed_are_differentiated_from_the_first_call_on():
    f = wg.compile(lambda y: wg.sum(y * y))
    x = wg.asarray([3.0, 5.0], requires_grad=True)
    for _ in range(3):
        x.grad = None
        y = x * 2.0
        f(y).backward()
        assert x.grad.tolist() == [24.0, 40.0]
        assert not y.is_leaf
    for _ in range(3):  # each transform has a function of its own
        g = wg.compile(lambda y: wg.sum(y * y))
        assert wg.grad(g)(wg.asarray([3.0, 5.0])).tolist() == [6.0, 10.0]


#: What is differentiated, one after the other: results, and whether their graphs are kept.
SWEEPS = [
    *[[((i,), False) for i in order] for order in itertools.permutations(range(3))],
    [((0,), True), ((1,), False), ((0,), False)],
    [((0, 1), True), ((0,), False), ((1,), False)],
    [((0, 1), False), ((2,), False)],
    [((0, 1, 2), True), ((0, 1, 2), False), ((1,), False)],
]


@pytest.mark.parametrize("sweeps", SWEEPS)
def test_results_are_differentiated_one_after_the_other(sweeps):
    """Also where they have operations in common, which eagerly is an error; twice it is one."""
    w, v = wg.asarray([1.0, 2.0], requires_grad=True), wg.asarray([3.0, 4.0], requires_grad=True)

    def step(x):
        h = x * w
        return wg.exp(h), wg.sin(v) * w, wg.cos(h * 2)

    def seen(function, again):
        w.grad = v.grad = None
        results, found = function(wg.ones(2)), []
        for which, keep in sweeps:
            try:
                sum(wg.sum(results[i]) for i in which).backward(retain_graph=keep or again)
            except RuntimeError as error:
                assert not again
                found.append(str(error))
            found += [x.grad if x.grad is None else x.grad.tolist() for x in (w, v)]
        return found

    compiled = wg.compile(step, check=0)  # a check gives its own graph
    once = [i for which, keep in sweeps if not keep for i in which]
    again = len(set(once)) == len(once) and sweeps[-1][0] not in [which for which, _ in sweeps[:-1]]
    seen(compiled, True)  # the call that is recorded gives the function's own graph
    for _ in range(3):
        assert seen(compiled, False) == seen(step, again)
    assert compiled.report.recordings == 1


def test_what_sweeps_needed_is_let_go_and_second_derivatives_are_refused():
    compiled = wg.compile(lambda x, y: (wg.sum(wg.exp(x)), wg.sum(wg.exp(y))), check=0)
    compiled(wg.ones(5), wg.ones(5))
    compiled(*(wg.ones(5, requires_grad=True) for _ in range(2)))
    for _ in range(3):
        x, y = (wg.ones(5, requires_grad=True) for _ in range(2))
        a, b = compiled(x, y)
        with pytest.raises(RuntimeError, match="differentiate inside the compiled function"):
            wg.autograd.grad(a, [x], create_graph=True)
        a.backward()
        b.backward()
        assert a._node.saved is None
        assert [x.grad.tolist(), y.grad.tolist()] == [wg.exp(wg.ones(5)).tolist()] * 2


def results_of_each_other(w):
    """A function some results of which others are computed from."""

    def step(x):
        inner = wg.sin(x * w)
        hidden, beside = wg.exp(inner), wg.cos(inner * w)
        loss = wg.sum(hidden * inner * beside)
        return hidden, beside, loss, loss * 2, hidden

    return step


def gradients(function, w, use):
    """What use makes of three calls' results, and the gradients that it leaves."""
    found = []
    for _ in range(3):
        w.grad = None
        results = function(wg.asarray([0.5, 2.0]))
        found.append((use(results), w.grad, [x.grad for x in results if x.retains_grad]))
    return found


def tolist(x):
    """Trees of Tensors as lists of numbers and None."""
    if isinstance(x, list | tuple):
        return [tolist(each) for each in x]
    return x if x is None else x.tolist()


def hooked(results):
    for x in results[:2]:
        x.register_hook(lambda g: g * 3)
        x.retain_grad()
    results[3].backward()


def kept_inputs(results):
    results[2].backward(inputs=[results[1]])
    return results[1].grad


USES = {
    "hooks": hooked,
    "inputs of backward": kept_inputs,
    "gradients of results": lambda r: wg.autograd.grad(r[3], [r[0], r[2], r[1]]),
    "a result and one that it is in": lambda r: wg.autograd.grad(r[2] + wg.sum(r[0]), [r[0]]),
    "what need not be there": lambda r: wg.autograd.grad(r[2], [r[3], r[0]], allow_unused=True),
}


@pytest.mark.filterwarnings("ignore:The .grad attribute")
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_results_that_others_are_computed_from_are_on_the_tape(use):
    w = wg.asarray([1.0, 2.0], requires_grad=True)
    step = results_of_each_other(w)
    expected = tolist(gradients(step, w, use))
    compiled = wg.compile(step)
    found = gradients(compiled, w, use)
    for one, other in zip(flat(tolist(found)), flat(expected), strict=True):
        assert one == (other if other is None else pytest.approx(other, rel=1e-5))


def flat(x):
    return [y for each in x for y in flat(each)] if isinstance(x, list) else [x]


def graph_of_what_was_plain(x, y, w):
    x[0] = w[0] * 2


def graph_of_what_was_computed(x, y, w):
    y[0] = w[0] * 2


HELD = [wg.ones(2, requires_grad=True) * 1]


def graph_of_what_is_held(x, y, w):
    HELD[0][0] = w[0] * 2


def tracked_from_now_on(x, y, w):
    x.requires_grad = True


def tracked_no_more(x, y, w):
    w.requires_grad = False


def hooked(x, y, w):
    y.register_hook(lambda g: g * 2)


def gradient_with_a_graph(x, y, w):
    wg.sum(w**3).backward(create_graph=True)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (graph_of_what_was_plain, "x was changed in place and has kept the graph of"),
        (graph_of_what_was_computed, "y was changed in place and has kept the graph of"),
        (graph_of_what_is_held, "was changed in place and has kept the graph of"),
        (tracked_from_now_on, "requires_grad of x changes inside"),
        (tracked_no_more, "requires_grad of w changes inside"),
        (hooked, "registers a hook on a Tensor"),
        (gradient_with_a_graph, "the gradient of w requires grad"),
    ],
)
def test_graphs_that_would_stay_behind_are_refused_by_name(change, what):
    def step(x, y, w):
        change(x, y, w)
        return wg.sum(x.detach())

    w = wg.asarray([1.0, 2.0], requires_grad=True)
    with pytest.raises(TraceError, match=what):
        wg.compile(step, strict=True)(wg.ones(2), w * 3, w)


def test_a_gradient_that_is_returned_is_the_gradient_itself():
    """Also where it was there before, so that it is added to; what others do to it stays."""

    def seen(compile):
        w, found = wg.asarray([1.0, 2.0], requires_grad=True), []

        def step(x):
            wg.sum(x * w).backward()
            return w.grad

        step = compile(step)
        for i in range(6):
            gradient = step(wg.asarray([3.0, 5.0]))
            found.append((gradient is w.grad, gradient.tolist()))
            gradient[...] = 7.0
            if i == 3:
                w.grad = None
        return found

    assert seen(wg.compile) == seen(lambda step: step)


def test_what_is_returned_and_kept_is_one_tensor_from_the_first_call_on():
    def seen(compile):
        held, found = {"x": wg.ones(2)}, []

        def step(x):
            held["x"] = held["x"] + x
            return held["x"], held["x"] * 2

        step = compile(step)
        for _ in range(4):
            kept, other = step(wg.asarray([3.0, 5.0]))
            found.append((kept is held["x"], kept.tolist(), other.tolist()))
            kept[...] = 7.0
        return found

    assert seen(wg.compile) == seen(lambda step: step)


def _insides(w, v):
    """What functions differentiate inside that take a Tensor which was computed outside.

    Each with whether it is refused.
    """

    def backward(h):
        loss = wg.sum(h.detach() * w * w)
        loss.backward()
        return loss.detach() + wg.sum(h)

    def backward_to(h):
        wg.sum(h * h * w).backward(inputs=[h])
        return h * 2.0

    def backward_through(h):
        wg.sum(h * w).backward()
        return h * 2.0

    def assigned(h):
        h.grad = wg.ones(2)
        return h * w

    def checkpointed(h):
        y = wg.checkpoint(lambda z: wg.tanh(z * w * v), h.detach())
        return wg.autograd.grad(wg.sum(y), [w])[0] * h

    def grad(loss, inputs, **options):
        found = wg.autograd.grad(wg.sum(loss), inputs, **options)
        return [wg.zeros(2) if g is None else g for g in found]

    ones = wg.ones(2)
    return {
        "grad": (lambda h: wg.grad(lambda z: wg.sum(wg.tanh(z * w)))(h), False),
        "grad beside": (lambda h: wg.grad(lambda z: wg.sum(z * z * h * w))(w), False),
        "vjp": (lambda h: wg.vjp(lambda z: z * z * w, h)[1](ones)[0], False),
        "hessian": (lambda h: wg.hessian(lambda z: wg.sum(z * z * z * w))(h), False),
        "jvp": (lambda h: wg.jvp(lambda z: z * z * w, (h,), (v,)), False),
        "backward": (backward, False),
        "backward to it": (backward_to, False),
        "backward through it": (backward_through, True),
        "checkpoint": (checkpointed, False),
        "autograd.grad by it": (lambda h: grad(h * h * w, [h]), False),
        "autograd.grad": (lambda h: grad(h * w, [w]), True),
        "autograd.grad through it": (lambda h: grad(h * h, [w], allow_unused=True), True),
        "assigned": (assigned, False),
        "is_leaf": (lambda h: h * (2.0 if h.is_leaf else 3.0), False),
    }


@pytest.mark.filterwarnings("ignore:The .grad attribute")
@pytest.mark.parametrize("held", [False, True], ids=["argument", "state"])
@pytest.mark.parametrize("inside", [*_insides(None, None)])
def test_sweeps_inside_do_not_look_at_graphs_of_the_caller(inside, held):
    """Refused is what would enter one; all else is compiled, and right at each call."""

    def run(compiled):
        w, v, u = (wg.asarray([x, 2.0], requires_grad=True) for x in (1.0, 0.5, 3.0))
        function, refused = _insides(w, v)[inside]
        carried, found = [None], []
        step = (lambda x: function(carried[0])) if held else function
        call = wg.compile(step) if compiled else step
        for i in range(5):
            w.grad = v.grad = u.grad = None
            carried[0] = (u if i % 2 else w) * (2.0 + i)
            if compiled and refused:
                with pytest.raises(CompileError, match="detach it, or compute it inside"):
                    call(carried[0] if not held else v)
                return found
            results = call(carried[0] if not held else v)
            results = results if isinstance(results, list | tuple) else [results]
            loss = sum(wg.sum(x) for x in results)
            found.append([*results, loss, carried[0]._grad, w.grad, v.grad, u.grad])
            if loss.requires_grad:
                loss.backward()
            found[-1] += [w.grad, v.grad, u.grad]
            found[-1] = tolist(found[-1])
        return found

    found = run(True)
    for one, other in zip(flat(found), flat(run(False) if found else []), strict=True):
        assert one == (other if other is None else pytest.approx(other, rel=1e-5))


def test_what_an_argument_retains_and_comes_from_is_told() -> None:
    """Programs of the one were run for the other."""

    def made(i: int) -> wg.Tensor:
        y = (wg.exp if i % 2 else wg.sin)(wg.ones(2, requires_grad=True))
        if i % 3 == 2:
            y.retain_grad()
        return y

    def retained(y: wg.Tensor) -> wg.Tensor:
        return y * (2.0 if y.retains_grad else 3.0)

    def named(y: wg.Tensor) -> wg.Tensor:
        assert y.grad_fn is not None
        return y * (2.0 if "Exp" in y.grad_fn.name() else 3.0)

    compiled = wg.compile(retained, check=0)
    for i in range(9):
        assert compiled(made(i)).tolist() == retained(made(i)).tolist()
    with pytest.raises(CompileError, match="asks for the operation of y"):
        wg.compile(named)(made(0))


@pytest.mark.parametrize("check", [None, 0])
def test_gradients_and_states_that_code_asks_for_by_other_names(check: int | None) -> None:
    def train(compiled: bool) -> list[Any]:
        w, found = wg.nn.Parameter(wg.ones(3)), []
        optimizer = wg.optim.Adam([w])

        def step(x: wg.Tensor) -> wg.Tensor:
            there = getattr(w, "gr" + "ad") is not None
            optimizer.zero_grad()
            loss = wg.sum(w * x) * (len(optimizer.state) + 1.0) * (2.0 if there else 3.0)
            loss.backward()
            optimizer.step()
            return loss

        run = wg.compile(step, check=check) if compiled else step
        for i in range(9):
            if i in (4, 7):
                optimizer.state.clear()
                w.grad = None
            found.append((run(wg.ones(3) * i).item(), w.tolist()))
        return found

    assert train(True) == train(False)
