"""Collectives of saved programs, which take the processes as an operand.

They run by the functions that the carrier has for them, which are copied into the saved file.
"""

from typing import Final

from wengert.backends import Backend
from wengert.compiler.capture.trace import is_exchange, runs_once
from wengert.compiler.emission.draws import Made, in_host_memory
from wengert.compiler.messages import known
from wengert.compiler.program import Instruction, Program

__all__ = ["exchanging"]

#: The libraries whose arrays NumPy reads where they are.
_READ: Final = ("numpy", "array_api_strict", "torch")


class Processes(Made):
    """The processes of a saved program."""


def exchanging(program: Program, backend: Backend) -> list[Instruction]:
    """The instructions of a program, with the processes as the first operand of collectives."""
    steps: list[Instruction] = []
    processes: Processes | None = None
    for step in program.instructions:
        if not runs_once(step.name):
            steps.append(step)
            continue
        if not is_exchange(step.name):
            raise ValueError(
                f"{step.parameters['call']} can't be written into a file that runs without "
                "wengert: it is an external function, which is not looked into"
            )
        carrier = known(step.name)
        if not carrier.written or backend.name not in _READ:
            raise ValueError(
                f"{step.name} can't be written into a file that runs without wengert: such files "
                f"exchange arrays of {', '.join(_READ)}, by MPI or gloo"
            )
        join, exchange = carrier.written
        processes = processes or Processes(join, carrier.rank, carrier.size)
        given = (processes, step.name, *step.operands)
        steps += in_host_memory(step, backend, exchange, given, "exchange", step.parameters)
    return steps
