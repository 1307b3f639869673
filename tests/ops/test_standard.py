"""The Array API standard 2025.12: every name of it is here, with the standard's signature."""

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.backends import Backend

strict = pytest.importorskip("array_api_strict")

ATTRIBUTES = ("T", "device", "dtype", "mT", "ndim", "shape", "size")
CONSTANTS = ("e", "inf", "nan", "newaxis", "pi")
DTYPES = (
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float32", "float64", "complex64", "complex128"),
)


def functions(module: Any, prefix: str = "") -> dict[str, Callable[..., Any]]:
    """The standard's functions, as array_api_strict has them."""
    return {
        prefix + name: getattr(module, name)
        for name in module.__all__
        if inspect.isfunction(getattr(module, name)) and "array_api_strict_flags" not in name
    } | ({} if prefix else functions(strict.linalg, "linalg.") | functions(strict.fft, "fft."))


FUNCTIONS = functions(strict)
METHODS = {
    name: method
    for name, method in vars(type(strict.ones(1))).items()
    if inspect.isfunction(method) and (name == "to_device" or name.startswith("__"))
}
#: What the standard does not have, or leaves to Python.
for _name in ("__new__", "__repr__", "__str__", "__array__", "__buffer__", "__iter__", "__hash__"):
    METHODS.pop(_name, None)

POSITIONAL = inspect.Parameter.POSITIONAL_ONLY
EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD
KEYWORD = inspect.Parameter.KEYWORD_ONLY
VARIADIC = inspect.Parameter.VAR_POSITIONAL


def compare(function: Callable[..., Any], standard: Callable[..., Any]) -> None:
    """Assert a function's signature.

    Beside the standard's parameters, a function may have further optional ones, and take a keyword
    by position as well.
    """
    ours = inspect.signature(function).parameters
    in_order = [p for p in ours.values() if p.kind in (POSITIONAL, EITHER, VARIADIC)]
    wanted = inspect.signature(standard).parameters
    for place, (name, about) in enumerate(wanted.items()):
        if about.kind is KEYWORD:  # by position too where NumPy or PyTorch take it so
            assert ours[name].kind in (KEYWORD, EITHER)
        else:
            assert in_order[place].kind is about.kind
        mine = ours[name] if about.kind in (EITHER, KEYWORD) else in_order[place]
        assert mine.name == name or about.kind in (POSITIONAL, VARIADIC)
        # What the standard requires may have a default here, as the axis of squeeze has.
        assert mine.default is not about.empty or about.default is about.empty
    for more in in_order[sum(about.kind is not KEYWORD for about in wanted.values()) :]:
        assert more.kind is VARIADIC or more.default is not more.empty
    for more in ours.values():
        if more.kind is KEYWORD and more.name not in wanted:
            assert more.default is not more.empty


def test_functions() -> None:
    """Each is public, and has the standard's signature."""
    assert len(FUNCTIONS) > 160
    for name, standard in FUNCTIONS.items():
        extension, _, short = name.rpartition(".")
        namespace = getattr(wg, extension) if extension else wg
        assert short in namespace.__all__
        compare(getattr(namespace, short), standard)


def test_methods() -> None:
    for name, standard in METHODS.items():
        ours, parts = inspect.signature(getattr(wg.Tensor, name)), inspect.signature(standard)
        required = [p for p in parts.parameters.values() if p.default is p.empty]
        ours.bind(*range(len(required)))  # without an error
        optional = parts.parameters.keys() - {p.name for p in required}
        assert optional <= ours.parameters.keys(), name


def test_attributes_constants_and_dtypes(backend: Backend) -> None:
    x = wg.ones((2, 3))
    assert all(hasattr(x, name) for name in ATTRIBUTES)
    assert (x.ndim, x.size, tuple(x.shape), x.dtype) == (2, 6, (2, 3), wg.float32)
    assert all(hasattr(wg, name) and name in wg.__all__ for name in CONSTANTS + DTYPES)
    assert wg.newaxis is None
    assert wg.__array_api_version__ == "2025.12"


def test_inspection(backend: Backend) -> None:
    info = wg.__array_namespace_info__()
    theirs = strict.__array_namespace_info__()
    for name in ("capabilities", "default_device", "default_dtypes", "devices", "dtypes"):
        compare(getattr(info, name), getattr(theirs, name))
    assert isinstance(info.devices(), tuple)
    assert info.dtypes().keys() <= {*DTYPES}
    assert info.default_dtypes().keys() == {
        "real floating",
        "complex floating",
        "integral",
        "indexing",
    }
    assert {"boolean indexing", "data-dependent shapes"} <= info.capabilities().keys()


