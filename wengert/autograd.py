"""Gradients and recording: what PyTorch has under ``torch.autograd``."""

from wengert.tape import graph
from wengert.tape.anomaly import detect_anomaly, set_detect_anomaly
from wengert.tape.autograd import backward, grad
from wengert.tape.checkpoint import CheckpointError, checkpoint, checkpoint_sequential
from wengert.tape.function import Function, once_differentiable
from wengert.tape.recording import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)

__all__ = [
    "CheckpointError",
    "Function",
    "backward",
    "checkpoint",
    "checkpoint_sequential",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "once_differentiable",
    "set_detect_anomaly",
    "set_grad_enabled",
]
