"""A seeded generator of random programs, as source against a namespace ``xp``.

A program is straight-line Python that Wengert and a translation to another library both run. Each
line is run on NumPy as it is written, so that the next one knows shapes, dtypes and values: what is
given to a logarithm is positive, and nothing grows beyond bounds.
"""

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from tests.fuzz.engines import WENGERT
from wengert.tape.tensor import Tensor, untracked

__all__ = ["Program", "write"]

SHAPES = [(), (), (1,), (2,), (3,), (1, 3), (3, 1), (2, 3), (3, 2), (3, 3), (2, 1, 3), (2, 2, 2)]
#: What inputs of programs with special values are drawn from: kinks, ties and zeros.
KINKS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 1.0, 0.0]
WILD = [*KINKS, float("inf"), float("-inf"), float("nan"), 1e-3, 30.0, -30.0, 3.5, -0.5, 1.5]
BOUND = 20.0

Recipe = Callable[["Writer"], object]


class Program(NamedTuple):
    """Inputs, and the lines that compute ``outputs`` from them."""

    seed: int
    inputs: dict[str, np.ndarray[Any, Any]]
    lines: list[str]
    outputs: list[tuple[str, str]]  # a name, and how it is weighed in the loss
    special: str  # "": values of no account; "kinks": zeros and ties; "wild": infinities and nan
    features: frozenset[str]

    @property
    def source(self) -> str:
        """The program as a function of a namespace and its inputs."""
        body = [*self.lines, "total = 0.0"]
        for i, (name, weight) in enumerate(self.outputs):
            body.append(f"total = total + xp.number({weight.format(name)}) * {1 / (i + 1):.3f}")
        names = ", ".join(name for name, _ in self.outputs)
        text = "\n".join("    " + line for line in body)
        return f"def program(xp, {', '.join(self.inputs)}):\n{text}\n    return total, [{names}]\n"

    @property
    def snippet(self) -> str:
        """A program to paste: it prints the value and the gradients of both libraries."""
        arrays = (
            "\n".join(
                f"{name} = np.array({x.tolist()!r}, dtype='{x.dtype}')"
                for name, x in self.inputs.items()
            )
            .replace("nan", "np.nan")
            .replace("inf", "np.inf")
        )
        return (
            f"# seed {self.seed}\nimport numpy as np\nfrom tests.fuzz.judge import show\n"
            f"{arrays}\n{self.source}show(program, [{', '.join(self.inputs)}])\n"
        )


