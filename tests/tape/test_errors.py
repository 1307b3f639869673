"""Bad input to the backward pass, to functions with rules of their own, and to hooks."""

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import operation
from wengert.backends import BackendError
from wengert.interpreters.batched import Batched
from wengert.interpreters.duals import Dual
from wengert.interpreters.lifted import new_level
from wengert.tape.leaving import in_library
from wengert.tape.primitive import PRIMITIVES, Primitive
from wengert.tape.tensor import untracked


def leaf(*shape: int) -> wg.Tensor:
    return wg.ones(shape, requires_grad=True)


def strict(*shape: int, dtype: Any = None) -> wg.Tensor:
    pytest.importorskip("array_api_strict")
    with wg.use_backend("array_api_strict"):
        return wg.ones(shape, dtype=dtype)


def answering(answer: Any, setup: Any = None) -> Any:
    """Twice its argument, with what `answer` makes of the cotangent or the tangent."""

    def Answers(x: Any) -> Any:
        return x * 2

    def rule(ctx: Any, g: Any) -> Any:
        return answer(g)

    def save(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    return operation(Answers, rule, jvp=rule, setup_context=setup or save)


def Two(x: Any, y: Any) -> Any:
    return x * y


def early(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)
    assert ctx.saved_tensors


def answered(answer: Callable[..., Any]) -> Any:
    """The gradient of two elements where `backward` answers so."""
    x = leaf(2)
    return wg.autograd.grad(wg.sum(answering(answer)(x)), x)[0]


def pushed(answer: Callable[..., Any]) -> Any:
    """The tangent of two elements where `jvp` answers so."""
    return wg.func.jvp(answering(answer), (wg.ones(2),), (wg.ones(2),))[1]


def hooked(answer: Callable[..., Any]) -> None:
    x = leaf(2)
    y = x * 2
    y.register_hook(answer)
    wg.sum(y).backward()


def batch_of_dual() -> Any:
    outer, inner = new_level(), new_level()
    dual = untracked(Dual(np.ones(2), np.ones(2), outer))
    two = operation(Two, setup_context=lambda ctx, inputs, output: None)
    return two(untracked(Batched(np.ones((3, 2)), inner)), dual)


BAD: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (TypeError, "outputs should be Tensors, not str", lambda: wg.autograd.grad(["a"], leaf(2))),
    (TypeError, "inputs should be Tensors, not int", lambda: wg.autograd.grad(leaf(), [3])),
    (RuntimeError, "inputs is empty", lambda: wg.autograd.grad(leaf(), [])),
    (RuntimeError, "1 outputs and 2 gradients",
     lambda: wg.autograd.grad(leaf(), [leaf()], [leaf(), leaf()])),
    (TypeError, "a gradient should be a Tensor, not float", lambda: (leaf() * 2).grad_fn(3.0)),
    (TypeError, "add takes Tensors, arrays and", lambda: PRIMITIVES["add"].bind(leaf(2), None)),
    (RuntimeError, "only leaf Tensors can be pickled", lambda: pickle.dumps(leaf(2) * 2)),
    (RuntimeError, "can be read only in backward", lambda: answering(None, early)(leaf(2))),
    (NotImplementedError, "Two inside of a batch", batch_of_dual),
    (TypeError, "is of dtype int64", lambda: answered(lambda g: wg.ones(2, dtype=wg.int64))),
    (BackendError, "is on array_api_strict, but should be on numpy",
     lambda: answered(lambda g: strict(2, dtype=wg.float32))),
    (RuntimeError, "number of gradients .* got 2", lambda: answered(lambda g: (g, g))),
    (RuntimeError, "expected 1, got 0", lambda: answered(lambda g: ())),
    (TypeError, "gradient 0 .*, not float", lambda: answered(lambda g: 1.0)),
    (RuntimeError, "of tangents .expected 1, got 0", lambda: pushed(lambda t: ())),
    (TypeError, "tangent 0 .*, not float", lambda: pushed(lambda t: 3.0)),
    (RuntimeError, "should have shape", lambda: answered(lambda g: wg.ones(3))),
    (RuntimeError, "should have shape", lambda: pushed(lambda t: wg.ones(3))),
    (RuntimeError, "is on array_api_strict, but should be on numpy",
     lambda: hooked(lambda g: strict(2, dtype=wg.float32))),
    (TypeError, "multiply takes Tensors, .* not None", lambda: wg.multiply(leaf(2), None)),
    (TypeError, "add takes Tensors or arrays, and was given only: int, float",
     lambda: PRIMITIVES["add"].bind(1, 2.0)),
    (TypeError, "add takes Tensors, .*, not list; convert it with", lambda: wg.add(leaf(1), [1])),
    (TypeError, "add takes Tensors, arrays and Python numbers, not str$",
     lambda: PRIMITIVES["add"].bind(leaf(1), "a")),
    (BackendError, r"of two backends, numpy .shape .1,.. and array_api_strict .shape .2,..; move",
     lambda: wg.add(leaf(1), strict(2))),
    (ValueError, r"add: the shapes .2,. and .3,. do not", lambda: leaf(2) + leaf(3)),
    (TypeError, r"bitwise_and takes integer or boolean arrays, and was given float32 .2,., 1",
     lambda: wg.bitwise_and(leaf(2), 1)),
    (TypeError, "bitwise_invert takes integer or boolean", lambda: wg.bitwise_invert(leaf(2))),
    (OverflowError, r"add: the number 200 is out of bounds for int8 .-128 to 127.; convert",
     lambda: wg.ones(2, dtype=wg.int8) + 200),
    (OverflowError, "256 is out of bounds for uint8 .0 to 255.",
     lambda: 256 * wg.ones(2, dtype=wg.uint8)),
    (TypeError, "uint64 and int8 have no common dtype",
     lambda: wg.ones(2, dtype=wg.uint64) + wg.ones(2, dtype=wg.int8)),
    (TypeError, "real floating one, and not int64", lambda: wg.set_default_dtype(wg.int64)),
    (NotImplementedError, "needs a static method backward",
     lambda: wg.autograd.Function.backward(None)),
    (TypeError, "integer Tensors of one element can be an index, .*float32 and shape .2,.",
     lambda: [1, 2][leaf(2)]),
    (TypeError, r"an index, and this one has dtype float32 and shape \(\)", lambda: [1][leaf()]),
    (TypeError, "len.. of a 0-d tensor", lambda: len(leaf())),
    (BufferError, "Can't export a Tensor that requires grad", lambda: np.from_dlpack(leaf(2))),
    (RuntimeError, "support the deepcopy protocol", lambda: copy.deepcopy(leaf(2) * 2)),
    (ValueError, "of shape .2,. has 2 elements and cannot be", lambda: float(wg.ones(2))),
    (RuntimeError, r"output with shape .2,. doesn't match the broadcast shape .3, 2.",
     lambda: (leaf(2) * 1).__iadd__(leaf(3, 2))),
    (RuntimeError, "result type float32 can't be stored .* dtype int64",
     lambda: wg.ones(2, dtype=wg.int64).__iadd__(wg.ones(2))),
]  # fmt: skip


