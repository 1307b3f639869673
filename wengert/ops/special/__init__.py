"""Special functions, beside the standard: SciPy's names and signatures where SciPy has them.

Those of networks are also in `wengert` itself. The others are imported when they are first asked
for, which keeps ``import wengert`` short.
"""

import importlib
from typing import TYPE_CHECKING, Any

from wengert.ops.special.everyday import (
    erf,
    erfc,
    expit,
    gelu,
    leaky_relu,
    log_expit,
    log_softmax,
    logit,
    logsumexp,
    relu,
    silu,
    softmax,
    softplus,
    xlogy,
)

if TYPE_CHECKING:
    from wengert.ops.special.bessel import i0, i0e, i1, i1e
    from wengert.ops.special.cardinal import sinc
    from wengert.ops.special.entropy import entr, kl_div, rel_entr, xlog1py
    from wengert.ops.special.gammas import (
        beta,
        betaln,
        digamma,
        gamma,
        gammaln,
        gammasgn,
        multigammaln,
        psi,
    )
    from wengert.ops.special.normal import erfcinv, erfcx, erfinv, log_ndtr, ndtr, ndtri
    from wengert.ops.special.polygammas import polygamma, zeta

__all__ = [
    "beta",
    "betaln",
    "digamma",
    "entr",
    "erfcinv",
    "erfcx",
    "erfinv",
    "gamma",
    "gammaln",
    "gammasgn",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "log_ndtr",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "rel_entr",
    "sinc",
    "xlog1py",
    "zeta",
]
__all__ += [
    "erf",
    "erfc",
    "expit",
    "gelu",
    "leaky_relu",
    "log_expit",
    "log_softmax",
    "logit",
    "logsumexp",
    "relu",
    "silu",
    "softmax",
    "softplus",
    "xlogy",
]


if not TYPE_CHECKING:  # a name that is wrong is an error to type checkers

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # A rule may call functions of another file (digamma's is polygamma), so all come.
        homes = ("bessel", "cardinal", "entropy", "gammas", "normal", "polygammas", "tails")
        for home in homes:
            module = importlib.import_module(f"{__name__}.{home}")
            globals().update({found: getattr(module, found) for found in module.__all__})
        return globals()[name]

    def __dir__() -> list[str]:
        return __all__
