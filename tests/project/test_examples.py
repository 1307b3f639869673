"""The examples run, and do what they say."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import wengert as wg

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def digits() -> ModuleType:
    for library in ("sklearn", "tqdm", "matplotlib", "safetensors"):
        pytest.importorskip(library)
    return load("digits")


@pytest.mark.slow
def test_digits_learns(digits: ModuleType, tmp_path: Path, capsys: Any) -> None:
    with wg.use_backend("numpy"):
        accuracy = digits.main(["--output", str(tmp_path)])
    assert accuracy >= 0.97
    assert f"test accuracy: {accuracy:.2%}" in capsys.readouterr().out
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_onnxruntime_alone_learns_as_eager_code_does(tmp_path: Path) -> None:
    for library in ("sklearn", "ndonnx", "onnxruntime"):
        pytest.importorskip(library)
    in_onnxruntime, eager = load("onnx_training").main(["--output", str(tmp_path)])
    assert in_onnxruntime >= 0.97 and abs(in_onnxruntime - eager) < 0.01


@pytest.mark.slow
def test_digits_saves_what_it_has_learnt(digits: ModuleType, tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    with wg.use_backend("numpy"):
        accuracy = digits.main(["--epochs", "2", "--hidden", "32", "--output", str(tmp_path)])
        _, held_out = digits.load()
    weights = load_file(tmp_path / "weights.safetensors")
    assert {name: array.shape for name, array in weights.items()} == {
        "0.weight": (32, 64),
        "0.bias": (32,),
        "2.weight": (10, 32),
        "2.bias": (10,),
    }
    hidden = np.maximum(held_out.images.numpy() @ weights["0.weight"].T + weights["0.bias"], 0)
    logits = hidden @ weights["2.weight"].T + weights["2.bias"]
    assert np.mean(logits.argmax(axis=1) == held_out.digits.numpy()) == pytest.approx(accuracy)


@pytest.mark.slow
def test_digits_starts_alike_and_trains_alike_everywhere(
    digits: ModuleType, tmp_path: Path, backend: Any
) -> None:
    """Five steps on any backend give NumPy's weights to rounding."""
    from safetensors.numpy import load_file

    arguments = ["--steps", "5", "--hidden", "16", "--batch-size", "16", "--output"]
    digits.main([*arguments, str(tmp_path / "here")])
    with wg.use_backend("numpy"):
        digits.main([*arguments, str(tmp_path / "numpy")])
    here, there = (load_file(tmp_path / n / "weights.safetensors") for n in ("here", "numpy"))
    for name, expected in there.items():
        np.testing.assert_allclose(here[name], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_digits_compiled_trains_as_it_does_eagerly(
    digits: ModuleType, tmp_path: Path, backend: Any
) -> None:
    """The same weights, to the bit where JAX does not fuse."""
    from safetensors.numpy import load_file

    # On dask each loss is computed from the start, since nothing is kept on the way.
    steps = "4" if wg.get_backend().name == "dask" else "12"
    arguments = ["--steps", steps, "--hidden", "16", "--batch-size", "128", "--output"]
    digits.main([*arguments, str(tmp_path / "eager")])
    digits.main([*arguments, str(tmp_path / "compiled"), "--compile"])
    eager, compiled = (
        load_file(tmp_path / n / "weights.safetensors") for n in ("eager", "compiled")
    )
    for name, expected in eager.items():
        if wg.get_backend().name == "jax":
            np.testing.assert_allclose(compiled[name], expected, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(compiled[name], expected)


@pytest.mark.slow
def test_batches_cover_the_data_once(digits: ModuleType) -> None:
    split = digits.Split(wg.reshape(wg.arange(10), (10, 1)), wg.arange(10))
    seen = [(x, y) for x, y in split.batches(4)]
    assert [len(y) for _, y in seen] == [4, 4, 2]
    assert sorted(n for _, y in seen for n in y.tolist()) == list(range(10))
    assert all(x[:, 0].tolist() == y.tolist() for x, y in seen)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--epochs", "0"], ["--batch-size", "-1"], ["--lr", "0"]])
def test_digits_refuses_nonsense(digits: ModuleType, arguments: list[str], capsys: Any) -> None:
    with pytest.raises(SystemExit):
        digits.main(arguments)
    assert "should be positive" in capsys.readouterr().err


def test_computation_graph(capsys: Any) -> None:
    load("computation_graph").main()
    out = capsys.readouterr().out
    assert "The grad_fn of a, which nobody computed: None" in out
    assert out.count("AccumulateGrad") == 6  # a twice, w1, w2, w3 and w4
    differences = [float(line.split(": ")[1]) for line in out.splitlines() if "dL/d" in line]
    assert len(differences) == 5
    assert max(differences) < 1e-6


@pytest.mark.slow
def test_property_test_finds_the_wrong_derivative(capsys: Any) -> None:
    pytest.importorskip("hypothesis")
    load("property_test").main()
    first, second, wrong = capsys.readouterr().out.splitlines()[:3]
    assert first == "first derivative: right"
    assert second == "second derivative: right"
    assert wrong.startswith("a wrong derivative: the gradient is wrong")


COMPILED = pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="eager"),
        pytest.param(["--compile"], id="compiled", marks=pytest.mark.slow),
    ],
)


