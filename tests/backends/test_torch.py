"""Raw PyTorch tensors that require grad: Wengert's arrays are never on PyTorch's tape."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import wengert as wg

torch: Any = None
pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """PyTorch is not imported where these tests are found and not run."""
    global torch
    torch = pytest.importorskip("torch")


def taped() -> Any:
    return torch.tensor([0.5, 1.5, 2.5], dtype=torch.float64, requires_grad=True)


def tensor() -> Any:
    return wg.asarray(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))


def assigned() -> Any:
    x = tensor()
    x[0] = taped()[1]
    return x


def added() -> Any:
    x = tensor()
    x += taped()
    return x


def twice(function: Callable[..., Any], *args: Any) -> Any:
    compiled = wg.compile(function)
    compiled(*args)
    return compiled(*args)


def _times(p: Any) -> Callable[[Any], Any]:
    return lambda x: x * p


def gradient() -> Any:
    x = tensor().requires_grad_(True)
    wg.sum(x * taped()).backward()
    return x.grad


def loaded() -> Any:
    with wg.use_backend("torch"):
        model = wg.nn.Linear(2, 3).to("float64")
    weight = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    model.load_state_dict({"weight": weight, "bias": taped()})
    return model.bias


PLACES: dict[str, Callable[[], Any]] = {
    "asarray": lambda: wg.asarray(taped()),
    "tensor": lambda: wg.tensor(taped()),
    "Tensor": lambda: wg.Tensor(taped()),
    "Parameter": lambda: wg.nn.Parameter(taped()),
    "unary": lambda: wg.exp(taped()),
    "binary": lambda: tensor() * taped(),
    "reflected": lambda: taped() * tensor(),
    "both raw": lambda: wg.multiply(taped(), taped()),
    "reduction": lambda: wg.sum(taped()),
    "several": lambda: wg.unstack(taped())[0],
    "stack": lambda: wg.stack([taped(), tensor()]),
    "where": lambda: wg.where(tensor() > 1, taped(), 0.0),
    "clip": lambda: wg.clip(tensor(), taped(), None),
    "einsum": lambda: wg.einsum("i,i->i", taped(), tensor()),
    "assignment": assigned,
    "in place": added,
    "at": lambda: wg.at(tensor())[0].set(taped()[0]),
    "gradient": gradient,
    "tangent": lambda: wg.func.jvp(wg.sin, (tensor(),), (taped(),))[1],
    "cotangent": lambda: wg.vjp(wg.sin, tensor())[1](taped())[0],
    "compiled argument": lambda: twice(wg.exp, taped()),
    "compiled constant": lambda: twice(_times(taped()), tensor()),
    "compiled operand": lambda: twice(lambda x, p: x * p, tensor(), taped()),
    "state_dict": loaded,
    "numpy": lambda: np.multiply(tensor(), taped()),
}


def test_no_array_of_wengerts_is_on_pytorchs_tape() -> None:
    for place, make in PLACES.items():
        found = make().array
        assert not found.requires_grad, place
        assert found.grad_fn is None, place
        np.from_dlpack(found)


FUNCTIONS: list[Callable[[Any], Any]] = [
    lambda x: wg.sum(wg.asarray(x) ** 2).array,
    lambda x: wg.sum(wg.exp(x)).array,
    lambda x: wg.sum(wg.Tensor(x)).array,
]


def forward(function: Callable[[Any], Any], x: Any) -> Any:
    mode = torch.autograd.forward_ad
    with mode.dual_level():
        return mode.unpack_dual(function(mode.make_dual(x, torch.ones_like(x))))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own
def test_pytorchs_transforms_are_refused() -> None:
    for transform, function in product(
        [
            lambda f, x: torch.func.grad(f)(x),
            lambda f, x: torch.func.jvp(f, (x,), (x,)),
            lambda f, x: torch.func.jacrev(f)(x),
            lambda f, x: torch.func.jacfwd(f)(x),
            lambda f, x: torch.vmap(torch.func.grad(f))(x[None]),
            lambda f, x: torch.func.grad(lambda x: torch.vmap(f)(x[None])[0])(x),
            forward,
        ],
        FUNCTIONS,
    ):
        with pytest.raises(TypeError, match="do not differentiate what Wengert computes"):
            transform(function, torch.ones(3))


def test_pytorchs_batches_work() -> None:
    x = torch.arange(6.0).reshape(3, 2)
    found = torch.vmap(lambda x: wg.sum(wg.exp(x)).array)(x)
    torch.testing.assert_close(found, torch.exp(x).sum(1))
