"""What a backend does with programs."""

import numpy as np
import pytest

import wengert as wg
from tests.compiler.ordinary import batch, network

pytestmark = pytest.mark.oracle


def training(**options):
    model, _, step = network("Adam")
    run = wg.compile(step, **options) if options else step
    losses = [run(*batch()).item() for _ in range(6)]
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
