"""Recipes of programs with scales: what should not depend on scale, and many equal elements."""

from tests.fuzz.generator import Writer
from tests.fuzz.table import recipes

__all__ = ["SCALED"]

SCALED, recipe = recipes()

#: Functions of one real array, of any scale.
_ACTIVATIONS = """
    softsign mish selu hardswish hardsigmoid logsigmoid relu6
    hardtanh softplus gelu silu elu sigmoid tanh relu leaky_relu
"""
_ANYWHERE = """
    sin cos tan tanh atan asinh exp expm1 sinh cosh erf erfc expit log_expit square reciprocal abs
    special.ndtr special.log_ndtr special.i1e special.sinc special.erfcx special.entr
"""
_POSITIVE = "sqrt log log1p log2 log10 special.gammaln special.digamma special.entr"
UNARY = [
    *(f"nn.{name}({{}})" for name in _ACTIVATIONS.split()),
    *(f"{name}({{}})" for name in _ANYWHERE.split()),
    *(f"{name}(xp.abs({{}}))" for name in _POSITIVE.split()),
    "nn.gelu({}, approximate='tanh')", "nn.softplus({}, beta=0.5)",
    "exp(-xp.abs({}))", "asin(xp.tanh({}))", "atanh(xp.tanh({}))", "acosh(xp.abs({}) + 1.0)",
    "pow(xp.abs({}), 0.3)", "pow(xp.abs({}), -1.5)", "pow({}, 3)", "pow({}, -1)", "pow({}, -2.0)",
    "logit(xp.expit({}))", "special.erfinv(xp.tanh({}))", "special.ndtri(xp.expit({}))",
    "special.xlogy({0}, xp.abs({0}))", "special.xlog1py({0}, xp.abs({0}))",
]  # fmt: skip


@recipe(10)
def elementwise(w: Writer) -> object:
    x = w.pick("real")
    return x and w.add(f"{w.fresh()} = xp.{w.choice(UNARY).format(x)}")


@recipe(14)
def rescaled(w: Writer) -> object:
    return w.add(f"{w.fresh()} = {w.pick()} * {w.scale()}")


@recipe(6)
def quotients(w: Writer) -> object:
    x = w.pick("real")
    if x is None:
        return None
    y = w.partner(x, "real")
    form = w.choice(["divide({x}, {y})", "divide({y}, {x})", "divide({x}, abs({y}) + {c})",
                     "atan2({x}, {y})", "hypot({x}, {y})", "multiply({x}, {y})",
                     "subtract({x}, {y})", "logaddexp({x}, {y})"])  # fmt: skip
    return w.add(f"{w.fresh()} = xp.{form.format(x=x, y=y, c=w.scale())}")


@recipe(14)
def homogeneous(w: Writer) -> object:
    """Norms and deviations, and what is divided by them."""
    x = w.pick("real", ndim=1)
    if x is None:
        return None
    shape = w.value(x).shape
    n, axis = shape[-1], w.axis(x, none=False)
    c = w.choice(["1e-5", "1e-12", "1e-30", "0.0"])
    order = w.choice(["1", "2", "2", "3", "float('inf')", "1.5", "4"])
    forms = [
        f"linalg.vector_norm({x}, axis={axis}, ord={order})",
        f"nn.normalize({x}, dim={axis}, eps=1e-30)",
        f"nn.normalize({x}, p={w.choice(['1.0', '3.0'])}, dim={axis})",
        f"nn.rms_norm({x}, ({n},), eps={c})",
        f"sqrt(xp.mean(xp.square({x}), axis={axis}))",
    ]
    if n > 1:
        forms += [
            f"std({x}, axis=-1, correction={w.choice(['0', '1'])})",
            f"var({x}, axis=-1, correction={w.choice(['0', '1'])})",
            f"nn.layer_norm({x}, ({n},), eps={c})",
            f"std({x}, axis=None)",
        ]
    if n > 1 and len(shape) == 3:
        forms += [f"nn.group_norm({x}, 1, eps={c})", f"nn.instance_norm({x}, eps={c})"]
    if shape[0] > 1 and len(shape) in (2, 3):
        forms.append(
            f"nn.batch_norm({x}, None, None, training=True, eps={c if c != '0.0' else '1e-30'})"
        )
    same = [
        m for m in w.names if w.value(m).shape == shape and w.value(m).dtype is w.value(x).dtype
    ]
    y = w.choice(same)
    if y != x:
        forms += [f"nn.cosine_similarity({x}, {y}, dim={axis})",
                  f"nn.pairwise_distance({x}, {y}, eps={c})",
                  f"nn.pairwise_distance({x}, {y}, p={w.choice(['1.0', '3.0'])})"]  # fmt: skip
    if len(shape) == 2:
        forms += [
            f"linalg.matrix_norm({x})",
            f"linalg.matrix_norm({x}, ord={w.choice(['1', '2'])})",
        ]
    return w.add(f"{w.fresh()} = xp.{w.choice(forms)}")


