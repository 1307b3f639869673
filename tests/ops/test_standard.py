"""The Array API standard 2025.12: every name of it is here, with the standard's signature."""

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.backends import Backend

# What follows is read off the standard's stubs (data-apis/array-api, src/array_api_stubs/_2025_12):
# a chapter and how many functions it has; then signatures, each before the functions that have it.
# "/" and "*" are Python's, "=" says that there is a default. Beside what is listed, a function may
# have further optional parameters, such as requires_grad, and take a keyword by position as well.
STANDARD = """
creation 16
  start / stop= step= * dtype= device= : arange
  obj / * dtype= device= copy= : asarray
  shape * dtype= device= : empty ones zeros
  x / * dtype= device= : empty_like ones_like zeros_like
  n_rows n_cols= / * k= dtype= device= : eye
  x / * device= copy= : from_dlpack
  shape fill_value * dtype= device= : full
  x / fill_value * dtype= device= : full_like
  start stop / num * dtype= device= endpoint= : linspace
  *arrays indexing= : meshgrid
  x / * k= : tril triu
data_type 6
  x dtype / * copy= device= : astype
  from_ to / : can_cast
  type / : finfo iinfo
  dtype kind : isdtype
  *arrays_and_dtypes : result_type
elementwise 67
  x / : abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor
      imag isfinite isinf isnan log log1p log2 log10 logical_not negative positive real
      reciprocal round sign signbit sin sinh square sqrt tan tanh trunc
  x1 x2 / : add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
      copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp
      logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal pow
      remainder subtract
  x / min= max= : clip
indexing 2
  x indices / * axis= : take take_along_axis
linear_algebra 4
  x1 x2 / : matmul
  x / : matrix_transpose
  x1 x2 / * axes= : tensordot
  x1 x2 / * axis= : vecdot
manipulation 15
  *arrays : broadcast_arrays
  *shapes : broadcast_shapes
  x / shape : broadcast_to
  arrays / * axis= : concat stack
  x / axis : expand_dims squeeze
  x / * axis= : flip unstack
  x source destination / : moveaxis
  x / axes : permute_dims
  x repeats / * axis= : repeat
  x / shape * copy= : reshape
  x / shift * axis= : roll
  x repetitions / : tile
searching 6
  x / * axis= keepdims= : argmax argmin count_nonzero
  x / : nonzero
  x1 x2 / * side= sorter= : searchsorted
  condition x1 x2 / : where
set 5
  x1 x2 / * invert= : isin
  x / : unique_all unique_counts unique_inverse unique_values
sorting 2
  x / * axis= descending= stable= : argsort sort
statistical 9
  x / * axis= dtype= include_initial= : cumulative_sum cumulative_prod
  x / * axis= keepdims= : max mean min
  x / * axis= dtype= keepdims= : prod sum
  x / * axis= correction= keepdims= : std var
utility 3
  x / * axis= keepdims= : all any
  x / * axis= n= prepend= append= : diff
linalg 25
  x / * upper= : cholesky
  x1 x2 / * axis= : cross vecdot
  x / : det eig eigh eigvals eigvalsh inv matrix_transpose slogdet svdvals
  x / * offset= : diagonal
  x1 x2 / : matmul outer solve
  x / * keepdims= ord= : matrix_norm
  x n / : matrix_power
  x / * rtol= : matrix_rank pinv
  x / * mode= : qr
  x / * full_matrices= : svd
  x1 x2 / * axes= : tensordot
  x / * offset= dtype= : trace
  x / * axis= keepdims= ord= : vector_norm
fft 14
  x / * n= axis= norm= : fft ifft rfft irfft hfft ihfft
  x / * s= axes= norm= : fftn ifftn rfftn irfftn
  n / * d= dtype= device= : fftfreq rfftfreq
  x / * axes= : fftshift ifftshift
"""

OPERATORS = {
    "x /": "abs invert neg pos",
    "x y /": "add and eq floordiv ge getitem gt le lshift lt matmul mod mul ne or pow rshift sub "
    "truediv xor",
    "x y": "iadd iand ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor "
    "radd rand rfloordiv rlshift rmatmul rmod rmul ror rpow rrshift rsub rtruediv rxor",
}

METHODS = {
    "__array_namespace__": "self / * api_version=",
    "__bool__": "self /",
    "__complex__": "self /",
    "__dlpack__": "self / * stream= max_version= dl_device= copy=",
    "__dlpack_device__": "self /",
    "__float__": "self /",
    "__index__": "self /",
    "__int__": "self /",
    "__setitem__": "self key value /",
    "to_device": "self device / * stream=",
}

ATTRIBUTES = ("T", "device", "dtype", "mT", "ndim", "shape", "size")

CONSTANTS = ("e", "inf", "nan", "newaxis", "pi")

DTYPES = (
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float32", "float64", "complex64", "complex128"),
)

INFO = {
    "capabilities": "",
    "default_device": "",
    "default_dtypes": "* device=",
    "devices": "",
    "dtypes": "* device= kind=",
}


def read(text: str) -> tuple[dict[str, int], dict[str, str]]:
    """How many functions each chapter has, and the signature of each ("fft.rfft")."""
    counts: dict[str, int] = {}
    signatures: dict[str, str] = {}
    chapter = signature = ""
    for line in text.strip().splitlines():
        if not line.startswith(" "):
            chapter, count = line.split()
            counts[chapter] = int(count)
            continue
        before, colon, names = line.rpartition(" : ")
        signature = before.strip() if colon else signature
        prefix = f"{chapter}." if chapter in ("linalg", "fft") else ""
        signatures.update({prefix + name: signature for name in names.split()})
    return counts, signatures


