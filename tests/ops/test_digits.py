"""Digits of coarse dtypes: each function of the public lists against its own run in float64.

The calls are the suite's, at their own numbers and at small, large, mixed and nearly equal ones.
What rounding may do is measured, too: by the float64 run at inputs that are an epsilon away.
"""

import numpy as np
import pytest
from hypothesis import settings

import wengert as wg
from backend_check.calls import FUNCTIONS, arguments, prepare
from tests.ops.parameters import kinds
from tests.ops.spaces import choices
from wengert.nn import functional as F
from wengert.testing.problem import values

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: Rounding errors that a result may have, and the same number of the inputs'.
UNITS = 8.0
#: The exponents of the scales.
EXPONENTS = {
    "float32": (-60, -30, -14, -6, 3, 7, 30, 60),
    "float16": (-7, -4, 3, 6, 9),
    "bfloat16": (-60, -30, -8, -4, 3, 7, 30, 60),
}
#: Calls of one function beside its first.
MORE = int(settings().max_examples > 20)


class Limits:
    """What numbers a dtype has."""

    def __init__(self, dtype):
        bfloat = dtype == "bfloat16"
        info = np.finfo("float32" if bfloat else dtype)
        self.eps = 2.0**-7 if bfloat else float(info.eps)
        self.tiny, self.largest = float(info.tiny), float(info.max)
        self.smallest = self.tiny * self.eps
        self.digits = round(-np.log2(self.eps))