@pytest.mark.whole
@pytest.mark.parametrize(("kind", "text", "bad"), BAD)
def test_bad_input(kind: type[Exception], text: str, bad: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=text):
        bad()


def test_none_may_stand_in_excess_at_the_end() -> None:
    twos = [2.0, 2.0]
    np.testing.assert_array_equal(answered(lambda g: (g * 2, None, None)).numpy(), twos)
    np.testing.assert_array_equal(pushed(lambda t: (t * 2, None, None)).numpy(), twos)


def test_answers_that_were_broadcast_are_summed() -> None:
    np.testing.assert_array_equal(answered(lambda g: wg.ones((4, 2))).numpy(), [4.0, 4.0])


def test_real_parts_of_complex_answers_are_taken() -> None:
    np.testing.assert_array_equal(answered(lambda g: g * (2 + 1j)).numpy(), [2.0, 2.0])
    np.testing.assert_array_equal(pushed(lambda t: t * (2 + 1j)).numpy(), [2.0, 2.0])


@pytest.fixture
def plant() -> Iterator[Callable[..., Primitive]]:
    yield lambda *row, **more: Primitive("planted", *row, **more)
    del PRIMITIVES["planted"]


@pytest.mark.parametrize(
    ("said", "kind"),
    [("wrong type", TypeError), ("wrong", ValueError), ("out of memory", RuntimeError)],
)
def test_a_kernels_runtime_error_is_explained(plant: Any, said: str, kind: type) -> None:
    def forward(xp: Any, x: Any) -> Any:
        raise RuntimeError(said)

    with pytest.raises(kind, match=said) as told:
        plant(["x"], {}, elementwise=True, composite=forward).bind(leaf(2))
    assert type(told.value) is kind
    text = "\n".join([str(told.value), *getattr(told.value, "__notes__", ())])
    assert "planted of float32 (2,)" in text


