"""Homogeneous functions, f(s x) = s^k f(x): derivatives keep their digits at every scale.

The functions are those of the public lists, with the suite's own calls, and k is measured. First
derivatives scale by s^(k - 1) and second ones by s^(k - 2), exactly for powers of two: whatever
differs has overflowed or vanished on the way to a result that does not.
"""

import numpy as np
import pytest
from hypothesis import settings

import wengert as wg
from backend_check.calls import FUNCTIONS, arguments, prepare
from tests.ops.parameters import kinds, row_of
from tests.ops.spaces import choices
from wengert.testing.problem import values

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: Divisors of at least an epsilon: these have a degree above it alone.
BOUNDED = {"F.cosine_similarity", "F.normalize"}
#: The degrees of the first call in its arrays, one after another; the rows of linear ones say 1.
DEGREES = {
    "abs": [1],
    "divide": [1, -1],
    "reciprocal": [-1],
    "square": [2],
    "sqrt": [0.5],
    "sign": [0],
    "prod": [6],
    "var": [2],
    "F.relu": [1],
    "linalg.cholesky": [0.5],
    "linalg.det": [3],
    "linalg.eigvalsh": [1],
    "linalg.inv": [-1],
    "linalg.matrix_norm": [1],
    "linalg.matrix_power": [3],
    "linalg.pinv": [-1],
    "linalg.solve": [-1, 1],
    "linalg.svdvals": [1],
    "linalg.vector_norm": [1],
}
#: Exponents of the scales: up to 1e160, and for single precision 1e25.
EXPONENTS = {"float64": (400, -400, 528, -528), "float32": (60, -60, 80, -80)}
COMPLEX = {"float64": "complex128", "float32": "complex64"}
#: LAPACK scales matrices, and so rounds otherwise.
RTOL = {"float64": 1e-9, "float32": 2e-3}
#: Calls of one function beside its first.
MORE = 8 if settings().max_examples > 20 else 1
#: By which degrees are measured.
FACTORS = [2.0**e for e in (1, -3, 12, -14)]


def calls(prefix):
    """The suite's calls of the public functions that have such names, and their arrays."""
    for name in FUNCTIONS:
        head = name.rpartition(".")[0]
        if head != prefix or not {"differentiable", "constant"} & {*kinds(name).values()}:
            continue
        for given in [arguments(name), *choices(name)[:MORE]]:
            function, leaves = prepare(name, given)
            for kind in ("real", "complex"):
                if kind == "complex" and any(x.dtype.kind == "c" for x in leaves):
                    continue
                each = leaves if kind == "real" else [x + 0.3j * np.flip(x) for x in leaves]
                if leaves and evaluated(function, each):
                    yield name, given, function, each


def evaluated(function, leaves):
    """The results as arrays; None where there are none."""
    wg.manual_seed(5)
    try:
        out = function(*map(wg.asarray, leaves))
    except (TypeError, ValueError, RuntimeError):
        return None  # such as ceil of complex numbers
    return [values(each) for each in out] if all(isinstance(r, wg.Tensor) for r in out) else None


def scaled(leaves, which, factor):
    return [(x * factor).astype(x.dtype) if i in which else x for i, x in enumerate(leaves)]


def degree(usual, others):
    """The k by which all elements scale; None if there is none."""
    if usual.dtype.kind not in "fc":
        return 0.0 if all(np.array_equal(usual, other) for other in others) else None
    if not np.isfinite(usual).all() or not usual.any():
        return None
    size = abs(usual).max()
    found = set()
    for factor, other in zip(FACTORS, others, strict=True):
        ratio = abs(other).max() / size
        k = np.round(4 * np.log2(ratio) / np.log2(factor)) / 4 if 0 < ratio < np.inf else np.inf
        right = abs(k) < 8 and np.allclose(other, usual * factor**k, 1e-11, 1e-12 * size * ratio)
        found.add(k if right else None)
    return found.pop() if len(found) == 1 else None


def drawn(like, seed):
    """A cotangent or tangent."""
    random = np.random.default_rng(seed)
    x = random.uniform(0.5, 1.5, like.shape) * random.choice([-1, 1], like.shape)
    if like.dtype.complex:
        x = x + 1j * random.uniform(0.5, 1.5, like.shape)
    return wg.asarray(x, dtype=like.dtype)


