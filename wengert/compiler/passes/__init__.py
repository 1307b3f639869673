"""Passes: functions that optimise programs without changing a bit of their results.

Those imported here are for every array library; `liveness`, `buffers` and `flatten` are for
libraries that can write into arrays.
"""

from wengert.compiler.passes.common import common
from wengert.compiler.passes.dead import dead
from wengert.compiler.passes.folding import folding
from wengert.compiler.passes.signs import signs
from wengert.compiler.passes.simplify import simplify
from wengert.compiler.program import Program

__all__ = ["common", "dead", "folding", "optimise", "simplify"]

#: Rounds of the passes at most. A pass handles whole chains in one walk, so that further rounds
#: serve only where one pass's result enables another pass.
ROUNDS = 4


def optimise(program: Program) -> Program:
    """Run the library-independent passes until nothing changes; results are the same bitwise.

    Parameters
    ----------
    program : Program
        As it was recorded.
    """
    merged = None
    for _ in range(ROUNDS):
        folded = folding(simplify(program))
        if folded is merged:  # unchanged: nothing is left to merge
            break
        program = merged = common(folded)
        if merged is folded:  # nothing was merged: nothing is new to the other passes
            break
    used = dead(program, errors=True)
    spared = signs(used)
    return used if spared is used else dead(spared, errors=True)
