"""`rote demo`: a field whose energy spectrum is known, through the path of `rote fft`, and a picture of it.

Each rank computes the field, and the energy spectrum, on its own block.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from math import pi, sqrt
from typing import TYPE_CHECKING

import click
import numpy as np
import numpy.typing as npt

from ..compiler.explain import in_bytes
from ..runtime.comm.collective_errors import collective_errors
from ..runtime.comm.protocol import Comm
from .answers import say
from .failures import on_ranks
from .options import force_option, refuse_target
from .prepare import Request
from .transform import refuse_wrong, transform

if TYPE_CHECKING:
    from ..fft.walk.walk import Stage, Walk
    from ..layout.layout import Distribution

__all__ = ["demo", "exact_energy", "steps_of", "vortices", "wave_numbers"]

Floats = npt.NDArray[np.float64]
LAYOUT = "block[(0),(1),()]"


@click.command()
@click.option(
    "--size", metavar="N", type=click.IntRange(min=8), default=64, show_default=True, help="Points along each mode."
)
@click.option(
    "--ranks",
    metavar="N",
    type=click.IntRange(min=1),
    help="Ranks in this process, if no mpiexec starts them; default 4.",
)
@click.option(
    "--dir", "folder", metavar="FOLDER", default="rote-demo", show_default=True, help="The folder for the files."
)
@force_option
def demo(size: int, ranks: int | None, folder: str, force: bool) -> None:
    """Make a field of Taylor-Green vortices, transform it as `rote fft` does, and compare with numpy.fft.

    The field is the velocity u of one vortex per shell of wave numbers k, with energy k^(-5/3), so that the energy
    spectrum is known exactly. Leaves volume.npy, spectrum.npy and demo.png, with the layouts along the way and the
    energy spectrum.

    \b
    Examples:
      rote demo
      rote demo --size 16 --ranks 2 --dir small
      mpiexec -n 4 rote demo --size 16 --dir under-mpi
    """
    on_ranks(_program, ranks, 4, size, folder, force)


def _program(comm: Comm, size: int, folder: str, force: bool) -> None:
    """The demo, on every rank."""
    from ..fft.program.spectrum import shell_sums
    from ..tensor import DistTensor

    volume, spectrum, picture = (os.path.join(folder, name) for name in ("volume.npy", "spectrum.npy", "demo.png"))
    with collective_errors(comm):
        if comm.rank == 0:
            os.makedirs(folder, exist_ok=True)
            for path in (volume, spectrum, picture):
                refuse_target(path, force)
    say(comm, f"Taylor-Green vortices of all sizes, {size} x {size} x {size} points, {comm.size} ranks\n")
    DistTensor.from_function(vortices(size), (size,) * 3, LAYOUT, comm, dtype="f8").save(volume)

    say(comm, f'$ rote fft {volume} {spectrum} --layout "{LAYOUT}" --check')
    done = transform(comm, Request(volume, spectrum, layout=LAYOUT, check=True, force=force))
    refuse_wrong(done, spectrum)

    exact = exact_energy(size)
    power = abs(done.result) ** 2 / (2.0 * size**6)  # the spectrum over the number of points
    energy = shell_sums(done.job.walk, done.job.axes, power, 2 * pi)[: len(exact)]
    error = np.abs(energy - exact).max() / exact.max()
    say(comm, f"energy     {energy.sum():.6f} in the shells 2 to {size // 2 - 1}; {error:.1e} off k^(-5/3)\n")

    with collective_errors(comm):
        if comm.rank == 0:
            drawn = _draw(picture, volume, done.job.walk, energy, exact)
            for path in (volume, spectrum, picture)[: 2 + drawn]:
                say(comm, f"left {path}, {in_bytes(os.path.getsize(path))}")
            if not drawn:
                say(comm, "no picture: Matplotlib is missing; install it with: pip install matplotlib")


def _said(stage: Stage) -> str:
    """The actions of a stage in words: "fft along modes 1, 2"."""
    words = []
    for action in stage.actions:
        said = action.name
        if action.modes:
            said += f" along mode{'s' * (len(action.modes) > 1)} {', '.join(map(str, action.modes))}"
        words.append(said)
    return ", ".join(words) or "rest"


def steps_of(walk: Walk) -> tuple[list[tuple[Distribution, str]], list[str]]:
    """The distributions of a walk with what is done in each, and the steps of the moves between them, in words."""
    stages = [(stage.before, _said(stage)) for stage in walk.stages]
    return stages, ["; ".join([str(step).partition(":")[0] for step in move.steps]) for move in walk.moves]


def _draw(path: str, volume: str, walk: Walk, energy: Floats, exact: Floats) -> bool:
    """Draw the demo's steps and results; False if Matplotlib is not installed."""
    from .picture import draw_demo

    plane = np.load(volume, mmap_mode="r")[:, :, 0]
    try:
        draw_demo(path, plane, *steps_of(walk), energy, exact)
    except ImportError:
        return False
    return True


def wave_numbers(size: int) -> list[tuple[int, int]]:
    """The vortices of the demo, one per shell from 2 to size/2 - 1: pairs (m, n) with sqrt(2 m² + n²) about the shell.

    >>> wave_numbers(12)
    [(1, 1), (2, 1), (2, 3), (3, 3)]
    """
    shells = range(2, size // 2)
    across = [round(k / sqrt(3)) for k in shells]
    return [(m, round(sqrt(max(k * k - 2 * m * m, 0)))) for k, m in zip(shells, across, strict=True)]


def vortices(size: int) -> Callable[..., Floats]:
    """The velocity u of Taylor-Green vortices of all sizes, at global indices (i, j, k) of a periodic cube (2 pi)³.

    Taylor and Green (Proc. R. Soc. A 158, 1937) start from u = sin x cos y cos z, v = -cos x sin y cos z, w = 0. Here
    a sin(m x) cos(m y) cos(n z) is added up for all pairs of `wave_numbers`, each moved by a phase of its own; with its
    v, each is divergence-free. The amplitudes a give shell k the energy k^(-5/3), as in Kolmogorov's turbulence.
    """
    pairs = wave_numbers(size)
    phase = 2 * np.pi * np.outer(np.arange(len(pairs)) ** 2, [0.618034, 0.414214, 0.732051])
    amplitude = 4 * np.arange(2.0, size // 2) ** (-5 / 6)  # the mean of a²/2 sin² cos² cos² is a²/16
    along = np.array([(m, m, n) for m, n in pairs])

    def velocity(*index: npt.NDArray[np.int64]) -> Floats:
        angle = []
        for axis, indices in enumerate(index):
            places = 2 * np.pi / size * indices.ravel()
            angle.append(np.outer(along[:, axis], places) + phase[:, axis, None])
        u: Floats = np.einsum(
            "ai,aj,ak->ijk", amplitude[:, None] * np.sin(angle[0]), np.cos(angle[1]), np.cos(angle[2]), optimize=True
        )
        return u

    return velocity


def exact_energy(size: int) -> Floats:
    """The energy of u in every shell, half the sum of |û(k)|² in it: k^(-5/3) in the shells that have a vortex."""
    energy = np.zeros(size // 2 + 1)
    energy[2 : size // 2] = np.arange(2.0, size // 2) ** (-5 / 3)
    return energy
