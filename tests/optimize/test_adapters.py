"""SciPy's optimisers, with derivatives from the tape."""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import Cube
from tests.scripts import python
from wengert import optimize
from wengert.backends import Backend
from wengert.compiler import making

scipy_optimize = pytest.importorskip("scipy.optimize")

GRADIENT = ["CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP"]
HESSIAN = ["Newton-CG", "trust-ncg", "trust-krylov", "trust-constr", "dogleg", "trust-exact"]
VALUES = ["Nelder-Mead", "Powell", "COBYLA", "COBYQA"]


def bowl(x: Any) -> Any:
    """A convex function with its minimum, 0, at (1, 2, 3)."""
    d = x - np.asarray([1.0, 2.0, 3.0])
    return np.sum(np.cosh(d)) - 3 + np.sum(d) ** 2


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize("method", [None, *GRADIENT, *HESSIAN, *VALUES])
def test_every_method_finds_the_minimum(method: str | None) -> None:
    # What bounds the gradient bounds the distance, for the curvature is 1 or more; what bounds the
    # changes of the value has to be its square.
    of_values = method in ("L-BFGS-B", "SLSQP", "TNC")
    tol = 1e-12 if of_values else 1e-6
    found = optimize.minimize(bowl, [0.5, 1.0, 2.0], method=method, tol=tol)
    assert found.success
    assert type(found.x) is np.ndarray
    # The function is flat to rounding within about the square root of epsilon.
    np.testing.assert_allclose(found.x, [1, 2, 3], atol=2e-4 if method in VALUES else 1e-5)
    assert type(found.fun) in (float, np.float64)


