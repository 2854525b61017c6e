"""FFTs on ranks and nodes that need not exist: the families over numbers of ranks, and the best job on some nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rote.compiler.step import as_dtype
from rote.errors import LayoutError, PlanError, counted
from rote.layout.grid import Grid, integer, tensor_shape
from rote.machines.machine import Machine, as_machine
from rote.machines.profile import Profile
from rote.machines.work import Work, work_seconds
from rote.prediction import Prediction
from rote.scaling import Candidates, Scaling, scaling_of
from rote.units import in_bytes, in_seconds

from ..request import Arguments, TransformRequest, planned_request
from .choose import Choice, compare, crowded, idle, ranking, walk_for

__all__ = ["Job", "job", "scaling"]

_FAMILIES = ("slab", "pencil", "volumetric", "cyclic", "rows", "ragged")


def scaling(
    shape: Sequence[int] | int,
    ranks: Sequence[int],
    dtype: npt.DTypeLike = "c16",
    machine: Machine | str | None = None,
    weak: bool = False,
    show: Callable[[str], object] | None = None,
) -> Scaling:
    """Predict the best FFT of each family on several numbers of ranks, which need not exist.

    Parameters
    ----------
    shape : Sequence[int] | int
        The shape of the tensor.
    ranks : Sequence[int]
        The numbers of ranks, in ascending order.
    dtype : DTypeLike, default 'c16'
        The dtype of the tensor; a real one has a real transform.
    machine : Machine | str, optional
        The machine, its name or its file; the default one if None.
    weak : bool, default False
        Whether the tensor grows with the ranks: each doubling of them doubles another axis. Numbers of ranks that are
        not powers of two times the first one are left out.
    show : Callable[[str], object], optional
        Is called with the lines of the table as soon as they are known, for example `print`.

    Returns
    -------
    Scaling
        A table that prints itself. Walks in which a rank has nothing to do, or much more than its part, or for which a
        node has too little memory, do not run.

    Raises
    ------
    LayoutError
        Shape, ranks and dtype are none of an FFT.
    PlanError
        There is no such machine.

    See Also
    --------
    rote.fft.compare : Compare walks on one number of ranks.

    Examples
    --------
    >>> import rote
    >>> found = rote.fft.scaling((64, 64, 64), [4, 64, 128], machine="k-computer")
    >>> [(row.ranks, row.taken, row.best[row.taken].limit) for row in found.rows]
    [(4, 'slab', 'transforms'), (64, 'pencil', 'transforms'), (128, 'pencil', 'latency')]
    >>> print(found.advice().splitlines()[0])
    no slab from 128 ranks: there are more ranks along an axis than points
    """
    extents, times, element = tensor_shape(shape), as_machine(machine), as_dtype(dtype)
    if not isinstance(ranks, Sequence):
        raise LayoutError(f"ranks are numbers of ranks, in ascending order, not {ranks!r}\nwrite a list, as [4, 8]")

    def rows() -> Iterator[tuple[int, Candidates]]:
        for count in ranks:
            doublings = (count // max(ranks[0], 1)).bit_length() - 1 if weak else 0
            if not weak or ranks[0] << doublings == count:
                grown = [n << len(range(axis, doublings, len(extents))) for axis, n in enumerate(extents)]
                yield count, _candidates(tuple(grown), count, element, times)

    kind = "fft" if element.kind == "c" else "rfft"
    return scaling_of(Scaling(f"{kind} of {extents} {element.str[1:]}", times, _FAMILIES), rows(), show)


def _candidates(shape: tuple[int, ...], ranks: int, dtype: np.dtype[Any], machine: Machine) -> Candidates:
    """What is predicted of each walk, and for a family without any the reason."""
    try:
        machine.along(Grid((ranks,)))
    except PlanError as error:  # there is no room, whatever the grid
        return [(name, str(error)) for name in _FAMILIES]

    candidates = [*map(_predicted, compare(shape, ranks, dtype=dtype, machine=machine))]
    reasons = dict.fromkeys(_FAMILIES, f"{counted(ranks, 'rank')} make no grid that it takes")
    reasons["ragged"] = "it moves more, and another family gives each rank its part"
    return [*candidates, *reasons.items()]


def _predicted(choice: Choice) -> tuple[str, Prediction | str]:
    if choice.walk and idle(choice.walk):
        return choice.name, "there are more ranks along an axis than points"
    if choice.walk and crowded(choice.walk):
        return choice.name, "some rank would hold more than twice what it has at first"
    return choice.name, choice.prediction or choice.why


class Job(NamedTuple):
    """An FFT on the nodes of a machine. It prints itself, with how far it is from the bound; `job` makes it.

    Attributes
    ----------
    machine : str
        The name of the machine.
    nodes : int
        The number of its nodes.
    ranks_per_node : int
        The ranks on each of them.
    threads : int
        The threads of a rank.
    order : str
        Whether ranks in a row share a node ("block"), or go to the nodes in turn ("cyclic").
    family : str
        The family of the walk.
    grid : Grid
        The grid of all ranks.
    layout : str
        The layout of the input.
    output : str
        The layout of the spectrum.
    prediction : Prediction
        Its seconds and memory.
    bound : float
        Seconds below which no FFT is there: its transforms, and one exchange of all that a node has.

    Examples
    --------
    >>> import rote
    >>> job = rote.fft.job((64, 64, 64), 4, "k-computer")
    >>> job.ranks_per_node, job.family, job.layout
    (8, 'slab', 'block[(0),(),()]')
    >>> print(*job.script.splitlines()[:4], sep="\\n")
    #!/bin/bash
    #SBATCH --job-name=rote-fft
    #SBATCH --nodes=4
    #SBATCH --ntasks-per-node=8
    """

    machine: str
    nodes: int
    ranks_per_node: int
    threads: int
    order: str
    family: str
    grid: Grid
    layout: str
    output: str
    prediction: Prediction
    bound: float

    @property
    def script(self) -> str:
        """The batch file, which transforms the file INPUT into OUTPUT."""
        minutes = max(int(self.prediction.range[1] / 60) + 10, 10)
        return f"""\
