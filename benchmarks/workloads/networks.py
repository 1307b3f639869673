"""Networks: attention, convolutions, an autoencoder, and inference."""

from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.workloads.workload import Array, Workload

__all__ = ["attention", "autoencoder", "convolution", "inference"]


def attention(batch: int, length: int, wide: int) -> Workload:
    """One head of attention with its three projections."""
    random = np.random.default_rng(0)
    x = random.standard_normal((batch, length, wide), dtype=np.float32)
    weights = random.standard_normal((3, wide, wide), dtype=np.float32) / np.float32(wide**0.5)
    scale = wide**-0.5

    def program(xp: Any) -> Any:
        def loss(x: Any, by_query: Any, by_key: Any, by_value: Any) -> Any:
            scores = (x @ by_query) @ xp.permute_dims(x @ by_key, (0, 2, 1))
            out = xp.softmax(scores * scale, axis=-1) @ (x @ by_value)
            return xp.mean(out * out)

        return loss

    def by_hand(x: Array, by_query: Array, by_key: Array, by_value: Array) -> Any:
        rows = x.reshape(-1, wide)
        query, key, value = ((rows @ w).reshape(x.shape) for w in (by_query, by_key, by_value))
        share = query @ key.mT
        share *= scale
        share -= share.max(axis=-1, keepdims=True)
        np.exp(share, out=share)
        share /= share.sum(axis=-1, keepdims=True)
        out = share @ value
        loss = (out * out).mean()
        out *= 2 / out.size
        slopes = [share.mT @ out]
        g = out @ value.mT
        g -= (g * share).sum(axis=-1, keepdims=True)
        g *= share
        g *= scale
        slopes = [g @ key, g.mT @ query, *slopes]
        by_x = 0
        gradients = []
        for slope, weight in zip(slopes, (by_query, by_key, by_value), strict=True):
            flat = slope.reshape(-1, wide)
            gradients.append(rows.T @ flat)
            by_x = by_x + flat @ weight.T
        return loss, (by_x.reshape(x.shape), *gradients)

    return Workload(program, (x, *weights), by_hand)


def convolution(batch: int, size: int, channels: int) -> Workload:
    """A 3×3 convolution with a rectifier, as nine products of shifted images."""
    random = np.random.default_rng(1)
    x = random.standard_normal((batch, size, size, channels), dtype=np.float32)
    weight = random.standard_normal((3, 3, channels, channels), dtype=np.float32)
    weight /= np.float32(3 * channels**0.5)
    wide = size - 2
    places = [(i, j) for i in range(3) for j in range(3)]

    def program(xp: Any) -> Any:
        def loss(x: Any, weight: Any) -> Any:
            total = 0
            for i, j in places:
                total = total + x[:, i : i + wide, j : j + wide, :] @ weight[i, j]
            out = xp.relu(total)
            return xp.mean(out * out)

        return loss

    def by_hand(x: Array, weight: Array) -> Any:
        columns = [x[:, i : i + wide, j : j + wide, :].reshape(-1, channels) for i, j in places]
        out = columns[0] @ weight[0, 0]
        for (i, j), column in zip(places[1:], columns[1:], strict=True):
            out += column @ weight[i, j]
        np.maximum(out, 0, out=out)
        loss = (out * out).mean()
        # The rectifier's slope is in it: zero where the result is.
        out *= 2 / out.size
        by_x, by_weight = np.zeros_like(x), np.empty_like(weight)
        for (i, j), column in zip(places, columns, strict=True):
            by_weight[i, j] = column.T @ out
            part = (out @ weight[i, j].T).reshape(batch, wide, wide, channels)
            by_x[:, i : i + wide, j : j + wide, :] += part
        return loss, (by_x, by_weight)

    return Workload(program, (x, weight), by_hand)


def _layers(widths: tuple[int, ...], random: np.random.Generator) -> list[Array]:
    """Weights and biases, in turns."""
    layers = []
    for wide, narrow in pairwise(widths):
        weight = random.standard_normal((wide, narrow), dtype=np.float32)
        bias = 0.1 * random.standard_normal(narrow, dtype=np.float32)
        layers += [weight / np.float32(wide**0.5), bias]
    return layers


def autoencoder(batch: int, widths: tuple[int, ...]) -> Workload:
    """The squared error of a network that gives its input back."""
    random = np.random.default_rng(2)
    data = random.uniform(size=(batch, widths[0])).astype(np.float32)
    inputs = tuple(_layers(widths, random))

    def program(xp: Any) -> Any:
        given = xp.asarray(data)

        def loss(*layers: Any) -> Any:
            x = given
            for weight, bias in zip(layers[:-2:2], layers[1:-2:2], strict=True):
                x = xp.relu(x @ weight + bias)
            x = xp.expit(x @ layers[-2] + layers[-1])
            return xp.mean((x - given) ** 2)

        return loss

    def by_hand(*layers: Array) -> Any:
        x, before = data, []
        for k in range(0, len(layers), 2):
            before.append(x)
            x = x @ layers[k]
            x += layers[k + 1]
            if k + 2 < len(layers):
                np.maximum(x, 0, out=x)
        # The logistic function, by the hyperbolic tangent.
        x *= 0.5
        np.tanh(x, out=x)
        x += 1
        x *= 0.5
        wrong = x - data
        loss = (wrong * wrong).mean()
        wrong *= 2 / wrong.size
        wrong *= x
        wrong *= np.subtract(1, x, out=x)
        gradients = []
        for k in range(len(layers) - 2, -1, -2):
            x = before[k // 2]
            gradients += [wrong.sum(axis=0), x.T @ wrong]
            if k:
                wrong = wrong @ layers[k].T
                wrong *= x > 0
        return loss, tuple(reversed(gradients))

    return Workload(program, inputs, by_hand)


def inference(batch: int, widths: tuple[int, ...] = (64, 128, 64, 10)) -> Workload:
    """Probabilities by a trained network, without derivatives."""
    random = np.random.default_rng(3)
    data = random.standard_normal((batch, widths[0]), dtype=np.float32)
    layers = _layers(widths, random)

    def program(xp: Any) -> Any:
        parameters = [xp.asarray(layer) for layer in layers]

        def probabilities(x: Any) -> Any:
            for k in range(0, len(parameters) - 2, 2):
                x = xp.relu(x @ parameters[k] + parameters[k + 1])
            return xp.softmax(x @ parameters[-2] + parameters[-1], axis=-1)

        return probabilities

    def by_hand(x: Array) -> Any:
        for k in range(0, len(layers), 2):
            x = x @ layers[k]
            x += layers[k + 1]
            if k + 2 < len(layers):
                np.maximum(x, 0, out=x)
        x -= x.max(axis=-1, keepdims=True)
        np.exp(x, out=x)
        x /= x.sum(axis=-1, keepdims=True)
        return x

    return Workload(program, (data,), by_hand, kind="value")
