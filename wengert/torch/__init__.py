"""PyTorch's names, keywords and meanings over Wengert's functions.

Importing this module gives PyTorch's meanings to the methods of all Tensors in the process:
``x.std()`` divides by N - 1, ``x.max(1)`` is a pair, and a write through a view is an error.

>>> import wengert.torch as torch
>>> x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
>>> x.max(dim=1).indices, x.size(0)
(tensor([1, 1]), 2)
"""

import wengert as wg
from wengert.torch import creation, modules
from wengert.torch.naming import FUNCTIONS, members
from wengert.torch.tensor import as_dtype, install

__version__ = "2.13.0"
#: Choices of PyTorch's own kernels and of how it prints: they do nothing.
_NOTHING = "set_deterministic set_float32_matmul_precision set_num_threads set_printoptions "
_NOTHING += "use_deterministic_algorithms"
#: Layouts in memory, which are the library's own affair.
_FORMATS = ("channels_last", "contiguous_format", "preserve_format", "strided")

globals().update(
    {
        **creation.LEGACY,
        **creation.DTYPES,
        **FUNCTIONS,
        **dict.fromkeys(_NOTHING.split(), modules.nothing),
        **{name: name for name in _FORMATS},
        **dict(members(wg, "enable_grad inference_mode is_grad_enabled no_grad set_grad_enabled")),
        **dict(members(wg, "dtype=DType e inf nan newaxis pi")),
        **dict(members(creation, "Generator Size device")),
        **dict(members(modules, "autocast load save")),
        "compile": lambda model=None, **options: (lambda f: f) if model is None else model,
        "set_default_tensor_type": lambda t: wg.set_default_dtype(as_dtype(t)),
    }
)
install()
