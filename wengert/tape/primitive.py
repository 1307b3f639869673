"""Primitives: functions of the standard, each with one derivative rule for each argument."""

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from operator import attrgetter
from typing import Any, Final, Literal

import numpy as np

from wengert.backends import (
    FLOATING,
    add_composite,
    backend_of,
    dtype_of,
    namespaces,
)
from wengert.tape.grad_mode import recording
from wengert.tape.marks import off_tape
from wengert.tape.node import Node, running_forwards
from wengert.tape.observers import observing
from wengert.tape.operands import regularise
from wengert.tape.promotion import (
    DTYPES_FOR,
    NUMBERS,
    SCALARS,
    casts_of,
)
from wengert.tape.record import (
    Plan,
    Rule,
    Unused,
    argument_names,
    inexact,
    observe,
    record,
    record_several,
)
from wengert.tape.tensor import Tensor, untracked


def explain(row: "Primitive", operands: Sequence[Any], error: Exception) -> None:
    """Raise a clearer error for one that a kernel has raised: see `wengert.tape.errors`."""
    import_module("wengert.tape.errors").explain(row, operands, error)  # seldom needed


#: Every primitive by name: forward mode looks up, tests and documentation walk the table.
PRIMITIVES: "dict[str, Primitive]" = {}


class Declared:
    """A derivative that is stated rather than computed."""

    def __init__(self, name: str, message: str | None) -> None:
        self.name, self.message = name, message

    def rule(self, primitive: str, argument: str) -> Rule:
        if self.message is None:
            return lambda xp, g: xp.zeros_like(g)

        def fail(xp: Any, g: Any) -> Any:
            raise self.refusal(primitive, argument)

        return fail

    def refusal(self, primitive: str, argument: str) -> Exception:
        """The error of a derivative that there is not."""
        message = str(self.message).format(primitive=primitive, argument=argument)
        return NotImplementedError(message)

    def __repr__(self) -> str:
        return self.name


#: The derivative is zero wherever it exists.
ZERO: Final = Declared("ZERO", None)
#: There is no derivative.
UNDEFINED: Final = Declared(
    "UNDEFINED", "{primitive} has no derivative with respect to {argument}: it is not defined"
)
#: There is a derivative, and Wengert does not have it yet.
NOT_IMPLEMENTED: Final = Declared(
    "NOT_IMPLEMENTED",
    "the derivative of {primitive} with respect to {argument} is not implemented",
)


#: What kernels raise for operands that they do not take.
FAILURES: Final = (TypeError, ValueError, RuntimeError, OverflowError)
_LINEAR: Final = (None, "together", "each")
_EFFECTS: Final = (None, "moves", "draws", "exchanges")


