"""Functions whose module is imported when one of them is first named: few programs need them."""

from wengert.interpreters.namespaces import HOMES

_NAMES = {
    "wengert.ops.beyond": ("at", "einsum", "median", "one_hot", "pad", "quantile"),
    "wengert.ops.limits": ("FInfo", "IInfo", "finfo", "iinfo"),
    "wengert.ops.set": (
        *("UniqueAllResult", "UniqueCountsResult", "UniqueInverseResult", "isin"),
        *("unique_all", "unique_counts", "unique_inverse", "unique_values"),
    ),
    "wengert.ops.special.everyday": (
        *("erf", "erfc", "expit", "gelu", "leaky_relu", "log_expit", "log_softmax", "logit"),
        *("logsumexp", "relu", "silu", "softmax", "softplus", "xlogy"),
    ),
}
#: The module of each, by its name.
LATER = {name: home for home, names in _NAMES.items() for name in names}
HOMES.update(LATER)  # so that rules find them, too

#: NumPy's and PyTorch's methods that are no functions of a chapter, or mean something else:
#: `wengert.ops.methods`, which is imported when one is first asked for.
METHODS = """
at copy cpu cuda cumprod cumsum diagonal dim dot element_size equal expand expand_as flatten
is_complex is_floating_point masked_fill max median min ndimension nelement nonzero numel permute
ravel repeat reshape_as sort std swapaxes t trace transpose type type_as unsqueeze var view
view_as
""".split()  # noqa: SIM905 -- a page of names is none to read
