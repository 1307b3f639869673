"""Programs with scales from 1e-30 to 1e30 and of half precision, judged by `rounding`'s bounds."""

import math
import re
import warnings
from collections import Counter
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch

import wengert as wg
from tests.fuzz.engines import pytorch
from tests.fuzz.generator import SHAPES, Program, Writer
from tests.fuzz.judge import Answer, array_of, by_wengert, compiled, directions
from tests.fuzz.recipes import TABLE, WEIGHTS
from tests.fuzz.reducing import reduced
from tests.fuzz.rounding import RANGES, Noisy, Recorded, Rounded, Saturated, alike, change, outside
from tests.fuzz.run import Finding
from tests.fuzz.scaled import SCALED
from wengert.tape.tensor import untracked

__all__ = ["Reference", "block", "examine", "program", "rounded", "run", "show"]

DTYPES = ["float16"] * 3 + ["bfloat16"] * 2 + ["float32"] * 4 + ["float64", "complex64"]
#: Recipes that are left out: what differs by design, or computes in a precision of its own.
AVOID = {"views", "converted"}
#: Within which powers of ten a program's values are kept, by and large.
SPANS = {"float16": [1, 2, 4]}
SPAN = [2, 6, 12, 30]
NUMBERS = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)(?![\w.])")

#: How many noisy runs are looked at, until an answer is within bounds.
COUNTS = (2, 4, 24)
#: What has no bound where a matrix is nearly singular.
SOLVES = re.compile(r"linalg\.(inv|solve|det|slogdet|pinv|cholesky|matrix_power)")


def rounded(x: Any, dtype: str) -> Any:
    """Numbers as a dtype rounds them, in float64."""
    single = "float32" if dtype == "complex64" else dtype
    x = torch.as_tensor(x)
    if x.is_complex():
        return torch.view_as_complex(torch.as_tensor(rounded(torch.view_as_real(x), dtype))).numpy()
    return x.to(torch.float64).to(getattr(torch, single)).to(torch.float64).numpy()


class ScaledWriter(Writer):
    """A writer whose values keep to a range of scales, and whose constants the dtype has."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.dtype = self.choice(DTYPES)
        self.span = self.choice(SPANS.get(self.dtype, SPAN))
        self.refused: Counter[str] = Counter()

    def scale(self) -> str:
        return f"1e{round(self.random.uniform(-self.span, self.span))}"

    def input(self) -> np.ndarray[Any, Any]:
        kind = "float32" if self.dtype == "bfloat16" else self.dtype
        x = self.values(self.choice(SHAPES), kind, self.special).astype(
            "complex128" if kind.startswith("c") else "float64"
        )
        x = x * float(self.scale())
        if x.ndim and self.chance(0.15):  # a scale for each element
            x = x * np.reshape([float(self.scale()) for _ in x.ravel()], x.shape)
        return rounded(x, self.dtype).astype(kind)

    def add(self, *lines: str, name: str | None = None) -> bool:
        def kept(found: re.Match[str]) -> str:
            number = float(rounded(float(found[0]), self.dtype))
            return repr(number) if number and np.isfinite(number) else found[0]

        return super().add(*(NUMBERS.sub(kept, line) for line in lines), name=name)

    def bounded(self, name: str, array: np.ndarray[Any, Any]) -> str | None:
        size = float(np.max(np.abs(array), initial=0, where=np.isfinite(array)))
        if not size or abs(np.log10(size)) <= self.span or self.chance(0.2):
            return None
        number = float(rounded(float(self.scale()) / size, self.dtype))
        return f"{name} = {name} * {number!r}" if number and np.isfinite(number) else None

    def output(self, name: str) -> str:
        """How a value is weighed in the loss."""
        size = np.max(np.abs(self.known[name]._array), initial=0)
        if size < 10 and self.chance(0.2):
            return "xp.sin({})"
        number = float(rounded(1 / size, self.dtype)) if size else 0.0
        weighed = number and np.isfinite(number) and self.chance(0.7)
        return f"({{}} * {number!r})" if weighed else "{}"


def program(seed: int) -> tuple[Program, Counter[str]]:
    """The program of a seed, and which of its dtype's lines a library refused to run."""
    w = ScaledWriter(seed)
    w.special = w.choice([""] * 9 + ["kinks"])
    table = [*TABLE, *SCALED.table]
    weights = [*WEIGHTS, *SCALED.weights]
    with warnings.catch_warnings(), np.errstate(all="ignore"), wg.use_backend("numpy"):
        warnings.simplefilter("ignore")
        for i in range(w.choice([1, 2, 2, 3])):
            x = w.inputs[f"x{i}"] = w.input()
            w.known[f"x{i}"] = untracked(x)
            w.names.append(f"x{i}")
        w.known["np"] = np
        for _ in range(w.choice([1, 2, 3, 4, 5, 6])):
            recipe = w.random.choices(table, weights)[0]
            if recipe.__name__ in AVOID:
                continue
            before = len(w.lines)
            try:
                recipe(w)
            except Exception as error:
                w.refused[f"{type(error).__name__}: {error}"] += 1
            if len(w.lines) > before:
                w.features.add(recipe.__name__)
        found = [n for n in w.names if w.known[n].dtype.inexact and w.known[n].size]
        last = [n for n in found if n not in w.inputs][-3:] or found
        chosen = list(dict.fromkeys(w.choice(last) for _ in range(w.choice([1, 2]))))
        outputs = [(name, w.output(name)) for name in chosen]
    made = Program(seed, w.inputs, w.lines, outputs, w.special, frozenset(w.features), w.dtype)
    return made, w.refused