@pytest.mark.slow
@COMPILED
def test_curve_fitting_finds_what_is_certified(
    tmp_path: Path, capsys: Any, options: list[str]
) -> None:
    for library in ("scipy", "matplotlib"):
        pytest.importorskip(library)
    fits = load("curve_fitting").main(["--output", str(tmp_path), *options])
    for fit in fits:
        assert fit.digits > 6
        np.testing.assert_allclose(fit.deviations, fit.problem.deviations, rtol=1e-4)
    out = capsys.readouterr().out
    # NIST certifies the sum of squares, too: 1.2455138894e-01.
    assert float(out.split("sum of squares ")[1].split()[0]) == pytest.approx(0.12455138894)
    assert (tmp_path / "fits.png").read_bytes().startswith(b"\x89PNG")


@COMPILED
@pytest.mark.slow
def test_inverse_problem_finds_the_conductivity(
    tmp_path: Path, capsys: Any, options: list[str]
) -> None:
    for library in ("scipy", "matplotlib"):
        pytest.importorskip(library)
    measured, estimate = load("inverse_problem").main(["--output", str(tmp_path), *options])
    assert 0.9 < estimate.misfit < 1.1  # as the noise, and no better
    error = np.log(estimate.conductivity / measured.conductivity)
    assert np.sqrt(np.mean(error**2)) < 0.1
    assert np.mean(np.abs(error) < 2 * estimate.deviation) > 0.9
    assert "60 unknowns, 810 readings" in capsys.readouterr().out
    assert (tmp_path / "conductivity.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_stopped_run_on_a_table_ends_with_the_same_bits(tmp_path: Path, monkeypatch: Any) -> None:
    for library in ("sklearn", "tqdm", "matplotlib", "safetensors"):
        pytest.importorskip(library)
    tabular = load("tabular")
    options = ["--epochs", "4", "--output"]
    with wg.use_backend("numpy"):
        assert tabular.main([*options, str(tmp_path / "whole")]) > 0.9

        def stops(path: Path, **states: Any) -> None:
            save(path, **states)
            if "curves" in states and len(states["curves"]["held-out patients"]) == 2:
                raise KeyboardInterrupt

        save = wg.save
        with monkeypatch.context() as patch:
            patch.setattr(wg, "save", stops)
            with pytest.raises(KeyboardInterrupt):
                tabular.main([*options, str(tmp_path / "stopped"), "--compile"])
        tabular.main([*options, str(tmp_path / "stopped"), "--compile", "--resume"])
        whole, stopped = (
            wg.load(tmp_path / name / "last.safetensors") for name in ("whole", "stopped")
        )
    assert whole["curves"] == stopped["curves"]
    for name, value in whole["model"].items():
        np.testing.assert_array_equal(value.numpy(), stopped["model"][name].numpy())
    assert (tmp_path / "stopped" / "curves.png").read_bytes().startswith(b"\x89PNG")
