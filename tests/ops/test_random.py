"""Random numbers: reproducible, the same on every backend where they start a model."""

import pickle
from collections.abc import Callable

import numpy as np
import pytest

import wengert as wg
from wengert.backends import Backend
from wengert.backends.generators import uniform

DRAWS: dict[str, Callable[[], wg.Tensor]] = {
    "randn": lambda: wg.randn(2, 3),
    "rand": lambda: wg.rand((2, 3), dtype=wg.float64),
    "complex": lambda: wg.randn(3, dtype=wg.complex64),
    "uniform": lambda: wg.uniform(-1, 2, (4,)),
    "normal": lambda: wg.normal(1.0, 2.0, (4,)),
    "randint": lambda: wg.randint(0, 10, (5,)),
    "randperm": lambda: wg.randperm(6),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_model_starts_from_the_same_numbers_on_every_backend(backend: Backend, name: str) -> None:
    wg.manual_seed(7)
    here = DRAWS[name]()
    assert here.backend is backend
    with wg.use_backend("numpy"):
        wg.manual_seed(7)
        there = DRAWS[name]()
    assert here.dtype is there.dtype
    np.testing.assert_array_equal(here.numpy(), there.numpy())


def test_a_seed_starts_host_and_device_again(backend: Backend) -> None:
    x = wg.zeros(50)

    def draw() -> list[list[float]]:
        return [wg.randn(50).tolist(), wg.rand_like(x).tolist(), wg.rand_like(x).tolist()]

    wg.manual_seed(1)
    first, going_on = draw(), draw()
    wg.manual_seed(1)
    assert draw() == first
    assert draw() == going_on
    wg.manual_seed(2)
    other = draw()
    streams = [*first, *going_on, *other]
    assert all(a != b for i, a in enumerate(streams) for b in streams[:i])


def test_the_state_is_taken_and_given_back(backend: Backend) -> None:
    x = wg.zeros(20)
    wg.rand_like(x)
    state = pickle.loads(pickle.dumps(wg.get_rng_state()))
    first = [wg.randn(20).tolist(), wg.rand_like(x).tolist()]
    assert [wg.randn(20).tolist(), wg.rand_like(x).tolist()] != first
    wg.set_rng_state(state)
    assert [wg.randn(20).tolist(), wg.rand_like(x).tolist()] == first


def test_what_is_no_state_changes_nothing() -> None:
    state = wg.get_rng_state()
    host, devices = state["host"], state["devices"]
    for wrong in (
        {},
        {"host": host},
        {**state, "more": 1},
        {"host": {"bit_generator": "PCG64"}, "devices": devices},
        {"host": {**host, "bit_generator": "MT19937"}, "devices": devices},
        {"host": np.random.default_rng(7).bit_generator.state, "devices": {"seed": 3}},
    ):
        with pytest.raises((KeyError, ValueError)):
            wg.set_rng_state(wrong)
        assert repr(wg.get_rng_state()) == repr(state)


@pytest.mark.parametrize("dtype", [wg.float32, wg.float64])
def test_distributions(backend: Backend, dtype: wg.DType) -> None:
    n = 40_000
    wg.manual_seed(3)
    for x, mean, deviation, low, high in (
        (wg.rand(n, dtype=dtype), 0.5, 12**-0.5, 0, 1),
        (wg.rand_like(wg.zeros(n, dtype=dtype)), 0.5, 12**-0.5, 0, 1),
        (wg.randn(n, dtype=dtype), 0.0, 1.0, -9, 9),
        (wg.uniform(-2, 4, n, dtype=dtype), 1.0, 3**0.5, -2, 4),
        (wg.normal(3.0, 0.5, n, dtype=dtype), 3.0, 0.5, -2, 8),
        (wg.bernoulli(wg.full(n, 0.25, dtype=dtype)), 0.25, 0.1875**0.5, 0, 1.1),
    ):
        values = x.numpy().astype(np.float64)
        assert x.dtype is dtype
        assert values.min() >= low
        assert values.max() < high
        # Six standard errors: one false alarm in 500 million.
        assert abs(values.mean() - mean) < 6 * deviation / n**0.5
        assert abs(values.std() - deviation) < 6 * deviation / n**0.5
    for make, deviation in ((wg.randn, 0.5**0.5), (wg.rand, 12**-0.5)):
        z = make(n, dtype="complex64" if dtype is wg.float32 else "complex128").numpy()
        assert abs(z.real.std() - deviation) < 0.02
        assert abs(z.imag.std() - deviation) < 0.02
    counts = np.bincount(wg.randint(2, 6, n).numpy(), minlength=6)
    assert counts[:2].sum() == 0
    assert abs(counts[2:] - n / 4).max() < 6 * (n * 3 / 16) ** 0.5
    assert sorted(wg.randperm(100).tolist()) == list(range(100))


def test_normal_of_tensors_is_differentiated(backend: Backend) -> None:
    mean = wg.tensor([1.0, 2.0], requires_grad=True)
    std = wg.tensor([0.5, 3.0], requires_grad=True)
    x = wg.normal(mean, std)
    noise = (x.detach() - mean.detach()) / std.detach()
    g, h = wg.autograd.grad(wg.sum(x), (mean, std))
    assert g.tolist() == [1.0, 1.0]
    np.testing.assert_allclose(h.numpy(), noise.numpy(), rtol=1e-5)


def test_a_distribution_of_no_width_is_one_number(backend: Backend) -> None:
    for draw in (wg.normal(0.5, 0.0, 3), wg.normal(0.5, 0, 3), wg.uniform(0.5, 0.5, 3)):
        assert draw.tolist() == [0.5] * 3


def test_bad_input_is_refused(backend: Backend) -> None:
    for error, make in (
        (TypeError, lambda: wg.randn(2, dtype=wg.int64)),
        (TypeError, lambda: wg.uniform(0, 1, 2, dtype=wg.complex64)),
        (TypeError, lambda: wg.rand_like(wg.ones(2), dtype=wg.int8)),
        (ValueError, lambda: wg.normal(0.0, -1.0, 2)),
        (ValueError, lambda: wg.randint(3, 3, (1,))),
        (ValueError, lambda: wg.manual_seed(-1)),
    ):
        with pytest.raises(error):
            make()


def test_uniform_numbers_for_bfloat16_have_its_bits_in_single_precision() -> None:
    values = uniform(np.random.default_rng(0), (99,), "bfloat16")
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values * 256, np.floor(values * 256))  # 8 bits


def test_a_compiled_function_seeds_no_generator() -> None:
    with pytest.raises(RuntimeError, match="generators are seeded"):
        wg.compile(lambda x: wg.manual_seed(0) or x * 2, strict=True)(wg.ones(2))


def test_counts_and_bounds_are_integers() -> None:
    for wrong in (2.7, "3", np.float64(3), None):
        for call in (wg.randperm, wg.random.randint, lambda n: wg.random.randint(0, n)):
            if wrong is None and call is not wg.randperm:
                continue  # the default
            with pytest.raises(TypeError, match="is an integer, and"):
                call(wrong)
    with pytest.raises(ValueError, match="negative"):
        wg.randperm(-1)
    assert sorted(wg.randperm(np.int64(3)).tolist()) == [0, 1, 2]
