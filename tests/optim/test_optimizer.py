"""The optimisers against PyTorch's, and what they promise beside."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.nn.twins import values
from tests.walking import refusals, refuse, walk
from wengert import nn, optim
from wengert.backends import Backend
from wengert.optim import kernels


def network() -> nn.Sequential:
    wg.manual_seed(1)
    first, last = (nn.Linear(i, o, dtype=wg.float64) for i, o in ((5, 7), (7, 3)))
    return nn.Sequential(first, nn.Tanh(), last)


def batches(steps: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    return [(rng.normal(size=(8, 5)), rng.integers(0, 3, 8)) for _ in range(steps)]


def train(net: Any, optimiser: Any, steps: int = 5) -> None:
    for x, y in batches(steps):
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(wg.asarray(x)), wg.asarray(y)).backward()
        optimiser.step()


def test_updates_change_nothing_that_is_seen_elsewhere(backend: Any) -> None:
    for optimiser_of in (
        lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
        lambda ps: optim.Adam(ps, weight_decay=0.1, amsgrad=True),
    ):
        p = nn.Parameter(wg.ones(3))
        optimiser = optimiser_of([p])
        (p * p).sum().backward()
        optimiser.step()
        detached, grad, state = p.detach(), p.grad, optimiser.state_dict()
        held = [
            detached,
            grad,
            *(t for t in state["state"][0].values() if isinstance(t, wg.Tensor)),
        ]
        before = [values(t).copy() for t in held]
        loss = (p * p * p).sum()
        optimiser.step()
        loss.backward()  # of the values that the loss was computed from
        np.testing.assert_allclose(values(p.grad), 2 * np.ones(3) + 3 * before[0] ** 2, rtol=1e-6)
        for tensor, was in zip([detached, *held[2:]], [before[0], *before[2:]], strict=True):
            np.testing.assert_array_equal(values(tensor), was)


def test_groups_and_changed_learning_rates() -> None:
    a, b, c = (nn.Parameter(wg.ones(1)) for _ in range(3))
    optimiser = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1)
    optimiser.add_param_group({"params": [c], "lr": 0.0})
    assert [group["lr"] for group in optimiser.param_groups] == [0.1, 0.5, 0.0]
    for p in (a, b, c):
        p.grad = wg.ones(1)
    optimiser.step()
    np.testing.assert_allclose([p.item() for p in (a, b, c)], [0.9, 0.5, 1.0], rtol=1e-6)
    optimiser.param_groups[0]["lr"] = 0.4
    optimiser.step()
    np.testing.assert_allclose(a.item(), 0.5, rtol=1e-6)


def test_a_parameter_without_a_gradient_stays() -> None:
    a, b = nn.Parameter(wg.ones(1)), nn.Parameter(wg.ones(1))
    optimiser = optim.Adam([a, b], weight_decay=0.1)
    a.grad = wg.ones(1)
    optimiser.step()
    assert b.item() == 1
    assert b not in optimiser.state


def test_closure_runs_recorded() -> None:
    p = nn.Parameter(wg.ones(1))
    optimiser = optim.SGD([p], lr=0.25)

    def closure() -> wg.Tensor:
        optimiser.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with wg.no_grad():
        assert optimiser.step(closure).item() == 1
    assert p.item() == 0.5
    assert optimiser.step() is None


# -- state -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"), [("SGD", {"momentum": 0.9}), ("Adam", {"amsgrad": True}), ("AdamW", {})]
)
def test_training_goes_on_from_a_state_dict(
    backend: Any, name: str, options: dict[str, Any]
) -> None:
    net = network()
    optimiser = getattr(optim, name)(net.parameters(), lr=0.05, **options)
    train(net, optimiser)
    twin = copy.deepcopy(net)
    state = optimiser.state_dict()
    restored = getattr(optim, name)(twin.parameters(), lr=0.7)
    restored.load_state_dict(state)
    assert restored.param_groups[0]["lr"] == 0.05
    train(net, optimiser)
    train(twin, restored)
    for p, q in zip(net.parameters(), twin.parameters(), strict=True):
        np.testing.assert_array_equal(values(p), values(q))


def test_a_state_dict_that_does_not_fit_changes_nothing() -> None:
    p, q = nn.Parameter(wg.ones(3)), nn.Parameter(wg.ones(2))
    one, two = optim.Adam([p], lr=0.5), optim.Adam([p, q])
    p.grad = wg.ones(3)
    two.step()
    with pytest.raises(ValueError, match="instead of"):
        one.load_state_dict(two.state_dict())
    split = optim.Adam([{"params": [p]}, {"params": [q]}])
    with pytest.raises(ValueError, match="different number of parameter groups"):
        one.load_state_dict(split.state_dict())
    other = optim.Adam([q])
    q.grad = wg.ones(2)
    other.step()
    with pytest.raises(ValueError, match=r"exp_avg.*\(2,\).*\(3,\)"):
        one.load_state_dict(other.state_dict())
    for wrong in (optim.SGD([p], momentum=0.9), optim.RMSprop([p])):
        with pytest.raises(ValueError, match="no such hyper-parameter: it is that of another"):
            one.load_state_dict(wrong.state_dict())
        with pytest.raises(ValueError, match=r"amsgrad.*in its groups"):
            wrong.load_state_dict(one.state_dict())
    invalid = one.state_dict()
    invalid["param_groups"][0]["lr"] = -1
    with pytest.raises(ValueError, match="Invalid learning rate"):
        one.load_state_dict(invalid)
    assert one.param_groups[0]["lr"] == 0.5
    assert not one.state


@pytest.mark.parametrize("name", ["SGD", "Muon", "Adam"])
def test_a_state_of_fewer_axes_is_not_broadcast(name: str) -> None:
    p = nn.Parameter(wg.ones((3, 2)))
    options = {"momentum": 0.9} if name == "SGD" else {}
    optimiser = getattr(optim, name)([p], **options)
    p.grad = wg.ones((3, 2))
    optimiser.step()
    state = optimiser.state_dict()
    key = next(k for k, v in state["state"][0].items() if getattr(v, "shape", ()))
    state["state"][0][key] = wg.ones(2)
    with pytest.raises(ValueError, match=rf"{key} of shape \(2,\) for a parameter of shape"):
        optimiser.load_state_dict(state)


@pytest.mark.parametrize(
    ("saved", "held", "absent"),
    [
        ("Adamax", "Adam", "exp_avg_sq"),
        ("RAdam", "NAdam", "mu_product"),
        ("Lion", "Adamax", "step"),
    ],
)
def test_the_state_of_another_optimiser_is_refused(saved: str, held: str, absent: str) -> None:
    """They have hyper-parameters of the same names, and other states."""
    p = nn.Parameter(wg.ones(2))
    p.grad = wg.ones(2)
    other, optimiser = getattr(optim, saved)([p]), getattr(optim, held)([p])
    other.step()
    with pytest.raises(ValueError, match=f"has no {absent}.* of parameter 0, which {held} needs"):
        optimiser.load_state_dict(other.state_dict())
    assert not optimiser.state


@pytest.mark.oracle
def test_what_users_and_pytorch_note_in_groups_is_loaded() -> None:
    torch = pytest.importorskip("torch")
    w = torch.ones(3, requires_grad=True)
    theirs = torch.optim.Adam([{"params": [("w", w)], "name": "head"}], lr=0.3)
    w.grad = torch.ones(3)
    theirs.step()
    p = nn.Parameter(wg.ones(3))
    ours = optim.Adam([{"params": [p], "name": "tail"}])
    ours.load_state_dict(theirs.state_dict())
    assert ours.param_groups[0]["name"] == "head" and ours.param_groups[0]["lr"] == 0.3
    np.testing.assert_allclose(ours.state[p]["exp_avg"], 0.1, rtol=1e-6)


@pytest.mark.oracle
@pytest.mark.parametrize("start", [1.0, 1 + 2j])
@pytest.mark.parametrize(
    "name", ["SGD", "Adam", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta"]
)
def test_pytorchs_state_of_a_single_number_goes_on(name: str, start: complex) -> None:
    """Its counters are arrays of the parameter's shape."""
    torch = pytest.importorskip("torch")
    w = torch.tensor(start, dtype=torch.complex128 if start.imag else torch.float64)
    w.requires_grad_()
    options = {"momentum": 0.9} if name == "SGD" else {}
    theirs = getattr(torch.optim, name)([w], lr=0.1, **options)
    for step in range(6):
        if step == 3:
            p = nn.Parameter(wg.asarray(w.detach().numpy().copy()))
            ours = getattr(optim, name)([p], lr=0.1, **options)
            ours.load_state_dict(theirs.state_dict())
        w.grad = w.detach() / (step + 1)
        if step >= 3:
            p.grad = wg.asarray(w.grad.numpy())
            ours.step()
        theirs.step()
    np.testing.assert_allclose(values(p), w.detach().numpy(), rtol=1e-8)
    assert all(not hasattr(ours.state[p].get(n), "dtype") for n in ("step", "mu_product"))


