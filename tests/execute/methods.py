"""A program for any ranks: every method of exchange, over the transitions and the factors of the other tests.

Under mpiexec: `python methods.py number ranks-per-node most [method ...]`. In one process: `rote.run(check, ranks)`.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))

from execute import factors, moves

import rote
from rote.errors import CommError
from rote.runtime import plans
from rote.runtime.comm.protocol import MpiHandle
from rote.runtime.exchange.point_to_point import Isend, Waitsome
from rote.runtime.exchange.registry import METHODS
from rote.runtime.plans import bind

# what these ranks cannot have, by the words that say so
ABSENT = {
    "is a method of MPI's, and these ranks are threads of one process": "MPI",
    "this MPI has no persistent collectives": "persistent",
    "cannot share memory": "shared",
}


def check(comm, number=60, names=()):
    """All methods move and multiply right, or say why they cannot. Returns the names of those that did.

    In moves, the memory of a method fits the claim of a plan to the byte, or gives way.
    """
    done = []
    for name in names or METHODS:
        missing = absent(comm, name)
        if not missing:
            # Threads hold nothing by a method, and would put back what another one has patched.
            with patch.object(plans, "_SLACK", 0) if isinstance(comm, MpiHandle) else nullcontext():
                moves.check(comm, number, name)
            factors.check(comm, number // 2, name)
            done.append(name)
    return done


def absent(comm, name):
    """Why these ranks cannot have a method; empty if they can."""
    plan = rote.compile("[(0),()] -> [(),(0)]", shape=(2 * comm.size, 3 * comm.size), grid=comm.size)
    try:
        bind(plan, comm, name)
    except CommError as error:
        return next(short for text, short in ABSENT.items() if text in str(error))
    return ""


def on_nodes(ranks_each):
    """For a while the ranks of MPI's world count as those of several nodes, of so many each: on new communicators."""
    from rote.runtime import world
    from rote.runtime.comm.mpi import MpiComm

    node = world().rank // ranks_each

    def nodes(self):
        if "nodes" not in self.cache:
            told = self.allgather_object(node)
            number = {one: n for n, one in enumerate(dict.fromkeys(told))}
            self.cache["nodes"] = tuple(number[one] for one in told)
        return self.cache["nodes"]

    return patch.object(MpiComm, "nodes", nodes)


def taken(comm):
    """The methods that are taken where none is named, for few and for many elements that all ranks exchange."""
    plans = [rote.compile("[(0),()] -> [(),(0)]", shape=(n, n), grid=comm.size) for n in (comm.size, 500)]
    programs = [bind(plan, comm) for plan in plans]
    return [program.methods[0] for program in programs]


if __name__ == "__main__":
    number, ranks_each, most, *asked = sys.argv[1:]
    parted = {"isend-32": partial(Isend, at_once=2), "waitsome-32": partial(Waitsome, at_once=2)}
    with ExitStack() as changed:  # until the next program on these ranks
        changed.enter_context(patch.dict(METHODS, parted))
        if int(ranks_each):
            changed.enter_context(on_nodes(int(ranks_each)))
        if int(most):  # elements that one call of MPI can count
            changed.enter_context(patch("rote.runtime.comm.mpi._MOST", int(most)))
        here = rote.runtime.world().split(0, 0)  # which keeps nothing of what others bound
        found = check(here, int(number), asked)
        usual = taken(here) if here.size > 1 else ()
    if here.rank == 0:
        print(*found, "| usual:", *usual)
