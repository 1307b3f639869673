"""Recipes of functions of several arguments: transforms, spectra, losses, sums into places."""

from tests.fuzz.generator import Writer
from tests.fuzz.table import recipe

__all__: list[str] = []


@recipe(3)
def nested(w: Writer) -> object:
    """Transforms within what is differentiated."""
    x = w.pick("real")
    if x is None:
        return None
    y = w.partner(x, "real")
    inside = w.choice(
        [
            "xp.sum(xp.multiply(xp.sin(a), {y}))",
            "xp.sum(xp.multiply(a, xp.tanh({y})) * a)",
            "xp.sum(a**3)",
        ]
    )
    if y not in w.names:
        inside = "xp.sum(xp.cos(a) * xp.tanh(a))"
    function = f"lambda a: {inside.format(y=y)}"
    form = w.choice([f"gradient({function}, {x})", f"pushed({function}, {x})"])
    return w.add(f"{w.fresh()} = xp.{form}")


@recipe(3)
def spectra(w: Writer) -> object:
    x = w.pick("real", ndim=2)
    if x is None or w.special:  # at equal eigenvalues there is no derivative
        return None
    a = w.value(x)
    if a.ndim != 2 or min(a.shape) < 1 or a.shape[0] > 3 or a.shape[1] > 3:
        return None
    n = a.shape[0]
    t = w.fresh()
    eye = f"xp.astype(xp.asarray({[1.0, 2.5, 4.5][:n]}), {x}.dtype)"
    if not w.add(f"{t} = xp.matmul({x}, xp.matrix_transpose({x})) * 0.05 + {eye} * "
                 f"xp.astype(xp.eye({n}), {x}.dtype)"):  # fmt: skip
        return None
    form = w.choice([f"linalg.eigvalsh({t})", f"linalg.svdvals({t})", f"linalg.slogdet({t})[1]",
                     f"linalg.matrix_norm({x})", f"linalg.pinv({t})",
                     f"linalg.matrix_power({t}, 2)"])  # fmt: skip
    return w.add(f"{w.fresh()} = xp.{form}")


@recipe(3)
def losses(w: Writer) -> object:
    x = w.pick("real", ndim=1)
    if x is None:
        return None
    a = w.value(x)
    same = [n for n in w.names if w.value(n).shape == a.shape and w.value(n).dtype is a.dtype]
    y = w.choice(same)
    reduction = w.choice(["mean", "sum", "none"])
    more = f", reduction='{reduction}'"
    forms = [f"mse_loss({x}, {y}{more})", f"l1_loss({x}, {y}{more})",
             f"binary_cross_entropy_with_logits({x}, xp.expit({y}){more})"]  # fmt: skip
    if a.ndim == 2:
        at = [w.choice(range(a.shape[1])) for _ in range(a.shape[0])]
        forms += [f"cross_entropy({x}, xp.integers({at}){more})"] * 2
        forms.append(f"cross_entropy({x}, xp.integers({at}){more}, label_smoothing=0.2)")
    return w.add(f"{w.fresh()} = xp.nn.{w.choice(forms)}")


@recipe(2)
def added(w: Writer) -> object:
    """Sums into places that come more than once."""
    x = w.pick("inexact", ndim=1)
    if x is None:
        return None
    a = w.value(x)
    at = [w.choice(range(a.shape[0])) for _ in range(w.choice([1, 2, 3]))]
    same = [n for n in w.names if not w.value(n).ndim and w.value(n).dtype is a.dtype]
    if not same:
        return None
    return w.add(f"{w.fresh()} = xp.add_at({x}, xp.integers({at}), {w.choice(same)})")


@recipe(2)
def scattered(w: Writer) -> object:
    """Assignment by integers, each once, and by a mask."""
    x = w.pick("inexact", ndim=1)
    if x is None:
        return None
    a = w.value(x)
    n = a.shape[0]
    at = list(range(n))
    w.random.shuffle(at)
    same = [m for m in w.names if not w.value(m).ndim and w.value(m).dtype is a.dtype]
    value = w.choice([*same, "0.5", "2"])
    key = w.choice([f"xp.integers({at[: w.choice([1, n])]})",
                    f"xp.booleans({[w.chance(0.5) for _ in at]})"])  # fmt: skip
    op = w.choice(["=", "+=", "*="])
    v = w.fresh()
    return w.add(f"{v} = xp.own(xp.clone({x}))", f"{v}[{key}] {op} {value}")


@recipe(2)
def quantiles(w: Writer) -> object:
    x = w.pick("real", ndim=1)
    if x is None or w.special:
        return None
    q = w.choice([0.25, 0.5, 0.9, 0.0, 1.0])
    return w.add(f"{w.fresh()} = xp.quantile({x}, {q}, axis={w.axis(x)})")


@recipe(2)
def along(w: Writer) -> object:
    x = w.pick("inexact", ndim=1)
    if x is None or w.value(x).dtype.complex:
        return None
    axis = w.axis(x, none=False)
    arg = w.choice(
        [f"xp.argsort({x}, axis={axis})", f"xp.zeros({w.value(x).shape}, dtype=xp.int64)"]
    )
    return w.add(f"{w.fresh()} = xp.take_along_axis({x}, {arg}, axis={axis})")


@recipe(2)
def empty(w: Writer) -> object:
    """Parts without elements."""
    x = w.pick("inexact", ndim=1)
    if x is None:
        return None
    form = w.choice(["xp.concat([{x}[:0], {x}], axis=0)", "xp.sum({x}[:0], axis=0)",
                     "xp.sum({x}[..., :0]) + xp.sum({x})",
                     "xp.prod({x}[:0] * 2, axis=0)"])  # fmt: skip
    return w.add(f"{w.fresh()} = {form.format(x=x)}")
