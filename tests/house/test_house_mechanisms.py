"""One mechanism per job: one loop that times."""

from __future__ import annotations

import ast

from house import files, tree

# Files that read the clock, and what for.
CLOCKS = {
    "rote/__main__.py": "when the command began",
    "rote/runtime/autotune.py": "the loop",
    "fft/kernels/timing.py": "a turn of a kernel: many calls for one reading",
    "fft/kernels/backends/fftw.py": "when FFTW is to end its planning",
}


def readers(name: str) -> set[str]:
    """The files of the product, but for the command line and the comparisons, that use something of this name."""
    return {
        path
        for path in files()
        if not path.startswith(("rote/cli/", "rote/bench/"))
        and any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree(path)))
    }


def test_one_loop_times() -> None:
    """No other file than these reads the clock, and one alone forms medians."""
    assert readers("perf_counter") == CLOCKS.keys()
    assert readers("median") == {"rote/runtime/autotune.py"}
