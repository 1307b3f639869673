"""All names of SciPy's modules: the room's, SciPy's own that refuse Tensors, or an error."""

import warnings
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.scripts import python

OURS = ("integrate", "interpolate", "linalg", "optimize", "signal", "special", "stats")
THEIRS = ("cluster.vq", "constants", "fft", "io", "ndimage", "sparse", "sparse.linalg", "spatial")
THEIRS += ("spatial.distance", "spatial.transform", "stats.mstats", "stats.qmc")
CALLS = ("f(x)", "f(x, x)", "f(m)", "f(m, x)", "f(1, x)", "f(x, 1)", "f(x, x, x)", "f(2, 3, x)")
#: Names that show, test or read something.
LEFT_OUT = {"test", "show_config", "face", "ascent", "electrocardiogram"}


@pytest.mark.parametrize("module", [*OURS, *THEIRS])
def test_all_names(module: str) -> None:
    """Each name is there; what is called with a tracked Tensor keeps its derivative, or raises."""
    theirs, ours = import_module(f"scipy.{module}"), import_module(f"wengert.scipy.{module}")
    names = [name for name in dir(theirs) if name[0] != "_"]
    public = set(getattr(theirs, "__all__", names))
    public = {n for n in public if not isinstance(getattr(theirs, n, None), ModuleType)}
    assert [name for name in public if not hasattr(ours, name)] == []
    lost = []
    x = wg.tensor([0.3, 0.6, 0.9], dtype=wg.float64, requires_grad=True)
    m = wg.tensor(np.eye(3) * 2 + 0.1, requires_grad=True)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in public - LEFT_OUT:
            f: Any = getattr(ours, name)
            if not callable(f) or (isinstance(f, type) and issubclass(f, BaseException)):
                continue
            for line in CALLS:
                try:
                    found = eval(line, {"f": f, "x": x, "m": m})
                except Exception:
                    continue
                leaves = found if isinstance(found, tuple | list) else [found]
                arrays = [one for one in leaves if isinstance(one, np.ndarray | np.generic)]
                numbers = [one for one in arrays if one.dtype.kind in "fc"]
                if numbers:
                    lost.append((name, line))
    assert lost == []


@pytest.mark.slow
def test_importing_changes_nothing_and_the_core_imports_none_of_it() -> None:
    code = (
        "import sys, wengert as wg\n"
        "assert not [m for m in sys.modules if m.startswith(('wengert.scipy', 'scipy'))]\n"
        "before = dict(vars(wg.Tensor)), wg.get_default_dtype()\n"
        "import wengert.scipy.sparse.linalg\n"
        "from wengert.scipy import fft, io, stats, optimize\n"
        "assert before == (dict(vars(wg.Tensor)), wg.get_default_dtype())\n"
        "assert 'wengert.numpy' not in sys.modules\n"
    )
    python("-c", code)


@pytest.mark.slow
def test_without_scipy_the_error_names_the_extra() -> None:
    code = (
        "import sys\nsys.modules['scipy'] = None\n"
        "try:\n    import wengert.scipy\n"
        "except ImportError as error:\n    print(error)\n"
    )
    assert "install wengert[scipy]" in python("-c", code).stdout


def test_classes_and_objects() -> None:
    from wengert.scipy.spatial.transform import Rotation

    from wengert.scipy import stats

    x = wg.tensor(0.5, requires_grad=True)
    assert isinstance(Rotation.from_euler("z", 0.5), Rotation)
    for program in (
        lambda: Rotation.from_euler("z", x),
        lambda: stats.vonmises(x),
        lambda: stats.vonmises.logpdf(0.1, x),
        lambda: stats.norm.entropy(0, x),
        lambda: stats.norm(0, x).mean(),
        lambda: stats.poisson.rvs(x),
    ):
        with pytest.raises(TypeError, match="would lose the derivative of a Tensor"):
            program()
    with pytest.raises(TypeError, match="scle"):
        stats.norm.logpdf(1.0, scle=x)

    class Own(stats.rv_continuous):  # type: ignore[misc, name-defined]
        def _pdf(self, x: Any) -> Any:
            return np.exp(-x)

    assert Own(a=0.0).cdf(1.0) == pytest.approx(1 - np.exp(-1))
