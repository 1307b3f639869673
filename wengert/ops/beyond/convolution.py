"""Convolutions of the last axes, three primitives that are each other's derivatives.

With images x, weights w and a cotangent g of the result, the sum of ``g * convolution(x, w)`` is
linear in each of the three. Its derivatives by g, by x and by w are the three primitives here, so
that the derivatives of each are the other two. They are composed of windows and one product of
matrices for each group.

``how`` is the tuple of stride, padding (how many zeros are before and after each axis), dilation
and groups.
"""

from typing import Any

# They are called through the namespace.
from wengert.ops.beyond import contraction as contraction
from wengert.ops.beyond import numpy_convolutions as numpy_convolutions
from wengert.ops.beyond import windows as windows
from wengert.tape.primitive import Primitive

Sizes = tuple[int, ...]
Margins = tuple[tuple[int, int], ...]
How = tuple[Sizes, Margins, Sizes, int]


def _split(xp: Any, x: Any, axis: int, parts: int) -> Any:
    """``x`` with an axis of parts before that of their elements."""
    shape = tuple(x.shape)
    return xp.reshape(x, (*shape[:axis], parts, shape[axis] // parts, *shape[axis + 1 :]))


def _join(xp: Any, x: Any, axis: int) -> Any:
    """``x`` with an axis and the next one as one."""
    shape = tuple(x.shape)
    return xp.reshape(x, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _labels(count: int, groups: int) -> tuple[str, str, str]:
    """Labels of weights, of windows and of their places."""
    inside, places = "ij"[:count], "yx"[:count]
    if groups == 1:
        return f"oc{inside}", f"nc{inside}{places}", f"no{places}"
    return f"goc{inside}", f"ngc{inside}{places}", f"ngo{places}"


def _inside(lengths: Sizes, padding: Margins) -> tuple[Any, ...]:
    """The key of the part between margins."""
    return (..., *[slice(a, a + n) for n, (a, _) in zip(lengths, padding, strict=True)])


def _wide(lengths: Sizes, padding: Margins) -> Sizes:
    return tuple([n + a + b for n, (a, b) in zip(lengths, padding, strict=True)])


def _windows(xp: Any, x: Any, size: Sizes, how: How) -> Any:
    stride, padding, dilation, groups = how
    if any(map(any, padding)):
        lead, lengths = tuple(x.shape[:2]), tuple(x.shape[2:])
        shape = (*lead, *_wide(lengths, padding))
        x = xp.scatter_add(x, key=_inside(lengths, padding), shape=shape)
    found = xp.sliding_windows(x, size=size, stride=stride, dilation=dilation)
    return found if groups == 1 else _split(xp, found, 1, groups)


def _composite(xp: Any, x: Any, weight: Any, bias: Any, *, how: How) -> Any:
    size, groups = tuple(weight.shape[2:]), how[-1]
    found = _windows(xp, x, size, how)
    weight = weight if groups == 1 else _split(xp, weight, 0, groups)
    out = xp.einsum_pair(weight, found, subscripts=_labels(len(size), groups))
    out = out if groups == 1 else _join(xp, out, 1)
    return out if bias is None else out + _column(xp, bias, how)


def _forward_input(xp: Any, y: Any, weight: Any, *, lengths: Sizes, how: How) -> Any:
    stride, padding, dilation, groups = how
    size, wide = tuple(weight.shape[2:]), _wide(lengths, padding)
    of_weight, of_windows, of_places = _labels(len(size), groups)
    if groups > 1:
        weight, y = _split(xp, weight, 0, groups), _split(xp, y, 1, groups)
    spread = xp.einsum_pair(weight, y, subscripts=(of_weight, of_places, of_windows))
    spread = spread if groups == 1 else _join(xp, spread, 1)
    out = xp.overlap_add(spread, lengths=wide, size=size, stride=stride, dilation=dilation)
    return out if wide == lengths else xp.getitem(out, key=_inside(lengths, padding))


def _forward_weight(xp: Any, x: Any, y: Any, *, size: Sizes, how: How) -> Any:
    groups = how[-1]
    of_weight, of_windows, of_places = _labels(len(size), groups)
    y = y if groups == 1 else _split(xp, y, 1, groups)
    found = _windows(xp, x, size, how)
    out = xp.einsum_pair(y, found, subscripts=(of_places, of_windows, of_weight))
    return out if groups == 1 else _join(xp, out, 0)


def _column(xp: Any, bias: Any, how: How) -> Any:
    """A bias with axes of length 1 for those of places."""
    return xp.reshape(bias, (bias.shape[0], *[1] * len(how[0])))


# -- batches ---------------------------------------------------------------------------------------


def _once(call: Any, x: Any, weight: Any, *bias: Any, how: How, **more: Any) -> Any:
    """Members of images alone are further examples; otherwise members are further groups."""
    xp, members = call.xp, call.size
    if not any(call.own[1:]):
        out = call.run(_join(xp, x, 0), weight, *bias, how=how, **more)
        return _split(xp, out, 0, members)
    # Weights of all members come one after the other.
    given = enumerate((weight, *bias), 1)
    held = [None if b is None else _join(xp, call.broadcast(i), 0) for i, b in given]
    out = call.run(_channels(call, 0), *held, how=(*how[:-1], members * how[-1]), **more)
    return call.move_axis(_split(xp, out, 1, members), 1, 0)


def _once_weight(call: Any, x: Any, y: Any, *, how: How, **more: Any) -> Any:
    more["how"] = (*how[:-1], call.size * how[-1])
    return _split(call.xp, call.run(_channels(call, 0), _channels(call, 1), **more), 0, call.size)


def _channels(call: Any, position: int) -> Any:
    """Images of all members with their channels side by side."""
    return _join(call.xp, call.move_axis(call.broadcast(position), 0, 1), 1)


# -- the primitives --------------------------------------------------------------------------------

#: ``convolution(x, weight, bias, how=)`` of x (N, C, ...), a weight (O, C/groups, ...) and a bias
#: (O,) or None: the result (N, O, ...).
convolution = Primitive(
    "convolution",
    ("x", "weight", "bias"),
    {
        "x": lambda xp, g, x_shape, weight, how: xp.convolution_input(
            g, xp.conj(weight), lengths=tuple(x_shape[2:]), how=how
        ),
        "weight": lambda xp, g, x, weight_shape, how: xp.convolution_weight(
            xp.conj(x), g, size=tuple(weight_shape[2:]), how=how
        ),
        "bias": lambda xp, g: xp.sum(g, axis=(0, *range(2, len(g.shape)))),
    },
    # the bias is in no product
    jvps={
        "x": lambda xp, t, weight, how: xp.convolution(t, weight, None, how=how),
        "weight": lambda xp, t, x, how: xp.convolution(x, t, None, how=how),
        "bias": _column,
    },
    composite=_composite,
    batch=_once,
).bind

#: ``convolution_input(y, weight, lengths=, how=)`` of an array (N, O, ...) and a weight: images
#: (N, C, ...) whose last axes have these lengths.
convolution_input = Primitive(
    "convolution_input",
    ("y", "weight"),
    {
        "y": lambda xp, g, weight, how: xp.convolution(g, xp.conj(weight), None, how=how),
        "weight": lambda xp, g, y, weight_shape, how: xp.convolution_weight(
            g, xp.conj(y), size=tuple(weight_shape[2:]), how=how
        ),
    },
    linear="each",
    composite=_forward_input,
    batch=_once,
).bind

#: ``convolution_weight(x, y, size=, how=)`` of images (N, C, ...) and an array (N, O, ...): a
#: weight whose last axes have these lengths.
convolution_weight = Primitive(
    "convolution_weight",
    ("x", "y"),
    {
        "x": lambda xp, g, x_shape, y, how: xp.convolution_input(
            xp.conj(y), g, lengths=tuple(x_shape[2:]), how=how
        ),
        "y": lambda xp, g, x, how: xp.convolution(xp.conj(x), g, None, how=how),
    },
    linear="each",
    composite=_forward_weight,
    batch=_once_weight,
).bind
