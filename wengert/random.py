"""Random numbers."""

import sys

from wengert.ops import random

# The chapter itself, under its public name.
sys.modules[__name__] = random
