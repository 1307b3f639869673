"""Einstein's notation: NumPy's whole syntax, contraction paths, derivatives and errors."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wengert as wg
from tests.ops.cases import examples, tensor
from wengert.testing.problem import values


def drawn(shapes, complex_=False, seed=0):
    random = np.random.default_rng(seed)
    arrays = [random.standard_normal(shape) for shape in shapes]
    return [a + 1j * random.standard_normal(a.shape) for a in arrays] if complex_ else arrays


def same(found, wanted):
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(values(found), wanted, rtol=1e-12, atol=1e-12)


@st.composite
def products(draw):
    length = {c: draw(st.integers(0, 3)) for c in "abcd"}
    around = [draw(st.integers(1, 2)) for _ in range(2)]
    terms, shapes = [], []
    for _ in range(draw(st.integers(1, 4))):
        labels = draw(st.lists(st.sampled_from("abcd"), max_size=3))
        shape = [length[c] for c in labels]
        text = "".join(labels)
        if draw(st.booleans()):
            at = draw(st.integers(0, len(labels)))
            count = draw(st.integers(0, 2))
            middle = [n if draw(st.booleans()) else 1 for n in around[2 - count :]]
            text = text[:at] + "..." + text[at:]
            shape[at:at] = middle
        terms.append(text)
        shapes.append(tuple(shape))
    subscripts = ",".join(terms)
    if draw(st.booleans()):
        every = sorted({c for c in subscripts if c.isalpha()})
        result = "".join(draw(st.permutations(every))[: draw(st.integers(0, len(every)))])
        at = draw(st.integers(0, len(result)))
        dots = "..." if "..." in subscripts else ""
        subscripts += "->" + result[:at] + dots + result[at:]
    return subscripts, shapes


@pytest.mark.parametrize("optimize", [None, False, "optimal"])
def test_any_subscripts(optimize):
    if optimize:
        pytest.importorskip("opt_einsum")

    @settings(max_examples=examples(60))
    @given(products())
    def check(drawn_product):
        subscripts, shapes = drawn_product
        arrays = drawn(shapes)
        same(
            wg.einsum(subscripts, *map(tensor, arrays), optimize=optimize),
            np.einsum(subscripts, *arrays),
        )

    check()


def test_lists_of_labels():
    a, b = drawn([(2, 3, 4), (4, 2)])
    x, y = tensor(a), tensor(b)
    for lists in (
        ([0, 3, 1], [1, 2], [0, 2, 3]),
        ([0, 3, 1], [1, 2]),
        ([..., 7, 1], [1, 0], [0, ..., 7]),
        ([..., 1], [1, ...]),
    ):
        ours, numpys = [x, lists[0], y, *lists[1:]], [a, lists[0], b, *lists[1:]]
        try:
            wanted = np.einsum(*numpys)
        except ValueError:  # axes that do not broadcast
            with pytest.raises(ValueError, match="length"):
                wg.einsum(*ours)
        else:
            same(wg.einsum(*ours), wanted)
    same(wg.einsum(x, [2, 0, 1]), np.einsum(a, [2, 0, 1]))


PATHS = [
    False,
    [(0, 1), (0, 1), (0, 1)],
    [(2, 3), (1, 2), (0, 1)],
    [(0, 3), (0, 1, 2)],
    [(0, 1, 2, 3)],
    ["einsum_path", (1, 2), (0, 2), (0, 1)],
    ((0,), (0, 1), (0, 1), (0, 1)),
]


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_paths(path, backend):
    arrays = drawn([(2, 3), (3, 4), (4, 2), (2, 3)])
    same(
        wg.einsum("ab,bc,cd,de->ea", *map(tensor, arrays), optimize=path),
        np.einsum("ab,bc,cd,de->ea", *arrays),
    )


def test_opt_einsum_finds_the_cheaper_order():
    pytest.importorskip("opt_einsum")
    operands = [tensor(a, True) for a in drawn([(30, 2), (2, 30), (30, 1)])]

    def largest(optimize):
        out = wg.einsum("ab,bc,cd->ad", *operands, optimize=optimize)
        return max(np.prod(parent.shape) for parent in out._node.parents)

    # From the left the first product is 30 x 30; the best order has none larger than an operand.
    assert largest(False) == 900
    assert largest("optimal") == 60


def test_without_opt_einsum(monkeypatch):
    monkeypatch.setitem(sys.modules, "opt_einsum", None)
    arrays = drawn([(2, 3), (3, 4), (4, 2)])
    inputs = [tensor(a) for a in arrays]
    wanted = np.einsum("ab,bc,cd", *arrays)
    same(wg.einsum("ab,bc,cd", *inputs), wanted)
    same(wg.einsum("ab,bc", *inputs[:2], optimize=True), arrays[0] @ arrays[1])
    for optimize in (True, "optimal"):
        with pytest.raises(ImportError, match=r"needs opt_einsum: install wengert\[einsum\]"):
            wg.einsum("ab,bc,cd", *inputs, optimize=optimize)


def test_errors():
    a, b = tensor(np.ones((2, 3))), tensor(np.ones((3, 4)))
    cases = [
        (ValueError, "needs subscripts", lambda: wg.einsum()),
        (ValueError, "for 2 operands, not 1", lambda: wg.einsum("ij,jk", a)),
        (ValueError, "operand 0 has 2 axes, and its subscripts name 1", lambda: wg.einsum("i", a)),
        (ValueError, "name 3", lambda: wg.einsum("ijk", a)),
        (ValueError, "'i' has length 2 and, in operand 1, 3", lambda: wg.einsum("ij,ik", a, b)),
        (ValueError, "operand 0 that share the label 'i'", lambda: wg.einsum("ii", a)),
        (ValueError, "'z' of the result is in no operand", lambda: wg.einsum("ij->z", a)),
        (ValueError, "'i' of the result comes twice", lambda: wg.einsum("ij->ii", a)),
        (ValueError, "is no label", lambda: wg.einsum("i1", a)),
        (ValueError, "is no label", lambda: wg.einsum("i.j", a)),
        (ValueError, "two ellipses", lambda: wg.einsum("...i...", a)),
        (ValueError, "two ellipses", lambda: wg.einsum(a, [..., 0, ...])),
        (ValueError, "under an ellipsis", lambda: wg.einsum("...i->i", a)),
        (ValueError, "needs a list of its labels", lambda: wg.einsum(a)),
        (ValueError, "leaves 2 operands", lambda: wg.einsum("ij,jk", a, b, optimize=[(0,)])),
        (ValueError, "from 2 operands", lambda: wg.einsum("ij,jk", a, b, optimize=[(0, 2)])),
        (ValueError, "from 2 operands", lambda: wg.einsum("ij,jk", a, b, optimize=[(1, 1)])),
        (TypeError, "numeric dtypes, not bool", lambda: wg.einsum("i", tensor(np.asarray([True])))),
        (TypeError, "wg.asarray", lambda: wg.einsum("i", [1.0])),
    ]
    for error, match, call in cases:
        with pytest.raises(error, match=match):
            call()


def test_two_operands_with_axes_of_length_1() -> None:
    x, y = np.arange(1.0, 4.0).reshape(3, 1), np.arange(12.0).reshape(3, 4)
    for text, a, b in (
        ("ij,ij->i", x, y),
        ("ij,ij->ij", y, x),
        ("ij,ij->", x, y),
        ("ij,j->i", x, y[0]),
    ):
        found = wg.einsum(text, wg.asarray(a), wg.asarray(b))
        np.testing.assert_allclose(found.numpy(), np.einsum(text, a, b))
