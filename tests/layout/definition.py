"""What a layout means, by brute force: indices are dealt out one by one, in plain Python, and nothing is cleverer.

This is the first of the three answers that must agree (the others are `simulate` and the run on real ranks). It shares
no code with `rote.layout`: of a layout it reads the fields alone.
"""

from __future__ import annotations

from functools import cache, lru_cache, reduce
from itertools import product

import numpy as np

OPS = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


def deal(name, sizes, p, n, at=0):
    """The coordinate that gets each of n local indices: cards dealt to p players."""
    if name == "cyclic" or len(sizes) == 1:
        (b,) = sizes
        return [(at + i // b) % p for i in range(n)]  # player `at` gets the first tile; of blocks of 0 there is no i
    if name == "ceil":  # everybody takes ceil(n/p) cards as long as there are some
        each = next(each for each in range(n + 1) if each * p >= n)
        return [c for c in range(p) for _ in range(each)][:n]
    if name == "floor":  # player c takes the cards from floor(c*n/p) up to floor((c+1)*n/p)
        return [c for c in range(p) for _ in range(c * n // p, (c + 1) * n // p)]
    if not sizes:  # balanced: the first n mod p players get one card more
        sizes = [n // p + (c < n % p) for c in range(p)]
    return [c for c in range(p) for _ in range(sizes[c])]


def legal(name, sizes, p, n, at=0):
    """Whether n indices may be dealt like this."""
    if at >= p:
        return False
    if name == "cyclic" or not sizes:
        return True
    return n <= p * sizes[0] if len(sizes) == 1 else (len(sizes), sum(sizes)) == (p, n)


@cache
def hands(entries, n):
    """Per tuple of coordinates, the global indices that it holds, in local order.

    `entries` are (kind, sizes, p, at), outermost first: each deals out what each player holds so far, in that order.
    """
    held = {(): list(range(n))}
    for name, sizes, p, at_first in entries:
        finer = {(*at, c): [] for at in held for c in range(p)}
        for at, cards in held.items():
            for card, c in zip(cards, deal(name, sizes, p, len(cards), at_first), strict=True):
                finer[(*at, c)].append(card)
        held = finer
    return held


def chain(mode, grid):
    return tuple((e.kind.name, e.kind.sizes, grid[e.grid_mode], e.kind.at) for e in mode)


def coordinates(grid):
    """The coordinates of every rank, in the order of the ranks: row-major, the last grid mode fastest."""
    return list(product(*map(range, grid)))


def holds(layout, at):
    return all(at[g] == root for g, root in layout.rooted)


@lru_cache(maxsize=4096)
def held(layout, view_shape, grid):
    """Per rank, the global indices along every mode; nothing outside a root."""
    found = []
    for at in coordinates(grid):
        lists = []
        for mode, n in zip(layout.modes, view_shape, strict=True):
            cards = hands(chain(mode, grid), n)[tuple(at[e.grid_mode] for e in mode)]
            lists.append(cards if holds(layout, at) else [])
        found.append(lists)
    return found


def owners(layout, view_shape, grid):
    """Per element, the ranks that hold it: each rank lays claim to its own, one by one."""
    found = dict.fromkeys(product(*map(range, view_shape)), ())
    for rank, (at, lists) in enumerate(zip(coordinates(grid), held(layout, view_shape, grid), strict=True)):
        for index in product(*lists) if holds(layout, at) else ():
            found[index] += (rank,)
    return found


def _items(layout, order):
    """Per item of the view: the tensor modes that it reads, and the sizes of its parts (None if it fuses)."""
    if layout.view is None:
        return [((m,), None) for m in range(order)]
    names, items = [], []
    for item in layout.view:
        kind = type(item).__name__
        found = [item.name] if kind == "Name" else list(item.names) if kind == "Fuse" else [None]
        items.append((found, [size for _, size in item.parts] if kind == "Tile" else None))
        names += found
    # The sorted names fill, in order, the places that tiles leave.
    places = [place for place, name in enumerate(names) if name is not None]
    mode_of = dict(zip(sorted(name for name in names if name is not None), places, strict=True))
    result, place = [], 0
    for found, sizes in items:
        result.append((tuple(place if name is None else mode_of[name] for name in found), sizes))
        place += len(found)
    return result


def _parts(sizes, n):
    known = 1
    for size in sizes:
        known *= size or 1
    return [n // known if size is None else size for size in sizes]


def view_shape(layout, shape):
    """The extents of the view's modes."""
    found = []
    for modes, sizes in _items(layout, len(shape)):
        if sizes is not None:
            found += _parts(sizes, shape[modes[0]])
        else:
            n = 1
            for m in modes:
                n *= shape[m]
            found.append(n)
    return tuple(found)


def view_index(layout, shape, index):
    """Where the view reads an element of the tensor: digits joined or taken apart, the rightmost fastest."""
    found = []
    for modes, sizes in _items(layout, len(shape)):
        if sizes is None:
            number = 0
            for m in modes:
                number = number * shape[m] + index[m]
            found.append(number)
        else:
            digits, number = [], index[modes[0]]
            for size in reversed(_parts(sizes, shape[modes[0]])):
                digits.append(number % size)
                number //= size
            found += reversed(digits)
    return tuple(found)


@cache
def block_indices(layout, shape, grid):
    """Per rank, an integer array like its block: the row-major number of the tensor's element at each place."""
    number_at = {}
    for number, index in enumerate(product(*map(range, shape))):
        number_at[view_index(layout, shape, index)] = number
    blocks = []
    for at, lists in zip(coordinates(grid), held(layout, view_shape(layout, shape), grid), strict=True):
        if not layout.modes and not holds(layout, at):
            blocks.append(np.empty((0,), np.int64))
            continue
        block = np.empty([len(cards) for cards in lists], np.int64)
        for place in product(*(range(len(cards)) for cards in lists)):
            block[place] = number_at[tuple(cards[i] for cards, i in zip(lists, place, strict=True))]
        blocks.append(block)
    return tuple(blocks)


def blocks(layout, grid, array):
    """The block of every rank, if the layout were not partial."""
    return [array.reshape(-1)[numbers] for numbers in block_indices(layout, array.shape, grid)]


def contributors(layout, grid):
    """Per rank, which contribution its block belongs to: its coordinates along the partial grid modes."""
    return [tuple(at[g] for g in layout.partial) for at in coordinates(grid)]


def contribute(layout, shape, grid, rng, low=-50, high=50):
    """An array and the blocks of a distribution of it; in a partial layout it is reduced from random contributions.

    Contributions are integers from `low` to `high` - 1.
    """
    keys = contributors(layout, grid)
    arrays = {key: np.asarray(rng.integers(low, high, shape)) for key in sorted(set(keys))}
    cut = {key: blocks(layout, grid, array) for key, array in arrays.items()}
    return reduce(OPS[layout.op], arrays.values()), [cut[key][rank] for rank, key in enumerate(keys)]


def numbered(layout, shape, grid):
    """An array of distinct numbers, and its blocks; in a partial layout all comes from contribution 0.

    They count from 2 on, so that none of them is what adds nothing to a sum or a product.
    """
    array = np.arange(2, 2 + int(np.prod(shape, dtype=np.int64))).reshape(shape)
    nothing = {"sum": 0, "prod": 1, "max": -(2**63), "min": 2**63 - 1}[layout.op]
    return array, [
        block if not any(key) else np.full_like(block, nothing)
        for block, key in zip(blocks(layout, grid, array), contributors(layout, grid), strict=True)
    ]


def wrong(layout, grid, found, array):
    """What is wrong with the blocks of a distribution of an array: "" if nothing, else which elements went astray."""
    expected = blocks(layout, grid, array)
    for rank, (block, right) in enumerate(zip(found, expected, strict=True)):
        if block.shape != right.shape:
            return f"rank {rank} holds a block of {block.shape}, not {right.shape}, of {layout}"
    teams = {}
    for rank, at in enumerate(coordinates(grid)):
        teams.setdefault(tuple(c for g, c in enumerate(at) if g not in layout.partial), []).append(rank)
    for ranks in teams.values():
        value = reduce(OPS[layout.op], [found[rank] for rank in ranks])
        right = expected[ranks[0]]
        if not np.array_equal(value, right):
            place = tuple(map(int, np.argwhere(value != right)[0]))
            return f"ranks {ranks} hold {value[place]}, not {right[place]}, at {place} of {layout}"
    return ""
