"""A law for machines with a profile changes no price of a machine without one."""

from __future__ import annotations

import numpy as np
import pytest

import rote
from rote.fft.families.choose import walk_of
from rote.fft.request import as_request
from rote.machines.machine import Machine
from rote.machines.network import Network

TRANSFORMS = (  # of all axes: shape, layout, grid, family, dtype
    ((64,) * 3, "block[(0),(),()]", (8,), "slab", "f8"),
    ((96,) * 3, "block[(0),(1),()]", (4, 2), "pencil", "c16"),
    ((64,) * 3, "[(0),(1),(2)]", (2, 2, 2), "volumetric", "c16"),
    ((128, 34, 128), "block[(0),(),()]", (16,), "slab", "f8"),
)
LEVELS = {"ranks_per_node": 4, "near_latency": 4e-7, "near_byte_time": 9e-11, "latency": 1.5e-6, "message_time": 2e-8}
GROUPS = Network("fat tree", **LEVELS, byte_time=9e-11, group=2, far_latency=2e-6, far_time=1.7e-10)
MEASURED = {
    "default": Machine(),
    "tuned": Machine(3e-6, 2e-10, 1.3e-10, 2.1e-10, 8e-6, 4e-11, 2e-11, 2e6, 3, page_factor=1.7, rough_factor=9),
    "nodes": Machine(network=GROUPS),
}
PRICES = {  # of the transforms, in seconds, as they were before there was a law for profiles
    "default": "0x1.c834c02eb7562p-13 0x1.bd2947c112ad3p-10 0x1.ed09ec0296343p-11 0x1.37a94dfb7f2e5p-12",
    "tuned": "0x1.96117fa750a19p-13 0x1.0ffcc8ffe57d0p-9 0x1.452a2db25f1d2p-11 0x1.097601b951b67p-11",
    "nodes": "0x1.00c2b1e493bbdp-12 0x1.f4e1f63ed91d6p-10 0x1.060ac8664ed42p-10 0x1.9eb7921b708eap-12",
}


@pytest.mark.parametrize("name", MEASURED)
def test_a_machine_without_a_profile_keeps_its_prices_to_the_last_bit(name):
    seconds = []
    for shape, layout, grid, algorithm, dtype in TRANSFORMS:
        source, kind = rote.parse(layout).on(shape, grid), "rfft" if dtype == "f8" else "fft"
        walk = walk_of(source, as_request(shape, (0, 1, 2), kind, np.dtype(dtype)), algorithm)
        seconds.append(rote.predict(walk, MEASURED[name]).seconds.hex())
    assert seconds == PRICES[name].split()
