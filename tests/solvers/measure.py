"""Whole solvers by the clock on the wall: programs in turn, round after round, from the start of each to its end.

    python tests/solvers/measure.py --n 64 --rounds 5                   the Taylor-Green vortex
    python tests/solvers/measure.py --solver poisson --n 128 --steps 1

prints per program the medians (seconds) of the whole run and of its phases, and how often Rote's time it takes. All use
two cores: two MPI ranks, or two threads of one process. A library that is not installed is left out, with a word.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from rote.testing.plugin import launcher_environment, mpiexec_command

_PROGRAM = Path(__file__).with_name("solvers.py")
_PARTS = ("imported", "planned", "first", "end")
_LIBRARIES = ("rote tiles", "mpi4py-fft plain", "mpi4py-fft tiles", "scipy plain", "scipy tiles", "ducc0 tiles")


def once(solver: str, contestant: str, n: int, steps: int) -> dict[str, float | str]:
    """One run of a program, from its start: what it prints, and its seconds in all."""
    library, updates = contestant.split()
    launcher = [*mpiexec_command(), "-n", "2"] if library in ("rote", "mpi4py-fft") else []
    command = [*launcher, sys.executable, str(_PROGRAM), solver, library]
    command += ["--n", str(n), "--steps", str(steps), "--updates", updates]
    begin = time.time()
    own = {**launcher_environment(), "ROTE_SOLVERS_START": repr(begin), "OMP_NUM_THREADS": "1"}
    own.pop("MPIR_CVAR_ENABLE_HEAVY_YIELD", None)  # which is for more ranks than cores
    done = subprocess.run(command, env=own, stdout=subprocess.PIPE, text=True, check=True)
    return {**json.loads(done.stdout), "all": time.time() - begin}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solver", choices=("taylor-green", "poisson", "product"), default="taylor-green")
    parser.add_argument("--n", type=int, default=64)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", choices=_LIBRARIES, help="of these programs alone")
    options = parser.parse_args()
    runs: dict[str, list[dict[str, float | str]]] = {name: [] for name in options.only or _LIBRARIES}
    for _ in range(options.rounds):
        for name in [*runs]:
            try:
                runs[name].append(once(options.solver, name, options.n, options.steps))
            except subprocess.CalledProcessError:
                print(f"{name} does not run, and is left out", file=sys.stderr)
                del runs[name]
    print(f"{options.solver}, {options.n}³, {options.steps} steps, medians of {options.rounds} rounds in seconds")
    print(f"{'':36}{'all':>8}{'least':>8}{'imports':>9}{'plan':>8}{'first':>8}{'loop':>8}{'x Rote':>8}")
    base = 0.0
    for name, results in runs.items():
        ends = [[0.0, *(float(result[part]) for part in _PARTS)] for result in results]
        parts = [median(row[i + 1] - row[i] for row in ends) for i in range(len(_PARTS))]
        wall = [float(result["all"]) for result in results]
        base = base or median(wall)
        title = f"{results[0]['library']}, {name.split()[1]}"
        print(f"{title:36}{median(wall):8.3f}{min(wall):8.3f}", end="")
        print(f"{parts[0]:9.3f}{parts[1]:8.3f}{parts[2]:8.3f}{parts[3]:8.3f}{median(wall) / base:8.2f}")


if __name__ == "__main__":
    main()
