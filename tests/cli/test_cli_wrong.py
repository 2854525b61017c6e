"""Command lines that are wrong: one text, a status, no traceback, and nothing is measured, written or lost."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from runner import refused, run

from rote import wisdom
from rote.cli.options import Bytes

LINES = {
    "show '[(0),()]' --shape 3": (1, "order 2"),
    "show '[(0),(2)]' --grid 2x2": (1, "names grid mode 2"),
    "show '[(0),()]' --grid 0": (1, "at least one process"),
    "show '[(0),()]' --shape 3x": (2, "write it as 8x9x10"),
    "show '[(0),()]' --shape ٣x3": (2, "write it as 8x9x10"),
    f"show '[(0),()]' --grid {'9' * 5000}": (2, "write it as 2x2"),
    "show '[(0)]' --grid 1000000x1000000 --json": (1, "a grid has at most 4,194,304 processes"),
    "show '[(0),()] -> [(),(0)]'": (1, 'try: rote explain "[(0),()] -> [(),(0)]"'),
    "show '[(0),1]'": (1, "\n    [(0),1]\n         ^\n"),
    "show '[(0)]' --plot no/where.png": (1, "no: there is no such folder"),
    "show '[(0)]' --plot x.txt": (2, "x.txt does not end as a picture does; write .png, .pdf,"),
    "show '[(0)]' --plot x": (2, "x does not end as a picture does"),
    "show": (2, "Missing argument"),
    "sho": (2, "No such command 'sho'.\ndid you mean show?\n"),
    "FFT a.npy": (2, "No such command 'FFT'.\ndid you mean fft?\n"),
    "help": (2, "No such command 'help'.\ndid you mean --help?\n"),
    "version": (2, "No such command 'version'.\ndid you mean --version?\n"),
    "explain block[(0),()] block[(),(0)]": (2, 'write rote explain "block[(0),()] -> block[(),(0)]"\n'),
    "explan": (2, "No such command 'explan'.\ndid you mean explain?\n"),
    "zzz": (2, "No such command 'zzz'.\ntry: rote --help"),
    "predict 64x64 --ranks 2 --machine mine": (1, "there is no machine 'mine'\nthe machines are "),
    "explain 'block[(0),()]' --shape 6x4 --grid 2": (1, 'write "block[(0),()] -> …"'),
    "explain --fft 64": (2, "write rote explain --fft 64x64 --ranks 4"),
    "explain '[(0)] -> [()]' --why": (2, "--why is for FFTs"),
    "explain '[(0)] -> [()]' --ranks 4": (2, "--ranks is for a contraction and FFTs"),
    "explain ik,kj->ij": (2, "write a --shape for each operand, and --grid or --ranks"),
    "explain ik,kj->ij --shape 4x4 --shape 4x4": (2, "--grid or --ranks"),
    "explain i->i --shape 4 --ranks 2 --grid 2": (2, "--grid or --ranks"),
    "explain i->i --shape 4 --ranks 2 --wire f4": (2, "--wire is for a transition, not for"),
    "explain i->i --shape 4 --ranks 2 --why": (2, "--why is for FFTs, not for a contraction"),
    "explain ik,kj->ij --shape 4x4 --ranks 2": (1, "subscripts for 2 operands, not 1"),
    "explain i->j --shape 4 --ranks 2": (1, "no operand has the letter 'j'"),
    "explain i->i --shape 4 --ranks 2 --layout '[(0)]' --layout '[(0)]'": (1, "2 layouts for 1 operand"),
    "explain i->i --shape 4 --ranks 2 --why-not cannon": (1, "write one of stationary C"),
    "explain '[(0)] -> [()]' --shape 4 --shape 4": (2, "several --shape are for a contraction"),
    "explain '[(0)] -> [()]' --layout '[(0)]'": (2, "--layout is for a contraction, not for a tra"),
    "explain --fft 8x8 --ranks 2 --out-layout '[()]'": (2, "--out-layout is for a contraction,"),
    "explain": (2, "write a transition"),
    "explain '[(0)] -> [()]' --shape 4 --grid 2 --dtype S3": (1, "not |S3"),
    "explain '[(0)] -> [()]' --shape 4 --grid 2 --max-bytes 9": (1, "write max_bytes=96"),
    "explain --fft 8x8 --ranks 2 --shape 8x8": (2, "--shape is for a transition and a"),
    "explain --fft 8x8 --ranks 2 --dtype q": (1, "not of int64; write f4"),
    "explain '[(0)] -> [()]' --html ''": (1, "this is a folder; name a file in it"),
    "predict 64y64 --ranks 4": (2, "'64y64' is not made of integers"),
    "predict '' --ranks 4": (2, "'' is not made of integers"),
    "predict 8x8 --ranks 4 --csv x.csv": (2, "--csv is for an FFT on several numbers of"),
    "predict ik,kj->ij --ranks 4 --shape 4x4": (1, "for 2 operands, not 1\n    ik,kj->ij\n"),
    "predict 8x8 --ranks 4 --machine x.toml": (1, "x.toml cannot be read: No such file"),
    "contents none.zarr --json": (1, "none.zarr"),
    "demo --size 8 --dir real.npy": (1, "file; name a folder\n"),
    "demo --size 3": (2, "--size"),
    "tune --layout": (2, "requires an argument"),
    "tune --seconds inf": (2, "'--seconds'"),
    "tune --seconds 0": (2, "0"),
    "tune --ranks 1 --check": (2, "write --ranks 2 or more"),
    "tune --shape 8x8 --check": (2, "--check and --shape do not go together"),
    "tune --shape 8x8 --seconds 3": (2, "--seconds and --shape do not go together"),
    "tune --shape 8x8 --force": (2, "--force and --shape do not go together"),
    "tune --patient": (2, "--patient is of an FFT; say of which tensor with --shape"),
    "tune --shape 8xa": (2, "write it as 8x9x10"),
    "tune --shape 8x8 --dtype f9 --ranks 2": (1, "f9"),
    "tune --shape 8x8 --dtype q --ranks 2": (1, "FFTs are of real or complex numbers, not of int64"),
    "tune --shape 8x8 --threads 999 --ranks 2": (1, "for them"),
    "tune --show --check": (2, "try: rote wisdom"),
    "tune --forget": (2, "try: rote wisdom"),
    "tune --forget --all --export x.json": (2, "try: rote wisdom"),
    "tune --import x --ranks 2": (2, "try: rote wisdom"),
    "wisdom forget": (2, "write a TEXT"),
    "wisdom forget ''": (2, "write a TEXT"),
    "wisdom forget number --all": (2, "not both"),
    "wisdom show number": (2, "number"),
    "wisdom export": (2, "Missing argument 'FILE'"),
    "wisdom import none.json": (1, "none.json: No such file or directory"),
    "wisdom export none/all.json": (1, "none: there is no such folder"),
    "bench --only rote --shape 8": (1, "--shape is of two extents or more, and none is 0; not 8"),
    "bench --only rote --shape 8x0": (1, "none is 0; not 8x0"),
    "bench --only rote --shape 8xa": (2, "write it as 128x128x128"),
    "bench --only rote --shape 8x8 --algorithm pencil": (1, "on a grid of order 1 or less, not 2"),
    "bench --only rote --dtype c32": (2, "'c32' is not one of"),
    "bench --only rote --algorithm magic": (2, "'magic' is not one of"),
    "bench --only rote --rounds 0": (2, "--rounds"),
    "bench --only rote --ranks 0": (2, "--ranks"),
    "bench --moves --only scipy": (2, "--only scipy takes no part here; choose from rote, threads, mpi4py-fft,"),
    "bench --only rote --json all.png --png all.png": (2, "--json and --plot name the same file"),
    "bench --only rote --png bench.txt": (2, "bench.txt does not end as a picture does"),
    "bench --only rote --moves --restore": (2, "leave them out, or --moves"),
    "bench --only rote --json nowhere/bench.json": (1, "nowhere: there is no such folder"),
    "bench --only rote --json .": (1, ".: this is a folder"),
    "bench --shape 8x8 --ranks 2 --only rote --machine k-computer --scaling weak": (
        2,
        "--machine is not for --scaling",
    ),
    "bench --shape 8x8 --ranks 2 --only rote --machine none": (1, "no machine"),
}
NO_BYTES = ("", "K", "-1", "1.2.3K", "5KK", "5 bits", "1e3", "٣", "0x10", "_5", ".5K", "5i", "5iB", "NaN", "few")
LINES |= {
    f"explain '[(0)] -> [()]' '--max-bytes={text}'": (
        2,
        "is no number of bytes; write it as 100000, 64K, 1.5GiB or 2MB",
    )
    for text in NO_BYTES
}
FFTS = {
    "none.npy out.npy": (1, "none.npy: No such file or directory"),
    "folder out.npy": (1, "folder: Is a directory"),
    "text.npy out.npy": (1, "text.npy is not a .npy file"),
    "short.npy out.npy": (1, "short.npy is truncated"),
    "words.npy out.npy": (1, "elements of dtype <U1"),
    "real.npy nowhere/out.npy": (1, "nowhere: there is no such folder"),
    "real.npy folder": (1, "folder: this is a folder"),
    "real.npy out.txt": (1, "out.txt is not the name of a .npy file"),
    "real.npy out.npy --name u": (1, "real.npy has no tensor 'u': it holds 'data'"),
    "real.npy out.npy --step 3": (1, "real.npy has no steps, not 3"),
    "long.npy out.zarr": (1, "for which the format has none"),
    "real.npy real.npy": (1, "real.npy is the input, and would be lost; give the result a name of its own"),
    "real.npy real.npy --force --check": (1, "real.npy is the input, and would be lost"),
    "real.npy ./real.npy --force": (1, "is the input, and would be lost; give the result a name of its own"),
    "real.npy hard.npy --force": (1, "is the input, and would be lost; give the result a name of its own"),
    "real.npy soft.npy --force": (1, "is the input, and would be lost; give the result a name of its own"),
    "real.npy folder/up/real.npy": (1, "is the input, and would be lost; give the result a name of its own"),
    "real.npy half.npy": (1, "half.npy: this is there already; --force overwrites it"),
    "real.npy broken.npy": (1, "broken.npy: this is there already; --force overwrites it"),
    "real.npy /dev/full --force": (1, "/dev/full is a device or a pipe, and saving would replace it"),
    "real.npy out.npy --layout block[(0),()]": (1, "for tensors of order 2"),
    "real.npy out.npy --layout block[(0),(),()": (1, "brackets of the modes are not closed"),
    "real.npy out.npy --layout blok[(0),(),()]": (1, "    ^\n"),
    "real.npy out.npy --grid 3": (1, "grid 3 has 3 ranks"),
    "real.npy out.npy --grid 2x2x2": (1, "grid 2x2x2 has 8 ranks"),
    "real.npy out.npy --grid 2x2x1x2 --ranks 8": (1, "grid of order"),
    "real.npy out.npy --layout block[(0),(1),()] --grid 4": (1, "names grid mode 1"),
    "real.npy out.npy --layout block[(0),(1),()] --algorithm slab": (1, "slab splits over 1 grid mode,"),
    "real.npy out.npy --output block[(0),()]": (1, "for tensors of order 2"),
    "real.npy out.npy --output [(),(),()]+(0)": (1, "a file holds values"),
    "real.npy out.npy --axes 3": (1, "not all axes"),
    "complex.npy out.npy --real": (1, "leave --real out"),
    "half.npy out.npy --inverse --real": (1, "an extent of 8 or 9; say which with --length"),
    "half.npy out.npy --inverse --real --length 12": (1, "of 8 or 9, not 12"),
    "half.npy out.npy --length 9": (2, "--length goes with --inverse --real"),
    "real.npy out.npy --axes 0,a": (2, "write it as 0,2"),
    "real.npy out.npy --algorithm magic": (2, "'magic' is not one of"),
    "real.npy out.npy --tune fast": (2, "'fast' is not one of"),
    "real.npy out.npy --threads 0": (2, "--threads"),
    "real.npy out.npy --threads 999": (1, "for them"),
    "real.npy out.npy --ranks 0": (2, "--ranks"),
    "real.npy": (2, "Missing argument"),
}


@pytest.fixture(autouse=True)
def to_lose() -> None:
    """Files of arrays, files that are none, a broken link, and decisions."""
    real = np.random.default_rng(7).standard_normal((6, 7, 9))
    half = np.fft.rfftn(real)
    arrays = {"real": real, "complex": real + 1j, "half": half, "words": np.array(["a", "b"])}
    for name, array in (arrays | {"long": np.zeros((4, 4), np.longdouble)}).items():
        np.save(f"{name}.npy", array)
    Path("text.npy").write_text("not an array")
    Path("short.npy").write_bytes(Path("real.npy").read_bytes()[:-8])
    Path("broken.npy").symlink_to("nowhere")
    Path("hard.npy").hardlink_to("real.npy")
    Path("soft.npy").symlink_to("real.npy")
    Path("folder").mkdir()
    Path("folder/up").symlink_to("..")
    for number in range(3):
        wisdom.remember(wisdom.key({"number": number}), number)


def is_refused(args: list[str], status: int, part: str) -> None:
    """A command line ends as it must, and changes no file and no decision."""
    before = {path: path.lstat().st_mtime_ns for path in Path.cwd().iterdir()}, wisdom.records()
    done = run(*args)
    refused(done, status, part)
    assert not any(word in done.output for word in ("read  ", "median  "))
    assert ({path: path.lstat().st_mtime_ns for path in Path.cwd().iterdir()}, wisdom.records()) == before
    known = "" if part.startswith("No such command") or args == ["tune", "--layout"] else f" {args[0]}"
    assert status == 1 or f"\ntry: rote{known}" in done.output or part == "try: rote wisdom"


@pytest.mark.parametrize("line", LINES)
def test_a_wrong_line_is_one_text(line: str) -> None:
    """A wrong use ends with status 2 and the help to read, anything else that is wrong with 1."""
    is_refused(shlex.split(line), *LINES[line])


@pytest.mark.parametrize("line", FFTS)
@pytest.mark.parametrize("ranks", ["1", "4"])
def test_a_wrong_transform_is_one_text(line: str, ranks: str) -> None:
    """On one rank and on several."""
    more = [] if "--ranks" in line else ["--ranks", ranks]
    is_refused(["fft", *line.split(), *more], *FFTS[line])


# --- files that are there ---------------------------------------------------------------------------------------------

ROTE = Path(sys.executable).with_name("rote")
COMMANDS = {
    "fft real.npy lost.npy": ["lost.npy"],
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
    before = {path.name for path in Path.cwd().iterdir()}
    for name in COMMANDS[line]:
        Path(name).write_text("precious")
        done = run(*line.split())
        assert done.exit_code == 1, done.output
        assert done.output.endswith(
            f"Error: {os.path.join('.' * ('--dir' in line), name)}: this is there already; --force overwrites it\n"
        )
        assert Path(name).read_text() == "precious"
        assert {path.name for path in Path.cwd().iterdir()} - before == {name}
        Path(name).unlink()
    for name in COMMANDS[line]:
        Path(name).write_text("precious")
    done = run(*line.split(), "--force")
    assert done.exit_code == 0, done.output
    assert all(b"precious" not in Path(name).read_bytes() for name in COMMANDS[line])


@pytest.mark.parametrize("power", range(1, 7))
def test_numbers_of_bytes(power: int) -> None:
    """K, k and KiB are powers of 1024, as what Rote prints; KB of 1000; blanks in between are free."""
    letter = " KMGTPE"[power]
    for unit, base in ((letter, 1024), (letter.lower(), 1024), (f" {letter}iB", 1024), (f"{letter}B", 1000)):
        assert Bytes().convert(f"3{unit}", None, None) == 3 * base**power
        assert Bytes().convert(f"2.5{unit}", None, None) == 5 * base**power // 2
    assert run("explain", "[(0)]+(1) -> [()]", "--shape", "4096", "--grid", "2x2", "--max-bytes", "96K").exit_code == 0
