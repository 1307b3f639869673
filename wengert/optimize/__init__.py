"""SciPy's optimisers: ``scipy.optimize`` with derivatives from the tape."""

from wengert.optimize.adapters import least_squares, minimize, root

__all__ = ["least_squares", "minimize", "root"]
__dir__ = lambda: __all__
