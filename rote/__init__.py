"""Rote: redistributions of dense tensors, and parallel FFTs, written as layouts.

An index along a mode is a number with digits. A layout says which digits of which mode belong to which mode of
the process grid; every other digit is local. A redistribution moves digits; a parallel FFT is a walk: transform
what is local, move digits, transform again.

    text -> syntax -> Layout -> Distribution (layout on a shape and a grid) -> Plan (steps) -> run on N ranks

>>> import rote
>>> rows = rote.parse("block[(0),()]").on(shape=(5, 4), grid=rote.Grid((2,)))
>>> rows.local_shape(0), rows.local_shape(1)
((3, 4), (2, 4))
>>> columns = rote.parse("block[(),(0)]").on(shape=(5, 4), grid=rote.Grid((2,)))
>>> [step.kind for step in rote.compile(rows, columns).steps]
['alltoall']

Importing Rote starts no MPI and imports neither NumPy, lark nor mpi4py: each name below is imported on first use.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import array_api as array_api
    from . import compiler as compiler
    from . import errors as errors
    from . import fft as fft
    from . import grammar as grammar
    from . import layout as layout
    from . import plot as plot
    from . import random as random
    from . import runtime as runtime
    from . import simulate as simulate
    from . import testing as testing
    from . import wisdom as wisdom
    from .caches import cache_info as cache_info
    from .caches import clear_caches as clear_caches
    from .compiler.compile import compile as compile
    from .compiler.compile import tradeoff as tradeoff
    from .compiler.expect import expect as expect
    from .compiler.machine import Machine as Machine
    from .compiler.plan import Plan as Plan
    from .compiler.relabel import relabel as relabel
    from .errors import CommError as CommError
    from .errors import GatherWarning as GatherWarning
    from .errors import LayoutError as LayoutError
    from .errors import MoveWarning as MoveWarning
    from .errors import NotationError as NotationError
    from .errors import PlanError as PlanError
    from .errors import RoteError as RoteError
    from .functions.moves import config as config
    from .functions.moves import trace as trace
    from .layout.builder import L as L
    from .layout.expressions import block as block
    from .layout.expressions import cyclic as cyclic
    from .layout.expressions import partial as partial
    from .layout.expressions import root as root
    from .layout.grid import Grid as Grid
    from .layout.layout import Distribution as Distribution
    from .layout.layout import Layout as Layout
    from .layout.layout import Transition as Transition
    from .layout.layout import parse as parse
    from .layout.layout import parse_transition as parse_transition
    from .runtime.comm.resolve import run as run
    from .runtime.exchange.registry import methods as methods
    from .tensor import DistTensor as DistTensor
    from .tensor.files import contents as contents
    from .tensor.files import save as save
    from .tensor.lists import redistribute as redistribute
    from .tensor.loading import load as load

__version__ = "0.2.0"

# The module of each public name; for type checkers, the imports above say the same.
_HOME = {
    **dict.fromkeys(("cache_info", "clear_caches"), "caches"),
    **dict.fromkeys(("Distribution", "Layout", "Transition", "parse", "parse_transition"), "layout.layout"),
    **dict.fromkeys(("block", "cyclic", "partial", "root"), "layout.expressions"),
    "L": "layout.builder",
    "Grid": "layout.grid",
    **dict.fromkeys(("compile", "tradeoff"), "compiler.compile"),
    "expect": "compiler.expect",
    "Plan": "compiler.plan",
    "Machine": "compiler.machine",
    "relabel": "compiler.relabel",
    "run": "runtime.comm.resolve",
    "methods": "runtime.exchange.registry",
    **dict.fromkeys(("config", "trace"), "functions.moves"),
    "DistTensor": "tensor",
    "load": "tensor.loading",
    "redistribute": "tensor.lists",
    **dict.fromkeys(("contents", "save"), "tensor.files"),
    **dict.fromkeys(("CommError", "LayoutError", "NotationError", "PlanError", "RoteError"), "errors"),
    **dict.fromkeys(("GatherWarning", "MoveWarning"), "errors"),
}
_SUBMODULES = ("compiler", "errors", "fft", "grammar", "layout", "plot", "random", "runtime", "simulate", "wisdom")
_BESIDE = ("array_api", "testing")  # modules that `from rote import *` leaves out; programs import them by name

__all__ = sorted((*_HOME, *_SUBMODULES))

# In a checkout grammar/ and fft/ are beside this folder; installed, they are inside it. Python started in the
# checkout's root finds this folder before the installed one, so it must find these two as well.
_here = os.path.dirname(os.path.abspath(__file__))
_beside = os.path.dirname(_here)
if not os.path.isdir(os.path.join(_here, "grammar")) and os.path.isfile(
    os.path.join(_beside, "grammar", "layout.lark")
):
    __path__.append(_beside)

# Names of NumPy, mpi4py-fft, DTensor and the command line, each with its replacement in Rote.
_ELSEWHERE = {
    **dict.fromkeys(("array", "asarray"), "rote.DistTensor.from_global(array, layout)"),
    **{name: f"rote.DistTensor.{name}(shape, layout)" for name in ("zeros", "empty")},
    "ones": "rote.array_api.ones(shape, layout=…)",
    "full": "rote.array_api.full(shape, number, layout=…)",
    **{name: f"rote.fft.{name}" for name in ("FFT", "fftn", "ifftn", "rfftn", "irfftn")},
    **{name: f"from rote.compat.mpi4py_fft import {name}" for name in ("PFFT", "newDistArray")},
    **dict.fromkeys(("COMM_WORLD", "world"), "rote.runtime.world()"),
    "explain": 'rote.compile("A -> B", shape=…, grid=…).explain()',
    "predict": "rote.fft.compare(shape, ranks)",
    "show": "rote.plot.layout(rote.parse(layout).on(shape, grid))",
    **dict.fromkeys(("Shard", "Replicate", "Partial"), "a layout, as text: block[(0),()] splits mode 0"),
}

if not TYPE_CHECKING:  # with it, type checkers would accept any misspelt attribute

    def __getattr__(name):
        """Import a public name on first use, and keep it."""
        from importlib import import_module

        if name in _HOME:
            value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        elif name in _SUBMODULES + _BESIDE:
            value = import_module(f"{__name__}.{name}")
        else:
            cure = f"\nwrite {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{cure}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """The public names, imported or not, and whatever else the module already holds."""
    return sorted({*globals(), *__all__})