def rounded(x, limits):
    """Numbers of a dtype's precision."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(np.ldexp(mantissa, limits.digits)), exponent - limits.digits)


def variants(leaves, exponents):
    """The leaves, and what they are multiplied with, or added to 1; one of them, or all."""
    signs = [x * np.where(np.arange(x.size) % 2, 1.0, -1.0).reshape(x.shape) for x in leaves]
    yield from (leaves, signs)
    single = [{i} for i in range(len(leaves))]
    few = single if len(leaves) < 5 else single[:1]
    for which in few + [{*range(len(leaves))}] * (len(leaves) > 1):
        for e in exponents:
            for given in (leaves, signs):
                yield [x * 2.0**e if i in which else x for i, x in enumerate(given)]
            if e < 0:
                yield [1 + x * 2.0**e if i in which else x for i, x in enumerate(leaves)]
        powers = (2.0 ** np.resize(exponents, x.shape) for x in signs)
        yield [
            x * p if i in which else x for i, (x, p) in enumerate(zip(signs, powers, strict=True))
        ]


def drawn(shape, seed):
    """A cotangent or tangent, of numbers that all dtypes have."""
    random = np.random.default_rng(seed)
    return random.integers(32, 96, shape) / 64 * random.choice([-1, 1], shape)


def derivatives(function, leaves, dtype, move=lambda x: x):
    """The results that are numbers, and their derivatives in both modes, as float64."""

    def tensor(x, requires_grad=False):
        return wg.asarray(x, dtype=dtype, requires_grad=requires_grad)

    def direction(like, seed):
        return tensor(move(drawn(like.shape, seed)))

    def numbers(*arrays):
        wg.manual_seed(5)
        return tuple(out for out in function(*arrays) if out.dtype is arrays[0].dtype)

    inputs = [tensor(x, True) for x in leaves]
    found = {}
    for at, out in enumerate(numbers(*inputs)):
        found[f"value {at}"] = out
        if not out.requires_grad:
            continue
        first = wg.autograd.grad(
            out, inputs, direction(out, 1), create_graph=True, allow_unused=True
        )
        for i, g in enumerate(first):
            if g is None:
                continue
            found[f"gradient {at} {i}"] = g
            if g.requires_grad:
                second = wg.autograd.grad(
                    g, inputs, direction(g, 2 + i), retain_graph=True, allow_unused=True
                )
                found |= {f"second {at} {i} {j}": h for j, h in enumerate(second) if h is not None}
    if any(what.startswith("gradient") for what in found):
        raw = [x.detach() for x in inputs]
        pushed = wg.func.jvp(numbers, raw, [direction(x, 9) for x in raw])[1]
        found |= {f"tangent {at}": t for at, t in enumerate(pushed)}
    return {what: values(wg.astype(x.detach(), "float64")) for what, x in found.items()}


def attempted(function, leaves, move=lambda x: x):
    """The derivatives in float64; None where a function refuses the numbers."""
    try:
        return derivatives(function, leaves, "float64", move)
    except (ValueError, RuntimeError, NotImplementedError):
        return None


def nudged(limits, seed):
    """Relative changes by up to an epsilon."""
    random = np.random.default_rng(seed)
    return lambda x: x * (1 + limits.eps * random.uniform(-1, 1, x.shape))


def is_local(function, leaves):
    """Whether each element of a result is of those at its place alone."""
    right = attempted(function, leaves)
    if not right or any(x.shape != leaves[0].shape for x in [*leaves, right["value 0"]]):
        return False
    for i, x in enumerate(leaves):
        other = np.append(x.flat[:1] * 1.01, x.flat[1:]).reshape(x.shape)
        moved = attempted(function, [*leaves[:i], other, *leaves[i + 1 :]])
        if moved is None or any((right[k].flat[1:] != moved[k].flat[1:]).any() for k in moved):
            return False
    return True


#: Whose errors are those of numbers of size 1: shares, and logarithms of sums of shares.
SHARES = {
    *("softmax", "log_softmax", "logsumexp", "F.softmax", "F.log_softmax"),
    *("F.cross_entropy", "F.nll_loss", "F.cosine_similarity"),
    "F.scaled_dot_product_attention",
}


#: Far left their kernels count down to the poles, one by one.
POLES = ("beta", "gamma", "psi", "zeta", "binom", "poch")


def faults(name, function, leaves, dtype):
    """What was judged, and what is wrong."""
    limits, wrong, seen = Limits(dtype), [], set()
    alone = is_local(function, leaves)
    whole = (lambda mask: mask) if alone else np.any
    # Numbers of several elements may be flushed on the way.
    floor = limits.smallest if alone else limits.tiny
    points = [[rounded(x, limits) for x in at] for at in variants(leaves, EXPONENTS[dtype])]
    largest = 2.0**10 if any(x in name for x in POLES) else limits.largest
    points = [at for at in points if all((abs(x) <= largest).all() for x in at)]
    if alone:  # all at once
        points = [[np.stack(x) for x in zip(*points, strict=True)]]
    for at in points:
        with wg.use_backend("numpy"):
            right = attempted(function, at)
            if right is None:
                continue
            moves = [nudged(limits, seed) for seed in range(5)]
            others = [attempted(function, [f(x) for x in at], f) or {} for f in moves]
        with wg.use_backend("torch" if dtype == "bfloat16" else "numpy"):
            found = derivatives(function, at, dtype)
        unknown = sum(whole(np.isnan(x)) for what, x in right.items() if what[0] == "v") > 0
        # A second derivative that is 0 is a difference of first ones divided by numbers.
        apart = [min(abs(x).min(), np.ptp(x) ** 2 / abs(x).max() or 1.0) for x in at if x.any()]
        least = min(apart, default=1.0) or 1.0
        beyond = {"": unknown}
        for what, one in right.items():
            kind, _, which = what.partition(" ")
            seen.add(kind)
            below = {"second": f"gradient {which.rpartition(' ')[0]}", "value": ""}.get(
                kind, f"value {which[:1]}"
            )
            change = np.max([abs(other.get(what, np.inf) - one) for other in others], axis=0)
            allowed = UNITS * (change + limits.eps * (abs(one) + (name in SHARES)) + floor)
            if kind == "second" and not alone:
                allowed = allowed + UNITS * limits.eps * abs(right[below]).max(initial=0) / least
            beyond[what] = beyond[below] | whole(abs(one) >= limits.largest / 4)
            with np.errstate(all="ignore"):
                two = found.get(what, np.zeros_like(one))
                bad = (abs(one) + allowed < limits.largest) & ~(abs(two - one) <= allowed)
                bad &= ~beyond[below]
                if dtype != "float32":  # what is on the way may overflow, and then says so
                    bad &= np.isfinite(two)
            if bad.any():
                given = [x[bad].ravel()[:3] for x in at] if alone else at
                wrong.append(
                    f"{name} at {given}, in {dtype}, {what}: {two[bad].ravel()[:3]} "
                    f"instead of {one[bad].ravel()[:3]}, within {allowed[bad].ravel()[:3]}"
                )
    return seen, wrong


def calls(name):
    for given in [arguments(name), *choices(name)[:MORE]]:
        function, leaves = prepare(name, given)
        if leaves and all(x.dtype.kind == "f" for x in leaves):
            yield function, leaves


#: The elementwise functions, and those of `special` and `nn.functional`.
LISTED = {id(getattr(room, name)) for room in (wg.special, F) for name in room.__all__}
#: Other draws in another dtype.
DRAWN = {"F.dropout", "F.dropout2d"}
NAMES = [
    name
    for name, function in FUNCTIONS.items()
    if (id(function) in LISTED or ".elementwise." in getattr(function, "__module__", ""))
    and {"differentiable", "constant"} & {*kinds(name).values()}
    and name not in DRAWN
]
#: Whose terms cancel, or what their slopes multiply, so that digits are lost without a change.
APART = {
    "special.beta": "the mixed second derivative is B (L_a L_b - psi'(a + b))",
    "special.kl_div": "tangents are t log(x / y) + u (1 - x / y)",
    "special.erfcinv": "slopes are exponentials of a rounded result's square",
    "special.ndtri": "likewise",
    "special.sinc": "of large numbers all are integers",
    "special.zeta": "there is no derivative by the order",
    "F.rms_norm": "eps is the dtype's own",
    "F.layer_norm": "sums of elements less their mean",
    "F.group_norm": "likewise",
    "F.instance_norm": "likewise",
    "F.normalize": "directions less their projections, of mixed size",
    "F.cosine_similarity": "likewise",
    "F.interpolate": "cubic weights of both signs",
    "F.scaled_dot_product_attention": "shares of sums of products",
}
#: Sums take longer, and are judged in single precision alone.
MARKS = pytest.mark.slow, pytest.mark.oracle  # PyTorch has bfloat16
CASES = [
    pytest.param(name, dtype, marks=MARKS if dtype == "bfloat16" else MARKS[: "F." in name])
    for name in NAMES
    if name not in APART
    for dtype in EXPONENTS
]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_coarse_dtypes_keep_their_digits(name, dtype) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("torch")
    seen, wrong = set(), []
    for function, leaves in calls(name):
        if dtype == "float32" or is_local(function, leaves):
            more, found = faults(name, function, leaves, dtype)
            seen |= more
            wrong += found
    assert not wrong, "\n".join(wrong[:20])
    if dtype == "float32" and "differentiable" in kinds(name).values():
        assert seen, f"no call of {name} is judged"
