"""Numbers that a function counts in, and by which it decides."""

from tests.compiler.stateful.program import Piece

__all__ = ["PIECES"]

STARTS = ("0", "1.5", "7", "-0.0", "-2")

PIECES: list[Piece] = [
    Piece("counter", "@n += 1\nh = h * @n", {"n": STARTS}, pure=False),
    Piece("counter after", "", {"n": STARTS}, after="@n += 1", gives="@n", pure=False),
    Piece("counter that nobody reads", "@n = 3", {"n": STARTS}, pure=False),
    Piece(
        "several counters",
        "@n += 1\n@total += 0.5 * @n\n@n, @total = @total, @n\nh = h + @total - @n",
        {"n": STARTS, "total": ("0.0", "1")},
        pure=False,
    ),
    Piece(
        "own schedule",
        "@rate *= 0.9\nh = h * @rate",
        {"rate": ("0.1", "1.0", "2")},
        changes=("@rate = 0.5",),
        pure=False,
    ),
    Piece(
        "counters in containers",
        '@d["n"] += 1\n@d["rates"][0] *= 0.5\nh = h * @d["n"] + @d["rates"][0]',
        {"d": ('{"n": 0, "rates": [1.0, 2]}', '{"n": 0.5, "rates": [1.0], "m": None}')},
        changes=('@d["n"] = 5', '@d["rates"][0] += 1.0', '@d["m"] = "text"'),
        pure=False,
    ),
    Piece(
        "counts sometimes",
        "if @on:\n    @n += 1\nh = h + @n",
        {"n": STARTS, "on": ("True", "False")},
        pure=False,
    ),
    Piece(
        "what was given",
        "@last = a$\nh = h * @last",
        {"last": ("0.5", "2")},
        argument=("0.5", "2.5", "3"),
        pure=False,
    ),
    Piece(
        "counter of a module",
        "h = @m(h)",
        {"m": ("Counts$()",)},
        "class Counts$(wg.nn.Module):\n    def __init__(self):\n        self.calls = 0\n"
        "    def forward(self, h):\n        if self.training:\n            self.calls += 1\n"
        "        return h / (1 + self.calls)",
        changes=("@m.eval()", "@m.train()", "@m.calls = 0", "@m = copy.deepcopy(@m)"),
        pure=False,
    ),
    Piece(
        "counter of a helper",
        "count$()\nh = h * counts$[0] + total$[0]",
        {},
        "counts$, total$ = [0, 5], [0.0]\ndef count$(by=1):\n"
        "    counts$[0] += by\n    total$[0] += 0.25",
        changes=("counts$[0] = 3",),
        pure=False,
    ),
    Piece(
        "every third",
        "@n += 1\nif @n % 3 == 0:\n    h = -h",
        {"n": ("0", "1", "2.0")},
        changes=("@n = 2",),
        pure=False,
    ),
    Piece("warm-up", "@n += 1\nh = h * (0.1 * min(1.0, @n / 4))", {"n": STARTS}, pure=False),
    Piece(
        "the best",
        "@rate *= 0.7\nif not @best or @rate < @best:\n    @best = @rate\nh = h + @best",
        {"rate": ("1.0", "-1.0", "3"), "best": ("0.5", "0", "-0.0")},
        pure=False,
    ),
    Piece(
        "turns",
        "@turn = 1 - @turn\nif @turn:\n    h = h * 2.0",
        {"turn": ("0", "1", "0.0")},
        pure=False,
    ),
    Piece("power of a counter", "@n -= 1\nh = h + 2**@n", {"n": ("3", "1.5", "0")}, pure=False),
    Piece(
        "counter as an index",
        "@n = (@n + 1) % 3\nh = h * (1.0, 2.0, 0.5)[@n]",
        {"n": ("0", "1")},
        pure=False,
    ),
    Piece("counter as a text", "@n += 1\nh = h * len(f'{@n:.2f}')", {"n": STARTS}, pure=False),
    Piece(
        "counts up to it",
        "@n += 1\nm = 0\nwhile m < @n:\n    m += 1\nh = h * m",
        {"n": ("0", "3")},
        pure=False,
    ),
]
