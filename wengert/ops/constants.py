"""The constants of the standard: its numbers and its data types."""

import math
from typing import Final

from wengert.backends import DTYPES

__all__ = [
    "bfloat16",
    "bool",
    "complex64",
    "complex128",
    "e",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "float32",
    "float64",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "nan",
    "newaxis",
    "pi",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

e: Final = math.e
inf: Final = math.inf
nan: Final = math.nan
pi: Final = math.pi
#: Stands in an index for a new axis of length 1.
newaxis: Final = None

bool: Final = DTYPES["bool"]
int8: Final = DTYPES["int8"]
int16: Final = DTYPES["int16"]
int32: Final = DTYPES["int32"]
int64: Final = DTYPES["int64"]
uint8: Final = DTYPES["uint8"]
uint16: Final = DTYPES["uint16"]
uint32: Final = DTYPES["uint32"]
uint64: Final = DTYPES["uint64"]
#: More than the standard asks for, where the array library has them.
float8_e4m3fn: Final = DTYPES["float8_e4m3fn"]
float8_e5m2: Final = DTYPES["float8_e5m2"]
float16: Final = DTYPES["float16"]
bfloat16: Final = DTYPES["bfloat16"]
float32: Final = DTYPES["float32"]
float64: Final = DTYPES["float64"]
complex64: Final = DTYPES["complex64"]
complex128: Final = DTYPES["complex128"]
