"""Training steps as people write them, a row each: its name, and the lines that make it.

Lines stand after those of `BEFORE` in test_realistic_steps.py. ``step:`` is what the step returns,
``loss:`` what it updates by, and ``after CONDITION:`` what happens after the call of number ``i``.
"""

__all__ = ["STEPS"]

STEPS = """
plain
rate as an argument
    def at_rate(x, y, lr):
        optimizer.param_groups[0]["lr"] = lr
        return train(x, y)
    step: at_rate(x, y, 0.1), at_rate(x, y, 0.05)
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
scaled loss
    scaler = wg.amp.GradScaler(growth_interval=2)
    def step(x, y):
        optimizer.zero_grad()
        loss = error(x, y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss
weight flipped
    after: model[0].weight.requires_grad = bool(i % 2)
layer appended
    after i == 2: model.append(nn.LayerNorm(3))
    after i == 2: optimizer.add_param_group({"params": model[3].parameters()})
weights loaded midway
    kept = copy.deepcopy(model.state_dict())
    after i == 3: model.load_state_dict(kept)
dropout rate changed
    model[1] = nn.Dropout(0.5)
    after: model[1].p = 0.1 * i
evaluation between
    model[1] = nn.Dropout(0.5)
    after: model.eval()
    after: wg.no_grad()(model)(wg.ones((2, 5)))
    after: model.train()
switched to evaluation
    model[1] = nn.BatchNorm1d(4)
    after: model.train(i < 2)
seed of each call
    step: train(x + 0.1 * wg.randn(*x.shape), y)
    after: wg.manual_seed(i // 2)
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
spectral norm
    nn.utils.parametrizations.spectral_norm(model[0])
    optimizer = optim.SGD(model.parameters(), lr=0.1)
weight norm
    nn.utils.parametrizations.weight_norm(model[0])
    optimizer = optim.SGD(model.parameters(), lr=0.1)
batch norm
    model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
gradient penalty
    def step(x, y):
        x = x.detach().requires_grad_(True)
        out = model(x)
        (g,) = wg.autograd.grad(out.sum(), x, create_graph=True)
        return update(F.cross_entropy(out, y) + 0.1 * ((g**2).sum(axis=1) - 1).square().mean())
weights averaged
    averaged = optim.swa_utils.AveragedModel(model)
    more = list(averaged.parameters())
    step: train(x, y), averaged.update_parameters(model)
"""
