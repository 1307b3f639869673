"""Binding: what runs a program on one state.

It compares what the program assumes, reads the inputs, runs the program, and stores what has
changed. Objects at places are read and stored by generated expressions, and compared by C loops: in
Python, a step of each would take as long as a small network.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import is_
from types import CodeType
from typing import Any, Final

import numpy as np

from wengert.backends import backend_of, selection
from wengert.compiler.calls import kind_of, kind_of_gradient, kind_of_leaf
from wengert.compiler.capture.recorded import Effect, Recording, Ref, Swept
from wengert.compiler.emission.spelling import Names, Speller, conditions
from wengert.compiler.owners import class_of_user
from wengert.compiler.passes.flatten import LARGEST
from wengert.compiler.passes.inplace import LATE
from wengert.compiler.state import (
    MEASURES,
    Exact,
    Identity,
    Missing,
    Place,
    State,
    is_array,
    is_plain,
    leads_on,
    same,
)
from wengert.ops.data_type import get_default_dtype
from wengert.tape.grad_mode import is_inference_mode_enabled, recording
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


_MISSED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
#: The array that tells programs which write in place what an unshared array is.
ALONE_ARRAY: Final = [None]


class Source:
    """Writes functions that read and store at places."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {
            "math": math,
            "new": tuple.__new__,
            "swept": Swept,
            "untracked": untracked,
            "with_node": with_node,
        }
        self._known: dict[int, str] = {}

    def bind(self, x: Any) -> str:
        """The name of an object."""
        name = self._known.get(id(x))
        if name is None:
            name = self._known[id(x)] = f"x{len(self.names)}"
            self.names[name] = x
        return name

    def at(self, place: Place) -> str:
        """The expression for what is at a place."""
        return place.text(self.bind)

    def reader(self, places: Sequence[Place]) -> Any:
        """The function that lists what is at places; nothing may be there if nothing is now."""
        texts = [self.at(at) if at.get() is not Missing else self._absent(at) for at in places]
        return self.function("read", "", [f"return [{', '.join(texts)}]"])

    def _absent(self, place: Place) -> str:
        holder, key, nothing = self.bind(place.holder), self.bind(place.key), self.bind(Missing)
        if place.kind == "attr":
            return f"getattr({holder}, {key}, {nothing})"
        return f"{holder}.get({key}, {nothing})"

    def function(self, name: str, parameters: str, lines: Sequence[str]) -> Any:
        """A function of some lines."""
        text = "\n    ".join([f"def {name}({parameters}):", *lines])
        exec(_code(text + "\n"), self.names)  # noqa: S102
        return self.names.pop(name)  # which need not hold itself


