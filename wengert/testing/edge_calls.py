"""The calls where libraries disagree, by functions: values, data types and parameters."""

from typing import Any

import numpy as np

__all__ = ["BEYOND", "OPEN", "STANDARD"]

nan, inf = float("nan"), float("inf")
#: Signs, halves, infinities, no numbers, and numbers that are lost beside 1.
_REAL = np.array(
    [nan, inf, -inf, 0.0, -0.0, 1e-18, -3e-19, 2e-9, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -7.5, 40.0]
)
_SINGLE = _REAL.astype("float32")
_FAR = np.array([1e3, -1e3, 3e5, -2e5, 7e9, -7e9, 1e200, -1e200, 1e-200, 130.0, -650.0])
_FAR_SINGLE = np.array([1e3, -1e3, 3e5, -2e5, 7e9, 80.0, -80.0, 1e30, -1e30], dtype="float32")
_SCALAR = np.asarray(0.7)
_MANY = np.linspace(-2.0, 3.0, 1003)  # more than a library handles at once, and a rest
_COMPLEX = np.array([0.3 + 0.4j, -1.5 + 2j, 2 - 0.7j, -0.2 - 0.1j])
#: On the axes, where branch cuts are, on both sides of them.
_CUTS = np.array(
    [
        complex(*pair)
        for at in (-2.0, -0.5, 0.5, 2.0)
        for zero in (0.0, -0.0)
        for pair in ((at, zero), (zero, at))
    ]
)
_SIGNED = np.array([-100, -7, -1, 0, 1, 2, 5, 7, 100])
_BYTES = _SIGNED.astype("int8")
_LARGE = np.array([2**53 + 1, -(2**53) - 3, 2**62 + 1, 7])  # which no float holds
_NATURAL = np.array([0, 1, 2, 5, 7, 100, 200, 255], dtype="uint8")
_FLAGS = np.array([True, False, True, False])
_OTHERS = np.array([True, True, False, False])
_DIVIDENDS = np.array([-7.5, -7.0, -6.0, -0.5, 0.5, 5.5, 7.0, 7.5])[:, None]
_DIVISORS = np.array([2.0, -2.0, 3.0, -3.0, 0.75])
_CUBE = np.reshape((np.arange(24) * 7 % 24 + 1) / 8 * (-1.0) ** np.arange(24), (2, 3, 4))
_MATRIX = _CUBE[0]
_SQUARE = np.array([[2.1, 0.3, 0.4], [0.2, 1.3, 0.5], [0.6, 0.1, 3.2]])
_DEFINITE = _SQUARE @ _SQUARE.T
_WHOLE = np.array([[3, -1, 2], [0, 100, 5]])
_TIES = np.array([[2.0, 1.0, 2.0, 0.0, 1.0], [1.0, 1.0, 3.0, -inf, inf]])
_HOLES = np.array([[1.0, nan, 0.5], [inf, -2.0, 3.0]])
_ODD = np.where(abs(_CUBE) > 2.5, 7e9 * _CUBE, _CUBE)
_ODD.reshape(-1)[[1, 5, 8, 14, 19]] = nan, inf, -inf, -0.0, 0.0
_GAPS = np.array([[0.0, nan, 0.0], [0.0, nan, nan], [0.0, -0.0, 0.0]])
_TURNED = _CUBE.T  # whose elements are in another order in memory
_EMPTY = np.zeros((0, 3, 2))
_SQUARES = np.stack([_SQUARE, _SQUARE @ _SQUARE.T])
_INTEGERS = (
    *(_WHOLE.astype(name) for name in ("int8", "int32", "int64")),
    abs(_WHOLE).astype("u1"),
)
_ARRAYS = [_MATRIX, _MATRIX * 2 + 1]

