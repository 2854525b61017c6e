"""A machine: the times from which seconds are computed.

The seven numbers of a `Machine` are enough to rank plans. A machine that is read from a profile also has levels: the
ranks of a node share its memory and its injection, and the network between nodes has a topology. Then the times along
a grid mode follow from where the mode is, so a machine with levels applies to grids of any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from itertools import chain
from typing import Any, NamedTuple

from ..caches import memoized
from ..errors import PlanError, counted
from ..layout.grid import Grid
from ..lazy import late
from .network import Network, Order
from .profile import Pick, Profile, names, read_profile

__all__ = ["DEFAULT", "TCP_TIME", "Machine", "Slowest", "Times", "as_machine", "slowest_of"]

Time = float | tuple[float, ...]
_SIMPLE = 7  # times of every machine
_MOST = 1e100  # seconds: the time of any plan is a finite number


class Times(NamedTuple):
    """The times of a machine along every mode of one grid, in seconds."""

    latency: tuple[float, ...]
    byte_time: tuple[float, ...]
    copy_time: tuple[float, ...]
    reduce_time: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Machine:
    """The times of a machine, in seconds, from which the cost of a plan is computed.

    Each of the first four is one number, or one number per mode of the grid, because ranks that share memory exchange
    data faster. A message between ranks that differ along several grid modes takes the time of the slowest. The
    defaults are typical of ranks that share the memory of one node. `rote tune` measures a machine.

    Attributes
    ----------
    latency : float | tuple[float, ...]
        The latency of one message.
    byte_time : float | tuple[float, ...]
        The time to receive a byte.
    copy_time : float | tuple[float, ...]
        The time to pack or unpack a byte.
    reduce_time : float | tuple[float, ...]
        The time to reduce a byte into another.
    step_time : float
        The time of a step before its first message.
    flop_time : float
        The time of a multiplication or an addition in a product of matrices of 8-byte numbers.
    fft_time : float
        The time to transform a byte, for each doubling of the points of a line.
    cache : float
        The bytes of a rank's cache; 0 if no cache is counted.
    cache_factor : float
        How many times as fast as memory the cache is; 1 if none is counted.
    page_factor : float
        How many times as long memory takes if each point of a line lies on a page of its own.
    memory_time : float
        The time to read a byte and to write it back, which a transform takes beside its arithmetic; 0 if fft_time was
        measured, for then it has what memory takes.
    rough_factor : float
        How many times as long lines take to transform whose points have a prime factor above 13; 1 in profiles, whose
        documents have no such lines.
    network : Network | None
        The levels and the topology from which latency and byte_time follow along each mode of any grid; None if they
        are the numbers above.
    name : str
        Its name; "" if it has none. Machines with equal times are equal, whatever their names.
    profile : Profile | None
        What it was read from, with the range and the source of each number; None if it was not, or if the machine was
        read from JSON.
    pick : str | Mapping[str, str | float]
        Which numbers of the profile it has, as for `of`.

    Raises
    ------
    PlanError
        A time is negative or above 1e100, or not a number.

    Notes
    -----
    Source: Popovici et al. (2019, eq. 18 to 21), where latency is alpha and byte_time beta.

    Examples
    --------
    >>> import rote
    >>> rote.Machine(latency=(1e-6, 5e-6)).along(rote.Grid((2, 2))).latency
    (1e-06, 5e-06)
    """

    latency: Time = 2e-6
    byte_time: Time = 1e-10
    copy_time: Time = 1e-10
    reduce_time: Time = 2e-10
    step_time: float = 1e-5
    flop_time: float = 5e-11
    fft_time: float = 2.5e-11
    cache: float = 0.0
    cache_factor: float = 1.0
    page_factor: float = 1.0
    memory_time: float = 0.0
    rough_factor: float = 1.0
    network: Network | None = None
    name: str = field(default="", compare=False)
    profile: Profile | None = field(default=None, compare=False, repr=False)
    pick: Pick = field(default="value", compare=False, repr=False)

    def __post_init__(self) -> None:
        for number in fields(self)[:-4]:
            object.__setattr__(self, number.name, _checked(number.name, getattr(self, number.name)))

        if isinstance(self.network, Mapping) and {*self.network} == {*Network.__match_args__}:  # from JSON
            object.__setattr__(self, "network", Network(**self.network))
        if not isinstance(self.network, Network | None):
            raise PlanError(f"the network of a machine is a Network or None, not {self.network!r}")

    @classmethod
    def load(cls, name: str, ranks_per_node: int | None = None, threads: int | None = None) -> Machine:
        """The machine of a name, or of a profile in a file.

        Parameters
        ----------
        name : str
            One of `Machine.names()`; or the path of a file in TOML; or "here", the machine that `rote tune` measured on
            a host like this one, on the most ranks. Each host keeps its own, so a program on several hosts loads "here"
            on one rank and sends it to the others, as `fft.FFT(…, machine="here")` does.
        ranks_per_node : int, optional
            The ranks of a node; the profile's usual ones if None. Not for "here".
        threads : int, optional
            The threads of a rank; if None, as many as the node has cores for. Not for "here".

        Raises
        ------
        PlanError
            There is no such machine, its file has a mistake, a node has fewer cores, or nothing is measured here.

        Examples
        --------
        >>> import rote
        >>> machine = rote.Machine.load("k-computer")
        >>> print(machine.network.placement(rote.Grid((8, 4))))
        grid mode 0: 8 nodes in a line of the torus
        grid mode 1: 4 nodes in a line of the torus
        """
        if name == "here":
            from .here import measured  # looks up versions of packages

            if (ranks_per_node, threads) != (None, None):
                raise PlanError('the machine "here" is that of measured ranks\nleave out ranks_per_node and threads')
            return measured(cls)
        return cls.of(read_profile(name), ranks_per_node, threads)

    @classmethod
    def of(
        cls,
        profile: Profile,
        ranks_per_node: int | None = None,
        threads: int | None = None,
        order: Order = "block",
        pick: Pick = "value",
    ) -> Machine:
        """The machine of a profile.

        Parameters
        ----------
        profile : Profile
            A profile, as `Machine.load` reads it.
        ranks_per_node : int, optional
            The ranks on a node; those of the profile if None.
        threads : int, optional
            The threads of a rank; if None, as many as the node has cores for its ranks.
        order : {'block', 'cyclic'}, default 'block'
            "block" if ranks in a row share a node, "cyclic" if they go to the nodes in turn.
        pick : str | Mapping[str, str | float], default 'value'
            "value" of each number, its "fast" or its "slow" end; or for some a number, "low" or "high".

        Raises
        ------
        PlanError
            It is no profile, a node has fewer cores, or `pick` names no such number or end.

        Examples
        --------
        >>> import rote
        >>> profile = rote.Machine.load("fat-tree").profile
        >>> machine = rote.Machine.of(profile, ranks_per_node=4, order="cyclic")
        >>> print(machine.network.placement(rote.Grid((4, 8))))
        grid mode 0: inside a node
        grid mode 1: 8 nodes of 1 switch
        """
        if not isinstance(profile, Profile):
            rule = f"a machine is made of a profile, machine.profile of a loaded one, not of {profile!r}"
            raise PlanError(f"{rule}\nwrite Machine.load(name) for the machine of a name or of a file")
        times = profile.times(ranks_per_node, threads, order, pick)
        return cls(**times, name=profile.name, profile=profile, pick=pick)

    @staticmethod
    def names() -> tuple[str, ...]:
        """The names of the machines that come with Rote. "here" is not among them, for it has no profile.

        Examples
        --------
        >>> import rote
        >>> "k-computer" in rote.Machine.names()
        True
        """
        return names()

    def at(self, pick: Pick) -> Machine:
        """A machine of the same profile, ranks and threads, with other picks of its numbers, as for `of`.

        Examples
        --------
        >>> import rote
        >>> slow = rote.Machine.load("k-computer").at("slow")
        >>> slow.latency, slow.network.ranks_per_node
        (5e-06, 1)
        """
        if self.profile is None or self.network is None:
            return self
        return self.of(self.profile, self.network.ranks_per_node, self.network.threads, self.network.order, pick)

    def on(self, ranks: int) -> Machine:
        """The machine of a job of so many ranks: if they are fewer than fill a node, only they share its memory.

        Examples
        --------
        >>> import rote
        >>> machine = rote.Machine.load("fat-tree")
        >>> machine.on(2).copy_time < machine.copy_time, machine.on(64) is machine
        (True, True)
        """
        if self.profile is None or self.network is None or ranks >= self.network.ranks_per_node:
            return self
        return self.of(self.profile, ranks, self.network.threads, self.network.order, self.pick)

    @memoized(256)
    def along(self, grid: Grid) -> Times:
        """The times per mode of a grid (of one mode if its order is 0).

        Raises
        ------
        PlanError
            The machine has times for a grid of another order.

        Examples
        --------
        >>> import rote
        >>> rote.Machine(latency=1e-6, byte_time=(1e-10, 4e-10)).along(rote.Grid((2, 2))).byte_time
        (1e-10, 4e-10)
        """
        times = [_spread(name, getattr(self, name), grid.order) for name in Times._fields]
        if self.network is not None:
            times[:2] = self.network.along(grid)
        return Times(*times)

    def at_best_along(self, *grids: Grid) -> Times:
        """The times per mode of several grids, one after the other, with copies in cache: for lower bounds.

        Examples
        --------
        >>> import rote
        >>> machine = rote.Machine(copy_time=2.0, cache=1e6, cache_factor=4)
        >>> machine.at_best_along(rote.Grid((2, 2)), rote.Grid((4,))).copy_time
        (0.5, 0.5)
        """
        times = [self.along(grid) for grid in dict.fromkeys(grids if self.network else grids[:1])]
        every = [tuple(chain(*along)) for along in zip(*times, strict=True)]
        return self.in_cache(Times(*every), 0)

    def in_cache(self, times: Times, nbytes: float) -> Times:
        """The times of a step whose blocks before and after have so many bytes: copies and sums are faster in cache.

        Parameters
        ----------
        times : Times
            The times along a step's grid modes, as `along` gives them.
        nbytes : float
            The bytes of the blocks before and after the step.

        Examples
        --------
        >>> import rote
        >>> machine = rote.Machine(copy_time=2.0, cache=1e6, cache_factor=4)
        >>> [machine.in_cache(machine.along(rote.Grid((2,))), nbytes).copy_time for nbytes in (1e5, 1e7)]
        [(0.5,), (2.0,)]
        """
        if not self.cache or nbytes > self.cache:
            return times

        copy_time = tuple([time / self.cache_factor for time in times.copy_time])
        reduce_time = tuple([time / self.cache_factor for time in times.reduce_time])
        return times._replace(copy_time=copy_time, reduce_time=reduce_time)

    def as_dict(self) -> dict[str, Any]:
        """The times by name, in seconds: `Machine(**machine.as_dict())` is the machine. It has what is not usual.

        Examples
        --------
        >>> import rote
        >>> rote.Machine().as_dict()["latency"]
        2e-06
        """
        values = {number.name: getattr(self, number.name) for number in fields(self)[:-2]}
        if self.network is not None:
            values["network"] = asdict(self.network)

        usual = {number.name: number.default for number in fields(self)[_SIMPLE:]}
        return {name: value for name, value in values.items() if name not in usual or value != usual[name]}

    def _repr_html_(self) -> str:
        return str(late("html.predictions:machine_card")(self))


def _spread(name: str, time: Time, order: int) -> tuple[float, ...]:
    """One time per grid mode."""
    if not isinstance(time, tuple):
        return (time,) * max(order, 1)
    if len(time) != order:
        raise PlanError(
            f"the machine has {counted(len(time), 'time')} for {name}, but a grid of the plan has order {order}\n"
            "write one number, or one per grid mode; for grids of different orders, one number"
        )
    return time or (0.0,)


def _checked(name: str, value: object) -> Time:
    """A time, or a tuple of them."""
    if isinstance(value, Iterable) and not isinstance(value, str) and name in Times._fields:
        return tuple(_number(name, time) for time in value)
    return _number(name, value)


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        large = isinstance(value, int) and value.bit_length() > 64  # Python refuses to print integers of many digits
        shown = "a larger integer" if large else repr(value)
        unit = "of seconds " * ("cache" not in name and "factor" not in name)
        raise PlanError(f"the {name} of a machine is a number {unit}from 0 to {_MOST:g}, not {shown}")
    if value < 1 and name == "cache_factor":
        raise PlanError("the cache_factor of a machine says how many times as fast as memory a cache is: 1 or more")
    return float(value)


DEFAULT = Machine()
"""The machine of plans for which none is given."""

# Measured for transforms of 128 cubed on two hosts of two ranks each, two to a core, without a limit of the network.
TCP_TIME = 1.3e-9
"""Seconds of `byte_time` for which TCP keeps a core busy with a byte; for the rest of it, the core waits."""


def as_machine(machine: Machine | str | None) -> Machine:
    """The given machine, the one of a name or of a file, or the default one if None.

    Raises:
        PlanError: the argument is something else, or there is no such machine.

    >>> as_machine(None) is DEFAULT
    True
    """
    if isinstance(machine, str):
        return Machine.load(machine)
    if machine is not None and not isinstance(machine, Machine):
        raise PlanError(f"a machine is one of rote.Machine(latency=…, byte_time=…), or a name, not {machine!r}")
    return machine or DEFAULT


class Slowest(NamedTuple):
    """The times of a machine along the slowest of some grid modes."""

    latency: float
    byte: float
    copy: float
    reduce: float


def slowest_of(times: Times, modes: tuple[int, ...]) -> Slowest:
    """The times along the slowest of some grid modes, or 0 if there are none."""
    return Slowest(*[max([along[g] for g in modes], default=0.0) for along in times])
