"""Predictions: parts that add up, ranges, what decides, and `rote predict` on ranks, nodes and machines."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from click.testing import Result
from runner import Runner

import rote
from rote.cli import main
from rote.errors import PlanError
from rote.fft.families import choose
from rote.functions.contraction import compile as compile_of_contractions
from rote.machines.machine import Machine
from rote.machines.work import Work
from rote.prediction import Prediction, deciders
from rote.runtime.comm.protocol import Comm
from rote.units import in_seconds

PLANNED = {
    "plan": lambda machine: rote.compile("[(0),()]+(1) -> [(),(0)]", shape=(64, 48), grid=(2, 2), machine=machine),
    "walk": lambda machine: rote.fft.compare((64, 64, 64), 16, machine=machine)[0].walk,
    "contraction": lambda machine: rote.compile_einsum("ik,kj->ij", [(256, 256)] * 2, ranks=8, machine=machine),
}


def run(*args: object) -> Result:
    """A command line, in this process."""
    return Runner().invoke(main, [*map(str, args)])


@pytest.mark.parametrize("machine", [None, "k-computer"])
@pytest.mark.parametrize("kind", PLANNED)
def test_parts_add_up_to_the_cost(kind: str, machine: str | None) -> None:
    """Law: the parts are positive, sum to the seconds, and these are those of the plan's own cost and in the range."""
    planned = PLANNED[kind](machine)
    told = rote.predict(planned)
    assert sum(dict(told.parts).values()) == pytest.approx(told.seconds)
    assert min(dict(told.parts).values()) > 0
    assert told.range[0] <= told.seconds <= told.range[1]
    assert (told.range[0] < told.range[1]) == (machine is not None)
    if kind != "walk":
        assert told.seconds == pytest.approx(planned.cost.seconds)
        assert told.peak_bytes == planned.cost.peak_bytes
    first, *_ = str(told).splitlines()
    assert first.startswith("default machine, grid" if machine is None else "k-computer, 1 rank of 8 threads on a node")
    assert json.loads(json.dumps(told.as_dict()))["seconds"] == told.seconds


def test_a_part_is_what_its_cause_takes() -> None:
    """On a machine on which only one thing takes time, that is the only part, and what limits."""
    nothing = dict.fromkeys(
        ("latency", "byte_time", "copy_time", "reduce_time", "step_time", "flop_time", "fft_time"), 0
    )
    plan = PLANNED["plan"](None)
    causes = {"latency": "latency", "byte_time": "network", "copy_time": "copies", "reduce_time": "sums"}
    for time, name in {**causes, "step_time": "software"}.items():
        told = rote.predict(plan, Machine(**{**nothing, time: 1e-6}))
        assert [part for part, _ in told.parts] == [name] and told.limit == name


def test_auto_and_predictions_agree() -> None:
    """Law: the seconds of a choice's prediction are its price; compiled moves of its walk take as long or less."""
    for machine in (None, "k-computer"):
        for choice in rote.fft.compare((32, 24, 40), 8, machine=machine):
            if choice.walk is not None and choice.prediction is not None:
                assert choice.prediction.seconds == pytest.approx(choice.seconds)
                assert rote.predict(choice.walk).seconds <= choice.seconds * (1 + 1e-9)
    f = rote.fft.FFT((8, 8, 8), machine="k-computer")
    assert rote.predict(f).seconds == rote.predict(f.walk).seconds > 0


@pytest.mark.parametrize("machines", [("k-computer", "fat-tree"), (Machine(), Machine.load("k-computer"))])
def test_ranks_compare_their_machines(machines: Sequence[Machine | str]) -> None:
    """An FFT for another machine on another rank is refused on all, even if both have the same walk."""

    def program(comm: Comm) -> None:
        machine = machines[comm.rank]
        f = rote.fft.FFT((8, 8, 8), "block[(0),(),()]", comm=comm, algorithm="slab", machine=machine)
        f.forward(rote.DistTensor.zeros((8, 8, 8), "block[(0),(),()]", comm, dtype="c16"))

    with pytest.raises(rote.LayoutError, match="FFT is one call of all ranks, but rank 0 gives it"):
        rote.run(program, ranks=2)


