"""Plain values, functions, Tensors, arrays and modules that are read, wherever they are."""

__all__ = ["TEXT"]

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
namedtuple
    > Pair$ = namedtuple("Pair$", "a b")
    @c: Pair$(2.0, None) | Pair$(1.0, 3) | Pair$(2, None)
    h = h * @c.a + (0.0 if @c.b is None else 1.0)
    ~ @c = @c._replace(a=0.3)
enum
    > class Mode$(Enum):
    >     A = 1.5
    >     B = 0.5
    @m: Mode$.A | Mode$.B
    h = h * 2.0 if @m is Mode$.A else h * @m.value
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
property
    > class Prop$:
    >     def __init__(self, k):
    >         self.k = k
    >     @property
    >     def scale(self):
    >         return self.k + 1.0
    @o: Prop$(2.0) | Prop$(0.5)
    h = h * @o.scale
    ~ @o.k = 3.0 | Prop$.scale = property(lambda self: self.k * 2.0)
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
    @f: FUNCTIONS
    h = @f(h)
helper
    > def helper$(h, by=2.0, *, more=0.1):
    >     return h * by + more
    @k: 1.5 | 0.5 | 2
    h = helper$(h)
    ~ helper$.__defaults__ = (3.0,) | helper$.__kwdefaults__ = {"more": 0.7} |
        helper$.__kwdefaults__["more"] = -0.5 |
        helper$.__code__ = (lambda h, by=1.0, *, more=0.1: h - by).__code__
functions in a list
    @fs: [wg.sin, lambda h: h * 2.0] | [wg.tanh] | []
    for f in @fs:
        h = f(h)
    ~ @fs.append(wg.cos) | @fs[-1] = lambda h: h * 0.1 | @fs.pop()
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
static and class methods
    > class Tools$:
    >     k = 0.5
    >     @staticmethod
    >     def one(h):
    >         return h * 2.0
    >     @classmethod
    >     def two(cls, h):
    >         return h * cls.k
    h = Tools$.one(h) + Tools$.two(h)
    ~ Tools$.k = 1.5 | Tools$.one = staticmethod(wg.sin)
decorated
    > factor$ = 2.0
    > def deco$(f):
    >     @functools.wraps(f)
    >     def g(h):
    >         return f(h) * factor$
    >     return g
    > @deco$
    > def wrapped$(h):
    >     return wg.sin(h)
    h = wrapped$(h)
    ~ factor$ = 0.5
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
a tensor that is replaced and stays elsewhere !
    > pair$ = (wg.zeros(4), wg.ones(4))
    @t: pair$[0]
    @t = wg.tanh(@t + wg.sum(h.detach(), axis=0))
    h = h + pair$[0] * @t
    ~ @t = pair$[0] | @t = pair$[1]
tensors in a dict
    @ts: {"a": wg.randn(4)} | {"a": wg.randn(4), "bb": wg.randn(1)}
    for k, t in @ts.items():
        h = h + t * len(k)
    ~ @ts["ccc"] = wg.full((4,), 0.2) | @ts["a"] = wg.ones(4) | @ts.popitem()
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
modules in a dict
    @ms: {"a": wg.nn.Linear(4, 4), "b": wg.nn.Tanh()} |
        wg.nn.ModuleDict({"a": wg.nn.Linear(4, 4)})
    for k in @ms:
        h = @ms[k](h)
    ~ @ms["c"] = wg.nn.ReLU() | @ms["a"] = wg.nn.Linear(4, 4) | @ms.pop("b")
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
shared weights
    @a: wg.nn.Linear(4, 4)
    @b: wg.nn.Linear(4, 4)
    h = @b(wg.tanh(@a(h)))
    ~ @b.weight = @a.weight | @b.weight = wg.nn.Parameter(wg.eye(4)) | @b = @a
buffer updated !
    > class Norm$(wg.nn.Module):
    >     def __init__(self):
    >         self.register_buffer('mean', wg.zeros(4))
    @m: Norm$()
    h = h - @m.mean
    with wg.no_grad():
        @m.mean.mul_(0.9).add_(0.1 * wg.mean(h, axis=0))
    ~ @m.mean = wg.ones(4) | @m.mean.zero_()
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
exponential average !
    @m: wg.nn.Linear(4, 4)
    @e: wg.zeros(4, 4)
    @d: 0.9 | 0.5
    < with wg.no_grad():
    <     @e.mul_(@d).add_(@m.weight * (1.0 - @d))
    ~ @e = wg.ones(4, 4) | @e.zero_()
state replaced !
    @s: wg.zeros(4)
    @s = wg.tanh(@s + wg.mean(h, axis=0)).detach()
    h = h + @s
    ~ @s = wg.ones(4)
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
"""
