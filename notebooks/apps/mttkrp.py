"""A CP decomposition by alternating least squares: X[i,j,k] is near the sum over a of A[i,a] B[j,a] C[k,a].

    python mttkrp.py                 four ranks, which are threads of one process
    mpiexec -n 4 python mttkrp.py    four processes

Each step of a sweep solves for one factor. Its right-hand side is the product of the tensor with the other two factors,
`ijk,ja,ka->ia`, which is known as MTTKRP (Kolda and Bader 2009). The tensor is large and the factors are small: so the
blocks of X stay where they are, and parts of factors travel.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

import rote

TENSOR, FACTORS = "block[(0),(1),()]", ("block[(0),()]", "block[(1),()]", "[(),()]")
STEPS = ("ijk,ja,ka->ia", "ijk,ia,ka->ja", "ijk,ia,ja->ka")


def random_problem(shape, rank, seed=0):
    """A tensor that is a sum of `rank` outer products, and factors near the true ones to begin with."""
    rng = np.random.default_rng(seed)
    true = [rng.random((n, rank)) for n in shape]
    return np.einsum("ia,ja,ka->ijk", *true), [each + 0.2 * rng.random(each.shape) for each in true]


def sweep(einsum, X, factors):
    """Solve for each factor in turn. The same code for arrays and for tensors."""
    factors = [*factors]
    for mode, text in enumerate(STEPS):
        first, second = factors[:mode] + factors[mode + 1 :]
        products = einsum(text, X, first, second, layout=FACTORS[mode])
        gram = einsum("ja,jb->ab", first, first) * einsum("ka,kb->ab", second, second)
        factors[mode] = einsum("ia,ab->ib", products, np.linalg.pinv(gram), layout=FACTORS[mode])
    return factors


def error(einsum, X, factors):
    """The norm of the difference from the tensor, relative to the tensor's."""
    near = einsum("ia,ja,ka->ijk", *factors, layout=TENSOR)
    return float(np.sqrt((abs(X - near) ** 2).sum() / (abs(X) ** 2).sum()))


def by_numpy(text, *operands, layout=None):
    """NumPy's einsum, for which a layout says nothing."""
    return np.einsum(text, *operands, optimize=True)


def program(comm, shape, rank, sweeps):
    """Decompose on one rank; return the errors after each sweep, by ranks and by NumPy."""
    array, begin = random_problem(shape, rank)
    spread = partial(rote.DistTensor.from_global, comm=comm, grid=rote.Grid.of(comm.size, 2))
    X, factors = spread(array, TENSOR), [spread(each, layout) for each, layout in zip(begin, FACTORS, strict=True)]
    moved = {}

    def einsum(text, *operands, layout="[(),()]"):
        with rote.trace() as moves:
            result = rote.einsum(text, *operands, layout=layout)
        moved[text] = sum(move.nbytes for move in moves)
        return result

    errors, expected = [], []
    for _ in range(sweeps):
        factors, begin = sweep(einsum, X, factors), sweep(by_numpy, array, begin)
        errors.append(error(einsum, X, factors))
        expected.append(error(by_numpy, array, begin))
    assert all(np.allclose(x.to_global(), right, rtol=1e-9) for x, right in zip(factors, begin, strict=True))
    if comm.rank == 0:
        print(f"{shape} in {rank} outer products, on grid {X.grid}; a rank holds {X.local.nbytes:,} bytes of X")
        for text in STEPS:
            print(f"  {text}   a rank receives {moved[text]:6,} bytes")
        print("errors", *(f"{each:.6f}" for each in errors))
    return errors, expected


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs=3, default=(24, 20, 16))
    parser.add_argument("--rank", type=int, default=3, help="the number of outer products")
    parser.add_argument("--sweeps", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=4)
    options = parser.parse_args()
    rote.run(program, options.ranks, (tuple(options.shape), options.rank, options.sweeps))
