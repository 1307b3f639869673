"""What code names: the globals, attributes and imports that bytecode asks for."""

import dis
import functools
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import NamedTuple

__all__ = ["Reads", "reads"]

#: Functions that take the name of an attribute.
_BY_NAME = frozenset({"delattr", "getattr", "hasattr", "setattr"})
#: Names of what reads attributes whose names the code does not write down.
_REFLECTIVE = frozenset(
    {
        *("__dict__", "__getattribute__", "__getstate__", "__reduce__", "__reduce_ex__"),
        *("asdict", "astuple", "attrgetter", "dir", "dumps", "fields", "methodcaller", "vars"),
        *("tree_flatten", "tree_leaves", "tree_map", "tree_structure"),
    }
)
#: Methods that add to a container, and give nothing back.
_ADDING = frozenset({"add", "append", "appendleft", "extend", "update"})
#: Where the arguments of a call are not followed.
_BREAKING = frozenset({"CALL_FUNCTION_EX", "CALL_KW", "KW_NAMES", "RETURN_VALUE"})
#: Operations that load what is not local; those that ask for globals, or put them there.
_LOADING = frozenset(
    {
        *("LOAD_CLASSDEREF", "LOAD_DEREF", "LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS"),
        *("LOAD_GLOBAL", "LOAD_NAME"),
    }
)
_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"})


class Reads(NamedTuple):
    """What a function's code names, inner functions included.

    Attributes
    ----------
    globals : tuple of str
        What it asks for by name alone: globals, or builtins.
    names : frozenset of str
        What attributes that it reads may be called.
    asked : frozenset of str
        Those of them that need not be there: `hasattr` and `getattr` ask for them.
    imports : tuple of (str, int)
        Modules that it imports, with the level of a relative import.
    computed : bool
        Whether it reads attributes of objects by names that it computes.
    anywhere : bool
        Whether it reads those of modules so.
    filled : frozenset of str
        Globals and variables of enclosing functions that it does nothing with but to add to them.
    """

    globals: tuple[str, ...]
    names: frozenset[str]
    asked: frozenset[str]
    imports: tuple[tuple[str, int], ...]
    computed: bool
    anywhere: bool
    filled: frozenset[str]


@functools.cache
def reads(code: CodeType) -> Reads:
    """What a function's code names."""
    steps = list(dis.get_instructions(code))
    named: dict[str, None] = {}
    imports: dict[tuple[str, int], None] = {}
    names = {*code.co_names, *_strings(code.co_consts)}
    computed = anywhere = False
    used, filled, asked = set[str](), set[str](), set[str]()
    for at, step in enumerate(steps):
        if step.opname in _LOADING:
            after = steps[at + 1]
            adds = after.opname in ("LOAD_ATTR", "LOAD_METHOD") and after.argval in _ADDING
            (filled if adds else used).add(step.argval)
        if step.opname in _GLOBAL:
            named[step.argval] = None
            if step.argval in _BY_NAME:
                given = _arguments(steps, at)
                if _constant(given):
                    asked.add(given[1][0].argval)
                else:
                    computed = True
                    anywhere |= not _of_self(given, code)
        elif step.opname == "IMPORT_NAME":
            imports[step.argval, _level(steps[:at])] = None
        elif step.opname == "MATCH_CLASS":
            computed = True  # by `__match_args__`
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = reads(constant)
            named |= dict.fromkeys(inner.globals)
            imports |= dict.fromkeys(inner.imports)
            names |= inner.names
            asked |= inner.asked
            computed |= inner.computed
            anywhere |= inner.anywhere
            used |= {*inner.globals, *constant.co_freevars} - inner.filled
    anywhere |= not names.isdisjoint({"dir", "vars"})
    computed |= not names.isdisjoint(_REFLECTIVE)
    alone = frozenset(filled - used)
    seen = frozenset(names), frozenset(asked), tuple(imports)
    return Reads(tuple(named), *seen, computed, anywhere, alone)


def _strings(constants: Sequence[object]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple | frozenset):
            yield from _strings(tuple(constant))


def _level(before: Sequence[dis.Instruction]) -> int:
    """The level of an import: it is loaded before the names that are taken from the module."""
    loaded = [x.argval for x in before[-3:] if isinstance(x.argval, int) and x.opname != "RESUME"]
    return int(loaded[-1]) if loaded else 0


def _arguments(steps: Sequence[dis.Instruction], at: int) -> list[list[dis.Instruction]]:
    """What computes each argument of the call of a function that is loaded at a position.

    Empty where the function is not called there, or not by straight code.
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
            # What it takes from the stack belongs together with what it leaves.
            for extra in found[max(depth, 1) :]:
                found[max(depth, 1) - 1] += extra
            del found[max(depth, 1) :]
        if found:
            found[-1].append(step)
    return []


def _constant(arguments: Sequence[Sequence[dis.Instruction]]) -> bool:
    """Whether the name that a function such as `getattr` is called with is written down."""
    return len(arguments) > 1 and [x.opname for x in arguments[1]] == ["LOAD_CONST"]


def _of_self(arguments: Sequence[Sequence[dis.Instruction]], code: CodeType) -> bool:
    """Whether the first argument is the first of the function's own: a method's object."""
    if not arguments or len(arguments[0]) != 1 or not code.co_argcount:
        return False
    (load,) = arguments[0]
    return load.opname.startswith("LOAD_FAST") and load.argval == code.co_varnames[0]
