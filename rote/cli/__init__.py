"""The command line: `rote`, which is `python -m rote`. The one part of the house that knows tensors and FFTs alike."""

from __future__ import annotations

import click

from .. import __version__
from .bench import bench
from .demo import demo
from .doctor import doctor
from .ending import Rote
from .layouts import explain, show
from .transform import fft
from .tune import tune

__all__ = ["main"]


@click.group(cls=Rote, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="rote", message="%(prog)s %(version)s")
def main() -> None:
    """Redistributions of dense tensors, and parallel FFTs, written as layouts.

    A layout says which modes of a tensor are split over which modes of a grid of ranks:
    "block[(0),(1),()]" splits mode 0 over grid mode 0, mode 1 over grid mode 1, and leaves mode 2 whole.

    \b
        rote demo                                      a first look, in a few seconds
        rote show "block[(0),(1)]"                     who owns what
        mpiexec -n 4 rote fft volume.npy spectrum.npy  the FFT of a file, on four ranks
    """


for _command in (show, explain, fft, bench, tune, demo, doctor):
    main.add_command(_command)
