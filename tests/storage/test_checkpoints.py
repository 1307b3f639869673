"""Checkpoints: what comes back, and that loading is all or none."""

import json
import math
import random
from collections import Counter, OrderedDict

import numpy as np
import pytest

import wengert as wg
from tests.storage.test_description import bits, exact
from wengert import nn, optim


def test_containers_and_arrays(path):
    value = {
        "longest": (1 << 14_000) - 1,
        "ordered": OrderedDict(b=1, a=2),
        "counter": Counter([5, 5, 7]),
        "a.b": {"c": np.arange(3, dtype="uint16")},
        "a": {"b.c": np.array([[1.5]], dtype=">f8")},
        "scalar": np.float32(0.1),
        "complex scalar": np.complex64(1 - 2j),
        "complex": np.array([[1j, math.nan]], dtype="complex64"),
        "empty": np.zeros((0, 3), dtype="complex128"),
        "bools": np.array(True),
    }
    wg.save(path, value=value)
    back = wg.load(path)["value"]
    assert [*back] == [*value]
    for name in ("longest", "ordered", "counter", "scalar", "complex scalar"):
        assert exact(back[name]) == exact(value[name])
    for found, given_ in (
        (back["a.b"]["c"], value["a.b"]["c"]),
        (back["a"]["b.c"], value["a"]["b.c"].astype("f8")),
        *((back[name], value[name]) for name in ("complex", "empty", "bools")),
    ):
        assert type(found) is np.ndarray and found.dtype == given_.dtype
        np.testing.assert_array_equal(found, given_)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "float16", "float64", "complex64", "complex128", "bfloat16"]
)
def test_tensors_come_back_on_the_backend(dtype, backend, path):
    try:
        x = wg.asarray([[1, 0, 3]], dtype=dtype)
    except TypeError:
        pytest.skip(f"{backend.name} has no {dtype}")
    wg.save(path, x=x, one=x[0, 0], none=x[:0])
    back = wg.load(path)
    for name, tensor in (("x", x), ("one", x[0, 0]), ("none", x[:0])):
        assert back[name].backend is backend and back[name].dtype is tensor.dtype
        np.testing.assert_array_equal(back[name].numpy(), tensor.numpy())


def network():
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Dropout(0.5), nn.Linear(3, 1))


def step(model, optimizer):
    optimizer.zero_grad()
    loss = wg.sum(model(wg.rand_like(wg.ones((4, 2)))) ** 2)
    loss.backward()
    optimizer.step()
    return loss.item()


def test_training_goes_on_as_it_would_have(backend, path):
    model = network()
    optimizer = optim.Adam(model.parameters(), amsgrad=True)
    step(model, optimizer)
    own = np.random.default_rng(3), random.Random(3)
    wg.save(path, model=model, optimizer=optimizer, generator=True, a=own[0], b=own[1], epoch=3)
    rest = [step(model, optimizer) for _ in range(3)], own[0].random(), own[1].random()
    wg.manual_seed(7)
    other = network()
    others = optim.Adam(other.parameters(), lr=5.0, amsgrad=True)
    fresh = np.random.default_rng(), random.Random()
    found = wg.load(path, model=other, optimizer=others, generator=True, a=fresh[0], b=fresh[1])
    assert found == {"epoch": 3}
    again = [step(other, others) for _ in range(3)], fresh[0].random(), fresh[1].random()
    assert again == rest
    assert bits(other.state_dict()) == bits(model.state_dict())


def test_of_several_models_one_is_loaded(path):
    one, two = network(), network()
    wg.save(path, model=one, average=two)
    other = network()
    assert wg.load(path, average=other) == {}
    assert bits(other.state_dict()) == bits(two.state_dict())
    assert [*wg.load(path)] == ["model", "average"]


def test_objects_get_what_the_backend_lacks_in_float32(path):
    pytest.importorskip("ml_dtypes")
    layer = nn.Linear(1, 2, bias=False).to(wg.float16)
    bits = np.array([[0x3FC0], [0xC000]], "uint16")  # 1.5 and -2 in bfloat16
    layer.load_state_dict({"weight": wg.asarray(bits.view("float16"))})
    wg.save(path, model=layer)
    path.write_bytes(path.read_bytes().replace(b'"F16"', b'"BF16"'))
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    path.write_bytes((size + 1).to_bytes(8, "little") + content[8:])
    with pytest.raises(ValueError, match=r"run\.safetensors is damaged"):
        wg.load(path, model=layer)
    other = nn.Linear(1, 2, bias=False)
    wg.load(path, model=other, verify=False)
    assert other.weight.tolist() == [[1.5], [-2.0]]
    with pytest.raises(TypeError, match="bfloat16"):
        wg.load(path, verify=False)


