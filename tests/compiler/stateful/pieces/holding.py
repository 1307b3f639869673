"""Tensors, arrays and modules: state that is read and changed."""

from tests.compiler.stateful.pieces.values import ARRAYS, MODULES, TENSORS
from tests.compiler.stateful.program import Piece

__all__ = ["PIECES"]

PIECES: list[Piece] = [
    Piece(
        "tensor",
        "h = h * @t",
        {"t": TENSORS},
        changes=(
            "with wg.no_grad(): @t.mul_(1.5)",
            "with wg.no_grad(): @t[...] = 0.25",
            "@t = wg.full((4,), 0.5)",
            "@t.requires_grad_(False)",
            "@t = @t.detach() * 2.0",
            "@t.data = @t.data * 0.5",
        ),
    ),
    Piece(
        "tensors in a list",
        "for t in @ts:\n    h = h + t",
        {"ts": ("[wg.randn(4), wg.randn(4)]", "[wg.randn(4, requires_grad=True)]", "[]")},
        changes=(
            "@ts.append(wg.full((4,), 0.2))",
            "@ts[0] = wg.ones(4)",
            "@ts.pop()",
            "@ts.reverse()",
            "@ts = @ts * 2",
        ),
    ),
    Piece(
        "a tuple that is replaced",
        "@s = (wg.sum(h, axis=0).detach() + @s[1], @s[0] * 0.5)\nh = h + @s[1]",
        {"s": ("(wg.zeros(4), wg.ones(4))", "(wg.randn(4), wg.randn(4))")},
        changes=(
            "@s = @s[::-1]",
            "@s = @s[0], @s[0]",
            "@s = @s[1] * 2, wg.ones(4)",
            "@s[0].mul_(0.5)",
        ),
        pure=False,
    ),
    Piece(
        "a tensor that is replaced and stays elsewhere",
        "@t = wg.tanh(@t + wg.sum(h.detach(), axis=0))\nh = h + pair$[0] * @t",
        {"t": ("pair$[0]",)},
        "pair$ = (wg.zeros(4), wg.ones(4))",
        changes=("@t = pair$[0]", "@t = pair$[1]"),
        pure=False,
    ),
    Piece(
        "tensors in a dict",
        "for k, t in @ts.items():\n    h = h + t * len(k)",
        {"ts": ('{"a": wg.randn(4)}', '{"a": wg.randn(4), "bb": wg.randn(1)}')},
        changes=('@ts["ccc"] = wg.full((4,), 0.2)', '@ts["a"] = wg.ones(4)', "@ts.popitem()"),
    ),
    Piece(
        "array",
        "h = h * wg.asarray(@a)",
        {"a": ARRAYS},
        changes=("@a *= 2", "@a[0] = 3.0", "@a = @a + 1"),
    ),
    Piece(
        "arrays alone",
        "h = h * (wg.sin(wg.asarray(@a)) + wg.asarray(@a)[1] * wg.asarray(@a)[0])",
        {"a": ARRAYS},
        changes=("@a *= 0.5", "@a[0] = 3.0", "@a = @a + 1"),
    ),
    Piece(
        "index by an array",
        "h = h + h[:, @i]",
        {"i": ("np.array([1, 0, 3, 2])", "np.array([3, 2, 1, 0])", "wg.asarray([0, 0, 1, 1])")},
        changes=("@i = np.array([2, 2, 2, 2])", "@i[0] = 2"),
    ),
    Piece(
        "mask",
        "h = wg.where(@m, h, h * 0.5)",
        {"m": ("wg.asarray([True, False, True, False])", "np.array([False, True, True, False])")},
        changes=("@m = wg.asarray([False, False, True, False])", "@m[0] = False"),
    ),
    Piece(
        "module",
        "h = @m(h)",
        {"m": MODULES},
        trains="list(@m.parameters())",
        changes=(
            "@m.eval()",
            "@m.train()",
            "@m.requires_grad_(False)",
            "@m.requires_grad_(True)",
            "for p in @m.parameters(): p.grad = None",
            "for p in @m.parameters(): p.register_hook(lambda g: g * 0.5)",
            "@m.load_state_dict({k: v * 0.5 for k, v in @m.state_dict().items()})",
        ),
    ),
    Piece(
        "modules in a list",
        "for m in @ms:\n    h = m(h)",
        {
            "ms": (
                "[wg.nn.Linear(4, 4), wg.nn.Tanh()]",
                "wg.nn.ModuleList([wg.nn.Linear(4, 4), wg.nn.Tanh()])",
                "(wg.nn.Linear(4, 4),)",
            )
        },
        changes=("@ms.append(wg.nn.ReLU())", "@ms[0] = wg.nn.Linear(4, 4)", "del @ms[-1]"),
    ),
    Piece(
        "modules in a dict",
        "for k in @ms:\n    h = @ms[k](h)",
        {
            "ms": (
                '{"a": wg.nn.Linear(4, 4), "b": wg.nn.Tanh()}',
                'wg.nn.ModuleDict({"a": wg.nn.Linear(4, 4)})',
            )
        },
        changes=('@ms["c"] = wg.nn.ReLU()', '@ms["a"] = wg.nn.Linear(4, 4)', '@ms.pop("b")'),
    ),
    Piece(
        "own module",
        "h = @m(h)",
        {"m": ("Own$(2.0)", "Own$(0.5)")},
        "class Own$(wg.nn.Module):\n    shift = 0.1\n    def __init__(self, k):\n"
        "        self.w = wg.nn.Parameter(wg.randn(4))\n        self.k, self.extra = k, None\n"
        "        self.register_buffer('seen', wg.zeros(4))\n"
        "    def forward(self, h):\n        if self.training:\n            h = h * self.k\n"
        "        h = h * self.w + self.shift + self.seen\n"
        "        return h if self.extra is None else self.extra(h)",
        changes=(
            "@m.k = 3.0",
            "@m.eval()",
            "@m.train()",
            "@m.extra = wg.nn.Linear(4, 4)",
            "@m.extra = lambda h: h - 1.0",
            "Own$.shift = 0.5",
            "@m.shift = -0.5",
            "@m.seen = wg.ones(4)",
            "@m.w = wg.nn.Parameter(wg.ones(4))",
            "@m.w.grad = None",
            "@m.forward = lambda h: h * 0.5",
            "Own$.forward = lambda self, h: h * self.w",
        ),
        trains="[@m.w]",
    ),
    Piece(
        "shared weights",
        "h = @b(wg.tanh(@a(h)))",
        {"a": ("wg.nn.Linear(4, 4)",), "b": ("wg.nn.Linear(4, 4)",)},
        changes=("@b.weight = @a.weight", "@b.weight = wg.nn.Parameter(wg.eye(4))", "@b = @a"),
    ),
    Piece(
        "buffer updated",
        "h = h - @m.mean\nwith wg.no_grad():\n    @m.mean.mul_(0.9).add_(0.1 * wg.mean(h, axis=0))",
        {"m": ("Norm$()",)},
        "class Norm$(wg.nn.Module):\n    def __init__(self):\n"
        "        self.register_buffer('mean', wg.zeros(4))",
        changes=("@m.mean = wg.ones(4)", "@m.mean.zero_()"),
        pure=False,
    ),
    Piece(
        "norm in two modes",
        "h = @m(h)",
        {"m": ("Batch$()",)},
        "class Batch$(wg.nn.Module):\n    def __init__(self):\n"
        "        self.register_buffer('mean', wg.zeros(4))\n        self.rate = 0.1\n"
        "    def forward(self, h):\n        if not self.training:\n"
        "            return h - self.mean\n"
        "        mean = h.mean(axis=0)\n"
        "        self.mean = (1 - self.rate) * self.mean + self.rate * mean.detach()\n"
        "        return h - mean",
        changes=("@m.eval()", "@m.train()", "@m.rate = 0.5", "@m.mean = wg.ones(4)"),
        pure=False,
    ),
    Piece(
        "dropout",
        "h = @m(h)",
        {"m": ("wg.nn.Dropout(0.5)", "wg.nn.Dropout(0.0)", "wg.nn.Dropout(0.2)")},
        changes=("@m.eval()", "@m.train()", "@m.p = 0.3", "wg.manual_seed(5)"),
        pure=False,
    ),
    Piece(
        "noise",
        "h = h + wg.rand_like(h) * @k + wg.normal(4) * 0.1 + wg.randn(4) * 0.1",
        {"k": ("0.5", "0.1")},
        changes=("wg.manual_seed(7)", "wg.rand_like(x0)"),
        pure=False,
    ),
    Piece(
        "checkpoint",
        "h = wg.checkpoint(@m, h)",
        {
            "m": (
                "wg.nn.Sequential(wg.nn.Linear(4, 4), wg.nn.Tanh())",
                "wg.nn.Linear(4, 4)",
                "lambda h: wg.sin(h) * 2.0",
            )
        },
        changes=("wg.manual_seed(3)",),
        pure=False,
    ),
    Piece(
        "exponential average",
        "",
        {"m": ("wg.nn.Linear(4, 4)",), "e": ("wg.zeros(4, 4)",), "d": ("0.9", "0.5")},
        after="with wg.no_grad():\n    @e.mul_(@d).add_(@m.weight * (1.0 - @d))",
        changes=("@e = wg.ones(4, 4)", "@e.zero_()"),
        pure=False,
    ),
    Piece(
        "state replaced",
        "@s = wg.tanh(@s + wg.mean(h, axis=0)).detach()\nh = h + @s",
        {"s": ("wg.zeros(4)",)},
        changes=("@s = wg.ones(4)",),
        pure=False,
    ),
    Piece(
        "state in place",
        "h = h + @s\nwith wg.no_grad():\n    @s += wg.mean(h.detach(), axis=0)\n"
        "    @s[1:3] = @s[:2] * 0.5",
        {"s": ("wg.zeros(4)", "wg.randn(3, 4)[1]")},
        changes=("@s.zero_()", "@s = wg.ones(4)"),
        pure=False,
    ),
    Piece(
        "two names of one tensor",
        "h = h + @a * @b",
        {"a": ("wg.ones(4)",), "b": ("wg.randn(4)",)},
        changes=("@a = @b", "@b = wg.ones(4)", "@b.mul_(2.0)"),
    ),
]
