"""Rules are those of the formulas; compiled they give the same bits, and train on every backend."""

import contextlib
import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import wengert as wg
from tests.ops.spaces import irregular, pairs
from tests.optim.rules import OPTIONS, RULES, check_pytorchs_states, check_states, fit
from tests.walking import refusals, refuse, walk
from wengert import nn, optim

CALLS = [(name, o) for name, space in OPTIONS.items() for o in pairs(space) if fit(o)]
#: Some of each, with every option in use.
SOME = [(name, {k: v[-1] for k, v in space.items()}) for name, space in OPTIONS.items()]
DEFAULTS = [(name, {}) for name in OPTIONS]
COMPLEX = [name for name in OPTIONS if name not in ("Muon", "Lion")]
SCALES = (1.0, 2.0, 0.1, -0.5, -0.7, 1.5)


@pytest.mark.whole
@pytest.mark.parametrize(("name", "options"), CALLS)
def test_steps(name: str, options: dict[str, Any]) -> None:
    starts = [irregular(2, 3), irregular(4, 2)]
    states: list[dict[str, Any]] = [{} for _ in starts]
    with wg.use_backend("numpy"):
        weights = [nn.Parameter(wg.asarray(p)) for p in starts]
        optimiser = getattr(optim, name)(weights, **options)
        wanted = starts
        for t, scale in enumerate(SCALES, 1):
            gradients = [scale * (p**2 - 0.3) for p in wanted]
            for w, g in zip(weights, gradients, strict=True):
                w.grad = wg.asarray(g)
            optimiser.step()
            wanted = [
                RULES[name](p, g, s, t, options)
                for p, g, s in zip(wanted, gradients, states, strict=True)
            ]
            for w, p in zip(weights, wanted, strict=True):
                np.testing.assert_allclose(w.detach().numpy(), p, rtol=1e-10, atol=1e-12)
            check_states(optimiser, states, t)


def trained(
    name: str, options: dict[str, Any], compiled: bool, starts: list[Any], steps: int = 12
) -> tuple[Any, ...]:
    """Parameters after steps with a rate of its own each, and how often each step was recorded."""
    weights = [nn.Parameter(wg.asarray(p)) for p in starts]
    optimiser = getattr(optim, name)(weights, **options)
    rate = optimiser.param_groups[0]["lr"]

    def update(scale: Any) -> None:
        optimiser.zero_grad()
        sum(wg.sum(abs(w - scale) ** 2 * (1 + abs(w))) for w in weights).backward()
        optimiser.step()

    run = wg.compile(update) if compiled else update
    counts = []
    for i in range(steps):
        optimiser.param_groups[0]["lr"] = rate / (1 + 0.1 * i)
        run(wg.asarray(np.cos(i), dtype="float64"))
        counts.append(run.report.recordings if compiled else 0)
    return [w.detach().numpy() for w in weights], counts, optimiser


def flat(optimiser: Any) -> dict[tuple[int, str], Any]:
    """All that an optimiser keeps, by its parameter and name."""
    return {
        (i, name): value.detach().numpy() if hasattr(value, "detach") else np.asarray(value)
        for i, state in optimiser.state_dict()["state"].items()
        for name, value in state.items()
    }


@pytest.mark.parametrize(("name", "options"), SOME + DEFAULTS)
def test_compiled_steps_are_eager_ones_and_rates_record_nothing(
    name: str, options: dict[str, Any]
) -> None:
    with wg.use_backend("numpy"):
        starts = [irregular(2, 3), irregular(4, 2)]
        eager, _, first = trained(name, options, False, starts)
        replayed, counts, second = trained(name, options, True, starts)
    for a, b in zip(eager, replayed, strict=True):
        np.testing.assert_array_equal(a, b)
    eager, replayed = flat(first), flat(second)
    assert eager.keys() == replayed.keys()
    for key, value in eager.items():
        np.testing.assert_array_equal(replayed[key], value, err_msg=str(key))
    assert counts[-1] == {"RAdam": 2}.get(name, 1)  # which changes its rule on the way
    assert counts[7] == counts[-1]


