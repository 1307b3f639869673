"""Saving: a program as a Python file that needs only its array library and NumPy."""

import ast
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from wengert.backends import Backend
from wengert.compiler.capture.recorded import Recording
from wengert.compiler.capture.trace import effect_of
from wengert.compiler.emission.emit import Emitted, emit, fold, spell_tuple
from wengert.compiler.emission.exported import ExportedProgram, exported_program, present
from wengert.compiler.emission.sources import Sources
from wengert.compiler.emission.spelling import Names, conditions, identifier, plain
from wengert.compiler.libraries import library_of
from wengert.compiler.program import Program
from wengert.compiler.state import State
from wengert.func.trees import TreeDef

__all__ = ["save"]

#: Names that the file's own code uses.
_TAKEN: Final = {"Any", "Path", "_check", "file", "held", "math", "program", "state"}


def save(
    path: str | Path,
    name: str,
    program: Program,
    recording: Recording,
    state: State,
    names: Sequence[str],
) -> None:
    """Write a program as a Python file, and the state in an ``.npz`` file beside it.

    The program is what the passes for all libraries have made of the recording's. The arguments'
    leaves have these ``names``.

    Raises
    ------
    ValueError
        If the program depends on a changing number's value, changes its arguments, belongs to
        several libraries, draws, or calls something that can't be written down. No file is written
        then.
    """
    backend = recording.backend
    if backend is None:
        raise ValueError(f"{name} can't be saved: it is a program of several libraries")
    path = Path(path)
    for step in program.instructions:
        if effect_of(step.name) == "exchanges":
            raise ValueError(
                f"{step.name} can't be written into a file that runs without wengert: it is a "
                "collective"
            )
        if effect_of(step.name) == "draws":
            raise ValueError(
                f"{name} can't be saved: it draws random numbers, and their generator stays here; "
                "draw them outside, and pass them as arguments"
            )
    part = exported_program(name, program, recording, state, names)
    text, arrays = _Module(part, state, backend, name, path).write()
    with path.with_suffix(".npz").open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    path.write_text(text, encoding="utf-8")


