"""What a function of real numbers gives for complex ones is an error, or has right derivatives."""

import re
import warnings
from typing import Any

import numpy as np
import pytest

import wengert as wg
from backend_check.calls import FUNCTIONS, arguments, results, split_arguments
from wengert.backends import Backend
from wengert.testing import gradcheck, gradgradcheck

REAL = sorted(
    name
    for name, function in FUNCTIONS.items()
    if not name.startswith(("init.", "random.", "nn.", "x.", "optim."))
    and re.search(r"\b[Rr]eal (floating|numeric)", function.__doc__ or "")
)
#: Options beside the calls that the table has.
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "gelu": [{"approximate": "none"}, {"approximate": "tanh"}],
    "F.elu": [{"alpha": 1.0}, {"alpha": 0.7}],
}


def turned(x: Any) -> Any:
    """A floating array as a complex Tensor off the axes, with both signs of the real part."""
    if isinstance(x, list):
        return [turned(part) for part in x]
    if not (isinstance(x, np.ndarray) and x.dtype.kind == "f"):
        return x
    signs = np.where(np.arange(x.size) % 2, -1, 1).reshape(x.shape)
    return wg.asarray(np.abs(x) * signs * (1 + 0.4j)).requires_grad_(True)


@pytest.mark.parametrize(
    ("name", "options"), [(name, each) for name in REAL for each in OPTIONS.get(name, [{}])]
)
def test_complex_numbers(name: str, options: dict[str, Any]) -> None:
    with wg.use_backend("numpy"):
        args, kwargs = split_arguments(name, {**arguments(name), **options})
        inputs = [turned(x) for x in args]
        named = {key: turned(x) for key, x in kwargs.items()}
        tensors = [x for x in (*inputs, *named.values()) if isinstance(x, wg.Tensor)]

        def f(*given: Any) -> Any:
            left = iter(given)
            by_place = [next(left) if isinstance(x, wg.Tensor) else x for x in inputs]
            by_name = {k: next(left) if isinstance(x, wg.Tensor) else x for k, x in named.items()}
            return results(FUNCTIONS[name](*by_place, **by_name))

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = f(*tensors)
        except (TypeError, ValueError) as error:
            if "complex128" not in str(error):  # it refuses something else
                raise
            return
        if any(x.requires_grad for x in made):
            gradcheck(f, tensors, check_forward_ad=True)
            gradgradcheck(f, tensors)


def test_second_derivatives_of_a_modulus_are_those_of_hypot(backend: Backend) -> None:
    """Also where the parts have different scales: 1e-320 is a square, and no difference of ones."""
    for point in ([1e-160, 1.0], [1.0, 1e-9], [3.0, -4.0], [1e150, -1e160]):
        t = wg.asarray(point, dtype="float64")
        right = wg.hessian(lambda t: wg.hypot(t[0], t[1]))(t)
        for found in (
            wg.hessian(lambda t: wg.abs(t[0] + 1j * t[1]))(t),
            wg.func.jacfwd(wg.func.jacfwd(lambda t: wg.abs(t[0] + 1j * t[1])))(t),
        ):
            np.testing.assert_allclose(found.numpy(), right.numpy(), rtol=1e-12)


def test_a_sign_turns_only_at_right_angles(backend: Backend) -> None:
    """By cos and sin of the angle a: d Re = sin(a)^2 / r dx - sin(a) cos(a) / r dy."""
    for x, y in ((1.0, 1e-9), (1e-9, 1.0), (3.0, -4.0)):
        t = wg.asarray([x, y], dtype="float64")
        r = np.hypot(x, y)
        right = [(y / r) ** 2 / r, -(x / r) * (y / r) / r]
        for by in (wg.jacobian, wg.func.jacfwd):
            found = by(lambda t: wg.real(wg.sign(t[0] + 1j * t[1])))(t)
            np.testing.assert_allclose(found.numpy(), right, rtol=1e-12)
