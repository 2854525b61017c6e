"""Networks: where the modes of a grid lie, and the times that follow."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
from effort import calls

import rote
from rote.compiler.cost import duration
from rote.compiler.rules import one_step
from rote.layout.grid import Grid
from rote.machines.machine import Machine
from rote.machines.network import Network, _compact

TORUS = Network("torus", byte_time=1.0, dims=(16, 8, 8), lanes=1, link_time=1.0)


def received(network, shape):
    """Seconds in which a rank exchanges a block of one byte along each mode."""
    times = network.along(Grid(shape))[1]
    return tuple(time * (p - 1) / p for time, p in zip(times, shape, strict=True))


def node_of(rank, ranks, network):
    nodes = ranks // network.ranks_per_node
    return rank // network.ranks_per_node if network.order == "block" else rank % nodes


@pytest.mark.parametrize("order", ["block", "cyclic"])
@pytest.mark.parametrize("shape", [(8,), (2, 4), (4, 2), (2, 2, 2), (8, 4, 2), (2, 16), (16, 2)])
@pytest.mark.parametrize("per_node", [1, 2, 4, 8])
def test_ranks_inside_a_node_are_those_that_the_order_puts_there(order, shape, per_node):
    """Counted from the nodes of all ranks: along each mode, a rank shares its node with so many."""
    network, ranks = Network(ranks_per_node=per_node, order=order, near_latency=1.0, latency=100.0), prod(shape)
    coordinates = list(product(*map(range, shape)))
    for g, p in enumerate(shape):
        on = {node_of(n, ranks, network) for n, at in enumerate(coordinates) if not any(at[:g] + at[g + 1 :])}
        inside = p // len(on)
        assert network.along(Grid(shape))[0][g] == ((inside - 1) * 1.0 + (p - inside) * 100.0) / (p - 1)
        line = network.placement(Grid(shape)).splitlines()[g]
        assert ("inside a node" in line) == (len(on) == 1)


def test_a_line_of_a_torus_is_cut_in_its_middle():
    assert received(TORUS, (8, 4)) == (2.0, 1.0)  # 8/4 and 4/4 of a link; injection 7/8 and 3/4
    assert received(TORUS, (2, 2)) == (0.5, 0.5)  # injection, as 2/4 of a link
    assert received(TORUS, (16, 8)) == (2.0, 1.0)  # whole rings have two cuts


def test_lanes_and_links_divide_the_time_of_a_line():
    fast = Network("torus", dims=(16, 8, 8), lanes=2, link_time=0.5)
    assert received(fast, (8, 4)) == (0.5, 0.25)


def test_one_mode_lies_in_a_compact_box():
    assert received(TORUS, (64,)) == (1.0,)  # 4 x 4 x 4
    assert "the job's compact box of 4 x 4 x 4" in TORUS.placement(Grid((64,)))
    assert "compact box of 16 x 8 x 8" in TORUS.placement(Grid((2, 2, 2, 128)))  # more modes than dimensions
    assert "compact box" in TORUS.placement(Grid((32, 2)))  # longer than any dimension


@pytest.mark.parametrize("count", [2, 7, 16, 30, 31, 97, 128, 1000, 1024])
def test_a_compact_box_has_room_and_no_long_side(count):
    box = _compact(count, (16, 8, 8))
    assert count <= prod(box) <= max(2 * count, 4) and all(a <= d for a, d in zip(box, (16, 8, 8), strict=True))
    assert max(box) <= 2 * count ** (1 / 3) + 2


@pytest.mark.parametrize("dims", [(9,), (6, 4), (7, 5, 3)])
def test_a_compact_box_has_the_fewest_cells_and_then_the_shortest_sides(dims):
    """Of all boxes in the torus with room, whose sides descend and are at most twice those of a cube."""
    every = [box for box in product(*[range(1, d + 1) for d in dims]) if [*box] == sorted(box, reverse=True)]
    for count in range(1, prod(dims) + 1):
        cube = next(n for n in range(1, count + 1) if n ** len(dims) >= count)
        boxes = [box for box in every if max(box) <= 2 * cube and count <= prod(box) <= 2 * count]
        assert _compact(count, dims) == min(boxes, key=lambda box: (prod(box), box), default=dims)


def test_a_large_job_finds_its_box_at_once():
    """Pairs of sides are tried, not numbers of cells, which would have to be factored."""
    assert calls(lambda: _compact.__wrapped__(82_893, (54, 48, 32))) < 6 * 54 * 48
    assert _compact(82_893, (54, 48, 32)) == (54, 48, 32)


def test_modes_at_once_take_the_longest_line():
    """An all-to-all over a whole box of 8 x 4 x 2 nodes takes B 8 / 4 of a link, and shorter lines some more."""
    machine = Machine(0, 0, 0, 0, 0, network=TORUS)
    ends = [rote.parse(text).on((64, 64), (8, 4, 2)) for text in ("block[(0,1,2),()]", "block[(),(0,1,2)]")]
    step = one_step(*ends)
    block = 64 * 64 // 64 * 8
    assert block * 2.0 <= duration(step, 8, machine).seconds <= 1.1 * block * 2.0


@pytest.mark.parametrize("topology", ["dragonfly", "fat tree"])
def test_what_leaves_a_group_shares_its_links(topology):
    network = Network(topology, byte_time=1.0, latency=1.0, group=4, far_latency=5.0, far_time=3.0)
    assert received(network, (4, 4)) == (0.75 * 3.0, 0.75)  # the last mode lies inside a group
    assert received(network, (8,)) == (0.5 * 3.0,)  # half of a block leaves the group
    assert network.along(Grid((8,)))[0] == ((3 * 1.0 + 4 * 5.0) / 7,)
    text = network.placement(Grid((4, 4))).splitlines()
    assert text[0].endswith("4 groups" if topology == "dragonfly" else "4 switches") and "of 1 " in text[1]


def test_ranks_of_a_node_share_its_injection_and_its_message_rate():
    one, four = (Network(ranks_per_node=r, byte_time=1.0, latency=1.0, message_time=0.5) for r in (1, 4))
    assert received(one, (8,)) == (7 / 8,)
    assert received(four, (4, 4)) == (4 * 3 / 4, 0.0)
    assert four.along(Grid((4, 4)))[0] == (2.0, 0.0)


def test_a_machine_with_a_network_takes_grids_of_any_order():
    machine = Machine.load("cray-xc40")
    for shape in [(), (1,), (64,), (8, 8), (4, 4, 4), (2,) * 6]:
        times = machine.along(Grid(shape))
        assert len(times.latency) == len(times.byte_time) == len(times.copy_time) == max(len(shape), 1)


def test_grids_beyond_the_machine_are_refused():
    network = Network(nodes=16, ranks_per_node=2)
    assert network.along(Grid((32,)))
    with pytest.raises(rote.PlanError, match="16 nodes, on which grid 33 has no room at 2 ranks a node\n"):
        network.along(Grid((33,)))


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"topology": "ring"}, "the topology of a network is one of torus, dragonfly, fat tree, flat, not 'ring'"),
        ({"order": "random"}, "the order of a network is one of block, cyclic"),
        ({"latency": -1.0}, "the latency of a network is a number from 0 on, not -1.0"),
        ({"ranks_per_node": 0}, "the ranks_per_node of a network is a number from 1 on, not 0"),
        ({"ranks_per_node": 1.5}, "the ranks_per_node of a network"),
        ({"group": True}, "the group of a network"),
        ({"byte_time": float("nan")}, "the byte_time of a network"),
        ({"topology": "torus"}, "a torus, and no other network, has dims"),
        ({"topology": "torus", "dims": (4, 0)}, "the dims of a network is a number from 1 on, not 0"),
        (
            {"topology": "torus", "dims": 8},
            "the dims of a network are the nodes along each dimension of a torus, not 8",
        ),
    ],
)
def test_a_network_of_bad_numbers_is_refused(changed, text):
    with pytest.raises(rote.PlanError, match=text):
        Network(**changed)
