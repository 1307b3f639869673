"""The functions in which pieces stand, and what surrounds them."""

from tests.compiler.stateful.program import Frame

__all__ = ["CLIPS", "FRAMES", "INPUTS", "OPTIMIZERS"]

CALLS = ("results.append(step(CALL))",)

FRAMES: list[Frame] = [
    Frame(
        "function",
        "COMPILE\ndef step(x, ARGUMENTS):\n    h = x\n    BODY\n    AFTER\n    return h, GIVES",
        calls=(
            *CALLS * 3,
            "results.append(step(CALL)); wg.sum(results[-1][0]).backward()",
            "with wg.no_grad(): results.append(step(CALL))",
            (
                "u = wg.randn(3, 4, requires_grad=True); results.append(step(CALL)); "
                "wg.sum(results[-1][0]).backward(); results.append(u.grad)"
            ),
        ),
    ),
    Frame(
        "detached",
        "COMPILE\ndef step(x, ARGUMENTS):\n    h = x\n    BODY\n    AFTER\n"
        "    return plain(h, GIVES)",
        calls=(*CALLS * 3, "with wg.no_grad(): results.append(step(CALL))"),
    ),
    Frame(
        "value",
        "COMPILE\ndef step(x, ARGUMENTS):\n    h = x\n    BODY\n    AFTER\n"
        "    return wg.mean(h ** 2)",
        calls=(
            *CALLS * 2,
            "results.append(wg.grad(lambda z: step(CALL))(x0))",
            "results.append(wg.value_and_grad(lambda z: step(CALL))(x0))",
            "results.append(wg.jvp(lambda z: step(CALL), (x0,), (x0,)))",
        ),
    ),
    Frame(
        "train",
        "COMPILE\ndef step(x, ARGUMENTS):\n    optimizer.zero_grad()\n    h = x\n    BODY\n"
        "    loss = wg.mean(h ** 2) + wg.sum(spare)\n    loss.backward()\n    CLIP\n"
        "    optimizer.step()\n    AFTER\n    return loss, GIVES",
        "optimizer = OPTIMIZER",
        changes=(
            'optimizer.param_groups[0]["lr"] *= 0.5',
            'optimizer.param_groups[0]["lr"] = 0.3',
            'optimizer.param_groups[0]["weight_decay"] = 0.1',
            "optimizer.state.clear()",
            "optimizer.load_state_dict(optimizer.state_dict())",
            "optimizer = OPTIMIZER",
            "optimizer.zero_grad()",
            "spare.requires_grad_(False)",
            "spare.requires_grad_(True)",
            "spare.grad = None",
            "spare.grad = wg.ones(4)",
            'optimizer.add_param_group({"params": [wg.randn(2, requires_grad=True)]})',
            "optimizer.step()",
        ),
        pure=False,
    ),
    Frame(
        "accumulate",
        "COMPILE\ndef step(x, update, ARGUMENTS):\n    h = x\n    BODY\n"
        "    loss = wg.mean(h ** 2) + wg.sum(spare)\n    (loss / 2).backward()\n    if update:\n"
        "        CLIP\n        optimizer.step()\n        optimizer.zero_grad()\n    AFTER\n"
        "    return loss, GIVES",
        "optimizer = OPTIMIZER",
        calls=(
            "results.append(step(CALL, update=False))",
            "results.append(step(CALL, update=True))",
        ),
        changes=(
            'optimizer.param_groups[0]["lr"] *= 0.5',
            "spare.grad = None",
            "optimizer = OPTIMIZER",
            "spare.grad = wg.ones(4)",
        ),
        pure=False,
    ),
    Frame(
        "gradients",
        "COMPILE\ndef step(x, ARGUMENTS):\n    def loss(z):\n        h = z\n        BODY\n"
        "        return wg.mean(h ** 2)\n    value, g = wg.value_and_grad(loss)(x)\n"
        "    return value, g",
    ),
    Frame(
        "own update",
        "COMPILE\ndef step(x, ARGUMENTS):\n    h = x * spare\n    BODY\n"
        "    loss = wg.mean(h ** 2)\n"
        "    (g,) = wg.autograd.grad(loss, [spare])\n    with wg.no_grad():\n"
        "        spare.sub_(0.1 * g)\n"
        "    AFTER\n    return loss, GIVES",
        changes=("spare.mul_(0.5)",),
        pure=False,
    ),
    Frame(
        "keywords",
        "COMPILE\ndef step(x, ARGUMENTS, scale=1.0, *, on=None, **more):\n    h = x * scale\n"
        "    if on:\n        h = -h\n    for k, v in more.items():\n        h = h + v\n"
        "    BODY\n    AFTER\n"
        "    return plain({'h': h, 'more': [h * 1.0, GIVES]})",
        calls=(
            *CALLS,
            "results.append(step(CALL, scale=0.5))",
            "results.append(step(CALL, on=True))",
            "results.append(step(CALL, on=True, extra=wg.ones(4)))",
            "results.append(step(CALL, extra=1.0, scale=2))",
            "results.append(step(CALL, other=0.5))",
        ),
    ),
    Frame(
        "carried",
        "COMPILE\ndef step(x, ARGUMENTS):\n    h = wg.tanh(x + carried[-1])\n    BODY\n    AFTER\n"
        "    return plain(h, 0.5, GIVES)",
        "carried = [wg.zeros(3, 4)]",
        calls=(
            "results.append(step(CALL)); carried[-1] = wg.tanh(results[-1][0]).detach()",
            "results.append(step(CALL)); carried.append(results[-1][0].detach())",
            "results.append(step(CALL)); carried[:] = [results[-1][0] * 0.5]",
            "x0 = step(CALL)[0].detach()",
        ),
        pure=False,
    ),
    Frame(
        "method",
        "COMPILE\ndef step(self, x, ARGUMENTS):\n    h = x\n    BODY\n    AFTER\n"
        "    return plain(h, GIVES)\n"
        "Mine.step = step\nstep = mine.step",
        method=True,
    ),
    Frame(
        "training method",
        "COMPILE\ndef step(self, x, ARGUMENTS):\n    self.optimizer.zero_grad()\n    h = x\n"
        "    BODY\n"
        "    loss = wg.mean(h ** 2) + wg.sum(self.spare)\n    loss.backward()\n    CLIP\n"
        "    self.optimizer.step()\n"
        "    AFTER\n    return loss, GIVES\n"
        "Mine.step = step\nstep = mine.step",
        "mine.spare = spare\nmine.optimizer = OPTIMIZER",
        changes=(
            'mine.optimizer.param_groups[0]["lr"] *= 0.5',
            "mine.optimizer = OPTIMIZER",
            "mine.spare = wg.randn(4, requires_grad=True)",
        ),
        pure=False,
        method=True,
    ),
    Frame(
        "optimiser given",
        "COMPILE\ndef step(optimizer, x, ARGUMENTS):\n    optimizer.zero_grad()\n    h = x\n"
        "    BODY\n"
        "    loss = wg.mean(h ** 2) + wg.sum(spare)\n    loss.backward()\n    CLIP\n"
        "    optimizer.step()\n"
        "    AFTER\n    return loss, GIVES",
        "optimizer = OPTIMIZER\nother = OPTIMIZER",
        calls=("results.append(step(optimizer, CALL))",) * 4
        + ("results.append(step(other, CALL))",),
        changes=('optimizer.param_groups[0]["lr"] *= 0.5',),
        pure=False,
    ),
]

OPTIMIZERS = (
    "wg.optim.SGD(TRAINS, lr=0.1)",
    "wg.optim.SGD(TRAINS, lr=0.1, momentum=0.9)",
    "wg.optim.SGD(TRAINS, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)",
    "wg.optim.SGD(TRAINS, lr=0.1, momentum=0.9, dampening=0.5)",
    "wg.optim.Adam(TRAINS, lr=0.05)",
    "wg.optim.Adam(TRAINS, lr=0.05, amsgrad=True)",
    "wg.optim.AdamW(TRAINS, lr=0.05, weight_decay=0.1)",
)
CLIPS = (
    "pass",
    "pass",
    "wg.nn.utils.clip_grad_norm_([spare], 0.5)",
    "wg.nn.utils.clip_grad_value_([spare], 0.1)",
)
INPUTS = (
    "wg.randn(3, 4)",
    "wg.randn(3, 4)",
    "x0",
    "wg.randn(2, 4)",
    "wg.randn(3, 4, requires_grad=True)",
    "wg.randn(4, 3).T",
    "wg.randn(6, 4)[::2]",
)
