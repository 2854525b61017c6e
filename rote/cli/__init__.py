"""The command line: `rote`, which is `python -m rote`. Only this part of Rote knows both tensors and FFTs.

A command is imported when it runs, so that `rote --version` and `rote --help` import no more than click.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

import click

from .. import __version__
from .output import Rote

__all__ = ["main"]

_MENU: dict[str, tuple[str, Callable[[], ModuleType]]] = {
    "show": ("Draw who owns what.", lambda: import_module("rote.cli.layouts")),
    "explain": ("Show a plan and its cost; or which FFT costs least.", lambda: import_module("rote.cli.layouts")),
    "predict": ("Predict the cost of FFTs, on ranks that need not exist.", lambda: import_module("rote.cli.predict")),
    "fft": ("Transform a .npy file.", lambda: import_module("rote.cli.transform")),
    "bench": ("Time transforms and moves of Rote and of other libraries.", lambda: import_module("rote.cli.bench")),
    "tune": ("Measure this machine for the cost model, or time FFTs.", lambda: import_module("rote.cli.tune")),
    "wisdom": ("List, forget, export or import what was measured.", lambda: import_module("rote.cli.wisdom")),
    "demo": ("Make a field, transform it, draw its layouts and spectrum.", lambda: import_module("rote.cli.demo")),
    "contents": ("Show what a file of tensors holds.", lambda: import_module("rote.cli.layouts")),
    "doctor": (
        "Check the installation, and name the commands that repair it.",
        lambda: import_module("rote.cli.doctor"),
    ),
    "completion": (
        "Install completion of commands, options and names by Tab.",
        lambda: import_module("rote.cli.completion"),
    ),
}


@click.group(cls=Rote, menu=_MENU, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="rote", message="%(prog)s %(version)s")
def main() -> None:
    """Move distributed arrays between layouts, and transform them by parallel FFTs.

    A layout says which modes of a tensor are split over which modes of a grid of ranks:
    "block[(0),(1),()]" splits mode 0 over grid mode 0, mode 1 over grid mode 1, and leaves mode 2 whole.

    \b
    Examples:
      rote demo --dir first-look
      rote show "block[(0),(1)]"
      rote explain "block[(0),()] -> block[(),(0)]"
      rote fft first-look/volume.npy spectrum.npy --ranks 4
      mpiexec -n 4 rote fft first-look/volume.npy spectrum.npy --force

    \b
    Exit status:
      0  success, and every requested check passed
      1  an error, a difference that a check found, or a broken installation (doctor)
      2  a wrong command line: a command, an option or an argument
      130  interrupted by Ctrl-C
    """
