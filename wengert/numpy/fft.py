"""NumPy's ``numpy.fft``."""

import numpy as np

from wengert.numpy.naming import namespace
from wengert.protocols.fft import TABLE

globals().update(namespace(np.fft, TABLE))
