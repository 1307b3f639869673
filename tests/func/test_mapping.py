"""`vmap`: of each member the result is the one that it has alone, inside and outside transforms."""

import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F
from tests.catalogue.table import TABLE
from tests.ops.cases import apply, check_examples, function, inexact_results, leaves
from wengert import nn

COUNT = 3
#: Draws differ; the members have results of different shapes; values are asked for.
FREE = {"rand_like", "nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values"}
ROWS = [(n, k) for n, entry in sorted(TABLE.items()) if n not in FREE for k in entry.kinds()]


def double(values: Any, **options: Any) -> wg.Tensor:
    return wg.asarray(values, dtype=wg.float64, **options)


def close(found: Any, expected: Any) -> None:
    found, expected = (np.asarray(getattr(x, "detach", lambda x=x: x)()) for x in (found, expected))
    assert found.shape == expected.shape
    finite = expected[np.isfinite(expected)]
    scale = max(np.max(abs(finite), initial=0.0), 1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10 * scale)


@pytest.mark.parametrize(("name", "kind"), ROWS)
def test_every_function_is_mapped(name: str, kind: str) -> None:
    """By each argument alone and all together, on any axis; and its derivatives in both modes."""
    entry = TABLE[name]
    call = function(name, entry)
    seen = iter(range(10**6))

    def check(case: Any) -> None:
        given = [x.detach() for x in leaves(case)]
        if not given:
            return

        def value(*inputs: Any) -> Any:
            return apply(call, case, inputs)

        def forward(*inputs: Any) -> Any:
            return wg.jvp(lambda *x: inexact_results(value(*x)), inputs, inputs)[1]

        def total(*inputs: Any) -> Any:
            ys = inexact_results(value(*inputs))
            return sum(wg.sum(wg.real(y * 1.5) if y.dtype.complex else y * y) for y in ys)

        def reverse(*inputs: Any) -> Any:
            return wg.grad(total, range(len(inputs)))(*inputs)

        stacks = [wg.stack([x * (1 - 1e-3 * i) for i in range(COUNT)]) for x in given]
        axis = (0, -1, 1)[next(seen) % 3]
        choices = {*[(i,) for i in range(len(given))], tuple(range(len(given)))}
        for chosen in sorted(choices):
            axes = [axis if x.ndim and i in chosen else 0 for i, x in enumerate(given)]
            in_axes = tuple(at if i in chosen else None for i, at in enumerate(axes))
            args = [
                wg.moveaxis(s, 0, at) if i in chosen else x
                for i, (s, x, at) in enumerate(zip(stacks, given, axes, strict=True))
            ]

            members = [
                [stacks[i][m] if i in chosen else x for i, x in enumerate(given)]
                for m in range(COUNT)
            ]
            functions = [value]
            if entry.tracked and entry.order and inexact_results(value(*given)):
                functions += [forward, reverse]
            for run in functions:
                try:
                    alone = [run(*member) for member in members]
                except NotImplementedError:
                    continue
                if len({tuple(tuple(y.shape) for y in ys) for ys in alone}) > 1:
                    continue  # by masks of different sizes
                for at, y in enumerate(wg.vmap(run, in_axes)(*args)):
                    close(y, wg.stack([ys[at] for ys in alone]))
            if reverse in functions:  # differentiated outside: what is not mapped gets the sum
                found = wg.grad(
                    lambda *x, axes=in_axes: wg.sum(wg.vmap(total, axes)(*x)), range(len(args))
                )(*args)
                gradients = zip(*[reverse(*member) for member in members], strict=True)
                for i, (g, each) in enumerate(zip(found, gradients, strict=True)):
                    whole, to = wg.stack(list(each)), axes[i]
                    close(g, wg.moveaxis(whole, 0, to) if i in chosen else wg.sum(whole, axis=0))

    def quietly(case: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a scaled point may have left the function's domain
            check(case)

    check_examples(1, quietly, getattr(entry, kind))


# -- transforms inside and outside -----------------------------------------------------------------

RANDOM = np.random.default_rng(0)
W, X = RANDOM.standard_normal((3, 4)), RANDOM.standard_normal((6, 4))


def loss(w: Any, x: Any) -> Any:
    return wg.sum(wg.tanh(w @ x) ** 2)


def each(w: Any) -> Any:
    """By a Tensor that the mapped function closes over."""
    return wg.vmap(lambda x: loss(w, x))(double(X))


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: wg.grad(lambda w: wg.sum(f(w) ** 2)),
        lambda f: wg.grad(lambda w: wg.sum(wg.grad(lambda w: wg.sum(f(w) ** 2))(w) ** 3)),
        lambda f: lambda w: wg.jvp(f, (w,), (w,))[1],
        lambda f: lambda w: wg.jvp(lambda w: wg.jvp(f, (w,), (w,))[1], (w,), (w,))[1],
        lambda f: lambda w: wg.vjp(f, w)[1](double(np.arange(6.0)))[0],
        lambda f: wg.grad(lambda w: wg.sum(wg.jvp(f, (w,), (w,))[1] ** 2)),
        lambda f: wg.func.jacrev(f),
        lambda f: wg.func.jacfwd(f),
        lambda f: wg.grad(lambda w: wg.sum(wg.func.jacrev(f)(w) ** 3)),
        lambda f: wg.hessian(lambda w: wg.sum(f(w) ** 2)),
        lambda f: wg.hessian(f),
        lambda f: lambda w: wg.func.linearize(f, w)[1](w),
        lambda f: wg.grad(lambda w: wg.sum(wg.checkpoint(f, w) ** 2)),
        lambda f: wg.compile(wg.grad(lambda w: wg.sum(f(w) ** 2))),
        lambda f: wg.vmap(lambda row: wg.grad(lambda w: wg.sum(f(w * row) ** 2))(double(W))),
    ],
)
def test_transforms_outside(transform: Any) -> None:
    looped = lambda w: wg.stack([loss(w, x) for x in double(X)])
    close(transform(each)(double(W)), transform(looped)(double(W)))


