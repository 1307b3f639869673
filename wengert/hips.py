"""HIPS/autograd's names and conventions over Wengert's transforms and `wengert.numpy`."""

import math
import sys
import warnings
from collections.abc import Callable
from functools import partial, wraps
from importlib import abc, import_module, machinery
from itertools import count, product
from types import ModuleType
from typing import Any

import numpy as np

import wengert as wg
from wengert import func
from wengert.func import tree_flatten, tree_leaves
from wengert.numpy.naming import holds
from wengert.tape.node import is_lifted
from wengert.tape.tensor import Tensor, differentiates, host_values

Function = Callable[..., Any]


def tree_map(function: Function, tree: Any, *rest: Any) -> Any:
    """As that of `func`, and quick for an array, and for arguments."""
    if isinstance(tree, Tensor | np.ndarray | float):
        return function(tree, *rest)
    if type(tree) is tuple and not rest:
        return tuple([tree_map(function, part) for part in tree])
    return func.tree_map(function, tree, *rest)


_WHOLE = [np.dtype(code) for code in "?bhilqBHILQ"]
# Arrays of integers and booleans are differentiated in float64.
_floating = partial(tree_map, lambda x: x * 1.0 if getattr(x, "dtype", None) in _WHOLE else x)
# Gradients and cotangents of complex numbers are the conjugates of Wengert's own.
_conjugate = partial(tree_map, lambda x: np.conj(x) if np.iscomplexobj(x) else x)


def _follow(function: Function) -> Function:
    """A function whose results are Tensors; HIPS/autograd warns of those that depend on nothing."""

    def call(x: Any) -> Any:
        result = _floating(function(x))
        if not holds(Tensor, tree_leaves(result)):
            warnings.warn("Output seems independent of input.", stacklevel=2)
        return tree_map(wg.asarray, result)

    return call


def unary_to_nary(transform: Function) -> Function:
    """Let a transform of one argument take any function, and ``argnum``: a position or several."""

    def operator(fun: Function, argnum: Any = 0, *options: Any, **named: Any) -> Any:
        places = argnum if isinstance(argnum, tuple | list) else [argnum]

        @wraps(fun, updated=())
        def call(*args: Any, **keywords: Any) -> Any:
            @wraps(fun, updated=())
            def unary(x: Any) -> Any:
                given = list(args)
                for at, one in zip(places, x if places is argnum else [x], strict=True):
                    given[at] = one
                return fun(*given, **keywords)

            chosen = _floating(tuple([args[at] for at in places]))
            return transform(unary, chosen if places is argnum else chosen[0], *options, **named)

        return call

    return operator


def _make_vjp(fun: Function, x: Any) -> Any:
    value, pullback = wg.vjp(_follow(fun), x)
    return lambda g: _conjugate(pullback(_conjugate(_floating(g)))[0]), value


def _jacobian(fun: Function, x: Any) -> Any:
    """The Jacobian; of real results by complex arguments its conjugate, as gradients are."""
    found, result = func.jacrev(lambda x: ((y := fun(x)), y), has_aux=True)(x)
    return found if any(map(np.iscomplexobj, tree_leaves(result))) else _conjugate(found)


def _check_grads(
    fun: Function, x: Any, modes: Any = ("fwd", "rev"), order: int = 2, name: str = ""
) -> None:
    """Compare both products along random directions with central differences."""
    random, name = np.random.default_rng(0), name or getattr(fun, "__name__", "a function")
    draw = partial(tree_map, lambda y: (y * 0 + 1) * random.standard_normal(np.shape(y)))
    v = draw(x := _plain(x))
    moved = [tree_map(lambda a, b, h=h: wg.asarray(a + h * b), x, v) for h in (5e-7, -5e-7)]
    before, after = (tree_map(getval, fun(place)) for place in moved)
    expected = 1e6 * (_dot(w := draw(after), before) - _dot(w, after))
    jvp: Any = lambda pair: UNARY["make_jvp"](fun, pair[0])(pair[1])[1]
    vjp: Any = lambda pair: _make_vjp(fun, pair[0])[0](pair[1])
    for mode in modes:
        kind, move, along, other = ("jvp", jvp, v, w) if mode == "fwd" else ("vjp", vjp, w, v)
        if not NARY["scalar_close"](found := _dot(other, move((x, along))), expected):
            raise AssertionError(
                f"Derivative ({kind.upper()}) check of {name} failed: the gradient along a "
                f"direction is {found}, and by differences {expected}"
            )
        if order > 1:
            _check_grads(move, (x, along), modes, order - 1, f"{kind}_{name}")


