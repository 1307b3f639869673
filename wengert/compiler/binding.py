"""Binding: the generated function that runs a program on one state.

It compares what the program assumes, reads the inputs, runs the program, and stores what has
changed: a straight line for each, since a loop would cost as much as a small network.
"""

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from wengert.backends import selection
from wengert.compiler.calls import kind_of, same_keys
from wengert.compiler.capture.recorded import Effect, Recording, Ref, Swept
from wengert.compiler.emission.spelling import Names, Speller, conditions
from wengert.compiler.owners import class_of_user
from wengert.compiler.passes.flatten import LARGEST
from wengert.compiler.passes.inplace import ALONE, CHANGED
from wengert.compiler.state import Exact, Identity, Missing, Place, State, is_plain, leads_on, same
from wengert.ops.data_type import get_default_dtype
from wengert.tape.grad_mode import recording
from wengert.tape.hooks import has_hooks
from wengert.tape.node import tick
from wengert.tape.observers import observing
from wengert.tape.tensor import Tensor

__all__ = ["MISS", "Binding", "Failed"]

#: Returned by a call that the program is not for.
MISS: Any = type("Miss", (), {"__repr__": lambda self: "MISS"})()


class Failed(NamedTuple):
    """Returned by a call that has changed nothing.

    Its program has raised an error, or runs at present in another thread's or handler's call.
    """

    error: Exception | None


_MISSED = "ArithmeticError, AttributeError, LookupError, TypeError, ValueError"


