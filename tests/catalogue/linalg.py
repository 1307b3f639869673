"""Rows for the extension ``linalg``: well-conditioned matrices, and calls that know no gauge."""

import importlib
import itertools

import numpy as np
from hypothesis import strategies as st

import wengert as wg
from tests.catalogue.linear_algebra import mixed
from tests.ops.cases import Case, both, drawn
from wengert.testing import strategies as ws

SMALL = ws.reals(-0.5, 0.5)
SIDE = st.integers(1, 3)
#: Diagonals whose values stay apart when matrices of SMALL elements are added.
APART = {1: [4.0], 2: [3.0, 7.0], 3: [3.0, 7.0, 12.0]}


def turn(kind, n):
    """A fixed orthogonal or unitary matrix."""
    random = np.random.default_rng(n)
    x = random.standard_normal((n, n))
    if kind == "complex":
        x = x + 1j * random.standard_normal((n, n))
    return np.linalg.qr(x)[0]


@st.composite
def stacks(draw):
    return draw(ws.shapes(max_dims=1, max_side=2))


@st.composite
def spread(draw, kind, m=None, n=None, stack=None):
    """Matrices with singular values that are neither close together nor to 0."""
    m = draw(SIDE) if m is None else m
    n = m if n is None else n
    stack = draw(stacks()) if stack is None else stack
    x = drawn(draw, kind, (*stack, m, n), SMALL)
    size = min(m, n)
    x[..., range(size), range(size)] += APART[size]
    return turn(kind, m) @ x @ turn(kind, n).conj().T


@st.composite
def square(draw, kind, **fixed):
    return Case(draw(spread(kind)), **fixed)


@st.composite
def rectangular(draw, kind, **choices):
    m, n = draw(SIDE), draw(SIDE)
    given = {name: draw(choice) for name, choice in choices.items()}
    return Case(draw(spread(kind, m, n)), **given)


@st.composite
def systems(draw, kind):
    first, second = draw(ws.broadcastable(2, max_dims=1, max_side=2))
    kinds = mixed(draw, kind)
    n = draw(SIDE)
    shape = (n,) if draw(st.booleans()) else (*second, n, draw(SIDE))
    return Case(draw(spread(kinds[0], n, stack=first)), drawn(draw, kinds[1], shape))


@st.composite
def triangular(draw, kind):
    """Systems with a full matrix, of which one triangle is looked at."""
    first, second = draw(ws.broadcastable(2, max_dims=1, max_side=2))
    kinds = mixed(draw, kind)
    n, k = draw(SIDE), draw(SIDE)
    x = drawn(draw, kinds[0], (*first, n, n), SMALL)
    x[..., range(n), range(n)] += APART[n]
    way = {name: draw(st.booleans()) for name in ("upper", "left", "unitriangular")}
    shape = (n, k) if way["left"] else (k, n)
    return Case(x, drawn(draw, kinds[1], (*second, *shape)), **way)


@st.composite
def factored(draw, kind):
    """Matrices whose factors are unique and smooth."""
    m, n = draw(SIDE), draw(SIDE)
    kwargs = {}
    if draw(st.booleans()):
        # The complete factor of a tall matrix has no derivative.
        kwargs["mode"] = draw(st.sampled_from(["reduced"] + ["complete"] * (m <= n)))
    x = draw(spread(kind, m, min(m, n)))
    if n > m:
        x = np.concatenate([x, drawn(draw, kind, (*x.shape[:-1], n - m))], axis=-1)
    return Case(x, **kwargs)


@st.composite
def general(draw, kind):
    """Matrices with eigenvalues apart, a complex pair among them where they are real."""
    n = draw(SIDE)
    x = drawn(draw, kind, (*draw(stacks()), n, n), ws.reals(-0.25, 0.25))
    x[..., range(n), range(n)] += [3.0, 3.0, 8.0][:n]
    if n > 1:
        x[..., 0, 1] += 2.0
        x[..., 1, 0] -= 2.0
    q = turn(kind, n)
    return Case(q @ x @ q.conj().T)


@st.composite
def vectors(draw, kind):
    """Without zeros, where absolute values have a kink."""
    shape = draw(ws.shapes(min_dims=1, min_side=1))
    x = drawn(draw, kind, shape, ws.reals(-2, 2, away_from=(0,)))
    kwargs = {}
    if draw(st.booleans()):
        kwargs["axis"] = draw(ws.axes(len(shape), min_size=1))
    if draw(st.booleans()):
        kwargs["keepdims"] = draw(st.booleans())
    if draw(st.booleans()):
        kwargs["ord"] = draw(st.sampled_from([2, 2.0, 1, 3, 0.5, -1.5]))
    return Case(x, **kwargs)


@st.composite
def of_order(draw, kind):
    case = draw(vectors(kind))
    return Case(case.args[0], **{**case.kwargs, "ord": draw(ws.reals(1.25, 3))})


@st.composite
def crossed(draw, kind):
    shapes = draw(ws.broadcastable(2, max_dims=2))
    kinds = mixed(draw, kind)
    kwargs = {}
    axis = -1
    if len(shapes[0]) == len(shapes[1]) and draw(st.booleans()):
        axis = kwargs["axis"] = draw(ws.axis(len(shapes[0]) + 1))
    made = []
    for shape, k in zip(shapes, kinds, strict=True):
        at = axis % (len(shape) + 1)
        made.append(drawn(draw, k, (*shape[:at], 3, *shape[at:])))
    return Case(*made, **kwargs)