def _dot(x: Any, y: Any) -> Any:
    pairs = zip(tree_leaves(x), tree_leaves(y), strict=True)
    return sum(np.real(np.sum(getval(a) * getval(b))) for a, b in pairs)


def convolve(
    own: Function, A: Any, B: Any, axes: Any = None, dot_axes: Any = ((), ()), mode: str = "full",
    **options: Any,
) -> Any:  # fmt: skip
    """SciPy's convolution; or one along ``axes`` of both, summed over ``dot_axes``.

    The result has the other axes of A, then those of B, then those of the convolution.
    """
    if axes is None:
        return own(A, B, mode=mode, **options)
    parts, counts, dots = [], [], len(dot_axes[0])
    for x, along, dot in zip((A, B), axes, dot_axes, strict=True):
        rest = [i for i in range(np.ndim(x)) if i not in (*along, *dot)]
        parts.append(wg.permute_dims(wg.asarray(x) * 1.0, (*rest, *dot, *along)))
        counts.append(len(rest))
    first = parts[0][(slice(None),) * counts[0] + (None,) * counts[1]]
    second, n = parts[1][(None,) * counts[0]], sum(counts)
    lead = np.broadcast_shapes(first.shape[: n + dots], second.shape[: n + dots])
    first = wg.broadcast_to(first, (*lead, *first.shape[n + dots :]))
    signal: Any = import_module("wengert.scipy.signal")
    found = signal.fftconvolve(first, second, mode, axes=range(n + dots, first.ndim))
    found = wg.sum(found, axis=tuple(range(n, n + dots)))
    return found if holds(Tensor, (A, B)) else getval(found)


def fixed_point(f: Function, a: Any, x0: Any, distance: Function, tol: float) -> Any:
    """Iterate ``f(a)`` from ``x0`` to the point that it keeps, differentiated implicitly."""
    implicit: Any = import_module("wengert.scipy.implicit")
    step, unflatten = f(a), flatten(x0)[1]
    with wg.no_grad():
        x, before = step(x0), x0
        while distance(x, before) > tol:
            x, before = step(x), x
        found = implicit.values_of(flatten(x)[0], "fixed_point")
    residual = lambda vector: flatten(step(unflatten(vector)))[0] - vector
    return unflatten(implicit.solution("fixed_point", residual, found, tree_leaves((a, x0))))


_conjugate_first: Any = lambda gradient, aux: (_conjugate(gradient), aux)
_CLOSE = np.testing.assert_allclose
#: HIPS/autograd's name to what transforms a function of one argument, at a point.
UNARY: dict[str, Function] = {
    "deriv": lambda fun, x: UNARY["make_jvp"](fun, x)(tree_map(np.ones_like, x))[1],
    "elementwise_grad": lambda fun, x: _conjugate(func.elementwise_grad(_follow(fun))(x)),
    "grad": lambda fun, x: UNARY["value_and_grad"](fun, x)[1],
    "grad_and_aux": lambda fun, x: _conjugate_first(*wg.grad(fun, has_aux=True)(x)),
    "hessian": lambda fun, x: UNARY["jacobian"](partial(UNARY["jacobian"], fun), x),
    "holomorphic_grad": lambda fun, x: UNARY["grad"](lambda z: np.real(fun(z)), x),
    "jacobian": lambda fun, x: _jacobian(_follow(fun), x),
    "make_hvp": lambda fun, x: _make_vjp(partial(UNARY["grad"], fun), x),
    "make_jvp": lambda fun, x: lambda v: wg.jvp(_follow(fun), (x,), (_floating(v),)),
    "make_jvp_reversemode": lambda fun, x: func.linearize(_follow(fun), x)[1],
    "make_vjp": _make_vjp,
    "value_and_grad": lambda fun, x: _conjugate(wg.value_and_grad(_follow(fun))(x)),
}
NARY = {name: unary_to_nary(transform) for name, transform in UNARY.items()}
NARY |= {
    "check_equivalent": partial(tree_map, lambda a, b: _CLOSE(getval(a), getval(b), 1e-6, 1e-6)),
    "check_grads": unary_to_nary(_check_grads),
    "checkpoint": lambda fun: wraps(fun, updated=())(partial(wg.checkpoint, fun)),
    "combo_check": lambda fun, *options, **named: (
        lambda *lists, **more: [
            NARY["check_grads"](fun, *options, **named)(*args, **dict(zip(more, last, strict=True)))
            for *args, last in product(*lists, product(*more.values()))
        ]
    ),
    "hessian_tensor_product": lambda fun, argnum=0: (
        lambda *args, **given: NARY["make_hvp"](fun, argnum)(*args[:-1], **given)[0](args[-1])
    ),
    "make_diagonal": lambda D, *, axis1=0, axis2=1: np.moveaxis(
        np.where(np.eye(np.shape(D)[-1]) > 0, np.expand_dims(D, -1), 0.0), (-1, -2), (axis1, axis2)
    ),
    "make_ggnvp": lambda f, g=lambda y: np.sum(y**2, axis=-1) / 2, f_argnum=0: unary_to_nary(
        lambda fun, x: lambda v: func.ggnvp(fun, g, (x,), (v,))[0]
    )(f, f_argnum),
    "scalar_close": lambda a, b: abs(a - b) < 1e-6 * max(1.0, abs(a + b)),
    "tensor_jacobian_product": lambda fun, argnum=0: NARY["jacobian"](
        lambda *args: np.tensordot(args[-1], fun(*args[:-1]), axes=np.ndim(args[-1])), argnum
    ),
}


