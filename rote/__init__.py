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

from .lazy import attach
from .version import VERSION

__version__ = VERSION

# In a checkout grammar/ and fft/ are next to this folder; installed, they are inside it. Python started in the
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
    "halo": "x.halo(width)",
    "open": "rote.load(path, layout), or rote.contents(path) to see what is there",
    "Comm": "rote.runtime.Comm",
    "explain": 'rote.compile("A -> B", shape=…, grid=…).explain()',
    "show": "rote.plot.layout(rote.parse(layout).on(shape, grid))",
    **dict.fromkeys(("Shard", "Replicate", "Partial"), "a layout, as text: block[(0),()] splits mode 0"),
}

if TYPE_CHECKING:  # what the table below says to Python, name by name
    from . import array_api as array_api
    from . import compiler, errors, fft, grammar, layout, linalg, plot, random, runtime, simulate, wisdom
    from . import jax as jax
    from . import testing as testing
    from .caches import cache_info, clear_caches
    from .compiler.compile import compile, expect, tradeoff
    from .compiler.digits import Digits
    from .compiler.plan import Plan
    from .compiler.relabel import relabel
    from .errors import CommError, GatherWarning, LayoutError, MoveWarning, NotationError, PlanError, RoteError
    from .functions.contraction.compile import compile_einsum, einsum_scaling
    from .functions.contraction.plan import Contraction
    from .functions.moves import config, trace
    from .functions.products import einsum
    from .layout.distribution import Distribution
    from .layout.expressions import L, block, cyclic, partial, root
    from .layout.grid import Grid
    from .layout.layout import Layout, Transition, parse, parse_transition
    from .machines.machine import Machine
    from .prediction import Prediction, predict
    from .runtime.comm.resolve import run
    from .runtime.exchange.registry import methods
    from .tensor import DistTensor, load
    from .tensor.dask import from_dask
    from .tensor.files import contents, save
    from .tensor.moving import redistribute
else:
    __getattr__, __dir__ = attach(
        __name__,
        {
            "": "array_api compiler errors fft grammar jax layout linalg plot random runtime simulate testing wisdom",
            "caches": "cache_info clear_caches",
            "compiler.compile": "compile expect tradeoff",
            "machines.machine": "Machine",
            "compiler.digits": "Digits",
            "compiler.plan": "Plan",
            "compiler.relabel": "relabel",
            "errors": "CommError GatherWarning LayoutError MoveWarning NotationError PlanError RoteError",
            "functions.contraction.compile": "compile_einsum einsum_scaling",
            "functions.contraction.plan": "Contraction",
            "functions.moves": "config trace",
            "functions.products": "einsum",
            "layout.distribution": "Distribution",
            "layout.expressions": "L block cyclic partial root",
            "layout.grid": "Grid",
            "layout.layout": "Layout Transition parse parse_transition",
            "prediction": "Prediction predict",
            "runtime.comm.resolve": "run",
            "runtime.exchange.registry": "methods",
            "tensor": "DistTensor load",
            "tensor.dask": "from_dask",
            "tensor.files": "contents save",
            "tensor.moving": "redistribute",
        },
        _ELSEWHERE,
    )

# `from rote import *` leaves array_api, jax and testing out: programs import them by name.
__all__ = ["CommError", "Contraction", "Digits", "DistTensor", "Distribution", "GatherWarning", "Grid", "L", "Layout"]
__all__ += ["LayoutError", "Machine", "MoveWarning", "NotationError", "Plan", "PlanError", "Prediction", "RoteError"]
__all__ += ["Transition", "block", "cache_info", "clear_caches", "compile", "compile_einsum", "compiler", "config"]
__all__ += ["contents", "cyclic", "einsum", "einsum_scaling", "errors", "expect", "fft", "from_dask", "grammar"]
__all__ += ["layout", "linalg", "load", "methods", "parse", "parse_transition", "partial", "plot", "predict", "random"]
__all__ += ["redistribute", "relabel", "root", "run", "runtime", "save", "simulate", "trace", "tradeoff", "wisdom"]