# -- what does not depend on the choice of signs, phases and order -------------------------------


def adjoint(xp, x):
    return xp.matrix_transpose(xp.conj(x))


def hermitian(xp, x):
    return (x + adjoint(xp, x)) / 2


def row(xp, x):
    return xp.expand_dims(x, axis=-2)


def squares(xp, x):
    return xp.real(x * xp.conj(x))


def triangle_of(xp):
    def call(x1, x2, *, upper, left, unitriangular):
        own = int(unitriangular)
        x1 = xp.triu(x1, k=own) if upper else xp.tril(x1, k=-own)
        if unitriangular:
            x1 = x1 + xp.eye(x1.shape[-1], dtype=x1.dtype)
        if left:
            return xp.linalg.solve(x1, x2)
        return xp.matrix_transpose(
            xp.linalg.solve(xp.matrix_transpose(x1), xp.matrix_transpose(x2))
        )

    return call


def qr_of(xp):
    def call(x, **kwargs):
        q, r = xp.linalg.qr(x, **kwargs)
        phase = xp.sign(xp.linalg.diagonal(r))
        return q * row(xp, phase), r * xp.expand_dims(xp.conj(phase), axis=-1)

    return call


def svd_of(xp):
    def call(x, full_matrices):
        u, s, vh = xp.linalg.svd(x, full_matrices=full_matrices)
        k = s.shape[-1]
        u, vh = u[..., :k], vh[..., :k, :]
        return s, squares(xp, u), squares(xp, vh), (u * row(xp, s * s)) @ vh

    return call


def eigh_of(xp):
    def call(x):
        values, vectors = xp.linalg.eigh(hermitian(xp, x))
        again = (vectors * row(xp, values * values)) @ adjoint(xp, vectors)
        return values, squares(xp, vectors), again

    return call


def eig_of(xp):
    def call(x):
        values, vectors = xp.linalg.eig(x)
        if xp is np:  # which answers in reals where it can
            values, vectors = values.astype("complex128"), vectors.astype("complex128")
        again = (vectors * row(xp, values * values)) @ adjoint(xp, vectors)
        return xp.sum(values**3, axis=-1), again

    return call


def from_all(function, **more):
    """A row in which everybody composes the same call of their own functions."""

    def in_module(name):
        return lambda *args, **kwargs: function(importlib.import_module(name))(*args, **kwargs)

    given = dict(
        call=function(wg),
        reference=function(np),
        torch=in_module("array_api_compat.torch"),
        jax=in_module("jax.numpy"),
        half=False,
    )
    return given | more


@st.composite
def with_directions(draw, kind):
    """Matrices, and directions of as many or a single one."""
    x = draw(spread(kind))
    count = draw(st.integers(0, 2))
    return Case(x, *(drawn(draw, kind, draw(st.sampled_from([x.shape, x.shape[-2:]])))
                     for _ in range(count)))  # fmt: skip


def cofactors(x, *along):
    """By minors; differences of polynomials of degree 2 are exact."""
    n = x.shape[-1]
    found = 0
    for signs in itertools.product((1, -1), repeat=len(along)):
        at = x + sum(s * t for s, t in zip(signs, along, strict=True))
        for i, j in itertools.product(range(n), repeat=2):
            unit = np.zeros((n, n))
            unit[i, j] = (-1) ** (i + j) * np.prod(signs) / 2 ** len(along)
            minor = np.delete(np.delete(at, i, axis=-2), j, axis=-1)
            found = found + np.linalg.det(minor)[..., None, None] * unit
    return found


LINALG = {
    "linalg.solve": both(systems, half=False),
    "linalg.solve_triangular": both(triangular, **from_all(triangle_of, call=None)),
    "linalg.inv": both(square, half=False),
    "linalg.pinv": both(rectangular, reference=lambda x: np.linalg.pinv(x, rtol=1e-12), half=False),
    "linalg.det": both(square, half=False),
    "cofactors": both(with_directions, reference=cofactors, half=False),
    "linalg.slogdet": both(square, half=False),
    "linalg.cholesky": both(
        lambda kind: st.booleans().flatmap(lambda upper: square(kind, upper=upper)),
        **from_all(lambda xp: lambda x, **k: xp.linalg.cholesky(x @ adjoint(xp, x), **k)),
    ),
    "linalg.qr": both(factored, **from_all(qr_of)),
    "linalg.svd": both(lambda kind: rectangular(kind, full_matrices=st.booleans()),
        **from_all(svd_of)),
    "linalg.svdvals": both(rectangular, half=False),
    "linalg.eigh": both(square, **from_all(eigh_of)),
    "linalg.eigvalsh": both(
        square, **from_all(lambda xp: lambda x: xp.linalg.eigvalsh(hermitian(xp, x)))
    ),
    # JAX has no derivatives of eigenvectors.
    "linalg.eig": both(general, **from_all(eig_of, jax=False)),
    "linalg.vector_norm": both(vectors),
    "power_norm": both(of_order, call=wg.linalg.vector_norm, reference=np.linalg.vector_norm),
    "linalg.cross": both(crossed),
}  # fmt: skip
