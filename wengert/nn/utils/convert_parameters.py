"""All parameters as one vector, and back."""

from collections.abc import Iterable

from wengert import ops
from wengert.nn.parameter import list_tensors
from wengert.tape.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return all elements of several Tensors in a row, differentiable in them.

    Examples
    --------
    >>> model = wg.nn.Linear(3, 2)
    >>> wg.nn.utils.parameters_to_vector(model.parameters()).shape
    (8,)
    """
    held = list_tensors("parameters_to_vector", parameters)
    return ops.concat([ops.reshape(tensor, (tensor.size,)) for tensor in held])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give parameters the values of a vector; they stay leaves, and no gradient flows to it.

    Raises `TypeError` for what is no Tensor, and `ValueError` for another number of elements.

    Examples
    --------
    >>> model = wg.nn.Linear(2, 1)
    >>> wg.nn.utils.vector_to_parameters(wg.asarray([1.0, 2.0, 3.0]), model.parameters())
    >>> model.bias
    parameter([3.], requires_grad=True)
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected a Tensor, but got {type(vec).__name__}")
    held = list_tensors("vector_to_parameters", parameters)
    total = sum(tensor.size for tensor in held)
    if vec.shape != (total,):
        raise ValueError(
            f"the parameters have {total} elements, and the vector has shape {tuple(vec.shape)}"
        )
    values, start = vec.detach(), 0
    for tensor in held:
        piece = values[start : start + tensor.size]
        tensor._array = ops.astype(ops.reshape(piece, tensor.shape), tensor.dtype)._array
        start += tensor.size
