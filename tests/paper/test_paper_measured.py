"""Seconds that others published, and what the one law predicts of them. No number of a profile is fitted to them.

The bounds are what the law reaches, and not what it should: 4096 cubed on FX10, whose strides are powers of two, takes
twice as long as predicted, and so do small transforms there by one rank of 16 threads on a node.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest
from priced import pencils, slabs
from scipy.stats import spearmanr

import rote
from rote.machines.machine import Machine

REACHED = {  # the least and the most median ratio; inside the range; the width; Spearman; within 1.25, 1.5, 2
    "jean-zay": (0.95, 1.01, 39, 2.85, 0.99, (38, 39, 39)),
    "fx10": (0.88, 0.94, 31, 2.85, 0.99, (20, 27, 32)),
}
WALKS = {"slab": slabs, "pencil": pencils}


class Row(NamedTuple):
    """A published time beside a predicted one, with its range."""

    published: float
    predicted: float
    low: float
    high: float


@cache
def rows(machine):
    """The rows of a machine."""
    lines = Path(__file__).with_name("measured.csv").read_text("utf-8").splitlines()
    found = []
    for line in csv.DictReader(line for line in lines if not line.startswith("#")):
        if line["machine"] == machine:
            on = Machine.load(machine, int(line["ranks_per_node"]), int(line["threads"]))
            walk = WALKS[line["family"]]((int(line["points"]),) * 3, int(line["ranks"]))
            prediction = rote.predict(walk, on)
            found.append(Row(float(line["ms"]) / 1e3, prediction.seconds, *prediction.range))
    return found


def test_every_row_is_there():
    assert [len(rows(machine)) for machine in REACHED] == [39, 33]


@pytest.mark.parametrize("machine", REACHED)
def test_predictions_are_as_near_to_published_times_as_they_were(machine):
    least, most, inside, width, order, within = REACHED[machine]
    ratios = [row.predicted / row.published for row in rows(machine)]

    assert least <= median(ratios) <= most
    assert sum(row.low <= row.published <= row.high for row in rows(machine)) >= inside
    assert median(row.high / row.low for row in rows(machine)) <= width
    assert spearmanr([row.predicted for row in rows(machine)], [row.published for row in rows(machine)])[0] >= order

    for factor, count in zip((1.25, 1.5, 2), within, strict=True):
        assert sum(1 / factor <= ratio <= factor for ratio in ratios) >= count
