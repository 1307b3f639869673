"""Simulations: loops in time, whose states are stored in arrays that are filled."""

from typing import Any


def pendulum(n: Any, p: Any) -> Any:
    """A double loop in place: semi-implicit Euler, states in an array."""
    state = n.zeros((40, 2))
    state[0] = [p[0], 0.0]
    dt = 0.05
    for k in range(39):
        omega = state[k, 1] - dt * p[1] * n.sin(state[k, 0])
        state[k + 1, 1] = omega
        state[k + 1, 0] = state[k, 0] + dt * omega
    return n.sum(state[:, 0] ** 2) + state[-1, 1]


def bodies(n: Any, p: Any) -> Any:
    """Three bodies by Verlet's steps, positions and speeds changed in place."""
    pos = n.array([[0.0, 0.0], [1.0, p[0]], [-1.0, 0.5]])
    vel = n.array([[0.0, p[1]], [0.0, 0.6], [0.1, -0.7]])
    mass = n.array([1.0, p[2], 0.5])

    def force(pos: Any) -> Any:
        acc = n.zeros_like(pos)
        for i in range(3):
            for j in range(3):
                if i != j:
                    r = pos[j] - pos[i]
                    acc[i] += mass[j] * r / (n.dot(r, r) + 0.1) ** 1.5
        return acc

    acc = force(pos)
    for _ in range(12):
        vel += 0.5 * 0.05 * acc
        pos += 0.05 * vel
        acc = force(pos)
        vel += 0.5 * 0.05 * acc
    energy = 0.5 * (mass * (vel**2).sum(axis=1)).sum()
    return energy + n.linalg.norm(pos[0] - pos[2])


def heat(n: Any, p: Any) -> Any:
    """Explicit differences with the whole history kept, and boundary values."""
    u = n.zeros((30, 16))
    u[0] = p[0] * n.exp(-((n.linspace(-1, 1, 16) - p[1]) ** 2) * 8)
    for k in range(29):
        u[k + 1, 1:-1] = u[k, 1:-1] + 0.3 * (u[k, 2:] - 2 * u[k, 1:-1] + u[k, :-2])
        u[k + 1, 0] = u[k + 1, -1] = 0
    return (u[-1] ** 2).sum() + u[:, 8].mean()


def epidemic(n: Any, p: Any) -> Any:
    """Susceptible, infected, recovered: lists that grow, and an array of them."""
    s, i, r = 0.99, 0.01, 0.0
    days = []
    for _ in range(25):
        new, healed = p[0] * s * i, p[1] * i
        s -= new
        i += new - healed
        r += healed
        days.append([s, i, r])
    days = n.array(days)
    return days[:, 1].max() + n.trapezoid(days[:, 2]) / 25