@pytest.mark.parametrize("method", ["BFGS", "trust-exact", "trust-ncg", "Nelder-Mead"])
def test_compiled_takes_the_same_steps(
    method: str, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend.name == "dask":
        pytest.skip("each evaluation is a graph of its own there")
    centre = wg.asarray([1.0, 2.0, 3.0], dtype=wg.float64)

    def fun(p: dict[str, Any]) -> Any:
        d = p["x"] - centre
        return wg.sum(wg.exp(d) + wg.exp(-d)) + p["y"] ** 2

    start = {"x": wg.asarray([0.5, 1.0, 2.0], dtype=wg.float64), "y": 0.3}
    made: list[Any] = []

    def remembered(function: Any, make: Any = making.compile) -> Any:
        made.append(make(function))
        return made[-1]

    monkeypatch.setattr(making, "compile", remembered)
    eager = optimize.minimize(fun, start, method=method)
    assert not made
    found = optimize.minimize(fun, start, method=method, compile=True)
    assert made
    for each in made:
        assert each.report.recordings <= 1
        assert "ran eagerly" not in str(each.report)
    assert found.nit == eager.nit
    for name in ("x", "y"):
        ours, theirs = [np.asarray(wg.asarray(each.x[name])) for each in (found, eager)]
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_compiled_fits_and_roots(mode: str) -> None:
    t = np.linspace(0, 1, 9)
    data = 3 * np.exp(-2 * t)

    def residuals(p: dict[str, Any]) -> Any:
        return p["height"] * np.exp(-p["rate"] * t) - data

    start = {"height": 1.0, "rate": 1.0}
    found = optimize.least_squares(residuals, start, jac=mode, compile=True)
    assert (found.x["height"], found.x["rate"]) == pytest.approx((3, 2), rel=1e-6)
    assert optimize.root(lambda x: wg.cos(x) - x, 1.0, compile=True).x == pytest.approx(
        0.7390851332
    )


def test_compiled_constraints() -> None:
    limits = {"type": "ineq", "fun": lambda x: 1 - wg.sum(x**2)}
    found = [
        optimize.minimize(
            wg.sum, [0.1, 0.2], method="SLSQP", constraints=limits, tol=1e-12, compile=compiled
        )
        for compiled in (False, True)
    ]
    np.testing.assert_allclose(found[0].x, [-(0.5**0.5)] * 2, rtol=1e-5)
    np.testing.assert_allclose(found[1].x, found[0].x, rtol=1e-12)


def test_the_gradient_and_the_hessian_are_what_scipy_gets() -> None:
    given = {}

    def method(fun: Any, x0: Any, jac: Any, hess: Any, hessp: Any, **rest: Any) -> Any:
        given.update(value=fun(x0), jac=jac(x0), hess=hess, hessp=hessp)
        if hess is not None:
            given["hess"] = hess(x0)
        if hessp is not None:
            given["hessp"] = np.stack([hessp(x0, row) for row in np.eye(len(x0))])
        return scipy_optimize.OptimizeResult(x=x0)

    x = np.asarray([1.2, -0.7, 0.4, 2.0])
    hessian = scipy_optimize.rosen_hess(x)
    optimize.minimize(rosenbrock, x, method=method)
    assert given["value"] == pytest.approx(scipy_optimize.rosen(x), rel=1e-14)
    np.testing.assert_allclose(given["jac"], scipy_optimize.rosen_der(x), rtol=1e-13)
    assert given["hess"] is given["hessp"] is None
    optimize.minimize(rosenbrock, x, method=method, hess="product")
    np.testing.assert_allclose(given["hessp"], hessian, rtol=1e-13, atol=1e-11)
    optimize.minimize(rosenbrock, x, method=method, hess="dense")
    np.testing.assert_allclose(given["hess"], hessian, rtol=1e-13, atol=1e-11)


def test_a_hessian_of_operations_without_forward_derivatives() -> None:
    found = optimize.minimize(
        lambda x: wg.sum(Cube.apply(x) ** 2 + (x - 1) ** 2), np.ones(3), method="trust-exact"
    )
    root = np.roots([6, 0, 0, 0, 2, -2])  # of the derivative, 6 x⁵ + 2 (x - 1)
    expected = float(root[np.isreal(root)][0].real)
    np.testing.assert_allclose(found.x, expected, atol=1e-6)


def test_second_derivatives_take_fewer_steps() -> None:
    x0 = np.full(10, -1.0)
    first = optimize.minimize(rosenbrock, x0, method="BFGS")
    second = optimize.minimize(rosenbrock, x0, method="trust-exact")
    dense = optimize.minimize(rosenbrock, x0, method="Newton-CG", hess="dense")
    product = optimize.minimize(rosenbrock, x0, method="Newton-CG")
    assert second.nit < first.nit
    assert second.nhev > 0
    for found in (first, second):
        np.testing.assert_allclose(found.x, 1, atol=1e-4)
    np.testing.assert_allclose(dense.x, product.x, atol=1e-5)


def test_the_function_runs_once_for_value_and_gradient_and_for_all_products() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x)
        return rosenbrock(x)

    found = optimize.minimize(f, np.zeros(6), method="L-BFGS-B")
    assert len(calls) == found.nfev
    assert all(isinstance(x, wg.Tensor) and x.shape == (6,) for x in calls)
    calls.clear()
    found = optimize.minimize(f, np.full(6, -1.0), method="trust-ncg")
    assert found.nhev > found.nit
    assert len(calls) <= found.nfev + found.njev + found.nit + 1


@dataclass
class Curve:
    height: Any
    rates: list[Any]


def model(curve: Curve, t: Any) -> Any:
    return curve.height * wg.exp(-curve.rates[0] * t) + curve.rates[1] * t


def test_trees_in_kind(backend: Backend) -> None:
    t = wg.linspace(0, 1, 8, dtype=wg.float64)
    target = model(Curve(3.0, [2.0, 0.5]), t)
    array = backend.from_numpy(np.asarray([1.0]))
    x0 = Curve(1.0, [wg.ones(1, dtype=wg.float64, requires_grad=True), array])
    found = optimize.minimize(lambda c, t: wg.sum((model(c, t) - target) ** 2), x0, t, tol=1e-9)
    assert found.success
    for tree in (found.x, found.jac):
        assert type(tree) is Curve
        assert type(tree.height) is float
        assert type(tree.rates[0]) is wg.Tensor
        assert not tree.rates[0].requires_grad
        assert type(tree.rates[1]) is type(array)
    assert found.x.height == pytest.approx(3, abs=1e-4)
    assert float(found.x.rates[0]) == pytest.approx(2, abs=1e-4)
    assert float(backend.to_numpy(found.x.rates[1])[0]) == pytest.approx(0.5, abs=1e-4)
    assert x0.rates[0].grad is None
    assert x0.rates[0].tolist() == [1]