def isbox(x: Any) -> bool:
    """Whether a value is tracked, by the tape or a transform."""
    return isinstance(x, Tensor) and (is_lifted(x._array) or differentiates(x))


def getval(x: Any) -> Any:
    """The values of a Tensor as NumPy's array or scalar, which are not tracked."""
    return host_values(x).copy()[()] if isinstance(x, Tensor) else x


_plain = partial(tree_map, lambda x: x if isbox(x) else getval(x))


def primitive(f_raw: Function) -> Any:
    """A function of NumPy's arrays, whose derivative `defvjp` gives."""

    def forward(keywords: dict[str, Any], *args: Any) -> Any:
        result = tree_map(wg.asarray, f_raw(*_plain(args), **keywords))
        return result, (result, args)

    def backward(keywords: dict[str, Any], kept: Any, g: Any) -> Any:
        (ans, args), g, found = _plain(kept), _plain(_conjugate(g)), [None] * len(kept[1])
        for at, tree in enumerate(kept[1]):
            if any(isinstance(x, Tensor) and x.dtype.inexact for x in tree_leaves(tree)):
                if at not in call.vjps:
                    raise NotImplementedError(f"{label}: no rule for argument {at}; see defvjp")
                if maker := call.vjps[at]:
                    found[at] = tree_map(wg.asarray, _conjugate(maker(ans, *args, **keywords)(g)))
        return tuple(found)

    def run(*args: Any, **keywords: Any) -> Any:
        if any(map(isbox, tree_leaves((args, keywords)))):
            return operation(keywords, *args)
        return f_raw(*_plain(args), **keywords)

    def refuse(*given: Any) -> Any:
        raise NotImplementedError(f"{label} has no forward mode: take make_jvp_reversemode")

    call: Any = wraps(f_raw, updated=())(run)
    named: Any = lambda *given: forward(*given)[0]
    named.__name__ = label = getattr(f_raw, "__name__", type(f_raw).__name__)
    operation = wg.custom_vjp(named, nondiff_argnums=(0,))
    operation.defvjp(forward, backward)
    operation.defjvp(refuse)
    call.vjps = {}
    return call


def defvjp(fun: Any, *vjpmakers: Any, argnums: Any = None) -> None:
    """Give rules ``vjpmaker(ans, *args, **kwargs)(g)``, one for each argument; None is zero."""
    fun.vjps = dict(zip(argnums or count(), vjpmakers, strict=False))


def flatten(value: Any) -> Any:
    """Return the numbers of a tree as a vector, and the function from vectors back to trees."""
    leaves, structure = tree_flatten(value)
    shapes = [np.shape(leaf) for leaf in leaves]
    cuts = np.cumsum([math.prod(shape) for shape in shapes], dtype=int)[:-1].tolist()
    vector = np.concatenate([np.ravel(leaf) for leaf in leaves] or [np.zeros(0)])
    return vector, lambda x: structure.unflatten(map(np.reshape, np.split(x, cuts), shapes))


def flatten_func(func: Function, example: Any) -> Any:
    """Return the function, taking and giving vectors; what makes trees; the example as a vector."""
    vector, unflatten = flatten(example)
    return lambda x, *args: flatten(func(unflatten(x), *args))[0], unflatten, vector


