"""What a backend does with programs."""

import numpy as np
import pytest

import wengert as wg
from tests.compiler.ordinary import training_step

pytestmark = pytest.mark.oracle


def training(**options):
    wg.manual_seed(1)
    model = wg.nn.Sequential(wg.nn.Linear(5, 4), wg.nn.ReLU(), wg.nn.Linear(4, 3))
    optimizer = wg.optim.Adam(model.parameters(), lr=0.1)
    step = training_step(optimizer, lambda x, y: wg.nn.functional.cross_entropy(model(x), y))
    run = wg.compile(step, **options) if options else step
    batches = [(wg.randn(6, 5), wg.random.randint(0, 3, (6,))) for _ in range(6)]
    losses = [run(x, y).item() for x, y in batches]
    return run, losses, [p.detach().numpy() for p in model.parameters()]


def broken(graph, inputs):
    raise RuntimeError("no compiler here")


# PyTorch's tracer runs the same program; machine code would take a minute.
@pytest.mark.slow
@pytest.mark.parametrize("how", ["aot_eager", broken])
def test_torch_compile(how):
    torch = pytest.importorskip("torch")
    with wg.use_backend("torch"):
        _, losses, weights = training()
        run, found, others = training(torch_compile=how, check=0)
    assert f"torch.compile(backend={how!r}) is used" in str(run.report)
    assert ("torch.compile can't compile the program" in str(run.report)) == (how is broken)
    digits = {"rtol": 0, "atol": 0} if how is broken else {"rtol": 1e-4, "atol": 1e-6}
    for a, b in zip([*found, *others], [*losses, *weights], strict=True):
        np.testing.assert_allclose(a, b, **digits)
    torch._dynamo.reset()


@pytest.mark.slow
def test_jax_jit_is_used_unless_numbers_are_drawn():
    pytest.importorskip("jax")
    with wg.use_backend("jax"):
        run, _, _ = training(check=0)
        assert "jax.jit has compiled the program" in str(run.report)
        drawing = wg.compile(lambda x: x + wg.rand_like(x), check=0)
        x = wg.zeros((3,))
        first, second, third = [drawing(x).numpy() for _ in range(3)]
    assert "draw the program's random numbers once" in str(drawing.report)
    assert not np.array_equal(second, third) and not np.array_equal(first, second)


def test_dask_gives_one_lazy_graph():
    """A step computes nothing: what it leaves are graphs, which are computed when looked at."""
    dask = pytest.importorskip("dask.array")
    with wg.use_backend("dask"):
        run = wg.compile(lambda x, w: wg.sum(wg.tanh(x @ w)))
        x, w = wg.asarray(np.ones((4, 3))), wg.asarray(np.ones((3, 2)))
        run(x, w)
        lazy = run(x, w)
    assert isinstance(lazy._array, dask.Array)
    assert len(lazy._array.__dask_graph__()) > 1
    np.testing.assert_allclose(lazy.numpy(), 8 * np.tanh(3), rtol=1e-12)