#: Names of functions, and the values of their parameters; those separated by commas vary together.
#: Each value of the first is combined with the others' values, which vary one parameter at a time.
STANDARD: list[tuple[str, dict[str, Any]]] = [
    (
        (
            "abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf "
            "isnan log log10 log1p log2 negative positive reciprocal round sign signbit sin sinh "
            "sqrt square tan tanh trunc"
        ),
        {"x": [_REAL, _SINGLE, _FAR, _FAR_SINGLE, _SCALAR, _MANY, _EMPTY]},
    ),
    (
        (
            "abs acos acosh asin asinh atan atanh conj cos cosh exp expm1 imag isfinite isinf "
            "isnan log log10 log1p log2 negative positive real reciprocal round sign sin sinh "
            "sqrt square tan tanh"
        ),
        {"x": [_COMPLEX, _COMPLEX.astype("complex64"), _CUTS, 20 * _COMPLEX, _COMPLEX[:0]]},
    ),
    ("abs negative", {"x": [_SIGNED, _BYTES]}),
    ("ceil floor trunc round positive", {"x": [_SIGNED, _BYTES, _NATURAL]}),
    ("sign square isfinite isinf isnan", {"x": [_SIGNED, _SIGNED.astype("int32")]}),
    ("bitwise_invert", {"x": [_SIGNED, _BYTES, _NATURAL, _FLAGS]}),
    ("logical_not", {"x": [_FLAGS]}),
    ("logical_and logical_or logical_xor", {"x1,x2": [(_FLAGS, _OTHERS)]}),
    (
        "bitwise_and bitwise_or bitwise_xor",
        {
            "x1,x2": [
                (_FLAGS, _OTHERS),
                (_SIGNED, _SIGNED[:, None]),
                (_BYTES, _BYTES[:, None]),
                (_BYTES, _SIGNED[:, None]),
            ]
        },
    ),
    (
        "bitwise_left_shift bitwise_right_shift",
        {"x1,x2": [(_SIGNED, np.array([[0], [3]])), (_BYTES, np.array([[0], [7]], dtype="int8"))]},
    ),
    (
        "add subtract multiply",
        {
            "x1,x2": [
                (_REAL, _REAL[:, None]),
                (_BYTES[1:-1], _BYTES[1:-1, None]),
                (_BYTES, _SIGNED[:, None]),
                (_SINGLE, _REAL[:, None]),
                (_COMPLEX, _COMPLEX[:, None]),
            ]
        },
    ),
    (
        (
            "add atan2 copysign divide equal floor_divide greater greater_equal hypot less "
            "less_equal logaddexp maximum minimum multiply nextafter not_equal pow remainder "
            "subtract"
        ),
        {"x1,x2": [(_SCALAR, np.asarray(2.1)), (_EMPTY, _EMPTY), (_EMPTY, _SCALAR)]},
    ),
    (
        (
            "add atan2 copysign divide equal greater greater_equal less less_equal logaddexp "
            "maximum minimum multiply not_equal subtract"
        ),
        {"x1,x2": [(_FAR, _FAR[:, None]), (_FAR_SINGLE, _FAR_SINGLE[:, None])]},
    ),
    (
        "equal not_equal less less_equal greater greater_equal",
        {
            "x1,x2": [
                (_REAL, _REAL[:, None]),
                (_SIGNED, _SIGNED[:, None]),
                (_BYTES, _SIGNED[:, None]),
            ]
        },
    ),
    (
        "add multiply",
        {"x1,x2": [(_SINGLE, 1e-3), (_SCALAR, _SCALAR), (_MANY, _MANY), (_NATURAL, 3)]},
    ),
    ("add multiply", {"x1,x2": [(_TURNED, _TURNED.copy()), (_EMPTY, _EMPTY[..., :1])]}),
    (
        "equal not_equal",
        {
            "x1,x2": [
                (_FLAGS, _OTHERS),
                (_COMPLEX, np.conj(_COMPLEX)),
                (_COMPLEX, _COMPLEX[:, None]),
            ]
        },
    ),
    (
        "maximum minimum",
        {
            "x1,x2": [
                (_REAL, _REAL[:, None]),
                (_SIGNED, _SIGNED[:, None]),
                (_BYTES, _SIGNED[:, None]),
            ]
        },
    ),
    (
        "floor_divide remainder",
        {
            "x1,x2": [
                (_DIVIDENDS, _DIVISORS),
                (_DIVIDENDS.astype("float32"), _DIVISORS.astype("float32")),
                (_SIGNED[:, None], np.array([2, -2, 3, -5])),
                (_BYTES[:, None], np.array([2, -2, 3, -5], dtype="int8")),
                (_NATURAL[:, None], np.array([2, 3, 5], dtype="uint8")),
            ]
        },
    ),
    ("remainder", {"x1,x2": [(np.array([[-2.5], [0.0], [3.0]]), np.array([inf, -inf, 0.0, nan]))]}),
    ("hypot", {"x1,x2": [(np.array([[3e200], [3e-200], [0.0]]), np.array([4e200, -4e-200, 0.0]))]}),
    ("divide", {"x1,x2": [(_REAL, _REAL[:, None]), (_COMPLEX, _COMPLEX[:, None])]}),
    ("atan2 copysign hypot logaddexp nextafter", {"x1,x2": [(_REAL[1:], _REAL[1:, None])]}),
    (
        "pow",
        {
            "x1,x2": [
                (np.array([[-2.0], [-0.5], [0.0], [1.0], [3.0]]), np.array([-2.0, 0.0, 0.5, 3.0])),
                (_SIGNED[1:-1, None], np.array([0, 1, 2, 5])),
                (_BYTES[2:-2, None], np.array([0, 1, 2], dtype="int8")),
                (_COMPLEX[:, None], np.array([2.0 + 0j, 0.5 - 1j])),
            ]
        },
    ),
    (
        "clip",
        {
            "x": [_CUBE, _WHOLE, _WHOLE.astype("int8")],
            "min,max": [(-1, 1), (-1, None), (None, 1), (0, 0)],
        },
    ),
    ("clip", {"x": [_HOLES], "min,max": [(-1.5, 1.5), (None, np.array([0.5, 1.0, inf]))]}),
    (
        "where",
        {
            "condition": [np.array([[True], [False]])],
            "x1,x2": [
                *((_REAL, -_REAL), (_BYTES, _SIGNED), (_SINGLE, 0.5), (2, _SIGNED)),
                *((_FAR, -_FAR), (_SCALAR, np.asarray(2.1)), (_EMPTY[..., None, :0], _SCALAR)),
            ],
        },
    ),
    (
        "sum prod",
        {
            "x": [_CUBE, _TURNED, _CUBE.astype("float32"), _HOLES, _CUBE + 1j, *_INTEGERS],
            "axis": [None, 0, -1, (0, 1)],
            "keepdims": [False, True],
            "dtype": [None, "float32", "int64", "int32"],
        },
    ),
    (
        "max min",
        {
            "x": [_CUBE, _HOLES, *_INTEGERS],
            "axis": [None, 0, -1, (0, 1)],
            "keepdims": [False, True],
        },
    ),
    (
        "mean",
        {
            "x": [_CUBE, _HOLES, _CUBE + 1j],
            "axis": [None, 0, -1, (0, 1)],
            "keepdims": [False, True],
        },
    ),
    (
        "var std",
        {
            "x": [_CUBE, _HOLES, _CUBE.astype("float32")],
            "axis": [None, 0, -1, (0, 1)],
            "keepdims": [False, True],
            "correction": [0.0, 1.0, 0.5],
        },
    ),
    (
        "all any count_nonzero",
        {
            "x": [_CUBE > 0, np.where(_CUBE > 0, _CUBE, 0), _WHOLE, _HOLES, _GAPS],
            "axis": [None, 0, -1, (0, 1)],
            "keepdims": [False, True],
        },
    ),
    ("sum prod max min mean", {"x": [_SCALAR, _MANY]}),
    (
        "all any argmax argmin argsort count_nonzero max min nonzero sort unique_values",
        {"x": [_FAR[:6], _FAR_SINGLE[:5]]},
    ),
    ("cumulative_sum mean std sum var", {"x": [abs(_FAR[:6]), -abs(_FAR_SINGLE[:5])]}),
    ("all any max min std sum var", {"x": [_SCALAR]}),
    ("atan2 copysign hypot logaddexp nextafter", {"x1,x2": [(_HOLES, _HOLES[::-1])]}),
    (
        "floor_divide pow remainder",
        {"x1,x2": [(abs(_FAR[:6]), np.array([3.0, 7.5, -1.5])[:, None])]},
    ),
    ("sum max min argmax argmin sort argsort cumulative_sum unique_values", {"x": [_LARGE]}),
    ("abs negative positive sign square floor round", {"x": [_LARGE[:2] // 2**23, _LARGE]}),
    ("add subtract multiply maximum minimum", {"x1,x2": [(_LARGE, 1), (_LARGE, _LARGE[:, None])]}),
    ("equal less greater_equal", {"x1,x2": [(_LARGE, _LARGE + 1), (_LARGE, _LARGE - 1)]}),
    ("floor_divide remainder", {"x1,x2": [(_LARGE, 3), (_LARGE, np.array([7, -7, 2**31, 2]))]}),
    ("bitwise_right_shift", {"x1,x2": [(_LARGE, 1), (_LARGE, np.array([1, 40, 62, 63]))]}),
    ("astype", {"x": [_LARGE], "dtype": ["int64", "bool"]}),
    ("sum prod all any", {"x": [_EMPTY], "axis": [None, 0, 1]}),
    (
        "argmax argmin",
        {
            "x": [_TIES, _WHOLE, _WHOLE.astype("int8"), _GAPS],
            "axis": [None, 0, -1],
            "keepdims": [False, True],
        },
    ),
    (
        "sort argsort",
        {
            "x": [_TIES, *_INTEGERS[:3], _ODD, _EMPTY],
            "axis": [-1, 0],
            "descending": [False, True],
            "stable": [True],
        },
    ),
    (
        "cumulative_sum cumulative_prod",
        {
            "x": [_CUBE, _CUBE.astype("float32"), *_INTEGERS],
            "axis": [1, 0, -1],
            "dtype": [None, "float32", "int64"],
            "include_initial": [False, True],
        },
    ),
    ("cumulative_sum cumulative_prod", {"x": [_TIES[0]], "include_initial": [False, True]}),
    (
        "searchsorted",
        {
            "x1,x2": [
                (np.sort(_TIES[0]), _TIES),
                (np.array([1, 3, 3, 8]), _WHOLE),
            ],
            "side": ["left", "right"],
        },
    ),
    (
        "searchsorted",
        {
            "x1": [_TIES[0]],
            "x2": [_TIES],
            "side": ["left", "right"],
            "sorter": [np.argsort(_TIES[0], kind="stable")],
        },
    ),
    ("isin", {"x1,x2": [(_WHOLE, np.array([0, 5, 6]))], "invert": [False, True]}),
    (
        "diff",
        {
            "x": [_CUBE, _WHOLE, _WHOLE.astype("int8"), _ODD],
            "axis": [-1, 0],
            "n": [1, 0, 2],
            "prepend": [None],
        },
    ),
    ("nonzero unique_values unique_counts unique_inverse", {"x": [_TIES, _WHOLE, _GAPS, _EMPTY]}),
    ("unique_all", {"x": [_TIES[0], _WHOLE]}),
    ("tril triu", {"x": [_CUBE, _WHOLE, _ODD, _EMPTY], "k": [0, 1, -1, 5]}),
    ("roll", {"x": [_CUBE, _ODD], "shift,axis": [(1, None), (-2, 1), (5, 0), ((1, -2), (0, 2))]}),
    (
        "repeat",
        {"x": [_MATRIX, _ODD[1]], "repeats,axis": [(2, None), (2, 0), (np.array([1, 0, 2]), 0)]},
    ),
    (
        "take",
        {"x": [_CUBE, _ODD], "indices,axis": [(np.array([1, 0, 0]), 0), (np.array([2, -1]), -1)]},
    ),
    (
        "take_along_axis",
        {"x": [_CUBE, _ODD], "indices": [np.array([[[1, 0]]])], "axis": [-1]},
    ),
    ("take_along_axis", {"x": [_CUBE], "indices": [np.array([[[1]], [[0]]])], "axis": [0]}),
    ("take_along_axis", {"x": [_SQUARE], "indices": [np.argsort(_SQUARE, 0)], "axis": [0]}),
    ("flip", {"x": [_CUBE, _ODD, _EMPTY], "axis": [None, 0, -1, (0, 2)]}),
    (
        "concat",
        {
            "arrays": [_ARRAYS, [_ODD[0], _MATRIX], [_WHOLE.astype("int8"), _WHOLE]],
            "axis": [0, 1, -1, None],
        },
    ),
    (
        "stack",
        {
            "arrays": [_ARRAYS, [_ODD, _CUBE], [_EMPTY, _EMPTY], [_BYTES, _SIGNED]],
            "axis": [0, 1, -1],
        },
    ),
    ("unstack", {"x": [_CUBE, _ODD], "axis": [0, 1, -1]}),
    ("expand_dims", {"x": [_CUBE, _ODD, _EMPTY], "axis": [0, 2, -1]}),
    ("squeeze", {"x": [_CUBE[:1, :, :1], _ODD[:1, :, 1:2]], "axis": [0, -1, (0, 2)]}),
    (
        "moveaxis",
        {"x": [_CUBE, _ODD, _EMPTY], "source,destination": [(0, 2), (-1, 0), ((0, 1), (2, 0))]},
    ),
    ("permute_dims", {"x": [_CUBE, _ODD, _EMPTY], "axes": [(2, 0, 1), (1, 0, 2)]}),
    ("reshape", {"x": [_CUBE, _TURNED, _ODD], "shape": [(4, 6), (-1, 3), (24,)]}),
    ("concat", {"arrays": [[_EMPTY[:, 0], _SQUARE[:, :2]]]}),
    ("tile", {"x": [_MATRIX, _ODD[0], _EMPTY[:, 0]], "repetitions": [(2, 1), (2,), (2, 1, 3)]}),
    ("broadcast_to", {"x": [_MATRIX[:, :1], _ODD[1, :, 2:3]], "shape": [(3, 4), (2, 3, 2)]}),
    ("matrix_transpose", {"x": [_CUBE, _WHOLE, _ODD, _EMPTY]}),
    (
        "meshgrid",
        {"arrays": [[_TIES[0], _DIVISORS], [_ODD[0, 0], _ODD[1, 0]]], "indexing": ["xy", "ij"]},
    ),
    (
        "matmul",
        {
            "x1,x2": [
                (_CUBE, _MATRIX.T),
                (_MATRIX[0], _MATRIX[1]),
                (_CUBE, _MATRIX[1]),
                (_WHOLE, _WHOLE.T),
                (7e9 * _CUBE, _MATRIX.T),
                (_MATRIX + 1j, _MATRIX.T - 2j),
                (_EMPTY[:, 0].T, _EMPTY[:, 0]),
                (_MATRIX[:, 0], _CUBE),
                (_CUBE[:, None], _CUBE.mT),
                (_LARGE[:2], _LARGE[3:].repeat(2)),
            ]
        },
    ),
    (
        "vecdot",
        {"x1,x2": [(_CUBE, _CUBE * 2), (_CUBE + 1j, _CUBE - 2j)], "axis": [-1, -2]},
    ),
    ("tensordot", {"x1,x2": [(_CUBE, _CUBE)], "axes": [3, ((0, 1), (0, 1)), ((2,), (2,))]}),
    ("arange", {"start,stop,step": [(5, None, 1), (5, -3, -2), (0.5, 3, 0.5)]}),
    ("linspace", {"start,stop,num": [(-1, 2, 5), (3.0, 1.0, 4)], "endpoint": [True, False]}),
    ("eye", {"n_rows,n_cols": [(3, None), (2, 4)], "k": [0, 1, -1], "dtype": [None, "int32"]}),
    ("full", {"shape": [(2,)], "fill_value": [2, 2.5, True], "dtype": [None, "float32"]}),
    ("full_like", {"x": [_WHOLE, _CUBE], "fill_value": [2], "dtype": [None, "float32"]}),
    ("zeros ones", {"shape": [(2, 3), 4], "dtype": [None, "int8", "bool", "complex64"]}),
    ("zeros_like ones_like", {"x": [_CUBE, _WHOLE, _FLAGS], "dtype": [None, "float32"]}),
    (
        "astype",
        {
            "x": [np.array([0.0, -2.9, 2.9, 100.5, 0.3]), np.array([0, 1, 2, 100])],
            "dtype": ["int32", "int8", "bool", "float32", "complex128"],
        },
    ),
    ("linalg.cholesky", {"x": [_DEFINITE, _SQUARES[1:], 2e4 * _DEFINITE], "upper": [False, True]}),
    (
        "linalg.cross",
        {"x1,x2": [(_SQUARE, _SQUARE.T), (_SQUARE + 1j, _SQUARE.T)], "axis": [-1, -2]},
    ),
    ("linalg.diagonal linalg.trace", {"x": [_CUBE, _WHOLE, _ODD], "offset": [0, 1, -1]}),
    ("linalg.trace", {"x": _INTEGERS, "dtype": [None, "float32"]}),
    (
        "linalg.det linalg.slogdet linalg.inv",
        {
            "x": [
                *(_SQUARE, -_SQUARE, _SQUARE + 1j * _DEFINITE, _SQUARES, _EMPTY[:, :2]),
                2e4 * _SQUARE,
            ]
        },
    ),
    ("linalg.matrix_power", {"x": [_SQUARE, _SQUARES, -2e4 * _SQUARE], "n": [0, 1, 3, -2]}),
    (
        "linalg.matrix_norm",
        {"x": [_CUBE], "ord": ["fro", "nuc", 1, -1, 2, -2, inf, -inf], "keepdims": [False, True]},
    ),
    (
        "linalg.vector_norm",
        {
            "x": [_CUBE, _CUBE + 1j],
            "axis": [None, 0, -1, (0, 1)],
            "ord": [2, 0, 1, -1, 3.5, inf, -inf],
            "keepdims": [False, True],
        },
    ),
    (
        "linalg.matrix_rank",
        {"x": [_SQUARE, _SQUARE[:2], 0 * _SQUARE, _SQUARES], "rtol": [None, 0.3]},
    ),
    ("linalg.pinv", {"x": [_MATRIX, _MATRIX.T, _CUBE, 2e4 * _MATRIX], "rtol": [None, 0.3]}),
    (
        "linalg.outer",
        {"x1,x2": [(_FAR, _REAL), (_COMPLEX, _COMPLEX), (_BYTES[1:-1], _BYTES[1:-1])]},
    ),
    ("linalg.qr linalg.svd", {"x": [_MATRIX.T, -2e4 * _MATRIX.T, _CUBE]}),
    ("linalg.eig linalg.eigh", {"x": [_DEFINITE, -2e4 * _DEFINITE, _SQUARES[1:]]}),
    ("linalg.eigvals", {"x": [_SQUARE + 1j * _DEFINITE]}),
    ("linalg.qr", {"x": [_MATRIX.T], "mode": ["reduced"]}),
    (
        "linalg.solve",
        {
            "x1,x2": [
                (_SQUARE, _SQUARE[0]),
                (_SQUARE, _SQUARE[:, :2]),
                (_SQUARES, _SQUARE[0]),
                (_SQUARE, _CUBE),
                (_SQUARES, _CUBE),
            ]
        },
    ),
    (
        "linalg.svdvals linalg.eigvalsh",
        {"x": [_DEFINITE, -2e4 * _DEFINITE, _DEFINITE.astype("float32"), _SQUARES[1:]]},
    ),
    (
        "fft.fft fft.ifft fft.irfft fft.hfft",
        {
            "x": [_CUBE + 1j, 2e4 * _CUBE - 1j],
            "n": [None, 3, 6],
            "axis": [-1, 0],
            "norm": ["backward", "ortho", "forward"],
        },
    ),
    (
        "fft.rfft fft.ihfft",
        {
            "x": [_CUBE, -2e4 * _CUBE],
            "n": [None, 3, 6],
            "axis": [-1, 0],
            "norm": ["backward", "ortho", "forward"],
        },
    ),
    (
        "fft.fftn fft.ifftn",
        {"x": [_CUBE + 1j, 2e4 * _CUBE - 1j], "axes": [None, (0, 2)], "norm": ["ortho"]},
    ),
    ("fft.fftshift fft.ifftshift", {"x": [_CUBE, _ODD], "axes": [None, 0, (0, 1)]}),
    ("fft.fftfreq fft.rfftfreq", {"n": [5, 6], "d": [1.0, 0.7]}),
]

#: Functions whose results the standard leaves open, so that libraries may differ from NumPy: the
#: default data type of new arrays, and the order of unique elements.
OPEN = (
    *("arange", "eye", "full", "linspace", "ones", "zeros", "fft.fftfreq", "fft.rfftfreq"),
    *("unique_all", "unique_counts", "unique_inverse", "unique_values"),
)
#: Calls beyond the standard, which Wengert allows and libraries may refuse.
BEYOND: list[tuple[str, dict[str, Any]]] = [
    ("sum prod cumulative_sum", {"x": [_FLAGS]}),
    ("max min argmax argmin", {"x": [_FLAGS]}),
    ("sin exp sqrt log1p tanh", {"x": [_WHOLE, _FLAGS, _BYTES[4:]]}),
    ("divide", {"x1,x2": [(_SIGNED, np.array([2])), (_FLAGS, np.array([2]))]}),
    ("add multiply", {"x1,x2": [(_FLAGS, _SIGNED[:4]), (_SIGNED, 0.5), (_FLAGS, 2)]}),
    (
        "median",
        {"x": [_CUBE, _HOLES], "axis": [None, 0, (0, 1)], "keepdims": [False, True]},
    ),
    ("quantile", {"x": [_CUBE, _HOLES], "q": [0.0, 0.3, 1.0], "axis": [None, 0]}),
]
