"""Einstein's notation: products of arrays, summed over the labels that the result lacks."""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import index
from typing import Any, NamedTuple

import numpy as np

from wengert.backends import dtype_of
from wengert.interpreters.batching import by_labels
from wengert.ops.axes import raw_array
from wengert.ops.beyond.subscripts import Labels, parse
from wengert.ops.indexing import getitem
from wengert.ops.manipulation import permute_dims, reshape
from wengert.ops.statistical import sum as sum_over
from wengert.tape.primitive import Primitive
from wengert.tape.tensor import Tensor, wrap
from wengert.tape.views import show

Subscripts = tuple[str, str, str]
Shape = tuple[int, ...]

# -- two operands: the primitive -----------------------------------------------------------------

# Each label is in at least two of the three terms, the operands and the result, and at most once in
# each. That stays true when a cotangent takes the place of a term, so the primitive is its own
# derivative, to any order.


def _product(xp: Any, x1: Any, x2: Any, *, subscripts: Subscripts) -> Any:
    """One product of stacks of matrices: labels in all three terms are those of the stacks."""
    summed, first, second, shape, axes = _layout(subscripts, tuple(x1.shape), tuple(x2.shape))
    x1, x2 = _arrange(xp, x1, *first), _arrange(xp, x2, *second)
    out = xp.matmul(x1, x2) if summed else x1 * x2
    return xp.permute_dims(xp.reshape(out, shape), axes)


def _arrange(xp: Any, x: Any, axes: Shape, shape: Shape, turned: bool) -> Any:
    x = xp.reshape(xp.permute_dims(x, axes), shape)
    return xp.matrix_transpose(x) if turned else x


@lru_cache(maxsize=1024)
def _layout(subscripts: Subscripts, shape1: Shape, shape2: Shape) -> Any:
    """Whether there are sums, how `_arrange` makes factors, and the product's shape and axes."""
    first, second, result = subscripts
    shared = [c for c in result if c in first and c in second]
    left = [c for c in result if c not in second]
    right = [c for c in result if c not in first]
    summed = [c for c in first if c not in result]
    length = {**dict(zip(first, shape1, strict=True)), **dict(zip(second, shape2, strict=True))}
    order = [*shared, *left, *right] if summed else list(result)
    if summed:
        x1 = _matrices(first, (shared, left, summed), length)
        x2 = _matrices(second, (shared, summed, right), length)
    else:  # the operands are multiplied element by element
        x1, x2 = _space(first, order, shape1), _space(second, order, shape2)
    shape, axes = [length[c] for c in order], [order.index(c) for c in result]
    return bool(summed), x1, x2, tuple(shape), tuple(axes)


def _matrices(labels: str, groups: tuple[list[str], ...], length: dict[str, int]) -> Any:
    """A stack of matrices; where that is a copy, its last axis stays the last one.

    Copies of short rows take ten times as long, and a product of transposed matrices none.
    """
    stack, rows, columns = groups
    turned = bool(labels[-1:] and labels[-1] in rows and columns)
    groups = (stack, columns, rows) if turned else groups
    axes = [labels.index(c) for group in groups for c in group]
    shape = [math.prod([length[c] for c in group]) for group in groups]
    return tuple(axes), tuple(shape if stack else shape[1:]), turned


def _space(labels: str, order: list[str], given: Shape) -> Any:
    """Axes in an order of labels, and of length 1 where there is none."""
    axes = [labels.index(c) for c in order if c in labels]
    shape = [given[labels.index(c)] if c in labels else 1 for c in order]
    return tuple(axes), tuple(shape), False


einsum_pair = Primitive(
    "einsum_pair",
    ["x1", "x2"],
    {
        "x1": lambda xp, g, x2, subscripts: xp.einsum_pair(
            g, xp.conj(x2), subscripts=subscripts[::-1]
        ),
        "x2": lambda xp, g, x1, subscripts: xp.einsum_pair(
            xp.conj(x1), g, subscripts=(subscripts[0], subscripts[2], subscripts[1])
        ),
    },
    linear="each",
    composite=_product,
    batch=by_labels,
).bind

# -- one operand ---------------------------------------------------------------------------------


def _diagonal(x: Any, axes: int) -> Any:
    return np.einsum("i" * axes + "...->i...", x)


