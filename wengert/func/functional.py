"""Stateless calls of modules: their parameters are arguments."""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from wengert.tape.tensor import Tensor

#: The modules with other Tensors in their places now, by their ids and the places' names.
swapped: ContextVar[dict[tuple[int, str], Any]] = ContextVar("swapped", default={})  # noqa: B039


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other Tensors in the places of its parameters and buffers.

    The module has its own again afterwards, also if the call raises an error. So the call is a
    function of the parameters, which `grad`, `jacobian`, `hessian` and the others transform.

    Raises `RuntimeError` if there is no parameter or buffer of a name, or one is missing with
    ``strict``; `TypeError` if a value is no Tensor; `ValueError` if a name is in several dicts, or
    there are several Tensors for one parameter.

    Parameters
    ----------
    module : Module
        It is called with its hooks.
    parameter_and_buffer_dicts : dict of str to Tensor, or sequence of dicts
        Tensors by the names of ``named_parameters`` and ``named_buffers``; the module's own are
        used for others. A buffer that the call replaces is replaced in the dict.
    args : object
        A tuple of the positional arguments, or a single one.
    kwargs : dict, optional
        The keyword arguments.
    tie_weights : bool
        Whether a Tensor given for one name of a shared parameter is used for its other names, too.
    strict : bool
        Whether a parameter or buffer that is not in the dicts is an error.

    Examples
    --------
    >>> model = wg.nn.Linear(2, 1)
    >>> def loss(parameters, x):
    ...     return wg.sum(wg.func.functional_call(model, parameters, x) ** 2)
    >>> gradients = wg.func.grad(loss)(dict(model.named_parameters()), wg.ones((3, 2)))
    >>> list(gradients)
    ['weight', 'bias']
    """
    named = parameter_and_buffer_dicts
    dicts = [named] if isinstance(named, Mapping) else list(named)
    places = _places(module)
    given = _tensors_by_name(module, dicts, places, strict)
    if tie_weights:
        _tie(module, given, places)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _swap(given, places, dicts):
        return module(*args, **(kwargs or {}))


def _places(module: Any) -> dict[str, tuple[Any, str]]:
    """The module and the name of each parameter and buffer."""
    found = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        for listed in (owner.named_parameters, owner.named_buffers):
            for name, _ in listed(recurse=False, remove_duplicate=False):
                found[prefix + name] = owner, name
    return found


def _tensors_by_name(module: Any, dicts: list[Any], places: Any, strict: bool) -> dict[str, Tensor]:
    given: dict[str, Tensor] = {}
    for one in dicts:
        if not isinstance(one, Mapping):
            raise ValueError(  # noqa: TRY004 -- PyTorch's error
                f"expected a dict of names to Tensors, or a sequence of such, not {type(one)}"
            )
        if twice := sorted(given.keys() & one.keys()):
            raise ValueError(
                f"{twice} appear in multiple dictionaries; behavior of functional call is ambiguous"
            )
        given.update(one)
    for name, value in given.items():
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{name} is not an instance of wengert.Tensor, but {type(value).__name__}; make "
                "one with wg.asarray(...)"
            )
    errors = []
    if unexpected := [name for name in given if name not in places]:
        errors.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
    if strict and (missing := [name for name in places if name not in given]):
        errors.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
    if errors:
        raise RuntimeError(
            f"Error(s) in the functional call of {type(module).__name__}:\n\t" + "\n\t".join(errors)
        )
    return given


def _tie(module: Any, given: dict[str, Tensor], places: Mapping[str, Any]) -> None:
    """Give all names of one parameter the same Tensor."""
    together: dict[int, list[str]] = {}
    for name, (owner, key) in places.items():
        together.setdefault(id(vars(owner)[key]), []).append(name)
    for names in together.values():
        chosen = [name for name in names if name in given]
        if len({id(given[name]) for name in chosen}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {chosen}, which are tied. Consider "
                "using tie_weights=False"
            )
        if chosen:
            given.update(dict.fromkeys(names, given[chosen[0]]))


@contextmanager
def _swap(given: dict[str, Tensor], places: Mapping[str, Any], dicts: list[Any]) -> Iterator[None]:
    before = [(name, *places[name]) for name in given]
    own = {name: vars(owner)[key] for name, owner, key in before}
    for name, owner, key in before:
        vars(owner)[key] = given[name]
    token = swapped.set(swapped.get() | {(id(owner), key): owner for _, owner, key in before})
    try:
        yield
    finally:
        swapped.reset(token)
        for name, owner, key in before:
            now = vars(owner).get(key)
            vars(owner)[key] = own[name]
            if now is not given[name]:
                for one in dicts:
                    if name in one and isinstance(one, MutableMapping):
                        one[name] = now