@pytest.mark.oracle
def test_backends_and_precisions_in_one_tree() -> None:
    torch = pytest.importorskip("torch")
    seen = set()

    def residuals(p: Any) -> dict[str, Any]:
        seen.add((p["w"].dtype, p["b"].dtype, p["w"].backend.name, p["b"].backend.name))
        w = wg.astype(p["w"], wg.float64).to_backend("numpy")
        return {"w": 2 * p["w"] - 1, "b": p["b"] + w - np.asarray([1.0, 2.0])}

    def loss(p: Any) -> Any:
        found = residuals(p)
        return wg.sum(found["b"] ** 2) + wg.sum(found["w"] ** 2).to_backend("numpy")

    x0 = {"w": torch.zeros(2), "b": np.zeros(2)}
    found = [
        optimize.minimize(loss, x0, method="BFGS", tol=1e-4),
        optimize.minimize(loss, x0, method="trust-exact"),
        *(optimize.least_squares(residuals, x0, jac=jac) for jac in ("forward", "reverse")),
    ]
    for one in found:
        assert one.x["w"].dtype == torch.float32
        np.testing.assert_allclose(one.x["w"].numpy(), 0.5, atol=1e-4)
        np.testing.assert_allclose(one.x["b"], [0.5, 1.5], atol=1e-4)
    assert seen == {(wg.float32, wg.float64, "torch", "numpy")}


def test_complex_parameters() -> None:
    target = np.asarray([1 + 2j, -3j])
    weights = np.asarray([[1.0, 0.5j], [0.2, 2.0]])

    def f(z: Any) -> Any:
        return wg.sum(wg.abs(weights @ (z - target)) ** 2)

    for method in ("BFGS", "trust-exact", "trust-ncg"):
        found = optimize.minimize(f, np.zeros(2, dtype=complex), method=method, tol=1e-7)
        np.testing.assert_allclose(found.x, target, atol=1e-6)
        assert found.x.dtype == np.complex128
        assert found.jac.shape == (2,)
    for jac in ("forward", "reverse"):
        fit = optimize.least_squares(
            lambda z: weights @ (z - target), np.zeros(2, complex), jac=jac
        )
        np.testing.assert_allclose(fit.x, target, atol=1e-12)
    fit = optimize.least_squares(lambda z: weights @ (z - target), np.zeros(2, dtype=complex))
    np.testing.assert_allclose(fit.x, target, atol=1e-12)
    assert fit.jac.shape == (4, 4)
    solved = optimize.root(lambda z: z**2 - target, np.asarray([1 + 1j, 1 - 1j]), tol=1e-13)
    np.testing.assert_allclose(solved.x**2, target, rtol=1e-12)


def test_numbers_and_integers_to_begin_with() -> None:
    for start in (5.0, 5):
        found = optimize.minimize(lambda x: (x - 2) ** 2, start)
        assert type(found.x) is float
        assert found.x == pytest.approx(2)
    assert optimize.minimize(bowl, [0, 0, 0]).x.dtype == np.float64
    assert optimize.minimize(bowl, (0, 1, 0)).x.shape == (3,)
    for dtype in ("int64", "uint8"):
        assert optimize.minimize(bowl, np.zeros(3, dtype=dtype)).x.dtype == np.float64
    matrix = optimize.minimize(lambda x: wg.sum((x - 1) ** 2), [[0, 0], [1, 5.0]])
    np.testing.assert_allclose(matrix.x, np.ones((2, 2)), atol=1e-6)


