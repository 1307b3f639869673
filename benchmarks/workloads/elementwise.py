"""Elementwise chains, broadcasting, and reductions."""

import math
from typing import Any

import numpy as np

from benchmarks.workloads.workload import Array, Workload

__all__ = ["black_scholes", "broadcast_sums", "chain", "mixture"]


def black_scholes(n: int) -> Workload:
    """Prices of call options, and their sensitivities to all that they depend on."""
    random = np.random.default_rng(0)
    ranges = ((80, 120), (80, 120), (0.2, 2), (0.1, 0.5), (0.01, 0.05))
    inputs = tuple(random.uniform(low, high, n) for low, high in ranges)
    root = math.sqrt(0.5)

    def program(xp: Any) -> Any:
        def price(spot: Any, strike: Any, time: Any, volatility: Any, rate: Any) -> Any:
            spread = volatility * xp.sqrt(time)
            high = (xp.log(spot / strike) + (rate + 0.5 * volatility**2) * time) / spread
            inside = 0.5 * (1 + xp.erf(high * root))
            paid = 0.5 * (1 + xp.erf((high - spread) * root))
            return xp.sum(spot * inside - strike * xp.exp(-rate * time) * paid)

        return price

    def by_hand(spot: Array, strike: Array, time: Array, volatility: Array, rate: Array) -> Any:
        from scipy.special import ndtr

        after = np.sqrt(time)
        spread = volatility * after
        high = np.log(spot / strike)
        high += (rate + 0.5 * volatility * volatility) * time
        high /= spread
        delta, paid = ndtr(high), ndtr(high - spread)
        paid *= np.exp(-rate * time)
        high *= high
        high *= -0.5
        bell = np.exp(high, out=high)
        bell *= spot
        bell *= 1 / math.sqrt(2 * math.pi)
        due = strike * paid
        price = spot @ delta - due.sum()
        vega = bell * after
        rho = due * time
        bell *= volatility
        bell /= 2 * after
        due *= rate
        bell += due
        return price, (delta, np.negative(paid, out=paid), bell, vega, rho)

    return Workload(program, inputs, by_hand)


def chain(n: int) -> Workload:
    """Ten elementwise operations on a long vector."""
    x = np.random.default_rng(1).uniform(0.1, 2, n)

    def program(xp: Any) -> Any:
        def f(x: Any) -> Any:
            y = xp.sin(x) * xp.exp(-x) + 0.5 * x
            return xp.sum(xp.sqrt(y * y + 1) * y)

        return f

    def by_hand(x: Array) -> Any:
        sine, falling = np.sin(x), np.exp(-x)
        y = sine * falling
        y += 0.5 * x
        root = y * y
        root += 1
        np.sqrt(root, out=root)
        value = root @ y
        # d(root * y)/dy = root + y**2 / root
        y *= y
        y /= root
        y += root
        slope = np.cos(x)
        slope -= sine
        slope *= falling
        slope += 0.5
        slope *= y
        return value, (slope,)

    return Workload(program, (x,), by_hand)


def broadcast_sums(n: int) -> Workload:
    """A function of all pairs of two vectors' elements."""
    random = np.random.default_rng(2)
    inputs = random.standard_normal(n), random.standard_normal(n)

    def program(xp: Any) -> Any:
        def f(x: Any, y: Any) -> Any:
            return xp.sum(1 / (1 + (x[:, None] - y[None, :]) ** 2))

        return f

    def by_hand(x: Array, y: Array) -> Any:
        away = x[:, None] - y
        below = away * away
        below += 1
        np.divide(1, below, out=below)
        value = below.sum()
        below *= below
        below *= away
        below *= -2
        return value, (below.sum(axis=1), -below.sum(axis=0))

    return Workload(program, inputs, by_hand)


def mixture(points: int, components: int, dimensions: int) -> Workload:
    """The likelihood of a mixture of Gaussians with diagonal covariances."""
    random = np.random.default_rng(3)
    data = random.standard_normal((points, dimensions))
    shape = components, dimensions
    weights = random.standard_normal(components)
    inputs = weights, random.standard_normal(shape), 0.1 * random.standard_normal(shape)

    def program(xp: Any) -> Any:
        points = xp.asarray(data)[:, None, :]

        def loss(weights: Any, means: Any, log_scales: Any) -> Any:
            z = (points - means) * xp.exp(-log_scales)
            terms = weights - xp.sum(0.5 * z * z + log_scales, axis=-1)
            total = xp.logsumexp(terms, axis=-1) - xp.logsumexp(weights, axis=0)
            return -xp.mean(total)

        return loss

    def by_hand(weights: Array, means: Array, log_scales: Array) -> Any:
        narrow = np.exp(-log_scales)
        # One matrix for each dimension: NumPy is slow along a short last axis.
        parts = [(data[:, d : d + 1] - means[:, d]) * narrow[:, d] for d in range(dimensions)]
        terms = parts[0] * parts[0]
        for z in parts[1:]:
            terms += z * z
        terms *= -0.5
        terms += weights - log_scales.sum(axis=1)
        top = terms.argmax(axis=1)
        highest = terms[np.arange(points), top]
        terms -= highest[:, None]
        np.exp(terms, out=terms)
        total = terms @ np.ones(components)
        share = np.exp(weights - weights.max())
        norm = share.sum()
        value = -(np.log(total) + highest).mean() + math.log(norm) + weights.max()
        terms /= -points * total[:, None]
        by_weight = terms.sum(axis=0)
        by_mean, by_scale = np.empty(shape), np.empty(shape)
        for d, z in enumerate(parts):
            by_mean[:, d] = np.einsum("pc,pc->c", terms, z) * narrow[:, d]
            z *= z
            by_scale[:, d] = np.einsum("pc,pc->c", terms, z) - by_weight
        return value, (by_weight + share / norm, by_mean, by_scale)

    return Workload(program, inputs, by_hand)
