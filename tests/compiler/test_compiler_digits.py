"""Operations on digits move what plans move: on the blocks of all ranks they equal simulation, for all layouts."""

from __future__ import annotations

import random
from collections import Counter
from functools import reduce
from itertools import product

import numpy as np
import pytest
from cases import pick_grid, pick_grids, pick_layout, pick_shape
from compiler.by_digits import run

import rote
from rote.compiler.digits import Table, longer_extents, smallest_shapes, step_digits
from rote.runtime.regions import REDUCE

KINDS = ["", ":block", ":block", ":cyclic(2)", ":cyclic(3)", ":block(ceil)"]


def any_pair(pick):
    """Two distributions of one tensor, of any kinds, views and reductions, on one grid or two; but no roots."""
    while True:
        grids = (pick_grid(pick, most=8),) * 2 if pick([True, True, False]) else pick_grids(pick, pick([2, 4, 6, 8]))
        shape = pick_shape(pick)
        layouts = [pick_layout(pick, shape, grid) for grid in grids]
        if not any(layout.rooted for layout in layouts):
            return tuple(layout.on(shape, grid) for layout, grid in zip(layouts, grids, strict=True))


def usual_pair(pick):
    """Two distributions of larger tensors with extents of any kind, nested, replicated and partial, on one grid."""
    grid = pick([(2,), (4,), (8,), (6,), (3,), (2, 2), (2, 4), (4, 2), (2, 3), (3, 2), (2, 2, 2)])
    shape = tuple(pick([5, 9, 13, 16, 17, 24, 31, 48]) for _ in range(pick([1, 2, 2, 3])))
    return tuple(rote.parse(usual_layout(pick, len(shape), grid)).on(shape, grid) for _ in range(2))


def usual_layout(pick, order, grid):
    """The text of a layout in which grid modes split any mode, replicate, or have contributions."""
    modes, partial = [[] for _ in range(order)], []
    for g in sorted(range(len(grid)), key=lambda g: pick([g, -g])):
        role = pick("ssssrp")
        if role == "s":
            pick(modes).append(f"{g}{pick(KINDS)}")
        elif role == "p":
            partial.append(str(g))
    text = "[" + ",".join(f"({','.join(mode)})" for mode in modes) + "]"
    return f"{text}+({','.join(sorted(partial))})" if partial else text


def blocks_of(dist, contributions):
    """The blocks of all ranks, in arrays of the largest block's shape: of the contribution at their coordinates."""
    blocks = []
    for rank in range(dist.grid.size):
        coordinates = dist.grid.coordinates(rank)
        whole = contributions[tuple(coordinates[g] for g in dist.partial)]
        blocks.append(grown(whole[dist.tensor_indices(rank)], dist.max_local_shape()))
    return blocks


def grown(array, shape):
    """An array at the front of one of a larger shape."""
    larger = np.zeros(shape, array.dtype)
    larger[tuple(map(slice, array.shape))] = array
    return larger


def cropped(blocks, dist):
    """The blocks of all ranks without what arrays of the largest block's shape have beyond them."""
    shapes = map(dist.local_shape, range(dist.grid.size))
    return [block[tuple(map(slice, shape))] for block, shape in zip(blocks, shapes, strict=True)]


def check(source, target, seed=0):
    """Law: operations give all ranks the blocks of simulation, and they make up the tensor of the definition."""
    digits = rote.compile(source, target).digits()
    padded, rng = digits.plan, np.random.default_rng(seed)
    numbers = [range(source.grid.shape[g]) for g in source.partial]
    contributions = {at: rng.integers(-9, 9, source.shape).astype("f8") for at in product(*numbers)}

    blocks = blocks_of(padded.source, {at: grown(whole, padded.source.shape) for at, whole in contributions.items()})
    results = cropped(run(digits, blocks), padded.target)
    if not target.partial:  # contributions may be on other ranks
        expected = rote.simulate.run(padded, cropped(blocks, padded.source))
        for result, block in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, block)

    whole = rote.simulate.gather(results, padded.target)[tuple(map(slice, source.shape))]
    np.testing.assert_array_equal(whole, reduce(REDUCE[source.layout.op], contributions.values()))
    return digits


