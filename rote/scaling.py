"""Scaling: the best of each family on several numbers of ranks, as a table that prints itself and says what to take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

from .errors import counted
from .lazy import late
from .machines.machine import Machine
from .prediction import TIE, Prediction, deciders, machine_name
from .units import in_bytes, in_seconds

__all__ = ["Candidates", "Scaling", "ScalingRow", "scaling_of"]

Candidates = Iterable[tuple[str, Prediction | str]]
"""Pairs of a family and what is predicted of one of its candidates, or why it has none; the preferred ones first."""

_RECORD = (
    *("ranks", "family", "grid", "layout", "seconds", "low", "high"),
    *("peak_bytes", "node_bytes", "best", "why_none"),
)


class ScalingRow(NamedTuple):
    """A number of ranks: the best of each family that can run, in the order of preference, and why others cannot.

    Attributes
    ----------
    ranks : int
        The number of ranks.
    best : dict[str, Prediction]
        For each family that can run, its prediction; the fastest family first.
    none : dict[str, str]
        For each other family, the reason.

    Examples
    --------
    >>> import rote
    >>> row = rote.fft.scaling((64, 64, 64), [4]).rows[0]
    >>> row.ranks, row.taken, row.none["ragged"]
    (4, 'slab', 'it moves more, and another family gives each rank its part')
    """

    ranks: int
    best: dict[str, Prediction]
    none: dict[str, str]

    @property
    def taken(self) -> str:
        """The family that Rote takes; "" if none can run."""
        return next(iter(self.best), "")


@dataclass(frozen=True, slots=True)
class Scaling:
    """A table of families and numbers of ranks, with advice. `rote.fft.scaling` and `rote.einsum_scaling` make it.

    Attributes
    ----------
    what : str
        What is predicted.
    machine : Machine
        The machine.
    families : tuple[str, ...]
        The columns.
    rows : tuple[ScalingRow, ...]
        For each number of ranks the `best` of each family, and why others have `none`.
    hints : tuple[str, ...]
        Lines that name other numbers of ranks, which are faster.

    Examples
    --------
    >>> import rote
    >>> print(rote.einsum_scaling("ik,kj->ij", [(512, 512)] * 2, ranks=[4, 16]))
    ik,kj->ij of (512, 512), (512, 512) f8 on default machine
            ranks          1-D          2-D        2.5-D          3-D        other  memory of a node
                4      *3.8 ms      =3.8 ms            -            -            -  5.5 MiB on grid 4
               16       1.3 ms      *1.1 ms            -      =1.1 ms            -  1.9 MiB on grid 4x4
    no 2.5-D, other from 4 ranks: on each grid another family is cheaper
    no 3-D up to 4 ranks: on each grid another family is cheaper
    * is what Rote takes, and = takes at most 5 % longer
    take 1-D from 4, 2-D from 16 ranks on
    on 16 ranks 2-D is limited by products; next is 3-D, a tie
      grid 4x4
    """

    what: str
    machine: Machine
    families: tuple[str, ...]
    rows: tuple[ScalingRow, ...] = ()
    hints: tuple[str, ...] = ()

    def records(self) -> list[dict[str, Any]]:
        """The table as dictionaries of JSON values, one for each number of ranks and family."""
        records = list[tuple[Any, ...]]()
        for row in self.rows:
            for name, prediction in row.best.items():
                figures = prediction.seconds, *prediction.range, prediction.peak_bytes, prediction.node_bytes
                place = prediction.tasks.grid.shape, prediction.tasks.layouts[0]
                records.append((row.ranks, name, *place, *figures, name == row.taken, None))
            records += [(row.ranks, name, *[None] * 7, False, why) for name, why in row.none.items()]
        return [dict(zip(_RECORD, record, strict=True)) for record in records]

    def plot(self, weak: Scaling | None = None, published: Mapping[str, Mapping[int, float]] | None = None) -> Any:
        """A figure of the seconds over ranks, with those of weak scaling beside them.

        Parameters
        ----------
        weak : Scaling, optional
            The table of weak scaling.
        published : Mapping[str, Mapping[int, float]], optional
            Measured seconds by ranks, under the names of their codes, which are drawn beside the bands.
        """
        return late("plot.scaling:scaling")(self, weak, published)

    def head(self) -> str:
        """The first two lines: what is predicted on which machine, and the names of the columns."""
        columns = "".join([f"{name:>13}" for name in ("ranks", *self.families)])
        return f"{self.what} on {machine_name(self.machine)}\n{columns}  memory of a node"

    def line(self, row: ScalingRow) -> str:
        """A row: the seconds of each family, that which is taken with ``*``, and what is as fast with ``=``."""
        taken, cells = row.best.get(row.taken), dict.fromkeys(self.families, "-")
        for name, prediction in row.best.items():
            mark = ""
            if prediction is taken:
                mark = "*"
            elif taken is not None and prediction.seconds <= TIE * taken.seconds:
                mark = "="
            cells[name] = mark + in_seconds(prediction.seconds)

        memory = f"  {in_bytes(taken.node_bytes)} on grid {taken.tasks.grid}" if taken else ""
        return "".join([f"{cell:>13}" for cell in (row.ranks, *cells.values())]) + memory

    def advice(self) -> str:
        """Where each family stops and why, what to take, and what decides it on the most ranks."""
        stops = dict[tuple[str, str], list[str]]()  # where and why families stop

        # Of a family with gaps only the ends are told: the last number of ranks below it, and the first above.
        for name in self.families:
            runs = [row.ranks for row in self.rows if name in row.best] or [0]
            none = [row for row in self.rows if name in row.none]
            ends = [("up to", row) for row in none if row.ranks < runs[0]][-1:]
            for side, row in ends + [("from", row) for row in none if row.ranks > runs[-1]][:1]:
                where, why = f"{side} {counted(row.ranks, 'rank')}", row.none[name].partition("\n")[0]
                stops.setdefault((where, why), []).append(name)

        lines = [f"no {', '.join(names)} {where}: {why}" for (where, why), names in stops.items()]
        rows = [row for row in self.rows if row.best]
        if not rows:
            return "\n".join(lines)

        starts = [next(same) for _, same in groupby(rows, key=lambda row: row.taken)]
        lines.append("* is what Rote takes, and = takes at most 5 % longer")
        lines.append(f"take {', '.join([f'{row.taken} from {row.ranks}' for row in starts])} ranks on")

        (name, first), *others = rows[-1].best.items()
        lines.append(f"on {rows[-1].ranks} ranks {name} is limited by {first.limit}")
        if others:
            rivals = dict(sorted(others, key=lambda other: other[1].seconds)[:2])
            ratio = next(iter(rivals.values())).seconds / first.seconds
            tie = "a tie" if 1 / TIE < ratio < TIE else f"{ratio:.2f} times as long"
            lines[-1] += f"; next is {next(iter(rivals))}, {tie}{_decided([first, *rivals.values()])}"

        return "\n".join([*lines, *[f"  {line}" for line in first.placement.split("; ")]])

    def __str__(self) -> str:
        return "\n".join([self.head(), *map(self.line, self.rows), self.advice(), *self.hints])


def _decided(rivals: list[Prediction]) -> str:
    """Which numbers of the machine's profile decide which of them is the fastest."""
    profile, names = rivals[0].machine.profile, deciders(sorted(rivals, key=lambda rival: rival.seconds))
    if profile is None or not names:
        return ", wherever each number of the machine is in its range" * (profile is not None)

    shown = [f"{name}{'' if profile[name].documented else ' (not documented)'}" for name in names]
    return f"; another is faster if one of these is elsewhere in its range: {', '.join(shown)}"


def scaling_of(
    table: Scaling, rows: Iterable[tuple[int, Candidates]], show: Callable[[str], object] | None = None
) -> Scaling:
    """Fill an empty table from the candidates for each number of ranks, and show each line as soon as it is known."""
    for ranks, candidates in rows:
        row = ScalingRow(ranks, {}, {})
        for name, candidate in candidates:
            if not isinstance(candidate, str) and not candidate.fits:
                has = in_bytes(candidate.memory_bytes)
                candidate = f"it takes {in_bytes(candidate.node_bytes)} of memory on a node, which has {has}"

            # The preferred candidate of a family comes first, and so does the reason of the first that fails.
            if isinstance(candidate, str):
                row.none.setdefault(name, candidate)
            else:
                row.best.setdefault(name, candidate)

        row = row._replace(none={name: why for name, why in row.none.items() if name not in row.best})
        if show:
            show(table.line(row) if table.rows else f"{table.head()}\n{table.line(row)}")

        table = replace(table, rows=(*table.rows, row))

    if show:
        show(table.advice())
    return table
