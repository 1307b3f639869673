"""Export: compiled functions, training steps among them, as models of other formats."""

from wengert.export.errors import ExportError
from wengert.export.exporting import onnx

__all__ = ["ExportError", "onnx"]


def __dir__() -> list[str]:
    return __all__
