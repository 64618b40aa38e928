# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Watches that the floor is one: a floor that is slow by accident would flatter the library. How many trips of a cache line each
floor takes is recorded (bench/floor_ratios.json) by kind of processor and by how far its two cores lie apart, for which the
trip itself stands: two cores of a virtual machine may be threads of one core, or lie in different sockets, and change their
place. A run whose floor is off its record fails."""

import json
import os
from math import log
from statistics import median

from kit.machine import cpu
from kit.session import BENCH
from kit.spread import ratio

PATH = os.path.join(BENCH, "floor_ratios.json")
MOST_OFF = 0.30
SAME_PLACE = 1.5  # trips that differ by less are of cores that lie equally far apart


def trips(figure, values, line):
    """A time in trips; of a rate, what passes within a trip."""
    found = ratio(values, line) if figure.lower_is_better else 1 / ratio([1 / value for value in values], line)
    return float(f"{found:.4g}")


def ratios(floors, line, measured):
    """{name: trips} of the floors that were measured."""
    return {floor.name: trips(floor, measured[floor.name], measured[line.name]) for floor in floors
            if measured.get(floor.name) and measured.get(line.name)}


def load():
    with open(PATH, encoding="ascii") as handle:
        return json.load(handle)


def nearest(records, trip):
    """The record of cores that lie as far apart, or None."""
    near = [record for record in records if abs(log(record["trip us"] / trip)) <= log(SAME_PLACE)]
    return min(near, key=lambda record: abs(log(record["trip us"] / trip)), default=None)


def check(floors, line, measured, records=None):
    """(faults, remarks): lines about floors that are off, and about what cannot be judged."""
    found = ratios(floors, line, measured)
    if not found:
        return [], []
    trip, remarks = measured[line.name], []
    if max(trip) > SAME_PLACE * min(trip):
        remarks.append(f"the cores changed their places during the run: a cache line's trip took {min(trip):.3g} to {max(trip):.3g} us")
    record = nearest(load()["processors"].get(cpu(), []) if records is None else records, median(trip))
    if record is None:
        return [], [*remarks, f"no floor is recorded for this processor ({cpu()}) where a cache line's trip takes {median(trip):.3g} us; "
                    "on a quiet machine: bench/run --record-floor"]
    known = record["trips"]
    remarks += [f"{name}: no ratio is recorded for this processor" for name in found if name not in known]
    faults = [f"{name}: {now:g} trips of a cache line, recorded are {known[name]:g} ({now / known[name] - 1:+.0%})"
              for name, now in found.items() if name in known and abs(now / known[name] - 1) > MOST_OFF]
    return faults, remarks


def record(floors, line, measured):
    """Puts this run's ratios in the place of those of the same processor and place, or beside them."""
    content = load()
    records = content["processors"].setdefault(cpu(), [])
    trip = median(measured[line.name])
    old = nearest(records, trip)
    if old:
        records.remove(old)
    kept = {**(old["trips"] if old else {}), **ratios(floors, line, measured)}
    records.append({"trip us": float(f"{trip:.3g}"), "trips": kept})
    records.sort(key=lambda entry: entry["trip us"])
    with open(PATH, "w", encoding="ascii") as handle:
        json.dump(content, handle, indent=1, sort_keys=True)
        handle.write("\n")
