"""Arguments and results."""

from tests.compiler.stateful.pieces.values import ARRAYS, NUMBERS, TENSORS
from tests.compiler.stateful.program import Piece

__all__ = ["PIECES"]

PIECES: list[Piece] = [
    Piece("number given", "h = h * a$", argument=("1.5", "2.0", "-0.5", "0.25")),
    Piece("number decides", "h = h * 2.0 if a$ > 1 else -h", argument=("0", "1", "2", "3.0")),
    Piece("length given", "h = h + wg.sum(wg.arange(a$)) * 0.1", argument=("3", "4", "3")),
    Piece("flag given", "h = h if a$ else -h", argument=("True", "False", "None", '"x"')),
    Piece(
        "number of numpy given",
        "h = h * a$",
        argument=("np.float32(2.0)", "np.float64(0.5)", "np.float64(1.5)"),
    ),
    Piece(
        "flag of numpy given", "h = h if a$ else -h", argument=("np.bool_(True)", "np.bool_(False)")
    ),
    Piece(
        "array given, computed",
        "h = h + wg.sin(wg.asarray(a$)) * 2 + wg.asarray(a$)[0]",
        argument=ARRAYS,
    ),
    Piece(
        "list given",
        "for t in a$:\n    h = h * t",
        argument=("[1.0, 2.0]", "[wg.ones(4) * 2.0]", "[]", "[0.5, 1]"),
    ),
    Piece(
        "dict given",
        'h = h * a$["k"] + a$.get("t", 0.0)',
        argument=('{"k": 2.0}', '{"k": 0.5}', '{"k": 0.5, "t": wg.ones(4)}'),
    ),
    Piece(
        "module given",
        "h = a$(h)",
        setup="ma$, mb$ = wg.nn.Linear(4, 4), wg.nn.Linear(4, 4)",
        argument=("ma$", "mb$"),
    ),
    Piece(
        "object given",
        "h = h * a$.k + a$.t",
        argument=("oa$", "ob$"),
        setup="oa$ = types.SimpleNamespace(k=2.0, t=wg.ones(4))\n"
        "ob$ = types.SimpleNamespace(k=0.5, t=wg.randn(4))",
        changes=("oa$.k = 3.0", "oa$.t = wg.zeros(4)", "ob$.t.mul_(2.0)"),
    ),
    Piece(
        "function given",
        "h = a$(h)",
        argument=("wg.sin", "wg.cos", "fa$"),
        setup="ka$ = [2.0]\nfa$ = lambda h: h * ka$[0]",
        changes=("ka$[0] = 0.3",),
    ),
    Piece("string given", "h = getattr(wg, a$)(h)", argument=('"sin"', '"cos"')),
    Piece(
        "dtype given",
        "h = wg.astype(wg.astype(h, a$), h.dtype)",
        argument=("wg.float32", "wg.float64"),
    ),
    Piece("gives numbers", "", {"k": NUMBERS}, gives="@k"),
    Piece("gives a number of the argument", "", argument=("1.5", "2"), gives="a$ * 2"),
    Piece("gives an array", "", {"a": ARRAYS}, gives="@a + 1", changes=("@a *= 2", "@a = @a + 1")),
    Piece("gives a view", "g$ = wg.exp(h * 0.1)", gives="g$.T[1]"),
    Piece("gives two of one", "g$ = wg.exp(h * 0.1)", gives="(g$, g$[0], {'a': g$})"),
    Piece("gives state", "", {"t": TENSORS}, gives="@t"),
]
