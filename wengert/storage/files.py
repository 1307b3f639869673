"""Files of the safetensors format: their data types, and how one is written and read."""

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from wengert.backends import DTYPES, DType
from wengert.backends.backend import importing
from wengert.tape.tensor import Tensor

#: Data types by the names that the format's header has for them.
STORED = {
    "BOOL": DTYPES["bool"],
    "C64": DTYPES["complex64"],
    "F8_E4M3": DTYPES["float8_e4m3fn"],
    "F8_E5M2": DTYPES["float8_e5m2"],
    "BF16": DTYPES["bfloat16"],
    **{f"I{bits}": DTYPES[f"int{bits}"] for bits in (8, 16, 32, 64)},
    **{f"U{bits}": DTYPES[f"uint{bits}"] for bits in (8, 16, 32, 64)},
    **{f"F{bits}": DTYPES[f"float{bits}"] for bits in (16, 32, 64)},
}
#: Bytes; longer ones are not read.
LONGEST_HEADER = 100_000_000
#: How pickles of protocols 2 to 5 begin.
_PROTOCOLS = tuple(bytes([0x80, version]) for version in range(2, 6))
#: The number with which files of torch.save began before version 1.6, as pickles have it.
_OLD_PYTORCHS = ((0x1950A86A20F9469CFC6C).to_bytes(10, "little"), b"119547037146038801333356L")


def library(name: str) -> Any:
    """A package that the extra installs."""
    with importing(
        f"this is stored in the safetensors format, which needs the package {name} here, and that "
        "cannot be imported ({}); install wengert[safetensors]"
    ):
        if name == "safetensors":
            import safetensors.numpy

            return safetensors
        import ml_dtypes

        return ml_dtypes


def held(dtype: DType) -> np.dtype[Any]:
    """NumPy's dtype of a data type; ml_dtypes has those that NumPy lacks."""
    return np.dtype(
        dtype.name if dtype.host == dtype.name else getattr(library("ml_dtypes"), dtype.name)
    )


def read_file(
    path: str, check: Callable[[DType, str], object] | None = None
) -> tuple[bytes, dict[str, tuple[np.ndarray[Any, Any], DType]]]:
    """Return a file's bytes, and its arrays with their dtypes by name, sorted.

    The format's own library checks that they lie within the file. Those of a dtype that NumPy lacks
    are in float32. ``check`` raises for a dtype and a name before they are read.
    """
    package = library("safetensors")
    content = Path(path).read_bytes()
    try:
        found = sorted(package.deserialize(content), key=itemgetter(0))
    except package.SafetensorError as error:
        told = _other_format(content)
        raise ValueError(
            f"{path} is {told}"
            if told
            else f"{path} is no safetensors file, or is not complete: {error}"
        ) from error
    arrays = {}
    for name, item in found:
        if item["dtype"] not in STORED:
            raise TypeError(f"{path} holds {name!r} in {item['dtype']}, which Wengert lacks")
        dtype = STORED[item["dtype"]]
        if check is not None:
            check(dtype, name)
        raw = np.frombuffer(item["data"], held(dtype) if dtype.name != "bool" else np.uint8)
        array = raw != 0 if dtype.name == "bool" else raw.astype(dtype.host)
        try:
            arrays[name] = array.reshape(item["shape"]), dtype
        except ValueError as error:  # none of its numbers, and NumPy's arrays are not as long
            raise ValueError(
                f"{path} holds {name!r} of the shape {item['shape']}: {error}"
            ) from error
    return content, arrays


def _other_format(content: bytes) -> str:
    """What a file is that others write, and what to do about it; "" if that is unknown."""
    if content[:6] == b"\x93NUMPY":
        return "NumPy's .npy file, and no safetensors file: read it with wg.asarray(np.load(path))"
    if content[:4] == b"PK\x03\x04":
        names = content[:65536]
        if b"data.pkl" not in names:
            kind = "NumPy's .npz file" if b".npy" in names else "a zip archive"
            return f"{kind}, and no safetensors file: np.load reads arrays from one of NumPy's"
        kind = "a file of torch.save, which is a pickle"
    elif _is_pickle(content):
        old = any(mark in content[:32] for mark in _OLD_PYTORCHS)
        kind = "a file of torch.save, which is a pickle" if old else "a pickle"
    else:
        return ""
    return (
        f"{kind}, and no safetensors file; pickles run code when they are read, so Wengert reads "
        "none. Where you trust it, read it with what wrote it and save its arrays by "
        "safetensors: safetensors.torch.save_file(torch.load(path), other) for a state_dict of "
        "PyTorch's, safetensors.numpy.save_file(pickle.load(file), other) for a dict of NumPy's "
        "arrays"
    )


def _is_pickle(content: bytes) -> bool:
    """Whether a file is a pickle, those of protocols 0 and 1 by all that it holds."""
    if content[:2] in _PROTOCOLS:
        return content[8:9] != b"{"  # as of a header's length
    try:
        for _ in import_module("pickletools").genops(content):
            pass
    except ValueError:
        return False
    return True


def hosted(tensor: Tensor) -> np.ndarray[Any, Any]:
    """A Tensor's values for a file: of its own dtype, in row-major order."""
    return np.array(tensor.numpy(), dtype=held(tensor.dtype), order="C")


def write_file(
    path: str, arrays: dict[str, np.ndarray[Any, Any]], metadata: dict[str, str] | None = None
) -> None:
    """Write arrays to a file of the format, as a whole or not at all."""
    content = library("safetensors").numpy.save(arrays, metadata)
    if (size := int.from_bytes(content[:8], "little")) > LONGEST_HEADER:
        raise ValueError(
            f"the names and numbers to be stored take {size} bytes; the format allows "
            f"{LONGEST_HEADER}"
        )
    replace_file(path, content)


def replace_file(path: str, content: bytes) -> None:
    """Write a file as a whole or not at all."""
    target = Path(path).resolve()  # of a link, what it leads to is replaced
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):  # a pipe or a device has no other beside it
        with target.open("wb") as file:
            file.write(content)
        return
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(f"{path} may not be written; its permissions say so")
    # The name's beginning, since a whole one may be as long as names can be.
    beside = target.with_name(f"{target.name[:40]}.{secrets.token_hex(6)}.tmp")
    try:
        # Not by `tempfile`, whose files are for their owner alone: here the umask decides.
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            beside.chmod(stat.S_IMODE(mode))
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # the name is on the disk too; not all systems open a directory
        directory = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
