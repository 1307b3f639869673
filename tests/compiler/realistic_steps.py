"""Training steps as people write them, a row each: its name, and the lines that make it.

Lines stand after those of `BEFORE` in test_realistic_steps.py. ``step:`` is what the step returns,
``loss:`` what it updates by, and ``after CONDITION:`` what happens after the call of number ``i``.
"""

__all__ = ["STEPS"]

STEPS = """
plain
rate by hand
    after: optimizer.param_groups[0]["lr"] *= 0.5
warm-up by hand
    after: optimizer.param_groups[0].update(lr=0.1 * min(1.0, (i + 1) / 4))
rate as an argument
    def at_rate(x, y, lr):
        optimizer.param_groups[0]["lr"] = lr
        return train(x, y)
    step: at_rate(x, y, 0.1), at_rate(x, y, 0.05)
schedule outside
    schedule = optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    after: schedule.step()
schedule inside
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    step: train(x, y), schedule.step()
one cycle inside
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20)
    step: train(x, y), schedule.step()
least rate of a schedule changed
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    step: train(x, y), schedule.step()
    after i in (2, 4): schedule.eta_min = 0.01 if i == 2 else 0
Adam with new betas
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    after i > 1: optimizer.param_groups[0].update(betas=(0.9 - 0.1 * i, 0.99))
steps of a parameter counted anew
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    after i == 3: optimizer.state[model[0].weight]["step"] = 1
momentum switched on midway
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    after i == 1: optimizer.param_groups[0].update(momentum=0.9)
AMSGrad switched on midway
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    after i == 1: optimizer.param_groups[0].update(amsgrad=True)
means switched on midway
    optimizer = optim.RMSprop(model.parameters(), lr=0.1)
    after i == 1: optimizer.param_groups[0].update(centered=True)
momentum of RMSprop switched on midway
    optimizer = optim.RMSprop(model.parameters(), lr=0.1)
    after i == 1: optimizer.param_groups[0].update(momentum=0.5)
two groups
    groups = [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.01}]
    optimizer = optim.AdamW(groups, lr=0.1)
    after: optimizer.param_groups[1].update(lr=0.01 * i)
a rate that two groups share
    groups = [{"params": model[0].parameters()}, {"params": model[2].parameters()}]
    optimizer = optim.SGD(groups, lr=0.5)
    rates = [(0.5, 0.5), (0.5, 0.5), (0.25, 0.25), (0.25, 0.125), (0.5, 0.5), (0.1, 0.5)]
    after: [group.update(lr=lr) for group, lr in zip(optimizer.param_groups, rates[i])]
no decay for biases
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim < 2]
    optimizer = optim.AdamW([{"params": decayed}, {"params": others, "weight_decay": 0.0}])
group added midway
    optimizer = optim.SGD(model[2].parameters(), lr=0.1, momentum=0.9)
    after i == 2: optimizer.add_param_group({"params": model[0].parameters(), "lr": 0.01})
two optimizers
    other = optim.Adam(model[0].parameters(), lr=0.01)
    optimizer = optim.SGD(model[2].parameters(), lr=0.1)
    def step(x, y):
        other.zero_grad()
        loss = train(x, y)
        other.step()
        return loss
optimizer replaced midway
    after i == 2: optimizer = optim.Adam(model.parameters(), lr=0.01)
optimizer loaded midway
    kept = []
    after i == 1: kept.append(copy.deepcopy(optimizer.state_dict()))
    after i == 3: optimizer.load_state_dict(kept[0])
update by hand
    def step(x, y):
        loss = error(x, y)
        model.zero_grad()
        loss.backward()
        with wg.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
        return loss
functional update
    params = {"w": wg.randn(5, 3), "b": wg.zeros(3)}
    more = list(params.values())
    def value(params, x, y):
        return F.cross_entropy(x @ params["w"] + params["b"], y)
    def step(x, y):
        found, grads = wg.func.value_and_grad(value)(params, x, y)
        with wg.no_grad():
            for name, p in params.items():
                p -= 0.1 * grads[name]
        return found
weights averaged
    averaged = optim.swa_utils.AveragedModel(model)
    more = list(averaged.parameters())
    step: train(x, y), averaged.update_parameters(model)
gradients clipped
    def step(x, y):
        optimizer.zero_grad()
        error(x, y).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return norm
gradients added up inside
    def step(x, y):
        optimizer.zero_grad()
        for half in (slice(0, 2), slice(2, 4)):
            (error(x[half], y[half]) / 2).backward()
        optimizer.step()
gradients added up over calls
    step: (error(x, y) / 2).backward()
    after i % 2: optimizer.step(); optimizer.zero_grad()
a flag as an argument
    def part(x, y, last):
        error(x, y).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    step: part(x, y, False), part(x, y, True)
scaled loss
    scaler = wg.amp.GradScaler(growth_interval=2)
    def step(x, y):
        optimizer.zero_grad()
        loss = error(x, y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss
gradients by autograd.grad
    params = list(model.parameters())
    def step(x, y):
        for p, g in zip(params, wg.autograd.grad(error(x, y), params), strict=True):
            p.grad = g
        optimizer.step()
gradient penalty
    def step(x, y):
        x = x.detach().requires_grad_(True)
        out = model(x)
        (g,) = wg.autograd.grad(out.sum(), x, create_graph=True)
        return update(F.cross_entropy(out, y) + 0.1 * ((g**2).sum(axis=1) - 1).square().mean())
noise on gradients
    def step(x, y):
        optimizer.zero_grad()
        error(x, y).backward()
        for p in model.parameters():
            p.grad = p.grad + 0.01 * wg.randn(*p.shape)
        optimizer.step()
penalty by a float
    def penalised(x, y, decay=0.01):
        return update(error(x, y) + decay * sum((p**2).sum() for p in model.parameters()))
    step: penalised(x, y)
layer frozen midway
    after: model[0].requires_grad_(i != 2)
weight flipped
    after: model[0].weight.requires_grad = bool(i % 2)
module swapped
    after i == 2: model[1] = nn.ReLU()
layer appended
    after i == 2: model.append(nn.LayerNorm(3))
    after i == 2: optimizer.add_param_group({"params": model[3].parameters()})
weights tied
    model = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 5), nn.Linear(5, 3))
    model[2].weight = model[0].weight
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    after i == 2: model[2].weight = nn.Parameter(model[0].weight.detach().clone())
weights loaded midway
    kept = copy.deepcopy(model.state_dict())
    after i == 3: model.load_state_dict(kept)
spectral norm
    nn.utils.parametrizations.spectral_norm(model[0])
    optimizer = optim.SGD(model.parameters(), lr=0.1)
weight norm
    nn.utils.parametrizations.weight_norm(model[0])
    optimizer = optim.SGD(model.parameters(), lr=0.1)
hook added midway
    after i == 2: model[1].register_forward_hook(lambda module, args, out: out * 0.5)
hook on a gradient
    model[0].weight.register_hook(lambda g: g * 0.5)
hook on an activation
    def step(x, y):
        hidden = model[1](model[0](x))
        hidden.register_hook(lambda g: g.clip(-0.01, 0.01))
        return update(F.cross_entropy(model[2](hidden), y))
dropout
    model[1] = nn.Dropout(0.5)
dropout rate changed
    model[1] = nn.Dropout(0.5)
    after: model[1].p = 0.1 * i
evaluation between
    model[1] = nn.Dropout(0.5)
    after: model.eval()
    after: wg.no_grad()(model)(wg.ones((2, 5)))
    after: model.train()
evaluation inside
    model[1] = nn.Dropout(0.5)
    def step(x, y):
        loss = train(x, y)
        model.eval()
        with wg.no_grad():
            right = (model(x).argmax(axis=1) == y).sum()
        model.train()
        return loss, right
switched to evaluation
    model[1] = nn.BatchNorm1d(4)
    after: model.train(i < 2)
batch norm
    model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
counter as a buffer
    more = [wg.zeros(())]
    step: update(error(x, y) / more[0].add_(1.0))
hidden state carried
    model[0] = nn.GRUCell(5, 4)
    held.h = wg.zeros((4, 4))
    def step(x, y):
        h = model[0](x, held.h)
        held.h = h.detach()
        return update(F.cross_entropy(model[2](model[1](h)), y))
hidden tuple carried
    model[0] = nn.LSTMCell(5, 4)
    held.state = wg.zeros((4, 4)), wg.zeros((4, 4))
    def step(x, y):
        h, c = model[0](x, held.state)
        held.state = h.detach(), c.detach()
        return update(F.cross_entropy(model[2](model[1](h)), y))
    after i == 2: held.state = wg.zeros((4, 4)), wg.zeros((4, 4))
subclass with a property
    class Scaled(nn.Linear):
        factor = 1.0
        @property
        def scaled(self):
            return self.weight * self.factor
        def forward(self, x):
            return F.linear(x, self.scaled, self.bias)
    model[0] = Scaled(5, 4)
    after: Scaled.factor = 1.0 + i
attention
    layer = nn.MultiheadAttention(5, 1, batch_first=True)
    more = list(layer.parameters())
    step: train(layer(x[None], x[None], x[None], need_weights=False)[0][0], y)
embedding
    model = nn.Sequential(nn.Embedding(3, 4), nn.Linear(4, 3))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    step: train(y, y)
distillation
    teacher = nn.Linear(5, 3).requires_grad_(False)
    loss: F.kl_div(F.log_softmax(model(x) / 2.0, -1), F.softmax(teacher(x) / 2.0, -1))
inner gradient step
    def step(x, y):
        w, hidden = model[2].weight, model[1](model[0](x))
        inner = F.cross_entropy(F.linear(hidden, w), y)
        (g,) = wg.autograd.grad(inner, w, create_graph=True)
        return update(F.cross_entropy(F.linear(hidden, w - 0.1 * g), y))
checkpointed block
    loss: F.cross_entropy(wg.checkpoint(model, x), y)
Hessian inside
    step: wg.func.hessian(lambda z: error(z, y[:1]))(x[:1]), train(x, y)
noise on data
    step: train(x + 0.1 * wg.randn(*x.shape), y)
mixup
    def step(x, y):
        order = wg.argsort(wg.rand(4))
        share = wg.rand(())
        z = share * x + (1 - share) * x[order]
        return update(share * error(z, y) + (1 - share) * error(z, y[order]))
augmentation outside
    shift, numpy = wg.zeros(5), np.random.default_rng(0)
    step: train(x + shift, y)
    after: shift.copy_(wg.asarray(numpy.normal(size=5).astype(np.float32)))
NumPy buffer refilled
    noise, numpy = np.zeros((4, 5), np.float32), np.random.default_rng(0)
    step: train(x + wg.asarray(noise), y)
    after: noise[...] = numpy.normal(size=noise.shape)
NumPy buffer replaced
    held.noise = np.zeros((4, 5), np.float32)
    step: train(x + wg.asarray(held.noise), y)
    after: held.noise = np.full((4, 5), i, np.float32)
labels smoothed
    loss: error(x, y, label_smoothing=held.k / 10)
    after: held.k = 0.5 * i
one-hot labels
    loss: F.mse_loss(model(x), F.one_hot(y, 3).astype(wg.float32))
masked tokens
    step: train(wg.where(wg.rand(4, 5) > 0.3, x, 0.0), y)
batch as a named tuple
    Batch = namedtuple("Batch", "x y")
    def of_batch(batch):
        return train(batch.x, batch.y)
    step: of_batch(Batch(x, y))
keywords and defaults
    def by_name(x, *, y, scale=1.0, **others):
        return update(F.cross_entropy(model(x) * scale, y))
    step: by_name(x, y=y, scale=0.5)
crop of another length
    held.n = 4
    step: train(x[: held.n], y[: held.n])
    after: held.n = 2 + i % 3
dataclass of settings
    @dataclasses.dataclass
    class Config:
        weight: float = 1.0
        kind: str = "mean"
        sizes: tuple[int, ...] = (4, 2)
    config = Config()
    loss: error(x, y, reduction=config.kind) * config.weight
    after: config.weight, config.kind = 1.0 / (i + 1), "sum" if i == 2 else "mean"
dict of settings
    config = {"weight": 1.0, "loss": {"smoothing": 0.0}}
    loss: error(x, y, label_smoothing=config["loss"]["smoothing"]) * config["weight"]
    after: config["weight"] = 1.0 / (i + 1)
    after i > 2: config["loss"]["smoothing"] = 0.1
enum of settings
    class Kind(enum.Enum):
        MEAN = "mean"
        SUM = "sum"
    held.kind = Kind.MEAN
    loss: (wg.mean if held.kind is Kind.MEAN else wg.sum)(error(x, y, reduction="none"))
    after: held.kind = Kind.SUM if i == 2 else Kind.MEAN
global that changes
    globals()["SCALE"] = 1.0
    loss: error(x, y) * SCALE
    after: globals().update(SCALE=1.0 + i)
global list that changes
    globals()["THRESHOLDS"] = [0.5, 0.25]
    step: train(wg.where(x > THRESHOLDS[0], x, 0.1 * x), y)
    after: THRESHOLDS.insert(0, 0.1 * i)
helper with globals of its own
    space = {"SCALE": 2.0}
    exec("def helper(x):\\n    return x * SCALE", space)
    helper = space["helper"]
    step: train(helper(x), y)
    after i == 2: space["SCALE"] = 3.0
partial function
    partial = functools.partial(F.cross_entropy, label_smoothing=0.1)
    loss: partial(model(x), y)
partial that is replaced
    held.loss = functools.partial(F.cross_entropy, label_smoothing=0.1)
    new = functools.partial(F.cross_entropy, label_smoothing=0.2)
    loss: held.loss(model(x), y)
    after i == 2: held.loss = new
lambdas in a list
    losses = [F.cross_entropy, lambda out, y: 0.1 * (out**2).mean()]
    loss: sum(each(model(x), y) for each in losses)
    after i == 2: losses.append(lambda out, y: out.mean() ** 2)
loss chosen by a key
    losses = {"a": nn.CrossEntropyLoss(), "b": nn.CrossEntropyLoss(label_smoothing=0.3)}
    held.key = "a"
    loss: losses[held.key](model(x), y)
    after: held.key = "ab"[i % 2]
class with methods
    class Trainer:
        weight = 1.0
        def __init__(self):
            self.model = model
        def loss(self, x, y):
            return F.cross_entropy(self.model(x), y) * self.weight
        def step(self, x, y):
            return update(self.loss(x, y))
    trainer = Trainer()
    step = trainer.step
    after: trainer.weight = 1.0 / (i + 1)
callable object
    class Step:
        def __call__(self, x, y):
            return train(x, y)
    step = Step()
stages of a curriculum
    stages, held.stage = [slice(0, 2), slice(0, 3), slice(0, 4)], 0
    step: train(x[stages[held.stage]], y[stages[held.stage]])
    after: held.stage = min(i // 2, 2)
early stopping
    after: held.best, held.left = 0.1 * i, 2 - i
nested containers
    tree = OrderedDict(a=[wg.ones(5)], b=defaultdict(list, c=[wg.zeros(5)]))
    more = [tree["a"][0]]
    step: train(x * tree["a"][0].mul_(0.9) + tree["b"]["c"][0], y)
recursion over layers
    def run(layers, x):
        return run(layers[1:], layers[0](x)) if layers else x
    loss: F.cross_entropy(run(list(model), x), y)
generator expression
    def step(x, y):
        outs = (layer(x) for layer in [model, lambda x: x[:, :3]])
        return update(F.cross_entropy(functools.reduce(lambda a, b: a + b, outs), y))
assertions on shapes
    def step(x, y):
        assert x.shape[1] == 5 and x.ndim == 2, "features"
        n, _ = x.shape
        return update(error(x, y) * (n / 4))
metrics that are returned
    def step(x, y):
        out = model(x)
        loss = update(F.cross_entropy(out, y))
        return {"loss": loss.detach(), "right": (out.argmax(axis=1) == y).sum(), "size": len(x)}
branch on a flag
    held.noisy = False
    step: train(x + 0.1 * wg.randn(*x.shape) if held.noisy else x, y)
    after: held.noisy = bool(i % 2)
bad batches left out by selection
    def step(x, y):
        loss = error(x, y)
        return update(wg.where(loss < 1.0, loss, 0.0))
gradients that are set
    def step(x, y):
        error(x, y).backward()
        optimizer.step()
    after i % 2: [setattr(p, "grad", None) for p in model.parameters()]
    after not i % 2: [setattr(p, "grad", wg.ones_like(p)) for p in model.parameters()]
seed of each call
    step: train(x + 0.1 * wg.randn(*x.shape), y)
    after: wg.manual_seed(i // 2)
view of a weight that is held
    after: more.append(model[0].weight.detach()[0])
number of an object
    class Axis:
        value = 0
        def __index__(self):
            return self.value
    axis = Axis()
    step: train(x - wg.mean(x, axis=axis, keepdims=True), y)
    after: axis.value = i % 2
Tensors that become one
    held.a, held.b = wg.ones(5), wg.ones(5)
    step: train(x * held.a.mul_(0.5) + held.b, y)
    after i == 2: held.b = held.a
a tuple of Tensors in a class
    class Carried:
        pair = (wg.zeros(5), wg.ones(5))
    def step(x, y):
        first, second = Carried.pair
        Carried.pair = (second + x[0], first * 2.0)
        return train(x + second, y)
gradients and states by other names
    optimizer = optim.Adam(model.parameters())
    def step(x, y):
        there = getattr(model[0].weight, "gr" + "ad") is not None
        return update(error(x, y) * (len(optimizer.state) + 1.0) * (2.0 if there else 3.0))
    after i in (2, 4): optimizer.state.clear(); optimizer.zero_grad()
checkpoint beside dropout
    loss: F.cross_entropy(F.dropout(wg.checkpoint(model, F.dropout(x, 0.5)), 0.5), y)
scan of a cell
    model[0] = nn.LSTMCell(5, 4)
    def one(state, x):
        state = model[0](x, state)
        return state, state[0]
    def step(x, y):
        zeros = wg.zeros((4, 4))
        (_, c), ys = wg.scan(one, (zeros, zeros), wg.stack([x] * 12))
        return update(F.cross_entropy(model[2](ys[-1]), y) + wg.mean(c))
optimiser that keeps nothing
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    after i == 2: optimizer.state.clear()
    after i == 3: optimizer = optim.SGD(model.parameters(), lr=0.2)
gradient let go inside
    p, held.how = nn.Parameter(wg.ones(5)), "keep"
    def step(x, y):
        wg.sum(p * x).backward()
        if held.how == "none":
            p.grad = None
        elif held.how == "another":
            p.grad = p.grad * 2.0
    after: more.append(wg.zeros(1) if p.grad is None else p.grad)
    after: held.how = ("keep", "none", "keep", "another")[i % 4]
rate that is set inside
    held.slow = False
    def step(x, y):
        optimizer.param_groups[0]["lr"] = 0.01 if held.slow else 0.1
        return train(x, y)
    after: held.slow = i in (1, 2, 4)
gradient of what is not reached
    unused = nn.Parameter(wg.ones(5))
    unused.grad, more = wg.ones(5), [unused]
    optimizer = optim.SGD([*model.parameters(), unused], lr=0.1, weight_decay=0.5)
    def step(x, y):
        optimizer.zero_grad(set_to_none=False)
        error(x, y).backward()
        optimizer.step()
    after i == 3: unused.grad = None
parameters in another order
    normal = np.random.default_rng(1).normal
    turned = [np.asfortranarray(normal(size=shape)) for shape in ((5, 6), (90, 100))]
    more = [nn.Parameter(wg.asarray(x)) for x in turned]
    optimizer = optim.Adam([*more, *model.parameters()], lr=0.1)
    loss: error(x, y) + sum(wg.sum(wg.exp(wg.sin(w * (i + 1)))) for i, w in enumerate(more))
"""
