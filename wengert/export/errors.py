"""The error of an export."""

__all__ = ["ExportError"]


class ExportError(RuntimeError):
    """A function can't be written in the format, or the model differs from the function.

    Examples
    --------
    >>> import onnxruntime
    >>> wg.export.onnx(wg.linalg.svdvals, wg.ones((2, 2)), "model.onnx")
    Traceback (most recent call last):
        ...
    ExportError: <x>, line 1: linalg.svdvals has no form in ONNX here (ndonnx ...
    """
