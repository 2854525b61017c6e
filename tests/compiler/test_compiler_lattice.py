"""Lattices: every operation by its law, stated in the values of all rows, on random digits and tables."""

from __future__ import annotations

import random
from collections import Counter
from math import prod

import numpy as np
import pytest
from marks import examples

from rote.lattice import Lattice


def elements(lattice):
    """The numbers of each element, in order."""
    columns = [lattice.values(k).tolist() for k in range(len(lattice.rows))]
    return list(zip(*columns, strict=True))


def pick(rng):
    """A lattice whose rows are evenly spaced or not; row 0 is the number of the element, as in a tensor."""
    shape = tuple(rng.choice((1, 2, 3, 4, 7)) for _ in range(rng.randrange(4)))
    ordered = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    rows = [(rng.randrange(9), *ordered)]
    for _ in range(2):
        rows.append((rng.randrange(9), *[rng.choice((0, 1, 2, 3, 5, 12)) for _ in shape]))
    return Lattice(shape, tuple(rows))


def unlike(rng, shape):
    """A row in which every step is larger than all smaller ones add up to, or 0: as coordinates are."""
    steps, reach = [0] * len(shape), 0
    for axis in rng.sample(range(len(shape)), len(shape)):
        if shape[axis] > 1 and rng.random() < 0.7:
            steps[axis] = reach + rng.randrange(1, 3)
            reach += steps[axis] * (shape[axis] - 1)
    return rng.randrange(3), *steps


@pytest.mark.parametrize("seed", range(examples(300)))
def test_each_operation_keeps_its_law(seed):
    rng = random.Random(seed)
    whole = pick(rng)
    every, k = elements(whole), rng.randrange(3)
    listed = Lattice.listing([whole, whole])
    assert elements(listed) == every * 2 and listed.listed and whole.size == len(every)
    # some values of a digit; one digit as two; as few digits as possible
    for axis, n in enumerate(whole.shape):
        start, stop = sorted(rng.sample(range(n + 1), 2))
        grid = np.array(every).reshape(*whole.shape, 3).take(range(start, stop), axis)
        assert elements(whole.slice(axis, start, stop)) == [tuple(each) for each in grid.reshape(-1, 3).tolist()]
        period = rng.choice([m for m in range(1, n + 1) if n % m == 0])
        assert elements(whole.split(axis, period)) == every
    joined = whole.join()
    assert elements(joined) == every and 1 not in joined.shape and joined.join().shape == joined.shape
    # cuts: all elements once, on the right side
    at, stop = sorted((rng.randrange(20), rng.randrange(40)))
    below, others = whole.cut(k, at)
    cut = [[each for part in side for each in elements(part)] for side in (below, others)]
    assert Counter(cut[0] + cut[1]) == Counter(every)
    assert all(each[k] < at for each in cut[0]) and all(each[k] >= at for each in cut[1])
    for lattice, all_of_it in ((whole, every), (listed, every * 2)):
        inside = [each for part in lattice.between(k, at, stop) for each in elements(part)]
        assert Counter(inside) == Counter(each for each in all_of_it if at <= each[k] < stop)
    # division: all elements once, quotients and remainders linear in the digits
    divisor, found = rng.randrange(1, 13), []
    for part in whole.fit(k, divisor):
        row = part.rows[k]
        both = part.having(tuple(n // divisor for n in row)).having(tuple(n % divisor for n in row))
        for *numbers, quotient, rest in elements(both):
            assert divmod(numbers[k], divisor) == (quotient, rest)
            found.append(tuple(numbers))
    assert Counter(found) == Counter(every)
    # a part for each combination of values of the first rows, or for those that are wanted
    keyed = Lattice(whole.shape, (unlike(rng, whole.shape), unlike(rng, whole.shape), *whole.rows))
    for lattice in (keyed, Lattice.listing([keyed, keyed])):
        every_keyed = elements(lattice)
        wanted = tuple(rng.choice((None, each)) for each in rng.choice(every_keyed)[:2])
        found = Counter((*at, *each) for at, part in lattice.fix(wanted) for each in elements(part))
        right = [e for e in every_keyed if all(w in (None, n) for w, n in zip(wanted, e, strict=False))]
        assert found == Counter(right) and len({at for at, _ in lattice.fix(wanted)}) == len(lattice.fix(wanted))
        assert lattice.fix((-1, None)) == []
    # offsets; one lattice after another
    weights = [rng.randrange(5) for _ in range(3)]
    for lattice in (whole, listed):
        sums = lattice.having(lattice.offset(weights)).values(3).tolist()
        assert sums == [sum(map(int.__mul__, weights, each)) for each in elements(lattice)]
    for axis, n in enumerate(whole.shape):
        parts = [whole.slice(axis, 0, n - 1), whole.slice(axis, n - 1, n)] if n > 1 else [whole, whole]
        longer = parts[0].then(parts[1])
        if longer is not None:
            assert Counter(elements(longer)) == Counter([*elements(parts[0]), *elements(parts[1])])
        assert n < 3 or longer is not None
