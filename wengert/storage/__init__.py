"""Files of the safetensors format: weights, and checkpoints of training."""

from wengert.storage.checkpoints import load, save

__all__ = ["load", "save"]
__dir__ = lambda: __all__
