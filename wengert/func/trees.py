"""Trees: nested dicts, lists, tuples, named tuples and dataclasses, as a list of their leaves."""

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import Enum
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

IsLeaf = Callable[[Any], bool] | None


class _Kind(NamedTuple):
    """How the objects of one class are taken apart and put together.

    ``take(node)`` gives the children, and what else is needed to rebuild the node, by which
    structures are compared. ``make(cls, extra, children)`` rebuilds it. ``names(cls, extra,
    count)`` says how each child would be written behind the node.
    """

    take: Callable[[Any], tuple[Iterable[Any], Any]]
    make: Callable[[type, Any, Sequence[Any]], Any]
    names: Callable[[type, Any, int], Iterable[str]]


class _Keys:
    """The keys of a dict, in the order of the children and as inserted; a default one's factory."""

    __slots__ = ("factory", "inserted", "keys")

    def __init__(self, node: dict[Any, Any]) -> None:
        self.factory = getattr(node, "default_factory", None)
        self.keys = self.inserted = tuple(node)
        if type(node) is not OrderedDict:
            with suppress(TypeError):  # keys that cannot be compared stay as they are
                self.keys = tuple(sorted(node))

    def __eq__(self, other: object) -> bool:
        mine = self.keys, self.factory
        return isinstance(other, _Keys) and mine == (other.keys, other.factory)

    def __hash__(self) -> int:
        return hash(self.keys)

    def __repr__(self) -> str:
        return f"keys {list(self.keys)}"

    def items(self, children: Sequence[Any]) -> list[tuple[Hashable, Any]]:
        found = dict(zip(self.keys, children, strict=True))
        return [(key, found[key]) for key in self.inserted]


def _take_dict(node: dict[Any, Any]) -> tuple[list[Any], _Keys]:
    keys = _Keys(node)
    return [node[key] for key in keys.keys], keys


def _make_dict(cls: Any, keys: _Keys, children: Sequence[Any]) -> Any:
    items = keys.items(children)
    return defaultdict(keys.factory, items) if cls is defaultdict else cls(items)


class _Fields(NamedTuple):
    """The fields of a dataclass that are children, and static ones with their values."""

    moving: tuple[str, ...]
    still: tuple[tuple[str, Any], ...]

    def __hash__(self) -> int:  # of what is surely hashable
        return hash(self.moving)


@lru_cache(maxsize=1024)
def _traits(cls: Any) -> tuple[list[str], set[str], set[str], bool]:
    """Fields that the constructor takes, static ones, others, and whether it may do more."""
    fields = [field for field in dataclasses.fields(cls) if field.init]
    others = {field.name for field in dataclasses.fields(cls) if not field.init}
    static = {field.name for field in fields if field.metadata.get("static")}
    whole = len(fields) == len(cls.__dataclass_fields__) and cls.__dataclass_params__.init
    plain = whole and not hasattr(cls, "__post_init__") and _base(cls) is object
    return [field.name for field in fields], static, others, not plain


def _base(cls: type) -> type:
    """The first base that is written in C."""
    return next(base for base in cls.__mro__ if not base.__flags__ & 1 << 9)


def _take_dataclass(node: Any) -> tuple[list[Any], _Fields]:
    fields, static, others, computes = _traits(type(node))  # type: ignore[arg-type]
    given = {name: getattr(node, name) for name in fields}
    if computes or getattr(node, "__dict__", given).keys() - given.keys():
        _check_constructor(node, given, others)
    still = [(name, given.pop(name)) for name in fields if name in static]
    return [*given.values()], _Fields(tuple(given), tuple(still))