def derivatives(function, leaves, at, which):
    """The value of a result, and its derivatives in both modes: each with its loss of degree."""
    inputs = [wg.asarray(x, requires_grad=True) for x in leaves]
    wg.manual_seed(5)
    out = function(*inputs)[at]
    yield "value", values(out), 0, True
    if not out.requires_grad:
        return
    lost = [int(i in which) for i in range(len(leaves))]
    try:
        first = wg.autograd.grad(out, inputs, drawn(out, 1), create_graph=True, allow_unused=True)
    except NotImplementedError:
        return
    for i, g in enumerate(first):
        if g is None:
            continue
        yield f"gradient {i}", values(g), lost[i], True
        if g.requires_grad:
            seed = drawn(g, 2 + i)
            second = wg.autograd.grad(g, inputs, seed, retain_graph=True, allow_unused=True)
            for j, h in enumerate(second):
                if h is not None:
                    yield f"gradient {i} {j}", values(h), lost[i] + lost[j], False

    raw = [x.detach() for x in inputs]
    for chosen in sorted({tuple(which), tuple({*range(len(leaves))} - which)} - {()}):

        def along(*some, chosen=chosen):
            wg.manual_seed(5)
            given = dict(zip(chosen, some, strict=True))
            return function(*(given.get(i, x) for i, x in enumerate(raw)))[at]

        own = tuple(raw[i] for i in chosen)
        tangents = tuple(drawn(x, 9) for x in own)
        now, twice = wg.func.jvp(
            lambda *some, f=along, t=tangents: wg.func.jvp(f, some, t)[1], own, tangents
        )
        loss = int(chosen == tuple(which))
        yield f"tangent {chosen}", values(now), loss, True
        yield f"tangent {chosen} twice", values(twice), 2 * loss, False


def faults(name, function, leaves, dtype, exponents):
    """The degrees of the results in single arrays and all, and what does not scale by them."""
    usual = evaluated(function, leaves)
    kind = {"f": dtype, "c": COMPLEX[dtype]}
    stored = [x.astype(kind[x.dtype.kind]) for x in leaves]
    limits = np.finfo(dtype)
    # A second derivative that is 0 is a difference of first ones divided by numbers.
    least = min(float(abs(x).max(initial=0)) for x in stored) or 1.0
    residue = 16 * float(limits.eps) / least
    smallest = np.log2(float(limits.tiny)) - np.log2(float(limits.eps))
    largest = np.log2(float(limits.max)) - 1
    degrees, wrong = {}, []
    for which in [{i} for i in range(len(leaves))] + [{*range(len(leaves))}] * (len(leaves) > 1):
        others = [evaluated(function, scaled(leaves, which, factor)) for factor in FACTORS]
        if None in others:
            continue  # out of the domain, such as of probabilities
        for at, result in enumerate(usual):
            k = degree(result, [other[at] for other in others])
            if k is None:
                continue
            degrees[at, *which] = k
            right = list(derivatives(function, stored, at, which))
            for e in exponents:
                both = name == "F.nll_loss" and len(which) > 1  # squares of weights beside values
                if (both and 2 * abs(e) > largest) or (name in BOUNDED and e < 0):
                    continue
                found = list(derivatives(function, scaled(stored, which, 2.0**e), at, which))
                in_range, first = True, 0.0
                for (what, one, loss, begins), (_, two, *_) in zip(right, found, strict=True):
                    size = float(abs(one).max(initial=0)) if one.dtype.kind in "fc" else 0.0
                    shift = e * (k - loss)
                    there = not size or smallest < np.log2(size) + shift < largest
                    if begins:  # what a second derivative is the derivative of
                        in_range, first = there or what == "value", size
                    if not there or not in_range or not np.isfinite(size):
                        continue
                    back = two if not shift else two * 2.0 ** (-shift / 2) * 2.0 ** (-shift / 2)
                    rounding = 0.0 if begins else residue * first
                    if not np.allclose(back, one, 0, RTOL[dtype] * size + rounding):
                        wrong.append(
                            f"{name} {which} 2^{e} {what}, degree {k} - {loss}: "
                            f"{back.ravel()[:3]} instead of {one.ravel()[:3]}"
                        )
    return degrees, wrong


def stated(name, count):
    """The degrees that are known in advance, by the arrays that are scaled."""
    row = row_of(FUNCTIONS[name])
    linear = None if row is None else row.linear
    if linear == "together":
        return {tuple(range(count)): 1}
    each = [1] * count if linear == "each" else DEGREES.get(name, [])
    return {(i,): k for i, k in enumerate(each)}


PREFIXES = [pytest.param(each, marks=pytest.mark.slow) for each in ("", "linalg", "fft", "F", "x")]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("prefix", [*PREFIXES, "special"])
def test_derivatives_scale_as_their_degrees_say(prefix, dtype) -> None:
    wrong, seen, counts = [], {}, {}
    with wg.use_backend("numpy"):
        for name, _, function, leaves in calls(prefix):
            degrees, more = faults(name, function, leaves, dtype, EXPONENTS[dtype])
            wrong += more
            seen[name] = degrees | seen.get(name, {})  # those of the first call
            counts.setdefault(name, len(leaves))
    for name, degrees in seen.items():
        for which, said in stated(name, counts[name]).items():
            if degrees.get((0, *which)) != said:
                wrong.append(f"{name} {which}: not of degree {said}, but {degrees}")
    assert not wrong, "\n".join(wrong[:40])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["det", "pinv", "svd"])
def test_derivatives_of_matrices_scale_on_all_libraries(backend, name) -> None:
    function, leaves = prepare(f"linalg.{name}", arguments(f"linalg.{name}"))
    degrees, wrong = faults(f"linalg.{name}", function, leaves, "float64", (400,))
    assert degrees
    assert not wrong, "\n".join(wrong[:40])
