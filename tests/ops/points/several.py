"""Functions of several elements, judged along lines: what stands at each place depends on x."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath

import wengert as wg
from tests.ops.points import jets as m
from tests.ops.points.jets import Jet
from tests.ops.points.judge import Row
from wengert.nn import functional as F

__all__ = ["COMPLEX_LINES", "LINES"]

inf = math.inf
#: Where lines are looked at: small and moderate numbers, with both signs.
HERE = [s * x for x in (0.0, 1e-20, 2.0**-30, 0.25, 1.0, 1.5, 3.0, 9.0, 40.0) for s in (1, -1)]
#: With those whose squares and cubes vanish or overflow.
FAR = [*HERE, 1e-300, 1e-160, 1e-25, 1e15, 1e25, 1e160, 1e300]


def along(*places: tuple[float, float]) -> Callable[[Any], Any]:
    """Vectors of elements ``a + b x``, one for each x."""
    return lambda x: wg.stack([wg.multiply(x, b) + a for a, b in places], axis=-1)


def matrices(at: Sequence[Sequence[float]], by: Sequence[Sequence[float]]) -> Callable[[Any], Any]:
    """Matrices ``at + x by``, one for each x."""

    def function(x: Any) -> Any:
        rows = [
            wg.stack([wg.multiply(x, b) + a for a, b in zip(*row, strict=True)], axis=-1)
            for row in zip(at, by, strict=True)
        ]
        return wg.stack(rows, axis=-2)

    return function


def L(
    name: str, exact: Callable[[Jet], Jet], f: Callable[[Any], Any], *, low: float = -inf,
    high: float = inf, at: Sequence[Any] = HERE, floor: float = 4, **more: Any,
) -> Row:  # fmt: skip
    return Row(name, f, exact, low, high, at=at, floor=floor, **more)


# -- exponentials --------------------------------------------------------------------------------


def exponentials() -> list[Row]:
    shares = along((0, 1), (1, 0), (-inf, 0))
    return [
        L("softmax of (x, 1, -inf)", lambda x: m.expit(x - 1),
          lambda x: wg.softmax(shares(x), axis=-1)[..., 0], at=FAR),
        L("log_softmax of (x, 1, -inf)", lambda x: m.log_expit(x - 1),
          lambda x: wg.log_softmax(shares(x), axis=-1)[..., 0], at=FAR),
        L("log_softmax of (x, 1, -inf), second", lambda x: m.log_expit(1 - x),
          lambda x: wg.log_softmax(shares(x), axis=-1)[..., 1], at=FAR),
        L("logsumexp of (x, 1, -inf)", lambda x: m.softplus(x - 1) + 1,
          lambda x: wg.logsumexp(shares(x), axis=-1), at=FAR),
        L("logsumexp of (x, x, 2x)", lambda x: m.softplus(x - mpmath.log(2)) + x + mpmath.log(2),
          lambda x: wg.logsumexp(along((0, 1), (0, 1), (0, 2))(x), axis=-1), at=FAR),
        L("logsumexp of (x, 1), weights (2, 0)", lambda x: x + mpmath.log(2),
          lambda x: wg.logsumexp(along((0, 1), (1, 0))(x), axis=-1, b=wg.asarray([2.0, 0.0])),
          at=FAR),
        L("logsumexp(0, b=x)", m.log,
          lambda x: wg.logsumexp(wg.zeros_like(x)[..., None], axis=-1, b=x[..., None]),
          low=0, at=FAR),
    ]  # fmt: skip


# -- losses --------------------------------------------------------------------------------------


def _two(near: Callable[[Jet], Jet], far: Callable[[Jet], Jet], width: float) -> Any:
    return lambda x: near(x) if abs(x.c[0]) < width else far(x)


def _full(value: float) -> Callable[[Any], Any]:
    return lambda x: wg.full_like(x, value)


def losses() -> list[Row]:
    away = {"singular": (1.5, -1.5)}
    return [
        L("huber_loss(x, 0, delta=1.5)",
          _two(lambda x: x * x / 2, lambda x: ((x if x.c[0] > 0 else -x) - 0.75) * 1.5, 1.5),
          lambda x: F.huber_loss(x, wg.zeros_like(x), delta=1.5, reduction="none"),
          at=FAR, **away),
        L("smooth_l1_loss(x, 0, beta=1.5)",
          _two(lambda x: x * x / 3, lambda x: (x if x.c[0] > 0 else -x) - 0.75, 1.5),
          lambda x: F.smooth_l1_loss(x, wg.zeros_like(x), beta=1.5, reduction="none"),
          at=FAR, **away),
        L("F.leaky_relu(-2, x)", lambda x: x * -2, lambda x: F.leaky_relu(_full(-2)(x), x), at=FAR),
        L("F.leaky_relu(0, x)", lambda x: x * 0, lambda x: F.leaky_relu(_full(0)(x), x), at=FAR),
        L("F.binary_cross_entropy(x, 0)", lambda x: -m.log(1 - x), lambda x:
            F.binary_cross_entropy(x, _full(0)(x), reduction="none"), low=1e-40, high=0.999),
        L("F.binary_cross_entropy(x, 1)", lambda x: -m.log(x), lambda x:
            F.binary_cross_entropy(x, _full(1)(x), reduction="none"), low=1e-40, high=1.1),
        *[
            L(f"F.binary_cross_entropy_with_logits(x, {y})", exact, lambda x, y=y:
                F.binary_cross_entropy_with_logits(x, _full(y)(x), reduction="none"), at=FAR)
            for y, exact in ((0, m.softplus), (1, lambda x: m.softplus(-x)))
        ],
        *[
            L(f"F.binary_cross_entropy_with_logits(x, {y}), pos_weight 3", exact, lambda x, y=y:
                F.binary_cross_entropy_with_logits(
                    x, _full(y)(x), reduction="none", pos_weight=_full(3)(x)), at=FAR)
            for y, exact in ((0, m.softplus), (1, lambda x: m.softplus(-x) * 3))
        ],
        *[
            L(f"F.cross_entropy of (x, 1), class {k}", exact, lambda x, k=k: F.cross_entropy(
                along((0, 1), (1, 0))(x), wg.full(x.shape, k, dtype=wg.int64), reduction="none"),
              at=FAR)
            for k, exact in ((0, lambda x: m.softplus(1 - x)), (1, lambda x: m.softplus(x - 1)))
        ],
        L("F.cross_entropy of (x, 1), probabilities (1, 0)", lambda x: m.softplus(1 - x),
          lambda x: F.cross_entropy(
              along((0, 1), (1, 0))(x), along((1, 0), (0, 0))(x), reduction="none"), at=FAR[:-2]),
        L("F.cross_entropy of (x, 1, -inf), probabilities (1, 0, 0)", lambda x: m.softplus(1 - x),
          lambda x: F.cross_entropy(
              along((0, 1), (1, 0), (-inf, 0))(x), along((1, 0), (0, 0), (0, 0))(x),
              reduction="none"), at=FAR[:-2]),
        L("F.cross_entropy of (2, 1), probabilities (x, 0)",
          lambda x: x * (mpmath.log1p(mpmath.exp(-1))),
          lambda x: F.cross_entropy(
              along((2, 0), (1, 0))(x), along((0, 1), (0, 0))(x), reduction="none"), at=FAR[:-2]),
    ]  # fmt: skip


# -- linear algebra ------------------------------------------------------------------------------


def _exact_det(at: Any, by: Any) -> Callable[[Jet], Jet]:
    def minor(rows: list[list[Jet]]) -> Jet:
        if not rows:
            return Jet.of(1)
        total = Jet.of(0)
        for j, entry in enumerate(rows[0]):
            rest = minor([[*row[:j], *row[j + 1 :]] for row in rows[1:]])
            total = total + entry * rest * (-1) ** j
        return total

    return lambda x: minor(
        [[x * b + a for a, b in zip(*row, strict=True)] for row in zip(at, by, strict=True)]
    )


ONES = ((1, 2, 3), (4, 5, 6), (7, 8, 9))  # of rank 2
RANK_ONE = ((1, 2, -1), (2, 4, -2), (3, 6, -3))
NOTHING = ((0, 0, 0),) * 3
SHIFT = ((1, -1, 2), (0, 3, 1), (2, 1, -1))
TURNED = tuple(tuple(a * (1 + 2j) for a in row) for row in RANK_ONE)
PHASES = ((1j, -1, 2), (0, 3 - 1j, 1), (2, 1j, -1))
SLIGHT = [0.0, 1e-30, 2.0**-40, 0.25, -0.5, 1.0, -2.0, 8.0]


RANKS = (("rank 2", ONES), ("rank 1", RANK_ONE), ("rank 0", NOTHING))


def _of_det(name: str, at: Any, by: Any, **more: Any) -> Row:
    function = matrices(at, by)
    return L(
        f"det at {name}", _exact_det(at, by), lambda x: wg.linalg.det(function(x)),
        at=SLIGHT, floor=1e4, **more,
    )  # fmt: skip


def algebra() -> list[Row]:
    rows = [_of_det(name, at, SHIFT) for name, at in RANKS]
    rows.append(_of_det("rank 0, 1 x 1", ((0,),), ((2,),)))
    return rows


LINES = [*exponentials(), *losses(), *algebra()]

TURNED_RANKS = (("rank 2", ONES), ("rank 1", TURNED), ("rank 0", NOTHING))
COMPLEX_LINES = [
    _of_det(f"{name}, complex", at, PHASES, cut=lambda z: False) for name, at in TURNED_RANKS
]
