# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Watches that the floor is one: a floor that is slow by accident would flatter the library. How many trips of a cache line each
floor takes is recorded (bench/floor_ratios.json) by kind of processor and by how far its two cores lie apart, for which the
trip itself stands: two cores of a virtual machine may be threads of one core, or lie in different sockets, and change their
place. A run with a floor that is slower than its record fails; one that is faster makes no goal easier, and is told."""

import json
import os
from math import log
from statistics import median

from kit.machine import cpu
from kit.rounds import SAME_PLACE
from kit.session import BENCH

PATH = os.path.join(BENCH, "floor_ratios.json")
MOST_OFF = 0.30


def trips(figure, value, trip):
    """A time in trips; of a rate, what passes within a trip."""
    return value / trip if figure.lower_is_better else value * trip


def load():
    with open(PATH, encoding="ascii") as handle:
        return json.load(handle)


def nearest(records, trip):
    """The record of cores that lie as far apart, or None."""
    near = [record for record in records if abs(log(record["trip us"] / trip)) <= log(SAME_PLACE)]
    return min(near, key=lambda record: abs(log(record["trip us"] / trip)), default=None)


def off(figure, values, records):
    """What the floor is of its record, less one: the median of the turns whose place is recorded. None: there is no such turn."""
    shares = []
    for trip, value in values:
        known = nearest(records, trip)
        if known and figure.name in known["trips"]:
            shares.append(trips(figure, value, trip) / known["trips"][figure.name])
    return median(shares) - 1 if shares else None


def check(floors, measured, trip, records=None):
    """measured: {name: [(the trip's us, value)]}; trip: all trips of the run. (faults, remarks): lines about floors that are off, and
    about what cannot be judged."""
    records = load()["processors"].get(cpu(), []) if records is None else records
    faults, remarks = [], []
    seen = [floor for floor in floors if measured.get(floor.name)]
    if trip and max(trip) > SAME_PLACE * min(trip):
        remarks.append(f"the cores changed their places during the run: a cache line's trip took {min(trip):.3g} to {max(trip):.3g} us")
    unknown = []
    for floor in seen:
        share = off(floor, measured[floor.name], records)
        if share is None:
            unknown.append(floor.name)
        elif abs(share) > MOST_OFF:
            slow = (share > 0) == floor.lower_is_better
            told = f"{floor.name}: {share:+.0%} off its recorded ratio to a cache line's trip: {'slower' if slow else 'faster'}"
            (faults if slow else remarks).append(told)
    if unknown:
        remarks.append(f"no ratio is recorded for {cpu()} where a cache line's trip takes {median(trip):.3g} us: {', '.join(unknown)}; "
                       "on a quiet machine: bench/run --record-floor")
    return faults, remarks


def record(floors, measured):
    """Puts this run's ratios in the place of those of the same processor and place, or beside them."""
    content = load()
    records = content["processors"].setdefault(cpu(), [])
    found = {}  # by place: {floor: trips of its rounds}
    for floor in floors:
        for trip, value in measured.get(floor.name, []):
            place = nearest(records, trip)
            if not place:
                place = {"trip us": float(f"{trip:.3g}"), "trips": {}}
                records.append(place)
            found.setdefault(place["trip us"], {}).setdefault(floor.name, []).append(trips(floor, value, trip))
    for place in records:
        place["trips"].update({name: float(f"{median(values):.4g}") for name, values in found.get(place["trip us"], {}).items()})
    records.sort(key=lambda place: place["trip us"])
    with open(PATH, "w", encoding="ascii") as handle:
        json.dump(content, handle, indent=1, sort_keys=True)
        handle.write("\n")
