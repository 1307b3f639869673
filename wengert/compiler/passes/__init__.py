"""Passes: functions that optimise programs without changing a bit of their results.

Those imported here are for every array library; `liveness`, `buffers` and `flatten` are for
libraries that can write into arrays.
"""

from wengert.compiler.passes.dead import dead
from wengert.compiler.passes.simplify import simplify
from wengert.compiler.program import Program

__all__ = ["dead", "optimise", "simplify"]


def optimise(program: Program) -> Program:
    """Run the library-independent passes; results are the same bitwise."""
    return dead(simplify(program), errors=True)
