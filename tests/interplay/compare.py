"""One function on NumPy's arrays and on Tensors: the same values, and the derivatives they have."""

import re

import array_api_compat.numpy as numpy_namespace
import numpy as np

import wengert as wg
from wengert.testing.differences import derivative, to_reals


def listed(result):
    """The arrays in what a function returned."""
    return list(result) if isinstance(result, tuple | list) else [result]


def namespace(x):
    """The namespace of the standard that an array's functions are in."""
    return wg if isinstance(x, wg.Tensor) else numpy_namespace


def beside(x, values):
    """Values as an array of the library that ``x`` is of."""
    return wg.asarray(values) if isinstance(x, wg.Tensor) else np.asarray(values)


def call_of(line, scope):
    """The function that an expression is of arrays of a scope, and these."""
    names = sorted({*re.findall(r"\b[A-Z]+\b", line)})
    names = [n for n in names if getattr(scope.get(n), "dtype", np.dtype(bool)).kind in "fc"]

    def call(*values):
        return eval(line, scope | dict(zip(names, values, strict=True)))

    return call, *(scope[name] for name in names)


def compare(function, *inputs, rtol=1e-12, steps=2.0**-8, complete=True):
    """Check a function that takes arrays of any library, on Tensors of the selected backend.

    Its values on Tensors are those on NumPy's arrays; and the gradient of a random combination of
    its results, along random directions, is what differences of its values on NumPy's arrays say.
    """
    rng = np.random.default_rng(0)
    backend = wg.get_backend()
    expected = [np.asarray(part) for part in listed(function(*inputs))]
    tensors = [wg.asarray(x, requires_grad=x.dtype.kind in "fc") for x in inputs]
    results = listed(function(*tensors))
    assert len(results) == len(expected)
    weights = []
    for result, values in zip(results, expected, strict=True):
        assert isinstance(result, wg.Tensor), type(result)
        assert result.backend is backend
        assert tuple(result.shape) == values.shape
        assert result.dtype.name == values.dtype.name
        scale = np.abs(values[np.isfinite(values)]).max(initial=1)
        np.testing.assert_allclose(result.detach().numpy(), values, rtol=rtol, atol=rtol * scale)
        weight = rng.normal(size=values.shape)
        if values.dtype.kind == "c":
            weight = weight + 1j * rng.normal(size=values.shape)
        weights.append(weight)
    tracked = [result.requires_grad for result in results]
    assert any(tracked)
    assert all(tracked) or not complete
    chosen = [i for i, yes in enumerate(tracked) if yes]
    leaves = [x for x in tensors if x.requires_grad]
    gradients = wg.autograd.grad(
        [results[i] for i in chosen],
        leaves,
        [wg.asarray(weights[i], dtype=results[i].dtype) for i in chosen],
        allow_unused=True,
    )
    for _ in range(2):
        moves = [
            rng.normal(size=x.shape) + (1j * rng.normal(size=x.shape) if x.dtype.complex else 0)
            for x in leaves
        ]
        ours = sum(
            np.sum(np.conj(g.numpy()) * move).real
            for g, move in zip(gradients, moves, strict=True)
            if g is not None
        )

        def along(t, moves=moves):
            remaining = iter(moves)
            moved = [
                x + t * next(remaining) if tensor.requires_grad else x
                for x, tensor in zip(inputs, tensors, strict=True)
            ]
            parts = listed(function(*moved))
            total = sum(np.sum(np.conj(weights[i]) * np.asarray(parts[i])).real for i in chosen)
            return to_reals(np.asarray(total).reshape(1))

        def close(estimate, ours=ours):
            return abs(estimate.value[0] - ours) <= 1e-7 * (1 + abs(ours))

        estimate = derivative(along, steps, close)
        np.testing.assert_allclose(ours, estimate.value[0], rtol=1e-6, atol=1e-7)
