"""Which triangle a function reads, of matrices that are not Hermitian: every flag that says so."""

import inspect
import itertools

import numpy as np
import pytest
import scipy.linalg

import wengert as wg
from backend_check.calls import FUNCTIONS, parameters
from tests.ops.cases import gradient
from tests.ops.spaces import declared
from wengert.protocols.linalg import TABLE
from wengert.testing.problem import values

RANDOM = np.random.default_rng(3)
#: Positive definite whichever triangle is continued to a Hermitian matrix, and full.
SQUARES = {"real": RANDOM.uniform(-1, 1, (3, 3)) + 5 * np.eye(3)}
SQUARES["complex"] = SQUARES["real"] + 1j * np.tri(3, k=-1) - 0.5j * np.tri(3, k=-1).T
SIDES = RANDOM.uniform(-1, 1, (3, 2))


def triangular(x1, x2, upper, left, unitriangular):
    if not left:
        x1, x2, upper = x1.T, x2, not upper
    out = scipy.linalg.solve_triangular(x1, x2, lower=not upper, unit_diagonal=unitriangular)
    return out if left else out.T


#: What NumPy or SciPy gives, and the arguments that follow the matrix.
OWN = {
    "cholesky": (np.linalg.cholesky, ()),
    "cholesky_solve": (lambda f, x, upper: scipy.linalg.cho_solve((f, not upper), x), (SIDES,)),
    "solve_triangular": (triangular, (SIDES,)),
}
#: Flags of what is returned, not of what is read.
SHAPES = {"keepdims", "full_matrices"}


def flags(function):
    """Each choice of a function's flags, from its signature."""
    said = {
        name: (False, True)
        for name, of in parameters(function).items()
        if declared(of.annotation, name) == (False, True) and name not in SHAPES
    }
    for chosen in itertools.product(*said.values()):
        yield dict(zip(said, chosen, strict=True))


NAMES = [
    name.removeprefix("linalg.")
    for name, function in FUNCTIONS.items()
    if name.startswith("linalg.") and next(flags(function))
]


@pytest.mark.parametrize("kind", SQUARES)
@pytest.mark.parametrize("name", NAMES)
def test_flags_of_public_functions(backend, name, kind):
    own, more = OWN[name]
    matrix, wrong = SQUARES[kind], []
    for chosen in flags(getattr(wg.linalg, name)):
        sides = tuple(x if chosen.get("left", True) else x.T for x in more)
        expected = own(matrix, *more, **chosen)
        x = wg.asarray(matrix, requires_grad=True)
        given = [*map(wg.asarray, sides)]
        at = [*given, x] if name == "cholesky_solve" else [x, *given]
        out = getattr(wg.linalg, name)(*at, **chosen)
        if not np.allclose(values(out), expected, rtol=1e-12, atol=1e-14):
            wrong.append(chosen)
        # What is not read has no derivative, but where it is the mirror image of what is.
        g = gradient(out, x)
        unread = g - g.conj().T if name == "cholesky" else g
        if (np.tril(unread, -1) if chosen["upper"] else np.triu(unread, 1)).any():
            wrong.append((chosen, "gradient"))
    assert not wrong


@pytest.mark.parametrize("kind", SQUARES)
def test_the_lower_triangle_is_read_without_a_flag(backend, kind):
    matrix = SQUARES[kind]
    for name in ("cholesky", "eigvalsh"):
        found = values(getattr(wg.linalg, name)(wg.asarray(matrix)))
        np.testing.assert_allclose(found, getattr(np.linalg, name)(matrix), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(values(wg.linalg.eigh(wg.asarray(matrix))[0]), found, rtol=1e-13)


def numpys():
    """NumPy's own functions that have flags, and each choice of them."""
    for name in TABLE:
        of = inspect.signature(getattr(np.linalg, name)).parameters
        said = {key: (False, True) for key, one in of.items() if isinstance(one.default, bool)}
        said |= {key: ("L", "U", "l", "u") for key in of if key == "UPLO"}
        said = {key: given for key, given in said.items() if key not in SHAPES}
        if said:
            for chosen in itertools.product(*said.values()):
                yield name, dict(zip(said, chosen, strict=True))


@pytest.mark.parametrize("kind", SQUARES)
def test_flags_of_numpys_functions(kind):
    matrix, wrong, seen = SQUARES[kind], [], set()
    with wg.use_backend("numpy"):
        x = wg.asarray(matrix)
    for name, chosen in numpys():
        function = getattr(np.linalg, name)
        seen |= {*chosen}
        expected = function(matrix, **chosen)
        try:
            found = function(x, **chosen)
        except TypeError as refusal:
            if "not supported for Tensors" in str(refusal):
                continue
            raise
        several = isinstance(expected, tuple)
        # Vectors have a sign or phase.
        pairs = zip(found, expected, strict=True) if several else [(found, expected)]
        if not all(np.allclose(abs(values(a)), abs(b), rtol=1e-12) for a, b in pairs):
            wrong.append((name, chosen))
    assert not wrong
    assert {"upper", "UPLO", "hermitian"} <= seen
