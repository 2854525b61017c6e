"""The job of an FFT on some nodes of a machine: ranks, threads, order of ranks, grid, layout, algorithm; a batch file.

All numbers of ranks whose threads fill a node are compared, in both orders of ranks on nodes, on all grids.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
import numpy as np

from ..compiler.plan import in_bytes, in_seconds
from ..errors import LayoutError, PlanError, counted
from ..machines.machine import Machine
from ..machines.network import Order
from ..machines.work import Work, work_seconds
from ..prediction import Prediction
from .output import Answer, on_rank_0, print_answer

if TYPE_CHECKING:
    from ..fft.families.choose import Choice

__all__ = ["choose_job"]

_MOST_NODES = 1 << 17  # that are suggested


@dataclass(frozen=True, slots=True)
class _Job:
    """A walk on the ranks of some nodes."""

    machine: Machine
    choice: Choice
    told: Prediction


def choose_job(
    shape: tuple[int, ...], nodes: int, machine: Machine, dtype: np.dtype[Any], as_json: bool, slurm: str | None
) -> None:
    """Print the fastest job on so many nodes, and write its batch file.

    Raises:
        PlanError: the machine has no nodes, or too few; or a node has too little memory, and the message says how many
            nodes are enough.
    """
    if machine.profile is None or machine.network is None:
        raise PlanError("a job runs on the nodes of a machine\nwrite --machine with one of rote.Machine.names()")
    jobs = [*_jobs(shape, nodes, machine, dtype)]
    fitting = [job for job in jobs if job.told.fits]
    if not fitting:
        raise PlanError(_too_large(shape, nodes, dtype, jobs))
    best = min(fitting, key=lambda job: job.told.seconds)
    bound = _bound(shape, nodes, best.machine, dtype)
    script = _script(best, nodes, dtype)
    if slurm is not None:
        on_rank_0(lambda: Path(slurm).write_text(script, "utf-8"))
    if as_json:
        print_answer(_answer(best, nodes, bound) | {"script": script})
        return
    walk = best.choice.walk
    assert walk is not None and best.machine.network is not None  # it is a job
    placed, per_node = best.machine.network, counted(best.machine.network.ranks_per_node, "rank")
    click.echo(best.told)
    click.echo(f"{per_node} of {counted(placed.threads, 'thread')} on a node, in {placed.order} order")
    click.echo(f"{best.choice.name} on grid {walk.source.grid}, from {walk.source.layout} to {walk.target.layout}")
    ratio = best.told.seconds / bound
    click.echo(f"{ratio:.2f} times the bound {in_seconds(bound)}, of its transforms and of one exchange between nodes")
    if slurm is None:
        click.echo("--slurm FILE writes the batch file")
    else:
        click.echo(f"\nleft {slurm}")


def _jobs(shape: tuple[int, ...], nodes: int, machine: Machine, dtype: np.dtype[Any]) -> Iterator[_Job]:
    """The fastest walk for each number of ranks on a node, and each order of them."""
    from ..fft.families.choose import compare, idle

    assert machine.profile is not None
    cores = int(machine.profile["cores"].value)
    for ranks in [n for n in range(1, cores + 1) if cores % n == 0]:
        for order in get_args(Order)[: 1 + (ranks > 1)]:
            placed = Machine.of(machine.profile, ranks, cores // ranks, order)
            try:
                found = compare(shape, nodes * ranks, dtype=dtype, machine=placed)
            except LayoutError:
                continue
            usable = [choice for choice in found if choice.plain and choice.walk and not idle(choice.walk)]
            most = machine.profile["memory"].value / ranks
            usable.sort(key=lambda choice: choice.peak_bytes > most)  # stable: the fastest that fits comes first
            if usable:
                told = usable[0].prediction
                assert told is not None  # it has a walk
                yield _Job(placed, usable[0], told)


def _too_large(shape: tuple[int, ...], nodes: int, dtype: np.dtype[Any], jobs: list[_Job]) -> str:
    """Why no job fits into memory, and the smallest number of nodes that is found to be enough."""
    if not jobs:
        return f"no FFT of {shape} is found on {counted(nodes, 'node')}\ntake fewer nodes"
    least = min(jobs, key=lambda job: job.told.node_bytes).told
    needed, has = in_bytes(least.node_bytes), in_bytes(least.memory_bytes)
    tried = range(max(-(-nodes * least.node_bytes * 9 // (10 * least.memory_bytes)), nodes + 1), _MOST_NODES)
    found = next((n for n in tried if _peak(shape, n, dtype) <= least.memory_bytes), None)
    hint = "no number of nodes is enough" if found is None else f"write --nodes {found} or more"
    return f"{shape} {dtype} takes {needed} on each of {counted(nodes, 'node')}, which have {has}\n{hint}"


def _peak(shape: tuple[int, ...], nodes: int, dtype: np.dtype[Any]) -> float:
    """The bytes of a node with one rank, in slabs or pencils."""
    from ..fft.families.choose import idle, walk_for
    from ..fft.request import as_arguments, planned_request

    request = planned_request(shape, dtype, None, None, False, None, None)
    peaks = []
    for algorithm in ("slab", "pencil")[: len(shape) - 1]:
        walk = walk_for(as_arguments(shape, request, nodes, None, None, None), algorithm)
        peaks += [] if idle(walk) else [walk.peak_bytes]
    return min(peaks, default=inf)


def _bound(shape: tuple[int, ...], nodes: int, machine: Machine, dtype: np.dtype[Any]) -> float:
    """Seconds below which no FFT is on so many nodes: its transforms, and the exchange of what all nodes hold once."""
    assert machine.network is not None
    ranks = nodes * machine.network.ranks_per_node
    block = prod(shape) * dtype.itemsize / ranks
    seconds = sum([work_seconds(Work("fft", int(block), n), machine) for n in shape])
    return seconds + block * machine.network.ranks_per_node * (1 - 1 / nodes) * machine.network.byte_time


def _answer(job: _Job, nodes: int, bound: float) -> Answer:
    network, walk = job.machine.network, job.choice.walk
    assert network is not None and walk is not None
    return {
        "machine": job.machine.name,
        "nodes": nodes,
        "ranks_per_node": network.ranks_per_node,
        "threads": network.threads,
        "order": network.order,
        "family": job.choice.name,
        "grid": walk.source.grid.shape,
        "layout": str(walk.source.layout),
        "output": str(walk.target.layout),
        "prediction": job.told.as_dict(),
        "bound": bound,
    }


def _script(job: _Job, nodes: int, dtype: np.dtype[Any]) -> str:
    """The batch file: it transforms INPUT into OUTPUT."""
    network, walk = job.machine.network, job.choice.walk
    assert network is not None and walk is not None
    minutes = max(int(job.told.range[1] / 60) + 10, 10)
    grid = "x".join(map(str, walk.source.grid.shape)) or "1"
    lines = [
        "#!/bin/bash",
        "#SBATCH --job-name=rote-fft",
        f"#SBATCH --nodes={nodes}",
        f"#SBATCH --ntasks-per-node={network.ranks_per_node}",
        f"#SBATCH --cpus-per-task={network.threads}",
        f"#SBATCH --distribution={network.order}",
        f"#SBATCH --time={minutes // 60:02d}:{minutes % 60:02d}:00",
        "",
        f"# {job.told.name}: about {in_seconds(job.told.seconds)}, and the time to read and write the files",
        "# sbatch --export=ALL,INPUT=volume.npy,OUTPUT=spectrum.npy FILE",
        f'srun rote fft "$INPUT" "$OUTPUT" --layout "{walk.source.layout}" --grid {grid} \\',
        f'    --algorithm {job.choice.name} --output "{walk.target.layout}" --threads {network.threads}',
    ]
    return "\n".join(lines) + "\n"
