"""What statements random programs are made of: each recipe adds a line or a few, or nothing."""

import numpy as np

from tests.fuzz import functions as functions
from tests.fuzz.generator import Program, Writer, write
from tests.fuzz.table import TABLE, WEIGHTS, recipe
from wengert.tape.tensor import Tensor

__all__ = ["program"]

# -- elementwise ---------------------------------------------------------------------------------

SMOOTH = ["sin({})", "cos({})", "tanh({})", "square({})", "negative({})", "exp(xp.tanh({}))",
          "sinh(xp.tanh({}))", "cosh(xp.tanh({}))", "expm1(xp.tanh({}))", "positive({})",
          "reciprocal({} + 4)", "clone({})", "cube(xp.tanh({}))"]  # fmt: skip
REAL = ["atan({})", "asinh({})", "expit({})", "log1p(xp.square({}))", "log(xp.square({}) + 0.5)",
        "sqrt(xp.square({}) + 0.25)", "log2(xp.square({}) + 1)", "log10(xp.square({}) + 1)",
        "erf({})", "erfc({})", "gelu({})", "silu({})", "softplus({})", "log_expit({})",
        "acos(xp.tanh({}) * 0.9)", "asin(xp.tanh({}) * 0.9)", "atanh(xp.tanh({}) * 0.9)",
        "logit(xp.expit({}) * 0.96 + 0.02)", "tan(xp.tanh({}))",
        "acosh(xp.square({}) + 1.5)"]  # fmt: skip
KINKS = ["abs({})", "relu({})",
         "leaky_relu({})", "elu({})", "clip({}, -1, 1)", "clip({}, 0.0)", "clip({}, None, 0.5)",
         "leaky_relu({}, 0.3)"]  # fmt: skip


JUMPS = ["sign({})", "floor({})", "ceil({})", "trunc({})", "round({})"]


def near_integers(x: Tensor) -> bool:
    """Whether rounding decides on which side of a jump a value is."""
    twice = 2 * x._array
    return bool(np.any(np.abs(twice - np.round(twice)) < 1e-4))


@recipe(10)
def unary(w: Writer) -> object:
    x = w.pick()
    real = not w.value(x).dtype.complex
    table = SMOOTH + (REAL + KINKS if real else [])
    if real and (x in w.inputs or not near_integers(w.value(x))):
        table = table + JUMPS
    return w.add(f"{w.fresh()} = xp.{w.choice(table).format(x)}")


@recipe(2)
def parts(w: Writer) -> object:
    x = w.pick("complex") or w.pick()
    of_complex = ["imag"] if w.value(x).dtype.complex else []
    return w.add(f"{w.fresh()} = xp.{w.choice(['real', 'conj', 'abs', *of_complex])}({x})")


BINARY = ["add", "subtract", "multiply", "multiply"]
REAL_BINARY = ["maximum", "minimum", "hypot", "logaddexp"]


@recipe(10)
def binary(w: Writer) -> object:
    x = w.pick()
    y = w.partner(x)
    pair = [x, y] if w.chance(0.6) else [y, x]
    return w.add(f"{w.fresh()} = xp.{w.choice(BINARY)}({', '.join(pair)})")


@recipe(6)
def real_binary(w: Writer) -> object:
    x = w.pick("real")
    if x is None:
        return None
    y = w.partner(x, "real")
    if w.chance(0.4):
        v = w.choice([
            f"atan2({x}, xp.square({x}) + 1)", f"xp.divide({x}, 4 + xp.square({x}))"[3:],
            f"pow(xp.square({x}) + 0.5, xp.tanh({y}))" if y in w.names else f"pow({x}, 2)",
            f"copysign({x}, {y})" if y in w.inputs else f"pow({x}, 3)",
            f"remainder({x}, 1.7)", f"xlogy(xp.square({x}), xp.square({x}) + 0.5)",
            f"pow({x}, 2.0)", f"pow(xp.square({x}) + 1, 1.5)", f"pow(2.0, xp.tanh({x}))",
        ])  # fmt: skip
        return w.add(f"{w.fresh()} = xp.{v}")
    return w.add(f"{w.fresh()} = xp.{w.choice(REAL_BINARY)}({x}, {y})")