class Binding:
    """Writes the function.

    A program that writes in place has the input `ALONE`. One that has buffers is in use while
    ``running`` has an item.
    """

    def __init__(
        self,
        found: Recording,
        signature: dict[str, Any],
        step: Callable[..., Any],
        running: dict[int, Any] | None,
        *,
        alone: bool = False,
    ) -> None:
        self._found, self._signature, self._alone = found, signature, alone
        self._shared = running is None
        self._read = found.read()
        named = (has_hooks, kind_of, same, same_keys, selection)
        self.names: dict[str, Any] = {
            **{x.__name__: x for x in named},
            "__name__": "wengert.compiled.binding",
            "MISS": MISS,
            "Failed": Failed,
            ALONE: [None],
            "default_dtype": get_default_dtype,
            "running": running,
            "is_not": operator.is_not,
            "made": np.zeros,
            "math": math,
            "ndarray": np.ndarray,
            "new": tuple.__new__,
            "new_object": object.__new__,
            "observing": observing,
            "recording": recording,
            "step": step,
            "tick": tick,
            "unflatten": found.answer.unflatten,
            "shape": _shape,
            "Swept": Swept,
            "Tensor": Tensor,
        }
        self._checks: list[str] = []
        self._bound: dict[int, str] = {}

    def function(self, state: State, leaves: Sequence[Any]) -> Callable[..., Any]:
        """The function bound to the objects of a state and a call's ``leaves``."""
        self._state = state
        args = [f"a{i}" for i in range(len(leaves))]
        self._tensors = [f"t{i}" for i in range(len(state.tensors))]
        for name, at in zip(self._tensors, state.tensors, strict=True):
            self.names[name] = at.tensor
        self._modes()
        self._sizes()  # first, since reading makes items of some dicts
        self._read_tensors()
        self._arguments(args, leaves)
        self._facts()
        self._of_tensors()
        self._numbers()
        inputs = [self._input(ref) for ref in self._found.refs]
        if self._alone:  # with two references, as an array of the state has
            self._checks.append(f"{CHANGED} = {ALONE}[0] = made(1)")
            inputs.append(CHANGED)
        known = [x for x in self.names if x.startswith(("last", "was"))]
        lines = [f"def call({''.join(f'{arg}=MISS, ' for arg in args)}*more):"]
        lines += [f"    global {', '.join(known)}"] if known else []
        missing = "".join(f" or {arg} is MISS" for arg in args[-1:])
        lines += [f"    if more{missing}:", "        return MISS"]
        lines += ["    try:", *[f"        {line}" for line in self._checks]]
        lines += [f"    except ({_MISSED}):", "        return MISS"]
        lines += self._run(inputs)
        exec(_code("\n".join(lines) + "\n"), self.names)  # noqa: S102
        return self.names.pop("call")  # type: ignore[no-any-return]  # which need not hold itself

    def _run(self, inputs: list[str]) -> list[str]:
        """The lines that run the program, store its changes, and return the answer."""
        outputs = [f"o{i}" for i in range(len(self._found.program.outputs))]
        left = f"{', '.join(outputs)}{',' if len(outputs) == 1 else ''} = " if outputs else ""
        lines = ["try:", f"    {left}step({', '.join(inputs)})", "except BaseException as error:"]
        # After a change in place the function would begin with what has changed, and after a
        # collective other processes have gone on.
        unless = f" and not {CHANGED}[0]" if self._alone else ""
        unless = " and False" if self._found.exchanges else unless
        lines += [f"    if isinstance(error, Exception){unless}:", "        return Failed(error)"]
        lines += ["    raise", *self._new(), *self._effects(), *self._return()]
        if self._shared:
            return [f"    {line}" for line in lines]
        # An interrupt at any place leaves the program to the next call.
        taken = ["    me = []", "    try:", "        if running.setdefault(0, me) is not me:"]
        taken += ["            return Failed(None)", *[f"        {line}" for line in lines]]
        return [
            *taken,
            "    finally:",
            "        if running.get(0) is me:",
            "            del running[0]",
        ]

    # -- comparing -------------------------------------------------------------------------------

    def _bind(self, x: Any) -> str:
        name = self._bound.get(id(x))
        if name is None:
            name = self._bound[id(x)] = f"x{len(self.names)}"
            self.names[name] = x
        return name

    def _check(self, condition: str) -> None:
        self._checks.append(f"if {condition}: return MISS")

    def _at(self, place: Place) -> str:
        return place.text(self._bind)

    def _exactly(self, at: str, x: Any) -> None:
        """Compare a plain value, by identity first."""
        if x is None or x is True or x is False:
            self._check(f"{at} is not {x}")
        else:
            bound = self._bind(x)
            self._check(f"{at} is not {bound} and not same({at}, {bound})")

    def _modes(self) -> None:
        default = self._signature["where new arrays are made"][2]
        self._check("observing")  # an observer needs eager operations
        self._check(f"recording() is not {self._bind(recording())}")
        self._check(f"selection() is not {self._bind(selection())}")
        self._check(f"default_dtype() is not {self._bind(default)}")

    def _read_tensors(self) -> None:
        """Read the Tensors, and compare the tuples of them, that calls replace."""
        state, tensors = self._state, self._state.tensors
        moved = {x.ref.index for x in self._found.effects if x.ref.kind == "spot"}
        spots = {state.spots[k][0].spot for k in moved}
        number = {id(at.tensor): i for i, at in enumerate(tensors)}
        placed = [(i, at.place) for i, at in enumerate(tensors) if at.place is not None]
        first = {i: at for i, at in placed if at.root.spot in spots}
        self._replaced = bool(first)
        for k, (place, held) in enumerate(state.spots):
            if isinstance(held, tuple) and k in moved:
                self._check(f"shape({self._at(place)}) != {self._bind(_shape(held))}")
            elif isinstance(held, tuple):
                self._check(f"{self._at(place)} is not {self._bind(held)}")
        for i, place in first.items():
            self._checks.append(f"t{i} = {self._at(place)}")
            self._check(f"type(t{i}) is not {self._bind(type(tensors[i].tensor))}")
        for at, x in [part for spot in state.spots for part in _tensors_at(*spot)]:
            i = number[id(x)]
            if i not in first or first[i].spot != at.spot:
                self._check(f"{self._at(at)} is not t{i}")
        for x in [x for x in state.fixed if number[id(x)] in first]:
            self._check(f"{self._bind(x)} is not t{number[id(x)]}")

    def _arguments(self, args: list[str], leaves: Sequence[Any]) -> None:
        state, known = self._state, dict[int, str]()
        known |= {id(at.tensor): f"t{i}" for i, at in enumerate(state.tensors)}
        raws = {id(place.get()): self._at(place) for place in state.arrays}
        count, kinds = len(raws), self._signature["an argument"]
        gradients = self._signature["a gradient"]
        of_tensors = self._signature["a Tensor of the state"]
        others = [(f"t{i}", kind[:5]) for i, kind in enumerate(of_tensors)]
        self._kinds = [*gradients[: len(state.tensors)]]  # of gradients
        rest = gradients[len(state.tensors) :]
        for name, kind, leaf, gradient in zip(args, kinds, leaves, rest, strict=True):
            if isinstance(leaf, Tensor):
                self._check(f"type({name}) is not {self._bind(type(leaf))}")
                if leads_on(leaf) and class_of_user(type(leaf)):  # to what is held there
                    self._check(f"{name} is not {self._bind(leaf)}")
                if known.setdefault(id(leaf), name) != name:
                    self._check(f"{name} is not {known[id(leaf)]}")
                    continue
                self._checks.append(f"r_{name} = {name}._array")
                self._compare_kind(f"r_{name}", kind[:5])
                for other in [other for other, of in others if of == kind[:5]]:
                    self._check(f"{name} is {other}")
                others.append((name, kind[:5]))
                self._tensors.append(name)
                self._kinds.append(gradient)
                tracked, hooked = kind[5:]
                self._check(f"{name}._node is {'not ' if tracked is None else ''}None")
                if tracked:
                    self._check(f"not {name}.is_leaf")
                    self._check(
                        f"{name} is not {self._bind(leaf)}"
                        if hooked
                        else f"has_hooks({name}._node)"
                    )
            elif isinstance(kind, tuple):
                if raws.setdefault(id(leaf), name) != name:
                    self._check(f"{name} is not {raws[id(leaf)]}")
                self._compare_kind(name, kind)
            elif kind is float:
                self._check(f"type({name}) is not float or {name} - {name} != 0.0")
            elif is_plain(leaf):
                self._exactly(name, leaf)
            else:
                self._check(f"{name} is not {self._bind(leaf)}")
        if self._replaced:
            self._distinct(self._tensors)
        if len(raws) > count:
            self._distinct([f"id({x})" for x in raws.values()])

    def _distinct(self, names: Sequence[str]) -> None:
        self._check(f"len({{{', '.join(names)}}}) != {len(names)}")

    def _compare_kind(
        self, array: str, kind: Any, last: str = "", x: Any = None, made: bool = True
    ) -> None:
        """Compare an array's kind, less of the last call's, and nothing of one that it ``made``."""
        new, (shape, dtype) = f"kind_of({array}) != {self._bind(kind)}", map(self._bind, kind[1:3])
        other = f"{array}.shape != {shape} or {array}.dtype is not {dtype}"
        if last and math.prod(kind[1]) <= LARGEST:  # a larger one is overwritten if nobody has it
            self.names[last] = x
            in_place = "" if made else f" or {other}"
            self._check(f"({array} is not {last}{in_place}) and {new}")
        elif kind[0] is np.ndarray and kind[4] is None:  # first what takes half of the time
            other += f" or type({array}) is not ndarray or not {array}.flags.c_contiguous"
            self._check(f"({other}) and {new}")
        else:
            self._check(new)

    def _facts(self) -> None:
        """Compare the plain values and objects at places."""
        state = self._state
        inputs = {place.spot for place in (*state.arrays, *state.twins)}
        for place, x in state.held:
            if place.spot in inputs or place.kind == "part":
                continue
            if x is Missing and place.kind == "attr":
                self._check(f"hasattr({self._bind(place.holder)}, {place.key!r})")
            elif x is Missing:
                self._check(f"{self._bind(place.key)} in {self._bind(place.holder)}")
            elif is_plain(x):
                self._exactly(self._at(place), x)
            else:
                self._check(f"{self._at(place)} is not {self._bind(x)}")

    def _sizes(self) -> None:
        """Compare lengths and keys of containers."""
        for x, size, _ in self._state.sizes:
            bound, count = self._bind(x), size if type(size) is int else len(size)
            if not count and not hasattr(type(x), "__bool__"):
                self._check(bound)
            elif type(size) is list:  # of names, which are equal texts
                self._check(f"[*{bound}] != {self._bind(size)}")
            else:
                self._check(f"len({bound}) != {count}")
                if type(size) is not int:
                    moved = f"any(map(is_not, {bound}, {self._bind([*x])}))"
                    self._check(f"{moved} and not same_keys({bound}, {self._bind(size)})")

    def _of_tensors(self) -> None:
        state, signature = self._state, self._signature
        changed = {x.ref for x in self._found.effects}
        for i, at in enumerate(state.tensors):
            kind, node = signature["a Tensor of the state"][i], at.tensor._node
            self._checks.append(f"r_t{i} = t{i}._array")
            made = node is not None or Ref("tensor", i) in changed  # nodes keep their shape
            self._compare_kind(f"r_t{i}", kind[:5], f"last{i}", at.tensor._array, made)
            now, kind_now = self._bind(node), self._bind(type(node))
            self._check(f"t{i}._node is not {now} or {now}.__class__ is not {kind_now}")
        for i, there in enumerate(self._found.grads):
            alone = there == Ref("grad", i)
            other = self._tensors[there.index] if there and not alone else "None"
            other += "._grad" if there and there.kind == "grad" and not alone else ""
            self._check(f"{self._tensors[i]}._grad is {'' if alone else 'not '}{other}")
        self._gradients()
        for i, (place, kind) in enumerate(
            zip(state.arrays, signature["a raw array of the state"], strict=True)
        ):
            self._checks.append(f"r_s{i} = {self._at(place)}")
            last = "" if i in state.own else f"was{i}"
            self._compare_kind(f"r_s{i}", kind, last, place.get())
        for place in state.twins:
            first = next(i for i, x in enumerate(state.arrays) if x.get() is place.get())
            self._check(f"{self._at(place)} is not r_s{first}")

    def _gradients(self) -> None:
        """Compare kinds and identities of gradients, if the program reads or changes any."""
        changed = [x.ref for x in self._found.effects if x.inside]
        used = {ref.index for ref in (*self._read, *changed) if ref.kind == "grad"}
        if not used:
            return
        names = [self._tensors[i] for i in sorted(used)]
        for i, name in zip(sorted(used), names, strict=True):
            cls, dtype = map(self._bind, self._kinds[i])
            self._checks.append(f"g = {name}._grad._array")
            self._check(f"type(g) is not {cls} or g.dtype != {dtype}")
        self._checks.append("g = None")  # the call may free it
        self._distinct([*self._tensors, *[f"{name}._grad" for name in names]])

    def _numbers(self) -> None:
        state, found = self._state, self._found
        for i, place in enumerate(state.numbers):
            first, at = state.shares[i], self._at(place)
            if first == i:
                self._checks.append(f"n{i} = {at}")
                self._check(f"type(n{i}) is not {type(place.get()).__name__}")
            else:
                self._check(f"{at} is not n{first} and not same({at}, n{first})")
        for ref, value in found.pinned.items():
            self._exactly(self._input(ref), value)
        given = [self._input(ref) for ref in found.decided.refs]
        self._checks += conditions(
            found.decided, given, lambda text: "return MISS", Speller(None, Names())
        )

    def _input(self, ref: Ref) -> str:
        if ref.kind == "grad":
            tensor = self._tensors[ref.index]
            return f"{tensor}._grad._array" if ref in self._read else "None"
        if ref.kind == "tensor":
            return f"r_{self._tensors[ref.index]}"
        if ref.kind == "number":
            return f"n{self._state.shares[ref.index]}"
        return {"array": "r_s", "leaf": "a"}[ref.kind] + str(ref.index)

    # -- storing ---------------------------------------------------------------------------------

    def _new(self) -> Iterator[str]:
        """The lines that make Tensors of outputs, once of each."""
        found = self._found
        made = [what for kind, what in found.leaves if kind == "tensor"]
        for effect in found.effects:
            made += [x.output for x in (effect, *effect.parts) if x.new]
        for output in dict.fromkeys(made):
            node = "None"
            if output in found.swept:
                node, value = f"node{output}", found.program.outputs[output]
                yield f"{node} = new_object(Swept)"
                yield f"{node}.number = tick()"
                nodes = [f"{self._tensors[i]}._node, " for i in found.swept[output]]
                yield f"{node}.parents = ({''.join(nodes)})"
                yield f"{node}.saved = {node}.watch = None"
                yield f"{node}.shape = {self._bind(value.shape)}"
                yield f"{node}.dtype = {self._bind(value.dtype)}"
            yield f"m{output} = new_object(Tensor)"
            yield f"m{output}._array = o{output}"
            yield f"m{output}._grad = None"
            yield f"m{output}._node = {node}"

    def _effects(self) -> Iterator[str]:
        """The lines that store changes."""
        found = self._found
        kept = [x.same for effect in found.effects for x in (effect, *effect.parts)]
        kept += [what for kind, what in found.leaves if kind == "same"]
        for ref in dict.fromkeys([ref for ref in kept if ref and ref.kind == "grad"]):
            yield f"{self._old(ref)} = {self._tensors[ref.index]}._grad"
        for effect in found.effects:
            ref, out = effect.ref, f"o{effect.output}"
            if ref.kind == "tensor":
                name, last = self._tensors[ref.index], f"last{ref.index}"
                # An array of another kind has to be seen by the comparison.
                known = f" = {last}" if effect.alike and last in self.names else ""
                yield f"{name}._array{known} = {out}"
            elif ref.kind in ("grad", "new"):
                name = self._tensors[ref.index] if ref.kind == "grad" else f"m{ref.index}"
                if effect.inside:
                    yield f"{name}._grad._array = {out}"
                else:
                    yield f"{name}._grad = {self._spell_effect(None, iter([effect]))}"
            elif ref.kind == "spot":
                place, held = self._state.spots[ref.index]
                yield f"{self._at(place)} = {self._spell_effect(held, iter(effect.parts))}"
            else:
                if ref.kind == "array" and effect.alike and f"was{ref.index}" in self.names:
                    yield f"was{ref.index} = {out}"
                place = self._state.place(*ref)
                of_tuple = place.kind == "part"  # which is made anew
                at = self._bind(place) if of_tuple else self._at(place)
                yield f"{at}.set({out})" if of_tuple else f"{at} = {out}"

    def _old(self, ref: Ref) -> str:
        """A Tensor, or gradient, from before the call."""
        return self._tensors[ref.index] if ref.kind == "tensor" else f"g{ref.index}"

    def _spell_effect(self, held: Any, parts: Iterator[Effect]) -> str:
        """An expression for what a spot gets: a Tensor, or a tuple with other leaves."""
        if isinstance(held, tuple):
            made = "".join([f"{self._spell_effect(x, parts)}, " for x in held])
            return (
                f"({made})" if type(held) is tuple else f"new({self._bind(type(held))}, ({made}))"
            )
        part = next(parts)
        if part.same is not None:
            return self._old(part.same)
        if part.output is None:
            return self._bind(held)
        return f"{'m' if part.new else 'o'}{part.output}"

    def _return(self) -> Iterator[str]:
        found = self._found
        parts = []
        for kind, what in found.leaves:
            if kind == "tensor":
                parts.append(f"m{what}")
            elif kind == "same":
                parts.append(self._old(what))
            elif kind == "given":
                parts.append(self._input(what))
            elif kind == "object":
                parts.append(self._bind(self._state.objects[what]))
            else:
                parts.append(self._bind(what) if kind == "plain" else f"o{what}")
        if found.answer.cls is None:
            yield f"return {parts[0]}"
        else:
            yield f"return unflatten([{', '.join(parts)}])"


def _tensors_at(place: Place, x: Any) -> Iterator[tuple[Place, Tensor]]:
    """The Tensors in what is at a place, with their own places."""
    if isinstance(x, Tensor):
        yield place, x
    elif isinstance(x, tuple):
        for i, part in enumerate(x):
            yield from _tensors_at(Place(place, i, "", "part"), part)


def _shape(x: Any) -> Any:
    """What is compared of a tuple whose Tensors are replaced."""
    if isinstance(x, Tensor):
        return Tensor
    if isinstance(x, tuple) and not getattr(x, "__dict__", None):
        return type(x), [*map(_shape, x)]
    return Exact(x) if is_plain(x) else Identity(x)


@lru_cache(maxsize=64)
def _code(source: str) -> CodeType:
    """Compiled source. The cache serves the replay after a check, and models of equal structure."""
    return compile(source, "<binding>", "exec")
