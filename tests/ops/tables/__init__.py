"""The table: a row for every primitive, one file for each chapter of the functions."""

import wengert.ops.set  # noqa: F401 -- a chapter that is otherwise imported when it is first named
from tests.ops.tables.beyond import BEYOND
from tests.ops.tables.conversion import CONVERSION
from tests.ops.tables.derived import derived
from tests.ops.tables.distributed import DISTRIBUTED
from tests.ops.tables.elementwise import ELEMENTWISE
from tests.ops.tables.external import EXTERNAL
from tests.ops.tables.fft import FFT
from tests.ops.tables.indexing import INDEXING
from tests.ops.tables.linalg import LINALG
from tests.ops.tables.linear_algebra import LINEAR_ALGEBRA
from tests.ops.tables.manipulation import MANIPULATION
from tests.ops.tables.networks import NETWORKS
from tests.ops.tables.special import SPECIAL
from tests.ops.tables.special_functions import SPECIAL_FUNCTIONS
from tests.ops.tables.statistical import STATISTICAL

CHAPTERS = (
    ELEMENTWISE,
    CONVERSION,
    MANIPULATION,
    STATISTICAL,
    LINEAR_ALGEBRA,
    LINALG,
    INDEXING,
    FFT,
    BEYOND,
    SPECIAL,
    SPECIAL_FUNCTIONS,
    NETWORKS,
    DISTRIBUTED,
    EXTERNAL,
)
TABLE = {name: entry for chapter in CHAPTERS for name, entry in chapter.items()}
assert len(TABLE) == sum(map(len, CHAPTERS)), "a primitive has two rows"
TABLE |= derived(TABLE)
