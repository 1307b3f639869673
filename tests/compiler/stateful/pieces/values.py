"""Values that several pieces begin with."""

__all__ = ["ARRAYS", "FUNCTIONS", "MODULES", "NUMBERS", "TENSORS"]

NUMBERS = ("0.5", "1.5", "2", "3", "-1.0", "True", "0.0", "-0.0", "1", "1.0")
TENSORS = (
    "wg.randn(4)",
    "wg.randn(3, 4)[0]",
    "wg.full((4,), 0.3)",
    "wg.randn(4, requires_grad=True)",
    "wg.ones(1)",
    "wg.asarray(0.7)",
)
ARRAYS = (
    "np.full(4, 0.5, np.float32)",
    "np.arange(4.0, dtype=np.float32)",
    "np.array([2.0], np.float32)",
)
MODULES = (
    "wg.nn.Linear(4, 4)",
    "wg.nn.Linear(4, 4, bias=False)",
    "wg.nn.Tanh()",
    "wg.nn.Sequential(wg.nn.Linear(4, 4), wg.nn.ReLU())",
    "wg.nn.Sequential(wg.nn.Linear(4, 3), wg.nn.GELU(), wg.nn.Linear(3, 4))",
    "wg.nn.Identity()",
)
FUNCTIONS = (
    "lambda h: h * 2.0",
    "lambda h: wg.sin(h)",
    "wg.tanh",
    "functools.partial(wg.multiply, 0.5)",
    "lambda h: h - wg.mean(h, axis=-1, keepdims=True)",
)
