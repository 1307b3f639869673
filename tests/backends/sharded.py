"""Checks on arrays that JAX spreads over four devices of the host, for `test_jax`.

How many devices the host has is said before JAX is imported, so that these run in a process of
their own: ``python -m tests.backends.sharded`` prints what is wrong with each, by its name, where
``XLA_FLAGS`` says ``--xla_force_host_platform_device_count=4``.
"""

import io
import json
import sys
import tempfile
import traceback

import numpy as np
import pytest

import wengert as wg
from wengert.nn import functional as F

CHECKS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


def cases(**values):
    """Make a check of each value of a keyword, named after it."""
    ((name, options),) = values.items()

    def register(function):
        for option in options:
            CHECKS[f"{function.__name__}[{option}]"] = lambda o=option: function(**{name: o})
        return function

    return register


def shardings(axis_type="Auto"):
    """Along the first axis, and the whole on each device."""
    import jax
    from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()), ("batch",), axis_types=(AxisType[axis_type],))
    return NamedSharding(mesh, PartitionSpec("batch")), NamedSharding(mesh, PartitionSpec())


def spread(x, sharding=None):
    """A Tensor of NumPy's values, spread along its first axis."""
    return wg.asarray(x, device=sharding or shardings()[0])


def same(ours, theirs, tolerance=1e-10):
    np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=tolerance, atol=tolerance)


def alike(x, sharding):
    """Whether a Tensor is spread as a sharding says."""
    assert x.array.sharding.is_equivalent_to(sharding, x.ndim), x.array.sharding


X = np.random.default_rng(0).normal(size=(16, 5))
CLASSES = np.random.default_rng(1).integers(0, 3, size=16)
VALUES = np.random.default_rng(2).normal(size=(16, 3))

LOSSES = {
    "cross_entropy": (F.cross_entropy, CLASSES),
    "weights": (lambda x, t: F.cross_entropy(x, t, weight=wg.asarray([1.0, 2.0, 3.0])), CLASSES),
    "nll_loss": (lambda x, t: F.nll_loss(F.log_softmax(x, -1), t), CLASSES),
    "mse_loss": (F.mse_loss, VALUES),
}