def run(made: Program, backend: str, forward: bool = True) -> Answer:
    """What Wengert gives on a backend."""
    dtype = wg.bfloat16 if made.dtype == "bfloat16" else None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return by_wengert(made, backend, forward=forward, dtype=dtype)


def reduced_by(losses: Any, reduction: str) -> Any:
    """The losses, or their sum or mean."""
    return losses if reduction == "none" else getattr(torch, reduction)(losses)


def _vector_norm(x: Any, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    # PyTorch's norm of a single number is its magnitude, without the quotients that norms have.
    if ord == 2 and isinstance(axis, int) and x.ndim and x.shape[axis] == 1:
        x = torch.cat([x, torch.zeros_like(x)], axis)
    return torch.linalg.vector_norm(x, ord=ord, dim=axis, keepdim=keepdims)


def _det(x: Any) -> Any:
    # PyTorch's derivative is by the SVD, which refuses complex numbers that are noisy.
    if not x.is_complex():
        return torch.linalg.det(x)
    turned, _, upper = torch.linalg.lu(x)
    sign = torch.linalg.det(turned.detach().real)
    return sign * torch.prod(torch.diagonal(upper, dim1=-2, dim2=-1), dim=-1)


class _Functional:
    """PyTorch's functions of networks, without their digits that are lost."""

    @staticmethod
    def gelu(x: Any, approximate: str = "none") -> Any:
        # PyTorch adds 1 and what is nearly -1.
        if approximate == "tanh":
            return x * torch.sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))
        return x * torch.special.ndtr(x)

    @staticmethod
    def cosine_similarity(x: Any, y: Any, dim: int = 1, eps: float = 1e-8) -> Any:
        # PyTorch's derivative is that of norms that are not clipped.
        norms = [torch.linalg.vector_norm(z, dim=dim, keepdim=True).clamp(min=eps) for z in (x, y)]
        return torch.sum(x / norms[0] * (y / norms[1]), dim=dim)

    @staticmethod
    def binary_cross_entropy(x: Any, y: Any, reduction: str = "mean") -> Any:
        # PyTorch's second derivative has 1e-12 beside its divisors.
        logarithms = torch.log(x).clamp(min=-100), torch.log1p(-x).clamp(min=-100)
        return reduced_by(-(y * logarithms[0] + (1 - y) * logarithms[1]), reduction)

    @staticmethod
    def binary_cross_entropy_with_logits(x: Any, y: Any, reduction: str = "mean") -> Any:
        # PyTorch's terms cancel where the loss is small.
        log = torch.nn.functional.logsigmoid
        return reduced_by(-(y * log(x) + (1 - y) * log(-x)), reduction)

    @staticmethod
    def pairwise_distance(x: Any, y: Any, p: float = 2.0, eps: float = 1e-6) -> Any:
        return _vector_norm(x - y + eps, axis=-1, ord=p)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.nn.functional, name)


def _i1e(x: Any) -> Any:
    # PyTorch's slope is constant below 2e-16, where the second derivative is -sign(x).
    near = torch.special.i1(x.clamp(-1, 1)) * torch.exp(-torch.abs(x))
    return torch.where(torch.abs(x) < 1, near, torch.special.i1e(x))


def _abs(x: Any) -> Any:
    # PyTorch's second derivative at 0 is 0, where there is none.
    if not x.is_complex():
        return torch.abs(x)
    return torch.linalg.vector_norm(torch.view_as_real(x.resolve_conj()), dim=-1)


