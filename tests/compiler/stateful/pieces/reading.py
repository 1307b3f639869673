"""Plain values and functions that a program reads, wherever they are."""

from tests.compiler.stateful.pieces.values import FUNCTIONS, NUMBERS
from tests.compiler.stateful.program import Piece

__all__ = ["PIECES"]

PIECES: list[Piece] = [
    Piece("scale", "h = h * @k", {"k": NUMBERS}, changes=("@k = @k + 1.0", "@k = @k * 2")),
    Piece("branch", "if @k > 1:\n    h = wg.sin(h)\nelse:\n    h = h + 0.5", {"k": NUMBERS}),
    Piece(
        "kind of number",
        "h = h * (2.0 if isinstance(@k, float) else 3.0 if isinstance(@k, bool) else 0.5)",
        {"k": NUMBERS},
    ),
    Piece(
        "name of a function",
        "h = getattr(wg, @how)(h)",
        {"how": ('"sin"', '"cos"', '"tanh"', '"relu"', '"expit"')},
    ),
    Piece(
        "perhaps none",
        "if @bias is not None:\n    h = h + @bias",
        {"bias": ("None", "wg.randn(4)", "0.5", "wg.full((4,), 0.1)")},
    ),
    Piece("flag", "h = h * 2.0 if @on else -h", {"on": ("True", "False", "0", "1", "[]", "[0]")}),
    Piece(
        "numbers in a list",
        "for k in @ks:\n    h = h * k + 0.1",
        {"ks": ("[1.0, 2.0]", "[0.5]", "[]", "[1, 2, 3]", "(2.0, 0.5)")},
        changes=("@ks.append(1.5)", "@ks[0] = 3.0", "del @ks[-1]", "@ks.reverse()", "@ks += [0.2]"),
    ),
    Piece(
        "numbers in a dict",
        'h = h * @cfg.get("a", 0.3)\nfor k in @cfg:\n    h = h + @cfg[k]',
        {"cfg": ('{"a": 1.0}', '{"a": 2.0, "b": 0.5}', "{}", "defaultdict(float, a=2.0)")},
        changes=(
            '@cfg["a"] = 0.7',
            '@cfg["c"] = 0.1',
            '@cfg.pop("b", None)',
            "@cfg.clear()",
            "@cfg.update(a=3.0)",
            '@cfg.setdefault("z", 0.9)',
        ),
    ),
    Piece(
        "numbers in a set",
        "h = h * (2.0 if 3 in @s else 0.5) + len(@s)",
        {"s": ("{1, 2}", "{3}", "set()", "frozenset([3, 4])")},
        changes=("@s.add(3)", "@s.discard(3)", "@s.clear()"),
    ),
    Piece(
        "deep",
        'h = h * @tree["a"][0]["b"]',
        {"tree": ('{"a": [{"b": 2.0}]}', '{"a": ({"b": 0.5},)}', '{"a": [{"b": 1}]}')},
        changes=('@tree["a"][0]["b"] = 4.0', '@tree["a"] = [{"b": 0.25}]', '@tree["x"] = 3'),
    ),
    Piece(
        "dataclass",
        "h = h * @c.rate\nif @c.on:\n    h = wg.cos(h)\nfor k in @c.more:\n    h = h + k",
        {"c": ("Conf$()", "Conf$(2.0, False)", "Conf$(0.5, True, [0.1])")},
        "@dataclasses.dataclass\nclass Conf$:\n    rate: float = 1.0\n    on: bool = True\n"
        "    more: list = dataclasses.field(default_factory=list)",
        changes=("@c.rate = 3.0", "@c.on = not @c.on", "@c.more.append(0.3)", "@c.more = [0.2]"),
    ),
    Piece(
        "namedtuple",
        "h = h * @c.a + (0.0 if @c.b is None else 1.0)",
        {"c": ("Pair$(2.0, None)", "Pair$(1.0, 3)", "Pair$(2, None)")},
        'Pair$ = namedtuple("Pair$", "a b")',
        changes=("@c = @c._replace(a=0.3)",),
    ),
    Piece(
        "enum",
        "h = h * 2.0 if @m is Mode$.A else h * @m.value",
        {"m": ("Mode$.A", "Mode$.B")},
        "class Mode$(Enum):\n    A = 1.5\n    B = 0.5",
    ),
    Piece(
        "class attribute",
        "h = h * @o.rate\nh = @o.act(h)",
        {"o": ("Child$()", "Base$()")},
        "class Base$:\n    rate = 2.0\n    def act(self, h):\n        return h + 0.1\n"
        "class Child$(Base$):\n    pass",
        changes=(
            "Base$.rate = 0.5",
            "Child$.rate = 3.0",
            "@o.rate = 4.0",
            "Base$.act = lambda self, h: wg.sin(h)",
            "Child$.act = lambda self, h: -h",
            "@o.act = lambda h: h * 0.25",
        ),
    ),
    Piece(
        "property",
        "h = h * @o.scale",
        {"o": ("Prop$(2.0)", "Prop$(0.5)")},
        "class Prop$:\n    def __init__(self, k):\n        self.k = k\n"
        "    @property\n    def scale(self):\n        return self.k + 1.0",
        changes=("@o.k = 3.0", "Prop$.scale = property(lambda self: self.k * 2.0)"),
    ),
    Piece(
        "operators of a class",
        "h = @o(h)[0] + len(@o) * 0.1 + @o[1]",
        {"o": ("Call$([1.0, 2.0])", "Call$([0.5, 1.5, 2.5])")},
        "class Call$:\n    def __init__(self, ks):\n        self.ks = ks\n"
        "    def __call__(self, h):\n        return [h * self.ks[0]]\n"
        "    def __len__(self):\n        return len(self.ks)\n"
        "    def __getitem__(self, i):\n        return self.ks[i]",
        changes=("@o.ks.append(1.0)", "@o.ks[0] = -1.0", "@o.ks = [0.1, 0.2]"),
    ),
    Piece(
        "getattr",
        "h = h * @o.whatever",
        {"o": ("Late$()",)},
        "class Late$:\n    ks = {}\n    def __getattr__(self, name):\n"
        "        return len(name) * type(self).ks.get(name, 0.25)",
        changes=('Late$.ks["whatever"] = 0.5', "@o.whatever = 3.0"),
    ),
    Piece("function", "h = @f(h)", {"f": FUNCTIONS}),
    Piece(
        "helper",
        "h = helper$(h)",
        {"k": ("1.5", "0.5", "2")},
        "def helper$(h, by=2.0, *, more=0.1):\n    return h * by + more",
        changes=(
            "helper$.__defaults__ = (3.0,)",
            'helper$.__kwdefaults__ = {"more": 0.7}',
            'helper$.__kwdefaults__["more"] = -0.5',
            "helper$.__code__ = (lambda h, by=1.0, *, more=0.1: h - by).__code__",
        ),
    ),
    Piece(
        "functions in a list",
        "for f in @fs:\n    h = f(h)",
        {"fs": ("[wg.sin, lambda h: h * 2.0]", "[wg.tanh]", "[]")},
        changes=("@fs.append(wg.cos)", "@fs[-1] = lambda h: h * 0.1", "@fs.pop()"),
    ),
    Piece(
        "partial",
        "h = @f(h)",
        {"f": ("functools.partial(scaled$, by=k$)", "functools.partial(scaled$, by=[1.0])")},
        "k$ = [2.0]\ndef scaled$(h, by):\n    return h * by[0]",
        changes=("k$[0] = 0.5", '@f.keywords["by"] = [3.0]'),
    ),
    Piece(
        "closure with state",
        "h = @f(h)",
        {"f": ("maker$(2.0)", "maker$(0.5)")},
        "def maker$(k):\n    def f(h):\n        return h * k\n    def change(to):\n"
        "        nonlocal k\n        k = to\n    f.change = change\n    return f",
        changes=("@f.change(3.0)", "@f.change(wg.randn(4))"),
    ),
    Piece(
        "static and class methods",
        "h = Tools$.one(h) + Tools$.two(h)",
        {},
        "class Tools$:\n    k = 0.5\n    @staticmethod\n    def one(h):\n        return h * 2.0\n"
        "    @classmethod\n    def two(cls, h):\n        return h * cls.k",
        changes=("Tools$.k = 1.5", "Tools$.one = staticmethod(wg.sin)"),
    ),
    Piece(
        "decorated",
        "h = wrapped$(h)",
        {},
        "factor$ = 2.0\ndef deco$(f):\n    @functools.wraps(f)\n    def g(h):\n"
        "        return f(h) * factor$\n    return g\n"
        "@deco$\ndef wrapped$(h):\n    return wg.sin(h)",
        changes=("factor$ = 0.5",),
    ),
]
