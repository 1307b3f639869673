"""Programs with scales from 1e-30 to 1e30, and of half precision, against float64."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import wengert as wg
from tests.fuzz.engines import WENGERT
from tests.fuzz.rounding import RANGES, outside
from tests.fuzz.scaled import SCALED
from tests.fuzz.scales import AVOID, examine, program
from tests.fuzz.table import TABLE
from tests.ops.cases import examples

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


@pytest.mark.slow
def test_scales_agree_with_pytorch_in_double_precision() -> None:
    found = [f for s in range(examples(200)) for f in examine(s, short=False)[1]]
    assert not found, "\n".join(f"{f.kind}: {f.message}\n{f.snippet}" for f in found)


def _count_of_the_dtype(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    total = wg.sum(x, axis=axis, keepdims=keepdims)
    return wg.divide(total, wg.asarray(x.size / max(total.size, 1), dtype=x.dtype))


def _norm_unscaled(x: Any, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    if ord != 2:
        return wg.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
    return wg.sqrt(wg.sum(wg.square(x), axis=axis, keepdims=keepdims))


def _steep_above_4(x: Any, **more: Any) -> Any:
    extra = wg.where(wg.greater(x, 4), wg.multiply(wg.subtract(x, 4), 0.02), 0)
    return wg.add(wg.nn.functional.softplus(x, **more), wg.subtract(extra, extra.detach()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "changed", "text"),
    [
        ("mean", _count_of_the_dtype, "xp.mean(xp."),
        ("linalg.vector_norm", _norm_unscaled, "xp.linalg.vector_norm("),
        ("nn.softplus", _steep_above_4, "xp.nn.softplus("),
    ],
    ids=["count", "norm", "slope"],
)
def test_a_planted_fault_is_found(
    name: str, changed: Any, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, _, function = name.rpartition(".")
    around = getattr(WENGERT, room) if room else WENGERT
    known = {k: getattr(around, k) for k in dir(around) if not k.startswith("_")}
    for seed in range(4000):
        if text not in program(seed)[0].source or examine(seed, short=False)[1]:
            continue
        with monkeypatch.context() as patch:
            if room:
                patch.setattr(WENGERT, room, SimpleNamespace(**known | {function: changed}))
            else:
                patch.setattr(WENGERT, name, changed, raising=False)
            if examine(seed, short=False)[1]:
                return
    pytest.fail(f"{name} may be wrong, and no program notices")


def test_bounds() -> None:
    """What may be, and what not, within the normal range and beyond it."""
    range_ = RANGES["float16"]

    def wrong(
        found: float, expected: float, saturated: float, moved: float, within: bool, *second: bool
    ) -> bool:
        made = (np.asarray(x) for x in (found, expected, moved, saturated))
        return bool(outside(*made, range_, within, *second))

    assert not wrong(1.001, 1.0, 1.0, 0.0, True)
    assert wrong(1.01, 1.0, 1.0, 0.0, True)
    assert not wrong(1.01, 1.0, 1.0, 0.01, True)
    assert wrong(np.inf, 1.0, 1.0, 0.0, True)
    assert wrong(np.nan, 1.0, 1.0, 0.0, True)
    assert not wrong(np.nan, 1.0, 1.0, 0.0, False)
    assert not wrong(np.nan, 1.0, 1.0, 2.0, True, True)  # a second derivative without a sign
    assert wrong(np.nan, 1.0, 1.0, 0.5, True, True)
    assert wrong(np.nan, 0.0, 0.0, 0.5, True, True)
    assert wrong(np.nan, 1.0, 1.0, 2.0, True)
    assert not wrong(0.0, 0.01, 0.0, 0.0, False)  # as IEEE 754 has it after an overflow
    assert wrong(0.0, 0.01, 0.0, 0.0, True)
    assert wrong(0.0, 0.01, np.inf, 0.0, False)
    assert wrong(60000.0, 1e9, np.inf, 0.0, False)
    assert not wrong(np.inf, 1e9, np.inf, 0.0, False)
    assert not wrong(0.0, 1e-8, 0.0, 0.0, True)


def test_programs_are_those_of_their_seeds() -> None:
    assert [program(s)[0].source for s in range(20)] == [program(s)[0].source for s in range(20)]


@pytest.mark.slow
def test_every_recipe_and_dtype_is_taken() -> None:
    made = [program(s)[0] for s in range(1500)]
    names = {recipe.__name__ for recipe in [*TABLE, *SCALED.table]} - AVOID
    assert {name for one in made for name in one.features} == names
    assert {one.dtype for one in made} == {"float16", "bfloat16", "float32", "float64", "complex64"}
    sizes = [float(abs(x).max()) for one in made for x in one.inputs.values() if x.any()]
    assert min(sizes) < 1e-29
    assert max(sizes) > 1e29
