"""Batches that a thread makes ahead."""

import gc
import threading
import traceback

import pytest

import wengert as wg
from tests.data.test_datasets import ROWS
from wengert import data

# -- the thread ----------------------------------------------------------------------------------


def threads():
    return [each for each in threading.enumerate() if each.name == "DataLoader"]


class Faulty:
    def __len__(self):
        return 10

    def __getitem__(self, index):
        if index == 5:
            raise KeyError("five")
        return index


@pytest.mark.parametrize("prefetch", [0, 1, 4])
def test_an_error_is_raised_in_the_loop_at_its_place(prefetch):
    seen = []
    with pytest.raises(KeyError) as caught:  # noqa: PT012
        for batch in data.DataLoader(Faulty(), 2, prefetch=prefetch):
            seen += batch.tolist()
    assert seen == [0, 1, 2, 3]
    assert '    raise KeyError("five")' in "".join(traceback.format_exception(caught.value))
    assert not threads()


def test_the_thread_ends_with_the_loop():
    loader = data.DataLoader(range(100), prefetch=3)
    for _ in loader:
        assert len(threads()) == 1
        break
    assert not threads()
    with pytest.raises(ZeroDivisionError):  # noqa: PT012
        for _ in loader:
            raise ZeroDivisionError
    gc.collect()
    assert not threads()
    assert len([*loader]) == 100
    assert not threads()


def test_the_thread_ends_where_an_interrupt_comes_as_it_starts(monkeypatch):
    start, started = threading.Thread.start, []

    def interrupted(thread):
        start(thread)
        started.append(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(iter(data.DataLoader(ROWS, prefetch=2)))
    started[0].join(5)
    assert not started[0].is_alive()


def test_the_thread_is_ahead_by_so_many_batches_and_no_more():
    made, reached = [], threading.Event()

    class Counted:
        def __len__(self):
            return 10

        def __getitem__(self, index):
            made.append(index)
            if index == 3:
                reached.set()
            return index

    loop = iter(data.DataLoader(Counted(), prefetch=3))
    next(loop)
    assert reached.wait(30)
    assert made == [0, 1, 2, 3]
    loop.close()
    assert not threads()


def test_the_thread_has_the_modes_of_the_loop():
    pytest.importorskip("array_api_strict")
    x = wg.ones((3, 2), requires_grad=True)
    with wg.no_grad(), wg.use_backend("array_api_strict"):
        loop = iter(data.DataLoader([(i, x[i].requires_grad) for i in range(3)], prefetch=1))
        tracked = iter(data.DataLoader([x, x], collate_fn=lambda found: found[0] * 2, prefetch=1))
        assert next(loop)[0].backend.name == "array_api_strict"
        assert not next(tracked).requires_grad
