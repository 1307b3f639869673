"""The gathered chapters, for type checkers: each chapter's functions with their own signatures."""

from wengert.ops.beyond import *
from wengert.ops.constants import *
from wengert.ops.conversion import *
from wengert.ops.creation import *
from wengert.ops.data_type import *
from wengert.ops.elementwise import *
from wengert.ops.indexing import *
from wengert.ops.inspection import *
from wengert.ops.limits import *
from wengert.ops.linear_algebra import *
from wengert.ops.manipulation import *
from wengert.ops.random import *
from wengert.ops.searching import *
from wengert.ops.set import *
from wengert.ops.sorting import *
from wengert.ops.special.everyday import *
from wengert.ops.statistical import *
from wengert.ops.utility import *
