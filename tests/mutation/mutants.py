"""The mutants of a file: each is the file with one piece of its text exchanged."""

import ast
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

#: What each operator is exchanged for.
_OPERATORS = (
    "Add Sub, Sub Add, Mult Div, Div Mult, FloorDiv Mult, Mod Mult, Pow Mult, MatMult Mult, "
    "BitAnd BitOr, BitOr BitAnd, BitXor BitAnd, LShift RShift, RShift LShift, And Or, Or And, "
    "Lt LtE, LtE Lt, Gt GtE, GtE Gt, Eq NotEq, NotEq Eq, Is IsNot, IsNot Is, In NotIn, NotIn In"
)
OPERATORS = {getattr(ast, a): getattr(ast, b) for a, b in map(str.split, _OPERATORS.split(", "))}
#: The operators of a rule are functions of its namespace.
_PAIRS = (
    "add subtract, multiply divide, maximum minimum, max min, amax amin, argmax argmin, any all, "
    "sum mean, less less_equal, greater greater_equal, equal not_equal, sin cos, sinh cosh, "
    "floor ceil, exp expm1, log log1p, triu tril, zeros ones, zeros_like ones_like, "
    "logical_and logical_or, cumulative_sum cumulative_prod, real imag"
)
FUNCTIONS = {a: b for pair in _PAIRS.split(", ") for a, b in (pair.split(), pair.split()[::-1])}

#: What exchanged operands do not change, or always break.
SYMMETRIC = (
    "add multiply maximum minimum max min equal not_equal logical_and logical_or logical_xor hypot "
    "isinstance issubclass getattr hasattr setattr zip swapaxes"
)


@dataclass(frozen=True)
class Mutant:
    """One edit: the text from `start` to `end` of the file at `path` becomes `new`."""

    path: str
    start: int
    end: int
    new: str

    @property
    def room(self) -> str:
        return self.path.split("/")[-2 if self.path.count("/") == 1 else 1]

    def edited(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]

    def difference(self, source: bytes) -> tuple[str, str]:
        """The lines that are edited, before and after, each as one."""
        first = source.rfind(b"\n", 0, self.start) + 1
        last = source.find(b"\n", self.end)
        before, after = source[first : self.start], source[self.end : last]
        old = source[first:last].decode()
        new = before.decode() + self.new + after.decode()
        return " ".join(old.split()), " ".join(new.split())


def mutants(path: str, source: bytes) -> list[Mutant]:
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = {}
    for node, new in _edits(ast.parse(source), None):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        mutant = Mutant(path, start, end, new)
        if mutant.edited(source) != source:
            found[mutant] = None
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.new))


def _edits(node: ast.AST, parent: ast.AST | None) -> Iterator[tuple[ast.AST, str]]:
    """Every node that is exchanged, and what for."""
    for new in _replacements(node, parent):
        yield node, new
    if isinstance(node, ast.If | ast.IfExp) and not isinstance(node.test, ast.UnaryOp):
        yield node.test, f"(not ({ast.unparse(node.test)}))"
    for name, value in ast.iter_fields(node):
        if _is_text(node, name):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _edits(child, node)


def _is_text(node: ast.AST, name: str) -> bool:
    """Whether a part of a node is for readers and type checkers alone."""
    match node:
        case ast.JoinedStr() | ast.Raise() | ast.Assert() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Assign(targets=[ast.Name(id="__all__" | "__slots__")]):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return name == "body"
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Call(func=ast.Name(id="ContextVar")):
            return name == "args"
        case ast.keyword(arg="strict"):  # of zip, an assertion
            return True
        case ast.Subscript(value=ast.Name(id="dict" | "list" | "tuple" | "Callable" | "Literal")):
            return True
    return name in ("annotation", "returns", "type_comment", "pattern")


def _replacements(node: ast.AST, parent: ast.AST | None) -> Iterator[str]:
    match node:
        case ast.BinOp() | ast.BoolOp() if type(node.op) in OPERATORS:
            yield _text(node, op=OPERATORS[type(node.op)]())
            uneven = isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv | ast.Pow | ast.MatMult)
            if uneven and ast.dump(node.left) != ast.dump(node.right):
                yield _text(node, left=node.right, right=node.left)
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert()):
            yield f"({ast.unparse(node.operand)})"
        case ast.Compare():
            for k, op in enumerate(node.ops):
                other = OPERATORS[type(op)]()
                yield _text(node, ops=[*node.ops[:k], other, *node.ops[k + 1 :]])
        case ast.Constant(value=bool() as value):
            yield repr(not value)
        case ast.Constant(value=int() | float() as value):
            yield repr(value + 1)
        case ast.Constant(value=str() as value) if value.isidentifier():
            yield repr(value + "_")
        case ast.Call():
            yield from _calls(node)
        case ast.Raise(exc=ast.Name(id="NotImplementedError")):
            pass  # a method that each class of the kind has of its own
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Delete():
            yield "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "pass"
        case ast.Continue():
            yield "break"
        case ast.Break():
            yield "continue"
        case ast.Attribute(value=ast.Name(), attr=name) if name in FUNCTIONS:
            if isinstance(parent, ast.Call) and parent.func is node:
                yield _text(node, attr=FUNCTIONS[name])


def _calls(node: ast.Call) -> Iterator[str]:
    for k, keyword in enumerate(node.keywords):
        if keyword.arg not in (None, "strict"):
            yield _text(node, keywords=[*node.keywords[:k], *node.keywords[k + 1 :]])
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    starred = any(isinstance(each, ast.Starred) for each in node.args[:2])
    alike = len({ast.dump(each) for each in node.args[:2]}) < 2
    if not (alike or starred or name.lstrip("_") in SYMMETRIC.split()):
        yield _text(node, args=[node.args[1], node.args[0], *node.args[2:]])


def _text(node: ast.AST, **changes: object) -> str:
    changed = deepcopy(node)
    for name, value in changes.items():
        setattr(changed, name, value)
    text = ast.unparse(changed)
    return text if isinstance(node, ast.Call | ast.Attribute) else f"({text})"
