"""Tests of `rote.jax` are collected where JAX is installed, and run on eight devices that are processors.

JAX is told so before it looks for devices, and nothing is left in the environment of this process.
"""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = list[str]()

if find_spec("jaxlib") is None:  # `jax` itself is found everywhere: this folder has that name
    collect_ignore_glob.append("*")
else:
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 8)
    jax.config.update("jax_enable_x64", True)
