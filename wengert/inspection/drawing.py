"""Pictures of computation graphs: `draw` for a Graphviz object, `to_dot` for its text."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from html import escape
from typing import Any, Literal, NamedTuple

import numpy as np

from wengert.backends import backend_of, dtype_of
from wengert.backends.backend import importing
from wengert.inspection.graph import Edges, Story, cotangents, known_values, saved_arrays, scopes
from wengert.tape.node import AccumulateGrad, Node, Output, Parts
from wengert.tape.observers import observed_by
from wengert.tape.sweep import ancestors
from wengert.tape.tensor import Tensor

Gradients = bool | Literal["local", "total"]
Direction = Literal["TB", "LR", "BT", "RL"]

#: How operations with an operator are written.
SIGNS = {
    "add": "+",
    "positive": "+",
    "subtract": "-",
    "negative": "-",
    "multiply": "×",
    "divide": "÷",
    "matmul": "@",
    "pow": "^",
}
#: The most elements, and the longest row, of an array whose values are all written.
WRITTEN, ROW = 9, 4

LEAF = 'shape=box, style="rounded,filled", fillcolor="#d9e8fb", color="#3b6fb6"'
CONSTANT = 'shape=box, style="rounded,dashed", color="#808080", fontcolor="#505050"'
OPERATION = 'shape=ellipse, style=filled, fillcolor="#ffffff", color="#505050"'
RESULT = 'shape=ellipse, style=filled, fillcolor="#fbe6c2", color="#b6803b"'
PART = 'shape=plaintext, fontcolor="#505050"'
CLUSTER = 'style=rounded, color="#a0a0a0", fontcolor="#505050", fontname="Helvetica", labeljust=l'
GRADIENT = "#b03060"


def draw(
    what: Any,
    /,
    *args: Any,
    names: Mapping[str, Tensor] | None = None,
    module: Any = None,
    values: bool = False,
    gradients: Gradients = False,
    shapes: bool = True,
    direction: Direction = "TB",
) -> Any:
    r"""Draw the computation graph of a result, from its leaves down to it.

    Every recorded operation is a node, with an edge from each operand. Leaves are boxes. Notebooks
    show the picture; ``draw(loss).render("graph", format="svg")`` writes it to a file, and
    ``draw(loss).source`` is its text in Graphviz's language.

    Parameters
    ----------
    what : Tensor, sequence or mapping of Tensor, module or callable
        Results, in a mapping by their names; or a function that computes them from ``args``. A
        function is run, so that more can be shown: the value of every node, constants, and the
        modules that operations belong to. Results from which other results were computed are
        named in the picture; only the last ones are differentiated.
    *args
        Arguments of the function, if ``what`` is one. Tensors among them are drawn by the names
        of its parameters.
    names : mapping of str to Tensor, optional
        Names of leaves and of intermediate results: ``{"w1": w1, "b": b}``.
    module : Module, optional
        The module whose parameters are named by their paths. If a function is run, a frame with
        the path and class stands around the operations of each submodule. By default ``what``, if
        it is a module.
    values : bool
        Whether values are written: all of small arrays, of others the least and the largest.
        Without a function to run they are known of leaves, of results and Tensors in ``names``,
        and of arrays that rules have saved.
    gradients : bool or str
        What is written on each edge. True or ``"total"``: the cotangent of the result that flows
        back along it. ``"local"``: the derivative of the operation alone, that is, what flows back
        for a cotangent of ones. Along a path of operations on scalars the product of the local
        ones is the path's part of the total. Nothing is added to any ``.grad``.
    shapes : bool
        Whether shapes and dtypes are written.
    direction : {"TB", "LR", "BT", "RL"}
        The direction of the graph: from top to bottom, from left to right, and the reverse.

    Returns
    -------
    graphviz.Source
        An object of the package ``graphviz``. A notebook shows it as a picture, or as text if
        Graphviz's program is not installed.

    Raises
    ------
    ImportError
        If the package is not installed (``wengert[draw]``). `to_dot` does not need it. To render
        the picture, Graphviz's programs have to be installed too.
    RuntimeError
        If a result does not require grad, or if gradients are to be drawn of a graph that a
        backward pass has freed.
    TypeError
        If ``what`` is no Tensor and returns none.
    ValueError
        If an option is none of those above.

    Examples
    --------
    >>> a, w = (wg.randn(3, 3, requires_grad=True) for _ in range(2))
    >>> picture = wg.draw((w * a).sum(), names={"a": a, "w": w}, gradients=True)
    """
    with importing(
        "wg.draw needs the package graphviz, which cannot be imported ({}): install wengert[draw]. "
        "Without it, wengert.inspection.to_dot returns the text that Graphviz's programs read"
    ):
        import graphviz
    text = to_dot(
        what,
        *args,
        names=names,
        module=module,
        values=values,
        gradients=gradients,
        shapes=shapes,
        direction=direction,
    )
    return _drawing(graphviz)(text)


@cache
def _drawing(graphviz: Any) -> type[Any]:
    """The package's class of pictures, which shows its text if it cannot show the picture."""

    class Drawing(graphviz.Source):  # type: ignore[misc]
        def _repr_mimebundle_(self, *given: Any, **keywords: Any) -> dict[str, Any]:
            try:
                return super()._repr_mimebundle_(*given, **keywords)  # type: ignore[no-any-return]
            except graphviz.ExecutableNotFound:
                shown = f"<pre>{escape(self.source)}</pre>"
                return {"text/plain": self.source, "text/html": shown}

    return Drawing


