"""Doors from and to other libraries: each against the formula that the library publishes, index by index."""

from __future__ import annotations

from itertools import pairwise, product
from math import prod
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import examples
from strategies import distributions

import rote
from rote import Distribution
from rote.errors import LayoutError

EXTENTS = st.integers(0, 11)
PARTS = st.integers(1, 4)


def held(dist):
    """Per rank, its indices along each mode; all lists empty where it holds no element."""
    lists = [[index.tolist() for index in dist.indices(rank)] for rank in range(dist.grid.size)]
    return [each if all(each) else [[] for _ in each] for each in lists]


def ranges_of_sizes(sizes):
    ends = np.cumsum([0, *sizes]).tolist()
    return [list(range(a, b)) for a, b in pairwise(ends)]


def of_lists(lists, order="C"):
    """Per rank, the product of lists per mode, ranks numbered with the last mode (C) or the first (F) fastest."""
    flip = slice(None, None, 1 if order == "C" else -1)
    blocks = [list(each)[flip] for each in product(*lists[flip])]
    return [each if all(each) else [[] for _ in each] for each in blocks]


@settings(max_examples=examples(200))
@given(st.data())
def test_scalapack(data):
    """Law: an index lies at INDXG2P(i) = mod(SRC + (i-1)/NB, NPROCS), at the place INDXG2L, of the users' guide."""
    shape, grid = data.draw(st.tuples(EXTENTS, EXTENTS)), data.draw(st.tuples(PARTS, PARTS))
    tiles = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    sources = tuple(data.draw(st.integers(0, p - 1)) for p in grid)
    order = data.draw(st.sampled_from(["row", "column"]))
    desc = (1, 7, *shape, *tiles, *sources, 11)
    dist = Distribution.from_scalapack(desc, grid, order)
    for rank in range(prod(grid)):
        at = divmod(rank, grid[1]) if order == "row" else divmod(rank, grid[0])[::-1]
        for mode, (n, p, nb, source) in enumerate(zip(shape, grid, tiles, sources, strict=True)):
            own = dist.indices(rank)[mode].tolist()
            assert own == [i - 1 for i in range(1, n + 1) if (source + (i - 1) // nb) % p == at[mode]]
            for place, i in enumerate(own, 1):
                assert place == nb * (i // (nb * p)) + i % nb + 1
        back = dist.to_scalapack(rank, context=7)
        assert back.desc[8] == max(1, len(dist.indices(rank)[0]))
        assert held(Distribution.from_scalapack(*back)) == held(dist)


@settings(max_examples=examples(200))
@given(st.data())
def test_torch(data):
    """Law: rank r of p has `torch.chunk(x, p)[r]`, indices r*ceil(n/p) up to (r+1)*ceil(n/p); modes refine in turn."""
    shape, mesh = data.draw(st.tuples(EXTENTS, EXTENTS)), tuple(data.draw(st.lists(PARTS, min_size=1, max_size=3)))
    placements = [data.draw(st.sampled_from([0, 1, -1, None, "product"])) for _ in mesh]
    dist = Distribution.from_torch(shape, mesh, placements)
    for rank, at in enumerate(product(*map(range, mesh))):
        lists = [list(range(n)) for n in shape]
        for c, p, placement in zip(at, mesh, placements, strict=True):
            if isinstance(placement, int):
                size = -(-len(lists[placement]) // p)
                lists[placement] = lists[placement][c * size : (c + 1) * size]
        assert [index.tolist() for index in dist.indices(rank)] == lists
    assert dist.partial == tuple(g for g, each in enumerate(placements) if each == "product" and mesh[g] > 1)
    one = Distribution.from_torch(shape, mesh[0], 0)
    assert held(one) == held(Distribution.from_torch(shape, (mesh[0],), (-2,)))


@settings(max_examples=examples(200))
@given(st.data())
def test_chunks(data):
    """Law: chunk k of a mode begins where those before it end; ranks have one each, or take turns."""
    chunks = [tuple(data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))) for _ in range(2)]
    order = data.draw(st.sampled_from(["C", "F"]))
    dist = Distribution.from_chunks(chunks, order=order)
    assert held(dist) == of_lists([ranges_of_sizes(each) for each in chunks], order)
    sizes = dist.to_chunks()
    assert held(Distribution.from_chunks(sizes, order=order)) == held(dist)
    tile, n, p = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 12)), data.draw(PARTS)
    uniform = tuple(min(tile, n - start) for start in range(0, n, tile))
    dealt = Distribution.from_chunks([uniform, (5,)], grid=(p, 1))
    turns = [[i for i in range(n) if i // tile % p == c] for c in range(p)]
    assert held(dealt) == of_lists([turns, [list(range(5))]])
    assert sum(dealt.to_chunks()[0]) == n
    assert held(Distribution.from_chunks(dealt.to_chunks(), grid=(p, 1))) == held(dealt)


@settings(max_examples=examples(100))
@given(st.data())
def test_ownership_ranges_of_petsc(data):
    """Law: DMDA gives part i of m a size of M/m + (M % m > i), numbers ranks x fastest; ranges and sizes agree."""
    shape, grid = data.draw(st.tuples(EXTENTS, EXTENTS, EXTENTS)), data.draw(st.tuples(PARTS, PARTS, PARTS))
    sizes = [[n // p + (n % p > i) for i in range(p)] for n, p in zip(shape, grid, strict=True)]
    dist = Distribution.from_chunks(sizes, order="F")
    expected = of_lists([ranges_of_sizes(each) for each in sizes], "F")
    assert held(dist) == expected
    ranges = [tuple((int(a), int(b)) for a, b in each) for each in _starts_and_stops(sizes)]
    assert held(Distribution.from_ranges(ranges, shape)) == expected
    pencils = [tuple(zip(*((a, b - a) for a, b in each), strict=True)) for each in ranges]
    assert held(Distribution.from_pencil(shape, pencils)) == expected
    assert held(Distribution.from_ranges(dist.to_ranges(), shape)) == expected


def _starts_and_stops(sizes):
    ends = [np.cumsum([0, *each]) for each in sizes]
    return [each[::-1] for each in product(*(pairwise(e) for e in ends[::-1]))]


@settings(max_examples=examples(200))
@given(st.data())
def test_shardings_of_jax(data):
    """Law: part k of n/p indices is on the device at coordinate k of a mode's axes, the first the slowest."""
    mesh = {name: data.draw(st.integers(1, 3)) for name in "xyz"[: data.draw(st.integers(1, 3))]}
    modes = {name: data.draw(st.integers(-1, 1)) for name in data.draw(st.permutations(list(mesh)))}
    spec = [tuple(name for name, mode in modes.items() if mode == m) for m in range(2)]
    shape = tuple(prod(mesh[name] for name in each) * data.draw(st.integers(0, 3)) for each in spec)
    given_spec = [each or None if len(each) != 1 else each[0] for each in spec]
    while given_spec and given_spec[-1] is None:
        given_spec.pop()
    devices = None
    if data.draw(st.booleans()):
        turned = data.draw(st.permutations(range(len(mesh))))
        sizes = [list(mesh.values())[g] for g in turned]
        devices = np.arange(prod(sizes)).reshape(sizes).transpose(np.argsort(turned))
    dist = Distribution.from_sharding(shape, mesh, given_spec, devices)
    places = np.arange(prod(mesh.values())).reshape(tuple(mesh.values())) if devices is None else devices
    expected = [None] * places.size
    for at, rank in np.ndenumerate(places):
        where = dict(zip(mesh, at, strict=True))
        lists = []
        for each, n in zip(spec, shape, strict=True):
            number, parts = 0, 1
            for name in each:
                number, parts = number * mesh[name] + where[name], parts * mesh[name]
            lists.append(list(range(number * n // parts, (number + 1) * n // parts)))
        expected[rank] = lists if all(lists) else [[], []]
    assert held(dist) == expected
    if devices is None:
        back = dist.to_sharding(tuple(mesh))
        assert back.mesh == mesh
        assert held(Distribution.from_sharding(shape, *back)) == expected


@settings(max_examples=examples(200))
@given(distributions())
def test_out_and_in_again(dist):
    """Law: what a way out says leads in again to the same indices on every rank; or it refuses, with a cure."""
    ways = {
        "ranges": lambda: Distribution.from_ranges(dist.to_ranges(), dist.shape),
        "scalapack": lambda: Distribution.from_scalapack(*dist.to_scalapack(0)),
        "sharding": lambda: Distribution.from_sharding(dist.shape, *dist.to_sharding()),
    }
    for name, way in ways.items():
        try:
            again = way()
        except LayoutError as error:
            assert len(str(error).splitlines()) > 1, (name, dist, error)
            continue
        assert held(again) == held(dist), (name, dist, again)
    try:
        chunks = dist.to_chunks()
    except LayoutError as error:
        assert "redistribute" in str(error) or "to_global" in str(error)
    else:
        assert tuple(map(sum, chunks)) == dist.shape


OUT = {
    "cyclic ranges": ("[(0),()]", lambda dist: dist.to_ranges(), "rank 0 holds .* which is no range"),
    "view": ("(a b=2) c: [(0),(),()]", lambda dist: dist.to_ranges(), "reads the tensor by a view"),
    "partial": ("[(),()]+(0)", lambda dist: dist.to_chunks(), "contributions"),
    "chunks of tiles in tiles": ("[(0:cyclic(2),1),()]", lambda dist: dist.to_chunks(), "tiles of no single size"),
    "uneven blocks": ("block[(0),()]", lambda dist: dist.to_scalapack(0), "in turn, in tiles of one size"),
    "replicas": ("[(0),()]", lambda dist: dist.to_scalapack(0), "has replicas"),
    "two entries": ("block[(0,1),()]", lambda dist: dist.to_scalapack(0), "one grid mode each"),
    "uneven shards": ("block[(0,1),()]", lambda dist: dist.to_sharding(), "even parts"),
    "cyclic shards": ("[(),(0)]", lambda dist: dist.to_sharding(), "even parts"),
    "rooted": ("[(),()]|(0)", lambda dist: dist.to_sharding(), "rooted"),
    "names": ("[(),()]", lambda dist: dist.to_sharding(["x", "x"]), "different names"),
}


@pytest.mark.parametrize(("text", "way", "says"), OUT.values(), ids=OUT)
def test_what_others_cannot_say_is_refused(text, way, says):
    """Each refusal names the rule and the culprit."""
    with pytest.raises(LayoutError, match=says):
        way(rote.parse(text).on((10, 8), (4,) if "tiles of one size" in says else (2, 2)))


class Shard(NamedTuple):
    """A stand-in for torch's class of this name."""

    dim: int


class Replicate(NamedTuple):
    """A stand-in for torch's class of this name."""


class Partial(NamedTuple):
    """A stand-in for torch's class of this name."""

    reduce_op: str = "sum"


class DeviceMesh(NamedTuple):
    """A stand-in for torch's class of this name."""

    shape: tuple[int, ...]


def test_placements_of_torch_itself():
    """Law: a mesh and placements of torch's classes mean what their plain data means."""
    mesh = DeviceMesh((2, 3))
    for own, plain in (
        ([Shard(0), Replicate()], (0, None)),
        ((Shard(-1), Shard(1)), (-1, 1)),
        ([Partial(), Shard(1)], ("sum", 1)),
        ([Replicate(), Partial("max")], (None, "max")),
    ):
        assert Distribution.from_torch((7, 5), mesh, own) == Distribution.from_torch((7, 5), (2, 3), plain)


IN = {
    "own placement": (lambda: Distribution.from_torch((4,), 2, [object()]), "a dim is an integer"),
    "own reduction": (lambda: Distribution.from_torch((4,), 2, [Partial("avg")]), "'avg' is no reduction"),
    "no rank": (lambda: Distribution.from_ranges([]), "no rank says"),
    "no range": (lambda: Distribution.from_ranges([((3, 2),)]), r"rank 0 says \(3, 2\) of mode 0"),
    "half a range": (lambda: Distribution.from_ranges([((0, 2.5),)]), "no range of indices"),
    "outside": (lambda: Distribution.from_ranges([((0, 5),)], 4), "rank 0 holds indices up to 4 of mode 0"),
    "orders": (lambda: Distribution.from_ranges([((0, 5),), ((0, 5), (0, 2))], 5), "of order 1, but rank 1"),
    "gap": (lambda: Distribution.from_ranges([((0, 2),), ((3, 5),)]), "leave a gap"),
    "overlap": (lambda: Distribution.from_ranges([((0, 3),), ((2, 5),)]), "ranks 0 and 1 overlap"),
    "pencil": (lambda: Distribution.from_pencil(4, [((0, 0), (4,))]), "rank 0 says start"),
    "unknown chunks": (lambda: Distribution.from_chunks([(float("nan"), 3)]), "compute_chunk_sizes"),
    "uneven turns": (lambda: Distribution.from_chunks([(3, 2, 4)], grid=(2,)), "rechunk"),
    "chunk order": (lambda: Distribution.from_chunks([(3,)], order="A"), "order='A'"),
    "chunk grid": (lambda: Distribution.from_chunks([(3,)], grid=(2, 2)), "one number of ranks for each of 1 mode"),
    "band": (lambda: Distribution.from_scalapack((501, 0, 9, 9, 2, 0, 1), (2, 2)), "dense matrix"),
    "tile": (lambda: Distribution.from_scalapack((1, 0, 9, 9, 0, 2, 0, 0, 9), (2, 2)), "MB=0"),
    "source": (lambda: Distribution.from_scalapack((1, 0, 9, 9, 2, 2, 2, 0, 9), (2, 2)), "coordinate 2"),
    "grid": (lambda: Distribution.from_scalapack((1, 0, 9, 9, 2, 2, 0, 0, 9), (4,)), r"\(NPROW, NPCOL\)"),
    "dim": (lambda: Distribution.from_torch((4,), 2, 1), r"Shard\(1\)"),
    "placements": (lambda: Distribution.from_torch((4,), (2, 2), 0), "one placement for each"),
    "reduction": (lambda: Distribution.from_torch((4,), 2, "avg"), "reduction"),
    "reductions": (lambda: Distribution.from_torch((4,), (2, 2), ("sum", "max")), "under one operation"),
    "uneven": (lambda: Distribution.from_sharding((5,), {"x": 2}, ("x",)), "uneven"),
    "axis": (lambda: Distribution.from_sharding((4,), {"x": 2}, ("y",)), "not 'y'"),
    "unconstrained": (lambda: Distribution.from_sharding((4,), {"x": 2}, (object(),)), "no axis"),
    "long": (lambda: Distribution.from_sharding((4,), {"x": 2}, (None, "x")), "more modes"),
    "twice": (lambda: Distribution.from_sharding((4, 4), {"x": 2}, ("x", "x")), "twice"),
    "devices": (lambda: Distribution.from_sharding((4,), {"x": 2}, ("x",), [1, 1]), "each once"),
    "device order": (
        lambda: Distribution.from_sharding((4,), {"x": 4}, ("x",), [0, 2, 3, 1]),
        "in the order of the ranks",
    ),
}


@pytest.mark.parametrize(("way", "says"), IN.values(), ids=IN)
def test_what_cannot_be_read_is_refused(way, says):
    """Each refusal names the rule and the culprit."""
    with pytest.raises(LayoutError, match=says):
        way()
