"""Profiles: a machine as data, a TOML file in which every number is a value, a low, a high and a source.

A number without a document has a wide range, and a source that begins with "not documented". The ends of all ranges
give the range of a prediction, and each number's own ends tell whether it decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, prod
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from ..caches import memoized
from ..errors import PlanError, counted
from ..layout.grid import integer
from .network import Network, Order, Topology

__all__ = ["NUMBERS", "Number", "Pick", "Profile", "names", "profile_text", "read_profile"]

End = Literal["value", "fast", "slow", "low", "high"]
Pick = End | Mapping[str, float | End]

_FOLDER = Path(__file__).parent
_LIMITS = ("nodes", "memory")  # they have no fast and no slow end


class _Field(NamedTuple):
    """What a number of a profile is. Its machine is faster with a larger number, or with a smaller one."""

    meaning: str
    larger_is_faster: bool = True
    topology: str = ""  # only of this topology


NUMBERS = {
    "nodes": _Field("nodes of the machine"),
    "memory": _Field("bytes of memory of a node"),
    "cores": _Field("cores of a node, or its GPUs"),
    "peak": _Field("multiplications and additions of a node, per second"),
    "fft_share": _Field("part of the peak that an FFT in cache reaches"),
    "product_share": _Field("part of the peak that a product of matrices reaches"),
    "memory_rate": _Field("bytes that the cores of a node read and write in memory, per second"),
    "core_memory_rate": _Field("bytes that one core reads and writes in memory, per second"),
    "cache": _Field("bytes of the last cache, of all cores of a node"),
    "cache_factor": _Field("how many times as fast as memory the last cache is"),
    "page_factor": _Field("how many times as long memory takes if each point lies on a page of its own", False),
    "exchange": _Field("seconds of software per exchange, before its first message", False),
    "near_latency": _Field("seconds of a message between two ranks of a node", False),
    "near": _Field("bytes per second that a GPU receives from the others of its node; memory's without it"),
    "latency": _Field("seconds of a message between two nodes, software included", False),
    "message_rate": _Field("messages that a node sends, per second"),
    "injection": _Field("bytes that enter a node, and as many that leave it, per second"),
    "interfaces": _Field("network interfaces that share the injection, of which a rank uses one", False),
    "lanes": _Field("links side by side between neighbours in a dimension", True, "torus"),
    "link": _Field("bytes per second of a link, each way", True, "torus"),
    "group": _Field("nodes of a group, or under a switch", True, "dragonfly, fat tree"),
    "far_latency": _Field("seconds of a message between groups", False, "dragonfly, fat tree"),
    "far": _Field("bytes per second and node that leave a group", True, "dragonfly, fat tree"),
    "route_share": _Field("part of far that an all-to-all reaches on its routes", True, "dragonfly, fat tree"),
    "thread_share": _Field("part of the peak of its cores that an FFT of several threads keeps"),
}
"""The numbers of a profile."""

_COUNTS = ("nodes", "cores", "interfaces", "lanes", "group")
_OF_GPUS = ("near", "interfaces")  # which other files leave out
_SHARES = ("fft_share", "product_share", "route_share", "thread_share")
_RANGES = dict.fromkeys(_COUNTS, (1, 1e9)) | dict.fromkeys(_SHARES, (1e-9, 1))
_RANGES |= dict.fromkeys(("cache_factor", "page_factor"), (1, 1e9))


def _unfit(name: str, value: object) -> str:
    """Why a value is none of a number of machines; empty if it is one."""
    least, most = _RANGES.get(name, (1e-30, 1e30))
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        return f"has a value that is no number from {least:g} to {most:g}"
    return "has a value that is no whole number" if name in _COUNTS and value % 1 else ""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a machine, the least and the largest that it may be, and where it is written."""

    value: float
    low: float
    high: float
    source: str

    @property
    def documented(self) -> bool:
        """Whether a document has it."""
        return not self.source.startswith("not documented")


_ROUTES = "not documented: Geoffray and Hoefler (2008), 512 nodes: 0.38 on fixed routes, 0.77 on adaptive ones"
_THREADS = "not documented: on HECToR CP2K's FFTs are 1.7 times as fast on 4 threads"
_LAW = {
    "route_share": {"fat tree": Number(0.38, 0.24, 0.77, _ROUTES), "dragonfly": Number(0.77, 0.38, 1.0, _ROUTES)},
    "thread_share": dict.fromkeys(get_args(Topology), Number(0.45, 0.3, 1.0, _THREADS)),
}
# Numbers that a file may leave out: by topology, one law has them for all machines.


