"""The functions in which pieces stand, and what surrounds them."""

import re
from textwrap import indent

from tests.compiler.stateful.program import Frame

__all__ = ["CLIPS", "FRAMES", "INPUTS", "OPTIMIZERS"]

CALL = "results.append(step(CALL))"
RATE = 'optimizer.param_groups[0]["lr"] *= 0.5'
#: What a body begins with, and what it may end with.
BEGIN = "h = x\nBODY"
PLAIN = "AFTER\nreturn plain(h, GIVES)"
VALUE = "loss = wg.mean(h ** 2)"
SPARE = f"{VALUE} + wg.sum(spare)"
GIVES = "AFTER\nreturn loss, GIVES"
UPDATE = f"loss.backward()\nCLIP\noptimizer.step()\n{GIVES}"
TRAIN = f"optimizer.zero_grad()\n{BEGIN}\n{SPARE}\n{UPDATE}"
BOUND = "\nMine.step = step\nstep = mine.step"


def lines(*body: str, given: str = "x, ARGUMENTS") -> str:
    return f"COMPILE\ndef step({given}):\n" + indent("\n".join(body), "    ")


FRAMES: list[Frame] = [
    Frame(
        "function",
        lines(BEGIN, "AFTER\nreturn h, GIVES"),
        calls=(
            *[CALL] * 3,
            f"{CALL}; wg.sum(results[-1][0]).backward()",
            f"with wg.no_grad(): {CALL}",
            (
                f"u = wg.randn(3, 4, requires_grad=True); {CALL}; "
                "wg.sum(results[-1][0]).backward(); results.append(u.grad)"
            ),
        ),
    ),
    Frame("detached", lines(BEGIN, PLAIN), calls=(*[CALL] * 3, f"with wg.no_grad(): {CALL}")),
    Frame(
        "value",
        lines(BEGIN, "AFTER\nreturn wg.mean(h ** 2)"),
        calls=(
            *[CALL] * 2,
            "results.append(wg.grad(lambda z: step(CALL))(x0))",
            "results.append(wg.value_and_grad(lambda z: step(CALL))(x0))",
            "results.append(wg.jvp(lambda z: step(CALL), (x0,), (x0,)))",
        ),
    ),
    Frame(
        "train",
        lines(TRAIN),
        "optimizer = OPTIMIZER",
        changes=(
            RATE,
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
        lines(
            *(BEGIN, SPARE, "(loss / 2).backward()\nif update:"),
            *("    CLIP\n    optimizer.step()\n    optimizer.zero_grad()", GIVES),
            given="x, update, ARGUMENTS",
        ),
        "optimizer = OPTIMIZER",
        calls=tuple([f"results.append(step(CALL, update={x}))" for x in (False, True)]),
        changes=(RATE, "spare.grad = None", "optimizer = OPTIMIZER", "spare.grad = wg.ones(4)"),
        pure=False,
    ),
    Frame(
        "gradients",
        lines(
            "def loss(z):\n    h = z\n    BODY\n    return wg.mean(h ** 2)",
            "value, g = wg.value_and_grad(loss)(x)\nreturn value, g",
        ),
    ),
    Frame(
        "own update",
        lines(
            *("h = x * spare\nBODY", VALUE, "(g,) = wg.autograd.grad(loss, [spare])"),
            *("with wg.no_grad():\n    spare.sub_(0.1 * g)", GIVES),
        ),
        changes=("spare.mul_(0.5)",),
        pure=False,
    ),
    Frame(
        "keywords",
        lines(
            "h = x * scale\nif on:\n    h = -h\nfor k, v in more.items():\n    h = h + v",
            "BODY\nAFTER\nreturn plain({'h': h, 'more': [h * 1.0, GIVES]})",
            given="x, ARGUMENTS, scale=1.0, *, on=None, **more",
        ),
        calls=(
            CALL,
            "results.append(step(CALL, scale=0.5))",
            "results.append(step(CALL, on=True))",
            "results.append(step(CALL, on=True, extra=wg.ones(4)))",
            "results.append(step(CALL, extra=1.0, scale=2))",
            "results.append(step(CALL, other=0.5))",
        ),
    ),
    Frame(
        "carried",
        lines("h = wg.tanh(x + carried[-1])\nBODY\nAFTER\nreturn plain(h, 0.5, GIVES)"),
        "carried = [wg.zeros(3, 4)]",
        calls=(
            f"{CALL}; carried[-1] = wg.tanh(results[-1][0]).detach()",
            f"{CALL}; carried.append(results[-1][0].detach())",
            f"{CALL}; carried[:] = [results[-1][0] * 0.5]",
            "x0 = step(CALL)[0].detach()",
        ),
        pure=False,
    ),
    Frame("method", lines(BEGIN, PLAIN, given="self, x, ARGUMENTS") + BOUND, method=True),
    Frame(
        "training method",
        lines(re.sub(r"\b(optimizer|spare)\b", r"self.\1", TRAIN), given="self, x, ARGUMENTS")
        + BOUND,
        "mine.spare = spare\nmine.optimizer = OPTIMIZER",
        changes=(
            f"mine.{RATE}",
            "mine.optimizer = OPTIMIZER",
            "mine.spare = wg.randn(4, requires_grad=True)",
        ),
        pure=False,
        method=True,
    ),
    Frame(
        "optimiser given",
        lines(TRAIN, given="optimizer, x, ARGUMENTS"),
        "optimizer = OPTIMIZER\nother = OPTIMIZER",
        calls=tuple([f"results.append(step({x}, CALL))" for x in ["optimizer"] * 4 + ["other"]]),
        changes=(RATE,),
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
