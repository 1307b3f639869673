"""Options of functions, which are plain values: what they take, and how a Tensor is refused there.

A Tensor is looked for only once something has failed, so other calls pay nothing.
"""

import functools
import sys
from collections.abc import Iterable
from typing import Any, Final

from wengert.backends import backend_of
from wengert.tape.parameters import DECLARED, differentiates

KINDS: Final = ("differentiable", "constant", "undefined")
_OF_RULES: Final = {"ZERO": KINDS[1], "UNDEFINED": KINDS[2], "NOT_IMPLEMENTED": KINDS[2]}

_AXIS: Final = "an integer (or, where several may be given, a tuple of them)"
_INTEGER: Final = "an integer"
_INTEGERS: Final = "integers"
_FLAG: Final = "True or False"
_NUMBER: Final = "a number"
_WORD: Final = "one of the names that its documentation lists"

#: What options take, by name: a name means the same in every function that has it.
OPTIONS: Final = {
    **dict.fromkeys(("axis", "axes", "dim", "dims", "source", "destination"), _AXIS),
    **dict.fromkeys(("axis1", "axis2"), _INTEGER),
    **dict.fromkeys(("n", "k", "offset", "num", "n_rows", "n_cols", "num_classes"), _INTEGER),
    **dict.fromkeys(("d", "seed", "ignore_index", "start_dim", "end_dim"), _INTEGER),
    **dict.fromkeys(("in_features", "out_features", "num_features"), _INTEGER),
    **dict.fromkeys(("num_groups", "num_channels"), _INTEGER),
    **dict.fromkeys(("shape", "more", "lengths", "size", "sizes", "repeats", "s"), _INTEGERS),
    **dict.fromkeys(("indices", "sorter", "shapes", "pad_width", "stat_length"), _INTEGERS),
    "normalized_shape": _INTEGERS,
    **dict.fromkeys(("input_size", "hidden_size", "proj_size", "num_layers"), _INTEGER),
    **dict.fromkeys(("d_model", "nhead", "num_heads", "dim_feedforward"), _INTEGER),
    "padding_idx": _INTEGER,
    **dict.fromkeys(("unflattened_size", "repetitions", "shift"), _INTEGERS),
    **dict.fromkeys(("kernel_size", "stride", "padding", "dilation", "output_padding"), _INTEGERS),
    **dict.fromkeys(("output_size", "pad", "divisor_override", "groups"), _INTEGERS),
    **dict.fromkeys(
        ("in_channels", "out_channels", "upscale_factor", "downscale_factor"), _INTEGER
    ),
    **dict.fromkeys(("keepdims", "requires_grad", "endpoint", "include_initial"), _FLAG),
    **dict.fromkeys(("ceil_mode", "count_include_pad", "return_indices", "align_corners"), _FLAG),
    **dict.fromkeys(("recompute_scale_factor", "antialias", "bias"), _FLAG),
    **dict.fromkeys(("descending", "stable", "invert", "upper", "full_matrices"), _FLAG),
    "unitriangular": _FLAG,
    **dict.fromkeys(("return_sign", "training", "inplace", "amsgrad", "maximize"), _FLAG),
    **dict.fromkeys(("affine", "elementwise_affine", "track_running_stats"), _FLAG),
    **dict.fromkeys(("decoupled_weight_decay", "nesterov", "full", "swap", "sparse"), _FLAG),
    **dict.fromkeys(("batch_first", "bidirectional", "norm_first", "is_causal"), _FLAG),
    **dict.fromkeys(("add_zero_attn", "scale_grad_by_freq"), _FLAG),
    "copy": "True, False or None",
    "generator": "a seed or a generator of NumPy",
    **dict.fromkeys(("centered",), _FLAG),
    **dict.fromkeys(("lr", "eps", "weight_decay", "momentum", "dampening"), _NUMBER),
    **dict.fromkeys(("lr_decay", "initial_accumulator_value", "rho", "lambd", "t0"), _NUMBER),
    **dict.fromkeys(("momentum_decay", "max_norm", "norm_type", "layer_norm_eps"), _NUMBER),
    **dict.fromkeys(("gain", "std"), _NUMBER),
    **dict.fromkeys(("dropout", "dropout_p"), "a probability"),
    "activation": "a function",
    **dict.fromkeys(("betas", "etas", "step_sizes"), "two numbers"),
    "ns_coefficients": "three numbers",
    **dict.fromkeys(("ns_steps", "max_iter", "max_eval", "history_size"), _INTEGER),
    **dict.fromkeys(("tolerance_grad", "tolerance_change"), _NUMBER),
    **dict.fromkeys(("mode", "norm", "reduction", "method", "indexing", "side"), _WORD),
    **dict.fromkeys(("approximate", "nonlinearity", "reflect_type", "padding_mode", "name"), _WORD),
    "adjust_lr_fn": _WORD,
    "scale_factor": "a number for each axis",
    "dtype": "a data type",
    "device": "a device",
    "stream": "None",
}