def test_nodes_stand_for_their_ranks() -> None:
    """Nodes are those of the machine, with its ranks on each; without a machine of nodes they are refused."""
    four = Machine.load("k-computer", ranks_per_node=4)
    assert rote.fft.compare((16, 16), nodes=2, machine=four) == rote.fft.compare((16, 16), 8, machine=four)
    for wrong in ({"nodes": 2}, {}, {"ranks": 2, "nodes": 2, "machine": four}):
        with pytest.raises(rote.LayoutError, match="give ranks=… or nodes=…"):
            rote.fft.compare((16, 16), **wrong)


def test_what_is_not_planned_is_refused() -> None:
    """A layout is nothing planned; a machine that nobody knows is named, and one with too few nodes."""
    with pytest.raises(TypeError, match="not Layout"):
        rote.predict(rote.parse("[(0)]"))  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="no machine 'k-computr'"):
        rote.predict(PLANNED["plan"](None), "k-computr")


def test_what_decides_between_rivals() -> None:
    """A number decides if the other rival is faster at one of its ends: many short exchanges against arithmetic."""
    machine = Machine.load("k-computer")
    network = rote.predict(rote.compile("block[(0),()] -> block[(),(0)]", shape=(512, 512), grid=8, machine=machine))
    work = Work("product", 0, flops=int(1.02 * network.seconds / machine.flop_time))
    product, tenfold = (replace(network.tasks, every=every) for every in ((work,), network.tasks.every * 10))
    found = deciders([network, Prediction(product, machine)])
    assert {"exchange", "product_share", "latency"} <= {*found} and "link" not in found
    assert deciders([network, Prediction(tenfold, machine)]) == ()


def test_grids_of_other_order_are_priced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: leaving out grids that differ in the order of their modes alone changes neither the choice nor prices."""
    for dtype, machine in (("c16", None), ("f8", None), ("c16", "k-computer")):
        found = []
        for many in (10**9, 1):
            monkeypatch.setattr(choose, "_MANY", many)
            rote.clear_caches()
            every = rote.fft.compare((64, 64, 64), 64, dtype=dtype, machine=machine)
            least = {name: min(c.seconds for c in every if c.name == name) for name in {c.name for c in every}}
            found.append((every[0].walk, every[0].price, least, sum(c.walk is not None for c in every)))
        assert found[0][:3] == found[1][:3] and found[0][3] > found[1][3]


def test_a_table_is_what_predict_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: each entry is the prediction of the first walk of its family that every rank takes part in, and that fits in
    memory; the others have a reason. The taken one is what FFT takes, and lines are shown when they are known."""
    lines: list[str] = []
    table = rote.fft.scaling((32, 32, 32), [4, 32, 64], "f8", "k-computer", show=lines.append)
    assert "\n".join(lines) == str(table) and [row.ranks for row in table.rows] == [4, 32, 64]
    for row in table.rows:
        every = rote.fft.compare((32, 32, 32), row.ranks, dtype="f8", machine="k-computer")
        assert row.taken == every[0].name and row.best.keys() | row.none.keys() == {*table.families}
        assert not row.best.keys() & row.none.keys() and all(row.none.values())
        for name, told in row.best.items():
            able = [
                c for c in every if c.walk and c.name == name and not (choose.idle(c.walk) or choose.crowded(c.walk))
            ]
            assert told == able[0].prediction and told.seconds == pytest.approx(able[0].seconds)
    grown = rote.fft.scaling((32, 32, 32), [4, 12, 16], "f8", "k-computer", weak=True)
    assert [row.ranks for row in grown.rows] == [4, 16]
    (alone,) = rote.fft.scaling((64, 64, 32), [16], "f8", "k-computer").rows
    assert grown.rows[1] == alone
    monkeypatch.setattr(Prediction, "memory_bytes", min(told.node_bytes for told in alone.best.values()))
    (poor,) = rote.fft.scaling((64, 64, 32), [16], "f8", "k-computer").rows
    assert 0 < len(poor.best) < len(alone.best)
    assert all("of memory on a node, which has" in poor.none[name] for name in alone.best.keys() - poor.best.keys())