@recipe(5)
def counted(w: Writer) -> object:
    """Averages of more elements than half precision counts, and what shares gradients."""
    x = w.pick("real")
    if x is None or w.value(x).size > 4:
        return None
    many = f"xp.broadcast_to({x}, {(w.choice([300, 3000, 70000]), *w.value(x).shape)})"
    form = w.choice(["mean({}, axis=0)", "mean(xp.square({}), axis=0)", "max({}, axis=0)",
                     "min({}, axis=None)", "mean({}, axis=None)",
                     "std({}, axis=0)", "softmax({}, axis=0)[:2]", "log_softmax({}, axis=0)[0]",
                     "logsumexp({}, axis=0)", "linalg.vector_norm({}, axis=0)",
                     "var({}, axis=None)",
                     "nn.mse_loss({0}, {0} * 0.5)", "nn.l1_loss({0}, {0} * 0.5)",
                     "nn.softplus(xp.mean({}, axis=0))",
                     "nn.avg_pool1d(xp.reshape({0}, (1, 1, -1)), 300)[..., 0]"])  # fmt: skip
    return w.add(f"{w.fresh()} = xp.{form.format(many)}")


@recipe(6)
def lost(w: Writer) -> object:
    """Losses with their parameters."""
    x = w.pick("real", ndim=1)
    if x is None:
        return None
    a = w.value(x)
    same = [m for m in w.names if w.value(m).shape == a.shape and w.value(m).dtype is a.dtype]
    y, z = w.choice(same), w.choice(same)
    more = f", reduction='{w.choice(['mean', 'sum', 'none'])}'"
    forms = [f"huber_loss({x}, {y}, delta={w.choice(['1.0', w.scale()])}{more})",
             f"smooth_l1_loss({x}, {y}, beta={w.choice(['1.0', w.scale()])}{more})",
             f"kl_div(xp.log_softmax({x}, axis=-1), xp.softmax({y}, axis=-1){more})",
             f"kl_div({x}, {y}, log_target=True{more})", f"mse_loss({x}, {y}{more})",
             f"gaussian_nll_loss({x}, {y}, xp.abs({z}) + {w.scale()}{more})",
             f"binary_cross_entropy(xp.expit({x}), xp.expit({y}){more})",
             f"binary_cross_entropy_with_logits({x}, xp.expit({y}){more})"]  # fmt: skip
    if a.ndim == 2:
        at = [w.choice(range(a.shape[1])) for _ in range(a.shape[0])]
        forms += [f"cross_entropy({x}, xp.integers({at}){more})",
                  f"nll_loss(xp.log_softmax({x}, axis=1), xp.integers({at}){more})",
                  f"triplet_margin_loss({x}, {y}, {z}{more})",
                  f"cross_entropy({x}, xp.softmax({y}, axis=1){more})"]  # fmt: skip
    return w.add(f"{w.fresh()} = xp.nn.{w.choice(forms)}")


@recipe(3)
def scaled_matrices(w: Writer) -> object:
    x = w.pick("inexact", square=True)
    if x is None:
        return None
    n = w.value(x).shape[0]
    t = w.fresh()
    eye = " * ".join(f"xp.astype(xp.{made}, {x}.dtype)"
                     for made in (f"asarray({[4.0, 5.5, 7.0][:n]})", f"eye({n})"))  # fmt: skip
    if not w.add(f"{t} = ({x} / (1.0 + xp.sum(xp.abs({x}))) + {eye}) * {w.scale()}"):
        return None
    form = w.choice([f"inv({t})", f"det({t})", f"solve({t}, {x})", f"slogdet({t})[1]",
                     f"pinv(xp.real({t}))",  # of some complex ones PyTorch's is wrong
                     f"svdvals({t})", f"matrix_power({t}, 2)", f"matrix_power({t}, -1)",
                     f"eigvalsh({t} + xp.matrix_transpose({t}))", f"matrix_norm({t})",
                     f"matrix_norm({t}, ord={w.choice(['1', '2', repr('nuc')])})",
                     f"cholesky(xp.matmul({t}, xp.conj(xp.matrix_transpose({t}))))"])  # fmt: skip
    return w.add(f"{w.fresh()} = xp.linalg.{form}")
