"""`rote demo`: a field whose energy spectrum is known, through the path of `rote fft`, and a picture of it."""

from __future__ import annotations

import os
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

__all__ = ["demo"]

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
    from ..tensor import DistTensor
    from .energy import exact_energy, shell_energy, vortices

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

    energy, exact = shell_energy(done.result, (size,) * 3), exact_energy(size)
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


def _draw(path: str, volume: str, walk: Walk, energy: Floats, exact: Floats) -> bool:
    """Draw the demo's steps and results; False if Matplotlib is not installed."""
    from .picture import draw_demo

    plane = np.load(volume, mmap_mode="r")[:, :, 0]
    stages = [(stage.before, _said(stage)) for stage in walk.stages]
    moves = []
    for move in walk.moves:
        moves.append("; ".join([str(step).partition(":")[0] for step in move.steps]))
    try:
        draw_demo(path, plane, stages, moves, energy, exact)
    except ImportError:
        return False
    return True
