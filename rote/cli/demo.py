"""`rote demo`: a field whose energy spectrum is known, through the path of `rote fft`, and a picture of it.

Each rank computes the field, and the energy spectrum, on its own block.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from math import pi, sqrt
from typing import TYPE_CHECKING, Any, cast

import click
import numpy as np
import numpy.typing as npt

from ..plot.figures import add_legend, row
from ..runtime.comm.agreement import collective_errors
from ..runtime.comm.protocol import Comm
from ..units import in_bytes
from .options import force_option, ranks_option, refuse_target
from .output import on_ranks, say
from .transform import Request, refuse_wrong, transform

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..fft.walk import Walk

__all__ = ["demo", "draw_walk", "exact_energy", "vortices", "wave_numbers"]

Floats = npt.NDArray[np.float64]
LAYOUT = "block[(0),(1),()]"


@click.command()
@click.option(
    "--size", metavar="N", type=click.IntRange(min=8), default=64, show_default=True, help="Points along each mode."
)
@ranks_option("; default 4")
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
    from ..fft.wavenumbers import shell_sums
    from ..tensor import DistTensor

    volume, spectrum, picture = (os.path.join(folder, name) for name in ("volume.npy", "spectrum.npy", "demo.png"))

    with collective_errors(comm):
        if comm.rank == 0:
            if os.path.isfile(folder):
                raise NotADirectoryError(errno.ENOTDIR, "this is a file; name a folder", folder)
            os.makedirs(folder, exist_ok=True)
            for path in (volume, spectrum, picture):
                refuse_target(path, force)

    say(comm, f"Taylor-Green vortices of all sizes, {size} x {size} x {size} points, {comm.size} ranks\n")
    DistTensor.from_function(vortices(size), (size,) * 3, LAYOUT, comm, dtype="f8").save(volume)

    say(comm, f'$ rote fft {volume} {spectrum} --layout "{LAYOUT}" --check')
    done = transform(comm, Request(volume, spectrum, layout=LAYOUT, check=True, force=force))
    refuse_wrong(done.answer, spectrum)

    exact = exact_energy(size)
    power = abs(done.result) ** 2 / (2.0 * size**6)  # the spectrum over the number of points

    energy = shell_sums(done.job.walk, done.job.axes, power, 2 * pi)[: len(exact)]

    error = np.abs(energy - exact).max() / exact.max()
    say(comm, f"energy     {energy.sum():.6f} in the shells 2 to {size // 2 - 1}; {error:.1e} off k^(-5/3)\n")

    with collective_errors(comm):
        if comm.rank == 0:
            # The files are there already, so a missing Matplotlib is no error.
            left, missing = [volume, spectrum, picture], []
            try:
                _draw(picture, np.load(volume, mmap_mode="r")[:, :, 0], done.job.walk, energy, exact)
            except ImportError:
                left.remove(picture)
                missing = ["no picture: Matplotlib is missing; install it with: pip install matplotlib"]

            say(comm, *[f"wrote {path}, {in_bytes(os.path.getsize(path))}" for path in left], *missing)


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
        # A vortex is a product of one vector per mode, so a rank computes sines of its own indices alone.
        angle = []
        for axis, indices in enumerate(index):
            points = 2 * np.pi / size * indices.ravel()
            angle.append(np.outer(along[:, axis], points) + phase[:, axis, None])

        factors = amplitude[:, None] * np.sin(angle[0]), np.cos(angle[1]), np.cos(angle[2])
        u: Floats = np.einsum("ai,aj,ak->ijk", *factors, optimize=True)
        return u

    return velocity


def exact_energy(size: int) -> Floats:
    """The energy of u in every shell, half the sum of |û(k)|² in it: k^(-5/3) in the shells that have a vortex."""
    energy = np.zeros(size // 2 + 1)
    energy[2 : size // 2] = np.arange(2.0, size // 2) ** (-5 / 3)
    return energy


# --- the picture ------------------------------------------------------------------------------------------------------

_INK, _RED = "#404040", "#A50026"


def _draw(path: str, field: Floats, walk: Walk, energy: Floats, exact: Floats) -> None:
    """Write the picture: the walk, a plane of the field with x downwards, and the energies per shell."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.6), layout="constrained", dpi=130)

    above, below = cast("Any", figure.subfigures(2, 1, height_ratios=[1, 1.32], hspace=0.04))
    draw_walk(above, walk)

    left, right = below.subplots(1, 2, width_ratios=[1, 1.5])

    most, end = np.abs(field).max(), 2 * np.pi
    look: dict[str, Any] = {"cmap": "RdBu_r", "interpolation": "bicubic", "origin": "lower"}
    left.imshow(field.T, vmin=-most, vmax=most, extent=(0, end, 0, end), **look)

    left.set_xticks([0, np.pi, end], ["0", "π", "2π"])
    left.set_yticks([0, np.pi, end], ["0", "π", "2π"])
    _label(left, "x", "y", "velocity u at z = 0")

    shells = np.flatnonzero(exact)
    dots: dict[str, Any] = {"color": _RED, "ms": 5, "mec": "white", "mew": 0.6}
    right.loglog(shells, exact[shells], "-", color=_INK, lw=1, label="exact, $k^{-5/3}$")
    right.loglog(shells, energy[shells], "o", label="from the distributed spectrum", **dots)

    ticks = 2 ** np.arange(1, int(np.log2(len(energy))) + 1)
    right.set_xticks(ticks, [*map(str, ticks)])
    right.set_xticks([], minor=True)

    right.grid(True, which="both", lw=0.4, color="#e4e4e4")
    right.set_axisbelow(True)
    right.legend(frameon=False, labelcolor=_INK, fontsize=9)

    _label(right, "wave number k", "energy E(k)", "energy spectrum")

    figure.savefig(path)


def draw_walk(figure: Any, walk: Walk) -> None:
    """Draw the distributions of a walk from left to right, the moves between them, and below what is done in each."""
    pictures = [(stage.before, tuple(range(stage.before.order))) for stage in walk.stages]

    moves = ["; ".join([str(step).partition(":")[0] for step in move.steps]) for move in walk.moves]
    axes = row(figure, figure.add_gridspec(1, 1)[0], pictures, [move.partition(" ")[::2] for move in moves])

    add_legend(axes[-1], [pictures[-1][0]])

    below: dict[str, Any] = {"xycoords": "axes fraction", "xytext": (0, -4), "textcoords": "offset points"}
    below |= {"ha": "center", "va": "top", "fontsize": 10, "fontweight": "bold", "color": _INK}

    for ax, stage in zip(axes, walk.stages, strict=True):
        words = []
        for action in stage.actions:
            along = f" along mode{'s' * (len(action.modes) > 1)} {', '.join(map(str, action.modes))}"
            words.append(action.name + along * bool(action.modes))

        ax.set_anchor("S")
        ax.annotate(", ".join(words) or "rest", (0.5, 0.0), **below)


def _label(ax: Axes, x: str, y: str, title: str) -> None:
    ax.set_xlabel(x, color=_INK)
    ax.set_ylabel(y, color=_INK)
    ax.set_title(title, fontsize=10, color=_INK)

    ax.tick_params(colors=_INK, labelsize=9)
    for side in ax.spines.values():
        side.set_color("#b0b0b0")
