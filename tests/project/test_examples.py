"""The examples run, and do what they say."""

import importlib
import math
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.scripts import ROOT, load, python


@pytest.mark.ci
@pytest.mark.slow
def test_onnxruntime_alone_learns_as_eager_code_does(tmp_path: Path) -> None:
    for library in ("sklearn", "ndonnx", "onnxruntime"):
        pytest.importorskip(library)
    in_onnxruntime, eager = load("examples", "onnx_training").main(["--output", str(tmp_path)])
    assert in_onnxruntime >= 0.97 and abs(in_onnxruntime - eager) < 0.01


@pytest.mark.slow
@pytest.mark.whole
def test_digits_starts_alike_and_trains_alike_everywhere(tmp_path: Path, backend: Any) -> None:
    """Five steps on any backend give NumPy's weights to rounding."""
    digits = loaded("digits")
    load_file = importlib.import_module("safetensors.numpy").load_file
    arguments = ["--steps", "5", "--hidden", "16", "--batch-size", "16", "--output"]
    digits.main([*arguments, str(tmp_path / "here")])
    with wg.use_backend("numpy"):
        digits.main([*arguments, str(tmp_path / "numpy")])
    here, there = (load_file(tmp_path / n / "weights.safetensors") for n in ("here", "numpy"))
    for name, expected in there.items():
        np.testing.assert_allclose(here[name], expected, rtol=1e-3, atol=1e-4)


def loaded(name: str) -> ModuleType:
    for library in ("sklearn", "tqdm", "matplotlib", "safetensors"):
        pytest.importorskip(library)
    return load("examples", name)


#: The options of an example, the least that it reaches, and what it prints of that.
LEARNING: dict[str, tuple[list[str], float, str]] = {
    "digits": ([], 0.97, "test accuracy: {:.2%}"),
    "tabular": ([], 0.95, "judges {:.1%} of new patients rightly"),
    "convolution": (["--compile"], 0.985, "{:.2%} of 360 held-out digits"),
}


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNING)
def test_an_example_learns(name: str, tmp_path: Path, capsys: Any) -> None:
    options, least, words = LEARNING[name]
    with wg.use_backend("numpy"):
        reached = loaded(name).main([*options, "--output", str(tmp_path)])
    assert reached >= least
    assert words.format(reached) in capsys.readouterr().out
    (picture,) = tmp_path.glob("*.png")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_computation_graph(capsys: Any) -> None:
    load("examples", "computation_graph").main()
    out = capsys.readouterr().out
    assert "The grad_fn of a, which nobody computed: None" in out
    assert out.count("AccumulateGrad") == 6  # a twice, w1, w2, w3 and w4
    differences = [float(line.split(": ")[1]) for line in out.splitlines() if "dL/d" in line]
    assert len(differences) == 5
    assert max(differences) < 1e-6


@pytest.mark.slow
def test_property_test_finds_the_wrong_derivative(capsys: Any) -> None:
    pytest.importorskip("hypothesis")
    load("examples", "property_test").main()
    first, second, wrong = capsys.readouterr().out.splitlines()[:3]
    assert first == "first derivative: right"
    assert second == "second derivative: right"
    assert wrong.startswith("a wrong derivative: the gradient is wrong")