def halves():
    """A mesh of two axes: batches along one, and columns of weights along the other."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("batch", "model"))
    return lambda *names: NamedSharding(mesh, PartitionSpec(*names))


def train(loss, optimiser, how="", compiled=False, dropout=False, path=None):
    """Five steps: the losses and the parameters.

    Rows are divided where ``how`` names a type of axes. Where it is "model", the first weight is
    divided by rows, too, and the second by columns. A path is for a checkpoint after three steps.
    """
    wg.manual_seed(0)
    middle = [wg.nn.Tanh(), *[wg.nn.Dropout(0.3)] * dropout]
    net = wg.nn.Sequential(wg.nn.Linear(5, 8), *middle, wg.nn.Linear(8, 3)).double()
    function, target = LOSSES[loss]
    x, t, placed = wg.asarray(X), wg.asarray(target), []
    if how == "model":
        spec = halves()
        placed = [spec("model"), spec("model"), spec(None, "model"), spec()]
        for (name, p), where in zip(net.state_dict().items(), placed, strict=True):
            setattr(net[int(name[0])], name[2:], wg.nn.Parameter(p.to(where)))
        x, t = x.to(spec("batch")), t.to(spec("batch"))
    elif how:
        rows, whole = shardings(how)
        placed = [shardings()[1]] * 4
        net.to(whole)
        x, t = x.to(rows), t.to(rows)
    chosen = getattr(wg.optim, optimiser)(net.parameters(), lr=0.05)

    def step(x, t):
        chosen.zero_grad()
        out = function(net(x), t)
        out.backward()
        wg.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        chosen.step()
        return out.detach()

    run = wg.compile(step) if compiled else step
    losses = []
    for i in range(5):
        losses.append(run(x, t).item())
        chosen.param_groups[0]["lr"] *= 0.9
        if path is not None and i == 2:  # goes on with what was saved
            wg.save(path, net=net, chosen=chosen)
            for p in net.parameters():
                wg.nn.init.zeros_(p)
            assert wg.load(path, net=net, chosen=chosen) == {}
    for p, sharding in zip(net.parameters(), placed, strict=False):
        alike(p, sharding)
        alike(p.grad, sharding)
        for value in chosen.state[p].values() if optimiser == "Adam" else ():
            if getattr(value, "ndim", 0):
                assert value.sharding.is_equivalent_to(sharding, value.ndim)
    if how == "Auto":
        alike(net(x), shardings()[0])
    return losses, [p.detach().numpy() for p in net.parameters()]


def trained_alike(*ways, **options):
    """Each way gives what one device gives."""
    expected = train(**options)
    for more in ways or ({"how": "Auto"}, {"how": "Auto", "compiled": True}):
        losses, parameters = train(**options, **more)
        np.testing.assert_allclose(losses, expected[0], rtol=0, atol=1e-10)
        for ours, theirs in zip(parameters, expected[1], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


@cases(loss=LOSSES)
def training(loss):
    trained_alike(loss=loss, optimiser="Adam")


@check
def dropout_draws_as_on_one_device():
    trained_alike(loss="mse_loss", optimiser="SGD", dropout=True)


@check
def meshes_with_explicit_axes():
    import jax

    how = {"how": "Explicit", "compiled": True}
    trained_alike(how, loss="cross_entropy", optimiser="Adam")

    rows, _ = shardings("Explicit")
    x = wg.asarray(jax.device_put(X, rows)).requires_grad_()
    (x.mT @ x).sum().backward()  # JAX's own leaves open how this is spread
    same(x.grad, X @ np.full((5, 5), 2.0))


PROGRAMS = {
    "elementwise": lambda x: wg.tanh(x) * 3 + wg.where(x > 0, x, 0.5),
    "0-d": lambda x: wg.sum(x) * wg.sqrt(wg.sum(x * x)),
    "reduced": lambda x: wg.max(x, axis=0) + wg.mean(x, axis=0) + wg.std(x, axis=0),
    "kept": lambda x: wg.logsumexp(x, axis=1) + wg.prod(x, axis=1),
    "cumulative": lambda x: wg.cumulative_sum(x, axis=0) + wg.cumulative_prod(x, axis=0),
    "sorted": lambda x: wg.sort(x, axis=0),
    "sliced": lambda x: x[1:7:2, ::-1],
    "indexed": lambda x: x[wg.asarray([3, 3, 0]), 1],
    "masked": lambda x: x[x > 0],
    "set": lambda x: wg.at(x)[2:5].set(1.5),
    "repeated": lambda x: wg.repeat(x, wg.asarray([2, 0, 1, 3, 1]), axis=1),
    "padded": lambda x: wg.pad(x, 1),
    "quantile": lambda x: wg.quantile(x, 0.3, axis=0),
    "median": lambda x: wg.median(x),
    "norm": lambda x: wg.linalg.svdvals(x.mT @ x),
    "solve": lambda x: wg.linalg.solve(x.mT @ x, wg.ones(5, dtype="float64", device=None)),
    "det": lambda x: wg.linalg.det(x.mT @ x),
    "tril": lambda x: wg.tril(x.mT @ x) + wg.eye(5, dtype="float64"),
    "fft": lambda x: wg.abs(wg.fft.rfft(x, n=7, axis=1)),
    "einsum": lambda x: wg.einsum("ij,ik->jk", x, x),
    "three axes": lambda x: wg.permute_dims(wg.reshape(x, (4, 4, 5)), (2, 0, 1)),
    "joined": lambda x: wg.concat([x, wg.asarray([[1.0] * 5], dtype="float64"), x]),
    "nested": lambda x: wg.asarray([x[0, 0], 2.0, x[15, 4]]),
    "full": lambda x: wg.full_like(x, wg.sum(x)) + wg.zeros_like(x),
}


def differentiate(program, x):
    """The value, and a first and a second derivative."""
    x.requires_grad_()
    y = program(x)
    (g,) = wg.autograd.grad(wg.sum(wg.sin(y)), x, create_graph=True)
    (h,) = wg.autograd.grad(wg.sum(wg.cos(g)), x)
    return y, g, h


@cases(name=PROGRAMS)
def programs(name):
    """Values and first and second derivatives are those of NumPy."""
    program = PROGRAMS[name]
    with wg.use_backend("numpy"):
        expected = differentiate(program, wg.asarray(X, copy=True))
    whole = shardings()[1]
    for sharding in shardings():
        found = differentiate(program, spread(X, sharding))
        for ours, theirs in zip(found, expected, strict=True):
            same(ours, theirs.detach().numpy())
            assert ours.array.sharding.device_set == whole.device_set


@check
def results_keep_their_sharding():
    rows, whole = shardings()
    x, w = spread(X).requires_grad_(), wg.asarray(VALUES.T[:, :5], device=whole).requires_grad_()
    y = wg.tanh(wg.nn.functional.linear(x, w))
    alike(y, rows)
    wg.sum(y * y).backward()
    alike(x.grad, rows)
    alike(w.grad, whole)
    for made in (wg.zeros_like(x), wg.full_like(x, 2.0), wg.rand_like(x), x.detach().clone()):
        alike(made, rows)
    alike(wg.full_like(x.detach(), wg.asarray(2.0, dtype="float64")), rows)


@check
def shardings_are_devices():
    rows, whole = shardings()
    x = wg.asarray(X)
    for made in (
        x.to(rows),
        x.to(device=rows),
        wg.to_device(x, rows),
        wg.asarray(X, device=rows),
        wg.tensor(X, device=rows),
        wg.zeros((16, 5), device=rows),
        wg.ones(16, device=rows),
        wg.full((16, 2), 3.0, device=rows),
        wg.rand(16, 2, device=rows),
        wg.arange(16, device=rows),
        wg.to_backend(x.to_backend("numpy"), "jax", device=rows),
        wg.astype(x, "float32", device=rows),
    ):
        alike(made, rows)
        assert made.device == made.array.sharding
    y = x.to(rows)
    assert y.to(rows) is y
    alike(y.to(whole), whole)
    assert y.to(y) is y
    alike(wg.asarray(CLASSES).to(y), whole)  # whose shape is another
    assert y.to(x.to(whole)) is y
    x.requires_grad_()
    wg.sum(x.to(rows) ** 2).backward()
    assert x.grad.device == x.device
    same(x.grad, 2 * X)


@cases(optimiser=("SGD", "Adam"))
def divided_weights(optimiser):
    ways = ({"how": "model"}, {"how": "model", "compiled": True})
    trained_alike(*ways, loss="cross_entropy", optimiser=optimiser)


@check
def checkpoints():
    """Saved whole, and loaded to where the parameters are."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/{how}.safetensors" for how in ("", "model")]
        ways = [{"how": how, "path": path} for how, path in zip(("", "model"), paths, strict=True)]
        trained_alike(*ways, loss="cross_entropy", optimiser="Adam")
        one, other = map(wg.nn.load, paths)
        assert one.keys() == other.keys() and len(one) > 4
        for name, values in one.items():
            same(values, other[name].numpy(), 1e-12)
        rows, _ = shardings()
        wg.nn.save({"x": spread(X)}, f"{folder}/x.safetensors")
        loaded = wg.nn.load(f"{folder}/x.safetensors", device=rows)["x"]
        alike(loaded, rows)
        np.testing.assert_array_equal(loaded.numpy(), X)


