"""How well predicted times agree with measured ones on this machine: moves, and FFTs of all families.

    python tests/prediction/accuracy.py FILE.json --ranks 2       measure as threads, then report
    mpiexec -n 2 python tests/prediction/accuracy.py FILE.json    the same under MPI
    python tests/prediction/accuracy.py FILE.json --again         report on what an earlier run measured
    python tests/prediction/accuracy.py FILE.json... --book       write the table of notebooks/predictions.md

The files of a table are named by their ranks, as threads2-1.json, mpi2-1.json, or hosts2-1.json for MPI on two hosts.

A file has the machine that was tuned just before, so a report can be made again with another model. A third of the
cases, drawn by a seed, is held out: the numbers of the model were found without them. An FFT is timed in turn with
those of the other families of its case.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from math import exp, log, prod
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pages.reach import replaced

import rote
from rote.cli.tune import moves, moving_calls, spearman, transform
from rote.compiler.tasks import Planned, task_seconds
from rote.fft import FFT
from rote.fft.families.choose import Choice, compare
from rote.fft.walk import Walk
from rote.machines.machine import Machine
from rote.runtime import world
from rote.runtime.choose import middle, rounds
from rote.runtime.comm.protocol import Comm
from rote.runtime.tuning import keep_machine, measure

PAGE = Path(__file__).resolve().parents[2] / "notebooks" / "predictions.md"
SHAPES = (
    *((16, 16, 16), (32, 32, 32), (60, 60, 60), (64, 64, 64), (48, 64, 80), (96, 96, 96), (128, 128, 128)),
    *((160, 144, 150), (97, 101, 103), (256, 256), (500, 600), (1024, 1024), (2048, 512), (4096, 250)),
    (24, 20, 18, 16),
)
FFTS = tuple([(shape, dtype) for shape in SHAPES for dtype in ("c16", "f8")])
MOVES = 60
SEED = 42
HEAD = (
    "| ranks | cases | median error, as a factor | within 2, % | Spearman | fastest predicted |\n"
    "|---|---|---|---|---|---|\n"
)
NEAR = 1.1  # times the fastest family's time that the one that is predicted fastest may take


class Row(NamedTuple):
    """A case: what is predicted, and its measured seconds."""

    number: int
    name: str
    planned: Planned
    measured: float

    def seconds(self, machine: Machine) -> float:
        """Its predicted seconds; those of a walk by which "auto" ranks it."""
        tasks = self.planned.tasks(compiled=False) if isinstance(self.planned, Walk) else self.planned.tasks()
        return task_seconds(tasks.every, machine)

    def error(self, machine: Machine) -> float:
        """How many times as long it takes as predicted, or the other way."""
        return exp(abs(log(self.measured / self.seconds(machine))))


def held_out(count: int) -> set[int]:
    """The third of so many cases that no number is found by."""
    return {*Random(SEED).sample(range(count), count // 3)}


def families(number: int, ranks: int, machine: Machine) -> dict[str, Choice]:
    """The best walks of all families for an FFT, by family; families with equal walks count once."""
    shape, dtype = FFTS[number]
    by_text: dict[str, Choice] = {}
    for choice in compare(shape, ranks, dtype=dtype, machine=machine):
        if choice.walk is not None and choice.name not in {each.name for each in by_text.values()}:
            by_text.setdefault(f"{choice.source.grid}\n{choice.walk}", choice)
    return {choice.name: choice for choice in by_text.values()}


def measured(comm: Comm, seconds: float) -> dict[str, Any]:
    """Tune, and time all cases: of moves and of FFTs, each for so many seconds. Collective."""
    machine, spread = measure(comm, 2.0, None, transform)
    keep_machine(comm, machine)
    times = [*map(middle, rounds(comm, moving_calls(moves(comm.size), comm), seconds))] if comm.size > 1 else []
    ffts = []
    for number in range(len(FFTS)):
        calls, names = [], families(number, comm.size, machine)
        for choice in names.values():
            assert choice.walk is not None
            shape, dtype, text = choice.walk.source.shape, choice.walk.dtype, str(choice.walk)
            f = FFT(shape, choice.source.layout, choice.source.grid, comm, dtype, algorithm=text, machine=machine)
            x, X = f.empty_input(), f.empty_output()
            x.local[...] = 1
            f.forward(x, out=X)  # binds it, which is not timed
            calls.append(lambda f=f, x=x, X=X: f.forward(x, out=X))
        every = rounds(comm, calls, seconds * prod(FFTS[number][0]) ** 0.5 / 2e4)
        ffts.append({name: middle(each) for name, each in zip(names, every, strict=True)})
    return {"machine": machine.as_dict(), "spread": spread, "ranks": comm.size, "moves": times, "ffts": ffts}


def rows_of(answer: dict[str, Any], machine: Machine) -> tuple[list[Row], list[Row]]:
    """The moves and the FFTs of a file."""
    ranks = answer["ranks"]
    some = []
    for number, (plan, time) in enumerate(zip(moves(ranks) if ranks > 1 else [], answer["moves"], strict=True)):
        name = f"{plan.source.layout} -> {plan.target.layout} {plan.source.shape} {plan.dtype.str}"
        some.append(Row(number, name, plan, time))
    ffts = []
    for number, times in enumerate(answer["ffts"]):
        every = families(number, ranks, machine) | families(number, ranks, Machine(**answer["machine"]))
        for name, time in times.items():
            walk = every[name].walk
            assert walk is not None
            shape, dtype = FFTS[number]
            ffts.append(Row(number, f"{name} {'x'.join(map(str, shape))} {dtype}", walk, time))
    return some, ffts


class Figures(NamedTuple):
    """How near predictions are: the median error and the largest one, as factors, the part within 2, and the order."""

    cases: int
    factor: float
    within: float
    rho: float
    ratio: float
    largest: float

    def __str__(self) -> str:
        return (
            f"{self.cases:3} cases, median factor {self.factor:.2f}, within 2: {100 * self.within:3.0f} %, "
            f"Spearman {self.rho:.3f}, measured/predicted {self.ratio:.2f}, largest factor {self.largest:.1f}"
        )


def figures(rows: Iterable[Row], machine: Machine) -> Figures:
    """The figures of some cases."""
    every = [*rows]
    errors, predicted = np.array([row.error(machine) for row in every]), [row.seconds(machine) for row in every]
    took = [row.measured for row in every]
    ratio = float(np.median(np.array(took) / predicted))
    within, rho = float(np.mean(errors <= 2)), spearman(predicted, took)
    return Figures(len(every), float(np.median(errors)), within, rho, ratio, float(errors.max()))


def nearness(rows: Sequence[Row], machine: Machine) -> dict[int, tuple[Row, Row]]:
    """Per FFT, the walk that is predicted to be the fastest, and the fastest."""
    found = {}
    for number in {row.number for row in rows}:
        mine = [row for row in rows if row.number == number]
        found[number] = min(mine, key=lambda row: row.seconds(machine)), min(mine, key=lambda row: row.measured)
    return found


def book(files: Sequence[Path]) -> str:
    """The table of several files: per kind of ranks the ends of the figures of its runs, of the held-out cases too."""
    lines = [HEAD]
    kinds = {"threads": "threads", "mpi": "MPI ranks", "hosts": "MPI ranks on two hosts"}
    every: dict[str, list[dict[str, Any]]] = {}
    for file in files:
        every.setdefault(file.stem.partition("-")[0], []).append(json.loads(file.read_text()))
    for stem, answers in every.items():
        where = stem.rstrip("0123456789")
        ranks = f"{stem.removeprefix(where)} {kinds[where].removesuffix('s') if stem.endswith('1') else kinds[where]}"
        found = [(rows_of(answer, Machine(**answer["machine"])), Machine(**answer["machine"])) for answer in answers]
        for kind, count in (("moves", MOVES), ("FFTs", len(FFTS))):
            for part in ("fitted", "held out"):
                good, figured = list[str](), list[Figures]()
                for (moved, ffts), machine in found:
                    among = held_out(count) if part == "held out" else {*range(count)} - held_out(count)
                    rows = [row for row in (moved if kind == "moves" else ffts) if row.number in among]
                    near = nearness(rows, machine).values() if kind == "FFTs" else ()
                    good += [f"{sum(a.measured <= NEAR * b.measured for a, b in near)} of {len(near)}"] if near else []
                    figured += [figures(rows, machine)] if rows else []
                if figured:
                    factors, within, rho = ([getattr(f, name) for f in figured] for name in ("factor", "within", "rho"))
                    cells = (
                        _span(factors, "{:.2f}"),
                        _span([100 * each for each in within], "{:.0f}"),
                        _span(rho, "{:.3f}"),
                    )
                    lines.append(
                        f"| {ranks} | {kind}, {part} | {' | '.join(cells)} | {', '.join(dict.fromkeys(good))} |\n"
                    )
    return "".join(lines)


def _span(numbers: Sequence[float], form: str) -> str:
    """The least and the largest of some numbers, or the one that all are."""
    return " to ".join(dict.fromkeys([form.format(min(numbers)), form.format(max(numbers))]))


def report(name: str, answer: dict[str, Any], worst: int, machine: Machine) -> None:
    """Print the figures of the fitted and of the held-out cases, and the worst of the fitted ones with their parts."""
    numbers = ", ".join(f"{name} {number:.3g}" for name, number in machine.as_dict().items())
    print(f"{name}: {answer['ranks']} ranks, spread {answer['spread']:.2f}\n{numbers}")
    for kind, count, rows in zip(("moves", "FFTs"), (MOVES, len(FFTS)), rows_of(answer, machine), strict=True):
        out = held_out(count)
        for part in ("fitted", "held out") if rows else ():
            some = [row for row in rows if (row.number in out) == (part == "held out")]
            print(f"{kind} {part}".ljust(15), figures(some, machine))
        shown = sorted([row for row in rows if row.number not in out], key=lambda row: -row.error(machine))
        for row in shown[:worst]:
            seconds, parts = row.seconds(machine), dict(rote.predict(row.planned, machine).parts)
            causes = ", ".join(f"{cause} {1e6 * part:.3g}" for cause, part in parts.items())
            ratio = row.measured / seconds
            print(f"  {ratio:5.2f} = {1e6 * row.measured:.4g} / {1e6 * seconds:.4g} us {row.name}: {causes}")
    good: dict[bool, list[bool]] = {False: [], True: []}
    for number, (taken, fastest) in sorted(nearness(rows, machine).items()):
        good[number in out].append(taken.measured <= NEAR * fastest.measured)
        if not good[number in out][-1] and number not in out:
            print(f"  {taken.measured / fastest.measured:.2f} times as long: {taken.name} as {fastest.name}")
    for part, each in (("fitted", good[False]), ("held out", good[True])):
        print(f"families {part}: the one predicted fastest is near the fastest in {sum(each)} of {len(each)}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--ranks", type=int, default=0, help="threads; 0: those of the launcher")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--worst", type=int, default=8)
    parser.add_argument("--with", nargs="*", default=[], help="numbers of the machine, as cache=1e6")
    parser.add_argument("--book", action="store_true")
    args = parser.parse_args()
    if args.book:
        PAGE.write_text(replaced(PAGE.read_text("utf-8"), book(args.files)), "utf-8")
        return
    (file,) = args.files
    if not args.again:
        comm = world()
        if args.ranks:
            answer = rote.run(measured, args.ranks, args=(args.seconds,))[0]
        else:
            answer = measured(comm, args.seconds)
        if comm.rank:
            return
        file.write_text(json.dumps(answer))
    answer = json.loads(file.read_text())
    changed = {name: float(number) for name, number in (each.split("=") for each in vars(args)["with"])}
    report(file.name, answer, args.worst, Machine(**answer["machine"] | changed))


if __name__ == "__main__":
    main()
