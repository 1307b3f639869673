"""An operation of your own, and the property-based test that says whether its derivative is right.

    python examples/custom_operation.py
    python -m pytest examples/custom_operation.py

`Softplus` has a forward and a backward written by hand, for any array library. One decorator
turns it into a test of first and second derivatives on every backend that is installed. Run as a
script, it also shows what the test says of a backward that is wrong where nobody looks: at 0.
"""

from typing import Any

import wengert as wg
from wengert.testing import Argument, WrongGradientError, check_gradients


class Softplus(wg.autograd.Function):
    r"""A smooth relu with a sharpness, :math:`\log(1 + e^{k x}) / k`."""

    @staticmethod
    def forward(ctx: Any, x: wg.Tensor, sharpness: float) -> wg.Tensor:
        """Compute it without overflow, whatever the sign."""
        ctx.save_for_backward(x)
        ctx.sharpness = sharpness
        scaled = sharpness * x
        return (wg.maximum(scaled, 0.0) + wg.log1p(wg.exp(-wg.abs(scaled)))) / sharpness

    @staticmethod
    def backward(ctx: Any, g: wg.Tensor) -> tuple[wg.Tensor, None]:
        """Multiply by the logistic function, which recorded operations differentiate again."""
        (x,) = ctx.saved_tensors
        return g * logistic(ctx.sharpness * x), None


def logistic(x: wg.Tensor) -> wg.Tensor:
    """Return ``1 / (1 + exp(-x))``, which does not overflow either."""
    return 0.5 * (1.0 + wg.tanh(0.5 * x))


class Careless(Softplus):
    """Its backward takes the derivative of relu at 0, as if there were a kink."""

    @staticmethod
    def backward(ctx: Any, g: wg.Tensor) -> tuple[wg.Tensor, None]:
        """Multiply by the logistic function, except at 0."""
        (x,) = ctx.saved_tensors
        return g * wg.where(x == 0.0, 0.0, logistic(ctx.sharpness * x)), None


# pytest collects this; on its command line, --wengert-backend=numpy,torch chooses backends. Forward
# mode would be checked, too, if the operation had a `jvp`.
@check_gradients(Argument(domain=(-3, 3)), 2.0, examples=25)
def test_softplus(x: wg.Tensor, sharpness: float) -> wg.Tensor:
    """Check the derivatives of the operation, at any shape."""
    return Softplus.apply(x, sharpness)


def test_that_the_careless_one_is_caught() -> None:
    """See that the test can fail."""
    told = careless()
    assert "numerical: 0.5" in told
    assert "analytic:  0" in told


def careless() -> str:
    """Check the careless operation, and return what is told of it."""
    try:
        check_gradients(
            lambda x: Careless.apply(x, 2.0),
            Argument(domain=(-3, 3)),
            backends=["numpy"],
            examples=50,
        )
    except WrongGradientError as error:
        return str(error)
    return "all is well"


def main() -> None:
    """Run the test, and show what a failure looks like."""
    test_softplus()
    print("The derivatives of Softplus are right on every backend that is installed.\n")
    print(careless())


if __name__ == "__main__":
    main()
