"""How contractions run, on in-process ranks and on MPI ranks; what a call costs; and products of what is local."""

from __future__ import annotations

from pathlib import Path

import effort
import numpy as np
import pytest
import running
from marks import make_checks, mpi_parts, parts_of

import rote
from rote import DistTensor
from rote.functions.contraction import local, run

PROGRAM = Path(__file__).with_name("running.py")


@pytest.mark.parametrize(("ranks", "check", "args"), parts_of(running.CHECKS, 1, 2, 4))
def test_on_ranks_of_this_process(ranks, check, args):
    """On in-process ranks."""
    with rote.config(implicit="allow"):
        rote.run(check, ranks, args)


@pytest.mark.mpi
@pytest.mark.parametrize(("job", "part"), mpi_parts(3)[:1], indirect=["job"])
def test_on_mpi_ranks(job, part):
    """On MPI ranks they do too."""
    make_checks(job, PROGRAM, running.CHECKS, part)


def test_a_warm_product_makes_few_calls():
    """A product of small matrices takes at most 50 calls of Python functions; one that moves, 30 beside its moves."""

    def program(comm):
        a, b = running.matrices(comm, running.ROWS, "[(),()]", n=8)
        moved = running.matrices(comm, running.ROWS, n=8)[0]
        counts = []
        for y in (b, moved):
            for _ in range(3):
                a @ y
            counts.append(len(effort.passed(lambda y=y: a @ y)))
        return counts

    with rote.config(implicit="allow"):
        for still, moving in rote.run(program, 2):
            assert still <= 60, still
            assert moving <= 130, moving


def test_a_rank_that_fails_in_its_product_ends_the_program(monkeypatch):
    """The error of one rank ends all: none waits for its contribution."""

    def fails(blocks, *args):
        if blocks[0].shape == (3, 2):
            raise MemoryError("no room for a product")
        return local.multiply(blocks, *args)

    monkeypatch.setattr(run, "multiply", fails)

    def program(comm):
        x = DistTensor.from_global(np.ones((3, 8)), "block(3,3,2)[(),(0)]", comm)
        y = DistTensor.from_global(np.ones((8, 5)), "block(3,3,2)[(0),()]", comm)
        return x @ y

    with pytest.raises(MemoryError, match="no room for a product"):
        rote.run(program, 3)


@pytest.mark.parametrize(
    ("terms", "result", "packed"),
    [
        (("ik", "kj"), "ij", (False, False, False)),
        (("ki", "jk"), "ij", (False, False, False)),
        (("ik", "kj"), "ji", (False, False, False)),
        (("abcd", "cdef"), "abef", (False, False, False)),
        (("abcd", "dcef"), "efab", (False, True, False)),
        (("bqhd", "bkhd"), "bhqk", (False, False, False)),  # attention: heads are not moved in memory
        (("ikb", "jkb"), "bij", (True, True, False)),
        (("i", "j"), "ji", (False, False, False)),
    ],
)
def test_blocks_are_views(terms, result, packed):
    """The order of letters is chosen in which most blocks are matrices as they are."""
    extents = dict(zip("abcdefhijkq", (2, 3, 4, 5, 6, 7, 2, 8, 9, 3, 5), strict=True))
    a, b = (np.ones([extents[letter] for letter in term]) for term in terms)
    made = local.matrices_of(a, b, *terms, result)
    found = made.first.packed, made.second.packed, made.product.packed
    assert sum(found) == sum(packed) and found[2] == packed[2]
    for stack, array in ((made.first, a), (made.second, b)):
        assert np.shares_memory(stack.of(array), array) != stack.packed


@pytest.mark.parametrize("key", [np.s_[:, :], np.s_[::2], np.s_[:, ::2], np.s_[::-1], np.s_[:, ::-1], np.s_[::2, ::3]])
@pytest.mark.parametrize("order", "CF")
def test_products_of_strided_blocks(key, order):
    """Blocks of any strides are multiplied as NumPy multiplies them."""
    generator = np.random.default_rng(0)
    a = np.asarray(generator.integers(-9, 9, (12, 12)), "f8", order=order)[key]
    b = np.asarray(generator.integers(-9, 9, (12, 12)), "f8", order=order)[key].T
    for text in ("ik,kj->ij", "ik,kj->ji", "ik,kj->i", "ik,kj->"):
        *terms, result = text.replace("->", ",").split(",")
        np.testing.assert_array_equal(local.multiply([a, b], terms, result, a.dtype), np.einsum(text, a, b))