def _hypot(x: Any, y: Any) -> Any:
    # PyTorch's slopes are nan where one side is infinite, and the other is lost beside it.
    x, y = (torch.as_tensor(a, dtype=torch.float64) for a in (x, y))
    first, second = (torch.isinf(a) & torch.isfinite(b) for a, b in ((x, y), (y, x)))
    a, b = torch.where(first | second, 1.0, x), torch.where(first | second, 1.0, y)
    return torch.where(first, x.abs(), torch.where(second, y.abs(), torch.hypot(a, b)))


def _logaddexp(x: Any, y: Any) -> Any:
    # PyTorch's second derivative divides by the square of what nearly overflows.
    log = torch.nn.functional.logsigmoid
    return torch.where(x > y, x - log(x - y), y - log(y - x))


_space: list[Any] = []


def _ways(made: Program) -> list[Any]:
    """The directions in which Wengert differentiates, as the dtype rounds them."""
    return [rounded(u, made.dtype) for u in directions(list(made.inputs.values()), 0)]


def _by_pytorch(made: Program, forward: bool) -> Answer:
    """What PyTorch gives in double precision, forward over reverse included."""
    if not _space:
        _space.append(pytorch())
        _space[0].nn = _Functional()
        _space[0].gelu = _Functional.gelu
        _space[0].abs, _space[0].hypot, _space[0].logaddexp = _abs, _hypot, _logaddexp
        # A copy, so that no other test has these functions.
        own = {"vector_norm": _vector_norm, "det": _det}
        _space[0].linalg = SimpleNamespace(**vars(_space[0].linalg) | own)
        _space[0].special = SimpleNamespace(**vars(torch.special) | {"i1e": _i1e})
        # PyTorch's own is linear above 20.
        _space[0].softplus = lambda x: -torch.nn.functional.logsigmoid(-x)
    xp = _space[0]
    wide = [x.astype("complex128" if x.dtype.kind == "c" else "float64")
            for x in made.inputs.values()]  # fmt: skip
    us = [torch.tensor(u) for u in _ways(made)]
    xs = [torch.tensor(x, requires_grad=True) for x in wide]
    function = compiled(made)
    ad = torch.autograd.forward_ad

    def first_of(total: Any, create_graph: bool) -> list[Any]:
        if not isinstance(total, torch.Tensor) or not total.requires_grad:
            return [torch.zeros_like(x) for x in xs]
        found = torch.autograd.grad(total, xs, create_graph=create_graph, allow_unused=True)
        return [torch.zeros_like(x) if g is None else g for g, x in zip(found, xs, strict=True)]

    total, outputs = function(xp, *xs)
    first = first_of(total, True)
    dot: Any = 0.0
    for g, u in zip(first, us, strict=True):
        if g.requires_grad:
            dot = dot + xp.number(g * u.conj())
    second = first_of(dot, False)
    tangent = product = None
    if forward:
        with ad.dual_level():
            duals = [ad.make_dual(x, u) for x, u in zip(xs, us, strict=True)]
            pushed = function(xp, *duals)[0]
            tangent = ad.unpack_dual(pushed).tangent
            tangent = array_of(torch.zeros_like(pushed) if tangent is None else tangent)
            product = []
            for g in first_of(pushed, True):
                t = ad.unpack_dual(g).tangent
                product.append(array_of(torch.zeros_like(g) if t is None else t))

    def arrays(found: Any) -> list[Any]:
        return [array_of(x) for x in found]

    return Answer(arrays(outputs), arrays(first), arrays(second), total.item(), tangent, product)


