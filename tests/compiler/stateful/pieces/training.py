"""Hooks, modes, gradients, and what else training code does."""

from tests.compiler.stateful.pieces.values import MODULES
from tests.compiler.stateful.program import Piece

__all__ = ["PIECES"]

PIECES: list[Piece] = [
    Piece(
        "hook inside",
        "h = h * 1.0\nh.register_hook(lambda g: g * @k) if h.requires_grad else None\nh = h * 2.0",
        {"k": ("0.5", "2.0")},
    ),
    Piece(
        "hooks on parameters",
        "h = h * @w",
        {"w": ("wg.randn(4, requires_grad=True)",)},
        changes=(
            "hook$ = @w.register_hook(lambda g: g * 0.5)",
            "hook$.remove()",
            "hook$ = @w.register_hook(lambda g: wg.clip(g, -0.1, 0.1))",
            "@w.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.5))",
        ),
        setup="class Nothing$:\n    def remove(self):\n        pass\nhook$ = Nothing$()",
        trains="[@w]",
    ),
    Piece(
        "number in a hook",
        "h = h * @w",
        {"w": ("wg.randn(4, requires_grad=True)",)},
        setup="rate$ = [0.5]",
        changes=("@w.register_hook(lambda g: g * rate$[0])", "rate$[0] = 2.0", "rate$[0] = 0.1"),
        trains="[@w]",
    ),
    Piece(
        "own function",
        "h = Double$.apply(h)",
        {},
        "class Double$(wg.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n        return x * 2.0\n    @staticmethod\n"
        "    def backward(ctx, g):\n        (x,) = ctx.saved_tensors\n        return g * 3.0",
    ),
    Piece(
        "grad mode",
        "with wg.set_grad_enabled(@on):\n    c = wg.sin(h)\nh = h + c",
        {"on": ("True", "False")},
    ),
    Piece(
        "no grad as a decorator",
        "h = h + quiet$(h)",
        {},
        "@wg.no_grad()\ndef quiet$(h):\n    return wg.mean(h, axis=0)",
    ),
    Piece(
        "update of an average of parameters",
        "h = @m(h)",
        {"m": ("wg.nn.Linear(4, 4)",)},
        setup="ema$ = wg.nn.Linear(4, 4).requires_grad_(False)",
        after="with wg.no_grad():\n    for a, b in zip(ema$.parameters(), @m.parameters()):\n"
        "        a.mul_(0.9).add_(0.1 * b)",
        pure=False,
        trains="list(@m.parameters())",
    ),
    Piece(
        "named parameters",
        "for name, p in @m.named_parameters():\n    if 'bias' in name:\n"
        "        h = h + p\nh = h * len(list(@m.modules()))",
        {"m": MODULES},
        changes=("@m.requires_grad_(False)",),
    ),
    Piece(
        "dtype of the first parameter",
        "h = wg.astype(@m(h), next(iter(@m.parameters())).dtype)",
        {"m": ("wg.nn.Linear(4, 4)",)},
    ),
    Piece("copied outside", "h = @m(h)", {"m": MODULES}, changes=("@m = copy.deepcopy(@m)",)),
    Piece(
        "parameters as a vector",
        "v = wg.concat([p.reshape(-1) for p in @m.parameters()])\nh = h * wg.mean(v)",
        {"m": ("wg.nn.Linear(4, 4)",)},
        trains="list(@m.parameters())",
    ),
    Piece(
        "dict of state",
        "s = @m.state_dict()\nh = h * wg.mean(s['weight'])",
        {"m": ("wg.nn.Linear(4, 4)",)},
    ),
    Piece(
        "swapped gradients",
        "",
        {"p": ("wg.ones(4, requires_grad=True)",)},
        after="@p.grad = None if spare.grad is None else spare.grad",
        pure=False,
    ),
    Piece(
        "gradient set",
        "",
        {"p": ("wg.ones(4, requires_grad=True)",)},
        after="@p.grad = wg.full((4,), 0.5)",
        pure=False,
    ),
    Piece(
        "gradient read",
        "if @p.grad is not None:\n    h = h + @p.grad",
        {"p": ("wg.ones(4, requires_grad=True)",)},
        changes=("@p.grad = wg.ones(4)", "@p.grad = None", "@p.grad = wg.zeros(4)"),
    ),
    Piece("retained", "h = h * 1.0\nh.retain_grad() if h.requires_grad else None\nh = h * 2.0"),
    Piece(
        "layers made inside",
        "h = wg.nn.Tanh()(h)\nh = wg.nn.Sequential(wg.nn.ReLU(), wg.nn.Softplus())(h)",
    ),
    Piece(
        "compiled inside",
        "h = part$(h)",
        {"k": ("2.0", "0.5")},
        "rate$ = 2.0\n@wg.compile\ndef part$(h):\n    return wg.sin(h) * rate$",
        changes=("rate$ = 0.5",),
    ),
    Piece(
        "loss",
        "h = h + 0.1 * @c(h, wg.zeros_like(h))",
        {
            "c": (
                "wg.nn.MSELoss()",
                "wg.nn.L1Loss()",
                'wg.nn.MSELoss(reduction="sum")',
                "wg.nn.HuberLoss(delta=0.5)",
                "F.mse_loss",
            )
        },
    ),
    Piece(
        "classes",
        "h = h + @c(h, wg.argmax(h.detach(), axis=1))",
        {
            "c": (
                "wg.nn.CrossEntropyLoss()",
                "wg.nn.CrossEntropyLoss(wg.ones(4))",
                "F.cross_entropy",
            )
        },
    ),
]
