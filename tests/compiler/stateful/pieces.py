"""The pieces of which random programs are made.

A row is a piece: its name, with ``!`` if it changes state; lines of setup (``>``), its variables
and their values (``@name:``), values of its argument (``a$:``), its body, lines at the end
(``<``), what it returns and trains, and changes between calls (``~``).
"""

import re
from typing import Any

from tests.compiler.stateful.program import Piece

__all__ = ["PIECES"]

#: Values that several pieces begin with.
VALUES = {
    "NUMBERS": "0.5 | 1.5 | 2 | 3 | -1.0 | True | 0.0 | -0.0 | 1 | 1.0",
    "TENSORS": "wg.randn(4) | wg.randn(3, 4)[0] | wg.full((4,), 0.3) | "
    "wg.randn(4, requires_grad=True) | wg.ones(1) | wg.asarray(0.7)",
    "ARRAYS": "np.full(4, 0.5, np.float32) | np.arange(4.0, dtype=np.float32) | "
    "np.array([2.0], np.float32)",
    "MODULES": "wg.nn.Linear(4, 4) | wg.nn.Linear(4, 4, bias=False) | wg.nn.Tanh() | "
    "wg.nn.Sequential(wg.nn.Linear(4, 4), wg.nn.ReLU()) | "
    "wg.nn.Sequential(wg.nn.Linear(4, 3), wg.nn.GELU(), wg.nn.Linear(3, 4)) | wg.nn.Identity()",
}
#: Plain values, functions, Tensors, arrays and modules that are read, wherever they are; what is
#: computed, given and trained, and Python's own statements.
TEXT = r"""
scale
    @k: NUMBERS
    h = h * @k
    ~ @k = @k + 1.0 | @k = @k * 2
branch
    @k: NUMBERS
    if @k > 1:
        h = wg.sin(h)
    else:
        h = h + 0.5
kind of number
    @k: NUMBERS
    h = h * (2.0 if isinstance(@k, float) else 3.0 if isinstance(@k, bool) else 0.5)
name of a function
    @how: "sin" | "cos" | "tanh" | "relu" | "expit"
    h = getattr(wg, @how)(h)
perhaps none
    @bias: None | wg.randn(4) | 0.5 | wg.full((4,), 0.1)
    if @bias is not None:
        h = h + @bias
flag
    @on: True | False | 0 | 1 | [] | [0]
    h = h * 2.0 if @on else -h
numbers in a list
    @ks: [1.0, 2.0] | [0.5] | [] | [1, 2, 3] | (2.0, 0.5)
    for k in @ks:
        h = h * k + 0.1
    ~ @ks.append(1.5) | @ks[0] = 3.0 | del @ks[-1] | @ks.reverse() | @ks += [0.2]
numbers in a dict
    @cfg: {"a": 1.0} | {"a": 2.0, "b": 0.5} | {} | defaultdict(float, a=2.0)
    h = h * @cfg.get("a", 0.3)
    for k in @cfg:
        h = h + @cfg[k]
    ~ @cfg["a"] = 0.7 | @cfg["c"] = 0.1 | @cfg.pop("b", None) | @cfg.clear() | @cfg.update(a=3.0) |
        @cfg.setdefault("z", 0.9)
numbers in a set
    @s: {1, 2} | {3} | set() | frozenset([3, 4])
    h = h * (2.0 if 3 in @s else 0.5) + len(@s)
    ~ @s.add(3) | @s.discard(3) | @s.clear()
deep
    @tree: {"a": [{"b": 2.0}]} | {"a": ({"b": 0.5},)} | {"a": [{"b": 1}]}
    h = h * @tree["a"][0]["b"]
    ~ @tree["a"][0]["b"] = 4.0 | @tree["a"] = [{"b": 0.25}] | @tree["x"] = 3
dataclass
    > @dataclasses.dataclass
    > class Conf$:
    >     rate: float = 1.0
    >     on: bool = True
    >     more: list = dataclasses.field(default_factory=list)
    @c: Conf$() | Conf$(2.0, False) | Conf$(0.5, True, [0.1])
    h = h * @c.rate
    if @c.on:
        h = wg.cos(h)
    for k in @c.more:
        h = h + k
    ~ @c.rate = 3.0 | @c.on = not @c.on | @c.more.append(0.3) | @c.more = [0.2]
class attribute
    > class Base$:
    >     rate = 2.0
    >     def act(self, h):
    >         return h + 0.1
    > class Child$(Base$):
    >     pass
    @o: Child$() | Base$()
    h = h * @o.rate
    h = @o.act(h)
    ~ Base$.rate = 0.5 | Child$.rate = 3.0 | @o.rate = 4.0 | Base$.act = lambda self, h: wg.sin(h) |
        Child$.act = lambda self, h: -h | @o.act = lambda h: h * 0.25
operators of a class
    > class Call$:
    >     def __init__(self, ks):
    >         self.ks = ks
    >     def __call__(self, h):
    >         return [h * self.ks[0]]
    >     def __len__(self):
    >         return len(self.ks)
    >     def __getitem__(self, i):
    >         return self.ks[i]
    @o: Call$([1.0, 2.0]) | Call$([0.5, 1.5, 2.5])
    h = @o(h)[0] + len(@o) * 0.1 + @o[1]
    ~ @o.ks.append(1.0) | @o.ks[0] = -1.0 | @o.ks = [0.1, 0.2]
getattr
    > class Late$:
    >     ks = {}
    >     def __getattr__(self, name):
    >         return len(name) * type(self).ks.get(name, 0.25)
    @o: Late$()
    h = h * @o.whatever
    ~ Late$.ks["whatever"] = 0.5 | @o.whatever = 3.0
function
    @f: lambda h: h * 2.0 | lambda h: wg.sin(h) | wg.tanh | functools.partial(wg.multiply, 0.5) |
        lambda h: h - wg.mean(h, axis=-1, keepdims=True)
    h = @f(h)
helper
    > def helper$(h, by=2.0, *, more=0.1):
    >     return h * by + more
    @k: 1.5 | 0.5 | 2
    h = helper$(h)
    ~ helper$.__defaults__ = (3.0,) | helper$.__kwdefaults__ = {"more": 0.7} |
        helper$.__kwdefaults__["more"] = -0.5 |
        helper$.__code__ = (lambda h, by=1.0, *, more=0.1: h - by).__code__
partial
    > k$ = [2.0]
    > def scaled$(h, by):
    >     return h * by[0]
    @f: functools.partial(scaled$, by=k$) | functools.partial(scaled$, by=[1.0])
    h = @f(h)
    ~ k$[0] = 0.5 | @f.keywords["by"] = [3.0]
closure with state
    > def maker$(k):
    >     def f(h):
    >         return h * k
    >     def change(to):
    >         nonlocal k
    >         k = to
    >     f.change = change
    >     return f
    @f: maker$(2.0) | maker$(0.5)
    h = @f(h)
    ~ @f.change(3.0) | @f.change(wg.randn(4))
tensor
    @t: TENSORS
    h = h * @t
    ~ with wg.no_grad(): @t.mul_(1.5) | with wg.no_grad(): @t[...] = 0.25 |
        @t = wg.full((4,), 0.5) | @t.requires_grad_(False) | @t = @t.detach() * 2.0 |
        @t.data = @t.data * 0.5
tensors in a list
    @ts: [wg.randn(4), wg.randn(4)] | [wg.randn(4, requires_grad=True)] | []
    for t in @ts:
        h = h + t
    ~ @ts.append(wg.full((4,), 0.2)) | @ts[0] = wg.ones(4) | @ts.pop() | @ts.reverse() |
        @ts = @ts * 2
a tuple that is replaced !
    @s: (wg.zeros(4), wg.ones(4)) | (wg.randn(4), wg.randn(4))
    @s = (wg.sum(h, axis=0).detach() + @s[1], @s[0] * 0.5)
    h = h + @s[1]
    ~ @s = @s[::-1] | @s = @s[0], @s[0] | @s = @s[1] * 2, wg.ones(4) | @s[0].mul_(0.5)
array
    @a: ARRAYS
    h = h * wg.asarray(@a)
    ~ @a *= 2 | @a[0] = 3.0 | @a = @a + 1
arrays alone
    @a: ARRAYS
    h = h * wg.asarray(np.sin(@a) + @a[1] * @a[0] - 1)
    ~ @a *= 0.5 | @a[0] = 3.0 | @a = @a + 1
index by an array
    @i: np.array([1, 0, 3, 2]) | np.array([3, 2, 1, 0]) | wg.asarray([0, 0, 1, 1])
    h = h + h[:, @i]
    ~ @i = np.array([2, 2, 2, 2]) | @i[0] = 2
mask
    @m: wg.asarray([True, False, True, False]) | np.array([False, True, True, False])
    h = wg.where(@m, h, h * 0.5)
    ~ @m = wg.asarray([False, False, True, False]) | @m[0] = False
module
    @m: MODULES
    h = @m(h)
    train list(@m.parameters())
    ~ @m.eval() | @m.train() | @m.requires_grad_(False) | @m.requires_grad_(True) |
        for p in @m.parameters(): p.grad = None |
        for p in @m.parameters(): p.register_hook(lambda g: g * 0.5) |
        @m.load_state_dict({k: v * 0.5 for k, v in @m.state_dict().items()})
modules in a list
    @ms: [wg.nn.Linear(4, 4), wg.nn.Tanh()] | wg.nn.ModuleList([wg.nn.Linear(4, 4), wg.nn.Tanh()]) |
        (wg.nn.Linear(4, 4),)
    for m in @ms:
        h = m(h)
    ~ @ms.append(wg.nn.ReLU()) | @ms[0] = wg.nn.Linear(4, 4) | del @ms[-1]
own module
    > class Own$(wg.nn.Module):
    >     shift = 0.1
    >     def __init__(self, k):
    >         self.w = wg.nn.Parameter(wg.randn(4))
    >         self.k, self.extra = k, None
    >         self.register_buffer('seen', wg.zeros(4))
    >     def forward(self, h):
    >         if self.training:
    >             h = h * self.k
    >         h = h * self.w + self.shift + self.seen
    >         return h if self.extra is None else self.extra(h)
    @m: Own$(2.0) | Own$(0.5)
    h = @m(h)
    train [@m.w]
    ~ @m.k = 3.0 | @m.eval() | @m.train() | @m.extra = wg.nn.Linear(4, 4) |
        @m.extra = lambda h: h - 1.0 | Own$.shift = 0.5 | @m.shift = -0.5 | @m.seen = wg.ones(4) |
        @m.w = wg.nn.Parameter(wg.ones(4)) | @m.w.grad = None | @m.forward = lambda h: h * 0.5 |
        Own$.forward = lambda self, h: h * self.w
dropout !
    @m: wg.nn.Dropout(0.5) | wg.nn.Dropout(0.0) | wg.nn.Dropout(0.2)
    h = @m(h)
    ~ @m.eval() | @m.train() | @m.p = 0.3 | wg.manual_seed(5)
noise !
    @k: 0.5 | 0.1
    h = h + wg.rand_like(h) * @k + wg.normal(4) * 0.1 + wg.randn(4) * 0.1
    ~ wg.manual_seed(7) | wg.rand_like(x0)
checkpoint !
    @m: wg.nn.Sequential(wg.nn.Linear(4, 4), wg.nn.Tanh()) | wg.nn.Linear(4, 4) |
        lambda h: wg.sin(h) * 2.0
    h = wg.checkpoint(@m, h)
    ~ wg.manual_seed(3)
state in place !
    @s: wg.zeros(4) | wg.randn(3, 4)[1]
    h = h + @s
    with wg.no_grad():
        @s += wg.mean(h.detach(), axis=0)
        @s[1:3] = @s[:2] * 0.5
    ~ @s.zero_() | @s = wg.ones(4)
two names of one tensor
    @a: wg.ones(4)
    @b: wg.randn(4)
    h = h + @a * @b
    ~ @a = @b | @b = wg.ones(4) | @b.mul_(2.0)
view and in place
    g = h.detach().clone()
    v = g.T[1:3]
    v *= 2.0
    g[0] = 0.5
    h = h + g
setitem
    g = h * 1.0
    g[:, 1] = h[:, 0] * 2.0
    h = g
reshape in place
    g = wg.reshape(wg.tanh(h).T, (-1,))
    g[:2] = 0.0
    h = wg.reshape(g, (4, -1)).T
einsum
    @w: wg.randn(4, 4) | wg.eye(4)
    h = wg.einsum("ij,jk->ik", h, @w)
nothing twice
    h = wg.sin(h) + wg.sin(h) * 1 + 0.0
raises
    @k: 1 | 2.0 | -1
    if @k < 0:
        raise ValueError("negative")
gradient inside
    @k: 2.0 | 0.5 | wg.randn(4)
    h = h + wg.grad(lambda z: wg.sum(wg.sin(z) * @k))(h)
vjp inside
    @f: wg.sin | lambda z: z * z
    y, pull = wg.vjp(@f, h)
    h = h + pull(wg.ones_like(y))[0]
own rule
    > @wg.custom_vjp
    > def doubled$(h):
    >     return h * 2.0
    > doubled$.defvjp(lambda h: (h * 2.0, h), lambda saved, g: (g * 3.0,))
    h = doubled$(h)
number given
    a$: 1.5 | 2.0 | -0.5 | 0.25
    h = h * a$
number decides
    a$: 0 | 1 | 2 | 3.0
    h = h * 2.0 if a$ > 1 else -h
array given, computed
    a$: ARRAYS
    h = h + wg.asarray(np.sin(a$) * 2 + a$[0])
list given
    a$: [1.0, 2.0] | [wg.ones(4) * 2.0] | [] | [0.5, 1]
    for t in a$:
        h = h * t
dict given
    a$: {"k": 2.0} | {"k": 0.5} | {"k": 0.5, "t": wg.ones(4)}
    h = h * a$["k"] + a$.get("t", 0.0)
object given
    > oa$ = types.SimpleNamespace(k=2.0, t=wg.ones(4))
    > ob$ = types.SimpleNamespace(k=0.5, t=wg.randn(4))
    a$: oa$ | ob$
    h = h * a$.k + a$.t
    ~ oa$.k = 3.0 | oa$.t = wg.zeros(4) | ob$.t.mul_(2.0)
gives numbers
    @k: NUMBERS
    return @k
gives an array
    @a: ARRAYS
    return @a + 1
    ~ @a *= 2 | @a = @a + 1
gives two of one
    g$ = wg.exp(h * 0.1)
    return (g$, g$[0], {'a': g$})
gives state
    @t: TENSORS
    return @t
hook inside
    @k: 0.5 | 2.0
    h = h * 1.0
    h.register_hook(lambda g: g * @k) if h.requires_grad else None
    h = h * 2.0
hooks on parameters
    > class Nothing$:
    >     def remove(self):
    >         pass
    > hook$ = Nothing$()
    @w: wg.randn(4, requires_grad=True)
    h = h * @w
    train [@w]
    ~ hook$ = @w.register_hook(lambda g: g * 0.5) | hook$.remove() |
        hook$ = @w.register_hook(lambda g: wg.clip(g, -0.1, 0.1)) |
        @w.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.5))
number in a hook
    > rate$ = [0.5]
    @w: wg.randn(4, requires_grad=True)
    h = h * @w
    train [@w]
    ~ @w.register_hook(lambda g: g * rate$[0]) | rate$[0] = 2.0 | rate$[0] = 0.1
own function
    > class Double$(wg.autograd.Function):
    >     @staticmethod
    >     def forward(ctx, x):
    >         ctx.save_for_backward(x)
    >         return x * 2.0
    >     @staticmethod
    >     def backward(ctx, g):
    >         (x,) = ctx.saved_tensors
    >         return g * 3.0
    h = Double$.apply(h)
grad mode
    @on: True | False
    with wg.set_grad_enabled(@on):
        c = wg.sin(h)
    h = h + c
copied outside
    @m: MODULES
    h = @m(h)
    ~ @m = copy.deepcopy(@m)
swapped gradients !
    @p: wg.ones(4, requires_grad=True)
    < @p.grad = None if spare.grad is None else spare.grad
gradient set !
    @p: wg.ones(4, requires_grad=True)
    < @p.grad = wg.full((4,), 0.5)
gradient read
    @p: wg.ones(4, requires_grad=True)
    if @p.grad is not None:
        h = h + @p.grad
    ~ @p.grad = wg.ones(4) | @p.grad = None | @p.grad = wg.zeros(4)
compiled inside
    > rate$ = 2.0
    > @wg.compile
    > def part$(h):
    >     return wg.sin(h) * rate$
    @k: 2.0 | 0.5
    h = part$(h)
    ~ rate$ = 0.5
loss
    @c: wg.nn.MSELoss() | wg.nn.L1Loss() | wg.nn.MSELoss(reduction="sum") |
        wg.nn.HuberLoss(delta=0.5) | F.mse_loss
    h = h + 0.1 * @c(h, wg.zeros_like(h))
argument in place !
    with wg.no_grad():
        x.mul_(0.5)
    h = h + x.detach()
state given !
    > sa$ = {'h': wg.zeros(4)}
    a$: sa$
    a$['h'] = wg.tanh(a$['h'] + wg.mean(h, axis=0)).detach()
    h = h + a$['h']
optimiser inside
    @w: wg.randn(4, requires_grad=True)
    o = wg.optim.SGD([@w], lr=0.1)
    h = h * @w
tensors given in a list
    > la$ = [wg.randn(4), wg.randn(4)]
    a$: la$ | la$[:1] | la$ + la$
    for i, t in enumerate(a$):
        h = h + t * (i + 1)
    ~ la$.reverse() | la$.append(wg.ones(4)) | la$[0] = wg.zeros(4)
"""


def _values(text: str) -> tuple[str, ...]:
    return tuple(VALUES.get(text, text).split(" | "))


#: The field of a piece that lines with a mark are for.
FIELDS = {"": "body", ">": "setup", "<": "after", "return": "gives", "train": "trains"}


def _piece(name: str, lines: list[str]) -> Piece:
    found: dict[str, Any] = {"body": "", "holds": {}, "pure": not name.endswith(" !")}
    for line in lines:
        mark, rest = re.fullmatch(
            r"(@\w+:|a\$:|[<>~]|return|train|)(?:(?<=.) )?(.*)", line
        ).groups()  # type: ignore[union-attr]
        if mark[:1] == "@":
            found["holds"][mark[1:-1]] = _values(rest)
        elif mark in ("~", "a$:"):
            found["changes" if mark == "~" else "argument"] = _values(rest)
        else:
            found[FIELDS[mark]] = f"{found.get(FIELDS[mark], '')}\n{rest}".lstrip("\n")
    return Piece(name.removesuffix(" !"), **found)


PIECES = [
    _piece(name, [line[4:] for line in lines])
    for name, *lines in map(
        str.splitlines, re.split(r"\n(?=\S)", TEXT.strip().replace(" |\n       ", " |"))
    )
]
