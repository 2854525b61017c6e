"""Cards of machines, and of what `rote.predict` says about time and memory on one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import counted
from ..machines.machine import Machine
from ..prediction import Prediction, machine_name
from ..units import in_bytes, in_seconds
from .page import card

__all__ = ["machine_card", "prediction_card"]


def machine_card(machine: Machine) -> str:
    """The card of a machine: what it is, its network, and its times."""
    values = machine.as_dict()
    about = [("what", machine.profile.about)] if machine.profile else []
    network = _network(values.pop("network", {}))

    values.pop("name", None)
    times = [(name.replace("_", " "), _number(name, value)) for name, value in values.items()]
    return card("Machine", machine_name(machine), [*about, *network, *times], [])


def _network(levels: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Facts about a network; none without one."""
    if not levels:
        return []
    nodes = f" of {levels['nodes']:,} nodes" if levels["nodes"] else ""
    return [("network", f"{levels['topology']}{nodes}, {counted(levels['ranks_per_node'], 'rank')} on a node")]


def _number(name: str, value: Any) -> str:
    """A time, or one per grid mode; bytes; or a factor."""
    if isinstance(value, tuple):
        return ", ".join([_number(name, part) for part in value])
    if name == "cache":
        return in_bytes(int(value))
    return f"{value:g}" if name.endswith("factor") else in_seconds(value)


def prediction_card(prediction: Prediction) -> str:
    """The card of a prediction: the time, its causes, and the memory."""
    seconds, (low, high) = prediction.seconds, prediction.range
    memory = f"{in_bytes(prediction.peak_bytes)} on a rank"
    if prediction.memory_bytes:
        memory += f", {in_bytes(prediction.node_bytes)} on a node of {in_bytes(prediction.memory_bytes)}"

    facts = [
        ("machine", machine_name(prediction.machine)),
        ("placement", prediction.placement),
        ("time", f"about {in_seconds(seconds)}" + f", {in_seconds(low)} to {in_seconds(high)}" * (low < high)),
        *[(name, f"{in_seconds(part)}, {100 * part / seconds:.2g} %") for name, part in prediction.parts],
        ("memory", memory if prediction.fits else f"too much: {memory}"),
        ("limited by", prediction.limit),
    ]
    return card("Prediction", prediction.tasks.name, facts, [])
