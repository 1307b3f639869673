"""Python's own statements and functions."""

from tests.compiler.stateful.program import Piece

__all__ = ["PIECES"]

PIECES: list[Piece] = [
    Piece(
        "builtins",
        "ks = sorted(@ks)\nh = h * max(ks) + min(ks) * sum(ks) + len(ks)\n"
        "for i, (a, b) in enumerate(zip(ks, reversed(ks))):\n    h = h + a * b * i\n"
        "h = h * any(k > 1 for k in ks) + all(map(bool, ks))",
        {"ks": ("[1.0, 2.0]", "[0.5, 0.1, 3]", "(2, 1)")},
        changes=("@ks = [0.1]",),
    ),
    Piece(
        "math", "h = h * math.sqrt(@k) + math.pi + round(@k) + abs(@k)", {"k": ("2.0", "4", "0.25")}
    ),
    Piece(
        "math of an argument",
        "h = h * math.sqrt(a$) + max(a$, 1.0) + abs(a$) + round(a$)",
        argument=("2.0", "4.0", "0.25"),
    ),
    Piece(
        "match",
        'match @how:\n    case "a":\n        h = h * 2.0\n    case ("b", k):\n        h = h * k\n'
        "    case _:\n        h = -h",
        {"how": ('"a"', '("b", 0.5)', '("b", 2.0)', "None")},
    ),
    Piece(
        "local function",
        "def inner(z, k=@k):\n    return z * k\nh = inner(h)",
        {"k": ("2.0", "0.5")},
    ),
    Piece(
        "assert",
        "assert h.shape[-1] == 4, 'columns'\nassert @k is not None",
        {"k": ("2.0", "None", "1")},
    ),
    Piece(
        "reduce",
        "h = functools.reduce(operator.mul, @ks, h)",
        {"ks": ("[1.0, 2.0]", "[0.5]", "[]")},
        changes=("@ks.append(0.3)",),
    ),
    Piece(
        "replaced",
        "h = h * dataclasses.replace(@c, k=2.0).k * @c.k",
        {"c": ("Fixed$(1.0)", "Fixed$(0.5)")},
        "@dataclasses.dataclass(frozen=True)\nclass Fixed$:\n    k: float = 1.0",
    ),
    Piece(
        "super",
        "h = @m(h)",
        {"m": ("Over$()",)},
        "class Under$(wg.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.lin = wg.nn.Linear(4, 4)\n    def forward(self, h):\n"
        "        return self.lin(h)\n"
        "class Over$(Under$):\n    def forward(self, h):\n        return super().forward(h) + 1.0",
        changes=("Under$.forward = lambda self, h: h * 0.5", "@m.lin = wg.nn.Tanh()"),
        trains="list(@m.parameters())",
    ),
    Piece(
        "module's attribute by getattr",
        'h = getattr(@o, "k", 0.5) * h\nif hasattr(@o, "more"):\n    h = h + @o.more',
        {"o": ("types.SimpleNamespace(k=2.0)", "types.SimpleNamespace()")},
        changes=("@o.more = 0.3", "@o.k = 3.0", "vars(@o).clear()"),
    ),
    Piece(
        "identity",
        "h = h * (2.0 if @a is @b else 0.5)",
        {"a": ("[]", "None"), "b": ("[]", "None")},
        changes=("@a = @b",),
    ),
    Piece(
        "type",
        "h = h * (2.0 if type(@o) is Kind$ else 0.5 if callable(@o) else 1.0)",
        {"o": ("Kind$()", "[]", "len")},
        "class Kind$:\n    pass",
    ),
    Piece(
        "argument in place", "with wg.no_grad():\n    x.mul_(0.5)\nh = h + x.detach()", pure=False
    ),
    Piece("argument by item", "with wg.no_grad():\n    x[0] = 0.5\nh = h * 2.0", pure=False),
    Piece(
        "tensor of an index",
        "h = h * @ts[a$]",
        {"ts": ("[wg.ones(4), wg.randn(4)]", "(wg.ones(4), wg.zeros(4))")},
        argument=("0", "1", "-1"),
    ),
    Piece(
        "model by name",
        "h = @ms[a$](h)",
        {"ms": ('{"a": wg.nn.Linear(4, 4), "b": wg.nn.Tanh()}',)},
        argument=('"a"', '"b"'),
    ),
    Piece("slice by an argument", "h = h[:, :a$] @ wg.ones(a$, 4)", argument=("1", "2", "4")),
    Piece(
        "state given",
        "a$['h'] = wg.tanh(a$['h'] + wg.mean(h, axis=0)).detach()\nh = h + a$['h']",
        setup="sa$ = {'h': wg.zeros(4)}",
        argument=("sa$",),
        pure=False,
    ),
    Piece(
        "tensors given in a list",
        "for i, t in enumerate(a$):\n    h = h + t * (i + 1)",
        setup="la$ = [wg.randn(4), wg.randn(4)]",
        argument=("la$", "la$[:1]", "la$ + la$"),
        changes=("la$.reverse()", "la$.append(wg.ones(4))", "la$[0] = wg.zeros(4)"),
    ),
    Piece(
        "optimiser inside",
        "o = wg.optim.SGD([@w], lr=0.1)\nh = h * @w",
        {"w": ("wg.randn(4, requires_grad=True)",)},
    ),
    Piece(
        "gradient of gradient scale",
        "",
        after="if spare.grad is not None:\n    spare.grad = spare.grad * @k",
        holds={"k": ("0.5", "2.0")},
        pure=False,
    ),
    Piece(
        "average of losses",
        "",
        {"total": ("wg.zeros(())",), "n": ("wg.zeros(())",)},
        after="with wg.no_grad():\n    @total += wg.mean(h.detach())\n    @n += 1",
        gives="@total / @n",
        changes=("@total.zero_(); @n.zero_()",),
        pure=False,
    ),
]