@pytest.mark.ci
@pytest.mark.slow
def test_curve_fitting_finds_what_is_certified(tmp_path: Path, capsys: Any) -> None:
    for library in ("scipy", "matplotlib"):
        pytest.importorskip(library)
    fits = load("examples", "curve_fitting").main(["--output", str(tmp_path), "--compile"])
    for fit in fits:
        assert fit.digits > 6
        np.testing.assert_allclose(fit.deviations, fit.problem.deviations, rtol=1e-4)
    out = capsys.readouterr().out
    # NIST certifies the sum of squares, too: 1.2455138894e-01.
    assert float(out.split("sum of squares ")[1].split()[0]) == pytest.approx(0.12455138894)
    assert (tmp_path / "fits.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.ci
@pytest.mark.slow
def test_inverse_problem_finds_the_conductivity(tmp_path: Path, capsys: Any) -> None:
    for library in ("scipy", "matplotlib"):
        pytest.importorskip(library)
    options = ["--output", str(tmp_path), "--compile"]  # the gallery runs both without it
    measured, estimate = load("examples", "inverse_problem").main(options)
    assert 0.9 < estimate.misfit < 1.1  # as the noise, and no better
    error = np.log(estimate.conductivity / measured.conductivity)
    assert np.sqrt(np.mean(error**2)) < 0.1
    assert np.mean(np.abs(error) < 2 * estimate.deviation) > 0.9
    assert "60 unknowns, 810 readings" in capsys.readouterr().out
    assert (tmp_path / "conductivity.png").read_bytes().startswith(b"\x89PNG")


#: Examples that train with --compile and --resume, beside the digits.
TRAINING = ["tabular", "convolution", "transformer", "uncertainty", "autoencoder"]


def on_few(name: str, patch: pytest.MonkeyPatch) -> tuple[Callable[..., Any], list[str]]:
    """The main function of an example, on little data, and the options of a short run."""
    module = loaded(name)
    if name == "transformer":
        kinds, codes, held_out = module.load()
        patch.setattr(module, "load", lambda: (kinds, codes[:3000], held_out[:500]))
        return module.main, ["--epochs", "3", "--steps", "2", "--characters", "3"]
    if name == "digits":
        return module.main, ["--epochs", "3", "--hidden", "16", "--batch-size", "200"]
    parts = [wg.data.TensorDataset(*(each[:96] for each in part.tensors)) for part in module.load()]
    patch.setattr(module, "load", lambda: parts)
    return module.main, ["--epochs", "3"]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The functions that examples compile; one that ran eagerly would be an error."""
    made: list[Any] = []

    def strictly(function: Any) -> Any:
        made.append(compile(function, strict=True))
        return made[-1]

    compile = wg.compile
    monkeypatch.setattr(wg, "compile", strictly)
    return made


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.parametrize("name", [*TRAINING, "digits"])
def test_a_stopped_run_ends_with_the_same_bits(
    name: str, tmp_path: Path, monkeypatch: Any, compiled: list[Any]
) -> None:
    """An eager run, and a compiled one that is stopped after an epoch and goes on."""
    main, options = on_few(name, monkeypatch)
    whole, stopped = (str(tmp_path / folder) for folder in ("whole", "stopped"))
    with wg.use_backend("numpy"):
        result = main([*options, "--output", whole])

        def stops(path: Path, **states: Any) -> None:
            save(path, **states)
            if path.name == "last.safetensors":
                raise KeyboardInterrupt

        save = wg.save
        with monkeypatch.context() as patch:
            patch.setattr(wg, "save", stops)
            with pytest.raises(KeyboardInterrupt):
                main([*options, "--output", stopped, "--compile"])
        # The checkpoint alone knows the state: the random numbers are others now.
        wg.rand(3), wg.rand_like(wg.ones(3))
        assert main([*options, "--output", stopped, "--compile", "--resume"]) == result
    for path in Path(whole).iterdir():
        assert path.read_bytes() == (Path(stopped) / path.name).read_bytes()
    assert {path.suffix for path in Path(whole).iterdir()} == {".png", ".safetensors"}
    for function in compiled:
        assert function.report.recordings <= 3
        assert "ran eagerly" not in str(function.report)


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.parametrize("name", [*TRAINING, "digits"])
def test_training_runs_compiled_as_eagerly_everywhere(
    name: str, tmp_path: Path, monkeypatch: Any, backend: Any, compiled: list[Any]
) -> None:
    """Where JAX does not fuse, to the bit."""
    if wg.get_backend().name == "numpy":
        pytest.skip("where a stopped run compares the same")
    if wg.get_backend().name == "dask":
        pytest.skip("each array of a checkpoint is computed from the start of training")
    main, options = on_few(name, monkeypatch)
    for how in ("", "--compile"):
        main([*options, "--output", str(tmp_path / f"on{how}"), *filter(None, [how])])
    load_file = importlib.import_module("safetensors.numpy").load_file
    eager, replayed = (load_file(tmp_path / f"on{h}/last.safetensors") for h in ("", "--compile"))
    for key, expected in eager.items():
        if wg.get_backend().name == "jax":
            np.testing.assert_allclose(replayed[key], expected, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(replayed[key], expected)
    assert compiled


@pytest.mark.ci
@pytest.mark.slow
def test_transformer_does_better_than_counts(tmp_path: Path, capsys: Any) -> None:
    example = loaded("transformer")
    kinds, codes, held_out = example.load()
    with wg.use_backend("numpy"):
        few = ["--epochs", "6"]  # where it is past them; the example takes ten
        loss, by_counts = example.main([*few, "--compile", "--output", str(tmp_path)])
    pairs, firsts = Counter(pairwise(codes.tolist())), Counter(codes[:-1].tolist())
    nats = [
        -math.log((pairs[a, b] + 0.1) / (firsts[a] + 0.1 * len(kinds)))
        for a, b in pairwise(held_out.tolist())
    ]
    assert by_counts["pairs"] == pytest.approx(sum(nats) / len(nats))
    assert loss < min(by_counts.values())
    start = "".join(kinds[i] for i in held_out[: example.LENGTH])
    written = capsys.readouterr().out.removeprefix(f"{start}|").partition("\n\nnats of")[0]
    assert len(written) == 400


def test_transformer_sees_nothing_of_what_it_predicts() -> None:
    example = loaded("transformer")
    model = example.Transformer(5)
    windows = wg.random.randint(0, 5, (3, example.LENGTH + 1))
    changed = wg.concat([windows[:, :40], (windows[:, 40:] + 1) % 5], axis=1)
    before, after = model.losses(windows).detach(), model.losses(changed).detach()
    np.testing.assert_array_equal(before[:, :39].numpy(), after[:, :39].numpy())
    assert wg.all(before[:, 39:] != after[:, 39:])


@pytest.mark.ci
@pytest.mark.slow
def test_uncertainty_holds_what_it_promises(tmp_path: Path, capsys: Any) -> None:
    stats = pytest.importorskip("scipy.stats")
    linear_model = pytest.importorskip("sklearn.linear_model")
    example = loaded("uncertainty")
    train, fit, test = (part.tensors for part in example.load())
    with wg.use_backend("numpy"):
        loss, linear, inside = example.main(["--output", str(tmp_path)])
    line = linear_model.LinearRegression().fit(*train)
    variance = np.sum((line.predict(train[0]) - train[1]) ** 2) / (len(train[0]) - 11)
    expected = -stats.norm.logpdf(test[1], line.predict(test[0]), np.sqrt(variance)).mean()
    assert linear == pytest.approx(expected, rel=1e-5)
    assert loss < linear
    # How many new errors are below the k-th of n is beta-binomial, whatever their distribution.
    n, k = len(fit[0]), math.ceil(0.9 * (len(fit[0]) + 1))
    low, high = stats.betabinom(len(test[0]), k, n + 1 - k).interval(0.999)
    assert low <= round(inside * len(test[0])) <= high
    assert f"hold {inside:.1%} of {len(test[0])} held-out patients" in capsys.readouterr().out


@pytest.mark.parametrize("level", [0.05, 0.5, 0.9, 0.95])
def test_widths_are_the_least_that_hold_their_share(level: float) -> None:
    """A new error is as likely below the first of n as between two of them, or above all."""
    calibrated = loaded("uncertainty").calibrated
    errors = np.arange(1.0, 60.0)
    width = calibrated(np.flip(errors), level)
    assert width / 60 >= level > (width - 1) / 60
    assert calibrated(errors[:5], level) == (math.inf if level >= 0.9 else math.ceil(6 * level))


@pytest.mark.ci
@pytest.mark.slow
def test_autoencoder_learns_a_plane(tmp_path: Path) -> None:
    with wg.use_backend("numpy"):
        bound, alone = loaded("autoencoder").main(["--compile", "--output", str(tmp_path)])
        curves = wg.load(tmp_path / "last.safetensors")["curves"]
    assert bound < 0.6 * alone
    for bounds in curves.values():
        means = np.reshape(bounds, (5, 20)).mean(axis=1)
        assert np.all(np.diff(means) < 0)


def test_the_autoencoder_s_loss_is_the_bound(monkeypatch: Any) -> None:
    """The nats of the image at the point that was drawn, and those of the point."""
    stats = pytest.importorskip("scipy.stats")
    special = pytest.importorskip("scipy.special")
    example, normal = loaded("autoencoder"), wg.random.normal
    drawn: list[wg.Tensor] = []

    def noted(mean: wg.Tensor, std: wg.Tensor) -> wg.Tensor:
        drawn.append(normal(mean, std))
        return drawn[-1]

    monkeypatch.setattr(wg.random, "normal", noted)
    model, images = example.Autoencoder(), example.load()[1].tensors[0][:6]
    found = model(wg.asarray(images))
    (point,) = drawn
    assert point.requires_grad
    shares = special.expit(model.decoder(point).detach().numpy().astype("float64"))
    expected = -stats.binom.logpmf(images, 16, shares).sum(axis=1)
    mean, std = (each.detach().numpy() for each in model.encode(images))
    z = mean + std * np.linspace(-9, 9, 2001)[:, None, None]
    q = stats.norm.logpdf(z, mean, std)
    divergence = np.trapezoid(np.exp(q) * (q - stats.norm.logpdf(z)), z, axis=0).sum(axis=1)
    np.testing.assert_allclose(found.detach().numpy(), expected + divergence, rtol=1e-5)


@pytest.mark.ci
@pytest.mark.slow
def test_search_finds_what_learns_on_processes_as_in_this_one(capsys: Any) -> None:
    """Models and compiled steps are pickled, and reach the same."""
    pytest.importorskip("joblib")
    search, options = loaded("search"), ["--trials", "4", "--epochs", "3"]
    with wg.use_backend("numpy"):
        reached, accuracy = search.main([*options, "--jobs", "1"])
    assert accuracy > 0.9 and max(reached) > min(reached)
    out = capsys.readouterr().out
    assert out.startswith("best of 4 trials: width ") and f"accuracy {accuracy:.2%}" in out
    command = (ROOT / "examples" / "search.py", *options, "--jobs", "2")
    assert python(*command, WENGERT_BACKEND="numpy").stdout == out
