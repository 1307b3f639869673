"""Weights in files: their dtypes, the files' permissions, and files that are not written."""

import json
import os
import stat
import sys
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

import wengert as wg
from wengert import nn
from wengert.backends import DTYPES
from wengert.storage import files

#: Numbers that are different in every dtype of fewer bits, the special ones, and the smallest.
NUMBERS = [0.0, -0.0, 1.0, -1.125, 1.5, 448.0, 2.0**-9, float("nan"), -3.5]
LIBRARY_HAS_NOT = {"bfloat16", "float8_e4m3fn", "float8_e5m2"}


def there(dtype):
    try:
        wg.get_backend().raw_dtype(DTYPES[dtype])
    except TypeError:
        return False
    return True


def same(a, b):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)
    if a.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_every_dtype_comes_back(dtype, backend, tmp_path):
    path = tmp_path / "x.safetensors"
    if dtype == "complex128":
        with pytest.raises(TypeError, match=r"no complex128, which 'x' holds.*real"):
            nn.save({"x": wg.ones(2, dtype=dtype)}, path)
        assert not list(tmp_path.iterdir())
        return
    if not there(dtype):
        pytest.skip(f"{backend.name} has no {dtype}")
    x = wg.asarray(NUMBERS if DTYPES[dtype].kind == "real floating" else [0, 1, 3], dtype=dtype)
    nn.save({"x": x, "empty": x[:0], "scalar": x[1]}, path)
    back = nn.load(path)
    assert {name: (y.dtype.name, tuple(y.shape)) for name, y in back.items()} == {
        "x": (dtype, tuple(x.shape)),
        "empty": (dtype, (0,)),
        "scalar": (dtype, ()),
    }
    assert all(y.backend is backend for y in back.values())
    same(back["x"].numpy(), x.numpy())


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", sorted(set(DTYPES) - {"complex128"}))
def test_the_format_is_that_of_its_own_library(dtype, tmp_path):
    """PyTorch has every dtype of the format, so its files are what ours should be, and back."""
    storage = pytest.importorskip("safetensors.torch")
    import torch

    numbers = NUMBERS if DTYPES[dtype].kind == "real floating" else [0, 1, 3]
    x = torch.tensor(numbers, dtype=torch.float64).to(getattr(torch, dtype))
    arrays = {"b": torch.arange(3, dtype=torch.uint8), "a": x, "c": torch.ones((2, 3))}
    storage.save_file(arrays, tmp_path / "theirs")
    with wg.use_backend("torch"):
        nn.save({name: wg.asarray(array) for name, array in arrays.items()}, tmp_path / "ours")
        mine = nn.load(tmp_path / "theirs")
    for name, array in storage.load_file(tmp_path / "ours").items():
        same(array.to(torch.complex128).numpy(), arrays[name].to(torch.complex128).numpy())
        assert array.dtype is arrays[name].dtype
        assert mine[name].dtype.name == str(array.dtype).split(".")[1]


@pytest.mark.oracle
def test_a_dtype_that_the_backend_lacks(tmp_path):
    """NumPy says so, and converts where that is asked for."""
    torch = pytest.importorskip("torch")
    path = tmp_path / "x.safetensors"
    x, dtypes = torch.tensor([1.0, -2.5, 3.140625]), (torch.bfloat16, torch.float8_e5m2, torch.int8)
    arrays = {str(dtype): x.to(dtype) for dtype in dtypes}
    nn.save(arrays, path)
    told = r"in b?float[_0-9a-z]+, which numpy lacks.*dtype=wg.float32.*exact"
    with wg.use_backend("numpy"):
        with pytest.raises(TypeError, match=told):
            nn.load(path)
        found = nn.load(path, dtype=wg.float32)
    assert [t.dtype.name for t in found.values()] == ["float32", "float32", "int8"]
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name].numpy(), array.to(torch.float32).numpy())
    with pytest.raises(TypeError, match="floating one, and not int8"):
        nn.load(path, dtype="int8")


