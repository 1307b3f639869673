"""The backward pass: `backward` and `grad`, which run the sweep of the tape."""

from _thread import allocate_lock
from collections.abc import Sequence
from typing import Any

from wengert.backends import BackendError, dtype_of, namespaces
from wengert.backends.references import has_holders
from wengert.tape.hooks import eager
from wengert.tape.node import Node, check_cotangent, is_lifted
from wengert.tape.sweep import leading_to, recorded_sweep, sweep
from wengert.tape.tensor import Tensor, untracked, with_node

#: Two threads may add to one leaf's gradient.
_accumulating = allocate_lock()


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    r"""Add the gradients of ``tensors`` to the ``.grad`` of the leaves they were computed from.

    For a result :math:`y` and the cotangent :math:`\bar y` given for it, a leaf :math:`x` gets
    :math:`\bar x = (\partial y / \partial x)^H \, \bar y`, summed over the results.

    Raises `RuntimeError` if a result does not require grad, or has several elements and no
    cotangent; if a cotangent has the wrong shape; or if the graph was swept before and not
    retained. No ``.grad`` has changed then.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensor
        Results to differentiate, of any shape.
    grad_tensors : Tensor or sequence of (Tensor or None), optional
        For each result its cotangent, of the same shape. It may be left out for a result of one
        element, and then is 1.
    retain_graph : bool, optional
        Whether the tape keeps what it saved, so that it can be swept again. By default it does
        when ``create_graph`` is set.
    create_graph : bool
        Whether the sweep itself is recorded, so that the gradients can be differentiated.
    inputs : Tensor or sequence of Tensor, optional
        The Tensors, leaves or not, whose ``.grad`` is added to; all leaves by default.

    Examples
    --------
    >>> x = wg.tensor([1.0, 2.0], requires_grad=True)
    >>> wg.autograd.backward(wg.sum(x * x))
    >>> x.grad
    tensor([2., 4.])
    """
    _backward_from(
        _outputs(tensors, grad_tensors, create_graph), retain_graph, create_graph, inputs
    )


def _backward_from(
    outputs: list[tuple[Node, Any]], retain_graph: bool | None, create_graph: bool, inputs: Any
) -> None:
    keep = create_graph if retain_graph is None else retain_graph
    # Arrays with other owners: rules may give several inputs one array, and seeds are the caller's.
    lent: set[int] = set()
    for _, seed in outputs:
        lent.add(id(seed))
    if inputs is None:
        run = recorded_sweep if create_graph else sweep
        arrived = run(outputs, keep=keep, give=_give)
        with _accumulating:
            for node in arrived:
                _accumulate(node.watch(), arrived[node], lent)  # no variable: `has_holders`
        return
    targets = _targets(inputs)
    found = _reach(outputs, targets, keep, create_graph)
    with _accumulating:
        for i, target in enumerate(targets):
            if target._node not in eager:
                _accumulate(target, found[i], lent)
    for target, g in zip(targets, found, strict=True):
        if g is not None and target._node in eager:
            target._node.deliver(g, _give)  # type: ignore[union-attr]