@pytest.mark.oracle
def test_bfloat16_is_kept(path):
    pytest.importorskip("torch")
    with wg.use_backend("torch"):
        model = network().to(wg.bfloat16)
        optimizer = optim.Adam(model.parameters())
        wg.sum(model(wg.ones((1, 2), dtype=wg.bfloat16))).backward()
        optimizer.step()
        wg.save(path, model=model, optimizer=optimizer)
        other = network().to(wg.bfloat16)
        again = optim.Adam(other.parameters())
    held = json.loads(path.read_bytes()[8:].split(b"}}", 1)[0] + b"}}")["model.0.weight"]
    assert held["dtype"] == "BF16"
    with wg.use_backend("numpy"):  # which is only the way: the model is PyTorch's
        wg.load(path, model=other, optimizer=again)
        with pytest.raises(TypeError, match="bfloat16"):
            wg.load(path)
        narrow = network()
        wg.load(path, model=narrow)
    assert other[0].weight.dtype is wg.bfloat16
    assert other[0].weight.tolist() == model[0].weight.tolist() == narrow[0].weight.tolist()
    first, second = optimizer.state[model[0].weight], again.state[other[0].weight]
    assert str(second["exp_avg"].dtype) == str(first["exp_avg"].dtype) == "torch.float32"
    assert second["exp_avg"].tolist() == first["exp_avg"].tolist()


def test_wrong_calls(path):
    model = network()
    wg.save(path, model=model, epoch=1)
    for call, message in (
        (lambda: wg.save(model, path), r"all else by name: wg.save\('run.safetensors'"),
        (lambda: wg.save(model, model=path), "save takes a path"),
        (lambda: wg.load(path, model), r"all else by name: wg.load\("),
        (lambda: wg.load(path, epoch=1), "epoch is a int, which has no load_state_dict"),
        (lambda: wg.save(path, __metadata__=1), "the format keeps the name '__metadata__'"),
        (lambda: wg.save(path, verify=1), "load keeps the name 'verify'"),
    ):
        with pytest.raises(TypeError, match=message):
            call()
    with pytest.raises(ValueError, match="there is no state of epoch, generator; there are: model"):
        wg.load(path, epoch=model, generator=True)


def test_states_that_are_left_out_beside_an_optimiser_are_named(path):
    """Without its schedule a run goes on at other rates; a model alone may be for use."""
    model = network()
    optimizer = optim.Adam(model.parameters())
    schedule = optim.lr_scheduler.StepLR(optimizer, 3)
    step(model, optimizer)
    wg.save(path, model=model, optimizer=optimizer, schedule=schedule, generator=True, epoch=2)
    other = network()
    others = optim.Adam(other.parameters())
    before = bits(other.state_dict())
    with pytest.warns(UserWarning, match="also holds the states of schedule, generator: a run"):
        assert wg.load(path, model=other, optimizer=others) == {"epoch": 2}
    assert bits(other.state_dict()) == bits(model.state_dict()) != before
    schedules = optim.lr_scheduler.StepLR(others, 3)
    wg.load(path, model=other, optimizer=others, schedule=schedules, generator=True)
    wg.load(path, model=other)
    wg.load(path)


@pytest.mark.parametrize("rule", [optim.Adam, optim.LBFGS])
def test_a_state_that_is_no_optimiser_s_is_refused_by_name(rule, path):
    model = network()
    optimizer = rule(model.parameters())
    wg.save(path, model=model)
    with pytest.raises(ValueError, match=r"no state of \w+: it lacks 'state', 'param_groups' and"):
        wg.load(path, model=optimizer)
    with pytest.raises(TypeError, match="is a dict, not a list"):
        optimizer.load_state_dict([])


class Failing:
    """Takes a state and then fails, as a program might that is stopped in the middle."""

    def __init__(self, error):
        self.error, self.held = error, ["before"]

    def state_dict(self):
        return {"held": self.held}

    def load_state_dict(self, state):
        self.held.clear()
        self.held.extend(state["held"])
        if self.held == ["saved"]:
            raise self.error


@pytest.mark.parametrize("error", [KeyError("lr"), KeyboardInterrupt()])
def test_a_load_that_fails_puts_all_back(error, backend, path):
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step(model, optimizer)
    failing = Failing(error)
    failing.held = ["saved"]
    wg.save(path, generator=True, model=model, optimizer=optimizer, failing=failing)
    step(model, optimizer)
    failing.held = ["before"]
    optimizer.param_groups[0]["lr"] = 0.5
    state, random_state = bits(model.state_dict()), wg.get_rng_state()["host"]
    buffers = momentum(optimizer)
    with pytest.raises((ValueError, KeyboardInterrupt)) as caught:
        wg.load(path, generator=True, model=model, optimizer=optimizer, failing=failing)
    if isinstance(error, KeyError):
        told = "the state of failing doesn't fit, and nothing was loaded: KeyError: 'lr'"
        assert told in str(caught.value)
    assert failing.held == ["before"]
    assert bits(model.state_dict()) == state and wg.get_rng_state()["host"] == random_state
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert momentum(optimizer) == buffers


def momentum(optimizer):
    state = optimizer.state_dict()["state"]
    return bits({str(k): v["momentum_buffer"] for k, v in state.items()})