COUNTS, SIGNATURES = read(STANDARD)

POSITIONAL = inspect.Parameter.POSITIONAL_ONLY
EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD
KEYWORD = inspect.Parameter.KEYWORD_ONLY
VARIADIC = inspect.Parameter.VAR_POSITIONAL


def parameters(signature: str) -> list[tuple[str, Any, bool]]:
    """Name, kind and whether there is a default, of each parameter."""
    parts = signature.split()
    found: list[tuple[str, Any, bool]] = []
    kind = EITHER
    for part in parts:
        if part == "/":
            found = [(name, POSITIONAL, default) for name, _, default in found]
        elif part == "*":
            kind = KEYWORD
        elif part[0] == "*":
            found.append((part[1:], VARIADIC, False))
            kind = KEYWORD
        else:
            found.append((part.rstrip("="), kind, part[-1] == "="))
    return found


def compare(function: Callable[..., Any], signature: str, *, keywords: bool = False) -> None:
    """Assert a function's signature; ``keywords``: positional arguments may have names as well."""
    ours = inspect.signature(function).parameters
    in_order = [p for p in ours.values() if p.kind in (POSITIONAL, EITHER, VARIADIC)]
    wanted = parameters(signature)
    for place, (name, kind, default) in enumerate(wanted):
        if kind is KEYWORD:  # by position too where NumPy or PyTorch take it so
            assert ours[name].kind in (KEYWORD, EITHER)
        else:
            either = keywords and kind is POSITIONAL and in_order[place].kind is EITHER
            assert either or in_order[place].kind is kind
        mine = ours[name] if kind in (EITHER, KEYWORD) else in_order[place]
        assert mine.name == name or kind in (POSITIONAL, VARIADIC)
        # What the standard requires may have a default here, as the axis of squeeze has.
        assert mine.default is not inspect.Parameter.empty or not default
    names = {name for name, *_ in wanted}
    for more in in_order[sum(kind is not KEYWORD for _, kind, _ in wanted) :]:
        assert more.kind is VARIADIC or more.default is not inspect.Parameter.empty
    for more in ours.values():
        if more.kind is KEYWORD and more.name not in names:
            assert more.default is not inspect.Parameter.empty


def test_the_list_is_the_standards() -> None:
    assert sum(COUNTS.values()) == len(SIGNATURES) == 174
    assert COUNTS["elementwise"] == 67


@pytest.mark.parametrize("name", SIGNATURES)
def test_function(name: str) -> None:
    extension, _, short = name.rpartition(".")
    namespace = getattr(wg, extension) if extension else wg
    assert short in namespace.__all__
    compare(getattr(namespace, short), SIGNATURES[name])


@pytest.mark.parametrize("name", METHODS)
def test_method(name: str) -> None:
    compare(getattr(wg.Tensor, name), METHODS[name], keywords=name != "to_device")


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "count"),
    [
        (name, len(parameters(signature)))
        for signature, names in OPERATORS.items()
        for name in names.split()
    ],
)
def test_operator(name: str, count: int) -> None:
    method = getattr(wg.Tensor, f"__{name}__")
    inspect.signature(method).bind(*range(count))  # without an error


def test_attributes_constants_and_dtypes(backend: Backend) -> None:
    x = wg.ones((2, 3))
    assert all(hasattr(x, name) for name in ATTRIBUTES)
    assert (x.ndim, x.size, tuple(x.shape), x.dtype) == (2, 6, (2, 3), wg.float32)
    assert all(hasattr(wg, name) and name in wg.__all__ for name in CONSTANTS + DTYPES)
    assert wg.newaxis is None
    assert wg.__array_api_version__ == "2025.12"


def test_inspection(backend: Backend) -> None:
    info = wg.__array_namespace_info__()
    for name, signature in INFO.items():
        compare(getattr(info, name), signature)
    assert isinstance(info.devices(), tuple)
    assert info.dtypes().keys() <= {*DTYPES}
    assert info.default_dtypes().keys() == {
        "real floating",
        "complex floating",
        "integral",
        "indexing",
    }
    assert {"boolean indexing", "data-dependent shapes"} <= info.capabilities().keys()


def test_limits_have_the_standards_attributes() -> None:
    floating, integer = wg.finfo(wg.float32), wg.iinfo(wg.int8)
    for name in ("bits", "eps", "max", "min", "smallest_normal", "dtype"):
        assert hasattr(floating, name)
    assert (integer.bits, integer.max, integer.min, integer.dtype) == (8, 127, -128, wg.int8)


def test_signatures_are_compared() -> None:
    """What a wrong signature is refused for."""
    for wrong in (
        lambda x, /: x,
        lambda x, axis, /: x,
        lambda x, /, *, axis: x,
        lambda x, /, *, axis=None, more: x,
        lambda x, more, /, *, axis=None: x,
    ):
        with pytest.raises((AssertionError, KeyError)):
            compare(wrong, "x / * axis=")
    compare(lambda x, /, *, axis=None, more=None: x, "x / * axis=")
    compare(lambda x, /, axis=None, *, more=None: x, "x / * axis=")


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
        signature = SIGNATURES.get(name)
        if signature not in ("x /", "x1 x2 /") or (backend.name, name) in OWN:
            continue
        raw = [backend.from_numpy(x) for x in (one if signature == "x /" else two)]
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
