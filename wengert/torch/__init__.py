"""PyTorch's names, keywords and meanings over Wengert's functions.

Importing this room gives PyTorch's meanings to the methods of all Tensors in the process:
``x.std()`` divides by N - 1, ``x.max(1)`` is a pair, and a write through a view is an error.

>>> import wengert.torch as torch
>>> x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
>>> x.max(dim=1).indices, x.size(0)
(tensor([1, 1]), 2)
"""

from typing import Any

import wengert as wg
from wengert.torch import creation, modules, saving
from wengert.torch.naming import FUNCTIONS, members
from wengert.torch.tensor import install

__version__ = "2.13.0"
#: Choices of PyTorch's own kernels and of how it prints: they do nothing.
_NOTHING = (
    "set_deterministic set_float32_matmul_precision set_num_threads set_printoptions "
    "use_deterministic_algorithms"
)
#: Layouts in memory, which are the library's own affair.
_FORMATS = ("channels_last", "contiguous_format", "preserve_format", "strided")


def _compile(model: Any = None, **options: Any) -> Any:
    """Return a function or module as it is: `wengert.compile` is the compiler."""
    return model if model is not None else lambda function: function


globals().update(
    {
        **creation.LEGACY,
        **creation.DTYPES,
        **FUNCTIONS,
        **dict.fromkeys(_NOTHING.split(), modules.nothing),
        **{name: name for name in _FORMATS},
        **dict(members(wg, "enable_grad inference_mode is_grad_enabled no_grad set_grad_enabled")),
        **dict(members(wg, "dtype=DType e inf nan newaxis pi")),
        "Generator": creation.Generator,
        "Size": creation.Size,
        "autocast": modules.autocast,
        "compile": _compile,
        "device": creation.device,
        "load": saving.load,
        "save": saving.save,
        "set_default_tensor_type": modules.set_default_tensor_type,
    }
)
install()
