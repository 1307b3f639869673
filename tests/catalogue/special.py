"""Rows for special and activation functions; SciPy and PyTorch give their values."""

import importlib

import numpy as np
import scipy.special as sc
from hypothesis import strategies as st

from tests.catalogue.elementwise import NONZERO, OFF_AXES, PLANE, POSITIVE
from tests.ops.cases import BOX, Case, Constant, Entry, binary, reduction, unary
from wengert.testing import strategies as ws

#: Around both borders between erf's rational approximations, too.
WIDE = ws.reals(-5, 5)


def kinked(x, slope):
    return np.where(x > 0, x, slope * x)


@st.composite
def masks(draw):
    """Masks with zeros, which are jumps, and masks without, whose derivative is zero."""
    x = draw(ws.arrays(elements=BOX))
    if draw(st.booleans()):
        return Case(x, draw(ws.arrays(shape=x.shape, elements=NONZERO)))
    flags = draw(ws.arrays(shape=x.shape, elements=st.sampled_from([0.0, -0.0, 1.0, -0.5])))
    return Case(x, flags.view(Constant))


@st.composite
def leaky(draw):
    x = draw(ws.arrays(elements=NONZERO))
    return Case(x, draw(st.sampled_from([0.01, 0.5, 0.0, -0.25])))


@st.composite
def gelus(draw):
    x = draw(ws.arrays(elements=WIDE))
    return Case(x, approximate=draw(st.sampled_from(["none", "tanh"])))


def gelu_reference(x, approximate):
    if approximate == "none":
        return x * sc.ndtr(x)
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


#: The sum of exponentials of such numbers keeps away from the logarithm's branch cut.
FLAT = ws.complexes(BOX, ws.reals(-1, 1))


@st.composite
def shares(draw, kind="real"):
    """Calls along an axis, several or all of them."""
    if kind == "real":
        x = draw(ws.arrays(elements=BOX))
    else:
        x = draw(ws.arrays("complex128", elements=FLAT))
    return Case(x, axis=draw(ws.axes(x.ndim).filter(lambda axis: axis != ())))


@st.composite
def exponential_sums(draw, kind="real"):
    case = draw(reduction(BOX, min_side=1))
    if kind == "complex":
        x = draw(ws.arrays("complex128", case.args[0].shape, elements=FLAT))
        return Case(x, **case.kwargs)
    return case


def softmax(x, axis):
    return np.exp(log_softmax(x, axis))


def jax_softmax(x, axis):
    """As a formula, because ``jax.nn.softmax`` takes no complex numbers from JAX 0.12 on."""
    powers = importlib.import_module("jax.numpy").exp(x)
    return powers / powers.sum(axis=axis, keepdims=True)


def jax_log_softmax(x, axis):
    jnp = importlib.import_module("jax.numpy")
    return x - jnp.log(jnp.exp(x).sum(axis=axis, keepdims=True))


def log_softmax(x, axis):
    return x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True))


def logsumexp(x, axis=None, keepdims=False):
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


@st.composite
def bells(draw, kind="real"):
    elements = WIDE if kind == "real" else ws.complexes(ws.reals(-1.25, 1.25))
    x = draw(ws.arrays("float64" if kind == "real" else "complex128", elements=elements))
    return Case(x, width=draw(st.sampled_from([1, 2])))


SPECIAL = {
    "logistic_bell": Entry(real=bells(), complex=bells("complex"),
        reference=lambda x, width: (width / (2 * np.cosh(width * x / 2))) ** 2),
    "erf": Entry(real=unary(WIDE)),
    "erfc": Entry(real=unary(WIDE)),
    "expit": Entry(real=unary(WIDE), complex=unary(PLANE, "complex"),
        reference=lambda x: 1 / (1 + np.exp(-x))),
    "logit": Entry(real=unary(ws.reals(1 / 16, 15 / 16)), complex=unary(OFF_AXES, "complex"),
        reference=lambda x: np.log(x / (1 - x)),
        differs={"torch-complex": "PyTorch has logit for real numbers alone"}),
    "log_expit": Entry(real=unary(WIDE), torch="nn.functional.logsigmoid", jax="log_sigmoid"),
    "softplus": Entry(real=unary(WIDE), reference=lambda x: np.logaddexp(x, 0),
        torch="nn.functional.softplus", jax="softplus"),
    "xlogy": Entry(real=binary(BOX, POSITIVE)),
    "mask": Entry(real=masks(), reference=lambda x, by: np.where(by != 0, x, 0)),
    "relu": Entry(real=unary(NONZERO), reference=lambda x: kinked(x, 0), torch="nn.functional.relu",
        jax="relu"),
    "leaky_relu": Entry(real=leaky(), reference=kinked, torch="nn.functional.leaky_relu",
        jax="leaky_relu"),
    "silu": Entry(real=unary(WIDE), reference=lambda x: x * sc.expit(x), torch="nn.functional.silu",
        jax="silu"),
    "gelu": Entry(real=gelus(), reference=gelu_reference, torch="nn.functional.gelu", jax=False),
    "softmax": Entry(real=shares(), complex=shares("complex"), reference=softmax, torch=False,
        jax=jax_softmax),
    "log_softmax": Entry(real=shares(), complex=shares("complex"), reference=log_softmax,
        torch=False, jax=jax_log_softmax),
    "logsumexp": Entry(real=exponential_sums(), complex=exponential_sums("complex"),
        reference=logsumexp, torch=False),
}  # fmt: skip
