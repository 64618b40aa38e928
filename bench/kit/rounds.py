# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Measures figures in rounds: in each round every figure once, so that what is compared was measured within the same minute."""

import sys
import time

from kit.session import Failure

GIVE_UP = 2  # failures in turn after which a figure is not tried again


class Rounds:
    """libraries: those that own figures are measured of; their values are kept apart, `measured[library][name]`."""

    def __init__(self, session, libraries):
        self.session = session
        self.libraries = libraries
        self.measured = [{} for _ in libraries]
        self.failed = [{} for _ in libraries]
        self.in_turn = {}
        self.seconds = {}  # spent in each source

    def run(self, groups, keep=True, turn=0):
        """Measures all once, group by group: what a group holds is measured within seconds. keep=False: a warm-up, whose values
        are forgotten."""
        for figures in groups:
            for source, specs in calls(figures):
                order = range(len(self.libraries)) if source.own else [0]
                for number in order if turn % 2 == 0 else reversed(order):  # no library is always the first
                    self.call(source, specs, number, keep)

    def call(self, source, specs, number, keep):
        names = {spec: source.figure(*spec).name for spec in specs}
        specs = [spec for spec in specs if self.in_turn.get((number, names[spec]), 0) < GIVE_UP]
        if not specs:
            return
        start = time.monotonic()
        try:
            found = source.run(self.session, self.libraries[number], specs)
        except (Failure, OSError) as fault:
            reason = " ".join(str(fault).split())
            print(f"bench: {names[specs[0]]}: {reason}", file=sys.stderr)
            for spec in specs:
                self.failed[number][names[spec]] = reason[:300]
                self.in_turn[(number, names[spec])] = self.in_turn.get((number, names[spec]), 0) + 1
            return
        finally:
            self.seconds[source.name] = self.seconds.get(source.name, 0) + time.monotonic() - start
        for spec, value in found.items():
            self.in_turn[(number, names[spec])] = 0
            if keep:
                self.measured[number].setdefault(names[spec], []).append(value)

    def of(self, number):
        """The values that hold for one library: its own, and those that no library changes."""
        return {**self.measured[0], **self.measured[number]} if number else self.measured[0]


def calls(figures):
    """(source, specs) in the order of the figures: all figures of a batching source in one call, others one by one."""
    done = set()
    for figure in figures:
        if not figure.source.batch:
            yield figure.source, [figure.spec]
        elif figure.source not in done:
            done.add(figure.source)
            yield figure.source, [other.spec for other in figures if other.source is figure.source]
