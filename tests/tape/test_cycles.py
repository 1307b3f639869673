"""What a step leaves is freed by reference counting alone: nothing is in a reference cycle.

A cycle costs memory until Python's collector happens to run, and programs that switch it off for
their speed never get that back.
"""

import gc

import numpy as np
import pytest

import wengert as wg
from tests.func.operations import operation
from tests.walking import walk
from wengert import func, nn, optim
from wengert.nn import functional as F

LABELS = np.asarray([0, 2, 1, 2])


@pytest.fixture(autouse=True)
def _library_without_cycles(backend):
    if backend.name in ("dask", "jax"):
        pytest.skip(f"{backend.name} leaves cycles of its own")


def check(_, run):
    """No call leaves what only the collector finds; a first call fills what is kept."""
    run()
    gc.freeze()  # so that it looks at nothing else: at the end of a long session that takes seconds
    flags, enabled = gc.get_debug(), gc.isenabled()
    gc.disable()
    try:
        run()
        run()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        assert not sorted(f"{type(x).__module__}.{type(x).__qualname__}" for x in gc.garbage)
    finally:
        gc.set_debug(flags)
        gc.garbage.clear()
        gc.unfreeze()
        if enabled:
            gc.enable()


def features(requires_grad=True):
    made = wg.asarray(np.linspace(-1, 1, 12).reshape(4, 3), dtype=wg.float32)
    return made.requires_grad_(requires_grad)


OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.1),
    "nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: optim.Adam(p, amsgrad=True, weight_decay=0.1),
    "adamw": lambda p: optim.AdamW(p),
}


def steps(name, dtype):
    """A step without a closure, or with one."""
    p = wg.ones(3, dtype=dtype, requires_grad=True)
    optimizer = OPTIMIZERS[name]([p])

    def closure():
        optimizer.zero_grad()
        loss = wg.sum(wg.real(p * wg.conj(p)))
        loss.backward()
        return loss

    def step():
        closure()
        nn.utils.clip_grad_norm_([p], 1.0)
        nn.utils.clip_grad_value_([p], 1.0) if dtype == "float32" else None
        optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.step(closure)

    return step


def compiled(name):
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.2), nn.Linear(4, 3))
    optimizer = OPTIMIZERS[name](model.parameters())
    x, labels = features(False), wg.asarray(LABELS)

    @wg.compile
    def step(x, labels):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(2):  # eager, recorded
        step(x, labels)
    return lambda: step(x, labels)


def test_steps(backend):
    rows = [(f"{n}, {d}", steps(n, d)) for n in OPTIMIZERS for d in ("float32", "complex64")]
    walk([*rows, *((f"compiled {name}", compiled(name)) for name in OPTIMIZERS)], check, whole=True)


LAYERS = {
    **{name: getattr(nn, name) for name in ("ELU", "GELU", "LogSigmoid", "Dropout", "Flatten")},
    "linear": lambda: nn.Linear(3, 3),
    "no bias": lambda: nn.Linear(3, 3, bias=False),
    "softmax": lambda: nn.Softmax(1),
    "sequential": lambda: nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3)),
}
LOSSES = {
    "cross_entropy": lambda x: F.cross_entropy(x, wg.asarray(LABELS), label_smoothing=0.1),
    "nll": lambda x: F.nll_loss(wg.log_softmax(x, axis=1), wg.asarray(LABELS)),
    "mse": lambda x: nn.MSELoss()(x, wg.zeros_like(x)),
    "huber": lambda x: F.huber_loss(x, wg.zeros_like(x)),
    "bce": lambda x: F.binary_cross_entropy(F.sigmoid(x), wg.ones_like(x)),
    "bce_logits": lambda x: F.binary_cross_entropy_with_logits(x, wg.ones_like(x)),
}


def test_layers_and_losses(backend):
    def used(layer):
        wg.sum(layer(features()) ** 2).backward()
        layer.zero_grad()
        layer.load_state_dict(layer.state_dict())
        repr(layer)

    def made(make):
        layer = make()
        layer.eval()
        layer.train()
        layer.to(wg.float64)

    kept = {name: make() for name, make in LAYERS.items()}
    rows = [(name, lambda layer=layer: used(layer)) for name, layer in kept.items()]
    rows += [(f"made {name}", lambda make=make: made(make)) for name, make in LAYERS.items()]
    rows += [(name, lambda f=f: f(features()).backward()) for name, f in LOSSES.items()]
    walk(rows, check, whole=True)