def test_hours_are_those_of_whole_nodes() -> None:
    """Law: node-hours are the seconds on all nodes that hold a rank, core-hours those of all their cores."""
    walk = rote.fft.compare((64, 64, 64), 24, dtype="f8", machine="cray-xc30")[0].walk
    told = rote.predict(walk, "cray-xc30")
    assert told.node_hours == pytest.approx(2 * told.seconds / 3600)  # 16 ranks on a node
    assert told.core_hours == pytest.approx(16 * told.node_hours)
    assert "1000 of them: " in str(told) and "core-hours" in str(told)

    alone = rote.predict(rote.compile("block[(0)] -> [()]", shape=64, grid=4))
    assert alone.node_hours == alone.core_hours == 0 and "hours" not in str(alone)


def test_too_much_memory_is_said_first_and_ends_with_status_1() -> None:
    """Law: what does not fit into a node is told before its figures, and no script takes it for a success."""
    line = ("predict", "4096x4096x4096", "--machine", "k-computer", "--ranks")
    done = run(*line, 16)
    assert done.exit_code == 1 and done.output.startswith("too much memory: 128.0 GiB on a rank, 128.0 GiB on a node")
    assert run(*line, 16, "--json").exit_code == run(*line, "16,32").exit_code == 1
    assert run(*line, 256).exit_code == run(*line, "16,256").exit_code == 0


def test_a_family_without_a_time_has_its_true_reason() -> None:
    """Law: every row has a reason for each family without a time; no room is the reason of all, whatever the points."""
    none, prime = (rote.fft.scaling((64,) * 3, [n], machine="k-computer").rows[0].none for n in (131072, 7))
    assert [*none] == ["slab", "pencil", "volumetric", "cyclic", "rows", "ragged"]
    assert all(why.startswith("the machine has 82944 nodes") for why in none.values())

    assert prime["pencil"] == prime["volumetric"] == "7 ranks make no grid that it takes"
    assert "another family" in prime["ragged"] and "7 ranks do not divide 64 points" in prime["cyclic"]

    (row,) = rote.einsum_scaling("ik,kj->ij", [(512, 512)] * 2, [4]).rows
    assert {*row.none} == {"2.5-D", "3-D", "other"} and all("cheaper" in why for why in row.none.values())


def test_a_sweep_of_ranks(tmp_path: Path) -> None:
    """A row for each number of ranks, with what Rote takes marked; the files agree, and slab stops at its points."""
    path, picture = tmp_path / "table.csv", tmp_path / "scaling.png"
    done = run("predict", "32x32x32", "--machine", "k-computer", "--ranks", "16..64", "--csv", path, "--plot", picture)
    assert done.exit_code == 0, done.output
    first, head, *lines = done.stdout.splitlines()
    assert "k-computer" in first and head.split()[:3] == ["ranks", "slab", "pencil"]
    assert [line.split()[0] for line in lines[:3]] == ["16", "32", "64"]
    assert all(line.count("*") == 1 for line in lines[:3])
    assert "no slab from 64 ranks: there are more ranks along an axis than points" in lines
    assert picture.read_bytes()[:4] == b"\x89PNG"
    rows = [*csv.DictReader(path.read_text().splitlines())]
    for ranks in (16, 32, 64):
        (best,) = [row for row in rows if row["ranks"] == str(ranks) and row["best"] == "True"]
        taken = rote.fft.compare((32, 32, 32), ranks, dtype="f8", machine="k-computer")[0]
        assert (best["family"], float(best["seconds"])) == (taken.name, taken.seconds)
        assert float(best["low"]) < float(best["seconds"]) < float(best["high"])
    told = json.loads(run("predict", "32x32x32", "--ranks", "4,8", "--json").stdout)
    assert told["ranks"] == [4, 8] and {"family", "grid", "seconds"} <= told["choices"][0].keys()


def test_a_figure_can_stand_in_a_proposal() -> None:
    """Law: the figure names machine, version and date, has a tick at each number of ranks, and bands that differ."""
    table = rote.fft.scaling((64, 64, 64), [4, 12, 64], "f8", "k-computer")
    figure = table.plot()
    (axes,), title = figure.axes, figure.get_suptitle()

    assert "k-computer" in title and rote.__version__ in title and date.today().isoformat() in title
    assert [*axes.get_xticks()] == [4, 12, 64] and [*axes.get_xticks(minor=True)] == []
    bands = [(band.get_hatch(), tuple(band.get_edgecolor()[0])) for band in axes.collections]
    assert len({*bands}) == len(bands) > 2 and all(hatch for hatch, _ in bands)

    lines = {line.get_label(): line for line in axes.get_lines() if line.get_label() != "ideal"}
    assert len({(str(line.get_linestyle()), line.get_marker()) for line in lines.values()}) == len(lines)
    ends = {label.get_text(): label.xy for label in axes.texts}  # each name stands at the end of its line
    assert ends == {name: tuple(line.get_xydata()[-1]) for name, line in lines.items()}


