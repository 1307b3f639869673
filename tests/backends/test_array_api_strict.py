"""array_api_strict has several devices: results and derivatives are on that of the operands."""

from contextlib import suppress
from typing import Any

import wengert as wg
from backend_check.calls import arguments, prepare
from backend_check.checks import names
from tests.walking import walk
from wengert.testing.problem import on_backend


def check_device(call: Any, leaves: list[wg.Tensor]) -> None:
    """Run a call and its derivatives of both orders where new arrays are made elsewhere."""
    with wg.use_backend("array_api_strict"), suppress(NotImplementedError):
        found = [x for x in call(*leaves) if isinstance(x, wg.Tensor)]
        for _ in range(2):
            tracked = [wg.sum(wg.abs(x) ** 2) for x in found if x.requires_grad]
            if tracked:
                options = {"create_graph": True, "materialize_grads": True}
                found += wg.autograd.grad(sum(tracked), leaves, **options)
        assert {x.device for x in found} <= {leaves[0].device}


def test_results_are_where_the_operands_are() -> None:
    def check(name: str) -> None:
        call, arrays = prepare(name, arguments(name))
        leaves = [on_backend(x).requires_grad_() for x in arrays]
        if leaves:
            check_device(call, leaves)

    with wg.use_backend("array_api_strict:device1"):  # which has `isin` of integers alone
        walk([(name,) for name in names() if name != "isin"], check, whole=True)


def test_places_that_repeat_or_are_none_are_on_the_device_too() -> None:
    with wg.use_backend("array_api_strict:device1"):
        x, i = wg.ones((3, 2), requires_grad=True), wg.asarray([0, 0, 2])
        for call in (
            *(lambda x, m=m: [getattr(wg.at(x)[i], m)(2.0)] for m in ("add", "multiply", "max")),
            lambda x: [wg.take(x, i[:0], axis=0), x * x],
            lambda x: [x[i[:0], i[:0]], x * x],
        ):
            check_device(call, [x])
