"""Profiles: machines as data, what they become, and how bad ones are refused."""

from __future__ import annotations

import json
import pickle
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

import rote
from rote.layout.grid import Grid
from rote.machines.machine import DEFAULT, Machine, as_machine
from rote.machines.profile import NUMBERS, read_profile
from rote.runtime import run

FOLDER = Path(rote.__file__).parent / "machines"
K = (FOLDER / "k-computer.toml").read_text("utf-8")


def test_the_machines_that_come_with_rote():
    wanted = {"k-computer", "cray-xc40", "cray-xc30", "fx10", "sgi-infiniband", "fat-tree", "ethernet"}
    assert set(Machine.names()) == wanted == {path.stem for path in FOLDER.glob("*.toml")}


@pytest.mark.parametrize("name", Machine.names())
def test_every_number_has_a_range_and_a_source(name):
    profile = read_profile(name)
    tree = tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))
    assert profile.about and all("source" in entry for key, entry in tree.items() if key != "about")
    for key, number in profile.numbers.items():
        assert 0 < number.low <= number.value <= number.high, key
        assert number.source, key
    for key in ("exchange", "latency", "fft_share"):  # what nobody wrote down is wide
        if key in profile.unknown:
            assert profile[key].high >= 2 * profile[key].low, key
    assert profile["exchange"].low == 1e-6 and profile["exchange"].high == 4e-4


@pytest.mark.parametrize("name", Machine.names())
def test_the_fast_end_is_faster_in_every_number(name):
    machine = Machine.load(name)
    fast, slow = (machine.at(pick) for pick in ("fast", "slow"))
    for grid in (Grid((8,)), Grid((4, 2))):
        for field in ("latency", "byte_time", "copy_time", "reduce_time"):
            times = [getattr(each.along(grid), field) for each in (fast, machine, slow)]
            assert all(a <= b <= c for a, b, c in zip(*times, strict=True)), field
    for field in ("step_time", "flop_time", "fft_time"):
        assert getattr(fast, field) < getattr(machine, field) < getattr(slow, field)
    assert set(NUMBERS) >= set(machine.profile.numbers)


def test_the_ends_of_a_machine_have_as_many_nodes():
    """Nodes and memory are limits: what runs on the machine has a range of seconds there."""
    machine = Machine.load("fat-tree")
    nodes = int(machine.profile["nodes"].value)
    assert machine.profile["nodes"].low < nodes
    for pick in ("fast", "slow"):
        assert machine.at(pick).network.nodes == nodes
    assert machine.at({"nodes": "low"}).network.nodes < nodes


def test_the_numbers_of_a_machine_follow_from_those_of_its_profile():
    machine = Machine.load("k-computer")
    assert machine.copy_time == 2 / 64e9 and machine.byte_time == 1 / 5e9
    assert machine.fft_time == pytest.approx(5 / 16 / (0.05 * 128e9))
    assert machine.network.threads == 8
    shared = Machine.load("k-computer", 8)
    assert shared.network.threads == 1 and shared.copy_time == pytest.approx(8 * machine.copy_time)
    assert shared.fft_time == pytest.approx(8 * machine.fft_time) and shared.cache == machine.cache / 8
    alone = Machine.load("cray-xc40", 1, 1)  # one core does not fill the memory of a node
    assert alone.copy_time == 2 / 11e9


def test_one_number_at_a_time():
    machine = Machine.load("k-computer", 2)
    other = machine.at({"link": 1e9, "latency": "high"})
    assert other.network == replace(machine.network, link_time=1e-9, latency=5e-6)
    assert machine.at({}) == machine and DEFAULT.at("slow") == DEFAULT
    with pytest.raises(rote.PlanError, match="k-computer has no number 'links'\nit has nodes"):
        machine.at({"links": 1})


def test_order_of_ranks_says_which_mode_lies_inside_a_node():
    block, cyclic = (Machine.of(read_profile("fat-tree"), 4, 16, order) for order in ("block", "cyclic"))
    assert block.network.placement(Grid((8, 4))).splitlines()[1] == "grid mode 1: inside a node"
    assert cyclic.network.placement(Grid((4, 8))).splitlines()[0] == "grid mode 0: inside a node"
    assert block.along(Grid((8, 4))).byte_time[1] < cyclic.along(Grid((8, 4))).byte_time[1]


def test_json_and_pickle_keep_a_machine():
    machine = Machine.load("cray-xc30", 8, 2)
    back = Machine(**json.loads(json.dumps(machine.as_dict())))
    assert back == machine and back.name == "cray-xc30" and back.profile is None
    assert pickle.loads(pickle.dumps(machine)) == machine
    assert set(DEFAULT.as_dict()) == set(json.loads(json.dumps(DEFAULT.as_dict()))) and len(DEFAULT.as_dict()) == 7


