"""Inspection of a running program: pictures of its graph, and where derivatives are lost."""

from wengert.inspection.breaks import (
    GraphBreak,
    GraphBreakError,
    GraphBreaks,
    graph_breaks,
)
from wengert.inspection.differentiable import assert_differentiable
from wengert.inspection.drawing import draw, to_dot
from wengert.inspection.listing import Entries, GlobalTape, global_tape

__all__ = [
    "Entries",
    "GlobalTape",
    "GraphBreak",
    "GraphBreakError",
    "GraphBreaks",
    "assert_differentiable",
    "draw",
    "global_tape",
    "graph_breaks",
    "to_dot",
]
__dir__ = lambda: __all__