def test_signatures_are_compared() -> None:
    """What a wrong signature is refused for."""

    def standard(x: Any, /, *, axis: Any = None) -> None: ...

    for wrong in (
        lambda x, /: x,
        lambda x, axis, /: x,
        lambda x, /, *, axis: x,
        lambda x, /, *, axis=None, more: x,
        lambda x, more, /, *, axis=None: x,
    ):
        with pytest.raises((AssertionError, KeyError)):
            compare(wrong, standard)
    compare(lambda x, /, *, axis=None, more=None: x, standard)
    compare(lambda x, /, axis=None, *, more=None: x, standard)


def test_large_integers_survive(backend: Backend) -> None:
    """Of 2**64 - 1 and 0 together NumPy makes float64, if it is not told the dtype."""
    top = 2**64 - 1
    if backend.name == "torch":
        pytest.importorskip("torch", minversion="2.3", reason="uint64 came with it")
    for x in (wg.asarray([top, 0], dtype=wg.uint64), wg.asarray([[top], [1]], dtype=wg.uint64)):
        assert x.tolist()[0] in (top, [top])
    with pytest.raises(OverflowError, match="too large for int64"):
        wg.asarray([top, 0])
    assert wg.asarray([top, 0], dtype=wg.float64).tolist() == [2.0**64, 0.0]


@pytest.mark.parametrize("name", ["uint8", "uint16", "uint32", "uint64", "int64", "bool"])
def test_slices_that_go_backwards_of_every_integer(backend: Backend, name: str) -> None:
    x = wg.asarray([[0, 1, 1], [1, 0, 0]], dtype=getattr(wg, name))
    assert wg.astype(x[::-1, 2:0:-1], wg.int64).tolist() == [[0, 0], [1, 1]]
    x[:, ::-1] = wg.asarray([[1, 0, 0], [0, 0, 1]], dtype=getattr(wg, name))
    assert wg.astype(x, wg.int64).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_the_norm_of_a_number_is_its_absolute_value(backend: Backend) -> None:
    x = wg.asarray(-3.0, requires_grad=True)
    y = wg.linalg.vector_norm(x)
    assert y.shape == ()
    y.backward()
    assert (y.item(), x.grad.item()) == (3.0, -1.0)
    z = wg.asarray([[3 - 4j]], dtype=wg.complex128)
    assert wg.linalg.vector_norm(z, axis=(), keepdims=True).tolist() == [[5.0]]


NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, math.inf, -math.inf, math.nan, 1e300, 1e-300]
COMPLEX = [complex(real, imag) for real in NUMBERS for imag in NUMBERS]

#: Where Wengert's kernel is another than the library's on purpose: array-api-compat's sign of an
#: infinite complex number is nan, and PyTorch's complex 0 to the power of 0 too.
OWN = {("numpy", "sign"), ("dask", "sign"), ("torch", "pow")}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_answers_at_special_values_are_the_librarys(backend: Backend, dtype: str) -> None:
    """To the sign of a zero: so whatever the official suite finds there is the library's own."""
    values = np.asarray(NUMBERS if dtype == "float64" else COMPLEX, dtype=dtype)
    one = (values,)
    two = tuple(x.reshape(-1) for x in np.meshgrid(values, values))
    asked = 0
    for name in wg.ops.elementwise.__all__:
        count = len(inspect.signature(FUNCTIONS[name]).parameters)
        if name == "clip" or (backend.name, name) in OWN:
            continue
        raw = [backend.from_numpy(x) for x in (one if count == 1 else two)]
        try:
            theirs = backend.to_numpy(getattr(backend.xp, name)(*raw))
        except (TypeError, ValueError, RuntimeError):  # not for this dtype
            continue
        ours = getattr(wg, name)(*map(wg.Tensor, raw)).numpy()
        assert ours.dtype == theirs.dtype
        for mine, its in ((ours.real, theirs.real), (ours.imag, theirs.imag)):
            np.testing.assert_array_equal(mine, its, err_msg=name)
            if its.dtype.kind == "f":
                known = ~np.isnan(its)
                signs = np.signbit(mine[known]), np.signbit(its[known])
                np.testing.assert_array_equal(*signs, err_msg=name)
        asked += 1
    assert asked > 25
