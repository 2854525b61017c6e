"""The MP2 correlation energy: four-index integrals go from atomic to molecular orbitals in one einsum of five operands.

    python mp2.py                 four ranks, which are threads of one process
    mpiexec -n 4 python mp2.py    four processes

    (ia|jb) = sum over p, q, r, s of (pq|rs) C[p,i] C[q,a] C[r,j] C[s,b]

The integrals and orbitals are random, with the symmetries of real ones. Written as one sum over all letters this takes
n⁸ operations; the plan multiplies one matrix of orbitals at a time, which takes n⁵, and says where each intermediate
tensor lies.
"""

from __future__ import annotations

import argparse

import numpy as np

import rote

TRANSFORM = "pqrs,pi,qa,rj,sb->iajb"
AO = "block[(0),(1),(),()]"  # integrals of atomic orbitals: in blocks of p and q
MO = "block[(0),(),(1),()]"  # integrals of molecular orbitals: in blocks of i and j, so that (ib|ja) is local


def random_molecule(n, occupied, seed=0):
    """Integrals (pq|rs) of n atomic orbitals, and the coefficients and energies of molecular orbitals."""
    rng = np.random.default_rng(seed)
    pairs = rng.standard_normal((2 * n, n, n))
    pairs = (pairs + pairs.transpose(0, 2, 1)) / n
    integrals = np.einsum("xpq,xrs->pqrs", pairs, pairs)
    C = np.linalg.qr(rng.standard_normal((n, n)))[0]
    energies = np.concatenate([-2 - rng.random(occupied), 2 + rng.random(n - occupied)])
    return integrals, C[:, :occupied], C[:, occupied:], energies


def energy(iajb, exchanged, gaps):
    """The closed-shell energy; `exchanged` is (ib|ja). The same code for arrays and for tensors."""
    return float((iajb * (2 * iajb - exchanged) / gaps).sum())


def program(comm, n, occupied):
    """Compute the energy on one rank; return it with NumPy's."""
    integrals, Co, Cv, e = random_molecule(n, occupied)
    eo, ev = e[:occupied], e[occupied:]
    gaps = eo[:, None, None, None] + eo[:, None] - ev[:, None, None] - ev
    grid = rote.Grid.of(comm.size, 2)

    shapes = [x.shape for x in (integrals, Co, Cv, Co, Cv)]
    plan = rote.compile_einsum(TRANSFORM, shapes, [AO, *["[(),()]"] * 4], grid, layout=MO)
    pqrs = rote.DistTensor.from_global(integrals, AO, comm, grid)
    iajb = rote.einsum(TRANSFORM, pqrs, Co, Cv, Co, Cv, plan=plan)  # every rank has Co and Cv
    with rote.config(implicit="error"):  # from here on nothing moves but the sum
        exchanged = rote.einsum("iajb->ibja", iajb)
        mp2 = energy(iajb, exchanged, rote.DistTensor.from_global(gaps, MO, comm, grid))

    right = np.einsum(TRANSFORM, integrals, Co, Cv, Co, Cv, optimize=True)
    expected = energy(right, right.transpose(0, 3, 2, 1), gaps)
    assert np.allclose(iajb.to_global(), right, rtol=0, atol=1e-12)
    assert abs(mp2 - expected) < 1e-10 * abs(expected)
    if comm.rank == 0:
        plan.verify()
        print(plan)
        print(f"a rank receives {plan.cost.bytes:,} bytes")
        print(f"MP2 energy {mp2:.9f}, by NumPy {expected:.9f}")
    return mp2, expected


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orbitals", type=int, default=14)
    parser.add_argument("--occupied", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=4)
    options = parser.parse_args()
    rote.run(program, options.ranks, (options.orbitals, options.occupied))