@pytest.mark.parametrize("dtype", sorted(LIBRARY_HAS_NOT))
def test_what_numpy_lacks_stays_what_it_is(dtype, backend):
    """Where values pass through NumPy on their way: pickles, other backends, modules."""
    import pickle

    if not there(dtype):
        pytest.skip(f"{backend.name} has no {dtype}")
    x = wg.asarray([1.0, -2.5], dtype=dtype)
    back = pickle.loads(pickle.dumps(x))
    assert (back.dtype.name, back.tolist()) == (dtype, [1.0, -2.5])
    with pytest.raises(TypeError, match=f"numpy has no data type {dtype}; float32"):
        x.to_backend("numpy")
    for other in ("torch", "jax"):
        pytest.importorskip(other)
        there_too = x.to_backend(other)
        assert (there_too.dtype.name, there_too.tolist()) == (dtype, [1.0, -2.5])


# -- files ---------------------------------------------------------------------------------------


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


posix = pytest.mark.skipif(os.name != "posix", reason="permissions, links and pipes are POSIX's")


@posix
def test_permissions(tmp_path):
    path = tmp_path / "x.safetensors"
    before = os.umask(0o022)
    try:
        nn.save({"x": wg.ones(2)}, path)
        assert mode(path) == 0o644
        os.umask(0o007)
        nn.save({"x": wg.ones(3)}, path)
        assert mode(path) == 0o644
        path.chmod(0o604)
        nn.save({"x": wg.ones(4)}, path)
        assert mode(path) == 0o604
        nn.save({"x": wg.ones(4)}, tmp_path / "y")
        assert mode(tmp_path / "y") == 0o660
    finally:
        os.umask(before)
    assert nn.load(path)["x"].shape == (4,)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.safetensors", "y"]


