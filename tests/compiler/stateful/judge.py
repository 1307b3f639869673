"""Running a program twice, compiled and eager, and comparing all that there is after each line."""

import linecache
import re
import types
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from tests.compiler.bits import same_bits
from tests.compiler.stateful.generator import drawn
from tests.compiler.stateful.program import Program
from wengert.backends import backend_of
from wengert.compiler.capture.errors import CompileError
from wengert.compiler.compiled import Compiled
from wengert.compiler.state import is_array

__all__ = ["Finding", "judge_all", "judged"]

_files = count()


class Finding(NamedTuple):
    kind: str
    message: str
    program: Program
    at: int = -1

    @property
    def snippet(self) -> str:
        lines = [self.program.source(self.program.decorator)]
        for i, line in enumerate(self.program.script()):
            lines.append(line + ("  # <--" if i == self.at else ""))
        return "\n".join(lines)


class Seen(NamedTuple):
    state: list[tuple[str, Any]]
    error: BaseException | None


@lru_cache(4096)
def _compiled(line: str) -> Any:
    return compile(line, "<script>", "exec")


def run(program: Program, compiled: bool) -> list[Seen]:
    name = f"<stateful {next(_files)}>"
    source = program.source(program.decorator if compiled else "")
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space: dict[str, Any] = {"__name__": "program"}
    try:
        exec(compile(source, name, "exec"), space)
        found = []
        for line in program.script():
            error = None
            try:
                exec(_compiled(line), space)
            except Exception as raised:
                error = raised.with_traceback(None)
            found.append(Seen(frozen(space), error))
        return found
    finally:
        del linecache.cache[name]


def judged(program: Program, backend: str = "numpy") -> Finding | None:
    with warnings.catch_warnings(), np.errstate(all="ignore"), wg.use_backend(backend):
        warnings.simplefilter("ignore")
        eager = run(program, False)
        got = run(program, True)
    script = program.script()
    for i, (a, b) in enumerate(zip(eager, got, strict=True)):
        if isinstance(b.error, CompileError):  # the contract refuses it, in words
            return None if _helps(b.error) else Finding("no help", _told(b.error), program, i)
        if repr(type(a.error)) != repr(type(b.error)):
            return Finding(
                "raises" if b.error else "does not raise",
                f"{script[i]}: {_told(b.error)} compiled, {_told(a.error)} eagerly", program, i,
            )  # fmt: skip
        different = difference(a.state, b.state, same_bits if backend == "numpy" else _close)
        if different:
            return Finding("differs", f"{script[i]}: {different}", program, i)
    return None


#: What errors say that a user can do.
_REMEDIES = re.compile(
    r"\b(return|pass|make|use|detach|do|draw|leave|hold|keep|compute|decide|write|call|take|give)\b"
)


def _helps(error: BaseException) -> bool:
    return bool(_REMEDIES.search(str(error).lower()))


def _told(error: BaseException | None) -> str:
    return "nothing" if error is None else f"{type(error).__name__}: {str(error)[:600]}"


def judge_all(seeds: range) -> list[tuple[str, str, str]]:
    """What is wrong with the programs of some seeds: its kind, a message and a snippet."""
    found = []
    for seed in seeds:
        program = drawn(seed)
        try:
            finding = judged(program)
        except Exception as error:
            finding = Finding("writing", f"{type(error).__name__}: {error}", program)
        if finding is not None:
            found.append((finding.kind, f"seed {seed}: {finding.message}", finding.snippet))
    return found


# -- what there is -------------------------------------------------------------------------------

_SKIPPED = {"wg", "np", "F", "step", "made", "look", "make", "os"}


def frozen(space: dict[str, Any]) -> list[tuple[str, Any]]:
    """All that a program's names lead to, and the generators, as a list of places and values."""
    found: list[tuple[str, Any]] = []
    known: dict[int, str] = {}
    kept: list[Any] = []
    names = dict(space)
    if "look" in space:
        with suppress(NameError):
            names.update(space["look"]())
    for name, x in names.items():
        if name not in _SKIPPED and not name.startswith(("change", "__")):
            _freeze(name, x, found, known, kept)
    found.append(("generators", repr(wg.get_rng_state())))
    return found


