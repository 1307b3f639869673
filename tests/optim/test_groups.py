"""Hyper-parameters in whatever kind a program has numbers, and groups, which convert them."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import nn, optim, optimize
from wengert.optim.groups import Group

HALF = np.float32(0.5)
#: What the methods of dict are tried with; not all of it fits.
ARGUMENTS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    *(((x,), {}) for x in ({"b": HALF}, [("b", HALF)], "a", "z", ["a", "b"], 3, {}, {"a": 1})),
    *(((), {}), ((), {"b": HALF}), (({"b": HALF},), {"c": HALF})),
    *((("z", HALF), {}), (("a", HALF), {}), ((["a", "b"], HALF), {})),
]
SKIPPED = {*dir(type), "__repr__", "__str__", "__format__", "__class_getitem__"}
METHODS = sorted({*dir(dict)} - SKIPPED | {"__init__", "__or__", "__ror__"})


def test_a_group_converts_whatever_is_set_and_stays_one() -> None:
    """In each way to change one, generated from the methods of dict; copies are plain dicts."""
    wrong: list[Any] = []
    numbers = {int, float, type(None)}
    for args, keywords in ARGUMENTS:
        for name in METHODS:
            group = Group({"a": 1, "b": 2})
            try:
                made = getattr(group, name)(*args, **keywords)
            except Exception:  # it does not fit
                made = None
            wrong += [
                (name, args, type(each), each)
                for each in (group, made if name == "__ior__" else None)
                if isinstance(each, dict)
                and (type(each) is not Group or not {*map(type, each.values())} <= numbers)
            ]
    group = Group({"a": HALF})
    for again in (copy.copy(group), copy.deepcopy(group), pickle.loads(pickle.dumps(group))):
        assert type(again) is Group and again == {"a": 0.5} and again is not group
    assert not wrong, "\n".join(map(str, wrong))


KINDS = {
    "np.float64": np.float64,
    "np.float32": np.float32,
    "0-d ndarray": np.asarray,
    "Tensor": lambda x: wg.asarray(x, dtype=wg.float64),
    "float32 Tensor": lambda x: wg.asarray(x, dtype=wg.float32),
}


@pytest.mark.parametrize("kind", KINDS)
def test_clipping(kind, backend):
    make = KINDS[kind]

    def clipped(max_norm, norm_type, clip_value):
        p = wg.zeros(4, requires_grad=True)
        p.grad = wg.asarray([3.0, -4.0, 12.0, 0.5])
        total = nn.utils.clip_grad_norm_([p], max_norm, norm_type)
        nn.utils.clip_grad_value_([p], clip_value)
        assert p.grad.dtype is wg.float32
        return total.item(), p.grad.numpy()

    for norm in (1.0, 2.0, 3.0, np.inf):
        total, gradient = clipped(make(2.0), make(norm), make(0.25))
        wanted = clipped(2.0, norm, 0.25)
        assert total == pytest.approx(wanted[0], rel=1e-6)
        np.testing.assert_allclose(gradient, wanted[1], rtol=1e-6)


def test_numbers_are_pythons_however_they_are_set():
    p = wg.zeros(3, requires_grad=True)
    optimizer = optim.Adam([{"params": [p], "lr": np.float32(0.5)}], betas=[np.float32(0.5), 0.5])
    (group,) = optimizer.param_groups
    group["eps"] = wg.asarray(0.25)
    assert {type(x) for x in (group["lr"], group["eps"], *group["betas"])} == {float}
    assert type(group["amsgrad"]) is bool
    state = optimizer.state_dict()
    state["param_groups"][0]["lr"] = np.float64(0.125)
    optimizer.load_state_dict(state)
    assert type(optimizer.param_groups[0]["lr"]) is float


def test_an_array_is_no_hyper_parameter():
    p = wg.zeros(3, requires_grad=True)
    for lr in (np.asarray([0.1]), wg.asarray([0.1, 0.2])):
        with pytest.raises(TypeError, match=r"lr should be a number.*shape \(\d,\).*groups"):
            optim.SGD([p], lr=lr)


def test_minimizing_a_vector():
    pytest.importorskip("scipy")
    for method in ("BFGS", "nelder-mead", "newton-cg"):
        with pytest.raises(ValueError, match=r"returned a Tensor of shape \(2,\).*least_squares"):
            optimize.minimize(lambda x: x**2, np.ones(2), method=method)
    found = optimize.minimize(lambda x: wg.reshape(wg.sum((x - 1) ** 2), (1,)), np.zeros(2))
    np.testing.assert_allclose(found.x, 1, atol=1e-6)


def test_a_zero_learning_rate_keeps_the_signs_of_zeros_whatever_ran_before():
    """-lr is -0.0, which equals the 0.0 that another call has used."""
    for lr, sign in ((-0.0, 1), (0.0, -1)):
        p = wg.asarray([-0.0, 1.0], requires_grad=True)
        optimizer = optim.SGD([p], lr=lr)
        p.grad = wg.asarray([0.0, 1.0])
        optimizer.step()
        assert [math.copysign(1, x) for x in p.tolist()] == [sign, 1]