@pytest.mark.parametrize("name", COMPLEX)
def test_a_complex_parameter_is_two_real_ones(name: str) -> None:
    parts = irregular(3, 2)
    with wg.use_backend("numpy"):
        real, whole = nn.Parameter(wg.asarray(parts)), nn.Parameter(wg.asarray(parts @ [1, 1j]))
        optimisers = [getattr(optim, name)([p], **dict(SOME)[name]) for p in (real, whole)]
        for scale in SCALES:
            g = scale * parts**2 - 0.3
            real.grad, whole.grad = wg.asarray(g), wg.asarray(g @ [1, 1j])
            for optimiser in optimisers:
                optimiser.step()
        expected = real.detach().numpy() @ [1, 1j]
        np.testing.assert_allclose(whole.detach().numpy(), expected, rtol=1e-12)
        for value in optimisers[1].state_dict()["state"][0].values():
            if isinstance(value, wg.Tensor):
                assert (value.shape, value.dtype) == (whole.shape, whole.dtype)


@pytest.mark.parametrize(("name", "options"), SOME)
def test_the_same_on_every_backend(backend: Any, name: str, options: dict[str, Any]) -> None:
    starts = [irregular(2, 3), irregular(4, 2)]
    with wg.use_backend("numpy"):
        expected, _, first = trained(name, options, False, starts, 5)
    for compiled in (False, True):
        found, _, optimiser = trained(name, options, compiled, starts, 5)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)
        held = flat(optimiser)
        assert held.keys() == flat(first).keys()
        for key, value in flat(first).items():
            np.testing.assert_allclose(held[key], value, rtol=1e-9, atol=1e-14, err_msg=str(key))
    saved = optimiser.state_dict()
    others = [nn.Parameter(wg.asarray(p)) for p in starts]
    other = getattr(optim, name)(others)
    other.load_state_dict(saved)
    for key, value in saved["state"][0].items():
        again = other.state_dict()["state"][0][key]
        assert type(again) is type(value)
    assert all(array.dtype is wg.float64 for array in others)


@pytest.mark.parametrize("name", OPTIONS)
def test_single_precision_stays_single(backend: Any, name: str) -> None:
    weight = nn.Parameter(wg.ones((3, 2)))
    optimiser = getattr(optim, name)([weight], **dict(SOME)[name])
    for _ in range(3):
        optimiser.zero_grad()
        wg.sum(weight * weight).backward()
        optimiser.step()
    assert weight.dtype is wg.float32
    held = optimiser.state_dict()["state"][0].values()
    assert all(value.dtype is wg.float32 for value in held if isinstance(value, wg.Tensor))


def test_gradients_whose_squares_overflow_have_their_share_in_the_mean(backend: Any) -> None:
    """The first step is the rate, whatever the gradient; the share of its square is in range."""
    for shape in ((), (3,)):
        for method, rate in ((optim.Adam, 0.1), (optim.AdamW, 0.1), (optim.RMSprop, 1.0)):
            w = wg.ones(shape, requires_grad=True)
            w.grad = wg.full(shape, 1e20)
            method([w], lr=0.1).step()
            expected = 1 - rate - (0.001 if method is optim.AdamW else 0)
            np.testing.assert_allclose(w.detach().tolist(), np.full(shape, expected), 1e-5, 1e-6)


