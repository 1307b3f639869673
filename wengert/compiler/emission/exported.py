"""Programs for export: a recording's program reduced to what a file needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wengert.compiler.capture.recorded import Arithmetic, Recording, Ref
from wengert.compiler.passes.dead import dead
from wengert.compiler.program import Program
from wengert.compiler.state import State
from wengert.func.trees import TreeDef

__all__ = ["ExportedProgram", "exported_program", "present"]


@dataclass
class ExportedProgram:
    """A program for export."""

    #: Its outputs are the answer's leaves, followed by the next values of the state.
    program: Program
    #: Positions of the inputs that a call gives.
    arguments: list[int]
    #: The source of each input.
    refs: tuple[Ref, ...]
    #: Positions of the inputs whose next values are the last outputs.
    updates: list[int]
    #: Inputs that must have one value.
    pinned: dict[int, Any]
    #: Conditions on numbers, and the positions of these inputs.
    decided: Arithmetic
    deciding: list[int]
    answer: TreeDef


def exported_program(
    name: str,
    program: Program,
    recording: Recording,
    state: State,
    names: Sequence[str],
    *,
    unread: bool = False,
) -> ExportedProgram:
    """Return a program for export, without the inputs and outputs that nothing needs.

    The arguments' leaves have these ``names``. With ``unread``, state that the program sets without
    reading it is exported, too, but for gradients.

    Raises
    ------
    ValueError
        If the program depends on a changing number's value, changes its arguments, or returns an
        object of the state.
    """
    refs = recording.refs
    at = {ref: i for i, ref in enumerate(refs)}
    count = len(state.tensors)
    tensors = {id(each.tensor): i for i, each in enumerate(state.tensors)}
    given = {r for r in refs if r.kind == "leaf" or (r.kind == "tensor" and r.index >= count)}
    becomes: dict[Ref, Any] = {}
    for effect in recording.effects:
        ref, output = effect.ref, effect.output
        if ref.kind == "spot":
            spot, held = state.spots[ref.index]
            if isinstance(held, tuple):
                raise ValueError(
                    f"{name} can't be saved: it replaces the tuple {spot.name}; keep its Tensors "
                    "in a list"
                )
            ref, output = Ref("tensor", tensors[id(held)]), effect.parts[0].output
        if ref in given:
            raise ValueError(
                f"{name} can't be saved: it changes its argument {program.inputs[at[ref]].name}"
            )
        if ref in at and output is not None:
            becomes[ref] = program.outputs[output]
    for ref in recording.pinned:
        if ref in becomes:
            raise ValueError(
                f"{name} can't be saved: its program is for one value of "
                f"{program.inputs[at[ref]].name}, which each call changes"
            )
    changed = {
        effect.ref: program.outputs[effect.output]
        for effect in recording.effects
        if effect.output is not None and (effect.ref.kind == "tensor" or effect.inside)
    }
    if any(kind == "object" for kind, _ in recording.leaves):
        raise ValueError(f"{name} can't be saved: it returns an object of its state; return a copy")
    answer = [_output(leaf, program, at, changed) for leaf in recording.leaves]
    # State that only its own next value reads need not be kept: mostly gradients.
    wanted, updates = answer, list(becomes)
    decided = recording.decided
    deciding = {program.inputs[at[ref]] for ref in decided.refs}
    while True:
        outputs = (*wanted, *[becomes[ref] for ref in updates])
        cut = dead(replace(program, outputs=outputs), errors=True)
        read = deciding | cut.read()
        if unread:
            read |= {program.inputs[at[ref]] for ref in becomes if ref.kind != "grad"}
        needed = [ref for ref in updates if program.inputs[at[ref]] in read]
        if needed == updates:
            break
        updates = needed
    kept = [i for i, x in enumerate(program.inputs) if x in read or refs[i] in given]
    place = {i: k for k, i in enumerate(kept)}
    inputs = tuple([program.inputs[i] for i in kept])
    order = {text: i for i, text in enumerate(names)}
    arguments = [place[at[ref]] for ref in given]
    arguments.sort(key=lambda k: order.get(inputs[k].name, len(order)))
    return ExportedProgram(
        replace(cut, inputs=inputs),
        arguments,
        tuple([refs[i] for i in kept]),
        [place[at[ref]] for ref in updates],
        {place[at[ref]]: x for ref, x in recording.pinned.items() if at[ref] in place},
        decided,
        [place[at[ref]] for ref in decided.refs],
        recording.answer,
    )


def _output(
    leaf: tuple[str, Any], program: Program, at: Mapping[Ref, int], changed: Mapping[Ref, Any]
) -> Any:
    """A leaf of the answer as an output: a value or a constant."""
    kind, what = leaf
    if kind == "same":
        return changed[what] if what in changed else program.inputs[at[what]]
    if kind == "given":
        return program.inputs[at[what]]
    return what if kind == "plain" else program.outputs[what]


def present(ref: Ref, state: State) -> Any:
    """The present value of an input."""
    if ref.kind in ("array", "number"):
        return state.place(*ref).get()
    tensor = state.tensors[ref.index].tensor if ref.index < len(state.tensors) else None
    if ref.kind == "grad" and tensor is not None:
        tensor = tensor._grad
    if tensor is None:
        raise ValueError("the program adds to a gradient that is not there now: call it again")
    return tensor._array