def _copied(array: Any) -> Any:
    """An array in host memory; its class where it is none of a library, as a trace leaves it."""
    if not is_array(array):
        return repr(type(array))
    backend = backend_of(array)
    return np.array(backend.to_numpy(backend.array(array)))


#: Values that are compared as they are.
_PLAIN = {bool, int, float, complex, str, bytes, type(None)}


def _freeze(path: str, x: Any, found: list[Any], known: dict[int, str], kept: list[Any]) -> None:
    if isinstance(x, Compiled):
        x = x._function
    kind = type(x)
    if kind in _PLAIN or isinstance(x, np.generic):
        found.append((path, (kind, repr(x))))
        return
    if id(x) in known:
        found.append((path, ("same as", known[id(x)])))
        return
    if not isinstance(x, tuple):  # of equal tuples nobody has to tell which is which
        known[id(x)] = path
    kept.append(x)
    if isinstance(x, wg.Tensor):
        found.append((path, (kind, x.requires_grad, x.is_leaf)))
        found.append((path, _copied(x._array)))
        if x._grad is not None:
            _freeze(path + ".grad", x._grad, found, known, kept)
    elif isinstance(x, type | types.ModuleType):
        if getattr(x, "__module__", "") == "program" or x.__name__ == "lib":
            _inside(path, dict(vars(x)), found, known, kept)
    elif is_array(x):
        found.append((path, _copied(x)))
    elif isinstance(x, Mapping):
        found.append((path, (kind.__name__, len(x))))
        for i, (k, v) in enumerate(x.items()):
            _freeze(f"{path} key {i}", k, found, known, kept)
            _freeze(f"{path}[{i if isinstance(k, wg.Tensor) else k!r}]", v, found, known, kept)
    elif isinstance(x, list | tuple | deque):
        found.append((path, (kind.__name__, len(x))))
        for i, v in enumerate(x):
            _freeze(f"{path}[{i}]", v, found, known, kept)
    elif isinstance(x, set | frozenset):
        found.append((path, (kind.__name__, sorted(map(repr, x)))))
    elif isinstance(x, types.FunctionType):
        if x.__module__ == "program":
            cells = {}
            for name, cell in zip(x.__code__.co_freevars, x.__closure__ or (), strict=True):
                try:
                    cells[name] = cell.cell_contents
                except ValueError:
                    continue
            _inside(path, cells, found, known, kept)
            if x.__defaults__:
                _freeze(path + ".defaults", x.__defaults__, found, known, kept)
    else:
        found.append((path, ("a", kind.__name__)))
        if kind.__module__.split(".")[0] in ("program", "wengert", "types"):
            held = dict(getattr(x, "__dict__", {}))
            for slot in vars(kind).get("__slots__", ()) if kind.__module__ == "program" else ():
                if hasattr(x, slot):
                    held[slot] = getattr(x, slot)
            _inside(path, held, found, known, kept)


def _inside(path: str, held: dict[str, Any], found: Any, known: Any, kept: Any) -> None:
    for name, value in held.items():
        if not name.startswith("_") and name != "step":
            _freeze(f"{path}.{name}", value, found, known, kept)


def _close(x: Any, y: Any) -> bool:
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind not in "fc":
        return bool(np.array_equal(x, y))
    bound = 1e4 * np.finfo(x.dtype).eps
    size = float(np.max(np.abs(x), initial=1, where=np.isfinite(x)))
    return bool(np.allclose(x, y, rtol=bound, atol=bound * size, equal_nan=True))


def difference(
    a: list[tuple[str, Any]], b: list[tuple[str, Any]], same: Callable[[Any, Any], bool] = same_bits
) -> str:
    for (here, x), (there, y) in zip(a, b, strict=False):
        if here != there:
            return f"{here} eagerly, {there} compiled"
        if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
            if x.tobytes() == y.tobytes() and x.dtype == y.dtype and x.shape == y.shape:
                continue
            if not same(x, y):
                return f"{here} is {y} {y.dtype} compiled, {x} {x.dtype} eagerly"
        elif isinstance(x, np.ndarray) or isinstance(y, np.ndarray) or x != y:
            return f"{here} is {y} compiled, {x} eagerly"
    return "" if len(a) == len(b) else f"{len(b)} places compiled, {len(a)} eagerly"
