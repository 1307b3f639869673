"""Glue: the generated function around a program, for one signature.

It checks the guards, reads the state, runs the program, and stores the changes. A loop over lists
of guards would cost as much as a small network, so it is generated source with a line for each.
"""

import math
import operator
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import lru_cache
from itertools import starmap
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.backends import selection
from wengert.compiler.capture.calls import kind_of
from wengert.compiler.capture.containers import tuple_parts
from wengert.compiler.capture.places import (
    CALLS,
    PLAIN,
    Contents,
    Exact,
    Missing,
    Place,
    State,
    contents,
    dump,
    is_nan,
    same,
)
from wengert.compiler.capture.recorded import Effect, Recording, Ref, Swept, behind
from wengert.compiler.emission.spelling import SHORT, Names, Speller, conditions
from wengert.compiler.passes.flatten import LARGEST
from wengert.compiler.passes.inplace import ALONE, CHANGED, LATE
from wengert.ops.data_type import get_default_dtype
from wengert.tape.grad_mode import is_inference_mode_enabled, recording
from wengert.tape.hooks import has_hooks
from wengert.tape.observers import observing
from wengert.tape.tensor import Tensor, untracked, with_node

if TYPE_CHECKING:
    from wengert.compiler.program import Value

__all__ = ["MISS", "Glue"]

#: Returned by a replay if a guard fails.
MISS: Any = type("Miss", (), {"__repr__": lambda self: "MISS"})()

_PLAIN_DEVICES = ("numpy", "array_api_strict", "dask")