def test_options_may_be_switched_on_later(backend: Any) -> None:
    """The largest moment begins with that step's, momentum and the mean with zeros."""
    for name, later, kept in (
        ("SGD", {"momentum": 0.5}, {"momentum_buffer": 4}),
        ("Adam", {"amsgrad": True}, {"max_exp_avg_sq": 0.001 * 2**2 * (1 + 0.999) + 0.016}),
        ("RMSprop", {"momentum": 0.5}, {"momentum_buffer": 4 / (0.01 * 4 * 1.99 + 0.16) ** 0.5}),
        ("RMSprop", {"centered": True}, {"grad_avg": 0.04}),
    ):
        w = wg.ones(2, requires_grad=True, dtype=wg.float64)
        optimiser = getattr(optim, name)([w], lr=0.0)
        for g in (2, 2, 4):
            w.grad = wg.full(2, g, dtype=wg.float64)
            if g == 4:
                optimiser.param_groups[0] |= later
            optimiser.step()
        for key, value in kept.items():
            found = optimiser.state_dict()["state"][0][key].tolist()
            np.testing.assert_allclose(found, value, rtol=2e-3)


def moved_by(name: str, dtype: str, compiled: bool, gradients: list[Any]) -> list[Any]:
    """The parameter after each gradient, which is rounded to half precision before the next."""
    weight = nn.Parameter(wg.asarray([[0.5, 0.5], [-2.0, 1.0]], dtype=dtype))
    optimiser = getattr(optim, name)([weight], lr=2.0**-6)
    run = wg.compile(optimiser.step) if compiled else optimiser.step
    found = []
    for g in gradients:
        weight.grad = wg.asarray(g, dtype=dtype)
        run(lambda: wg.asarray(1.0)) if name == "LBFGS" else run()
        with wg.no_grad():
            weight.copy_(wg.astype(weight, "float16"))
        found.append(weight.detach().to(wg.float64).numpy())
    return found


@pytest.mark.parametrize("name", [*OPTIONS, "LBFGS"])
def test_squares_of_half_precision_stay_in_range(backend: Any, name: str) -> None:
    if not hasattr(backend.xp, "float16"):
        pytest.skip("has no float16")
    gradients = [np.asarray([[300.0, -100.0], [a, 1e-3]]) for a in (6e4, -6e4, 9e3)]
    wanted = moved_by(name, "float32", False, gradients)
    assert np.isfinite(wanted).all()
    for compiled in (False, True)[: 1 + (name != "LBFGS")]:
        for found, right in zip(
            moved_by(name, "float16", compiled, gradients), wanted, strict=True
        ):
            np.testing.assert_allclose(found, right, rtol=2.0**-10, err_msg=str(compiled))


# -- PyTorch ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def in_double(torch: Any, monkeypatch: Any) -> Any:
    """PyTorch with double precision where it takes less: state in float32, Muon in bfloat16."""
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def theirs_trained(torch: Any, name: str, options: dict[str, Any], starts: Any) -> tuple[Any, ...]:
    weights = [torch.tensor(p, requires_grad=True) for p in starts]
    optimiser = getattr(torch.optim, name)(weights, **options)
    rate = optimiser.param_groups[0]["lr"]
    for i in range(100):
        optimiser.param_groups[0]["lr"] = rate / (1 + 0.1 * i)
        optimiser.zero_grad()
        scale = float(np.cos(i))
        sum((abs(w - scale) ** 2 * (1 + abs(w))).sum() for w in weights).backward()
        optimiser.step()
    return [w.detach().numpy() for w in weights], optimiser


@pytest.mark.oracle
@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "Lion"])
def test_a_hundred_steps_agree_with_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    space = {key: st.sampled_from(values) for key, values in OPTIONS[name].items()}
    drawn = st.fixed_dictionaries(space)
    monkeypatch = pytest.MonkeyPatch()

    @settings(max_examples=6, deadline=None, derandomize=True)
    @given(drawn, st.booleans(), st.booleans())
    def agrees(options: dict[str, Any], compiled: bool, whole: bool) -> None:
        assume(fit(options))
        starts = [irregular(2, 3), irregular(4, 2)]
        if whole and name != "Muon":
            starts = [p + 1j * np.roll(p, 1) for p in starts]
        with wg.use_backend("numpy"):
            found, _, ours = trained(name, options, compiled, starts, 100)
        expected, theirs = theirs_trained(torch, name, options, starts)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
        lines = repr(theirs).splitlines()
        beyond = ("foreach", "fused", "differentiable", "capturable", "maximize")
        assert repr(ours).splitlines() == [x for x in lines if not x.strip().startswith(beyond)]
        carried_over(torch, name, ours, theirs, starts)

    with in_double(torch, monkeypatch), monkeypatch.context():
        try:
            agrees()
        finally:
            monkeypatch.undo()


