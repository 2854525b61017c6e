"""The components of a transition: the view modes of both sides that read the same digits of the tensor."""

from __future__ import annotations

from typing import NamedTuple

from ..caches import memoized
from ..grammar.nodes import Kind
from ..layout.distribution import Distribution
from ..layout.view import Digit

__all__ = ["Component", "Reading", "components", "readings"]

Digits = tuple[tuple[Digit, ...], ...]
Reading = tuple[tuple[tuple[Digit, ...], tuple[tuple[Kind, int], ...], int], ...]
"""Of some view modes, all that says where elements lie: their digits, the kinds and parts of their splits, extents."""


class Component(NamedTuple):
    """View modes of the source and of the target that read the same digits of the tensor."""

    before: tuple[int, ...]
    after: tuple[int, ...]


def components(source: Distribution, target: Distribution) -> tuple[Component, ...]:
    """The components of a transition, ordered by the first digit of the tensor that they read."""
    return _components(source.digits, target.digits)


@memoized(4096)
def _components(before: Digits, after: Digits) -> tuple[Component, ...]:
    shared = {digits: m for m, digits in enumerate(after)}
    if all(digits in shared for digits in before) and len(set(before)) == len(before) == len(after):
        pairs = sorted(((digits, m) for m, digits in enumerate(before)), key=lambda pair: _first(pair[0]))
        return tuple(Component((m,), (shared[digits],)) for digits, m in pairs)
    groups: list[set[int]] = []
    for digits in (*before, *after):
        modes = {digit.mode for digit in digits}
        joined = [g for g in groups if g & modes]
        groups = [g for g in groups if not g & modes] + [modes.union(*joined)]
    parts = []
    for modes in sorted(groups, key=min):
        one_before = [m for m, digits in enumerate(before) if digits[0].mode in modes]
        one_after = [m for m, digits in enumerate(after) if digits[0].mode in modes]
        by_digits = {before[m]: m for m in one_before}
        if len(by_digits) == len(one_before) == len(one_after) and set(by_digits) == {after[m] for m in one_after}:
            ordered = sorted(one_after, key=lambda m: _first(after[m]))
            parts += [Component((by_digits[after[m]],), (m,)) for m in ordered]
        else:
            parts.append(Component(tuple(one_before), tuple(one_after)))
    return tuple(parts)


@memoized(16384)
def readings(source: Distribution, target: Distribution, part: Component) -> tuple[Reading, Reading]:
    """Both sides of a component; digits that both read alike are one number."""
    alike = [source.digits[m] for m in part.before] == [target.digits[m] for m in part.after]
    return _reading(source, part.before, alike), _reading(target, part.after, alike)


@memoized(16384)
def _reading(dist: Distribution, modes: tuple[int, ...], alike: bool) -> Reading:
    reading = []
    for number, m in enumerate(modes):
        digits = (Digit(number, 1, dist.view_shape[m]),) if alike else dist.digits[m]
        reading.append((digits, tuple([(s.kind, s.parts) for s in dist.splits[m]]), dist.view_shape[m]))
    return tuple(reading)


def _first(digits: tuple[Digit, ...]) -> tuple[int, int]:
    return digits[0].mode, -digits[0].weight
