"""`wg.compile`: compiled functions do what they do when they are not compiled."""

import gc
import warnings

import numpy as np
import pytest

import wengert as wg
from tests.compiler.ordinary import alike, batch, network, training_step


@pytest.mark.backend
@pytest.mark.parametrize("optimiser", ["SGD", "Adam", "AdamW"])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_training_is_the_same(backend, optimiser, dropout):
    found = []
    for wrap in (lambda step: step, wg.compile):
        model, optimizer, step = network(optimiser, wg.nn.ReLU(), wg.nn.Dropout(dropout))
        step = wrap(step)
        steps = 3 if backend.name == "dask" else 6  # a step takes seconds there
        batches = [batch() for _ in range(steps)]
        left = []
        for i, (x, y) in enumerate(batches):
            if i == steps - 1:
                optimizer.param_groups[0]["lr"] = 0.02  # seen, and no new program
            left.append(step(x, y))
        found.append([x.detach().numpy() for x in (*left, *model.parameters())])
        found[-1] += [p.grad.numpy() for p in model.parameters()]
    assert step.report.recordings <= 3, step.report
    for a, b in zip(*found, strict=True):
        if backend.name == "jax" and not dropout:  # XLA fuses, and rounds less often
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
        else:
            np.testing.assert_array_equal(a, b)


def test_what_a_program_is_for():
    x = wg.ones(6)
    g = wg.compile(lambda x, n: wg.reshape(x, (n, -1)))
    assert [g(x, n).shape for n in (2, 3, 2)] == [(2, 3), (3, 2), (2, 3)]
    assert g.report.recordings == 2
    h = wg.compile(lambda x, a: x * a, static_argnames="a")
    h(x, 2.0), h(x, 3.0)
    assert h.report.recordings == 2


def test_a_keyword_of_the_name_of_a_positional_argument():
    @wg.compile
    def f(x, a=1.0, /, **k):
        return x * a - k["a"]

    for a in (3.0, 3.0, 4.0):
        assert f(wg.ones(1), a=a).tolist() == [1 - a]
        assert f(wg.ones(1), 2.0, a=a).tolist() == [2 - a]
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        wg.compile(lambda x: x)(wg.ones(1), z=1)


def test_trees_and_raw_arrays():
    f = wg.compile(lambda p: {"sum": p["a"] + p["b"][0], "same": p["a"], "plain": "text"})
    for scale in (1.0, 2.0):
        a = wg.ones(2) * scale
        got = f({"a": a, "b": [wg.ones(2)]})
        assert got["sum"].tolist() == [scale + 1] * 2
        assert got["same"] is a
        assert got["plain"] == "text"
    assert f.report.recordings == 1
    g = wg.compile(wg.value_and_grad(lambda v: wg.sum(v**3)))
    for v in (np.asarray([1.0, 2.0]), np.asarray([3.0, 4.0])):
        value, gradient = g(v)
        assert float(value) == float(np.sum(v**3))
        np.testing.assert_array_equal(np.asarray(gradient), 3 * v**2)
    assert g.report.recordings == 1


def test_the_cache_is_bounded():
    f = wg.compile(lambda x: x + 1, cache_size=2)
    f(wg.ones(1)), f(wg.ones(2))
    with pytest.warns(RuntimeWarning, match=r"recorded .* 3 times, and keeps 2 programs") as told:
        f(wg.ones(3))
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(wg.ones(3))


@pytest.mark.slow
def test_many_replays_leave_nothing_behind():
    model = wg.nn.Linear(4, 3)
    optimizer = wg.optim.SGD(model.parameters(), lr=0.01)
    step = wg.compile(training_step(optimizer, lambda x: wg.sum(model(x) ** 2)))
    x = wg.randn(2, 4)
    for _ in range(100):
        step(x)
    gc.collect()
    before = len(gc.get_objects()), len(wg.global_tape)
    for _ in range(10_000):
        step(x)
    gc.collect()
    assert len(wg.global_tape) == before[1]
    assert len(gc.get_objects()) <= before[0] + 10


def test_methods_are_compiled_for_each_object():
    class Scale:
        def __init__(self, by):
            self.by = wg.asarray(by)

        @wg.compile
        def __call__(self, x):
            return x * self.by

        @wg.compile
        def twice(self, x):
            return x * self.by * 2.0

        unit = 1.0

        @classmethod
        @wg.compile
        def units(cls, x):
            return x * cls.unit

    class Half(Scale):
        unit = 0.5

    two, three = Scale(2.0), Scale(3.0)
    assert [s.twice(wg.ones(1)).tolist() for s in (two, three, two)] == [[4.0], [6.0], [4.0]]
    for unit in (1.0, 1.0, 3.0):
        Scale.unit = unit
        assert [s.units(wg.ones(1)).tolist() for s in (Scale, Half, two)] == [[unit], [0.5], [unit]]


@pytest.mark.parametrize("check", [None, 0])
def test_a_raw_array_of_the_state_is_returned_itself_and_no_argument(check):
    """Its number among the state's arrays was taken for an argument's."""
    held = {"other": np.ones(2), "kept": np.arange(2.0)}
    compiled = wg.compile(
        lambda a, b, c: (wg.asarray(a) * held["other"], held["kept"]), check=check
    )
    for i in range(4):
        if i == 2:
            held["kept"] = np.arange(2.0) + 5
        given = [np.full(2, i + j) for j in (1.0, 2.0, 3.0)]
        result, kept = compiled(*given)
        assert kept is held["kept"]
        assert result.tolist() == given[0].tolist()
    assert compiled.report.recordings == 1


LATE = {
    "erf": lambda x: wg.erf(x),
    "linalg": lambda x: wg.linalg.vector_norm(x),
    "hvp": lambda x: wg.hvp(lambda x: wg.sum(x**3), (x,), (x,))[0],
}


@pytest.mark.parametrize("name", LATE)
def test_what_wengert_imports_late_is_there_in_the_first_call(name, monkeypatch):
    getattr(wg, name)
    monkeypatch.delitem(vars(wg), name, raising=False)  # as in a new process
    run = alike(lambda: (LATE[name], list), [(wg.asarray([0.5, 1.0]),)] * 3)
    assert run.report.recordings == 1


def test_results_that_are_differentiated_inside_have_the_leaves_of_their_graphs():
    """Transforms keep the node where a leaf is outside; a sweep to other leaves passes it."""
    p, q = wg.ones(4, requires_grad=True), wg.ones(4, requires_grad=True)

    @wg.compile(check=0)
    def step(x, inside):
        p.grad = wg.full((4,), 0.5)
        return wg.sum(x * (wg.ones(4, requires_grad=True) if inside else p))

    for inside in [True, False] * 4:
        value, _ = wg.value_and_grad(lambda z, there: step(wg.ones(4), there))(wg.ones(4), inside)
        assert value.requires_grad is not inside
    with pytest.raises(wg.compiler.CompileError, match="differentiate all of it inside"):
        (value + wg.sum(p)).backward()
    assert wg.autograd.grad(value + wg.sum(q), q)[0].tolist() == [1.0] * 4