def carried_over(torch: Any, name: str, ours: Any, theirs: Any, starts: Any) -> None:
    """States of one library load in the other's, and the next step is the same."""
    mine, yours = ours.state_dict(), copy.deepcopy(theirs.state_dict())
    check_pytorchs_states(ours, theirs, rtol=1e-6, atol=1e-9)
    options = {k: v for k, v in mine["param_groups"][0].items() if k != "params"}
    assert options.items() <= yours["param_groups"][0].items()
    for state in mine["state"].values():
        for key, value in state.items():
            if isinstance(value, wg.Tensor):
                state[key] = torch.tensor(value.numpy())
    weights = [nn.Parameter(wg.asarray(p)) for p in starts]
    others = [torch.tensor(p, requires_grad=True) for p in starts]
    with wg.use_backend("numpy"):
        loaded = getattr(optim, name)(weights)
        loaded.load_state_dict(yours)
    back = getattr(torch.optim, name)(others)
    back.load_state_dict(mine)
    for w, q, p in zip(weights, others, starts, strict=True):
        w.grad, q.grad = wg.asarray(p * 0.5), torch.tensor(p * 0.5)
    loaded.step()
    back.step()
    for w, q in zip(weights, others, strict=True):
        np.testing.assert_allclose(w.detach().numpy(), q.detach().numpy(), rtol=1e-7, atol=1e-9)


# -- bad input -------------------------------------------------------------------------------------


#: Calls, their errors, and what these say.
REFUSED = r"""
optim.RMSprop([p], alpha=-1) | ValueError | Invalid alpha value: -1
optim.RMSprop([p], momentum=-1) | ValueError | Invalid momentum value: -1
optim.Adagrad([p], lr_decay=-1) | ValueError | Invalid lr_decay value: -1
optim.Adagrad([p], initial_accumulator_value=-1) | ValueError |
    Invalid initial_accumulator_value value: -1
optim.Adadelta([p], rho=1.5) | ValueError | Invalid rho value: 1.5
optim.Adamax([p], betas=(0.5, 1.0)) | ValueError | Invalid beta parameter at index 1: 1.0
optim.NAdam([p], momentum_decay=-1) | ValueError | Invalid momentum_decay value: -1
optim.RAdam([p], eps=-1) | ValueError | Invalid epsilon value: -1
optim.Lion([p], lr=-1) | ValueError | Invalid learning rate: -1
optim.Muon([p], lr=-1) | ValueError | Learning rate should be >= 0 but is: -1
optim.Muon([p], ns_steps=100) | ValueError | Invalid ns_steps value: 100
optim.Muon([p], ns_coefficients=(1, 2)) | ValueError | three numbers
optim.Muon([p], adjust_lr_fn="mine") | ValueError | function mine is not supported
optim.Muon([nn.Parameter(wg.ones(3))]) | ValueError | 2D parameters .*size: \(3,\)
optim.Muon([nn.Parameter(wg.ones((2, 2)) * 1j)]) | ValueError | complex
"""


def test_bad_input() -> None:
    walk(refusals(REFUSED), refuse(p=nn.Parameter(wg.ones((2, 2)))), whole=True)


@pytest.mark.whole
@pytest.mark.parametrize("option", ["foreach", "fused", "capturable", "differentiable", "maximize"])
@pytest.mark.parametrize("name", OPTIONS)
def test_pytorchs_kernels_are_no_options(name: str, option: str) -> None:
    with pytest.raises(TypeError, match=rf"{name} takes no {option}.*leave it out"):
        getattr(optim, name)([nn.Parameter(wg.ones((2, 2)))], **{option: True})
