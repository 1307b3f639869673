"""What is computed, given and trained, and Python's own statements and functions."""

__all__ = ["TEXT"]

TEXT = r"""
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
in-place methods
    g = wg.sin(h)
    g.add_(h).mul_(0.5).clamp_(-1.0, 1.0)
    h = g
reshape in place
    g = wg.reshape(wg.tanh(h).T, (-1,))
    g[:2] = 0.0
    h = wg.reshape(g, (4, -1)).T
einsum
    @w: wg.randn(4, 4) | wg.eye(4)
    h = wg.einsum("ij,jk->ik", h, @w)
attention
    a = wg.softmax(h @ h.T * 0.5, axis=-1)
    h = a @ h
nothing twice
    h = wg.sin(h) + wg.sin(h) * 1 + 0.0
no grad
    with wg.no_grad():
        c = wg.max(wg.abs(h))
    h = h / (c + 1.0)
try
    @f: lambda h: h * 3.0 | wg.sin
    try:
        h = @f(h)
    except ValueError:
        h = h * 2.0
factorised
    @a: wg.eye(4) | -wg.eye(4) | wg.eye(4) * 2.0
    try:
        h = h @ wg.linalg.cholesky(@a)
    except Exception:
        h = h * 2.0
    ~ @a.mul_(-1.0)
raises
    @k: 1 | 2.0 | -1
    if @k < 0:
        raise ValueError("negative")
gradient inside
    @k: 2.0 | 0.5 | wg.randn(4)
    h = h + wg.grad(lambda z: wg.sum(wg.sin(z) * @k))(h)
create_graph
    z = h * 1.0
    if not z.requires_grad:
        z.requires_grad_(True)
    (g,) = wg.autograd.grad(wg.sum(z ** 3), [z], create_graph=True)
    h = h + 0.1 * g
vjp inside
    @f: wg.sin | lambda z: z * z
    y, pull = wg.vjp(@f, h)
    h = h + pull(wg.ones_like(y))[0]
penalty
    @m: wg.nn.Linear(4, 4)
    g = wg.grad(lambda z: wg.sum(wg.tanh(@m(z))))(h)
    h = h + g * wg.sum(g * g)
    train list(@m.parameters())
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
length given
    a$: 3 | 4 | 3
    h = h + wg.sum(wg.arange(a$)) * 0.1
flag given
    a$: True | False | None | "x"
    h = h if a$ else -h
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
module given
    > ma$, mb$ = wg.nn.Linear(4, 4), wg.nn.Linear(4, 4)
    a$: ma$ | mb$
    h = a$(h)
object given
    > oa$ = types.SimpleNamespace(k=2.0, t=wg.ones(4))
    > ob$ = types.SimpleNamespace(k=0.5, t=wg.randn(4))
    a$: oa$ | ob$
    h = h * a$.k + a$.t
    ~ oa$.k = 3.0 | oa$.t = wg.zeros(4) | ob$.t.mul_(2.0)
function given
    > ka$ = [2.0]
    > fa$ = lambda h: h * ka$[0]
    a$: wg.sin | wg.cos | fa$
    h = a$(h)
    ~ ka$[0] = 0.3
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
named parameters
    @m: MODULES
    for name, p in @m.named_parameters():
        if 'bias' in name:
            h = h + p
    h = h * len(list(@m.modules()))
    ~ @m.requires_grad_(False)
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
classes
    @c: wg.nn.CrossEntropyLoss() | wg.nn.CrossEntropyLoss(wg.ones(4)) | F.cross_entropy
    h = h + @c(h, wg.argmax(h.detach(), axis=1))
builtins
    @ks: [1.0, 2.0] | [0.5, 0.1, 3] | (2, 1)
    ks = sorted(@ks)
    h = h * max(ks) + min(ks) * sum(ks) + len(ks)
    for i, (a, b) in enumerate(zip(ks, reversed(ks))):
        h = h + a * b * i
    h = h * any(k > 1 for k in ks) + all(map(bool, ks))
    ~ @ks = [0.1]
math
    @k: 2.0 | 4 | 0.25
    h = h * math.sqrt(@k) + math.pi + round(@k) + abs(@k)
match
    @how: "a" | ("b", 0.5) | ("b", 2.0) | None
    match @how:
        case "a":
            h = h * 2.0
        case ("b", k):
            h = h * k
        case _:
            h = -h
local function
    @k: 2.0 | 0.5
    def inner(z, k=@k):
        return z * k
    h = inner(h)
replaced
    > @dataclasses.dataclass(frozen=True)
    > class Fixed$:
    >     k: float = 1.0
    @c: Fixed$(1.0) | Fixed$(0.5)
    h = h * dataclasses.replace(@c, k=2.0).k * @c.k
super
    > class Under$(wg.nn.Module):
    >     def __init__(self):
    >         super().__init__()
    >         self.lin = wg.nn.Linear(4, 4)
    >     def forward(self, h):
    >         return self.lin(h)
    > class Over$(Under$):
    >     def forward(self, h):
    >         return super().forward(h) + 1.0
    @m: Over$()
    h = @m(h)
    train list(@m.parameters())
    ~ Under$.forward = lambda self, h: h * 0.5 | @m.lin = wg.nn.Tanh()
type
    > class Kind$:
    >     pass
    @o: Kind$() | [] | len
    h = h * (2.0 if type(@o) is Kind$ else 0.5 if callable(@o) else 1.0)
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