@recipe(4)
def operators(w: Writer) -> object:
    x = w.pick()
    n = w.number()
    form = w.choice(["{x} * {n}", "{n} * {x}", "{x} + {n}", "{n} - {x}", "{x} / 3", "-{x}",
                     "{x} ** 2", "{x} ** 3", "{x} - {n}", "{x} * {x}"])  # fmt: skip
    return w.add(f"{w.fresh()} = {form.format(x=x, n=n)}")


@recipe(4)
def choose(w: Writer) -> object:
    x = w.pick("real")
    if x is None:
        return None
    y = w.partner(x, "real")
    condition = w.choice([f"{x} > {y}", f"{x} >= {y}", f"{x} > 0", f"xp.isfinite({x})"])
    a, b = (x, y) if w.chance(0.5) else (y, x)
    return w.add(f"{w.fresh()} = xp.where({condition}, {a}, {b})")


# -- reductions ----------------------------------------------------------------------------------


@recipe(7)
def reduction(w: Writer) -> object:
    x = w.pick()
    keep = ", keepdims=True" if w.chance(0.4) else ""
    table = ["sum", "mean"]
    if not w.value(x).dtype.complex:
        table += ["max", "min", "logsumexp", "linalg.vector_norm"]
    name = w.choice(table)
    return w.add(f"{w.fresh()} = xp.{name}({x}, axis={w.axes(x)}{keep})")


@recipe(2)
def spread(w: Writer) -> object:
    x = w.pick("real", ndim=1)
    if x is None:
        return None
    axis = w.axis(x)
    shape = w.value(x).shape
    count = w.value(x).size if axis == "None" else shape[int(axis)]
    correction = ", correction=1" if count > 1 and w.chance(0.5) else ""
    if count < 2:
        return None
    return w.add(f"{w.fresh()} = xp.{w.choice(['var', 'std'])}({x}, axis={axis}{correction})")


@recipe(3)
def product(w: Writer) -> object:
    x = w.pick("real")
    if x is None:
        return None
    return w.add(f"{w.fresh()} = xp.prod({x}, axis={w.axis(x)})")


@recipe(4)
def cumulative(w: Writer) -> object:
    x = w.pick("inexact", ndim=1)
    if x is None:
        return None
    name = w.choice(["cumulative_sum", "cumulative_prod"])
    if name == "cumulative_prod" and w.value(x).dtype.complex:
        name = "cumulative_sum"
    return w.add(f"{w.fresh()} = xp.{name}({x}, axis={w.axis(x, none=False)})")


@recipe(3)
def ordered(w: Writer) -> object:
    x = w.pick("real", ndim=1)
    if x is None:
        return None
    axis = w.axis(x, none=False)
    down = ", descending=True" if w.chance(0.3) else ""
    return w.add(f"{w.fresh()} = xp.sort({x}, axis={axis}{down})")


@recipe(4)
def normalised(w: Writer) -> object:
    x = w.pick("real", ndim=1)
    if x is None:
        return None
    return w.add(f"{w.fresh()} = xp.{w.choice(['softmax', 'log_softmax'])}({x}, axis={w.axis(x)})")


# -- shapes --------------------------------------------------------------------------------------


@recipe(8)
def shaped(w: Writer) -> object:
    x = w.pick("inexact", ndim=1)
    if x is None:
        return w.add(f"{w.fresh()} = xp.expand_dims({w.pick()}, axis=0)")
    a = w.value(x)
    n = a.ndim
    order = list(range(n))
    w.random.shuffle(order)
    axis = w.axis(x, none=False)
    forms = [
        f"reshape({x}, (-1,))",
        f"reshape({x}, (1, {a.size}))",
        f"permute_dims({x}, {tuple(order)})",
        f"expand_dims({x}, axis={axis})",
        f"flip({x}, axis={axis})",
        f"roll({x}, 1, axis={axis})",
        f"broadcast_to({x}, {(2, *a.shape)})",
        f"moveaxis({x}, {axis}, 0)",
        f"tile({x}, {(2,) * n})",
        f"repeat({x}, 2, axis={axis})",
    ]
    if a.shape[int(axis)] > 1:
        forms += [f"diff({x}, axis={axis})"] * 2
    if n >= 2:
        forms += [f"tril({x})", f"triu({x}, k=1)", f"matrix_transpose({x})"]
        forms.append(f"linalg.diagonal({x})")
    if 1 in a.shape:
        forms.append(f"squeeze({x}, axis={a.shape.index(1)})")
    if n <= 2:
        width = [(w.choice([0, 1]), w.choice([0, 1])) for _ in range(n)]
        forms.append(f"pad({x}, {width})")
    return w.add(f"{w.fresh()} = xp.{w.choice(forms)}")