def test_a_plan_keeps_its_machine_as_json():
    plan = rote.compile("[(0),()] -> [(),(0)]", shape=(64, 64), grid=8, machine="k-computer")
    back = rote.Plan.from_json(plan.to_json())
    assert back == plan and back.machine == Machine.load("k-computer") and back.cost == plan.cost
    assert plan.cost != rote.compile("[(0),()] -> [(),(0)]", shape=(64, 64), grid=8).cost


def test_names_of_machines_are_taken_and_wrong_ones_refused_on_all_ranks():
    assert as_machine("fx10") == Machine.load("fx10")

    def call(comm):
        try:
            rote.compile("[(0),()] -> [(),(0)]", shape=(8, 8), grid=comm.size, machine="k-computr")
        except rote.PlanError as error:
            return str(error)

    first, second = run(call, ranks=2)
    assert first == second
    assert first.startswith("there is no machine 'k-computr'\ndid you mean 'k-computer'? the machines are cray-xc30, ")


@pytest.mark.parametrize("bad", [3, b"fx10", ["fx10"]])
def test_what_is_no_machine_is_refused(bad):
    with pytest.raises(rote.PlanError, match=r"a machine is one of rote\.Machine"):
        as_machine(bad)


def test_a_measured_machine_has_its_name_reserved():
    with pytest.raises(rote.PlanError, match="run `rote tune`"):
        Machine.load("here")


def test_a_profile_in_a_file(tmp_path):
    path = tmp_path / "ours.toml"
    path.write_text(K.replace("value = 64e9, low = 46e9", "value = 50e9, low = 46e9"), "utf-8")
    machine = Machine.load(str(path))
    assert machine.name == "ours" and machine.copy_time == 2 / 50e9


def line_of(text, start):
    return next(n for n, line in enumerate(text.splitlines(), 1) if line.startswith(start))


@pytest.mark.parametrize(
    ("old", "new", "field", "why"),
    [
        ("latency = { value = 2e-6", "latency = { value = -2e-6", "latency", "has a number that is not positive"),
        ("latency = { value = 2e-6", 'latency = { value = "2e-6"', "latency", "has a number that is not positive"),
        ("lanes = { value = 2, low = 2", "lanes = { value = 2, low = 3", "lanes", "has 3, 2, 2"),
        (
            "lanes = { value = 2, low = 2,",
            "lanes = { value = 2,",
            "lanes",
            "has not all of value, low, high and source",
        ),
        ("peak = {", "peek = {", "peek", "is no number of a machine whose network is a torus"),
        ("dims = { value = [48, 54, 32]", "dims = { value = []", "dims", "is []"),
        ("dims = { value = [48, 54, 32]", "dims = { value = [48, -54]", "dims", "is [48, -54]"),
        ('topology = { value = "torus"', 'topology = { value = "ring"', "topology", "is 'ring'"),
        ("ranks_per_node = { value = 1,", "ranks_per_node = { value = 9,", "ranks_per_node", "is 9"),
        ("ranks_per_node = { value = 1,", "ranks_per_node = {", "ranks_per_node", "has not both value and source"),
    ],
)
def test_a_mistake_in_a_file_is_refused_with_its_line(tmp_path, old, new, field, why):
    assert K.count(old) >= 1
    text, path = K.replace(old, new), tmp_path / "bad.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(rote.PlanError) as refused:
        Machine.load(str(path))
    first, hint = str(refused.value).split("\n")
    assert first.startswith(f"{path}, line {line_of(text, field)}: {field} {why}") and hint


@pytest.mark.parametrize("text", ["a = ", "\udcff"])
def test_a_file_that_is_no_toml_is_refused(tmp_path, text):
    path = tmp_path / "bad.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(rote.PlanError, match=r"bad\.toml"):
        Machine.load(str(path))
    with pytest.raises(rote.PlanError, match=r"nowhere\.toml cannot be read"):
        Machine.load(str(tmp_path / "nowhere.toml"))


def test_a_missing_number_is_refused_with_what_it_means(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text("\n".join(line for line in K.splitlines() if not line.startswith("injection")), "utf-8")
    with pytest.raises(rote.PlanError, match="injection is missing\nbytes that enter a node"):
        Machine.load(str(path))


@pytest.mark.parametrize(("ranks", "threads"), [(9, None), (0, None), (4, 4), (1, 0), (-1, 2)])
def test_more_ranks_than_cores_are_refused(ranks, threads):
    with pytest.raises(rote.PlanError, match="a node of k-computer has 8 cores, not"):
        Machine.load("k-computer", ranks, threads)


@pytest.mark.parametrize("bad", [{"cache_factor": 0}, {"network": 3}, {"cache": -1}, {"page_factor": "x"}])
def test_a_machine_of_bad_numbers_is_refused(bad):
    with pytest.raises(rote.PlanError, match=f"the {next(iter(bad))} of a machine"):
        Machine(**bad)