class Writer:
    """A program that grows."""

    def __init__(self, seed: int, avoid: frozenset[str] = frozenset()) -> None:
        self.seed, self.avoid = seed, avoid
        self.random = random.Random(seed)
        self.special = ""
        self.known: dict[str, Any] = {"xp": WENGERT}
        self.inputs: dict[str, np.ndarray[Any, Any]] = {}
        self.names: list[str] = []
        self.lines: list[str] = []
        self.features: set[str] = set()
        self._count = 0

    # -- drawing -----------------------------------------------------------------------------

    def choice(self, items: Sequence[Any]) -> Any:
        return items[int(self.random.random() * len(items))]

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def values(self, shape: tuple[int, ...], dtype: str, special: str) -> np.ndarray[Any, Any]:
        size = int(np.prod(shape))
        table = {"kinks": KINKS, "wild": WILD}.get(special, KINKS)
        if special:
            drawn = [self.choice(table) for _ in range(size)]
        else:
            drawn = [round(self.random.uniform(-2, 2), 3) for _ in range(size)]
        if dtype == "bool":
            return np.array([x > 0 for x in drawn]).reshape(shape)
        if dtype.startswith("complex"):
            more = [self.choice(table) if special else self.random.uniform(-2, 2) for _ in drawn]
            return np.array([complex(a, round(b, 3)) for a, b in zip(drawn, more, strict=True)],
                            dtype=dtype).reshape(shape)  # fmt: skip
        if dtype.startswith("int"):
            drawn = [self.choice([-2, -1, 1, 2, 3]) for _ in drawn]
        return np.array(drawn, dtype=dtype).reshape(shape)

    def value(self, name: str) -> Any:
        return self.known[name]

    def pick(self, kind: str = "inexact", ndim: int = 0, square: bool = False) -> str | None:
        """The name of a value: of a kind of dtype, with at least so many axes."""
        found = []
        for name in self.names:
            x = self.known[name]
            dtype = x.dtype
            if kind == "real":
                fits = dtype.kind == "real floating"
            elif kind == "inexact":
                fits = dtype.inexact
            elif kind == "complex":
                fits = dtype.complex
            else:
                fits = dtype.kind == kind
            if not fits or x.ndim < ndim or 0 in x.shape:
                continue
            if square and (x.ndim != 2 or x.shape[0] != x.shape[1]):
                continue
            found.append(name)
        if not found:
            return None
        # Late values are taken more often, so that programs grow deep.
        return found[-1] if self.chance(0.35) else self.choice(found)

    def partner(self, name: str, kind: str = "inexact") -> str:
        """A second operand that broadcasts with a first one: a value, or a number."""
        x = self.known[name]
        fitting = []
        for other in self.names:
            y = self.known[other]
            inexact = y.dtype.complex or y.dtype.kind == "real floating"
            if not inexact or (kind == "real" and y.dtype.complex):
                continue
            try:
                shape = np.broadcast_shapes(x.shape, y.shape)
            except ValueError:
                continue
            if len(shape) <= 3:
                fitting.append(other)
        if not fitting or self.chance(0.15):
            return self.number(x)
        return self.choice(fitting)

    def number(self, x: Any = None) -> str:
        """A Python or NumPy scalar."""
        kind = self.choice(["float", "float", "int", "numpy", "special"])
        if x is not None and x.dtype.complex and self.chance(0.3):
            return f"({round(self.random.uniform(-1, 1), 2)}+0.5j)"
        if kind == "int":
            return str(self.choice([2, 3, 1, -1]))
        if kind == "numpy":
            return f"np.float64({round(self.random.uniform(0.3, 2), 2)})"
        if kind == "special":
            return self.choice(["0.0", "1.0", "-1.0", "0.5", "1"])
        return str(round(self.random.uniform(-2, 2), 2))

    def axis(self, name: str, none: bool = True) -> str:
        n = self.known[name].ndim
        if none and (not n or self.chance(0.25)):
            return "None"
        return str(int(self.random.uniform(-n, n)) if n else 0)

    def axes(self, name: str) -> str:
        n = self.known[name].ndim
        if n >= 2 and self.chance(0.2):
            return "(0, -1)"
        return self.axis(name)

    # -- writing -----------------------------------------------------------------------------

    def fresh(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def add(self, *lines: str, name: str | None = None) -> bool:
        """Run lines, and keep them if they can be run; ``name`` is what they compute."""
        code = "\n".join(lines)
        exec(compile(code, "<line>", "exec"), self.known)
        if name is None:
            name = lines[0].partition(" = ")[0]
        x = self.known.get(name)
        if not isinstance(x, Tensor) or x.size > 64 or x.ndim > 4:
            return False
        if x.dtype.inexact and (line := self.bounded(name, x._array)):
            lines = (*lines, line)
            exec(compile(line, "<line>", "exec"), self.known)
        self.lines += lines
        if name not in self.names:
            self.names.append(name)
        return True

    def bounded(self, name: str, array: np.ndarray[Any, Any]) -> str | None:
        """A line that keeps a value within bounds, where it is not."""
        size = np.max(np.abs(array), initial=0, where=np.isfinite(array))
        return f"{name} = xp.tanh({name} * {2 / float(size):.3g})" if size > BOUND else None


def write(
    seed: int, table: Sequence[Recipe], weights: Sequence[int], avoid: frozenset[str] = frozenset()
) -> Program:
    """Write the program of a seed.

    Parameters
    ----------
    seed : int
        Which program.
    table, weights : sequence
        The recipes, and how often each is taken.
    avoid : frozenset of str
        Names of recipes to leave out.
    """
    w = Writer(seed, avoid)
    special = w.choice(["", "", "", "", "", "", "", "kinks", "kinks", "wild"])
    dtype = w.choice(["float64"] * 5 + ["float32"] * 2 + ["complex128", "mixed"])
    if special == "wild" and dtype in ("complex128", "mixed"):
        special = "kinks"  # what is infinite in one part has no one meaning
    w.special = special
    with warnings.catch_warnings(), np.errstate(all="ignore"), wg.use_backend("numpy"):
        warnings.simplefilter("ignore")
        for i in range(w.choice([1, 2, 2, 3])):
            kind = dtype
            if kind == "mixed":
                kind = w.choice(["float64", "float32", "complex128", "complex64"])
            x = w.values(w.choice(SHAPES), kind, special)
            name = f"x{i}"
            w.inputs[name] = x
            w.known[name] = untracked(x)
            w.names.append(name)
        w.known["np"] = np
        for _ in range(w.choice([2, 3, 4, 5, 6, 7, 8])):
            recipe = w.random.choices(table, weights)[0]
            if recipe.__name__ not in avoid:
                before = len(w.lines)
                recipe(w)
                if len(w.lines) > before:
                    w.features.add(recipe.__name__)
    outputs = []
    for name in w.names:
        x = w.known[name]
        if x.dtype.inexact and x.size:
            weight = "xp.sin({})" if not special and w.chance(0.4) else "{}"
            outputs.append((name, weight))
    return Program(seed, w.inputs, w.lines, outputs, special, frozenset(w.features))