def test_bounds_in_the_form_of_the_tree() -> None:
    def f(p: Any) -> Any:
        return wg.sum((p["a"] - 3) ** 2) + (p["b"][0] + 3) ** 2 + (p["b"][1] - 1) ** 2

    x0 = {"a": np.zeros((2, 2)), "b": [0.0, 0.0]}
    upper = np.asarray([[1.0, 2.0], [np.inf, 4.0]])
    bounds = {"a": (None, upper), "b": [(-1, None), None]}
    found = optimize.minimize(f, x0, method="L-BFGS-B", bounds=bounds)
    np.testing.assert_allclose(found.x["a"], [[1, 2], [3, 3]], atol=1e-6)
    assert found.x["b"] == pytest.approx([-1, 1], abs=1e-6)
    flat = scipy_optimize.Bounds([-1] * 6, [1, 2, np.inf, 4, 9, 9])
    again = optimize.minimize(f, x0, method="L-BFGS-B", bounds=flat)
    np.testing.assert_allclose(again.x["a"], found.x["a"], atol=1e-6)
    pairs = [(None, 0.5), (0, 1), (None, None)]  # of one array: SciPy's own form
    np.testing.assert_allclose(
        optimize.minimize(bowl, np.zeros(3), method="TNC", bounds=pairs).x[:2] <= [0.5, 1], True
    )
    fit = optimize.least_squares(
        lambda p: p["a"] - 3, {"a": np.zeros((2, 2))}, bounds={"a": (-1, upper)}
    )
    np.testing.assert_allclose(fit.x["a"], [[1, 2], [3, 3]], atol=1e-4)


def test_bounds_beside_complex_numbers_without() -> None:
    def f(p: Any) -> Any:
        return wg.abs(p["z"] - (2 + 3j)) ** 2 + (p["x"] - 5) ** 2

    bounds = {"z": None, "x": (None, 2)}
    found = optimize.minimize(f, {"z": 0j, "x": 0.0}, method="L-BFGS-B", bounds=bounds)
    assert found.x["z"] == pytest.approx(2 + 3j, abs=1e-6)
    assert found.x["x"] == pytest.approx(2, abs=1e-6)


def test_constraints_take_arguments() -> None:
    constraint = {"type": "eq", "fun": lambda x, total: wg.sum(x) - total, "args": (4.5,)}
    found = optimize.minimize(bowl, np.zeros(3), method="SLSQP", constraints=constraint)
    assert np.sum(found.x) == pytest.approx(4.5)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"a": (0, 1)}, "bounds should have the structure"),
        ({"a": (0, 1), "b": 3}, r"bounds\['b'\] should be a pair \(low, high\) or None, not 3"),
        ({"a": (np.zeros(3), 1), "b": None}, r"bounds\['a'\] of shape \(3,\) don't fit .* \(2,\)"),
        ([(0, 1)], "bounds should be a dict"),
    ],
)
def test_bounds_that_do_not_fit(bounds: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        optimize.minimize(lambda p: p["b"], {"a": np.zeros(2), "b": 1.0}, bounds=bounds)
    with pytest.raises(ValueError, match=r"bounds\[0\] are for a complex parameter"):
        optimize.minimize(lambda p: wg.abs(p[0]), [np.ones(1, dtype=complex)], bounds=[(0, 1)])


@pytest.mark.parametrize(
    ("method", "form"),
    [("SLSQP", "dict"), ("COBYLA", "object"), ("COBYQA", "object"), ("trust-constr", "object")],
)
def test_constraints_are_functions_of_the_tree(method: str, form: str) -> None:
    """The point of the unit circle that is nearest to (2, 1)."""

    def distance(p: Any) -> Any:
        return (p["x"] - 2) ** 2 + (p["y"] - 1) ** 2

    def inside(p: Any, radius: float = 1.0) -> Any:
        return radius - p["x"] ** 2 - p["y"] ** 2

    if form == "dict":
        constraints: Any = {"type": "ineq", "fun": inside, "args": (1.0,)}
    else:
        constraints = [scipy_optimize.NonlinearConstraint(inside, 0, np.inf)]
    found = optimize.minimize(
        distance, {"x": 0.1, "y": 0.1}, method=method, constraints=constraints, tol=1e-8
    )
    expected = np.asarray([2, 1]) / np.sqrt(5)
    assert [found.x["x"], found.x["y"]] == pytest.approx(expected.tolist(), abs=1e-4)
    linear = scipy_optimize.LinearConstraint([[1, 1]], -np.inf, 0)
    found = optimize.minimize(distance, {"x": 0.0, "y": -1.0}, method=method, constraints=linear)
    assert [found.x["x"], found.x["y"]] == pytest.approx([0.5, -0.5], abs=1e-3)


def test_jacobians_that_constraints_bring_are_used() -> None:
    calls = []

    def jac(vector: Any) -> Any:
        calls.append(vector)
        return -2 * vector

    constraint = {"type": "ineq", "fun": lambda p: 1 - wg.sum(p**2), "jac": jac}
    found = optimize.minimize(bowl, np.zeros(3), method="SLSQP", constraints=[constraint])
    assert calls
    assert np.sum(found.x**2) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "trust-constr", "Nelder-Mead"])
