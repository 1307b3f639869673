"""Models that onnxruntime runs."""

from importlib import import_module
from pathlib import Path
from typing import Any


class Session:
    """A model as onnxruntime runs it, with the state that it has come to."""

    def __init__(self, path: Path, state: dict[str, Any]) -> None:
        runtime = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 3, 1
        self.session = runtime.InferenceSession(path, options)
        self.state = state

    def __call__(self, **inputs: Any) -> dict[str, Any]:
        names = [x.name for x in self.session.get_outputs()]
        found = dict(zip(names, self.session.run(names, {**self.state, **inputs}), strict=True))
        self.state |= {k[5:]: x for k, x in found.items() if k.startswith("next.")}
        return found
