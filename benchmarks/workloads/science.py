"""Scientific computing: Gaussian processes, Fourier transforms, and bodies that attract."""

import math
from typing import Any

import numpy as np

from benchmarks.workloads.workload import Array, Workload

__all__ = ["curved", "field", "fourier", "gaussian_process", "n_body", "valley"]


def gaussian_process(n: int) -> Workload:
    """The negative logarithm of a Gaussian process's likelihood, by three parameters."""
    random = np.random.default_rng(0)
    places = np.sort(random.uniform(0, 10, n))
    seen = np.sin(places) + 0.1 * random.standard_normal(n)
    inputs = tuple(np.asarray(x) for x in (0.1, -0.2, -2.0))
    away = -0.5 * (places[:, None] - places) ** 2
    unit = np.eye(n)

    def program(xp: Any) -> Any:
        squares, y, eye = xp.asarray(away), xp.asarray(seen), xp.asarray(unit)

        def loss(log_length: Any, log_height: Any, log_noise: Any) -> Any:
            kernel = xp.exp(2 * log_height + squares * xp.exp(-2 * log_length))
            low = xp.linalg.cholesky(kernel + (xp.exp(2 * log_noise) + 1e-6) * eye)
            white = xp.linalg.solve_triangular(low, y[:, None], upper=False)
            return 0.5 * xp.sum(white * white) + xp.sum(xp.log(xp.linalg.diagonal(low)))

        return loss

    def by_hand(log_length: Array, log_height: Array, log_noise: Array) -> Any:
        from scipy.linalg import lapack

        narrow, noise = math.exp(-2 * log_length), math.exp(2 * log_noise)
        kernel = away * narrow
        kernel += 2 * log_height
        np.exp(kernel, out=kernel)
        full = kernel.copy()
        full.flat[:: n + 1] += noise + 1e-6
        # Of a symmetric matrix in C's order, Fortran's upper triangle is the lower one.
        low, _ = lapack.dpotrf(full.T, lower=1, overwrite_a=1, clean=0)
        weights, _ = lapack.dpotrs(low, seen, lower=1)
        value = 0.5 * (seen @ weights) + np.log(low.diagonal()).sum()
        # Half of inv(K) - w w': its products with the derivatives of K are the gradients. LAPACK
        # gives one triangle of the inverse, and the kernel is symmetric.
        inverse, _ = lapack.dpotri(low, lower=1, overwrite_c=1)
        inverse = inverse.T
        diagonal = inverse.diagonal().copy()
        trace = 0.5 * (diagonal.sum() - weights @ weights)
        upper = np.triu(inverse, 1)
        upper *= kernel
        turned = weights @ kernel @ weights
        by_height = 2 * upper.sum() + kernel.diagonal() @ diagonal - turned
        upper *= away
        kernel *= away
        by_length = -narrow * (2 * upper.sum() - weights @ kernel @ weights)
        return value, tuple(map(np.asarray, (by_length, by_height, 2 * noise * trace)))

    return Workload(program, inputs, by_hand)


def fourier(n: int, taps: int) -> Workload:
    """A long convolution by Fourier transforms."""
    random = np.random.default_rng(1)
    inputs = random.standard_normal(n), random.standard_normal(taps)
    total = n + taps

    def program(xp: Any) -> Any:
        def loss(x: Any, filtering: Any) -> Any:
            product = xp.fft.rfft(x, n=total) * xp.fft.rfft(filtering, n=total)
            y = xp.fft.irfft(product, n=total)
            return xp.mean(y * y)

        return loss

    def by_hand(x: Array, filtering: Array) -> Any:
        by_x, by_filter = np.fft.rfft(x, n=total), np.fft.rfft(filtering, n=total)
        y = np.fft.irfft(by_x * by_filter, n=total)
        loss = (y * y).mean()
        y *= 2 / total
        # The adjoint of a convolution is the correlation.
        g = np.fft.rfft(y)
        np.conj(by_filter, out=by_filter)
        by_filter *= g
        np.conj(by_x, out=by_x)
        by_x *= g
        return loss, (
            np.fft.irfft(by_filter, n=total)[:n],
            np.fft.irfft(by_x, n=total)[:taps],
        )

    # HIPS/autograd's derivative of a padded transform is wrong.
    return Workload(program, inputs, by_hand, without=("HIPS/autograd",))