def check_many(pair, seeds):
    """The law on as many pairs; returns how many steps have operations, and how many tables."""
    count = Counter()
    for seed in seeds:
        ends = pair(random.Random(seed).choice)
        try:
            digits = check(*ends, seed)
        except Exception as error:
            raise AssertionError(f"{ends[0]} -> {ends[1]}, seed {seed}") from error
        count.update("table" if isinstance(step, Table) else "digits" for step in digits.steps)
    return count


@pytest.mark.parametrize("pair", [any_pair, usual_pair])
def test_operations_equal_simulation(pair):
    """Law: on the blocks of all ranks, operations equal simulation bit for bit."""
    assert check_many(pair, range(60))["digits"] > 10


def test_a_tensor_without_modes_moves_by_a_table():
    """Its one element has a place, though no mode says which."""
    layouts = rote.parse("[]+min(0,1,2)").on((), (3, 1, 2)), rote.parse("[]+min(0,2)").on((), (2, 1, 3))
    assert [type(step) for step in check(*layouts).steps] == [Table]


@pytest.mark.slow
@pytest.mark.parametrize("pair", [any_pair, usual_pair])
def test_operations_equal_simulation_of_many(pair):
    """Law: on the blocks of all ranks, operations equal simulation bit for bit, for a thousand pairs more of each."""
    assert check_many(pair, range(1000, 2000))["digits"] > 200


def kinds(text, shape, grid):
    """The kinds of operations of a plan, step by step; of a table, "table"."""
    steps = rote.compile(text, shape=shape, grid=grid).digits().steps
    return [
        "table" if isinstance(step, Table) else " ".join(operation.kind for operation in step.operations)
        for step in steps
    ]


@pytest.mark.parametrize(
    ("text", "shape", "grid", "expected"),
    [
        ("block[(0),()] -> block[(),(0)]", (8, 8), 4, ["exchange"]),
        ("block[(0),()] -> block[(),(0)]", (13, 11), 4, ["exchange"]),
        ("block[(0)] -> [(0)]", (100,), 8, ["exchange"]),
        ("block[(0)] -> [()]", (9,), 4, ["gather"]),
        ("[()] -> [(0)]", (9,), 4, ["slice"]),
        ("[()]+(0) -> block[(0)]", (16,), 4, ["reduce"]),
        ("[()]+(0) -> [()]", (9,), 4, ["reduce"]),
        ("[()] -> [()]+max(0)", (9,), 4, ["fill"]),
        ("block[(0)] -> [()]+(0)", (16,), 4, ["fill"]),
        ("block[(0),(1)] -> block[(1),(0)]", (8, 8), (2, 2), ["permute"]),
        ("(r s=4): block[(0),()] -> (r s=4): block[(),(0)]", (64,), 4, ["exchange"]),
        ("cyclic(2)[(0)] -> cyclic(3)[(0)]", (36,), 2, ["table"]),
        ("block[(0)] -> block(5,2,1)[(0)]", (8,), 3, ["table"]),
    ],
)
def test_a_step_has_as_few_operations_as_can_be(text, shape, grid, expected):
    """A move of digits is one operation, and tiles that fit in no padded tensor are a table."""
    assert kinds(text, shape, grid) == expected


def test_digits_of_ranks_change_places_in_a_cycle():
    """A permutation of three digits of the rank number is not its own inverse, and sends blocks the right way."""
    layouts = rote.parse("block[(0),(1),(2)]"), rote.parse("block[(1),(2),(0)]")
    digits = check(*[layout.on((4, 4, 4), (2, 2, 2)) for layout in layouts])
    assert [operation.kind for step in digits.steps for operation in step.operations] == ["permute"]


def test_padding_is_least():
    """A block to a cyclic distribution over p ranks needs p * p, and other modes stay as they are."""
    digits = rote.compile("block[(0),()] -> [(0),()]", shape=(100, 7), grid=8).digits()
    assert digits.padding == (28, 0)
    assert digits.plan.target.shape == (128, 7)