@check
def mixed_shardings():
    """Over the same devices JAX combines them; over others it is an error of both devices."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    columns = NamedSharding(Mesh(np.array(jax.devices()), ("c",)), PartitionSpec(None, "c"))
    x, y = spread(X[:, :4]).requires_grad_(), spread(X[:, :4] + 1, columns).requires_grad_()
    wg.sum(x * y + wg.cumulative_sum(y, axis=0)).backward()
    same(x.grad, X[:, :4] + 1)
    same(y.grad, X[:, :4] + np.arange(16, 0, -1)[:, None])
    two = NamedSharding(Mesh(np.array(jax.devices()[:2]), ("b",)), PartitionSpec("b"))
    with pytest.raises(wg.backends.BackendError, match="two devices"):
        x + spread(X[:, :4], two)


@check
def a_sharding_that_does_not_fit_is_an_error():
    rows, whole = shardings()
    with pytest.raises(ValueError, match="partitioned 4 times"):
        wg.zeros((3, 5), device=rows)
    for put in (
        lambda x: wg.asarray(x, device=rows),
        lambda x: wg.tensor(x, device=rows),
        lambda x: wg.asarray(x, device=whole).to(rows),
        lambda x: wg.nn.Linear(5, 3).to(rows),
    ):
        with pytest.raises(ValueError, match=r"do not divide .* \(3, 5\).*drop_last=True.*pad it"):
            put(np.ones((3, 5), np.float32))


@check
def other_devices_are_an_error():
    import jax

    elsewhere = wg.asarray(X, device=jax.devices()[1])
    with pytest.raises(wg.backends.BackendError, match=r"two devices, .*cpu:1"):
        spread(X) + elsewhere


@check
def changes_in_place():
    rows, _ = shardings()
    x = spread(X)
    x[0] = 1.0
    x[1] = np.ones(5)
    x[2:4] = wg.asarray(X[:2])
    x += 1
    expected = X.copy()
    expected[:2], expected[2:4] = 1, X[:2]
    same(x, expected + 1)
    x.copy_(wg.asarray(X))
    alike(x, rows)
    same(x, X)
    x.copy_(wg.asarray(X[0]))
    alike(x, rows)
    x.zero_()
    alike(x, rows)


@check
def compiled_programs_know_their_sharding():
    rows, whole = shardings()
    step = wg.compile(lambda x: wg.tanh(x) * wg.arange(5, dtype="float64") + wg.zeros_like(x))
    for sharding in (rows, whole, rows):
        for _ in range(3):
            found = step(spread(X, sharding))
            alike(found, sharding)
            same(found, np.tanh(X) * np.arange(5))
    assert step.report.recordings == 2
    moved = wg.compile(lambda x: wg.sin(x.to(rows)))
    for _ in range(3):
        found = moved(wg.asarray(X))
        alike(found, rows)
        same(found, np.sin(X))


def main():
    wg.set_backend("jax")
    told, out = {}, sys.stdout
    sys.stdout = io.StringIO()
    chosen = sys.argv[1:] or CHECKS
    for name in chosen:
        wg.manual_seed(0)
        try:
            CHECKS[name]()
            told[name] = ""
        except Exception:
            told[name] = traceback.format_exc()
    json.dump(told, out)


if __name__ == "__main__":
    main()
