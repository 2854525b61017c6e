"""What functions remember: made once for all threads that ask at the same time, counted, and given up when asked."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np
import pytest

import rote
from rote.caches import memoized, memoized_arrays

THREADS = 8


def together(ask):
    """What each of several threads that start together is told, or the error that it has."""
    start = threading.Barrier(THREADS)

    def one(number):
        start.wait()
        try:
            return ask(number)
        except ValueError as error:
            return error

    with ThreadPoolExecutor(THREADS) as pool:
        return [*pool.map(one, range(THREADS))]


def test_one_thread_makes_and_the_others_wait():
    """Law: of any number of askers at once each has the same value, and it is made a single time per key."""
    made = []

    @memoized(8, once=True)
    def slow(key):
        made.append(key)
        threading.Event().wait(0.02)
        return object()

    found = together(lambda number: slow(number % 2))
    assert sorted(made) == [0, 1]
    assert len({id(value) for value in found}) == 2
    assert slow(0) is found[0]


def test_a_late_asker_makes_nothing():
    """Law: a thread that missed a value in the cache, and asks after it was made and left, gets that value.

    What is behind the cache is asked, as such a thread does. After the cache is cleared, the value is made anew.
    """
    made = []

    @memoized(8, once=True)
    def counted(key):
        made.append(key)
        return object()

    value = counted(0)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(counted.__wrapped__, 0).result() is value
        assert made == [0]
        counted.cache_clear()
        assert pool.submit(counted.__wrapped__, 0).result() is not value
        assert counted(0) is not value
    assert made == [0, 0]


def test_errors_are_not_kept():
    """Law: an error is raised for every asker, each its own, and the next one may have better luck."""
    broken = True

    @memoized(8, once=True)
    def fragile(key):
        if broken:
            raise ValueError(key)
        return key

    errors = together(lambda number: fragile("key"))
    assert all(isinstance(error, ValueError) for error in errors) and len({*map(id, errors)}) == THREADS
    broken = False
    assert fragile("key") == "key"


def test_the_last_used_are_kept():
    """Law: as many values are kept as it says, those that were used last; names of arguments are keys as well."""
    made = []

    @memoized(2, once=True)
    def pair(a, b=0):
        made.append((a, b))
        return a, b

    for a in (1, 2, 1, 3, 1, 4, 5, 2, 5):
        assert pair(a) == (a, 0)
    assert made == [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (2, 0)]
    assert [pair(2, b=5), pair(2, b=5)] == [(2, 5)] * 2 and made[6:] == [(2, 5)]
    with pytest.raises(TypeError):
        pair([])


# --- the register -----------------------------------------------------------------------------------------------------


def test_a_hit_costs_what_it_costs_in_functools():
    """Law: what is called is the cache of functools itself, also where one thread makes the value for all."""
    for once in (False, True):
        assert type(memoized(8, once=once)(lambda key: key)) is type(lru_cache(int))


def test_hits_and_misses_are_counted():
    """Law: the register says of each function what its cache says; functions made anew are counted together."""

    def maker():
        @memoized(3)
        def remembering(key):
            return key

        return remembering

    name = f"{__name__}.{maker.__qualname__}.<locals>.remembering"
    assert name not in rote.cache_info()
    first, second = maker(), maker()
    assert [first(1), first(1), first(2), second(1)] == [1, 1, 2, 1]
    assert rote.cache_info()[name] == (1, 3, 3, 6)
    del first
    assert rote.cache_info()[name] == (0, 1, 1, 3)


def test_all_rooms_are_in_the_register_and_cleared():
    """Law: after clearing nothing is kept by any of them, and what is asked for again is equal, and made anew."""
    text = "block[(0),()] -> block[(),(0)]"
    plan = rote.compile(text, shape=(6, 4), grid=2)
    assert rote.compile(text, shape=(6, 4), grid=2) is plan
    info = rote.cache_info()
    rooms = {name.rpartition(".")[0] for name in info}
    for module in (
        "layout.layout",
        "compiler.compile",
        "grammar.parser",
        "host",
    ):
        assert f"rote.{module}" in rooms
    assert info["rote.layout.layout.parse"].size and info["rote.compiler.compile._compile"].size
    assert list(info) == sorted(info) and all(0 <= each.size <= each.most for each in info.values())
    rote.clear_caches()
    assert {(each.hits, each.misses, each.size) for each in rote.cache_info().values()} == {(0, 0, 0)}
    again = rote.compile(text, shape=(6, 4), grid=2)
    assert again == plan and again is not plan


def test_of_large_arrays_only_the_last_are_kept():
    """Law: a small value is made once, however many others are asked for; a large one, while it is one of the last."""
    made = []

    @memoized_arrays(16, few=1)
    def zeros(nbytes):
        made.append(nbytes)
        return np.zeros(nbytes, np.int8)

    small, large = [1, 2, 3], [1 << 20, 1 << 21]
    for nbytes in (*small, large[0], large[0], *small, *large, large[0]):
        assert zeros(nbytes).nbytes == nbytes
    assert made == [*small, large[0], large[1], large[0]]