@recipe(5)
def joined(w: Writer) -> object:
    x = w.pick()
    shape = w.value(x).shape
    same = [n for n in w.names if w.value(n).shape == shape and w.value(n).dtype.inexact]
    parts = [x, *[w.choice(same) for _ in range(w.choice([1, 1, 2]))]]
    axis = w.choice(range(-len(shape) - 1, len(shape) + 1))
    if shape and w.chance(0.5):
        axis = w.choice([*range(-len(shape), len(shape)), None])
        return w.add(f"{w.fresh()} = xp.concat([{', '.join(parts)}], axis={axis})")
    return w.add(f"{w.fresh()} = xp.stack([{', '.join(parts)}], axis={axis})")


@recipe(2)
def unstacked(w: Writer) -> object:
    x = w.pick("inexact", ndim=1)
    if x is None:
        return None
    axis = w.axis(x, none=False)
    at = w.choice(range(w.value(x).shape[int(axis)]))
    return w.add(f"{w.fresh()} = xp.unstack({x}, axis={axis})[{at}]")


@recipe(4)
def lists(w: Writer) -> object:
    """A list of Tensors and numbers, or a nest of them."""
    scalars = [n for n in w.names if not w.value(n).ndim and w.value(n).dtype.inexact]
    x = w.pick("inexact", ndim=1)
    elements = list(scalars)
    if x is not None:
        index = ", ".join(str(w.choice(range(n))) for n in w.value(x).shape)
        elements += [f"{x}[{index}]", f"xp.sum({x})"]
    first = w.choice(elements or [f"xp.sum({w.pick()})"])
    more = [first, w.choice(elements or [first]), str(w.choice([0.5, 1, -2.0]))]
    if w.chance(0.3):
        return w.add(f"{w.fresh()} = xp.asarray([[{first}, {more[1]}], [{more[2]}, {first} * 2]])")
    return w.add(f"{w.fresh()} = xp.asarray([{', '.join(more[: w.choice([2, 3])])}])")


@recipe(4)
def parameters(w: Writer) -> object:
    """Scalars as Tensors where functions have parameters."""
    p = next((n for n in reversed(w.names) if not w.value(n).ndim
              and w.value(n).dtype.kind == "real floating"), None)  # fmt: skip
    x = w.pick("real")
    if x is None:
        return None
    if p is None:
        p = f"xp.sum({x})"
    dtype = w.value(x).dtype
    forms = [f"full((2, 2), {p})"]
    if w.special != "wild":
        forms += [f"linspace(0.0, {p}, 4)", f"linspace({p}, 2.0, 3)"]
    if p not in w.names or w.value(p).dtype is dtype:
        forms += [f"leaky_relu({x}, {p})", f"clip({x}, {p})", f"clip({x}, None, {p})"]
    return w.add(f"{w.fresh()} = xp.{w.choice(forms)}")


# -- indexing and in place -----------------------------------------------------------------------


def _key(w: Writer, x: str, advanced: bool = True) -> str:
    a = w.value(x)
    parts = []
    listed = 0
    for n in a.shape:
        kind = w.random.random()
        if kind < 0.3 and n:
            parts.append(str(w.choice(range(-n, n))))
        elif kind < 0.6:
            parts.append(w.choice([":", "::-1", "1:", ":1", "::2", f":{n}"]))
        elif kind < 0.75 and advanced and not listed and n:
            listed += 1
            at = [w.choice(range(-n, n)) for _ in range(w.choice([1, 2, 3]))]
            parts.append(f"xp.integers({at})")
        else:
            parts.append(":")
    if listed:  # NumPy takes integers beside arrays for arrays, PyTorch does not
        parts = [f"{p}:" if p.lstrip("-").isdigit() else p for p in parts]
    while len(parts) > 1 and parts[-1] == ":" and w.chance(0.5):
        parts.pop()
    if w.chance(0.15):
        parts.insert(w.choice(range(len(parts) + 1)), "None")
    if w.chance(0.15) and not listed:
        parts = [*parts[:1], "..."]
    return ", ".join(parts) or "..."


def _steps_back(key: str) -> bool:
    return "::-1" in key


