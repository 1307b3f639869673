"""Tables of vectors that are learnt."""

from operator import index
from typing import Any, Self

from wengert import ops
from wengert.nn import functional as F
from wengert.nn import init
from wengert.nn.functional.embedding import as_padding, no_sparse
from wengert.nn.module import Module
from wengert.nn.parameter import Parameter
from wengert.tape.grad_mode import no_grad
from wengert.tape.tensor import Tensor, wrapped


class Embedding(Module):
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
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        shape = (index(num_embeddings), index(embedding_dim))
        self._set(shape, padding_idx, (max_norm, norm_type, scale_grad_by_freq), sparse)
        self.weight = Parameter(ops.empty(shape, device=device, dtype=dtype))
        self.reset_parameters()

    def _set(self, shape: Any, padding_idx: int | None, options: Any, sparse: bool) -> None:
        no_sparse(sparse)
        self.num_embeddings, self.embedding_dim = shape
        self.padding_idx, self.sparse = as_padding(padding_idx, shape[0]), sparse
        self.max_norm, self.norm_type, self.scale_grad_by_freq = options

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """Make a layer of a table, a Tensor or array of shape (V, D), which is not copied."""
        table = wrapped(embeddings)
        if table.ndim != 2:
            raise ValueError(
                f"Embeddings parameter is expected to be 2-dimensional, not {tuple(table.shape)}"
            )
        layer = cls.__new__(cls)
        shape = tuple(table.shape)
        layer._set(shape, padding_idx, (max_norm, norm_type, scale_grad_by_freq), sparse)
        layer.weight = Parameter(table, requires_grad=not freeze)
        return layer

    def reset_parameters(self) -> None:
        """Draw a new table."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                row = ops.equal(
                    ops.arange(self.num_embeddings, device=self.weight.device), self.padding_idx
                )
                self.weight.copy_(ops.where(ops.expand_dims(row, axis=1), 0, self.weight))

    def forward(self, input: Any) -> Tensor:
        """Look up the rows of indices."""
        options: Any = (self.max_norm, self.norm_type, self.scale_grad_by_freq)
        return F.embedding(input, self.weight, self.padding_idx, *options)

    def extra_repr(self) -> str:
        defaults: dict[str, Any] = {"padding_idx": None, "max_norm": None, "norm_type": 2.0}
        defaults["scale_grad_by_freq"] = False
        held = ((name, getattr(self, name)) for name in defaults)
        others = [f"{name}={value}" for name, value in held if value != defaults[name]]
        return ", ".join([str(self.num_embeddings), str(self.embedding_dim), *others])