def test_callbacks_see_the_tree(method: str) -> None:
    seen: list[Any] = []
    f = lambda p: wg.sum(wg.cosh(p["a"] - 1)) + p["b"] ** 2
    for callback in (
        lambda x, *rest: seen.append(x),
        lambda intermediate_result: seen.append(intermediate_result.x),
    ):
        optimize.minimize(f, {"a": np.zeros(2), "b": 1.0}, method=method, callback=callback)
    assert len(seen) > 4
    assert all(set(x) == {"a", "b"} and type(x["b"]) is float for x in seen)
    assert seen[-1]["a"].tolist() == pytest.approx([1, 1], abs=1e-3)


def test_a_callback_can_stop() -> None:
    def stop(intermediate_result: Any) -> None:
        raise StopIteration

    assert optimize.minimize(rosenbrock, np.zeros(5), method="BFGS", callback=stop).nit == 1


@pytest.mark.parametrize("solve", [optimize.least_squares, optimize.root])
def test_callbacks_of_systems_see_the_tree(solve: Any) -> None:
    seen: list[Any] = []

    def residuals(p: Any) -> Any:
        return wg.stack([p["a"] ** 2 - 2, p["a"] * p["b"] - 1])

    def note(found: Any, *rest: Any) -> None:
        seen.append(getattr(found, "x", found))

    options: dict[str, Any] = {"method": "krylov"} if solve is optimize.root else {}
    found = solve(residuals, {"a": 1.0, "b": 1.0}, callback=note, **options)
    assert found.x["a"] == pytest.approx(2**0.5, rel=1e-4)
    assert seen
    assert all(set(x) == {"a", "b"} for x in seen)


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm", "hybr"])
def test_systems_are_solved_with_jacobians_of_the_tape(method: str) -> None:
    points = []

    def residuals(x: Any) -> Any:
        points.append(x)
        return wg.concat([10 * (x[1:] - x[:-1] ** 2), 1 - x[:1]])

    solve = optimize.root if method == "hybr" else optimize.least_squares
    found = solve(residuals, np.full(5, -0.5), method=method)
    np.testing.assert_allclose(found.x, 1, atol=1e-6)
    # Differences would take five more calls for each Jacobian; SciPy makes one to begin with.
    assert len(points) <= found.nfev + found.njev + 1


