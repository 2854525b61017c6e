"""Files: no command overwrites its input, nor anything else without being told to."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from runner import run

from rote.cli.options import Bytes

ROTE = Path(sys.executable).with_name("rote")
ARRAY = np.random.default_rng(5).standard_normal((4, 6))


@pytest.fixture(autouse=True)
def in_a_folder() -> None:
    """A folder with in.npy under several names, and something to lose."""
    np.save("in.npy", ARRAY)
    os.link("in.npy", "hard.npy")
    os.symlink("in.npy", "soft.npy")
    os.mkdir("folder")
    os.symlink(os.pardir, os.path.join("folder", "up"))


@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize("name", ["in.npy", "./in.npy", "hard.npy", "soft.npy", "folder/up/in.npy"])
@pytest.mark.parametrize("ranks", ["1", "3"])
def test_the_input_is_never_overwritten(name: str, ranks: str, force: tuple[str, ...]) -> None:
    """By whatever name it goes: path, hard link, symbolic link; --force does not help."""
    done = run("fft", "in.npy", name, "--ranks", ranks, *force)
    assert (done.exit_code, done.output.count("Error: ")) == (1, 1)
    assert "is the input, and would be lost; give the result a name of its own" in done.output
    np.testing.assert_array_equal(np.load("in.npy"), ARRAY)


COMMANDS = {
    "fft in.npy lost.npy": ["lost.npy"],
    "show [(0)] --plot lost.png": ["lost.png"],
    "explain [(0)]->[()] --html lost.html": ["lost.html"],
    "bench --shape 4x4 --rounds 1 --ranks 1 --only rote --algorithm slab --dtype c16 --json lost.json": ["lost.json"],
    "bench --shape 4x4 --rounds 1 --ranks 1 --only rote --algorithm slab --dtype c16 --png lost.png": ["lost.png"],
    "wisdom export lost.json": ["lost.json"],
    "demo --size 8 --ranks 1 --dir .": ["volume.npy", "spectrum.npy", "demo.png"],
}


@pytest.mark.parametrize("line", COMMANDS)
def test_nothing_is_overwritten_unless_it_is_told(line: str) -> None:
    """Every command that writes refuses a name that is taken, before the work, and takes it with --force."""
    for name in COMMANDS[line]:
        Path(name).write_text("precious")
        done = run(*line.split())
        assert done.exit_code == 1, done.output
        assert done.output.endswith(
            f"Error: {os.path.join('.' * ('--dir' in line), name)}: this is there already; --force overwrites it\n"
        )
        assert Path(name).read_text() == "precious"
        assert sorted(path.name for path in Path.cwd().iterdir() if path.suffix != ".npy") == sorted(
            {"folder", *({name} if not name.endswith(".npy") else ())}
        )
        Path(name).unlink()
    for name in COMMANDS[line]:
        Path(name).write_text("precious")
    done = run(*line.split(), "--force")
    assert done.exit_code == 0, done.output
    assert all(b"precious" not in Path(name).read_bytes() for name in COMMANDS[line])


@pytest.mark.parametrize(
    "text", ["", "K", "-1", "1.2.3K", "5KK", "5 bits", "1e3", "٣", "0x10", "_5", ".5K", "5i", "5iB", "NaN"]
)
def test_what_is_no_number_of_bytes(text: str) -> None:
    """A text that is none is refused with what to write, never guessed at."""
    done = run("explain", "[(0)] -> [()]", f"--max-bytes={text}")
    assert done.exit_code == 2
    assert "is no number of bytes; write it as 100000, 64K, 1.5GiB or 2MB" in done.output


@pytest.mark.parametrize("power", range(1, 7))
def test_numbers_of_bytes(power: int) -> None:
    """K, k and KiB are powers of 1024, as what Rote prints; KB of 1000; blanks in between are free."""
    letter = " KMGTPE"[power]
    for unit, base in ((letter, 1024), (letter.lower(), 1024), (f" {letter}iB", 1024), (f"{letter}B", 1000)):
        assert Bytes().convert(f"3{unit}", None, None) == 3 * base**power
        assert Bytes().convert(f"2.5{unit}", None, None) == 5 * base**power // 2
    assert run("explain", "[(0)]+(1) -> [()]", "--shape", "4096", "--grid", "2x2", "--max-bytes", "96K").exit_code == 0


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("job", (3,), indirect=True)
def test_the_input_is_safe_on_all_ranks(job, tmp_path):
    """One text and one status from all ranks; the file is as it was."""
    done = job.run(ROTE, "fft", tmp_path / "in.npy", tmp_path / "soft.npy", "--force")
    assert (done.returncode, done.stderr.count("Error: "), done.stdout) == (1, 1, "")
    np.testing.assert_array_equal(np.load(tmp_path / "in.npy"), ARRAY)
