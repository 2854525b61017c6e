"""A program of two processes with four CPU devices each: `python processes.py PORT NUMBER` is one of them.

It imports as a user's program does: JAX is told of the processes before anything looks for devices.
"""

from __future__ import annotations

import sys

import jax
import numpy as np

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 4)
jax.config.update("jax_enable_x64", True)
jax.distributed.initialize(f"localhost:{sys.argv[1]}", num_processes=2, process_id=int(sys.argv[2]))

from jax.sharding import PartitionSpec as P  # noqa: E402

import rote  # noqa: E402
from rote.jax import from_global, layout_of, lower, redistribute, to_global  # noqa: E402

assert jax.device_count() == 8 and jax.local_device_count() == 4
mesh = jax.make_mesh((2, 4), ("x", "y"))
whole = np.arange(16.0 * 24).reshape(16, 24)

# From the host, block by block; through two moves; and back, on all processes.
x = from_global(whole, rote.parse("block[(0),(1)]").on(whole.shape, (2, 4)), mesh)
assert not x.is_fully_addressable and str(layout_of(x)) == "block[(0),(1)]"
y = redistribute(x, P(None, ("y", "x")))
for shard in y.addressable_shards:
    np.testing.assert_array_equal(shard.data, whole[shard.index])
np.testing.assert_array_equal(to_global(y, rote.parse("block[(),(1,0)]").on(whole.shape, (2, 4))), whole)

# Extents that do not divide, and a cyclic layout.
odd = np.arange(7.0 * 9).reshape(7, 9)
plan = lower(rote.compile("block[(0),(1)] -> [(1,0),()]", shape=odd.shape, grid=(2, 4), dtype="f8"), mesh)
z = plan(from_global(odd, plan.source, mesh))
np.testing.assert_array_equal(to_global(z, plan.target, odd.shape), odd)

# A mesh of devices of the other process alone has none for this one.
others = [device for device in jax.devices() if device.process_index != jax.process_index()]
try:
    from_global(np.zeros(4), rote.parse("[(0)]").on(4, 4), jax.sharding.Mesh(others, ("x",)))
except rote.PlanError as error:
    assert str(error).startswith(f"no device of the mesh is of process {jax.process_index()} of 2")
else:
    raise AssertionError("a mesh without a device of this process")

print("as planned")