@pytest.mark.filterwarnings("ignore:.* runs as it is:RuntimeWarning")  # under a gradient
@pytest.mark.parametrize(
    "transform",
    [
        lambda f: wg.grad(f),
        lambda f: lambda x: wg.jvp(f, (x,), (x,))[1],
        lambda f: lambda x: wg.vjp(f, x)[1](double(2.0))[0],
        lambda f: wg.hessian(f),
        lambda f: wg.jacobian(wg.grad(f)),
        lambda f: lambda x: wg.func.hvp(f, (x,), (x,))[0],
        lambda f: lambda x: wg.func.linearize(f, x)[1](x),
        lambda f: wg.grad(lambda x: wg.checkpoint(f, x)),
        lambda f: lambda x: wg.vmap(lambda s: f(x * s))(double([1.0, 2.0])),
        lambda f: lambda x: wg.vmap(wg.grad(f), 1)(wg.stack([x, x * x], axis=1)),
    ],
)
def test_transforms_inside(transform: Any) -> None:
    """And the gradient of all that, by a Tensor that the function closes over."""

    def of(w: Any, x: Any) -> Any:
        return transform(lambda x: loss(w, x))(x)

    members = [double(x) for x in X]
    expected = wg.stack([of(double(W), x) for x in members])
    close(wg.vmap(of, (None, 0))(double(W), double(X)), expected)
    found = wg.grad(lambda w: wg.sum(wg.vmap(lambda x: of(w, x))(double(X)) ** 2))(double(W))
    close(found, wg.grad(lambda w: sum(wg.sum(of(w, x) ** 2) for x in members))(double(W)))


# -- arguments and results -------------------------------------------------------------------------


