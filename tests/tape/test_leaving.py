"""Values that leave Tensors: errors within transforms, and PyTorch's ways outside."""

import copy
import math
import pickle
import threading
import warnings
from math import exp as exponential
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import operation
from wengert.tape.grad_mode import following

SCALAR = "Converting a tensor with requires_grad=True to a scalar"


def set_element(x: Any) -> Any:
    a = np.zeros(3)
    a[0] = x[0]
    return a


# How values leave, and what the error names instead.
ESCAPES: dict[str, tuple[Any, str]] = {
    "float": (lambda x: float(x[0]), "wg.stack"),
    "int": (lambda x: int(x[0]), r"wg\.trunc"),
    "complex": (lambda x: complex(x[0]), "wg.stack"),
    "item": (lambda x: x[0].item(), "wg.stack"),
    "tolist": (lambda x: x.tolist(), "wg.stack"),
    "math": (lambda x: math.exp(x[0]), "wg.stack"),
    "math by another name": (lambda x: exponential(x[0]), "wg.stack"),
    "math.gamma": (lambda x: math.gamma(x[0]), "wg.stack"),
    "math.fabs": (lambda x: math.fabs(x[0]), "wg.stack"),
    "math.fsum": (lambda x: math.fsum(x), "wg.stack"),
    "math.floor": (lambda x: math.floor(x[0]), "wg.stack"),
    "math in a map": (lambda x: list(map(math.exp, x)), "wg.stack"),
    "over two lines": (lambda x: math.sin(x[0]), "wg.stack"),
    "a scalar type": (lambda x: np.float64(x[0]), "wg.stack"),
    "np.array": (lambda x: np.array([x[0], x[1]]), "wg.stack"),
    "np.asarray": (lambda x: np.asarray(x), "wg.stack"),
    "np.asanyarray": (lambda x: np.asanyarray(x), "wg.stack"),
    "np.ascontiguousarray": (lambda x: np.ascontiguousarray(x), "wg.stack"),
    "np.fromiter": (lambda x: np.fromiter(x, float), "wg.stack"),
    "np.r_": (lambda x: np.r_[x[0], 1.0], "wg.stack"),
    "np.full": (lambda x: np.full(3, x[0]), "wg.stack"),
    "nested np.stack": (lambda x: np.stack([[x[0]], [x[1]]]), "wg.stack"),
    "element": (set_element, "wg.stack"),
    "part": (lambda x: np.zeros(3).__setitem__(slice(2), x), "wg.stack"),
    "numpy": (lambda x: x.numpy(), "wg.stack"),
    "array": (lambda x: x.array, "wg.stack"),
    "dlpack": (lambda x: np.from_dlpack(x), "wg.stack"),
    "tensor": (lambda x: wg.tensor(x), r"wg\.asarray\(x, copy=True\)"),
    "deepcopy": (lambda x: copy.deepcopy(x), r"x\.clone"),
    "pickle": (lambda x: pickle.dumps(x), r"x\.clone"),
}

TRANSFORMS: dict[str, Any] = {
    "grad": lambda f, x: wg.grad(f)(x),
    "value_and_grad": lambda f, x: wg.func.value_and_grad(f)(x),
    "vjp": lambda f, x: wg.vjp(f, x)[1](1.0),
    "jacrev": lambda f, x: wg.func.jacrev(f)(x),
    "jacfwd": lambda f, x: wg.func.jacfwd(f)(x),
    "jvp": lambda f, x: wg.jvp(f, (x,), (x,)),
    "linearize": lambda f, x: wg.func.linearize(f, x)[1](x),
    "hessian": lambda f, x: wg.hessian(f)(x),
    "hvp": lambda f, x: wg.func.hvp(f, (x,), (x,)),
    "grad of grad": lambda f, x: wg.grad(lambda y: wg.sum(wg.grad(f)(y)))(x),
    "checkpoint inside": lambda f, x: wg.grad(lambda y: wg.checkpoint(f, y))(x),
}


def refusal(error: BaseException) -> str:
    """The message, also where NumPy puts another error in front: which it does for elements."""
    return str(error if isinstance(error, RuntimeError) else error.__cause__ or error)


def refused(way: Any) -> Any:
    """A function of which a way out is a part."""

    def f(x: Any) -> Any:
        way(x * 2)
        return wg.sum(x**2)

    return f


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_no_transform_lets_a_number_go(transform: str, backend: Any) -> None:
    x = np.array([0.5, 0.25])
    with pytest.raises(RuntimeError, match=r"wg\.stack") as caught:
        TRANSFORMS[transform](refused(lambda y: math.exp(y[0])), x)
    assert f"{Path(__file__).name}, line " in str(caught.value)
    assert "math.exp(y[0])" in str(caught.value)
    assert "detach" not in str(caught.value)
    assert not following
    # Untracked values, and what decides a branch, are free.
    free = refused(lambda y: (float(wg.tensor(2.0)), bool(y[0] > 0), bool(y[0]), f"{y[0]:.2f}"))
    TRANSFORMS[transform](free, x)


