"""Functions and values as code that a user runs."""

import numpy as np
import pytest

import wengert as wg
from tests.testing.functions import of_array
from tests.testing.test_check import NUMPY, VALUES, Halved, doubled
from wengert.testing import Argument, WrongGradientError, check_gradients
from wengert.testing.snippets import function_code, value_code


def test_values_as_code():
    for value in VALUES:
        assert repr(eval(value_code(value), {"wg": wg, "np": np})) == repr(value)


def test_functions_as_code():
    assert function_code(wg.exp, "f") == ([], "wg.exp")
    assert function_code(doubled, "f") == ([f"from {doubled.__module__} import doubled"], "doubled")

    def local(x):
        return x + 1

    assert function_code(local, "f") == (["def local(x):", "    return x + 1"], "local")
    square = lambda x: x * x
    assert function_code(square, "f") == (["f = lambda x: x * x"], "f")


def test_methods_as_code():
    """What a method needs is its class; an object's own cannot be written as code."""
    assert function_code(Halved.apply, "f") == (
        [f"from {Halved.__module__} import Halved"],
        "Halved.apply",
    )

    class Local(Halved):
        at = 0

    assert function_code(Local.apply, "f") == (
        ["class Local(Halved):", "    at = 0"],
        "Local.apply",
    )
    lines, name = function_code(wg.nn.ReLU().forward, "f")
    assert name == "f" and len(lines) == 1 and lines[0].startswith("f = ...  # ReLU.forward, line ")


def test_code_of_a_counterexample_has_the_definition_of_a_local_function():
    def local(x):
        return x + x.detach()

    with pytest.raises(WrongGradientError) as caught:
        check_gradients(local, Argument(("n",), domain=(1, 2)), min_side=1, **NUMPY)
    code = str(caught.value).partition("To see it again:\n\n")[2]
    lines = "\n".join(line.removeprefix("    ") for line in code.splitlines())
    with pytest.raises(WrongGradientError, match="is wrong: d result 0"):
        exec(lines, {})


@pytest.mark.parametrize("order", [1, 2])
def test_code_asks_for_forward_mode_where_the_function_has_it(order):
    def backward(x, g):
        return 2 * g * (x if order == 1 else x.detach()) + (order == 1) * g

    for jvp, expected in ((None, False), (lambda x, t: 2 * t * x, True)):
        made = of_array(wg.square, backward, jvp)
        with pytest.raises(WrongGradientError) as caught:
            check_gradients(made, Argument(domain=(1, 2)), **NUMPY)
        asked = ("check_fwd_over_rev" if order == 2 else "check_forward_ad") in str(caught.value)
        assert asked == expected
