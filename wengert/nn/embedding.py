"""Tables of vectors that are learnt."""

from operator import index
from typing import Any, Self

from wengert import ops
from wengert.nn import functional as F
from wengert.nn import init
from wengert.nn.functional.embedding import as_padding
from wengert.nn.module import Module
from wengert.nn.parameter import Parameter
from wengert.ops.hints import Refusing
from wengert.tape.grad_mode import no_grad
from wengert.tape.tensor import Tensor, wrap


class Embedding(Refusing, Module):
    """`functional.embedding` with a table that is learnt.

    ``weight`` is the table, which starts standard normal, and with zeros in the row of padding.

    Examples
    --------
    >>> layer = wg.nn.Embedding(10, 4)
    >>> layer(wg.asarray([[1, 2, 2], [0, 9, 1]])).shape
    (2, 3, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,  # in PyTorch's place of these there are four options
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        shape = (index(num_embeddings), index(embedding_dim))
        self._set(shape, padding_idx)
        self.weight = Parameter(ops.empty(shape, device=device, dtype=dtype))
        self.reset_parameters()

    def _set(self, shape: tuple[int, ...], padding_idx: int | None) -> None:
        self.num_embeddings, self.embedding_dim = shape
        self.padding_idx = as_padding(padding_idx, shape[0])

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None
    ) -> Self:
        """Make a layer of a table, a Tensor or array of shape (V, D), which is not copied."""
        table = wrap(embeddings)
        if table.ndim != 2:
            raise ValueError(
                f"Embeddings parameter is expected to be 2-dimensional, not {tuple(table.shape)}"
            )
        layer = cls.__new__(cls)
        layer._set(tuple(table.shape), padding_idx)
        layer.weight = Parameter(table, requires_grad=not freeze)
        return layer

    def reset_parameters(self) -> None:
        """Draw a new table."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                rows = ops.arange(self.num_embeddings, device=self.weight.device)
                row = ops.expand_dims(ops.equal(rows, self.padding_idx), axis=1)
                self.weight.copy_(ops.where(row, 0, self.weight))

    def forward(self, input: Any) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