class Term(NamedTuple):
    """An operand and the labels of its axes."""

    x: Any
    labels: Labels

    def without_repeats(self) -> "Term":
        """The diagonal where a label comes twice."""
        x, labels = self.x, self.labels
        for label in dict.fromkeys(labels):
            axes = [i for i, c in enumerate(labels) if c == label]
            if len(axes) > 1:
                n = x.shape[axes[0]]
                rest = [i for i in range(len(labels)) if i not in axes]
                whole = x = permute_dims(x, (*axes, *rest))
                # In the axes joined to one, the diagonal's elements are equally far apart.
                x = reshape(x, (n ** len(axes), *[x.shape[i] for i in range(len(axes), x.ndim)]))
                x = getitem(x, slice(0, None, sum(n**i for i in range(len(axes)))))
                show(x, whole, _diagonal, {"axes": len(axes)})
                labels = (label, *[labels[i] for i in rest])
        return Term(x, labels)

    def without(self, dropped: Iterable[Any]) -> "Term":
        """The sum over some labels."""
        gone = {*dropped}
        axes = tuple([i for i, c in enumerate(self.labels) if c in gone])
        if not axes:
            return self
        x = sum_over(self.x, axis=axes, dtype=self.x.dtype)
        return Term(x, tuple([c for c in self.labels if c not in gone]))

    def without_broadcast(self, lengths: dict[Any, int]) -> "Term":
        """The term without the axes of length 1 that are longer in another operand."""
        keep = [
            i for i, c in enumerate(self.labels) if not (self.x.shape[i] == 1 and lengths[c] != 1)
        ]
        if len(keep) == len(self.labels):
            return self
        x = reshape(self.x, tuple([self.x.shape[i] for i in keep]))
        return Term(x, tuple([self.labels[i] for i in keep]))


def _contract(terms: Sequence[Term], kept: set[Any], result: Labels | None) -> Term:
    """The product of one or two terms, summed over the labels that are not kept."""
    if len(terms) == 1:
        term = terms[0].without(c for c in terms[0].labels if c not in kept)
    else:
        first, second = terms
        first = first.without(c for c in first.labels if c not in kept and c not in second.labels)
        second = second.without(c for c in second.labels if c not in kept and c not in first.labels)
        every = list(dict.fromkeys((*first.labels, *second.labels)))
        order = [c for c in every if c in kept]
        if result is not None and {*order} == {*result}:
            order = list(result)
        letter = {c: chr(ord("a") + i) for i, c in enumerate(every)}
        terms_labels = first.labels, second.labels, order
        subscripts = tuple(["".join([letter[c] for c in labels]) for labels in terms_labels])
        term = Term(einsum_pair(first.x, second.x, subscripts=subscripts), tuple(order))
    if result is not None and term.labels != result:
        order = [term.labels.index(c) for c in result]
        return Term(permute_dims(term.x, tuple(order)), result)
    return term


# -- several operands ----------------------------------------------------------------------------


def _lengths(terms: Sequence[Term]) -> dict[Any, int]:
    """The length of each label; axes of length 1 broadcast between operands."""
    lengths: dict[Any, int] = {}
    for at, term in enumerate(terms):
        own: dict[Any, int] = {}
        for label, n in zip(term.labels, term.x.shape, strict=True):
            if own.setdefault(label, n) != n:
                raise ValueError(
                    f"einsum: the axes of operand {at} that share the label {label!r} have lengths "
                    f"{own[label]} and {n}"
                )
        for label, n in own.items():
            known = lengths.get(label, 1)
            if n not in (1, known) and known != 1:
                raise ValueError(
                    f"einsum: label {label!r} has length {known} and, in operand {at}, {n}"
                )
            lengths[label] = known if n == 1 else n
    return lengths


def _path(terms: Sequence[Term], result: Labels, optimize: Any) -> list[Shape]:
    """Places of the operands of each step; the result of a step joins at the end."""
    if isinstance(optimize, list | tuple):
        steps = optimize[1:] if optimize[:1] in (["einsum_path"], ("einsum_path",)) else optimize
        return [tuple([index(i) for i in step]) for step in steps]
    straight: list[Shape] = [(0, 1), *[(0, n) for n in range(len(terms) - 2, 0, -1)]]
    if optimize is False or (len(terms) < 3 and (optimize is None or optimize is True)):
        return straight if len(terms) > 1 else [(0,)]
    try:
        import opt_einsum
    except ImportError:
        if optimize is None:
            return straight
        raise ImportError(
            f"einsum with optimize={optimize!r} needs opt_einsum: install wengert[einsum], or give "
            "the path, or optimize=False for the operands' own order"
        ) from None
    labels = dict.fromkeys(c for term in terms for c in term.labels)
    symbol = {c: opt_einsum.get_symbol(i) for i, c in enumerate(labels)}
    inputs = ",".join(["".join([symbol[c] for c in term.labels]) for term in terms])
    found, _ = opt_einsum.contract_path(
        f"{inputs}->{''.join([symbol[c] for c in result])}",
        *[tuple(term.x.shape) for term in terms],
        shapes=True,
        optimize="auto" if optimize is None or optimize is True else optimize,
    )
    return [tuple(step) for step in found]


