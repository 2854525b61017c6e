"""The commands that need no ranks, and the way every command ends: `rote show`, `explain`, `--help`, errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fresh import best
from runner import run

import rote
from rote.fft.families.choose import ranking
from rote.fft.request import Arguments, as_request


def test_version_and_help() -> None:
    """`--version` is the package's; `--help` names every command, and each command has a help of its own."""
    assert run("--version").output == f"rote {rote.__version__}\n"
    said = run("--help").output
    for name in ("show", "explain", "fft", "demo", "doctor", "bench", "tune"):
        assert f"\n  {name} " in said
        assert run(name, "--help").exit_code == 0
    assert "mpiexec -n 4 rote fft small/volume.npy spectrum.npy" in run("fft", "-h").output


@pytest.mark.parametrize("how", [("rote",), (sys.executable, "-m", "rote")])
def test_the_installed_command(how: tuple[str, ...], tmp_path: Path) -> None:
    """`rote` and `python -m rote` are the same."""
    name = str(Path(sys.executable).with_name("rote")) if how == ("rote",) else how[0]
    done = subprocess.run([name, *how[1:], "--version"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"rote {rote.__version__}\n"


# --- show -----------------------------------------------------------------------------------------------------------


def test_show_draws_the_distribution() -> None:
    """`rote show` prints what `rote.plot.text.draw` says of the layout on the shape and the grid."""
    from rote.plot.text import draw

    dist = rote.parse("block[(0),()]").on((3, 4), 2)
    assert run("show", "block[(0),()]", "--shape", "3x4", "--grid", "2").output == draw(dist) + "\n"
    assert run("show", "block[(0),()]", "--shape", "3, 4", "--grid", "2").output == draw(dist) + "\n"


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


# --- explain --------------------------------------------------------------------------------------------------------


def test_explain_finds_a_small_example() -> None:
    """Without shape and grid, `rote explain` takes small ones that fit both layouts."""
    done = run("explain", "[(0),()] -> [(),(1)]|(0@2)")
    assert done.exit_code == 0
    assert "(8, 8) float64 on grid 3x2" in done.output


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
    """`--fft` lists the families on all grids, the one that is taken first, and why others are none, a line each.

    Where another costs less than the first, a line says why. `--why` says it of every grid.
    """
    lines = run("explain", "--fft", "64x60x64", "--ranks", "8", "--dtype", "c16").output.splitlines()
    assert lines[0] == "fft of (64, 60, 64) complex128 on 8 ranks, times on the default machine"
    assert lines[1].split() == ["family", "grid", "layout", "moves", "received", "peak", "about"]
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


# --- errors ---------------------------------------------------------------------------------------------------------


def test_a_bug_shows_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody expects is not made to look like one of the user's."""
    monkeypatch.setattr("rote.plot.text.draw", lambda *args, **more: 1 // 0)
    assert type(run("show", "[(0)]").exception) is ZeroDivisionError


CHOICES = {
    "FFTs": ("from rote import fft\nfft.compare((4096,) * 3, 10**5)\n", 4, 600),
    "explained": (
        'from rote.cli import main\nmain(["explain", "--fft", "8192x8192x8192", "--ranks", "262144"])\n',
        20,
        1000,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("code", "seconds", "megabytes"), CHOICES.values(), ids=CHOICES)
def test_choices_for_many_ranks(code: str, seconds: float, megabytes: float) -> None:
    """Law: plans are compared for a hundred thousand ranks and more in seconds, and without a gigabyte."""
    quiet = "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
    run = best(quiet + "".join(f"    {line}\n" for line in code.splitlines()), of="seconds", below=seconds)
    assert run["seconds"] < seconds and run["megabytes"] < megabytes
