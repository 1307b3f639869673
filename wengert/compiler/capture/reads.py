"""The globals, attributes and imports that bytecode names."""

import dis
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType
from typing import NamedTuple

__all__ = ["Chain", "Load", "Reads", "reads"]

#: Builtin functions that take the name of an attribute.
_BY_NAME = frozenset({"delattr", "getattr", "hasattr", "setattr"})
#: Names of functions and attributes that read attributes by computed names.
_REFLECTIVE = frozenset(
    {
        *("__dict__", "__getattribute__", "__getstate__", "__reduce__", "__reduce_ex__"),
        *("asdict", "astuple", "attrgetter", "dir", "dumps", "fields", "methodcaller", "vars"),
        *("tree_flatten", "tree_leaves", "tree_map", "tree_structure"),
    }
)
#: Operations that read an attribute.
_ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_NAMING = _ATTRIBUTE | {"IMPORT_FROM", "LOAD_SUPER_ATTR"}
#: Operations that set or delete an attribute.
_STORING = frozenset({"STORE_ATTR", "DELETE_ATTR"})
#: Methods of strings that read attributes of their arguments.
_FORMATTING = frozenset({"format", "format_map", "vformat"})
#: An attribute in a format string: ``"{0.name}"``.
_FIELD = re.compile(r"\{[^{}]*?\.(\w+)")
#: Methods that only add to a container.
_ADDING = frozenset({"add", "append", "appendleft", "extend", "update"})
#: Operations at which the search for a call's arguments stops.
_BREAKING = frozenset({"CALL_FUNCTION_EX", "CALL_KW", "KW_NAMES", "RETURN_VALUE"})
#: Operations that load a non-local name, and those on globals.
_LOADING = frozenset(
    {
        *("LOAD_CLASSDEREF", "LOAD_DEREF", "LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS"),
        *("LOAD_GLOBAL", "LOAD_NAME"),
    }
)
_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"})


class Chain(NamedTuple):
    """A chain of attributes of an object that is known before the code runs: ``self.a.b``.

    Attributes
    ----------
    root : {"global", "free", "self"}
        The kind of its root: a global, a variable of an enclosing function, the first argument.
    name : str
        Of the root.
    path : tuple of str
        The names of the attributes.
    """

    root: str
    name: str
    path: tuple[str, ...]


_UNKNOWN = Chain("unknown", "", ())


class Load(NamedTuple):
    """An instruction that loads a global, or a variable of an enclosing function.

    Attributes
    ----------
    line : int
        Its line.
    what : Chain
        The variable, with the attributes that are read from it next.
    called : bool
        Whether the result is called at once.
    """

    line: int
    what: Chain
    called: bool

    def to(self, attribute: str, *, called: bool) -> "Load":
        """The load followed by that of an attribute."""
        chain = self.what._replace(path=(*self.what.path, attribute))
        return self._replace(what=chain, called=called or self.called)


class Reads(NamedTuple):
    """The names in a function's code, inner functions included.

    Attributes
    ----------
    globals : tuple of str
        Globals and builtins.
    chains : frozenset of Chain
        Attributes of known objects.
    names : frozenset of str
        Attributes of unknown objects.
    asked : frozenset of str
        Attributes that may be missing, in `hasattr` and `getattr`.
    stored : frozenset of str
        Attributes that it sets or deletes, which may be missing, too.
    imports : tuple of (str, int)
        Imported modules, with the level of a relative import.
    computed : bool
        Whether it computes names of attributes of objects.
    anywhere : bool
        Whether it computes names of attributes of modules.
    typed : frozenset of Chain
        Objects whose types it reads, other than by `isinstance`; root "unknown" for unknown ones.
    told : frozenset of Chain
        Objects that it compares by ``is``, as far as they are known.
    filled : frozenset of str
        Globals and variables of enclosing functions that it only adds elements to.
    every : frozenset of str
        All names: globals and attributes.
    loads : tuple of Load
        In order.
    setting : dict of str to int
        The line that first sets a name.
    """

    globals: tuple[str, ...]
    chains: frozenset[Chain]
    names: frozenset[str]
    asked: frozenset[str]
    stored: frozenset[str]
    imports: tuple[tuple[str, int], ...]
    computed: bool
    anywhere: bool
    typed: frozenset[Chain]
    told: frozenset[Chain]
    filled: frozenset[str]
    every: frozenset[str]
    loads: tuple[Load, ...]
    setting: Mapping[str, int]