@pytest.mark.parametrize(("texts", "extent"), [(("block[(0)]", "[(0)]"), 13), (("[(0,1)]", "cyclic(3)[(1)]"), 100)])
def test_paddings_are_multiples_between_those_of_each_layout_and_of_all(texts, extent):
    """Law: an extent is the next multiple of a unit that all layouts divide, and that divides their product."""
    parts = {"block[(0)]": 4, "[(0)]": 4, "[(0,1)]": 24, "cyclic(3)[(1)]": 6 * 3}
    first, second = [parts[text] for text in texts]
    common = [n for n in range(1, first * second + 1) if n % first == n % second == 0]
    units = [n for n in common if first * second % n == 0]
    splits = [rote.parse(text).on(extent, (4, 6)).splits[0] for text in texts]
    assert longer_extents(extent, splits) == sorted({-(-extent // unit) * unit for unit in units})


def test_paddings_of_very_many_ranks_are_found_without_a_count_to_their_product():
    """Law: three layouts over 2^20 ranks have a unit for each power of two from 2^20 to 2^60."""
    texts = "block[(0,1)]", "[(0,1)]", "[(1,0:block)]"
    splits = [rote.parse(text).on(2**60, (1024, 1024)).splits[0] for text in texts]
    assert longer_extents(2**60, splits) == [2**60]
    assert longer_extents(1, splits) == [2**n for n in range(20, 61)]


@pytest.mark.parametrize("number", [1, 7, 64])
@pytest.mark.parametrize("extents", [[], [[3]], [[4, 6], [6, 12]], [[2, 4, 8, 16]] * 4, [[0, 5], [1, 2], [3, 9, 12]]])
def test_smallest_shapes_are_those_of_all(extents, number):
    """Law: they are the first of all shapes in the order of their elements; of as many, in that of their extents."""
    assert smallest_shapes(extents, number) == sorted(product(*extents), key=np.prod)[:number]


def test_without_padding_there_is_a_table():
    """A tensor that may not be padded keeps its shape, and moves by a table where digits do not fit."""
    plan = rote.compile("block[(0),()] -> [(0),()]", shape=(24, 7), grid=8)
    digits = plan.digits(pad=False)
    assert digits.plan == plan and digits.padding == (0, 0)
    assert [type(step) for step in digits.steps] == [Table]
    assert kinds("block[(0)] -> [(0)]", (64,), 8) == ["exchange"]


def test_a_bound_on_memory_grows_with_the_padded_tensor():
    """A plan within a bound has operations of a plan within this bound, in proportion."""
    transition, shape = "block[(0),(1),()] -> block[(1),(),(0)]", (9, 10, 11)
    least = min(plan.cost.peak_bytes for plan in rote.tradeoff(transition, shape=shape, grid=(2, 2)))
    plan = rote.compile(transition, shape=shape, grid=(2, 2), max_bytes=least)
    padded = plan.digits().plan
    assert padded.source.shape != shape
    assert padded.cost.peak_bytes <= least * np.prod(padded.source.shape) / np.prod(shape) + 1


def test_operations_do_not_grow_with_the_tensor():
    """A step of very many elements on very many ranks has the digits of a small one, and other sizes."""
    layouts = [rote.parse(text) for text in ("block[(0),(1),()]", "[(),(0),(1)]")]
    small = step_digits(*[layout.on((16, 16, 16), (4, 4)) for layout in layouts])
    large = step_digits(*[layout.on((2**16, 2**16, 2**16), (256, 256)) for layout in layouts])
    assert [operation.kind for operation in small.operations] == [operation.kind for operation in large.operations]
    assert small.before == large.before


def test_tables_are_those_of_modes():
    """A table grows with extents of modes, and not with the number of elements."""
    plan = rote.compile("cyclic(2)[(0),(),()] -> cyclic(3)[(0),(),()]", shape=(36, 50, 50), grid=2)
    (table,) = plan.digits().steps
    assert sum(part.size for parts in table.places() for part in parts) < 1000


def test_rooted_layouts_are_refused():
    """Ranks without a block have nothing to operate on; the text says what to write."""
    with pytest.raises(rote.PlanError, match=r"rooted.*\n.*write a layout without \|"):
        rote.compile("block[(0)] -> [()]|(0)", shape=8, grid=4).digits()