@posix
def test_a_link_stays_one(tmp_path):
    (tmp_path / "link").symlink_to("held")
    nn.save({"x": wg.ones(2)}, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert nn.load(tmp_path / "held")["x"].shape == (2,)
    nn.save({"x": wg.ones(2)}, os.devnull)  # which is no file to be replaced
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_a_failure_leaves_the_old_file_alone(step, tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    nn.save({"x": wg.ones(2)}, path)
    held = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(OSError, match="no space"):
            nn.save({"x": wg.zeros(5)}, path)
    assert path.read_bytes() == held
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_after_the_last_step_is_that(tmp_path, monkeypatch):
    path, replace = tmp_path / "x.safetensors", os.replace

    def interrupted(*args):
        replace(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            nn.save({"x": wg.zeros(5)}, path)
    assert nn.load(path)["x"].shape == (5,) and list(tmp_path.iterdir()) == [path]


def write(path, header, data=b"\x01" * 8):
    """Write a file of the format by hand."""
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)


def test_the_formats_own_library_refuses_the_same_files(tmp_path):
    package, path = pytest.importorskip("safetensors"), tmp_path / "x.safetensors"
    sound = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    changes = [
        *({"shape": x} for x in ([], [3], [-2], [2.0], [True, 2], [1, 2], 2, None, ["2"], [2, 0])),
        *(
            {"data_offsets": x}
            for x in ([0, 8, 8], [0], [8, 0], [0.0, 8], [False, 8], [1, 9], "08")
        ),
        *({"dtype": x} for x in ("F64", "BOOL", "I16", 3, None, ["F32"])),
    ]
    empty = {"dtype": "I8", "shape": [0], "data_offsets": [8, 8]}
    headers = [
        *(json.dumps({"x": {**sound, **change}}) for change in changes),
        *(json.dumps({"x": {**sound, "dtype": kind}}) for kind in files.STORED),
        *(
            json.dumps({"x": sound, "y": y})
            for y in (empty, sound, None, [], {**empty, "shape": [1]})
        ),
        *(json.dumps({"x": sound, "__metadata__": x}) for x in ({"a": "b"}, {"a": 1}, None, [], 3)),
        *("", "{}", "[]", "3", "null", "[" * 100_000, '{"x": NaN}', '{"x": ' + "9" * 5000 + "}"),
    ]
    headers = [header.encode() for header in headers]
    generator = np.random.default_rng(0)
    whole = json.dumps({"__metadata__": {"a": "b"}, "x": sound}).encode() + b"   "
    for at in generator.integers(0, len(whole), 500):
        byte = bytes(generator.integers(32, 127, 1, dtype=np.uint8))
        headers.append(whole[:at] + byte + whole[at + 1 :])
    wrong, taken = [], 0
    for header in headers:
        write(path, header)
        try:
            package.deserialize(path.read_bytes())
            refused = False
        except package.SafetensorError:
            refused = True
        try:
            nn.load(path, dtype="float32")
            taken += 1
            if refused:
                wrong.append(header[:100])
        except (ValueError, TypeError) as error:
            if not refused and "lacks" not in str(error):
                wrong.append((header[:100], error))
    assert not wrong and taken > 20


def test_without_a_look_at_the_digest_no_more_is_read_than_an_array_at_a_time(
    tmp_path, monkeypatch
):
    nn.save({"x": wg.ones(2)}, tmp_path / "x")
    monkeypatch.setattr(files, "_read_bytes", None)  # which takes memory for the whole file
    assert nn.load(tmp_path / "x", verify=False)["x"].tolist() == [1, 1]
    with pytest.raises(TypeError, match="not callable"):
        nn.load(tmp_path / "x")


@posix
def test_a_pipe_is_read(tmp_path):
    nn.save({"x": wg.ones(2)}, tmp_path / "x")
    os.mkfifo(tmp_path / "pipe")
    content = (tmp_path / "x").read_bytes()
    for verify in (True, False):
        thread = Thread(target=(tmp_path / "pipe").write_bytes, args=(content,))
        thread.start()
        assert nn.load(tmp_path / "pipe", verify=verify)["x"].tolist() == [1, 1]
        thread.join()


def test_a_stored_bool_is_true_if_it_is_not_zero(tmp_path):
    """As in PyTorch and NumPy, which write 1 and take any byte."""
    header = b'{"x": {"dtype": "BOOL", "shape": [4], "data_offsets": [0, 4]}}'
    write(tmp_path / "x", header, bytes([0, 1, 2, 255]))
    assert nn.load(tmp_path / "x")["x"].tolist() == [False, True, True, True]


def test_files_that_are_none(tmp_path):
    path = tmp_path / "x.safetensors"
    nn.save({"x": wg.ones(2)}, path)
    whole = path.read_bytes()
    for content in (b"", b"abc", whole[:12], b"\xff" * 40, whole[:8] + b"[" + whole[9:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="no safetensors file"):
            nn.load(path)
    for content in (whole[:-1], whole.replace(b"[2]", b"[3]")):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="no safetensors file, or is not complete: "):
            nn.load(path, verify=False)
    nn.save({"x": wg.zeros((0, 100))}, path)
    path.write_bytes(path.read_bytes().replace(b"100]", b"9" * 19 + b"]"))
    content = path.read_bytes()
    path.write_bytes((len(content) - 8).to_bytes(8, "little") + content[8:])
    with pytest.raises(ValueError, match=r"x\.safetensors holds 'x' of the shape \[0, 999"):
        nn.load(path, verify=False)


def test_a_name_is_as_long_as_names_can_be(tmp_path):
    path = tmp_path / ("ä" * 120 + "x" * 15)
    nn.save({"x": wg.ones(2)}, path)
    assert nn.load(path)["x"].shape == (2,) and list(tmp_path.iterdir()) == [path]


@pytest.mark.oracle
def test_without_ml_dtypes_the_error_names_the_extra(monkeypatch, tmp_path):
    x = pytest.importorskip("torch").ones(1).bfloat16()
    nn.save({"x": x}, tmp_path / "x")
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    for call in (
        lambda: nn.save({"x": x}, tmp_path / "y"),
        lambda: nn.load(tmp_path / "x", dtype="float32"),
    ):
        with pytest.raises(ImportError, match=r"ml_dtypes here.*wengert\[safetensors\]"):
            call()
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_file_says_what_it_cannot_give(tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    nn.save({"x": wg.ones(2)}, path)
    with pytest.raises(TypeError, match="dtype is a floating one, and not int8"):
        nn.load(path, dtype="int8")
    for word, size, match in (
        ("F8_E8M0", 1, "holds 'x' in F8_E8M0, which Wengert lacks"),
        ("BF16", 2, "in bfloat16, which numpy lacks; pass dtype=wg.float32 .* it, which is exa"),
    ):
        item = {"dtype": word, "shape": [2], "data_offsets": [0, 2 * size]}
        write(path, json.dumps({"x": item}).encode(), bytes(2 * size))
        with pytest.raises(TypeError, match=match):
            nn.load(path)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    for call in (
        *(lambda: nn.save({"x": wg.ones(1)}, path), lambda: wg.save(path, x=wg.ones(1))),
        # Before anything is copied.
        *(lambda: nn.save({"x": object()}, path), lambda: wg.save(path, x=object())),
    ):
        with pytest.raises(ImportError, match=r"safetensors here.*wengert\[safetensors\]"):
            call()


def test_a_file_that_may_not_be_written_stays_and_a_header_has_an_end(tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    nn.save({"x": wg.ones(2)}, path)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
        with pytest.raises(PermissionError, match="may not be written"):
            nn.save({"x": wg.zeros(2)}, path)
    monkeypatch.setattr(files, "LONGEST_HEADER", 1000)
    nn.save({"x" * 850: wg.zeros(2)}, tmp_path / "y")
    with pytest.raises(ValueError, match=r"names .* stored take 10\d\d bytes; .* allows 1000$"):
        nn.save({"x" * 900: wg.zeros(2)}, path)
    assert path.read_bytes() == before


def test_a_module_is_saved_by_its_state_and_what_cannot_be_saved(tmp_path):
    layer, again = nn.Linear(2, 3), nn.Linear(2, 3)
    nn.save(layer, tmp_path / "x")
    again.load_state_dict(nn.load(tmp_path / "x"))
    np.testing.assert_array_equal(again.weight.detach().numpy(), layer.weight.detach().numpy())
    (tmp_path / "x").unlink()
    for given, message in (
        (wg.ones(2), r"mapping of names to Tensors.*was given Tensor.*save\(\{'x': x\}, path\)"),
        ({1: wg.ones(2)}, "names of stored Tensors should be strings, not 1"),
        ({"lr": 0.1}, "value of 'lr' should be a Tensor or an array, not float; convert"),
        ({"state": {"x": wg.ones(1)}}, "not dict; .*each of several dicts in its own file"),
        ({"__metadata__": wg.ones(1)}, "keeps the name '__metadata__'"),
    ):
        with pytest.raises(TypeError, match=message):
            nn.save(given, tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_a_header_that_another_program_wrote_keeps_its_digest(tmp_path):
    """The digest is of what the header says, whatever the order and the blanks in it."""
    path = tmp_path / "net.safetensors"
    nn.save({"w": wg.ones((3,)), "b": wg.zeros((2,))}, path)
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"]["note"] = ""  # a key that was not there
    for described, refused in ((json.loads(content[8 : 8 + size]), False), (header, True)):
        turned = json.dumps(dict(reversed(described.items())), indent=1).encode()
        path.write_bytes(len(turned).to_bytes(8, "little") + turned + content[8 + size :])
        if refused:
            with pytest.raises(ValueError, match="damaged"):
                nn.load(path)
        else:
            assert nn.load(path)["w"].tolist() == [1.0, 1.0, 1.0]
