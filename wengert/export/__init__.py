"""Export: compiled functions, training steps among them, as models of other formats."""

from wengert.export.exporting import ExportError, onnx

__all__ = ["ExportError", "onnx"]


def __dir__() -> list[str]:
    return __all__
