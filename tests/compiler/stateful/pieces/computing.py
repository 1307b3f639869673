"""Views, reshapes, writing in place, and derivatives inside."""

from tests.compiler.stateful.program import Piece

__all__ = ["PIECES"]

PIECES: list[Piece] = [
    Piece("transposed, flat", "h = wg.reshape(wg.reshape(wg.exp(h * 0.1).T, (-1,)), (-1, 4))"),
    Piece(
        "permuted, flat",
        "h = wg.permute_dims(wg.reshape(h * 1.5, (-1, 2, 2)), (2, 0, 1))\n"
        "h = wg.reshape(h, (-1, 4))",
    ),
    Piece(
        "moved axis",
        "h = wg.reshape(wg.moveaxis(wg.reshape(wg.sin(h), (2, 2, -1)), 0, 2), (-1, 4))",
    ),
    Piece("slices", "h = wg.concat([h[:, 2:], h[:, :2]], axis=1) + h[::-1]"),
    Piece("broadcast", "h = wg.broadcast_to(h[:1], h.shape) + h"),
    Piece("rolled and stacked", "h = wg.stack([h, wg.roll(h, 1, axis=1)])[1]"),
    Piece(
        "split",
        "a, b = wg.split(h, 2, axis=1) if hasattr(wg, 'split') else (h[:, :2], h[:, 2:])\n"
        "h = wg.concat([b, a], axis=1)",
    ),
    Piece(
        "view and in place", "g = h.detach().clone()\nv = g.T[1:3]\nv *= 2.0\ng[0] = 0.5\nh = h + g"
    ),
    Piece("setitem", "g = h * 1.0\ng[:, 1] = h[:, 0] * 2.0\nh = g"),
    Piece("in-place operators", "g = h * 1.0\ng += 1.0\ng *= h\ng -= 0.5\nh = g"),
    Piece("in-place methods", "g = wg.sin(h)\ng.add_(h).mul_(0.5).clamp_(-1.0, 1.0)\nh = g"),
    Piece(
        "reshape in place",
        "g = wg.reshape(wg.tanh(h).T, (-1,))\ng[:2] = 0.0\nh = wg.reshape(g, (4, -1)).T",
    ),
    Piece("at", "h = wg.at(h)[0].add(1.0) if hasattr(wg, 'at') else h"),
    Piece(
        "unstacked", "rows = wg.unstack(h)\nh = wg.stack([r * (i + 1) for i, r in enumerate(rows)])"
    ),
    Piece(
        "shape decides", "h = h * h.shape[0] + (h.size if isinstance(h.size, int) else 1) * 0.01"
    ),
    Piece("einsum", 'h = wg.einsum("ij,jk->ik", h, @w)', {"w": ("wg.randn(4, 4)", "wg.eye(4)")}),
    Piece("attention", "a = wg.softmax(h @ h.T * 0.5, axis=-1)\nh = a @ h"),
    Piece("integers", "i = wg.argmax(h, axis=1)\nh = h + wg.one_hot(i, 4)"),
    Piece("detach", "h = h + (wg.sin(h) - h).detach()"),
    Piece("no grad", "with wg.no_grad():\n    c = wg.max(wg.abs(h))\nh = h / (c + 1.0)"),
    Piece("nothing twice", "h = wg.sin(h) + wg.sin(h) * 1 + 0.0"),
    Piece("comprehension", "h = sum([h * k for k in (1.0, 2.0)], h * 0.0)"),
    Piece(
        "try",
        "try:\n    h = @f(h)\nexcept ValueError:\n    h = h * 2.0",
        {"f": ("lambda h: h * 3.0", "wg.sin")},
    ),
    Piece(
        "caught",
        "try:\n    h = @f(h)\nexcept ValueError:\n    h = h * 2.0",
        {"f": ("fails$", "wg.sin")},
        'def fails$(h):\n    raise ValueError("no")',
    ),
    Piece(
        "factorised",
        "try:\n    h = h @ wg.linalg.cholesky(@a)\nexcept Exception:\n    h = h * 2.0",
        {"a": ("wg.eye(4)", "-wg.eye(4)", "wg.eye(4) * 2.0")},
        changes=("@a.mul_(-1.0)",),
    ),
    Piece("raises", 'if @k < 0:\n    raise ValueError("negative")', {"k": ("1", "2.0", "-1")}),
    Piece(
        "gradient inside",
        "h = h + wg.grad(lambda z: wg.sum(wg.sin(z) * @k))(h)",
        {"k": ("2.0", "0.5", "wg.randn(4)")},
    ),
    Piece(
        "create_graph",
        "z = h * 1.0\nif not z.requires_grad:\n    z.requires_grad_(True)\n"
        "(g,) = wg.autograd.grad(wg.sum(z ** 3), [z], create_graph=True)\nh = h + 0.1 * g",
    ),
    Piece(
        "vjp inside",
        "y, pull = wg.vjp(@f, h)\nh = h + pull(wg.ones_like(y))[0]",
        {"f": ("wg.sin", "lambda z: z * z")},
    ),
    Piece(
        "jvp inside",
        "y, t = wg.jvp(@f, (h,), (wg.ones_like(h),))\nh = h + t",
        {"f": ("wg.sin", "lambda z: z * z")},
    ),
    Piece(
        "hessian inside",
        "h = h @ wg.hessian(lambda z: wg.sum(z ** 3 * @k))(h[0])",
        {"k": ("0.5", "1.0")},
    ),
    Piece(
        "penalty",
        "g = wg.grad(lambda z: wg.sum(wg.tanh(@m(z))))(h)\nh = h + g * wg.sum(g * g)",
        {"m": ("wg.nn.Linear(4, 4)",)},
        trains="list(@m.parameters())",
    ),
    Piece(
        "own rule",
        "h = doubled$(h)",
        {},
        "@wg.custom_vjp\ndef doubled$(h):\n    return h * 2.0\n"
        "doubled$.defvjp(lambda h: (h * 2.0, h), lambda saved, g: (g * 3.0,))",
    ),
]