class _Module:
    """Writes the text of the file."""

    def __init__(
        self, part: ExportedProgram, state: State, backend: Backend, name: str, path: Path
    ) -> None:
        self.backend, self.data = backend, path.with_suffix(".npz").name
        self.library = library_of(backend)
        self.state = {
            at: present(ref, state) for at, ref in enumerate(part.refs) if at not in part.arguments
        }
        self.part = part
        self.emitted: Emitted = emit(part.program, backend, name="program")
        used = {x.id for x in ast.walk(ast.parse(self.emitted.source)) if isinstance(x, ast.Name)}
        self.names = Names({*used, *_TAKEN})
        self.name = self.names.new(identifier(name))
        self.sources = Sources(backend, self.names)
        self.arrays: dict[str, Any] = {}

    def write(self) -> tuple[str, dict[str, Any]]:
        """The module, and the arrays that it reads."""
        definitions = self.sources.definitions
        for bound, x in self.emitted.bound.items():
            # The class np.int64 has both names, too.
            if hasattr(x, "dtype") and hasattr(x, "shape") and not isinstance(x, type):
                definitions.append(f"{bound} = {self._array(bound, x)}")
            else:
                self.sources.define(x, bound, bound)
        state = self._state()
        call = self._call()
        self.arrays |= self.sources.arrays
        lines = self.emitted.source.splitlines()
        imports = {line for line in lines if line.startswith("import ")}
        of_numpy = self.library.of_numpy.partition(".")[0]
        for path, short in (("numpy", "np"), *self.library.modules):
            if short in ("np", "jax", of_numpy):
                self.sources.module(path, short)
        imports |= self.sources.imports
        body = "\n".join([line for line in lines if not line.startswith("import ")]).strip()
        head = [
            f'"""The program of {self.name}, as wengert.compile has recorded it.\n',
            "A call runs it on `state`, and keeps there what becomes of that.",
            '"""\n',
            "from __future__ import annotations\n",
            *sorted(imports),
            "from pathlib import Path",
            "from typing import Any",
        ]
        parts = ["\n".join(head)]
        if self.backend.name == "jax":
            parts.append('jax.config.update("jax_enable_x64", True)')
        if self.arrays:
            parts.append(
                f"with np.load(Path(__file__).with_name({_quote(self.data)})) as file:\n"
                "    held = dict(file)"
            )
        parts += _paragraphs(definitions)
        parts += [body, state, *call]
        return "\n\n\n".join(parts) + "\n", self.arrays

    def _array(self, wanted: str, x: Any) -> str:
        """An expression for an array, which is stored in the ``.npz`` file."""
        key = wanted
        while key in self.arrays:
            key += "_"
        self.arrays[key] = self.backend.to_numpy(self.backend.array(x))
        return self.library.of_numpy.format(f"held[{_quote(key)}]")

    def _state(self) -> str:
        """The dict of the state."""
        keys, lines = Names(), []
        self.keys: dict[int, str] = {}
        for at, x in self.state.items():
            self.keys[at] = key = keys.new(self.part.program.inputs[at].name or f"x{at}")
            made = self._array(key, x) if hasattr(x, "dtype") else self.sources.literal(x, {})
            lines.append(f"    {_quote(key)}: {made},")
        return "\n".join(["state = {", *lines, "}"]) if lines else "state = {}"

    def _call(self) -> list[str]:
        """The public function of the file, and the check of its arguments."""
        part, inputs = self.part, self.part.program.inputs
        local = Names({*_TAKEN, self.name})
        given = {at: local.new(identifier(inputs[at].name)) for at in part.arguments}
        lines = [f"def {self.name}({', '.join(given.values())}):"]
        lines.append('    """Run the program on the state, and keep what becomes of it."""')
        checked = False
        for at, name in given.items():
            if inputs[at].shape is not None:
                checked = True
                kind = f"{inputs[at].shape}, {_quote(str(inputs[at].dtype))}"
                lines.append(f"    _check({_quote(name)}, {name}, {kind})")
            elif at in part.pinned:
                number = part.pinned[at]
                other = f"== {name}" if number != number else f"!= {plain(number)}"
                lines.append(f"    if {name} {other}:")
                problem = f"{name} has to be {number!r} in this program, and not "
                lines.append(f"        raise ValueError({_quote(problem)} + repr({name}))")
        taken = [given.get(at) or f"state[{_quote(self.keys[at])}]" for at in range(len(inputs))]
        numbers = [taken[at] for at in part.deciding]
        refuse = lambda text: f"raise ValueError({_quote(f'this program is for {text}')})"
        lines += [f"    {line}" for line in conditions(part.decided, numbers, refuse, self.sources)]
        names = [
            local.new(f"answer_{i}" if i else "answer") for i in range(len(part.program.outputs))
        ]
        answered = len(names) - len(part.updates)
        for i, at in enumerate(part.updates):
            names[answered + i] = f"state[{_quote(self.keys[at])}]"
        call = f"program({', '.join(taken)})"
        lines += spell_tuple("    ", names, f" = {call}") if names else fold(f"    {call}")
        lines.append(f"    return {_spell_tree(part.answer, iter(names))}")
        return [_CHECK, "\n".join(lines)] if checked else ["\n".join(lines)]


_CHECK: Final = '''def _check(name, x, shape, dtype):
    """See that an argument is what the program is for."""
    if tuple(x.shape) != shape or str(x.dtype) != dtype:
        raise ValueError(
            f"{name} has the shape {tuple(x.shape)} and the dtype {x.dtype}; "
            f"this program is for {shape} and {dtype}"
        )'''


def _paragraphs(definitions: Sequence[str]) -> list[str]:
    """Definitions as paragraphs; those of one line are joined."""
    parts: list[str] = []
    for text in definitions:
        if parts and not parts[-1].startswith((" ", "@", "def ", "class ")) and "\n" not in text:
            parts[-1] += "\n" + text
        else:
            parts.append(text)
    return parts


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _spell_tree(structure: TreeDef, parts: Iterator[str]) -> str:
    """The expression that builds a tree."""
    if structure.cls is None:
        return next(parts)
    children = [_spell_tree(child, parts) for child in structure.children]
    if structure.cls is type(None):
        return "None"
    if structure.cls is list:
        return f"[{', '.join(children)}]"
    if structure.cls is tuple:
        return f"({children[0]},)" if len(children) == 1 else f"({', '.join(children)})"
    if structure.cls is dict and all(type(key) in (str, int) for key in structure.extra.keys):
        pairs = [f"{key!r}: {x}" for key, x in structure.extra.items(children)]
        return "{" + ", ".join(pairs) + "}"
    raise ValueError(
        f"a {structure.cls.__name__} is returned, and a file that runs without Wengert can return "
        "tuples, lists and dicts of names"
    )