@pytest.mark.whole
@pytest.mark.parametrize("mode", ["grad", "jvp"])
@pytest.mark.parametrize("name", ESCAPES)
def test_every_way_out_is_an_error_that_names_the_right_call(name: str, mode: str) -> None:
    way, instead = ESCAPES[name]
    with pytest.raises((RuntimeError, ValueError)) as caught:
        TRANSFORMS[mode](refused(way), np.array([0.5, 0.25]))
    assert "a transform differentiates" in refusal(caught.value)
    assert Path(__file__).name in refusal(caught.value)
    with pytest.raises(RuntimeError, match=instead):
        raise RuntimeError(refusal(caught.value))
    if name != "int":  # whose derivative is zero
        assert "detach" not in refusal(caught.value)


@pytest.mark.whole
# A recording stops before it pickles: a replay would not write again.
@pytest.mark.parametrize("name", sorted(ESCAPES.keys() - {"pickle", "tensor"}))
def test_a_recording_refuses_the_same(name: str) -> None:
    way, instead = ESCAPES[name]
    with pytest.raises((RuntimeError, ValueError)) as caught:
        wg.compile(refused(way), strict=True)(wg.tensor([0.5, 0.25]))
    assert "compiled" in refusal(caught.value)
    with pytest.raises(RuntimeError, match=instead):
        raise RuntimeError(refusal(caught.value))


def test_what_a_transform_does_not_follow_is_free() -> None:
    constant, leaf = wg.tensor(3.0), wg.tensor(2.0, requires_grad=True)

    def f(x: Any) -> Any:
        inside = leaf * 5
        with wg.no_grad():
            stopped = x * 2
            assert float(np.float64(x.item())) == x.tolist() == 2
        return x * constant.item() * float(x.detach()) * inside.item() * stopped.item()

    # 3 · 2 · 10 · 4 are constants.
    assert wg.grad(f)(2.0) == 3 * 2 * 10 * 4
    assert wg.jvp(f, (2.0,), (1.0,))[1] == 3 * 2 * 10 * 4


def test_an_outer_transforms_value_is_followed_inside_an_inner_one() -> None:
    def outer(x: Any) -> Any:
        return wg.grad(lambda y: y * float(x))(2.0)

    with pytest.raises(RuntimeError, match="a transform differentiates"):
        wg.grad(outer)(3.0)
    with pytest.raises(RuntimeError, match="a transform differentiates"):
        wg.jvp(outer, (3.0,), (1.0,))


def test_values_are_followed_into_other_threads_and_no_others_are() -> None:
    caught: list[Exception] = []
    unrelated: list[float] = []

    def read(x: Any) -> None:
        try:
            float(x)
        except RuntimeError as error:
            caught.append(error)

    def f(x: Any) -> Any:
        other = wg.tensor(2.0, requires_grad=True) * 3
        for work in (lambda: read(x * 2), lambda: unrelated.append(other.item())):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        return x * x

    assert wg.grad(f)(3.0) == 6
    assert len(caught) == 1
    assert unrelated == [6.0]


def test_what_a_custom_rule_computes_is_followed_to_the_next_derivative() -> None:
    @wg.func.custom_vjp
    def cube(x: Any) -> Any:
        return x**3

    cube.defvjp(lambda x: (x**3, x.item()), lambda x, g: (g * 3 * x**2,))
    assert wg.grad(cube)(2.0) == 12
    with pytest.raises(RuntimeError, match="a transform differentiates"):
        wg.grad(wg.grad(cube))(2.0)  # which would be 0


def test_a_function_computes_off_the_tape() -> None:
    def square(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return wg.asarray(x.item() ** 2, dtype=wg.float64)

    def backward(ctx: Any, g: Any) -> Any:
        return g * 2 * ctx.saved_tensors[0]

    assert wg.grad(operation(square, backward))(3.0) == 6


# -- outside of transforms -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (float, 2.0),
        (complex, 2 + 0j),
        (math.exp, math.exp(2.0)),
        (np.float64, 2.0),
        (lambda x: set_element([x])[0], 2.0),
    ],
)
def test_scalars_of_tracked_tensors_warn_as_in_pytorch(
    read: Any, expected: Any, backend: Any
) -> None:
    for x in (wg.tensor(2.0, requires_grad=True), wg.tensor(1.0, requires_grad=True) * 2):
        with pytest.warns(UserWarning, match=SCALAR) as warned:
            assert read(x) == expected
        assert [Path(one.filename).name for one in warned] == [Path(__file__).name]


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.item(),
        lambda x: x.tolist(),
        lambda x: int(x),
        lambda x: bool(x),
        lambda x: f"{x:.3f}",
        lambda x: x > 1 and x == 2,
        lambda x: float(x.detach()),
        lambda x: float(wg.astype(x, wg.int64)),
        wg.no_grad(lambda x: float(x)),
    ],
)
def test_what_pytorch_lets_pass_passes(read: Any) -> None:
    x = wg.tensor(2.0, requires_grad=True) * 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(x) == read(x.detach())


