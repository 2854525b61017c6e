"""The guides in notebooks/: programs side by side, scripts for a cluster, the names that they use, and their length."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from pkgutil import resolve_name

import launch
import numpy as np
import pytest
from house import ROOT
from test_house_docs import blocks

from rote.testing.plugin import mpiexec_command

BOOK = ROOT / "notebooks"
COMING = sorted(BOOK.glob("coming-from-*.md"))
AT_LEAST = 10  # programs side by side
PROGRAMS = Path(sys.executable).parent


def side_by_side(page: str) -> int:
    """How many texts, programs of theirs, stand right above a program of ours."""
    found = blocks(page)
    return sum(theirs.language == "text" and ours.language == "python" for theirs, ours in pairwise(found))


def names(page: str) -> set[str]:
    """The public names that a page writes between backticks, such as `rote.fft.FFT`."""
    found = set(re.findall(r"`(rote(?:\.[A-Za-z_]\w*)+)(?=[`(])", page))
    return {name for name in found if not name.endswith((".md", ".py"))}


def scripts() -> list[tuple[str, str]]:
    """The page and the text of every script of the guides."""
    return [
        (page.name, block.text)
        for page in sorted(BOOK.glob("*.md"))
        for block in blocks(page.read_text("utf-8"))
        if block.language == "sh"
    ]


def complaint(script: str) -> str:
    """The mistake that bash finds in a script without running it; empty if there is none."""
    return subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True).stderr


def test_ten_programs_stand_side_by_side() -> None:
    """The pages that lead from other libraries hold ten programs of theirs, each followed by ours, which is run."""
    counts = {page.name: side_by_side(page.read_text("utf-8")) for page in COMING}
    assert sum(counts.values()) >= AT_LEAST, counts
    assert [name for name, count in counts.items() if count < 2] == []


@pytest.mark.parametrize("page", COMING, ids=lambda page: page.stem)
def test_a_page_leads_from_names_to_what_cannot_be_had(page: Path) -> None:
    """Each has a table of names, says what is different and what cannot be had."""
    headings = re.findall(r"^## (.*)$", page.read_text("utf-8"), re.MULTILINE)
    assert headings[0] == "Names"
    assert headings[-2:] == ["What is different", "What cannot be had"]


def test_guides_name_what_there_is() -> None:
    """Every `rote.name` of a guide leads to something."""
    said = {name for page in BOOK.glob("*.md") for name in names(page.read_text("utf-8"))}
    assert len(said) > 15
    for name in sorted(said):
        resolve_name(name)


def test_scripts_are_read_by_bash() -> None:
    """Every script is one that bash can read, and there are some."""
    assert len(scripts()) >= 3
    assert [(page, wrong) for page, script in scripts() if (wrong := complaint(script))] == []


SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
exec {launcher} -n 2 "$@"
"""


def executable(path: Path, text: str) -> None:
    """Write a program that a shell can run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755)


def run_script(page: str, folder: Path, **variables: str) -> str:
    """Run the first script of a guide in a folder, with this Python's programs first on PATH; what it prints."""
    script = next(script for name, script in scripts() if name == page)
    executable(folder / "script.sh", f"set -e\n{script}")
    path = os.pathsep.join([str(folder / "bin"), str(PROGRAMS), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(
        ["bash", "script.sh"],
        cwd=folder,
        env=launch.environment() | {"PATH": path, "COLUMNS": "100", **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.mpi
def test_the_batch_script_runs(tmp_path: Path) -> None:
    """The first script of the cluster guide, where srun is a program that starts two ranks: they meet, and transform a
    file."""
    executable(tmp_path / "bin" / "srun", SRUN.format(launcher=shlex.join(mpiexec_command())))
    executable(tmp_path / ".venv" / "bin" / "activate", "true\n")
    volume = np.random.default_rng(0).random((8, 6, 4))
    np.save(tmp_path / "volume.npy", volume)
    printed = run_script("cluster.md", tmp_path, SLURM_SUBMIT_DIR=str(tmp_path))
    assert printed.count("ok  ranks       2, started by mpiexec") == 1
    assert np.allclose(np.load(tmp_path / "spectrum.npy"), np.fft.rfftn(volume))


@pytest.mark.slow
@pytest.mark.mpi
def test_the_benchmark_is_repeated(tmp_path: Path) -> None:
    """The benchmark on the page of the command line measures, on a small shape, and says of which libraries."""
    executable(tmp_path / "bin" / "mpiexec", f'exec {shlex.join(mpiexec_command())} "$@"\n')
    printed = run_script("cli.md", tmp_path, SHAPE="8x8x8", ROUNDS="1", ROTE_WISDOM="")
    assert printed.count("slab swaps on 2 threads") == 1
    assert printed.count("transforms forward and backward on 2 MPI ranks") == 2
    assert "the libraries of these figures" in printed
    assert json.loads((tmp_path / "times.json").read_text("utf-8"))