def to_dot(
    what: Any,
    /,
    *args: Any,
    names: Mapping[str, Tensor] | None = None,
    module: Any = None,
    values: bool = False,
    gradients: Gradients = False,
    shapes: bool = True,
    direction: Direction = "TB",
) -> str:
    """Return the picture of `draw` as text in Graphviz's language DOT, without other packages.

    Parameters
    ----------
    what, *args, names, module, values, gradients, shapes, direction
        As for `draw`.

    Returns
    -------
    str
        Text from which ``dot -Tsvg`` makes a picture.

    Raises
    ------
    RuntimeError, TypeError, ValueError
        As for `draw`.

    Examples
    --------
    >>> x = wg.tensor(3.0, requires_grad=True)
    >>> text = wg.inspection.to_dot(x * x, names={"x": x})
    >>> text.splitlines()[0]
    'digraph {'
    """
    if gradients not in (True, False, "local", "total"):
        raise ValueError(f"gradients should be a bool, 'local' or 'total', not {gradients!r}")
    if direction not in ("TB", "LR", "BT", "RL"):
        raise ValueError(f"direction should be 'TB', 'LR', 'BT' or 'RL', not {direction!r}")
    story = Story()
    called = {} if names is None else dict(names)
    for name, tensor in called.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"names[{name!r}] should be a Tensor, not {type(tensor).__name__}")
    if callable(what):
        if module is None and hasattr(what, "named_modules"):
            module = what
        called = {**_arguments(what, args), **called}
        with observed_by(story), scopes(module, story):
            what = what(*args)
    elif args:
        raise TypeError(f"arguments are for a function, and a {type(what).__name__} was given")
    results, own = _results(what)
    called = {**own, **called}
    if module is not None:
        called = {**dict(module.named_parameters()), **called}
    picture = _Picture(results, called, story, values, shapes)
    if gradients:
        picture.gradients = cotangents(results, picture.nodes, gradients == "local")
    return picture.text(direction)


def _results(what: Any) -> tuple[list[Tensor], dict[str, Tensor]]:
    """The results that no other result was computed from, and the names of all."""
    own = dict(what) if isinstance(what, Mapping) else {}
    found = list(own.values()) or (list(what) if isinstance(what, list | tuple) else [what])
    for result in found:
        if not isinstance(result, Tensor):
            raise TypeError(
                "draw takes Tensors, or a function that returns a Tensor, or a sequence or mapping "
                f"of them, and not {type(result).__name__}"
            )
        if result._node is None:
            raise RuntimeError(
                f"a result of shape {tuple(result.shape)} does not require grad, so nothing of "
                "its computation was recorded"
            )
    if not found:
        raise TypeError("there is nothing to draw: an empty sequence was given")
    nodes = ancestors([result._node for result in found])
    used = {parent.number for node in nodes for parent in node.parents if parent is not None}
    return [result for result in found if result._node.number not in used], own


def _arguments(function: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Tensor]:
    """Tensors among the arguments by the names of the function's parameters."""
    try:
        names = list(inspect.signature(getattr(function, "forward", function)).parameters)
    except (TypeError, ValueError):  # a builtin without a signature
        return {}
    return {name: x for name, x in zip(names, args, strict=False) if isinstance(x, Tensor)}


class _Box(NamedTuple):
    """A node of the picture: its identifier in the text, its attributes, and its module's path."""

    key: str
    attributes: str
    scope: str | None