#!/bin/bash
#SBATCH --job-name=rote-fft
#SBATCH --nodes={self.nodes}
#SBATCH --ntasks-per-node={self.ranks_per_node}
#SBATCH --cpus-per-task={self.threads}
#SBATCH --distribution={self.order}
#SBATCH --time={minutes // 60:02d}:{minutes % 60:02d}:00

# {self.prediction.tasks.name}: about {in_seconds(self.prediction.seconds)}, and the time to read and write the files
# sbatch --export=ALL,INPUT=volume.npy,OUTPUT=spectrum.npy FILE
srun rote fft "$INPUT" "$OUTPUT" --layout "{self.layout}" --grid {self.grid} \\
    --algorithm {self.family} --output "{self.output}" --threads {self.threads}
"""

    def as_dict(self) -> dict[str, Any]:
        """The attributes and the batch file, as values of JSON."""
        more = {"grid": self.grid.shape, "prediction": self.prediction.as_dict(), "script": self.script}
        return self._asdict() | more

    def __str__(self) -> str:
        ranks, threads = counted(self.ranks_per_node, "rank"), counted(self.threads, "thread")
        ratio, bound = self.prediction.seconds / self.bound, in_seconds(self.bound)
        return (
            f"{self.prediction}\n{ranks} of {threads} on a node, in {self.order} order\n"
            f"{self.family} on grid {self.grid}, from {self.layout} to {self.output}\n"
            f"{ratio:.2f} times the bound {bound}, of its transforms and of one exchange between nodes"
        )


def job(
    shape: Sequence[int] | int, nodes: int, machine: Machine | str | None = None, dtype: npt.DTypeLike = "c16"
) -> Job:
    """Choose ranks, threads, order of ranks, grid, layout and algorithm of an FFT on the nodes of a machine.

    All numbers of ranks whose threads fill a node are compared, on all grids.

    Parameters
    ----------
    shape : Sequence[int] | int
        As for `scaling`.
    nodes : int
        The number of nodes.
    machine : Machine | str, optional
        A machine with a profile, its name or its file.
    dtype : DTypeLike, default 'c16'
        As for `scaling`.

    Returns
    -------
    Job
        The job of the least seconds, with its batch file.

    Raises
    ------
    LayoutError
        `shape` or `nodes` are no such numbers.
    PlanError
        The machine has no nodes, or too few; or a node has too little memory, and the message says how many nodes are
        enough.

    See Also
    --------
    rote.fft.compare : Compare walks on one number of ranks.

    Examples
    --------
    >>> import rote
    >>> print(*str(rote.fft.job((64, 64, 64), 4, "k-computer")).splitlines()[-3:], sep="\\n")
    8 ranks of 1 thread on a node, in block order
    slab on grid 32, from block[(0),(),()] to block[(),(0),()]
    1.26 times the bound 670 us, of its transforms and of one exchange between nodes
    """
    extents, count, times = tensor_shape(shape), integer(nodes, "the number of nodes"), as_machine(machine)
    if times.profile is None or times.network is None:
        raise PlanError(f"a job runs on the nodes of a machine\nname one, of {', '.join(Machine.names())}")
    if count < 1:
        raise LayoutError(f"a job runs on 1 node or more, not {count}")
    if count > times.network.nodes:
        raise PlanError(f"{times.name} has {counted(times.network.nodes, 'node')}, not {count}\ntake fewer nodes")

    request = planned_request(extents, dtype, None, None, False, None, None)
    jobs = [*_jobs(extents, count, times.profile, request)]
    fitting = [job for job in jobs if job.prediction.fits]
    if not fitting:
        raise PlanError(_too_large(extents, count, times.network.nodes, request, jobs))
    return min(fitting, key=lambda job: job.prediction.seconds)


def _jobs(shape: tuple[int, ...], nodes: int, profile: Profile, request: TransformRequest) -> Iterator[Job]:
    """For each number of ranks on a node the walk that "auto" takes of those that fit, in both orders of the ranks.

    It need not be chosen for each order: reversing a grid moves its modes into nodes, and out of them, as well.
    """
    cores = int(profile["cores"].value)
    least = cores if "near" in profile.numbers else 1  # a rank drives one GPU
    for ranks in [n for n in range(least, cores + 1) if cores % n == 0]:
        placed = [Machine.of(profile, ranks, cores // ranks, order) for order in ("block", "cyclic")]
        choices = ranking(Arguments(shape, request, nodes * ranks), placed[0], views=False)
        able = [(name, known) for name, known in map(_predicted, choices) if isinstance(known, Prediction)]
        able.sort(key=lambda row: not row[1].fits)  # stable: the first that fits comes first

        for (name, known), on in product(able[:1], placed[: 1 + (ranks > 1)]):
            block = prod(shape) * request.dtype.itemsize / known.tasks.grid.size
            bound = sum([work_seconds(Work("fft", int(block), n), on) for n in shape])
            bound += block * ranks * (1 - 1 / nodes) / profile["injection"].value
            where = profile.name, nodes, ranks, cores // ranks, "block" if on is placed[0] else "cyclic"
            yield Job(*where, name, known.tasks.grid, *known.tasks.layouts, replace(known, machine=on), bound)


def _too_large(shape: tuple[int, ...], nodes: int, most: int, request: TransformRequest, jobs: list[Job]) -> str:
    """Why no job fits into memory, and the smallest number of nodes, of one rank each, that is found to be enough."""
    if not jobs:
        return f"no FFT of {shape} is found on {counted(nodes, 'node')}\ntake fewer nodes"

    needed, has = min([(job.prediction.node_bytes, job.prediction.memory_bytes) for job in jobs])
    on, hint = counted(nodes, "node"), "no number of nodes is enough"
    for more in range(max(nodes * needed * 9 // (10 * has), nodes) + 1, most + 1):
        arguments = Arguments(shape, request, more)
        walks = [walk_for(arguments, name) for name in ("slab", "pencil")[: len(shape) - 1]]
        if any(walk.peak_bytes <= has and not idle(walk) for walk in walks):
            hint = f"take {counted(more, 'node')} or more"
            break

    return f"{shape} {request.dtype} takes {in_bytes(needed)} on each of {on}, which have {in_bytes(has)}\n{hint}"