def test_published_times_stand_beside_the_bands() -> None:
    """In strong scaling, under the names of their codes."""
    table = rote.fft.scaling((64, 64, 64), [4, 16], "f8", "k-computer")
    weaker = rote.fft.scaling((64, 64, 64), [4, 16], "f8", "k-computer", weak=True)
    figure = table.plot(weaker, published={"ours": {4: 1e-3, 16: 2e-4}, "theirs": {8: 1e-3}})
    strong, weak = ({line.get_label(): line for line in axes.get_lines()} for axes in figure.axes)
    assert strong["ours, measured"].get_xydata().tolist() == [[4, 1e-3], [16, 2e-4]]
    assert strong["theirs, measured"].get_linestyle() == "None" and not {"ours, measured"} & {*weak}


def test_a_sweep_of_a_contraction() -> None:
    """Families of products over ranks; the best takes as long as the contraction that is planned."""
    shapes = ("--shape", "256x256") * 2
    told = json.loads(run("predict", "ik,kj->ij", *shapes, "--ranks", "4,16", "--json").stdout)
    for ranks in (4, 16):
        seconds = [row["seconds"] for row in told["choices"] if row["ranks"] == ranks and row["seconds"]]
        plan = rote.compile_einsum("ik,kj->ij", [(256, 256)] * 2, ranks=ranks)
        assert min(seconds) == pytest.approx(plan.cost.seconds, rel=0.1 + 1e-9)
    assert run("predict", "ik,kj->ij", "--ranks", 4).exit_code == 2
    (row,) = rote.einsum_scaling("ik,kj->ij", [(256, 256)] * 2, [4], machine="k-computer").rows
    plan = rote.compile_einsum("ik,kj->ij", [(256, 256)] * 2, ranks=4, machine="k-computer")
    assert row.best[row.taken] == plan.prediction


