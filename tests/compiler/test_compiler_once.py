"""What threads ask for at the same time is made once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rote.compiler.once import once

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

    @once(8)
    def slow(key):
        made.append(key)
        threading.Event().wait(0.02)
        return object()

    found = together(lambda number: slow(number % 2))
    assert sorted(made) == [0, 1]
    assert len({id(value) for value in found}) == 2
    assert slow(0) is found[0]


def test_errors_are_not_kept():
    """Law: an error is raised for every asker, each its own, and the next one may have better luck."""
    broken = True

    @once(8)
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

    @once(2)
    def pair(a, b=0):
        made.append((a, b))
        return a, b

    for a in (1, 2, 1, 3, 1, 2):
        assert pair(a) == (a, 0)
    assert made == [(1, 0), (2, 0), (3, 0), (2, 0)]
    assert [pair(2, b=5), pair(2, b=5)] == [(2, 5)] * 2 and made[4:] == [(2, 5)]
    with pytest.raises(TypeError):
        pair([])