class Reference:
    """What PyTorch gives for a program in double precision, and how far rounding may move it.

    Parameters
    ----------
    made : Program
        The program.
    flushes : bool
        Whether the library that is judged gives zero for subnormal numbers, as XLA does.
    """

    def __init__(self, made: Program, flushes: bool = False) -> None:
        self.program = made
        self.range = RANGES[made.dtype]
        if flushes:
            self.range = self.range._replace(smallest=self.range.normal)
        # PyTorch's forward mode goes through both.
        self._us = _ways(made)
        self.forward = not re.search(r"no_grad|\.detach\(", made.source)
        recorded = Recorded()
        try:
            self.answer = self._run(recorded)
        except (RuntimeError, NotImplementedError):  # forward mode is not there for all functions
            self.forward = False
            recorded = Recorded()
            self.answer = self._run(recorded)
        self.forward = self.forward and self._consistent()
        sizes = recorded.sizes()
        least, most = float(sizes.min()), float(sizes.max())  # nan, if one is
        self._most = min(most, self.range.largest)
        self.within = least >= self.range.normal and most <= self.range.largest
        self._underflow = not least > 16 * self.range.normal
        self._noisy: list[Answer] = []
        self._tried = 0
        self._saturated: Answer | None = None
        self._singular = False  # what libraries give for a matrix of infinities is their own

    def _consistent(self) -> bool:
        """Whether PyTorch's forward mode agrees with its reverse mode, as not at all kinks."""
        answer = self.answer
        parts = [np.real(np.conj(g) * u) for g, u in zip(answer.first, self._us, strict=True)]
        size = sum(np.sum(np.abs(p)) for p in parts)
        pairs = [(answer.tangent, sum(map(np.sum, parts)), size)]
        products = zip(answer.product or [], answer.second, strict=True)
        pairs += [(p, s, np.abs(s)) for p, s in products]
        with np.errstate(all="ignore"):
            return all(np.all(np.abs(a - b) <= 1e-4 * s + 1e-9 * np.max(s, initial=0))
                       for a, b, s in pairs if np.all(np.isfinite(b)))  # fmt: skip

    def _slopes(self, runs: list[Answer]) -> float:
        """How far noise in the gradient moves the tangent, at most."""
        total = 0.0
        for i, (g, u) in enumerate(zip(self.answer.first, self._us, strict=True)):
            moved = change([run.first[i] for run in runs], g) + self.range.smallest
            total += float(np.sum(moved * np.abs(u)))
        return total

    def _run(self, mode: Any) -> Answer:
        with warnings.catch_warnings(), mode:
            warnings.simplefilter("ignore")
            return _by_pytorch(self.program, self.forward)

    def noisy(self, count: int) -> list[Answer]:
        while self._tried < count:
            self._tried += 1
            try:
                # Who computes in a wider range, or scales, rounds all the same.
                underflow = self._underflow and self._tried % 4 in (1, 2)
                self._noisy.append(self._run(Noisy(self.range, self._tried, underflow)))
            except RuntimeError:  # what is changed may leave a function's domain
                continue
        return self._noisy

    def saturated(self) -> Answer:
        if self._saturated is None:
            try:
                self._saturated = self._run(Saturated(self.range))
            except RuntimeError:  # a matrix of infinities has no inverse
                self._saturated = self.answer
                self._singular = SOLVES.search(self.program.source) is not None
        return self._saturated

    def absorbed(self) -> Answer:
        try:
            return self._run(Rounded(self.program.dtype))
        except RuntimeError:  # what is rounded may be singular
            return self.answer

    def differs(self, found: Answer) -> str | None:
        """What of an answer is outside of its bounds, in words."""
        for count in COUNTS:
            different = self._differs(found, count)
            if different is None:
                return None
        return different

    def _differs(self, found: Answer, count: int) -> str | None:
        parts = ["values", "first", "second"]
        if self.forward and found.tangent is not None:
            parts += ["tangent", "product"]

        def of(answer: Answer, what: str) -> list[Any]:
            part = getattr(answer, what)
            return [part] if what == "tangent" else part

        runs = self.noisy(count)
        if not runs:
            return None
        saturated = self.answer if self.within else self.saturated()
        if self._singular:
            return None
        for what in parts:
            for i, expected in enumerate(of(self.answer, what)):
                ours = of(found, what)[i]
                if ours.shape != expected.shape:
                    return f"{what}[{i}]: {ours.shape}, expected {expected.shape}"
                moved = change([of(run, what)[i] for run in runs], expected)
                with np.errstate(all="ignore"):
                    size = np.max(np.abs(expected), initial=0)
                    if "slogdet" in self.program.source:  # of whose logarithm 1 is a factor
                        size = min(size, 1.0)
                    lost = np.any(moved > 0.3 * size)
                if lost and SOLVES.search(self.program.source):
                    continue  # the matrix is singular, as far as rounding tells
                # Slopes are values, too, though PyTorch's forward mode may not compute them.
                if what == "product":
                    back = change([run.second[i] for run in runs], self.answer.second[i])
                    moved = np.maximum(moved, back) + self.range.smallest * self._most
                elif what == "second":  # the Hessian's elements, times a direction
                    moved = moved + self.range.smallest * sum(np.sum(np.abs(u)) for u in self._us)
                elif what == "tangent":
                    moved = moved + self._slopes(runs)
                there = of(saturated, what)[i]
                wide = ours.astype(expected.dtype)
                twice = what in ("second", "product")
                wrong = outside(wide, expected, moved, there, self.range, self.within, twice)
                if count == COUNTS[-1] and np.any(wrong):
                    there = of(self.absorbed(), what)[i]
                    wrong &= ~alike(wide, there, self.range)
                if np.any(wrong):
                    kind = "within" if self.within else "beyond"
                    return (f"{what}[{i}]: {ours.tolist()}, expected {expected.tolist()}; noise "
                            f"{np.asarray(moved).tolist()}; {kind} the range")  # fmt: skip
        return None


