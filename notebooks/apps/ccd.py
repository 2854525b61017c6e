"""Coupled-cluster doubles: amplitudes by fixed-point iterations, whose terms are contractions of distributed tensors.

    python ccd.py                 four ranks, which are threads of one process
    mpiexec -n 4 python ccd.py    four processes

The equations are those of spin orbitals (Shavitt and Bartlett, Many-Body Methods, 2009, chapter 9), for random
integrals with the right symmetries. The amplitudes T[i,j,a,b] lie in blocks of a and b, and so does every term. NumPy
iterates the same equations on each rank; integrals and amplitudes of a real molecule would be made block by block.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

import rote

LAYOUT = "block[(),(),(0),(1)]"
TERMS = (  # factor, subscripts, which integrals, and the letters in which the term is made antisymmetric
    (1 / 2, "abcd,ijcd->ijab", "vvvv", ""),
    (1 / 2, "klij,klab->ijab", "oooo", ""),
    (1.0, "kbcj,ikac->ijab", "ovvo", "ij ab"),
    (1 / 4, "klcd,ijcd,klab->ijab", "oovv", ""),
    (1.0, "klcd,ikac,jlbd->ijab", "oovv", "ij"),
    (-1 / 2, "klcd,ikdc,ljab->ijab", "oovv", "ij"),
    (-1 / 2, "klcd,lkac,ijdb->ijab", "oovv", "ab"),
)
SWAPPED = {"ij": "ijab->jiab", "ab": "ijab->ijba"}


def random_molecule(o, v, size=0.02, seed=0):
    """Antisymmetric integrals <pq||rs> of o occupied and v virtual spin orbitals, by block, and orbital energies."""
    rng = np.random.default_rng(seed)
    V = size * rng.standard_normal((o + v,) * 4)
    V = V - V.transpose(1, 0, 2, 3)
    V = V - V.transpose(0, 1, 3, 2)
    V = V + V.transpose(2, 3, 0, 1)
    parts = {"o": slice(o), "v": slice(o, None)}
    blocks = {name: V[tuple(parts[p] for p in name)] for name in ("vvvv", "oooo", "ovvo", "oovv")}
    occupied, virtual = -1 - rng.random(o), 1 + rng.random(v)
    gaps = virtual[:, None] + virtual - occupied[:, None, None, None] - occupied[:, None, None]
    return blocks, gaps


def residual(einsum, V, gaps, T):
    """What the equations leave of amplitudes: zero for their solution. The same code for arrays and for tensors."""
    total = V["oovv"] + gaps * T
    for factor, text, name, swaps in TERMS:
        term = factor * einsum(text, V[name], *[T] * (text.count(",")))
        for swap in swaps.split():
            term = term - einsum(SWAPPED[swap], term)
        total = total + term
    return total


def solve(einsum, V, gaps, iterations):
    """The amplitudes and the correlation energy."""
    T = -V["oovv"] / gaps
    for _ in range(iterations):
        T = T - residual(einsum, V, gaps, T) / gaps
    return T, 0.25 * float((V["oovv"] * T).sum())


def program(comm, o, v, iterations):
    """Solve on one rank; return the energies by ranks and by NumPy, and the largest element of the residual."""
    V, gaps = random_molecule(o, v)
    grid = rote.Grid.of(comm.size, 2)
    spread = partial(rote.DistTensor.from_global, layout=LAYOUT, comm=comm, grid=grid)
    tensors = {name: spread(block) for name, block in V.items()}
    moved = {}

    def einsum(text, *operands):
        with rote.trace() as moves:
            result = rote.einsum(text, *operands, layout=LAYOUT)
        moved[text] = sum(move.nbytes for move in moves)
        return result

    T, energy = solve(einsum, tensors, spread(gaps), iterations)
    left = float(abs(residual(einsum, tensors, spread(gaps), T)).max())
    right, expected = solve(partial(np.einsum, optimize=True), V, gaps, iterations)
    assert np.allclose(T.to_global(), right, rtol=0, atol=1e-13)
    assert abs(energy - expected) < 1e-12
    if comm.rank == 0:
        print(f"{o} occupied and {v} virtual spin orbitals on grid {grid}")
        for text, nbytes in moved.items():
            print(f"  {text:22} a rank receives {nbytes:9,} bytes")
        print(f"energy {energy:.9f}, by NumPy {expected:.9f}, residual {left:.0e}")
    return energy, expected, left


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--occupied", type=int, default=4)
    parser.add_argument("--virtual", type=int, default=10)
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("--ranks", type=int, default=4)
    options = parser.parse_args()
    rote.run(program, options.ranks, (options.occupied, options.virtual, options.iterations))
