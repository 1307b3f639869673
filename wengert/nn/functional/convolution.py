"""Convolutions and their adjoints; windows as columns."""

import math
from typing import Any, Literal

from wengert import ops
from wengert.nn.functional.define import same_dtype
from wengert.nn.functional.spatial import AXES, Sizes, examples, pad_with_zeros, sizes, unbatch
from wengert.ops.beyond.convolution import Margins, convolution, convolution_input
from wengert.ops.beyond.windows import sliding_windows
from wengert.tape.tensor import Tensor

Padding = int | tuple[int, ...] | Literal["same", "valid"]
Arrays = tuple[Any, Any, Any]  # an input, a weight and a bias


def window_lengths(
    lengths: Sizes, size: Sizes, stride: Sizes, dilation: Sizes, function: str
) -> Sizes:
    """How many windows fit along each axis, of one at least."""
    spans = [(k - 1) * d + 1 for k, d in zip(size, dilation, strict=True)]
    if any(n < span for n, span in zip(lengths, spans, strict=True)):
        raise RuntimeError(
            f"{function}: windows of {tuple(spans)} do not fit into {tuple(lengths)}, the lengths "
            "of the input with its padding"
        )
    return tuple([(n - span) // s + 1 for n, span, s in zip(lengths, spans, stride, strict=True)])


def margins(padding: Any, size: Sizes, stride: Sizes, dilation: Sizes, name: str) -> Margins:
    """How many zeros are added before and after each axis."""
    if not isinstance(padding, str):
        return tuple([(n, n) for n in sizes(padding, len(size), name, "padding")])
    if padding not in ("same", "valid"):
        raise ValueError(f"{name}: padding is 'same', 'valid' or integers, and not {padding!r}")
    if padding == "valid":
        return ((0, 0),) * len(size)
    if max(stride) > 1:
        raise ValueError(f"{name}: padding='same' is for stride 1, and not {stride}")
    more = [(k - 1) * d for k, d in zip(size, dilation, strict=True)]
    return tuple([(n // 2, n - n // 2) for n in more])


def _operands(
    name: str, count: int, arrays: Arrays, stride: Any, dilation: Any, groups: Any
) -> tuple[Tensor, bool, Sizes, Sizes, Sizes, int]:
    """What `examples` finds, the lengths of the kernel and the options, if all of them fit."""
    input, weight, bias = arrays
    same_dtype(name, *arrays)
    x, batched = examples(input, count, name)
    shape, terms = tuple(weight.shape), None if bias is None else tuple(bias.shape)
    (groups,) = sizes(groups, 1, name, "groups")
    transposed = "transpose" in name
    fits = len(shape) == count + 2 and groups > 0 and min(shape) > 0
    if fits:
        divided, whole = (shape[0], x.shape[1]) if transposed else (x.shape[1], shape[1] * groups)
        produced = shape[1] * groups if transposed else shape[0]
        fits = divided == whole and not (shape[0] % groups) and terms in (None, (produced,))
    if not fits:
        channels = "C, O/groups" if transposed else "O, C/groups"
        raise RuntimeError(
            f"{name} got an input of shape {tuple(x.shape)}, a weight of shape {shape}, a bias of "
            f"shape {terms} and groups={groups}; it needs (N, C, {AXES[count]}), ({channels}, "
            f"{', '.join('k' * count)}) and (O,), where groups divide C and O"
        )
    stride = sizes(stride, count, name, "stride", 1)
    return x, batched, shape[2:], stride, sizes(dilation, count, name, "dilation", 1), groups


def _convolve(
    name: str, count: int, arrays: Arrays, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Tensor:
    found = _operands(name, count, arrays, stride, dilation, groups)
    x, batched, size, stride, dilation, groups = found
    padding = margins(padding, size, stride, dilation, name)
    wide = tuple([n + a + b for n, (a, b) in zip(x.shape[2:], padding, strict=True)])
    window_lengths(wide, size, stride, dilation, name)
    how = (stride, padding, dilation, groups)
    return unbatch(convolution(x, *arrays[1:], how=how), batched)


def _convolve_adjoint(
    name: str,
    count: int,
    arrays: Arrays,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: Any,
    dilation: Any,
) -> Tensor:
    found = _operands(name, count, arrays, stride, dilation, groups)
    x, batched, size, stride, dilation, groups = found
    _, weight, bias = arrays
    padding = sizes(padding, count, name, "padding")
    more = sizes(output_padding, count, name, "output_padding")
    if any(n >= max(s, d) for n, s, d in zip(more, stride, dilation, strict=True)):
        raise RuntimeError(
            f"{name}: output_padding={more} has to be less than the stride {stride} or the "
            f"dilation {dilation}"
        )
    spans = [
        (n - 1) * s + (k - 1) * d + 1
        for n, s, k, d in zip(x.shape[2:], stride, size, dilation, strict=True)
    ]
    lengths = [n - 2 * p + m for n, p, m in zip(spans, padding, more, strict=True)]
    if min(lengths) < 1:
        raise RuntimeError(
            f"{name}: an input of shape {tuple(x.shape)} leaves nothing of lengths {tuple(spans)} "
            f"less padding={padding} at both ends"
        )
    # What is left out, of which there may be less than there is; and zeros at the ends.
    inside = tuple([(p, max(p - m, 0)) for p, m in zip(padding, more, strict=True)])
    if any(n <= a + b for n, (a, b) in zip(spans, inside, strict=True)):
        inside = ((0, 0),) * count
    kept = tuple([n - a - b for n, (a, b) in zip(spans, inside, strict=True)])
    out = convolution_input(x, weight, lengths=kept, how=(stride, inside, dilation, groups))
    ends = [(a - p, m - p + b) for (a, b), p, m in zip(inside, padding, more, strict=True)]
    out = pad_with_zeros(out, ends)
    if bias is not None:
        out = ops.add(out, ops.reshape(bias, (-1, *[1] * count)))
    return unbatch(out, batched)


def conv1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | tuple[int, ...] = 1,
    padding: Padding = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> Tensor:
    r"""Convolution of signals, :math:`y_{nop} = b_o + \sum_{ci} w_{oci} x_{nc(sp + di)}`.

    The input is real or complex, of shape (N, C, L), or (C, L) for one example; the weight of shape
    (O, C/groups, k), the bias (O,), the result (N, O, places). The cotangent of the input is
    `conv_transpose1d` of the result's with the conjugated weights. ``padding`` zeros are added at
    both ends: ``"valid"`` is 0; ``"same"``, for stride 1, as many as keep the lengths, an odd one
    at the end. Raises `RuntimeError` if the shapes do not fit, or the dtypes differ; `TypeError`
    for what is no array, or an option not of integers; `ValueError` for a padding's name that is
    unknown, or does not go with the stride. PyTorch: ``torch.nn.functional.conv1d``.

    Examples
    --------
    >>> x, weight = wg.asarray([[[1.0, 2.0, 4.0, 8.0]]]), wg.asarray([[[-1.0, 1.0]]])
    >>> wg.nn.functional.conv1d(x, weight)  # differences
    tensor([[[1., 2., 4.]]])
    """
    return _convolve("conv1d", 1, (input, weight, bias), stride, padding, dilation, groups)


def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | tuple[int, ...] = 1,
    padding: Padding = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> Tensor:
    r"""Convolution of images, :math:`y_{nopq} = b_o + \sum_{cij} w_{ocij} x_{nc(sp+di)(sq+dj)}`.

    The input is of shape (N, C, H, W) or (C, H, W), the weight of shape (O, C/groups, h, w), and
    the result of shape (N, O, rows, columns). Options and errors are those of `conv1d`. The
    cotangent of the input is `conv_transpose2d` of the result's with the conjugated weights.
    PyTorch: ``torch.nn.functional.conv2d``.

    Examples
    --------
    >>> x, w = wg.ones((1, 1, 3, 3)), wg.ones((1, 1, 2, 2))
    >>> wg.nn.functional.conv2d(x, w)
    tensor([[[[4., 4.],
              [4., 4.]]]])
    """
    return _convolve("conv2d", 2, (input, weight, bias), stride, padding, dilation, groups)


def conv_transpose1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    output_padding: int | tuple[int, ...] = 0,
    groups: int = 1,
    dilation: int | tuple[int, ...] = 1,
) -> Tensor:
    """The adjoint of `conv1d`, plus a bias: each input adds its multiple of the weights.

    The input is real or complex, of shape (N, C, L), or (C, L) for one example; the weight of shape
    (C, O/groups, k), the result (N, O, length). It is :math:`(L - 1) s - 2 p + d (k - 1) + 1` long,
    plus ``output_padding``, which is less than the stride or the dilation. Raises `RuntimeError` if
    the shapes do not fit, or the dtypes differ; `TypeError` for what is no array, or an option not
    of integers. PyTorch: ``torch.nn.functional.conv_transpose1d``.

    Examples
    --------
    >>> x, weight = wg.asarray([[[1.0, 2.0]]]), wg.asarray([[[1.0, 10.0]]])
    >>> wg.nn.functional.conv_transpose1d(x, weight)
    tensor([[[ 1., 12., 20.]]])
    """
    arrays, how = (input, weight, bias), (stride, padding, output_padding, groups, dilation)
    return _convolve_adjoint("conv_transpose1d", 1, arrays, *how)


def conv_transpose2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    output_padding: int | tuple[int, ...] = 0,
    groups: int = 1,
    dilation: int | tuple[int, ...] = 1,
) -> Tensor:
    """The adjoint of `conv2d`, plus a bias: each input adds its multiple of the weights.

    The input is of shape (N, C, H, W) or (C, H, W), the weight of shape (C, O/groups, h, w). The
    lengths of the result, options and errors are those of `conv_transpose1d`. Cotangents are
    convolutions, as by `conv2d`. PyTorch: ``torch.nn.functional.conv_transpose2d``.

    Examples
    --------
    >>> x, weight = wg.ones((1, 8, 5, 5)), wg.ones((8, 3, 2, 2))
    >>> wg.nn.functional.conv_transpose2d(x, weight, stride=2).shape
    (1, 3, 10, 10)
    """
    arrays, how = (input, weight, bias), (stride, padding, output_padding, groups, dilation)
    return _convolve_adjoint("conv_transpose2d", 2, arrays, *how)


def unfold(
    input: Any,
    kernel_size: int | tuple[int, ...],
    dilation: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    stride: int | tuple[int, ...] = 1,
) -> Tensor:
    """Write the windows of an image, of lengths ``kernel_size``, as columns.

    The input is of shape (N, C, H, W), or (C, H, W) for one example, the result of shape
    (N, C h w, places). The cotangent is the sum of the windows' at their places. Raises
    `RuntimeError` if the shapes do not fit. PyTorch: ``torch.nn.functional.unfold``.

    Examples
    --------
    >>> wg.nn.functional.unfold(wg.ones((1, 3, 8, 8)), 3).shape  # 27 elements, 36 patches
    (1, 27, 36)
    """
    x, batched = examples(input, 2, "unfold")
    size = sizes(kernel_size, 2, "unfold", "kernel_size", 1)
    stride = sizes(stride, 2, "unfold", "stride", 1)
    dilation = sizes(dilation, 2, "unfold", "dilation", 1)
    x = pad_with_zeros(x, [(n, n) for n in sizes(padding, 2, "unfold", "padding")])
    places = window_lengths(tuple(x.shape[2:]), size, stride, dilation, "unfold")
    windows = sliding_windows(x, size=size, stride=stride, dilation=dilation)
    shape = (x.shape[0], x.shape[1] * math.prod(size), math.prod(places))
    return unbatch(ops.reshape(windows, shape), batched)