@dataclass(frozen=True, slots=True)
class Profile:
    """A machine as data.

    Attributes:
        name: the name of its file, without the ending.
        about: what it is, in a sentence.
        topology, dims: of its network; a torus has nodes along each dimension.
        ranks_per_node: how many ranks are usual.
        numbers: those of `NUMBERS` that its topology has.

    >>> profile = read_profile("k-computer")
    >>> profile["link"].value, profile["link"].documented, profile.dims
    (5000000000.0, True, (48, 54, 32))
    """

    name: str
    about: str
    topology: Topology
    dims: tuple[int, ...]
    ranks_per_node: int
    numbers: dict[str, Number]

    def __getitem__(self, name: str) -> Number:
        return self.numbers[name]

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names of the numbers that no document has."""
        return tuple(name for name, number in self.numbers.items() if not number.documented)

    def picked(self, pick: Pick = "value") -> dict[str, float]:
        """Each number: its value, its faster or slower end, or what a mapping says of some.

        >>> read_profile("k-computer").picked({"lanes": "high", "link": 4e9})["link"]
        4000000000.0
        """
        picked = {}
        for name, number in self.numbers.items():
            fast, slow = (number.high, number.low) if NUMBERS[name].larger_is_faster else (number.low, number.high)
            if name in _LIMITS:
                fast = slow = number.value
            ends = {"value": number.value, "fast": fast, "slow": slow, "low": number.low, "high": number.high}

            chosen = pick.get(name, "value") if isinstance(pick, Mapping) else pick
            if isinstance(chosen, str) or not isinstance(pick, Mapping):
                if chosen not in ends:
                    raise PlanError(f"a number of a machine is picked by one of {', '.join(ends)}, not {chosen!r}")
                picked[name] = ends[chosen]
            elif why := _unfit(name, chosen):
                raise PlanError(f"{name} {why}\n{NUMBERS[name].meaning}: pick a number, or one of {', '.join(ends)}")
            else:
                picked[name] = float(chosen)

        unknown = [] if isinstance(pick, str) else [name for name in pick if name not in picked]
        if unknown:
            raise PlanError(f"{self.name} has no number {unknown[0]!r}\nit has {', '.join(picked)}")
        return picked

    def times(
        self,
        ranks_per_node: int | None = None,
        threads: int | None = None,
        order: Order = "block",
        pick: Pick = "value",
    ) -> dict[str, Any]:
        """The arguments of a `Machine`: the times of one of so many ranks of a node, with so many threads each.

        Raises:
            PlanError: a node has fewer cores.
        """
        n, cores = self.picked(pick), int(self["cores"].value)

        ranks = self.ranks_per_node if ranks_per_node is None else integer(ranks_per_node, "ranks_per_node")
        per_rank = max(cores // max(ranks, 1), 1) if threads is None else integer(threads, "threads")
        if ranks < 1 or per_rank < 1 or ranks * per_rank > cores:
            raise PlanError(
                f"a node of {self.name} has {counted(cores, 'core')}, not {counted(ranks, 'rank')} a node of "
                f"{counted(per_rank, 'thread')}\ngive ranks_per_node and threads whose product is at most {cores}"
            )

        memory = min(n["memory_rate"] / ranks, n["core_memory_rate"] * per_rank)
        peak = n["peak"] * per_rank / cores
        threaded = n["thread_share"] if per_rank > 1 else 1
        injection = n["injection"] * min(1, ranks / n.get("interfaces", 1))  # what the ranks of the node can use

        network = Network(
            topology=self.topology,
            nodes=round(n["nodes"]),
            ranks_per_node=ranks,
            threads=per_rank,
            order=order,
            near_latency=n["near_latency"],
            near_byte_time=1 / (n["near"] * per_rank) if "near" in n else 3 / memory,
            latency=n["latency"],
            message_time=1 / n["message_rate"],
            byte_time=1 / injection,
            dims=self.dims,
            lanes=round(n.get("lanes", 1)),
            link_time=1 / n.get("link", inf),
            group=round(n.get("group", 0)),
            far_latency=n.get("far_latency", 0.0),
            far_time=1 / (n.get("far", inf) * n.get("route_share", 1)),
        )
        return {
            "latency": n["latency"],
            "byte_time": ranks / injection,
            "copy_time": 3 / memory,  # a byte is read, and its place is read before it is written
            "memory_time": 2 / memory,  # a byte is read and written in place
            "reduce_time": 3 / memory,  # two are read, one is written
            "step_time": n["exchange"],
            "flop_time": 1 / (n["product_share"] * peak),
            "fft_time": 5 / (16 * n["fft_share"] * threaded * peak),  # 5 n log2 n flops transform n points of 16 bytes
            "cache": n["cache"] / ranks,
            "cache_factor": n["cache_factor"],
            "page_factor": n["page_factor"],
            "network": network,
        }


def names() -> tuple[str, ...]:
    """The names of the profiles that come with Rote."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def read_profile(name: str) -> Profile:
    """Read the profile of a name, or of a file.

    Raises:
        PlanError: there is none, or the file has a mistake; the message says in which line.
    """
    if not isinstance(name, str | PathLike):
        raise PlanError(f"a machine has a name, or the path of a file *.toml, not {name!r}")
    if name in names():
        return _known(name)

    path, name = Path(name), str(name)
    if path.suffix == ".toml" or len(path.parts) > 1:
        return _read(path)

    from difflib import get_close_matches

    near = get_close_matches(name, [*names(), "here"], 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise PlanError(
        f"there is no machine {name!r}\n{hint}the machines are {', '.join(names())}, here, or a file *.toml"
    )


def profile_text(name: str) -> str:
    """The text of the file of a profile, which is without mistakes: to be copied, and changed.

    >>> print(profile_text("ethernet").splitlines()[1])
    about = "a cluster of nodes of 16 cores on an Ethernet of 10 Gbit/s, one switch"
    """
    read_profile(name)
    path = _FOLDER / f"{name}.toml" if name in names() else Path(name)
    return path.read_text("utf-8-sig")


@memoized(16)
def _known(name: str) -> Profile:
    return _read(_FOLDER / f"{name}.toml")


def _read(path: Path) -> Profile:
    """Read a file; what is missing, unknown, negative or out of order is refused, with its line."""
    import tomllib

    try:
        text = path.read_text("utf-8-sig")
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{path}: {error}\na profile is a file in TOML, as those in {_FOLDER}") from None
    except UnicodeDecodeError as error:
        line = 1 + error.object.count(b"\n", 0, error.start)
        raise PlanError(f"{path}, line {line}: its bytes are no UTF-8 text\nsave the file as UTF-8") from None
    except (OSError, ValueError) as error:  # no such file, no text, a path or a number that Python does not take
        why = getattr(error, "strerror", None) or error
        raise PlanError(f"the machine {path} cannot be read: {why}") from None

    lines = text.splitlines()

    def refuse(name: str, why: str, hint: str) -> PlanError:
        line = next((n for n, text in enumerate(lines, 1) if text.split("=")[0].strip() == name), len(lines) or 1)
        return PlanError(f"{path}, line {line}: {name} {why}\n{hint}")

    topology, ranks = _said(tree, "topology", refuse), _said(tree, "ranks_per_node", refuse)
    if topology not in get_args(Topology):
        raise refuse("topology", f"is {topology!r}", f"write one of {', '.join(get_args(Topology))}")

    dims = _said(tree, "dims", refuse) if topology == "torus" else []
    if not isinstance(dims, list) or [*map(_whole, dims)] != [True] * max(len(dims), topology == "torus"):
        raise refuse("dims", f"is {dims!r}", "write the nodes along each dimension of the torus, as [48, 54, 32]")

    expected = [name for name, field in NUMBERS.items() if not field.topology or topology in field.topology]
    for name in tree:
        if name not in (*expected, "about", "topology", "ranks_per_node", *["dims"] * bool(dims)):
            raise refuse(name, f"is no number of a machine whose topology is {topology!r}", ", ".join(expected))

    numbers = {}
    for name in expected:
        if name in _LAW and name not in tree:
            numbers[name] = _LAW[name][topology]
            continue
        if name in _OF_GPUS and name not in tree:
            continue

        entry, meaning = tree.get(name), NUMBERS[name].meaning
        if not isinstance(entry, dict) or entry.keys() != {"value", "low", "high", "source"}:
            why = "is missing" if entry is None else "has not all of value, low, high and source, or more"
            raise refuse(name, why, f'{meaning}: {name} = {{ value = …, low = …, high = …, source = "…" }}')

        ends = [entry["low"], entry["value"], entry["high"]]
        for end in ends:
            if why := _unfit(name, end):
                raise refuse(name, why, f"{meaning}: write value, low and high as such numbers")
        if ends != sorted(ends):
            raise refuse(name, f"has {ends[0]:g}, {ends[1]:g}, {ends[2]:g}", f"{meaning}: write low <= value <= high")
        if not isinstance(entry["source"], str) or not entry["source"].strip():
            raise refuse(name, "has no source", 'write a document, or "not documented: " and a reason')

        numbers[name] = Number(float(ends[1]), float(ends[0]), float(ends[2]), entry["source"])

    if dims and numbers["nodes"].value > prod(dims):
        raise refuse(
            "dims", f"has {prod(dims)} nodes, but nodes is {numbers['nodes'].value:g}", "write as many or more"
        )
    if not _whole(ranks) or ranks > numbers["cores"].value:
        raise refuse("ranks_per_node", f"is {ranks!r}", "write a number of ranks from 1 to that of the cores")
    return Profile(path.stem, str(tree.get("about", "")), topology, tuple(dims), ranks, numbers)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _said(tree: dict[str, Any], name: str, refuse: Any) -> Any:
    """What is no number, and has a source too."""
    entry = tree.get(name)
    if not isinstance(entry, dict) or entry.keys() != {"value", "source"}:
        why = "is missing" if entry is None else "has not both value and source, or more"
        raise refuse(name, why, f'write {name} = {{ value = …, source = "…" }}')
    return entry["value"]
