"""Planning of transforms: once for all in-process ranks, and in as many calls as the walks are worth."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest
from effort import calls

import rote
from rote.cli.predict import _ranked
from rote.compiler import cost
from rote.compiler.plan import Plan
from rote.fft import FFT, compare, fftn
from rote.fft.families import choose
from rote.fft.request import Arguments, as_request


@pytest.fixture
def counted(monkeypatch):
    """A name for each walk that is priced and each plan that is verified, on all threads."""
    found = []  # no counter, whose first counts of two threads may be one

    def counting(name, function, *args, **kwargs):
        found.append(name)
        return function(*args, **kwargs)

    monkeypatch.setattr(choose, "_choice", partial(counting, "choices", choose._choice))
    verify = Plan.verify
    monkeypatch.setattr(Plan, "verify", lambda plan: counting("plans", verify, plan))
    return found


def together(program, ranks):
    """A program on in-process ranks that begin at the same time."""
    start = threading.Barrier(ranks)

    def begun(comm):
        start.wait()
        return program(comm)

    return rote.run(begun, ranks)


@pytest.mark.parametrize("ranks", (2, 4, 8))
def test_ranks_of_one_process_plan_once(ranks, counted):
    """Law: walks are compared once, and each transition is compiled once, whatever the number of in-process ranks."""
    shape = (8 + ranks, 12, 16)  # of nobody else's plans

    def program(comm):
        f = FFT(shape, comm=comm)
        assert f.workspace_bytes  # both directions are bound, and so compiled, now
        return f.walk

    walks = together(program, ranks)
    assert len({id(walk) for walk in walks}) == 1
    wanted = as_request(shape, (0, 1, 2), "fft", np.dtype("D"))
    arguments = choose.ranking(Arguments(shape, wanted, ranks), rote.Machine())
    assert 0 < counted.count("choices") <= len(arguments)
    assert counted.count("plans") == len({*walks[0].ends, *walks[0].inverse().ends})
    before = counted.copy()
    together(program, ranks)
    assert counted == before


def test_functions_plan_once(counted):
    """Law: so do the functions, for tensors that lie where they lie."""

    def program(comm):
        x = rote.DistTensor.zeros((7, 11, 12), "block[(0),(),()]", comm)
        return str(fftn(x).layout)

    assert len({*together(program, 4)}) == 1
    assert (counted.count("choices"), counted.count("plans")) == (2, 1)


@pytest.mark.parametrize("ranks", (256, *(pytest.param(more, marks=pytest.mark.slow) for more in (1024, 4096))))
def test_explaining_costs_what_its_walks_are_worth(ranks, counted):
    """Law: a comparison on all grids compiles and proves nothing, and takes some thousands of calls per candidate."""
    shape, axes, dtype = (256, 256, 256), (0, 1, 2), np.dtype("D")
    choose.ranking(
        Arguments((4, 4, 4), as_request((4, 4, 4), axes, "fft", dtype), 2)
    )  # what is imported and parsed once
    lines: list[str] = []
    spent = calls(lambda: lines.extend(_ranked(compare(shape, ranks, dtype="D"), why=False)))
    found = choose.ranking(Arguments(shape, as_request(shape, axes, "fft", dtype), ranks))
    assert spent < 12_000 * len(found)
    assert counted.count("plans") == 0
    assert len(lines) <= 2 + 4 + sum(choice.walk is not None for choice in found)


def test_equal_moves_are_priced_once(monkeypatch):
    """Law: moves that walks share are priced a single time; on that grid turned round they cost the same."""
    priced = []
    algorithms = cost._algorithms
    monkeypatch.setattr(cost, "_algorithms", lambda *args: priced.append(args) or algorithms(*args))
    rote.clear_caches()
    wanted = as_request((64, 64, 64), (0, 1, 2), "fft", np.dtype("D"))
    source = rote.parse("block[(0),(1),()]")
    prices = choose.Prices(rote.Machine())
    walks = [choose.walk_of(source.on((64, 64, 64), grid), wanted, "pencil") for grid in ((2, 8), (8, 2), (2, 8))]
    found = [prices(walk) for walk in walks]
    assert found[0] == found[1] == found[2] and len(priced) == 4
    uneven = choose.walk_of(
        source.on((64, 60, 64), (2, 8)), as_request((64, 60, 64), (0, 1, 2), "fft", np.dtype("D")), "pencil"
    )
    assert prices(uneven) != found[0] and len(priced) == 6


def test_walks_are_in_the_register_of_caches_and_cleared():
    """Law: after clearing nothing is kept of a walk, and what is asked for again is equal."""
    walk = FFT((6, 4), dtype="D").walk
    chosen = [info for name, info in rote.cache_info().items() if name.startswith("rote.fft.families.choose.")]
    assert any(info.size for info in chosen)

    rote.clear_caches()
    assert not any(info.size for name, info in rote.cache_info().items() if name.startswith("rote.fft."))
    assert FFT((6, 4), dtype="D").walk == walk
