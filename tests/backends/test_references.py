"""What is assumed of CPython's counts of references."""

import numpy as np

from wengert.backends.references import counts, has_shared_base, held_elsewhere


def test_a_reference_more_is_seen() -> None:
    parts = (np.empty(3), np.empty(2))
    before = counts(parts)
    assert counts(parts) == before
    held = parts[1]
    assert counts(parts) == [before[0], before[1] + 1]
    del held
    assert counts(parts) == before
    view = parts[0][:1]
    assert counts(parts) == [before[0] + 1, before[1]]
    del view


def test_what_is_held_elsewhere() -> None:
    kept = np.empty(3)
    constants = {i: np.empty(3) for i in range(3)} | {3: kept}
    found = held_elsewhere([x for i, x in constants.items() if i != 1], known=1)
    assert len(found) == 1 and found[0] is kept
    holder = [constants[0]]
    assert len(held_elsewhere(list(constants.values()), known=1)) == 2
    del holder, found
    assert held_elsewhere(list(constants.values()), known=2) == []


def test_the_base_of_a_view() -> None:
    assert not has_shared_base(np.empty(4)[1:])
    whole = np.empty(4)
    view = whole[1:]
    assert has_shared_base(view)
    del whole
    assert not has_shared_base(view)
    other = view[1:]  # which NumPy makes a view of the whole
    assert has_shared_base(view) and has_shared_base(other)
    del other
    assert not has_shared_base(view)