class Primitive:
    """A function that operations are recorded by, with its derivative rules.

    A rule is a function of a namespace ``xp``, the cotangent ``g`` of the result, and whatever
    else its parameters name. Exactly what the rules of the tracked arguments name is saved:

    ========================  ===================================================
    an input's name           that input
    ``out``                   the result (a tuple, where there are several)
    a parameter's name        that static parameter
    ``<input>_shape``         the input's shape
    a variadic input's name   the tuple of all its arrays (``_shape``: of their shapes)
    ``index``                 which of the variadic inputs the rule is asked for
    ========================  ===================================================

    A rule's result may have any shape that the input broadcasts to, and any dtype: the engine
    gives the cotangent the input's own.

    Parameters
    ----------
    name : str
        The standard's name; the kernel is the namespace's function of that name. Those of an
        extension have its name and a dot before theirs: ``"linalg.solve"``.
    inputs : iterable of str
        Names of the array arguments, in order. A last one that starts with ``*`` is variadic.
    rules : dict
        Input name to rule, or to `ZERO`, `UNDEFINED`, `NOT_IMPLEMENTED`. Without any rule,
        results are not tracked (comparisons, indices).
    elementwise : bool
        Whether it works element by element, on inputs that broadcast together.
    linear : {None, "together", "each"}
        Whether it is linear in all tracked inputs together, as a sum and what moves elements, or in
        each, as a product.
    composite : callable, optional
        ``composite(xp, *arrays, **parameters)``, where no namespace has a function of that name.
    jvps : dict, optional
        Input name to forward rule, where neither ``elementwise`` nor ``linear`` gives it: a
        function of ``xp``, the tangent ``t`` of that input, and what else it names, as rules do. It
        returns the tangent of the result that ``t`` causes (a tuple for several results).
    several : bool
        Whether the kernel gives a sequence of results. The rules see None as the cotangent of one
        that nothing depends on.
    shared : callable, optional
        What the rules of an operation with several results have in common: of ``xp``, the
        cotangents ``g``, and what else it names, as rules do. It runs once, and the rules see its
        result as ``g``.
    view : bool, callable or None
        False: the result has memory of its own. True: it is a view of the input's on NumPy and
        PyTorch, unless the order in memory makes that a copy; where the kernel for NumPy copies,
        NumPy's function that does not. None: it may be the input itself or a view of it.
    weak : bool, optional
        Whether rules and kernel take a Python scalar as an operand as it is; otherwise scalars
        become 0-d arrays of the other operands' dtype first. By default an elementwise function of
        several inputs of the standard does.
    compares : bool
        Whether the elements of these are compared and no more: then they are made what holds the
        values of both best, and integers stay what they are.
    dtypes : str or dict of str to str, optional
        The kinds of dtypes that it is for: ``"floating"`` (real or complex), ``"real floating"``,
        ``"complex"``, ``"numeric"``, ``"real numeric"``, ``"integer"``, ``"boolean"``,
        ``"integer or boolean"``, ``"any"``. Integers given to a floating one become floating. By
        default ``"floating"`` if it is elementwise with rules and not linear, and else ``"any"``.
        A dict says which inputs, with spaces between them, have a dtype together
        (`wengert.tape.promotion`): by default all of a function that is elementwise or linear in
        each, and a single one of a function that is not linear.
    domain : Domain or dict of str to Domain or Joint, optional
        Where it is smooth (`wengert.ops.domain`), as a function of its first input, or of those
        named, with spaces between several. Everywhere by default. Tests and documentation read it.
    batch : callable, optional
        How it runs on batches (`wengert.interpreters.batching`). By default an elementwise one runs
        once for all members, and another for each.
    effect : {None, "moves", "draws", "exchanges"}
        What a call does beside giving results: it moves an array to another device or library,
        draws random numbers, or waits for other processes.
    flat : bool
        Whether the first result is constant in pieces where it is real, as a sign is.

    Examples
    --------
    >>> from wengert.tape import Primitive
    >>> cube = Primitive(
    ...     "cube",
    ...     ["x"],
    ...     {"x": lambda xp, g, x: xp.multiply(g, xp.multiply(3, xp.square(x)))},
    ...     elementwise=True,
    ...     composite=lambda xp, x: xp.multiply(x, xp.square(x)),
    ... ).bind
    >>> wg.grad(cube)(2.0)
    12.0
    >>> wg.grad(wg.grad(cube))(2.0)
    12.0
    """

    def __init__(
        self,
        name: str,
        inputs: Iterable[str],
        rules: dict[str, Rule | Declared] | None = None,
        *,
        elementwise: bool = False,
        linear: Literal["together", "each"] | None = None,
        composite: Callable[..., Any] | None = None,
        jvps: dict[str, Rule | Declared] | None = None,
        several: bool = False,
        shared: Rule | None = None,
        view: bool | Callable[..., Any] | None = False,
        weak: bool | None = None,
        compares: bool = False,
        dtypes: str | dict[str, str] | None = None,
        domain: Any = None,
        batch: Callable[..., Any] | None = None,
        effect: Literal["moves", "draws", "exchanges"] | None = None,
        flat: bool = False,
    ) -> None:
        self.name = name
        self.inputs = tuple(inputs)
        self.variadic = self.inputs[-1][1:] if self.inputs[-1].startswith("*") else None
        self.fixed = self.inputs[:-1] if self.variadic else self.inputs
        self.rules = rules or {}
        self.jvps = jvps or {}
        self.elementwise, self.linear = elementwise, linear
        self.composite = composite
        self.several = several
        self.shared = shared
        self.view = view
        derived = elementwise and composite is None and len(self.inputs) > 1
        self.weak = derived if weak is None else weak
        self.compares = compares
        names = [name.removeprefix("*") for name in self.inputs]
        if dtypes is None:
            dtypes = "floating" if elementwise and self.rules and not linear else "any"
        if isinstance(dtypes, dict):
            ((given, self.dtypes),) = dtypes.items()
            joined = given.split()
        else:
            single = len(names) == 1 and not (linear or self.variadic)
            joined = names if elementwise or linear == "each" or single else []
            self.dtypes = dtypes
        self.joined = frozenset(joined)
        #: Whether integers become floating: its results are.
        self.floating = bool(self.rules) and self.dtypes in ("floating", "real floating")
        alone = {} if domain is None else {names[0]: domain}
        self.domain: dict[str, Any] = domain if isinstance(domain, dict) else alone
        self.batch, self.effect = batch, effect
        self.flat = flat
        #: Whether `has_slope` is False anywhere.
        self.steady = flat or not self.rules or ZERO in self.rules.values()
        #: The positions of the inputs that have a dtype together; None where all have.
        self.sharing_dtype = (
            None
            if self.joined.issuperset(self.inputs) or self.variadic
            else [i for i, name in enumerate(self.inputs) if name in self.joined]
        )
        self.kernels: dict[type, Callable[..., Any]] = _Kernels(name)
        self.plans: dict[tuple[bool, ...], Plan] = _Plans(self)
        if composite is not None:
            add_composite(name, composite)
        self._check()
        PRIMITIVES[name] = self

    def _check(self) -> None:
        """Raise if the row contradicts itself."""
        what = f"primitive {self.name!r}"
        if self.name in PRIMITIVES:
            raise ValueError(f"{what} exists already: each name is that of one primitive")
        names = {*self.fixed, self.variadic}
        smooth = " ".join(self.domain).split()
        for key, given in (
            ("rules", self.rules),
            ("jvps", self.jvps),
            ("domain", smooth),
            ("dtypes", self.joined),
        ):
            if not names.issuperset(given):
                raise ValueError(f"{what}: {key} for {[*{*given} - names]}, not in its inputs")
        shared = [self.shared] if self.shared else []
        for rule in (*self.rules.values(), *self.jvps.values(), *shared):
            if not isinstance(rule, Declared) and argument_names(rule)[:1] != ("xp",):
                raise TypeError(f"{what}: a rule's first argument is the namespace, xp")
        for key, choice, choices in (
            ("linear", self.linear, _LINEAR),
            ("dtypes", self.dtypes, DTYPES_FOR),
            ("effect", self.effect, _EFFECTS),
        ):
            if choice not in choices:
                listed = ", ".join(map(str, choices))
                raise ValueError(f"{what}: {key} is one of {listed}, not {choice!r}")

    def __repr__(self) -> str:
        return f"<primitive {self.name}({', '.join(self.inputs)})>"

    def rule(self, position: int, tangent: bool = False) -> Rule:
        """The rule of the input at a position: reverse mode's, or forward mode's for a tangent."""
        name = self.input_at(position)
        rule = (self.jvps if tangent else self.rules).get(name, NOT_IMPLEMENTED)
        return rule.rule(self.name, name) if isinstance(rule, Declared) else rule

    def has_slope(self, position: int, dtype: Any, index: int = 0) -> bool:
        """Whether a result of a dtype may have a derivative by an input that is not zero."""
        if self.flat and index == 0 and not dtype_of(dtype).complex:
            return False
        return bool(self.rules) and self.rules.get(self.input_at(position)) is not ZERO

    def input_at(self, position: int) -> str:
        """The name of the input at a position."""
        return self.fixed[position] if position < len(self.fixed) else str(self.variadic)

    def bind(self, *inputs: Any, **parameters: Any) -> Any:
        """Run the kernel on the inputs' arrays and record the operation if one needs it.

        Parameters
        ----------
        *inputs
            Tensors, raw arrays, Python scalars, or None for an absent optional input.
        **parameters
            Static parameters, under the kernel's own keywords.
        """
        arrays: list[Any] = []
        nodes: list[Node | None] = []
        kind = None
        tracked = None
        regular = alike = True  # alike: arrays of one dtype, beside numbers that kernels take
        for x in inputs:
            if isinstance(x, Tensor):
                array, node = x._array, x._node
                if node is not None:
                    tracked = node
            elif type(x) is np.ndarray and x.dtype.isnative:
                array, node = x, None
            else:
                array = x
                if x is not None and not (type(x) in NUMBERS and self.weak):
                    # A NumPy scalar is a number like Python's own: np.sqrt(2) * x keeps x's dtype.
                    array = x.item() if isinstance(x, np.generic) else x
                    alike = False
                    regular = regular and self.weak and type(array) in SCALARS
                arrays.append(array)
                nodes.append(None)
                continue
            arrays.append(array)
            nodes.append(node)
            if kind is None:
                kind, dtype = type(array), array.dtype
            else:
                alike = alike and array.dtype is dtype
                if kind is not type(array) and namespaces[kind] is not namespaces[type(array)]:
                    regular = False
        if not regular or kind is None:
            kind = regularise(self, arrays, inputs)
        operands = arrays
        if self.joined and (tracked is None or not alike):
            arrays = self.cast(arrays)
        try:
            out = self.kernels[kind](*arrays, **parameters)
        except FAILURES as error:
            explain(self, operands, error)
            raise
        if tracked is not None and not (self.rules and recording()):
            tracked = None
        if self.several:
            outs = tuple(out)
            if tracked is not None and outs:
                plan = self.plans[tuple([node is not None for node in nodes])]
                saved = plan.save(arrays, outs, parameters)
                result: Any = record_several(plan, tuple(nodes), saved, outs)
            elif running_forwards:
                result = tuple([off_tape(y, self, tuple(nodes), i) for i, y in enumerate(outs)])
            else:
                result = tuple(map(untracked, outs))
        else:
            # A result of an operand's own dtype, as almost all are, is floating as this operand is.
            if tracked is not None and out.dtype is not tracked.dtype and not inexact(out):
                tracked = None
            if tracked is None:
                result = off_tape(out, self, tuple(nodes)) if running_forwards else untracked(out)
            else:
                plan = self.plans[tuple([node is not None for node in nodes])]
                take = plan.take
                saved = plan.save(arrays, out, parameters) if take is None else take((*arrays, out))
                result = record(plan, tuple(nodes), saved, out)
        if observing:
            observe(self.name, self, inputs, result)
        return result

    def cast(self, arrays: list[Any]) -> list[Any]:
        """The operands in the dtypes that the promotion rule gives, before a kernel sees them."""
        given = arrays if self.sharing_dtype is None else [arrays[i] for i in self.sharing_dtype]
        dtype, counts = None, False
        for a in given:
            if type(a) in NUMBERS:
                counts = True
            elif a is not None:
                own = getattr(a, "dtype", None)
                if own is None or (dtype is not None and own is not dtype):
                    break  # two dtypes, a boolean, or a number that a trace follows
                dtype = own
        else:
            settled = not (counts or self.floating)
            if dtype is None or settled or type(dtype) in FLOATING or dtype_of(dtype).inexact:
                return arrays
        positions = [i for i in range(len(arrays)) if self.input_at(i) in self.joined]
        changed = list(arrays)
        for i, to in casts_of(self.name, arrays, positions, self.floating, self.compares).items():
            if isinstance(to, int):
                changed[i] = to
            else:
                raw = backend_of(arrays[i]).raw_dtype(to)
                cast = PRIMITIVES["astype"].bind(untracked(arrays[i]), dtype=raw, copy=False)
                changed[i] = cast._array
        return changed


def anew(x: Any) -> Tensor:
    """Another Tensor of the same values: changing one in place leaves the other as it is."""
    return PRIMITIVES["reshape"].bind(x, shape=tuple(x.shape), copy=None)  # type: ignore[no-any-return]


class _Kernels(dict[type, Callable[..., Any]]):
    """Array type to kernel, resolved once for each type."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __missing__(self, kind: type) -> Callable[..., Any]:
        kernel = attrgetter(self.name)(namespaces[kind])
        self[kind] = kernel
        return kernel  # type: ignore[no-any-return]


class _Plans(dict[tuple[bool, ...], Plan]):
    """Which inputs are tracked to what is saved and which rules run, worked out once for each."""

    def __init__(self, primitive: Primitive) -> None:
        self.primitive = primitive

    def __missing__(self, tracked: tuple[bool, ...]) -> Plan:
        plan = self[tracked] = Unused(self.primitive, tracked)
        return plan