def _check_constructor(node: Any, given: dict[str, Any], others: set[str]) -> None:
    """Raise for an object that its constructor would make otherwise from its fields."""
    cls, absent = type(node), object()
    try:
        pair = node, cls(**given)
        names = {*given, *others}.union(*[getattr(x, "__dict__", ()) for x in pair])
        for name in names:
            if not isinstance(getattr(cls, name, None), cached_property):
                old, new = (getattr(x, name, absent) for x in pair)
                if not _alike(old, new, name in given):
                    raise ValueError(f".{name} would be another one")
        if (base := _base(cls)) is not object:
            old, new = (dict(x) if issubclass(base, dict) else [*x] for x in pair)
            if not _alike(old, new, True):
                raise ValueError("elements would be others")
    except Exception as error:
        raise _refusal(cls, error) from error


def _refusal(cls: type, reason: Any) -> TypeError:
    return TypeError(
        f"{cls.__qualname__} can't be put together by its constructor from its fields: {reason}; "
        "wg.func.register_node says how"
    )


def _alike(a: Any, b: Any, given: bool) -> bool:
    """Whether a constructor has made an attribute again, and kept the arrays that it is given."""
    first, second = tree_flatten(a), tree_flatten(b)
    return first[1] == second[1] and all(
        x is y or (type(x) is type(y) and _equal(x, y, given))
        for x, y in zip(first[0], second[0], strict=True)
    )


def _equal(x: Any, y: Any, given: bool) -> bool:
    if not (hasattr(x, "dtype") and hasattr(x, "shape")):
        return bool(x == y) or (x != x and y != y)
    if given or (x.shape, x.dtype) != (y.shape, y.dtype):
        return False
    x, y = (getattr(each, "_array", each) for each in (x, y))
    inexact = x.dtype.kind in "fc" if type(x) is np.ndarray else False
    return type(x) is not np.ndarray or np.array_equal(x, y, equal_nan=inexact)


def _take_named(node: Any) -> tuple[Any, None]:
    if getattr(node, "__dict__", None):
        raise _refusal(type(node), f".{next(iter(vars(node)))} is no field")
    return node, None


def _spellings(keys: Iterable[Hashable]) -> list[str]:
    return [f"[{key!r}]" for key in keys]


_SEQUENCE = _Kind(
    lambda node: (node, getattr(node, "maxlen", None)),
    lambda cls, extra, children: deque(children, extra) if cls is deque else cls(children),
    lambda cls, extra, count: [f"[{i}]" for i in range(count)],
)
_DICT = _Kind(_take_dict, _make_dict, lambda cls, extra, count: _spellings(extra.keys))
KINDS: dict[type, _Kind] = {
    type(None): _Kind(
        lambda node: ((), None), lambda cls, extra, children: None, lambda cls, extra, count: ()
    ),
    **dict.fromkeys((list, tuple, deque), _SEQUENCE),
    **dict.fromkeys((dict, OrderedDict, defaultdict), _DICT),
}
_NAMED = _Kind(
    _take_named,
    lambda cls, extra, children: tuple.__new__(cls, children),
    lambda cls, extra, count: [f".{name}" for name in cls._fields],  # type: ignore[attr-defined]
)
_DATACLASS = _Kind(
    _take_dataclass,
    lambda cls, extra, children: cls(
        **dict(zip(extra.moving, children, strict=True)), **dict(extra.still)
    ),
    lambda cls, extra, count: [f".{name}" for name in extra.moving],
)


def register_node(
    cls: type,
    flatten: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten: Callable[[Any, tuple[Any, ...]], Any],
) -> None:
    """Let objects of a class be nodes of trees.

    Raises `TypeError` if ``cls`` is no class, and `ValueError` if its objects are nodes already.

    Parameters
    ----------
    cls : type
        The class, not its subclasses.
    flatten : callable
        ``flatten(node)`` gives the children, and what else is needed to rebuild the node: a
        hashable value by which structures are compared.
    unflatten : callable
        ``unflatten(extra, children)`` gives a node.

    Examples
    --------
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> wg.func.register_node(Pair, lambda p: ((p.a, p.b), None), lambda _, parts: Pair(*parts))
    >>> g = wg.grad(lambda p: p.a * p.b)(Pair(2.0, 3.0))
    >>> g.a, g.b
    (3.0, 2.0)
    """
    if not isinstance(cls, type):
        raise TypeError(f"register_node takes a class, not {cls!r}")
    if node_kind(cls) is not None:
        raise ValueError(f"objects of {cls.__qualname__} are nodes of trees already")

    KINDS[cls] = _Kind(
        flatten,
        lambda cls, extra, children: unflatten(extra, tuple(children)),
        lambda cls, extra, count: [f"<{cls.__name__} child {i}>" for i in range(count)],
    )