def what_they_are(said: Any, names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """What the parameters of a declared function are, and what its options take.

    ``said`` is what `DECLARED` has of the function. By name it gives ``("option", what it takes)``,
    another kind and "", or ``("", "")`` for what is not declared.
    """
    if not isinstance(said, tuple):
        rules = said.rules
        declared = {name: repr(rules[name]) if name in rules else "ZERO" for name in names}
        return {name: (_OF_RULES.get(rule, KINDS[0]), "") for name, rule in declared.items()}
    *kinds, own = said
    found = {}
    for name in names:
        kind = next(
            (k for k, listed in zip(KINDS, kinds, strict=True) if name in listed.split()), ""
        )
        what = "" if kind else own.get(name) or OPTIONS.get(name, "")
        found[name] = (kind or ("option" if what else ""), what)
    return found


# -- refusing, on the way to an error ------------------------------------------------------------

_options: dict[Any, tuple[str, dict[str, str]]] = {}
_looked_at = 0
#: How many calls up an option is searched: a function, its primitive, the library's own code.
_DEPTH: Final = 20
_VARIADIC: Final = 4  # of a code's flags


def _options_by_code() -> dict[Any, tuple[str, dict[str, str]]]:
    """The code of each declared function, with its name, its options and what they take."""
    global _looked_at
    if _looked_at != len(DECLARED):
        _looked_at = len(DECLARED)
        for function, said in DECLARED.items():
            if isinstance(said, tuple) and not isinstance(function, type):
                code = function.__code__
                number = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & _VARIADIC)
                given = what_they_are(said, code.co_varnames[:number])
                options = {name: each[1] for name, each in given.items() if each[0] == "option"}
                _options[code] = (function.__name__, options)
    return _options


def _check_sizes(value: Any) -> None:
    """Raise the library's own reason if a Tensor, or one in a list, has a length that is nan."""
    if isinstance(value, list | tuple):
        for each in value:
            _check_sizes(each)
    array = None if isinstance(value, type) else getattr(value, "_array", None)  # not a slot
    if array is not None and any(isinstance(n, float) for n in array.shape):
        backend_of(array).adopt(array)


def option_error(function: str, option: str, what: str) -> TypeError:
    """The error for a Tensor that is given as an option and that a derivative flows through."""
    return TypeError(
        f"{function} takes {what} as {option}, through which no derivative flows, and was given a "
        f"Tensor that one flows through; pass a plain value as {option}. If no derivative is "
        "meant, the Tensor's is its .detach().item()"
    )


def refuse() -> None:
    """Raise if a function that is running was given what it can't take, and say what.

    That is a Tensor as an option, if a derivative flows through it, or one of unknown lengths. It
    looks at the calls on the stack. What finds a Tensor where a plain value belongs (a conversion,
    a failing kernel), or shapes that do not fit, asks here for the reason.
    """
    declared = _options_by_code()
    frame = sys._getframe(1)
    error = None
    for _ in range(_DEPTH):
        function, options = declared.get(frame.f_code, ("", None))
        if options is not None:
            held = frame.f_locals
            _check_sizes([*held.values()])
            for option, what in options.items():
                if differentiates(held.get(option)):
                    error = option_error(function, option, what)
        if frame.f_back is None:
            break
        frame = frame.f_back
    if error is not None:
        raise error from None


def check_constructor(cls: type) -> None:
    """Make a class check its options when it is called, which is seldom."""
    init: Any = vars(cls).get("__init__")
    if init is None:
        return
    code = init.__code__
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    kinds = what_they_are(DECLARED[cls], names)
    owner = init.__qualname__.partition(".")[0]
    private = owner[0] == "_"

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            kind, what = kinds.get(name, ("", ""))
            if kind in ("option", "") and differentiates(value):
                what = what or "a plain value"
                raise option_error((type(self) if private else cls).__name__, name, what)
        try:
            init(self, *args, **kwargs)
        except TypeError as error:  # of wrong arguments, which names the base
            if not (private and str(error).startswith(init.__qualname__)):
                raise
            text = str(error).replace(owner, type(self).__name__, 1)
            raise TypeError(text) from None

    cls.__init__ = checked  # type: ignore[misc]
