"""Fits, statistics and interpolation."""

from typing import Any


def design(n: Any, p: Any) -> Any:
    """Least squares of a matrix made by c_, with weights."""
    t = n.arange(10) / 5
    a = n.c_[n.ones(10), n.exp(-p[0] * t), t]
    b = n.r_[p[1], n.cos(t[1:])]
    coef, *_ = n.linalg.lstsq(a * n.sqrt(1 + t)[:, None], b * n.sqrt(1 + t), rcond=None)
    return coef @ coef


def mixture(n: Any, p: Any) -> Any:
    """The likelihood of a mixture, stable by its maximum, with a loop over parts."""
    data = n.array([-1.2, -0.7, 0.1, 0.9, 1.4])
    logs = n.empty((2, len(data)))
    for k in range(2):
        logs[k] = -0.5 * ((data - p[k]) / p[2]) ** 2 - n.log(p[2])
    top = logs.max(axis=0)
    return -(top + n.log(n.exp(logs - top).sum(axis=0))).mean()


def spectrum(n: Any, p: Any) -> Any:
    """Pieces of a spectrum, interpolated, clipped, and counted with weights."""
    e = n.linspace(0.1, 3, 20)
    flux = n.piecewise(e, [e < 1], [lambda u: p[0] * u, lambda u: p[0] * u ** (-p[1])])
    fine = n.interp(n.linspace(0.2, 2.9, 33), e, flux)
    counts, edges = n.histogram(n.linspace(0.2, 2.9, 33), bins=5, range=(0, 3), weights=fine)
    return (counts * n.diff(edges)).max() + n.clip(fine, 0.1, 0.6).var()


def robust(n: Any, p: Any) -> Any:
    """Medians with NaNs, and sorted residuals."""
    x = n.array([1.0, 3.0, 2.0, 4.0, 8.0])
    away = n.abs(p[0] * x - p[1])
    away[1] = n.nan
    centre = n.nanmedian(away)
    kept = away[~n.isnan(away)]
    kept.sort()
    return centre + n.sum(kept[:3] ** 2) + n.nanquantile(away, 0.9)
