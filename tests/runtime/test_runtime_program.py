"""Programs as lists: where places lie, and before which calls ranks wait, on random lists without any ranks."""

from __future__ import annotations

import random
from itertools import chain, pairwise

import pytest

from rote.runtime.program import Call, Memory, placed

IN, OUT = Memory.INPUT, Memory.OUTPUT
PIECES = 4
LISTS = 400


def random_list(rng, most=PIECES - 1):
    """Calls that read places which have been written, in place or into new ones; few places are in use at once."""
    calls, held, new = [], [IN], OUT
    for _ in range(rng.randrange(1, 12)):
        source = rng.choice(held)
        others = rng.random() < 0.5 and source != IN
        if source != IN and not others and rng.random() < 0.3:
            target = source
        else:
            new += 1
            target = new if rng.random() < 0.9 else OUT
        calls.append(Call(() if others else (source,), (target,), (source,) if others else ()))
        held = sorted({*held, target} - {OUT})
        while len(held) > most - 1 or (len(held) > 1 and rng.random() < 0.5):
            held.remove(rng.choice(held))
    return calls


def chain_of_moves(rng):
    """The list of a walk: each call reads what the one before has written."""
    calls, source, number = [Call((IN,), (OUT + 1,))], OUT + 1, rng.randrange(1, 8)
    for n in range(number):
        kind = rng.choice(("move", "work", "in place"))
        target = source if kind == "in place" else OUT + 2 + n
        calls.append(Call((), (target,), (source,)) if kind == "move" else Call((source,), (target,)))
        source = target
    return calls


def races(calls, found, waits, read):
    """Calls that write a piece which others may be reading, or read what others may still be writing."""
    written, reading, amiss = set(), set(read), []
    for n, (call, wait) in enumerate(zip(calls, waits, strict=True)):
        if wait:
            written, reading = set(), set()
        written |= {found.memories[place] for place in call.writes} - {OUT}
        reading |= {found.memories[place] for place in call.peers}
        if written & reading:
            amiss.append(n)
    return amiss


def cases():
    """Lists, the number of pieces, and the pieces that others may be reading at the start."""
    for seed in range(LISTS):
        rng = random.Random(seed)
        if seed % 2:
            yield chain_of_moves(rng), 2, rng.choice([(), (0,), (1,)])
        else:
            yield random_list(rng), PIECES, rng.sample(range(PIECES), rng.randrange(3))


def test_nothing_is_written_while_others_read_it():
    """Law: between two barriers no piece is both written by its rank and read by others, whatever was before."""
    waits = 0
    for calls, pieces, read in cases():
        found = placed(calls, read, pieces)
        assert not races(calls, found, found.waits, read)
        waits += sum(found.waits)
    assert waits > LISTS


def test_each_barrier_is_needed():
    """Law: without any one of them there is a race."""
    for calls, pieces, read in cases():
        found = placed(calls, read, pieces)
        for n in [n for n, wait in enumerate(found.waits) if wait]:
            assert races(calls, found, [wait and k != n for k, wait in enumerate(found.waits)], read)


def test_places_in_use_at_once_lie_apart():
    """Law: places of which both are used later, or by one call, are in different pieces; inputs and outputs in none."""
    for calls, pieces, read in cases():
        found, uses = placed(calls, read, pieces), {}
        for n, call in enumerate(calls):
            for place in chain(*call):
                uses.setdefault(place, []).append(n)
        lives = sorted((min(each), max(each), place) for place, each in uses.items() if place not in (IN, OUT))
        for k, (_, end, place) in enumerate(lives):
            assert 0 <= found.memories[place] < pieces
            for begin, _, other in lives[k + 1 :]:
                assert begin > end or found.memories[place] != found.memories[other]
        assert (found.memories[IN], found.memories[OUT]) == (IN, OUT)


def test_what_is_read_at_the_end_is_known():
    """Law: a list and the next one, placed from where the first ends, are as free of races as one list."""
    lists = [(calls, pieces) for calls, pieces, _ in cases()]
    for (first, pieces), (second, others) in pairwise(lists[::2]):
        assert pieces == others
        one = placed(first, (), pieces)
        two = placed(second, one.read, pieces)
        assert not races(second, two, two.waits, one.read)


def in_turn(calls, read):
    """The barriers of a simple rule: blocks alternate between two pieces, and each move has a barrier.

    One more is needed where a block comes to the piece that others may be reading.
    """
    at, number = 1 - (0 not in read), 0
    for call in calls:
        (source,), (target,) = call.reads or call.peers, call.writes
        before, at = at, at if source == target else 1 - at
        if call.peers:
            number, read = number + 1, (before,)
        elif at in read:
            number, read = number + 1, ()
    return number


@pytest.mark.parametrize("read", [(), (0,), (1,)])
def test_a_chain_has_few_barriers(read):
    """Law: two pieces are enough, with no more barriers than if blocks alternate between them; often with fewer."""
    fewer = 0
    for seed in range(LISTS):
        calls = chain_of_moves(random.Random(seed))
        found, most = placed(calls, read), in_turn(calls, read)
        assert sum(found.waits) <= most
        fewer += sum(found.waits) < most
    assert fewer or not read
