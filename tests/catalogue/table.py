"""The table: a row for every primitive, one file for each chapter of the functions."""

import pytest

import wengert.ops.set  # noqa: F401 -- a chapter that is otherwise imported when it is first named
from tests.catalogue.beyond import BEYOND
from tests.catalogue.conversion import CONVERSION
from tests.catalogue.derived import derived
from tests.catalogue.distributed import DISTRIBUTED
from tests.catalogue.elementwise import ELEMENTWISE
from tests.catalogue.fft import FFT
from tests.catalogue.indexing import INDEXING
from tests.catalogue.linalg import LINALG
from tests.catalogue.linear_algebra import LINEAR_ALGEBRA
from tests.catalogue.manipulation import MANIPULATION
from tests.catalogue.networks import NETWORKS
from tests.catalogue.special import SPECIAL
from tests.catalogue.special_functions import SPECIAL_FUNCTIONS
from tests.catalogue.statistical import STATISTICAL
from tests.ops.cases import Entry

CHAPTERS = (
    *(ELEMENTWISE, CONVERSION, MANIPULATION, STATISTICAL, LINEAR_ALGEBRA, LINALG, INDEXING, FFT),
    *(BEYOND, SPECIAL, SPECIAL_FUNCTIONS, NETWORKS, DISTRIBUTED),
)
TABLE = {name: entry for chapter in CHAPTERS for name, entry in chapter.items()}
assert len(TABLE) == sum(map(len, CHAPTERS)), "a primitive has two rows"
TABLE |= derived(TABLE)

#: Names and kinds of the rows' calls, and of those that are differentiated.
ROWS = [(name, kind) for name, entry in sorted(TABLE.items()) for kind in entry.kinds()]
TRACKED = [(name, kind) for name, kind in ROWS if TABLE[name].tracked and TABLE[name].order]


def entry_on(name: str, backend: str) -> Entry:
    """A primitive's row; skips the test on a backend that can't run it."""
    entry = TABLE[name]
    if backend in entry.not_on:
        pytest.skip(entry.not_on[backend])
    return entry
