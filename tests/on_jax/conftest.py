"""Tests of `rote.jax` are collected where JAX is installed, and run on eight devices that are processors.

JAX is told so before it looks for devices, and nothing is left in the environment of this process.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

collect_ignore_glob = list[str]()

if find_spec("jax") is None:
    collect_ignore_glob.append("*")
else:
    import jax

    sys.path.append(str(Path(__file__).parents[1] / "house"))  # whose tests of pages and docstrings are run here, too
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 8)
    jax.config.update("jax_enable_x64", True)