def node_kind(cls: type) -> _Kind | None:
    """How objects of a class are taken apart; None if they are leaves."""
    found = KINDS.get(cls)
    if found is not None:
        return found
    if issubclass(cls, Enum):  # whose members are compared by identity
        return None
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _NAMED
    return _DATACLASS if dataclasses.is_dataclass(cls) else None


@dataclasses.dataclass(frozen=True, slots=True)
class TreeDef:
    """The structure of a tree: what is left when its leaves are taken away.

    Two are equal if their trees have the same nodes with the same keys, fields and lengths.

    Attributes
    ----------
    cls : type or None
        The class of the node; None for a leaf.
    children : tuple of TreeDef
        The structures below it.
    num_leaves : int
        How many leaves there are in all.

    Examples
    --------
    >>> leaves, tree = wg.func.tree_flatten({"a": 1.0, "b": (2.0, 3.0)})
    >>> tree.unflatten([10.0, 20.0, 30.0])
    {'a': 10.0, 'b': (20.0, 30.0)}
    """

    cls: type | None
    extra: Any
    children: "tuple[TreeDef, ...]"
    num_leaves: int

    def _named_children(self) -> list[tuple[str, "TreeDef"]]:
        """Each child with its name."""
        kind: _Kind = node_kind(self.cls)  # type: ignore[assignment,arg-type]
        names = kind.names(self.cls, self.extra, len(self.children))  # type: ignore[arg-type]
        return list(zip(names, self.children, strict=True))

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return a tree of this structure: `tree_unflatten`."""
        found = list(leaves)
        if len(found) != self.num_leaves:
            raise ValueError(
                f"a tree of {self.num_leaves} leaves can't be made of {len(found)}: {self}"
            )
        return self._make(iter(found))

    def _make(self, leaves: Any) -> Any:
        if self.cls is None:
            return next(leaves)
        kind: _Kind = node_kind(self.cls)  # type: ignore[assignment]
        return kind.make(self.cls, self.extra, [child._make(leaves) for child in self.children])

    def flatten_up_to(self, tree: Any, what: str = "tree") -> list[Any]:
        """Return the subtrees of a tree that stand where this structure has its leaves.

        Raises `ValueError` if the tree does not begin as this structure does, with the place.
        """
        if self.cls is None:
            return [tree]
        kind = node_kind(type(tree))
        if type(tree) is not self.cls or kind is None:
            wanted = "None" if self.cls is type(None) else self.cls.__name__
            raise ValueError(
                f"{what} should be a {wanted}, as its counterpart is, and is a "
                f"{type(tree).__name__}"
            )
        children, extra = kind.take(tree)
        children = list(children)
        if extra != self.extra or len(children) != len(self.children):
            raise ValueError(
                f"{what} should have the structure {self}, and has {tree_structure(tree)}"
            )
        return [
            found
            for (name, child), below in zip(self._named_children(), children, strict=True)
            for found in child.flatten_up_to(below, what + name)
        ]

    def paths(self) -> list[str]:
        """Where each leaf is, as it would be written behind the tree: ``"['weights'][0]"``."""
        if self.cls is None:
            return [""]
        return [name + path for name, child in self._named_children() for path in child.paths()]

    def __str__(self) -> str:
        if self.cls is None:
            return "*"
        if self.cls is type(None):
            return "None"
        bare = self.cls in (list, tuple)
        inside = [str(c) if bare else f"{name}: {c}" for name, c in self._named_children()]
        inside += [f".{name}: {x!r}" for name, x in getattr(self.extra, "still", ())]
        return f"{self.cls.__name__}({', '.join(inside)})"


_LEAF = TreeDef(None, None, (), 1)


def still_parts(structure: TreeDef) -> Iterator[tuple[str, Any]]:
    """The attributes in a tree that are no leaves, with their names."""
    yield from getattr(structure.extra, "still", ())
    for child in structure.children:
        yield from still_parts(child)


def trees_of(structures: Iterable[TreeDef], leaves: Iterable[Any]) -> list[Any]:
    """One tree of each structure, with leaves in their order."""
    left = iter(leaves)
    return [structure.unflatten(islice(left, structure.num_leaves)) for structure in structures]


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeDef]:
    """Take a tree apart: its leaves, and the structure that `tree_unflatten` rebuilds it by.

    Nodes are dicts (also ordered and default ones), lists, tuples, named tuples, deques,
    dataclasses, and what `register_node` knows. None is a node without leaves. All else is a leaf:
    Tensors, arrays, numbers, strings. The leaves of a dict come in the order of its sorted keys.
    A dataclass is rebuilt by its constructor, from fields; one that would differ is a `TypeError`.
    A field whose metadata has a true ``"static"`` belongs to the structure.

    Parameters
    ----------
    is_leaf : callable, optional
        Whether to take an object for a leaf although it is a node.

    Returns
    -------
    leaves : list
    structure : TreeDef

    Examples
    --------
    >>> leaves, tree = wg.func.tree_flatten({"w": [1, 2], "b": 3})
    >>> leaves
    [3, 1, 2]
    >>> wg.func.tree_unflatten(tree, leaves)
    {'w': [1, 2], 'b': 3}
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, is_leaf, leaves)


