"""A machine, as far as the cost of a plan depends on it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

__all__ = ["Machine"]


@dataclass(frozen=True, slots=True)
class Machine:
    """What a message, a byte, a copied byte and a reduced byte cost, in seconds.

    The defaults are of the order of ranks that share the memory of one node.

    >>> Machine(latency=1e-6).seconds(messages=3, received=0, copied=0, reduced=0)
    3e-06
    """

    latency: float = 2e-6
    byte_time: float = 1e-10
    copy_time: float = 1e-10
    reduce_time: float = 2e-10

    def seconds(self, *, messages: int, received: int, copied: int, reduced: int) -> float:
        """The time of one rank that receives some messages and bytes, and copies and reduces some bytes."""
        return (
            self.latency * messages + self.byte_time * received + self.copy_time * copied + self.reduce_time * reduced
        )

    def as_dict(self) -> dict[str, float]:
        """The times by name."""
        return asdict(self)
