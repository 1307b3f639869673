"""The programs of the gallery in NumPy's and SciPy's names, beside NumPy and SciPy themselves."""

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.scripts import load


@pytest.fixture
def program(request: pytest.FixtureRequest) -> ModuleType:
    for library in ("scipy", "matplotlib"):
        pytest.importorskip(library)
    return load("examples", request.param)


def of(name: str) -> Any:
    return pytest.mark.parametrize("program", [name], indirect=True)


def plain(x: Any) -> Any:
    return np.asarray(x.detach().numpy() if isinstance(x, wg.Tensor) else x)


@pytest.mark.slow
@of("epidemic")
def test_the_epidemic_is_scipys(program: ModuleType, tmp_path: Path, capsys: Any) -> None:
    integrate, optimize = (
        pytest.importorskip("scipy.integrate"),
        pytest.importorskip("scipy.optimize"),
    )
    parameters, covariance = map(plain, program.main(["--output", str(tmp_path)]))
    days, counts = plain(program.DAYS), plain(program.IN_BED)

    def ill(t: Any, contacts: float, recovery: float, first: float) -> Any:
        def change(_: float, state: Any) -> Any:
            new = contacts * state[0] * state[1] / 763
            return np.stack([-new, new - recovery * state[1]])

        start = np.array([763 - first, first])
        given = {"t_eval": t, "rtol": 1e-10, "atol": 1e-10}
        return integrate.solve_ivp(change, (0, t[-1]), start, **given).y[1]

    expected, spread = optimize.curve_fit(ill, days, counts, p0=[2.0, 0.5, 1.0])
    np.testing.assert_allclose(parameters, expected, rtol=1e-4)
    np.testing.assert_allclose(covariance, spread, rtol=1e-2)
    step = 1e-5 * np.eye(3)
    slopes = [(ill(days, *expected + h) - ill(days, *expected - h)) / 2e-5 for h in step]
    width = np.sqrt(np.einsum("id,ij,jd->d", slopes, spread, slopes))
    found = program.band(program.DAYS, program.np.array(parameters), program.np.array(covariance))
    np.testing.assert_allclose(plain(found), width, rtol=1e-2)
    assert "infected by each    3.92" in capsys.readouterr().out
    assert (tmp_path / "epidemic.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@of("gaussian_process")
def test_the_slope_of_the_gaussian_process_is_the_formulas(
    program: ModuleType, tmp_path: Path
) -> None:
    curve = program.main(["--output", str(tmp_path)])
    height, length, noise = plain(curve.scales)
    x, y = map(plain, program.measure(1))
    at = np.array([0.7, 4.75])
    gap = at[:, None] - x
    near = height**2 * np.exp(-((gap / length) ** 2) / 2)
    matrix = height**2 * np.exp(-(((x[:, None] - x) / length) ** 2) / 2)
    matrix += noise**2 * np.eye(len(x))
    turned = -gap / length**2 * near
    variance = height**2 / length**2 - np.diag(turned @ np.linalg.solve(matrix, turned.T))
    mean, spread = curve.slope(program.np.array(at))
    np.testing.assert_allclose(
        plain(curve.mean(program.np.array(at))), near @ np.linalg.solve(matrix, y)
    )
    np.testing.assert_allclose(plain(mean), turned @ np.linalg.solve(matrix, y), rtol=1e-8)
    np.testing.assert_allclose(plain(spread), np.sqrt(variance), rtol=1e-8)
    logs = np.log(plain(curve.scales))
    costs = [
        program.cost(program.np.array(logs + h), program.np.array(x), program.np.array(y))
        for h in (0.0, 0.1, -0.1)
    ]
    assert min(map(float, costs)) == float(costs[0])
    assert (tmp_path / "gaussian_process.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@of("wave")
def test_the_wave_runs_back(program: ModuleType, tmp_path: Path, capsys: Any) -> None:
    true, found = map(plain, program.main(["--output", str(tmp_path), "--iterations", "25"]))
    assert np.linalg.norm(found - true) < 0.25 * np.linalg.norm(true)
    assert "2304 pixels from 4400 numbers, after 25" in capsys.readouterr().out
    heard, gen = program.listen(program.np.array(true)), np.random.default_rng(1)
    pixels, way = gen.normal(size=2304), gen.normal(size=2304)
    ends = [float(program.cost(program.np.array(pixels + h * way), heard)) for h in (1e-4, -1e-4)]
    slope = np.vdot(plain(wg.grad(program.cost)(pixels, heard)), way)
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-4, rtol=1e-7)
    assert (tmp_path / "wave.png").read_bytes().startswith(b"\x89PNG")