def test_a_state_of_another_shape_changes_nothing(path):
    model, first = nn.Linear(2, 3), nn.Linear(2, 3)
    wg.save(path, first=model, model=model)
    before = bits(first.state_dict())
    with pytest.raises(ValueError, match=r"(?s)state of model doesn't fit.*size mismatch for wei"):
        wg.load(path, first=first, model=nn.Linear(2, 4))
    assert bits(first.state_dict()) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s["devices"].update(seed=-1), "seed -1"),
        (lambda s: s["devices"].update(seed=1.0), r"seed 1\.0"),
        (lambda s: s.pop("host"), "'host'"),
        (lambda s: s["host"].update(bit_generator="MT19937"), "PCG64"),
        (lambda s: s["devices"]["streams"].update({"torch": np.zeros(3, "u1")}), "no device"),
        (lambda s: s["devices"]["streams"].update({("torch", "cpu"): [1]}), "no vector"),
        (lambda s: s["devices"]["streams"].update({("torch", "cpu"): np.zeros(3)}), "no vector"),
        (lambda s: s["devices"]["streams"].update({("torch", "cpu"): np.array(3)}), "no vector"),
        (lambda s: s["devices"]["streams"].update({("numpy", "cpu"): {}}), "state"),
    ],
)
def test_random_states_are_looked_at(change, message, path):
    from wengert.storage.checkpoints import _random_state

    state = _random_state()
    change(state)

    class Source:
        def state_dict(self):
            return state

        load_state_dict = None

    wg.save(path, generator=Source())
    before = wg.get_rng_state()
    with pytest.raises(ValueError, match=message):
        wg.load(path, generator=True)
    after = wg.get_rng_state()
    assert after["host"] == before["host"] and after["devices"]["seed"] == before["devices"]["seed"]


# -- PyTorch -------------------------------------------------------------------------------------


@pytest.mark.oracle
def test_weights_of_pytorch_and_back(path):
    torch = pytest.importorskip("torch")
    storage = pytest.importorskip("safetensors.torch")
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    storage.save_file(theirs.state_dict(), path)
    ours = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    assert wg.load(path, model=ours) == {}
    for name, weight in theirs.state_dict().items():
        assert ours.state_dict()[name].tolist() == weight.tolist()
    with pytest.raises(ValueError, match=r"no checkpoint of Wengert's.*not into model, other"):
        wg.load(path, model=ours, other=ours)
    with pytest.raises(ValueError, match=r"without a checkpoint; wg.nn.load"):
        wg.load(path)
    nn.init.zeros_(ours[0].weight)
    wg.save(path, model=ours)
    wg.load(path, model=theirs)
    assert theirs[0].weight.tolist() == ours[0].weight.tolist()
    found = storage.load_file(path)
    assert {f"model.{name}" for name in theirs.state_dict()} == found.keys()


@pytest.mark.oracle
def test_optimisers_of_pytorch_and_back(path):
    torch = pytest.importorskip("torch")
    rows = np.random.default_rng(0).normal(size=(6, 3))

    def run(library, parameter, optimizer, rows):
        for row in rows:
            optimizer.zero_grad()
            (parameter * library.asarray(row)).sum().backward()
            optimizer.step()

    x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    y = wg.zeros(3, dtype=wg.float64, requires_grad=True)
    theirs, ours = torch.optim.Adam([x], lr=0.1), optim.Adam([y], lr=0.5)
    run(torch, x, theirs, rows[:2])
    wg.save(path, optimizer=theirs, x=x.detach().numpy())
    found = wg.load(path, optimizer=ours)
    y = optim_parameter(ours, found["x"])
    run(wg, y, ours, rows[2:4])
    run(torch, x, theirs, rows[2:4])
    np.testing.assert_allclose(y.detach().numpy(), x.detach().numpy(), rtol=1e-12)
    wg.save(path, optimizer=ours)
    back = torch.optim.Adam([x], lr=0.7)
    wg.load(path, optimizer=back)
    run(wg, y, ours, rows[4:])
    run(torch, x, back, rows[4:])
    np.testing.assert_allclose(y.detach().numpy(), x.detach().numpy(), rtol=1e-12)


def optim_parameter(optimizer, value):
    """Set the one parameter of an optimiser, and return it."""
    (parameter,) = optimizer.param_groups[0]["params"]
    with wg.no_grad():
        parameter.copy_(wg.asarray(value))
    return parameter


def test_a_compiled_step_goes_on_from_what_was_loaded(backend, path):
    """Its programs keep arrays of their own; loading replaces what they would write into."""
    model = network()
    optimizer = optim.Adam(model.parameters())
    x = wg.asarray(np.linspace(-1, 1, 8, dtype="float32").reshape(4, 2))

    @wg.compile
    def compiled(x):
        optimizer.zero_grad()
        loss = wg.sum(model(x) ** 2)
        loss.backward()
        optimizer.step()
        return loss

    steps = 2 if backend.name == "dask" else 3  # its graph grows with each, and runs as a whole

    def losses():
        return [compiled(x).item() for _ in range(steps)]

    losses()
    wg.save(path, model=model, optimizer=optimizer, generator=True)
    kept = bits(model.state_dict())
    first = losses()
    assert bits(model.state_dict()) != kept
    wg.load(path, model=model, optimizer=optimizer, generator=True)
    assert bits(model.state_dict()) == kept
    assert losses() == first