class _Picture:
    """The graph of some results, as text."""

    def __init__(
        self,
        results: list[Tensor],
        names: dict[str, Tensor],
        story: Story,
        values: bool,
        shapes: bool,
    ) -> None:
        self.nodes = ancestors([result._node for result in results])  # type: ignore[misc]
        self.gradients: Edges = {}
        self.story = story
        self.shapes = shapes
        self.roots = {result._node.number for result in results}  # type: ignore[union-attr]
        self.names = {
            tensor._node.number: name for name, tensor in names.items() if tensor._node is not None
        }
        self.constants = {
            id(tensor._array): (name, tensor)
            for name, tensor in names.items()
            if tensor._node is None
        }
        self.values = known_values(self.nodes, [*results, *names.values()], story) if values else {}
        self.show_values = values

    def text(self, direction: str) -> str:
        boxes: list[_Box] = []
        edges: list[str] = []
        for node in reversed(self.nodes):
            boxes.append(self._box(node))
            for position, parent in enumerate(node.parents):
                if parent is not None:
                    edges.append(self._edge(node, position, parent))
            for key, name, tensor in self._constants(node):
                # A Tensor with a name comes from outside the modules.
                scope = self.story.scopes.get(node.number) if name is None else None
                box = _Box(key, self._constant(name, tensor), scope)
                if not any(one.key == key for one in boxes):
                    boxes.append(box)
                edges.append(f'  {key} -> n{node.number} [style=dashed, color="#808080"];')
        lines = [
            "digraph {",
            f"  rankdir={direction};",
            '  node [fontname="Helvetica", fontsize=11, margin="0.12,0.06", height=0.3];',
            '  edge [fontname="Helvetica", fontsize=9, arrowsize=0.7];',
            *_clusters(boxes, self.story.classes),
            *edges,
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _box(self, node: Node) -> _Box:
        name = self.names.get(node.number)
        scope = self.story.scopes.get(node.number)
        if isinstance(node, AccumulateGrad):
            title, style = name or "leaf", LEAF
            owner = (name or "").rpartition(".")[0]
            scope = owner if owner in self.story.classes else None
        elif isinstance(node, Output):
            title, style = _title(name, f"result {node.index}"), PART
        else:
            title = _title(name, SIGNS.get(node.operation, node.operation))
            style = OPERATION
        if node.number in self.roots:
            style = RESULT
        lines = [title]
        if self.shapes and not node.several:
            lines.append(f"{tuple(node.shape)} {dtype_of(node.dtype).name}")
        if node.number in self.values:
            lines.append(_format(self.values[node.number]))
        return _Box(f"n{node.number}", f"label={_quote(lines)}, {style}", scope)

    def _edge(self, node: Node, position: int, parent: Node) -> str:
        gradient = self.gradients.get((node.number, position))
        if type(gradient) is Parts:
            gradient = gradient.items[node.index]  # type: ignore[attr-defined]
        label = ""
        if gradient is not None:
            lines = [f" {line}" for line in _format(gradient).split("\n")]  # off the arrow
            label = f' [label={_quote(lines)}, fontcolor="{GRADIENT}"]'
        return f"  n{parent.number} -> n{node.number}{label};"

    def _constant(self, name: str | None, tensor: Tensor) -> str:
        lines = [name or "constant"]
        if self.shapes:
            lines.append(f"{tuple(tensor.shape)} {tensor.dtype.name}")
        if self.show_values:
            lines.append(_format(tensor._array))
        return f"label={_quote(lines)}, {CONSTANT}"

    def _constants(self, node: Node) -> Iterator[tuple[str, str | None, Tensor]]:
        """The untracked operands of an operation that are known."""
        seen = self.story.constants.get(node.number)
        if seen is None:
            held = [a for a, at in saved_arrays(node) if at != -1 and node.parents[at] is None]
            seen = [self.constants[id(a)][1] for a in held if id(a) in self.constants]
        for tensor in seen:
            name, _ = self.constants.get(id(tensor._array), (None, None))
            yield f"c{id(tensor._array)}", name, tensor


def _title(name: str | None, operation: str) -> str:
    return operation if name is None else f"{name}: {operation}"


def _clusters(boxes: list[_Box], classes: dict[str, str]) -> list[str]:
    """The boxes in the frames of their modules, which lie in those of the modules around them."""
    inside: dict[str | None, list[str]] = {None: []}
    for box in boxes:
        path = box.scope
        while path is not None and path not in inside:
            inside[path] = []
            path = _around(path)
        inside[box.scope].append(f"{box.key} [{box.attributes}];")

    def frame(path: str | None, indent: str) -> Iterator[str]:
        for line in inside[path]:
            yield indent + line
        for below in [p for p in inside if p is not None and _around(p) == path]:
            title = f"{below}: {classes[below]}" if below else classes[below]
            yield f"{indent}subgraph {_quote([f'cluster {below}'])} {{"
            yield f"{indent}  label={_quote([title])}; graph [{CLUSTER}];"
            yield from frame(below, indent + "  ")
            yield f"{indent}}}"

    return list(frame(None, "  "))


def _around(path: str) -> str | None:
    """The path of the module around a module; None for the outermost."""
    return path.rpartition(".")[0] if path else None


def _quote(lines: list[str]) -> str:
    text = "\n".join(lines).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def _format(array: Any) -> str:
    """The values of an array in a few characters, each row in a line of its own."""
    bottom = getattr(array, "bottom", array)  # inside a transform: the library's own array
    backend = backend_of(bottom)
    values: np.ndarray[Any, Any] = backend.to_numpy(backend.array(bottom))
    if not values.size:
        return "[]"
    if values.size <= WRITTEN and values.shape[-1:] <= (ROW,):
        return _format_nested(values)
    sizes = np.abs(values) if values.dtype.kind == "c" else values
    reductions: tuple[Any, ...] = (np.fmin.reduce, np.fmax.reduce)
    least, largest = (reduce(sizes, axis=None) for reduce in reductions)
    return f"{'abs ' if sizes is not values else ''}{least:.3g} … {largest:.3g}"


def _format_nested(values: np.ndarray[Any, Any]) -> str:
    if values.ndim:
        return "[" + (", " if values.ndim == 1 else "\n").join(map(_format_nested, values)) + "]"
    return f"{values[()]:.4g}"
