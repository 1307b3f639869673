"""Files that are damaged, cut off, or of another format."""

import pickle
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.storage.test_description import bits, rewritten
from wengert import nn


def test_damaged_files_change_nothing(path):
    model, other = nn.Linear(2, 3), nn.Linear(2, 3)
    wg.save(path, model=model, generator=True, epoch=3)
    whole = path.read_bytes()
    before = bits(other.state_dict())
    for n in (0, 3, 8, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:n])
        with pytest.raises(ValueError, match="safetensors file, or is not complete"):
            wg.load(path, model=other)
    path.write_bytes(struct.pack("<Q", 2**62) + whole[8:])
    with pytest.raises(ValueError, match="no safetensors file"):
        wg.load(path, model=other)
    assert bits(other.state_dict()) == before


def flipped(whole, generator):
    """A file with a flipped bit, in each part of it in turn, and where that is."""
    start = 8 + int.from_bytes(whole[:8], "little")
    digest, padding = whole.index(b'"wengert_blake2b'), len(whole[:start].rstrip(b" "))
    parts = [(0, 8), (8, start), (digest, digest + 52), (padding, start), (start, len(whole))]
    assert all(begin < end for begin, end in parts)
    for number in range(1000):
        content = bytearray(whole)
        at = generator.randrange(*parts[number % len(parts)])
        content[at] ^= 1 << generator.randrange(8)
        yield at, content


@pytest.mark.parametrize("kind", ["checkpoint", "weights"])
def test_a_flipped_bit_is_an_error_that_names_the_file(kind, path):
    """In the digest's name alone it is none: what is loaded is what was saved."""
    model, other = nn.Linear(2, 3), nn.Linear(2, 3)
    if kind == "checkpoint":
        wg.save(path, model=model, generator=True, lr=0.125)
    else:
        nn.save(model, path)

    def load():
        if kind == "checkpoint":
            assert wg.load(path, model=other, generator=True) == {"lr": 0.125}
        else:
            other.load_state_dict(nn.load(path))

    whole, right, before = path.read_bytes(), bits(model.state_dict()), bits(other.state_dict())
    name, wrong = whole.index(b"wengert_blake2b") + np.arange(-1, 16), []
    for at, content in flipped(whole, random.Random(0)):
        path.write_bytes(content)
        try:
            load()
        except ValueError as error:
            if not str(error).startswith(f"{path} is ") or bits(other.state_dict()) != before:
                wrong.append((at, str(error)))
        else:
            if at not in name or bits(other.state_dict()) != right:
                wrong.append((at, other.state_dict()))
            before = right
    assert not wrong


def test_a_file_without_a_digest_is_read(path):
    model, other = nn.Linear(2, 3), nn.Linear(2, 3)
    wg.save(path, model=model)
    rewritten(path, lambda text: text)
    assert b"blake2b" not in path.read_bytes()
    wg.load(path, model=other)
    assert bits(other.state_dict()) == bits(model.state_dict())
    held = pytest.importorskip("safetensors.numpy").load_file(path)
    assert held["model.bias"].tolist() == model.bias.tolist()


@pytest.mark.parametrize("load", [wg.load, nn.load])
def test_damage_is_read_where_that_is_wanted(load, path):
    (wg.save if load is wg.load else lambda path, x: nn.save({"x": x}, path))(path, x=wg.ones(2))
    content = bytearray(path.read_bytes())
    content[-1] ^= 0x80
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"run\.safetensors is damaged: .*\(verify=False reads"):
        load(path)
    assert load(path, verify=False)["x"].tolist() == [1, -1]
    with pytest.raises(TypeError, match="verify is True or False, not 0"):
        load(path, verify=0)


@pytest.mark.parametrize("read", [wg.load, wg.nn.load])
def test_pickles_and_numpys_files_are_named(tmp_path: Path, read: Any) -> None:
    told = {"npy": r"x.npy is NumPy's \.npy file", "npz": r"x.npz is NumPy's \.npz file"}
    np.save(tmp_path / "x.npy", np.ones(3))
    np.savez(tmp_path / "x.npz", np.ones(3))
    for protocol in range(6):
        (tmp_path / f"x.{protocol}").write_bytes(pickle.dumps({"w": np.ones(3)}, protocol))
        told[protocol] = rf"x.{protocol} is a pickle, .*safetensors.numpy.save_file"
    for suffix, match in told.items():
        with pytest.raises(ValueError, match=match):
            read(tmp_path / f"x.{suffix}")


@pytest.mark.oracle
@pytest.mark.parametrize(("zipped", "protocol"), [(True, 2), (False, 2), (False, 1), (False, 0)])
def test_a_file_of_pytorchs_is_named(tmp_path: Path, zipped: bool, protocol: int) -> None:
    torch = pytest.importorskip("torch")
    state = torch.nn.Linear(2, 3).state_dict()
    options = {"_use_new_zipfile_serialization": zipped, "pickle_protocol": protocol}
    torch.save(state, tmp_path / "m.pt", **options)
    with pytest.raises(ValueError, match=r"m\.pt is a file of torch.save, .*torch.save_file"):
        wg.load(tmp_path / "m.pt", model=wg.nn.Linear(2, 3))


def test_a_checkpoint_that_is_cut_off_is_no_pickle(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    cut = [length.to_bytes(8, "little") + b"{" for length in (0x280, 0x380, 0x480)]
    for content in (b"", b"{}", b"some text\n", b"(1, 2).", *cut):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is no safetensors file, or is not complete"):
            wg.load(path)


def test_a_file_that_is_written_again_has_the_permissions_that_it_had(path: Path) -> None:
    for mode in (0o640, 0o604):
        path.touch()
        path.chmod(mode)
        wg.save(path, epoch=1)
        assert path.stat().st_mode & 0o777 == mode
