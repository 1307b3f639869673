"""Manipulation functions: the standard's chapter of that name, with their derivatives."""

# ruff: noqa: F403 -- each file says in its __all__ what it gives

from wengert.ops.manipulation import arranging, copying, joining
from wengert.ops.manipulation.arranging import *
from wengert.ops.manipulation.copying import *
from wengert.ops.manipulation.joining import *

__all__: list[str] = []
__all__ += arranging.__all__
__all__ += copying.__all__
__all__ += joining.__all__
