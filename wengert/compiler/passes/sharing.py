"""Which results a caller can see the memory of."""

from wengert.compiler.passes.forms import fresh
from wengert.compiler.program import Program, Value, values_in

__all__ = ["shown"]


def shown(program: Program) -> set[Value]:
    """The outputs, and what they may be views of.

    These have to be made by their own instructions in each run: were such a value replaced by an
    equal one, which somebody else holds, the caller would get memory that is not its own. So no
    pass replaces them by an input, a constant, or one another.
    """
    found = set(values_in(program.outputs))
    for step in reversed(program.instructions):
        if not fresh(step) and not found.isdisjoint(step.results):
            found.update(step.used())
    return {value for value in found if value.shape is not None}  # numbers have no memory