@pytest.mark.parametrize("jac", ["auto", "forward", "reverse"])
@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares(jac: str, method: str) -> None:
    t = np.linspace(0, 2, 12)
    data = 2.5 * np.exp(-1.3 * t) + 0.5

    def residuals(p: dict[str, Any], t: Any, *, weight: float) -> Any:
        fit = p["height"] * np.exp(-p["rate"] * t) + p["offset"]
        return {"first": weight * (fit - data)[:5], "rest": wg.reshape((fit - data)[5:-1], (2, 3))}

    found = optimize.least_squares(
        residuals,
        {"height": 1.0, "rate": 1.0, "offset": 0.0},
        jac=jac,
        method=method,
        args=(t,),
        kwargs={"weight": 2.0},
        xtol=1e-12,
    )
    assert found.success
    assert found.x == pytest.approx({"height": 2.5, "rate": 1.3, "offset": 0.5}, rel=1e-9)
    decay = np.exp(-1.3 * t)
    weights = np.where(np.arange(12) < 5, 2.0, 1.0)
    expected = (weights * np.stack([decay, np.ones(12), -2.5 * t * decay])).T[:11]
    np.testing.assert_allclose(found.jac, expected, rtol=1e-7, atol=1e-9)  # at the found point
    assert found.fun.shape == (11,)
    assert set(found.grad) == {"height", "rate", "offset"}


def test_least_squares_agrees_with_differences_and_takes_a_loss() -> None:
    t = np.linspace(0, 2, 12)
    data = 2.5 * np.exp(-1.3 * t)
    data[3] += 5  # an outlier

    def residuals(x: Any) -> Any:
        return x[0] * np.exp(-x[1] * t) - data

    options: Any = {"loss": "soft_l1", "f_scale": 0.1, "xtol": 1e-12, "ftol": 1e-14, "gtol": 1e-12}
    found = optimize.least_squares(residuals, [1.0, 1.0], **options)
    expected = scipy_optimize.least_squares(residuals, [1.0, 1.0], jac="3-point", **options)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-6)
    np.testing.assert_allclose(found.x, [2.5, 1.3], rtol=0.03)


@pytest.mark.parametrize("method", ["hybr", "lm", "broyden1", "krylov", "df-sane"])
def test_root(method: str) -> None:
    def f(p: Any, c: float) -> Any:
        return {"u": p["x"] + p["y"] * 0.1 - c, "v": p["y"] + 0.1 * wg.sin(p["x"])}

    found = optimize.root(f, {"x": np.zeros(2), "y": wg.zeros(2, dtype=wg.float64)}, 1.0, method)
    assert found.success
    x, y = found.x["x"], found.x["y"].numpy()
    np.testing.assert_allclose(x + 0.1 * y, 1, atol=1e-5)
    np.testing.assert_allclose(y + 0.1 * np.sin(x), 0, atol=1e-5)
    if method in ("hybr", "lm"):
        assert found.njev > 0


def test_models_are_not_touched() -> None:
    """What the function closes over keeps its ``.grad``, and no graph is built beyond it."""
    w = wg.ones(3, dtype=wg.float64, requires_grad=True)
    found = optimize.minimize(lambda x: wg.sum((w * x - 2) ** 2), np.zeros(3))
    np.testing.assert_allclose(found.x, 2, atol=1e-6)
    assert type(found.x) is np.ndarray
    assert w.grad is None
    assert wg.is_grad_enabled()


# -- misuse ----------------------------------------------------------------------------------------


def test_functions_that_return_no_scalar() -> None:
    for method in ("BFGS", "Nelder-Mead"):
        with pytest.raises(ValueError, match=r"functions that return a scalar, .* shape \(3,\)"):
            optimize.minimize(lambda x: x * 2, np.ones(3), method=method)


def test_results_and_parameters_without_derivatives() -> None:
    no = {"type": "eq", "fun": lambda _: "no"}
    for call, message in (
        (
            lambda: optimize.minimize(lambda x: 3.0, np.ones(3)),
            "is a float, and should be a Tensor",
        ),
        (lambda: optimize.least_squares(lambda x: 3.0, np.ones(3)), "to least_squares is a float"),
        (lambda: optimize.minimize(lambda x: x, {"n": "text"}), r"argument 0\['n'\] is a str"),
        (lambda: optimize.minimize(lambda x: x, np.ones(2) > 0), "dtype bool"),
        (
            lambda: optimize.minimize(bowl, np.zeros(3), method="SLSQP", constraints=no),
            "the function given to constraints is a str",
        ),
    ):
        with pytest.raises(TypeError, match=message):
            call()
    for adapter in (optimize.minimize, optimize.least_squares, optimize.root):
        name = adapter.__name__
        with pytest.raises(TypeError, match=f"{name} takes a function, not int"):
            adapter(3, np.ones(3))
        with pytest.raises(ValueError, match=f"{name} was given no parameters"):
            adapter(lambda x: x, {})


