"""``scipy.spatial.distance``: distances of all pairs of points."""

from typing import Any

import wengert as wg
from wengert.scipy.naming import inexact, publish
from wengert.tape.tensor import Tensor

_METRICS = {
    "cityblock": lambda off: wg.sum(wg.abs(off), axis=-1),
    "euclidean": lambda off: wg.linalg.vector_norm(off, axis=-1),
    "sqeuclidean": lambda off: wg.sum(off * off, axis=-1),
}


def cdist(XA: Any, XB: Any, metric: str = "euclidean") -> Tensor:
    """Distances; that of equal points has the derivative 0."""
    x, y = inexact(XA, XB)
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise ValueError("cdist: points are rows, of as many columns")
    if metric not in _METRICS:
        raise NotImplementedError(f"cdist: of Tensors metric= is one of {[*_METRICS]}")
    return _METRICS[metric](x[:, None, :] - y)


publish(globals(), {})
