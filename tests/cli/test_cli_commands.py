"""The commands that need no ranks, and what every command answers: `--help`, texts, and JSON for programs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import click
import h5py
import numpy as np
import pytest
from fresh import best
from runner import run

import rote
from rote.cli import main
from rote.cli.output import print_answer
from rote.fft.families.choose import ranking
from rote.fft.request import Arguments, as_request
from rote.layout.indexset import IndexSet
from rote.plot.text import draw


def test_version_and_help() -> None:
    """`--version` is the package's; `--help` names every command, whose help is also that of -h."""
    assert run("--version").output == f"rote {rote.__version__}\n"
    said = run("--help").output
    assert all(f"\n  {name} " in said for name in main.list_commands(click.Context(main)))
    assert "mpiexec -n 4 rote fft small/volume.npy spectrum.npy" in run("fft", "-h").output


@pytest.mark.parametrize("how", [("rote",), (sys.executable, "-m", "rote")])
def test_the_installed_command(how: tuple[str, ...], tmp_path: Path) -> None:
    """`rote` and `python -m rote` are the same."""
    name = str(Path(sys.executable).with_name("rote")) if how == ("rote",) else how[0]
    done = subprocess.run([name, *how[1:], "--version"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"rote {rote.__version__}\n"


# --- show ----------------------------------------------------------------------------------------------------------


def test_grid_modes_that_no_layout_names() -> None:
    """A drawing says over which grid modes a layout is replicated, and a plan over which both of its layouts are."""
    copies = "replicated over grid mode 0: each block is stored on 2 ranks"
    assert f"\n{copies}\n" in run("show", "block[(1),()]").output
    assert run("explain", "block[(1),()] -> block[(),(1)]").output.endswith(f"\nboth layouts are {copies}\n")
    assert "each block is stored on 6 ranks" in run("show", "block[(1),()]", "--grid", "2x2x3").output

    for plain in ("block[(0),(1)] -> block[(0),()]", "block[(1),()] -> block[(),(0)]", "[(0)]+(1) -> [()]"):
        assert "stored" not in run("explain", plain).output


@pytest.mark.parametrize(
    ("layout", "head"),
    [
        ("[]", "[] on (), grid 2"),
        ("[()]", "[()] on (8,), grid 2"),
        ("block[(0),(1)]", "block[(0),(1)] on (8, 8), grid 2x2"),
        ("[(1),(),()]", "[(1),(),()] on (4, 4, 4), grid 2x2"),
        ("block(3,5,2)[(0)]", "block(3,5,2)[(0)] on (10,), grid 3"),
        ("block(2)[(0)]", "block(2)[(0)] on (4,), grid 2"),
        ("block(ceil)[(0)]", "block(ceil)[(0)] on (8,), grid 2"),
        ("cyclic(4,at=2)[(0)]", "cyclic(4,at=2)[(0)] on (16,), grid 3"),
        ("[(0)]|(1@3)", "[(0)]|(1@3) on (8,), grid 2x4"),
        ("a (r s=3): [(0),(1),()]", "a (r s=3): [(0),(1),()] on (4, 6), grid 2x2"),
        ("(a b) c: [(0),()]", "(a b) c: [(0),()] on (8, 8, 8), grid 2"),
    ],
)
def test_show_finds_a_shape_that_fits(layout: str, head: str) -> None:
    """Without --shape and --grid, a small shape and grid that the layout can have."""
    done = run("show", layout)
    assert (done.exit_code, done.output.splitlines()[0]) == (0, head)


def test_show_plots(tmp_path: Path) -> None:
    """--plot leaves a picture, and says so."""
    path = tmp_path / "who.png"
    assert run("show", "block[(0),(1),()]", "--plot", str(path)).output.endswith(f"\nwrote {path}\n")
    assert path.read_bytes().startswith(b"\x89PNG")


KINDS = ("block", "cyclic", "cyclic(4)", "cyclic(3,at=1)", "block(ceil)", "block(floor)")
FORMS = ("{}[(0),(),()]", "{}[(0,1)]", "{}[(1),(0),()]|(2)", "(a b) c: {}[(0,1),()]", "a (r s=4): {}[(1),(0),()]")


@pytest.mark.parametrize("grid", [None, "2x5x1", "40x3x1"])
def test_show_picks_a_shape_in_which_no_rank_is_empty(grid: str | None) -> None:
    """Law: without a shape, every rank that may hold elements holds some, for all kinds, depths and views; but where
    the sizes of a layout leave some empty in any shape, they do."""
    for text in [form.format(kind) for form in FORMS for kind in KINDS]:
        on = [] if grid is None else ["--grid", grid]
        told = json.loads(run("show", text, "--json", *on).output)
        roots = [each for each in told["ranks"] if "|" not in text or each["coordinates"][2] == 0]
        assert len(roots) > 1 and all(0 not in each["block"] for each in roots), text
    fixed = {"[(0:block(10)),()]": [10, 6], "[(0:block(3,0,2)),()]": [3, 0, 2], "[(0:block(1),1)]": [1, 0, 1, 0]}
    for text, sizes in fixed.items():
        told = json.loads(run("show", text, "--json").output)
        assert [each["block"][0] for each in told["ranks"]] == sizes


def test_explain_keeps_within_memory_and_says_why_not() -> None:
    """`--max-bytes` and `--why-not` are those of `compile` and of the plan."""
    text, options = "[(0)]+(1) -> [()]", ("--shape", "4096", "--grid", "2x2")
    fast, lean = rote.tradeoff(text, shape=4096, grid=(2, 2))
    most = ("--max-bytes", str(fast.cost.peak_bytes - 1))
    assert run("explain", text, *options).output == fast.explain() + "\n"
    assert run("explain", text, *options, *most).output == lean.explain() + "\n"
    done = run("explain", text, *options, *most, "--why-not", "allreduce")
    assert done.output == f"{lean.explain()}\nwhy not allreduce: {lean.why_not('allreduce')}\n"


def test_explain_compares_ffts() -> None:
    """`--fft` lists the families on all grids, the one that is taken first, and why others are none, a line each; as
    JSON with figures, or with the reason why there are none.

    Where another costs less than the first, a line says why. `--why` says it of every grid.
    """
    lines = run("explain", "--fft", "64x60x64", "--ranks", "8", "--dtype", "c16").output.splitlines()
    assert lines[0] == "fft of (64, 60, 64) complex128 on 8 ranks, times on the default machine"
    assert lines[1].split() == ["family", "grid", "layout", "moves", "received", "peak", "about"]
    told = answer("explain --fft", "explain", "--fft", "64x60x64", "--ranks", 8, "--dtype", "c16")
    assert (told["transform"], told["shape"], told["dtype"], told["ranks"]) == ("fft", [64, 60, 64], "c16", 8)
    for choice in told["choices"]:
        figures = {type(choice[name]) for name in ("seconds", "received_bytes", "peak_bytes", "moves", "layout")}
        assert figures == ({float, int, str} if choice["why_none"] is None else {type(None)})
    found = ranking(Arguments((64, 60, 64), as_request((64, 60, 64), (0, 1, 2), "fft", np.dtype("c16")), 8))
    none = dict.fromkeys(c.name for c in found if not c.walk)
    taken = "  the first is taken: costs within 10 %"
    said = [line for line in lines[2:] if not line.startswith(taken)]
    cheapest = min(choice.seconds for choice in found)
    assert (len(said) < len(lines) - 2) == (found[0].seconds > cheapest)
    assert [line.split()[0] for line in said] == [c.name for c in found if c.walk] + ["no"] * len(none)
    assert any(line.startswith("  no cyclic on 2x4: axis 1 of [(0),(1),()]: 4 ranks leave 15 of 60") for line in lines)
    assert [line.split()[1] for line in lines if "--why" in line] == ["rows"]
    every = run("explain", "--fft", "64x60x64", "--ranks", "8", "--dtype", "c16", "--why").output.splitlines()
    said = [line for line in every[2:] if not line.startswith(taken)]
    assert [line.split()[0] for line in said] == [c.name if c.walk else "no" for c in found]
    assert every[-1].startswith("  no ") and not any("--why" in line for line in every)


def test_a_bug_shows_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody expects is not made to look like one of the user's."""
    monkeypatch.setattr("rote.plot.text.draw", lambda *args, **more: 1 // 0)
    assert type(run("show", "[(0)]").exception) is ZeroDivisionError


CHOICES = {
    "FFTs": ("from rote import fft\nfft.compare((4096,) * 3, 10**5)\n", 4, 600),
    "explained": ('from rote.cli import main\nmain("explain --fft 8192x8192x8192 --ranks 262144".split())\n', 20, 1000),
}


@pytest.mark.slow
@pytest.mark.parametrize(("code", "seconds", "megabytes"), CHOICES.values(), ids=CHOICES)
def test_choices_for_many_ranks(code: str, seconds: float, megabytes: float) -> None:
    """Law: plans are compared for a hundred thousand ranks and more in seconds, and without a gigabyte."""
    quiet = "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
    run = best(quiet + "".join(f"    {line}\n" for line in code.splitlines()), of="seconds", below=seconds)
    assert run["seconds"] < seconds and run["megabytes"] < megabytes


# --- answers for programs ---------------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "notebooks" / "json-keys.md"
VALUES = "plan decisions attributes links unread parts seconds versions measured default"
AS_IT_COMES = {*VALUES.split()}  # whose keys vary
RNG = np.random.default_rng(5)


def strict(text: str) -> Any:
    """A JSON value; Python's NaN and Infinity are none."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    return json.loads(text, parse_constant=refuse)


@cache
def documented() -> dict[str, set[str]]:
    """Command -> the keys of its answer, by the table of the page."""
    table = PAGE.read_text("utf-8").split("\n| command | keys |\n")[1].split("\n\n")[0]
    rows = [row.strip("|").split("|") for row in table.splitlines()[1:]]
    names = re.compile("`([^`]+)`")
    return {name: {*names.findall(keys)} for commands, keys in rows for name in names.findall(commands)}


def keys_of(value: Any) -> set[str]:
    """The keys of a JSON value and of all that is in it."""
    if isinstance(value, list):
        return {key for part in value for key in keys_of(part)}
    if not isinstance(value, dict):
        return set()
    return {*value} | {key for name, part in value.items() if name not in AS_IT_COMES for key in keys_of(part)}


def answer(name: str, *args: object, status: int = 0) -> Any:
    """The answer of a command with --json: all of the standard output, with the keys that the page lists."""
    done = run(*args, "--json")
    assert (done.exit_code, done.stderr) == (status, ""), done.output
    value = strict(done.stdout)
    assert keys_of(value) == documented()[name], keys_of(value) ^ documented()[name]
    return value


@pytest.mark.parametrize(
    ("layout", "shape", "grid"),
    [("block[(0),(1)]", (5, 4), (2, 3)), ("[(0:cyclic(2)),(),()]|(1)", (7, 1, 0), (3, 2)), ("[()]", (1,), (2,))],
)
def test_show(layout: str, shape: tuple[int, ...], grid: tuple[int, ...]) -> None:
    """Every rank with its coordinates and the global indices that it holds, as periodic sets; as text, a drawing."""
    dist = rote.parse(layout).on(shape, grid)
    for comma in (", ", "x"):
        on = "--shape", comma.join(map(str, shape)), "--grid", comma.join(map(str, grid))
        assert run("show", layout, *on).output == draw(dist) + "\n"
    told = answer("show", "show", layout, *on)
    assert (told["layout"], told["shape"], told["grid"]) == (str(dist.layout), [*shape], [*grid])
    assert [row["rank"] for row in told["ranks"]] == [*range(dist.grid.size)]
    for row in told["ranks"]:
        assert tuple(row["coordinates"]) == dist.grid.coordinates(row["rank"])
        assert tuple(row["block"]) == dist.local_shape(row["rank"])
        for held, indices in zip(row["indices"], dist.indices(row["rank"]), strict=True):
            runs = tuple((first, last) for first, last in held["runs"])
            assert [*IndexSet(held["start"], held["stop"], held["period"], runs)] == [*indices]


def test_explain() -> None:
    """As text what `plan.explain()` says; as JSON the plan, which reads back, and the figures of each step."""
    text, options = "block[(0),()] -> block[(),(0)]", ("--shape", "6x4", "--grid", "2", "--dtype", "c8")
    plan = rote.compile(text, shape=(6, 4), grid=2, dtype="c8")
    assert run("explain", text, *options).output == plan.explain() + "\n"
    verified = run("explain", text, *options, "--verify").output
    assert verified == f"{plan.explain()}\nverified: every element arrives exactly once\n"
    told = answer("explain", "explain", text, *options, "--verify", "--why-not", "allgather")
    assert rote.Plan.from_json(json.dumps(told["plan"])) == plan
    assert (told["lower_bound"], told["optimality"], told["verified"]) == (plan.lower_bound, plan.optimality, True)
    assert told["cost"] == {name: getattr(plan.cost, name) for name in ("seconds", "bytes", "messages", "peak_bytes")}
    assert [step["received_bytes"] for step in told["steps"]] == [plan.cost.bytes]
    assert told["why_not"] == plan.why_not("allgather")
    assert "(8, 8) float64 on grid 3x2" in run("explain", "[(0),()] -> [(),(1)]|(0@2)").output  # small ones that fit
    still = strict(run("explain", "[(0)] -> [(0)]", "--json").stdout)
    assert (still["steps"], still["why_not"], still["verified"]) == ([], None, None)


def test_explain_of_a_contraction() -> None:
    """A text without brackets is a contraction: what `compile_einsum` plans, what the plan says of it, and its JSON."""
    tiles, shapes = "block[(0),(1)]", [(40, 40), (40, 40)]
    sizes = ("--shape", "40x40", "--shape", "40x40")
    options = (*sizes, "--layout", tiles, "--layout", tiles, "--out-layout", tiles, "--grid", "2x2")
    plan = rote.compile_einsum("ik,kj->ij", shapes, [tiles, tiles], (2, 2), layout=tiles)
    assert run("explain", "ik,kj->ij", *options).output == plan.explain() + "\n"
    more = ("--why-not", "stationary a", "--verify")
    why = f"why not stationary a: {plan.why_not('stationary a')}"
    done = run("explain", "ik,kj->ij", *options, *more)
    assert done.output == f"{plan.explain()}\n{why}\nverified: every product of elements enters exactly once\n"

    told = answer("explain ik,kj->ij", "explain", "ik,kj->ij", *options, *more)
    assert rote.Contraction.from_json(json.dumps(told["plan"])) == plan
    assert (told["cost"], told["verified"]) == (plan.cost._asdict(), True)
    assert why == f"why not stationary a: {told['why_not']}"
    assert (told["lower_bound"], told["bound_source"]) == (plan.lower_bound, plan.bound_source)
    assert [stage["stage"] for stage in told["stages"]] == [row.text for row in plan.figures()]
    assert sum(stage["received_bytes"] for stage in told["stages"]) == plan.cost.bytes

    lean = rote.compile_einsum("ik,kj->ij", shapes, [tiles, tiles], (2, 2), layout=tiles, max_bytes=17_000)
    assert lean != plan
    assert run("explain", "ik,kj->ij", *options, "--max-bytes", "17000").output == lean.explain() + "\n"
    free = rote.compile_einsum("ik,kj->ij", shapes, [None, tiles], ranks=4, dtype="c8", layout="cheapest")
    options = (*sizes, "--layout", "free", "--layout", tiles, "--out-layout", "cheapest", "--ranks", "4")
    assert run("explain", "ik,kj->ij", *options, "--dtype", "c8").output == free.explain() + "\n"
    dots = rote.compile_einsum("...i,->...", [(4, 6), ()], grid=2)
    scalar = ("--shape", "4x6", "--shape", "()", "--grid", "2")
    assert run("explain", "...i,->...", *scalar).output == dots.explain() + "\n"


def test_the_table_says_what_figures_do_not() -> None:
    """Of ranks that hold nothing their number, and why one is taken though another costs less by the model."""
    said = {}
    for shape, ranks in (("8x8x8", 100), ("32x32x32", 1), ("32x32x32", 16)):
        line = ("predict", shape, "--ranks", ranks)
        walks = [choice for choice in answer("predict", *line)["choices"] if choice["why_none"] is None]
        text, empty = run(*line).stdout, {choice["empty_ranks"] for choice in walks} - {0}
        assert all(f"{number} of {ranks} ranks hold nothing" in text for number in empty)
        cheaper = min(choice["seconds"] for choice in walks) < walks[0]["seconds"]
        assert cheaper == ("the first is taken: of walks within 10 % of the least time" in text)
        said[ranks] = bool(empty), cheaper
    assert said[100][0] and (said[1], said[16]) == ((False, False), (False, True))


def test_predict_of_several_ranks_and_of_a_job() -> None:
    """Rows for each number of ranks, and a job with its batch file."""
    told = answer("predict --ranks 4,8", "predict", "16x16x16", "--ranks", "4,8")
    assert {row["ranks"] for row in told["choices"]} == {4, 8} and sum(row["best"] for row in told["choices"]) == 2
    job = answer("predict --nodes", "predict", "16x16x16", "--nodes", 2, "--machine", "k-computer")
    assert job["nodes"] == 2 and job["script"].startswith("#!/bin/bash")


def test_fft(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ends, the walk, the seconds and the error; a difference is in the answer, and status 1 as without --json."""
    array = RNG.standard_normal((5, 1, 4))
    np.save("volume.npy", array)
    told = answer("fft", "fft", "volume.npy", "spectrum.npy", "--ranks", 2, "--check", "--layout", "block[(0),(),()]")
    spectrum = np.load("spectrum.npy")
    np.testing.assert_allclose(spectrum, np.fft.rfftn(array), atol=1e-12)
    assert told["input"] == {"shape": [5, 1, 4], "dtype": "f8", "layout": "block[(0),(),()]", "grid": [2]}
    assert (told["output"]["shape"], told["output"]["dtype"]) == ([*spectrum.shape], "c16")
    assert (told["transform"], told["ranks"], told["axes"], told["within"]) == ("rfftn", 2, [0, 1, 2], True)
    assert 0 <= told["error"] <= told["tolerance"] == 1e-10
    assert {"start", "read", "transform", "write"} < {*told["seconds"]} and min(told["seconds"].values()) >= 0
    wrong = spectrum.copy()
    wrong[1, 0, 2] += 1e-3 * np.abs(spectrum).max()
    monkeypatch.setattr("numpy.fft.rfftn", lambda *args: wrong)
    done = run("fft", "volume.npy", "spectrum.npy", "--check", "--force", "--json")
    told = strict(done.stdout)
    assert (done.exit_code, told["within"], told["error"]) == (1, False, pytest.approx(1e-3, rel=0.1))
    text = run("fft", "volume.npy", "spectrum.npy", "--check", "--force").output
    assert "e-03 of the largest value of numpy.fft.rfftn, NOT below 1e-10" in text
    for said in (done.stderr, text):
        assert "Error: spectrum.npy differs from what numpy.fft computes" in said


def test_wisdom(place: Path) -> None:
    """Decisions as their file has them, or how many there are; as text, a line of every one."""
    for number in range(3):
        rote.wisdom.remember(rote.wisdom.key({"what": "test", "number": number}), [number])
    three, there = rote.wisdom.records(), {"path": "all.json", "decisions": 3}
    assert run("wisdom", "show").output == "\n".join([f"3 decisions in {place}", *map(str, three), ""])
    listed = answer("wisdom show", "wisdom", "show")["decisions"]
    assert listed == [rote.wisdom.as_json(record) for record in three]

    assert run("wisdom", "export", "all.json").output == "wrote all.json, with 3 decisions\n"
    assert "--force overwrites it" in run("wisdom", "export", "all.json").output
    assert answer("wisdom export", "wisdom", "export", "all.json", "--force") == there

    assert run("wisdom", "forget", "number=1").output == f"forgot 1 decision in {place}\n{three[1]}\n"
    assert rote.wisdom.records() == (three[0], three[2])
    gone = answer("wisdom show", "wisdom", "forget", "--all")["decisions"]
    assert sorted(map(str, gone)) == sorted(map(str, [listed[0], listed[2]]))
    assert run("wisdom", "show").output == f"0 decisions in {place}\n"
    assert run("wisdom", "import", "all.json").output == f"kept 3 decisions in {place}\n"
    assert answer("wisdom export", "wisdom", "import", "all.json") == there and rote.wisdom.records() == three


def test_the_check_of_tune_has_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """How predictions rank: Spearman's rho and the quantiles of measured over predicted times, per machine."""
    from rote.cli.tune import _ranking, _ranking_table, moves

    plans = moves(2)[:6]
    found = _ranking(plans, [plan.cost.seconds * 2 for plan in plans], {"default": rote.Machine()})
    figures = {"rho": 1.0, "low": 2.0, "median": 2.0, "high": 2.0, "factor": pytest.approx(2.0), "within": 1.0}
    assert found["machines"] == [{"machine": "default", **figures}]
    assert "1.000    2.00 times     100 %" in _ranking_table(found) and "2.00 (most 2.00 to 2.00)" in _ranking_table(
        found
    )


def test_bench() -> None:
    """Without a file the answer is printed; with one the table is, and the file has the answer."""
    options = ["bench", "--moves", "--shape", "4x3", "--ranks", 2, "--rounds", 1]
    options += ["--only", "rote", "--only", "alltoallw"]
    printed = answer("bench", *options)
    done = run(*options, "--json", "bench.json")
    left = strict(Path("bench.json").read_text())
    assert done.output.endswith("wrote bench.json\n") and "median" in done.output
    assert keys_of(left) == documented()["bench"]
    assert [each["name"] for each in left["entries"]] == [each["name"] for each in printed["entries"]]
    assert printed["entries"][0]["median"] == np.median(printed["entries"][0]["seconds"])


def test_contents() -> None:
    """Names, shapes, dtypes and sizes, attributes and steps; as text a table of the same."""
    x = rote.DistTensor.zeros((4, 1), "block[(0),()]", dtype="c8")
    for step in (0, 5):
        rote.save("run.zarr", {"u": x, "v": x}, attributes={"time": 0.5 * step, "lost": float("nan")}, step=step)
    told = answer("contents", "contents", "run.zarr", "--step", 5)
    assert (told["path"], told["step"], told["steps"]) == ("run.zarr", 5, [0, 5])
    assert told["attributes"] == {"time": 2.5, "lost": None}
    facts = {"shape": [4, 1], "dtype": "c8", "bytes": 32, "dims": None, "attributes": {}}
    assert (told["tensors"], told["links"]) == ([{"name": name, **facts} for name in "uv"], {})
    np.save("one.npy", np.zeros((0, 3), "i2"))
    assert answer("contents", "contents", "one.npy")["tensors"][0]["bytes"] == 0
    text = run("contents", "run.zarr").output
    assert re.search(r"^  u +4x1 +complex64 +32 B$", text, re.M) and "  steps 0, 5; this is step 5\n" in text
    rote.save("run.h5", {"u": x}, dims=("t", "y"))
    with h5py.File("run.h5", "r+") as file:
        file["last"], file["gone"] = h5py.SoftLink("/u"), h5py.ExternalLink("lost.h5", "/u")
        file["nothing"] = h5py.Empty("f8")
    told = answer("contents", "contents", "run.h5")
    assert (
        list(told["unread"]) == ["nothing"] and "\n  nothing is an empty data set" in run("contents", "run.h5").output
    )
    assert told["links"] == {"last": "/u", "gone": "lost.h5:/u"}
    assert [(each["name"], each["dims"]) for each in told["tensors"]] == [("last", ["t", "y"]), ("u", ["t", "y"])]
    assert "\n  gone -> lost.h5:/u\n  last -> /u\n" in run("contents", "run.h5").output + "\n"


def test_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    """All findings and their cures; what is broken is in the answer, and status 1 as without --json."""
    monkeypatch.setitem(sys.modules, "rote.fft.kernels.backends.fftw", None)
    for where in ("rote.host.answer", "rote.cli.doctor.answer"):
        monkeypatch.setattr(where, lambda *command: "MPICH")
    told = answer("doctor", "doctor", status=1)
    states = {each["subject"]: each["state"] for each in told["findings"]}
    assert (told["works"], states["pyFFTW"], states["NumPy"]) == (False, "broken", "ok")
    assert all(each["hint"] for each in told["findings"] if each["state"] != "ok")


def test_every_table_has_its_json() -> None:
    """Every command of the menu that prints a table takes --json; demo tells a story, and completion writes files."""
    context = click.Context(main)
    commands = {name: main.get_command(context, name) for name in main.list_commands(context)}
    with_json = set[str]()
    for name, command in commands.items():
        members = command.commands.values() if isinstance(command, click.Group) else [command]
        if all(any("--json" in option.opts for option in member.params) for member in members):
            with_json.add(name)
    assert with_json == {*commands} - {"demo", "completion"}
    assert {name.split()[0] for name in documented()} == with_json


def test_json_in_the_strict_sense(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows or not, nested or not, NaN and infinity are null, and tuples lists."""
    nan, infinite = float("nan"), float("inf")
    for value, plain in (
        (nan, None),
        ([1.5, (-infinite, 2)], [1.5, [None, 2]]),
        ([{"a": infinite}, {"a": 1}], [{"a": None}, {"a": 1}]),
        ({"a": (nan,)}, {"a": [None]}),
        ([], []),
        ({}, {}),
        ("x\n", "x\n"),
    ):
        print_answer({"key": value})
        assert strict(capsys.readouterr().out) == {"key": plain}
