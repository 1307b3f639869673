"""Long loops: an ordinary differential equation, a partial one, and a recurrent network."""

from typing import Any

import numpy as np

from benchmarks.workloads.workload import Array, Workload, looping

__all__ = ["heat", "lstm", "neural_ode"]


def neural_ode(steps: int) -> Workload:
    """A small network integrated by the Runge-Kutta method of order four."""
    random = np.random.default_rng(0)
    start = random.standard_normal((16, 4))
    inputs = 0.3 * random.standard_normal((4, 16)), 0.3 * random.standard_normal((16, 4))
    h = 0.05

    def program(xp: Any) -> Any:
        loop = looping(xp)
        first = xp.asarray(start)

        def loss(into: Any, out: Any) -> Any:
            def slope(y: Any) -> Any:
                return xp.tanh(y @ into) @ out

            def step(y: Any, t: Any) -> Any:
                k1 = slope(y)
                k2 = slope(y + 0.5 * h * k1)
                k3 = slope(y + 0.5 * h * k2)
                k4 = slope(y + h * k3)
                return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

            return xp.mean(loop(step, first, steps) ** 2)

        return loss

    def by_hand(into: Array, out: Array) -> Any:
        y, kept = start, []
        for _ in range(steps):
            total, z, stages = 0, y, []
            for weight, forth in ((1, 0.5 * h), (2, 0.5 * h), (2, h), (1, 0)):
                hidden = np.tanh(z @ into)
                stages.append((z, hidden))
                k = hidden @ out
                total = total + weight * k
                z = y + forth * k
            kept.append(stages)
            y = y + h / 6 * total
        by_into, by_out = np.zeros_like(into), np.zeros_like(out)
        g = 2 / y.size * y
        for stages in reversed(kept):
            part = h / 6 * g
            by_k = part
            for (z, hidden), back in zip(
                reversed(stages), ((2, h), (2, 0.5 * h), (1, 0.5 * h), None), strict=True
            ):
                by_out += hidden.T @ by_k
                inner = (1 - hidden * hidden) * (by_k @ out.T)
                by_into += z.T @ inner
                by_z = inner @ into.T
                g = g + by_z
                if back is not None:
                    by_k = back[0] * part + back[1] * by_z
        return (y * y).mean(), (by_into, by_out)

    return Workload(program, inputs, by_hand)


def heat(steps: int, n: int = 256) -> Workload:
    """The heat equation with a conductivity in each cell, stepped by slices."""
    random = np.random.default_rng(1)
    inputs = random.uniform(size=n), random.uniform(0.1, 0.4, n - 1)

    def program(xp: Any) -> Any:
        loop = looping(xp)

        def loss(u: Any, conductivity: Any) -> Any:
            def step(u: Any, t: Any) -> Any:
                flow = conductivity * (u[1:] - u[:-1])
                inner = u[1:-1] + flow[1:] - flow[:-1]
                return xp.concat([u[:1], inner, u[-1:]])

            u = loop(step, u, steps)
            return xp.sum(u * u)

        return loss

    def by_hand(u: Array, conductivity: Array) -> Any:
        differences = np.empty((steps, n - 1))
        u = u.copy()
        for difference in differences:
            np.subtract(u[1:], u[:-1], out=difference)
            flow = conductivity * difference
            u[1:-1] += flow[1:]
            u[1:-1] -= flow[:-1]
        value = u @ u
        g, by_conductivity = 2 * u, np.zeros(n - 1)
        for difference in differences[::-1]:
            # The edges keep their values, so that no flow goes into them.
            by_flow = np.empty(n - 1)
            np.subtract(g[1:-2], g[2:-1], out=by_flow[1:-1])
            by_flow[0], by_flow[-1] = -g[1], g[-2]
            by_conductivity += by_flow * difference
            by_flow *= conductivity
            g[1:] += by_flow
            g[:-1] -= by_flow
        return value, (g, by_conductivity)

    return Workload(program, inputs, by_hand)


def lstm(steps: int, batch: int = 16, wide: int = 8, hidden: int = 32) -> Workload:
    """A long short-term memory whose gates are slices of one product, ``z[t]`` its inputs."""
    random = np.random.default_rng(2)
    shapes = (steps, batch, wide), (wide, 4 * hidden), (hidden, 4 * hidden), (4 * hidden,)
    inputs = tuple(
        scale * random.standard_normal(shape)
        for scale, shape in zip((1, 0.3, 0.2, 0.1), shapes, strict=True)
    )

    def program(xp: Any) -> Any:
        loop = looping(xp)
        nothing = xp.asarray(np.zeros((batch, hidden)))

        def loss(x: Any, into: Any, across: Any, bias: Any) -> Any:
            z = x @ into + bias

            def step(carried: Any, t: Any) -> Any:
                state, memory = carried
                gates = z[t] + state @ across
                i = xp.expit(gates[:, :hidden])
                f = xp.expit(gates[:, hidden : 2 * hidden])
                o = xp.expit(gates[:, 2 * hidden : 3 * hidden])
                memory = f * memory + i * xp.tanh(gates[:, 3 * hidden :])
                return o * xp.tanh(memory), memory

            state, _ = loop(step, (nothing, nothing), steps)
            return xp.mean(state**2)

        return loss

    def by_hand(x: Array, into: Array, across: Array, bias: Array) -> Any:
        z = x @ into
        z += bias
        state = memory = np.zeros((batch, hidden))
        kept = []
        for t in range(steps):
            gates = z[t]
            gates += state @ across
            # The logistic function by tanh, for all three gates at once.
            opened = gates[:, : 3 * hidden]
            opened *= 0.5
            np.tanh(gates, out=gates)
            opened *= 0.5
            opened += 0.5
            i, f, o, c = np.split(gates, 4, axis=1)
            before, memory = memory, f * memory + i * c
            bent = np.tanh(memory)
            kept.append((state, before, bent, i, f, o, c))
            state = o * bent
        g, by_memory = 2 / state.size * state, 0
        by_across, by_z = np.zeros_like(across), np.empty_like(z)
        for t in range(steps - 1, -1, -1):
            before_state, before, bent, i, f, o, c = kept[t]
            by_memory = by_memory + g * o * (1 - bent * bent)
            by_gates = by_z[t]
            by_gates[:, :hidden] = by_memory * c * i * (1 - i)
            by_gates[:, hidden : 2 * hidden] = by_memory * before * f * (1 - f)
            by_gates[:, 2 * hidden : 3 * hidden] = g * bent * o * (1 - o)
            by_gates[:, 3 * hidden :] = by_memory * i * (1 - c * c)
            by_memory = by_memory * f
            by_across += before_state.T @ by_gates
            g = by_gates @ across.T
        rows = by_z.reshape(-1, 4 * hidden)
        by_into = x.reshape(-1, wide).T @ rows
        return (state * state).mean(), (by_z @ into.T, by_into, by_across, rows.sum(axis=0))

    return Workload(program, inputs, by_hand)