def test_arrays_of_tracked_tensors_are_pytorchs_error() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    for read in (np.asarray, lambda y: np.array([y[0], y[1]]), lambda y: y.numpy()):
        with pytest.raises(RuntimeError, match="Can't call numpy"):
            read(x)
    np.testing.assert_array_equal(np.array([x.detach()[0], 3.0]), [1, 3])


def test_the_gradient_of_a_result_warns() -> None:
    x = wg.tensor(2.0, requires_grad=True)
    y, kept = x * 2, x * 3
    kept.retain_grad()
    with pytest.warns(UserWarning, match="is not a leaf Tensor is being accessed") as warned:
        assert y.grad is None
    assert Path(warned[0].filename).name == Path(__file__).name
    (y * kept).backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kept.grad.item() == 4
        assert x.grad.item() == 24
        assert wg.tensor(1.0).grad is None
        assert wg.tensor(1.0, requires_grad=True).grad is None
        wg.nn.utils.clip_grad_norm_([x, y], 1.0)
    y.grad = wg.tensor(1.0)
    assert y.grad.item() == 1


def test_copies_of_a_library_that_computes_with_them_stay_tracked() -> None:
    held: dict[str, Any] = {"__name__": "xarray.core.variable", "deepcopy": copy.deepcopy}
    exec("def doubled(x):\n    return deepcopy(x) * 2", held)
    doubled = held["doubled"]
    x = wg.asarray([1.0, 2.0], requires_grad=True)
    doubled(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2]
    assert wg.grad(lambda x: doubled(x * 3).sum())(x.detach()).tolist() == [6, 6]
    assert wg.jvp(doubled, (x.detach(),), (wg.ones(2),))[1].tolist() == [2, 2]


def test_what_is_shared_is_looked_at_once() -> None:
    """Of sums of sums there are as many paths as 2 to the power of their number."""

    def function(x: Any) -> Any:
        total = wg.ones((), dtype="float64", requires_grad=True)
        for _ in range(60):
            total = total + total
        return x * float(total)

    with pytest.warns(UserWarning, match="to a scalar"):
        assert wg.grad(function)(1.0) == 2.0**60


def test_a_refusal_that_a_library_in_c_replaces_is_raised_itself():
    def elements(p):
        out = np.zeros(2)
        for i in range(2):
            out[i] = p[i] ** 2
        return out.sum()

    def callback(p):
        brentq = pytest.importorskip("scipy.optimize").brentq
        return brentq(lambda t: t - p[0], 0.0, 4.0) * p[0]

    read = operation(lambda ctx, x: x * 2, lambda ctx, g: elements(g))

    def again(p):
        return wg.sum(wg.grad(lambda x: wg.sum(read(x) * x))(p))

    x, wrong = np.ones(2), []
    for function in (elements, callback, again):
        for transform in (
            wg.grad(function),
            wg.value_and_grad(function),
            wg.jacobian(function),
            wg.hessian(function),
            lambda x, function=function: wg.vjp(function, x),
            lambda x, function=function: wg.optimize.minimize(function, x, method="BFGS"),
        ):
            with pytest.raises(Exception) as found:  # noqa: PT011 -- of which class is compared
                transform(x)
            if found.type is not RuntimeError or "a transform differentiates" not in str(
                found.value
            ):
                wrong.append((function.__name__, found.value))
    assert not wrong

    def of_its_own(p):
        try:
            return float(p[0])
        except RuntimeError as error:
            raise KeyError("the program's own") from error

    with pytest.raises(KeyError):
        wg.grad(of_its_own)(x)


def test_a_users_deep_copy_is_a_leaf_also_where_a_library_calls() -> None:
    """And a library's own, on the way to a result, stays tracked."""
    library: dict[str, Any] = {"__name__": "xarray.core"}
    exec("def apply(function, x):\n    return function(x)", library)
    x = wg.ones(2, requires_grad=True)
    assert library["apply"](lambda x: copy.deepcopy(x), x).is_leaf
    assert not library["apply"](copy.deepcopy, x).is_leaf