def test_of_many_grids_only_the_best_of_each_family_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid whose contraction is slower than another of its family is priced, and no plan is compiled and proved."""
    planned = list[float]()
    from_tree = compile_of_contractions.from_tree
    monkeypatch.setattr(
        compile_of_contractions, "from_tree", lambda *found: [from_tree(*found), planned.append(0.0)][0]
    )
    (row,) = rote.einsum_scaling("ik,kj->ij", [(256, 256)] * 2, [64]).rows
    assert len(planned) == 1 + len(row.best)  # the fastest of all is also asked for fewer ranks

    plans = [rote.compile_einsum("ik,kj->ij", [(256, 256)] * 2, grid=tuple(n)) for n in ([64], [8, 8], [4, 4, 4])]
    assert row.best[row.taken].seconds <= min(plan.cost.seconds for plan in plans) * (1 + 1e-9)


def test_a_job(tmp_path: Path) -> None:
    """A job fills the nodes, and its batch file names what was chosen; no walk of its ranks is priced lower."""
    script = tmp_path / "job.sh"
    line = ("predict", "64x64x64", "--machine", "k-computer", "--nodes", 4)
    told = json.loads(run(*line, "--json", "--slurm", script).stdout)
    assert told["ranks_per_node"] * told["threads"] == 8 and told["prediction"]["seconds"] >= told["bound"] > 0
    text = script.read_text()
    assert text == told["script"] and text.startswith("#!/bin/bash\n#SBATCH")
    for part in (f"--ntasks-per-node={told['ranks_per_node']}", told["layout"], f"--algorithm {told['family']}"):
        assert part in text
    one = rote.fft.compare((64, 64, 64), 4, dtype="f8", machine="k-computer")[0]
    assert told["prediction"]["seconds"] <= one.seconds


def test_a_job_has_a_rank_for_each_gpu() -> None:
    """None that drives several: then its arrays would lie on several, too."""
    job = rote.fft.job((64, 64, 64), 4, "perlmutter")
    assert (job.ranks_per_node, job.threads) == (4, 1) and "4 ranks of 1 thread on a node" in str(job)


def test_ranks_without_room_are_refused() -> None:
    """More ranks than all nodes hold end with an error; of several numbers, the others have their rows."""
    none = run("predict", "64x64x64", "--machine", "k-computer", "--ranks", 82945)
    assert none.exit_code == 1 and none.output.startswith("Error: the machine has 82944 nodes, on which grid 82945")
    some = run("predict", "64x64x64", "--machine", "k-computer", "--ranks", "64,131072")
    assert (
        some.exit_code == 0
        and "no slab, pencil, volumetric, cyclic, rows from 131072 ranks: the machine has 82944 nodes" in some.output
    )


def test_very_many_ranks_are_refused_at_once() -> None:
    """Of ranks without room one grid of each family says why; more ranks than can be compared are refused."""
    found = rote.fft.compare((64, 64, 64), 131072, machine="k-computer")
    assert {choice.source.grid.shape for choice in found} == {(131072,)}
    assert all(choice.walk is None and "has no room at 1 rank a node" in choice.why for choice in found[:1])
    with pytest.raises(rote.LayoutError, match="on 1 to 4194304 ranks, not 100000000000000000"):
        rote.fft.compare((64, 64, 64), 10**17)


def test_a_job_without_room_is_refused() -> None:
    """Too little memory is refused with the smallest number of nodes that has enough; one fewer has not."""
    line = ("predict", "1024x1024x1024", "--machine", "k-computer", "--nodes")
    refused = run(*line, 1)
    assert refused.exit_code == 1 and "which have 14.9 GiB" in refused.stderr
    (enough,) = re.findall("take ([0-9]+) nodes or more", refused.stderr)
    assert run(*line, enough).exit_code == 0
    assert run(*line, int(enough) - 1).exit_code == 1
    with pytest.raises(rote.LayoutError, match="1 node or more, not 0"):
        rote.fft.job((8, 8), 0, "k-computer")
    with pytest.raises(PlanError, match="k-computer has 82944 nodes, not 82945"):
        rote.fft.job((8, 8), 82945, "k-computer")
    with pytest.raises(PlanError, match=r"a job runs on the nodes of a machine\nname one, of .*k-computer"):
        rote.fft.job((8, 8), 2)


def test_a_job_smaller_than_a_node_is_planned_as_it_is_predicted():
    """Only its own ranks share the memory of the node, for moves, transforms and contractions alike."""
    machine = Machine.load("fat-tree")
    alone = Machine.load("fat-tree", 2, 1)
    assert machine.on(2) == alone != machine

    text = "block[(0),()] -> block[(),(0)]"
    plan = rote.compile(text, shape=(512, 512), grid=2, machine=machine)
    assert plan.machine == alone and plan.cost.seconds == rote.predict(plan, machine).seconds

    choice = rote.fft.compare((64, 64, 64), ranks=2, machine=machine)[0]
    assert choice.walk.machine == alone and choice.prediction.seconds == choice.price.seconds

    whole, part = (rote.compile_einsum("ik,kj->ij", [(64, 64)] * 2, ranks=2, machine=node) for node in (machine, alone))
    assert whole.prediction.seconds == part.prediction.seconds


def test_what_was_planned_for_another_machine_says_so_and_how_long_its_own_plan_takes() -> None:
    """Of a walk the moves are planned again; a plan only names its machine, and neither does so where it is at home."""
    walk = rote.fft.compare((64, 64, 64), 64, "[(0,1),(),()]", (8, 8), machine=Machine(latency=1.0))[0].walk
    assert walk is not None
    there = Machine.load("k-computer")
    again = replace(walk, machine=there)
    line = f"planned for machine of latency 1.0 s; replanned: {in_seconds(rote.predict(again).seconds)}"
    assert str(rote.predict(walk, there)).splitlines()[2] == line
    assert all("planned for" not in str(rote.predict(it)) for it in (walk, again))

    plan = rote.compile("[(0)] -> block[(0)]", shape=64, grid=4)
    assert "\nplanned for default machine\n" in str(rote.predict(plan, "fat-tree"))
    small = rote.compile("[(0)] -> block[(0)]", shape=64, grid=4, machine="fat-tree")
    assert "planned for" not in str(rote.predict(small)) + str(rote.predict(small, "fat-tree"))