def test_what_a_rule_leaves_small_is_broadcast(plant: Any) -> None:
    total = plant(
        ["x"], {"x": lambda xp, g: g * 3}, linear="together", composite=lambda xp, x: xp.sum(x)
    )
    x = leaf(2, 3)
    total.bind(x).backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full((2, 3), 3.0))


def test_a_gradient_with_a_graph_is_not_added_to_in_place() -> None:
    x = wg.asarray([2.0, 3.0], requires_grad=True)
    wg.sum(x**2).backward(create_graph=True)
    first = x.grad
    wg.sum(x**2).backward()
    np.testing.assert_array_equal(first.detach().numpy(), [4.0, 6.0])
    np.testing.assert_array_equal(x.grad.detach().numpy(), [8.0, 12.0])
    assert not x.grad.requires_grad


def test_a_generator_without_gradients_is_closed() -> None:
    seen = []

    @wg.no_grad()
    def steps() -> Iterator[bool]:
        try:
            while True:
                yield wg.is_grad_enabled()
        finally:
            seen.append(wg.is_grad_enabled())

    run = steps()
    assert next(run) is False
    run.close()
    assert seen == [False]  # as in PyTorch, the mode is on while it is closed
    assert wg.is_grad_enabled()


def test_floats_of_one_width_meet_in_a_wider_one() -> None:
    assert wg.result_type(wg.float16, wg.bfloat16) is wg.float32
    assert wg.result_type(wg.bfloat16, wg.float16) is wg.float32
    assert wg.result_type(wg.float16, wg.float16) is wg.float16


def test_where_an_array_is_is_printed_unless_in_host_memory() -> None:
    pytest.importorskip("array_api_strict")
    with wg.use_backend("array_api_strict:device1"):
        assert "device=" in repr(wg.ones(2))
        lines = repr(wg.ones((9, 9), dtype=wg.float64)).splitlines()
    assert "device=" not in repr(wg.ones(2))
    assert lines[-1].startswith("       dtype=") or lines[-1].startswith("       device=")
    assert max(map(len, lines)) <= 80


def test_pythons_own_modules_are_no_users() -> None:
    assert in_library("<frozen importlib._bootstrap>")
    assert not in_library(__file__)


def test_the_last_note_of_a_printed_tensor_leaves_room_for_its_bracket() -> None:
    with wg.use_backend("numpy"):
        text = repr(wg.asarray(np.full((2, 8), 100.0), dtype="float64"))
    row = "[100., 100., 100., 100., 100., 100., 100., 100.]"
    assert len(f"        {row}], dtype=wengert.float64") == 80
    assert text == f"tensor([{row},\n        {row}],\n       dtype=wengert.float64)"