def _flatten(tree: Any, is_leaf: IsLeaf, leaves: list[Any]) -> TreeDef:
    kind = node_kind(type(tree))
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF
    before = len(leaves)
    children, extra = kind.take(tree)
    below = tuple([_flatten(child, is_leaf, leaves) for child in children])
    return TreeDef(type(tree), extra, below, len(leaves) - before)


def tree_unflatten(structure: TreeDef, leaves: Iterable[Any]) -> Any:
    """Put a tree together from leaves, in the order in which `tree_flatten` gave them.

    Raises `ValueError` if there are more or fewer leaves than the structure has.

    Examples
    --------
    >>> tree = wg.func.tree_structure({"a": 0, "b": [0, 0]})
    >>> wg.func.tree_unflatten(tree, [1, 2, 3])
    {'a': 1, 'b': [2, 3]}
    """
    return structure.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of a tree: the first result of `tree_flatten`.

    Examples
    --------
    >>> wg.func.tree_leaves({"w": [1, 2], "b": (3, None)})
    [3, 1, 2]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> TreeDef:
    """Return the structure of a tree: the second result of `tree_flatten`.

    Examples
    --------
    >>> wg.func.tree_structure((1, 2)) == wg.func.tree_structure((3, 4))
    True
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_map(function: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply a function to each leaf of a tree, and answer with a tree of the same structure.

    Raises `ValueError` if one of ``rest`` has another structure; the error names the place.

    Parameters
    ----------
    function : callable
        Of one leaf, and of its counterpart in each of ``rest``.
    *rest
        Trees of the same structure, or with whole trees where the first has leaves.
    is_leaf : callable, optional
        Whether to take an object for a leaf although it is a node.

    Examples
    --------
    >>> params, grads = {"w": 1.0, "b": [2.0]}, {"w": 5.0, "b": [10.0]}
    >>> wg.func.tree_map(lambda p, g: p - 0.1 * g, params, grads)
    {'w': 0.5, 'b': [1.0]}
    """
    leaves, structure = tree_flatten(tree, is_leaf)
    others = [structure.flatten_up_to(other, f"rest[{i}]") for i, other in enumerate(rest)]
    return structure.unflatten(map(function, leaves, *others))
