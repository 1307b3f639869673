"""NumPy's ``numpy.linalg``."""

import numpy as np

from wengert.numpy.naming import namespace
from wengert.protocols.linalg import TABLE

globals().update(namespace(np.linalg, TABLE))