@functools.cache
def reads(code: CodeType) -> Reads:
    """The names in a function's code."""
    found = _Reader(code)
    inner = [reads(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    named = dict.fromkeys(found.globals)
    imports = dict.fromkeys(found.imports)
    for each in inner:
        named |= dict.fromkeys(each.globals)
        imports |= dict.fromkeys(each.imports)
    chains = found.chains | {found.outside(chain) for each in inner for chain in each.chains}
    loose = {name for chain in chains if chain.root == "unknown" for name in chain.path}
    chains = {chain for chain in chains if chain.root != "unknown"}
    names = found.names.union(loose, *[each.names for each in inner])
    every = names.union(*[chain.path for chain in chains], named)
    used = found.used.union(
        *[
            {*each.globals, *constant.co_freevars} - each.filled
            for constant in code.co_consts
            if isinstance(constant, CodeType)
            for each in (reads(constant),)
        ]
    )
    return Reads(
        tuple(named),
        frozenset(chains),
        frozenset(names),
        found.asked.union(*[each.asked for each in inner]),
        frozenset(found.set).union(*[each.stored for each in inner]),
        tuple(imports),
        found.computed or any(x.computed for x in inner) or not _REFLECTIVE.isdisjoint(every),
        found.anywhere
        or any(x.anywhere for x in inner)
        or not every.isdisjoint({"dir", "vars"})
        or "__dict__" in names
        or any("__dict__" in chain.path for chain in chains if chain.root != "self"),
        found.typed.union(*[map(found.outside, each.typed) for each in inner]),
        found.told.union(*[map(found.outside, each.told) for each in inner]),
        frozenset(found.filled - used),
        frozenset(every),
        (*found.loads, *[load for each in inner for load in each.loads]),
        found.setting,
    )


class _Reader:
    """Reads the instructions of one code object."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.globals: list[str] = []
        self.imports: list[tuple[str, int]] = []
        self.names = {x for text in _strings(code.co_consts) for x in _FIELD.findall(text)}
        self.used, self.filled = set[str](), set[str]()
        self.asked: frozenset[str] = frozenset()
        steps = [x for x in dis.get_instructions(code) if x.opname not in ("COPY", "EXTENDED_ARG")]
        self.set = {x.argval for x in steps if x.opname in _STORING}
        self.computed = self.anywhere = False
        self.typed, self.told = frozenset[Chain](), frozenset[Chain]()
        self.stored = {x.argval for x in steps if x.opname == "LOAD_NAME"}.union(_stored(code))
        self.loads: list[Load] = []
        self.setting: dict[str, int] = {}
        line, follows = code.co_firstlineno, False
        for at, step in enumerate(steps):
            if step.positions is not None and step.positions.lineno is not None:
                line = step.positions.lineno
            if step.opname.startswith("STORE_"):
                self.setting.setdefault(step.argval, line)
            formats = step.opname in _ATTRIBUTE and step.argval in _FORMATTING
            if (
                formats and steps[at - 1].opname != "LOAD_CONST"
            ):  # a constant format string shows its attributes
                self.computed = self.anywhere = True
            null = step.opname == "PUSH_NULL" or "NULL" in step.argrepr
            if follows and step.opname in _ATTRIBUTE | _STORING:
                called = null or step.opname == "LOAD_METHOD"
                self.loads[-1] = self.loads[-1].to(step.argval, called=called)
                continue
            if follows and step.opname == "PUSH_NULL":
                self.loads[-1] = self.loads[-1]._replace(called=True)
            chain = self._root(step)
            follows = chain is not None
            if chain is not None:
                self.loads.append(Load(line, chain, null or steps[at - 1].opname == "PUSH_NULL"))
            self._look(steps, at)
        self.chains = {self._known(load.what) for load in self.loads if load.what.path}

    def _known(self, chain: Chain) -> Chain:
        """A chain, whose root becomes "unknown" if the code may assign it."""
        known = chain.root == "global" or self._variable(chain.name) is not None
        return chain if known and chain.name not in self.stored else chain._replace(root="unknown")

    def _root(self, step: dis.Instruction) -> Chain | None:
        """The chain of a load of a known object; None for other instructions."""
        name = step.argval
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            return Chain("global", name, ())
        if step.opname == "LOAD_DEREF":
            return self._variable(name) or Chain("free", name, ())
        if step.opname.startswith("LOAD_FAST"):
            return self._variable(name[-1] if isinstance(name, tuple) else name)
        return None

    def _variable(self, name: str) -> Chain | None:
        code = self.code
        if name in self.stored:
            return None
        if code.co_argcount and name == code.co_varnames[0]:
            return Chain("self", name, ())
        return Chain("free", name, ()) if name in code.co_freevars else None

    def outside(self, chain: Chain) -> Chain:
        """A chain of an inner function's code, as seen from this code."""
        if chain.root in ("global", "unknown"):
            return chain
        root = self._variable(chain.name) if chain.root == "free" else None
        return chain._replace(root="unknown" if root is None else root.root)

    def _look(self, steps: Sequence[dis.Instruction], at: int) -> None:
        step = steps[at]
        if step.opname in _LOADING:
            after = steps[at + 1]
            adds = after.opname in _ATTRIBUTE and after.argval in _ADDING
            (self.filled if adds else self.used).add(step.argval)
        if step.opname in _GLOBAL:
            self.globals.append(step.argval)
            if step.argval in _BY_NAME:
                self._by_name(_arguments(steps, at))
            elif step.argval == "type":
                self.typed |= {self._asked_of(_arguments(steps, at))}
        elif step.opname == "IS_OP":  # a traced number is another object
            if any(map(_is_number, steps[max(at - 2, 0) : at])):
                self.typed |= {_UNKNOWN}
            end = at
            for _ in range(2):
                start = end - 1
                while steps[start].opname in _ATTRIBUTE:
                    start -= 1
                self.told |= {self._asked_of([steps[start:end]])}
                end = start
        elif step.opname in _NAMING or (
            step.opname in _STORING and steps[at - 1].opname != "SWAP"  # not += after its read
        ):
            self.names.add(step.argval)
        elif step.opname == "IMPORT_NAME":
            self.imports.append((step.argval, _level(steps[:at])))
            self.names.update(step.argval.split("."))
        elif step.opname == "MATCH_CLASS":
            self.computed = True
            self.names.add("__match_args__")

    def _asked_of(self, given: Sequence[Sequence[dis.Instruction]]) -> Chain:
        """The argument of a call of `type`, or an operand of ``is``."""
        steps = given[0] if len(given) == 1 else ()
        root = self._root(steps[0]) if steps else None
        if root is None or any(step.opname not in _ATTRIBUTE for step in steps[1:]):
            return _UNKNOWN
        chain = self._known(root._replace(path=tuple([step.argval for step in steps[1:]])))
        return _UNKNOWN if chain.root == "unknown" else chain

    def _by_name(self, given: Sequence[Sequence[dis.Instruction]]) -> None:
        if _constant(given):
            self.asked |= {given[1][0].argval}
            self.names.add(given[1][0].argval)
        else:
            self.computed = True
            self.anywhere |= not _of_self(given, self.code)


def _is_number(step: dis.Instruction) -> bool:
    """Whether a number is loaded as a constant."""
    constant = step.opname in ("LOAD_CONST", "LOAD_SMALL_INT")
    return constant and type(step.argval) in (int, float, complex)


def codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of all functions and classes inside."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def _stored(code: CodeType) -> Iterator[str]:
    """The variables that code assigns or deletes, inner functions included."""
    for step in (step for each in codes(code) for step in dis.get_instructions(each)):
        if step.opname.startswith(("STORE_", "DELETE_")):
            yield from step.argval if isinstance(step.argval, tuple) else (str(step.argval),)


def _strings(constants: Sequence[object]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple | frozenset):
            yield from _strings(tuple(constant))


def _level(before: Sequence[dis.Instruction]) -> int:
    """The level of an import, which is loaded before the imported names."""
    loaded = [x.argval for x in before[-3:] if isinstance(x.argval, int) and x.opname != "RESUME"]
    return int(loaded[-1]) if loaded else 0


def _arguments(steps: Sequence[dis.Instruction], at: int) -> list[list[dis.Instruction]]:
    """The instructions that compute each argument of a call whose function is loaded at ``at``.

    Empty if the function is not called, or not by straight-line code.
    """
    depth, found = 0, [list[dis.Instruction]()]
    called = False
    for step in steps[at + 1 :]:
        if step.opname == "PUSH_NULL" and not depth:
            continue
        precall, called = called, step.opname == "PRECALL"
        if (called or (step.opname == "CALL" and not precall)) and depth == step.arg:
            return found
        if step.opname in _BREAKING or step.opcode in dis.hasjrel:
            return []
        before, depth = depth, depth + dis.stack_effect(step.opcode, step.arg, jump=False)
        if depth < 0:
            return []
        if depth > before:
            found[before:] = [[] for _ in range(before, depth)]
        else:
            # The instruction's result depends on all operands that it pops.
            for extra in found[max(depth, 1) :]:
                found[max(depth, 1) - 1] += extra
            del found[max(depth, 1) :]
        if found:
            found[-1].append(step)
    return []


def _constant(arguments: Sequence[Sequence[dis.Instruction]]) -> bool:
    """Whether the name in a call such as `getattr` is a constant."""
    return len(arguments) > 1 and [x.opname for x in arguments[1]] == ["LOAD_CONST"]


def _of_self(arguments: Sequence[Sequence[dis.Instruction]], code: CodeType) -> bool:
    """Whether the first argument is ``self``: the first argument of the code itself."""
    if not arguments or len(arguments[0]) != 1 or not code.co_argcount:
        return False
    (load,) = arguments[0]
    return load.opname.startswith("LOAD_FAST") and load.argval == code.co_varnames[0]
