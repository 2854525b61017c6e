"""`rote demo`: the field has the energy that it says, the files are there, and the path is that of `rote fft`."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from runner import run

import rote
from rote.cli.demo import exact_energy, vortices, wave_numbers


@pytest.mark.parametrize("size", [8, 9, 16, 31, 64, 200])
def test_every_vortex_is_in_its_shell(size: int) -> None:
    """The vortex of shell k has k - 1/2 < |k| < k + 1/2, and is finer than the points can show in no direction."""
    for shell, (m, n) in enumerate(wave_numbers(size), 2):
        assert abs(np.sqrt(2 * m * m + n * n) - shell) < 0.5
        assert 0 < m < size / 2 and 0 < n < size / 2
    assert len(wave_numbers(size)) == size // 2 - 2


def test_the_first_vortex_is_taylor_and_greens() -> None:
    """Alone, it is sin x cos y cos z, times an amplitude."""
    assert wave_numbers(6) == [(1, 1)]
    u = vortices(6)(*np.ogrid[:6, :6, :6])
    x, y, z = (np.pi / 3 * index for index in np.ogrid[:6, :6, :6])
    np.testing.assert_allclose(u, 4 * 2 ** (-5 / 6) * np.sin(x) * np.cos(y) * np.cos(z), atol=1e-14)


@pytest.mark.parametrize(
    "layout", ["block[(0),(1),()]", "[(),(0),(1)]", "block[(),(),(1)]", "[(),(),(0,1)]", "[(),(),()]"]
)
def test_energy_in_any_layout(layout: str) -> None:
    """The energy spectrum is the exact one whatever the layout of the spectrum, replicated ones included; its sum is
    the mean of u²/2."""
    size = 18

    def program(comm: rote.runtime.Comm) -> tuple[np.ndarray, float]:
        u = rote.DistTensor.from_function(vortices(size), (size,) * 3, "block[(0),(1),()]", comm, grid=(2, 3))
        f = rote.fft.FFT(u.shape, u.layout, u.grid, comm, "f8", norm="forward", output=layout)
        energy = f.shell_sums(abs(f.forward(u)) ** 2) / 2
        return energy[: size // 2 + 1], float(np.mean(u.to_global() ** 2) / 2)

    for energy, mean in rote.run(program, 6):
        np.testing.assert_allclose(energy, exact_energy(size), atol=1e-14)
        np.testing.assert_allclose(energy.sum(), mean, rtol=1e-12)


def test_energy_of_odd_and_uneven_shapes() -> None:
    """Each mirror image is counted, for odd extents and even ones: all shells hold what the points hold."""
    for shape in ((5, 5, 5), (6, 6, 6), (6, 6, 5), (5, 5, 6)):
        u = np.cos(2 * np.pi * sum(i / n for i, n in zip(np.ogrid[tuple(map(slice, shape))], shape, strict=True)))
        f = rote.fft.FFT(shape, "[(),(),()]", dtype="f8", norm="forward")
        energy = f.shell_sums(abs(f.forward(rote.DistTensor.from_global(u + 3, f.input_layout))) ** 2) / 2
        np.testing.assert_allclose(energy[:3], [4.5, 0, 0.25], atol=1e-14)


def test_demo_end_to_end(tmp_path: Path) -> None:
    """The whole demo, in less than 10 s: the volume, its spectrum as numpy.fft says, the picture, and the energies."""
    folder = tmp_path / "some" / "where"
    start = time.process_time()
    done = run("demo", "--dir", str(folder))
    assert time.process_time() - start < 10
    assert done.exit_code == 0, done.output
    volume, spectrum = np.load(folder / "volume.npy"), np.load(folder / "spectrum.npy")
    assert volume.shape == (64, 64, 64)
    np.testing.assert_allclose(spectrum, np.fft.rfftn(volume), atol=1e-9)
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in folder.iterdir()) == ["demo.png", "spectrum.npy", "volume.npy"]
    assert "  block[(0),(1),()]: rfft(2)\n" in done.output
    assert re.search(
        r"^error      \S+e-1[5-9] of the largest value of numpy.fft.rfftn, below 1e-10$", done.output, re.M
    )
    assert re.search(r"^energy     0.973140 in the shells 2 to 31; \S+e-1[5-9] off k\^\(-5/3\)$", done.output, re.M)
    assert [line.split(",")[0] for line in done.output.splitlines()[-3:]] == [
        f"wrote {folder / name}" for name in ("volume.npy", "spectrum.npy", "demo.png")
    ]


def test_demo_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No picture, the command that installs what is missing, and success."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = run("demo", "--size", "8", "--ranks", "2", "--dir", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert done.output.endswith("no picture: Matplotlib is missing; install it with: pip install matplotlib\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spectrum.npy", "volume.npy"]


@pytest.mark.parametrize("ranks", ["1", "3", "6"])
def test_demo_on_any_ranks(ranks: str, tmp_path: Path) -> None:
    """Sizes and ranks that do not divide."""
    done = run("demo", "--size", "11", "--ranks", ranks, "--dir", str(tmp_path))
    assert done.exit_code == 0, done.output
