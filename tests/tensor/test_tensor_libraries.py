"""Libraries that take any arrays: einops, einx, autoray and cotengra compute with tensors, as the page on data says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import array_api_compat  # noqa: F401  before einx, which then takes arrays of the standard
import autoray
import cotengra
import einops
import einx
import numpy as np
import pytest

import rote
import rote.einops
from rote import DistTensor

FIELD = np.arange(24.0).reshape(4, 6) % 7

CALLS: dict[str, Callable[[Any], Any]] = {
    "rearrange": lambda x: einops.rearrange(x, "a (b c) -> c a b", b=2),
    "reduce": lambda x: einops.reduce(x, "a (b c) -> a b", "mean", b=2),
    "reduce to the largest": lambda x: einops.reduce(x, "a b -> b", "max"),
    "repeat": lambda x: einops.repeat(x, "a b -> a r b", r=2),
    "pack": lambda x: einops.pack([x, x[0]], "* b")[0],
    "einops.einsum": lambda x: einops.einsum(x, x, "a b, c b -> a c"),
    "do": lambda x: autoray.do("tensordot", autoray.do("exp", x), x, axes=([1], [1])),
    "cotengra": lambda x: cotengra.einsum("ab,cb,cd->ad", x, x, x),
    "einx": lambda x: einx.id("a (b c) -> c a b", x, b=2),
    "einx.sum": lambda x: einx.sum("a [b]", x),
    "einx.dot": lambda x: einx.dot("a [b], c [b] -> a c", x, x),
}


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """The line of the page, for autoray and for cotengra, which asks it."""
    autoray.register_backend(DistTensor, "numpy")
    yield


@pytest.mark.parametrize("ranks", (1, 2, 3))
@pytest.mark.parametrize("layout", ("block[(0),()]", "[(),(0:cyclic)]"))
def test_libraries_of_arrays_take_tensors(ranks: int, layout: str) -> None:
    """Law: a call gives the tensor of what it gives for the whole array, and gathers nothing."""
    wanted = {name: call(FIELD) for name, call in CALLS.items()}

    def program(comm: Any) -> None:
        x = DistTensor.from_global(FIELD, layout, comm)
        with rote.config(implicit="allow"):
            for name, call in CALLS.items():
                got = call(x)
                assert isinstance(got, DistTensor) and got.dtype == wanted[name].dtype, name
                np.testing.assert_allclose(got.to_global(), wanted[name], 1e-13, err_msg=name)

    rote.run(program, ranks)


class Partition(Enum):
    """How arrays of PyLops-MPI lie."""

    SCATTER = "Scatter"
    BROADCAST = "Broadcast"


class DistributedArray:
    """The attributes of PyLops-MPI's arrays, with a part on each rank."""

    base_comm = property(lambda self: self.comm)
    global_shape = property(lambda self: FIELD.shape)
    local_array = property(lambda self: self.part)

    def __init__(self, comm: Any, axis: int, partition: Partition) -> None:
        self.comm, self.axis, self.partition = comm, axis, partition
        whole = partition is Partition.BROADCAST
        self.part = FIELD if whole else np.array_split(FIELD, comm.size, axis)[comm.rank]


@pytest.mark.parametrize("partition", Partition)
@pytest.mark.parametrize("axis", (0, 1))
def test_arrays_of_pylops_mpi_say_how_they_come_in(axis: int, partition: Partition) -> None:
    """Law: such an array is refused as one that all ranks have, and the line of the error makes the tensor."""

    def program(comm: Any) -> None:
        d = DistributedArray(comm, axis, partition)
        x = DistTensor.zeros(FIELD.shape, "block[(0),()]", comm)
        for call in (lambda: DistTensor.from_global(d, "block[(0),()]", comm), lambda: x + d, lambda: np.add(d, x)):
            with pytest.raises(TypeError, match="of PyLops-MPI has one part on each rank") as refused:
                call()
        line = str(refused.value).partition("write ")[2]
        np.testing.assert_array_equal(eval(line, {"rote": rote, "d": d}).to_global(), FIELD)

    rote.run(program, 3)
