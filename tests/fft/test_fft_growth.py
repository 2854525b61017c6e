"""Planning is arithmetic on digits: it takes as many calls and as much memory for 2**12 times as many points.

Seconds are not measured. A sweep over indices inside one call of NumPy's would show in the peak of memory.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from growth import effort

import rote
from rote.compiler.movement import movement
from rote.fft import FFT

TIMES = (2**4, 2**8, 2**12)
MOST = 1.5
SLACK = 2**21  # bytes; a sweep over 2**22 indices takes 2**25


def check(plan: Callable[[int], object], start: int, times: tuple[int, ...] = TIMES) -> None:
    """Plan at some size, and at multiples of it."""
    plan(start // 2)  # what is made once in a process
    few, peak = effort(lambda: plan(start))
    for factor in times:
        more, higher = effort(lambda factor=factor: plan(start * factor))
        assert more <= MOST * few, (factor, few, more)
        assert higher <= MOST * peak + SLACK, (factor, peak, higher)


TRANSFORMS = {
    "a line, cyclic": (lambda n: n, "[(0)]", None, "c16"),
    "a line, in blocks": (lambda n: n, "block[(0)]", None, "c16"),
    "a real line": (lambda n: n, "block[(0)]", None, "f8"),
    "slabs": (lambda n: (n, 64, 60), "block[(0),(),()]", None, "c16"),
    "rows": (lambda n: (n, 8, 6), "(a b) c: block[(0),()]", None, "c16"),
    "pencils": (lambda n: (64, n, 48), "block[(0),(1),()]", (2, 2), "f8"),
    "volumes": (lambda n: (n, 64, 16), "[(0),(1),()]", (2, 2), "c16"),
}


@pytest.mark.parametrize("times", (TIMES[-1:], pytest.param(TIMES[:-1], marks=pytest.mark.slow)), ids=("most", "less"))
@pytest.mark.parametrize("name", TRANSFORMS)
def test_planning_a_transform_does_not_grow(name: str, times: tuple[int, ...]) -> None:
    """Law: `FFT(…)` takes at most 1.5 times as many calls, and as much memory, for 2**4, 2**8 and 2**12 times n."""
    shape, layout, grid, dtype = TRANSFORMS[name]

    def plan(n: int) -> None:
        ranks = 4 if grid else 2
        rote.run(lambda comm: str(FFT(shape(n), layout, grid, comm, dtype)), ranks=ranks)

    check(
        plan, 2**18 if name.startswith("a") else 2**10, times
    )  # from there on bytes outweigh latency: no plan is in doubt


MOVES = [
    ("[(0)] -> block[(0)]", 8, lambda n: n),
    ("block[(0)] -> block(ceil)[(0)]", 7, lambda n: n + 3),
    ("(a b) c: block[(0),()] -> (c b) a: block[(0),()]", 4, lambda n: (n, 6, 8)),
    ("(r s=4): [(),(0)] -> (r s=16): block[(0),()]", 4, lambda n: n),
    ("(a b): [(0,1)] -> [(0:cyclic(4)),(1:block)]", (2, 3), lambda n: (n, 12)),
]


@pytest.mark.parametrize("text, grid, shape", MOVES, ids=[text for text, _, _ in MOVES])
def test_compiling_and_binding_a_move_does_not_grow(text: str, grid: object, shape: Callable[[int], object]) -> None:
    """Law: the same of `compile`, its certificate included, and of what a rank copies in every step."""
    from rote.runtime.regions import direct_regions, read_regions

    def plan(n: int) -> None:
        found = rote.compile(text, shape=shape(n), grid=grid, dtype="c16")
        for step in found.steps:
            direct_regions(movement(step.before, step.after), 1)
            read_regions(movement(step.before, step.after), 0)

    check(plan, 3 * 2**16)  # from there on bytes outweigh latency: the search looks at as many layouts


def test_a_sweep_is_found_out() -> None:
    """The measurement can fail: an array of all indices is seen, and so is a loop over a part of them."""
    import numpy as np

    with pytest.raises(AssertionError):
        check(lambda n: np.arange(64 * n), 2**10)
    with pytest.raises(AssertionError):
        check(lambda n: [abs(k) for k in range(n // 16)], 2**10)
