"""Bad input to every chapter of the standard: the error's class and what its text names."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import wengert as wg
from tests.walking import walk
from wengert.backends import Backend
from wengert.ops.define import elementwise
from wengert.tape.primitive import PRIMITIVES

Call = Callable[[], Any]


def f(*shape: int) -> wg.Tensor:
    return wg.ones(shape)


def i(*shape: int) -> wg.Tensor:
    return wg.ones(shape, dtype=wg.int64)


def b(*shape: int) -> wg.Tensor:
    return wg.ones(shape, dtype=wg.bool)


def c(*shape: int) -> wg.Tensor:
    return wg.ones(shape, dtype=wg.complex64)


SHAPE = r"shape is made of integers"
NEGATIVE = r"lengths of a shape can't be negative"

CREATION: list[tuple[type[Exception], str, Call]] = [
    (ValueError, rf"zeros: the {NEGATIVE}.*\(2, -3\)", lambda: wg.zeros((2, -3))),
    (TypeError, rf"ones: a {SHAPE}, and \('a',\)", lambda: wg.ones("a")),
    (TypeError, rf"empty: a {SHAPE}, and \(2\.5,\)", lambda: wg.empty(2.5)),
    (ValueError, rf"full: the {NEGATIVE}", lambda: wg.full(-2, 1)),
    (TypeError, "'x' is no data type", lambda: wg.zeros(2, dtype="x")),
    (ValueError, "no device 'nowhere'; it has", lambda: wg.zeros(2, device="nowhere")),
    (TypeError, "full takes a number or a Tensor of no axes, not str", lambda: wg.full(2, "a")),
    (TypeError, "full_like takes a number or a Tensor", lambda: wg.full_like(f(2), "a")),
    (TypeError, "full: a complex floating value does not fit",
     lambda: wg.full(2, 1j, dtype=wg.float32)),
    (TypeError, "full_like: a complex floating value does not", lambda: wg.full_like(f(2), 1j)),
    (TypeError, "not int; convert it with", lambda: wg.empty_like(3)),
    (TypeError, "not list; convert it with", lambda: wg.zeros_like([1])),
    (ValueError, "arange: step can't be 0", lambda: wg.arange(0, 5, 0)),
    (TypeError, "arange takes real numbers.*1j", lambda: wg.arange(0, 5, 1j)),
    (TypeError, "arange takes real numbers.*'a'", lambda: wg.arange("a")),
    (ValueError, "linspace: num can't be negative, and is -1", lambda: wg.linspace(0, 1, -1)),
    (TypeError, r"linspace: num is an integer, and 2\.5", lambda: wg.linspace(0, 1, 2.5)),
    (ValueError, rf"eye: the {NEGATIVE}", lambda: wg.eye(-1)),
    (TypeError, rf"eye: a {SHAPE}", lambda: wg.eye(2.5)),
    (TypeError, r"eye: k is an integer, and 0\.5", lambda: wg.eye(2, k=0.5)),
    (TypeError, "asarray takes numbers.*object", lambda: wg.asarray(object())),
    (ValueError, "asarray: the sequences differ in length", lambda: wg.asarray([[1], [1, 2]])),
    (TypeError, "complex numbers in float32", lambda: wg.asarray(1j, dtype=wg.float32)),
    (OverflowError, "asarray: .*300 out of bounds for int8",
     lambda: wg.asarray([1, 300], dtype=wg.int8)),
    (OverflowError, "asarray: .*-1 out of bounds for uint8",
     lambda: wg.asarray(-1, dtype=wg.uint8)),
    (ValueError, r"meshgrid takes vectors.*\(2, 2\)", lambda: wg.meshgrid(f(2, 2), f(2))),
    (ValueError, "meshgrid: indexing is", lambda: wg.meshgrid(f(2), indexing="ab")),
    (ValueError, r"tril needs two axes.*\(3,\)", lambda: wg.tril(f(3))),
    (ValueError, r"triu needs two axes.*\(3,\)", lambda: wg.triu(f(3))),
    (TypeError, r"tril: k is an integer, and 0\.5", lambda: wg.tril(f(3, 3), k=0.5)),
    (OverflowError, "int64", lambda: wg.asarray([2**63])),
    (OverflowError, "int64", lambda: wg.asarray(2**70)),
    (TypeError, "Tensor of no axes", lambda: wg.full(2, f(2).requires_grad_())),
    (TypeError, "NumPy array", lambda: wg.from_numpy([1.0])),  # type: ignore[arg-type]
    (TypeError, "from_dlpack takes.*not int", lambda: wg.from_dlpack(3)),
    (TypeError, "has no derivative rule", lambda: elementwise()(lambda x: x)),
    (TypeError, r"asks for \('y',\).*has \('x',\) and out",
     lambda: elementwise(x=lambda xp, g, y: y)(lambda x: x)),
]  # fmt: skip

DATA_TYPE: list[tuple[type[Exception], str, Call]] = [
    (TypeError, "'foo' is no data type", lambda: wg.astype(f(2), "foo")),
    (TypeError, "astype can't cast complex64 to float32", lambda: wg.astype(c(2), wg.float32)),
    (ValueError, r"\(3,\) does not broadcast to \(2,\)", lambda: wg.broadcast_to(f(3), (2,))),
    (ValueError, r"\(1,\) does not broadcast to \(2, -1\)", lambda: wg.broadcast_to(f(1), (2, -1))),
    (ValueError, r"\(2,\), \(3,\) do not broadcast", lambda: wg.broadcast_arrays(f(2), f(3))),
    (ValueError, r"\(2,\), \(3,\) do not broadcast", lambda: wg.broadcast_shapes((2,), (3,))),
    (ValueError, "lengths can't be negative", lambda: wg.broadcast_shapes((2,), (-3,))),
    (TypeError, SHAPE, lambda: wg.broadcast_shapes((2.5,))),
    (TypeError, "no data type", lambda: wg.can_cast(f(1), "foo")),
    (TypeError, "finfo is for floating.*int8", lambda: wg.finfo(wg.int8)),
    (TypeError, "iinfo is for integer.*float32", lambda: wg.iinfo(wg.float32)),
    (ValueError, "'foo' is no kind of dtype", lambda: wg.isdtype(wg.int8, "foo")),
    (ValueError, "result_type needs", lambda: wg.result_type(1, 2.0)),
    (TypeError, "to_backend takes the name of a backend, not int", lambda: wg.to_backend(f(2), 3)),
]

INDEXING: list[tuple[type[Exception], str, Call]] = [
    (TypeError, "take needs indices of an integer dtype", lambda: wg.take(f(3), f(2), axis=0)),
    (IndexError, "take: axis 3 is out of bounds", lambda: wg.take(f(3), i(2), axis=3)),
    (ValueError, "take from an array of 2 axes needs axis=", lambda: wg.take(f(3, 3), i(2))),
    (ValueError, "needs indices of 2 axes", lambda: wg.take_along_axis(f(3, 3), i(2), axis=0)),
    (TypeError, "integer dtype", lambda: wg.take_along_axis(f(3, 3), f(3, 3), axis=0)),
    (IndexError, "take_along_axis: axis 2", lambda: wg.take_along_axis(f(3, 3), i(3, 3), axis=2)),
    (ValueError, r"\(2, 2\) do not broadcast against an array of shape \(3, 3\)",
     lambda: wg.take_along_axis(f(3, 3), i(2, 2), axis=0)),
    (IndexError, r"\w", lambda: f(3)[f(3)]),
    (IndexError, r"\w", lambda: f(3)[b(2)]),
    (ValueError, "step", lambda: f(3)[::0]),
]  # fmt: skip

LINEAR_ALGEBRA: list[tuple[type[Exception], str, Call]] = [
    (ValueError, r"matmul of shapes \(\) and \(2,\)", lambda: wg.matmul(f(), f(2))),
    (ValueError, r"matmul of shapes \(2, 3\) and", lambda: f(2, 3) @ f(2, 3)),
    (ValueError, r"matmul: stacks of the shapes \(2,\) and \(4,\)",
     lambda: wg.matmul(f(2, 2, 3), f(4, 3, 2))),
    (TypeError, r"\w", lambda: f(2) @ 3),
    (ValueError, "matrix_transpose needs two axes", lambda: wg.matrix_transpose(f(2))),
    (ValueError, "lengths differ", lambda: wg.tensordot(f(2, 3), f(2, 3), axes=1)),
    (ValueError, "axes=3", lambda: wg.tensordot(f(2, 3), f(2, 3), axes=3)),
    (ValueError, "axes=-1", lambda: wg.tensordot(f(2, 3), f(2, 3), axes=-1)),
    (IndexError, "tensordot: axis 5", lambda: wg.tensordot(f(2, 3), f(2, 3), axes=((5,), (0,)))),
    (ValueError, "twice", lambda: wg.tensordot(f(2, 3), f(2, 3), axes=((0, 0), (0, 0)))),
    (ValueError, r"vecdot.*\(2,\) and \(3,\)", lambda: wg.vecdot(f(2), f(3))),
    (ValueError, "vecdot: stacks of the shapes", lambda: wg.vecdot(f(2, 3), f(3, 3))),
    (IndexError, "vecdot: axis 1", lambda: wg.vecdot(f(2), f(2), axis=1)),
    (TypeError, "a real number as ord, not 1j", lambda: wg.linalg.vector_norm(f(3), ord=1j)),
    (TypeError, r"one number as ord, and was given an array of shape \(2,\)",
     lambda: wg.linalg.vector_norm(f(3), ord=f(2))),
    (TypeError, "a real number as ord, not ", lambda: wg.linalg.vector_norm(f(3), ord=c())),
    (
        NotImplementedError,
        r"qr with mode='complete' of a matrix with more rows \(3\) than columns \(2\)",
        lambda: wg.func.jvp(lambda x: wg.linalg.qr(x, mode="complete"), (f(3, 2),), (f(3, 2),)),
    ),
]  # fmt: skip

MANIPULATION: list[tuple[type[Exception], str, Call]] = [
    (ValueError, "concat needs at least one", lambda: wg.concat([])),
    (ValueError, r"concat.*\(2, 3\) and \(2, 2\)", lambda: wg.concat([f(2, 3), f(2, 2)])),
    (IndexError, "concat: axis 1", lambda: wg.concat([f(2), f(2)], axis=1)),
    (TypeError, "not str", lambda: wg.concat([f(2), "a"])),
    (ValueError, "stack needs at least one", lambda: wg.stack([])),
    (ValueError, r"stack.*\(2,\) and \(3,\)", lambda: wg.stack([f(2), f(3)])),
    (IndexError, "stack: axis 2", lambda: wg.stack([f(2), f(2)], axis=2)),
    (IndexError, "expand_dims: axis 3", lambda: wg.expand_dims(f(2), axis=3)),
    (ValueError, "expand_dims: an axis comes twice", lambda: wg.expand_dims(f(2), axis=(0, 0))),
    (IndexError, "flip: axis 1", lambda: wg.flip(f(2), axis=1)),
    (TypeError, r"flip: an axis is an integer, and 0\.5", lambda: wg.flip(f(2), axis=0.5)),
    (IndexError, "moveaxis: axis 5", lambda: wg.moveaxis(f(2, 3), 0, 5)),
    (ValueError, "moveaxis", lambda: wg.moveaxis(f(2, 3), (0, 0), (0, 1))),
    (ValueError, "2 axes to move and 1", lambda: wg.moveaxis(f(2, 3), (0, 1), 0)),
    (ValueError, "no permutation", lambda: wg.permute_dims(f(2, 3), (0,))),
    (ValueError, "permute_dims: an axis comes twice", lambda: wg.permute_dims(f(2, 3), (0, 0))),
    (ValueError, "repeats cannot be negative", lambda: wg.repeat(f(3), -1)),
    (ValueError, "repeat", lambda: wg.repeat(f(3), wg.asarray([1, -2, 1]))),
    (ValueError, r"repeats has shape \(2,\)", lambda: wg.repeat(f(3), i(2))),
    (TypeError, "integer dtype", lambda: wg.repeat(f(3), f(3))),
    (IndexError, "repeat: axis 1", lambda: wg.repeat(f(3), 2, axis=1)),
    (ValueError, r"reshape: .*\(6,\) has 6 elements.*\(4,\)", lambda: wg.reshape(f(6), (4,))),
    (ValueError, "reshape: only one length", lambda: wg.reshape(f(6), (-1, -1))),
    (ValueError, r"reshape: .*6 elements.*\(-1, 4\)", lambda: wg.reshape(f(6), (-1, 4))),
    (ValueError, r"reshape: .*\(-2, 3\)", lambda: wg.reshape(f(6), (-2, 3))),
    (TypeError, SHAPE, lambda: wg.reshape(f(6), (2.0, 3))),
    (ValueError, "shift", lambda: wg.roll(f(3, 3), (1, 2))),
    (IndexError, "roll: axis 1", lambda: wg.roll(f(3), 1, axis=1)),
    (ValueError, "there are 3 shifts and 2 axes", lambda: wg.roll(f(3, 3), (1, 2, 3), axis=(0, 1))),
    (TypeError, r"\w", lambda: wg.roll(f(3), 0.5)),
    (ValueError, "cannot be squeezed", lambda: wg.squeeze(f(3), axis=0)),
    (IndexError, "squeeze: axis 1", lambda: wg.squeeze(f(3), axis=1)),
    (ValueError, "repetitions cannot be negative", lambda: wg.tile(f(3), (-1,))),
    (IndexError, "unstack: axis 0", lambda: wg.unstack(f())),
    (TypeError, "repeat.. got an unexpected", lambda: f(2).repeat(2, axis=0, other=1)),
]

SEARCHING_SORTING_SETS: list[tuple[type[Exception], str, Call]] = [
    (IndexError, "argmax: axis 1", lambda: wg.argmax(f(3), axis=1)),
    (ValueError, "argmax of no elements", lambda: wg.argmax(f(0))),
    (TypeError, "argmin: an axis is an integer", lambda: wg.argmin(f(3), axis=(0,))),
    (IndexError, "count_nonzero: axis 1", lambda: wg.count_nonzero(f(3), axis=1)),
    (ValueError, "nonzero needs", lambda: wg.nonzero(f())),
    (ValueError, "searchsorted needs a 1-d array", lambda: wg.searchsorted(f(2, 2), f(2))),
    (ValueError, "side is", lambda: wg.searchsorted(f(2), f(2), side="middle")),
    (TypeError, "integer dtype", lambda: wg.searchsorted(f(2), f(2), sorter=f(2))),
    (ValueError, "a sorter has the shape", lambda: wg.searchsorted(f(2), f(2), sorter=i(3))),
    (TypeError, "dtype bool, not float32", lambda: wg.where(f(2), f(2), f(2))),
    (ValueError, r"where: the shapes \(2,\) and \(3,\) and \(2,\) do not broadcast",
     lambda: wg.where(b(2), f(3), f(2))),
    (TypeError, "isin takes", lambda: wg.isin(f(2), "a")),
    (TypeError, "unique_all takes", lambda: wg.unique_all(3)),
    (TypeError, "unique_values takes", lambda: wg.unique_values("a")),
    (IndexError, "sort: axis 1", lambda: wg.sort(f(3), axis=1)),
    (IndexError, "argsort: axis 1", lambda: wg.argsort(f(3), axis=1)),
]  # fmt: skip

STATISTICAL: list[tuple[type[Exception], str, Call]] = [
    *[
        (IndexError, f"{name}: axis 1 is out of bounds", lambda name=name: call(name)(f(3), axis=1))
        for name in ("sum", "prod", "mean", "var", "std", "max", "min", "all", "any", "diff")
    ],
    *[
        (IndexError, f"{name}: axis -2", lambda name=name: call(name)(f(3), axis=-2))
        for name in ("cumulative_sum", "cumulative_prod")
    ],
    (ValueError, "sum: an axis comes twice", lambda: wg.sum(f(3), axis=(0, 0))),
    (TypeError, r"sum: an axis is an integer, and 0\.5", lambda: wg.sum(f(3), axis=0.5)),
    (TypeError, "sum takes Tensors", lambda: wg.sum("a")),
    (TypeError, "'foo' is no data type", lambda: wg.sum(f(3), dtype="foo")),
    (TypeError, "mean takes floating", lambda: wg.mean(i(3))),
    (TypeError, "std takes floating", lambda: wg.std(i(3))),
    (TypeError, "var takes floating", lambda: wg.var(i(3))),
    (ValueError, r"max of no elements.*\(0, 2\)", lambda: wg.max(f(0, 2), axis=0)),
    (ValueError, "min of no elements", lambda: wg.min(f(0))),
    (ValueError, "of 2 axes needs axis=", lambda: wg.cumulative_sum(f(2, 2))),
    (ValueError, "of 0 axes needs axis=", lambda: wg.cumulative_prod(f())),
    (ValueError, "n can't be negative, and is -1", lambda: wg.diff(f(3), n=-1)),
    (TypeError, r"\w", lambda: wg.diff(f(3), n=0.5)),
    (TypeError, "cumprod.. got an unexpected", lambda: f(2).cumprod(other=1)),
    *[
        (ValueError, f"{name} needs an array of one", lambda name=name: call(name)(f(), axis=0))
        for name in ("cumulative_sum", "cumulative_prod")
    ],
    *[
        (
            TypeError,
            rf"{name} takes one number as correction, and was given a Tensor of shape \(2,\)",
            lambda name=name: call(name)(f(3), correction=f(2).requires_grad_()),
        )
        for name in ("std", "var")
    ],
]

TENSORS: list[tuple[type[Exception], str, Call]] = [
    (ValueError, r"\(2,\) has 2 elements", lambda: float(f(2))),
    (ValueError, r"\(2,\) has 2 elements", lambda: bool(f(2))),
    (ValueError, r"\(2,\) has 2 elements", lambda: int(f(2))),
    (ValueError, r"\(2,\) has 2 elements", lambda: complex(f(2))),
    (TypeError, "integer Tensors of one element", lambda: [1, 2][f()]),
    (TypeError, "0-d", lambda: len(f())),
    (ValueError, "no device 'nowhere'", lambda: f(2).to_device("nowhere")),
    (ValueError, "stream is not supported", lambda: f(2).to_device("cpu", stream=1)),
]


def call(name: str) -> Callable[..., Any]:
    return getattr(wg, name)  # type: ignore[no-any-return]


CHAPTERS = (CREATION, DATA_TYPE, INDEXING, LINEAR_ALGEBRA, MANIPULATION, SEARCHING_SORTING_SETS,
            STATISTICAL, TENSORS)  # fmt: skip


def test_bad_input(backend: Backend) -> None:
    def check(text: str, kind: type[Exception], bad: Call) -> None:
        with pytest.raises(kind, match=text):
            bad()

    walk(
        [(text, kind, bad) for chapter in CHAPTERS for kind, text, bad in chapter],
        check,
        whole=True,
    )


TWO = [
    name
    for name in wg.ops.elementwise.__all__
    if name in PRIMITIVES and len(PRIMITIVES[name].inputs) == 2
]
ONE = [
    name
    for name in wg.ops.elementwise.__all__
    if name in PRIMITIVES and len(PRIMITIVES[name].inputs) == 1
]


def test_the_elementwise_functions_are_walked() -> None:
    assert len(TWO) + len(ONE) >= 66
    assert {"add", "atan2", "bitwise_and", "less", "logaddexp", "nextafter"} <= {*TWO}


def test_shapes_that_do_not_broadcast(backend: Backend) -> None:
    """The text names the function and both shapes, whatever the library says."""

    def check(name: str) -> None:
        make = {"logical": b, "bitwise": i}.get(name.partition("_")[0], f)
        with pytest.raises(ValueError, match=rf"^{name}: the shapes \(2, 3\) and \(4,\) do not br"):
            call(name)(make(2, 3), make(4))

    walk([(name,) for name in TWO], check, whole=True)


def test_operators_and_bounds_that_do_not_broadcast(backend: Backend) -> None:
    with pytest.raises(ValueError, match=r"^add: the shapes \(2,\) and \(3,\)"):
        _ = f(2) + f(3)
    x = f(2)
    with pytest.raises(ValueError, match=r"^multiply: the shapes \(2,\) and \(3,\)"):
        x *= f(3)
    with pytest.raises(ValueError, match=r"^less: the shapes \(2,\) and \(3,\)"):
        _ = f(2) < f(3)
    with pytest.raises(ValueError, match=r"^clip: the shapes \(3,\) and \(2,\)"):
        wg.clip(f(3), f(2), 1.0)
    with pytest.raises(ValueError, match=r"^clip: the shapes \(3,\) and \(2,\)"):
        wg.clip(f(3), 0.0, f(2))


def test_what_is_no_array(backend: Backend) -> None:
    def check(name: str, given: Any) -> None:
        with pytest.raises(TypeError, match=rf"^{name} takes Tensors"):
            call(name)(given) if name in ONE else call(name)(f(2), given)

    walk(itertools.product(ONE + TWO, ("a", [1.0], None, object())), check, whole=True)


WRONG_DTYPES: list[tuple[str, str, Call]] = [
    ("bitwise_and", "integer or boolean", lambda: wg.bitwise_and(f(2), f(2))),
    ("bitwise_or", "integer or boolean", lambda: wg.bitwise_or(f(2), i(2))),
    ("bitwise_xor", "integer or boolean", lambda: wg.bitwise_xor(i(2), 1.5)),
    ("bitwise_invert", "integer or boolean", lambda: ~f(2)),
    ("bitwise_left_shift", "integer", lambda: f(2) << 1),
    ("bitwise_right_shift", "integer", lambda: wg.bitwise_right_shift(f(2), i(2))),
    ("floor", "real numeric", lambda: wg.floor(c(2))),
    ("ceil", "real numeric", lambda: wg.ceil(c(2))),
    ("remainder", "real numeric", lambda: c(2) % c(2)),
    ("floor_divide", "real numeric", lambda: c(2) // c(2)),
    ("copysign", "real floating", lambda: wg.copysign(c(2), c(2))),
    ("nextafter", "real floating", lambda: wg.nextafter(c(2), c(2))),
    ("hypot", "real floating", lambda: wg.hypot(c(2), c(2))),
    ("signbit", "real floating", lambda: wg.signbit(c(2))),
    ("negative", "numeric", lambda: -b(2)),
    ("subtract", "numeric", lambda: b(2) - b(2)),
]


def test_dtypes_that_no_library_takes(backend: Backend) -> None:
    def check(name: str, kinds: str, bad: Call) -> None:
        text = rf"^{name} takes {kinds} arrays, and was given \w+ \(2,\)"
        with pytest.raises(TypeError, match=text):
            bad()

    walk(WRONG_DTYPES, check, whole=True)


def test_an_error_that_is_not_explained_says_what_it_was_about(backend: Backend) -> None:
    """It keeps its class, or is a ValueError instead of PyTorch's RuntimeError."""
    with pytest.raises((TypeError, ValueError)) as caught:
        PRIMITIVES["reshape"].bind(f(2), shape=(3,))
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert "reshape of float32 (2,)" in text


def test_no_internal_traceback_is_printed_above_an_explained_error(backend: Backend) -> None:
    for bad in (lambda: f(2) + f(3), lambda: f(2) & f(2), lambda: wg.reshape(f(6), (4,))):
        with pytest.raises((TypeError, ValueError)) as caught:
            bad()
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


@pytest.mark.oracle
@pytest.mark.slow
def test_dtypes_that_pytorch_does_not_promote() -> None:
    pytest.importorskip("torch")
    with (
        wg.use_backend("torch"),
        pytest.raises(TypeError, match=r"^multiply of uint16 \(2,\), uint8"),
    ):
        wg.multiply(wg.ones(2, dtype=wg.uint16), wg.ones(2, dtype=wg.uint8))