#: What a library says where it has no function of a dtype: an error, as it should be.
UNSUPPORTED = re.compile(r"float16|half|low precision|unsupported|expected a tensor", re.IGNORECASE)


def examine(seed: int, backends: tuple[str, ...] = (), forward: bool = True,
            short: bool = True) -> tuple[Counter[str], list[Finding]]:  # fmt: skip
    """Judge the program of a seed.

    Parameters
    ----------
    seed : int
        Which program.
    backends : tuple of str
        Which backends to run it on beside NumPy, or beside PyTorch if it is of bfloat16.
    forward : bool
        Whether to look at forward mode, too.
    short : bool
        Whether to reduce what is wrong.
    """
    counts: Counter[str] = Counter(programs=1)
    found: list[Finding] = []
    made, refused = program(seed)
    counts["statements"] += len(made.lines)
    counts[f"of {made.dtype}"] += 1
    counts["lines refused while writing"] += sum(refused.values())
    first = "torch" if made.dtype == "bfloat16" else "numpy"
    references: dict[bool, Reference] = {}
    for backend in dict.fromkeys([first, *backends]):
        if made.dtype == "bfloat16" and backend not in ("torch", "jax"):
            continue
        flushes = backend == "jax"
        try:
            reference = references.get(flushes) or Reference(made, flushes)
        except Exception as error:
            counts["refused by PyTorch"] += 1
            if not isinstance(error, RuntimeError | ValueError):
                found.append(Finding("PyTorch", f"{type(error).__name__}: {error}", made.snippet))
            return counts, found
        references[flushes] = reference
        counts["within the normal range" if reference.within else "beyond the normal range"] += 1
        counts[f"on {backend}"] += 1
        try:
            answer = run(made, backend, forward)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            if UNSUPPORTED.search(message) and made.dtype.endswith("float16"):
                counts["refused in half precision"] += 1
            elif reference.within:
                found.append(Finding(f"error on {backend}", message, made.snippet))
            else:
                counts["errors beyond the range"] += 1
            continue

        def wrong(one: Program, backend: str = backend, flushes: bool = flushes) -> str | None:
            if any(np.any(x != rounded(x, one.dtype)) for x in one.inputs.values()):
                return None  # a value that the dtype does not have, nor what Wengert gets
            return Reference(one, flushes).differs(run(one, backend, forward))

        different = reference.differs(answer)
        if different:
            least = made
            if short:
                least, message = reduced(made, wrong)
                different = message or different
            calls = sorted(set(re.findall(r"xp\.([\w.]+)\(|(\*\*|[-+*/]=)", least.source)))
            names = " ".join(sorted({a or b for a, b in calls} - {"number"}))
            kind = f"{backend} {made.dtype} {different.partition('[')[0]}: {names}"
            found.append(Finding(kind, different, least.snippet))
    return counts, found


def block(seeds: range, every: int, options: dict[str, Any]) -> Any:
    """Examine some programs: each ``every``-th on the other backends, too."""
    torch.set_num_threads(1)
    counts: Counter[str] = Counter()
    found: list[Finding] = []
    for seed in seeds:
        others = options["backends"] if seed % every == 0 else ()
        more, findings = examine(seed, others, options["forward"])
        counts.update(more)
        found += findings
    return counts, found


def show(function: Any, inputs: list[np.ndarray[Any, Any]], dtype: str, backend: str = "") -> None:
    """Print what Wengert and PyTorch in float64 give for a program that was pasted."""
    pasted = Pasted({f"x{i}": x for i, x in enumerate(inputs)}, function, dtype, "")
    answer = run(pasted, backend or ("torch" if dtype == "bfloat16" else "numpy"))
    reference = Reference(pasted)
    print(reference.differs(answer) or "within bounds")
    for what, value in answer._asdict().items():
        print(f"  {what}: {value}\n    by PyTorch {getattr(reference.answer, what)}")


class Pasted(NamedTuple):
    """As much of a program as is needed to run it."""

    inputs: dict[str, np.ndarray[Any, Any]]
    function: Any
    dtype: str
    source: str