@recipe(7)
def indexed(w: Writer) -> object:
    x = w.pick("inexact", ndim=1)
    if x is None:
        return None
    key = _key(w, x)
    if _steps_back(key):  # which PyTorch has not
        key = key.replace("::-1", ":")
    return w.add(f"{w.fresh()} = {x}[{key}]")


@recipe(3)
def taken(w: Writer) -> object:
    x = w.pick("inexact", ndim=1)
    if x is None:
        return None
    axis = w.axis(x, none=False)
    n = w.value(x).shape[int(axis)]
    at = [w.choice(range(n)) for _ in range(w.choice([1, 2, 3]))]
    if w.chance(0.3):
        mask = [w.chance(0.6) for _ in range(w.value(x).shape[0])]
        if any(mask):
            return w.add(f"{w.fresh()} = {x}[xp.booleans({mask})]")
    return w.add(f"{w.fresh()} = xp.take({x}, xp.integers({at}), axis={axis})")


@recipe(6)
def assigned(w: Writer) -> object:
    x = w.pick()
    v = w.fresh()
    a = w.value(x)
    key = _key(w, x, advanced=False).replace("::-1", ":") if a.ndim else "..."
    key = key.replace("None, ", "").replace(", None", "")
    key = "..." if key == "None" else key
    scalars = [n for n in w.names if not w.value(n).ndim and w.value(n).dtype is a.dtype]
    value = w.choice([*scalars, w.number()]) if not w.chance(0.3) else f"{x}[{key}] * 2"
    if value.startswith("("):
        value = "0.5"
    op = w.choice(["=", "=", "+=", "*=", "-="])
    lines = [f"{v} = xp.own(xp.clone({x}))"]
    if w.chance(0.4):
        lines.append(f"{v}a = xp.exp(xp.tanh({v}))")
    return w.add(*lines, f"{v}[{key}] {op} {value}", name=v) and (
        w.names.append(f"{v}a") if len(lines) > 1 else None
    )


@recipe(6)
def updated(w: Writer) -> object:
    """An operator in place, on a value of its own or a view."""
    x = w.pick()
    v = w.fresh()
    a = w.value(x)
    key = _key(w, x, advanced=False).replace("::-1", ":") if a.ndim else "..."
    view = w.choice([f"{x}[{key}]", f"xp.reshape({x}, (-1,))", f"xp.tanh({x})", f"{x} * 2"])
    same = [n for n in w.names if w.value(n).dtype is a.dtype and not w.value(n).ndim]
    other = w.choice([*same, str(round(w.random.uniform(0.5, 2), 2)), "2"])
    op = w.choice(["+=", "*=", "-=", "/="])
    if op == "/=":
        other = "2.5"
    return w.add(f"{v} = xp.own({view})", f"{v} {op} {other}")


# -- linear algebra ------------------------------------------------------------------------------


@recipe(5)
def products(w: Writer) -> object:
    x = w.pick("inexact", ndim=1)
    if x is None:
        return None
    a = w.value(x)
    forms = [f"vecdot({x}, {x})"] if not a.dtype.complex else []
    for y in w.names:
        b = w.value(y)
        if not (b.dtype.inexact and b.ndim):
            continue
        if w.special == "wild" and (a.dtype.complex or b.dtype.complex):
            continue  # how complex numbers are multiplied is the library's affair
        stacked = b.ndim < 3 or a.ndim < 3 or a.shape[0] == b.shape[0]
        if stacked and a.shape[-1] == b.shape[-2 if b.ndim > 1 else 0]:
            forms.append(f"matmul({x}, {y})")
        if a.shape[-1] == b.shape[0]:
            forms.append(f"tensordot({x}, {y}, axes=1)")
        if a.ndim == b.ndim == 1:
            forms.append(f"linalg.outer({x}, {y})")
        if a.ndim == 2 and b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype is b.dtype:
            forms.append(f"einsum('ij,jk->ki', {x}, {y})")
    if a.ndim == 2:
        forms += [f"matmul({x}, xp.matrix_transpose({x}))", f"einsum('ij->j', {x})"]
        forms.append(f"einsum('ij,ij->i', {x}, {x})")
    return w.add(f"{w.fresh()} = xp.{w.choice(forms)}") if forms else None