@lru_cache(maxsize=256)
def _subscripts(text: str, shape1: tuple[int, ...], shape2: tuple[int, ...]) -> Subscripts | None:
    """Those of one product, if that is all; None where there are other steps, or errors."""
    given, arrow, result = text.partition("->")
    first, comma, second = given.partition(",")
    terms, letters = (first, second, result), first + second + result
    if not (arrow and comma and letters.isascii() and letters.isalpha()):
        return None
    one, two, three = sets = [{*term} for term in terms]
    known = dict(zip(first, shape1, strict=False))
    alike = all(known.get(c, n) == n for c, n in zip(second, shape2, strict=False))
    fits = [len(shape1), len(shape2), len(result)] == [len(own) for own in sets]
    whole = one <= two | three and two <= one | three and three <= one | two
    if not (alike and fits and whole and len(letters) == sum(map(len, sets))):
        return None
    letter = {c: chr(ord("a") + i) for i, c in enumerate(dict.fromkeys(letters))}
    return tuple(["".join([letter[c] for c in term]) for term in terms])  # type: ignore[return-value]


def einsum(*operands: Any, optimize: Any = None) -> Tensor:
    """Product of arrays, summed over labels of their axes: Einstein's notation.

    Each step is one matrix product of stacks, on any library. The cotangent of an operand is the
    einsum of the result's with the conjugates of the others. Raises `ValueError` if the subscripts
    or the path do not fit the operands; `ImportError` if ``optimize`` asks for opt_einsum and it is
    not installed. NumPy: ``einsum``.

    Parameters
    ----------
    *operands
        Subscripts and the arrays, as in ``einsum("ij,jk->ik", a, b)``, or the arrays, each with a
        list of labels (integers, and an Ellipsis), and the result's list last, as in
        ``einsum(a, [0, 1], b, [1, 2], [0, 2])``. The arrays are of numeric dtypes.

        A label that comes twice in one operand takes the diagonal. ``...`` stands for the axes
        that have no label; they broadcast, as axes of length 1 do. Without ``->``, the result has
        the axes of ``...``, and then those labels that come once, in alphabetical order.
    optimize : bool, str, sequence of tuples, or callable, optional
        In which order more than two operands are multiplied. By default opt_einsum finds it where
        it is installed, and otherwise it is the operands' own, as with False. True and names of
        opt_einsum's algorithms (``"optimal"``, ``"greedy"``, ...) ask for it. A path, such as
        ``[(1, 2), (0, 1)]``, says which operands each step takes; what they give joins as the last
        one.

    Examples
    --------
    >>> a, b = wg.ones((2, 3)), wg.ones((3, 4))
    >>> wg.einsum("ij,jk->ik", a, b).shape
    (2, 4)
    >>> wg.einsum("ij->j", a)
    tensor([2., 2., 2.])
    """
    if len(operands) == 3 and type(operands[0]) is str and optimize is None:
        x, y = wrap(operands[1]), wrap(operands[2])
        direct = _subscripts(operands[0], tuple(x.shape), tuple(y.shape))
        if direct is not None and "bool" not in (x.dtype.kind, y.dtype.kind):
            return einsum_pair(x, y, subscripts=direct)  # type: ignore[no-any-return]
    arrays, inputs, result = parse(operands)
    terms = [Term(wrap(x), labels) for x, labels in zip(arrays, inputs, strict=True)]
    for term in terms:
        if dtype_of(raw_array(term.x).dtype).kind == "bool":
            raise TypeError("einsum needs numeric dtypes, not bool")
    lengths = _lengths(terms)
    terms = [term.without_broadcast(lengths).without_repeats() for term in terms]
    path = _path(terms, result, optimize)
    for number, step in enumerate(path):
        if not step or len({*step}) != len(step) or not {*step} <= {*range(len(terms))}:
            raise ValueError(
                f"einsum: step {step} of the path does not choose from {len(terms)} operands"
            )
        chosen = [terms[i] for i in step]
        terms = [term for i, term in enumerate(terms) if i not in step]
        last = number == len(path) - 1 and not terms
        # A step of more than two operands multiplies them one after the other.
        made, waiting = chosen[:2], chosen[2:]
        for _ in range(len(waiting) + 1):
            rest = {c for term in (*terms, *waiting) for c in term.labels}
            asked = result if last and not waiting else None
            made = [_contract(made, rest.union(result), asked), *waiting[:1]]
            waiting = waiting[1:]
        terms += made
    if len(terms) != 1:
        raise ValueError(f"einsum: the path leaves {len(terms)} operands, and it has to leave one")
    answer: Tensor = terms[0].x
    # If the result is an operand itself, it becomes a view, as a permuted operand is.
    given = any(answer is x for x in arrays)
    return reshape(answer, tuple(answer.shape)) if given else answer
