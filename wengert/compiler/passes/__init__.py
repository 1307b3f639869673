"""Passes: small functions from programs to programs that do the same with less.

Those of this module are for every array library; `liveness`, `buffers` and `flatten` are for the
libraries that can write into arrays.
"""

from wengert.compiler.passes.common import common
from wengert.compiler.passes.dead import dead
from wengert.compiler.passes.folding import folding
from wengert.compiler.passes.signs import signs
from wengert.compiler.passes.simplify import simplify
from wengert.compiler.program import Program

__all__ = ["common", "dead", "folding", "optimise", "simplify"]

#: How often the passes run at most. Each follows chains to their ends in one walk, so that more
#: than one round is for programs in which one pass's work makes another's.
ROUNDS = 4


def optimise(program: Program) -> Program:
    """Run the machine-independent passes until they find nothing more.

    The result gives the same values as the program, to the last bit.

    Parameters
    ----------
    program : Program
        As it was recorded.
    """
    merged = None
    for _ in range(ROUNDS):
        folded = folding(simplify(program))
        if folded is merged:  # in which there is nothing more to merge
            break
        program = merged = common(folded)
        if merged is folded:  # where nothing was merged, there is nothing new for the others
            break
    used = dead(program, errors=True)
    spared = signs(used)
    return used if spared is used else dead(spared, errors=True)