class Binding:
    """A program, bound to the objects of a state and of a call's ``leaves``.

    ``attach(answer, kept, tensors)`` puts results on the tape. A program that writes in
    place has the input `ALONE`.
    """

    def __init__(
        self,
        found: Recording,
        signature: dict[str, Any],
        pool: Any,
        attach: Callable[..., None],
        state: State,
        static: Sequence[bool],
        leaves: Sequence[Any],
        *,
        alone: bool = False,
    ) -> None:
        self._found, self._pool, self._attach, self._alone = found, pool, attach, alone
        self._state, self._static = state, static
        self._source, self._tensors = Source(), [at.tensor for at in state.tensors]
        self._of_places()
        self._of_values(signature, leaves)
        self._store = self._source.function("store", "o, t, a, g, last", [*self._stores()])
        *_, self._held, self._facts = self._look(leaves)

    def __call__(self, *args: Any) -> Any:
        """Run the program, or return `MISS` or `Failed`."""
        if len(args) != len(self._static):
            return MISS
        try:
            found = self._found_in(args)
        except _MISSED:
            return MISS
        if found is None:
            return MISS
        tensors, given = found
        if self._alone:  # with as many references as an array of the state
            given.append(np.zeros(1))
            ALONE_ARRAY[0] = given[-1]
        try:
            step = self._pool.take()
        except IndexError:
            step = self._pool.another()
        try:
            if self._alone:
                LATE.clear()
            for i, empty in self._gone:  # another thread's calls see that there is one
                tensors[i]._grad = empty
            try:
                out = step(*given)
            except BaseException as error:
                for i, _ in self._gone:
                    tensors[i]._grad = None
                if isinstance(error, Exception):
                    return Failed(error)
                raise
            answer = self._store(out, tensors, args, given, self._last)
            if self._alone and LATE:
                raise LATE.pop(0)
            if self._kept is not None:
                self._attach(answer, out[self._kept :], tensors)
            structure = self._found.answer
            return answer[0] if structure.cls is None else structure.unflatten(answer)
        finally:
            self._pool.give(step)

    # -- comparing and reading -------------------------------------------------------------------

    def _of_places(self) -> None:
        """Prepare reading what is at places."""
        state, reader = self._state, self._source.reader
        moved = [x.ref.index for x in self._found.effects if x.ref.kind == "spot"]
        spots = {state.spots[k][0].spot for k in moved}
        placed = [(i, at.place) for i, at in enumerate(state.tensors) if at.place is not None]
        first = {i: at for i, at in placed if at.root.spot in spots}
        self._replaced, self._read_replaced = [*first], reader([*first.values()])
        self._read_again = reader([at for spot in state.spots for at in _places_in(*spot)])
        moved_tuples = [state.spots[k] for k in moved if isinstance(state.spots[k][1], tuple)]
        self._read_tuples = reader([at for at, _ in moved_tuples])
        self._read_arrays, self._read_twins = reader(state.arrays), reader(state.twins)
        self._read_numbers = reader(state.numbers)
        inputs = {place.spot for place in (*state.arrays, *state.twins)}
        held = [at for at, _ in state.held if at.spot not in inputs and at.kind != "part"]
        held += [at for at, x in state.spots if isinstance(x, tuple) and at.spot not in spots]
        for tensor in [x for i, x in enumerate(self._tensors) if i not in first]:
            held.append(Place(tensor, "_node", "", "attr"))
            if (node := tensor._node) is not None:
                held.append(Place(node, "__class__", "", "attr"))
                held += [] if tensor.is_leaf else [Place(node, "watch", "", "attr")]
        self._read_held = reader(held)
        self._containers = [(x, MEASURES[type(size)]) for x, size, _ in state.sizes]
        self._sizes = [size for _, size, _ in state.sizes]

    def _of_values(self, signature: dict[str, Any], leaves: Sequence[Any]) -> None:
        """Prepare reading and comparing arguments, arrays and gradients."""
        state, found, count = self._state, self._found, len(self._tensors)
        kinds, known = signature["an argument"], {id(x) for x in self._tensors}
        self._new: list[int] = []  # arguments that are Tensors, and none of the state's
        self._fixed: list[int] = []  # arguments that are compared by identity
        for j, (leaf, kind) in enumerate(zip(leaves, kinds, strict=True)):
            if isinstance(leaf, Tensor) and id(leaf) not in known:
                known.add(id(leaf))
                self._new.append(j)
            of_user = leads_on(leaf) and class_of_user(type(leaf))  # and leads to what is there
            if kind == "an object" or (isinstance(leaf, Tensor) and (of_user or kind[-1])):
                self._fixed.append(j)
        self._objects = [j for j, x in enumerate(leaves) if isinstance(x, Tensor) or is_array(x)]
        of_tensors = [kind[:5] for kind in signature["a Tensor of the state"]]
        self._kinds = [*of_tensors, *signature["a raw array of the state"]]
        # A reference to a large array would forbid to overwrite it.
        arrays = [*[x._array for x in self._tensors], *[place.get() for place in state.arrays]]
        small = [math.prod(kind[1]) <= LARGEST for kind in self._kinds]
        self._last = [x if few else None for x, few in zip(arrays, small, strict=True)]
        self._read = sorted({x.index for x in found.read() if x.kind == "grad"})
        self._grads = sorted({*self._read, *[x.ref.index for x in found.effects if x.inside]})
        # Gradients that the function deletes at its begin are freed before new ones are made.
        gone = {x.ref.index for x in found.effects if x.ref.kind == "grad"} & found.gone
        gone = {i for i in gone if i < count}.difference(self._grads)
        self._gone = [(i, _empty(self._tensors[i])) for i in gone]
        begins, end = dict[str, int](), 0
        for kind, size in (
            ("tensor", count),
            ("array", len(state.arrays)),
            ("number", len(state.numbers)),
            ("leaf", len(leaves)),
            ("new", len(self._new)),
            ("grad", len(self._read)),
        ):
            begins[kind], end = end, end + size

        def position(ref: Ref) -> int:
            kind, i = ref
            if kind == "grad":
                return begins[kind] + self._read.index(i) if i in self._read else end
            if kind == "tensor" and i >= count:
                return begins["new"] + i - count
            return begins[kind] + (state.shares[i] if kind == "number" else i)

        self._order = [*map(position, found.refs)]
        self._pinned = [*map(position, found.pinned)]
        given = [f"v[{position(ref)}]" for ref in found.decided.refs]
        lines = conditions(
            found.decided, given, lambda text: "return False", Speller(None, Names())
        )
        self._decided = self._source.function("decided", "v", [*lines, "return True"])

    def _found_in(self, args: Sequence[Any]) -> tuple[list[Tensor], list[Any]] | None:
        """The Tensors and the program's inputs of a call, if it is for the call."""
        if [measure(x) for x, measure in self._containers] != self._sizes:
            return None  # first, since reading makes items of some dicts
        tensors, values, held, facts = self._look(args)
        if facts != self._facts or not _alike(held, self._held):
            return None
        for x, last, kind in zip(values, self._last, self._kinds, strict=False):
            if x is not last and kind_of(x) != kind:
                return None
        return tensors, [values[i] for i in self._order]

    def _look(self, args: Sequence[Any]) -> tuple[list[Tensor], list[Any], list[Any], Any]:
        """A call's Tensors, what programs read, and what is compared, by identity or equality."""
        count, state = len(self._tensors), self._state
        tensors = [*self._tensors, *[args[j] for j in self._new]]
        for i, x in zip(self._replaced, self._read_replaced(), strict=True):
            tensors[i] = x
        arrays, numbers = self._read_arrays(), self._read_numbers()
        values = [*[x._array for x in tensors[:count]], *arrays, *numbers, *args]
        values += [x._array for x in tensors[count:]]
        values += [tensors[i]._grad._array for i in self._read]
        values.append(None)  # for gradients that are not read
        held = [*self._read_held(), *[args[j] for j in self._fixed]]
        held += [values[i] for i in self._pinned]
        objects = [*tensors, *self._read_again(), *state.fixed, *arrays, *self._read_twins()]
        objects += [*[args[j] for j in self._objects], *[tensors[i]._grad for i in self._grads]]
        seen: dict[int, int] = {}
        facts = (
            bool(observing),
            recording(),
            is_inference_mode_enabled(),
            selection(),
            get_default_dtype(),
            [*map(seen.setdefault, map(id, objects), range(len(objects)))],  # which are one
            [*map(type, tensors)],
            [x._grad is None for x in tensors],
            [kind_of_gradient(tensors[i]) for i in self._grads],
            [kind_of_leaf(x, fixed) for x, fixed in zip(args, self._static, strict=True)],
            [kind_of_leaf(tensors[i], False) for i in self._replaced],
            [*map(_shape, self._read_tuples())],
            [*map(type, numbers)],
            all(map(same, numbers, [numbers[i] for i in state.shares])),
            self._decided(values),
        )
        return tensors, values, held, facts

    # -- storing ---------------------------------------------------------------------------------

    def _stores(self) -> Iterator[str]:
        """The lines that store outputs ``o`` and list the leaves of the answer.

        Of a call's Tensors ``t``, arguments ``a``, inputs ``g``, and the ``last`` arrays.
        """
        found = self._found
        made = [what for kind, what in found.leaves if kind == "tensor"]
        for effect in found.effects:
            made += [x.output for x in (effect, *effect.parts) if x.new]
        for output in dict.fromkeys(made):
            called = found.over.get(output)  # the operation, if it was differentiated inside
            if called is None:
                yield f"m{output} = untracked(o[{output}])"
            else:
                yield f"m{output} = with_node(o[{output}], swept(o[{output}], {called!r}))"
        for effect in found.effects:
            yield from self._effect(effect)
        yield f"return [{', '.join([self._leaf(*leaf) for leaf in found.leaves])}]"
        kept = len({i for x in found.backward for i in x.kept})
        self._kept = len(found.program.outputs) - kept if found.backward else None

    def _effect(self, effect: Effect) -> Iterator[str]:
        """The lines that store a change."""
        (kind, i), out = effect.ref, f"o[{effect.output}]"
        if kind == "grad":
            if effect.output is None or effect.new:
                out = "None" if effect.output is None else f"m{effect.output}"
                yield f"t[{i}]._grad = {out}"
            else:
                yield f"t[{i}]._grad._array = {out}"
            return
        if kind == "spot":
            place, held = self._state.spots[i]
            yield f"{self._source.at(place)} = {self._spell(held, iter(effect.parts))}"
            return
        count = len(self._tensors)
        if effect.alike and (kind == "array" or i < count):  # others are seen by the comparison
            at = i + count if kind == "array" else i
            if self._last[at] is not None:
                yield f"last[{at}] = {out}"
        if kind == "tensor":
            yield f"t[{i}]._array = {out}"
            return
        place = self._state.place(kind, i)
        while place.kind == "part":  # of a new tuple
            held = self._source.at(place.holder)
            out = f"(*{held}[:{place.key}], {out}, *{held}[{place.key + 1}:])"
            place = place.holder
        yield f"{self._source.at(place)} = {out}"

    def _spell(self, held: Any, parts: Iterator[Effect]) -> str:
        """An expression for what a spot gets: a Tensor, or a tuple with other leaves."""
        if isinstance(held, tuple):
            made = "".join([f"{self._spell(x, parts)}, " for x in held])
            bind = self._source.bind
            return f"({made})" if type(held) is tuple else f"new({bind(type(held))}, ({made}))"
        part = next(parts)
        if part.tensor is not None:
            return f"t[{part.tensor}]"
        if part.output is None:
            return self._source.bind(held)
        return f"m{part.output}" if part.new else f"o[{part.output}]"

    def _leaf(self, kind: str, what: Any) -> str:
        """An expression for a leaf of the answer."""
        if kind == "same":
            return f"t[{what.index}]" + ("" if what.kind == "tensor" else "._grad")
        if kind == "object":
            return self._source.bind(self._state.objects[what])
        if kind == "plain":
            return self._source.bind(what)
        if kind == "given":
            return f"g[{self._found.refs.index(what)}]"
        return {"tensor": f"m{what}", "leaf": f"a[{what}]"}.get(kind, f"o[{what}]")


