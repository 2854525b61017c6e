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
    wanted = {"k-computer", "cray-xc40", "cray-xc30", "fx10", "sgi-infiniband", "fat-tree", "ethernet", "jean-zay"}
    wanted |= {
        "fugaku",
        "frontier",
        "lumi-g",
        "summit",
        "perlmutter",
        "juwels-booster",
        "snellius",
        "piz-daint",
        "h100",
    }
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
    assert (machine.copy_time, machine.memory_time, machine.byte_time) == (3 / 64e9, 2 / 64e9, 1 / 5e9)
    assert machine.network.near_byte_time == machine.copy_time
    assert machine.fft_time == pytest.approx(5 / 16 / (0.1 * 0.45 * 128e9))
    assert machine.flop_time == pytest.approx(1 / (0.8 * 128e9))  # a product keeps the speed of all threads
    assert machine.network.threads == 8
    shared = Machine.load("k-computer", 8)
    assert shared.network.threads == 1 and shared.copy_time == pytest.approx(8 * machine.copy_time)
    assert shared.fft_time == pytest.approx(8 * 0.45 * machine.fft_time) and shared.cache == machine.cache / 8
    alone = Machine.load("cray-xc40", 1, 1)  # one core does not fill the memory of a node
    assert alone.copy_time == 3 / 11e9


def test_gpus_of_a_node_exchange_by_their_own_links_and_each_sends_through_one_interface(tmp_path):
    """Eight GPUs share four interfaces, and fewer do not fill them; without the two numbers nothing changes."""
    machine, profile = Machine.load("frontier"), read_profile("frontier")
    assert machine.network.near_byte_time == 1 / profile["near"].value != machine.copy_time
    assert (
        machine.network.byte_time == 1 / profile["injection"].value
        and machine.byte_time == 8 * machine.network.byte_time
    )
    of_ranks = [Machine.of(profile, ranks, 1).byte_time * profile["injection"].value for ranks in (1, 2, 4, 8)]
    assert of_ranks == pytest.approx([4, 4, 4, 8])
    assert Machine.of(profile, 4, 2).network.near_byte_time == machine.network.near_byte_time / 2

    old, path = Machine.load("k-computer", 8), tmp_path / "ours.toml"
    assert not {"near", "interfaces"} & {*old.profile.numbers}
    same = ["near = { value = 8e9, low = 8e9, high = 8e9, source = 'ours' }"]  # a rank's part of 64e9
    path.write_text("\n".join([*same, "interfaces = { value = 1, low = 1, high = 1, source = 'ours' }", K]), "utf-8")
    new = Machine.load(path, 8)
    assert new.network == replace(old.network, near_byte_time=1 / 8e9) and replace(new, network=old.network) == old


def test_one_law_gives_the_numbers_that_a_file_leaves_out(tmp_path):
    """An all-to-all reaches less of the links between groups on fixed routes than on adaptive ones."""
    tree, dragonfly = read_profile("fat-tree"), read_profile("cray-xc40")
    assert tree["route_share"].value == 0.38 < 0.77 == dragonfly["route_share"].value
    assert not tree["route_share"].documented and "route_share" not in read_profile("k-computer").numbers
    assert Machine.of(tree).network.far_time == pytest.approx(1 / (0.38 * tree["far"].value))

    path, share = tmp_path / "ours.toml", 'thread_share = { value = 0.9, low = 0.9, high = 0.9, source = "ours" }\n'
    path.write_text(share + K, "utf-8")
    assert (read_profile(path)["thread_share"].value, read_profile("k-computer")["thread_share"].value) == (0.9, 0.45)


@pytest.mark.parametrize("name", Machine.names())
@pytest.mark.parametrize("pick", ["value", "slow", {"memory_rate": "high"}])
def test_more_ranks_of_a_job_on_a_node_never_make_the_first_one_faster(name, pick):
    """Only the ranks of the job share a node, whichever numbers of the machine are picked."""
    profile = read_profile(name)
    cores = int(profile["cores"].value)
    full = Machine.of(profile, cores, 1, pick=pick)
    jobs = [full.on(ranks) for ranks in range(1, cores + 1)]
    for field in ("copy_time", "reduce_time", "memory_time", "fft_time"):
        times = [getattr(job, field) for job in jobs]
        assert times == sorted(times), field
    of_gpus = "near" in profile.numbers or cores == 1  # each has a memory of its own
    assert (jobs[0].memory_time < full.memory_time) != of_gpus and jobs[0].pick == pick
    assert jobs[-1] is full.on(2 * cores) is full and DEFAULT.on(1) is DEFAULT


def test_one_number_at_a_time():
    machine = Machine.load("k-computer", 2)
    other = machine.at({"link": 1e9, "latency": "high"})
    assert other.network == replace(machine.network, link_time=1e-9, latency=5e-6)
    assert machine.at({}) == machine and DEFAULT.at("slow") == DEFAULT
    with pytest.raises(rote.PlanError, match="k-computer has no number 'links'\nit has nodes"):
        machine.at({"links": 1})
    for bad in (-1, float("nan"), float("inf"), None, True, [1], 0):
        with pytest.raises(rote.PlanError, match="latency has a value that is no number from 1e-30 to"):
            machine.at({"latency": bad})
    for pick in ("least", None, 3, {"latency": "least"}):
        with pytest.raises(rote.PlanError, match="is picked by one of value, fast, slow, low, high, not"):
            machine.at(pick)


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
    with pytest.raises(rote.PlanError, match=r"a machine has a name, or the path of a file"):
        Machine.load(bad)


