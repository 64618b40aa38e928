# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Watches that the floor is one: a floor that is slow by accident would flatter the library. How many trips of a cache line each
floor takes is recorded by kind of processor (bench/floor_ratios.json); a run whose floor is off its record fails."""

import json
import os
from statistics import median

from kit.machine import cpu
from kit.session import BENCH

PATH = os.path.join(BENCH, "floor_ratios.json")
MOST_OFF = 0.30


def ratio(figure, value, trip_us):
    """A time in trips; of a rate, what passes within a trip."""
    return value / trip_us if figure.lower_is_better else value * trip_us


def records():
    with open(PATH, encoding="ascii") as handle:
        return json.load(handle)["processors"]


def ratios(floors, line, measured):
    """{name: ratio} of the floors that were measured."""
    if not measured.get(line.name):
        return {}
    trip = median(measured[line.name])
    return {floor.name: float(f"{ratio(floor, median(measured[floor.name]), trip):.4g}")
            for floor in floors if measured.get(floor.name)}


def check(floors, line, measured):
    """(faults, remarks): lines about floors that are off, and about what cannot be judged."""
    found = ratios(floors, line, measured)
    if not found:
        return [], []
    recorded = records().get(cpu())
    if recorded is None:
        return [], [f"no floor is recorded for this processor ({cpu()}); on a quiet machine: bench/run --record-floor"]
    faults, remarks = [], []
    for name, now in found.items():
        if name not in recorded:
            remarks.append(f"{name}: no ratio is recorded for this processor")
        elif abs(now / recorded[name] - 1) > MOST_OFF:
            faults.append(f"{name}: {now:g} cache-line trips, recorded are {recorded[name]:g} ({now / recorded[name] - 1:+.0%})")
    return faults, remarks


def record(floors, line, measured):
    with open(PATH, encoding="ascii") as handle:
        content = json.load(handle)
    content["processors"].setdefault(cpu(), {}).update(ratios(floors, line, measured))
    with open(PATH, "w", encoding="ascii") as handle:
        json.dump(content, handle, indent=1, sort_keys=True)
        handle.write("\n")
