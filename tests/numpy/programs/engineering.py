"""Robotics, optics, circuits and signals."""

from typing import Any


def arm(n: Any, p: Any) -> Any:
    """A planar arm of three links by homogeneous matrices that are filled."""

    def link(angle: Any, length: float) -> Any:
        m = n.eye(3)
        m[0, 0] = m[1, 1] = n.cos(angle)
        m[0, 1], m[1, 0] = -n.sin(angle), n.sin(angle)
        return m @ n.array([[1, 0, length], [0, 1, 0], [0, 0, 1.0]])

    pose = n.identity(3)
    for angle, length in zip(p, (1.0, 0.7, 0.3), strict=True):
        pose = pose.dot(link(angle, length))
    target = n.array([0.8, 0.9])
    return n.linalg.norm(pose[:2, 2] - target)


def rotation(n: Any, p: Any) -> Any:
    """Rodrigues' formula, with a matrix of cross products."""
    theta = n.linalg.norm(p)
    k = p / theta
    cross = n.zeros((3, 3))
    cross[0, 1], cross[0, 2], cross[1, 2] = -k[2], k[1], -k[0]
    cross -= cross.T.copy()
    r = n.eye(3) + n.sin(theta) * cross + (1 - n.cos(theta)) * cross @ cross
    points = n.array([[1.0, 0, 0], [0, 2.0, 1.0]])
    return n.sum((points @ r.T) ** 3) + n.trace(r)


def kalman(n: Any, p: Any) -> Any:
    """The likelihood of measurements under a filter, with solve and slogdet."""
    x, cov = n.zeros(2), n.eye(2)
    a, h = n.array([[1.0, 0.1], [0.0, 1.0]]), n.array([[1.0, 0.0]])
    q, r = n.diag([p[0], p[0] ** 2]), n.array([[p[1]]])
    total = 0
    for z in (0.1, 0.25, 0.2, 0.5):
        x, cov = a @ x, a @ cov @ a.T + q
        s = h @ cov @ h.T + r
        gain = n.linalg.solve(s, h @ cov).T
        away = z - h @ x
        total += n.linalg.slogdet(s)[1] + away @ n.linalg.inv(s) @ away
        x = x + gain @ away
        cov = (n.eye(2) - gain @ h) @ cov
    return total


def grating(n: Any, p: Any) -> Any:
    """The far field of slits by a Fourier transform, and its width."""
    x = n.linspace(-4, 4, 64)
    aperture = n.exp(-((n.abs(x) - p[0]) ** 2) / p[1] ** 2)
    field = n.fft.fftshift(n.fft.fft(aperture))
    power = n.real(field * n.conj(field))  # a modulus has no second derivative where it is 0
    power /= power.sum()
    k = n.arange(64) - 32
    return n.sqrt(n.sum(power * k**2))


def filtering(n: Any, p: Any) -> Any:
    """A recursive filter, sample by sample, and its unwrapped phase."""
    t = n.arange(32)
    x = n.where(t % 8 < 4, 1.0, -1.0)
    y = n.empty(32)
    y[0] = x[0] * p[0]
    for k in range(1, len(y)):
        y[k] = p[0] * x[k] + (1 - p[0]) * y[k - 1] * p[1]
    return n.convolve(y, [0.25, 0.5, 0.25], mode="valid").max() + n.median(n.diff(y) ** 2)


def circuit(n: Any, p: Any) -> Any:
    """Nodal analysis: conductances are added up in a matrix."""
    g = n.zeros((3, 3))
    for (a, b), ohms in zip([(0, 1), (1, 2), (0, 2)], p, strict=True):
        g[a, a] += 1 / ohms
        g[b, b] += 1 / ohms
        g[a, b] -= 1 / ohms
        g[b, a] -= 1 / ohms
    g[2, 2] += 1.0
    volts = n.linalg.solve(g, n.array([1.0, 0.0, 0.0]))
    return volts[0] - volts[1] ** 2
