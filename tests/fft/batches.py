"""A program for any ranks: fields of small components by every method of exchange, against one by one.

Under mpiexec: `python batches.py`. In one process: `rote.run(bits, ranks)`.
"""

from __future__ import annotations

import numpy as np

import rote
from rote import DistTensor
from rote.fft import FFT


def bits(comm):
    """The fields whose bits are those of their components, by every method that these ranks can have."""
    compared = 0
    for method in (name for name in rote.methods if not name.endswith("-32")):  # which few ranks have without
        for shape, layout, dtype, algorithm in (
            ((6, 9, 5), "block[(0),(),()]", "f8", "slab"),
            ((5, 7, 3), "block[(0),(),()]", "c8", "slab"),
            ((16 * comm.size, 6), "[(0),()]", "c16", "auto"),
        ):
            try:
                f = FFT(shape, layout, -1, comm, dtype, algorithm=algorithm, method=method)
            except rote.CommError:
                continue  # threads have not all
            x = f.empty_input((5,))
            x.local[...] = np.random.default_rng(comm.rank).standard_normal(x.local.shape)
            X = f.forward(x)
            back = f.backward(X)
            for number in range(5):
                lone = f.forward(DistTensor(x.local[number].copy(), f.input_distribution, comm))
                assert lone.local.tobytes() == X.local[number].tobytes(), (method, shape)
                assert f.backward(lone).local.tobytes() == back.local[number].tobytes(), (method, shape)
            compared += 1
    return compared


def there_and_back(comm):
    """How many runs of fields come back, where both ways need scratch of different sizes on ranks that hold nothing."""
    runs = 0
    for method in ("alltoallv", "sendrecv", "persistent"):
        try:
            f = FFT((6, 2), "[(),(0:cyclic(3))]", -1, comm, "c8", kinds="dst4", method=method)
        except rote.CommError:
            continue  # threads have not all
        for components in ((3,), (5,), (3,), (2, 2)):
            u = f.empty_input(components)
            u.local[...] = 1
            for _ in range(2):
                np.testing.assert_allclose(f.backward(f.forward(u)).local, u.local, rtol=1e-5)
                runs += 1
    return runs


if __name__ == "__main__":
    from rote.runtime import world

    assert there_and_back(world()) == 3 * 4 * 2
    print("compared", bits(world()))