def f(x):
    return wg.sum(wg.sin(x) * x[::-1] ** 2)


def g(x):
    return wg.sin(x) * wg.sum(x)


@func.custom_vjp
def cube(x):
    return x**3


cube.defvjp(lambda x: (x**3, x), lambda x, g: (3 * x**2 * g,))

TRANSFORMS = {
    "grad": lambda x: wg.grad(f)(x),
    "grad of grad": lambda x: wg.grad(lambda y: wg.sum(wg.grad(f)(y) ** 2))(x),
    "value_and_grad": lambda x: wg.value_and_grad(f)(x),
    "elementwise_grad": lambda x: func.elementwise_grad(wg.sin)(x),
    "vjp": lambda x: wg.vjp(g, x)[1](x),
    "jvp": lambda x: wg.jvp(g, (x,), (x,)),
    "linearize": lambda x: func.linearize(g, x)[1](x),
    "jacobian": lambda x: wg.jacobian(g)(x),
    "jacfwd": lambda x: func.jacfwd(g)(x),
    "jacrev": lambda x: func.jacrev(g)(x),
    "hessian": lambda x: wg.hessian(f)(x),
    "hvp": lambda x: wg.hvp(f, (x,), (x,)),
    "ggnvp": lambda x: func.ggnvp(g, lambda y: wg.sum(y**2), (x,), (x,)),
    "custom_vjp": lambda x: wg.grad(lambda y: wg.sum(cube(y)))(x),
    "checkpoint": lambda x: wg.grad(lambda y: f(wg.checkpoint(g, y)))(x),
}


def test_transforms(backend):
    """Of Tensors and of arrays."""
    x = wg.asarray([0.3, 0.5, 0.7])
    kinds = x, x.array
    rows = [(n, lambda t=t, x=x: t(x)) for n, t in TRANSFORMS.items() for x in kinds]
    walk(rows, check, whole=True)


def square(ctx, x):
    out = x * x
    ctx.save_for_backward(x, out)
    return out


def slope(ctx, g):
    x, _ = ctx.saved_tensors
    return 2 * x * g


squared = operation(square, slope)


def hooked(x):
    y = x * 2
    handles = [
        x.register_hook(lambda g: g * 2),
        x.register_post_accumulate_grad_hook(lambda leaf: None),
        y.register_hook(lambda g: g),
    ]
    y.retain_grad()
    f(y).backward()
    for handle in handles[:2]:
        handle.remove()


def within(context):
    def run(x):
        with context:
            f(x).backward()

    return run


def found_by_anomaly(x):
    with wg.detect_anomaly(), pytest.raises(RuntimeError, match="nan"):
        wg.sum(wg.sqrt(x - x) * 0).backward()


def twice(x):
    (first,) = wg.autograd.grad(f(x), [x], create_graph=True)
    wg.sum(first**2).backward()


def in_place(x):
    y = x * 2
    y += x
    y[0] = 1.0
    f(y).backward()


TAPE = {
    "hooks": hooked,
    "saved tensors' hooks": within(wg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)),
    "anomaly": within(wg.detect_anomaly()),
    "anomaly found": found_by_anomaly,
    "create_graph": twice,
    "in place": in_place,
    "checkpoint": lambda x: f(wg.checkpoint(g, x)).backward(),
    "no backward": f,
    "Function": lambda x: wg.sum(squared(x)).backward(),
    "custom_vjp": lambda x: wg.sum(cube(x)).backward(),
    "several results": lambda x: wg.sum(wg.linalg.qr(wg.eye(3) * x).R).backward(),
}


@pytest.mark.filterwarnings("ignore:.*[Aa]nomaly", "ignore:invalid value:RuntimeWarning")
def test_tape(backend):
    def row(run):
        return lambda: run(wg.tensor([0.3, 0.5, 0.7], requires_grad=True))

    walk([(name, row(run)) for name, run in TAPE.items()], check, whole=True)
