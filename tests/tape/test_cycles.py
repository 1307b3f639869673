"""What a step leaves is freed by reference counting alone: nothing is in a reference cycle.

A cycle costs memory until Python's collector happens to run, and programs that switch it off for
their speed never get that back.
"""

import gc

import numpy as np
import pytest

import wengert as wg
from wengert import func, nn, optim
from wengert.nn import functional as F

FEATURES = np.linspace(-1, 1, 12).reshape(4, 3)
LABELS = np.asarray([0, 2, 1, 2])


@pytest.fixture(autouse=True)
def _library_without_cycles(backend):
    if backend.name in ("dask", "jax"):
        pytest.skip(f"{backend.name} leaves cycles of its own")


def unreachable(run):
    """What calls leave behind that only the collector finds; a first call fills what is kept."""
    run()
    gc.freeze()  # so that it looks at nothing else: at the end of a long session that takes seconds
    flags, enabled = gc.get_debug(), gc.isenabled()
    gc.disable()
    try:
        run()
        run()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        return sorted(f"{type(x).__module__}.{type(x).__qualname__}" for x in gc.garbage)
    finally:
        gc.set_debug(flags)
        gc.garbage.clear()
        gc.unfreeze()
        if enabled:
            gc.enable()


def features():
    return wg.asarray(FEATURES, dtype=wg.float32)


# -- optimisers ----------------------------------------------------------------------------------

OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "sgd momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.1),
    "sgd nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: optim.Adam(p),
    "adam amsgrad": lambda p: optim.Adam(p, amsgrad=True, weight_decay=0.1),
    "adamw": lambda p: optim.AdamW(p, amsgrad=True),
}


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, dtype, backend):
    p = wg.ones(3, dtype=dtype, requires_grad=True)
    optimizer = OPTIMIZERS[name]([p])

    def step():
        optimizer.zero_grad()
        wg.sum(wg.real(p * wg.conj(p))).backward()
        nn.utils.clip_grad_norm_([p], 1.0)
        nn.utils.clip_grad_value_([p], 1.0) if dtype == "float32" else None
        optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())

    assert not unreachable(step)


def test_a_step_with_a_closure(backend):
    p = wg.ones(3, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.1)

    def step():
        def closure():
            optimizer.zero_grad()
            loss = wg.sum(p * p)
            loss.backward()
            return loss

        return optimizer.step(closure)

    assert not unreachable(step)


# -- layers and losses ---------------------------------------------------------------------------

LAYERS = {
    "linear": lambda: nn.Linear(3, 3),
    "no bias": lambda: nn.Linear(3, 3, bias=False),
    "dropout": lambda: nn.Dropout(),
    "flatten": lambda: nn.Flatten(),
    "identity": lambda: nn.Identity(),
    **{
        name: getattr(nn, name)
        for name in (
            [
                "ELU",
                "GELU",
                "LeakyReLU",
                "LogSigmoid",
                "ReLU",
                "SiLU",
                "Sigmoid",
                "Softplus",
                "Tanh",
            ]
        )
    },
    "softmax": lambda: nn.Softmax(1),
    "log_softmax": lambda: nn.LogSoftmax(1),
    "sequential": lambda: nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3)),
}
LOSSES = {
    "cross_entropy": lambda x: nn.CrossEntropyLoss(label_smoothing=0.1)(x, wg.asarray(LABELS)),
    "nll": lambda x: nn.NLLLoss()(wg.log_softmax(x, axis=1), wg.asarray(LABELS)),
    "mse": lambda x: nn.MSELoss()(x, wg.zeros_like(x)),
    "l1": lambda x: nn.L1Loss()(x, wg.ones_like(x)),
    "huber": lambda x: nn.HuberLoss()(x, wg.zeros_like(x)),
    "smooth_l1": lambda x: nn.SmoothL1Loss()(x, wg.zeros_like(x)),
    "bce": lambda x: nn.BCELoss()(F.sigmoid(x), wg.ones_like(x)),
    "bce_logits": lambda x: nn.BCEWithLogitsLoss()(x, wg.ones_like(x)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, backend):
    layer = LAYERS[name]()

    def run():
        x = features()
        x.requires_grad = True
        wg.sum(layer(x) ** 2).backward()
        layer.zero_grad()
        layer.load_state_dict(layer.state_dict())
        repr(layer)

    assert not unreachable(run)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_itself_is_freed(name):
    def run():
        layer = LAYERS[name]()
        layer.eval()
        layer.train()
        layer.to(wg.float64)

    assert not unreachable(run)


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name, backend):
    def run():
        x = features()
        x.requires_grad = True
        LOSSES[name](x).backward()

    assert not unreachable(run)


# -- transforms ----------------------------------------------------------------------------------


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


@pytest.mark.whole
@pytest.mark.parametrize("kind", ["Tensor", "array"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name, kind, backend):
    x = wg.asarray([0.3, 0.5, 0.7])
    given = x if kind == "Tensor" else x.array
    assert not unreachable(lambda: TRANSFORMS[name](given))


# -- the tape ------------------------------------------------------------------------------------


class Square(wg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


def _hooks(x):
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


def _saved(x):
    with wg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        f(x).backward()


def _anomaly(x):
    with wg.detect_anomaly():
        f(x).backward()


def _anomaly_found(x):
    with wg.detect_anomaly(), pytest.raises(RuntimeError, match="nan"):
        wg.sum(wg.sqrt(x - x) * 0).backward()


def _twice(x):
    (first,) = wg.autograd.grad(f(x), [x], create_graph=True)
    wg.sum(first**2).backward()


def _in_place(x):
    y = x * 2
    y += x
    y[0] = 1.0
    f(y).backward()


def _checkpoint(x):
    f(wg.checkpoint(g, x)).backward()


def _never_swept(x):
    f(x)


TAPE = {
    "hooks": _hooks,
    "saved tensors' hooks": _saved,
    "anomaly": _anomaly,
    "create_graph": _twice,
    "in place": _in_place,
    "checkpoint": _checkpoint,
    "no backward": _never_swept,
    "Function": lambda x: wg.sum(Square.apply(x)).backward(),
    "several results": lambda x: wg.sum(wg.linalg.qr(wg.eye(3) * x).R).backward(),
}


@pytest.mark.filterwarnings("ignore:.*[Aa]nomaly")
@pytest.mark.parametrize("name", TAPE)
def test_tape(name, backend):
    def run():
        TAPE[name](wg.tensor([0.3, 0.5, 0.7], requires_grad=True))

    assert not unreachable(run)


# -- compiled steps ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_compiled_steps(name, backend):
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.2), nn.Linear(4, 3))
    optimizer = OPTIMIZERS[name](model.parameters())
    x, labels = features(), wg.asarray(LABELS)

    @wg.compile
    def step(x, labels):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):  # eager, recorded, compared
        step(x, labels)
    assert not unreachable(lambda: step(x, labels))