def n_body(n: int, kind: Any = "gradient") -> Workload:
    """The energy of bodies that attract each other, softened where they are close."""
    positions = np.random.default_rng(2).standard_normal(3 * n)
    itself = 0.5 * n / math.sqrt(1e-2)

    def program(xp: Any) -> Any:
        def energy(x: Any) -> Any:
            place = xp.reshape(x, (n, 3))
            apart = place[:, None, :] - place[None, :, :]
            squares = xp.sum(apart * apart, axis=-1) + 1e-2
            return itself - 0.5 * xp.sum(1 / xp.sqrt(squares))

        return energy

    def by_hand(x: Array) -> Any:
        place = x.reshape(n, 3)
        apart = [place[:, d : d + 1] - place[:, d] for d in range(3)]
        squares = apart[0] * apart[0]
        squares += apart[1] * apart[1]
        squares += apart[2] * apart[2]
        squares += 1e-2
        inverse = 1 / np.sqrt(squares)
        value = itself - 0.5 * inverse.sum()
        inverse /= squares
        gradient = np.stack([(inverse * part).sum(axis=1) for part in apart], axis=1)
        return value, (gradient.reshape(-1),)

    return Workload(program, (positions,), by_hand if kind == "gradient" else None, kind)


def valley(n: int, kind: Any) -> Workload:
    """Rosenbrock's function of many variables."""
    x = np.random.default_rng(3).standard_normal(n)

    def program(xp: Any) -> Any:
        def f(x: Any) -> Any:
            return xp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

        return f

    def hessian(x: Array) -> Array:
        out = np.zeros((n, n))
        below = out.reshape(-1)
        below[1 :: n + 1] = below[n :: n + 1] = -400 * x[:-1]
        diagonal = below[:: n + 1]
        diagonal[:-1] = 1200 * x[:-1] ** 2 - 400 * x[1:] + 2
        diagonal[1:] += 200
        return out

    def hvp(x: Array) -> Any:
        # With a vector of ones: the sums of the rows of the Hessian.
        left = x[:-1]
        product = np.empty(n)
        np.multiply(left, left, out=product[:-1])
        product[:-1] *= 1200
        product[:-1] -= 400 * x[1:]
        product[0] += 2
        product[1:-1] += 202
        product[-1] = 200
        left = 400 * left
        product[:-1] -= left
        product[1:] -= left
        return (product,)

    return Workload(program, (x,), {"hessian": hessian, "hvp": hvp}.get(kind), kind)


def curved(n: int, m: int) -> Workload:
    """The Jacobian of residuals of a curve: many results of few parameters."""
    random = np.random.default_rng(4)
    places, seen = np.linspace(-3, 3, m), random.standard_normal(m)
    p = random.uniform(0.5, 1.5, 3 * n)

    def program(xp: Any) -> Any:
        x, y = xp.asarray(places), xp.asarray(seen)

        def residuals(p: Any) -> Any:
            total = -y
            for k in range(0, 3 * n, 3):
                total = total + p[k] * xp.exp(-(((x - p[k + 1]) / p[k + 2]) ** 2))
            return total

        return residuals

    def by_hand(p: Array) -> Array:
        out = np.empty((m, 3 * n))
        for k in range(0, 3 * n, 3):
            z = (places - p[k + 1]) / p[k + 2]
            high = np.exp(-z * z)
            out[:, k] = high
            high *= z
            high *= 2 * p[k] / p[k + 2]
            out[:, k + 1] = high
            high *= z
            out[:, k + 2] = high
        return out

    return Workload(program, (p,), by_hand, kind="jacobian")


def field(n: int) -> Workload:
    """The Jacobian of a field: as many results as variables."""
    random = np.random.default_rng(5)
    matrix, x = random.standard_normal((n, n)) / n**0.5, random.standard_normal(n)

    def program(xp: Any) -> Any:
        m = xp.asarray(matrix)

        def f(x: Any) -> Any:
            return xp.tanh(m @ xp.sin(x)) * x

        return f

    def by_hand(x: Array) -> Array:
        bent = np.tanh(matrix @ np.sin(x))
        out = matrix * np.cos(x)
        out *= ((1 - bent * bent) * x)[:, None]
        out.reshape(-1)[:: n + 1] += bent
        return out

    return Workload(program, (x,), by_hand, kind="jacobian")
