"""The base of the optimisers: parameter groups, and the state of each parameter."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final

from wengert.backends import DTYPES, BackendError, DType, backend_of, dtype_of, namespaces
from wengert.backends.states import check_names
from wengert.interpreters.namespaces import differentiable
from wengert.names import KEYWORDS
from wengert.nn.conversion import convert
from wengert.nn.module import clear_grads
from wengert.nn.parameter import list_tensors
from wengert.ops.hints import Refusing
from wengert.optim.adapters import (
    Init,
    Rule,
    State,
    init_in_float32,
    init_in_parts,
    update_in_float32,
    update_in_parts,
)
from wengert.optim.groups import Group, Range
from wengert.tape.grad_mode import enable_grad
from wengert.tape.node import is_lifted
from wengert.tape.tensor import Tensor, untracked

#: What schedulers, `wengert.amp` and users keep in groups, beside an optimiser's hyper-parameters.
SCHEDULED: Final = frozenset(
    ["initial_lr", "max_lr", "min_lr", "swa_lr", "base_momentum", "max_momentum", "master_weights"]
    + ["name"]
)


class Optimizer(Refusing):
    """The base of the optimisers.

    A subclass defines two methods: `init` makes the state of a parameter, and `rule` reads the
    hyper-parameters of a group and returns the function that computes a parameter's next value.
    Both work on raw arrays and their namespace, and in float32 for parameters of half precision.

    ``params`` are parameters, or groups of them: dicts with ``"params"`` and the hyper-parameters
    that differ from ``defaults``.

    Attributes
    ----------
    param_groups : list of dict
        The groups with all their hyper-parameters, which may be changed between steps.
    state : dict
        What the rule keeps for each parameter that has been updated: raw arrays and Python numbers.
        `state_dict` gives Tensors.

    Examples
    --------
    >>> class SignDescent(wg.optim.Optimizer):
    ...     def __init__(self, params, lr=0.1):
    ...         super().__init__(params, {"lr": lr})
    ...     def rule(self, xp, group):
    ...         return lambda p, g, state: p - group["lr"] * xp.sign(g)
    >>> w = wg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = SignDescent([w])
    >>> (w**2).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    #: What hyper-parameters may be, by their names.
    ranges: ClassVar[Mapping[str, Range]] = {}
    #: Whether `init` and `rule` are given the real and imaginary part of a complex parameter, along
    #: a last axis. The arrays in its state are complex then, too.
    componentwise: ClassVar[bool] = False
    #: Whether every array in the state of a parameter has its shape, as where it is componentwise.
    elementwise: ClassVar[bool] = False

    def __init__(self, params: Iterable[Any], defaults: Mapping[str, Any]) -> None:
        if isinstance(params, Tensor | Mapping):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {type(params).__name__}"
            )
        self.defaults = dict(defaults)
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, State] = {}
        #: The factors of each schedule, and the rates that schedules have set last: no schedules,
        #: whose functions a compiled step would look into.
        self._factors: list[list[float]] = []
        self._rates: list[float] = []
        groups = list_tensors(type(self).__name__, params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add parameters, such as those of layers that are unfrozen during training."""
        name = type(self).__name__
        if not isinstance(param_group, Mapping):
            raise TypeError(f"param_group must be a dict, but got {type(param_group).__name__}")
        if "params" not in param_group:
            raise ValueError("a parameter group needs 'params'")
        if isinstance(param_group["params"], set):
            raise TypeError("a set of parameters has another order in each run; use a list instead")
        params = list_tensors(name, param_group["params"])
        if unknown := param_group.keys() - self.defaults.keys() - SCHEDULED - {"params"}:
            raise ValueError(
                f"{name} has no hyper-parameter {', '.join(sorted(unknown))}; it has "
                f"{', '.join(self.defaults)}"
            )
        group = Group({**self.defaults, **param_group, "params": params})
        seen = {*map(id, self._params())}
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(f"{name} takes Tensors, and was given a {type(param).__name__}")
            if not param.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
            if id(param) in seen:
                raise ValueError("some parameters appear in more than one parameter group")
            seen.add(id(param))
        self.check(group)
        self.param_groups.append(group)

    def check(self, group: Group) -> None:
        """Raise `ValueError` for hyper-parameters that make no sense: those outside `ranges`.

        Of a scheduled rate the first value is checked: the last may be a rounding below 0.
        """
        for name, allowed in self.ranges.items():
            scheduled = name == "lr" and "initial_lr" in group
            allowed.check(name, group["initial_lr" if scheduled else name])

    def init(self, xp: Any, p: Any, group: Group) -> State:
        """Return the state of a parameter before its first update."""
        return {}

    def rule(self, xp: Any, group: Group) -> Rule:
        """Return the function that updates one parameter of a group, for one step.

        ``update(p, g, state)`` returns a parameter's next value in a new array. It must not write
        into the value ``p`` and the gradient ``g``; in the dict ``state`` it replaces arrays.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define rule")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient, after a call of the closure, if there is one.

        The closure computes the loss and its gradients, and its result is returned. Parameters are
        updated one by one: an error or an interrupt (`KeyboardInterrupt`) leaves a part of them
        updated, and may leave the state of one a step ahead of it. Load a checkpoint then. Raises
        `BackendError` for a parameter that was moved or cast after its first step.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        self.update_parameters()
        return loss

    def update_parameters(self, taken: Any = None) -> None:
        """Update all parameters that have a gradient, as `step` does.

        Inside a compiled function ``taken`` is one bool, which says whether this is to be done.
        """
        states = self.state
        for group in self.param_groups:
            kind = dtype = None
            for param in group["params"]:
                grad = param._grad
                if grad is None:
                    continue
                array = param._array
                if type(array) is not kind or array.dtype is not dtype:
                    kind, dtype = type(array), array.dtype
                    xp = namespaces[kind]
                    update = self.rule(xp, group)
                    init: Init = self.init
                    numbers = dtype_of(dtype)
                    beside: set[tuple[type, Any]] = set()  # what such parameters may have as state
                    traced = is_lifted(array)  # whose class does not tell the library
                    if self.componentwise and numbers.complex:
                        update, init = update_in_parts(xp, update), init_in_parts(init)
                    elif numbers.narrow:
                        masters = bool(group.get("master_weights"))
                        update = update_in_float32(xp, update, masters)
                        init = init_in_float32(init, masters)
                state = states.get(param)
                if state is None:
                    state = states[param] = init(xp, array, group)
                for x in state.values():
                    if type(x) is kind and x.dtype is dtype and not traced:
                        continue
                    if hasattr(x, "dtype") and (type(x), x.dtype) not in beside:
                        self._check_moved(param, state)
                        beside.add((type(x), x.dtype))
                if traced:
                    beside.clear()
                x = None  # which would keep the last array
                before = None if taken is None else (array, dict(state))
                try:
                    array = update(array, grad._array, state)
                except Exception:
                    self._check_moved(param, state)
                    raise
                if before is not None:
                    array = _select_state(xp, taken, array, state, *before)
                param._array = array

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros."""
        for group in self.param_groups:
            clear_grads(group["params"], set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """Return the state and the groups, with parameters named by their positions.

        These are ``"state"``, from positions to dicts of Tensors and numbers, and
        ``"param_groups"``. They do not change in later steps.
        """
        positions = {id(p): i for i, p in enumerate(self._params())}
        groups = [
            {**group, "params": [positions[id(p)] for p in group["params"]]}
            for group in self.param_groups
        ]
        states = {
            positions[id(param)]: {name: _wrap_value(value) for name, value in state.items()}
            for param, state in self.state.items()
            if state
        }
        return {"state": states, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load state and hyper-parameters from a `state_dict`.

        The state's arrays are copied to the backend and device, and cast to the dtype, of the
        parameter at their position: to float32 where that is of half precision. Raises `ValueError`
        for groups, hyper-parameters or shapes that do not fit. Nothing has changed then.
        """
        check_names(type(self).__name__, state_dict, ("state", "param_groups"))
        owners: dict[Any, Tensor] = {}
        merged = self._merge_groups(state_dict["param_groups"], owners)
        if strange := [key for key in state_dict["state"] if key not in owners]:
            raise ValueError(f"loaded state dict has state for unknown parameters {strange}")
        masters = {id(p) for g in merged if g.get("master_weights") for p in g["params"]}
        state: dict[Tensor, State] = {}
        for key, items in state_dict["state"].items():
            param = owners[key]
            without = Group(dict.fromkeys(self.defaults, 0))  # what each state has
            needed = self.init(namespaces[type(param._array)], param._array, without)
            if absent := [name for name in needed if name not in items]:
                raise ValueError(
                    f"loaded state dict has no {', '.join(absent)} of parameter {key}, which "
                    f"{type(self).__name__} needs: it is that of another optimizer"
                )
            if id(param) in masters and param.dtype.narrow and "residual" not in items:
                raise ValueError(
                    f"loaded state dict has no float32 residual of parameter {key}, which has a "
                    "float32 master; load it into an optimizer without wg.amp.master_weights"
                )
            state[param] = {name: self._load(name, value, param) for name, value in items.items()}
        for group, new in zip(self.param_groups, merged, strict=True):
            group.update(new)
        self.state = state

    def _merge_groups(self, groups: list[Any], owners: dict[Any, Tensor]) -> list[Group]:
        """The groups with loaded hyper-parameters; ``owners`` gets the parameters by their keys."""
        if len(groups) != len(self.param_groups):
            raise ValueError(
                f"loaded state dict has a different number of parameter groups: {len(groups)} "
                f"instead of {len(self.param_groups)}"
            )
        merged = []
        for number, (own, group) in enumerate(zip(self.param_groups, groups, strict=True)):
            if len(group["params"]) != len(own["params"]):
                raise ValueError(
                    f"loaded state dict has {len(group['params'])} instead of "
                    f"{len(own['params'])} parameters in group {number}"
                )
            owners.update(zip(group["params"], own["params"], strict=True))
            left_out = {"params", "param_names", *KEYWORDS["Optimizer"]}
            if group.get("maximize"):
                left_out.remove("maximize")  # which would go the other way
            known = {name: x for name, x in group.items() if name not in left_out}
            if unknown := known.keys() - self.defaults.keys() - SCHEDULED:
                raise ValueError(
                    f"loaded state dict has {', '.join(sorted(unknown))} in its groups, and "
                    f"{type(self).__name__} no such hyper-parameter: it is that of another "
                    "optimizer"
                )
            merged.append(Group({**own, **known}))
            self.check(merged[-1])
        return merged

    def _load(self, name: str, value: Any, param: Tensor) -> Any:
        """A value of a loaded state in the form that rules keep: counters are Python numbers."""
        array = value._array if isinstance(value, Tensor) else value
        if not hasattr(array, "dtype"):
            return value
        if name in ("step", "mu_product") or (not array.shape and param.shape):
            return backend_of(array).to_numpy(array).item()
        shape = tuple(array.shape)
        alike = self.elementwise or self.componentwise or len(shape) == param.ndim
        if alike and shape != tuple(param.shape):
            raise ValueError(
                f"loaded state dict has {name} of shape {shape} for a parameter of shape "
                f"{tuple(param.shape)}"
            )
        where = param.device if shape == tuple(param.shape) else differentiable.device(param)
        return convert(array, param.backend, self._precision(array, param), where)

    def _check_moved(self, param: Tensor, state: State) -> None:
        """Raise if a parameter's state is elsewhere, or of another precision, than it is."""
        for name, value in state.items():
            if not hasattr(value, "dtype"):
                continue
            held = value if isinstance(value, Tensor) else untracked(value)
            alike = tuple(value.shape) == tuple(param.shape)
            now = [param.backend.name, param.device, self._precision(value, param).name]
            there = [held.backend.name, held.device if alike else param.device, held.dtype.name]
            if now != there:
                place = next(i for i, p in enumerate(self._params()) if p is param)
                texts = [", ".join(map(str, where)) for where in (now, there)]
                raise BackendError(
                    f"parameter {place} of the optimizer, of shape {tuple(param.shape)}, is on "
                    f"{texts[0]}, and the optimizer's {name} for it on {texts[1]}: make the "
                    "optimizer after moving the model, or take its state along by "
                    "optimizer.load_state_dict(optimizer.state_dict())"
                )

    def _precision(self, array: Any, param: Tensor) -> DType:
        """A parameter's dtype; for real state of a complex one, the real dtype of its precision.

        Where it is updated in parts, its state is complex. State of half precision is float32.
        """
        held = dtype_of(array.dtype)
        if not held.inexact:
            return held
        if param.dtype.narrow:
            return DTYPES["float32"]
        if param.dtype.complex and not held.complex and not self.componentwise:
            return DTYPES["float32" if param.dtype.itemsize == 8 else "float64"]
        return param.dtype

    def _params(self) -> list[Tensor]:
        return [param for group in self.param_groups for param in group["params"]]

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def _wrap_value(value: Any) -> Any:
    """A value of a state as others see it: arrays are Tensors."""
    if isinstance(value, list):
        return [_wrap_value(x) for x in value]
    return untracked(value) if hasattr(value, "dtype") else value


def _select_state(xp: Any, taken: Any, p: Any, state: State, old: Any, before: State) -> Any:
    """Where an update is not taken, put a state back, and return the parameter's old value."""
    if state.keys() != before.keys():
        raise taken.refusal(
            "", "decides whether an optimizer begins a state", "Take the first step outside."
        )
    number = taken.truth()
    for name, x in state.items():
        was = before[name]
        if hasattr(x, "dtype"):
            state[name] = xp.where(taken, x, was)
        elif x is not was:
            state[name] = x * number + was * (1 - number)
    return xp.where(taken, p, old)