class Glue:
    """Writes the function that checks a call with a signature and runs the program.

    ``attach(answer, kept, tensors, leaves)`` puts results on the tape. A program that writes in
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
        self._found, self._signature = found, signature
        self._writes_over = alone
        read = found.read()
        #: The Tensors whose gradients the function frees at its begin, and never reads.
        self._gone = [i for i in sorted(found.gone) if Ref("grad", i) not in read]
        self._one_device = found.backend is not None and found.backend.name in _PLAIN_DEVICES
        named = (behind, contents, dump, kind_of, has_hooks, same, selection, starmap, untracked)
        self.names: dict[str, Any] = {
            **{x.__name__: x for x in (*named, with_node)},
            "__name__": "wengert.compiled.glue",
            "MISS": MISS,
            "Tensor": Tensor,
            "apply": operator.call,
            "attach": attach,
            "default_dtype": get_default_dtype,
            ALONE: [None],
            "late": LATE,
            "another": pool.another,
            "give": pool.give,
            "inference": is_inference_mode_enabled,
            "item": dict.get,
            "made": np.zeros,
            "math": math,
            "new": tuple.__new__,
            "observing": observing,
            "put": object.__setattr__,
            "recording": recording,
            "take": pool.take,
            "unflatten": found.answer.unflatten,
            "swept": Swept,
        }
        self._checks: list[str] = []
        self._places: dict[tuple[int, int, str], str] = {}
        self._bound: dict[int, str] = {}

    def function(
        self, state: State, leaves: Sequence[Any], *, runs: bool = True
    ) -> tuple[str, Callable[..., Any]]:
        """The source, and the function bound to the objects of a state and a call's ``leaves``.

        Without ``runs`` it only checks the guards.
        """
        self._state = state
        kinds = self._signature["an argument"]
        args = [f"a{i}" for i in range(len(kinds))]
        given = [*args, *[f"c{i}" for i in self._found.containers]]
        self._tensors = [f"t{i}" for i in range(len(state.tensors))]
        for name, at in zip(self._tensors, state.tensors, strict=True):
            self.names[name] = at.tensor
        self._tuples()
        self._moved()
        self._arguments(args, leaves)
        self._reach()
        self._modes()
        self._of_state()
        inputs = [self._input(ref) for ref in self._found.refs]
        if self._writes_over:  # with two references, as an array of the state has
            self._checks.append(f"{CHANGED} = {ALONE}[0] = made(1)")
            inputs.append(CHANGED)
        known = [f"last{i}" for i in range(len(state.tensors))]
        lines = ["def call(*args):", f"    if len(args) != {len(given)}:", "        return MISS"]
        lines += [f"    {''.join(f'{arg}, ' for arg in given)}= args"] if given else []
        lines += ["    try:"]
        lines += [f"        {line}" for line in self._checks or ["pass"]]
        missed = "ArithmeticError, AttributeError, LookupError, TypeError, ValueError"
        lines += [f"    except ({missed}):", "        return MISS"]
        known = [name for name in known if name in self.names]
        lines += self._run(inputs) if runs else ["    return None"]
        if known:
            lines.insert(1, f"    global {', '.join(known)}")
        source = "\n".join(lines) + "\n"
        exec(_code(source), self.names)  # noqa: S102
        return source, self.names.pop("call")  # which need not hold itself

    def _run(self, inputs: list[str]) -> list[str]:
        """The lines that run the program, store its changes, and return the answer."""
        outputs = [f"o{i}" for i in range(len(self._found.program.outputs))]
        left = f"{', '.join(outputs)}{',' if len(outputs) == 1 else ''} = " if outputs else ""
        lines = ["    try:", "        step = take()"]
        lines += ["    except IndexError:", "        step = another()"]
        lines += ["        if step is None:", "            return MISS"]
        lines += ["    try:"]
        self._calls = False
        before, effects = [*self._before()], [*self._effects()]
        if self._calls:
            before += [f"{CALLS} = []", f"stores = starmap(apply, {CALLS})"]
            effects += ["[*stores]"]  # in which Python runs no handler
        lines += [f"        {line}" for line in before]
        lines += ["        late.clear()"] if self._writes_over else []
        if self._gone:  # freed before memory for new ones is allocated
            lines += [f"        {self._tensors[i]}._grad = None" for i in self._gone]
        lines += [f"        {left}step({', '.join(inputs)})"]
        lines += [f"        {CHANGED} = True"] if self._found.effects else []
        # Stored before the copy is given back: a thread that finds all copies sees all effects.
        lines += [f"        {line}" for line in effects]
        if self._writes_over:
            lines += ["        if late:", "            raise late.pop(0)"]
        lines += [f"        {line}" for line in self._answer()]
        lines += ["    finally:", "        give(step)"]
        return lines

    def _bind(self, x: Any) -> str:
        name = self._bound.get(id(x))
        if name is None:
            name = self._bound[id(x)] = f"x{len(self.names)}"
            self.names[name] = x
        return name

    def _check(self, condition: str) -> None:
        self._checks += [f"if {condition}:", "    return MISS"]

    def _at(self, place: Place) -> str:
        """An expression for what is at a place."""
        key = self._key(place)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = place.reading(self._named)
        return found

    @staticmethod
    def _key(place: Place) -> tuple[int, int, str]:
        return id(place.owner), id(place.key), place.kind

    def _named(self, x: Any) -> str:
        """An expression for an object, or for what is at a place."""
        return self._at(x) if type(x) is Place else self._bind(x)

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
        raws += [(self._bind(x), x, kind_of(x)) for x in state.raws]
        for name, kind, leaf in zip(args, signature["an argument"], leaves, strict=True):
            if isinstance(leaf, Tensor):
                self._check(f"type({name}) is not {self._bind(type(leaf))}")
                if not self._is_new(name, leaf, kind[:5], tensors):
                    continue
                self._checks.append(f"r_{name} = {name}._array")
                self._raw(f"r_{name}", kind)
                self._tensors.append(name)
                tracked = kind[5]
                self._check(f"{name}._node is {'not ' if tracked is None else ''}None")
                if tracked is not None:
                    self._check(f"{name}.is_leaf is not {tracked} or has_hooks({name}._node)")
            elif isinstance(kind, Contents):
                self._check(f"type({name}) is not {self._bind(type(leaf))}")
                self._check(f"contents({name}) != {self._bind(kind)}")
            elif isinstance(kind, Exact):
                self._exactly(name, leaf)
            elif hasattr(leaf, "dtype") and hasattr(leaf, "shape"):
                self._is_new(name, leaf, kind, raws)
                self._raw(name, kind)
            elif isinstance(kind, type):
                self._check(f"type({name}) is not {kind.__name__}")
            else:
                self._check(f"{name} is not {self._bind(leaf)}")

    def _is_new(self, name: str, x: Any, kind: Any, others: list[tuple[str, Any, Any]]) -> bool:
        """Guard an argument's identity with others; return whether it is none of them.

        Only those of the same kind need a guard. A new one is added to the others.
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
        if self._one_device:
            if kind[4] is not None:
                self._check(f"{array}.strides != {self._bind(kind[4])}")
            elif hasattr(kind[0], "flags") and kind[1]:
                self._check(f"not {array}.flags.c_contiguous")
        else:
            self._check(f"kind_of({array}) != {self._bind(kind[:5])}")

    def _reach(self) -> None:
        """Guard the objects and values that the function reaches."""
        state = self._state
        replaced = self._replaced()
        moved = {id(state.tensors[i].tensor): f"t{i}" for i in replaced}
        skipped = {self._place(i).spot for i in replaced}
        for place, x in state.held:
            if place.spot in skipped:  # each call puts another Tensor there
                continue
            if type(x) in PLAIN or isinstance(x, np.generic):
                self._exactly(self._at(place), x)
            elif x is not Missing:
                self._check(f"{self._at(place)} is not {moved.get(id(x)) or self._bind(x)}")
            elif place.kind == "item":
                self._check(f"{self._bind(place.key)} in {self._bind(place.owner)}")
            else:
                self._check(f"{self._bind(place)}.get() is not {self._bind(Missing)}")
        for changed, objects in state.tests:
            self._check(changed.format(*map(self._named, objects)))

    def _exactly(self, at: str, x: Any) -> None:
        """Guard a plain value, by identity first and then bitwise."""
        if x is None or x is True or x is False:
            self._check(f"{at} is not {x}")
        else:
            bound = self._bind(x)
            self._check(f"{at} is not {bound} and not same({at}, {bound})")

    def _replaced(self) -> list[int]:
        """Tensors of the state that each call replaces by others."""
        refs = [effect.ref for effect in self._found.effects]
        parts = [self._state.tensor_at(ref.index) for ref in refs if ref.kind == "part"]
        places = [ref.index for ref in refs if ref.kind == "place"]
        return sorted({*places, *(i for i in parts if i is not None)})

    def _place(self, i: int) -> Place:
        return self._state.place("place", i)

    def _tuples(self) -> None:
        """Read each tuple that calls replace, once, and guard which other tuples it consists of."""
        found: list[tuple[str, Any]] = []
        for k, each in enumerate(self._state.tuples):
            self._checks.append(f"s{k} = {self._at(each.place)}")
            self._places[self._key(each.place)] = f"s{k}"
            for path, x in tuple_parts(each.held):
                if isinstance(x, tuple) and x:
                    found.append((Place(each.place, path, "", "part").reading(self._named), x))
        others = [x for x in self._state.objects if isinstance(x, tuple)]
        for k, (at, x) in enumerate(found):
            for other, y in found[:k]:
                self._check(f"({at} is {other}) is not {x is y}")
            apart = [y for y in others if y is not x]
            if len(apart) < len(others):
                self._check(f"{at} is not {self._bind(x)}")
            elif others:
                self._bind(apart)  # which keeps them and their identities
                self._check(f"id({at}) in {self._bind(frozenset(map(id, apart)))}")

    def _moved(self) -> None:
        """Read the Tensors that each call replaces."""
        kinds, replaced = self._signature["a Tensor of the state"], self._replaced()
        for i in replaced:
            self._checks.append(f"t{i} = {self._at(self._place(i))}")
            tensor = self._state.tensors[i].tensor
            self._check(f"type(t{i}) is not {self._bind(type(tensor))}")
            if id(tensor) in self._state.fixed:
                self._check(f"t{i} is not {self._bind(tensor)}")
        for i in replaced:
            for j, kind in enumerate(kinds):
                if j != i and kind == kinds[i] and not (j in replaced and j < i):
                    self._check(f"t{i} is t{j}")

    def _modes(self) -> None:
        self._check("observing")  # an observer needs eager operations
        tracked, inference = self._signature["the recording mode"]
        self._check(f"recording() is not {tracked} or inference() is not {inference}")
        where = selection()
        default = self._signature["where new arrays are made"][2]
        self._check(f"selection() is not {self._bind(where)}")
        self._check(f"default_dtype() is not {self._bind(default)}")

    def _of_state(self) -> None:
        state, signature = self._state, self._signature
        gradients = signature["which gradients there are"]
        for i, at in enumerate(state.tensors):
            kind = signature["a Tensor of the state"][i]
            self._checks.append(f"r_t{i} = t{i}._array")
            if self._one_device and math.prod(kind[1]) > LARGEST:
                self._raw(f"r_t{i}", kind)  # a reference to the array would forbid to overwrite it
            else:
                self.names[f"last{i}"] = at.tensor._array
                new = f"kind_of(r_t{i}) != {self._bind(kind[:5])}"
                self._check(f"r_t{i} is not last{i} and {new}")
            self._check(f"t{i}._node is not {self._bind(at.tensor._node)}")
        for i, there in enumerate(gradients):
            if there is not None:  # of a Tensor
                tensor = f"t{i}" if i < len(state.tensors) else f"a{i - len(state.tensors)}"
                self._check(f"{tensor}._grad is {'' if there else 'not '}None")
        self._apart(gradients)
        for i, place in enumerate(state.arrays):
            self._checks.append(f"r_s{i} = {self._at(place)}")
            self._raw(f"r_s{i}", signature["a raw array of the state"][i])
        for i, place in enumerate(state.numbers):
            first = state.shares[i]
            if first == i:
                self._checks.append(f"n{i} = {self._at(place)}")
                self._check(f"type(n{i}) is not {type(place.get()).__name__}")
            else:
                shared = self._at(place)
                self._check(f"{shared} is not n{first} and not same({shared}, n{first})")
        for ref, value in self._found.pinned.items():
            name = f"n{ref.index}" if ref.kind == "number" else f"a{ref.index}"
            self._exactly(name, value)
        decided = self._found.decided
        given = [self._input(ref) for ref in decided.refs]
        self._checks += conditions(
            decided, given, lambda text: "return MISS", Speller(None, Names())
        )
        for i, others in self._found.behind.items():
            every = ", ".join(self._tensors)
            self._check(f"behind({self._tensors[i]}, [{every}]) != {self._bind(others)}")

    def _apart(self, gradients: Sequence[Any]) -> None:
        """Guard the kinds and identities of gradients, if the program reads or changes any."""
        used = [ref.kind for ref in self._found.read()]
        used += [x.ref.kind for x in self._found.effects if not x.new and x.output is not None]
        if "grad" not in used:
            return
        count = len(self._state.tensors)
        names = [f"t{i}" if i < count else f"a{i - count}" for i in range(len(gradients))]
        for name, kind in zip(names, self._signature["a gradient"], strict=True):
            if kind is not None and name in self._tensors:
                cls, dtype = map(self._bind, kind)
                self._checks.append(f"g = {name}._grad._array")
                self._check(f"type(g) is not {cls} or g.dtype != {dtype}")
        owners = [
            name
            for name, there in zip(names, gradients, strict=True)
            if there and name in self._tensors  # each Tensor once
        ]
        known = self._bind(frozenset([at.tensor for at in self._state.tensors]))
        self._checks.append(f"gradients = {{{', '.join(f'{x}._grad' for x in owners)}}}")
        self._check(f"len(gradients) != {len(owners)} or not gradients.isdisjoint({known})")
        for name in (*self._tensors[count:], *(f"t{i}" for i in self._replaced())):
            self._check(f"{name} in gradients")
        self._checks.append("g = gradients = None")  # the call may free them

    def _input(self, ref: Ref) -> str:
        if ref.kind == "grad" and ref.index in self._gone:
            return "None"
        if ref.kind == "tensor":
            return f"r_{self._tensors[ref.index]}"
        if ref.kind == "grad":
            tensor = self._tensors[ref.index]
            return f"{tensor}._grad._array"
        return {"array": "r_s", "number": "n", "leaf": "a"}[ref.kind] + str(ref.index)

    def _new(self, output: int | None) -> str:
        """An expression for an output's new Tensor; a variable if it is used more than once."""
        return f"m{output}" if output in self._shared else self._made(output, f"o{output}")

    def _made(self, output: Any, array: str) -> str:
        called = self._found.over.get(
            output
        )  # the operation's name, if it was differentiated inside
        if called is None:
            return f"untracked({array})"
        like = self._bind(self._found.program.outputs[output])
        return f"with_node({array}, swept({like}, {called!r}))"

    def _before(self) -> Iterator[str]:
        """The lines that make Tensors to store. They call, so they come before the program."""
        found = self._found
        made = Counter([what for kind, what in found.leaves if kind == "tensor"])
        tracked = [found.leaves[k][1] for each in found.backward for k in each.results]
        self._shared = {x for x, n in made.items() if n > 1 and x not in tracked}
        self._shared |= {
            x.output for x in found.effects if x.new or x.ref.kind in ("place", "also", "part")
        }
        for output in sorted(self._shared):
            yield f"m{output} = {self._made(output, 'None')}"
        parts = {x.ref.index: x for x in found.effects if x.ref.kind == "part"}
        first = {"tuple": "s", "twin": "p"}
        others = {x.ref.index: x for x in found.effects if x.ref.kind in first}
        self._renewed: list[int] = []
        for k, (_, held, indices) in enumerate(self._state.tuples):
            if k in others or not parts.keys().isdisjoint(indices.values()):
                self._renewed.append(k)
            if k in others:
                yield f"p{k} = {first[others[k].ref.kind]}{others[k].tensor}"
            elif k in self._renewed:
                names = {path: self._moving(parts[i]) for path, i in indices.items()}
                yield f"p{k} = {self._tuple(held, names)}"

    def _moving(self, effect: Effect) -> str:
        """The Tensor that a place gets."""
        return self._new(effect.output) if effect.tensor is None else self._tensors[effect.tensor]

    def _tuple(self, x: Any, names: dict[tuple[int, ...], str], path: tuple[int, ...] = ()) -> str:
        """An expression for a tuple with other Tensors, which have names."""
        if not isinstance(x, tuple):
            return names[path] if path in names else self._bind(x)
        parts = "".join([f"{self._tuple(part, names, (*path, i))}, " for i, part in enumerate(x)])
        return f"({parts})" if type(x) is tuple else f"new({self._bind(type(x))}, ({parts}))"

    def _effects(self) -> Iterator[str]:
        """The lines that store changes. Without calls, no interrupt can come between them."""
        found = self._found
        values = [*self._signature["an argument"], *(fact.what for fact in self._state.facts)]
        for i, x in enumerate(found.program.outputs):
            if is_nan(x):  # `in` looks for it by identity: one that was there, or a new one
                there = any(type(each) is Exact and each.value is x for each in values)
                yield f"o{i} = {self._bind(x) if there else 'math.inf - math.inf'}"
        for output in sorted(self._shared):
            yield f"m{output}._array = o{output}"
        counted = yield from self._counts()
        for effect in found.effects:
            if effect.output in counted and effect.ref.kind == "number":
                continue
            ref, out = effect.ref, f"o{effect.output}"
            if ref.kind in ("part", "tuple", "twin"):  # below
                continue
            if ref.kind == "tensor":
                name = self._tensors[ref.index]
                last = f"last{ref.index}"
                # An array of another kind has to be seen by the guards.
                known = f" = {last}" if effect.alike and last in self.names else ""
                yield f"{name}._array{known} = {out}"
            elif ref.kind == "grad":
                name = self._tensors[ref.index]
                if effect.output is None:
                    yield f"{name}._grad = None"
                elif effect.new:
                    yield f"{name}._grad = {self._new(effect.output)}"
                else:
                    yield f"{name}._grad._array = {out}"
            else:
                out = self._moving(effect) if ref.kind in ("place", "also") else out
                yield self._stored(self._state.place(*ref), out)
        for k in self._renewed:
            yield self._stored(self._state.tuples[k].place, f"p{k}")

    def _stored(self, place: Place, value: str) -> str:
        """The statement that stores a value at a place."""
        self._calls |= place.whole.by_call
        return place.writing(value, self._named)

    def _counts(self) -> Generator[str, None, set[int]]:
        """The lines that count in the user's numbers, as ``n += 1`` does.

        They read the numbers again, because other threads may have counted meanwhile. Threads are
        not switched within these lines. Returns the outputs of the program that they compute.
        """
        found, numbers = self._found.counting, self._state.numbers
        changed = {x.output: x.ref for x in self._found.effects if x.ref.kind == "number"}
        own: dict[Value, str] = {}  # as one expression
        reads: dict[Value, set[Ref]] = {}
        several: dict[Value, str] = {}
        speller, lines = Speller(None, Names()), []
        for value, ref in zip(found.program.inputs, found.refs, strict=True):
            live = ref.kind == "number" and numbers[ref.index].of_user
            own[value] = self._at(numbers[ref.index]) if live else self._input(ref)
            reads[value] = {ref} if live else set()
            several[value] = f"_{len(several)}"
            lines.append(f"{several[value]} = {own[value]}")
        for step in found.program.instructions:
            own[step.result] = f"({speller.call(step, own)})"[:SHORT]
            reads[step.result] = set[Ref]().union(*[reads[value] for value in step.used()])
            text, several[step.result] = speller.call(step, several), f"_{len(several)}"
            lines.append(f"{several[step.result]} = {text}")
        alone, together = [], []
        returned = {what for kind, what in self._found.leaves if kind == "number"}
        for output, value in zip(found.gives, found.program.outputs, strict=True):
            place = numbers[changed[output].index]
            once = found.program.outputs.count(value) == 1  # or all get one object, also the caller
            if output in returned:
                together += [f"o{output} = {several[value]}", self._stored(place, f"o{output}")]
            elif once and reads[value] <= {changed[output]} and len(own[value]) < SHORT:
                alone.append(self._stored(place, own[value]))
            else:
                together.append(self._stored(place, several[value]))
        if together:
            yield from (*lines, *together)
        yield from alone
        return set(found.gives)

    def _answer(self) -> Iterator[str]:
        found = self._found
        parts = []
        for kind, what in found.leaves:
            if kind == "tensor":
                parts.append(self._new(what))
            elif kind == "same":
                name = self._tensors[what.index]
                parts.append(name if what.kind == "tensor" else f"{name}._grad")
            elif kind == "given":
                parts.append(self._input(what))
            elif kind == "held":
                parts.append(f"{'p' if what in self._renewed else 's'}{what}")
            elif kind == "argument":
                parts.append(f"c{what}")
            elif kind == "object":
                parts.append(self._bind(self._state.objects[what]))
            else:
                parts.append(self._bind(what) if kind == "plain" else f"o{what}")
        if found.backward:
            kept = ", ".join(f"o{i}" for each in found.backward for i in each.kept)
            yield f"answer = [{', '.join(parts)}]"
            end = len(self._signature["an argument"]) if found.containers else ""
            yield f"attach(answer, [{kept}], [{', '.join(self._tensors)}], args[:{end}])"
            yield "return unflatten(answer)"
        elif found.answer.cls is None:
            yield f"return {parts[0]}"
        else:
            yield f"return unflatten([{', '.join(parts)}])"


@lru_cache(maxsize=64)
def _code(source: str) -> CodeType:
    """Compiled source. The cache serves the replay after a check, and models of equal structure."""
    return compile(source, "<glue>", "exec")
