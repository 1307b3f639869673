"""Files of the safetensors format: their data types, and how one is written and read."""

import hashlib
import json
import math
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from io import BytesIO
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, Final

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
#: The key, in a file's own metadata, of the digest of its description and its data.
DIGEST: Final = "wengert_blake2b"
_BLANK: Final = "0" * 32
#: What a header that is none raises.
_UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
#: Bytes that are read at a time: they are hashed while they are in the processor's cache.
_CHUNK: Final = 1 << 20
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


def numpy_dtype_of(dtype: DType) -> np.dtype[Any]:
    """NumPy's dtype of a data type; ml_dtypes has those that NumPy lacks."""
    return np.dtype(
        dtype.name if dtype.host == dtype.name else getattr(library("ml_dtypes"), dtype.name)
    )


def read_file(
    path: str, verify: bool, check: Callable[[DType, str], object] | None = None
) -> tuple[dict[str, str], dict[str, tuple[np.ndarray[Any, Any], DType]]]:
    """Return a file's metadata, and its arrays with their dtypes by name, sorted.

    Bytes are compared with the file's digest as they are read. Without ``verify``, arrays are read
    one after the other, so that memory holds no more than they take. Those of a dtype that NumPy
    lacks are in float32. ``check`` raises for a dtype and a name before they are read.
    """
    if type(verify) is not bool:
        raise TypeError(f"verify is True or False, not {verify!r}")
    with open(path, "rb") as file:  # noqa: PTH123 -- an error has the path as it was given
        source: Any = file if file.seekable() else BytesIO(file.read())
        size = source.seek(0, os.SEEK_END)
        source.seek(0)
        content: Any
        if verify or source is not file or not size:
            content, damaged = _read_bytes(source, size, verify)
        else:
            content, damaged = mmap(file.fileno(), 0, access=ACCESS_READ), False
    try:
        metadata, items = _describe_content(content)
    except _UNREADABLE as error:
        told = _other_format(bytes(content))
        told = told or f"no safetensors file, or is not complete: {error}"
        raise ValueError(f"{path} is {told}") from error
    if damaged:
        raise ValueError(
            f"{path} is damaged: its arrays are not those that were saved (or a program changed "
            "them and kept their digest); take another copy of it (verify=False reads it)"
        )
    arrays = {}
    for name, (word, shape, begin, end) in sorted(items.items()):
        if word not in STORED:
            raise TypeError(f"{path} holds {name!r} in {word}, which Wengert lacks")
        dtype = STORED[word]
        if check is not None:
            check(dtype, name)
        stored = np.dtype(np.uint8) if dtype.name == "bool" else numpy_dtype_of(dtype)
        if math.prod(shape) * stored.itemsize != end - begin:
            raise ValueError(
                f"{path} is no safetensors file, or is not complete: {name!r} has {end - begin} "
                f"bytes for {word} of the shape {shape}"
            )
        raw = np.ndarray((end - begin) // stored.itemsize, stored, content, begin)
        array = raw != 0 if dtype.name == "bool" else raw.astype(dtype.host)
        try:
            arrays[name] = array.reshape(shape), dtype
        except ValueError as error:  # none of its numbers, and NumPy's arrays are not as long
            raise ValueError(f"{path} holds {name!r} of the shape {shape}: {error}") from error
    return metadata, arrays


def _read_bytes(source: Any, size: int, verify: bool) -> tuple[memoryview, bool]:
    """A file's bytes, and whether they are others than those that its digest was made of."""
    content = np.empty(size, np.uint8).data
    at = source.readinto(content[:8])
    at += source.readinto(content[at : at + min(_size_of_header(content), LONGEST_HEADER)])
    digest: Any = None
    expected = None
    if verify:
        with suppress(*_UNREADABLE):  # which the caller finds, too
            digest, expected = _digest(_describe_content(content))
    while n := source.readinto(content[at : at + _CHUNK]):
        if digest:
            digest.update(content[at : at + n])
        at += n
    return content, at < size or bool(expected and digest.hexdigest() != expected)


def _digest(described: tuple[dict[str, str], dict[str, Any]]) -> tuple[Any, str | None]:
    """A hash of a description, however it is written, that data follow; and the file's digest."""
    metadata, items = described
    if (expected := metadata.get(DIGEST)) is None:
        return None, None
    start = min([begin for _, _, begin, _ in items.values()], default=0)
    listed = [
        [name, word, shape, begin - start, end - start]
        for name, (word, shape, begin, end) in sorted(items.items())
    ]
    rest = sorted((key, word) for key, word in metadata.items() if key != DIGEST)
    return hashlib.blake2b(json.dumps([rest, listed]).encode(), digest_size=16), expected


def _size_of_header(content: memoryview | mmap) -> int:
    return int.from_bytes(content[:8], "little")


def _describe_content(
    content: memoryview | mmap,
) -> tuple[dict[str, str], dict[str, tuple[str, list[int], int, int]]]:
    """The metadata, and the dtype, shape, begin and end of each array, as the format has them."""
    start = 8 + _size_of_header(content)
    if not 8 < start <= min(len(content), 8 + LONGEST_HEADER):
        raise ValueError(f"it has {len(content)} bytes, and its header would end at {start}")
    header = json.loads(bytes(content[8:start]).decode())
    metadata = header.pop("__metadata__", None)
    if metadata is None:
        metadata = {}
    if not all(type(word) is str for word in metadata.values()):
        raise ValueError("its metadata are not strings")
    items = {}
    at = start
    for name, item in sorted(header.items(), key=lambda pair: pair[1]["data_offsets"]):
        word, shape, (begin, end) = item["dtype"], item["shape"], item["data_offsets"]
        numbers = [*shape, begin, end]
        sound = type(word) is str and all(type(n) is int and n >= 0 for n in numbers)
        if not (sound and at == start + begin <= start + end):
            raise ValueError(f"the dtype, shape or place of {name!r} is none")
        at = start + end
        items[name] = word, shape, start + begin, at
    if at != len(content):
        raise ValueError(f"it has {len(content)} bytes, and its arrays end at {at}")
    return metadata, items


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


def host_array(tensor: Tensor) -> np.ndarray[Any, Any]:
    """A Tensor's values for a file: of its own dtype, in row-major order."""
    return np.array(tensor.numpy(), dtype=numpy_dtype_of(tensor.dtype), order="C")


def write_file(
    path: str, arrays: dict[str, np.ndarray[Any, Any]], metadata: dict[str, str] | None = None
) -> None:
    """Write arrays to a file of the format, as a whole or not at all."""
    metadata = dict(sorted({DIGEST: _BLANK, **(metadata or {})}.items()))
    content = memoryview(library("safetensors").numpy.save(arrays, metadata))
    if (size := _size_of_header(content)) > LONGEST_HEADER:
        raise ValueError(
            f"the names and numbers to be stored take {size} bytes; the format allows "
            f"{LONGEST_HEADER}"
        )
    digest, _ = _digest(_describe_content(content))
    digest.update(content[8 + size :])
    # The library writes metadata in any order: here, equal states have equal bytes.
    header = json.loads(bytes(content[8 : 8 + size]))
    header["__metadata__"] = {**metadata, DIGEST: digest.hexdigest()}
    described = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    described += b" " * (-len(described) % 8)
    replace_file(path, len(described).to_bytes(8, "little"), described, content[8 + size :])


def replace_file(path: str, *parts: bytes | memoryview) -> None:
    """Write a file as a whole or not at all."""
    target = Path(path).resolve()  # of a link, what it leads to is replaced
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):  # a pipe or a device has no other beside it
        with target.open("wb") as file:
            file.writelines(parts)
        return
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(f"{path} may not be written; its permissions say so")
    # The name's beginning, since a whole one may be as long as names can be.
    beside = target.with_name(f"{target.name[:40]}.{secrets.token_hex(6)}.tmp")
    try:
        # Not by `tempfile`, whose files are for their owner alone: here the umask decides.
        with beside.open("xb") as file:
            file.writelines(parts)
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
