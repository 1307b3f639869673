"""The benchmarks' arithmetic, and that contestants do the same work. Nothing is timed here."""

import importlib.util
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import wengert as wg


@pytest.fixture(scope="module")
def benchmarks() -> Iterator[ModuleType]:
    """The package, whose import binds the process to a core: undone afterwards."""
    environment = dict(os.environ)
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    yield importlib.import_module("benchmarks")
    os.environ.clear()
    os.environ.update(environment)
    if cores is not None:
        os.sched_setaffinity(0, cores)


OURS = "Wengert", "Wengert compiled", "NumPy by hand"
#: Rows of second derivatives, which nobody has by hand.
SECOND = "hvp", "hessian"


def workload_names() -> list[str]:
    """The rows, whose names stand in a file that is read without binding the process to a core."""
    source = Path(__file__).parents[2] / "benchmarks" / "workloads" / "rows.py"
    return re.findall(r'^    "([a-z0-9-]+)": Row\(', source.read_text(), re.MULTILINE)


@pytest.mark.whole
@pytest.mark.parametrize("name", workload_names())
def test_workloads_agree_with_numpy_by_hand(benchmarks: ModuleType, name: str) -> None:
    from benchmarks.workloads.rows import ROWS
    from benchmarks.workloads.workload import agree

    if importlib.util.find_spec("scipy") is None and name.startswith(("black", "gp")):
        pytest.skip("by hand it needs SciPy")
    row = ROWS[name]
    computes = row.make(*row.small).contestants(OURS)
    if name in SECOND:
        difference_is_small(row.make(*row.small), computes["Wengert"])
    agree(computes)


@pytest.mark.whole
@pytest.mark.parametrize("name", workload_names())
def test_compiled_workloads_have_programs(
    benchmarks: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the compiled contestant is the eager one."""
    from benchmarks.workloads.rows import ROWS

    compiled, compile_ = [], partial(wg.compile, strict=True)

    def note(*args: Any, **options: Any) -> Any:
        compiled.append(compile_(*args, **options))
        return compiled[-1]

    monkeypatch.setattr(wg, "compile", note)
    row = ROWS[name]
    for compute in row.make(*row.small).contestants(["Wengert compiled"]).values():
        for _ in range(3):
            compute()
    assert not [x for x in compiled if "eagerly" in str(getattr(x, "report", ""))]


def difference_is_small(workload: Any, compute: Any) -> None:
    """Compare second derivatives with differences of the gradient by hand."""
    from benchmarks.workloads.science import n_body
    from benchmarks.workloads.workload import flat

    x = workload.inputs[0]
    gradient = n_body(len(x) // 3).by_hand
    assert gradient is not None
    columns = [
        (gradient(x + step)[1][0] - gradient(x - step)[1][0]) / 2e-5
        for step in 1e-5 * np.eye(len(x))
    ]
    hessian = np.stack(columns, axis=1)
    expected = hessian if workload.kind == "hessian" else hessian.sum(axis=1)
    np.testing.assert_allclose(flat(compute())[0], expected, atol=1e-6 * np.abs(hessian).max())


# PyTorch's forward mode scripts its rules when it is first used.
@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning:torch")
@pytest.mark.oracle
@pytest.mark.parametrize("name", workload_names())
def test_peers_agree_with_wengert(benchmarks: ModuleType, name: str) -> None:
    from benchmarks.workloads.rows import ROWS
    from benchmarks.workloads.workload import LIBRARIES, agree

    row = ROWS[name]
    agree(row.make(*row.small).contestants(["Wengert", *list(LIBRARIES)[3:]]))


@pytest.mark.parametrize(
    "wrong",
    [
        [np.asarray([1.0, 2.0 + 1e-8])],
        [np.asarray([1.0, np.nan])],
        [np.asarray([1.0, 2.0], np.float32)],
        [np.asarray([[1.0, 2.0]])],
        [np.asarray([1.0, 2.0]), np.asarray(1.0)],
    ],
)
def test_what_disagrees_is_not_timed(benchmarks: ModuleType, wrong: list[Any]) -> None:
    from benchmarks.workloads.workload import agree

    right = (np.asarray([1.0, 2.0]),)
    agree({"a": lambda: right, "b": lambda: [np.asarray([1.0, 2.0 + 1e-14])]})
    with pytest.raises(AssertionError):
        agree({"a": lambda: right, "b": lambda: wrong})
