"""ndonnx: arrays that are computed at once or, without values, written into an ONNX model."""

from typing import Any

import numpy as np

from wengert.backends.backend import Backend, BackendError

__all__ = ["BACKEND"]


class NdonnxBackend(Backend):
    """ndonnx, which leaves the device to the runtime of the model."""

    name = "ndonnx"
    module = "ndonnx"
    immutable = True
    packages = ("google._upb", "google.protobuf", "ndonnx", "onnx", "onnxruntime", "spox")

    def device_name(self, device: Any) -> str:
        return "cpu"

    def to_device(self, array: Any, device: Any) -> Any:
        return array

    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]:
        try:
            return np.asarray(array.unwrap_numpy())
        except ValueError as error:
            raise BackendError(
                f"an array of a model to be written has no values ({error})"
            ) from error


BACKEND = NdonnxBackend()
