"""The global tape, looked at: its live entries as a Wengert list."""

from collections.abc import Iterator

from wengert.backends import dtype_of
from wengert.backends.references import living
from wengert.tape.node import Node
from wengert.tape.sweep import ancestors
from wengert.tape.tensor import Tensor


class Entries:
    """Some entries of the tape, oldest first: a sequence of nodes that prints as a Wengert list.

    Each line has the entry's number, the operation on the numbers of its inputs (``·`` for an
    input that needs no gradient), the shape and the data type::

        %1 = leaf()            (3,)  float32
        %2 = multiply(%1, ·)   (3,)  float32

    Examples
    --------
    >>> x = wg.tensor([1.0, 2.0], requires_grad=True)
    >>> entries = wg.global_tape.of((x * 3).sum())
    >>> [node.name() for node in entries]
    ['AccumulateGrad', 'MulBackward0', 'SumBackward0']
    """

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def __getitem__(self, index: int) -> Node:
        return self._nodes[index]

    def __repr__(self) -> str:
        if not self._nodes:
            return "(the tape is empty)"
        rows = [_row(node) for node in self._nodes]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            f"{number:>{widths[0]}} = {call:<{widths[1]}}  {shape:<{widths[2]}}  {dtype}".rstrip()
            for number, call, shape, dtype in rows
        )

    def _repr_html_(self) -> str:
        """The same as a table, for notebooks."""
        from html import escape

        rows = [("", "operation", "shape", "dtype"), *map(_row, self._nodes)]
        lines = ["".join(f"<td><code>{escape(cell)}</code></td>" for cell in row) for row in rows]
        return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _row(node: Node) -> tuple[str, str, str, str]:
    inputs = ", ".join("·" if p is None else f"%{p.number}" for p in node.parents)
    if node.several:
        shape = ", ".join(str(tuple(s)) for s in node.shape)
        dtype = ", ".join("-" if d is None else dtype_of(d).name for d in node.dtype)
    else:
        shape, dtype = str(tuple(node.shape)), dtype_of(node.dtype).name
    return f"%{node.number}", f"{node.operation}({inputs})", shape, dtype


class GlobalTape:
    """The one tape of the process, for looking at.

    Nodes belong to the Tensors that came from them and to the nodes after them; the tape holds
    none of them alive. So ``len(wg.global_tape)`` tells what the program still holds, and it is
    the same after 10 000 training steps as after 100.

    Examples
    --------
    >>> x = wg.tensor(2.0, requires_grad=True)
    >>> y = wg.exp(x)
    >>> held = len(wg.global_tape)
    >>> del y
    >>> len(wg.global_tape) < held
    True
    """

    def __iter__(self) -> Iterator[Node]:
        return iter(self.entries())

    def entries(self) -> Entries:
        """Return the live entries, oldest first."""
        # CPython knows every live object, so recording keeps no list.
        found = [node for node in living(Node) if hasattr(node, "dtype")]
        return Entries(sorted(found, key=lambda node: node.number))

    def of(self, tensor: Tensor) -> Entries:
        """Return the entries that a Tensor was computed from, oldest first, its own the last."""
        node = tensor._node
        return Entries([] if node is None else ancestors([node])[::-1])

    def __len__(self) -> int:
        return len(self.entries())

    def __repr__(self) -> str:
        return repr(self.entries())

    def _repr_html_(self) -> str:
        return self.entries()._repr_html_()


#: The tape that every operation is recorded on.
global_tape = GlobalTape()
