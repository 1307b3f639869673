"""Binding: the generated function that runs a program on one state.

It compares what the program assumes, reads the inputs, runs the program, and stores what has
changed: a straight line for each, since a loop would cost as much as a small network.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from wengert.backends import backend_of, selection
from wengert.compiler.calls import kind_of
from wengert.compiler.capture.recorded import Effect, Recording, Ref, Swept
from wengert.compiler.emission.spelling import Names, Speller, conditions
from wengert.compiler.owners import class_of_user
from wengert.compiler.passes.flatten import LARGEST
from wengert.compiler.passes.inplace import ALONE, CHANGED
from wengert.compiler.state import Missing, Place, State, is_plain, leads_on, same, tensors_in
from wengert.ops.data_type import get_default_dtype
from wengert.tape.grad_mode import is_inference_mode_enabled, recording
from wengert.tape.hooks import has_hooks
from wengert.tape.observers import observing
from wengert.tape.tensor import Tensor, untracked, with_node

__all__ = ["MISS", "Binding", "Failed"]

#: Returned by a call that the program is not for.
MISS: Any = type("Miss", (), {"__repr__": lambda self: "MISS"})()


class Failed:
    """Returned by a call whose program has raised an error; it has changed nothing."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


_PLAIN_DEVICES = ("numpy", "array_api_strict", "dask")
_MISSED = "ArithmeticError, AttributeError, LookupError, TypeError, ValueError"