@pytest.mark.parametrize("bad", ["fx10", None, Machine.load("fx10")])
def test_a_machine_is_made_of_a_profile(bad):
    with pytest.raises(rote.PlanError, match=r"a machine is made of a profile(?s:.*)\nwrite Machine\.load\(name\)"):
        Machine.of(bad)


def test_a_profile_in_a_file(tmp_path):
    path = tmp_path / "ours.toml"
    path.write_text(K.replace("value = 64e9, low = 46e9", "value = 50e9, low = 46e9"), "utf-8")
    machine = Machine.load(str(path))
    assert machine.name == "ours" and machine.copy_time == 3 / 50e9


NO = "has a value that is no number from"
BAD = ("-2e-6", '"2e-6"', "nan", "-inf", "inf", "0", "1e99", "1e-300", "true", "[2e-6]", "9" * 400, "1979-05-27")


def line_of(text, start):
    return next(n for n, line in enumerate(text.splitlines(), 1) if line.startswith(start))


@pytest.mark.parametrize(
    ("old", "new", "field", "why"),
    [
        *[
            ("latency = { value = 2e-6", f"latency = {{ value = {bad}", "latency", f"{NO} 1e-30 to 1e+30")
            for bad in BAD
        ],
        ("fft_share = { value = 0.1", "fft_share = { value = 5", "fft_share", f"{NO} 1e-09 to 1"),
        ("page_factor = { value = 1.2, low = 1", "page_factor = { value = 1.2, low = 0.5", "page_factor", f"{NO} 1 to"),
        ("nodes = { value = 82_944", "nodes = { value = 0.2", "nodes", f"{NO} 1 to 1e+09"),
        (
            "cores = { value = 8, low = 8",
            "cores = { value = 8, low = 7.5",
            "cores",
            "has a value that is no whole number",
        ),
        ("high = 6e6, source = ", "high = 6e6, source = 3 } #", "cache", "has no source"),
        ("high = 6e6, source = ", 'high = 6e6, source = "" } #', "cache", "has no source"),
        (
            "dims = { value = [48, 54, 32]",
            "dims = { value = [48, 54, 31]",
            "dims",
            "has 80352 nodes, but nodes is 82944",
        ),
        ("lanes = { value = 2, low = 2", "lanes = { value = 2, low = 3", "lanes", "has 3, 2, 2"),
        (
            "lanes = { value = 2, low = 2,",
            "lanes = { value = 2,",
            "lanes",
            "has not all of value, low, high and source",
        ),
        ("peak = {", "peek = {", "peek", "is no number of a machine whose topology is 'torus'"),
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


@pytest.mark.parametrize("text", ["a = ", "\udcff", "", f"nodes = {'9' * 5000}", K[:999], K + "latency = 1"])
def test_a_file_that_is_no_toml_is_refused(tmp_path, text):
    path = tmp_path / "bad.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(rote.PlanError, match=r"bad\.toml"):
        Machine.load(str(path))
    for name in ("nowhere.toml", "", "\0.toml", f"{'x' * 5000}.toml"):
        with pytest.raises(rote.PlanError, match=r"the machine (?s:.*) cannot be read"):
            Machine.load(f"{tmp_path}/{name}")


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_a_file_that_is_not_in_utf8_is_refused_with_its_line(tmp_path, start):
    path = tmp_path / "bad.toml"
    path.write_bytes(start + "a = 1\r\n# one\n# Köln\n".encode("latin-1"))
    with pytest.raises(rote.PlanError, match=r"bad\.toml, line 3: its bytes are no UTF-8 text\nsave the file as"):
        Machine.load(str(path))


def test_a_file_may_begin_as_editors_of_windows_write_it(tmp_path):
    path = tmp_path / "k-computer.toml"
    path.write_bytes(("\ufeff" + K.replace("\n", "\r\n")).encode())
    assert Machine.load(str(path)).profile == Machine.load("k-computer").profile


def test_a_missing_number_is_refused_with_what_it_means(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text("\n".join(line for line in K.splitlines() if not line.startswith("injection")), "utf-8")
    with pytest.raises(rote.PlanError, match="injection is missing\nbytes that enter a node"):
        Machine.load(str(path))


@pytest.mark.parametrize(("ranks", "threads"), [(9, None), (0, None), (4, 4), (1, 0), (-1, 2)])
def test_more_ranks_than_cores_are_refused(ranks, threads):
    with pytest.raises(rote.PlanError, match="a node of k-computer has 8 cores, not"):
        Machine.load("k-computer", ranks, threads)


@pytest.mark.parametrize("bad", [2.0, "2", True, float("nan"), [1]])
def test_ranks_and_threads_are_integers(bad):
    for given in ({"ranks_per_node": bad}, {"threads": bad}):
        with pytest.raises(rote.LayoutError, match=f"{next(iter(given))} is an integer, not"):
            Machine.load("k-computer", **given)


NETWORKS = [{"network": {}}, {"network": {"dims": [2]}}, {"network": {"nodes": 3, "hosts": 2}}]


@pytest.mark.parametrize("bad", [{"cache_factor": 0}, {"network": 3}, {"cache": -1}, {"page_factor": "x"}, *NETWORKS])
def test_a_machine_of_bad_numbers_is_refused(bad):
    with pytest.raises(rote.PlanError, match=f"the {next(iter(bad))} of a machine"):
        Machine(**bad)
