"""The times of a machine, from which the cost of a plan is computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from ..caches import memoized
from ..errors import PlanError, counted

__all__ = ["DEFAULT", "Machine", "Times", "as_machine"]

Time = float | tuple[float, ...]

_MOST = 1e100  # seconds: the time of any plan is a finite number


@dataclass(frozen=True, slots=True)
class Times:
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

    Attributes:
        latency: the latency of one message.
        byte_time: the time to receive a byte.
        copy_time: the time to pack or unpack a byte.
        reduce_time: the time to reduce a byte into another.
        step_time: the time of a step before its first message.

    Raises:
        PlanError: a time is negative or above 1e100, or not a number.

    Source: Popovici et al. (2019, eq. 18 to 21), where latency is alpha and byte_time beta.

    >>> Machine(latency=(1e-6, 5e-6)).along(2).latency
    (1e-06, 5e-06)
    """

    latency: Time = 2e-6
    byte_time: Time = 1e-10
    copy_time: Time = 1e-10
    reduce_time: Time = 2e-10
    step_time: float = 1e-5

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, _checked(field.name, getattr(self, field.name)))

    @memoized(256)
    def along(self, order: int) -> Times:
        """The times per mode of a grid of some order (of one mode if the order is 0).

        Raises:
            PlanError: the machine has times for a grid of another order.

        >>> Machine(latency=1e-6, byte_time=(1e-10, 4e-10)).along(2).byte_time
        (1e-10, 4e-10)
        """
        times = [_spread(each.name, getattr(self, each.name), order) for each in fields(Times)]
        return Times(*times)

    def as_dict(self) -> dict[str, Any]:
        """The times by name, in seconds: `Machine(**machine.as_dict())` is the machine.

        >>> Machine().as_dict()["latency"]
        2e-06
        """
        return asdict(self)


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
    if isinstance(value, Iterable) and not isinstance(value, str) and name != "step_time":
        return tuple(_number(name, each) for each in value)
    return _number(name, value)


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        large = isinstance(value, int) and value.bit_length() > 64  # Python refuses to print integers of many digits
        shown = "a larger integer" if large else repr(value)
        raise PlanError(f"the {name} of a machine is a number of seconds from 0 to {_MOST:g}, not {shown}")
    return float(value)


DEFAULT = Machine()
"""The machine of plans for which none is given."""


def as_machine(machine: Machine | None) -> Machine:
    """The given machine, or the default one if None.

    Raises:
        PlanError: the argument is something else.

    >>> as_machine(None) is DEFAULT
    True
    """
    if machine is not None and not isinstance(machine, Machine):
        raise PlanError(f"a machine is one of rote.Machine(latency=…, byte_time=…), not {machine!r}")
    return machine or DEFAULT
