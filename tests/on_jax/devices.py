"""What tests of `rote.jax` share: meshes of eight devices, functions of stacked blocks, and collectives in programs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from math import prod
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from rote.compiler.digits import Digits, StepDigits

NAMES = ("x", "y", "z")
HLO = {"exchange": "all-to-all", "gather": "all-gather", "permute": "collective-permute"}
KINDS = ("reduce-scatter", "all-reduce", *HLO.values())

set_mesh = jax.set_mesh if hasattr(jax, "set_mesh") else jax.sharding.use_mesh  # JAX 0.7


def mesh_of(shape: tuple[int, ...], **options: Any) -> Mesh:
    """A mesh of the first devices, with axes x, y, z."""
    return Mesh(np.array(jax.devices()[: prod(shape)]).reshape(shape), NAMES[: len(shape)], **options)


def stacked(function: Callable[[Any], Any], mesh: Mesh) -> Any:
    """A function of a rank's block as a compiled one of the blocks of all ranks, stacked in order."""
    spec = PartitionSpec(mesh.axis_names)
    mapped = jax.shard_map(lambda x: function(x[0])[None], mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    return jax.jit(mapped)


def collectives(digits: Digits) -> Counter[str]:
    """How often a program of these digits has each collective of XLA; of tables, none is counted."""
    count = Counter[str]()
    for step in digits.steps:
        for operation in step.operations if isinstance(step, StepDigits) else ():
            if operation.kind == "reduce":
                count["reduce-scatter" if operation.leaving else "all-reduce"] += 1
            elif operation.kind in HLO:
                count[HLO[operation.kind]] += 1
    return count


def compiled(function: Any, *args: Any) -> Counter[str]:
    """How often the compiled program of a jitted function has each collective of XLA."""
    text = function.lower(*args).compile().as_text()
    return +Counter({kind: len(re.findall(rf" {kind}(?:-start)?\(", text)) for kind in KINDS})