def test_hessians_that_a_method_does_not_use() -> None:
    for method, hess, message in [
        ("BFGS", "dense", "'BFGS' doesn't use a Hessian of the form 'dense'"),
        (None, "product", "None doesn't use a Hessian"),
        ("trust-exact", "product", "'trust-exact' doesn't use a Hessian of the form 'product'"),
        ("trust-ncg", "exact", "hess should be"),
        ("trust-exact", None, "Hessian matrix is required"),
    ]:
        with pytest.raises(ValueError, match=message):
            optimize.minimize(bowl, np.zeros(3), method=method, hess=hess)
    with pytest.raises(ValueError, match='jac should be "auto", "forward" or "reverse"'):
        optimize.least_squares(bowl, np.zeros(3), jac="2-point")


def test_hessian_approximations_are_passed_on() -> None:
    options: Any = {"method": "trust-constr", "hess": scipy_optimize.BFGS(), "tol": 1e-8}
    found = optimize.minimize(bowl, np.zeros(3), **options)
    np.testing.assert_allclose(found.x, [1, 2, 3], atol=1e-5)


@pytest.mark.slow
def test_scipy_is_imported_when_it_is_used() -> None:
    python(
        "-c", "import sys, wengert as wg; wg.optimize.minimize; assert 'scipy' not in sys.modules"
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("minimize", {"method": "Nelder-Mead", "tol": 0.25, "options": {"maxiter": 3}}),
        ("root", {"method": "lm", "tol": 0.25, "options": {"maxiter": 3}}),
        ("least_squares", {"method": "lm", "ftol": 0.25, "max_nfev": 3}),
    ],
)
def test_what_is_scipy_s_is_handed_on(
    monkeypatch: pytest.MonkeyPatch, name: str, options: dict[str, Any]
) -> None:
    class Called(Exception):
        pass

    def called(*args: Any, **given: Any) -> Any:
        assert options.items() <= given.items()
        raise Called

    monkeypatch.setattr(f"scipy.optimize.{name}", called)
    with pytest.raises(Called):
        getattr(wg.optimize, name)(lambda x: wg.sum(x**2), np.ones(1), **options)


@pytest.mark.parametrize(("method", "name"), [("trust-constr", "grad"), ("BFGS", "jac")])
def test_the_gradient_at_the_end_is_a_tree(method: str, name: str) -> None:
    start = {"a": np.ones(2), "b": 3.0}
    found = wg.optimize.minimize(
        lambda x: wg.sum(x["a"] ** 2) + (x["b"] - 1) ** 2, start, method=method
    )
    gradient = getattr(found, name)
    assert gradient.keys() == start.keys()
    assert gradient["a"].shape == (2,)
    np.testing.assert_allclose([*gradient["a"], gradient["b"]], 0, atol=1e-4)


def test_without_scipy_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    for name in ("minimize", "least_squares", "root"):
        told = rf"^wengert.optimize.{name} needs .*wengert\[scipy\]$"
        with pytest.raises(ImportError, match=told):
            getattr(optimize, name)(lambda x: x * x, wg.ones(1))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_slow_eager_fit_is_told_of_compiling_once(
    compiled: bool, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setattr(
        "wengert.optimize.objectives.perf_counter", iter(range(0, 1000, 6)).__next__
    )

    start, options = np.full(20, -1.0), {"maxiter": 150}
    found = optimize.minimize(rosenbrock, start, method="CG", compile=compiled, options=options)
    assert found.nfev > 200
    assert ["wg.compile" in str(one.message) for one in recwarn] == [True] * (not compiled)