class Binding:
    """Writes the function.

    ``attach(answer, kept, tensors)`` puts results on the tape. A program that writes in
    place has the input `ALONE`.
    """

    def __init__(
        self,
        found: Recording,
        signature: dict[str, Any],
        pool: Any,
        attach: Callable[..., None],
        *,
        alone: bool = False,
    ) -> None:
        self._found, self._signature, self._alone = found, signature, alone
        self._read = found.read()
        self._one_device = found.backend is not None and found.backend.name in _PLAIN_DEVICES
        named = (has_hooks, kind_of, with_node, same, selection, untracked)
        self.names: dict[str, Any] = {
            **{x.__name__: x for x in named},
            "__name__": "wengert.compiled.binding",
            "MISS": MISS,
            "Failed": Failed,
            ALONE: [None],
            "attach": attach,
            "default_dtype": get_default_dtype,
            "another": pool.another,
            "give": pool.give,
            "inference": is_inference_mode_enabled,
            "made": np.zeros,
            "math": math,
            "new": tuple.__new__,
            "observing": observing,
            "recording": recording,
            "take": pool.take,
            "unflatten": found.answer.unflatten,
            "swept": Swept,
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
        self._moved()
        self._arguments(args, leaves)
        self._facts()
        self._of_tensors()
        self._numbers()
        inputs = [self._input(ref) for ref in self._found.refs]
        if self._alone:  # with two references, as an array of the state has
            self._checks.append(f"{CHANGED} = {ALONE}[0] = made(1)")
            inputs.append(CHANGED)
        known = [x for x in self.names if x.startswith(("last", "was"))]
        lines = ["def call(*args):"]
        lines += [f"    global {', '.join(known)}"] if known else []
        lines += [f"    if len(args) != {len(args)}:", "        return MISS"]
        lines += [f"    {''.join(f'{arg}, ' for arg in args)}= args"] if args else []
        lines += ["    try:", *[f"        {line}" for line in self._checks]]
        lines += [f"    except ({_MISSED}):", "        return MISS"]
        lines += self._run(inputs)
        exec(_code("\n".join(lines) + "\n"), self.names)  # noqa: S102
        return self.names.pop("call")  # type: ignore[no-any-return]  # which need not hold itself

    def _run(self, inputs: list[str]) -> list[str]:
        """The lines that run the program, store its changes, and return the answer."""
        outputs = [f"o{i}" for i in range(len(self._found.program.outputs))]
        left = f"{', '.join(outputs)}{',' if len(outputs) == 1 else ''} = " if outputs else ""
        lines = ["    try:", "        step = take()"]
        lines += ["    except IndexError:", "        step = another()", "    try:"]
        # The gradients that the function deletes at its begin are freed before new ones are made.
        gone = [
            x.ref.index
            for x in self._found.effects
            if x.ref.kind == "grad" and x.ref.index in self._found.gone and x.ref not in self._read
            if x.ref.index < len(self._state.tensors)
        ]
        for i in gone:  # another thread's calls see that there is one
            array: Any = self._state.tensors[i].tensor._grad._array  # type: ignore[union-attr]
            empty = backend_of(array).namespace.zeros((0,), dtype=array.dtype)
            lines.append(f"        t{i}._grad = {self._bind(untracked(empty))}")
        lines += ["        try:", f"            {left}step({', '.join(inputs)})"]
        lines += ["        except BaseException as error:"]
        lines += [f"            t{i}._grad = None" for i in gone]
        # After a change in place the function would begin with what has changed.
        unless = f" and not {CHANGED}[0]" if self._alone else ""
        lines += [
            f"            if isinstance(error, Exception){unless}:",
            "                return Failed(error)",
        ]
        lines += ["            raise"]
        lines += [f"        {line}" for line in (*self._new(), *self._effects())]
        lines += [f"        {line}" for line in self._answer()]
        lines += ["    finally:", "        give(step)"]
        return lines

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
        tracked, inference = self._signature["the recording mode"]
        default = self._signature["where new arrays are made"][2]
        self._check("observing")  # an observer needs eager operations
        self._check(f"recording() is not {tracked} or inference() is not {inference}")
        self._check(f"selection() is not {self._bind(selection())}")
        self._check(f"default_dtype() is not {self._bind(default)}")

    def _moved(self) -> None:
        """Read the Tensors, and the tuples of them, that calls replace; compare the others."""
        spots, tensors = self._state.spots, self._state.tensors
        moved = {x.ref.index for x in self._found.effects if x.ref.kind == "spot"}
        kinds = self._signature["a Tensor of the state"]
        number = {id(at.tensor): i for i, at in enumerate(tensors)}
        again: list[tuple[str, int]] = []  # further occurrences of Tensors
        self._replaced: list[int] = []
        for k in sorted(moved):
            self._checks.append(f"s{k} = {self._at(spots[k][0])}")
            for text, spot, tensor in self._walk_spot(*spots[k], f"s{k}"):
                i = number[id(tensor)]
                if (first := tensors[i].place) is None or first.spot != spot:
                    again.append((text, i))
                else:
                    self._checks.append(f"t{i} = {text}")
                    self._replaced.append(i)
        for i in self._replaced:
            self._check(f"type(t{i}) is not {self._bind(type(tensors[i].tensor))}")
            for j, kind in enumerate(kinds):
                if j != i and kind == kinds[i] and not (j in self._replaced and j < i):
                    self._check(f"t{i} is t{j}")
        for k, (place, held) in enumerate(spots):
            if k not in moved and isinstance(held, Tensor):
                again.append((self._at(place), number[id(held)]))
            elif k not in moved:
                self._check(f"{self._at(place)} is not {self._bind(held)}")
                again += self._aliases(tensors_in(held), number)
        for text, i in (*again, *self._aliases(self._state.fixed, number)):
            self._check(f"{text} is not t{i}")

    def _aliases(self, held: Sequence[Tensor], number: dict[int, int]) -> list[tuple[str, int]]:
        """Those Tensors of which another place gets another one."""
        found = [(x, number[id(x)]) for x in held]
        return [(self._bind(x), i) for x, i in found if i in self._replaced]

    def _walk_spot(self, place: Place, held: Any, text: str) -> Iterator[tuple[str, Any, Tensor]]:
        """The Tensors at a spot: their texts, spots, and themselves; the rest is compared."""
        if isinstance(held, Tensor):
            yield text, place.spot, held
        elif isinstance(held, tuple) and not is_plain(held):
            self._check(
                f"type({text}) is not {self._bind(type(held))} or len({text}) != {len(held)}"
            )
            for i, part in enumerate(held):
                yield from self._walk_spot(Place(place, i, "", "part"), part, f"{text}[{i}]")
        elif is_plain(held):
            self._exactly(text, held)
        else:
            self._check(f"{text} is not {self._bind(held)}")

    def _arguments(self, args: list[str], leaves: Sequence[Any]) -> None:
        state, signature = self._state, self._signature
        tensors = [
            (f"t{i}", at.tensor, kind[:5])
            for i, (at, kind) in enumerate(
                zip(state.tensors, signature["a Tensor of the state"], strict=True)
            )
        ]
        raws = [
            (self._at(place), place.get(), kind)
            for place, kind in zip(state.arrays, signature["a raw array of the state"], strict=True)
        ]
        for name, kind, leaf in zip(args, signature["an argument"], leaves, strict=True):
            if isinstance(leaf, Tensor):
                self._check(f"type({name}) is not {self._bind(type(leaf))}")
                if leads_on(leaf) and class_of_user(type(leaf)):  # to what is held there
                    self._check(f"{name} is not {self._bind(leaf)}")
                if not self._is_new(name, leaf, kind[:5], tensors):
                    continue
                self._checks.append(f"r_{name} = {name}._array")
                self._raw(f"r_{name}", kind)
                self._tensors.append(name)
                tracked, hooked = kind[5:]
                self._check(f"{name}._node is {'not ' if tracked is None else ''}None")
                if tracked is not None:
                    self._check(f"{name}.is_leaf is not {tracked}")
                    watched = "" if tracked else f" or {name}.retains_grad"
                    self._check(
                        f"{name} is not {self._bind(leaf)}"
                        if hooked
                        else f"has_hooks({name}._node){watched}"
                    )
            elif isinstance(kind, tuple):
                self._is_new(name, leaf, kind, raws)
                self._raw(name, kind)
            elif kind is float:
                self._check(f"type({name}) is not float or {name} - {name} != 0.0")
            elif is_plain(leaf):
                self._exactly(name, leaf)
            else:
                self._check(f"{name} is not {self._bind(leaf)}")

    def _is_new(self, name: str, x: Any, kind: Any, others: list[tuple[str, Any, Any]]) -> bool:
        """Compare an argument's identity with others; return whether it is none of them.

        Only those of the same kind need it. A new one is added to the others.
        """
        for other, known, _ in others:
            if known is x:
                self._check(f"{name} is not {other}")
                return False
        for other, _, its in others:
            if its == kind:
                self._check(f"{name} is {other}")
        others.append((name, x, kind))
        return True

    def _raw(self, array: str, kind: Any) -> None:
        cls, shape, dtype = (self._bind(x) for x in kind[:3])
        self._check(
            f"type({array}) is not {cls} or {array}.shape != {shape} or {array}.dtype != {dtype}"
        )
        if not self._one_device:
            self._check(f"kind_of({array}) != {self._bind(kind[:5])}")
        elif kind[4] is not None:
            self._check(f"{array}.strides != {self._bind(kind[4])}")
        elif hasattr(kind[0], "flags") and kind[1]:
            self._check(f"not {array}.flags.c_contiguous")

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
        for x, keys, _ in self._state.sizes:
            if isinstance(keys, int):
                self._check(f"len({self._bind(x)}) != {keys}")
            elif not keys:
                self._check(f"{self._bind(x)}")
            else:
                made = "[*{}]" if isinstance(keys, list) else "{}"
                self._check(f"{made.format(self._bind(x))} != {self._bind(keys)}")

    def _of_tensors(self) -> None:
        state, signature = self._state, self._signature
        for i, at in enumerate(state.tensors):
            kind, node = signature["a Tensor of the state"][i], at.tensor._node
            self._checks.append(f"r_t{i} = t{i}._array")
            if self._one_device and math.prod(kind[1]) > LARGEST:
                self._raw(f"r_t{i}", kind)  # a reference to the array would forbid to overwrite it
            else:
                self.names[f"last{i}"] = at.tensor._array
                new = f"kind_of(r_t{i}) != {self._bind(kind[:5])}"
                self._check(f"r_t{i} is not last{i} and {new}")
            if node is None:
                self._check(f"t{i}._node is not None")
            else:
                self._checks.append(f"n = t{i}._node")
                self._check(
                    f"n is not {self._bind(node)} or type(n) is not {self._bind(type(node))}"
                )
                if not at.tensor.is_leaf:
                    self._check(f"n.watch is not {self._bind(node.watch)}")
        for tensor, there in zip(self._tensors, self._found.grads, strict=True):
            self._check(f"{tensor}._grad is {'' if there else 'not '}None")
        self._gradients()
        for i, (place, kind) in enumerate(
            zip(state.arrays, signature["a raw array of the state"], strict=True)
        ):
            self._checks.append(f"r_s{i} = {self._at(place)}")
            if self._one_device and math.prod(kind[1]) > LARGEST:
                self._raw(f"r_s{i}", kind)
            else:
                self.names[f"was{i}"] = place.get()
                self._check(f"r_s{i} is not was{i} and kind_of(r_s{i}) != {self._bind(kind)}")
        for place in state.twins:
            first = next(i for i, x in enumerate(state.arrays) if x.get() is place.get())
            self._check(f"{self._at(place)} is not r_s{first}")

    def _gradients(self) -> None:
        """Compare kinds and identities of gradients, if the program reads or changes any."""
        changed = [x.ref for x in self._found.effects if x.inside]
        used = {ref.index for ref in (*self._read, *changed) if ref.kind == "grad"}
        if not used:
            return
        kinds = self._signature["a gradient"]
        order = [*range(len(self._tensors))]
        names = [self._tensors[i] for i in order if i in used]
        for i in sorted(used):
            if kinds[i] is not None:
                cls, dtype = map(self._bind, kinds[i])
                self._checks.append(f"g = {self._tensors[i]}._grad._array")
                self._check(f"type(g) is not {cls} or g.dtype != {dtype}")
        known = self._bind(frozenset([at.tensor for at in self._state.tensors]))
        self._checks.append(f"gradients = {{{', '.join(f'{x}._grad' for x in names)}}}")
        self._check(f"len(gradients) != {len(names)} or not gradients.isdisjoint({known})")
        for name in (
            *self._tensors[len(self._state.tensors) :],
            *(f"t{i}" for i in self._replaced),
        ):
            self._check(f"{name} in gradients")
        self._checks.append("g = gradients = None")  # the call may free them

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
            called = found.over.get(output)  # the operation, if it was differentiated inside
            if called is None:
                yield f"m{output} = untracked(o{output})"
            else:
                yield f"m{output} = with_node(o{output}, swept(o{output}, {called!r}))"

    def _effects(self) -> Iterator[str]:
        """The lines that store changes."""
        for effect in self._found.effects:
            ref, out = effect.ref, f"o{effect.output}"
            if ref.kind == "tensor":
                name, last = self._tensors[ref.index], f"last{ref.index}"
                # An array of another kind has to be seen by the comparison.
                known = f" = {last}" if effect.alike and last in self.names else ""
                yield f"{name}._array{known} = {out}"
            elif ref.kind == "grad":
                name = self._tensors[ref.index]
                if effect.output is None:
                    yield f"{name}._grad = None"
                elif effect.new:
                    yield f"{name}._grad = m{effect.output}"
                else:
                    yield f"{name}._grad._array = {out}"
            elif ref.kind == "spot":
                place, held = self._state.spots[ref.index]
                yield f"{self._at(place)} = {self._spell_effect(held, iter(effect.parts))}"
            else:
                if ref.kind == "array" and effect.alike and f"was{ref.index}" in self.names:
                    yield f"was{ref.index} = {out}"
                yield from self._stored(self._state.place(*ref), out)

    def _stored(self, place: Place, value: str) -> Iterator[str]:
        """The statement that stores a value at a place: of a part a new tuple."""
        while place.kind == "part":
            held = self._at(place.holder)
            value = f"(*{held}[:{place.key}], {value}, *{held}[{place.key + 1}:])"
            place = place.holder
        yield f"{self._at(place)} = {value}"

    def _spell_effect(self, held: Any, parts: Iterator[Effect]) -> str:
        """An expression for what a spot gets: a Tensor, or a tuple with other leaves."""
        if isinstance(held, tuple):
            made = "".join([f"{self._spell_effect(x, parts)}, " for x in held])
            return (
                f"({made})" if type(held) is tuple else f"new({self._bind(type(held))}, ({made}))"
            )
        part = next(parts)
        if part.tensor is not None:
            return self._tensors[part.tensor]
        if part.output is None:
            return self._bind(held)
        return f"{'m' if part.new else 'o'}{part.output}"

    def _answer(self) -> Iterator[str]:
        found = self._found
        parts = []
        for kind, what in found.leaves:
            if kind == "tensor":
                parts.append(f"m{what}")
            elif kind == "same":
                name = self._tensors[what.index]
                parts.append(name if what.kind == "tensor" else f"{name}._grad")
            elif kind == "given":
                parts.append(self._input(what))
            elif kind == "leaf":
                parts.append(f"a{what}")
            elif kind == "object":
                parts.append(self._bind(self._state.objects[what]))
            else:
                parts.append(self._bind(what) if kind == "plain" else f"o{what}")
        if found.backward:
            yield f"answer = [{', '.join(parts)}]"
            count, last = (
                len({i for x in found.backward for i in x.kept}),
                len(found.program.outputs),
            )
            kept = ", ".join(f"o{i}" for i in range(last - count, last))
            yield f"attach(answer, [{kept}], [{', '.join(self._tensors)}])"
            yield "return unflatten(answer)"
        elif found.answer.cls is None:
            yield f"return {parts[0]}"
        else:
            yield f"return unflatten([{', '.join(parts)}])"


@lru_cache(maxsize=64)
def _code(source: str) -> CodeType:
    """Compiled source. The cache serves the replay after a check, and models of equal structure."""
    return compile(source, "<binding>", "exec")