vars(flatten).update(flatten=flatten, flatten_func=flatten_func)  # it stands for its module too


def adam(
    grad: Any, x0: Any, callback: Any = None, num_iters: int = 100, step_size: Any = 0.001,
    b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, start: float = 0.0,
) -> Any:  # fmt: skip
    """Descend by an average of gradients, over the root of one of squares: Adam's if from zero."""
    (x, unflatten), m, v = flatten(x0), 0.0, start
    for i in range(num_iters):
        g = flatten(grad(unflatten(x), i))[0]
        if callback:
            callback(unflatten(x), i, unflatten(g))
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        ahead, scale = (m, v) if start else (m / (1 - b1 ** (i + 1)), v / (1 - b2 ** (i + 1)))
        x = x - step_size * ahead / (np.sqrt(scale) + eps)
    return unflatten(x)


OPTIMIZERS, FIXED_POINTS = ModuleType("optimizers"), ModuleType("fixed_points")
vars(OPTIMIZERS).update(
    adam=adam,
    rmsprop=lambda grad, x0, callback=None, num_iters=100, step_size=0.1, gamma=0.9, eps=1e-8: adam(
        grad, x0, callback, num_iters, step_size, 0.0, gamma, eps, 1.0
    ),
    sgd=lambda grad, x0, callback=None, num_iters=200, step_size=0.1, mass=0.9: adam(
        grad, x0, callback, num_iters, step_size, mass, 1.0, 0.0, 1.0
    ),
)
vars(FIXED_POINTS).update(fixed_point=fixed_point)


class _Modules(abc.MetaPathFinder, abc.Loader):
    """Finds HIPS/autograd's modules: tables, or what is in `wengert.numpy` and `wengert.scipy`."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        room, _, name = fullname.partition("hips.")
        own = room == "wengert." and (name in _MODULES or name.startswith(("numpy", "scipy")))
        return machinery.ModuleSpec(fullname, self, is_package=True) if own else None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__.removeprefix(f"{__name__}.")
        found: Any = _MODULES.get(name)
        if name == "scipy.signal":  # a module of its own: SciPy's room keeps its convolve
            found = {**vars(import_module("wengert.scipy.signal")), **vars(module)}
            found["convolve"] = partial(convolve, found["convolve"])
        if isinstance(found, dict):
            vars(module).update(found)
            return
        before, _, last = f"wengert.{name}".rpartition(".")
        found = found or getattr(import_module(before), last, None)  # also what is no module
        sys.modules[module.__name__] = found = found or import_module(f"wengert.{name}")
        vars(found).update(__path__=getattr(found, "__path__", []))  # `import` asks of parts


def _in_scipy(name: str) -> Any:
    found = getattr(import_module("wengert.scipy"), name)
    return import_module(f"{__name__}.scipy.{name}") if isinstance(found, ModuleType) else found


_NAMES: dict[str, Any] = {
    **{one.__name__: one for one in (defvjp, flatten, flatten_func)},
    **{one.__name__: one for one in (getval, isbox, primitive, unary_to_nary, dict, list, tuple)},
    **dict.fromkeys(("ArrayBox", "Box"), Tensor),
    **NARY,
    "hessian_vector_product": NARY["hessian_tensor_product"],
    "isinstance": lambda x, kinds: isinstance(x, kinds) or isinstance(getval(x), kinds),
    "type": lambda x, *more: type(getval(x), *more),
}
_OWN = "builtins differential_operators extend numpy.numpy_boxes test_util tracer wrap_util"
_MODULES: dict[str, Any] = {
    **dict.fromkeys(_OWN.split(), _NAMES),
    "core": {**_NAMES, **UNARY},
    "misc": {**_NAMES, "optimizers": OPTIMIZERS, "fixed_points": FIXED_POINTS},
    "misc.fixed_points": FIXED_POINTS,
    "misc.flatten": flatten,
    "misc.optimizers": OPTIMIZERS,
    "scipy": {"__getattr__": _in_scipy},
}


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return _NAMES[name]
    if name in _MODULES or name == "numpy":
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = _NAMES.keys
__path__: list[str] = []
if __name__ == "__main__":
    import_module("wengert.running").main("autograd")
sys.meta_path.insert(0, _Modules())  # before those that would load parts of rooms again
vars(sys.modules["wengert.numpy"]).update(make_diagonal=NARY["make_diagonal"])
setattr(Tensor, "_value", property(getval))  # noqa: B010 -- it is HIPS/autograd's
