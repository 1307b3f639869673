"""Dropout as layers; each is the function of its name, which has the formula."""

from wengert.nn import functional as F
from wengert.nn.define import Single, stores
from wengert.nn.functional.dropout import probability


class _Dropout(Single):
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None: ...

    def _check(self) -> None:
        probability(type(self).__name__, self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


@stores(F.dropout)
class Dropout(_Dropout):
    """Set random elements to zero and scale the others, so that the mean stays.

    `functional.dropout` as a module. PyTorch: ``torch.nn.Dropout``.

    Examples
    --------
    >>> layer = wg.nn.Dropout(0.5)
    >>> wg.unique_values(layer(wg.ones(1000)))
    tensor([0., 2.])
    >>> layer.eval()(wg.ones(3))
    tensor([1., 1., 1.])
    """


@stores(F.dropout1d)
class Dropout1d(_Dropout):
    """Set random channels of sequences to zero and scale the others.

    `functional.dropout1d` as a module. PyTorch: ``torch.nn.Dropout1d``.

    Examples
    --------
    >>> wg.nn.Dropout1d(0.5)(wg.ones((4, 8, 10))).shape
    (4, 8, 10)
    """


@stores(F.dropout2d)
class Dropout2d(_Dropout):
    """Set random channels of images to zero and scale the others.

    `functional.dropout2d` as a module. PyTorch: ``torch.nn.Dropout2d``.

    Examples
    --------
    >>> wg.nn.Dropout2d(0.5)(wg.ones((4, 8, 5, 5))).shape
    (4, 8, 5, 5)
    """


@stores(F.alpha_dropout)
class AlphaDropout(_Dropout):
    """Set random elements to the lowest value of `selu`, so that mean 0 and variance 1 stay.

    `functional.alpha_dropout` as a module. PyTorch: ``torch.nn.AlphaDropout``.

    Examples
    --------
    >>> layer = wg.nn.AlphaDropout(0.5)
    >>> layer.eval()(wg.ones(3))
    tensor([1., 1., 1.])
    """
