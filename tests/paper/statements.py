"""Every statement of three papers about time, and what a machine of documented numbers says of it.

The texts have no seconds: only orders, limits and some percentages. A verdict is one of

    exact   a count, without a price
    D       right whatever the numbers are that have a range; D* with one choice of the model too, which `decides` names
    F       right or wrong by such a number; `decides` says which
    check   a formula of the paper, evaluated
    rule    taken over as a rule
    no      out of reach of a machine model

A row with a check states what the model says: whether it agrees with the statement, and its figures. D and F are told
apart by machines whose numbers are drawn, each within its range: D agrees on at least 95 % of those on which the
numbers are drawn that no document has, and of those on which all are drawn that have a range. No number of a profile
was set to meet a statement.

    python tests/paper/statements.py          writes the table in Markdown
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from math import exp, log, log2
from pathlib import Path
from random import Random
from typing import NamedTuple

from priced import (
    FAMILIES,
    PAIRS,
    TIE,
    bare,
    fits,
    grid,
    limit,
    moves,
    pencils,
    ratio,
    seconds,
    slabs,
    tasks,
    time,
    unpacked,
    walk,
)

from rote.machines.machine import Machine
from rote.machines.profile import _COUNTS, _LIMITS
from rote.machines.work import Work

K = Machine.load("k-computer")
EVERY = tuple(FAMILIES)
STATEMENTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PRICED = tuple(name for name, row in STATEMENTS.items() if row["verdict"] in ("D", "D*", "F"))
DRAWS = 200
ENOUGH = 0.95  # of the draws: what D needs


class Found(NamedTuple):
    """Whether the model agrees with a statement, and its figures."""

    agrees: bool
    figures: str


Draw = Callable[[Machine], Machine]
"""What makes of a machine the one on which a check is made."""


def usual(machine):
    """The machine itself, with the values of its profile."""
    return machine


def draw(seed, every=False) -> Draw:
    """Machines whose undocumented numbers are drawn, uniformly in their logarithms; the same ones for the same seed.

    With `every` those too of which documents say different things.
    """

    @cache
    def drawn(machine):
        profile, random = machine.profile, Random(f"{seed} {machine.name}")
        drawn = {}
        for name, number in profile.numbers.items():
            if number.low < number.high and name not in _LIMITS and (every or not number.documented):
                value = exp(random.uniform(log(number.low), log(number.high)))
                drawn[name] = round(value) if name in _COUNTS else value
        return machine.at(drawn)

    return drawn


def holds(name):
    """Whether the model agrees with a statement on enough draws of either kind."""
    return min(share(name), share(name, every=True)) >= ENOUGH


@cache
def share(name, every=False):
    """The share of the draws on which the model agrees with a statement."""
    return sum(CHECKS[name](draw(seed, every)).agrees for seed in range(DRAWS)) / DRAWS


def doublings(first, last):
    """Powers of two."""
    return [2**k for k in range(first.bit_length() - 1, last.bit_length())]


# --- what the model says ----------------------------------------------------------------------------------------------


def needed(field, first, last, agrees):
    """The value of a number between two at which a statement comes to agree; it does at the last, and not at the first.

    It is only reported: no profile takes it.
    """
    for _ in range(30):
        middle = (first * last) ** 0.5
        first, last = (first, middle) if agrees(K.at({field: middle})) else (middle, last)
    return last


def us(time):
    """Microseconds."""
    return f"{time * 1e6:.3g} us"


def p1(draw=usual):
    said = {(64, "slab"): 8, (256, "slab"): 16, (256, "volumetric"): 4096}
    said |= {(1024, "slab"): 32, (1024, "pencil"): 1024, (1024, "volumetric"): 32768}
    found = {key: limit(*key) for key in said}
    return Found(
        found == said,
        f"{len(found)} of 6, and 3 that follow: {limit(64, 'pencil')}, {limit(64, 'volumetric')}, "
        f"{limit(256, 'pencil')}",
    )


def pairs_of(points, nodes, draw):
    """The ratios of the pairs of one size."""
    ratios = {pair: ratio(pair, draw(K)) for pair in PAIRS if pair[0] == points and pair[1] in nodes}
    right = sum(gap > 1 for gap in ratios.values())
    return Found(
        all(gap > 1 / TIE for gap in ratios.values()),
        f"{right} of {len(ratios)} pairs, by {min(ratios.values()):.2f} to {max(ratios.values()):.2f}",
    )


def p3(draw=usual):
    times = [seconds(64, "slab", nodes, draw(K)) for nodes in (2, 4, 8)]
    return Found(times[0] > times[1] > times[2], " > ".join(map(us, times)))


def p4(draw=usual):
    machine = draw(K)
    slab = seconds(64, "slab", 8, machine)
    others = {
        f: min(seconds(64, f, n, machine) for n in doublings(4, 512) if fits(64, f, n))
        for f in ("pencil", "volumetric")
    }
    more = max((slab - others["pencil"]) / 1, (slab - others["volumetric"]) / 2)  # exchanges more than slabs
    figures = ", ".join(f"{family} {us(time)}" for family, time in others.items())
    return Found(more <= 0, f"slab {us(slab)}, {figures}; needs {us(machine.step_time + more)} an exchange")


def p5(draw=usual):
    machine = draw(K)
    last = {}
    for family in ("pencil", "volumetric"):
        most = limit(64, family)
        last[family] = seconds(64, family, most // 2, machine) / seconds(64, family, most, machine)
    agrees = max(last.values()) < 1.1
    if draw is not usual:
        return Found(agrees, "")
    exchange = needed("exchange", K.step_time, 1.0, lambda machine: p5(lambda _: machine).agrees)
    gains = ", ".join(f"{family} {gain:.2f}" for family, gain in last.items())
    return Found(agrees, f"the last doubling gains {gains} times; below 1.1 needs {us(exchange)} an exchange")


def p6(draw=usual):
    times = [[bare(64, family, nodes, draw(K)) for family in EVERY if fits(64, family, nodes)] for nodes in (4, 8)]
    return Found(all(each[0] * TIE < min(each[1:]) for each in times), "; ".join(" < ".join(map(us, t)) for t in times))


def p7(draw=usual):
    before, after = bare(64, "slab", 8, draw(K)), bare(64, "slab", 16, draw(K))
    return Found(after < before, f"{us(before)} at 8, {us(after)} at 16")


def p8(draw=usual):
    machine = draw(K)
    best = {
        family: min(bare(64, family, n, machine) for n in doublings(8, 64 if family == "slab" else 512))
        for family in EVERY
    }
    agrees = best["slab"] == min(best.values())
    if draw is not usual:
        return Found(agrees, "")
    exchange = needed("exchange", K.step_time, 1.0, lambda machine: p8(lambda _: machine).agrees)
    figures = ", ".join(f"{family} {us(time)}" for family, time in best.items())
    four = "as" if p8(lambda machine: machine.at({"injection": "high"})).agrees else "not"
    return Found(agrees, f"{figures}; needs {us(exchange)} an exchange; {four} with four interfaces")


def p9(draw=usual):
    machine = draw(K)
    bound = (16 * 64**3 * machine.byte_time / machine.latency) ** 0.5
    plateau = 16 * 64**3 * machine.byte_time / 8**2
    return Found(8 < bound < 64, f"p ≥ {bound:.0f} at {us(machine.latency)}; at 8 it needs {us(plateau)}")


def p11(draw=usual):
    machine = draw(K)
    every = {(f, n): seconds(256, f, n, machine) for f in EVERY for n in doublings(2, 4096) if fits(256, f, n)}
    best = min(every, key=every.get)
    return Found(best == ("volumetric", 4096), f"{best[0]} on {best[1]}: {us(every[best])}")


def p12(draw=usual):
    machine = draw(K)
    slab = {n: bare(256, "slab", n, machine) for n in doublings(4, 512)}
    met = next((n for n in slab if slab[n] >= bare(256, "pencil", n, machine)), None)
    passed = next((n for n in slab if n >= 8 and bare(256, "volumetric", n, machine) < slab[n]), None)
    least = min((bare(256, f, n, machine), f) for f in EVERY for n in doublings(8, 4096) if f != "slab" or n in slab)

    places = [f"at {n}" if n else "nowhere up to 512" for n in (met, passed)]
    return Found(
        None not in (met, passed) and slab[8] < bare(256, "pencil", 8, machine) and least[1] == "volumetric",
        f"slabs meet pencils {places[0]}, volumetric passes slabs {places[1]}; {least[1]} is the fastest",
    )


def shares(points, kind, machine=K):
    """The share of local transforms ("fft"), or of packing, by family and nodes."""
    found = {}
    for family in EVERY:
        for nodes in (n for n in doublings(4, 4096) if fits(points, family, n)):
            every = tasks(walk(points, family, nodes))
            part = time(moves(every), machine) - time(moves(every), unpacked(machine))
            if kind == "fft":
                part = time([task for task in every if isinstance(task, Work) and task.kind == "fft"], machine)
            found[family, nodes] = part / time(every, machine)
    return found


def p13(draw=usual):
    found = [share for (family, _), share in shares(256, "fft", draw(K)).items() if family != "volumetric"]
    return Found(min(found) > 0.2, f"{min(found):.0%} to {max(found):.0%}")


def p14(draw=usual):
    machine = draw(K)
    most = max(shares(256, "pack", machine).values())
    if draw is not usual:
        return Found(most >= 0.45, "")
    fast = max(shares(256, "pack", K.at({"fft_share": 1.0})).values())
    return Found(most >= 0.45, f"at most {most:.0%}; {fast:.0%} if an FFT took no longer than its memory")


def p17(draw=usual):
    first, last = seconds(1024, "volumetric", 64, draw(K)), seconds(1024, "volumetric", 32768, draw(K))
    slope = log2(first / last) / 9
    return Found(slope > 0.8, f"slope {slope:.2f}, efficiency {first / last / 512:.2f}")


def p18(draw=usual):
    machine = draw(K)
    found = [
        seconds(1024, "volumetric", n, machine) / bare(1024, "volumetric", n, machine) for n in (8192, 16384, 32768)
    ]
    if draw is not usual:
        return Found(max(found) < 1.1, "")
    link = needed("link", 5e9, 1e7, lambda machine: p18(lambda _: machine).agrees)
    fast = K.at({"fft_share": "high"})
    half = [p18_at(machine) for machine in (fast, fast.at({"fft_share": "high", "link": 2.5e9, "injection": 2.5e9}))]
    return Found(
        max(found) < 1.1,
        f"{min(found):.2f} to {max(found):.2f} times the bare one; {half[0]:.2f} with the fastest FFT, {half[1]:.2f} "
        f"with half of the network too; else needs links of {link / 1e9:.2f} GB/s",
    )


def p18_at(machine):
    return max(
        seconds(1024, "volumetric", n, machine) / bare(1024, "volumetric", n, machine) for n in (8192, 16384, 32768)
    )


TABLE_1 = {
    "slab": {2: (2,), 4: (4,), 8: (8,), 16: (16,), 32: (32,)},
    "pencil": {4: (2, 2), 8: (4, 2), 16: (4, 4), 32: (8, 4), 64: (8, 8), 128: (16, 8), 256: (16, 16)}
    | {512: (32, 16), 1024: (32, 32)},
    "volumetric": {8: (2, 2, 2), 16: (4, 2, 2), 32: (4, 4, 2), 64: (4, 4, 4), 128: (8, 4, 4), 256: (8, 8, 4)}
    | {512: (8, 8, 8), 1024: (16, 8, 8), 2048: (16, 16, 8), 4096: (16, 16, 16), 8192: (32, 16, 16)}
    | {16384: (32, 32, 16), 32768: (32, 32, 32)},
}


def p20(draw=usual):
    right = [grid(family, nodes) == said for family in FAMILIES for nodes, said in TABLE_1[family].items()]
    return Found(all(right), f"{sum(right)} of {len(right)} grids")


def shaheen(ranks_per_node):
    """Shaheen II with so many ranks a node, each of one thread."""
    return Machine.load("cray-xc40", ranks_per_node, 1)


def weak(ranks):
    """A shape of 524,288 points a rank, as even as can be, the shortest axis first."""
    exponent = 19 + ranks.bit_length() - 1
    return tuple(2 ** ((exponent + axis) // 3) for axis in range(3))


def d1(draw=usual):
    behind = []
    for ranks in (2, 4, 8, 16, 32):
        work = tasks(slabs((700,) * 3, ranks))
        behind.append(time(work, draw(shaheen(ranks))) / time(work, draw(shaheen(1))))
    return Found(behind[-1] > 1.2 and behind == sorted(behind), f"one node is {behind[-1]:.2f} times behind at 32")


def unpacking(walks, machine):
    """How many times as long redistributions take with packing as without."""
    return [time(moves(tasks(each)), machine) / time(moves(tasks(each)), unpacked(machine)) for each in walks]


def d2(draw=usual):
    found = unpacking([slabs((700,) * 3, ranks) for ranks in doublings(2, 128)], draw(shaheen(1)))
    return Found(min(found) > TIE, f"{min(found):.1f} to {max(found):.1f} times")


def d4(draw=usual):
    found = unpacking([slabs(weak(ranks), ranks) for ranks in doublings(4, 512)], draw(shaheen(1)))
    return Found(min(found) > TIE, f"{max(found):.1f} times at 4, {min(found):.1f} at 512")


def d5(draw=usual):
    times = [time(moves(tasks(slabs(weak(n), n))), unpacked(draw(shaheen(1)))) for n in (32, 128, 512)]
    return Found(times[2] > 1.5 * times[1] > 1.5 * times[0], ", ".join(map(us, times)) + " at 32, 128, 512")


def d7(draw=usual):
    walks = [pencils((2048,) * 3, ranks) for ranks in doublings(512, 4096)]
    one, many = unpacking(walks, draw(shaheen(1))), unpacking(walks, draw(shaheen(16)))
    less = all(b < a for a, b in zip(one, many, strict=True))
    return Found(less, f"{min(one):.1f} to {max(one):.1f} times at 1 a node, {min(many):.1f} to {max(many):.1f} at 16")


def d9(draw=usual):
    found = [
        time(tasks(pencils(weak(n), n)), draw(shaheen(1))) / time(tasks(slabs(weak(n), n)), draw(shaheen(1)))
        for n in doublings(4, 512)
    ]
    return Found(
        min(found) > TIE, f"{min(found):.2f} to {max(found):.2f} times, least at {2 ** (2 + found.index(min(found)))}"
    )


def o2(draw=usual):
    def times(latency=None):
        fx10 = draw(Machine.load("fx10"))
        fx10 = fx10.at({} if latency is None else {"latency": latency, "message_rate": "high"})
        return [time(moves(tasks(slabs((256,) * 3, n, "c16"))), unpacked(fx10)) for n in (64, 128, 256)]

    here = times()
    if draw is not usual:
        return Found(here == sorted(here), "")

    low, high = 1e-6, 1e-2
    for _ in range(30):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if times(middle)[2] > times(middle)[1] else (middle, high)
    figures = ", ".join(map(us, here))
    return Found(here == sorted(here), f"{figures} at 64, 128, 256; needs a latency of {us(high)}")


def o4(draw=usual):
    from figure6 import row_walk

    xc30 = draw(Machine.load("cray-xc30"))
    times = [time(moves(tasks(row_walk((1024,) * 3, n))), xc30) for n in (512, 1024, 2048)]
    gains = times[0] / times[1], times[1] / times[2]
    return Found(gains[1] < 0.85 * gains[0], f"moves gain {gains[0]:.2f} times to 1,024, {gains[1]:.2f} to 2,048")


def o6(draw=usual):
    found = []
    for points in (128, 256, 512, 1024):
        for ranks in doublings(64, 2048):
            work = tasks(pencils((points,) * 3, ranks, "c16"))
            fx10, *others = (time(work, draw(Machine.load(name))) for name in ("fx10", "cray-xc30", "sgi-infiniband"))
            found += [fx10 / other for other in others]
    return Found(min(found) > TIE, f"{min(found):.1f} to {max(found):.1f} times")


def o7(draw=usual):
    machine = draw(Machine.load("k-computer", 8, 1))
    gains = []
    for points in (512, 1024):
        few, many = (time(tasks(pencils((points,) * 3, n, "c16")), machine) for n in (4096, 32768))
        gains.append(few / many)
    return Found(gains[0] * 1.2 < gains[1], f"8 times the ranks: 512³ gains {gains[0]:.1f}, 1024³ {gains[1]:.1f} times")


CHECKS = {
    "P1": p1,
    "P2": lambda draw=usual: pairs_of(64, (4, 8), draw),
    "P3": p3,
    "P4": p4,
    "P5": p5,
    "P6": p6,
    "P7": p7,
    "P8": p8,
    "P9": p9,
    "P10": lambda draw=usual: pairs_of(256, (4, 8, 16), draw),
    "P11": p11,
    "P12": p12,
    "P13": p13,
    "P14": p14,
    "P15": lambda draw=usual: pairs_of(1024, (4, 8, 16, 32), draw),
    "P16": lambda draw=usual: pairs_of(1024, (64, 128, 256, 512, 1024), draw),
    "P17": p17,
    "P18": p18,
    "P20": p20,
    "D1": d1,
    "D2": d2,
    "D4": d4,
    "D5": d5,
    "D7": d7,
    "D9": d9,
    "O2": o2,
    "O4": o4,
    "O6": o6,
    "O7": o7,
}


def table():
    """The table in Markdown."""
    lines = [
        "| | source | statement | ranks | verdict | holds in | decides | the model |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, row in STATEMENTS.items():
        figures = CHECKS[name]().figures if name in CHECKS else ""
        holds = f"{share(name):.0%}, {share(name, every=True):.0%}" if name in PRICED else ""
        cells = (name, row["source"], row["text"], row["ranks"], row["verdict"], holds, row["decides"], figures)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