def test_pickle_and_deepcopy_together_with_the_model() -> None:
    net = network()
    optimiser = optim.Adam(net.parameters())
    train(net, optimiser)
    for pair in (
        copy.deepcopy((net, optimiser)),
        pickle.loads(pickle.dumps((net, optimiser))),
    ):
        before = values(next(pair[0].parameters())).copy()
        train(*pair, steps=2)
        assert (values(next(pair[0].parameters())) != before).any()
    train(net, optimiser, steps=2)
    for p, q in zip(net.parameters(), pair[0].parameters(), strict=True):
        np.testing.assert_array_equal(values(p), values(q))


class Kept(optim.Optimizer):
    """It sets a parameter to what its state has."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {})

    def init(self, xp: Any, p: Any, group: Any) -> dict[str, Any]:
        return {"kept": xp.ones_like(p), "seen": xp.zeros(p.shape, dtype=xp.int32)}

    def rule(self, xp: Any, group: dict[str, Any]) -> Any:
        return lambda p, g, state: state["kept"]


def test_a_result_on_another_backend_is_an_error() -> None:
    pytest.importorskip("array_api_strict")
    p = nn.Parameter(wg.zeros(2))
    optimiser = Kept([p])
    p.grad = wg.ones(2)
    optimiser.step()
    module = nn.Module()
    module.p = p
    module.to("array_api_strict")
    before = p._array
    with pytest.raises(wg.BackendError, match=r"is on array_api_strict, .* on numpy"):
        optimiser.step()
    assert p._array is before


def test_a_state_is_loaded_in_the_precision_of_its_parameter() -> None:
    single, double = (nn.Parameter(wg.zeros(2, dtype=d)) for d in (wg.float32, wg.float64))
    optimisers = Kept([single]), Kept([double])
    single.grad = wg.ones(2)
    optimisers[0].step()
    optimisers[1].load_state_dict(optimisers[0].state_dict())
    state = optimisers[1].state[double]
    assert state["kept"].dtype == np.float64
    assert state["seen"].dtype == np.int32  # what counts has no precision


def test_momentum_is_not_the_gradient_that_it_began_with() -> None:
    p = nn.Parameter(wg.zeros(2, dtype=wg.float64))
    optimiser = optim.SGD([p], lr=1.0, momentum=0.5)
    given = np.ones(2)
    p.grad = wg.from_dlpack(given)
    optimiser.step()
    given[:] = 8  # the user's memory, in which the user's gradient is
    assert p.grad.tolist() == [8, 8]
    optimiser.step()  # 1 for the first step, 0.5 and 8 for the second
    np.testing.assert_array_equal(values(p), -1 - 0.5 - 8)


def test_adam_without_moments() -> None:
    p = nn.Parameter(wg.zeros(2, dtype=wg.float64))
    optimiser = optim.Adam([p], lr=0.25, betas=(0.0, 0.0), eps=0.0)
    for g in ([3.0, -0.5], [-7.0, -2.0]):
        p.grad = wg.asarray(g, dtype=wg.float64)
        optimiser.step()
    np.testing.assert_allclose(values(p), [0, 0.5])  # each step is the gradient's sign


def test_an_optimiser_without_a_rule() -> None:
    class Unfinished(optim.Optimizer):
        pass

    p = nn.Parameter(wg.zeros(2))
    p.grad = wg.ones(2)
    with pytest.raises(NotImplementedError, match="Unfinished does not define rule"):
        Unfinished([p], {}).step()


# -- bad input -------------------------------------------------------------------------------------


#: Calls, their errors, and what these say.
REFUSED = r"""
optim.SGD([], lr=0.1) | ValueError | empty parameter list
optim.SGD(p, lr=0.1) | TypeError | iterable of Tensors
optim.SGD([1.0], lr=0.1) | TypeError | takes Tensors, and was given a float
optim.SGD([p * 2], lr=0.1) | ValueError | non-leaf
optim.SGD([p, p], lr=0.1) | ValueError | more than one
optim.SGD([{"params": p}, {"params": p}]) | ValueError | more than one
optim.SGD([{"params": {p}}]) | TypeError | another order
optim.SGD([{"lr": 1}]) | ValueError | needs 'params'
optim.SGD([{"params": p, "beta": 1}]) | ValueError | no hyper-parameter beta
optim.SGD([p], lr=-0.1) | ValueError | Invalid learning rate: -0.1
optim.SGD([p], lr="0.1") | TypeError | lr is a number, and not '0.1'
optim.SGD([p], lr=None) | TypeError | lr is a number, and not None
optim.Adam([p], betas=0.9) | ValueError | betas should be two numbers, not 0.9
optim.SGD(nn.Linear(2, 2).parameters) | TypeError | a method: call it
optim.SGD(3) | TypeError | an iterable of Tensors, and was given a int
optim.SGD([p], lr=float("nan")) | ValueError | Invalid learning rate
optim.SGD([{"params": p, "lr": -1}]) | ValueError | Invalid learning rate
optim.SGD([p], momentum=-1) | ValueError | Invalid momentum
optim.SGD([p], weight_decay=-1) | ValueError | Invalid weight_decay
optim.SGD([p], nesterov=True) | ValueError | Nesterov
optim.SGD([p], nesterov=True, dampening=0.1) | ValueError | Nesterov
optim.SGD([p], nesterov=True, momentum=0.5, dampening=0.1) | ValueError | Nesterov
optim.Adam([p], lr=-1) | ValueError | Invalid learning rate
optim.Adam([p], eps=-1) | ValueError | Invalid epsilon
optim.Adam([p], betas=(1.0, 0.9)) | ValueError | index 0: 1.0
optim.Adam([p], betas=(0.9, -1)) | ValueError | index 1: -1
optim.Adam([p], betas=(0.9,)) | ValueError | two numbers
optim.AdamW([p], weight_decay=-1) | ValueError | Invalid weight_decay
optim.Optimizer([p], {}).add_param_group(p) | TypeError | must be a dict
"""


def test_bad_input() -> None:
    walk(refusals(REFUSED), refuse(p=nn.Parameter(wg.ones(2))), whole=True)


def test_an_invalid_group_is_not_added() -> None:
    p, q = nn.Parameter(wg.ones(2)), nn.Parameter(wg.ones(2))
    optimiser = optim.SGD([p], lr=0.1)
    with pytest.raises(ValueError, match="Invalid learning rate"):
        optimiser.add_param_group({"params": [q], "lr": -1})
    assert len(optimiser.param_groups) == 1


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 2), (2, 1), (1.0, -0.5), (-1, 3), (0.5, 1)])
def test_the_arithmetic_of_updates(backend: Backend, a: float, b: float) -> None:
    """Kernels and what is composed where a library has none."""
    x, y = np.array([1.0, -2.0, 3.5]), np.array([0.25, 4.0, -1.0])
    xp, host = backend.namespace, backend.to_numpy
    u, v = backend.from_numpy(x), backend.from_numpy(y)
    for axpby in (kernels.axpby, lambda xp, *rest: xp.axpby(*rest)):
        np.testing.assert_allclose(host(axpby(xp, a, u, b, v)), a * x + b * y, rtol=1e-15)
    for add_squares in (kernels.add_squares, lambda xp, *rest: xp.add_squares(*rest)):
        found = host(add_squares(xp, a, u, b, v))
        np.testing.assert_allclose(found, a * x + (b * y) ** 2, rtol=1e-15)
    for add_normalised in (kernels.add_normalised, lambda xp, *rest: xp.add_normalised(*rest)):
        found = host(add_normalised(xp, u, b, v, v * v, 0.125))
        np.testing.assert_allclose(found, x + b * y / (abs(y) + 0.125), rtol=1e-15)


@pytest.mark.parametrize("kind", [optim.Adam, optim.AdamW, optim.NAdam])
def test_half_precision_has_an_eps_in_the_first_steps(kind: Any) -> None:
    """A gradient of zero is divided by it: no less than 6e-8, the least that there is."""
    p = nn.Parameter(wg.ones(2, dtype=wg.float16))
    optimiser = kind([p], lr=0.125, eps=1e-7, weight_decay=0)
    for _ in range(3):
        p.grad = wg.asarray([0.0, 1.0], dtype=wg.float16)
        optimiser.step()
    assert p[0].item() == 1 > p[1].item()


def test_a_state_that_climbs_is_not_loaded() -> None:
    optimiser = optim.SGD([nn.Parameter(wg.ones(2))], lr=0.5)
    state = optimiser.state_dict()
    state["param_groups"][0] |= {"maximize": False, "foreach": None}
    optimiser.load_state_dict(state)
    assert "maximize" not in optimiser.param_groups[0]
    state["param_groups"][0]["maximize"] = True
    with pytest.raises(ValueError, match="has maximize in its groups, and SGD no such"):
        optimiser.load_state_dict(state)


def test_a_step_that_fails_says_why() -> None:
    p = nn.Parameter(wg.ones(2))
    optimiser = optim.SGD([p], lr=0.5, momentum=0.5)
    for _ in range(2):
        optimiser.zero_grad()
        wg.sum(p * 1).backward()
        optimiser.step()
    optimiser.state[p] = {name: wg.ones(3)._array for name in optimiser.state[p]}
    with pytest.raises(ValueError, match="broadcast"):
        optimiser.step()
    saved = optimiser.state_dict()
    saved["state"] = {7: {}}
    with pytest.raises(ValueError, match=r"state for unknown parameters \[7\]"):
        optimiser.load_state_dict(saved)


def test_a_new_optimiser_is_two_hooks(backend: Any) -> None:
    class Signs(optim.Optimizer):
        """Steps of one length along the sign of the summed gradients."""

        def init(self, xp: Any, p: Any, group: Any) -> dict[str, Any]:
            return {"total": xp.zeros_like(p)}

        def rule(self, xp: Any, group: Any) -> Any:
            def update(p: Any, g: Any, state: Any) -> Any:
                state["total"] = xp.add(state["total"], g)
                return xp.subtract(p, xp.multiply(xp.sign(state["total"]), group["lr"]))

            return update

    p = nn.Parameter(wg.asarray([1.0, -1.0]))
    optimiser = Signs([p], {"lr": 0.5})
    for _ in range(2):
        optimiser.zero_grad()
        (p * p).sum().backward()
        optimiser.step()
    assert p.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
@pytest.mark.parametrize("shape", [(), (0,), (1, 1, 1)])
def test_parameters_of_any_shape(backend: Any, name: str, shape: tuple[int, ...]) -> None:
    p = nn.Parameter(wg.ones(shape))
    optimiser = getattr(optim, name)([p], lr=0.1, weight_decay=0.1)
    for _ in range(3):
        optimiser.zero_grad()
        (p * p).sum().backward()
        optimiser.step()
    assert p.shape == shape
    assert p.dtype == wg.float32
    assert p.backend is backend
    assert (values(p) < 1).all()


@pytest.mark.parametrize("kind", ["Muon", "LBFGS", "Adam"])
def test_a_model_that_becomes_complex_is_told(kind: str, backend: Any) -> None:
    p = nn.Parameter(wg.ones((2, 3)))
    optimizer = getattr(optim, kind)([p])

    def closure() -> Any:
        optimizer.zero_grad()
        loss = wg.sum(wg.real(p * wg.conj(p)))
        loss.backward()
        return loss

    def step() -> None:
        closure()
        optimizer.step(*[closure] if kind == "LBFGS" else [])

    step()
    p._array = wg.astype(p.detach(), "complex64")._array
    p.requires_grad_(False).requires_grad_()
    before, told = p.detach().numpy().copy(), repr(optimizer.state)
    error = (ValueError, "complex") if kind == "Muon" else (wg.BackendError, "after moving")
    with pytest.raises(error[0], match=error[1]):
        step()
    np.testing.assert_array_equal(p.detach().numpy(), before)
    assert repr(optimizer.state) == told or kind == "Adam"


PARTS = {
    "a precision like another's": (("float32", "float64"), lambda p: wg.astype(p, "float32")),
    "another precision": (("float32", "float32"), lambda p: wg.astype(p, "float64")),
    "complex numbers": (("complex64", "float32"), lambda p: wg.astype(p, "complex64")),
    "another backend": (
        ("float32", "float32"),
        lambda p: p.to_backend("numpy" if p.backend.name != "numpy" else "array_api_strict"),
    ),
    "another device": (("float32", "float32"), lambda p: p.to_device("device1")),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *(("SGD", {"momentum": 0.9}), ("Adam", {}), ("AdamW", {"amsgrad": True})),
        *((name, {}) for name in ("RMSprop", "Adagrad", "Adamax")),
    ],
)
def test_a_parameter_that_is_moved_alone_is_told(
    kind: str, options: Any, part: str, compiled: bool, backend: Any
) -> None:
    """Also where it is like its neighbour then."""
    pytest.importorskip("array_api_strict")
    if part == "another device" and backend.name != "array_api_strict":
        pytest.skip("there are several devices on array_api_strict alone")
    if (kind, part) == ("SGD", "complex numbers"):
        pytest.skip("its momentum becomes complex with the gradients, and is right")
    dtypes, move = PARTS[part]
    params = [nn.Parameter(wg.ones((2, 2), dtype=dtype)) for dtype in dtypes]
    optimizer = getattr(optim, kind)(params, **options)

    def step() -> None:
        optimizer.zero_grad()
        for p in params:
            wg.sum(wg.real(p * wg.conj(p))).backward()
        optimizer.step()

    run = wg.compile(step) if compiled else step
    for _ in range(2):
        run()
    params[1].grad = None
    params[1]._array = move(params[1].detach())._array
    params[1].requires_grad_(False).requires_grad_()
    before = params[1].detach().numpy().copy()
    with pytest.raises(wg.BackendError, match=r"parameter 1 of .* make the optimizer after moving"):
        run()
    np.testing.assert_array_equal(params[1].detach().numpy(), before)
    optimizer.load_state_dict(optimizer.state_dict())
    run()
