"""Contractions of many operands: NumPy's numbers, the order of the products, and the time of the search."""

from __future__ import annotations

import random
from time import process_time

import numpy as np
import pytest

import rote
from rote import DistTensor
from rote.functions.contraction.stages import Product

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def chain(count: int) -> str:
    """A product of matrices."""
    return ",".join(LETTERS[n : n + 2] for n in range(count)) + "->a" + LETTERS[count]


def ring(count: int) -> str:
    """The trace of a product of matrices."""
    return ",".join(LETTERS[n] + LETTERS[(n + 1) % count] for n in range(count)) + "->"


def star(count: int) -> str:
    """A tensor of three modes, with several matrices for each."""
    return "abc," + ",".join("abc"[n % 3] + LETTERS[n + 3] for n in range(count - 1)) + "->de"


def core(count: int) -> str:
    """A tensor with a matrix for each of its modes."""
    modes = LETTERS[: count - 1]
    return f"{modes}," + ",".join(x + x.upper() for x in modes) + f"->{modes.upper()}"


def apart(count: int) -> str:
    """Two products of matrices that have no letter in common."""
    half = count // 2
    return chain(half).split("->")[0] + "," + chain(count - half).split("->")[0].upper() + "->aA"


def layouts(text: str, order: int, seed: int) -> list[str]:
    """Random layouts of blocks, in which each grid mode splits some mode of each operand."""
    chance, made = random.Random(seed), []
    for term in text.split("->")[0].split(","):
        modes: list[list[str]] = [[] for _ in term]
        for g in range(order):
            chance.choice(modes).append(str(g))
        made.append("block[" + ",".join(f"({','.join(mode)})" for mode in modes) + "]")
    return made


@pytest.mark.parametrize("count", [6, 8, 9, 12])
@pytest.mark.parametrize("make", [chain, ring, star, apart])
def test_many_operands_are_numpys(make, count):
    """Integers exactly, on four ranks of this process, where operands lie anyhow; the plan is proved."""
    text, generator = make(count), np.random.default_rng(count)
    extents = {x: int(generator.integers(1, 3 if make is star else 5)) for x in text if x.isalpha()}
    terms = text.split("->")[0].split(",")
    arrays = [generator.integers(-3, 4, [extents[x] for x in term]) for term in terms]
    places = layouts(text, 2, count)

    def program(comm: rote.Comm) -> np.ndarray:
        tensors = [DistTensor.from_global(a, lay, comm, (2, 2)) for a, lay in zip(arrays, places, strict=True)]
        return rote.einsum(text, *tensors).to_global()

    with rote.config(implicit="allow", gather="allow"):
        for got in rote.run(program, 4):
            np.testing.assert_array_equal(got, np.einsum(text, *arrays, optimize="greedy"))
    rote.compile_einsum(text, [a.shape for a in arrays], places, (2, 2), dtype="i8").verify()


@pytest.mark.parametrize("count", [6, 8, 9, 12])
def test_a_chain_ends_with_its_vector(count):
    """Matrices and a vector are multiplied from the vector, on 16 ranks: no stage makes a matrix."""
    text = chain(count)[:-2]  # the last matrix has one column
    terms = [*text.split("->")[0].split(",")]
    text = ",".join([*terms[:-1], terms[-1][0]]) + "->a"
    shapes = [(256, 256)] * (count - 1) + [(256,)]
    plan = rote.compile_einsum(text, shapes, ["block[(0),(1)]"] * (count - 1) + ["block[(0)]"], (4, 4))
    assert [len(stage.term) for stage in plan.stages if isinstance(stage, Product)] == [1] * (count - 1)


@pytest.mark.parametrize("make", [chain, ring, star, apart, pytest.param(core, marks=pytest.mark.slow)])
def test_eight_operands_are_planned_in_seconds(make):
    """Ten seconds of CPU at most on 4x4; the last one takes five where nothing else runs."""
    text = make(8)
    shapes = [(4,) * len(term) for term in text.split("->")[0].split(",")]
    begin = process_time()
    rote.compile_einsum(text, shapes, layouts(text, 2, 0), (4, 4))
    assert process_time() - begin <= 10