def _places_in(place: Place, x: Any) -> Iterator[Place]:
    """The places of the Tensors in what is at a place."""
    if isinstance(x, Tensor):
        yield place
    elif isinstance(x, tuple):
        for i, part in enumerate(x):
            yield from _places_in(Place(place, i, "", "part"), part)


def _shape(x: Any) -> Any:
    """What is compared of a tuple whose Tensors are replaced."""
    if isinstance(x, Tensor):
        return Tensor
    if isinstance(x, tuple):
        return type(x), [*map(_shape, x)]
    return Exact(x) if is_plain(x) else Identity(x)


def _empty(tensor: Tensor) -> Tensor:
    """What stands for a gradient that is to be freed."""
    array: Any = tensor._grad._array  # type: ignore[union-attr]
    return untracked(backend_of(array).namespace.zeros((0,), dtype=array.dtype))


def _equal(now: Any, before: Any) -> bool:
    """Whether an object is there still, or an equal value where it is plain."""
    return now is before or (is_plain(before) and same(now, before))


def _alike(now: list[Any], before: list[Any]) -> bool:
    return all(map(is_, now, before)) or all(map(_equal, now, before))


@lru_cache(maxsize=256)
def _code(source: str) -> CodeType:
    """Compiled source. The cache serves the replay after a check, and models of equal structure."""
    return compile(source, "<binding>", "exec")