def _give(leaf: Node, g: Any) -> None:
    """Accumulate the gradient of a leaf with hooks, while the sweep goes on or after it."""
    # The sweep may still hold the array, so the gradient is a copy.
    if leaf.watch is not None:
        with _accumulating:
            _accumulate(leaf.watch(), g, {id(g)})


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    r"""Return the gradients of ``outputs`` with respect to ``inputs``; no ``.grad`` changes.

    Only what lies between the two on the tape is differentiated.

    Each gradient has its input's shape and dtype. Raises `RuntimeError` as `backward`, and if an
    input does not require grad or was not used.

    Parameters
    ----------
    outputs : Tensor or sequence of Tensor
        Results to differentiate; the gradients of several are summed.
    inputs : Tensor or sequence of Tensor
        Tensors that require grad, leaves or not.
    grad_outputs : Tensor or sequence of (Tensor or None), optional
        The cotangent of each result, as in `backward`.
    retain_graph, create_graph : bool, optional
        As in `backward`.
    allow_unused : bool, optional
        Whether an input that no output depends on gives None instead of an error. By default
        False, or the value of ``materialize_grads``.
    materialize_grads : bool
        Whether an input that no output depends on gives zeros.

    Examples
    --------
    >>> x = wg.tensor(2.0, requires_grad=True)
    >>> (g,) = wg.autograd.grad(x**3, x, create_graph=True)
    >>> g
    tensor(12., grad_fn=<MulBackward0>)
    >>> wg.autograd.grad(g, x)
    (tensor(12.),)
    """
    if allow_unused is None:
        allow_unused = materialize_grads
    elif materialize_grads and not allow_unused:
        raise ValueError(
            "materialize_grads=True gives zeros for unused inputs, so allow_unused can't be False"
        )
    targets = _targets(inputs)
    seeds = _outputs(outputs, grad_outputs, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    gradients: list[Tensor | None] = []
    for position, (target, g) in enumerate(
        zip(targets, _reach(seeds, targets, keep, create_graph), strict=True)
    ):
        if g is None:
            if not allow_unused:
                raise RuntimeError(
                    f"One of the differentiated Tensors (inputs[{position}], of shape "
                    f"{tuple(target.shape)}) appears to not have been used in the graph. Set "
                    "allow_unused=True if this is the desired behavior."
                )
            if materialize_grads:
                g = namespaces[type(target._array)].zeros_like(target._array)
        if g is None:
            gradients.append(None)
        elif isinstance(g, Tensor):  # a new Tensor: a rule may give two inputs the same one
            gradients.append(with_node(g._array, g._node))
        else:  # a sweep that is not recorded is constant in forward mode, too
            gradients.append(untracked(g.as_constant() if is_lifted(g) else g))
    return tuple(gradients)


def _list(tensors: Any, what: str) -> list[Tensor]:
    found = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    for tensor in found:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{what} should be Tensors, not {type(tensor).__name__}")
    return found


def _targets(inputs: Any) -> list[Tensor]:
    found = _list(inputs, "inputs")
    if not found:
        raise RuntimeError("inputs is empty: name at least one Tensor")
    for position, tensor in enumerate(found):
        if tensor._node is None:
            raise RuntimeError(
                f"One of the differentiated Tensors does not require grad: inputs[{position}], of "
                f"shape {tuple(tensor.shape)}"
            )
    return found


def _outputs(tensors: Any, gradients: Any, create_graph: bool) -> list[tuple[Node, Any]]:
    """Pair each result's node with its cotangent: a Tensor if the sweep is to be recorded."""
    results = _list(tensors, "outputs")
    given: list[Any] = [None] * len(results)
    if gradients is not None:
        given = [gradients] if isinstance(gradients, Tensor) else list(gradients)
    if len(given) != len(results):
        raise RuntimeError(f"got {len(results)} outputs and {len(given)} gradients for them")
    return [
        _output(tensor, g, create_graph, position)
        for position, (tensor, g) in enumerate(zip(results, given, strict=True))
    ]


def _output(tensor: Tensor, g: Any, create_graph: bool, position: int = 0) -> tuple[Node, Any]:
    array, node = tensor._array, tensor._node
    if node is None:
        raise RuntimeError(
            f"element {position} of tensors does not require grad and does not have a grad_fn. It "
            "was computed from no Tensor that requires grad, or where nothing is recorded: set "
            "requires_grad=True on the leaves before the computation, outside wg.no_grad and "
            "without x.detach()"
        )
    if g is None:
        if array.shape and tensor.size != 1:
            raise RuntimeError(
                "grad can be implicitly created only for scalar outputs, and this one has "
                f"shape {tuple(array.shape)}; pass gradient="
            )
        if dtype_of(array.dtype).complex:
            raise RuntimeError(
                "grad can be implicitly created only for real scalar outputs but got "
                f"{tensor.dtype.name}; differentiate its real part, or pass gradient="
            )
        seed = namespaces[type(array)].ones_like(array)
        return node, untracked(seed) if create_graph else seed
    if not isinstance(g, Tensor):
        raise TypeError(f"a gradient should be a Tensor or None, not {type(g).__name__}")
    check_cotangent(g, node)
    if namespaces[type(g._array)] is not namespaces[type(array)]:
        if g.backend is not tensor.backend:
            raise BackendError(
                f"the gradient is on {g.backend.name} and the output on {tensor.backend.name}; "
                f"move it with gradient.to_backend({tensor.backend.name!r})"
            )
        if not create_graph and is_lifted(array):  # like the rules' operands
            return node, array.constant(g._array)
    return node, g if create_graph else g._array


def _reach(
    outputs: list[tuple[Node, Any]], targets: list[Tensor], keep: bool, create_graph: bool
) -> list[Any]:
    """Return the cotangent of each target, or None where no output depends on it."""
    numbers = {target._node.number for target in targets}  # type: ignore[union-attr]
    wanted = leading_to(numbers, [node for node, _ in outputs])
    outputs = [(node, g) for node, g in outputs if node.number in wanted]
    run = recorded_sweep if create_graph else sweep
    arrived = run(outputs, keep=keep, targets=numbers, wanted=wanted)
    return [arrived.get(target._node) for target in targets]  # type: ignore[arg-type]


def _accumulate(tensor: Tensor | None, g: Any, lent: set[int]) -> None:
    """Add a cotangent to the ``.grad`` of a Tensor, in an array of its own.

    ``lent`` has the identities of arrays that others hold, too.
    """
    # The Tensor was collected, or frozen; or the input was not used.
    if tensor is None or tensor._node is None or g is None:
        return
    xp = namespaces[type(g)]
    held = tensor._grad
    if xp.records:
        # The tape holds the array, too.
        tensor._grad = xp.asarray(g, copy=True) if held is None else xp.add(held, g)
        return
    key = id(g)
    if xp.backend is None:  # lifted: a sweep that is not recorded is constant in forward mode, too
        g = g.as_constant()
    if held is None:
        if key in lent or xp.is_view(g) or has_holders(g):
            g = xp.asarray(g, copy=True)
        lent.add(key)
        tensor._grad = untracked(g)
    elif held._node is None:
        held._array = xp.add(held._array, g)
    else:
        tensor._grad = untracked(xp.add(held._array, g))


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Add this Tensor's gradients to the ``.grad`` of the leaves: `wengert.autograd.backward`."""
    _backward_from([_output(self, gradient, create_graph)], retain_graph, create_graph, inputs)


Tensor.backward = _backward  # type: ignore[method-assign]
