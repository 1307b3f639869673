"""Functions in ONNX models, one by one, and what has no form there."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ndonnx")
pytest.importorskip("onnxruntime")

import wengert as wg
from tests.export.test_exporting import Session, close, same
from wengert.export import ExportError, onnx


def test_a_product_along_an_axis_that_was_made_by_reshaping(tmp_path: Path) -> None:
    weights = wg.asarray(np.arange(6.0).reshape(2, 3))
    function = lambda x: wg.vecdot(wg.reshape(x, (x.shape[0], 2, 3)), weights)
    onnx(function, wg.asarray(np.ones((4, 6))), tmp_path / "m")
    x = np.random.default_rng(0).normal(size=(7, 6))
    close(Session(tmp_path / "m", {})(x=x)["output"], function(wg.asarray(x)))


def test_gradients_of_indices_add_up(tmp_path: Path) -> None:
    def function(x: Any, i: Any) -> Any:
        return wg.grad(lambda x: wg.sum(wg.take(x, i, axis=0) ** 2 * wg.expand_dims(i, axis=1)))(x)

    rng = np.random.default_rng(0)
    x, i = rng.normal(size=(7, 300)), rng.integers(0, 3, 500)
    onnx(function, (wg.asarray(x), wg.asarray(i[:9])), tmp_path / "m", batch_axes=(None, 0))
    found = Session(tmp_path / "m", {})(x=x, i=i)["output"]
    close(found, function(wg.asarray(x), wg.asarray(i)))


def test_a_row_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    onnx(lambda x: x[-4], wg.asarray(np.ones((8, 2))), tmp_path / "m", check_sizes=(4, 3))
    run = Session(tmp_path / "m", {})
    x = np.arange(8.0).reshape(4, 2)
    close(run(x=x)["output"], x[-4])
    for n in (1, 2, 3):
        with pytest.raises(Exception, match="Reshape"):
            run(x=x[:n])


def test_what_has_no_form_names_the_line(tmp_path: Path) -> None:
    function = lambda x: wg.linalg.svdvals(x)
    with pytest.raises(ExportError, match=r"test_graph.py, line \d+ .*svdvals has no form in ONNX"):
        onnx(function, wg.asarray(np.ones((3, 2))), tmp_path / "m")
    checked = wg.jacobian(lambda x: wg.sin(x), sparsity=np.eye(2))
    with pytest.raises(ExportError, match="leave out sparsity="):
        onnx(lambda x: checked(x[0]), wg.asarray(np.ones((3, 2))), tmp_path / "m", batch_axes=None)


# -- functions one by one --------------------------------------------------------------------------

UNARY = ["cos", "cosh", "exp", "expm1", "log1p", "sign", "sin", "sinh", "sqrt", "tan", "tanh"]
BINARY = ["copysign", "floor_divide", "hypot", "logaddexp", "maximum", "pow", "remainder"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.0, 88.6, 100.0, np.inf, -np.inf, np.nan]


def points() -> Any:
    rng = np.random.default_rng(0)
    sizes = 10 ** rng.uniform(-20, 2, 100) * rng.choice([-1, 1], 100)
    return np.concatenate([SPECIAL, sizes, 0.1 * rng.integers(-20, 20, 100)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_values_are_eager_ones(tmp_path: Path, name: str, dtype: str) -> None:
    function, x = getattr(wg, name), points().astype(dtype)
    given = {"x": x}
    if name in BINARY:
        given = {"x": np.repeat(x, x.size), "y": np.tile(x, x.size)}
    call = (lambda x: function(x)) if name in UNARY else (lambda x, y: function(x, y))
    with np.errstate(all="ignore"):
        onnx(call, tuple(map(wg.asarray, given.values())), tmp_path / "m")
        found = Session(tmp_path / "m", {})(**given)["output"]
        wanted = np.asarray(call(*map(wg.asarray, given.values())))
    tiny = np.finfo(dtype).tiny
    rtol = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=16 * tiny)
    if name == "copysign":  # zeros have a sign, too, and that of nan means nothing
        signs = [np.signbit(found), np.signbit(wanted)]
        np.testing.assert_array_equal(*[np.where(np.isnan(wanted), 0, x) for x in signs])


def test_what_onnxruntime_would_round_is_refused(tmp_path: Path) -> None:
    x = np.linspace(-0.9, 0.9, 5)
    with pytest.raises(ExportError, match=r"atan has no form in ONNX .*lossy cast"):
        onnx(lambda x: wg.atan(x), wg.asarray(x), tmp_path / "m")
    onnx(lambda x: wg.atan(x), wg.asarray(x.astype(np.float32)), tmp_path / "m")


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_integers_keep_their_dtype(tmp_path: Path, dtype: str) -> None:
    x = np.asarray([[7, 3], [100, 2], [1, 5]], dtype) * (1 if dtype == "uint8" else -1)
    function = lambda x: (x // 2, x % 3, x * x.shape[0], wg.max(x, axis=0), x > 1)
    onnx(function, wg.asarray(x.astype(dtype)), tmp_path / "m")
    same(Session(tmp_path / "m", {})(x=x.astype(dtype)), function(wg.asarray(x.astype(dtype))))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_shifts_by_any_number_of_bits(tmp_path: Path, dtype: str) -> None:
    about = np.iinfo(dtype)
    x = np.asarray([about.min, about.min + 1, about.max, 0, 1, 100], dtype)[:, None]
    if about.min < 0:
        x = np.concatenate([x, np.asarray([[-1], [-2], [-100]], dtype)])
    n = np.broadcast_to(np.arange(about.bits).astype(dtype), (len(x), about.bits))
    function = lambda x, n: wg.bitwise_right_shift(x, n)
    onnx(function, (wg.asarray(x), wg.asarray(n)), tmp_path / "m")
    found = Session(tmp_path / "m", {})(x=x, n=n)["output"]
    np.testing.assert_array_equal(found, x >> n, strict=True)


def test_nan_is_found_and_bools_are_counted(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        made = [wg.argmax(x), wg.argmin(x, axis=1), wg.argmax(x, axis=0, keepdims=True)]
        edges = wg.asarray([0.0, 1.0], dtype="float64")
        made += [wg.searchsorted(edges, x[:, 0], side=side) for side in ("left", "right")]
        return made + [wg.sum(x > 0, axis=1), wg.prod(x > 0), wg.cumulative_sum(x > 0, axis=0)]

    x = np.random.default_rng(0).normal(size=(5, 3))
    onnx(function, wg.asarray(x), tmp_path / "m")
    x[3, 0] = x[4, 0] = x[2, 1] = np.nan
    same(Session(tmp_path / "m", {})(x=x), function(wg.asarray(x)))


def test_products_begin_with_one_where_that_is_asked_for(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(5, 3))
    for initial in (False, True):
        path = tmp_path / f"m{initial}"
        onnx(lambda x, i=initial: wg.cumulative_prod(x, axis=1, include_initial=i), x, path)
        found = Session(path, {})(x=x)["output"]
        first = np.ones((5, 1)) if initial else np.ones((5, 0))
        expected = np.concatenate([first, np.cumprod(x, axis=1)], axis=1)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_models_have_not_is_named_with_the_line(tmp_path: Path) -> None:
    for function, kind, text in (
        (lambda x: wg.astype(x, wg.float16) * 2, TypeError, "float16 can't be exported"),
        (lambda x: wg.astype(x, wg.bfloat16) * 2, TypeError, "bfloat16 can't be exported"),
        (lambda x: wg.real(wg.exp(1j * x)), wg.export.ExportError, "no complex numbers"),
        (lambda x: wg.abs(wg.fft.rfft(x)), wg.export.ExportError, "no complex numbers"),
    ):
        with pytest.raises(kind, match=rf"test_graph.py, line \d+ \(\(lambda x.*\): .*{text}"):
            wg.export.onnx(function, wg.ones((2, 3)), tmp_path / "model.onnx")
    for function, name in (
        (lambda x: (2 * x, "text"), "output.1"),
        (lambda x: {"loss": wg.sum(x), "name": "loss"}, r"output\.name"),
    ):
        with pytest.raises(wg.export.ExportError, match=rf"{name} of .*<lambda> is a str"):
            wg.export.onnx(function, wg.ones((2, 3)), tmp_path / "model.onnx")
    with pytest.raises(TypeError, match="float16 can't be exported"):
        onnx(lambda x: wg.sum(x), wg.ones((3, 2), dtype="float16"), tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()
