"""What a transform allocates while it runs, counted."""

from __future__ import annotations

import tracemalloc

import numpy as np


def bytes_taken(f, x):
    """Transform a tensor there and back three times; what the last allocates at most, on all ranks of this process.

    Counted by tracemalloc from rank 0, which says it; other ranks say 0. From the second time on output is given: it
    goes where the results of the first lie, and what can be prepared for that is.
    """
    X = f.forward(x)
    back = f.backward(X)
    assert np.allclose(back.local, x.local)
    f.backward(f.forward(x, out=X), out=back)
    f.comm.barrier()
    if f.comm.rank == 0:
        tracemalloc.start()
    f.comm.barrier()
    f.forward(x, out=X)
    f.backward(X, out=back)
    f.comm.barrier()
    peak = 0
    if f.comm.rank == 0:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    f.comm.barrier()
    assert np.allclose(back.local, x.local)
    return peak