@recipe(3)
def matrices(w: Writer) -> object:
    x = w.pick("inexact", square=True)
    if x is None or w.special == "wild":  # NumPy gives nan where PyTorch raises
        return None
    n = w.value(x).shape[0]
    t = w.fresh()
    eye = f"xp.astype(xp.eye({n}), {x}.dtype)"
    if not w.add(f"{t} = xp.tanh({x}) + {eye} * 4" if not w.value(x).dtype.complex
                 else f"{t} = {x} * 0.1 + {eye} * 4"):  # fmt: skip
        return None
    form = w.choice([f"inv({t})", f"det({t})", f"solve({t}, {x})", f"trace({x})",
                     f"solve(xp.triu({t}), {x})",
                     f"cholesky(xp.matmul({t}, xp.conj(xp.matrix_transpose({t}))))"])  # fmt: skip
    return w.add(f"{w.fresh()} = xp.linalg.{form}")


# -- dtypes, constants and the tape --------------------------------------------------------------


@recipe(3)
def converted(w: Writer) -> object:
    x = w.pick()
    kinds = ["complex64", "complex128"] if w.value(x).dtype.complex else [
        "float32", "float64", "complex128", "float64"]  # fmt: skip
    return w.add(f"{w.fresh()} = xp.astype({x}, xp.{w.choice(kinds)})")


@recipe(3)
def constants(w: Writer) -> object:
    """Integers and truth values among the operands."""
    x = w.pick()
    a = w.value(x)
    n = a.shape[-1] if a.ndim else 1
    drawn = [w.choice([-2, 0, 1, 3]) for _ in range(n)]
    truths = [k > 0 for k in drawn]
    form = w.choice([f"xp.multiply({x}, xp.astype(xp.integers({drawn}), {x}.dtype))",
                     f"xp.where(xp.booleans({truths}), {x}, {x} * 2)",
                     f"xp.add({x}, xp.astype(xp.booleans({truths}), {x}.dtype))",
                     f"xp.multiply({x}, xp.ones_like({x}))",
                     f"{x} + xp.zeros_like({x})"])  # fmt: skip
    return w.add(f"{w.fresh()} = {form}")


@recipe(3)
def constant(w: Writer) -> object:
    """What is not followed."""
    x = w.pick()
    v = w.fresh()
    if w.chance(0.5):
        return w.add(f"{v} = {x}.detach() * 1.5")
    return w.add("with xp.no_grad():", f"    {v} = xp.sin({x}) * 2", name=v)


@recipe(2)
def segments(w: Writer) -> object:
    x = w.pick()
    return w.add(f"{w.fresh()} = xp.checkpoint(lambda a: xp.sin(a) * xp.cos(a * 0.5), {x})")


# -- in place on views, without a copy ----------------------------------------------------------


@recipe(2)
def views(w: Writer) -> object:
    """What differs by design: Wengert's views keep to themselves, and it warns of that."""
    found = [n for n in w.names if n not in w.inputs and w.value(n).dtype.inexact]
    if not found:
        return None
    x = w.choice(found)
    a = w.value(x)
    if not a.ndim:
        return None
    v = w.fresh()
    key = _key(w, x, advanced=False).replace("::-1", ":")
    view = w.choice([f"{x}[{key}]", f"xp.reshape({x}, (-1,))", f"{x}.detach()",
                     f"xp.expand_dims({x}, axis=0)", f"xp.flip({x}, axis=0)"])  # fmt: skip
    op = w.choice(["+=", "*=", "-="])
    return w.add(f"{v} = {view}", f"{w.choice([v, v, x])} {op} 1.5", name=v)


@recipe(2)
def promoted(w: Writer) -> object:
    """Integers and truth values among floating operands, whose dtype PyTorch's rule decides."""
    x = w.pick()
    a = w.value(x)
    n = a.shape[-1] if a.ndim else 1
    drawn = [w.choice([-2, 1, 3]) for _ in range(n)]
    other = w.choice([f"xp.integers({drawn})", f"xp.booleans({[k > 0 for k in drawn]})"])
    form = w.choice(["multiply({x}, {o})", "add({o}, {x})", "multiply(xp.multiply({o}, 0.5), {x})",
                     "add(xp.divide({o}, 4), {x})"])  # fmt: skip
    return w.add(f"{w.fresh()} = xp.{form.format(x=x, o=other)}")


def program(seed: int, avoid: frozenset[str] = frozenset()) -> Program:
    """The program of a seed, without the recipes named in ``avoid``."""
    return write(seed, TABLE, WEIGHTS, avoid)