def test_trees_and_axes() -> None:
    given = {"a": double(RANDOM.standard_normal((4, 3))), "b": [double(2.0)]}
    other = double(RANDOM.standard_normal((2, 3)))

    def f(tree: Any, x: Any, *, scale: Any) -> Any:
        return {"y": tree["a"] * tree["b"][0] * scale, "z": (x.sum(), tree["b"][0])}

    mapped = wg.vmap(f, ({"a": -1, "b": None}, 1), {"y": -1, "z": (0, None)})
    found = mapped(given, other, scale=double([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(found["y"].numpy(), given["a"].numpy() * 2 * [1.0, 2.0, 3.0])
    np.testing.assert_allclose(found["z"][0].numpy(), other.numpy().sum(0))
    assert found["z"][1].item() == 2
    assert isinstance(wg.vmap(lambda x: x * 2)(np.ones(3)), np.ndarray)
    np.testing.assert_array_equal(wg.vmap(lambda x: 1.5)(np.ones(3)), [1.5, 1.5, 1.5])
    assert wg.vmap(wg.exp)(wg.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("chunk", [1, 2, 4, 9])
def test_chunks(chunk: int) -> None:
    found = wg.vmap(wg.grad(loss), (None, 0), 1, chunk_size=chunk)(double(W), double(X))
    close(found, wg.vmap(wg.grad(loss), (None, 0), 1)(double(W), double(X)))
    mapped = wg.vmap(lambda x: (wg.ones(2), x), out_axes=(None, 0), chunk_size=chunk)
    assert [x.shape for x in mapped(double(X))] == [(2,), double(X).shape]
    same = wg.vmap(lambda x: x + wg.random.rand(), chunk_size=chunk, randomness="same")
    assert len({*same(wg.zeros(5)).tolist()}) == 1


def test_random_numbers() -> None:
    draws = {
        "rand": lambda x: wg.random.rand(2) + x,
        "randint": lambda x: wg.random.randint(0, 10**6, (2,)) + x,
        "randperm": lambda x: wg.random.randperm(50) + x,
        "rand_like": lambda x: wg.random.rand_like(wg.zeros(2)) + x,
        "rand_like of a member": lambda x: wg.random.rand_like(wg.zeros(2) + x) + x,
        "dropout": lambda x: wg.nn.functional.dropout(wg.ones(40) + x, 0.5),
    }
    for name, draw in draws.items():
        with pytest.raises(RuntimeError, match='randomness="different"'):
            wg.vmap(draw)(wg.zeros(3))
        for mode in ("same", "different"):
            rows = wg.vmap(draw, randomness=mode)(wg.zeros(3)).numpy()
            assert (len(np.unique(rows, axis=0)) == 1) == (mode == "same"), (name, mode)
            nested = wg.vmap(
                lambda x, draw=draw, mode=mode: wg.vmap(draw, randomness=mode)(x + wg.zeros(2)),
                randomness="different",
            )(wg.zeros(3)).numpy()
            assert len(np.unique(nested[:, 0], axis=0)) == 3, (name, mode)
            assert (nested[0, 0] == nested[0, 1]).all() == (mode == "same"), (name, mode)
        rows = wg.vmap(wg.compile(draw), randomness="different")(wg.zeros(3)).numpy()
        assert len(np.unique(rows, axis=0)) == 3
    assert wg.random.rand(2).shape == (2,)


VECTOR = wg.ones(3)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: wg.vmap(lambda x: x if x > 0 else -x)(VECTOR), TypeError, r"if, while.*wg.where"),
        (lambda: wg.vmap(lambda x: float(x))(VECTOR), RuntimeError,
         "inside vmap or a Jacobian becomes a Python"),
        (lambda: wg.vmap(lambda x: wg.asarray(x.numpy()))(VECTOR), RuntimeError, "for each of 3"),
        (lambda: wg.vmap(lambda x: x, out_axes=None)(VECTOR), ValueError,
         "differs between members"),
        (lambda: wg.vmap(lambda x: x, 1)(VECTOR), ValueError,
         r"argument\[0\] has shape .*no axis 1"),
        (lambda: wg.vmap(lambda x: x, out_axes=2)(VECTOR), ValueError, "the result .*no axis 2"),
        (lambda: wg.vmap(lambda x, y: x)(VECTOR, wg.ones(2)), ValueError, "one length"),
        (lambda: wg.vmap(lambda x: x, None)(VECTOR), ValueError, "one length"),
        (lambda: wg.vmap(lambda x, y: x)(VECTOR, 2.0), TypeError, r"argument\[1\] is a float"),
        (lambda: wg.vmap(lambda x, y: x, (0,))(VECTOR, VECTOR), ValueError, "in_axes"),
        (lambda: wg.vmap(lambda x: x, "0")(VECTOR), TypeError, "in_axes has integers"),
        (lambda: wg.vmap(lambda x: "a")(VECTOR), TypeError, "is a str, and no array"),
        (lambda: wg.vmap(lambda x: x, chunk_size=0), ValueError, "chunk_size"),
        (lambda: wg.vmap(lambda x: x, randomness="no"), ValueError, "randomness is"),
        (lambda: wg.vmap(3), TypeError, "vmap takes a function"),
        (lambda: wg.vmap(lambda x: x[x > 0])(wg.asarray([[1.0, -1.0], [1.0, 1.0]])), ValueError,
         "getitem gives results of different shapes"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        call()


def test_a_tensor_that_is_kept_can_not_be_read() -> None:
    kept: list[Any] = []
    wg.vmap(lambda x: kept.append(x) or x)(VECTOR)
    with pytest.raises((TypeError, RuntimeError), match="inside vmap"):
        (kept[0] + 1).item()


# -- nests of modes, draws and writes --------------------------------------------------------------


def test_tangents_pass_what_is_written_without_recording():
    def f(a):
        a = a * 1
        with wg.no_grad():
            a *= 2
        return wg.sum(a * a)

    x = wg.asarray([[1.0, 2.0], [3.0, 4.0]], dtype=wg.float64)
    assert wg.func.jvp(wg.vmap(f), (x,), (x,))[1].tolist() == [20.0, 100.0]


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_draws_inside_forward_mode_are_those_of_members(randomness):
    def tangent(x):
        return wg.func.jvp(lambda x: F.dropout(x, 0.5), (x,), (x,))[1]

    found = wg.vmap(tangent, randomness=randomness)(wg.ones((5, 16))).numpy()
    assert found.shape == (5, 16)
    assert (found == found[0]).all() == (randomness == "same")


def test_draws_of_rules_are_the_map_s():
    @wg.func.custom_vjp
    def double(x):
        return x * 2

    double.defvjp(lambda x: (x * 2, x), lambda saved, g: (wg.random.rand_like(g),))

    def gradient(randomness):
        mapped = wg.vmap(double, randomness=randomness)
        return wg.grad(lambda x: wg.sum(mapped(x)))(wg.ones((3, 4))).numpy()

    found = gradient("same")
    assert (found == found[0]).all()
    with pytest.raises(RuntimeError, match="random numbers are drawn"):
        gradient("error")


def test_mapped_values_stay_inside():
    outside, norm = wg.zeros(2), nn.BatchNorm1d(2)

    def write(x):
        outside.add_(x)
        return outside * 1

    for layer, x in [(write, wg.ones((3, 2))), (norm, wg.random.rand(4, 3, 2))]:
        with pytest.raises(RuntimeError, match="outlives the function"):
            wg.vmap(layer)(x)
    assert outside.tolist() == norm.running_mean.tolist() == [0.0, 0.0]
    counter = wg.zeros(2)
    for size, error in [(1, RuntimeError), (2, RuntimeError), (3, None)]:
        with pytest.raises(error, match="calls in chunks") if error else nullcontext():
            wg.vmap(lambda x: x * counter.add_(1), chunk_size=size)(wg.ones((3, 2)))
    assert counter.tolist() == [1.0, 1.0]

    def fill(x):
        out = wg.zeros(2)
        out[0] = x[0]
        out += x
        return out

    assert wg.vmap(fill)(wg.ones((2, 2))).tolist() == [[2.0, 1.0], [2.0, 1.0]]
