"""Property-based tests of a derivative of your own.

    python examples/property_test.py
    python -m pytest examples/property_test.py

`LogCosh` is a smooth relative of the absolute value with a derivative written by hand. Hypothesis
draws the Tensors, with shapes that have zeros and ones in them; `gradcheck` compares the first
derivatives with differences, `gradgradcheck` the second. Run as a script, it also shows what a
wrong derivative looks like.
"""

import math
from typing import Any

from hypothesis import given, settings

import wengert as wg
from wengert.testing import GradcheckError, gradcheck, gradgradcheck
from wengert.testing import strategies as st


class LogCosh(wg.autograd.Function):
    """The logarithm of cosh, without overflow: |x| + log(1 + exp(-2|x|)) - log 2."""

    @staticmethod
    def forward(ctx: Any, x: wg.Tensor) -> wg.Tensor:
        """Compute it."""
        ctx.save_for_backward(x)
        size = wg.abs(x)
        return size + wg.log1p(wg.exp(-2 * size)) - math.log(2)

    @staticmethod
    def backward(ctx: Any, g: wg.Tensor) -> wg.Tensor:
        """Multiply the cotangent by the derivative, tanh(x)."""
        (x,) = ctx.saved_tensors
        return g * wg.tanh(x)


class Wrong(LogCosh):
    """The same function with a derivative that is right for small x only."""

    @staticmethod
    def backward(ctx: Any, g: wg.Tensor) -> wg.Tensor:
        """Multiply the cotangent by x."""
        (x,) = ctx.saved_tensors
        return g * x


@given(st.tensors("float64", requires_grad=True))
@settings(deadline=None)
def test_first_derivative(x: wg.Tensor) -> None:
    """Reverse mode gives what differences give."""
    assert gradcheck(LogCosh.apply, x)


@given(st.tensors("float64", requires_grad=True))
@settings(deadline=None)
def test_second_derivative(x: wg.Tensor) -> None:
    """So it does for the derivative's derivative, because ``backward`` is recorded too."""
    assert gradgradcheck(LogCosh.apply, x)


@given(st.tensors("float64", requires_grad=True))
@settings(deadline=None, database=None)
def test_wrong_derivative(x: wg.Tensor) -> None:
    """Fails, and Hypothesis finds the simplest Tensor for which it does."""
    assert gradcheck(Wrong.apply, x)


# A test that should fail is not for pytest to collect.
test_wrong_derivative.__test__ = False  # type: ignore[attr-defined]


def main() -> None:
    """Run the tests, and print what the wrong one says."""
    tests: dict[str, Any] = {
        "first derivative": test_first_derivative,
        "second derivative": test_second_derivative,
        "a wrong derivative": test_wrong_derivative,
    }
    for name, test in tests.items():
        try:
            test()
        except GradcheckError as error:
            print(f"{name}: {error}")
            print("\n".join(getattr(error, "__notes__", [])))
        else:
            print(f"{name}: right")


if __name__ == "__main__":
    main()
